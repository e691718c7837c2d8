//! The scheme without a hint: a client fetches nothing first, sends about 100 KB and receives about 5 KB.
//!
//! ```text
//!  client                                  server
//!  fresh s, b = A s + e + Delta u   ──▶   scan: for each row, the sum over columns of byte * b     modulo 2^32
//!    top 26 bits of b                      pack: gamma rows become one ring ciphertext              tables, made beforehand
//!    packing key   12 KB                   pick: one of t ciphertexts, by Horner's rule at z^k
//!    z^k           25 KB            ◀──   round: mask to 17 bits, body to 11: 4.7 KB
//! ```
//!
//! Ring: degree 2048 modulo a prime of 48 bits, ternary secret, centred binomial errors; a second set, of 40 bits, has 128 bits
//! against quantum computers. Secret and keys are fresh in each
//! query: A is the same for all, so two queries under one secret would show what is asked for. Sources: SimplePIR (Henzinger
//! and others 2023) for the scan, over a ring as in HintlessPIR (Li and others 2024); InsPIRe (Mahdavi and others 2025) for
//! packing and for picking by interpolation, here of the packed ciphertexts, so that records stay bytes.
//!
//! What a client is told of a table is 32 bytes: the seed of A and of the packing key's mask, drawn when the records are fixed.

use std::sync::Arc;

use blindcore_accel::{Device, Placed, SharedBytes};

use super::keeps::Keeps;
use super::scheme::{About, ClientWork, Operand, RingWork, Run, Scheme};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod params;
mod picking;
mod prepare;
mod server;

use params::SEED_BYTES;

/// The scheme by one of its sets of parameters.
pub(crate) struct Hintless(&'static params::Set);

pub(crate) static CLASSICAL: Hintless = Hintless(&params::CLASSICAL);
pub(crate) static QUANTUM: Hintless = Hintless(&params::QUANTUM);

impl Scheme for Hintless {
    fn about(&self) -> &'static About {
        &self.0.about
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        self.0.check(geometry)
    }

    fn failure_log2(&self, geometry: &Geometry) -> f64 {
        self.0.failure_log2(geometry)
    }

    fn keeps(&self, _: &Geometry) -> Keeps {
        Keeps::Hint { bytes: SEED_BYTES as u64 }
    }

    fn query_bytes(&self, geometry: &Geometry) -> usize {
        self.0.query_bytes(geometry)
    }

    fn answer_bytes(&self, geometry: &Geometry) -> usize {
        self.0.answer_bytes(geometry)
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand> {
        self.0.operands(geometry)
    }

    fn preprocessing(&self, geometry: &Geometry) -> Vec<Run> {
        let passes = prepare::steps(&params::Packed::new(self.0, geometry));
        // They are no passes of queries: what they take is the ring's work.
        vec![Run { operand: params::RECORDS, queries: 0, passes }]
    }

    fn answering(&self, _: &Geometry, queries: usize) -> Vec<Run> {
        self.0.answering(queries)
    }

    fn client_work(&self, geometry: &Geometry) -> ClientWork {
        self.0.client_work(geometry)
    }

    fn ring_work(&self, geometry: &Geometry) -> RingWork {
        self.0.ring_work(geometry)
    }

    fn groups(&self, records: u64, slot_bytes: usize) -> u64 {
        self.0.groups(records, slot_bytes, None)
    }

    fn groups_by_key(&self, records: u64, slot_bytes: usize, lookups: usize) -> u64 {
        self.0.groups(records, slot_bytes, Some(lookups))
    }

    fn preprocess(
        &self,
        params: &Params,
        device: &Device,
        records: &dyn Placed,
        into: &mut Preprocessing<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        prepare::preprocess(self.0, params, device, records, into, progress)
    }

    fn representative(&self, bytes: u64) -> Geometry {
        let columns = ((bytes as f64).sqrt() as usize * 8).clamp(1, 1 << 14);
        let record_bytes = (bytes as usize / columns).clamp(1, 256);
        Geometry { record_bytes, groups: (bytes as usize / columns / record_bytes).max(1), columns }
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(Box::new(server::HintlessServer::new(self.0, params, device, operands)?))
    }

    fn client(&self, params: &Params, hint: SharedBytes) -> Result<Client, Error> {
        let seed = (*hint).as_ref().try_into().expect("its length was checked");
        Ok(Client::of(*params, client::HintlessClient::new(self.0, params, seed)))
    }
}
