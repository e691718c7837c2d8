//! A table as a client knows it: its checked description, and of each part what is kept.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use blindcore_lookup::Params;
use blindcore_lookup::batch::CHOICES;
use blindcore_lookup::keyword::Index;
use blindcore_wire::codec::decode_record;
use blindcore_wire::{
    MAX_LISTING_BYTES, MAX_TABLE_BYTES, PartDescription, PartKind, PerPart, SHORT_HINT_BYTES,
    TableDescription, TableError, Value, check_table_name, proto,
};
use prost::Message;

use crate::error::line;
use crate::hint::Fetch;
use crate::kept::{Hint, Kept};
use crate::{Error, Trust};

/// What a client takes from a server, and how much.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Which tables.
    pub trust: Trust,
    /// The newest epoch that was seen of the table under [`Trust::Key`], where the driver remembers one by
    /// [`Trust::remembers`]: an older one is refused.
    pub newest: Option<u64>,
    /// Takes an epoch that is older than was seen, in `newest` or when a table is opened again.
    pub allow_rollback: bool,
    /// The largest hint, in bytes. It is held in memory.
    pub hint_bytes: u64,
    /// The most queries in a request, whatever the server allows: they and their answers are held in memory.
    pub queries_per_request: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            trust: Trust::Server,
            newest: None,
            allow_rollback: false,
            hint_bytes: 4 << 30,
            queries_per_request: 64,
        }
    }
}

/// A table at one epoch, ready for lookups once what is [missing](Table::missing) is kept.
pub struct Table {
    description: TableDescription,
    /// The most queries in a request, by kind of part.
    most_queries: PerPart<usize>,
    hint_limit: u64,
    parts: PerPart<OnceLock<Part>>,
    columns: Arc<[Arc<str>]>,
}

/// A part that can be asked.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) description: PartDescription,
    /// One for each bucket; of all parts but batches, one.
    pub(crate) clients: Arc<[blindcore_lookup::Client]>,
    /// With the roots of proofs.
    hint: Arc<Hint>,
}

impl Part {
    pub(crate) fn params(&self) -> &Params {
        &self.description.params
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its key, where the table has keys.
    pub key: Option<Vec<u8>>,
    /// Its columns, in order.
    pub values: Vec<(Arc<str>, Value)>,
}

impl Record {
    /// The value of a column, if the table has it.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&Value> {
        self.values.iter().find(|(name, _)| **name == *column).map(|(_, value)| value)
    }
}

/// Bytes of a hint that the scheme reads of a bucket.
struct Own(Arc<Hint>, Range<usize>);

impl AsRef<[u8]> for Own {
    fn as_ref(&self) -> &[u8] {
        &(*self.0).as_ref()[self.1.clone()]
    }
}

/// The tables that a server lists.
///
/// # Errors
/// The bytes are too many, or not a [`proto::ListTablesResponse`]; or as [`check_listing`].
pub fn listing(response: &[u8]) -> Result<Vec<proto::TableSummary>, Error> {
    check_listing(decode("the list of tables", response, MAX_LISTING_BYTES)?)
}

/// The tables that a server lists.
///
/// # Errors
/// A name is not a table's.
pub fn check_listing(response: proto::ListTablesResponse) -> Result<Vec<proto::TableSummary>, Error> {
    for table in &response.tables {
        check_table_name(&table.name).map_err(|source| Error::Protocol {
            what: format!("it lists a table whose name is none: {source}"),
        })?;
    }
    Ok(response.tables)
}

/// Reads a message of at most `limit` bytes.
pub(crate) fn decode<M: Message + Default>(what: &str, bytes: &[u8], limit: usize) -> Result<M, Error> {
    if bytes.len() > limit {
        let what = format!("{what} has {} B, over the limit of {limit} B", bytes.len());
        return Err(Error::Protocol { what });
    }
    M::decode(bytes).map_err(|e| Error::Protocol { what: format!("{what} is not a message ({e})") })
}

impl Table {
    /// The message that asks for a table's description.
    ///
    /// # Errors
    /// [`Error::Table`]: no table can have this name.
    pub fn request(name: &str) -> Result<proto::GetTableRequest, Error> {
        check_table_name(name)
            .map_err(|source| Error::Table { table: line(name), source: Box::new(source) })?;
        Ok(proto::GetTableRequest { name: name.to_owned() })
    }

    /// The table that a server describes, from the bytes of a [`proto::GetTableResponse`].
    ///
    /// # Errors
    /// The bytes are too many or not a message, or as [`Table::open`].
    pub fn receive(
        name: &str,
        response: &[u8],
        policy: &Policy,
        before: Option<&Table>,
    ) -> Result<Self, Error> {
        Self::open(name, decode("a table's description", response, MAX_TABLE_BYTES)?, policy, before)
    }

    /// The table that a server describes, if it is the one that was asked for and is trusted. What did not change since
    /// `before` is kept from there.
    ///
    /// # Errors
    /// The description makes no sense, or is not of a table that `policy` trusts.
    pub fn open(
        name: &str,
        response: proto::GetTableResponse,
        policy: &Policy,
        before: Option<&Table>,
    ) -> Result<Self, Error> {
        let allowed = response.queries();
        let mut table =
            response.table.ok_or_else(|| Error::Protocol { what: "it answers with no table".into() })?;
        let short = PerPart::new(|kind| table.part_mut(kind).and_then(|part| part.hint.take()));
        let description = TableDescription::from_proto(table)
            .map_err(|source: TableError| Error::Table { table: line(name), source: Box::new(source) })?;
        if description.name() != name {
            let what = format!("asked for table {}, it answers with {}", line(name), description.name());
            return Err(Error::Protocol { what });
        }
        let seen = before.map(|before| before.description().epoch()).max(policy.newest);
        policy.trust.check(&description, seen.filter(|_| !policy.allow_rollback))?;
        // A batch has a query for each bucket; one at least is asked.
        let most = |kind| {
            let buckets = description.part(kind).map_or(1, |part| part.buckets as usize);
            (allowed[kind] as usize).min((policy.queries_per_request / buckets).max(1))
        };
        let table = Self {
            columns: description.value_columns().iter().map(|c| c.as_str().into()).collect(),
            most_queries: PerPart::new(most),
            hint_limit: policy.hint_bytes.min(isize::MAX as u64),
            parts: Default::default(),
            description,
        };
        for kind in PartKind::ALL {
            let same = before.and_then(|b| b.part(kind));
            if let Some(same) = same.filter(|p| table.description.part(kind) == Some(&p.description)) {
                let _ = table.parts[kind].set(same.clone());
            }
            // What came with the description need not be fetched.
            if let (Some(hint), Some(part), None) =
                (&short[kind], table.description.part(kind), table.part(kind))
                && hint.len() <= SHORT_HINT_BYTES
            {
                let fetch = Fetch::new(&table.description, kind, *part);
                let mut whole = Hint::default();
                whole.push(hint);
                table.keep(fetch.check(whole)?)?;
            }
        }
        Ok(table)
    }

    /// What the table says of itself.
    #[must_use]
    pub fn description(&self) -> &TableDescription {
        &self.description
    }

    /// The parts that every lookup asks: the records and, where the table changed, its changes.
    pub fn always_asked(&self) -> impl Iterator<Item = PartKind> {
        let changes = self.description.changes().map(|_| PartKind::Changes);
        [Some(PartKind::Records), changes].into_iter().flatten()
    }

    /// What is missing of a part before it can be asked; nothing where that is kept, or where its scheme needs nothing.
    ///
    /// # Errors
    /// The table has no such part, its server allows no query of it, or its hint is over the policy's limit.
    pub fn missing(&self, kind: PartKind) -> Result<Option<Fetch>, Error> {
        let missing = || Error::Protocol { what: format!("its table has no part {kind}") };
        let part = self.description.part(kind).ok_or_else(missing)?;
        if self.most_queries[kind] == 0 {
            return Err(Error::Protocol { what: format!("it allows no query of part {kind}") });
        }
        if self.part(kind).is_some() {
            return Ok(None);
        }
        let (bytes, limit) = (part.hint_bytes(), self.hint_limit);
        if bytes > limit {
            let table = self.description.name().to_owned();
            return Err(Error::HintTooLarge { table, part: kind, bytes, limit });
        }
        let fetch = Fetch::new(&self.description, kind, *part);
        if bytes > 0 {
            return Ok(Some(fetch));
        }
        self.keep(fetch.check(Hint::default())?)?;
        Ok(None)
    }

    /// Keeps what a [`Fetch`] of this table, or of one with the same part, brought.
    ///
    /// # Errors
    /// It is another part's.
    pub fn keep(&self, kept: Kept) -> Result<(), Error> {
        let Kept { kind, part, hint } = kept;
        if self.description.part(kind) != Some(&part) {
            return Err(Error::HintDigest { table: self.description.name().to_owned(), part: kind });
        }
        let each = part.params.hint_bytes() as usize;
        let client = |bucket: usize| {
            let own = Own(hint.clone(), bucket * each..(bucket + 1) * each);
            blindcore_lookup::Client::new(part.params, Arc::new(own))
        };
        let clients = (0..part.buckets as usize).map(client).collect::<Result<_, _>>()?;
        // Whichever came first: they are the same.
        let _ = self.parts[kind].set(Part { description: part, clients, hint });
        Ok(())
    }

    pub(crate) fn part(&self, kind: PartKind) -> Option<&Part> {
        self.parts[kind].get()
    }

    /// The most queries of a part in a request, at least 1.
    pub(crate) fn most_queries(&self, kind: PartKind) -> usize {
        self.most_queries[kind].max(1)
    }

    /// How many keys are best asked together, at least 1: those whose queries a request holds, or a batch, where the server answers
    /// such.
    #[must_use]
    pub fn keys_per_request(&self) -> usize {
        let keys = |kind| self.most_queries(kind) / self.blocks(kind) as usize;
        let batches = self.description.batch_index().filter(|_| self.most_queries[PartKind::Batches] > 0);
        let batch = batches.map_or(1, |index| index.buckets().keys());
        self.always_asked().map(keys).min().unwrap_or(1).max(batch)
    }

    /// Whether so many keys are asked for in batches: where the table can be, and a batch takes its server less than they would
    /// one by one.
    #[must_use]
    pub fn batches(&self, keys: usize) -> bool {
        /// A batch takes three lookups, and what goes with a query in each bucket: never as much as a lookup for each eighth key.
        const SHARE: usize = 8;
        let allowed = self.most_queries[PartKind::Batches] > 0 && keys > CHOICES;
        allowed && self.description.batch_index().is_some_and(|index| SHARE * keys >= index.buckets().keys())
    }

    /// Where keys lie in a part that is asked by key.
    pub(crate) fn index(&self, kind: PartKind) -> Option<&Index> {
        match kind {
            PartKind::Records => self.description.index(),
            PartKind::Changes => self.description.changes_index(),
            PartKind::Keys | PartKind::NewKeys | PartKind::Batches => None,
        }
    }

    /// How many slots of a part each lookup asks.
    pub(crate) fn blocks(&self, kind: PartKind) -> u32 {
        match kind {
            PartKind::Records => self.description.blocks(),
            PartKind::Changes => self.description.changes().map_or(1, |c| c.blocks),
            PartKind::Keys | PartKind::NewKeys | PartKind::Batches => 1,
        }
    }

    pub(crate) fn record(&self, key: Option<Vec<u8>>, bytes: &[u8]) -> Result<Record, Error> {
        let values = decode_record(bytes, self.columns.len()).map_err(|e| self.garbage(e))?;
        Ok(Record { key, values: self.columns.iter().cloned().zip(values).collect() })
    }

    pub(crate) fn garbage(&self, why: impl ToString) -> Error {
        Error::Garbage { table: self.description.name().to_owned(), why: why.to_string() }
    }

    /// What is in a part's slot beside its proof, if that is what the table's digest says. `id` is what the slot is
    /// found by.
    pub(crate) fn proven<'a>(&self, kind: PartKind, id: u128, slot: &'a [u8]) -> Result<&'a [u8], Error> {
        let part = self.part(kind).expect("a part that was asked is kept");
        let Some(proofs) = &part.description.proofs else { return Ok(slot) };
        let roots = &(*part.hint).as_ref()[words(&part.description)..];
        proofs.open(kind, roots, id, slot).ok_or_else(|| self.wrong(kind))
    }

    /// Whether slots of a part have proofs.
    pub(crate) fn has_proofs(&self, kind: PartKind) -> bool {
        self.description.part(kind).is_some_and(|part| part.proofs.is_some())
    }

    pub(crate) fn wrong(&self, kind: PartKind) -> Error {
        Error::WrongAnswer { table: self.description.name().to_owned(), part: kind }
    }
}

/// Bytes of a hint before the roots of proofs.
fn words(part: &PartDescription) -> usize {
    let roots = part.proofs.map_or(0, |p| p.root_bytes());
    (part.hint_bytes() - roots) as usize
}
