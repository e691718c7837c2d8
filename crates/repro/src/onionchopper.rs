//! The thesis's tables and figures (Shay 2023): Table 3.1 from our own OnionPIR; Table 3.2, Figures 6-1 to 6-13 and section 6.4 by the model
//! and its sweeps.
//!
//! Figures survive in the text as captions alone, so what is compared is what the text says of them. Pictures are drawn again.

use std::path::PathBuf;

use anyhow::Context;
use blindcore_explore::plot::Plot;
use blindcore_explore::{Options as SweepOptions, Results, Sweep, run};
use blindcore_files::{Access, new_file};
use blindcore_model::chip::{
    Cost, Kind, Problem, Space, Tables, Tensor, Tries, cost, machine, random, search, thesis_mapping,
};
use blindcore_units::{Progress, Unit};
use serde_json::{Value, json};

use crate::table::Table;

mod cpu;
pub mod operation;
mod pictures;
pub mod profile;

/// What is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Leave the CPU out: what is left is the same on every machine.
    pub no_cpu: bool,
    /// Where pictures are written; none are, if it is not said.
    pub pictures: Option<PathBuf>,
}

/// A figure of ours, and the thesis's where the text has one.
#[derive(Clone, Debug)]
struct Line {
    of: &'static str,
    id: String,
    what: String,
    value: Option<f64>,
    unit: &'static str,
    published: Option<f64>,
    /// `counted`, `calibrated`, `synthesised`, `tables`, `measured`.
    kind: &'static str,
}

#[derive(Default)]
struct Lines(Vec<Line>);

impl Lines {
    fn add(
        &mut self,
        of: &'static str,
        id: &str,
        what: &str,
        value: impl Into<Option<f64>>,
        unit: &'static str,
        published: impl Into<Option<f64>>,
        kind: &'static str,
    ) {
        let (value, published) = (value.into(), published.into());
        self.0.push(Line { of, id: id.into(), what: what.into(), value, unit, published, kind });
    }
}

/// The three sweeps and what they gave.
struct Sweeps {
    initial: (Sweep, Results),
    refined: (Sweep, Results),
    sizes: (Sweep, Results),
}

/// What the text leaves out or contradicts, a line each.
const MISSING: [&str; 8] = [
    "Figures 6-1 to 6-5, 6-7 to 6-13: axes, ticks and single points can't be read from the text; what is compared is what it says of them.",
    "6.1 prints 12,862,500,500 cycles as the SSD's bound, whose own formula gives 12,862,500,000; section 6.4's cycles lie below it, since \
     they leave C out and round the rate to 0.67 words.",
    "Chapter 8 has 26.45 W where section 6.4 has 26.35; 169.09 J over 6.41666 s are 26.352.",
    "271.9 times needs 6.4 s; with 6.4167 s it is 271.2.",
    "No picojoule is printed. Joules of the calibrated column are fitted to section 6.4's shares and predict nothing.",
    "Figure 6-6: the exhaustive search ranks 2 KB below 4 KB of SRAM, for section 6.3's tiles need 832 bytes; 6.2 has 4 KB.",
    "FastPIR has neither columns nor plaintexts a column in Table 3.2; 1,024 plaintexts are taken, so that it has 8 columns at 512 MB: its \
     energy is the worst there only below 16, and with the same columns at every size it would not come near the SSD's rate.",
    "Figures 6-7 to 6-13: sizes are taken to double from 512 MB to 64 GB; 29 minutes at 64 GB are 37.7 MiB/s, against 650 MB/s in 3.1.",
];

/// Of what Table 3.1 is made beside the others.
const PROFILED: profile::Options = profile::Options { gib: 1.0, disk: None };

/// Every table and figure.
///
/// # Errors
/// A picture can't be written, or memory for Table 3.1 can't be had.
pub fn make(options: &Options, progress: &mut dyn Progress) -> anyhow::Result<Table> {
    let one = |name: &str, progress: &mut dyn Progress| -> anyhow::Result<(Sweep, Results)> {
        let sweep = Sweep::preset(name).context("a preset is missing; report this")?;
        let results = run(&sweep, &SweepOptions::default(), progress)?;
        Ok((sweep, results))
    };
    let sweeps = Sweeps {
        refined: one("thesis-refined", progress)?,
        sizes: one("thesis-sizes", progress)?,
        initial: one("thesis-initial", progress)?,
    };
    let profiled = if options.no_cpu { Vec::new() } else { profile::both(&PROFILED, progress)? };
    let mut lines = Lines::default();
    profile::lines(&mut lines, &profiled);
    shapes(&mut lines);
    initial(&mut lines, &sweeps.initial.1);
    refined(&mut lines, &sweeps.refined.1);
    mapping(&mut lines, progress)?;
    let speed = if options.no_cpu {
        None
    } else {
        progress.at("measuring the CPU", 0, None, Unit::Items);
        Some(cpu::speed()?)
    };
    statistics(&mut lines, speed)?;
    sizes(&mut lines, &sweeps.sizes, speed);
    if let Some(folder) = &options.pictures {
        std::fs::create_dir_all(folder).with_context(|| {
            format!("--pictures {}: the folder can't be made; name another", folder.display())
        })?;
        for plot in pictures::all(&sweeps, speed) {
            write(&plot, folder)?;
        }
    }
    let mut notes = profile::notes(&profiled);
    notes.extend(MISSING.map(str::to_owned));
    notes.push(match speed {
        None => "The CPU was left out; without --no-cpu Figure 6-8's series is measured here.".into(),
        Some(_) => "Figure 6-8's CPU series is the basic operation, measured on this machine at 512 MiB in memory and taken to be as fast \
                    at every size; it is not OnionPIR as a whole."
            .into(),
    });
    Ok(table(lines.0, notes))
}

fn write(plot: &Plot, folder: &std::path::Path) -> anyhow::Result<()> {
    new_file::write(&folder.join(format!("{}.svg", plot.name)), Access::Everyone, plot.svg()?.as_bytes())?;
    Ok(new_file::write(&folder.join(format!("{}.png", plot.name)), Access::Everyone, &plot.png()?)?)
}

/// Table 3.2 at 64 GB, and section 6.1's words of OnionPIR.
fn shapes(lines: &mut Lines) {
    let schemes = [
        (
            "onionpir",
            "OnionPIR",
            Problem::onionpir(64.0),
            Some([8_388_608.0, 8_589_934_592.0, 33_554_432.0, 17_179_869_184.0]),
        ),
        ("sealpir", "SEALPIR", Problem::sealpir(64.0), None),
        ("simplepir", "SimplePIR", Problem::simplepir(64.0), None),
        ("fastpir", "FastPIR", Problem::fastpir(64.0, 1024), None),
    ];
    for (id, name, problem, published) in schemes {
        let words = Tensor::ALL.map(|t| problem.words(t) as f64);
        for (at, what) in ["A", "B", "C"].into_iter().enumerate() {
            let text = format!("{name}, 64 GB: words of {what}");
            lines.add(
                "Table 3.2",
                &format!("shape.{id}.{what}"),
                &text,
                words[at],
                "words",
                published.map(|p| p[at]),
                "counted",
            );
        }
        let text = format!("{name}, 64 GB: multiply-accumulates");
        let macs = published.map(|p| p[3]);
        lines.add(
            "Table 3.2",
            &format!("shape.{id}.macs"),
            &text,
            problem.points() as f64,
            "",
            macs,
            "counted",
        );
    }
}

/// Values of a column that are there.
fn column(results: &Results, name: &str) -> Vec<f64> {
    results.table.numbers(name).into_iter().map(|x| x.unwrap_or(f64::NAN)).collect()
}

const JOULES: &str = "joules_calibrated";
const AREA: &str = "mm2_calibrated";
/// Seeds of the search at random.
const SEEDS: u64 = 6;
/// Section 6.4's clocks.
const CYCLES: f64 = 12_833_318_209.0;

fn initial(lines: &mut Lines, results: &Results) {
    let (cycles, lanes) = (column(results, "cycles"), column(results, "register_files"));
    let (srams, bytes, registers) =
        (column(results, "srams"), column(results, "sram_bytes"), column(results, "registers"));
    let joules = column(results, JOULES);
    let count = |of: &dyn Fn(usize) -> bool| (0..cycles.len()).filter(|at| of(*at)).count() as f64;
    let f = "Figure 6-1";
    lines.add(f, "6-1.points", "machines", cycles.len() as f64, "", 4896.0, "counted");
    let one = |at: usize| lanes[at] == 1.0;
    let slow = (0..cycles.len()).filter(|at| one(*at)).map(|at| cycles[at]).fold(0.0, f64::max);
    lines.add(f, "6-1.one", "one compute unit: cycles", slow, "", 17_179_869_184.0, "counted");
    let fast = (0..cycles.len()).filter(|at| !one(*at)).map(|at| cycles[at]);
    lines.add(
        f,
        "6-1.more",
        "two or more: cycles at most",
        fast.clone().fold(0.0, f64::max),
        "",
        CYCLES,
        "counted",
    );
    lines.add(
        f,
        "6-1.least",
        "two or more: cycles at least",
        fast.fold(f64::INFINITY, f64::min),
        "",
        CYCLES,
        "counted",
    );
    let other = |at: usize| cycles[at] != slow && cycles[at] != CYCLES;
    lines.add(f, "6-1.other", "machines in neither cluster", count(&other), "", 0.0, "counted");
    let bound = (8_388_608.0 + 8_589_934_592.0 + 33_554_432.0) * 8.0 / (10.0 * f64::from(1 << 30)) * 2e9;
    lines.add(f, "6-1.bound", "the SSD's bound by its own formula", bound, "", 12_862_500_500.0, "counted");
    // One SRAM of twice the size beside two, with two lanes.
    let pairs: Vec<(f64, f64)> = (0..cycles.len())
        .filter(|at| srams[*at] == 1.0 && lanes[*at] == 2.0)
        .filter_map(|at| {
            let two = |o: &usize| {
                srams[*o] == 2.0
                    && lanes[*o] == 2.0
                    && registers[*o] == registers[at]
                    && 2.0 * bytes[*o] == bytes[at]
            };
            Some((joules[at], joules[(0..cycles.len()).find(two)?]))
        })
        .collect();
    let less = pairs.iter().filter(|(one, two)| two < one).count() as f64 / pairs.len() as f64;
    lines.add(
        f,
        "6-1.split",
        "share of SRAMs that take less energy as two halves",
        less,
        "",
        1.0,
        "calibrated",
    );
}

fn refined(lines: &mut Lines, results: &Results) {
    let (cycles, registers, bytes) =
        (column(results, "cycles"), column(results, "registers"), column(results, "sram_bytes"));
    let (joules, areas) = (column(results, JOULES), column(results, AREA));
    let all = 0..cycles.len();
    let slow: Vec<usize> = all.clone().filter(|at| cycles[*at] > CYCLES).collect();
    let fast: Vec<usize> = all.clone().filter(|at| cycles[*at] <= CYCLES).collect();
    lines.add("Figure 6-2", "6-2.points", "machines", cycles.len() as f64, "", 176.0, "counted");
    let largest = slow.iter().map(|at| registers[*at]).fold(0.0, f64::max);
    lines.add("Figure 6-2", "6-2.slow", "most registers of a slow machine", largest, "", 4.0, "counted");
    lines.add("Figure 6-2", "6-2.count", "slow machines", slow.len() as f64, "", 16.0, "counted");
    let worst = slow.iter().map(|at| cycles[*at]).fold(0.0, f64::max);
    lines.add(
        "Figure 6-2",
        "6-2.worst",
        "the slowest: cycles of the fast ones'",
        worst / CYCLES,
        "",
        None,
        "counted",
    );
    lines.add("Figure 6-3", "6-3.points", "machines", cycles.len() as f64, "", 176.0, "calibrated");
    // A slow machine beside the one with eight registers.
    let more = slow.iter().filter(|at| {
        let peer = all.clone().find(|o| registers[*o] == 8.0 && bytes[*o] == bytes[**at]);
        peer.is_some_and(|peer| joules[**at] > joules[peer])
    });
    let share = more.count() as f64 / slow.len().max(1) as f64;
    let what = "share of slow machines that take more energy than with eight registers";
    lines.add("Figure 6-3", "6-3.more", what, share, "", 1.0, "calibrated");
    lines.add("Figure 6-4", "6-4.points", "fast machines", fast.len() as f64, "", 160.0, "counted");
    let trend = rank_correlation(&fast.iter().map(|at| (areas[*at], joules[*at])).collect::<Vec<_>>());
    lines.add(
        "Figure 6-4",
        "6-4.trend",
        "rank correlation of area and energy (published: rising)",
        trend,
        "",
        None,
        "calibrated",
    );
    for kib in [2.0, 4.0] {
        let of = |at: &&usize| bytes[**at] == kib * 1024.0;
        let least = fast.iter().filter(of).min_by(|a, b| joules[**a].total_cmp(&joules[**b])).copied();
        let what = format!("SRAM of {kib} KiB: registers with the least energy (published: 16 or 32)");
        let id = format!("6-5.least.{kib}");
        let depth = least.map(|at| registers[at]);
        // The text has both: the nearer one.
        let published = if depth.is_some_and(|depth| depth < 24.0) { 16.0 } else { 32.0 };
        lines.add("Figure 6-5", &id, &what, depth, "", published, "calibrated");
        let at_most = fast.iter().filter(of).max_by(|a, b| registers[**a].total_cmp(&registers[**b]));
        let rise = at_most.and_then(|most| Some(joules[*most] / joules[least?]));
        let what = format!("SRAM of {kib} KiB: energy at 4,096 registers of the least (published: rising)");
        lines.add("Figure 6-5", &format!("6-5.rise.{kib}"), &what, rise, "", None, "calibrated");
    }
    let best =
        fast.iter().min_by(|a, b| (areas[**a] * joules[**a]).total_cmp(&(areas[**b] * joules[**b]))).copied();
    let f = "Figure 6-6";
    lines.add(
        f,
        "6-6.sram",
        "the least area x energy: bytes of an SRAM",
        best.map(|at| bytes[at]),
        "B",
        4096.0,
        "calibrated",
    );
    lines.add(
        f,
        "6-6.registers",
        "the least area x energy: registers",
        best.map(|at| registers[at]),
        "",
        32.0,
        "calibrated",
    );
    let published = all.clone().find(|at| bytes[*at] == 4096.0 && registers[*at] == 32.0);
    let ratio = published.and_then(|p| Some(areas[p] * joules[p] / (areas[best?] * joules[best?])));
    lines.add(
        f,
        "6-6.published",
        "area x energy of the published optimum, of ours",
        ratio,
        "",
        1.0,
        "calibrated",
    );
}

/// Spearman's: how alike two orders are, from -1 to 1.
fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let ranks = |of: &dyn Fn(usize) -> f64| {
        let below = |at: usize| (0..pairs.len()).filter(|o| of(*o) < of(at)).count() as f64;
        let same = |at: usize| (0..pairs.len()).filter(|o| of(*o) == of(at)).count() as f64;
        (0..pairs.len()).map(|at| below(at) + (same(at) - 1.0) / 2.0).collect::<Vec<f64>>()
    };
    let (a, b) = (ranks(&|at| pairs[at].0), ranks(&|at| pairs[at].1));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let both = (product(&a, &a) * product(&b, &b)).sqrt();
    (both > 0.0).then(|| product(&a, &b) / both)
}

/// The published mapping on the published machine, with every table.
fn published_run() -> anyhow::Result<Cost> {
    let chip = machine("thesis").context("the thesis's machine is missing; report this")?;
    Ok(cost(&Problem::onionpir(64.0), &chip, &thesis_mapping(), &Tables::shipped_all())?)
}

/// Section 6.3's tiles, and what the thesis's own search and ours find.
fn mapping(lines: &mut Lines, progress: &mut dyn Progress) -> anyhow::Result<()> {
    let run = published_run()?;
    let printed = [
        ("SSD", [8_388_608.0, 8_589_934_592.0, 33_554_432.0]),
        ("DRAM", [262_144.0, 268_435_456.0, 1_048_576.0]),
        ("SRAM", [32.0, 64.0, 8.0]),
        ("RF", [8.0, 16.0, 2.0]),
    ];
    for (level, (name, words)) in run.traffic.iter().zip(printed) {
        for (at, tensor) in ["A", "B", "C"].into_iter().enumerate() {
            let what = format!("{name}: words of {tensor} in a tile");
            let id = format!("6.3.{name}.{tensor}");
            lines.add("Section 6.3", &id, &what, level.tile[at] as f64, "words", words[at], "counted");
        }
    }
    let (chip, problem) = (machine("thesis").context("a machine is missing")?, Problem::onionpir(64.0));
    let tables = [Tables::shipped("calibrated").context("a table is missing")?];
    let joules = |cost: &Cost| cost.prices[0].joules();
    let best = search(&problem, &chip, &tables, &Space::default())?;
    let theirs = joules(&run);
    let f = "Section 6.3";
    lines.add(
        f,
        "6.3.exhaustive.cycles",
        "exhaustive search: cycles",
        best.cost.cycles as f64,
        "",
        CYCLES,
        "counted",
    );
    let energy = joules(&best.cost) / theirs;
    let what = "exhaustive search: energy of the published mapping's";
    lines.add(f, "6.3.exhaustive.energy", what, energy, "", 1.0, "calibrated");
    let mut drawn = Vec::new();
    for seed in 1..=SEEDS {
        progress.at("searching at random", seed, Some(SEEDS), Unit::Items);
        drawn.push(random(&problem, &chip, &tables, &Tries { seed, ..Tries::default() })?);
    }
    let reach = drawn.iter().filter(|found| found.cost.cycles == best.cost.cycles).count() as f64;
    let what = format!("at random until 500 failures, {SEEDS} seeds: those that find the fewest cycles");
    lines.add(f, "6.3.random.reach", &what, reach, "", None, "counted");
    let most = drawn.iter().map(|found| found.cost.cycles as f64).fold(0.0, f64::max);
    lines.add(f, "6.3.random.cycles", "at random: cycles at most", most, "", CYCLES, "counted");
    let energies = drawn.iter().map(|found| joules(&found.cost) / theirs);
    let (least, most) = energies.fold((f64::INFINITY, 0.0f64), |(a, b), e| (a.min(e), b.max(e)));
    lines.add(
        f,
        "6.3.random.least",
        "at random: least energy of the published mapping's",
        least,
        "",
        1.0,
        "calibrated",
    );
    lines.add(
        f,
        "6.3.random.most",
        "at random: most energy of the published mapping's",
        most,
        "",
        1.0,
        "calibrated",
    );
    Ok(())
}

fn statistics(lines: &mut Lines, cpu: Option<f64>) -> anyhow::Result<()> {
    let run = published_run()?;
    let s = "Section 6.4";
    lines.add(s, "6.4.cycles", "cycles", run.cycles as f64, "", CYCLES, "counted");
    lines.add(s, "6.4.seconds", "seconds at 2 GHz", run.seconds, "s", 6.4, "counted");
    lines.add(
        s,
        "6.4.speedup",
        "times the published CPU's 29 minutes (published, other machine)",
        1740.0 / run.seconds,
        "",
        271.9,
        "counted",
    );
    let here = cpu.map(|bytes| 64.0 * f64::from(1 << 30) / bytes / run.seconds);
    lines.add(s, "6.4.speedup.here", "times this CPU's basic operation", here, "", None, "measured");
    for price in &run.prices {
        let kind = match price.kind {
            Kind::Calibrated => "calibrated",
            Kind::Synthesised => "synthesised",
            Kind::Tables => "tables",
        };
        let name = &price.table;
        let of = |part: &str| price.parts.iter().find(|p| p.part == part);
        let (lanes, ssd) = (of("lanes").and_then(|p| p.joules), of("SSD").and_then(|p| p.joules));
        let whole = price.missing().is_empty();
        let all = whole.then(|| price.joules());
        let line = |id: &str, what: &str, value: Option<f64>, unit, published: f64, lines: &mut Lines| {
            // Memories were not synthesised, so those tables have no whole.
            if value.is_none() && price.kind == Kind::Synthesised {
                return;
            }
            let (id, what) = (format!("6.4.{name}.{id}"), format!("{name}: {what}"));
            lines.add(s, &id, &what, value, unit, published, kind);
        };
        line("joules", "energy", all, "J", 169.09, lines);
        line("watts", "power", all.map(|j| j / run.seconds), "W", 26.35, lines);
        line("lanes.joules", "energy of the compute units", lanes, "J", 169.09 * 0.3343, lines);
        line(
            "lanes",
            "share of energy in compute units",
            all.and_then(|j| Some(lanes? / j)),
            "",
            0.3343,
            lines,
        );
        line("ssd", "share of energy in the SSD", all.and_then(|j| Some(ssd? / j)), "", 0.6499, lines);
        let area = whole.then(|| price.mm2());
        line("mm2", "area", area, "mm2", 6.87, lines);
        let units = of("lanes").and_then(|p| p.mm2);
        line("lanes.mm2", "area of the compute units", units, "mm2", 6.87 * 0.9954, lines);
        let rest = area.and_then(|area| Some(area - units?));
        line("rest.mm2", "area of SRAMs and register files", rest, "mm2", 6.87 * (1.0 - 0.9954), lines);
    }
    Ok(())
}

/// Figures 6-7 to 6-13.
fn sizes(lines: &mut Lines, (sweep, results): &(Sweep, Results), cpu: Option<f64>) {
    let views = pictures::curves(sweep, results);
    let of = |scheme: &str, gib: f64| views.iter().find(|v| v.scheme == scheme && v.gib == gib);
    let (small, large) = (of("OnionPIR", 0.5), of("OnionPIR", 64.0));
    let ratio = |get: &dyn Fn(&pictures::View) -> f64| Some(get(small?) / get(large?));
    lines.add(
        "Figure 6-7",
        "6-7.small",
        "speed at 512 MB of that at 64 GB",
        ratio(&|v| v.speed),
        "",
        0.89,
        "counted",
    );
    let ssd = 0.67 * 8.0 * 2e9 / f64::from(1 << 30);
    let near = large.map(|v| v.speed / ssd);
    lines.add("Figure 6-7", "6-7.ssd", "speed at 64 GB of the SSD's", near, "", 1.0, "counted");
    let four = of("OnionPIR", 4.0).map(|v| v.speed / ssd);
    lines.add(
        "Figure 6-7",
        "6-7.dram",
        "speed at 4 GB, the DRAM's size, of the SSD's",
        four,
        "",
        1.0,
        "counted",
    );
    let published = 64.0 * 1024.0 / (29.0 * 60.0);
    let here = cpu.map(|bytes| bytes / f64::from(1 << 20));
    lines.add(
        "Figure 6-8",
        "6-8.cpu",
        "CPU: MiB/s (basic operation here; published: other machine)",
        here,
        "MiB/s",
        published,
        "measured",
    );
    let times = cpu.and_then(|bytes| Some(small?.speed * f64::from(1 << 30) / bytes));
    lines.add(
        "Figure 6-8",
        "6-8.times",
        "the accelerator's speed at 512 MB of the CPU's",
        times,
        "",
        None,
        "measured",
    );
    lines.add(
        "Figure 6-9",
        "6-9.small",
        "energy a GB at 512 MB of that at 64 GB",
        ratio(&|v| v.energy),
        "",
        1.08,
        "calibrated",
    );
    lines.add(
        "Figure 6-10",
        "6-10.large",
        "power at 64 GB",
        large.map(|v| v.power),
        "W",
        26.35,
        "calibrated",
    );
    lines.add(
        "Figure 6-10",
        "6-10.small",
        "power at 512 MB (published: lower)",
        small.map(|v| v.power),
        "W",
        None,
        "calibrated",
    );
    let schemes = ["OnionPIR", "SEALPIR", "SimplePIR", "FastPIR"];
    for scheme in schemes {
        let at = |gib| of(scheme, gib);
        let what = |what: &str| format!("{scheme}, 64 GB: {what}");
        let near = at(64.0).map(|v| v.speed / ssd);
        let text = what("speed of the SSD's (published: near it)");
        lines.add("Figure 6-11", &format!("6-11.{scheme}"), &text, near, "", 1.0, "counted");
        let (energy, power) = (at(64.0).map(|v| v.energy), at(64.0).map(|v| v.power));
        lines.add(
            "Figure 6-12",
            &format!("6-12.{scheme}"),
            &what("energy a GiB"),
            energy,
            "J",
            None,
            "calibrated",
        );
        lines.add("Figure 6-13", &format!("6-13.{scheme}"), &what("power"), power, "W", None, "calibrated");
    }
    let rank = |gib: f64, most: bool| {
        let energy = |scheme: &&str| of(scheme, gib).map_or(0.0, |v| v.energy);
        let order = schemes.iter().max_by(|a, b| {
            let order = energy(a).total_cmp(&energy(b));
            if most { order } else { order.reverse() }
        });
        order.copied()
    };
    let lowest = f64::from(u8::from(rank(64.0, false) == Some("SimplePIR")));
    lines.add(
        "Figure 6-12",
        "6-12.lowest",
        "SimplePIR takes the least energy at 64 GB (1: yes)",
        lowest,
        "",
        1.0,
        "calibrated",
    );
    let worst = f64::from(u8::from(rank(0.5, true) == Some("FastPIR")));
    lines.add(
        "Figure 6-12",
        "6-12.worst",
        "FastPIR takes the most energy at 512 MB (1: yes)",
        worst,
        "",
        1.0,
        "calibrated",
    );
}

/// A figure for people.
fn shown(x: f64) -> String {
    match x.abs() {
        a if a >= 1.0 && x.fract() == 0.0 => blindcore_units::count(x as u64),
        1e3.. => blindcore_units::count(x.round() as u64),
        100.0.. => format!("{x:.2}"),
        0.0 => "0".into(),
        _ => format!("{x:.4}"),
    }
}

/// The order of the thesis, in which a figure's lines stand together.
fn order(of: &str) -> (u8, u32) {
    let last = of.rsplit(['-', '.', ' ']).next().and_then(|n| n.parse().ok()).unwrap_or(0);
    match of {
        "Section 3.1" => (0, 0),
        _ if of.starts_with("Table") => (0, last),
        "Section 6.3" => (2, last),
        "Section 6.4" => (3, last),
        _ if last <= 6 => (1, last),
        _ => (4, last),
    }
}

fn table(mut lines: Vec<Line>, notes: Vec<String>) -> Table {
    lines.sort_by_key(|l| order(l.of));
    let ratio = |l: &Line| l.value.zip(l.published).filter(|(_, p)| *p != 0.0).map(|(v, p)| v / p);
    let row = |l: &Line| {
        json!({
            "of": l.of, "id": format!("onionchopper.{}", l.id), "what": l.what, "value": l.value, "unit": l.unit,
            "published": l.published, "ratio": ratio(l), "kind": l.kind,
        })
    };
    let mut figures: Vec<&str> = lines.iter().map(|l| l.of).collect();
    figures.dedup();
    let near = |l: &&Line| match (l.value, l.published) {
        // None where there should be none.
        (Some(v), Some(0.0)) => v == 0.0,
        _ => ratio(l).is_some_and(|r| (r - 1.0).abs() <= 0.15),
    };
    let compared = lines.iter().filter(|l| l.value.is_some() && l.published.is_some());
    // Other tables' joules are no attempt at the thesis's.
    let compared = compared.filter(|l| l.kind != "tables" && l.kind != "synthesised");
    let (all, within) = (compared.clone().count(), compared.filter(near).count());
    let mut text = String::from("# OnionChopper (Shay 2023)\n");
    let mut before = "";
    for l in &lines {
        if l.of != before {
            text += &format!("\n## {}\n\n| | here | published | ratio | by |\n|---|---|---|---|---|\n", l.of);
            before = l.of;
        }
        let of = |x: Option<f64>| {
            x.map_or("-".into(), |x| format!("{} {}", shown(x), l.unit).trim_end().to_owned())
        };
        let ratio = ratio(l).map_or(String::new(), |r| format!("{r:.4}"));
        text += &format!("| {} | {} | {} | {ratio} | {} |\n", l.what, of(l.value), of(l.published), l.kind);
    }
    text += &format!(
        "\n{within} of {all} published figures are within 15 %, calibrated ones among them; other tables' joules and mm2 are not counted.\n\n## What the text leaves out\n\n"
    );
    notes.iter().for_each(|note| text += &format!("- {note}\n"));
    let document = json!({
        "rows": lines.iter().map(row).collect::<Vec<Value>>(),
        "figures": figures, "compared": all, "within_15_percent": within, "missing": notes,
    });
    Table { document, text, notes: Vec::new() }
}
