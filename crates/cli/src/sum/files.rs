//! Files of keys and numbers: what may be read and made, and what is said of keys.

use std::path::Path;

use blindcore_sum::disk;
use blindcore_sum::keys::{PublicKey, SecretKey};

use crate::outputs::{Force, check_output};
use crate::token;

/// Leave to use a key that is too short to protect anything.
#[derive(clap::Args)]
pub(crate) struct TestKeys {
    /// Take keys of under 2048 bits, which protect nothing
    #[arg(long)]
    pub(crate) insecure_test_key: bool,
}

impl TestKeys {
    fn check(&self, key: &PublicKey, path: &Path) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.insecure_test_key || !key.is_test_only(),
            "{} is a key of {} bits, which protects nothing: at least 2048 are asked for; make another key, or say \
             --insecure-test-key",
            path.display(),
            key.bits()
        );
        Ok(())
    }
}

/// Reads a secret key.
pub(crate) fn secret_key(path: &Path, leave: &TestKeys) -> anyhow::Result<SecretKey> {
    let key = disk::read_secret_key(path)?;
    leave.check(key.public(), path)?;
    token::warn_exposed("secret key", path);
    Ok(key)
}

/// Reads a public key; a secret one has its public one in it.
pub(crate) fn public_key(path: &Path, leave: &TestKeys) -> anyhow::Result<PublicKey> {
    let key = disk::read_public_key(path)?;
    leave.check(&key, path)?;
    Ok(key)
}

/// As [`check_output`], for a file of numbers or, by `-`, standard output.
pub(crate) fn check_numbers_output(out: &Path, leave: &Force, inputs: &[&Path]) -> anyhow::Result<()> {
    if out == Path::new("-") {
        return Ok(());
    }
    check_output(out, leave, inputs)?;
    blindcore_numbers::Format::of(out)?;
    Ok(())
}

/// The file of a source of numbers, without the columns that are asked for.
pub(crate) fn numbers_path(spec: &str) -> &Path {
    Path::new(spec.rsplit_once("?column=").map_or(spec, |(path, _)| path))
}
