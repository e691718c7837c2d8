//! The orders in which devices want a database's words.

use std::ops::Range;

use crate::contract::{Shape, Window};
use crate::{Word, Words, arch};

/// How a database's words lie in memory and on disk.
///
/// A layout cuts the database into *stripes* of consecutive rows (outputs, `n * q` of them); a stripe holds
/// everything that its outputs need, so stripes can be written, checked, mapped and computed one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Bytes in tiles of 16 rows by 64 columns, 1 KiB each; a stripe is 16 rows, tile after tile.
    ///
    /// ```text
    ///   tile:  for each group of four columns, for each of 16 rows: four bytes
    ///          [c0 c1 c2 c3 of row 0][... of row 1] ... [... of row 15]   <- 64 bytes, one AVX-512 register
    ///          [c4 c5 c6 c7 of row 0] ...                                     sixteen of them: one AMX tile
    /// ```
    ///
    /// Each 64-byte line is one operand of `vpdpbusd` with 16 outputs as lanes, and a whole tile is one
    /// operand of `tdpbsud`, so a stripe is read once, in order, by every kernel. Rows and columns are padded
    /// with zeros. For 8-bit words modulo 2^32 with c = d = 1.
    Tiles16x64,
    /// Word-aligned rows for every other shape: `[n, q][c][j, k][d]`, so that a row's channel is one
    /// contiguous block of `j * k` by `d` words. A stripe is one row.
    Rows,
    /// For shapes with a window: `[n, q][c][d / 32][j][32]`, so that the sums of 32 coefficients stay in registers while
    /// a row goes by in order. A stripe is one row.
    Lanes32,
    /// For polynomials whose values are many: `[n, q / 4][c][d / 8][j, k][4][8]`. A stripe is four rows, and a run of it eight
    /// coefficients of them: 32 words for each sub-row, so that a query's eight serve four outputs from one load. Rows are
    /// padded with zeros.
    ///
    /// ```text
    ///   run:  j = 0  [ 8 of row 0 ][ 8 of row 1 ][ 8 of row 2 ][ 8 of row 3 ]   * [ 8 of the query ]
    ///         j = 1  [ 8 of row 0 ] ...                                           tens of KiB in order, out of memory
    /// ```
    Lanes8x4,
}

/// Rows in a stripe of [`Layout::Tiles16x64`].
const TILE_ROWS: usize = 16;
/// Columns in a tile.
const TILE_COLUMNS: usize = 64;

/// Rows in a stripe of [`Layout::Lanes8x4`], and coefficients of each that lie together.
const FOUR: usize = 4;
const EIGHT: usize = 8;
/// Rows of [`Layout::Lanes8x4`] for each that it may be padded with.
const ROWS_PER_PAD: usize = 8;

impl Layout {
    /// The name that stands in a manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Layout::Tiles16x64 => "tiles16x64",
            Layout::Rows => "rows",
            Layout::Lanes32 => "lanes32",
            Layout::Lanes8x4 => "lanes8x4",
        }
    }

    /// The layout that CPU devices use for a shape.
    #[must_use]
    pub fn for_shape(shape: &Shape) -> Self {
        if shape.window.is_some() {
            return Layout::Lanes32;
        }
        let bytes_mod_2_32 = shape.database == Word::U8 && shape.moduli == [blindcore_math::Modulus::Pow2_32];
        if bytes_mod_2_32 && shape.d == 1 {
            return Layout::Tiles16x64;
        }
        // Few rows would be padding for the most part.
        let pads = shape.rows().next_multiple_of(FOUR) - shape.rows();
        if shape.d.is_multiple_of(FOUR * EIGHT) && shape.rows() >= ROWS_PER_PAD * pads {
            return Layout::Lanes8x4;
        }
        Layout::Rows
    }

    /// Rows in a stripe.
    #[must_use]
    pub const fn stripe_rows(self) -> usize {
        match self {
            Layout::Tiles16x64 => TILE_ROWS,
            Layout::Rows | Layout::Lanes32 => 1,
            Layout::Lanes8x4 => FOUR,
        }
    }

    /// Stripes in a database.
    #[must_use]
    pub fn stripes(self, shape: &Shape) -> usize {
        shape.rows().div_ceil(self.stripe_rows())
    }

    /// Bytes in a stripe.
    #[must_use]
    pub fn stripe_bytes(self, shape: &Shape) -> usize {
        match self {
            Layout::Tiles16x64 => TILE_ROWS * shape.depth().next_multiple_of(TILE_COLUMNS),
            Layout::Rows | Layout::Lanes32 | Layout::Lanes8x4 => {
                self.stripe_rows() * shape.c() * shape.depth() * shape.d * shape.database.bytes()
            }
        }
    }

    /// Packs a whole database from canonical order.
    ///
    /// # Panics
    /// The database does not fit the shape, or the shape not the layout.
    #[must_use]
    pub fn pack(self, shape: &Shape, database: &Words) -> Vec<u8> {
        let stripe_bytes = self.stripe_bytes(shape);
        let mut out = vec![0u8; stripe_bytes * self.stripes(shape)];
        for (stripe, out) in out.chunks_exact_mut(stripe_bytes).enumerate() {
            self.pack_stripe(shape, database, stripe, out);
        }
        out
    }

    fn pack_stripe(self, shape: &Shape, database: &Words, stripe: usize, out: &mut [u8]) {
        match (self, database) {
            (Layout::Tiles16x64, Words::U8(bytes)) => {
                let depth = shape.depth();
                let first = stripe * TILE_ROWS;
                let rows = TILE_ROWS.min(shape.rows() - first);
                let mut row_major = vec![0u8; rows * depth];
                for (r, row) in row_major.chunks_exact_mut(depth).enumerate() {
                    let (n, q) = ((first + r) / shape.q, (first + r) % shape.q);
                    for (jk, byte) in row.iter_mut().enumerate() {
                        *byte = bytes[shape.database_index([jk / shape.k, n, jk % shape.k, q, 0, 0])];
                    }
                }
                Self::pack_tiles(&row_major, depth, out);
            }
            (Layout::Tiles16x64, _) => panic!("tiles hold bytes"),
            (Layout::Rows | Layout::Lanes32 | Layout::Lanes8x4, words) => {
                let width = shape.database.bytes();
                let first = stripe * self.stripe_rows();
                let rows = first..shape.rows().min(first + self.stripe_rows());
                let start = stripe * self.stripe_bytes(shape);
                for (row, c) in rows.flat_map(|row| (0..shape.c()).map(move |c| (row, c))) {
                    for (jk, d) in (0..shape.depth()).flat_map(|jk| (0..shape.d).map(move |d| (jk, d))) {
                        let [n, q] = [row / shape.q, row % shape.q];
                        let word = words.get(shape.database_index([jk / shape.k, n, jk % shape.k, q, c, d]));
                        let at = self.word_position(shape, row, c, jk, d) - start;
                        out[at..at + width].copy_from_slice(&word.to_le_bytes()[..width]);
                    }
                }
            }
        }
    }

    /// Where the word of a row (n, q), a channel, a sub-row (j, k) and a coefficient lies in a whole database, in bytes.
    #[must_use]
    pub fn word_position(self, shape: &Shape, row: usize, c: usize, jk: usize, d: usize) -> usize {
        let depth = shape.depth();
        let word = match self {
            Layout::Tiles16x64 => return self.position(shape, row, jk),
            Layout::Rows => ((row * shape.c() + c) * depth + jk) * shape.d + d,
            Layout::Lanes32 => {
                let (run, lane) = (d / Window::LANES, d % Window::LANES);
                ((row * shape.c() + c) * (shape.d / Window::LANES) + run) * depth * Window::LANES
                    + jk * Window::LANES
                    + lane
            }
            Layout::Lanes8x4 => {
                let (stripe, row, run, lane) = (row / FOUR, row % FOUR, d / EIGHT, d % EIGHT);
                (((stripe * shape.c() + c) * (shape.d / EIGHT) + run) * depth + jk) * FOUR * EIGHT
                    + row * EIGHT
                    + lane
            }
        };
        word * shape.database.bytes()
    }

    /// Packs up to 16 rows of `columns` bytes, row-major, into one stripe of [`Layout::Tiles16x64`], which
    /// must be zero where rows or columns are missing.
    ///
    /// # Panics
    /// More than 16 rows, or a stripe of another size.
    pub(crate) fn pack_tiles(rows: &[u8], columns: usize, stripe: &mut [u8]) {
        assert!(rows.len() <= TILE_ROWS * columns, "a stripe holds 16 rows");
        assert_eq!(stripe.len(), TILE_ROWS * columns.next_multiple_of(TILE_COLUMNS));
        for (r, row) in rows.chunks_exact(columns).enumerate() {
            let groups = stripe.chunks_exact_mut(TILE_COLUMNS);
            for (group, four) in groups.zip(row.chunks(4)) {
                group[4 * r..4 * r + four.len()].copy_from_slice(four);
            }
        }
    }

    /// Packs columns that lie one after another, `height` bytes each, upright into stripes of
    /// [`Layout::Tiles16x64`]: byte `from.start + i` of each column goes to row `row + i` of the first stripe and
    /// those after it. What is not written stays as it was.
    ///
    /// # Panics
    /// The layout is another, `from` reaches over the height, or the rows over the stripes, or the columns over a stripe.
    pub fn pack_columns(
        self,
        columns: &[u8],
        height: usize,
        from: Range<usize>,
        stripes: &mut [u8],
        stripe_bytes: usize,
        row: usize,
    ) {
        assert_eq!(self, Layout::Tiles16x64, "upright columns are for tiles");
        assert!(from.end <= height && from.start <= from.end, "columns are {height} bytes high");
        let mut four = columns.chunks_exact(4 * height);
        for (group, four) in four.by_ref().enumerate() {
            let (ab, cd) = four.split_at(2 * height);
            let ((a, b), (c, d)) = (ab.split_at(height), cd.split_at(height));
            let mut at = from.start;
            while at < from.end {
                let (stripe, start) = split(row + at - from.start);
                let rows = (TILE_ROWS - start).min(from.end - at);
                let line = &mut stripes[stripe * stripe_bytes + group * TILE_COLUMNS..][..TILE_COLUMNS];
                let parts = [a, b, c, d].map(|column| &column[at..at + rows]);
                if let [Ok(a), Ok(b), Ok(c), Ok(d)] = parts.map(TryInto::try_into) {
                    line.copy_from_slice(&arch::weave([a, b, c, d]));
                } else {
                    let padded = parts.map(|part| {
                        let mut padded = [0; TILE_ROWS];
                        padded[start..start + rows].copy_from_slice(part);
                        padded
                    });
                    let here = 4 * start..4 * (start + rows);
                    line[here.clone()].copy_from_slice(&arch::weave(padded.each_ref())[here]);
                }
                at += rows;
            }
        }
        let first = columns.len() / (4 * height) * 4;
        for (i, column) in four.remainder().chunks_exact(height).enumerate() {
            for (j, byte) in column[from.clone()].iter().enumerate() {
                let (stripe, row) = split(row + j);
                stripes[stripe * stripe_bytes + Self::tile_index(row, first + i)] = *byte;
            }
        }
    }

    /// Where the word of a row and a column lies in a whole database, in bytes. The shape has one modulus, and d = 1.
    #[must_use]
    pub fn position(self, shape: &Shape, row: usize, column: usize) -> usize {
        let stripe = row / self.stripe_rows() * self.stripe_bytes(shape);
        match self {
            Layout::Tiles16x64 => stripe + Self::tile_index(row % TILE_ROWS, column),
            // A byte has a column only where d = 1, and runs of coefficients have d of 32 and more.
            Layout::Rows | Layout::Lanes32 | Layout::Lanes8x4 => stripe + column * shape.database.bytes(),
        }
    }

    /// Zeroes the rows of a stripe from `row` on.
    ///
    /// # Panics
    /// Only some rows of [`Layout::Lanes8x4`], which lie among each other.
    pub fn clear_rows(self, stripe: &mut [u8], row: usize) {
        match self {
            Layout::Tiles16x64 => {
                stripe.chunks_exact_mut(TILE_COLUMNS).for_each(|line| line[4 * row..].fill(0));
            }
            _ if row == 0 => stripe.fill(0),
            Layout::Rows | Layout::Lanes32 => {}
            Layout::Lanes8x4 => assert!(row >= FOUR, "its rows are written together"),
        }
    }

    /// Where byte (`row` of the stripe, `column`) lies in a stripe of [`Layout::Tiles16x64`].
    #[must_use]
    pub fn tile_index(row: usize, column: usize) -> usize {
        (column / 4) * TILE_COLUMNS + 4 * row + column % 4
    }
}

/// The stripe of a row and where the row stands in it.
fn split(row: usize) -> (usize, usize) {
    (row / TILE_ROWS, row % TILE_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindcore_math::Modulus;

    #[test]
    fn four_rows_lie_in_runs_of_eight_coefficients() {
        let moduli = vec![Modulus::prime(65537).unwrap(), Modulus::prime(12289).unwrap()];
        let shape = Shape { n: 15, q: 2, j: 3, k: 2, d: 64, ..Shape::new(Word::U40, moduli) };
        let layout = Layout::for_shape(&shape);
        assert_eq!((layout, layout.stripes(&shape)), (Layout::Lanes8x4, 8));
        let database = Words::from_fn(Word::U64, shape.database_len(), |i| i as u64 % 12000 + 1);
        let packed = layout.pack(&shape, &database);
        let mut words = packed.as_chunks::<5>().0.iter();
        for stripe in 0..8 {
            for (c, run) in [0, 1].into_iter().flat_map(|c| (0..8).map(move |run| (c, run))) {
                for (jk, row) in (0..6).flat_map(|jk| (0..4).map(move |row| (jk, 4 * stripe + row))) {
                    for d in 8 * run..8 * run + 8 {
                        let there = row < 30;
                        let at = [jk / 2, row / 2, jk % 2, row % 2, c, d];
                        let want = if there { database.get(shape.database_index(at)) } else { 0 };
                        assert_eq!(words.next(), want.to_le_bytes().first_chunk());
                    }
                }
            }
        }
        assert_eq!(words.next(), None);
        // Rows that would be padding for the most part, and polynomials of other lengths.
        for other in [Shape { n: 3, q: 1, ..shape.clone() }, Shape { d: 40, ..shape }] {
            assert_eq!(Layout::for_shape(&other), Layout::Rows);
        }
    }

    #[test]
    fn tiles_hold_each_byte_where_tile_index_says() {
        let shape = Shape { n: 19, j: 70, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) };
        let database = Words::from_fn(Word::U8, shape.database_len(), |i| (i * 31 % 251) as u64 + 1);
        let packed = Layout::Tiles16x64.pack(&shape, &database);
        let stripe_bytes = Layout::Tiles16x64.stripe_bytes(&shape);
        assert_eq!(stripe_bytes, 16 * 128);
        let mut seen = 0;
        for n in 0..19 {
            for j in 0..70 {
                let at = (n / 16) * stripe_bytes + Layout::tile_index(n % 16, j);
                assert_eq!(Layout::Tiles16x64.position(&shape, n, j), at);
                assert_eq!(u64::from(packed[at]), database.get(shape.database_index([j, n, 0, 0, 0, 0])));
                seen += 1;
            }
        }
        assert_eq!(packed.iter().filter(|b| **b != 0).count(), seen, "padding is zero");
        let mut stripe = packed[..stripe_bytes].to_vec();
        Layout::Tiles16x64.clear_rows(&mut stripe, 5);
        let there = |row: usize| (0..70).filter(|j| stripe[Layout::tile_index(row, *j)] != 0).count();
        assert!((0..16).all(|row| there(row) == if row < 5 { 70 } else { 0 }));
    }

    #[test]
    fn columns_stand_upright_wherever_they_start() {
        for (columns, height) in [(1, 1), (5, 3), (67, 40), (64, 16), (130, 100)] {
            let cells: Vec<u8> = (0..columns * height).map(|i| (i * 31 % 251) as u8 + 1).collect();
            let stripe_bytes = TILE_ROWS * usize::next_multiple_of(columns, TILE_COLUMNS);
            for row in [0, 1, 15, 16, 37] {
                for from in [0..height, 0..height / 2, height / 3..height, height..height] {
                    let mut stripes = vec![0; stripe_bytes * (row + height).div_ceil(TILE_ROWS)];
                    Layout::Tiles16x64.pack_columns(
                        &cells,
                        height,
                        from.clone(),
                        &mut stripes,
                        stripe_bytes,
                        row,
                    );
                    for c in 0..columns {
                        for (i, at) in from.clone().enumerate() {
                            let (stripe, row) = split(row + i);
                            let found = &mut stripes[stripe * stripe_bytes + Layout::tile_index(row, c)];
                            assert_eq!(
                                std::mem::take(found),
                                cells[c * height + at],
                                "{columns} {height} {row}"
                            );
                        }
                    }
                    assert!(stripes.iter().all(|b| *b == 0), "nothing else is written");
                }
            }
        }
    }
}
