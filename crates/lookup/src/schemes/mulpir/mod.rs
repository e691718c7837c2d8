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
//! by the second dimension. The message's modulus p = 2^11 is no prime: nothing here takes slots.
//!
//! No key has a special prime: all live modulo Q, for whose 96 bits strength is counted. Source: MulPIR (Ali, Lepoint, Patel,
//! Raykova, Schoppmann, Seth and Yeo 2021: symmetric queries under a seed, expansion, products, modulus switching); SealPIR (Angel
//! and others 2018) for expansion; Fan and Vercauteren 2012 for products. Ours: sums of products that are scaled and relinearised
//! once, signed digits that are finest at the root, the pad, and the answer's odd widths.

use std::sync::Arc;

use blindcore_accel::{Device, Placed, SharedBytes};
use blindcore_rlwe::security::ESTIMATOR;

use super::keeps::Keeps;
use super::scheme::{About, ClientWork, Operand, RingWork, Run, Scheme, Security};
use crate::registration::{KeySet, RegisteredKeys, Registration, SecretKeys};
use crate::schemes::rings::polynomials::Worker;
use crate::schemes::rings::{self, LANE_BITS, SEED_BYTES};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod keys;
mod params;
mod server;
#[cfg(test)]
mod tests;

/// The scheme.
pub(crate) struct MulPir;

static ABOUT: About = About {
    name: "mulpir",
    title: "MulPIR, registered keys",
    suits: "for comparison",
    wire_id: 8,
    security: Some(Security { bits: 131.5, quantum_bits: Some(90.2), estimator: ESTIMATOR }),
    constants: params::CONSTANTS,
};

impl Scheme for MulPir {
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
        let ring = params::Rings::get().large();
        let maker = |seed| Worker::within(ring, params::STORED, places, seed);
        rings::preprocess(params, device, records, into, progress, maker)
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(Box::new(server::MulServer::new(params, device, operands)))
    }

    fn client(&self, params: &Params, hint: SharedBytes) -> Result<Client, Error> {
        let seed = (*hint).as_ref().try_into().expect("its length was checked");
        Ok(Client::of(*params, client::MulClient::new(params, seed)))
    }
}

impl Registration for MulPir {
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
        Ok(SecretKeys::new(keys::secret(bytes.try_into().expect("its length was checked"))))
    }

    fn registered(&self, _: &Geometry, bytes: &[u8]) -> Result<RegisteredKeys, Error> {
        let keys =
            keys::Registered::new(bytes).map_err(|why| Error::KeyBytes { what: "registered keys", why })?;
        Ok(RegisteredKeys::new(keys))
    }
}
