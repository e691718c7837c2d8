//! A real lookup on OnionChopper, beside the same on the CPU.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_accel::{Cost, Device};
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::onionchopper::{HAZARD, TAIL};
use blindcore_accel_rtl::onionchopper::{OnionChopper, Options};
use blindcore_lookup::{Client, Selection, Server, keyword};
use blindcore_model::chip::{Price, Tables, machine};
use blindcore_store::{BuildOptions, SourceSpec, Stored};
use blindcore_wire::codec::decode_record;
use serde_json::{Map, Value, json};

use blindcore_units::bytes;

use crate::agreement::MACHINES;
use crate::text::bars;

/// A small real table, for a first try without one.
const ELEMENTS: &str = include_str!("../../../testdata/elements.csv");

/// What is looked up, and on what.
#[derive(Clone, Copy, Debug)]
pub struct LookupJob<'a> {
    /// The database's folder; a table of the chemical elements if there is none.
    pub dir: Option<&'a Path>,
    /// The key; gold's symbol if nothing is named.
    pub key: Option<&'a str>,
    /// The row of a table without keys, counted from 0.
    pub index: Option<u64>,
    /// The chip, by its device's name.
    pub device: &'a str,
    /// The SSD's speed, as [`Options::ssd_rate`].
    pub ssd_rate: (u16, u16),
}

/// A lookup that the chip and the CPU answered alike.
#[derive(Clone, Debug)]
pub struct LookupRun {
    table: String,
    key: Option<String>,
    index: Option<u64>,
    value: Option<Map<String, Value>>,
    device: String,
    cpu: String,
    cost: Cost,
    simulated: Duration,
}

/// One real lookup: the query is made, the simulated chip answers it, the CPU answers it too, the answer is decoded.
///
/// # Errors
/// The chip is not built or refuses the table's shape; the table can't be read or changed since it was built; the key or the
/// row does not fit the table; or chip and CPU answer differently.
pub fn run(job: &LookupJob<'_>) -> anyhow::Result<LookupRun> {
    let options = Options { ssd_rate: job.ssd_rate, ..Options::default() };
    let chip = crate::chip(OnionChopper::with_options(job.device, options))?;
    let cpu = Cpu::open("cpu")?;

    let made; // a database that is made here is removed when this goes
    let dir: &Path = match job.dir {
        Some(dir) => dir,
        None => {
            made = tempfile::tempdir().context(
                "no folder for the table of elements can be made; set TMPDIR to one that can be written, or name a DIR",
            )?;
            let csv = made.path().join("elements.csv");
            std::fs::write(&csv, ELEMENTS).context("the table of elements can't be written")?;
            let options = BuildOptions {
                key: Some("symbol".into()),
                proofs: blindcore_store::ProofChoice::Without,
                directory: false,
                ..BuildOptions::new(
                    SourceSpec::parse(&csv.display().to_string())?,
                    made.path().join("elements.db"),
                )
            };
            blindcore_store::build(&options, &cpu, &mut ())?;
            &made.path().join("elements.db").clone()
        }
    };
    let stored = Stored::open(dir)?;
    let table = stored.description()?;
    let part = &stored.records;
    let geometry = part.params.geometry;
    let key = job.key.or_else(|| (job.index.is_none() && job.dir.is_none()).then_some("Au"));

    let (selection, fingerprint) = match (key, job.index, table.index()) {
        (Some(key), _, Some(index)) => {
            let (selection, fingerprint) = index.select(key.as_bytes());
            (selection, Some(fingerprint))
        }
        (Some(_), _, None) => anyhow::bail!("table {} has no keys; use --index", table.name()),
        (None, Some(index), None) => {
            anyhow::ensure!(
                index < table.rows(),
                "row {index} is not below the table's {} rows",
                table.rows()
            );
            (Selection::index(&geometry, index)?, None)
        }
        (None, Some(_), Some(_)) => anyhow::bail!("table {} is looked up by key; use --key", table.name()),
        (None, None, _) => anyhow::bail!("nothing to look up is named; use --key or --index"),
    };
    anyhow::ensure!(
        table.changes().is_none() && table.blocks() == 1,
        "table {} changed since it was built, or has records of several slots, and a chip looks in one; build it again, or \
         choose shorter columns with --value",
        table.name()
    );
    // Roots of proofs follow the scheme's own hint, and a slot ends in its proof.
    let words = (*part.hint).as_ref()[..part.params.hint_bytes() as usize].to_vec();
    let proof_bytes = table.records().proofs.map_or(0, |p| p.slot_bytes());
    let client = Client::new(part.params, std::sync::Arc::new(words))?;
    let (query, pending) = client.query(client.prepare()?, &selection)?;

    let serve = |device: &Device| -> anyhow::Result<_> {
        Ok(Server::new(part.params, device, part.operands())?.answer(&[&query])?)
    };
    let started = Instant::now();
    let (answers, cost) = serve(&chip.device())?;
    let simulated = started.elapsed();
    let cost = priced(chip.name(), cost)?;
    let (on_cpu, _) = serve(&cpu)?;
    anyhow::ensure!(answers == on_cpu, "{} and {} answer differently; report this", chip.name(), cpu.name());

    let slot = client.decode(pending, &answers[0])?.slot;
    let slot = &slot[..slot.len() - proof_bytes];
    let record = match &fingerprint {
        Some(fingerprint) => keyword::open(slot, fingerprint),
        None => Some(slot),
    };
    let columns = table.value_columns();
    let values = record.map(|bytes| decode_record(bytes, columns.len())).transpose()?;
    let value: Option<Map<String, Value>> =
        values.map(|values| columns.iter().cloned().zip(values.iter().map(|v| v.to_json())).collect());
    Ok(LookupRun {
        table: table.name().to_owned(),
        key: key.map(str::to_owned),
        index: job.index,
        value,
        device: chip.name().to_owned(),
        cpu: cpu.name().to_owned(),
        cost,
        simulated,
    })
}

impl LookupRun {
    /// The record, column by column; none if the key is not there.
    #[must_use]
    pub fn value(&self) -> Option<&Map<String, Value>> {
        self.value.as_ref()
    }

    /// The key that was looked up, if it was one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// How long the simulation took here.
    #[must_use]
    pub fn simulated(&self) -> Duration {
        self.simulated
    }

    /// All of it for programs.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut out = Map::new();
        out.insert("found".into(), json!(self.value.is_some()));
        out.insert("table".into(), json!(self.table));
        match &self.key {
            Some(key) => out.insert("key".into(), json!(key)),
            None => out.insert("index".into(), json!(self.index)),
        };
        out.insert("value".into(), json!(self.value));
        out.insert("device".into(), json!(self.device));
        out.insert("same_bits_as".into(), json!(self.cpu));
        out.insert("hardware".into(), describe(&self.cost));
        out.insert("cost".into(), json!(self.cost));
        out.insert("seconds_at_2_ghz".into(), json!(self.cost.seconds));
        out.insert("simulation_seconds".into(), json!(self.simulated.as_secs_f64()));
        Value::Object(out)
    }

    /// What the chip did, for people; the record is [`LookupRun::value`].
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{} answered, the same bits as {}: {} clocks, {:.1} us at the thesis's 2 GHz\n\n{}{}",
            self.device,
            self.cpu,
            self.cost.cycles,
            self.cost.seconds * 1e6,
            clocks(&self.cost),
            energy(&self.cost),
        )
    }
}

/// What a chip counted, with joules by every table.
fn priced(device: &str, mut cost: Cost) -> anyhow::Result<Cost> {
    anyhow::ensure!(cost.cycles > 0, "{device} counted nothing; report this");
    let chip = MACHINES.iter().find(|(_, of)| *of == device).and_then(|(name, _)| machine(name));
    let chip = chip.with_context(|| format!("{device} has no machine in the model; report this"))?;
    let price = |table: &Tables| table.price(&chip, &cost, cost.points as f64);
    cost.prices = Tables::shipped_all().iter().map(price).collect();
    Ok(cost)
}

/// Where clocks went, drawn.
fn clocks(cost: &Cost) -> String {
    let rows = [
        ("multiplying", "lanes"),
        ("waiting for the SSD", "SSD"),
        ("waiting for the DRAM", "DRAM"),
        ("waiting for an SRAM", "SRAM"),
        ("filling registers", "RF"),
        ("waiting for a sum", HAZARD),
        ("last sums leaving", TAIL),
    ];
    let mut text = bars(cost.cycles, &rows.map(|(what, bound)| (what, cost.bound(bound))));
    let [ssd, dram, sram, registers] = moved(cost);
    text += &format!(
        "\n  SSD {} read; DRAM {} read, {} written; SRAM {} read, {} written; registers {} read; {} out\n",
        bytes(ssd[0]),
        bytes(dram[0]),
        bytes(dram[1]),
        bytes(sram[0]),
        bytes(sram[1]),
        bytes(registers[0]),
        bytes(ssd[1]),
    );
    text
}

/// Bytes read and written at each level.
fn moved(cost: &Cost) -> [[u64; 2]; 4] {
    ["SSD", "DRAM", "SRAM", "RF"].map(|level| {
        let bits = cost.level(level).map_or([0, 0], |traffic| [traffic.read, traffic.written]);
        bits.map(|bits| u64::try_from(bits / 8).unwrap_or(u64::MAX))
    })
}

/// Joules of a run, by the tables that have every part of the chip.
fn energy(cost: &Cost) -> String {
    let whole = cost.prices.iter().filter(|price| price.missing().is_empty());
    let line = |price: &Price| {
        let Price { table, .. } = price;
        format!("  {:.3} uJ, {:.2} W by the table {table}\n", price.joules() * 1e6, cost.watts(price))
    };
    whole.map(line).collect()
}

fn describe(cost: &Cost) -> Value {
    let bound = |what| cost.bound(what);
    let [ssd, dram, sram, registers] = moved(cost);
    json!({
        "cycles": cost.cycles, "busy": bound("lanes"), "macs": cost.points as u64,
        "stalls": {
            "ssd": bound("SSD"), "dram": bound("DRAM"), "sram": bound("SRAM"), "registers": bound("RF"),
            "hazard": bound(HAZARD), "tail": bound(TAIL),
        },
        "bytes": {
            "ssd_read": ssd[0], "dram_read": dram[0], "dram_written": dram[1], "sram_read": sram[0],
            "sram_written": sram[1], "registers_read": registers[0], "out": ssd[1],
        },
    })
}
