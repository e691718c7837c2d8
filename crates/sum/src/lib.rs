//! Paillier: add and weigh encrypted numbers.

pub mod task;
