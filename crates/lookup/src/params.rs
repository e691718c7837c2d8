//! Parameters: everything that client and server must agree on, and what follows from it.

use std::ops::Range;

use blindcore_accel::contract::Shape;

use crate::Error;
use crate::lanes::Lanes;
use crate::schemes::keeps::Keeps;
use crate::schemes::scheme::{ClientWork, Operand, RingWork, Run, SchemeRef, Security};

/// The most queries that one pass over a database gathers.
pub const MAX_GATHER: usize = 64;

/// The longest record that lies in one slot; longer ones take several.
pub const MAX_RECORD_BYTES: usize = 64 << 10;
/// The most slots that a record takes.
pub const MAX_BLOCKS: usize = 1 << 15;
/// The longest slot: a record and what a table puts beside it.
pub const MAX_SLOT_BYTES: usize = MAX_RECORD_BYTES + 192;
/// The most bytes of a client's registered keys, or of their secret: a table's description may be a stranger's.
const MAX_KEYS_BYTES: u64 = 64 << 20;
/// The most memory that such keys take on a server.
const MAX_PARSED_BYTES: u64 = 256 << 20;
/// The most groups, and the most columns: what a 32-bit position holds with room to spare.
pub(crate) const MAX_SIDE: u64 = 1 << 31;

/// The most rows, and the most columns, for an address space of this many bytes. A scheme has at most 16 bytes of a query,
/// an answer or a stripe for each row or column, so sizes computed with a `usize` don't overflow.
const fn largest_side(address_space: u64) -> u64 {
    let fits = address_space / 32;
    if fits < MAX_SIDE { fits } else { MAX_SIDE }
}
/// A lookup may fail once in 2^40.
const FAILURE_LIMIT_LOG2: f64 = 40.0;

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
    /// Rows of the matrix: bytes that an answer covers. They are counted in [`Params`], which bound both factors.
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
    pub scheme: SchemeRef,
    /// The geometry.
    pub geometry: Geometry,
}

impl Params {
    /// Checks a scheme and a geometry, which may come from a stranger.
    ///
    /// # Errors
    /// A size is out of range, or decoding would fail more often than once in 2^40.
    pub fn new(scheme: SchemeRef, geometry: Geometry) -> Result<Self, Error> {
        let check = |what, got: u64, max: u64, remedy| {
            if (1..=max).contains(&got) {
                Ok(())
            } else {
                Err(Error::Range { what, got, min: 1, max, remedy })
            }
        };
        let Geometry { record_bytes, groups, columns } = geometry;
        let side = largest_side(isize::MAX as u64);
        check("record size", record_bytes as u64, MAX_SLOT_BYTES as u64, "store long records elsewhere")?;
        check("number of groups", groups as u64, side, "split the table")?;
        check("number of columns", columns as u64, side, "split the table")?;
        // Where a usize has 32 bits, the product may not fit one.
        check("number of rows", record_bytes as u64 * groups as u64, side, "split the table")?;
        scheme.get().check(&geometry)?;
        let params = Self { scheme, geometry };
        if params.registers_keys() {
            let remedy = "choose another scheme";
            check("size of registered keys", params.registered_bytes() as u64, MAX_KEYS_BYTES, remedy)?;
            check("size of a secret", params.secret_bytes() as u64, MAX_KEYS_BYTES, remedy)?;
            check("memory for registered keys", params.parsed_key_bytes() as u64, MAX_PARSED_BYTES, remedy)?;
        }
        let failure = params.failure_log2();
        if failure < FAILURE_LIMIT_LOG2 {
            return Err(Error::Failure { failure, limit: FAILURE_LIMIT_LOG2 });
        }
        Ok(params)
    }

    /// -log2 of a bound on the probability that an honest lookup decodes wrongly; infinite where it never does.
    #[must_use]
    pub fn failure_log2(&self) -> f64 {
        self.scheme.get().failure_log2(&self.geometry)
    }

    /// What the scheme's security rests on; none where it has none.
    #[must_use]
    pub fn security(&self) -> Option<Security> {
        self.scheme.about().security
    }

    /// What stands for these parameters on disks and wires.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("blindcore lookup parameters v1");
        let Geometry { record_bytes, groups, columns } = self.geometry;
        hasher.update(self.scheme.name().as_bytes());
        for number in [record_bytes, groups, columns] {
            hasher.update(&(number as u64).to_le_bytes());
        }
        for number in self.scheme.about().constants {
            hasher.update(&number.to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// What a client keeps between lookups.
    #[must_use]
    pub fn keeps(&self) -> Keeps {
        self.scheme.get().keeps(&self.geometry)
    }

    /// Bytes of the hint that a client fetches once an epoch; 0 where the scheme has none.
    #[must_use]
    pub fn hint_bytes(&self) -> u64 {
        self.keeps().hint_bytes()
    }

    /// Bytes of a query.
    #[must_use]
    pub fn query_bytes(&self) -> usize {
        self.scheme.get().query_bytes(&self.geometry)
    }

    /// Bytes of an answer.
    #[must_use]
    pub fn answer_bytes(&self) -> usize {
        self.scheme.get().answer_bytes(&self.geometry)
    }

    /// Whether hint and answer grow in proportion to the slot, so that a client pays in full for whatever is put beside a
    /// record.
    #[must_use]
    pub fn longer_slot_costs(&self) -> bool {
        self.scheme.get().longer_slot_costs()
    }

    /// How picked slots add up.
    #[must_use]
    pub fn lanes(&self) -> Lanes {
        self.scheme.lanes()
    }

    /// The databases that the server works on; the first is that of the records.
    #[must_use]
    pub fn operands(&self) -> Vec<Operand> {
        self.scheme.get().operands(&self.geometry)
    }

    /// The databases that are kept on the disk, the records first.
    pub fn stored_operands(&self) -> impl Iterator<Item = Operand> {
        self.operands().into_iter().filter(Operand::is_stored)
    }

    /// The records.
    #[must_use]
    pub fn records(&self) -> Operand {
        self.operands().swap_remove(0)
    }

    /// Bytes of the records, laid out, their padding too.
    #[must_use]
    pub fn database_bytes(&self) -> usize {
        self.records().bytes()
    }

    /// A zeroed database, to be filled by [`crate::pack_group`].
    #[must_use]
    pub fn database_buffer(&self) -> Vec<u8> {
        vec![0; self.database_bytes()]
    }

    /// Passes over operands that preprocessing takes.
    #[must_use]
    pub fn preprocessing(&self) -> Vec<Run> {
        self.scheme.get().preprocessing(&self.geometry)
    }

    /// The records' shape for preprocessing whose passes are few, and take about `memory` bytes each.
    #[must_use]
    pub fn preprocessing_shape(&self, memory: u64) -> Shape {
        self.scheme.get().preprocessing_shape(self, memory)
    }

    /// Passes over operands that answer this many gathered queries, 1 to [`MAX_GATHER`].
    #[must_use]
    pub fn answering(&self, queries: usize) -> Vec<Run> {
        self.scheme.get().answering(&self.geometry, queries.clamp(1, MAX_GATHER))
    }

    /// What a client computes for a lookup.
    #[must_use]
    pub fn client_work(&self) -> ClientWork {
        self.scheme.get().client_work(&self.geometry)
    }

    /// Work on polynomials beside that, none for a scheme without a ring.
    #[must_use]
    pub fn ring_work(&self) -> RingWork {
        self.scheme.get().ring_work(&self.geometry)
    }

    /// Rows of the records' operand that a group takes.
    #[must_use]
    pub fn group_rows(&self) -> usize {
        self.scheme.get().group_rows(&self.geometry)
    }

    /// Lays rows `rows` of a group, of [`Params::group_rows`], out in stripes of the records' operand, from row `at` of the
    /// first of them on. `slots` are the group's, one for each column, one after another. What is not written stays as it
    /// was.
    ///
    /// # Panics
    /// `rows` reaches over the group's, or over the stripes, or the slots over a stripe.
    pub fn pack(&self, slots: &[u8], rows: Range<usize>, stripes: &mut [u8], at: usize) {
        self.scheme.get().pack(self, slots, rows, stripes, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::find;

    fn simple() -> SchemeRef {
        find("simple").unwrap()
    }

    fn double() -> SchemeRef {
        find("double").unwrap()
    }

    fn geometry(record_bytes: usize, groups: usize, columns: usize) -> Geometry {
        Geometry { record_bytes, groups, columns }
    }

    #[test]
    fn sizes_stay_in_the_address_space() {
        assert_eq!(largest_side(i64::MAX as u64), MAX_SIDE);
        // A browser's: the largest query, answer and stripe fit.
        let side = largest_side(i32::MAX as u64);
        assert!(side >= 1 << 25);
        for scheme in [simple(), double()] {
            let longest = geometry(1, side as usize, side as usize);
            for bytes in [scheme.get().query_bytes(&longest), scheme.get().answer_bytes(&longest)] {
                assert!(bytes <= i32::MAX as usize, "{bytes}");
            }
            let widest = geometry(MAX_SLOT_BYTES, side as usize / MAX_SLOT_BYTES, 1);
            assert!(scheme.get().answer_bytes(&widest) <= i32::MAX as usize);
            assert!(scheme.get().operands(&longest)[0].stripe_bytes() <= i32::MAX as usize);
        }
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
            assert!(Params::new(simple(), bad).is_err(), "{bad:?}");
            assert!(Params::new(double(), bad).is_err(), "{bad:?}");
        }
        assert!(Params::new(double(), geometry(1, 1 << 20, 1)).is_err(), "too many groups to decode");
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
            let params = Params::new(simple(), geometry(1, side as usize, side as usize)).unwrap();
            assert!(params.failure_log2() >= 40.0);
        }
        assert!(Params::new(simple(), geometry(MAX_SLOT_BYTES, 1, 400_000)).is_ok());
    }

    #[test]
    fn digests_differ_with_every_number() {
        let base = Params::new(simple(), geometry(2, 3, 5)).unwrap();
        let others = [
            Params::new(double(), geometry(2, 3, 5)).unwrap(),
            Params::new(simple(), geometry(3, 2, 5)).unwrap(),
            Params::new(simple(), geometry(2, 3, 6)).unwrap(),
        ];
        assert!(others.iter().all(|p| p.digest() != base.digest()));
    }

    /// What databases, hints and messages that exist say: name, geometry, and dimension, deviation and plaintext modulus.
    #[test]
    fn digests_stay_what_they_were() {
        for scheme in [simple(), double()] {
            let mut hasher = blake3::Hasher::new_derive_key("blindcore lookup parameters v1");
            hasher.update(scheme.name().as_bytes());
            for number in [2u64, 3, 5, 1024, 11, 256] {
                hasher.update(&number.to_le_bytes());
            }
            let params = Params::new(scheme, geometry(2, 3, 5)).unwrap();
            assert_eq!(params.digest(), *hasher.finalize().as_bytes());
        }
    }
}
