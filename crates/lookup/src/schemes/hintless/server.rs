//! The server's half: scan, pack, pick, round.

use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed, Words};
use blindcore_math::{Elementwise, MaskSeed};
use blindcore_rlwe::inspiring::Packing;
use blindcore_rlwe::rounding::{Rounding, pack, unpack};

use super::params::{BODY_BITS, DEGREE, MASK_BITS, Packed, RECORDS, SEED_BYTES, Set, TABLES};
use super::picking::{self, Picker};
use super::prepare;
use crate::schemes::matrix;
use crate::schemes::parallel::each;
use crate::{Error, Params, RegisteredKeys, SchemeServer};

pub(super) struct HintlessServer {
    params: Params,
    packed: Packed,
    packing: &'static Packing,
    operands: Vec<Arc<dyn Placed>>,
    /// By coefficients: of each ciphertext, or, where one is picked, of the polynomial through them, `[part][t]`.
    masks: Vec<u64>,
    threads: usize,
}

/// A query, taken apart.
struct Query {
    /// The words that the records are multiplied by.
    first: Vec<u32>,
    /// The packing key of each digit, by values in orbit order.
    keys: Vec<Vec<u64>>,
    picker: Option<Picker>,
}

impl HintlessServer {
    pub(super) fn new(
        set: &'static Set,
        params: &Params,
        device: &Device,
        mut operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Self, Error> {
        let packed = Packed::new(set, &params.geometry);
        let mut masks = Vec::new();
        operands.pop().expect("operands were counted").stripes(&mut |stripes| {
            masks.extend(prepare::words(stripes));
            Ok(())
        })?;
        let packing = packed.packing();
        let threads = device.description().threads.max(1);
        Ok(Self { params: *params, packed, packing, operands, masks, threads })
    }

    /// Whatever the bytes of a query are, they are words and residues.
    fn query(&self, bytes: &[u8]) -> Query {
        let (set, columns) = (self.packed.set, self.params.geometry.columns);
        let (first, rest) = bytes.split_at(set.first_bytes(&self.params.geometry));
        let bits = set.query_bits(&self.params.geometry);
        let first = unpack(first, bits).take(columns).map(|word| (word as u32) << (32 - bits)).collect();
        let (keys, rest) = rest.split_at(set.packing.count * set.polynomial_bytes());
        let orbit = |key: Vec<u64>| {
            let mut orbit = vec![0; DEGREE];
            self.packing.to_orbit(&key, &mut orbit);
            orbit
        };
        let keys = residues(set, keys).map(orbit).collect();
        let picker = self.packed.picks.map(|_| {
            let (seed, rows) = rest.split_at(SEED_BYTES);
            let seed = MaskSeed(seed.try_into().expect("it was cut so"));
            let mask = |number| {
                let mut mask = vec![0; DEGREE];
                seed.polynomial(number, set.prime(), &mut mask);
                mask
            };
            let bodies: Vec<_> = residues(set, rows).collect();
            Picker {
                digits: set.picking.digits(set.prime()),
                masks: (0..bodies.len() as u64).map(mask).collect(),
                bodies,
            }
        });
        Query { first, keys, picker }
    }

    /// The answer, from a query's product with the records and its products with the packing tables.
    fn answer_one(&self, query: &Query, scanned: &[u32], products: &[u64]) -> Vec<u8> {
        let (geometry, packed, prime) = (&self.params.geometry, &self.packed, self.packed.set.prime());
        let modulo = Elementwise::new(prime);
        // Entries are centred: less 128 times the query's sum. A word's upper bits count, so 2^32 stands for Q.
        let centring = query.first.iter().fold(0u32, |sum, word| sum.wrapping_add(*word)).wrapping_mul(128);
        let up = Rounding::new(prime, 32);
        let mut bodies = vec![0; packed.ciphertexts() * DEGREE];
        for (row, word) in scanned[..geometry.rows()].iter().enumerate() {
            let (ciphertext, at) = packed.place(geometry, row);
            bodies[ciphertext * DEGREE + at] = up.up(u64::from(word.wrapping_sub(centring)));
        }
        let mut values = vec![0; DEGREE];
        for (body, product) in bodies.chunks_exact_mut(DEGREE).zip(products.chunks_exact(DEGREE)) {
            self.packing.from_orbit(product, &mut values);
            self.packing.ntt().inverse(&mut values);
            modulo.subtract(body, &values);
        }
        let mut answer = Vec::with_capacity(self.params.answer_bytes());
        match (packed.picks, &query.picker) {
            (Some(picks), Some(picker)) => {
                bodies.resize(packed.parts * picks * DEGREE, 0);
                let masks = self.masks.chunks_exact(picks * DEGREE);
                for (bodies, masks) in picking::parts(&mut bodies, packed, picks).zip(masks) {
                    picking::interpolate(prime, picks, bodies);
                    let [mask, body] = picker.pick(self.packing.ntt(), masks, bodies);
                    self.round(&mask, &body, &mut answer);
                }
            }
            _ => {
                for (mask, body) in self.masks.chunks_exact(DEGREE).zip(bodies.chunks_exact(DEGREE)) {
                    self.round(mask, body, &mut answer);
                }
            }
        }
        answer
    }

    /// A ciphertext, as it is sent: of the body only what is packed.
    fn round(&self, mask: &[u64], body: &[u64], answer: &mut Vec<u8>) {
        let down = |bits, words: &[u64]| {
            let rounding = Rounding::new(self.packed.set.prime(), bits);
            words.iter().map(|word| rounding.down(*word)).collect::<Vec<_>>()
        };
        pack(&down(MASK_BITS, mask), MASK_BITS, answer);
        pack(&down(BODY_BITS, &body[..self.packed.count]), BODY_BITS, answer);
    }
}

impl SchemeServer for HintlessServer {
    fn answer(&self, queries: &[&[u8]], _: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        let parsed = each(self.threads, queries, |query| self.query(query));
        let mut cost = Cost::default();
        let first: Vec<&[u32]> = parsed.iter().map(|query| query.first.as_slice()).collect();
        let scanned = matrix::run_gathered(&*self.operands[RECORDS], &first, &mut cost)?;
        let modulo = Elementwise::new(self.packed.set.prime());
        let mut products = Vec::new();
        for (digit, tables) in self.operands[TABLES..].iter().enumerate() {
            let keys: Vec<u64> = parsed.iter().flat_map(|query| query.keys[digit].iter().copied()).collect();
            let (these, this) = tables.run(&Words::U64(keys))?;
            cost += &this;
            let these = these.into_u64()?;
            if digit == 0 {
                products = these;
            } else {
                modulo.add(&mut products, &these);
            }
        }
        let products: Vec<&[u64]> = products.chunks_exact(products.len() / queries.len()).collect();
        let work: Vec<_> = parsed.iter().zip(&scanned).zip(products).collect();
        let answers = each(self.threads, &work, |&((query, scanned), products)| {
            self.answer_one(query, scanned, products)
        });
        Ok((answers, cost))
    }
}

/// Polynomials of a query: of their words those of Q or more, which are a stranger's, less Q.
fn residues(set: &Set, bytes: &[u8]) -> impl Iterator<Item = Vec<u64>> {
    let q = set.prime().value();
    bytes.chunks_exact(set.polynomial_bytes()).map(move |bytes| {
        let words = unpack(bytes, set.residue_bits()).take(DEGREE);
        words.map(|word| if word >= q { word - q } else { word }).collect()
    })
}
