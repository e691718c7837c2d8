//! Files as memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use blindcore_accel::SharedBytes;
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::{Mmap, MmapMut, MmapOptions};

/// A part of a file, mapped for reading.
struct Part {
    map: Mmap,
    start: usize,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.map[self.start..]
    }
}

/// Maps a file from byte `start` on: one that nobody writes to any more, a part of an epoch or a shard of the build's own.
pub(crate) fn map(file: &File, start: usize) -> io::Result<SharedBytes> {
    // SAFETY: the files of an epoch are never written again once their manifest stands: builds write to a
    // folder of their own and rename it. Cutting one by hand under a command that reads it so ends
    // that by a SIGBUS, as with every mapped file; nothing else is unsound about a change of plain bytes. Servers read nothing so.
    let map = unsafe { Mmap::map(file)? };
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::HugePage);
    Ok(Arc::new(Part { map, start }))
}

/// Asks for large pages for the room of a vector that is read and written here and there, where to find a page would take
/// longer than what is done with it.
pub(crate) fn huge(memory: &mut Vec<u8>) {
    #[cfg(target_os = "linux")]
    {
        const LARGE: usize = 2 << 20;
        let start = memory.as_ptr().addr().next_multiple_of(LARGE);
        let end = (memory.as_ptr().addr() + memory.capacity()) / LARGE * LARGE;
        if start < end {
            // SAFETY: whole pages, however large, of memory that is the vector's alone; the advice changes none of their bytes.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Zeroed working memory: real memory when small, a temporary file when large, so that what a build holds
/// stays bounded.
pub(crate) struct Scratch(MmapMut);

/// Scratch up to this size is memory.
const IN_MEMORY: usize = 64 << 20;

impl Scratch {
    pub(crate) fn zeroed(dir: &Path, len: usize) -> io::Result<Self> {
        if len <= IN_MEMORY {
            let map = MmapMut::map_anon(len)?;
            #[cfg(target_os = "linux")]
            let _ = map.advise(Advice::HugePage);
            return Ok(Self(map));
        }
        let file = tempfile::tempfile_in(dir)?;
        reserve(&file, len as u64)?;
        Ok(Self(map_mut(&file, len)?))
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Makes a file `len` bytes long with its blocks taken, so that a full disk is an error here and not a signal
/// at the first write to the mapping.
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    file.set_len(len)?;
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let len = i64::try_from(len).map_err(io::Error::other)?;
        // SAFETY: an open descriptor and two numbers.
        let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) };
        // A file system that can't reserve says so; the mapping then works as it does everywhere else.
        if code != 0 && code != libc::EOPNOTSUPP && code != libc::EINVAL {
            return Err(io::Error::from_raw_os_error(code));
        }
    }
    Ok(())
}

/// Bytes that files in a folder may still take, as far as the system says.
pub(crate) fn free_bytes(dir: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::CString::new(dir.as_os_str().as_bytes()).ok()?;
        let mut says = std::mem::MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the path ends in a zero byte, and the call fills what it is given or fails.
        let says = unsafe {
            if libc::statvfs(path.as_ptr(), says.as_mut_ptr()) != 0 {
                return None;
            }
            says.assume_init()
        };
        #[allow(clippy::unnecessary_cast, reason = "other systems count in 32 bits")]
        return (says.f_bavail as u64).checked_mul(says.f_frsize as u64);
    }
    #[cfg(not(unix))]
    {
        let _ = dir;
        None
    }
}

/// A file's bytes from `start` on, mapped for writing.
pub(crate) struct Payload {
    map: MmapMut,
    start: usize,
}

impl Payload {
    pub(crate) fn new(map: MmapMut, start: usize) -> Self {
        Self { map, start }
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.map[self.start..]
    }
}

impl AsMut<[u8]> for Payload {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..]
    }
}

/// Maps the first `len` bytes of a file for writing.
pub(crate) fn map_mut(file: &File, len: usize) -> io::Result<MmapMut> {
    // SAFETY: the file lies in this build's own temporary folder, or has no name; nobody else writes to it.
    unsafe { MmapOptions::new().len(len).map_mut(file) }
}

/// Exchanges two folders in one step; false where the system can't.
pub(crate) fn exchange(a: &Path, b: &Path) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    return rename_with(a, b, libc::RENAME_EXCHANGE);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (a, b);
        Ok(false)
    }
}

/// Renames a folder to a name that nothing has, in one step where the system can.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if rename_with(from, to, libc::RENAME_NOREPLACE)? {
        return Ok(());
    }
    std::fs::rename(from, to)
}

/// Renames with a flag; false where the kernel or the file system has no such flag.
#[cfg(target_os = "linux")]
fn rename_with(from: &Path, to: &Path, flag: libc::c_uint) -> io::Result<bool> {
    use std::os::unix::ffi::OsStrExt;
    let c_string = |p: &Path| std::ffi::CString::new(p.as_os_str().as_bytes()).map_err(io::Error::other);
    let (from, to) = (c_string(from)?, c_string(to)?);
    // SAFETY: two strings that end in a zero and outlive the call.
    let code = unsafe { libc::renameat2(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), flag) };
    if code == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) { Ok(false) } else { Err(error) }
}
