//! `blindcore sum keygen` and `public`.

use std::path::PathBuf;
use std::time::Instant;

use blindcore_files::{Access, Existing, NewFile};
use blindcore_sum::disk;
use blindcore_sum::keys::{KeySize, Mode, SecretKey};
use clap::ValueEnum;
use serde_json::json;

use super::files::{TestKeys, secret_key};
use crate::outputs::{Force, check_output, check_place};
use crate::{Outcome, output};

#[derive(Clone, Copy, ValueEnum)]
enum ModeName {
    /// Short exponents (DJN): quick to encrypt with
    ShortExponent,
    /// As python-paillier: its JSON keys are of this mode
    Textbook,
    /// Ma, Han and Lei 2021: quick on both sides, rests on a further assumption
    SpecialKey,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::ShortExponent => Mode::ShortExponent,
            ModeName::Textbook => Mode::Textbook,
            ModeName::SpecialKey => Mode::SpecialKey,
        }
    }
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore sum keygen --out mine.key
  blindcore sum keygen --bits 2048 --mode textbook --out mine.json       a key for python-paillier

2048 bits are 112 bits of security, 3072 are 128, 4096 about 150. The file is for its owner alone.")]
pub(crate) struct Keygen {
    /// Length of n: 2048, 3072 or 4096
    #[arg(long, value_name = "N", default_value_t = 3072)]
    bits: u32,
    /// How the key encrypts [default: short-exponent, or textbook for a .json file]
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<ModeName>,
    /// Where the secret key goes; one that ends in .json is python-paillier's
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace a file that is there: the key in it is lost
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    test_keys: TestKeys,
    /// Print what was made as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn keygen(args: &Keygen) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let size = KeySize::new(args.bits)
        .or_else(|e| if args.test_keys.insecure_test_key { KeySize::test_only(args.bits) } else { Err(e) })?;
    check_place(&args.out)?;
    anyhow::ensure!(
        args.force || !args.out.exists(),
        "{} is there already; a secret key that is replaced is lost: name another file, or say --force",
        args.out.display()
    );
    let default = if disk::ends_in(&args.out, "json") { Mode::Textbook } else { Mode::ShortExponent };
    let mode = args.mode.map_or(default, Mode::from);
    disk::check_secret_mode(&args.out, mode)?;
    // That it can be written is known before the key takes its time.
    let file = NewFile::create(&args.out, Access::Owner)?;
    let key = SecretKey::generate(size, mode)?;
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    disk::write_secret_key(file, &args.out, &key, existing)?;
    output::made(&args.out);
    let public = key.public();
    let security = public.security_bits();
    if args.json {
        output::json(&json!({
            "key": public.id().to_string(), "bits": public.bits(), "mode": public.mode(), "security": security,
            "out": args.out.display().to_string(), "ms": start.elapsed().as_millis() as u64,
        }))?;
    } else {
        output::note(&format!(
            "key {} of {} bits, {}; secret: {}",
            public.id(),
            public.bits(),
            security.map_or("which protects nothing".into(), |s| format!("about {s} bits of security")),
            args.out.display()
        ));
    }
    Ok(Outcome::Done)
}

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  blindcore sum public --key mine.key --out mine.pub")]
pub(crate) struct Public {
    /// The secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Where the public key goes; one that ends in .json is python-paillier's
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    test_keys: TestKeys,
    /// Print what was made as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn public(args: &Public) -> anyhow::Result<Outcome> {
    check_output(&args.out, &args.force, &[&args.key])?;
    let key = secret_key(&args.key, &args.test_keys)?;
    let public = disk::write_public_key(&args.out, key.public(), args.force.existing())?;
    output::made(&args.out);
    if args.json {
        output::json(&json!({
            "key": public.id().to_string(), "bits": public.bits(), "mode": public.mode(), "out": args.out.display().to_string(),
        }))?;
    } else {
        output::note(&format!("public key {}: {}", public.id(), args.out.display()));
        if public.id() != key.public().id() {
            let own = key.public().id();
            output::note(&format!(
                "it is key {own} by n alone, as python-paillier has it: both have one secret key, and no sums of one with the other"
            ));
        }
    }
    Ok(Outcome::Done)
}
