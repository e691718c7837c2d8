//! Encrypted sums. One program: each program is linked by itself.

mod evaluate;
mod files;
mod golden;
mod known_answers;
mod numbers;
mod phe_roundtrip;
mod refusals;
mod scheme;
