//! A database on disk, opened.

use std::path::{Path, PathBuf};

use blindcore_accel::{Device, SharedBytes};
use blindcore_lookup::Params;
use blindcore_wire::{KeyedContent, PartDescription, TableContent, TableDescription};

use crate::manifest::{FileEntry, Manifest, PartManifest, from_hex};
use crate::section::{self, Header, Kind};
use crate::{Shard, StoreError, StreamOptions, Streamed};

/// A database on disk, its files mapped. Sizes and headers have been checked; [`Stored::verify`] reads all of
/// it.
pub struct Stored {
    dir: PathBuf,
    manifest: Manifest,
    /// The matrix of records.
    pub records: StoredPart,
    /// The directory from index to key.
    pub keys: Option<StoredPart>,
}

/// One matrix of a database, mapped.
#[derive(Clone)]
pub struct StoredPart {
    /// Its parameters.
    pub params: Params,
    /// The matrix, in the layout that the manifest names.
    pub shards: Vec<SharedBytes>,
    /// The hint.
    pub hint: SharedBytes,
    /// BLAKE3 of the hint.
    pub hint_digest: [u8; 32],
    /// What DoublePIR's server keeps beside the matrix.
    pub state: Option<SharedBytes>,
    /// A seed for each group, where records are found by key.
    pub seeds: Option<Vec<u8>>,
    /// The shards' files, and what their headers say.
    files: Vec<(PathBuf, Header)>,
}

impl StoredPart {
    /// The matrix on its disk, read in every pass instead of mapped.
    ///
    /// # Errors
    /// A shard is no longer what it was when the database was opened, or can't be read; or the device refuses.
    pub fn stream(&self, device: &dyn Device, options: StreamOptions) -> Result<Streamed, StoreError> {
        let open = |(path, header): &(PathBuf, Header)| {
            let file = section::open_file(path, header)?;
            let start = section::HEADER as u64;
            Ok(Shard { path: path.clone(), file, bytes: start..start + header.payload_bytes })
        };
        let shards = self.files.iter().map(open).collect::<Result<_, StoreError>>()?;
        Streamed::open(device, &self.params.shape(), shards, options)
    }
}

impl Stored {
    /// Opens the database in a folder.
    ///
    /// # Errors
    /// There is none, or a file of it is missing, foreign, cut short or of another epoch.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let manifest = Manifest::read(dir)?;
        let records = open_part(dir, &manifest, &manifest.records)?;
        let keys = manifest.keys.as_ref().map(|p| open_part(dir, &manifest, p)).transpose()?;
        let opened = Self { dir: dir.into(), manifest, records, keys };
        opened.description()?;
        Ok(opened)
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
        let describe = |p: &StoredPart| PartDescription { params: p.params, hint_digest: p.hint_digest };
        let Manifest { name, epoch, rows, key, values, .. } = &self.manifest;
        let salt = self.manifest.salt().map_err(damaged)?;
        let keyed = match (key, salt, &self.records.seeds) {
            (Some(column), Some(salt), Some(seeds)) => Some(KeyedContent {
                column: column.clone(),
                salt,
                seeds: seeds.clone().into(),
                keys: self.keys.as_ref().map(describe),
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
        })
        .map_err(|e| damaged(e.to_string()))
    }

    /// Reads every file and compares it with its checksum. `progress` is given bytes done and in all.
    ///
    /// # Errors
    /// Names the first file that is damaged; or what `progress` returned.
    pub fn verify<E: From<StoreError>>(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        const STEP: usize = 16 << 20;
        let mut files: Vec<(&FileEntry, SharedBytes)> = Vec::new();
        for (manifest, part) in [(&self.manifest.records, &self.records)]
            .into_iter()
            .chain(self.manifest.keys.as_ref().zip(self.keys.as_ref()))
        {
            files.extend(manifest.shards.iter().zip(part.shards.iter().cloned()));
            files.push((&manifest.hint, part.hint.clone()));
            files.extend(manifest.state.as_ref().zip(part.state.clone()));
            let seeds = part.seeds.clone().map(|s| std::sync::Arc::new(s) as SharedBytes);
            files.extend(manifest.seeds.as_ref().zip(seeds));
        }
        let total = files.iter().map(|(f, _)| f.bytes).sum();
        let mut done = 0;
        for (entry, bytes) in files {
            let mut hasher = blake3::Hasher::new();
            for chunk in (*bytes).as_ref().chunks(STEP) {
                hasher.update(chunk);
                done += chunk.len() as u64;
                progress(done, total)?;
            }
            if hasher.finalize().to_hex().as_str() != entry.blake3 {
                let why = "its contents don't fit its checksum".into();
                return Err(StoreError::Damaged { path: self.dir.join(&entry.file), why }.into());
            }
        }
        Ok(())
    }
}

fn open_part(dir: &Path, manifest: &Manifest, part: &PartManifest) -> Result<StoredPart, StoreError> {
    let path = dir.join(crate::manifest::MANIFEST);
    let params =
        part.params().map_err(|e| StoreError::Damaged { path, why: format!("its parameters: {e}") })?;
    let header = |entry: &FileEntry, kind: Kind| Header {
        kind: kind as u32,
        params_digest: params.digest(),
        epoch: manifest.epoch,
        payload_bytes: entry.bytes,
        payload_digest: from_hex(&entry.blake3).expect("checked with the manifest"),
    };
    let open = |entry: &FileEntry, kind: Kind| section::open(&dir.join(&entry.file), &header(entry, kind));
    Ok(StoredPart {
        params,
        shards: part.shards.iter().map(|s| open(s, Kind::Shard)).collect::<Result<_, _>>()?,
        hint: open(&part.hint, Kind::Hint)?,
        hint_digest: from_hex(&part.hint.blake3).expect("checked with the manifest"),
        state: part.state.as_ref().map(|s| open(s, Kind::State)).transpose()?,
        seeds: match &part.seeds {
            Some(s) => Some((*open(s, Kind::Seeds)?).as_ref().to_vec()),
            None => None,
        },
        files: part.shards.iter().map(|s| (dir.join(&s.file), header(s, Kind::Shard))).collect(),
    })
}
