//! The scheme that multiplies ciphertexts: two dimensions, of which the second is picked by products.
//!
//! ```text
//!  client                                       server
//!  seed, bodies                     ──▶   expand:   a tree of up to 10 levels for each ciphertext               modulo Q, 2 x 48 bits
//!  up to 37 KB                                   │   leaves: one for each row, then one for each output
//!                                         scan:     for each output, the sum over rows of leaf * polynomial
//!                                         multiply: the sum over outputs of leaf * what the scan gave: tensor products modulo Q and
//!                                                   three further primes, scaled down and relinearised once
//!                                   ◀──   switch:   to one prime; round: mask to 20 bits, body to 14, of the body what the slot
//!  11 to 12 KB                                      lies in
//! ```
//!
//! A stored polynomial has 4096 coefficients of 11 bits, by values modulo both primes in six bytes each, under a public pad
//! as in `onionpir2`. Each output of the scan is a ciphertext of a polynomial that is picked from its column, and one of them is picked
//! by the second dimension. The message's modulus p = 2^11 is not a prime, for nothing here takes slots.
//!
//! No key has a special prime: all live modulo Q, for whose 96 bits strength is counted. Source: MulPIR (Ali, Lepoint, Patel,
//! Raykova, Schoppmann, Seth and Yeo 2021: symmetric queries under a seed, expansion, products, modulus switching); SealPIR (Angel
//! and others 2018) for expansion; Fan and Vercauteren 2012 for products. Ours: sums of products that are scaled and relinearised
//! once, signed digits that are finest at the root, the pad, and the answer's odd widths.

use std::sync::Arc;

use blindcore_accel::{Device, Placed};
use blindcore_rlwe::security::ESTIMATOR;

use super::scheme::{About, ClientWork, Operand, RingWork, Run, Security};
use crate::registration::{KeySet, RegisteredKeys};
use crate::schemes::rings::polynomials::Worker;
use crate::schemes::rings::{self, Keyed, Of, SEED_BYTES, Secret};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod keys;
mod params;
mod server;
#[cfg(test)]
mod tests;

pub(super) struct MulPir;

/// The scheme.
pub(super) static SCHEME: Of<MulPir> = Of(MulPir);

static ABOUT: About = About {
    name: "mulpir",
    title: "MulPIR, registered keys",
    suits: "for comparison",
    wire_id: 8,
    security: Some(Security { bits: 143.4, quantum_bits: Some(101.3), estimator: ESTIMATOR }),
    constants: params::CONSTANTS,
};

impl Keyed for MulPir {
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
        let ring = params::Rings::get().large();
        let maker = |seed| Worker::within(ring, places, seed);
        rings::preprocess(params, device, records, into, progress, maker)
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Box<dyn SchemeServer> {
        Box::new(server::MulServer::new(params, device, operands))
    }

    fn client(&self, params: &Params, seed: [u8; SEED_BYTES]) -> Client {
        Client::of(*params, client::MulClient::new(params, seed))
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
        keys::secret(seed)
    }

    fn registered(&self, bytes: &[u8]) -> Result<RegisteredKeys, String> {
        Ok(RegisteredKeys::new(keys::Registered::new(bytes)?))
    }
}
