//! Tables 1 and 3 to 11 of SIFO (2019): its circuits counted, its times by the model of its overlay and by simulation.

mod circuits;
mod runs;

use anyhow::Context;
use blindcore_accel_rtl::sifo::memory::Policy;
use blindcore_accel_rtl::sifo::{CLOCK, CellCounts, Order, OverlaySettings, Registers};
use blindcore_circuit::problems::published;
use blindcore_model::chip::reached;
use blindcore_units::{Progress, Unit};
use published::{PAGERANK, ROWS, Row};
use runs::{Plan, Taken};
use serde_json::{Value, json};

use crate::labels::random_inputs;
use crate::overlay;
use crate::rows::{self, By, Label, frequency};
use crate::table::Table;
use crate::text::{furthest as furthest_of, number};

/// What is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Simulate the problems up to the 64-bit multiplication too.
    pub simulate: bool,
    /// Leave the CPU out: what is left is the same on every machine.
    pub no_cpu: bool,
    /// Only these tables, of [`TABLES`]; all if there is none.
    pub tables: Vec<u32>,
}

/// The largest problem that is simulated.
const LARGEST_SIMULATED: &str = "mult64";
/// The paper's tables of figures: its circuits, and their times.
pub const TABLES: [&str; 10] = ["1", "3", "4", "5", "6", "7", "8", "9", "10", "11"];
/// Runs on the CPU of which the median counts.
const CPU_RUNS: usize = 3;
/// From a batch's end to the host's next write, in the time of a register access: the whole number with which the ratios of
/// Table 11's times to the paper's have a geometric mean nearest to 1. Nothing else is fitted, and no other table is fitted to.
const WAIT_REGISTERS: u32 = 32;
/// Bits of an AND's table (section 4.3).
const TABLE_BITS: f64 = 240.0;

/// The overlay's name among what was synthesised.
const PART: &str = "sifo";

/// A figure of ours, and the paper's where it has one.
struct Line {
    id: String,
    what: String,
    value: f64,
    unit: &'static str,
    paper: Option<f64>,
    /// The jobs that it comes from.
    jobs: Vec<usize>,
}

impl Line {
    /// The figure in the form that all papers share; `software` is what this machine's CPU takes for a problem, in microseconds.
    fn row(&self, table: &PaperTable, taken: &[Taken], software: Option<f64>) -> rows::Row {
        let label = match self.jobs[..] {
            [job] if self.unit.is_empty() => {
                Some(Label::OtherMachine { here: software.map(|us| us / taken[job].us()) })
            }
            [job] => {
                let slower = taken[job].ours_us / taken[job].us();
                let value = if self.unit == "us" { self.value * slower } else { self.value / slower };
                Some(Label::clock(CLOCK, PART, |_| value))
            }
            _ => None,
        };
        rows::Row {
            of: table.title.split(':').next().unwrap_or_default().into(),
            id: self.id.clone(),
            what: self.what.clone(),
            value: Some(self.value),
            unit: self.unit,
            published: self.paper,
            paper: "Fang, Ioannidis and Leeser 2019",
            by: if table.times() && !self.id.starts_with("sifo.beside") { By::Counted } else { By::Other },
            label,
            columns: Vec::new(),
        }
    }
}

/// A table of the paper: its lines by problem.
struct PaperTable {
    /// As the paper counts it; 0 for what is not a table of it.
    number: u32,
    title: &'static str,
    note: &'static str,
    problems: Vec<(&'static str, Vec<Line>)>,
}

impl PaperTable {
    /// Whether it is of the overlay, and not of circuits that were recovered from it.
    fn times(&self) -> bool {
        !(1..5).contains(&self.number)
    }
}

/// Nanoseconds of a register access with the link at 200 MHz (section 3.4.1), and at 300 MHz.
const REGISTER_NS: [f64; 2] = [50.0, 50.0 * 200.0 / 300.0];
/// Places of block RAM: 13 Mbit in words of 108 bits, in two halves (section 3.4.2).
const HYBRID: usize = 1 << 17;

/// How a stage of the design works: what is inferred is that ANDs take turns up to Table 8, that a batch begins when its last register
/// has arrived, and that a layer's XORs are waited for.
fn stage(cells: CellCounts, registers: Registers, register_ns: f64, ands_in_turn: bool) -> OverlaySettings {
    OverlaySettings {
        cells,
        registers,
        register_ns,
        block_ram: HYBRID,
        order: Order { whole_batches: true, ands_in_turn, waits_for_xors: true, and_accesses: 0 },
        sync_ns: f64::from(WAIT_REGISTERS) * register_ns,
        ..OverlaySettings::PAPER
    }
}

/// Tables 5 to 8: a register an address, the link at 200 MHz; with this many places of block RAM.
fn base(ands: usize, xors: Option<usize>, block_ram: usize) -> OverlaySettings {
    let stage = stage(CellCounts { ands, xors }, Registers::Three, REGISTER_NS[0], true);
    OverlaySettings { block_ram, ..stage }
}

/// Tables 9 to 11: this many cells of each kind, the link at 300 MHz.
fn even(cells: usize, registers: Registers) -> OverlaySettings {
    stage(CellCounts { ands: cells, xors: Some(cells) }, registers, REGISTER_NS[1], false)
}

/// Another way in which Tables 5 to 8 may have come about.
type Change = fn(OverlaySettings) -> OverlaySettings;

fn with(settings: OverlaySettings, change: impl FnOnce(&mut Order)) -> OverlaySettings {
    let mut settings = settings;
    change(&mut settings.order);
    settings
}

/// What was tried for Tables 5 to 8 beside the set that the tables are made with: a name, and what differs.
const TRIED: [(&str, Change); 7] = [
    ("ANDs side by side", |s| with(s, |order| order.ands_in_turn = false)),
    ("in turn, and each table read back from 8 registers", |s| with(s, |order| order.and_accesses = 8)),
    ("side by side, each table read back from 8 registers", |s| {
        with(s, |order| (order.ands_in_turn, order.and_accesses) = (false, 8))
    }),
    ("side by side, 16 register accesses an AND", |s| {
        with(s, |order| (order.ands_in_turn, order.and_accesses) = (false, 16))
    }),
    ("no wait after XORs that ANDs follow", |s| with(s, |order| order.waits_for_xors = false)),
    ("batches begin with their first gate", |s| with(s, |order| order.whole_batches = false)),
    ("75 ns a register, a wait of 24", |s| OverlaySettings { register_ns: 75.0, sync_ns: 24.0 * 75.0, ..s }),
];

/// Jobs and, once they are done, the tables that are made of them.
struct Tables {
    /// By problem: Table 5's two, Table 6's, 7's, 8's, 9's three, 11's.
    rows: Vec<RowJobs>,
    /// By graph: three registers, two.
    pagerank: Vec<(&'static str, [usize; 2])>,
    /// By what was tried: jobs of Tables 5 to 8 and the paper's times.
    tried: Vec<(&'static str, Vec<Trial>)>,
}

/// A table of the paper's, the job that tries it, and its microseconds.
type Trial = (u32, usize, u64);

struct RowJobs {
    row: &'static Row,
    five: Option<usize>,
    ten: Option<usize>,
    unchecked: Option<usize>,
    directly: Option<usize>,
    frequently: Option<usize>,
    cells: Option<[usize; 3]>,
    best: Option<usize>,
    /// The paper's netlist by lifetimes; ours directly-used and by lifetimes.
    beside: Option<[usize; 3]>,
}

/// Millions of ANDs per second (section 4.3).
const RATES: [(&str, f64); 2] = [("matmul10x10x4", 0.67), ("matmul20x20x4", 0.75)];
/// Cells of each kind (Table 9).
const CELLS: [usize; 3] = [5, 10, 15];

/// Table 5's two, Table 6's, those of Tables 7 and 8.
fn stages() -> [OverlaySettings; 4] {
    [base(5, Some(1), 0), base(10, Some(1), 0), base(10, None, 0), base(10, None, HYBRID)]
}

/// Everything that the tables take; all tables if none is asked for.
fn plan(plan: &mut Plan, asked: &[u32]) -> Tables {
    let want = |tables: &[u32]| asked.is_empty() || tables.iter().any(|table| asked.contains(table));
    let rows = ROWS.iter().map(|row| {
        let direct = Policy::DirectlyUsed;
        let mut if_there = |tables: &[u32], there: Option<u64>, settings: OverlaySettings, policy: Policy| {
            there.filter(|_| want(tables)).map(|_| plan.add(row.name, false, settings, policy))
        };
        let [five_ands, ten_ands, streams, hybrid] = stages();
        let five = if_there(&[5], row.times.five_ands, five_ands, direct);
        let ten = if_there(&[5, 6], row.times.ten_ands, ten_ands, direct);
        let unchecked = if_there(&[6, 7], row.times.no_xor_check, streams, direct);
        let directly = if_there(&[7, 8], row.times.directly_used, hybrid, direct);
        let frequently = if_there(&[8], row.times.most_frequently_used, hybrid, Policy::MostFrequentlyUsed);
        let cells = row
            .times
            .cells
            .filter(|_| want(&[9]))
            .map(|_| CELLS.map(|cells| plan.add(row.name, false, even(cells, Registers::Three), direct)));
        let mut best = |ours, policy| plan.add(row.name, ours, even(15, Registers::Two), policy);
        let lifetimes = Policy::Lifetimes;
        let beside = want(&[]).then(|| [best(false, lifetimes), best(true, direct), best(true, lifetimes)]);
        let best = want(&[11]).then(|| best(false, direct));
        RowJobs { row, five, ten, unchecked, directly, frequently, cells, best, beside }
    });
    let rows = rows.collect();
    let graphs = ["pagerank2", "pagerank3", "pagerank4"];
    let pagerank = graphs.iter().filter(|_| want(&[10])).map(|name| {
        let of = [Registers::Three, Registers::Two];
        (*name, of.map(|registers| plan.add(name, true, even(10, registers), Policy::DirectlyUsed)))
    });
    let pagerank = pagerank.collect();
    let tried = TRIED.iter().filter(|_| want(&[])).map(|(name, change)| {
        let jobs = ROWS.iter().flat_map(|row| {
            let [five, ten, streams, hybrid] = stages().map(change);
            let (times, frequent) = (row.times, Policy::MostFrequentlyUsed);
            let of = [
                (5, times.five_ands, five, Policy::DirectlyUsed),
                (5, times.ten_ands, ten, Policy::DirectlyUsed),
                (6, times.no_xor_check, streams, Policy::DirectlyUsed),
                (7, times.directly_used, hybrid, Policy::DirectlyUsed),
                (8, times.most_frequently_used, hybrid, frequent),
            ];
            of.into_iter().filter_map(move |(table, us, settings, policy)| {
                Some((table, us?, row.name, settings, policy))
            })
        });
        let jobs =
            jobs.map(|(table, us, row, settings, policy)| (table, plan.model(row, settings, policy), us));
        (*name, jobs.collect())
    });
    let tried = tried.collect();
    Tables { rows, pagerank, tried }
}

/// The FPGA's time in the paper, as its tables have it.
fn published_us(us: Option<u64>) -> Option<f64> {
    us.map(|us| us as f64)
}

impl Tables {
    fn made(&self, taken: &[Taken]) -> Vec<PaperTable> {
        let time = |id: String, what: &str, job: usize, paper: Option<u64>| Line {
            id,
            what: what.to_owned(),
            value: taken[job].us(),
            unit: "us",
            paper: published_us(paper),
            jobs: vec![job],
        };
        let gain = |id: String, what: &str, jobs: [usize; 2], paper: Option<f64>| Line {
            id,
            what: what.to_owned(),
            value: taken[jobs[0]].us() / taken[jobs[1]].us(),
            unit: "",
            paper,
            jobs: jobs.to_vec(),
        };
        let quotient = |a: Option<u64>, b: Option<u64>| Some(a? as f64 / b? as f64);
        let rows = |lines: &dyn Fn(&RowJobs) -> Option<Vec<Line>>| -> Vec<(&'static str, Vec<Line>)> {
            self.rows.iter().filter_map(|of| Some((of.row.name, lines(of)?))).collect()
        };
        let id = |table: u32, of: &RowJobs| format!("sifo.table{table}.{}", of.row.name);
        let table_5 = rows(&|of| {
            let (id, times, jobs) = (id(5, of), of.row.times, [of.five?, of.ten?]);
            Some(vec![
                time(format!("{id}.5"), "5 ANDs", jobs[0], times.five_ands),
                time(format!("{id}.10"), "10 ANDs", jobs[1], times.ten_ands),
            ])
        });
        let table_6 = rows(&|of| {
            let (id, times, jobs) = (id(6, of), of.row.times, [of.ten?, of.unchecked?]);
            let paper = quotient(times.ten_ands, times.no_xor_check);
            Some(vec![
                time(id.clone(), "without the check", jobs[1], times.no_xor_check),
                gain(format!("{id}.gain"), "gain over Table 5", jobs, paper),
            ])
        });
        let table_7 = rows(&|of| {
            let (id, times, jobs) = (id(7, of), of.row.times, [of.unchecked?, of.directly?]);
            let paper = quotient(times.no_xor_check, times.directly_used);
            Some(vec![
                time(id.clone(), "directly-used", jobs[1], times.directly_used),
                gain(format!("{id}.gain"), "gain over Table 6", jobs, paper),
            ])
        });
        let table_8 = rows(&|of| {
            let (id, times, jobs) = (id(8, of), of.row.times, [of.frequently?, of.directly?]);
            let paper = quotient(times.most_frequently_used, times.directly_used);
            Some(vec![
                time(id.clone(), "most-frequently-used", jobs[0], times.most_frequently_used),
                gain(format!("{id}.of_directly_used"), "of directly-used", jobs, paper),
            ])
        });
        let table_9 = rows(&|of| {
            let (jobs, times) = (of.cells?, of.row.times.cells?);
            let line = |i: usize| {
                let (cells, id) = (CELLS[i], id(9, of));
                time(format!("{id}.{cells}"), &format!("{cells} of each"), jobs[i], Some(times[i]))
            };
            Some((0..3).map(line).collect())
        });
        let table_10 = self.pagerank.iter().zip(PAGERANK).map(|((name, jobs), paper)| {
            let id = format!("sifo.table10.{name}");
            let lines = vec![
                time(format!("{id}.three_registers"), "three registers", jobs[0], None),
                time(format!("{id}.two_registers"), "two registers", jobs[1], None),
                gain(format!("{id}.gain"), "gain", *jobs, Some(paper.improvement)),
            ];
            (*name, lines)
        });
        let table_11 = rows(&|of| {
            let (id, figures, best) = (id(11, of), of.row.figures, of.best?);
            let speedup = |us: f64| figures.flexsc_ms * 1e3 / us;
            Some(vec![
                time(id.clone(), "time", best, Some(figures.fpga_us)),
                Line {
                    id: format!("{id}.speedup"),
                    what: "speed-up over FlexSC".into(),
                    value: speedup(taken[best].us()),
                    unit: "",
                    paper: Some(speedup(figures.fpga_us as f64)),
                    jobs: vec![best],
                },
            ])
        });
        // Section 4.3: rates of ANDs, from which it has the bits per second.
        let bandwidth = rows(&|of| {
            let (name, paper) = RATES.into_iter().find(|(name, _)| of.row.name == *name)?;
            let best = of.best?;
            let rate = taken[best].ands as f64 / taken[best].us();
            let line = |part: &str, what: &str, factor: f64, unit| Line {
                id: format!("sifo.section4_3.{name}.{part}"),
                what: what.into(),
                value: rate * factor,
                unit,
                paper: Some(paper * factor),
                jobs: vec![best],
            };
            Some(vec![
                line("ands", "ANDs", 1.0, "M/s"),
                line("bandwidth", "tables of 240 bits", TABLE_BITS, "Mbit/s"),
            ])
        });
        let beside = rows(&|of| {
            let paper = Some(of.row.figures.fpga_us);
            // What the paper garbled of these two is another circuit than their names say.
            let paper_of_ours = paper.filter(|_| !["sort10x4", "matmul10x10x4"].contains(&of.row.name));
            let line = |part: &str, what: &str, job| {
                let paper = if part == "lifetimes" { paper } else { paper_of_ours };
                time(format!("sifo.beside.{}.{part}", of.row.name), what, job, paper)
            };
            let [lifetimes, ours, ours_lifetimes] = of.beside?;
            Some(vec![
                line("lifetimes", "the paper's netlist, lifetimes", lifetimes),
                line("ours", "ours, directly-used", ours),
                line("ours.lifetimes", "ours, lifetimes", ours_lifetimes),
            ])
        });
        let tried = self.tried.iter().map(|(name, jobs)| {
            let lines = (5..=8).map(|table| {
                let ratios = jobs
                    .iter()
                    .filter(|job| job.0 == table)
                    .map(|(_, job, us)| taken[*job].us() / *us as f64);
                let furthest = ratios.max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()));
                Line {
                    id: format!("sifo.tried.{}.table{table}", name.replace([' ', ','], "_")),
                    what: format!("Table {table}"),
                    value: furthest.unwrap_or(1.0),
                    unit: "",
                    paper: None,
                    jobs: Vec::new(),
                }
            });
            (*name, lines.collect())
        });
        let table = |number, title, note, problems| PaperTable { number, title, note, problems };
        vec![
            table(
                5,
                "Table 5: more AND cells",
                "One XOR cell, every XOR waited for; ANDs in turn; a register an address; the link at 200 MHz, so 50 ns a register \
                 and 1600 ns a wait; all labels in DDR memory.",
                table_5,
            ),
            table(
                6,
                "Table 6: XORs not waited for",
                "Ten AND cells; else as Table 5. A gain compares our times with ours, and the paper's with the paper's.",
                table_6,
            ),
            table(7, "Table 7: block RAM, directly-used", "As Table 6, with block RAM.", table_7),
            table(
                8,
                "Table 8: block RAM, most-frequently-used",
                "Else as Table 7. No set has both: with so many fewer accesses to DDR memory the same design can't take as long.",
                table_8,
            ),
            table(
                9,
                "Table 9: cells of both kinds",
                "Every batch waited for, ANDs side by side; a register an address, 33.3 ns each, 1067 ns a wait; directly-used.",
                table_9,
            ),
            table(
                10,
                "Table 10: two registers for three addresses",
                "Ten cells of each kind, 33.3 ns a register. The paper doesn't say how large its problems are, so only gains \
                 compare: these are ten iterations of 16 bits.",
                table_10.collect(),
            ),
            table(
                11,
                "Table 11: everything together",
                "Fifteen cells of each kind, two registers a gate, 33.3 ns each, directly-used.",
                table_11,
            ),
            table(
                0,
                "Section 3.1.1: the cells' resources",
                "Of a Stratix V: ours before placement, by `make -C hw alm`.",
                cells(),
            ),
            table(
                0,
                "Beside: what else was tried for Tables 5 to 8",
                "Of each table the ratio to the paper's that is furthest from 1; by the model, the wait as above unless it is said.",
                tried.collect(),
            ),
            table(
                0,
                "Section 4.3: what the garbler sends",
                "The paper writes MBps for the first bandwidth and Mbps for the second; both are Mbit/s.",
                bandwidth,
            ),
            table(
                0,
                "Beside: SIFO with other netlists and the policy that it left to later work",
                "All as Table 11, beside its times. Ours are those of `blindcore circuit make`; the paper's sort10x4 sorts twenty \
                 numbers and not ten, its matmul10x10x4 is a tail of 30,015 gates, so they don't compare.",
                beside,
            ),
        ]
    }
}

/// Cells in logic modules, from the results that `make -C hw alm` keeps in this folder's `hw/syn/results`; nothing of what is
/// not there. The paper's are of its gAND (section 3.1.1).
fn cells() -> Vec<(&'static str, Vec<Line>)> {
    let cell = |(name, paper): (&'static str, [Option<f64>; 2])| {
        let text = std::fs::read_to_string(format!("hw/syn/results/{name}.alm.json")).ok()?;
        let result: Value = serde_json::from_str(&text).ok()?;
        let line = |part: &str, what: &str, paper| {
            let id = format!("sifo.section3_1_1.{name}.{part}");
            let (what, value) = (what.to_owned(), result[part].as_f64()?);
            Some(Line { id, what, value, unit: "", paper, jobs: Vec::new() })
        };
        Some((name, vec![line("alms", "ALMs", paper[0])?, line("registers", "registers", paper[1])?]))
    };
    [("sf_gand", [Some(3070.0), Some(3750.0)]), ("sf_gxor", [None; 2])].into_iter().filter_map(cell).collect()
}

/// The geometric mean of Table 11's ratios to the paper's times.
fn mean(tables: &[PaperTable]) -> Option<f64> {
    let table = tables.iter().find(|table| table.number == 11)?;
    let ratios = table.problems.iter().filter_map(|(_, lines)| Some((lines[0].value / lines[0].paper?).ln()));
    let (sum, count) = ratios.fold((0.0, 0), |(sum, count), ratio| (sum + ratio, count + 1));
    Some(f64::exp(sum / f64::from(count)))
}

/// The name and error of the row of Table 11 that is furthest from the paper, as a share of the paper's.
fn furthest(tables: &[PaperTable]) -> Option<(&'static str, f64)> {
    let table = tables.iter().find(|table| table.number == 11)?;
    let errors = table.problems.iter().filter_map(|(name, lines)| {
        let line = lines.first()?;
        Some((*name, line.value / line.paper? - 1.0))
    });
    errors.max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))
}

/// Makes the tables that are asked for.
///
/// # Errors
/// Something is to be simulated and the chip is not built, stopped, or garbled anything but what the CPU does.
pub fn make(options: &Options, progress: &mut dyn Progress) -> anyhow::Result<Table> {
    let largest = ROWS.iter().find(|row| row.name == LARGEST_SIMULATED).context("a row of the paper's")?;
    let mut all =
        Plan { simulate: options.simulate, most_simulated: largest.figures.gates, ..Plan::default() };
    let tables = plan(&mut all, &options.tables);
    let taken = all.run(progress)?;
    let mut tables = [circuits::tables(&options.tables, progress)?, tables.made(&taken)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    tables.retain(|table| options.tables.is_empty() || options.tables.contains(&table.number));
    let furthest = furthest(&tables);
    let on_chip = taken.iter().filter_map(|t| Some((t.clocks, t.on_chip?)));
    let (simulated, same) =
        on_chip.fold((0, 0), |(n, same), (model, chip)| (n + 1, same + usize::from(model == chip)));
    let software = if options.no_cpu { Vec::new() } else { software(&tables, &all, progress)? };
    let here = |problem: &str| software.iter().find(|(name, _)| *name == problem).map(|(_, us)| *us);
    let of = |jobs: &[usize], clocks: &dyn Fn(&Taken) -> Option<u64>| match jobs {
        [job] => clocks(&taken[*job]),
        _ => None,
    };
    let each = || {
        let problems = tables.iter().flat_map(|table| table.problems.iter().map(move |p| (table, p)));
        problems.flat_map(|(table, (problem, lines))| lines.iter().map(move |line| (table, *problem, line)))
    };
    let rows: Vec<rows::Row> =
        each().map(|(table, problem, line)| line.row(table, &taken, here(problem))).collect();
    let own: Vec<Value> = each()
        .map(|(_, problem, line)| {
            // The published figure's older name stays.
            json!({
                "problem": problem, "paper": line.paper,
                "clocks": of(&line.jobs, &|t| Some(t.clocks)), "rtl_clocks": of(&line.jobs, &|t| t.on_chip),
            })
        })
        .collect();
    let mut document = rows::document(&rows, |at| own[at].clone());
    let table11 = furthest.map(|(name, error)| {
        json!({
            "largest_error": error, "of": name, "host_wait_registers": WAIT_REGISTERS, "mean_ratio": mean(&tables),
        })
    });
    document.insert("table11".into(), json!(table11));
    let rtl = options.simulate.then(|| json!({"runs": simulated, "same_clocks": same}));
    document.insert("rtl".into(), json!(rtl));
    let only: String = options.tables.iter().map(|n| format!(" --table {n}")).collect();
    let simulate = if options.simulate { " --simulate" } else { "" };
    let without = if options.no_cpu { " --no-cpu" } else { "" };
    let mut text = format!(
        "# SIFO's overlay, here and in the paper\n\nMade by `blindcore repro sifo{simulate}{without}{only}`; `README.md` says what to \
         make of it. Times are clocks at 200 MHz, the paper's clock{}. FlexSC's times are published ones of another machine.\n",
        reached(PART).map_or(String::new(), |ours| {
            let clock = frequency(ours.clock);
            format!(
                "; beside them stand times at {clock}, which our synthesis reached in {}, with host, memory and link as many \
                 nanoseconds",
                ours.table
            )
        }),
    );
    if let Some((name, error)) = furthest {
        text += &format!(
            "\nTable 11's largest error: {:+.1} %, {name}. One parameter is fitted, to Table 11 alone, whose ratios have a geometric \
             mean of {:.3}: from a batch's end to its next write the host takes the time of {WAIT_REGISTERS} register accesses.\n",
            100.0 * error,
            mean(&tables).unwrap_or(1.0),
        );
    }
    if options.simulate {
        text += &format!(
            "\nThe SystemVerilog, simulated, takes the model's clocks in {same} of {simulated} runs; every table and label \
             of them is the CPU's.\n"
        );
    }
    for table in &tables {
        text += &markdown(table, &taken, options.simulate, &here);
    }
    text += &format!("\n{}; other netlists are not counted.\n", rows::counted(&rows));
    Ok(Table { document: Value::Object(document), text, notes: Vec::new() })
}

/// Microseconds in which this machine's CPU garbles each problem of Table 11 in the paper's way, the median of [`CPU_RUNS`].
fn software(
    tables: &[PaperTable],
    plan: &Plan,
    progress: &mut dyn Progress,
) -> anyhow::Result<Vec<(&'static str, f64)>> {
    let eleventh = tables.iter().filter(|table| table.number == 11);
    let lines =
        eleventh.flat_map(|table| &table.problems).filter_map(|(name, lines)| Some((*name, lines.first()?)));
    let lines: Vec<(&str, &Line)> = lines.collect();
    let all = Some(lines.len() as u64);
    let mut times = Vec::new();
    for (name, line) in lines {
        progress.at("measuring the CPU", times.len() as u64, all, Unit::Items);
        let job = &plan.jobs[line.jobs[0]];
        let (netlist, layers) = plan.sources[job.source].netlist()?;
        let placed = overlay::place(netlist, layers, &job.settings, job.policy)?;
        let mut runs = Vec::new();
        for _ in 0..CPU_RUNS {
            runs.push(overlay::on_cpu(&placed, &random_inputs(netlist)?)?.as_secs_f64() * 1e6);
        }
        runs.sort_by(f64::total_cmp);
        times.push((name, runs[CPU_RUNS / 2]));
    }
    Ok(times)
}

/// A table for people.
fn markdown(
    table: &PaperTable,
    taken: &[Taken],
    simulated: bool,
    here: &dyn Fn(&str) -> Option<f64>,
) -> String {
    let Some((name, first)) = table.problems.first() else { return String::new() };
    let labels = |line: &Line, problem: &str| line.row(table, taken, here(problem)).label;
    let (mut head, mut rule) = ("| problem |".to_owned(), "|---|".to_owned());
    for line in first {
        let unit = if line.unit.is_empty() { String::new() } else { format!(", {}", line.unit) };
        head += &format!(" {}{unit} |", line.what);
        rule += "--:|";
        head += match labels(line, name) {
            Some(Label::PaperClock { .. }) => " at our clock |",
            Some(Label::OtherMachine { .. }) => " over cpu here |",
            None => "",
        };
        rule += if labels(line, name).is_some() { "--:|" } else { "" };
        if line.paper.is_some() {
            head += " paper | ratio |";
            rule += "--:|--:|";
        }
    }
    // The clocks by the model and by the chip of what was simulated for a row.
    let runs = |lines: &[Line]| -> Vec<(u64, u64)> {
        let jobs = lines.iter().flat_map(|line| &line.jobs);
        jobs.filter_map(|job| Some((taken[*job].clocks, taken[*job].on_chip?))).collect()
    };
    let simulated = simulated && table.problems.iter().any(|(_, lines)| !runs(lines).is_empty());
    if simulated {
        head += " RTL |";
        rule += "---|";
    }
    let lines =
        table.problems.iter().flat_map(|(problem, lines)| lines.iter().map(move |line| (problem, line)));
    let beside = lines.filter_map(|(problem, line)| {
        let paper = line.paper.filter(|paper| *paper != 0.0)?;
        Some((format!("{problem}, {}", line.what), line.value / paper))
    });
    let worst = furthest_of(beside);
    // Counts are whole.
    let shown = |x: f64| if !table.times() && x.fract() == 0.0 { x.to_string() } else { number(x) };
    let mut text = format!("\n## {}\n{worst}\n{}\n\n{head}\n{rule}\n", table.title, table.note);
    for (problem, lines) in &table.problems {
        text += &format!("| {problem} |");
        for (line, of_first) in lines.iter().zip(first) {
            text += &format!(" {} |", shown(line.value));
            if let Some(label) = labels(line, problem) {
                text += &format!(" {} |", label.beside().1.map_or("-".into(), number));
            }
            text += &match line.paper {
                // Its times are whole.
                Some(paper) if line.unit == "us" => format!(" {paper} | {:.2} |", line.value / paper),
                Some(paper) if paper == 0.0 => format!(" {paper} | |"),
                Some(paper) => format!(" {} | {:.2} |", shown(paper), line.value / paper),
                None if of_first.paper.is_some() => " | |".to_owned(),
                None => String::new(),
            };
        }
        if simulated {
            text += match &runs(lines)[..] {
                [] => " |",
                runs if runs.iter().all(|(model, chip)| model == chip) => " the same clocks |",
                _ => " other clocks |",
            };
        }
        text.push('\n');
    }
    text
}
