//! SHA-256 (FIPS 180-4).
//!
//! Messages, blocks and digests are numbers, the first byte the most significant, so that they read as their
//! usual hexadecimal form.

use crate::builder::{Bit, Builder};
use crate::gadgets::arithmetic::Columns;

/// The first 32 bits after the point of the cube roots of the first 64 primes, or the square roots of the first 8
/// (FIPS 180-4, sections 4.2.2 and 5.3.3).
fn fractions_of_roots(count: usize, degree: u32) -> Vec<u128> {
    let primes = (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    primes
        .take(count)
        .map(|prime| {
            let scaled = prime << (32 * degree);
            // The greatest number whose power is not above: bit by bit.
            let root = (0..38).rev().fold(0u128, |root, bit| {
                let tried = root | 1 << bit;
                if tried.checked_pow(degree).is_some_and(|power| power <= scaled) { tried } else { root }
            });
            root & 0xffff_ffff
        })
        .collect()
}

impl Builder {
    /// The state of SHA-256 before its first block: 256 bits.
    #[must_use]
    pub(crate) fn sha256_start(&self) -> Vec<Bit> {
        let words = fractions_of_roots(8, 2);
        words.iter().rev().flat_map(|w| self.constant_word(*w, 32)).collect()
    }

    /// SHA-256's compression: the state (256 bits) after a block (512 bits). 22,271 ANDs: fewer than the 22,573 of
    /// the well-known circuit in Bristol Fashion, since sums of several words keep their carries apart.
    ///
    /// # Panics
    /// Other widths.
    pub fn sha256_compress(&mut self, state: &[Bit], block: &[Bit]) -> Vec<Bit> {
        assert_eq!((state.len(), block.len()), (256, 512), "SHA-256 has a state of 256 bits, blocks of 512");
        // The first word stands on top.
        let words = |bits: &[Bit]| bits.chunks(32).rev().map(<[Bit]>::to_vec).collect::<Vec<_>>();
        let mut schedule = words(block);
        for t in 16..64 {
            let low = self.xor_of_rotations(&schedule[t - 15], [7, 18], 3, false);
            let high = self.xor_of_rotations(&schedule[t - 2], [17, 19], 10, false);
            let terms = [low, high, schedule[t - 7].clone(), schedule[t - 16].clone()];
            let word = self.sum(&terms, 32);
            schedule.push(word);
        }
        let before = words(state);
        let mut s = before.clone();
        for (constant, word) in fractions_of_roots(64, 3).into_iter().zip(&schedule) {
            let high = self.xor_of_rotations(&s[4], [6, 11], 25, true);
            let chosen: Vec<Bit> = (0..32).map(|i| self.mux(s[4][i], s[5][i], s[6][i])).collect();
            let mut columns = Columns::new(32);
            let key = self.constant_word(constant, 32);
            [&s[7], &high, &chosen, word, &key].into_iter().for_each(|term| columns.add(0, term));
            let first = columns.sum(self);
            let low = self.xor_of_rotations(&s[0], [2, 13], 22, true);
            let majority: Vec<Bit> = (0..32).map(|i| self.full_add(s[0][i], s[1][i], s[2][i]).1).collect();
            let next_a = self.sum(&[first.clone(), low, majority], 32);
            let next_e = self.add(&s[3], &first);
            s.rotate_right(1);
            s[0] = next_a;
            s[4] = next_e;
        }
        let after: Vec<Vec<Bit>> = before.iter().zip(&s).map(|(b, s)| self.add(b, s)).collect();
        after.into_iter().rev().flatten().collect()
    }

    /// The SHA-256 digest (256 bits) of a message of this many bits, padded as it is hashed.
    pub fn sha256(&mut self, message: &[Bit]) -> Vec<Bit> {
        let blocks = (message.len() + 1 + 64).div_ceil(512);
        let mut padded = self.constant_word(message.len() as u128, 64);
        padded.resize(512 * blocks - message.len() - 1, Bit::ZERO);
        padded.push(Bit::ONE);
        padded.extend(message);
        padded.chunks(512).rev().fold(self.sha256_start(), |state, block| self.sha256_compress(&state, block))
    }

    /// The XOR of a word rotated right by two numbers, and by a third or shifted by it.
    fn xor_of_rotations(&mut self, word: &[Bit], by: [usize; 2], last: usize, rotate: bool) -> Vec<Bit> {
        let right = |c: &Self, n: usize| c.rotate_left(word, 32 - n);
        let (first, second) = (right(self, by[0]), right(self, by[1]));
        let third = if rotate { right(self, last) } else { self.shift_right(word, last, Bit::ZERO) };
        let two = self.xor_word(&first, &second);
        self.xor_word(&two, &third)
    }
}
