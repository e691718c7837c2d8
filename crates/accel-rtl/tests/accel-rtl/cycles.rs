//! Cycles are exact, so what the hardware must reach is tested. `--nocapture` shows the figures.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why, and these print figures")]

use blindcore_accel::contract::Shape;
use blindcore_accel::{Cost, Word};
use blindcore_accel_rtl::onionchopper::mapping::{Mapping, Order};
use blindcore_accel_rtl::onionchopper::measure::{self, THESIS_CYCLES, coefficients, million, moduli};
use blindcore_accel_rtl::onionchopper::{OnionChopper, Options};
use blindcore_math::Modulus;

/// A chip; none where it has not been built, unless BLINDCORE_RTL says that it has.
fn open(name: &str, options: Options) -> Option<OnionChopper> {
    let missing = |e| match std::env::var_os("BLINDCORE_RTL") {
        Some(_) => panic!("{e}"),
        None => eprintln!("skipped: {e}"),
    };
    OnionChopper::with_options(name, options).map_err(missing).ok()
}

/// Runs a shape, whose answer is checked, and checks that every clock has one cause.
fn measure(device: &OnionChopper, shape: &Shape) -> Cost {
    let h = measure::run(device, shape).unwrap_or_else(|e| panic!("{}, {shape}: {e}", device.name()));
    assert_eq!(h.bounds.iter().map(|bound| bound.cycles).sum::<u64>(), h.cycles, "{h:?}");
    h
}

/// Words that the SSD brought.
fn read(cost: &Cost) -> f64 {
    cost.level("SSD").map_or(0, |ssd| ssd.read / 64) as f64
}

#[test]
fn both_lanes_are_busy_when_the_ssd_is_not_the_limit() {
    let options = Options { resident: true, ..Options::default() };
    let Some(device) = open("rtl:onionchopper", options) else { return };
    let h = measure(&device, &million());
    let busy = h.bound("lanes") as f64 / h.cycles as f64;
    eprintln!("2^20 multiply-accumulates, two lanes, database in the DRAM: {:.4} busy, {h:?}", busy);
    assert_eq!(h.points, 1 << 20);
    assert!(busy >= 0.97, "{busy}");
}

#[test]
fn the_ssd_is_saturated_when_it_is_the_limit() {
    let Some(device) = open("rtl:onionchopper", Options::default()) else { return };
    let h = measure(&device, &million());
    let rate = read(&h) / h.cycles as f64;
    eprintln!("2^20 multiply-accumulates from the SSD: {rate:.4} words a clock of 0.67, {h:?}");
    assert!(rate >= 0.99 * 0.67, "{rate}");
}

#[test]
fn the_thesiss_64_gb_take_its_cycles() {
    let Some(device) = open("rtl:onionchopper", Options::default()) else { return };
    let [one, two] = [1, 2].map(|d| measure(&device, &coefficients(d)).cycles);
    let (all, published) = (measure::thesis(one, two), THESIS_CYCLES);
    let off = all as f64 / published as f64 - 1.0;
    eprintln!(
        "64 GB: {one} clocks for a coefficient, {} for each more: {all}, {off:+.5} of {published}",
        two - one
    );
    assert!(off.abs() < 0.01, "{all}");
}

#[test]
fn eight_clients_take_little_longer_than_one() {
    let Some(thesis) = open("rtl:onionchopper", Options::default()) else { return };
    let Some(gathered) = open("rtl:onionchopper-gathered", Options::default()) else { return };
    // Wide, as databases are: the eight queries themselves come from the SSD too, and are small against it.
    let shape = measure::wide();
    let one = measure(&thesis, &shape).cycles;
    let eight = measure(&gathered, &Shape { m: 8, ..shape });
    let ratio = eight.cycles as f64 / one as f64;
    eprintln!("eight clients gathered: {} clocks, {ratio:.4} of one client's {one}, {eight:?}", eight.cycles);
    assert!(ratio <= 1.1, "{ratio}");
}

#[test]
fn words_of_32_bits_answer_lookups_by_learning_with_errors() {
    let Some(device) = open("rtl:onionchopper-lwe", Options::default()) else { return };
    for (n, j, m) in [(1, 1, 1), (17, 65, 3), (64, 300, 2), (300, 70, 1)] {
        measure(&device, &Shape { n, j, m, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) });
    }
    let h = measure(&device, &Shape { n: 256, j: 1024, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) });
    let rate = read(&h) / h.cycles as f64;
    eprintln!("256 rows by 1024 bytes modulo 2^32, from the SSD: {rate:.4} words a clock of 0.67, {h:?}");
    assert!(rate >= 0.98 * 0.67, "{rate}");
    let other = Shape::new(Word::U64, moduli());
    assert!(device.device().contract(&other).is_err_and(|e| e.to_string().contains("modulo 2^32 only")));
}

#[test]
fn every_mapping_gives_the_same_bits() {
    let shape = Shape { p: 3, n: 21, j: 70, d: 2, m: 2, ..Shape::new(Word::U64, moduli()) };
    let thesis = Mapping::thesis();
    let mut cycles = Vec::new();
    for mapping in [
        thesis,
        Mapping { order: Order::OutputStationary, ..thesis },
        Mapping { literal: true, ..thesis },
        Mapping { js: 1, ns: 1, ps: 1, ..thesis },
        Mapping { jr: 4, js: 4, ns: 3, ps: 2, ..thesis },
        Mapping { jr: 4, js: 1, ns: 1, ps: 2, order: Order::OutputStationary, ..thesis },
    ] {
        let options = Options { mapping: Some(mapping), resident: true, ..Options::default() };
        let Some(device) = open("rtl:onionchopper", options) else { return };
        let h = measure(&device, &shape);
        eprintln!(
            "{mapping:?}: {} clocks, {:.3} busy, {:?}",
            h.cycles,
            h.bound("lanes") as f64 / h.cycles as f64,
            h.bounds
        );
        cycles.push(h.cycles);
    }
    assert!(cycles[2] > 2 * cycles[0], "one accumulator waits for itself where the columns are innermost");
}

#[test]
fn deeper_pipelines_give_the_same_bits() {
    let Some(device) = open("rtl:onionchopper-deep", Options::default()) else { return };
    for shape in [
        Shape { p: 2, n: 9, j: 40, k: 2, d: 2, ..Shape::new(Word::U64, moduli()) },
        Shape { n: 5, j: 70, m: 3, ..Shape::new(Word::U64, vec![Modulus::Pow2_64]) },
        Shape { n: 3, j: 9, m: 2, d: 3, ..Shape::new(Word::U32, vec![Modulus::Pow2_32, moduli()[0]]) },
    ] {
        measure(&device, &shape);
    }
}
