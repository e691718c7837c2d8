//! What a machine does per second: the rates that costs are computed from, and their file format.

use blindcore_accel::cost::{Cost, Traffic};
use blindcore_lookup::schemes::{ClientWork, Operand};
use blindcore_lookup::{MAX_GATHER, Params};
use serde::{Deserialize, Serialize};

use crate::chip::Problem;

/// Version of the file format of [`Rates`].
pub const VERSION: u32 = 2;

/// What a machine does per second, measured or read from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// The format, [`VERSION`].
    pub version: u32,
    /// The processor that was measured.
    pub processor: String,
    /// The device.
    pub device: String,
    /// Its threads.
    pub threads: usize,
    /// Seconds of a pass by bytes of the matrix, for rising numbers of queries, from 1 on.
    pub passes: Vec<Pass>,
    /// Seconds of a pass over the packing tables of a scheme with a ring, as for `passes`.
    pub packing: Vec<Pass>,
    /// What work on polynomials takes.
    pub ring: RingRates,
    /// Seconds to compute a hint, by bytes of the matrix.
    pub hint: Curve,
    /// What a client computes, on one thread.
    pub client: ClientRates,
    /// Filling a database of rows without keys.
    pub dense: Ingest,
    /// Filling one with keys.
    pub keyed: Ingest,
}

/// A pass over a matrix for one number of queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// Queries, 1 to [`MAX_GATHER`].
    pub queries: usize,
    /// Seconds by bytes.
    pub seconds: Curve,
}

/// What work on polynomials of 2048 coefficients takes, in seconds on one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingRates {
    /// A transform.
    pub transform: f64,
    /// A polynomial of a query: its errors, its product and its rounding.
    pub encrypted: f64,
}

/// What a client computes, in seconds on one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientRates {
    /// A column of the matrix, when a query is prepared.
    pub column: f64,
    /// Rows of the hint, when a query is prepared: seconds by their number.
    pub rows: Curve,
    /// A byte of an answer, when it is decoded.
    pub answer_byte: f64,
}

/// Stages of a build before its hint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ingest {
    /// Reading a source and sorting it.
    pub read: PerRow,
    /// Laying the matrix out and writing it.
    pub fill: PerRow,
}

/// Seconds for rows and their bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerRow {
    /// A row.
    pub row: f64,
    /// A byte of a record.
    pub byte: f64,
}

/// Seconds by size, measured at rising sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Curve(
    /// Sizes and their seconds, rising, at least one.
    pub Vec<(f64, f64)>,
);

impl Curve {
    /// Seconds for a size: between measured ones by their logarithms, below the smallest its own (what starts a
    /// pass is then most of it), and past the largest in proportion.
    #[must_use]
    pub fn at(&self, size: f64) -> f64 {
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
    /// Seconds of `rows` rows with `bytes` bytes in all.
    #[must_use]
    pub fn seconds(&self, rows: f64, bytes: f64) -> f64 {
        self.row * rows + self.byte * bytes
    }

    /// Fits the times of two builds, each (rows, bytes, seconds), whose records differ in length. A share that noise
    /// makes negative becomes 0.
    #[must_use]
    pub fn fit([a, b]: [(f64, f64, f64); 2]) -> Self {
        let ((rows_a, bytes_a, time_a), (rows_b, bytes_b, time_b)) = (a, b);
        let byte = (time_b * rows_a - time_a * rows_b) / (bytes_b * rows_a - bytes_a * rows_b);
        let byte = byte.max(0.0);
        Self { row: ((time_a - byte * bytes_a) / rows_a).max(0.0), byte }
    }
}

/// Seconds of a pass, from those that were measured.
fn between(passes: &[Pass], bytes: u64, queries: usize) -> f64 {
    let at = |pass: &Pass| pass.seconds.at(bytes as f64);
    let last = &passes[passes.len() - 1];
    if queries >= last.queries {
        return at(last) * queries as f64 / last.queries as f64;
    }
    let i = passes.partition_point(|p| p.queries <= queries) - 1;
    let (below, above) = (&passes[i], &passes[i + 1]);
    let share = (queries - below.queries) as f64 / (above.queries - below.queries) as f64;
    at(below) * (1.0 - share) + at(above) * share
}

impl Rates {
    /// Seconds of a pass over a matrix of `bytes` that answers `queries`, 1 to [`MAX_GATHER`].
    #[must_use]
    pub fn pass(&self, bytes: u64, queries: usize) -> f64 {
        between(&self.passes, bytes, queries)
    }

    /// The cost of a pass over `count` operands, of bytes or of a ring's residues: seconds come from measured rates, work from the
    /// operand's shape.
    #[must_use]
    pub fn pass_over(&self, operand: &Operand, count: u64, queries: usize) -> Cost {
        let passes = if operand.shape.window.is_some() { &self.packing } else { &self.passes };
        let bytes = count * operand.bytes() as u64;
        let points = Problem::from(&operand.shape).points() / operand.shape.m as u128 * queries as u128;
        Cost {
            seconds: between(passes, bytes, queries),
            threads: self.threads,
            database_bytes: bytes,
            points: u128::from(count) * points,
            traffic: vec![Traffic::new("memory", 8 * u128::from(bytes), 0)],
            ..Cost::default()
        }
    }

    /// What a client computes for a lookup: before its query is sent and once the answer is there.
    #[must_use]
    pub fn client(&self, params: &Params) -> (f64, f64) {
        let ClientWork { masked, products, decoded } = params.client_work();
        let products = if products == 0 { 0.0 } else { self.client.rows.at(products as f64) };
        let encrypted = params.ring_work().encrypted * self.ring.encrypted;
        (self.client.column * masked as f64 + products + encrypted, self.client.answer_byte * decoded as f64)
    }

    /// Rates that come with this crate, of a server with two cores: good enough to compare schemes by.
    ///
    /// ```
    /// assert!(blindcore_model::Rates::shipped().pass(1 << 30, 1) > 0.0);
    /// ```
    ///
    /// # Panics
    /// Never: a test reads them.
    #[must_use]
    pub fn shipped() -> Self {
        Self::parse(include_str!("../rates.json")).expect("a test reads them")
    }

    /// Reads rates from JSON, which may come from anybody.
    ///
    /// # Errors
    /// Says in words what is wrong: the version, the syntax, or a number that no measurement gives.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Start {
            version: u32,
        }
        let start: Start = serde_json::from_str(text).map_err(|e| match e.classify() {
            serde_json::error::Category::Data => e.to_string(),
            _ => format!("it is not JSON, by line {}, column {}", e.line(), e.column()),
        })?;
        if start.version != VERSION {
            return Err(format!(
                "its version is {}, and this blindcore reads version {VERSION}",
                start.version
            ));
        }
        let rates: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let rising = |passes: &[Pass]| {
            passes.first().is_some_and(|p| p.queries == 1)
                && passes.windows(2).all(|w| w[0].queries < w[1].queries)
                && passes.iter().all(|p| p.queries <= MAX_GATHER)
        };
        let rising = rising(&rates.passes) && rising(&rates.packing);
        let passes = rates.passes.iter().chain(&rates.packing).map(|p| &p.seconds);
        let mut curves = passes.chain([&rates.hint, &rates.client.rows]);
        let ingests = [&rates.dense, &rates.keyed].map(|i| [&i.read, &i.fill]);
        let mut numbers: Vec<f64> = ingests.iter().flatten().flat_map(|p| [p.row, p.byte]).collect();
        let RingRates { transform, encrypted } = rates.ring;
        numbers.extend([rates.client.column, rates.client.answer_byte, transform, encrypted]);
        let sound = rising
            && (1..=1024).contains(&rates.threads)
            && curves.all(Curve::check)
            && numbers.iter().all(|n| n.is_finite() && *n >= 0.0);
        drop(curves);
        if sound { Ok(rates) } else { Err("a number in it is out of the range of measurements".into()) }
    }
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
            packing: vec![pass(1, 1e10), pass(16, 5e10)],
            ring: RingRates { transform: 1e-6, encrypted: 2e-5 },
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
    fn what_is_not_json_is_said_so() {
        assert_eq!(Rates::parse("hello").unwrap_err(), "it is not JSON, by line 1, column 1");
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
        refuse("\"version\":2", "\"version\":1", "version is 1");
        refuse("\"queries\":1,", "\"queries\":2,", "out of the range of measurements");
        refuse("\"queries\":16", "\"queries\":64", "out of the range of measurements");
        refuse("\"threads\":2", "\"threads\":0", "out of the range of measurements");
        refuse("\"column\":1e-6", "\"column\":-1e-6", "out of the range of measurements");
        refuse("[1000000.0,0.01]", "[1000000.0,0.0]", "out of the range of measurements");
        refuse("[1000000.0,0.01]", "[2e9,0.01]", "out of the range of measurements");
        refuse("\"hint\"", "\"hints\"", "hints");
        assert!(Rates::parse("").is_err());
        assert!(Rates::parse("{\"version\":1}").is_err());
    }
}
