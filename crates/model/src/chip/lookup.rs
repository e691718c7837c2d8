//! A whole lookup on one machine: its passes, the transforms around them, and what that gains which stays on the chip.
//!
//! ```text
//!   query ─▶ transforms: expand ──A──▶ contract: a pass over B ──C──▶ transforms: fold, pick ─▶ answer
//!                                 ▲                             ▲
//!              Fused:     A and C stay in a level of the chip that has room for them whole
//!              Carried:   the chip does all of it, and A and C go through its outermost level
//!              Elsewhere: another machine does the transforms, and A and C go there and back
//! ```
//!
//! Shay 2023 leaves all but the pass to another machine (chapters 3 and 7). Dimensions of passes are those that a scheme asks a device for
//! ([`Params::answering`]), and transforms are those that it declares ([`RingWork`]), whose products count as a share of one. Neither is
//! typed in.
//!
//! [`RingWork`]: blindcore_lookup::schemes::RingWork

use blindcore_accel::cost::{Bound, Cost};
use blindcore_lookup::{Error, MAX_GATHER, Params, SchemeChoice, SchemeRef, plan};
use blindcore_units::quoted;

use super::machine::Machine;
use super::nest::{Mapping, Misfit, moved};
use super::problem::{Problem, Tensor};
use super::search::{Found, Space, search};
use super::tables::Tables;

/// Coefficients of the polynomials that [`blindcore_lookup::schemes::RingWork`] counts transforms of.
const DEGREE: u64 = 2048;
/// Bits of a residue while transforms work on it: schemes expand modulo a larger prime than they store by.
const RESIDUE_BITS: u64 = 64;
/// Polynomials that an external product or a switch of keys has in hand: two ciphertexts, the digits of both halves, rows of a key.
const IN_HAND: u64 = 16;
/// A bound that is larger than as many is rounded up to a multiple of a power of two, by a thirty-second at most, so that it can be cut.
const EXACT: u64 = 64;

/// A pass over a database.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// What it goes over, as the scheme calls it.
    pub over: &'static str,
    /// The operation. Large bounds are rounded up by a thirty-second at most.
    pub problem: Problem,
    /// How often it is made.
    pub times: u64,
    /// Whether transforms make A of what a query sends.
    pub expanded: bool,
    /// Whether A is one polynomial of each query that is turned.
    pub turned: bool,
}

/// What gathered lookups of a scheme take.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The scheme.
    pub scheme: &'static str,
    /// Queries that are gathered.
    pub queries: u64,
    /// Passes that answer them.
    pub passes: Vec<Pass>,
    /// Transforms of 2,048 coefficients, or what takes as long, beside the passes, of all queries.
    pub transforms: u64,
}

/// Where transforms are done.
#[derive(Clone, Copy, Debug)]
pub enum Ring<'a> {
    /// On the chip, and what goes between them and passes stays there.
    Fused,
    /// On the chip, and what goes between goes through the outermost level.
    Carried,
    /// On another machine, while the chip makes other passes; what goes between goes through the outermost level.
    Elsewhere(&'a Machine),
}

/// What gathered lookups cost on a machine.
#[derive(Clone, Debug)]
pub struct Answered {
    /// All of it, one stage after the other. Its bounds are what each port and kind of lanes needs for all stages.
    pub cost: Cost,
    /// Lookups that it answers.
    pub queries: u64,
    /// How the longest pass is mapped.
    pub mapping: Mapping,
    /// The level that A and C of passes stay in; 0: the outermost. Of several passes the innermost.
    pub between: usize,
    /// The level that transforms work in.
    pub transforms: Option<usize>,
}

impl Answered {
    /// Lookups per second, one behind the other without a gap: what one stage leaves idle another's lookup uses. So the bound that holds sets it.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        let longest = self.cost.bounds.iter().map(|bound| bound.seconds).fold(0.0, f64::max);
        self.queries as f64 / longest
    }
}

impl Lookup {
    /// Lookups of a table of `records` records of `bytes` bytes each, by number, as `db build` would shape it.
    ///
    /// # Errors
    /// The scheme holds no such table.
    pub fn new(scheme: SchemeRef, records: u64, bytes: usize, queries: usize) -> Result<Self, Error> {
        Ok(Self::of(&plan(records, bytes, false, SchemeChoice::Only(scheme))?, queries))
    }

    /// The same by the scheme's name, of up to [`MAX_GATHER`] queries.
    ///
    /// # Errors
    /// The scheme is unknown, it can't hold the table, or `queries` is out of range. The message says the value and the limit.
    pub fn named(scheme: &str, records: u64, bytes: usize, queries: u64) -> Result<Self, String> {
        let known: SchemeRef = scheme.parse().map_err(|e| format!("lookup is {}: {e}", quoted(scheme)))?;
        let queries = usize::try_from(queries).ok().filter(|queries| (1..=MAX_GATHER).contains(queries));
        let queries =
            queries.ok_or_else(|| format!("queries is out of range; say 1 to {MAX_GATHER} of a pass"))?;
        Self::new(known, records, bytes, queries).map_err(|e| e.to_string())
    }

    /// Lookups with these parameters.
    #[must_use]
    pub fn of(params: &Params, queries: usize) -> Self {
        let operands = params.operands();
        let pass = |run: &blindcore_lookup::schemes::Run| {
            let (operand, queries) = (&operands[run.operand], run.queries as u64);
            let shape = &operand.shape;
            // Values lie as channels of a few each: a chip has one modulus for all that have the same.
            let mut moduli = Vec::new();
            for modulus in &shape.moduli {
                if !moduli.contains(modulus) {
                    moduli.push(*modulus);
                }
            }
            let residue = |m: &blindcore_math::Modulus| 64 - u64::from(m.max_residue().leading_zeros());
            let bits = moduli.iter().map(residue).max().unwrap_or(1).next_multiple_of(8);
            let (c, d) = (moduli.len(), shape.c() * shape.d / moduli.len().max(1));
            let bounds = [run.queries, shape.n, shape.p, shape.q, shape.j, shape.k, c, d];
            let problem = Problem {
                bits: [bits, shape.database.bytes() as u64 * 8, bits],
                ..Problem::contract(bounds.map(|bound| cut(bound as u64)))
            };
            let a = shape.query_len(run.queries) as u64 * bits / 8;
            let expanded = a > queries * params.query_bytes() as u64;
            let turned = shape.window.is_some();
            Pass { over: operand.name, problem, times: run.passes, expanded, turned }
        };
        let transforms = (params.ring_work().answering * queries as f64).ceil() as u64;
        let scheme = params.scheme.name();
        let passes = params.answering(queries).iter().map(pass).collect();
        Self { scheme, queries: queries as u64, passes, transforms }
    }

    /// Bytes of all that passes go over.
    #[must_use]
    pub fn database_bytes(&self) -> u128 {
        let mut over = Vec::new();
        self.passes
            .iter()
            .map(|pass| {
                let bits = pass.problem.words(Tensor::B) * u128::from(pass.problem.bits[1]);
                // Full passes and the rest's go over the same.
                let new = !over.contains(&pass.over);
                over.push(pass.over);
                if new { bits / 8 } else { 0 }
            })
            .sum()
    }

    /// What they cost on a machine, by the best mapping of each stage: A and C of each pass stay in the level that is best.
    ///
    /// # Errors
    /// The machine has no room for the database, does not do an operation, or no mapping fits.
    pub fn answer(&self, machine: &Machine, tables: &[Tables], ring: Ring<'_>) -> Result<Answered, Misfit> {
        let (bytes, outermost) = (self.database_bytes(), &machine.levels[0]);
        if let Some(room) = outermost.bytes.filter(|room| bytes > u128::from(*room)) {
            return Err(Misfit(format!(
                "the database takes {bytes} bytes, over the {room} of {}",
                outermost.name
            )));
        }
        let mut answered = Answered {
            cost: Cost::default(),
            queries: self.queries,
            mapping: Mapping { levels: Vec::new() },
            between: 0,
            transforms: None,
        };
        let mut longest = 0;
        for pass in &self.passes {
            let between = self.transforms > 0;
            let fused = between && matches!(ring, Ring::Fused);
            let carried = between && !matches!(ring, Ring::Elsewhere(_));
            let (found, mut cost) = pass.staying(machine, tables, 0, carried)?;
            let (mut mapping, mut at) = (found, 0);
            // Of the levels that have room for them the best.
            for level in (1..machine.levels.len()).take_while(|l| fused && machine.levels[*l].count == 1) {
                if let Ok((found, less)) = pass.staying(machine, tables, level, false)
                    && rank(&less) < rank(&cost)
                {
                    (mapping, cost, at) = (found, less, level);
                }
            }
            let cost = cost * pass.times;
            if cost.cycles >= longest {
                (longest, answered.mapping) = (cost.cycles, mapping);
            }
            answered.between = answered.between.max(at);
            answered.cost += &cost;
        }
        if self.transforms > 0 {
            let on = if let Ring::Elsewhere(other) = ring { other } else { machine };
            let (cost, at) = self.transforming(on, tables)?;
            match ring {
                Ring::Elsewhere(_) => {
                    let cycles = (cost.seconds * machine.clock).ceil() as u64;
                    let bound = Bound { what: on.name.clone().into(), cycles, seconds: cost.seconds };
                    answered.cost.cycles += cycles;
                    answered.cost.seconds += cost.seconds;
                    answered.cost.bounds.push(bound);
                }
                _ => {
                    answered.cost += &cost;
                    answered.transforms = Some(at);
                }
            }
        }
        Ok(answered)
    }

    /// What transforms cost in the level that is best of those that have room for what they have in hand, and that level.
    fn transforming(&self, machine: &Machine, tables: &[Tables]) -> Result<(Cost, usize), Misfit> {
        let problem =
            Problem { bits: [RESIDUE_BITS; 3], ..Problem::transform(cut(self.transforms), 1, DEGREE) };
        let needed = IN_HAND * DEGREE * RESIDUE_BITS / 8;
        let room = |at: &usize| machine.levels[*at].bytes.is_none_or(|bytes| bytes >= needed);
        let mut best: Option<(Cost, usize)> = None;
        for at in (0..machine.levels.len()).filter(room) {
            let mut cost = search(&problem, &machine.within(at), tables, &Space::default())?.cost;
            // Memories are as large as they are.
            let chip = machine.doing(&problem);
            cost.prices =
                tables.iter().map(|table| table.price(&chip, &cost, cost.butterflies as f64)).collect();
            if best.as_ref().is_none_or(|best| rank(&cost) < rank(&best.0)) {
                best = Some((cost, at));
            }
        }
        let why = || {
            Misfit(format!(
                "no level of {} has the {needed} bytes that transforms have in hand",
                machine.name
            ))
        };
        best.ok_or_else(why)
    }
}

/// The machine with one of its resources doubled, and what that is called: each level's rate, each size, each kind of lanes, all of them with
/// the memories next to them, the clock.
#[must_use]
pub fn more(machine: &Machine) -> Vec<(String, Machine)> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Machine)| {
        let mut more = machine.clone();
        change(&mut more);
        all.push((what, more));
    };
    for (at, level) in machine.levels.iter().enumerate() {
        add(format!("{} rate", level.name), &|m| m.levels[at].port.num *= 2);
        if level.bytes.is_some() {
            add(format!("{} size", level.name), &|m| {
                m.levels[at].bytes = m.levels[at].bytes.map(|bytes| bytes * 2);
            });
        }
    }
    add(machine.lanes.name.clone(), &|m| m.lanes.count *= 2);
    for (at, lanes) in machine.beside.iter().enumerate() {
        add(lanes.name.clone(), &|m| m.beside[at].count *= 2);
    }
    if let Some(inner) = machine.levels.last() {
        add(format!("lanes of all kinds and {}", inner.name), &|m| {
            m.levels.last_mut().into_iter().for_each(|level| level.count *= 2);
            m.lanes.count *= 2;
            m.beside.iter_mut().for_each(|lanes| lanes.count *= 2);
        });
    }
    add("clock".into(), &|m| *m = machine.at_clock(2.0 * machine.clock));
    all
}

/// Fewest clocks, then fewest joules.
fn rank(cost: &Cost) -> (u64, f64) {
    (cost.cycles, cost.prices.first().map_or(0.0, blindcore_accel::cost::Price::joules))
}

impl Pass {
    /// The best mapping where C, and A if it is made here, stay in a level, and its cost; with `carried` that of what transforms make and
    /// take through the outermost level too.
    fn staying(
        &self,
        machine: &Machine,
        tables: &[Tables],
        level: usize,
        carried: bool,
    ) -> Result<(Mapping, Cost), Misfit> {
        let home = |turned: usize| [if self.expanded { level } else { turned }, 0, level];
        // What is turned begins on the chip, if there is room.
        let single = machine.levels.get(1).is_some_and(|l| l.count == 1);
        let turned = if self.turned && single { level.max(1) } else { 0 };
        let at = |home| search(&self.problem, machine, tables, &Space { home, ..Space::default() });
        let found = if turned > 0 { at(home(turned)).or_else(|_| at(home(0))) } else { at(home(0)) };
        let Found { mapping, mut cost, .. } = found?;
        if carried {
            // What transforms make and take goes the same way as what passes take and make.
            let bits = |t: Tensor| self.problem.words(t) * u128::from(self.problem.bits[t as usize]);
            let made = if self.expanded { bits(Tensor::A) } else { 0 };
            cost += &moved(machine, bits(Tensor::C), made, tables);
        }
        Ok((mapping, cost))
    }
}

/// A bound that can be cut: rounded up by a thirty-second at most.
fn cut(bound: u64) -> u64 {
    match bound {
        ..=EXACT => bound.max(1),
        _ => bound.next_multiple_of(1 << (bound.ilog2() - EXACT.ilog2() + 1)),
    }
}

#[cfg(test)]
mod tests;
