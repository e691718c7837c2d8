//! Encryption, decryption and rerandomisation.
