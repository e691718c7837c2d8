//! What requests and answers take beside what they carry.

/// Bytes of a piece of a hint.
pub(crate) const CHUNK_BYTES: usize = 128 << 10;
/// Bytes that a hint on its way may have in buffers: a piece, its copy, and what HTTP/2 holds back.
pub(crate) const HINT_BUFFERS: usize = 4 * CHUNK_BYTES;
/// Bytes of a request beside its queries: names, digests, lengths.
pub(crate) const REQUEST_SLACK: usize = 4096;
