//! Every other message: what decodes encodes to something that decodes to itself.
#![no_main]
use blindcore_fuzz::byte;
use blindcore_wire::PartKind;
use blindcore_wire::proto::{
    GetHintRequest, GetTableRequest, HintChunk, ListTablesResponse, QueryRequest, QueryResponse,
    RegisterKeysRequest,
};
use libfuzzer_sys::fuzz_target;
use prost::Message;

fn read<M: Message + Default + PartialEq>(data: &[u8]) -> Option<M> {
    let message = M::decode(data).ok()?;
    assert!(M::decode(&*message.encode_to_vec()).is_ok_and(|again| again == message));
    Some(message)
}

fuzz_target!(|data: &[u8]| {
    let (which, data) = byte(data);
    match which % 7 {
        0 => drop(read::<QueryRequest>(data).map(|q| PartKind::from_proto(q.part))),
        1 => drop(read::<GetHintRequest>(data).map(|q| PartKind::from_proto(q.part))),
        2 => drop(read::<HintChunk>(data)),
        3 => drop(read::<QueryResponse>(data)),
        4 => drop(read::<ListTablesResponse>(data)),
        6 => drop(read::<RegisterKeysRequest>(data).map(|q| PartKind::from_proto(q.part))),
        _ => drop(read::<GetTableRequest>(data)),
    }
});
