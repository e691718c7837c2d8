//! Answers: ciphertexts modulo q rounded to a few bits, and slots read from them.
//!
//! The client's side is constant time: no branch, index or division that a selection, a secret or a message decides.

use blindcore_rlwe::rounding::{Rounding, pack, packed_bytes, unpack};
use blindcore_rlwe::{Pair, Poly, Ring, Values};
use zeroize::Zeroizing;

use super::residues::signed;
use super::tree::{DEGREE, Tree};
use super::{LANE, LANE_BITS, Pads, Place, Places, Secret};
use crate::{Selection, constant_time};

/// The first `kept` coefficients of a polynomial modulo q, rounded to `bits`.
pub(in crate::schemes) fn rounded(half: Poly<Values>, bits: u32, kept: usize) -> Vec<u64> {
    rounded_in(Tree::get().small(), half, bits, kept)
}

/// The same in another ring, of one prime.
fn rounded_in(ring: &Ring, half: Poly<Values>, bits: u32, kept: usize) -> Vec<u64> {
    let rounding = Rounding::new(ring.primes()[0], bits);
    let half = ring.inverse(half);
    half.words()[..kept].iter().map(|word| rounding.down(*word)).collect()
}

/// How a ciphertext is sent: bits of its mask and of its body, and how many coefficients of the body.
#[derive(Clone, Copy)]
pub(in crate::schemes) struct Sent {
    pub(in crate::schemes) mask_bits: u32,
    pub(in crate::schemes) body_bits: u32,
    pub(in crate::schemes) kept: usize,
}

impl Sent {
    pub(in crate::schemes) fn bytes(&self) -> usize {
        self.bytes_of(DEGREE)
    }

    /// The same for a ciphertext of another degree.
    pub(in crate::schemes) fn bytes_of(&self, degree: usize) -> usize {
        packed_bytes(degree, self.mask_bits) + packed_bytes(self.kept, self.body_bits)
    }

    /// Appends the bytes of a ciphertext.
    pub(in crate::schemes) fn write(&self, pair: &Pair, answer: &mut Vec<u8>) {
        self.write_in(Tree::get().small(), pair, answer);
    }

    /// The same for a ciphertext in another ring, of one prime.
    pub(in crate::schemes) fn write_in(&self, ring: &Ring, pair: &Pair, answer: &mut Vec<u8>) {
        let mask = rounded_in(ring, pair.mask.clone(), self.mask_bits, ring.degree());
        pack(&mask, self.mask_bits, answer);
        pack(&rounded_in(ring, pair.body.clone(), self.body_bits, self.kept), self.body_bits, answer);
    }

    /// What each coefficient is, with noise, modulo 2^`mask_bits` of the whole.
    pub(in crate::schemes) fn phases(&self, secret: &Secret, bytes: &[u8]) -> Zeroizing<Vec<u64>> {
        self.phases_in(Tree::get().large(), secret, bytes)
    }

    /// The same where the secret's values are in another ring, of one prime.
    pub(in crate::schemes) fn phases_in(
        &self,
        ring: &Ring,
        secret: &Secret,
        bytes: &[u8],
    ) -> Zeroizing<Vec<u64>> {
        let (mask, body) = bytes.split_at(packed_bytes(ring.degree(), self.mask_bits));
        let mask = unpack(mask, self.mask_bits).take(ring.degree()).collect();
        let body = unpack(body, self.body_bits).map(|body| body << (self.mask_bits - self.body_bits));
        phases_at(ring, secret, mask, 0..self.kept, body)
    }
}

/// The first `kept` coefficients of a body less its mask times the secret, modulo 2^64. The mask's words have 22 bits at most.
pub(in crate::schemes) fn phases(
    secret: &Secret,
    mask: Vec<u64>,
    kept: usize,
    body: impl Iterator<Item = u64>,
) -> Zeroizing<Vec<u64>> {
    phases_at(Tree::get().large(), secret, mask, 0..kept, body)
}

/// The same of coefficients `at`, in a ring of keys.
pub(in crate::schemes) fn phases_at(
    ring: &Ring,
    secret: &Secret,
    mask: Vec<u64>,
    at: impl ExactSizeIterator<Item = usize>,
    body: impl Iterator<Item = u64>,
) -> Zeroizing<Vec<u64>> {
    let q = ring.modulus() as u64;
    let mut product = Zeroizing::new(ring.forward(ring.polynomial(mask).expect("words of a few bits")));
    ring.multiply(&mut product, secret.values());
    let product = Zeroizing::new(ring.inverse(std::mem::replace(&mut *product, ring.zero())));
    // A sum of 4096 words of 22 bits is far below q / 2. All room is taken at once, so that nothing is left where it grew.
    let mut phases = Zeroizing::new(Vec::with_capacity(at.len()));
    phases.extend(at.zip(body).map(|(at, body)| body.wrapping_sub(signed(q, product.words()[at]))));
    phases
}

/// What a phase, of so many bits, rounds to.
pub(in crate::schemes) fn nearest(phase: u64, phase_bits: u32, bits: u32) -> u64 {
    let step = phase_bits - bits;
    (phase.wrapping_add(1 << (step - 1)) >> step) & ((1 << bits) - 1)
}

/// The slot whose part `i` has phases `part(i)`, each of so many bits: its lanes, where its place is, less the pads of its columns.
pub(in crate::schemes) fn read(
    places: &Places,
    pads: &Pads,
    selection: &Selection,
    record_bytes: usize,
    phase_bits: u32,
    part: impl Fn(usize) -> Zeroizing<Vec<u64>>,
) -> Zeroizing<Vec<u8>> {
    let group = selection.group();
    let mut slot = Zeroizing::new(Vec::with_capacity(places.parts * places.part_bytes + 8));
    let mut lanes = Zeroizing::new(vec![0u16; places.width]);
    let mut pad = Zeroizing::new(vec![0; places.degree]);
    for number in 0..places.parts {
        let phases = part(number);
        let Place { fine, .. } = places.place(0, group);
        lanes.fill(0);
        for this in 0..places.fine {
            let here = constant_time::equal_mask(this as u32, fine) as u16;
            let phases = &phases[places.offset(this)..][..places.width];
            let lane = |phase| nearest(phase, phase_bits, LANE_BITS) as u16;
            lanes.iter_mut().zip(phases).for_each(|(to, phase)| *to |= lane(*phase) & here);
        }
        // Each column's pad lies where its slot does.
        for column in selection.columns() {
            let Place { row, coarse, output, fine } = places.place(*column, group);
            let polynomial = u64::from(output) * places.parts as u64 + number as u64;
            pads.of(polynomial * places.rows as u64 + u64::from(row), &mut pad[..]);
            for (this_coarse, this_fine) in
                (0..places.coarse).flat_map(|coarse| (0..places.fine).map(move |fine| (coarse, fine)))
            {
                let here = constant_time::equal_mask(this_coarse as u32, coarse)
                    & constant_time::equal_mask(this_fine as u32, fine);
                let pad = &pad[places.position(this_coarse, this_fine)..][..places.width];
                lanes
                    .iter_mut()
                    .zip(pad)
                    .for_each(|(lane, pad)| *lane = lane.wrapping_sub(pad & here as u16));
            }
        }
        let words = Zeroizing::new(lanes.iter().map(|lane| u64::from(lane & LANE)).collect::<Vec<_>>());
        let start = slot.len();
        pack(&words, LANE_BITS, &mut slot);
        slot.truncate(start + places.part_bytes);
    }
    slot.truncate(record_bytes);
    slot
}
