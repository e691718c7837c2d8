//! Ciphertexts in the JSON of python-paillier, under one key.
#![no_main]
use std::sync::LazyLock;

use blindcore_sum::encoding::{Bound, Form};
use blindcore_sum::keys::PublicKey;
use blindcore_sum::phe::{self, PheCiphertexts};
use libfuzzer_sys::fuzz_target;

static KEY: LazyLock<PublicKey> =
    LazyLock::new(|| phe::public_key(include_bytes!("../seeds/sum_phe_key/public")).unwrap());

fuzz_target!(|data: &[u8]| {
    if let Ok(one) = PheCiphertexts::parse(&KEY, data) {
        assert_eq!((one.numbers().len(), one.exponents().len()), (1, 1));
    }
    let Ok(read) = PheCiphertexts::read(&KEY, data) else { return };
    assert_eq!(read.numbers().len(), read.exponents().len());
    // With one exponent for all, what is written is read as the same.
    let Some(&exponent) = read.exponents().first() else { return };
    let form = Form { exponent, scale: 0, bound: Bound::ZERO, packed: None, shape: vec![read.exponents().len()] };
    let mut text = Vec::new();
    phe::write_ciphertexts(&mut text, &KEY, read.numbers(), &form).unwrap();
    let again = PheCiphertexts::read(&KEY, &text[..]).unwrap();
    assert!(again.numbers() == read.numbers() && again.exponents().iter().all(|e| *e == exponent));
});
