//! Encodings, packing, bounds and evaluation, against plaintext arithmetic, under a 512-bit test key.

use std::sync::LazyLock;

use blindcore_accel::Device;
use blindcore_accel::bigmod::Numbers;
use blindcore_accel_cpu::Cpu;
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::{Bound, Encoding, EncodingError, Plaintexts};
use blindcore_sum::evaluate::{Convolution, Evaluator, Weights};
use blindcore_sum::keys::{KeySize, Mode, PublicKey, SecretKey};
use blindcore_sum::packing::Packing;
use blindcore_sum::scheme::Decryptor;
use ndarray::{Array1, Array2, Array4, ArrayD, IxDyn};
use proptest::prelude::*;

pub(crate) static DEVICE: LazyLock<Device> = LazyLock::new(|| Cpu::with_threads("cpu", 1).unwrap());
static SECRET: LazyLock<SecretKey> = LazyLock::new(secret);
pub(crate) static EVALUATOR: LazyLock<Evaluator> = LazyLock::new(|| Evaluator::new(key(), &DEVICE).unwrap());
static DECRYPTOR: LazyLock<Decryptor> = LazyLock::new(|| Decryptor::new(&SECRET, &DEVICE).unwrap());

pub(crate) fn secret() -> SecretKey {
    SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::ShortExponent).unwrap()
}

pub(crate) fn key() -> &'static PublicKey {
    SECRET.public()
}

pub(crate) fn encrypt(plaintexts: &Plaintexts) -> Ciphertexts {
    Ciphertexts::encrypt(EVALUATOR.encryptor(), plaintexts).unwrap()
}

pub(crate) fn integers(values: &ArrayD<i64>, bits: u32) -> Ciphertexts {
    encrypt(&Plaintexts::integers(key(), values, Encoding::integers(bits).unwrap()).unwrap())
}

pub(crate) fn decrypt(x: &Ciphertexts) -> Plaintexts {
    Plaintexts::decrypt(&DECRYPTOR, &x.numbers(EVALUATOR.encryptor()).unwrap(), x.form()).unwrap()
}

/// As numbers, in their shape.
fn read(x: &Ciphertexts) -> ArrayD<i64> {
    ArrayD::from_shape_vec(IxDyn(&x.form().numbers_shape()), decrypt(x).to_i64().unwrap()).unwrap()
}

pub(crate) fn array(shape: &[usize], values: impl IntoIterator<Item = i64>) -> ArrayD<i64> {
    let count = shape.iter().product();
    ArrayD::from_shape_vec(IxDyn(shape), values.into_iter().take(count).collect()).unwrap()
}

fn int8s(count: usize) -> impl Strategy<Value = Vec<i64>> {
    // Edges come up often.
    prop::collection::vec(
        prop_oneof![3 => -128i64..=127, 1 => Just(-128), 1 => Just(127), 1 => Just(0)],
        count,
    )
}

pub(crate) fn refusal<T>(result: Result<T, EncodingError>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(e) => {
            let text = e.to_string();
            assert!(!text.contains('\n'), "{text}");
            text
        }
    }
}

proptest! {
    #[test]
    fn integers_come_back(values in prop::collection::vec(any::<i64>(), 0..20), lower in 0i32..40) {
        let encoding = Encoding::integers(64).unwrap();
        let plaintexts = Plaintexts::integers(key(), &values[..], encoding).unwrap();
        prop_assert_eq!(plaintexts.to_i64().unwrap(), values.clone());
        let lowered = plaintexts.lower_exponent(key(), -lower).unwrap();
        prop_assert_eq!(lowered.to_i64().unwrap(), values.clone());
        prop_assert_eq!(lowered.form().bound.bits(), 64 + 4 * lower as u32);
        let floats: Vec<f64> = values.iter().map(|v| *v as f64).collect();
        prop_assert_eq!(lowered.to_f64().unwrap(), floats);
    }

    #[test]
    fn exact_floats_come_back_to_the_bit(values in prop::collection::vec(-1e30f64..1e30, 1..20), tiny in -1e-30f64..1e-30) {
        let values = [&values[..], &[tiny, 0.0, 0.1, -2.5, 1e15]].concat();
        let encoding = Encoding::exact(&values[..]).unwrap();
        let plaintexts = Plaintexts::floats(key(), &values[..], encoding).unwrap();
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&plaintexts.to_f64().unwrap()), bits(&values));
    }

    #[test]
    fn fixed_point_is_within_half_a_unit(values in prop::collection::vec(-1000.0f64..=1000.0, 1..20), digits in 1i32..12) {
        let precision = 10f64.powi(-digits);
        let encoding = Encoding::fixed(precision, 1000.0).unwrap();
        let unit = 16f64.powi(encoding.exponent());
        prop_assert!(unit <= precision && precision < 16.0 * unit);
        let back = Plaintexts::floats(key(), &values[..], encoding).unwrap().to_f64().unwrap();
        for (x, y) in values.iter().zip(back) {
            prop_assert!((x - y).abs() <= unit / 2.0, "{x} {y}");
        }
    }

    #[test]
    fn slots_come_back(slot_bits in 2u32..=64, seed in prop::collection::vec(any::<i64>(), 60), samples in 0usize..60, inner in 1usize..4) {
        let packing = Packing::new(key().bits(), slot_bits, (key().bits() - 2) / slot_bits).unwrap();
        // Random, all least, all greatest, alternating.
        let limit = i64::try_from(packing.limit().parts().0).unwrap();
        let patterns: [&dyn Fn(usize) -> i64; 4] = [
            &|i| seed[i % 60] >> (64 - slot_bits).min(63),
            &|_| -limit,
            &|_| limit,
            &|i| if i % 2 == 0 { limit } else { -limit },
        ];
        for pattern in patterns {
            let values = array(&[samples, inner], (0..samples * inner).map(|i| pattern(i).clamp(-limit, limit)));
            let encoding = Encoding::new(0, packing.limit()).unwrap();
            let plaintexts = Plaintexts::pack_integers(key(), &values, encoding, packing).unwrap();
            prop_assert_eq!(plaintexts.form().shape.clone(), vec![samples.div_ceil(packing.slots() as usize), inner]);
            prop_assert_eq!(plaintexts.form().numbers_shape(), vec![samples, inner]);
            prop_assert_eq!(plaintexts.to_i64().unwrap(), values.into_raw_vec_and_offset().0);
        }
    }
}

/// What a program does to a batch x and the batch that it started from.
#[derive(Clone, Debug)]
enum Step {
    Add,
    Subtract,
    Negate,
    AddPlain(i64),
    Scale(i64),
    ScaleEach(Vec<i64>),
    Double,
    Lower,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Add),
        Just(Step::Subtract),
        Just(Step::Negate),
        (-128i64..128).prop_map(Step::AddPlain),
        (-9i64..10).prop_map(Step::Scale),
        int8s(3).prop_map(Step::ScaleEach),
        Just(Step::Double),
        Just(Step::Lower),
    ];
    prop::collection::vec(step, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bounds_hold_through_random_programs(
        start in int8s(3), program in steps(), packed in any::<bool>(), slot_bits in 9u32..=40,
    ) {
        // The same three numbers as a vector, or as three columns of two samples.
        let packing = Packing::new(key().bits(), slot_bits, 5).unwrap();
        let encoding = Encoding::integers(8).unwrap();
        let rows = if packed { vec![2, 3] } else { vec![3] };
        let spread = |values: &[i64]| array(&rows, values.iter().chain(values).copied());
        let plain = |values: &[i64]| {
            let values = spread(values);
            if packed {
                Plaintexts::pack_integers(key(), &values, encoding, packing).unwrap()
            } else {
                Plaintexts::integers(key(), &values, encoding).unwrap()
            }
        };
        let original = encrypt(&plain(&start));
        let (mut x, mut values, mut bound) = (original.clone(), start.clone(), 128i128);
        let (mut exponent, unit) = (0, |exponent: i32| 16i128.pow(-exponent as u32));
        let limit = |bound: i128, exponent| !packed || bound * unit(exponent) < 1 << (slot_bits - 1);
        for step in &program {
            let e = &*EVALUATOR;
            let before = values.clone();
            let (result, next) = match step {
                Step::Add => {
                    values.iter_mut().zip(&start).for_each(|(x, s)| *x += s);
                    (e.add(&x, &original), bound + 128)
                }
                Step::Subtract => {
                    values.iter_mut().zip(&start).for_each(|(x, s)| *x -= s);
                    (e.subtract(&x, &original), bound + 128)
                }
                Step::Negate => {
                    values.iter_mut().for_each(|x| *x = -*x);
                    (e.negate(&x), bound)
                }
                Step::AddPlain(y) => {
                    values.iter_mut().for_each(|x| *x += y);
                    (e.add_plain(&x, &plain(&[*y; 3])), bound + 128)
                }
                Step::Scale(w) => {
                    values.iter_mut().for_each(|x| *x *= w);
                    (e.scale(&x, &Weights::integers(&[*w])), bound * i128::from(w.abs()))
                }
                Step::ScaleEach(w) => {
                    values.iter_mut().zip(w).for_each(|(x, w)| *x *= w);
                    let most = w.iter().map(|w| w.abs()).max().unwrap();
                    (e.scale(&x, &Weights::integers(&w[..])), bound * i128::from(most))
                }
                Step::Double => {
                    values.iter_mut().for_each(|x| *x *= 2);
                    (e.add(&x, &x), bound * 2)
                }
                Step::Lower => {
                    exponent -= 1;
                    (e.lower_exponent(&x, exponent), bound)
                }
            };
            if !limit(next, exponent) {
                let text = refusal(result);
                prop_assert!(text.contains("that a slot holds; use wider slots"), "{text}");
                values = before;
                exponent = x.form().exponent;
                break;
            }
            x = result.unwrap();
            bound = next;
            prop_assert_eq!(x.form().bound, Bound::scaled((bound * unit(exponent)) as u128, 0));
        }
        let most = values.iter().map(|v| i128::from(v.abs())).max().unwrap();
        prop_assert!(most <= bound, "the bound is never below the magnitude");
        prop_assert_eq!(x.form().exponent, exponent);
        prop_assert_eq!(read(&x), spread(&values));
    }

    #[test]
    fn matrices_are_those_of_plaintexts(
        p in 1usize..4, k in 1usize..9, m in 1usize..4, x in int8s(24), w in int8s(36), packed in any::<bool>(),
    ) {
        let rows = array(&[p, k], x).into_dimensionality::<ndarray::Ix2>().unwrap();
        let weights = Array2::from_shape_vec((k, m), w[..k * m].to_vec()).unwrap();
        let want = rows.dot(&weights);
        let e = &*EVALUATOR;
        let encrypted = if packed {
            let packing = Packing::plan(key().bits(), 8, k as u64, 8).unwrap();
            let encoding = Encoding::integers(8).unwrap();
            encrypt(&Plaintexts::pack_integers(key(), &rows, encoding, packing).unwrap())
        } else {
            integers(&rows.clone().into_dyn(), 8)
        };
        let got = e.matrix_matrix(&encrypted, &Weights::integers(&weights)).unwrap();
        prop_assert_eq!(read(&got), want.clone().into_dyn());
        prop_assert!(got.form().bound >= Bound::new(want.iter().map(|v| v.unsigned_abs()).max().unwrap()));
        // The same through a matrix of rows, a transposed view, and column by column.
        let got = e.matrix_vector(&Weights::integers(&weights.t().to_owned()), &encrypted).unwrap();
        prop_assert_eq!(read(&got), want.clone().into_dyn());
        let view = weights.t();
        let got = e.matrix_vector(&Weights::integers(view), &encrypted).unwrap();
        prop_assert_eq!(read(&got), want.clone().into_dyn());
        let column = e.dot(&encrypted, &Weights::integers(weights.column(m - 1))).unwrap();
        prop_assert_eq!(read(&column), want.column(m - 1).to_owned().into_dyn());
        // Sums along the first axis of what is not samples.
        let sum = e.sum(&encrypted).unwrap();
        let axis = ndarray::Axis(usize::from(packed));
        prop_assert_eq!(read(&sum), rows.sum_axis(axis).into_dyn());
    }

    #[test]
    fn convolutions_are_those_of_plaintexts(
        sizes in (1usize..3, 1usize..6, 1usize..6, 1usize..3, 1usize..4, 1usize..4),
        stride in (1usize..3, 1usize..3), padding in (0usize..3, 0usize..3),
        x in int8s(150), w in int8s(36), packed in any::<bool>(),
    ) {
        let (channels, h, width, outputs, kh, kw) = sizes;
        prop_assume!(h + 2 * padding.0 >= kh && width + 2 * padding.1 >= kw);
        prop_assume!(padding.0 < kh && padding.1 < kw);
        let samples = 3;
        let images = array(&[samples, channels, h, width], x.into_iter().cycle());
        let images = images.into_dimensionality::<ndarray::Ix4>().unwrap();
        let kernels = Array4::from_shape_vec((outputs, channels, kh, kw), w[..].iter().copied().cycle().take(outputs * channels * kh * kw).collect()).unwrap();
        let out_h = (h + 2 * padding.0 - kh) / stride.0 + 1;
        let out_w = (width + 2 * padding.1 - kw) / stride.1 + 1;
        let want = Array4::from_shape_fn((samples, outputs, out_h, out_w), |(s, o, y, x)| {
            let mut sum = 0;
            for ((c, i, j), w) in kernels.index_axis(ndarray::Axis(0), o).indexed_iter() {
                let row = (y * stride.0 + i) as isize - padding.0 as isize;
                let column = (x * stride.1 + j) as isize - padding.1 as isize;
                if (0..h as isize).contains(&row) && (0..width as isize).contains(&column) {
                    sum += w * images[[s, c, row as usize, column as usize]];
                }
            }
            sum
        });
        let how = Convolution { stride, padding };
        let weights = Weights::integers(&kernels);
        if packed {
            let packing = Packing::plan(key().bits(), 8, (channels * kh * kw) as u64, 8).unwrap();
            let encoding = Encoding::integers(8).unwrap();
            let x = encrypt(&Plaintexts::pack_integers(key(), &images, encoding, packing).unwrap());
            prop_assert_eq!(read(&EVALUATOR.conv2d(&x, &weights, how).unwrap()), want.into_dyn());
        } else {
            let x = integers(&images.into_dyn(), 8);
            prop_assert_eq!(read(&EVALUATOR.conv2d(&x, &weights, how).unwrap()), want.clone().into_dyn());
            // One image without the axis before.
            let one = x.slice(0, 1..2).unwrap();
            let shape = one.shape()[1..].to_vec();
            let got = EVALUATOR.conv2d(&one.reshape(&shape).unwrap(), &weights, how).unwrap();
            prop_assert_eq!(read(&got), want.index_axis(ndarray::Axis(0), 1).to_owned().into_dyn());
        }
    }

    #[test]
    fn long_weights_are_split(w in prop::collection::vec(prop_oneof![any::<i64>(), (1i64 << 39)..(1 << 42), Just(i64::MIN), Just(i64::MAX)], 3), x in prop::collection::vec(-1i64..=1, 3)) {
        let encrypted = integers(&array(&[3], x.clone()), 2);
        let each = EVALUATOR.scale(&encrypted, &Weights::integers(&w[..])).unwrap();
        let one = EVALUATOR.scale(&encrypted, &Weights::integers(&w[..1])).unwrap();
        let dot = EVALUATOR.dot(&encrypted, &Weights::integers(&w[..])).unwrap();
        // -(-2^63) is over an i64: compared as floats, which hold sums of three such numbers to one unit in 2^53.
        let product = |(x, w): (&i64, &i64)| (i128::from(*x) * i128::from(*w)) as f64;
        let want: Vec<f64> = x.iter().zip(&w).map(product).collect();
        prop_assert_eq!(decrypt(&each).to_f64().unwrap(), want);
        let want: Vec<f64> = x.iter().map(|x| product((x, &w[0]))).collect();
        prop_assert_eq!(decrypt(&one).to_f64().unwrap(), want);
        let want = x.iter().zip(&w).map(|(x, w)| i128::from(*x) * i128::from(*w)).sum::<i128>() as f64;
        prop_assert_eq!(decrypt(&dot).to_f64().unwrap(), [want]);
    }

    #[test]
    fn floats_of_different_exponents_combine(x in prop::collection::vec(-4096i32..4096, 4), y in prop::collection::vec(-4096i32..4096, 4)) {
        // Multiples of 2^-6 and of 2^-14: all results are floats exactly.
        let x: Vec<f64> = x.into_iter().map(|v| f64::from(v) / 64.0).collect();
        let y: Vec<f64> = y.into_iter().map(|v| f64::from(v) / 16384.0).collect();
        let e = &*EVALUATOR;
        let coarse = Plaintexts::floats(key(), &x[..], Encoding::fixed(1.0 / 64.0, 64.0).unwrap()).unwrap();
        let fine = Plaintexts::floats(key(), &y[..], Encoding::fixed(1.0 / 16384.0, 1.0).unwrap()).unwrap();
        let (cx, cy) = (encrypt(&coarse), encrypt(&fine));
        let sum: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        let minus: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
        for got in [e.add(&cx, &cy), e.add(&cy, &cx), e.add_plain(&cx, &fine), e.add_plain(&cy, &coarse)] {
            prop_assert_eq!(decrypt(&got.unwrap()).to_f64().unwrap(), sum.clone());
        }
        prop_assert_eq!(decrypt(&e.subtract(&cx, &cy).unwrap()).to_f64().unwrap(), minus);
        let dot: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        for encoding in [Encoding::fixed(1.0 / 16384.0, 1.0), Encoding::exact(&y[..])] {
            let weights = Weights::floats(&y[..], encoding.unwrap()).unwrap();
            prop_assert_eq!(decrypt(&e.dot(&cx, &weights).unwrap()).to_f64().unwrap(), [dot]);
        }
        // Packed floats too.
        let packing = Packing::new(key().bits(), 50, 10).unwrap();
        let packed = Plaintexts::pack_floats(key(), &x[..], Encoding::fixed(1.0 / 64.0, 64.0).unwrap(), packing).unwrap();
        let doubled = e.scale(&encrypt(&packed), &Weights::floats(&[0.5], Encoding::fixed(0.5, 1.0).unwrap()).unwrap());
        prop_assert_eq!(decrypt(&doubled.unwrap()).to_f64().unwrap(), x.iter().map(|x| x / 2.0).collect::<Vec<_>>());
    }
}

#[test]
fn the_planned_dot_product_fits_its_slots() {
    let packing = Packing::plan(2048, 8, 576, 8).unwrap();
    assert_eq!((packing.slots(), packing.slot_bits()), (77, 26));
    // The worst that 576 int8 products reach, and once more, are within a slot; the planned 1024 are too.
    for terms in [576u64, 1024] {
        assert!(Bound::signed(8).times(Bound::signed(8)).times(Bound::new(terms)) <= packing.limit());
    }
    assert!(Bound::new((2 * 576) << 14) <= packing.limit());
    assert!(Bound::new((4 * 576) << 14) > packing.limit());
    // And through the evaluation, at the edges: all -128 by all -128, and by all 127.
    let packing = Packing::plan(key().bits(), 8, 576, 8).unwrap();
    assert_eq!(packing.slots(), (512 - 42) / 26);
    let x = Array2::from_elem((20, 576), -128i64);
    let x = Plaintexts::pack_integers(key(), &x, Encoding::integers(8).unwrap(), packing).unwrap();
    let x = encrypt(&x);
    for w in [-128i64, 127] {
        let dot = EVALUATOR.dot(&x, &Weights::integers(&Array1::from_elem(576, w))).unwrap();
        assert_eq!(decrypt(&dot).to_i64().unwrap(), [-128 * w * 576; 20]);
    }
}

#[test]
fn batches_are_cut_and_joined() {
    let values = array(&[3, 2, 2], 0..12);
    let x = integers(&values, 8);
    let rows = x.select(0, &[2, 0]).unwrap();
    assert_eq!(read(&rows), values.select(ndarray::Axis(0), &[2, 0]));
    let columns = x.select(1, &[1]).unwrap();
    assert_eq!(read(&columns), values.select(ndarray::Axis(1), &[1]));
    assert_eq!(read(&x.slice(2, 0..1).unwrap()), values.select(ndarray::Axis(2), &[0]));
    let joined = Ciphertexts::concatenate(&[&x.slice(0, 2..3).unwrap(), &rows]).unwrap();
    assert_eq!(read(&joined), values.select(ndarray::Axis(0), &[2, 2, 0]));
    let flat = x.reshape(&[12]).unwrap().loosen(Bound::signed(20)).unwrap();
    assert_eq!(read(&flat).into_raw_vec_and_offset().0, (0..12).collect::<Vec<_>>());
    assert_eq!(flat.form().bound, Bound::new(1 << 19));
    let empty = flat.slice(0, 5..5).unwrap();
    assert!(empty.is_empty() && read(&empty).is_empty());
    assert!(read(&EVALUATOR.scale(&empty, &Weights::integers(&[3])).unwrap()).is_empty());
}

#[test]
fn rerandomised_results_are_other_ciphertexts_of_the_same_numbers() {
    let x = integers(&array(&[2], [5, -6]), 8);
    // A sum over nothing but zero weights is the ciphertext 1, for all to see.
    let zero = EVALUATOR.scale(&x, &Weights::integers(&[0])).unwrap();
    let open = zero.numbers(EVALUATOR.encryptor()).unwrap();
    assert!(open.iter().all(|c| c[0] == 1 && c[1..].iter().all(|w| *w == 0)));
    for batch in [&x, &zero] {
        let fresh = EVALUATOR.rerandomise(batch).unwrap();
        assert_eq!(read(&fresh), read(batch));
        let numbers = |x: &Ciphertexts| x.numbers(EVALUATOR.encryptor()).unwrap();
        let (before, after) = (numbers(batch), numbers(&fresh));
        assert!(before.iter().zip(after.iter()).all(|(x, y)| x != y));
    }
}

#[test]
fn sums_take_as_many_rounds_as_they_need() {
    let values = [[5i64, -1], [-128, 127], [3, 0]];
    let x = integers(&ndarray::arr2(&values).into_dyn(), 8);
    for count in [1, 2, 63, 64, 65, 129, 64 * 64 + 1] {
        let rows: Vec<usize> = (0..count).map(|i| i * i % 3).collect();
        let sum = EVALUATOR.sum(&x.select(0, &rows).unwrap()).unwrap();
        let want = [0, 1].map(|column| rows.iter().map(|row| values[*row][column]).sum::<i64>());
        assert_eq!(decrypt(&sum).to_i64().unwrap(), want);
        assert_eq!((sum.shape(), sum.form().bound), (&[2][..], Bound::new(128 * count as u64)));
    }
}

#[test]
fn exponents_far_apart_buy_no_squarings() {
    let zeros = |exponent| {
        let encoding = Encoding::new(exponent, Bound::ZERO).unwrap();
        encrypt(&Plaintexts::integers(key(), &[0, 0], encoding).unwrap())
    };
    let (low, high) = (zeros(-4096), zeros(4096));
    for result in
        [EVALUATOR.add(&low, &high), EVALUATOR.add(&high, &low), EVALUATOR.lower_exponent(&high, -4096)]
    {
        let text = refusal(result);
        assert!(text.contains("2^32768.0") && text.contains("a third of the key's n"), "{text}");
    }
    assert_eq!(decrypt(&EVALUATOR.add(&zeros(0), &zeros(-20)).unwrap()).to_f64().unwrap(), [0.0, 0.0]);
}

#[test]
fn blocks_are_the_whole() {
    let e = &*EVALUATOR;
    let x = integers(&array(&[2, 3, 2], -5..), 8);
    let packing = Packing::new(key().bits(), 20, 4).unwrap();
    let eight = Encoding::integers(8).unwrap();
    let samples = Array2::from_shape_fn((9, 2), |(i, j)| 10 * i as i64 - j as i64);
    let packed = encrypt(&Plaintexts::pack_integers(key(), &samples, eight, packing).unwrap());
    let matrix = Weights::integers(&Array2::from_shape_fn((5, 2), |(i, j)| 7 * i as i64 - 9 * j as i64));
    let vector = Weights::integers(&[3, -100]);
    for batch in [&x, &packed] {
        for weights in [&matrix, &vector] {
            let whole = match weights.shape() {
                [_] => e.dot(batch, weights),
                _ => e.matrix_vector(weights, batch),
            };
            let whole = whole.unwrap();
            for results in [0, 1, 3, 5, 11, 1000] {
                let (form, blocks) = e.weigh_in_blocks(batch, weights, None, results).unwrap();
                assert_eq!(&form, whole.form());
                let blocks: Vec<_> = blocks.map(Result::unwrap).collect();
                assert!(blocks.iter().all(|block| block.len() <= results.max(1)));
                let words = key().ciphertext_words();
                let all = Numbers::from_words(words, blocks.iter().flat_map(Numbers::iter));
                let plain = Plaintexts::decrypt(&DECRYPTOR, &all, &form).unwrap();
                assert_eq!(plain.to_i64().unwrap(), decrypt(&whole).to_i64().unwrap());
                assert!(all != whole.numbers(e.encryptor()).unwrap(), "rerandomised");
            }
        }
    }
    assert!(e.weigh_in_blocks(&x, &Weights::integers(&[1, 2, 3]), None, 10).is_err());
}

fn floats(values: &[f64], encoding: Encoding) -> Ciphertexts {
    encrypt(&Plaintexts::floats(key(), values, encoding).unwrap())
}

#[test]
fn decimals_are_exact() {
    let e = &*EVALUATOR;
    let cents = Encoding::decimal(0.01, 1e6).unwrap();
    assert_eq!((cents.exponent(), cents.scale(), cents.bound()), (0, 2, Bound::new(100_000_000)));
    // No power of 16 holds a cent: a thousand of them would be off by more than one.
    let cent = floats(&[0.01; 1000], cents);
    assert_eq!(decrypt(&e.sum(&cent).unwrap()).to_decimals().unwrap(), ["10"]);
    let x = floats(&[0.29, -1234.56, 0.125, 0.375, -0.0], cents);
    assert_eq!(decrypt(&x).to_decimals().unwrap(), ["0.29", "-1234.56", "0.12", "0.38", "0"], "half to even");
    assert_eq!(decrypt(&x).to_f64().unwrap(), [0.29, -1234.56, 0.12, 0.38, 0.0]);
    // Units that differ meet in the finer one; powers of 16 and of 10 both count.
    let mill = floats(&[0.001], Encoding::decimal(0.0012, 5.0).unwrap());
    let half = floats(&[0.5], Encoding::fixed(0.0625, 5.0).unwrap());
    for sum in
        [e.add(&e.add(&x, &mill).unwrap(), &half).unwrap(), e.add(&half, &e.add(&mill, &x).unwrap()).unwrap()]
    {
        assert_eq!((sum.form().exponent, sum.form().scale, &sum.form().shape[..]), (-1, 3, &[5][..]));
        let want = ["0.791", "-1234.059", "0.621", "0.881", "0.501"];
        assert_eq!(decrypt(&sum).to_decimals().unwrap(), want);
        let nearest = want.map(|text| text.parse::<f64>().unwrap());
        assert_eq!(decrypt(&sum).to_f64().unwrap(), nearest);
    }
    let rate = Weights::floats(&[0.07, 1.0, 0.0, 0.0, 0.0], Encoding::decimal(0.01, 1.0).unwrap()).unwrap();
    let dot = e.dot(&x, &rate).unwrap();
    assert_eq!((dot.form().scale, rate.scale()), (4, 2));
    assert_eq!(decrypt(&dot).to_decimals().unwrap(), ["-1234.5397"]);
    assert!(refusal(Encoding::decimal(0.0, 1.0).map(|_| ())).contains("precision"));
    // What 63 bits don't hold as decimals is in powers of 16.
    for (precision, magnitude) in [(1e-18, 100.0), (1e-30, 1e-25)] {
        let encoding = Encoding::decimal(precision, magnitude).unwrap();
        assert_eq!(encoding, Encoding::fixed(precision, magnitude).unwrap());
    }
    // A value that is whole in a unit of decimals is an integer.
    assert_eq!(decrypt(&e.sum(&cent).unwrap()).to_i64().unwrap(), [10]);
    assert!(refusal(decrypt(&x).to_i64().map(|_| ())).contains("not whole"));
}

#[test]
fn the_largest_integer_of_a_length_is_one_below_the_least() {
    for (bits, most) in [(1, 0i64), (8, 127), (64, i64::MAX)] {
        let encoding = Encoding::integers(bits).unwrap();
        let edges = [most, -most - 1];
        let plaintexts = Plaintexts::integers(key(), &edges, encoding).unwrap();
        assert_eq!(plaintexts.to_i64().unwrap(), edges);
        if let Some(over) = most.checked_add(1) {
            let text = refusal(Plaintexts::integers(key(), &[over], encoding).map(|_| ()));
            assert!(text.contains(&format!("{over}, over the declared {most}")), "{text}");
        }
    }
}

#[test]
fn a_single_number_is_added_on_either_side() {
    let e = &*EVALUATOR;
    let (batch, single) = (integers(&array(&[2, 3], -5..), 8), integers(&array(&[1], 100..), 8));
    let sums = [e.add(&batch, &single), e.add(&single, &batch)].map(Result::unwrap);
    let plain = Plaintexts::integers(key(), &array(&[2, 3], -5..), Encoding::integers(8).unwrap()).unwrap();
    for sum in sums.iter().chain([&e.add_plain(&single, &plain).unwrap()]) {
        assert_eq!(sum.form().shape, [2, 3]);
        assert_eq!(decrypt(sum).to_i64().unwrap(), [95, 96, 97, 98, 99, 100]);
    }
    let less = e.subtract(&single, &batch).unwrap();
    assert_eq!(decrypt(&less).to_i64().unwrap(), [105, 104, 103, 102, 101, 100]);
    assert!(e.add(&batch, &integers(&array(&[3, 2], 0..), 8)).is_err());
}

#[test]
fn a_bias_is_added_to_every_score() {
    let e = &*EVALUATOR;
    let cents = Encoding::decimal(0.01, 1e3).unwrap();
    let matrix = Weights::integers(&Array2::from_shape_fn((3, 2), |(i, j)| 2 * i as i64 - j as i64));
    let bias = Weights::floats(&[0.125, -1.0, 1e6], Encoding::decimal(0.001, 1e6).unwrap()).unwrap();
    let values = Array2::from_shape_fn((5, 2), |(i, j)| i as f64 + 0.01 * j as f64);
    let packing = Packing::new(key().bits(), 50, 4).unwrap();
    for batch in [
        encrypt(&Plaintexts::floats(key(), &values, cents).unwrap()),
        encrypt(&Plaintexts::pack_floats(key(), &values, cents, packing).unwrap()),
    ] {
        for results in [1, 2, 100] {
            let (form, blocks) = e.weigh_in_blocks(&batch, &matrix, Some(&bias), results).unwrap();
            let blocks: Vec<_> = blocks.map(Result::unwrap).collect();
            let all = Numbers::from_words(key().ciphertext_words(), blocks.iter().flat_map(Numbers::iter));
            let scores = Plaintexts::decrypt(&DECRYPTOR, &all, &form).unwrap().to_decimals().unwrap();
            let (want, unit) =
                (values.dot(&Array2::from_shape_fn((2, 3), |(j, i)| (2 * i) as f64 - j as f64)), 1e3);
            for (got, (at, want)) in scores.iter().zip(want.indexed_iter()) {
                let want = want + [0.125, -1.0, 1e6][at.1];
                assert_eq!((got.parse::<f64>().unwrap() * unit).round(), (want * unit).round(), "{at:?}");
            }
        }
    }
    let x = encrypt(&Plaintexts::floats(key(), &values, cents).unwrap());
    let text =
        e.weigh_in_blocks(&x, &matrix, Some(&Weights::integers(&[1, 2])), 9).err().unwrap().to_string();
    assert!(text.contains("the bias") && text.contains("3 outputs"), "{text}");
}
