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

use blindcore_accel::{Device, Placed, SharedBytes};
use blindcore_rlwe::security::ESTIMATOR;

use super::keeps::Keeps;
use super::scheme::{About, ClientWork, Operand, RingWork, Run, Scheme, Security};
use crate::registration::{KeySet, RegisteredKeys, Registration, SecretKeys};
use crate::schemes::rings::{LANE_BITS, SEED_BYTES};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod keys;
mod params;
mod prepare;
mod server;
#[cfg(test)]
mod tests;

/// The scheme.
pub(crate) struct FastPir;

static ABOUT: About = About {
    name: "fastpir",
    title: "FastPIR, registered keys",
    suits: "for comparison",
    wire_id: 7,
    security: Some(Security { bits: 142.8, quantum_bits: Some(102.5), estimator: ESTIMATOR }),
    constants: params::CONSTANTS,
};

impl Scheme for FastPir {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn for_comparison(&self) -> bool {
        true
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        params::check(geometry)
    }

    fn failure_log2(&self, geometry: &Geometry) -> f64 {
        params::failure_log2(geometry)
    }

    fn keeps(&self, _: &Geometry) -> Keeps {
        Keeps::RegisteredKeys { bytes: keys::public_bytes() as u64, hint: SEED_BYTES as u64 }
    }

    fn registration(&self) -> Option<&dyn Registration> {
        Some(self)
    }

    fn query_bytes(&self, geometry: &Geometry) -> usize {
        params::query_bytes(geometry)
    }

    fn answer_bytes(&self, geometry: &Geometry) -> usize {
        params::answer_bytes(geometry)
    }

    fn lane_bits(&self) -> u32 {
        LANE_BITS
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand> {
        params::operands(geometry)
    }

    fn preprocessing(&self, geometry: &Geometry) -> Vec<Run> {
        let places = params::Places::new(geometry);
        // They are no passes of queries: what they take is the ring's work.
        vec![Run { operand: 0, queries: 0, passes: (places.pieces() * places.units()) as u64 }]
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

    fn groups(&self, records: u64, slot_bytes: usize) -> u64 {
        params::groups(records, slot_bytes, false)
    }

    fn groups_by_key(&self, records: u64, slot_bytes: usize) -> u64 {
        params::groups(records, slot_bytes, true)
    }

    fn representative(&self, bytes: u64) -> Geometry {
        let record_bytes = (bytes as usize).clamp(1, 256);
        let records = (bytes / record_bytes as u64).max(1);
        let groups = params::groups(records, record_bytes, false);
        Geometry { record_bytes, groups: groups as usize, columns: records.div_ceil(groups) as usize }
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
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(Box::new(server::FastServer::new(params, device, operands)))
    }

    fn client(&self, params: &Params, hint: SharedBytes) -> Result<Client, Error> {
        let seed = (*hint).as_ref().try_into().expect("its length was checked");
        Ok(Client::of(*params, client::FastClient::new(params, seed)))
    }
}

impl Registration for FastPir {
    /// The same turns serve tables of every geometry.
    fn shape(&self, _: &Geometry) -> Vec<u64> {
        Vec::new()
    }

    fn secret_bytes(&self, _: &Geometry) -> usize {
        SEED_BYTES
    }

    fn parsed_bytes(&self, _: &Geometry) -> usize {
        keys::parsed_bytes()
    }

    fn make(&self, _: &Geometry) -> Result<KeySet, Error> {
        keys::make()
    }

    fn secret(&self, _: &Geometry, bytes: &[u8]) -> Result<SecretKeys, Error> {
        Ok(SecretKeys::new(keys::secret(bytes.try_into().expect("its length was checked"))))
    }

    fn registered(&self, _: &Geometry, bytes: &[u8]) -> Result<RegisteredKeys, Error> {
        let keys =
            keys::Registered::new(bytes).map_err(|why| Error::KeyBytes { what: "registered keys", why })?;
        Ok(RegisteredKeys::new(keys))
    }
}
