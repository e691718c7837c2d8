//! The server's side of every scheme: preprocessing, placing and answering.

use std::sync::Arc;

use blindcore_accel::{Cost, Device, Placed, SharedBytes, keep_freed_memory};
use blindcore_units::Unit;

use crate::schemes::matrix;
use crate::schemes::scheme::Operand;
use crate::{Error, MAX_GATHER, Params, Progress, RegisteredKeys};

/// A scheme's half of a server: what [`crate::Scheme::server`] makes.
pub trait SchemeServer: Send + Sync {
    /// Answers queries, 1 to [`MAX_GATHER`] of the right length, in one pass over the operands. Their bytes are a
    /// stranger's. `keys` has those that each is under, one a query, which [`crate::Registration::registered`] read; it is empty
    /// where the scheme registers none.
    ///
    /// # Errors
    /// The device refuses.
    fn answer(&self, queries: &[&[u8]], keys: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error>;
}

/// A table's operands, placed on a device, answering queries.
pub struct Server {
    params: Params,
    half: Box<dyn SchemeServer>,
}

impl Server {
    /// Places the operands that a database has, each in pieces of whole stripes: the records, then what [`preprocess`]
    /// returned.
    ///
    /// # Errors
    /// An operand is missing, a size does not fit the parameters, or the device refuses.
    pub fn new(params: Params, device: &Device, operands: Vec<Vec<SharedBytes>>) -> Result<Self, Error> {
        let stored: Vec<Operand> = params.stored_operands().collect();
        check_count(&stored, operands.len())?;
        let place = |(operand, pieces)| matrix::place(device, operand, pieces);
        let placed = stored.iter().zip(operands).map(place).collect::<Result<_, _>>()?;
        Self::placed(params, device, placed)
    }

    /// The same with operands that are in place already, such as those that are streamed from a disk. `device` gets what
    /// follows from the parameters.
    ///
    /// # Errors
    /// An operand is missing or has another shape than the parameters make, or as [`Server::new`].
    pub fn placed(params: Params, device: &Device, operands: Vec<Arc<dyn Placed>>) -> Result<Self, Error> {
        let stored: Vec<Operand> = params.stored_operands().collect();
        check_count(&stored, operands.len())?;
        for (operand, placed) in stored.iter().zip(&operands) {
            check_shape(operand, operand.shape.m, &**placed)?;
        }
        keep_freed_memory();
        let half = params.scheme.get().server(&params, device, operands)?;
        Ok(Self { params, half })
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
        self.answer_under(queries, &[])
    }

    /// The same where each query is under keys that its client registered: as many as queries, of these parameters, in the
    /// order of the queries. Those of different clients are answered in one pass.
    ///
    /// # Errors
    /// As [`Server::answer`]; or keys are missing, are of other parameters, or the scheme has none.
    pub fn answer_under(
        &self,
        queries: &[&[u8]],
        keys: &[&RegisteredKeys],
    ) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        let (got, max) = (queries.len() as u64, MAX_GATHER as u64);
        if !(1..=max).contains(&got) {
            let remedy = "gather fewer at a time";
            return Err(Error::Range { what: "number of queries", got, min: 1, max, remedy });
        }
        let want = self.params.query_bytes();
        if let Some(query) = queries.iter().find(|query| query.len() != want) {
            let remedy = "make the query with this table's parameters";
            return Err(Error::Length { what: "query", got: query.len(), want, remedy });
        }
        let scheme = self.params.scheme.name();
        match self.params.keys_digest() {
            None if keys.is_empty() => {}
            None => return Err(Error::NoRegisteredKeys { scheme }),
            Some(_) if keys.len() != queries.len() => {
                return Err(Error::OtherKeys { scheme, got: "not as many as queries" });
            }
            Some(ours) if keys.iter().any(|keys| *keys.params_digest() != ours) => {
                return Err(Error::OtherKeys { scheme, got: "of other parameters" });
            }
            Some(_) => {}
        }
        self.half.answer(queries, keys)
    }
}

fn check_count(stored: &[Operand], got: usize) -> Result<(), Error> {
    let (got, want) = (got as u64, stored.len() as u64);
    if got == want {
        return Ok(());
    }
    let remedy = "give the records, and what preprocess returned beside the hint";
    Err(Error::Range { what: "number of operands", got, min: want, max: want, remedy })
}

fn check_shape(operand: &Operand, gather: usize, placed: &dyn Placed) -> Result<(), Error> {
    let want = blindcore_accel::contract::Shape { m: gather, ..operand.shape.clone() };
    if *placed.shape() == want {
        return Ok(());
    }
    let (shape, why) = (placed.shape().to_string(), format!("the parameters make {want}"));
    Err(blindcore_accel::Error::Shape { shape, why }.into())
}

/// What a [`Progress`] is told that the passes do which make a hint, counted in passes.
pub const PREPARING: &str = "preparing";

/// Memory that an operand is made in: a vector, or a file that is mapped.
pub struct OperandBytes(Box<dyn Bytes>);

/// What [`OperandBytes`] may be.
trait Bytes: AsRef<[u8]> + AsMut<[u8]> + Send + Sync {}

impl<T: AsRef<[u8]> + AsMut<[u8]> + Send + Sync> Bytes for T {}

impl OperandBytes {
    /// This memory.
    #[must_use]
    pub fn new(memory: impl AsRef<[u8]> + AsMut<[u8]> + Send + Sync + 'static) -> Self {
        Self(Box::new(memory))
    }
}

impl std::ops::Deref for OperandBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl std::ops::DerefMut for OperandBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        (*self.0).as_mut()
    }
}

impl AsRef<[u8]> for OperandBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// What preprocessing makes of a database, some or all of its passes done.
///
/// Whoever stops it may keep [`Preprocessing::derived`], [`Preprocessing::done`] and the hint, and go on later from
/// [`Preprocessing::resume`].
pub struct Preprocessing<'a> {
    /// The hint that clients fetch.
    pub hint: &'a mut [u8],
    /// Operands that the server keeps beside the records, in their order.
    pub derived: Vec<OperandBytes>,
    /// Passes that are done.
    pub done: u64,
}

impl<'a> Preprocessing<'a> {
    /// Nothing done yet. `hint` has [`Params::hint_bytes`].
    ///
    /// # Errors
    /// The hint has another length.
    pub fn new(params: &Params, hint: &'a mut [u8]) -> Result<Self, Error> {
        let zeroed = |operand: Operand| OperandBytes::new(vec![0; operand.bytes()]);
        Self::resume(params, hint, params.stored_operands().skip(1).map(zeroed).collect(), 0)
    }

    /// What an earlier run left, by passes over a matrix of the same shape; or zeros in memory of one's own, where none was made.
    ///
    /// # Errors
    /// Hint or operands have another length than the parameters make.
    pub fn resume(
        params: &Params,
        hint: &'a mut [u8],
        derived: Vec<OperandBytes>,
        done: u64,
    ) -> Result<Self, Error> {
        let check = |what, got: usize, want: usize| {
            let remedy = "give buffers that these parameters make";
            if got == want { Ok(()) } else { Err(Error::Length { what, got, want, remedy }) }
        };
        check("hint buffer", hint.len(), params.hint_bytes() as usize)?;
        let stored: Vec<Operand> = params.stored_operands().skip(1).collect();
        check("list of operands", derived.len(), stored.len())?;
        for (operand, bytes) in stored.iter().zip(&derived) {
            check(operand.name, bytes.len(), operand.bytes())?;
        }
        Ok(Self { hint, derived, done })
    }

    /// Makes the passes that are not done, over records that are in place, such as those that are streamed from a disk.
    ///
    /// They are gone through as often as their shape makes it: [`Params::preprocessing_shape`] chooses for those whose every
    /// pass costs.
    ///
    /// # Errors
    /// The records have another shape, the device refuses, or `progress` says stop.
    pub fn run(
        &mut self,
        params: &Params,
        device: &Device,
        records: &dyn Placed,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        check_shape(&params.records(), records.shape().m, records)?;
        params.scheme.get().preprocess(params, device, records, self, progress)?;
        progress.at(PREPARING, self.done, Some(self.done), Unit::Items);
        Ok(())
    }
}

/// Computes a table's hint into `hint`, and returns the operands that the server keeps beside the records, in their order.
///
/// `database` is laid out as the records of `params` are. `progress` is told between passes over the database how many
/// are done, and may stop the work.
///
/// # Errors
/// A size does not fit, the device refuses, or `progress` says stop.
pub fn preprocess(
    params: &Params,
    device: &Device,
    database: Vec<SharedBytes>,
    hint: &mut [u8],
    progress: &mut dyn Progress,
) -> Result<Vec<OperandBytes>, Error> {
    let records = matrix::place(device, &params.records(), database)?;
    preprocess_placed(params, device, &*records, hint, progress)
}

/// The same from records that are in place already.
///
/// # Errors
/// As [`preprocess`].
pub fn preprocess_placed(
    params: &Params,
    device: &Device,
    records: &dyn Placed,
    hint: &mut [u8],
    progress: &mut dyn Progress,
) -> Result<Vec<OperandBytes>, Error> {
    let mut made = Preprocessing::new(params, hint)?;
    made.run(params, device, records, progress)?;
    Ok(made.derived)
}

/// Lays the records of one group (`columns` slots of `record_bytes`, fewer in the last group) out in a whole database.
///
/// # Panics
/// The group or a record lies outside.
pub fn pack_group(params: &Params, group: usize, records: &[u8], database: &mut [u8]) {
    let geometry = &params.geometry;
    assert!(group < geometry.groups && records.len() <= geometry.columns * geometry.record_bytes);
    let rows = params.group_rows();
    params.pack(records, 0..rows, database, group * rows);
}
