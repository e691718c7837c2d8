//! The contract operation over [`Layout::Tiles16x64`]: bytes times 32-bit words, modulo 2^32.
//!
//! # How
//!
//! A product of a byte and a 32-bit word is taken apart on the query's side, which is small: each query word
//! becomes signed *digits*, x = sum of digit_l * 2^(b l) mod 2^32 with b = 8 (four digits, for `vpdpbusd` and
//! `tdpbsud`) or b = 16 (two, for `pmaddwd`). The database's bytes go into the multipliers as they lie.
//! Partial sums wrap modulo 2^32 and are put together at the end, shifted, which is exact.
//!
//! # Blocks
//!
//! ```text
//!            depth (columns) ──────────────▶            one block: STRIPES stripes by DEPTH columns of the
//!   rows  ┌───────┬───────┬───────┐                     database, against GROUP queries. The query's digits
//!    │    │ block │ block │       │                     of a block stay in the L2 cache while the database
//!    ▼    ├───────┼───────┼───────┤                     passes once; partial sums of a row of blocks stay in
//!         │       │       │       │                     the L2 too. Threads take rows of blocks.
//!         └───────┴───────┴───────┘
//! ```
//!
//! More queries than a group go through the database in several passes.
//!
//! [`Layout::Tiles16x64`]: blindcore_accel::Layout::Tiles16x64

pub(crate) mod kernel;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Layout, Words};
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use crate::arch::{amx, avx2, avx512};
use crate::isa::Features;
use kernel::{Block, COLUMNS, Kernel, ROWS};

fn choose(features: &Features, queries: usize) -> Kernel {
    #[cfg(target_arch = "x86_64")]
    {
        // A tile multiplies four queries or none: for fewer, AVX-512 already waits for memory.
        if let Some(token) = features.amx.filter(|_| queries >= 4) {
            return amx::tiles::kernel(token);
        }
        if let Some(token) = features.vnni {
            return avx512::tiles::kernel(token);
        }
        if let Some(token) = features.avx2 {
            return avx2::tiles::kernel(token);
        }
    }
    let _ = (features, queries);
    portable()
}

/// The queries of `parts` parts each, `most` at most, that one reading of the database serves.
pub(crate) fn gathered(features: &Features, most: usize, parts: usize) -> usize {
    (choose(features, most * parts).group / parts).clamp(1, most)
}

/// A query on its way through the database.
pub(crate) struct Pass {
    shape: Shape,
    kernel: Kernel,
    groups: Vec<Group>,
    /// `[m, p][n, q]`.
    out: Vec<u32>,
    /// Rows of the database that were taken.
    rows: usize,
}

/// The digits of the queries that share a pass through the kernel.
struct Group {
    queries: usize,
    /// For each block's columns.
    digits: Vec<Vec<u8>>,
    block_stripes: usize,
    block_depth: usize,
}

impl Pass {
    /// Takes queries apart. They have been checked and gather `queries` parts.
    pub(crate) fn new(features: &Features, shape: &Shape, query: &Words, queries: usize) -> Self {
        let query = query.as_u32().expect("checked by the caller");
        // The query as a matrix, a row for each (m, p).
        let depth = shape.depth();
        let parts = queries * shape.p;
        let reordered: Vec<u32>;
        let query = if shape.p == 1 {
            query
        } else {
            let index = |row: usize, jk: usize| {
                shape.query_index([row / shape.p, jk / shape.k, row % shape.p, jk % shape.k, 0, 0])
            };
            reordered = (0..parts * depth).map(|at| query[index(at / depth, at % depth)]).collect();
            &reordered
        };
        let kernel = choose(features, parts);
        let groups =
            query.chunks(kernel.group * depth).map(|query| Group::new(&kernel, depth, query)).collect();
        Self { shape: shape.clone(), kernel, groups, out: vec![0; parts * shape.rows()], rows: 0 }
    }

    /// How often a stripe is gone through.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Computes the outputs of the next stripes.
    pub(crate) fn take(&mut self, stripes: &[u8]) {
        let rows = self.shape.rows();
        let outs = self.out.chunks_mut(self.kernel.group * rows);
        for (group, out) in self.groups.iter().zip(outs) {
            let outs = out.chunks_exact_mut(rows).map(|out| &mut out[self.rows..]).collect();
            group.multiply(&self.kernel, &self.shape, stripes, outs);
        }
        self.rows += stripes.len() / Layout::Tiles16x64.stripe_bytes(&self.shape) * ROWS;
    }

    /// The answer, in canonical order.
    pub(crate) fn finish(self) -> Words {
        let Self { shape, mut out, .. } = self;
        if shape.p > 1 && shape.q > 1 {
            // out is [m][p][n][q]; canonical is [m][n][p][q].
            let (n, p, q) = (shape.n, shape.p, shape.q);
            out = (0..out.len())
                .map(|at| {
                    let (at, q_at) = (at / q, at % q);
                    let (at, p_at) = (at / p, at % p);
                    let (m, n_at) = (at / n, at % n);
                    out[((m * p + p_at) * n + n_at) * q + q_at]
                })
                .collect();
        } else if shape.p > 1 {
            let (n, p) = (shape.n, shape.p);
            out = (0..out.len()).map(|at| out[(at / p / n * p + at % p) * n + at / p % n]).collect();
        }
        Words::U32(out)
    }
}

impl Group {
    fn new(kernel: &Kernel, depth: usize, query: &[u32]) -> Self {
        let queries: Vec<&[u32]> = query.chunks_exact(depth).collect();
        let (block_stripes, block_depth) = (kernel.block_size)(queries.len());
        let digits = (0..depth.div_ceil(block_depth))
            .into_par_iter()
            .map(|i| {
                let columns = i * block_depth..depth.min((i + 1) * block_depth);
                (kernel.pack)(&queries.iter().map(|q| &q[columns.clone()]).collect::<Vec<_>>())
            })
            .collect();
        Self { queries: queries.len(), digits, block_stripes, block_depth }
    }

    /// These queries times some stripes; `rest` has each query's outputs from theirs on.
    fn multiply(&self, kernel: &Kernel, shape: &Shape, stripes: &[u8], mut rest: Vec<&mut [u32]>) {
        let Self { queries, block_depth, .. } = *self;
        let depth = shape.depth();
        let stripe_bytes = Layout::Tiles16x64.stripe_bytes(shape);
        // A task is a row of blocks: consecutive stripes, and each query's outputs for them.
        let each =
            task_stripes(stripes.len() / stripe_bytes, self.block_stripes, rayon::current_num_threads());
        let mut tasks = Vec::new();
        for stripes in stripes.chunks(each * stripe_bytes) {
            let rows = stripes.len() / stripe_bytes * ROWS;
            let outs: Vec<&mut [u32]> = rest
                .iter_mut()
                .map(|r| {
                    let rows = rows.min(r.len());
                    let (head, tail) = std::mem::take(r).split_at_mut(rows);
                    *r = tail;
                    head
                })
                .collect();
            tasks.push((stripes, outs));
        }
        let sums_of_stripe = queries.next_multiple_of(kernel.pad) * kernel.digits * ROWS;
        tasks.into_par_iter().for_each_init(Vec::new, |sums, (stripes, mut outs)| {
            sums.clear();
            sums.resize(stripes.len() / stripe_bytes * sums_of_stripe, 0i32);
            for (i, digits) in self.digits.iter().enumerate() {
                let block = Block {
                    tiles: &stripes[i * block_depth * ROWS..],
                    stripe_bytes,
                    stripes: stripes.len() / stripe_bytes,
                    width: (depth - i * block_depth).min(block_depth).div_ceil(COLUMNS),
                    digits,
                    queries,
                };
                (kernel.block)(&block, sums);
            }
            for (stripe, sums) in sums.chunks_exact(sums_of_stripe).enumerate() {
                for (out, sums) in outs.iter_mut().zip(sums.chunks_exact(kernel.digits * ROWS)) {
                    let end = out.len().min((stripe + 1) * ROWS);
                    for (row, out) in out[stripe * ROWS..end].iter_mut().enumerate() {
                        let digits = sums[row..].iter().step_by(ROWS);
                        let shift = 32 / kernel.digits as u32;
                        *out =
                            digits.rev().fold(0, |sum, s| sum.unbounded_shl(shift).wrapping_add(*s as u32));
                    }
                }
            }
        });
    }
}

/// Stripes of a task, for blocks of at most this many. Few stripes are cut into lower blocks, as even as they can be: every thread
/// is to have some, and one that is slowed down leaves the rest of its own to those that are done.
fn task_stripes(stripes: usize, block_stripes: usize, threads: usize) -> usize {
    const TASKS_PER_THREAD: usize = 4;
    let tasks = (TASKS_PER_THREAD * threads).max(stripes.div_ceil(block_stripes));
    // The kernels take stripes in pairs, but no thread goes without any for that.
    let pairs = stripes.div_ceil(tasks).next_multiple_of(2);
    pairs.min(stripes.div_ceil(threads)).clamp(1, block_stripes)
}

/// The reference: whole words, no digits.
fn portable() -> Kernel {
    Kernel {
        group: 16,
        pad: 1,
        digits: 1,
        block_size: |_| (1, 4096),
        pack: |queries| queries.iter().flat_map(|q| q.iter().flat_map(|x| x.to_le_bytes())).collect(),
        block: Box::new(portable_block),
    }
}

fn portable_block(block: &Block<'_>, sums: &mut [i32]) {
    let columns = block.digits.len() / 4 / block.queries;
    for (stripe, sums) in sums.chunks_exact_mut(block.queries * ROWS).enumerate() {
        let tiles = &block.tiles[stripe * block.stripe_bytes..];
        for (query, sums) in block.digits.chunks_exact(4 * columns).zip(sums.chunks_exact_mut(ROWS)) {
            for (column, x) in query.as_chunks::<4>().0.iter().enumerate() {
                let x = u32::from_le_bytes(*x);
                for (row, sum) in sums.iter_mut().enumerate() {
                    let entry = u32::from(tiles[Layout::tile_index(row, column)]);
                    *sum = sum.wrapping_add(entry.wrapping_mul(x) as i32);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_are_shared_out_evenly() {
        // Stripes, those of a block, threads; then those of a task.
        for (stripes, block, threads, want) in [
            (0, 64, 2, 1),
            (1, 64, 2, 1),
            (2, 64, 2, 1),
            (3, 64, 2, 2),
            (16, 64, 16, 1),
            (8, 64, 1, 2),
            (194, 64, 2, 26),
            (512, 64, 2, 64),
            (513, 64, 2, 58),
            (4096, 64, 2, 64),
            (4096, 64, 32, 32),
            (194, 4, 2, 4),
            (9, 1, 2, 1),
        ] {
            let got = task_stripes(stripes, block, threads);
            assert_eq!(got, want, "{stripes} stripes, {block} in a block, {threads} threads");
            assert!(
                stripes.div_ceil(got) >= stripes.min(threads),
                "a thread has none: {stripes}, {block}, {threads}"
            );
        }
    }
}
