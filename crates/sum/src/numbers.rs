//! Arrays of numbers encrypted and decrypted: what is between files of numbers and files of ciphertexts.

use std::path::Path;

use blindcore_accel::bigmod::Numbers;
use blindcore_files::Access;
use blindcore_numbers::{Format, Source, Values};
/// Told how many numbers are done, and of how many.
pub use blindcore_units::Progress;
use blindcore_units::Unit;
use ndarray::{ArrayD, IxDyn};

use crate::ciphertexts::Ciphertexts;
use crate::disk::{self, DiskError};
use crate::encoding::{self, Bound, Encoding, Form, Plaintexts};
use crate::evaluate::{Evaluator, Weights};
use crate::file;
use crate::keys::{KeyId, PublicKey};
use crate::packing::Packing;
use crate::scheme::Decryptor;

/// What decrypts to within this many bits of the key's length is taken as under another key.
const IMPLAUSIBLE_BITS: u32 = 48;
/// Numbers between two looks at how far it is.
const BLOCK: usize = 4096;

/// Why numbers can't be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NumbersError {
    /// Options that say nothing for these numbers.
    #[error("these numbers are {are}, for which {options}; say {remedy}")]
    Options {
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
    /// Numbers of a part that are refused.
    #[error("{origin}, from number {first} on: {error}")]
    From {
        /// Where they are from.
        origin: String,
        /// The first of the part, counted from 0.
        first: usize,
        /// Why, counted within the part.
        #[source]
        error: encoding::EncodingError,
    },
    /// Ciphertexts of a file that are refused.
    #[error("{origin}: {error}")]
    In {
        /// The file.
        origin: String,
        /// Why.
        #[source]
        error: encoding::EncodingError,
    },
    /// Weights of over 63 bits.
    #[error("{origin}: weights of up to 63 bits are carried; round them with --precision: {error}")]
    Weights {
        /// Where they are from.
        origin: String,
        /// Why.
        #[source]
        error: encoding::EncodingError,
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
    /// The encoding for these numbers, and how many bits they have.
    ///
    /// # Errors
    /// Something is declared that these numbers don't have, or there is no such encoding.
    pub fn encoding(&self, values: &Values) -> Result<(Encoding, u32), NumbersError> {
        match values {
            Values::Int(_) if self.precision.is_some() || self.magnitude.is_some() => {
                Err(NumbersError::Options {
                    are: "integers",
                    options: "--precision and --magnitude say nothing",
                    remedy: "--bits",
                })
            }
            Values::Float(_) if self.bits.is_some() => Err(NumbersError::Options {
                are: "floats",
                options: "--bits says nothing",
                remedy: "--precision and --magnitude",
            }),
            Values::Int(_) => {
                let bits = self.bits.unwrap_or(32);
                Ok((Encoding::integers(bits)?, bits))
            }
            Values::Float(_) => {
                let (precision, magnitude) = (self.precision.unwrap_or(1e-9), self.magnitude.unwrap_or(1e9));
                let encoding = if self.phe { Encoding::fixed } else { Encoding::decimal };
                let encoding = encoding(precision, magnitude)?;
                Ok((encoding, encoding.bound().bits() + 1))
            }
        }
    }
}

/// Numbers as plaintexts, one in each.
///
/// # Errors
/// A number does not fit the encoding.
pub fn encode(
    key: &PublicKey,
    values: &Values,
    encoding: Encoding,
) -> Result<Plaintexts, encoding::EncodingError> {
    match values {
        Values::Int(array) => Plaintexts::integers(key, array, encoding),
        Values::Float(array) => Plaintexts::floats(key, array, encoding),
    }
}

/// Encrypts numbers, one in each ciphertext or, with a packing, several. `origin` is what they are called in messages.
///
/// # Errors
/// A number does not fit the encoding or the packing, or the device refuses.
pub fn encrypt(
    evaluator: &Evaluator,
    values: &Values,
    encoding: Encoding,
    packing: Option<Packing>,
    origin: &str,
    progress: &mut dyn Progress,
) -> Result<Ciphertexts, NumbersError> {
    let (key, encryptor) = (evaluator.key(), evaluator.encryptor());
    if let Some(packing) = packing {
        let plaintexts = match values {
            Values::Int(array) => Plaintexts::pack_integers(key, array, encoding, packing)?,
            Values::Float(array) => Plaintexts::pack_floats(key, array, encoding, packing)?,
        };
        return Ok(Ciphertexts::encrypt(encryptor, &plaintexts)?);
    }
    let total = values.len();
    let mut parts = Vec::new();
    for first in (0..total).step_by(BLOCK) {
        progress.at("encrypting", first as u64, Some(total as u64), Unit::Items);
        let plaintexts = match values {
            Values::Int(array) => {
                let part: Vec<i64> = array.iter().skip(first).take(BLOCK).copied().collect();
                Plaintexts::integers(key, &part[..], encoding)
            }
            Values::Float(array) => {
                let part: Vec<f64> = array.iter().skip(first).take(BLOCK).copied().collect();
                Plaintexts::floats(key, &part[..], encoding)
            }
        };
        let from = |error| NumbersError::From { origin: origin.to_owned(), first, error };
        parts.push(Ciphertexts::encrypt(encryptor, &plaintexts.map_err(from)?)?);
    }
    Ok(Ciphertexts::concatenate(&parts.iter().collect::<Vec<_>>())?.reshape(values.shape())?)
}

/// Reads numbers; a single one without an axis is a list of one. Names of columns that nobody mentioned are said.
///
/// # Errors
/// The source can't be read, or holds something else.
pub fn read(source: &Source, say: &mut dyn FnMut(String)) -> Result<Values, blindcore_numbers::Error> {
    let (values, names) = blindcore_numbers::read_with_names(source)?;
    if let Some(names) = names {
        let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        say(format!("note: the first line of {source} holds names, not numbers: {}", names.join(", ")));
    }
    Ok(if values.shape().is_empty() { values.in_rows() } else { values })
}

/// What the largest weight is rounded to a unit of, so that no weight has more bits: nine digits and more.
const WEIGHT_LIMIT: f64 = (1u64 << 31) as f64;

/// Weights of numbers. Floats are rounded to `precision`, or as decimals of nine or ten digits, which loses nothing of
/// weights that were written so; `say` is told where it does. In powers of 16 where `phe` says that results go to
/// python-paillier, which knows no decimals. `origin` is what they are called in messages.
///
/// # Errors
/// They need more than 63 bits, or there is no such precision.
pub fn weights(
    values: &Values,
    precision: Option<f64>,
    phe: bool,
    origin: &str,
    say: &mut dyn FnMut(String),
) -> Result<Weights, NumbersError> {
    let array = match values {
        Values::Int(array) => return Ok(Weights::integers(array)),
        Values::Float(array) => array,
    };
    let largest = array.iter().fold(f64::MIN_POSITIVE, |m, v| v.abs().max(m));
    let made = |encoding: Encoding, say: &mut dyn FnMut(String)| {
        let lost = array.iter().filter(|weight| encoding.loses(**weight)).count();
        if lost > 0 {
            let all = array.len();
            say(format!(
                "note: {lost} of {all} weights of {origin} are so small that they count as 0; a smaller --precision keeps them"
            ));
        }
        Weights::floats(array, encoding)
            .map_err(|error| NumbersError::Weights { origin: origin.to_owned(), error })
    };
    if let Some(precision) = precision {
        let encoding =
            if phe { Encoding::fixed(precision, largest)? } else { Encoding::decimal(precision, largest)? };
        return made(encoding, say);
    }
    // As they were written, if that is short.
    let written = |scale: &i32| {
        let power = 10f64.powi(*scale); // exact up to 10^22
        let is = |v: &f64| (v * power).abs() < 2f64.powi(53) && (v * power).round() / power == *v;
        array.iter().all(is)
    };
    let short = |scale: &i32| largest * 10f64.powi(*scale) < WEIGHT_LIMIT;
    let scales = || (0..if phe { 0 } else { 20 }).take_while(short);
    if let Some(scale) = scales().find(written) {
        return made(Encoding::decimal(10f64.powi(-scale), largest)?, say);
    }
    let exact = Encoding::exact(array)?;
    let (encoding, unit) = match scales().last() {
        _ if exact.bound().bits() <= 32 => return made(exact, say),
        // With nine digits at least.
        Some(scale) if !short(&(scale + 1)) => {
            (Encoding::decimal(10f64.powi(-scale), largest)?, format!("1e-{scale}"))
        }
        _ => {
            let encoding = Encoding::fixed(largest / WEIGHT_LIMIT, largest)?;
            (encoding, format!("16^{}", encoding.exponent()))
        }
    };
    say(format!("note: the weights of {origin} are rounded to {unit}; --precision rounds them otherwise"));
    made(encoding, say)
}

/// Numbers that were decrypted.
#[derive(Clone, Debug, PartialEq)]
pub struct Decrypted {
    /// The numbers.
    pub results: Results,
    /// Whether integers of over 2^53 stand beside numbers that are none, and keep 53 bits only.
    pub rounded: bool,
}

/// Decrypted numbers as they are written.
#[derive(Clone, Debug, PartialEq)]
pub enum Results {
    /// Integers of up to 63 bits, or floats.
    Values(Values),
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
            Results::Decimals(array) => array.shape(),
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
            Results::Decimals(_) | Results::Values(Values::Float(_)) => Err(NumbersError::Options {
                are: "floats",
                options: "--scale says nothing",
                remedy: "it of integers alone",
            }),
        }
    }

    /// The numbers in their order: integers and floats as such, decimals as strings, which keep every digit.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Results::Values(Values::Int(array)) => array.iter().copied().collect(),
            Results::Values(Values::Float(array)) => array.iter().copied().collect(),
            Results::Decimals(array) => array.iter().map(String::as_str).collect(),
        }
    }

    /// Writes a file in the format that its ending names, for its owner alone: they were encrypted.
    ///
    /// # Errors
    /// The format can't hold them, or the system refuses.
    pub fn write(&self, path: &Path) -> Result<(), blindcore_numbers::Error> {
        match self {
            Results::Values(values) => blindcore_numbers::write(path, Access::Private, values, None),
            Results::Decimals(array) => blindcore_numbers::write_decimals(path, Access::Private, array),
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
            Results::Decimals(array) => blindcore_numbers::encode_decimals(Format::Csv, array, &mut text)?,
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
) -> Result<Decrypted, NumbersError> {
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
    let results = by_position(&batches).map_err(NumbersError::within(path))?;
    let large = |v: &f64| v.fract() == 0.0 && v.abs() >= 2f64.powi(53);
    let rounded = match &results {
        Results::Values(Values::Int(_)) => false,
        Results::Values(Values::Float(array)) => array.iter().any(large),
        // Floats have a point or an exponent, and what is over the largest float is exact.
        Results::Decimals(array) => {
            array.iter().filter(|v| v.contains(['.', 'e'])).any(|v| v.parse().is_ok_and(|v| large(&v)))
        }
    };
    Ok(Decrypted { results, rounded })
}

/// Integers where the exponent says that they are, exactly, else floats; what is over the largest float in decimals.
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
    match join(batches, Plaintexts::to_f64) {
        Ok(floats) => Ok(Results::Values(Values::Float(array(shape, floats)))),
        Err(_) => Ok(Results::Decimals(array(shape, join(batches, Plaintexts::to_texts)?))),
    }
}

fn array<T>(shape: &[usize], values: Vec<T>) -> ArrayD<T> {
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many as the shape has")
}

/// Numbers of several batches in their order: integers where all are, exactly, else floats; what is over the largest float
/// in decimals.
fn by_position(batches: &[(Vec<usize>, Plaintexts)]) -> Result<Results, encoding::EncodingError> {
    fn place<T: Clone + Default>(
        batches: &[(Vec<usize>, Plaintexts)],
        decode: impl Fn(&Plaintexts) -> Result<Vec<T>, encoding::EncodingError>,
    ) -> Result<ArrayD<T>, encoding::EncodingError> {
        let count = batches.iter().map(|(positions, _)| positions.len()).sum();
        let mut out = vec![T::default(); count];
        for (positions, plaintexts) in batches {
            for (position, value) in positions.iter().zip(decode(plaintexts)?) {
                out[*position] = value;
            }
        }
        Ok(array(&[count], out))
    }
    if let Ok(integers) = place(batches, Plaintexts::to_i64) {
        return Ok(Results::Values(Values::Int(integers)));
    }
    if batches.iter().all(|(_, plaintexts)| is_whole(plaintexts.form())) {
        return Ok(Results::Decimals(place(batches, Plaintexts::to_decimals)?));
    }
    match place(batches, Plaintexts::to_f64) {
        Ok(floats) => Ok(Results::Values(Values::Float(floats))),
        Err(_) => Ok(Results::Decimals(place(batches, Plaintexts::to_texts)?)),
    }
}

fn decrypt_file(
    path: &Path,
    decryptor: &Decryptor,
    progress: &mut dyn Progress,
) -> Result<Decrypted, NumbersError> {
    let mut reader = disk::open(path)?;
    let (key, header) = (decryptor.public(), reader.header().clone());
    if header.key != key.id() || header.key_bits != key.bits() {
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
    Ok(Decrypted { results: results.map_err(&refused)?, rounded: false })
}
