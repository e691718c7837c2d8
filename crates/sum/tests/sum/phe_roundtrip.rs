//! Round trips with python-paillier, which the test installs from the package index; skipped, saying why, where that
//! can't be done. What is refused of its JSON is tested without it.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use blindcore_accel::Device;
use blindcore_accel_cpu::Cpu;
use blindcore_files::secret::is_secret_key;
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::{Bound, Encoding, Plaintexts};
use blindcore_sum::evaluate::{Evaluator, Weights};
use blindcore_sum::keys::{KeySize, Mode, SecretKey};
use blindcore_sum::packing::Packing;
use blindcore_sum::phe;
use blindcore_sum::scheme::Decryptor;
use crypto_bigint::{BoxedUint, ConcatenatingMul};

const PACKAGES: [&str; 2] = ["phe==1.5.0", "click==8.1.8"];

static DEVICE: LazyLock<Device> = LazyLock::new(|| Cpu::with_threads("cpu", 1).unwrap());
static SECRET: LazyLock<SecretKey> =
    LazyLock::new(|| SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::Textbook).unwrap());
static EVALUATOR: LazyLock<Evaluator> = LazyLock::new(|| Evaluator::new(SECRET.public(), &DEVICE).unwrap());

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout).unwrap());
    }
    let last = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
    Err(format!("{command:?}: {}: {last}", output.status))
}

/// A Python that has phe, in a virtual environment of its own.
fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("phe");
    let python = folder.join("bin/python");
    let probe = || run(Command::new(&python).args(["-c", "import phe, phe.command_line"]));
    if probe().is_err() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(PACKAGES))?;
        probe()?;
    }
    Ok(python)
}

fn peer(python: &Path, arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/phe_peer.py");
    run(Command::new(python).arg(script).args(arguments)).unwrap()
}

fn floats(json: &str) -> Vec<f64> {
    serde_json::from_str(json).unwrap()
}

#[test]
fn phe_encrypts_and_decrypts_what_is_evaluated_here() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return eprintln!("skipped: python-paillier can't be installed: {why}"),
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("phe-roundtrip");
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name);
    let text = |name: &str| std::fs::read(file(name)).unwrap();
    peer(&python, &["make", folder.to_str().unwrap(), "2048"]);

    // phe's keys and ciphertexts, read here.
    let secret = phe::secret_key(&text("key.json")).unwrap();
    let public = phe::public_key(&text("public.json")).unwrap();
    assert_eq!(secret.public().n(), public.n());
    let decryptor = Decryptor::new(&secret, &DEVICE).unwrap();
    let values: Vec<f64> = floats(std::str::from_utf8(&text("values.json")).unwrap());
    let numbers = phe::PheCiphertexts::read(&public, &text("numbers.jsonl")[..]).unwrap();
    let decrypted = numbers.decrypt(&decryptor).unwrap();
    let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&decrypted), bits(&values), "the same floats to the last bit");
    let single = phe::PheCiphertexts::parse(&public, text("single.json").trim_ascii()).unwrap();
    assert_eq!(single.exponents(), [-32]);
    assert_eq!(single.decrypt(&decryptor).unwrap(), [-12.75]);

    // Evaluated here, decrypted there.
    let evaluator = Evaluator::new(&public, &DEVICE).unwrap();
    let batch = numbers.align(&evaluator, 2f64.powi(41)).unwrap();
    let weights: Vec<f64> = (0..values.len()).map(|i| i as f64 - 3.5).collect();
    let weights_exact = Weights::floats(&weights[..], Encoding::exact(&weights[..]).unwrap()).unwrap();
    let sum = evaluator.sum(&batch).unwrap();
    let dot = evaluator.dot(&batch, &weights_exact).unwrap();
    let results = [batch.clone(), sum, dot, evaluator.negate(&batch).unwrap()];
    // Sums are exact there and here, then rounded once; so they are compared with sums in integers.
    let sums = [exact_dot(&values, &vec![1.0; values.len()]), exact_dot(&values, &weights)];
    let negated: Vec<f64> = values.iter().map(|v| -v).collect();
    let mut lines = Vec::new();
    for result in &results {
        let fresh = evaluator.rerandomise(result).unwrap();
        let numbers = fresh.numbers(evaluator.encryptor()).unwrap();
        phe::write_ciphertexts(&mut lines, SECRET.public(), &numbers, fresh.form()).unwrap();
    }
    std::fs::write(file("results.jsonl"), &lines).unwrap();
    let there = peer(
        &python,
        &["check", file("key.json").to_str().unwrap(), file("results.jsonl").to_str().unwrap()],
    );
    let want = [&values[..], &sums, &negated].concat();
    assert_eq!(floats(&there), want);

    // A key and ciphertexts made here, decrypted there.
    std::fs::write(file("ours.json"), phe::write_secret_key(&SECRET).unwrap().as_bytes()).unwrap();
    let ours = [-1e-6, 123.456, -5e9, 0.0, 7.0];
    let encoding = Encoding::exact(&ours).unwrap();
    let plaintexts = Plaintexts::floats(SECRET.public(), &ours, encoding).unwrap();
    let batch = Ciphertexts::encrypt(EVALUATOR.encryptor(), &plaintexts).unwrap();
    let mut lines = Vec::new();
    let numbers = batch.numbers(EVALUATOR.encryptor()).unwrap();
    phe::write_ciphertexts(&mut lines, SECRET.public(), &numbers, batch.form()).unwrap();
    std::fs::write(file("ours.jsonl"), &lines).unwrap();
    let there =
        peer(&python, &["check", file("ours.json").to_str().unwrap(), file("ours.jsonl").to_str().unwrap()]);
    assert_eq!(floats(&there), ours);
}

/// The nearest float to a dot product of numbers that are multiples of 2^-85 and below 2^42 with weights that are
/// multiples of a half, in integers.
fn exact_dot(x: &[f64], w: &[f64]) -> f64 {
    let (mut positive, mut negative) =
        (BoxedUint::zero_with_precision(256), BoxedUint::zero_with_precision(256));
    for (x, w) in x.iter().zip(w) {
        let integer = |v: f64, scale: i32| {
            let mut v = v.abs() * 2f64.powi(scale);
            let mut words = vec![0u64; 2];
            words[1] = (v / 2f64.powi(64)) as u64;
            v -= words[1] as f64 * 2f64.powi(64);
            words[0] = v as u64;
            assert_eq!(words[0] as f64, v, "a whole number");
            BoxedUint::from_words(words)
        };
        let product = integer(*x, 85).concatenating_mul(&integer(*w, 1));
        let side = if x * w < 0.0 { &mut negative } else { &mut positive };
        *side = side.wrapping_add(&product);
    }
    let (sign, difference) = if positive >= negative {
        (1.0, positive.wrapping_sub(&negative))
    } else {
        (-1.0, negative.wrapping_sub(&positive))
    };
    let nearest: f64 = difference.to_string_radix_vartime(10).parse().unwrap();
    sign * nearest * 2f64.powi(-86)
}

fn lines(text: &str) -> Result<phe::PheCiphertexts, phe::PheError> {
    phe::PheCiphertexts::read(SECRET.public(), text.as_bytes())
}

fn refusal<T>(result: Result<T, phe::PheError>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn keys_and_ciphertexts_come_back_through_json() {
    let json = phe::write_secret_key(&SECRET).unwrap();
    let back = phe::secret_key(json.as_bytes()).unwrap();
    assert_eq!(back.public().n(), SECRET.public().n());
    let public = phe::write_public_key(SECRET.public()).unwrap();
    assert_eq!(phe::public_key(public.as_bytes()).unwrap().n(), SECRET.public().n());
    // One whose n was changed goes by the name of another; phe's own names say nothing of n. This one is a multiple of 3, and
    // odd: any other might be a prime, which is refused as such.
    let (n, two) = (BoxedUint::from_words(SECRET.public().n().iter().copied()), BoxedUint::from(2u64));
    let by_three = n.as_words().iter().fold(0, |sum, word| (sum + word % 3) % 3);
    let other = if by_three == 1 { n.wrapping_add(&two) } else { n.wrapping_sub(&two) };
    let changed = public.replace(&base64(&n), &base64(&other));
    assert_ne!(changed, public);
    let refused = refusal(phe::public_key(changed.as_bytes()));
    assert!(refused.contains("it was changed; write it again with `blindcore sum public`"), "{refused}");
    let renamed = changed.replace("blindcore ", "made by ");
    assert_eq!(phe::public_key(renamed.as_bytes()).unwrap().bits(), SECRET.public().bits());
    let nameless = changed.replace("\"kid\"", "\"other\"");
    assert!(phe::public_key(nameless.as_bytes()).is_ok());

    let plaintexts =
        Plaintexts::integers(SECRET.public(), &[5, -6, 70000], Encoding::integers(20).unwrap()).unwrap();
    let batch = Ciphertexts::encrypt(EVALUATOR.encryptor(), &plaintexts).unwrap();
    let numbers = batch.numbers(EVALUATOR.encryptor()).unwrap();
    let mut text = Vec::new();
    phe::write_ciphertexts(&mut text, SECRET.public(), &numbers, batch.form()).unwrap();
    let read = phe::PheCiphertexts::read(SECRET.public(), &text[..]).unwrap();
    assert!(*read.numbers() == numbers);
    assert_eq!(read.exponents(), [0; 3]);
    // Another exponent for one of them, spaces, an empty line and no newline at the end.
    let text = String::from_utf8(text).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mixed = format!("{}\r\n\n {rest}", first.replace("\"e\":0", " \"e\" : 3 "));
    let read = lines(mixed.trim_end()).unwrap();
    assert_eq!(read.exponents(), [3, 0, 0]);
    let aligned = read.align(&EVALUATOR, 1e6).unwrap();
    assert_eq!(aligned.form().bound, Bound::new(1_000_000));
    let decryptor = Decryptor::new(&SECRET, &DEVICE).unwrap();
    let numbers = aligned.numbers(EVALUATOR.encryptor()).unwrap();
    let values = Plaintexts::decrypt(&decryptor, &numbers, aligned.form()).unwrap().to_i64().unwrap();
    assert_eq!(values, [5 * 4096, -6, 70000]);
    assert_eq!(read.decrypt(&decryptor).unwrap(), [5.0 * 4096.0, -6.0, 70000.0]);
}

/// A number's bytes in base64url, highest first: by another road than the crate's.
fn base64(number: &BoxedUint) -> String {
    const SYMBOLS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: String = number.to_be_bytes_trimmed_vartime().iter().map(|b| format!("{b:08b}")).collect();
    let symbols = bits.as_bytes().chunks(6).map(|six| {
        let six = format!("{:0<6}", std::str::from_utf8(six).unwrap());
        char::from(SYMBOLS[usize::from_str_radix(&six, 2).unwrap()])
    });
    symbols.collect()
}

/// A secret key in every form that the reader takes it in is one for the guard of what is written over.
fn guarded(json: &str) {
    let mut forms = vec![json.to_owned()];
    // Members in another order, among others, and one in each line.
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).unwrap();
    let turned = members
        .iter()
        .rev()
        .map(|(name, value)| format!("\"{}\": {value}", name.replace("kid", "k\\u0069d")));
    forms.push(format!("{{\n  \"added\": [1, {{}}],\n  {}\n}}", turned.collect::<Vec<_>>().join(",\n  ")));
    for mark in ["", "\u{feff}"] {
        for space in ["", " ", "\n", "\r\n", "\t", "  \n\t\r"] {
            for form in &forms {
                let form = format!("{mark}{space}{form}{space}");
                let read = phe::secret_key(form.as_bytes()).unwrap();
                assert_eq!(read.public().id(), SECRET.public().id());
                assert!(is_secret_key(form.as_bytes()), "{mark:?} {space:?}");
            }
        }
    }
}

#[test]
fn what_is_read_as_a_secret_key_is_guarded_as_one() {
    guarded(&phe::write_secret_key(&SECRET).unwrap());
    let bytes = SECRET.to_bytes();
    assert!(SecretKey::from_bytes(&bytes).is_ok() && is_secret_key(&bytes));
    // A public key is none, in whatever form.
    let public = phe::write_public_key(SECRET.public()).unwrap();
    assert!(!is_secret_key(public.as_bytes()) && !is_secret_key(format!("\u{feff}{public}").as_bytes()));
    assert!(!is_secret_key(&SECRET.public().to_bytes()));
}

#[test]
fn keys_with_lambda_are_factored() {
    let (p, q) = SECRET.primes();
    let big = |words: &[u64]| BoxedUint::from_words(words.iter().copied());
    let less_one = |words: &[u64]| big(words).wrapping_sub(BoxedUint::one());
    let n = big(SECRET.public().n());
    let phi = less_one(p).concatenating_mul(&less_one(q));
    // p = q = 3 mod 4: half of phi is a common multiple.
    let half = phi.shr(1);
    let inverse = |lambda: &BoxedUint| {
        let odd = n.to_odd().unwrap();
        lambda.rem(odd.as_nz_ref()).invert_odd_mod(&odd).unwrap()
    };
    let json = |lambda: &BoxedUint, mu: &BoxedUint| {
        format!(
            r#"{{"kty":"DAJ","key_ops":["decrypt"],"lambda":"{}","mu":"{}","pub":{},"kid":"old"}}"#,
            base64(lambda),
            base64(mu),
            phe::write_public_key(SECRET.public()).unwrap()
        )
    };
    for lambda in [&phi, &half] {
        guarded(&json(lambda, &inverse(lambda)));
        let read = phe::secret_key(json(lambda, &inverse(lambda)).as_bytes()).unwrap();
        let (a, b) = read.primes();
        let mut found = [big(a), big(b)];
        found.sort();
        let mut want = [big(p), big(q)];
        want.sort();
        assert!(found == want);
    }
    let text = refusal(phe::secret_key(json(&phi, &inverse(&half)).as_bytes()));
    assert_eq!(text, "the private key is not its public key's: mu is not the inverse of lambda modulo n");
    for wrong in [phi.wrapping_add(BoxedUint::one()), BoxedUint::one(), n.clone(), n.shl(1), phi.shl(1)] {
        let json = json(&wrong, &BoxedUint::one()).replace(r#","mu":"AQ""#, "");
        let text = refusal(phe::secret_key(json.as_bytes()));
        assert_eq!(text, "the private key is not its public key's: lambda is not that of n");
    }
}

/// As editors on Windows save them: with a byte order mark, CRLF, and a last line without an end.
#[test]
fn byte_order_marks_and_ends_of_lines_are_not_json() {
    let marked = |text: &str| format!("\u{feff}{text}\r\n");
    let public = phe::write_public_key(SECRET.public()).unwrap();
    assert_eq!(phe::public_key(marked(&public).as_bytes()).unwrap().id(), SECRET.public().id());
    let secret = phe::write_secret_key(&SECRET).unwrap();
    assert_eq!(phe::secret_key(marked(&secret).as_bytes()).unwrap().public().id(), SECRET.public().id());
    let one = r#"{"v":"17","e":-3}"#;
    let three = lines(&marked(&format!("{one}\r\n\r\n{one}\r\n{one}"))).unwrap();
    assert_eq!((three.exponents(), three.numbers().get(2)[0]), (&[-3; 3][..], 17));
    let parsed = phe::PheCiphertexts::parse(SECRET.public(), marked(one).as_bytes()).unwrap();
    assert_eq!(parsed.numbers().get(0)[0], 17);
    assert!(lines("\u{feff}").unwrap().numbers().is_empty());
}

#[test]
fn what_is_not_phes_json_is_refused_in_words() {
    let good = phe::write_public_key(SECRET.public()).unwrap();
    let public = |from: &str, to: &str| refusal(phe::public_key(good.replace(from, to).as_bytes()));
    assert!(public("\"DAJ\"", "\"RSA\"").contains(r#"the public key has kty "RSA" where phe writes "DAJ""#));
    assert!(public("PAI-GN1", "PAI-GN2").contains(r#"alg "PAI-GN2""#));
    assert!(public("\"n\"", "\"m\"").contains("a member is missing"));
    assert!(public("\"kty\":\"DAJ\"", "\"kty\":\"DAJ\",\"kty\":\"DAJ\"").contains("doubled"));
    assert!(public("\"n\":\"", "\"n\":\"+").contains("a symbol that base64url has not"));
    assert!(public("}", "").contains("it ends too soon (line 1"));
    assert!(public("\"kty\"", "kty").contains("its syntax is wrong"));
    let long = public("\"n\":\"", &format!("\"n\":\"{}", "A".repeat(700)));
    assert!(long.contains("n has over 4096 bits"), "{long}");
    let huge = public("}", &" ".repeat(phe::MAX_KEY_BYTES));
    assert!(huge.contains("has over 65536 B"), "{huge}");
    phe::public_key(good.replace("\"kid\"", "\"added\":[1,{}],\"kid\"").as_bytes()).unwrap();

    let good = phe::write_secret_key(&SECRET).unwrap();
    let secret = |from: &str, to: &str| refusal(phe::secret_key(good.replacen(from, to, 1).as_bytes()));
    assert!(secret("\"decrypt\"", "\"sign\"").contains(r#"key_ops "sign" where phe writes "decrypt""#));
    assert!(secret("\"q\"", "\"r\"").contains("it needs p and q, or lambda alone"));
    assert!(secret("\"p\":\"", "\"p\":\"AAAB").contains("p times q is not n"));
    assert!(secret("\"p\":\"", "\"p\":\"\\u0041").contains("of another type"));
    let wrong = secret("\"p\":\"", "\"p\":7,\"x\":\"");
    let number = good.split("\"p\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(!wrong.contains(number) && wrong.contains("of another type"), "secrets are not quoted: {wrong}");

    // The values of an object's members are not the object, as a whole or within another.
    let value =
        |key: &str, member: &str| serde_json::from_str::<serde_json::Value>(key).unwrap()[member].clone();
    let public = phe::write_public_key(SECRET.public()).unwrap();
    let public = serde_json::json!(["DAJ", "PAI-GN1", value(&public, "n")]);
    let (p, q) = (value(&good, "p"), value(&good, "q"));
    let array = serde_json::json!(["DAJ", ["decrypt"], value(&good, "pub"), p, q, null, null]);
    let within = serde_json::json!({"kty": "DAJ", "key_ops": ["decrypt"], "pub": public, "p": p, "q": q});
    for text in [
        refusal(phe::public_key(public.to_string().as_bytes())),
        refusal(phe::secret_key(array.to_string().as_bytes())),
        refusal(phe::secret_key(within.to_string().as_bytes())),
    ] {
        assert!(text.contains("or an array stands for an object"), "{text}");
    }

    let digits = (16 * 64 * 30103 / 100_000) + 2;
    for (line, part) in [
        (r#"{"v":"1"}"#.to_owned(), "line 1 is not phe's JSON: a member is missing"),
        (r#"{"v":1,"e":0}"#.to_owned(), "of another type"),
        (r#"{"v":"1","e":0.5}"#.to_owned(), "of another type"),
        (r#"{"v":"1","e":0,"k":1}"#.to_owned(), "unknown"),
        (r#"{"v":"1","e":0,"e":0}"#.to_owned(), "doubled"),
        (r#"{"v":"","e":0}"#.to_owned(), "v is not a decimal number"),
        (r#"{"v":"-1","e":0}"#.to_owned(), "v is not a decimal number"),
        (r#"{"v":"1_0","e":0}"#.to_owned(), "v is not a decimal number"),
        (r#"{"v":"1","e":4097}"#.to_owned(), "an exponent of 4097"),
        (r#"{"v":"1","e":99999999999}"#.to_owned(), "an exponent of 99999999999"),
        (r#"{"v":"1","e":99999999999999999999}"#.to_owned(), "of another type"),
        ("\n{}".to_owned(), "line 2"),
        ("[]".to_owned(), "line 1"),
        (r#"["17",0]"#.to_owned(), "line 1 is not phe's JSON: a member is missing"),
        (r#"{"v":"1","e":0} {}"#.to_owned(), "line 1 is not phe's JSON: its syntax is wrong"),
        (
            "{\"v\":\"1\",\"e\":0}\n\u{feff}{\"v\":\"1\",\"e\":0}".to_owned(),
            "line 2 is not phe's JSON: its syntax is wrong",
        ),
        (format!(r#"{{"v":"{}","e":0}}"#, "9".repeat(digits)), "over the 1024 bits"),
        (format!(r#"{{"v":"{}","e":0}}"#, "9".repeat(10_000)), "line 1 has over"),
        (" ".repeat(10_000), "line 1 has over"),
    ] {
        let text = refusal(lines(&line));
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    let padded = lines(r#"{"v":"000017","e":-3}"#).unwrap();
    assert_eq!(padded.numbers().get(0)[0], 17);

    let special = SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::SpecialKey).unwrap();
    let short = SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::ShortExponent).unwrap();
    for (key, mode) in [(&special, "special-key"), (&short, "short-exponent")] {
        let text = refusal(phe::write_secret_key(key));
        assert!(text.starts_with(&format!("a private key of mode {mode} can't be used with phe")), "{text}");
    }
    // The public half is the key of the same n, and says so.
    let held = phe::public_key(phe::write_public_key(short.public()).unwrap().as_bytes()).unwrap();
    assert!(held.n() == short.public().n() && held.id() != short.public().id());
    assert!(phe::write_public_key(short.public()).unwrap().contains(&held.id().to_string()));
    // What no command would read is not written either.
    let unread = lines(r#"{"v":"1","e":0}"#).unwrap();
    let unread_form = unread.align(&EVALUATOR, 1.0).unwrap().form().clone();
    for text in [
        refusal(phe::write_public_key(special.public())),
        refusal(phe::PheCiphertexts::parse(special.public(), br#"{"v":"1","e":0}"#)),
        refusal(phe::write_ciphertexts(Vec::new(), special.public(), unread.numbers(), &unread_form)),
    ] {
        assert!(text.starts_with("a special key can't be used with phe"), "{text}");
    }

    // What is read is not accepted yet.
    for v in ["0", &BoxedUint::from_words(SECRET.public().n().iter().copied()).to_string_radix_vartime(10)] {
        let read = lines(&format!(r#"{{"v":"{v}","e":0}}"#)).unwrap();
        assert!(read.align(&EVALUATOR, 1.0).is_err());
    }
    let far = lines("{\"v\":\"1\",\"e\":200}\n{\"v\":\"1\",\"e\":-200}").unwrap();
    let text = refusal(far.align(&EVALUATOR, 1e250));
    assert!(text.contains("what was declared could reach 2^1630.5"), "{text}");
    assert!(refusal(far.align(&EVALUATOR, f64::INFINITY)).contains("inf"));
    let packing = Packing::new(512, 20, 4).unwrap();
    let packed =
        Plaintexts::pack_integers(SECRET.public(), &[1, 2], Encoding::integers(8).unwrap(), packing).unwrap();
    let text = refusal(phe::write_ciphertexts(Vec::new(), SECRET.public(), packed.numbers(), packed.form()));
    assert!(text.contains("a packed batch can't be used with phe"), "{text}");
}
