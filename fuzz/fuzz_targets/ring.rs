//! Ring ciphertexts and keys from a stranger: what is read is written as it was.
#![no_main]

use std::sync::{Arc, LazyLock};

use blindcore_fuzz::byte;
use blindcore_rlwe::{Answer, GaloisKeys, Insecure, Parameters, PublicKey, RelinearisationKey, Rgsw, SeededCiphertext, SwitchingKey, sets};
use libfuzzer_sys::fuzz_target;

static PARAMETERS: LazyLock<Arc<Parameters>> =
    LazyLock::new(|| sets::TOY.check_insecure(Insecure::because("a small ring is fuzzed sooner")).unwrap());

fuzz_target!(|data: &[u8]| {
    let parameters = &*PARAMETERS;
    let (kind, rest) = byte(data);
    let kind = kind % 7 + 1;
    // With the head that the kind has, so that the rest is reached.
    let digest = parameters.digest();
    let head = [b"BCRL", &[1, kind, 0, 0][..], &digest].concat();
    let bytes = [&head, rest].concat();
    let same = match kind {
        1 => SeededCiphertext::from_bytes(parameters, &bytes).map(|x| x.to_bytes()),
        2 => PublicKey::from_bytes(parameters, &bytes).map(|x| x.to_bytes()),
        3 => SwitchingKey::from_bytes(parameters, &bytes).and_then(|x| x.to_bytes(parameters)),
        4 => GaloisKeys::from_bytes(parameters, &bytes).and_then(|x| x.to_bytes(parameters)),
        5 => Rgsw::from_bytes(parameters, &bytes).and_then(|x| x.to_bytes(parameters)),
        6 => Answer::from_bytes(parameters, &bytes).and_then(|x| x.to_bytes(parameters)),
        _ => RelinearisationKey::from_bytes(parameters, &bytes).and_then(|x| x.to_bytes(parameters)),
    };
    if let Ok(same) = same {
        assert_eq!(same, bytes, "kind {kind}");
    }
    // And without it.
    let _ = SeededCiphertext::from_bytes(parameters, data);
});
