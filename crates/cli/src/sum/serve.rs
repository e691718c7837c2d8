//! `blindcore sum serve` and `blindcore sum score`.

use crate::Outcome;
use crate::config::Config;

#[derive(clap::Args)]
pub(crate) struct Serve {}

#[derive(clap::Args)]
pub(crate) struct Score {}

pub(crate) fn serve(_: &Config, _: Serve) -> anyhow::Result<Outcome> {
    anyhow::bail!("being built")
}

pub(crate) fn score(_: &Config, _: Score) -> anyhow::Result<Outcome> {
    anyhow::bail!("being built")
}
