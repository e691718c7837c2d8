//! Figures 15.4.5 to 15.4.7 of PH-EPU (ISSCC 2023), on the simulated chip and card.

mod areas;
mod published;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use blindcore_accel::bigmod::{BigModulus, Exponents, MultiExp, Numbers};
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::phepu::compiler::{
    Assignment, CHIP_ELEMENTS, CLOCK_HZ, Convolution, Dataflow, Machine, Task,
};
use blindcore_accel_rtl::phepu::{CardSettings, Context, Phepu as Chips};
use blindcore_model::chip::Kind;
use blindcore_units::Progress;
use serde_json::{Value, json};

use crate::jobs::run_all;
use crate::rows::{self, By, Column, Label, Row};
use crate::sum::{compile, run_layer};
use crate::table::Table;
use crate::text::furthest;

/// A figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// 15.4.5: tasks over elements and chips, and beside software.
    Scaling,
    /// 15.4.6: rates of primitive operations, and what sparse weights save.
    Rates,
    /// 15.4.7: the chip's and the card's figures.
    Specification,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Scaling, Self::Rates, Self::Specification];

    /// The one of this number.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|figure| figure.name() == name)
    }

    /// What it shows, in a line.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Scaling => "Tasks over elements and chips, and beside software",
            Self::Rates => "Rates of primitive operations, and what sparse weights save",
            Self::Specification => "The chip's and the card's figures",
        }
    }

    /// Its number in the paper.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scaling => "15.4.5",
            Self::Rates => "15.4.6",
            Self::Specification => "15.4.7",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Scaling => "Figure 15.4.5: elements, chips, and software",
            Self::Rates => "Figure 15.4.6: primitive operations, and sparse weights",
            Self::Specification => "Figure 15.4.7: the chip and the card",
        }
    }
}

/// What is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these figures; all if there is none.
    pub figures: Vec<Figure>,
    /// Leave the CPU out: what is left is the same on every machine.
    pub no_cpu: bool,
}

/// Numbers that look random and are the same each time.
struct Drawn(u64);

impl Drawn {
    /// SplitMix64 (Steele, Lea and Flood 2014).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// n^2 of this many bits, n the product of the two largest primes of a quarter of them: 2^1024 - 105 and - 179, 2^512 - 569
/// and - 629, 2^256 - 189 and - 357. The same residues each time, and nothing to keep secret.
fn modulus(bits: usize) -> anyhow::Result<Arc<BigModulus>> {
    let (a, b) = match bits {
        4096 => (105, 179),
        2048 => (569, 629),
        _ => (189, 357),
    };
    // (2^k - a)(2^k - b) = 2^k (2^k - a - b) + a b
    let half = bits / 4 / 64;
    let mut n = vec![0; 2 * half];
    n[0] = a * b;
    n[half..].fill(u64::MAX);
    n[half] -= a + b - 1;
    Ok(Arc::new(BigModulus::square_of(&n)?))
}

fn numbers(modulus: &BigModulus, count: usize) -> Numbers {
    let (mut drawn, mut numbers) = (Drawn(1), Numbers::zeroed(count, modulus.words()));
    for i in 0..count {
        let number = numbers.get_mut(i);
        number.fill_with(|| drawn.next());
        *number.last_mut().expect("a number has words") >>= 1;
    }
    numbers
}

/// Weights of 8 bits, of each of which this many bits are zero; or random ones.
#[derive(Clone, Copy, PartialEq)]
enum Weights {
    Zeros(u32),
    Random,
}

impl Weights {
    fn make(self, count: usize) -> Vec<i64> {
        let mut drawn = Drawn(2);
        let weight = |_| {
            let mut byte = drawn.next() as u8;
            if let Self::Zeros(zeros) = self {
                byte = u8::MAX;
                while byte.count_zeros() < zeros {
                    byte &= !(1 << (drawn.next() % 8));
                }
            }
            i64::from(byte as i8)
        };
        (0..count).map(weight).collect()
    }
}

/// What is weighed.
#[derive(Clone, Copy, PartialEq)]
enum Layer {
    /// One row of this many terms, for this many outputs.
    Row(usize, usize),
    /// Sixteen kernels of 3 x 3 over an image of 4 channels, 5 x 5.
    Image,
}

impl Layer {
    fn task(self) -> anyhow::Result<Task> {
        Ok(match self {
            Self::Row(terms, outputs) => Task::matrix(1, terms, outputs, 8)?,
            Self::Image => Task::convolution(Convolution::new([4, 5, 5], [16, 3, 3]), 8)?,
        })
    }
}

/// Something that is simulated.
#[derive(Clone, Copy, PartialEq)]
enum Job {
    /// Powers of this many bases by exponents of 256 bits, the shortest of basic operations (Fig. 15.4.7), on one chip or
    /// the card.
    Powers { bits: usize, bases: usize, card: bool },
    /// Inversions of this many numbers.
    Inverses(usize),
    /// A layer on this many chips of this many elements; `links` with the paper's bandwidths.
    MultiExp {
        layer: Layer,
        weights: Weights,
        chips: usize,
        elements: usize,
        card: bool,
        links: bool,
        dataflow: Dataflow,
    },
}

/// What a job took.
#[derive(Clone, Copy)]
struct Taken {
    clocks: u64,
    multiplications: u64,
    inversions: u64,
    /// Clocks of all Stein units.
    stein: u64,
    /// Clocks of inverting inputs first.
    inverting: u64,
}

const EXPONENT_BITS: u32 = 256;

impl Job {
    fn open(card: bool, links: bool) -> anyhow::Result<Chips> {
        let settings = if links { CardSettings::PAPER } else { CardSettings::UNBOUND };
        crate::chip(Chips::with_settings(if card { "rtl:phepu-card" } else { "rtl:phepu" }, settings))
    }

    fn run(self) -> anyhow::Result<Taken> {
        let plain = |cost: blindcore_accel::Cost| Taken {
            clocks: cost.cycles,
            multiplications: cost.multiplications + cost.squarings,
            inversions: 0,
            stein: 0,
            inverting: 0,
        };
        match self {
            Self::Powers { bits, bases, card } => {
                let (device, modulus) = (Self::open(card, true)?, modulus(bits)?);
                let bigmod = device.device().bigmod(&modulus)?;
                let x = bigmod.place(&numbers(&modulus, bases))?;
                let exponent = Exponents::Shared(&[u64::MAX; 4], EXPONENT_BITS);
                Ok(plain(bigmod.power(&x, &exponent)?.1))
            }
            Self::Inverses(count) => {
                let (device, modulus) = (Self::open(false, false)?, modulus(4096)?);
                let bigmod = device.device().bigmod(&modulus)?;
                let x = bigmod.place(&numbers(&modulus, count))?;
                Ok(Taken { inversions: count as u64, ..plain(bigmod.invert(&x)?.1) })
            }
            Self::MultiExp { layer, weights, chips, elements, card, links, dataflow } => {
                let (device, modulus) = (Self::open(card, links)?, modulus(4096)?);
                let task = layer.task()?;
                let buffers = *Machine::phepu(1, 4096)?.buffers().context("PH-EPU has buffers")?;
                let machine = Machine::chips(chips, elements, buffers)?;
                let assignment = Assignment::search(task, machine)?;
                let context = Context::new(&modulus)?;
                let inputs = device.device().bigmod(&modulus)?.place(&numbers(&modulus, task.inputs()))?;
                let weights = weights.make(task.weights());
                let compiled = compile(assignment, &weights, dataflow)?;
                let done = run_layer(&device, &context, compiled, &inputs)?;
                Ok(Taken {
                    clocks: done.run.card.clocks,
                    multiplications: done.run.multiplications(),
                    inversions: done.run.elements().map(|e| u64::from(e.inversions)).sum(),
                    stein: done.run.elements().map(|e| u64::from(e.stein)).sum(),
                    inverting: done.inverting,
                })
            }
        }
    }

    /// What it is likely to take, to begin with the longest.
    fn weight(self) -> u64 {
        let weight = match self {
            Self::Powers { bits, bases, card } => bases * bits / 512 * if card { 2 } else { 1 },
            Self::Inverses(count) => 8 * count,
            Self::MultiExp { layer, elements, card, .. } => {
                let outputs = match layer {
                    Layer::Row(terms, outputs) => terms * outputs / 2,
                    Layer::Image => 4000 * (CHIP_ELEMENTS / elements).max(4) / 4,
                };
                outputs * if card { 2 } else { 1 }
            }
        };
        weight as u64
    }
}

/// A figure of ours, and the paper's where it has one.
struct Line {
    figure: Figure,
    id: String,
    what: String,
    value: f64,
    unit: &'static str,
    paper: Option<f64>,
    /// Not simulated, but measured on this machine.
    measured: bool,
}

/// Terms of the layer with sparse weights: 3 x 3 kernels over 16 channels.
const TERMS: usize = 144;
/// Bits of a weight that are zero, of eight.
const SPARSITY: [u32; 4] = [0, 2, 4, 6];
/// Elements and chips.
const ELEMENTS: [usize; 5] = [1, 2, 4, 8, 16];
const CHIPS: [usize; 4] = [1, 2, 4, 8];
/// Terms of the layer that both dataflows weigh: 3 x 3 kernels over 64 channels.
const LONG_TERMS: usize = 576;
/// Products of digits of a multiplication of 4096 bits by three multipliers: 2 * 16^2 + 16 of them.
const FEWEST_CLOCKS: f64 = 528.0 / 3.0;

/// The jobs that figures need, each once.
#[derive(Default)]
struct Jobs(Vec<Job>);

impl Jobs {
    fn add(&mut self, job: Job) -> usize {
        self.0.iter().position(|j| *j == job).unwrap_or_else(|| {
            self.0.push(job);
            self.0.len() - 1
        })
    }

    fn sparse(&mut self, zeros: u32, links: bool) -> usize {
        self.add(Job::MultiExp {
            links,
            layer: Layer::Row(TERMS, CHIP_ELEMENTS),
            weights: Weights::Zeros(zeros),
            chips: 1,
            elements: CHIP_ELEMENTS,
            card: false,
            dataflow: Dataflow::BitSerial,
        })
    }

    fn image(&mut self, elements: usize) -> usize {
        self.add(Job::MultiExp {
            links: true,
            layer: Layer::Image,
            weights: Weights::Zeros(SPARSITY[3]),
            chips: 1,
            elements,
            card: false,
            dataflow: Dataflow::BitSerial,
        })
    }

    fn on_card(&mut self, chips: usize) -> usize {
        self.add(Job::MultiExp {
            links: true,
            layer: Layer::Row(TERMS, 8 * CHIP_ELEMENTS),
            weights: Weights::Zeros(SPARSITY[3]),
            chips,
            elements: CHIP_ELEMENTS,
            card: true,
            dataflow: Dataflow::BitSerial,
        })
    }

    fn long(&mut self, dataflow: Dataflow) -> usize {
        self.add(Job::MultiExp {
            links: false,
            layer: Layer::Row(LONG_TERMS, CHIP_ELEMENTS),
            weights: Weights::Random,
            chips: 1,
            elements: CHIP_ELEMENTS,
            card: false,
            dataflow,
        })
    }

    fn powers(&mut self, bits: usize, bases: usize, card: bool) -> usize {
        self.add(Job::Powers { bits, bases, card })
    }
}

/// Bits of weights that a layer of rows has, a second, in millions: what its multiplications would be, skipped none.
fn dense_rate(outputs: usize, clocks: u64) -> f64 {
    (8 * TERMS * outputs) as f64 / clocks as f64 * CLOCK_HZ / 1e6
}

/// Makes the figures that are asked for.
///
/// # Errors
/// The chips stopped, or computed anything but what they should; or they are not built, and nothing was asked for that needs none.
pub fn make(options: &Options, progress: &mut dyn Progress) -> anyhow::Result<Table> {
    let want = |figure| options.figures.is_empty() || options.figures.contains(&figure);
    let (scaling, rates, specification) =
        (want(Figure::Scaling), want(Figure::Rates), want(Figure::Specification));
    // Said at once, and not after seconds; what needs no chip is made without.
    let chips = Job::open(false, true).map(drop);
    let chips =
        chips.and_then(|()| if scaling || specification { Job::open(true, true).map(drop) } else { Ok(()) });
    if let Err(missing) = chips {
        let mut notes = vec![format!("without simulation: {missing:#}")];
        let mut lines = if specification { areas::areas(&mut notes) } else { Vec::new() };
        if scaling && !options.no_cpu {
            lines.extend(software([None, None])?);
        }
        if !lines.is_empty() {
            lines.extend(published::lines(want)?);
        }
        anyhow::ensure!(!lines.is_empty(), missing);
        return Ok(Table { document: document(&lines), text: text(options, &lines), notes });
    }
    let mut jobs = Jobs::default();
    let mut plan = |yes: bool, make: &mut dyn FnMut(&mut Jobs) -> Vec<usize>| {
        if yes { make(&mut jobs) } else { Vec::new() }
    };
    let elements = plan(scaling, &mut |j| ELEMENTS.map(|e| j.image(e)).to_vec());
    let cards = plan(scaling || specification, &mut |j| CHIPS.map(|c| j.on_card(c)).to_vec());
    let card_powers = plan(scaling || specification, &mut |j| {
        let bases = 8 * CHIP_ELEMENTS;
        vec![j.powers(4096, bases, false), j.powers(4096, bases, true)]
    });
    let multiply =
        plan(rates, &mut |j| [4096, 2048, 1024].map(|b| j.powers(b, 8 * CHIP_ELEMENTS, false)).to_vec());
    let invert = plan(rates, &mut |j| vec![j.add(Job::Inverses(4 * CHIP_ELEMENTS))]);
    let sparse = plan(rates, &mut |j| SPARSITY.map(|z| j.sparse(z, false)).to_vec());
    let linked = plan(scaling || specification, &mut |j| vec![j.sparse(SPARSITY[3], true)]);
    let long = plan(rates, &mut |j| vec![j.long(Dataflow::BitSerial), j.long(Dataflow::Buckets)]);
    let jobs = jobs.0;
    let weights: Vec<u64> = jobs.iter().map(|job| job.weight()).collect();
    let taken = run_all("simulating", &weights, |job| jobs[job].run(), progress)?;
    let clocks = |job: usize| taken[job].clocks;
    let gain = |jobs: &[usize], i: usize| clocks(jobs[0]) as f64 / clocks(jobs[i]) as f64;
    let mega = |job: usize| taken[job].multiplications as f64 / clocks(job) as f64 * CLOCK_HZ / 1e6;

    let (each, mean) = match (&multiply[..], &invert[..]) {
        ([job, ..], [_]) => {
            let (basic, inversion) = (taken[*job], taken[sparse[0]]);
            let each = basic.clocks as f64 * CHIP_ELEMENTS as f64 / basic.multiplications as f64;
            (Some(each), Some(inversion.stein as f64 / inversion.inversions as f64))
        }
        _ => (None, None),
    };
    let mut notes = Vec::new();
    let mut lines = Vec::new();
    let mut line = |figure, id: String, what: String, value: f64, unit, paper| {
        lines.push(Line { figure, id: format!("phepu.{id}"), what, value, unit, paper, measured: false });
    };
    for (bits, job) in [4096, 2048, 1024].into_iter().zip(&multiply) {
        let whole = bits == 4096;
        let each = clocks(*job) as f64 * CHIP_ELEMENTS as f64 / taken[*job].multiplications as f64;
        let of = |paper: f64| whole.then_some(paper);
        let figure = Figure::Rates;
        line(
            figure,
            format!("multiply.{bits}.clocks"),
            format!("multiplication of {bits} bits, an element"),
            each,
            "clocks",
            of(348.0),
        );
        if whole {
            line(
                figure,
                "multiply.4096.of_bound".into(),
                "the same, of the fewest that three multipliers allow".into(),
                each / FEWEST_CLOCKS,
                "",
                Some(348.0 / FEWEST_CLOCKS),
            );
        }
        line(
            figure,
            format!("multiply.{bits}.chip"),
            format!("multiplications of {bits} bits, a chip"),
            mega(*job),
            "M/s",
            of(23.0),
        );
    }
    if let [job] = invert[..] {
        let rate = taken[job].inversions as f64 / clocks(job) as f64 * CLOCK_HZ / 1e3;
        let what = "inversions of 4096 bits, a chip, two multiplications each included";
        line(Figure::Rates, "invert.chip".into(), what.into(), rate, "k/s", None);
        // The paper's 38 k/s as one unit's.
        let of = taken[sparse[0]];
        let mean = of.stein as f64 / of.inversions as f64;
        let (what, unit) = ("inversion of 4096 bits, a Stein unit, mean", "clocks");
        line(Figure::Rates, "invert.clocks".into(), what.into(), mean, unit, Some(CLOCK_HZ / 38e3));
    }
    if rates {
        for (i, zeros) in SPARSITY.into_iter().enumerate() {
            let percent = 100 * zeros / 8;
            line(
                Figure::Rates,
                format!("sparsity.{percent}"),
                format!("{TERMS} terms, {percent} % of bits zero: speed-up over none"),
                gain(&sparse, i),
                "",
                (percent == 75).then_some(3.3),
            );
        }
        let per_output = |job: usize| clocks(job) as f64; // an output an element, all at once
        for (job, name, what) in [
            (long[0], "bit_serial", "the paper's dataflow"),
            (long[1], "buckets", "ours: buckets of four bits, inputs inverted beforehand"),
        ] {
            let what = format!("output of {LONG_TERMS} terms, random weights of 8 bits, {what}");
            line(Figure::Rates, format!("output.{name}"), what, per_output(job), "clocks", None);
        }
        let what = "ours over the paper's dataflow".to_owned();
        line(Figure::Rates, "output.gain".into(), what, gain(&long, 1), "", None);
        let what =
            format!("inverting {LONG_TERMS} inputs once, of the clocks of its {CHIP_ELEMENTS} outputs");
        let share = taken[long[1]].inverting as f64 / clocks(long[1]) as f64;
        line(Figure::Rates, "output.inverting".into(), what, share, "", None);
        let what = format!(
            "ours over the paper's, had nothing but these {CHIP_ELEMENTS} outputs a use for the inverses"
        );
        let all = clocks(long[1]) + taken[long[1]].inverting;
        let gain = clocks(long[0]) as f64 / all as f64;
        line(Figure::Rates, "output.gain_alone".into(), what, gain, "", None);
    }
    if scaling {
        for (i, count) in ELEMENTS.into_iter().enumerate() {
            let what = format!("convolution, 75 % of bits zero, elements: {count}; speed-up over one");
            line(Figure::Scaling, format!("elements.{count}"), what, gain(&elements, i), "", None);
        }
        for (i, count) in CHIPS.into_iter().enumerate() {
            let what = format!(
                "multi-exponentiation, 75 % of bits zero, chips of the card: {count}; speed-up over one"
            );
            let paper = (count == 8).then_some(355.0 / 68.0);
            line(Figure::Scaling, format!("chips.mac.{count}"), what, gain(&cards, i), "", paper);
        }
        let what = "basic operations on 8 chips of the card: speed-up over one".to_owned();
        line(Figure::Scaling, "chips.basic.8".into(), what, gain(&card_powers, 1), "", Some(181.0 / 23.0));
    }
    if specification {
        let figure = Figure::Specification;
        let rate = |what: &str| format!("{what}, 4096 bits");
        line(
            figure,
            "chip.basic".into(),
            rate("basic operations, a chip"),
            mega(card_powers[0]),
            "M/s",
            Some(23.0),
        );
        line(
            figure,
            "card.basic".into(),
            rate("basic operations, the card"),
            mega(card_powers[1]),
            "M/s",
            Some(181.0),
        );
        let chip = dense_rate(CHIP_ELEMENTS, clocks(linked[0]));
        line(
            figure,
            "chip.mac".into(),
            rate("MAC mode at 75 % zero bits, counted with them, a chip"),
            chip,
            "M/s",
            Some(68.0),
        );
        let card = dense_rate(8 * CHIP_ELEMENTS, clocks(cards[3]));
        line(figure, "card.mac".into(), rate("the same, the card"), card, "M/s", Some(355.0));
        lines.extend(areas::areas(&mut notes));
    }
    if rates {
        lines.extend(published::energies(each, mean));
    }
    lines.extend(published::lines(want)?);
    if !options.no_cpu && scaling {
        lines.extend(software([Some(clocks(linked[0])), cards.last().map(|job| clocks(*job))])?);
    }
    Ok(Table { document: document(&lines), text: text(options, &lines), notes })
}

/// The CPU device on the same layers, with all cores of this machine, beside the clocks of a chip and of the card where they
/// were simulated.
fn software([chip, card]: [Option<u64>; 2]) -> anyhow::Result<Vec<Line>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = Cpu::with_threads("cpu", cores)?;
    let modulus = modulus(4096)?;
    let bigmod = cpu.bigmod(&modulus)?;
    let inputs = bigmod.place(&numbers(&modulus, TERMS))?;
    // The median of five, in seconds.
    let time = |zeros: u32, outputs: usize| -> anyhow::Result<f64> {
        let multi_exp = MultiExp::matrix(TERMS, Weights::Zeros(zeros).make(TERMS * outputs));
        let mut times = Vec::new();
        for _ in 0..5 {
            let start = Instant::now();
            bigmod.multi_exp(&inputs, &multi_exp)?;
            times.push(start.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    };
    let mut lines = Vec::new();
    let name = cpu.name();
    let [chip_published, card_published] = published::of_software()?;
    let mut pair =
        |id: &str, of: &str, seconds: f64, [clocks, published]: [Option<u64>; 2], paper: f64, than: &str| {
            let mut line = |part: &str, what: String, value: f64, unit, paper| {
                let id = format!("phepu.software.{id}.{part}");
                lines.push(Line { figure: Figure::Scaling, id, what, value, unit, paper, measured: true });
            };
            line("ms", format!("{of}: {name} on {cores} cores of this machine"), seconds * 1e3, "ms", None);
            if let Some(clocks) = clocks {
                let what = format!("the same: {than} over {name} on {cores} cores");
                line("gain", what, seconds * CLOCK_HZ / clocks as f64, "", Some(paper));
            }
            if let Some(clocks) = published {
                let what = format!("the same: {than} of the paper's schedule over {name} on {cores} cores");
                line("published_gain", what, seconds * CLOCK_HZ / clocks as f64, "", Some(paper));
            }
        };
    let of = format!("{CHIP_ELEMENTS} outputs of {TERMS} terms, 75 % of bits zero");
    let seconds = time(SPARSITY[3], CHIP_ELEMENTS)?;
    pair("chip", &of, seconds, [chip, Some(chip_published)], 14.9, "a chip");
    let outputs = 8 * CHIP_ELEMENTS;
    let of = format!("{outputs} outputs of {TERMS} terms, 75 % of bits zero");
    let seconds = time(SPARSITY[3], outputs)?;
    pair("card", &of, seconds, [card, Some(card_published)], 22.8, "the card");
    Ok(lines)
}

impl Line {
    /// The figure in the form that all papers share.
    fn row(&self) -> Row {
        let by = match (self.measured, self.unit) {
            (true, _) => By::Measured,
            (_, "mm2" | "M gates") if self.id.ends_with("28nm") => By::Reckoned,
            (_, "mm2" | "M gates") => By::Synthesised,
            _ => By::Simulated,
        };
        let label = match self.unit {
            "M/s" | "k/s" => Some(Label::clock(CLOCK_HZ, "phepu", |hz| self.value * hz / CLOCK_HZ)),
            "" if self.measured => Some(Label::OtherMachine { here: Some(self.value) }),
            _ => None,
        };
        let column = |kind, table: &str| Column { table: table.into(), kind, value: self.value };
        let columns = match by {
            By::Synthesised if self.unit == "mm2" => vec![column(Kind::Synthesised, "osu018")],
            By::Reckoned => vec![column(Kind::Synthesised, "osu018, to 28 nm")],
            _ => Vec::new(),
        };
        Row {
            of: format!("Figure {}", self.figure.name()),
            id: self.id.clone(),
            what: self.what.clone(),
            value: Some(self.value),
            unit: self.unit,
            published: self.paper,
            paper: "PH-EPU (ISSCC 2023)",
            by,
            label,
            columns,
        }
    }
}

fn document(lines: &[Line]) -> Value {
    let rows: Vec<Row> = lines.iter().map(Line::row).collect();
    // The published figure's older name stays.
    let more = |at: usize| {
        let line = &lines[at];
        json!({"figure": line.figure.name(), "paper": line.paper, "measured_here": line.measured})
    };
    Value::Object(rows::document(&rows, more))
}

fn text(options: &Options, lines: &[Line]) -> String {
    let figures: String =
        options.figures.iter().map(|figure| format!(" --figure {}", figure.name())).collect();
    let without = if options.no_cpu { " --no-cpu" } else { "" };
    let mut text = format!(
        "# PH-EPU, here and in the paper\n\nMade by `blindcore repro phepu{figures}{without}`; `README.md` says what to make of \
         it. Clocks are the simulated hardware's. Rates are at the paper's clock; beside them stand those at our synthesis's, with links \
         that carry as much a clock. Of Figure 15.4.6 powers alone have the card's bandwidths, of the others all. \
         The paper's schedule is a model: 348 clocks a multiplication, 13,158 an inversion, the same programs.\n"
    );
    for figure in [Figure::Scaling, Figure::Rates, Figure::Specification] {
        let of_figure: Vec<&Line> = lines.iter().filter(|line| line.figure == figure).collect();
        if of_figure.is_empty() {
            continue;
        }
        let beside = of_figure.iter().filter_map(|line| Some((line.what.clone(), line.value / line.paper?)));
        let worst = furthest(beside);
        let rows: Vec<Row> = of_figure.iter().map(|line| line.row()).collect();
        let rows = rows::markdown(&rows.iter().collect::<Vec<_>>());
        text += &format!("\n## {}\n{worst}\n{rows}", figure.title());
    }
    let rows: Vec<Row> = lines.iter().map(Line::row).collect();
    text += &format!("\n{}; what this machine takes is not counted.\n", rows::counted(&rows));
    text
}
