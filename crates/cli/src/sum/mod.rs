//! `blindcore sum`: keys, encryption, sums and products of encrypted numbers, decryption.

mod serve;

use clap::Subcommand;

use crate::Outcome;
use crate::config::Config;

#[derive(Subcommand)]
pub(crate) enum Sum {
    /// Serve models that score encrypted rows
    Serve(serve::Serve),
    /// Encrypt rows, have a server score them, and decrypt the scores
    Score(serve::Score),
}

pub(crate) fn run(config: &Config, command: Sum) -> anyhow::Result<Outcome> {
    match command {
        Sum::Serve(args) => serve::serve(config, args),
        Sum::Score(args) => serve::score(config, args),
    }
}
