//! Paillier: add and weigh encrypted numbers.

pub mod ciphertexts;
pub mod encoding;
pub mod evaluate;
pub mod file;
pub mod keys;
pub mod packing;
pub mod phe;
pub mod scheme;
pub mod task;
