//! Labels of wires, and where they lie.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A wire's label: 128 bits, of which the lowest is its colour (point and permute).
pub type Label = u128;

/// How many instances lie beside each other.
pub(crate) const LANES: usize = 4;

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
/// up with labels that mean nothing.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Labels {
    slots: usize,
    instances: usize,
    labels: Vec<Label>,
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
        Self { slots, instances, labels: vec![0; count] }
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
        if slots > self.labels.capacity() {
            let mut grown = Vec::with_capacity(slots.next_power_of_two());
            grown.extend_from_slice(&self.labels);
            self.labels.zeroize();
            self.labels = grown;
        }
        self.labels.resize(slots, 0);
        self.slots = slots;
    }

    /// Groups of instances, each `[slot][lane]` with [`Labels::stride`] lanes.
    pub fn groups_mut(&mut self) -> impl Iterator<Item = &mut [Label]> {
        let group = (self.slots * self.stride()).max(1);
        self.labels.chunks_mut(group)
    }

    fn index(&self, slot: u32, instance: usize) -> usize {
        assert!((slot as usize) < self.slots && instance < self.instances, "no such slot or instance");
        let stride = self.stride();
        (instance / stride * self.slots + slot as usize) * stride + instance % stride
    }
}
