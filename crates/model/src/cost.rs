//! What a table costs to look up, from its parameters and a machine's rates: arithmetic alone.

use blindcore_accel::Cost;
use blindcore_lookup::{Error, Params, QUERIES_PER_HINT, SchemeChoice, bytes_moved, plan_blocks};
use blindcore_wire::ProofChoice;
use blindcore_wire::proof::{plan, planned_root_bytes};
use serde::Serialize;

use crate::batches::{BatchCosts, Batches};
use crate::matrix::{Build, memory_of, preprocessing, stored_of};
use crate::question::{MONTH, Question};
use crate::rates::Rates;

/// Memory of a server beside its tables.
const SERVER_BYTES: u64 = 16 << 20;
/// The most epochs after which a database is rebuilt.
const MAX_EPOCHS: u64 = 64;

/// How records lie: one in a slot, or a long one cut into blocks that are looked up together.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Blocks of a record, which are queries of a lookup.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// The matrix of records.
    pub records: Params,
    /// The directory from number to key.
    pub keys: Option<Params>,
    /// The matrix of records as it would be without proofs, which is what a scheme is chosen by.
    pub plain: Params,
    /// Bytes of the roots of the records' proofs, which come with their hint; none where there are no proofs.
    pub roots: Option<u64>,
    /// The same of the directory, or 0.
    pub key_roots: u64,
    /// The buckets of its batches, where there are such.
    pub batches: Option<Batches>,
}

/// What a lookup of a table takes.
#[derive(Clone, Debug, Serialize)]
pub struct Costs {
    /// -log2 of a bound on a lookup's failure.
    pub failure_log2: f64,
    /// Bytes that a client fetches once an epoch.
    pub hint_bytes: u64,
    /// Bytes of a lookup's queries.
    pub query_bytes: u64,
    /// Bytes of its answers.
    pub answer_bytes: u64,
    /// Seconds that fetching the hint takes.
    pub hint_seconds: f64,
    /// Seconds that the queries take.
    pub query_seconds: f64,
    /// Seconds that the answers take.
    pub answer_seconds: f64,
    /// Seconds of the client before a lookup, which can be spent ahead.
    pub prepare_seconds: f64,
    /// Seconds of the client after it.
    pub decode_seconds: f64,
    /// Seconds of the server for a lookup that is alone.
    pub server_seconds: f64,
    /// What the pass of a single query costs, as devices and machines say it.
    pub pass: Cost,
    /// A lookup's share of a pass that is full.
    pub server_seconds_gathered: f64,
    /// Seconds from asking to having, with the lookup's share of the hint.
    pub wait_seconds: f64,
    /// Bytes of memory of the server.
    pub memory_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Seconds of a build.
    pub build_seconds: Build,
    /// What all clients make of it.
    pub load: Load,
    /// What a million lookups cost.
    pub million: Million,
    /// What a batch takes; none where the table has no batches.
    pub batch: Option<BatchCosts>,
}

/// Lookups spread evenly over an epoch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    /// Lookups per second.
    pub lookups: f64,
    /// Queries that come while a pass is made, so are gathered in the next.
    pub gathered: usize,
    /// Machines like this one that it takes.
    pub servers: f64,
    /// Share of their time in passes.
    pub busy: f64,
}

/// What a million lookups cost, in the prices' currency.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Million {
    /// Cores while they compute passes.
    pub passes: f64,
    /// Memory of all servers, all the time.
    pub memory: f64,
    /// Queries, answers and hints.
    pub traffic: f64,
    /// Cores while they build a database each epoch.
    pub builds: f64,
    /// All of them.
    pub total: f64,
}

/// A database that is kept for several epochs, with the rows that changed since beside it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Changes {
    /// Epochs that a database is kept.
    pub epochs: u64,
    /// The most rows beside it.
    pub rows: u64,
    /// Bytes that a client moves an epoch, in the mean.
    pub bytes: u64,
    /// Bytes where the database is rebuilt in each epoch.
    pub bytes_anew: u64,
}

/// What it takes to send the whole table to each client once an epoch, and look nothing up: the server then learns nothing
/// either.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Whole {
    /// Bytes of all keys and records, as they are.
    pub bytes: u64,
    /// Seconds that fetching them takes.
    pub seconds: f64,
    /// What a million lookups cost in traffic.
    pub million: f64,
}

impl Whole {
    /// For this question.
    #[must_use]
    pub fn new(question: &Question) -> Self {
        let row = question.record_bytes.saturating_add(question.key_bytes.unwrap_or(0) as u64);
        let bytes = question.rows.saturating_mul(row);
        let million = 1e6 * bytes as f64 / question.queries as f64 / 1e9 * question.prices.gb;
        Self { bytes, seconds: 8.0 * bytes as f64 / question.down, million }
    }
}

impl Table {
    /// The table that `db build` makes; a long record by key is cut into blocks.
    ///
    /// # Errors
    /// No matrix of the scheme holds such a table.
    pub fn new(question: &Question, choice: SchemeChoice) -> Result<Self, Error> {
        let keyed = question.key_bytes.is_some();
        let longest = usize::try_from(question.record_bytes).unwrap_or(usize::MAX);
        let total = question.rows.saturating_mul(question.record_bytes).min(1 << 50);
        let block_bytes = if keyed { plan_blocks(question.rows, total, longest) } else { longest };
        let blocks = longest.div_ceil(block_bytes) as u64;
        let slots = question.rows.saturating_mul(blocks);
        let choice = choice.with_blocks(blocks);
        let (records, depth) = plan(slots, block_bytes, keyed, choice, question.proofs)?;
        let plain = blindcore_lookup::plan(slots, block_bytes, keyed, choice)?;
        let roots = depth.map(|depth| planned_root_bytes(slots, &records, keyed, depth));
        let proofs = if depth.is_some() { ProofChoice::With } else { ProofChoice::Without };
        let keys = match question.key_bytes.filter(|_| question.directory) {
            // A key lies behind two bytes of its length.
            Some(bytes) => {
                let beside = SchemeChoice::beside(records.scheme);
                Some(plan(question.rows, bytes + 2, false, beside, proofs)?)
            }
            None => None,
        };
        let key_roots =
            keys.and_then(|(keys, depth)| Some(planned_root_bytes(question.rows, &keys, false, depth?)));
        let (keys, key_roots) = (keys.map(|(keys, _)| keys), key_roots.unwrap_or(0));
        let batches = Batches::new(question, &records, blocks, proofs)?;
        Ok(Self { blocks, block_bytes, records, keys, plain, roots, key_roots, batches })
    }

    /// Bytes that a lookup moves, as `db build` counts them to choose a scheme; blocks share the hint.
    #[must_use]
    pub fn bytes_to_choose_by(&self) -> u64 {
        let each = (self.plain.query_bytes() + self.plain.answer_bytes()) as u64;
        bytes_moved(&self.plain, QUERIES_PER_HINT) + (self.blocks - 1) * each
    }

    /// What a lookup takes.
    #[must_use]
    pub fn costs(&self, question: &Question, rates: &Rates) -> Costs {
        let Self { blocks, records, .. } = *self;
        let times = |bytes: usize| blocks * bytes as u64;
        let roots = self.roots.unwrap_or(0);
        let hint_bytes = records.hint_bytes() + roots;
        let (query_bytes, answer_bytes) = (times(records.query_bytes()), times(records.answer_bytes()));
        let seconds = |bytes: u64, rate: f64| 8.0 * bytes as f64 / rate;
        let (hint_seconds, query_seconds, answer_seconds) = (
            seconds(hint_bytes, question.down),
            seconds(query_bytes, question.up),
            seconds(answer_bytes, question.down),
        );
        let (prepare, decode) = rates.client(&records);
        let (prepare_seconds, decode_seconds) = (prepare * blocks as f64, decode * blocks as f64);

        // A lookup's own queries are gathered too.
        let gather = question.gather;
        let own = (blocks as usize).min(gather);
        let full = blocks / gather as u64;
        let rest = (blocks % gather as u64) as usize;
        let server_seconds = full as f64 * pass(rates, &records, gather).seconds
            + if rest > 0 { pass(rates, &records, rest).seconds } else { 0.0 };
        let each = |queries: usize| pass(rates, &records, queries).seconds / queries as f64 * blocks as f64;
        let server_seconds_gathered = each(gather);

        let lookups = question.clients as f64 * question.queries as f64 / question.epoch;
        let servers = (lookups * server_seconds_gathered).ceil().max(1.0);
        // Queries that arrive during a pass of `queries`.
        let arrive =
            |queries: usize| lookups / servers * blocks as f64 * pass(rates, &records, queries).seconds;
        let gathered = (own..=gather).find(|m| *m as f64 >= arrive(*m)).unwrap_or(gather);
        let busy = (lookups / servers * each(gathered)).min(1.0);

        let parts = || [Some(&records), self.keys.as_ref()].into_iter().flatten();
        // Hints are read from their files on request.
        let memory_bytes = parts().map(|p| memory_of(p, 1)).sum::<u64>() + SERVER_BYTES;
        let disk_bytes =
            parts().map(stored_of).sum::<u64>() + roots + self.key_roots + records.geometry.groups as u64;
        let build_seconds = self.build(question, rates);

        let million = {
            let lookup_bytes =
                (query_bytes + answer_bytes) as f64 + hint_bytes as f64 / question.queries as f64;
            let per_epoch = question.clients as f64 * question.queries as f64;
            let core = question.prices.core_hour / 3600.0;
            let threads = rates.threads as f64;
            let Build { read, fill, hint } = build_seconds;
            let passes = 1e6 * each(gathered) * threads * core;
            let memory =
                1e6 * servers * memory_bytes as f64 / 1e9 * question.prices.gb_month / (lookups * MONTH);
            let traffic = 1e6 * lookup_bytes / 1e9 * question.prices.gb;
            let builds = 1e6 * (read + fill + hint * threads) * core / per_epoch;
            Million { passes, memory, traffic, builds, total: passes + memory + traffic + builds }
        };
        let wait_seconds = hint_seconds / question.queries as f64
            + prepare_seconds
            + query_seconds
            + server_seconds
            + answer_seconds
            + decode_seconds;
        Costs {
            failure_log2: records.failure_log2() - (blocks as f64).log2(),
            hint_bytes,
            query_bytes,
            answer_bytes,
            hint_seconds,
            query_seconds,
            answer_seconds,
            prepare_seconds,
            decode_seconds,
            server_seconds,
            pass: pass(rates, &records, 1),
            server_seconds_gathered,
            wait_seconds,
            memory_bytes,
            disk_bytes,
            build_seconds,
            load: Load { lookups, gathered, servers, busy },
            million,
            batch: self.batches.map(|batches| batches.costs(question, rates, memory_bytes)),
        }
    }

    fn build(&self, question: &Question, rates: &Rates) -> Build {
        let rows = (question.rows * self.blocks) as f64;
        let bytes = rows * self.block_bytes as f64;
        let of = if question.key_bytes.is_some() { &rates.keyed } else { &rates.dense };
        let hint = |p: &Params| preprocessing(rates, p);
        let mut build = Build {
            read: of.read.seconds(rows, bytes),
            fill: of.fill.seconds(rows, bytes),
            hint: hint(&self.records),
        };
        if let (Some(keys), Some(key_bytes)) = (&self.keys, question.key_bytes) {
            build.fill += rates.dense.fill.seconds(rows, rows * key_bytes as f64);
            build.hint += hint(keys);
        }
        if let Some(batches) = &self.batches {
            batches.add_build(&mut build, question, rates);
        }
        build
    }

    /// How long a database is best kept, as far as a client's bytes go, when the rows that change are looked up in a
    /// table of their own beside it. `None` where no row changes, or where rebuilding each epoch is best.
    #[must_use]
    pub fn changes(&self, question: &Question) -> Option<Changes> {
        let changed = (question.changed * question.rows as f64).ceil() as u64;
        if changed == 0 || changed >= question.rows {
            return None;
        }
        let lookup = |p: &Params| self.blocks * (p.query_bytes() + p.answer_bytes()) as u64;
        let hint = |p: &Params| p.hint_bytes();
        let base = question.queries.saturating_mul(lookup(&self.records));
        let hint_bytes = hint(&self.records) + self.roots.unwrap_or(0);
        let bytes_anew = base + hint_bytes;
        let proofs = if self.roots.is_some() { ProofChoice::With } else { ProofChoice::Without };
        // Hints and lookups beside the base, of the epochs so far.
        let mut beside = 0u64;
        let mut best = None;
        for epochs in 2..=MAX_EPOCHS {
            let rows = (changed * (epochs - 1)).min(question.rows);
            let slots = rows * self.blocks;
            let Ok((params, depth)) = plan(slots, self.block_bytes, true, SchemeChoice::Auto, proofs) else {
                break;
            };
            let roots = depth.map_or(0, |depth| planned_root_bytes(slots, &params, true, depth));
            beside += hint(&params) + roots + question.queries.saturating_mul(lookup(&params));
            let bytes = base + (hint_bytes + beside) / epochs;
            if bytes < best.map_or(bytes_anew, |b: Changes| b.bytes) {
                best = Some(Changes { epochs, rows, bytes, bytes_anew });
            }
        }
        best
    }
}

/// What a pass that answers `queries` queries costs, over all operands.
fn pass(rates: &Rates, params: &Params, queries: usize) -> Cost {
    let operands = params.operands();
    let mut all = Cost { threads: rates.threads, ..Cost::default() };
    for run in params.answering(queries) {
        all += &(rates.pass_over(&operands[run.operand], 1, run.queries) * run.passes);
    }
    // Each query's on a thread.
    let in_turn = queries.div_ceil(rates.threads) as f64;
    all.seconds += in_turn * params.ring_work().answering * rates.ring.transform;
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Prices;
    use crate::rates::tests::round;

    fn question(rows: u64, record_bytes: u64) -> Question {
        Question {
            rows,
            record_bytes,
            key_bytes: None,
            directory: false,
            proofs: ProofChoice::Without,
            up: 8e6,
            down: 80e6,
            queries: 100,
            epoch: 86_400.0,
            changed: 0.01,
            clients: 1000,
            gather: 16,
            batch: None,
            prices: Prices { core_hour: 0.05, gb_month: 3.0, gb: 0.05 },
        }
    }

    fn costs(question: &Question) -> Costs {
        let rates = round();
        Table::new(question, SchemeChoice::Only("simple".parse().unwrap())).unwrap().costs(question, &rates)
    }

    #[track_caller]
    fn times(got: f64, of: f64, factor: f64) {
        assert!((got / of / factor - 1.0).abs() < 0.03, "{got} is {} times {of}, not {factor}", got / of);
    }

    #[test]
    fn four_times_the_rows_double_the_sides() {
        let (one, four) = (costs(&question(1 << 22, 256)), costs(&question(1 << 24, 256)));
        times(four.server_seconds, one.server_seconds, 4.0);
        times(four.server_seconds_gathered, one.server_seconds_gathered, 4.0);
        let matrix = |c: &Costs| (c.memory_bytes - SERVER_BYTES) as f64;
        times(matrix(&four), matrix(&one), 4.0);
        times(four.million.passes, one.million.passes, 4.0);
        let sides: [fn(&Costs) -> f64; 6] = [
            |c: &Costs| c.hint_bytes as f64,
            |c: &Costs| c.query_bytes as f64,
            |c: &Costs| c.answer_bytes as f64,
            |c: &Costs| c.hint_seconds,
            |c: &Costs| c.prepare_seconds,
            |c: &Costs| c.decode_seconds,
        ];
        for side in sides {
            times(side(&four), side(&one), 2.0);
        }
        times(four.build_seconds.read, one.build_seconds.read, 4.0);
        times(four.build_seconds.hint, one.build_seconds.hint, 4.0);
        assert!(four.failure_log2 < one.failure_log2);
    }

    #[test]
    fn figures_follow_from_rates_and_links() {
        // 2^15 by 2^15 bytes.
        let of = costs(&question(1 << 22, 256));
        let bytes = 2f64.powi(30);
        assert_eq!((of.hint_bytes, of.query_bytes, of.answer_bytes), (128 << 20, 128 << 10, 64 << 10));
        times(of.server_seconds, bytes / 1e10, 1.0);
        times(of.server_seconds_gathered, bytes / 1e11, 1.0);
        times(of.hint_seconds, f64::from(128 << 20) / 10e6, 1.0);
        times(of.query_seconds, f64::from(128 << 10) / 1e6, 1.0);
        times(of.answer_seconds, f64::from(64 << 10) / 10e6, 1.0);
        times(of.prepare_seconds, 32_768.0 * 2e-6, 1.0);
        times(of.build_seconds.hint, bytes / 1e8, 1.0);
        let rest =
            of.query_seconds + of.answer_seconds + of.server_seconds + of.prepare_seconds + of.decode_seconds;
        times(of.wait_seconds, of.hint_seconds / 100.0 + rest, 1.0);
        // Two cores for a pass, 86400 s for 100,000 lookups.
        times(of.million.passes, 1e6 * of.server_seconds * 2.0 * 0.05 / 3600.0, 1.0);
        times(of.load.lookups, 100_000.0 / 86_400.0, 1.0);
        let gb = (of.query_bytes + of.answer_bytes + of.hint_bytes / 100) as f64 / 1e9;
        times(of.million.traffic, 1e6 * gb * 0.05, 1.0);
        let m = of.million;
        times(m.total, m.passes + m.memory + m.traffic + m.builds, 1.0);
        times(of.load.busy, of.load.lookups * of.server_seconds, 1.0);
    }

    #[test]
    fn more_clients_are_gathered_before_they_take_more_machines() {
        let of = |clients| costs(&Question { clients, ..question(1 << 22, 256) });
        let (few, some, many) = (of(1000), of(20_000), of(1_000_000));
        assert_eq!((few.load.gathered, few.load.servers), (1, 1.0));
        assert!(some.load.gathered > 1 && some.load.gathered < 16, "{:?}", some.load);
        assert_eq!(some.load.servers, 1.0);
        assert!(many.load.servers > 10.0, "{:?}", many.load);
        assert!(many.million.passes < some.million.passes && some.million.passes < few.million.passes);
        for load in [few.load, some.load, many.load] {
            assert!((0.0..=1.0).contains(&load.busy) && load.gathered <= 16, "{load:?}");
        }
        // Memory is paid for by the month, whatever the load.
        times(few.million.memory, some.million.memory, 20.0);
    }

    #[test]
    fn queries_share_a_hint() {
        let (few, many) =
            (costs(&Question { queries: 1, ..question(1 << 22, 256) }), costs(&question(1 << 22, 256)));
        assert_eq!(few.hint_bytes, many.hint_bytes);
        times(few.wait_seconds - many.wait_seconds, 0.99 * few.hint_seconds, 1.0);
    }

    #[test]
    fn long_records_are_cut() {
        let rates = round();
        let question = Question { key_bytes: Some(8), ..question(1000, 3_000_000) };
        let table = Table::new(&question, SchemeChoice::Auto).unwrap();
        assert!(table.blocks > 1 && table.block_bytes <= blindcore_lookup::MAX_RECORD_BYTES);
        assert!(table.blocks * table.block_bytes as u64 >= question.record_bytes);
        assert!(table.records.geometry.slots() >= 1000 * table.blocks);
        let of = table.costs(&question, &rates);
        assert_eq!(of.query_bytes, table.blocks * table.records.query_bytes() as u64);
        // Without keys nothing is cut.
        let whole = Question { record_bytes: 1 << 16, key_bytes: None, ..question };
        assert_eq!(Table::new(&whole, SchemeChoice::Auto).unwrap().blocks, 1);
    }

    #[test]
    fn a_batch_takes_what_its_buckets_do() {
        let rates = round();
        let question = Question { key_bytes: Some(8), batch: Some(64), ..question(1 << 20, 64) };
        let table = |name: &str, question: &Question| {
            Table::new(question, SchemeChoice::Only(name.parse().unwrap())).unwrap()
        };
        let of = |question: &Question| table("hintless", question).costs(question, &rates);
        let (with, without) = (of(&question), of(&Question { batch: None, ..question.clone() }));
        let batch = with.batch.as_ref().unwrap();
        assert_eq!((batch.keys, batch.buckets), (64, 188));
        let bucket = table("hintless", &question).batches.unwrap().bucket;
        assert_eq!(batch.query_bytes, 188 * bucket.query_bytes() as u64);
        assert_eq!(batch.answer_bytes, 188 * bucket.answer_bytes() as u64);
        // Three times the records at least, and far less than 64 passes over all of them.
        assert!(batch.memory_bytes > (3 * 64) << 20 && batch.server_seconds < 20.0 * with.server_seconds);
        assert!(with.build_seconds.total() > 2.0 * without.build_seconds.total());
        // The table itself is what it was.
        assert_eq!((with.memory_bytes, with.query_bytes), (without.memory_bytes, without.query_bytes));
        assert!(without.batch.is_none());
        // What has no batches says none; what no batch has is refused.
        assert!(table("simple", &question).batches.is_none());
        let by_row = Question { key_bytes: None, ..question.clone() };
        assert!(table("hintless", &by_row).batches.is_none());
        let few = Question { batch: Some(7), ..question };
        let error = Table::new(&few, SchemeChoice::Auto).unwrap_err().to_string();
        assert!(error.contains("number of keys of a batch is 7"), "{error}");
    }

    #[test]
    fn double_pays_for_its_second_lookup() {
        let rates = round();
        let question = question(1 << 34, 1);
        let of = |name: &str| Table::new(&question, SchemeChoice::Only(name.parse().unwrap())).unwrap();
        let (simple, double) = (of("simple"), of("double"));
        assert!(
            pass(&rates, &double.records, 1).seconds > rates.pass(double.records.database_bytes() as u64, 1)
        );
        assert!(double.costs(&question, &rates).hint_bytes < simple.costs(&question, &rates).hint_bytes);
    }

    #[test]
    fn databases_are_kept_longer_the_less_they_change() {
        let of = |changed| {
            // So many lookups that it tells how long the changes' queries are.
            let question = Question { changed, queries: 1000, ..question(1 << 22, 256) };
            Table::new(&question, SchemeChoice::Only("simple".parse().unwrap())).unwrap().changes(&question)
        };
        let (rare, often) = (of(0.0001).unwrap(), of(0.01).unwrap());
        assert!(rare.epochs > often.epochs, "{rare:?} {often:?}");
        assert!(rare.bytes < often.bytes && often.bytes < often.bytes_anew);
        assert_eq!(often.rows, (0.01 * f64::from(1 << 22)).ceil() as u64 * (often.epochs - 1));
        assert!(of(0.0).is_none() && of(1.0).is_none());
    }
}
