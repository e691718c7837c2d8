//! Areas of PH-EPU, by our synthesis.

use std::path::Path;

use blindcore_accel_rtl::phepu::compiler::CHIP_ELEMENTS;
use serde_json::Value;

use super::{Figure, Line};

/// A NAND2 of osu018, the unit in which its areas become gates, in square micrometres.
const NAND2: f64 = 24.0;
/// The same in 28 nm, in round numbers: what standard cells of nine tracks have.
const NAND2_28: f64 = 0.49;
/// A bit of SRAM in 28 nm with its share of the periphery, in round numbers, in square micrometres.
const SRAM_BIT: f64 = 0.25;
/// Of a chip's core, the share that cells take after placement, in round numbers.
const DENSITY: f64 = 0.7;
/// SRAM of a chip in KB: the elements' 23.5 each, and the buffers that they share (hw/doc/phepu.md).
const SRAM_KB: f64 = 2968.0;

/// What synthesis gave for the blocks, and the chip that they make, from the results that `make -C hw syn` keeps; nothing
/// if they are not there.
pub(super) fn areas(notes: &mut Vec<String>) -> Vec<Line> {
    let folder = Path::new("hw/syn/results");
    let area = |name: &str| -> Option<f64> {
        let text = std::fs::read_to_string(folder.join(format!("{name}.osu018_stdcells.json"))).ok()?;
        serde_json::from_str::<Value>(&text).ok()?["area_um2"].as_f64()
    };
    // A multiplier of 256 bits has 16 times the partial products of one of 64, a Stein unit four times the bits.
    let parts = [
        ("multiplier", "ph_multiplier.WIDTH64", "256-bit multiplier, as 16 of 64 bits", 16.0, 3.0),
        ("montgomery", "ph_montgomery", "Montgomery unit without multipliers", 1.0, 1.0),
        ("stein", "ph_stein.WIDTH1024.DIGIT64", "Stein unit, as four of 1024 bits", 4.0, 1.0),
        ("element", "ph_element", "element without units and memories", 1.0, 1.0),
    ];
    let (mut lines, mut gates) = (Vec::new(), Some(0.0));
    let mut line = |id: &str, what: String, value: f64, unit, paper| {
        let id = format!("phepu.area.{id}");
        lines.push(Line { figure: Figure::Specification, id, what, value, unit, paper, measured: false });
    };
    for (id, name, what, times, of_element) in parts {
        let area = area(name).map(|um2| um2 * times);
        if let Some(um2) = area {
            line(id, format!("{what}, osu018 (180 nm)"), um2 / 1e6, "mm2", None);
        }
        if area.is_none() {
            notes.push(format!("without the area of {name}: it is not in hw/syn/results of this folder"));
        }
        gates = gates.zip(area).map(|(gates, um2)| gates + of_element * um2 / NAND2);
    }
    if let Some(gates) = gates {
        let chip = gates * CHIP_ELEMENTS as f64;
        line("gates", format!("{CHIP_ELEMENTS} elements, in NAND2 of osu018"), chip / 1e6, "M gates", None);
        let logic = chip * NAND2_28 / 1e6;
        let sram = SRAM_KB * 8192.0 * SRAM_BIT / 1e6;
        let what = format!(
            "chip in 28 nm, reckoned: {NAND2_28} um2 a gate, {SRAM_BIT} um2 a bit, {:.0} % filled",
            100.0 * DENSITY
        );
        line("chip_28nm", what, (logic + sram) / DENSITY, "mm2", Some(42.96));
    }
    lines
}
