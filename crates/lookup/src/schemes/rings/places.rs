//! Where the slots of a table lie among stored polynomials.

use super::tree::{self, HEIGHT};
use super::{EIGHT_LANES, LANE_BITS};
use crate::keyword::{columns_for, fullest};
use crate::{Geometry, constant_time};

/// Where the slots of a table lie among the polynomials.
///
/// ```text
///   polynomial, 2048 coefficients        output = a column of polynomials, one for each row; a query's first dimension picks a row
///   ┌ place 0 ┬ place 1 ┬ ...
///
///   column = coarse place and row        coarse places are 2048 / coarse coefficients apart
///   group  = output and fine place       fine places are a slot's width apart, within a coarse one
/// ```
///
/// A query's monomial turns a polynomial by multiples of 2^h coefficients at no cost, and only such turns are left to it: so the
/// columns of a group, of which a key takes four, differ by rows and by coarse places, and their sum lies where each of them does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schemes) struct Places {
    /// d: coefficients of a polynomial.
    pub(in crate::schemes) degree: usize,
    /// Coefficients of a part of a slot.
    pub(in crate::schemes) width: usize,
    /// Polynomials that a slot takes a part of each.
    pub(in crate::schemes) parts: usize,
    /// Bytes of each part but the last, which may be shorter.
    pub(in crate::schemes) part_bytes: usize,
    /// Coarse places: columns of one row.
    pub(in crate::schemes) coarse: usize,
    /// Places within them: groups of one output.
    pub(in crate::schemes) fine: usize,
    /// Rows: polynomials of an output.
    pub(in crate::schemes) rows: usize,
    /// Outputs, each in as many parts as a slot.
    pub(in crate::schemes) outputs: usize,
    /// Leaves that a query is expanded to: the rows, and what the scheme asks for beside them.
    pub(in crate::schemes) leaves: usize,
    /// h: levels of the tree.
    pub(in crate::schemes) height: u32,
}

/// Where a column's slot lies: what a client knows and the server doesn't.
#[derive(Clone, Copy)]
pub(in crate::schemes) struct Place {
    pub(in crate::schemes) row: u32,
    pub(in crate::schemes) coarse: u32,
    pub(in crate::schemes) output: u32,
    pub(in crate::schemes) fine: u32,
}

/// The most coarse places: a tree of the most levels turns by no less than what lies between them.
pub(in crate::schemes) const MAX_COARSE: usize = tree::DEGREE >> HEIGHT;

impl Places {
    /// Of a geometry, with a power of two of coarse places, up to [`MAX_COARSE`], each of which has room for a part.
    ///
    /// `leaves` says how many leaves so many rows and outputs take.
    pub(in crate::schemes) fn new(
        geometry: &Geometry,
        coarse: usize,
        leaves: impl FnOnce(usize, usize) -> usize,
    ) -> Self {
        Self::within(tree::DEGREE, HEIGHT, geometry, coarse, leaves)
    }

    /// The same for polynomials of another degree, and trees of up to `tallest` levels.
    pub(in crate::schemes) fn within(
        degree: usize,
        tallest: u32,
        geometry: &Geometry,
        coarse: usize,
        leaves: impl FnOnce(usize, usize) -> usize,
    ) -> Self {
        let Geometry { record_bytes, groups, columns } = *geometry;
        let (parts, part_bytes, width) = cut(degree, record_bytes);
        let fine = degree / coarse / width;
        let (rows, outputs) = (columns.div_ceil(coarse), groups.div_ceil(fine));
        let leaves = leaves(rows, outputs);
        // Coarse places are as far apart as the tallest tree turns.
        let height = if coarse == 1 { levels(leaves).min(tallest) } else { tallest };
        Self { degree, width, parts, part_bytes, coarse, fine, rows, outputs, leaves, height }
    }

    /// Ciphertexts of a query.
    pub(in crate::schemes) fn ciphertexts(&self) -> usize {
        self.leaves.div_ceil(1 << self.height)
    }

    /// Leaves of one of them.
    pub(in crate::schemes) fn leaves_of(&self, ciphertext: usize) -> usize {
        self.leaves.saturating_sub(ciphertext << self.height).min(1 << self.height)
    }

    /// Coefficients of bodies that a query has: those that lead to a leaf.
    pub(in crate::schemes) fn asked(&self) -> usize {
        self.leaves << (self.degree.ilog2() - self.height)
    }

    /// Polynomials of a database: outputs and parts.
    pub(in crate::schemes) fn polynomials(&self) -> usize {
        self.outputs * self.parts
    }

    /// The first coefficient of a place.
    pub(in crate::schemes) fn position(&self, coarse: usize, fine: usize) -> usize {
        coarse * (self.degree / self.coarse) + fine * self.width
    }

    /// Where a fine place begins in what is kept of a body, after the query's monomial has turned it.
    pub(in crate::schemes) fn offset(&self, fine: usize) -> usize {
        (fine * self.width) & ((1 << self.height) - 1)
    }

    /// Coefficients that are kept of a body: whatever the place, its own are among them.
    pub(in crate::schemes) fn window(&self) -> usize {
        (0..self.fine).map(|fine| self.offset(fine) + self.width).max().unwrap_or(self.width)
    }

    /// The place of a column and a group, in constant time.
    pub(in crate::schemes) fn place(&self, column: u32, group: u32) -> Place {
        let (coarse, row) = constant_time::divide(column.into(), self.rows as u64);
        let (output, fine) = constant_time::divide(group.into(), self.fine as u64);
        Place { row: row as u32, coarse: coarse as u32, output: output as u32, fine: fine as u32 }
    }

    /// The monomial that brings a place within 2^h coefficients of its polynomial's start, in constant time: t for the factor
    /// X^(t 2^h), and all ones where its sign is a minus. X^d = -1.
    pub(in crate::schemes) fn turn(&self, place: &Place) -> (u32, u64) {
        let turns = (self.degree >> self.height) as u32;
        let position = self.position(0, 1) as u32 * place.fine + self.position(1, 0) as u32 * place.coarse;
        let turn = position >> self.height;
        let minus = !(constant_time::equal_mask(turn, 0) as i32 as u64);
        (turns.wrapping_sub(turn) & (turns - 1), minus)
    }
}

/// Levels of a binary tree.
pub(in crate::schemes) fn levels(leaves: usize) -> u32 {
    leaves.next_power_of_two().ilog2()
}

/// Coefficients that a part of a slot takes.
pub(in crate::schemes) fn width(record_bytes: usize) -> usize {
    cut(tree::DEGREE, record_bytes).2
}

/// The groups that cost least, of those whose geometry `fits`, for this many records in slots of this many bytes; as many as there are
/// records where none does.
pub(in crate::schemes) fn groups(
    records: u64,
    slot_bytes: usize,
    keyed: bool,
    fits: impl Fn(&Geometry) -> bool,
    cost: impl Fn(&Geometry) -> f64,
) -> u64 {
    // A sixteenth more each time: the least number that fits is among the first, and few more are worth a look.
    let next = |groups: &u64| Some(groups + groups.div_ceil(16)).filter(|next| *next <= records);
    cheapest(std::iter::successors(Some(1u64), next), records, slot_bytes, keyed, fits, cost)
}

/// The same of some numbers of groups, and of as many as there are records.
pub(in crate::schemes) fn cheapest(
    numbers: impl Iterator<Item = u64>,
    records: u64,
    slot_bytes: usize,
    keyed: bool,
    fits: impl Fn(&Geometry) -> bool,
    cost: impl Fn(&Geometry) -> f64,
) -> u64 {
    let cost = |groups: u64| {
        let count = usize::try_from(groups).ok()?;
        let columns = if keyed {
            columns_for(fullest(records, count))
        } else {
            usize::try_from(records.div_ceil(groups)).ok()?
        };
        let geometry = Geometry { record_bytes: slot_bytes, groups: count, columns };
        // The fullest group may turn out to be fuller, and not every limit is one on more columns.
        let spare = if keyed { columns / 16 } else { 0 };
        let fits = [0, spare].iter().all(|spare| fits(&Geometry { columns: columns + spare, ..geometry }));
        fits.then(|| (cost(&geometry), groups))
    };
    let costs = numbers.chain([records]).filter_map(cost);
    costs.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(records, |(_, groups)| groups).max(1)
}

/// Parts of a slot, the bytes of each, and its coefficients.
pub(in crate::schemes) fn cut(degree: usize, record_bytes: usize) -> (usize, usize, usize) {
    let parts = record_bytes.div_ceil(degree / 8 * EIGHT_LANES);
    if parts == 1 {
        return (1, record_bytes, (8 * record_bytes).div_ceil(LANE_BITS as usize));
    }
    // Whole lanes, so that a lane never lies in two parts.
    let bytes = record_bytes.div_ceil(parts).next_multiple_of(EIGHT_LANES);
    (record_bytes.div_ceil(bytes), bytes, bytes / EIGHT_LANES * 8)
}

#[cfg(test)]
mod tests {
    use super::tree::DEGREE;
    use super::*;

    #[test]
    fn slots_lie_apart_and_within_their_polynomial() {
        for (record_bytes, groups, columns) in [
            (1, 1, 1),
            (1, 5000, 200),
            (64, 100, 300),
            (256, 300, 200),
            (261, 300, 1500),
            (4096, 9, 200),
            (2816, 3, 9),
        ] {
            let geometry = Geometry { record_bytes, groups, columns };
            for coarse in [1, 2, 4, 8].into_iter().filter(|coarse| width(record_bytes) <= DEGREE / coarse) {
                let places = Places::new(&geometry, coarse, |rows, outputs| rows + outputs);
                let mut taken = vec![false; DEGREE];
                for (coarse, fine) in
                    (0..coarse).flat_map(|coarse| (0..places.fine).map(move |fine| (coarse, fine)))
                {
                    let at = places.position(coarse, fine);
                    let here = &mut taken[at..at + places.width];
                    assert!(here.iter().all(|taken| !taken), "{places:?}");
                    here.fill(true);
                    // Turned by multiples of 2^h it lies where it is looked for.
                    assert_eq!(at & ((1 << places.height) - 1), places.offset(fine));
                    let place = Place { row: 0, coarse: coarse as u32, output: 0, fine: fine as u32 };
                    let (turn, minus) = places.turn(&place);
                    let to = at + ((turn as usize) << places.height);
                    assert_eq!((to % DEGREE, minus == 0), (places.offset(fine), to < DEGREE), "X^d = -1");
                }
                assert!(places.window() <= DEGREE);
                assert!(places.rows * coarse >= columns && places.outputs * places.fine >= groups);
                assert!(places.parts * places.part_bytes >= record_bytes);
                assert!(8 * places.part_bytes <= places.width * LANE_BITS as usize);
                let each = (0..places.ciphertexts()).map(|i| places.leaves_of(i));
                assert_eq!(each.clone().sum::<usize>(), places.leaves);
                assert!(each.clone().all(|leaves| (1..=1 << places.height).contains(&leaves)));
            }
        }
    }
}
