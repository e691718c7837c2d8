//! Parameters from rows and record size.

use crate::Error;
use crate::keyword::{FINGERPRINT_BYTES, MIN_COLUMNS, columns_for};
use crate::params::{Geometry, MAX_SLOT_BYTES, Params, Scheme};

/// Which scheme a table is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SchemeChoice {
    /// The one that moves fewer bytes ([`bytes_moved`]) where a hint serves [`QUERIES_PER_HINT`] lookups.
    #[default]
    Auto,
    /// This one.
    Only(Scheme),
}

/// A client fetches a hint once and asks so many queries of it, as far as choosing goes.
pub const QUERIES_PER_HINT: u64 = 100;

/// Bytes that a lookup moves: a query, an answer and its share of a hint that serves `queries` lookups, at least
/// one.
#[must_use]
pub fn bytes_moved(params: &Params, queries: u64) -> u64 {
    4 * params.hint_words() as u64 / queries.max(1) + (params.query_bytes() + params.answer_bytes()) as u64
}

/// The parameters of a table of `records` records of up to `record_bytes` bytes, found by key or by index: 1 to
/// [`MAX_SLOT_BYTES`], which a record by key shares with its fingerprint.
///
/// Side lengths balance: a query has four bytes a column, a hint four KiB a row, and the client's work goes
/// with both.
///
/// # Errors
/// No record, a record too long, or more than a matrix holds.
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
    let of = |scheme| Params::new(scheme, geometry(records, slot, keyed, scheme));
    match choice {
        SchemeChoice::Only(scheme) => of(scheme),
        SchemeChoice::Auto => {
            let simple = of(Scheme::Simple);
            let double = of(Scheme::Double);
            let bytes = |p: &Params| bytes_moved(p, QUERIES_PER_HINT);
            match (simple, double) {
                (Ok(simple), Ok(double)) => Ok(if bytes(&double) < bytes(&simple) { double } else { simple }),
                (Err(_), Ok(double)) => Ok(double),
                (simple, _) => simple,
            }
        }
    }
}

fn geometry(records: u64, slot: usize, keyed: bool, scheme: Scheme) -> Geometry {
    let side = match scheme {
        Scheme::Simple => ((records as f64) * slot as f64).sqrt(),
        // The second lookup reads about 4096 * groups * (slot + 1) bytes: keep it near a quarter of the first.
        Scheme::Double => {
            ((records as f64) * slot as f64).sqrt().max(16_384.0 * (slot + 1) as f64 / slot as f64)
        }
    };
    // Groups first: columns then hold the fullest group.
    let groups = ((side / slot as f64).round() as u64).max(1);
    let groups = match scheme {
        Scheme::Simple => groups,
        Scheme::Double => records.div_ceil(side as u64).max(1),
    };
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

/// Keys that the fullest of `groups` random groups holds, but for one table in a thousand: the mean and the
/// deviations that a Poisson maximum needs. A builder counts, and takes more columns where it must.
fn fullest(records: u64, groups: usize) -> usize {
    if groups == 1 {
        return records as usize;
    }
    let mean = records as f64 / groups as f64;
    let spread = (2.0 * mean * (1000.0 * groups as f64).ln()).sqrt();
    ((mean + spread).ceil() as u64).min(records) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_RECORD_BYTES;

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
    fn a_gibibyte_is_square_and_a_bit_table_is_double() {
        let params = plan(1 << 22, 256, false, SchemeChoice::Auto).unwrap();
        assert_eq!(params.scheme, Scheme::Simple);
        assert_eq!((params.geometry.rows(), params.geometry.columns), (32_768, 32_768));
        let params = plan(1 << 34, 1, false, SchemeChoice::Auto).unwrap();
        assert_eq!(params.scheme, Scheme::Double);
    }

    #[test]
    fn refuses_nothing_and_too_much() {
        assert!(plan(0, 1, true, SchemeChoice::Auto).is_err());
        assert!(plan(1, 0, true, SchemeChoice::Auto).is_err());
        assert!(plan(1, MAX_SLOT_BYTES - 4, true, SchemeChoice::Auto).is_err());
        assert!(plan(1 << 40, MAX_RECORD_BYTES, true, SchemeChoice::Auto).is_err());
    }
}
