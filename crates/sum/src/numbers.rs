//! Arrays of numbers encrypted and decrypted: what is between files of numbers and files of ciphertexts.

mod limits;
mod weights;

use std::ops::Range;
use std::path::Path;

use blindcore_accel::bigmod::Numbers;
use blindcore_files::{Access, Existing};
use blindcore_numbers::{Content, Format, Source, Values};
/// Told how many numbers are done, and of how many.
pub use blindcore_units::Progress;
use blindcore_units::Unit;
use ndarray::{ArrayD, IxDyn};

use crate::ciphertexts::Ciphertexts;
use crate::disk::{self, DiskError};
use crate::encoding::{self, Bound, Encoding, Form, Plaintexts, float_parts, integer_parts};
use crate::evaluate::Evaluator;
use crate::file;
use crate::keys::KeyId;
use crate::packing::Packing;
use crate::scheme::Decryptor;

pub use weights::{read_weights, weights};
pub(crate) use weights::{to_decimals, weights_called, weights_source};

/// What decrypts to within this many bits of the key's length is taken as under another key.
const IMPLAUSIBLE_BITS: u32 = 48;
/// Numbers between two looks at how far it is.
const BLOCK: usize = 4096;

/// Why numbers can't be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NumbersError {
    /// Options that say nothing for these numbers.
    #[error("these {what} are {are}, for which {options}; say {remedy}")]
    Options {
        /// What is said of: numbers, weights.
        what: &'static str,
        /// What they are.
        are: &'static str,
        /// The options that say nothing.
        options: &'static str,
        /// Those that do.
        remedy: &'static str,
    },
    /// Ciphertexts under another key.
    #[error(
        "{path} is under key {got} of {got_bits} bits, not under {want} of {want_bits}; decrypt with the key that it was \
         encrypted with"
    )]
    Key {
        /// The file.
        path: String,
        /// Its key.
        got: KeyId,
        /// The length of that.
        got_bits: u32,
        /// The key that is held.
        want: KeyId,
        /// The length of that.
        want_bits: u32,
    },
    /// There are none.
    #[error("{origin} holds no numbers; give at least one weight")]
    NoWeights {
        /// The file.
        origin: String,
    },
    /// There are none.
    #[error("{origin} holds no numbers; there is nothing to encrypt")]
    Empty {
        /// What holds none.
        origin: String,
    },
    /// A number over what was declared.
    #[error("{place} of {origin}: {over}; say {remedy}")]
    Over {
        /// Where it stands.
        place: String,
        /// In what.
        origin: String,
        /// The number, and what it is over.
        over: String,
        /// The option that all of them keep to.
        remedy: String,
    },
    /// Numbers or ciphertexts of a file that are refused.
    #[error("{origin}: {error}")]
    In {
        /// The file.
        origin: String,
        /// Why.
        #[source]
        error: encoding::EncodingError,
    },
    /// A weight of over 63 bits.
    #[error(
        "{place} of {origin}: {value} has over 63 bits in its unit, and weights have up to 63; say a coarser --precision"
    )]
    Weights {
        /// Where it stands.
        place: String,
        /// In what.
        origin: String,
        /// The weight.
        value: String,
    },
    /// A model or a bias that is none.
    #[error("{option} {text:?} {why}")]
    Model {
        /// The option that named it.
        option: &'static str,
        /// What was said.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file of numbers can't be read.
    #[error(transparent)]
    Source(#[from] blindcore_numbers::Error),
    /// Numbers that have no encoding.
    #[error(transparent)]
    Encoding(#[from] encoding::EncodingError),
    /// The file can't be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The scheme refuses.
    #[error(transparent)]
    Scheme(#[from] crate::scheme::PaillierError),
    /// The ciphertexts of python-paillier are refused.
    #[error("{origin}: {error}")]
    Phe {
        /// The file.
        origin: String,
        /// Why.
        #[source]
        error: crate::phe::PheError,
    },
}

impl NumbersError {
    fn within(path: &Path) -> impl Fn(encoding::EncodingError) -> Self + '_ {
        |error| NumbersError::In { origin: path.display().to_string(), error }
    }
}

/// What numbers are declared to keep to: public, so not taken from them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Declared {
    /// Bits of an integer, its sign's included; 32 unless it is said.
    pub bits: Option<u32>,
    /// Floats are rounded to the next power of 10 below this; 1e-9 unless it is said.
    pub precision: Option<f64>,
    /// They are rounded to powers of 16: python-paillier knows no others.
    pub phe: bool,
    /// Floats are at most this large; 1e9 unless it is said.
    pub magnitude: Option<f64>,
}

impl Declared {
    /// How many decimals floats keep, where their unit is one of decimals; below 0, to which power of ten they are rounded. What
    /// [`Source::with_decimals`] is told.
    #[must_use]
    pub fn decimals(&self) -> Option<i32> {
        self.floats().ok().filter(|encoding| encoding.exponent() == 0).map(|encoding| encoding.decimals())
    }

    fn floats(&self) -> Result<Encoding, encoding::EncodingError> {
        let encoding = if self.phe { Encoding::fixed } else { Encoding::decimal };
        encoding(self.precision.unwrap_or(1e-9), self.most())
    }

    fn most(&self) -> f64 {
        self.magnitude.unwrap_or(1e9)
    }

    /// The encoding for these numbers, and how many bits they have.
    ///
    /// `say` is told where they can't be decimals.
    ///
    /// # Errors
    /// Something is declared that these numbers don't have, a float is over the magnitude, or there is no such encoding.
    pub fn encoding(
        &self,
        content: &Content,
        say: &mut dyn FnMut(String),
    ) -> Result<(Encoding, u32), NumbersError> {
        match &content.values {
            Values::Int(_) if self.precision.is_some() || self.magnitude.is_some() => {
                Err(NumbersError::Options {
                    what: "numbers",
                    are: "integers",
                    options: "--precision and --magnitude say nothing",
                    remedy: "--bits",
                })
            }
            Values::Float(_) if self.bits.is_some() => Err(NumbersError::Options {
                what: "numbers",
                are: "floats",
                options: "--bits says nothing",
                remedy: "--precision and --magnitude",
            }),
            Values::Int(_) => {
                let bits = self.bits.unwrap_or(32);
                Ok((Encoding::integers(bits)?, bits))
            }
            Values::Float(array) => {
                let encoding = self.floats()?;
                // As they are, not in units: those that are over it may be rounded to as many.
                let most = self.most();
                if let Some(position) = array.iter().position(|value| value.abs() > most) {
                    return Err(limits::over_magnitude(content, position, most));
                }
                if !self.phe {
                    let remedy = "a coarser --precision or a smaller --magnitude keeps decimals";
                    limits::say_floats(encoding, "numbers", remedy, say);
                }
                Ok((encoding, encoding.bound().bits() + 1))
            }
        }
    }
}

/// A precision or a magnitude that was written; whether it is above zero and finite is said by [`Encoding`]. One that is, and
/// no float is near it, is refused.
///
/// # Errors
/// Says in words what is wrong.
pub fn parameter(text: &str) -> Result<f64, &'static str> {
    let value = text.parse().map_err(|_| "not a number; say one over 0, such as 0.01 or 1e6")?;
    let beyond = value == 0.0 || f64::is_infinite(value);
    if beyond && text.contains(|c| matches!(c, '1'..='9')) {
        return Err("not within 4.9e-324 to 1.8e308; say one such as 0.01 or 1e6");
    }
    Ok(value)
}

/// Numbers as mantissas of an encoding, those of a part in their order, half to even: decimals as they were written, floats as
/// the binary numbers that they are.
fn mantissas<'a>(
    content: &'a Content,
    encoding: Encoding,
    part: Range<usize>,
) -> Box<dyn ExactSizeIterator<Item = Result<(bool, u64, u32), encoding::EncodingError>> + 'a> {
    let Range { start, end } = part;
    match &content.values {
        Values::Int(array) => {
            let part = array.iter().skip(start).take(end - start).enumerate();
            Box::new(part.map(move |(i, v)| encoding.mantissa(start + i, integer_parts(*v))))
        }
        Values::Float(array) => {
            let exact = limits::exact(content, encoding);
            let part = array.iter().skip(start).take(end - start).enumerate();
            Box::new(part.map(move |(i, v)| {
                let position = start + i;
                match exact.binary_search_by_key(&position, |(position, _)| *position) {
                    Ok(at) => {
                        let units = exact[at].1;
                        encoding.within(position, (units < 0, units.unsigned_abs() * encoding.step(), 0))
                    }
                    Err(_) => encoding.mantissa(position, float_parts(position, *v)?),
                }
            }))
        }
    }
}

/// Encrypts numbers, one in each ciphertext or, with a packing, several. `say` is told what a person wants to know.
///
/// # Errors
/// There is none, a number does not fit the encoding or the packing, or the device refuses.
pub fn encrypt(
    evaluator: &Evaluator,
    content: &Content,
    encoding: Encoding,
    packing: Option<Packing>,
    say: &mut dyn FnMut(String),
    progress: &mut dyn Progress,
) -> Result<Ciphertexts, NumbersError> {
    let (key, encryptor) = (evaluator.key(), evaluator.encryptor());
    let (shape, total) = (content.values.shape(), content.values.len());
    if total == 0 {
        return Err(NumbersError::Empty { origin: content.origin.clone() });
    }
    limits::say_lost(content, encoding, "numbers", say);
    let refused = |error| limits::refused(content, encoding, error);
    if let Some(packing) = packing {
        let mantissas = mantissas(content, encoding, 0..total);
        let plaintexts = Plaintexts::pack(key, shape, encoding, packing, mantissas).map_err(refused)?;
        return Ok(Ciphertexts::encrypt(encryptor, &plaintexts)?);
    }
    let mut parts = Vec::new();
    for first in (0..total).step_by(BLOCK) {
        progress.at("encrypting", first as u64, Some(total as u64), Unit::Items);
        let mantissas = mantissas(content, encoding, first..total.min(first + BLOCK));
        let plaintexts = Plaintexts::encode(key, &[mantissas.len()], encoding, mantissas);
        parts.push(Ciphertexts::encrypt(encryptor, &plaintexts.map_err(refused)?)?);
    }
    Ok(Ciphertexts::concatenate(&parts.iter().collect::<Vec<_>>())?.reshape(shape)?)
}

/// Reads numbers; a single one without an axis is a list of one. Names of columns that nobody mentioned are said, and lines
/// that may be numbers with separators of thousands.
///
/// # Errors
/// The source can't be read, holds something else, or has no first line that `--header` could be of.
pub fn read(source: &Source, say: &mut dyn FnMut(String)) -> Result<Content, blindcore_numbers::Error> {
    source.check()?;
    let content = blindcore_numbers::read_content(source)?;
    if let Some(names) = &content.names {
        let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        say(format!("note: the first line of {source} holds names, not numbers: {}", names.join(", ")));
    }
    if content.separated {
        let columns = content.values.shape().last().copied().unwrap_or_default();
        say(format!(
            "note: each line of {source} is read as {columns} numbers, all but the first of three digits; where 1,234 is one \
             number, write 1234"
        ));
    }
    let single = content.values.shape().is_empty();
    Ok(if single { content.shaped(Values::in_rows) } else { content })
}

/// Decrypted numbers as they are written.
#[derive(Clone, Debug, PartialEq)]
pub enum Results {
    /// Integers of up to 63 bits, or floats.
    Values(Values),
    /// Numbers of which one is in decimals: it has more digits than a float holds, or is smaller than all floats.
    Exact {
        /// All as text, exactly.
        texts: ArrayD<String>,
        /// The nearest floats, for formats that hold nothing else.
        nearest: ArrayD<f64>,
    },
    /// As text: integers of which one is longer, or a point was set among their digits; or floats, where what is over the
    /// largest of them stands in decimals.
    Decimals(ArrayD<String>),
}

impl Results {
    /// The length of each axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        match self {
            Results::Values(values) => values.shape(),
            Results::Exact { texts: array, .. } | Results::Decimals(array) => array.shape(),
        }
    }

    /// Integers with the point before their last `digits` digits: cents as euros, with 2.
    ///
    /// # Errors
    /// These are floats.
    pub fn scaled(self, digits: usize) -> Result<Self, NumbersError> {
        if digits == 0 {
            return Ok(self);
        }
        let point = |text: String| {
            let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |text| ("-", text));
            let text = format!("{text:0>width$}", width = digits + 1);
            let (whole, part) = text.split_at(text.len() - digits);
            format!("{sign}{whole}.{part}")
        };
        match self {
            Results::Values(Values::Int(array)) => {
                Ok(Results::Decimals(array.mapv(|v| point(v.to_string()))))
            }
            Results::Decimals(array) if !array.iter().any(|v| v.contains(['.', 'e'])) => {
                Ok(Results::Decimals(array.mapv(point)))
            }
            Results::Decimals(_) | Results::Exact { .. } | Results::Values(Values::Float(_)) => {
                Err(NumbersError::Options {
                    what: "numbers",
                    are: "floats",
                    options: "--scale says nothing",
                    remedy: "it of integers alone",
                })
            }
        }
    }

    /// The numbers in their order: integers and floats as such, decimals as strings, which keep every digit.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Results::Values(Values::Int(array)) => array.iter().copied().collect(),
            Results::Values(Values::Float(array)) => array.iter().copied().collect(),
            Results::Exact { texts: array, .. } | Results::Decimals(array) => {
                array.iter().map(String::as_str).collect()
            }
        }
    }

    /// What is to be said where they go to a file of this name.
    #[must_use]
    pub fn note(&self, path: &Path) -> Option<&'static str> {
        let held = !matches!(self, Results::Exact { .. }) || Format::of(path).is_err() || is_text(path);
        (!held).then_some(
            "note: some results have more digits than a float holds; CSV and JSON have all, this format the nearest floats",
        )
    }

    /// Writes a file in the format that its ending names, for its owner alone: they were encrypted.
    ///
    /// # Errors
    /// The format can't hold them, what is there is to be kept, or the system refuses.
    pub fn write(&self, path: &Path, existing: Existing) -> Result<(), blindcore_numbers::Error> {
        match self {
            Results::Values(values) => {
                blindcore_numbers::write(path, Access::Private, existing, values, None)
            }
            Results::Exact { nearest, .. } if !is_text(path) => blindcore_numbers::write(
                path,
                Access::Private,
                existing,
                &Values::Float(nearest.clone()),
                None,
            ),
            Results::Exact { texts: array, .. } | Results::Decimals(array) => {
                blindcore_numbers::write_decimals(path, Access::Private, existing, array)
            }
        }
    }

    /// CSV, in which all axes but the last are rows.
    ///
    /// # Errors
    /// There are none of them.
    pub fn to_csv(&self) -> Result<Vec<u8>, blindcore_numbers::Error> {
        let mut text = Vec::new();
        match self {
            Results::Values(values) => {
                blindcore_numbers::encode(Format::Csv, &values.clone().in_rows(), None, &mut text)?;
            }
            Results::Exact { texts: array, .. } | Results::Decimals(array) => {
                blindcore_numbers::encode_decimals(Format::Csv, array, &mut text)?;
            }
        }
        Ok(text)
    }
}

/// Decrypts a file of ciphertexts, of either kind.
///
/// # Errors
/// The file can't be read or is damaged, or its ciphertexts are under another key.
pub fn decrypt(
    path: &Path,
    decryptor: &Decryptor,
    progress: &mut dyn Progress,
) -> Result<Results, NumbersError> {
    if !disk::ends_in(path, "jsonl") {
        return decrypt_file(path, decryptor, progress);
    }
    let phe = |error| NumbersError::Phe { origin: path.display().to_string(), error };
    let mut batches = disk::read_phe(path, decryptor.public())?.plaintexts(decryptor).map_err(phe)?;
    // Nothing says which key they are under: what is under another decrypts to numbers as long as the key.
    let plausible = Bound::scaled(1, decryptor.public().bits().saturating_sub(IMPLAUSIBLE_BITS));
    for (_, plaintexts) in &mut batches {
        plaintexts.form.bound = plausible;
    }
    by_position(&batches).map_err(|error| match error {
        encoding::EncodingError::Overflow { position, .. } => phe(crate::phe::PheError::Long { position }),
        error => NumbersError::within(path)(error),
    })
}

/// Integers where the exponent says that they are, exactly, else floats; what a float does not hold in decimals ([`Plaintexts::to_texts`]).
///
/// # Errors
/// They don't keep to what is known of them.
pub fn decode(plaintexts: &Plaintexts) -> Result<Results, encoding::EncodingError> {
    let shape = plaintexts.form().numbers_shape();
    decode_all(&shape, is_whole(plaintexts.form()), std::slice::from_ref(plaintexts))
}

/// Whether numbers of this form are integers.
fn is_whole(form: &Form) -> bool {
    (form.exponent, form.scale) == (0, 0)
}

/// The numbers of several batches, one behind the other.
fn decode_all(
    shape: &[usize],
    whole: bool,
    batches: &[Plaintexts],
) -> Result<Results, encoding::EncodingError> {
    fn join<T>(
        batches: &[Plaintexts],
        decode: impl Fn(&Plaintexts) -> Result<Vec<T>, encoding::EncodingError>,
    ) -> Result<Vec<T>, encoding::EncodingError> {
        let parts = batches.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
        Ok(parts.into_iter().flatten().collect())
    }
    if whole {
        return match join(batches, Plaintexts::to_i64) {
            Ok(integers) => Ok(Results::Values(Values::Int(array(shape, integers)))),
            Err(_) => Ok(Results::Decimals(array(shape, join(batches, Plaintexts::to_decimals)?))),
        };
    }
    Ok(from_texts(shape, join(batches, Plaintexts::to_texts)?))
}

/// Floats from their texts, and the texts where they have more than the floats.
fn from_texts(shape: &[usize], texts: Vec<String>) -> Results {
    let floats: Vec<f64> = texts.iter().map(|text| text.parse().unwrap_or(f64::INFINITY)).collect();
    if floats.iter().any(|v| v.is_infinite()) {
        return Results::Decimals(array(shape, texts));
    }
    let all = floats.iter().zip(&texts).all(|(v, text)| format!("{v:?}") == *text);
    let nearest = array(shape, floats);
    if all {
        Results::Values(Values::Float(nearest))
    } else {
        Results::Exact { texts: array(shape, texts), nearest }
    }
}

/// Whether a file holds numbers as text, of any length.
fn is_text(path: &Path) -> bool {
    matches!(Format::of(path), Ok(Format::Csv | Format::Tsv))
}

fn array<T>(shape: &[usize], values: Vec<T>) -> ArrayD<T> {
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many as the shape has")
}

/// Numbers of several batches in their order: integers where all are, exactly, else floats; what a float does not
/// hold in decimals.
fn by_position(batches: &[(Vec<usize>, Plaintexts)]) -> Result<Results, encoding::EncodingError> {
    fn place<T: Clone + Default>(
        batches: &[(Vec<usize>, Plaintexts)],
        decode: impl Fn(&Plaintexts) -> Result<Vec<T>, encoding::EncodingError>,
    ) -> Result<Vec<T>, encoding::EncodingError> {
        let count = batches.iter().map(|(positions, _)| positions.len()).sum();
        let mut out = vec![T::default(); count];
        for (positions, plaintexts) in batches {
            let decoded = decode(plaintexts).map_err(|error| match error {
                encoding::EncodingError::Overflow { position, limit } => {
                    encoding::EncodingError::Overflow { position: positions[position], limit }
                }
                error => error,
            });
            for (position, value) in positions.iter().zip(decoded?) {
                out[*position] = value;
            }
        }
        Ok(out)
    }
    let shape = [batches.iter().map(|(positions, _)| positions.len()).sum()];
    if let Ok(integers) = place(batches, Plaintexts::to_i64) {
        return Ok(Results::Values(Values::Int(array(&shape, integers))));
    }
    if batches.iter().all(|(_, plaintexts)| is_whole(plaintexts.form())) {
        return Ok(Results::Decimals(array(&shape, place(batches, Plaintexts::to_decimals)?)));
    }
    Ok(from_texts(&shape, place(batches, Plaintexts::to_texts)?))
}

fn decrypt_file(
    path: &Path,
    decryptor: &Decryptor,
    progress: &mut dyn Progress,
) -> Result<Results, NumbersError> {
    let mut reader = disk::open(path)?;
    let (key, header) = (decryptor.public(), reader.header().clone());
    if !key.decrypts(header.key) || header.key_bits != key.bits() {
        return Err(NumbersError::Key {
            path: path.display().to_string(),
            got: header.key,
            got_bits: header.key_bits,
            want: key.id(),
            want_bits: key.bits(),
        });
    }
    let damaged = |error: file::FileError| DiskError::Ciphertexts { path: path.to_owned(), error };
    let refused = NumbersError::within(path);
    let (total, words) = (reader.count(), key.ciphertext_words());
    let mut done = 0;
    let mut packed: Vec<u64> = Vec::new();
    let mut plain: Vec<Plaintexts> = Vec::new();
    while let Some(block) = reader.next_block().map_err(damaged)? {
        progress.at("decrypting", done, Some(total), Unit::Items);
        done += block.len() as u64;
        if header.form.packed.is_some() {
            packed.extend_from_slice(block.as_words());
        } else {
            let form = Form { packed: None, shape: vec![block.len()], ..header.form.clone() };
            plain.push(Plaintexts::decrypt(decryptor, &block, &form).map_err(&refused)?);
        }
    }
    let results = if header.form.packed.is_some() {
        let numbers = Numbers::from_words(words, packed.chunks_exact(words));
        decode(&Plaintexts::decrypt(decryptor, &numbers, &header.form).map_err(&refused)?)
    } else {
        decode_all(&header.form.numbers_shape(), is_whole(&header.form), &plain)
    };
    results.map_err(&refused)
}
