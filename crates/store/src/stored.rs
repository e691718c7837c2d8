//! A database on disk, opened.

use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use blindcore_accel::{Device, SharedBytes};
use blindcore_lookup::Params;
use blindcore_lookup::keyword::Index;
use blindcore_lookup::schemes::Operand;
use blindcore_units::{Progress, Unit};
use blindcore_wire::{
    BatchesContent, Change, ChangesContent, KeyedContent, PartDescription, PartKind, Proofs, TableContent,
    TableDescription,
};

use crate::manifest::{FileEntry, Manifest, PartManifest, Signed, from_hex};
use crate::section::{self, Header, Kind};
use crate::tile_checksums::{self, TILE};
use crate::{Checksum, HintFile, Shard, StoreError, StreamOptions, Streamed, direct, stages};

/// A database on disk, its files mapped. Sizes, headers and seeds have been checked; [`Stored::verify`] reads
/// all of it.
pub struct Stored {
    dir: PathBuf,
    manifest: Manifest,
    /// The matrix of records.
    pub records: StoredPart,
    /// The directory from index to key.
    pub keys: Option<StoredPart>,
    /// What changed since those were built.
    pub changes: Option<StoredPart>,
    /// The keys of rows that were added since.
    pub new_keys: Option<StoredPart>,
    /// The records in buckets, where many keys can be asked for at a time.
    pub batches: Option<StoredPart>,
}

/// One matrix of a database, mapped.
#[derive(Clone)]
pub struct StoredPart {
    /// Its parameters.
    pub params: Params,
    /// Matrices of these parameters, which lie one after another in what follows: 1, but of batches.
    pub buckets: usize,
    /// The matrix, in the layout that the manifest names.
    pub shards: Vec<SharedBytes>,
    /// The hint.
    pub hint: SharedBytes,
    /// BLAKE3 of the hint.
    pub hint_digest: [u8; 32],
    /// How its slots end in proofs, where they do.
    pub proofs: Option<Proofs>,
    /// The operands that the server keeps beside the records, in the scheme's order.
    pub derived: Vec<SharedBytes>,
    /// A seed for each group, where records are found by key.
    pub seeds: Option<Vec<u8>>,
    /// The shards' files, and what their headers say.
    files: Vec<(PathBuf, Header)>,
    /// The same of the hint, and of the operands beside the records.
    hint_file: (PathBuf, Header),
    derived_files: Vec<(PathBuf, Header)>,
    /// The checksums of the matrix's tiles, their file, and what its header says.
    sums: Option<(SharedBytes, PathBuf, Header)>,
}

/// What a record holds, read as far as it is taken: what it begins with lies in few of a file's pages, all of it in
/// many. A tile that doesn't fit its checksum is an error.
type RecordBytes<'a> = Box<dyn Iterator<Item = Result<u8, StoreError>> + 'a>;

/// A file of a database, to be read whole.
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    path: &'a Path,
    header: &'a Header,
}

impl Payload<'_> {
    /// How many bytes there are.
    #[must_use]
    pub fn bytes(&self) -> usize {
        usize::try_from(self.header.payload_bytes).expect("no address space holds it")
    }

    /// Reads it into memory of its length, past the page cache where that works, and compares it with its checksum.
    /// `progress` is told how many more bytes are there.
    ///
    /// # Errors
    /// The file is no longer what it was when the database was opened, or can't be read; or it is damaged.
    pub fn read(&self, into: &mut [u8], progress: &mut dyn FnMut(usize)) -> Result<(), StoreError> {
        let mut file = section::open_file(self.path, self.header)?;
        let mut check = Check::new(self.path, &self.header.payload_digest);
        let mut each = |part: &[u8]| {
            check.update(part);
            progress(part.len());
        };
        let filled = file
            .seek(SeekFrom::Start(section::HEADER as u64))
            .and_then(|_| direct::fill(&mut file, into, &mut each));
        filled.map_err(|e| StoreError::io(self.path, "read", e))?;
        check.finish()
    }

    /// Compares what is mapped of it with its checksum.
    fn check(&self, mapped: &[u8]) -> Result<(), StoreError> {
        let mut check = Check::new(self.path, &self.header.payload_digest);
        check.update(mapped);
        check.finish()
    }
}

/// Compares a file's payload with its checksum.
struct Check<'a> {
    path: &'a Path,
    digest: &'a [u8; 32],
    hasher: blake3::Hasher,
}

impl<'a> Check<'a> {
    fn new(path: &'a Path, digest: &'a [u8; 32]) -> Self {
        Self { path, digest, hasher: blake3::Hasher::new() }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    fn finish(self) -> Result<(), StoreError> {
        if self.hasher.finalize() == *self.digest { Ok(()) } else { Err(StoreError::unfit(self.path)) }
    }
}

impl StoredPart {
    /// The files of the matrix, as [`StoredPart::shards`] has them mapped.
    #[must_use]
    pub fn shard_payloads(&self) -> Vec<Payload<'_>> {
        self.files.iter().map(|(path, header)| Payload { path, header }).collect()
    }

    /// Bytes of the hint.
    #[must_use]
    pub fn hint_bytes(&self) -> u64 {
        self.hint_file.1.payload_bytes
    }

    /// The files of the operands beside the records, one each.
    #[must_use]
    pub fn derived_payloads(&self) -> Vec<Payload<'_>> {
        self.derived_files.iter().map(|(path, header)| Payload { path, header }).collect()
    }

    /// All operands, mapped, as [`blindcore_lookup::Server::new`] takes them; of batches those of all buckets.
    #[must_use]
    pub fn operands(&self) -> Vec<Vec<SharedBytes>> {
        let derived = self.derived.iter().map(|operand| vec![operand.clone()]);
        std::iter::once(self.shards.clone()).chain(derived).collect()
    }

    /// The hint in its file, for a server to read piece by piece.
    ///
    /// # Errors
    /// The file is no longer what it was when the database was opened, or can't be read.
    pub fn hint_file(&self) -> Result<HintFile, StoreError> {
        let (path, header) = &self.hint_file;
        HintFile::open(path.clone(), header.clone())
    }

    /// The operands beside the records on their disk, as [`StoredPart::stream`] does.
    ///
    /// # Errors
    /// As [`StoredPart::stream`].
    pub fn stream_derived(
        &self,
        device: &Device,
        options: StreamOptions,
    ) -> Result<Vec<Streamed>, StoreError> {
        let open = |(operand, (path, header)): (Operand, &(PathBuf, Header))| {
            let file = section::open_file(path, header)?;
            let bytes = section::HEADER as u64..section::HEADER as u64 + header.payload_bytes;
            let checksum = Checksum::Whole(header.payload_digest);
            let shard = Shard { path: path.clone(), file, bytes, checksum };
            Streamed::open(device, &operand.shape, vec![shard], options)
        };
        self.params.stored_operands().skip(1).zip(&self.derived_files).map(open).collect()
    }

    /// The matrix on its disk, read in every pass instead of mapped, and compared with its checksums.
    ///
    /// # Errors
    /// A shard is no longer what it was when the database was opened, or can't be read; its checksums are damaged; or the
    /// device refuses.
    pub fn stream(&self, device: &Device, options: StreamOptions) -> Result<Streamed, StoreError> {
        let mut sums = match &self.sums {
            None => None,
            Some((_, path, header)) => {
                let mut file = section::open_file(path, header)?;
                let read = tile_checksums::read(
                    &mut file,
                    self.files.iter().map(|(_, header)| header.payload_bytes),
                );
                let (sums, digest) = read.map_err(|e| StoreError::io(path, "read", e))?;
                if digest != header.payload_digest {
                    return Err(StoreError::unfit(path));
                }
                Some(sums.into_iter())
            }
        };
        let open = |(path, header): &(PathBuf, Header)| {
            let file = section::open_file(path, header)?;
            let (start, bytes) = (section::HEADER as u64, header.payload_bytes);
            let checksum = match &mut sums {
                Some(sums) => Checksum::Tiles(sums.next().expect("of every file")),
                None => Checksum::Whole(header.payload_digest),
            };
            Ok(Shard { path: path.clone(), file, bytes: start..start + bytes, checksum })
        };
        let shards = self.files.iter().map(open).collect::<Result<_, StoreError>>()?;
        Streamed::open(device, &self.params.records().shape, shards, options)
    }
}

impl Stored {
    /// Opens the database in a folder.
    ///
    /// # Errors
    /// There is none, or a file of it is missing, foreign, cut short or of another epoch; or it has a signature that is not of
    /// this table.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let opened = Self::open_unverified(dir)?;
        opened.check_signature()?;
        Ok(opened)
    }

    /// The same, whatever its signature is.
    pub(crate) fn open_unverified(dir: &Path) -> Result<Self, StoreError> {
        loop {
            let manifest = Manifest::read(dir)?;
            let opened = Self::open_epoch(dir, manifest.clone());
            // An update may replace the manifest, and remove the changes that it named, between the two.
            if opened.is_ok() || Manifest::read(dir).is_ok_and(|now| now == manifest) {
                return opened;
            }
        }
    }

    /// The epoch that a manifest says, its files in a folder.
    pub(crate) fn open_epoch(dir: &Path, manifest: Manifest) -> Result<Self, StoreError> {
        let open = |kind, part: &PartManifest| {
            open_part(dir, manifest.part_epoch(kind), part, manifest.buckets(kind) as usize)
        };
        let records = open(PartKind::Records, &manifest.records)?;
        let keys = manifest.keys.as_ref().map(|p| open(PartKind::Keys, p)).transpose()?;
        let changes = manifest.changes.as_ref();
        let new_keys =
            changes.and_then(|c| c.keys.as_ref()).map(|p| open(PartKind::NewKeys, p)).transpose()?;
        let changes = changes.map(|c| open(PartKind::Changes, &c.records)).transpose()?;
        let batches = manifest.batches.as_ref().map(|b| open(PartKind::Batches, &b.records)).transpose()?;
        let opened = Self { dir: dir.into(), manifest, records, keys, changes, new_keys, batches };
        opened.description()?;
        Ok(opened)
    }

    /// A matrix, if the database has it.
    #[must_use]
    pub fn part(&self, kind: PartKind) -> Option<&StoredPart> {
        self.parts().find(|(this, _)| *this == kind).map(|(_, part)| part)
    }

    /// Every matrix.
    pub fn parts(&self) -> impl Iterator<Item = (PartKind, &StoredPart)> {
        let [keys, changes, new_keys, batches] =
            [&self.keys, &self.changes, &self.new_keys, &self.batches].map(Option::as_ref);
        let parts = [Some(&self.records), keys, changes, new_keys, batches];
        PartKind::ALL.into_iter().zip(parts).filter_map(|(kind, part)| Some((kind, part?)))
    }

    /// What the database is.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it lies.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What a server says of this table.
    ///
    /// # Errors
    /// The manifest says what no client would believe.
    pub fn description(&self) -> Result<TableDescription, StoreError> {
        let damaged =
            |why: String| StoreError::Damaged { path: self.dir.join(crate::manifest::MANIFEST), why };
        let describe = StoredPart::describe;
        let changes = match (&self.manifest.changes, &self.changes) {
            (Some(manifest), Some(part)) => Some(ChangesContent {
                base_epoch: self.manifest.base_epoch(),
                base_rows: manifest.base_rows,
                records: describe(part),
                salt: from_hex(&manifest.salt).expect("checked with the manifest"),
                seeds: part.seeds.clone().unwrap_or_default().into(),
                new_keys: self.new_keys.as_ref().map(describe),
                blocks: manifest.blocks.unwrap_or(1),
            }),
            _ => None,
        };
        let Manifest { name, epoch, rows, key, values, .. } = &self.manifest;
        let salt = self.manifest.salt().map_err(damaged)?;
        let keyed = match (key, salt, &self.records.seeds) {
            (Some(column), Some(salt), Some(seeds)) => Some(KeyedContent {
                column: column.clone(),
                salt,
                seeds: seeds.clone().into(),
                keys: self.keys.as_ref().map(describe),
                blocks: self.manifest.blocks(),
                form: self.manifest.key_type,
                batches: self.manifest.batches.as_ref().zip(self.batches.as_ref()).map(|(manifest, part)| {
                    let seeds = part.seeds.clone().unwrap_or_default().into();
                    BatchesContent { keys: manifest.keys, records: describe(part), seeds }
                }),
            }),
            _ => None,
        };
        TableDescription::new(TableContent {
            name: name.clone(),
            epoch: *epoch,
            rows: *rows,
            value_columns: values.clone(),
            records: describe(&self.records),
            keyed,
            changes,
        })
        .map(|table| table.signed(self.manifest.signed.as_ref().and_then(Signed::bytes)))
        .map_err(|e| damaged(e.to_string()))
    }

    /// Reads every file and compares it with its checksum.
    ///
    /// # Errors
    /// Names the first file that is damaged; or `progress` says stop.
    pub fn verify(&self, progress: &mut dyn Progress) -> Result<(), StoreError> {
        const STEP: usize = 16 << 20;
        let mut files: Vec<(&FileEntry, SharedBytes)> = Vec::new();
        for ((_, manifest), (_, part)) in self.manifest.parts().zip(self.parts()) {
            files.extend(manifest.shards.iter().zip(part.shards.iter().cloned()));
            files.extend(manifest.sums.as_ref().zip(part.sums.as_ref().map(|(sums, ..)| sums.clone())));
            files.push((&manifest.hint, part.hint.clone()));
            files.extend(manifest.derived().zip(part.derived.iter().cloned()));
            let seeds = part.seeds.clone().map(|s| std::sync::Arc::new(s) as SharedBytes);
            files.extend(manifest.seeds.as_ref().zip(seeds));
        }
        if let Some((entry, bytes)) = self.log()? {
            files.push((entry, bytes));
        }
        // Small ones first: damage in them is found without reading gigabytes.
        files.sort_by_key(|(file, _)| file.bytes);
        let total = files.iter().map(|(f, _)| f.bytes).sum();
        let mut done = 0;
        for (entry, bytes) in files {
            let file = (self.dir.join(&entry.file), digest_of(entry));
            let mut check = Check::new(&file.0, &file.1);
            for chunk in (*bytes).as_ref().chunks(STEP) {
                check.update(chunk);
                done += chunk.len() as u64;
                stages::at(progress, "verifying", done, Some(total), Unit::Bytes)?;
            }
            check.finish()?;
        }
        Ok(())
    }

    /// The changed rows as they were read, mapped.
    fn log(&self) -> Result<Option<(&FileEntry, SharedBytes)>, StoreError> {
        let (Some(manifest), Some(part)) = (&self.manifest.changes, &self.changes) else { return Ok(None) };
        let header = expected(&manifest.log, Kind::Log, &part.params, self.manifest.epoch);
        let bytes = section::open(&self.dir.join(&manifest.log.file), &header)?;
        Ok(Some((&manifest.log, bytes)))
    }

    /// The same, checked, and their file.
    pub(crate) fn checked_log(&self) -> Result<Option<(PathBuf, SharedBytes)>, StoreError> {
        let Some((entry, bytes)) = self.log()? else { return Ok(None) };
        whole(&self.dir, entry, (*bytes).as_ref())?;
        Ok(Some((self.dir.join(&entry.file), bytes)))
    }

    /// The record of a key, or of a row's number in 8 bytes, little-endian, in a table without keys, perhaps with
    /// zeros behind it: for the table's holder, which has nothing to hide from it.
    ///
    /// # Errors
    /// As [`Stored::description`]; or what was read of it is damaged.
    pub fn record(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let description = self.description()?;
        let formed = self.manifest.key_type.map(|form| form.of(key));
        let key = formed.as_deref().unwrap_or(key);
        if let (Some(part), Some(index)) = (&self.changes, description.changes_index())
            && let Some(slots) = part.keyed(index, key, description.changes().map_or(1, |c| c.blocks))?
        {
            return Ok(match Change::decode(&slots.collect::<Result<Vec<_>, _>>()?) {
                Some(Change::Set(record)) => Some(record.to_vec()),
                _ => None,
            });
        }
        self.base_record(description.index(), key)?.map(Iterator::collect).transpose()
    }

    /// The key of a row of the base, or its number where rows have no keys. `None` without a directory of keys, or behind the
    /// last row.
    pub(crate) fn base_key(&self, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let there = number < self.manifest.base_rows();
        if self.manifest.key.is_none() {
            return Ok(there.then(|| number.to_le_bytes().to_vec()));
        }
        let Some(keys) = self.keys.as_ref().filter(|_| there) else { return Ok(None) };
        let columns = keys.params.geometry.columns as u64;
        let mut slot = keys.slots((number / columns) as usize, [(number % columns) as usize]);
        let mut byte = || slot.next().transpose().map(Option::unwrap_or_default);
        let len = u16::from_le_bytes([byte()?, byte()?]);
        (0..len).map(|_| byte()).collect::<Result<_, _>>().map(Some)
    }

    /// What [`Stored::record`] gives, in the base, whose index this is.
    pub(crate) fn base_record<'a>(
        &'a self,
        index: Option<&'a Index>,
        key: &'a [u8],
    ) -> Result<Option<RecordBytes<'a>>, StoreError> {
        if let Some(index) = index {
            return self.records.keyed(index, key, self.manifest.blocks());
        }
        let Ok(number) = key.try_into().map(u64::from_le_bytes) else { return Ok(None) };
        let columns = self.records.params.geometry.columns as u64;
        let (group, column) = ((number / columns) as usize, (number % columns) as usize);
        let there = number < self.manifest.base_rows();
        Ok(there.then(|| Box::new(self.records.slots(group, [column])) as _))
    }
}

impl StoredPart {
    fn describe(&self) -> PartDescription {
        let &Self { params, hint_digest, proofs, buckets, .. } = self;
        PartDescription { params, hint_digest, proofs, buckets: buckets as u32 }
    }

    /// Makes sure that [`Stored::base_record`] sees what is damaged: compares the checksums of the tiles with their own
    /// or, where there are none, all of the matrix with those of its files.
    ///
    /// # Errors
    /// It is damaged.
    pub(crate) fn check_cells(&self) -> Result<(), StoreError> {
        if let Some((sums, path, header)) = &self.sums {
            return Payload { path, header }.check((**sums).as_ref());
        }
        let mut files = self.shards.iter().zip(self.shard_payloads());
        files.try_for_each(|(mapped, payload)| payload.check((**mapped).as_ref()))
    }

    /// The record of a key, if it is there: its blocks one after another.
    fn keyed<'a>(
        &'a self,
        index: &'a Index,
        key: &'a [u8],
        blocks: u32,
    ) -> Result<Option<RecordBytes<'a>>, StoreError> {
        let Some(first) = self.keyed_slot(index, key, 0)? else { return Ok(None) };
        let rest = (1..blocks).map_while(move |block| self.keyed_slot(index, key, block).transpose());
        let rest = rest.flat_map(|slot| slot.unwrap_or_else(|error| Box::new(std::iter::once(Err(error)))));
        Ok(Some(Box::new(first.chain(rest))))
    }

    /// What the slots of a key's block add up to behind its fingerprint, if it is there.
    fn keyed_slot<'a>(
        &'a self,
        index: &Index,
        key: &[u8],
        block: u32,
    ) -> Result<Option<RecordBytes<'a>>, StoreError> {
        let (group, columns, fingerprint) = index.locate(key, block);
        let mut bytes = self.slots(group, columns);
        for want in fingerprint {
            if bytes.next().transpose()? != Some(want) {
                return Ok(None);
            }
        }
        Ok(Some(Box::new(bytes)))
    }

    /// What slots add up to, without their proofs.
    fn slots<const N: usize>(
        &self,
        group: usize,
        columns: [usize; N],
    ) -> impl Iterator<Item = Result<u8, StoreError>> {
        let records = self.params.records();
        let first = group * self.params.group_rows();
        // The tile that each column was last read from, and its number.
        let mut tiles = [(usize::MAX, [0; TILE]); N];
        let mut sums = self.params.lanes().sums();
        (first..first + self.describe().content_bytes()).map(move |row| {
            let mut bytes = [0; N];
            for (((number, tile), column), byte) in tiles.iter_mut().zip(columns).zip(&mut bytes) {
                let at = records.position(row, column);
                if *number != at / TILE {
                    (*number, *tile) = (at / TILE, self.tile(at / TILE)?);
                }
                *byte = tile[at % TILE];
            }
            Ok(sums.next(&bytes, &[]))
        })
    }

    /// A tile of the matrix, as it was written. It is a copy that was compared, whatever happens to the file.
    fn tile(&self, number: usize) -> Result<[u8; TILE], StoreError> {
        let sums = self.sums.as_ref().map(|(sums, ..)| (**sums).as_ref());
        let mut at = number * TILE;
        for (shard, (path, _)) in self.shards.iter().map(|s| (**s).as_ref()).zip(&self.files) {
            if at >= shard.len() {
                at -= shard.len();
                continue;
            }
            let tile = shard[at..].first_chunk().copied();
            let tile = tile.filter(|t| sums.is_none_or(|s| tile_checksums::fit(s, number, t)));
            return tile.ok_or_else(|| {
                let why =
                    format!("its {TILE} bytes from {} on don't fit their checksum", section::HEADER + at);
                StoreError::Damaged { path: path.clone(), why }
            });
        }
        unreachable!("the shards make the matrix, and an index names places in it")
    }
}

/// What the header of a file of a database says.
fn expected(entry: &FileEntry, kind: Kind, params: &Params, epoch: u64) -> Header {
    Header {
        kind: kind as u32,
        params_digest: params.digest(),
        epoch,
        payload_bytes: entry.bytes,
        payload_digest: digest_of(entry),
    }
}

/// Checks the payload of a small file.
fn whole(dir: &Path, entry: &FileEntry, bytes: &[u8]) -> Result<(), StoreError> {
    let (path, digest) = (dir.join(&entry.file), digest_of(entry));
    let mut check = Check::new(&path, &digest);
    check.update(bytes);
    check.finish()
}

fn digest_of(entry: &FileEntry) -> [u8; 32] {
    from_hex(&entry.blake3).expect("checked with the manifest")
}

fn open_part(dir: &Path, epoch: u64, part: &PartManifest, buckets: usize) -> Result<StoredPart, StoreError> {
    let path = dir.join(crate::manifest::MANIFEST);
    let params =
        part.params().map_err(|e| StoreError::Damaged { path, why: format!("its parameters: {e}") })?;
    let header = |entry: &FileEntry, kind: Kind| expected(entry, kind, &params, epoch);
    let open = |entry: &FileEntry, kind: Kind| section::open(&dir.join(&entry.file), &header(entry, kind));
    Ok(StoredPart {
        params,
        buckets,
        shards: part.shards.iter().map(|s| open(s, Kind::Shard)).collect::<Result<_, _>>()?,
        sums: match &part.sums {
            Some(entry) => Some((open(entry, Kind::Sums)?, dir.join(&entry.file), header(entry, Kind::Sums))),
            None => None,
        },
        hint: open(&part.hint, Kind::Hint)?,
        hint_digest: digest_of(&part.hint),
        proofs: part.proofs,
        derived: part.derived().map(|s| open(s, Kind::State)).collect::<Result<_, _>>()?,
        // A wrong seed finds nothing where a row is, and there are few of them: they are read whole.
        seeds: match &part.seeds {
            Some(entry) => {
                let (path, header) = (dir.join(&entry.file), header(entry, Kind::Seeds));
                let payload = Payload { path: &path, header: &header };
                let mut seeds = vec![0; payload.bytes()];
                payload.read(&mut seeds, &mut |_| ())?;
                Some(seeds)
            }
            None => None,
        },
        files: part.shards.iter().map(|s| (dir.join(&s.file), header(s, Kind::Shard))).collect(),
        hint_file: (dir.join(&part.hint.file), header(&part.hint, Kind::Hint)),
        derived_files: part.derived().map(|s| (dir.join(&s.file), header(s, Kind::State))).collect(),
    })
}

#[cfg(test)]
mod tests;
