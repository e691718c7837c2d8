//! SealPIR with registered keys: a client registers some 1.7 MB once; then a lookup in a gibibyte sends about 52 KB and receives about
//! 23 KB.
//!
//! ```text
//!  client                                      server
//!  seed, bodies of 40-bit words     ──▶   expand: a tree of 8 levels for each ciphertext, of 256 leaves     modulo Q, 50 bits
//!  10 KB for each 256 leaves                      │ leaves: a row each of the first dimension, then an output each of the second
//!                                          switch                                                            to q, 40 bits
//!                                          first:  for each output, the sum over rows of leaf * polynomial
//!                                          digits: round this to 20 bits, of the body what the slot lies in; cut into 10 and 10
//!                                          second: for each of 3 or 4 pieces, the sum over outputs of leaf * digits
//!                                   ◀──   round:  masks to 19 bits, bodies to 13: up to 8 KB a piece
//!  decrypt the pieces, put the result of one output together, and decrypt that
//! ```
//!
//! The second dimension's plaintexts are the first one's ciphertexts, so nobody multiplies ciphertexts, and no key for s^2 is
//! registered. A result is rounded as an answer would be, to some 49,000 bits, before it is taken apart: it then takes three
//! plaintexts of 2048 coefficients of ten bits, or four where slots are longer than half a polynomial.
//!
//! Stored polynomials, their public pad, places of slots and the tree are `onionpir2`'s. Sources: Angel, Chen, Laine and Setty 2018
//! (SealPIR), section 3, for compressed queries, their oblivious expansion (Figure 3) and two dimensions; Stern 1998 for ciphertexts as
//! plaintexts. Ours: no special prime, rounding before results are taken apart, and one list of leaves for both dimensions.

use std::sync::Arc;

use blindcore_accel::{Device, Placed};
use blindcore_rlwe::security::ESTIMATOR;

use super::scheme::{About, ClientWork, Operand, RingWork, Run, Security};
use crate::registration::{KeySet, RegisteredKeys};
use crate::schemes::rings::tree::Tree;
use crate::schemes::rings::{self, Keyed, Of, SEED_BYTES, Secret, polynomials};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod params;
mod server;
#[cfg(test)]
mod tests;

pub(super) struct SealPir;

/// The scheme.
pub(super) static SCHEME: Of<SealPir> = Of(SealPir);

static ABOUT: About = About {
    name: "sealpir",
    title: "SealPIR, registered keys",
    suits: "for comparison",
    wire_id: 6,
    security: Some(Security { bits: 137.1, quantum_bits: Some(96.6), estimator: ESTIMATOR }),
    constants: params::CONSTANTS,
};

impl Keyed for SealPir {
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
        Box::new(server::SealServer::new(params, device, operands))
    }

    fn client(&self, params: &Params, seed: [u8; SEED_BYTES]) -> Client {
        Client::of(*params, client::SealClient::new(params, seed))
    }

    fn key_bytes(&self) -> usize {
        Tree::get().key_bytes()
    }

    fn parsed_bytes(&self) -> usize {
        Tree::get().parsed_bytes(0)
    }

    fn make(&self) -> Result<KeySet, Error> {
        Tree::get().make(|_, _| Vec::new())
    }

    fn secret(&self, seed: &[u8; SEED_BYTES]) -> Secret {
        Tree::get().secret(seed)
    }

    fn registered(&self, bytes: &[u8]) -> Result<RegisteredKeys, String> {
        Ok(RegisteredKeys::new(Tree::get().read_keys(bytes)?))
    }
}
