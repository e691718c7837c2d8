//! Where the command's files go: what it may read, make and replace, and what it says of keys.

use std::path::Path;

use anyhow::Context;
use blindcore_files::new_file::check_no_secret;
use blindcore_sum::disk;
use blindcore_sum::keys::{PublicKey, SecretKey};

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

/// That a file can be made here: before the work that fills it.
pub(crate) fn check_place(out: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        out != Path::new("-"),
        "--out - names no file, and this is not written to standard output; name a file"
    );
    let folder = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    anyhow::ensure!(folder.is_dir(), "--out {}: there is no folder {}", out.display(), folder.display());
    if let Ok(there) = std::fs::metadata(out) {
        anyhow::ensure!(there.is_file(), "{} is there already and is not an ordinary file", out.display());
    }
    Ok(())
}

/// Leave to replace a file.
#[derive(clap::Args)]
pub(crate) struct Force {
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

/// That what is written has a place, and replaces nothing that is read, no secret key and, unless told, nothing at all.
pub(crate) fn check_output(out: &Path, leave: &Force, inputs: &[&Path]) -> anyhow::Result<()> {
    check_place(out)?;
    let Ok(there) = out.canonicalize() else { return Ok(()) };
    anyhow::ensure!(
        !inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == there)),
        "--out {} is read by the same command; name another file",
        out.display()
    );
    check_no_secret(out).context("--out")?;
    anyhow::ensure!(leave.force, "{} is there already; name another file, or say --force", out.display());
    Ok(())
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
