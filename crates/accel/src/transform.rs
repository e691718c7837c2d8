//! The transform operation: number-theoretic transforms over a set of primes.
//!
//! No device has it yet. The slot is there so that it can be asked for; the operation itself comes with the first
//! scheme that computes in a ring.

/// What a device's transform slot takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformCapabilities {
    /// The most coefficients of a polynomial.
    pub degree: usize,
    /// Whether it is simulated, so that its speed says nothing about this machine.
    pub simulated: bool,
}

/// The transform slot of a device.
pub trait TransformSlot: Send + Sync {
    /// What it takes.
    fn capabilities(&self) -> TransformCapabilities;
}
