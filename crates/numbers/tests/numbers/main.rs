//! Files of numbers. One program: each program is linked by itself.

mod files;
mod golden;
