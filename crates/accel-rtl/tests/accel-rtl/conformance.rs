//! Every simulated chip runs the shared suite, where its library has been built.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use std::sync::Arc;

use blindcore_accel::contract::{Contract, ContractCapabilities, ContractSlot, Shape};
use blindcore_accel::{Device, Error, Slots, Word};
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

/// A chip that takes what it simulates in a moment, so that the suite gives it its small shapes alone.
struct Small(OnionChopper);

/// The most multiply-accumulates that go into a small answer.
const SMALL: usize = 20_000;

impl ContractSlot for Small {
    fn capabilities(&self) -> ContractCapabilities {
        self.0.capabilities()
    }

    fn check(&self, shape: &Shape) -> Result<(), Error> {
        self.0.check(shape)?;
        let Shape { m, n, p, q, j, k, d, .. } = *shape;
        if m * n * p * q * j * k * d * shape.c() > SMALL {
            return Err(Error::Shape { shape: shape.to_string(), why: "it takes long to simulate".into() });
        }
        Ok(())
    }

    fn prepare(&self, shape: &Shape) -> Result<Arc<dyn Contract>, Error> {
        self.check(shape)?;
        self.0.prepare(shape)
    }
}

/// Every modulus, width and fill of the suite, in its small shapes. What large ones add runs once: columns and depths that
/// take many rounds of the register files, more queries than go at once, as many coefficients as real polynomials have.
/// `make test-long` sets `BLINDCORE_LONG`, for every fill of the large ones too.
#[test]
fn onionchopper() {
    let Some(chip) = open("rtl:onionchopper") else { return };
    let device = chip.device();
    if std::env::var_os("BLINDCORE_LONG").is_some() {
        blindcore_accel::conformance::contract(&device);
    }
    let slots = Slots { contract: Some(Arc::new(Small(chip.clone()))), ..Slots::default() };
    let databases = blindcore_accel::conformance::contract(&Device::new(device.description().clone(), slots));
    assert!(databases >= 1000, "{databases}");
    let bytes = Shape { n: 64, j: 4100, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) };
    let residues =
        Shape { n: 8, p: 2, j: 5, d: 2048, m: 2, ..Shape::new(Word::U40, measure::moduli()[1..].to_vec()) };
    for shape in [Shape { m: 67, j: 130, ..bytes.clone() }, Shape { m: 2, ..bytes }, residues] {
        measure::run(&chip, &shape).expect("a shape that fits");
    }
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
