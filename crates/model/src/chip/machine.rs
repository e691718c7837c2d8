//! A machine: levels of memory, lanes, a clock.

use std::borrow::Cow;
use std::fmt;

use super::problem::{Operation, Problem};

/// Something for each clock, as a fraction that is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The numerator, at least 1.
    pub num: u64,
    /// The denominator, in clocks, at least 1.
    pub den: u64,
}

impl Rate {
    /// A whole number each clock.
    #[must_use]
    pub fn whole(num: u64) -> Self {
        Self { num, den: 1 }
    }

    /// As a float.
    #[must_use]
    pub fn per_clock(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 { write!(f, "{}", self.num) } else { write!(f, "{}/{}", self.num, self.den) }
    }
}

/// The most levels of a machine.
pub(super) const MAX_LEVELS: usize = 8;

/// The ports of one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Ports to read and ports to write, which work at the same time.
    Separate {
        /// Ports to read, at least 1.
        read: u64,
        /// Ports to write, at least 1.
        write: u64,
    },
    /// Ports that do either.
    Shared(u64),
}

/// A level of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// What it is called: `SSD`.
    pub name: String,
    /// Bytes of one; none: unlimited.
    pub bytes: Option<u64>,
    /// How many there are, in all: a multiple of the level above.
    pub count: u64,
    /// Bits that a port moves.
    pub port: Rate,
    /// Its ports.
    pub ports: Ports,
    /// Copies of each tile that it has room for: 2 where double buffers are counted, else 1.
    pub buffers: u64,
    /// Its name in tables of energy and area.
    pub part: String,
    /// Whether it has a clock of its own, as the outermost has: at another clock of the chip it moves as much per second.
    pub off_chip: bool,
}

/// What computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Lanes {
    /// What they are called among bounds and parts: `lanes`.
    pub name: String,
    /// Bits of the widest word that a contraction on them may have.
    pub word: u64,
    /// How many there are, in all: a multiple of the innermost level.
    pub count: u64,
    /// What one does each clock, by operation; none: nothing of it.
    pub rates: [Option<Rate>; 4],
    /// Whether an operand that the next point needs too stays in the lane.
    pub latched: bool,
    /// Clocks from the first operand to the first result, which a run loses once.
    pub fill: u64,
    /// Their name in tables of energy and area.
    pub part: String,
}

impl Lanes {
    /// What one does of an operation each clock.
    #[must_use]
    pub fn rate(&self, operation: Operation) -> Option<Rate> {
        self.rates[operation as usize]
    }
}

/// What selects the modulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moduli {
    /// How many it holds; none: as many as there are.
    pub held: Option<u64>,
    /// Clocks that a change takes.
    pub change: u64,
}

/// How units between levels wait for each other; see [`pipelined`](super::pipelined).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Clocks from a request to the DRAM to its answer.
    pub latency: u64,
    /// Reads of the DRAM that may be under way.
    pub reads: u64,
    /// Tiles of the SRAMs that may be asked for before they are taken.
    pub tiles: u64,
    /// Tiles of the registers that may wait to be computed.
    pub waiting: u64,
    /// Tiles of sums that may wait to leave the SRAMs.
    pub leaving: u64,
}

/// A machine. [`machine_from_toml`](super::machine_from_toml) reads one and checks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// What it is, and where its figures are from.
    pub about: String,
    /// Clocks a second.
    pub clock: f64,
    /// Bits of the word that ports' rates are given in.
    pub word: u64,
    /// Its levels, the outermost first, one at least.
    pub levels: Vec<Level>,
    /// Its lanes.
    pub lanes: Lanes,
    /// Lanes of other kinds beside them, each of which shares the innermost memories: narrow ones, say.
    pub beside: Vec<Lanes>,
    /// Its moduli.
    pub moduli: Moduli,
    /// How its units wait for each other; none: only bounds are known.
    pub pipeline: Option<Pipeline>,
}

impl Machine {
    /// How many memories of the next level, or lanes, one of level `at` serves.
    #[must_use]
    pub fn fan_out(&self, at: usize) -> u64 {
        let below = self.levels.get(at + 1).map_or(self.lanes.count, |level| level.count);
        below / self.levels[at].count
    }

    /// All its lanes: the main ones, then those beside them.
    pub fn all_lanes(&self) -> impl Iterator<Item = &Lanes> {
        std::iter::once(&self.lanes).chain(&self.beside)
    }

    /// The machine with those lanes as its main ones that do a problem: of the kinds that take its words the narrowest. It is as it was
    /// where none does.
    #[must_use]
    pub fn doing(&self, problem: &Problem) -> Cow<'_, Self> {
        let wide = problem.widest();
        let takes = |lanes: &Lanes| problem.operation != Operation::Contract || lanes.word >= wide;
        let does = |lanes: &&Lanes| lanes.rate(problem.operation).is_some() && takes(lanes);
        let best = self.all_lanes().enumerate().filter(|(_, lanes)| does(lanes)).min_by_key(|(_, l)| l.word);
        match best {
            Some((at @ 1.., _)) => {
                let mut machine = self.clone();
                std::mem::swap(&mut machine.lanes, &mut machine.beside[at - 1]);
                Cow::Owned(machine)
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// The machine from a level on, whose memories are then one of as many ports, without an end: what is worked on there comes from
    /// nowhere else.
    ///
    /// # Panics
    /// No level has that name.
    #[must_use]
    pub fn within(&self, level: usize) -> Self {
        let mut machine = Self { pipeline: None, levels: self.levels[level..].to_vec(), ..self.clone() };
        let outermost = &mut machine.levels[0];
        let count = std::mem::replace(&mut outermost.count, 1);
        outermost.bytes = None;
        outermost.ports = match outermost.ports {
            Ports::Shared(ports) => Ports::Shared(ports * count),
            Ports::Separate { read, write } => Ports::Separate { read: read * count, write: write * count },
        };
        machine
    }

    /// What is wrong with it, as key, value and remedy.
    ///
    /// # Errors
    /// The first thing that is.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MAX_LEVELS).contains(&self.levels.len()) {
            let n = self.levels.len();
            return Err(format!(
                "there are {n} [[level]]; list 1 to {MAX_LEVELS} levels of memory, the outermost first"
            ));
        }
        if !(self.clock.is_finite() && self.clock > 0.0) {
            return Err(format!("clock is {}; say clocks a second, such as 2e9", self.clock));
        }
        if !(1..=4096).contains(&self.word) {
            return Err(format!("word is {}; say 1 to 4096 bits", self.word));
        }
        let mut above = ("the machine", 1u64);
        for level in &self.levels {
            let refuse = |key: &str, value: &dyn fmt::Display, remedy: &str| {
                Err(format!("level {}: {key} is {value}; {remedy}", level.name))
            };
            if level.bytes == Some(0) {
                return refuse("size", &0, "say bytes, such as \"4 KiB\", or \"unlimited\"");
            }
            if !(1..=1 << 20).contains(&level.count) || !level.count.is_multiple_of(above.1) {
                let remedy = format!("say a multiple of the {} of {} above it, up to 2^20", above.1, above.0);
                return refuse("count", &level.count, &remedy);
            }
            if level.port.num == 0
                || level.port.den == 0
                || level.port.num > 1 << 24
                || level.port.den > 1 << 24
            {
                return refuse("rate", &level.port, "say words a clock above 0, such as 2 or \"67/100\"");
            }
            let ports = match level.ports {
                Ports::Separate { read, write } => [read, write],
                Ports::Shared(shared) => [shared, shared],
            };
            if ports.iter().any(|n| !(1..=1024).contains(n)) {
                return refuse("ports", &ports[0].min(ports[1]), "say 1 to 1024 of each kind");
            }
            if !(1..=2).contains(&level.buffers) {
                return refuse(
                    "buffers",
                    &level.buffers,
                    "say 1, or 2 where double buffers are to be counted",
                );
            }
            above = (&level.name, level.count);
        }
        for lanes in self.all_lanes() {
            let name = &lanes.name;
            if !(1..=1 << 20).contains(&lanes.count) || !lanes.count.is_multiple_of(above.1) {
                return Err(format!(
                    "{name}: count is {}; say a multiple of the {} of {} above them, up to 2^20",
                    lanes.count, above.1, above.0
                ));
            }
            if lanes.rates.iter().all(Option::is_none) {
                let names = Operation::ALL.map(Operation::name).join(", ");
                return Err(format!(
                    "{name}: no operation has a rate; say what a lane does a clock of one of {names}"
                ));
            }
            let rate = lanes.rates.iter().flatten().find(|r| r.num == 0 || r.den == 0 || r.den > 1 << 24);
            if let Some(rate) = rate {
                return Err(format!(
                    "{name}: a rate is {rate}; say what a lane does a clock, such as 1 or \"1/6\""
                ));
            }
            if !(1..=4096).contains(&lanes.word) {
                return Err(format!("{name}: word is {}; say 1 to 4096 bits", lanes.word));
            }
        }
        let names: Vec<&str> = self.all_lanes().map(|lanes| lanes.name.as_str()).collect();
        if let Some(name) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            return Err(format!(
                "beside: {:?} is there twice; give each kind of lanes a name of its own",
                names[name]
            ));
        }
        if let Some(Pipeline { latency, reads, tiles, waiting, leaving }) = self.pipeline {
            let keys = [
                ("latency", latency),
                ("reads", reads),
                ("tiles", tiles),
                ("waiting", waiting),
                ("leaving", leaving),
            ];
            if let Some((key, value)) = keys.into_iter().find(|(_, n)| !(1..=1 << 20).contains(n)) {
                return Err(format!("pipeline: {key} is {value}; say 1 to 2^20"));
            }
            if self.levels.len() != 4 {
                return Err(format!(
                    "pipeline: the machine has {} levels; a pipeline has four",
                    self.levels.len()
                ));
            }
        }
        if self.moduli.held == Some(0) {
            return Err("moduli: held is 0; say how many moduli there is room for".into());
        }
        Ok(())
    }
}
