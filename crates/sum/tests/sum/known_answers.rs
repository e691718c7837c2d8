//! Published test vectors (tests/vectors/README.md says whose): encryptions with known randomness, decryptions and
//! weighed products, on every engine of this machine.

use blindcore_accel::bigmod::{Exponents, Numbers};
use blindcore_accel_cpu::{Cpu, Isa};
use blindcore_sum::keys::SecretKey;
use blindcore_sum::scheme::{Decryptor, Encryptor};
use crypto_bigint::{BoxedUint, NonZero};
use serde_json::Value;

/// The words of a hexadecimal number.
fn words(hex: &Value) -> Vec<u64> {
    let hex = hex.as_str().expect("a number is a string");
    let digits: Vec<u8> =
        hex.bytes().rev().map(|d| (d as char).to_digit(16).expect("hexadecimal") as u8).collect();
    digits.chunks(16).map(|c| c.iter().rev().fold(0, |word, d| word << 4 | u64::from(*d))).collect()
}

fn check(text: &str, vectors: usize) {
    let document: Value = serde_json::from_str(text).expect("JSON");
    let list = document["vectors"].as_array().expect("a list");
    assert_eq!(list.len(), vectors);
    for isa in Isa::available() {
        let device = Cpu::open(isa.device_name()).expect("it is available");
        for vector in list {
            let secret =
                SecretKey::from_primes(&words(&vector["p"]), &words(&vector["q"])).expect("a sound key");
            let public = secret.public();
            assert_eq!(public.n(), words(&vector["n"]));
            let encryptor = Encryptor::new(public, &device).expect("a device for it");
            let decryptor = Decryptor::new(&secret, &device).expect("a device for it");
            let bigmod = encryptor.bigmod();
            let length = public.n().len();
            let n = NonZero::new(BoxedUint::from_words(public.n().iter().copied())).expect("not zero");
            let mut ciphertexts = Vec::new();
            for encryption in vector["encryptions"].as_array().expect("a list") {
                let (m, r, c) = (words(&encryption["m"]), words(&encryption["r"]), words(&encryption["c"]));
                let r = BoxedUint::from_words(r).rem_vartime(&n);
                let plain =
                    encryptor.without_randomness(&Numbers::from_words(length, [m.as_slice()])).unwrap();
                let r = bigmod.place(&Numbers::from_words(2 * length, [r.as_words()])).unwrap();
                let noise = bigmod.power(&r, &Exponents::Shared(public.n(), public.bits())).unwrap().0;
                let got = bigmod.read(&bigmod.multiply(&plain, &noise).unwrap().0).unwrap();
                let want = Numbers::from_words(2 * length, [c.as_slice()]);
                assert!(got == want, "an encryption of vector {} on {}", vector["name"], isa.device_name());
                let back = decryptor.decrypt(&want).unwrap();
                assert!(
                    back == Numbers::from_words(length, [m.as_slice()]),
                    "a decryption of {}",
                    vector["name"]
                );
                ciphertexts.push(encryptor.accept(&want).expect("a ciphertext"));
            }
            for evaluation in vector["evaluations"].as_array().expect("a list") {
                let mut product = None;
                for (c, weight) in ciphertexts.iter().zip(evaluation["weights"].as_array().expect("a list")) {
                    let weight = words(weight);
                    let power =
                        bigmod.power(c, &Exponents::Shared(&weight, 64 * weight.len() as u32)).unwrap().0;
                    product = Some(match product {
                        None => power,
                        Some(product) => bigmod.multiply(&product, &power).unwrap().0,
                    });
                }
                let got = bigmod.read(&product.expect("there is a weight")).unwrap();
                let want = Numbers::from_words(2 * length, [words(&evaluation["c"]).as_slice()]);
                assert!(got == want, "an evaluation of {}", vector["name"]);
                let m = Numbers::from_words(length, [words(&evaluation["m"]).as_slice()]);
                assert!(decryptor.decrypt(&got).unwrap() == m, "a decryption of {}", vector["name"]);
            }
        }
    }
}

#[test]
fn iso_iec_18033_6() {
    check(include_str!("../vectors/iso-18033-6.json"), 1);
}

#[test]
fn milagro_multiplication_to_addition() {
    check(include_str!("../vectors/milagro-mta.json"), 4);
}
