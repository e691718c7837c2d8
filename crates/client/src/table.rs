//! Lookups in one table.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use blindcore_protocol::{
    self as protocol, ClientKeys, Error as LookupError, KeyNeed, Outcome, Policy, Record, Request, Step,
    Table, Workers,
};
use blindcore_units::SharedProgress;
use blindcore_wire::{MAX_TABLE_BYTES, PartKind, Reason, TableDescription, proto};
use prost::Message;
use tokio::sync::OnceCell;

use crate::background::blocking;
use crate::epochs::Epochs;
use crate::error::refused;
use crate::hint::Fetching;
use crate::registered::Registering;
use crate::waiting::Waiting;
use crate::{Client, Error, Options};

/// Bytes that gRPC puts before a message.
const FRAME_BYTES: usize = 5;

/// A table, ready for lookups at one epoch.
pub struct TableClient {
    client: Client,
    table: Arc<Table>,
    /// By kind of part: the bytes that were fetched of its hint, once it is there.
    fetched: [OnceCell<u64>; PartKind::ALL.len()],
    /// Bytes of keys that were registered.
    registered: AtomicU64,
    progress: Option<SharedProgress>,
}

/// What a lookup brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The record; none where the key is not there.
    pub found: Option<Record>,
    /// Whether the table's digest stands for that: see [`blindcore_protocol::Outcome::proved`].
    pub proved: bool,
    /// What travelled for it.
    pub bytes: Traffic,
    /// What took how long.
    pub ms: Timings,
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
    /// Of keys that were registered since the table was opened; 0 where the server had them.
    pub keys: u64,
}

/// Milliseconds that a lookup took: its share of those of the requests it was part of, so that lookups add up to what all of
/// them took.
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

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Tables of a server.
impl Client {
    /// Opens a table: fetches its description and, unless it is cached, its hint.
    ///
    /// # Errors
    /// The server has no table of this name, its description is refused, or its hint can't be fetched.
    pub async fn table(&self, name: &str) -> Result<TableClient, Error> {
        self.table_with(name, None).await
    }

    /// Opens a table, telling how far its hints are, in bytes of stage `hint`.
    ///
    /// # Errors
    /// As [`Client::table`].
    pub async fn table_with(
        &self,
        name: &str,
        progress: Option<SharedProgress>,
    ) -> Result<TableClient, Error> {
        self.open(name, progress, None).await
    }

    /// Opens a table, taking over from `before` what did not change since.
    pub(crate) async fn open(
        &self,
        name: &str,
        progress: Option<SharedProgress>,
        before: Option<&TableClient>,
    ) -> Result<TableClient, Error> {
        const WHAT: &str = "a table's description";
        let request = Table::request(name)?;
        let mut grpc = self.grpc.clone().max_decoding_message_size(MAX_TABLE_BYTES);
        let mut waiting = Waiting::new(&self.options, progress.as_ref());
        let answer = loop {
            let answer = self.within(WHAT, grpc.get_table(request.clone())).await;
            match answer.and_then(|answer| answer.map_err(|s| refused(&s, WHAT, name, 0))) {
                Ok(answer) => break answer,
                Err(error) => waiting.after(error).await?,
            }
        };
        let Options { trust, allow_rollback, hint_bytes, queries_per_request, .. } = *self.options;
        let epochs = match (trust.remembers(name), self.options.cache.path()?) {
            (Some(seen), Some(cache)) => Some(Epochs::open(&cache, seen)?),
            _ => None,
        };
        let newest = epochs.as_ref().map(Epochs::newest).transpose()?.flatten();
        let policy = Policy { trust, newest, allow_rollback, hint_bytes, queries_per_request };
        let table = Table::open(name, answer, &policy, before.map(TableClient::table))?;
        if let Some(epochs) = epochs {
            epochs.remember(table.description().epoch(), allow_rollback)?;
        }
        TableClient::open(self.clone(), table, progress).await
    }
}

impl TableClient {
    pub(crate) async fn open(
        client: Client,
        table: Table,
        progress: Option<SharedProgress>,
    ) -> Result<Self, Error> {
        let (fetched, registered) = Default::default();
        let this = Self { client, table: Arc::new(table), fetched, registered, progress };
        for kind in this.table.always_asked() {
            this.fetch(kind).await?;
        }
        Ok(this)
    }

    /// The table as it is now: at the server's newest epoch. What did not change is not fetched again.
    ///
    /// # Errors
    /// As [`Client::table`].
    pub async fn refresh(&self) -> Result<Self, Error> {
        let name = self.table.description().name();
        self.client.open(name, self.progress.clone(), Some(self)).await
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// What the table says of itself.
    #[must_use]
    pub fn description(&self) -> &TableDescription {
        self.table.description()
    }

    /// Bytes of hints that had to be fetched so far; 0 where they were cached.
    #[must_use]
    pub fn hint_bytes_fetched(&self) -> u64 {
        self.fetched.iter().filter_map(OnceCell::get).sum()
    }

    /// Bytes of keys that were registered since the table was opened; 0 where its scheme has none, or the server had them.
    #[must_use]
    pub fn key_bytes_registered(&self) -> u64 {
        self.registered.load(Ordering::Relaxed)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.client.options
    }

    pub(crate) fn progress(&self) -> Option<&SharedProgress> {
        self.progress.as_ref()
    }

    /// How many keys' queries a request holds.
    pub(crate) fn keys_per_request(&self) -> usize {
        self.table.keys_per_request()
    }

    /// Gets what is missing of a part, once.
    async fn fetch(&self, kind: PartKind) -> Result<(), Error> {
        let fetch = || async {
            let Some(fetch) = self.table.missing(kind)? else { return Ok(0) };
            let (client, table, progress) = (&self.client, &*self.table, self.progress.as_ref());
            let fetching = Fetching { client, table, fetch, progress };
            let mut waiting = Waiting::new(&client.options, progress);
            let (kept, fetched) = loop {
                match fetching.run().await {
                    Ok(got) => break got,
                    // A hint of an epoch that is gone can't be waited for.
                    Err(error @ Error::Lookup(LookupError::StaleEpoch { .. })) => return Err(error),
                    Err(error) => waiting.after(error).await?,
                }
            };
            self.table.keep(kept)?;
            Ok(fetched)
        };
        self.fetched[kind as usize].get_or_try_init(fetch).await.map(|_| ())
    }

    /// Looks a key up, given as [`blindcore_wire::codec::encode_key`] writes it: as a person does.
    ///
    /// # Errors
    /// The table is not keyed, this is not a key, the server can't be asked or refuses, or what comes back is
    /// not a record. See [`crate::LookupError`] on why nothing is ever tried again.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Lookup, Error> {
        one(self.get_many(&[key]).await?)
    }

    /// Looks keys up, in as few requests as the server allows. Each is a query of its own, also where a key
    /// comes twice. All are sent whatever comes back.
    ///
    /// # Errors
    /// As [`TableClient::get`].
    pub async fn get_many(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Lookup>, Error> {
        self.get_each(keys).await?.into_iter().collect()
    }

    /// Looks keys up as [`TableClient::get_many`], with an error for each key whose answer is damaged or wrong.
    ///
    /// # Errors
    /// As [`TableClient::get`], but for errors of answers.
    pub async fn get_each(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Result<Lookup, Error>>, Error> {
        self.run(protocol::Lookup::by_key(&self.table, keys)?).await
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
        self.run(protocol::Lookup::by_row(&self.table, indices)?).await?.into_iter().collect()
    }

    /// Does what a lookup says until it is done.
    async fn run(&self, mut lookup: protocol::Lookup) -> Result<Vec<Result<Lookup, Error>>, Error> {
        // Of each query.
        let mut costs: Vec<(Traffic, Timings)> = Vec::new();
        let mut waiting = Waiting::new(self.options(), self.progress());
        loop {
            let (step, prepared, back) = blocking(move || {
                let cores = Cores::default();
                let step = lookup.step_on(&cores)?;
                Ok((step, cores.times(), lookup))
            })
            .await?;
            lookup = back;
            match step {
                Step::Need(fetch) => self.fetch(fetch.kind()).await?,
                Step::Keys(need) => match self.keys(need).await {
                    Ok(keys) => lookup.take_keys(keys),
                    Err(error) => waiting.after(error).await?,
                },
                Step::Send(request) => {
                    let (response, traffic, timings) = match self.send(request).await {
                        Ok(answered) => answered,
                        // The server knows of it. Each query stays one that was sent once.
                        Err(error @ Error::Lookup(LookupError::StaleEpoch { .. })) => return Err(error),
                        // It went by the keys' digest alone, so that what is asked next tells nothing.
                        Err(Error::Lookup(
                            refusal @ LookupError::Refused { reason: Some(Reason::UnknownKeys), .. },
                        )) => {
                            lookup.forgotten(refusal)?;
                            continue;
                        }
                        Err(error) => {
                            waiting.after(error).await?;
                            lookup.again();
                            continue;
                        }
                    };
                    waiting = Waiting::new(self.options(), self.progress());
                    let (decoded, back) = blocking(move || {
                        let cores = Cores::default();
                        lookup.receive_on(&response, &cores)?;
                        Ok((cores.times(), lookup))
                    })
                    .await?;
                    lookup = back;
                    let each = prepared.into_iter().zip(decoded);
                    costs.extend(
                        each.map(|(prepare, decode)| (traffic, Timings { prepare, decode, ..timings })),
                    );
                }
                Step::Done(outcomes) => {
                    return Ok(outcomes.into_iter().map(|outcome| self.lookup(outcome, &costs)).collect());
                }
                _ => unreachable!("each response is given as it comes"),
            }
        }
    }

    /// Keys for one request, which the server has.
    async fn keys(&self, need: KeyNeed) -> Result<ClientKeys, Error> {
        let (client, progress) = (&self.client, self.progress.as_ref());
        let (table, epoch) = (self.description().name(), self.description().epoch());
        let (keys, sent) = Registering { client, table, epoch, need, progress }.run().await?;
        self.registered.fetch_add(sent, Ordering::Relaxed);
        Ok(keys)
    }

    /// Sends a request, once. Gives its response, and what each of its queries cost.
    async fn send(&self, request: Request) -> Result<(proto::QueryResponse, Traffic, Timings), Error> {
        const WHAT: &str = "a query";
        let count = request.queries() as u64;
        let up = (request.message().encoded_len() + FRAME_BYTES) as u64 / count;
        let limit = request.max_response_bytes();
        let mut grpc =
            self.client.grpc.clone().max_decoding_message_size(limit).max_encoding_message_size(usize::MAX);
        let (sent, description) = (Instant::now(), self.description());
        let response = self.client.within(WHAT, grpc.query(request.into_message())).await?;
        let response = response.map_err(|s| refused(&s, WHAT, description.name(), description.epoch()))?;
        let query = ms(sent.elapsed()) / count as f64;
        let down = (response.encoded_len() + FRAME_BYTES) as u64 / count;
        let server = response.server_micros as f64 / 1e3 / count as f64;
        Ok((
            response,
            Traffic { up, down, ..Traffic::default() },
            Timings { query, server, ..Timings::default() },
        ))
    }

    fn lookup(&self, outcome: Outcome, costs: &[(Traffic, Timings)]) -> Result<Lookup, Error> {
        let (hint, keys) = (self.hint_bytes_fetched(), self.key_bytes_registered());
        let mut bytes = Traffic { hint, keys, ..Traffic::default() };
        let mut ms = Timings::default();
        for query in outcome.queries.into_iter().flatten() {
            let (traffic, timings) = costs[query as usize];
            bytes.add(traffic);
            ms.add(timings);
        }
        Ok(Lookup { found: outcome.found?, proved: outcome.proved, bytes, ms })
    }
}

fn one(lookups: Vec<Lookup>) -> Result<Lookup, Error> {
    let none = || protocol::Error::Protocol { what: "it left a query out".into() };
    Ok(lookups.into_iter().next().ok_or_else(none)?)
}

/// All cores, and how many milliseconds each job took.
#[derive(Default)]
struct Cores(Mutex<Vec<f64>>);

impl Cores {
    fn times(self) -> Vec<f64> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers for Cores {
    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        let times = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times().resize(count, 0.0);
        let timed = |i| {
            let started = Instant::now();
            job(i);
            times()[i] = ms(started.elapsed());
        };
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let each = count.div_ceil(cores).max(1);
        std::thread::scope(|scope| {
            // The first share is this thread's.
            for first in (each..count).step_by(each) {
                scope.spawn(move || (first..count.min(first + each)).for_each(timed));
            }
            (0..count.min(each)).for_each(timed);
        });
    }
}
