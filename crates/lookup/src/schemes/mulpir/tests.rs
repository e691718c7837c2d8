//! The whole lookup at full ring size: what comes back, and its noise at each stage.

use std::sync::Arc;

use blindcore_rlwe::{Ciphertext, Pair, Ring};

use super::client::{MulClient, Pending};
use super::keys::{self, Registered};
use super::params::{DEGREE, PAIR, Rings, Stages, places};
use super::server::{self, Expanded};
use crate::schemes::rings::polynomials::Outputs;
use crate::schemes::rings::testing::{self, Fetch, Slot, Stored, byte, near, square};
use crate::schemes::rings::{LANE_BITS, Places, Secret};
use crate::{Geometry, Selection};

/// A table in place, and a client with its keys.
struct Table {
    stored: Stored,
    places: Places,
    client: MulClient,
    secret: Secret,
    keys: Registered,
}

impl Table {
    /// `slot(group, column)` is what lies there.
    fn new(geometry: Geometry, slot: impl Fn(usize, usize) -> Vec<u8>) -> Self {
        let stored = Stored::new("mulpir", geometry, slot);
        let made = keys::make().unwrap();
        let secret = keys::secret(made.secret[..].try_into().unwrap());
        let keys = Registered::new(&made.public).unwrap();
        let client = MulClient::new(&stored.params, stored.seed);
        Self { stored, places: places(&geometry), client, secret, keys }
    }

    fn ask(&self, selection: &Selection) -> (Vec<u8>, Pending) {
        let (query, pending) =
            self.client.make_query(self.client.prepare_under(&self.secret).unwrap(), selection);
        assert_eq!(query.len(), self.stored.params.query_bytes());
        (query, pending)
    }

    fn pick(&self, query: &Expanded, outputs: &[u64]) -> Vec<Ciphertext> {
        let outputs = Outputs::new(0, self.places.parts, PAIR, outputs);
        server::finish(&self.keys, &server::multiply(&self.places, &query.second, outputs, 2))
    }

    fn fetch(&self, selection: &Selection) -> Vec<u8> {
        let (query, pending) = self.ask(selection);
        let expanded = server::expand(&self.places, &query, &self.keys, 2);
        let outputs = self.stored.scan(&expanded.first);
        let mut answer = Vec::new();
        for picked in self.pick(&expanded, &outputs) {
            server::round(&self.places, &picked, &mut answer);
        }
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
    let sizes = [(1, 1, 1), (5, 700, 9), (256, 23, 12), (64, 9, 300), (4096, 3, 5), (6000, 1, 2)];
    testing::slots_come_back(sizes, fetching);
}

#[test]
fn long_answers_come_in_pieces() {
    testing::long_answers_come_in_pieces("mulpir", Geometry { record_bytes: 5000, groups: 100, columns: 2 });
}

#[test]
fn picked_columns_add_up_lane_by_lane() {
    testing::picked_columns_add_up("mulpir", [(100, 5, 40), (100, 5, 300)], fetching);
}

#[test]
fn a_stopped_build_goes_on_and_keeps_its_seed() {
    testing::a_stopped_build_goes_on("mulpir");
}

/// Each stage's noise is what parameters are sized by, at the full height of the tree and with a long second dimension: for random
/// records, for records that are one pattern, and for records that are aligned with the tree, so that without their pad the errors
/// that leaves share would meet.
#[test]
fn noise_is_what_parameters_are_sized_by() {
    /// Bytes of all of a polynomial, so that a record decides each of its coefficients.
    const WHOLE: usize = DEGREE / 8 * 11;
    type Records<'a> = &'a dyn Fn(usize, usize) -> Vec<u8>;
    let aligned = testing::aligned_with(DEGREE, 10, 520, LANE_BITS);
    let random = |group: usize, column: usize| -> Vec<u8> {
        (0..WHOLE).map(|i| byte((group * 520 + column) * WHOLE + i)).collect()
    };
    let pattern = |_: usize, _: usize| [0, 4, 32, 0, 1, 8, 64, 0, 2, 16, 128].repeat(WHOLE / 11);
    let all: [(&str, usize, usize, Records<'_>); 3] = [
        ("random", 2, 520, &random),
        ("one pattern", 60, 8, &pattern),
        ("aligned", 2, 520, &|_, column| aligned[column].clone()),
    ];
    for (what, groups, columns, records) in all {
        measure(what, Geometry { record_bytes: WHOLE, groups, columns }, records);
    }
}

fn measure(what: &str, geometry: Geometry, records: &dyn Fn(usize, usize) -> Vec<u8>) {
    let table = Table::new(geometry, records);
    let places = table.places;
    let Geometry { groups, columns, .. } = geometry;
    assert_eq!((places.rows, places.outputs, places.ciphertexts()), (columns, groups, 1));
    let (stages, rings) = (Stages::new(&places), Rings::get());
    let (large, small) = (rings.large(), rings.small());
    let (group, column) = (groups - 1, columns / 3 * 2);
    let (query, pending) = table.ask(&Selection::new(vec![column as u32], group as u32));
    let of = |ring: &Arc<Ring>, pair: &Pair, message: &dyn Fn(usize) -> i128| {
        square(&testing::noise(ring, &table.secret, pair, message))
    };
    let mean = |squares: Vec<f64>| squares.iter().sum::<f64>() / squares.len() as f64;
    let p = 1i128 << LANE_BITS;
    let scaled = |ring: &Ring, lane: i128| (lane * ring.modulus() as i128 + p / 2 * lane.signum()) / p;

    let expanded = server::expand(&places, &query, &table.keys, 1);
    let squares = server::leaves(&places, &query, &table.keys, 1).into_iter().enumerate().map(|(leaf, c)| {
        let here = i128::from(leaf == column || leaf == columns + group) * scaled(large, 1);
        of(large, c.pair(), &|i| if i == 0 { here } else { 0 })
    });
    near(what, "leaves", mean(squares.collect()), stages.leaf);

    let outputs = table.stored.scan(&expanded.first);
    // What lies in a row of an output: a product with an encryption of 1 without noise or mask shows it.
    let mut picking = expanded.first.clone();
    picking.fill(0);
    picking[(2 * column + 1) * large.words()..][..large.words()].fill(1);
    let plain = table.stored.scan(&picking);
    let stored = |output: usize| -> Vec<i128> {
        large
            .centred(&large.inverse(server::output(&plain[output * PAIR..][..PAIR]).pair().body.clone()))
            .to_vec()
    };
    let firsts: Vec<Vec<f64>> = (0..groups)
        .map(|output| {
            let lanes = stored(output);
            let first = server::output(&outputs[output * PAIR..][..PAIR]);
            testing::noise(large, &table.secret, first.pair(), &|i| scaled(large, lanes[i]))
        })
        .collect();
    near(what, "first dimension", mean(firsts.iter().map(|noise| square(noise)).collect()), stages.first);
    // No coefficient is singled out, as the constant one would be where records without a pad are aligned: of some 200,000 one
    // passes seven deviations once in a million.
    let most = firsts.iter().flatten().fold(0.0, |most: f64, off| most.max(off.abs()));
    assert!(most < 7.0 * stages.first.sqrt(), "{what}: {most} of {}", stages.first.sqrt());

    let picked = table.pick(&expanded, &outputs).remove(0);
    let lanes = stored(group);
    near(what, "products", of(large, picked.pair(), &|i| scaled(large, lanes[i])), stages.product);
    let switched = server::switched(&picked);
    near(what, "one prime", of(small, switched.pair(), &|i| scaled(small, lanes[i])), stages.switched);

    // What comes back is right, and so is the pad of it.
    let mut answer = Vec::new();
    server::round(&places, &picked, &mut answer);
    assert!(table.client.read(&pending, &answer).to_vec() == records(group, column), "{what}");
}
