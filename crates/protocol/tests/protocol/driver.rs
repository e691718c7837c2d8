//! A driver without sockets, and servers in the same process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use blindcore_lookup::Server;
use blindcore_protocol::{
    Error, Fetch, Grant, Hint, KeyNeed, Lookup, Outcome, Policy, Record, Rotation, Step, Table,
};
use blindcore_wire::{PartKind, Value, proto};
use bytes::Bytes;
use prost::Message;

use crate::made::Made;

/// What a server saw of a request: its part, how many queries and how many bytes.
pub(crate) type Seen = (PartKind, usize, usize);

/// What answers a request.
pub(crate) type Answer<'a> = &'a dyn Fn(&proto::QueryRequest) -> proto::QueryResponse;

/// The description of a made table, of a server that takes 4 queries in a request.
pub(crate) fn described(made: &Made) -> proto::GetTableResponse {
    let queries = |kind| made.description.part(kind).map_or(0, |_| 4);
    proto::GetTableResponse {
        table: Some(made.description.to_proto()),
        records_queries: queries(PartKind::Records),
        keys_queries: queries(PartKind::Keys),
        changes_queries: queries(PartKind::Changes),
        new_keys_queries: queries(PartKind::NewKeys),
        batches_queries: queries(PartKind::Batches),
    }
}

pub(crate) fn open(made: &Made, policy: &Policy, before: Option<&Table>) -> Result<Arc<Table>, Error> {
    let response = described(made).encode_to_vec();
    Table::receive(made.description.name(), &response, policy, before).map(Arc::new)
}

/// Answers as an honest server does.
pub(crate) fn honest(made: &Made) -> impl Fn(&proto::QueryRequest) -> proto::QueryResponse {
    |request| answer(&made.part(PartKind::from_proto(request.part).unwrap()).unwrap().server(), request)
}

/// Keys that servers of this process were given, by their digest: they are the same for all of them.
static REGISTERED: LazyLock<Mutex<HashMap<Vec<u8>, Bytes>>> = LazyLock::new(Mutex::default);

/// Has the servers keep keys, as an honest one does.
pub(crate) fn register(need: &KeyNeed, public: Bytes) {
    let message = proto::RegisterKeysRequest::decode(&*need.encode(public)).unwrap();
    assert_eq!(message.keys_params[..], *need.params_digest());
    REGISTERED.lock().unwrap().insert(blake3::hash(&message.keys).as_bytes().to_vec(), message.keys);
}

/// What a server answers.
pub(crate) fn answer(server: &Server, request: &proto::QueryRequest) -> proto::QueryResponse {
    let queries: Vec<&[u8]> = request.queries.chunks(server.params().query_bytes()).collect();
    let public = REGISTERED.lock().unwrap().get(&request.keys[..]).cloned();
    let keys = public.map(|public| server.params().open_registered(&public).expect("they were made so"));
    assert_eq!(
        keys.is_some(),
        server.params().registers_keys(),
        "nothing is asked under keys that it has not"
    );
    let keys = keys.iter().cycle().take(if keys.is_some() { queries.len() } else { 0 });
    let (answers, _) = server.answer_under(&queries, &keys.collect::<Vec<_>>()).unwrap();
    proto::QueryResponse { answers: answers.concat().into(), server_micros: 1 }
}

/// Brings a hint, a piece at a time.
pub(crate) fn fetched(made: &Made, fetch: &Fetch) -> Hint {
    let bytes = made.part(fetch.kind()).unwrap().hint();
    let (mut download, mut hint) = (fetch.download(0), Hint::default());
    while let Some(request) = download.request() {
        let rest = &bytes[request.offset as usize..];
        let piece = &rest[..rest.len().min(1000)];
        download.receive(piece).unwrap();
        hint.push(piece);
    }
    hint
}

/// Does what a lookup says until it is done.
pub(crate) fn drive(
    mut lookup: Lookup,
    made: &Made,
    answer: Answer,
) -> (Result<Vec<Outcome>, Error>, Vec<Seen>) {
    let (mut seen, mut kept) = (Vec::new(), None);
    let mut run = || {
        loop {
            match lookup.step()? {
                Step::Need(fetch) => {
                    let kept = fetch.check(fetched(made, &fetch))?;
                    lookup.table().keep(kept)?;
                }
                Step::Keys(need) => {
                    let Grant { mut keys, made, register } =
                        need.grant(kept.take(), &Rotation::default(), 1)?;
                    assert_eq!(made.is_some(), register, "new ones are registered");
                    if let Some(public) = made {
                        self::register(&need, public);
                        keys.registered();
                    }
                    kept = Some(keys.clone());
                    lookup.take_keys(keys);
                }
                Step::Send(request) => {
                    assert!(matches!(lookup.step()?, Step::Wait), "one request at a time");
                    let message = proto::QueryRequest::decode(&*request.encode()).unwrap();
                    let kind = PartKind::from_proto(message.part).unwrap();
                    seen.push((kind, request.queries(), message.queries.len()));
                    let response = answer(&message).encode_to_vec();
                    assert!(response.len() <= request.max_response_bytes());
                    lookup.receive(&response)?;
                }
                Step::Done(outcomes) => {
                    assert!(matches!(lookup.step(), Err(Error::Over)));
                    return Ok(outcomes);
                }
                _ => unreachable!("each response is given at once"),
            }
        }
    };
    (run(), seen)
}

/// The first value of each record.
pub(crate) fn firsts(outcomes: Vec<Outcome>) -> Vec<Option<Value>> {
    let first = |record: Record| record.values[0].1.clone();
    outcomes.into_iter().map(|outcome| outcome.found.unwrap().map(first)).collect()
}
