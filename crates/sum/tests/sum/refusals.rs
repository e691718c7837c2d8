//! What evaluation refuses, before anything is computed or when a result is decoded.

use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::{Bound, Encoding, Plaintexts};
use blindcore_sum::evaluate::{Convolution, Evaluator, Weights};
use blindcore_sum::packing::Packing;
use ndarray::{Array2, Array3, Array4};

use crate::evaluate::{DEVICE, EVALUATOR, array, decrypt, encrypt, integers, key, refusal, secret};

#[test]
fn what_could_wrap_is_refused_before_it_is_computed() {
    let e = &*EVALUATOR;
    let x = integers(&array(&[2], [1, 1]), 64);
    let big = Weights::integers(&[i64::MAX]);
    let mut grown = x.clone();
    let text = loop {
        match e.scale(&grown, &big) {
            Ok(next) => grown = next,
            Err(refused) => break refused.to_string(),
        }
    };
    // 2^63 times 2^63 seven times is 2^504; the eighth is over n / 3.
    assert_eq!(grown.form().bound.bits(), 63 + 7 * 63 + 1 - 1);
    assert!(
        text.contains("the product could reach 2^567.0 in magnitude, over the 2^5")
            && text.contains("that a third of the key's n holds"),
        "{text}"
    );
    assert!(text.contains("a larger key") && text.contains("smaller weights"), "{text}");
    for text in [
        refusal(e.lower_exponent(&grown, -3)),
        refusal(e.dot(&grown, &Weights::integers(&[1 << 20, 1]))),
        refusal(e.matrix_vector(&Weights::integers(&[[1, 1], [1 << 20, 1]]), &grown)),
    ] {
        assert!(text.contains("could reach 2^5") && text.contains("n holds"), "{text}");
    }
    // What was declared in the first place is held against the key as well.
    let over = Encoding::new(0, Bound::scaled(1, 511)).unwrap();
    let text = refusal(Plaintexts::integers(key(), &[1], over));
    assert!(text.contains("what was declared could reach 2^511.0"), "{text}");
}

#[test]
fn operands_that_do_not_fit_are_refused_by_name() {
    let e = &*EVALUATOR;
    let x = integers(&array(&[2, 3], 0..6), 8);
    let v = integers(&array(&[3], 0..3), 8);
    let other = secret();
    let foreign = Evaluator::new(other.public(), &DEVICE).unwrap();
    let packing = Packing::new(key().bits(), 20, 4).unwrap();
    let eight = Encoding::integers(8).unwrap();
    let packed = Plaintexts::pack_integers(key(), &Array2::<i64>::zeros((2, 3)), eight, packing).unwrap();
    let packed_shape = packed.form().shape.clone();
    let packed = encrypt(&packed);
    let plain = Plaintexts::integers(other.public(), &[1, 2, 3], eight).unwrap();
    let w = |values: &[i64]| Weights::integers(values);
    let kernel = Weights::integers(&Array4::<i64>::ones((1, 1, 3, 3)));
    let image = integers(&Array3::<i64>::zeros((1, 2, 2)).into_dyn(), 8);
    let still = Convolution { stride: (0, 1), padding: (1, 1) };
    let wide = Encoding::fixed(1e-3, 10.0).unwrap();
    for (text, parts) in [
        (
            refusal(e.add(&x, &v)),
            vec![
                "the second operand has shape [3]",
                "[2, 3]",
                "; add batches of one shape, or a single number",
            ],
        ),
        (refusal(foreign.add(&x, &x)), vec!["a batch is under key", "encrypt under that key"]),
        (refusal(e.add_plain(&v, &plain)), vec!["what is added is under key"]),
        (refusal(Ciphertexts::encrypt(e.encryptor(), &plain)), vec!["what is encrypted is under key"]),
        (
            refusal(e.add(&v, &packed)),
            vec!["the second operand is packed in 4 slots of 20 bits for 2 samples", "not packed"],
        ),
        (refusal(e.dot(&x, &w(&[1, 2]))), vec!["the batch has shape [2, 3]", "[..., 2]"]),
        (
            refusal(e.dot(&v, &w(&[1]))),
            vec![
                "[..., 1] for weights [1]",
                "; give a weight for each",
                "a CSV file of one column is a single row",
            ],
        ),
        (
            refusal(e.dot(&x, &Weights::integers(&[[1, 2, 3]]))),
            vec!["the weights has shape [1, 3]", "a vector"],
        ),
        (refusal(e.matrix_matrix(&x, &Weights::integers(&[[1], [2]]))), vec!["[2, 3]", "2 x 1"]),
        (refusal(e.scale(&x, &w(&[1, 2]))), vec!["the weights has shape [2]", "[2, 3] or a single one"]),
        (
            refusal(e.conv2d(&image, &kernel, Convolution::default())),
            vec!["has 2 rows and 0 of padding", "the kernel 3"],
        ),
        (refusal(e.conv2d(&image, &kernel, still)), vec!["the stride is 0, outside 1"]),
        (
            refusal(e.conv2d(&x, &kernel, Convolution::default())),
            vec!["the image has shape [2, 3]", "[1, H, W]"],
        ),
        (refusal(e.lower_exponent(&x, 1)), vec!["lower"]),
        (refusal(e.lower_exponent(&x, -5000)), vec!["exponent of -5000", "-4096 to 4096"]),
        (
            refusal(Plaintexts::integers(key(), &[3, 129], eight)),
            vec!["value 1 has a magnitude of up to 129", "127"],
        ),
        (refusal(Plaintexts::floats(key(), &[0.0, 10.1], wide)), vec!["value 1", "over the declared 40960"]),
        (refusal(Plaintexts::floats(key(), &[f64::NAN], wide)), vec!["value 0 is NaN"]),
        (
            refusal(Weights::floats(&[1e30, 1e-30], Encoding::exact(&[1e30, 1e-30]).unwrap())),
            vec!["value 0", "2^63.0"],
        ),
        (refusal(Encoding::integers(65)), vec!["65, outside 1 to 64"]),
        (refusal(Encoding::fixed(0.0, 1.0)), vec!["is 0"]),
        (refusal(Packing::plan(2048, 32, 1 << 20, 16)), vec!["width of a slot in bits is 68", "2 to 64"]),
        (refusal(Packing::plan(64, 8, 576, 8)), vec!["number of slots is 0", "larger key"]),
        (refusal(Packing::new(2048, 26, 79)), vec!["number of slots is 79, outside 1 to 78"]),
        (refusal(e.sum(&packed.slice(1, 0..0).unwrap())), vec!["something to add up"]),
        (refusal(packed.select(0, &[0])), vec!["the axis is 0, outside 1 to 1", "samples"]),
        (refusal(x.select(0, &[2])), vec!["position along the axis is 2, outside 0 to 1"]),
        (refusal(x.slice(1, 2..4)), vec!["end of a slice is 4, outside 0 to 3"]),
        (refusal(x.clone().reshape(&[4])), vec!["the new shape has shape [4]", "6 ciphertexts"]),
        (refusal(x.clone().loosen(Bound::new(127))), vec!["127 is below the 128"]),
        (refusal(Ciphertexts::concatenate(&[])), vec!["number of batches is 0"]),
        (refusal(Ciphertexts::concatenate(&[&x, &v])), vec!["a batch to append has shape [3]"]),
    ] {
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
    assert_eq!(packed_shape, [1, 3]);
}

#[test]
fn a_magnitude_that_was_declared_too_small_is_noticed_when_decoded() {
    let x = integers(&array(&[2], [100, -101]), 8);
    let mut form = x.form().clone();
    form.bound = Bound::new(100);
    let numbers = x.numbers(EVALUATOR.encryptor()).unwrap();
    let declared = Ciphertexts::accept(EVALUATOR.encryptor(), &numbers, form).unwrap();
    let text = refusal(decrypt(&declared).to_i64());
    assert!(
        text.contains("number 1 decrypts to over the declared 100 in magnitude; is it under this key"),
        "{text}"
    );
}

#[test]
fn convolutions_that_would_take_all_memory_are_refused_first() {
    let image = integers(&Array3::<i64>::zeros((1, 2, 2)).into_dyn(), 8);
    let kernel = |size| Weights::integers(&Array4::<i64>::ones((1, 1, size, size)));
    let padded = |padding, size| {
        let how = Convolution { stride: (1, 1), padding: (padding, padding) };
        EVALUATOR.conv2d(&image, &kernel(size), how)
    };
    let text = refusal(padded(1 << 14, 3));
    assert!(text.contains("the padding is 16384, outside 0 to 2"), "{text}");
    assert!(refusal(padded(1, 1)).contains("the padding is 1, outside 0 to 0"));
    assert_eq!(padded(2, 3).unwrap().shape(), [1, 4, 4]);
    // No images, but of a size that can't be counted once they are padded; and one whose results are too many.
    let none = image.clone().select(1, &[]).unwrap();
    for shape in [[0, 1, 1 << 50, 1 << 9], [0, 1, 1 << 30, 1 << 20]] {
        let none = none.clone().reshape(&shape).unwrap();
        let how = Convolution { stride: (1, 1), padding: (299, 299) };
        let text = refusal(EVALUATOR.conv2d(&none, &kernel(300), how));
        assert!(text.contains("terms of all places"), "{text}");
    }
    let rows = integers(&Array3::<i64>::zeros((1, 1, 1)).into_dyn(), 8);
    let wide = Weights::integers(&Array4::<i64>::ones((20_000, 1, 60, 60)));
    let how = Convolution { stride: (1, 1), padding: (59, 59) };
    let text = refusal(EVALUATOR.conv2d(&rows, &wide, how));
    assert!(text.contains("the bytes of all results is 9216000000, outside 0 to 8589934592"), "{text}");
}

#[test]
fn parameters_that_make_no_encoding_are_named() {
    assert!(Encoding::new(i32::MIN, Bound::ZERO).is_err());
    for (precision, magnitude, name) in [
        (0.0, 1.0, "the precision is 0"),
        (-1.0, 1.0, "the precision is -1"),
        (f64::INFINITY, 1.0, "inf"),
        (1.0, 0.0, "the magnitude is 0"),
    ] {
        let text = refusal(Encoding::fixed(precision, magnitude));
        assert!(text.contains(name) && text.contains("above zero and finite"), "{text}");
    }
    assert_eq!(Bound::scaled(1, u32::MAX).bits(), u32::MAX);
}
