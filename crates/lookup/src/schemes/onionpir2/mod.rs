//! The scheme with registered keys: a client registers some 1.8 MB once; then a lookup sends about 10 KB and receives about 6 KB.
//!
//! ```text
//!  client                                       server
//!  seed, one body of 40-bit words   ──▶   expand: one tree of 8 levels, with fine digits at the root         modulo Q, 50 bits
//!  10 KB                                          │ leaves: a row each of the first dimension, then three for each bit
//!                                          switch, and make factors of the bits' leaves by the key for s^2    to q, 40 bits
//!                                          scan:  for each output, the sum over rows of leaf * polynomial
//!                                          fold:  of two outputs the one that an encrypted bit says, level by level
//!                                   ◀──   round: mask to 20 bits, body to 14, of the body what the slot lies in: 6 KB
//! ```
//!
//! A stored polynomial has 2048 coefficients of 11 bits, by values modulo q in five bytes each, under a public pad. Its seed, 32
//! bytes, is all that a client is told of a table. It is drawn when the records are fixed, so that stored polynomials are uniform
//! whatever the records: leaves share errors, and data aligned with the tree would meet seven times the noise.
//!
//! No key has a special prime: keys live modulo Q, for whose 50 bits strength is counted. Sources: OnionPIR (Mughees, Chen and Ren
//! 2021) and OnionPIRv2 (Chen and Ren 2025) for the class; SealPIR (Angel and others 2018) for expansion; Onion Ring ORAM (Chen and
//! others 2019) for factors from an expansion. Ours: the scan at a smaller modulus than the tree, signed digits that are finest at the root,
//! the pad, and the answer's odd widths.

use std::sync::Arc;

use blindcore_accel::{Device, Placed, SharedBytes};
use blindcore_rlwe::security::ESTIMATOR;

use super::keeps::Keeps;
use super::scheme::{About, ClientWork, Operand, RingWork, Run, Scheme, Security};
use crate::registration::{KeySet, RegisteredKeys, Registration, SecretKeys};
use crate::schemes::rings::tree::Tree;
use crate::schemes::rings::{self, LANE_BITS, SEED_BYTES, polynomials};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod keys;
mod params;
mod server;
#[cfg(test)]
mod tests;

/// The scheme.
pub(crate) struct OnionPir2;

static ABOUT: About = About {
    name: "onionpir2",
    title: "OnionPIR, registered keys",
    suits: "for few clients with many lookups each",
    wire_id: 5,
    security: Some(Security { bits: 137.1, quantum_bits: Some(96.6), estimator: ESTIMATOR }),
    constants: params::CONSTANTS,
};

impl Scheme for OnionPir2 {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        params::check(geometry)
    }

    fn failure_log2(&self, geometry: &Geometry) -> f64 {
        params::failure_log2(geometry)
    }

    fn keeps(&self, _: &Geometry) -> Keeps {
        Keeps::RegisteredKeys { bytes: keys::public_bytes()[1] as u64, hint: SEED_BYTES as u64 }
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
        let passes = params::places(geometry).outputs as u64;
        // They are no passes of queries: what they take is the ring's work.
        vec![Run { operand: 0, queries: 0, passes }]
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
        let groups = params::groups((bytes / record_bytes as u64).max(1), record_bytes, false);
        let columns = (bytes / record_bytes as u64).max(1).div_ceil(groups) as usize;
        Geometry { record_bytes, groups: groups as usize, columns }
    }

    fn preprocess(
        &self,
        params: &Params,
        device: &Device,
        records: &dyn Placed,
        into: &mut Preprocessing<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let places = params::places(&params.geometry);
        let maker = |seed| polynomials::Worker::new(places, seed);
        rings::preprocess(params, device, records, into, progress, maker)
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(Box::new(server::OnionServer::new(params, device, operands)))
    }

    fn client(&self, params: &Params, hint: SharedBytes) -> Result<Client, Error> {
        let seed = (*hint).as_ref().try_into().expect("its length was checked");
        Ok(Client::of(*params, client::OnionClient::new(params, seed)))
    }
}

impl Registration for OnionPir2 {
    /// The tree's keys serve tables of every geometry.
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
        Ok(SecretKeys::new(Tree::get().secret(bytes.try_into().expect("its length was checked"))))
    }

    fn registered(&self, _: &Geometry, bytes: &[u8]) -> Result<RegisteredKeys, Error> {
        let keys =
            keys::Registered::new(bytes).map_err(|why| Error::KeyBytes { what: "registered keys", why })?;
        Ok(RegisteredKeys::new(keys))
    }
}
