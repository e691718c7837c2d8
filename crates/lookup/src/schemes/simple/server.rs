//! SimplePIR's server.

use std::sync::Arc;

use blindcore_accel::{Cost, Placed};

use crate::schemes::lwe::{self, Passes, shorten};
use crate::schemes::matrix;
use crate::{Error, Params, Preprocessing, Progress, RegisteredKeys, SchemeServer};

pub(super) struct SimpleServer {
    records: Arc<dyn Placed>,
}

impl SimpleServer {
    pub(super) fn new(mut operands: Vec<Arc<dyn Placed>>) -> Self {
        Self { records: operands.remove(0) }
    }
}

impl SchemeServer for SimpleServer {
    fn answer(&self, queries: &[&[u8]], _: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        let words: Vec<Vec<u32>> = queries.iter().map(|query| matrix::words(query)).collect();
        let words: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
        let mut cost = Cost::default();
        let answers = matrix::run_gathered(&*self.records, &words, &mut cost)?;
        Ok((answers.iter().map(|a| a.iter().flat_map(|w| shorten(*w)).collect()).collect(), cost))
    }
}

pub(super) fn preprocess(
    params: &Params,
    records: &dyn Placed,
    into: &mut Preprocessing<'_>,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let Preprocessing { hint, done, .. } = into;
    let mut passes = Passes { done, at: 0, total: lwe::passes(records), progress };
    lwe::times_public_matrix(params, 0, records, &mut passes, |first, columns| {
        lwe::scatter(first, columns, hint);
    })
}
