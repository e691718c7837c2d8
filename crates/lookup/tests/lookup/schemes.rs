//! All schemes, whole: every record comes back, whatever the shape, and what the server sees is the same
//! for all of them.

use std::sync::Arc;

use blindcore_accel::SharedBytes;
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::keyword::{self, FINGERPRINT_BYTES, Index, KeyHash};
use blindcore_lookup::{
    Client, Decoded, Error, Geometry, InsecurePlain, Params, Prepared, Preprocessing, Progress,
    RegisteredKeys, SchemeRef, SecretKeys, Selection, Server, pack_group, preprocess, schemes,
};
use blindcore_units::Unit;

struct Table {
    server: Server,
    client: Client,
    keys: Option<Keys>,
}

/// A client's keys, on both sides.
struct Keys {
    secret: SecretKeys,
    registered: RegisteredKeys,
}

impl Keys {
    fn fresh(params: &Params) -> Self {
        let made = params.make_keys().unwrap();
        assert_eq!(made.public.len(), params.registered_bytes());
        Self {
            secret: params.open_secret(&made.secret).unwrap(),
            registered: params.open_registered(&made.public).unwrap(),
        }
    }
}

/// Stops preprocessing once `passes` passes are done.
struct UpTo {
    passes: u64,
    done: u64,
}

impl Progress for UpTo {
    fn at(&mut self, _: &str, done: u64, _: Option<u64>, _: Unit) {
        self.done = done;
    }

    fn stopped(&self) -> bool {
        self.done >= self.passes
    }
}

fn table(params: Params, groups: &[Vec<u8>]) -> Table {
    let device = Cpu::with_threads("cpu", 2).unwrap();
    let mut database = params.database_buffer();
    for (group, records) in groups.iter().enumerate() {
        pack_group(&params, group, records, &mut database);
    }
    let database: Vec<SharedBytes> = vec![Arc::new(database)];
    let mut hint = vec![0u8; params.hint_bytes() as usize];
    let mut passes = 0;
    let derived = preprocess(
        &params,
        &device,
        database.clone(),
        &mut hint,
        &mut |_: &str, done, total: Option<u64>, _| {
            assert!(done <= total.unwrap());
            passes += 1;
        },
    )
    .unwrap();
    let planned: u64 = params.preprocessing().iter().map(|run| run.passes).sum();
    assert_eq!(passes, planned + 1);
    let stored: Vec<usize> = params.stored_operands().skip(1).map(|operand| operand.bytes()).collect();
    assert_eq!(derived.iter().map(|d| d.len()).collect::<Vec<_>>(), stored);
    let derived = derived.into_iter().map(|d| vec![Arc::new(d) as SharedBytes]);
    let server = Server::new(params, &device, [database].into_iter().chain(derived).collect()).unwrap();
    let keys = params.registers_keys().then(|| Keys::fresh(&params));
    Table { server, client: Client::new(params, Arc::new(hint)).unwrap(), keys }
}

fn scheme(name: &str) -> SchemeRef {
    match name {
        "plain" => InsecurePlain::for_tests().scheme(),
        "plain-registered" => InsecurePlain::registered_for_tests().scheme(),
        name => schemes::find(name).unwrap(),
    }
}

impl Table {
    fn prepare(&self) -> Prepared {
        match &self.keys {
            None => self.client.prepare().unwrap(),
            Some(keys) => self.client.prepare_under(&keys.secret).unwrap(),
        }
    }

    fn fetch(&self, selections: &[Selection]) -> Vec<Vec<u8>> {
        let (queries, pending): (Vec<_>, Vec<_>) =
            selections.iter().map(|s| self.client.query(self.prepare(), s).unwrap()).unzip();
        let params = self.client.params();
        assert!(queries.iter().all(|q| q.len() == params.query_bytes()));
        let borrowed: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
        let registered: Vec<&RegisteredKeys> = match &self.keys {
            None => Vec::new(),
            Some(keys) => vec![&keys.registered; borrowed.len()],
        };
        let (answers, cost) = self.server.answer_under(&borrowed, &registered).unwrap();
        assert!(cost.database_bytes >= params.geometry.slots() * params.geometry.record_bytes as u64);
        assert!(answers.iter().all(|a| a.len() == params.answer_bytes()));
        let decoded = pending.into_iter().zip(answers).map(|(p, a)| self.client.decode(p, &a).unwrap());
        decoded
            .map(|Decoded { slot, damaged }| {
                assert!(!damaged, "an honest answer");
                slot.to_vec()
            })
            .collect()
    }
}

fn byte(i: usize) -> u8 {
    (i.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

#[test]
fn every_index_comes_back() {
    for (name, record_bytes, groups, columns) in [
        ("simple", 1, 1, 1),
        ("simple", 1, 40, 50),
        ("simple", 3, 7, 100),
        ("simple", 700, 2, 9),
        ("double", 1, 1, 1),
        ("double", 1, 33, 70),
        ("double", 3, 20, 65),
        ("hintless", 1, 1, 1),
        ("hintless", 3, 700, 2100),
        ("hintless", 260, 27, 50),
        ("hintless", 256, 33, 50),
        ("hintless", 1500, 3, 50),
        ("hintless-q128", 3, 7, 2100),
        ("hintless-q128", 256, 17, 50),
        ("onionpir2", 1, 1, 1),
        ("onionpir2", 3, 700, 100),
        ("onionpir2", 256, 23, 9),
        ("onionpir2", 300, 3, 300),
        ("onionpir2", 4096, 3, 5),
        ("sealpir", 1, 1, 1),
        ("sealpir", 3, 700, 100),
        ("sealpir", 256, 23, 9),
        ("sealpir", 300, 3, 300),
        ("sealpir", 4096, 3, 5),
        ("fastpir", 1, 1, 1),
        ("fastpir", 3, 5000, 2),
        ("fastpir", 256, 23, 3),
        ("fastpir", 40, 6000, 1),
        ("fastpir", 4096, 3, 2),
        ("onionpir", 1, 1, 1),
        ("onionpir", 3, 700, 100),
        ("onionpir", 300, 250, 9),
        ("onionpir", 300, 3, 300),
        ("onionpir", 20_000, 3, 2),
        ("mulpir", 1, 1, 1),
        ("mulpir", 3, 700, 100),
        ("mulpir", 256, 40, 9),
        ("mulpir", 300, 3, 300),
        ("mulpir", 6000, 3, 5),
        ("plain", 1, 1, 1),
        ("plain", 3, 7, 100),
        ("plain", 700, 2, 9),
        ("plain-registered", 1, 1, 1),
        ("plain-registered", 3, 7, 100),
    ] {
        let geometry = Geometry { record_bytes, groups, columns };
        let params = Params::new(scheme(name), geometry).unwrap();
        let bytes =
            |g: usize| (0..columns * record_bytes).map(|i| byte(g * columns * record_bytes + i)).collect();
        let table = table(params, &(0..groups).map(bytes).collect::<Vec<_>>());
        let slots = geometry.slots() as usize;
        let wanted: Vec<usize> = (0..slots).step_by(slots.div_ceil(12)).chain([slots - 1]).collect();
        let selections: Vec<Selection> =
            wanted.iter().map(|i| Selection::index(&geometry, *i as u64).unwrap()).collect();
        for (i, record) in wanted.iter().zip(table.fetch(&selections)) {
            let want: Vec<u8> = (0..record_bytes).map(|t| byte(i * record_bytes + t)).collect();
            assert_eq!(record, want, "{name} {geometry:?}, record {i}");
        }
        assert!(Selection::index(&geometry, slots as u64).is_err());
    }
}

#[test]
fn keys_come_back_and_others_do_not() {
    for (name, record_bytes, groups) in [
        ("simple", 9, 5),
        ("double", 7, 3),
        ("hintless", 9, 5),
        ("hintless", 300, 12),
        ("hintless-q128", 300, 12),
        ("onionpir2", 9, 5),
        ("onionpir2", 300, 1),
        ("sealpir", 9, 5),
        ("sealpir", 300, 1),
        ("fastpir", 9, 5),
        ("fastpir", 300, 1),
        ("onionpir", 9, 5),
        ("onionpir", 300, 1),
        ("mulpir", 9, 5),
        ("mulpir", 300, 3),
        ("plain", 9, 5),
    ] {
        let salt = [3u8; 32];
        let mut buckets: Vec<(Vec<KeyHash>, Vec<u8>)> = vec![Default::default(); groups];
        for k in 0..400usize {
            let hash = KeyHash::new(&salt, format!("key {k}").as_bytes());
            let (hashes, slots) = &mut buckets[hash.group(groups)];
            hashes.push(hash);
            slots.extend(hash.fingerprint);
            slots.extend((FINGERPRINT_BYTES..record_bytes).map(|t| byte(k * 100 + t)));
        }
        let fullest = buckets.iter().map(|b| b.0.len()).max().unwrap();
        let columns = keyword::columns_for(fullest);
        let lanes = scheme(name).lanes();
        let (seeds, cells): (Vec<u8>, Vec<Vec<u8>>) = buckets
            .iter()
            .map(|(hashes, slots)| {
                let mut cells = vec![0u8; columns * record_bytes];
                (keyword::solve(hashes, slots, columns, record_bytes, lanes, &mut cells).unwrap(), cells)
            })
            .unzip();
        let geometry = Geometry { record_bytes, groups, columns };
        let table = table(Params::new(scheme(name), geometry).unwrap(), &cells);
        let index = Index::new(geometry, salt, seeds).unwrap();
        let keys: Vec<usize> = (0..400).step_by(23).chain([7, 7]).chain(400..420).collect();
        let (selections, prints): (Vec<_>, Vec<_>) =
            keys.iter().map(|k| index.select(format!("key {k}").as_bytes())).unzip();
        for ((k, slot), print) in keys.iter().zip(table.fetch(&selections)).zip(&prints) {
            let want: Option<Vec<u8>> =
                (*k < 400).then(|| (FINGERPRINT_BYTES..record_bytes).map(|t| byte(k * 100 + t)).collect());
            assert_eq!(keyword::open(&slot, print).map(<[u8]>::to_vec), want, "{name}, key {k}");
        }
    }
}

/// What is done to an answer.
type Harm<'a> = &'a dyn Fn(&mut [u8]);

/// Noise is noticed whatever was asked, and wherever in the answer it is: also in rows of groups that were not asked for.
#[test]
fn noise_is_noticed_in_every_row() {
    // And where the words begin that were shortened.
    // In a scheme with a ring, a bit of a mask is in every row.
    for (name, record_bytes, groups, columns, short) in [
        ("simple", 20, 6, 500, 0),
        ("double", 1, 9, 500, 16 << 10),
        ("hintless", 20, 6, 500, 0),
        ("hintless-q128", 20, 6, 500, 0),
    ] {
        let geometry = Geometry { record_bytes, groups, columns };
        let params = Params::new(scheme(name), geometry).unwrap();
        // Rows that are multiples of each other are masked alike, and zeros pass as honest noise for all of them once in 200 times.
        let cell = |group: usize, i: usize| byte(group * columns * record_bytes + i);
        let cells: Vec<Vec<u8>> =
            (0..groups).map(|g| (0..columns * record_bytes).map(|i| cell(g, i)).collect()).collect();
        let table = table(params, &cells);
        let decode = |slot: u64, harm: Harm<'_>| {
            let selection = Selection::index(&geometry, slot).unwrap();
            let (query, pending) = table.client.query(table.client.prepare().unwrap(), &selection).unwrap();
            let mut answer = table.server.answer(&[&query]).unwrap().0.remove(0);
            harm(&mut answer);
            table.client.decode(pending, &answer).unwrap()
        };
        let last = geometry.slots() - 1;
        let kinds: [(&str, Harm<'_>); 4] = [
            ("zeros", &|answer| answer.fill(0)),
            ("bytes at random", &|answer| {
                (0..).zip(answer.iter_mut()).for_each(|(i, a)| *a = byte(i));
            }),
            ("one bit of the first row", &|answer| answer[short] ^= 0x80),
            ("one bit of the last row", &|answer| *answer.iter_mut().rev().nth(1).unwrap() ^= 0x80),
        ];
        // A body's lowest bits are noise's; the highest are whole bytes.
        let kinds = if name.starts_with("hintless") { &kinds[..3] } else { &kinds[..] };
        for slot in [0, last] {
            assert!(!decode(slot, &|_| {}).damaged, "{name}: honest");
            for (what, harm) in kinds {
                assert!(decode(slot, harm).damaged, "{name}: {what}, slot {slot}");
            }
        }
        if name.starts_with("hintless") {
            continue;
        }
        // What is off by whole bytes is another message: fingerprints and proofs are there for that.
        let high = decode(last, &|answer| answer.last_mut().into_iter().for_each(|a| *a ^= 0x80));
        let byte = cell(groups - 1, columns * record_bytes - 1);
        assert!(!high.damaged && *high.slot.last().unwrap() == byte ^ 0x80, "{name}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let geometry = Geometry { record_bytes: 2, groups: 2, columns: 3 };
    let params = Params::new(scheme("simple"), geometry).unwrap();
    let table = table(params, &[vec![1; 6], vec![2; 6]]);
    let query = vec![0u8; params.query_bytes()];
    for bad in [&query[1..], &query[..0], &[query.as_slice(), &[0]].concat()[..]] {
        assert!(matches!(table.server.answer(&[bad]), Err(Error::Length { .. })));
    }
    assert!(matches!(table.server.answer(&[]), Err(Error::Range { .. })));
    assert!(matches!(table.server.answer(&[query.as_slice(); 65]), Err(Error::Range { .. })));
    let (_, pending) = table
        .client
        .query(table.client.prepare().unwrap(), &Selection::index(&geometry, 0).unwrap())
        .unwrap();
    assert!(matches!(table.client.decode(pending, &[0; 3]), Err(Error::Length { .. })));
    assert!(matches!(Client::new(params, Arc::new(vec![0u8; 5])), Err(Error::Length { .. })));
    let other = Selection::index(&Geometry { columns: 100, ..geometry }, 99).unwrap();
    assert!(table.client.query(table.client.prepare().unwrap(), &other).is_err());
    // A query that another scheme's client prepared.
    let plain = Client::new(Params::new(scheme("plain"), geometry).unwrap(), Arc::new([])).unwrap();
    let own = Selection::index(&geometry, 0).unwrap();
    assert!(matches!(table.client.query(plain.prepare().unwrap(), &own), Err(Error::Foreign)));
    let (_, pending) = plain.query(plain.prepare().unwrap(), &own).unwrap();
    let answer = vec![0; params.answer_bytes()];
    assert!(matches!(table.client.decode(pending, &answer), Err(Error::Foreign)));
    // A server without what its scheme keeps beside the records.
    let double = Params::new(scheme("double"), geometry).unwrap();
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let records: Vec<SharedBytes> = vec![Arc::new(double.database_buffer())];
    assert!(Server::new(double, &device, vec![records]).is_err());
}

/// A server is a stranger to those who ask: no bytes of a query may do more than get a wrong answer.
#[test]
fn any_query_is_answered() {
    let geometry = Geometry { record_bytes: 2, groups: 2, columns: 3 };
    for name in [
        "simple",
        "double",
        "hintless",
        "hintless-q128",
        "onionpir2",
        "sealpir",
        "fastpir",
        "onionpir",
        "mulpir",
        "plain",
        "plain-registered",
    ] {
        let params = Params::new(scheme(name), geometry).unwrap();
        let table = table(params, &[vec![1; 6], vec![2; 6]]);
        for byte in [0, 1, 2, 0x80, 0xff] {
            let keys: Vec<&RegisteredKeys> = table.keys.iter().map(|keys| &keys.registered).collect();
            let query = vec![byte; params.query_bytes()];
            let (answers, _) = table.server.answer_under(&[&query], &keys).unwrap();
            assert_eq!(answers[0].len(), params.answer_bytes());
        }
    }
}

#[test]
fn preprocessing_goes_on_from_where_it_was_stopped() {
    let geometry = Geometry { record_bytes: 2, groups: 3, columns: 40 };
    for name in ["simple", "double"] {
        let params = Params::new(scheme(name), geometry).unwrap();
        let device = Cpu::with_threads("cpu", 1).unwrap();
        let mut database = params.database_buffer();
        for group in 0..3 {
            let records: Vec<u8> = (0..80).map(|i| byte(group * 100 + i)).collect();
            pack_group(&params, group, &records, &mut database);
        }
        let database: Vec<SharedBytes> = vec![Arc::new(database)];
        let mut want = vec![0u8; params.hint_bytes() as usize];
        let derived = preprocess(&params, &device, database.clone(), &mut want, &mut ()).unwrap();

        let contract = blindcore_accel::Device::contract(&device, &params.records().shape).unwrap();
        let records = contract.place(blindcore_accel::Database::Packed(database)).unwrap();
        let mut hint = vec![0u8; want.len()];
        let (mut kept, mut done, mut stops) = (None, 0, 0);
        let derived_in_pieces = loop {
            let mut made = match kept.take() {
                None => Preprocessing::new(&params, &mut hint).unwrap(),
                Some(derived) => Preprocessing::resume(&params, &mut hint, derived, done).unwrap(),
            };
            // It is stopped after five passes each time.
            let ran = made.run(&params, &device, &*records, &mut UpTo { passes: done + 5, done });
            let Preprocessing { derived, done: so_far, .. } = made;
            match ran {
                Ok(()) => break derived,
                Err(Error::Stopped) => (kept, done, stops) = (Some(derived), so_far, stops + 1),
                Err(error) => panic!("{error}"),
            }
        };
        assert!(stops >= 3, "{name}: {stops}");
        assert!(
            hint == want && derived_in_pieces.iter().map(|d| &**d).eq(derived.iter().map(|d| &**d)),
            "{name}"
        );
    }
}

/// What a scheme with a seed of its own makes differs each time, so what goes on is shown by what it answers.
#[test]
fn packing_goes_on_from_where_it_was_stopped() {
    let geometry = Geometry { record_bytes: 300, groups: 20, columns: 40 };
    let params = Params::new(scheme("hintless"), geometry).unwrap();
    let device = Cpu::with_threads("cpu", 2).unwrap();
    let mut database = params.database_buffer();
    let record = |slot: usize| -> Vec<u8> { (0..300).map(|i| byte(slot * 1000 + i)).collect() };
    for group in 0..20 {
        let records: Vec<u8> = (0..40).flat_map(|column| record(group * 40 + column)).collect();
        pack_group(&params, group, &records, &mut database);
    }
    let database: Vec<SharedBytes> = vec![Arc::new(database)];
    let contract = blindcore_accel::Device::contract(&device, &params.records().shape).unwrap();
    let records = contract.place(blindcore_accel::Database::Packed(database.clone())).unwrap();
    let mut hint = vec![0u8; params.hint_bytes() as usize];
    let (mut kept, mut done, mut stops) = (None, 0, 0);
    let derived = loop {
        let mut made = match kept.take() {
            None => Preprocessing::new(&params, &mut hint).unwrap(),
            Some(derived) => Preprocessing::resume(&params, &mut hint, derived, done).unwrap(),
        };
        let ran = made.run(&params, &device, &*records, &mut UpTo { passes: done + 3, done });
        let Preprocessing { derived, done: so_far, .. } = made;
        match ran {
            Ok(()) => break derived,
            Err(Error::Stopped) => (kept, done, stops) = (Some(derived), so_far, stops + 1),
            Err(error) => panic!("{error}"),
        }
    };
    assert!(stops >= 1, "{stops}");
    let derived = derived.into_iter().map(|d| vec![Arc::new(d) as SharedBytes]);
    let server = Server::new(params, &device, [database].into_iter().chain(derived).collect()).unwrap();
    let table = Table { server, client: Client::new(params, Arc::new(hint)).unwrap(), keys: None };
    for slot in [0, 399, 799] {
        let selection = Selection::index(&geometry, slot as u64).unwrap();
        assert_eq!(table.fetch(&[selection]), [record(slot)], "{slot}");
    }
}

/// A fresh secret a query: two queries for one record share nothing.
#[test]
fn queries_for_one_record_are_unrelated() {
    let geometry = Geometry { record_bytes: 1, groups: 1, columns: 512 };
    let table = table(Params::new(scheme("simple"), geometry).unwrap(), &[vec![5; 512]]);
    let make = || {
        let prepared = table.client.prepare().unwrap();
        table.client.query(prepared, &Selection::index(&geometry, 9).unwrap()).unwrap().0
    };
    let (a, b) = (make(), make());
    let same = a.as_chunks::<4>().0.iter().zip(b.as_chunks::<4>().0).filter(|(x, y)| x == y).count();
    assert!(same <= 2, "{same} of 512 words are equal");
}
