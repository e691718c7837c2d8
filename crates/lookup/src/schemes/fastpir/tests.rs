//! The whole lookup at full ring size: what comes back, and its noise at each stage.

use blindcore_math::MaskSeed;
use blindcore_rlwe::{Ciphertext, Noise, Pair, Slots};

use super::client::{FastClient, Pending};
use super::keys::{self, Registered};
use super::params::{BODY_BITS, DEGREE, MASK_BITS, Places, ROW, Rings, Stages};
use super::server;
use crate::schemes::rings::testing::{self, Fetch, Slot, Stored, byte, near, square};
use crate::schemes::rings::{LANE, Pads, Secret, spread};
use crate::{Geometry, Selection};

/// A table in place, and a client with its keys.
struct Table {
    stored: Stored,
    places: Places,
    client: FastClient,
    secret: Secret,
    keys: Registered,
    pads: Pads,
}

impl Table {
    /// `slot(group, column)` is what lies there.
    fn new(geometry: Geometry, slot: impl Fn(usize, usize) -> Vec<u8>) -> Self {
        let stored = Stored::new("fastpir", geometry, slot);
        let made = keys::make().unwrap();
        let secret = keys::secret(made.secret[..].try_into().unwrap());
        let keys = Registered::new(&made.public).unwrap();
        let (client, pads) = (FastClient::new(&stored.params, stored.seed), Pads::new(stored.seed));
        Self { stored, places: Places::new(&geometry), client, secret, keys, pads }
    }

    fn ask(&self, selection: &Selection) -> (Vec<u8>, Pending) {
        let (query, pending) =
            self.client.make_query(self.client.prepare_under(&self.secret).unwrap(), selection);
        assert_eq!(query.len(), self.stored.params.query_bytes());
        (query, pending)
    }

    /// Outputs of a query.
    fn scan(&self, query: &[u8]) -> Vec<u64> {
        let columns = 0..self.places.columns;
        self.stored.scan(&columns.flat_map(|column| server::received(query, column)).collect::<Vec<_>>())
    }

    fn fetch(&self, selection: &Selection) -> Vec<u8> {
        let (query, pending) = self.ask(selection);
        let (outputs, mut answer) = (self.scan(&query), Vec::new());
        for at in 0..self.places.answers() {
            let whole = server::gather(&self.places, &self.keys, &outputs, at, 2);
            let alone = server::gather(&self.places, &self.keys, &outputs, at, 1);
            assert!(whole.body.words() == alone.body.words(), "threads decide nothing");
            server::round(&self.places, &whole, &mut answer);
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
    // A cell of many slots, of one, and of two; shares in one answer and in several; parts.
    let sizes = [
        (1, 1, 1),
        (2816, 1, 2),
        (5, 700, 3),
        (24, 2048, 2),
        (3, 7000, 1),
        (700, 2500, 1),
        (2000, 2500, 1),
        (4096, 30, 2),
        (6000, 2, 1),
    ];
    testing::slots_come_back(sizes, fetching);
}

#[test]
fn picked_columns_add_up_lane_by_lane() {
    testing::picked_columns_add_up("fastpir", [(20, 5, 9), (20, 2100, 9)], fetching);
}

#[test]
fn a_stopped_build_goes_on_and_keeps_its_seed() {
    testing::a_stopped_build_goes_on("fastpir");
}

/// (Q / p) times the polynomial with these slots, by coefficients.
fn scaled(slots: &[u64]) -> Vec<u64> {
    let rings = Rings::get();
    let plaintext = Slots::new(&rings.parameters).unwrap().encode(slots).unwrap();
    let scaled = rings.ring().polynomial(plaintext.scaled_up(rings.ring()).words().to_vec()).unwrap();
    rings.ring().inverse(scaled).words().to_vec()
}

/// Each stage's noise is what parameters are sized by: for random records, for records that are one pattern in every lane, so that
/// without their pad outputs would be the same and their noise a trace's, and for zeros, whose outputs would have no noise of their
/// own.
#[test]
fn noise_is_what_parameters_are_sized_by() {
    // 512 lanes, a slot a cell, as in large tables.
    const BYTES: usize = 704;
    let geometry = Geometry { record_bytes: BYTES, groups: 1500, columns: 3 };
    type Records<'a> = &'a dyn Fn(usize, usize) -> Vec<u8>;
    let all: [(&str, Records<'_>); 3] = [
        ("random", &|group, column| (0..BYTES).map(|i| byte((group * 3 + column) * BYTES + i)).collect()),
        ("one pattern", &|group, _| {
            let lane = byte(group).into();
            let mut eight = Vec::new();
            blindcore_rlwe::rounding::pack(&[lane; 8], 11, &mut eight);
            eight.repeat(BYTES / 11)
        }),
        ("zeros", &|_, _| vec![0; BYTES]),
    ];
    let rings = Rings::get();
    let (ring, q) = (rings.ring(), rings.ring().modulus() as f64);
    for (what, records) in all {
        let table = Table::new(geometry, records);
        let (places, secret) = (table.places, &table.secret);
        assert_eq!((places.slots, places.height, places.lanes(), places.answers()), (1, 512, 512, 1));
        let stages = Stages::new(&places);
        let near = |stage: &str, measured: f64, predicted: f64| near(what, stage, measured, predicted);
        let noise =
            |pair: &Pair, message: &[u64]| testing::noise(ring, secret, pair, &|i| i128::from(message[i]));
        let (group, column) = (1100u32, 1u32);
        let (query, pending) = table.ask(&Selection::new(vec![column], group));
        let pair = |words: &[u64]| {
            let [mask, body] =
                [&words[..DEGREE], &words[DEGREE..]].map(|words| ring.polynomial(words.to_vec()).unwrap());
            Pair { mask, body }
        };

        let mut one_hot = vec![0; DEGREE];
        one_hot[group as usize] = 1;
        let messages = [vec![0; DEGREE], scaled(&one_hot), vec![0; DEGREE]];
        let squares = messages
            .iter()
            .enumerate()
            .map(|(column, message)| square(&noise(&pair(&server::received(&query, column)), message)));
        near("query", squares.sum::<f64>() / 3.0, stages.query);

        // What lies in the picked slot of each output, under its pad.
        let outputs = table.scan(&query);
        let mut lanes = vec![0; places.width];
        spread(&records(group as usize, column as usize), &mut lanes);
        let padded: Vec<u64> = (0u64..)
            .zip(&lanes)
            .map(|(output, lane)| {
                let mut pad = [0; DEGREE];
                table.pads.of(output, &mut pad);
                u64::from(lane.wrapping_add(pad[group as usize]) & LANE)
            })
            .collect();
        let squares = padded.iter().zip(outputs.chunks_exact(2 * DEGREE)).map(|(lane, words)| {
            let mut slots = vec![0; DEGREE];
            slots[group as usize] = *lane;
            square(&noise(&pair(words), &scaled(&slots)))
        });
        near("outputs", squares.sum::<f64>() / places.height as f64, stages.first);

        // A ciphertext of nothing without noise has that of a rotation once it is turned.
        let mask = ring.uniform(MaskSeed([7; 32]), 0);
        let mut body = mask.clone();
        ring.multiply(&mut body, secret.values());
        let nothing = Ciphertext::from_pair(&rings.parameters, ring, Pair { mask, body }, Noise::NONE);
        let turned = noise(table.keys.turn(3, &nothing).pair(), &[0; DEGREE]);
        near("a rotation", square(&turned), stages.rotation);

        let gathered = server::gather(&places, &table.keys, &outputs, 0, 1);
        // Lanes behind the group's slot, round the row, and in the other row; as often as the coefficients that are sent show them.
        let mut slots = vec![0; DEGREE];
        for (t, lane) in padded.iter().enumerate() {
            let (row, at) = ((group as usize / ROW) ^ (t / 256), group as usize % ROW + t % 256);
            for again in 0..ROW / 256 {
                slots[row * ROW + (at + 256 * again) % ROW] = *lane;
            }
        }
        let repeated = Slots::new(&rings.parameters).unwrap().encode(&slots).unwrap();
        assert!(repeated.coefficients().iter().enumerate().all(|(i, c)| i % places.step() == 0 || *c == 0));
        let p = rings.parameters.plaintext();
        // step^-1 modulo p, by which the coefficients that are sent are smaller.
        let inverse = (1..p).find(|x| x * places.step() as u64 % p == 1).unwrap();
        let message = |coefficient: u64| {
            let m = u128::from(coefficient * inverse % p);
            ((m * ring.modulus() + u128::from(p / 2)) / u128::from(p)) as u64
        };
        let messages: Vec<u64> = repeated.coefficients().iter().map(|c| message(*c)).collect();
        let all = noise(&gathered, &messages);
        let sent: Vec<f64> = all.into_iter().step_by(places.step()).collect();
        let before = stages.all(&places) - stages.sent;
        near("gathered", square(&sent), before);
        // No coefficient is singled out: of 512 one passes seven deviations once in 10^9.
        let most = sent.iter().fold(0.0, |most: f64, off| most.max(off.abs()));
        assert!(most < 7.0 * before.sqrt(), "{what}: {most} of {}", before.sqrt());

        let mut answer = Vec::new();
        server::round(&places, &gathered, &mut answer);
        let at = (0..DEGREE).step_by(places.step());
        let phases = table.client.phases(secret, &answer);
        let whole = f64::from(MASK_BITS).exp2();
        let off: Vec<f64> = phases
            .iter()
            .zip(at)
            .map(|(phase, at)| {
                let phase = (phase & ((1 << MASK_BITS) - 1)) as f64;
                let off = phase / whole - messages[at] as f64 / q;
                (off - off.round()) * q
            })
            .collect();
        let body = (q / f64::from(BODY_BITS).exp2()).powi(2) / 12.0;
        near("rounded", square(&off), stages.all(&places) + body);
        assert!(table.client.read(&pending, &answer).to_vec() == records(group as usize, column as usize));
    }
}
