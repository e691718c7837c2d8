//! Where OnionPIR's time goes (sections 3.1 and 3.2, Table 3.1): our own, as a real query goes through the program, on one thread.
//!
//! ```text
//!   expand the query ──▶ first dimension: a pass over polynomials ──▶ later dimensions ──▶ round
//!                        timed where the device is asked              each external product noted by `blindcore_rlwe::profile`
//! ```
//!
//! Polynomials of the first records are made as a build makes them; a larger table has them again and again, and what is asked for lies
//! among the first.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_accel::contract::Shape;
use blindcore_accel::{Cost, Database, Device, Error, Placed, SharedBytes, Words};
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::schemes::{self, Operand};
use blindcore_lookup::{Geometry, InsecureOnionPir2021, Params, SchemeChoice, SchemeRef, Server, plan};
use blindcore_math::Modulus;
use blindcore_rlwe::{Operations, Profile, Ring, profile};
use blindcore_store::{Checksum, Shard, StreamOptions, Streamed};
use blindcore_units::{Progress, Unit};

use super::operation::{NotedPlaced, Notes, Question, Seen, Small};
use super::{Lines, Table, table};
use crate::rows::By;

/// Bytes of a record.
const RECORD_BYTES: usize = 256;
/// Bytes of polynomials, about, that are not the same again.
const DISTINCT_BYTES: usize = 512 << 20;
/// Lookups of which the one of median time is shown, after one that warms up.
const RUNS: usize = 3;
/// Bytes that are written at a time.
const CHUNK: usize = 16 << 20;

/// What is profiled.
#[derive(Clone, Debug)]
pub struct Options {
    /// GiB of records, 1/64 to 64.
    pub gib: f64,
    /// A folder on the disk that polynomials are streamed from, in a file that is gone afterwards; in memory, if it is not said.
    pub disk: Option<PathBuf>,
}

impl Options {
    /// So many GiB, or 4.
    #[must_use]
    pub fn new(gib: Option<f64>, disk: Option<PathBuf>) -> Self {
        Self { gib: gib.unwrap_or(4.0), disk }
    }
}

/// A table of so many records.
struct Wanted<'a> {
    records: u64,
    distinct_bytes: usize,
    disk: Option<&'a Path>,
}

/// The lookup of median time.
pub(super) struct Profiled {
    scheme: SchemeRef,
    records: u64,
    /// Bytes of all polynomials, and of those that are not the same again.
    bytes: [usize; 2],
    lookup: Lookup,
    /// The same lookup, of which nothing is noted.
    unnoted: Duration,
    /// How much of a product with its sum is the product, where each is done alone.
    product: f64,
    /// The time of reading alone, where polynomials lie on a disk.
    reading: Option<Duration>,
}

/// A lookup, as it was noted.
struct Lookup {
    begun: Instant,
    took: Duration,
    pass: Seen,
    profile: Profile,
}

/// Records that nobody reads: queries go over what was made of them.
struct Unread(Shape);

impl Placed for Unread {
    fn shape(&self) -> &Shape {
        &self.0
    }

    fn run(&self, _: &Words) -> Result<(Words, Cost), Error> {
        Err(self.refusal())
    }

    fn stripes(&self, _: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        Err(self.refusal())
    }
}

impl Unread {
    fn refusal(&self) -> Error {
        Error::Shape { shape: self.0.to_string(), why: "these records were not kept; report this".into() }
    }
}

/// The first bytes of others.
struct First(SharedBytes, usize);

impl AsRef<[u8]> for First {
    fn as_ref(&self) -> &[u8] {
        &(*self.0).as_ref()[..self.1]
    }
}

/// So many bytes, which are those of `of` again and again.
fn again(of: &SharedBytes, len: usize) -> Vec<SharedBytes> {
    let whole = (**of).as_ref().len();
    let mut pieces = vec![of.clone(); len / whole];
    if !len.is_multiple_of(whole) {
        pieces.push(Arc::new(First(of.clone(), len % whole)));
    }
    pieces
}

/// The operand that queries go over.
fn polynomials(params: &Params) -> anyhow::Result<Operand> {
    params.stored_operands().nth(1).context("OnionPIR keeps no polynomials; report this")
}

/// Polynomials in a file without a name, which goes with this process.
fn on_disk(
    dir: &Path,
    pieces: &[SharedBytes],
    shape: &Shape,
    device: &Device,
    progress: &mut dyn Progress,
) -> anyhow::Result<Streamed> {
    let len: u64 = pieces.iter().map(|piece| (**piece).as_ref().len() as u64).sum();
    let room = blindcore_units::bytes(len);
    let refuse = |e| anyhow::anyhow!("--disk {}: {e}; name a folder with {room} free", dir.display());
    let mut file = tempfile::tempfile_in(dir).map_err(refuse)?;
    let mut written = 0;
    for chunk in pieces.iter().flat_map(|piece| (**piece).as_ref().chunks(CHUNK)) {
        progress.at("writing", written, Some(len), Unit::Bytes);
        file.write_all(chunk).map_err(refuse)?;
        written += chunk.len() as u64;
    }
    file.sync_all().map_err(refuse)?;
    let shard = Shard { path: dir.to_owned(), file, bytes: 0..len, checksum: Checksum::Nothing };
    Ok(Streamed::open(device, shape, vec![shard], StreamOptions::default())?)
}

/// Profiles a scheme of OnionPIR's kind.
fn measure(scheme: SchemeRef, wanted: &Wanted<'_>, progress: &mut dyn Progress) -> anyhow::Result<Profiled> {
    let (all, one) = (Cpu::open("cpu")?, Cpu::with_threads("cpu", 1)?);
    let params = plan(wanted.records, RECORD_BYTES, false, SchemeChoice::Only(scheme))?;
    let operand = polynomials(&params)?;
    let bytes = operand.bytes();
    // As many groups of the same columns as make so many bytes: their polynomials are the first ones of the whole table.
    let groups = params.geometry.groups;
    let some = (groups as f64 * wanted.distinct_bytes as f64 / bytes as f64) as usize;
    let geometry = Geometry { groups: some.clamp(1, groups), ..params.geometry };
    let first = Small::new(Params::new(scheme, geometry)?, &all, progress)?;
    let made = first.stored.get(1).context("OnionPIR keeps no polynomials; report this")?;
    let pieces = again(made, bytes);
    let distinct = bytes.min((**made).as_ref().len());

    let (placed, streamed): (Arc<dyn Placed>, _) = match wanted.disk {
        None => (one.contract(&operand.shape)?.place(Database::Packed(pieces))?, None),
        Some(dir) => {
            let streamed = Arc::new(on_disk(dir, &pieces, &operand.shape, &one, progress)?);
            (streamed.clone(), Some(streamed))
        }
    };
    let notes = Notes::default();
    let noted = Arc::new(NotedPlaced { placed, notes: notes.clone() });
    let server = Server::placed(params, &one, vec![Arc::new(Unread(params.records().shape)), noted])?;
    let question = Question::new(&params, &first.hint, geometry.slots() / 3)?;
    let (mut lookups, mut answers) = (Vec::with_capacity(RUNS), Vec::with_capacity(RUNS + 2));
    let mut unnoted = Duration::ZERO;
    for run in 0..RUNS + 2 {
        progress.at("looking up", run as u64, Some(RUNS as u64 + 2), Unit::Items);
        notes.take();
        let begun = Instant::now();
        // The first one warms up, and nothing is noted of the last one.
        if run == 0 || run > RUNS {
            answers.push(question.answer(&server)?);
            unnoted = begun.elapsed();
            continue;
        }
        let (answer, profile) = profile(|| question.answer(&server));
        let took = begun.elapsed();
        answers.push(answer?);
        let pass = notes.take().pop().context("a query passed over nothing; report this")?;
        lookups.push(Lookup { begun, took, pass, profile });
    }
    anyhow::ensure!(answers.iter().all(|answer| *answer == answers[0]), "answers to one query differ");
    question.check(&answers[0])?;
    lookups.sort_by_key(|lookup| lookup.took);
    let lookup = lookups.swap_remove(RUNS / 2);
    let product = product(&lookup.pass.shape)?;
    let reading = match streamed {
        None => None,
        Some(streamed) => {
            progress.at("reading alone", 0, None, Unit::Items);
            let begun = Instant::now();
            streamed.scan(&mut |_| Ok(()))?;
            Some(begun.elapsed())
        }
    };
    let records = wanted.records;
    Ok(Profiled { scheme, records, bytes: [bytes, distinct], lookup, unnoted, product, reading })
}

/// The time of a product of two polynomials of this shape's, as a share of it and of their sum's, each alone.
fn product(shape: &Shape) -> anyhow::Result<f64> {
    const TIMES: usize = 500;
    let mut primes = Vec::new();
    for modulus in &shape.moduli {
        if let Modulus::Prime(q) = modulus
            && !primes.contains(q)
        {
            primes.push(*q);
        }
    }
    let degree = shape.c() * shape.d / primes.len().max(1);
    let ring = Ring::new(degree, &primes)?;
    let words = |factor: u64| -> Vec<u64> {
        let word = |q: u64| move |i| (i as u64 + 3).wrapping_mul(factor) % q;
        primes.iter().flat_map(|q| (0..degree).map(word(q.value()))).collect()
    };
    let polynomial = |factor| ring.polynomial(words(factor)).context("residues are residues");
    let (mut x, y) = (polynomial(0x9e37_79b9_7f4a_7c15)?, polynomial(0xbf58_476d_1ce4_e5b9)?);
    let mut times = [Duration::MAX; 2];
    for _ in 0..RUNS {
        let begun = Instant::now();
        (0..TIMES).for_each(|_| ring.multiply(&mut x, std::hint::black_box(&y)));
        times[0] = times[0].min(begun.elapsed());
        let begun = Instant::now();
        (0..TIMES).for_each(|_| ring.add(&mut x, std::hint::black_box(&y)));
        times[1] = times[1].min(begun.elapsed());
    }
    let [product, sum] = times.map(|time| time.as_secs_f64());
    Ok(product / (product + sum))
}

/// Both of our OnionPIRs: at 128 bits, and with the sizes that the thesis profiled.
pub(super) fn both(options: &Options, progress: &mut dyn Progress) -> anyhow::Result<Vec<Profiled>> {
    anyhow::ensure!(
        (1.0 / 64.0..=64.0).contains(&options.gib),
        "--gib {} is outside 1/64 to 64 GiB of records; the thesis has 32",
        options.gib
    );
    if let Some(dir) = options.disk.as_deref().filter(|dir| !dir.is_dir()) {
        anyhow::bail!("--disk {} is not a folder; name one on the disk to stream from", dir.display());
    }
    let records = (options.gib * f64::from(1 << 30)) as u64 / RECORD_BYTES as u64;
    let wanted = Wanted { records, distinct_bytes: DISTINCT_BYTES, disk: options.disk.as_deref() };
    let published = InsecureOnionPir2021::for_measurements().scheme();
    let ours = schemes::find("onionpir")?;
    [ours, published].into_iter().map(|scheme| measure(scheme, &wanted, progress)).collect()
}

impl Profiled {
    /// Seconds of the parts of a lookup.
    fn parts(&self) -> Parts {
        let Lookup { begun, took, pass, profile } = &self.lookup;
        let Operations { products, sums, transforms } = profile.within;
        let [took, first, external, products, sums, transforms] =
            [*took, pass.took, profile.external.time, products.time, sums.time, transforms.time]
                .map(|time| time.as_secs_f64());
        // Whatever is not a sum alone is a product with its sum.
        let fused = first + products;
        Parts {
            took,
            expanding: pass.begun.duration_since(*begun).as_secs_f64(),
            external: first + external,
            first,
            products: fused * self.product,
            sums: fused * (1.0 - self.product) + sums,
            other: external - products - sums,
            transforms,
        }
    }
}

/// Seconds.
struct Parts {
    took: f64,
    expanding: f64,
    /// Of it `products`, `sums` and `other`; of `other`, `transforms`.
    external: f64,
    first: f64,
    products: f64,
    sums: f64,
    other: f64,
    transforms: f64,
}

/// The lines of Table 3.1 and of section 3.1; without values where nothing was profiled.
pub(super) fn lines(lines: &mut Lines, profiled: &[Profiled]) {
    const T: &str = "Table 3.1";
    let names = ["onionpir", "onionpir-2021"];
    for (name, of) in names.into_iter().zip(profiled.iter().map(Some).chain([None, None])) {
        let parts = of.map(Profiled::parts);
        let mut share = |id: &str, what: &str, part: fn(&Parts) -> f64, published: Option<f64>| {
            let value = parts.as_ref().map(part);
            let (id, what) = (format!("3-1.{name}.{id}"), format!("{name}: {what}"));
            lines.add(T, &id, &what, value, "", published, By::Profiled);
        };
        share("multiply", "polynomial multiplication", |p| p.products / p.took, Some(0.4269));
        share("add", "polynomial addition", |p| p.sums / p.took, Some(0.2134));
        let what = "both, which are one loop here";
        share("multiply-add", what, |p| (p.products + p.sums) / p.took, Some(0.4269 + 0.2134));
        share("other", "other in the external product", |p| p.other / p.took, Some(0.1152));
        share("transforms", "of that, transforms", |p| p.transforms / p.took, None);
        share("external", "external product, in all", |p| p.external / p.took, Some(0.7555));
        share("first", "first dimension, of the external product", |p| p.first / p.external, Some(0.994));
        share("expand", "expanding the query", |p| p.expanding / p.took, None);
        let rest = |p: &Parts| (p.took - p.expanding - p.external) / p.took;
        share("rest", "gathering outputs, rounding", rest, None);
        let counts = |of: &Profiled| {
            // A polynomial's values lie in all channels.
            let products: usize = of.lookup.pass.dimensions()[..6].iter().product();
            let Profile { external, within, .. } = of.lookup.profile;
            [products as u64, external.count, within.products.count]
        };
        let counts = of.map(counts);
        let what = ["products of the first dimension", "external products after it", "products in these"];
        for (at, what) in what.into_iter().enumerate() {
            let (id, what) = (format!("3-1.{name}.count.{at}"), format!("{name}: {what}"));
            lines.add(T, &id, &what, counts.map(|counts| counts[at] as f64), "", None, By::Counted);
        }
        lines.add(
            T,
            &format!("3-1.{name}.seconds"),
            &format!("{name}: a query answered"),
            parts.as_ref().map(|parts| parts.took),
            "s",
            None,
            By::Measured,
        );
        let rate = |seconds: f64| of.map(|of| of.bytes[0] as f64 / seconds / 1e6);
        let used = of.and_then(|of| of.reading.and(rate(of.lookup.took.as_secs_f64())));
        let alone = of.and_then(|of| rate(of.reading?.as_secs_f64()));
        let what = [
            ("used", "MB/s of the disk, a query being answered", used, 650.0),
            ("alone", "MB/s of the disk, reading alone (published: fio)", alone, 1000.0),
        ];
        for (id, what, value, published) in what {
            let (id, what) = (format!("3.1.{name}.{id}"), format!("{name}: {what}"));
            lines.add("Section 3.1", &id, &what, value, "MB/s", published, By::Measured);
        }
    }
}

/// What was profiled, and what the text leaves out.
pub(super) fn notes(profiled: &[Profiled]) -> Vec<String> {
    let mut notes: Vec<String> = profiled
        .iter()
        .map(|of| {
            let lie = if of.reading.is_some() { "streamed from a disk" } else { "in memory" };
            let repeated = match of.bytes {
                [all, distinct] if distinct < all => {
                    format!(", the first {} again and again", blindcore_units::bytes(distinct as u64))
                }
                _ => String::new(),
            };
            format!(
                "Table 3.1, {}: {} of records of {RECORD_BYTES} bytes, {} of polynomials {lie}{repeated}; one thread; a lookup of which nothing is \
                 noted takes {:.3} of the time. The thesis has 32 GB, and 8 GB of memory.",
                of.scheme,
                blindcore_units::bytes(of.records * RECORD_BYTES as u64),
                blindcore_units::bytes(of.bytes[0] as u64),
                of.unnoted.as_secs_f64() / of.lookup.took.as_secs_f64(),
            )
        })
        .collect();
    notes.extend(if profiled.is_empty() {
        vec!["Table 3.1 is measured, so it was left out with the CPU; `--table 3.1` makes it alone.".to_owned()]
    } else {
        [
            "Table 3.1: a product and its sum are one loop here. Their time is measured together, and divided as a product and a sum of whole \
             polynomials take alone. What the first dimension does beside them (unpacking words, reducing sums) can't be told apart.",
            "Table 3.1: onionpir-2021 has the published sizes, J = 256 and K = 2, which are broken today; onionpir has sizes of 128 bits, J = 256 and \
             K = 1, so that half as many products fall to a plaintext.",
            "Table 3.1: callgrind counts instructions, and not what waits for memory or a disk; ours are times.",
            "Table 3.1: the text does not say which OnionPIR was profiled, the size of an entry, or what the other 24.45 % are.",
        ]
        .map(str::to_owned)
        .to_vec()
    });
    notes
}

/// Table 3.1 and section 3.1 alone.
///
/// # Errors
/// An option is out of its range, memory or the disk fails, or a lookup finds another record.
pub fn make(options: &Options, progress: &mut dyn Progress) -> anyhow::Result<Table> {
    let profiled = both(options, progress)?;
    let mut all = Lines::default();
    lines(&mut all, &profiled);
    Ok(table(all.0, notes(&profiled)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table that repeats what was made of its first records, in memory and on a disk.
    #[test]
    fn parts_of_a_lookup_are_noted_and_add_up() {
        let dir = tempfile::tempdir().unwrap();
        let scheme = schemes::find("onionpir").unwrap();
        for disk in [None, Some(dir.path())] {
            let wanted = Wanted { records: 40_000, distinct_bytes: 12 << 20, disk };
            let of = measure(scheme, &wanted, &mut ()).unwrap();
            assert!(of.bytes[1] < of.bytes[0], "{:?}", of.bytes);
            assert_eq!(of.reading.is_some(), disk.is_some());
            // Of the outputs of one part each external product leaves one fewer.
            let [queries, outputs, p, q, rows, pieces, c, d] = of.lookup.pass.dimensions();
            let profile = of.lookup.profile;
            assert_eq!((queries, p, q, pieces, c * d), (1, 2, 1, 1, 2 * 4096));
            assert!(outputs > 1 && rows > 1);
            assert_eq!(profile.external.count, outputs as u64 - 1);
            // Four halves of two digits each.
            assert_eq!(profile.within.products.count, 8 * profile.external.count);
            assert!(profile.elsewhere.products.count > 0, "expansion takes products too");
            let parts = of.parts();
            let sum = parts.products + parts.sums + parts.other;
            assert!((sum / parts.external - 1.0).abs() < 1e-9, "{sum} of {}", parts.external);
            assert!(parts.external + parts.expanding <= parts.took && parts.transforms <= parts.other);
            assert!(0.0 < of.product && of.product < 1.0);
            let mut all = Lines::default();
            lines(&mut all, &[of]);
            let without = all.0.iter().filter(|line| line.value.is_none()).count();
            // The other scheme's lines are there, and empty; in memory, so are those of the disk.
            assert_eq!(without, all.0.len() / 2 + if disk.is_some() { 0 } else { 2 });
        }
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        for gib in [0.0, -1.0, 65.0, f64::NAN] {
            let error = make(&Options { gib, disk: None }, &mut ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--gib {gib} is outside 1/64 to 64")), "{error}");
        }
        let disk = Some(PathBuf::from("/nonexistent"));
        let error = make(&Options { gib: 1.0 / 64.0, disk }, &mut ()).unwrap_err().to_string();
        assert!(error.starts_with("--disk /nonexistent is not a folder"), "{error}");
    }
}
