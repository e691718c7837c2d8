//! Keys and ciphertexts on the disk: read whole and checked, written whole or not at all.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::keys::{PublicKey, SecretKey};
use blindcore_sum::{file, phe};
use zeroize::Zeroizing;

use crate::output;

/// No key is longer.
const MAX_KEY_BYTES: u64 = 1 << 16;

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

pub(crate) fn is_json(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}

fn read_key(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path).with_context(|| format!("key {} can't be read", path.display()))?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_KEY_BYTES as usize + 1));
    file.take(MAX_KEY_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("key {} can't be read", path.display()))?;
    anyhow::ensure!(
        bytes.len() as u64 <= MAX_KEY_BYTES,
        "{} is over the {MAX_KEY_BYTES} bytes that a key has; name a key",
        path.display()
    );
    Ok(bytes)
}

/// A secret key, or nothing if the file is a public one.
fn parse_secret(path: &Path, bytes: &[u8]) -> anyhow::Result<SecretKey> {
    let named = || format!("{}", path.display());
    if is_json(path, "json") {
        phe::secret_key(bytes).with_context(named)
    } else {
        SecretKey::from_bytes(bytes).with_context(named)
    }
}

/// Reads a secret key.
pub(crate) fn secret_key(path: &Path, leave: &TestKeys) -> anyhow::Result<SecretKey> {
    let key = parse_secret(path, &read_key(path)?)?;
    leave.check(key.public(), path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0) {
            let path = path.display();
            output::note(&format!(
                "secret key {path} is open to others on this machine; close it: chmod 600 {path}"
            ));
        }
    }
    Ok(key)
}

/// Reads a public key; a secret one has its public one in it.
pub(crate) fn public_key(path: &Path, leave: &TestKeys) -> anyhow::Result<PublicKey> {
    let bytes = read_key(path)?;
    let named = || format!("{}", path.display());
    let key = if is_json(path, "json") {
        match phe::public_key(&bytes) {
            Ok(key) => key,
            // Say what is wrong with it as what it is more likely to be.
            Err(e) => {
                phe::secret_key(&bytes).map(|key| key.public().clone()).map_err(|_| e).with_context(named)?
            }
        }
    } else if bytes.starts_with(b"bcsumsec") {
        parse_secret(path, &bytes)?.public().clone()
    } else {
        PublicKey::from_bytes(&bytes).with_context(named)?
    };
    leave.check(&key, path)?;
    Ok(key)
}

/// That a file that is there, and would be replaced, is no secret key of either kind: one that can't be read may be one.
fn check_no_secret_key(path: &Path) -> anyhow::Result<()> {
    // A key that phe wrote is one even if it is refused here, and wherever its JSON begins.
    let is_phe = |bytes: &[u8]| {
        let has = |word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
        bytes.trim_ascii_start().starts_with(b"{") && has(b"\"DAJ\"") && has(b"\"decrypt\"")
    };
    // An identity's, in PEM: its first line says so whatever its kind, and a certificate may come before it.
    let is_pem = |bytes: &[u8]| {
        let head = b"PRIVATE KEY-----";
        bytes.windows(head.len()).any(|w| w == head)
    };
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_KEY_BYTES as usize + 1));
    File::open(path).and_then(|file| file.take(MAX_KEY_BYTES + 1).read_to_end(&mut bytes)).with_context(
        || format!("{} can't be read to see whether it is a secret key; name another file", path.display()),
    )?;
    anyhow::ensure!(
        !is_pem(&bytes)
            && (bytes.len() as u64 > MAX_KEY_BYTES || !(bytes.starts_with(b"bcsumsec") || is_phe(&bytes))),
        "{} is a secret key, which would be lost; name another file",
        path.display()
    );
    Ok(())
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
        anyhow::ensure!(there.is_file(), "{} is there already and is no ordinary file", out.display());
    }
    Ok(())
}

/// That what is written has a place, and replaces nothing that is read, and no secret key.
pub(crate) fn check_output(out: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    check_place(out)?;
    let Ok(there) = out.canonicalize() else { return Ok(()) };
    anyhow::ensure!(
        !inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == there)),
        "--out {} is read by the same command; name another file",
        out.display()
    );
    check_no_secret_key(out).context("--out")
}

/// As [`check_output`], for a file of numbers or, by `-`, standard output.
pub(crate) fn check_numbers_output(out: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    if out == Path::new("-") {
        return Ok(());
    }
    check_output(out, inputs)?;
    blindcore_numbers::Format::of(out)?;
    Ok(())
}

/// The file of a source of numbers, without the columns that are asked for.
pub(crate) fn numbers_path(spec: &str) -> &Path {
    Path::new(spec.rsplit_once("?column=").map_or(spec, |(path, _)| path))
}

/// A new file beside its place, which takes the place when it is whole.
pub(crate) struct NewFile {
    file: BufWriter<tempfile::NamedTempFile>,
    place: PathBuf,
}

impl NewFile {
    /// For its owner alone if it is `secret`, else as files are made here.
    pub(crate) fn new(place: &Path, secret: bool) -> anyhow::Result<Self> {
        let cannot = || format!("{} can't be written", place.display());
        let folder = place.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let Ok(there) = std::fs::metadata(place) {
            anyhow::ensure!(there.is_file(), "{} is there already and is no ordinary file", place.display());
            if !secret {
                check_no_secret_key(place)?;
            }
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".blindcore-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = if secret { 0o600 } else { 0o666 };
            builder.permissions(std::fs::Permissions::from_mode(mode));
        }
        let file = builder.tempfile_in(folder).with_context(cannot)?;
        Ok(Self { file: BufWriter::with_capacity(1 << 16, file), place: place.to_owned() })
    }

    /// Puts it in its place, over what is there if `over`.
    pub(crate) fn finish(self, over: bool) -> anyhow::Result<u64> {
        let place = self.place;
        let cannot = || format!("{} can't be written", place.display());
        let file =
            self.file.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?;
        file.as_file().sync_all().with_context(cannot)?;
        let bytes = file.as_file().metadata().with_context(cannot)?.len();
        if over {
            file.persist(&place).map_err(|e| e.error).with_context(cannot)?;
        } else {
            file.persist_noclobber(&place).map_err(|e| e.error).with_context(cannot)?;
        }
        Ok(bytes)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Reads ciphertexts, every one checked. python-paillier's say nothing of magnitudes, so `magnitude` does.
pub(crate) fn ciphertexts(path: &Path, evaluator: &Evaluator, magnitude: f64) -> anyhow::Result<Ciphertexts> {
    let named = || format!("{}", path.display());
    let input = File::open(path).with_context(|| format!("{} can't be read", path.display()))?;
    if is_json(path, "jsonl") {
        let read = phe::Ciphertexts::read(evaluator.key(), BufReader::new(input)).with_context(named)?;
        return read.align(evaluator, magnitude).with_context(named);
    }
    let length = input.metadata().with_context(named)?;
    let length = length.is_file().then_some(length.len());
    let reader = file::Reader::new(BufReader::with_capacity(1 << 16, input), length).with_context(named)?;
    reader.read_all(evaluator.encryptor()).with_context(named)
}

/// Writes ciphertexts; says how many bytes.
pub(crate) fn write_ciphertexts(
    path: &Path,
    ciphertexts: &Ciphertexts,
    evaluator: &Evaluator,
) -> anyhow::Result<u64> {
    let named = || format!("{}", path.display());
    let mut out = NewFile::new(path, false)?;
    if is_json(path, "jsonl") {
        let numbers = ciphertexts.numbers(evaluator.encryptor()).with_context(named)?;
        phe::write_ciphertexts(&mut out, &numbers, ciphertexts.form()).with_context(named)?;
    } else {
        out = file::write(out, ciphertexts, evaluator.encryptor()).with_context(named)?;
    }
    out.finish(true)
}
