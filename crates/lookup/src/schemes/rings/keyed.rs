//! A scheme of OnionPIR's field: what is its own ([`Keyed`]), and what all of them answer alike ([`Of`]).

use std::sync::Arc;

use blindcore_accel::{Device, Placed, SharedBytes};

use super::{LANE_BITS, SEED_BYTES, Secret};
use crate::registration::{KeySet, RegisteredKeys, Registration, SecretKeys};
use crate::schemes::keeps::Keeps;
use crate::schemes::scheme::{About, ClientWork, Operand, RingWork, Run, Scheme};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

/// What such a scheme says of itself: as [`Scheme`] asks, but for what follows from registered keys and a seed of pads as the hint.
pub(in crate::schemes) trait Keyed: Send + Sync {
    fn about(&self) -> &'static About;

    fn for_comparison(&self) -> bool {
        true
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Error>;

    fn failure_log2(&self, geometry: &Geometry) -> f64;

    fn query_bytes(&self, geometry: &Geometry) -> usize;

    fn answer_bytes(&self, geometry: &Geometry) -> usize;

    fn lane_bits(&self) -> u32 {
        LANE_BITS
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand>;

    /// Outputs that preprocessing makes, one after another.
    fn outputs(&self, geometry: &Geometry) -> usize;

    fn answering(&self, geometry: &Geometry, queries: usize) -> Vec<Run>;

    fn client_work(&self, geometry: &Geometry) -> ClientWork;

    fn ring_work(&self, geometry: &Geometry) -> RingWork;

    /// For records that are found by key or by number.
    fn groups(&self, records: u64, slot_bytes: usize, keyed: bool) -> u64;

    fn preprocess(
        &self,
        params: &Params,
        device: &Device,
        records: &dyn Placed,
        into: &mut Preprocessing<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), Error>;

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Box<dyn SchemeServer>;

    /// From the seed of the pads.
    fn client(&self, params: &Params, seed: [u8; SEED_BYTES]) -> Client;

    /// Bytes of the keys that a client registers.
    fn key_bytes(&self) -> usize;

    /// Bytes of memory that they take.
    fn parsed_bytes(&self) -> usize;

    /// A secret, and its keys.
    fn make(&self) -> Result<KeySet, Error>;

    /// The secret that a seed stands for.
    fn secret(&self, seed: &[u8; SEED_BYTES]) -> Secret;

    /// What a stranger registers, or what is wrong with it.
    fn registered(&self, bytes: &[u8]) -> Result<RegisteredKeys, String>;
}

/// The scheme that it makes.
pub(in crate::schemes) struct Of<T>(pub(in crate::schemes) T);

impl<T: Keyed> Scheme for Of<T> {
    fn about(&self) -> &'static About {
        self.0.about()
    }

    fn for_comparison(&self) -> bool {
        self.0.for_comparison()
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        self.0.check(geometry)
    }

    fn failure_log2(&self, geometry: &Geometry) -> f64 {
        self.0.failure_log2(geometry)
    }

    fn keeps(&self, _: &Geometry) -> Keeps {
        Keeps::RegisteredKeys { bytes: self.0.key_bytes() as u64, hint: SEED_BYTES as u64 }
    }

    fn registration(&self) -> Option<&dyn Registration> {
        Some(self)
    }

    fn query_bytes(&self, geometry: &Geometry) -> usize {
        self.0.query_bytes(geometry)
    }

    fn answer_bytes(&self, geometry: &Geometry) -> usize {
        self.0.answer_bytes(geometry)
    }

    fn lane_bits(&self) -> u32 {
        self.0.lane_bits()
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand> {
        self.0.operands(geometry)
    }

    fn preprocessing(&self, geometry: &Geometry) -> Vec<Run> {
        // They are no passes of queries: what they take is the ring's work.
        vec![Run { operand: 0, queries: 0, passes: self.0.outputs(geometry) as u64 }]
    }

    fn answering(&self, geometry: &Geometry, queries: usize) -> Vec<Run> {
        self.0.answering(geometry, queries)
    }

    fn client_work(&self, geometry: &Geometry) -> ClientWork {
        self.0.client_work(geometry)
    }

    fn ring_work(&self, geometry: &Geometry) -> RingWork {
        self.0.ring_work(geometry)
    }

    fn groups(&self, records: u64, slot_bytes: usize) -> u64 {
        self.0.groups(records, slot_bytes, false)
    }

    /// What is kept is as long for every geometry.
    fn groups_by_key(&self, records: u64, slot_bytes: usize, _: usize) -> u64 {
        self.0.groups(records, slot_bytes, true)
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
        self.0.preprocess(params, device, records, into, progress)
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(self.0.server(params, device, operands))
    }

    fn client(&self, params: &Params, hint: SharedBytes) -> Result<Client, Error> {
        Ok(self.0.client(params, (*hint).as_ref().try_into().expect("its length was checked")))
    }
}

impl<T: Keyed> Registration for Of<T> {
    /// Keys serve tables of every geometry.
    fn shape(&self, _: &Geometry) -> Vec<u64> {
        Vec::new()
    }

    fn secret_bytes(&self, _: &Geometry) -> usize {
        SEED_BYTES
    }

    fn parsed_bytes(&self, _: &Geometry) -> usize {
        self.0.parsed_bytes()
    }

    fn make(&self, _: &Geometry) -> Result<KeySet, Error> {
        self.0.make()
    }

    fn secret(&self, _: &Geometry, bytes: &[u8]) -> Result<SecretKeys, Error> {
        Ok(SecretKeys::new(self.0.secret(bytes.try_into().expect("its length was checked"))))
    }

    fn registered(&self, _: &Geometry, bytes: &[u8]) -> Result<RegisteredKeys, Error> {
        self.0.registered(bytes).map_err(|why| Error::KeyBytes { what: "registered keys", why })
    }
}
