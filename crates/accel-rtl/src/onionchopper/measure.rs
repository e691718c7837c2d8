//! Measurements of a chip that tests and reports share: shapes of the thesis's, run on words that are easy to make again.

use blindcore_accel::contract::{self, Shape};
use blindcore_accel::{Cost, Database, Error, Word, Words};
use blindcore_math::Modulus;

pub use super::chip::THESIS_CLOCK;
use super::device::OnionChopper;

/// What the thesis's model says of a database of 64 GB (section 6.4).
pub const THESIS_CYCLES: u64 = 12_833_318_209;

/// Two moduli of OnionPIR's size.
///
/// # Panics
/// Never: they are prime.
#[must_use]
pub fn moduli() -> Vec<Modulus> {
    [1_152_921_504_606_830_593, 1_125_899_906_826_241].map(|p| Modulus::prime(p).expect("prime")).to_vec()
}

/// The modulus of 32-bit words.
#[must_use]
pub fn pow2_32() -> Modulus {
    Modulus::Pow2_32
}

/// OnionPIR's first dimension in small: 2^20 multiply-accumulates.
#[must_use]
pub fn million() -> Shape {
    Shape { p: 2, n: 64, j: 64, k: 2, d: 32, ..Shape::new(Word::U64, moduli()) }
}

/// As many multiply-accumulates over a database that is wide, as real ones are: against it, queries are small.
#[must_use]
pub fn wide() -> Shape {
    Shape { n: 1024, d: 2, ..million() }
}

/// `d` coefficients of one modulus of the thesis's 64 GB: 2048 columns, 256 * 2 deep (section 6.1). It has 2 * 4096.
#[must_use]
pub fn coefficients(d: usize) -> Shape {
    Shape { p: 2, n: 2048, j: 256, k: 2, d, ..Shape::new(Word::U64, moduli()[..1].to_vec()) }
}

/// Clocks for the thesis's 64 GB, from those for one of its coefficients and for two.
#[must_use]
pub fn thesis(one: u64, two: u64) -> u64 {
    one + (2 * 4096 - 1) * (two - one)
}

/// Runs a shape, compares the answer with the definition, and gives what the chip's counters say.
///
/// # Errors
/// The chip refuses the shape, or stopped, or answers something else.
pub fn run(device: &OnionChopper, shape: &Shape) -> Result<Cost, Error> {
    let word = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3;
    let limit = |i: usize| shape.moduli[i / shape.d % shape.c()].max_residue().min(shape.database.max());
    let below = |i: usize| if limit(i) == u64::MAX { word(i) } else { word(i) % (limit(i) + 1) };
    let database = Words::from_fn(shape.database, shape.database_len(), below);
    let query = Words::from_fn(shape.query_word(), shape.query_len(shape.m), |i| {
        let most = shape.moduli[i / shape.d % shape.c()].max_residue();
        if most == u64::MAX { word(i + 77) } else { word(i + 77) % (most + 1) }
    });
    let placed = device.device().contract(shape)?.place(Database::Canonical(&database))?;
    let (answer, cost) = placed.run(&query)?;
    if answer == contract::reference(shape, &query, &database)? {
        return Ok(cost);
    }
    Err(Error::Hardware {
        device: device.name().into(),
        code: 0,
        what: "its answer is not the definition's",
        remedy: "report this as a defect of blindcore",
    })
}
