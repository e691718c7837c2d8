//! Keys and ciphertexts of each version that were written by earlier builds: they open and give the numbers that went
//! in. The keys are for tests alone.

use std::path::PathBuf;

use blindcore_accel_cpu::Cpu;
use blindcore_numbers::Values;
use blindcore_sum::disk::{self, Contents};
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::keys::Mode;
use blindcore_sum::numbers::{self, Results};
use blindcore_sum::scheme::Decryptor;

const NUMBERS: [i64; 4] = [3, -4, 5, 1 << 30];

fn golden(format: &str, file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(format).join(file)
}

fn decrypted(key: &str, ciphertexts: &str) -> Vec<i64> {
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let key = disk::read_secret_key(&golden("sum-keys", key)).unwrap();
    let decryptor = Decryptor::new(&key, &device).unwrap();
    let path = golden("sum-ciphertexts", ciphertexts);
    match numbers::decrypt(&path, &decryptor, &mut ()).unwrap() {
        Results::Values(Values::Int(array)) => array.into_iter().collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_and_ciphertexts_of_version_1() {
    for (name, mode) in [
        ("textbook", Mode::Textbook),
        ("short-exponent", Mode::ShortExponent),
        ("special-key", Mode::SpecialKey),
    ] {
        let (secret, public) = (format!("{name}-1.key"), format!("{name}-1.pub"));
        let key = disk::read_public_key(&golden("sum-keys", &public)).unwrap();
        assert_eq!(key.mode(), mode);
        assert_eq!(key.to_bytes(), std::fs::read(golden("sum-keys", &public)).unwrap(), "written as before");
        let whole = disk::read_secret_key(&golden("sum-keys", &secret)).unwrap();
        assert!(whole.to_bytes()[..] == std::fs::read(golden("sum-keys", &secret)).unwrap()[..]);
        assert_eq!(whole.public(), &key);
        let Contents::SecretKey(seen) = disk::inspect(&golden("sum-keys", &secret)).unwrap() else {
            panic!("{secret} is a secret key");
        };
        assert_eq!(seen, key);
        let Contents::PublicKey(seen) = disk::inspect(&golden("sum-keys", &public)).unwrap() else {
            panic!("{public} is a public key");
        };
        assert_eq!(seen, key);

        let file = format!("{name}-1.ct");
        let Contents::Ciphertexts(header) = disk::inspect(&golden("sum-ciphertexts", &file)).unwrap() else {
            panic!("{file} holds ciphertexts");
        };
        assert_eq!((header.key, header.form.shape), (key.id(), vec![4]));
        assert_eq!(decrypted(&secret, &file), NUMBERS);
        let device = Cpu::with_threads("cpu", 1).unwrap();
        let evaluator = Evaluator::new(&key, &device).unwrap();
        let read = disk::read(&golden("sum-ciphertexts", &file), &evaluator, 0.0).unwrap();
        assert_eq!(read.len(), 4);
    }
}

#[test]
fn keys_and_ciphertexts_of_python_paillier() {
    assert_eq!(decrypted("textbook-phe.json", "textbook-phe.jsonl"), NUMBERS);
    let key = disk::read_public_key(&golden("sum-keys", "textbook-phe-public.json")).unwrap();
    assert_eq!(key, disk::read_public_key(&golden("sum-keys", "textbook-1.pub")).unwrap());
    let secret = disk::inspect(&golden("sum-keys", "textbook-phe.json")).unwrap();
    assert!(matches!(secret, Contents::SecretKey(of) if of == key));
}
