//! The file of ciphertexts.
