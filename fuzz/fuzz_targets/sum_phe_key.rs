//! Keys in the JSON of python-paillier.
#![no_main]
use blindcore_sum::phe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(key) = phe::public_key(data) {
        let again = phe::public_key(phe::write_public_key(&key).unwrap().as_bytes()).unwrap();
        assert!(again == key);
    }
    if let Ok(key) = phe::secret_key(data) {
        let again = phe::secret_key(phe::write_secret_key(&key).unwrap().as_bytes()).unwrap();
        assert!(again.public() == key.public());
    }
});
