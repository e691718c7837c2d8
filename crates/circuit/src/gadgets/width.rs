//! Operands of one width.

use crate::builder::Bit;

pub(crate) fn same_width(a: &[Bit], b: &[Bit]) {
    assert_eq!(a.len(), b.len(), "operands of {} and {} bits; make them equally wide", a.len(), b.len());
}
