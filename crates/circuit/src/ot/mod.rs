//! Oblivious transfer: base transfers on Curve25519 and their extension.
