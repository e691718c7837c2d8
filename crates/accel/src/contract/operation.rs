//! The contract operation on a device: the slot, a shape that was prepared, a database in place, a pass.

use std::sync::Arc;

use blindcore_math::Modulus;

use super::shape::Shape;
use crate::{Cost, Error, Layout, Words};

/// Bytes that several owners share: a mapped file, or memory.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// What a device's contract slot takes; read it before you prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractCapabilities {
    /// The layouts that its databases may have; which one a shape gets is [`Contract::layout`].
    pub layouts: Vec<Layout>,
    /// The moduli that it computes with; none: every [`Modulus`] that there is.
    pub moduli: Option<Vec<Modulus>>,
    /// The most moduli (residue channels, `c`) of a shape.
    pub channels: usize,
    /// The most products in an output, `j * k`, for shapes in [`Layout::Rows`] and [`Layout::Lanes8x4`].
    pub row_depth: usize,
    /// The most 64-bit words that a database takes on the device, with the query beside it; none: what memory holds.
    pub words: Option<usize>,
    /// Whether its contracts take a database stripe by stripe; see [`Contract::streaming`].
    pub streams: bool,
    /// Whether it is simulated, so that its speed says nothing about this machine.
    pub simulated: bool,
}

impl ContractCapabilities {
    /// Refuses a shape that these capabilities rule out. A device may have further limits that depend on the whole
    /// shape: [`ContractSlot::check`] knows them all.
    ///
    /// # Errors
    /// [`Error::Shape`] names the first limit that the shape breaks.
    pub fn check(&self, shape: &Shape) -> Result<(), Error> {
        shape.check()?;
        let refuse = |why: String| Err(Error::Shape { shape: shape.to_string(), why });
        if let Some(moduli) = &self.moduli
            && let Some(other) = shape.moduli.iter().find(|m| !moduli.contains(m))
        {
            let known = moduli.iter().map(Modulus::to_string).collect::<Vec<_>>().join(", ");
            return refuse(format!("this device computes modulo {known} only, and not modulo {other}"));
        }
        if shape.c() > self.channels {
            return refuse(format!(
                "{} moduli are over the {} that the device holds",
                shape.c(),
                self.channels
            ));
        }
        let layout = Layout::for_shape(shape);
        if !self.layouts.contains(&layout) {
            let known = self.layouts.iter().map(|layout| layout.name()).collect::<Vec<_>>().join(", ");
            return refuse(format!(
                "this device lays databases out as {known}, and not as {}",
                layout.name()
            ));
        }
        if matches!(layout, Layout::Rows | Layout::Lanes8x4) && shape.depth() > self.row_depth {
            return refuse(format!("j * k is over the {} that sums are kept exact for", self.row_depth));
        }
        Ok(())
    }
}

/// The contract slot of a device.
///
/// ```text
///   check(shape) ──▶ prepare(shape) ──▶ place(database) ──▶ run(query) ──▶ answer + cost
///                                        once               many times, from any thread
/// ```
pub trait ContractSlot: Send + Sync {
    /// What it takes.
    fn capabilities(&self) -> ContractCapabilities;

    /// Whether it takes this shape; [`ContractSlot::prepare`] refuses the same shapes, and no others.
    ///
    /// # Errors
    /// Which limit the shape breaks.
    fn check(&self, shape: &Shape) -> Result<(), Error> {
        self.capabilities().check(shape)
    }

    /// Prepares the operation of one shape.
    ///
    /// # Errors
    /// As [`ContractSlot::check`].
    fn prepare(&self, shape: &Shape) -> Result<Arc<dyn Contract>, Error>;
}

/// The contract operation of one shape on one device, waiting for its database.
pub trait Contract: Send + Sync {
    /// The order in which this device wants the database's words.
    fn layout(&self) -> Layout;

    /// The most queries, 1 to [`Shape::m`], that one reading of the database serves. A run takes up to [`Shape::m`] of
    /// them whatever this says, and reads the database as often as that needs.
    fn gathered(&self) -> usize;

    /// Takes the database, laying it out if it is not yet.
    ///
    /// # Errors
    /// The database has the wrong width or length, or holds a word that is not a residue.
    fn place(&self, database: Database<'_>) -> Result<Arc<dyn Placed>, Error>;

    /// The way to answer from a database that is placed nowhere, for a device that has one
    /// ([`ContractCapabilities::streams`]).
    fn streaming(&self) -> Option<&dyn Streaming> {
        None
    }
}

/// A contract that takes its database stripe by stripe and keeps none of it.
pub trait Streaming: Send + Sync {
    /// Begins to answer a query, `outputs` of its outputs at a time, as [`Placed::run_in_pieces`] does.
    ///
    /// # Errors
    /// The query is not what [`Placed::run`] takes.
    fn begin<'a>(&'a self, query: &'a Words, outputs: usize) -> Result<Box<dyn Pass + 'a>, Error>;
}

/// A query on its way through a database that comes piece by piece, as from a disk.
///
/// ```text
///   begin(query) ──▶ take(stripes) ──▶ take(stripes) ──▶ ... ──▶ finish() ──▶ cost
///   what follows       the first         those after             once it has
///   from the query     rows of outputs   them                    seen them all
///                        └▶ a piece of the answer, whenever one is whole
/// ```
pub trait Pass {
    /// Computes the outputs of the next stripes, one at least, in the [`Layout`] of [`Contract::layout`], at an
    /// address that its words allow; and gives the pieces of the answer that are whole by then.
    ///
    /// # Errors
    /// That is not a whole number of stripes, or more than are left, or they hold a word that is not a residue; nothing
    /// was taken then.
    fn take(&mut self, stripes: &[u8], give: &mut dyn FnMut(&mut Words)) -> Result<(), Error>;

    /// What it took.
    ///
    /// # Errors
    /// There are stripes that were not taken.
    fn finish(self: Box<Self>) -> Result<Cost, Error>;
}

/// A database, as it is handed to [`Contract::place`].
pub enum Database<'a> {
    /// Words in the canonical order of [`Shape`]; the device copies them into its layout.
    Canonical(&'a Words),
    /// Bytes already in the [`Layout`] of [`Contract::layout`], used where they lie: consecutive pieces, each
    /// of whole stripes.
    Packed(Vec<SharedBytes>),
}

/// The whole answer of a device that gives pieces as it goes: its [`Placed::run`] by its [`Placed::run_in_pieces`].
///
/// # Errors
/// As [`Placed::run`].
///
/// # Panics
/// The device gives no piece, or more than one, for all outputs at once.
pub fn whole(placed: &dyn Placed, query: &Words) -> Result<(Words, Cost), Error> {
    let mut answer = None;
    let cost = placed.run_in_pieces(query, placed.shape().n, &mut |piece| {
        assert!(answer.replace(piece.take()).is_none(), "one piece for all outputs");
    })?;
    Ok((answer.expect("a piece for all outputs"), cost))
}

/// A database in place, answering queries.
pub trait Placed: Send + Sync {
    /// The operation's shape.
    fn shape(&self) -> &Shape;

    /// Runs the operation on a query of 1 to [`Shape::m`] gathered parts; the answer has as many.
    ///
    /// # Errors
    /// The query has the wrong width or length, or holds a word that is not a residue.
    fn run(&self, query: &Words) -> Result<(Words, Cost), Error>;

    /// The same for answers that are long and soon used up: gives them in pieces, each an answer of the next `outputs` of the
    /// shape's n outputs (as many more as make whole stripes; the last one of those that are left), `[m, n, p, q, c, d]`. A
    /// device that gives pieces as it goes holds one at a time; whoever wants to keep one takes it out.
    ///
    /// # Errors
    /// As [`Placed::run`]; what was given until then is of no use.
    fn run_in_pieces(
        &self,
        query: &Words,
        outputs: usize,
        give: &mut dyn FnMut(&mut Words),
    ) -> Result<Cost, Error> {
        let (mut answer, cost) = self.run(query)?;
        let shape = self.shape();
        if outputs >= shape.n {
            give(&mut answer);
            return Ok(cost);
        }
        let output = shape.answer_len(1) / shape.n;
        let parts = answer.len() / shape.answer_len(1);
        for first in (0..shape.n).step_by(outputs.max(1)) {
            let count = outputs.max(1).min(shape.n - first);
            let of =
                |part: usize| (part * shape.n + first) * output..(part * shape.n + first + count) * output;
            give(&mut answer.joined((0..parts).map(of)));
        }
        Ok(cost)
    }

    /// Gives the database as it lies, in its [`Layout`], in order, piece by piece, each of whole stripes: for what is made of a
    /// database beside its operation.
    ///
    /// # Errors
    /// What `take` returns, where nothing more is given; the database can't be read; or the device keeps it in another form.
    fn stripes(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>;
}
