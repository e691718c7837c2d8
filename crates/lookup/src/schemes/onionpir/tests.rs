//! The whole lookup at full ring size: what comes back, and its noise at each stage.
#![allow(clippy::print_stderr, reason = "noise is shown beside what it is sized by")]

use std::sync::Arc;

use blindcore_rlwe::{Ciphertext, Noise, Pair, Plaintext, Ring};

use super::InsecureOnionPir2021;
use super::client::OnionClient;
use super::keys::{self, Registered};
use super::params::{CLASSICAL, DEGREE, PUBLISHED, Places, Set, Stages};
use super::server::{self, Expanded};
use crate::schemes::rings::Secret;
use crate::schemes::rings::polynomials::Outputs;
use crate::schemes::rings::testing::{self, Fetch, Slot, Stored, byte, square};
use crate::{Geometry, Selection};

/// A table in place, and a client with its keys.
struct Table {
    set: &'static Set,
    stored: Stored,
    places: Places,
    client: OnionClient,
    secret: Secret,
    keys: Registered,
}

impl Table {
    /// `slot(group, column)` is what lies there.
    fn new(set: &'static Set, geometry: Geometry, slot: impl Fn(usize, usize) -> Vec<u8>) -> Self {
        let stored = Stored::new(set.about.name, geometry, slot);
        let made = keys::make(set).unwrap();
        let secret = keys::secret(set, made.secret[..].try_into().unwrap());
        let keys = Registered::new(set, &made.public).unwrap();
        let client = OnionClient::new(set, &stored.params, stored.seed);
        Self { set, places: Places::new(&set.sizes, &geometry), stored, client, secret, keys }
    }

    fn ask(&self, selection: &Selection) -> (Vec<u8>, super::client::Pending) {
        let (query, pending) =
            self.client.make_query(self.client.prepare_under(&self.secret).unwrap(), selection);
        assert_eq!(query.len(), self.stored.params.query_bytes());
        (query, pending)
    }

    fn expand(&self, query: &[u8], threads: usize) -> Expanded {
        server::expand(self.set, &self.places, query, &self.keys, threads)
    }

    fn left(&self, query: &Expanded, outputs: &[u64], part: usize, threads: usize) -> Ciphertext {
        let outputs = Outputs::new(0, self.places.parts, self.set.rings().small().words() * 2, outputs);
        let middle = server::middle(self.set, &self.places, query, outputs, part, threads);
        server::last(&self.places, query, middle, threads)
    }

    fn fetch(&self, selection: &Selection) -> Vec<u8> {
        let (query, pending) = self.ask(selection);
        let expanded = self.expand(&query, 2);
        assert!(expanded.first == self.expand(&query, 1).first, "threads decide nothing");
        let outputs = self.stored.scan(&expanded.first);
        let mut answer = Vec::new();
        for part in 0..self.places.parts {
            let [alone, whole] = [1, 3].map(|threads| self.left(&expanded, &outputs, part, threads));
            assert!(whole.pair().body.words() == alone.pair().body.words(), "threads decide nothing");
            server::round(self.set, &self.places, &whole, &mut answer);
        }
        assert_eq!(answer.len(), self.stored.params.answer_bytes());
        self.client.read(&pending, &answer).to_vec()
    }
}

/// What finds slots in such a table.
fn fetching(set: &'static Set) -> impl Fn(Geometry, Slot<'_>) -> Fetch {
    move |geometry, slot| {
        let table = Table::new(set, geometry, slot);
        Box::new(move |selection| table.fetch(selection))
    }
}

#[test]
fn slots_come_back_wherever_they_lie() {
    let sizes = [(1, 1, 1), (5, 3000, 9), (256, 130, 12), (64, 9, 300), (3000, 100, 2), (20_000, 3, 2)];
    testing::slots_come_back(sizes, fetching(&CLASSICAL));
}

#[test]
fn long_answers_come_in_pieces() {
    testing::long_answers_come_in_pieces(
        "onionpir",
        Geometry { record_bytes: 14_000, groups: 150, columns: 2 },
    );
}

#[test]
fn picked_columns_add_up_lane_by_lane() {
    testing::picked_columns_add_up("onionpir", [(100, 5, 40), (100, 5, 300)], fetching(&CLASSICAL));
}

#[test]
fn a_stopped_build_goes_on_and_keeps_its_seed() {
    let geometry = Geometry { record_bytes: 1500, groups: 50, columns: 3 };
    testing::a_stopped_build_of_goes_on("onionpir", geometry);
}

/// At the full height of the tree, each stage's noise is what parameters are sized by: for random records, for records that are one
/// pattern, and for records that are aligned with the tree, so that without their pad the errors that leaves share would meet.
#[test]
fn noise_is_what_parameters_are_sized_by() {
    noise_is_what_a_set_is_sized_by(&CLASSICAL, 9, 256, &["random", "one pattern", "aligned"]);
}

/// With split polynomials, and no prime to drop.
#[test]
fn the_published_sizes_answer_right_and_are_sized_alike() {
    assert_eq!(InsecureOnionPir2021::for_measurements().scheme().name(), PUBLISHED.about.name);
    noise_is_what_a_set_is_sized_by(&PUBLISHED, 6, 20, &["aligned"]);
    testing::slots_come_back([(30_000, 3, 2)], fetching(&PUBLISHED));
}

fn noise_is_what_a_set_is_sized_by(set: &'static Set, height: u32, rows: usize, kinds: &[&str]) {
    let lane = set.sizes.lane_bits;
    // All of a polynomial, so that a record decides each of its coefficients.
    let record_bytes = DEGREE / 8 * lane as usize;
    let geometry = Geometry { record_bytes, groups: 5, columns: rows };
    let aligned = testing::aligned_with(DEGREE, height, rows, lane);
    type Records<'a> = &'a dyn Fn(usize, usize) -> Vec<u8>;
    let all: [(&str, Records<'_>); 3] = [
        ("random", &|group, column| {
            (0..record_bytes).map(|i| byte((group * rows + column) * record_bytes + i)).collect()
        }),
        ("one pattern", &|_, _| (0..record_bytes).map(|i| 1 << (i % 8)).collect()),
        ("aligned", &|_, column| aligned[column].clone()),
    ];
    for (what, records) in all.into_iter().filter(|(what, _)| kinds.contains(what)) {
        let table = Table::new(set, geometry, records);
        let places = table.places;
        let noise = |ring: &Arc<Ring>, pair: &Pair, message: &dyn Fn(usize) -> i128| {
            testing::noise(ring, &table.secret, pair, message)
        };
        assert_eq!((places.height, places.rows, places.levels, places.factors()), (height, rows, 2, 4));
        let (stages, rings) = (Stages::new(set, &places), set.rings());
        let (large, small, last) = (rings.large(), rings.small(), rings.last());
        let (group, column) = (3u32, rows as u32 * 3 / 4);
        let (query, pending) = table.ask(&Selection::new(vec![column], group));
        let near = |stage: &str, measured: f64, predicted: f64| {
            let (measured, predicted) = (measured.log2() / 2.0, predicted.log2() / 2.0);
            eprintln!("{what:12} {stage:24} 2^{measured:.2}, sized by 2^{predicted:.2}");
            let what = format!("{what}, {stage}: 2^{measured:.2}, sized by 2^{predicted:.2}");
            assert!(measured < predicted + 0.35 && measured > predicted - 0.6, "{what}");
        };
        let mean = |squares: Vec<f64>| squares.iter().sum::<f64>() / squares.len() as f64;

        let leaves = server::leaves(set, &places, &query, &table.keys, 2);
        // In what a leaf carries modulo q: a picked row's pieces, and of the factors of group 3 the third one of the first level.
        let picked = column as usize * set.sizes.pieces;
        let constant = |leaf: usize| {
            let digit = leaf.wrapping_sub(places.picking() + 2 * rings.fold.digits());
            let piece = leaf.wrapping_sub(picked);
            if piece < set.sizes.pieces {
                rings.delta() << (piece as u32 * set.sizes.piece_bits())
            } else if digit < rings.fold.digits() {
                rings.weight(digit)
            } else {
                0
            }
        };
        let lifted = (large.modulus() / small.modulus()) as i128;
        let squares = leaves.iter().enumerate().map(|(leaf, c)| {
            square(&noise(large, c.pair(), &|i| if i == 0 { constant(leaf) as i128 * lifted } else { 0 }))
        });
        near("leaves", mean(squares.collect()), stages.leaf);
        let squares = leaves.iter().enumerate().take(places.picking()).map(|(leaf, c)| {
            let switched = c.switch_modulus(small).unwrap();
            square(&noise(small, switched.pair(), &|i| if i == 0 { constant(leaf) as i128 } else { 0 }))
        });
        near("leaves, switched", mean(squares.collect()), stages.switched);

        let expanded = table.expand(&query, 2);
        let outputs = table.stored.scan(&expanded.first);
        let pair = |outputs: &[u64], output: usize| {
            let words = &outputs[output * 2 * small.words()..][..2 * small.words()];
            let (mask, body) = words.split_at(small.words());
            let [mask, body] = [mask, body].map(|words| small.polynomial(words.to_vec()).unwrap());
            Pair { mask, body }
        };
        // What lies in a row of an output: a product with an encryption of 1 without noise or mask shows it, of each piece its weight.
        let mut picking = vec![0; expanded.first.len()];
        let words = set.sizes.pieces * small.words();
        let bodies = &mut picking[(2 * column as usize + 1) * words..][..words];
        for (piece, body) in bodies.chunks_exact_mut(small.words()).enumerate() {
            for (q, body) in small.primes().iter().zip(body.chunks_exact_mut(DEGREE)) {
                body.fill(q.reduce(1 << (piece as u32 * set.sizes.piece_bits())));
            }
        }
        let plain = table.stored.scan(&picking);
        let stored = |output: usize| small.centred(&small.inverse(pair(&plain, output).body));
        let scaled = |lane: i128| lane * rings.delta() as i128;
        let squares = (0..places.outputs).map(|output| {
            let lanes = stored(output);
            let noise = noise(small, &pair(&outputs, output), &|i| scaled(lanes[i]));
            // No coefficient is singled out, as the constant one would be where records without a pad are aligned: of 20,480 one
            // passes seven deviations once in ten million.
            let most = noise.iter().fold(0.0, |most: f64, off| most.max(off.abs()));
            assert!(most < 7.0 * stages.first.sqrt(), "{what}: {most} of {}", stages.first.sqrt());
            square(&noise)
        });
        near("outputs", mean(squares.collect()), stages.first);

        let left = table.left(&expanded, &outputs, 0, 1);
        let lanes = stored(group as usize);
        let all = square(&noise(small, left.pair(), &|i| scaled(lanes[i])));
        near("left", all, stages.first + places.factors() as f64 * stages.product);
        // What a product adds: the factor is 1, so the choice is the zero, and noise.
        let zero = Ciphertext::trivial(small, &Plaintext::new(&rings.parameters, &[]).unwrap());
        let first = Ciphertext::from_pair(&rings.parameters, small, pair(&outputs, 1), Noise::NONE);
        let product = expanded.factors[2].choose(first, zero);
        near("a product", square(&noise(small, product.pair(), &|_| 0)), stages.product);

        // What comes back is right, and so is the pad of it.
        let one_prime = left.switch_modulus(last).unwrap();
        let (q, p) = (last.modulus() as i128, 1i128 << lane);
        let at_last = |lane: i128| (lane * q + (p / 2) * lane.signum()) / p;
        near("one prime", square(&noise(last, one_prime.pair(), &|i| at_last(lanes[i]))), stages.last);
        let mut answer = Vec::new();
        server::round(set, &places, &left, &mut answer);
        assert!(table.client.read(&pending, &answer).to_vec() == records(group as usize, column as usize));
    }
}
