//! Devices: somewhere operations run.

use std::sync::Arc;

use crate::bigmod::{Bigmod, Modulus};
use crate::contract::Shape;
use crate::garble::{Garble, Scheme};
use crate::{Cost, Error, Layout, Words};

/// Bytes that several owners share: a mapped file, or memory.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Somewhere operations run.
///
/// A device is a value that its user passes on; nothing looks one up behind the caller's back, and opening
/// one never falls back to another in silence.
///
/// ```text
///   shape ──▶ contract() ──▶ place(database) ──▶ run(query) ──▶ answer + cost
///             refuses what    once               many times,
///             it can't do                        from any thread
/// ```
pub trait Device: Send + Sync {
    /// What this device is called: the name that opens exactly it, such as `cpu:avx512`.
    fn name(&self) -> &str;

    /// What it is and why it was chosen, for people.
    fn describe(&self) -> Description;

    /// Prepares the contract operation of one shape.
    ///
    /// # Errors
    /// The shape is out of range, or this device can't run it.
    fn contract(&self, shape: &Shape) -> Result<Box<dyn Contract>, Error>;

    /// Prepares arithmetic modulo a big number.
    ///
    /// # Errors
    /// This device does not do it.
    fn bigmod(&self, modulus: &Modulus) -> Result<Box<dyn Bigmod>, Error> {
        let _ = modulus;
        Err(Error::Unsupported { name: self.name().into(), operation: "bigmod" })
    }

    /// Prepares garbling and evaluation under a scheme.
    ///
    /// # Errors
    /// This device does not do it.
    fn garble(&self, scheme: &Scheme) -> Result<Box<dyn Garble>, Error> {
        let _ = scheme;
        Err(Error::Unsupported { name: self.name().into(), operation: "garble" })
    }
}

/// A device, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name that opens it.
    pub name: String,
    /// What hardware it is.
    pub hardware: String,
    /// How many threads it uses.
    pub threads: usize,
    /// Why this one, in a sentence.
    pub why: String,
}

/// The contract operation of one shape on one device, waiting for its database.
pub trait Contract: Send + Sync {
    /// The order in which this device wants the database's words.
    fn layout(&self) -> Layout;

    /// Takes the database, laying it out if it is not yet.
    ///
    /// # Errors
    /// The database has the wrong width or length, or holds a word that is no residue.
    fn place(&self, database: Database<'_>) -> Result<Box<dyn Placed>, Error>;

    /// Begins to answer a query from a database that is placed nowhere: its stripes are handed over one after the
    /// other, and none is kept.
    ///
    /// # Errors
    /// The query is not what [`Placed::run`] takes, or this device wants its databases placed.
    fn begin(&self, query: &Words) -> Result<Box<dyn Pass + '_>, Error>;
}

/// A query on its way through a database that comes piece by piece, as from a disk.
///
/// ```text
///   begin(query) ──▶ take(stripes) ──▶ take(stripes) ──▶ ... ──▶ finish() ──▶ answer + cost
///   what follows       the first         those after             once it has
///   from the query     rows of outputs   them                    seen them all
/// ```
pub trait Pass {
    /// Computes the outputs of the next stripes, one at least, in the [`Layout`] of [`Contract::layout`], at an
    /// address that its words allow.
    ///
    /// # Errors
    /// That is no whole number of stripes, or more than are left, or they hold a word that is no residue; nothing
    /// was taken then.
    fn take(&mut self, stripes: &[u8]) -> Result<(), Error>;

    /// The answer, as [`Placed::run`] gives it.
    ///
    /// # Errors
    /// There are stripes that were not taken.
    fn finish(self: Box<Self>) -> Result<(Words, Cost), Error>;
}

/// A database, as it is handed to [`Contract::place`].
pub enum Database<'a> {
    /// Words in the canonical order of [`Shape`]; the device copies them into its layout.
    Canonical(&'a Words),
    /// Bytes already in the [`Layout`] of [`Contract::layout`], used where they lie: consecutive pieces, each
    /// of whole stripes.
    Packed(Vec<SharedBytes>),
}

/// A database in place, answering queries.
pub trait Placed: Send + Sync {
    /// The operation's shape.
    fn shape(&self) -> &Shape;

    /// Runs the operation on a query of 1 to [`Shape::m`] gathered parts; the answer has as many.
    ///
    /// # Errors
    /// The query has the wrong width or length, or holds a word that is no residue.
    fn run(&self, query: &Words) -> Result<(Words, Cost), Error>;
}
