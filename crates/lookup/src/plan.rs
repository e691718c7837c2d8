//! Parameters from rows and record size.

use crate::Error;
use crate::keyword::{FINGERPRINT_BYTES, MIN_COLUMNS, columns_for, fullest};
use crate::params::{Geometry, MAX_BLOCKS, MAX_RECORD_BYTES, MAX_SLOT_BYTES, Params};
use crate::schemes::scheme::SchemeRef;
use crate::schemes::{self};

/// Which scheme a table is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SchemeChoice {
    /// The one of the usual ones ([`schemes::usual`]) that moves fewest bytes ([`bytes_moved`]) where a hint serves
    /// [`QUERIES_PER_HINT`] lookups. Schemes whose clients register keys are left out: they are for a service that knows its clients
    /// ([`SchemeChoice::known`]), and their server keeps several times as much for each byte of a record.
    #[default]
    Auto,
    /// The same for a table whose records take so many slots each, which are looked up together and share a hint.
    AutoFor {
        /// Slots of the longest record.
        blocks: u64,
        /// Whether schemes whose clients register keys are among those that are chosen from.
        known: bool,
    },
    /// This one.
    Only(SchemeRef),
    /// This one, for a bucket of batches ([`crate::batch`]): each bucket is queried once for a whole batch of `keys`, so what the
    /// server keeps of it weighs that many times more.
    Bucket {
        /// Which.
        scheme: SchemeRef,
        /// Keys of a batch.
        keys: usize,
    },
}

impl SchemeChoice {
    /// This choice for records that take so many slots each.
    #[must_use]
    pub fn with_blocks(self, blocks: u64) -> Self {
        match self {
            Self::Auto => Self::AutoFor { blocks, known: false },
            Self::AutoFor { known, .. } => Self::AutoFor { blocks, known },
            Self::Only(_) | Self::Bucket { .. } => self,
        }
    }

    /// For a service that knows its clients: they may register keys, which serve as many lookups as a hint does.
    ///
    /// ```
    /// use blindcore_lookup::{SchemeChoice, plan};
    ///
    /// let [any, known] = [SchemeChoice::Auto, SchemeChoice::known()].map(|choice| plan(1 << 20, 256, true, choice));
    /// assert!(!any?.registers_keys() && known?.registers_keys());
    /// # Ok::<(), blindcore_lookup::Error>(())
    /// ```
    #[must_use]
    pub fn known() -> Self {
        Self::AutoFor { blocks: 1, known: true }
    }

    /// A scheme with 128 bits against quantum computers too, if one is offered.
    ///
    /// ```
    /// use blindcore_lookup::{SchemeChoice, plan};
    ///
    /// let params = plan(1 << 20, 256, true, SchemeChoice::quantum().unwrap())?;
    /// assert!(params.security().unwrap().quantum_bits >= Some(128.0));
    /// # Ok::<(), blindcore_lookup::Error>(())
    /// ```
    #[must_use]
    pub fn quantum() -> Option<Self> {
        schemes::offered().into_iter().find(|scheme| withstands_quantum(*scheme)).map(Self::Only)
    }

    /// For a part beside records of this scheme: what suits it best, unless records are of a scheme that is not offered, or has been
    /// chosen for its strength against quantum computers, which then is that of all parts.
    #[must_use]
    pub fn beside(records: SchemeRef) -> Self {
        let any = schemes::offered().contains(&records) && !withstands_quantum(records);
        if any { Self::Auto } else { Self::Only(records) }
    }
}

/// Whether a scheme has 128 bits against quantum computers.
fn withstands_quantum(scheme: SchemeRef) -> bool {
    scheme.about().security.is_some_and(|security| security.quantum_bits >= Some(128.0))
}

/// The shortest blocks that records are cut into.
const MIN_BLOCK_BYTES: usize = 2 << 10;

/// A client fetches a hint once and asks this many queries of it, as far as choosing goes.
pub const QUERIES_PER_HINT: u64 = 100;

/// The longest hint that a table is planned with, however large it is: what clients take unless they are told otherwise.
pub const MAX_HINT_BYTES: u64 = 4 << 30;
/// The longest hint of a table that is shorter.
const MAX_HINT_OF_SMALL: u64 = 1 << 30;

/// Refuses a hint that no client would fetch: one longer than 1 GiB and than the table's slots together, which could as well be
/// sent, or than [`MAX_HINT_BYTES`]. SimplePIR reaches that at a tebibyte.
fn check_hint(params: Params, slots: u64) -> Result<Params, Error> {
    let slot = params.geometry.record_bytes as u64;
    let limit = slots.saturating_mul(slot).clamp(MAX_HINT_OF_SMALL, MAX_HINT_BYTES);
    let bytes = params.hint_bytes();
    if bytes > limit {
        Err(Error::Hint { scheme: params.scheme.name(), bytes, slot, limit })
    } else {
        Ok(params)
    }
}

/// Bytes that a lookup moves: a query, an answer and its share of a hint and of registered keys that serve `queries`
/// lookups, at least one.
#[must_use]
pub fn bytes_moved(params: &Params, queries: u64) -> u64 {
    let once = params.hint_bytes() + params.registered_bytes() as u64;
    once / queries.max(1) + (params.query_bytes() + params.answer_bytes()) as u64
}

/// The parameters of a table of `records` records of up to `record_bytes` bytes, found by key or by index: 1 to
/// [`MAX_SLOT_BYTES`], which a record by key shares with its fingerprint.
///
/// The scheme says how many groups balance what a client moves and computes.
///
/// # Errors
/// No record, a record too long, more than a matrix holds, or a hint that no client would fetch: one longer than 1 GiB and
/// than the slots together, or than [`MAX_HINT_BYTES`].
pub fn plan(records: u64, record_bytes: usize, keyed: bool, choice: SchemeChoice) -> Result<Params, Error> {
    if records == 0 || records > 1 << 40 {
        let remedy = "give the table rows, and split it past 2^40";
        return Err(Error::Range { what: "number of records", got: records, min: 1, max: 1 << 40, remedy });
    }
    let beside = if keyed { FINGERPRINT_BYTES } else { 0 };
    if record_bytes == 0 || record_bytes > MAX_SLOT_BYTES - beside {
        let (got, max) = (record_bytes as u64, (MAX_SLOT_BYTES - beside) as u64);
        let remedy = "choose fewer or shorter value columns";
        return Err(Error::Range { what: "longest record in bytes", got, min: 1, max, remedy });
    }
    let slot = record_bytes + beside;
    let shaped = |scheme, keys| {
        check_hint(Params::new(scheme, geometry(records, slot, keyed, scheme, keys))?, records)
    };
    let of = |scheme| shaped(scheme, 1);
    match choice {
        SchemeChoice::Only(scheme) => of(scheme),
        SchemeChoice::Bucket { scheme, keys } => shaped(scheme, keys),
        SchemeChoice::Auto => plan(records, record_bytes, keyed, choice.with_blocks(1)),
        SchemeChoice::AutoFor { blocks, known } => {
            let queries = QUERIES_PER_HINT.saturating_mul(blocks);
            let mut best: Option<Result<Params, Error>> = None;
            for scheme in schemes::usual().into_iter().filter(|scheme| known || !scheme.registers_keys()) {
                let this = of(scheme);
                let better = match (&best, &this) {
                    (None, _) | (Some(Err(_)), Ok(_)) => true,
                    (Some(Ok(best)), Ok(this)) => bytes_moved(this, queries) < bytes_moved(best, queries),
                    (_, Err(_)) => false,
                };
                if better {
                    best = Some(this);
                }
            }
            best.expect("a scheme is offered")
        }
    }
}

/// Bytes of the blocks that the records of a table by key are cut into, one a slot: all of the longest, or less where
/// that moves fewer bytes in all. `total` is what all records have together, at most 2^50.
///
/// A block as long as the side of the matrix is best: a longer one makes hint and answer longer, a shorter one
/// takes more queries a record.
#[must_use]
pub fn plan_blocks(records: u64, total: u64, longest: usize) -> usize {
    let moved = |block: usize| {
        let slots = (total / block as u64 + records).min(1 << 40);
        let blocks = longest.div_ceil(block);
        let params = plan(slots, block, true, SchemeChoice::Auto.with_blocks(blocks as u64)).ok()?;
        let lookup = blocks * (params.query_bytes() + params.answer_bytes());
        (blocks <= MAX_BLOCKS).then_some(params.hint_bytes() / QUERIES_PER_HINT + lookup as u64)
    };
    let whole = longest.clamp(1, MAX_RECORD_BYTES);
    let shorter = std::iter::successors(Some(MAX_RECORD_BYTES), |b| Some(b / 2));
    let shorter = shorter.take_while(|b| *b >= MIN_BLOCK_BYTES).filter(|b| *b < whole);
    let candidates = std::iter::once(whole).chain(shorter);
    candidates.filter_map(|block| Some((moved(block)?, block))).min().map_or(whole, |(_, block)| block)
}

fn geometry(records: u64, slot: usize, keyed: bool, scheme: SchemeRef, lookups: usize) -> Geometry {
    // Groups first: columns then hold the fullest group.
    let scheme = scheme.get();
    let groups =
        if keyed { scheme.groups_by_key(records, slot, lookups) } else { scheme.groups(records, slot) };
    let groups = groups.max(1);
    let groups = groups.min(records) as usize;
    if keyed {
        Geometry {
            record_bytes: slot,
            groups,
            columns: columns_for(fullest(records, groups)).max(MIN_COLUMNS),
        }
    } else {
        let columns = records.div_ceil(groups as u64) as usize;
        Geometry { record_bytes: slot, groups: records.div_ceil(columns as u64) as usize, columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_a_plan() {
        for keyed in [false, true] {
            for records in [1, 2, 3, 10, 1000, 50_000, 1_000_000, 100_000_000] {
                for record_bytes in [1, 2, 13, 256, 4096, MAX_RECORD_BYTES] {
                    if records * record_bytes as u64 > 1 << 37 {
                        continue;
                    }
                    let params = plan(records, record_bytes, keyed, SchemeChoice::Auto)
                        .unwrap_or_else(|e| panic!("{records} x {record_bytes}: {e}"));
                    assert!(params.geometry.slots() >= records, "{params:?}");
                    assert!(params.failure_log2() >= 40.0);
                }
            }
        }
    }

    #[test]
    fn a_scheme_that_a_table_fits_is_found_in_it() {
        // Near the limit of packing tables, which more columns raise.
        let shapes = [31_000, 65_000].map(|records| (records, 700)).into_iter().chain([
            (33_000, 1000),
            (65_000, 1500),
            (30_000, 2000),
            (31_000, 2000),
            (27_000, 3000),
        ]);
        for (records, record_bytes) in
            shapes.chain((1000..60_000).step_by(499).map(|records| (records, 2000)))
        {
            for keyed in [false, true] {
                if let Err(error) = plan(records, record_bytes, keyed, SchemeChoice::Auto) {
                    panic!("{records} records of {record_bytes} bytes: {error}");
                }
            }
        }
    }

    #[test]
    fn schemes_shape_a_table_as_suits_them() {
        let auto = |records, bytes| plan(records, bytes, false, SchemeChoice::Auto).unwrap().scheme.name();
        // Without a hint unless it would be a few kilobytes.
        assert_eq!((auto(1 << 22, 256), auto(1 << 24, 64), auto(20, 10)), ("hintless", "hintless", "simple"));
        let simple = SchemeChoice::Only(schemes::find("simple").unwrap());
        let params = plan(1 << 22, 256, false, simple).unwrap();
        assert_eq!((params.geometry.rows(), params.geometry.columns), (32_768, 32_768));
        let double = SchemeChoice::Only(schemes::find("double").unwrap());
        let params = plan(1 << 34, 1, false, double).unwrap();
        assert_eq!(params.geometry.record_bytes, 1);
    }

    #[test]
    fn blocks_are_about_as_long_as_the_matrix_is_high() {
        // Short records are not cut, whatever the table.
        for records in [1, 1000, 1_000_000] {
            assert_eq!(plan_blocks(records, 256 * records, 256), 256);
        }
        // A thousand records of 3 MB fill a matrix of some 55,000 rows.
        assert_eq!(plan_blocks(1000, 3_000_000_000, 3_000_000), 64 << 10);
        // A few long ones make none of a GiB of hint.
        let few = plan_blocks(10, 1_000_000, 300_000);
        assert!((2 << 10..=4 << 10).contains(&few), "{few}");
        assert_eq!(plan_blocks(1, 0, 0), 1);
        // Whatever is cut fits.
        assert!((64usize << 20).div_ceil(plan_blocks(1, 64 << 20, 64 << 20)) <= MAX_BLOCKS);
    }

    #[test]
    fn a_hint_that_nobody_would_fetch_is_refused() {
        let of = |name: &str, records, bytes| {
            plan(records, bytes, false, SchemeChoice::Only(schemes::find(name).unwrap()))
        };
        // 16 MiB a byte of a slot, however few there are.
        for (records, bytes, limit) in [(10, 65, "1.00 GiB"), (1, 2000, "1.00 GiB")] {
            let error = of("double", records, bytes).unwrap_err().to_string();
            for words in ["scheme double", &blindcore_units::bytes((bytes as u64) << 24), limit, "--scheme"] {
                assert!(error.contains(words), "{words}: {error}");
            }
        }
        assert!(of("double", 10, 65).is_err() && of("double", 10, 64).is_ok());
        // A table of 6 GiB may have one of 3.
        assert!(of("double", 1 << 25, 200).is_ok() && of("double", 1 << 22, 200).is_err());
        assert!(of("double", 1 << 30, 257).is_err());
        assert!(of("simple", 1 << 32, 64).is_ok() && of("simple", 1, MAX_SLOT_BYTES).is_ok());
        // What is chosen by itself is never refused for its hint.
        assert_ne!(plan(10, 65, false, SchemeChoice::Auto).unwrap().scheme.name(), "double");
    }

    #[test]
    fn refuses_nothing_and_too_much() {
        assert!(plan(0, 1, true, SchemeChoice::Auto).is_err());
        assert!(plan(1, 0, true, SchemeChoice::Auto).is_err());
        assert!(plan(1, MAX_SLOT_BYTES - 4, true, SchemeChoice::Auto).is_err());
        assert!(plan(1 << 40, MAX_RECORD_BYTES, true, SchemeChoice::Auto).is_err());
    }
}
