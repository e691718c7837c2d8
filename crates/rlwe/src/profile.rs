//! Where the time of ring arithmetic goes, for those who ask: [`profile`] notes what a closure does on its own thread.
//!
//! Elsewhere nothing is noted and no clock is read. What that costs an operation, which takes microseconds, is a look at a variable of its
//! thread.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// How often something was done, and what that took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Times.
    pub count: u64,
    /// In all.
    pub time: Duration,
}

/// Operations on polynomials of a [`crate::Ring`], each modulo all of its primes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Products by values, most of them with what adds them to a sum.
    pub products: Tally,
    /// Sums and differences.
    pub sums: Tally,
    /// Transforms, to values or back.
    pub transforms: Tally,
}

/// What was done while a [`profile`] was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// External products ([`crate::Rgsw`]), all that they do.
    pub external: Tally,
    /// Operations within external products.
    pub within: Operations,
    /// Operations elsewhere.
    pub elsewhere: Operations,
}

/// What is noted.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    External,
    Product,
    Sum,
    Transform,
}

#[derive(Clone, Copy, Default)]
struct Notes {
    profile: Profile,
    within: bool,
}

impl Notes {
    fn tally(&mut self, kind: Kind) -> &mut Tally {
        let Profile { external, within, elsewhere } = &mut self.profile;
        let operations = if self.within { within } else { elsewhere };
        match kind {
            Kind::External => external,
            Kind::Product => &mut operations.products,
            Kind::Sum => &mut operations.sums,
            Kind::Transform => &mut operations.transforms,
        }
    }
}

thread_local! {
    static NOTES: RefCell<Option<Notes>> = const { RefCell::new(None) };
}

/// What `work` gives, and what it did on this thread. Threads that it starts are not seen.
///
/// ```
/// use blindcore_rlwe::{Ring, profile};
///
/// let ring = Ring::of_bits(2048, &[50])?;
/// let (x, profile) = profile(|| ring.forward(ring.small(&[1; 2048])));
/// assert_eq!((profile.elsewhere.transforms.count, profile.external.count), (1, 0));
/// # drop(x);
/// # Ok::<(), blindcore_rlwe::RingError>(())
/// ```
pub fn profile<T>(work: impl FnOnce() -> T) -> (T, Profile) {
    let before = NOTES.replace(Some(Notes::default()));
    let done = work();
    let notes = NOTES.replace(before);
    (done, notes.map_or_else(Profile::default, |notes| notes.profile))
}

/// Does `work`, which is `count` operations of a kind. Of kinds only external products may have others within.
pub(crate) fn noted<T>(kind: Kind, count: usize, work: impl FnOnce() -> T) -> T {
    let external = matches!(kind, Kind::External);
    let asked = NOTES.with_borrow_mut(|notes| notes.as_mut().map(|notes| notes.within |= external).is_some());
    if !asked {
        return work();
    }
    let begun = Instant::now();
    let done = work();
    let time = begun.elapsed();
    NOTES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            notes.within &= !external;
            let tally = notes.tally(kind);
            tally.count += count as u64;
            tally.time += time;
        }
    });
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};
    use crate::{Gadget, Rgsw};

    #[test]
    fn an_external_product_is_counted_by_its_operations() {
        for parameters in testing::all() {
            let mut bench = Bench::new(&parameters, 91);
            let ring = parameters.ring().clone();
            let gadget = Gadget::exact(&ring, 10).unwrap();
            let bit = Rgsw::bit(&bench.secret, &ring, true, gadget, &mut bench.rng);
            let (low, high) = testing::edges(&parameters);
            let (x, y) = (bench.encrypt(&low), bench.encrypt(&high));
            let (noted, profile) = profile(|| bit.choose(x.clone(), y.clone()));
            let Profile { external, within, elsewhere } = profile;
            let digits = gadget.digits() as u64;
            assert_eq!(external.count, 1);
            // Both halves are taken apart, and each digit meets a mask and a body.
            let counts = [within.products, within.sums, within.transforms].map(|tally| tally.count);
            assert_eq!(counts, [4 * digits, 2, 2 + 2 * digits]);
            let parts = within.products.time + within.sums.time + within.transforms.time;
            assert!(parts <= external.time, "{parts:?} of {:?}", external.time);
            assert_eq!(elsewhere, Operations::default());
            // It is the same as without, and nothing is noted then.
            let alone = bit.choose(x, y);
            assert!(NOTES.with_borrow(Option::is_none));
            assert_eq!(noted.pair().body.words(), alone.pair().body.words());
        }
    }

    #[test]
    fn a_profile_within_another_is_its_own() {
        let ring = crate::Ring::of_bits(256, &[48]).unwrap();
        let (inner, outer) = profile(|| {
            let x = ring.forward(ring.zero());
            let (_, inner) = profile(|| ring.inverse(x.clone()));
            ring.add(&mut x.clone(), &x);
            inner
        });
        assert_eq!((inner.elsewhere.transforms.count, inner.elsewhere.sums.count), (1, 0));
        assert_eq!((outer.elsewhere.transforms.count, outer.elsewhere.sums.count), (1, 1));
    }
}
