//! A record: what decodes is exactly what an encoder writes, and zeros.
#![no_main]
use blindcore_fuzz::byte;
use blindcore_store::codec::{decode_record, encode_record};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (columns, data) = byte(data);
    let Ok(values) = decode_record(data, columns.into()) else { return };
    let mut again = Vec::new();
    encode_record(&values, &mut again);
    assert_eq!(data[..again.len()], again);
    assert!(data[again.len()..].iter().all(|b| *b == 0));
    for value in values {
        let _ = value.to_json().to_string();
    }
});
