//! Folders and files of one user alone, such as a cache: nobody else may put a file or a link there.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a folder for this user alone where it is missing, and makes sure that nobody else can write to one that is there.
///
/// # Errors
/// Others can write to it, it is another user's, or the system refuses.
pub fn folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    check_folder(path)
}

/// Makes sure that nobody else can write to a folder.
///
/// # Errors
/// Others can, it is another user's, or the system refuses.
pub fn check_folder(path: &Path) -> io::Result<()> {
    let there = std::fs::metadata(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        if there.mode() & 0o022 != 0 {
            return refuse("others can write to it; take that from them (chmod go-w)");
        }
        if there.uid() != rustix::process::geteuid().as_raw() {
            return refuse("it belongs to another user");
        }
    }
    let _ = there;
    Ok(())
}

/// Whether a path is a link that another user made in a folder where others may write: it leads where they want, so nothing is
/// written through it. The owner of the folder may lead others.
#[must_use]
pub fn is_strange_link(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (Ok(link), Ok(folder)) = (path.symlink_metadata(), folder.metadata()) else { return false };
        let owners = [rustix::process::geteuid().as_raw(), folder.uid()];
        link.is_symlink() && folder.mode() & 0o022 != 0 && !owners.contains(&link.uid())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Opens a file of such a folder as `options` say, if it is an ordinary one: no link is followed, and no pipe waited for.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`]: it is a link, a folder, a pipe or a device. Or the system refuses.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let refuse = || io::Error::new(io::ErrorKind::InvalidData, "it is not an ordinary file");
    if path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
        return Err(refuse());
    }
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        // What was put there since is not followed or waited for either.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits() as i32);
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refuse()) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn folders_that_others_can_write_to_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("a/b");
        folder(&new).unwrap();
        assert_eq!(std::fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o700);
        for mode in [0o777, 0o720, 0o1777] {
            std::fs::set_permissions(&new, Permissions::from_mode(mode)).unwrap();
            assert!(folder(&new).unwrap_err().to_string().contains("others can write"));
        }
        std::fs::set_permissions(&new, Permissions::from_mode(0o755)).unwrap();
        folder(&new).unwrap();
    }

    #[test]
    fn links_and_pipes_are_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        std::fs::write(&target, "x").unwrap();
        symlink(&target, &link).unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&link, &pipe, &dir.path().to_owned()] {
            let error = open(path, OpenOptions::new().read(true)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        }
        open(&target, OpenOptions::new().read(true)).unwrap();
        let none = open(&dir.path().join("none"), OpenOptions::new().read(true)).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
