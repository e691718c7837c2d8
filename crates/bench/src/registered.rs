//! A lookup under registered keys, end to end on the server, beside what reading memory allows.

use std::sync::Arc;

use blindcore_accel::{Allocator, Device, SharedBytes, Words};
use blindcore_accel_cpu::HugePages;
use blindcore_accel_cpu::measure::{Streams, streaming_read};
use blindcore_lookup::{
    Client, OperandBytes, Params, Preprocessing, SchemeChoice, SchemeRef, Selection, Server, pack_group,
    plan, schemes,
};
use blindcore_math::ntt::{Ntt, primes};
use blindcore_units::{Progress, Unit};

use crate::options::{GATHERED, Options};
use crate::report::read_at;
use crate::{Row, Samples, noise};

/// Bytes of a record.
const RECORD_BYTES: usize = 256;
/// Groups of random records; the others repeat them.
const DISTINCT: usize = 4;
/// Bits of the prime that polynomials are stored modulo.
const STORED_BITS: u32 = 40;

/// Measures rows `lookup.SCHEME.*`, over records of 256 bytes found by number.
///
/// # Errors
/// No parameter set holds the table, the device or memory fails, or an answer doesn't decode to what was asked for.
pub(crate) fn measure(
    args: &Options,
    scheme: SchemeRef,
    one: &Device,
    progress: &mut dyn Progress,
) -> anyhow::Result<Vec<Row>> {
    let records = ((args.gib * (1u64 << 30) as f64 / RECORD_BYTES as f64) as u64).max(1);
    let params = plan(records, RECORD_BYTES, false, SchemeChoice::Only(scheme))?;
    let geometry = params.geometry;
    let slots =
        (0..DISTINCT).map(|_| noise(geometry.columns * RECORD_BYTES)).collect::<Result<Vec<_>, _>>()?;
    let (mut seed, mut prepare) = (vec![0; params.hint_bytes() as usize], Samples::default());
    let stored = stored(&params, one, &slots, &mut seed, &mut prepare, progress)?;
    let place = |operand: &schemes::Operand, bytes: &SharedBytes| {
        one.contract(&operand.shape)?.place(blindcore_accel::Database::Packed(vec![bytes.clone()]))
    };
    let operands: Vec<_> = params.stored_operands().collect();
    let placed = operands
        .iter()
        .zip(&stored)
        .map(|(operand, bytes)| place(operand, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    let polynomials = placed[1].clone();
    let server = Server::placed(params, one, placed)?;
    let client = Client::new(params, Arc::new(seed))?;
    let made = params.make_keys()?;
    let (secret, keys) = (params.open_secret(&made.secret)?, params.open_registered(&made.public)?);

    let ntt = Ntt::new(primes(STORED_BITS, 2048)?.next().expect("there are primes of 40 bits"), 2048)?;
    let mut polynomial: Vec<u64> = (0..2048u64).map(|i| i * i).collect();
    let [mut single, mut many, mut reading, mut pass, mut transform]: [Samples; 5] = Default::default();
    let first = Words::U64((0..operands[1].shape.query_len(1) as u64).map(|i| i * i % (1 << 39)).collect());
    for i in 0..=args.repeat {
        progress.at("looking up", i as u64, Some(args.repeat as u64 + 1), Unit::Items);
        reading.time(|| std::hint::black_box(streaming_read((*stored[1]).as_ref(), Streams::One)));
        pass.time(|| polynomials.run(&first))?;
        for (queries, samples) in [(1, &mut single), (GATHERED, &mut many)] {
            let slot = |q: usize| (i * 7919 + q * 104_729) as u64 % geometry.slots();
            let asking = (0..queries)
                .map(|q| client.query(client.prepare_under(&secret)?, &Selection::index(&geometry, slot(q))?))
                .collect::<Result<Vec<_>, _>>()?;
            let (asked, pending): (Vec<_>, Vec<_>) = asking.into_iter().unzip();
            let borrowed: Vec<&[u8]> = asked.iter().map(Vec::as_slice).collect();
            let (answers, _) = samples.time(|| server.answer_under(&borrowed, &vec![&keys; queries]))?;
            for (q, (pending, answer)) in pending.into_iter().zip(&answers).enumerate() {
                let (group, column) =
                    (slot(q) as usize / geometry.columns, slot(q) as usize % geometry.columns);
                let want = &slots[group % DISTINCT].as_ref()[column * RECORD_BYTES..][..RECORD_BYTES];
                let found = client.decode(pending, answer)?;
                anyhow::ensure!(found.slot.as_slice() == want, "an answer decoded to another record");
            }
        }
        transform.time(|| (0..100).for_each(|_| ntt.forward(std::hint::black_box(&mut polynomial))));
        if i == 0 {
            // The first round only warms up.
            (single, many, reading, pass, transform) = Default::default();
        }
    }
    let (len, kept) = ((records as usize * RECORD_BYTES) as f64, operands[1].bytes() as f64);
    let read = reading.map(|t| kept / t / 1e9).median();
    let answer = single.map(|t| len / t / 1e9);
    let one_query = answer.median();
    let transforms = params.ring_work().preparing * transform.map(|t| t / 100.0).median();
    let row = |what: &str, text, unit, value, limit, of_value| {
        let id = format!("lookup.{scheme}.{what}");
        Row::new(id, text, unit, 1, value, limit, of_value)
    };
    Ok(vec![
        row(
            "answer.1q.1t",
            "a lookup under registered keys answered, all of it",
            "GB/s",
            answer,
            "stored polynomials read once",
            read * len / kept,
        )
        .limited(read_at("memory", kept, read, 1)),
        row(
            "16q.1t",
            "16 of them gathered",
            "GB*query/s",
            many.map(|t| GATHERED as f64 * len / t / 1e9),
            "one query",
            one_query,
        ),
        row(
            "scan.1t",
            "its pass alone, bytes of the polynomials",
            "GB/s",
            pass.map(|t| kept / t / 1e9),
            "streaming read",
            read,
        )
        .limited(read_at("memory", kept, read, 1)),
        row(
            "prepare.1t",
            "polynomials made, a byte of the records once",
            "MB/s",
            prepare.map(|t| len / t / 1e6),
            "its transforms alone",
            len / transforms / 1e6,
        ),
        row(
            "bytes",
            "query and answer",
            "bytes",
            Samples(vec![(params.query_bytes() + params.answer_bytes()) as f64]),
            "keys, registered once",
            params.registered_bytes() as f64,
        ),
        row(
            "memory",
            "the server's polynomials for a byte of the records",
            "bytes",
            Samples(vec![kept / len]),
            "the records alone",
            1.0,
        ),
    ])
}

/// The records, laid out, and what is made of them.
fn stored<T: AsRef<[u8]>>(
    params: &Params,
    one: &Device,
    slots: &[T],
    seed: &mut [u8],
    prepare: &mut Samples,
    progress: &mut dyn Progress,
) -> anyhow::Result<Vec<SharedBytes>> {
    let groups = params.geometry.groups;
    let mut database = HugePages.zeroed(params.database_bytes())?;
    for group in 0..groups {
        progress.at("laying out", group as u64, Some(groups as u64), Unit::Items);
        pack_group(params, group, slots[group % DISTINCT].as_ref(), database.as_mut());
    }
    let database: SharedBytes = Arc::new(database);
    let operands: Vec<_> = params.stored_operands().collect();
    let contract = one.contract(&operands[0].shape)?;
    let records = contract.place(blindcore_accel::Database::Packed(vec![database.clone()]))?;
    let mut memory = HugePages.zeroed(operands[1].bytes())?;
    // What the system takes to give the pages is not the scheme's.
    memory.as_mut().fill(0);
    let memory = vec![OperandBytes::new(memory)];
    let mut made = Preprocessing::resume(params, seed, memory, 0)?;
    prepare.time(|| made.run(params, one, &*records, progress))?;
    let derived = made.derived.into_iter().map(|operand| Arc::new(operand) as SharedBytes);
    Ok([database].into_iter().chain(derived).collect())
}
