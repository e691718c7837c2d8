//! Numbers in CSV or TSV, read, written and read again.
#![no_main]
use blindcore_fuzz::byte;
use blindcore_numbers::{Format, Source, encode, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (tabs, data) = byte(data);
    let format = if tabs & 1 == 1 { Format::Tsv } else { Format::Csv };
    let source = |bytes: &[u8]| Source::bytes(format, bytes.to_vec()).with_limit(1 << 20);
    let Ok(values) = read(&source(data)) else { return };
    let mut written = Vec::new();
    encode(format, &values, None, &mut written).unwrap();
    assert_eq!(read(&source(&written)).unwrap(), values);
});
