//! What is made of products: batches of rows, conversions, powers.

use std::marker::PhantomData;
use std::sync::Arc;

use blindcore_accel::Line;
use zeroize::Zeroize;

use super::Kernel;
use super::field::{Field, digit};
use super::scan::{PART, enter, multiply, square};
use crate::bigmod::{Engine, Table, WINDOW};

/// Groups that share one pass over a fixed base's tables.
const SHARED: usize = 8;
/// Squarings of a power of a fixed base: its tables take as much memory as there are columns over this.
const SQUARINGS: usize = 16;

pub(super) struct VectorEngine<K> {
    field: Field,
    kernel: PhantomData<K>,
}

/// Memory of groups, wiped.
struct Groups {
    lines: Vec<Line>,
    words: usize,
}

impl Groups {
    /// Pointers come from the vector's own and from no reference, so that those to several groups may be used together.
    fn get(&self, at: usize) -> *const u64 {
        assert!((at + 1) * self.words <= 8 * self.lines.len());
        self.lines.as_ptr().cast::<u64>().wrapping_add(at * self.words)
    }

    fn get_mut(&mut self, at: usize) -> *mut u64 {
        assert!((at + 1) * self.words <= 8 * self.lines.len());
        self.lines.as_mut_ptr().cast::<u64>().wrapping_add(at * self.words)
    }

    fn slice(&mut self, at: usize) -> &mut [u64] {
        &mut bytemuck::cast_slice_mut::<Line, u64>(&mut self.lines)[at * self.words..][..self.words]
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.lines.zeroize();
    }
}

impl<K: Kernel> VectorEngine<K> {
    /// For a field of the kernel's digits and blocks.
    pub(super) fn new(field: Field) -> Self {
        assert!(field.digit_bits == K::DIGIT_BITS && field.digits.is_multiple_of(K::TILE));
        assert!(field.digits * K::LANES <= PART, "a part of {} digits", field.digits);
        Self { field, kernel: PhantomData }
    }

    /// `count` groups, each with room for whole lines of every lane.
    fn groups(&self, count: usize) -> Groups {
        let words = self.field.row_lines() * 8 * K::LANES;
        Groups { lines: vec![Line([0; 8]); (count * words).div_ceil(8)], words }
    }

    /// The same residue in every lane.
    fn splat(&self, digits: &[u64], out: &mut [u64]) {
        for (out, digit) in out.chunks_exact_mut(K::LANES).zip(digits) {
            out.fill(*digit);
        }
    }

    /// As many rows as there are, at most one a lane, into a group; lanes that are left repeat the first.
    fn gather(&self, rows: &[&[Line]], out: &mut [u64]) {
        let row = |lane: usize| rows.get(lane).unwrap_or(&rows[0]).as_ptr().cast::<u64>();
        let rows: Vec<*const u64> = (0..K::LANES).map(row).collect();
        // SAFETY: rows have `row_lines` lines, the group room for them.
        unsafe { K::gather(&rows, self.field.row_lines(), out.as_mut_ptr()) };
    }

    /// A group into at most one row a lane.
    fn scatter(&self, group: *const u64, out: &mut [Line]) {
        let rows: Vec<*mut u64> =
            out.chunks_exact_mut(self.field.row_lines()).map(|row| row.as_mut_ptr().cast()).collect();
        // SAFETY: as in `gather`; callers pass a group.
        unsafe { K::scatter(group, self.field.row_lines(), &rows) };
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
        K::FORM
    }

    fn row_lines(&self) -> usize {
        self.field.row_lines()
    }

    fn lanes(&self) -> usize {
        K::LANES
    }

    fn enter(&self, numbers: &[&[u64]], out: &mut [Line]) {
        let (f, part) = (&self.field, self.field.digits * K::LANES);
        let mut groups = self.groups(5);
        for (at, entry) in f.entry.iter().enumerate() {
            self.splat(entry, groups.slice(3 + at));
        }
        for piece in self.pieces(numbers.len()) {
            for half in 0..f.parts {
                let group = groups.slice(half);
                for d in 0..f.digits {
                    for (lane, number) in numbers[piece.clone()].iter().enumerate() {
                        group[d * K::LANES + lane] = digit(number, K::DIGIT_BITS, half * f.digits + d);
                    }
                }
            }
            let x = [groups.get(0), groups.get(f.parts - 1)];
            let y = [groups.get(3), groups.get(4)];
            // SAFETY: groups of this field; the third is none of the others.
            unsafe { enter::<K>(f, x, y, groups.get_mut(2)) };
            self.reduce_all(&mut groups.slice(2)[..f.parts * part]);
            self.scatter(groups.get(2), self.rows(out, &piece));
        }
    }

    fn leave(&self, rows: &[&[Line]], out: &mut [u64]) {
        let (f, part) = (&self.field, self.field.digits * K::LANES);
        let mut groups = self.groups(3);
        let mut one = vec![0; f.row_digits()];
        one[0] = 1;
        self.splat(&one, groups.slice(0));
        let mut digits = vec![0u64; f.digits];
        for piece in self.pieces(rows.len()) {
            self.gather(&rows[piece.clone()], groups.slice(1));
            // SAFETY: groups of this field, all different.
            unsafe { multiply::<K>(f, groups.get(1), groups.get(0), groups.get_mut(2)) };
            let group = &mut groups.slice(2)[..f.parts * part];
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
            self.gather(&x[piece.clone()], groups.slice(0));
            self.gather(&y[piece.clone()], groups.slice(1));
            let next = piece.end..(piece.end + K::LANES).min(x.len());
            x[next.clone()].iter().chain(&y[next]).copied().flatten().for_each(K::fetch);
            // SAFETY: groups of this field, all different.
            unsafe { multiply::<K>(&self.field, groups.get(0), groups.get(1), groups.get_mut(2)) };
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
            self.gather(&factors(0), groups.slice(at));
            for i in 1..longest {
                self.gather(&factors(i), groups.slice(2));
                lists.iter().filter_map(|list| list.get(i + 1)).for_each(|row| row.iter().for_each(K::fetch));
                // SAFETY: groups of this field, all different.
                unsafe { multiply::<K>(&self.field, groups.get(at), groups.get(2), groups.get_mut(1 - at)) };
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
            self.gather(&x, groups.slice(0));
            self.gather(&y[piece.clone()], groups.slice(1));
            let next = piece.end..(piece.end + K::LANES).min(slots.len());
            for (slot, y) in slots[next.clone()].iter().zip(&y[next]) {
                rows[slot * row..][..row].iter().chain(*y).for_each(K::fetch);
            }
            // SAFETY: groups of this field, all different.
            unsafe { multiply::<K>(&self.field, groups.get(0), groups.get(1), groups.get_mut(2)) };
            // All from one borrow: another would end those before it.
            let (count, base) = (rows.len(), rows.as_mut_ptr());
            let place = |slot: &usize| {
                assert!((slot + 1) * row <= count);
                base.wrapping_add(slot * row).cast()
            };
            let rows: Vec<*mut u64> = slots[piece].iter().map(place).collect();
            // SAFETY: a group, and whole rows, all different.
            unsafe { K::scatter(groups.get(2), row, &rows) };
        }
    }

    fn multiply_times(&self, x: &[&[Line]], y: &[&[Line]], times: u32, out: &mut [Line]) {
        let mut groups = self.groups(3);
        for piece in self.pieces(x.len()) {
            let mut at = 0;
            self.gather(&x[piece.clone()], groups.slice(0));
            self.gather(&y[piece.clone()], groups.slice(2));
            for _ in 0..times {
                // SAFETY: groups of this field, all different.
                unsafe { multiply::<K>(&self.field, groups.get(at), groups.get(2), groups.get_mut(1 - at)) };
                at = 1 - at;
            }
            self.scatter(groups.get(at), self.rows(out, &piece));
        }
    }

    fn limit(&self) -> Option<(f64, f64)> {
        const ROUNDS: u64 = 2_000_000;
        let mut out = Line([0; 8]);
        let start = std::time::Instant::now();
        // SAFETY: the engine's features are there; a line is a vector or two.
        unsafe { K::peak(std::hint::black_box(ROUNDS), std::hint::black_box(12_345), out.0.as_mut_ptr()) };
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
            self.gather(&x[piece.clone()], groups.slice(0));
            for _ in 0..times {
                // SAFETY: groups of this field, two different ones.
                unsafe { square::<K>(&self.field, groups.get(at), groups.get_mut(1 - at)) };
                at = 1 - at;
            }
            self.scatter(groups.get(at), self.rows(out, &piece));
        }
    }

    fn power(&self, x: &[&[Line]], exponents: &[&[u64]], bits: u32, out: &mut [Line]) {
        const ENTRIES: usize = 1 << WINDOW;
        let f = &self.field;
        // Powers of x from 0 on, then one that is chosen and two to work on.
        let mut groups = self.groups(ENTRIES + 3);
        let (chosen, work) = (ENTRIES, [ENTRIES + 1, ENTRIES + 2]);
        // A table's groups lie as close as `select` asks.
        let entry = f.row_digits() * K::LANES;
        let mut table = vec![Line([0; 8]); (ENTRIES * entry).div_ceil(8)];
        let mut index = Line([0; 8]);
        for piece in self.pieces(x.len()) {
            self.splat(&f.one, groups.slice(0));
            self.gather(&x[piece.clone()], groups.slice(1));
            for e in 2..ENTRIES {
                // SAFETY: groups of this field, all different.
                unsafe {
                    if e % 2 == 0 {
                        square::<K>(f, groups.get(e / 2), groups.get_mut(e));
                    } else {
                        multiply::<K>(f, groups.get(e - 1), groups.get(1), groups.get_mut(e));
                    }
                }
            }
            for e in 0..ENTRIES {
                bytemuck::cast_slice_mut::<Line, u64>(&mut table)[e * entry..][..entry]
                    .copy_from_slice(&groups.slice(e)[..entry]);
            }
            let mut at = 0;
            let windows = bits.div_ceil(WINDOW);
            for window in (0..windows).rev() {
                for lane in 0..K::LANES {
                    let exponent = exponents.get(piece.start + lane).unwrap_or(&exponents[piece.start]);
                    index.0[lane] = digit(exponent, WINDOW, window as usize);
                }
                // SAFETY: a table of as many groups; groups of this field, all different.
                unsafe {
                    K::select(
                        table.as_ptr().cast(),
                        ENTRIES,
                        f.row_digits(),
                        index.0.as_ptr(),
                        if window + 1 == windows { groups.get_mut(work[at]) } else { groups.get_mut(chosen) },
                    );
                    if window + 1 < windows {
                        for _ in 0..WINDOW {
                            square::<K>(f, groups.get(work[at]), groups.get_mut(work[1 - at]));
                            at = 1 - at;
                        }
                        multiply::<K>(
                            f,
                            groups.get(work[at]),
                            groups.get(chosen),
                            groups.get_mut(work[1 - at]),
                        );
                        at = 1 - at;
                    }
                }
            }
            self.scatter(groups.get(work[at]), self.rows(out, &piece));
        }
        index.zeroize();
        table.zeroize();
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

/// Lim and Lee's comb: the exponent in [`Kernel::TEETH`] rows of `columns` bits, a column looked up at once; columns
/// are cut into blocks with a table each, so that there are as many squarings as a block has columns.
struct Comb<K> {
    engine: Arc<VectorEngine<K>>,
    bits: u32,
    columns: usize,
    /// Columns of a block.
    block: usize,
    /// Words of a block's table.
    words: usize,
    tables: Vec<Line>,
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
        let mut tables = vec![Line([0; 8]); (blocks * words).div_ceil(8)];
        let all = bytemuck::cast_slice_mut::<Line, u64>(&mut tables);
        for (subsets, table) in subsets.iter().zip(all.chunks_exact_mut(words)) {
            let rows: Vec<&[u64]> = subsets.chunks_exact(row).map(bytemuck::cast_slice).collect();
            table.copy_from_slice(&K::lay_out(&rows, digits));
        }
        Self { engine, bits, columns, block, words, tables }
    }

    /// The bits of a column, a tooth each.
    fn column(&self, exponent: &[u64], column: usize) -> u64 {
        (0..K::TEETH as usize).fold(0, |index, tooth| {
            let at = tooth * self.columns + column;
            let bit = if at < self.bits as usize { digit(exponent, 1, at) } else { 0 };
            index | bit << tooth
        })
    }
}

impl<K: Kernel> Table for Comb<K> {
    fn power(&self, exponents: &[&[u64]], out: &mut [Line]) {
        let engine = &*self.engine;
        let (f, digits) = (&engine.field, engine.field.row_digits());
        let mut sums = engine.groups(2 * SHARED);
        let mut found = vec![Line([0; 8]); (SHARED * digits * K::LANES).div_ceil(8)];
        let mut index = vec![Line([0; 8]); SHARED];
        let pieces: Vec<_> = engine.pieces(exponents.len()).collect();
        for pieces in pieces.chunks(SHARED) {
            for group in 0..pieces.len() {
                engine.splat(&f.one, sums.slice(2 * group));
            }
            let mut at = vec![0; pieces.len()];
            for step in (0..self.block).rev() {
                if step + 1 < self.block {
                    for (group, at) in at.iter_mut().enumerate() {
                        let from = 2 * group + *at;
                        *at = 1 - *at;
                        // SAFETY: groups of this field, two different ones.
                        unsafe { square::<K>(f, sums.get(from), sums.get_mut(2 * group + *at)) };
                    }
                }
                let columns = (step..self.columns).step_by(self.block);
                let tables = bytemuck::cast_slice::<Line, u64>(&self.tables).chunks_exact(self.words);
                for (column, table) in columns.zip(tables) {
                    let indices = bytemuck::cast_slice_mut::<Line, u64>(&mut index);
                    for (group, piece) in pieces.iter().enumerate() {
                        for lane in 0..K::LANES {
                            let exponent =
                                exponents.get(piece.start + lane).unwrap_or(&exponents[piece.start]);
                            indices[group * K::LANES + lane] = self.column(exponent, column);
                        }
                    }
                    // SAFETY: a table of this field; as many indices and groups as said.
                    unsafe {
                        let (index, found) = (index.as_ptr().cast(), found.as_mut_ptr().cast());
                        K::look_up(table.as_ptr(), digits, index, pieces.len(), found);
                    }
                    for (group, at) in at.iter_mut().enumerate() {
                        let from = 2 * group + *at;
                        *at = 1 - *at;
                        let found = &bytemuck::cast_slice::<Line, u64>(&found)[group * digits * K::LANES..];
                        // SAFETY: groups of this field, all different; what was found has a group's digits.
                        unsafe {
                            multiply::<K>(f, sums.get(from), found.as_ptr(), sums.get_mut(2 * group + *at))
                        };
                    }
                }
            }
            for (group, piece) in pieces.iter().enumerate() {
                engine.scatter(sums.get(2 * group + at[group]), engine.rows(out, piece));
            }
        }
        found.zeroize();
        index.zeroize();
    }

    fn bytes(&self) -> usize {
        self.tables.len() * 64
    }
}
