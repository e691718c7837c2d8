//! AES instructions on one block.

pub(crate) mod garble;
