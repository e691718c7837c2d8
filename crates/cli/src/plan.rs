//! `blindcore plan`: what a table would cost to serve and to look up, before it is built.

use std::path::{Path, PathBuf};

use anyhow::Context;
use blindcore_accel::Operation;
use blindcore_bench::machine;
use blindcore_files::{Access, Existing};
use blindcore_lookup::{MAX_GATHER, SchemeChoice, schemes};
use blindcore_model::{Prices, Question, Rates};
use blindcore_units::option;

use crate::config::Config;
use crate::device::DeviceArgs;
use crate::output::{self, Bar};
use crate::outputs::{Force, check_output_of};
use crate::{Outcome, device};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore plan --rows 10000000 --record-bytes 256
  blindcore plan --rows 1000 --record-bytes 3MB --queries 5 --down 500
  blindcore plan --rows 10000000 --record-bytes 1KiB --clients 50000 --epoch 6h --changed 0.5 --json
  blindcore plan --rows 1e7 --record-bytes 256 --measure --save-rates server.json     with this machine's rates
  blindcore plan --rows 1e9 --record-bytes 32 --rates server.json     with rates that --save-rates kept elsewhere

The scheme and the sizes are those that `db build` takes for such a table; the other schemes and sending the whole table
stand beside them. Times are from rates of a machine: one whose rates come with blindcore, or with --measure this one, in less
than a minute, or with --rates one that was measured before. Server and client are taken to be machines like it. Clients
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
    /// The table with keys is not to be read by row number too
    #[arg(long)]
    no_directory: bool,
    /// Mbit/s from a client
    #[arg(long, value_name = "MBIT/S", default_value = "20")]
    up: String,
    /// Mbit/s to a client
    #[arg(long, value_name = "MBIT/S", default_value = "100")]
    down: String,
    /// Lookups of a client in an epoch
    #[arg(long, value_name = "N", default_value = "100", allow_hyphen_values = true)]
    queries: String,
    /// How long an epoch is: the time between two changes of the table
    #[arg(long, value_name = "DURATION", default_value = "1d", allow_hyphen_values = true)]
    epoch: String,
    /// Percent of the rows that change in an epoch
    #[arg(long, value_name = "PERCENT", default_value = "1")]
    changed: String,
    /// Clients
    #[arg(long, value_name = "N", default_value = "1000", allow_hyphen_values = true)]
    clients: String,
    /// Most queries that one pass over the database answers, 1 to 64
    #[arg(long, value_name = "N", default_value = "16", allow_hyphen_values = true)]
    gather: String,
    /// Clients ask for N keys in one request, 8 to 1024, and the table has batches for that
    #[arg(long, value_name = "N", conflicts_with = "by_index")]
    batch: Option<usize>,
    /// Price of a core for an hour
    #[arg(long, value_name = "PRICE", default_value = "0.05")]
    price_core_hour: String,
    /// Price of a GB of memory for a month
    #[arg(long, value_name = "PRICE", default_value = "3")]
    price_memory: String,
    /// Price of a GB of traffic, either way
    #[arg(long, value_name = "PRICE", default_value = "0.05")]
    price_traffic: String,
    /// The schemes that are there for comparison, too
    #[arg(long)]
    compare: bool,
    /// Measure this machine first, in less than a minute; fewer sweeps over all figures are quicker and less steady
    #[arg(long, value_name = "SWEEPS", num_args = 0..=1, require_equals = true, conflicts_with = "rates")]
    #[arg(default_missing_value = "32", value_parser = clap::value_parser!(u32).range(1..=1000))]
    measure: Option<u32>,
    /// Take rates from this file
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// Keep the rates that were measured in this file
    #[arg(long, value_name = "FILE", requires = "measure")]
    save_rates: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
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
    if let Some(path) = &args.save_rates {
        check_output_of("--save-rates", path, &args.force, &[])?;
    }
    anyhow::ensure!(
        args.measure.is_some() || (args.device.device.is_none() && args.device.threads.is_none()),
        "--device and --threads say what is measured; add --measure, or leave them out"
    );
    let rates = match (&args.rates, args.measure) {
        (Some(path), _) => blindcore_bench::rates::read(path).context("--rates")?,
        (None, None) => Rates::shipped(),
        (None, Some(sweeps)) => {
            let device = device::open_for(&args.device, config, &[Operation::Contract])?;
            anyhow::ensure!(
                device.slots().contract.as_ref().is_some_and(|contract| !contract.capabilities().simulated),
                "{} is simulated, so its speed on this machine says nothing; plan with a cpu device",
                device.name()
            );
            blindcore_bench::rates::measure(&device, sweeps, &mut Bar::new())?
        }
    };
    if let Some(path) = &args.save_rates {
        save_rates(&rates, path, args.force.existing())?;
        output::made(path);
    }
    // Only this machine's memory is known.
    let memory = if rates.processor == machine::processor() { machine::memory_bytes() } else { None };
    let compared = if args.compare { schemes::offered() } else { schemes::usual() };
    let plan = blindcore_model::Plan::under(compared, question, rates, memory)?;
    if args.json {
        output::json(&plan.json())?;
    } else {
        let mut text = plan.text();
        if args.measure.is_none() && args.rates.is_none() {
            text += "rates are those that come with blindcore; --measure takes this machine's\n";
        }
        output::print(&text)?;
    }
    Ok(Outcome::Done)
}

impl Plan {
    fn question(&self) -> anyhow::Result<Question> {
        let bytes = |name, text: &str, max| option::bytes(name, text, max).map_err(anyhow::Error::msg);
        let key_bytes = if self.by_index {
            None
        } else {
            let most = blindcore_wire::codec::MAX_KEY_BYTES as u64;
            Some(bytes("--key-bytes", &self.key_bytes, most)? as usize)
        };
        let real = |option, text: &str, (min, max), unit, remedy| {
            option::real(option, text, min, max, unit, remedy).map_err(anyhow::Error::msg)
        };
        let mbit = |option, text: &str| {
            let bits = real(option, text, (0.001, 1e6), " Mbit/s", "say what a client's link carries")?;
            anyhow::Ok(1e6 * bits)
        };
        let price =
            |option, text: &str| real(option, text, (0.0, 1e6), "", "say a price, or 0 to leave it out");
        let whole = |option, text: &str, max, remedy| {
            option::whole(option, text, max, remedy).map_err(anyhow::Error::msg)
        };
        // Only records that are found by a key are cut into blocks.
        let most_record = if self.by_index {
            blindcore_lookup::MAX_RECORD_BYTES
        } else {
            blindcore_store::MAX_LONG_RECORD_BYTES
        };
        let changed =
            real("--changed", &self.changed, (0.0, 100.0), " %", "say which part of the rows changes")?;
        let gather = whole("--gather", &self.gather, MAX_GATHER as u64, "say what `serve --gather` gets")?;
        Ok(Question {
            rows: whole("--rows", &self.rows, 1 << 40, "say how many rows the table has")?,
            record_bytes: bytes("--record-bytes", &self.record_bytes, most_record as u64)?,
            key_bytes,
            directory: key_bytes.is_some() && !self.no_directory,
            proofs: blindcore_wire::ProofChoice::Auto,
            up: mbit("--up", &self.up)?,
            down: mbit("--down", &self.down)?,
            queries: whole("--queries", &self.queries, 1 << 40, "say how often a client looks up")?,
            epoch: option::seconds("--epoch", &self.epoch).map_err(anyhow::Error::msg)?,
            changed: changed / 100.0,
            clients: whole("--clients", &self.clients, 1 << 40, "say how many clients there are")?,
            gather: gather as usize,
            batch: self.batch,
            prices: Prices {
                core_hour: price("--price-core-hour", &self.price_core_hour)?,
                gb_month: price("--price-memory", &self.price_memory)?,
                gb: price("--price-traffic", &self.price_traffic)?,
            },
        })
    }
}

/// Writes them to a file that is made whole.
fn save_rates(rates: &Rates, path: &Path, existing: Existing) -> anyhow::Result<()> {
    let text = format!("{}\n", serde_json::to_string_pretty(rates)?);
    blindcore_files::new_file::write(path, Access::Everyone, existing, text.as_bytes())
        .context("--save-rates")
}
