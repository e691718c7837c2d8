//! A key, from any value; and a slot of the directory of keys.
#![no_main]
use blindcore_store::Value;
use blindcore_store::codec::{MAX_KEY_BYTES, encode_key};
use blindcore_wire::{decode_key_slot, encode_key_slot};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut values = vec![Value::Blob(data.to_vec())];
    values.extend(str::from_utf8(data).ok().map(|t| Value::Text(t.into())));
    values.extend(serde_json::from_slice(data).ok().map(Value::from_json));
    if let Some(eight) = data.first_chunk::<8>() {
        values.push(Value::Real(f64::from_le_bytes(*eight)));
        values.push(Value::Int(i64::from_le_bytes(*eight)));
    }
    for value in values {
        let Ok(key) = encode_key(&value) else { continue };
        assert!((1..=MAX_KEY_BYTES).contains(&key.len()));
        let mut slot = vec![0xff; key.len() + 7];
        encode_key_slot(&key, &mut slot).unwrap();
        assert_eq!(decode_key_slot(&slot), Some(&*key));
    }
    if let Some(key) = decode_key_slot(data) {
        let mut again = vec![0xff; data.len()];
        encode_key_slot(key, &mut again).unwrap();
        assert_eq!(again, data);
    }
});
