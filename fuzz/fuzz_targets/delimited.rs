//! A CSV or TSV file.
#![no_main]
use blindcore_fuzz::{byte, drain, file};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (tabs, data) = byte(data);
    let path = file(if tabs & 1 == 1 { "x.tsv" } else { "x.csv" });
    std::fs::write(&path, data).unwrap();
    drain(path.to_str().unwrap());
});
