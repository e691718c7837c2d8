//! The compute unit alone, at every pipeline depth that has been built, against the definition.

#![allow(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a test that is skipped says why, and this prints a rate")]

use std::time::Instant;

use blindcore_accel_rtl::find;
use blindcore_accel_rtl::onionchopper::descriptor::HardwareModulus;
use blindcore_math::Modulus;
use libloading::Library;

type Run = unsafe extern "C" fn(*const u64, u64, *mut u64, u64, u64, *mut u64, *mut u64) -> u64;

/// Sums of runs from the unit, the clocks that took, and on how many an operand was flagged.
struct Unit(Library);

impl Unit {
    fn open(file: &str) -> Option<Self> {
        // Nobody asks for the slow one in vain: only what `make -C hw libraries` makes is missed.
        let slow = file == "compute-unit-full-adder";
        let path = match find(file, file) {
            Ok(path) => path,
            Err(e) if slow || std::env::var_os("BLINDCORE_RTL").is_none() => {
                eprintln!("skipped: {e}");
                return None;
            }
            Err(e) => panic!("{e}"),
        };
        // SAFETY: our own library, whose initialisers only set up memory.
        Some(Self(unsafe { Library::new(path) }.expect("built for this machine")))
    }

    fn run(&self, inputs: &[[u64; 8]], sums: usize) -> (Vec<u64>, u64, u64) {
        let mut out = vec![0; sums];
        let (mut unreduced, mut clocks) = (0, 0);
        // SAFETY: the symbol has this type in hw/rtl/sim/unit.cpp; lengths are those of live slices.
        let found = unsafe {
            let run: Run = *self.0.get(b"unit_run").expect("exported");
            let inputs_at = inputs.as_ptr().cast();
            let (out_at, most) = (out.as_mut_ptr(), sums as u64);
            run(inputs_at, inputs.len() as u64, out_at, most, 4000, &raw mut unreduced, &raw mut clocks)
        };
        assert_eq!(found, sums as u64, "one sum a run");
        (out, unreduced, clocks)
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below n, one in three of them at an edge.
    fn residue(&mut self, n: u128) -> u64 {
        match self.next() % 6 {
            0 => 0,
            1 => (n - 1) as u64,
            _ => (u128::from(self.next()) % n) as u64,
        }
    }
}

fn agrees(file: &str, terms: usize) {
    let Some(unit) = Unit::open(file) else { return };
    let mut random = Random(7);
    let primes = [2, 3, 65537, 4_294_967_291, 1_152_921_504_606_830_593, (1 << 62) - 57];
    let mut moduli: Vec<Modulus> = primes.map(|p| Modulus::prime(p).expect("prime")).to_vec();
    moduli.extend([Modulus::Pow2_32, Modulus::Pow2_64]);
    let (mut inputs, mut want) = (Vec::new(), Vec::new());
    while inputs.len() < terms {
        let modulus = moduli[(random.next() % moduli.len() as u64) as usize];
        let HardwareModulus { n, m } = modulus.into();
        let length = [1, 1, 2, 3, 8, 64, 255][(random.next() % 7) as usize];
        let mut sum = 0;
        for i in 0..length {
            let words =
                |a, b, c, flags| [a, b, c, n as u64, (n >> 64) as u64, m as u64, (m >> 64) as u64, flags];
            if random.next().is_multiple_of(16) {
                inputs.push(words(0, 0, 0, 0)); // a clock without anything, in the middle of a run
            }
            let [a, b, c] = [(); 3].map(|()| random.residue(n));
            sum = modulus.mul_add(a, b, if i == 0 { c } else { sum });
            inputs.push(words(a, b, c, 1 | u64::from(i == 0) << 1 | u64::from(i + 1 == length) << 2));
        }
        want.push(sum);
    }
    let start = Instant::now();
    let (got, unreduced, clocks) = unit.run(&inputs, want.len());
    let rate = clocks as f64 / start.elapsed().as_secs_f64();
    eprintln!("{file}: {clocks} clocks, {:.2} million per second", rate / 1e6);
    assert_eq!(unreduced, 0);
    assert!(got == want, "{file}: sum {:?}", (0..want.len()).find(|i| got[*i] != want[*i]));

    // An operand that is its modulus is flagged, each of the three.
    let HardwareModulus { n, m } = moduli[4].into();
    let n_word = n as u64;
    for [a, b, c] in [[n_word, 1, 1], [1, n_word, 1], [1, 1, n_word]] {
        let input = [a, b, c, n_word, 0, m as u64, (m >> 64) as u64, 0b111];
        let (_, unreduced, _) = unit.run(&[input], 1);
        assert_eq!(unreduced, 1, "{a} {b} {c}");
    }
}

#[test]
fn six_stages() {
    agrees("compute-unit", 1_000_000);
}

#[test]
fn eight_full_adders_a_stage() {
    agrees("compute-unit-deep", 50_000);
}

#[test]
fn one_full_adder_a_stage() {
    agrees("compute-unit-full-adder", 2000);
}
