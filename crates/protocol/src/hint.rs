//! What a client keeps of a part: its hint, checked; and fetching it, which is public and may go on where it broke.

use std::sync::Arc;
use std::time::Duration;

use blindcore_wire::{PartDescription, PartKind, TableDescription, proto};

use crate::kept::digest;
use crate::{CacheEntry, Error, Hint, Kept};

/// Times that a download may break without getting further.
const ATTEMPTS: u32 = 4;
/// Times that a download may break at all: a server that sends a few bytes at a time would go on for ever.
const BREAKS: u32 = 64;
/// The first wait after a download broke is twice this long; it doubles while nothing comes.
const WAIT: Duration = Duration::from_millis(100);

/// What is missing of a part before it can be asked: its hint, to be taken from a cache or fetched.
///
/// ```text
///   Fetch ──cached──▶ CacheEntry: a name, and what the file must hold ──▶ Hint ─┐
///     └──download──▶ Download: requests, pieces, breaks ───────────────▶ Hint ──┴──check──▶ Kept ──▶ Table::keep
/// ```
#[derive(Clone, Debug)]
pub struct Fetch {
    table: String,
    epoch: u64,
    kind: PartKind,
    part: PartDescription,
}

impl Fetch {
    pub(crate) fn new(table: &TableDescription, kind: PartKind, part: PartDescription) -> Self {
        Self { table: table.name().to_owned(), epoch: table.epoch(), kind, part }
    }

    /// The part.
    #[must_use]
    pub fn kind(&self) -> PartKind {
        self.kind
    }

    /// Bytes of the hint.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.part.hint_bytes()
    }

    /// Where a cache keeps it, if it comes from this server: an address such as `host:port`.
    #[must_use]
    pub fn cached(&self, server: &str) -> CacheEntry {
        CacheEntry::new(server, &self.table, self.kind, &self.part)
    }

    /// Its download, from where an earlier one ended: bytes that the caller `have`s, at most [`Fetch::bytes`].
    #[must_use]
    pub fn download(&self, have: u64) -> Download {
        let request = proto::GetHintRequest {
            table: self.table.clone(),
            epoch: self.epoch,
            part: self.kind.to_proto().into(),
            offset: have,
        };
        let total = self.bytes();
        Download { request, total, have: have.min(total), mark: have, failures: 0, breaks: 0 }
    }

    /// Checks a hint. This reads all of it, once.
    ///
    /// # Errors
    /// [`Error::HintDigest`]: it is not this part's.
    pub fn check(&self, hint: Hint) -> Result<Kept, Error> {
        if digest(&hint) != self.part.hint_digest {
            return Err(Error::HintDigest { table: self.table.clone(), part: self.kind });
        }
        Ok(Kept { kind: self.kind, part: self.part, hint: Arc::new(hint) })
    }
}

/// A hint on its way: what to request, which pieces fit, and whether to go on after a break.
#[derive(Clone, Debug)]
pub struct Download {
    request: proto::GetHintRequest,
    total: u64,
    have: u64,
    /// Where the present request started.
    mark: u64,
    failures: u32,
    breaks: u32,
}

impl Download {
    /// What to request next: all that is missing; nothing once the hint is whole.
    #[must_use]
    pub fn request(&mut self) -> Option<proto::GetHintRequest> {
        self.mark = self.have;
        self.request.offset = self.have;
        (self.have < self.total).then(|| self.request.clone())
    }

    /// Bytes that came, those that were there before included.
    #[must_use]
    pub fn have(&self) -> u64 {
        self.have
    }

    /// Bytes in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Counts the next piece, which the caller appends to the hint.
    ///
    /// # Errors
    /// [`Error::Protocol`]: it is empty or goes past the end. It is not to be kept then.
    pub fn receive(&mut self, piece: &[u8]) -> Result<(), Error> {
        let (len, Self { have, total, .. }) = (piece.len() as u64, &*self);
        if len == 0 || len > total - have {
            let what = format!("it sent a piece of {len} B of a hint at {have} of {total} B");
            return Err(Error::Protocol { what });
        }
        self.have += len;
        Ok(())
    }

    /// How long to wait before the next [`Download::request`], after the connection broke; nothing where it broke too
    /// often. A hint is public, so going on tells nothing.
    pub fn broke(&mut self) -> Option<Duration> {
        self.failures = if self.have > self.mark { 1 } else { self.failures + 1 };
        self.breaks += 1;
        (self.failures < ATTEMPTS && self.breaks < BREAKS).then(|| WAIT * (1 << self.failures))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::part;

    fn fetch() -> (Vec<u8>, Fetch) {
        let (hint, part) = part();
        let fetch = Fetch { table: "t".into(), epoch: 8, kind: PartKind::Records, part };
        (hint, fetch)
    }

    #[test]
    fn pieces_make_a_hint() {
        let (bytes, fetch) = fetch();
        let mut download = fetch.download(0);
        let mut hint = Hint::default();
        for piece in bytes.chunks(1001) {
            download.receive(piece).unwrap();
            hint.push(piece);
        }
        assert!(download.request().is_none() && hint.as_ref() == bytes);
        assert!(download.receive(&[1]).is_err(), "past the end");
        assert!(fetch.check(hint.clone()).is_ok());
        hint.as_mut()[99] ^= 1;
        assert!(matches!(fetch.check(hint), Err(Error::HintDigest { .. })));
    }

    #[test]
    fn a_download_goes_on_while_it_gets_further() {
        let (bytes, fetch) = fetch();
        let mut download = fetch.download(100);
        assert_eq!(download.request().unwrap().offset, 100);
        download.receive(&bytes[..10]).unwrap();
        assert!(download.broke().is_some());
        assert_eq!(download.request().unwrap().offset, 110);
        assert!(download.receive(&[]).is_err());
        let waits: Vec<_> = std::iter::from_fn(|| {
            let wait = download.broke();
            let _ = download.request();
            wait
        })
        .collect();
        assert_eq!(waits, [WAIT * 4, WAIT * 8], "three times without a byte");
        let mut trickle = fetch.download(0);
        let breaks = (0..)
            .take_while(|_| {
                let _ = trickle.request();
                trickle.receive(&[1]).unwrap();
                trickle.broke().is_some()
            })
            .count();
        assert_eq!(breaks as u32, BREAKS - 1);
    }
}
