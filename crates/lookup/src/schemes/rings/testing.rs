//! What tests of schemes with these polynomials share.

use std::sync::Arc;

use blindcore_accel::{Device, Placed, SharedBytes, Words};
use blindcore_accel_cpu::Cpu;
use blindcore_rlwe::{Pair, Ring};

use super::polynomials::PIECE_BYTES;
use super::tree::{DEGREE, Tree};
use super::{LANE_BITS, SEED_BYTES, Secret};
use crate::{
    Client, Geometry, OperandBytes, Params, Preprocessing, Selection, Server, pack_group, preprocess, schemes,
};

pub(in crate::schemes) fn device() -> Device {
    Cpu::with_threads("cpu", 2).unwrap()
}

pub(in crate::schemes) fn byte(i: usize) -> u8 {
    (i.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

/// Of a table: the slot of a group and a column.
pub(in crate::schemes) type Slot<'a> = &'a dyn Fn(usize, usize) -> Vec<u8>;

/// What finds slots in a table: the whole way from a query to what it asked for.
pub(in crate::schemes) type Fetch = Box<dyn Fn(&Selection) -> Vec<u8>>;

/// Slots of some tables, of so many bytes, groups and columns, come back wherever they lie.
pub(in crate::schemes) fn slots_come_back(
    sizes: impl IntoIterator<Item = (usize, usize, usize)>,
    table: impl Fn(Geometry, Slot<'_>) -> Fetch,
) {
    for (record_bytes, groups, columns) in sizes {
        let geometry = Geometry { record_bytes, groups, columns };
        let slot = |group: usize, column: usize| -> Vec<u8> {
            (0..record_bytes).map(|i| byte((group * columns + column) * record_bytes + i)).collect()
        };
        let fetch = table(geometry, &slot);
        let slots = geometry.slots() as usize;
        for index in [0, 1, slots / 2, slots * 2 / 3, slots - 1].map(|index| index.min(slots - 1)) {
            let selection = Selection::index(&geometry, index as u64).unwrap();
            let want = slot(index / columns, index % columns);
            assert!(fetch(&selection) == want, "{geometry:?}, slot {index}");
        }
    }
}

/// Columns that are picked together add up lane by lane, and one that is picked again counts again.
pub(in crate::schemes) fn picked_columns_add_up(
    scheme: &str,
    sizes: impl IntoIterator<Item = (usize, usize, usize)>,
    table: impl Fn(Geometry, Slot<'_>) -> Fetch,
) {
    for (record_bytes, groups, columns) in sizes {
        let geometry = Geometry { record_bytes, groups, columns };
        let slot = |group: usize, column: usize| -> Vec<u8> {
            (0..record_bytes).map(|i| byte((group * columns + column) * record_bytes + i)).collect()
        };
        let fetch = table(geometry, &slot);
        let last = columns as u32 - 1;
        for picked in [[0, 7, last / 2, last], [4; 4]] {
            let mut sums = schemes::find(scheme).unwrap().lanes().sums();
            let all = picked.map(|column| slot(3, column as usize));
            let want: Vec<u8> =
                (0..record_bytes).map(|i| sums.next(&all.each_ref().map(|slot| slot[i]), &[])).collect();
            assert!(fetch(&Selection::new(picked.to_vec(), 3)) == want, "{geometry:?}, {picked:?}");
        }
    }
}

/// Of a table with so many outputs that a pass of three queries gives them in pieces, the answers are right.
pub(in crate::schemes) fn long_answers_come_in_pieces(scheme: &str, geometry: Geometry) {
    let slot = |slot: usize| -> Vec<u8> {
        (0..geometry.record_bytes).map(|i| byte(slot * geometry.record_bytes + i)).collect()
    };
    let params = Params::new(schemes::find(scheme).unwrap(), geometry).unwrap();
    let mut database = params.database_buffer();
    for group in 0..geometry.groups {
        let slots: Vec<u8> = (0..geometry.columns).flat_map(|i| slot(group * geometry.columns + i)).collect();
        pack_group(&params, group, &slots, &mut database);
    }
    let (device, mut hint) = (device(), vec![0; params.hint_bytes() as usize]);
    let database: SharedBytes = Arc::new(database);
    let derived = preprocess(&params, &device, vec![database.clone()], &mut hint, &mut ()).unwrap();
    let derived = derived.into_iter().map(|operand| Arc::new(operand) as SharedBytes);
    let placed: Vec<_> = params
        .stored_operands()
        .zip([database].into_iter().chain(derived))
        .map(|(operand, bytes)| {
            let contract = device.contract(&operand.shape).unwrap();
            contract.place(blindcore_accel::Database::Packed(vec![bytes])).unwrap()
        })
        .collect();
    let asked = [0, geometry.slots() / 2 + 1, geometry.slots() - 1];
    let shape = placed[1].shape().clone();
    assert!(shape.answer_len(asked.len()) * 8 > PIECE_BYTES, "n = {}: an answer of one piece", shape.n);
    let server = Server::placed(params, &device, placed).unwrap();
    let client = Client::new(params, Arc::new(hint)).unwrap();
    let made = params.make_keys().unwrap();
    let secret = params.open_secret(&made.secret).unwrap();
    let keys = params.open_registered(&made.public).unwrap();
    let ask = |slot: &u64| {
        let selection = Selection::index(&geometry, *slot).unwrap();
        client.query(client.prepare_under(&secret).unwrap(), &selection).unwrap()
    };
    let (queries, pending): (Vec<_>, Vec<_>) = asked.iter().map(ask).unzip();
    let queries: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
    let (answers, _) = server.answer_under(&queries, &[&keys; 3]).unwrap();
    for ((pending, answer), asked) in pending.into_iter().zip(&answers).zip(asked) {
        let found = client.decode(pending, answer).unwrap().slot;
        assert!(*found == slot(asked as usize), "slot {asked}");
    }
}

/// A table's polynomials, in place.
pub(in crate::schemes) struct Stored {
    pub(in crate::schemes) params: Params,
    pub(in crate::schemes) seed: [u8; SEED_BYTES],
    pub(in crate::schemes) polynomials: Arc<dyn Placed>,
}

impl Stored {
    /// `slot(group, column)` is what lies there.
    pub(in crate::schemes) fn new(
        scheme: &str,
        geometry: Geometry,
        slot: impl Fn(usize, usize) -> Vec<u8>,
    ) -> Self {
        let params = Params::new(schemes::find(scheme).unwrap(), geometry).unwrap();
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
        Self { params, seed: hint[..].try_into().unwrap(), polynomials }
    }

    /// A pass of one expanded query.
    pub(in crate::schemes) fn scan(&self, first: &[u64]) -> Vec<u64> {
        self.polynomials.run(&Words::U64(first.to_vec())).unwrap().0.into_u64().unwrap()
    }

    /// Centred lanes of a row of each output, by what a product with an encryption of 1 without noise or mask shows.
    pub(in crate::schemes) fn lanes(&self, row: usize, rows: usize) -> Vec<Vec<i128>> {
        let mut picking = vec![0; rows * 2 * DEGREE];
        picking[(2 * row + 1) * DEGREE..][..DEGREE].fill(1);
        let small = Tree::get().small();
        let q = small.modulus() as i128;
        let lanes = |output: &[u64]| {
            let values = small.polynomial(output[DEGREE..].to_vec()).unwrap();
            let centred = |x: &u64| if i128::from(*x) > q / 2 { i128::from(*x) - q } else { i128::from(*x) };
            small.inverse(values).words().iter().map(centred).collect()
        };
        self.scan(&picking).chunks_exact(2 * DEGREE).map(lanes).collect()
    }
}

/// The mask and the body of a pass's output.
pub(in crate::schemes) fn output(outputs: &[u64], at: usize) -> Pair {
    let words = &outputs[at * 2 * DEGREE..][..2 * DEGREE];
    let half = |words: &[u64]| Tree::get().small().polynomial(words.to_vec()).unwrap();
    Pair { mask: half(&words[..DEGREE]), body: half(&words[DEGREE..]) }
}

/// The noise of each coefficient of a pair of a ring, of which `message` is what it encrypts: its phase less that.
pub(in crate::schemes) fn noise(
    ring: &Arc<Ring>,
    secret: &Secret,
    pair: &Pair,
    message: &dyn Fn(usize) -> i128,
) -> Vec<f64> {
    let mut phase = pair.mask.clone();
    ring.multiply(&mut phase, &secret.key().values(ring));
    ring.negate(&mut phase);
    ring.add(&mut phase, &pair.body);
    let (phase, q) = (ring.inverse(phase), ring.modulus() as i128);
    let off = |(i, phase): (usize, &i128)| {
        let off = (phase - message(i)).rem_euclid(q);
        if off > q / 2 { off - q } else { off }
    };
    ring.centred(&phase).iter().enumerate().map(|phase| off(phase) as f64).collect()
}

/// A mean of squares.
pub(in crate::schemes) fn square(noise: &[f64]) -> f64 {
    noise.iter().map(|off| off * off).sum::<f64>() / noise.len() as f64
}

/// Checks a measured variance against the one that parameters are sized by. Of 512 coefficients, the fewest that are measured, it is
/// above the bound once in 10^8 times.
#[allow(clippy::print_stderr, reason = "noise is shown beside what it is sized by")]
pub(in crate::schemes) fn near(what: &str, stage: &str, measured: f64, predicted: f64) {
    let (measured, predicted) = (measured.log2() / 2.0, predicted.log2() / 2.0);
    eprintln!("{what:12} {stage:24} 2^{measured:.2}, sized by 2^{predicted:.2}");
    let all = predicted - 0.6..predicted + 0.25;
    assert!(all.contains(&measured), "{what}, {stage}: 2^{measured:.2}, sized by 2^{predicted:.2}");
}

/// A build that is stopped goes on where it was, under the seed that it has.
pub(in crate::schemes) fn a_stopped_build_goes_on(scheme: &str) {
    a_stopped_build_of_goes_on(scheme, Geometry { record_bytes: 300, groups: 150, columns: 6 });
}

/// The same of a table with as many outputs as it takes to be stopped twice.
pub(in crate::schemes) fn a_stopped_build_of_goes_on(scheme: &str, geometry: Geometry) {
    struct UpTo(u64, u64);
    impl crate::Progress for UpTo {
        fn at(&mut self, _: &str, done: u64, _: Option<u64>, _: blindcore_units::Unit) {
            self.1 = done;
        }
        fn stopped(&self) -> bool {
            self.1 >= self.0
        }
    }
    let group_bytes = geometry.record_bytes * geometry.columns;
    let params = Params::new(schemes::find(scheme).unwrap(), geometry).unwrap();
    let mut database = params.database_buffer();
    for group in 0..geometry.groups {
        let slots: Vec<u8> = (0..group_bytes).map(|i| byte(group * group_bytes + i)).collect();
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

/// Records whose lanes have the signs of what each leaf makes of one error at the root, turned round: their products add up in the
/// constant coefficient.
pub(in crate::schemes) fn aligned(rows: usize) -> Vec<Vec<u8>> {
    aligned_with(DEGREE, 8, rows, LANE_BITS)
}

/// The same for another degree, a tree of so many levels and other lanes.
pub(in crate::schemes) fn aligned_with(
    degree: usize,
    height: u32,
    rows: usize,
    lane_bits: u32,
) -> Vec<Vec<u8>> {
    let d = degree as i64;
    let automorphism = |x: &[i64], k: i64| {
        let mut out = vec![0; degree];
        for (i, x) in (0i64..).zip(x) {
            let to = i * k % (2 * d);
            out[(to % d) as usize] = if to < d { *x } else { -*x };
        }
        out
    };
    let turned = |x: &[i64], power: i64| {
        let mut out = vec![0; degree];
        for (i, x) in (0i64..).zip(x) {
            let to = (i + power).rem_euclid(2 * d);
            out[(to % d) as usize] = if to < d { *x } else { -*x };
        }
        out
    };
    // A key's error at the root goes to the even leaf, and with the other sign, turned, to the odd one.
    let error: Vec<i64> = (0..degree).map(|i| i64::from(byte(i)) - 128).collect();
    let mut nodes = vec![error.clone(), turned(&error, -1).iter().map(|x| -x).collect()];
    for level in 1..height {
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
            let meets = if i == 0 { node[0] } else { -node[degree - i] };
            if meets > 0 { (1u64 << (lane_bits - 1)) - 1 } else { 1 << (lane_bits - 1) }
        };
        let mut bytes = Vec::new();
        blindcore_rlwe::rounding::pack(&(0..degree).map(lane).collect::<Vec<_>>(), lane_bits, &mut bytes);
        bytes
    };
    nodes[..rows].iter().map(record).collect()
}
