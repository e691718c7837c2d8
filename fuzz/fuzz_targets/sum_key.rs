//! Key files, public and secret, with hashes that match whatever they hold.
#![no_main]
use blindcore_fuzz::byte;
use blindcore_sum::keys::{PublicKey, SecretKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (how, data) = byte(data);
    let mut bytes = data.to_vec();
    if how & 1 == 0 && bytes.len() > 32 {
        let (body, hash) = bytes.split_last_chunk_mut::<32>().unwrap();
        *hash = *blake3::hash(body).as_bytes();
    }
    // What loads is written as it was.
    if let Ok(key) = PublicKey::from_bytes(&bytes) {
        let written = key.to_bytes();
        assert!(written == bytes && PublicKey::from_bytes(&written).unwrap() == key);
    }
    if let Ok(key) = SecretKey::from_bytes(&bytes) {
        let written = key.to_bytes();
        assert!(*written == bytes);
        let again = SecretKey::from_bytes(&written).unwrap();
        assert!(again.public() == key.public() && again.primes() == key.primes());
    }
});
