//! Which tables a client takes from a server.

use blindcore_wire::TableDescription;
use blindcore_wire::signature::{PUBLIC_KEY_BYTES, verify};

use crate::Error;

/// Which tables a client takes from a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those that it says it has.
    #[default]
    Server,
    /// The one with this digest, and with proofs: one table at one epoch.
    Digest([u8; 32]),
    /// Those that the holder of this Ed25519 key's secret signed, and with proofs. An older one that was signed too
    /// is taken, but not after a newer one when a table is opened again.
    Key([u8; PUBLIC_KEY_BYTES]),
}

impl Trust {
    /// Refuses another table. `before` is the same table as it was known until now, if it was.
    ///
    /// # Errors
    /// [`Error::Untrusted`].
    pub fn check(self, table: &TableDescription, before: Option<&TableDescription>) -> Result<(), Error> {
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
            Trust::Key(key) => match (table.signature(), before) {
                (None, _) => return refuse("nobody signed it".into()),
                (Some(signature), _) if !verify(&key, table.digest(), signature) => {
                    return refuse("its signature is not by the trusted key".into());
                }
                (_, Some(before)) if table.epoch() < before.epoch() => {
                    return refuse(format!(
                        "it went back from epoch {} to {}",
                        before.epoch(),
                        table.epoch()
                    ));
                }
                _ => {}
            },
        }
        if table.has_proofs() {
            return Ok(());
        }
        refuse("it has no proofs, so a wrong answer would not be noticed".into())
    }
}
