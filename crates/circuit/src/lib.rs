//! Garbled circuits: two parties compute a function of both their inputs and show neither.
//!
//! ```text
//!   Builder, typed, formats ──▶ Netlist ──Compiled──▶ Circuit ──session──▶ outputs
//!     gates one by one, or        AND, XOR    parts, layers,   programs,     garbler and evaluator,
//!     numbers, or a file          in order    slots            rounds        or three roles
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`netlist`], [`builder`], [`gadgets`], [`typed`] | circuits, and how they are made |
//! | [`problems`], [`formats`] | circuits by name and in files |
//! | [`compile`], [`mod@circuit`] | what devices garble: programs over slots that are used again |
//! | [`values`] | values of inputs and outputs as people write them |
//! | [`trial`] | what a circuit costs on a device |
//! | [`ot`] | oblivious transfer: base, extended, by proxy |
//! | [`session`], [`transport`] | the parties, and the connections between them |
//!
//! ```
//! use std::os::unix::net::UnixStream;
//! use blindcore_accel_cpu::Cpu;
//! use blindcore_circuit::circuit::Circuit;
//! use blindcore_circuit::session::{self, Check, Inputs, Learns, Setup};
//! use blindcore_circuit::problems;
//!
//! let circuit = Circuit::new(&problems::make("mult8")?);
//! let device = Cpu::open("cpu")?;
//! let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check: Check::None };
//! let bits = |n: u32| (0..8).map(|i| n >> i & 1 == 1).collect::<Vec<_>>();
//!
//! let (mut one, mut other) = UnixStream::pair()?; // between machines: transport::connect and listen
//! let outputs = std::thread::scope(|scope| {
//!     scope.spawn(|| session::garble(&mut one, setup, &Inputs::new().with(0, bits(20)), &mut ()));
//!     session::evaluate(&mut other, setup, &Inputs::new().with(1, bits(13)), &mut ())
//! })?;
//! let product = outputs.outputs.unwrap()[0].iter().rev().fold(0, |n, bit| n << 1 | u32::from(*bit));
//! assert_eq!(product, 260);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod builder;
pub mod circuit;
pub mod compile;
mod fold;
pub mod formats;
pub mod gadgets;
mod levels;
pub mod named;
pub mod netlist;
pub mod ot;
mod ports;
pub mod problems;
pub mod session;
mod stream;
pub mod transport;
pub mod trial;
pub mod typed;
pub mod values;
mod windows;

pub use fold::folded;
