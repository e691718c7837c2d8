//! Keys: generation, validation, their files.
