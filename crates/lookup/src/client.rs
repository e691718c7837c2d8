//! The client's side of every scheme. Constant time, and no I/O.

use std::any::Any;

use blindcore_accel::SharedBytes;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::params::{Geometry, Params};
use crate::registration::SecretKeys;
use crate::{Error, constant_time};

/// A scheme's half of a client.
///
/// No branch, index or division may be decided by a selection, or by what an answer decodes to.
pub trait SchemeClient: Send + Sync + 'static {
    /// The secret of registered keys, as [`crate::Registration::secret`] makes it, cheap to keep a share of; `()` where the
    /// scheme has none.
    type Keys: Send + Sync + 'static;
    /// The part of a query that no lookup's target enters. Its secrets are wiped on drop.
    type Prepared: Send + 'static;
    /// What decoding needs of a query. Its secrets are wiped on drop.
    type Pending: Send + 'static;

    /// Makes everything of a query that its target does not enter.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    fn prepare(&self, keys: &Self::Keys) -> Result<Self::Prepared, Error>;

    /// Turns it into a query, of [`Params::query_bytes`]. The selection lies inside the geometry.
    fn query(&self, prepared: Self::Prepared, selection: &Selection) -> (Vec<u8>, Self::Pending);

    /// What an answer of [`Params::answer_bytes`] holds, whatever its bytes.
    fn decode(&self, pending: Self::Pending, answer: &[u8]) -> Decoded;

    /// Expands what a query takes of public randomness, and nothing else: the least that preparing takes.
    fn expand(&self) {}
}

/// [`SchemeClient`] with its types erased.
trait Half: Send + Sync {
    fn prepare(&self, keys: &SecretKeys) -> Option<Result<Prepared, Error>>;
    fn query(&self, prepared: Prepared, selection: &Selection) -> Result<(Vec<u8>, Pending), Error>;
    fn decode(&self, pending: Pending, answer: &[u8]) -> Result<Decoded, Error>;
    fn expand(&self);
}

impl<T: SchemeClient> Half for T {
    /// Nothing where the keys are of another type.
    fn prepare(&self, keys: &SecretKeys) -> Option<Result<Prepared, Error>> {
        let prepared = SchemeClient::prepare(self, keys.get::<T::Keys>()?);
        Some(prepared.map(|prepared| Prepared(Box::new(prepared))))
    }

    fn query(&self, prepared: Prepared, selection: &Selection) -> Result<(Vec<u8>, Pending), Error> {
        let prepared = prepared.0.downcast::<T::Prepared>().map_err(|_| Error::Foreign)?;
        let (query, pending) = SchemeClient::query(self, *prepared, selection);
        Ok((query, Pending(Box::new(pending))))
    }

    fn decode(&self, pending: Pending, answer: &[u8]) -> Result<Decoded, Error> {
        let pending = pending.0.downcast::<T::Pending>().map_err(|_| Error::Foreign)?;
        Ok(SchemeClient::decode(self, *pending, answer))
    }

    fn expand(&self) {
        SchemeClient::expand(self);
    }
}

/// The part of a query that no lookup's target enters: made ahead, used once.
pub struct Prepared(Box<dyn Any + Send>);

/// What decoding needs of a query. Wiped on drop.
pub struct Pending(Box<dyn Any + Send>);

/// What an answer decodes to. A secret: whoever sees it knows something of what was asked.
pub struct Decoded {
    /// The slot: [`Geometry::record_bytes`] bytes, whatever the answer.
    pub slot: Zeroizing<Vec<u8>>,
    /// Whether the answer is none that an honest server gives: its noise passes a bound that an honest answer passes once in
    /// 2^40 lookups. Where this is false the answer may be wrong all the same, by whole bytes. It is always false under
    /// registered keys: it would be a bit of a secret that stays.
    pub damaged: bool,
}

/// A client of one table: its parameters and what it keeps.
pub struct Client {
    params: Params,
    half: Box<dyn Half>,
}

/// What a lookup picks: columns, whose sum modulo 256 it fetches, and one group of them. It is the secret.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Selection {
    columns: Vec<u32>,
    group: u32,
}

impl Selection {
    /// Record `index` of a table whose records lie group after group.
    ///
    /// # Errors
    /// There is no such slot.
    pub fn index(geometry: &Geometry, index: u64) -> Result<Self, Error> {
        if index >= geometry.slots() {
            let max = geometry.slots() - 1;
            let remedy = "ask for a row that is there";
            return Err(Error::Range { what: "row index", got: index, min: 0, max, remedy });
        }
        let (group, column) = constant_time::divide(index, geometry.columns as u64);
        Ok(Self { columns: vec![column as u32], group: group as u32 })
    }

    /// The columns that it picks: a secret.
    #[must_use]
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The group that it picks: a secret.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.group
    }

    pub(crate) fn new(columns: Vec<u32>, group: u32) -> Self {
        Self { columns, group }
    }
}

impl Client {
    /// A client with its hint, of [`Params::hint_bytes`]: used where it lies if it is 4-byte aligned, and perhaps copied once
    /// if not.
    ///
    /// # Errors
    /// The hint has another length.
    pub fn new(params: Params, hint: SharedBytes) -> Result<Self, Error> {
        let (got, want) = ((*hint).as_ref().len(), params.hint_bytes() as usize);
        if got != want {
            let remedy = "fetch the hint of this epoch again";
            return Err(Error::Length { what: "hint", got, want, remedy });
        }
        params.scheme.get().client(&params, hint)
    }

    /// A client of a scheme's half, for [`crate::Scheme::client`] to make.
    #[must_use]
    pub fn of(params: Params, half: impl SchemeClient) -> Self {
        Self { params, half: Box::new(half) }
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Makes everything of a query that its target does not enter: fresh secrets, and their products with what is public.
    /// This is the client's work; it can be done while nobody waits.
    ///
    /// # Errors
    /// The operating system gives no randomness, or queries of this scheme are under registered keys.
    pub fn prepare(&self) -> Result<Prepared, Error> {
        let missing = Error::OtherKeys { scheme: self.params.scheme.name(), got: "missing" };
        self.half.prepare(&SecretKeys::none()).ok_or(missing)?
    }

    /// The same under the secret of keys that this client registers: it serves for as many queries as its owner wants.
    ///
    /// # Errors
    /// The operating system gives no randomness, or the keys are of other parameters.
    pub fn prepare_under(&self, keys: &SecretKeys) -> Result<Prepared, Error> {
        let (ours, scheme) = (self.params.keys_digest(), self.params.scheme.name());
        let ours = ours.ok_or(Error::NoRegisteredKeys { scheme })?;
        let other = Error::OtherKeys { scheme, got: "of other parameters" };
        if *keys.params_digest() != ours {
            return Err(other);
        }
        self.half.prepare(keys).ok_or(other)?
    }

    /// Turns a prepared query into one for `selection`. The bytes are [`Params::query_bytes`] long and
    /// indistinguishable from random whatever is selected; a prepared query is used up.
    ///
    /// # Errors
    /// The selection lies outside the matrix, or another scheme's client prepared the query.
    pub fn query(&self, prepared: Prepared, selection: &Selection) -> Result<(Vec<u8>, Pending), Error> {
        let Geometry { groups, columns, .. } = self.params.geometry;
        let inside = selection.columns.iter().fold(true, |ok, c| ok & ((*c as usize) < columns))
            & ((selection.group as usize) < groups);
        if !inside {
            let remedy = "select with this table's own geometry";
            let max = columns as u64 - 1;
            return Err(Error::Range { what: "selected column", got: columns as u64, min: 0, max, remedy });
        }
        self.half.query(prepared, selection)
    }

    /// What an answer holds: the slot, right unless the server lied or one of 2^40 honest lookups failed. Noise is noticed
    /// ([`Decoded::damaged`]); a lie of whole bytes is not to be told from here. Callers must not let a server see which it
    /// was, by sending something because of it.
    ///
    /// # Errors
    /// The answer has the wrong length, which the server knows already; or another scheme's client made the query.
    pub fn decode(&self, pending: Pending, answer: &[u8]) -> Result<Decoded, Error> {
        let (got, want) = (answer.len(), self.params.answer_bytes());
        if got != want {
            let remedy = "the server does not follow the protocol; don't ask it again";
            return Err(Error::Length { what: "answer", got, want, remedy });
        }
        let shows = !self.params.registers_keys();
        let decoded = self.half.decode(pending, answer)?;
        // Under a secret that stays, a failure that shows is a bit of it.
        Ok(Decoded { damaged: decoded.damaged & shows, ..decoded })
    }

    /// Expands what a query takes of public randomness, and nothing else: for benchmarks, the least that preparing takes.
    pub fn expand(&self) {
        self.half.expand();
    }
}
