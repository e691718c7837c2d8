//! The whole lookup at full ring size: what comes back, and its noise at each stage.

use blindcore_rlwe::{Ciphertext, Noise, Pair, Plaintext};

use super::client::{OnionClient, Pending};
use super::keys::{self, Registered};
use super::params::{BIT_LEAVES, Gadgets, PAIR, Stages, folds, places, sent};
use super::server::{self, Expanded};
use crate::schemes::rings::polynomials::Outputs;
use crate::schemes::rings::testing::{self, Fetch, Slot, Stored, byte, near, square};
use crate::schemes::rings::tree::Tree;
use crate::schemes::rings::{LANE_BITS, Places, Secret, queries};
use crate::{Geometry, SchemeClient, Selection};

/// A table in place, and a client with its keys.
struct Table {
    stored: Stored,
    places: Places,
    client: OnionClient,
    secret: Secret,
    keys: Registered,
}

impl Table {
    /// `slot(group, column)` is what lies there.
    fn new(geometry: Geometry, slot: impl Fn(usize, usize) -> Vec<u8>) -> Self {
        let stored = Stored::new("onionpir2", geometry, slot);
        let made = keys::make().unwrap();
        let secret = Tree::get().secret(made.secret[..].try_into().unwrap());
        let keys = Registered::new(&made.public).unwrap();
        let client = OnionClient::new(&stored.params, stored.seed);
        Self { stored, places: places(&geometry), client, secret, keys }
    }

    fn ask(&self, selection: &Selection) -> (Vec<u8>, Pending) {
        let (query, pending) = self.client.make_query(self.client.prepare(&self.secret).unwrap(), selection);
        assert_eq!(query.len(), self.stored.params.query_bytes());
        (query, pending)
    }

    fn fold(&self, query: &Expanded, outputs: &[u64], part: usize, threads: usize) -> Pair {
        let outputs = Outputs::new(0, self.places.parts, PAIR, outputs);
        let low = server::low(&self.places, query, outputs, part, threads);
        server::high(&self.places, query, &low, threads)
    }

    fn fetch(&self, selection: &Selection) -> Vec<u8> {
        let (query, pending) = self.ask(selection);
        let expanded = server::expand(&self.places, &query, &self.keys, 2);
        let outputs = self.stored.scan(&expanded.first);
        let mut answer = Vec::new();
        for part in 0..self.places.parts {
            let [whole, alone] = [2, 1].map(|threads| self.fold(&expanded, &outputs, part, threads));
            assert!(whole.body.words() == alone.body.words(), "threads decide nothing");
            sent(&self.places).write(&whole, &mut answer);
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
    // The last two have outputs that share stripes, a few less than stripes have room for, and of parts.
    let sizes = [
        (1, 1, 1),
        (5, 700, 9),
        (256, 23, 12),
        (64, 9, 300),
        (4096, 3, 5),
        (6000, 1, 2),
        (2816, 23, 3),
        (6000, 9, 2),
    ];
    testing::slots_come_back(sizes, fetching);
}

#[test]
fn long_answers_come_in_pieces() {
    testing::long_answers_come_in_pieces(
        "onionpir2",
        Geometry { record_bytes: 2500, groups: 400, columns: 2 },
    );
}

#[test]
fn picked_columns_add_up_lane_by_lane() {
    testing::picked_columns_add_up("onionpir2", [(100, 5, 40), (100, 5, 300)], fetching);
}

#[test]
fn a_stopped_build_goes_on_and_keeps_its_seed() {
    testing::a_stopped_build_goes_on("onionpir2");
}

/// At the full height of the tree, each stage's noise is what parameters are sized by: for random records, for records that are one
/// pattern, and for records that are aligned with the tree, so that without their pad the errors that leaves share would meet.
#[test]
fn noise_is_what_parameters_are_sized_by() {
    // All of a polynomial, so that a record decides each of its coefficients.
    let geometry = Geometry { record_bytes: 2816, groups: 5, columns: 240 };
    let aligned = testing::aligned(240);
    type Records<'a> = &'a dyn Fn(usize, usize) -> Vec<u8>;
    let all: [(&str, Records<'_>); 3] = [
        ("random", &|group, column| (0..2816).map(|i| byte((group * 240 + column) * 2816 + i)).collect()),
        ("one pattern", &|_, _| [0, 4, 32, 0, 1, 8, 64, 0, 2, 16, 128].repeat(256)),
        ("aligned", &|_, column| aligned[column].clone()),
    ];
    let mean = |squares: &[f64]| squares.iter().sum::<f64>() / squares.len() as f64;
    let (mut choices, mut sized) = (Vec::new(), 0.0);
    for (what, records) in all {
        let table = Table::new(geometry, records);
        let places = table.places;
        assert_eq!((places.height, places.rows, folds(&places)), (8, 240, 3));
        let stages = Stages::new(&places);
        let (tree, gadgets) = (Tree::get(), Gadgets::get());
        let (large, small) = (tree.large(), tree.small());
        let (group, column) = (3u32, 201u32);
        let (query, pending) = table.ask(&Selection::new(vec![column], group));
        let near = |stage: &str, measured: f64, predicted: f64| near(what, stage, measured, predicted);
        let noise = |ring, pair: &_, message: &dyn Fn(usize) -> i128| {
            testing::noise(ring, &table.secret, pair, message)
        };

        let leaves = queries::leaves(&places, &query, &table.keys.tree, 2);
        let bit = |leaf: usize| {
            let (fold, digit) = ((leaf - places.rows) / BIT_LEAVES, (leaf - places.rows) % BIT_LEAVES);
            i128::from(group >> fold & 1) * i128::from(gadgets.weight(digit))
        };
        let constant = |leaf: usize| {
            if leaf < places.rows {
                i128::from(leaf == column as usize) * i128::from(tree.delta(LANE_BITS))
            } else {
                bit(leaf)
            }
        };
        let squares = leaves
            .iter()
            .enumerate()
            .map(|(leaf, c)| square(&noise(large, c.pair(), &|i| if i == 0 { constant(leaf) } else { 0 })));
        near("leaves", mean(&squares.collect::<Vec<_>>()), stages.leaf);

        let p = 1i128 << LANE_BITS;
        let step = small.modulus() as i128;
        let switched: Vec<Ciphertext> =
            leaves.iter().map(|leaf| leaf.switch_modulus(small).unwrap()).collect();
        let squares = switched[..places.rows].iter().enumerate().map(|(leaf, c)| {
            let here = i128::from(leaf == column as usize) * ((step + p / 2) / p);
            square(&noise(small, c.pair(), &|i| if i == 0 { here } else { 0 }))
        });
        near("leaves, switched", mean(&squares.collect::<Vec<_>>()), stages.switched);

        let expanded = server::expand(&places, &query, &table.keys, 1);
        let outputs = table.stored.scan(&expanded.first);
        let lanes = table.stored.lanes(column as usize, places.rows);
        let scaled = |lane: i128| (lane * step + (p / 2) * lane.signum()) / p;
        let first: Vec<Vec<f64>> = (0..places.outputs)
            .map(|at| noise(small, &testing::output(&outputs, at), &|i| scaled(lanes[at][i])))
            .collect();
        near("outputs", mean(&first.iter().map(|noise| square(noise)).collect::<Vec<_>>()), stages.first);
        // No coefficient is singled out, as the constant one would be where records without a pad are aligned: of 10,240 one
        // passes seven deviations once in 10^7.
        for noise in &first {
            let most = noise.iter().fold(0.0, |most: f64, off| most.max(off.abs()));
            assert!(most < 7.0 * stages.first.sqrt(), "{what}: {most} of {}", stages.first.sqrt());
        }

        // Factors, by what a product adds to a ciphertext without noise.
        let zero = Ciphertext::trivial(small, &Plaintext::new(&tree.parameters, &[]).unwrap());
        let folded = table.fold(&expanded, &outputs, 0, 1);
        let all = square(&noise(small, &folded, &|i| scaled(lanes[group as usize][i])));
        near("folded", all, stages.first + f64::from(folds(&places)) * stages.fold);
        // The choice is the zero, and noise.
        for bit in 0..folds(&places) as usize {
            for at in 0..places.outputs {
                let output = testing::output(&outputs, at);
                let output = Ciphertext::from_pair(&tree.parameters, small, output, Noise::NONE);
                let [left, right] =
                    if group >> bit & 1 == 1 { [output, zero.clone()] } else { [zero.clone(), output] };
                choices.push(square(&noise(small, expanded.bits[bit].choose(left, right).pair(), &|_| 0)));
            }
        }
        sized = stages.fold;

        // What comes back is right, and so is the pad of it.
        let mut answer = Vec::new();
        sent(&places).write(&folded, &mut answer);
        assert!(table.client.read(&pending, &answer).to_vec() == records(group as usize, column as usize));
    }
    // The errors of one client's bits stray together, whatever the records, so all clients' are judged as one.
    near("all", "choices", mean(&choices), sized);
}
