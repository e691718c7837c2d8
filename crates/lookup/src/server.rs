//! The server's side, the same for both schemes: preprocessing and answering, both as contracts on a device.

use blindcore_accel::contract::Shape;
use blindcore_accel::{Cost, Database, Device, Layout, Placed, SharedBytes, Words};
use blindcore_math::LWE_DIMENSION;

use crate::params::{Params, Scheme};
use crate::simple::shorten;
use crate::{Error, double};

/// The most queries that one pass over a database gathers.
pub const MAX_GATHER: usize = 64;

/// A table's matrix, placed on a device, answering queries.
pub struct Server {
    params: Params,
    matrix: Box<dyn Placed>,
    second: Option<double::State>,
}

impl Server {
    /// Places a database, in [`Layout::Tiles16x64`], and what [`preprocess`] returned beside the hint.
    ///
    /// # Errors
    /// A size does not fit the parameters, or the device refuses.
    pub fn new(
        params: Params,
        device: &dyn Device,
        database: Vec<SharedBytes>,
        state: Option<Vec<SharedBytes>>,
    ) -> Result<Self, Error> {
        let state = state.map(|s| place(device, &params.second_shape(), s)).transpose()?;
        Self::placed(params, device, place(device, &params.shape(), database)?, state)
    }

    /// The same with matrices that are in place already, such as those that are streamed from a disk: that of the records,
    /// and what DoublePIR's server keeps beside it, of [`Params::second_shape`]. `device` gets what follows from the
    /// parameters.
    ///
    /// # Errors
    /// A matrix has another shape than the parameters make or is missing, or as [`Server::new`].
    pub fn placed(
        params: Params,
        device: &dyn Device,
        matrix: Box<dyn Placed>,
        state: Option<Box<dyn Placed>>,
    ) -> Result<Self, Error> {
        check_shape(&params.shape(), &*matrix)?;
        let second = match (params.scheme, state) {
            (Scheme::Simple, _) => None,
            (Scheme::Double, Some(state)) => {
                check_shape(&params.second_shape(), &*state)?;
                Some(double::State::new(&params, device, state)?)
            }
            (Scheme::Double, None) => {
                let (got, want) = (0, params.state_bytes());
                let remedy = "give what preprocess returned beside the hint";
                return Err(Error::Length { what: "server's state", got, want, remedy });
            }
        };
        Ok(Self { params, matrix, second })
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Answers up to [`MAX_GATHER`] queries in one pass over the database.
    ///
    /// # Errors
    /// No query or too many, or one of the wrong length; nothing was computed then.
    pub fn answer(&self, queries: &[&[u8]]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        let (got, max) = (queries.len() as u64, MAX_GATHER as u64);
        if !(1..=max).contains(&got) {
            let remedy = "gather fewer at a time";
            return Err(Error::Range { what: "number of queries", got, min: 1, max, remedy });
        }
        let want = self.params.query_bytes();
        let columns = self.params.geometry.columns;
        let mut words = Vec::with_capacity(queries.len());
        for query in queries {
            if query.len() != want {
                let remedy = "make the query with this table's parameters";
                return Err(Error::Length { what: "query", got: query.len(), want, remedy });
            }
            words.push(query.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect::<Vec<u32>>());
        }
        let mut cost = Cost::default();
        let first: Vec<&[u32]> = words.iter().map(|w| &w[..columns]).collect();
        let first = run_gathered(&*self.matrix, &first, &mut cost)?;
        let answers = match &self.second {
            None => first.iter().map(|a| a.iter().flat_map(|w| shorten(*w)).collect()).collect(),
            Some(second) => {
                let queries: Vec<&[u32]> = words.iter().map(|w| &w[columns..]).collect();
                second.answer(&self.params, &queries, &first, &mut cost)?
            }
        };
        Ok((answers, cost))
    }
}

/// Computes a table's hint into `hint` and returns what the server keeps beside it, if anything.
///
/// `database` is in [`Layout::Tiles16x64`]. `progress(done, total)` is called between passes over the
/// database, in passes, and may stop the work with an error.
///
/// # Errors
/// A size does not fit, the device refuses, or `progress` says stop.
pub fn preprocess<E: From<Error>>(
    params: &Params,
    device: &dyn Device,
    database: Vec<SharedBytes>,
    hint: &mut [u32],
    progress: &mut dyn FnMut(u64, u64) -> Result<(), E>,
) -> Result<Option<Vec<u8>>, E> {
    let matrix = place(device, &params.shape(), database)?;
    preprocess_placed(params, device, &*matrix, hint, progress)
}

/// The same from a matrix that is in place already, such as one that is streamed from a disk.
///
/// It is gone through as often as its shape makes it: a pass multiplies it by `shape.m` columns of the public matrix,
/// which has 1024. [`hint_shape`] chooses for a matrix whose every pass costs.
///
/// # Errors
/// As [`preprocess`].
pub fn preprocess_placed<E: From<Error>>(
    params: &Params,
    device: &dyn Device,
    matrix: &dyn Placed,
    hint: &mut [u32],
    progress: &mut dyn FnMut(u64, u64) -> Result<(), E>,
) -> Result<Option<Vec<u8>>, E> {
    check_shape(&Shape { m: matrix.shape().m, ..params.shape() }, matrix)?;
    let (got, want) = (4 * hint.len(), 4 * params.hint_words());
    if got != want {
        let remedy = "give a buffer of Params::hint_words";
        return Err(Error::Length { what: "hint buffer", got, want, remedy }.into());
    }
    match params.scheme {
        Scheme::Simple => {
            times_public_matrix(params, 0, matrix, progress, |first, columns| {
                scatter(first, columns, hint);
            })?;
            Ok(None)
        }
        Scheme::Double => {
            let mut second = vec![0u8; params.state_bytes()];
            times_public_matrix(params, 0, matrix, progress, |first, columns| {
                double::fill_second(params, first, columns, &mut second);
            })?;
            let second = std::sync::Arc::new(second);
            let placed = place(device, &params.second_shape(), vec![second.clone()])?;
            times_public_matrix(params, 1, &*placed, progress, |first, columns| {
                scatter(first, columns, hint);
            })?;
            drop(placed);
            Ok(Some(std::sync::Arc::into_inner(second).expect("nobody else holds it")))
        }
    }
}

/// The shape of a matrix for [`preprocess_placed`] whose passes are few, and take about `memory` bytes each: but for 64
/// columns of the public matrix, which are the least.
#[must_use]
pub fn hint_shape(params: &Params, memory: u64) -> Shape {
    let shape = params.shape();
    // Words and digits of a column; words of its product, and a copy.
    let column = 8 * (shape.depth() + shape.rows()) as u64;
    let columns = usize::try_from(memory / column).unwrap_or(usize::MAX).clamp(MAX_GATHER, LWE_DIMENSION);
    // As many in each pass as in the others.
    let passes = LWE_DIMENSION.div_ceil(columns / MAX_GATHER * MAX_GATHER);
    Shape { m: LWE_DIMENSION.div_ceil(passes).next_multiple_of(MAX_GATHER), ..shape }
}

fn check_shape(want: &Shape, matrix: &dyn Placed) -> Result<(), Error> {
    if matrix.shape() == want {
        return Ok(());
    }
    let (shape, why) = (matrix.shape().to_string(), format!("the parameters make {want}"));
    Err(blindcore_accel::Error::Shape { shape, why }.into())
}

/// Columns of a product go to their places in its rows.
fn scatter(first: usize, columns: &[Vec<u32>], hint: &mut [u32]) {
    for (row, words) in hint.chunks_exact_mut(LWE_DIMENSION).enumerate() {
        for (word, column) in words[first..].iter_mut().zip(columns) {
            *word = column[row];
        }
    }
}

/// A placed matrix times a public matrix, as many columns at a time as it gathers: a public column is a query.
fn times_public_matrix<E: From<Error>>(
    params: &Params,
    level: u8,
    matrix: &dyn Placed,
    progress: &mut dyn FnMut(u64, u64) -> Result<(), E>,
    mut take: impl FnMut(usize, &[Vec<u32>]),
) -> Result<(), E> {
    let depth = matrix.shape().depth();
    let public = params.public_matrix(level);
    let gather = matrix.shape().m;
    let total = LWE_DIMENSION.div_ceil(gather) as u64;
    for (pass, first) in (0..LWE_DIMENSION).step_by(gather).enumerate() {
        progress(pass as u64, total)?;
        let columns = gather.min(LWE_DIMENSION - first);
        let mut query = vec![0u32; columns * depth];
        let mut words = vec![0u32; columns];
        for j in 0..depth {
            public.part_of_row(j as u64, first, &mut words);
            for (i, word) in words.iter().enumerate() {
                query[i * depth + j] = *word;
            }
        }
        let (answer, _) = matrix.run(&Words::U32(query)).map_err(Error::from)?;
        take(first, &double::split(answer, columns)?);
    }
    progress(total, total)
}

/// Runs a contract on gathered queries of equal length, adding its cost.
pub(crate) fn run_gathered(
    matrix: &dyn Placed,
    queries: &[&[u32]],
    cost: &mut Cost,
) -> Result<Vec<Vec<u32>>, Error> {
    let (answer, this) = matrix.run(&Words::U32(queries.concat()))?;
    cost.time += this.time;
    cost.database_bytes += this.database_bytes;
    cost.threads = this.threads;
    cost.hardware = match (cost.hardware, this.hardware) {
        (Some(before), Some(this)) => Some(before + this),
        (before, this) => before.or(this),
    };
    double::split(answer, queries.len())
}

pub(crate) fn place(
    device: &dyn Device,
    shape: &Shape,
    pieces: Vec<SharedBytes>,
) -> Result<Box<dyn Placed>, Error> {
    let contract = device.contract(shape)?;
    debug_assert_eq!(contract.layout(), Layout::Tiles16x64);
    Ok(contract.place(Database::Packed(pieces))?)
}

/// Lays the records of one group (`columns` slots of `record_bytes`, fewer in the last group) into a database
/// in [`Layout::Tiles16x64`].
///
/// # Panics
/// The group or a record lies outside.
pub fn pack_group(params: &Params, group: usize, records: &[u8], database: &mut [u8]) {
    let record_bytes = params.geometry.record_bytes;
    let stripe_bytes = Layout::Tiles16x64.stripe_bytes(&params.shape());
    assert!(group < params.geometry.groups && records.len() <= params.geometry.columns * record_bytes);
    for t in 0..record_bytes {
        let row = group * record_bytes + t;
        let stripe = &mut database[row / 16 * stripe_bytes..][..stripe_bytes];
        for (column, record) in records.chunks_exact(record_bytes).enumerate() {
            stripe[Layout::tile_index(row % 16, column)] = record[t];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Geometry;

    #[test]
    fn a_hint_takes_as_many_passes_as_memory_makes_it() {
        let geometry = Geometry { record_bytes: 10, groups: 100, columns: 1000 };
        let params = Params::new(Scheme::Simple, geometry).unwrap();
        let column = 8 * 2000;
        for (columns, m) in [
            (0, 64),
            (64, 64),
            (191, 128),
            (192, 192),
            (500, 384),
            (512, 512),
            (1023, 512),
            (1024, 1024),
            (1 << 40, 1024),
        ] {
            let shape = hint_shape(&params, columns * column);
            assert_eq!(shape, Shape { m, ..params.shape() }, "{columns}");
        }
    }
}
