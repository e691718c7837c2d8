//! What every request sees: tables, their queues, and the checks that let a request in.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use blindcore_lookup::RegisteredKeys;
use blindcore_wire::{PartDescription, PartKind, Reason, SHORT_HINT_BYTES, TableDescription, proto};
use bytes::Bytes;

use crate::batcher::{Batcher, Reply};
use crate::clients::Client;
use crate::config::check;
use crate::front::Front;
use crate::permit::MemoryPermit;
use crate::refusal::Refusal;
use crate::registered::Registered;
use crate::sizes::REQUEST_SLACK;
use crate::stats::{KeyCounters, PartCounters, add};
use crate::{Config, Error, Hint, Part, Stats, Table};

/// Tables whose listing fits [`blindcore_wire::MAX_LISTING_BYTES`], however long their names.
const MAX_TABLES: u64 = 3000;

/// A part with its queue.
pub(crate) struct HostedPart {
    pub(crate) hint: Arc<dyn Hint>,
    pub(crate) description: PartDescription,
    /// The most queries in a request.
    pub(crate) most_queries: usize,
    query_bytes: usize,
    answer_bytes: usize,
    /// Bytes of keys that clients register for it; 0 where its scheme has none.
    keys_bytes: usize,
    batcher: Batcher,
    /// Whether buckets of the last pass were not answered.
    lacking: Arc<AtomicBool>,
    pub(crate) counters: Arc<PartCounters>,
}

impl HostedPart {
    fn start(
        table: &str,
        part: Part,
        says: &PartDescription,
        config: &Config,
        counters: Arc<PartCounters>,
    ) -> Result<Self, Error> {
        let hint = part.hint;
        let params = *part.server.params();
        let (query_bytes, answer_bytes) = (says.query_bytes(), says.answer_bytes());
        let fits = config.request_bytes / query_bytes.max(answer_bytes);
        let server = part.server;
        let lacking = Arc::new(AtomicBool::new(false));
        let lacks = lacking.clone();
        let answer = move |queries: &[&[u8]], keys: &[&RegisteredKeys]| {
            let answered = server.answer_under(queries, keys).map_err(|e| e.to_string())?;
            lacks.store(!answered.failed.is_empty(), Ordering::Relaxed);
            if let [(bucket, error), ..] = &answered.failed[..] {
                let failed = answered.failed.len();
                tracing::error!(bucket, failed, %error, "buckets of batches were not answered, and clients were told so");
            }
            Ok(answered.answers)
        };
        let batcher =
            Batcher::start(Box::new(answer), config.gather, config.waiting_queries, counters.clone())
                .map_err(|source| Error::Thread { table: table.to_owned(), source })?;
        Ok(Self {
            hint,
            description: *says,
            most_queries: config.queries_per_request.min(fits).max(1),
            query_bytes,
            answer_bytes,
            keys_bytes: params.registered_bytes(),
            batcher,
            lacking,
            counters,
        })
    }

    /// Whether it is known not to serve: its last pass failed, in one bucket at least, or its hint does.
    pub(crate) fn fails(&self) -> bool {
        self.batcher.failed() || self.lacking.load(Ordering::Relaxed) || self.hint.fails()
    }

    /// Bytes that a request and its answer may take.
    fn needed(&self) -> usize {
        (self.most_queries * (self.query_bytes + self.answer_bytes)).max(self.keys_bytes) + REQUEST_SLACK
    }

    /// Bytes of the longest request of it.
    fn request_bytes(&self) -> usize {
        (self.most_queries * self.query_bytes).max(self.keys_bytes) + REQUEST_SLACK
    }
}

/// A table at one epoch.
pub(crate) struct HostedTable {
    pub(crate) description: TableDescription,
    /// Rows that are there.
    rows: u64,
    /// Those of the base are shared by all epochs over it.
    parts: BTreeMap<PartKind, Arc<HostedPart>>,
    /// When it was last asked for, in milliseconds since the start.
    last_used: AtomicU64,
}

impl HostedTable {
    /// The table in short.
    pub(crate) fn summary(&self) -> proto::TableSummary {
        proto::TableSummary { rows: self.rows, ..self.description.summary() }
    }

    /// The part, if the table has it.
    pub(crate) fn part(&self, kind: PartKind) -> Option<&Arc<HostedPart>> {
        self.parts.get(&kind)
    }

    /// How many of its parts are known not to be served.
    fn failing(&self) -> usize {
        self.parts.values().filter(|part| part.fails()).count()
    }

    /// Bytes that the description takes while it is sent, whichever way: its seeds once, and once as text.
    pub(crate) fn description_bytes(&self) -> usize {
        let columns: usize = self.description.value_columns().iter().map(|c| c.len() + 16).sum();
        let seeds = self.description.seeds().len()
            + self.description.changes().map_or(0, |c| c.seeds.len())
            + self.description.batches().map_or(0, |b| b.seeds.len());
        3 * seeds + 2 * columns + REQUEST_SLACK
    }

    pub(crate) fn to_proto(&self) -> proto::GetTableResponse {
        let queries = |kind| self.part(kind).map_or(0, |p| p.most_queries as u32);
        let mut table = self.description.to_proto();
        for kind in PartKind::ALL {
            if let (Some(part), Some(hosted)) = (table.part_mut(kind), self.part(kind)) {
                part.hint = short(&*hosted.hint);
            }
        }
        proto::GetTableResponse::new(table, queries)
    }
}

/// A hint that is short enough to come with the description; none where it isn't, or can't be read, which who asks for it
/// learns.
fn short(hint: &dyn Hint) -> Option<Bytes> {
    let mut bytes =
        vec![0; usize::try_from(hint.bytes()).ok().filter(|len| (1..=SHORT_HINT_BYTES).contains(len))?];
    hint.read_at(0, &mut bytes).ok()?;
    Some(bytes.into())
}

/// A table at all its epochs that may still be asked for.
struct Hosted {
    /// The newest first.
    epochs: Vec<Arc<HostedTable>>,
    /// What its parts did, whatever the epoch.
    counters: BTreeMap<PartKind, Arc<PartCounters>>,
}

/// What is served of a table.
pub(crate) struct Epochs {
    pub(crate) name: String,
    pub(crate) newest: u64,
    pub(crate) served: u64,
    pub(crate) rows: u64,
    pub(crate) parts: Vec<PartKind>,
    /// Parts that are known not to be served.
    pub(crate) failing: u64,
}

pub(crate) struct State {
    tables: RwLock<BTreeMap<String, Hosted>>,
    pub(crate) front: Arc<Front>,
    keys: Registered,
    key_counters: Arc<KeyCounters>,
    /// The most bytes in any request.
    request_bytes: AtomicUsize,
    started: Instant,
}

impl State {
    pub(crate) fn new(config: &Config, tables: Vec<Table>) -> Result<Self, Error> {
        config.check()?;
        let key_counters = Arc::<KeyCounters>::default();
        let state = Self {
            tables: RwLock::default(),
            front: Front::new(config),
            keys: Registered::new(&config.keys, key_counters.clone())?,
            key_counters,
            request_bytes: AtomicUsize::new(REQUEST_SLACK),
            started: Instant::now(),
        };
        for table in tables {
            let name = table.description.name().to_owned();
            if state.read().contains_key(&name) {
                return Err(Error::DuplicateTable { name });
            }
            state.publish(table)?;
        }
        Ok(state)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Hosted>> {
        // A writer leaves it whole at every step.
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Hosted>> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most bytes in any request; more once a table with larger ones is published.
    pub(crate) fn request_bytes(&self) -> usize {
        self.request_bytes.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Serves a table from now on: a new one, or a new epoch of one that is served. Requests for the epoch before
    /// are answered as long as they come.
    pub(crate) fn publish(&self, table: Table) -> Result<(), Error> {
        let Table { description, rows, parts: mut given } = table;
        let name = description.name().to_owned();
        let (before, mut counters) = match self.read().get(&name) {
            None => (None, BTreeMap::new()),
            Some(hosted) => (hosted.epochs.first().cloned(), hosted.counters.clone()),
        };
        let mut parts = BTreeMap::new();
        for (kind, says) in description.parts() {
            let part = match given.remove(&kind) {
                Some(part) => {
                    let counters = counters.entry(kind).or_default().clone();
                    Arc::new(HostedPart::start(&name, part, says, &self.front.config, counters)?)
                }
                None => {
                    let same = before.as_ref().and_then(|t| t.part(kind)).filter(|p| p.description == *says);
                    let what = "that it is absent";
                    same.filter(|_| kind.is_base()).cloned().ok_or(Error::Mismatch {
                        table: name.clone(),
                        part: kind,
                        what,
                    })?
                }
            };
            let config = &self.front.config;
            config.keys.allows(&says.params)?;
            let (needed, memory) = (part.needed() as u64, config.memory_bytes as u64);
            check(
                "memory for requests, in bytes,",
                memory,
                needed,
                u64::MAX,
                "allow more: --memory, or request_memory_mib",
            )?;
            match config.memory_per_client {
                None => self.front.clients.allow_memory(part.needed()),
                Some(memory) => {
                    let what = "memory_mib_per_client, in bytes,";
                    check(what, memory as u64, needed, u64::MAX, "allow more memory")?;
                }
            }
            let (least, waiting) = (part.most_queries as u64, config.waiting_queries as u64);
            let remedy = "allow a whole request to wait";
            check("waiting_queries", waiting, least, u64::MAX, remedy)?;
            let waiting = config.waiting_per_client as u64;
            check("waiting_per_client", waiting, least, u64::MAX, remedy)?;
            parts.insert(kind, part);
        }
        let request_bytes = parts.values().map(|part| part.request_bytes()).max();
        self.request_bytes.fetch_max(request_bytes.unwrap_or(0), Ordering::Relaxed);
        let last_used = AtomicU64::new(self.now());
        let new = Arc::new(HostedTable { description, rows, parts, last_used });
        let mut tables = self.write();
        let most = MAX_TABLES - u64::from(!tables.contains_key(&name));
        check("number of tables", tables.len() as u64, 0, most, "serve the rest elsewhere")?;
        let hosted =
            tables.entry(name).or_insert_with(|| Hosted { epochs: Vec::new(), counters: BTreeMap::new() });
        hosted.counters = counters;
        // A table that was built again may count epochs from 1.
        hosted.epochs.retain(|t| t.description.epoch() != new.description.epoch());
        hosted.epochs.insert(0, new);
        hosted.epochs.truncate(1 + self.front.config.old_epochs);
        drop(tables);
        self.forget();
        Ok(())
    }

    /// Lets epochs go that nobody asked for lately.
    pub(crate) fn forget(&self) {
        let now = self.now();
        let linger = self.front.config.epoch_linger.as_millis() as u64;
        let idle = |t: &HostedTable| now.saturating_sub(t.last_used.load(Ordering::Relaxed)) > linger;
        if !self.read().values().any(|h| h.epochs.iter().skip(1).any(|t| idle(t))) {
            return;
        }
        let mut gone = Vec::new();
        for (name, hosted) in self.write().iter_mut() {
            let mut newest = true;
            hosted.epochs.retain(|t| {
                let keep = std::mem::take(&mut newest) || !idle(t);
                if !keep {
                    gone.push((name.clone(), t.clone()));
                }
                keep
            });
        }
        for (table, old) in gone {
            tracing::info!(table, epoch = old.description.epoch(), "an epoch that nobody asks for is gone");
        }
    }

    /// What is served of each table, in order of their names.
    pub(crate) fn epochs(&self) -> Vec<Epochs> {
        let tables = self.read();
        let newest = tables.iter().filter_map(|(name, hosted)| Some((name, hosted, hosted.epochs.first()?)));
        newest
            .map(|(name, hosted, newest)| Epochs {
                name: name.clone(),
                newest: newest.description.epoch(),
                served: hosted.epochs.len() as u64,
                rows: newest.description.rows(),
                parts: newest.parts.keys().copied().collect(),
                failing: newest.failing() as u64,
            })
            .collect()
    }

    /// How many tables have something at their newest epoch that is known not to be served.
    pub(crate) fn failing(&self) -> usize {
        self.read().values().filter_map(|hosted| hosted.epochs.first()).filter(|t| t.failing() > 0).count()
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut parts = Vec::new();
        for (name, hosted) in self.write().iter_mut() {
            // Those that an epoch to come may have are counted too.
            for kind in PartKind::ALL {
                parts.push((name.clone(), kind, hosted.counters.entry(kind).or_default().clone()));
            }
        }
        Stats::new(parts, self.front.totals.clone(), self.key_counters.clone())
    }

    /// Bytes that the list of tables takes while it is sent.
    pub(crate) fn listing_bytes(&self) -> usize {
        REQUEST_SLACK + self.read().keys().map(|name| 2 * name.len() + 128).sum::<usize>()
    }

    /// Every table at its newest epoch, in order of their names.
    pub(crate) fn newest(&self) -> Vec<Arc<HostedTable>> {
        self.read().values().filter_map(|hosted| hosted.epochs.first().cloned()).collect()
    }

    /// A table at an epoch, or at its newest.
    pub(crate) fn table(&self, name: &str, epoch: Option<u64>) -> Result<Arc<HostedTable>, Refusal> {
        let epochs = self.held(name)?;
        let found = match epoch {
            None => epochs.first(),
            Some(epoch) => epochs.iter().find(|t| t.description.epoch() == epoch),
        };
        let now = epochs.first().map_or(0, |t| t.description.epoch());
        let found = found.ok_or_else(|| {
            let epoch = epoch.unwrap_or_default();
            let message = format!(
                "table {name} is at epoch {now}, the request is for epoch {epoch}; open the table again"
            );
            Refusal::new(Reason::StaleEpoch, message)
        })?;
        found.last_used.store(self.now(), Ordering::Relaxed);
        Ok(found.clone())
    }

    /// A table at every epoch that is held, the newest first.
    fn held(&self, name: &str) -> Result<Vec<Arc<HostedTable>>, Refusal> {
        self.read().get(name).map(|hosted| hosted.epochs.clone()).ok_or_else(|| {
            // A name that no table can have is not repeated.
            let named = blindcore_wire::check_table_name(name).map_or("such a name", |()| name);
            Refusal::new(
                Reason::UnknownTable,
                format!("no table is called {named}; list the tables for what there is"),
            )
        })
    }

    pub(crate) fn part(
        &self,
        name: &str,
        epoch: Option<u64>,
        kind: Option<PartKind>,
    ) -> Result<(Arc<HostedTable>, PartKind, Arc<HostedPart>), Refusal> {
        let table = self.table(name, epoch)?;
        let kind = kind.ok_or_else(|| {
            Refusal::new(
                Reason::UnknownPart,
                "the request names no part that this server knows; use records, keys, changes, new-keys or batches",
            )
        })?;
        let part = table.part(kind).cloned().ok_or_else(|| {
            Refusal::new(
                Reason::UnknownPart,
                format!("table {name} has no part {kind}; its description says which it has"),
            )
        })?;
        Ok((table, kind, part))
    }

    /// The hint from an offset on.
    pub(crate) fn hint(
        &self,
        name: &str,
        epoch: Option<u64>,
        kind: Option<PartKind>,
        offset: u64,
    ) -> Result<(Arc<dyn Hint>, Range<u64>), Refusal> {
        let (table, kind, part) = self.part(name, epoch, kind)?;
        let len = part.hint.bytes();
        if offset > len {
            return Err(Refusal::new(
                Reason::WrongSize,
                format!("offset {offset} is past the {len} B of this hint; start again at 0"),
            ));
        }
        let bytes_out = len - offset;
        add(&part.counters.hint_bytes, bytes_out);
        let epoch = table.description.epoch();
        tracing::info!(table = name, %kind, epoch, offset, bytes_out, "hint");
        Ok((part.hint.clone(), offset..len))
    }

    /// Lets registered keys go that nobody used for long.
    pub(crate) async fn expire_keys(&self) {
        self.keys.expire().await;
    }

    /// Keeps and reads no more registered keys: from then on another server may.
    pub(crate) async fn close_keys(&self) {
        self.keys.close().await;
    }

    /// Keeps keys that a client registers.
    pub(crate) async fn register(
        &self,
        request: proto::RegisterKeysRequest,
        client: &Arc<Client>,
    ) -> Result<proto::RegisterKeysResponse, Refusal> {
        let proto::RegisterKeysRequest { table: name, part, keys_params, keys } = request;
        let kind = PartKind::from_proto(part);
        // A table that was built anew may have other parameters than its epoch before, in which clients still look up.
        let held = self.held(&name)?;
        let parts = held.iter().filter_map(|table| table.part(kind?));
        let mut params = parts.map(|part| part.description.params);
        let of_these = |digest: [u8; 32]| keys_params == digest[..];
        let Some(params) = params.find(|params| params.keys_digest().is_some_and(of_these)) else {
            let (_, kind, _) = self.part(&name, None, kind)?;
            let message = format!(
                "the keys were made with other parameters than those of table {name}, part {kind}; open the table again"
            );
            return Err(Refusal::new(Reason::WrongParameters, message));
        };
        client.may_register()?;
        self.keys.register(params, keys, &client.name).await?;
        Ok(proto::RegisterKeysResponse {})
    }

    /// Answers queries. What is checked is public: names, numbers and lengths.
    pub(crate) async fn query(
        &self,
        request: proto::QueryRequest,
        held: &Arc<MemoryPermit>,
        client: &Arc<Client>,
    ) -> Result<proto::QueryResponse, Refusal> {
        let started = Instant::now();
        let proto::QueryRequest { table: name, epoch, part, table_digest, queries, keys } = request;
        let (table, kind, part) = self.part(&name, Some(epoch), PartKind::from_proto(part))?;
        if table_digest != table.description.digest()[..] {
            return Err(Refusal::new(
                Reason::WrongParameters,
                format!(
                    "the queries were made for another table {name} of epoch {epoch} than this server has; open \
                     the table again"
                ),
            ));
        }
        let (size, bytes) = (part.query_bytes, queries.len());
        if bytes == 0 || bytes % size != 0 {
            return Err(Refusal::new(
                Reason::WrongSize,
                format!(
                    "{bytes} B of queries are not a whole number of queries of {size} B, at least one; make them \
                     with this table's parameters"
                ),
            ));
        }
        let (count, limit) = (bytes / size, part.most_queries);
        if count > limit {
            return Err(Refusal::new(
                Reason::TooLarge,
                format!("{count} queries in a request are over the limit of {limit}; send several requests"),
            ));
        }
        let params = part.description.params;
        let under = match params.registers_keys() {
            true => Some(self.keys.get(&keys, &params).await?),
            false if keys.is_empty() => None,
            false => {
                let message =
                    format!("queries of table {name}, part {kind}, are under no keys; ask them without");
                return Err(Refusal::new(Reason::WrongKeys, message));
            }
        };
        held.take(count * part.answer_bytes)?;
        let guard = (client.ask(count)?, held.clone());
        let queries = (0..count).map(|i| queries.slice(i * size..(i + 1) * size));
        let queue = part.batcher.ask(client.number, queries, under, Some(guard))?;
        let Reply { answers, pass_micros, passes, gathered } = queue.await.unwrap_or_else(|_| {
            Err(Refusal::new(Reason::Draining, "the server is shutting down; ask another one, or later"))
        })?;
        let server_micros = (started.elapsed().as_micros() as u64).max(1);
        add(&part.counters.requests, 1);
        add(&part.counters.bytes_in, bytes as u64);
        add(&part.counters.bytes_out, answers.len() as u64);
        tracing::info!(
            table = name,
            %kind,
            epoch,
            queries = count,
            bytes_in = bytes,
            bytes_out = answers.len(),
            micros = server_micros,
            pass_micros,
            passes,
            gathered,
            "query"
        );
        Ok(proto::QueryResponse { answers: answers.into(), server_micros })
    }
}
