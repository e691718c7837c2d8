//! Linear models in the clear: weights and a bias, from files of numbers.

use blindcore_numbers::{Content, Format, Source};

use crate::evaluate::Weights;
use crate::numbers::{NumbersError, read, to_decimals, weights, weights_called, weights_source};

/// Characters in a model's name, at most.
const MAX_NAME: usize = 64;

/// A linear model: rows are weighed and a bias is added.
pub struct Model {
    /// What it is asked for by.
    pub name: String,
    /// M x K, or K for a single output.
    pub weights: Weights,
    /// A number for each output, added to its scores.
    pub bias: Option<Weights>,
}

impl Model {
    /// Reads models, each `NAME=FILE`, and their biases, each `NAME=FILE` or `NAME=NUMBER`. Floats are rounded as
    /// [`weights`] does it. `say` is told what a person wants to know.
    ///
    /// # Errors
    /// A text names no model, a file can't be read, a bias doesn't fit its model, or there is a precision and no float.
    pub fn read_all(
        models: &[String],
        biases: &[String],
        precision: Option<f64>,
        say: &mut dyn FnMut(String),
    ) -> Result<Vec<Self>, NumbersError> {
        let split = |option, text: &str, want| {
            let parts = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
            let (name, value) =
                parts.ok_or_else(|| refused(option, text, format!("names no model; say {want}")))?;
            Ok::<_, NumbersError>((name.to_owned(), value.to_owned()))
        };
        let (mut out, mut floats) = (Vec::new(), false);
        for text in models {
            let (name, path) = split("--model", text, "NAME=FILE, such as risk=weights.npy")?;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let folder = matches!(&*name, "." | "..");
            if folder || name.len() > MAX_NAME || !name.chars().all(plain) {
                let why = format!(
                    "has the name {name:?}; take up to {MAX_NAME} letters and digits of ASCII, -, _ and ., as in risk=weights.npy, \
                     but neither . nor .."
                );
                return Err(refused("--model", text, why));
            }
            let content = read(&weights_source(&path, precision)?, say)?;
            floats |= content.values.as_float().is_some();
            let weights = weights(&content, of_floats(&content, precision), false, say)?;
            out.push(Self { name, weights, bias: None });
        }
        for text in biases {
            let (name, value) = split("--bias", text, "NAME=FILE or NAME=NUMBER, such as risk=-1.5")?;
            let Some(model) = out.iter_mut().find(|model| model.name == name && model.bias.is_none()) else {
                return Err(refused(
                    "--bias",
                    text,
                    "names no --model, or one that has its bias already".into(),
                ));
            };
            let outputs = model.outputs();
            let whole = value.parse::<i64>().is_ok();
            let content = match value.parse::<f64>() {
                Ok(number) if whole || number.abs() < 2f64.powi(63) => {
                    // As a file of it for each output: so its digits count as theirs do.
                    let source = Source::bytes(Format::Csv, format!("{value}\n").repeat(outputs));
                    read(&to_decimals(source, precision), say)?.called(format!("--bias {text}"))
                }
                Ok(number) => {
                    let why = if number.is_finite() {
                        "is not a number of up to 63 bits; a bias has no more"
                    } else {
                        "is not finite; give a bias of up to 63 bits"
                    };
                    return Err(refused("--bias", text, why.into()));
                }
                Err(_) => {
                    let source = weights_source(&value, precision).map_err(|_| {
                        let why = "is neither a number nor a file of numbers; say NAME=-1.5, with a point, or NAME=FILE.csv";
                        refused("--bias", text, why.into())
                    })?;
                    read(&source, say)?
                }
            };
            let count = content.values.len();
            if count != outputs {
                let why = format!(
                    "has {} where the model has {}; give one for each, or one for all",
                    blindcore_units::counted(count, "number"),
                    blindcore_units::counted(outputs, "output")
                );
                return Err(refused("--bias", text, why));
            }
            floats |= content.values.as_float().is_some();
            let precision = of_floats(&content, precision);
            model.bias = Some(weights_called("biases", &content, precision, false, say)?);
        }
        if precision.is_some() && !floats {
            let (what, options, remedy) =
                ("weights and biases", "--precision says nothing", "it where a model has floats");
            return Err(NumbersError::Options { what, are: "integers", options, remedy });
        }
        Ok(out)
    }

    /// Numbers of a row.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.weights.shape().last().copied().unwrap_or(0)
    }

    /// Scores of a row.
    #[must_use]
    pub fn outputs(&self) -> usize {
        if self.weights.shape().len() == 1 { 1 } else { self.weights.shape()[0] }
    }
}

/// The precision, where these are floats: it is for those of several models.
fn of_floats(content: &Content, precision: Option<f64>) -> Option<f64> {
    precision.filter(|_| content.values.as_float().is_some())
}

fn refused(option: &'static str, text: &str, why: String) -> NumbersError {
    NumbersError::Model { option, text: text.to_owned(), why }
}
