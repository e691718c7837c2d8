//! `blindcore sum`: keys, encryption, sums and products of encrypted numbers, decryption.

mod evaluate;
pub(crate) mod files;
mod inspect;
mod keys;
mod numbers;
mod serve;

use clap::Subcommand;

use crate::Outcome;
use crate::config::Config;

#[derive(Subcommand)]
#[command(after_help = "\
Examples, in order:
  blindcore sum keygen --out mine.key                                    a secret key; keep it
  blindcore sum public --key mine.key --out mine.pub                     what others encrypt and compute with
  blindcore sum encrypt --key mine.pub --in people.csv?column=age --out ages.ct
  blindcore sum dot --key mine.pub --in ages.ct --weights w.csv --out score.ct     by a party that can't read ages.ct
  blindcore sum decrypt --key mine.key --in score.ct

Numbers are read and written as .csv, .tsv, .npy and .parquet. Ciphertexts are a compact binary file, or python-paillier's
JSON, one a line, in a file that ends in .jsonl; keys that end in .json are python-paillier's too.")]
pub(crate) enum Sum {
    /// Make a secret key
    Keygen(keys::Keygen),
    /// Take the public key out of a secret one
    Public(keys::Public),
    /// Encrypt numbers
    Encrypt(numbers::Encrypt),
    /// Add encrypted files, number by number
    Add(evaluate::Add),
    /// Weigh encrypted numbers: dot products, matrices
    Dot(evaluate::Dot),
    /// Convolve an encrypted image with kernels in the clear
    Conv(evaluate::Conv),
    /// Decrypt numbers
    Decrypt(numbers::Decrypt),
    /// Show what a key or a file of ciphertexts is, and nothing secret
    Inspect(inspect::Inspect),
    /// Serve models that score encrypted rows
    Serve(serve::Serve),
    /// Encrypt rows, have a server score them, and decrypt the scores
    Score(serve::Score),
}

pub(crate) fn run(config: &Config, command: Sum) -> anyhow::Result<Outcome> {
    match command {
        Sum::Keygen(args) => keys::keygen(&args),
        Sum::Public(args) => keys::public(&args),
        Sum::Encrypt(args) => numbers::encrypt(config, &args),
        Sum::Add(args) => evaluate::add(config, &args),
        Sum::Dot(args) => evaluate::dot(config, &args),
        Sum::Conv(args) => evaluate::conv(config, &args),
        Sum::Decrypt(args) => numbers::decrypt(config, &args),
        Sum::Inspect(args) => inspect::run(&args),
        Sum::Serve(args) => serve::serve(config, args),
        Sum::Score(args) => serve::score(config, args),
    }
}
