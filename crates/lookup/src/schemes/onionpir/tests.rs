//! The whole lookup at full ring size: what comes back, and its noise at each stage.
#![allow(clippy::print_stderr, reason = "noise is shown beside what it is sized by")]

use std::sync::Arc;

use blindcore_accel::{Device, SharedBytes};
use blindcore_accel_cpu::Cpu;
use blindcore_rlwe::{Ciphertext, Noise, Pair, Plaintext, Ring};

use super::client::OnionClient;
use super::keys::{self, Registered};
use super::params::{BIT_LEAVES, DEGREE, Places, Rings, Stages};
use super::server::{self, Expanded};
use crate::schemes::rings::{LANE_BITS, SEED_BYTES, Secret};
use crate::{Geometry, OperandBytes, Params, Preprocessing, Selection, pack_group, preprocess, schemes};

/// A table in place, and a client with its keys.
struct Table {
    params: Params,
    places: Places,
    client: OnionClient,
    secret: Secret,
    keys: Registered,
    polynomials: Arc<dyn blindcore_accel::Placed>,
}

fn keys() -> (Secret, Registered) {
    let made = keys::make().unwrap();
    let seed: &[u8; SEED_BYTES] = made.secret[..].try_into().unwrap();
    (keys::secret(seed), Registered::new(&made.public).unwrap())
}

fn device() -> Device {
    Cpu::with_threads("cpu", 2).unwrap()
}

impl Table {
    /// `slot(group, column)` is what lies there.
    fn new(geometry: Geometry, slot: impl Fn(usize, usize) -> Vec<u8>) -> Self {
        let params = Params::new(schemes::find("onionpir").unwrap(), geometry).unwrap();
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
        let (secret, keys) = keys();
        let client = OnionClient::new(&params, hint[..].try_into().unwrap());
        Self { params, places: Places::new(&geometry), client, secret, keys, polynomials }
    }

    fn ask(&self, selection: &Selection) -> (Vec<u8>, super::client::Pending) {
        let (query, pending) =
            self.client.make_query(self.client.prepare_under(&self.secret).unwrap(), selection);
        assert_eq!(query.len(), self.params.query_bytes());
        (query, pending)
    }

    fn scan(&self, query: &Expanded) -> Vec<u64> {
        self.polynomials.run(&blindcore_accel::Words::U64(query.first.clone())).unwrap().0.into_u64().unwrap()
    }

    fn fetch(&self, selection: &Selection) -> Vec<u8> {
        let (query, pending) = self.ask(selection);
        let expanded = server::expand(&self.places, &query, &self.keys);
        let outputs = self.scan(&expanded);
        let mut answer = Vec::new();
        for part in 0..self.places.parts {
            let whole = server::fold(&self.places, &expanded, &outputs, part, 2);
            let alone = server::fold(&self.places, &expanded, &outputs, part, 1);
            assert!(whole.body.words() == alone.body.words(), "threads decide nothing");
            server::round(&self.places, &whole, &mut answer);
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
        [(1, 1, 1), (5, 700, 9), (256, 23, 12), (64, 9, 300), (4096, 3, 5), (6000, 1, 2)]
    {
        let geometry = Geometry { record_bytes, groups, columns };
        let slot = |group: usize, column: usize| -> Vec<u8> {
            (0..record_bytes).map(|i| byte((group * columns + column) * record_bytes + i)).collect()
        };
        let table = Table::new(geometry, slot);
        let slots = geometry.slots() as usize;
        for index in [0, 1, slots / 2, slots * 2 / 3, slots - 1].map(|index| index.min(slots - 1)) {
            let selection = Selection::index(&geometry, index as u64).unwrap();
            let want = slot(index / columns, index % columns);
            assert!(table.fetch(&selection) == want, "{geometry:?}, slot {index}");
        }
    }
}

#[test]
fn picked_columns_add_up_lane_by_lane() {
    for columns in [40, 300] {
        let geometry = Geometry { record_bytes: 100, groups: 5, columns };
        let slot = |group: usize, column: usize| -> Vec<u8> {
            (0..100).map(|i| byte((group * columns + column) * 100 + i)).collect()
        };
        let table = Table::new(geometry, slot);
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
    let geometry = Geometry { record_bytes: 300, groups: 50, columns: 6 };
    let params = Params::new(schemes::find("onionpir").unwrap(), geometry).unwrap();
    let mut database = params.database_buffer();
    for group in 0..50 {
        let slots: Vec<u8> = (0..1800).map(|i| byte(group * 1800 + i)).collect();
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
    /// The mean square of the noise of a pair of a ring, of which `message` is what it encrypts, as residues.
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
        let phase = ring.inverse(phase);
        let q = ring.modulus() as i128;
        let off = |(i, word): (usize, &u64)| {
            let off = (i128::from(*word) - message(i)).rem_euclid(q);
            if off > q / 2 { off - q } else { off }
        };
        phase.words().iter().enumerate().map(|word| off(word) as f64).collect()
    }
}

/// At the full height of the tree, each stage's noise is what parameters are sized by: for random records, for records that are one
/// pattern, and for records that are aligned with the tree, so that without their pad the errors that leaves share would meet.
#[test]
fn noise_is_what_parameters_are_sized_by() {
    // All of a polynomial, so that a record decides each of its coefficients.
    let geometry = Geometry { record_bytes: 2816, groups: 5, columns: 240 };
    let aligned = aligned(240);
    type Records<'a> = &'a dyn Fn(usize, usize) -> Vec<u8>;
    let all: [(&str, Records<'_>); 3] = [
        ("random", &|group, column| (0..2816).map(|i| byte((group * 240 + column) * 2816 + i)).collect()),
        ("one pattern", &|_, _| [0, 4, 32, 0, 1, 8, 64, 0, 2, 16, 128].repeat(256)),
        ("aligned", &|_, column| aligned[column].clone()),
    ];
    for (what, records) in all {
        let table = Table::new(geometry, records);
        let (places, meter) = (table.places, Meter { table: &table });
        assert_eq!((places.height, places.rows, places.folds), (8, 240, 3));
        let stages = Stages::new(&places);
        let rings = Rings::get();
        let (large, small) = (rings.large(), rings.small());
        let (group, column) = (3u32, 201u32);
        let (query, pending) = table.ask(&Selection::new(vec![column], group));
        let near = |stage: &str, measured: f64, predicted: f64| {
            let (measured, predicted) = (measured.log2() / 2.0, predicted.log2() / 2.0);
            eprintln!("{what:12} {stage:24} 2^{measured:.2}, sized by 2^{predicted:.2}");
            assert!(
                measured < predicted + 0.2,
                "{what}, {stage}: 2^{measured:.2}, sized by 2^{predicted:.2}"
            );
            assert!(
                measured > predicted - 0.6,
                "{what}, {stage}: 2^{measured:.2}, sized by 2^{predicted:.2}"
            );
        };
        let mean = |squares: Vec<f64>| squares.iter().sum::<f64>() / squares.len() as f64;

        let leaves = server::leaves(&places, &query, &table.keys);
        let bit = |leaf: usize| {
            let (fold, digit) = ((leaf - places.rows) / BIT_LEAVES, (leaf - places.rows) % BIT_LEAVES);
            i128::from(group >> fold & 1) * i128::from(rings.weight(digit))
        };
        let constant = |leaf: usize| {
            if leaf < places.rows {
                i128::from(leaf == column as usize) * i128::from(rings.delta())
            } else {
                bit(leaf)
            }
        };
        let squares = leaves
            .iter()
            .enumerate()
            .map(|(leaf, c)| meter.square(large, c.pair(), &|i| if i == 0 { constant(leaf) } else { 0 }));
        near("leaves", mean(squares.collect()), stages.leaf);

        let p = 1i128 << LANE_BITS;
        let step = small.modulus() as i128;
        let switched: Vec<Ciphertext> =
            leaves.iter().map(|leaf| leaf.switch_modulus(small).unwrap()).collect();
        let squares = switched[..places.rows].iter().enumerate().map(|(leaf, c)| {
            let here = i128::from(leaf == column as usize) * ((step + p / 2) / p);
            meter.square(small, c.pair(), &|i| if i == 0 { here } else { 0 })
        });
        near("leaves, switched", mean(squares.collect()), stages.switched);

        let expanded = server::expand(&places, &query, &table.keys);
        let outputs = table.scan(&expanded);
        // What lies in a row of an output: a product with an encryption of 1 without noise or mask shows it.
        let mut picking = expanded.first.clone();
        picking.fill(0);
        picking[(2 * column as usize + 1) * DEGREE..][..DEGREE].fill(1);
        let plain =
            table.polynomials.run(&blindcore_accel::Words::U64(picking)).unwrap().0.into_u64().unwrap();
        let stored = |output: usize| -> Vec<i128> {
            let values = small.polynomial(plain[(2 * output + 1) * DEGREE..][..DEGREE].to_vec()).unwrap();
            let lanes = small.inverse(values);
            let centred =
                |x: &u64| if i128::from(*x) > step / 2 { i128::from(*x) - step } else { i128::from(*x) };
            lanes.words().iter().map(centred).collect()
        };
        let scaled = |lane: i128| (lane * step + (p / 2) * lane.signum()) / p;
        let pair = |output: usize| {
            let words = &outputs[output * 2 * DEGREE..][..2 * DEGREE];
            let [mask, body] =
                [&words[..DEGREE], &words[DEGREE..]].map(|w| small.polynomial(w.to_vec()).unwrap());
            Pair { mask, body }
        };
        let squares = (0..places.outputs).map(|output| {
            let lanes = stored(output);
            meter.square(small, &pair(output), &|i| scaled(lanes[i]))
        });
        near("outputs", mean(squares.collect()), stages.first);
        // No coefficient is singled out, as the constant one would be where records without a pad are aligned: of 10,240 one
        // passes six and a half deviations once in a million.
        for output in 0..places.outputs {
            let lanes = stored(output);
            let noise = meter.noise(small, &pair(output), &|i| scaled(lanes[i]));
            let most = noise.iter().fold(0.0, |most: f64, off| most.max(off.abs()));
            assert!(most < 6.5 * stages.first.sqrt(), "{what}: {most} of {}", stages.first.sqrt());
        }

        // Factors, by what a product adds to a ciphertext without noise.
        let zero = Ciphertext::trivial(small, &Plaintext::new(&rings.parameters, &[]).unwrap());
        let folded = server::fold(&places, &expanded, &outputs, 0, 1);
        let lanes = stored(group as usize);
        let all = meter.square(small, &folded, &|i| scaled(lanes[i]));
        near("folded", all, stages.first + f64::from(places.folds) * stages.fold);
        let first = Ciphertext::from_pair(&rings.parameters, small, pair(1), Noise::NONE);
        let product = expanded.bits[1].choose(&first, &zero);
        let added = {
            // The bit is 1 for group 3: the choice is the zero, and noise.
            meter.square(small, product.pair(), &|_| 0)
        };
        near("a choice", added, stages.fold);

        // What comes back is right, and so is the pad of it.
        let mut answer = Vec::new();
        server::round(&places, &folded, &mut answer);
        assert!(table.client.read(&pending, &answer).to_vec() == records(group as usize, column as usize));
    }
}

/// Records whose lanes have the signs of what each leaf makes of one error at the root, turned round: their products add up in the
/// constant coefficient.
fn aligned(rows: usize) -> Vec<Vec<u8>> {
    let d = DEGREE as i64;
    let automorphism = |x: &[i64], k: i64| {
        let mut out = vec![0; DEGREE];
        for (i, x) in (0i64..).zip(x) {
            let to = i * k % (2 * d);
            out[(to % d) as usize] = if to < d { *x } else { -*x };
        }
        out
    };
    let turned = |x: &[i64], power: i64| {
        let mut out = vec![0; DEGREE];
        for (i, x) in (0i64..).zip(x) {
            let to = (i + power).rem_euclid(2 * d);
            out[(to % d) as usize] = if to < d { *x } else { -*x };
        }
        out
    };
    // A key's error at the root goes to the even leaf, and with the other sign, turned, to the odd one.
    let error: Vec<i64> = (0..DEGREE).map(|i| i64::from(byte(i)) - 128).collect();
    let mut nodes = vec![error.clone(), turned(&error, -1).iter().map(|x| -x).collect()];
    for level in 1..8 {
        let (width, k) = (1i64 << level, d / (1 << level) + 1);
        let mut odd = Vec::new();
        for node in &mut nodes {
            let image = automorphism(node, k);
            let difference: Vec<i64> = node.iter().zip(&image).map(|(a, b)| a - b).collect();
            odd.push(turned(&difference, -width));
            node.iter_mut().zip(&image).for_each(|(a, b)| *a += b);
        }
        nodes.extend(odd);
    }
    let record = |node: &Vec<i64>| {
        // The product's constant coefficient has coefficient i of one meet -(d - i) of the other.
        let lane = |i: usize| {
            let meets = if i == 0 { node[0] } else { -node[DEGREE - i] };
            if meets > 0 { (1u64 << (LANE_BITS - 1)) - 1 } else { 1 << (LANE_BITS - 1) }
        };
        let mut bytes = Vec::new();
        blindcore_rlwe::rounding::pack(&(0..DEGREE).map(lane).collect::<Vec<_>>(), LANE_BITS, &mut bytes);
        bytes
    };
    nodes[..rows].iter().map(record).collect()
}
