//! What an input or output is called and how wide it is; and how programs are cut.

/// ANDs of a piece: what is garbled and evaluated while the piece before travels.
pub(crate) const PIECE: usize = 1 << 13;

/// Name and width of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortShape {
    /// Its name.
    pub name: String,
    /// Its bits.
    pub width: usize,
}
