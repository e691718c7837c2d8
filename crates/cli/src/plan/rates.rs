//! What this machine does in a second, measured in less than a minute, or kept in a file.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_accel::{Device, SharedBytes};
use blindcore_lookup::{Client, Error, Geometry, MAX_GATHER, Params, Scheme, Selection, Server, preprocess};
use blindcore_math::SecretRng;
use blindcore_store::{BuildOptions, SourceSpec, Stage, StoreError, build};
use serde::{Deserialize, Serialize};

use crate::bench::{Samples, noise};
use crate::doctor;
use crate::output::Bar;

/// The format of a file of rates.
const VERSION: u32 = 1;
/// No file of rates is longer.
const MAX_BYTES: u64 = 1 << 20;
/// Sides of the square matrices that are measured: 256 KiB to 1 GiB, for a small table stays in the caches.
const SIDES: [usize; 6] = [512, 2048, 4096, 8192, 16_384, 32_768];
/// Queries in the passes that are measured.
const GATHERED: [usize; 4] = [1, 8, 16, MAX_GATHER];
/// Rows of the hints that a client is measured with: 4 to 128 MiB.
const HINT_ROWS: [usize; 3] = [1024, 8192, 32_768];
/// Columns of the table that a client is measured with for its columns.
const COLUMNS: usize = 8192;
/// Columns of the tables that it is measured with for rows, and rows of the other.
const FEW: usize = 64;
/// All of it is measured so many times over: a machine that others share is slow for seconds on end, with quick moments
/// between, of which many short looks see the same share at every size.
const SWEEPS: u32 = 32;
/// What each figure may take of a sweep. One that takes longer is measured in fewer of them.
const EACH: Duration = Duration::from_millis(25);
/// However long it takes, a figure is measured so often in the first sweep, since one moment may be a slow one, and a size that
/// is found too slow leaves out all that are larger.
const LEAST_TIMES: usize = 3;
/// And once more in every so many of the others: seconds on end may be slow.
const SPREAD: u32 = 4;
/// A pass of one query comes after as much idleness: a server's threads sleep when a lookup comes alone, longer than they
/// linger.
const IDLE: Duration = Duration::from_millis(20);
/// Passes of several queries come under load, one after another for so long.
const BUSY: Duration = Duration::from_millis(12);
/// A pass or a hint that would take more seconds is followed from a smaller one.
const LONGEST: f64 = 0.4;

/// What a machine does in a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rates {
    version: u32,
    /// The processor that was measured.
    pub(crate) processor: String,
    /// The device.
    pub(crate) device: String,
    /// Its threads.
    pub(crate) threads: usize,
    /// Seconds of a pass over so many bytes of a matrix, for rising numbers of queries in it, from 1 on.
    pub(crate) passes: Vec<Pass>,
    /// Seconds to compute the hint of so many bytes.
    pub(crate) hint: Curve,
    /// What a client computes, on one thread.
    pub(crate) client: ClientRates,
    /// Filling a database of rows without keys.
    pub(crate) dense: Ingest,
    /// Filling one with keys.
    pub(crate) keyed: Ingest,
}

/// A pass over a matrix that answers so many queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pass {
    /// Queries, 1 to [`MAX_GATHER`].
    pub(crate) queries: usize,
    /// Seconds by bytes.
    pub(crate) seconds: Curve,
}

/// What a client computes, in seconds on one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientRates {
    /// A column of the matrix, when a query is prepared.
    pub(crate) column: f64,
    /// So many rows of the hint, when a query is prepared.
    pub(crate) rows: Curve,
    /// A byte of an answer, when it is decoded.
    pub(crate) answer_byte: f64,
}

/// Stages of a build before its hint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ingest {
    /// Reading a source and sorting it.
    pub(crate) read: PerRow,
    /// Laying the matrix out and writing it.
    pub(crate) fill: PerRow,
}

/// Seconds for rows and their bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PerRow {
    /// A row.
    pub(crate) row: f64,
    /// A byte of a record.
    pub(crate) byte: f64,
}

/// Seconds by size, measured at rising sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Curve(pub(crate) Vec<(f64, f64)>);

impl Curve {
    /// The seconds of a size: between measured ones by their logarithms, below the smallest its own (what starts a
    /// pass is then most of it), and past the largest in proportion.
    pub(crate) fn at(&self, size: f64) -> f64 {
        let (first, last) = (self.0[0], self.0[self.0.len() - 1]);
        if size <= first.0 {
            return first.1;
        }
        match self.0.windows(2).find(|w| size <= w[1].0) {
            None => last.1 * (size / last.0),
            Some(w) => {
                let share = (size / w[0].0).ln() / (w[1].0 / w[0].0).ln();
                (w[0].1.ln() * (1.0 - share) + w[1].1.ln() * share).exp()
            }
        }
    }

    fn check(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        !self.0.is_empty()
            && self.0.iter().all(|(size, seconds)| positive(*size) && positive(*seconds))
            && self.0.windows(2).all(|w| w[0].0 < w[1].0)
    }
}

impl PerRow {
    pub(crate) fn seconds(&self, rows: f64, bytes: f64) -> f64 {
        self.row * rows + self.byte * bytes
    }

    /// What two builds of unlike records make of it; a share that noise makes negative is nothing.
    fn fit([a, b]: [(f64, f64, f64); 2]) -> Self {
        let ((rows_a, bytes_a, time_a), (rows_b, bytes_b, time_b)) = (a, b);
        let byte = (time_b * rows_a - time_a * rows_b) / (bytes_b * rows_a - bytes_a * rows_b);
        let byte = byte.max(0.0);
        Self { row: ((time_a - byte * bytes_a) / rows_a).max(0.0), byte }
    }
}

impl Rates {
    /// Seconds of a pass over a matrix of `bytes` that answers `queries`, 1 to [`MAX_GATHER`].
    pub(crate) fn pass(&self, bytes: u64, queries: usize) -> f64 {
        let at = |pass: &Pass| pass.seconds.at(bytes as f64);
        let last = &self.passes[self.passes.len() - 1];
        if queries >= last.queries {
            return at(last) * queries as f64 / last.queries as f64;
        }
        let i = self.passes.partition_point(|p| p.queries <= queries) - 1;
        let (below, above) = (&self.passes[i], &self.passes[i + 1]);
        let share = (queries - below.queries) as f64 / (above.queries - below.queries) as f64;
        at(below) * (1.0 - share) + at(above) * share
    }

    /// What a client computes for a lookup: before its query is sent and once the answer is there.
    pub(crate) fn client(&self, params: &Params) -> (f64, f64) {
        let hint_rows = params.hint_words() / blindcore_math::LWE_DIMENSION;
        let columns = params.query_bytes() / 4;
        let prepare = self.client.column * columns as f64 + self.client.rows.at(hint_rows as f64);
        (prepare, self.client.answer_byte * params.answer_bytes() as f64)
    }

    /// Reads a file of rates, which may be anybody's.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let named = path.display();
        let meta = std::fs::metadata(path).with_context(|| format!("--rates {named} can't be read"))?;
        anyhow::ensure!(
            meta.is_file() && meta.len() <= MAX_BYTES,
            "--rates {named} is no file of rates; make one with --save-rates"
        );
        let text = std::fs::read_to_string(path).with_context(|| format!("--rates {named} can't be read"))?;
        Self::parse(&text).map_err(|why| {
            anyhow::anyhow!("--rates {named} holds no rates: {why}; make it with --save-rates")
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Start {
            version: u32,
        }
        let start: Start = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if start.version != VERSION {
            return Err(format!(
                "its version is {}, and this blindcore reads version {VERSION}",
                start.version
            ));
        }
        let rates: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let rising = rates.passes.first().is_some_and(|p| p.queries == 1)
            && rates.passes.windows(2).all(|w| w[0].queries < w[1].queries)
            && rates.passes.iter().all(|p| p.queries <= MAX_GATHER);
        let mut curves = rates.passes.iter().map(|p| &p.seconds).chain([&rates.hint, &rates.client.rows]);
        let ingests = [&rates.dense, &rates.keyed].map(|i| [&i.read, &i.fill]);
        let mut numbers: Vec<f64> = ingests.iter().flatten().flat_map(|p| [p.row, p.byte]).collect();
        numbers.extend([rates.client.column, rates.client.answer_byte]);
        let sound = rising
            && (1..=1024).contains(&rates.threads)
            && curves.all(Curve::check)
            && numbers.iter().all(|n| n.is_finite() && *n >= 0.0);
        drop(curves);
        if sound { Ok(rates) } else { Err("a number in it is none that was measured".into()) }
    }

    /// Writes them to a file that is made whole.
    pub(crate) fn save(&self, path: &Path) -> anyhow::Result<()> {
        let named = path.display();
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.persist(path).map_err(|e| e.error)
        };
        write().with_context(|| format!("--save-rates {named} can't be written"))?;
        Ok(())
    }

    /// Measures this machine.
    pub(crate) fn measure(device: &dyn Device) -> anyhow::Result<Self> {
        let described = device.describe();
        let mut bar = Steps { bar: Bar::new(), done: 0 };
        let most = doctor::memory_bytes().map_or(u64::MAX, |bytes| bytes / 8);
        let mut matrices: Vec<Matrix> = Vec::new();
        // A table of few rows, then tables of few columns.
        let mut clients = vec![Asking::new(FEW, COLUMNS)?];
        for rows in HINT_ROWS {
            clients.push(Asking::new(rows, FEW)?);
        }
        for sweep in 0..SWEEPS {
            for (i, side) in SIDES.into_iter().enumerate() {
                bar.next("a scan");
                if sweep == 0 && (side * side) as u64 <= most && matrices.len() == i {
                    matrices.extend(Matrix::after(matrices.last(), device, side)?);
                }
                if let Some(matrix) = matrices.get_mut(i) {
                    matrix.measure(device, sweep)?;
                }
            }
            for client in &mut clients {
                bar.next("a client");
                client.measure(sweep)?;
            }
        }
        let passes = GATHERED.into_iter().enumerate();
        let passes =
            passes.map(|(i, queries)| Pass { queries, seconds: curve(&matrices, |m| m.passes.get(i)) });
        let (passes, hint) = (passes.collect(), curve(&matrices, |m| m.hint.as_ref()));
        let column = clients[0].prepare.seconds() / COLUMNS as f64;
        let rows = |c: &Asking| (c.rows as f64, (c.prepare.seconds() - column * FEW as f64).max(1e-9));
        let answer_byte = clients.iter().map(Asking::decode_byte).fold(f64::INFINITY, f64::min);
        let client =
            ClientRates { column, rows: Curve(clients[1..].iter().map(rows).collect()), answer_byte };
        drop((matrices, clients));
        bar.next("a build");
        let dense = measure_build(device, false)?;
        bar.next("a build");
        let keyed = measure_build(device, true)?;
        let (version, processor, threads) = (VERSION, described.hardware, described.threads);
        let device = described.name;
        Ok(Self { version, processor, device, threads, passes, hint, client, dense, keyed })
    }
}

/// How far measuring is.
struct Steps {
    bar: Bar,
    done: u64,
}

impl Steps {
    fn next(&mut self, what: &str) {
        const ALL: u64 = SWEEPS as u64 * (SIDES.len() + 1 + HINT_ROWS.len()) as u64 + 2;
        self.bar.set(&format!("measuring {what}"), self.done, Some(ALL), false);
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

/// A square matrix of random bytes, with who answers from it.
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
    fn after(before: Option<&Self>, device: &dyn Device, side: usize) -> anyhow::Result<Option<Self>> {
        let geometry = Geometry { record_bytes: 64, groups: side / 64, columns: side };
        let params = Params::new(Scheme::Simple, geometry)?;
        let times = before.map_or(1.0, |b| params.database_bytes() as f64 / b.params.database_bytes() as f64);
        let affordable = |figure: &&Figure| figure.seconds() * times <= LONGEST;
        let passes = before.map_or(GATHERED.len(), |b| b.passes.iter().take_while(affordable).count());
        if passes == 0 {
            return Ok(None);
        }
        let hint = before.is_none_or(|b| b.hint.as_ref().is_some_and(|figure| affordable(&figure)));
        let database: SharedBytes = Arc::new(noise(params.database_bytes())?);
        let server = Server::new(params, device, vec![database.clone()], None)?;
        let mut queries = vec![0u8; MAX_GATHER * params.query_bytes()];
        SecretRng::from_os()?.fill(&mut queries);
        let (passes, hint) = ((0..passes).map(|_| Figure::new()).collect(), hint.then(Figure::new));
        Ok(Some(Self { params, database, server, queries, passes, hint }))
    }

    /// Times its passes and its hint.
    fn measure(&mut self, device: &dyn Device, sweep: u32) -> anyhow::Result<()> {
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
            let (mut words, pieces) = (vec![0u32; params.hint_words()], vec![database.clone()]);
            samples
                .time(|| preprocess(params, device, pieces, &mut words, &mut |_, _| Ok::<(), Error>(())))?;
            Ok(())
        })
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
        let params = Params::new(Scheme::Simple, geometry)?;
        let client = Client::new(params, Arc::new(noise(4 * params.hint_words())?))?;
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
fn measure_build(device: &dyn Device, keyed: bool) -> anyhow::Result<Ingest> {
    let dir = tempfile::tempdir().context("no folder for a small database can be made; set TMPDIR")?;
    let mut stages = Vec::new();
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
        build(&options, device, &mut |stage, done, _| {
            let time = last.elapsed().as_secs_f64();
            match (stage, done) {
                (Stage::Read, _) => read += time,
                // What was filled is put on the disk before the first pass of the hint.
                (Stage::Fill, _) | (Stage::Hint, 0) => fill += time,
                _ => {}
            }
            last = Instant::now();
            Ok::<(), StoreError>(())
        })?;
        stages.push((rows as f64, (rows * record_bytes) as f64, read, fill));
    }
    let fit = |of: fn(&(f64, f64, f64, f64)) -> f64| {
        PerRow::fit([0, 1].map(|i| (stages[i].0, stages[i].1, of(&stages[i]))))
    };
    Ok(Ingest { read: fit(|s| s.2), fill: fit(|s| s.3) })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A machine of round numbers: 10 GB/s a query, 100 GB*query/s when gathered.
    pub(crate) fn round() -> Rates {
        let pass = |queries: usize, rate: f64| Pass {
            queries,
            seconds: Curve(vec![(1e6, 1e6 * queries as f64 / rate), (1e9, 1e9 * queries as f64 / rate)]),
        };
        let per = |row, byte| PerRow { row, byte };
        Rates {
            version: VERSION,
            processor: "none".into(),
            device: "none".into(),
            threads: 2,
            passes: vec![pass(1, 1e10), pass(16, 1e11), pass(64, 1e11)],
            hint: Curve(vec![(1e6, 0.01), (1e9, 10.0)]),
            client: ClientRates {
                column: 1e-6,
                rows: Curve(vec![(1.0, 1e-6), (1e5, 0.1)]),
                answer_byte: 1e-9,
            },
            dense: Ingest { read: per(1e-6, 1e-9), fill: per(1e-6, 1e-9) },
            keyed: Ingest { read: per(2e-6, 1e-9), fill: per(2e-6, 1e-9) },
        }
    }

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

    #[test]
    fn curves_pass_through_their_points() {
        let curve = Curve(vec![(10.0, 1.0), (1000.0, 4.0)]);
        for (size, seconds) in [(1.0, 1.0), (10.0, 1.0), (100.0, 2.0), (1000.0, 4.0), (3000.0, 12.0)] {
            assert!((curve.at(size) - seconds).abs() < 1e-9, "{size}: {}", curve.at(size));
        }
    }

    #[test]
    fn passes_lie_between_those_that_were_measured() {
        let rates = round();
        let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-9, "{got} for {want}");
        near(rates.pass(1_000_000_000, 1), 0.1);
        near(rates.pass(1_000_000_000, 16), 0.16);
        near(rates.pass(1_000_000_000, 64), 0.64);
        near(rates.pass(4_000_000_000, 16), 0.64);
        near(rates.pass(1_000_000_000, 6), 0.12);
    }

    #[test]
    fn fits_of_two_builds_are_exact_and_never_negative() {
        let time = |rows: f64, bytes: f64| (rows, bytes, 3e-6 * rows + 2e-9 * bytes);
        let fit = PerRow::fit([time(40_000.0, 6.4e5), time(2000.0, 1.6e7)]);
        assert!((fit.row - 3e-6).abs() < 1e-12 && (fit.byte - 2e-9).abs() < 1e-15, "{fit:?}");
        let fit = PerRow::fit([(40_000.0, 6.4e5, 1.0), (2000.0, 1.6e7, 0.001)]);
        assert!(fit.byte == 0.0 && fit.row > 0.0, "{fit:?}");
    }

    #[test]
    fn files_are_read_back_and_nonsense_is_refused() {
        let rates = round();
        let text = serde_json::to_string(&rates).unwrap();
        assert_eq!(Rates::parse(&text).unwrap(), rates);
        let refuse = |from: &str, to: &str, words: &str| {
            assert!(text.contains(from), "{from} is not in {text}");
            let why = Rates::parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(why.contains(words), "{why}");
        };
        refuse("\"version\":1", "\"version\":2", "version is 2");
        refuse("\"queries\":1,", "\"queries\":2,", "none that was measured");
        refuse("\"queries\":16", "\"queries\":64", "none that was measured");
        refuse("\"threads\":2", "\"threads\":0", "none that was measured");
        refuse("\"column\":1e-6", "\"column\":-1e-6", "none that was measured");
        refuse("[1000000.0,0.01]", "[1000000.0,0.0]", "none that was measured");
        refuse("[1000000.0,0.01]", "[2e9,0.01]", "none that was measured");
        refuse("\"hint\"", "\"hints\"", "hints");
        assert!(Rates::parse("").is_err());
        assert!(Rates::parse("{\"version\":1}").is_err());
    }
}
