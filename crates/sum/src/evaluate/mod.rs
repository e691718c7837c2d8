//! Sums, products with plaintexts, dot products, matrices and convolutions of encrypted numbers.
//!
//! The evaluator has the public key alone. Every operation first works out a bound on its result from those of
//! its operands and refuses what could wrap, before anything is computed. Bounds and exponents travel with results
//! and are public: that of a dot product shows the largest sum of magnitudes of weights; [`Ciphertexts::loosen`]
//! hides it.
//!
//! Results are functions of their operands' ciphertexts and of the weights, so a key holder, who can take the
//! randomness out of a ciphertext, may learn weights from a result that goes back. Send it through
//! [`Evaluator::rerandomise`] first; what stays with the evaluator needs none.

mod shapes;
mod weights;

use std::borrow::Cow;

use blindcore_accel::Device;
use blindcore_accel::bigmod::{Exponents, MAX_WEIGHT, Method, MultiExp, Numbers, Residues};
use blindcore_files::OutOfRange;

use crate::ciphertexts::Ciphertexts;
use crate::encoding::{
    Bound, EncodingError, Form, Lowering, MAX_AXES, MAX_SCALE, Plaintexts, check_exponent,
};
use crate::keys::PublicKey;
use crate::scheme::Encryptor;
use shapes::{index_count, largest_sum, steps, weighed_shape};
pub use weights::Weights;

/// Weights past [`MAX_WEIGHT`] are split here, into halves that are both below it.
const SPLIT_BITS: u32 = 32;
/// Terms of a product in a round of a sum.
const SUM_TERMS: usize = 64;
/// Indices of one multi-exponentiation: 128 MiB of them; longer ones are cut by positions.
const MAC_INDICES: usize = 1 << 25;

/// How a convolution steps and pads: rows, then columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Steps, at least 1.
    pub stride: (usize, usize),
    /// Zeros on each side.
    pub padding: (usize, usize),
}

impl Default for Convolution {
    fn default() -> Self {
        Self { stride: (1, 1), padding: (0, 0) }
    }
}

/// Evaluates under one public key on one device.
///
/// ```
/// use blindcore_accel_cpu::Cpu;
/// use blindcore_sum::ciphertexts::Ciphertexts;
/// use blindcore_sum::encoding::{Encoding, Plaintexts};
/// use blindcore_sum::evaluate::{Evaluator, Weights};
/// use blindcore_sum::keys::{KeySize, Mode, SecretKey};
/// use blindcore_sum::scheme::Decryptor;
///
/// let device = Cpu::open("cpu")?;
/// let secret = SecretKey::generate(KeySize::test_only(512)?, Mode::ShortExponent)?;
///
/// // Someone encrypts three int8s ...
/// let evaluator = Evaluator::new(secret.public(), &device)?;
/// let plaintexts = Plaintexts::integers(secret.public(), &[3, -4, 5], Encoding::integers(8)?)?;
/// let encrypted = Ciphertexts::encrypt(evaluator.encryptor(), &plaintexts)?;
///
/// // ... someone else weighs what they can't read ...
/// let dot = evaluator.dot(&encrypted, &Weights::integers(&[10, 20, -1]))?;
/// let dot = evaluator.rerandomise(&dot)?;
///
/// // ... and the key holder reads the result.
/// let numbers = dot.numbers(evaluator.encryptor())?;
/// let result = Plaintexts::decrypt(&Decryptor::new(&secret, &device)?, &numbers, dot.form())?;
/// assert_eq!(result.to_i64()?, [3 * 10 - 4 * 20 - 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Evaluator {
    encryptor: Encryptor,
}

impl Evaluator {
    /// Prepares the key's arithmetic on a device.
    ///
    /// # Errors
    /// The device has no bigmod.
    pub fn new(key: &PublicKey, device: &Device) -> Result<Self, EncodingError> {
        Ok(Self { encryptor: Encryptor::new(key, device)? })
    }

    /// What encrypts and accepts ciphertexts for this key and device.
    #[must_use]
    pub fn encryptor(&self) -> &Encryptor {
        &self.encryptor
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &PublicKey {
        self.encryptor.public()
    }

    /// `x + y`, element by element; a single unpacked number, on either side, is added to all. The unit is the finer of
    /// both.
    ///
    /// # Errors
    /// Shapes, packings or keys differ, or a sum could pass the range.
    pub fn add(&self, x: &Ciphertexts, y: &Ciphertexts) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        self.check(y)?;
        let form = self.sum_form(&x.form, &y.form, "the sum")?;
        self.multiplied((&x.residues, &x.form), (&y.residues, &y.form), form)
    }

    /// `x - y`, as [`Evaluator::add`].
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn subtract(&self, x: &Ciphertexts, y: &Ciphertexts) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        self.check(y)?;
        self.sum_form(&x.form, &y.form, "the difference")?;
        self.add(x, &self.negate(y)?)
    }

    /// `-x`.
    ///
    /// # Errors
    /// `x` is of another key or device.
    pub fn negate(&self, x: &Ciphertexts) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        self.made(self.encryptor.bigmod().invert(&x.residues)?.0, x.form.clone())
    }

    /// `x + y` for plaintexts `y`, shaped, packed and aligned as in [`Evaluator::add`].
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn add_plain(&self, x: &Ciphertexts, y: &Plaintexts) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        x.check_key("what is added", y.key)?;
        let form = self.sum_form(&x.form, &y.form, "the sum")?;
        let y = y.lowered(self.key(), form.exponent, form.scale)?;
        let residues = self.encryptor.without_randomness(&y.numbers)?;
        self.multiplied((&x.residues, &x.form), (&residues, &y.form), form)
    }

    /// Sums of what is encrypted: residues brought to the unit of the form and multiplied, a single one by all.
    fn multiplied(
        &self,
        (x, x_form): (&Residues, &Form),
        (y, y_form): (&Residues, &Form),
        form: Form,
    ) -> Result<Ciphertexts, EncodingError> {
        let lowered =
            |residues, from| self.lowered(residues, Lowering::new(from, form.exponent, form.scale)?);
        let (x, y) = (lowered(x, x_form)?, lowered(y, y_form)?);
        let (x, y) = if x.len() < y.len() { (y, x) } else { (x, y) };
        self.made(self.encryptor.bigmod().multiply(&x, &y)?.0, form)
    }

    /// `x * w`, element by element; a single weight multiplies all. Of a packed batch, weights of the shape without
    /// the axis of groups multiply every group.
    ///
    /// # Errors
    /// Shapes don't go together, or a product could pass the range.
    pub fn scale(&self, x: &Ciphertexts, weights: &Weights) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        let what = "the product";
        if weights.values.len() == 1 {
            index_count(x.len())?;
            let indices = (x.len(), |at: usize, _: usize| at as u32);
            return self.multi_exp_all(
                x,
                indices,
                1,
                &weights.values,
                weights.unit(),
                what,
                x.form.shape.clone(),
            );
        }
        let inner = if x.form.packed.is_some() { &x.form.shape[1..] } else { &x.form.shape[..] };
        if weights.shape != inner {
            let want = format!("{inner:?} or a single one");
            return Err(EncodingError::Shape { what: "the weights", got: weights.shape.clone(), want });
        }
        let most = weights.values.iter().map(|w| w.unsigned_abs()).max().unwrap_or(0);
        let form = self.weighed_form(x, most.into(), weights.unit(), what, x.form.shape.clone())?;
        if x.is_empty() {
            return self.made(x.residues.clone(), form);
        }
        let bigmod = self.encryptor.bigmod();
        let weight = |i: usize| weights.values[i % weights.values.len()];
        // Bases of negative weights are inverted, all at once; then each takes its place.
        let negative: Vec<usize> = (0..x.len()).filter(|i| weight(*i) < 0).collect();
        let mut bases = x.residues.clone();
        if !negative.is_empty() {
            bases.append(&bigmod.invert(&x.residues.select(negative.iter().copied()))?.0)?;
            let mut places: Vec<usize> = (0..x.len()).collect();
            for (at, i) in negative.iter().enumerate() {
                places[*i] = x.len() + at;
            }
            bases = bases.select(places);
        }
        let mut exponents = Numbers::zeroed(x.len(), 1);
        for (i, exponent) in exponents.as_words_mut().iter_mut().enumerate() {
            *exponent = weight(i).unsigned_abs();
        }
        let bits = (64 - most.leading_zeros()).max(1);
        self.made(bigmod.power(&bases, &Exponents::Each(&exponents, bits))?.0, form)
    }

    /// The sum along the first axis, after that of groups where there is one; of a vector, one number in shape `[1]`.
    ///
    /// # Errors
    /// There is no such axis or nothing along it, or the sum could pass the range.
    pub fn sum(&self, x: &Ciphertexts) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        let axis = usize::from(x.form.packed.is_some());
        let count = x.form.shape.get(axis).copied().unwrap_or(0);
        if count == 0 {
            let want = "something to add up; samples of a packed batch can't be".into();
            return Err(EncodingError::Shape { what: "the batch", got: x.form.shape.clone(), want });
        }
        let mut form = x.form.clone();
        form.shape.remove(axis);
        if form.shape.is_empty() {
            form.shape.push(1);
        }
        form.bound = form.bound.times(Bound::new(count as u64));
        form.check_range(self.key(), "the sum", form.bound)?;

        // Products of a few terms, and then of those: every round has as many products side by side as it can.
        let inner: usize = x.form.shape[axis + 1..].iter().product();
        let outer: usize = x.form.shape[..axis].iter().product();
        index_count(x.len())?;
        let (mut residues, mut left) = (Cow::Borrowed(&x.residues), count);
        while left > 1 && !form.is_empty() {
            let terms = left.min(SUM_TERMS);
            let next = left.div_ceil(terms);
            let mut indices = Vec::with_capacity(outer * next * inner * terms);
            for place in 0..outer * next * inner {
                let (block, row, column) = (place / inner / next, place / inner % next, place % inner);
                indices.extend((0..terms).map(|term| match row * terms + term {
                    row if row < left => ((block * left + row) * inner + column) as u32,
                    _ => MultiExp::ABSENT,
                }));
            }
            let multi_exp = MultiExp { terms, indices, weights: vec![1; terms], method: Method::Auto };
            residues = Cow::Owned(self.encryptor.bigmod().multi_exp(&residues, &multi_exp)?.0);
            left = next;
        }
        let residues = residues.into_owned();
        self.made(residues, form)
    }

    /// The dot product with K weights along the last axis: `[..., K]` becomes `[...]`, or `[1]` where nothing is left.
    ///
    /// # Errors
    /// Shapes don't go together, or a result could pass the range.
    pub fn dot(&self, x: &Ciphertexts, weights: &Weights) -> Result<Ciphertexts, EncodingError> {
        let [_] = weights.check("the weights", "a vector")?;
        let mut out = self.linear(x, &weights.values, weights, "the dot product")?;
        out.form.shape.pop();
        if out.form.shape.is_empty() {
            out.form.shape.push(1);
        }
        Ok(out)
    }

    /// A matrix of weights M x K times vectors along the last axis: [..., K] becomes [..., M].
    ///
    /// # Errors
    /// As [`Evaluator::dot`].
    pub fn matrix_vector(&self, weights: &Weights, x: &Ciphertexts) -> Result<Ciphertexts, EncodingError> {
        let [_, _] = weights.check("the weights", "a matrix")?;
        self.linear(x, &weights.values, weights, "the matrix-vector product")
    }

    /// [`Evaluator::dot`] or [`Evaluator::matrix_vector`], whichever the weights are for, rerandomised and a block of at
    /// most `results` results at a time: for callers that send them on as they come, and may have to stop. A `bias`, one
    /// number for each output, is added to the results. What the result is of comes first; the blocks are canonical
    /// ciphertexts, in order.
    ///
    /// # Errors
    /// As [`Evaluator::dot`]; or the bias has another number of outputs; a block fails if randomness or the device does.
    pub fn weigh_in_blocks<'a>(
        &'a self,
        x: &'a Ciphertexts,
        weights: &'a Weights,
        bias: Option<&Weights>,
        results: usize,
    ) -> Result<(Form, impl Iterator<Item = Result<Numbers, EncodingError>> + use<'a>), EncodingError> {
        self.check(x)?;
        let what = "the product with the weights";
        let mut shape = weighed_shape(x, &weights.values, &weights.shape)?;
        if weights.shape.len() == 1 && shape.len() > 1 {
            shape.pop();
        }
        let terms = weights.shape.last().copied().unwrap_or(0);
        let outputs = weights.values.len() / terms;
        index_count(x.len())?;
        let weighed =
            self.weighed_form(x, largest_sum(&weights.values, terms), weights.unit(), what, shape)?;
        let (mut form, mut added) = (weighed.clone(), None);
        if let Some(bias) = bias {
            let plaintexts = bias.plaintexts(self.key(), outputs, &weighed)?;
            form = self.sum_form(
                &weighed,
                &Form { shape: weighed.shape.clone(), ..plaintexts.form.clone() },
                "the score",
            )?;
            let plaintexts = plaintexts.lowered(self.key(), form.exponent, form.scale)?;
            added = Some(self.encryptor.without_randomness(&plaintexts.numbers)?);
        }
        let down = Lowering::new(&weighed, form.exponent, form.scale)?;
        // Whole rows, or else part of one.
        let (rows, columns) = ((results / outputs).max(1), outputs.min(results.max(1)));
        let blocks = (0..x.len() / terms).step_by(rows).flat_map(move |row| {
            let last = (row + rows).min(x.len() / terms);
            (0..outputs)
                .step_by(columns)
                .map(move |column| (row..last, column..(column + columns).min(outputs)))
        });
        let numbers = blocks.map(move |(rows, columns)| {
            let indices = (rows, |at: usize, term: usize| (at * terms + term) as u32);
            let weights = &weights.values[columns.start * terms..columns.end * terms];
            let mut block = self.weigh_residues(&x.residues, indices, terms, weights)?;
            if let Some(added) = &added {
                let added = added.select((0..block.len()).map(|i| columns.start + i % columns.len()));
                block = self.encryptor.bigmod().multiply(&*self.lowered(&block, down)?, &added)?.0;
            }
            Ok(self.encryptor.bigmod().read(&self.encryptor.rerandomise(&block)?)?)
        });
        Ok((form, numbers))
    }

    /// Encrypted P x K times weights K x M: P x M. A packed batch has groups of samples in place of P rows.
    ///
    /// # Errors
    /// As [`Evaluator::dot`].
    pub fn matrix_matrix(&self, x: &Ciphertexts, weights: &Weights) -> Result<Ciphertexts, EncodingError> {
        let [terms, outputs] = weights.check("the weights", "a matrix")?;
        if x.form.shape.last() != Some(&terms) {
            let want = format!("[..., {terms}] for weights {terms} x {outputs}");
            return Err(EncodingError::Shape { what: "the batch", got: x.form.shape.clone(), want });
        }
        let transposed: Vec<i64> =
            (0..outputs).flat_map(|m| (0..terms).map(move |k| weights.values[k * outputs + m])).collect();
        let weights = Weights { values: vec![], shape: vec![outputs, terms], ..*weights };
        self.linear(x, &transposed, &weights, "the matrix product")
    }

    /// [..., K] by `values` M x K; a vector of weights is a matrix of one row.
    fn linear(
        &self,
        x: &Ciphertexts,
        values: &[i64],
        weights: &Weights,
        what: &'static str,
    ) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        let shape = weighed_shape(x, values, &weights.shape)?;
        let terms = weights.shape.last().copied().unwrap_or(0);
        index_count(x.len())?;
        let indices = (x.len() / terms, |at: usize, term: usize| (at * terms + term) as u32);
        self.multi_exp_all(x, indices, terms, values, weights.unit(), what, shape)
    }

    /// A 2-D convolution (cross-correlation, as in neural networks): C x H x W by kernels O x C x KH x KW becomes
    /// O x OH x OW with OH = (H + 2 padding - KH) / stride + 1. An axis before is of independent images, or of the
    /// groups of a packed batch.
    ///
    /// # Errors
    /// Shapes don't go together, the kernel is larger than the padded image, a stride is zero, the padding not below the
    /// kernel's size, results would take over 8 GiB, or one could pass the range.
    pub fn conv2d(
        &self,
        x: &Ciphertexts,
        kernels: &Weights,
        Convolution { stride, padding }: Convolution,
    ) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        let want = "outputs x channels x rows x columns, none of them zero";
        let [outputs, channels, kernel_rows, kernel_columns] = kernels.check("the kernels", want)?;
        if kernels.values.is_empty() {
            return Err(EncodingError::Shape {
                what: "the kernels",
                got: kernels.shape.clone(),
                want: want.into(),
            });
        }
        let refuse = || {
            let packed = if x.form.packed.is_some() { "groups, " } else { "" };
            let want = format!("[{packed}{channels}, H, W] for kernels {:?}", kernels.shape);
            EncodingError::Shape { what: "the image", got: x.form.shape.clone(), want }
        };
        let (images, rows, columns) = match x.form.shape[..] {
            [c, h, w] if c == channels && x.form.packed.is_none() => (1, h, w),
            [n, c, h, w] if c == channels => (n, h, w),
            _ => return Err(refuse()),
        };
        let out_rows = steps("rows", rows, kernel_rows, stride.0, padding.0)?;
        let out_columns = steps("columns", columns, kernel_columns, stride.1, padding.1)?;
        let terms = channels * kernel_rows * kernel_columns;
        index_count(x.len())?;
        // What the results take is known before anything is made of them; of no images as of one.
        let product = |sizes: &[usize]| sizes.iter().try_fold(1usize, |n, d| n.checked_mul((*d).max(1)));
        let ciphertext = 8 * self.key().ciphertext_words();
        let sizes = [
            ("the number of terms of all places", product(&[images, out_rows, out_columns, terms]), 1 << 32),
            (
                "the bytes of all results",
                product(&[images, out_rows, out_columns, outputs, ciphertext]),
                1 << 33,
            ),
        ];
        for (what, size, max) in sizes {
            let (got, remedy) = (size.unwrap_or(usize::MAX) as u64, "cut the image, or step further");
            if got > max {
                return Err(OutOfRange { what, got, min: 0, max, remedy }.into());
            }
        }
        let places = out_rows * out_columns;

        // Terms by place in the kernel, then by channel: neighbouring windows then have whole runs of terms in common,
        // which the device's tables are shared by.
        let area = kernel_rows * kernel_columns;
        let weights: Vec<i64> = kernels
            .values
            .chunks_exact(terms)
            .flat_map(|kernel| (0..terms).map(move |t| kernel[t % channels * area + t / channels]))
            .collect();
        let index = |at: usize, term: usize| {
            let (image, place) = (at / places, at % places);
            let (kernel, channel) = (term / channels, term % channels);
            // Within the image once the padding is off, or absent.
            let at = |place: usize, kernel: usize, stride: usize, padding, size: usize| {
                (place * stride + kernel).checked_sub(padding).filter(|i| *i < size)
            };
            let row = at(place / out_columns, kernel / kernel_columns, stride.0, padding.0, rows);
            let column = at(place % out_columns, kernel % kernel_columns, stride.1, padding.1, columns);
            let index = row
                .zip(column)
                .map(|(row, column)| (((image * channels + channel) * rows + row) * columns + column) as u32);
            index.unwrap_or(MultiExp::ABSENT)
        };
        let indices = (images * places, index);
        let mut shape = x.form.shape.clone();
        let axes = shape.len();
        shape[axes - 3..].copy_from_slice(&[outputs, out_rows, out_columns]);
        let what = "the convolution";
        let mut out = self.multi_exp_all(x, indices, terms, &weights, kernels.unit(), what, shape)?;
        // From places by outputs to outputs by places.
        let order = (0..images * outputs).flat_map(|row| {
            let (image, output) = (row / outputs, row % outputs);
            (0..places).map(move |place| (image * places + place) * outputs + output)
        });
        out.residues = out.residues.select(order);
        Ok(out)
    }

    /// The same numbers with a lower exponent: mantissas times 16 to the difference.
    ///
    /// # Errors
    /// The exponent is higher than theirs, or a mantissa could pass the range.
    pub fn lower_exponent(&self, x: &Ciphertexts, exponent: i32) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        let mut form = x.form.clone();
        let down = Lowering::new(&form, exponent, form.scale)?;
        form.check_range(self.key(), "a lower exponent", down.counted(form.bound))?;
        form.bound = down.bound(form.bound);
        form.exponent = exponent;
        self.made(self.lowered(&x.residues, down)?.into_owned(), form)
    }

    /// The same numbers under fresh randomness, which hides how they were computed: do this to every result that
    /// goes back to a key holder who may be curious. Form and bound go along as they are.
    ///
    /// # Errors
    /// `x` is of another key, or randomness or the device failed.
    pub fn rerandomise(&self, x: &Ciphertexts) -> Result<Ciphertexts, EncodingError> {
        self.check(x)?;
        self.made(self.encryptor.rerandomise(&x.residues)?, x.form.clone())
    }

    pub(crate) fn check(&self, x: &Ciphertexts) -> Result<(), EncodingError> {
        let want = self.key().id();
        if x.key == want { Ok(()) } else { Err(EncodingError::Key { what: "a batch", got: x.key, want }) }
    }

    /// What is known of the sum of two batches, of which one may be a single number that is not packed.
    fn sum_form(&self, x: &Form, y: &Form, what: &'static str) -> Result<Form, EncodingError> {
        let name = |form: &Form| {
            form.packed.map_or_else(
                || "not packed".to_owned(),
                |packed| {
                    format!(
                        "packed in {} for {}",
                        packed.packing,
                        blindcore_units::counted(packed.samples, "sample")
                    )
                },
            )
        };
        if x.packed != y.packed {
            return Err(EncodingError::Packing { what: "the second operand", got: name(y), want: name(x) });
        }
        let single = |form: &Form| form.len() == 1 && form.packed.is_none();
        let shape = match (x.shape == y.shape, single(y), single(x)) {
            (true, ..) | (_, true, _) => &x.shape,
            (_, _, true) => &y.shape,
            _ => return Err(EncodingError::Operands { got: y.shape.clone(), want: x.shape.clone() }),
        };
        let (exponent, scale) = (x.exponent.min(y.exponent), x.scale.max(y.scale));
        let lowering = |form: &Form| Lowering::new(form, exponent, scale);
        let (of_x, of_y) = (lowering(x)?, lowering(y)?);
        let bound = of_x.bound(x.bound).plus(of_y.bound(y.bound));
        let form = Form { exponent, scale, bound, packed: x.packed, shape: shape.clone() };
        form.check_range(self.key(), what, of_x.counted(x.bound).plus(of_y.counted(y.bound)))?;
        Ok(form)
    }

    /// The residues in a finer unit, by squarings and powers of ten.
    fn lowered<'a>(&self, x: &'a Residues, by: Lowering) -> Result<Cow<'a, Residues>, EncodingError> {
        let bigmod = self.encryptor.bigmod();
        let mut out = Cow::Borrowed(x);
        if by.bits > 0 {
            out = Cow::Owned(bigmod.square(&out, by.bits)?.0);
        }
        let mut left = by.tens;
        while left > 0 {
            let tens = left.min(19); // 10^19 < 2^64
            let power = 10u64.pow(tens);
            let exponent = Exponents::Shared(std::slice::from_ref(&power), 64 - power.leading_zeros());
            out = Cow::Owned(bigmod.power(&out, &exponent)?.0);
            left -= tens;
        }
        Ok(out)
    }

    pub(crate) fn weighed_form(
        &self,
        x: &Ciphertexts,
        weight: u128,
        unit: (i32, u32),
        what: &'static str,
        shape: Vec<usize>,
    ) -> Result<Form, EncodingError> {
        let exponent = check_exponent(i64::from(x.form.exponent) + i64::from(unit.0))?;
        let scale = x.form.scale + unit.1;
        let remedy = "round coarser, or fewer times";
        OutOfRange::check("the number of decimals", scale.into(), 0..=MAX_SCALE.into(), remedy)?;
        let bound = x.form.bound.times(Bound::scaled(weight, 0));
        let form = Form { exponent, scale, bound, packed: x.form.packed, shape };
        form.check_range(self.key(), what, bound)?;
        debug_assert!(form.shape.len() <= MAX_AXES);
        Ok(form)
    }

    /// The device's multi-exponentiation, for weights and index matrices of any size. `indices` are how many positions there are, and the
    /// index of a term of one; they are made piece by piece.
    #[allow(clippy::too_many_arguments, reason = "the parts of a multi-exponentiation")]
    fn multi_exp_all(
        &self,
        x: &Ciphertexts,
        (positions, index): (usize, impl Fn(usize, usize) -> u32),
        terms: usize,
        weights: &[i64],
        unit: (i32, u32),
        what: &'static str,
        shape: Vec<usize>,
    ) -> Result<Ciphertexts, EncodingError> {
        let form = self.weighed_form(x, largest_sum(weights, terms), unit, what, shape)?;
        self.made(self.weigh_residues(&x.residues, (0..positions, index), terms, weights)?, form)
    }

    /// The multi-exponentiation of some positions.
    fn weigh_residues(
        &self,
        x: &Residues,
        (positions, index): (std::ops::Range<usize>, impl Fn(usize, usize) -> u32),
        terms: usize,
        weights: &[i64],
    ) -> Result<Residues, EncodingError> {
        let bigmod = self.encryptor.bigmod();
        let multi_exp = |indices: &[u32], weights: Vec<i64>| {
            let multi_exp = MultiExp { terms, indices: indices.to_vec(), weights, method: Method::Auto };
            Ok::<_, EncodingError>(bigmod.multi_exp(x, &multi_exp)?.0)
        };
        let split = weights.iter().any(|w| w.unsigned_abs() > MAX_WEIGHT as u64);
        let mut out: Option<Residues> = None;
        let piece = (MAC_INDICES / terms).max(1);
        for first in positions.clone().step_by(piece) {
            let last = (first + piece).min(positions.end);
            let indices: Vec<u32> = (first..last)
                .flat_map(|at| (0..terms).map(move |term| (at, term)))
                .map(|(at, t)| index(at, t))
                .collect();
            let indices = &indices[..];
            let part = if split {
                // w = high 2^32 + low
                let high = multi_exp(indices, weights.iter().map(|w| w >> SPLIT_BITS).collect())?;
                let low = multi_exp(indices, weights.iter().map(|w| w & ((1 << SPLIT_BITS) - 1)).collect())?;
                bigmod.multiply(&bigmod.square(&high, SPLIT_BITS)?.0, &low)?.0
            } else {
                multi_exp(indices, weights.to_vec())?
            };
            match &mut out {
                None => out = Some(part),
                Some(out) => out.append(&part)?,
            }
        }
        Ok(out.unwrap_or_else(|| x.select([])))
    }

    pub(crate) fn made(&self, residues: Residues, form: Form) -> Result<Ciphertexts, EncodingError> {
        debug_assert_eq!(residues.len(), form.len());
        Ok(Ciphertexts { key: self.key().id(), residues, form })
    }
}
