//! An array in NumPy's format, read, written and read again.
#![no_main]
use blindcore_numbers::{Format, Source, encode, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let source = |bytes: &[u8]| Source::bytes(Format::Npy, bytes.to_vec()).with_limit(1 << 20);
    let Ok(values) = read(&source(data)) else { return };
    let mut written = Vec::new();
    encode(Format::Npy, &values, None, &mut written).unwrap();
    assert_eq!(read(&source(&written)).unwrap(), values);
});
