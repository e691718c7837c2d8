//! A simulated chip's library: found, looked at, loaded, its functions by name.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io::Read;
use std::path::{Path, PathBuf};

use blindcore_accel::Error;
use libloading::Library;

/// Where `lib<file>.so`, what the device `name` needs, lies: in the folder that `BLINDCORE_RTL` names or else where
/// `make -C hw libraries` leaves it, in `hw` of the build folder that this program is in.
///
/// # Errors
/// It is not there.
pub fn find(name: &str, file: &str) -> Result<PathBuf, Error> {
    let file = format!("lib{file}.so");
    let folder = folder();
    let path = folder.as_ref().map(|folder| folder.join(&file)).filter(|path| path.is_file());
    path.and_then(|path| std::path::absolute(path).ok()).ok_or_else(|| {
        let why = match folder {
            Some(folder) => format!("{} has no {file}, the simulated chip", folder.display()),
            None => format!("there is no {file}, the simulated chip, for this program is in no build folder"),
        };
        Error::device(name, why)
    })
}

/// Where libraries are looked for, if anywhere.
pub(crate) fn folder() -> Option<PathBuf> {
    let named = blindcore_units::variable("BLINDCORE_RTL");
    named.map(PathBuf::from).or_else(|| {
        let program = std::env::current_exe().ok()?;
        // cargo leaves this in its build folders; programs lie one folder below, tests two.
        let build = program.ancestors().skip(1).take(4).find(|f| f.join(".rustc_info.json").is_file());
        build.map(|folder| folder.join("hw"))
    })
}

/// The error for a name that is not one of `names`.
pub(crate) fn unknown(name: &str, names: impl Iterator<Item = &'static str>) -> Error {
    let names: Vec<_> = names.collect();
    Error::device(name, format!("no simulated chip has this name; there are {}", names.join(", ")))
}

/// A library that has the interface that was asked for.
pub(crate) struct Opened<'a> {
    name: &'a str,
    path: &'a Path,
    library: Library,
}

impl<'a> Opened<'a> {
    /// Loads `path` for the device `name`; its function `version` has to say so.
    pub(crate) fn new(name: &'a str, path: &'a Path, version: &[u8], wanted: u32) -> Result<Self, Error> {
        // What the loader maps and the file lacks would end the process at its first reading.
        let missing = missing(path).map_err(|e| refused(name, format!("{}: {e}", path.display())))?;
        if let Some(missing) = missing {
            let why = format!("{} ends {missing} bytes before its end: it is cut short", path.display());
            return Err(refused(name, why));
        }
        // SAFETY: the user chose the library, by building it or by naming its folder, as any program is chosen;
        // its initialisers only set up memory. A version takes nothing and gives 32 bits in all of `hw/rtl/sim`.
        unsafe {
            let library = Library::new(path).map_err(|e| unfit(name, path, &e))?;
            let opened = Self { name, path, library };
            let version: unsafe extern "C" fn() -> u32 = opened.get(version)?;
            let version = version();
            if version != wanted {
                return Err(opened.refuse(format!("has interface {version}, not {wanted}")));
            }
            Ok(opened)
        }
    }

    /// A function of it.
    ///
    /// # Safety
    /// It has the type `T`, and is not called when the library is gone.
    pub(crate) unsafe fn get<T: Copy>(&self, symbol: &[u8]) -> Result<T, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.library.get::<T>(symbol).map(|f| *f).map_err(|e| unfit(self.name, self.path, &e)) }
    }

    /// What its function `new` makes, to be freed by its function `free`. It must go before the library does.
    ///
    /// # Safety
    /// They are a pair: `new` takes nothing and gives a pointer, null where it can't, and `free` takes such a pointer once.
    pub(crate) unsafe fn make(&self, new: &[u8], free: &[u8], what: &str) -> Result<Handle, Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let (new, free) = (self.get::<New>(new)?, self.get::<Free>(free)?);
            let pointer = new();
            if pointer.is_null() {
                return Err(self.refuse(format!("makes no {what}")));
            }
            Ok(Handle { pointer, new, free })
        }
    }

    /// Why it is none that serves: behind its path.
    pub(crate) fn refuse(&self, why: impl std::fmt::Display) -> Error {
        refused(self.name, format!("{} {why}", self.path.display()))
    }

    /// The library, to be kept as long as what came from it.
    pub(crate) fn keep(self) -> Library {
        self.library
    }
}

type New = unsafe extern "C" fn() -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);

/// A simulated chip that a library made, freed with its owner.
pub(crate) struct Handle {
    /// Never null.
    pointer: *mut c_void,
    new: New,
    free: Free,
}

impl Handle {
    /// What the library's functions take.
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer
    }

    /// Another chip in its place, which knows nothing of what the one before was asked.
    ///
    /// # Panics
    /// There is no memory for another.
    pub(crate) fn renew(&mut self) {
        // SAFETY: the library is there as long as the handle, as `Opened::make` asks.
        let another = unsafe { (self.new)() };
        assert!(!another.is_null(), "there is no memory for another simulated chip");
        let before = std::mem::replace(&mut self.pointer, another);
        // SAFETY: `new` made it, and nothing has it any more.
        unsafe { (self.free)(before) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: `new` made it, it is not null, and nobody uses it any more.
        unsafe { (self.free)(self.pointer) }
    }
}

fn refused(name: &str, why: String) -> Error {
    Error::device(name, why)
}

fn unfit(name: &str, path: &Path, error: &libloading::Error) -> Error {
    let cause = std::error::Error::source(error).map(|e| format!(": {e}"));
    refused(name, format!("{}: {error}{}", path.display(), cause.unwrap_or_default()))
}

/// How many bytes a 64-bit little-endian ELF file lacks, up to the end of its section headers, which linkers put last; none
/// of any other file, which the loader judges.
fn missing(path: &Path) -> std::io::Result<Option<u64>> {
    let mut file = std::fs::File::open(path)?;
    let mut header = [0u8; 64];
    let length = file.metadata()?.len();
    if length < header.len() as u64 {
        return Ok(None);
    }
    file.read_exact(&mut header)?;
    if header[..6] != *b"\x7fELF\x02\x01" {
        return Ok(None);
    }
    let half = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let sections = u64::from_le_bytes(header[40..48].try_into().expect("eight bytes"));
    let end = sections.saturating_add(half(58) * half(60));
    Ok(end.checked_sub(length).filter(|missing| *missing > 0))
}

#[cfg(test)]
mod tests {
    use super::missing;

    /// This test itself is an ELF file on Linux, whole; cut short it lacks what was cut.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_is_cut_short_is_known() {
        let whole = std::env::current_exe().unwrap();
        assert_eq!(missing(&whole).unwrap(), None);
        let mut start = vec![0; 4096];
        std::io::Read::read_exact(&mut std::fs::File::open(&whole).unwrap(), &mut start).unwrap();
        let cut = std::env::temp_dir().join(format!("blindcore-cut-{}", std::process::id()));
        std::fs::write(&cut, &start).unwrap();
        let lacks = missing(&cut).unwrap();
        std::fs::write(&cut, "no library").unwrap();
        let other = missing(&cut).unwrap();
        std::fs::remove_file(&cut).unwrap();
        let length = std::fs::metadata(&whole).unwrap().len();
        assert!(lacks.is_some_and(|lacks| lacks > 0 && lacks <= length - 4096), "{lacks:?} of {length}");
        assert_eq!(other, None);
    }
}
