//! No cryptography: a query says in the clear which columns and which group are wanted.
//!
//! Everything else is as with other schemes: the server multiplies the matrix of records by the columns that were picked, on
//! its device, and gathers queries. So whatever stores, serves, asks for and checks tables is tested in no time. A second scheme,
//! `plain-registered`, is the same under keys that a client registers.

use std::sync::Arc;

use blindcore_accel::{Device, Placed, SharedBytes};

use super::keeps::Keeps;
use super::matrix;
use super::scheme::{About, ClientWork, Operand, Origin, Run, Scheme, SchemeRef};
use crate::{Client, Error, Geometry, Params, Preprocessing, Progress, Registration, SchemeServer};

mod client;
mod keys;
mod server;

const ABOUT: About = About {
    name: "plain",
    title: "plain text, insecure",
    suits: "for tests",
    wire_id: 999,
    security: None,
    constants: &[],
};
/// The same under registered keys.
const REGISTERED: About = About {
    name: "plain-registered",
    title: "plain text under registered keys, insecure",
    wire_id: 998,
    ..ABOUT
};
/// Columns that a query picks, at most, each a 32-bit number; then the group.
const PICKED: usize = crate::keyword::ARITY;
/// No column.
const NONE: u32 = u32::MAX;

/// Leave to use the scheme `plain` or `plain-registered`, which hide nothing: for tests.
///
/// No build knows either before a test asks for it here, and none is ever offered: a table of it is refused by name.
///
/// ```
/// use blindcore_lookup::{InsecurePlain, schemes};
///
/// let schemes = [InsecurePlain::for_tests().scheme(), InsecurePlain::registered_for_tests().scheme()];
/// assert!(schemes.iter().all(|scheme| !schemes::offered().contains(scheme)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InsecurePlain(SchemeRef);

impl InsecurePlain {
    /// Has this process know the scheme.
    #[must_use]
    pub fn for_tests() -> Self {
        Self(super::register(&PLAIN).expect("its name and number are its own"))
    }

    /// Has this process know the scheme whose queries are under registered keys.
    #[must_use]
    pub fn registered_for_tests() -> Self {
        Self(super::register(&PLAIN_REGISTERED).expect("its name and number are its own"))
    }

    /// The scheme.
    #[must_use]
    pub fn scheme(self) -> SchemeRef {
        self.0
    }
}

struct Plain {
    about: &'static About,
    /// How keys are made and read, where queries are under some.
    registration: Option<keys::PlainRegistration>,
}

static PLAIN: Plain = Plain { about: &ABOUT, registration: None };
static PLAIN_REGISTERED: Plain = Plain { about: &REGISTERED, registration: Some(keys::PlainRegistration) };

impl Scheme for Plain {
    fn about(&self) -> &'static About {
        self.about
    }

    fn failure_log2(&self, _: &Geometry) -> f64 {
        f64::INFINITY
    }

    fn keeps(&self, _: &Geometry) -> Keeps {
        match self.registration {
            None => Keeps::Nothing,
            Some(_) => Keeps::RegisteredKeys { bytes: keys::PUBLIC as u64, hint: 0 },
        }
    }

    fn registration(&self) -> Option<&dyn Registration> {
        self.registration.as_ref().map(|registration| registration as &dyn Registration)
    }

    fn query_bytes(&self, _: &Geometry) -> usize {
        4 * (PICKED + 1)
    }

    fn answer_bytes(&self, geometry: &Geometry) -> usize {
        geometry.record_bytes
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand> {
        vec![matrix::operand("records", geometry.rows(), geometry.columns, Origin::Slots)]
    }

    fn preprocessing(&self, _: &Geometry) -> Vec<Run> {
        Vec::new()
    }

    fn answering(&self, _: &Geometry, queries: usize) -> Vec<Run> {
        vec![Run { operand: 0, queries, passes: 1 }]
    }

    fn client_work(&self, geometry: &Geometry) -> ClientWork {
        ClientWork { masked: 0, products: 0, decoded: geometry.record_bytes }
    }

    fn groups(&self, records: u64, slot_bytes: usize) -> u64 {
        ((records as f64 / slot_bytes as f64).sqrt().round() as u64).max(1)
    }

    fn preprocess(
        &self,
        _: &Params,
        _: &Device,
        _: &dyn Placed,
        _: &mut Preprocessing<'_>,
        _: &mut dyn Progress,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn server(
        &self,
        params: &Params,
        _: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(Box::new(server::PlainServer::new(*params, operands)))
    }

    fn client(&self, params: &Params, _: SharedBytes) -> Result<Client, Error> {
        Ok(match self.registration {
            None => Client::of(*params, client::PlainClient),
            Some(_) => Client::of(*params, client::RegisteredClient),
        })
    }
}
