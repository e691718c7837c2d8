//! Both schemes, whole: every record comes back, whatever the shape, and what the server sees is the same
//! for all of them.

use std::sync::Arc;

use blindcore_accel::SharedBytes;
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::keyword::{self, FINGERPRINT_BYTES, Index, KeyHash};
use blindcore_lookup::{Client, Error, Geometry, Params, Scheme, Selection, Server, pack_group, preprocess};

struct Table {
    server: Server,
    client: Client,
}

fn table(params: Params, groups: &[Vec<u8>]) -> Table {
    let device = Cpu::with_threads("cpu", 2).unwrap();
    let mut database = params.database_buffer();
    for (group, records) in groups.iter().enumerate() {
        pack_group(&params, group, records, &mut database);
    }
    let database: Vec<SharedBytes> = vec![Arc::new(database)];
    let mut hint = vec![0u32; params.hint_words()];
    let mut passes = 0;
    let state = preprocess(&params, &device, database.clone(), &mut hint, &mut |done, total| {
        assert!(done <= total);
        passes += 1;
        Ok::<(), Error>(())
    })
    .unwrap();
    assert!(passes > 1);
    assert_eq!(state.as_ref().map_or(0, Vec::len), params.state_bytes());
    let server =
        Server::new(params, &device, database, state.map(|s| vec![Arc::new(s) as SharedBytes])).unwrap();
    let hint: Vec<u8> = hint.iter().flat_map(|w| w.to_le_bytes()).collect();
    Table { server, client: Client::new(params, Arc::new(hint)).unwrap() }
}

impl Table {
    fn fetch(&self, selections: &[Selection]) -> Vec<Vec<u8>> {
        let (queries, pending): (Vec<_>, Vec<_>) =
            selections.iter().map(|s| self.client.query(self.client.prepare().unwrap(), s).unwrap()).unzip();
        let params = self.client.params();
        assert!(queries.iter().all(|q| q.len() == params.query_bytes()));
        let borrowed: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
        let (answers, cost) = self.server.answer(&borrowed).unwrap();
        assert!(cost.database_bytes >= params.geometry.slots() * params.geometry.record_bytes as u64);
        assert!(answers.iter().all(|a| a.len() == params.answer_bytes()));
        pending.into_iter().zip(answers).map(|(p, a)| self.client.decode(p, &a).unwrap().to_vec()).collect()
    }
}

fn byte(i: usize) -> u8 {
    (i.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

#[test]
fn every_index_comes_back() {
    for (scheme, record_bytes, groups, columns) in [
        (Scheme::Simple, 1, 1, 1),
        (Scheme::Simple, 1, 40, 50),
        (Scheme::Simple, 3, 7, 100),
        (Scheme::Simple, 700, 2, 9),
        (Scheme::Double, 1, 1, 1),
        (Scheme::Double, 1, 33, 70),
        (Scheme::Double, 3, 20, 65),
    ] {
        let geometry = Geometry { record_bytes, groups, columns };
        let params = Params::new(scheme, geometry).unwrap();
        let bytes =
            |g: usize| (0..columns * record_bytes).map(|i| byte(g * columns * record_bytes + i)).collect();
        let table = table(params, &(0..groups).map(bytes).collect::<Vec<_>>());
        let slots = geometry.slots() as usize;
        let wanted: Vec<usize> = (0..slots).step_by(slots.div_ceil(12)).chain([slots - 1]).collect();
        let selections: Vec<Selection> =
            wanted.iter().map(|i| Selection::index(&geometry, *i as u64).unwrap()).collect();
        for (i, record) in wanted.iter().zip(table.fetch(&selections)) {
            let want: Vec<u8> = (0..record_bytes).map(|t| byte(i * record_bytes + t)).collect();
            assert_eq!(record, want, "{scheme} {geometry:?}, record {i}");
        }
        assert!(Selection::index(&geometry, slots as u64).is_err());
    }
}

#[test]
fn keys_come_back_and_others_do_not() {
    for (scheme, record_bytes, groups) in [(Scheme::Simple, 9, 5), (Scheme::Double, 7, 3)] {
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
        let (seeds, cells): (Vec<u8>, Vec<Vec<u8>>) = buckets
            .iter()
            .map(|(hashes, slots)| {
                let mut cells = vec![0u8; columns * record_bytes];
                (keyword::solve(hashes, slots, columns, record_bytes, &mut cells).unwrap(), cells)
            })
            .unzip();
        let geometry = Geometry { record_bytes, groups, columns };
        let table = table(Params::new(scheme, geometry).unwrap(), &cells);
        let index = Index::new(geometry, salt, seeds).unwrap();
        let keys: Vec<usize> = (0..400).step_by(23).chain([7, 7]).chain(400..420).collect();
        let (selections, prints): (Vec<_>, Vec<_>) =
            keys.iter().map(|k| index.select(format!("key {k}").as_bytes())).unzip();
        for ((k, slot), print) in keys.iter().zip(table.fetch(&selections)).zip(&prints) {
            let want: Option<Vec<u8>> =
                (*k < 400).then(|| (FINGERPRINT_BYTES..record_bytes).map(|t| byte(k * 100 + t)).collect());
            assert_eq!(keyword::open(&slot, print).map(<[u8]>::to_vec), want, "{scheme}, key {k}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let geometry = Geometry { record_bytes: 2, groups: 2, columns: 3 };
    let params = Params::new(Scheme::Simple, geometry).unwrap();
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
}

/// A fresh secret a query: two queries for one record share nothing.
#[test]
fn queries_for_one_record_are_unrelated() {
    let geometry = Geometry { record_bytes: 1, groups: 1, columns: 512 };
    let table = table(Params::new(Scheme::Simple, geometry).unwrap(), &[vec![5; 512]]);
    let make = || {
        let prepared = table.client.prepare().unwrap();
        table.client.query(prepared, &Selection::index(&geometry, 9).unwrap()).unwrap().0
    };
    let (a, b) = (make(), make());
    let same = a.as_chunks::<4>().0.iter().zip(b.as_chunks::<4>().0).filter(|(x, y)| x == y).count();
    assert!(same <= 2, "{same} of 512 words are equal");
}
