//! Which tables a client takes from a server.

use blindcore_wire::signature::{PUBLIC_KEY_BYTES, verify};
use blindcore_wire::{TableDescription, check_table_name};

use crate::Error;
use crate::cache::{before, is_hex, is_number};

/// Which tables a client takes from a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those that it says it has.
    #[default]
    Server,
    /// The one with this digest, and with proofs: one table at one epoch.
    Digest([u8; 32]),
    /// Those that the holder of this Ed25519 key's secret signed, and with proofs. An older one that was signed too is not
    /// taken after a newer one was seen: [`crate::Policy::newest`].
    Key([u8; PUBLIC_KEY_BYTES]),
}

/// The names under which a driver remembers which epochs of a signed table it has seen, whichever server showed them: one
/// for each epoch, so that the newest is the largest of those that are there, whoever writes beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenEpochs {
    /// What all names of this table's epochs begin with.
    family: String,
}

impl SeenEpochs {
    /// The name that stands for an epoch: letters, digits, `_`, `.` and `-`, fit for a file.
    #[must_use]
    pub fn name(&self, epoch: u64) -> String {
        format!("{}{epoch}", self.family)
    }

    /// The epoch that a name stands for; nothing where it is another table's.
    #[must_use]
    pub fn epoch(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.family)?;
        digits.parse().ok().filter(|epoch| self.name(*epoch) == name)
    }

    /// Whether a name may stand for an epoch of any table.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let table = before(name, is_number).and_then(|rest| before(rest, |identity| is_hex(identity, 32)));
        table.is_some_and(|table| check_table_name(table).is_ok())
    }
}

impl Trust {
    /// The names by which epochs of a table are remembered: of what one key signs.
    #[must_use]
    pub fn remembers(self, table: &str) -> Option<SeenEpochs> {
        let Trust::Key(key) = self else { return None };
        let mut identity = blake3::Hasher::new();
        identity.update(&key).update(table.as_bytes());
        let identity = &identity.finalize().to_hex()[..32];
        // A long name is cut; the digest tells tables apart all the same. Names are ASCII.
        Some(SeenEpochs { family: format!("{}-{identity}-", &table[..table.len().min(100)]) })
    }

    /// Refuses another table, and an epoch that is older than the `newest` that was seen of a signed one.
    ///
    /// # Errors
    /// [`Error::Untrusted`], [`Error::Rollback`].
    pub fn check(self, table: &TableDescription, newest: Option<u64>) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Untrusted { table: table.name().to_owned(), why });
        match self {
            Trust::Server => return Ok(()),
            Trust::Digest(pinned) if *table.digest() != pinned => {
                let hex = |digest: &[u8; 32]| digest.iter().map(|b| format!("{b:02x}")).collect::<String>();
                return refuse(format!(
                    "at epoch {} its digest is {} and not {}",
                    table.epoch(),
                    hex(table.digest()),
                    hex(&pinned)
                ));
            }
            Trust::Digest(_) => {}
            Trust::Key(key) => match table.signature() {
                None => return refuse("nobody signed it".into()),
                Some(signature) if !verify(&key, table.digest(), signature) => {
                    return refuse("its signature is not by the trusted key".into());
                }
                Some(_) => {
                    if let Some(newest) = newest.filter(|newest| table.epoch() < *newest) {
                        let (table, epoch) = (table.name().to_owned(), table.epoch());
                        return Err(Error::Rollback { table, epoch, newest });
                    }
                }
            },
        }
        if table.has_proofs() {
            return Ok(());
        }
        refuse("it has no proofs, so a wrong answer would not be noticed".into())
    }
}
