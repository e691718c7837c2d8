//! What operations cost, as arithmetic: no clock, no file, no device.
//!
//! ```text
//!   Question (a table, its clients, prices) ─┐
//!   Rates (measured by blindcore-bench) ─────┴─▶ Plan: each scheme's Costs, and which one `db build` takes
//! ```
//!
//! [`chip`] is what an operation costs on a machine that is described level by level, and the mapping that it costs least with.

mod batches;
pub mod chip;
mod cost;
mod plan;
pub mod rates;
mod text;

pub use batches::{BatchCosts, Batches};
pub use cost::{Build, Changes, Costs, Load, Million, Prices, Question, Table, Whole};
pub use plan::{Candidate, Plan};
pub use rates::Rates;
