//! What client and server read alike: messages, what a table's description may say, records as bytes.
//!
//! ```text
//!   proto/       the messages, as they travel            ──prost──▶  proto::Table, proto::QueryRequest, ...
//!   table        a description that was checked           ◀─check──   every size bounded, digests recomputed
//!   codec        records and keys as bytes                            what a slot holds
//!   reason       why a request was refused, for programs
//! ```
//!
//! A message from outside is worth nothing until [`TableDescription::from_proto`] took it. A table is *keyed*
//! or not:
//!
//! | part      | keyed table                                                    | other table                |
//! |-----------|----------------------------------------------------------------|----------------------------|
//! | `records` | keyword slots: fingerprint, encoded record, zeros              | slot I: record I, zeros    |
//! | `keys`    | may be absent; slot I: 2-byte length, key of row I, zeros      | absent                     |
//!
//! so `--index I` of a keyed table is two lookups: the key of row I, then its record.
//!
//! A table that changed since it was built has `changes` beside these: keyword slots, of a row's key or of its
//! number, with the record or the word that it is gone; and `new_keys`, which goes on where `keys` ends. Every
//! lookup asks both the base and the changes, whichever it is about.
//!
//! Slots may end in [proofs](proof), which tie them to the table's digest.

mod check;
pub mod codec;
mod key_form;
mod key_type;
mod kind;
mod part;
pub mod proof;
mod reason;
pub mod score;
pub mod signature;
mod slot;
mod table;
mod value;

pub use blindcore_lookup::SHORT_HINT_BYTES;
pub use check::{
    MAX_COLUMN_NAME_BYTES, MAX_NAME_BYTES, MAX_VALUE_COLUMNS, PROTOCOL_VERSION, TableError,
    check_column_name, check_table_name,
};
pub use codec::{CodecError, KeyError};
pub use key_form::KeyForm;
pub use key_type::KeyType;
pub use kind::PartKind;
pub use part::{PartDescription, PerPart};
pub use proof::{ProofChoice, Proofs};
pub use reason::{REASON_HEADER, Reason};
pub use slot::{Change, decode_key_slot, encode_key_slot};
pub use table::{
    BatchesContent, ChangesContent, KeyedContent, MAX_GROUPS, MAX_LISTING_BYTES, MAX_TABLE_BYTES,
    TableContent, TableDescription,
};
pub use value::{Value, base64};

/// The messages, generated from `proto/blindcore/lookup/v1/lookup.proto`, and, with feature `grpc`, the service.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod proto;

#[cfg(test)]
mod tests {
    #[test]
    fn the_messages_are_made_from_their_description() {
        let description = include_bytes!("../proto/blindcore/lookup/v1/lookup.proto");
        let digest = blake3::hash(description).to_string();
        assert!(include_str!("proto.rs").contains(&digest), "lookup.proto changed: run `make proto`");
    }
}
