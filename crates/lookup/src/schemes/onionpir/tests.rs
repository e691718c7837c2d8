//! The whole lookup at full ring size: what comes back, and its noise at each stage.
#![allow(clippy::print_stderr, reason = "noise is shown beside what it is sized by")]

use std::sync::Arc;

use blindcore_accel::{Device, SharedBytes, Words};
use blindcore_accel_cpu::Cpu;
use blindcore_rlwe::{Ciphertext, Noise, Pair, Plaintext, Ring};

use super::InsecureOnionPir2021;
use super::client::OnionClient;
use super::keys::{self, Registered};
use super::params::{CLASSICAL, DEGREE, PUBLISHED, Places, Set, Stages};
use super::server::{self, Expanded};
use crate::schemes::rings::{SEED_BYTES, Secret};
use crate::{Geometry, OperandBytes, Params, Preprocessing, Selection, pack_group, preprocess, schemes};

/// A table in place, and a client with its keys.
struct Table {
    set: &'static Set,
    params: Params,
    places: Places,
    client: OnionClient,
    secret: Secret,
    keys: Registered,
    polynomials: Arc<dyn blindcore_accel::Placed>,
}

fn device() -> Device {
    Cpu::with_threads("cpu", 2).unwrap()
}

impl Table {
    /// `slot(group, column)` is what lies there.
    fn new(set: &'static Set, geometry: Geometry, slot: impl Fn(usize, usize) -> Vec<u8>) -> Self {
        let params = Params::new(schemes::find(set.about.name).unwrap(), geometry).unwrap();
        let mut database = params.database_buffer();
        for group in 0..geometry.groups {
            let slots: Vec<u8> = (0..geometry.columns).flat_map(|column| slot(group, column)).collect();
            pack_group(&params, group, &slots, &mut database);
        }
        let (device, mut hint) = (device(), vec![0; params.hint_bytes() as usize]);
        let database: Vec<SharedBytes> = vec![Arc::new(database)];
        let mut derived = preprocess(&params, &device, database, &mut hint, &mut ()).unwrap();
        let contract = device.contract(&params.operands()[1].shape).unwrap();
        let bytes: SharedBytes = Arc::new(derived.remove(0));
        let polynomials = contract.place(blindcore_accel::Database::Packed(vec![bytes])).unwrap();
        let made = keys::make(set).unwrap();
        let secret = keys::secret(set, made.secret[..].try_into().unwrap());
        let keys = Registered::new(set, &made.public).unwrap();
        let client = OnionClient::new(set, &params, hint[..].try_into().unwrap());
        let places = Places::new(&set.sizes, &geometry);
        Self { set, params, places, client, secret, keys, polynomials }
    }

    fn ask(&self, selection: &Selection) -> (Vec<u8>, super::client::Pending) {
        let (query, pending) =
            self.client.make_query(self.client.prepare_under(&self.secret).unwrap(), selection);
        assert_eq!(query.len(), self.params.query_bytes());
        (query, pending)
    }

    fn expand(&self, query: &[u8], threads: usize) -> Expanded {
        server::expand(self.set, &self.places, query, &self.keys, threads)
    }

    fn scan(&self, first: Vec<u64>) -> Vec<u64> {
        self.polynomials.run(&Words::U64(first)).unwrap().0.into_u64().unwrap()
    }

    fn left(&self, query: &Expanded, outputs: &[u64], part: usize, threads: usize) -> Ciphertext {
        server::later_dimensions(self.set, &self.places, query, outputs, part, threads)
    }

    fn fetch(&self, selection: &Selection) -> Vec<u8> {
        let (query, pending) = self.ask(selection);
        let expanded = self.expand(&query, 2);
        assert!(expanded.first == self.expand(&query, 1).first, "threads decide nothing");
        let outputs = self.scan(expanded.first.clone());
        let mut answer = Vec::new();
        for part in 0..self.places.parts {
            let [alone, whole] = [1, 3].map(|threads| self.left(&expanded, &outputs, part, threads));
            assert!(whole.pair().body.words() == alone.pair().body.words(), "threads decide nothing");
            server::round(self.set, &self.places, &whole, &mut answer);
        }
        assert_eq!(answer.len(), self.params.answer_bytes());
        self.client.read(&pending, &answer).to_vec()
    }
}

fn byte(i: usize) -> u8 {
    (i.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

#[test]
fn slots_come_back_wherever_they_lie() {
    for (record_bytes, groups, columns) in
        [(1, 1, 1), (5, 3000, 9), (256, 130, 12), (64, 9, 300), (3000, 100, 2), (20_000, 3, 2)]
    {
        slots_come_back(&CLASSICAL, Geometry { record_bytes, groups, columns });
    }
}

fn slots_come_back(set: &'static Set, geometry: Geometry) {
    let Geometry { record_bytes, columns, .. } = geometry;
    let slot = |group: usize, column: usize| -> Vec<u8> {
        (0..record_bytes).map(|i| byte((group * columns + column) * record_bytes + i)).collect()
    };
    let table = Table::new(set, geometry, slot);
    let slots = geometry.slots() as usize;
    for index in [0, 1, slots / 2, slots * 2 / 3, slots - 1].map(|index| index.min(slots - 1)) {
        let selection = Selection::index(&geometry, index as u64).unwrap();
        let want = slot(index / columns, index % columns);
        assert!(table.fetch(&selection) == want, "{geometry:?}, slot {index}");
    }
}

#[test]
fn picked_columns_add_up_lane_by_lane() {
    for columns in [40, 300] {
        let geometry = Geometry { record_bytes: 100, groups: 5, columns };
        let slot = |group: usize, column: usize| -> Vec<u8> {
            (0..100).map(|i| byte((group * columns + column) * 100 + i)).collect()
        };
        let table = Table::new(&CLASSICAL, geometry, slot);
        let picked = [0, 7, columns as u32 / 2, columns as u32 - 1];
        let mut sums = table.params.lanes().sums();
        let all = picked.map(|column| slot(3, column as usize));
        let want: Vec<u8> = (0..100).map(|i| sums.next(&all.each_ref().map(|slot| slot[i]), &[])).collect();
        assert!(table.fetch(&Selection::new(picked.to_vec(), 3)) == want, "{columns}");
    }
}

#[test]
fn a_stopped_build_goes_on_and_keeps_its_seed() {
    struct UpTo(u64, u64);
    impl crate::Progress for UpTo {
        fn at(&mut self, _: &str, done: u64, _: Option<u64>, _: blindcore_units::Unit) {
            self.1 = done;
        }
        fn stopped(&self) -> bool {
            self.1 >= self.0
        }
    }
    let geometry = Geometry { record_bytes: 1500, groups: 50, columns: 3 };
    let params = Params::new(schemes::find(CLASSICAL.about.name).unwrap(), geometry).unwrap();
    let mut database = params.database_buffer();
    for group in 0..50 {
        let slots: Vec<u8> = (0..4500).map(|i| byte(group * 4500 + i)).collect();
        pack_group(&params, group, &slots, &mut database);
    }
    let device = device();
    let records = schemes::matrix::place(&device, &params.records(), vec![Arc::new(database)]).unwrap();
    let mut hint = vec![0; SEED_BYTES];
    let (mut derived, mut done, mut seeds) = (None, 0, Vec::new());
    let outputs = loop {
        let memory =
            derived.take().unwrap_or_else(|| vec![OperandBytes::new(vec![0; params.operands()[1].bytes()])]);
        let mut made = Preprocessing::resume(&params, &mut hint, memory, done).unwrap();
        let ran = made.run(&params, &device, &*records, &mut UpTo(done + 2, done));
        let Preprocessing { derived: so_far, done: passes, .. } = made;
        seeds.push(hint.clone());
        match ran {
            Ok(()) => break so_far,
            Err(crate::Error::Stopped) => (derived, done) = (Some(so_far), passes),
            Err(error) => panic!("{error}"),
        }
        assert!(seeds.len() < 20, "it goes on");
    };
    assert!(seeds.len() > 2 && seeds.windows(2).all(|pair| pair[0] == pair[1]));
    // As made in one go under the same seed: `done` of 0 would draw another, so all but the first output are made again.
    let memory = vec![OperandBytes::new(vec![0; params.operands()[1].bytes()])];
    let mut again = Preprocessing::resume(&params, &mut hint, memory, 1).unwrap();
    again.run(&params, &device, &*records, &mut ()).unwrap();
    let output = params.operands()[1].stripe_bytes();
    assert!(again.derived[0][output..] == outputs[0][output..]);
}

/// What the noise of ciphertexts is: their phases less what they encrypt.
struct Meter<'a> {
    table: &'a Table,
}

impl Meter<'_> {
    /// The mean square of the noise of a pair of a ring, of which `message` is what it encrypts.
    fn square(&self, ring: &Arc<Ring>, pair: &Pair, message: &dyn Fn(usize) -> i128) -> f64 {
        let noise = self.noise(ring, pair, message);
        noise.iter().map(|off| off * off).sum::<f64>() / DEGREE as f64
    }

    /// The noise of each coefficient.
    fn noise(&self, ring: &Arc<Ring>, pair: &Pair, message: &dyn Fn(usize) -> i128) -> Vec<f64> {
        let mut phase = pair.mask.clone();
        ring.multiply(&mut phase, &self.table.secret.key().values(ring));
        ring.negate(&mut phase);
        ring.add(&mut phase, &pair.body);
        let (phase, q) = (ring.centred(&ring.inverse(phase)), ring.modulus() as i128);
        let off = |(i, phase): (usize, &i128)| {
            let off = (phase - message(i)).rem_euclid(q);
            if off > q / 2 { off - q } else { off }
        };
        phase.iter().enumerate().map(|phase| off(phase) as f64).collect()
    }
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
    slots_come_back(&PUBLISHED, Geometry { record_bytes: 30_000, groups: 3, columns: 2 });
}

fn noise_is_what_a_set_is_sized_by(set: &'static Set, height: u32, rows: usize, kinds: &[&str]) {
    let lane = set.sizes.lane_bits;
    // All of a polynomial, so that a record decides each of its coefficients.
    let record_bytes = DEGREE / 8 * lane as usize;
    let geometry = Geometry { record_bytes, groups: 5, columns: rows };
    let aligned = aligned(height, rows, lane);
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
        let (places, meter) = (table.places, Meter { table: &table });
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
            meter.square(large, c.pair(), &|i| if i == 0 { constant(leaf) as i128 * lifted } else { 0 })
        });
        near("leaves", mean(squares.collect()), stages.leaf);
        let squares = leaves.iter().enumerate().take(places.picking()).map(|(leaf, c)| {
            let switched = c.switch_modulus(small).unwrap();
            meter.square(small, switched.pair(), &|i| if i == 0 { constant(leaf) as i128 } else { 0 })
        });
        near("leaves, switched", mean(squares.collect()), stages.switched);

        let expanded = table.expand(&query, 2);
        let outputs = table.scan(expanded.first.clone());
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
        let plain = table.scan(picking);
        let stored = |output: usize| small.centred(&small.inverse(pair(&plain, output).body));
        let scaled = |lane: i128| lane * rings.delta() as i128;
        let squares = (0..places.outputs).map(|output| {
            let lanes = stored(output);
            let noise = meter.noise(small, &pair(&outputs, output), &|i| scaled(lanes[i]));
            // No coefficient is singled out, as the constant one would be where records without a pad are aligned: of 20,480 one
            // passes seven deviations once in ten million.
            let most = noise.iter().fold(0.0, |most: f64, off| most.max(off.abs()));
            assert!(most < 7.0 * stages.first.sqrt(), "{what}: {most} of {}", stages.first.sqrt());
            noise.iter().map(|off| off * off).sum::<f64>() / DEGREE as f64
        });
        near("outputs", mean(squares.collect()), stages.first);

        let left = table.left(&expanded, &outputs, 0, 1);
        let lanes = stored(group as usize);
        let all = meter.square(small, left.pair(), &|i| scaled(lanes[i]));
        near("left", all, stages.first + places.factors() as f64 * stages.product);
        // What a product adds: the factor is 1, so the choice is the zero, and noise.
        let zero = Ciphertext::trivial(small, &Plaintext::new(&rings.parameters, &[]).unwrap());
        let first = Ciphertext::from_pair(&rings.parameters, small, pair(&outputs, 1), Noise::NONE);
        let product = expanded.factors[2].choose(&first, &zero);
        near("a product", meter.square(small, product.pair(), &|_| 0), stages.product);

        // What comes back is right, and so is the pad of it.
        let one_prime = left.switch_modulus(last).unwrap();
        let (q, p) = (last.modulus() as i128, 1i128 << lane);
        let at_last = |lane: i128| (lane * q + (p / 2) * lane.signum()) / p;
        near("one prime", meter.square(last, one_prime.pair(), &|i| at_last(lanes[i])), stages.last);
        let mut answer = Vec::new();
        server::round(set, &places, &left, &mut answer);
        assert!(table.client.read(&pending, &answer).to_vec() == records(group as usize, column as usize));
    }
}

/// Records whose lanes have the signs of what each leaf makes of one error at the root, turned round: their products add up in the
/// constant coefficient.
fn aligned(height: u32, rows: usize, lane_bits: u32) -> Vec<Vec<u8>> {
    let d = DEGREE as i64;
    // Coefficient i of `x` goes to place `to(i)`, modulo X^d + 1.
    let moved = |x: &[i64], to: &dyn Fn(i64) -> i64| {
        let mut out = vec![0; DEGREE];
        for (i, x) in (0i64..).zip(x) {
            let to = to(i).rem_euclid(2 * d);
            out[(to % d) as usize] = if to < d { *x } else { -*x };
        }
        out
    };
    // A key's error at the root goes to the even leaf, and with the other sign, turned, to the odd one.
    let error: Vec<i64> = (0..DEGREE).map(|i| i64::from(byte(i)) - 128).collect();
    let mut nodes = vec![error.clone(), moved(&error, &|i| i - 1).iter().map(|x| -x).collect()];
    for level in 1..height {
        let (width, k) = (1i64 << level, d / (1 << level) + 1);
        let mut odd = Vec::new();
        for node in &mut nodes {
            let image = moved(node, &|i| i * k);
            let difference: Vec<i64> = node.iter().zip(&image).map(|(a, b)| a - b).collect();
            odd.push(moved(&difference, &|i| i - width));
            node.iter_mut().zip(&image).for_each(|(a, b)| *a += b);
        }
        nodes.extend(odd);
    }
    let record = |node: &Vec<i64>| {
        // The product's constant coefficient has coefficient i of one meet -(d - i) of the other.
        let lane = |i: usize| {
            let meets = if i == 0 { node[0] } else { -node[DEGREE - i] };
            if meets > 0 { (1u64 << (lane_bits - 1)) - 1 } else { 1 << (lane_bits - 1) }
        };
        let mut bytes = Vec::new();
        blindcore_rlwe::rounding::pack(&(0..DEGREE).map(lane).collect::<Vec<_>>(), lane_bits, &mut bytes);
        bytes
    };
    nodes[..rows].iter().map(record).collect()
}
