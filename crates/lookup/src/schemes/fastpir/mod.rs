//! The scheme of one-hot rows and rotations: a query as long as the table has columns, and rings that do nothing but add, multiply by
//! what is stored, and turn.
//!
//! ```text
//!  client                                       server
//!  seed, a body for each column     ──▶   scan:    for each output, the sum over columns of ciphertext * polynomial     modulo Q, 48 bits
//!  11 KB each                                      │ output t has lane t of the picked slots, in the slot of their group
//!                                         gather:  two outputs become one where one of them is turned behind the other, level by level
//!                                   ◀──   round:   mask to 22 bits, body to 17, of the body as many coefficients as there are lanes
//! ```
//!
//! A stored polynomial has 2048 slots modulo p = 12289, a lane of 11 bits in each: slot j is a group, and has a polynomial for each
//! column and lane. A column's ciphertext is 1 in the group's slot where the column is picked and 0 wherever else, so picked columns
//! add up by themselves; four lanes add up to less than p, and count modulo 2^11. Where a table has fewer groups than there are slots, a
//! group takes several of each polynomial; where it has more, groups share a slot, in outputs of their own, and the client takes
//! its own of what comes.
//!
//! A query has 11 KB for each column: that is the class. Columns are fewer the more groups share a slot, each of which takes rotations and
//! room in the answer: [`params::groups`] weighs them. A gibibyte of 256-byte records takes 1.4 MB up, 20 KB down and 271 KB of keys.
//!
//! Sources: FastPIR (Ahmad, Yang, Agrawal, El Abbadi and Gupta 2021, section 4: Addra) for one-hot rows, columns and rotations; INSPIRE
//! (Lin and others 2022) for gathering in a tree, with a key for each level and noise that adds once. Ours: no special prime, lanes in both rows,
//! seeded bodies of 44 bits, shares and cells, the pad, and answers whose bodies have no more coefficients than lanes.

use std::sync::Arc;

use blindcore_accel::{Device, Placed};
use blindcore_rlwe::security::ESTIMATOR;

use super::scheme::{About, ClientWork, Operand, RingWork, Run, Security};
use crate::registration::{KeySet, RegisteredKeys};
use crate::schemes::rings::{Keyed, Of, SEED_BYTES, Secret};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod keys;
mod params;
mod prepare;
mod server;
#[cfg(test)]
mod tests;

pub(super) struct FastPir;

/// The scheme.
pub(super) static SCHEME: Of<FastPir> = Of(FastPir);

static ABOUT: About = About {
    name: "fastpir",
    title: "FastPIR, registered keys",
    suits: "for comparison",
    wire_id: 7,
    security: Some(Security { bits: 142.8, quantum_bits: Some(102.5), estimator: ESTIMATOR }),
    constants: params::CONSTANTS,
};

impl Keyed for FastPir {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        params::check(geometry)
    }

    fn failure_log2(&self, geometry: &Geometry) -> f64 {
        params::failure_log2(geometry)
    }

    fn query_bytes(&self, geometry: &Geometry) -> usize {
        params::query_bytes(geometry)
    }

    fn answer_bytes(&self, geometry: &Geometry) -> usize {
        params::answer_bytes(geometry)
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand> {
        params::operands(geometry)
    }

    fn outputs(&self, geometry: &Geometry) -> usize {
        let places = params::Places::new(geometry);
        places.pieces() * places.units()
    }

    fn answering(&self, geometry: &Geometry, queries: usize) -> Vec<Run> {
        params::answering(geometry, queries)
    }

    fn client_work(&self, geometry: &Geometry) -> ClientWork {
        params::client_work(geometry)
    }

    fn ring_work(&self, geometry: &Geometry) -> RingWork {
        params::ring_work(geometry)
    }

    fn groups(&self, records: u64, slot_bytes: usize, keyed: bool) -> u64 {
        params::groups(records, slot_bytes, keyed)
    }

    fn preprocess(
        &self,
        params: &Params,
        device: &Device,
        records: &dyn Placed,
        into: &mut Preprocessing<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        prepare::preprocess(params, device, records, into, progress)
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Box<dyn SchemeServer> {
        Box::new(server::FastServer::new(params, device, operands))
    }

    fn client(&self, params: &Params, seed: [u8; SEED_BYTES]) -> Client {
        Client::of(*params, client::FastClient::new(params, seed))
    }

    fn key_bytes(&self) -> usize {
        keys::public_bytes()
    }

    fn parsed_bytes(&self) -> usize {
        keys::parsed_bytes()
    }

    fn make(&self) -> Result<KeySet, Error> {
        keys::make()
    }

    fn secret(&self, seed: &[u8; SEED_BYTES]) -> Secret {
        keys::secret(seed)
    }

    fn registered(&self, bytes: &[u8]) -> Result<RegisteredKeys, String> {
        Ok(RegisteredKeys::new(keys::Registered::new(bytes)?))
    }
}
