//! Labels of wires, and where they lie.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::advise_huge_pages;

/// A wire's label: 128 bits, of which the lowest is its colour (point and permute).
pub type Label = u128;

/// How many instances lie beside each other.
pub(crate) const LANES: usize = 4;

/// Bytes of a line of the cache. A vector of four labels that crosses one costs two accesses, and where memory begins is chance.
const LINE: usize = 64;

/// The first element of a buffer that begins a line; at most a line's bytes are before it.
fn at_line<T>(buffer: &[T]) -> usize {
    buffer.as_ptr().align_offset(LINE).min(LINE / size_of::<T>())
}

/// Room for tables of this many bytes, from a line of the cache on, in a buffer that grows and never shrinks. What was in it is lost where it
/// grows.
///
/// ```
/// let mut buffer = Vec::new();
/// assert_eq!(blindcore_accel::garble::room(&mut buffer, 100).len(), 100);
/// ```
pub fn room(buffer: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if buffer.len() < bytes + LINE {
        *buffer = vec![0; bytes + LINE];
        advise_huge_pages(buffer);
    }
    let first = at_line(buffer);
    &mut buffer[first..first + bytes]
}

/// The offset between the two labels of every wire; its lowest bit is 1.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Offset(Label);

impl Offset {
    /// An offset of these random bits.
    #[must_use]
    pub fn new(random: Label) -> Self {
        Self(random | 1)
    }

    /// Its bits.
    #[must_use]
    pub fn label(&self) -> Label {
        self.0
    }
}

/// A label for each slot of each instance; wiped when dropped.
///
/// One instance lies slot by slot. More lie four by four: `[instance / 4][slot][instance % 4]`, the last four filled
/// up with labels that mean nothing. Four lie in one line of the cache.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Labels {
    slots: usize,
    instances: usize,
    /// The labels, from `first` on.
    labels: Vec<Label>,
    first: usize,
}

impl Labels {
    /// Labels of zero for `slots` slots in `instances` instances.
    ///
    /// # Panics
    /// No instance, or more than memory can address.
    #[must_use]
    pub fn new(slots: usize, instances: usize) -> Self {
        assert!(instances > 0, "labels are of one instance at least");
        let stride = if instances == 1 { 1 } else { LANES };
        let count = slots.checked_mul(instances.div_ceil(stride) * stride).expect("labels fit memory");
        let mut labels = vec![0; count.checked_add(LINE / size_of::<Label>()).expect("labels fit memory")];
        advise_huge_pages(&mut labels);
        let first = at_line(&labels);
        Self { slots, instances, labels, first }
    }

    /// Slots of an instance.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// How many instances.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.instances
    }

    /// Labels from one slot to the next: 1, or 4 where instances lie four by four.
    #[must_use]
    pub fn stride(&self) -> usize {
        if self.instances == 1 { 1 } else { LANES }
    }

    /// The label of a slot.
    #[must_use]
    pub fn get(&self, slot: u32, instance: usize) -> Label {
        self.labels[self.index(slot, instance)]
    }

    /// Puts a label into a slot.
    pub fn set(&mut self, slot: u32, instance: usize, label: Label) {
        let index = self.index(slot, instance);
        self.labels[index] = label;
    }

    /// Puts a label into a slot of every instance.
    pub fn set_all(&mut self, slot: u32, label: Label) {
        for instance in 0..self.instances {
            self.set(slot, instance, label);
        }
    }

    /// More slots for the one instance; what they hold stays.
    ///
    /// # Panics
    /// There are several instances.
    pub fn grow(&mut self, slots: usize) {
        assert_eq!(self.instances, 1, "labels of several instances do not grow");
        if slots <= self.slots {
            return;
        }
        if self.first + slots > self.labels.capacity() {
            let mut grown = Vec::with_capacity(slots.next_power_of_two() + LINE / size_of::<Label>());
            advise_huge_pages(grown.spare_capacity_mut());
            let first = at_line(&grown);
            grown.resize(first, 0);
            grown.extend_from_slice(&self.labels[self.first..self.first + self.slots]);
            self.labels.zeroize();
            (self.labels, self.first) = (grown, first);
        }
        self.labels.resize(self.first + slots, 0);
        self.slots = slots;
    }

    /// Groups of instances, each `[slot][lane]` with [`Labels::stride`] lanes.
    pub fn groups_mut(&mut self) -> impl Iterator<Item = &mut [Label]> {
        let group = (self.slots * self.stride()).max(1);
        let all = self.slots * self.stride() * self.instances.div_ceil(self.stride());
        self.labels[self.first..self.first + all].chunks_mut(group)
    }

    fn index(&self, slot: u32, instance: usize) -> usize {
        assert!((slot as usize) < self.slots && instance < self.instances, "no such slot or instance");
        let stride = self.stride();
        self.first + (instance / stride * self.slots + slot as usize) * stride + instance % stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_tables_begin_at_lines() {
        // Whatever lies before them.
        let mut others = Vec::new();
        let mut tables = Vec::new();
        for round in 1..40 {
            others.push(vec![0u8; 16 * round + 1]);
            for instances in [1, 2, 4, 9] {
                let mut labels = Labels::new(round, instances);
                let groups: Vec<_> =
                    labels.groups_mut().map(|group| (group.as_ptr().addr() % LINE, group.len())).collect();
                let stride = if instances == 1 { 1 } else { LANES };
                assert_eq!(groups, vec![(0, round * stride); instances.div_ceil(stride)]);
            }
            let room = room(&mut tables, 1000 * round + 7);
            assert_eq!((room.as_ptr().addr() % LINE, room.len()), (0, 1000 * round + 7));
        }
        let mut labels = Labels::new(3, 1);
        for slots in 3..600 {
            labels.set(slots - 3, 0, u128::from(slots));
            labels.grow(slots as usize + 1);
            assert!(
                labels
                    .groups_mut()
                    .all(|group| group.as_ptr().addr() % LINE == 0 && group.len() == slots as usize + 1)
            );
        }
        assert!((0..597).all(|slot| labels.get(slot, 0) == u128::from(slot + 3)) && labels.get(599, 0) == 0);
    }
}
