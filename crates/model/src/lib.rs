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
mod matrix;
mod plan;
mod question;
pub mod rates;
mod text;

pub use batches::{BatchCosts, Batches};
pub use cost::{Changes, Costs, Load, Million, Table, Whole};
pub use matrix::Build;
pub use plan::{Candidate, Plan};
pub use question::{Prices, Question};
pub use rates::Rates;
