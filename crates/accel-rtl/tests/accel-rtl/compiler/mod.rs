//! PH-EPU's compiler and its instructions.

mod common;
mod isa;
mod residues;
mod stream;
mod task;
