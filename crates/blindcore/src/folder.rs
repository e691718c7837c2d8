//! A database in a folder, looked up by the process that opens it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use blindcore_accel::{Device, SharedBytes};
use blindcore_lookup::{RegisteredKeys, Server};
use blindcore_protocol::{ClientKeys, Grant, Hint, KeyNeed, Lookup, Policy, Record, Rotation, Step, Table};
use blindcore_store::{BuildOptions, Payload, SourceSpec, StoreError, Stored};
use blindcore_wire::{PartKind, proto};

/// A database in a folder, looked up in this process: no network, and the queries and answers of a client and a server.
///
/// It holds the database in memory, and sees one epoch. For records that another machine has, use a client; to serve a
/// folder, a [`Host`](blindcore_server::Host).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let csv = dir.path().join("drugs.csv");
/// # std::fs::write(&csv, "name,class\naspirin,NSAID\nwarfarin,anticoagulant\n")?;
/// # let folder = dir.path().join("drugs.db");
/// let device = blindcore::device("cpu")?;
/// # blindcore::lookup::build(&csv, "name", &folder, &device)?;
/// let drugs = blindcore::lookup::Folder::open(&folder, &device)?;
/// let record = drugs.get("aspirin")?.expect("it is there");
/// assert_eq!(record.values[0].1, blindcore::lookup::Value::Text("NSAID".into()));
/// assert!(drugs.get("ibuprofen")?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Folder {
    table: Arc<Table>,
    servers: Vec<(PartKind, Server)>,
    /// Keys of both sides, by the digest of their parameters, where a scheme has such.
    keys: Mutex<HashMap<[u8; 32], (ClientKeys, RegisteredKeys)>>,
}

/// Why a folder can't be opened or looked up in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The folder is not a database, or a damaged one.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The scheme or the device refuses.
    #[error(transparent)]
    Scheme(#[from] blindcore_lookup::Error),
    /// The table or a lookup in it is refused.
    #[error(transparent)]
    Protocol(#[from] blindcore_protocol::Error),
}

/// The most queries of one pass: lookups here are few at a time.
const QUERIES: u32 = 16;

impl Folder {
    /// Reads a database into memory and compares all of it with its checksums.
    ///
    /// # Errors
    /// The folder is not a database of this build's schemes, it is damaged, or `device` can't compute on it.
    pub fn open(folder: impl AsRef<Path>, device: &Device) -> Result<Self, FolderError> {
        let stored = Stored::open(folder.as_ref())?;
        let description = stored.description()?;
        let response = proto::GetTableResponse {
            table: Some(description.to_proto()),
            records_queries: QUERIES,
            keys_queries: QUERIES,
            changes_queries: QUERIES,
            new_keys_queries: QUERIES,
            // Who asks is who answers, and asks for one key at a time.
            batches_queries: 0,
        };
        let table = Table::open(description.name(), response, &Policy::default(), None)?;
        let mut servers = Vec::new();
        for (kind, part) in stored.parts().filter(|(kind, _)| *kind != PartKind::Batches) {
            let mut operands = vec![read(&part.shard_payloads())?];
            for payload in part.derived_payloads() {
                operands.push(read(&[payload])?);
            }
            servers.push((kind, Server::new(part.params, device, operands)?));
            if let Some(fetch) = table.missing(kind)? {
                let file = part.hint_file()?;
                let mut bytes = vec![0; file.bytes() as usize];
                file.read_at(0, &mut bytes)?;
                let mut hint = Hint::default();
                hint.push(&bytes);
                table.keep(fetch.check(hint)?)?;
            }
        }
        Ok(Self { table: Arc::new(table), servers, keys: Mutex::default() })
    }

    /// Looks a key up; none where it is not there.
    ///
    /// # Errors
    /// The table has no keys, or this is not a key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Record>, FolderError> {
        self.run(Lookup::by_key(&self.table, &[key])?)
    }

    /// Looks a row up by its number, from 0 in the order of the source; none where it was removed.
    ///
    /// # Errors
    /// The table has no such row, or no directory of its keys.
    pub fn get_index(&self, row: u64) -> Result<Option<Record>, FolderError> {
        self.run(Lookup::by_row(&self.table, &[row])?)
    }

    /// The table, as its manifest describes it.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn run(&self, mut lookup: Lookup) -> Result<Option<Record>, FolderError> {
        loop {
            match lookup.step()? {
                Step::Keys(need) => lookup.take_keys(self.keys(&need)?.0),
                Step::Send(request) => {
                    let message = request.message();
                    let kind = PartKind::from_proto(message.part).expect("a part that was asked for");
                    let (_, server) = self.servers.iter().find(|(k, _)| *k == kind).expect("every part");
                    let queries: Vec<&[u8]> =
                        message.queries.chunks_exact(server.params().query_bytes()).collect();
                    let under = server.params().keys_digest().and_then(|digest| self.kept(&digest));
                    let keys: Vec<&RegisteredKeys> =
                        under.iter().flat_map(|(_, keys)| queries.iter().map(move |_| keys)).collect();
                    let (answers, _cost) = server.answer_under(&queries, &keys)?;
                    let response =
                        proto::QueryResponse { answers: answers.concat().into(), server_micros: 0 };
                    lookup.receive(&prost::Message::encode_to_vec(&response))?;
                }
                Step::Done(mut outcomes) => {
                    return Ok(outcomes.pop().expect("one target, one outcome").found?);
                }
                _ => unreachable!("everything is kept, and every request is answered at once"),
            }
        }
    }
}

impl Folder {
    fn kept(&self, params: &[u8; 32]) -> Option<(ClientKeys, RegisteredKeys)> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).get(params).cloned()
    }

    /// Keys for a request: made once, for both sides are this process.
    fn keys(&self, need: &KeyNeed) -> Result<(ClientKeys, RegisteredKeys), FolderError> {
        if let Some(kept) = self.kept(need.params_digest()) {
            return Ok(kept);
        }
        let never = Rotation { queries: u64::MAX, age: Duration::MAX };
        let Grant { keys, made, .. } = need.grant(None, &never, 0)?;
        let (_, server) = self.servers.iter().find(|(kind, _)| *kind == need.kind()).expect("every part");
        let registered = server.params().open_registered(&made.expect("there were none"))?;
        let mut all = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(*need.params_digest()).or_insert((keys, registered)).clone())
    }
}

/// The files of an operand, in memory and compared with their checksums.
fn read(payloads: &[Payload<'_>]) -> Result<Vec<SharedBytes>, StoreError> {
    let mut pieces: Vec<SharedBytes> = Vec::with_capacity(payloads.len());
    for payload in payloads {
        let mut bytes = vec![0; payload.bytes()];
        payload.read(&mut bytes, &mut |_| {})?;
        pieces.push(Arc::new(bytes));
    }
    Ok(pieces)
}

/// Builds a database from a file, all of its columns: CSV, TSV, JSON lines or Parquet by the name's end, or whatever else
/// [`SourceSpec::parse`] reads. Rows are found by the column `key`. [`blindcore_store::build`] has every option.
///
/// # Errors
/// The file can't be read, a row is not what its header says, or `folder` is there already.
pub fn build(
    source: impl AsRef<Path>,
    key: &str,
    folder: impl AsRef<Path>,
    device: &Device,
) -> Result<(), FolderError> {
    let source = SourceSpec::parse(&source.as_ref().to_string_lossy()).map_err(StoreError::from)?;
    let options = BuildOptions { key: Some(key.into()), ..BuildOptions::new(source, folder.as_ref()) };
    blindcore_store::build(&options, device, &mut ())?;
    Ok(())
}
