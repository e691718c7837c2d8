//! Netlists, their files, and sessions between two parties. One program: each program is linked by itself.

mod formats;
mod gadgets;
mod golden;
mod ot;
mod problems;
mod session;
mod stream;
mod transport;
mod typed;
