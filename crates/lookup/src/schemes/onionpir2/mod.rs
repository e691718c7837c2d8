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

use blindcore_accel::{Device, Placed};
use blindcore_rlwe::security::ESTIMATOR;

use super::scheme::{About, ClientWork, Operand, RingWork, Run, Security};
use crate::registration::{KeySet, RegisteredKeys};
use crate::schemes::rings::tree::Tree;
use crate::schemes::rings::{self, Keyed, Of, SEED_BYTES, Secret, polynomials};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod keys;
mod params;
mod server;
#[cfg(test)]
mod tests;

pub(super) struct OnionPir2;

/// The scheme.
pub(super) static SCHEME: Of<OnionPir2> = Of(OnionPir2);

static ABOUT: About = About {
    name: "onionpir2",
    title: "OnionPIR, registered keys",
    suits: "for few clients with many lookups each",
    wire_id: 5,
    security: Some(Security { bits: 137.1, quantum_bits: Some(96.6), estimator: ESTIMATOR }),
    constants: params::CONSTANTS,
};

impl Keyed for OnionPir2 {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn for_comparison(&self) -> bool {
        false
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
        params::places(geometry).outputs
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
        let places = params::places(&params.geometry);
        let maker = |seed| polynomials::Worker::new(places, seed);
        rings::preprocess(params, device, records, into, progress, maker)
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Box<dyn SchemeServer> {
        Box::new(server::OnionServer::new(params, device, operands))
    }

    fn client(&self, params: &Params, seed: [u8; SEED_BYTES]) -> Client {
        Client::of(*params, client::OnionClient::new(params, seed))
    }

    fn key_bytes(&self) -> usize {
        keys::public_bytes()[1]
    }

    fn parsed_bytes(&self) -> usize {
        keys::parsed_bytes()
    }

    fn make(&self) -> Result<KeySet, Error> {
        keys::make()
    }

    fn secret(&self, seed: &[u8; SEED_BYTES]) -> Secret {
        Tree::get().secret(seed)
    }

    fn registered(&self, bytes: &[u8]) -> Result<RegisteredKeys, String> {
        Ok(RegisteredKeys::new(keys::Registered::new(bytes)?))
    }
}
