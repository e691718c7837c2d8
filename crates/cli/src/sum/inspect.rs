//! `blindcore sum inspect`.

use std::path::PathBuf;

use anyhow::Context;
use blindcore_sum::disk::{self, Contents};
use blindcore_sum::encoding::Bound;
use blindcore_sum::keys::PublicKey;
use serde_json::{Value, json};

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
        "security": key.security_bits(), "plaintext_limit_bits": Bound::of_key(key).bits(),
    })
}

pub(crate) fn run(args: &Inspect) -> anyhow::Result<Outcome> {
    let cannot = || format!("{} can't be read", args.file.display());
    // Opening a pipe would wait.
    let metadata = std::fs::metadata(&args.file).with_context(cannot)?;
    anyhow::ensure!(
        metadata.is_file(),
        "{} is not an ordinary file; name a key or ciphertexts",
        args.file.display()
    );
    anyhow::ensure!(
        !disk::ends_in(&args.file, "jsonl"),
        "{} is python-paillier's JSON, whose ciphertexts say nothing of themselves; decrypt it with its key",
        args.file.display()
    );
    let document = match disk::inspect(&args.file)? {
        Contents::PublicKey(key) => of_key("public key", &key),
        Contents::SecretKey(key) => of_key("secret key", &key),
        Contents::Ciphertexts(header) => {
            let mut document = describe(&header.form);
            document["kind"] = json!("ciphertexts");
            document["key"] = json!(header.key.to_string());
            document["bits"] = json!(header.key_bits);
            document["headroom_bits"] = json!(header.headroom_bits());
            document
        }
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
