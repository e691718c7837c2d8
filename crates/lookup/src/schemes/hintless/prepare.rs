//! Preprocessing: what of packing depends on the records and the public masks alone.
//!
//! ```text
//!   records ──rows──▶ polynomials f_jk ──transform──▶ a_j = sum_k A_k f_jk ──Packing──▶ tables, mask
//!           untiled   of 2048 columns each                                              a ciphertext at a time
//! ```
//!
//! A query's first part is A_k(X^-1) s(X^-1) and errors, so that its product with a row's entries is the constant coefficient of
//! A_k f_jk s and errors. Entries count less 128 each, which takes the same polynomial off each a_j.
//!
//! The mask of each ciphertext, by coefficients, is kept beside the tables; where the server picks one of them, the
//! polynomial through all of them is.

use std::thread;

use blindcore_accel::contract::Window;
use blindcore_accel::{Device, Placed};
use blindcore_math::{Elementwise, MaskSeed, SecretRng, lanes};
use blindcore_rlwe::inspiring::{Packing, Scratch};
use blindcore_units::Unit;

use super::params::{DEGREE, Packed, RESIDUE_BYTES, SEED_BYTES, Set, blocks};
use super::picking;
use crate::{Error, PREPARING, Params, Preprocessing, Progress};

/// The number under a table's seed of the mask of a digit's packing key: 0 for the first, 2^64 - 1 for the next. Polynomial k of the
/// public matrix has number k + 1.
fn key_number(digit: usize) -> u64 {
    0u64.wrapping_sub(digit as u64)
}

/// Polynomials of a row that are multiplied at once: the kernels sum so many products before they reduce.
const AT_ONCE: usize = 8;

/// Bytes of the words of a polynomial that lie together in a table.
const LANE_BYTES: usize = Window::LANES * RESIDUE_BYTES;

/// The public polynomials that a table's seed stands for, by values in the transform's order.
pub(super) struct Public {
    /// k of each digit, the masks of packing keys.
    pub(super) keys: Vec<Vec<u64>>,
    /// A_k, one for each 2048 columns, one after another.
    pub(super) matrix: Vec<u64>,
}

impl Public {
    pub(super) fn new(set: &Set, seed: &[u8; SEED_BYTES], columns: usize) -> Self {
        let seed = MaskSeed(*seed);
        let polynomial = |number, out: &mut [u64]| seed.polynomial(number, set.prime(), out);
        let mut keys = vec![vec![0; DEGREE]; set.packing.count];
        keys.iter_mut().enumerate().for_each(|(digit, key)| polynomial(key_number(digit), key));
        let mut matrix = vec![0; blocks(columns) * DEGREE];
        for (number, out) in (1..).zip(matrix.chunks_exact_mut(DEGREE)) {
            polynomial(number, out);
        }
        Self { keys, matrix }
    }
}

/// Passes of preprocessing: a ciphertext is one, and so is the polynomial through the masks.
pub(super) fn steps(packed: &Packed) -> u64 {
    packed.ciphertexts() as u64 + u64::from(packed.picks.is_some())
}

/// Makes packing tables and masks of the ciphertexts that are not done.
pub(super) fn preprocess(
    set: &'static Set,
    params: &Params,
    device: &Device,
    records: &dyn Placed,
    into: &mut Preprocessing<'_>,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let (geometry, packed) = (&params.geometry, Packed::new(set, &params.geometry));
    let seed: &mut [u8; SEED_BYTES] = into.hint.try_into().expect("the hint is the seed");
    if into.done == 0 {
        // Once the records are fixed, so that whoever wrote them can't have aimed at it.
        SecretRng::from_os()?.fill(seed);
    }
    let public = Public::new(set, seed, geometry.columns);
    let packing = packed.packing();
    let orbit = |key: &Vec<u64>| {
        let mut out = vec![0; DEGREE];
        packing.to_orbit(key, &mut out);
        out
    };
    let keys: Vec<_> = public.keys.iter().map(orbit).collect();
    let centring = centring(packing, &public, geometry.columns);
    let worker =
        &Worker { packed, columns: geometry.columns, packing, public: &public, keys: &keys, centring };
    let (masks, tables) = into.derived.split_last_mut().expect("masks are derived last");
    let total = steps(&packed);
    let mut tell = |done: u64| {
        progress.at(PREPARING, done, Some(total), Unit::Items);
        if progress.stopped() { Err(Error::Stopped) } else { Ok(()) }
    };
    if into.done < packed.ciphertexts() as u64 {
        let threads = device.description().threads.max(1);
        let mut scratches: Vec<Memory> =
            (0..threads.min(packed.ciphertexts())).map(|_| worker.memory()).collect();
        let table_bytes = (packed.count - 1) * DEGREE * RESIDUE_BYTES;
        let mask_bytes = DEGREE * RESIDUE_BYTES;
        // Those whose rows have come, `scratches[..ready]`, and the number of the first of them.
        let mut first = usize::try_from(into.done).expect("fewer than rows");
        let mut pack = |first: usize, memory: &mut [Memory], done: &mut u64| {
            (0..memory.len() as u64).try_for_each(|i| tell(*done + i))?;
            // A ciphertext's tables, digit by digit.
            let mut digits: Vec<_> =
                tables.iter_mut().map(|t| t[first * table_bytes..].chunks_exact_mut(table_bytes)).collect();
            let tables: Vec<Vec<&mut [u8]>> =
                memory.iter().map(|_| digits.iter_mut().filter_map(Iterator::next).collect()).collect();
            let masks = masks[first * mask_bytes..].chunks_exact_mut(mask_bytes);
            thread::scope(|scope| {
                let mut work = memory.iter_mut().zip(tables.into_iter().zip(masks));
                let last = work.next_back();
                for (memory, (mut tables, mask)) in work {
                    scope.spawn(move || worker.pack(memory, &mut tables, mask));
                }
                if let Some((memory, (mut tables, mask))) = last {
                    worker.pack(memory, &mut tables, mask);
                }
            });
            *done += memory.len() as u64;
            Ok::<(), Error>(())
        };
        let (mut row, mut failed) = (0, None);
        let operand = params.records();
        let mut rows = Rows::new(geometry.columns);
        let read = records.stripes(&mut |stripes| {
            for stripe in stripes.chunks_exact(operand.stripe_bytes()) {
                let here = Rows::HEIGHT.min(geometry.rows() - row);
                let (last, _) = packed.place(geometry, row + here - 1);
                if last >= first {
                    rows.take(stripe);
                    for i in 0..here {
                        let (ciphertext, at) = packed.place(geometry, row + i);
                        if ciphertext < first {
                            continue;
                        }
                        if ciphertext == first + scratches.len() {
                            if let Err(error) = pack(first, &mut scratches, &mut into.done) {
                                failed = Some(error);
                                return Err(blindcore_accel::Error::Stopped);
                            }
                            first = ciphertext;
                            scratches.iter_mut().for_each(Memory::clear);
                        }
                        scratches[ciphertext - first].row(at, rows.row(i));
                    }
                }
                row += here;
            }
            Ok(())
        });
        failed.map_or(Ok(()), Err)?;
        read?;
        let left = packed.ciphertexts() - first;
        pack(first, &mut scratches[..left], &mut into.done)?;
    }
    if let Some(picks) = packed.picks {
        tell(into.done)?;
        let (modulo, share) =
            (Elementwise::new(set.prime()), vec![picking::share(set.prime(), picks); DEGREE]);
        let made = words(masks);
        let mut polynomials = vec![0; made.len()];
        for (ciphertext, mask) in made.chunks_exact(DEGREE).take(packed.ciphertexts()).enumerate() {
            polynomials[packed.kept(ciphertext) * DEGREE..][..DEGREE].copy_from_slice(mask);
        }
        for polynomials in polynomials.chunks_exact_mut(picks * DEGREE) {
            picking::interpolate(&modulo, polynomials, &mut |_, _| ());
            polynomials.chunks_exact_mut(DEGREE).for_each(|polynomial| modulo.multiply(polynomial, &share));
        }
        write(&polynomials, masks);
        into.done = total;
    }
    Ok(())
}

/// What entries that count less 128 each take off a row's polynomial: all rows' a begin with it.
fn centring(packing: &Packing, public: &Public, columns: usize) -> Vec<u64> {
    let (modulo, ntt) = (Elementwise::new(packing.ntt().prime()), packing.ntt());
    let mut sum = vec![0; DEGREE];
    for (i, public) in public.matrix.chunks_exact(DEGREE).enumerate() {
        let mut polynomial = vec![0; DEGREE];
        polynomial[..DEGREE.min(columns - i * DEGREE)].fill(128);
        ntt.forward(&mut polynomial);
        modulo.multiply_add(&mut sum, &polynomial, public);
    }
    let mut negated = vec![0; DEGREE];
    modulo.subtract(&mut negated, &sum);
    negated
}

/// What packs a ciphertext.
struct Worker<'a> {
    packed: Packed,
    columns: usize,
    packing: &'a Packing,
    public: &'a Public,
    /// The keys' masks in orbit order.
    keys: &'a [Vec<u64>],
    /// What a row of 128s takes off its a.
    centring: Vec<u64>,
}

/// A ciphertext's rows, and memory to pack it with.
struct Memory {
    rows: Vec<u8>,
    columns: usize,
    /// Which rows there are.
    filled: Vec<bool>,
    /// a_j, in orbit order.
    masks: Vec<u64>,
    /// One of them, in the transform's order.
    sum: Vec<u64>,
    polynomials: Vec<u64>,
    scratch: Scratch,
}

impl Memory {
    fn clear(&mut self) {
        self.filled.fill(false);
    }

    fn row(&mut self, at: usize, row: &[u8]) {
        self.rows[at * self.columns..][..self.columns].copy_from_slice(row);
        self.filled[at] = true;
    }
}

impl Worker<'_> {
    fn memory(&self) -> Memory {
        let count = self.packed.count;
        Memory {
            rows: vec![0; count * self.columns],
            columns: self.columns,
            filled: vec![false; count],
            masks: vec![0; count * DEGREE],
            sum: vec![0; DEGREE],
            polynomials: vec![0; AT_ONCE * DEGREE],
            scratch: self.packing.scratch(),
        }
    }

    /// Makes the tables, one for each digit, and the mask of the ciphertext whose rows are there.
    fn pack(&self, memory: &mut Memory, tables: &mut [&mut [u8]], mask: &mut [u8]) {
        let ntt = self.packing.ntt();
        let modulo = Elementwise::new(ntt.prime());
        let Memory { rows, filled, masks, sum, polynomials, scratch, .. } = memory;
        let rows = rows.chunks_exact(self.columns).zip(filled.iter());
        for (mask, (row, filled)) in masks.chunks_exact_mut(DEGREE).zip(rows) {
            if !filled {
                mask.fill(0);
                continue;
            }
            sum.copy_from_slice(&self.centring);
            let public = self.public.matrix.chunks(AT_ONCE * DEGREE);
            for (entries, public) in row.chunks(AT_ONCE * DEGREE).zip(public) {
                let polynomials = &mut polynomials[..public.len()];
                let each = polynomials.chunks_exact_mut(DEGREE).zip(entries.chunks(DEGREE));
                each.for_each(|(polynomial, entries)| ntt.forward_bytes(entries, polynomial));
                let pairs = polynomials.chunks_exact(DEGREE).zip(public.chunks_exact(DEGREE));
                let pairs: Vec<_> = pairs.map(|(polynomial, public)| [polynomial, public]).collect();
                modulo.multiply_sum(sum, &pairs);
            }
            self.packing.to_orbit(sum, mask);
        }
        let whole = self.packing.prepare(masks, self.keys, scratch, |i, number, digits| {
            // As `Layout::Lanes32` has them: 32 of each polynomial together.
            let (lanes, step) = (&mut tables[number][i * LANE_BYTES..], (self.packed.count - 1) * LANE_BYTES);
            lanes::store(digits, RESIDUE_BYTES, Window::LANES, lanes, step);
        });
        write(&whole, mask);
    }
}

/// Residues of six bytes.
pub(super) fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<RESIDUE_BYTES>().0.iter().map(word).collect()
}

pub(super) fn word(bytes: &[u8; RESIDUE_BYTES]) -> u64 {
    let [a, b, c, d, e, f] = *bytes;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// Residues to six bytes each.
fn write(words: &[u64], out: &mut [u8]) {
    lanes::store(words, RESIDUE_BYTES, words.len().max(1), out, out.len().max(1));
}

/// Rows of a stripe, one after another.
struct Rows {
    padded: usize,
    columns: usize,
    bytes: Vec<u8>,
}

impl Rows {
    /// Rows of a stripe.
    const HEIGHT: usize = 16;

    fn new(columns: usize) -> Self {
        let padded = columns.next_multiple_of(4);
        Self { padded, columns, bytes: vec![0; Self::HEIGHT * padded] }
    }

    /// Brings a stripe's bytes into rows.
    fn take(&mut self, stripe: &[u8]) {
        for (at, line) in (0..self.padded).step_by(4).zip(stripe.as_chunks::<64>().0) {
            for (row, four) in line.as_chunks::<4>().0.iter().enumerate() {
                self.bytes[row * self.padded + at..][..4].copy_from_slice(four);
            }
        }
    }

    fn row(&self, i: usize) -> &[u8] {
        &self.bytes[i * self.padded..][..self.columns]
    }
}
