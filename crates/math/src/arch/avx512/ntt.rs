//! The number-theoretic transform by IFMA: eight words an instruction, modulo primes below 2^50.
//!
//! Words wait in registers through several layers. The first layers take 2, 4, 8 or 16 vectors that lie as far apart as the
//! layer's halves, with one factor for whole vectors; the last seven take 128 words that lie together: four layers between
//! vectors, then a transposition of 8 x 8 words, after which the last three lie between vectors as well, with a factor for
//! each lane.

#![allow(clippy::modulo_one, reason = "the halves of the innermost layer are single vectors")]

use std::arch::x86_64::*;

use crate::features::Ifma;
use crate::ntt::tables::{Factor, Tables};

/// Words of a vector.
const LANES: usize = 8;
/// Words that the last seven layers take at once.
const BLOCK: usize = 128;
/// Vectors of a block.
const VECTORS: usize = BLOCK / LANES;
/// Below this, words may grow through all layers and stay below 2^52: 2 * 15 + 1 times the prime.
const GROWING: u64 = (1 << 52) / 31;
/// Below this, words below twice the prime may grow through the last seven layers: to 2 * 7 + 2 times the prime.
const GROWING_BY_PASS: u64 = 1 << 48;
/// Below this, four times the prime is below 2^52.
const LIMIT: u64 = 1 << 50;

/// Tables for one direction.
struct Direction {
    /// A factor and its quotient of 52 bits, for the layers with one factor for whole vectors: rev(k) at k.
    whole: Vec<[u64; 2]>,
    /// For each 64 words: the factors of three layers (one, two and four vectors), each with its quotients.
    lanes: Vec<[[[u64; LANES]; 2]; 7]>,
}

/// A transform, for a machine that has IFMA.
pub(crate) struct Transform {
    token: Ifma,
    degree: usize,
    prime: u64,
    forward: Direction,
    inverse: Direction,
    /// 1 / d, and the last layer's factor over d.
    scale: [[u64; 2]; 2],
}

fn pair(factor: &Factor) -> [u64; 2] {
    // floor(floor(2^64 f / q) / 2^12) = floor(2^52 f / q)
    [factor.value, factor.quotient >> 12]
}

impl Direction {
    fn new(factors: &[Factor]) -> Self {
        let degree = factors.len();
        let whole = factors[..degree / LANES].iter().map(pair).collect();
        let lanes = (0..degree / 64)
            .map(|group| {
                let mut out = [[[0; LANES]; 2]; 7];
                let mut at = 0;
                for blocks in [1, 2, 4] {
                    for block in 0..blocks {
                        for lane in 0..LANES {
                            let k = degree / 8 * blocks + (group * LANES + lane) * blocks + block;
                            [out[at][0][lane], out[at][1][lane]] = pair(&factors[k]);
                        }
                        at += 1;
                    }
                }
                out
            })
            .collect();
        Self { whole, lanes }
    }
}

impl Transform {
    /// `None` where the prime is too large.
    pub(crate) fn new(token: Ifma, tables: &Tables) -> Option<Self> {
        (tables.prime.value() < LIMIT).then(|| Self {
            token,
            degree: tables.degree,
            prime: tables.prime.value(),
            forward: Direction::new(&tables.forward),
            inverse: Direction::new(&tables.inverse),
            scale: [pair(&tables.scale), pair(&tables.last)],
        })
    }

    pub(crate) fn forward(&self, words: &mut [u64]) {
        assert_eq!(words.len(), self.degree);
        let _: Ifma = self.token;
        // SAFETY: the token stands for these features, and there are `degree` words.
        unsafe {
            if self.prime < GROWING {
                forward::<true, false>(self, words);
            } else if self.prime < GROWING_BY_PASS {
                forward::<true, true>(self, words);
            } else {
                forward::<false, false>(self, words);
            }
        }
    }

    pub(crate) fn inverse(&self, words: &mut [u64]) {
        assert_eq!(words.len(), self.degree);
        let _: Ifma = self.token;
        // SAFETY: the token stands for these features, and there are `degree` words.
        unsafe {
            if self.degree == BLOCK {
                inverse::<true>(self, words);
            } else {
                inverse::<false>(self, words);
            }
        }
    }
}

/// Layers before the last seven, in passes: how many each takes, the widest first.
fn passes(degree: usize) -> &'static [usize] {
    match degree.ilog2() {
        7 => &[],
        8 => &[1],
        9 => &[2],
        10 => &[3],
        11 => &[4],
        12 => &[3, 2],
        13 => &[3, 3],
        14 => &[4, 3],
        _ => &[4, 4],
    }
}

#[derive(Clone, Copy)]
struct Constants {
    q: __m512i,
    twice: __m512i,
    /// 2^52 - q.
    minus: __m512i,
    /// 2^52 - 1.
    mask: __m512i,
    /// floor(2^52 / q).
    inverse: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn constants(q: u64) -> Constants {
    let all = |x: u64| _mm512_set1_epi64(x as i64);
    Constants {
        q: all(q),
        twice: all(2 * q),
        minus: all((1 << 52) - q),
        mask: all((1 << 52) - 1),
        inverse: all((1 << 52) / q),
    }
}

/// A factor and its quotient, in all lanes or one for each.
#[derive(Clone, Copy)]
struct Factors {
    value: __m512i,
    quotient: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn everywhere(factor: &[u64; 2]) -> Factors {
    Factors { value: _mm512_set1_epi64(factor[0] as i64), quotient: _mm512_set1_epi64(factor[1] as i64) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn each_lane([values, quotients]: &[[u64; LANES]; 2]) -> Factors {
    // SAFETY: eight words each.
    unsafe {
        Factors {
            value: _mm512_loadu_si512(values.as_ptr().cast()),
            quotient: _mm512_loadu_si512(quotients.as_ptr().cast()),
        }
    }
}

/// `x` times the factor, below 2q for `x` below 2^52.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply(c: &Constants, x: __m512i, factor: Factors) -> __m512i {
    let zero = _mm512_setzero_si512();
    let quotient = _mm512_madd52hi_epu64(zero, x, factor.quotient);
    let product = _mm512_madd52lo_epu64(zero, x, factor.value);
    _mm512_and_si512(_mm512_madd52lo_epu64(product, quotient, c.minus), c.mask)
}

/// `x - n` where that is not negative, else `x`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduce(x: __m512i, n: __m512i) -> __m512i {
    _mm512_min_epu64(x, _mm512_sub_epi64(x, n))
}

/// `x` below 2q, for `x` below 2^52.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn below_twice(c: &Constants, x: __m512i) -> __m512i {
    // At most one short of x / q.
    let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), x, c.inverse);
    _mm512_and_si512(_mm512_madd52lo_epu64(x, quotient, c.minus), c.mask)
}

/// Two words of a layer of the forward transform. Words stay below 4q, or grow by 2q a layer.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn butterfly<const GROW: bool>(c: &Constants, x: __m512i, y: __m512i, factor: Factors) -> [__m512i; 2] {
    let a = if GROW { x } else { reduce(x, c.twice) };
    let b = multiply(c, y, factor);
    [_mm512_add_epi64(a, b), _mm512_sub_epi64(_mm512_add_epi64(a, c.twice), b)]
}

/// Two words of a layer of the inverse transform, below 2q before and after.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn butterfly_back(c: &Constants, x: __m512i, y: __m512i, factor: Factors) -> [__m512i; 2] {
    let difference = _mm512_sub_epi64(_mm512_add_epi64(x, c.twice), y);
    [reduce(_mm512_add_epi64(x, y), c.twice), multiply(c, difference, factor)]
}

/// As [`butterfly_back`] in the last layer: both outputs are divided by the degree, and residues.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn butterfly_last(c: &Constants, x: __m512i, y: __m512i, scale: &[Factors; 2]) -> [__m512i; 2] {
    let difference = _mm512_sub_epi64(_mm512_add_epi64(x, c.twice), y);
    let [x, y] = [multiply(c, _mm512_add_epi64(x, y), scale[0]), multiply(c, difference, scale[1])];
    [reduce(x, c.q), reduce(y, c.q)]
}

/// Eight vectors of eight words, rows for columns.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn transpose(v: [__m512i; 8]) -> [__m512i; 8] {
    // Words of pairs of rows, then pairs of words, then halves.
    let mut a = v;
    for i in 0..4 {
        a[2 * i] = _mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]);
    }
    let mut b = a;
    for i in [0, 1, 4, 5] {
        b[i] = _mm512_shuffle_i64x2::<0b10_00_10_00>(a[i], a[i + 2]);
        b[i + 2] = _mm512_shuffle_i64x2::<0b11_01_11_01>(a[i], a[i + 2]);
    }
    let mut out = b;
    for i in 0..4 {
        out[i] = _mm512_shuffle_i64x2::<0b10_00_10_00>(b[i], b[i + 4]);
        out[i + 4] = _mm512_shuffle_i64x2::<0b11_01_11_01>(b[i], b[i + 4]);
    }
    out
}

/// The last three layers, of 64 words; and what makes residues of them.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn lanes<const GROW: bool>(c: &Constants, factors: &[[[u64; LANES]; 2]; 7], v: [__m512i; 8]) -> [__m512i; 8] {
    let mut v = transpose(v);
    for i in 0..4 {
        [v[i], v[i + 4]] = butterfly::<GROW>(c, v[i], v[i + 4], each_lane(&factors[0]));
    }
    for i in 0..2 {
        [v[i], v[i + 2]] = butterfly::<GROW>(c, v[i], v[i + 2], each_lane(&factors[1]));
        [v[i + 4], v[i + 6]] = butterfly::<GROW>(c, v[i + 4], v[i + 6], each_lane(&factors[2]));
    }
    for i in 0..4 {
        [v[2 * i], v[2 * i + 1]] = butterfly::<GROW>(c, v[2 * i], v[2 * i + 1], each_lane(&factors[3 + i]));
    }
    for x in &mut v {
        let once = if GROW { below_twice(c, *x) } else { reduce(*x, c.twice) };
        *x = reduce(once, c.q);
    }
    transpose(v)
}

/// The first three layers of the inverse transform, of 64 words.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn lanes_back(c: &Constants, factors: &[[[u64; LANES]; 2]; 7], v: [__m512i; 8]) -> [__m512i; 8] {
    let mut v = transpose(v);
    for i in 0..4 {
        [v[2 * i], v[2 * i + 1]] = butterfly_back(c, v[2 * i], v[2 * i + 1], each_lane(&factors[3 + i]));
    }
    for i in 0..2 {
        [v[i], v[i + 2]] = butterfly_back(c, v[i], v[i + 2], each_lane(&factors[1]));
        [v[i + 4], v[i + 6]] = butterfly_back(c, v[i + 4], v[i + 6], each_lane(&factors[2]));
    }
    for i in 0..4 {
        [v[i], v[i + 4]] = butterfly_back(c, v[i], v[i + 4], each_lane(&factors[0]));
    }
    transpose(v)
}

/// Loads `R` vectors, `stride` words apart.
///
/// # Safety
/// They lie from `at` on.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn load<const R: usize>(at: *const u64, stride: usize) -> [__m512i; R] {
    // Not `from_fn`: what it calls would not be compiled for these instructions.
    let mut vectors = [_mm512_setzero_si512(); R];
    for (i, vector) in vectors.iter_mut().enumerate() {
        // SAFETY: promised by the caller.
        *vector = unsafe { _mm512_loadu_si512(at.add(i * stride).cast()) };
    }
    vectors
}

/// # Safety
/// As for [`load`].
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn store<const R: usize>(at: *mut u64, stride: usize, vectors: &[__m512i; R]) {
    for (i, vector) in vectors.iter().enumerate() {
        // SAFETY: promised by the caller.
        unsafe { _mm512_storeu_si512(at.add(i * stride).cast(), *vector) };
    }
}

/// A layer between vectors, the halves of whose blocks are `$half` vectors; each block has its factor.
///
/// Macros and not functions: sixteen vectors are to stay in registers, and the compiler calls such functions rather than
/// write them out.
macro_rules! layer {
    ($v:ident, $r:expr, $half:expr, $factors:expr, |$x:ident, $y:ident, $factor:ident| $butterfly:expr) => {
        if $half < $r {
            let factors = &$factors[..$r / $half / 2];
            for i in 0..$r / 2 {
                let (block, k) = (i / $half, i % $half);
                let (left, right) = (2 * $half * block + k, 2 * $half * block + k + $half);
                let ($x, $y, $factor) = ($v[left], $v[right], everywhere(&factors[block]));
                [$v[left], $v[right]] = $butterfly;
            }
        }
    };
}

/// log2(`$r`) layers between `$r` vectors: block `$block` of the first of them, counted from the first factor.
macro_rules! layers {
    ($c:ident, $v:ident, $r:expr, $grow:ident, $factors:expr, $block:expr) => {{
        let (factors, block) = (&$factors[..], $block);
        layer!($v, $r, 8, factors[$r / 16 * block..], |x, y, f| butterfly::<$grow>($c, x, y, f));
        layer!($v, $r, 4, factors[$r / 8 * block..], |x, y, f| butterfly::<$grow>($c, x, y, f));
        layer!($v, $r, 2, factors[$r / 4 * block..], |x, y, f| butterfly::<$grow>($c, x, y, f));
        layer!($v, $r, 1, factors[$r / 2 * block..], |x, y, f| butterfly::<$grow>($c, x, y, f));
    }};
}

/// The same layers of the inverse transform, the other way round. `$last`: the outermost is the transform's last.
macro_rules! layers_back {
    ($c:ident, $v:ident, $r:expr, $last:ident, $transform:ident, $block:expr) => {{
        let (factors, block) = (&$transform.inverse.whole[..], $block);
        if $r > 2 {
            layer!($v, $r, 1, factors[$r / 2 * block..], |x, y, f| butterfly_back($c, x, y, f));
        }
        if $r > 4 {
            layer!($v, $r, 2, factors[$r / 4 * block..], |x, y, f| butterfly_back($c, x, y, f));
        }
        if $r > 8 {
            layer!($v, $r, 4, factors[$r / 8 * block..], |x, y, f| butterfly_back($c, x, y, f));
        }
        if $last {
            let scale = [everywhere(&$transform.scale[0]), everywhere(&$transform.scale[1])];
            layer!($v, $r, $r / 2, factors[block..], |x, y, _f| butterfly_last($c, x, y, &scale));
        } else {
            layer!($v, $r, $r / 2, factors[block..], |x, y, f| butterfly_back($c, x, y, f));
        }
    }};
}

/// A pass over all words: the layers that begin with `blocks` blocks. `REDUCE`: words are brought below 2q before.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn pass<const R: usize, const GROW: bool, const REDUCE: bool>(
    c: &Constants,
    transform: &Transform,
    words: &mut [u64],
    blocks: usize,
) {
    let stride = transform.degree / blocks / R;
    for (block, words) in words.chunks_exact_mut(R * stride).enumerate() {
        for column in (0..stride).step_by(LANES) {
            let at = words[column..].as_mut_ptr();
            // SAFETY: `R` strides of words, of which a vector lies within each.
            unsafe {
                let mut v = load::<R>(at, stride);
                if REDUCE && blocks > 1 {
                    for x in &mut v {
                        *x = below_twice(c, *x);
                    }
                }
                layers!(c, v, R, GROW, transform.forward.whole, blocks + block);
                store(at, stride, &v);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn pass_back<const R: usize, const LAST: bool>(
    c: &Constants,
    transform: &Transform,
    words: &mut [u64],
    blocks: usize,
) {
    let stride = transform.degree / blocks / R;
    for (block, words) in words.chunks_exact_mut(R * stride).enumerate() {
        for column in (0..stride).step_by(LANES) {
            let at = words[column..].as_mut_ptr();
            // SAFETY: `R` strides of words, of which a vector lies within each.
            unsafe {
                let mut v = load::<R>(at, stride);
                layers_back!(c, v, R, LAST, transform, blocks + block);
                store(at, stride, &v);
            }
        }
    }
}

/// In: residues. Out: residues. `GROW`: words grow from layer to layer; `REDUCE`: through a pass.
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward<const GROW: bool, const REDUCE: bool>(transform: &Transform, words: &mut [u64]) {
    let c = &constants(transform.prime);
    let mut blocks = 1;
    for layers in passes(transform.degree) {
        match layers {
            1 => pass::<2, GROW, REDUCE>(c, transform, words, blocks),
            2 => pass::<4, GROW, REDUCE>(c, transform, words, blocks),
            3 => pass::<8, GROW, REDUCE>(c, transform, words, blocks),
            _ => pass::<16, GROW, REDUCE>(c, transform, words, blocks),
        }
        blocks <<= layers;
    }
    for (block, words) in words.chunks_exact_mut(BLOCK).enumerate() {
        // SAFETY: a block of sixteen vectors, of two times eight.
        unsafe {
            let mut v = load::<VECTORS>(words.as_ptr(), LANES);
            if REDUCE {
                for x in &mut v {
                    *x = below_twice(c, *x);
                }
            }
            layers!(c, v, VECTORS, GROW, transform.forward.whole, blocks + block);
            store(words.as_mut_ptr(), LANES, &v);
        }
        for (words, factors) in words.chunks_exact_mut(64).zip(&transform.forward.lanes[2 * block..]) {
            // SAFETY: eight vectors.
            unsafe {
                let v = lanes::<GROW>(c, factors, load::<8>(words.as_ptr(), LANES));
                store(words.as_mut_ptr(), LANES, &v);
            }
        }
    }
}

/// In: residues. Out: residues. `LAST`: a block is all there is, and its last layer the transform's.
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse<const LAST: bool>(transform: &Transform, words: &mut [u64]) {
    let c = &constants(transform.prime);
    let passes = passes(transform.degree);
    let mut blocks = transform.degree / BLOCK;
    for (block, words) in words.chunks_exact_mut(BLOCK).enumerate() {
        for (words, factors) in words.chunks_exact_mut(64).zip(&transform.inverse.lanes[2 * block..]) {
            // SAFETY: eight vectors.
            unsafe {
                let v = lanes_back(c, factors, load::<8>(words.as_ptr(), LANES));
                store(words.as_mut_ptr(), LANES, &v);
            }
        }
        // SAFETY: a block of sixteen vectors.
        unsafe {
            let mut v = load::<VECTORS>(words.as_ptr(), LANES);
            layers_back!(c, v, VECTORS, LAST, transform, blocks + block);
            store(words.as_mut_ptr(), LANES, &v);
        }
    }
    for layers in passes.iter().rev() {
        blocks >>= layers;
        match (layers, blocks) {
            (1, _) => pass_back::<2, true>(c, transform, words, blocks),
            (2, 1) => pass_back::<4, true>(c, transform, words, blocks),
            (2, _) => pass_back::<4, false>(c, transform, words, blocks),
            (3, 1) => pass_back::<8, true>(c, transform, words, blocks),
            (3, _) => pass_back::<8, false>(c, transform, words, blocks),
            (_, 1) => pass_back::<16, true>(c, transform, words, blocks),
            (_, _) => pass_back::<16, false>(c, transform, words, blocks),
        }
    }
}
