//! The client's half. Constant time: no branch, index or division that a selection, a secret or a message decides.

use blindcore_math::ntt::Ntt;
use blindcore_math::{Elementwise, MaskSeed, SecretRng};
use blindcore_rlwe::inspiring::Packing;
use blindcore_rlwe::rounding::{Rounding, pack, packed_bytes, unpack};
use zeroize::Zeroizing;

use super::params::{BODY_BITS, DEGREE, ERROR_PAIRS, MASK_BITS, Packed, SEED_BYTES, Set, blocks};
use super::prepare::Public;
use crate::{Decoded, Error, Params, SchemeClient, Selection, constant_time};

/// Words are secret until they are sent.
type Secret<T> = Zeroizing<Vec<T>>;

pub(super) struct HintlessClient {
    params: Params,
    packed: Packed,
    seed: [u8; SEED_BYTES],
    public: Public,
    packing: &'static Packing,
}

/// Encryptions of nothing under a secret of their own, but for the packing key, which is whole.
pub(super) struct Prepared {
    /// s, by values.
    secret: Secret<u64>,
    /// (A_k s)(X^-1) + e, by coefficients.
    first: Secret<u64>,
    /// The packing keys.
    keys: Vec<u8>,
    /// For picking: the masks' seed, and a_i s + e by values.
    picking: Option<([u8; SEED_BYTES], Vec<Secret<u64>>)>,
}

pub(super) struct Pending {
    secret: Secret<u64>,
    group: Zeroizing<u32>,
    /// How many columns were picked: as many for every key.
    picked: usize,
}

impl HintlessClient {
    pub(super) fn new(set: &'static Set, params: &Params, seed: [u8; SEED_BYTES]) -> Self {
        let packed = Packed::new(set, &params.geometry);
        let public = Public::new(set, &seed, params.geometry.columns);
        Self { params: *params, packed, seed, public, packing: packed.packing() }
    }

    fn set(&self) -> &'static Set {
        self.packed.set
    }

    fn ntt(&self) -> &Ntt {
        self.packing.ntt()
    }

    /// The group's ciphertext among the choices, and its place among the groups of a ciphertext.
    fn place(&self, group: u32) -> (u32, u32) {
        let (choice, place) = constant_time::divide(group.into(), self.packed.groups as u64);
        (choice as u32, place as u32)
    }

    /// What each coefficient of an answer's ciphertexts is, with noise, modulo 2^17 ([`MASK_BITS`]) of the whole.
    fn phases(&self, pending: &Pending, answer: &[u8]) -> Secret<u64> {
        let (modulo, q) = (Elementwise::new(self.set().prime()), self.set().prime().value());
        let mut phases = Zeroizing::new(Vec::with_capacity(self.packed.sent() * self.packed.count));
        for ciphertext in answer.chunks_exact(self.packed.sent_bytes()) {
            let (mask, body) = ciphertext.split_at(packed_bytes(DEGREE, MASK_BITS));
            let mut product: Secret<u64> = Zeroizing::new(unpack(mask, MASK_BITS).take(DEGREE).collect());
            self.ntt().forward(&mut product);
            modulo.multiply(&mut product, &pending.secret);
            self.ntt().inverse(&mut product);
            let bodies = unpack(body, BODY_BITS).take(self.packed.count);
            let phase = |(body, product): (u64, &u64)| {
                (body << (MASK_BITS - BODY_BITS)).wrapping_sub(signed(q, *product))
            };
            phases.extend(bodies.zip(product.iter()).map(phase));
        }
        phases
    }

    /// 2^`w` z^`choice`, by coefficients.
    fn monomial(&self, w: u32, choice: u32, picks: usize) -> Secret<u64> {
        let power = choice.wrapping_mul((2 * DEGREE / picks) as u32);
        let (one, minus) = (1u64 << w, self.set().prime().value() - (1 << w));
        let mut out = Zeroizing::new(vec![0; DEGREE]);
        for (i, out) in (0u32..).zip(out.iter_mut()) {
            // X^d = -1.
            let here = wide(constant_time::equal_mask(i, power));
            let beyond = wide(constant_time::equal_mask(i + DEGREE as u32, power));
            *out = (one & here) | (minus & beyond);
        }
        out
    }
}

impl SchemeClient for HintlessClient {
    type Keys = ();
    type Prepared = Prepared;
    type Pending = Pending;

    fn prepare(&self, (): &()) -> Result<Prepared, Error> {
        let mut rng = SecretRng::from_os()?;
        let mut draws = Draws::new(&mut rng, self.ntt());
        let secret = draws.secret();
        let columns = self.params.geometry.columns;
        let mut first = Zeroizing::new(vec![0; blocks(columns) * DEGREE]);
        for (out, mask) in first.chunks_exact_mut(DEGREE).zip(self.public.matrix.chunks_exact(DEGREE)) {
            out.copy_from_slice(mask);
            draws.modulo.multiply(out, &secret);
            self.ntt().inverse(out);
            invert(self.set().prime().value(), out);
            let errors = draws.errors();
            draws.modulo.add(out, &errors);
        }
        let mut keys = Vec::with_capacity(self.public.keys.len() * self.set().polynomial_bytes());
        let mut message = Zeroizing::new(vec![0; DEGREE]);
        for (digit, mask) in self.public.keys.iter().enumerate() {
            let mut key = draws.encryption(mask, &secret);
            self.packing.key_message(digit, &secret, &mut message);
            draws.modulo.add(&mut key, &message);
            pack(&key, self.set().residue_bits(), &mut keys);
        }
        let picking = match self.packed.picks {
            None => None,
            Some(_) => {
                // The seed is sent. It is drawn apart, so that it says nothing of the stream that secrets are drawn from.
                let mut seed = [0; SEED_BYTES];
                SecretRng::from_os()?.fill(&mut seed);
                let mut row = |number| {
                    let mut mask = vec![0; DEGREE];
                    MaskSeed(seed).polynomial(number, self.set().prime(), &mut mask);
                    draws.encryption(&mask, &secret)
                };
                let rows = (0..2 * self.set().picking.count as u64).map(&mut row).collect();
                Some((seed, rows))
            }
        };
        Ok(Prepared { secret, first, keys, picking })
    }

    fn query(&self, prepared: Prepared, selection: &Selection) -> (Vec<u8>, Pending) {
        let Prepared { secret, mut first, keys, picking } = prepared;
        let columns = self.params.geometry.columns;
        let (set, prime) = (self.set(), self.set().prime());
        let (q, delta) = (prime.value(), set.delta());
        let mut query = Vec::with_capacity(self.params.query_bytes());
        let rounding = Rounding::new(prime, set.query_bits(&self.params.geometry));
        for (i, word) in (0u32..).zip(first.iter_mut().take(columns)) {
            for column in selection.columns() {
                let sum = *word + (delta & wide(constant_time::equal_mask(i, *column)));
                *word = sum.min(sum.wrapping_sub(q));
            }
            *word = rounding.down(*word);
        }
        pack(&first[..columns], rounding.bits(), &mut query);
        query.extend(keys);
        if let (Some(picks), Some((seed, mut rows))) = (self.packed.picks, picking) {
            let modulo = Elementwise::new(prime);
            let (choice, _) = self.place(selection.group());
            query.extend(seed);
            let digits = set.picking.digits(prime);
            for (digit, rows) in rows.chunks_exact_mut(2).enumerate() {
                let mut message = self.monomial(digits.weight(digit), choice, picks);
                self.ntt().forward(&mut message);
                modulo.add(&mut rows[0], &message);
                modulo.multiply(&mut message, &secret);
                modulo.subtract(&mut rows[1], &message);
                rows.iter().for_each(|row| pack(row, set.residue_bits(), &mut query));
            }
        }
        let picked = selection.columns().len();
        (query, Pending { secret, group: Zeroizing::new(selection.group()), picked })
    }

    fn decode(&self, pending: Pending, answer: &[u8]) -> Decoded {
        let Packed { count, groups, parts, picks, .. } = self.packed;
        let record_bytes = self.params.geometry.record_bytes;
        let (choice, place) = self.place(*pending.group);
        let (reach, mut outside) = (self.set().reach(&self.params.geometry), 0);
        let mut slot = Zeroizing::new(vec![0u8; record_bytes]);
        let offset = (128 * pending.picked) as u8;
        // A mask of zeros hides nothing and has no noise; no honest one is.
        let mask_bytes = packed_bytes(DEGREE, MASK_BITS);
        for ciphertext in answer.chunks_exact(self.packed.sent_bytes()) {
            let any = ciphertext[..mask_bytes].iter().fold(0, |any, byte| any | byte);
            outside |= u64::from(any == 0) << 63;
        }
        for (i, phases) in self.phases(&pending, answer).chunks_exact(count).enumerate() {
            let byte = |phase: &u64| {
                let (byte, noise) = round(*phase);
                outside |= reach.wrapping_sub(noise);
                byte.wrapping_add(offset)
            };
            let bytes: Secret<u8> = Zeroizing::new(phases.iter().map(byte).collect());
            // Of all that were sent the choice's counts; of a picked one's, all do.
            let (this, part) = if picks.is_some() { (choice, i) } else { ((i / parts) as u32, i % parts) };
            let chosen = constant_time::equal_mask(this, choice) as u8;
            if parts > 1 {
                let here = &mut slot[part * count..record_bytes.min((part + 1) * count)];
                here.iter_mut().zip(bytes.iter()).for_each(|(slot, byte)| *slot |= byte & chosen);
            } else {
                for (group, bytes) in (0u32..).zip(bytes.chunks_exact(record_bytes).take(groups)) {
                    let chosen = chosen & constant_time::equal_mask(group, place) as u8;
                    slot.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot |= byte & chosen);
                }
            }
        }
        Decoded { slot, damaged: outside >> 63 == 1 }
    }

    fn expand(&self) {
        std::hint::black_box(Public::new(self.set(), &self.seed, self.params.geometry.columns));
    }
}

/// What is drawn for a query.
struct Draws<'a> {
    rng: &'a mut SecretRng,
    ntt: &'a Ntt,
    modulo: Elementwise,
}

impl<'a> Draws<'a> {
    fn new(rng: &'a mut SecretRng, ntt: &'a Ntt) -> Self {
        Self { rng, ntt, modulo: Elementwise::new(ntt.prime()) }
    }

    /// A ternary secret, by values.
    fn secret(&mut self) -> Secret<u64> {
        let mut small = Zeroizing::new(vec![0; DEGREE]);
        self.rng.fill_ternary(&mut small);
        let mut out = self.residues(&small);
        self.ntt.forward(&mut out);
        out
    }

    /// Errors, by coefficients.
    fn errors(&mut self) -> Secret<u64> {
        let mut small = Zeroizing::new(vec![0; DEGREE]);
        self.rng.fill_centred_binomial(ERROR_PAIRS, &mut small);
        self.residues(&small)
    }

    /// `mask` times `secret` and errors, by values.
    fn encryption(&mut self, mask: &[u64], secret: &[u64]) -> Secret<u64> {
        let mut out = self.errors();
        self.ntt.forward(&mut out);
        self.modulo.multiply_add(&mut out, mask, secret);
        out
    }

    fn residues(&self, small: &[i8]) -> Secret<u64> {
        let q = self.ntt.prime().value();
        Zeroizing::new(small.iter().map(|x| (*x as u64).wrapping_add(q & (*x >> 7) as u64)).collect())
    }
}

/// a(X^-1), by coefficients.
fn invert(q: u64, a: &mut [u64]) {
    a[1..].reverse();
    for x in &mut a[1..] {
        let negated = q - *x;
        *x = negated.min(negated.wrapping_sub(q));
    }
}

/// A mask of 32 bits, of 64.
fn wide(mask: u32) -> u64 {
    mask as i32 as u64
}

/// A residue as a number, negative above half of Q, modulo 2^64.
fn signed(q: u64, residue: u64) -> u64 {
    let negative = ((q / 2).wrapping_sub(residue) as i64 >> 63) as u64;
    residue.wrapping_sub(q & negative)
}

/// The byte that a phase, of [`MASK_BITS`] bits, rounds to, and how far it is from it, as a count.
fn round(phase: u64) -> (u8, u64) {
    const STEP: u32 = MASK_BITS - 8;
    let rounded = phase.wrapping_add(1 << (STEP - 1));
    let off = (rounded & ((1 << STEP) - 1)) as i64 - (1 << (STEP - 1));
    ((rounded >> STEP) as u8, off.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use blindcore_accel_cpu::Cpu;

    use super::*;
    use crate::schemes::hintless::params::{CLASSICAL, QUANTUM};
    use crate::{Client, Geometry, Server, pack_group, preprocess, schemes};

    fn client(geometry: Geometry) -> HintlessClient {
        let params = Params::new(schemes::find(CLASSICAL.about.name).unwrap(), geometry).unwrap();
        HintlessClient::new(&CLASSICAL, &params, [7; SEED_BYTES])
    }

    fn column(column: u32) -> Selection {
        Selection::new(vec![column], 0)
    }

    /// What reuse would show, and why a query uses its preparation up: the difference of two queries under one secret is small
    /// errors, but for the columns that they ask for.
    #[test]
    fn two_queries_under_one_secret_would_show_what_they_ask_for() {
        let columns = 3000;
        let geometry = Geometry { record_bytes: 8, groups: 1, columns };
        let bits = CLASSICAL.query_bits(&geometry);
        let first = |query: &[u8]| -> Vec<u64> { unpack(query, bits).take(columns).collect() };
        let client = client(geometry);
        let prepared = SchemeClient::prepare(&client, &()).unwrap();
        // A copy, which only this module can make; with errors of its own it would be as bad.
        let copy = Prepared {
            secret: prepared.secret.clone(),
            first: prepared.first.clone(),
            keys: prepared.keys.clone(),
            picking: None,
        };
        let (a, _) = SchemeClient::query(&client, prepared, &column(17));
        let (b, _) = SchemeClient::query(&client, copy, &column(2999));
        let apart = |a: Vec<u64>, b: Vec<u64>| -> Vec<usize> {
            (0..columns).filter(|i| a[*i].abs_diff(b[*i]) > 1 << (bits - 16)).collect()
        };
        assert_eq!(apart(first(&a), first(&b)), [17, 2999]);
        // As they are made, nearly all words differ, and the keys do.
        let made =
            || SchemeClient::query(&client, SchemeClient::prepare(&client, &()).unwrap(), &column(17)).0;
        let (a, b) = (made(), made());
        assert!(apart(first(&a), first(&b)).len() > columns * 9 / 10);
        let keys = a.len() - CLASSICAL.polynomial_bytes();
        let same = a[keys..].iter().zip(&b[keys..]).filter(|(a, b)| a == b).count();
        assert!(same < CLASSICAL.polynomial_bytes() / 100, "{same}");
    }

    /// The noise of every coefficient after every stage. Of random records its deviation is no larger than what parameters are sized by,
    /// and not far below. All coefficients share a key's errors, so that from key to key it strays by 8 %: it is measured over sixteen. Records at the edges are one pattern in all rows, which then share most of their noise: no deviation can be
    /// told from them, but no coefficient is eight of those that parameters are sized by away, but once in 2^49 times.
    #[test]
    fn noise_is_what_parameters_are_sized_by() {
        let sizes = [(256, 4, 4096), (256, 33, 2048)];
        let all = [&CLASSICAL, &QUANTUM].into_iter().flat_map(|set| sizes.map(|sizes| (set, sizes)));
        for (set, (record_bytes, groups, columns)) in all {
            let geometry = Geometry { record_bytes, groups, columns };
            let params = Params::new(schemes::find(set.about.name).unwrap(), geometry).unwrap();
            let predicted =
                set.variance(&geometry).sqrt() / (set.prime().value() as f64 / f64::from(1u32 << MASK_BITS));
            type Records = fn(usize) -> u8;
            // MurmurHash3's last steps (Appleby 2011).
            let scattered: Records = |i| {
                let x = (i as u64 + 1).wrapping_mul(0xff51_afd7_ed55_8ccd);
                ((x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53) >> 56) as u8
            };
            let records: [Records; 5] =
                [|_| 0, |_| 255, |i| if i % 2 == 0 { 0 } else { 255 }, |i| (i * i / 7) as u8, scattered];
            for bytes in records {
                let device = Cpu::with_threads("cpu", 2).unwrap();
                let mut database = params.database_buffer();
                let slots: Vec<u8> = (0..columns * record_bytes).map(bytes).collect();
                (0..groups).for_each(|group| pack_group(&params, group, &slots, &mut database));
                let database = vec![Arc::new(database) as blindcore_accel::SharedBytes];
                let mut hint = vec![0; params.hint_bytes() as usize];
                let derived = preprocess(&params, &device, database.clone(), &mut hint, &mut ()).unwrap();
                let derived = derived.into_iter().map(|d| vec![Arc::new(d) as blindcore_accel::SharedBytes]);
                let server =
                    Server::new(params, &device, [database].into_iter().chain(derived).collect()).unwrap();
                let client = HintlessClient::new(set, &params, hint[..].try_into().unwrap());
                let (mut squares, mut count, mut largest) = (0.0, 0, 0);
                let is_random = std::ptr::fn_addr_eq(bytes, scattered);
                let lookups = if is_random { 16 } else { 2 };
                for slot in (0..lookups).map(|i| i * (geometry.slots() - 1) / (lookups - 1)) {
                    let selection = Selection::index(&geometry, slot).unwrap();
                    let (query, pending) = SchemeClient::query(
                        &client,
                        SchemeClient::prepare(&client, &()).unwrap(),
                        &selection,
                    );
                    let answer = server.answer(&[&query]).unwrap().0.remove(0);
                    let phases = client.phases(&pending, &answer);
                    // Bodies are rounded by half a step at most, evenly.
                    let step = f64::from(1u32 << (MASK_BITS - BODY_BITS));
                    squares +=
                        phases.iter().map(|p| (round(*p).1 as f64).powi(2) - step * step / 12.0).sum::<f64>();
                    count += phases.len();
                    largest = phases.iter().map(|p| round(*p).1).fold(largest, u64::max);
                    let want: Vec<u8> =
                        slots[slot as usize % columns * record_bytes..][..record_bytes].to_vec();
                    assert_eq!(*SchemeClient::decode(&client, pending, &answer).slot, want);
                }
                let limit = 8.0 * predicted + f64::from(1u32 << (MASK_BITS - BODY_BITS - 1));
                assert!((largest as f64) < limit, "{geometry:?}: {largest} and not {limit}");
                let measured = (squares / f64::from(count as u32)).max(0.0).sqrt();
                if is_random {
                    let all = 0.45 * predicted..1.1 * predicted;
                    assert!(all.contains(&measured), "{geometry:?}: {measured} and not {predicted}");
                }
            }
            drop(Client::of(params, client(geometry)));
        }
    }
}
