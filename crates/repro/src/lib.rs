//! The papers' hardware at work, and the papers' figures made again beside those that they published.
//!
//! | module | what it makes |
//! |---|---|
//! | [`lookup`] | a real lookup on OnionChopper |
//! | [`overlay`], [`boards`] | a real circuit on one of SIFO's boards, or on several |
//! | [`half_gates`] | a real circuit on the half-gates overlay |
//! | [`sum`] | a convolution of encrypted numbers on PH-EPU |
//! | [`agreement`] | the model's clocks beside those of simulated OnionChoppers |
//! | [`rows`] | a figure of ours beside a published one, in one form |
//! | [`report`] | what was measured and synthesised of OnionChopper, beside the thesis |
//! | [`onionchopper`] | Tables 2.1, 3.1 and 3.2, Figures 6-1 to 6-13 and section 6.4 of OnionChopper (2023), by queries and the model |
//! | [`sifo`], [`half_gates_table`] | Tables 1 and 3 to 11 of SIFO (2019), and the half-gates overlay beside them |
//! | [`phepu`] | Figures 15.4.5 to 15.4.7 of PH-EPU (2023) |
//!
//! Every run is compared with the CPU, to the bit, before anything is told of it. Results are values with a `document()`,
//! the JSON that `blindcore hw` and `blindcore repro` print, and a `text()` for people. Chips come from
//! `make -C hw libraries`; without them each function says so.
//!
//! Errors are for whoever runs a measurement: one line with a remedy, not kinds to match on.

pub mod agreement;
pub mod boards;
pub mod figures;
pub mod half_gates;
pub mod half_gates_table;
mod jobs;
mod labels;
pub mod lookup;
pub mod onionchopper;
pub mod overlay;
pub mod phepu;
pub mod report;
pub mod rows;
pub mod sifo;
pub mod sum;
mod table;
mod text;

use blindcore_accel::DeviceKind;

pub use labels::random_inputs;
pub use table::Table;

/// A simulated chip that was opened, or why it can't be and what to do.
///
/// # Errors
/// It can't be opened.
pub fn chip<T>(opened: Result<T, blindcore_accel::Error>) -> anyhow::Result<T> {
    opened.map_err(|error| blindcore_accel_rtl::Chips.explain(error).into())
}
