//! The half-gates overlay on the problems of SIFO's Table 11, beside the paper's times.

use blindcore_accel_rtl::sifo::CLOCK;
use blindcore_accel_rtl::sifo::half_gates::{HalfGates, HalfGatesSettings};
use blindcore_circuit::problems::published::{self, ROWS};
use blindcore_units::{Progress, Unit};
use serde_json::json;

use crate::half_gates::{self, Done};
use crate::labels::random_inputs;
use crate::table::Table;

/// Whose netlists are garbled: from the 8-bit multiplication on.
const FIRST: &str = "mult8";

/// Garbles and evaluates each on the simulated chip, over the paper's link and with one that never holds it up.
///
/// # Errors
/// As [`half_gates::run`], or the chip is not built.
pub fn make(progress: &mut dyn Progress) -> anyhow::Result<Table> {
    let device = "rtl:sifo-half-gates";
    let mut rows = Vec::new();
    let mut text = format!(
        "# Today's overlay beside SIFO's Table 11\n\nMade by `blindcore repro sifo --today`, every table compared with cpu's. \
         {device} at 200 MHz, the paper's clock (none of its own was synthesised): on the paper's netlists, and on those without the gates that constants make unneeded or that \
         nobody reads. What goes to the host goes over PCIe Gen3 x8, or over a link that never holds the chip up \
         (unbound).\n\n\
         | problem | us | paper, us | of the paper's | M ANDs/s | us, unbound | M ANDs/s | ANDs without unneeded | us | us, \
         unbound | M ANDs/s |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    let first = ROWS.iter().position(|row| row.name == FIRST).expect("a row");
    let all: u64 = ROWS[first..].iter().map(|row| row.figures.gates).sum();
    let mut done = 0;
    for row in &ROWS[first..] {
        progress.at("simulating", done, Some(all), Unit::Items);
        let netlist = published::netlist(row);
        let inputs = random_inputs(&netlist)?;
        let folded = blindcore_circuit::folded(&netlist)?;
        let take = |netlist, settings| {
            half_gates::run(&crate::chip(HalfGates::with_settings(device, settings))?, netlist, &inputs)
        };
        let (bound, unbound) =
            (take(&netlist, HalfGatesSettings::BOARD)?, take(&netlist, HalfGatesSettings::UNBOUND)?);
        let (small, small_unbound) =
            (take(&folded, HalfGatesSettings::BOARD)?, take(&folded, HalfGatesSettings::UNBOUND)?);
        let us = |taken: &Done| taken.garbling.clocks.cycles as f64 / CLOCK * 1e6;
        let paper = row.figures.fpga_us as f64;
        text += &format!(
            "| {} | {:.1} | {paper} | 1/{:.0} | {:.0} | {:.1} | {:.0} | {} | {:.1} | {:.1} | {:.0} |\n",
            row.name,
            us(&bound),
            paper / us(&bound),
            bound.ands_a_second() / 1e6,
            us(&unbound),
            unbound.ands_a_second() / 1e6,
            small.ands,
            us(&small),
            us(&small_unbound),
            small_unbound.ands_a_second() / 1e6,
        );
        rows.push(json!({
            "id": format!("sifo.today.{}", row.name), "value": us(&bound), "unit": "us", "paper": paper,
            "ratio": us(&bound) / paper, "ands": bound.ands, "ands_per_second": bound.ands_a_second(),
            "unbound_us": us(&unbound), "unbound_ands_per_second": unbound.ands_a_second(),
            "folded_ands": small.ands, "folded_us": us(&small), "folded_unbound_us": us(&small_unbound),
            "folded_unbound_ands_per_second": small_unbound.ands_a_second(), "lanes": bound.lanes, "evaluation_us": bound.evaluation.clocks.cycles as f64 / CLOCK * 1e6,
        }));
        done += row.figures.gates;
    }
    let document = json!({"made_by": "blindcore repro sifo --today --json", "rows": rows});
    Ok(Table { document, text, notes: Vec::new() })
}
