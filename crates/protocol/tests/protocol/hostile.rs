//! A server that does anything, as bytes decide: what the fuzz target `protocol` runs, and a property of the tests.
//!
//! Nothing it does may make the client panic, take memory without bound, or take a wrong record from a table whose
//! digest is pinned.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use blindcore_lookup::{Geometry, Params, SchemeRef, Server};
use blindcore_protocol::{
    ClientKeys, Error, Fetch, Grant, Hint, KeyNeed, Lookup, Policy, Rotation, Step, Table, Trust, listing,
};
use blindcore_wire::{
    ChangesContent, KeyedContent, PartDescription, PartKind, Proofs, Reason, TableContent, TableDescription,
    Value, proto,
};
use prost::Message;

use crate::made::{Made, keyed_with, people, row};

/// The most steps of one run.
const STEPS: usize = 60;
/// The largest hint, in bytes.
const HINT: u64 = 4 << 20;

/// The bytes that decide; zeros where they end.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// A number from `min` to `max`, at most 255 apart.
    fn number(&mut self, min: usize, max: usize) -> usize {
        min + usize::from(self.byte()) % (max - min + 1)
    }

    fn some(&mut self) -> &'a [u8] {
        let (some, rest) = self.0.split_at(usize::from(self.byte()).min(self.0.len()));
        self.0 = rest;
        some
    }

    /// As many bytes as asked for: what is left, again and again.
    fn fill(&mut self, len: usize) -> Vec<u8> {
        let some = match self.some() {
            [] => &[0x5a],
            some => some,
        };
        some.iter().copied().cycle().take(len).collect()
    }
}

/// A table that changed, with proofs and every part there is; and its servers.
struct World {
    made: Made,
    table: proto::GetTableResponse,
    servers: Vec<(PartKind, Server)>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| World::of(crate::made::simple()));
/// The same under keys that clients register.
static REGISTERED: LazyLock<World> = LazyLock::new(|| World::of(crate::made::registered()));

impl World {
    fn of(scheme: SchemeRef) -> Self {
        let base = keyed_with("people", 1, scheme, 2, &people(12), Some(1));
        let rows: [(&[u8], _); 3] = [(b"key-7", row("changed")), (b"key-8", None), (b"late", row("added"))];
        let made = base.changed(2, &rows, &[b"late"]);
        let parts = made.description.parts().map(|(kind, _)| kind);
        let servers = parts.map(|kind| (kind, made.part(kind).unwrap().server())).collect();
        Self { table: crate::driver::described(&made), made, servers }
    }
}

/// The first value of the row of a key, if it is there.
fn truth(key: &[u8]) -> Option<Value> {
    let text = |text: String| Some(Value::Text(text));
    match key {
        b"key-7" => text("changed".into()),
        b"key-8" => None,
        b"late" => text("added".into()),
        _ => {
            let number: usize = std::str::from_utf8(key).ok()?.strip_prefix("key-")?.parse().ok()?;
            if number < 12 { text(format!("person {number}")) } else { None }
        }
    }
}

const KEYS: [&str; 6] = ["key-1", "key-7", "key-8", "late", "nobody", "key-11"];

pub(crate) fn run(data: &[u8]) {
    let mut choices = Choices(data);
    match choices.byte() % 4 {
        0 => anything(&mut choices),
        1 => invented(&mut choices),
        2 => pinned(&mut choices, &WORLD),
        _ => pinned(&mut choices, &REGISTERED),
    }
}

fn policy(trust: Trust) -> Policy {
    Policy { trust, hint_bytes: HINT, queries_per_request: 4, ..Policy::default() }
}

/// Messages that are any bytes.
fn anything(choices: &mut Choices) {
    let _ = listing(choices.0);
    let Ok(table) = Table::receive("people", choices.0, &policy(Trust::Server), None) else { return };
    let table = Arc::new(table);
    for kind in PartKind::ALL {
        let Ok(Some(fetch)) = table.missing(kind) else { continue };
        let mut hint = Hint::default();
        hint.push(choices.0);
        let _ = fetch.check(hint);
    }
    for lookup in [Lookup::by_key(&table, &["key-1"]), Lookup::by_row(&table, &[0, u64::MAX])] {
        let Ok(mut lookup) = lookup else { continue };
        let _ = lookup.receive(choices.0);
        let _ = lookup.step();
    }
}

/// An invented table whose hints are what its description says, and answers that are noise.
fn invented(choices: &mut Choices) {
    let Some((response, hint)) = invent(choices) else { return };
    let table = Arc::new(Table::open("t", response, &policy(Trust::Server), None).expect("it was checked"));
    let rows: Vec<u64> = choices.fill(8).iter().map(|n| u64::from(*n)).collect();
    let lookup = match choices.byte() % 2 {
        0 => Lookup::by_key(&table, &["a", "key", "a"]),
        _ => Lookup::by_row(&table, &rows),
    };
    let Ok(mut lookup) = lookup else { return };
    for _ in 0..STEPS {
        match lookup.step() {
            Ok(Step::Need(fetch)) => {
                let mut bytes = Hint::default();
                bytes.push(&hint[..fetch.bytes() as usize]);
                let Ok(kept) = fetch.check(bytes) else { return };
                table.keep(kept).unwrap();
            }
            Ok(Step::Send(request)) => {
                let len = request.max_response_bytes() - 64;
                let response = proto::QueryResponse { answers: choices.fill(len).into(), server_micros: 1 };
                lookup.receive(&response.encode_to_vec()).expect("it is as long as it should be");
            }
            Ok(Step::Done(outcomes)) => {
                let allowed = |error: &Error| {
                    matches!(
                        error,
                        Error::Damaged { .. }
                            | Error::Garbage { .. }
                            | Error::WrongAnswer { .. }
                            | Error::NoSuchRow { .. }
                    )
                };
                assert!(outcomes.iter().all(|o| o.found.as_ref().err().is_none_or(allowed)));
                return;
            }
            Ok(_) => panic!("nothing is awaited"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A small table that nobody made, and bytes that its hints are the first of.
fn invent(choices: &mut Choices) -> Option<(proto::GetTableResponse, Vec<u8>)> {
    let hint = choices.fill(1 << 19);
    let proofs = choices.byte() % 2 == 1;
    let part = |choices: &mut Choices, least: usize| {
        let proofs =
            proofs.then(|| Proofs { depth: choices.number(0, 2) as u8, chunks: choices.number(1, 3) as u32 });
        let record_bytes = choices.number(least, least + 20) + proofs.map_or(0, |p| p.slot_bytes());
        let geometry = Geometry { record_bytes, groups: choices.number(1, 2), columns: choices.number(4, 9) };
        let params = Params::new(crate::made::simple(), geometry).ok()?;
        let mut part = PartDescription { params, hint_digest: [0; 32], proofs, buckets: 1 };
        let bytes = usize::try_from(part.hint_bytes()).ok()?;
        part.hint_digest = *blake3::hash(hint.get(..bytes)?).as_bytes();
        Some(part)
    };
    let seeds = |part: &PartDescription| vec![7; part.params.geometry.groups].into();
    let (keyed, indexed, changed) =
        (choices.byte() % 2 == 1, choices.byte() % 2 == 1, choices.byte() % 2 == 1);
    let records = part(choices, 6)?;
    let base_rows = choices.number(1, 4) as u64;
    let added = if changed { choices.number(0, 2) as u64 } else { 0 };
    let keyed = match keyed {
        true => Some(KeyedContent {
            column: "k".into(),
            salt: [9; 32],
            seeds: seeds(&records),
            keys: if indexed { Some(part(choices, 3)?) } else { None },
            blocks: choices.number(1, 3) as u32,
            form: None,
            batches: None,
        }),
        false => None,
    };
    let changes = match changed {
        true => {
            let records = part(choices, 7)?;
            let new = added > 0 && keyed.as_ref().is_some_and(|k| k.keys.is_some());
            Some(ChangesContent {
                base_epoch: 1,
                base_rows,
                salt: [8; 32],
                seeds: seeds(&records),
                records,
                new_keys: if new { Some(part(choices, 3)?) } else { None },
                blocks: choices.number(1, 3) as u32,
            })
        }
        false => None,
    };
    let columns = choices.number(0, 3);
    let table = TableDescription::new(TableContent {
        name: "t".into(),
        epoch: 2,
        rows: base_rows + added,
        value_columns: (0..columns).map(|i| format!("c{i}")).collect(),
        records,
        keyed,
        changes,
    });
    let response = proto::GetTableResponse {
        table: Some(table.ok()?.to_proto()),
        records_queries: 4,
        keys_queries: 3,
        changes_queries: 2,
        new_keys_queries: 1,
        batches_queries: 0,
    };
    Some((response, hint))
}

/// A table that is pinned: whatever the server says of it, no record comes out that is not in it.
fn pinned(choices: &mut Choices, world: &World) {
    let mut forgot = false;
    let mut response = world.table.encode_to_vec();
    if choices.byte() % 4 == 1 {
        flip(choices, &mut response);
    }
    let trust = Trust::Digest(*world.made.description.digest());
    let Ok(table) = Table::receive("people", &response, &policy(trust), None) else { return };
    assert_eq!(table.description().digest(), world.made.description.digest());
    let table = Arc::new(table);
    let rows = [0, 7, 8, 12, 11, u64::from(choices.byte())];
    let by_key = choices.byte().is_multiple_of(2);
    let lookup = if by_key { Lookup::by_key(&table, &KEYS) } else { Lookup::by_row(&table, &rows) };
    let mut lookup = lookup.expect("the table is keyed and has a directory");
    for _ in 0..STEPS {
        let how = choices.byte();
        if how & 0x80 != 0 && lookup.receive(choices.some()).is_ok() {
            continue;
        }
        match lookup.step() {
            Ok(Step::Need(fetch)) => {
                if let Some(hint) = hint(choices, world, &fetch, how) {
                    table.keep(hint).expect("it is the table's");
                }
            }
            Ok(Step::Keys(need)) => lookup.take_keys(keys(choices, &need, how)),
            // It says that it forgot keys, or that there are none where there are no keys.
            Ok(Step::Send(request)) if how & 0x38 == 0x38 => {
                let under = !request.message().keys.is_empty();
                let refusal = Error::refused("a query", Some(Reason::UnknownKeys), None, "", "people", 2);
                let again = lookup.forgotten(refusal);
                assert_eq!(again.is_ok(), under && !forgot, "once, and where there are keys");
                forgot = true;
                if again.is_err() {
                    assert!(matches!(lookup.step(), Err(Error::Over)));
                    return;
                }
                assert!(matches!(lookup.step(), Ok(Step::Keys(_))));
            }
            Ok(Step::Send(request)) => {
                let message = request.message();
                let mut response = answer(world, message);
                let mut bytes = response.encode_to_vec();
                match how % 8 {
                    0 => {
                        let mut answers = response.answers.to_vec();
                        flip(choices, &mut answers);
                        response.answers = answers.into();
                        bytes = response.encode_to_vec();
                    }
                    1 => {
                        response.answers = choices.fill(response.answers.len()).into();
                        bytes = response.encode_to_vec();
                    }
                    2 => flip(choices, &mut bytes),
                    3 => bytes = choices.some().to_vec(),
                    _ => {}
                }
                if lookup.receive(&bytes).is_err() {
                    assert!(lookup.step().is_err(), "it is over");
                    return;
                }
            }
            Ok(Step::Done(outcomes)) => {
                for (i, outcome) in outcomes.into_iter().enumerate() {
                    let Ok(Some(record)) = outcome.found else { continue };
                    let key = record.key.expect("the table is keyed");
                    if by_key {
                        assert_eq!(key, KEYS[i].as_bytes());
                    } else {
                        let want = if rows[i] == 12 { "late".into() } else { format!("key-{}", rows[i]) };
                        assert_eq!(key, want.as_bytes());
                    }
                    // A server may hide that a row changed, which a proof can't show, but not make one up.
                    let old = Some(Value::Text(format!("person {}", String::from_utf8_lossy(&key[4..]))));
                    let value = Some(record.values[0].1.clone());
                    assert!(value == truth(&key) || value == old, "{value:?} under {key:?}");
                }
                return;
            }
            Ok(_) => panic!("nothing is awaited"),
            Err(_) => return,
        }
    }
}

/// What comes of a fetch, if it is believed: then it is right.
fn hint(choices: &mut Choices, world: &World, fetch: &Fetch, how: u8) -> Option<blindcore_protocol::Kept> {
    let right = world.made.part(fetch.kind()).unwrap().hint();
    let mut download = fetch.download(u64::from(how >> 4));
    let _ = (download.request(), download.receive(choices.some()), download.broke());
    assert!(download.have() <= download.total());
    if how & 0x40 != 0 {
        let entry = fetch.cached("host:1");
        let mut whole = [&entry.header()[..], &right].concat();
        flip(choices, &mut whole);
        let _ = entry.resumes(choices.byte().into(), choices.some());
        assert!(entry.read(&whole).is_err());
        return None;
    }
    let mut bytes = right.to_vec();
    if how & 0x20 != 0 {
        flip(choices, &mut bytes);
    }
    let mut hint = Hint::default();
    bytes.chunks(4099).for_each(|piece| hint.push(piece));
    let kept = fetch.check(hint);
    assert_eq!(kept.is_ok(), bytes == right[..]);
    kept.ok()
}

/// Keys for a request, of a cache whose entry is damaged or of other times as bytes decide; registered.
fn keys(choices: &mut Choices, need: &KeyNeed, how: u8) -> ClientKeys {
    let rotation = Rotation { queries: choices.byte().into(), age: Duration::from_secs(10) };
    let entry = need.cached("host:1");
    let Grant { keys, made, register } = need.grant(None, &rotation, 5).expect("there is randomness");
    let (start, public) = (entry.start(&keys), made.expect("there were none"));
    assert!(register && entry.is_public(&keys, &public));
    assert_eq!((start.len(), start.len() + public.len()), (entry.start_bytes(), entry.bytes()));
    crate::driver::register(need, public.clone());
    let mut bytes = start.to_vec();
    if how & 1 == 1 {
        flip(choices, &mut bytes);
    }
    let length = if how & 2 == 2 { choices.byte().into() } else { entry.bytes() as u64 };
    let known = (how & 4 == 4).then_some(&keys);
    let Ok(read) = entry.read(length, &bytes, known) else {
        assert!(bytes != *start || length != entry.bytes() as u64, "what was written is read");
        return keys;
    };
    assert_eq!(read.digest(), keys.digest(), "no damage goes unseen but of how far they are used");
    let (used, now) = (read.used(), u64::from(choices.byte()));
    let grant = need.grant(Some(read), &rotation, now).expect("there is randomness");
    let stays =
        now.saturating_sub(5) < 10 && (used == 0 || used.saturating_add(need.queries()) <= rotation.queries);
    assert_eq!(grant.made.is_none(), stays);
    match grant.made {
        None => assert_eq!(grant.keys.digest(), keys.digest()),
        Some(public) => {
            assert_ne!(grant.keys.digest(), keys.digest());
            crate::driver::register(need, public);
        }
    }
    grant.keys
}

/// Flips a bit.
fn flip(choices: &mut Choices, bytes: &mut [u8]) {
    let (high, low) = (usize::from(choices.byte()), usize::from(choices.byte()));
    if !bytes.is_empty() {
        let at = (high << 8 | low) % bytes.len();
        bytes[at] ^= 1 << (choices.byte() % 8);
    }
}

fn answer(world: &World, request: &proto::QueryRequest) -> proto::QueryResponse {
    let kind = PartKind::from_proto(request.part).expect("the client says which part");
    let (_, server) = world.servers.iter().find(|(k, _)| *k == kind).expect("every part is served");
    crate::driver::answer(server, request)
}
