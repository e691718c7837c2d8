//! The suite of the bigmod operation.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use super::Random;
use crate::bigmod::{
    BigModulus, Bigmod, Exponents, Form, HostRows, MAX_BITS, Method, MultiExp, Numbers, Residues, reference,
};
use crate::{Device, Error};

/// What of the suite a device runs that simulates hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest batch; at least 13.
    pub batch: usize,
    /// One of this many moduli, and of this many multi-exponentiations modulo each; at least 1.
    pub share: usize,
}

impl Limits {
    /// Everything.
    pub const NONE: Self = Self { batch: usize::MAX, share: 1 };
}

/// Runs every bigmod operation on every kind of modulus and compares each result with the definition.
///
/// Returns how many results were compared.
///
/// # Panics
/// Names the modulus and the operation that differs.
pub fn bigmod(device: &Device) -> usize {
    bigmod_within(device, Limits::NONE)
}

/// The same within limits: longer batches are left out;
/// of the others, and of the multi-exponentiations modulo each, one of every `share` is taken, those of the next modulus being others.
///
/// # Panics
/// As [`bigmod`].
pub fn bigmod_within(device: &Device, limits: Limits) -> usize {
    let slot = device.slots().bigmod.as_deref().expect("a bigmod slot");
    let capabilities = slot.capabilities();
    assert!((1..=MAX_BITS).contains(&capabilities.bits), "{} bits", capabilities.bits);
    let mut random = Random(0xb16);
    let mut cases = 0;
    let (carried, longer): (Vec<_>, Vec<_>) =
        moduli(&mut random).into_iter().partition(|modulus| modulus.bits() <= capabilities.bits);
    for modulus in carried.iter().chain(&longer) {
        let said = slot.check(modulus);
        assert_eq!(said.is_ok(), modulus.bits() <= capabilities.bits, "{} bits: {said:?}", modulus.bits());
    }
    for modulus in longer {
        let refused = device.bigmod(&modulus).err();
        assert!(matches!(refused, Some(Error::Modulus { .. })), "{} bits: {refused:?}", modulus.bits());
    }
    for (number, modulus) in carried.into_iter().step_by(limits.share).enumerate() {
        let bigmod = device.bigmod(&modulus).expect("a modulus in range");
        let case = Case { bigmod, modulus, limits, number };
        cases += case.products(&mut random);
        cases += case.powers(&mut random);
        cases += case.inverses(&mut random);
        cases += case.multi_exps(&mut random);
        case.refusals();
    }
    shapes(device, &mut random);
    cases
}

/// Edge and random moduli: tiny, all ones, one above and below the limits of limbs of 27, 52 and 64 bits, the sizes of
/// keys, one past them, and the longest.
fn moduli(random: &mut Random) -> Vec<BigModulus> {
    let mut roots: Vec<Vec<u64>> = vec![vec![3], vec![5], vec![9], vec![u64::MAX], vec![1, 1]];
    for bits in [27, 52, 54, 104, 108, 128, 256, 1024, 1040, 2048, 2080] {
        roots.push(add(&power_of_two(bits), 1));
        roots.push(ones(bits));
    }
    for bits in [40, 100, 512, 1000, 1024, 1025, 1536, 2047, 2048, 3072, 4096] {
        roots.push(odd(bits, random));
    }
    let mut moduli: Vec<BigModulus> = roots.iter().map(|r| BigModulus::odd(r).expect("odd")).collect();
    moduli.extend(roots.iter().map(|r| BigModulus::square_of(r).expect("odd")));
    for bits in [4160, 6144, 8192] {
        moduli.push(BigModulus::odd(&odd(bits, random)).expect("odd"));
        moduli.push(BigModulus::odd(&ones(bits)).expect("odd"));
    }
    moduli
}

fn power_of_two(bits: usize) -> Vec<u64> {
    let mut out = vec![0; bits / 64 + 1];
    out[bits / 64] = 1 << (bits % 64);
    out
}

fn add(x: &[u64], y: u64) -> Vec<u64> {
    let mut out = x.to_vec();
    out[0] |= y;
    out
}

fn ones(bits: usize) -> Vec<u64> {
    let mut out = vec![u64::MAX; bits.div_ceil(64)];
    if !bits.is_multiple_of(64) {
        *out.last_mut().expect("not empty") = (1 << (bits % 64)) - 1;
    }
    out
}

fn odd(bits: usize, random: &mut Random) -> Vec<u64> {
    let mut out: Vec<u64> = ones(bits).iter().map(|mask| random.next() & mask).collect();
    out[0] |= 1;
    let top = bits - 1;
    out[top / 64] |= 1 << (top % 64);
    out
}

/// What the definition gives, as a digest, by a digest of what was asked: it is slow, and each device of a program is asked the same.
static KNOWN: LazyLock<Mutex<HashMap<u64, Arc<OnceLock<u64>>>>> = LazyLock::new(Mutex::default);

fn digest(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

struct Case {
    modulus: BigModulus,
    bigmod: Arc<dyn Bigmod>,
    limits: Limits,
    number: usize,
}

impl Case {
    fn name(&self) -> String {
        let kind = if self.modulus.is_square() { "the square of one of" } else { "of" };
        format!("modulus {kind} {} words, lowest {:#x}", self.modulus.root().len(), self.modulus.root()[0])
    }

    fn one(&self) -> Vec<u64> {
        reference::one(&self.modulus)
    }

    /// A residue: an edge or a random one.
    fn residue(&self, random: &mut Random) -> Vec<u64> {
        let words = self.modulus.words();
        let minus_one = || {
            let mut out = self.modulus.value().to_vec();
            out[0] -= 1;
            out
        };
        match random.below(12) {
            0 => vec![0; words],
            1 => self.one(),
            2 => minus_one(),
            // Just under and above the root: where the halves of a square's residues meet.
            3 if self.modulus.is_square() => {
                let mut out = self.modulus.root().to_vec();
                out[0] -= random.below(2) as u64;
                out.resize(words, 0);
                out
            }
            _ => {
                // As many bits as the modulus has; what is not below it, less the modulus.
                let mut out: Vec<u64> =
                    ones(self.modulus.bits() as usize).iter().map(|mask| random.next() & mask).collect();
                if out.iter().rev().ge(self.modulus.value().iter().rev()) {
                    let mut borrow = false;
                    for (word, less) in out.iter_mut().zip(self.modulus.value()) {
                        (*word, borrow) = word.borrowing_sub(*less, borrow);
                    }
                }
                out
            }
        }
    }

    fn residues(&self, count: usize, random: &mut Random) -> Vec<Vec<u64>> {
        (0..count).map(|_| self.residue(random)).collect()
    }

    fn numbers(&self, residues: &[Vec<u64>]) -> Numbers {
        Numbers::from_words(self.modulus.words(), residues.iter().map(Vec::as_slice))
    }

    fn place(&self, residues: &[Vec<u64>]) -> Residues {
        self.bigmod.place(&self.numbers(residues)).expect("residues in range")
    }

    /// Compares with what the definition gives for what was drawn from `random`, and counts.
    fn same(&self, what: &str, random: &Random, got: &Residues, want: impl Fn() -> Vec<Vec<u64>>) -> usize {
        self.same_by(what, "", random, got, want)
    }

    /// The same of an operation that may be done in several ways.
    fn same_by(
        &self,
        what: &str,
        way: &str,
        random: &Random,
        got: &Residues,
        want: impl Fn() -> Vec<Vec<u64>>,
    ) -> usize {
        let got = self.bigmod.read(got).expect("its own residues");
        // Where the numbers come from that all of it was drawn from says what was drawn.
        let asked = digest(&(self.modulus.value(), self.modulus.is_square(), what, random.0, got.len()));
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).entry(asked).or_default().clone();
        let known = *known.get_or_init(|| digest(&want()));
        if digest(&got.iter().collect::<Vec<_>>()) != known {
            let want = want();
            assert_eq!(got.len(), want.len(), "{what}{way}, {}", self.name());
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                assert!(
                    got == want,
                    "{what}{way} {i} of {}, {}: {got:x?} where {want:x?}",
                    want.len(),
                    self.name()
                );
            }
        }
        got.len()
    }

    fn products(&self, random: &mut Random) -> usize {
        let mut cases = 0;
        // Batches of every length about the lanes, then a long one.
        for count in (0..=17).chain([40, 900]).filter(|count| *count <= self.limits.batch) {
            let (x, y) = (self.residues(count, random), self.residues(count, random));
            let (px, py) = (self.place(&x), self.place(&y));
            let times = |x: &[u64], y: &[u64]| reference::multiply(&self.modulus, x, y);
            let square = |x: &Vec<u64>| times(x, x);
            let products = || x.iter().zip(&y).map(|(x, y)| times(x, y)).collect::<Vec<_>>();
            cases += self.same("placing", random, &px, || x.clone());
            let (product, cost) = self.bigmod.multiply(&px, &py).expect("in range");
            assert_eq!(cost.multiplications, count as u64);
            cases += self.same("product", random, &product, products);
            let (squares, _) = self.bigmod.square(&px, 1).expect("in range");
            cases += self.same("square", random, &squares, || x.iter().map(square).collect());
            if count > 0 {
                let (product, _) = self.bigmod.multiply(&px, &py.select([0])).expect("in range");
                let want = || x.iter().map(|x| times(x, &y[0])).collect();
                cases += self.same("product by one number", random, &product, want);
            }
            // What comes out may go in again: forms that are not reduced must not grow.
            let mut chain = product;
            for _ in 0..3 {
                chain = self.bigmod.multiply(&chain, &chain).expect("in range").0;
            }
            let want = || products().iter().map(|x| square(&square(&square(x)))).collect();
            cases += self.same("chain of products", random, &chain, want);
            let squared = self.bigmod.square(&px, 3).expect("in range").0;
            let want = || x.iter().map(|x| square(&square(&square(x)))).collect();
            cases += self.same("three squarings", random, &squared, want);
        }
        cases
    }

    fn powers(&self, random: &mut Random) -> usize {
        let mut cases = 0;
        for bits in [1u32, 2, 5, 6, 63, 64, 65, 130] {
            let words = bits.div_ceil(64) as usize;
            let mut exponents = Numbers::zeroed(9, words);
            for i in 0..9 {
                let ones = ones(bits as usize);
                for (word, ones) in exponents.get_mut(i).iter_mut().zip(&ones) {
                    *word = match i {
                        0 => 0,
                        1 => *ones,
                        _ => random.next() & ones,
                    };
                }
            }
            let x = self.residues(9, random);
            let placed = self.place(&x);
            let power = |x: &[u64], e: &[u64]| reference::power(&self.modulus, x, e);
            let what = |what| format!("{what} of {bits} bits");
            let (got, _) = self.bigmod.power(&placed, &Exponents::Each(&exponents, bits)).expect("in range");
            let want = || x.iter().zip(exponents.iter()).map(|(x, e)| power(x, e)).collect();
            cases += self.same(&what("power"), random, &got, want);
            let exponent = Exponents::Shared(exponents.get(2), bits);
            let (got, _) = self.bigmod.power(&placed, &exponent).expect("in range");
            let want = || x.iter().map(|x| power(x, exponents.get(2))).collect();
            cases += self.same(&what("shared power"), random, &got, want);
            let base = self.bigmod.fixed_base(&placed.select([3]), bits).expect("in range");
            let (got, _) = base.power(&exponents).expect("in range");
            let want = || exponents.iter().map(|e| power(&x[3], e)).collect();
            cases += self.same(&what("power of a fixed base"), random, &got, want);
        }
        cases
    }

    /// Numbers that have inverses, and these, by way of the device: checked by multiplication.
    fn invertible(&self, count: usize, random: &mut Random) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        let (mut x, mut inverses) = (Vec::new(), Vec::new());
        let mut tries = 0;
        while x.len() < count {
            tries += 1;
            assert!(tries < 100 * count, "no invertible numbers, {}", self.name());
            let candidate = self.residue(random);
            match self.bigmod.invert(&self.place(std::slice::from_ref(&candidate))) {
                Ok((inverse, _)) => {
                    inverses.push(self.bigmod.read(&inverse).expect("its own").get(0).to_vec());
                    x.push(candidate);
                }
                Err(Error::NotInvertible { position: 0, count: 1 }) => {}
                Err(e) => panic!("{e}, {}", self.name()),
            }
        }
        (x, inverses)
    }

    fn inverses(&self, random: &mut Random) -> usize {
        let mut cases = 0;
        let (x, inverses) = self.invertible(13, random);
        for (x, inverse) in x.iter().zip(&inverses) {
            let product = reference::multiply(&self.modulus, x, inverse);
            assert!(product == self.one(), "inverse, {}", self.name());
            cases += 1;
        }
        for count in [0, 1, 2, 3, 8, 13] {
            let (got, _) = self.bigmod.invert(&self.place(&x[..count])).expect("they have inverses");
            cases += self.same("inverses of a batch", random, &got, || inverses[..count].to_vec());
        }
        for position in [0, 6, 12] {
            let mut x = x.clone();
            x[position] = vec![0; self.modulus.words()];
            let error = self.bigmod.invert(&self.place(&x)).err();
            assert_eq!(error, Some(Error::NotInvertible { position, count: 13 }), "{}", self.name());
        }
        cases
    }

    fn multi_exps(&self, random: &mut Random) -> usize {
        let mut cases = 0;
        let (x, inverses) = self.invertible(11, random);
        let placed = self.place(&x);
        let shapes = [(1, 11, 1), (1, 11, 9), (3, 5, 4), (9, 4, 1), (2, 1, 3)];
        for (shape, (positions, terms, outputs)) in shapes.into_iter().enumerate() {
            for (kind, limit) in [(0, 128i64), (1, 128), (2, 8), (3, 2), (4, 5000), (5, 1 << 20), (6, 1)] {
                // The definition is slow for long moduli.
                let share = self.limits.share.max(if self.modulus.words() > 40 { 3 } else { 1 });
                if !(shape + kind + self.number).is_multiple_of(share) {
                    continue;
                }
                let weight = |random: &mut Random| match (kind, random.below(6)) {
                    (_, 0) => -limit,
                    (_, 1) => limit - 1,
                    (0, _) => random.below(limit as usize) as i64,
                    (_, 2) => 0,
                    _ => random.below(2 * limit as usize) as i64 - limit,
                };
                let mut multi_exp = MultiExp {
                    terms,
                    indices: (0..positions * terms)
                        .map(
                            |_| if random.below(7) == 0 { MultiExp::ABSENT } else { random.below(11) as u32 },
                        )
                        .collect(),
                    weights: (0..outputs * terms).map(|_| weight(random)).collect(),
                    method: Method::Auto,
                };
                if kind == 0 {
                    multi_exp.weights.iter_mut().for_each(|w| *w = w.abs()); // none negative
                }
                if kind == 6 {
                    multi_exp.weights.fill(0);
                }
                let want = || reference::multi_exp(&self.modulus, &x, &inverses, &multi_exp);
                let asked = format!("{multi_exp:?}");
                for method in [Method::Auto, Method::BitSerial, Method::Buckets, Method::Tables] {
                    let by = MultiExp { method, ..multi_exp.clone() };
                    let (got, _) = self.bigmod.multi_exp(&placed, &by).expect("in range");
                    cases += self.same_by(&asked, &format!(" by {method:?}"), random, &got, want);
                }
            }
        }
        cases
    }

    fn refusals(&self) {
        let value = self.modulus.value();
        let numbers = Numbers::from_words(value.len(), [self.one().as_slice(), value]);
        let error = self.bigmod.place(&numbers).err();
        assert_eq!(error, Some(Error::NotReduced { position: 1, count: 2 }), "{}", self.name());
        let one = self.place(&[self.one()]);
        for (what, error) in [
            ("length", self.bigmod.place(&Numbers::zeroed(1, value.len() + 1)).err()),
            ("factors", self.bigmod.multiply(&one, &one.select([0, 0])).err()),
            ("exponent", self.bigmod.power(&one, &Exponents::Shared(&[8], 3)).err()),
            ("exponents", self.bigmod.power(&one, &Exponents::Each(&Numbers::zeroed(2, 1), 3)).err()),
            ("exponent's length", self.bigmod.power(&one, &Exponents::Shared(&[8], 1 << 20)).err()),
            ("base", self.bigmod.fixed_base(&one.select([0, 0]), 9).err()),
            ("index", self.bigmod.multi_exp(&one, &MultiExp::matrix(2, vec![1, 1])).err()),
            (
                "rows",
                self.bigmod
                    .multi_exp(&one, &MultiExp { weights: vec![1; 3], ..MultiExp::matrix(2, vec![]) })
                    .err(),
            ),
            ("terms", self.bigmod.multi_exp(&one, &MultiExp::matrix(0, vec![])).err()),
            ("weight", self.bigmod.multi_exp(&one, &MultiExp::matrix(1, vec![i64::MIN])).err()),
        ] {
            assert!(error.is_some(), "{what} out of range was taken, {}", self.name());
        }
    }
}

/// Moduli that are refused, and residues that belong elsewhere.
fn shapes(device: &Device, random: &mut Random) {
    for words in [vec![], vec![0], vec![1], vec![1, 0], vec![4], odd(8193, random)] {
        assert!(matches!(BigModulus::odd(&words), Err(Error::Modulus { .. })), "{words:?}");
    }
    assert!(matches!(BigModulus::square_of(&odd(4097, random)), Err(Error::Modulus { .. })));
    let open = |n: u64| device.bigmod(&BigModulus::odd(&[n]).expect("odd")).expect("in range");
    let (seven, nine) = (open(7), open(9));
    let of_seven = seven.place(&Numbers::zeroed(1, 1)).expect("zero");
    let error = nine.square(&of_seven, 1).err();
    assert!(matches!(error, Some(Error::Residues { same_modulus: false, .. })), "{error:?}");
    let foreign = Residues::new(seven.modulus(), HostRows::zeroed(Foreign, 1));
    let error = seven.square(&foreign, 1).err();
    assert!(matches!(error, Some(Error::Residues { same_modulus: true, .. })), "{error:?}");
    assert!(foreign.clone().append(&of_seven).is_err() && of_seven.clone().append(&foreign).is_err());
}

/// The form of another device than the one that is tested.
#[derive(Clone, PartialEq)]
struct Foreign;

impl Form for Foreign {
    fn name(&self) -> &str {
        "another device's"
    }

    fn row_lines(&self) -> usize {
        1
    }
}
