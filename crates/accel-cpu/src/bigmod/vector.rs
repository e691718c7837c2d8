//! The vector engine of bigmod: a number a lane, in digits of 52 bits (AVX-512 IFMA) or 27 bits (AVX2).
//!
//! ```text
//!   a row: one residue, its digits one after the other   ──gather──▶   a group: digit d of every lane, then d + 1
//!   d0 d1 d2 d3 ...                                      ◀──scatter──   a0 b0 c0 .. | a1 b1 c1 .. | ...
//! ```
//!
//! [`super::field`] holds what is known of a modulus, [`crate::arch::vector::bigmod`] the Montgomery product that
//! everything runs through; this file makes batches of rows, conversions and powers of it. A residue is in Montgomery's
//! form, its digits normalised, its value below 2n; modulo n^2 it is a pair x0 + x1 n of such numbers.

use std::sync::Arc;

use blindcore_accel::Line;
use zeroize::{Zeroize, Zeroizing};

use super::field::{Field, bits_at, digit};
use super::{Engine, Table, WINDOW};
use crate::arch::vector::bigmod::{Kernel, Scratch, enter, multiply, square};
use crate::memory::Lines;

/// Groups that share one pass over a fixed base's tables: each pass brings them from the L2 or further.
const SHARED: usize = 16;
/// Bytes of a table of powers that stay in the L1 while it is looked through, for one group at a time.
const NEAR: usize = 40 << 10;
/// Squarings of a power of a fixed base: its tables take as much memory as there are columns over this.
const SQUARINGS: usize = 16;

pub(super) struct VectorEngine<K: Kernel> {
    field: Field,
    token: K::Token,
    form: &'static str,
}

/// Memory of groups and of what a product needs besides; wiped.
struct Groups {
    lines: Vec<Line>,
    /// Lines of a group.
    size: usize,
    /// Two parts.
    scratch: Vec<Line>,
}

impl Groups {
    fn get(&self, at: usize) -> &[u64] {
        bytemuck::cast_slice(&self.lines[at * self.size..][..self.size])
    }

    fn get_mut(&mut self, at: usize) -> &mut [u64] {
        bytemuck::cast_slice_mut(&mut self.lines[at * self.size..][..self.size])
    }

    /// The groups `from` to be read, `to` to be written, which is none of them, and the scratch.
    fn split<const N: usize>(
        &mut self,
        from: [usize; N],
        to: usize,
    ) -> ([&[u64]; N], &mut [u64], Scratch<'_>) {
        let size = self.size;
        let (before, rest) = self.lines.split_at_mut(to * size);
        let (out, after) = rest.split_at_mut(size);
        let from = from.map(|at| {
            assert_ne!(at, to, "a group is written that is read");
            let lines = if at < to { &before[at * size..] } else { &after[(at - to - 1) * size..] };
            bytemuck::cast_slice(&lines[..size])
        });
        (from, bytemuck::cast_slice_mut(out), scratch(&mut self.scratch))
    }
}

fn scratch(lines: &mut [Line]) -> Scratch<'_> {
    let half = lines.len() / 2;
    let (low, high) = lines.split_at_mut(half);
    Scratch([low, high].map(bytemuck::cast_slice_mut))
}

impl Drop for Groups {
    fn drop(&mut self) {
        wipe(&mut self.lines);
        wipe(&mut self.scratch);
    }
}

/// Zeros that the compiler may not leave out, a vector at a time: `zeroize` writes word by word, which takes as long as a
/// product.
fn wipe(lines: &mut [Line]) {
    lines.fill(Line([0; 8]));
    zeroize::optimization_barrier(lines);
}

impl<K: Kernel> VectorEngine<K> {
    /// For a field of the kernel's digits and blocks.
    pub(super) fn new(token: K::Token, form: &'static str, field: Field) -> Self {
        assert!(field.digit_bits == K::DIGIT_BITS && field.digits.is_multiple_of(K::TILE));
        Self { field, token, form }
    }

    /// `count` groups, each with room for whole lines of every lane.
    fn groups(&self, count: usize) -> Groups {
        let size = self.field.row_lines() * K::LANES;
        let part = (self.field.digits * K::LANES).div_ceil(8);
        Groups { lines: vec![Line([0; 8]); count * size], size, scratch: vec![Line([0; 8]); 2 * part] }
    }

    /// `out = x * y`, groups by number.
    fn multiply_groups(&self, groups: &mut Groups, x: usize, y: usize, out: usize) {
        let ([x, y], out, scratch) = groups.split([x, y], out);
        multiply::<K>(self.token, &self.field, x, y, out, scratch);
    }

    /// `out = x * x`, groups by number.
    fn square_group(&self, groups: &mut Groups, x: usize, out: usize) {
        let ([x], out, scratch) = groups.split([x], out);
        square::<K>(self.token, &self.field, x, out, scratch);
    }

    /// The same residue in every lane.
    fn splat(&self, digits: &[u64], out: &mut [u64]) {
        for (out, digit) in out.chunks_exact_mut(K::LANES).zip(digits) {
            out.fill(*digit);
        }
    }

    /// As many rows as there are, at most one a lane, into a group; lanes that are left repeat the first.
    fn gather(&self, rows: &[&[Line]], out: &mut [u64]) {
        K::gather(self.token, rows, self.field.row_lines(), out);
    }

    /// A group into at most one row a lane.
    fn scatter(&self, group: &[u64], out: &mut [Line]) {
        let row = self.field.row_lines();
        let count = out.len() / row;
        K::scatter(self.token, group, row, out, (0..count).map(|lane| lane * row));
    }

    /// The positions of groups of rows.
    fn pieces(&self, count: usize) -> impl Iterator<Item = std::ops::Range<usize>> + use<K> {
        (0..count).step_by(K::LANES).map(move |first| first..(first + K::LANES).min(count))
    }

    fn rows<'a>(&self, out: &'a mut [Line], piece: &std::ops::Range<usize>) -> &'a mut [Line] {
        let row = self.field.row_lines();
        &mut out[piece.start * row..piece.end * row]
    }

    /// Takes n off where a part is not below it; says in which lanes, as 0 or 1.
    fn reduce(&self, part: &mut [u64]) -> Vec<u64> {
        let mask = (1u64 << K::DIGIT_BITS) - 1;
        let mut less = vec![0; part.len()];
        let mut borrow = vec![0u64; K::LANES];
        for ((less, part), n) in
            less.chunks_exact_mut(K::LANES).zip(part.chunks_exact(K::LANES)).zip(&self.field.n)
        {
            for lane in 0..K::LANES {
                let difference = part[lane].wrapping_sub(*n).wrapping_sub(borrow[lane]);
                less[lane] = difference & mask;
                borrow[lane] = difference >> 63;
            }
        }
        for (part, less) in part.chunks_exact_mut(K::LANES).zip(less.chunks_exact(K::LANES)) {
            for lane in 0..K::LANES {
                let keep = borrow[lane].wrapping_neg();
                part[lane] = (part[lane] & keep) | (less[lane] & !keep);
            }
        }
        less.zeroize();
        borrow.iter().map(|b| 1 - b).collect()
    }
}

impl<K: Kernel> Engine for VectorEngine<K> {
    fn form(&self) -> &'static str {
        self.form
    }

    fn row_lines(&self) -> usize {
        self.field.row_lines()
    }

    fn lanes(&self) -> usize {
        K::LANES
    }

    fn window(&self) -> u32 {
        // For one group, looking through a table that has left the L1 takes as long as a product.
        let entry = self.field.row_digits() * K::LANES * size_of::<u64>();
        if K::CHOSEN > 1 || entry << WINDOW <= NEAR { WINDOW } else { WINDOW - 1 }
    }

    fn enter(&self, numbers: &[&[u64]], out: &mut [Line]) {
        let (f, part) = (&self.field, self.field.digits * K::LANES);
        let mut groups = self.groups(5);
        for (at, entry) in f.entry.iter().enumerate() {
            self.splat(entry, groups.get_mut(3 + at));
        }
        for piece in self.pieces(numbers.len()) {
            for half in 0..f.parts {
                let group = groups.get_mut(half);
                for d in 0..f.digits {
                    for (lane, number) in numbers[piece.clone()].iter().enumerate() {
                        group[d * K::LANES + lane] = digit(number, K::DIGIT_BITS, half * f.digits + d);
                    }
                }
            }
            let ([x0, x1, y0, y1], out_group, scratch) = groups.split([0, f.parts - 1, 3, 4], 2);
            enter::<K>(self.token, f, [x0, x1], [y0, y1], out_group, scratch);
            self.reduce_all(&mut groups.get_mut(2)[..f.parts * part]);
            self.scatter(groups.get(2), self.rows(out, &piece));
        }
    }

    fn leave(&self, rows: &[&[Line]], out: &mut [u64]) {
        let (f, part) = (&self.field, self.field.digits * K::LANES);
        let mut groups = self.groups(3);
        let mut one = vec![0; f.row_digits()];
        one[0] = 1;
        self.splat(&one, groups.get_mut(0));
        let mut digits = vec![0u64; f.digits];
        for piece in self.pieces(rows.len()) {
            self.gather(&rows[piece.clone()], groups.get_mut(1));
            self.multiply_groups(&mut groups, 1, 0, 2);
            let group = &mut groups.get_mut(2)[..f.parts * part];
            self.reduce_all(group);
            let (low, high) = group.split_at(part);
            for (lane, at) in piece.enumerate() {
                let out = &mut out[at * f.words..][..f.words];
                let mut words = |part: &[u64]| {
                    for (digit, vector) in digits.iter_mut().zip(part.chunks_exact(K::LANES)) {
                        *digit = vector[lane];
                    }
                    super::field::to_words(&digits, K::DIGIT_BITS)
                };
                let mut x0 = words(low);
                let mut x1 = if f.parts == 2 { words(high) } else { Vec::new() };
                multiply_add(&x0, &x1, &f.root, out);
                x0.zeroize();
                x1.zeroize();
            }
        }
        digits.zeroize();
    }

    fn multiply(&self, x: &[&[Line]], y: &[&[Line]], out: &mut [Line]) {
        let mut groups = self.groups(3);
        for piece in self.pieces(x.len()) {
            self.gather(&x[piece.clone()], groups.get_mut(0));
            self.gather(&y[piece.clone()], groups.get_mut(1));
            let next = piece.end..(piece.end + K::LANES).min(x.len());
            x[next.clone()].iter().chain(&y[next]).copied().flatten().for_each(K::fetch);
            self.multiply_groups(&mut groups, 0, 1, 2);
            self.scatter(groups.get(2), self.rows(out, &piece));
        }
    }

    fn products(&self, lists: &[Vec<&[Line]>], out: &mut [Line]) {
        let mut one = vec![Line([0; 8]); self.field.row_lines()];
        bytemuck::cast_slice_mut::<Line, u64>(&mut one)[..self.field.row_digits()]
            .copy_from_slice(&self.field.one);
        let mut groups = self.groups(3);
        for piece in self.pieces(lists.len()) {
            let lists = &lists[piece.clone()];
            let factors = |at: usize| -> Vec<&[Line]> {
                lists.iter().map(|list| list.get(at).copied().unwrap_or(&one)).collect()
            };
            let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
            let mut at = 0;
            self.gather(&factors(0), groups.get_mut(at));
            for i in 1..longest {
                self.gather(&factors(i), groups.get_mut(2));
                lists.iter().filter_map(|list| list.get(i + 1)).for_each(|row| row.iter().for_each(K::fetch));
                self.multiply_groups(&mut groups, at, 2, 1 - at);
                at = 1 - at;
            }
            self.scatter(groups.get(at), self.rows(out, &piece));
        }
    }

    fn multiply_into(&self, rows: &mut [Line], slots: &[usize], y: &[&[Line]]) {
        let row = self.field.row_lines();
        let mut groups = self.groups(3);
        for piece in self.pieces(slots.len()) {
            let x: Vec<&[Line]> =
                slots[piece.clone()].iter().map(|slot| &rows[slot * row..][..row]).collect();
            self.gather(&x, groups.get_mut(0));
            self.gather(&y[piece.clone()], groups.get_mut(1));
            let next = piece.end..(piece.end + K::LANES).min(slots.len());
            for (slot, y) in slots[next.clone()].iter().zip(&y[next]) {
                rows[slot * row..][..row].iter().chain(*y).for_each(K::fetch);
            }
            self.multiply_groups(&mut groups, 0, 1, 2);
            K::scatter(self.token, groups.get(2), row, rows, slots[piece].iter().map(|slot| slot * row));
        }
    }

    fn multiply_times(&self, x: &[&[Line]], y: &[&[Line]], times: u32, out: &mut [Line]) {
        let mut groups = self.groups(3);
        for piece in self.pieces(x.len()) {
            let mut at = 0;
            self.gather(&x[piece.clone()], groups.get_mut(0));
            self.gather(&y[piece.clone()], groups.get_mut(2));
            for _ in 0..times {
                self.multiply_groups(&mut groups, at, 2, 1 - at);
                at = 1 - at;
            }
            self.scatter(groups.get(at), self.rows(out, &piece));
        }
    }

    fn limit(&self) -> Option<(f64, f64)> {
        const ROUNDS: u64 = 2_000_000;
        let mut out = Line([0; 8]);
        let start = std::time::Instant::now();
        K::peak(self.token, std::hint::black_box(ROUNDS), std::hint::black_box(12_345), &mut out);
        let seconds = start.elapsed().as_secs_f64();
        std::hint::black_box(out);
        let products = 10.0 * ROUNDS as f64 / seconds * K::LANES as f64;
        // Products of digits, in two halves where there are halves: x y and m n, or for a pair the five of `scan`.
        let part = (self.field.digits * self.field.digits * if K::HALVES { 2 } else { 1 }) as f64;
        let (multiply, square) = if self.field.parts == 1 { (2.0, 1.5) } else { (5.0, 3.5) };
        Some((products / (multiply * part), products / (square * part)))
    }

    fn square(&self, x: &[&[Line]], times: u32, out: &mut [Line]) {
        let mut groups = self.groups(2);
        for piece in self.pieces(x.len()) {
            let mut at = 0;
            self.gather(&x[piece.clone()], groups.get_mut(0));
            for _ in 0..times {
                self.square_group(&mut groups, at, 1 - at);
                at = 1 - at;
            }
            self.scatter(groups.get(at), self.rows(out, &piece));
        }
    }

    fn power(&self, x: &[&[Line]], exponents: &[&[u64]], bits: u32, out: &mut [Line]) {
        let f = &self.field;
        let window_bits = self.window();
        let entries = 1usize << window_bits;
        // Powers of x from 0 on, then two to work on.
        let mut groups = self.groups(entries + 2);
        let work = [entries, entries + 1];
        let entry = f.row_digits() * K::LANES;
        let lines = |words: usize| vec![Line([0; 8]); words.div_ceil(8)];
        let (mut table, mut chosen) = (lines(entries * entry), lines(K::CHOSEN * entry));
        let mut index = vec![Line([0; 8]); K::CHOSEN];
        let windows: Vec<u32> = (0..bits.div_ceil(window_bits)).rev().collect();
        for piece in self.pieces(x.len()) {
            self.splat(&f.one, groups.get_mut(0));
            self.gather(&x[piece.clone()], groups.get_mut(1));
            for e in 2..entries {
                if e % 2 == 0 {
                    self.square_group(&mut groups, e / 2, e);
                } else {
                    self.multiply_groups(&mut groups, e - 1, 1, e);
                }
            }
            let powers = bytemuck::cast_slice(&groups.lines[..entries * groups.size]);
            let table = &mut bytemuck::cast_slice_mut(&mut table)[..entries * entry];
            K::arrange(self.token, powers, 8 * groups.size, f.row_digits(), table);
            let mut at = 0;
            for some in windows.chunks(K::CHOSEN) {
                for (index, window) in index.iter_mut().zip(some) {
                    for (lane, index) in index.0[..K::LANES].iter_mut().enumerate() {
                        let exponent = exponents.get(piece.start + lane).unwrap_or(&exponents[piece.start]);
                        *index = digit(exponent, window_bits, *window as usize);
                    }
                }
                let chosen = bytemuck::cast_slice_mut::<Line, u64>(&mut chosen);
                K::select(self.token, table, f.row_digits(), &index, chosen);
                for (window, chosen) in some.iter().zip(chosen.chunks_exact(entry)) {
                    if *window == windows[0] {
                        groups.get_mut(work[at])[..entry].copy_from_slice(chosen);
                        continue;
                    }
                    for _ in 0..window_bits {
                        self.square_group(&mut groups, work[at], work[1 - at]);
                        at = 1 - at;
                    }
                    let ([x], out, scratch) = groups.split([work[at]], work[1 - at]);
                    multiply::<K>(self.token, f, x, chosen, out, scratch);
                    at = 1 - at;
                }
            }
            self.scatter(groups.get(work[at]), self.rows(out, &piece));
        }
        [index, table, chosen].iter_mut().for_each(|lines| wipe(lines));
    }

    fn table(self: Arc<Self>, base: &[Line], bits: u32) -> Box<dyn Table> {
        Box::new(Comb::new(self, base, bits))
    }
}

impl<K: Kernel> VectorEngine<K> {
    /// Takes parts below 3n + 2 to parts below n: the first needs n taken off at most twice, which makes the second one
    /// at most 3n + 4, less than 5n.
    fn reduce_all(&self, group: &mut [u64]) {
        let (low, high) = group.split_at_mut(self.field.digits * K::LANES);
        for _ in 0..2 {
            let taken = self.reduce(low);
            if !high.is_empty() {
                // x0 + x1 n: what is taken from x0 is one more of x1.
                high.iter_mut().zip(&taken).for_each(|(digit, taken)| *digit += taken);
                self.carry(high);
            }
        }
        for _ in 0..if high.is_empty() { 0 } else { 4 } {
            self.reduce(high);
        }
    }

    /// Normalises digits.
    fn carry(&self, part: &mut [u64]) {
        let mask = (1u64 << K::DIGIT_BITS) - 1;
        let mut carry = [0u64; 8];
        for digit in part.chunks_exact_mut(K::LANES) {
            for lane in 0..K::LANES {
                let sum = digit[lane] + carry[lane];
                digit[lane] = sum & mask;
                carry[lane] = sum >> K::DIGIT_BITS;
            }
        }
    }
}

/// `out = x + y * n`, of which nothing is cut off, for x below 2^(64 words of n).
fn multiply_add(x: &[u64], y: &[u64], n: &[u64], out: &mut [u64]) {
    out.fill(0);
    let len = x.len().min(out.len());
    out[..len].copy_from_slice(&x[..len]);
    for (i, y) in y.iter().enumerate().take(out.len()) {
        let mut carry = 0;
        for (out, n) in out[i..].iter_mut().zip(n) {
            (*out, carry) = y.carrying_mul_add(*n, *out, carry);
        }
        // Nothing has come this far up yet.
        if let Some(out) = out.get_mut(i + n.len()) {
            *out = carry;
        }
    }
}

/// Eight by eight bits, rows and columns swapped (Warren, Hacker's Delight, section 7-3).
fn turned(mut x: u64) -> u64 {
    for (shift, mask) in
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
    {
        let differ = (x ^ x >> shift) & mask;
        x ^= differ ^ differ << shift;
    }
    x
}

/// Lim and Lee's comb: the exponent in [`Kernel::TEETH`] rows of `columns` bits, a column looked up at once; columns
/// are cut into blocks with a table each, so that there are as many squarings as a block has columns.
struct Comb<K: Kernel> {
    engine: Arc<VectorEngine<K>>,
    bits: u32,
    columns: usize,
    /// Columns of a block.
    block: usize,
    /// Words of a block's table.
    words: usize,
    tables: Lines,
}

impl<K: Kernel> Comb<K> {
    fn new(engine: Arc<VectorEngine<K>>, base: &[Line], bits: u32) -> Self {
        let (row, digits) = (engine.row_lines(), engine.field.row_digits());
        let teeth = K::TEETH as usize;
        let entries = 1usize << teeth;
        let columns = (bits as usize).div_ceil(teeth);
        let block = columns.min(SQUARINGS);
        let blocks = columns.div_ceil(block);
        // base ^ (2 ^ (tooth * columns + at * block)), for all teeth and blocks.
        let mut powers = vec![base.to_vec()];
        let mut exponents: Vec<usize> =
            (0..teeth).flat_map(|t| (0..blocks).map(move |b| t * columns + b * block)).collect();
        exponents.sort_unstable();
        for pair in exponents.windows(2) {
            let mut next = vec![Line([0; 8]); row];
            engine.square(&[powers.last().expect("not empty")], (pair[1] - pair[0]) as u32, &mut next);
            powers.push(next);
        }
        let power = |tooth: usize, b: usize| {
            let at = exponents.binary_search(&(tooth * columns + b * block)).expect("one of them");
            powers[at].as_slice()
        };
        // Products of every subset of the teeth, doubled a tooth at a time, all blocks together.
        let mut one = vec![Line([0; 8]); row];
        bytemuck::cast_slice_mut::<Line, u64>(&mut one)[..digits].copy_from_slice(&engine.field.one);
        let mut subsets: Vec<Vec<Line>> = (0..blocks).map(|_| one.clone()).collect();
        for tooth in 0..teeth {
            let half = 1usize << tooth;
            let mut made = vec![Line([0; 8]); blocks * half * row];
            let x: Vec<&[Line]> = subsets.iter().flat_map(|s| s.chunks_exact(row)).collect();
            let y: Vec<&[Line]> =
                (0..blocks).flat_map(|b| std::iter::repeat_n(power(tooth, b), half)).collect();
            engine.multiply(&x, &y, &mut made);
            for (subsets, made) in subsets.iter_mut().zip(made.chunks_exact(half * row)) {
                subsets.extend_from_slice(made);
            }
        }
        let words = entries * digits;
        let mut tables = Lines::zeroed((blocks * words).div_ceil(8));
        let all = bytemuck::cast_slice_mut::<Line, u64>(&mut tables);
        for (subsets, table) in subsets.iter().zip(all.chunks_exact_mut(words)) {
            let rows: Vec<&[u64]> = subsets.chunks_exact(row).map(bytemuck::cast_slice).collect();
            table.copy_from_slice(&K::lay_out(&rows, digits));
        }
        Self { engine, bits, columns, block, words, tables }
    }

    /// The bits of all columns, a tooth each, `step` bytes from one column to the next.
    fn indices(&self, exponent: &[u64], step: usize, out: &mut [u8]) {
        for first in (0..self.columns).step_by(8) {
            // Of each tooth the bits of eight columns.
            let mut square = 0;
            for tooth in 0..K::TEETH as usize {
                let at = tooth * self.columns + first;
                let left = (self.bits as usize).saturating_sub(at).min(8);
                let bits = bits_at(exponent, 8, at) & ((1 << left) - 1);
                square |= bits << (8 * tooth);
            }
            let columns = turned(square).to_le_bytes();
            for (out, column) in out[first * step..].iter_mut().step_by(step).zip(columns) {
                *out = column;
            }
        }
    }
}

impl<K: Kernel> Table for Comb<K> {
    fn power(&self, exponents: &[&[u64]], out: &mut [Line]) {
        let engine = &*self.engine;
        let (f, digits) = (&engine.field, engine.field.row_digits());
        let pieces: Vec<_> = engine.pieces(exponents.len()).collect();
        let groups = pieces.len().min(SHARED);
        let mut sums = engine.groups(2 * groups);
        let mut found = vec![Line([0; 8]); (groups * digits * K::LANES).div_ceil(8)];
        let together = groups * K::LANES;
        let mut indices = Zeroizing::new(vec![0u8; self.columns * together]);
        for pieces in pieces.chunks(SHARED) {
            let first = pieces[0].start;
            for lane in 0..pieces.len() * K::LANES {
                // Lanes that are left repeat another.
                let exponent = exponents.get(first + lane).unwrap_or(&exponents[first]);
                self.indices(exponent, together, &mut indices[lane..]);
            }
            let mut at = vec![0; pieces.len()];
            let mut begun = false;
            for step in (0..self.block).rev() {
                if step + 1 < self.block {
                    for (group, at) in at.iter_mut().enumerate() {
                        let from = 2 * group + *at;
                        *at = 1 - *at;
                        engine.square_group(&mut sums, from, 2 * group + *at);
                    }
                }
                let columns = (step..self.columns).step_by(self.block);
                let tables = bytemuck::cast_slice::<Line, u64>(&self.tables).chunks_exact(self.words);
                for (column, table) in columns.zip(tables) {
                    let index = &indices[column * together..][..together];
                    let found = bytemuck::cast_slice_mut::<Line, u64>(&mut found);
                    K::look_up(engine.token, table, digits, index, pieces.len(), found);
                    for (found, (group, at)) in
                        found.chunks_exact(digits * K::LANES).zip(at.iter_mut().enumerate())
                    {
                        if !begun {
                            sums.get_mut(2 * group)[..found.len()].copy_from_slice(found);
                            continue;
                        }
                        let from = 2 * group + *at;
                        *at = 1 - *at;
                        let ([x], out, scratch) = sums.split([from], 2 * group + *at);
                        multiply::<K>(engine.token, f, x, found, out, scratch);
                    }
                    begun = true;
                }
            }
            for (group, piece) in pieces.iter().enumerate() {
                engine.scatter(sums.get(2 * group + at[group]), engine.rows(out, piece));
            }
        }
        wipe(&mut found);
    }

    fn bytes(&self) -> usize {
        self.tables.len() * 64
    }
}
