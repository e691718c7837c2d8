//! How fast two parties are over loopback, a thread a side, and the processor's time that each takes for an AND:
//! `cargo run --release --example session_rates -- NAME ROUNDS REPEAT [plain|tls|raw] [THREADS]`.
//!
//! `raw` goes past the transport, through a bare socket. Linux alone, which says what a thread has taken.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use blindcore_accel_cpu::Cpu;
use blindcore_circuit::circuit::Circuit;
use blindcore_circuit::problems;
use blindcore_circuit::session::{self, Check, Inputs, Learns, Setup};
use blindcore_circuit::transport::{self, Security, Timeouts, Tls};

/// Whatever both sides speak through.
trait Channel: Read + Write + Send {}
impl<C: Read + Write + Send> Channel for C {}

/// Without the transport.
fn bare(stream: TcpStream) -> Box<dyn Channel> {
    stream.set_nodelay(true).expect("a socket");
    Box::new(stream)
}

/// What this thread has taken of a processor.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number") / 1e9
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, rounds, repeat, tls) = (
        &args[0],
        args[1].parse::<u64>()?,
        args[2].parse::<usize>()?,
        args.get(3).is_some_and(|a| a == "tls"),
    );
    let raw = args.get(3).is_some_and(|a| a == "raw");
    let device = Cpu::with_threads("cpu", args.get(4).map_or(Ok(1), |n| n.parse())?)?;
    let circuit = Circuit::new(&problems::make(name)?).in_rounds(rounds)?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    for who in ["garbler", "evaluator"] {
        let (certificate, key) = transport::new_identity(who)?;
        std::fs::write(folder.join(format!("{who}.crt")), certificate)?;
        std::fs::write(folder.join(format!("{who}.key")), key.as_bytes())?;
    }
    let security = |name: &str, other: &str| -> Result<Security, transport::TransportError> {
        if !tls {
            return Ok(Security::Loopback);
        }
        let file = |who: &str, end: &str| folder.join(format!("{who}.{end}"));
        let tls = Tls::load(&file(name, "crt"), &file(name, "key"), &file(other, "crt"))?;
        Ok(Security::Tls { tls, peer_name: other.into() })
    };
    let timeouts = Timeouts { wait: Duration::from_secs(30), ..Timeouts::default() };
    let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check: Check::None };
    let input = |i: usize| Inputs::new().with(i, vec![true; circuit.inputs()[i].width]);
    let theirs = (1..circuit.inputs().len())
        .fold(Inputs::new(), |all, i| all.with(i, vec![true; circuit.inputs()[i].width]));
    for _ in 0..repeat {
        let listener = transport::listen("127.0.0.1:0", &security("garbler", "evaluator")?, timeouts)?;
        let socket = TcpListener::bind("127.0.0.1:0")?;
        let address = if raw { socket.local_addr()? } else { listener.address()? }.to_string();
        let (wall, garbler, evaluator) = std::thread::scope(|scope| {
            let other = std::thread::Builder::new().name("garbler".into()).spawn_scoped(scope, || {
                let mut channel: Box<dyn Channel> = match raw {
                    true => bare(socket.accept().expect("accepts").0),
                    false => Box::new(listener.accept(|_| {}).expect("accepts")),
                };
                let start = cpu_seconds();
                session::garble(&mut channel, setup, &input(0), &mut ()).expect("garbles");
                cpu_seconds() - start
            })?;
            let evaluator =
                std::thread::Builder::new().name("evaluator".into()).spawn_scoped(scope, || {
                    let security = security("evaluator", "garbler").expect("files");
                    let mut channel: Box<dyn Channel> = match raw {
                        true => bare(TcpStream::connect(&address).expect("connects")),
                        false => {
                            Box::new(transport::connect(&address, &security, timeouts).expect("connects"))
                        }
                    };
                    let (wall, cpu) = (Instant::now(), cpu_seconds());
                    session::evaluate(&mut channel, setup, &theirs, &mut ()).expect("evaluates");
                    (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu)
                })?;
            let (wall, evaluator) = evaluator.join().expect("no panic");
            Ok::<_, io::Error>((wall, other.join().expect("no panic"), evaluator))
        })?;
        let ands = circuit.ands() as f64;
        writeln!(
            io::stdout(),
            "{:6.2} M ANDs/s; ns of CPU an AND: garbler {:5.2}, evaluator {:5.2}",
            ands / wall / 1e6,
            garbler / ands * 1e9,
            evaluator / ands * 1e9,
        )?;
    }
    Ok(())
}
