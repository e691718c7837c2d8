//! How results go to memory.

/// How [`rows`](crate::transfers::rows) are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Into the caches: for what is read soon.
    Cached,
    /// Past the caches, where the processor can: for parts of what is larger than they are. A line is not read before it is written.
    Streamed,
}
