//! Multi-exponentiations: products of powers with small signed exponents, `out[p, m] = product of x[index[p, k]] ^ w[m, k]`.
//!
//! A weight is cut into digits, a *plane* each: bits in two's complement, or windows of signed digits. For each
//! result and plane the factors that the digits pick are multiplied together, and the planes are put together from
//! the top by squarings (Horner). The ways differ in what a plane's product is made of:
//!
//! - **bit-serial**, PH-EPU's dataflow (Fig. 15.4.4): the inputs themselves, for each bit that is set;
//! - **buckets** (Pippenger 1976): inputs of one digit together, then `B1 * B2^2 * B3^3 ...` by running products;
//!   inputs are inverted beforehand for negative digits;
//! - **tables** (Straus 1964): the product of any subset of a few inputs, made once for all outputs, and once for all
//!   positions that have these inputs next to each other, as a convolution's windows do.
//!
//! In two's complement the top plane is negative: all results' are inverted in one batch. Products grow side by side,
//! a factor each in turn ([`Sums`]), so that lanes are full whatever the shape and what is worked on stays near.

use std::collections::{HashMap, HashSet};

use blindcore_accel::bigmod::{Method, MultiExp};
use blindcore_accel::{Error, Line};
use rayon::prelude::*;

use super::{CpuBigmod, CpuRows, Engine};
use crate::memory::Lines;

/// Positions that are looked at to tell how much they have in common.
const SAMPLE: usize = 64;
/// Results whose planes are held at once.
const HELD: usize = 4096;
/// Results that are worked on together by one thread.
const TOGETHER: usize = 16;
/// Lines of tables that are held at once: 256 MiB.
const TABLES: usize = 1 << 22;
/// Products that grow side by side at least, where there are as many factors.
const WIDE: usize = 64;
/// What a squaring costs, in multiplications.
const SQUARE: f64 = 0.7;
/// What inverting one number costs, in multiplications; inverting more adds three each.
const INVERT: f64 = 400.0;

/// How the planes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    BitSerial,
    /// Signed digits of this many bits.
    Buckets(u32),
    /// Subsets of this many inputs.
    Tables(u32),
}

/// The weights of a job, looked at once.
struct Weights<'a> {
    multi_exp: &'a MultiExp,
    /// Bits of the widest in two's complement, the sign's included where one is negative.
    bits: u32,
    negative: bool,
    /// Bits that are set, and weights that are not zero.
    ones: f64,
    used: f64,
}

impl<'a> Weights<'a> {
    fn new(multi_exp: &'a MultiExp) -> Self {
        let negative = multi_exp.weights.iter().any(|w| *w < 0);
        let used = |w: &i64| 64 - if *w < 0 { w.leading_ones() } else { w.leading_zeros() };
        let bits = multi_exp.weights.iter().map(used).max().unwrap_or(0) + u32::from(negative);
        let bits = bits.max(1);
        let mask = (1u64 << bits) - 1;
        let ones: u64 = multi_exp.weights.iter().map(|w| u64::from((*w as u64 & mask).count_ones())).sum();
        let used = multi_exp.weights.iter().filter(|w| **w != 0).count();
        Self { multi_exp, bits, negative, ones: ones as f64, used: used as f64 }
    }

    /// The multiplications of a way, squarings counted as less, for `inputs` residues.
    fn cost(&self, way: Way, inputs: usize) -> f64 {
        let terms = self.multi_exp.terms;
        let (positions, outputs) = (self.multi_exp.positions() as f64, self.multi_exp.outputs() as f64);
        let (terms, bits) = (terms as f64, f64::from(self.bits));
        let planes = |bits: f64| (bits - 1.0).max(0.0) * (SQUARE + 1.0);
        let sign = if self.negative { INVERT + 3.0 * positions * outputs } else { 0.0 };
        match way {
            Way::BitSerial => positions * (self.ones + outputs * (planes(bits) - bits).max(0.0)) + sign,
            Way::Buckets(width) => {
                let windows = f64::from(self.windows(width));
                let buckets = f64::from(1u32 << (width - 1));
                let used = self.used / outputs.max(1.0);
                let each =
                    windows * (used + buckets - 2.0) + (windows - 1.0) * (f64::from(width) * SQUARE + 1.0);
                let inverses = if self.signed(width) { INVERT + 3.0 * inputs as f64 } else { 0.0 };
                positions * outputs * each + inverses
            }
            Way::Tables(group) => {
                let groups = (terms / f64::from(group)).ceil();
                let tables = self.distinct(group) * f64::from((1u32 << group) - group - 1);
                tables + positions * outputs * (bits * (groups - 1.0) + planes(bits)) + sign
            }
        }
    }

    /// Signed digits of `width` bits that the weights take.
    fn windows(&self, width: u32) -> u32 {
        (self.bits + u32::from(!self.negative)).div_ceil(width)
    }

    /// How many tables of `group` inputs the job takes, about: counted where it begins.
    fn distinct(&self, group: u32) -> f64 {
        let terms = self.multi_exp.terms;
        let groups = terms.div_ceil(group as usize);
        let sample = self.multi_exp.positions().min(SAMPLE);
        if sample <= 1 {
            return (self.multi_exp.positions() * groups) as f64;
        }
        let runs =
            self.multi_exp.indices.chunks_exact(terms).take(sample).flat_map(|p| p.chunks(group as usize));
        let distinct = runs.collect::<HashSet<&[u32]>>().len();
        (distinct * self.multi_exp.positions()) as f64 / sample as f64
    }

    /// Whether digits of `width` bits can be negative.
    fn signed(&self, width: u32) -> bool {
        self.negative || self.windows(width) > 1
    }

    fn choose(&self, inputs: usize) -> Way {
        let cheapest = |ways: Vec<Way>| {
            ways.into_iter().min_by(|a, b| self.cost(*a, inputs).total_cmp(&self.cost(*b, inputs)))
        };
        let buckets = || (2..=11).map(Way::Buckets);
        let tables = || (1..=11).map(Way::Tables);
        let ways = match self.multi_exp.method {
            Method::BitSerial => vec![Way::BitSerial],
            Method::Buckets => buckets().collect(),
            Method::Tables => tables().collect(),
            Method::Auto => buckets().chain(tables()).chain([Way::BitSerial]).collect(),
        };
        cheapest(ways).expect("there is a way")
    }
}

/// The signed digits of `width` bits of a weight, lowest first, each at most 2^(width - 1) in magnitude.
fn signed_digits(weight: i64, width: u32, windows: u32) -> impl Iterator<Item = i64> {
    let half = 1i64 << (width - 1);
    let mut rest = weight;
    (0..windows).map(move |window| {
        if window + 1 == windows {
            return rest;
        }
        let above = (rest + half) >> width;
        let digit = rest - (above << width);
        rest = above;
        digit
    })
}

/// Products that grow side by side, each in its slot: the plain words are "sum" and "add", for what is multiplied here
/// is added inside the ciphertexts.
struct Sums<'a> {
    engine: &'a dyn Engine,
    rows: Lines,
    /// Whether a slot has a factor yet.
    filled: Vec<bool>,
    multiplications: usize,
}

impl<'a> Sums<'a> {
    fn new(engine: &'a dyn Engine, slots: usize) -> Self {
        let rows = Lines::zeroed(slots * engine.row_lines());
        Self { engine, rows, filled: vec![false; slots], multiplications: 0 }
    }

    fn get(&self, slot: usize) -> Option<&[Line]> {
        let row = self.engine.row_lines();
        self.filled[slot].then(|| &self.rows[slot * row..][..row])
    }

    /// One factor each into some slots, all different.
    fn add<'b>(&mut self, factors: impl IntoIterator<Item = (usize, &'b [Line])>) {
        let row = self.engine.row_lines();
        let (mut slots, mut rows) = (Vec::new(), Vec::new());
        for (slot, factor) in factors {
            if self.filled[slot] {
                slots.push(slot);
                rows.push(factor);
            } else {
                self.rows[slot * row..][..row].copy_from_slice(factor);
                self.filled[slot] = true;
            }
        }
        self.multiplications += slots.len();
        self.engine.multiply_into(&mut self.rows, &slots, &rows);
    }

    /// The product of each list. Long lists are cut, so that there are enough to fill the lanes.
    fn of(engine: &'a dyn Engine, lists: &[Vec<&[Line]>]) -> Self {
        let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
        let cuts = WIDE.div_ceil(lists.len().max(1)).min(longest / 4).max(1);
        let mut sums = Self::new(engine, lists.len() * cuts);
        for first in (0..longest).step_by(cuts) {
            sums.add(lists.iter().enumerate().flat_map(|(i, list)| {
                let factors = list.iter().skip(first).take(cuts).enumerate();
                factors.map(move |(cut, factor)| (i * cuts + cut, *factor))
            }));
        }
        // The cuts' products together, by halves.
        let mut left = cuts;
        while left > 1 {
            let half = left.div_ceil(2);
            let upper: Vec<(usize, Vec<Line>)> = (0..lists.len())
                .flat_map(|i| (half..left).map(move |cut| (i * cuts + cut, half)))
                .filter_map(|(slot, half)| Some((slot - half, sums.get(slot)?.to_vec())))
                .collect();
            sums.add(upper.iter().map(|(slot, row)| (*slot, row.as_slice())));
            left = half;
        }
        if cuts > 1 {
            sums.keep(cuts);
        }
        sums
    }

    /// The product of each list, where lists are about as long as each other: products stay in their lanes to the end,
    /// and short lists are filled with ones.
    fn of_even(engine: &'a dyn Engine, lists: &[Vec<&[Line]>]) -> Self {
        if lists.len() < WIDE {
            return Self::of(engine, lists);
        }
        let mut sums = Self::new(engine, lists.len());
        engine.products(lists, &mut sums.rows);
        sums.filled = lists.iter().map(|list| !list.is_empty()).collect();
        sums.multiplications = lists.iter().map(|list| list.len().saturating_sub(1)).sum();
        sums
    }

    /// Keeps every `step`th slot.
    fn keep(&mut self, step: usize) {
        let row = self.engine.row_lines();
        self.filled = self.filled.iter().step_by(step).copied().collect();
        self.rows = Lines::Small(self.rows.chunks_exact(row).step_by(step).flatten().copied().collect());
    }
}

/// Results to be made: each a position and an output.
type Unit = (u32, u32);

/// The planes of some results, lowest first: result by result, plane by plane.
struct Planes<'a> {
    sums: Sums<'a>,
    count: usize,
    /// Squarings from a plane down to the next.
    width: u32,
}

/// What a piece of work sees.
struct Job<'a> {
    engine: &'a dyn Engine,
    inputs: &'a [Line],
    inverses: &'a [Line],
    weights: &'a Weights<'a>,
}

impl<'a> Job<'a> {
    fn input(&self, index: u32) -> &'a [Line] {
        let row = self.engine.row_lines();
        &self.inputs[index as usize * row..][..row]
    }

    fn inverse(&self, index: u32) -> &'a [Line] {
        let row = self.engine.row_lines();
        &self.inverses[index as usize * row..][..row]
    }

    fn bit_serial(&self, units: &[Unit]) -> Planes<'a> {
        let mut lists = Vec::new();
        for unit in units {
            for bit in 0..self.weights.bits {
                let set = self.weights.terms(*unit).filter(|(_, w)| w >> bit & 1 == 1);
                lists.push(set.map(|(index, _)| self.input(index)).collect());
            }
        }
        Planes { sums: Sums::of(self.engine, &lists), count: self.weights.bits as usize, width: 1 }
    }

    fn buckets(&self, width: u32, units: &[Unit]) -> Planes<'a> {
        let windows = self.weights.windows(width);
        let buckets = 1usize << (width - 1);
        let mut lists = vec![Vec::new(); units.len() * windows as usize * buckets];
        for (unit, lists) in units.iter().zip(lists.chunks_exact_mut(windows as usize * buckets)) {
            for (index, weight) in self.weights.terms(*unit) {
                for (window, digit) in signed_digits(weight, width, windows).enumerate() {
                    if digit != 0 {
                        let row = if digit < 0 { self.inverse(index) } else { self.input(index) };
                        lists[window * buckets + digit.unsigned_abs() as usize - 1].push(row);
                    }
                }
            }
        }
        let products = Sums::of(self.engine, &lists);
        // B1 * B2^2 * ... * Bv^v: the product of the running products from the top.
        let count = units.len() * windows as usize;
        let (mut running, mut total) = (Sums::new(self.engine, count), Sums::new(self.engine, count));
        for bucket in (0..buckets).rev() {
            running.add((0..count).filter_map(|i| Some((i, products.get(i * buckets + bucket)?))));
            total.add((0..count).filter_map(|i| Some((i, running.get(i)?))));
        }
        total.multiplications += products.multiplications + running.multiplications;
        Planes { sums: total, count: windows as usize, width }
    }

    /// The tables of the distinct runs of `group` inputs of some positions, a thread's share each.
    fn tables<'t>(&self, group: u32, positions: std::ops::Range<u32>) -> Tables<'t>
    where
        'a: 't,
    {
        let terms = self.weights.multi_exp.terms;
        let mut at = HashMap::new();
        let mut runs: Vec<&[u32]> = Vec::new();
        let all =
            &self.weights.multi_exp.indices[positions.start as usize * terms..positions.end as usize * terms];
        let of: Vec<u32> = all
            .chunks_exact(terms)
            .flat_map(|position| position.chunks(group as usize))
            .map(|run| {
                *at.entry(run).or_insert_with(|| {
                    runs.push(run);
                    runs.len() as u32 - 1
                })
            })
            .collect();
        let share = runs.len().div_ceil(rayon::current_num_threads()).clamp(1, WIDE);
        let shares = runs.par_chunks(share).map(|runs| self.table(group, runs)).collect();
        Tables { group, groups: terms.div_ceil(group as usize), first: positions.start, of, share, shares }
    }

    /// The product of subset s of run r at s * runs + r; doubled an input at a time.
    fn table(&self, group: u32, runs: &[&[u32]]) -> Sums<'a> {
        let row = self.engine.row_lines();
        let mut table = Sums::new(self.engine, runs.len() << group);
        for bit in 0..group as usize {
            let half = runs.len() << bit;
            table.rows.copy_within(..half * row, half * row);
            table.filled.copy_within(..half, half);
            table.add((half..2 * half).filter_map(|slot| {
                let index = runs[slot % runs.len()].get(bit).filter(|i| **i != MultiExp::ABSENT);
                Some((slot, self.input(*index?)))
            }));
        }
        table
    }

    fn looked_up(&self, tables: &Tables<'_>, units: &[Unit]) -> Planes<'a> {
        let terms = self.weights.multi_exp.terms;
        let mut lists = Vec::new();
        for (position, output) in units {
            let weights = &self.weights.multi_exp.weights[*output as usize * terms..][..terms];
            for bit in 0..self.weights.bits {
                let subset = |weights: &[i64]| {
                    weights.iter().enumerate().fold(0, |s, (i, w)| s | ((w >> bit & 1) as usize) << i)
                };
                let weights = weights.chunks(tables.group as usize).enumerate();
                lists.push(weights.filter_map(|(g, w)| tables.get(*position, g, subset(w))).collect());
            }
        }
        Planes { sums: Sums::of_even(self.engine, &lists), count: self.weights.bits as usize, width: 1 }
    }
}

/// Products of all subsets of runs of inputs.
struct Tables<'a> {
    group: u32,
    /// Runs of a position.
    groups: usize,
    /// The first position.
    first: u32,
    /// Which run each position's are, run by run.
    of: Vec<u32>,
    /// Runs of a share.
    share: usize,
    shares: Vec<Sums<'a>>,
}

impl Tables<'_> {
    /// The product of a subset of run `g` of a position.
    fn get(&self, position: u32, g: usize, subset: usize) -> Option<&[Line]> {
        let run = self.of[(position - self.first) as usize * self.groups + g] as usize;
        let share = &self.shares[run / self.share];
        let runs = share.filled.len() >> self.group;
        share.get(subset * runs + run % self.share)
    }
}

impl Planes<'_> {
    /// The rows of the top plane, with their slots.
    fn top(&self) -> impl Iterator<Item = (usize, &[Line])> {
        let slots = (0..self.sums.filled.len()).skip(self.count - 1).step_by(self.count);
        slots.filter_map(|slot| Some((slot, self.sums.get(slot)?)))
    }

    /// Puts planes together from the top; `out` has room for the results, `one` is what an empty product is. Says how
    /// many squarings it took.
    fn horner(&mut self, one: &[Line], out: &mut [Line]) -> usize {
        let engine = self.sums.engine;
        let row = engine.row_lines();
        let results = self.sums.filled.len() / self.count;
        let mut sums = Sums::new(engine, results);
        let mut squarings = 0;
        for plane in (0..self.count).rev() {
            let filled: Vec<usize> = (0..results).filter(|i| sums.filled[*i]).collect();
            let mut squares = vec![Line([0; 8]); filled.len() * row];
            let rows: Vec<&[Line]> = filled.iter().filter_map(|i| sums.get(*i)).collect();
            squarings += filled.len() * self.width as usize;
            engine.square(&rows, self.width, &mut squares);
            for (i, square) in filled.iter().zip(squares.chunks_exact(row)) {
                sums.rows[i * row..][..row].copy_from_slice(square);
            }
            sums.add((0..results).filter_map(|i| Some((i, self.sums.get(i * self.count + plane)?))));
        }
        for (i, out) in out.chunks_exact_mut(row).enumerate() {
            out.copy_from_slice(sums.get(i).unwrap_or(one));
        }
        self.sums.multiplications += sums.multiplications;
        squarings
    }
}

impl CpuBigmod {
    /// The results, the multiplications and the squarings that they took.
    pub(super) fn multi_exp_all(
        &self,
        x: &CpuRows,
        multi_exp: &MultiExp,
    ) -> Result<(CpuRows, usize, usize), Error> {
        let weights = Weights::new(multi_exp);
        let way = weights.choose(x.len());
        let (positions, outputs) = (multi_exp.positions() as u32, multi_exp.outputs() as u32);
        let mut out = self.rows(0);
        let (mut multiplications, mut squarings) = (0, 0);
        if positions == 0 || outputs == 0 {
            return Ok((out, 0, 0));
        }

        let mut inverses = self.rows(0);
        if matches!(way, Way::Buckets(width) if weights.signed(width)) {
            let (all, count) = self.invert_all(x)?;
            inverses = all;
            multiplications += count;
        }
        let engine = &*self.engine;
        let job = Job { engine, inputs: x.lines(), inverses: inverses.lines(), weights: &weights };
        // A block of results: all outputs of as many positions as are held, or a part of one position's outputs.
        let block_outputs = outputs.min(HELD as u32);
        let mut block_positions = (HELD as u32 / block_outputs).max(1);
        if let Way::Tables(group) = way {
            let runs = (weights.distinct(group) / f64::from(positions)).ceil() as usize;
            let lines = (runs << group) * self.engine.row_lines();
            block_positions = block_positions.min((TABLES / lines.max(1)) as u32).max(1);
        }
        for first in (0..positions).step_by(block_positions as usize) {
            let positions = first..positions.min(first + block_positions);
            for first in (0..outputs).step_by(block_outputs as usize) {
                let outputs = first..outputs.min(first + block_outputs);
                let units: Vec<Unit> =
                    positions.clone().flat_map(|p| outputs.clone().map(move |m| (p, m))).collect();
                let (block, m, s) = self.multi_exp_block(&job, way, &units)?;
                out.append(&block)?;
                multiplications += m;
                squarings += s;
            }
        }
        Ok((out, multiplications, squarings))
    }

    fn multi_exp_block(
        &self,
        job: &Job<'_>,
        way: Way,
        units: &[Unit],
    ) -> Result<(CpuRows, usize, usize), Error> {
        let row = self.engine.row_lines();
        // What a thread takes at once.
        let share = units.len().div_ceil(self.pool.current_num_threads());
        let piece = share.clamp(1, TOGETHER);
        let mut multiplications = 0;
        let mut pieces: Vec<Planes<'_>> = self.pool.install(|| {
            let all = units.par_chunks(piece);
            match way {
                Way::BitSerial => all.map(|units| job.bit_serial(units)).collect(),
                Way::Buckets(width) => all.map(|units| job.buckets(width, units)).collect(),
                Way::Tables(group) => {
                    let tables = job.tables(group, units[0].0..units[units.len() - 1].0 + 1);
                    multiplications += tables.shares.iter().map(|sums| sums.multiplications).sum::<usize>();
                    all.map(|units| job.looked_up(&tables, units)).collect()
                }
            }
        });

        // The sign planes of all, inverted in one batch.
        if job.weights.negative && !matches!(way, Way::Buckets(_)) {
            let count = pieces.iter().map(|planes| planes.top().count()).sum();
            let mut negative = self.rows(count);
            let rows = pieces.iter().flat_map(|planes| planes.top().map(|(_, row)| row));
            for (to, from) in negative.lines_mut().chunks_exact_mut(row).zip(rows) {
                to.copy_from_slice(from);
            }
            let (inverted, count) = self.invert_all(&negative)?;
            multiplications += count;
            let mut inverted = inverted.lines().chunks_exact(row);
            for planes in &mut pieces {
                let slots: Vec<usize> = planes.top().map(|(slot, _)| slot).collect();
                for slot in slots {
                    let inverse = inverted.next().expect("one each");
                    planes.sums.rows[slot * row..][..row].copy_from_slice(inverse);
                }
            }
        }

        let mut one = self.rows(1);
        let mut number = vec![0; self.modulus.words()];
        number[0] = 1;
        self.engine.enter(&[&number], one.lines_mut());
        let mut out = self.rows(units.len());
        let counts: Vec<(usize, usize)> = self.pool.install(|| {
            out.lines_mut()
                .par_chunks_mut(piece * row)
                .zip(pieces)
                .map(|(out, mut planes)| {
                    let squarings = planes.horner(one.lines(), out);
                    (planes.sums.multiplications, squarings)
                })
                .collect()
        });
        multiplications += counts.iter().map(|c| c.0).sum::<usize>();
        Ok((out, multiplications, counts.iter().map(|c| c.1).sum()))
    }
}

impl Weights<'_> {
    /// The terms of a result that are there and not of weight zero.
    fn terms(&self, (position, output): Unit) -> impl Iterator<Item = (u32, i64)> {
        let terms = self.multi_exp.terms;
        let indices = &self.multi_exp.indices[position as usize * terms..][..terms];
        let weights = &self.multi_exp.weights[output as usize * terms..][..terms];
        let both = indices.iter().copied().zip(weights.iter().copied());
        both.filter(|(index, weight)| *index != MultiExp::ABSENT && *weight != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_digits_make_the_weight_and_stay_small() {
        for width in 1..=11u32 {
            for weight in (-300..300).chain([i64::from(i32::MIN), i64::from(i32::MAX), 1 << 40, -(1 << 40)]) {
                let used = 64 - if weight < 0 { weight.leading_ones() } else { weight.leading_zeros() };
                let windows = (used + 1).div_ceil(width);
                let digits: Vec<i64> = signed_digits(weight, width, windows).collect();
                let sum = digits.iter().rev().fold(0i128, |sum, d| (sum << width) + i128::from(*d));
                assert_eq!(sum, i128::from(weight), "{width}");
                assert!(digits.iter().all(|d| d.unsigned_abs() <= 1 << (width - 1)), "{weight} {digits:?}");
            }
        }
    }
}
