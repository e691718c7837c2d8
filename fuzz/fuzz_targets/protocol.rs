//! A hostile server, as bytes decide, against the client without I/O: descriptions, hints, cached entries and answers.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/protocol/tests/protocol/driver.rs"]
#[allow(dead_code)]
mod driver;
#[path = "../../crates/protocol/tests/protocol/hostile.rs"]
mod hostile;
#[path = "../../crates/protocol/tests/protocol/made.rs"]
mod made;

fuzz_target!(|data: &[u8]| hostile::run(data));
