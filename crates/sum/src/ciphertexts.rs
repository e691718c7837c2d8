//! Batches of ciphertexts under one key, with what is known of their plaintexts.
