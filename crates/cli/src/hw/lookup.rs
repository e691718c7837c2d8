//! `blindcore hw run lookup`: a real lookup on OnionChopper.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use blindcore_accel::{Device, Hardware};
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::onionchopper::measure::THESIS_CLOCK;
use blindcore_accel_rtl::onionchopper::{OnionChopper, Options};
use blindcore_lookup::{Client, Selection, Server, keyword};
use blindcore_store::{BuildOptions, SourceSpec, Stored};
use blindcore_wire::codec::decode_record;
use serde_json::{Map, Value, json};

use super::bars;
use crate::output::{self, Bar};
use crate::{Outcome, args};

/// A small real table, for a first try without one.
const ELEMENTS: &str = include_str!("../../../../testdata/elements.csv");

/// One real lookup: the query is made, the simulated chip answers it, the CPU answers it too, the answer is decoded.
pub(crate) fn run(args: &args::HwLookup) -> anyhow::Result<Outcome> {
    let options = Options { ssd_rate: args.ssd_rate()?, ..Options::default() };
    let chip = OnionChopper::with_options(&args.device, options)?;
    let cpu = Cpu::open("cpu")?;

    let made; // a database that is made here is removed when this goes
    let dir: &Path = match &args.dir {
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
            blindcore_store::build(&options, &cpu, &mut |_, _, _| Ok(()))?;
            &made.path().join("elements.db").clone()
        }
    };
    let stored = Stored::open(dir)?;
    let table = stored.description()?;
    let part = &stored.records;
    let geometry = part.params.geometry;
    let key =
        args.key.clone().or_else(|| (args.index.is_none() && args.dir.is_none()).then(|| "Au".to_owned()));

    let (selection, fingerprint) = match (&key, args.index, table.index()) {
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
    // Roots of proofs follow the hint's words, and a slot ends in its proof.
    let words = (*part.hint).as_ref()[..4 * part.params.hint_words()].to_vec();
    let proof_bytes = table.records().proofs.map_or(0, |p| p.slot_bytes());
    let client = Client::new(part.params, std::sync::Arc::new(words))?;
    let (query, pending) = client.query(client.prepare()?, &selection)?;

    let serve = |device: &dyn Device| -> anyhow::Result<_> {
        let state = part.state.clone().map(|s| vec![s]);
        Ok(Server::new(part.params, device, part.shards.clone(), state)?.answer(&[&query])?)
    };
    let started = Instant::now();
    let mut bar = Bar::new();
    bar.set("simulating", 0, None, false);
    let (answers, cost) = serve(&chip)?;
    drop(bar);
    let simulated = started.elapsed();
    let hardware = cost.hardware.context("the device counted nothing")?;
    let (on_cpu, _) = serve(&cpu)?;
    anyhow::ensure!(answers == on_cpu, "{} and {} answer differently; report this", chip.name(), cpu.name());

    let slot = client.decode(pending, &answers[0])?;
    let slot = &slot[..slot.len() - proof_bytes];
    let record = match &fingerprint {
        Some(fingerprint) => keyword::open(slot, fingerprint),
        None => Some(slot),
    };
    let columns = table.value_columns();
    let values = record.map(|bytes| decode_record(bytes, columns.len())).transpose()?;
    let value: Option<Map<String, Value>> =
        values.map(|values| columns.iter().cloned().zip(values.iter().map(|v| v.to_json())).collect());
    let seconds = hardware.cycles as f64 / THESIS_CLOCK;
    if args.json {
        let mut out = Map::new();
        out.insert("found".into(), json!(value.is_some()));
        out.insert("table".into(), json!(table.name()));
        match &key {
            Some(key) => out.insert("key".into(), json!(key)),
            None => out.insert("index".into(), json!(args.index)),
        };
        out.insert("value".into(), json!(value));
        out.insert("device".into(), json!(chip.name()));
        out.insert("same_bits_as".into(), json!(cpu.name()));
        out.insert("hardware".into(), describe(&hardware));
        out.insert("seconds_at_2_ghz".into(), json!(seconds));
        out.insert("simulation_seconds".into(), json!(simulated.as_secs_f64()));
        output::json(&Value::Object(out))?;
    } else {
        let mut text = match &value {
            None => format!("{}: not there\n", output::printable(&json!(key.as_deref().unwrap_or_default()))),
            Some(value) => {
                let width = value.keys().map(|c| c.chars().count()).max().unwrap_or(0);
                value.iter().map(|(c, v)| format!("  {c:width$}  {}\n", output::printable(v))).collect()
            }
        };
        text += &format!(
            "\n{} answered, the same bits as {}: {} clocks, {:.1} us at the thesis's 2 GHz\n\n{}",
            chip.name(),
            cpu.name(),
            hardware.cycles,
            seconds * 1e6,
            clocks(&hardware),
        );
        output::print(&text)?;
        output::note(&format!("simulated in {:.1} s", simulated.as_secs_f64()));
    }
    Ok(if value.is_some() { Outcome::Done } else { Outcome::NotThere })
}

/// Where clocks went, drawn.
fn clocks(h: &Hardware) -> String {
    let s = h.stalls;
    let rows = [
        ("multiplying", h.busy),
        ("waiting for the SSD", s.ssd),
        ("waiting for the DRAM", s.dram),
        ("waiting for an SRAM", s.sram),
        ("filling registers", s.registers),
        ("waiting for a sum", s.hazard),
        ("last sums leaving", s.tail),
    ];
    let mut text = bars(h.cycles, &rows);
    let t = h.traffic;
    text += &format!(
        "\n  SSD {} read; DRAM {} read, {} written; SRAM {} read, {} written; registers {} read; {} out\n",
        output::bytes(t.ssd_read),
        output::bytes(t.dram_read),
        output::bytes(t.dram_written),
        output::bytes(t.sram_read),
        output::bytes(t.sram_written),
        output::bytes(t.registers_read),
        output::bytes(t.out),
    );
    text
}

fn describe(h: &Hardware) -> Value {
    let (s, t) = (h.stalls, h.traffic);
    json!({
        "cycles": h.cycles, "busy": h.busy, "macs": h.macs,
        "stalls": {
            "ssd": s.ssd, "dram": s.dram, "sram": s.sram, "registers": s.registers, "hazard": s.hazard, "tail": s.tail,
        },
        "bytes": {
            "ssd_read": t.ssd_read, "dram_read": t.dram_read, "dram_written": t.dram_written,
            "sram_read": t.sram_read, "sram_written": t.sram_written, "registers_read": t.registers_read,
            "out": t.out,
        },
    })
}
