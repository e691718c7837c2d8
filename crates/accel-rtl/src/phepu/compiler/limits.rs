//! How much the compiler carries.

/// Inputs, weights and outputs of a task, at most, each: what a 32-bit address holds. The last index is left for
/// terms that are absent.
pub const MAX_ADDRESSED: u64 = u32::MAX as u64 - 1;
/// Instructions of an element, at most: 80 MiB of them.
pub(crate) const MAX_INSTRUCTIONS: usize = 1 << 22;
/// Instructions of a chip, at most: 128 MiB of them.
pub(crate) const MAX_STREAM: usize = 1 << 24;
