//! OnionPIR as published (Mughees, Chen and Ren 2021), at 128 bits: for comparison.
//!
//! ```text
//!  client                                       server
//!  seed, one body modulo q          ──▶   expand: one tree of up to 9 levels                              modulo Q, 104 bits
//!  23 KB                                          │ leaves: a row each of the first dimension, up to 256,
//!                                                 │         then two for each factor of a later dimension
//!                                          drop a prime; make factors of their leaves by the key for s^2  to q, two primes of 40 bits
//!                                          first dimension:   for each output, the sum over rows of leaf * polynomial
//!                                          later dimensions:  of four outputs one, by external products, level by level
//!                                   ◀──   round: to one prime, then the mask to 39 bits, the body to 35, of it what the slot lies in
//!  20 KB
//! ```
//!
//! As published: degree 4096, residues modulo two primes, 256 rows and then dimensions of four, a query of one ciphertext, factors made from an
//! expansion, one ciphertext down. Three of the four factors of a dimension are sent: the four sum to one.
//!
//! Not as published: keys have no special prime, and every modulus that they live under has 128 bits; the modulus is smaller and lanes are 30 bits
//! instead of 60, so that a plaintext need not be split in two; stored polynomials are under a public pad, whose seed, 32 bytes, is all that a
//! client is told of a table, so that noise is the average's whatever the records; the answer leaves modulo one prime.
//!
//! The published sizes stay as [`InsecureOnionPir2021`], with split plaintexts: for measurements. Sources beside the paper: SealPIR (Angel and
//! others 2018) for expansion; Onion Ring ORAM (Chen and others 2019) for factors from an expansion.

use std::sync::Arc;

use blindcore_accel::{Device, Placed};

use super::scheme::{About, ClientWork, Operand, RingWork, Run, SchemeRef};
use crate::registration::{KeySet, RegisteredKeys};
use crate::schemes::rings::{self, Keyed, Of, SEED_BYTES, Secret};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod keys;
mod params;
mod prepare;
mod server;
#[cfg(test)]
mod tests;

use params::{Places, Set};

/// The scheme by one of its sets of parameters.
pub(super) struct OnionPir(&'static Set);

pub(super) static CLASSICAL: Of<OnionPir> = Of(OnionPir(&params::CLASSICAL));

static PUBLISHED: Of<OnionPir> = Of(OnionPir(&params::PUBLISHED));

/// Leave to use the scheme `onionpir-2021`: OnionPIR with the sizes that were published, of which 111 bits of strength are left. For
/// measurements.
///
/// No build knows it before it is asked for here, and it is never offered: a table of it is refused by name.
///
/// ```
/// use blindcore_lookup::{InsecureOnionPir2021, schemes};
///
/// let published = InsecureOnionPir2021::for_measurements().scheme();
/// assert!(published.about().security.is_none() && !schemes::offered().contains(&published));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InsecureOnionPir2021(SchemeRef);

impl InsecureOnionPir2021 {
    /// Has this process know the scheme.
    #[must_use]
    pub fn for_measurements() -> Self {
        Self(super::register(&PUBLISHED).expect("its name and number are its own"))
    }

    /// The scheme.
    #[must_use]
    pub fn scheme(self) -> SchemeRef {
        self.0
    }
}

impl Keyed for OnionPir {
    fn about(&self) -> &'static About {
        &self.0.about
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        params::check(&self.0.sizes, geometry)
    }

    fn failure_log2(&self, geometry: &Geometry) -> f64 {
        params::failure_log2(self.0, geometry)
    }

    fn query_bytes(&self, geometry: &Geometry) -> usize {
        params::query_bytes(&self.0.sizes, geometry)
    }

    fn answer_bytes(&self, geometry: &Geometry) -> usize {
        params::answer_bytes(&self.0.sizes, geometry)
    }

    fn lane_bits(&self) -> u32 {
        self.0.sizes.lane_bits
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand> {
        params::operands(self.0, geometry)
    }

    fn outputs(&self, geometry: &Geometry) -> usize {
        Places::new(&self.0.sizes, geometry).outputs
    }

    fn answering(&self, geometry: &Geometry, queries: usize) -> Vec<Run> {
        params::answering(&self.0.sizes, geometry, queries)
    }

    fn client_work(&self, geometry: &Geometry) -> ClientWork {
        params::client_work(&self.0.sizes, geometry)
    }

    fn ring_work(&self, geometry: &Geometry) -> RingWork {
        params::ring_work(&self.0.sizes, geometry)
    }

    fn groups(&self, records: u64, slot_bytes: usize, keyed: bool) -> u64 {
        params::groups(&self.0.sizes, records, slot_bytes, keyed)
    }

    fn preprocess(
        &self,
        params: &Params,
        device: &Device,
        records: &dyn Placed,
        into: &mut Preprocessing<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let places = Places::new(&self.0.sizes, &params.geometry);
        let maker = |seed| prepare::Worker::new(self.0, places, seed);
        rings::preprocess(params, device, records, into, progress, maker)
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Box<dyn SchemeServer> {
        Box::new(server::OnionServer::new(self.0, params, device, operands))
    }

    fn client(&self, params: &Params, seed: [u8; SEED_BYTES]) -> Client {
        Client::of(*params, client::OnionClient::new(self.0, params, seed))
    }

    fn key_bytes(&self) -> usize {
        keys::public_bytes(self.0)[1]
    }

    fn parsed_bytes(&self) -> usize {
        keys::parsed_bytes(self.0)
    }

    fn make(&self) -> Result<KeySet, Error> {
        keys::make(self.0)
    }

    fn secret(&self, seed: &[u8; SEED_BYTES]) -> Secret {
        keys::secret(self.0, seed)
    }

    fn registered(&self, bytes: &[u8]) -> Result<RegisteredKeys, String> {
        Ok(RegisteredKeys::new(keys::Registered::new(self.0, bytes)?))
    }
}
