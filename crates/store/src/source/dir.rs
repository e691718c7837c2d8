//! A folder of files: their names and what they hold.

use super::lines::{failed, open_with};
use super::{Position, Row, Source, SourceError, project};
use crate::Value;
use blindcore_units::Unit;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::vec;

/// What the columns of a folder are called.
pub(super) const NAME: &str = "name";
const CONTENT: &str = "content";
/// Bytes that the names of a folder's files take together, at most: 256 MiB.
const MAX_NAMES: usize = 256 << 20;
/// Bytes of a file, at most: with its name and what a record puts before it, a row.
const MAX_FILE_BYTES: u64 = super::MAX_ROW_BYTES as u64 - (8 << 10);

/// The files of a folder, in the order of their names' bytes.
pub(super) struct Dir {
    root: PathBuf,
    columns: Vec<String>,
    /// Which of the two columns to give.
    positions: Vec<usize>,
    /// Names of symbolic links.
    links: Vec<String>,
    files: vec::IntoIter<String>,
    done: u64,
    total: u64,
}

impl Dir {
    pub(super) fn open(path: &str, wanted: Option<&[String]>) -> Result<Self, SourceError> {
        let origin = format!("dir:{path}");
        let names = [NAME.to_owned(), CONTENT.to_owned()];
        let positions = project(&origin, &names, wanted)?;
        let columns = positions.iter().map(|i| names[*i].clone()).collect();
        let root = PathBuf::from(path);
        let (mut files, mut links) = list(&root, MAX_NAMES)?;
        files.sort_unstable();
        links.sort_unstable();
        let total = files.len() as u64;
        Ok(Self { root, columns, positions, links, files: files.into_iter(), done: 0, total })
    }

    fn content(&self, name: &str) -> Result<Vec<u8>, SourceError> {
        let path = self.root.join(name);
        let shown = path.display();
        let changed = |why: &str| SourceError::Unfit {
            origin: shown.to_string(),
            why: why.to_owned(),
            remedy: "build again when nothing writes to the folder, or from a copy".to_owned(),
        };
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => changed("it went away after the folder was listed"),
            // A symbolic link where a file was.
            _ if error.raw_os_error() == Some(libc::ELOOP) => changed("it is no longer a file"),
            _ => failed(&shown.to_string(), error),
        };
        let (before, mut file) =
            open_file(&path).and_then(|file| Ok((file.metadata()?, file))).map_err(refused)?;
        if !before.is_file() {
            return Err(changed("it is no longer a file"));
        }
        let len = before.len();
        if len > MAX_FILE_BYTES {
            return Err(SourceError::Unfit {
                origin: shown.to_string(),
                why: format!("its {len} B are over the limit of {MAX_FILE_BYTES} B for a file"),
                remedy: "split it, or leave it out".to_owned(),
            });
        }
        let mut content = Vec::with_capacity(len as usize);
        file.by_ref().take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(refused)?;
        let after = file.metadata().map_err(refused)?;
        if content.len() as u64 != len
            || after.len() != len
            || after.modified().ok() != before.modified().ok()
        {
            return Err(changed("it changed while it was read"));
        }
        Ok(content)
    }
}

impl Source for Dir {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<Row>, SourceError> {
        let Some(name) = self.files.next() else { return Ok(None) };
        self.done += 1;
        let value = |i: &usize| match i {
            0 => Ok(Value::Text(name.clone())),
            _ => self.content(&name).map(Value::Blob),
        };
        let values = self.positions.iter().map(value).collect::<Result<_, _>>();
        if values.is_err() {
            self.files = Vec::new().into_iter();
        }
        Ok(Some(Row { line: self.done, values: values? }))
    }

    fn passed_over(&self) -> &[String] {
        &self.links
    }

    fn position(&self) -> Position {
        Position { done: self.done, total: Some(self.total), unit: Unit::Items }
    }
}

/// Opens a file, and does not follow a symbolic link.
fn open_file(path: &Path) -> io::Result<File> {
    open_with(path, libc::O_NOFOLLOW)
}

/// The symbolic links of a folder, as a sentence; nothing where there is none.
pub(crate) fn passed_over(origin: &str, links: &[String]) -> Option<String> {
    const SHOWN: usize = 5;
    let names: Vec<String> = links.iter().take(SHOWN).map(|link| blindcore_units::shown(link)).collect();
    let more = links.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let what = if links.len() == 1 { "a symbolic link, which is" } else { "symbolic links, which are" };
    (!links.is_empty()).then(|| {
        format!(
            "{origin} holds {what} not followed: {}{more}; put the files themselves there",
            names.join(", ")
        )
    })
}

/// The paths of all files below a folder, relative to it, and of all symbolic links.
fn list(root: &Path, limit: usize) -> Result<(Vec<String>, Vec<String>), SourceError> {
    let refused = |path: &Path, error| match failed(&path.display().to_string(), error) {
        SourceError::Io { origin, error, .. } if error.kind() == io::ErrorKind::NotADirectory => {
            SourceError::Io { origin, error, remedy: "name a folder after dir:" }
        }
        other => other,
    };
    let unfit = |path: &Path, why: String, remedy: &str| SourceError::Unfit {
        origin: path.display().to_string(),
        why,
        remedy: remedy.to_owned(),
    };
    let (mut files, mut links, mut folders, mut bytes) = (Vec::new(), Vec::new(), vec![String::new()], 0);
    while let Some(folder) = folders.pop() {
        let path = if folder.is_empty() { root.to_owned() } else { root.join(&folder) };
        for entry in fs::read_dir(&path).map_err(|error| refused(&path, error))? {
            let entry = entry.map_err(|error| refused(&path, error))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| refused(&path, error))?;
            let name = entry.file_name();
            let named =
                if kind.is_symlink() { Some(name.to_string_lossy()) } else { name.to_str().map(Into::into) };
            let Some(name) = named else {
                let why = format!("it holds {name:?}, whose name is not UTF-8");
                return Err(unfit(&root.join(&folder), why, "rename it"));
            };
            let name = if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") };
            bytes += name.len() + size_of::<String>();
            if bytes > limit {
                let why = format!("the names of its files take more than the limit of {limit} B");
                return Err(unfit(root, why, "build several tables from parts of it"));
            }
            match kind {
                kind if kind.is_symlink() => links.push(name),
                kind if kind.is_dir() => folders.push(name),
                kind if kind.is_file() => files.push(name),
                kind => {
                    let why = format!("it is {}, not a file", what(kind, &entry.metadata()));
                    return Err(unfit(&path, why, "move it out of the folder"));
                }
            }
        }
    }
    Ok((files, links))
}

/// What something that is not a file is.
fn what(kind: fs::FileType, metadata: &io::Result<Metadata>) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ if kind.is_char_device() || kind.is_block_device() => "a device",
        _ if metadata.is_err() => "gone",
        _ => "of an unknown kind",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceSpec;
    use std::ffi::{CString, OsStr};
    use std::os::unix::ffi::OsStrExt;
    use tempfile::TempDir;

    fn open(dir: &TempDir, wanted: Option<&[&str]>) -> Result<Box<dyn Source>, SourceError> {
        let wanted: Option<Vec<String>> = wanted.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
        SourceSpec::parse(&format!("dir:{}", dir.path().display())).unwrap().open(wanted.as_deref())
    }

    fn rows(source: &mut dyn Source) -> Result<Vec<Vec<Value>>, SourceError> {
        let mut rows = Vec::new();
        while let Some(row) = source.next_row()? {
            rows.push(row.values);
            assert_eq!(row.line, rows.len() as u64);
        }
        Ok(rows)
    }

    fn row(name: &str, content: &[u8]) -> Vec<Value> {
        vec![Value::Text(name.into()), Value::Blob(content.to_vec())]
    }

    #[test]
    fn files_come_whole_by_their_relative_paths_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("b/c")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        let largest = vec![7; MAX_FILE_BYTES as usize];
        for (name, content) in [
            ("b.txt", &b"x\r\n\0"[..]),
            ("b/c/é", &largest),
            ("a b", b""),
            (".hidden", b"h"),
            ("b/z", b"\xff"),
        ] {
            fs::write(at(name), content).unwrap();
        }
        std::os::unix::fs::symlink(at("b"), at("loop")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("broken")).unwrap();
        let mut source = open(&dir, None).unwrap();
        assert_eq!(source.columns(), ["name", "content"]);
        assert_eq!(source.passed_over(), ["broken", "link", "loop"]);
        let said = passed_over("dir:d", source.passed_over()).unwrap();
        assert!(
            said.starts_with("dir:d holds symbolic links, which are not followed")
                && said.contains(": broken, link, loop;"),
            "{said}"
        );
        assert_eq!(source.position(), Position { done: 0, total: Some(5), unit: Unit::Items });
        let expected = [
            row(".hidden", b"h"),
            row("a b", b""),
            row("b.txt", b"x\r\n\0"),
            row("b/c/é", &largest),
            row("b/z", b"\xff"),
        ];
        assert_eq!(rows(source.as_mut()).unwrap(), expected);
        assert_eq!(source.position().done, 5);
        let names = rows(open(&dir, Some(&["name"])).unwrap().as_mut()).unwrap();
        assert_eq!(names[1], [Value::Text("a b".into())]);
        let error = open(&dir, Some(&["size"])).err().unwrap().to_string();
        assert!(error.ends_with("has no column \"size\"; its columns are name, content"), "{error}");
    }

    #[test]
    fn what_is_no_file_is_named() {
        let refuse = |make: &dyn Fn(&Path), words: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            make(dir.path());
            let error = open(&dir, None).and_then(|mut source| rows(source.as_mut())).expect_err(words[0]);
            assert!(words.iter().all(|w| error.to_string().contains(w)), "{words:?}: {error}");
        };
        let fifo = |dir: &Path| {
            fs::create_dir(dir.join("sub")).unwrap();
            let path = CString::new(dir.join("sub/p").as_os_str().as_bytes()).unwrap();
            #[allow(unsafe_code, reason = "the standard library makes no pipes")]
            // SAFETY: the path ends in a zero byte.
            let made = unsafe { libc::mkfifo(path.as_ptr(), 0o600) };
            assert_eq!(made, 0);
        };
        refuse(&fifo, &["sub/p: it is a pipe, not a file; move it"]);
        let socket = |dir: &Path| drop(std::os::unix::net::UnixListener::bind(dir.join("s")).unwrap());
        refuse(&socket, &["s: it is a socket, not a file"]);
        let foreign = |dir: &Path| fs::write(dir.join(OsStr::from_bytes(b"x\xff")), "").unwrap();
        refuse(&foreign, &["x\\xFF", "whose name is not UTF-8; rename it"]);
        let large = |dir: &Path| {
            File::create(dir.join("large")).unwrap().set_len(65 << 20).unwrap();
        };
        refuse(&large, &["large: its 68157440 B are over the limit of 67100672 B for a file", "split it"]);
        let error = SourceSpec::parse("dir:no/such").unwrap().open(None).err().unwrap().to_string();
        assert!(error.contains("no/such can't be read") && error.contains("check the path"), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let spec = format!("dir:{}", file.path().display());
        let error = SourceSpec::parse(&spec).unwrap().open(None).err().unwrap().to_string();
        assert!(error.contains("name a folder after dir:"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("abc"), "").unwrap();
        let error = list(dir.path(), 20).unwrap_err().to_string();
        assert!(error.contains("the limit of 20 B; build several"), "{error}");
    }

    #[test]
    fn what_changes_or_goes_away_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let fail = |change: &dyn Fn(), words: &str| {
            let _ = fs::remove_file(&file);
            fs::write(&file, "one").unwrap();
            let mut source = open(&dir, None).unwrap();
            change();
            let error = source.next_row().unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("build again when nothing writes"), "{error}");
            assert!(source.next_row().unwrap().is_none());
        };
        fail(&|| fs::remove_file(&file).unwrap(), "/a: it went away after the folder was listed");
        let link = || {
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        };
        fail(&link, "/a: it is no longer a file");
        let folder = || {
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
        };
        fail(&folder, "/a: it is no longer a file");
    }
}
