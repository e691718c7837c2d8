//! The task compiler and its instructions. One program: each program is linked by itself.

mod common;
mod isa;
mod stream;
mod task;
