//! Small tables, made in memory. The tests of this crate and those of the client use it, each a part.
#![allow(dead_code)]

use std::sync::{Arc, OnceLock};

use blindcore_accel::{Device, SharedBytes};
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::keyword::{FINGERPRINT_BYTES, KeyHash, columns_for, solve};
use blindcore_lookup::{Geometry, InsecurePlain, Params, SchemeRef, Server, pack_group, preprocess, schemes};
use blindcore_wire::codec::encode_record;
use blindcore_wire::proof::{Proofs, proof_bytes, seal};
use blindcore_wire::{
    Change, ChangesContent, KeyType, KeyedContent, PartDescription, PartKind, TableContent, TableDescription,
    Value, encode_key_slot,
};
use bytes::Bytes;

pub(crate) fn device() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(|| Cpu::with_threads("cpu", 2).unwrap())
}

/// A table that a test serves again and again.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) description: TableDescription,
    pub(crate) records: MadePart,
    pub(crate) keys: Option<MadePart>,
    pub(crate) changes: Option<MadePart>,
    pub(crate) new_keys: Option<MadePart>,
}

/// A scheme with a hint.
pub(crate) fn simple() -> SchemeRef {
    schemes::find("simple").unwrap()
}

/// A scheme whose server keeps more than the records.
#[allow(dead_code, reason = "two programs of tests make tables, and one of them needs no such")]
pub(crate) fn double() -> SchemeRef {
    schemes::find("double").unwrap()
}

/// No cryptography, for what does not depend on it.
#[allow(dead_code, reason = "two programs of tests make tables, and one of them needs no such")]
pub(crate) fn plain() -> SchemeRef {
    InsecurePlain::for_tests().scheme()
}

/// The same under keys that clients register.
#[allow(dead_code, reason = "two programs of tests make tables, and one of them needs no such")]
pub(crate) fn registered() -> SchemeRef {
    InsecurePlain::registered_for_tests().scheme()
}

/// The scheme of what lies beside records of this one.
fn beside(scheme: SchemeRef) -> SchemeRef {
    if scheme == double() { simple() } else { scheme }
}

/// A part before it is placed.
#[derive(Clone)]
pub(crate) struct MadePart {
    params: Params,
    proofs: Option<Proofs>,
    /// The cells of each group.
    groups: Vec<Vec<u8>>,
    database: SharedBytes,
    derived: Vec<SharedBytes>,
    pub(crate) hint: SharedBytes,
}

impl MadePart {
    fn new(params: Params, groups: &[Vec<u8>], roots: Option<(u8, Vec<u8>)>) -> Self {
        let database = packed(&params, groups);
        let mut hint = vec![0u8; params.hint_bytes() as usize];
        let derived = preprocess(&params, device(), vec![database.clone()], &mut hint, &mut ()).unwrap();
        let proofs = roots.map(|(depth, roots)| {
            hint.extend_from_slice(&roots);
            Proofs { depth, chunks: roots.len() as u32 / 16 }
        });
        let derived = derived.into_iter().map(|operand| Arc::new(operand) as SharedBytes).collect();
        Self { params, proofs, groups: groups.to_vec(), database, derived, hint: Arc::new(hint) }
    }

    /// The same but for four bytes of every slot, from this one on: what a server that lies computes on. With hints of
    /// the right slots each of them decodes to a byte at random, so that one alone would be right once in 256 times.
    pub(crate) fn wrong(&self, byte: usize) -> Self {
        let mut groups = self.groups.clone();
        for cell in groups.iter_mut().flat_map(|g| g.chunks_mut(self.params.geometry.record_bytes)) {
            cell[byte..byte + 4].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        }
        Self { database: packed(&self.params, &groups), ..self.clone() }
    }

    /// A server of it in this process.
    pub(crate) fn server(&self) -> Server {
        let operands = std::iter::once(&self.database).chain(&self.derived).map(|o| vec![o.clone()]);
        Server::new(self.params, device(), operands.collect()).unwrap()
    }

    pub(crate) fn hint(&self) -> Bytes {
        Bytes::copy_from_slice((*self.hint).as_ref())
    }

    fn describe(&self) -> PartDescription {
        let hint_digest = *blake3::hash((*self.hint).as_ref()).as_bytes();
        PartDescription { params: self.params, hint_digest, proofs: self.proofs, buckets: 1 }
    }
}

fn packed(params: &Params, groups: &[Vec<u8>]) -> SharedBytes {
    let mut database = params.database_buffer();
    for (group, records) in groups.iter().enumerate() {
        pack_group(params, group, records, &mut database);
    }
    Arc::new(database)
}

impl Made {
    /// Bytes of the hint of `records`.
    pub(crate) fn hint_len(&self) -> u64 {
        self.description.records().hint_bytes()
    }

    /// A part, if the table has it.
    pub(crate) fn part(&self, kind: PartKind) -> Option<&MadePart> {
        match kind {
            PartKind::Records => Some(&self.records),
            PartKind::Keys => self.keys.as_ref(),
            PartKind::Changes => self.changes.as_ref(),
            PartKind::NewKeys => self.new_keys.as_ref(),
            PartKind::Batches => None,
        }
    }

    /// The table after rows were set (by their key, or by their number in 8 bytes) or removed; some of those set are
    /// new.
    pub(crate) fn changed(&self, epoch: u64, rows: &[(&[u8], Option<Vec<Value>>)], added: &[&[u8]]) -> Made {
        let salt = [0x77; 32];
        let payloads: Vec<(Vec<u8>, Vec<u8>)> = rows
            .iter()
            .map(|(key, record)| {
                let (mut payload, record) = (Vec::new(), record.as_ref().map(|r| encoded(r)));
                record.as_deref().map_or(Change::Removed, Change::Set).encode(&mut payload);
                (key.to_vec(), payload)
            })
            .collect();
        let depth = self.records.proofs.map(|p| p.depth);
        let proofs = |kind| depth.map(|depth| (kind, depth));
        let (records, seeds) =
            by_key(&salt, beside(self.records.params.scheme), 2, &payloads, proofs(PartKind::Changes));
        let before = &self.description;
        let new_keys = (!added.is_empty() && self.keys.is_some())
            .then(|| key_slots(beside(self.records.params.scheme), added, proofs(PartKind::NewKeys)));
        let description = TableDescription::new(TableContent {
            name: before.name().into(),
            epoch,
            rows: before.rows() + added.len() as u64,
            value_columns: before.value_columns().to_vec(),
            records: self.records.describe(),
            keyed: before.key_column().map(|column| KeyedContent {
                column: column.into(),
                salt: *before.salt().unwrap(),
                seeds: Bytes::copy_from_slice(before.seeds()),
                keys: self.keys.as_ref().map(MadePart::describe),
                blocks: 1,
                form: before.key_type(),
                batches: None,
            }),
            changes: Some(ChangesContent {
                base_epoch: before.epoch(),
                base_rows: before.rows(),
                records: records.describe(),
                salt,
                seeds: seeds.into(),
                new_keys: new_keys.as_ref().map(MadePart::describe),
                blocks: 1,
            }),
        })
        .unwrap();
        Made { description, changes: Some(records), new_keys, ..self.clone() }
    }

    /// The same table, whose keys have a form.
    pub(crate) fn formed(self, form: KeyType) -> Made {
        let before = &self.description;
        let description = TableDescription::new(TableContent {
            name: before.name().into(),
            epoch: before.epoch(),
            rows: before.rows(),
            value_columns: before.value_columns().to_vec(),
            records: self.records.describe(),
            keyed: Some(KeyedContent {
                column: before.key_column().unwrap().into(),
                salt: *before.salt().unwrap(),
                seeds: Bytes::copy_from_slice(before.seeds()),
                keys: self.keys.as_ref().map(MadePart::describe),
                blocks: 1,
                form: Some(form),
                batches: None,
            }),
            changes: None,
        });
        Made { description: description.unwrap(), ..self }
    }
}

/// Records by key, and the seeds of their groups.
fn by_key(
    salt: &[u8; 32],
    scheme: SchemeRef,
    groups: usize,
    rows: &[(Vec<u8>, Vec<u8>)],
    proofs: Option<(PartKind, u8)>,
) -> (MadePart, Vec<u8>) {
    let longest = rows.iter().map(|(_, r)| r.len()).max().unwrap().max(2);
    let len = FINGERPRINT_BYTES + longest + proofs.map_or(0, |(_, depth)| proof_bytes(depth));
    let mut buckets = vec![(Vec::new(), Vec::new()); groups];
    for (key, record) in rows {
        let hash = KeyHash::new(salt, key);
        let (hashes, slots) = &mut buckets[hash.group(groups)];
        hashes.push(hash);
        slots.extend_from_slice(&hash.fingerprint);
        slots.extend_from_slice(record);
        slots.resize(hashes.len() * len, 0);
    }
    let columns = columns_for(buckets.iter().map(|(h, _)| h.len()).max().unwrap());
    let mut seeds = Vec::new();
    let (mut cells, mut roots) = (Vec::new(), Vec::new());
    for (hashes, slots) in &mut buckets {
        if let Some((kind, depth)) = proofs {
            let ids: Vec<u128> = hashes.iter().map(KeyHash::order).collect();
            roots.extend(seal(kind, depth, roots.len() as u32, &ids, slots));
        }
        let mut group = vec![0; columns * len];
        seeds.push(solve(hashes, slots, columns, len, scheme.lanes(), &mut group).unwrap());
        cells.push(group);
    }
    let geometry = Geometry { record_bytes: len, groups, columns };
    let roots = proofs.map(|(_, depth)| (depth, roots.concat()));
    (MadePart::new(Params::new(scheme, geometry).unwrap(), &cells, roots), seeds)
}

/// Keys by index.
fn key_slots(scheme: SchemeRef, keys: &[&[u8]], proofs: Option<(PartKind, u8)>) -> MadePart {
    let longest = keys.iter().map(|k| k.len()).max().unwrap();
    let slot = |key: &&[u8]| {
        let mut slot = vec![0; 2 + longest];
        encode_key_slot(key, &mut slot).unwrap();
        slot
    };
    dense(scheme, &keys.iter().map(slot).collect::<Vec<_>>(), proofs)
}

/// What a table without keys calls row `i`.
pub(crate) fn number(i: u64) -> [u8; 8] {
    i.to_le_bytes()
}

/// Slots of equal length, group after group.
fn dense(scheme: SchemeRef, slots: &[Vec<u8>], proofs: Option<(PartKind, u8)>) -> MadePart {
    let columns = (slots.len() as f64).sqrt().ceil() as usize;
    let len = slots[0].len() + proofs.map_or(0, |(_, depth)| proof_bytes(depth));
    let geometry = Geometry { record_bytes: len, groups: slots.len().div_ceil(columns), columns };
    let (mut groups, mut roots) = (Vec::new(), Vec::new());
    for (group, slots) in slots.chunks(columns).enumerate() {
        let mut cells: Vec<u8> =
            slots.iter().flat_map(|s| [&s[..], &vec![0; len - s.len()]].concat()).collect();
        if let Some((kind, depth)) = proofs {
            let ids: Vec<u128> = ((group * columns) as u128..).take(slots.len()).collect();
            roots.extend(seal(kind, depth, roots.len() as u32, &ids, &mut cells));
        }
        groups.push(cells);
    }
    let roots = proofs.map(|(_, depth)| (depth, roots.concat()));
    MadePart::new(Params::new(scheme, geometry).unwrap(), &groups, roots)
}

fn encoded(record: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_record(record, &mut bytes);
    bytes
}

fn padded(record: &[Value], len: usize) -> Vec<u8> {
    let mut bytes = encoded(record);
    bytes.resize(len, 0);
    bytes
}

fn longest(rows: &[Vec<Value>]) -> usize {
    rows.iter().map(|r| encoded(r).len()).max().unwrap().max(1)
}

pub(crate) fn columns(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("column {i}")).collect()
}

/// A table without keys.
pub(crate) fn unkeyed(name: &str, epoch: u64, scheme: SchemeRef, rows: &[Vec<Value>]) -> Made {
    unkeyed_with(name, epoch, scheme, rows, None)
}

/// The same with proofs of this depth.
pub(crate) fn unkeyed_with(
    name: &str,
    epoch: u64,
    scheme: SchemeRef,
    rows: &[Vec<Value>],
    depth: Option<u8>,
) -> Made {
    let len = longest(rows);
    let slots: Vec<Vec<u8>> = rows.iter().map(|r| padded(r, len)).collect();
    let records = dense(scheme, &slots, depth.map(|depth| (PartKind::Records, depth)));
    let description = TableDescription::new(TableContent {
        name: name.into(),
        epoch,
        rows: rows.len() as u64,
        value_columns: columns(rows[0].len()),
        records: records.describe(),
        keyed: None,
        changes: None,
    })
    .unwrap();
    Made { description, records, keys: None, changes: None, new_keys: None }
}

/// A table with keys, found by index too.
pub(crate) fn keyed(
    name: &str,
    epoch: u64,
    scheme: SchemeRef,
    groups: usize,
    rows: &[(String, Vec<Value>)],
) -> Made {
    keyed_with(name, epoch, scheme, groups, rows, None)
}

/// The same with proofs of this depth.
pub(crate) fn keyed_with(
    name: &str,
    epoch: u64,
    scheme: SchemeRef,
    groups: usize,
    rows: &[(String, Vec<Value>)],
    depth: Option<u8>,
) -> Made {
    let proofs = |kind| depth.map(|depth| (kind, depth));
    let salt = [epoch as u8; 32];
    let encoded: Vec<_> =
        rows.iter().map(|(key, record)| (key.clone().into_bytes(), encoded(record))).collect();
    let (records, seeds) = by_key(&salt, scheme, groups, &encoded, proofs(PartKind::Records));
    let keys: Vec<_> = rows.iter().map(|(key, _)| key.as_bytes()).collect();
    let keys = key_slots(beside(scheme), &keys, proofs(PartKind::Keys));
    let description = TableDescription::new(TableContent {
        name: name.into(),
        epoch,
        rows: rows.len() as u64,
        value_columns: columns(rows[0].1.len()),
        records: records.describe(),
        keyed: Some(KeyedContent {
            column: "key".into(),
            salt,
            seeds: seeds.into(),
            keys: Some(keys.describe()),
            blocks: 1,
            form: None,
            batches: None,
        }),
        changes: None,
    })
    .unwrap();
    Made { description, records, keys: Some(keys), changes: None, new_keys: None }
}

/// Rows such as `key-7` with a text, a number and, at times, nothing.
pub(crate) fn people(n: usize) -> Vec<(String, Vec<Value>)> {
    (0..n)
        .map(|i| {
            let third = if i % 3 == 0 { Value::Null } else { Value::Real(i as f64 / 8.0) };
            (format!("key-{i}"), vec![Value::Text(format!("person {i}")), Value::Int(i as i64 * 1001), third])
        })
        .collect()
}

/// Values of a row of [`people`], or of a change to one.
pub(crate) fn row(name: &str) -> Option<Vec<Value>> {
    Some(vec![Value::Text(name.into()), Value::Int(1), Value::Null])
}
