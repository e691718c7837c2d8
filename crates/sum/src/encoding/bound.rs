//! Bounds on magnitudes: never below, hardly above.

use std::fmt;

use crypto_bigint::{BoxedUint, Limb, NonZero};

use super::float::{BASE_LOG2, parts};
use crate::keys::PublicKey;

/// An upper bound on a magnitude: `top * 2^shift`, exact below 2^64, else rounded up by less than 2^-63 of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bound {
    // Zero unless `top` has its highest bit: so the order of fields is the order of values.
    shift: u32,
    top: u64,
}

impl Bound {
    /// Nothing but zeros.
    pub const ZERO: Self = Self { shift: 0, top: 0 };

    /// Exactly this.
    #[must_use]
    pub fn new(magnitude: u64) -> Self {
        Self { shift: 0, top: magnitude }
    }

    /// `top * 2^shift`, whatever `top`.
    #[must_use]
    pub fn scaled(top: u128, shift: u32) -> Self {
        let over = (128 - top.leading_zeros()).saturating_sub(64);
        let mut up = top >> over;
        if up << over != top {
            up += 1; // may reach 2^64
        }
        let shift = shift.saturating_add(over);
        let (up, shift) = if up >> 64 != 0 { (up >> 1, shift.saturating_add(1)) } else { (up, shift) };
        let room = up.leading_zeros() - 64; // up < 2^64
        if up == 0 {
            return Self::ZERO;
        }
        let left = room.min(shift);
        Self { shift: shift - left, top: (up as u64) << left }
    }

    /// The next below it.
    pub(crate) fn less_one(self) -> Self {
        if self.shift == 0 {
            Self::new(self.top.saturating_sub(1))
        } else {
            Self { top: self.top - 1, ..self }
        }
    }

    /// The magnitude of two's complement of `bits` bits: 2^(bits - 1).
    #[must_use]
    pub fn signed(bits: u32) -> Self {
        Self::scaled(1, bits.saturating_sub(1))
    }

    /// The part that [`Bound::scaled`] takes: `(top, shift)`.
    #[must_use]
    pub fn parts(self) -> (u64, u32) {
        (self.top, self.shift)
    }

    /// Its length in bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        (64 - self.top.leading_zeros()).saturating_add(self.shift)
    }

    /// Of a sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (high, low) = if self.shift >= other.shift { (self, other) } else { (other, self) };
        let down = high.shift - low.shift;
        let rest = if down >= 64 { u64::from(low.top != 0) } else { low.top.div_ceil(1 << down) };
        Self::scaled(u128::from(high.top) + u128::from(rest), high.shift)
    }

    /// Of a product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self::scaled(u128::from(self.top) * u128::from(other.top), self.shift.saturating_add(other.shift))
    }

    /// Of a product with `2^bits`.
    #[must_use]
    pub fn shifted(self, bits: u32) -> Self {
        Self::scaled(self.top.into(), self.shift.saturating_add(bits))
    }

    /// The largest bound that is not over `number`.
    #[must_use]
    pub fn below(number: &[u64]) -> Self {
        let Some(high) = number.iter().rposition(|w| *w != 0) else { return Self::ZERO };
        if high == 0 {
            return Self::new(number[0]);
        }
        let room = number[high].leading_zeros();
        let low = if room == 0 { 0 } else { number[high - 1] >> (64 - room) };
        Self { shift: 64 * high as u32 - room, top: number[high] << room | low }
    }

    /// Of the mantissa that the finite `value` has at an exponent, however it is rounded.
    #[must_use]
    pub fn of_value(value: f64, exponent: i32) -> Self {
        let (_, mantissa, shift) = parts(value);
        let shift = shift - BASE_LOG2 * exponent;
        if shift >= 0 {
            Self::scaled(mantissa.into(), shift as u32)
        } else {
            let (down, kept) = (-shift as u32, mantissa.checked_shr(-shift as u32).unwrap_or(0));
            let exact = kept.checked_shl(down) == Some(mantissa);
            Self::new(kept + u64::from(!exact))
        }
    }

    /// How many times it can be doubled and is still within `limit`; that of zeros is as that of ones.
    #[must_use]
    pub fn headroom(self, limit: Self) -> u32 {
        let least = self.max(Self::new(1));
        let bits = limit.bits().saturating_sub(least.bits());
        bits.saturating_sub(u32::from(least.shifted(bits) > limit))
    }

    /// What the plaintexts of every key of so many bits hold: a third of 2^(bits - 1), below which no n of that length is.
    #[must_use]
    pub fn of_key_bits(bits: u32) -> Self {
        let power = bits.saturating_sub(1);
        let shift = power.saturating_sub(65);
        Self::scaled((1u128 << (power - shift)) / 3, shift)
    }

    /// What the plaintexts of a key hold: n/3.
    #[must_use]
    pub fn of_key(key: &PublicKey) -> Self {
        let three = NonZero::new(Limb::from(3u64)).expect("three is not zero");
        let (third, _) = BoxedUint::from_words(key.n().iter().copied()).div_rem_limb(three);
        Self::below(third.as_words())
    }

    /// Whether the magnitude `number` is within it.
    #[must_use]
    pub(crate) fn holds(self, number: &[u64]) -> bool {
        // Below 2^64 both are exact; above, rounding down what is compared would admit what is over by less than
        // the bound's own rounding: so the words cut off are looked at too.
        let below = Self::below(number);
        if below != self {
            return below < self;
        }
        let cut = below.shift as usize;
        number.iter().enumerate().all(|(i, w)| {
            let kept = cut.saturating_sub(64 * i);
            if kept >= 64 { *w == 0 } else { w & ((1 << kept) - 1) == 0 }
        })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shift == 0 && self.top < 1 << 40 {
            write!(f, "{}", self.top)
        } else {
            write!(f, "2^{:.1}", (self.top as f64).log2() + f64::from(self.shift))
        }
    }
}
