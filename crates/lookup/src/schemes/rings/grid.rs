//! Where the slots of a table lie among stored polynomials.
//!
//! ```text
//!   polynomial of d coefficients         output = a column of polynomials, one for each row; a query's first dimension picks a row
//!   ┌ place 0 ┬ place 1 ┬ ...
//!
//!   dense:   column = row,                        group = output and place
//!   turned:  column = row and a coarse place, 2^h coefficients apart;  group = output and a place within them
//! ```
//!
//! A query's monomial turns a polynomial by multiples of 2^h coefficients at no cost, and only such turns are left to it: so the
//! columns of a group, of which a key takes four, differ by rows and by coarse places, and their sum lies where each of them does.

use zeroize::Zeroizing;

use super::{EIGHT_LANES, LANE, LANE_BITS, Pads};
use crate::{Geometry, Selection, constant_time};

/// The places of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schemes) struct Grid {
    /// d.
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
    /// h: a query turns polynomials by multiples of 2^h.
    pub(in crate::schemes) height: u32,
}

/// Where a column's slot lies: what a client knows and the server doesn't.
pub(in crate::schemes) struct Place {
    pub(in crate::schemes) row: u32,
    pub(in crate::schemes) coarse: u32,
    pub(in crate::schemes) output: u32,
    pub(in crate::schemes) fine: u32,
}

impl Grid {
    /// A column is a row. `height` is what the caller sees fit.
    pub(in crate::schemes) fn dense(degree: usize, geometry: &Geometry, height: u32) -> Self {
        let (parts, part_bytes, width) = cut(degree, geometry.record_bytes);
        let fine = degree / width;
        let (rows, outputs) = (geometry.columns, geometry.groups.div_ceil(fine));
        Self { degree, width, parts, part_bytes, coarse: 1, fine, rows, outputs, height }
    }

    /// A column is a row and a coarse place; `None` where a slot's part is longer than those are apart.
    pub(in crate::schemes) fn turned(degree: usize, geometry: &Geometry, height: u32) -> Option<Self> {
        let dense = Self::dense(degree, geometry, height);
        let (coarse, fine) = (degree >> height, (1 << height) / dense.width);
        let rows = geometry.columns.div_ceil(coarse);
        let outputs = geometry.groups.checked_div(fine)? + usize::from(!geometry.groups.is_multiple_of(fine));
        Some(Self { coarse, fine, rows, outputs, ..dense })
    }

    /// Polynomials of a database.
    pub(in crate::schemes) fn polynomials(&self) -> usize {
        self.outputs * self.parts
    }

    /// The number of a polynomial, by which its pad is found.
    pub(in crate::schemes) fn number(&self, output: u64, part: usize, row: u64) -> u64 {
        (output * self.parts as u64 + part as u64) * self.rows as u64 + row
    }

    /// The first coefficient of a place.
    pub(in crate::schemes) fn position(&self, coarse: usize, fine: usize) -> usize {
        (coarse << self.height) + fine * self.width
    }

    /// Where a fine place begins in what is sent of a body, after the query's monomial has turned it.
    pub(in crate::schemes) fn offset(&self, fine: usize) -> usize {
        (fine * self.width) & ((1 << self.height) - 1)
    }

    /// Coefficients that are sent of a body: whatever the place, its own are among them.
    pub(in crate::schemes) fn window(&self) -> usize {
        (0..self.fine).map(|fine| self.offset(fine) + self.width).max().unwrap_or(self.width)
    }

    /// Where a column of a group lies, in constant time.
    pub(in crate::schemes) fn place(&self, column: u32, group: u32) -> Place {
        let (coarse, row) = constant_time::divide(column.into(), self.rows as u64);
        let (output, fine) = constant_time::divide(group.into(), self.fine as u64);
        Place { row: row as u32, coarse: coarse as u32, output: output as u32, fine: fine as u32 }
    }

    /// The monomial that brings a place within 2^h coefficients of its polynomial's start, in constant time: t for the factor
    /// X^(t 2^h), and all ones where its sign is a minus. X^d = -1.
    pub(in crate::schemes) fn turn(&self, place: &Place) -> (u32, u64) {
        let turns = (self.degree >> self.height) as u32;
        let position = (place.coarse << self.height) + self.width as u32 * place.fine;
        let turn = position >> self.height;
        let minus = !(constant_time::equal_mask(turn, 0) as i32 as u64);
        (turns.wrapping_sub(turn) & (turns - 1), minus)
    }

    /// A slot, or a sum of slots lane by lane, from the windows that were sent of each part, in constant time: pads are taken off.
    pub(in crate::schemes) fn read(
        &self,
        pads: &Pads,
        selection: &Selection,
        record_bytes: usize,
        sent: &[u16],
    ) -> Zeroizing<Vec<u8>> {
        let group = selection.group();
        let mut slot = Zeroizing::new(Vec::with_capacity(self.parts * self.part_bytes + 8));
        let mut lanes = Zeroizing::new(vec![0u16; self.width]);
        let mut pad = Zeroizing::new(vec![0; self.degree]);
        for (part, sent) in sent.chunks_exact(self.window()).enumerate() {
            let Place { fine, .. } = self.place(0, group);
            lanes.fill(0);
            for this in 0..self.fine {
                let here = constant_time::equal_mask(this as u32, fine) as u16;
                let sent = &sent[self.offset(this)..][..self.width];
                lanes.iter_mut().zip(sent).for_each(|(lane, sent)| *lane |= sent & here);
            }
            // Each column's pad lies where its slot does.
            for column in selection.columns() {
                let Place { row, coarse, output, fine } = self.place(*column, group);
                pads.of(self.number(output.into(), part, row.into()), &mut pad[..]);
                for (this_coarse, this_fine) in
                    (0..self.coarse).flat_map(|coarse| (0..self.fine).map(move |fine| (coarse, fine)))
                {
                    let here = constant_time::equal_mask(this_coarse as u32, coarse)
                        & constant_time::equal_mask(this_fine as u32, fine);
                    let pad = &pad[self.position(this_coarse, this_fine)..][..self.width];
                    let off = |(lane, pad): (&mut u16, &u16)| *lane = lane.wrapping_sub(pad & here as u16);
                    lanes.iter_mut().zip(pad).for_each(off);
                }
            }
            let words = Zeroizing::new(lanes.iter().map(|lane| u64::from(lane & LANE)).collect::<Vec<_>>());
            let start = slot.len();
            blindcore_rlwe::rounding::pack(&words, LANE_BITS, &mut slot);
            slot.truncate(start + self.part_bytes);
        }
        slot.truncate(record_bytes);
        slot
    }
}

/// Parts of a slot, the bytes of each, and its coefficients.
fn cut(degree: usize, record_bytes: usize) -> (usize, usize, usize) {
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
    use super::*;

    #[test]
    fn slots_lie_apart_and_within_their_polynomial() {
        for degree in [2048, 4096] {
            for record_bytes in [1, 64, 256, 261, 1000, 2816, 4096, 6000] {
                let geometry = Geometry { record_bytes, groups: 90, columns: 300 };
                let turned = (8..11).filter_map(|height| Grid::turned(degree, &geometry, height));
                let dense = (1..11).map(|height| Grid::dense(degree, &geometry, height));
                for grid in dense.chain(turned) {
                    let mut taken = vec![false; degree];
                    for coarse in 0..grid.coarse {
                        for fine in 0..grid.fine {
                            let at = grid.position(coarse, fine);
                            let here = &mut taken[at..at + grid.width];
                            assert!(here.iter().all(|taken| !taken), "{grid:?}");
                            here.fill(true);
                            // Turned by multiples of 2^h it lies where it is looked for.
                            let (coarse, fine) = (coarse as u32, fine as u32);
                            let (turn, minus) = grid.turn(&Place { row: 0, coarse, output: 0, fine });
                            let to = at + ((turn as usize) << grid.height);
                            assert_eq!(to % degree, grid.offset(fine as usize));
                            assert_eq!(minus == 0, to < degree, "X^d = -1");
                        }
                    }
                    assert!(grid.window() <= degree);
                    assert!(grid.rows * grid.coarse >= 300 && grid.outputs * grid.fine >= 90);
                    assert!(grid.parts * grid.part_bytes >= record_bytes);
                    assert!(8 * grid.part_bytes <= grid.width * LANE_BITS as usize);
                }
            }
        }
    }

    #[test]
    fn a_long_slot_has_no_coarse_places() {
        let geometry = Geometry { record_bytes: 400, groups: 100, columns: 300 };
        assert!(Grid::turned(4096, &geometry, 8).is_none() && Grid::turned(4096, &geometry, 9).is_some());
    }
}
