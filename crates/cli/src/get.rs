use crate::{Outcome, args, config::Config};
pub(crate) fn get(_c: &Config, _a: args::Get) -> anyhow::Result<Outcome> {
    anyhow::bail!("no")
}
pub(crate) fn tables(_c: &Config, _a: args::Tables) -> anyhow::Result<Outcome> {
    anyhow::bail!("no")
}
