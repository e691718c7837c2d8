//! What the CPU's device promises. One program: each program is linked by itself.

mod conformance;
