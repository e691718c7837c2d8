//! Garbled circuits: two parties compute a function of both their inputs and show neither.

pub mod builder;
pub mod circuit;
pub mod compile;
pub mod formats;
pub mod gadgets;
pub mod levels;
pub mod netlist;
pub mod ot;
pub mod policy;
pub mod problems;
pub mod session;
pub mod transport;
pub mod typed;
