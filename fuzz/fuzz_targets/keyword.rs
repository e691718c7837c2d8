//! Parameters and a keyword index from a stranger.
#![no_main]
use blindcore_lookup::keyword::Index;
use blindcore_lookup::{Client, Geometry, Params, schemes};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fuzz_target!(|input: (u8, u32, u32, u32, [u8; 32], Vec<u8>, Vec<u8>)| {
    let (scheme, record_bytes, groups, columns, salt, mut seeds, key) = input;
    let scheme = schemes::find(["simple", "double", "hintless", "hintless-q128"][usize::from(scheme) % 4]).unwrap();
    let [record_bytes, groups, columns] = [record_bytes, groups, columns].map(|n| n as usize);
    let geometry = Geometry { record_bytes, groups, columns };
    let Ok(params) = Params::new(scheme, geometry) else { return };
    assert!(params.failure_log2() >= 40.0);
    let _ = params.digest();
    assert!(params.query_bytes() >= 3 * columns && params.answer_bytes() > 0 && params.hint_bytes() > 0);
    let _ = params.operands().iter().map(|operand| operand.bytes()).sum::<usize>();
    // Four columns are the fewest that hold a key.
    let fits = seeds.len() == groups && columns >= 4;
    assert_eq!(Index::new(geometry, salt, seeds.clone()).is_ok(), fits);
    // What a checked table description has at least.
    if groups > 1 << 12 || columns < 4 {
        return;
    }
    seeds.resize(groups, 3);
    let index = Index::new(geometry, salt, seeds).unwrap();
    let (selection, _) = index.select(&key);
    // What it selects lies inside the matrix.
    if columns < 1 << 12 && params.hint_bytes() < 1 << 22 {
        let client = Client::new(params, Arc::new(vec![0u8; params.hint_bytes() as usize])).unwrap();
        client.query(client.prepare().unwrap(), &selection).unwrap();
    }
});
