//! Inverses in batches, by Montgomery's trick in a tree: products of pairs up to one number, which is inverted,
//! and back down. Every level is one batch of independent multiplications, so lanes and threads stay busy; three
//! multiplications a number.

use blindcore_accel::Error;
use blindcore_accel::bigmod::{BigModulus, Numbers};
use crypto_bigint::{BoxedUint, NonZero, Odd};

use super::{CpuBigmod, CpuRows};

impl CpuBigmod {
    /// The inverses of all, and how many multiplications they took.
    pub(super) fn invert_all(&self, x: &CpuRows) -> Result<(CpuRows, usize), Error> {
        if x.is_empty() {
            return Ok((x.clone(), 0));
        }
        let mut count = 0;
        let mut levels = vec![x.clone()];
        while levels.last().is_some_and(|level| level.len() > 1) {
            let below = levels.last().expect("there is one");
            let pairs = below.len() / 2;
            let mut level = self.products(
                &below.select((0..pairs).map(|i| 2 * i)),
                &below.select((0..pairs).map(|i| 2 * i + 1)),
            );
            count += pairs;
            if below.len() % 2 == 1 {
                level.append(&below.select([below.len() - 1]))?;
            }
            levels.push(level);
        }
        let Some(mut inverse) = self.invert_one(levels.last().expect("there is one"))? else {
            return Err(Error::NotInvertible { position: self.not_invertible(&levels)?, count: x.len() });
        };
        while let Some(_done) = levels.pop() {
            let Some(below) = levels.last() else { break };
            // inverse(left) = inverse(left * right) * right, and the other way round.
            let pairs = below.len() / 2;
            let mut next = self.products(
                &inverse.select((0..2 * pairs).map(|i| i / 2)),
                &below.select((0..2 * pairs).map(|i| i ^ 1)),
            );
            count += 2 * pairs;
            if below.len() % 2 == 1 {
                next.append(&inverse.select([inverse.len() - 1]))?;
            }
            inverse = next;
        }
        Ok((inverse, count))
    }

    /// Goes down the tree to the first number without an inverse.
    fn not_invertible(&self, levels: &[CpuRows]) -> Result<usize, Error> {
        let mut position = 0;
        for level in levels.iter().rev().skip(1) {
            position *= 2;
            if position + 1 < level.len() && self.invert_one(&level.select([position]))?.is_some() {
                position += 1;
            }
        }
        Ok(position)
    }

    /// The inverse of a single residue, if it has one.
    ///
    /// Modulo n^2 it is that modulo n, refined once (Hensel): with x y = 1 + k n, the inverse is y (1 - k n),
    /// and 1 - k n is 2 - x y.
    fn invert_one(&self, x: &CpuRows) -> Result<Option<CpuRows>, Error> {
        let modulus = &*self.modulus;
        let words = modulus.words();
        let uint = |words: &[u64]| BoxedUint::from_words(words.iter().copied());
        let place = |value: &BoxedUint| self.enter(&Numbers::from_words(words, [value.as_words()]));

        let number = uint(self.leave(x).get(0));
        let root = Odd::new(uint(modulus.root())).expect("a modulus is odd");
        let reduced = if modulus.is_square() {
            number.rem_vartime(&NonZero::new(uint(modulus.root())).expect("a modulus is above one"))
        } else {
            number
        };
        let Some(inverse) = Option::<BoxedUint>::from(reduced.invert_odd_mod_vartime(&root)) else {
            return Ok(None);
        };
        let inverse = place(&inverse)?;
        if !modulus.is_square() {
            return Ok(Some(inverse));
        }
        let product = self.products(x, &inverse);
        let correction = two_minus(modulus, &uint(self.leave(&product).get(0)));
        Ok(Some(self.products(&inverse, &place(&correction)?)))
    }
}

/// `2 - x` modulo `modulus`.
fn two_minus(modulus: &BigModulus, x: &BoxedUint) -> BoxedUint {
    let value = NonZero::new(BoxedUint::from_words(modulus.value().iter().copied()));
    let two = BoxedUint::from_words(std::iter::once(2).chain(std::iter::repeat_n(0, modulus.words() - 1)));
    two.sub_mod(x, &value.expect("a modulus is above one"))
}
