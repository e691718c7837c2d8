//! A Parquet file, as a table.
#![no_main]
use blindcore_fuzz::{drain, file};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let path = file("x.parquet");
    std::fs::write(&path, data).unwrap();
    drain(path.to_str().unwrap());
});
