//! `blindcore sum inspect`.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;

use anyhow::Context;
use blindcore_sum::encoding::Bound;
use blindcore_sum::file::Reader;
use blindcore_sum::keys::PublicKey;
use serde_json::{Value, json};

use super::files::{TestKeys, is_json, public_key};
use super::keys::security;
use super::numbers::describe;
use crate::{Outcome, output};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore sum inspect mine.key            a key's name, length and mode; nothing secret
  blindcore sum inspect score.ct --json     shape, exponent, bound and headroom of a file")]
pub(crate) struct Inspect {
    /// A key or a file of ciphertexts
    file: PathBuf,
    /// Print it as one JSON document
    #[arg(long)]
    json: bool,
}

fn of_key(kind: &str, key: &PublicKey) -> Value {
    json!({
        "kind": kind, "key": key.id().to_string(), "bits": key.bits(), "mode": key.mode(),
        "security": security(key.bits()), "plaintext_limit_bits": Bound::of_key(key).bits(),
    })
}

pub(crate) fn run(args: &Inspect) -> anyhow::Result<Outcome> {
    let named = || args.file.display().to_string();
    let cannot = || format!("{} can't be read", args.file.display());
    // A pipe would keep whoever opens it waiting.
    let metadata = std::fs::metadata(&args.file).with_context(cannot)?;
    anyhow::ensure!(
        metadata.is_file(),
        "{} is no ordinary file; name a key or ciphertexts",
        args.file.display()
    );
    anyhow::ensure!(
        !is_json(&args.file, "jsonl"),
        "{} is python-paillier's JSON, whose ciphertexts say nothing of themselves; decrypt it with its key",
        args.file.display()
    );
    let input = File::open(&args.file).with_context(cannot)?;
    let mut magic = [0u8; 8];
    let read = BufReader::new(&input).read(&mut magic).with_context(named)?;
    let any = TestKeys { insecure_test_key: true };
    let document =
        if is_json(&args.file, "json") || magic[..read].starts_with(b"bcsump") || &magic == b"bcsumsec" {
            let key = public_key(&args.file, &any)?;
            let secret = &magic == b"bcsumsec" || (is_json(&args.file, "json") && holds_secret(&args.file)?);
            of_key(if secret { "secret key" } else { "public key" }, &key)
        } else {
            let input = File::open(&args.file).with_context(named)?;
            let reader = Reader::new(BufReader::new(input), Some(metadata.len())).with_context(named)?;
            let header = reader.header();
            let mut document = describe(&header.form);
            document["kind"] = json!("ciphertexts");
            document["key"] = json!(header.key.to_string());
            document["bits"] = json!(header.key_bits);
            let limit =
                header.form.packed.map_or(header.key_bits.saturating_sub(2), |p| p.packing.slot_bits() - 1);
            document["headroom_bits"] = json!(limit.saturating_sub(header.form.bound.bits()));
            document
        };
    if args.json {
        output::json(&document)?;
    } else {
        let mut text = String::new();
        for (name, value) in document.as_object().into_iter().flatten() {
            if !value.is_null() {
                text += &format!("{:22} {}\n", name.replace('_', " "), output::printable(value));
            }
        }
        output::print(&text)?;
    }
    Ok(Outcome::Done)
}

/// Whether a JSON key is a secret one: only those of python-paillier that are have a public one inside.
fn holds_secret(path: &std::path::Path) -> anyhow::Result<bool> {
    let text = zeroize::Zeroizing::new(std::fs::read(path)?);
    Ok(blindcore_sum::phe::secret_key(&text).is_ok())
}
