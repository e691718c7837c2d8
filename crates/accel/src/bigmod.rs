//! The bigmod operation: batches of residues modulo one big odd number, or modulo the square of one.
//!
//! ```text
//!   Device::bigmod(modulus) ──▶ Bigmod ──place(numbers)──▶ Residues ──multiply, power, ...──▶ Residues ──read──▶ numbers
//!                                           once             in the device's own form, batch by batch
//! ```
//!
//! A modulus that is a square, as Paillier's n^2 and its p^2 are, is said to be one ([`Modulus::square_of`]): then
//! a device may keep a residue as x0 + x1 n and work on halves, which takes 5/8 of the multiplications of a
//! product and 7/12 of those of a square. The residues that come out are the same.
//!
//! What numbers are is the caller's affair; a modulus, numbers and residues may all be secret and are wiped.
//! [`Bigmod::power`] and [`FixedBase::power`] take time and touch memory by the sizes of their operands alone;
//! [`Bigmod::invert`] and [`Bigmod::mac`] are for numbers and weights that the computing party may see.

use std::sync::Arc;

use crypto_bigint::{BoxedUint, ConcatenatingMul, ConcatenatingSquare, NonZero};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{Cost, Error};

/// The largest modulus, in bits.
pub const MAX_BITS: u32 = 8192;
/// The longest exponent, in bits.
pub const MAX_EXPONENT_BITS: u32 = 16384;
/// The largest weight of a [`Mac`], as a magnitude.
pub const MAX_WEIGHT: i64 = 1 << 40;

/// Numbers of one length, 64-bit words, least significant first, one number after the other.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Numbers {
    words: usize,
    data: Vec<u64>,
}

impl Numbers {
    /// `count` zeros of `words` words each.
    #[must_use]
    pub fn zeroed(count: usize, words: usize) -> Self {
        Self { words, data: vec![0; count * words] }
    }

    /// Numbers from shorter or longer ones; what is cut off must be zero.
    ///
    /// # Panics
    /// A number does not fit `words` words.
    #[must_use]
    pub fn from_words<'a>(words: usize, numbers: impl IntoIterator<Item = &'a [u64]>) -> Self {
        let mut data = Vec::new();
        for number in numbers {
            let (low, high) = number.split_at(number.len().min(words));
            assert!(high.iter().all(|w| *w == 0), "a number of over {words} words");
            data.extend_from_slice(low);
            data.extend(std::iter::repeat_n(0, words - low.len()));
        }
        Self { words, data }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len().checked_div(self.words).unwrap_or(0)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Words of each.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The number at `position`.
    #[must_use]
    pub fn get(&self, position: usize) -> &[u64] {
        &self.data[position * self.words..][..self.words]
    }

    /// The number at `position`, to be written.
    #[must_use]
    pub fn get_mut(&mut self, position: usize) -> &mut [u64] {
        &mut self.data[position * self.words..][..self.words]
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, u64> {
        self.data.chunks_exact(self.words.max(1))
    }

    /// All words.
    #[must_use]
    pub fn as_words(&self) -> &[u64] {
        &self.data
    }

    /// All words, to be written.
    #[must_use]
    pub fn as_words_mut(&mut self) -> &mut [u64] {
        &mut self.data
    }
}

/// What residues are taken modulo: an odd number above one, or the square of one.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Modulus {
    root: Vec<u64>,
    value: Vec<u64>,
    square: bool,
}

impl Modulus {
    /// An odd number above one, of at most [`MAX_BITS`] bits.
    ///
    /// # Errors
    /// It is even, one, or too long.
    pub fn odd(words: &[u64]) -> Result<Self, Error> {
        let root = trim(words);
        check(&root, MAX_BITS)?;
        Ok(Self { value: root.clone(), root, square: false })
    }

    /// The square of an odd number above one, of at most half of [`MAX_BITS`] bits.
    ///
    /// # Errors
    /// The root is even, one, or too long.
    pub fn square_of(root: &[u64]) -> Result<Self, Error> {
        let root = trim(root);
        check(&root, MAX_BITS / 2)?;
        let n = BoxedUint::from_words(root.iter().copied());
        let value = trim(n.concatenating_square().as_words());
        Ok(Self { root, value, square: true })
    }

    /// The modulus, without leading zero words.
    #[must_use]
    pub fn value(&self) -> &[u64] {
        &self.value
    }

    /// The number that it is the square of, or itself.
    #[must_use]
    pub fn root(&self) -> &[u64] {
        &self.root
    }

    /// Whether it was made by [`Modulus::square_of`].
    #[must_use]
    pub fn is_square(&self) -> bool {
        self.square
    }

    /// Its length in words: that of its residues.
    #[must_use]
    pub fn words(&self) -> usize {
        self.value.len()
    }

    /// Its length in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        bits(&self.value)
    }
}

fn trim(words: &[u64]) -> Vec<u64> {
    let used = words.iter().rposition(|w| *w != 0).map_or(0, |i| i + 1);
    words[..used].to_vec()
}

fn bits(words: &[u64]) -> u32 {
    words.last().map_or(0, |top| 64 * words.len() as u32 - top.leading_zeros())
}

fn check(words: &[u64], limit: u32) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::Modulus { why });
    match words {
        [] | [1] => refuse("it is not above one".into()),
        [low, ..] if low % 2 == 0 => refuse("it is even; Montgomery's form asks for an odd one".into()),
        _ if bits(words) > limit => {
            refuse(format!("it has {} bits where at most {limit} are carried", bits(words)))
        }
        _ => Ok(()),
    }
}

/// A line of memory, on its own boundary.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub struct Line(pub [u64; 8]);

impl Zeroize for Line {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Residues in the form in which one device keeps them, modulo one modulus, one row after the other.
///
/// Rows can be chosen, joined and cut without the device; what is in them only the device knows.
#[derive(Clone)]
pub struct Residues {
    modulus: Arc<Modulus>,
    form: &'static str,
    row_lines: usize,
    lines: Vec<Line>,
}

impl Drop for Residues {
    fn drop(&mut self) {
        self.lines.zeroize();
    }
}

impl Residues {
    /// `count` rows of `row_lines` zeroed lines, for a device to fill. `form` names what the device keeps in them.
    ///
    /// # Panics
    /// They are more lines than can be addressed.
    #[must_use]
    pub fn zeroed(modulus: &Arc<Modulus>, form: &'static str, row_lines: usize, count: usize) -> Self {
        let lines = row_lines.checked_mul(count).expect("rows that can be addressed");
        let lines = vec![Line([0; 8]); lines];
        Self { modulus: Arc::clone(modulus), form, row_lines, lines }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len().checked_div(self.row_lines).unwrap_or(0)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lines of a row.
    #[must_use]
    pub fn row_lines(&self) -> usize {
        self.row_lines
    }

    /// Every row, for the device.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Every row, for the device.
    #[must_use]
    pub fn lines_mut(&mut self) -> &mut [Line] {
        &mut self.lines
    }

    /// Those at `positions`, in that order.
    ///
    /// # Panics
    /// A position is out of range.
    #[must_use]
    pub fn select(&self, positions: impl IntoIterator<Item = usize>) -> Self {
        let mut lines = Vec::new();
        for position in positions {
            lines.extend_from_slice(&self.lines[position * self.row_lines..][..self.row_lines]);
        }
        Self { modulus: Arc::clone(&self.modulus), form: self.form, row_lines: self.row_lines, lines }
    }

    /// These and then `others`.
    ///
    /// # Errors
    /// They belong to another modulus or device.
    pub fn append(&mut self, others: &Self) -> Result<(), Error> {
        others.check(&self.modulus, self.form, self.row_lines)?;
        self.lines.extend_from_slice(&others.lines);
        Ok(())
    }

    /// That these are residues of `modulus` in the form `form`, with rows of `row_lines` lines. Anybody may have made them:
    /// a device that reads them by address relies on this.
    ///
    /// # Errors
    /// They are not.
    pub fn check(&self, modulus: &Arc<Modulus>, form: &str, row_lines: usize) -> Result<(), Error> {
        let same = Arc::ptr_eq(&self.modulus, modulus) || self.modulus == *modulus;
        if same && self.form == form && self.row_lines != row_lines {
            let (what, want) = ("a row of residues", row_lines.to_string());
            return Err(Error::Length { what, got: self.row_lines, want, unit: "lines" });
        }
        if !same || self.form != form {
            return Err(Error::Residues { got: self.form, want: form.into(), same_modulus: same });
        }
        Ok(())
    }
}

/// What residues are raised to. Secret: only its length and number show.
pub enum Exponents<'a> {
    /// One exponent for every residue, and how many of its bits count.
    Shared(&'a [u64], u32),
    /// An exponent for each residue, and how many of their bits count.
    Each(&'a Numbers, u32),
}

/// A weighing: `out[p, m] = product over k of x[index[p, k]] ^ weight[m, k]`, Paillier's dot product.
///
/// `positions` P by `terms` K indices into the residues, [`Mac::ABSENT`] for a term that is not there (the padding
/// of a convolution); `outputs` M by K signed weights. Results are ordered by position, then by output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mac {
    /// K, at least 1.
    pub terms: usize,
    /// P x K indices.
    pub indices: Vec<u32>,
    /// M x K weights, each at most [`MAX_WEIGHT`] in magnitude.
    pub weights: Vec<i64>,
    /// How; devices that know one way only may ignore it, for the results are the same.
    pub method: Method,
}

impl Mac {
    /// The index of a term that is not there.
    pub const ABSENT: u32 = u32::MAX;

    /// Every output from all of `terms` residues: a matrix of weights times a vector.
    #[must_use]
    pub fn matrix(terms: usize, weights: Vec<i64>) -> Self {
        Self { terms, indices: (0..terms as u32).collect(), weights, method: Method::Auto }
    }

    /// P.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.indices.len() / self.terms.max(1)
    }

    /// M.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.weights.len() / self.terms.max(1)
    }

    /// That shapes, indices and weights are in range for `count` residues.
    ///
    /// # Errors
    /// They are not; the first that is out of range is named.
    pub fn check(&self, count: usize) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Mac { why });
        if self.terms == 0 {
            return refuse("it has no terms".into());
        }
        if !self.indices.len().is_multiple_of(self.terms) || !self.weights.len().is_multiple_of(self.terms) {
            return refuse(format!(
                "{} indices and {} weights are not whole rows of {} terms",
                self.indices.len(),
                self.weights.len(),
                self.terms
            ));
        }
        if self.positions().checked_mul(self.outputs()).is_none_or(|n| n > u32::MAX as usize) {
            return refuse(format!(
                "{} positions by {} outputs are over the {} results that are addressed",
                self.positions(),
                self.outputs(),
                u32::MAX
            ));
        }
        if let Some(i) = self.indices.iter().position(|i| *i != Self::ABSENT && *i as usize >= count) {
            return refuse(format!(
                "index {} of position {} is not below the {count} residues",
                self.indices[i],
                i / self.terms
            ));
        }
        if let Some(i) = self.weights.iter().position(|w| w.unsigned_abs() > MAX_WEIGHT as u64) {
            return refuse(format!(
                "weight {} of output {} is over {MAX_WEIGHT} in magnitude",
                self.weights[i],
                i / self.terms
            ));
        }
        Ok(())
    }
}

/// How a [`Mac`] is worked out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The cheapest of the others by the device's cost model.
    #[default]
    Auto,
    /// PH-EPU's dataflow (Fig. 15.4.4): a partial product for each bit of the weights, zero bits skipped; each
    /// aligned by squarings, the sign bit's inverted once.
    BitSerial,
    /// Pippenger: a bucket for each magnitude, inputs inverted beforehand for negative weights.
    Buckets,
    /// Straus: the products of every subset of a few inputs, looked up bit by bit of the weights and shared by all
    /// outputs of a position.
    Tables,
}

/// What a device's bigmod slot takes; read it before you prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigmodCapabilities {
    /// The longest modulus, in bits; at most [`MAX_BITS`].
    pub bits: u32,
    /// The ways of a [`Mac`] that it tells apart; asked for another, it takes one of these. The results are the same.
    pub methods: Vec<Method>,
    /// Whether it is simulated, so that its speed says nothing about this machine.
    pub simulated: bool,
}

/// The bigmod slot of a device.
pub trait BigmodSlot: Send + Sync {
    /// What it takes.
    fn capabilities(&self) -> BigmodCapabilities;

    /// Whether it takes this modulus; [`BigmodSlot::prepare`] refuses the same moduli, and no others.
    ///
    /// # Errors
    /// [`Error::Modulus`] says which limit it breaks.
    fn check(&self, modulus: &Modulus) -> Result<(), Error> {
        let limit = self.capabilities().bits;
        if modulus.bits() > limit {
            let why = format!("it has {} bits, where this device carries at most {limit}", modulus.bits());
            return Err(Error::Modulus { why });
        }
        Ok(())
    }

    /// Prepares arithmetic modulo one number.
    ///
    /// # Errors
    /// As [`BigmodSlot::check`].
    fn prepare(&self, modulus: &Modulus) -> Result<Box<dyn Bigmod>, Error>;
}

/// The bigmod operation for one modulus on one device.
pub trait Bigmod: Send + Sync {
    /// The modulus.
    fn modulus(&self) -> &Arc<Modulus>;

    /// Takes numbers below the modulus into the device's form.
    ///
    /// # Errors
    /// A number is not below the modulus, or numbers have another length than [`Modulus::words`].
    fn place(&self, numbers: &Numbers) -> Result<Residues, Error>;

    /// Gives residues back as numbers below the modulus, of [`Modulus::words`] words.
    ///
    /// # Errors
    /// The residues are not this modulus's or not this device's, here as in every operation below.
    fn read(&self, residues: &Residues) -> Result<Numbers, Error>;

    /// `x[i] * y[i]`; a single `y` serves all.
    ///
    /// # Errors
    /// As [`Bigmod::read`]; or lengths differ.
    fn multiply(&self, x: &Residues, y: &Residues) -> Result<(Residues, Cost), Error>;

    /// `x[i] ^ (2 ^ times)`.
    ///
    /// # Errors
    /// As [`Bigmod::read`].
    fn square(&self, x: &Residues, times: u32) -> Result<(Residues, Cost), Error>;

    /// `x[i] ^ exponent[i]`, in time that depends on nothing but lengths.
    ///
    /// # Errors
    /// As [`Bigmod::read`]; or an exponent is over its length or [`MAX_EXPONENT_BITS`].
    fn power(&self, x: &Residues, exponents: &Exponents<'_>) -> Result<(Residues, Cost), Error>;

    /// Prepares powers of the single residue `base` to exponents of up to `bits` bits.
    ///
    /// # Errors
    /// As [`Bigmod::read`]; or there is not one base; or `bits` is zero or over [`MAX_EXPONENT_BITS`].
    fn fixed_base(&self, base: &Residues, bits: u32) -> Result<Box<dyn FixedBase>, Error>;

    /// `x[i] ^ -1`. Its time shows something of what it inverts.
    ///
    /// # Errors
    /// As [`Bigmod::read`]; or one shares a factor with the modulus, which is named by its position.
    fn invert(&self, x: &Residues) -> Result<(Residues, Cost), Error>;

    /// Weighs residues; see [`Mac`]. Its time shows weights.
    ///
    /// # Errors
    /// As [`Bigmod::invert`]; or as [`Mac::check`].
    fn mac(&self, x: &Residues, mac: &Mac) -> Result<(Residues, Cost), Error>;
}

/// Powers of one base, prepared by [`Bigmod::fixed_base`].
pub trait FixedBase: Send + Sync {
    /// `base ^ exponents[i]`, in time that depends on nothing but lengths.
    ///
    /// # Errors
    /// An exponent is longer than was prepared for.
    fn power(&self, exponents: &Numbers) -> Result<(Residues, Cost), Error>;

    /// Bytes of its tables.
    fn bytes(&self) -> usize;
}

/// That `exponents` are as many as `count` and no longer than they say.
///
/// # Errors
/// They are not.
pub fn check_exponents(exponents: &Exponents<'_>, count: usize) -> Result<(), Error> {
    let (numbers, limit): (Vec<&[u64]>, u32) = match exponents {
        Exponents::Shared(e, limit) => (vec![e], *limit),
        Exponents::Each(e, limit) => {
            if e.len() != count {
                return Err(Error::Length {
                    what: "exponents",
                    got: e.len(),
                    want: count.to_string(),
                    unit: "numbers",
                });
            }
            (e.iter().collect(), *limit)
        }
    };
    if limit == 0 || limit > MAX_EXPONENT_BITS {
        let why = format!("exponents of {limit} bits; 1 to {MAX_EXPONENT_BITS} are carried");
        return Err(Error::Exponent { why });
    }
    let mut over = 0;
    for number in numbers {
        // Without a branch on the exponent: what is above `limit` is gathered, and only then looked at.
        for (i, word) in number.iter().enumerate() {
            let low = limit.saturating_sub(64 * i as u32).min(64);
            over |= if low == 64 { 0 } else { word >> low };
        }
    }
    if over != 0 {
        return Err(Error::Exponent { why: format!("one has more than the {limit} bits said") });
    }
    Ok(())
}

/// The definition of each operation, by plain multiplication and division: what every device is compared with.
pub mod reference {
    use super::{BoxedUint, ConcatenatingMul, Mac, Modulus, NonZero, bits};

    fn modulus(m: &Modulus) -> NonZero<BoxedUint> {
        NonZero::new(BoxedUint::from_words(m.value().iter().copied())).expect("a modulus is above one")
    }

    fn words(x: &BoxedUint, m: &Modulus) -> Vec<u64> {
        let mut words = x.as_words().to_vec();
        words.resize(m.words(), 0);
        words
    }

    /// `x * y mod m`.
    #[must_use]
    pub fn multiply(m: &Modulus, x: &[u64], y: &[u64]) -> Vec<u64> {
        let x = BoxedUint::from_words(x.iter().copied());
        let y = BoxedUint::from_words(y.iter().copied());
        words(&x.concatenating_mul(&y).rem(&modulus(m)), m)
    }

    /// `x ^ e mod m`, bit by bit.
    #[must_use]
    pub fn power(m: &Modulus, x: &[u64], e: &[u64]) -> Vec<u64> {
        let mut out = one(m);
        for bit in (0..bits(&super::trim(e))).rev() {
            out = multiply(m, &out, &out);
            if e[bit as usize / 64] >> (bit % 64) & 1 == 1 {
                out = multiply(m, &out, x);
            }
        }
        out
    }

    /// One.
    #[must_use]
    pub fn one(m: &Modulus) -> Vec<u64> {
        let mut out = vec![0; m.words()];
        out[0] = 1;
        out
    }

    /// A weighing of `x` with inverses `inverse`, term by term.
    #[must_use]
    pub fn mac(m: &Modulus, x: &[Vec<u64>], inverse: &[Vec<u64>], mac: &Mac) -> Vec<Vec<u64>> {
        let mut out = Vec::new();
        for indices in mac.indices.chunks(mac.terms) {
            for weights in mac.weights.chunks(mac.terms) {
                let mut product = one(m);
                for (index, weight) in indices.iter().zip(weights) {
                    if *index != Mac::ABSENT {
                        let base = if *weight < 0 { &inverse[*index as usize] } else { &x[*index as usize] };
                        product = multiply(m, &product, &power(m, base, &[weight.unsigned_abs()]));
                    }
                }
                out.push(product);
            }
        }
        out
    }
}
