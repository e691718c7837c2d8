//! A lookup without a hint, end to end on the server and on the client, beside what reading memory allows.

use std::sync::Arc;
use std::time::Instant;

use blindcore_accel::{Allocator, Device, Placed, SharedBytes, Words};
use blindcore_accel_cpu::HugePages;
use blindcore_accel_cpu::measure::{Streams, streaming_read};
use blindcore_lookup::{
    Client, OperandBytes, Params, Preprocessing, SchemeChoice, Selection, Server, pack_group, plan, schemes,
};
use blindcore_math::SecretRng;
use blindcore_math::ntt::{Ntt, primes};
use blindcore_units::{Progress, Unit};

use crate::options::{GATHERED, Options};
use crate::report::read_at;
use crate::{Row, Samples, noise};

/// Bytes of a record.
const RECORD_BYTES: usize = 256;
/// Groups of random records; the others repeat them.
const DISTINCT: usize = 4;

/// Measures rows `lookup.nohint.*`, over records of 256 bytes found by number, and some of them for the scheme that withstands quantum
/// computers too.
///
/// # Errors
/// No parameter set holds the table, the device or memory fails, or an answer doesn't decode to what was asked for.
pub(crate) fn measure(args: &Options, one: &Device, progress: &mut dyn Progress) -> anyhow::Result<Vec<Row>> {
    let records = ((args.gib * (1u64 << 30) as f64 / RECORD_BYTES as f64) as u64).max(1);
    let mut found = Vec::new();
    let classical = schemes::without_hint().into_iter().find(|scheme| !scheme.registers_keys());
    for (choice, rows) in [
        (classical.map(SchemeChoice::Only), rows as fn(&Of) -> Vec<Row>),
        (SchemeChoice::quantum(), quantum_rows),
    ] {
        let Some(choice) = choice else { continue };
        let params = plan(records, RECORD_BYTES, false, choice)?;
        found.extend(rows(&of(&params, args, one, progress)?));
    }
    Ok(found)
}

/// Measures one scheme.
fn of(params: &Params, args: &Options, one: &Device, progress: &mut dyn Progress) -> anyhow::Result<Of> {
    let params = *params;
    let geometry = params.geometry;
    let slots =
        (0..DISTINCT).map(|_| noise(geometry.columns * RECORD_BYTES)).collect::<Result<Vec<_>, _>>()?;
    let mut database = HugePages.zeroed(params.database_bytes())?;
    for group in 0..geometry.groups {
        progress.at("laying out", group as u64, Some(geometry.groups as u64), Unit::Items);
        pack_group(&params, group, slots[group % DISTINCT].as_ref(), database.as_mut());
    }
    let database: SharedBytes = Arc::new(database);
    let operands: Vec<_> = params.stored_operands().collect();
    let contract = one.contract(&operands[0].shape)?;
    let records = contract.place(blindcore_accel::Database::Packed(vec![database.clone()]))?;

    let mut seed = vec![0; params.hint_bytes() as usize];
    // Written once before: what the system takes to find memory is not preparing.
    let memory = |operand: &schemes::Operand| {
        let mut memory = HugePages.zeroed(operand.bytes())?;
        memory.as_mut().fill(0);
        Ok(OperandBytes::new(memory))
    };
    let memory = operands[1..].iter().map(memory).collect::<anyhow::Result<Vec<_>>>()?;
    let mut made = Preprocessing::resume(&params, &mut seed, memory, 0)?;
    let mut prepare = Samples::default();
    prepare.time(|| made.run(&params, one, &*records, progress))?;
    let derived: Vec<SharedBytes> = made.derived.into_iter().map(|operand| Arc::new(operand) as _).collect();
    let place = |operand: &schemes::Operand, bytes: &SharedBytes| -> anyhow::Result<Arc<dyn Placed>> {
        let contract = one.contract(&operand.shape)?;
        Ok(contract.place(blindcore_accel::Database::Packed(vec![bytes.clone()]))?)
    };
    let mut placed = vec![records.clone()];
    for (operand, bytes) in operands[1..].iter().zip(&derived) {
        placed.push(place(operand, bytes)?);
    }
    let tables = placed[1..placed.len() - 1].to_vec();
    let server = Server::placed(params, one, placed)?;
    let client = Client::new(params, Arc::new(seed))?;

    let read = (*database).as_ref();
    let tables_read: Vec<&[u8]> =
        derived[..derived.len() - 1].iter().map(|bytes| (**bytes).as_ref()).collect();
    let prime = primes(48, 2048)?.next().expect("there are primes of 48 bits");
    let ntt = Ntt::new(prime, 2048)?;
    let mut polynomial: Vec<u64> = (0..2048u64).map(|i| i * i).collect();
    let [mut single, mut many, mut reading, mut scan, mut pass, mut asked, mut transform]: [Samples; 7] =
        Default::default();
    let words = |len: usize| -> anyhow::Result<Words> {
        let mut words = vec![0u32; len];
        SecretRng::from_os()?.fill_u32(&mut words);
        Ok(Words::U32(words))
    };
    let scanned = words(operands[0].shape.query_len(1))?;
    let windows = Words::U64((0..operands[1].shape.query_len(1) as u64).map(|i| i * i).collect());
    for i in 0..=args.repeat {
        progress.at("looking up", i as u64, Some(args.repeat as u64 + 1), Unit::Items);
        reading.time(|| {
            std::hint::black_box(streaming_read(read, Streams::One));
            for tables in &tables_read {
                std::hint::black_box(streaming_read(tables, Streams::One));
            }
        });
        scan.time(|| records.run(&scanned))?;
        pass.time(|| tables.iter().try_for_each(|tables| tables.run(&windows).map(drop)))?;
        for (queries, samples) in [(1, &mut single), (GATHERED, &mut many)] {
            let slot = |q: usize| (i * 7919 + q * 104_729) as u64 % geometry.slots();
            let started = Instant::now();
            let asking = (0..queries)
                .map(|q| client.query(client.prepare()?, &Selection::index(&geometry, slot(q))?))
                .collect::<Result<Vec<_>, _>>()?;
            let made = started.elapsed().as_secs_f64();
            let (queries, pending): (Vec<_>, Vec<_>) = asking.into_iter().unzip();
            let borrowed: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
            let (answers, _) = samples.time(|| server.answer(&borrowed))?;
            let started = Instant::now();
            for (q, (pending, answer)) in pending.into_iter().zip(&answers).enumerate() {
                let decoded = client.decode(pending, answer)?;
                let (group, column) =
                    (slot(q) as usize / geometry.columns, slot(q) as usize % geometry.columns);
                let want = &slots[group % DISTINCT].as_ref()[column * RECORD_BYTES..][..RECORD_BYTES];
                anyhow::ensure!(decoded.slot.as_slice() == want, "an answer decoded to another record");
            }
            if queries.len() == 1 {
                asked.0.push(made + started.elapsed().as_secs_f64());
            }
        }
        transform.time(|| (0..100).for_each(|_| ntt.forward(std::hint::black_box(&mut polynomial))));
        if i == 0 {
            // The first round only warms up.
            (single, many, reading, scan, pass, asked, transform) = Default::default();
        }
    }
    let tables = tables_read.iter().map(|tables| tables.len()).sum();
    Ok(Of {
        params,
        records: read.len(),
        tables,
        single,
        many,
        reading,
        scan,
        pass,
        asked,
        transform,
        prepare,
    })
}

/// What was measured of a scheme: bytes, and seconds of everything.
struct Of {
    params: Params,
    records: usize,
    tables: usize,
    single: Samples,
    many: Samples,
    reading: Samples,
    scan: Samples,
    pass: Samples,
    asked: Samples,
    transform: Samples,
    prepare: Samples,
}

impl Of {
    /// Records and tables read, in GB/s.
    fn both(&self) -> f64 {
        self.reading.map(|t| (self.records + self.tables) as f64 / t / 1e9).median()
    }

    fn answer(&self) -> Samples {
        self.single.map(|t| self.records as f64 / t / 1e9)
    }

    /// Of a lookup that keeps nothing, in bytes.
    fn moved(&self) -> f64 {
        (self.params.hint_bytes() as usize + self.params.query_bytes() + self.params.answer_bytes()) as f64
    }

    /// The server's operands for a byte of the records.
    fn kept(&self) -> f64 {
        let kept: usize = self.params.operands().iter().map(schemes::Operand::bytes).sum();
        kept as f64 / (self.params.geometry.slots() as f64 * self.params.geometry.record_bytes as f64)
    }
}

fn row(
    id: &'static str,
    what: &'static str,
    unit: &'static str,
    value: Samples,
    limit: &'static str,
    of_value: f64,
) -> Row {
    Row::new(id, what, unit, 1, value, limit, of_value)
}

/// What strength against quantum computers costs.
fn quantum_rows(of: &Of) -> Vec<Row> {
    let (len, tables) = (of.records as f64, of.tables as f64);
    vec![
        row(
            "lookup.nohint.quantum128.answer.1q.1t",
            "a lookup without a hint, at 128 quantum bits",
            "GB/s",
            of.answer(),
            "records and packing tables read once",
            of.both() * len / (len + tables),
        ),
        row(
            "lookup.nohint.quantum128.answer.16q.1t",
            "16 of them in a pass",
            "GB*query/s",
            of.many.map(|t| GATHERED as f64 * len / t / 1e9),
            "one query",
            of.answer().median(),
        ),
        row(
            "lookup.nohint.quantum128.bytes",
            "a fresh client's whole traffic",
            "bytes",
            Samples(vec![of.moved()]),
            "what it fetched before the first lookup",
            of.params.hint_bytes() as f64,
        ),
        row(
            "lookup.nohint.quantum128.memory",
            "the server's operands for a byte of the records",
            "bytes",
            Samples(vec![of.kept()]),
            "the records alone",
            1.0,
        ),
    ]
}

fn rows(of: &Of) -> Vec<Row> {
    let (len, tables, both) = (of.records as f64, of.tables as f64, of.both());
    let answer = of.answer();
    let answer_median = answer.median();
    let (work, transform) = (of.params.ring_work(), of.transform.map(|t| t / 100.0).median());
    let moved = of.moved();
    let network = moved / 1e9 * 1e3;
    vec![
        row(
            "lookup.nohint.answer.1q.1t",
            "a lookup without a hint answered, all of it",
            "GB/s",
            answer,
            "records and packing tables read once",
            both * len / (len + tables),
        )
        .limited(read_at("memory", len + tables, both, 1)),
        row(
            "lookup.nohint.answer.16q.1t",
            "16 of them in a pass",
            "GB*query/s",
            of.many.map(|t| GATHERED as f64 * len / t / 1e9),
            "one query",
            answer_median,
        ),
        row(
            "lookup.nohint.scan.1t",
            "its scan of the records alone",
            "GB/s",
            of.scan.map(|t| len / t / 1e9),
            "streaming read",
            both,
        )
        .limited(read_at("memory", len, both, 1)),
        row(
            "lookup.nohint.packing.1t",
            "its packing pass alone, bytes of the tables",
            "GB/s",
            of.pass.map(|t| tables / t / 1e9),
            "streaming read",
            both,
        )
        .limited(read_at("memory", tables, both, 1)),
        row(
            "lookup.nohint.prepare.1t",
            "packing tables made, a byte of the records once",
            "MB/s",
            of.prepare.map(|t| len / t / 1e6),
            "its transforms alone",
            len / (work.preparing * transform) / 1e6,
        ),
        row(
            "lookup.nohint.bytes",
            "a fresh client's whole traffic",
            "bytes",
            Samples(vec![moved]),
            "what it fetched before the first lookup",
            of.params.hint_bytes() as f64,
        ),
        row(
            "lookup.nohint.client",
            "a query made and its answer decoded",
            "ms",
            of.asked.map(|t| t * 1e3),
            "moving query and answer at 1 GB/s",
            network,
        ),
        row(
            "lookup.nohint.memory",
            "the server's operands for a byte of the records",
            "bytes",
            Samples(vec![of.kept()]),
            "the records alone",
            1.0,
        ),
    ]
}
