//! A database opened as a table: its matrices placed, its hints checked or left to be checked.

use std::sync::Arc;

use blindcore_accel::Device;
use blindcore_store::{HintFile, Stored};
use blindcore_wire::PartKind;

use super::error::HostError;
use super::residency::{MemoryLimit, Placer};
use crate::{Hint, Part, Table};

/// Bytes of a hint that is checked before anybody is answered; a larger one is checked later.
const HINT_AT_ONCE: u64 = 64 << 20;

/// Hints in their files.
pub(super) type Hints = Vec<Arc<HintFile>>;

/// What it takes to open a table of a running host.
pub(super) struct Opener {
    pub(super) device: Device,
    pub(super) memory: MemoryLimit,
    pub(super) streamed: bool,
}

impl Opener {
    /// Opens the `wanted` parts of a new epoch; `careful` compares all of them with their checksums first.
    pub(super) fn open(
        &self,
        stored: &Stored,
        careful: bool,
        wanted: &dyn Fn(PartKind) -> bool,
    ) -> Result<(Table, Hints), HostError> {
        let parts = stored.parts().filter(|(kind, _)| wanted(*kind)).map(|(_, part)| part);
        // What is left now: the epoch before is still there.
        let mut progress = ();
        let placer = Placer::new(parts, self.memory.left(), self.streamed, &mut progress);
        let mut placer = if careful { placer.careful() } else { placer };
        open_table(stored, &self.device, &mut placer, wanted)
    }
}

/// A hint in its file.
struct Served(Arc<HintFile>);

impl Hint for Served {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        self.0.read_at(offset, into).map_err(std::io::Error::other)
    }

    fn fails(&self) -> bool {
        self.0.fails()
    }
}

/// The `wanted` parts of a database as a table, their matrices in place; and those of their hints, which are served from
/// their files, that are still to be checked.
pub(super) fn open_table(
    stored: &Stored,
    device: &Device,
    placer: &mut Placer<'_>,
    wanted: &dyn Fn(PartKind) -> bool,
) -> Result<(Table, Hints), HostError> {
    let description = stored.description()?;
    let (mut parts, mut unchecked) = (Vec::new(), Hints::new());
    for (kind, part) in stored.parts().filter(|(kind, _)| wanted(*kind)) {
        let hint = Arc::new(part.hint_file()?);
        if hint.bytes() <= HINT_AT_ONCE || placer.is_careful() {
            hint.check()?;
        } else {
            unchecked.push(hint.clone());
        }
        let server = placer.place(description.name(), kind, part, device)?;
        parts.push((kind, Part::new(server, Served(hint))));
    }
    Ok((Table::new(description, parts)?.with_rows(stored.manifest().live_rows()), unchecked))
}
