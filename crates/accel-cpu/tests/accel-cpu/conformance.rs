//! Every instruction set that this machine has runs the shared suite; those it lacks are named.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use std::sync::Arc;

use blindcore_accel::bigmod::{BigModulus, Form, HostRows, Numbers, Residues};
use blindcore_accel::conformance::{Limits, bigmod_within};
use blindcore_accel_cpu::{Cpu, Isa};

fn conforms(isa: Isa) {
    match Cpu::with_threads(isa.device_name(), 2) {
        Ok(device) => {
            assert_eq!(device.name(), isa.device_name());
            blindcore_accel::conformance::contract(&device);
            let words = blindcore_accel::conformance::transform(&device);
            assert!(words >= 100_000, "{words}");
            // AMX multiplies matrices and nothing else: its big numbers are those of AVX-512, of which a share is enough here.
            let share = if isa == Isa::Amx { 8 } else { 1 };
            let cases = bigmod_within(&device, Limits { share, ..Limits::NONE });
            assert!(cases >= 100_000 / share, "{cases}");
            for threads in [1, 2] {
                let device = Cpu::with_threads(isa.device_name(), threads).expect("opened before");
                let gates = blindcore_accel::conformance::garble(&device);
                assert!(gates.iter().all(|gates| *gates >= 20_000), "{gates:?}");
            }
        }
        Err(e) => eprintln!("skipped: {e}"),
    }
}

#[test]
fn portable() {
    conforms(Isa::Portable);
}

#[test]
fn avx2() {
    conforms(Isa::Avx2);
}

#[test]
fn avx512() {
    conforms(Isa::Avx512);
}

#[test]
fn amx() {
    conforms(Isa::Amx);
}

#[test]
fn unknown_names_are_refused_with_a_remedy() {
    for name in ["", "cpu:", "cpu:avx1024", "gpu"] {
        let error = Cpu::open(name).err().expect("refused").to_string();
        assert!(error.contains("cpu:portable"), "{error}");
    }
}

/// A form of a stranger, who says that it is an engine's.
#[derive(Clone, PartialEq)]
struct Forged(&'static str, usize);

impl Form for Forged {
    fn name(&self) -> &str {
        self.0
    }

    fn row_lines(&self) -> usize {
        self.1
    }
}

#[test]
fn rows_of_another_device_or_length_are_refused() {
    let modulus = BigModulus::odd(&[u64::MAX; 32]).expect("odd");
    let shared = Arc::new(modulus.clone());
    for isa in Isa::available() {
        let device = Cpu::open(isa.device_name()).expect("available");
        let bigmod = device.bigmod(&modulus).expect("any modulus");
        let mut good = bigmod.place(&Numbers::zeroed(2, 32)).expect("zero is below it");
        let mut refused = |other: &Residues| {
            assert!(bigmod.square(other, 1).is_err(), "{isa:?}");
            assert!(bigmod.multiply(&good, other).is_err());
            assert!(bigmod.read(other).is_err());
            assert!(bigmod.fixed_base(other, 8).is_err());
            assert!(good.append(other).is_err());
        };
        for form in ["cpu:portable", "cpu:avx2", "cpu:avx512"] {
            for lines in [0, 1, 3, 4, 5, 6] {
                let forged = Residues::new(&shared, HostRows::zeroed(Forged(form, lines), 1));
                assert_eq!(forged.len(), usize::from(lines != 0));
                refused(&forged);
            }
        }
        // An engine's own rows are another length, or in another form, where the modulus is another.
        for words in [1, 31, 33, 64] {
            let other =
                device.bigmod(&BigModulus::odd(&vec![u64::MAX; words]).expect("odd")).expect("any modulus");
            refused(&other.place(&Numbers::zeroed(1, words)).expect("zero is below it"));
        }
        if isa != Isa::Portable {
            let portable =
                Cpu::open("cpu:portable").expect("available").bigmod(&modulus).expect("any modulus");
            refused(&portable.place(&Numbers::zeroed(1, 32)).expect("zero is below it"));
        }
    }
}
