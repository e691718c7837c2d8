//! Keys that are parsed and ready, in bounded memory. Those that a query waits under stay.

use std::collections::HashMap;
use std::sync::Arc;

use blindcore_lookup::RegisteredKeys;

use super::index::Digest;

/// Keys that somebody may hold: their memory is not given to others before all have let go.
pub(crate) type ReadyKeys = Arc<RegisteredKeys>;

struct Parsed {
    keys: ReadyKeys,
    bytes: usize,
    turn: u64,
}

/// Parsed keys.
pub(crate) struct Ready {
    all: HashMap<Digest, Parsed>,
    bytes: usize,
    limit: usize,
    turn: u64,
}

impl Ready {
    pub(crate) fn new(limit: usize) -> Self {
        Self { all: HashMap::new(), bytes: 0, limit, turn: 0 }
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&mut self, digest: &Digest) -> Option<ReadyKeys> {
        self.turn += 1;
        let parsed = self.all.get_mut(digest)?;
        parsed.turn = self.turn;
        Some(parsed.keys.clone())
    }

    /// Takes memory for keys that are about to be parsed, at the cost of those that were not used for longest and that nobody
    /// holds. Gives these; nothing where there is no room.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Option<Vec<Digest>> {
        let free = |parsed: &Parsed| Arc::strong_count(&parsed.keys) == 1;
        let idle: usize = self.all.values().filter(|p| free(p)).map(|p| p.bytes).sum();
        if self.bytes - idle + bytes > self.limit {
            return None;
        }
        let mut gone = Vec::new();
        while self.bytes + bytes > self.limit {
            let idle = self.all.iter().filter(|(_, parsed)| free(parsed));
            let oldest = idle.min_by_key(|(_, parsed)| parsed.turn).map(|(digest, _)| *digest)?;
            self.remove(&oldest);
            gone.push(oldest);
        }
        self.bytes += bytes;
        Some(gone)
    }

    /// Gives a reservation back that came to nothing.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    /// Keeps keys for which memory was taken. Where another was faster, its keys stay and these go.
    pub(crate) fn keep(&mut self, digest: Digest, keys: RegisteredKeys, bytes: usize) -> ReadyKeys {
        if let Some(there) = self.get(&digest) {
            self.release(bytes);
            return there;
        }
        let keys = Arc::new(keys);
        self.all.insert(digest, Parsed { keys: keys.clone(), bytes, turn: self.turn });
        keys
    }

    /// Lets keys go. Those that a query waits under are gone once it is answered; their memory counts as free already, and is
    /// bounded by the queries that wait.
    pub(crate) fn remove(&mut self, digest: &Digest) {
        if let Some(parsed) = self.all.remove(digest) {
            self.bytes -= parsed.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> RegisteredKeys {
        RegisteredKeys::new(())
    }

    #[test]
    fn what_is_held_stays_and_the_rest_goes_in_turn() {
        let mut ready = Ready::new(30);
        for n in 0..3 {
            assert_eq!(ready.reserve(10), Some(vec![]));
            ready.keep([n; 32], keys(), 10);
        }
        let held = ready.get(&[0; 32]).unwrap();
        ready.get(&[1; 32]).unwrap();
        assert_eq!(ready.reserve(10), Some(vec![[2; 32]]));
        ready.keep([3; 32], keys(), 10);
        assert_eq!(ready.reserve(20), Some(vec![[1; 32], [3; 32]]));
        assert_eq!((ready.reserve(10), ready.bytes()), (None, 30), "the rest is held");
        ready.release(20);
        drop(held);
        assert_eq!(ready.reserve(31), None);
        assert_eq!((ready.reserve(30), ready.bytes()), (Some(vec![[0; 32]]), 30));
    }

    #[test]
    fn the_same_keys_are_there_once() {
        let mut ready = Ready::new(100);
        ready.reserve(10).unwrap();
        ready.reserve(10).unwrap();
        let one = ready.keep([1; 32], keys(), 10);
        let two = ready.keep([1; 32], keys(), 10);
        assert!(Arc::ptr_eq(&one, &two) && ready.bytes() == 10);
        ready.remove(&[1; 32]);
        assert!(ready.bytes() == 0 && ready.get(&[1; 32]).is_none());
    }
}
