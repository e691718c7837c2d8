//! Lookups in one table.

use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blindcore_lookup::keyword::{self, FINGERPRINT_BYTES};
use blindcore_lookup::{Pending, Selection};
use blindcore_wire::codec::{MAX_KEY_BYTES, decode_record};
use blindcore_wire::{KeyError, PartKind, TableDescription, Value, decode_key_slot, proto};
use bytes::Bytes;
use prost::Message;
use tokio::sync::OnceCell;
use zeroize::Zeroizing;

use crate::error::refused;
use crate::hint::{Fetch, Progress};
use crate::{Client, Error};

/// Bytes that gRPC puts before a message.
const FRAME_BYTES: usize = 5;
/// Bytes of an answer beside the slots: two field headers and a number.
const ANSWER_SLACK: usize = 64;

/// A table, ready for lookups at one epoch.
pub struct TableClient {
    client: Client,
    table: Arc<TableDescription>,
    records: PartClient,
    /// Fetched once somebody asks for a row of a keyed table by index.
    keys: OnceCell<PartClient>,
    keys_queries: u32,
    columns: Arc<[Arc<str>]>,
    progress: Option<Progress>,
}

/// What a lookup brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The record; none where the key is not there.
    pub found: Option<Record>,
    /// What travelled for it.
    pub bytes: Traffic,
    /// What took how long.
    pub ms: Timings,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its key, where the table has keys.
    pub key: Option<Vec<u8>>,
    /// Its columns, in order.
    pub values: Vec<(Arc<str>, Value)>,
}

/// Bytes that travelled for a lookup: its share of the messages it was part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// To the server.
    pub up: u64,
    /// From the server.
    pub down: u64,
    /// Of hints, when the table was opened; 0 where they were cached.
    pub hint: u64,
}

/// Milliseconds that a lookup took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// Making the query.
    pub prepare: f64,
    /// From sending its request to having its answer.
    pub query: f64,
    /// The server's share of that, as the server says.
    pub server: f64,
    /// Reading the answer.
    pub decode: f64,
}

struct PartClient {
    kind: PartKind,
    lookup: Arc<blindcore_lookup::Client>,
    most_queries: usize,
    fetched: u64,
}

/// A decoded slot, and what it cost.
struct Slot {
    bytes: Zeroizing<Vec<u8>>,
    traffic: Traffic,
    ms: Timings,
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl TableClient {
    pub(crate) async fn open(
        client: Client,
        table: TableDescription,
        [records_queries, keys_queries]: [u32; 2],
        progress: Option<Progress>,
    ) -> Result<Self, Error> {
        let records =
            PartClient::open(&client, &table, PartKind::Records, records_queries, progress.as_ref()).await?;
        let columns = table.value_columns().iter().map(|c| c.as_str().into()).collect();
        let (table, keys) = (Arc::new(table), OnceCell::new());
        Ok(Self { client, table, records, keys, keys_queries, columns, progress })
    }

    /// What the table says of itself.
    #[must_use]
    pub fn description(&self) -> &TableDescription {
        &self.table
    }

    /// Bytes of hints that had to be fetched so far; 0 where they were cached.
    #[must_use]
    pub fn hint_bytes_fetched(&self) -> u64 {
        self.records.fetched + self.keys.get().map_or(0, |k| k.fetched)
    }

    /// Looks a key up, given as [`blindcore_wire::codec::encode_key`] writes it: as a person does.
    ///
    /// # Errors
    /// The table is not keyed, the key is none, the server can't be asked or refuses, or what comes back is
    /// no record. See [`Error`] on why nothing is ever tried again.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Lookup, Error> {
        one(self.get_many(&[key]).await?)
    }

    /// Looks keys up, in as few requests as the server allows. Each is a query of its own, also where a key
    /// comes twice. All are sent whatever comes back.
    ///
    /// # Errors
    /// As [`TableClient::get`].
    pub async fn get_many(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Lookup>, Error> {
        if !self.table.is_keyed() {
            return Err(Error::NotKeyed { table: self.name() });
        }
        let check = |key: &[u8]| match key.len() {
            0 => Err(KeyError::Empty),
            got if got > MAX_KEY_BYTES => Err(KeyError::Length { got }),
            _ => Ok(Zeroizing::new(key.to_vec())),
        };
        let keys: Vec<_> = keys.iter().map(|key| check(key.as_ref())).collect::<Result<_, _>>()?;
        self.records_of(keys).await?.into_iter().collect()
    }

    /// Looks a row up, counted from 0 in the order of the source. In a keyed table that is two lookups, of the
    /// row's key and of its record.
    ///
    /// # Errors
    /// As [`TableClient::get`]; or there is no such row, or the table has no keys by index.
    pub async fn get_index(&self, index: u64) -> Result<Lookup, Error> {
        one(self.get_many_index(&[index]).await?)
    }

    /// Looks rows up, in as few requests as the server allows.
    ///
    /// # Errors
    /// As [`TableClient::get_index`].
    pub async fn get_many_index(&self, indices: &[u64]) -> Result<Vec<Lookup>, Error> {
        let rows = self.table.rows();
        // How many rows there are is the server's word: were a row past them not asked for, a server could
        // choose a number and learn on which side of it each lookup lies. Row 0 is asked in its place.
        let inside: Vec<u64> = indices.iter().map(|i| if *i < rows { *i } else { 0 }).collect();
        let lookups = self.rows_inside(&inside).await;
        match indices.iter().copied().find(|i| *i >= rows) {
            Some(index) => {
                // What the server knows of comes first: it would be seen whatever was asked.
                lookups?;
                Err(Error::NoSuchRow { table: self.name(), index, rows })
            }
            None => lookups,
        }
    }

    async fn rows_inside(&self, indices: &[u64]) -> Result<Vec<Lookup>, Error> {
        if !self.table.is_keyed() {
            let slots = self.ask(&self.records, indices.to_vec(), |lookup, index| {
                Ok(Selection::index(&lookup.params().geometry, *index)?)
            });
            let found = |slot: Slot| Ok(self.lookup(&slot, Some(self.record(None, &slot.bytes)?)));
            return slots.await?.into_iter().map(found).collect();
        }
        if self.table.keys().is_none() {
            return Err(Error::NotIndexed { table: self.name() });
        }
        let keys = self.keys.get_or_try_init(|| {
            PartClient::open(
                &self.client,
                &self.table,
                PartKind::Keys,
                self.keys_queries,
                self.progress.as_ref(),
            )
        });
        let slots = self.ask(keys.await?, indices.to_vec(), |lookup, index| {
            Ok(Selection::index(&lookup.params().geometry, *index)?)
        });
        let slots = slots.await?;
        // A slot that holds no key is looked up like any other, as the empty key: a server must not see which
        // of its answers made sense.
        let keys: Vec<_> = slots.iter().map(|slot| decode_key_slot(&slot.bytes)).collect();
        let asked = keys.iter().map(|key| Zeroizing::new(key.unwrap_or_default().to_vec())).collect();
        let records = self.records_of(asked).await?;
        let mut lookups = Vec::with_capacity(slots.len());
        for ((slot, key), record) in slots.iter().zip(&keys).zip(records) {
            let mut lookup = record?;
            if key.is_none() {
                return Err(self.garbage("the slot of its key holds none"));
            }
            if lookup.found.is_none() {
                return Err(self.garbage("the key of this row is not in the table"));
            }
            lookup.bytes.up += slot.traffic.up;
            lookup.bytes.down += slot.traffic.down;
            lookup.ms.prepare += slot.ms.prepare;
            lookup.ms.query += slot.ms.query;
            lookup.ms.server += slot.ms.server;
            lookup.ms.decode += slot.ms.decode;
            lookups.push(lookup);
        }
        Ok(lookups)
    }

    fn name(&self) -> String {
        self.table.name().to_owned()
    }

    fn garbage(&self, why: impl ToString) -> Error {
        Error::Garbage { table: self.name(), why: why.to_string() }
    }

    /// Records by key: an error for the whole only where the server knows of it.
    async fn records_of(&self, keys: Vec<Zeroizing<Vec<u8>>>) -> Result<Vec<Result<Lookup, Error>>, Error> {
        let table = self.table.clone();
        let slots = self.ask(&self.records, keys.clone(), move |_, key| {
            let index = table.index().expect("keyed tables have an index");
            Ok(index.select(key).0)
        });
        let open = |(slot, key): (Slot, Zeroizing<Vec<u8>>)| {
            let index = self.table.index().expect("keyed tables have an index");
            let fingerprint: Zeroizing<[u8; FINGERPRINT_BYTES]> = index.select(&key).1;
            let record = keyword::open(&slot.bytes, &fingerprint);
            let record = record.map(|bytes| self.record(Some(key.to_vec()), bytes)).transpose()?;
            Ok(self.lookup(&slot, record))
        };
        Ok(slots.await?.into_iter().zip(keys).map(open).collect())
    }

    fn record(&self, key: Option<Vec<u8>>, bytes: &[u8]) -> Result<Record, Error> {
        let values = decode_record(bytes, self.columns.len()).map_err(|e| self.garbage(e))?;
        Ok(Record { key, values: self.columns.iter().cloned().zip(values).collect() })
    }

    fn lookup(&self, slot: &Slot, found: Option<Record>) -> Lookup {
        let hint = self.hint_bytes_fetched();
        Lookup { found, bytes: Traffic { hint, ..slot.traffic }, ms: slot.ms }
    }

    /// Asks a part for targets. Requests go out one after another whatever their answers decode to; only an
    /// error that the server knows of stops them.
    async fn ask<T: Send + Sync + 'static>(
        &self,
        part: &PartClient,
        targets: Vec<T>,
        select: impl Fn(&blindcore_lookup::Client, &T) -> Result<Selection, Error> + Send + Sync + 'static,
    ) -> Result<Vec<Slot>, Error> {
        let (table, params) = (&self.table, part.lookup.params());
        let digest = Bytes::copy_from_slice(table.digest());
        let answer_bytes = params.answer_bytes();
        let select = Arc::new(select);
        let mut slots = Vec::with_capacity(targets.len());
        let mut targets = targets.into_iter();
        loop {
            let batch: Vec<T> = targets.by_ref().take(part.most_queries).collect();
            let count = batch.len();
            if count == 0 {
                return Ok(slots);
            }
            let (lookup, select) = (part.lookup.clone(), select.clone());
            let prepared = spread(batch, move |target| {
                let started = Instant::now();
                let (query, pending) = lookup.query(lookup.prepare()?, &select(&lookup, &target)?)?;
                Ok((query, pending, ms(started.elapsed())))
            })
            .await?;
            let mut queries = Vec::with_capacity(count * params.query_bytes());
            let mut pending: Vec<(Pending, f64)> = Vec::with_capacity(count);
            for (query, rest, time) in prepared {
                queries.extend_from_slice(&query);
                pending.push((rest, time));
            }
            let request = proto::QueryRequest {
                table: table.name().to_owned(),
                epoch: table.epoch(),
                part: part.kind.to_proto().into(),
                table_digest: digest.clone(),
                queries: queries.into(),
            };
            let up = (request.encoded_len() + FRAME_BYTES) as u64 / count as u64;
            let sent = Instant::now();
            let limit = count.saturating_mul(answer_bytes).saturating_add(ANSWER_SLACK);
            let mut grpc = self
                .client
                .grpc
                .clone()
                .max_decoding_message_size(limit)
                .max_encoding_message_size(usize::MAX);
            const WHAT: &str = "a query";
            let answer = self.client.within(WHAT, grpc.query(request)).await?;
            let answer = answer.map_err(|s| refused(&s, WHAT, table.name(), table.epoch()))?;
            let round_trip = ms(sent.elapsed());
            let (got, want) = (answer.answers.len(), count * answer_bytes);
            if got != want {
                let what = format!("it answers {count} queries with {got} B where they make {want}");
                return Err(Error::Protocol { what });
            }
            let down = (answer.encoded_len() + FRAME_BYTES) as u64 / count as u64;
            let server = answer.server_micros as f64 / 1e3;
            let answers = (0..count).map(|i| answer.answers.slice(i * answer_bytes..(i + 1) * answer_bytes));
            let answers = pending.into_iter().zip(answers).collect();
            let lookup = part.lookup.clone();
            let decoded = spread(answers, move |((pending, prepare), answer): ((Pending, f64), Bytes)| {
                let started = Instant::now();
                let bytes = lookup.decode(pending, &answer)?;
                let ms = Timings { prepare, query: round_trip, server, decode: ms(started.elapsed()) };
                Ok(Slot { bytes, traffic: Traffic { up, down, hint: 0 }, ms })
            });
            slots.extend(decoded.await?);
        }
    }
}

impl PartClient {
    async fn open(
        client: &Client,
        table: &TableDescription,
        kind: PartKind,
        most_queries: u32,
        progress: Option<&Progress>,
    ) -> Result<Self, Error> {
        let missing = || Error::Protocol { what: format!("its table has no part {kind}") };
        let part = table.part(kind).ok_or_else(missing)?;
        if most_queries == 0 {
            return Err(Error::Protocol { what: format!("it allows no query of part {kind}") });
        }
        let (hint, fetched) = Fetch { client, table, kind, part, progress }.run().await?;
        let lookup = Arc::new(blindcore_lookup::Client::new(part.params, hint)?);
        let most_queries = (most_queries as usize).min(client.options.queries_per_request).max(1);
        Ok(Self { kind, lookup, most_queries, fetched })
    }
}

fn one(lookups: Vec<Lookup>) -> Result<Lookup, Error> {
    lookups.into_iter().next().ok_or_else(|| Error::Protocol { what: "it left a query out".into() })
}

/// Works on every item, on all cores, in order.
async fn spread<T: Send + 'static, U: Send + 'static>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<U, Error> + Send + Sync + 'static,
) -> Result<Vec<U>, Error> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let each = items.len().div_ceil(cores).max(1);
    let work = Arc::new(work);
    let mut items = items.into_iter();
    let mut parts = Vec::new();
    loop {
        let some: Vec<T> = items.by_ref().take(each).collect();
        if some.is_empty() {
            break;
        }
        let work = work.clone();
        parts.push(tokio::task::spawn_blocking(move || {
            some.into_iter().map(|item| work(item)).collect::<Result<Vec<U>, _>>()
        }));
    }
    let mut all = Vec::new();
    for part in parts {
        match part.await {
            Ok(done) => all.extend(done?),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => return Err(Error::Network { what: "a lookup", why: crate::error::chain(&error) }),
        }
    }
    Ok(all)
}
