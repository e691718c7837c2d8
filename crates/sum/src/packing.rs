//! Many small numbers in one plaintext.
