//! Words of few bits that lie without gaps, least significant bit first; and words of few bytes.
//!
//! ```
//! use blindcore_math::lanes;
//!
//! let mut words = [0; 4];
//! lanes::unpack(&[0b1_00101, 0b0100_0111], 5, &mut words);
//! assert_eq!(words, [0b00101, 0b11001, 0b10001, 0]);
//! ```

use crate::Prime;
use crate::arch;

/// The most bits of a word: eight bytes have room for one, wherever in a byte it begins.
pub const MAX_BITS: u32 = 57;

/// Words of `width` bits from bytes; where the bytes end, bits are zeros.
///
/// # Panics
/// `width` is not from 1 to [`MAX_BITS`].
pub fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) {
    assert!((1..=MAX_BITS).contains(&width), "words of {width} bits are outside 1 to {MAX_BITS}");
    arch::unpack(bytes, width, out);
}

/// As [`unpack`], to words of 16 bits.
///
/// # Panics
/// `width` is not from 1 to 16.
pub fn unpack_short(bytes: &[u8], width: u32, out: &mut [u16]) {
    assert!((1..=16).contains(&width), "words of {width} bits are outside 1 to 16");
    arch::unpack_short(bytes, width, out);
}

/// The largest of the whole words of `width` bits, or 0 if there are none.
///
/// # Panics
/// `width` is not from 1 to [`MAX_BITS`].
#[must_use]
pub fn largest(bytes: &[u8], width: u32) -> u64 {
    assert!((1..=MAX_BITS).contains(&width), "words of {width} bits are outside 1 to {MAX_BITS}");
    arch::largest(bytes, width)
}

/// The low `bits` bits of each lane as a residue modulo `prime`, from -2^(`bits` - 1) to 2^(`bits` - 1) - 1.
///
/// # Panics
/// The lengths differ, or `bits` is not from 1 to 16, or the prime is not larger than 2^`bits`.
pub fn centre(prime: Prime, bits: u32, lanes: &[u16], out: &mut [u64]) {
    assert!((1..=16).contains(&bits) && prime.value() >> bits > 0, "{bits} bits are outside 1 to 16");
    assert_eq!(out.len(), lanes.len(), "a residue for each lane");
    arch::centre(prime.value(), bits, lanes, out);
}

/// Writes the low `bytes` bytes of each value: runs of `run` values without gaps, each run `step` bytes after the one before.
///
/// # Panics
/// `bytes` is not from 1 to 8, a run is longer than a step, or `out` ends before the last run.
pub fn store(values: &[u64], bytes: usize, run: usize, out: &mut [u8], step: usize) {
    assert!((1..=8).contains(&bytes) && run > 0 && run * bytes <= step, "runs of {run} times {bytes} bytes");
    let runs = values.len().div_ceil(run);
    if let Some(others) = runs.checked_sub(1) {
        let needed = others * step + (values.len() - others * run) * bytes;
        assert!(out.len() >= needed, "{needed} bytes do not fit {}", out.len());
        arch::store(values, bytes, run, out, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{Level, limited_to};

    /// With the machine's kernels, and without.
    fn both(test: impl Fn()) {
        limited_to(Level::Avx512, &test);
        limited_to(Level::Portable, &test);
    }

    fn random(len: usize) -> Vec<u64> {
        let next =
            |x: &u64| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        std::iter::successors(Some(7), next).map(|x| x ^ x >> 29).take(len).collect()
    }

    #[test]
    fn words_are_the_bits_that_they_are_made_of() {
        let bytes: Vec<u8> = random(300).iter().map(|x| *x as u8).collect();
        let bit = |i: usize| bytes.get(i / 8).map_or(0, |byte| byte >> (i % 8) & 1);
        both(|| {
            for length in [0, 1, 2, 7, 8, 9, 11, 63, 64, 65, 256, 300] {
                let bit = |i: usize| if i < 8 * length { bit(i) } else { 0 };
                for width in 1..=MAX_BITS {
                    let whole = 8 * length / width as usize;
                    for count in [0, 1, 7, 8, whole, whole + 1, whole + 20] {
                        let of = |i: usize| {
                            (0..width as usize).map(|b| u64::from(bit(i * width as usize + b)) << b).sum()
                        };
                        let want: Vec<u64> = (0..count).map(of).collect();
                        if count == whole {
                            assert_eq!(
                                largest(&bytes[..length], width),
                                want.iter().copied().max().unwrap_or(0)
                            );
                        }
                        let mut words = vec![5; count];
                        unpack(&bytes[..length], width, &mut words);
                        assert!(words == want, "{count} words of {width} bits of {length} bytes");
                        if width <= 16 {
                            let mut words = vec![5; count];
                            unpack_short(&bytes[..length], width, &mut words);
                            assert!(words.iter().map(|word| u64::from(*word)).eq(want), "{count} of {width}");
                        }
                    }
                }
            }
        });
    }

    #[test]
    fn centred_lanes_are_their_numbers() {
        let lanes: Vec<u16> = [0, 1, 1023, 1024, 2047, 2048, u16::MAX]
            .into_iter()
            .chain(random(100).iter().map(|x| *x as u16))
            .collect();
        both(|| {
            for q in [65_537, (1 << 40) - 87, (1 << 61) - 1] {
                for bits in [1, 8, 11, 16] {
                    let mut out = vec![0; lanes.len()];
                    centre(Prime::new(q).unwrap(), bits, &lanes, &mut out);
                    for (lane, out) in lanes.iter().zip(out) {
                        let number = i128::from(*lane) % (1 << bits);
                        let number = if number >> (bits - 1) == 1 { number - (1 << bits) } else { number };
                        assert_eq!(i128::from(out), number.rem_euclid(i128::from(q)), "{lane}, {bits} bits");
                    }
                }
            }
        });
    }

    #[test]
    fn values_lie_in_their_runs() {
        both(|| {
            for bytes in 1..=8 {
                for (count, run, gap) in
                    [(0, 1, 0), (1, 1, 0), (64, 8, 120), (61, 8, 3), (20, 32, 0), (9, 3, 1)]
                {
                    let values = random(count);
                    let step = run * bytes + gap;
                    let mut out = vec![9; count.div_ceil(run) * step];
                    store(&values, bytes, run, &mut out, step);
                    let mut want = vec![9; out.len()];
                    for (i, value) in values.iter().enumerate() {
                        want[i / run * step + i % run * bytes..][..bytes]
                            .copy_from_slice(&value.to_le_bytes()[..bytes]);
                    }
                    assert!(out == want, "{count} values of {bytes} bytes in runs of {run}");
                }
            }
        });
    }

    #[test]
    #[should_panic(expected = "do not fit")]
    fn a_run_beyond_the_end_is_refused() {
        store(&[1, 2, 3], 2, 1, &mut [0; 11], 5);
    }
}
