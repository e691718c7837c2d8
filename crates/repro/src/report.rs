//! What was measured of the hardware beside what was published.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use blindcore_accel_rtl::onionchopper::mapping::Mapping;
use blindcore_accel_rtl::onionchopper::measure::{self, THESIS_CLOCK, THESIS_CYCLES};
use blindcore_accel_rtl::onionchopper::{OnionChopper, Options, SSD_RATE};
use serde_json::{Value, json};

use blindcore_units::{Progress, Unit};

/// Square millimetres of the thesis's chip, 99.54 % of them compute units (section 6.4).
const THESIS_AREA: f64 = 6.87;
/// Joules for 64 GB, 33.43 % of them in compute units (section 6.4).
const THESIS_ENERGY: f64 = 169.09;
/// Multiply-accumulates in 64 GB (section 6.1).
const THESIS_MACS: f64 = 17_179_869_184.0;

/// A figure of ours, and the thesis's where it has one.
#[derive(Clone, Debug)]
struct Line {
    id: String,
    what: String,
    value: f64,
    unit: &'static str,
    paper: Option<f64>,
    from: String,
}

/// Figures of the hardware, and what is missing among them.
#[derive(Clone, Debug)]
pub struct Report {
    lines: Vec<Line>,
    note: Option<String>,
}

/// What can be measured, measured now; what was synthesised, from the results that are kept; beside the thesis.
///
/// `results` is the folder of the synthesis results, `hw/syn/results` if none is named.
///
/// # Errors
/// There are neither chips to simulate nor results to read; or the results that are named can't be read.
pub fn make(results: Option<&Path>, progress: &mut dyn Progress) -> anyhow::Result<Report> {
    // Results that can't be read are said before seconds of simulation; half a report is one.
    let gates = match synthesised(results) {
        Err(e) if results.is_some() => return Err(e),
        gates => gates,
    };
    let mut note = None;
    let (mut lines, gates) = match (simulated(progress), gates) {
        (Err(e), Err(_)) => return Err(e),
        (Err(e), Ok(gates)) => {
            note = Some(format!("without simulation: {e:#}"));
            (Vec::new(), gates)
        }
        (Ok(lines), Err(e)) => {
            note = Some(format!("without synthesis: {e:#}"));
            (lines, Vec::new())
        }
        (Ok(lines), Ok(gates)) => (lines, gates),
    };
    lines.extend(gates);
    Ok(Report { lines, note })
}

impl Report {
    /// Which half is missing, and why.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The rows for programs.
    #[must_use]
    pub fn document(&self) -> Value {
        let rows = self.lines.iter().map(|l| {
            json!({
                "id": l.id, "what": l.what, "value": l.value, "unit": l.unit, "paper": l.paper,
                "ratio": l.paper.map(|p| l.value / p), "from": l.from,
            })
        });
        json!({"rows": rows.collect::<Vec<Value>>()})
    }

    /// A table for people.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = &self.lines;
        let wide = lines.iter().map(|l| l.what.chars().count()).max().unwrap_or(0);
        let mut text = format!("{:wide$} {:>14} {:6} {:>14} {:>9}\n", "", "here", "", "thesis", "ratio");
        for l in lines {
            let number = |x: f64| match x.abs() {
                1e14.. => format!("{x:.3e}"),
                1e3.. if x.fract() == 0.0 => format!("{x:.0}"),
                _ => format!("{x:.4}"),
            };
            let paper = l.paper.map_or(String::new(), number);
            let ratio = l.paper.map_or(String::new(), |p| format!("{:.5}", l.value / p));
            text +=
                &format!("{:wide$} {:>14} {:6} {paper:>14} {ratio:>9}\n", l.what, number(l.value), l.unit);
        }
        text
    }
}

/// Cycles, on simulated chips.
fn simulated(progress: &mut dyn Progress) -> anyhow::Result<Vec<Line>> {
    let mut step = {
        let mut done = 0;
        move || {
            done += 1;
            progress.at("simulating", done, Some(8), Unit::Items);
        }
    };
    let open = |name: &str, options: Options| crate::chip(OnionChopper::with_options(name, options));
    let thesis = open("rtl:onionchopper", Options::default())?;
    let resident = open("rtl:onionchopper", Options { resident: true, ..Options::default() })?;
    let literal = Mapping { literal: true, ..Mapping::thesis() };
    let literal =
        open("rtl:onionchopper", Options { resident: true, mapping: Some(literal), ..Options::default() })?;
    let from = |chip: &OnionChopper| format!("{}, simulated", chip.name());
    let mut lines = Vec::new();
    let mut line = |id: &str, what: &str, value: f64, unit, paper, from: String| {
        lines.push(Line { id: id.into(), what: what.into(), value, unit, paper, from });
    };
    let build = thesis.build();
    line("hw.onionchopper.lanes", "lanes", build.lanes as f64, "", Some(2.0), from(&thesis));
    line(
        "hw.onionchopper.stages",
        "clocks through the compute unit",
        build.latency as f64,
        "clocks",
        Some(6.0),
        from(&thesis),
    );

    step();
    let h = measure::run(&resident, &measure::million())?;
    let busy = h.busy as f64 / h.cycles as f64;
    line(
        "hw.onionchopper.busy",
        "2^20 MACs from the DRAM: share of clocks with both lanes busy",
        busy,
        "",
        None,
        from(&resident),
    );
    step();
    let h = measure::run(&literal, &measure::million())?;
    let what = "the same, section 6.3's loops to the letter (columns innermost)";
    line("hw.onionchopper.busy.literal", what, h.busy as f64 / h.cycles as f64, "", None, from(&literal));
    step();
    let h = measure::run(&thesis, &measure::million())?;
    let rate = h.traffic.ssd_read as f64 / 8.0 / h.cycles as f64;
    let paper = f64::from(SSD_RATE.0) / f64::from(SSD_RATE.1);
    line(
        "hw.onionchopper.ssd",
        "2^20 MACs from the SSD: words a clock",
        rate,
        "words",
        Some(paper),
        from(&thesis),
    );
    step();
    let one = measure::run(&thesis, &measure::coefficients(1))?.cycles;
    step();
    let two = measure::run(&thesis, &measure::coefficients(2))?.cycles;
    let all = measure::thesis(one, two);
    let tiles = "extrapolated from whole coefficients".to_owned();
    let cycles = Some(THESIS_CYCLES as f64);
    line("hw.onionchopper.64gb.cycles", "64 GB: clocks", all as f64, "clocks", cycles, tiles.clone());
    let seconds = all as f64 / THESIS_CLOCK;
    line("hw.onionchopper.64gb.seconds", "64 GB: seconds at 2 GHz", seconds, "s", Some(6.4), tiles);
    step();
    let alone = measure::run(&thesis, &measure::wide())?.cycles;
    step();
    let gathered = open("rtl:onionchopper-gathered", Options::default())?;
    let shape = blindcore_accel::contract::Shape { m: 8, ..measure::wide() };
    let eight = measure::run(&gathered, &shape)?.cycles;
    let ratio = eight as f64 / alone as f64;
    line(
        "hw.onionchopper.gathered",
        "eight clients gathered: clocks of one client's",
        ratio,
        "",
        None,
        from(&gathered),
    );
    step();
    Ok(lines)
}

/// Clocks and areas that synthesis gave, from the files that `make -C hw syn` keeps.
fn synthesised(folder: Option<&Path>) -> anyhow::Result<Vec<Line>> {
    let folder = folder.map_or_else(|| PathBuf::from("hw/syn/results"), Path::to_owned);
    let entries = std::fs::read_dir(&folder).with_context(|| {
        format!("{} can't be read; --results names the folder of hw/syn's results", folder.display())
    })?;
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") && path.is_file() {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("{} can't be read", path.display()))?;
            let value: Value = serde_json::from_str(&text).with_context(|| {
                format!("{} is not JSON; delete it or run `make -C hw syn` again", path.display())
            })?;
            files.insert(path, value);
        }
    }
    let mut lines = Vec::new();
    for (path, value) in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let block = value["block"].as_str().unwrap_or(&name).to_owned();
        let library =
            value["library"].as_str().or_else(|| value["device"].as_str()).unwrap_or("?").to_owned();
        let bits = value["parameters"]["BITS"].as_i64();
        let paper = match (block.as_str(), bits) {
            ("oc_compute_unit", Some(0)) if value["library"].is_string() => Some(3442.0), // in cells, not on an FPGA
            ("oc_full_adder", _) => Some(153.58),
            ("oc_comparator", _) => Some(100.32),
            _ => None,
        };
        let depth = match bits {
            Some(0) => ", six stages".to_owned(),
            Some(1) => ", a full adder a stage".to_owned(),
            Some(bits) => format!(", {bits} full adders a stage"),
            None => String::new(),
        };
        let from = format!("{}, {library}", path.display());
        let mut line = |part: &str, what: &str, value: Option<f64>, unit, paper| {
            let Some(value) = value else { return };
            let (id, what) = (format!("hw.syn.{name}.{part}"), format!("{block}{depth}, {library}: {what}"));
            lines.push(Line { id, what, value, unit, paper, from: from.clone() });
        };
        line("clock", "shortest clock", value["clock_ps"].as_f64(), "ps", paper);
        line("delay", "delay", value["delay_ps"].as_f64(), "ps", paper);
        let area = value["area_um2"].as_f64().map(|um2| um2 / 1e6);
        match area {
            Some(mm2) if mm2 < 0.01 => line("area", "area", Some(mm2 * 1e6), "um2", None),
            _ => line("area", "area", area, "mm2", (block == "onionchopper").then_some(THESIS_AREA)),
        }
        if block == "oc_compute_unit" {
            // Two of them are nearly all of the thesis's chip; a multiply-accumulate is one clock of one of them.
            line("area.two", "area of two", area.map(|a| 2.0 * a), "mm2", Some(THESIS_AREA * 0.9954));
            if bits == Some(0) {
                let area = area.map(|a| 16.0 * a);
                line("area.sixteen", "area of the gathered chip's sixteen", area, "mm2", None);
            }
            let joules = value["power"]["picojoules_a_clock"].as_f64().map(|pj| pj * 1e-12 * THESIS_MACS);
            line("energy", "energy of 64 GB in compute units", joules, "J", Some(THESIS_ENERGY * 0.3343));
        }
    }
    Ok(lines)
}
