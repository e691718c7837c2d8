//! Parameters: everything that client and server must agree on, and what follows from it.

use std::fmt;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Layout, Word};
use blindcore_math::{LWE_DIMENSION, Modulus, PublicMatrix, Seed};

use crate::{Error, MAX_GATHER};

/// Standard deviation of the errors. With a uniform secret of dimension 1024 and q = 2^32 this is
/// [`SECURITY_BITS`] by [`ESTIMATOR`]; the SimplePIR paper's 6.4 is 121.5 bits today.
pub const SIGMA: u32 = 11;
/// Bits of security by today's estimate.
pub const SECURITY_BITS: f64 = 128.4;
/// What made the estimate.
pub const ESTIMATOR: &str =
    "lattice-estimator 27a581b, default cost model, least of usvp, bdd and dual_hybrid (November 2026)";
/// p: an entry is one byte, so nothing is ever unpacked.
pub const PLAINTEXT_MODULUS: u32 = 256;
/// The longest record that lies in one slot; longer ones take several.
pub const MAX_RECORD_BYTES: usize = 64 << 10;
/// The most slots that a record takes.
pub const MAX_BLOCKS: usize = 1 << 15;
/// The longest slot: a record and what a table puts beside it.
pub const MAX_SLOT_BYTES: usize = MAX_RECORD_BYTES + 64;
/// The most groups, and the most columns: what a 32-bit position holds with room to spare.
const MAX_SIDE: u64 = 1 << 31;
/// A lookup may fail once in 2^40.
const FAILURE_LIMIT_LOG2: f64 = 40.0;
/// log2 of Delta = q / p, what a message is scaled by.
pub(crate) const DELTA_LOG2: u32 = 24;
/// Answers lose their lower 16 bits, which the failure bound pays for.
pub(crate) const ANSWER_SHIFT: u32 = 16;
/// Byte digits of a word modulo q.
pub(crate) const DIGITS: usize = 4;

/// Which scheme answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// SimplePIR: the hint has 4 KiB a row, an answer two bytes a row.
    Simple,
    /// DoublePIR: the answer is itself looked up, so hint and answer have 16 MiB and 24 KiB a byte of the
    /// record, however large the table. For records of a few bytes in large tables.
    Double,
}

/// How records lie in the matrix. See the [crate]'s drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// R: bytes of a slot, 1 to [`MAX_SLOT_BYTES`].
    pub record_bytes: usize,
    /// Groups of rows.
    pub groups: usize,
    /// J: columns.
    pub columns: usize,
}

impl Geometry {
    /// Rows of the matrix: bytes that an answer covers.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.record_bytes * self.groups
    }

    /// Slots in all.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.groups as u64 * self.columns as u64
    }
}

/// A scheme and a geometry whose lookups are secure and fail less than once in 2^40; made by [`Params::new`]
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Params {
    /// The scheme.
    pub scheme: Scheme,
    /// The geometry.
    pub geometry: Geometry,
}

impl Params {
    /// Checks a scheme and a geometry, which may come from a stranger.
    ///
    /// # Errors
    /// A size is out of range, or decoding would fail more often than once in 2^40.
    pub fn new(scheme: Scheme, geometry: Geometry) -> Result<Self, Error> {
        let check = |what, got: usize, max: u64, remedy| {
            let got = got as u64;
            if (1..=max).contains(&got) {
                Ok(())
            } else {
                Err(Error::Range { what, got, min: 1, max, remedy })
            }
        };
        check("record size", geometry.record_bytes, MAX_SLOT_BYTES as u64, "store long records elsewhere")?;
        check("number of groups", geometry.groups, MAX_SIDE, "split the table")?;
        check("number of columns", geometry.columns, MAX_SIDE, "split the table")?;
        let params = Self { scheme, geometry };
        check("number of rows", geometry.rows(), MAX_SIDE, "split the table")?;
        if scheme == Scheme::Double {
            let max = MAX_SIDE / (DIGITS * LWE_DIMENSION) as u64;
            check("record size under doublepir", geometry.record_bytes, max, "use simplepir")?;
        }
        let failure = params.failure_log2();
        if failure < FAILURE_LIMIT_LOG2 {
            return Err(Error::Failure { failure, limit: FAILURE_LIMIT_LOG2 });
        }
        Ok(params)
    }

    /// -log2 of a bound on the probability that an honest lookup decodes wrongly.
    ///
    /// The noise of an entry is the sum over J columns of (entry - 128) times an error; entries are at most
    /// 128 from their centre and errors subgaussian with deviation sigma, so it passes t with probability at
    /// most 2 exp(-t^2 / (2 sigma^2 128^2 J)). It may be up to Delta / 2 less the rounding of the answer. A
    /// record fails when any of its entries does. Source: SimplePIR, appendix C, with p = 256.
    #[must_use]
    pub fn failure_log2(&self) -> f64 {
        let bound = |entries: f64, columns: usize, margin: f64| {
            let deviation = f64::from(SIGMA) * f64::from(PLAINTEXT_MODULUS / 2);
            let exponent = margin * margin / (2.0 * deviation * deviation * columns as f64);
            // log2 of entries * 2 * exp(-exponent)
            entries.log2() + 1.0 - exponent * std::f64::consts::LOG2_E
        };
        let half_delta = f64::from(1u32 << (DELTA_LOG2 - 1));
        let rounded = half_delta - f64::from(1u32 << (ANSWER_SHIFT - 1));
        let Geometry { record_bytes, groups, columns } = self.geometry;
        match self.scheme {
            Scheme::Simple => -bound(record_bytes as f64, columns, rounded),
            Scheme::Double => {
                let first = bound(record_bytes as f64, columns, half_delta);
                let second = bound((record_bytes * DIGITS * (LWE_DIMENSION + 1)) as f64, groups, rounded);
                -(first.exp2() + second.exp2()).log2().max(f64::MIN_EXP.into())
            }
        }
    }

    /// What stands for these parameters on disks and wires.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("blindcore lookup parameters v1");
        let Geometry { record_bytes, groups, columns } = self.geometry;
        hasher.update(self.scheme.to_string().as_bytes());
        for number in
            [record_bytes, groups, columns, LWE_DIMENSION, SIGMA as usize, PLAINTEXT_MODULUS as usize]
        {
            hasher.update(&(number as u64).to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// The public matrix over columns (level 0) or over groups (level 1, DoublePIR's second). Its seed comes
    /// from a hash, so neither side chooses it.
    #[must_use]
    pub fn public_matrix(&self, level: u8) -> PublicMatrix {
        let mut hasher = blake3::Hasher::new_derive_key("blindcore lookup public matrix v1");
        hasher.update(&self.digest()).update(&[level]);
        let mut seed = [0u8; 16];
        hasher.finalize_xof().fill(&mut seed);
        PublicMatrix::new(Seed(seed))
    }

    /// The contract operation over the matrix of records, for up to [`MAX_GATHER`] queries.
    #[must_use]
    pub fn shape(&self) -> Shape {
        matrix_shape(self.geometry.rows(), self.geometry.columns)
    }

    /// Over DoublePIR's second matrix: the digits of the first level's hint, a row for each byte of a record,
    /// digit and secret position, a column for each group.
    #[must_use]
    pub fn second_shape(&self) -> Shape {
        matrix_shape(self.second_rows(), self.geometry.groups)
    }

    pub(crate) fn second_rows(&self) -> usize {
        self.geometry.record_bytes * DIGITS * LWE_DIMENSION
    }

    /// Bytes of the matrix of records in [`Layout::Tiles16x64`], its padding too.
    #[must_use]
    pub fn database_bytes(&self) -> usize {
        laid_out(&self.shape())
    }

    /// A zeroed database in [`Layout::Tiles16x64`], to be filled by [`crate::pack_group`].
    #[must_use]
    pub fn database_buffer(&self) -> Vec<u8> {
        vec![0; self.database_bytes()]
    }

    /// Bytes of a query.
    #[must_use]
    pub fn query_bytes(&self) -> usize {
        match self.scheme {
            Scheme::Simple => 4 * self.geometry.columns,
            Scheme::Double => 4 * (self.geometry.columns + self.geometry.groups),
        }
    }

    /// Bytes of an answer.
    #[must_use]
    pub fn answer_bytes(&self) -> usize {
        match self.scheme {
            Scheme::Simple => 2 * self.geometry.rows(),
            Scheme::Double => {
                self.geometry.record_bytes * DIGITS * (4 * LWE_DIMENSION + 2 * LWE_DIMENSION + 2)
            }
        }
    }

    /// 32-bit words of the hint that a client fetches once an epoch.
    #[must_use]
    pub fn hint_words(&self) -> usize {
        let rows = match self.scheme {
            Scheme::Simple => self.geometry.rows(),
            Scheme::Double => self.second_rows(),
        };
        rows * LWE_DIMENSION
    }

    /// Bytes that the server keeps beside the matrix of records: DoublePIR's second matrix.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        match self.scheme {
            Scheme::Simple => 0,
            Scheme::Double => laid_out(&self.second_shape()),
        }
    }
}

fn laid_out(shape: &Shape) -> usize {
    Layout::Tiles16x64.stripe_bytes(shape) * Layout::Tiles16x64.stripes(shape)
}

pub(crate) fn matrix_shape(rows: usize, columns: usize) -> Shape {
    Shape { m: MAX_GATHER, n: rows, j: columns, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheme::Simple => "simple",
            Scheme::Double => "double",
        })
    }
}

impl std::str::FromStr for Scheme {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "simple" => Ok(Scheme::Simple),
            "double" => Ok(Scheme::Double),
            other => Err(format!("scheme {other:?} is unknown; use simple or double")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(record_bytes: usize, groups: usize, columns: usize) -> Geometry {
        Geometry { record_bytes, groups, columns }
    }

    #[test]
    fn refuses_what_is_out_of_range() {
        for bad in [
            geometry(0, 1, 1),
            geometry(MAX_SLOT_BYTES + 1, 1, 1),
            geometry(1, 0, 1),
            geometry(1, 1, 0),
            geometry(MAX_SLOT_BYTES, 1 << 20, 1),
            geometry(1, usize::MAX, 1),
            geometry(1, 1, usize::MAX),
            geometry(1, 1, 1 << 20),
        ] {
            assert!(Params::new(Scheme::Simple, bad).is_err(), "{bad:?}");
            assert!(Params::new(Scheme::Double, bad).is_err(), "{bad:?}");
        }
        assert!(Params::new(Scheme::Double, geometry(1, 1 << 20, 1)).is_err(), "too many groups to decode");
    }

    #[test]
    fn the_noise_rule_holds_to_hundreds_of_gigabytes() {
        // The rule, floor(q/p) >= sqrt(2) sigma p N^(1/4) sqrt(ln(2/delta)), for a square matrix of
        // N entries and delta = 2^-40, and ours for one entry, agree on where the limit lies.
        let holds = |n: f64| {
            let need = 2f64.sqrt() * 11.0 * 256.0 * n.powf(0.25) * (41.0 * 2f64.ln()).sqrt();
            f64::from(1u32 << 24) >= need
        };
        for gigabytes in [1.0, 64.0, 256.0] {
            let side = (gigabytes * 2f64.powi(30)).sqrt();
            assert!(holds(side * side));
            let params = Params::new(Scheme::Simple, geometry(1, side as usize, side as usize)).unwrap();
            assert!(params.failure_log2() >= 40.0);
        }
        assert!(Params::new(Scheme::Simple, geometry(MAX_SLOT_BYTES, 1, 400_000)).is_ok());
    }

    #[test]
    fn digests_differ_with_every_number() {
        let base = Params::new(Scheme::Simple, geometry(2, 3, 5)).unwrap();
        let others = [
            Params::new(Scheme::Double, geometry(2, 3, 5)).unwrap(),
            Params::new(Scheme::Simple, geometry(3, 2, 5)).unwrap(),
            Params::new(Scheme::Simple, geometry(2, 3, 6)).unwrap(),
        ];
        assert!(others.iter().all(|p| p.digest() != base.digest()));
    }
}
