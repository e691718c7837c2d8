//! Weighings: products of powers with small signed exponents, `out[p, m] = product of x[index[p, k]] ^ w[m, k]`.
//!
//! A weight is cut into digits, a *plane* each: bits in two's complement, or windows of signed digits. For each
//! result and plane the factors that the digits pick are multiplied together, and the planes are put together from
//! the top by squarings (Horner). The ways differ in what a plane's product is made of:
//!
//! - **bit-serial**, PH-EPU's dataflow (Fig. 15.4.4): the inputs themselves, for each bit that is set;
//! - **buckets** (Pippenger 1976): inputs of one digit together, then `B1 * B2^2 * B3^3 ...` by running products;
//!   inputs are inverted beforehand for negative digits;
//! - **tables** (Straus 1964): the product of any subset of a few inputs, made once a position for all outputs.
//!
//! In two's complement the top plane is negative: all results' are inverted in one batch. Factors are multiplied
//! in trees, all results' trees together, so that lanes are full whatever the shape.

use blindcore_accel::Error;
use blindcore_accel::bigmod::{Line, Mac, Method, Residues};
use rayon::prelude::*;

use super::{CpuBigmod, Engine};

/// Results whose planes are held at once.
const HELD: usize = 4096;
/// Results that are worked on together by one thread.
const TOGETHER: usize = 32;
/// Multiplications fewer than this are not worth another thread.
const ALONE: usize = 64;
/// What a squaring costs, in multiplications.
const SQUARE: f64 = 0.7;
/// What inverting one number costs, in multiplications; inverting more adds three each.
const INVERT: f64 = 400.0;

/// How the planes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    BitSerial,
    /// Signed digits of so many bits.
    Buckets(u32),
    /// Subsets of so many inputs.
    Tables(u32),
}

/// The weights of a job, looked at once.
struct Weights<'a> {
    mac: &'a Mac,
    /// Bits of the widest in two's complement, the sign's included where one is negative.
    bits: u32,
    negative: bool,
}

impl<'a> Weights<'a> {
    fn new(mac: &'a Mac) -> Self {
        let negative = mac.weights.iter().any(|w| *w < 0);
        let used = |w: &i64| 64 - if *w < 0 { w.leading_ones() } else { w.leading_zeros() };
        let bits = mac.weights.iter().map(used).max().unwrap_or(0) + u32::from(negative);
        Self { mac, bits: bits.max(1), negative }
    }

    /// The multiplications of a way, squarings counted as less, for `inputs` residues.
    fn cost(&self, way: Way, inputs: usize) -> f64 {
        let Mac { terms, weights, .. } = self.mac;
        let (positions, outputs) = (self.mac.positions() as f64, self.mac.outputs() as f64);
        let (terms, bits) = (*terms as f64, f64::from(self.bits));
        let planes = |bits: f64| (bits - 1.0).max(0.0) * (SQUARE + 1.0);
        let sign = if self.negative { INVERT + 3.0 * positions * outputs } else { 0.0 };
        match way {
            Way::BitSerial => {
                let mask = (1u64 << self.bits) - 1;
                let ones: u64 = weights.iter().map(|w| u64::from((*w as u64 & mask).count_ones())).sum();
                positions * (ones as f64 + outputs * (planes(bits) - bits).max(0.0)) + sign
            }
            Way::Buckets(width) => {
                let windows = f64::from(self.windows(width));
                let buckets = f64::from(1u32 << (width - 1));
                let used = weights.iter().filter(|w| **w != 0).count() as f64 / outputs.max(1.0);
                let each =
                    windows * (used + buckets - 2.0) + (windows - 1.0) * (f64::from(width) * SQUARE + 1.0);
                let inverses = if self.signed(width) { INVERT + 3.0 * inputs as f64 } else { 0.0 };
                positions * outputs * each + inverses
            }
            Way::Tables(group) => {
                let groups = (terms / f64::from(group)).ceil();
                let table = groups * f64::from((1u32 << group) - group - 1);
                positions * (table + outputs * (bits * (groups - 1.0) + planes(bits))) + sign
            }
        }
    }

    /// Signed digits of `width` bits that the weights take.
    fn windows(&self, width: u32) -> u32 {
        (self.bits + u32::from(!self.negative)).div_ceil(width)
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
        let ways = match self.mac.method {
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

/// A row: an input, an input's inverse, or one that was made.
#[derive(Clone, Copy)]
enum Row {
    Input(u32),
    Inverse(u32),
    Made(u32),
}

/// Rows that were made together, in order.
type Made = std::iter::Map<std::ops::Range<u32>, fn(u32) -> Row>;

/// Where rows are made, one after the other.
struct Arena<'a> {
    engine: &'a dyn Engine,
    inputs: &'a [Line],
    inverses: &'a [Line],
    made: Vec<Line>,
    multiplications: usize,
    squarings: usize,
}

impl<'a> Arena<'a> {
    fn new(engine: &'a dyn Engine, inputs: &'a [Line], inverses: &'a [Line]) -> Self {
        Self { engine, inputs, inverses, made: Vec::new(), multiplications: 0, squarings: 0 }
    }

    /// Makes `count` rows: `work` gets a way to find rows, the first item of its piece, and where to write.
    fn make(
        &mut self,
        count: usize,
        work: impl for<'b> Fn(&dyn Fn(Row) -> &'b [Line], usize, &mut [Line]) + Sync,
    ) -> Made {
        let row = self.engine.row_lines();
        let first = self.made.len();
        self.made.resize(first + count * row, Line([0; 8]));
        let (before, out) = self.made.split_at_mut(first);
        let (inputs, inverses, before) = (self.inputs, self.inverses, &*before);
        let find = |r: Row| {
            let (lines, at) = match r {
                Row::Input(at) => (inputs, at),
                Row::Inverse(at) => (inverses, at),
                Row::Made(at) => (before, at),
            };
            &lines[at as usize * row..][..row]
        };
        if count < ALONE {
            work(&find, 0, out);
        } else {
            let piece = count.div_ceil(rayon::current_num_threads()).next_multiple_of(self.engine.lanes());
            out.par_chunks_mut(piece * row).enumerate().for_each(|(i, out)| work(&find, i * piece, out));
        }
        ((first / row) as u32..(first / row + count) as u32).map(Row::Made)
    }

    fn multiply(&mut self, factors: &[(Row, Row)]) -> Made {
        let (engine, row) = (self.engine, self.engine.row_lines());
        self.multiplications += factors.len();
        self.make(factors.len(), |find, first, out| {
            let factors = &factors[first..][..out.len() / row];
            let x: Vec<&[Line]> = factors.iter().map(|f| find(f.0)).collect();
            let y: Vec<&[Line]> = factors.iter().map(|f| find(f.1)).collect();
            engine.multiply(&x, &y, out);
        })
    }

    fn square(&mut self, rows: &[Row], times: u32) -> Made {
        let (engine, row) = (self.engine, self.engine.row_lines());
        self.squarings += rows.len() * times as usize;
        self.make(rows.len(), |find, first, out| {
            let x: Vec<&[Line]> = rows[first..][..out.len() / row].iter().map(|r| find(*r)).collect();
            engine.square(&x, times, out);
        })
    }

    /// The product of each list; nothing for an empty one. Trees, level by level, all lists' together.
    fn products(&mut self, mut lists: Vec<Vec<Row>>) -> Vec<Option<Row>> {
        loop {
            let factors: Vec<(Row, Row)> =
                lists.iter().flat_map(|list| list.chunks_exact(2).map(|pair| (pair[0], pair[1]))).collect();
            if factors.is_empty() {
                return lists.into_iter().map(|list| list.first().copied()).collect();
            }
            let mut made = self.multiply(&factors);
            for list in &mut lists {
                let odd = (list.len() % 2 == 1).then(|| list[list.len() - 1]);
                let pairs = list.len() / 2;
                list.truncate(pairs);
                list.iter_mut().for_each(|row| *row = made.next().expect("one a pair"));
                list.extend(odd);
            }
        }
    }

    /// `x[i] * y[i]` where both are there, else the one that is.
    fn join(&mut self, x: &mut [Option<Row>], y: &[Option<Row>]) {
        let factors: Vec<(Row, Row)> = x.iter().zip(y).filter_map(|(x, y)| (*x).zip(*y)).collect();
        let mut made = self.multiply(&factors);
        for (x, y) in x.iter_mut().zip(y) {
            *x = match (*x, *y) {
                (Some(_), Some(_)) => made.next(),
                (x, y) => x.or(y),
            };
        }
    }

    /// `x[i] ^ (2 ^ times)` where there is one.
    fn raise(&mut self, x: &mut [Option<Row>], times: u32) {
        let rows: Vec<Row> = x.iter().flatten().copied().collect();
        let mut made = self.square(&rows, times);
        x.iter_mut().flatten().for_each(|x| *x = made.next().expect("one each"));
    }
}

/// Results to be made: each a position and an output.
type Unit = (u32, u32);

impl CpuBigmod {
    /// The results, the multiplications and the squarings that they took.
    pub(super) fn weigh(&self, x: &Residues, mac: &Mac) -> Result<(Residues, usize, usize), Error> {
        let weights = Weights::new(mac);
        let way = weights.choose(x.len());
        let (positions, outputs) = (mac.positions() as u32, mac.outputs() as u32);
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
        // A block of results: all outputs of as many positions as are held, or a part of one position's outputs.
        let block_outputs = outputs.min(HELD as u32);
        let block_positions = (HELD as u32 / block_outputs).max(1);
        for first in (0..positions).step_by(block_positions as usize) {
            let positions = first..positions.min(first + block_positions);
            for first in (0..outputs).step_by(block_outputs as usize) {
                let outputs = first..outputs.min(first + block_outputs);
                let units: Vec<Unit> =
                    positions.clone().flat_map(|p| outputs.clone().map(move |m| (p, m))).collect();
                let (block, m, s) = self.weigh_block(x, &inverses, &weights, way, &units)?;
                out.append(&block)?;
                multiplications += m;
                squarings += s;
            }
        }
        Ok((out, multiplications, squarings))
    }

    fn weigh_block(
        &self,
        x: &Residues,
        inverses: &Residues,
        weights: &Weights<'_>,
        way: Way,
        units: &[Unit],
    ) -> Result<(Residues, usize, usize), Error> {
        let engine = &*self.engine;
        let arena = || Arena::new(engine, x.lines(), inverses.lines());
        // What a thread takes at once: results of one position where they share its tables.
        let outputs = units.iter().take_while(|u| u.0 == units[0].0).count();
        let piece = match way {
            Way::Tables(_) => outputs,
            _ => units.len().div_ceil(self.pool.current_num_threads()).clamp(1, TOGETHER),
        };
        let mut pieces: Vec<(Arena<'_>, Planes)> = self.pool.install(|| {
            units
                .par_chunks(piece)
                .map(|units| {
                    let mut arena = arena();
                    let planes = match way {
                        Way::BitSerial => arena.bit_serial(weights, units),
                        Way::Buckets(width) => arena.buckets(weights, width, units),
                        Way::Tables(group) => arena.tables(weights, group, units),
                    };
                    (arena, planes)
                })
                .collect()
        });

        // The sign planes of all, inverted in one batch.
        let mut multiplications = 0;
        if weights.negative && !matches!(way, Way::Buckets(_)) {
            let row = engine.row_lines();
            let mut negative = self.rows(0);
            for (arena, planes) in &pieces {
                for made in planes.top_rows() {
                    let mut one = self.rows(1);
                    one.lines_mut().copy_from_slice(arena.find(made));
                    negative.append(&one)?;
                }
            }
            let (inverted, count) = self.invert_all(&negative)?;
            multiplications += count;
            let mut inverted = inverted.lines().chunks_exact(row);
            for (arena, planes) in &mut pieces {
                for top in planes.top_mut().iter_mut().flatten() {
                    let at = arena.made.len() / row;
                    arena.made.extend_from_slice(inverted.next().expect("one each"));
                    *top = Row::Made(at as u32);
                }
            }
        }

        let mut one = self.rows(1);
        let mut number = vec![0; self.modulus.words()];
        number[0] = 1;
        engine.enter(&[&number], one.lines_mut());
        let results: Vec<(Vec<Line>, usize, usize)> = self.pool.install(|| {
            pieces
                .into_par_iter()
                .map(|(mut arena, planes)| {
                    let results = arena.horner(planes);
                    let rows = results.iter().flat_map(|r| r.map_or(one.lines(), |r| arena.find(r)));
                    (rows.copied().collect(), arena.multiplications, arena.squarings)
                })
                .collect()
        });
        let mut out = self.rows(units.len());
        let mut at = 0;
        let mut squarings = 0;
        for (lines, m, s) in results {
            out.lines_mut()[at..at + lines.len()].copy_from_slice(&lines);
            at += lines.len();
            multiplications += m;
            squarings += s;
        }
        Ok((out, multiplications, squarings))
    }
}

/// The planes of some results, lowest first; a plane has a row for each result, or none where it is one.
struct Planes {
    planes: Vec<Vec<Option<Row>>>,
    /// Squarings from a plane down to the next.
    width: u32,
}

impl Planes {
    fn top_rows(&self) -> impl Iterator<Item = Row> {
        self.planes.last().into_iter().flatten().flatten().copied()
    }

    fn top_mut(&mut self) -> &mut [Option<Row>] {
        self.planes.last_mut().map_or(&mut [], |top| top.as_mut_slice())
    }

    /// From products in the order result by result, plane by plane.
    fn new(products: &[Option<Row>], results: usize, width: u32) -> Self {
        let count = products.len() / results;
        let planes =
            (0..count).map(|plane| products.chunks_exact(count).map(|r| r[plane]).collect()).collect();
        Self { planes, width }
    }
}

impl Arena<'_> {
    fn find(&self, row: Row) -> &[Line] {
        let lines = self.engine.row_lines();
        let (rows, at) = match row {
            Row::Input(at) => (self.inputs, at),
            Row::Inverse(at) => (self.inverses, at),
            Row::Made(at) => (&*self.made, at),
        };
        &rows[at as usize * lines..][..lines]
    }

    fn bit_serial(&mut self, weights: &Weights<'_>, units: &[Unit]) -> Planes {
        let mut lists = Vec::new();
        for unit in units {
            for bit in 0..weights.bits {
                let set = weights.terms(*unit).filter(|(_, w)| w >> bit & 1 == 1);
                lists.push(set.map(|(index, _)| Row::Input(index)).collect());
            }
        }
        let products = self.products(lists);
        Planes::new(&products, units.len(), 1)
    }

    fn buckets(&mut self, weights: &Weights<'_>, width: u32, units: &[Unit]) -> Planes {
        let windows = weights.windows(width);
        let buckets = 1usize << (width - 1);
        let mut lists = vec![Vec::new(); units.len() * windows as usize * buckets];
        for (unit, lists) in units.iter().zip(lists.chunks_exact_mut(windows as usize * buckets)) {
            for (index, weight) in weights.terms(*unit) {
                for (window, digit) in signed_digits(weight, width, windows).enumerate() {
                    let row = if digit < 0 { Row::Inverse(index) } else { Row::Input(index) };
                    if digit != 0 {
                        lists[window * buckets + digit.unsigned_abs() as usize - 1].push(row);
                    }
                }
            }
        }
        let products = self.products(lists);
        // B1 * B2^2 * ... * Bv^v: the product of the running products from the top.
        let sums = units.len() * windows as usize;
        let (mut running, mut total) = (vec![None; sums], vec![None; sums]);
        for bucket in (0..buckets).rev() {
            let here: Vec<Option<Row>> = products.iter().skip(bucket).step_by(buckets).copied().collect();
            self.join(&mut running, &here);
            self.join(&mut total, &running);
        }
        Planes::new(&total, units.len(), width)
    }

    fn tables(&mut self, weights: &Weights<'_>, group: u32, units: &[Unit]) -> Planes {
        let terms = weights.mac.terms;
        let groups = terms.div_ceil(group as usize);
        let size = 1usize << group;
        let position = units[0].0 as usize;
        let indices = &weights.mac.indices[position * terms..][..terms];
        // The product of subset s of a group's inputs, at s; doubled an input at a time.
        let mut table: Vec<Option<Row>> = vec![None; groups * size];
        for bit in 0..group as usize {
            let half = 1usize << bit;
            let mut upper: Vec<Option<Row>> = Vec::with_capacity(groups * half);
            let mut lower: Vec<Option<Row>> = Vec::with_capacity(groups * half);
            for g in 0..groups {
                let index = indices.get(g * group as usize + bit).filter(|i| **i != Mac::ABSENT);
                upper.extend(std::iter::repeat_n(index.map(|i| Row::Input(*i)), half));
                lower.extend_from_slice(&table[g * size..][..half]);
            }
            // Where the input is not there, neither is a subset with it asked for.
            for (lower, upper) in lower.iter_mut().zip(&upper) {
                if upper.is_none() {
                    *lower = None;
                }
            }
            self.join(&mut upper, &lower);
            for g in 0..groups {
                table[g * size + half..][..half].copy_from_slice(&upper[g * half..][..half]);
            }
        }
        let mut lists = Vec::new();
        for (_, output) in units {
            let row = &weights.mac.weights[*output as usize * terms..][..terms];
            for bit in 0..weights.bits {
                let mut list = Vec::with_capacity(groups);
                for (g, (weights, indices)) in
                    row.chunks(group as usize).zip(indices.chunks(group as usize)).enumerate()
                {
                    let mut subset = 0;
                    for (i, (weight, index)) in weights.iter().zip(indices).enumerate() {
                        let there = *index != Mac::ABSENT;
                        subset |= usize::from(there && weight >> bit & 1 == 1) << i;
                    }
                    list.extend(table[g * size + subset]);
                }
                lists.push(list);
            }
        }
        let products = self.products(lists);
        Planes::new(&products, units.len(), 1)
    }

    /// Puts planes together from the top.
    fn horner(&mut self, planes: Planes) -> Vec<Option<Row>> {
        let mut planes_down = planes.planes.into_iter().rev();
        let mut sum = planes_down.next().unwrap_or_default();
        for plane in planes_down {
            self.raise(&mut sum, planes.width);
            self.join(&mut sum, &plane);
        }
        sum
    }
}

impl Weights<'_> {
    /// The terms of a result that are there and not of weight zero.
    fn terms(&self, (position, output): Unit) -> impl Iterator<Item = (u32, i64)> {
        let terms = self.mac.terms;
        let indices = &self.mac.indices[position as usize * terms..][..terms];
        let weights = &self.mac.weights[output as usize * terms..][..terms];
        let both = indices.iter().copied().zip(weights.iter().copied());
        both.filter(|(index, weight)| *index != Mac::ABSENT && *weight != 0)
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
