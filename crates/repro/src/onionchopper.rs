//! The thesis's tables and figures (Shay 2023): Table 2.1 counted; Table 3.1 from our own OnionPIR; Table 3.2, Figures 6-1 to 6-13 and section 6.4 by the model
//! and its sweeps.
//!
//! Figures survive in the text as captions alone, so what is compared is what the text says of them. Pictures are drawn again.

use std::path::PathBuf;

use anyhow::Context;
use blindcore_explore::plot::Plot;
use blindcore_explore::{Options as SweepOptions, Results, Sweep, run};
use blindcore_files::{Access, Existing, new_file};
use blindcore_model::chip::{Cost, Problem, Space, Tables, Tensor, Tries, machine, random, reached, search};
use blindcore_units::{Progress, Unit};
use serde_json::{Value, json};

use crate::rows::{self, By, Column, Label, Row};
use crate::table::Table;

mod cpu;
pub mod operation;
mod operations;
mod pictures;
mod priced;
pub mod profile;

pub(crate) use priced::priced;
use priced::{published_run, seconds_at};

/// What is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Leave the CPU out: what is left is the same on every machine.
    pub no_cpu: bool,
    /// Where pictures are written; none are, if it is not said.
    pub pictures: Option<PathBuf>,
}

/// The paper, in the source of a published figure.
const PAPER: &str = "Shay 2023";

#[derive(Default)]
struct Lines(Vec<Row>);

impl Lines {
    fn add(
        &mut self,
        of: &'static str,
        id: &str,
        what: &str,
        value: impl Into<Option<f64>>,
        unit: &'static str,
        published: impl Into<Option<f64>>,
        by: By,
    ) -> &mut Row {
        let (id, of, what, paper) = (format!("onionchopper.{id}"), of.into(), what.into(), PAPER);
        let (value, published) = (value.into(), published.into());
        self.0.push(Row {
            of,
            id,
            what,
            value,
            unit,
            published,
            paper,
            by,
            label: None,
            columns: Vec::new(),
        });
        self.0.last_mut().expect("one was pushed")
    }
}

/// The three sweeps and what they gave.
struct Sweeps {
    initial: (Sweep, Results),
    refined: (Sweep, Results),
    sizes: (Sweep, Results),
}

/// What the text leaves out or contradicts, a line each.
const MISSING: [&str; 9] = [
    "Table 2.1: an external product takes each of l digits of two polynomials by a mask and a body, 4 l products; 2 l is half of it. A \
     ciphertext's first four products are modulo the ring's primes; over the integers they take further primes, four products each.",
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
    operations::lines(&mut lines)?;
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
    let write = |ending: &str, bytes: &[u8]| {
        let place = folder.join(format!("{}.{ending}", plot.name));
        new_file::write(&place, Access::Everyone, Existing::Replace, bytes)
    };
    write("svg", plot.svg()?.as_bytes())?;
    Ok(write("png", &plot.png()?)?)
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
                By::Counted,
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
            By::Counted,
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
    lines.add(f, "6-1.points", "machines", cycles.len() as f64, "", 4896.0, By::Counted);
    let one = |at: usize| lanes[at] == 1.0;
    let slow = (0..cycles.len()).filter(|at| one(*at)).map(|at| cycles[at]).fold(0.0, f64::max);
    lines.add(f, "6-1.one", "one compute unit: cycles", slow, "", 17_179_869_184.0, By::Counted);
    let fast = (0..cycles.len()).filter(|at| !one(*at)).map(|at| cycles[at]);
    lines.add(
        f,
        "6-1.more",
        "two or more: cycles at most",
        fast.clone().fold(0.0, f64::max),
        "",
        CYCLES,
        By::Counted,
    );
    lines.add(
        f,
        "6-1.least",
        "two or more: cycles at least",
        fast.fold(f64::INFINITY, f64::min),
        "",
        CYCLES,
        By::Counted,
    );
    let other = |at: usize| cycles[at] != slow && cycles[at] != CYCLES;
    lines.add(f, "6-1.other", "machines in neither cluster", count(&other), "", 0.0, By::Counted);
    let bound = (8_388_608.0 + 8_589_934_592.0 + 33_554_432.0) * 8.0 / (10.0 * f64::from(1 << 30)) * 2e9;
    lines.add(f, "6-1.bound", "the SSD's bound by its own formula", bound, "", 12_862_500_500.0, By::Counted);
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
        By::Calibrated,
    );
}

fn refined(lines: &mut Lines, results: &Results) {
    let (cycles, registers, bytes) =
        (column(results, "cycles"), column(results, "registers"), column(results, "sram_bytes"));
    let (joules, areas) = (column(results, JOULES), column(results, AREA));
    let all = 0..cycles.len();
    let slow: Vec<usize> = all.clone().filter(|at| cycles[*at] > CYCLES).collect();
    let fast: Vec<usize> = all.clone().filter(|at| cycles[*at] <= CYCLES).collect();
    lines.add("Figure 6-2", "6-2.points", "machines", cycles.len() as f64, "", 176.0, By::Counted);
    let largest = slow.iter().map(|at| registers[*at]).fold(0.0, f64::max);
    lines.add("Figure 6-2", "6-2.slow", "most registers of a slow machine", largest, "", 4.0, By::Counted);
    lines.add("Figure 6-2", "6-2.count", "slow machines", slow.len() as f64, "", 16.0, By::Counted);
    let worst = slow.iter().map(|at| cycles[*at]).fold(0.0, f64::max);
    lines.add(
        "Figure 6-2",
        "6-2.worst",
        "the slowest: cycles of the fast ones'",
        worst / CYCLES,
        "",
        None,
        By::Counted,
    );
    lines.add("Figure 6-3", "6-3.points", "machines", cycles.len() as f64, "", 176.0, By::Calibrated);
    // A slow machine beside the one with eight registers.
    let more = slow.iter().filter(|at| {
        let peer = all.clone().find(|o| registers[*o] == 8.0 && bytes[*o] == bytes[**at]);
        peer.is_some_and(|peer| joules[**at] > joules[peer])
    });
    let share = more.count() as f64 / slow.len().max(1) as f64;
    let what = "share of slow machines that take more energy than with eight registers";
    lines.add("Figure 6-3", "6-3.more", what, share, "", 1.0, By::Calibrated);
    lines.add("Figure 6-4", "6-4.points", "fast machines", fast.len() as f64, "", 160.0, By::Counted);
    let trend = rank_correlation(&fast.iter().map(|at| (areas[*at], joules[*at])).collect::<Vec<_>>());
    lines.add(
        "Figure 6-4",
        "6-4.trend",
        "rank correlation of area and energy (published: rising)",
        trend,
        "",
        None,
        By::Calibrated,
    );
    for kib in [2.0, 4.0] {
        let of = |at: &&usize| bytes[**at] == kib * 1024.0;
        let least = fast.iter().filter(of).min_by(|a, b| joules[**a].total_cmp(&joules[**b])).copied();
        let what = format!("SRAM of {kib} KiB: registers with the least energy (published: 16 or 32)");
        let id = format!("6-5.least.{kib}");
        let depth = least.map(|at| registers[at]);
        // The text has both: the nearer one.
        let published = if depth.is_some_and(|depth| depth < 24.0) { 16.0 } else { 32.0 };
        lines.add("Figure 6-5", &id, &what, depth, "", published, By::Calibrated);
        let at_most = fast.iter().filter(of).max_by(|a, b| registers[**a].total_cmp(&registers[**b]));
        let rise = at_most.and_then(|most| Some(joules[*most] / joules[least?]));
        let what = format!("SRAM of {kib} KiB: energy at 4,096 registers of the least (published: rising)");
        lines.add("Figure 6-5", &format!("6-5.rise.{kib}"), &what, rise, "", None, By::Calibrated);
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
        By::Calibrated,
    );
    lines.add(
        f,
        "6-6.registers",
        "the least area x energy: registers",
        best.map(|at| registers[at]),
        "",
        32.0,
        By::Calibrated,
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
        By::Calibrated,
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
        let tile = level.words.map_or([0; 3], |words| words.tile);
        for (at, tensor) in ["A", "B", "C"].into_iter().enumerate() {
            let what = format!("{name}: words of {tensor} in a tile");
            let id = format!("6.3.{name}.{tensor}");
            lines.add("Section 6.3", &id, &what, tile[at] as f64, "words", words[at], By::Counted);
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
        By::Counted,
    );
    let energy = joules(&best.cost) / theirs;
    let what = "exhaustive search: energy of the published mapping's";
    lines.add(f, "6.3.exhaustive.energy", what, energy, "", 1.0, By::Calibrated);
    let mut drawn = Vec::new();
    for seed in 1..=SEEDS {
        progress.at("searching at random", seed, Some(SEEDS), Unit::Items);
        drawn.push(random(&problem, &chip, &tables, &Tries { seed, ..Tries::default() })?);
    }
    let reach = drawn.iter().filter(|found| found.cost.cycles == best.cost.cycles).count() as f64;
    let what = format!("at random until 500 failures, {SEEDS} seeds: those that find the fewest cycles");
    lines.add(f, "6.3.random.reach", &what, reach, "", None, By::Counted);
    let most = drawn.iter().map(|found| found.cost.cycles as f64).fold(0.0, f64::max);
    lines.add(f, "6.3.random.cycles", "at random: cycles at most", most, "", CYCLES, By::Counted);
    let energies = drawn.iter().map(|found| joules(&found.cost) / theirs);
    let (least, most) = energies.fold((f64::INFINITY, 0.0f64), |(a, b), e| (a.min(e), b.max(e)));
    lines.add(
        f,
        "6.3.random.least",
        "at random: least energy of the published mapping's",
        least,
        "",
        1.0,
        By::Calibrated,
    );
    lines.add(
        f,
        "6.3.random.most",
        "at random: most energy of the published mapping's",
        most,
        "",
        1.0,
        By::Calibrated,
    );
    Ok(())
}

fn statistics(lines: &mut Lines, cpu: Option<f64>) -> anyhow::Result<()> {
    let run = published_run()?;
    let s = "Section 6.4";
    lines.add(s, "6.4.cycles", "cycles", run.cycles as f64, "", CYCLES, By::Counted);
    let slower = seconds_at(reached("onionchopper").context("the chip's synthesis is missing")?.clock)?;
    lines.add(s, "6.4.seconds", "seconds", run.seconds, "s", 6.4, By::Counted).label =
        Some(Label::clock(2e9, "onionchopper", |_| slower));
    let here = cpu.map(|bytes| 64.0 * f64::from(1 << 30) / bytes / run.seconds);
    let what = "times the published CPU's 29 minutes";
    lines.add(s, "6.4.speedup", what, 1740.0 / run.seconds, "", 271.9, By::Counted).label =
        Some(Label::OtherMachine { here });
    lines.add(s, "6.4.speedup.here", "times this CPU's basic operation", here, "", None, By::Measured);
    lines.0.extend(priced()?);
    Ok(())
}

/// Figures 6-7 to 6-13.
fn sizes(lines: &mut Lines, (sweep, results): &(Sweep, Results), cpu: Option<f64>) {
    // Of each table that has every part, the calibrated one first.
    let whole: Vec<(&Tables, Vec<pictures::View>)> = {
        let joules = |t: &Tables| format!("joules_{}", t.name);
        let has = |t: &&Tables| results.table.columns.iter().any(|(name, _)| *name == joules(t));
        let view = |t| (t, pictures::curves(sweep, results, &joules(t)));
        sweep.tables.iter().filter(has).map(view).collect()
    };
    let views = &whole[0].1[..];
    fn of<'a>(views: &'a [pictures::View], scheme: &str, gib: f64) -> Option<&'a pictures::View> {
        views.iter().find(|v| v.scheme == scheme && v.gib == gib)
    }
    let by_table = |get: &dyn Fn(&[pictures::View]) -> Option<f64>| -> Vec<Column> {
        let column = |(t, views): &(&Tables, Vec<_>)| {
            Some(Column { table: t.name.clone(), kind: t.kind, value: get(views)? })
        };
        whole.iter().filter_map(column).collect()
    };
    let (small, large) = (of(views, "OnionPIR", 0.5), of(views, "OnionPIR", 64.0));
    let ratio = |get: &dyn Fn(&pictures::View) -> f64| Some(get(small?) / get(large?));
    lines.add(
        "Figure 6-7",
        "6-7.small",
        "speed at 512 MB of that at 64 GB",
        ratio(&|v| v.speed),
        "",
        0.89,
        By::Counted,
    );
    let ssd = 0.67 * 8.0 * 2e9 / f64::from(1 << 30);
    let near = large.map(|v| v.speed / ssd);
    lines.add("Figure 6-7", "6-7.ssd", "speed at 64 GB of the SSD's", near, "", 1.0, By::Counted);
    let four = of(views, "OnionPIR", 4.0).map(|v| v.speed / ssd);
    lines.add(
        "Figure 6-7",
        "6-7.dram",
        "speed at 4 GB, the DRAM's size, of the SSD's",
        four,
        "",
        1.0,
        By::Counted,
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
        By::Measured,
    );
    let times = cpu.and_then(|bytes| Some(small?.speed * f64::from(1 << 30) / bytes));
    lines.add(
        "Figure 6-8",
        "6-8.times",
        "the accelerator's speed at 512 MB of the CPU's",
        times,
        "",
        None,
        By::Measured,
    );
    let what = "energy a GB at 512 MB of that at 64 GB";
    lines.add("Figure 6-9", "6-9.small", what, ratio(&|v| v.energy), "", 1.08, By::Calibrated).columns =
        by_table(&|views| Some(of(views, "OnionPIR", 0.5)?.energy / of(views, "OnionPIR", 64.0)?.energy));
    for (id, what, gib, published) in [
        ("large", "power at 64 GB", 64.0, Some(26.35)),
        ("small", "power at 512 MB (published: lower)", 0.5, None),
    ] {
        let power = |views: &[pictures::View]| Some(of(views, "OnionPIR", gib)?.power);
        let id = format!("6-10.{id}");
        lines.add("Figure 6-10", &id, what, power(views), "W", published, By::Calibrated).columns =
            by_table(&power);
    }
    let schemes = ["OnionPIR", "SEALPIR", "SimplePIR", "FastPIR"];
    for scheme in schemes {
        let what = |what: &str| format!("{scheme}, 64 GB: {what}");
        let near = of(views, scheme, 64.0).map(|v| v.speed / ssd);
        let text = what("speed of the SSD's (published: near it)");
        lines.add("Figure 6-11", &format!("6-11.{scheme}"), &text, near, "", 1.0, By::Counted);
        let energy = |views: &[pictures::View]| Some(of(views, scheme, 64.0)?.energy);
        let power = |views: &[pictures::View]| Some(of(views, scheme, 64.0)?.power);
        let id = format!("6-12.{scheme}");
        lines
            .add("Figure 6-12", &id, &what("energy a GiB"), energy(views), "J", None, By::Calibrated)
            .columns = by_table(&energy);
        let id = format!("6-13.{scheme}");
        lines.add("Figure 6-13", &id, &what("power"), power(views), "W", None, By::Calibrated).columns =
            by_table(&power);
    }
    let rank = |gib: f64, most: bool| {
        let energy = |scheme: &&str| of(views, scheme, gib).map_or(0.0, |v| v.energy);
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
        By::Calibrated,
    );
    let worst = f64::from(u8::from(rank(0.5, true) == Some("FastPIR")));
    lines.add(
        "Figure 6-12",
        "6-12.worst",
        "FastPIR takes the most energy at 512 MB (1: yes)",
        worst,
        "",
        1.0,
        By::Calibrated,
    );
}

/// The order of the thesis, in which a figure's lines stand together.
fn order(of: &str) -> (u8, u32) {
    let last = of.rsplit(['-', '.', ' ']).next().and_then(|n| n.parse().ok()).unwrap_or(0);
    match of {
        "Table 2.1" => (0, 0),
        "Section 3.1" => (1, 0),
        _ if of.starts_with("Table") => (1, last),
        "Section 6.3" => (3, last),
        "Section 6.4" => (4, last),
        _ if last <= 6 => (2, last),
        _ => (5, last),
    }
}

fn table(mut lines: Vec<Row>, notes: Vec<String>) -> Table {
    lines.sort_by_key(|l| order(&l.of));
    let mut figures: Vec<&str> = lines.iter().map(|l| l.of.as_str()).collect();
    figures.dedup();
    let mut text = String::from("# OnionChopper (Shay 2023)\n");
    for of in &figures {
        // What other tables have stands in the columns of the calibrated row.
        let shown = |l: &&Row| l.of == *of && !matches!(l.by, By::Synthesised | By::Tables);
        let rows: Vec<&Row> = lines.iter().filter(shown).collect();
        text += &format!("\n## {of}\n\n{}", rows::markdown(&rows));
    }
    text += &format!(
        "\n{}, calibrated ones among them; other tables' joules and mm2, and what this machine takes, are not counted. Of what was \
         synthesised there are compute units alone.\n\n## What the text leaves out\n\n",
        rows::counted(&lines)
    );
    notes.iter().for_each(|note| text += &format!("- {note}\n"));
    let mut document = rows::document(&lines, |_| Value::Null);
    document.insert("figures".into(), json!(figures));
    document.insert("missing".into(), json!(notes));
    Table { document: Value::Object(document), text, notes: Vec::new() }
}
