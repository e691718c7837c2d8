//! Whether garbling, evaluating and transferring take the same time whatever the secrets are: Welch's t-test on two
//! classes of inputs, after Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?" (2016).
//!
//! ```sh
//! cargo run --release -p blindcore-circuit --example garbling_time [DEVICE] [SECONDS]
//! ```
//!
//! Prints a line a test with its largest |t| over crops of the slowest samples, and exits with 1 if one is over 10.
//! The tool of that paper takes a value over 10 for a definite leak, and a value below 4.5 for no evidence of one.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use blindcore_accel::garble::{Evaluate, Garble, GarblingScheme, Label, Labels, Offset, Program};
use blindcore_accel_cpu::Cpu;
use blindcore_circuit::builder::Builder;
use blindcore_circuit::circuit::Circuit;
use blindcore_circuit::ot::extension::{Parameters, Receiver, Sender};
use blindcore_circuit::ot::{base, proxy};

/// Inputs of a class that are made beforehand, so that making them is not measured.
const PREPARED: usize = 16;
const LIMIT: f64 = 10.0;
const TRANSFERS: usize = 4096;
/// Transfers by public keys, which take longer.
const FEW: usize = 4;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let mut arguments = std::env::args().skip(1);
    let device = Cpu::with_threads(&arguments.next().unwrap_or_else(|| "cpu".into()), 1)?;
    let seconds = arguments.next().map_or(Ok(5), |s| s.parse())?;
    let time = Duration::from_secs(seconds);
    println!("{}: two classes of inputs, {seconds} s a test; |t| over {LIMIT} is a leak", device.name());
    let mut worst: f64 = 0.0;
    let mut report = |what: &str, (t, samples): (f64, usize)| {
        worst = worst.max(t.abs());
        println!("{what:66} |t| = {:5.2}  {samples} samples", t.abs());
    };

    let mut aes = Builder::new();
    let (key, block) = (aes.input("key", 128), aes.input("block", 128));
    let cipher = aes.aes128(&key, &block);
    aes.output("cipher", &cipher);
    let circuit = Circuit::new(&aes.finish()?);
    let key = random::<16>()?;
    for scheme in [GarblingScheme::HalfGates { key }, GarblingScheme::ThreeHalves { key }] {
        let name = if let GarblingScheme::HalfGates { .. } = scheme { "half gates" } else { "three halves" };
        let (garble, evaluate) = (device.garble(&scheme)?, device.evaluate(&scheme)?);
        let mut aes = Garbling::new(&circuit, &*garble, &*evaluate)?;
        let zero = || Ok(Secret { offset: Offset::new(0), zeros: vec![0; 256] });
        let classes = [prepared(zero)?, prepared(Secret::random)?];
        let what = format!("garbling by {name}, offset and labels almost zero or random");
        report(&what, compare(time, &classes, |secret| aes.garble(secret))?);

        let secret = Secret::random()?;
        aes.garble(&secret)?;
        let active = |bits: Vec<bool>| {
            let offset = secret.offset.label();
            secret
                .zeros
                .iter()
                .zip(bits)
                .map(|(zero, bit)| zero ^ (Label::from(bit).wrapping_neg() & offset))
                .collect()
        };
        let classes: [Vec<Vec<Label>>; 2] =
            [prepared(|| Ok(active(vec![false; 256])))?, prepared(|| Ok(active(bits(256)?)))?];
        let what = format!("evaluating by {name}, values of zero or random");
        report(&what, compare(time, &classes, |active| aes.evaluate(active))?);
    }

    let (_, mut receiver) = transfers(1)?;
    let classes = [prepared(|| Ok(vec![false; TRANSFERS]))?, prepared(|| bits(TRANSFERS))?];
    let mut labels = vec![0; TRANSFERS];
    let extend = |choices: &Vec<bool>| timed(|| receiver.extend(&mut Nothing, choices, &mut labels));
    report("transfers, choices of zero or random", compare(time, &classes, extend)?);

    // A sender is large, and where it lies changes its time more than anything: a new one for each sample.
    let classes = [prepared(|| Ok(1))?, prepared(|| Ok(Label::from_le_bytes(random()?) | 1))?];
    let extend = |delta: &Label| {
        let (mut sender, _) = transfers(*delta)?;
        let mut best = Duration::MAX;
        for _ in 0..32 {
            best = best.min(timed(|| sender.extend(&mut Nothing, &mut labels))?);
        }
        Ok(best)
    };
    report("transfers, an offset of one or random", compare(time, &classes, extend)?);

    // What a sender of base transfers says first; then it finds nobody.
    let mut said = Said(Vec::new());
    assert!(base::send(&mut said, &[7; 32], FEW).is_err(), "nobody answers");
    let choices = |bits: Vec<bool>| bits.into_iter().map(|bit| u8::from(bit).into()).collect::<Vec<_>>();
    let classes = [prepared(|| Ok(choices(vec![false; FEW])))?, prepared(|| Ok(choices(bits(FEW)?)))?];
    let receive = |choices: &Vec<_>| {
        let mut channel = Answer(&said.0);
        timed(|| base::receive(&mut channel, &[7; 32], choices))
    };
    report("base transfers, choices of zero or random", compare(time, &classes, receive)?);

    let publication = proxy::Sender::new()?.publish();
    let classes = [prepared(|| Ok(vec![false; FEW]))?, prepared(|| bits(FEW))?];
    let choose = |bits: &Vec<bool>| timed(|| proxy::choose(&publication, bits));
    report("proxy transfers, choices of zero or random", compare(time, &classes, choose)?);

    let leak = worst > LIMIT;
    println!("{}", if leak { "a leak" } else { "no leak found" });
    Ok(if leak { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A garbler's secrets.
struct Secret {
    offset: Offset,
    /// The inputs' labels of 0.
    zeros: Vec<Label>,
}

impl Secret {
    fn random() -> Result<Self, Failure> {
        let zeros = (0..256).map(|_| Ok(Label::from_le_bytes(random()?))).collect::<Result<_, Failure>>()?;
        Ok(Self { offset: Offset::new(Label::from_le_bytes(random()?)), zeros })
    }
}

/// A circuit and the room to garble it in.
struct Garbling<'a> {
    circuit: &'a Circuit,
    garble: &'a dyn Garble,
    evaluate: &'a dyn Evaluate,
    programs: Vec<Arc<Program>>,
    labels: Labels,
    tables: Vec<Vec<u8>>,
}

impl<'a> Garbling<'a> {
    fn new(
        circuit: &'a Circuit,
        garble: &'a dyn Garble,
        evaluate: &'a dyn Evaluate,
    ) -> Result<Self, Failure> {
        let programs = circuit.programs().collect::<Result<Vec<_>, _>>()?;
        let row = garble.scheme().table_bytes();
        let tables = programs.iter().map(|program| vec![0; row * program.ands()]).collect();
        Ok(Self { circuit, garble, evaluate, programs, labels: Labels::new(circuit.slots(), 1), tables })
    }

    fn place(&mut self, one: Label, labels: &[Label]) {
        self.labels.set(1, 0, one);
        let slots = (0..self.circuit.inputs().len()).flat_map(|input| self.circuit.input_slots(input));
        for (slot, label) in slots.zip(labels) {
            self.labels.set(slot, 0, *label);
        }
    }

    fn garble(&mut self, secret: &Secret) -> Result<Duration, Failure> {
        self.place(secret.offset.label(), &secret.zeros);
        let Self { garble, programs, labels, tables, .. } = self;
        let start = Instant::now();
        let mut gate = 0;
        for (program, tables) in programs.iter().zip(tables) {
            gate += garble.garble(program, &secret.offset, gate, labels, tables)?.and_gates;
        }
        Ok(start.elapsed())
    }

    fn evaluate(&mut self, active: &[Label]) -> Result<Duration, Failure> {
        self.place(0, active);
        let Self { evaluate, programs, labels, tables, .. } = self;
        let start = Instant::now();
        let mut gate = 0;
        for (program, tables) in programs.iter().zip(tables) {
            gate += evaluate.evaluate(program, gate, labels, tables)?.and_gates;
        }
        Ok(start.elapsed())
    }
}

/// Both sides of transfers that are set up.
fn transfers(delta: Label) -> Result<(Sender, Receiver), Failure> {
    let (mut left, mut right) = UnixStream::pair()?;
    let sender = thread::spawn(move || Sender::setup(&mut left, delta, Parameters::default()));
    let receiver = Receiver::setup(&mut right, Parameters::default())?;
    Ok((sender.join().expect("the sender ends")?, receiver))
}

/// A peer that says zeros and doesn't listen.
struct Nothing;

impl Read for Nothing {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        out.fill(0);
        Ok(out.len())
    }
}

impl Write for Nothing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(black_box(bytes).len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What was said to nobody.
struct Said(Vec<u8>);

impl Read for Said {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A peer that says this and doesn't listen.
struct Answer<'a>(&'a [u8]);

impl Read for Answer<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl Write for Answer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(black_box(bytes).len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

fn bits(count: usize) -> Result<Vec<bool>, Failure> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.into_iter().map(|byte| byte & 1 == 1).collect())
}

fn prepared<T>(make: impl Fn() -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
    (0..PREPARED).map(|_| make()).collect()
}

/// How long it takes; what comes of it is dropped afterwards.
fn timed<T, E: Into<Failure>>(work: impl FnOnce() -> Result<T, E>) -> Result<Duration, Failure> {
    let start = Instant::now();
    let done = black_box(work());
    let time = start.elapsed();
    done.map(|_| time).map_err(Into::into)
}

/// The largest t of the two classes' times.
fn compare<T>(
    time: Duration,
    classes: &[Vec<T>; 2],
    sample: impl FnMut(&T) -> Result<Duration, Failure>,
) -> Result<(f64, usize), Failure> {
    blindcore_testing::welch(time, classes, random, sample)
}
