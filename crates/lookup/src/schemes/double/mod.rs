//! DoublePIR (Henzinger et al. 2023, section 5): what is its own.
//!
//! SimplePIR's hint and answer for one group of rows are themselves rows of a matrix, so a second lookup, by
//! group, fetches the 1024 + 1 words that decode one entry. Words modulo 2^32 are looked up as four byte
//! digits. For each byte t of a record (`D_t` has one row a group):
//!
//! ```text
//!   server keeps    H_t  = digits(D_t * A1)                4 * 1024 by groups, bytes
//!   client fetches  H_t * A2                               4 * 1024 by 1024
//!   query           c1 = A1 s1 + e1 + Delta u_column       columns
//!                   c2 = A2 s2 + e2 + Delta u_group        groups
//!   answer          y_t = digits(D_t * c1)                 4 by groups, bytes
//!                   y_t * A2, H_t * c2, y_t * c2           4 by 1024 whole; 4 * 1024 and 4 shortened
//! ```

use std::sync::Arc;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Device, Placed, SharedBytes};

use super::keeps::Keeps;
use super::lwe;
use super::scheme::{About, ClientWork, Operand, Run, Scheme};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, SchemeServer};

mod client;
mod params;
mod server;

pub(crate) struct Double;

impl Scheme for Double {
    fn about(&self) -> &'static About {
        &params::ABOUT
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        params::check(geometry)
    }

    fn failure_log2(&self, geometry: &Geometry) -> f64 {
        params::failure_log2(geometry)
    }

    fn keeps(&self, geometry: &Geometry) -> Keeps {
        Keeps::Hint { bytes: params::hint_bytes(geometry) }
    }

    fn query_bytes(&self, geometry: &Geometry) -> usize {
        4 * (geometry.columns + geometry.groups)
    }

    fn answer_bytes(&self, geometry: &Geometry) -> usize {
        params::answer_bytes(geometry)
    }

    fn longer_slot_costs(&self) -> bool {
        true
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand> {
        params::operands(geometry)
    }

    fn preprocessing(&self, _: &Geometry) -> Vec<Run> {
        [params::RECORDS, params::DIGITS_OF_HINT].map(lwe::preprocessing).into()
    }

    fn answering(&self, geometry: &Geometry, queries: usize) -> Vec<Run> {
        params::answering(geometry, queries)
    }

    fn client_work(&self, geometry: &Geometry) -> ClientWork {
        params::client_work(geometry)
    }

    fn groups(&self, records: u64, slot_bytes: usize) -> u64 {
        params::groups(records, slot_bytes)
    }

    fn representative(&self, bytes: u64) -> Geometry {
        let side = (bytes as f64).sqrt() as usize;
        Geometry { record_bytes: 1, groups: side.max(1), columns: side.max(1) }
    }

    fn preprocessing_shape(&self, params: &Params, memory: u64) -> Shape {
        lwe::preprocessing_shape(params, memory)
    }

    fn preprocess(
        &self,
        params: &Params,
        device: &Device,
        records: &dyn Placed,
        into: &mut Preprocessing<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        server::preprocess(params, device, records, into, progress)
    }

    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(Box::new(server::DoubleServer::new(params, device, operands)?))
    }

    fn client(&self, params: &Params, hint: SharedBytes) -> Result<Client, Error> {
        Ok(Client::of(*params, client::DoubleClient { params: *params, hint: lwe::Hint::new(hint) }))
    }
}
