//! The last word on each row, against the base.

use std::path::Path;

use blindcore_lookup::keyword::KeyHash;
use blindcore_wire::Change;

use super::entry::{Entry, UNKNOWN, Word};
use super::options::UpdateOptions;
use super::shape::Shape;
use crate::kinds::Kinds;
use crate::{ExternalSort, Order, StoreError, Stored};

/// How many rows an update changes, by what it does to them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) added: u64,
    pub(super) changed: u64,
    pub(super) removed: u64,
    pub(super) unchanged: u64,
}

/// The rows that differ from the base.
pub(super) struct Merged {
    pub(super) counts: Counts,
    pub(super) count: u64,
    /// Of the table, those that are gone included.
    pub(super) rows: u64,
    /// Of those, how many are gone.
    pub(super) removed: u64,
    /// What the next update reads.
    pub(super) log: ExternalSort,
    /// Slots of part `changes`, by the hash of their keys.
    pub(super) records: ExternalSort,
    /// Slots of part `new_keys`, in order.
    pub(super) keys: ExternalSort,
    /// What columns hold now, where the manifest says it.
    pub(super) kinds: Option<Vec<Kinds>>,
}

/// A row's record or that it has none, as far as that is known.
type State = Option<Option<Vec<u8>>>;

/// What is said of rows, in the order in which it was said.
pub(super) struct Said<'a> {
    pub(super) sorted: ExternalSort,
    pub(super) origin: &'a str,
    /// What CHANGES hold and give no row of: see [`crate::Source::passed_over`].
    pub(super) passed_over: &'a [String],
    pub(super) shape: &'a Shape<'a>,
}

/// Whether the row of this key may be there and not have been read: it's passed over, or the folder that it is in.
fn passes_over(passed_over: &[String], key: &[u8]) -> bool {
    let slashes = key.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
    let passed = |end: usize| passed_over.binary_search_by(|name| name.as_bytes().cmp(&key[..end])).is_ok();
    !passed_over.is_empty() && slashes.chain([key.len()]).any(passed)
}

/// The last word on each key, against the base.
pub(super) fn merge(
    stored: &Stored,
    options: &UpdateOptions,
    work: &Path,
    said: Said<'_>,
    rows: u64,
    salt: &[u8; 32],
) -> Result<Merged, StoreError> {
    let sort_of = |order| ExternalSort::new(work, options.memory / 4, order);
    let description = stored.description()?;
    let index = description.index();
    let mut counts = Counts::default();
    // Entries without a number yet, and the order in which they came.
    let (mut finals, mut fresh) = (sort_of(Order::Arrival), sort_of(Order::Hash));
    let mut payload = Vec::new();
    let mut entries = said.sorted.finish()?.peekable();
    while let Some(first) = entries.next() {
        let mut next = first?;
        let hash = next.hash;
        let Entry { number, key, .. } = Entry::decoded(&next.payload);
        // Its record or that it has none: at the update before, where that said something of it, and as far as it was read now.
        let (mut old, mut now): (State, State) = (None, None);
        // The line at which it first came now, and whether the base lists it.
        let (mut came, mut listed) = (0, false);
        // The first line, and column, that is missing of a row that isn't there, unless what comes later makes it whole or removes it.
        let mut lacks: Option<(u64, &str)> = None;
        let fail = |line, why| {
            let (origin, unit) = (said.origin.to_owned(), options.changes.unit());
            StoreError::Row { origin, unit, line, why }
        };
        loop {
            let line = next.line;
            match Entry::decoded(&next.payload).word {
                Word::Listed => listed = true,
                Word::Removed => (now, lacks) = (Some(None), None),
                Word::Set(record) => (now, lacks) = (Some(Some(record)), None),
                Word::Columns(columns) => {
                    let before = match now {
                        Some(record) => record,
                        None => stored.base_record(index, &key)?.map(Iterator::collect).transpose()?,
                    };
                    let record = said.shape.record(&columns, before.as_deref());
                    (now, lacks) = match record.map_err(|why| fail(line, why))? {
                        Ok(record) => (Some(Some(record)), None),
                        Err(name) => (Some(None), lacks.or(Some((line, name)))),
                    };
                }
            }
            match line {
                0 => old.clone_from(&now),
                u64::MAX => {}
                _ if came == 0 => came = line,
                _ => {}
            }
            match entries.next_if(|e| e.as_ref().map_or(true, |e| e.hash == hash)) {
                Some(entry) => next = entry?,
                None => break,
            }
        }
        if let Some((line, name)) = lacks {
            let why = format!(
                "it has no {name:?}, and the table has no such row yet whose {name:?} could stay; give every column of a row that \
                 is added, null where nothing is meant"
            );
            return Err(fail(line, why));
        }
        // CHANGES that are the whole table remove what they don't name, but for what they hold and can't give.
        let gone = options.whole
            && came == 0
            && !passes_over(said.passed_over, &key)
            && (matches!(old, Some(Some(_))) || (listed && old.is_none()));
        if gone {
            now = Some(None);
        }
        let Some(record) = now else { continue };
        let base = stored.base_record(index, &key)?;
        let is_new = base.is_none() && old.is_none();
        // Whether there was a row, and the same one.
        let there = old.as_ref().map_or(base.is_some(), Option::is_some);
        let as_in_base = match (base, &record) {
            (Some(base), Some(record)) => same_record(base, record)?,
            // A row that was numbered keeps its number.
            _ => is_new && record.is_none() && number == UNKNOWN,
        };
        let same = match &old {
            Some(old) => {
                matches!((old, &record), (Some(a), Some(b)) if same_record(a.iter().copied().map(Ok), b)?)
            }
            None => as_in_base,
        };
        match (there, record.is_some()) {
            _ if came == 0 && !gone => {}
            (false, false) => counts.unchanged += 1,
            (true, true) if same => counts.unchanged += 1,
            (true, true) => counts.changed += 1,
            (false, true) => counts.added += 1,
            (true, false) => counts.removed += 1,
        }
        if as_in_base {
            continue;
        }
        if is_new && number == UNKNOWN {
            fresh.push(came.into(), 0, &hash.to_le_bytes())?;
        }
        let last = Entry { number, key, word: record.map_or(Word::Removed, Word::Set) };
        last.encode(&mut payload);
        finals.push(hash, 0, &payload)?;
    }
    let (mut log, mut records, mut keys) =
        (sort_of(Order::Arrival), sort_of(Order::Hash).counted(), sort_of(Order::Hash));
    let mut table_rows = rows;
    let mut numbers = sort_of(Order::Hash);
    for entry in fresh.finish()? {
        let hash = u128::from_le_bytes(entry?.payload[..16].try_into().expect("16 bytes"));
        numbers.push(hash, table_rows, &[])?;
        table_rows += 1;
    }
    let mut numbers = numbers.finish()?.peekable();
    let (mut count, mut removed) = (0, 0);
    let directory = stored.keys.is_some();
    let mut kinds = stored.manifest().kinds.clone();
    for entry in finals.finish()? {
        let crate::Entry { hash, payload: bytes, .. } = entry?;
        let mut entry = Entry::decoded(&bytes);
        if let Some(number) = numbers.next_if(|n| n.as_ref().map_or(true, |n| n.hash == hash)) {
            entry.number = number?.line;
        }
        table_rows = table_rows.max(if stored.manifest().key.is_none() { entry.number + 1 } else { 0 });
        entry.encode(&mut payload);
        log.push(0, 0, &payload)?;
        let key_hash = KeyHash::new(salt, &entry.key);
        payload.clear();
        payload.extend_from_slice(&key_hash.fingerprint);
        let record = if let Word::Set(record) = &entry.word { Some(&record[..]) } else { None };
        if let (Some(kinds), Some(record)) = (&mut kinds, record) {
            Kinds::add_record(kinds, record);
        }
        record.map_or(Change::Removed, Change::Set).encode(&mut payload);
        records.push(key_hash.order(), count, &payload)?;
        if directory && entry.number != UNKNOWN {
            let len = (entry.key.len() as u16).to_le_bytes();
            keys.push(entry.number.into(), 0, &[&len[..], &entry.key].concat())?;
        }
        removed += u64::from(record.is_none());
        count += 1;
    }
    Ok(Merged { counts, count, rows: table_rows, removed, log, records, keys, kinds })
}

/// Whether two records are the same but for zeros behind them.
fn same_record(a: impl Iterator<Item = Result<u8, StoreError>>, b: &[u8]) -> Result<bool, StoreError> {
    let mut b = b.iter().copied();
    for a in a {
        if a? != b.next().unwrap_or(0) {
            return Ok(false);
        }
    }
    Ok(b.all(|b| b == 0))
}
