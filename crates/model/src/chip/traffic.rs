//! Words through ports.

use serde::Serialize;

/// What moves at a level, in words of each tensor, of all its memories together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// The level.
    pub level: String,
    /// Words of A, B and C that are read.
    pub read: [u128; 3],
    /// Words that are written.
    pub written: [u128; 3],
    /// Words of a tile in one memory.
    pub tile: [u128; 3],
}
