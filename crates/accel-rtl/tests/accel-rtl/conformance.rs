//! Every simulated chip runs the shared suite, where its library has been built.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use blindcore_accel::contract::Shape;
use blindcore_accel::{Error, Word};
use blindcore_accel_rtl::onionchopper::{OnionChopper, measure};
use blindcore_accel_rtl::sifo::{Overlay, OverlaySettings, half_gates};
use blindcore_math::Modulus;

/// A chip; none where it has not been built, unless BLINDCORE_RTL says that it has.
fn open(name: &str) -> Option<OnionChopper> {
    OnionChopper::open(name).map_err(|e| missing(&e)).ok()
}

fn missing(e: &Error) {
    match std::env::var_os("BLINDCORE_RTL") {
        Some(_) => panic!("{e}"),
        None => eprintln!("skipped: {e}"),
    }
}

/// SIFO's overlay, with a host and memory that take no time and little block RAM, so that both memories are used.
#[test]
fn sifo() {
    let settings = OverlaySettings { block_ram: 100, ..OverlaySettings::INSTANT };
    match Overlay::with_settings("rtl:sifo", settings) {
        Ok(device) => {
            let [.., gates] = blindcore_accel::conformance::garble(&device.device());
            assert!(gates >= 20_000, "{gates}");
        }
        Err(e) => missing(&e),
    }
}

/// Today's overlay garbles and evaluates, on as many lanes as it has and on fewer.
#[test]
fn sifo_half_gates() {
    let settings = half_gates::HalfGatesSettings { ddr_ns: 20.0, ..half_gates::HalfGatesSettings::UNBOUND };
    match half_gates::HalfGates::with_settings("rtl:sifo-half-gates", settings) {
        Ok(device) => {
            let [gates, ..] = blindcore_accel::conformance::garble(&device.device());
            assert!(gates >= 20_000, "{gates}");
        }
        Err(e) => missing(&e),
    }
}

#[test]
fn onionchopper() {
    let Some(device) = open("rtl:onionchopper") else { return };
    blindcore_accel::conformance::contract(&device.device());
}

/// Sixteen lanes simulate slowly, so this chip runs a part of what the suite has: every kind of modulus, and queries that
/// fill its groups, do not, and need several passes' worth.
#[test]
fn onionchopper_gathered() {
    let Some(device) = open("rtl:onionchopper-gathered") else { return };
    let mut moduli = measure::moduli();
    moduli.extend([Modulus::Pow2_32, Modulus::Pow2_64, Modulus::prime(65537).expect("prime")]);
    let bytes = Shape { n: 37, j: 150, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) };
    for m in [1, 2, 8, 9, 19] {
        measure::run(&device, &Shape { m, ..bytes.clone() }).expect("a shape that fits");
    }
    let mixed = Shape { p: 2, q: 2, k: 2, n: 5, j: 13, d: 3, ..Shape::new(Word::U64, moduli) };
    for m in [1, 4, 11] {
        measure::run(&device, &Shape { m, ..mixed.clone() }).expect("a shape that fits");
    }
}
