//! Numbers as plaintexts: signed integers and floats with an exponent.
