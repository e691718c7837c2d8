//! The simulated chips. One program: each program is linked by itself.

mod compiler;
mod compute_unit;
mod conformance;
mod cycles;
mod phepu;
mod sifo;
