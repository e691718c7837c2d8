//! The server's half: scan, pack, pick, round.

use std::sync::{Arc, Mutex, PoisonError};

use blindcore_accel::{Cost, Device, Placed, Words};
use blindcore_math::{Elementwise, MaskSeed};
use blindcore_rlwe::inspiring::Packing;
use blindcore_rlwe::rounding::{Rounding, pack, unpack};

use super::params::{BODY_BITS, DEGREE, MASK_BITS, Packed, RECORDS, SEED_BYTES, Set, TABLES, place_of};
use super::picking::{self, Picker};
use super::prepare;
use crate::schemes::matrix;
use crate::schemes::parallel::each;
use crate::schemes::spare::Spare;
use crate::{Error, Params, RegisteredKeys, SchemeServer};

/// Bytes of a piece of a product with the packing tables, which is used up while it is in a cache.
const PIECE_BYTES: usize = 4 << 20;

/// Bytes of memory that a server keeps from one pass to the next.
const KEPT_BYTES: usize = 64 << 20;

pub(super) struct HintlessServer {
    params: Params,
    packed: Packed,
    packing: &'static Packing,
    operands: Vec<Arc<dyn Placed>>,
    /// By coefficients: of each ciphertext, or, where one is picked, of the polynomial through them, `[part][t]`.
    masks: Vec<u64>,
    /// What bodies are multiplied by: for picking 1 / t.
    share: u64,
    threads: usize,
    /// Memory of passes that are done.
    spare: Spare,
}

/// A query, taken apart.
struct Query {
    /// The words that the records are multiplied by.
    first: Vec<u32>,
    /// The packing key of each digit, times minus the share, by values in orbit order.
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
        let share = packed.picks.map_or(1, |picks| picking::share(set.prime(), picks));
        let threads = device.description().threads.max(1);
        let spare = Spare::new(KEPT_BYTES);
        Ok(Self { params: *params, packed, packing, operands, masks, share, threads, spare })
    }

    /// Whatever the bytes of a query are, they are words and residues.
    fn query(&self, bytes: &[u8]) -> Query {
        let (set, columns) = (self.packed.set, self.params.geometry.columns);
        let (first, rest) = bytes.split_at(set.first_bytes(&self.params.geometry));
        let bits = set.query_bits(&self.params.geometry);
        let first = unpack(first, bits).take(columns).map(|word| (word as u32) << (32 - bits)).collect();
        let (keys, rest) = rest.split_at(set.packing.count * set.polynomial_bytes());
        let modulo = Elementwise::new(set.prime());
        let factor = vec![set.prime().value() - self.share; DEGREE];
        let orbit = |mut key: Vec<u64>| {
            modulo.multiply(&mut key, &factor);
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

    /// Memory for what becomes of a query's ciphertexts, zeros where there are none.
    fn memory(&self) -> Vec<u64> {
        let packed = &self.packed;
        let mut memory = self.spare.take();
        memory.resize(packed.room() * DEGREE, 0);
        for none in packed.ciphertexts()..packed.room() {
            memory[packed.kept(none) * DEGREE..][..DEGREE].fill(0);
        }
        memory
    }

    /// The products of queries with the packing tables, by values: those of each ciphertext where it is kept.
    fn products(&self, queries: &[Query], cost: &mut Cost) -> Result<Vec<Vec<u64>>, Error> {
        let modulo = Elementwise::new(self.packed.set.prime());
        let mut products: Vec<_> = queries.iter().map(|_| self.memory()).collect();
        let mut values = vec![0; DEGREE];
        let outputs = (PIECE_BYTES / (queries.len() * DEGREE * size_of::<u64>())).max(1);
        for (digit, tables) in self.operands[TABLES..].iter().enumerate() {
            let keys: Vec<u64> = queries.iter().flat_map(|query| query.keys[digit].iter().copied()).collect();
            let (mut first, mut refused) = (0, Ok(()));
            let this = tables.run_in_pieces(&Words::U64(keys), outputs, &mut |piece| {
                let words = match piece.as_u64() {
                    Ok(words) => words,
                    Err(error) => return refused = Err(error),
                };
                let each = words.len() / queries.len();
                for (products, words) in products.iter_mut().zip(words.chunks_exact(each)) {
                    for (ciphertext, product) in (first..).zip(words.chunks_exact(DEGREE)) {
                        let sum = &mut products[self.packed.kept(ciphertext) * DEGREE..][..DEGREE];
                        if digit == 0 {
                            self.packing.from_orbit(product, sum);
                        } else {
                            self.packing.from_orbit(product, &mut values);
                            modulo.add(sum, &values);
                        }
                    }
                }
                first += each / DEGREE;
            })?;
            refused?;
            *cost += &this;
        }
        Ok(products)
    }

    /// The answer, from a query's product with the records and its products with the packing tables, which become bodies.
    fn answer_one(&self, query: &Query, scanned: &[u32], bodies: &mut [u64]) -> Vec<u8> {
        let (geometry, packed, prime) = (&self.params.geometry, &self.packed, self.packed.set.prime());
        let modulo = Elementwise::new(prime);
        // Entries are centred: less 128 times the query's sum. A word's upper bits count, so 2^32 stands for Q.
        let centring = query.first.iter().fold(0u32, |sum, word| sum.wrapping_add(*word)).wrapping_mul(128);
        let up = Rounding::new(prime, 32);
        let share = vec![self.share; packed.count];
        let mut entries = Vec::with_capacity(packed.count);
        let mut make = |ciphertext, body: &mut [u64]| {
            self.packing.ntt().inverse(body);
            let rows = packed.rows_of(geometry, ciphertext);
            entries.clear();
            entries.extend(scanned[rows].iter().map(|word| up.up(u64::from(word.wrapping_sub(centring)))));
            let here = entries.len();
            modulo.multiply(&mut entries, &share[..here]);
            modulo.add(&mut body[..here], &entries);
        };
        let mut answer = Vec::with_capacity(self.params.answer_bytes());
        match (packed.picks, &query.picker) {
            (Some(picks), Some(picker)) => {
                let bodies = bodies.chunks_exact_mut(picks * DEGREE);
                let masks = self.masks.chunks_exact(picks * DEGREE);
                for (part, (bodies, masks)) in bodies.zip(masks).enumerate() {
                    picking::interpolate(&modulo, bodies, &mut |place, body| {
                        let choice = place_of(picks, place);
                        if choice < packed.choices {
                            make(choice * packed.parts + part, body);
                        }
                    });
                    let [mask, body] = picker.pick(self.packing.ntt(), masks, bodies);
                    self.round(&mask, &body, &mut answer);
                }
            }
            _ => {
                let bodies = bodies.chunks_exact_mut(DEGREE).enumerate();
                for (mask, (ciphertext, body)) in self.masks.chunks_exact(DEGREE).zip(bodies) {
                    make(ciphertext, body);
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
        let products = self.products(&parsed, &mut cost)?.into_iter().map(Mutex::new);
        let work: Vec<_> = parsed.iter().zip(&scanned).zip(products).collect();
        let answers = each(self.threads, &work, |((query, scanned), products)| {
            self.answer_one(query, scanned, &mut products.lock().unwrap_or_else(PoisonError::into_inner))
        });
        for (_, products) in work {
            self.spare.keep(products.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
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
