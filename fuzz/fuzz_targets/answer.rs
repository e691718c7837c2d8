//! Queries that are anybody's bytes, to a server of each scheme.
#![no_main]
use std::sync::LazyLock;

use blindcore_fuzz::{byte, small, tiny};
use blindcore_lookup::{Geometry, Server};
use libfuzzer_sys::fuzz_target;

static SERVERS: LazyLock<[Server; 5]> = LazyLock::new(|| {
    // One ciphertext that is sent, and 33 of which one is picked, by one digit and by two.
    let picking = Geometry { record_bytes: 250, groups: 33, columns: 5 };
    [tiny("simple").0, tiny("double").0, tiny("hintless").0, small("hintless", picking).0, small("hintless-q128", picking).0]
});

// What every input needs is made before the first is timed.
fuzz_target!(init: LazyLock::force(&SERVERS), |data: &[u8]| {
    let (how, data) = byte(data);
    let server = &SERVERS[usize::from(how & 3) + usize::from(how & 11 == 11)];
    let params = server.params();
    // As they come, or cut to queries.
    let size = if how & 4 == 0 { params.query_bytes() } else { 1 + usize::from(how >> 3) };
    let queries: Vec<&[u8]> = data.chunks(size).collect();
    let good = (1..=64).contains(&queries.len()) && queries.iter().all(|q| q.len() == params.query_bytes());
    match server.answer(&queries) {
        Ok((answers, _)) => {
            assert!(good && answers.len() == queries.len());
            assert!(answers.iter().all(|a| a.len() == params.answer_bytes()));
        }
        Err(_) => assert!(!good),
    }
});
