//! What an operation costs: one type, whoever says it.
//!
//! ```text
//!   a device, after a run          ──┐
//!   a simulated chip's counters    ──┼─▶ Cost: seconds, work, clocks by bound, bits through each level, joules and mm2 by part
//!   the model, before any run      ──┤
//!   a limit that a benchmark found ──┘
//! ```
//!
//! Each fills in what it knows, and the rest is 0 or empty. So what a chip counted can be laid beside what the model said, and the same
//! tables of energy price both.

use std::borrow::Cow;
use std::ops::{AddAssign, Mul};

use serde::{Deserialize, Serialize, Serializer};

/// What one run costs, or several one after the other.
///
/// ```
/// use blindcore_accel::cost::{Bound, Cost, Traffic};
///
/// let pass = Cost {
///     seconds: 0.1,
///     bounds: vec![Bound::seconds("memory read", 0.1), Bound::seconds("lanes", 0.06)],
///     traffic: vec![Traffic::new("memory", 8 << 30, 0)],
///     ..Cost::default()
/// };
/// assert_eq!(pass.holds(), "memory read");
/// let mut both = pass.clone();
/// both += &pass;
/// assert_eq!((both.seconds, both.level("memory").unwrap().read), (0.2, 16 << 30));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds: by this machine's clock where it ran here, else clocks at the clock of the chip's or the machine's description.
    pub seconds: f64,
    /// Threads that shared the work.
    pub threads: usize,
    /// Bytes of the database that were read from memory, each counted once a pass.
    pub database_bytes: u64,
    /// Multiplications modulo the modulus (bigmod).
    pub multiplications: u64,
    /// Squarings modulo the modulus (bigmod).
    pub squarings: u64,
    /// Butterflies of transforms, one for each two words of a layer.
    pub butterflies: u64,
    /// AND gates that were garbled or evaluated.
    pub and_gates: u64,
    /// XOR gates that were.
    pub xor_gates: u64,
    /// Points of the operation's nest that lanes computed, those that pad it among them: multiply-accumulates of a contraction.
    #[serde(serialize_with = "whole")]
    pub points: u128,
    /// Clocks from start to end; 0 where nobody counts them.
    pub cycles: u64,
    /// Lanes that worked.
    pub lanes: u64,
    /// What it took, by cause. What the model says works at the same time, and each bound is what its port or the lanes need by
    /// themselves. A chip counts every clock under one cause.
    pub bounds: Vec<Bound>,
    /// What moved at each level, the outermost first.
    pub traffic: Vec<Traffic>,
    /// Joules and square millimetres, by each of the tables that were asked.
    pub prices: Vec<Price>,
}

/// What something needs, or was waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// `SSD read`, `lanes`.
    pub what: Cow<'static, str>,
    /// Clocks; 0 where nobody counts them.
    pub cycles: u64,
    /// Seconds.
    pub seconds: f64,
}

/// What moves at a level, of all its memories together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// The level, as a machine's description calls it.
    pub level: Cow<'static, str>,
    /// Bits out of it.
    #[serde(serialize_with = "whole")]
    pub read: u128,
    /// Bits into it.
    #[serde(serialize_with = "whole")]
    pub written: u128,
    /// The same by tensor, where they are told apart: by the model, and by no chip's counters.
    #[serde(skip)]
    pub words: Option<Tensors>,
}

/// Words of A, B and C at a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tensors {
    /// Words that are read.
    pub read: [u128; 3],
    /// Words that are written.
    pub written: [u128; 3],
    /// Words of a tile in one memory.
    pub tile: [u128; 3],
}

/// Where a table's figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Chosen so that published totals come out: a fit, and no prediction.
    Calibrated,
    /// This project's own synthesis.
    Synthesised,
    /// Somebody's tables, by name and version.
    Tables,
}

/// Joules and square millimetres of one part of a machine; none: the table does not have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Priced {
    /// The level, or `lanes`.
    pub part: String,
    /// Joules.
    pub joules: Option<f64>,
    /// Square millimetres of all of them; none too for what the table does not count.
    pub mm2: Option<f64>,
}

/// What a run costs by one of the tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Price {
    /// The table.
    pub table: String,
    /// Its kind.
    pub kind: Kind,
    /// Every level, then the lanes.
    pub parts: Vec<Priced>,
}

impl Cost {
    /// The bound that holds, of several the outermost; nothing where none is known.
    #[must_use]
    pub fn holds(&self) -> &str {
        let over = |a: &Bound, b: &Bound| (a.cycles, a.seconds) > (b.cycles, b.seconds);
        let most = self.bounds.iter().reduce(|most, bound| if over(bound, most) { bound } else { most });
        most.map_or("", |bound| &bound.what)
    }

    /// Clocks of a bound; 0 where there is none of this name.
    #[must_use]
    pub fn bound(&self, what: &str) -> u64 {
        self.bounds.iter().find(|bound| bound.what == what).map_or(0, |bound| bound.cycles)
    }

    /// What moved at a level.
    #[must_use]
    pub fn level(&self, name: &str) -> Option<&Traffic> {
        self.traffic.iter().find(|traffic| traffic.level == name)
    }

    /// Watts by a table: joules of the parts that it has, over the seconds.
    #[must_use]
    pub fn watts(&self, price: &Price) -> f64 {
        price.joules() / self.seconds
    }

    /// A run that takes `cycles` clocks at `clock` hertz; `bounds` names the causes and gives the clocks of each.
    #[must_use]
    pub fn clocked(
        cycles: u64,
        clock: f64,
        bounds: impl IntoIterator<Item = (Cow<'static, str>, u64)>,
    ) -> Self {
        let bound = |(what, cycles)| Bound { what, cycles, seconds: cycles as f64 / clock };
        let bounds = bounds.into_iter().map(bound).collect();
        Self { seconds: cycles as f64 / clock, cycles, bounds, ..Self::default() }
    }
}

impl AddAssign<&Cost> for Cost {
    /// Adds the cost of a run that follows; counts that pass what they hold stay at the most, as in a product. Threads and lanes become the larger of the two, and square millimetres stay, for the
    /// machine is the same.
    fn add_assign(&mut self, other: &Cost) {
        self.seconds += other.seconds;
        self.threads = self.threads.max(other.threads);
        for (count, more) in [
            (&mut self.database_bytes, other.database_bytes),
            (&mut self.multiplications, other.multiplications),
            (&mut self.squarings, other.squarings),
            (&mut self.butterflies, other.butterflies),
            (&mut self.and_gates, other.and_gates),
            (&mut self.xor_gates, other.xor_gates),
            (&mut self.cycles, other.cycles),
        ] {
            *count = count.saturating_add(more);
        }
        self.points = self.points.saturating_add(other.points);
        self.lanes = self.lanes.max(other.lanes);
        for bound in &other.bounds {
            match self.bounds.iter_mut().find(|b| b.what == bound.what) {
                Some(b) => {
                    b.cycles = b.cycles.saturating_add(bound.cycles);
                    b.seconds += bound.seconds;
                }
                None => self.bounds.push(bound.clone()),
            }
        }
        for traffic in &other.traffic {
            match self.traffic.iter_mut().find(|t| t.level == traffic.level) {
                Some(t) => *t += traffic,
                None => self.traffic.push(traffic.clone()),
            }
        }
        for price in &other.prices {
            match self.prices.iter_mut().find(|p| p.table == price.table) {
                Some(p) => *p += price,
                None => self.prices.push(price.clone()),
            }
        }
    }
}

impl Mul<u64> for Cost {
    type Output = Self;

    /// The cost of repeating the run `times` times, one run after another.
    fn mul(mut self, times: u64) -> Self {
        let float = times as f64;
        self.seconds *= float;
        for count in [
            &mut self.database_bytes,
            &mut self.multiplications,
            &mut self.squarings,
            &mut self.butterflies,
            &mut self.and_gates,
            &mut self.xor_gates,
            &mut self.cycles,
        ] {
            *count = count.saturating_mul(times);
        }
        self.points = self.points.saturating_mul(times.into());
        for bound in &mut self.bounds {
            (bound.cycles, bound.seconds) = (bound.cycles.saturating_mul(times), bound.seconds * float);
        }
        for traffic in &mut self.traffic {
            let words = traffic.words.iter_mut().flat_map(|w| w.read.iter_mut().chain(&mut w.written));
            for moved in words.chain([&mut traffic.read, &mut traffic.written]) {
                *moved = moved.saturating_mul(times.into());
            }
        }
        for part in self.prices.iter_mut().flat_map(|price| &mut price.parts) {
            part.joules = part.joules.map(|joules| joules * float);
        }
        self
    }
}

impl Bound {
    /// Seconds that nobody counted clocks of.
    #[must_use]
    pub fn seconds(what: impl Into<Cow<'static, str>>, seconds: f64) -> Self {
        Self { what: what.into(), cycles: 0, seconds }
    }
}

impl Traffic {
    /// Bits that moved at a level.
    #[must_use]
    pub fn new(level: impl Into<Cow<'static, str>>, read: u128, written: u128) -> Self {
        Self { level: level.into(), read, written, words: None }
    }
}

impl AddAssign<&Traffic> for Traffic {
    fn add_assign(&mut self, other: &Traffic) {
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.words = match (self.words, other.words) {
            (Some(a), Some(b)) => {
                let sum = |a: [u128; 3], b: [u128; 3]| std::array::from_fn(|t| a[t].saturating_add(b[t]));
                let tile = std::array::from_fn(|t| a.tile[t].max(b.tile[t]));
                Some(Tensors { read: sum(a.read, b.read), written: sum(a.written, b.written), tile })
            }
            _ => None,
        };
    }
}

impl Price {
    /// Joules of the parts that the table has.
    #[must_use]
    pub fn joules(&self) -> f64 {
        self.parts.iter().filter_map(|p| p.joules).sum()
    }

    /// Square millimetres of the parts that the table has.
    #[must_use]
    pub fn mm2(&self) -> f64 {
        self.parts.iter().filter_map(|p| p.mm2).sum()
    }

    /// Parts whose joules the table does not have.
    #[must_use]
    pub fn missing(&self) -> Vec<&str> {
        self.parts.iter().filter(|p| p.joules.is_none()).map(|p| p.part.as_str()).collect()
    }
}

impl AddAssign<&Price> for Price {
    fn add_assign(&mut self, other: &Price) {
        for part in &other.parts {
            match self.parts.iter_mut().find(|p| p.part == part.part) {
                Some(p) => p.joules = p.joules.zip(part.joules).map(|(a, b)| a + b),
                None => self.parts.push(part.clone()),
            }
        }
    }
}

/// A whole number as JSON has it: past 64 bits rounded.
fn whole<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*number) {
        Ok(number) => to.serialize_u64(number),
        Err(_) => to.serialize_f64(*number as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_one_after_the_other_add_by_name() {
        let price = |joules| Price {
            table: "t".into(),
            kind: Kind::Tables,
            parts: vec![
                Priced { part: "SSD".into(), joules, mm2: Some(2.0) },
                Priced { part: "lanes".into(), joules: Some(1.0), mm2: None },
            ],
        };
        let run = |lanes: u64, words, joules| Cost {
            points: 8,
            lanes,
            traffic: vec![Traffic { words, ..Traffic::new("SSD", 64, 8) }],
            prices: vec![price(joules)],
            ..Cost::clocked(10, 1e9, [("lanes".into(), 4), ("SSD".into(), 6)])
        };
        let words = Some(Tensors { read: [1, 2, 3], written: [0; 3], tile: [1, 1, 1] });
        let mut sum = run(2, words, Some(3.0));
        assert_eq!((sum.holds(), sum.bound("lanes"), sum.bound("none")), ("SSD", 4, 0));
        sum += &run(1, words, Some(4.0));
        assert_eq!((sum.cycles, sum.points, sum.lanes, sum.bound("SSD")), (20, 16, 2, 12));
        assert!((sum.seconds - 2e-8).abs() < 1e-20);
        let mut thrice = run(2, words, Some(3.0));
        thrice += &(run(2, words, Some(3.0)) * 2);
        assert_eq!(thrice, run(2, words, Some(3.0)) * 3);
        let ssd = sum.level("SSD").unwrap();
        let read = ssd.words.map(|w| (w.read, w.tile));
        assert_eq!((ssd.read, ssd.written, read), (128, 16, Some(([2, 4, 6], [1, 1, 1]))));
        assert_eq!((sum.prices[0].joules(), sum.prices[0].mm2()), (9.0, 2.0));
        assert!((sum.watts(&sum.prices[0]) - 4.5e8).abs() < 1.0);
        // What one does not know, the sum does not know.
        sum += &run(1, None, None);
        assert_eq!((sum.level("SSD").unwrap().words, sum.prices[0].missing()), (None, vec!["SSD"]));
        let mut none = Cost::default();
        assert_eq!(none.holds(), "");
        none += &sum;
        assert_eq!(none, sum);
    }

    #[test]
    fn counts_stay_at_the_most_that_they_hold() {
        let run = || Cost {
            points: u128::MAX - 1,
            butterflies: u64::MAX - 1,
            traffic: vec![Traffic::new("SSD", u128::MAX - 1, 1)],
            ..Cost::clocked(u64::MAX - 1, 1e9, [("lanes".into(), u64::MAX - 1)])
        };
        let mut sum = run();
        sum += &run();
        let moved = sum.level("SSD").map(|t| (t.read, t.written));
        assert_eq!((sum.cycles, sum.butterflies, sum.bound("lanes")), (u64::MAX, u64::MAX, u64::MAX));
        assert_eq!((sum.points, moved), (u128::MAX, Some((u128::MAX, 2))));
        assert_eq!((run() * 2).cycles, sum.cycles);
    }

    #[test]
    fn of_bounds_that_need_as_much_the_outermost_holds() {
        let cost =
            Cost::clocked(9, 1.0, [("SSD read".into(), 9), ("DRAM ports".into(), 9), ("lanes".into(), 3)]);
        assert_eq!(cost.holds(), "SSD read");
    }
}
