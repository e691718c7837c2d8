//! Sweeps over machines: which one, with which mapping, computes a problem in the fewest clocks and with the fewest joules.
//!
//! ```text
//!   sweep.toml ─▶ Sweep: a machine, axes, constraints, problems ─▶ points ─▶ run(): all cores, journal ─▶ Table ─▶ CSV, Parquet,
//!                                                                                                        fronts, plots
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`sweep`] | a file of axes and problems, its points, and the thesis's three sweeps |
//! | [`expression`] | constraints, such as `srams <= register_files` |
//! | [`prices`] | what parts of machines cost to buy |
//! | [`Best`] | each problem's best machine, what limits it, what pays next, and other machines beside it |
//! | [`Sources`] | a sweep as it is written, with the files that it names |
//! | [`run()`] | all points on all cores; what is finished survives a kill and a full disk |
//! | [`Ray`] | the same points by tasks of Ray, on several machines |
//! | [`table`] | columns as CSV, Parquet and JSON |
//! | [`front`] | which points no other beats |
//! | [`plot`] | scatter plots and curves as SVG and PNG |
//!
//! Costs themselves are [`blindcore_model::chip`]'s.

mod best;
mod counted;
pub mod expression;
pub mod front;
mod journal;
pub mod plot;
mod point;
pub mod prices;
mod ray;
mod run;
mod sources;
pub mod sweep;
pub mod table;
mod views;

pub use best::{Beside, Best, Figures, Joules, Next};
pub use point::{Outcome, columns};
pub use ray::{OnRay, Ray, work};
pub use run::{Options, Results, run};
pub use sources::Sources;
pub use sweep::Sweep;
pub use views::{document, keep, plots, text};
