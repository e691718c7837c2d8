//! The reference engine: crypto-bigint's Montgomery form, a number at a time, every secret in constant time.

use std::sync::Arc;

use blindcore_accel::Line;
use blindcore_accel::bigmod::BigModulus;
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};

use super::{Engine, Table};

pub(crate) struct Portable {
    params: BoxedMontyParams,
    words: usize,
}

impl Portable {
    pub(crate) fn new(modulus: &BigModulus) -> Self {
        let odd = Odd::new(BoxedUint::from_words(modulus.value().iter().copied()));
        let odd = odd.expect("a modulus is odd");
        Self { params: BoxedMontyParams::new(odd), words: modulus.words() }
    }

    fn get(&self, row: &[Line]) -> BoxedMontyForm {
        let words = bytemuck::cast_slice::<Line, u64>(row)[..self.words].iter().copied();
        BoxedMontyForm::from_montgomery(BoxedUint::from_words(words), &self.params)
    }

    fn put(&self, out: &mut [Line], values: impl Iterator<Item = BoxedMontyForm>) {
        for (row, value) in out.chunks_exact_mut(self.row_lines()).zip(values) {
            bytemuck::cast_slice_mut::<Line, u64>(row)[..self.words]
                .copy_from_slice(value.as_montgomery().as_words());
        }
    }
}

impl Engine for Portable {
    fn form(&self) -> &'static str {
        "cpu:portable"
    }

    fn row_lines(&self) -> usize {
        self.words.div_ceil(8)
    }

    fn lanes(&self) -> usize {
        1
    }

    fn enter(&self, numbers: &[&[u64]], out: &mut [Line]) {
        let number = |n: &&[u64]| BoxedUint::from_words(n.iter().copied());
        self.put(out, numbers.iter().map(|n| BoxedMontyForm::new(number(n), &self.params)));
    }

    fn leave(&self, rows: &[&[Line]], out: &mut [u64]) {
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(self.words)) {
            out.copy_from_slice(self.get(row).retrieve().as_words());
        }
    }

    fn multiply(&self, x: &[&[Line]], y: &[&[Line]], out: &mut [Line]) {
        self.put(out, x.iter().zip(y).map(|(x, y)| self.get(x).mul(&self.get(y))));
    }

    fn products(&self, lists: &[Vec<&[Line]>], out: &mut [Line]) {
        let one = || BoxedMontyForm::one(&self.params);
        self.put(out, lists.iter().map(|list| list.iter().fold(one(), |x, y| x.mul(&self.get(y)))));
    }

    fn multiply_into(&self, rows: &mut [Line], slots: &[usize], y: &[&[Line]]) {
        let row = self.row_lines();
        for (slot, y) in slots.iter().zip(y) {
            let at = &mut rows[slot * row..][..row];
            let product = self.get(at).mul(&self.get(y));
            self.put(at, std::iter::once(product));
        }
    }

    fn multiply_times(&self, x: &[&[Line]], y: &[&[Line]], times: u32, out: &mut [Line]) {
        let product = |(x, y): (&&[Line], &&[Line])| {
            let y = self.get(y);
            (0..times).fold(self.get(x), |x, _| x.mul(&y))
        };
        self.put(out, x.iter().zip(y).map(product));
    }

    fn limit(&self) -> Option<(f64, f64)> {
        None
    }

    fn square(&self, x: &[&[Line]], times: u32, out: &mut [Line]) {
        self.put(out, x.iter().map(|x| (0..times).fold(self.get(x), |x, _| x.square())));
    }

    fn power(&self, x: &[&[Line]], exponents: &[&[u64]], bits: u32, out: &mut [Line]) {
        let power = |(x, e): (&&[Line], &&[u64])| self.get(x).pow_bounded_exp(&exponent(e, bits), bits);
        self.put(out, x.iter().zip(exponents).map(power));
    }

    fn table(self: Arc<Self>, base: &[Line], bits: u32) -> Box<dyn Table> {
        let base = self.get(base);
        Box::new(Base { engine: self, base, bits })
    }
}

/// An exponent with room for `bits` bits.
fn exponent(words: &[u64], bits: u32) -> BoxedUint {
    let count = bits.div_ceil(64) as usize;
    BoxedUint::from_words(words.iter().copied().chain(std::iter::repeat(0)).take(count))
}

/// Nothing is prepared: each power is worked out whole.
struct Base {
    engine: Arc<Portable>,
    base: BoxedMontyForm,
    bits: u32,
}

impl Table for Base {
    fn power(&self, exponents: &[&[u64]], out: &mut [Line]) {
        let power = |e: &&[u64]| self.base.pow_bounded_exp(&exponent(e, self.bits), self.bits);
        self.engine.put(out, exponents.iter().map(power));
    }

    fn bytes(&self) -> usize {
        self.engine.words * 8
    }
}
