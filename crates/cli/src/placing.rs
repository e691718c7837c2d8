//! Where a server has its matrices: copied to memory, mapped from their files, or streamed from their disk.

use std::num::NonZeroUsize;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::Context;
use blindcore_accel::{Device, SharedBytes};
use blindcore_accel_cpu::HugeBytes;
use blindcore_lookup::{Scheme, Server};
use blindcore_store::memory::{self, Limit};
use blindcore_store::{Check, StoredPart, StreamOptions};

use crate::output::{self, Bar};

/// Where a matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// In memory of its own, in huge pages, which a scan reads fastest.
    Copied,
    /// Where it lies in its files, for the system to keep in memory.
    Mapped,
    /// On its disk, from which every pass reads it.
    Streamed,
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Copied => "copied",
            How::Mapped => "mapped",
            How::Streamed => "streamed",
        }
    }
}

/// How much memory a server may have, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) bytes: u64,
    whose: &'static str,
}

/// Whose memory it is that nobody has.
const FREE: &str = "that are free";

impl Memory {
    /// What `--memory` says; `auto` is what this machine has free, or the least of the limits that this process is
    /// under. `None` where the system doesn't tell.
    pub(crate) fn new(said: Option<&str>) -> anyhow::Result<Option<Self>> {
        if let Some(said) = said.filter(|said| *said != "auto") {
            return Ok(Some(Self { bytes: parse_bytes(said)?, whose: "that --memory allows" }));
        }
        Ok(memory::limit().map(|limit| match limit {
            Limit::Free(bytes) => Self { bytes, whose: FREE },
            Limit::Group(bytes) => Self { bytes, whose: "that this control group may have" },
        }))
    }

    /// What is left of it for a server that runs.
    pub(crate) fn left(said: Option<&str>) -> anyhow::Result<Option<Self>> {
        // What is free is less already by what this process has.
        let left = |m: Self| {
            if m.whose == FREE { m } else { Self { bytes: m.bytes.saturating_sub(memory::held()), ..m } }
        };
        Ok(Self::new(said)?.map(left))
    }

    /// What of it databases may take; the rest is for requests and everything else.
    fn for_databases(self) -> u64 {
        self.bytes / 4 * 3
    }

    /// What of it requests may take.
    pub(crate) fn for_requests(self) -> usize {
        usize::try_from(self.bytes / 4).unwrap_or(usize::MAX)
    }
}

/// Bytes from a number and a unit: `8GiB`, `512MiB`, `1073741824`.
fn parse_bytes(text: &str) -> anyhow::Result<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" | "B" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        "TiB" => Some(40),
        _ => None,
    };
    let number = number.parse::<u64>().ok().filter(|n| *n > 0);
    number.zip(shift).and_then(|(n, shift)| n.checked_mul(1 << shift)).with_context(|| {
        format!(
            "--memory {text:?} is no size; say auto, or a number with B, KiB, MiB, GiB or TiB such as 8GiB"
        )
    })
}

/// What is chosen for some matrices.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    /// For each.
    matrices: Vec<How>,
    /// For what DoublePIR's server keeps beside its matrix, which every pass reads too.
    states: How,
}

/// Chooses for matrices of so many bytes. `states` is what DoublePIR keeps beside them, `hints` what is served from
/// mapped files and better stays in memory.
///
/// The smallest matrices are copied, as many as there is memory for. Whatever has no place is streamed: a mapped file
/// larger than memory would be read from the disk in every pass as well, but page by page.
fn choose(matrices: &[u64], states: u64, hints: u64, budget: Option<u64>, asked: Option<How>) -> Choice {
    let states_fit = budget.is_none_or(|b| states <= b);
    let how_states = if asked == Some(How::Mapped) || !states_fit { How::Mapped } else { How::Copied };
    let mut chosen = vec![asked.unwrap_or(How::Copied); matrices.len()];
    if let (None, Some(budget)) = (asked, budget) {
        let mut left = budget.checked_sub(states + hints);
        let mut smallest_first: Vec<usize> = (0..matrices.len()).collect();
        smallest_first.sort_by_key(|i| matrices[*i]);
        for i in smallest_first {
            left = left.and_then(|left| left.checked_sub(matrices[i]));
            if left.is_none() {
                chosen[i] = How::Streamed;
            }
        }
    }
    Choice { matrices: chosen, states: how_states }
}

/// Places matrices, one after the other, as was chosen for all of them together.
pub(crate) struct Placing {
    how: std::vec::IntoIter<How>,
    states: How,
    why: String,
    /// Bytes of the largest matrix that is streamed.
    streamed: u64,
    bar: Bar,
    done: u64,
    total: u64,
}

impl Placing {
    /// Chooses for matrices that will be placed in this order.
    pub(crate) fn new<'a>(
        parts: impl Iterator<Item = &'a StoredPart>,
        memory: Option<Memory>,
        asked: Option<How>,
    ) -> Self {
        let parts: Vec<&StoredPart> = parts.collect();
        let matrices: Vec<u64> = parts.iter().map(|p| p.shards.iter().map(len).sum()).collect();
        let states: u64 = parts.iter().map(|p| p.state.as_ref().map_or(0, len)).sum();
        let planes: u64 = parts.iter().map(|p| second_public_matrix(p)).sum();
        let hints: u64 = parts.iter().map(|p| len(&p.hint)).sum();
        let budget = memory.map(Memory::for_databases);
        let choice = choose(&matrices, states + planes, hints, budget, asked);
        let all = matrices.iter().sum::<u64>() + states + planes + hints;
        let need = output::bytes(all);
        let why = match (asked, memory) {
            (Some(_), _) => "it was asked for".into(),
            (None, None) => format!("{need} are needed, and this system doesn't say what is free"),
            (None, Some(memory)) => format!(
                "{need} are needed, and of {} {} three quarters may be taken",
                output::bytes(memory.bytes),
                memory.whose
            ),
        };
        let copied = matrices.iter().zip(&choice.matrices).filter(|(_, how)| **how == How::Copied);
        let total = copied.map(|(bytes, _)| bytes).sum::<u64>()
            + if choice.states == How::Copied { states } else { 0 };
        let (how, states) = (choice.matrices.into_iter(), choice.states);
        Self { how, states, why, streamed: 0, bar: Bar::new(), done: 0, total }
    }

    /// Places the next matrix and what belongs to it, and says so in the log.
    pub(crate) fn place(
        &mut self,
        table: &str,
        kind: blindcore_wire::PartKind,
        part: &StoredPart,
        device: &dyn Device,
    ) -> anyhow::Result<Server> {
        let how = self.how.next().expect("one for each part");
        let state = match &part.state {
            Some(state) if self.states == How::Copied => {
                Some(self.copy(std::iter::once(state).zip(part.state_check()))?)
            }
            other => other.clone().map(|s| vec![s]),
        };
        let bytes: u64 = part.shards.iter().map(len).sum();
        let (how_named, why) = (how.name(), &self.why);
        if how == How::Streamed {
            let streamed = part.stream(device, StreamOptions::default())?;
            let reader = streamed.reader();
            self.streamed = self.streamed.max(bytes);
            tracing::info!(table, part = %kind, bytes, reader, "{how_named}: {why}");
            return Ok(Server::placed(part.params, device, Box::new(streamed), state)?);
        }
        let shards = match how {
            How::Copied => self.copy(part.shards.iter().zip(part.shard_checks()))?,
            _ => part.shards.clone(),
        };
        tracing::info!(table, part = %kind, bytes, "{how_named}: {}", self.why);
        Ok(Server::new(part.params, device, shards, state)?)
    }

    /// How long a request may take, at least: the pass that it comes in, those that it waits for, from a slow disk.
    pub(crate) fn request_time(&self) -> Duration {
        const PASSES: u64 = 3;
        const BYTES_PER_SECOND: u64 = 500_000_000;
        Duration::from_secs(PASSES * self.streamed / BYTES_PER_SECOND)
    }

    /// Copies mapped files to memory in huge pages, which a scan reads faster than a file's small pages, and
    /// compares what was copied with its checksums: both by as many threads as there are cores and files.
    fn copy<'a>(
        &mut self,
        files: impl Iterator<Item = (&'a SharedBytes, Check<'a>)>,
    ) -> anyhow::Result<Vec<SharedBytes>> {
        let mut files: Vec<_> = files.collect();
        let mut copies = Vec::with_capacity(files.len());
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        while !files.is_empty() {
            let some = files.drain(..threads.min(files.len()));
            let (send, done) = mpsc::channel();
            copies.extend(std::thread::scope(|scope| {
                let copying: Vec<_> = some
                    .map(|(bytes, check)| {
                        let send = send.clone();
                        scope.spawn(move || copy((**bytes).as_ref(), check, &send))
                    })
                    .collect();
                drop(send);
                for bytes in done {
                    self.done += bytes as u64;
                    self.bar.set("loading", self.done, Some(self.total), true);
                }
                copying.into_iter().map(|c| c.join().expect("it copies")).collect::<anyhow::Result<Vec<_>>>()
            })?);
        }
        Ok(copies)
    }
}

/// Copies a mapped file and checks the copy, and tells how many bytes are done at a time.
fn copy(from: &[u8], mut check: Check<'_>, done: &mpsc::Sender<usize>) -> anyhow::Result<SharedBytes> {
    // What is checked is still in the cache.
    const STEP: usize = 1 << 20;
    let mut memory = HugeBytes::zeroed(from.len())?;
    for (to, from) in memory.as_mut().chunks_mut(STEP).zip(from.chunks(STEP)) {
        to.copy_from_slice(from);
        check.update(to);
        // Whoever draws the bar waits for all.
        let _ = done.send(from.len());
    }
    check.finish()?;
    Ok(Arc::new(memory))
}

fn len(bytes: &SharedBytes) -> u64 {
    (**bytes).as_ref().len() as u64
}

/// Bytes of DoublePIR's second public matrix, which its server makes: four planes of 1024 by the groups.
fn second_public_matrix(part: &StoredPart) -> u64 {
    match part.params.scheme {
        Scheme::Simple => 0,
        Scheme::Double => 4 * 1024 * part.params.geometry.groups.next_multiple_of(64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPIED: How = How::Copied;
    const MAPPED: How = How::Mapped;
    const STREAMED: How = How::Streamed;

    #[test]
    fn matrices_are_copied_while_there_is_memory() {
        let cases: [(&[u64], _, _, _, _, &[How], How); 12] = [
            // Matrices, states, hints, memory for them, what was asked; then what is chosen.
            (&[100], 0, 10, Some(110), None, &[COPIED], COPIED),
            (&[100], 0, 10, Some(109), None, &[STREAMED], COPIED),
            (&[100], 0, 10, None, None, &[COPIED], COPIED),
            // The smaller ones first, whatever their order; what comes after one without a place has none either.
            (&[100, 20, 30], 0, 0, Some(60), None, &[STREAMED, COPIED, COPIED], COPIED),
            (&[100, 20, 30], 0, 0, Some(49), None, &[STREAMED, COPIED, STREAMED], COPIED),
            (&[30, 20, 30], 0, 0, Some(50), None, &[COPIED, COPIED, STREAMED], COPIED),
            // What DoublePIR keeps comes before any matrix, and is mapped where it doesn't fit.
            (&[10], 50, 0, Some(60), None, &[COPIED], COPIED),
            (&[10], 50, 0, Some(59), None, &[STREAMED], COPIED),
            (&[10], 50, 10, Some(49), None, &[STREAMED], MAPPED),
            // Who asks gets it.
            (&[100], 0, 0, Some(1000), Some(STREAMED), &[STREAMED], COPIED),
            (&[100], 7, 0, Some(1), Some(MAPPED), &[MAPPED], MAPPED),
            (&[], 0, 0, Some(0), None, &[], COPIED),
        ];
        for (matrices, states, hints, budget, asked, want, want_states) in cases {
            let got = choose(matrices, states, hints, budget, asked);
            let want = Choice { matrices: want.to_vec(), states: want_states };
            assert_eq!(got, want, "{matrices:?}, {states}, {hints}, {budget:?}, {asked:?}");
        }
    }

    #[test]
    fn sizes_are_numbers_with_a_unit() {
        for (text, want) in [
            ("1", 1),
            ("17B", 17),
            ("3KiB", 3 << 10),
            ("512MiB", 512 << 20),
            ("8 GiB", 8 << 30),
            ("2TiB", 2 << 40),
        ] {
            assert_eq!(parse_bytes(text).unwrap(), want, "{text}");
        }
        for text in ["", "0", "8G", "GiB", "-1", "1.5GiB", "99999999999999999999", "18446744073709551615KiB"]
        {
            let error = parse_bytes(text).unwrap_err().to_string();
            assert!(error.contains("--memory") && error.contains("8GiB"), "{error}");
        }
    }
}
