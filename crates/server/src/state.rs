//! What every request sees: tables, their queues, and the checks that let a request in.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};
use std::time::Instant;

use blindcore_wire::{PartKind, Reason, TableDescription, proto};
use bytes::Bytes;

use crate::budget::{Budget, Held};
use crate::gather::{Gatherer, Reply};
use crate::grpc::HINT_BUFFERS;
use crate::refusal::Refusal;
use crate::stats::{PartCounters, TotalCounters, add};
use crate::{Config, Error, Part, Stats, Table};

/// Bytes of a request beside its queries: names, digests, lengths.
const REQUEST_SLACK: usize = 4096;

/// Tables whose listing fits [`blindcore_wire::MAX_LISTING_BYTES`], however long their names.
const MAX_TABLES: u64 = 3000;

/// A part with its queue.
pub(crate) struct HostedPart {
    pub(crate) hint: Bytes,
    pub(crate) hint_digest: [u8; 32],
    /// The most queries in a request.
    pub(crate) most_queries: usize,
    query_bytes: usize,
    answer_bytes: usize,
    gatherer: Gatherer,
    pub(crate) counters: Arc<PartCounters>,
}

impl HostedPart {
    fn start(table: &str, part: Part, config: &Config) -> Result<Self, Error> {
        let hint = part.hint_bytes();
        let params = *part.server.params();
        let (query_bytes, answer_bytes) = (params.query_bytes(), params.answer_bytes());
        let fits = config.request_bytes / query_bytes.max(answer_bytes);
        let counters = Arc::new(PartCounters::default());
        let server = part.server;
        let answer = move |queries: &[&[u8]]| {
            server.answer(queries).map(|(answers, _)| answers).map_err(|e| e.to_string())
        };
        let gatherer =
            Gatherer::start(Box::new(answer), config.gather, config.waiting_queries, counters.clone())
                .map_err(|source| Error::Thread { table: table.to_owned(), source })?;
        Ok(Self {
            hint,
            hint_digest: [0; 32],
            most_queries: config.queries_per_request.min(fits).max(1),
            query_bytes,
            answer_bytes,
            gatherer,
            counters,
        })
    }

    fn request_bytes(&self) -> usize {
        self.most_queries * self.query_bytes + REQUEST_SLACK
    }
}

pub(crate) struct HostedTable {
    pub(crate) description: TableDescription,
    records: HostedPart,
    keys: Option<HostedPart>,
}

impl HostedTable {
    /// The part, if the table has it.
    pub(crate) fn part(&self, kind: PartKind) -> Option<&HostedPart> {
        match kind {
            PartKind::Records => Some(&self.records),
            PartKind::Keys => self.keys.as_ref(),
        }
    }

    /// Bytes that the description takes while it is sent, whichever way: its seeds once, and once as text.
    pub(crate) fn description_bytes(&self) -> usize {
        let columns: usize = self.description.value_columns().iter().map(|c| c.len() + 16).sum();
        3 * self.description.seeds().len() + 2 * columns + REQUEST_SLACK
    }

    pub(crate) fn to_proto(&self) -> proto::GetTableResponse {
        proto::GetTableResponse {
            table: Some(self.description.to_proto()),
            records_queries: self.records.most_queries as u32,
            keys_queries: self.keys.as_ref().map_or(0, |k| k.most_queries as u32),
        }
    }
}

pub(crate) struct State {
    pub(crate) tables: BTreeMap<String, HostedTable>,
    pub(crate) budget: Arc<Budget>,
    /// The most bytes in any request.
    pub(crate) request_bytes: usize,
    pub(crate) ready: AtomicBool,
    /// What new connections are encrypted with.
    pub(crate) tls: RwLock<Option<Arc<rustls::ServerConfig>>>,
    pub(crate) totals: Arc<TotalCounters>,
}

impl State {
    pub(crate) fn new(config: &Config, tables: Vec<Table>) -> Result<Self, Error> {
        let mut hosted = BTreeMap::new();
        for Table { description, records, keys } in tables {
            let name = description.name().to_owned();
            if hosted.contains_key(&name) {
                return Err(Error::DuplicateTable { name });
            }
            let start = |part: Part, kind| {
                let mut part = HostedPart::start(&name, part, config)?;
                part.hint_digest = description.part(kind).map(|p| p.hint_digest).unwrap_or_default();
                Ok(part)
            };
            let records = start(records, PartKind::Records)?;
            let keys = keys.map(|keys| start(keys, PartKind::Keys)).transpose()?;
            hosted.insert(name, HostedTable { description, records, keys });
        }
        let parts = || hosted.values().flat_map(|t| [Some(&t.records), t.keys.as_ref()]).flatten();
        let request_bytes = parts().map(HostedPart::request_bytes).max().unwrap_or(REQUEST_SLACK);
        let needed = parts().map(|p| p.most_queries * (p.query_bytes + p.answer_bytes)).max().unwrap_or(0);
        let needed = (needed + REQUEST_SLACK).max(HINT_BUFFERS) as u64;
        let check = |what, got, min, max, remedy| {
            if (min..=max).contains(&got) {
                Ok(())
            } else {
                Err(Error::Range { what, got, min, max, remedy })
            }
        };
        let most = blindcore_lookup::MAX_GATHER as u64;
        check("queries in a pass", config.gather as u64, 1, most, "gather fewer or more")?;
        check("memory for requests", config.memory_bytes as u64, needed, u64::MAX, "allow more memory")?;
        check("number of tables", hosted.len() as u64, 0, MAX_TABLES, "serve the rest elsewhere")?;
        let most = parts().map(|p| p.most_queries as u64).max().unwrap_or(1);
        let remedy = "allow a whole request to wait";
        check("number of waiting queries", config.waiting_queries as u64, most, u64::MAX, remedy)?;
        check("number of connections", config.connections as u64, 1, 1 << 20, "allow some")?;
        Ok(Self {
            budget: Budget::new(config.memory_bytes),
            request_bytes,
            ready: AtomicBool::new(true),
            tls: RwLock::new(config.tls.clone()),
            totals: Arc::default(),
            tables: hosted,
        })
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut parts = Vec::new();
        for (name, table) in &self.tables {
            for kind in [PartKind::Records, PartKind::Keys] {
                if let Some(part) = table.part(kind) {
                    parts.push((name.clone(), kind, part.counters.clone()));
                }
            }
        }
        Stats::new(parts, self.totals.clone())
    }

    /// Every request that is refused passes here once.
    pub(crate) fn refused(&self, refusal: Refusal) -> Refusal {
        add(&self.totals.refused, 1);
        tracing::info!(reason = refusal.reason.as_str(), "refused");
        refusal
    }

    /// Bytes that the list of tables takes while it is sent.
    pub(crate) fn listing_bytes(&self) -> usize {
        REQUEST_SLACK + self.tables.keys().map(|name| 2 * name.len() + 128).sum::<usize>()
    }

    pub(crate) fn table(&self, name: &str) -> Result<&HostedTable, Refusal> {
        self.tables.get(name).ok_or_else(|| {
            // A name that no table can have is not repeated.
            let named = blindcore_wire::check_table_name(name).map_or("such a name", |()| name);
            Refusal::new(
                Reason::UnknownTable,
                format!("no table has {named}; list the tables for what there is"),
            )
        })
    }

    pub(crate) fn part(
        &self,
        name: &str,
        epoch: Option<u64>,
        kind: Option<PartKind>,
    ) -> Result<(&HostedTable, PartKind, &HostedPart), Refusal> {
        let table = self.table(name)?;
        let kind = kind.ok_or_else(|| {
            Refusal::new(
                Reason::UnknownPart,
                "the request names no part that this server knows; use records or keys",
            )
        })?;
        let part = table.part(kind).ok_or_else(|| {
            Refusal::new(
                Reason::UnknownPart,
                format!("table {name} has no part {kind}; its description says which it has"),
            )
        })?;
        let now = table.description.epoch();
        if let Some(epoch) = epoch.filter(|e| *e != now) {
            return Err(Refusal::new(
                Reason::StaleEpoch,
                format!(
                    "table {name} is at epoch {now}, the request is for epoch {epoch}; open the table again"
                ),
            ));
        }
        Ok((table, kind, part))
    }

    /// The hint from an offset on.
    pub(crate) fn hint(
        &self,
        name: &str,
        epoch: Option<u64>,
        kind: Option<PartKind>,
        offset: u64,
    ) -> Result<Bytes, Refusal> {
        let (table, kind, part) = self.part(name, epoch, kind)?;
        let len = part.hint.len();
        let Some(start) = usize::try_from(offset).ok().filter(|o| *o <= len) else {
            return Err(Refusal::new(
                Reason::WrongSize,
                format!("offset {offset} is past the {len} B of this hint; start again at 0"),
            ));
        };
        let rest = part.hint.slice(start..);
        add(&part.counters.hint_bytes, rest.len() as u64);
        let epoch = table.description.epoch();
        tracing::info!(table = name, %kind, epoch, offset, bytes_out = rest.len(), "hint");
        Ok(rest)
    }

    /// Answers queries. What is checked is public: names, numbers and lengths.
    pub(crate) async fn query(
        &self,
        request: proto::QueryRequest,
        held: &Arc<Held>,
    ) -> Result<proto::QueryResponse, Refusal> {
        let started = Instant::now();
        let proto::QueryRequest { table: name, epoch, part, table_digest, queries } = request;
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
                    "{bytes} B of queries are no whole number of queries of {size} B, at least one; make them \
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
        held.take(count * part.answer_bytes)?;
        let queue = part
            .gatherer
            .ask((0..count).map(|i| queries.slice(i * size..(i + 1) * size)), Some(held.clone()))?;
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
