//! Answers and hints that are anybody's bytes, to a client of each scheme; what it decodes is then opened as
//! a keyword slot and read as a record.
#![no_main]
use std::sync::{Arc, LazyLock};

use blindcore_fuzz::{byte, small, tiny};
use blindcore_lookup::{Client, Geometry, Params, Selection, keyword, schemes};
use blindcore_wire::codec::decode_record;
use libfuzzer_sys::fuzz_target;

static OTHERS: LazyLock<[Client; 4]> = LazyLock::new(|| {
    let picking = Geometry { record_bytes: 250, groups: 33, columns: 5 };
    [tiny("double").1, tiny("hintless").1, small("hintless", picking).1, small("hintless-q128", picking).1]
});

fn decode(client: &Client, answer: &[u8], resize: bool) -> Option<Vec<u8>> {
    let params = client.params();
    let mut answer = answer.to_vec();
    if resize {
        answer.resize(params.answer_bytes(), 0);
    }
    let selection = Selection::index(&params.geometry, params.geometry.slots() - 1).unwrap();
    let (_, pending) = client.query(client.prepare().unwrap(), &selection).unwrap();
    let slot = client.decode(pending, &answer);
    assert_eq!(slot.is_ok(), answer.len() == params.answer_bytes());
    slot.ok().map(|decoded| decoded.slot.to_vec())
}

// What every input needs is made before the first is timed.
fuzz_target!(init: LazyLock::force(&OTHERS), |data: &[u8]| {
    let (how, data) = byte(data);
    let resize = how & 1 == 1;
    if let Some(client) = OTHERS.get(usize::from(how >> 1 & 7)) {
        decode(client, data, resize);
        return;
    }
    let geometry = Geometry { record_bytes: 12, groups: 2, columns: 9 };
    let params = Params::new(schemes::find("simple").unwrap(), geometry).unwrap();
    let (hint, answer) = data.split_at(data.len() / 2);
    let mut hint = hint.to_vec();
    let _ = Client::new(params, Arc::new(hint.clone()));
    hint.resize(params.hint_bytes() as usize, 0x5a);
    let client = Client::new(params, Arc::new(hint)).unwrap();
    let Some(slot) = decode(&client, answer, resize) else { return };
    let fingerprint = *slot.first_chunk().unwrap();
    let record = keyword::open(&slot, &fingerprint).unwrap();
    for columns in 0..4 {
        let _ = decode_record(record, columns);
        let _ = decode_record(data, columns);
    }
    for len in 0..6 {
        let _ = keyword::open(&slot[..len], &fingerprint);
    }
});
