//! Measures what this machine does per second, in less than a minute: the rates that `blindcore_model` computes costs from.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_accel::contract::Shape;
use blindcore_accel::{Database, Device, Placed, SharedBytes, Words};
use blindcore_lookup::schemes::{self, yardstick};
use blindcore_lookup::{Client, Geometry, MAX_GATHER, Params, Selection, Server, preprocess};
use blindcore_math::SecretRng;
use blindcore_math::ntt::{Ntt, primes};
use blindcore_model::rates::{ClientRates, Curve, Ingest, Pass, PerRow, Rates, RingRates, VERSION};
use blindcore_store::{BuildOptions, SourceSpec, build, stages};
use blindcore_units::{Progress, Unit};

use crate::{Samples, machine, noise};

/// Sides of the square matrices that are measured: 256 KiB to 1 GiB, for a small table stays in the caches.
const SIDES: [usize; 6] = [512, 2048, 4096, 8192, 16_384, 32_768];
/// Bytes of the packing tables that are measured, about.
const PACKING: [u64; 3] = [6 << 20, 96 << 20, 768 << 20];
/// Columns of the table that a ring's client is measured with.
const RING_COLUMNS: usize = 16_384;
/// Queries in the passes that are measured.
const GATHERED: [usize; 4] = [1, 8, 16, MAX_GATHER];
/// Rows of the hints that a client is measured with: 4 to 128 MiB.
const HINT_ROWS: [usize; 3] = [1024, 8192, 32_768];
/// Columns of the table that a client is measured with for its columns.
const COLUMNS: usize = 8192;
/// Columns of the tables that it is measured with for rows, and rows of the other.
const FEW: usize = 64;
/// What each figure may take of a sweep. One that takes longer is measured in fewer of them.
const EACH: Duration = Duration::from_millis(25);
/// However long it takes, a figure is measured so often in the first sweep, since one moment may be a slow one, and a size that
/// is found too slow leaves out all that are larger.
const LEAST_TIMES: usize = 3;
/// It is measured once more in every `SPREAD`th sweep, because seconds on end may be slow.
const SPREAD: u32 = 4;
/// A pass of one query comes after as much idleness: a server's threads sleep when a lookup comes alone, longer than they
/// linger.
const IDLE: Duration = Duration::from_millis(20);
/// Passes of several queries come under load, one after another for so long.
const BUSY: Duration = Duration::from_millis(12);
/// A pass or a hint that would take more seconds is followed from a smaller one.
const LONGEST: f64 = 0.4;

/// No file of rates is longer.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a file of rates, which may be anybody's.
///
/// # Errors
/// It can't be read, or holds no rates.
pub fn read(path: &Path) -> anyhow::Result<Rates> {
    let named = path.display();
    let unread = || format!("{named} can't be read");
    let meta = std::fs::metadata(path).with_context(unread)?;
    anyhow::ensure!(
        meta.is_file() && meta.len() <= MAX_BYTES,
        "{named} is not a file of rates; make one with `blindcore plan --measure --save-rates FILE`"
    );
    let text = std::fs::read_to_string(path).with_context(unread)?;
    let remedy = "make it with `blindcore plan --measure --save-rates FILE`";
    Rates::parse(&text).map_err(|why| anyhow::anyhow!("{named} holds no rates: {why}; {remedy}"))
}

/// Measures this machine with `device`, which must compute on it rather than be simulated, in this many sweeps over all
/// figures: a shared machine is slow for seconds on end, with quick moments between, and many short sweeps see the same share
/// of these at every size.
///
/// # Errors
/// The device's, or a small database can't be built in the folder for temporary files.
pub fn measure(device: &Device, sweeps: u32, progress: &mut dyn Progress) -> anyhow::Result<Rates> {
    let described = device.description();
    let figures = SIDES.len() + PACKING.len() + 2 + HINT_ROWS.len();
    let mut steps = Steps { progress, done: 0, all: u64::from(sweeps) * figures as u64 + 2 };
    let most = machine::memory_bytes().map_or(u64::MAX, |bytes| bytes / 8);
    let mut matrices: Vec<Matrix> = Vec::new();
    let mut packing: Vec<Packing> = Vec::new();
    let mut ring = Ring::new()?;
    // A table of few rows, then tables of few columns.
    let mut clients = vec![Asking::new(FEW, COLUMNS)?];
    for rows in HINT_ROWS {
        clients.push(Asking::new(rows, FEW)?);
    }
    for sweep in 0..sweeps {
        for (i, side) in SIDES.into_iter().enumerate() {
            steps.next("a scan");
            if sweep == 0 && (side * side) as u64 <= most && matrices.len() == i {
                matrices.extend(Matrix::after(matrices.last(), device, side)?);
            }
            if let Some(matrix) = matrices.get_mut(i) {
                matrix.measure(device, sweep)?;
            }
        }
        for (i, bytes) in PACKING.into_iter().enumerate() {
            steps.next("a packing pass");
            if sweep == 0 && bytes <= most && packing.len() == i {
                packing.extend(Packing::after(packing.last(), device, &ring.params, bytes)?);
            }
            if let Some(tables) = packing.get_mut(i) {
                tables.measure(sweep)?;
            }
        }
        steps.next("a ring");
        ring.measure(sweep)?;
        for client in &mut clients {
            steps.next("a client");
            client.measure(sweep)?;
        }
    }
    let passes = GATHERED.into_iter().enumerate();
    let passes = passes.map(|(i, queries)| Pass { queries, seconds: curve(&matrices, |m| m.passes.get(i)) });
    let (passes, hint) = (passes.collect(), curve(&matrices, |m| m.hint.as_ref()));
    let of =
        |i: usize| packing.iter().filter_map(move |p| Some((p.bytes as f64, p.passes.get(i)?.seconds())));
    let packing_passes = GATHERED.into_iter().enumerate();
    let packing_passes = packing_passes.map(|(i, queries)| Pass { queries, seconds: Curve(of(i).collect()) });
    let packing_passes = packing_passes.filter(|pass| !pass.seconds.0.is_empty()).collect();
    let ring = ring.rates();
    let column = clients[0].prepare.seconds() / COLUMNS as f64;
    let rows = |c: &Asking| (c.rows as f64, (c.prepare.seconds() - column * FEW as f64).max(1e-9));
    let answer_byte = clients.iter().map(Asking::decode_byte).fold(f64::INFINITY, f64::min);
    let client = ClientRates { column, rows: Curve(clients[1..].iter().map(rows).collect()), answer_byte };
    drop((matrices, clients, packing));
    steps.next("a build");
    let dense = measure_build(device, false)?;
    steps.next("a build");
    let keyed = measure_build(device, true)?;
    let (version, processor, threads) = (VERSION, described.hardware.clone(), described.threads);
    let device = described.name.clone();
    let packing = packing_passes;
    Ok(Rates { version, processor, device, threads, passes, packing, ring, hint, client, dense, keyed })
}

/// How far measuring is.
struct Steps<'a> {
    progress: &'a mut dyn Progress,
    done: u64,
    all: u64,
}

impl Steps<'_> {
    fn next(&mut self, what: &str) {
        self.progress.at(&format!("measuring {what}"), self.done, Some(self.all), Unit::Items);
        self.done += 1;
    }
}

/// What is timed again and again.
struct Figure {
    samples: Samples,
    /// Of the quickest one, with what is done before it and isn't timed.
    round: Duration,
}

impl Figure {
    fn new() -> Self {
        Self { samples: Samples::default(), round: Duration::MAX }
    }

    /// Has `once` time it once more, as often as there is time for by the end of this sweep, were each time as quick as the
    /// quickest: a slow moment takes no samples away.
    fn measure(
        &mut self,
        sweep: u32,
        mut once: impl FnMut(&mut Samples) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let least = LEAST_TIMES + (sweep / SPREAD) as usize;
        while self.samples.len() < least
            || self.round.saturating_mul(self.samples.len() as u32) < EACH * (sweep + 1)
        {
            let start = Instant::now();
            once(&mut self.samples)?;
            self.round = self.round.min(start.elapsed());
        }
        Ok(())
    }

    fn seconds(&self) -> f64 {
        self.samples.quickest_quarter()
    }
}

/// Lets the threads of a device fall asleep.
fn idle() {
    let (_open, closed) = mpsc::channel::<()>();
    let _ = closed.recv_timeout(IDLE);
}

/// A figure of those matrices that have it, by their bytes.
fn curve(matrices: &[Matrix], figure: impl Fn(&Matrix) -> Option<&Figure>) -> Curve {
    let point = |m: &Matrix| figure(m).map(|f| (m.params.database_bytes() as f64, f.seconds()));
    Curve(matrices.iter().filter_map(point).collect())
}

/// A square matrix of random bytes, with the server that answers from it.
struct Matrix {
    params: Params,
    database: SharedBytes,
    server: Server,
    /// [`MAX_GATHER`] queries, no two alike.
    queries: Vec<u8>,
    /// For each of [`GATHERED`], but for the last that take too long.
    passes: Vec<Figure>,
    hint: Option<Figure>,
}

impl Matrix {
    /// One that is larger than the one `before`, which tells how long it would take; none where even a query takes too long.
    fn after(before: Option<&Self>, device: &Device, side: usize) -> anyhow::Result<Option<Self>> {
        let params = yardstick().representative((side * side) as u64)?;
        let times = before.map_or(1.0, |b| params.database_bytes() as f64 / b.params.database_bytes() as f64);
        let affordable = |figure: &&Figure| figure.seconds() * times <= LONGEST;
        let passes = before.map_or(GATHERED.len(), |b| b.passes.iter().take_while(affordable).count());
        if passes == 0 {
            return Ok(None);
        }
        let hint = before.is_none_or(|b| b.hint.as_ref().is_some_and(|figure| affordable(&figure)));
        let database: SharedBytes = Arc::new(noise(params.database_bytes())?);
        let server = Server::new(params, device, vec![vec![database.clone()]])?;
        let mut queries = vec![0u8; MAX_GATHER * params.query_bytes()];
        SecretRng::from_os()?.fill(&mut queries);
        let (passes, hint) = ((0..passes).map(|_| Figure::new()).collect(), hint.then(Figure::new));
        Ok(Some(Self { params, database, server, queries, passes, hint }))
    }

    /// Times its passes and its hint.
    fn measure(&mut self, device: &Device, sweep: u32) -> anyhow::Result<()> {
        let Self { params, database, server, queries, passes, hint } = self;
        let queries: Vec<&[u8]> = queries.chunks(params.query_bytes()).collect();
        for (gathered, figure) in GATHERED.into_iter().zip(passes) {
            let least = if gathered == 1 { Duration::ZERO } else { BUSY };
            figure.measure(sweep, |samples| {
                if gathered == 1 {
                    idle();
                }
                samples
                    .time_for(least, || server.answer(&queries[..gathered]).map(|a| drop(black_box(a))))?;
                Ok(())
            })?;
        }
        let Some(hint) = hint else { return Ok(()) };
        hint.measure(sweep, |samples| {
            let (mut words, pieces) = (vec![0u8; params.hint_bytes() as usize], vec![database.clone()]);
            samples.time(|| preprocess(params, device, pieces, &mut words, &mut ()))?;
            Ok(())
        })
    }
}

/// The scheme that rings are measured by.
fn ring_params() -> anyhow::Result<Params> {
    let geometry = Geometry { record_bytes: 256, groups: 16, columns: RING_COLUMNS };
    let of = |scheme| Params::new(scheme, geometry).ok().filter(|p| p.ring_work().encrypted > 0.0);
    schemes::offered().into_iter().find_map(of).context("no scheme of this build works on a ring")
}

/// Packing tables of random residues, placed.
struct Packing {
    bytes: usize,
    placed: Arc<dyn Placed>,
    /// Windows of [`MAX_GATHER`] queries.
    queries: Vec<u64>,
    passes: Vec<Figure>,
}

impl Packing {
    /// Tables of about this many bytes; none where even a query takes too long, as the ones `before` tell.
    fn after(
        before: Option<&Self>,
        device: &Device,
        params: &Params,
        bytes: u64,
    ) -> anyhow::Result<Option<Self>> {
        let operand = params.operands().into_iter().find(|o| o.shape.window.is_some());
        let operand = operand.context("a ring's scheme has packing tables")?;
        let n = (bytes as usize / operand.stripe_bytes()).max(1);
        let shape = Shape { n, ..operand.shape };
        let bytes = n * operand.layout.stripe_bytes(&shape);
        let times = before.map_or(1.0, |b| bytes as f64 / b.bytes as f64);
        let affordable = |figure: &&Figure| figure.seconds() * times <= LONGEST;
        let passes = before.map_or(GATHERED.len(), |b| b.passes.iter().take_while(affordable).count());
        if passes == 0 {
            return Ok(None);
        }
        let mut tables = noise(bytes)?;
        // Below 2^47, and so below the prime.
        tables.as_mut().iter_mut().skip(5).step_by(6).for_each(|byte| *byte &= 0x7f);
        let placed = device.contract(&shape)?.place(Database::Packed(vec![Arc::new(tables)]))?;
        let mut words = vec![0u8; 8 * shape.query_len(MAX_GATHER)];
        SecretRng::from_os()?.fill(&mut words);
        let words = words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word) >> 17);
        let passes = (0..passes).map(|_| Figure::new()).collect();
        Ok(Some(Self { bytes, placed, queries: words.collect(), passes }))
    }

    fn measure(&mut self, sweep: u32) -> anyhow::Result<()> {
        let Self { placed, queries, passes, .. } = self;
        let each = queries.len() / MAX_GATHER;
        for (gathered, figure) in GATHERED.into_iter().zip(passes) {
            let query = Words::U64(queries[..gathered * each].to_vec());
            figure.measure(sweep, |samples| {
                if gathered == 1 {
                    idle();
                }
                samples.time(|| placed.run(&query).map(|a| drop(black_box(a))))?;
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// A ring's transform, and a client that encrypts polynomials.
struct Ring {
    params: Params,
    client: Client,
    ntt: Ntt,
    polynomial: Vec<u64>,
    transform: Figure,
    query: Figure,
}

impl Ring {
    fn new() -> anyhow::Result<Self> {
        let params = ring_params()?;
        let client = Client::new(params, Arc::new(noise(params.hint_bytes() as usize)?))?;
        let prime = primes(48, 2048)?.next().context("there are primes of 48 bits")?;
        let ntt = Ntt::new(prime, 2048)?;
        let polynomial = (0..2048u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17).collect();
        Ok(Self { params, client, ntt, polynomial, transform: Figure::new(), query: Figure::new() })
    }

    fn measure(&mut self, sweep: u32) -> anyhow::Result<()> {
        let Self { client, ntt, polynomial, transform, query, .. } = self;
        transform.measure(sweep, |samples| {
            samples.time_for(Duration::from_micros(100), || {
                ntt.forward(polynomial);
                black_box(&polynomial);
                anyhow::Ok(())
            })
        })?;
        let selection = Selection::index(&client.params().geometry, 1)?;
        query.measure(sweep, |samples| {
            samples.time(|| client.query(client.prepare()?, &selection).map(|q| drop(black_box(q.0))))?;
            Ok(())
        })
    }

    fn rates(&self) -> RingRates {
        let encrypted = self.query.seconds() / self.params.ring_work().encrypted;
        RingRates { transform: self.transform.seconds(), encrypted }
    }
}

/// A client of a table that is nothing but a hint of random words.
struct Asking {
    client: Client,
    rows: usize,
    answer: Vec<u8>,
    prepare: Figure,
    decode: Samples,
}

impl Asking {
    fn new(rows: usize, columns: usize) -> anyhow::Result<Self> {
        let geometry = Geometry { record_bytes: FEW, groups: rows / FEW, columns };
        let params = Params::new(yardstick(), geometry)?;
        let client = Client::new(params, Arc::new(noise(params.hint_bytes() as usize)?))?;
        let mut answer = vec![0u8; params.answer_bytes()];
        SecretRng::from_os()?.fill(&mut answer);
        Ok(Self { client, rows, answer, prepare: Figure::new(), decode: Samples::default() })
    }

    /// Times the preparing of queries, and the decoding of answers meanwhile.
    fn measure(&mut self, sweep: u32) -> anyhow::Result<()> {
        let Self { client, answer, prepare, decode, .. } = self;
        let selection = Selection::index(&client.params().geometry, 1)?;
        prepare.measure(sweep, |samples| {
            let (_, pending) = samples.time(|| client.query(client.prepare()?, &selection))?;
            decode.time(|| client.decode(pending, answer).map(black_box))?;
            Ok(())
        })
    }

    /// Seconds for a byte of an answer.
    fn decode_byte(&self) -> f64 {
        self.decode.quickest_quarter() / self.answer.len() as f64
    }
}

/// Two small databases are built, of short records and of long ones.
fn measure_build(device: &Device, keyed: bool) -> anyhow::Result<Ingest> {
    let dir = tempfile::tempdir().context("no folder for a small database can be made; set TMPDIR")?;
    let mut taken = Vec::new();
    for (rows, record_bytes) in [(40_000usize, 16usize), (2000, 8192)] {
        let mut text = String::from("k,v\n");
        for row in 0..rows {
            let _ = writeln!(text, "key {row},{:0>width$}", row, width = record_bytes - 4);
        }
        let csv = dir.path().join(format!("{rows}.csv"));
        std::fs::write(&csv, text).with_context(|| format!("{} can't be written", csv.display()))?;
        let options = BuildOptions {
            key: keyed.then(|| "k".into()),
            values: Some(vec!["v".into()]),
            name: Some("plan".into()),
            proofs: blindcore_store::ProofChoice::Without,
            directory: false,
            ..BuildOptions::new(
                SourceSpec::parse(&csv.display().to_string())?,
                dir.path().join(format!("{rows}.db")),
            )
        };
        let (mut read, mut fill, mut last) = (0.0, 0.0, Instant::now());
        build(&options, device, &mut |stage: &str, done, _, _| {
            let time = last.elapsed().as_secs_f64();
            match (stage, done) {
                (stages::READING, _) => read += time,
                // What was filled is put on the disk before the first pass of the hint.
                (stages::LAYING_OUT, _) | (stages::PREPARING, 0) => fill += time,
                _ => {}
            }
            last = Instant::now();
        })?;
        taken.push((rows as f64, (rows * record_bytes) as f64, read, fill));
    }
    let fit = |of: fn(&(f64, f64, f64, f64)) -> f64| {
        PerRow::fit([0, 1].map(|i| (taken[i].0, taken[i].1, of(&taken[i]))))
    };
    Ok(Ingest { read: fit(|s| s.2), fill: fit(|s| s.3) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_measured_within_their_share_and_in_all_sweeps() {
        // One that takes its share, and one that takes four times as much.
        let (mut quick, mut slow) = (Figure::new(), Figure::new());
        let measure = |figure: &mut Figure, sweep, takes| {
            let once = |samples: &mut Samples| {
                let (_open, closed) = mpsc::channel::<()>();
                let _ = samples.time(|| closed.recv_timeout(takes));
                Ok(())
            };
            figure.measure(sweep, once).unwrap();
            figure.samples.len()
        };
        assert_eq!(measure(&mut quick, 0, EACH), LEAST_TIMES);
        assert_eq!(measure(&mut quick, 1, EACH), LEAST_TIMES);
        let least = LEAST_TIMES + (8 / SPREAD) as usize;
        assert!((least..=9).contains(&measure(&mut quick, 8, EACH)));
        assert_eq!(measure(&mut slow, 0, 4 * EACH), LEAST_TIMES);
        assert_eq!(measure(&mut slow, 8, 4 * EACH), least);
    }
}
