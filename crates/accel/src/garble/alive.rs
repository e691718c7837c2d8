//! What is known of the wires that are alive while a circuit's gates go by.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What is known of a wire.
pub trait Held: Copy {
    /// What stands for a wire of which nothing is held.
    const NOTHING: Self;

    /// Whether this is [`Held::NOTHING`].
    fn is_nothing(&self) -> bool;
}

/// A number below 2^32 - 1, such as a slot.
impl Held for u32 {
    const NOTHING: Self = u32::MAX;

    #[inline]
    fn is_nothing(&self) -> bool {
        *self == Self::NOTHING
    }
}

/// What is held of wires, by their numbers, from their first mention to their last: memory is that of the wires which are alive at once.
///
/// Pages of neighbours, for most wires die soon and so whole pages do; those few that are left of a page lie in a map.
///
/// ```
/// use blindcore_accel::garble::Alive;
///
/// let mut slots = Alive::default();
/// slots.insert(70_000, 5_u32);
/// assert_eq!(slots.get(70_000), 5);
/// assert_eq!(slots.remove(70_000), 5);
/// ```
pub struct Alive<T> {
    pages: Vec<Option<Page<T>>>,
    few: HashMap<u32, T, BuildHasherDefault<Spread>>,
    /// Pages that were written since they were looked at last.
    fresh: Vec<u32>,
    /// Memory of pages that were given up, cleared.
    spare: Vec<Box<[T; PAGE]>>,
}

/// Spreads wires' numbers, which neighbours share but for their lowest bits; nobody chooses them to collide but for the circuit's own
/// author, whom that slows down.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, wire: u32) {
        let product = (self.0 ^ u64::from(wire)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

struct Page<T> {
    held: Box<[T; PAGE]>,
    count: usize,
}

const PAGE: usize = 1 << 12;
const FEW: usize = PAGE / 32;
/// What callers rely on.
const HELD: &str = "a wire that is asked for is alive";

impl<T> Default for Alive<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), few: HashMap::default(), fresh: Vec::new(), spare: Vec::new() }
    }
}

impl<T: Held> Alive<T> {
    /// What is held of a wire.
    ///
    /// # Panics
    /// Nothing is; the same goes for the methods below.
    #[inline]
    #[must_use]
    pub fn get(&self, wire: u32) -> T {
        let page = self.pages.get(wire as usize / PAGE).and_then(Option::as_ref);
        page.map(|page| page.held[wire as usize % PAGE])
            .filter(|held| !held.is_nothing())
            .unwrap_or_else(|| self.one_of_few(wire))
    }

    #[cold]
    #[inline(never)]
    fn one_of_few(&self, wire: u32) -> T {
        *self.few.get(&wire).expect(HELD)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, wire: u32) -> &mut T {
        let page = self.pages.get_mut(wire as usize / PAGE).and_then(Option::as_mut);
        page.map(|page| &mut page.held[wire as usize % PAGE])
            .filter(|held| !held.is_nothing())
            .unwrap_or_else(|| self.few.get_mut(&wire).expect(HELD))
    }

    /// Holds this of a wire, of which nothing was held.
    #[inline]
    pub fn insert(&mut self, wire: u32, held: T) {
        let at = wire as usize / PAGE;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| {
            self.fresh.push(at as u32);
            let room = self.spare.pop();
            Page { held: room.unwrap_or_else(|| Box::new([T::NOTHING; PAGE])), count: 0 }
        });
        page.held[wire as usize % PAGE] = held;
        page.count += 1;
    }

    /// Takes out what is held of a wire.
    #[inline]
    pub fn remove(&mut self, wire: u32) -> T {
        let at = wire as usize / PAGE;
        let last = self.pages.len() <= at + 1;
        let Some(page) = self.pages.get_mut(at).and_then(Option::as_mut) else {
            return self.few.remove(&wire).expect(HELD);
        };
        let held = std::mem::replace(&mut page.held[wire as usize % PAGE], T::NOTHING);
        if held.is_nothing() {
            return self.few.remove(&wire).expect(HELD);
        }
        page.count -= 1;
        // The last page may be one that still fills.
        if page.count <= FEW && !last {
            self.scatter(at);
        }
        held
    }

    /// Gives up pages that hold few wires. To be called at least every few thousand wires.
    pub fn settle(&mut self) {
        for at in std::mem::take(&mut self.fresh) {
            if self.pages[at as usize].as_ref().is_some_and(|page| page.count <= FEW) {
                self.scatter(at as usize);
            }
        }
    }

    /// All that is held, in no order.
    pub fn all(&self) -> impl Iterator<Item = (u32, T)> + '_ {
        let pages = self.pages.iter().enumerate().filter_map(|(at, page)| Some((at, page.as_ref()?)));
        pages.flat_map(|(at, page)| page.all(at)).chain(self.few.iter().map(|(wire, held)| (*wire, *held)))
    }

    fn scatter(&mut self, at: usize) {
        let Some(mut page) = self.pages[at].take() else { return };
        self.few.extend(page.all(at));
        if page.count > 0 {
            page.held.fill(T::NOTHING);
        }
        self.spare.push(page.held);
    }
}

impl<T: Held> Page<T> {
    /// What this page of this place holds.
    fn all(&self, at: usize) -> impl Iterator<Item = (u32, T)> + '_ {
        let held = self.held.iter().enumerate().filter(|(_, held)| !held.is_nothing());
        held.map(move |(i, held)| ((at * PAGE + i) as u32, *held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_found_until_it_is_removed() {
        let (mut alive, mut want) = (Alive::default(), HashMap::new());
        let mut seed = 7u64;
        let mut random = move |n: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as u32 % n
        };
        for wire in 0..60_000u32 {
            alive.insert(wire, 3 * wire);
            want.insert(wire, 3 * wire);
            // Most die soon, some late, and every ninth never.
            let old = wire - random(if wire % 50 == 0 { wire + 1 } else { 100 }).min(wire);
            if old % 9 != 0 && want.contains_key(&old) {
                *alive.get_mut(old) += 1;
                assert_eq!(alive.get(old), 3 * old + 1);
                assert_eq!((alive.remove(old), want.remove(&old)), (3 * old + 1, Some(3 * old)));
            }
            if wire % 4096 == 0 {
                alive.settle();
            }
        }
        assert!(want.len() > 7000);
        want.iter().for_each(|(wire, held)| assert_eq!(alive.get(*wire), *held));
        assert_eq!(alive.all().collect::<HashMap<_, _>>(), want);
    }
}
