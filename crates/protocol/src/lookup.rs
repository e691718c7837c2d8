//! One lookup, from what is looked for to what was found.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use blindcore_lookup::batch::Batch;
use blindcore_lookup::keyword::{self, FINGERPRINT_BYTES, Index};
use blindcore_lookup::{Decoded, Pending, Selection};
use blindcore_wire::codec::MAX_KEY_BYTES;
use blindcore_wire::{Change, KeyError, PartKind, Reason, decode_key_slot, proto};
use bytes::Bytes;
use prost::Message;
use zeroize::Zeroizing;

use crate::registered::{ClientKeys, KeyNeed};
use crate::table::{Part, decode};
use crate::workers::spread;
use crate::{Error, Fetch, OneThread, Record, Table, Workers};

/// Bytes of a response beside the answers: two field headers and a number.
const RESPONSE_SLACK: usize = 64;

type Key = Zeroizing<Vec<u8>>;

/// What to do next for a lookup.
#[non_exhaustive]
pub enum Step {
    /// Get this from a cache or from the server, and give it to [`Table::keep`].
    Need(Fetch),
    /// Get these keys from a cache, or have others registered, and give them to [`Lookup::take_keys`]: the next request is under
    /// them, and under them alone.
    Keys(KeyNeed),
    /// Send this, once, and give the response to [`Lookup::receive`].
    Send(Request),
    /// Nothing but give the response to the last request.
    Wait,
    /// All is done: an outcome for each key or row, in their order.
    Done(Vec<Outcome>),
}

/// A request: queries of one part of one table.
pub struct Request {
    message: proto::QueryRequest,
    queries: usize,
    /// Of all answers.
    answer_bytes: usize,
}

impl Request {
    /// The message.
    #[must_use]
    pub fn message(&self) -> &proto::QueryRequest {
        &self.message
    }

    /// The message, to be sent.
    #[must_use]
    pub fn into_message(self) -> proto::QueryRequest {
        self.message
    }

    /// Its bytes: the body of `POST /v1/query`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.message.encode_to_vec()
    }

    /// How many queries it holds: of a batch, one of each bucket.
    #[must_use]
    pub fn queries(&self) -> usize {
        self.queries
    }

    /// Bytes of the longest response that is worth reading.
    #[must_use]
    pub fn max_response_bytes(&self) -> usize {
        self.answer_bytes.saturating_add(RESPONSE_SLACK)
    }
}

/// What came of one key or row.
#[derive(Debug)]
pub struct Outcome {
    /// The record; none where the key is not there.
    pub found: Result<Option<Record>, Error>,
    /// Whether the table's digest stands for what was found. It does not where the table has no proofs; where nothing was
    /// found, unless the row's removal is what was; and where a record is the base's and a later change might be hidden.
    pub proved: bool,
    /// Which queries were asked for it: numbers, from 0 in the order in which this lookup's requests carried them.
    pub queries: Vec<Range<u64>>,
}

/// A lookup of keys or of rows in one table.
///
/// The server sees the same requests whatever is looked for and whatever its answers decode to: as many queries of the
/// same parts in the same order, each under a secret of its own. Only an error that the server knows of ends a lookup
/// early.
///
/// ```text
///   by key     records, then changes
///   by row     of a keyed table:  keys, then new keys, then records and changes of whatever keys came out
///              of another table:  records, then changes
/// ```
///
/// Many keys are asked for in batches, where the table has such ([`Table::batches`]): then these stand for the records.
///
/// Changes and new keys are asked where the table has them. Where a part's queries are under registered keys, each request is
/// made under those that its driver gives it; once in a lookup a server may have forgotten them.
pub struct Lookup {
    targets: Targets,
    asks: Vec<Ask>,
    /// How many of them are of a directory of keys.
    directory: usize,
    /// The ask that is under way.
    at: usize,
    awaited: Option<Vec<Pending>>,
    /// Where the keys of the last request are asked, if that is of batches.
    batches: Vec<Batch>,
    /// Keys for the next request.
    granted: Option<ClientKeys>,
    /// Keys that the last request was under.
    under: Option<[u8; 32]>,
    /// Keys that the server said it doesn't know.
    unknown: Option<[u8; 32]>,
    over: bool,
}

/// What is looked for.
struct Targets {
    table: Arc<Table>,
    count: usize,
    /// What was asked for, where that was rows.
    rows: Option<Zeroizing<Vec<u64>>>,
    /// What records are asked by; of rows, once the directory of keys was asked. A row whose key did not come out is
    /// looked up all the same.
    keys: Vec<Result<Key, Error>>,
}

/// Queries of one part: as many for each target.
struct Ask {
    kind: PartKind,
    /// Queries for each target.
    each: u32,
    /// The number of its first query.
    first: u64,
    /// What came out so far.
    slots: Vec<Decoded>,
    /// The same, of batches: for each target, whether it was answered, and what opens its slot.
    identities: Vec<Identity>,
    /// Keys of a batch, and its buckets; 1 and 1 where it is none.
    batch: (usize, usize),
}

/// What a key of a batch was asked by.
struct Identity {
    answered: bool,
    fingerprint: Zeroizing<[u8; FINGERPRINT_BYTES]>,
    order: Zeroizing<u128>,
}

impl Ask {
    /// Queries for so many targets.
    fn queries(&self, targets: usize) -> u64 {
        let (keys, buckets) = self.batch;
        targets.div_ceil(keys) as u64 * buckets as u64 * u64::from(self.each)
    }

    /// Queries for a target: of batches, its share of those of its batch.
    fn of(&self, target: usize, targets: usize) -> Range<u64> {
        let (keys, buckets) = self.batch;
        if buckets == 1 {
            let first = self.first + target as u64 * u64::from(self.each);
            return first..first + u64::from(self.each);
        }
        let (batch, key) = (target / keys, target % keys);
        let (keys, first) = (keys.min(targets - batch * keys), self.first + (batch * buckets) as u64);
        let until = |key: usize| first + (key * buckets / keys) as u64;
        until(key)..until(key + 1)
    }
}

impl Targets {
    /// What query `number` of an ask picks.
    fn selection(
        &self,
        kind: PartKind,
        part: &Part,
        number: u64,
    ) -> Result<Selection, blindcore_lookup::Error> {
        let each = u64::from(self.table.blocks(kind));
        let (target, block) = ((number / each) as usize, (number % each) as u32);
        match self.table.index(kind) {
            Some(index) => Ok(index.select_block(&self.key(target), block).0),
            None => Selection::index(&part.params().geometry, self.slot(kind, target)),
        }
    }

    /// The row that a target is asked as: one that is there.
    fn row(&self, target: usize) -> u64 {
        let row = self.rows.as_ref().map_or(0, |rows| rows[target]);
        if row < self.table.description().rows() { row } else { 0 }
    }

    /// The slot of a part that is asked by number for a target. A row is asked for in the base and among those that
    /// came later, whichever holds it; in the other it is slot 0.
    fn slot(&self, kind: PartKind, target: usize) -> u64 {
        let (row, base) = (self.row(target), self.table.description().base_rows());
        match kind.is_base() {
            true if row < base => row,
            true => 0,
            false => row.saturating_sub(base),
        }
    }

    /// What a part is asked by key for a target. Where no key came out it is the empty one: a server must not see which
    /// of its answers made sense.
    fn key(&self, target: usize) -> Key {
        if !self.table.description().is_keyed() {
            return Zeroizing::new(self.row(target).to_le_bytes().to_vec());
        }
        match self.keys.get(target) {
            Some(Ok(key)) => key.clone(),
            _ => Key::default(),
        }
    }
}

impl Lookup {
    /// A lookup of keys, given as [`blindcore_wire::codec::encode_key`] writes them: as a person does. Where the table's keys
    /// have one form each is brought to it. Each is a query of its own, also where a key comes twice.
    ///
    /// # Errors
    /// The table is not keyed, or something is not a key.
    pub fn by_key(table: &Arc<Table>, keys: &[impl AsRef<[u8]>]) -> Result<Self, Error> {
        if !table.description().is_keyed() {
            return Err(Error::NotKeyed { table: table.description().name().to_owned() });
        }
        let check = |key: &[u8]| match key.len() {
            0 => Err(KeyError::Empty),
            got if got > MAX_KEY_BYTES => Err(KeyError::Length { got }),
            _ => {
                let form = table.description().key_type();
                Ok(Ok(Zeroizing::new(form.map_or_else(|| key.to_vec(), |form| form.of(key).into_owned()))))
            }
        };
        let keys: Vec<_> = keys.iter().map(|key| check(key.as_ref())).collect::<Result<_, _>>()?;
        let records = if table.batches(keys.len()) { PartKind::Batches } else { PartKind::Records };
        Ok(Self::new(table, None, keys.len(), keys, &[], records))
    }

    /// A lookup of rows, counted from 0 in the order of the source.
    ///
    /// A row past the table's last is looked up as row 0: how many rows there are is the server's word, and a server
    /// that chose the number would learn on which side of it each lookup lies. Its outcome is [`Error::NoSuchRow`].
    ///
    /// # Errors
    /// The table has keys and no directory of them.
    pub fn by_row(table: &Arc<Table>, rows: &[u64]) -> Result<Self, Error> {
        let description = table.description();
        let directory: &[PartKind] = match (description.is_keyed(), description.keys()) {
            (false, _) => &[],
            (true, Some(_)) => &[PartKind::Keys, PartKind::NewKeys],
            (true, None) => return Err(Error::NotIndexed { table: description.name().to_owned() }),
        };
        Ok(Self::new(
            table,
            Some(Zeroizing::new(rows.to_vec())),
            rows.len(),
            Vec::new(),
            directory,
            PartKind::Records,
        ))
    }

    fn new(
        table: &Arc<Table>,
        rows: Option<Zeroizing<Vec<u64>>>,
        count: usize,
        keys: Vec<Result<Key, Error>>,
        directory: &[PartKind],
        records: PartKind,
    ) -> Self {
        let there = |kind: &PartKind| table.description().part(*kind).is_some();
        let directory: Vec<PartKind> = directory.iter().copied().filter(there).collect();
        let always = table.always_asked().map(|kind| if kind == PartKind::Records { records } else { kind });
        let mut asks: Vec<Ask> = Vec::new();
        for kind in directory.iter().copied().chain(always) {
            let first = asks.last().map_or(0, |last| last.first + last.queries(count));
            let index = table.description().batch_index().filter(|_| kind == PartKind::Batches);
            let batch = index.map_or((1, 1), |index| (index.buckets().keys(), index.buckets().count()));
            let (slots, identities) = Default::default();
            asks.push(Ask { kind, each: table.blocks(kind), first, slots, identities, batch });
        }
        let targets = Targets { table: table.clone(), count, rows, keys };
        Self {
            targets,
            asks,
            directory: directory.len(),
            at: 0,
            awaited: None,
            batches: Vec::new(),
            granted: None,
            under: None,
            unknown: None,
            over: false,
        }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.targets.table
    }

    /// What to do next, its queries made on this thread.
    ///
    /// # Errors
    /// As [`Lookup::step_on`].
    pub fn step(&mut self) -> Result<Step, Error> {
        self.step_on(&OneThread)
    }

    /// What to do next, its queries made by `workers`.
    ///
    /// # Errors
    /// The operating system gives no randomness, a part can't be had, or the lookup is over.
    pub fn step_on(&mut self, workers: &dyn Workers) -> Result<Step, Error> {
        if self.over {
            return Err(Error::Over);
        }
        if self.awaited.is_some() {
            return Ok(Step::Wait);
        }
        while let Some(ask) = self.asks.get(self.at) {
            let (kind, done) = (ask.kind, ask.slots.len() as u64);
            let left = self.targets.count as u64 * u64::from(ask.each) - done;
            if left == 0 {
                self.at += 1;
                if self.at == self.directory {
                    self.targets.keys = self.directory_keys();
                }
                continue;
            }
            if let Some(fetch) = self.targets.table.missing(kind).inspect_err(|_| self.over = true)? {
                return Ok(Step::Need(fetch));
            }
            let most = self.targets.table.most_queries(kind);
            // Queries or, of keys in batches, batches.
            let (keys, buckets) = ask.batch;
            let queries = usize::try_from(left).unwrap_or(usize::MAX).div_ceil(keys).min(most);
            let params = self.targets.table.part(kind).map(|part| *part.params());
            let keys = params.and_then(|params| Some((params, params.keys_digest()?)));
            let granted = self.granted.take();
            let under = match keys {
                None => None,
                Some((params, digest)) => match granted.filter(|keys| keys.serves(&digest)) {
                    Some(keys) => Some(keys),
                    None => {
                        let name = self.targets.table.description().name();
                        return Ok(Step::Keys(KeyNeed::new(
                            name,
                            kind,
                            params,
                            digest,
                            queries * buckets,
                            self.unknown,
                        )));
                    }
                },
            };
            return self.request(kind, done, queries, under.as_ref(), workers).map(Step::Send);
        }
        self.over = true;
        Ok(Step::Done(self.outcomes()))
    }

    /// Makes queries, or batches, from number `done` of an ask on.
    fn request(
        &mut self,
        kind: PartKind,
        done: u64,
        queries: usize,
        under: Option<&ClientKeys>,
        workers: &dyn Workers,
    ) -> Result<Request, Error> {
        let targets = &self.targets;
        let part = targets.table.part(kind).expect("nothing of it is missing");
        let index = targets.table.description().batch_index().filter(|_| kind == PartKind::Batches);
        self.batches = index.map_or_else(Vec::new, |index| {
            let each = index.buckets().keys();
            let until = targets.count.min(done as usize + queries * each);
            let keys: Vec<Key> = (done as usize..until).map(|target| targets.key(target)).collect();
            keys.chunks(each).map(|keys| index.batch(keys)).collect()
        });
        let (batches, buckets) = (&self.batches, part.clients.len());
        let made = spread(workers, queries * buckets, |i| {
            let client = &part.clients[i % buckets];
            let prepared = match under {
                None => client.prepare()?,
                Some(keys) => client.prepare_under(keys.opened())?,
            };
            match batches.get(i / buckets) {
                Some(batch) => client.query(prepared, &batch.selections()[i % buckets]),
                None => client.query(prepared, &targets.selection(kind, part, done + i as u64)?),
            }
        });
        let answer_bytes = queries * part.description.answer_bytes();
        let mut bytes = Vec::with_capacity(queries * part.description.query_bytes());
        let queries = made.len();
        let mut pending = Vec::with_capacity(queries);
        for made in made {
            let (query, rest) = made.inspect_err(|_| self.over = true)?;
            bytes.extend_from_slice(&query);
            pending.push(rest);
        }
        self.awaited = Some(pending);
        self.under = under.map(|keys| *keys.digest());
        let description = self.targets.table.description();
        let message = proto::QueryRequest {
            table: description.name().to_owned(),
            epoch: description.epoch(),
            part: kind.to_proto().into(),
            table_digest: Bytes::copy_from_slice(description.digest()),
            queries: bytes.into(),
            keys: self.under.map_or_else(Bytes::new, |digest| Bytes::copy_from_slice(&digest)),
        };
        Ok(Request { message, queries, answer_bytes })
    }

    /// Takes the response to the last request, from the bytes of a [`proto::QueryResponse`].
    ///
    /// # Errors
    /// The bytes are too many or not a message, or as [`Lookup::receive_on`].
    pub fn receive(&mut self, response: &[u8]) -> Result<(), Error> {
        let limit = match (&self.awaited, self.asking()) {
            (Some(awaited), Some(part)) if !self.over => {
                let queries = awaited.len() / part.clients.len();
                (queries * part.description.answer_bytes()).saturating_add(RESPONSE_SLACK)
            }
            _ => return Err(self.unasked()),
        };
        let response = decode("a response", response, limit).inspect_err(|_| self.over = true)?;
        self.receive_on(&response, &OneThread)
    }

    /// Takes the response to the last request; `workers` decode it.
    ///
    /// # Errors
    /// [`Error::Protocol`]: it is not as long as its queries make it, or nothing was asked. The server knows that, and
    /// the lookup is over. What an answer decodes to is never an error here.
    pub fn receive_on(
        &mut self,
        response: &proto::QueryResponse,
        workers: &dyn Workers,
    ) -> Result<(), Error> {
        let table = self.targets.table.clone();
        let awaited = self.awaited.take().filter(|_| !self.over);
        let (Some(awaited), Some(ask)) = (awaited, self.asks.get_mut(self.at)) else {
            return Err(self.unasked());
        };
        let part = table.part(ask.kind).expect("a part that was asked is kept");
        let (buckets, count) = (part.clients.len(), awaited.len());
        let (each, whole) = (part.params().answer_bytes(), part.description.answer_bytes());
        let (got, want) = (response.answers.len(), count / buckets * whole);
        if got != want {
            self.over = true;
            let what = format!("it answers {count} queries with {got} B where they make {want}");
            return Err(Error::Protocol { what });
        }
        // Answers of a batch end in a bit for each bucket.
        let answer = |i: usize| {
            let of = &response.answers[i / buckets * whole..][..whole];
            let (answers, said) = of.split_at(buckets * each);
            let bucket = i % buckets;
            let unanswered = said.get(bucket / 8).is_some_and(|byte| byte >> (bucket % 8) & 1 == 1);
            (!unanswered).then(|| &answers[bucket * each..][..each])
        };
        let awaited: Vec<Mutex<Option<Pending>>> =
            awaited.into_iter().map(|pending| Mutex::new(Some(pending))).collect();
        let decoded = spread(workers, count, |i| {
            let pending = awaited[i].lock().unwrap_or_else(PoisonError::into_inner).take();
            let pending = pending.expect("each is decoded once");
            answer(i).map(|answer| part.clients[i % buckets].decode(pending, answer)).transpose()
        });
        let decoded: Vec<Option<Decoded>> =
            decoded.into_iter().collect::<Result<_, _>>().inspect_err(|_| self.over = true)?;
        if self.batches.is_empty() {
            ask.slots.extend(decoded.into_iter().flatten());
            return Ok(());
        }
        for (batch, slots) in self.batches.drain(..).zip(decoded.chunks(buckets)) {
            for key in 0..batch.keys() {
                let (slot, (fingerprint, order)) = (batch.slot(key, slots), batch.identity(key));
                let answered = slot.is_some();
                ask.slots
                    .push(slot.unwrap_or_else(|| Decoded { slot: Zeroizing::default(), damaged: false }));
                ask.identities.push(Identity { answered, fingerprint, order });
            }
        }
        Ok(())
    }

    /// Gives the last request up, whose response does not come: the server refused it, or is gone. The next
    /// [`Lookup::step`] asks the same once more, in queries of their own. A caller does so only where the server knows what
    /// happened, and never after a response.
    pub fn again(&mut self) {
        self.awaited = None;
    }

    /// Takes the keys that the next request is under, as [`Step::Keys`] needs them.
    pub fn take_keys(&mut self, keys: ClientKeys) {
        self.granted = Some(keys);
    }

    /// Gives the last request up, which the server refused with [`Reason::UnknownKeys`]: the next [`Lookup::step`] needs keys
    /// that are registered again, and asks the same once more, in queries of their own.
    ///
    /// # Errors
    /// The refusal itself, where it is another one, or the server said so before: nothing goes round in circles.
    pub fn forgotten(&mut self, refusal: Error) -> Result<(), Error> {
        let of_keys = matches!(refusal, Error::Refused { reason: Some(Reason::UnknownKeys), .. });
        let under = self.under.take().filter(|_| of_keys && self.unknown.is_none() && self.awaited.is_some());
        let Some(digest) = under else {
            self.over = true;
            return Err(refusal);
        };
        (self.unknown, self.awaited) = (Some(digest), None);
        Ok(())
    }

    fn asking(&self) -> Option<&Part> {
        self.targets.table.part(self.asks.get(self.at)?.kind)
    }

    fn unasked(&mut self) -> Error {
        if std::mem::replace(&mut self.over, true) {
            return Error::Over;
        }
        Error::Protocol { what: "it answers where nothing was asked".into() }
    }

    /// The keys of rows, from their directory.
    fn directory_keys(&self) -> Vec<Result<Key, Error>> {
        let (directory, base) = (&self.asks[..self.directory], self.targets.table.description().base_rows());
        let open = |target: usize| {
            let added = directory.get(1).filter(|_| self.targets.row(target) >= base);
            let ask = added.unwrap_or(&directory[0]);
            let id = self.targets.slot(ask.kind, target).into();
            let key = decode_key_slot(self.targets.table.proven(ask.kind, id, &ask.slots[target].slot)?);
            let key = key.ok_or_else(|| self.targets.table.garbage("the slot of its key holds none"))?;
            Ok(Zeroizing::new(key.to_vec()))
        };
        (0..self.targets.count).map(open).collect()
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        let mut keys = std::mem::take(&mut self.targets.keys).into_iter();
        let of = |target: usize| {
            let key = keys.next();
            let (found, proved) = match self.found(target, key) {
                Ok((found, proved)) => (Ok(found), proved),
                Err(error) => (Err(error), false),
            };
            Outcome {
                found,
                proved,
                queries: self.asks.iter().map(|ask| ask.of(target, self.targets.count)).collect(),
            }
        };
        (0..self.targets.count).map(of).collect()
    }

    fn ask(&self, kind: PartKind) -> Option<&Ask> {
        self.asks.iter().find(|ask| ask.kind == kind)
    }

    /// What was found of a target, and whether that is proved. All was asked by now: no error in here is seen by the server.
    fn found(&self, target: usize, key: Option<Result<Key, Error>>) -> Result<(Option<Record>, bool), Error> {
        let (table, description) = (&self.targets.table, self.targets.table.description());
        for ask in &self.asks {
            let each = ask.each as usize;
            if ask.identities.get(target).is_some_and(|identity| !identity.answered) {
                return Err(Error::NotAnswered { table: description.name().to_owned() });
            }
            if ask.slots[target * each..(target + 1) * each].iter().any(|answer| answer.damaged) {
                return Err(Error::Damaged { table: description.name().to_owned(), part: ask.kind });
            }
        }
        if let Some(index) = self.targets.rows.as_ref().map(|rows| rows[target])
            && index >= description.rows()
        {
            let (table, rows) = (description.name().to_owned(), description.rows());
            return Err(Error::NoSuchRow { table, index, rows });
        }
        let (key, number) = match key {
            Some(key) => (Some(key?), Key::default()),
            None => (None, self.targets.key(target)),
        };
        let by = key.as_ref().unwrap_or(&number);
        let change = match (self.ask(PartKind::Changes), table.index(PartKind::Changes)) {
            (Some(ask), Some(index)) => self.under(ask, index, target, by),
            _ => Ok(None),
        };
        let records = self.ask(PartKind::Records).or_else(|| self.ask(PartKind::Batches));
        let records = records.expect("every lookup asks the records");
        let row = self.targets.row(target);
        let base = match (table.index(PartKind::Records), records.identities.get(target)) {
            (_, Some(Identity { fingerprint, order, .. })) => {
                let slot = &records.slots[target].slot;
                self.opened(records.kind, slot, fingerprint, **order, false)?
            }
            (Some(index), None) => self.under(records, index, target, by)?,
            (None, None) if row >= description.base_rows() => None,
            (None, None) => {
                let slot = &records.slots[target].slot;
                Some(Zeroizing::new(table.proven(PartKind::Records, row.into(), slot)?.to_vec()))
            }
        };
        let change = change?;
        // What was said last counts.
        let bytes: Option<&[u8]> = match change.as_ref().map(|state| Change::decode(state)) {
            None => base.as_ref().map(|b| &b[..]),
            Some(Some(Change::Set(record))) => Some(record),
            Some(Some(Change::Removed)) => None,
            Some(None) => return Err(table.garbage("what changed in the row can't be read")),
        };
        let last_word = change.is_some() || (base.is_some() && description.changes().is_none());
        let proved = description.has_proofs() && last_word;
        if let Some(bytes) = bytes {
            return Ok((Some(table.record(key.map(|key| key.to_vec()), bytes)?), proved));
        }
        match &self.targets.rows {
            // Rows are gone only where something changed.
            Some(_) if description.changes().is_none() => {
                Err(table.garbage("the key of this row is not in the table"))
            }
            Some(_) if !description.is_keyed() && row >= description.base_rows() && change.is_none() => {
                Err(table.garbage("a row that was added is nowhere"))
            }
            _ => Ok((None, proved)),
        }
    }

    /// What a keyed part holds under a key, if anything. Each key takes as many queries as the longest record, so that
    /// a server doesn't see how long one is.
    fn under(&self, ask: &Ask, index: &Index, target: usize, key: &[u8]) -> Result<Option<Key>, Error> {
        let each = ask.each as usize;
        let (mut found, mut ended) = (None::<Key>, false);
        for (block, Decoded { slot, .. }) in (0..).zip(&ask.slots[target * each..(target + 1) * each]) {
            let fingerprint: Zeroizing<[u8; FINGERPRINT_BYTES]> = index.select_block(key, block).1;
            match self.opened(ask.kind, slot, &fingerprint, *index.order(key, block), ended)? {
                Some(record) => found.get_or_insert_with(Key::default).extend_from_slice(&record),
                None => ended = true,
            }
        }
        Ok(found)
    }

    /// What a slot holds behind a fingerprint, if that fits and the slot does not lie behind the record's end.
    ///
    /// Where there are proofs, a slot whose fingerprint does not fit but whose rest is the key's is a wrong answer, and so is
    /// one that is the key's behind one that is not.
    fn opened(
        &self,
        kind: PartKind,
        slot: &[u8],
        fingerprint: &[u8; FINGERPRINT_BYTES],
        id: u128,
        ended: bool,
    ) -> Result<Option<Key>, Error> {
        let table = &self.targets.table;
        if !ended && keyword::open(slot, fingerprint).is_some() {
            return Ok(Some(Key::new(table.proven(kind, id, slot)?[FINGERPRINT_BYTES..].to_vec())));
        }
        let mut fitting = Zeroizing::new(slot.to_vec());
        fitting[..FINGERPRINT_BYTES].copy_from_slice(fingerprint);
        if table.has_proofs(kind) && table.proven(kind, id, &fitting).is_ok() {
            return Err(table.wrong(kind));
        }
        Ok(None)
    }
}
