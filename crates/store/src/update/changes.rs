//! Rows of CHANGES, matched with a table's columns.

use std::borrow::Cow;
use std::path::Path;

use blindcore_units::Progress;
use blindcore_wire::{Value, codec};
use serde_json::Value as Json;

use super::entry::{Entry, Log, UNKNOWN, Word};
use super::options::{CHANGE_COLUMN, ROW_COLUMN, UpdateOptions};
use super::shape::{Shape, fits, short};
use crate::kinds::Kinds;
use crate::manifest::Follow;
use crate::source::{Followed, Kept, Position, Reached, now};
use crate::stages::{self, READING};
use crate::{ExternalSort, Order, Source, SourceSpec, StoreError, Stored};

/// Rows between two words of how far it is.
const ROWS_A_WORD: u64 = 1024;

pub(super) struct Changes<'a> {
    stored: &'a Stored,
    shape: &'a Shape<'a>,
    options: &'a UpdateOptions,
    pub(super) origin: String,
    source: Box<dyn Source>,
    key: Option<usize>,
    /// Where the table's columns stand; `None` for those that the source lacks or that are passed over.
    values: Vec<Option<usize>>,
    change: Option<usize>,
    row: Option<usize>,
    follow: Option<usize>,
    /// How far the reads before came of what is followed now.
    before: Option<Json>,
    sorted: ExternalSort,
    /// Rows of a source that is followed, which come in the order of their values before they are `sorted`, and those behind them.
    by_value: ExternalSort,
    behind: ExternalSort,
    /// Columns that are passed over.
    pub(super) others: Vec<String>,
    /// Columns of the table and of an update that are not taken: they are passed over, or the source lacks one of the table's.
    pub(super) without: Vec<String>,
    /// What should be said of where it begins.
    pub(super) note: Option<String>,
}

pub(super) struct Read {
    pub(super) sorted: ExternalSort,
    /// How far the column that is followed was read.
    pub(super) reached: Reached,
}

impl<'a> Changes<'a> {
    pub(super) fn open(
        stored: &'a Stored,
        shape: &'a Shape<'a>,
        options: &'a UpdateOptions,
        work: &Path,
    ) -> Result<Self, StoreError> {
        let manifest = stored.manifest();
        let origin = options.changes.to_string();
        let ignored = |name: &str| options.ignore.iter().any(|i| i == name);
        if let Some(key) = manifest.key.as_deref().filter(|key| ignored(key)) {
            return Err(StoreError::Unfit(format!(
                "--ignore names {key:?}, the column that rows of table {} are found by; leave it out there",
                manifest.name
            )));
        }
        let own: Vec<String> = manifest.key.iter().chain(&manifest.values).cloned().collect();
        // A table may have columns of these names itself.
        let row = manifest.key.is_none().then_some(ROW_COLUMN);
        let special: Vec<&str> =
            [CHANGE_COLUMN].into_iter().chain(row).filter(|s| !own.iter().any(|c| c == s)).collect();
        let all = own.iter().map(String::as_str).chain(special.iter().copied());
        let known: Vec<String> = all.clone().filter(|name| !ignored(name)).map(str::to_owned).collect();
        let place = manifest.follow.as_ref().filter(|f| options.follow.as_ref() == Some(&f.column));
        let mut before = place.filter(|place| !place.is_of_another(&options.changes));
        let (mut source, mut note) = open_behind(before, options, &known)?;
        let mut again = |why: String| note = Some(format!("{origin} {why}, so all of its rows were read"));
        if place.is_some() && before.is_none() {
            again("is another source than the one that was followed before".into());
        }
        // Rows that the place lies behind may hold something else in columns that were not taken of them.
        let taken = |name: &&String| known.contains(name) && source.columns().contains(name);
        let new = before.iter().flat_map(|place| &place.without).filter(taken);
        let new: Vec<String> = new.map(|name| format!("{name:?}")).collect();
        if !new.is_empty() {
            again(format!("was followed without {} before", new.join(", ")));
            before = None;
            source = open_behind(before, options, &known)?.0;
        }
        let columns = source.columns();
        let stands = |name: &str| columns.iter().position(|c| c == name);
        let need =
            |name: &str| stands(name).ok_or_else(|| StoreError::Unfit(no_column(&origin, name, columns)));
        let key = manifest.key.as_deref().map(need).transpose()?;
        let follow = options.follow.as_deref().map(need).transpose()?;
        // What is passed over is as if the source lacked it.
        let find = |name: &str| stands(name).filter(|_| !ignored(name));
        let values = manifest.values.iter().map(|name| find(name)).collect();
        let left = |name: &&str| find(name).is_none() && (stands(name).is_some() || !special.contains(name));
        let without = all.clone().filter(left).map(str::to_owned).collect();
        let find_special = |name: &str| special.contains(&name).then(|| find(name)).flatten();
        let (change, row) = (find_special(CHANGE_COLUMN), find_special(ROW_COLUMN));
        if follow.is_some() && key.is_none() && row.is_none() {
            return Err(StoreError::Unfit(format!(
                "rows of table {} have no keys, so a row of {origin} that is read again can't be told from a new one; build the table \
                 with --key, say in a column {ROW_COLUMN} which row each one is, or update it without --follow",
                manifest.name
            )));
        }
        // What is meant for the table or for an update and read by neither would do something else than it says. A database's
        // table has columns for others; those that look like an update's are refused there too.
        let foreign = |c: &&String| !known.contains(c) && !ignored(c) && options.follow.as_ref() != Some(c);
        let others: Vec<String> = columns.iter().filter(foreign).cloned().collect();
        let shared = options.changes.is_database();
        if let Some(foreign) = others.iter().find(|c| !shared || c.starts_with('_')) {
            let knows = special.join(" and ");
            let lacks = manifest.values.iter().find(|name| stands(name).is_none() && !ignored(name));
            let lacks = lacks.map_or(String::new(), |name| format!(" no column {name:?}, and has"));
            return Err(StoreError::Unfit(format!(
                "{origin} has{lacks} a column {foreign:?}, which is none of the table's; an update of it knows {knows}, so rename it, \
                 leave it out, or say --ignore {foreign}; the table's columns are {}",
                own.join(", ")
            )));
        }
        let memory = if follow.is_some() { options.memory / 3 } else { options.memory };
        let [sorted, by_value, behind] = [0; 3].map(|_| ExternalSort::new(work, memory, Order::Hash));
        Ok(Self {
            stored,
            shape,
            options,
            origin,
            source,
            key,
            values,
            change,
            row,
            follow,
            before: before.map(|place| place.last.clone()),
            sorted,
            by_value,
            behind,
            others,
            without,
            note,
        })
    }

    /// Reads all, the changes so far before them and, where CHANGES are the whole table, its keys behind them. Keys are
    /// not hashed yet but by BLAKE3 without a salt: it only brings equal ones together.
    pub(super) fn read(&mut self, progress: &mut dyn Progress) -> Result<Read, StoreError> {
        let mut payload = Vec::new();
        if let Some((path, bytes)) = self.stored.checked_log()? {
            for entry in Log::new(bytes) {
                let entry = entry.ok_or_else(|| StoreError::Damaged {
                    path: path.clone(),
                    why: "an entry in it is cut or is none".into(),
                })?;
                entry.encode(&mut payload);
                self.sorted.push(group_of(&entry.key), 0, &payload)?;
            }
        }
        let (mut rows, mut count) = (self.stored.manifest().rows, 0u64);
        let mut reached = Reached::after(self.before.as_ref(), now());
        while let Some(row) = self.source.next_row()? {
            count += 1;
            let fail = |why: String| {
                let (origin, unit) = (self.origin.clone(), self.options.changes.unit());
                StoreError::Row { origin, unit, line: row.line, why }
            };
            let entry = self.entry(&row.values, &mut rows).map_err(fail)?;
            entry.encode(&mut payload);
            match self.follow {
                None => self.sorted.push(group_of(&entry.key), row.line, &payload)?,
                Some(follow) => {
                    let (order, kept) = reached.see(&row.values[follow]);
                    payload.push(kept.0);
                    self.by_value.push(order, row.line, &payload)?;
                }
            }
            if count.is_multiple_of(ROWS_A_WORD) {
                self.tell(progress)?;
            }
        }
        self.tell(progress)?;
        if let Some(why) = reached.has_no_order() {
            return Err(StoreError::Unfit(format!("{}: {why}", self.origin)));
        }
        if self.options.whole {
            if count == 0 {
                return Err(leaves_nothing(&self.origin, "has no rows"));
            }
            for number in 0..self.stored.manifest().base_rows() {
                if let Some(key) = self.stored.base_key(number)? {
                    let entry = Entry { number: UNKNOWN, key, word: Word::Listed };
                    entry.encode(&mut payload);
                    self.sorted.push(group_of(&entry.key), u64::MAX, &payload)?;
                }
            }
        }
        let taken = |sort| std::mem::replace(sort, ExternalSort::new(Path::new("."), 0, Order::Hash));
        let mut place = 0;
        let mut next = |sorted: &mut ExternalSort, payload: &[u8]| {
            place += 1;
            sorted.push(group_of(&Entry::decoded(payload).key), place, payload)
        };
        for row in taken(&mut self.by_value).finish()? {
            let mut row = row?;
            match row.payload.pop() {
                Some(kept) if reached.is_behind(Kept(kept)) => {
                    self.behind.push(row.hash, row.line, &row.payload)?;
                }
                _ => next(&mut self.sorted, &row.payload)?,
            }
        }
        for row in taken(&mut self.behind).finish()? {
            next(&mut self.sorted, &row?.payload)?;
        }
        Ok(Read { sorted: taken(&mut self.sorted), reached })
    }

    /// As [`Source::passed_over`].
    pub(super) fn passed_over(&self) -> &[String] {
        self.source.passed_over()
    }

    fn tell(&self, progress: &mut dyn Progress) -> Result<(), StoreError> {
        let Position { done, total, unit } = self.source.position();
        stages::at(progress, READING, done, total, unit)
    }

    /// What a row of CHANGES says. `rows` counts those of a table without keys.
    fn entry(&self, cells: &[Value], rows: &mut u64) -> Result<Entry, String> {
        let remove = match self.change.map(|i| &cells[i]) {
            None | Some(Value::Null) => false,
            Some(Value::Text(text)) if text.is_empty() || text == "set" => false,
            Some(Value::Text(text)) if text == "remove" => true,
            Some(Value::Text(text)) => {
                return Err(format!("its {CHANGE_COLUMN} is {}; write set or remove", short(text)));
            }
            Some(_) => return Err(format!("its {CHANGE_COLUMN} is not text; write set or remove")),
        };
        let word = if remove { Word::Removed } else { self.set(cells)? };
        if let Some(key) = self.key {
            if self.source.missing().contains(&key) {
                let name = &self.source.columns()[key];
                return Err(format!("it has no {name:?}, which rows are found by; give every row one"));
            }
            let form = self.stored.manifest().key_type.or(Kinds::of(&cells[key]).key_type());
            let key = codec::encode_key(&cells[key]).map_err(|e| e.to_string())?;
            let key = form.map_or_else(|| key.clone(), |form| form.of(&key).into_owned());
            return Ok(Entry { number: UNKNOWN, key, word });
        }
        let number = match self.row.map(|i| &cells[i]) {
            None | Some(Value::Null) => None,
            Some(Value::Text(text)) if text.is_empty() => None,
            Some(Value::Text(text)) => Some(text.parse::<u64>().map_err(|_| text.clone())),
            Some(Value::Int(n)) => Some(u64::try_from(*n).map_err(|_| n.to_string())),
            Some(other) => Some(Err(other.to_json().to_string())),
        };
        let number = match number {
            None if remove => return Err(format!("it removes no row; say which in {ROW_COLUMN}")),
            None if self.follow.is_some() => {
                return Err(format!(
                    "its {ROW_COLUMN} is empty, and a row that is added would be added again whenever it is read; say which row it \
                     is, or update the table without --follow"
                ));
            }
            None => {
                *rows += 1;
                *rows - 1
            }
            Some(Ok(number)) if number < *rows => number,
            Some(Ok(number)) => {
                return Err(format!(
                    "its {ROW_COLUMN} is {number}, and the table has {rows} rows, counted from 0; leave \
                     {ROW_COLUMN} empty to add one"
                ));
            }
            Some(Err(text)) => {
                return Err(format!(
                    "its {ROW_COLUMN} is {}, no row number; count rows from 0",
                    short(&text)
                ));
            }
        };
        Ok(Entry { number, key: number.to_le_bytes().to_vec(), word })
    }

    /// What a row that sets a record says. A missing column does not mean null, which would wipe the value there is.
    fn set(&self, cells: &[Value]) -> Result<Word, String> {
        let given = |position: &Option<usize>| position.filter(|i| !self.source.missing().contains(i));
        let kept =
            |(column, position)| given(position).map(|i| self.shape.kept(column, &cells[i])).transpose();
        let values: Vec<Option<Cow<'_, Value>>> =
            self.values.iter().enumerate().map(kept).collect::<Result<_, _>>()?;
        let missing = values.iter().position(Option::is_none);
        if let Some(missing) = missing.filter(|_| !self.options.partial) {
            let name = &self.stored.manifest().values[missing];
            return Err(match self.values[missing] {
                _ if self.options.ignore.contains(name) => format!(
                    "its {name:?} is passed over (--ignore), and a row that is set gives every column; say --partial to keep what \
                     rows have there"
                ),
                Some(_) => format!(
                    "it has no {name:?}, and would wipe what the row has there; write null where that is meant, or say --partial \
                     to keep it"
                ),
                None => format!(
                    "{}; add it, or say --partial to keep what rows have there",
                    no_column("its source", name, self.source.columns())
                ),
            });
        }
        if missing.is_some() || self.shape.judges() {
            return Ok(Word::Columns(Shape::columns(&values)));
        }
        let mut record = Vec::new();
        values
            .into_iter()
            .flatten()
            .for_each(|v| codec::encode_record(std::slice::from_ref(&*v), &mut record));
        fits(record).map(Word::Set)
    }
}

/// Opens CHANGES; of a source that is followed, what comes behind `place`. And what should be said of where that begins.
fn open_behind(
    place: Option<&Follow>,
    options: &UpdateOptions,
    known: &[String],
) -> Result<(Box<dyn Source>, Option<String>), StoreError> {
    let open = |spec: &SourceSpec| spec.open_changes(known, &options.ignore);
    let Some(column) = &options.follow else { return Ok((open(&options.changes)?, None)) };
    let last = place.map(|place| &place.last);
    let Followed { spec, of_texts, note } = options.changes.since(column, last, options.overlap)?;
    let mut source = open(&spec)?;
    let followed = source.columns().iter().position(|c| c == column);
    if let Some(spec) = of_texts.filter(|_| followed.is_some_and(|i| source.is_texts(i))) {
        source = open(&spec)?;
    }
    Ok((source, note))
}

/// CHANGES as the whole table that would leave none of its rows.
pub(super) fn leaves_nothing(origin: &str, why: &str) -> StoreError {
    StoreError::Unfit(format!(
        "{origin} {why}, and as the whole table (--whole) would remove every row; check it, or build the table from other rows"
    ))
}

fn no_column(origin: &str, name: &str, columns: &[String]) -> String {
    format!("{origin} has no column {name:?}; its columns are {}", columns.join(", "))
}

/// What brings equal keys together.
fn group_of(key: &[u8]) -> u128 {
    u128::from_le_bytes(blake3::hash(key).as_bytes()[..16].try_into().expect("16 bytes"))
}
