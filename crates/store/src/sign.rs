//! Who signs a table: a table that stands is signed, and an epoch is by the signer of the one before.

use std::path::Path;

use blindcore_wire::signature::{SigningKey, verify};

use crate::folder::lock;
use crate::manifest::{Manifest, from_hex, to_hex};
use crate::signer::{check_proofs, check_signer};
use crate::update::work::{Work, sweep, write_manifest};
use crate::{StoreError, Stored, UpdateOptions};

/// Signs the database in a folder as it stands: its epoch and its digest stay, and running servers take the signature up.
/// A signature that does not fit is replaced.
///
/// # Errors
/// There is no database, it has no proofs, its files are damaged, another key signed it and `change_signer` does not
/// allow that, or the system refuses.
pub fn sign(dir: &Path, by: &SigningKey, change_signer: bool) -> Result<Manifest, StoreError> {
    let _lock = lock(dir)?;
    let stored = Stored::open_unverified(dir)?;
    let old = stored.manifest();
    check_signer(dir, Some(old), Some(by), change_signer)?;
    check_proofs(dir, old.records.proofs.is_some())?;
    sweep(dir, old);
    let work = Work::create(dir)?;
    let manifest = old.clone().signed(by, stored.description()?.digest());
    write_manifest(dir, work.path(), &manifest, std::iter::empty())?;
    Ok(manifest)
}

/// What is said where an update that was to sign its epoch, or to leave a signature out, makes none.
pub(crate) fn unsigned(stays: &Manifest, options: &UpdateOptions) -> Option<String> {
    let before = stays.signed.as_ref().map(|signed| &signed.key);
    let now = options.sign.as_ref().map(|by| to_hex(&by.public()));
    let other = (options.sign.is_some() || options.change_signer) && now.as_ref() != before;
    let still = before.map_or_else(|| "not signed".to_owned(), |key| format!("signed by {key}"));
    other.then(|| {
        format!("no row differs, so no epoch was made, and the table is still {still}; db sign signs it as it stands")
    })
}

impl Stored {
    /// Whether the signature, if there is one, is of this table and by the key that the manifest names.
    pub(crate) fn check_signature(&self) -> Result<(), StoreError> {
        let Some(signed) = &self.manifest().signed else { return Ok(()) };
        let description = self.description()?;
        let fits = from_hex(&signed.key)
            .zip(description.signature())
            .is_some_and(|(key, signature)| verify(&key, description.digest(), signature));
        if fits { Ok(()) } else { Err(StoreError::Signature { path: self.dir().into() }) }
    }
}
