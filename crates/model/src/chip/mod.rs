//! What an operation costs on a chip, or on anything that has levels of memory and lanes: clocks by bound, words through every port,
//! joules and square millimetres by part.
//!
//! ```text
//!   Problem (an operation and its bounds) ──┐
//!   Machine (levels, ports, lanes, clock) ──┼─▶ cost() ─▶ Cost: clocks by bound, words, joules, mm2
//!   Mapping (a loop nest over the levels) ──┘                ▲
//!                     ▲                                      │ Tables: picojoules and mm2 by part, with their source
//!                     └── search (exhaustive, exact) or random (as the thesis did)
//! ```
//!
//! Counting follows Shay 2023, chapters 2 and 5, which is Timeloop's: perfect loop nests; a tile is fetched again whenever a loop
//! outside it turns, but for the innermost ones that do not index its tensor; inputs are multicast to lanes that share them and sums
//! of lanes are added on the way out; a sum's first read is left out; all levels work at the same time, so the slowest port or the
//! lanes set the clocks.
//!
//! ```
//! use blindcore_model::chip::{Problem, Space, Tables, cost, machine, search, thesis_mapping};
//!
//! let (chip, problem) = (machine("thesis").unwrap(), Problem::onionpir(64.0));
//! let tables = [Tables::shipped("calibrated").unwrap()];
//! let thesis = cost(&problem, &chip, &thesis_mapping(), &tables)?;
//! assert_eq!(thesis.cycles, 12_833_318_209); // section 6.4
//! let best = search(&problem, &chip, &tables, &Space::default())?;
//! assert_eq!(best.cost.cycles, thesis.cycles);
//! assert!(best.cost.prices[0].joules() < thesis.prices[0].joules());
//! # Ok::<(), blindcore_model::chip::Misfit>(())
//! ```

mod everywhere;
mod lookup;
mod machine;
mod nest;
mod pipeline;
mod problem;
mod random;
mod read;
mod search;
mod shipped;
mod tables;
mod tiles;

pub use blindcore_accel::cost::{Bound, Cost, Kind, Price, Priced, Tensors, Traffic};
pub use everywhere::{OnMachine, everywhere};
pub use lookup::{Answered, Lookup, Pass, Ring, more};
pub use machine::{Lanes, Level, Machine, Moduli, Pipeline, Ports, Rate};
pub use nest::{Mapping, Misfit, Nest, cost, thesis_mapping};
pub use pipeline::pipelined;
pub use problem::{Dim, Operation, Problem, Tensor};
pub use random::{THESIS_FAILURES, Tries, random};
pub use read::{Wrong, machine_from_toml, one_line};
pub use search::{Found, Space, Splits, search};
pub use shipped::{Reached, machine, machines, reached};
pub use tables::{Part, Point, Tables};
