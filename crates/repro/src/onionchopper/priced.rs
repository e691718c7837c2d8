//! What section 6.4's run takes in seconds, joules and square millimetres.

use anyhow::Context;
use blindcore_model::chip::{Cost, Kind, Price, Problem, Tables, cost, machine, thesis_mapping};

use super::Lines;
use crate::rows::{self, Row};

/// The published mapping on the published machine, with every table.
pub(super) fn published_run() -> anyhow::Result<Cost> {
    let chip = machine("thesis").context("the thesis's machine is missing; report this")?;
    Ok(cost(&Problem::onionpir(64.0), &chip, &thesis_mapping(), &Tables::shipped_all())?)
}

/// A figure of a run's joules or square millimetres, by one of the tables.
struct Quantity {
    id: &'static str,
    what: &'static str,
    unit: &'static str,
    published: Option<f64>,
    get: fn(&Price, &Cost) -> Option<f64>,
}

/// Section 6.4's joules, watts and square millimetres, and what they come from. It prints totals and shares alone.
const QUANTITIES: [Quantity; 16] = {
    const fn of(
        id: &'static str,
        what: &'static str,
        unit: &'static str,
        published: Option<f64>,
        get: fn(&Price, &Cost) -> Option<f64>,
    ) -> Quantity {
        Quantity { id, what, unit, published, get }
    }
    fn joules(price: &Price, part: &str) -> Option<f64> {
        price.parts.iter().find(|p| p.part == part)?.joules
    }
    fn mm2(price: &Price, part: &str) -> Option<f64> {
        price.parts.iter().find(|p| p.part == part)?.mm2
    }
    /// The whole, where the table has every part of it.
    fn all(price: &Price) -> Option<f64> {
        price.missing().is_empty().then(|| price.joules())
    }
    fn picojoules_a_word(price: &Price, run: &Cost, level: &str) -> Option<f64> {
        let moved = run.level(level)?.words?;
        let words: u128 = moved.read.iter().chain(&moved.written).sum();
        Some(joules(price, level)? * 1e12 / words as f64)
    }
    const JOULES: f64 = 169.09;
    const MM2: f64 = 6.87;
    [
        of("joules", "energy", "J", Some(JOULES), |p, _| all(p)),
        of("watts", "power", "W", Some(26.35), |p, run| all(p).map(|_| run.watts(p))),
        of("lanes.joules", "energy of the compute units", "J", Some(JOULES * 0.3343), |p, _| {
            joules(p, "lanes")
        }),
        of("lanes", "share of energy in compute units", "", Some(0.3343), |p, _| {
            Some(joules(p, "lanes")? / all(p)?)
        }),
        of("mac.picojoules", "a multiply-accumulate", "pJ", None, |p, run| {
            Some(joules(p, "lanes")? * 1e12 / run.points as f64)
        }),
        of("ssd.joules", "energy of the SSD", "J", Some(JOULES * 0.6499), |p, _| joules(p, "SSD")),
        of("ssd", "share of energy in the SSD", "", Some(0.6499), |p, _| Some(joules(p, "SSD")? / all(p)?)),
        of("ssd.picojoules", "a word of the SSD", "pJ", None, |p, run| picojoules_a_word(p, run, "SSD")),
        of(
            "rest.joules",
            "energy of DRAM, SRAMs and register files",
            "J",
            Some(JOULES * (1.0 - 0.3343 - 0.6499)),
            |p, _| Some(joules(p, "DRAM")? + joules(p, "SRAM")? + joules(p, "RF")?),
        ),
        of("dram.picojoules", "a word of the DRAM", "pJ", None, |p, run| picojoules_a_word(p, run, "DRAM")),
        of("sram.picojoules", "a word of an SRAM", "pJ", None, |p, run| picojoules_a_word(p, run, "SRAM")),
        of("registers.picojoules", "a word of a register file", "pJ", None, |p, run| {
            picojoules_a_word(p, run, "RF")
        }),
        of("mm2", "area without SSD and DRAM", "mm2", Some(MM2), |p, _| {
            all(p)?;
            Some(p.mm2())
        }),
        of("lanes.mm2", "area of the compute units", "mm2", Some(MM2 * 0.9954), |p, _| mm2(p, "lanes")),
        of("rest.mm2", "area of SRAMs and register files", "mm2", Some(MM2 * (1.0 - 0.9954)), |p, _| {
            Some(mm2(p, "SRAM")? + mm2(p, "RF")?)
        }),
        of("lane.mm2", "area of a compute unit", "mm2", None, |p, run| {
            Some(mm2(p, "lanes")? / run.lanes as f64)
        }),
    ]
};

/// What section 6.4's run takes by every table: a row a figure and table, in the order of the tables, of which the calibrated one has
/// the others' in its columns.
pub(crate) fn priced() -> anyhow::Result<Vec<Row>> {
    let run = published_run()?;
    let mut lines = Lines::default();
    for quantity in &QUANTITIES {
        let Quantity { id, what, unit, published, get } = *quantity;
        for price in &run.prices {
            let value = get(price, &run);
            // Memories were not synthesised, so those tables have no whole.
            if value.is_some() || price.kind == Kind::Calibrated {
                let id = format!("6.4.{}.{id}", price.table);
                let what = match price.kind {
                    Kind::Calibrated => what.to_owned(),
                    _ => format!("{}: {what}", price.table),
                };
                let row = lines.add("Section 6.4", &id, &what, value, unit, published, price.kind.into());
                if price.kind == Kind::Calibrated {
                    row.columns = rows::columns(&run.prices, |p| get(p, &run));
                }
            }
        }
    }
    Ok(lines.0)
}

/// Seconds of section 6.4's run at another clock: the SSD brings as many bytes a second.
pub(super) fn seconds_at(hz: f64) -> anyhow::Result<f64> {
    let chip = machine("thesis").context("the thesis's machine is missing; report this")?.at_clock(hz);
    Ok(cost(&Problem::onionpir(64.0), &chip, &thesis_mapping(), &[])?.seconds)
}
