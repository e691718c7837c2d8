//! The server that sees what is asked for.

use std::sync::Arc;

use blindcore_accel::{Cost, Placed};

use super::PICKED;
use super::keys::PlainKeys;
use crate::schemes::matrix;
use crate::{Error, Params, RegisteredKeys, SchemeServer};

pub(super) struct PlainServer {
    params: Params,
    records: Arc<dyn Placed>,
}

impl PlainServer {
    pub(super) fn new(params: Params, mut operands: Vec<Arc<dyn Placed>>) -> Self {
        Self { params, records: operands.remove(0) }
    }
}

impl SchemeServer for PlainServer {
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        let (columns, record_bytes) = (self.params.geometry.columns, self.params.geometry.record_bytes);
        let mix = |i: usize, what: &[u8], mut bytes: Vec<u8>| {
            if let Some(keys) = keys.get(i).and_then(|keys| keys.get::<PlainKeys>()) {
                keys.mix(what, &mut bytes);
            }
            bytes
        };
        let words: Vec<Vec<u32>> =
            (0..).zip(queries).map(|(i, query)| matrix::words(&mix(i, b"query", query.to_vec()))).collect();
        let picked: Vec<Vec<u32>> = words
            .iter()
            .map(|words| {
                let mut picked = vec![0u32; columns];
                // What is not a column is a stranger's, or none.
                for column in &words[..PICKED] {
                    if let Some(times) = picked.get_mut(*column as usize) {
                        *times = times.wrapping_add(1);
                    }
                }
                picked
            })
            .collect();
        let picked: Vec<&[u32]> = picked.iter().map(Vec::as_slice).collect();
        let mut cost = Cost::default();
        let sums = matrix::run_gathered(&*self.records, &picked, &mut cost)?;
        let groups = words.iter().map(|words| words[PICKED] as usize);
        let answers = (0..).zip(sums.iter().zip(groups)).map(|(i, (sums, group))| {
            let rows =
                group.checked_mul(record_bytes).and_then(|first| sums.get(first..first + record_bytes));
            let slot = rows
                .map_or_else(|| vec![0; record_bytes], |rows| rows.iter().map(|word| *word as u8).collect());
            mix(i, b"answer", slot)
        });
        Ok((answers.collect(), cost))
    }
}
