//! `blindcore plan`: what a table would cost to serve and to look up, before it is built.

use std::path::{Path, PathBuf};

use anyhow::Context;
use blindcore_accel::Operation;
use blindcore_bench::machine;
use blindcore_files::Access;
use blindcore_lookup::{MAX_GATHER, SchemeChoice};
use blindcore_model::{Prices, Question, Rates};
use blindcore_units::{duration, size};

use crate::config::Config;
use crate::device::DeviceArgs;
use crate::output::{self, Bar};
use crate::{Outcome, device};

/// No file of rates is longer.
const MAX_RATES_BYTES: u64 = 1 << 20;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore plan --rows 10000000 --record-bytes 256
  blindcore plan --rows 1000 --record-bytes 3MB --queries 5 --down 500
  blindcore plan --rows 10000000 --record-bytes 1KiB --clients 50000 --epoch 6h --changed 0.5 --json
  blindcore plan --rows 1e9 --record-bytes 32 --rates server.json     with rates that --save-rates kept elsewhere

The scheme and the sizes are those that `db build` takes for such a table; the other scheme stands beside them. Times
are from rates of this machine, measured in less than a minute: server and client are taken to be machines like it. Clients
are taken to look up evenly over an epoch; each fetches the hint once in it. Numbers are decimal or 0x-hexadecimal, sizes in
bytes or with kB, KiB, MB, MiB, GB or GiB, durations with s, m, h or d.")]
pub(crate) struct Plan {
    /// Rows of the table
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    rows: String,
    /// Bytes of the longest record: its values, and 1 to 4 bytes more for each
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    record_bytes: String,
    /// Rows are found by their number and not by a key
    #[arg(long, conflicts_with_all = ["key_bytes", "no_directory"])]
    by_index: bool,
    /// Bytes of the longest key
    #[arg(long, value_name = "BYTES", default_value = "16", allow_hyphen_values = true)]
    key_bytes: String,
    /// The table with keys is not to be read by number too
    #[arg(long)]
    no_directory: bool,
    /// Mbit/s from a client
    #[arg(long, value_name = "MBIT/S", default_value = "20", allow_hyphen_values = true)]
    up: String,
    /// Mbit/s to a client
    #[arg(long, value_name = "MBIT/S", default_value = "100", allow_hyphen_values = true)]
    down: String,
    /// Lookups of a client in an epoch
    #[arg(long, value_name = "N", default_value = "100", allow_hyphen_values = true)]
    queries: String,
    /// How long an epoch is: the time between two changes of the table
    #[arg(long, value_name = "DURATION", default_value = "1d", allow_hyphen_values = true)]
    epoch: String,
    /// Percent of the rows that change in an epoch
    #[arg(long, value_name = "PERCENT", default_value = "1", allow_hyphen_values = true)]
    changed: String,
    /// Clients
    #[arg(long, value_name = "N", default_value = "1000", allow_hyphen_values = true)]
    clients: String,
    /// Most queries that one pass over the database answers, 1 to 64
    #[arg(long, value_name = "N", default_value = "16", allow_hyphen_values = true)]
    gather: String,
    /// Price of a core for an hour
    #[arg(long, value_name = "PRICE", default_value = "0.05", allow_hyphen_values = true)]
    price_core_hour: String,
    /// Price of a GB of memory for a month
    #[arg(long, value_name = "PRICE", default_value = "3", allow_hyphen_values = true)]
    price_memory: String,
    /// Price of a GB of traffic, either way
    #[arg(long, value_name = "PRICE", default_value = "0.05", allow_hyphen_values = true)]
    price_traffic: String,
    /// Take rates from this file instead of measuring
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// Keep the rates that were measured in this file
    #[arg(long, value_name = "FILE", conflicts_with = "rates")]
    save_rates: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(config: &Config, args: &Plan) -> anyhow::Result<Outcome> {
    let question = args.question()?;
    // What no matrix holds is refused before anything is measured.
    blindcore_lookup::plan(
        question.rows,
        question.record_bytes.min(blindcore_lookup::MAX_RECORD_BYTES as u64) as usize,
        question.key_bytes.is_some(),
        SchemeChoice::Auto,
    )?;
    let rates = match &args.rates {
        Some(path) => {
            anyhow::ensure!(
                args.device.device.is_none() && args.device.threads.is_none(),
                "--rates says which device was measured, so --device and --threads have no say; leave one out"
            );
            read_rates(path)?
        }
        None => {
            let device = device::open_for(&args.device, config, &[Operation::Contract])?;
            anyhow::ensure!(
                device.slots().contract.as_ref().is_some_and(|contract| !contract.capabilities().simulated),
                "{} is simulated, so its speed on this machine says nothing; plan with a cpu device",
                device.name()
            );
            blindcore_bench::rates::measure(&device, &mut Bar::new())?
        }
    };
    if let Some(path) = &args.save_rates {
        save_rates(&rates, path)?;
    }
    // Only this machine's memory is known.
    let memory = if rates.processor == machine::processor() { machine::memory_bytes() } else { None };
    let plan = blindcore_model::Plan::new(question, rates, memory)?;
    if args.json {
        output::json(&plan.json())?;
    } else {
        output::print(&plan.text())?;
    }
    Ok(Outcome::Done)
}

impl Plan {
    fn question(&self) -> anyhow::Result<Question> {
        let key_bytes = if self.by_index {
            None
        } else {
            let most = blindcore_wire::codec::MAX_KEY_BYTES as u64;
            Some(record_size("--key-bytes", &self.key_bytes, most)? as usize)
        };
        let mbit = |flag, text: &str| {
            Ok::<f64, anyhow::Error>(
                1e6 * real(flag, text, 0.001, 1e6, "Mbit/s", "say what a client's link carries")?,
            )
        };
        let price = |flag, text: &str| real(flag, text, 0.0, 1e6, "", "say a price, or 0 to leave it out");
        Ok(Question {
            rows: whole("--rows", &self.rows, 1 << 40, "say how many rows the table has")?,
            record_bytes: record_size("--record-bytes", &self.record_bytes, 1 << 30)?,
            key_bytes,
            directory: key_bytes.is_some() && !self.no_directory,
            proofs: blindcore_wire::ProofChoice::Auto,
            up: mbit("--up", &self.up)?,
            down: mbit("--down", &self.down)?,
            queries: whole(
                "--queries",
                &self.queries,
                1 << 40,
                "say how often a client looks up in an epoch",
            )?,
            epoch: epoch_length("--epoch", &self.epoch)?,
            changed: real(
                "--changed",
                &self.changed,
                0.0,
                100.0,
                " %",
                "say which part of the rows changes",
            )? / 100.0,
            clients: whole("--clients", &self.clients, 1 << 40, "say how many clients there are")?,
            gather: whole("--gather", &self.gather, MAX_GATHER as u64, "say what `serve --gather` gets")?
                as usize,
            prices: Prices {
                core_hour: price("--price-core-hour", &self.price_core_hour)?,
                gb_month: price("--price-memory", &self.price_memory)?,
                gb: price("--price-traffic", &self.price_traffic)?,
            },
        })
    }
}

/// A whole number from 1 on.
fn whole(flag: &str, text: &str, max: u64, remedy: &str) -> anyhow::Result<u64> {
    match blindcore_units::whole(text) {
        Some(n) if (1..=max).contains(&n) => Ok(n),
        Some(_) => anyhow::bail!("{flag} is {text}, outside 1 to {max}; {remedy}"),
        None => anyhow::bail!("{flag} is {text:?}, not a whole number from 1 to {max}; {remedy}"),
    }
}

/// A number in a range.
fn real(flag: &str, text: &str, min: f64, max: f64, unit: &str, remedy: &str) -> anyhow::Result<f64> {
    match text.parse::<f64>() {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        Ok(n) => anyhow::bail!("{flag} is {n}{unit}, outside {min} to {max}; {remedy}"),
        Err(_) => anyhow::bail!("{flag} is {text:?}, not a number from {min} to {max}; {remedy}"),
    }
}

/// Bytes, with a unit or without.
fn record_size(flag: &str, text: &str, max: u64) -> anyhow::Result<u64> {
    let remedy = "say bytes, or a number with kB, KiB, MB, MiB, GB or GiB";
    let bytes = size(text).filter(|bytes| (1..=max).contains(bytes));
    bytes.with_context(|| format!("{flag} is {text}, not 1 to {max} whole bytes; {remedy}"))
}

/// Seconds, from 1 to ten years.
fn epoch_length(flag: &str, text: &str) -> anyhow::Result<f64> {
    let seconds = duration(text).filter(|seconds| (1.0..=3650.0 * 86_400.0).contains(seconds));
    seconds.with_context(|| {
        format!(
            "{flag} is {text:?}, not a duration from 1s to 3650d; say a number with s, m, h or d, such as 12h"
        )
    })
}

/// Reads a file of rates, which may be anybody's.
fn read_rates(path: &Path) -> anyhow::Result<Rates> {
    let named = path.display();
    let meta = std::fs::metadata(path).with_context(|| format!("--rates {named} can't be read"))?;
    anyhow::ensure!(
        meta.is_file() && meta.len() <= MAX_RATES_BYTES,
        "--rates {named} is not a file of rates; make one with --save-rates"
    );
    let text = std::fs::read_to_string(path).with_context(|| format!("--rates {named} can't be read"))?;
    Rates::parse(&text)
        .map_err(|why| anyhow::anyhow!("--rates {named} holds no rates: {why}; make it with --save-rates"))
}

/// Writes them to a file that is made whole.
fn save_rates(rates: &Rates, path: &Path) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(rates)?;
    text.push('\n');
    blindcore_files::new_file::write(path, Access::Everyone, text.as_bytes()).context("--save-rates")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_their_limits() {
        let n = |text| whole("--rows", text, 1 << 40, "say it").map_err(|e| e.to_string());
        assert_eq!((n("7"), n("0x10"), n("1e9")), (Ok(7), Ok(16), Ok(1_000_000_000)));
        for bad in ["0", "-1", "", "1.5", "1e40", "0x", "ten", "99999999999999999999999999999999999999999999"]
        {
            let why = n(bad).unwrap_err();
            assert!(
                why.contains("--rows") && why.contains("1099511627776") && why.contains("say it"),
                "{why}"
            );
        }
        let b = |text| record_size("--record-bytes", text, 1 << 30).map_err(|e| e.to_string());
        assert_eq!((b("256"), b("0x100"), b("1KiB"), b("3MB")), (Ok(256), Ok(256), Ok(1024), Ok(3_000_000)));
        assert_eq!((b("1.5kB"), b("64B"), b("1GiB")), (Ok(1500), Ok(64), Ok(1 << 30)));
        for bad in ["0", "0B", "-3MB", "2GiB", "1.0001kB", "3XB", "MB", "1e99", "nanMB", "infMB"] {
            let why = b(bad).unwrap_err();
            assert!(why.contains("--record-bytes") && why.contains("1073741824"), "{why}");
        }
        let d = |text| epoch_length("--epoch", text).map_err(|e| e.to_string());
        assert_eq!((d("90s"), d("1.5h"), d("7d"), d("2m")), (Ok(90.0), Ok(5400.0), Ok(604_800.0), Ok(120.0)));
        for bad in ["0d", "-1d", "5", "d", "5w", "4000d", "nans", ""] {
            assert!(d(bad).unwrap_err().contains("--epoch"), "{bad}");
        }
        let r = |text| real("--up", text, 0.001, 1e6, " Mbit/s", "say it").map_err(|e| e.to_string());
        assert_eq!(r("2.5"), Ok(2.5));
        for bad in ["0", "-1", "NaN", "inf", "1e7", "fast", ""] {
            assert!(r(bad).unwrap_err().contains("--up is"), "{bad}");
        }
    }
}
