//! Devices: somewhere operations run.

use std::sync::Arc;

use crate::bigmod::{BigModulus, Bigmod, BigmodSlot};
use crate::contract::{Contract, ContractSlot, Shape};
use crate::garble::{Evaluate, EvaluateSlot, Garble, GarbleSlot, GarblingScheme};
use crate::memory::{Allocator, Heap};
use crate::transform::{Ring, Transform, TransformSlot};
use crate::{Error, Operation};

/// What a device can do: an implementation for each operation that it has, and nothing for the others.
///
/// A slot's `capabilities` say what it takes, so that nobody has to try and fail.
#[derive(Clone, Default)]
pub struct Slots {
    /// See [`Operation::Contract`].
    pub contract: Option<Arc<dyn ContractSlot>>,
    /// See [`Operation::Transform`].
    pub transform: Option<Arc<dyn TransformSlot>>,
    /// See [`Operation::Bigmod`].
    pub bigmod: Option<Arc<dyn BigmodSlot>>,
    /// See [`Operation::Garble`].
    pub garble: Option<Arc<dyn GarbleSlot>>,
    /// See [`Operation::Evaluate`].
    pub evaluate: Option<Arc<dyn EvaluateSlot>>,
}

/// Somewhere operations run: a name, a description, an allocator, and a slot for each operation, which may be empty.
///
/// A device is a value that its user passes on; a clone is the same device. Nothing looks one up behind the caller's
/// back, and opening one never falls back to another in silence.
///
/// ```text
///   Device ── contract? ──▶ prepare(shape) ───▶ Contract ──place(database)──▶ Placed ──run(query)──▶ answer + cost
///          ├─ bigmod? ────▶ prepare(modulus) ─▶ Bigmod    multiply, power, ...
///          ├─ garble? ────▶ prepare(scheme) ──▶ Garble
///          ├─ evaluate? ──▶ prepare(scheme) ──▶ Evaluate
///          └─ transform? ─▶ prepare(ring) ────▶ Transform ──run(direction, polynomials)──▶ cost
/// ```
#[derive(Clone)]
pub struct Device {
    description: Arc<Description>,
    allocator: Arc<dyn Allocator>,
    slots: Slots,
}

/// A device, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name that opens exactly this device, such as `cpu:avx512`.
    pub name: String,
    /// What hardware it is.
    pub hardware: String,
    /// How many threads it uses.
    pub threads: usize,
    /// Why this one, in a sentence.
    pub why: String,
}

impl Device {
    /// A device with these slots, whose operands lie on the heap.
    #[must_use]
    pub fn new(description: Description, slots: Slots) -> Self {
        Self { description: Arc::new(description), allocator: Arc::new(Heap), slots }
    }

    /// The same, with an allocator of its own.
    #[must_use]
    pub fn with_allocator(self, allocator: impl Allocator + 'static) -> Self {
        Self { allocator: Arc::new(allocator), ..self }
    }

    /// The same for one of several users who call it side by side: none of them shares its own work out to threads.
    #[must_use]
    pub fn side_by_side(&self) -> Self {
        let description = Arc::new(Description { threads: 1, ..(*self.description).clone() });
        Self { description, ..self.clone() }
    }

    /// What it is called: the name that opens exactly it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// What it is and why it was chosen, for people.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Its slots, full and empty, with what each takes.
    #[must_use]
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Where its operands are best laid.
    #[must_use]
    pub fn allocator(&self) -> &dyn Allocator {
        &*self.allocator
    }

    /// Whether it has a slot for `operation`.
    #[must_use]
    pub fn has(&self, operation: Operation) -> bool {
        match operation {
            Operation::Contract => self.slots.contract.is_some(),
            Operation::Transform => self.slots.transform.is_some(),
            Operation::Bigmod => self.slots.bigmod.is_some(),
            Operation::Garble => self.slots.garble.is_some(),
            Operation::Evaluate => self.slots.evaluate.is_some(),
        }
    }

    /// This device with `other`'s slot for `operation`, such as a GPU's contract beside the CPU's bigmod. Its name is
    /// `this+operation=other`. A contract brings its allocator along.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: `other` has no such slot.
    pub fn with(&self, operation: Operation, other: &Device) -> Result<Self, Error> {
        if !other.has(operation) {
            return Err(other.unsupported(operation));
        }
        let mut device = self.clone();
        let (slots, from) = (&mut device.slots, other.slots.clone());
        match operation {
            Operation::Contract => {
                slots.contract = from.contract;
                device.allocator = Arc::clone(&other.allocator);
            }
            Operation::Transform => slots.transform = from.transform,
            Operation::Bigmod => slots.bigmod = from.bigmod,
            Operation::Garble => slots.garble = from.garble,
            Operation::Evaluate => slots.evaluate = from.evaluate,
        }
        let (this, that) = (&*self.description, &*other.description);
        device.description = Arc::new(Description {
            name: format!("{}+{operation}={}", this.name, that.name),
            hardware: format!("{}; {operation}: {}", this.hardware, that.hardware),
            threads: this.threads.max(that.threads),
            why: format!("{}; {operation}: {}", this.why, that.why),
        });
        Ok(device)
    }

    /// Prepares the contract operation of one shape.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; or as [`ContractSlot::prepare`].
    pub fn contract(&self, shape: &Shape) -> Result<Arc<dyn Contract>, Error> {
        let slot = self.slots.contract.as_ref().ok_or_else(|| self.unsupported(Operation::Contract))?;
        slot.prepare(shape)
    }

    /// Prepares the transforms of a ring.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; or as [`TransformSlot::prepare`].
    pub fn transform(&self, ring: &Ring) -> Result<Arc<dyn Transform>, Error> {
        let slot = self.slots.transform.as_ref().ok_or_else(|| self.unsupported(Operation::Transform))?;
        slot.prepare(ring)
    }

    /// Prepares arithmetic modulo a big number.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; or as [`BigmodSlot::prepare`].
    pub fn bigmod(&self, modulus: &BigModulus) -> Result<Arc<dyn Bigmod>, Error> {
        let slot = self.slots.bigmod.as_ref().ok_or_else(|| self.unsupported(Operation::Bigmod))?;
        slot.prepare(modulus)
    }

    /// Prepares garbling under a scheme.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; or as [`GarbleSlot::prepare`].
    pub fn garble(&self, scheme: &GarblingScheme) -> Result<Arc<dyn Garble>, Error> {
        let slot = self.slots.garble.as_ref().ok_or_else(|| self.unsupported(Operation::Garble))?;
        slot.prepare(scheme)
    }

    /// Prepares evaluation under a scheme.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; or as [`EvaluateSlot::prepare`].
    pub fn evaluate(&self, scheme: &GarblingScheme) -> Result<Arc<dyn Evaluate>, Error> {
        let slot = self.slots.evaluate.as_ref().ok_or_else(|| self.unsupported(Operation::Evaluate))?;
        slot.prepare(scheme)
    }

    fn unsupported(&self, operation: Operation) -> Error {
        Error::Unsupported { name: self.name().into(), operation }
    }
}
