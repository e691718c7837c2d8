//! Garbled circuits: garbling, evaluation, transfers and whole sessions, beside AES alone.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use blindcore_accel::Device;
use blindcore_accel::garble::{GarblingScheme, Labels, Offset, room};
use blindcore_accel_cpu::{Cpu, measure};
use blindcore_circuit::circuit::Circuit;
use blindcore_circuit::compile::Compiled;
use blindcore_circuit::ot::base;
use blindcore_circuit::ot::extension::{Parameters, Receiver, Sender};
use blindcore_circuit::problems;
use blindcore_circuit::session::{self, Check, Inputs, Learns, Setup};
use blindcore_circuit::transport::{self, Connection, Security, Timeouts, Tls};
use blindcore_units::{Progress, Unit};
use serde_json::json;

use crate::{Report, Row, Samples, peers};

/// Problems, their instances side by side, and the ids of garbling and evaluation.
const PROBLEMS: [(&str, usize, &str, &str); 6] = [
    ("aes128", 1000, "circuit.garble.aes128x1000.1t", "circuit.evaluate.aes128x1000.1t"),
    ("matmul20x20x4", 1, "circuit.garble.matmul20x20x4.1t", "circuit.evaluate.matmul20x20x4.1t"),
    ("aes128", 1, "circuit.garble.aes128.1t", "circuit.evaluate.aes128.1t"),
    ("sha256", 1, "circuit.garble.sha256.1t", "circuit.evaluate.sha256.1t"),
    ("mult64", 1, "circuit.garble.mult64.1t", "circuit.evaluate.mult64.1t"),
    ("divide64", 1000, "circuit.garble.divide64x1000.1t", "circuit.evaluate.divide64x1000.1t"),
];
/// What sessions are measured with: five million ANDs.
const SESSION: &str = "matmul20x20x32";
/// How often AES is chained in a session: 25 million ANDs.
const AES_ROUNDS: u64 = 4000;
/// What is built.
const BUILT: &str = "matmul10x10x32";
/// Transfers of a measurement.
const TRANSFERS: usize = 1 << 22;
/// Gates of the streamed computation.
const STREAMED: u64 = 1_000_000_000;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Times that each figure is measured, 1 to 1000.
    pub repeat: usize,
    /// The CPU device, such as `cpu:avx2`; one thread a party is measured.
    pub device: String,
    /// A program that prints [`stream_alone`]'s document when it is called with `bench circuit --stream-alone --device
    /// NAME`: a process of its own, whose memory is measured.
    pub program: PathBuf,
    /// Folder of programs that measure peers and print rows of the same ids, in millions per second.
    pub peers: Option<PathBuf>,
}

/// Measures rows `circuit.*`.
///
/// # Errors
/// An option is out of its range, or the device, a socket or the program fails.
pub fn run(args: &Options, progress: &mut dyn Progress) -> anyhow::Result<Report> {
    anyhow::ensure!((1..=1000).contains(&args.repeat), "--repeat is {}, outside 1 to 1000", args.repeat);
    let cpu = Cpu::with_threads(&args.device, 1)?;
    let mut bench = Bench { repeat: args.repeat, progress, rows: Vec::new(), notes: Vec::new(), aes: 1.0 };
    bench.aes()?;
    for (name, instances, garble, evaluate) in PROBLEMS {
        bench.problem(&cpu, name, instances, garble, evaluate)?;
    }
    bench.transfers()?;
    bench.loopback()?;
    bench.sessions(&cpu)?;
    bench.building()?;
    bench.streaming(args)?;
    let Bench { mut rows, notes, progress, .. } = bench;
    peers::beside(&mut rows, &peers::all(args.peers.as_deref(), progress)?);
    let settings = json!({
        "device": cpu.name(), "repeat": args.repeat, "scheme": "half gates, TMMO", "session": SESSION,
        "transfers": TRANSFERS, "streamed_gates": STREAMED,
    });
    Ok(Report { rows, settings, notes })
}

struct Bench<'a> {
    repeat: usize,
    progress: &'a mut dyn Progress,
    rows: Vec<Row>,
    notes: Vec<String>,
    /// Blocks per second of AES alone.
    aes: f64,
}

impl Bench<'_> {
    fn repeated(
        &mut self,
        label: &str,
        mut work: impl FnMut(&mut Samples) -> anyhow::Result<()>,
    ) -> anyhow::Result<Samples> {
        let mut samples = Samples::default();
        work(&mut Samples::default())?;
        for i in 0..self.repeat {
            self.progress.at(label, i as u64, Some(self.repeat as u64), Unit::Items);
            work(&mut samples)?;
        }
        Ok(samples)
    }

    fn row(
        &mut self,
        id: &'static str,
        what: &'static str,
        unit: &'static str,
        threads: usize,
        value: Samples,
        of: &'static str,
        of_value: f64,
    ) {
        self.rows.push(Row::new(id, what, unit, threads, value, of, of_value));
    }

    /// AES of blocks in registers, and one block after the other.
    fn aes(&mut self) -> anyhow::Result<()> {
        const BLOCKS: usize = 20_000_000;
        if measure::aes_blocks(1).is_none() {
            let note = "this processor has no AES instructions; there is no limit to measure against";
            self.notes.push(note.into());
            self.aes = f64::NAN;
            return Ok(());
        }
        let samples = self.repeated("aes", |samples| {
            let (blocks, all) = samples.time(|| measure::aes_blocks(BLOCKS)).context("asked before")?;
            anyhow::ensure!(all != 1 && blocks >= BLOCKS, "the cipher did nothing");
            Ok(())
        })?;
        let rate = samples.map(|seconds| BLOCKS as f64 / seconds);
        self.aes = rate.median();
        let value = rate.map(|blocks| blocks / 1e9);
        let limit = value.median();
        self.row(
            "circuit.aes.1t",
            "AES-128 under one key, blocks in registers: the limit of what follows",
            "G blocks/s",
            1,
            value,
            "itself",
            limit,
        );
        Ok(())
    }

    fn problem(
        &mut self,
        cpu: &Device,
        name: &str,
        instances: usize,
        garble: &'static str,
        evaluate: &'static str,
    ) -> anyhow::Result<()> {
        let compiled = Compiled::new(&problems::make(name)?);
        let program = &compiled.program;
        let scheme = GarblingScheme::HalfGates { key: [0x2a; 16] };
        let (garbler, evaluator) = (cpu.garble(&scheme)?, cpu.evaluate(&scheme)?);
        let offset = Offset::new(0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0);
        let gates = program.ands() * instances;
        let mut labels = Labels::new(program.slots(), instances);
        let mut active = Labels::new(program.slots(), instances);
        for bit in 0..compiled.input_bits as u32 {
            let label = u128::from(bit + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
            labels.set_all(2 + bit, label);
            active.set_all(2 + bit, label);
        }
        labels.set_all(1, offset.label());
        let mut tables = Vec::new();
        let tables = room(&mut tables, gates * scheme.table_bytes());
        // Short programs are run several times a sample, so that a sample is longer than the clock's steps.
        let times = (1 << 20 >> gates.max(1).ilog2()).max(1);
        let work = gates as f64 * f64::from(times) / 1e6;
        let garbled = self.repeated(garble, |samples| {
            samples.time(|| {
                (0..times)
                    .try_for_each(|_| garbler.garble(program, &offset, 0, &mut labels, tables).map(|_| ()))
            })?;
            Ok(())
        })?;
        let evaluated = self.repeated(evaluate, |samples| {
            samples.time(|| {
                (0..times).try_for_each(|_| evaluator.evaluate(program, 0, &mut active, tables).map(|_| ()))
            })?;
            Ok(())
        })?;
        let of = "AES alone";
        let aes = self.aes / 1e6;
        self.row(
            garble,
            "garbling by half gates; eight AES a gate",
            "M ANDs/s",
            1,
            garbled.map(|s| work / s),
            of,
            aes / 8.0,
        );
        self.row(
            evaluate,
            "evaluating the same; four AES a gate",
            "M ANDs/s",
            1,
            evaluated.map(|s| work / s),
            of,
            aes / 4.0,
        );
        if name == "matmul20x20x4" {
            // The paper's 340.698 ms is for its circuit of 254,400 ANDs; this one is for ours.
            let value = garbled.map(|s| s * 1000.0 / f64::from(times));
            self.row(
                "circuit.garble.largest.ms",
                "SIFO's largest problem, garbled",
                "ms",
                1,
                value,
                "SIFO's FPGA",
                340.698,
            );
        }
        Ok(())
    }

    /// Oblivious transfer over a socket, a thread a side.
    fn transfers(&mut self) -> anyhow::Result<()> {
        let pair = || -> anyhow::Result<(UnixStream, UnixStream)> { Ok(UnixStream::pair()?) };
        let based = self.repeated("base transfers", |samples| {
            let (mut left, mut right) = pair()?;
            let session = [7; 32];
            std::thread::scope(|scope| {
                let other = scope.spawn(move || base::send(&mut left, &session, 128).map(|_| ()));
                let choices = vec![1u8.into(); 128];
                samples.time(|| base::receive(&mut right, &session, &choices).map(|_| ()))?;
                other.join().expect("no panic")
            })?;
            Ok(())
        })?;
        self.row(
            "circuit.ot.base",
            "128 base transfers on Curve25519, both sides at once",
            "ms",
            1,
            based.map(|s| s * 1000.0),
            "128 base transfers of peers, at best",
            15.0,
        );
        for (check, id, what) in [
            (
                Check::None,
                "circuit.ot.extend",
                "correlated transfers over a socket, a thread a side, trees of depth 4",
            ),
            (Check::Malicious, "circuit.ot.extend.checked", "the same with the check of the receiver"),
        ] {
            let parameters = Parameters { depth: 4, check };
            let (mut left, mut right) = pair()?;
            let (mut sender, mut receiver) = std::thread::scope(|scope| {
                let sender = scope.spawn(|| Sender::setup(&mut left, 0x1234_5679, parameters));
                let receiver = Receiver::setup(&mut right, parameters)?;
                Ok::<_, blindcore_circuit::ot::OtError>((sender.join().expect("no panic")?, receiver))
            })?;
            let choices = vec![true; TRANSFERS];
            let (mut zeros, mut labels) = (vec![0; TRANSFERS], vec![0; TRANSFERS]);
            let extended = self.repeated(id, |samples| {
                std::thread::scope(|scope| {
                    let other = scope.spawn(|| receiver.extend(&mut right, &choices, &mut labels));
                    samples.time(|| sender.extend(&mut left, &mut zeros))?;
                    other.join().expect("no panic")
                })?;
                Ok(())
            })?;
            self.row(
                id,
                what,
                "M/s",
                1,
                extended.map(|s| TRANSFERS as f64 / s / 1e6),
                "IKNP of emp-ot, at best",
                38.0,
            );
        }
        Ok(())
    }

    /// Bytes through loopback in pieces as large as a session's, a thread a side: what no session over it can do without.
    fn loopback(&mut self) -> anyhow::Result<()> {
        const PIECE: usize = 1 << 18;
        const PIECES: usize = 2000;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut left = TcpStream::connect(listener.local_addr()?)?;
        let (mut right, _) = listener.accept()?;
        left.set_nodelay(true)?;
        let (sent, mut received) = (vec![0x5a_u8; PIECE], vec![0_u8; PIECE]);
        let moved = self.repeated("loopback", |samples| {
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| (0..PIECES).try_for_each(|_| left.write_all(&sent)));
                samples.time(|| (0..PIECES).try_for_each(|_| right.read_exact(&mut received)))?;
                writer.join().expect("no panic")
            })?;
            Ok(())
        })?;
        let rate = moved.map(|s| (PIECE * PIECES) as f64 / s / 1e9);
        let limit = rate.median();
        let what = "bytes through loopback alone, in pieces as large as a session's";
        self.row("circuit.loopback", what, "GB/s", 1, rate, "itself", limit);
        Ok(())
    }

    /// M ANDs/s of a garbler that garbles as in the row of this id, and moves its tables through loopback by the same core.
    fn limit(&self, garbling: &str) -> f64 {
        let figure =
            |id: &str| self.rows.iter().find(|row| row.id == id).map_or(f64::NAN, |row| row.value.median());
        let bytes = GarblingScheme::HalfGates { key: [0; 16] }.table_bytes() as f64;
        1.0 / (1.0 / figure(garbling) + bytes / (1000.0 * figure("circuit.loopback")))
    }

    /// Both parties over loopback, a core each.
    fn sessions(&mut self, cpu: &Device) -> anyhow::Result<()> {
        let product = Circuit::new(&problems::make(SESSION)?);
        let aes = Circuit::new(&problems::make("aes128")?);
        // With the row of garbling it alone.
        let product = (&product, "circuit.garble.matmul20x20x4.1t");
        let aes = (&aes, "circuit.garble.aes128.1t");
        let folder = tempfile::tempdir()?;
        for ((once, alone), rounds, tls, id, what) in [
            (
                aes,
                AES_ROUNDS,
                false,
                "circuit.e2e.aes128x4000",
                "both parties over loopback with transfers, AES-128 chained 4,000 times",
            ),
            (aes, AES_ROUNDS, true, "circuit.e2e.aes128x4000.tls", "the same through TLS 1.3"),
            (
                product,
                1,
                false,
                "circuit.e2e.matmul20x20x32",
                "both parties over loopback with transfers, a core each",
            ),
            (product, 1, true, "circuit.e2e.matmul20x20x32.tls", "the same through TLS 1.3"),
            (
                product,
                16,
                false,
                "circuit.e2e.matmul20x20x32x16",
                "both parties over loopback, sixteen times as large",
            ),
            (product, 16, true, "circuit.e2e.matmul20x20x32x16.tls", "the same through TLS 1.3"),
        ] {
            let circuit = once.clone().in_rounds(rounds)?;
            let security = |name: &str| -> anyhow::Result<Security> {
                if !tls {
                    return Ok(Security::Loopback);
                }
                for who in ["garbler", "evaluator"] {
                    let crt = folder.path().join(format!("{who}.crt"));
                    if !crt.exists() {
                        let (certificate, key) = transport::new_identity(who)?;
                        std::fs::write(&crt, certificate)?;
                        std::fs::write(crt.with_extension("key"), key.as_bytes())?;
                    }
                }
                let other = if name == "garbler" { "evaluator" } else { "garbler" };
                let own = folder.path().join(format!("{name}.crt"));
                let trust = folder.path().join(format!("{other}.crt"));
                let tls = Tls::load(&own, &own.with_extension("key"), &trust)?;
                Ok(Security::Tls { tls, peer_name: other.into() })
            };
            let mut first = Samples::default();
            let samples = self.repeated(id, |samples| {
                let outcome = both(cpu, &circuit, &security)?;
                samples.0.push(outcome.time.as_secs_f64());
                first.0.push(outcome.first_table.as_secs_f64());
                Ok(())
            })?;
            let ands = circuit.ands() as f64 / 1e6;
            let of_value = self.limit(alone);
            let of = "garbling, then 32 bytes an AND through loopback, by one core";
            self.row(id, what, "M ANDs/s", 1, samples.map(|s| ands / s), of, of_value);
            if !tls && rounds == 1 {
                self.row(
                    "circuit.e2e.first_table",
                    "from the hello to the first tables, base transfers included",
                    "ms",
                    1,
                    first.map(|s| s * 1000.0),
                    "the limit that was set",
                    50.0,
                );
            }
        }
        Ok(())
    }

    fn building(&mut self) -> anyhow::Result<()> {
        let mut ands = 0;
        let samples = self.repeated("building", |samples| {
            ands = samples.time(|| problems::make(BUILT))?.ands();
            Ok(())
        })?;
        self.row(
            "circuit.build.mat10x32",
            "building a product of 10 x 10 matrices of 32-bit numbers",
            "s",
            1,
            samples,
            "garble-lang's, read",
            6.7,
        );
        let count = Samples(vec![ands as f64 / 1e6]);
        self.row(
            "circuit.build.mat10x32.ands",
            "its AND gates",
            "M ANDs",
            1,
            count,
            "garble-lang's, read",
            1.94,
        );
        Ok(())
    }

    /// A thousand million gates in a process of its own, whose memory is what is measured.
    fn streaming(&mut self, args: &Options) -> anyhow::Result<()> {
        self.progress.at("10^9 gates", 0, None, Unit::Items);
        let output = Command::new(&args.program)
            .args(["bench", "circuit", "--stream-alone", "--device", &args.device])
            .output()
            .with_context(|| format!("{} can't be started", args.program.display()))?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let figure = |name: &str| document[name].as_f64().with_context(|| format!("no {name}"));
        let rss = Samples(vec![figure("peak_mib")?]);
        let what = "10^9 gates streamed between two parties in one process: most memory of both";
        self.row("circuit.stream.rss", what, "MiB", 1, rss, "the limit that was set", 512.0);
        let rate = Samples(vec![figure("gates_per_second")? / 1e6]);
        let garbling = self.rows.iter().find(|r| r.id == "circuit.garble.sha256.1t");
        let of =
            garbling.map_or(f64::NAN, |r| r.value.median() * figure("gates_per_and").unwrap_or(f64::NAN));
        self.row("circuit.stream.rate", "their gates per second", "M gates/s", 1, rate, "garbling alone", of);
        Ok(())
    }
}

/// A session over loopback; the evaluator's outcome.
fn both(
    cpu: &Device,
    circuit: &Circuit,
    security: &dyn Fn(&str) -> anyhow::Result<Security>,
) -> anyhow::Result<session::Outcome> {
    let timeouts = Timeouts { wait: Duration::from_secs(30), ..Timeouts::default() };
    let listener = transport::listen("127.0.0.1:0", &security("garbler")?, timeouts)?;
    let address = listener.address()?.to_string();
    let evaluator = security("evaluator")?;
    let setup = Setup { circuit, device: cpu, learns: Learns::Both, check: Check::None };
    let zeros = |input: usize| Inputs::new().with(input, vec![true; circuit.inputs()[input].width]);
    // The second input and those after it are the evaluator's.
    let theirs = (1..circuit.inputs().len())
        .fold(Inputs::new(), |all, i| all.with(i, vec![true; circuit.inputs()[i].width]));
    std::thread::scope(|scope| {
        let garbler = scope.spawn(|| -> anyhow::Result<session::Outcome> {
            let mut channel: Connection = listener.accept(|_| {})?;
            Ok(session::garble(&mut channel, setup, &zeros(0), &mut ())?)
        });
        let mut channel = transport::connect(&address, &evaluator, timeouts)?;
        let outcome = session::evaluate(&mut channel, setup, &theirs, &mut ())?;
        let garbled = garbler.join().expect("no panic")?;
        anyhow::ensure!(garbled.outputs == outcome.outputs, "the parties learned different outputs");
        Ok(outcome)
    })
}

/// The streamed computation alone: SHA-256's compression, round after round, and the most memory that this process
/// had meanwhile.
///
/// # Errors
/// The device or a socket fails, or this is not Linux, which says how much memory was used.
pub fn stream_alone(device: &str) -> anyhow::Result<serde_json::Value> {
    let cpu = Cpu::with_threads(device, 1)?;
    let netlist = problems::make("sha256")?;
    let per_round = netlist.gates().len() as u64;
    let per_and = per_round as f64 / netlist.ands() as f64;
    let circuit = Circuit::of(netlist).in_rounds(STREAMED.div_ceil(per_round))?;
    let outcome = both(&cpu, &circuit, &|_| Ok(Security::Loopback))?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok())
        .context("the system does not say how much memory was used")?;
    Ok(json!({
        "gates": outcome.ands + outcome.xors,
        "ands": outcome.ands,
        "seconds": outcome.time.as_secs_f64(),
        "gates_per_second": (outcome.ands + outcome.xors) as f64 / outcome.time.as_secs_f64(),
        "gates_per_and": per_and,
        "peak_mib": peak / 1024.0,
    }))
}
