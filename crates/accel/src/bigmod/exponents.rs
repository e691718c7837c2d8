//! What residues are raised to.

use super::numbers::Numbers;
use crate::Error;

/// The longest exponent, in bits.
pub const MAX_EXPONENT_BITS: u32 = 16384;

/// What residues are raised to. Secret: only its length and number show.
pub enum Exponents<'a> {
    /// One exponent for every residue, and how many of its bits count.
    Shared(&'a [u64], u32),
    /// An exponent for each residue, and how many of their bits count.
    Each(&'a Numbers, u32),
}

/// That `exponents` are as many as `count` and no longer than they say.
///
/// # Errors
/// They are not.
pub fn check_exponents(exponents: &Exponents<'_>, count: usize) -> Result<(), Error> {
    let (numbers, limit): (Vec<&[u64]>, u32) = match exponents {
        Exponents::Shared(e, limit) => (vec![e], *limit),
        Exponents::Each(e, limit) => {
            if e.len() != count {
                return Err(Error::Length {
                    what: "exponents",
                    got: e.len(),
                    want: count.to_string(),
                    unit: "numbers",
                });
            }
            (e.iter().collect(), *limit)
        }
    };
    if limit == 0 || limit > MAX_EXPONENT_BITS {
        let why = format!("exponents of {limit} bits; 1 to {MAX_EXPONENT_BITS} are carried");
        return Err(Error::Exponent { why });
    }
    let mut over = 0;
    for number in numbers {
        // Without a branch on the exponent: what is above `limit` is gathered, and only then looked at.
        for (i, word) in number.iter().enumerate() {
            let low = limit.saturating_sub(64 * i as u32).min(64);
            over |= if low == 64 { 0 } else { word >> low };
        }
    }
    if over != 0 {
        return Err(Error::Exponent { why: format!("one has more than the {limit} bits said") });
    }
    Ok(())
}
