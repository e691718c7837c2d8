//! What batches cost: many keys in one request, each asked of a bucket of its own.

use blindcore_lookup::batch::Buckets;
use blindcore_lookup::schemes::Run;
use blindcore_lookup::{Error, Params, SchemeChoice};
use blindcore_wire::proof::{plan, planned_root_bytes};
use blindcore_wire::{ProofChoice, SHORT_HINT_BYTES};
use serde::Serialize;

use crate::matrix::{Build, memory_of, preprocessing, stored_of};
use crate::question::{MONTH, Question};
use crate::rates::Rates;

/// The buckets of a table's batches, as `db build --batch` makes them.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    /// How many, and for how many keys.
    pub buckets: Buckets,
    /// Each of them.
    pub bucket: Params,
    /// Bytes of the roots of their proofs.
    roots: u64,
}

/// What a full batch takes, and what is kept for batches beside the table.
#[derive(Clone, Debug, Serialize)]
pub struct BatchCosts {
    /// Its keys.
    pub keys: usize,
    /// Buckets, each of which gets a query.
    pub buckets: usize,
    /// -log2 of a bound on how often one of its keys finds no bucket.
    pub failure_log2: f64,
    /// Bytes that a client fetches once an epoch.
    pub hint_bytes: u64,
    /// Bytes of its queries.
    pub query_bytes: u64,
    /// Bytes of its answers.
    pub answer_bytes: u64,
    /// Seconds of the client before and after it.
    pub client_seconds: f64,
    /// Seconds of the server.
    pub server_seconds: f64,
    /// Bytes of memory of the server beside the table's.
    pub memory_bytes: u64,
    /// Bytes on disk beside the table's.
    pub disk_bytes: u64,
    /// What a million lookups cost in full batches: cores, memory (the table's too) and traffic.
    pub million: f64,
}

impl Batches {
    /// Those of a table of this question and these records; none where it has none: it is not keyed, a record takes several
    /// slots, or the scheme has a hint, which each bucket would have.
    ///
    /// # Errors
    /// The number of keys is outside what a batch may have, or the scheme can't hold a bucket of that size.
    pub(crate) fn new(
        question: &Question,
        records: &Params,
        blocks: u64,
        proofs: ProofChoice,
    ) -> Result<Option<Self>, Error> {
        let Some(buckets) = question.batch.map(Buckets::for_keys).transpose()? else { return Ok(None) };
        if question.key_bytes.is_none() || blocks > 1 || records.hint_bytes() > SHORT_HINT_BYTES as u64 {
            return Ok(None);
        }
        let shape = SchemeChoice::Bucket { scheme: records.scheme, keys: buckets.keys() };
        let (each, bytes) = (buckets.records(question.rows), question.record_bytes as usize);
        let (bucket, depth) = plan(each, bytes, true, shape, proofs)?;
        let bucket = buckets.filled(bucket, question.rows)?;
        let roots = depth.map_or(0, |depth| planned_root_bytes(each, &bucket, true, depth));
        Ok(Some(Self { buckets, bucket, roots: roots * buckets.count() as u64 }))
    }

    /// What a batch takes, of a table whose server has this much memory otherwise.
    pub(crate) fn costs(&self, question: &Question, rates: &Rates, table_memory: u64) -> BatchCosts {
        let Self { buckets, ref bucket, roots } = *self;
        let (count, keys) = (buckets.count() as u64, buckets.keys() as f64);
        let (prepare, decode) = rates.client(bucket);
        let (query_bytes, answer_bytes) =
            (count * bucket.query_bytes() as u64, count * bucket.answer_bytes() as u64);
        let operands = bucket.operands();
        // No cache holds all buckets: they take what one matrix of as many bytes does.
        let pass = |run: &Run| {
            run.passes as f64 * rates.pass_over(&operands[run.operand], count, run.queries).seconds
        };
        let passes: f64 = bucket.answering(1).iter().map(pass).sum();
        // Side by side, one a thread.
        let rings = count as f64 * bucket.ring_work().answering * rates.ring.transform;
        let threads = rates.threads as f64;
        let server_seconds = passes + rings / threads.min(count as f64);
        let memory_bytes = memory_of(bucket, count);
        let lookups = question.clients as f64 * question.queries as f64 / question.epoch;
        let servers = (lookups * server_seconds / keys).ceil().max(1.0);
        let core = question.prices.core_hour / 3600.0;
        let kept = (table_memory + memory_bytes) as f64 / 1e9 * question.prices.gb_month;
        let cores = server_seconds / keys * threads * core;
        let traffic = (query_bytes + answer_bytes) as f64 / keys / 1e9 * question.prices.gb;
        BatchCosts {
            keys: buckets.keys(),
            buckets: buckets.count(),
            failure_log2: buckets.failure_log2(),
            hint_bytes: count * bucket.hint_bytes() + roots,
            query_bytes,
            answer_bytes,
            client_seconds: count as f64 * (prepare + decode),
            server_seconds,
            memory_bytes,
            disk_bytes: count * (stored_of(bucket) + bucket.geometry.groups as u64) + roots,
            million: 1e6 * (cores + servers * kept / (lookups * MONTH) + traffic),
        }
    }

    /// What a build takes longer.
    pub(crate) fn add_build(&self, build: &mut Build, question: &Question, rates: &Rates) {
        let count = self.buckets.count() as f64;
        let rows = count * self.buckets.records(question.rows) as f64;
        build.fill += rates.keyed.fill.seconds(rows, rows * question.record_bytes as f64);
        build.hint += count * preprocessing(rates, &self.bucket);
    }
}
