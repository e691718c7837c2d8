//! Registered keys and secrets that are anybody's bytes, of each scheme that has such: they are refused, or queries are answered
//! under them.
#![no_main]
use std::sync::LazyLock;

use blindcore_fuzz::{byte, tiny};
use blindcore_lookup::{Client, Error, InsecurePlain, KeySet, Selection, Server, schemes};
use libfuzzer_sys::fuzz_target;

/// A server of each scheme, and keys of a client.
static SERVERS: LazyLock<Vec<(Server, Client, KeySet)>> = LazyLock::new(|| {
    let plain = InsecurePlain::registered_for_tests().scheme();
    let with = |name: &str| {
        let (server, client) = tiny(name);
        let keys = server.params().make_keys().unwrap();
        (server, client, keys)
    };
    let all = schemes::offered().into_iter().chain([plain]);
    let fits = |scheme: &blindcore_lookup::SchemeRef| {
        scheme.representative(1 << 10).is_ok_and(|params| params.registers_keys())
    };
    all.filter(fits).map(|scheme| with(scheme.name())).collect()
});

// What every input needs is made before the first is timed.
fuzz_target!(init: LazyLock::force(&SERVERS), |data: &[u8]| {
    let (how, data) = byte(data);
    let (server, client, keys) = &SERVERS[usize::from(how >> 3) % SERVERS.len()];
    let params = server.params();
    // As they come, or instead of what honest ones have at their start.
    let bytes = |good: &[u8]| match how & 1 {
        0 => data.to_vec(),
        _ => data.iter().chain(good.iter().skip(data.len())).copied().collect::<Vec<u8>>(),
    };
    if how & 2 == 0 {
        let public = bytes(&keys.public);
        match params.open_registered(&public) {
            Err(error) => assert!(matches!(error, Error::Length { .. } | Error::KeyBytes { .. }), "{error}"),
            Ok(registered) => {
                let query = vec![how; params.query_bytes()];
                let (answers, _) = server.answer_under(&[&query], &[&registered]).unwrap();
                assert_eq!(answers[0].len(), params.answer_bytes());
            }
        }
    } else {
        match params.open_secret(&bytes(&keys.secret)) {
            Err(error) => assert!(matches!(error, Error::Length { .. } | Error::KeyBytes { .. }), "{error}"),
            Ok(secret) => {
                let selection = Selection::index(&params.geometry, 1).unwrap();
                let (query, pending) =
                    client.query(client.prepare_under(&secret).unwrap(), &selection).unwrap();
                assert_eq!(query.len(), params.query_bytes());
                let decoded = client.decode(pending, &vec![how; params.answer_bytes()]).unwrap();
                assert!(!decoded.damaged);
            }
        }
    }
});
