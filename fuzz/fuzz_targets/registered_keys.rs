//! Registered keys, queries under good ones, and answers to them, that are anybody's bytes, of each scheme that has such.
#![no_main]
use std::sync::LazyLock;

use blindcore_fuzz::{byte, small};
use blindcore_lookup::{Client, Geometry, KeySet, RegisteredKeys, SecretKeys, Selection, Server, schemes};
use libfuzzer_sys::fuzz_target;

struct Table {
    server: Server,
    client: Client,
    made: KeySet,
    secret: SecretKeys,
    keys: RegisteredKeys,
}

/// One of each scheme that has registered keys.
static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let table = |scheme: &str| {
        let (server, client) = small(scheme, Geometry { record_bytes: 300, groups: 3, columns: 2 });
        let made = server.params().make_keys().unwrap();
        let secret = server.params().open_secret(&made.secret).unwrap();
        let keys = server.params().open_registered(&made.public).unwrap();
        Table { server, client, made, secret, keys }
    };
    let registered = schemes::offered().into_iter().filter(|scheme| scheme.registers_keys());
    registered.map(|scheme| table(scheme.name())).collect()
});

// What every input needs is made before the first is timed.
fuzz_target!(init: LazyLock::force(&TABLES), |data: &[u8]| {
    let (how, data) = byte(data);
    let Table { server, client, made, secret, keys } = &TABLES[usize::from(how >> 2) % TABLES.len()];
    let params = server.params();
    let ask = || {
        let selection = Selection::index(&params.geometry, 3).unwrap();
        client.query(client.prepare_under(secret).unwrap(), &selection).unwrap()
    };
    // Bytes of the right length: `data` again and again.
    let filled = |bytes: usize, data: &[u8]| -> Vec<u8> {
        if data.is_empty() { vec![0; bytes] } else { data.iter().copied().cycle().take(bytes).collect() }
    };
    match how & 3 {
        // Keys as they come, which have another length.
        0 => assert!(params.open_registered(data).is_err()),
        // Good keys, from some place on others.
        1 => {
            let mut public = made.public.clone();
            let (place, data) = data.split_at(data.len().min(3));
            let at = place.iter().fold(0, |at, byte| at << 8 | usize::from(*byte)) % public.len();
            let end = public.len().min(at + data.len());
            public[at..end].copy_from_slice(&data[..end - at]);
            if let Ok(keys) = params.open_registered(&public) {
                let (answers, _) = server.answer_under(&[&ask().0], &[&keys]).unwrap();
                assert_eq!(answers[0].len(), params.answer_bytes());
            }
        }
        2 => {
            let (answers, _) = server.answer_under(&[&filled(params.query_bytes(), data)], &[keys]).unwrap();
            assert_eq!(answers[0].len(), params.answer_bytes());
        }
        _ => {
            let decoded = client.decode(ask().1, &filled(params.answer_bytes(), data)).unwrap();
            assert!(decoded.slot.len() == 300 && !decoded.damaged);
        }
    }
});
