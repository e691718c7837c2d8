//! Which keys are there, whose they are, and which go when others come. No files, no clock.

use std::collections::HashMap;

/// What keys are found by: BLAKE3 of their bytes.
pub(crate) type Digest = [u8; 32];
/// What stands for the client that registered keys.
pub(crate) type Owner = [u8; 16];

/// Keys of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Digest of their parameters.
    pub(crate) params: Digest,
    pub(crate) owner: Owner,
    pub(crate) bytes: u64,
    /// When they were registered, or asked under last, in seconds.
    pub(crate) used: u64,
    /// Whether anything was ever asked under them.
    pub(crate) asked: bool,
}

/// An entry, and its turn among those that were used in the same second.
struct Kept {
    entry: Entry,
    turn: u64,
}

impl Kept {
    /// Those that nothing was asked under go first, and then those that were not used for longest: whoever registers keys that
    /// are good for nothing pushes out their like and nobody's that are in use.
    fn rank(&self) -> (bool, u64, u64) {
        (self.entry.asked, self.entry.used, self.turn)
    }
}

/// How much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) bytes: u64,
    pub(crate) count: usize,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    pub(crate) count: usize,
}

impl Held {
    fn add(&mut self, entry: &Entry) {
        self.bytes += entry.bytes;
        self.count += 1;
    }

    fn remove(&mut self, entry: &Entry) {
        self.bytes -= entry.bytes;
        self.count -= 1;
    }

    /// Whether one more of so many bytes fits.
    fn fits(&self, bytes: u64, bounds: &Bounds) -> bool {
        self.count < bounds.count && self.bytes.saturating_add(bytes) <= bounds.bytes
    }
}

pub(crate) struct Index {
    entries: HashMap<Digest, Kept>,
    owners: HashMap<Owner, Held>,
    held: Held,
    /// In all, and of one client.
    all: Bounds,
    each: Bounds,
    turn: u64,
}

impl Index {
    pub(crate) fn new(all: Bounds, each: Bounds) -> Self {
        Self { entries: HashMap::new(), owners: HashMap::new(), held: Held::default(), all, each, turn: 0 }
    }

    pub(crate) fn get(&self, digest: &Digest) -> Option<&Entry> {
        self.entries.get(digest).map(|kept| &kept.entry)
    }

    pub(crate) fn held(&self) -> Held {
        self.held
    }

    /// Adds keys, and gives what went for them. Where they are there already, nothing changes but the time.
    pub(crate) fn insert(&mut self, digest: Digest, entry: Entry) -> Vec<Digest> {
        self.turn += 1;
        if let Some(same) = self.entries.get_mut(&digest) {
            same.entry.used = same.entry.used.max(entry.used);
            same.turn = self.turn;
            return Vec::new();
        }
        let mut gone = Vec::new();
        let mut mine = self.owners.get(&entry.owner).copied().unwrap_or_default();
        while !mine.fits(entry.bytes, &self.each) {
            let Some(first) = self.first(|other| other.owner == entry.owner) else { break };
            mine.remove(&self.remove(&first).expect("it is there"));
            gone.push(first);
        }
        while !self.held.fits(entry.bytes, &self.all) {
            let Some(first) = self.first(|_| true) else { break };
            self.remove(&first);
            gone.push(first);
        }
        self.held.add(&entry);
        self.owners.entry(entry.owner).or_default().add(&entry);
        self.entries.insert(digest, Kept { entry, turn: self.turn });
        gone
    }

    /// Lets keys go for others of `owner` that have no room elsewhere, its own before others', and gives them with their bytes.
    pub(crate) fn evict(&mut self, owner: Owner) -> Option<(Digest, u64)> {
        let first = self.first(|other| other.owner == owner).or_else(|| self.first(|_| true))?;
        self.remove(&first).map(|entry| (first, entry.bytes))
    }

    /// Something is asked under these keys.
    pub(crate) fn touch(&mut self, digest: &Digest, now: u64) {
        self.turn += 1;
        if let Some(kept) = self.entries.get_mut(digest) {
            kept.entry.used = kept.entry.used.max(now);
            kept.entry.asked = true;
            kept.turn = self.turn;
        }
    }

    pub(crate) fn remove(&mut self, digest: &Digest) -> Option<Entry> {
        let entry = self.entries.remove(digest)?.entry;
        self.held.remove(&entry);
        if let Some(owner) = self.owners.get_mut(&entry.owner) {
            owner.remove(&entry);
            if owner.count == 0 {
                self.owners.remove(&entry.owner);
            }
        }
        Some(entry)
    }

    /// Removes what was not used since `before`, and gives it.
    pub(crate) fn expire(&mut self, before: u64) -> Vec<Digest> {
        let old = self.entries.iter().filter(|(_, kept)| kept.entry.used < before);
        let old: Vec<Digest> = old.map(|(digest, _)| *digest).collect();
        old.iter().for_each(|digest| _ = self.remove(digest));
        old
    }

    /// What goes first of some.
    fn first(&self, of: impl Fn(&Entry) -> bool) -> Option<Digest> {
        let some = self.entries.iter().filter(|(_, kept)| of(&kept.entry));
        some.min_by_key(|(_, kept)| kept.rank()).map(|(digest, _)| *digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(all: usize, each: usize) -> Index {
        let bounds = |count| Bounds { bytes: 100, count };
        Index::new(bounds(all), bounds(each))
    }

    fn entry(owner: u8, bytes: u64, used: u64) -> Entry {
        Entry { params: [0; 32], owner: [owner; 16], bytes, used, asked: false }
    }

    fn digest(n: u8) -> Digest {
        [n; 32]
    }

    #[test]
    fn what_is_not_used_goes_first_and_a_client_s_own_before_others() {
        let mut index = index(4, 2);
        assert!(index.insert(digest(1), entry(1, 10, 1)).is_empty());
        assert!(index.insert(digest(2), entry(1, 10, 2)).is_empty());
        index.touch(&digest(1), 3);
        // A third of the same client: its own that was never asked under goes, though it is newer.
        assert_eq!(index.insert(digest(3), entry(1, 10, 4)), [digest(2)]);
        index.touch(&digest(3), 5);
        assert_eq!(index.insert(digest(4), entry(1, 10, 6)), [digest(1)], "used least lately");
        assert!(index.insert(digest(5), entry(2, 10, 7)).is_empty());
        assert!(index.insert(digest(6), entry(3, 10, 8)).is_empty());
        // All are taken: those that nobody asked under go, oldest first, and not the one in use.
        for n in 7..20 {
            let gone = index.insert(digest(n), entry(n, 10, n.into()));
            assert_eq!(gone.len(), 1);
            assert_ne!(gone[0], digest(3), "it is in use");
        }
        assert_eq!(index.held(), Held { bytes: 40, count: 4 });
        assert_eq!(index.owners.len(), 4);
    }

    #[test]
    fn within_a_second_the_order_counts() {
        let mut index = index(3, 3);
        for n in [9, 5, 7] {
            index.insert(digest(n), entry(1, 1, 50));
        }
        index.insert(digest(9), entry(1, 1, 50));
        assert_eq!(index.insert(digest(1), entry(1, 1, 50)), [digest(5)]);
        index.touch(&digest(7), 50);
        assert_eq!(index.insert(digest(2), entry(1, 1, 50)), [digest(9)]);
    }

    #[test]
    fn bytes_are_bounded_as_counts_are() {
        let mut index = index(10, 10);
        for n in 1..=5 {
            assert!(index.insert(digest(n), entry(n, 20, n.into())).is_empty());
        }
        assert_eq!(index.insert(digest(6), entry(6, 60, 6)), [digest(1), digest(2), digest(3)]);
        assert_eq!(index.held(), Held { bytes: 100, count: 3 });
        // The same again is the same.
        assert!(index.insert(digest(6), entry(9, 60, 9)).is_empty());
        assert_eq!((index.get(&digest(6)).unwrap().used, index.get(&digest(6)).unwrap().owner), (9, [6; 16]));
    }

    #[test]
    fn what_was_not_used_for_long_expires() {
        let mut index = index(10, 10);
        for n in 1..=3 {
            index.insert(digest(n), entry(1, 1, 10 * u64::from(n)));
        }
        index.touch(&digest(1), 25);
        assert_eq!(index.expire(25), [digest(2)]);
        assert!(index.expire(25).is_empty());
        assert_eq!(index.remove(&digest(3)).map(|e| e.used), Some(30));
        assert!(index.remove(&digest(3)).is_none());
        assert_eq!(index.held(), Held { bytes: 1, count: 1 });
    }
}
