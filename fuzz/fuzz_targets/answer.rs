//! Queries that are anybody's bytes, to a server of either scheme.
#![no_main]
use std::sync::LazyLock;

use blindcore_fuzz::{byte, tiny};
use blindcore_lookup::Server;
use libfuzzer_sys::fuzz_target;

static SERVERS: LazyLock<[Server; 2]> = LazyLock::new(|| [tiny("simple").0, tiny("double").0]);

fuzz_target!(|data: &[u8]| {
    let (how, data) = byte(data);
    let server = &SERVERS[usize::from(how & 1)];
    let params = server.params();
    // As they come, or cut to queries.
    let size = if how & 2 == 0 { params.query_bytes() } else { 1 + usize::from(how >> 2) };
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
