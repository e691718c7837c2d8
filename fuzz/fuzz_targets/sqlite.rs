//! A SQLite database: a table of it, and a query.
#![no_main]
use blindcore_fuzz::{drain, file};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let path = file("x.sqlite");
    std::fs::write(&path, data).unwrap();
    let path = path.to_str().unwrap();
    drain(&format!("sqlite:{path}?table=t"));
    drain(&format!("sqlite:{path}?query=SELECT a, b FROM t WHERE a IS NOT NULL"));
});
