//! The contract operation over [`Layout::Rows`]: any words, any moduli, one row of the database an output.
//!
//! # Lines
//!
//! An output's channel is the elementwise product of two blocks of `j * k` by `d` words, the row's and the
//! query's, summed over `j * k`. Both are cut into *lines*: the shortest runs of whole polynomials that are a
//! multiple of [`UNIT`] words. Kernels see nothing but lines, and sum each *lane* down its column:
//!
//! ```text
//!             lane ────────────▶
//!   line  ┌──────────┬──────────┐     d = 4096: a line is one polynomial, a lane one coefficient.
//!    │    │  block   │  block   │     d = 1: a line is 32 words; their 32 sums are added up at the end.
//!    ▼    ├──────────┼──────────┤     A last line that the depth leaves partial is filled with zeros.
//!         │  block   │  block   │
//!         └──────────┴──────────┘
//! ```
//!
//! A block of the query serves a few rows before the next, so that it is read from the cache, and a block of
//! a row serves every gathered query, so that the database is read from memory once.
//!
//! # Sums
//!
//! Nothing is reduced on the way. A lane has one to three accumulators, each with a weight, a power of two:
//! `lane = sum of accumulator_i * 2^weight_i`. Before an accumulator can overflow 64 bits its low and its high
//! 32 bits are added to two 64-bit sums of their own, which 2^32 products cannot overflow. One reduction a
//! coefficient ends it.
//!
//! [`Layout::Rows`]: blindcore_accel::Layout::Rows

pub(crate) mod kernel;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Error, Layout, Word, Words, advise_huge_pages};
use blindcore_math::{Modulus, lanes};
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use crate::arch::{avx2, avx512};
use crate::isa::Features;
use crate::memory;
use kernel::{BLOCK, Block, GROUP, Kernel, UNIT, WIDTH};

/// Words of all queries in a block, and sums of all rows of a task: what should stay in the L2 cache.
const CACHED: usize = 1 << 16;
/// Words of a group's queries in a block of narrow lines, 16 KiB, and as few lines at least.
const NEAR: usize = 1 << 11;
const LEAST_LINES: usize = 16;
/// The deepest contraction: what the split sums hold.
pub(crate) const MAX_DEPTH: usize = 1 << 32;

pub(crate) fn choose(features: &Features, shape: &Shape, modulus: Modulus) -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = features.ifma {
        return avx512::rows::kernel(token, modulus, shape.depth());
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = features.avx2 {
        return avx2::rows::kernel(token, modulus, shape.database);
    }
    let _ = (features, shape, modulus);
    // (2^62)^2 * 16 = 2^128: this many products of residues fit 128 bits. A power of two may wrap.
    Kernel { weights: &[0, 64], capacity: 16, block: Box::new(portable), reduce: None }
}

/// The reference: whole products, added in 128 bits.
fn portable(block: &Block<'_>, sums: &mut [u64]) {
    block.check(2, sums);
    match block.word {
        Word::U8 => portable_words::<1>(block, sums),
        Word::U16 => portable_words::<2>(block, sums),
        Word::U32 => portable_words::<4>(block, sums),
        Word::U40 => portable_words::<5>(block, sums),
        Word::U48 => portable_words::<6>(block, sums),
        Word::U64 => portable_words::<8>(block, sums),
    }
}

fn portable_words<const BYTES: usize>(block: &Block<'_>, sums: &mut [u64]) {
    let row = block.row.as_chunks::<BYTES>().0;
    let (width, shared) = (block.width, block.width / block.outputs);
    for (query, sums) in block.queries.iter().zip(sums.chunks_exact_mut(4 * width)) {
        for first in (0..block.lines).step_by(block.capacity) {
            let lines = first..block.lines.min(first + block.capacity);
            for lane in 0..width {
                let mut sum = 0u128;
                for line in lines.clone() {
                    let mut word = [0; 8];
                    word[..BYTES].copy_from_slice(&row[line * block.stride + lane]);
                    let word = u128::from(u64::from_le_bytes(word));
                    let product = u128::from(query[line * shared + lane % shared]) * word;
                    sum = sum.wrapping_add(product);
                }
                for (quarter, sums) in sums.chunks_exact_mut(width).enumerate() {
                    sums[lane] += u64::from((sum >> (32 * quarter)) as u32);
                }
            }
        }
    }
}

/// Checks that packed stripes of rows can be read as words and hold nothing but residues. `position` is that of their first
/// word.
pub(crate) fn check_packed(
    shape: &Shape,
    layout: Layout,
    bytes: &[u8],
    mut position: usize,
) -> Result<(), Error> {
    let width = shape.database.bytes();
    let channel = layout.stripe_rows() * shape.depth() * shape.d;
    // Words of five and six bytes are put together, so they may lie anywhere.
    let align = if width.is_power_of_two() { width } else { 1 };
    if bytes.as_ptr().align_offset(align) != 0 {
        let want = format!("{align}-byte aligned");
        let got = bytes.as_ptr().addr() % align;
        let what = "start of a packed piece";
        return Err(Error::Length { what, got, want, unit: "bytes past alignment" });
    }
    // A piece holds whole stripes, so it begins with the first channel.
    for (channel, modulus) in bytes.chunks_exact(channel * width).zip(shape.moduli.iter().cycle()) {
        let max = modulus.max_residue();
        let mut words = channel.chunks_exact(width).map(|word| read(shape.database, word)).enumerate();
        if max < shape.database.max()
            && largest(shape.database, channel) > max
            && let Some((at, value)) = words.find(|(_, value)| *value > max)
        {
            let (position, modulus) = (position + at, modulus.to_string());
            return Err(Error::Residue { what: "packed database", value, position, modulus });
        }
        position += channel.len() / width;
    }
    Ok(())
}

/// The largest word: a pass over what is streamed asks for it each time.
fn largest(word: Word, bytes: &[u8]) -> u64 {
    match word {
        Word::U64 => bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).max().unwrap_or(0),
        word => lanes::largest(bytes, 8 * word.bytes() as u32),
    }
}

fn read(word: Word, bytes: &[u8]) -> u64 {
    let mut wide = [0u8; 8];
    wide[..word.bytes()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

/// A query on its way through the database.
pub(crate) struct Pass {
    rows: Rows,
    answer: Words,
    /// Rows of the database that were taken.
    taken: usize,
}

impl Pass {
    /// Arranges a query that has been checked and gathers `queries` parts.
    ///
    /// # Panics
    /// More than 2^32 products in a sum.
    pub(crate) fn new(features: &Features, shape: &Shape, query: &Words, queries: usize) -> Self {
        assert!(shape.depth() <= MAX_DEPTH, "{shape}: the CPU's sums hold 2^32 products");
        let lines = Lines::new(shape);
        let rows = Rows {
            shape: shape.clone(),
            kernels: shape.moduli.iter().map(|m| choose(features, shape, *m)).collect(),
            query: lines.arrange_query(shape, query, queries),
            lines,
            parts: queries * shape.p,
        };
        Self { rows, answer: Words::zeros(shape.query_word(), shape.answer_len(queries)), taken: 0 }
    }

    /// Computes the outputs of the next rows.
    pub(crate) fn take(&mut self, rows: &[u8]) {
        match &mut self.answer {
            Words::U32(answer) => self.rows.run(rows, self.taken, answer, |word| word as u32),
            Words::U64(answer) => self.rows.run(rows, self.taken, answer, |word| word),
            _ => unreachable!("answers have 32- or 64-bit words"),
        }
        self.taken += rows.len() / self.rows.row_bytes();
    }

    /// The answer, in canonical order.
    pub(crate) fn finish(self) -> Words {
        self.answer
    }
}

/// How a channel is cut into lines.
#[derive(Clone, Copy)]
struct Lines {
    /// Polynomials in a line.
    polynomials: usize,
    /// Words in a line.
    words: usize,
    /// Lines that the depth fills.
    full: usize,
    /// Lines, with one that the depth leaves partial.
    all: usize,
}

impl Lines {
    fn new(shape: &Shape) -> Self {
        let factor = 1 << shape.d.trailing_zeros().min(UNIT.trailing_zeros());
        let polynomials = UNIT / factor;
        let depth = shape.depth();
        Self {
            polynomials,
            words: polynomials * shape.d,
            full: depth / polynomials,
            all: depth.div_ceil(polynomials),
        }
    }

    /// The first lane and the width of the blocks that hold a lane.
    fn width_at(self, lane: usize) -> (usize, usize) {
        let start = lane / WIDTH * WIDTH;
        (start, WIDTH.min(self.words - start))
    }

    /// Brings a query from canonical order to `[m, p][c][width][line]`, so that a block's words lie together.
    fn arrange_query(self, shape: &Shape, query: &Words, queries: usize) -> Aligned {
        let (c, d) = (shape.c(), shape.d);
        let channel = self.all * self.words;
        let mut out = Aligned::zeroed(queries * shape.p * c * channel);
        // A run of words that lie together in canonical order.
        let together = match (c, shape.p) {
            (1, 1) => shape.depth() * d,
            (1, _) => shape.k * d,
            _ => d,
        };
        out.words_mut().par_chunks_exact_mut(channel).enumerate().for_each(|(at, out)| {
            let (at, c) = (at / c, at % c);
            let (m, p) = (at / shape.p, at % shape.p);
            let mut at = 0;
            while at < shape.depth() * d {
                let (line, lane) = (at / self.words, at % self.words);
                let (start, width) = self.width_at(lane);
                let len = (start + width - lane).min(together - at % together);
                let out = &mut out[start * self.all + line * width + lane - start..][..len];
                let (jk, d) = (at / d, at % d);
                let from = shape.query_index([m, jk / shape.k, p, jk % shape.k, c, d]);
                match query {
                    Words::U32(words) => {
                        out.iter_mut().zip(&words[from..]).for_each(|(out, word)| *out = u64::from(*word));
                    }
                    Words::U64(words) => out.copy_from_slice(&words[from..][..len]),
                    _ => unreachable!("queries have 32- or 64-bit words"),
                }
                at += len;
            }
        });
        out
    }
}

/// Words from a cache line's start on, so that no vector of them crosses one.
pub(crate) struct Aligned {
    words: Vec<u64>,
    start: usize,
    len: usize,
}

impl Aligned {
    const LINE: usize = 64;

    pub(crate) fn zeroed(len: usize) -> Self {
        let mut words = vec![0; len + Self::LINE / 8];
        advise_huge_pages(&mut words);
        Self::of(words, len)
    }

    /// Words that are to be overwritten.
    pub(crate) fn any(len: usize) -> Self {
        Self::of(memory::any_words(len + Self::LINE / 8), len)
    }

    fn of(words: Vec<u64>, len: usize) -> Self {
        let start = words.as_ptr().align_offset(Self::LINE).min(Self::LINE / 8);
        Self { words, start, len }
    }

    /// Its memory.
    pub(crate) fn into_words(self) -> Vec<u64> {
        self.words
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words[self.start..self.start + self.len]
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.start..self.start + self.len]
    }
}

/// What the tasks of a run share.
struct Rows {
    shape: Shape,
    kernels: Vec<Kernel>,
    /// `[m, p][c][width][line]`.
    query: Aligned,
    lines: Lines,
    /// Queries: m times p.
    parts: usize,
}

/// A thread's memory, from task to task.
#[derive(Default)]
struct Scratch {
    /// Each row's partial line, filled with zeros.
    tails: Vec<u8>,
    /// `[row][m, p][accumulator][low, high half][lane]` of the blocks in work.
    sums: Vec<u64>,
    /// The same by coefficient, where a line has several polynomials.
    folded: Vec<u64>,
    /// Coefficients of one output.
    reduced: Vec<u64>,
}

/// A block's place in a channel.
struct Place {
    c: usize,
    /// The first line.
    first: usize,
    lines: usize,
    /// The first lane.
    lane: usize,
    width: usize,
}

impl Rows {
    /// Bytes of a row.
    fn row_bytes(&self) -> usize {
        Layout::Rows.stripe_bytes(&self.shape)
    }

    /// Writes what some rows of the database, from row `first` on, give of the answer.
    fn run<T: Send>(&self, rows: &[u8], first: usize, answer: &mut [T], narrow: impl Fn(u64) -> T + Sync) {
        let Shape { n, p, q, d, .. } = self.shape;
        let c = self.shape.c();
        // The answer's [m, n, p, q][c, d], as [row][m, p][c, d].
        let mut outputs: Vec<&mut [T]> = Vec::new();
        outputs.resize_with(answer.len() / (c * d), Default::default);
        let mut blocks = answer.chunks_exact_mut(c * d);
        for m_p in (0..self.parts).step_by(p) {
            for n in 0..n {
                for p in 0..p {
                    for q_at in 0..q {
                        let block = blocks.next().expect("the answer's length");
                        outputs[(n * q + q_at) * self.parts + m_p + p] = block;
                    }
                }
            }
        }

        let channel_bytes = self.shape.depth() * d * self.shape.database.bytes();
        let row_bytes = self.row_bytes();
        let rows_per_task = self.per_task(row_bytes);
        let mut rest = &mut outputs[first * self.parts..];
        let mut tasks = Vec::new();
        for rows in rows.chunks(rows_per_task * row_bytes) {
            let (outputs, after) = rest.split_at_mut(rows.len() / row_bytes * self.parts);
            rest = after;
            tasks.push((rows, outputs));
        }
        tasks.into_par_iter().for_each_init(Scratch::default, |scratch, (rows, outputs)| {
            for c in 0..c {
                let rows: Vec<&[u8]> =
                    rows.chunks_exact(channel_bytes).skip(c).step_by(self.shape.c()).collect();
                self.channel(c, &rows, scratch, |output, first, words| {
                    let out = &mut outputs[output][c * d + first..][..words.len()];
                    out.iter_mut().zip(words).for_each(|(out, word)| *out = narrow(*word));
                });
            }
        });
    }

    /// Rows in a task: enough that starting one costs little and blocks of the query are used again, few
    /// enough that every thread has some tasks and that a task's sums and partial lines stay in the cache.
    fn per_task(&self, row_bytes: usize) -> usize {
        const TASK_BYTES: usize = 1 << 18;
        let Lines { polynomials, words, full, all } = self.lines;
        let accumulators = self.kernels.iter().map(|k| k.weights.len()).max().unwrap_or(1);
        let lanes = WIDTH.min(words) + if polynomials > 1 { self.shape.d } else { 0 };
        let cached = self.parts * accumulators * 2 * lanes + (all - full) * words;
        let shared = self.shape.rows().div_ceil(4 * rayon::current_num_threads());
        (TASK_BYTES / row_bytes).max(8).min(shared).min(CACHED / cached).max(1)
    }

    /// One channel of a task's rows by every query; calls `finish` with an output (`[row][m, p]`), a
    /// coefficient and the words from there on.
    fn channel(
        &self,
        c: usize,
        rows: &[&[u8]],
        scratch: &mut Scratch,
        mut finish: impl FnMut(usize, usize, &[u64]),
    ) {
        let d = self.shape.d;
        let Lines { polynomials, words, full, all } = self.lines;
        let bytes = self.shape.database.bytes();
        let kernel = &self.kernels[c];
        let halves = kernel.weights.len() * 2;
        let Scratch { tails, sums, folded, reduced } = scratch;
        let outputs = rows.len() * self.parts;

        tails.clear();
        tails.resize((all - full) * rows.len() * words * bytes, 0);
        for (tail, row) in tails.chunks_exact_mut(words * bytes).zip(rows) {
            let partial = &row[full * words * bytes..];
            tail[..partial.len()].copy_from_slice(partial);
        }
        folded.clear();
        folded.resize(if polynomials > 1 { outputs * halves * d } else { 0 }, 0);

        for lane in (0..words).step_by(WIDTH) {
            let (_, width) = self.lines.width_at(lane);
            sums.clear();
            sums.resize(outputs * halves * width, 0);
            let lines = (BLOCK / width).min(CACHED / (self.parts * width)).max(8);
            // Narrow lines lie together, and a block of them is high: no higher than that its queries stay in the L1 cache.
            let near = NEAR / (GROUP.min(self.parts) * width);
            let lines = if near >= LEAST_LINES { lines.min(near) } else { lines };
            for first in (0..full).step_by(lines) {
                let place = Place { c, first, lines: lines.min(full - first), lane, width };
                let from = |row: usize, first: usize| &rows[row][(first * words + lane) * bytes..];
                for part in (0..self.parts).step_by(GROUP) {
                    for row in 0..rows.len() {
                        let next = match row + 1 {
                            next if next < rows.len() => from(next, first),
                            _ if first + lines < full => from(0, first + lines),
                            _ => from(row, first),
                        };
                        self.block(&place, [from(row, first), next], row, part, sums);
                    }
                }
            }
            if all > full {
                let place = Place { c, first: full, lines: 1, lane, width };
                for (row, tail) in tails.chunks_exact(words * bytes).enumerate() {
                    for part in (0..self.parts).step_by(GROUP) {
                        self.block(&place, [&tail[lane * bytes..]; 2], row, part, sums);
                    }
                }
            }
            for (output, sums) in sums.chunks_exact(halves * width).enumerate() {
                if polynomials == 1 {
                    reduced.resize(width, 0);
                    reduce(&self.shape, c, kernel, sums, reduced);
                    finish(output, lane, reduced);
                } else {
                    let folded = &mut folded[output * halves * d..][..halves * d];
                    for (sums, folded) in sums.chunks_exact(width).zip(folded.chunks_exact_mut(d)) {
                        fold(sums, lane, folded);
                    }
                }
            }
        }
        for (output, folded) in folded.chunks_exact(halves * d).enumerate() {
            reduced.resize(d, 0);
            reduce(&self.shape, c, kernel, folded, reduced);
            finish(output, 0, reduced);
        }
    }

    /// One block of row `number` by the group of queries from `part` on; `sums` are those of all rows and queries.
    fn block(&self, place: &Place, [row, next]: [&[u8]; 2], number: usize, part: usize, sums: &mut [u64]) {
        let kernel = &self.kernels[place.c];
        let Lines { words: stride, all, .. } = self.lines;
        let query = |part: usize| {
            let channel = part * self.shape.c() + place.c;
            let start = (channel * stride + place.lane) * all + place.first * place.width;
            &self.query.words()[start..][..place.lines * place.width]
        };
        let (group, one) = (GROUP.min(self.parts - part), kernel.weights.len() * 2 * place.width);
        let queries = [query(part), query(part + group - 1)];
        let block = Block {
            row,
            next: if part == 0 { next } else { row },
            queries: &queries[..group],
            word: self.shape.database,
            stride,
            lines: place.lines,
            width: place.width,
            outputs: 1,
            capacity: kernel.capacity,
        };
        (kernel.block)(&block, &mut sums[(number * self.parts + part) * one..][..group * one]);
    }
}

/// Reduces the sums, `[accumulator][low, high half][coefficient]`, of some coefficients of channel `c`.
pub(crate) fn reduce(shape: &Shape, c: usize, kernel: &Kernel, sums: &[u64], out: &mut [u64]) {
    match (&kernel.reduce, kernel.weights) {
        (Some(reduce), _) if out.len().is_multiple_of(8) => reduce(sums, out),
        (_, &[a]) => reduce_one_by_one(shape, c, [a], sums, out),
        (_, &[a, b]) => reduce_one_by_one(shape, c, [a, b], sums, out),
        (_, &[a, b, c2]) => reduce_one_by_one(shape, c, [a, b, c2], sums, out),
        _ => unreachable!("a lane has one to three accumulators"),
    }
}

fn reduce_one_by_one<const N: usize>(
    shape: &Shape,
    c: usize,
    weights: [u32; N],
    sums: &[u64],
    out: &mut [u64],
) {
    let modulus = shape.moduli[c];
    let halves: [[&[u64]; 2]; N] =
        std::array::from_fn(|i| [2 * i, 2 * i + 1].map(|half| &sums[half * out.len()..][..out.len()]));
    let accumulator =
        |i: usize, lane: usize| u128::from(halves[i][0][lane]) + (u128::from(halves[i][1][lane]) << 32);
    if fits(shape, modulus) {
        for (lane, out) in out.iter_mut().enumerate() {
            let parts = (0..N).map(|i| accumulator(i, lane).wrapping_shl(weights[i]));
            *out = modulus.reduce(parts.fold(0, u128::wrapping_add));
        }
    } else {
        // Horner's rule. A residue is below 2^62, weights lie at most 64 apart, an accumulator is below
        // 2^97: no overflow.
        for (lane, out) in out.iter_mut().enumerate() {
            let mut sum = 0;
            for i in (0..N).rev() {
                let apart = weights.get(i + 1).map_or(0, |above| above - weights[i]);
                sum = modulus.reduce((u128::from(sum) << apart) + accumulator(i, lane));
            }
            *out = sum;
        }
    }
}

/// Whether a sum modulo `modulus` fits 128 bits, or may wrap there.
fn fits(shape: &Shape, modulus: Modulus) -> bool {
    let bits = |x: u64| u64::BITS - x.leading_zeros();
    match modulus {
        Modulus::Pow2_32 | Modulus::Pow2_64 => true,
        Modulus::Prime(p) => {
            let word = shape.database.max().min(p.value() - 1);
            bits(p.value() - 1) + bits(word) + bits(shape.depth() as u64) <= u128::BITS
        }
    }
}

/// Adds the sums of lanes from `lane` on to those of their coefficients.
fn fold(sums: &[u64], lane: usize, folded: &mut [u64]) {
    if let [folded] = folded {
        *folded += sums.iter().sum::<u64>();
        return;
    }
    let mut coefficient = lane % folded.len();
    for sum in sums {
        folded[coefficient] += sum;
        coefficient = if coefficient + 1 == folded.len() { 0 } else { coefficient + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::kernel::MAX_LINES;
    use super::*;
    use crate::isa::Isa;
    use blindcore_accel::Layout;

    fn run(isa: Isa, shape: &Shape, pieces: &[&[u8]], query: &Words, queries: usize) -> Words {
        let features = Features::of(isa).expect("available");
        let mut pass = Pass::new(&features, shape, query, queries);
        pieces.iter().for_each(|piece| pass.take(piece));
        pass.finish()
    }

    fn largest_prime_below(limit: u64) -> Modulus {
        (2..limit).rev().find_map(|p| Modulus::prime(p).ok()).expect("a prime")
    }

    /// Every word as large as it may be, one row, two queries: on every instruction set, compared with
    /// depth * max * max.
    fn check_largest(modulus: Modulus, database: Word, depth: usize, d: usize) {
        let shape = Shape { m: 2, j: depth, d, ..Shape::new(database, vec![modulus]) };
        let residue = modulus.max_residue();
        let entry = residue.min(database.max());
        let row: Vec<u8> = entry.to_le_bytes()[..database.bytes()].repeat(depth * d);
        let query = Words::from_fn(shape.query_word(), shape.query_len(2), |_| residue);
        let product = u128::from(modulus.mul_add(residue, entry, 0));
        let sum = modulus.reduce(product * depth as u128);
        let want = Words::from_fn(shape.query_word(), shape.answer_len(2), |_| sum);
        for isa in Isa::available() {
            assert!(run(isa, &shape, &[&row], &query, 2) == want, "{isa:?}: {shape}");
        }
    }

    #[test]
    fn no_accumulator_overflows_at_any_width_of_prime() {
        for bits in 2..=62 {
            let prime = largest_prime_below(1 << bits);
            for word in [Word::U8, Word::U16, Word::U32, Word::U40, Word::U48, Word::U64] {
                for (depth, d) in [(2 * MAX_LINES + 3, 1), (300, UNIT), (5, 3)] {
                    check_largest(prime, word, depth, d);
                }
            }
        }
    }

    #[test]
    fn no_sum_overflows_at_depth_70000() {
        for bits in [30, 31, 32, 50, 51, 52, 53, 62] {
            let prime = largest_prime_below(1 << bits);
            for word in [Word::U32, Word::U40, Word::U48, Word::U64] {
                check_largest(prime, word, 70_000, 1);
                check_largest(prime, word, 70_000, UNIT);
            }
        }
        for modulus in [Modulus::Pow2_32, Modulus::Pow2_64] {
            check_largest(modulus, Word::U32, 70_000, UNIT);
        }
    }

    #[test]
    fn blocks_rows_and_pieces_fit_together() {
        let prime = |p| Modulus::prime(p).expect("prime");
        let two = vec![prime(1_125_899_906_826_241), prime((1 << 62) - 57)];
        for shape in [
            // Three widths of blocks, three heights, two tasks; then more queries than a high block takes.
            Shape { m: 3, n: 5, p: 2, q: 2, j: 20, k: 2, d: 1056, ..Shape::new(Word::U64, two.clone()) },
            Shape { m: 10, n: 2, p: 2, j: 21, d: 544, ..Shape::new(Word::U64, two) },
            // A partial line below many; then wide lines of several polynomials.
            Shape { m: 3, n: 11, j: 20_011, ..Shape::new(Word::U32, vec![prime(1_073_643_521)]) },
            Shape { m: 3, n: 3, p: 2, j: 100, d: 99, ..Shape::new(Word::U16, vec![Modulus::Pow2_32]) },
        ] {
            let mut x = 1u64;
            let mut operand = |word: Word, len| {
                Words::from_fn(word, len, |i| {
                    x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    let max = shape.moduli[i / shape.d % shape.c()].max_residue().min(word.max());
                    (x ^ (x >> 32)) % (max + 1)
                })
            };
            let database = operand(shape.database, shape.database_len());
            let query = operand(shape.query_word(), shape.query_len(shape.m));
            let want = blindcore_accel::contract::reference(&shape, &query, &database).expect("fits");
            let packed = Layout::Rows.pack(&shape, &database);
            let pieces = packed.split_at(Layout::Rows.stripe_bytes(&shape));
            for isa in Isa::available() {
                let got = run(isa, &shape, &[pieces.0, pieces.1], &query, shape.m);
                assert!(got == want, "{isa:?}: {shape}");
            }
        }
    }

    #[test]
    fn lanes_fold_onto_their_coefficients() {
        for (d, lane) in [(1, 0), (3, 0), (3, 128), (40, 128), (200, 128)] {
            let sums: Vec<u64> = (0..96).map(|i| 1 << (i % 50)).collect();
            let mut folded = vec![7; d];
            fold(&sums, lane, &mut folded);
            let mut want = vec![7; d];
            (0..96).for_each(|i| want[(lane + i) % d] += sums[i]);
            assert_eq!(folded, want);
        }
    }
}
