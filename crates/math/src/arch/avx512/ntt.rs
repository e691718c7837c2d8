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
/// Below this, words may grow to 16 times the prime. Forward, they begin the last seven layers below twice the prime, to which
/// each adds as much; back, a sum may double three times.
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
            match (self.degree == BLOCK, self.prime < GROWING_BY_PASS) {
                (false, true) => inverse::<false, true>(self, words),
                (false, false) => inverse::<false, false>(self, words),
                (true, true) => inverse::<true, true>(self, words),
                (true, false) => inverse::<true, false>(self, words),
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
    /// 2, 4 and 8 times q.
    twice: __m512i,
    four: __m512i,
    eight: __m512i,
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
        four: all(4 * q),
        eight: all(8 * q),
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

/// `add` and `x` times the factor, where the product is below 2q. Only the lowest 52 bits count, of `x` and of the result.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply_add(c: &Constants, add: __m512i, x: __m512i, factor: Factors) -> __m512i {
    let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), x, factor.quotient);
    let product = _mm512_madd52lo_epu64(add, x, factor.value);
    _mm512_madd52lo_epu64(product, quotient, c.minus)
}

/// `x` times the factor, below 2q for `x` below 2^52.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply(c: &Constants, x: __m512i, factor: Factors) -> __m512i {
    _mm512_and_si512(multiply_add(c, _mm512_setzero_si512(), x, factor), c.mask)
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

/// Two words of a layer of the forward transform. They stay below 4q; or grow by 2q, and only their lowest 52 bits count.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn butterfly<const GROW: bool>(c: &Constants, x: __m512i, y: __m512i, factor: Factors) -> [__m512i; 2] {
    if GROW {
        let sum = multiply_add(c, x, y, factor);
        // x + 2q less the product, which is the sum less x.
        let difference = _mm512_sub_epi64(_mm512_add_epi64(x, _mm512_add_epi64(x, c.twice)), sum);
        return [sum, difference];
    }
    let a = reduce(x, c.twice);
    let b = multiply(c, y, factor);
    [_mm512_add_epi64(a, b), _mm512_sub_epi64(_mm512_add_epi64(a, c.twice), b)]
}

/// Two words of a layer of the inverse transform, and what they are below, in q: 2 before and after; or, where they `GROW`, up
/// to 8 before, their sum twice as much after and the product 2, and only their lowest 52 bits count.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn butterfly_back<const GROW: bool>(
    c: &Constants,
    [x, y]: [__m512i; 2],
    below: u32,
    factor: Factors,
) -> [__m512i; 2] {
    let sum = _mm512_add_epi64(x, y);
    if GROW {
        let offset = match below {
            8 => c.eight,
            4 => c.four,
            _ => c.twice,
        };
        let difference = _mm512_sub_epi64(_mm512_add_epi64(x, offset), y);
        return [sum, multiply_add(c, _mm512_setzero_si512(), difference, factor)];
    }
    let difference = _mm512_sub_epi64(_mm512_add_epi64(x, c.twice), y);
    [reduce(sum, c.twice), multiply(c, difference, factor)]
}

/// As [`butterfly_back`] in the last layer: both outputs are divided by the degree, and residues.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn butterfly_last<const GROW: bool>(
    c: &Constants,
    [x, y]: [__m512i; 2],
    scale: &[Factors; 2],
) -> [__m512i; 2] {
    let offset = if GROW { c.eight } else { c.twice };
    let difference = _mm512_sub_epi64(_mm512_add_epi64(x, offset), y);
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

/// The first three layers of the inverse transform, of 64 residues; below 2q after.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn lanes_back<const GROW: bool>(
    c: &Constants,
    factors: &[[[u64; LANES]; 2]; 7],
    v: [__m512i; 8],
) -> [__m512i; 8] {
    let mut v = transpose(v);
    for i in 0..4 {
        let pair = [v[2 * i], v[2 * i + 1]];
        [v[2 * i], v[2 * i + 1]] = butterfly_back::<GROW>(c, pair, 1, each_lane(&factors[3 + i]));
    }
    for i in 0..2 {
        [v[i], v[i + 2]] = butterfly_back::<GROW>(c, [v[i], v[i + 2]], 2, each_lane(&factors[1]));
        [v[i + 4], v[i + 6]] = butterfly_back::<GROW>(c, [v[i + 4], v[i + 6]], 2, each_lane(&factors[2]));
    }
    for i in 0..4 {
        [v[i], v[i + 4]] = butterfly_back::<GROW>(c, [v[i], v[i + 4]], 4, each_lane(&factors[0]));
    }
    if GROW {
        // Sums.
        for x in &mut v[..4] {
            *x = below_twice(c, *x);
        }
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

/// A layer between `$r` vectors, the halves of whose blocks are `$half` vectors: what to do with a left one, a right one and
/// their block's factor.
///
/// Macros and not functions: sixteen vectors are to stay in registers, and the compiler calls such functions rather than
/// write them out.
macro_rules! layer {
    ($r:expr, $half:expr, $factors:expr, |$left:ident, $right:ident, $factor:ident| $butterfly:expr) => {
        if $half < $r {
            let factors = &$factors[..$r / $half / 2];
            for i in 0..$r / 2 {
                let (block, k) = (i / $half, i % $half);
                let ($left, $right) = (2 * $half * block + k, 2 * $half * block + k + $half);
                let $factor = everywhere(&factors[block]);
                $butterfly;
            }
        }
    };
}

/// log2(`$r`) layers between `$r` vectors: block `$block` of the first of them, counted from the first factor. `$reduce`: words
/// are brought below 2q before; those that are multiplied first need not be.
macro_rules! layers {
    ($c:ident, $v:ident, $r:expr, $grow:ident, $reduce:expr, $factors:expr, $block:expr) => {{
        let (factors, block) = (&$factors[..], $block);
        layers!(@ $c, $v, $r, 8, $grow, $reduce, factors[$r / 16 * block..]);
        layers!(@ $c, $v, $r, 4, $grow, $reduce, factors[$r / 8 * block..]);
        layers!(@ $c, $v, $r, 2, $grow, $reduce, factors[$r / 4 * block..]);
        layers!(@ $c, $v, $r, 1, $grow, $reduce, factors[$r / 2 * block..]);
    }};
    (@ $c:ident, $v:ident, $r:expr, $half:expr, $grow:ident, $reduce:expr, $factors:expr) => {
        layer!($r, $half, $factors, |left, right, factor| {
            if $reduce && $half == $r / 2 {
                $v[left] = below_twice($c, $v[left]);
            }
            [$v[left], $v[right]] = butterfly::<$grow>($c, $v[left], $v[right], factor);
        })
    };
}

/// What words at this place of a block's half are below, in q, before the layer of such halves: in each layer since the one
/// whose product they were, they were a sum.
#[inline(always)]
fn below(half: usize, place: usize) -> u32 {
    2 << (half.ilog2() - place.checked_ilog2().map_or(0, |log| log + 1))
}

/// The same layers of the inverse transform, the other way round, from words below 2q to such words. `$last`: the outermost is
/// the transform's last.
macro_rules! layers_back {
    ($c:ident, $v:ident, $r:expr, $grow:ident, $last:ident, $transform:ident, $block:expr) => {{
        let (factors, block) = (&$transform.inverse.whole[..], $block);
        if $r > 2 {
            layers_back!(@layer $c, $v, $r, 1, $grow, factors[$r / 2 * block..]);
        }
        if $r > 4 {
            layers_back!(@layer $c, $v, $r, 2, $grow, factors[$r / 4 * block..]);
        }
        if $r > 8 {
            layers_back!(@layer $c, $v, $r, 4, $grow, factors[$r / 8 * block..]);
        }
        if $last {
            let scale = [everywhere(&$transform.scale[0]), everywhere(&$transform.scale[1])];
            layer!($r, $r / 2, factors[block..], |left, right, _factor| {
                layers_back!(@settle $c, $v, $grow, left, right, below($r / 2, left));
                [$v[left], $v[right]] = butterfly_last::<$grow>($c, [$v[left], $v[right]], &scale);
            });
        } else {
            layers_back!(@layer $c, $v, $r, $r / 2, $grow, factors[block..]);
            if $grow {
                // Sums.
                for i in 0..$r / 2 {
                    $v[i] = below_twice($c, $v[i]);
                }
            }
        }
    }};
    (@layer $c:ident, $v:ident, $r:expr, $half:expr, $grow:ident, $factors:expr) => {
        layer!($r, $half, $factors, |left, right, factor| {
            let below = below($half, left % $half);
            layers_back!(@settle $c, $v, $grow, left, right, below);
            [$v[left], $v[right]] = butterfly_back::<$grow>($c, [$v[left], $v[right]], below, factor);
        })
    };
    // Two words of a layer that have grown too far for another are brought below 2q.
    (@settle $c:ident, $v:ident, $grow:ident, $left:ident, $right:ident, $below:expr) => {
        if $grow && $below > 8 {
            ($v[$left], $v[$right]) = (below_twice($c, $v[$left]), below_twice($c, $v[$right]));
        }
    };
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
                layers!(c, v, R, GROW, REDUCE && blocks > 1, transform.forward.whole, blocks + block);
                store(at, stride, &v);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn pass_back<const R: usize, const GROW: bool, const LAST: bool>(
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
                layers_back!(c, v, R, GROW, LAST, transform, blocks + block);
                store(at, stride, &v);
            }
        }
    }
}

/// In: residues. Out: residues. `GROW`: words grow from layer to layer; `REDUCE`: from a pass to the next.
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
            layers!(c, v, VECTORS, GROW, REDUCE, transform.forward.whole, blocks + block);
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

/// In: residues. Out: residues. `LAST`: a block is all there is, and its last layer the transform's. `GROW`: words grow for
/// some layers.
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse<const LAST: bool, const GROW: bool>(transform: &Transform, words: &mut [u64]) {
    let c = &constants(transform.prime);
    let passes = passes(transform.degree);
    let mut blocks = transform.degree / BLOCK;
    for (block, words) in words.chunks_exact_mut(BLOCK).enumerate() {
        for (words, factors) in words.chunks_exact_mut(64).zip(&transform.inverse.lanes[2 * block..]) {
            // SAFETY: eight vectors.
            unsafe {
                let v = lanes_back::<GROW>(c, factors, load::<8>(words.as_ptr(), LANES));
                store(words.as_mut_ptr(), LANES, &v);
            }
        }
        // SAFETY: a block of sixteen vectors.
        unsafe {
            let mut v = load::<VECTORS>(words.as_ptr(), LANES);
            layers_back!(c, v, VECTORS, GROW, LAST, transform, blocks + block);
            store(words.as_mut_ptr(), LANES, &v);
        }
    }
    for layers in passes.iter().rev() {
        blocks >>= layers;
        match (layers, blocks) {
            (1, _) => pass_back::<2, GROW, true>(c, transform, words, blocks),
            (2, 1) => pass_back::<4, GROW, true>(c, transform, words, blocks),
            (2, _) => pass_back::<4, GROW, false>(c, transform, words, blocks),
            (3, 1) => pass_back::<8, GROW, true>(c, transform, words, blocks),
            (3, _) => pass_back::<8, GROW, false>(c, transform, words, blocks),
            (_, 1) => pass_back::<16, GROW, true>(c, transform, words, blocks),
            (_, _) => pass_back::<16, GROW, false>(c, transform, words, blocks),
        }
    }
}
