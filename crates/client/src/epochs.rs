//! Which epochs of signed tables were seen, in the cache's folder `epochs`: an empty file for each table and epoch. Names are
//! made and removed in one step each, so that clients beside one another need no lock and the newest is never lost.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use blindcore_files::{new_file::sync_folder, private};
use blindcore_protocol::SeenEpochs;

use crate::Error;

/// The folder within the cache.
pub(crate) const FOLDER: &str = "epochs";

/// The epochs of one signed table that were seen.
pub(crate) struct Epochs {
    folder: PathBuf,
    seen: SeenEpochs,
}

impl Epochs {
    /// Of the cache in this folder, which is made where it is missing.
    pub(crate) fn open(cache: &Path, seen: SeenEpochs) -> Result<Self, Error> {
        let folder = cache.join(FOLDER);
        for path in [cache, &folder] {
            private::folder(path).map_err(|source| Error::Cache { path: path.into(), source })?;
        }
        Ok(Self { folder, seen })
    }

    /// The newest that was seen.
    pub(crate) fn newest(&self) -> Result<Option<u64>, Error> {
        self.all().map(|all| all.into_iter().max()).map_err(|e| self.error(e))
    }

    /// Remembers an epoch that was taken, in place of older ones; with `back` in place of newer ones too.
    pub(crate) fn remember(&self, epoch: u64, back: bool) -> Result<(), Error> {
        let remember = || {
            let all = self.all()?;
            if all == [epoch] {
                return Ok(());
            }
            let path = self.folder.join(self.seen.name(epoch));
            private::open(&path, OpenOptions::new().create(true).truncate(false).write(true))?;
            sync_folder(&self.folder)?;
            for other in all.into_iter().filter(|other| *other < epoch || back && *other > epoch) {
                match std::fs::remove_file(self.folder.join(self.seen.name(other))) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            Ok(())
        };
        remember().map_err(|e| self.error(e))
    }

    fn all(&self) -> io::Result<Vec<u64>> {
        let mut all = Vec::new();
        for file in std::fs::read_dir(&self.folder)? {
            all.extend(self.seen.epoch(&file?.file_name().to_string_lossy()));
        }
        Ok(all)
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Cache { path: self.folder.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindcore_protocol::Trust;

    #[test]
    fn the_newest_epoch_of_each_signer_and_table_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let of = |key: u8, table: &str| {
            Epochs::open(dir.path(), Trust::Key([key; 32]).remembers(table).unwrap()).unwrap()
        };
        let one = of(1, "t");
        assert_eq!(one.newest().unwrap(), None);
        for epoch in [3, 17, 17] {
            one.remember(epoch, false).unwrap();
            assert_eq!(of(1, "t").newest().unwrap(), Some(epoch));
        }
        assert_eq!((of(2, "t").newest().unwrap(), of(1, "t-1").newest().unwrap()), (None, None));
        // Another client saw a newer one meanwhile.
        std::fs::write(dir.path().join(FOLDER).join(one.seen.name(18)), "").unwrap();
        assert_eq!(one.newest().unwrap(), Some(18));
        one.remember(17, false).unwrap();
        assert_eq!(one.newest().unwrap(), Some(18));
        one.remember(5, true).unwrap();
        assert_eq!(one.newest().unwrap(), Some(5), "going back was allowed");
        assert_eq!(std::fs::read_dir(dir.path().join(FOLDER)).unwrap().count(), 1);
    }
}
