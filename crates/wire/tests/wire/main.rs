//! Messages. One program: each program is linked by itself.

mod messages;
mod signatures;
