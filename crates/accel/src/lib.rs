//! What runs, and where: operations, devices, layouts, costs, and the suite that every device must pass.
//!
//! A *scheme* knows cryptography and never hardware; a *device* knows hardware and never cryptography; an
//! *operation* is the regular arithmetic between them, described by its shape and its moduli.
//!
//! ```text
//!   scheme ──shape──▶ Device::contract ──▶ Contract ──place(database)──▶ Placed ──run(query)──▶ (answer, Cost)
//!                       a slot that          knows its layout,             holds the database
//!                       may be empty         so it can be made on disk     the way the device likes it
//! ```
//!
//! Every device gives the same bits; [`conformance`] is how that is known.

#[cfg(target_endian = "big")]
compile_error!("blindcore stores and sends little-endian words and is not built for big-endian machines");

mod arch;
pub mod bigmod;
pub mod conformance;
pub mod contract;
pub mod cost;
mod device;
mod error;
pub mod garble;
mod layout;
mod memory;
mod operation;
mod registry;
pub mod transform;
mod word;
mod words;

pub use arch::{advise_huge_pages, prefetch};
pub use contract::{Contract, Database, Pass, Placed, SharedBytes, Streaming};
pub use cost::Cost;
pub use device::{Description, Device, Slots};
pub use error::Error;
pub use layout::Layout;
pub use memory::{Allocator, Buffer, Heap, Line, Memory, keep_freed_memory};
pub use operation::Operation;
pub use registry::{DeviceKind, Listed, OpenOptions, Registry};
pub use word::Word;
pub use words::Words;
