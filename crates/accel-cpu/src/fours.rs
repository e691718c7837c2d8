//! The contract operation over [`Layout::Lanes8x4`]: kernels of [`rows`](crate::rows), whose lines four outputs share.
//!
//! ```text
//!   a run of a stripe, tens of KiB in order:           a run's queries, of all sub-rows:
//!     j = 0  [ 8 words of output 0 ][ of 1 ][ of 2 ][ of 3 ]  *  [ 8 words ]     from the L1 cache, for many
//!     j = 1  [ ...                                         ]  *  [ 8 words ]     stripes one after another
//!     sums   [ 32                                          ]     in registers from first to last
//! ```
//!
//! A task takes run after run, and of each run stripe after stripe: so a run's queries stay in a cache while the database goes by in
//! pieces that are long enough to be read at memory's rate, each fetched ahead while the one before it is computed.
//!
//! [`Layout::Lanes8x4`]: blindcore_accel::Layout::Lanes8x4

use blindcore_accel::contract::Shape;
use blindcore_accel::{Layout, Word, Words};
use rayon::prelude::*;

use crate::isa::Features;
use crate::memory;
use crate::rows::kernel::{Block, GROUP, Kernel, MAX_LINES, SHARING, UNIT};
use crate::rows::{Aligned, MAX_DEPTH, choose, reduce};

const LAYOUT: Layout = Layout::Lanes8x4;
/// Coefficients of an output in a run.
const LANES: usize = UNIT / SHARING;
/// Stripes that see a run before the next, times queries: as many as make up for what the run's queries cost to come, and their
/// sums stay in a cache.
const STRIPE_PARTS: usize = 512;
const STRIPES: std::ops::RangeInclusive<usize> = 8..=64;
/// Runs whose sums go to the answer together: alone they would be single lines, pages apart.
const TOGETHER: usize = 8;

/// A query on its way through the database.
pub(crate) struct Pass {
    fours: Fours,
    answer: Words,
    /// Stripes taken since the answer was begun.
    taken: usize,
}

/// What the tasks of a run share.
struct Fours {
    shape: Shape,
    kernels: Vec<Kernel>,
    /// `[c][run][m, p][j, k][8]`.
    query: Aligned,
    /// Queries: m times p.
    parts: usize,
}

/// Some runs of some stripes.
struct Task<'a, T> {
    stripes: &'a [u8],
    /// The first run, and how many.
    first: usize,
    runs: usize,
    /// `[output][m, p]`, each the runs' coefficients.
    outputs: Vec<&'a mut [T]>,
}

impl Pass {
    /// Arranges a query that has been checked and gathers `queries` parts.
    ///
    /// # Panics
    /// More than 2^32 products in a sum.
    pub(crate) fn new(features: &Features, shape: &Shape, query: &Words, queries: usize) -> Self {
        assert!(shape.depth() <= MAX_DEPTH, "{shape}: the CPU's sums hold 2^32 products");
        let fours = Fours {
            kernels: shape.moduli.iter().map(|m| choose(features, shape, *m)).collect(),
            query: arrange(shape, query, queries),
            parts: queries * shape.p,
            shape: shape.clone(),
        };
        let answer = answers(shape, shape.answer_len(queries));
        Self { fours, answer, taken: 0 }
    }

    /// Computes the outputs of the next stripes.
    pub(crate) fn take(&mut self, stripes: &[u8]) {
        match &mut self.answer {
            Words::U32(answer) => self.fours.run(stripes, self.taken, answer, |word| word as u32),
            Words::U64(answer) => self.fours.run(stripes, self.taken, answer, |word| word),
            _ => unreachable!("answers have 32- or 64-bit words"),
        }
        self.taken += stripes.len() / LAYOUT.stripe_bytes(&self.fours.shape);
    }

    /// The answer, in canonical order.
    pub(crate) fn finish(&mut self) -> Words {
        self.answer.take()
    }

    /// Begins the next `n` outputs. Their answer reuses `memory` where it is large enough; every word of it is overwritten.
    pub(crate) fn next(&mut self, n: usize, mut memory: Words) {
        let shape = &mut self.fours.shape;
        shape.n = n;
        let len = self.fours.parts / shape.p * shape.answer_len(1);
        if memory.word() != shape.query_word() || memory.len() < len {
            memory = answers(shape, len);
        }
        memory.truncate(len);
        self.answer = memory;
        self.taken = 0;
    }

    /// Ends the query; `memory` is that of its last answer.
    pub(crate) fn end(self, memory: Words) {
        memory::keep(self.fours.query.into_words());
        if let Words::U64(words) = memory {
            memory::keep(words);
        }
    }
}

/// Words of answers, all of which are to be overwritten.
fn answers(shape: &Shape, len: usize) -> Words {
    match shape.query_word() {
        Word::U64 => Words::U64(memory::any_words(len)),
        word => memory::words(word, len),
    }
}

/// Brings a query from canonical order to that of runs.
fn arrange(shape: &Shape, query: &Words, queries: usize) -> Aligned {
    let Shape { p, k, d, .. } = *shape;
    let (depth, parts, runs) = (shape.depth(), queries * p, d / LANES);
    let mut out = Aligned::any(parts * depth * shape.c() * d);
    // Some runs at a time, so that what is read lies together and what is written stays in the cache.
    let together = gcd(runs, 4);
    out.words_mut().par_chunks_exact_mut(together * parts * depth * LANES).enumerate().for_each(
        |(at, out)| {
            let (c, first) = (at * together / runs, at * together % runs);
            for (part, jk) in (0..parts).flat_map(|part| (0..depth).map(move |jk| (part, jk))) {
                let from = shape.query_index([part / p, jk / k, part % p, jk % k, c, first * LANES]);
                for run in 0..together {
                    let out = &mut out[((run * parts + part) * depth + jk) * LANES..][..LANES];
                    let from = from + run * LANES;
                    match query {
                        Words::U32(words) => {
                            let words = words[from..][..LANES].iter().map(|word| u64::from(*word));
                            out.iter_mut().zip(words).for_each(|(out, word)| *out = word);
                        }
                        Words::U64(words) => out.copy_from_slice(&words[from..][..LANES]),
                        _ => unreachable!("queries have 32- or 64-bit words"),
                    }
                }
            }
        },
    );
    out
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Fours {
    /// Runs of all channels.
    fn runs(&self) -> usize {
        self.shape.c() * self.shape.d / LANES
    }

    /// Bytes of a run of a stripe.
    fn run_bytes(&self) -> usize {
        self.shape.depth() * UNIT * self.shape.database.bytes()
    }

    /// Writes what some stripes of the database, from stripe `first` on, give of the answer.
    fn run<T: Copy + Default + Send>(
        &self,
        stripes: &[u8],
        first: usize,
        answer: &mut [T],
        narrow: impl Fn(u64) -> T + Sync,
    ) {
        let Shape { n, p, q, .. } = self.shape;
        let all_runs = self.runs();
        let stripe_bytes = all_runs * self.run_bytes();
        let count = stripes.len() / stripe_bytes;
        // Blocks of stripes, and of runs too where stripes are few: each thread has some.
        let wanted = 4 * rayon::current_num_threads();
        let stripes_of_block = (STRIPE_PARTS / self.parts).clamp(*STRIPES.start(), *STRIPES.end());
        let (block_rows, block_bytes) = (stripes_of_block * SHARING, stripes_of_block * stripe_bytes);
        let blocks = count.div_ceil(stripes_of_block);
        let runs = all_runs.div_ceil(wanted.div_ceil(blocks).min(all_runs));
        let ranges = all_runs.div_ceil(runs);
        // The answer's [m, n, p, q][c, d], as [block][range][row][m, p].
        let rows = (first * SHARING..self.shape.rows().min((first + count) * SHARING)).len();
        let mut places: Vec<Vec<&mut [T]>> = Vec::new();
        let rows_of = |block: usize| rows.min((block + 1) * block_rows) - block * block_rows;
        for task in 0..blocks * ranges {
            let mut outputs: Vec<&mut [T]> = Vec::new();
            outputs.resize_with(rows_of(task / ranges) * self.parts, Default::default);
            places.push(outputs);
        }
        for (at, out) in answer.chunks_exact_mut(all_runs * LANES).enumerate() {
            let (at, q_at) = (at / q, at % q);
            let (at, p_at) = (at / p, at % p);
            let (m_at, n_at) = (at / n, at % n);
            let row = (n_at * q + q_at).checked_sub(first * SHARING).filter(|row| *row < rows);
            let Some(row) = row else { continue };
            let (block, row) = (row / block_rows, row % block_rows);
            for (range, out) in out.chunks_mut(runs * LANES).enumerate() {
                places[block * ranges + range][row * self.parts + m_at * p + p_at] = out;
            }
        }
        let tasks: Vec<Task<'_, T>> = places
            .into_iter()
            .enumerate()
            .map(|(at, outputs)| {
                let (block, first) = (at / ranges, at % ranges * runs);
                let from = block * block_bytes;
                let to = stripes.len().min(from + block_bytes);
                Task { stripes: &stripes[from..to], first, runs: runs.min(all_runs - first), outputs }
            })
            .collect();
        tasks.into_par_iter().for_each(|task| self.task(task, stripe_bytes, &narrow));
    }

    fn task<T: Copy + Default>(
        &self,
        mut task: Task<'_, T>,
        stripe_bytes: usize,
        narrow: &impl Fn(u64) -> T,
    ) {
        let mut held = Vec::new();
        for first in (0..task.runs).step_by(TOGETHER) {
            let runs = TOGETHER.min(task.runs - first);
            let width = runs * LANES;
            // `[output][m, p]`, each the runs' coefficients.
            held.resize(task.outputs.len() * width, T::default());
            for run in 0..runs {
                self.sums(task.first + first + run, task.stripes, stripe_bytes, |place, words| {
                    // Rows that are padding have no output.
                    if let Some(held) = held.get_mut(place * width..(place + 1) * width) {
                        let held = &mut held[run * LANES..][..LANES];
                        held.iter_mut().zip(words).for_each(|(held, word)| *held = narrow(*word));
                    }
                });
            }
            for (out, held) in task.outputs.iter_mut().zip(held.chunks_exact(width)) {
                out[first * LANES..][..width].copy_from_slice(held);
            }
        }
    }

    /// A run of some stripes, one after another, by all queries: gives each output of a query, `[output][m, p]`, its sums.
    fn sums(&self, run: usize, stripes: &[u8], stripe_bytes: usize, mut give: impl FnMut(usize, &[u64])) {
        let (run_bytes, query_words) = (self.run_bytes(), self.shape.depth() * LANES);
        let c = run / (self.shape.d / LANES);
        let kernel = &self.kernels[c];
        let one = kernel.weights.len() * 2 * UNIT;
        let queries = &self.query.words()[run * self.parts * query_words..][..self.parts * query_words];
        let (mut sums, mut words) = (vec![0; self.parts * one], [0; UNIT]);
        let mut pieces =
            stripes.chunks_exact(stripe_bytes).map(|stripe| &stripe[run * run_bytes..]).peekable();
        let mut row = 0;
        while let Some(piece) = pieces.next() {
            // After the last stripe the first one's next run.
            let ahead =
                pieces.peek().copied().unwrap_or(&stripes[((run + 1) * run_bytes).min(stripe_bytes)..]);
            sums.fill(0);
            self.piece(kernel, [&piece[..run_bytes], ahead], queries, &mut sums);
            for (part, sums) in sums.chunks_exact(one).enumerate() {
                reduce(&self.shape, c, kernel, sums, &mut words);
                for (at, words) in words.chunks_exact(LANES).enumerate() {
                    give((row + at) * self.parts + part, words);
                }
            }
            row += SHARING;
        }
    }

    /// A run of a stripe by all queries, some lines at a time.
    fn piece(&self, kernel: &Kernel, [row, ahead]: [&[u8]; 2], queries: &[u64], sums: &mut [u64]) {
        let (word, depth) = (self.shape.database, self.shape.depth());
        let one = kernel.weights.len() * 2 * UNIT;
        for first in (0..depth).step_by(MAX_LINES) {
            let lines = MAX_LINES.min(depth - first);
            let at = first * UNIT * word.bytes();
            for (group, sums) in sums.chunks_mut(GROUP * one).enumerate() {
                let query = |part: usize| &queries[(part * depth + first) * LANES..][..lines * LANES];
                let (part, count) = (group * GROUP, sums.len() / one);
                let block = Block {
                    row: &row[at..],
                    next: if part == 0 { &ahead[at.min(ahead.len())..] } else { &row[at..] },
                    queries: &[query(part), query(part + count - 1)][..count],
                    word,
                    stride: UNIT,
                    lines,
                    width: UNIT,
                    outputs: SHARING,
                    capacity: kernel.capacity,
                };
                (kernel.block)(&block, sums);
            }
        }
    }
}
