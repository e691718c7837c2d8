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

use blindcore_accel::{Device, Placed, SharedBytes};

use super::keeps::Keeps;
use super::scheme::{About, ClientWork, Operand, RingWork, Run, Scheme, SchemeRef};
use crate::registration::{KeySet, RegisteredKeys, Registration, SecretKeys};
use crate::schemes::rings::{self, SEED_BYTES};
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
pub(crate) struct OnionPir(&'static Set);

pub(crate) static CLASSICAL: OnionPir = OnionPir(&params::CLASSICAL);

static PUBLISHED: OnionPir = OnionPir(&params::PUBLISHED);

/// Leave to use the scheme `onionpir-2021`: OnionPIR with the sizes that were published, of which 109 bits of strength are left. For
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

impl Scheme for OnionPir {
    fn about(&self) -> &'static About {
        &self.0.about
    }

    fn for_comparison(&self) -> bool {
        true
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        params::check(&self.0.sizes, geometry)
    }

    fn failure_log2(&self, geometry: &Geometry) -> f64 {
        params::failure_log2(self.0, geometry)
    }

    fn keeps(&self, _: &Geometry) -> Keeps {
        Keeps::RegisteredKeys { bytes: keys::public_bytes(self.0)[1] as u64, hint: SEED_BYTES as u64 }
    }

    fn registration(&self) -> Option<&dyn Registration> {
        Some(self)
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

    fn preprocessing(&self, geometry: &Geometry) -> Vec<Run> {
        let passes = Places::new(&self.0.sizes, geometry).outputs as u64;
        // They are no passes of queries: what they take is the ring's work.
        vec![Run { operand: 0, queries: 0, passes }]
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

    fn groups(&self, records: u64, slot_bytes: usize) -> u64 {
        params::groups(&self.0.sizes, records, slot_bytes, false)
    }

    fn groups_by_key(&self, records: u64, slot_bytes: usize) -> u64 {
        params::groups(&self.0.sizes, records, slot_bytes, true)
    }

    fn representative(&self, bytes: u64) -> Geometry {
        let record_bytes = (bytes as usize).clamp(1, 256);
        let records = (bytes / record_bytes as u64).max(1);
        let groups = self.groups(records, record_bytes);
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
        let places = Places::new(&self.0.sizes, &params.geometry);
        let maker = |seed| prepare::Worker::new(self.0, places, seed);
        rings::preprocess(params, device, records, into, progress, maker)
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(Box::new(server::OnionServer::new(self.0, params, device, operands)))
    }

    fn client(&self, params: &Params, hint: SharedBytes) -> Result<Client, Error> {
        let seed = (*hint).as_ref().try_into().expect("its length was checked");
        Ok(Client::of(*params, client::OnionClient::new(self.0, params, seed)))
    }
}

impl Registration for OnionPir {
    /// The tree's keys serve tables of every geometry.
    fn shape(&self, _: &Geometry) -> Vec<u64> {
        Vec::new()
    }

    fn secret_bytes(&self, _: &Geometry) -> usize {
        SEED_BYTES
    }

    fn parsed_bytes(&self, _: &Geometry) -> usize {
        keys::parsed_bytes(self.0)
    }

    fn make(&self, _: &Geometry) -> Result<KeySet, Error> {
        keys::make(self.0)
    }

    fn secret(&self, _: &Geometry, bytes: &[u8]) -> Result<SecretKeys, Error> {
        Ok(SecretKeys::new(keys::secret(self.0, bytes.try_into().expect("its length was checked"))))
    }

    fn registered(&self, _: &Geometry, bytes: &[u8]) -> Result<RegisteredKeys, Error> {
        let keys = keys::Registered::new(self.0, bytes)
            .map_err(|why| Error::KeyBytes { what: "registered keys", why })?;
        Ok(RegisteredKeys::new(keys))
    }
}
