//! Batches of keys beside as many lookups one by one, and gathered.

use std::sync::Arc;

use blindcore_accel::{Allocator, Device, SharedBytes};
use blindcore_accel_cpu::HugePages;
use blindcore_lookup::batch::{BatchServer, Buckets};
use blindcore_lookup::{
    Client, Params, RegisteredKeys, SchemeChoice, SecretKeys, Selection, plan, preprocess, schemes,
};
use blindcore_units::{Progress, Unit};

use crate::options::{GATHERED, Options};
use crate::{Row, Samples, noise};

/// Keys of a batch.
const KEYS: usize = 256;
/// Records, at most, and bytes of one.
const RECORDS: u64 = 1 << 20;
const RECORD_BYTES: usize = 256;

/// Measures rows `lookup.batch256*`: of a scheme without a hint, whose rows have the short names, and of one under registered keys.
///
/// # Errors
/// No parameter set holds the table, the device or memory fails, or an answer doesn't decode to what was asked for.
pub(crate) fn measure(args: &Options, one: &Device, progress: &mut dyn Progress) -> anyhow::Result<Vec<Row>> {
    let records = RECORDS.min((args.gib * (1u64 << 30) as f64 / RECORD_BYTES as f64) as u64).max(1);
    let mut rows = Vec::new();
    for registered in [false, true] {
        let mut schemes = schemes::without_hint().into_iter();
        let Some(scheme) = schemes.find(|scheme| scheme.registers_keys() == registered) else { continue };
        let params = plan(records, RECORD_BYTES, true, SchemeChoice::Only(scheme))?;
        let suffix = if registered { format!(".{scheme}") } else { String::new() };
        rows.extend(of(args, records, params, &suffix, one, progress)?);
    }
    Ok(rows)
}

/// Matrices of the same slots, each in memory of its own, and their client.
struct Asked {
    params: Params,
    slots: SharedBytes,
    server: BatchServer,
    client: Client,
}

impl Asked {
    fn new(params: Params, buckets: usize, one: &Device) -> anyhow::Result<Self> {
        let geometry = params.geometry;
        let slots: SharedBytes = Arc::new(noise(geometry.columns * geometry.record_bytes)?);
        let mut database = HugePages.zeroed(params.database_bytes())?;
        for group in 0..geometry.groups {
            blindcore_lookup::pack_group(&params, group, (*slots).as_ref(), database.as_mut());
        }
        let database: SharedBytes = Arc::new(database);
        let mut hint = vec![0; params.hint_bytes() as usize];
        let derived = preprocess(&params, one, vec![database.clone()], &mut hint, &mut ())?;
        let derived = derived.into_iter().map(|operand| Arc::new(operand) as SharedBytes);
        let copies = |operand: SharedBytes| -> anyhow::Result<Vec<SharedBytes>> {
            let copy = |_| -> anyhow::Result<SharedBytes> {
                let bytes = (*operand).as_ref();
                let mut memory = HugePages.zeroed(bytes.len())?;
                memory.as_mut().copy_from_slice(bytes);
                Ok(memory.share())
            };
            if buckets == 1 { Ok(vec![operand]) } else { (0..buckets).map(copy).collect() }
        };
        let operands = [database].into_iter().chain(derived).map(copies).collect::<Result<Vec<_>, _>>()?;
        let server = BatchServer::new(params, buckets, one, &operands)?;
        Ok(Self { params, slots, server, client: Client::new(params, Arc::new(hint))? })
    }

    /// Times answers to requests of queries, each of some for every matrix, and checks them.
    fn answer(
        &self,
        requests: usize,
        keys: Option<&(SecretKeys, RegisteredKeys)>,
        first: usize,
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        let (buckets, geometry) = (self.server.buckets(), self.params.geometry);
        let slot = |i: usize| ((first + i) * 7919) as u64 % geometry.slots();
        let (mut asked, mut pending) = (Vec::new(), Vec::new());
        for request in 0..requests {
            let mut queries = Vec::new();
            for i in request * buckets..(request + 1) * buckets {
                let prepared = match keys {
                    Some((secret, _)) => self.client.prepare_under(secret)?,
                    None => self.client.prepare()?,
                };
                let (query, rest) = self.client.query(prepared, &Selection::index(&geometry, slot(i))?)?;
                queries.extend(query);
                pending.push(rest);
            }
            asked.push(queries);
        }
        let borrowed: Vec<&[u8]> = asked.iter().map(Vec::as_slice).collect();
        let under: Vec<&RegisteredKeys> =
            keys.iter().flat_map(|(_, keys)| std::iter::repeat_n(keys, requests)).collect();
        let answered = samples.time(|| self.server.answer_under(&borrowed, &under))?;
        anyhow::ensure!(answered.failed.is_empty(), "a bucket was not answered");
        let each = self.params.answer_bytes();
        for (i, pending) in pending.into_iter().enumerate() {
            let answer = &answered.answers[i / buckets][i % buckets * each..][..each];
            let column = slot(i) as usize % geometry.columns;
            let want = &(*self.slots).as_ref()[column * geometry.record_bytes..][..geometry.record_bytes];
            let found = self.client.decode(pending, answer)?;
            anyhow::ensure!(found.slot.as_slice() == want, "an answer decoded to another record");
        }
        Ok(())
    }
}

fn of(
    args: &Options,
    records: u64,
    params: Params,
    suffix: &str,
    one: &Device,
    progress: &mut dyn Progress,
) -> anyhow::Result<Vec<Row>> {
    let scheme = params.scheme;
    let buckets = Buckets::for_keys(KEYS)?;
    progress.at("preparing", 0, Some(2), Unit::Items);
    let table = Asked::new(params, 1, one)?;
    let shape = SchemeChoice::Bucket { scheme, keys: KEYS };
    let bucket = buckets.filled(plan(buckets.records(records), RECORD_BYTES, true, shape)?, records)?;
    progress.at("preparing", 1, Some(2), Unit::Items);
    let batches = Asked::new(bucket, buckets.count(), one)?;
    let keys = |params: &Params| -> anyhow::Result<Option<(SecretKeys, RegisteredKeys)>> {
        if !params.registers_keys() {
            return Ok(None);
        }
        let made = params.make_keys()?;
        Ok(Some((params.open_secret(&made.secret)?, params.open_registered(&made.public)?)))
    };
    let (table_keys, batch_keys) = (keys(&params)?, keys(&bucket)?);
    let [mut single, mut gathered, mut batch]: [Samples; 3] = Default::default();
    for i in 0..=args.repeat {
        progress.at("looking up", i as u64, Some(args.repeat as u64 + 1), Unit::Items);
        table.answer(1, table_keys.as_ref(), i * 131, &mut single)?;
        table.answer(GATHERED, table_keys.as_ref(), i * 137, &mut gathered)?;
        batches.answer(1, batch_keys.as_ref(), i * 139, &mut batch)?;
        if i == 0 {
            // The first round only warms up.
            (single, gathered, batch) = Default::default();
        }
    }
    let rate = |samples: &Samples, keys: usize| samples.map(|t| keys as f64 / t);
    let alone = rate(&single, 1).median();
    let of_batch = |bytes: usize| (bytes * buckets.count()) as f64;
    let row = |what: &str, text, unit, value, of, of_value| {
        Row::new(format!("lookup.{what}{suffix}"), text, unit, 1, value, of, of_value)
    };
    Ok(vec![
        row(
            "batch256",
            "256 keys in one request",
            "keys/s",
            rate(&batch, KEYS),
            "one lookup at a time",
            alone,
        ),
        row(
            "batch256.gathered",
            "16 lookups in one pass",
            "keys/s",
            rate(&gathered, GATHERED),
            "one lookup at a time",
            alone,
        ),
        row(
            "batch256.bytes",
            "a batch's queries and answers",
            "bytes",
            Samples(vec![of_batch(bucket.query_bytes() + bucket.answer_bytes())]),
            "256 lookups' queries and answers",
            (KEYS * (params.query_bytes() + params.answer_bytes())) as f64,
        ),
        row(
            "batch256.memory",
            "the server's matrices of all buckets",
            "bytes",
            Samples(vec![of_batch(stored(&bucket))]),
            "those of the table",
            stored(&params) as f64,
        ),
    ])
}

fn stored(params: &Params) -> usize {
    params.operands().iter().map(schemes::Operand::bytes).sum()
}
