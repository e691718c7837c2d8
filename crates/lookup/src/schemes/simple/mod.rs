//! SimplePIR (Henzinger et al. 2023, section 4).
//!
//! ```text
//!   hint   H   = D * A                       rows by 1024, mod 2^32
//!   query  c   = A * s + e + Delta * u       columns
//!   answer a   = D * c                       rows, upper 16 bits sent
//!   decode     round((a - H * s - 128 * sum(e)) / Delta)
//! ```
//!
//! D's bytes go in as 0 to 255. Noise is bounded as if they were -128 to 127: the client knows its errors and
//! takes off the 128 * sum(e) that makes the difference.

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

pub(crate) struct Simple;

impl Scheme for Simple {
    fn about(&self) -> &'static About {
        &params::ABOUT
    }

    fn failure_log2(&self, geometry: &Geometry) -> f64 {
        -lwe::failure_log2(geometry.record_bytes as f64, geometry.columns, lwe::SHORT_MARGIN)
    }

    fn keeps(&self, geometry: &Geometry) -> Keeps {
        Keeps::Hint { bytes: params::hint_bytes(geometry) }
    }

    fn query_bytes(&self, geometry: &Geometry) -> usize {
        4 * geometry.columns
    }

    fn answer_bytes(&self, geometry: &Geometry) -> usize {
        2 * geometry.rows()
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand> {
        params::operands(geometry)
    }

    fn preprocessing(&self, _: &Geometry) -> Vec<Run> {
        vec![lwe::preprocessing(params::RECORDS)]
    }

    fn answering(&self, _: &Geometry, queries: usize) -> Vec<Run> {
        vec![Run { operand: params::RECORDS, queries, passes: 1 }]
    }

    fn client_work(&self, geometry: &Geometry) -> ClientWork {
        let rows = geometry.rows();
        ClientWork { masked: geometry.columns, products: rows, decoded: 2 * rows }
    }

    fn groups(&self, records: u64, slot_bytes: usize) -> u64 {
        params::groups(records, slot_bytes)
    }

    fn preprocessing_shape(&self, params: &Params, memory: u64) -> Shape {
        lwe::preprocessing_shape(params, memory)
    }

    fn preprocess(
        &self,
        params: &Params,
        _: &Device,
        records: &dyn Placed,
        into: &mut Preprocessing<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        server::preprocess(params, records, into, progress)
    }

    fn server(
        &self,
        _: &Params,
        _: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(Box::new(server::SimpleServer::new(operands)))
    }

    fn client(&self, params: &Params, hint: SharedBytes) -> Result<Client, Error> {
        Ok(Client::of(*params, client::SimpleClient { params: *params, hint: lwe::Hint::new(hint) }))
    }
}
