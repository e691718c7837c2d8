//! A part of a table: its matrix laid out, its hint computed, its files written.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use blindcore_accel::{Database, Placed};
use blindcore_lookup::{Geometry, OperandBytes, Params, Preprocessing, batch, preprocess};
use blindcore_units::{Progress, Unit};
use blindcore_wire::proof::{NODE_BYTES, Proofs};

use crate::bucket::Bucket;
use crate::job::{Build, Wanted, entry};
use crate::manifest::{FileEntry, PartManifest, state_layout};
use crate::mapped::{self, Scratch};
use crate::section::{self, HEADER, Header, Kind, Writer};
use crate::shards::Shards;
use crate::stages::{self, LAYING_OUT, PREPARING};
use crate::{Checksum, Entries, Shard, StoreError, StreamOptions, Streamed, memory, tile_checksums};

/// Groups that are solved at a time, at most.
const MAX_SOLVERS: usize = 8;
/// Bytes of the groups that are collected, solved and written at a time, unless one is larger.
const ROUND_BYTES: usize = 192 << 20;
/// Bytes of memory for a pass over a matrix that makes its hint, for a matrix of up to this many times as much; of a larger
/// one it's a share.
const HINT_BYTES: u64 = 256 << 20;
const HINT_SHARE: u64 = 16;
/// Bytes that a pass of preprocessing reads at a time. The columns that it multiplies by come from memory for each piece, so
/// a piece is many times larger than they are.
const HINT_PIECE: usize = 32 << 20;

/// A matrix that was laid out.
struct LaidOut {
    shards: Vec<FileEntry>,
    sums: FileEntry,
    /// Of its buckets, where it is keyed.
    seeds: Vec<u8>,
    chunks: u32,
    /// Of its chunks, and room.
    roots: Scratch,
}

impl Build<'_> {
    /// Lays out a matrix: records in their order or, of a keyed table, a solved bucket a group.
    ///
    /// It goes in rounds of some groups: while those of one round are written, those of the next are solved, each
    /// on a thread, and those of the one after it collected. So what is written doesn't depend on threads.
    ///
    /// ```text
    ///   entries ──collect──▶ buckets ──solve──▶ cells ──write──▶ shards
    ///   round        n + 2              n + 1              n
    /// ```
    fn matrix(
        &self,
        wanted: &Wanted<'_>,
        mut entries: Entries,
        rows: u64,
        progress: &mut dyn Progress,
    ) -> Result<LaidOut, StoreError> {
        let Wanted { prefix, ref params, keyed, .. } = *wanted;
        stages::at(progress, LAYING_OUT, 0, Some(rows), Unit::Items)?;
        let Geometry { record_bytes, groups: groups_of_one, columns } = params.geometry;
        let groups = wanted.buckets * groups_of_one;
        let group_bytes = record_bytes * columns;
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_SOLVERS);
        let round = (ROUND_BYTES / (4 * group_bytes)).clamp(1, threads).min(groups);
        let memory = || (0..round).map(|_| self.scratch(group_bytes)).collect::<Result<Vec<_>, _>>();
        let buckets = || Ok::<_, StoreError>(memory()?.into_iter().map(Bucket::new).collect::<Vec<_>>());
        let (mut collecting, mut solving) = (buckets()?, buckets()?);
        let (mut solved, mut writing) = (memory()?, memory()?);
        let mut shards = Shards::new(self, prefix, params)?;
        let mut seeds = Vec::with_capacity(groups);
        // Each group's last chunk may be a short one.
        let most = wanted.depth.map_or(0, |depth| rows.div_ceil(1 << depth) + groups as u64);
        if most > u32::MAX.into() {
            let why = format!("{rows} rows are too many for proofs; build without them (--no-proofs)");
            return Err(StoreError::Unfit(why));
        }
        let mut roots = self.scratch(NODE_BYTES * most as usize)?;
        let (mut chunks, mut sealed) = (0, 0);
        for start in (0..groups + 2 * round).step_by(round) {
            // The groups of the round that started this many rounds ago.
            let ago = |rounds: usize| {
                let first = start.saturating_sub(rounds * round);
                let len = if start < rounds * round { 0 } else { round.min(groups.saturating_sub(first)) };
                first..first + len
            };
            thread::scope(|scope| {
                let collected = scope.spawn(|| {
                    ago(0).zip(&mut collecting).try_for_each(|(group, bucket)| {
                        bucket.collect(&mut entries, params, keyed.then_some((group, groups)))
                    })
                });
                let solvers = ago(1).zip(solving.iter_mut().zip(&mut solved));
                let solvers: Vec<_> = solvers
                    .map(|(group, (bucket, cells))| {
                        let first = chunks;
                        chunks += wanted.chunks(bucket.lines.len());
                        scope.spawn(move || {
                            let roots = bucket.seal(wanted, group, first);
                            Ok::<_, StoreError>((bucket.solve(params, keyed, cells, self.origin)?, roots))
                        })
                    })
                    .collect();
                for (group, cells) in ago(2).zip(&mut writing) {
                    shards.group(cells.bytes())?;
                    if (group + 1) % groups_of_one == 0 {
                        shards.next()?;
                    }
                    let done = (u128::from(rows) * (group as u128 + 1) / groups as u128) as u64;
                    stages::at(progress, LAYING_OUT, done, Some(rows), Unit::Items)?;
                }
                for solver in solvers {
                    let (seed, new) = joined(solver)?;
                    seeds.push(seed);
                    let new = new.as_flattened();
                    roots.bytes()[sealed..sealed + new.len()].copy_from_slice(new);
                    sealed += new.len();
                }
                joined(collected).map_err(StoreError::from)
            })?;
            std::mem::swap(&mut collecting, &mut solving);
            std::mem::swap(&mut solved, &mut writing);
        }
        let (shards, sums) = shards.finish()?;
        Ok(LaidOut { shards, sums, seeds, chunks: chunks as u32, roots })
    }

    /// A matrix whose hint is computed, which goes through it several times: streamed from its disk, where it was
    /// written past the page cache; or mapped for a device that wants its databases placed.
    fn place(
        &self,
        params: &Params,
        shards: &[FileEntry],
        sums: &FileEntry,
    ) -> Result<Arc<dyn Placed>, StoreError> {
        let bytes: u64 = shards.iter().map(|s| s.bytes).sum();
        let memory = (bytes / HINT_SHARE).max(HINT_BYTES);
        let memory = memory::limit().map_or(memory, |limit| memory.min(limit.bytes() / 4));
        let shape = params.preprocessing_shape(memory);
        let open = |entry: &FileEntry| {
            let path = self.dir.join(&entry.file);
            let file = File::open(&path).map_err(|e| StoreError::io(&path, "read", e))?;
            Ok::<_, StoreError>((path, file))
        };
        let shard = |(shard, sums): (&FileEntry, Vec<u8>)| {
            let (path, file) = open(shard)?;
            let (start, checksum) = (HEADER as u64, Checksum::Tiles(sums));
            Ok(Shard { path, file, bytes: start..start + shard.bytes, checksum })
        };
        let files = || {
            let (path, mut file) = open(sums)?;
            let read = tile_checksums::read(&mut file, shards.iter().map(|s| s.bytes));
            let (sums, _) = read.map_err(|e| StoreError::io(&path, "read", e))?;
            shards.iter().zip(sums).map(shard).collect::<Result<Vec<_>, StoreError>>()
        };
        let options = StreamOptions { piece_bytes: HINT_PIECE, pieces: 3, ..StreamOptions::default() };
        if self.device.slots().contract.as_ref().is_some_and(|slot| slot.capabilities().streams) {
            return Ok(Arc::new(Streamed::open(self.device, &shape, files()?, options)?));
        }
        let map = |s: Shard| mapped::map(&s.file, HEADER).map_err(|e| StoreError::io(&s.path, "read", e));
        let mapped = files()?.into_iter().map(map).collect::<Result<_, _>>()?;
        let contract =
            self.device.contract(&params.records().shape).map_err(blindcore_lookup::Error::from)?;
        Ok(contract.place(Database::Packed(mapped)).map_err(blindcore_lookup::Error::from)?)
    }

    /// The hints of small matrices, one after another, and what servers keep beside each.
    fn preprocess_buckets(
        &self,
        wanted: &Wanted<'_>,
        shards: &[FileEntry],
        hints: &mut [u8],
        derived: &[(PathBuf, u64)],
        progress: &mut dyn Progress,
    ) -> Result<(), StoreError> {
        let Wanted { ref params, buckets, .. } = *wanted;
        let map = |shard: &FileEntry| {
            let path = self.dir.join(&shard.file);
            let mapped = File::open(&path).and_then(|file| mapped::map(&file, HEADER));
            mapped.map_err(|e| StoreError::io(&path, "read", e))
        };
        let pieces = shards.iter().map(map).collect::<Result<Vec<_>, StoreError>>()?;
        let mut files = derived
            .iter()
            .map(|(path, bytes)| section::create_mapped(path, *bytes))
            .collect::<Result<Vec<_>, StoreError>>()?;
        let hint_bytes = params.hint_bytes() as usize;
        for bucket in 0..buckets {
            stages::at(progress, PREPARING, bucket as u64, Some(buckets as u64), Unit::Items)?;
            let records = batch::bucket(&pieces, buckets, bucket);
            let hint = &mut hints[bucket * hint_bytes..][..hint_bytes];
            let made = preprocess(params, self.device, records, hint, &mut ()).map_err(stopped)?;
            for (file, made) in files.iter_mut().zip(made) {
                file.as_mut()[bucket * made.len()..][..made.len()].copy_from_slice(&made);
            }
        }
        Ok(())
    }

    /// A part: its matrix, then hint, state and seeds.
    pub(crate) fn part(
        &self,
        wanted: &Wanted<'_>,
        entries: Entries,
        rows: u64,
        progress: &mut dyn Progress,
    ) -> Result<PartManifest, StoreError> {
        let params = &wanted.params;
        let stored: u64 = params.stored_operands().map(|operand| operand.bytes() as u64).sum();
        let needed = wanted.buckets as u64 * (stored + params.hint_bytes());
        // Entries give their room back while they are laid out. They may lie on another disk: then this is too kind.
        let free = mapped::free_bytes(self.dir).map(|free| free.saturating_add(entries.disk_bytes()));
        room(needed, free).map_err(|e| StoreError::io(self.dir, "written", e))?;
        let LaidOut { shards, sums, seeds, chunks, mut roots } =
            self.matrix(wanted, entries, rows, progress)?;
        let Wanted { prefix, ref params, .. } = *wanted;
        let proofs = wanted.depth.map(|depth| Proofs { depth, chunks });
        stages::at(progress, PREPARING, 0, None, Unit::Items)?;
        let digest = params.digest();
        let buckets = wanted.buckets;
        // Large ones are made in their files, whose pages the system writes while others are made.
        let derived: Vec<(PathBuf, u64)> = params
            .stored_operands()
            .skip(1)
            .enumerate()
            .map(|(i, operand)| {
                let name = if i == 0 { format!("{prefix}.state") } else { format!("{prefix}.{i}.state") };
                (self.dir.join(name), (operand.bytes() * buckets) as u64)
            })
            .collect();
        let header = |kind, payload_bytes| Header {
            kind: kind as u32,
            params_digest: digest,
            epoch: self.epoch,
            payload_bytes,
            payload_digest: [0; 32],
        };
        let path = self.dir.join(format!("{prefix}.hint"));
        let hint_bytes = params.hint_bytes() as usize * buckets;
        let root_bytes = proofs.map_or(0, |p| p.root_bytes());
        let made =
            section::write_mapped(&path, header(Kind::Hint, hint_bytes as u64 + root_bytes), |payload| {
                let (hint, end) = payload.split_at_mut(hint_bytes);
                end.copy_from_slice(&roots.bytes()[..end.len()]);
                if params.preprocessing().is_empty() {
                    return Ok(());
                }
                if buckets > 1 {
                    return self.preprocess_buckets(wanted, &shards, hint, &derived, progress);
                }
                let records = self.place(params, &shards, &sums)?;
                let memory = derived
                    .iter()
                    .map(|(path, bytes)| Ok(OperandBytes::new(section::create_mapped(path, *bytes)?)))
                    .collect::<Result<_, StoreError>>()?;
                let mut made = Preprocessing::resume(params, hint, memory, 0)?;
                made.run(params, self.device, &*records, progress).map_err(stopped)
            })?;
        let hint = entry(&path, &made);
        let write = |kind: Kind, suffix: &str, bytes: Vec<u8>| {
            let mut writer =
                Writer::create(self.dir.join(format!("{prefix}.{suffix}")), kind, digest, self.epoch)?;
            writer.write(&bytes)?;
            let (path, header) = writer.finish()?;
            Ok::<FileEntry, StoreError>(entry(&path, &header))
        };
        let sealed = |(path, bytes): &(PathBuf, u64)| {
            Ok::<FileEntry, StoreError>(entry(path, &section::seal(path, header(Kind::State, *bytes))?))
        };
        let mut derived = derived.iter().map(sealed);
        let state = derived.next().transpose()?;
        Ok(PartManifest {
            scheme: params.scheme.name().into(),
            geometry: params.geometry,
            layout: params.records().layout.name().into(),
            shards,
            sums: Some(sums),
            hint,
            proofs,
            state_layout: state_layout(params),
            state,
            more_state: derived.collect::<Result<_, _>>()?,
            seeds: if wanted.keyed { Some(write(Kind::Seeds, "seeds", seeds)?) } else { None },
        })
    }
}

/// Refuses to begin what a disk has no room for.
fn room(needed: u64, free: Option<u64>) -> std::io::Result<()> {
    let Some(free) = free.filter(|free| *free < needed) else { return Ok(()) };
    let why = format!(
        "it takes {}, and that disk has {} left",
        blindcore_units::bytes(needed),
        blindcore_units::bytes(free)
    );
    Err(std::io::Error::new(std::io::ErrorKind::StorageFull, why))
}

/// What ended preprocessing.
fn stopped(error: blindcore_lookup::Error) -> StoreError {
    match error {
        blindcore_lookup::Error::Stopped => StoreError::Interrupted,
        error => error.into(),
    }
}

/// What a thread returns.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_disk_has_no_room_for_is_not_begun() {
        assert!(room(5, Some(5)).is_ok() && room(5, None).is_ok());
        let error = StoreError::io("d".as_ref(), "written", room(3 << 30, Some(1 << 20)).unwrap_err());
        let said = error.to_string();
        for words in
            ["it takes 3.00 GiB, and that disk has 1.00 MiB left", "free space there or choose another disk"]
        {
            assert!(said.contains(words), "{said}");
        }
        assert!(mapped::free_bytes(&std::env::temp_dir()) > Some(0));
        assert_eq!(mapped::free_bytes("no/such/folder".as_ref()), None);
    }
}
