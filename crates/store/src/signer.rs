//! Who may sign an epoch, and which tables can be signed.

use std::path::Path;

use blindcore_wire::signature::SigningKey;

use crate::StoreError;
use crate::manifest::{Manifest, to_hex};

/// Makes sure that the signer of the epoch `before`, if it had one, signs the next one too: clients that trust its key would
/// be locked out otherwise.
pub(crate) fn check_signer(
    dir: &Path,
    before: Option<&Manifest>,
    by: Option<&SigningKey>,
    change_signer: bool,
) -> Result<(), StoreError> {
    let Some(before) = before.and_then(|m| m.signed.as_ref()).filter(|_| !change_signer) else {
        return Ok(());
    };
    let now = by.map(|by| to_hex(&by.public()));
    if now.as_ref() == Some(&before.key) {
        return Ok(());
    }
    Err(StoreError::Signer { path: dir.into(), before: before.key.clone(), now })
}

/// Makes sure that a table to be signed has proofs: no client trusts it otherwise.
pub(crate) fn check_proofs(dir: &Path, proofs: bool) -> Result<(), StoreError> {
    if proofs { Ok(()) } else { Err(StoreError::Unprovable { path: dir.into() }) }
}
