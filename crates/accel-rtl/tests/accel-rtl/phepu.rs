//! PH-EPU, where its libraries have been built: the shared suite, exact clocks, failing elements, the task compiler's streams.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use std::sync::Arc;

use blindcore_accel::Error;
use blindcore_accel::bigmod::{
    BigModulus, Bigmod, Exponents, Method, MultiExp, Numbers, Residues, reference,
};
use blindcore_accel::conformance::{Limits, bigmod_within};
use blindcore_accel_rtl::phepu::compiler::isa::{Operation, Word, address};
use blindcore_accel_rtl::phepu::compiler::{
    Assignment, Body, Convolution, Dataflow, Machine, Packet, Programs, Stream, Task,
};
use blindcore_accel_rtl::phepu::{Card, CardSettings, Context, Phepu, Run};

/// A device; none where it has not been built, unless BLINDCORE_RTL says that it has.
fn open(name: &str, settings: CardSettings) -> Option<Phepu> {
    match (Phepu::with_settings(name, settings), std::env::var_os("BLINDCORE_RTL")) {
        (Ok(device), _) => Some(device),
        (Err(e), Some(_)) => panic!("{e}"),
        (Err(e), None) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

/// The longest power of three of at most this many bits: everything that 3 does not divide has an inverse.
fn modulus(bits: u32) -> Arc<BigModulus> {
    let mut words = vec![1u64];
    let mut of = 1;
    loop {
        let mut carry = 0;
        let mut next: Vec<u64> = words
            .iter()
            .map(|word| {
                let product = 3 * u128::from(*word) + carry;
                carry = product >> 64;
                product as u64
            })
            .collect();
        next.push(carry as u64);
        let next = BigModulus::odd(&next).expect("odd");
        if next.bits() > bits {
            break;
        }
        of = next.bits();
        words = next.value().to_vec();
    }
    assert!(of + 2 > bits, "{of}");
    Arc::new(BigModulus::odd(&words).expect("odd"))
}

/// Repeatable numbers that have inverses, whose highest word is zero, so that they lie below a modulus of as many words.
fn numbers(seed: u64, count: usize, words: usize) -> Numbers {
    let mut state = seed;
    let mut out = Numbers::zeroed(count, words);
    for number in 0..count {
        let number = out.get_mut(number);
        for word in &mut number[..words - 1] {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *word = state ^ state >> 29;
        }
        // 2^64 is 1 modulo 3.
        if number.iter().map(|word| word % 3).sum::<u64>().is_multiple_of(3) {
            number[0] ^= 1;
        }
    }
    out
}

/// The suite up to 4096 bits, for one of five moduli (of all lengths and kinds), each with every length of batches up to one
/// more than there are elements, and one of three rounds; the longest, 900, is left out, as are moduli over 4096 bits, which
/// the device refuses, and four of five multi-exponentiations of each modulus, others each time.
#[test]
fn conformance() {
    let Some(device) = open("rtl:phepu", CardSettings::UNBOUND) else { return };
    let cases = bigmod_within(&device.device(), Limits { batch: 40, share: 5 });
    assert!(cases >= 20_000, "{cases}");
}

/// Batches go round the chips too.
#[test]
fn a_card_gives_the_same() {
    let Some(device) = open("rtl:phepu-card", CardSettings::PAPER) else { return };
    let modulus = modulus(1000);
    let bigmod = device.device().bigmod(&modulus).unwrap();
    let (a, b) = (numbers(1, 150, modulus.words()), numbers(2, 150, modulus.words()));
    let (x, y) = (bigmod.place(&a).unwrap(), bigmod.place(&b).unwrap());
    let (product, cost) = bigmod.multiply(&x, &y).unwrap();
    let product = bigmod.read(&product).unwrap();
    for i in 0..150 {
        assert!(product.get(i) == reference::multiply(&modulus, a.get(i), b.get(i)), "{i}");
    }
    // 150 pairs and as many results, of four words each, take PCIe four clocks a word.
    let cycles = cost.cycles;
    let least = 150 * 3 * 4 * 4;
    assert!((least..2 * least).contains(&cycles), "{cycles}");
    let weights = vec![3, -1, 0, 300, -70_000, 12, 5, 5];
    let multi_exp = MultiExp { method: Method::Buckets, ..MultiExp::matrix(4, weights) };
    let of: Vec<Vec<u64>> = a.iter().take(4).map(<[u64]>::to_vec).collect();
    let inverses = bigmod.read(&bigmod.invert(&x.select(0..4)).unwrap().0).unwrap();
    let inverses: Vec<Vec<u64>> = inverses.iter().map(<[u64]>::to_vec).collect();
    let (got, _) = bigmod.multi_exp(&x, &multi_exp).unwrap();
    let want = reference::multi_exp(&modulus, &of, &inverses, &multi_exp);
    assert!(bigmod.read(&got).unwrap().iter().eq(want.iter().map(Vec::as_slice)));
}

/// The figures: at most 348 clocks a multiplication of 4096 bits in basic mode, at most 13,200 an inversion; on all
/// sixteen elements at once, with what goes in and out.
#[test]
fn clocks() {
    let Some(device) = open("rtl:phepu", CardSettings::UNBOUND) else { return };
    let modulus = modulus(4096);
    let bigmod = device.device().bigmod(&modulus).unwrap();
    let a = numbers(3, 16, modulus.words());
    let x = bigmod.place(&a).unwrap();
    // Two multiplications a bit, whatever the exponent is.
    let steady = |exponent: &[u64]| {
        let (power, cost) = bigmod.power(&x, &Exponents::Shared(exponent, 128)).unwrap();
        assert_eq!((cost.multiplications, cost.squarings), (16 * 128, 16 * 128));
        assert_eq!(cost.points, u128::from(cost.multiplications + cost.squarings));
        assert!(cost.cycles <= 348 * 2 * 128, "{} clocks", cost.cycles);
        (cost.cycles, bigmod.read(&power).unwrap())
    };
    let (cycles, power) = steady(&[0x0123_4567_89ab_cdef, u64::MAX]);
    assert!(power.get(5) == reference::power(&modulus, a.get(5), &[0x0123_4567_89ab_cdef, u64::MAX]));
    for exponent in [[0, 0], [1, 0], [u64::MAX; 2]] {
        assert_eq!(steady(&exponent).0, cycles, "{exponent:x?}");
    }
    // A long batch without dependences moves 48 words a product over the bus, and nothing else holds it up.
    let many = x.select((0..8).flat_map(|_| 0..16));
    let (_, cost) = bigmod.multiply(&many, &many).unwrap();
    let cycles = cost.cycles;
    assert!(cycles <= 128 * 52 + 800, "{cycles}");

    let (inverse, cost) = bigmod.invert(&x).unwrap();
    let cycles = cost.cycles;
    assert!(cycles <= 13_200, "{cycles} clocks for sixteen inversions");
    let one = bigmod.multiply(&x, &inverse).unwrap().0;
    assert!(bigmod.read(&one).unwrap().iter().all(|one| one == reference::one(&modulus)));
}

/// An exponent that is longer than an instruction carries; the suite's are shorter.
#[test]
fn a_long_exponent() {
    let Some(device) = open("rtl:phepu", CardSettings::UNBOUND) else { return };
    let modulus = modulus(1000);
    let bigmod = device.device().bigmod(&modulus).unwrap();
    let a = numbers(4, 2, modulus.words());
    let exponents = numbers(5, 2, 66); // of 4160 bits, for the highest word is zero
    let x = bigmod.place(&a).unwrap();
    let (power, cost) = bigmod.power(&x, &Exponents::Each(&exponents, 4161)).unwrap();
    let power = bigmod.read(&power).unwrap();
    for i in 0..2 {
        assert!(power.get(i) == reference::power(&modulus, a.get(i), exponents.get(i)), "{i}");
    }
    // Two pieces: their squarings and multiplications, and what joins them.
    assert_eq!((cost.multiplications, cost.squarings), (2 * (4161 + 1), 2 * (4161 + 4096)));
    assert_eq!(cost.points, u128::from(cost.multiplications + cost.squarings));
}

/// A stream of one chip: all elements get the context, but element 2, and 3, which gets an even modulus.
struct Job {
    stream: Stream,
}

impl Job {
    const EVEN: u32 = 100;

    fn new(digits: usize) -> Self {
        let begin = [
            Word::new(!0b1100, Operation::Context { digits: digits as u8, width: 8, global: 0 }),
            Word::new(
                0b1000,
                Operation::Context { digits: digits as u8, width: 8, global: Self::EVEN as u16 },
            ),
        ];
        let mut job = Self { stream: Stream { digits, width: 8, chips: 1, packets: Vec::new() } };
        job.send(Body::Context { address: 0 });
        job.send(Body::Context { address: Self::EVEN });
        job.send(Body::Weights { address: Self::EVEN, words: vec![[2, 0, 0, 0]] });
        job.send(Body::Inputs { address: 0, inputs: (0..5).collect() });
        job.run(&begin);
        job
    }

    fn send(&mut self, body: Body) {
        self.stream.packets.push(Packet { chips: 1, after: 0, body });
    }

    fn run(&mut self, words: &[Word]) {
        self.send(Body::Instructions(words.iter().map(|word| word.encode().unwrap()).collect()));
    }
}

/// Each of eight elements does something wrong; it says so, and the others finish.
#[test]
fn elements_that_fail_are_named_and_harm_no_others() {
    let Some(device) = open("rtl:phepu", CardSettings { watchdog: 3000, ..CardSettings::UNBOUND }) else {
        return;
    };
    let card: &Card = device.card();
    let modulus = Arc::new(BigModulus::odd(&[3 * 5 * 7]).unwrap());
    let context = Context::new(&modulus).unwrap();
    let bigmod = device.device().bigmod(&modulus).unwrap();
    // 2, 11, then a multiple of 7, then one and what is not a residue.
    let mut residues = bigmod.place(&Numbers::from_words(1, [&[2][..], &[11], &[14]])).unwrap();
    residues.append(&context.one()).unwrap();
    residues.append(&context.montgomery(&[105])).unwrap();

    let d = context.digits();
    let mut job = Job::new(d);
    let load = |slot, count, input: u16| Operation::LoadInput { slot, count, global: input * d as u16 };
    let product = Operation::Multiply { to: address::OUTPUT, x: 0, y: 1 };
    let inverse = Operation::Inverse { to: address::OUTPUT, x: 0 };
    let both = load(0, 2, 0);
    // What each element does, and the error that it makes.
    let mut elements: Vec<(Vec<Operation>, u8)> = vec![(vec![both, product], 0); 16];
    elements[2].1 = 7; // no modulus
    elements[3].1 = 1; // an even one
    elements[4] = (vec![load(0, 1, 4), product], 2); // not below the modulus
    elements[5] = (vec![load(0, 1, 2), inverse], 3); // no inverse
    elements[6] = (vec![load(15, 2, 0), product], 4); // past the input buffer
    elements[7] =
        (vec![both, Operation::Power { to: address::OUTPUT, x: 0, word: 287, bits: 300, steady: true }], 4);
    elements[8] = (vec![both], 6); // nothing comes out
    elements[9] = (vec![both, load(1, 1, 0), product], 6); // a slot that is never freed
    elements[10] = (vec![load(0, 1, 0), inverse], 0);
    for (element, (operations, _)) in elements.iter().enumerate() {
        let words: Vec<Word> = operations.iter().map(|o| Word::new(1 << element, *o)).collect();
        job.run(&words);
    }
    // An instruction that is none.
    elements[11].1 = 5;
    job.send(Body::Instructions(vec![5 << 60 | 1 << (44 + 11)]));
    for element in 0..16 {
        job.run(&[Word::new(1 << element, Operation::Store { slot: 0, tag: element })]);
    }
    job.run(&[Word::new(0, Operation::End)]);

    let run = card.run(&job.stream, &context, &residues).unwrap();
    let failures: Vec<_> = run.failures().iter().map(|f| (f.chip, f.element, f.code)).collect();
    let want: Vec<_> = elements
        .iter()
        .enumerate()
        .filter(|(_, (_, code))| *code != 0)
        .map(|(e, (_, code))| (0, Some(e), *code))
        .collect();
    assert_eq!(failures, want);
    let outputs = bigmod.read(&run.outputs).unwrap();
    for (element, (operations, code)) in elements.iter().enumerate() {
        assert_eq!(run.errors[element], *code, "{element}");
        let want = match code {
            0 if operations.contains(&inverse) => 53, // of 2
            0 => 22,
            _ => 0,
        };
        assert_eq!(outputs.get(element), [want], "{element}");
    }
    let error = run.whole().err().unwrap().to_string();
    for part in ["element 2 of chip 0 of rtl:phepu", "before the modulus", "error register 7"] {
        assert!(error.contains(part), "{error}");
    }

    // The chip is as good as new.
    let (square, _) = bigmod.square(&residues.select(0..2), 1).unwrap();
    assert_eq!(bigmod.read(&square).unwrap().as_words(), [4, 16]);
    // A packet past its buffer is the chip's error.
    let mut job = Job::new(d);
    job.send(Body::Inputs { address: card.build().input_words as u32, inputs: vec![0] });
    job.run(&[Word::new(0, Operation::End)]);
    let error = card.run(&job.stream, &context, &residues).unwrap().whole().err().unwrap().to_string();
    assert!(error.contains("chip 0") && error.contains("error register 8"), "{error}");
}

/// Streams that are not the residues' or the card's are refused before anything is sent.
#[test]
fn streams_that_do_not_fit_are_refused() {
    let Some(device) = open("rtl:phepu", CardSettings::UNBOUND) else { return };
    let modulus = modulus(100);
    let context = Context::new(&modulus).unwrap();
    let residues = context.one();
    type Change = fn(&mut Stream);
    let changes: [(&str, Change); 9] = [
        ("digits", |s| s.digits = 8),
        ("chips", |s| s.chips = 2),
        ("mask", |s| s.packets[0].chips = 2),
        ("mask", |s| s.packets[0].chips = 0),
        ("position", |s| {
            s.packets.push(Packet { chips: 1, after: 0, body: Body::Inputs { address: 0, inputs: vec![1] } })
        }),
        ("address", |s| {
            s.packets.push(Packet { chips: 1, after: 0, body: Body::Context { address: 1 << 24 } })
        }),
        ("ends", |s| s.packets.extend(s.packets.clone())),
        ("ends", |s| s.packets[0].body = Body::Context { address: 0 }),
        ("tag", |s| {
            let store = Word::new(1, Operation::Store { slot: 0, tag: 1 }).encode().unwrap();
            s.packets.insert(0, Packet { chips: 1, after: 0, body: Body::Instructions(vec![store]) });
        }),
    ];
    for (what, change) in changes {
        let end = vec![Word::new(0, Operation::End).encode().unwrap()];
        let packets = vec![Packet { chips: 1, after: 0, body: Body::Instructions(end) }];
        let mut stream = Stream { digits: 4, width: 8, chips: 1, packets };
        change(&mut stream);
        let error = device.card().run(&stream, &context, &residues).err().expect(what).to_string();
        assert!(error.contains(what), "{what}: {error}");
    }
}

#[test]
fn unknown_names_and_settings_are_refused_with_a_remedy() {
    let error = Phepu::open("rtl:phe").err().expect("refused").to_string();
    assert!(error.contains("rtl:phepu, rtl:phepu-card"), "{error}");
    for (settings, what) in [
        (CardSettings { watchdog: 0, ..CardSettings::UNBOUND }, "watchdog"),
        (CardSettings { link: 65_536, ..CardSettings::UNBOUND }, "link"),
    ] {
        let error = Phepu::with_settings("rtl:phepu", settings).err().expect("refused").to_string();
        assert!(error.contains(what) && error.contains("use "), "{error}");
    }
}

/// A convolution and what it is by definition.
struct Layer {
    task: Task,
    weights: Vec<i64>,
}

impl Layer {
    fn new() -> Self {
        let shape = Convolution::new([2, 5, 4], [3, 3, 3]).padded(1, 1).strided(2, 1);
        let task = Task::convolution(shape, 8).unwrap();
        let weights =
            (0..task.weights()).map(|i| if i % 5 == 1 { 0 } else { (i as i64 * 89 + 3) % 256 - 128 });
        Self { task, weights: weights.collect() }
    }

    fn run(&self, device: &Phepu, modulus: &Arc<BigModulus>, inputs: &Residues, dataflow: Dataflow) -> Run {
        let context = Context::new(modulus).unwrap();
        let machine = Machine::phepu(device.card().build().chips, 256 * context.digits()).unwrap();
        let programs = Programs::compile(Assignment::search(self.task, machine).unwrap()).unwrap();
        let stream = Stream::lower(&programs, &self.weights, None, dataflow).unwrap();
        device.card().run(&stream, &context, inputs).unwrap().whole().unwrap()
    }

    fn want(&self, modulus: &BigModulus, inputs: &Numbers, inverses: &Numbers) -> Vec<Vec<u64>> {
        let output = |output| {
            let (at, channel) = self.task.place_of(output);
            (0..self.task.terms()).fold(reference::one(modulus), |product, term| {
                let Some(input) = self.task.input_at(at, term) else { return product };
                let weight = self.weights[self.task.weight_at(channel, term)];
                let x = if weight < 0 { inverses } else { inputs }.get(input as usize);
                reference::multiply(
                    modulus,
                    &product,
                    &reference::power(modulus, x, &[weight.unsigned_abs()]),
                )
            })
        };
        (0..self.task.outputs()).map(output).collect()
    }
}

#[test]
fn a_convolution_is_what_its_definition_says() {
    let layer = Layer::new();
    for (name, settings, bits) in [
        ("rtl:phepu", CardSettings::UNBOUND, 1900),
        ("rtl:phepu", CardSettings::PAPER, 1000),
        ("rtl:phepu-card", CardSettings::PAPER, 1000),
    ] {
        let Some(device) = open(name, settings) else { continue };
        let modulus = modulus(bits);
        let bigmod = device.device().bigmod(&modulus).unwrap();
        let inputs = numbers(7, layer.task.inputs(), modulus.words());
        let x = bigmod.place(&inputs).unwrap();
        let inverse = bigmod.invert(&x).unwrap().0;
        let want = layer.want(&modulus, &inputs, &bigmod.read(&inverse).unwrap());
        let count = x.len();
        let mut pairs = x.clone();
        pairs.append(&inverse).unwrap();
        let pairs = pairs.select((0..count).flat_map(|i| [i, count + i]));
        for (dataflow, residues) in [(Dataflow::BitSerial, &x), (Dataflow::Buckets, &pairs)] {
            let run = layer.run(&device, &modulus, residues, dataflow);
            let got = bigmod.read(&run.outputs).unwrap();
            assert_eq!(got.len(), want.len());
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                assert!(got == want, "output {i}, {dataflow:?}, {name}");
            }
            // Each chip of the card has said what it did.
            assert!(run.chips.iter().all(|chip| chip.instructions > 0 && chip.clocks <= run.card.clocks));
            assert!(run.multiplications() > 0);
        }
    }
}

/// What only a negative weight's residue needs is asked of it, and the one that has no inverse is named.
#[test]
fn multi_exponentiations_name_what_has_no_inverse() {
    let Some(device) = open("rtl:phepu", CardSettings::UNBOUND) else { return };
    let bigmod: Arc<dyn Bigmod> = device.device().bigmod(&BigModulus::odd(&[3 * 5 * 7]).unwrap()).unwrap();
    let x = bigmod.place(&Numbers::from_words(1, [&[2][..], &[11], &[14], &[4]])).unwrap();
    for method in [Method::Auto, Method::Buckets] {
        let multi_exp = |weights: &[i64]| MultiExp { method, ..MultiExp::matrix(4, weights.to_vec()) };
        // 14 has none; it may be weighed by what is positive, however large.
        let (got, _) = bigmod.multi_exp(&x, &multi_exp(&[0, -1, 200, 0])).unwrap();
        let inverse_of_11 = 86;
        let power = reference::power(&BigModulus::odd(&[105]).unwrap(), &[14], &[200])[0];
        assert_eq!(bigmod.read(&got).unwrap().as_words(), [inverse_of_11 * power % 105]);
        let error = bigmod.multi_exp(&x, &multi_exp(&[1, -1, 3, 0, 5, 0, -300, 1])).err();
        assert_eq!(error, Some(Error::NotInvertible { position: 2, count: 4 }));
    }
}
