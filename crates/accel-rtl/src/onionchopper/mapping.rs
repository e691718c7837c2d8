//! The contract operation cut into tiles: which word lies where, and the loop nest that finds it again.
//!
//! Source: Shay 2023, section 6.3. For each channel (modulus `c` and coefficient `d`) the operation is a matrix product:
//! *rows* of the query (m, p) times *columns* of the database (n, q), summed over the *depth* (j, k).
//!
//! ```text
//!   SSD    chunks of columns, chunks of d
//!   DRAM     c, d      channels, so that moduli change rarely
//!            depth                                       (or inside the columns: Order::OutputStationary)
//!            columns, rows
//!   lanes      rows over groups, depth over the lanes of a group, which share a C
//!   SRAM         depth, columns, rows                    js, ns, ps tiles of the register file
//!   registers      columns, depth                        nr by jr multiply-accumulates, the depth innermost
//! ```
//!
//! The thesis puts the columns innermost in the registers; its one accumulator then has another sum at every clock and
//! waits for the one before ([`Mapping::literal`] shows what that costs). Words that the shape does not have are zeros.

use blindcore_accel::Error;
use blindcore_accel::contract::Shape;

use super::board::Build;
use super::descriptor::{Descriptor, Loop};

/// Which operand stays where it is while the DRAM's loops turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Depth outside, columns inside: the query's tile stays in the SRAM, sums go out and come back (section 6.3).
    InputStationary,
    /// Depth inside: sums stay in the SRAM, the query's tiles come again for each tile of columns.
    OutputStationary,
}

/// How tiles are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Depth of a register file's tile.
    pub jr: usize,
    /// Register file tiles of depth, of columns and of rows in an SRAM's tile.
    pub js: usize,
    /// See `js`.
    pub ns: usize,
    /// See `js`.
    pub ps: usize,
    /// The order of the DRAM's loops.
    pub order: Order,
    /// The thesis's order in the registers: columns innermost.
    pub literal: bool,
}

impl Mapping {
    /// The thesis's tiles: 8 by 2 multiply-accumulates in the registers, 2 by 2 by 2 of these in an SRAM.
    #[must_use]
    pub fn thesis() -> Self {
        Self { jr: 8, js: 2, ns: 2, ps: 2, order: Order::InputStationary, literal: false }
    }

    /// What suits a shape on a build: the thesis's tiles, less of what the shape does not have, and deeper ones where
    /// several groups would drain their sums for too long.
    #[must_use]
    pub fn for_shape(shape: &Shape, build: &Build) -> Self {
        let groups = groups(build);
        let thesis = Self::thesis();
        let lanes = build.lanes / groups;
        let rows = shape.m * shape.p;
        Self {
            js: if groups > 1 { 4 } else { thesis.js }.min(shape.depth().div_ceil(lanes * thesis.jr)),
            ps: thesis.ps.min(rows.div_ceil(groups)),
            ..thesis
        }
    }
}

/// Lanes that share a C: two, as in the thesis, where there are two.
fn inner(build: &Build) -> usize {
    build.lanes.min(2)
}

/// Groups of such lanes, each for other rows of the query.
pub(crate) fn groups(build: &Build) -> usize {
    build.lanes / inner(build)
}

/// What a loop of a cut turns over: rows of the query are M and P, columns of the database N and Q, depth J and K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Moduli.
    Modulus,
    /// Coefficients.
    Coefficient,
    /// What is summed over.
    Depth,
    /// Columns of the database.
    Columns,
    /// Rows of the query.
    Rows,
}

/// A shape as loops of a chip: what each turns over and how often, the outermost first; with what is padded, so products may be
/// over the shape's bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Over tiles of the SSD.
    pub ssd: Vec<(Index, usize)>,
    /// Over tiles of the SRAMs.
    pub dram: Vec<(Index, usize)>,
    /// Over lanes, at the same time.
    pub lanes: Vec<(Index, usize)>,
    /// Over tiles of the registers.
    pub sram: Vec<(Index, usize)>,
    /// Over multiply-accumulates.
    pub registers: Vec<(Index, usize)>,
    /// Bits of a word.
    pub word: usize,
}

/// A shape cut for a build: the descriptor, and where each word goes.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) descriptor: Descriptor,
    mapping: Mapping,
    shape: Shape,
    /// 64 or 32.
    word: usize,
    groups: usize,
    inner: usize,
    /// Columns of a register file's tile: as many as a beat has words.
    nr: usize,
    /// Coefficients in a chunk, and chunks.
    dc: usize,
    d_chunks: usize,
    /// Tiles of columns in a chunk, and chunks.
    nc: usize,
    n_chunks: usize,
    /// Tiles of depth and of rows.
    jn: usize,
    rn: usize,
}

/// What the chip sees of a word: which channel, which row or column, how deep; `None` for padding.
type At = Option<(usize, usize, usize)>;

impl Plan {
    /// Cuts `shape`, whose `m` says how many queries one pass gathers.
    pub(crate) fn new(shape: &Shape, build: &Build, mapping: Mapping) -> Result<Self, Error> {
        Self::cut(shape, build, mapping, None)
    }

    /// The same with another number of queries, at most this plan's: the database lies where it lay.
    pub(crate) fn for_queries(&self, m: usize, build: &Build) -> Result<Self, Error> {
        let shape = Shape { m, ..self.shape.clone() };
        // Fewer rows need no more of them in a tile; nothing else of a mapping depends on them.
        let ps = self.mapping.ps.min((m * shape.p).div_ceil(self.groups));
        Self::cut(&shape, build, Mapping { ps, ..self.mapping }, Some((self.dc, self.nc)))
    }

    fn cut(
        shape: &Shape,
        build: &Build,
        mapping: Mapping,
        chunks: Option<(usize, usize)>,
    ) -> Result<Self, Error> {
        let refuse = |why: String| Error::Shape { shape: shape.to_string(), why };
        let (inner, groups) = (inner(build), groups(build));
        let Mapping { jr, js, ns, ps, .. } = mapping;
        let row_words = 256 / build.word;
        let nr = row_words / 2;
        if !jr.is_multiple_of(row_words) || [jr, js, ns, ps].iter().any(|n| !(1..256).contains(n)) {
            let why = format!(
                "tiles are 1 to 255 of the next smaller ones, and {row_words} words deep or a multiple"
            );
            return Err(refuse(why));
        }
        // A pipelined accumulator reduces at the end of a run: `GUARD` in `oc_pkg.sv`.
        if build.bits > 0 && jr > 255 {
            return Err(refuse(format!(
                "{jr} products are over the 255 that this chip sums before it reduces"
            )));
        }
        let rf_rows = [jr / row_words, nr * jr / row_words, 1];
        let sram_rows = [rf_rows[0] * js * ps, rf_rows[1] * js * ns, ns * ps];
        let c_banks = build.rf_rows.saturating_sub(2 * (rf_rows[0] + rf_rows[1])).min(15);
        if c_banks == 0
            || rf_rows.iter().any(|r| *r > 15)
            || 2 * sram_rows.iter().sum::<usize>() > build.sram_rows
        {
            return Err(refuse(format!("the mapping's tiles are over {} rows of an SRAM", build.sram_rows)));
        }
        let jn = shape.depth().div_ceil(inner * js * jr);
        let rn = (shape.m * shape.p).div_ceil(groups * ps);
        let nn = shape.rows().div_ceil(ns * nr);
        let channels = shape.c();

        // Beats of one lane's tiles.
        let (a, b, c) = (2 * sram_rows[0], 2 * sram_rows[1], sram_rows[2]);
        let a_beats = |dc: usize| channels * dc * jn * rn * groups * inner * a;
        let b_beats = |dc: usize, nc: usize| channels * dc * jn * nc * inner * b;
        let c_beats = |dc: usize, nc: usize| channels * dc * nc * rn * groups * c;
        let fits = |dc: usize, nc: usize| {
            let spills = jn > 1 && mapping.order == Order::InputStationary;
            a_beats(dc) + b_beats(dc, nc) <= build.half_beats
                && (!spills || c_beats(dc, nc) <= build.c_beats)
                && channels * dc < 1 << 16
                && nc < 1 << 16
        };
        // As few chunks as can be: of coefficients with all columns, else of columns with one coefficient.
        let most = |high: usize, fits: &dyn Fn(usize) -> bool| {
            let (mut low, mut high) = (0, high);
            while low < high {
                let middle = (low + high).div_ceil(2);
                if fits(middle) { low = middle } else { high = middle - 1 }
            }
            low
        };
        let (dc, nc) = chunks.unwrap_or_else(|| match most(shape.d, &|dc| fits(dc, nn)) {
            0 => (1, most(nn, &|nc| fits(1, nc))),
            dc => (dc, nn),
        });
        if nc == 0 || jn >= 1 << 16 || rn >= 1 << 16 {
            let why = format!(
                "j * k by {} rows of a query do not fit half of this chip's DRAM, {} KiB; gather fewer queries or \
                 cut the depth",
                shape.m * shape.p,
                build.half_beats * 16 / 1024
            );
            return Err(refuse(why));
        }
        let (d_chunks, n_chunks) = (shape.d.div_ceil(dc), nn.div_ceil(nc));
        // Chunks of one size, so that the last is not mostly padding; cutting these again changes nothing.
        let (dc, nc) = (shape.d.div_ceil(d_chunks), nn.div_ceil(n_chunks));
        let tiles = d_chunks * n_chunks;

        // Strides: A lies as [c][d][depth][rows][group][inner], B as [c][d][depth][columns][inner], C as
        // [c][d][columns][rows][group].
        let (a_row, b_column, c_row) = (groups * inner * a, inner * b, groups * c);
        let (a_depth, b_depth, c_column) = (rn * a_row, nc * b_column, rn * c_row);
        let channel = Loop { bound: channels * dc, strides: [jn * a_depth, jn * b_depth, nc * c_column] };
        let depth = Loop { bound: jn, strides: [a_depth, b_depth, 0] };
        let columns = Loop { bound: nc, strides: [0, b_column, c_column] };
        let rows = Loop { bound: rn, strides: [a_row, 0, c_row] };
        let dram = match mapping.order {
            Order::InputStationary => vec![channel, depth, columns, rows],
            Order::OutputStationary => vec![channel, columns, rows, depth],
        };
        let sram = vec![
            Loop { bound: js, strides: [rf_rows[0], ns * rf_rows[1], 0] },
            Loop { bound: ns, strides: [0, rf_rows[1], ps] },
            Loop { bound: ps, strides: [js * rf_rows[0], 0, 1] },
        ];
        let by_column = Loop { bound: nr, strides: [0, jr, 1] };
        let by_depth = Loop { bound: jr, strides: [1, 1, 0] };
        let rf = if mapping.literal { vec![by_depth, by_column] } else { vec![by_column, by_depth] };

        // A stride that its register does not hold would be another one.
        if dram.iter().flat_map(|l| l.strides).any(|s| s >= 1 << 24) {
            return Err(refuse("a stride is over the 2^24 beats that the chip addresses".into()));
        }

        let steps = (dc * jn * nc * rn) as u64;
        // Where another tile of C comes between two of one depth, both are drained; else a C stays until it is whole.
        let spills = mapping.order == Order::InputStationary && nc * rn > 1;
        let drains = if spills { steps } else { steps / jn as u64 };
        let descriptor = Descriptor {
            resident: false,
            tiles,
            tile_beats: a_beats(dc) + b_beats(dc, nc),
            b_base: a_beats(dc),
            dram,
            inner_log2: inner.ilog2(),
            groups,
            reduce: inner > 1,
            inner_stride: [a, b, 0],
            group_stride: [inner * a, 0, c],
            sram_rows,
            one_beat: [false, false, true],
            sram,
            rf_rows,
            c_banks,
            rf,
            moduli: shape.moduli.iter().map(|m| (*m).into()).collect(),
            mac_period: steps * (js * ns * ps * nr * jr) as u64,
            drain_period: drains * (groups * sram_rows[2] * nr) as u64,
            watchdog: 100_000,
        };
        let (shape, word) = (shape.clone(), build.word);
        Ok(Self { descriptor, mapping, shape, word, groups, inner, nr, dc, d_chunks, nc, n_chunks, jn, rn })
    }

    /// The loops.
    pub(crate) fn loops(&self) -> Cut {
        use Index::{Coefficient, Columns, Depth, Modulus, Rows};
        let Mapping { jr, js, ns, ps, order, literal } = self.mapping;
        let (depth, columns, rows) = ((Depth, self.jn), (Columns, self.nc), (Rows, self.rn));
        let inner = match order {
            Order::InputStationary => [depth, columns, rows],
            Order::OutputStationary => [columns, rows, depth],
        };
        let (deep, wide) = ((Depth, jr), (Columns, self.nr));
        Cut {
            ssd: vec![(Columns, self.n_chunks), (Coefficient, self.d_chunks)],
            dram: [(Modulus, self.shape.c()), (Coefficient, self.dc)].into_iter().chain(inner).collect(),
            lanes: vec![(Rows, self.groups), (Depth, self.inner)],
            sram: vec![(Depth, js), (Columns, ns), (Rows, ps)],
            registers: if literal { vec![deep, wide] } else { vec![wide, deep] },
            word: self.word,
        }
    }

    /// 64-bit words of the SSD's stream.
    pub(crate) fn words(&self) -> usize {
        2 * self.descriptor.tile_beats * self.descriptor.tiles
    }

    /// How many queries a pass gathers.
    pub(crate) fn queries(&self) -> usize {
        self.shape.m
    }

    /// Tiles of the SSD: chunks of columns, and in each all chunks of coefficients.
    fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let d_chunks = self.d_chunks;
        (0..self.n_chunks).flat_map(move |n| (0..d_chunks).map(move |d| (n, d)))
    }

    /// The channels of a chunk: modulus and, if the shape has it, coefficient.
    fn channels(&self, d_chunk: usize) -> impl Iterator<Item = (usize, Option<usize>)> + use<> {
        let (dc, d) = (self.dc, self.shape.d);
        (0..self.shape.c())
            .flat_map(move |c| (0..dc).map(move |i| (c, Some(d_chunk * dc + i).filter(|i| *i < d))))
    }

    /// The words of B of every SSD tile, each in the order in which it lies there. `at` gives the word for channel
    /// (as c * d + coefficient), column and depth.
    pub(crate) fn lay_database(&self, at: impl Fn(usize, usize, usize) -> u64) -> Vec<Vec<u64>> {
        let Mapping { jr, js, ns, .. } = self.mapping;
        let (columns, depth) = (self.shape.rows(), self.shape.depth());
        self.chunks()
            .map(|(n_chunk, d_chunk)| {
                let b_beats = self.descriptor.tile_beats - self.descriptor.b_base;
                let mut out = Packer::new(self.word, 2 * b_beats);
                for (c, d) in self.channels(d_chunk) {
                    for j_tile in 0..self.jn {
                        for n_tile in 0..self.nc {
                            for lane in 0..self.inner {
                                for j in 0..js {
                                    for n in 0..ns {
                                        for column in 0..self.nr {
                                            for deep in 0..jr {
                                                let column = ((n_chunk * self.nc + n_tile) * ns + n)
                                                    * self.nr
                                                    + column;
                                                let deep =
                                                    ((j_tile * self.inner + lane) * js + j) * jr + deep;
                                                let here = d.filter(|_| column < columns && deep < depth);
                                                out.push(
                                                    here.map_or(0, |d| {
                                                        at(c * self.shape.d + d, column, deep)
                                                    }),
                                                );
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
                out.words
            })
            .collect()
    }

    /// The words of A of one chunk of coefficients. `at` gives the word for channel, row and depth.
    fn lay_query(&self, d_chunk: usize, at: &impl Fn(usize, usize, usize) -> u64) -> Vec<u64> {
        let Mapping { jr, js, ps, .. } = self.mapping;
        let (rows, depth) = (self.shape.m * self.shape.p, self.shape.depth());
        let mut out = Packer::new(self.word, 2 * self.descriptor.b_base);
        for (c, d) in self.channels(d_chunk) {
            for j_tile in 0..self.jn {
                for r_tile in 0..self.rn {
                    for group in 0..self.groups {
                        for lane in 0..self.inner {
                            for p in 0..ps {
                                for j in 0..js {
                                    for deep in 0..jr {
                                        let row = (r_tile * self.groups + group) * ps + p;
                                        let deep = ((j_tile * self.inner + lane) * js + j) * jr + deep;
                                        let here = d.filter(|_| row < rows && deep < depth);
                                        out.push(here.map_or(0, |d| at(c * self.shape.d + d, row, deep)));
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        out.words
    }

    /// The SSD's whole stream: each tile's A and B.
    pub(crate) fn stream(&self, database: &[Vec<u64>], at: impl Fn(usize, usize, usize) -> u64) -> Vec<u64> {
        let queries: Vec<_> = (0..self.d_chunks).map(|d| self.lay_query(d, &at)).collect();
        let mut out = Vec::with_capacity(self.words());
        for (tile, b) in database.iter().enumerate() {
            out.extend(&queries[tile % self.d_chunks]);
            out.extend(b);
        }
        out
    }

    /// 64-bit words that leave the chip.
    pub(crate) fn out_words(&self) -> usize {
        let Mapping { ns, ps, .. } = self.mapping;
        2 * self.descriptor.tiles * self.shape.c() * self.dc * self.nc * self.rn * self.groups * ns * ps
    }

    /// Where each word that leaves the chip belongs, in order: channel, column and row.
    pub(crate) fn results(&self) -> impl Iterator<Item = At> + '_ {
        let Mapping { ns, ps, .. } = self.mapping;
        let (columns, rows) = (self.shape.rows(), self.shape.m * self.shape.p);
        self.chunks().flat_map(move |(n_chunk, d_chunk)| {
            self.channels(d_chunk).flat_map(move |(c, d)| {
                let tiles = (0..self.nc).flat_map(move |n| (0..self.rn).map(move |r| (n, r)));
                tiles.flat_map(move |(n_tile, r_tile)| {
                    (0..self.groups * ns * ps * self.nr).map(move |i| {
                        let (i, column) = (i / self.nr, i % self.nr);
                        let (i, p) = (i / ps, i % ps);
                        let (group, n) = (i / ns, i % ns);
                        let column = ((n_chunk * self.nc + n_tile) * ns + n) * self.nr + column;
                        let row = (r_tile * self.groups + group) * ps + p;
                        d.filter(|_| column < columns && row < rows)
                            .map(|d| (c * self.shape.d + d, column, row))
                    })
                })
            })
        })
    }

    /// Words of the chip's width in a 64-bit word of its stream, the lowest first.
    pub(crate) fn split(&self, word: u64) -> impl Iterator<Item = u64> + use<> {
        let bits = self.word;
        (0..64 / bits).map(move |i| word >> (i * bits) & (u64::MAX >> (64 - bits)))
    }
}

/// Words of 32 or 64 bits as 64-bit words, the first in the low half.
struct Packer {
    words: Vec<u64>,
    word: usize,
    half: Option<u64>,
}

impl Packer {
    fn new(word: usize, words: usize) -> Self {
        Self { words: Vec::with_capacity(words), word, half: None }
    }

    fn push(&mut self, x: u64) {
        if self.word == 64 {
            self.words.push(x);
        } else if let Some(low) = self.half.take() {
            self.words.push(low | x << 32);
        } else {
            self.half = Some(x);
        }
    }
}
