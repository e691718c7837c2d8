//! A table's description: as it comes, and with digests that fit, so that what lies behind them is reached.
#![no_main]
use blindcore_lookup::{Geometry, Params, schemes};
use blindcore_wire::proto::{self, GetTableResponse};
use blindcore_wire::{
    BatchesContent, ChangesContent, KeyedContent, PartDescription, Proofs, TableContent, TableDescription,
};
use libfuzzer_sys::fuzz_target;
use prost::Message;

fn part(part: proto::Part, buckets: u32) -> Option<PartDescription> {
    let name = match part.scheme {
        2 => "double",
        3 => "hintless",
        4 => "hintless-q128",
        5 => "onionpir2",
        _ => "simple",
    };
    let scheme = schemes::find(name).ok()?;
    let size = |n: u64| usize::try_from(n).ok();
    let geometry = Geometry {
        record_bytes: size(part.record_bytes)?,
        groups: size(part.groups)?,
        columns: size(part.columns)?,
    };
    let proofs = part.proofs.map(|p| Proofs { depth: p.depth as u8, chunks: p.chunks });
    Some(PartDescription { params: Params::new(scheme, geometry).ok()?, hint_digest: [7; 32], proofs, buckets })
}

fn content(table: proto::Table) -> Option<TableContent> {
    let proto::Table {
        name,
        epoch,
        rows,
        key_column,
        value_columns,
        records,
        keys,
        seeds,
        blocks,
        changes,
        batches,
        ..
    } = table;
    let blocks = blocks.unwrap_or(1);
    let fitting = |records: &PartDescription, seeds: &[u8]| {
        let groups = records.params.geometry.groups.saturating_mul(records.buckets as usize);
        let mut fitting = seeds.to_vec();
        if groups < 1 << 16 {
            fitting.resize(groups, 0);
        }
        fitting
    };
    let records = part(records?, 1)?;
    let seeds = fitting(&records, &seeds);
    let keys = match keys {
        Some(keys) => Some(part(keys, 1)?),
        None => None,
    };
    let batches = match batches {
        None => None,
        Some(proto::Batches { keys, buckets, records, seeds }) => {
            let records = part(records?, buckets)?;
            let seeds = fitting(&records, &seeds).into();
            Some(BatchesContent { keys, records, seeds })
        }
    };
    let keyed = key_column.map(|column| {
        let seeds = seeds.into();
        KeyedContent { column, salt: [9; 32], seeds, keys, blocks, form: None, batches }
    });
    let changes = match changes {
        None => None,
        Some(proto::Changes { base_epoch, base_rows, records, seeds, new_keys, blocks, .. }) => {
            let records = part(records?, 1)?;
            let new_keys = match new_keys {
                Some(keys) => Some(part(keys, 1)?),
                None => None,
            };
            let seeds = fitting(&records, &seeds).into();
            let blocks = blocks.unwrap_or(1);
            Some(ChangesContent { base_epoch, base_rows, records, salt: [8; 32], seeds, new_keys, blocks })
        }
    };
    Some(TableContent { name, epoch, rows, value_columns, records, keyed, changes })
}

fuzz_target!(|data: &[u8]| {
    let Ok(GetTableResponse { table: Some(table), .. }) = GetTableResponse::decode(data) else { return };
    let _ = TableDescription::from_proto(table.clone());
    let Some(description) = content(table).and_then(|c| TableDescription::new(c).ok()) else { return };
    assert_eq!(TableDescription::from_proto(description.to_proto()).unwrap(), description);
    if let Some(index) = description.index() {
        let _ = index.select(b"a key");
    }
    if let Some(index) = description.batch_index() {
        let buckets = index.buckets();
        assert!(buckets.failure_log2() >= 40.0);
        let keys = ["a key", "another", "a key"];
        let batch = index.batch(&keys);
        assert_eq!((batch.keys(), batch.selections().len()), (keys.len(), buckets.count()));
        let columns = description.batches().unwrap().records.params.geometry.columns;
        assert!(batch.selections().iter().all(|s| s.columns().iter().all(|c| (*c as usize) < columns)));
    }
});
