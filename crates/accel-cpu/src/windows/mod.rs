//! The contract operation over [`Layout::Lanes32`]: a query that is a window, sliding over one polynomial.
//!
//! ```text
//!   row of the database, 32 coefficients of it:      y, made longer by what a window reaches past its period:
//!     j = 0  [ 32 words ]  *  [ y from z on          ]
//!     j = 1  [ 32 words ]  *  [ y from z + step on   ]     a few KiB, from the cache
//!     ...                                                  while the database goes by once, in order
//!     sum    [ 32 sums  ]     in registers from first to last
//! ```
//!
//! [`Layout::Lanes32`]: blindcore_accel::Layout::Lanes32

pub(crate) mod kernel;

use blindcore_accel::contract::{Shape, Window};
use blindcore_accel::{Layout, Words};
use blindcore_math::Modulus;
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use crate::arch::{avx2, avx512};
use crate::isa::Features;
use kernel::{Kernel, Tile};

/// Lanes of a tile.
const LANES: usize = Window::LANES;
/// Tiles of a task: few enough that each thread has some, of the fewest rows too.
const TILES: usize = 8;

fn choose(features: &Features, shape: &Shape, modulus: Modulus) -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if let Some(kernel) =
        features.ifma.and_then(|token| avx512::windows::kernel(token, modulus, shape.database))
    {
        return kernel;
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = features.avx2 {
        return avx2::windows::kernel(token, modulus, shape.database);
    }
    let _ = (features, shape);
    Kernel { tiles: 1, depth: usize::MAX, tile: Box::new(move |tile, sums| portable(modulus, tile, sums)) }
}

/// The reference: whole products, added in 128 bits.
fn portable(modulus: Modulus, tile: &Tile<'_>, sums: &mut [u64]) {
    tile.check(sums);
    // (2^62)^2 * 16 = 2^128: this many products of residues fit 128 bits.
    const CAPACITY: usize = 15;
    let bytes = tile.word.bytes();
    for (query, sums) in tile.queries.iter().zip(sums.chunks_exact_mut(LANES)) {
        for (lane, out) in sums.iter_mut().enumerate() {
            let mut sum = 0;
            for first in (0..tile.depth).step_by(CAPACITY) {
                let products = (first..tile.depth.min(first + CAPACITY)).map(|j| {
                    let mut word = [0; 8];
                    word[..bytes].copy_from_slice(&tile.words[0][(j * LANES + lane) * bytes..][..bytes]);
                    u128::from(u64::from_le_bytes(word)) * u128::from(query[j * tile.step + lane])
                });
                // Modulo a power of two it may wrap.
                sum = modulus.reduce(products.fold(u128::from(sum), u128::wrapping_add));
            }
            *out = sum;
        }
    }
}

/// A query on its way through the database.
pub(crate) struct Pass {
    windows: Windows,
    answer: Words,
    /// Rows of the database that were taken.
    taken: usize,
}

/// What the tasks of a run share.
struct Windows {
    shape: Shape,
    window: Window,
    kernels: Vec<Kernel>,
    /// `[m, p][c][period]`, each [`Windows::length`] words.
    query: Vec<u64>,
    /// Queries: m times p.
    parts: usize,
}

impl Pass {
    /// Arranges a query that has been checked and gathers `queries` parts.
    pub(crate) fn new(features: &Features, shape: &Shape, query: &Words, queries: usize) -> Self {
        let window = shape.window.expect("the layout is for windows");
        let parts = queries * shape.p;
        let mut windows =
            Windows { shape: shape.clone(), window, kernels: Vec::new(), query: Vec::new(), parts };
        windows.kernels = shape.moduli.iter().map(|m| choose(features, shape, *m)).collect();
        let length = windows.length();
        windows.query.reserve_exact(parts * shape.c() * shape.d / window.period * length);
        for at in (0..query.len()).step_by(window.period) {
            let turned = (0..length).map(|i| query.get(at + i % window.period));
            windows.query.extend(turned);
        }
        Self { windows, answer: Words::zeros(shape.query_word(), shape.answer_len(queries)), taken: 0 }
    }

    /// Computes the outputs of the next rows.
    pub(crate) fn take(&mut self, rows: &[u8]) {
        match &mut self.answer {
            Words::U32(answer) => self.windows.run(rows, self.taken, answer, |word| word as u32),
            Words::U64(answer) => self.windows.run(rows, self.taken, answer, |word| word),
            _ => unreachable!("answers have 32- or 64-bit words"),
        }
        self.taken += rows.len() / Layout::Lanes32.stripe_bytes(&self.windows.shape);
    }

    /// The answer, in canonical order.
    pub(crate) fn finish(self) -> Words {
        self.answer
    }
}

/// Some tiles of a row and a channel, and where their sums go, a slice for each query.
struct Task<'a, T> {
    words: &'a [u8],
    channel: usize,
    /// The first coefficient.
    first: usize,
    outputs: Vec<&'a mut [T]>,
}

impl Windows {
    /// Words of a period and of what windows reach past it.
    fn length(&self) -> usize {
        self.window.period + self.window.step * (self.shape.j - 1)
    }

    /// Writes what some rows of the database, from row `first` on, give of the answer.
    fn run<T: Send>(&self, rows: &[u8], first: usize, answer: &mut [T], narrow: impl Fn(u64) -> T + Sync) {
        let Shape { n, p, q, j, d, .. } = self.shape;
        let (c, tile_bytes) = (self.shape.c(), LANES * j * self.shape.database.bytes());
        let (row_bytes, chunk) = (c * d / LANES * tile_bytes, TILES * LANES);
        // The answer's [m, n, p, q][c][d], as [row][c][chunk][m, p].
        let mut outputs: Vec<&mut [T]> = Vec::new();
        let chunks = d.div_ceil(chunk);
        let (from, here) = (first, rows.len() / row_bytes);
        outputs.resize_with(here * c * chunks * self.parts, Default::default);
        for (block, out) in answer.chunks_exact_mut(d).enumerate() {
            let (block, c_at) = (block / c, block % c);
            let (block, q_at) = (block / q, block % q);
            let (block, p_at) = (block / p, block % p);
            let (m_at, n_at) = (block / n, block % n);
            let Some(row) = (n_at * q + q_at).checked_sub(from).filter(|row| *row < here) else { continue };
            for (i, out) in out.chunks_mut(chunk).enumerate() {
                outputs[((row * c + c_at) * chunks + i) * self.parts + m_at * p + p_at] = out;
            }
        }
        let mut outputs = outputs.into_iter();
        let channels = rows.chunks_exact(d / LANES * tile_bytes).enumerate();
        let tasks: Vec<Task<'_, T>> = channels
            .flat_map(|(at, words)| {
                words.chunks(TILES * tile_bytes).enumerate().map(move |(i, words)| (at % c, i * chunk, words))
            })
            .map(|(channel, first, words)| Task {
                words,
                channel,
                first,
                outputs: outputs.by_ref().take(self.parts).collect(),
            })
            .collect();
        tasks.into_par_iter().for_each(|task| self.task(task, tile_bytes, &narrow));
    }

    fn task<T>(&self, mut task: Task<'_, T>, tile_bytes: usize, narrow: &impl Fn(u64) -> T) {
        let Shape { j, .. } = self.shape;
        let (kernel, modulus) = (&self.kernels[task.channel], self.shape.moduli[task.channel]);
        let bytes = self.shape.database.bytes();
        let period = self.window.period;
        let (mut first, most) = (task.first, if self.parts == 1 { kernel.tiles } else { 1 });
        let (mut sums, mut rest) = (Vec::new(), task.words);
        while !rest.is_empty() {
            // Side by side as many tiles as there are in a period.
            let tiles = most.min(rest.len() / tile_bytes).min((period - first % period) / LANES);
            let (words, after) = rest.split_at(tiles * tile_bytes);
            let (at, coefficient) = (first - task.first, first);
            (first, rest) = (first + tiles * LANES, after);
            sums.clear();
            sums.resize(self.parts * tiles * LANES, 0);
            let mut before = 0;
            while before < j {
                let depth = kernel.depth.min(j - before);
                let views: Vec<&[u64]> = (0..self.parts)
                    .map(|part| &self.query(part, task.channel, coefficient)[before * self.window.step..])
                    .collect();
                let here = before * LANES * bytes..(before + depth) * LANES * bytes;
                let words: Vec<&[u8]> =
                    words.chunks_exact(tile_bytes).map(|words| &words[here.clone()]).collect();
                let tile = Tile {
                    words: &words,
                    word: self.shape.database,
                    queries: &views,
                    step: self.window.step,
                    depth,
                };
                if before == 0 {
                    (kernel.tile)(&tile, &mut sums);
                } else {
                    let kept = sums.clone();
                    (kernel.tile)(&tile, &mut sums);
                    for (sum, kept) in sums.iter_mut().zip(kept) {
                        *sum = modulus.reduce(u128::from(*sum) + u128::from(kept));
                    }
                }
                before += depth;
            }
            for (out, sums) in task.outputs.iter_mut().zip(sums.chunks_exact(tiles * LANES)) {
                for (out, sum) in out[at..].iter_mut().zip(sums) {
                    *out = narrow(*sum);
                }
            }
        }
    }

    /// A query's words as the first window has them from a coefficient on.
    fn query(&self, part: usize, channel: usize, coefficient: usize) -> &[u64] {
        let periods = self.shape.d / self.window.period;
        let period = (part * self.shape.c() + channel) * periods + coefficient / self.window.period;
        let start = coefficient % self.window.period;
        &self.query[period * self.length()..][start..self.length()]
    }
}
