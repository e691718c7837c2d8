//! Three-role transfer.
