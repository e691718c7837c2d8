//! A lookup scheme and a device of one's own, on blindcore's public API alone: no other crate knows them.
//!
//! - [`Download`], the scheme: the server sends the whole table, so it learns nothing, whatever it can compute. It is what
//!   every other scheme must beat, and for a few rows none does.
//! - [`Definition`], the device: it computes contracts by their definition, one product after another.
//!
//! `tests/extending.rs` builds a table of this scheme, serves it from this device, looks up over a socket, measures both and
//! plans with them.

mod device;
mod scheme;

pub use device::Definition;
pub use scheme::Download;
