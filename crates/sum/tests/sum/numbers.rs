//! Numbers of files, encrypted and decrypted: exact decimals at both ends, and what is said of those that don't fit.

use std::path::Path;
use std::sync::LazyLock;

use blindcore_accel_cpu::Cpu;
use blindcore_numbers::{Content, Existing, Format, Source};
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::disk;
use blindcore_sum::encoding::{Bound, Encoding, Form, Plaintexts};
use blindcore_sum::evaluate::{Evaluator, Weights};
use blindcore_sum::keys::{KeySize, Mode, PublicKey, SecretKey};
use blindcore_sum::model::Model;
use blindcore_sum::numbers::{self, Declared, NumbersError, Results};
use blindcore_sum::packing::Packing;
use blindcore_sum::phe;
use blindcore_sum::scheme::Decryptor;
use proptest::prelude::*;

struct Party {
    evaluator: Evaluator,
    decryptor: Decryptor,
}

static PARTY: LazyLock<Party> = LazyLock::new(|| {
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let key = SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::ShortExponent).unwrap();
    let evaluator = Evaluator::new(key.public(), &device).unwrap();
    Party { evaluator, decryptor: Decryptor::new(&key, &device).unwrap() }
});

fn decrypted(ciphertexts: &Ciphertexts) -> Results {
    let numbers = ciphertexts.numbers(PARTY.evaluator.encryptor()).unwrap();
    let plaintexts = Plaintexts::decrypt(&PARTY.decryptor, &numbers, ciphertexts.form()).unwrap();
    numbers::decode(&plaintexts).unwrap()
}

fn floats(values: &[f64], encoding: Encoding) -> Ciphertexts {
    let plaintexts = Plaintexts::floats(PARTY.evaluator.key(), values, encoding).unwrap();
    Ciphertexts::encrypt(PARTY.evaluator.encryptor(), &plaintexts).unwrap()
}

fn csv(results: &Results) -> String {
    String::from_utf8(results.to_csv().unwrap()).unwrap()
}

/// What the ciphertext has comes out, also where it has more digits than a float.
#[test]
fn decimals_of_many_digits_come_out_whole() {
    let cents = |magnitude| Encoding::decimal(0.01, magnitude).unwrap();
    let few = floats(&[999999999.99, 0.02, -0.5], cents(1e9));
    let many = PARTY.evaluator.dot(&few, &Weights::integers(&[100001, 0, 0])).unwrap();
    let [many, few] = [many, few].map(|batch| decrypted(&batch));
    assert_eq!(csv(&many), "100000999998999.99\n");
    assert_eq!(many.to_json(), serde_json::json!(["100000999998999.99"]));
    assert!(many.clone().scaled(2).is_err(), "no integer");
    // Those that a float is are floats as before.
    assert_eq!(few.to_json(), serde_json::json!([999999999.99, 0.02, -0.5]));
    // One that is whole is told from an integer, and its neighbours stay as they are printed.
    let half = floats(&[9007199254740992.0, 2.0, 1e-2], cents(1e16));
    let other = floats(&[1.0, 0.0, 0.0], cents(1e16));
    let mixed = decrypted(&PARTY.evaluator.add(&half, &other).unwrap());
    assert_eq!(csv(&mixed), "9007199254740993.0\n2.0\n0.01\n");
    // What NPY can't hold is said.
    let results = mixed;
    assert!(results.note(Path::new("x.npy")).unwrap().contains("nearest floats"));
    assert_eq!(["x.csv", "-"].map(|out| results.note(Path::new(out))), [None, None]);
}

/// What is not 0 is never shown as 0: below all floats are its digits, as they are above all floats.
#[test]
fn results_below_all_floats_come_out_in_digits() {
    let mut small = floats(&[3.0, 0.0], Encoding::new(0, Bound::new(3)).unwrap());
    for _ in 0..2 {
        let weights = Weights::floats(&[1e-200], Encoding::exact(&[1e-200][..]).unwrap()).unwrap();
        let column = small.clone().reshape(&[2, 1]).unwrap();
        small = PARTY.evaluator.dot(&column, &weights).unwrap();
    }
    let results = decrypted(&small);
    let Results::Exact { texts, nearest } = &results else { panic!("{results:?}") };
    // A float takes 1e-200 apart from 16 digits on.
    let noughts = format!("0.{}", "0".repeat(399));
    let digits = texts[[0]].strip_prefix(&noughts).unwrap();
    assert!(digits.starts_with("2999999999999999") || digits.starts_with("3000000000000000"), "{digits}");
    assert_eq!((texts[[1]].as_str(), nearest.as_slice().unwrap()), ("0.0", &[0.0, 0.0][..]));
    assert!(csv(&results).starts_with(&noughts));
    let note = results.note(Path::new("x.npy"));
    assert!(note.unwrap().contains("the nearest floats"));
    // Of python-paillier, beside others.
    let [one, other] = [3.0, -0.5].map(|value| floats(&[value], Encoding::new(-1, Bound::new(48)).unwrap()));
    let mut lines = Vec::new();
    for batch in [&one, &other] {
        let numbers = batch.numbers(PARTY.evaluator.encryptor()).unwrap();
        phe::write_ciphertexts(&mut lines, PARTY.evaluator.key(), &numbers, batch.form()).unwrap();
    }
    let lines = String::from_utf8(lines).unwrap().replacen("\"e\":-1", "\"e\":-300", 1);
    let folder = std::env::temp_dir().join(format!("blindcore-small-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("x.jsonl");
    std::fs::write(&file, lines).unwrap();
    let decrypted = numbers::decrypt(&file, &PARTY.decryptor, &mut ());
    std::fs::remove_dir_all(&folder).unwrap();
    let text = csv(&decrypted.unwrap());
    // 48 x 16^-300 is 48 x 2^-1200, which is 3.1e-361 or so: 2^-1200 has 1200 decimals, of which 48 takes four.
    let (first, rest) = text.split_once('\n').unwrap();
    assert_eq!((first.len(), rest), (1198, "-0.5\n"));
    assert!(first.starts_with(&format!("0.{}2", "0".repeat(359))) && first.ends_with('5'), "{first}");
}

/// A float has 53 bits: what is longer, and over 2^53, has its digits in units of powers of 16, too.
#[test]
fn sums_over_what_floats_count_come_out_whole() {
    let quarters = |values: &[f64]| floats(values, Encoding::new(-1, Bound::new(1 << 20)).unwrap());
    let integers = |values: &[i64]| {
        let plaintexts =
            Plaintexts::integers(PARTY.evaluator.key(), values, Encoding::integers(63).unwrap()).unwrap();
        Ciphertexts::encrypt(PARTY.evaluator.encryptor(), &plaintexts).unwrap()
    };
    let longest = (1i64 << 61) + 1;
    let long = integers(&[9007199254740993, -longest, 9007199254740992, longest, 3, 0]);
    let short = quarters(&[0.0, 0.0, 0.0, -0.25, 0.5, 0.0]);
    let results = decrypted(&PARTY.evaluator.add(&long, &short).unwrap());
    // Of 53 bits or fewer, and up to 2^53: as floats are printed.
    let want =
        "9007199254740993.0\n-2305843009213693953.0\n9007199254740992.0\n2305843009213693952.75\n3.5\n0.0\n";
    assert_eq!(csv(&results), want);
    assert_eq!(results.to_json()[0], "9007199254740993.0");
    assert!(results.note(Path::new("x.npy")).unwrap().contains("the nearest floats"));
    // Floats that are as large and no longer stay floats.
    let large = floats(&[3e60, 0.5], Encoding::exact(&[3e60, 0.5][..]).unwrap());
    assert_eq!(decrypted(&large).to_json(), serde_json::json!([3e60, 0.5]));
}

/// What is under another key decrypts to any number of its length: said by its place among all, whatever its exponent.
#[test]
fn a_line_of_another_key_is_named() {
    let half = floats(&[0.5], Encoding::new(-1, Bound::new(48)).unwrap());
    let mut lines = Vec::new();
    let numbers = half.numbers(PARTY.evaluator.encryptor()).unwrap();
    phe::write_ciphertexts(&mut lines, PARTY.evaluator.key(), &numbers, half.form()).unwrap();
    lines.extend_from_slice(b"{\"v\":\"2\",\"e\":0}\n"); // 2 is what nobody encrypted.
    let folder = std::env::temp_dir().join(format!("blindcore-foreign-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("x.jsonl");
    std::fs::write(&file, lines).unwrap();
    let decrypted = numbers::decrypt(&file, &PARTY.decryptor, &mut ());
    std::fs::remove_dir_all(&folder).unwrap();
    let error = decrypted.unwrap_err().to_string();
    assert!(
        error.contains("number 1 decrypts to about as many digits as the key has; is it under this key?"),
        "{error}"
    );
}

/// What text holds as the command reads it, with what is said of it.
fn read(text: &str, declared: Declared) -> (Content, Vec<String>) {
    let source = Source::bytes(Format::Csv, text.to_owned()).with_decimals(declared.decimals());
    let mut said = Vec::new();
    let content = numbers::read(&source, &mut |note| said.push(note)).unwrap();
    (content, said)
}

fn encrypted(
    content: &Content,
    declared: Declared,
    packing: Option<Packing>,
) -> Result<(Ciphertexts, Vec<String>), NumbersError> {
    let (encoding, _) = declared.encoding(content, &mut |_| ())?;
    let mut said = Vec::new();
    let mut say = |note| said.push(note);
    let ciphertexts = numbers::encrypt(&PARTY.evaluator, content, encoding, packing, &mut say, &mut ())?;
    Ok((ciphertexts, said))
}

/// What is written goes in, also where it has more digits than a float.
#[test]
fn decimals_of_many_digits_go_in_whole() {
    let cents = Declared { precision: Some(0.01), magnitude: Some(1e15), ..Declared::default() };
    let (column, matrix) =
        ("70368744177664.07\n-70368744177664.07\n0.1\n", "0.5,70368744177664.07\n-70368744177664.07,2.0\n");
    let units = Declared { precision: Some(1.0), magnitude: Some(1e16), ..cents };
    for (text, declared, want) in [
        (column, cents, column),
        (matrix, cents, matrix),
        ("9007199254740993.0\n", units, "9007199254740993\n"),
    ] {
        let (content, _) = read(text, declared);
        let packing = Packing::new(512, 64, 4).unwrap();
        for packing in [None, Some(packing)] {
            let (ciphertexts, said) = encrypted(&content, declared, packing).unwrap();
            assert_eq!((csv(&decrypted(&ciphertexts)).as_str(), said.len()), (want, 0));
        }
    }
    // Half to even where there are more decimals than are kept, on the digits that were written.
    let (content, _) = read("70368744177664.075\n70368744177664.0650000000001\n", cents);
    let (ciphertexts, _) = encrypted(&content, cents, None).unwrap();
    assert_eq!(csv(&decrypted(&ciphertexts)), "70368744177664.08\n70368744177664.07\n");
    // Weights that are rounded to cents are those that were written, too.
    let folder = std::env::temp_dir().join(format!("blindcore-weights-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("w.csv");
    std::fs::write(&file, "70368744177664.07\n-0.25\n").unwrap();
    let weights =
        numbers::read_weights(file.to_str().unwrap(), Some(0.01), false, &mut |note| panic!("{note}"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(weights.unwrap().values(), [7036874417766407, -25]);
}

/// A decimal in text, rounded as integers say: its digits, and how many of them are cut.
fn rounded(digits: i128, cut: u32) -> i128 {
    let unit = 10i128.pow(cut);
    let (whole, rest) = (digits.div_euclid(unit), digits.rem_euclid(unit));
    whole + i128::from(2 * rest > unit || 2 * rest == unit && whole % 2 != 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Half to even, whatever a float makes of it: anywhere, at ties, and a last digit beside them.
    #[test]
    fn decimals_are_rounded_as_they_are_written(
        digits in any::<i64>(), size in 0u32..63, kept in -9i32..10, more in 1u32..12, kind in 0u8..4,
    ) {
        // Of at most 62 bits, so that a round number of units is one of weights.
        let whole = i128::from(digits >> (1 + size)) / if kept < 0 { 10i128.pow(kept.unsigned_abs()) } else { 1 };
        let unit = 10i128.pow(more);
        let cut = match kind {
            0 => i128::from(digits).rem_euclid(unit),
            1 => unit / 2,
            2 => unit / 2 + 1,
            _ => unit / 2 - 1,
        };
        let (all, point) = (whole * unit + cut, kept + more as i32);
        let places = point.max(0) as usize;
        let noughts = "0".repeat(-point.min(0) as usize);
        let text = format!("{:0>width$}", all.unsigned_abs(), width = places + 1);
        let (before, after) = text.split_at(text.len() - places);
        let sign = if all < 0 { "-" } else { "" };
        let precision = format!("1e{}", -kept).parse().unwrap();
        let plain = format!("{sign}{before}{noughts}.{after}\n");
        for text in [plain, format!("{sign}{before}{after}e{}\n", -point)] {
            let declared = Declared { precision: Some(precision), magnitude: Some(0.5), ..Declared::default() };
            let weights = numbers::weights(&read(&text, declared).0, Some(precision), false, &mut |_| ());
            let tens = 10i128.pow(-kept.min(0) as u32);
            let (got, want) = (weights.unwrap().values().to_vec(), (rounded(all, more) * tens) as i64);
            prop_assert_eq!(got, [want], "{}", text);
        }
    }
}

/// Who coarsens numbers before they are encrypted shows no more of them.
#[test]
fn numbers_are_rounded_to_powers_of_ten_above_one_too() {
    let text = "54321.7\n-500\n500.0000000000000000001\n1500\n2500\n999999999\n0\n";
    for (precision, want) in [
        (1e3, "54000\n0\n1000\n2000\n2000\n1000000000\n0\n"),
        (5e3, "54000\n0\n1000\n2000\n2000\n1000000000\n0\n"),
        (10.0, "54320\n-500\n500\n1500\n2500\n1000000000\n0\n"),
        (9.0, "54322\n-500\n500\n1500\n2500\n999999999\n0\n"),
        (1e9, "0\n0\n0\n0\n0\n1000000000\n0\n"),
        (1e18, "0\n0\n0\n0\n0\n0\n0\n"),
        (1e300, "0\n0\n0\n0\n0\n0\n0\n"),
    ] {
        let declared = Declared { precision: Some(precision), ..Declared::default() };
        let (ciphertexts, _) = encrypted(&read(text, declared).0, declared, None).unwrap();
        assert_eq!(csv(&decrypted(&ciphertexts)), want, "{precision}");
        let content = read(text, declared).0;
        let weights = numbers::weights(&content, Some(precision), false, &mut |_| ());
        if precision < 1e12 {
            let want: Vec<i64> = want.lines().map(|line| line.parse().unwrap()).collect();
            assert_eq!(weights.unwrap().values(), want, "{precision}");
        }
    }
    let floats = Content::new("x.npy", ndarray::array![54321.7, 2500.0, -3500.0, 0.25].into_dyn().into());
    let thousands = Declared { precision: Some(1e3), ..Declared::default() };
    let (ciphertexts, _) = encrypted(&floats, thousands, None).unwrap();
    assert_eq!(csv(&decrypted(&ciphertexts)), "54000\n2000\n-4000\n0\n");
}

/// Decimals go by what was written, floats by the binary numbers that they are.
#[test]
fn ties_go_to_even_by_what_is_written() {
    let cents = Declared { precision: Some(0.01), magnitude: Some(1e14), ..Declared::default() };
    for (text, declared, want) in [
        ("0.295\n0.285\n-0.295\n0.015000000000000000000000001\n", cents, "0.3\n0.28\n-0.3\n0.02\n"),
        ("22000000000000.0137\n", cents, "22000000000000.01\n"),
        ("2200000.0000000006\n", Declared::default(), "2200000.000000001\n"),
        ("220000000.0000000006\n", Declared::default(), "220000000.000000001\n"),
    ] {
        let (ciphertexts, _) = encrypted(&read(text, declared).0, declared, None).unwrap();
        assert_eq!(csv(&decrypted(&ciphertexts)), want);
    }
    let floats = Content::new("x.npy", ndarray::array![0.295, 0.125, 0.375].into_dyn().into());
    let (ciphertexts, _) = encrypted(&floats, cents, None).unwrap();
    assert_eq!(csv(&decrypted(&ciphertexts)), "0.29\n0.12\n0.38\n");
    // A bias on the command line is read as one in a file is.
    let folder = std::env::temp_dir().join(format!("blindcore-bias-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("w.csv"), "1,2\n3,4\n").unwrap();
    let model = [format!("m={}", folder.join("w.csv").display())];
    let models = Model::read_all(&model, &["m=-0.295".into()], Some(0.01), &mut |note| panic!("{note}"));
    // A precision where no model and no bias is of floats.
    let whole = Model::read_all(&model, &["m=3".into()], Some(0.01), &mut |note| panic!("{note}"));
    std::fs::remove_dir_all(&folder).unwrap();
    let error = whole.err().unwrap().to_string();
    assert!(error.starts_with("these weights and biases are integers, for which --precision"), "{error}");
    assert_eq!(models.unwrap()[0].bias.as_ref().unwrap().values(), [-30, -30]);
}

/// A bias on the command line may be as long as one in a file.
#[test]
fn a_bias_is_any_number_of_63_bits() {
    let folder = std::env::temp_dir().join(format!("blindcore-long-bias-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("w.csv"), "1,2\n").unwrap();
    let model = [format!("a={}", folder.join("w.csv").display())];
    let bias = |text: &str| {
        let models = Model::read_all(&model, &[format!("a={text}")], None, &mut |_| ());
        models.map(|models| models[0].bias.as_ref().unwrap().values().to_vec()).map_err(|e| e.to_string())
    };
    let got = [
        "9223372036854775806",
        "9223372036854775807",
        "-9223372036854775807",
        "1.5",
        "9223372036854775808",
        "1e19",
    ]
    .map(bias);
    std::fs::remove_dir_all(&folder).unwrap();
    let [one, most, least, float, over, far] = got;
    assert_eq!([one, most, least], [i64::MAX - 1, i64::MAX, -i64::MAX].map(|value| Ok(vec![value])));
    assert_eq!(float, Ok(vec![15]));
    for refused in [over, far] {
        assert!(refused.unwrap_err().contains("is not a number of up to 63 bits; a bias has no more"));
    }
}

/// The line, the column, the number as it was written, and the option that helps.
#[test]
fn numbers_over_what_was_declared_are_named_with_the_option_that_helps() {
    let plain = Declared::default();
    let bits = |bits| Declared { bits: Some(bits), ..plain };
    let many: String =
        (0..5000).map(|i| if i == 4999 { "9999999999\n".into() } else { format!("{i}\n") }).collect();
    let cents = Declared { precision: Some(0.01), magnitude: Some(70368744177664.0), ..plain };
    let packing = |bits| Packing::new(512, bits, 4).unwrap();
    for (text, declared, packing, want) in [
        (
            "1.5\n2e9\n",
            plain,
            None,
            "line 2, column 1 of the input: 2e9 is over the declared magnitude of 1e9; say --magnitude 2e9",
        ),
        (
            "a,b\n1.5,-1234567890.5\n2,3\n",
            plain,
            None,
            "line 2, column 2 (\"b\") of the input: -1234567890.5 is over the declared magnitude of 1e9; say --magnitude 2e9",
        ),
        (
            "1.5\n70368744177664.07\n",
            cents,
            None,
            "line 2, column 1 of the input: 70368744177664.07 is over the declared magnitude of 70368744177664; say --magnitude 8e13",
        ),
        (
            many.as_str(),
            plain,
            None,
            "line 5000, column 1 of the input: 9999999999 is over the declared 2147483647 of --bits 32 (-2^31 to 2^31 - 1); \
             say --bits 35",
        ),
        (
            "1,2\n3,-129\n4,127\n",
            bits(8),
            Some(packing(20)),
            "line 2, column 2 of the input: -129 is below the declared -128 of --bits 8 (-2^7 to 2^7 - 1); say --bits 9",
        ),
        ("9223372036854775807\n", bits(8), None, "say --bits 64"),
    ] {
        let (content, _) = read(text, declared);
        let error = encrypted(&content, declared, packing).err().unwrap().to_string();
        assert!(error.contains(want), "{error}");
        // The option that is named does help.
        let option: Vec<&str> = error.rsplit_once("say --").unwrap().1.split(' ').collect();
        let declared = match option[..] {
            ["bits", bits] => Declared { bits: Some(bits.parse().unwrap()), ..declared },
            ["magnitude", most] => Declared { magnitude: Some(most.parse().unwrap()), ..declared },
            _ => panic!("{error}"),
        };
        let back = encrypted(&read(text, declared).0, declared, packing);
        assert!(back.is_ok(), "{:?}", back.err());
    }
    let content = Content::new("x.npy", ndarray::array![[0.0, 1.0], [2.0, 3e9]].into_dyn().into());
    let error = encrypted(&content, plain, None).err().unwrap().to_string();
    assert!(error.starts_with("element [1, 1] of x.npy: 3e9 is over"), "{error}");
}

/// Numbers are held against the magnitude as both are written, whatever units make of them.
#[test]
fn a_magnitude_is_what_was_said() {
    let declared = |precision, magnitude| Declared {
        precision: Some(precision),
        magnitude: Some(magnitude),
        ..Declared::default()
    };
    for (text, declared, want) in [
        ("0.3\n", declared(0.1, 0.01), "0.3 is over the declared magnitude of 0.01; say --magnitude 3e-1"),
        (
            "0.5\n0.6\n",
            declared(0.1, 0.55),
            "line 2, column 1 of the input: 0.6 is over the declared magnitude of 0.55;",
        ),
        (
            "-0.551\n",
            declared(0.1, 0.55),
            "-0.551 is over the declared magnitude of 0.55; say --magnitude 6e-1",
        ),
        (
            "0.6\n",
            Declared { phe: true, ..declared(0.5, 0.55) },
            "0.6 is over the declared magnitude of 0.55;",
        ),
        (
            "9007199254740993.0\n",
            Declared::default(),
            "9007199254740993.0 is over the declared magnitude of 1e9;",
        ),
        (
            "9007199254740992.0\n9007199254740993.0\n",
            declared(1.0, 9007199254740992.0),
            "line 2, column 1 of the input: 9007199254740993.0 is over the declared magnitude of 9007199254740992;",
        ),
    ] {
        let error = encrypted(&read(text, declared).0, declared, None).err().unwrap().to_string();
        assert!(error.contains(want), "{error}");
    }
    // The magnitude itself is within it, rounded by its digits as the numbers are, or by the bits of floats.
    for magnitude in [0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95] {
        let declared = declared(0.1, magnitude);
        let floats = Content::new("x.npy", ndarray::arr1(&[magnitude]).into_dyn().into());
        for content in [read(&format!("{magnitude}\n"), declared).0, floats] {
            assert!(encrypted(&content, declared, None).is_ok(), "{magnitude}");
        }
    }
}

/// Weights that a float doesn't hold are said to be rounded, unless that is asked for.
#[test]
fn weights_of_more_digits_than_a_float_are_noted() {
    let weights = |text: &str, precision: Option<f64>| {
        let (content, mut said) = (read(text, Declared { precision, ..Declared::default() }).0, Vec::new());
        let made = numbers::weights(&content, precision, false, &mut |note| said.push(note)).unwrap();
        (made.values().to_vec(), said.concat())
    };
    let note =
        "1 of 2 weights of the input have more digits than a float holds and are rounded to the nearest";
    for (text, made) in
        [("1.4999999999999999999\n2.5\n", vec![15, 25]), ("1.00000000000000001\n-2.0\n", vec![1, -2])]
    {
        let (values, said) = weights(text, None);
        assert_eq!(values, made);
        assert!(said.contains(note) && said.contains("--precision"), "{said}");
        assert_eq!(weights(text, Some(0.01)).1, "");
    }
    // Where all are rounded one note is enough.
    let (_, said) = weights("1.4999999999999999999\n0.123456789012\n", None);
    assert!(said.contains("rounded to 1e-9") && said.matches("note:").count() == 1, "{said}");
    // Of a power of two as of a decimal; and nothing is said of what is kept.
    let (_, said) = weights("0.00001525878906250000000000001\n0.5\n", None);
    assert!(said.contains(note), "{said}");
    assert_eq!(weights("1.50000000000000000000\n0.1\n", None).1, "");
}

/// Whole numbers in the form of floats are kept as integers are, and so are their results; what isn't kept is said with its unit.
#[test]
fn whole_floats_are_weights_as_integers_are() {
    let ones = floats(&[1.0, 1.0, 1.0], Encoding::new(0, Bound::new(1)).unwrap());
    let weigh = |text: &str, phe| {
        let (content, mut said) = (read(text, Declared::default()).0, Vec::new());
        let weights = numbers::weights(&content, None, phe, &mut |note| said.push(note)).unwrap();
        (csv(&decrypted(&PARTY.evaluator.dot(&ones, &weights).unwrap())), said.concat())
    };
    for phe in [false, true] {
        for (text, want) in [
            ("123456789000.0\n0\n1\n", "123456789001\n"),
            ("1e15\n0\n-3\n", "999999999999997\n"),
            ("9007199254740991.0\n1\n0\n", "9007199254740992\n"),
            ("1e18\n-1.0\n0\n", "999999999999999999\n"),
            ("9223372036e9\n0\n1\n", "9223372036000000001\n"),
            // Over 63 bits, but not in powers of 16.
            ("1e20\n3e20\n0\n", "4e20\n"),
        ] {
            assert_eq!(weigh(text, phe), (want.into(), String::new()), "{text}");
        }
    }
    let (_, said) = weigh("1e20\n1\n0\n", false);
    assert!(said.contains("the weights of the input are rounded to 16^8 (about 4e9); --precision"), "{said}");
    // Its float is 9223372036854774784.
    let (_, said) = weigh("9.223372036854775e18\n1\n0\n", false);
    assert!(said.contains("the weights of the input are rounded to 16^7 (268435456); --precision"), "{said}");
    let (_, said) = weigh("1e14\n1.5\n0\n", false);
    assert!(said.contains("the weights of the input are rounded to 16^3 (4096); --precision"), "{said}");
    // A bias, too.
    let folder = std::env::temp_dir().join(format!("blindcore-whole-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("w.csv"), "1.5,2\n").unwrap();
    let model = format!("a={}", folder.join("w.csv").display());
    let models = Model::read_all(&[model], &["a=1e15".into()], None, &mut |note| panic!("{note}"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(models.unwrap()[0].bias.as_ref().unwrap().values(), [1_000_000_000_000_000]);
}

#[test]
fn what_is_not_kept_or_not_meant_is_said() {
    let plain = Declared::default();
    let (content, said) = read("1e-10\n2.5e-10\n0.0\n1.0\n", plain);
    assert!(said.is_empty());
    let (_, said) = encrypted(&content, plain, None).unwrap();
    assert_eq!(
        said,
        [
            "note: 2 of 4 numbers of the input are so small that they count as 0; a smaller --precision keeps them"
        ]
    );
    // Also what is below all floats, and what is 0 by its digits alone.
    let (content, _) = read("1e-400\n-0.0\n0e-400\n0.0000000005\n1.0\n", plain);
    let (_, said) = encrypted(&content, plain, None).unwrap();
    assert!(said[0].contains("2 of 5 numbers of the input are so small"), "{said:?}");
    let (content, said) = read("1,234\n5,678\n", plain);
    assert_eq!(content.values.shape(), [2, 2]);
    assert!(said[0].contains("read as 2 numbers") && said[0].contains("write 1234"), "{said:?}");
    for text in ["1,234\n5,67\n", "1,234\n5000,678\n", "a,b\n1,234\n", "1,\"234\"\n", "123\n"] {
        let said = read(text, plain).1;
        assert!(!said.iter().any(|note| note.contains("1234")), "{text}: {said:?}");
    }
    // Where decimals are over 63 bits.
    let note = |declared: Declared| {
        let (content, mut said) = (read("1.5\n", declared).0, Vec::new());
        declared.encoding(&content, &mut |note| said.push(note)).unwrap();
        said
    };
    let far = Declared { magnitude: Some(1e15), ..plain };
    let units = Declared { precision: Some(1.0), magnitude: Some(1e30), ..plain };
    assert!(note(units)[0].contains("floats rounded to whole numbers;"));
    let (content, _) = read("123456789012345678901234567.0\n9007199254740993.0\n", units);
    let (ciphertexts, _) = encrypted(&content, units, None).unwrap();
    assert_eq!(csv(&decrypted(&ciphertexts)), "123456789012345678152597504\n9007199254740993\n");
    assert_eq!(
        note(far),
        [
            "note: numbers of this precision take over 63 bits as decimals, and are floats rounded to 16^-8 (about 2e-10); a coarser --precision or \
             a smaller --magnitude keeps decimals"
        ]
    );
    assert!([plain, Declared { phe: true, ..far }].iter().all(|declared| note(*declared).is_empty()));
    // What weights are rounded to.
    let weights = |values: [f64; 2], precision| {
        let (content, mut said) = (Content::new("w", ndarray::arr1(&values).into_dyn().into()), Vec::new());
        numbers::weights(&content, precision, false, &mut |note| said.push(note)).unwrap();
        said.concat()
    };
    let (third, floats) =
        (1.0 / 3.0, "are floats rounded to 16^-7 (about 4e-9); a coarser --precision keeps decimals");
    assert!(weights([third, 1.0], None).contains("rounded to 1e-9;"));
    assert!(weights([1.5e9 + third, 1.0], None).contains("rounded to whole numbers;"));
    assert!(weights([5e9 + third, 1.0], None).contains("rounded to whole numbers;"));
    assert!(weights([1e10, 1.0], Some(9e-9)).contains(floats));
    // A precision says nothing for weights that are integers.
    let weights = Content::new("w", ndarray::array![1i64, 2].into_dyn().into());
    let error = numbers::weights(&weights, Some(100.0), false, &mut |_| ()).err().unwrap().to_string();
    assert!(error.starts_with("these weights are integers") && error.contains("--precision"), "{error}");
    let none = Content::new("e.npy", ndarray::Array1::<i64>::zeros(0).into_dyn().into());
    assert!(encrypted(&none, plain, None).err().unwrap().to_string().contains("e.npy holds no numbers"));
    let no_weights = numbers::weights(&none, None, false, &mut |_| ()).err().unwrap().to_string();
    assert_eq!(no_weights, "e.npy holds no numbers; give at least one weight");
}

/// A result of many decimals and sixteenths, digit by digit: as long as any form has them.
#[test]
fn the_finest_unit_is_printed_exactly() {
    let three = floats(&[3.0], Encoding::new(0, Bound::new(3)).unwrap());
    let numbers = three.numbers(PARTY.evaluator.encryptor()).unwrap();
    let form = Form { exponent: -4096, scale: 4096, ..three.form().clone() };
    let finest = Plaintexts::decrypt(&PARTY.decryptor, &numbers, &form).unwrap();
    // 3 x 16^-4096 is 3 x 625^4096 with the point before its last 16384 digits, and 4096 before.
    let power = |digits: Vec<u32>| {
        let (mut out, mut carry) = (Vec::new(), 0);
        for digit in digits {
            carry += 625 * digit;
            out.push(carry % 10);
            carry /= 10;
        }
        while carry > 0 {
            out.push(carry % 10);
            carry /= 10;
        }
        out
    };
    let digits = (0..4096).fold(vec![3], |digits, _| power(digits));
    let text: String = digits.iter().rev().map(ToString::to_string).collect();
    let zeros = "0".repeat(16384 + 4096 - text.len());
    assert_eq!(csv(&numbers::decode(&finest).unwrap()), format!("0.{zeros}{}\n", text.trim_end_matches('0')));
}

/// A shorter exponent than that of n is for encryption alone: what python-paillier's key of the same n encrypted decrypts.
#[test]
fn a_key_of_short_exponents_decrypts_what_its_n_alone_encrypted() {
    let folder = std::env::temp_dir().join(format!("blindcore-textbook-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let file = folder.join("x.ct");
    for (mode, decrypts) in [(Mode::ShortExponent, true), (Mode::Textbook, true), (Mode::SpecialKey, false)] {
        let key = SecretKey::generate(KeySize::test_only(512).unwrap(), mode).unwrap();
        let textbook = PublicKey::textbook(key.public().n()).unwrap();
        let evaluator = Evaluator::new(&textbook, &device).unwrap();
        let plaintexts = Plaintexts::integers(&textbook, &[3, -4], Encoding::integers(8).unwrap()).unwrap();
        let ciphertexts = Ciphertexts::encrypt(evaluator.encryptor(), &plaintexts).unwrap();
        disk::write(&file, &ciphertexts, &evaluator, Existing::Replace).unwrap();
        let back = numbers::decrypt(&file, &Decryptor::new(&key, &device).unwrap(), &mut ());
        assert_eq!(back.map(|back| csv(&back)).ok(), decrypts.then(|| "3\n-4\n".into()), "{mode:?}");
        let other = SecretKey::generate(KeySize::test_only(512).unwrap(), mode).unwrap();
        assert!(numbers::decrypt(&file, &Decryptor::new(&other, &device).unwrap(), &mut ()).is_err());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
