//! The shape of a contract, and its definition.

use std::fmt;

use blindcore_math::Modulus;

use crate::{Error, Word, Words};

/// The bounds of the eight indices (the moduli are the bound of `c`) and the width of the database's words.
///
/// ```
/// use blindcore_accel::{contract::Shape, Word, Words};
/// use blindcore_math::Modulus;
///
/// // SimplePIR: 3 rows by 4 columns of bytes, one query, modulo 2^32.
/// let shape = Shape { n: 3, j: 4, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) };
/// let database = Words::U8((0..12).collect()); // canonical: entry (j, n) at 3 j + n
/// let query = Words::U32(vec![0, 1, 0, 0]);
/// let answer = blindcore_accel::contract::reference(&shape, &query, &database)?;
/// assert_eq!(answer, Words::U32(vec![3, 4, 5]));
/// # Ok::<(), blindcore_accel::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of the query: the most queries that one run gathers.
    pub m: usize,
    /// Columns of the database: outputs.
    pub n: usize,
    /// Sub-rows of the query.
    pub p: usize,
    /// Sub-columns of the database.
    pub q: usize,
    /// Contracted.
    pub j: usize,
    /// Contracted, within a sub-matrix.
    pub k: usize,
    /// Coefficients a polynomial.
    pub d: usize,
    /// The modulus of each residue channel `c`.
    pub moduli: Vec<Modulus>,
    /// The database's word.
    pub database: Word,
    /// Where the query's sub-rows are one that is turned; none: each is its own.
    pub window: Option<Window>,
}

/// A query whose sub-rows are one sub-row, seen through a window that slides.
///
/// ```text
///   A[m,j,p,k,c,d] = y[m,p,k,c,d'], where the `period` coefficients from a multiple of it on are turned to the left by
///   j * `step` places:  d = b * period + z,  d' = b * period + (z + j * step) mod period
/// ```
///
/// So powers of a ring's automorphism act on values in orbit order ([`blindcore_math::ntt::orbit`]). The query is y: `j` times
/// shorter, and short enough for a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Coefficients that are turned together: it divides `d`, and is a multiple of [`Window::LANES`].
    pub period: usize,
    /// Places from one sub-row to the next, below `period`.
    pub step: usize,
}

impl Window {
    /// What the period is a multiple of.
    pub const LANES: usize = 32;

    /// Where coefficient `d` of sub-row `j` stands in y.
    #[must_use]
    pub fn place(self, j: usize, d: usize) -> usize {
        d / self.period * self.period + (d + j * self.step) % self.period
    }
}

impl Shape {
    /// All dimensions one; set the others with struct update syntax.
    #[must_use]
    pub fn new(database: Word, moduli: Vec<Modulus>) -> Self {
        Self { m: 1, n: 1, p: 1, q: 1, j: 1, k: 1, d: 1, moduli, database, window: None }
    }

    /// The number of moduli.
    #[must_use]
    pub fn c(&self) -> usize {
        self.moduli.len()
    }

    /// Products summed into each output: j * k.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.j * self.k
    }

    /// Database rows as a device sees them, one an output: n * q.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.n * self.q
    }

    /// The word of queries and answers: 32 bits where every modulus is at most 2^32, else 64.
    #[must_use]
    pub fn query_word(&self) -> Word {
        if self.moduli.iter().all(|m| m.max_residue() <= u64::from(u32::MAX)) { Word::U32 } else { Word::U64 }
    }

    /// Words in a query of `m` gathered parts.
    #[must_use]
    pub fn query_len(&self, m: usize) -> usize {
        let sub_rows = if self.window.is_some() { self.k } else { self.depth() };
        m * sub_rows * self.p * self.c() * self.d
    }

    /// Words in the database.
    #[must_use]
    pub fn database_len(&self) -> usize {
        self.depth() * self.rows() * self.c() * self.d
    }

    /// Words in the answer to `m` gathered parts.
    #[must_use]
    pub fn answer_len(&self, m: usize) -> usize {
        m * self.p * self.rows() * self.c() * self.d
    }

    /// Position of `A[m,j,p,k,c,d]`.
    #[must_use]
    pub fn query_index(&self, [m, j, p, k, c, d]: [usize; 6]) -> usize {
        if let Some(window) = self.window {
            return (((m * self.p + p) * self.k + k) * self.c() + c) * self.d + window.place(j, d);
        }
        ((((m * self.j + j) * self.p + p) * self.k + k) * self.c() + c) * self.d + d
    }

    /// Position of `B[j,n,k,q,c,d]`.
    #[must_use]
    pub fn database_index(&self, [j, n, k, q, c, d]: [usize; 6]) -> usize {
        ((((j * self.n + n) * self.k + k) * self.q + q) * self.c() + c) * self.d + d
    }

    /// Position of `C[m,n,p,q,c,d]`.
    #[must_use]
    pub fn answer_index(&self, [m, n, p, q, c, d]: [usize; 6]) -> usize {
        ((((m * self.n + n) * self.p + p) * self.q + q) * self.c() + c) * self.d + d
    }

    /// Checks that every dimension is at least 1 and that no operand passes 2^48 words.
    ///
    /// # Errors
    /// Says which bound is broken.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |why: &str| Err(Error::Shape { shape: self.to_string(), why: why.into() });
        let dimensions = [self.m, self.n, self.p, self.q, self.j, self.k, self.d, self.c()];
        if dimensions.contains(&0) {
            return refuse("every dimension must be at least 1");
        }
        if let Some(Window { period, step }) = self.window
            && (self.k != 1
                || period == 0
                || !period.is_multiple_of(Window::LANES)
                || !self.d.is_multiple_of(period)
                || step >= period)
        {
            return refuse(
                "a window has k = 1, a period that divides d and is a multiple of 32, and a step below it",
            );
        }
        let product = |factors: &[usize]| {
            factors.iter().try_fold(1usize, |a, b| a.checked_mul(*b)).filter(|p| *p as u64 <= 1 << 48)
        };
        let (c, d) = (self.c(), self.d);
        let operands = [
            product(&[self.m, self.j, self.p, self.k, c, d]),
            product(&[self.j, self.n, self.k, self.q, c, d]),
            product(&[self.m, self.n, self.p, self.q, c, d]),
        ];
        if operands.contains(&None) {
            return refuse("an operand would have more than 2^48 words");
        }
        Ok(())
    }

    /// Checks a query against this shape and says how many parts it gathers.
    ///
    /// # Errors
    /// Wrong width, a length that is not 1 to `m` parts, or a word that is not a residue.
    pub fn check_query(&self, query: &Words) -> Result<usize, Error> {
        if query.word() != self.query_word() {
            return Err(Error::WordWidth { what: "query", got: query.word(), want: self.query_word() });
        }
        let part = self.query_len(1);
        let m = query.len() / part;
        if query.is_empty() || !query.len().is_multiple_of(part) || m > self.m {
            let want = format!("1 to {} times {part}", self.m);
            return Err(Error::Length { what: "query", got: query.len(), want, unit: "words" });
        }
        self.check_residues("query", query, query.word().max())?;
        Ok(m)
    }

    /// Checks a database in canonical order against this shape.
    ///
    /// # Errors
    /// Wrong width or length, or a word that is not a residue.
    pub fn check_database(&self, database: &Words) -> Result<(), Error> {
        let want = self.database.canonical();
        if database.word() != want {
            return Err(Error::WordWidth { what: "database", got: database.word(), want });
        }
        let want = self.database_len();
        if database.len() != want {
            let want = want.to_string();
            return Err(Error::Length { what: "database", got: database.len(), want, unit: "words" });
        }
        self.check_residues("database", database, self.database.max())
    }

    /// Both operands end in the indices c, d. No word may be over `most` either.
    fn check_residues(&self, what: &'static str, words: &Words, most: u64) -> Result<(), Error> {
        if most == words.word().max() && self.moduli.iter().all(|m| m.max_residue() >= most) {
            return Ok(());
        }
        // Polynomial after polynomial: a query has some million words, and is checked in each pass.
        let polynomials = (0..words.len()).step_by(self.d).zip(self.moduli.iter().cycle());
        for (first, modulus) in polynomials {
            let (here, most) = (first..first + self.d, modulus.max_residue().min(most));
            if words.largest(here.clone()) > most {
                let position = here.clone().find(|i| words.get(*i) > most).unwrap_or(first);
                let (value, modulus) = (words.get(position), modulus.to_string());
                return Err(Error::Residue { what, value, position, modulus });
            }
        }
        Ok(())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "m={} n={} p={} q={} j={} k={} d={} of {:?} mod [",
            self.m, self.n, self.p, self.q, self.j, self.k, self.d, self.database
        )?;
        for (i, modulus) in self.moduli.iter().enumerate() {
            write!(f, "{}{modulus}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("]")?;
        match self.window {
            Some(Window { period, step }) => write!(f, ", a window of period {period} and step {step}"),
            None => Ok(()),
        }
    }
}

/// The definition, summed index by index: what every device is compared with.
///
/// # Errors
/// An operand doesn't fit the shape.
pub fn reference(shape: &Shape, query: &Words, database: &Words) -> Result<Words, Error> {
    shape.check()?;
    let queries = shape.check_query(query)?;
    shape.check_database(database)?;
    let mut answer = Words::zeros(shape.query_word(), shape.answer_len(queries));
    for m in 0..queries {
        for n in 0..shape.n {
            for p in 0..shape.p {
                for q in 0..shape.q {
                    for c in 0..shape.c() {
                        for d in 0..shape.d {
                            let mut sum = 0u64;
                            for j in 0..shape.j {
                                for k in 0..shape.k {
                                    let a = query.get(shape.query_index([m, j, p, k, c, d]));
                                    let b = database.get(shape.database_index([j, n, k, q, c, d]));
                                    sum = shape.moduli[c].mul_add(a, b, sum);
                                }
                            }
                            let at = shape.answer_index([m, n, p, q, c, d]);
                            match &mut answer {
                                Words::U32(v) => v[at] = sum as u32,
                                Words::U64(v) => v[at] = sum,
                                _ => unreachable!("answers have 32- or 64-bit words"),
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_does_not_fit() {
        let shape = Shape { n: 3, j: 4, m: 2, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) };
        let database = Words::U8(vec![0; 12]);
        assert!(reference(&shape, &Words::U32(vec![0; 12]), &database).is_err(), "three parts where two fit");
        assert!(reference(&shape, &Words::U32(vec![0; 5]), &database).is_err());
        assert!(reference(&shape, &Words::U64(vec![0; 4]), &database).is_err());
        assert!(reference(&shape, &Words::U32(vec![0; 4]), &Words::U8(vec![0; 11])).is_err());
        assert!(Shape { n: 0, ..shape.clone() }.check().is_err());
        assert!(Shape { n: 1 << 40, j: 1 << 40, ..shape }.check().is_err());
        let prime = Shape::new(Word::U32, vec![Modulus::prime(17).unwrap()]);
        assert!(reference(&prime, &Words::U32(vec![17]), &Words::U32(vec![1])).is_err());
        assert!(reference(&prime, &Words::U32(vec![16]), &Words::U32(vec![17])).is_err());
        assert_eq!(
            reference(&prime, &Words::U32(vec![16]), &Words::U32(vec![16])).unwrap(),
            Words::U32(vec![1])
        );
    }
}
