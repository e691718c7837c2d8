//! What a scheme answers.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Device, Layout, Placed, SharedBytes};

use super::keeps::Keeps;
use crate::lanes::Lanes;
use crate::registration::Registration;
use crate::{Client, Error, Geometry, MAX_GATHER, Params, Preprocessing, Progress, SchemeServer};

/// A scheme: how records are asked for so that the server doesn't learn which.
///
/// Every question is about a geometry that [`Params::new`] has checked, or is checking. Answers must not change between two
/// calls, or between two versions of a scheme that share a name: databases, hints and messages outlive programs.
pub trait Scheme: Send + Sync {
    /// Its names, its constants and its security.
    fn about(&self) -> &'static About;

    /// Checks what this scheme asks of a geometry beyond the sizes that all share.
    ///
    /// # Errors
    /// A size is out of its range.
    fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        let _ = geometry;
        Ok(())
    }

    /// -log2 of a bound on the probability that an honest lookup decodes wrongly; infinite where it never does.
    fn failure_log2(&self, geometry: &Geometry) -> f64;

    /// What a client keeps between lookups.
    fn keeps(&self, geometry: &Geometry) -> Keeps;

    /// How keys are made and read, where [`Scheme::keeps`] says [`Keeps::RegisteredKeys`].
    fn registration(&self) -> Option<&dyn Registration> {
        None
    }

    /// Whether it is there to be measured beside others, and taken by name alone.
    fn for_comparison(&self) -> bool {
        false
    }

    /// Bytes of a query, with the keys that come with each, if any do.
    fn query_bytes(&self, geometry: &Geometry) -> usize;

    /// Bytes of an answer.
    fn answer_bytes(&self, geometry: &Geometry) -> usize;

    /// Whether hint and answer grow in proportion to the slot, so that a client pays in full for whatever is put beside a
    /// record.
    fn longer_slot_costs(&self) -> bool {
        false
    }

    /// Bits of the lanes by which picked slots add up: see [`crate::keyword::Lanes`].
    fn lane_bits(&self) -> u32 {
        8
    }

    /// The databases that the server works on. The first one is laid out from the slots, group after group.
    fn operands(&self, geometry: &Geometry) -> Vec<Operand>;

    /// Passes over operands that preprocessing takes; none where there is nothing to preprocess.
    fn preprocessing(&self, geometry: &Geometry) -> Vec<Run>;

    /// Passes over operands that answer `queries` gathered queries, 1 to [`MAX_GATHER`].
    fn answering(&self, geometry: &Geometry, queries: usize) -> Vec<Run>;

    /// What a client computes for a lookup.
    fn client_work(&self, geometry: &Geometry) -> ClientWork;

    /// Work on polynomials, none for a scheme without a ring.
    fn ring_work(&self, geometry: &Geometry) -> RingWork {
        let _ = geometry;
        RingWork::default()
    }

    /// How many groups balance what a client moves, for this many records in slots of this many bytes; at least 1.
    fn groups(&self, records: u64, slot_bytes: usize) -> u64;

    /// The same where records are found by key: groups are then unequally full, the more so the fewer columns they have. A query
    /// stands for `lookups`: 1, but of a bucket of batches, of which as many keys ask one. What is kept weighs as many times more.
    fn groups_by_key(&self, records: u64, slot_bytes: usize, lookups: usize) -> u64 {
        let _ = lookups;
        self.groups(records, slot_bytes)
    }

    /// A small instance of about this many bytes, to measure this scheme by.
    fn representative(&self, bytes: u64) -> Geometry {
        let side = (bytes as f64).sqrt() as usize;
        let record_bytes = side.clamp(1, 64);
        Geometry { record_bytes, groups: (side / record_bytes).max(1), columns: side.max(1) }
    }

    /// The first operand's shape for [`Scheme::preprocess`] whose passes are few, and take about `memory` bytes each.
    fn preprocessing_shape(&self, params: &Params, memory: u64) -> Shape {
        let _ = memory;
        params.records().shape
    }

    /// Rows of the first operand that a group takes; by default one for each byte of a slot.
    fn group_rows(&self, geometry: &Geometry) -> usize {
        geometry.record_bytes
    }

    /// Lays rows `rows` of a group out, from row `at` of the first of `stripes` on. `slots` are the group's, one for each
    /// column, one after another. By default row `t` has byte `t` of each slot.
    fn pack(
        &self,
        params: &Params,
        slots: &[u8],
        rows: std::ops::Range<usize>,
        stripes: &mut [u8],
        at: usize,
    ) {
        let records = params.records();
        let bytes = records.stripe_bytes();
        records.layout.pack_columns(slots, params.geometry.record_bytes, rows, stripes, bytes, at);
    }

    /// Computes what a client keeps and what the server keeps beside the first operand, which is `records`.
    ///
    /// # Errors
    /// The device refuses, or progress says stop: what was done is then in `into`, to go on from.
    fn preprocess(
        &self,
        params: &Params,
        device: &Device,
        records: &dyn Placed,
        into: &mut Preprocessing<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), Error>;

    /// The server's half, from the operands that a database has, in place and in their order. `device` gets what follows
    /// from the parameters. Sizes and shapes have been checked.
    ///
    /// # Errors
    /// The device refuses.
    fn server(
        &self,
        params: &Params,
        device: &Device,
        operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error>;

    /// The client's half, from the hint, whose length has been checked; it is empty where there is none.
    ///
    /// # Errors
    /// The hint is none.
    fn client(&self, params: &Params, hint: SharedBytes) -> Result<Client, Error>;
}

/// What a scheme is called, and what it promises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct About {
    /// Its name on disks, in URLs and on the command line: lower-case letters, digits and `-`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Which tables it is for, as in "for records of a few bytes"; empty for most.
    pub suits: &'static str,
    /// Its number in messages. Those up to 999 are this project's.
    pub wire_id: u32,
    /// What its security rests on; none where it has none.
    pub security: Option<Security>,
    /// The constants that a digest of parameters covers.
    pub constants: &'static [u64],
}

/// An estimate of security.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Security {
    /// Bits against today's computers.
    pub bits: f64,
    /// Bits against a quantum computer, where they were estimated.
    pub quantum_bits: Option<f64>,
    /// What made the estimate, with its version.
    pub estimator: &'static str,
}

/// A database that the server works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// What it is called, in messages.
    pub name: &'static str,
    /// The operation over it, for up to [`MAX_GATHER`] queries: its sizes, its words and their moduli.
    pub shape: Shape,
    /// How its words lie.
    pub layout: Layout,
    /// What it is made from.
    pub origin: Origin,
}

/// What an operand is made from, and so where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the slots, as they are read. It is kept on the disk, and may be streamed from there in each pass.
    Slots,
    /// From the operand before it, by preprocessing. It is kept and may be streamed as the slots are.
    Preprocessed,
    /// From the parameters alone, when a table is placed. It is kept in memory.
    Parameters,
}

impl Operand {
    /// Bytes of it, its padding too.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.stripe_bytes() * self.layout.stripes(&self.shape)
    }

    /// Bytes of its stripes, which are written, checked and computed one by one.
    #[must_use]
    pub fn stripe_bytes(&self) -> usize {
        self.layout.stripe_bytes(&self.shape)
    }

    /// Where the word of a row and a column lies, in bytes. The operation has one modulus, and d = 1.
    #[must_use]
    pub fn position(&self, row: usize, column: usize) -> usize {
        self.layout.position(&self.shape, row, column)
    }

    /// Whether it is kept on the disk.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.origin != Origin::Parameters
    }
}

/// Passes over an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which operand, by its place among [`Params::operands`].
    pub operand: usize,
    /// Queries of a pass.
    pub queries: usize,
    /// How many passes.
    pub passes: u64,
}

/// What a client computes for a lookup, by what costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientWork {
    /// Words of a query that it masks, each with a row of public randomness that it expands.
    pub masked: usize,
    /// Inner products with what it keeps.
    pub products: usize,
    /// Bytes of an answer that it decodes.
    pub decoded: usize,
}

/// Work on polynomials of 2048 coefficients, in transforms that take as long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RingWork {
    /// Of preprocessing.
    pub preparing: f64,
    /// Of an answer, beside its passes.
    pub answering: f64,
    /// Polynomials that a query encrypts.
    pub encrypted: f64,
}

/// A scheme that this build knows; compared by name.
#[derive(Clone, Copy)]
pub struct SchemeRef(pub(super) &'static dyn Scheme);

impl SchemeRef {
    pub(crate) fn get(self) -> &'static dyn Scheme {
        self.0
    }

    /// Its names, its constants and its security.
    #[must_use]
    pub fn about(self) -> &'static About {
        self.0.about()
    }

    /// Its name on disks, in URLs and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// Its name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.about().title
    }

    /// Whether every query is under keys that a client registered.
    #[must_use]
    pub fn registers_keys(self) -> bool {
        self.0.registration().is_some()
    }

    /// Whether it is there to be measured beside others, and taken by name alone.
    #[must_use]
    pub fn for_comparison(self) -> bool {
        self.0.for_comparison()
    }

    /// How picked slots add up.
    #[must_use]
    pub fn lanes(self) -> Lanes {
        Lanes(self.0.lane_bits())
    }

    /// Small parameters of about this many bytes, to measure it by.
    ///
    /// # Errors
    /// No table has as many bytes.
    pub fn representative(self, bytes: u64) -> Result<Params, Error> {
        Params::new(self, self.0.representative(bytes))
    }
}

impl PartialEq for SchemeRef {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for SchemeRef {}

impl Hash for SchemeRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for SchemeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for SchemeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl serde::Serialize for SchemeRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl SchemeRef {
    /// Its number in messages.
    #[must_use]
    pub fn wire_id(self) -> u32 {
        self.about().wire_id
    }

    /// Its name in messages, so that a client which doesn't know it can tell: empty for those that were there before names
    /// were.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        const UNNAMED: u32 = 2;
        if self.wire_id() <= UNNAMED { "" } else { self.name() }
    }
}

/// A pass of as many queries as a pass gathers, over an operand.
pub(super) fn full_passes(operand: usize, queries: usize) -> impl Iterator<Item = Run> {
    let full = Run { operand, queries: MAX_GATHER, passes: (queries / MAX_GATHER) as u64 };
    let rest = Run { operand, queries: queries % MAX_GATHER, passes: 1 };
    [full, rest].into_iter().filter(|run| run.queries > 0 && run.passes > 0)
}
