//! Messages: version 1 as it was published, and strangers' bytes.

use blindcore_lookup::batch::Buckets;
use blindcore_lookup::{Geometry, Params, schemes};
use blindcore_wire::{
    BatchesContent, ChangesContent, KeyType, KeyedContent, MAX_VALUE_COLUMNS, PartDescription, Proofs,
    TableContent, TableDescription, TableError, proto,
};
use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;

fn part(scheme: &str, record_bytes: usize, groups: usize, columns: usize) -> PartDescription {
    let scheme = schemes::find(scheme).unwrap();
    let params = Params::new(scheme, Geometry { record_bytes, groups, columns }).unwrap();
    PartDescription { params, hint_digest: [record_bytes as u8; 32], proofs: None, buckets: 1 }
}

fn keyed_content() -> TableContent {
    TableContent {
        name: "drugs-2026".into(),
        epoch: 3,
        rows: 100,
        value_columns: vec!["name".into(), "größe".into()],
        records: part("simple", 45, 4, 64),
        keyed: Some(KeyedContent {
            column: "id".into(),
            salt: [7; 32],
            seeds: Bytes::from_static(&[0, 9, 0, 255]),
            keys: Some(part("double", 12, 10, 10)),
            blocks: 1,
            form: None,
            batches: None,
        }),
        changes: None,
    }
}

fn keyed() -> TableDescription {
    TableDescription::new(keyed_content()).unwrap()
}

fn changes() -> ChangesContent {
    ChangesContent {
        base_epoch: 3,
        base_rows: 100,
        records: part("simple", 60, 2, 16),
        salt: [8; 32],
        seeds: Bytes::from_static(&[1, 2]),
        new_keys: Some(part("simple", 13, 1, 7)),
        blocks: 1,
    }
}

/// The table above after rows were added.
fn changed() -> TableDescription {
    TableDescription::new(TableContent { epoch: 5, rows: 107, changes: Some(changes()), ..keyed_content() })
        .unwrap()
}

/// The same, its slots with proofs at their end.
fn proved() -> TableDescription {
    let with = |part: PartDescription, depth, chunks| {
        let geometry = part.params.geometry;
        let slot = geometry.record_bytes + 5 + 16 * usize::from(depth);
        let params = Params::new(part.params.scheme, Geometry { record_bytes: slot, ..geometry }).unwrap();
        PartDescription { params, proofs: Some(Proofs { depth, chunks }), ..part }
    };
    let (content, changes) = (keyed_content(), changes());
    let records = with(content.records, 3, 14);
    let keyed = content.keyed.map(|k| KeyedContent { keys: k.keys.map(|p| with(p, 1, 50)), ..k });
    let changes = ChangesContent {
        records: with(changes.records, 0, 7),
        new_keys: changes.new_keys.map(|p| with(p, 0, 7)),
        ..changes
    };
    let changes = Some(changes);
    TableDescription::new(TableContent { epoch: 5, rows: 107, changes, records, keyed, ..keyed_content() })
        .unwrap()
}

fn dense() -> TableDescription {
    TableDescription::new(TableContent {
        name: "t".into(),
        epoch: 1,
        rows: 5,
        value_columns: vec![],
        records: part("simple", 1, 2, 3),
        keyed: None,
        changes: None,
    })
    .unwrap()
}

/// One of each message, in the order of the golden file.
fn golden_1() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("ListTablesRequest", proto::ListTablesRequest {}.encode_to_vec()),
        (
            "ListTablesResponse",
            proto::ListTablesResponse { tables: vec![keyed().summary(), dense().summary()] }.encode_to_vec(),
        ),
        ("GetTableRequest", proto::GetTableRequest { name: "t".into() }.encode_to_vec()),
        (
            "GetTableResponse",
            proto::GetTableResponse {
                table: Some(keyed().to_proto()),
                records_queries: 64,
                keys_queries: 8,
                ..Default::default()
            }
            .encode_to_vec(),
        ),
        (
            "GetTableResponse",
            proto::GetTableResponse {
                table: Some(dense().to_proto()),
                records_queries: 1,
                ..Default::default()
            }
            .encode_to_vec(),
        ),
        (
            "GetHintRequest",
            proto::GetHintRequest {
                table: "t".into(),
                epoch: 1,
                part: proto::PartKind::Keys.into(),
                offset: 1 << 33,
            }
            .encode_to_vec(),
        ),
        ("HintChunk", proto::HintChunk { data: Bytes::from_static(b"\x00\x01\xff") }.encode_to_vec()),
        (
            "QueryRequest",
            proto::QueryRequest {
                table: "t".into(),
                epoch: u64::MAX,
                part: proto::PartKind::Records.into(),
                table_digest: Bytes::copy_from_slice(&dense().records().params.digest()),
                queries: Bytes::from_static(&[1, 2, 3, 4]),
                keys: Bytes::new(),
            }
            .encode_to_vec(),
        ),
        (
            "QueryResponse",
            proto::QueryResponse { answers: Bytes::from_static(&[9; 5]), server_micros: 1234 }
                .encode_to_vec(),
        ),
    ]
}

/// The messages that version 2 has and version 1 had not.
fn golden_2() -> Vec<(&'static str, Vec<u8>)> {
    let table = proto::GetTableResponse {
        table: Some(changed().to_proto()),
        records_queries: 64,
        keys_queries: 8,
        changes_queries: 32,
        new_keys_queries: 16,
        batches_queries: 0,
    };
    let proved = proto::GetTableResponse { table: Some(proved().to_proto()), ..table.clone() };
    vec![("GetTableResponse", table.encode_to_vec()), ("GetTableResponse", proved.encode_to_vec())]
}

/// Reads a message of any kind and writes it again; nothing where the bytes are none.
fn again(kind: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    fn of<M: Message + Default>(bytes: &[u8]) -> Option<Vec<u8>> {
        M::decode(bytes).ok().map(|m| m.encode_to_vec())
    }
    match kind {
        "ListTablesRequest" => of::<proto::ListTablesRequest>(bytes),
        "ListTablesResponse" => of::<proto::ListTablesResponse>(bytes),
        "GetTableRequest" => of::<proto::GetTableRequest>(bytes),
        "GetTableResponse" => of::<proto::GetTableResponse>(bytes),
        "GetHintRequest" => of::<proto::GetHintRequest>(bytes),
        "HintChunk" => of::<proto::HintChunk>(bytes),
        "RegisterKeysRequest" => of::<proto::RegisterKeysRequest>(bytes),
        "RegisterKeysResponse" => of::<proto::RegisterKeysResponse>(bytes),
        "QueryRequest" => of::<proto::QueryRequest>(bytes),
        "QueryResponse" => of::<proto::QueryResponse>(bytes),
        _ => panic!("no message is called {kind}"),
    }
}

#[test]
fn versions_read_back() {
    reads_back(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/messages-v1.bin"), &golden_1());
    reads_back(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/messages-v2.bin"), &golden_2());
    reads_back(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/messages-v3.bin"), &golden_3());
}

/// Keys are registered, and queries are under them.
fn golden_3() -> Vec<(&'static str, Vec<u8>)> {
    let digest = Bytes::from_static(&[7; 32]);
    let register = proto::RegisterKeysRequest {
        table: "t".into(),
        part: proto::PartKind::Changes.into(),
        keys_params: digest.clone(),
        keys: Bytes::from_static(b"public keys"),
    };
    let query = proto::QueryRequest {
        table: "t".into(),
        epoch: 3,
        part: proto::PartKind::Records.into(),
        table_digest: digest.clone(),
        queries: Bytes::from_static(&[1, 2, 3, 4]),
        keys: digest,
    };
    vec![
        ("RegisterKeysRequest", register.encode_to_vec()),
        ("RegisterKeysResponse", proto::RegisterKeysResponse {}.encode_to_vec()),
        ("QueryRequest", query.encode_to_vec()),
    ]
}

/// `golden` holds messages, each after its length in 4 bytes, little-endian.
fn reads_back(golden: &str, messages: &[(&str, Vec<u8>)]) {
    if std::env::var_os("BLINDCORE_WRITE_GOLDEN").is_some() {
        let framed = messages.iter().flat_map(|(_, m)| [&(m.len() as u32).to_le_bytes()[..], m].concat());
        std::fs::write(golden, framed.collect::<Vec<u8>>()).unwrap();
    }
    let file = std::fs::read(golden).unwrap();
    let mut rest = &file[..];
    for (kind, message) in messages {
        let (len, after) = rest.split_first_chunk::<4>().unwrap();
        let (stored, after) = after.split_at(u32::from_le_bytes(*len) as usize);
        rest = after;
        assert_eq!(stored, message, "{kind} is written in another way than in {golden}");
        assert_eq!(again(kind, stored).as_deref(), Some(stored), "{kind}");
    }
    assert!(rest.is_empty());
}

#[test]
fn descriptions_read_back() {
    let mut content = keyed_content();
    content.keyed.as_mut().unwrap().blocks = 48;
    let long = TableDescription::new(content).unwrap();
    assert_eq!((long.blocks(), long.protocol_version()), (48, 2));
    let mut content = keyed_content();
    content.keyed.as_mut().unwrap().form = Some(KeyType::Decimal);
    let formed = TableDescription::new(content).unwrap();
    assert_eq!((formed.key_type(), formed.protocol_version()), (Some(KeyType::Decimal), 3));
    assert_ne!(formed.digest(), keyed().digest());
    for (name, words) in [("uuid", "digest"), ("roman", "keys of a form that this program does not know")] {
        let table = proto::Table { key_type: Some(name.into()), ..formed.to_proto() };
        let error = TableDescription::from_proto(table).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for table in [keyed(), dense(), changed(), long, formed, proved()] {
        assert_eq!(TableDescription::from_proto(table.to_proto()).unwrap(), table);
    }
    assert_ne!(keyed().digest(), dense().digest());
    assert!(proved().has_proofs() && !changed().has_proofs());
    let changed = changed();
    assert_eq!(changed.parts().count(), 4);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    type Change = fn(&mut proto::Table);
    let cases: &[(&str, Change)] = &[
        ("protocol version 5", |t| t.protocol_version = 5),
        ("another protocol version", |t| t.protocol_version = 2),
        ("protocol version 0", |t| *t = proto::Table::default()),
        ("a table's name", |t| t.name = "a/b".into()),
        ("of 5000 bytes", |t| t.name = "x".repeat(5000)),
        ("digest", |t| t.epoch += 1),
        ("number of rows", |t| t.rows = 0),
        ("number of rows", |t| t.rows = u64::MAX),
        ("no key column", |t| t.key_column = None),
        ("a column's name", |t| t.key_column = Some("\n".into())),
        ("there twice", |t| t.value_columns.push("name".into())),
        ("number of value columns", |t| t.value_columns = vec![String::new(); MAX_VALUE_COLUMNS + 1]),
        ("no part records", |t| t.records = None),
        ("salt", |t| t.salt = Bytes::from_static(&[1; 31])),
        ("seeds", |t| t.seeds = Bytes::from_static(&[1; 5])),
        ("digest", |t| t.seeds = Bytes::from_static(&[1; 4])),
        ("digest", |t| t.digest = Bytes::new()),
        ("digest", |t| t.keys = None),
        (
            "table \"drugs-2026\", part records: scheme `number 77` is not known to this build (blindcore 0.1.0), which knows",
            |t| {
                t.records.as_mut().unwrap().scheme = 77;
            },
        ),
        (
            "table \"drugs-2026\", part keys: scheme `newest` is not known to this build (blindcore 0.1.0), which knows",
            |t| {
                let part = t.keys.as_mut().unwrap();
                (part.scheme, part.scheme_name) = (77, "newest\u{1b}".into());
            },
        ),
        ("scheme `double` is not known", |t| t.records.as_mut().unwrap().scheme_name = "double".into()),
        (
            "scheme `plain` is not known to this build (blindcore 0.1.0), which knows simple, double, hintless, hintless-q128, onionpir2, sealpir, fastpir, mulpir, onionpir; update it",
            |t| {
                let part = t.records.as_mut().unwrap();
                (part.scheme, part.scheme_name) = (999, "plain".into());
            },
        ),
        // A client of before has no scheme with registered keys.
        ("part keys: scheme `plain-registered` is not known to this build", |t| {
            let part = t.keys.as_mut().unwrap();
            (part.scheme, part.scheme_name) = (998, "plain-registered".into());
        }),
        ("record size", |t| t.records.as_mut().unwrap().record_bytes = u64::MAX),
        ("number of groups", |t| t.keys.as_mut().unwrap().groups = 0),
        ("number of columns", |t| t.records.as_mut().unwrap().columns = 1 << 40),
        ("fail nearly always", |t| t.records.as_mut().unwrap().columns = 1 << 30),
        ("params_digest", |t| t.records.as_mut().unwrap().columns += 1),
        ("hint_digest", |t| t.records.as_mut().unwrap().hint_digest = Bytes::new()),
        ("another protocol version", |t| t.blocks = Some(2)),
        ("another protocol version", |t| t.key_type = Some("uuid".into())),
        ("number of slots of a record", |t| (t.protocol_version, t.blocks) = (2, Some(50_000))),
        ("one slot", |t| (t.protocol_version, t.blocks) = (2, Some(1))),
        ("digest", |t| (t.protocol_version, t.blocks) = (2, Some(2))),
        ("the hint", |t| t.records.as_mut().unwrap().hint_bytes -= 4096),
    ];
    for (words, change) in cases {
        let mut table = keyed().to_proto();
        change(&mut table);
        let error = TableDescription::from_proto(table).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
        assert!(error.len() < 600, "{error}");
    }
    let cases: &[(&str, Change)] = &[
        ("another protocol version", |t| t.protocol_version = 1),
        ("another protocol version", |t| t.changes = None),
        ("epoch of the base", |t| t.epoch = 3),
        ("number of rows", |t| t.rows = 99),
        ("number of rows", |t| t.rows = 100),
        ("without new rows", |t| t.changes.as_mut().unwrap().new_keys = None),
        ("without new rows", |t| t.keys = None),
        ("number of rows", |t| t.rows = 108),
        ("number of rows", |t| t.changes.as_mut().unwrap().base_rows = 0),
        ("number of rows", |t| t.changes.as_mut().unwrap().base_rows = 101),
        ("without records", |t| t.changes.as_mut().unwrap().records = None),
        ("salt of changes", |t| t.changes.as_mut().unwrap().salt = Bytes::new()),
        ("seeds", |t| t.changes.as_mut().unwrap().seeds = Bytes::new()),
        ("digest", |t| t.changes.as_mut().unwrap().seeds = Bytes::from_static(&[1, 3])),
        ("digest", |t| t.changes.as_mut().unwrap().base_epoch = 2),
    ];
    for (words, change) in cases {
        let mut table = changed().to_proto();
        change(&mut table);
        let error = TableDescription::from_proto(table).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    let cases: &[(&str, Change)] = &[
        ("another protocol version", |t| t.protocol_version = 1),
        ("proofs in some parts", |t| {
            let keys = t.keys.as_mut().unwrap();
            (keys.proofs, keys.hint_bytes) = (None, keys.hint_bytes - 16 * 50);
        }),
        ("depth of proofs", |t| t.records.as_mut().unwrap().proofs.as_mut().unwrap().depth = 9),
        ("the hint", |t| t.records.as_mut().unwrap().proofs.as_mut().unwrap().chunks = u32::MAX),
        ("number of chunks", |t| {
            let part = t.records.as_mut().unwrap();
            part.proofs.as_mut().unwrap().chunks = 0;
            part.hint_bytes -= 16 * 14;
        }),
        ("number of chunks", |t| {
            let part = t.records.as_mut().unwrap();
            part.proofs.as_mut().unwrap().chunks = 4 * 64 + 1;
            part.hint_bytes += 16 * (4 * 64 + 1 - 14);
        }),
        ("digest", |t| t.records.as_mut().unwrap().proofs.as_mut().unwrap().depth = 2),
        ("slot size", |t| t.records.as_mut().unwrap().proofs.as_mut().unwrap().depth = 8),
    ];
    for (words, change) in cases {
        let mut table = proved().to_proto();
        change(&mut table);
        let error = TableDescription::from_proto(table).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    let dense_with_seeds = proto::Table { seeds: Bytes::from_static(&[0]), ..dense().to_proto() };
    assert!(matches!(TableDescription::from_proto(dense_with_seeds), Err(TableError::Shape { .. })));
}

#[test]
fn keyed_tables_need_room_for_keys() {
    let content = |records, seeds: usize, keys| TableContent {
        name: "t".into(),
        epoch: 1,
        rows: 1,
        value_columns: vec![],
        records,
        keyed: Some(KeyedContent {
            column: "k".into(),
            salt: [0; 32],
            seeds: vec![0; seeds].into(),
            keys,
            blocks: 1,
            form: None,
            batches: None,
        }),
        changes: None,
    };
    let simple = |record_bytes, groups, columns| part("simple", record_bytes, groups, columns);
    assert!(TableDescription::new(content(simple(6, 1, 4), 1, None)).is_ok());
    for (records, seeds, keys) in [
        (simple(5, 1, 4), 1, None),
        (simple(6, 1, 3), 1, None),
        (simple(6, (2 << 20) + 1, 4), (2 << 20) + 1, None),
        (simple(6, 1, 4), 1, Some(simple(2, 1, 4))),
        (simple(6, 1, 4), 1, Some(simple(4099, 1, 4))),
    ] {
        assert!(TableDescription::new(content(records, seeds, keys)).is_err(), "{records:?} {keys:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_mean_something(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for (kind, _) in golden_1().into_iter().chain(golden_3()) {
            let Some(once) = again(kind, &bytes) else { continue };
            prop_assert_eq!(again(kind, &once), Some(once));
        }
        if let Ok(table) = proto::Table::decode(&bytes[..]) {
            let _ = TableDescription::from_proto(table);
        }
    }

    #[test]
    fn damaged_descriptions_are_refused_or_whole(
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        for table in [keyed(), dense(), changed(), proved()] {
            let mut bytes = table.to_proto().encode_to_vec();
            let at = at.index(bytes.len());
            bytes[at] = with;
            for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                if let Ok(read) = proto::Table::decode(bytes)
                    && let Ok(read) = TableDescription::from_proto(read)
                {
                    // The digest leaves no other table: at most a field of the message that nobody knows.
                    prop_assert_eq!(&read, &table);
                }
            }
        }
    }

    #[test]
    fn any_numbers_are_refused_or_hold(
        scheme in 0u32..4,
        record_bytes in prop_oneof![0u64..100, any::<u64>()],
        groups in prop_oneof![0u64..100, any::<u64>()],
        columns in prop_oneof![0u64..100, any::<u64>()],
        rows in any::<u64>(),
        right in any::<bool>(),
    ) {
        let mut table = dense().to_proto();
        table.rows = rows % 1000;
        let part = table.records.as_mut().unwrap();
        (part.scheme, part.record_bytes, part.groups, part.columns) = (scheme, record_bytes, groups, columns);
        if right && let Ok(params) = Params::new(
            schemes::find(if scheme == 2 { "double" } else { "simple" }).unwrap(),
            Geometry {
                record_bytes: record_bytes as usize,
                groups: groups as usize,
                columns: columns as usize,
            },
        ) {
            part.params_digest = Bytes::copy_from_slice(&params.digest());
            part.hint_bytes = params.hint_bytes();
        }
        let _ = TableDescription::from_proto(table);
    }
}

/// The table above in batches of eight keys.
fn batched() -> TableContent {
    let content = keyed_content();
    let buckets = Buckets::for_keys(8).unwrap().count();
    let records = PartDescription { buckets: buckets as u32, ..part("hintless", 45, 2, 16) };
    let batches = BatchesContent { keys: 8, records, seeds: vec![3; 2 * buckets].into() };
    TableContent { keyed: content.keyed.map(|k| KeyedContent { batches: Some(batches), ..k }), ..content }
}

#[test]
fn batches_are_described_and_counts_that_lie_refused() {
    let table = TableDescription::new(batched()).unwrap();
    let message = table.to_proto();
    assert_eq!((message.protocol_version, table.protocol_version()), (4, 4));
    assert_eq!(TableDescription::from_proto(message.clone()).unwrap(), table);
    assert_ne!(table.digest(), keyed().digest());
    let index = table.batch_index().unwrap();
    assert_eq!(index.buckets(), Buckets::for_keys(8).unwrap());
    let of_all = table.part(blindcore_wire::PartKind::Batches).unwrap();
    assert_eq!(of_all.hint_bytes(), 67 * of_all.params.hint_bytes());
    assert_eq!(of_all.answer_bytes(), 67 * of_all.params.answer_bytes() + 9);

    type Lie = fn(&mut proto::Batches);
    let lies: [(Lie, &str); 9] = [
        (|b| b.buckets = 0, "number of buckets is 0, outside 2 to 4096"),
        (|b| b.buckets = 1, "number of buckets is 1, outside 2 to 4096"),
        (|b| b.buckets = u32::MAX, "number of buckets is 4294967295, outside 2 to 4096"),
        (|b| b.buckets = 65, "the hint has"),
        (|b| b.seeds = b.seeds.slice(1..), "seeds of batches"),
        (|b| b.keys = 9, "number of buckets is 67, outside"),
        (|b| b.keys = 0, "number of keys of a batch is 0, outside 8 to 1024"),
        (|b| b.keys = u32::MAX, "number of keys of a batch is 4294967295, outside 8 to 1024"),
        (|b| b.records = None, "has batches without records"),
    ];
    for (lie, why) in lies {
        let mut lying = message.clone();
        lie(lying.batches.as_mut().unwrap());
        let error = TableDescription::from_proto(lying).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
    // Buckets of so many columns that a client's memory would not hold them.
    let mut wide = batched();
    let batches = wide.keyed.as_mut().unwrap().batches.as_mut().unwrap();
    batches.records = PartDescription { buckets: 67, ..part("hintless", 45, 2, 1 << 20) };
    let error = TableDescription::new(wide).unwrap_err().to_string();
    assert!(error.contains("size of a batch in bytes"), "{error}");
    // All that goes with the number, and the number itself.
    let fewer = |content: &mut BatchesContent| {
        content.records.buckets -= 1;
        content.seeds = content.seeds.slice(2..);
    };
    let mut lying = batched();
    fewer(lying.keyed.as_mut().unwrap().batches.as_mut().unwrap());
    let error = TableDescription::new(lying).unwrap_err();
    assert!(matches!(error, TableError::Params { .. }), "{error}");
    // A row has three places.
    let mut full = TableContent { rows: 800, ..batched() };
    full.records = part("simple", 45, 4, 256);
    full.keyed.as_mut().unwrap().keys = None;
    let error = TableDescription::new(full).unwrap_err().to_string();
    assert!(error.contains("number of rows is 2400, outside 1 to 2144"), "{error}");
    let mut older = message;
    older.protocol_version = 2;
    assert!(TableDescription::from_proto(older).unwrap_err().to_string().contains("protocol version"));
}
