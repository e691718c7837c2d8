//! OnionChopper, the contract chip of Shay's thesis (2023), simulated with its SSD and DRAM.
//!
//! ```no_run
//! use blindcore_accel_rtl::onionchopper::OnionChopper;
//!
//! let device = OnionChopper::open("rtl:onionchopper")?; // made by `make -C hw libraries`
//! println!("{}: {} lanes", device.name(), device.build().lanes);
//! # Ok::<(), blindcore_accel::Error>(())
//! ```
//!
//! ```text
//!   Shape ──mapping──▶ Plan: tiles, where each word lies ──┬──▶ descriptor: a loop nest over three stores
//!                                                          └──▶ stream: the words as the SSD sends them
//!   board ◀── descriptor, stream        board ──▶ answer, counters
//! ```
//!
//! [`mapping`] cuts an operation into tiles and says where each word lies, [`descriptor`] is what the chip is told, and
//! [`measure`] runs the thesis's shapes. A run's [`Cost`](blindcore_accel::Cost) has what the chip's own counters say.

mod board;
mod chip;
mod contract;
pub mod descriptor;
mod device;
pub mod mapping;
pub mod measure;
mod options;

pub use board::Build;
pub use chip::{HAZARD, TAIL};
pub use device::OnionChopper;
pub use options::{Options, SSD_RATE};
