//! What was measured of the hardware beside what was published.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use blindcore_accel_rtl::onionchopper::mapping::Mapping;
use blindcore_accel_rtl::onionchopper::measure::{self, THESIS_CLOCK, THESIS_CYCLES};
use blindcore_accel_rtl::onionchopper::{OnionChopper, Options, SSD_RATE};
use serde_json::{Value, json};

use blindcore_model::chip::{Kind, OnMachine, Problem, Space, Tables, everywhere, reached, search};
use blindcore_units::{Progress, Unit};

use crate::rows::{self, By, Column, KINDS, Label, Row};

/// Square millimetres of the thesis's chip, 99.54 % of them compute units (section 6.4).
const THESIS_AREA: f64 = 6.87;
/// Joules for 64 GB, 33.43 % of them in compute units (section 6.4).
const THESIS_ENERGY: f64 = 169.09;
/// Multiply-accumulates in 64 GB (section 6.1).
const THESIS_MACS: f64 = 17_179_869_184.0;

/// The paper, in the source of a published figure.
const PAPER: &str = "Shay 2023";

/// A figure of ours, and the thesis's where it has one.
#[derive(Clone, Debug)]
struct Line {
    row: Row,
    /// What it is without the library: lines of several libraries stand together.
    group: String,
    from: String,
}

impl Line {
    fn new(
        of: &str,
        id: &str,
        what: &str,
        value: f64,
        unit: &'static str,
        published: Option<f64>,
        by: By,
    ) -> Self {
        let row = Row {
            of: of.into(),
            id: id.into(),
            what: what.into(),
            value: Some(value),
            unit,
            published,
            paper: PAPER,
            by,
            label: None,
            columns: Vec::new(),
        };
        Self { row, group: what.into(), from: String::new() }
    }

    fn from(self, from: impl Into<String>) -> Self {
        Self { from: from.into(), ..self }
    }

    /// Whether it is of energy or area, which have a column for each table.
    fn is_priced(&self) -> bool {
        ["J", "W", "pJ", "mm2", "um2"].contains(&self.row.unit) || !self.row.columns.is_empty()
    }
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
    together(simulated(progress), gates)
}

/// Both halves, or the one that is there with a note of the other.
fn together(
    simulated: anyhow::Result<Vec<Line>>,
    gates: anyhow::Result<Vec<Line>>,
) -> anyhow::Result<Report> {
    let (mut lines, gates, note) = match (simulated, gates) {
        (Err(e), Err(_)) => return Err(e),
        (Err(e), Ok(gates)) => (Vec::new(), gates, Some(format!("without simulation: {e:#}"))),
        (Ok(lines), Err(e)) => (lines, Vec::new(), Some(format!("without synthesis: {e:#}"))),
        (Ok(lines), Ok(gates)) => (lines, gates, None),
    };
    lines.extend(tables()?);
    lines.extend(machines());
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
        let rows: Vec<Row> = self.lines.iter().map(|l| l.row.clone()).collect();
        // The published figure's older name stays.
        let more = |at: usize| json!({"paper": rows[at].published, "from": self.lines[at].from});
        Value::Object(rows::document(&rows, more))
    }

    /// Tables for people: clocks and times, then joules and square millimetres.
    #[must_use]
    pub fn text(&self) -> String {
        let (priced, clocks): (Vec<&Line>, Vec<&Line>) = self.lines.iter().partition(|l| l.is_priced());
        let mut text = String::new();
        if !clocks.is_empty() {
            let what = |l: &Line| {
                let label = l.row.label.as_ref().map_or(String::new(), |label| format!(", {}", label.says()));
                format!("{}{label}", l.row.what)
            };
            let beside = |l: &Line| {
                l.row.label.as_ref().map(|label| (format!("  {}", label.beside().0), label.beside().1))
            };
            let wide = clocks.iter().map(|l| what(l).chars().count()).max().unwrap_or(0);
            text += &format!("{:wide$} {:>14} {:6} {:>14} {:>9}\n", "", "here", "", "thesis", "ratio");
            for l in clocks {
                let value = l.row.value.map_or("-".into(), number);
                let paper = l.row.published.map_or(String::new(), number);
                let ratio = l.row.ratio().map_or(String::new(), |r| format!("{r:.5}"));
                text += &format!("{:wide$} {value:>14} {:6} {paper:>14} {ratio:>9}\n", what(l), l.row.unit);
                if let Some((what, value)) = beside(l) {
                    let value = value.map_or("-".into(), number);
                    text += &format!("{what:wide$} {value:>14} {}\n", l.row.unit);
                }
            }
        }
        if !priced.is_empty() {
            text += &self::priced(&priced);
        }
        text
    }
}

/// A figure for people.
fn number(x: f64) -> String {
    match x.abs() {
        1e14.. => format!("{x:.3e}"),
        1e3.. if x.fract() == 0.0 => format!("{x:.0}"),
        _ => format!("{x:.4}"),
    }
}

/// Joules and square millimetres: what was published, then a column for each table, lines of several libraries in one.
fn priced(lines: &[&Line]) -> String {
    let mut groups: Vec<(String, &Row, Vec<&Column>)> = Vec::new();
    for line in lines {
        let unit = if line.row.unit.is_empty() { String::new() } else { format!(", {}", line.row.unit) };
        let group = line.group.clone() + &unit;
        let columns = line.row.columns.iter();
        match groups.iter_mut().find(|(name, ..)| *name == group) {
            Some((.., of)) => of.extend(columns),
            None => groups.push((group, &line.row, columns.collect())),
        }
    }
    let mut tables: Vec<(Kind, &str)> = Vec::new();
    for kind in KINDS {
        for column in groups.iter().flat_map(|(.., columns)| columns).filter(|c| c.kind == kind) {
            if !tables.contains(&(kind, &column.table)) {
                tables.push((kind, &column.table));
            }
        }
    }
    let wide = groups.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
    let (mut kinds, mut names) =
        (format!("{:wide$} {:>12}", "", ""), format!("{:wide$} {:>12}", "", "thesis"));
    for (at, (kind, table)) in tables.iter().enumerate() {
        let first = at == 0 || tables[at - 1].0 != *kind;
        kinds += &format!(" {:>12}", if first { By::from(*kind).name() } else { "" });
        names += &format!(" {:>12}", if *kind == Kind::Calibrated { "" } else { table });
    }
    let mut text = format!("\n{}\n{}\n", kinds.trim_end(), names.trim_end());
    for (name, row, columns) in &groups {
        text += &format!("{name:wide$} {:>12}", row.published.map_or("-".into(), number));
        for (kind, table) in &tables {
            let found = columns.iter().find(|c| c.kind == *kind && c.table == *table);
            text += &format!(" {:>12}", found.map_or("-".into(), |c| number(c.value)));
        }
        text.push('\n');
    }
    text += "\ncalibrated: fitted to the thesis's totals, which it prints without a picojoule; synthesised: this project's, before layout, \
             compute units and no memories; tables: CACTI 7, Aladdin, data sheets\n";
    text
}

/// Cycles, on simulated chips.
fn simulated(progress: &mut dyn Progress) -> anyhow::Result<Vec<Line>> {
    let mut step = {
        let mut done = 0;
        move || {
            done += 1;
            progress.at("simulating", done, Some(10), Unit::Items);
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
    let mut line = |of: &str, id: &str, what: &str, value: f64, unit, paper, from: String| {
        let id = format!("hw.onionchopper.{id}");
        lines.push(Line::new(of, &id, what, value, unit, paper, By::Simulated).from(from));
    };
    let build = thesis.build();
    line("Section 6.2", "lanes", "lanes", build.lanes as f64, "", Some(2.0), from(&thesis));
    let what = "clocks through the compute unit";
    line("Section 4.2.4", "stages", what, build.latency as f64, "clocks", Some(6.0), from(&thesis));

    step();
    let h = measure::run(&resident, &measure::million())?;
    let busy = h.bound("lanes") as f64 / h.cycles as f64;
    let what = "2^20 MACs from the DRAM: share of clocks with both lanes busy";
    line("Section 6.3", "busy", what, busy, "", None, from(&resident));
    step();
    let h = measure::run(&literal, &measure::million())?;
    let what = "the same, section 6.3's loops to the letter (columns innermost)";
    line(
        "Section 6.3",
        "busy.literal",
        what,
        h.bound("lanes") as f64 / h.cycles as f64,
        "",
        None,
        from(&literal),
    );
    step();
    let h = measure::run(&thesis, &measure::million())?;
    let rate = h.level("SSD").map_or(0, |ssd| ssd.read / 64) as f64 / h.cycles as f64;
    let paper = f64::from(SSD_RATE.0) / f64::from(SSD_RATE.1);
    let what = "2^20 MACs from the SSD: words a clock";
    line("Section 6.4", "ssd", what, rate, "words", Some(paper), from(&thesis));
    let mut whole = |chip: &OnionChopper| -> anyhow::Result<u64> {
        step();
        let one = measure::run(chip, &measure::coefficients(1))?.cycles;
        step();
        let two = measure::run(chip, &measure::coefficients(2))?.cycles;
        Ok(measure::thesis(one, two))
    };
    let all = whole(&thesis)?;
    let tiles = "extrapolated from whole coefficients".to_owned();
    let cycles = Some(THESIS_CYCLES as f64);
    line("Section 6.4", "64gb.cycles", "64 GB: clocks", all as f64, "clocks", cycles, tiles.clone());
    let seconds = all as f64 / THESIS_CLOCK;
    line("Section 6.4", "64gb.seconds", "64 GB: seconds", seconds, "s", Some(6.4), tiles);
    // At another clock the SSD brings as many bytes a second, and the chip takes a word a clock at most.
    let clock = reached("onionchopper").context("the chip's synthesis is missing; report this")?.clock;
    let words = (100.0 * paper * THESIS_CLOCK / clock).floor().clamp(1.0, 100.0) as u16;
    let slower = open("rtl:onionchopper", Options { ssd_rate: (words, 100), ..Options::default() })?;
    let slower = whole(&slower)? as f64;
    step();
    let alone = measure::run(&thesis, &measure::wide())?.cycles;
    step();
    let gathered = open("rtl:onionchopper-gathered", Options::default())?;
    let shape = blindcore_accel::contract::Shape { m: 8, ..measure::wide() };
    let eight = measure::run(&gathered, &shape)?.cycles;
    let ratio = eight as f64 / alone as f64;
    let what = "eight clients gathered: clocks of one client's";
    line("Section 6.2", "gathered", what, ratio, "", None, from(&gathered));
    step();
    let labelled = lines.iter_mut().find(|l| l.row.unit == "s").context("a time; report this")?;
    labelled.row.label = Some(Label::clock(THESIS_CLOCK, "onionchopper", |hz| slower / hz));
    Ok(lines)
}

/// What the thesis's run takes by every table of energy and area.
fn tables() -> anyhow::Result<Vec<Line>> {
    let rows = crate::onionchopper::priced()?.into_iter().filter(|row| row.by == By::Calibrated);
    let line = |mut row: Row| {
        row.id = row.id.replace("onionchopper.6.4.calibrated", "hw.priced");
        row.what = format!("64 GB: {}", row.what);
        let (group, from) = (row.what.clone(), "the model, by section 6.3's mapping".into());
        Line { row, group, from }
    };
    Ok(rows.map(line).collect())
}

/// Operations of each family on every machine that does them, by the model: seconds, and joules by each table that prices its lanes.
fn machines() -> Vec<Line> {
    let operations = [
        ("contract", "OnionPIR's first dimension, 1 GiB", Problem::onionpir(1.0)),
        ("bigmod", "10^6 products modulo 4096 bits", Problem::bigmod(1_000_000, 4096)),
        ("garble", "10^6 ANDs, labels of 128 bits, two rows", Problem::garble(1_000_000, 128, 2)),
    ];
    let tables = Tables::shipped_all();
    let mut lines = Vec::new();
    for (id, operation, problem) in operations {
        // The sweep's machine is a pattern for others.
        let all = everywhere(&problem, &tables).into_iter().filter(|on| on.machine.name != "thesis-sweep");
        for OnMachine { machine, cost } in all {
            let Ok(cost) = cost else { continue };
            let what = format!("{operation}, on {}, held by {}", machine.name, cost.holds());
            let id = format!("hw.machine.{id}.{}", machine.name);
            let from = format!("the model's machine {}", machine.name);
            let mut line =
                Line::new("", &format!("{id}.seconds"), &what, cost.seconds, "s", None, By::Counted);
            // What was measured or is a data sheet's has its own clock; a paper's chip has the paper's.
            if !["xeon", "h100", "h200"].contains(&machine.name.as_str()) {
                let part = if machine.name.starts_with("thesis") { "onionchopper" } else { &machine.name };
                let slower = |hz: f64| {
                    let found = search(&problem, &machine.at_clock(hz), &[], &Space::default());
                    found.map_or(f64::NAN, |found| found.cost.seconds)
                };
                line.row.label = Some(Label::clock(machine.clock, part, slower));
            }
            lines.push(line.from(from.clone()));
            let lanes = &machine.lanes.name;
            let columns =
                rows::columns(&cost.prices, |p| p.parts.iter().find(|part| part.part == *lanes)?.joules);
            if let Some(first) = columns.first() {
                let what = format!("{operation}, on {}: energy of the lanes", machine.name);
                let id = format!("{id}.lanes.joules");
                let line = Line::new("", &id, &what, first.value, "J", None, By::from(first.kind));
                lines.push(Line { row: Row { columns, ..line.row }, ..line }.from(from.clone()));
            }
            let columns = rows::columns(&cost.prices, |p| p.missing().is_empty().then(|| p.joules()));
            if let Some(first) = columns.first() {
                let what = format!("{operation}, on {}: energy", machine.name);
                let line = Line::new(
                    "",
                    &format!("{id}.joules"),
                    &what,
                    first.value,
                    "J",
                    None,
                    By::from(first.kind),
                );
                lines.push(Line { row: Row { columns, ..line.row }, ..line }.from(from));
            }
        }
    }
    lines
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
        block(path, value, &mut lines);
    }
    Ok(lines)
}

/// What one result has of a block.
fn block(path: &Path, value: &Value, lines: &mut Vec<Line>) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let block = value["block"].as_str().unwrap_or(&name).to_owned();
    let library = value["library"].as_str().or_else(|| value["device"].as_str()).unwrap_or("?").to_owned();
    let bits = value["parameters"]["BITS"].as_i64();
    let paper = match (block.as_str(), bits) {
        ("oc_compute_unit", Some(0)) if value["library"].is_string() => Some(3442.0), // in cells, not on an FPGA
        ("oc_full_adder", _) => Some(153.58),
        ("oc_comparator", _) => Some(100.32),
        _ => None,
    };
    let mut depth = match bits {
        Some(0) => ", six stages".to_owned(),
        Some(1) => ", a full adder a stage".to_owned(),
        Some(bits) => format!(", {bits} full adders a stage"),
        None => String::new(),
    };
    let others = value["parameters"].as_object().into_iter().flatten().filter(|(name, _)| *name != "BITS");
    others.for_each(|(name, value)| depth += &format!(", {name} {value}"));
    let part = match block.as_str() {
        "oc_compute_unit" => "mac64",
        "oc_compute_unit_lwe" => "mac32",
        _ => "",
    };
    let tables = Tables::shipped_all();
    // The table that was made from results in this library names them.
    let table = tables.iter().find(|t| t.parts.iter().any(|p| p.source.contains(&library)));
    let table = table.map_or(library.clone(), |t| t.name.clone());
    // Other tables' figures of the same part, times what this is of one.
    let columns = |value: f64, times: f64, get: &dyn Fn(&Tables) -> Option<f64>| -> Vec<Column> {
        let others = tables.iter().filter(|t| t.kind != Kind::Synthesised);
        let others = others
            .filter_map(|t| Some(Column { table: t.name.clone(), kind: t.kind, value: times * get(t)? }));
        let ours = Column { table: table.clone(), kind: Kind::Synthesised, value };
        std::iter::once(ours).chain(others).collect()
    };
    let mut line =
        |id: &str, what: &str, value: Option<f64>, unit, paper: Option<(f64, &str)>, columns: Vec<Column>| {
            let Some(value) = value else { return };
            let (id, said) = (format!("hw.syn.{name}.{id}"), format!("{block}{depth}, {library}: {what}"));
            let (paper, of) = paper.unzip();
            let line = Line::new(of.unwrap_or(""), &id, &said, value, unit, paper, By::Synthesised);
            let row = Row { columns, ..line.row };
            lines.push(Line {
                row,
                group: format!("{block}{depth}: {what}"),
                from: format!("{}, {library}", path.display()),
            });
        };
    let delay = paper.map(|ps| (ps, "Section 4.2"));
    line("clock", "shortest clock", value["clock_ps"].as_f64(), "ps", delay, Vec::new());
    line("delay", "delay", value["delay_ps"].as_f64(), "ps", delay, Vec::new());
    let area = value["area_um2"].as_f64().map(|um2| um2 / 1e6);
    let mm2 = |times: f64| {
        let value = area.map(|a| a * times);
        (value, value.map_or(Vec::new(), |a| columns(a, times, &|t| t.mm2(part, None))))
    };
    let (one, of_one) = mm2(1.0);
    match one {
        Some(mm2) if mm2 < 0.001 => {
            let um2 = of_one.into_iter().map(|c| Column { value: c.value * 1e6, ..c }).collect();
            line("area", "area", Some(mm2 * 1e6), "um2", None, um2);
        }
        _ => {
            let paper = (block == "onionchopper").then_some((THESIS_AREA, "Section 6.4"));
            line("area", "area", one, "mm2", paper, of_one);
        }
    }
    let picojoules = value["power"]["picojoules_a_clock"].as_f64();
    if !part.is_empty() {
        let of =
            picojoules.map_or(Vec::new(), |pj| columns(pj, 1.0, &|t| Some(t.picojoules(part, None)?[0])));
        line("picojoules", "energy of a multiply-accumulate", picojoules, "pJ", None, of);
    }
    if block == "oc_compute_unit" {
        // Two of them are nearly all of the thesis's chip; a multiply-accumulate is one clock of one of them.
        let (two, of_two) = mm2(2.0);
        line("area.two", "area of two", two, "mm2", Some((THESIS_AREA * 0.9954, "Section 6.4")), of_two);
        if bits == Some(0) {
            let (sixteen, of_sixteen) = mm2(16.0);
            line("area.sixteen", "area of the gathered chip's sixteen", sixteen, "mm2", None, of_sixteen);
        }
        let times = 1e-12 * THESIS_MACS;
        let of = |pj| columns(pj * times, times, &|t| Some(t.picojoules(part, None)?[0]));
        let published = Some((THESIS_ENERGY * 0.3343, "Section 6.4"));
        let joules = picojoules.map(|pj| pj * times);
        line(
            "energy",
            "energy of 64 GB in compute units",
            joules,
            "J",
            published,
            picojoules.map_or(Vec::new(), of),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_half_is_a_report_and_both_are_one() {
        let clocks = || {
            let (what, paper) = ("64 GB: clocks", Some(THESIS_CYCLES as f64));
            vec![Line::new("Section 6.4", "clocks", what, 12_833_320_000.0, "clocks", paper, By::Simulated)]
        };
        let gates = || {
            vec![Line::new("Section 6.4", "period", "shortest clock", 3500.0, "ps", None, By::Synthesised)]
        };
        let missing = || Err(anyhow::anyhow!("not there"));
        for (simulated, synthesised, note) in [
            (true, true, None),
            (false, true, Some("without simulation: not there")),
            (true, false, Some("without synthesis: not there")),
        ] {
            let clocks = if simulated { Ok(clocks()) } else { missing() };
            let gates = if synthesised { Ok(gates()) } else { missing() };
            let report = together(clocks, gates).expect("half of it");
            assert_eq!(report.note(), note);
            let document = report.document();
            let has = |id: &str| document["rows"].as_array().expect("rows").iter().any(|row| row["id"] == id);
            assert_eq!((has("clocks"), has("period")), (simulated, synthesised));
            let text = report.text();
            let line = text.lines().find(|line| line.starts_with("64 GB: clocks "));
            let words = line.map(|line| line.split_whitespace().skip(3).collect::<Vec<_>>());
            assert_eq!(words, simulated.then(|| vec!["12833320000", "clocks", "12833318209", "1.00000"]));
        }
        assert_eq!(together(missing(), missing()).expect_err("neither").to_string(), "not there");
    }
}
