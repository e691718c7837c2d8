//! Lookups in one table.

use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blindcore_lookup::keyword::{self, FINGERPRINT_BYTES, Index};
use blindcore_lookup::{Pending, Selection};
use blindcore_wire::codec::{MAX_KEY_BYTES, decode_record};
use blindcore_wire::{
    Change, KeyError, PartDescription, PartKind, TableDescription, Value, decode_key_slot, proto,
};
use bytes::Bytes;
use prost::Message;
use tokio::sync::OnceCell;
use zeroize::Zeroizing;

use crate::cache::{Start, Words};
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
    /// What changed since the base was built: every lookup asks it as well.
    changes: Option<PartClient>,
    /// Fetched once somebody asks for a row of a keyed table by index: the base's, and those of added rows.
    keys: OnceCell<PartClient>,
    new_keys: OnceCell<PartClient>,
    /// The most queries in a request, by kind of part.
    queries: [u32; 4],
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

impl Traffic {
    fn add(&mut self, other: Self) {
        self.up += other.up;
        self.down += other.down;
    }
}

impl Timings {
    fn add(&mut self, other: Self) {
        self.prepare += other.prepare;
        self.query += other.query;
        self.server += other.server;
        self.decode += other.decode;
    }
}

#[derive(Clone)]
struct PartClient {
    kind: PartKind,
    part: PartDescription,
    lookup: Arc<blindcore_lookup::Client>,
    /// With the roots of proofs.
    hint: Arc<Words>,
    most_queries: usize,
    fetched: u64,
}

/// A decoded slot, and what it cost.
struct Slot {
    bytes: Zeroizing<Vec<u8>>,
    traffic: Traffic,
    ms: Timings,
}

/// A key, and which of its record's slots.
type Block = (Zeroizing<Vec<u8>>, u32);

/// What a keyed part holds under a key, if anything, and what it cost to ask.
struct Found {
    bytes: Option<Zeroizing<Vec<u8>>>,
    traffic: Traffic,
    ms: Timings,
}

/// A row's bytes: what was said last.
fn combined<'a>(base: Option<&'a [u8]>, change: Option<&'a Found>) -> Option<&'a [u8]> {
    match change.and_then(|c| c.bytes.as_ref()) {
        None => base,
        Some(state) => match Change::decode(state) {
            Some(Change::Set(record)) => Some(record),
            Some(Change::Removed) | None => None,
        },
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl TableClient {
    pub(crate) async fn open(
        client: Client,
        table: TableDescription,
        queries: [u32; 4],
        progress: Option<Progress>,
        before: Option<&Self>,
    ) -> Result<Self, Error> {
        let columns = table.value_columns().iter().map(|c| c.as_str().into()).collect();
        let table = Arc::new(table);
        let open = |kind| {
            let before = before.map(|b| &b.records);
            PartClient::open(&client, &table, kind, queries[kind as usize], progress.as_ref(), before)
        };
        let records = open(PartKind::Records).await?;
        let changes = match table.changes() {
            Some(_) => Some(open(PartKind::Changes).await?),
            None => None,
        };
        let keys = OnceCell::new();
        // A directory of keys that was fetched stays, if it is the same.
        if let Some(same) = before.and_then(|b| b.keys.get()).filter(|k| k.is(&table, PartKind::Keys)) {
            let _ = keys.set(PartClient { fetched: 0, ..same.clone() });
        }
        let new_keys = OnceCell::new();
        Ok(Self { client, table, records, changes, keys, new_keys, queries, columns, progress })
    }

    /// The table as it is now: at the server's newest epoch. What did not change is not fetched again.
    ///
    /// # Errors
    /// As [`Client::table`].
    pub async fn refresh(&self) -> Result<Self, Error> {
        self.client.open(self.table.name(), self.progress.clone(), Some(self)).await
    }

    /// What the table says of itself.
    #[must_use]
    pub fn description(&self) -> &TableDescription {
        &self.table
    }

    /// Bytes of hints that had to be fetched so far; 0 where they were cached.
    #[must_use]
    pub fn hint_bytes_fetched(&self) -> u64 {
        let parts = [Some(&self.records), self.changes.as_ref(), self.keys.get(), self.new_keys.get()];
        parts.into_iter().flatten().map(|part| part.fetched).sum()
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
        let base_rows = self.table.base_rows();
        let by_number = |lookup: &blindcore_lookup::Client, index: &u64| {
            Ok(Selection::index(&lookup.params().geometry, *index)?)
        };
        // A row is asked for in the base and among those that came later, whichever holds it; in the other it is
        // row 0.
        let in_base: Vec<u64> = indices.iter().map(|i| if *i < base_rows { *i } else { 0 }).collect();
        if !self.table.is_keyed() {
            let base = self.ask(&self.records, in_base, by_number).await?;
            let numbers = indices.iter().map(|i| Zeroizing::new(i.to_le_bytes().to_vec())).collect();
            let changes = self.changes_of(numbers).await?;
            let found = |((slot, change), index): ((Slot, Result<Option<Found>, Error>), &u64)| {
                let change = change?;
                let open =
                    || self.records.proven((*index).into(), &slot).ok_or_else(|| self.wrong(&self.records));
                let bytes = if *index < base_rows { Some(open()?) } else { None };
                match combined(bytes, change.as_ref()) {
                    Some(bytes) => Ok(self.lookup(
                        (slot.traffic, slot.ms),
                        change.as_ref(),
                        Some(self.record(None, bytes)?),
                    )),
                    None if *index < base_rows || change.as_ref().is_some_and(|c| c.bytes.is_some()) => {
                        Ok(self.lookup((slot.traffic, slot.ms), change.as_ref(), None))
                    }
                    None => Err(self.garbage("a row that was added is nowhere")),
                }
            };
            return base.into_iter().zip(changes).zip(indices).map(found).collect();
        }
        if self.table.keys().is_none() {
            return Err(Error::NotIndexed { table: self.name() });
        }
        let part = self.keys(PartKind::Keys).await?;
        let slots = self.ask(part, in_base, by_number).await?;
        let of = |i: &u64| i.checked_sub(base_rows).unwrap_or(0);
        let (new_part, added): (_, Vec<Option<Slot>>) = if self.table.part(PartKind::NewKeys).is_some() {
            let part = self.keys(PartKind::NewKeys).await?;
            let added = self.ask(part, indices.iter().map(of).collect(), by_number);
            (part, added.await?.into_iter().map(Some).collect())
        } else {
            (part, slots.iter().map(|_| None).collect())
        };
        // A slot that holds no key, or a wrong one, is looked up like any other, as the empty key: a server must not
        // see which of its answers made sense.
        let keys: Vec<_> = slots
            .iter()
            .zip(&added)
            .zip(indices)
            .map(|((slot, added), index)| {
                let (part, number, slot) = match added {
                    Some(added) if *index >= base_rows => (new_part, of(index), added),
                    _ => (part, *index, slot),
                };
                let opened = part.proven(number.into(), slot).ok_or_else(|| self.wrong(part))?;
                decode_key_slot(opened).ok_or_else(|| self.garbage("the slot of its key holds none"))
            })
            .collect();
        let asked =
            keys.iter().map(|key| Zeroizing::new(key.as_ref().map_or(vec![], |k| k.to_vec()))).collect();
        let records = self.records_of(asked).await?;
        let mut lookups = Vec::with_capacity(slots.len());
        for (((slot, added), key), record) in slots.iter().zip(&added).zip(keys).zip(records) {
            key?;
            let mut lookup = record?;
            // Rows are gone only where something changed.
            if lookup.found.is_none() && self.changes.is_none() {
                return Err(self.garbage("the key of this row is not in the table"));
            }
            for slot in [Some(slot), added.as_ref()].into_iter().flatten() {
                lookup.bytes.add(slot.traffic);
                lookup.ms.add(slot.ms);
            }
            lookups.push(lookup);
        }
        Ok(lookups)
    }

    /// A directory of keys, fetched once.
    async fn keys(&self, kind: PartKind) -> Result<&PartClient, Error> {
        let cell = if kind == PartKind::Keys { &self.keys } else { &self.new_keys };
        let queries = self.queries[kind as usize];
        let progress = self.progress.as_ref();
        cell.get_or_try_init(|| PartClient::open(&self.client, &self.table, kind, queries, progress, None))
            .await
    }

    /// What is said of each of these keys or row numbers since the base was built; nothing where nothing changed. An
    /// error for the whole only where the server knows of it.
    async fn changes_of(
        &self,
        keys: Vec<Zeroizing<Vec<u8>>>,
    ) -> Result<Vec<Result<Option<Found>, Error>>, Error> {
        let Some(part) = &self.changes else { return Ok(keys.iter().map(|_| Ok(None)).collect()) };
        let blocks = self.table.changes().map_or(1, |c| c.blocks);
        let found =
            self.by_key(part, keys, blocks, |table| table.changes_index().expect("changes have an index"));
        Ok(found.await?.into_iter().map(|found| found.map(Some)).collect())
    }

    /// The records of keys in a keyed part. Each takes as many queries as the longest, so that a server doesn't see
    /// how long one is. An error for the whole only where the server knows of it.
    async fn by_key(
        &self,
        part: &PartClient,
        keys: Vec<Zeroizing<Vec<u8>>>,
        blocks: u32,
        index: fn(&TableDescription) -> &Index,
    ) -> Result<Vec<Result<Found, Error>>, Error> {
        let targets: Vec<Block> =
            keys.iter().flat_map(|key| (0..blocks).map(move |block| (key.clone(), block))).collect();
        let table = self.table.clone();
        let slots = self
            .ask(part, targets.clone(), move |_, (key, block)| Ok(index(&table).select_block(key, *block).0));
        let slots = slots.await?;
        let of_a_key = |(slots, targets): (&[Slot], &[Block])| {
            let mut found = Found { bytes: None, traffic: Traffic::default(), ms: Timings::default() };
            let mut ended = false;
            for (slot, (key, block)) in slots.iter().zip(targets) {
                found.traffic.add(slot.traffic);
                found.ms.add(slot.ms);
                let index = index(&self.table);
                let fingerprint: Zeroizing<[u8; FINGERPRINT_BYTES]> = index.select_block(key, *block).1;
                if ended || keyword::open(&slot.bytes, &fingerprint).is_none() {
                    ended = true;
                    continue;
                }
                let proven = part.proven(*index.order(key, *block), slot).ok_or_else(|| self.wrong(part))?;
                let bytes = &proven[FINGERPRINT_BYTES..];
                found.bytes.get_or_insert_with(Zeroizing::default).extend_from_slice(bytes);
            }
            Ok(found)
        };
        let blocks = blocks as usize;
        Ok(slots.chunks(blocks).zip(targets.chunks(blocks)).map(of_a_key).collect())
    }

    fn name(&self) -> String {
        self.table.name().to_owned()
    }

    fn garbage(&self, why: impl ToString) -> Error {
        Error::Garbage { table: self.name(), why: why.to_string() }
    }

    fn wrong(&self, part: &PartClient) -> Error {
        Error::WrongAnswer { table: self.name(), part: part.kind }
    }

    /// Records by key: an error for the whole only where the server knows of it.
    async fn records_of(&self, keys: Vec<Zeroizing<Vec<u8>>>) -> Result<Vec<Result<Lookup, Error>>, Error> {
        let base = self.by_key(&self.records, keys.clone(), self.table.blocks(), |table| {
            table.index().expect("keyed tables have an index")
        });
        let base = base.await?;
        let changes = self.changes_of(keys.clone()).await?;
        type Answers = (Result<Found, Error>, Result<Option<Found>, Error>);
        let open = |((base, change), key): (Answers, Zeroizing<Vec<u8>>)| {
            let (base, change) = (base?, change?);
            let record = combined(base.bytes.as_ref().map(|b| &b[..]), change.as_ref());
            let record = record.map(|bytes| self.record(Some(key.to_vec()), bytes)).transpose()?;
            Ok(self.lookup((base.traffic, base.ms), change.as_ref(), record))
        };
        Ok(base.into_iter().zip(changes).zip(keys).map(open).collect())
    }

    fn record(&self, key: Option<Vec<u8>>, bytes: &[u8]) -> Result<Record, Error> {
        let values = decode_record(bytes, self.columns.len()).map_err(|e| self.garbage(e))?;
        Ok(Record { key, values: self.columns.iter().cloned().zip(values).collect() })
    }

    fn lookup(
        &self,
        (traffic, mut ms): (Traffic, Timings),
        change: Option<&Found>,
        found: Option<Record>,
    ) -> Lookup {
        let mut bytes = Traffic { hint: self.hint_bytes_fetched(), ..traffic };
        if let Some(change) = change {
            bytes.add(change.traffic);
            ms.add(change.ms);
        }
        Lookup { found, bytes, ms }
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
        before: Option<&PartClient>,
    ) -> Result<Self, Error> {
        let missing = || Error::Protocol { what: format!("its table has no part {kind}") };
        let part = table.part(kind).ok_or_else(missing)?;
        if most_queries == 0 {
            return Err(Error::Protocol { what: format!("it allows no query of part {kind}") });
        }
        let most_queries = (most_queries as usize).min(client.options.queries_per_request).max(1);
        if let Some(same) = before.filter(|p| p.is(table, kind)) {
            return Ok(Self { most_queries, fetched: 0, ..same.clone() });
        }
        let (hint, fetched) = Fetch { client, table, kind, part, progress }.run().await?;
        let words = Arc::new(Start(hint.clone(), 4 * part.params.hint_words()));
        let lookup = Arc::new(blindcore_lookup::Client::new(part.params, words)?);
        Ok(Self { kind, part: *part, lookup, hint, most_queries, fetched })
    }

    /// What is in a slot beside its proof; nothing where that is not what the table's digest says. `id` is what the slot
    /// is found by.
    fn proven<'a>(&self, id: u128, slot: &'a Slot) -> Option<&'a [u8]> {
        match &self.part.proofs {
            None => Some(&slot.bytes),
            Some(proofs) => {
                let roots = &(*self.hint).as_ref()[4 * self.part.params.hint_words()..];
                proofs.open(self.kind, roots, id, &slot.bytes)
            }
        }
    }

    /// Whether it is this very part of this table.
    fn is(&self, table: &TableDescription, kind: PartKind) -> bool {
        self.kind == kind && table.part(kind) == Some(&self.part)
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
