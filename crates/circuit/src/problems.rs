//! Circuits by name.
