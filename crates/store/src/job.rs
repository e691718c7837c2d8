//! What a build knows of the matrix that it makes.

use std::path::Path;

use blindcore_accel::Device;
use blindcore_lookup::Params;
use blindcore_wire::PartKind;

use crate::manifest::{FileEntry, to_hex};
use crate::mapped::Scratch;
use crate::section::Header;
use crate::{SourceSpec, StoreError};

/// What filling and preprocessing share.
pub(crate) struct Build<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) device: &'a Device,
    pub(crate) origin: &'a SourceSpec,
    pub(crate) epoch: u64,
}

/// A matrix that is to be made.
pub(crate) struct Wanted<'a> {
    pub(crate) kind: PartKind,
    /// What its files' names begin with.
    pub(crate) prefix: &'a str,
    pub(crate) params: Params,
    /// Levels of its slots' proofs, if they have any.
    pub(crate) depth: Option<u8>,
    /// Whether its slots are found by key.
    pub(crate) keyed: bool,
    /// Matrices of these parameters that it is, one after another: 1, but of batches.
    pub(crate) buckets: usize,
}

impl Wanted<'_> {
    /// Chunks of proofs that this many slots in a group make.
    pub(crate) fn chunks(&self, slots: usize) -> usize {
        self.depth.map_or(0, |depth| slots.div_ceil(1 << depth))
    }
}

impl Build<'_> {
    /// Working memory of this many bytes.
    pub(crate) fn scratch(&self, len: usize) -> Result<Scratch, StoreError> {
        Scratch::zeroed(self.dir, len).map_err(|e| StoreError::io(self.dir, "used for temporary files", e))
    }
}

/// A file as the manifest lists it.
pub(crate) fn entry(path: &Path, header: &Header) -> FileEntry {
    let file = path.file_name().expect("made with a name").to_string_lossy().into_owned();
    FileEntry { file, bytes: header.payload_bytes, blake3: to_hex(&header.payload_digest) }
}
