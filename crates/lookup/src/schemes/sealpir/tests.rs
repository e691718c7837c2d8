//! The whole lookup at full ring size: what comes back, and its noise at each stage.
#![allow(clippy::print_stderr, reason = "noise is shown beside what it is sized by")]

use std::sync::Arc;

use blindcore_rlwe::rounding::unpack;
use blindcore_rlwe::{Ciphertext, GaloisKeys, Pair, Poly, Ring, Values};

use super::client::{Pending, SealClient};
use super::params::{
    BODY_BITS, DIGIT_BITS, MASK_BITS, PAIR, ROUNDED_BITS, Stages, digits, pieces, places, sent,
};
use super::server::{self, Expanded};
use crate::schemes::rings::polynomials::Outputs;
use crate::schemes::rings::testing::{self, Fetch, Slot, Stored, byte, near, square};
use crate::schemes::rings::tree::{DEGREE, Tree};
use crate::schemes::rings::{LANE_BITS, Places, SEED_BYTES, Secret, queries};
use crate::{Geometry, Params, SchemeClient, Selection, schemes};

/// A table in place, and a client with its keys.
struct Table {
    stored: Stored,
    places: Places,
    client: SealClient,
    secret: Secret,
    keys: GaloisKeys,
}

fn keys() -> (Secret, GaloisKeys) {
    let tree = Tree::get();
    let made = tree.make(|_, _| Vec::new()).unwrap();
    (tree.secret(made.secret[..].try_into().unwrap()), tree.read_keys(&made.public).unwrap())
}

impl Table {
    /// `slot(group, column)` is what lies there.
    fn new(geometry: Geometry, slot: impl Fn(usize, usize) -> Vec<u8>) -> Self {
        let stored = Stored::new("sealpir", geometry, slot);
        let (secret, keys) = keys();
        let client = SealClient::new(&stored.params, stored.seed);
        Self { stored, places: places(&geometry), client, secret, keys }
    }

    fn ask(&self, selection: &Selection) -> (Vec<u8>, Pending) {
        let (query, pending) = self.client.make_query(self.client.prepare(&self.secret).unwrap(), selection);
        assert_eq!(query.len(), self.stored.params.query_bytes());
        (query, pending)
    }

    fn expand(&self, query: &[u8]) -> Expanded {
        server::expand(&self.places, query, &self.keys, 2)
    }

    fn second(&self, query: &Expanded, outputs: &[u64], part: usize, threads: usize) -> Vec<Pair> {
        let outputs = Outputs::new(0, self.places.parts, PAIR, outputs);
        server::second(&self.places, &query.second, outputs, part, threads)
    }

    fn answer(&self, query: &Expanded, outputs: &[u64], threads: usize) -> Vec<u8> {
        let parts = 0..self.places.parts;
        let sums: Vec<_> = parts.map(|part| self.second(query, outputs, part, threads)).collect();
        server::answer(&self.places, &sums)
    }

    fn fetch(&self, selection: &Selection) -> Vec<u8> {
        let (query, pending) = self.ask(selection);
        let expanded = self.expand(&query);
        let outputs = self.stored.scan(&expanded.first);
        let [answer, alone] = [2, 1].map(|threads| self.answer(&expanded, &outputs, threads));
        assert!(answer == alone, "threads decide nothing");
        assert_eq!(answer.len(), self.stored.params.answer_bytes());
        self.client.read(&pending, &answer).to_vec()
    }
}

/// What finds slots in such a table.
fn fetching(geometry: Geometry, slot: Slot<'_>) -> Fetch {
    let table = Table::new(geometry, slot);
    Box::new(move |selection| table.fetch(selection))
}

#[test]
fn slots_come_back_wherever_they_lie() {
    let sizes = [
        (1, 1, 1),
        (5, 700, 9),
        (256, 23, 12),
        (300, 140, 20),
        (64, 9, 300),
        (2000, 3, 270),
        (2816, 260, 3),
        (4096, 3, 5),
        (6000, 1, 2),
    ];
    testing::slots_come_back(sizes, |geometry, slot| {
        let table = Table::new(geometry, slot);
        assert_eq!(pieces(&table.places), if geometry.record_bytes < 1400 { 3 } else { 4 }, "{geometry:?}");
        if table.places.coarse == 1 {
            let leaves = geometry.columns.max(geometry.groups / table.places.fine);
            assert_eq!(table.places.ciphertexts(), if leaves < 256 { 1 } else { 2 }, "{geometry:?}");
        }
        Box::new(move |selection| table.fetch(selection))
    });
}

#[test]
fn long_answers_come_in_pieces() {
    testing::long_answers_come_in_pieces("sealpir", Geometry { record_bytes: 2500, groups: 400, columns: 2 });
}

#[test]
fn picked_columns_add_up_lane_by_lane() {
    let sizes = [(2000, 5, 40), (100, 5, 400), (200, 60, 300)];
    testing::picked_columns_add_up("sealpir", sizes, fetching);
    // With and without coarse places.
    let coarse = sizes
        .map(|(record_bytes, groups, columns)| places(&Geometry { record_bytes, groups, columns }).coarse);
    assert!(coarse.contains(&1) && coarse.iter().any(|coarse| *coarse > 1), "{coarse:?}");
}

#[test]
fn a_stopped_build_goes_on_and_keeps_its_seed() {
    testing::a_stopped_build_goes_on("sealpir");
}

#[test]
fn keys_have_the_bytes_that_are_said_and_come_back() {
    let tree = Tree::get();
    let made = tree.make(|_, _| Vec::new()).unwrap();
    assert_eq!((made.public.len(), made.secret.len()), (tree.key_bytes(), SEED_BYTES));
    assert!(made.public.len() < 1_800_000, "{}", made.public.len());
    // Another gadget, a damaged magic, an exponent of no tree, one byte less or more. Whatever a byte is, nothing panics.
    for at in [0, 5, 8, 16, 19, 23, 24, 25] {
        let mut bytes = made.public.clone();
        bytes[at] ^= 0x55;
        assert!(tree.read_keys(&bytes).is_err(), "byte {at}");
    }
    let longer = [&made.public[..], &[0]].concat();
    for bytes in [&[], &made.public[..100], &made.public[1..], &longer] {
        assert!(tree.read_keys(bytes).is_err(), "{} bytes", bytes.len());
    }
    let mut high = made.public;
    high[200..300].fill(0xff);
    assert!(tree.read_keys(&high).err().unwrap().contains("residue"));
}

/// At the full height of the tree, each stage's noise is what parameters are sized by: for random records, for records that are one
/// pattern, and for records that are aligned with the tree, so that without their pad the errors that leaves share would meet.
#[test]
fn noise_is_what_parameters_are_sized_by() {
    // All of a polynomial, so that a record decides each of its coefficients.
    let geometry = Geometry { record_bytes: 2816, groups: 40, columns: 240 };
    let aligned = testing::aligned(240);
    type Records<'a> = &'a dyn Fn(usize, usize) -> Vec<u8>;
    let all: [(&str, Records<'_>); 3] = [
        ("random", &|group, column| (0..2816).map(|i| byte((group * 240 + column) * 2816 + i)).collect()),
        ("one pattern", &|_, _| [0, 4, 32, 0, 1, 8, 64, 0, 2, 16, 128].repeat(256)),
        ("aligned", &|_, column| aligned[column].clone()),
    ];
    for (what, records) in all {
        let table = Table::new(geometry, records);
        let places = table.places;
        assert_eq!((places.height, places.rows, places.outputs), (8, 240, 40));
        assert_eq!((places.ciphertexts(), pieces(&places)), (2, 4));
        let stages = Stages::new(&places);
        let (large, small) = (Tree::get().large(), Tree::get().small());
        let (group, column) = (31u32, 201u32);
        let (query, pending) = table.ask(&Selection::new(vec![column], group));
        let near = |stage: &str, measured: f64, predicted: f64| near(what, stage, measured, predicted);
        let noise = |ring: &Arc<Ring>, pair: &_, message: &dyn Fn(usize) -> i128| {
            testing::noise(ring, &table.secret, pair, message)
        };
        let mean = |squares: Vec<f64>| squares.iter().sum::<f64>() / squares.len() as f64;

        // Leaves of both dimensions, and so of both ciphertexts.
        let leaves: Vec<Ciphertext> = queries::leaves(&places, &query, &table.keys, 2);
        assert_eq!(leaves.len(), places.leaves);
        let picked = |leaf: usize| -> u32 {
            if leaf == column as usize {
                LANE_BITS
            } else if leaf == places.rows + group as usize {
                DIGIT_BITS
            } else {
                0
            }
        };
        let one = |leaf: usize, q: u128| match picked(leaf) {
            0 => 0,
            bits => ((q + (1 << (bits - 1))) >> bits) as i128,
        };
        let of = |ring: &Arc<Ring>, leaves: &[Ciphertext]| {
            let square = |(leaf, c): (usize, &Ciphertext)| {
                let here = one(leaf, ring.modulus());
                square(&noise(ring, c.pair(), &|i| if i == 0 { here } else { 0 }))
            };
            mean(leaves.iter().enumerate().map(square).collect())
        };
        near("leaves", of(large, &leaves), stages.leaf);
        let switched: Vec<Ciphertext> =
            leaves.iter().map(|leaf| leaf.switch_modulus(small).unwrap()).collect();
        near("leaves, switched", of(small, &switched), stages.switched);

        // The first dimension's results.
        let expanded = table.expand(&query);
        let outputs = table.stored.scan(&expanded.first);
        let lanes = table.stored.lanes(column as usize, places.rows);
        let q = small.modulus() as i128;
        let scaled = |plain: i128, bits: u32| (plain * q + (plain.signum() << (bits - 1))) >> bits;
        let first: Vec<Vec<f64>> = (0..places.outputs)
            .map(|at| {
                let result = testing::output(&outputs, at);
                noise(small, &result, &|i| scaled(lanes[at][i], LANE_BITS))
            })
            .collect();
        near("first dimension", mean(first.iter().map(|noise| square(noise)).collect()), stages.first);
        // No coefficient is singled out: of 81,920 one passes seven deviations once in four million.
        let most = first.iter().flatten().fold(0.0, |most: f64, off| most.max(off.abs()));
        assert!(most < 7.0 * stages.first.sqrt(), "{what}: {most} of {}", stages.first.sqrt());

        // The second dimension's sums, which encrypt the digits of the picked output.
        let words = &outputs[group as usize * 2 * DEGREE..][..2 * DEGREE];
        let plain: Vec<Vec<i128>> = server::plaintexts(&places, words)
            .into_iter()
            .map(|plain| {
                let centred =
                    |x: &u64| if i128::from(*x) > q / 2 { i128::from(*x) - q } else { i128::from(*x) };
                small.inverse(plain).words().iter().map(centred).collect()
            })
            .collect();
        let kept: Vec<usize> = sent(&places).map(|sent| sent.kept).collect();
        assert_eq!(kept.iter().sum::<usize>(), digits(&places));
        let half = 1i128 << (DIGIT_BITS - 1);
        assert!(plain.iter().flatten().all(|digit| (-half..half).contains(digit)));
        let variance = mean(plain.iter().flatten().map(|digit| (*digit as f64).powi(2)).collect());
        assert!(
            (variance / (f64::from(2 * DIGIT_BITS).exp2() / 12.0) - 1.0).abs() < 0.1,
            "{what}: {variance}"
        );
        let sums = table.second(&expanded, &outputs, 0, 1);
        let second: Vec<f64> = sums
            .iter()
            .zip(&plain)
            .flat_map(|(sum, plain)| noise(small, sum, &|i| scaled(plain[i], DIGIT_BITS)))
            .collect();
        near("second dimension", square(&second), stages.second);
        let most = second.iter().fold(0.0, |most: f64, off| most.max(off.abs()));
        assert!(most < 7.0 * stages.second.sqrt(), "{what}: {most} of {}", stages.second.sqrt());

        // Rounding, of an answer and of the result within it.
        let answer = table.answer(&expanded, &outputs, 1);
        let mut rest = &answer[..];
        let mut off = Vec::new();
        for (sent, plain) in sent(&places).zip(&plain) {
            let (this, after) = rest.split_at(sent.bytes());
            let unit = q as f64 / f64::from(MASK_BITS).exp2();
            let step = 1i64 << (MASK_BITS - DIGIT_BITS);
            let phases = sent.phases(&table.secret, this);
            off.extend(phases.iter().zip(plain).map(|(phase, digit)| {
                let off = (*phase as i64).wrapping_sub(*digit as i64 * step) << (64 - MASK_BITS);
                (off >> (64 - MASK_BITS)) as f64 * unit
            }));
            rest = after;
        }
        let body = (q as f64 / f64::from(BODY_BITS).exp2()).powi(2) / 12.0;
        near("answer", square(&off), stages.second + stages.sent + body);
        let result = table.client.result(&table.secret, &answer);
        let unit = q as f64 / f64::from(ROUNDED_BITS).exp2();
        let step = 1i64 << (ROUNDED_BITS - LANE_BITS);
        let off: Vec<f64> = result
            .iter()
            .zip(&lanes[group as usize])
            .map(|(phase, lane)| {
                let off = (*phase as i64).wrapping_sub(*lane as i64 * step) << (64 - ROUNDED_BITS);
                (off >> (64 - ROUNDED_BITS)) as f64 * unit
            })
            .collect();
        near("result, rounded", square(&off), stages.first + stages.rounded);

        // What comes back is right, and so is the pad of it.
        assert!(table.client.read(&pending, &answer).to_vec() == records(group as usize, column as usize));
    }
}

/// Nobody can choose what the second dimension's plaintexts are. If they were aligned with the errors that leaves share, a digit would come
/// out all the same.
#[test]
fn digits_that_are_aligned_with_the_tree_come_out() {
    let geometry = Geometry { record_bytes: 2816, groups: 255, columns: 1 };
    let (secret, keys) = keys();
    let params = Params::new(schemes::find("sealpir").unwrap(), geometry).unwrap();
    let places = places(&geometry);
    assert_eq!((places.height, places.rows, places.outputs), (8, 1, 255));
    let client = SealClient::new(&params, [0; SEED_BYTES]);
    let group = 77;
    let (query, _) = client.make_query(client.prepare(&secret).unwrap(), &Selection::new(vec![0], group));
    let expanded = server::expand(&places, &query, &keys, 2);
    let small = Tree::get().small();
    let (q, half) = (small.modulus() as u64, 1u64 << (DIGIT_BITS - 1));
    // The leaf of the first dimension's one row comes before them.
    let digits: Vec<Vec<bool>> = testing::aligned(256)[1..]
        .iter()
        .map(|record| {
            unpack(record, LANE_BITS).take(DEGREE).map(|lane| lane >> (LANE_BITS - 1) == 1).collect()
        })
        .collect();
    let plain: Vec<Poly<Values>> = digits
        .iter()
        .map(|digits| {
            let words = digits.iter().map(|negative| if *negative { q - half } else { half - 1 });
            small.forward(small.polynomial(words.collect()).unwrap())
        })
        .collect();
    let mut sum = Pair { mask: small.zero(), body: small.zero() };
    for (leaf, plain) in expanded.second.iter().zip(&plain) {
        small.multiply_add(&mut sum.mask, &leaf.mask, plain);
        small.multiply_add(&mut sum.body, &leaf.body, plain);
    }
    let noise = testing::noise(small, &secret, &sum, &|i| {
        let digit = if digits[group as usize][i] { -i128::from(half) } else { i128::from(half) - 1 };
        (digit * i128::from(q)) >> DIGIT_BITS
    });
    let stages = Stages::new(&places);
    let most = noise.iter().fold(0.0, |most: f64, off| most.max(off.abs()));
    eprintln!("aligned digits: {:.1} deviations", most / stages.second.sqrt());
    let room = Tree::get().margin(DIGIT_BITS, BODY_BITS) - 7.0 * stages.sent.sqrt();
    assert!(most < room, "{most} of {room}");
}
