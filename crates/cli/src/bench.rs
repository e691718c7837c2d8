//! `blindcore bench`: measures this machine and prints the rows.

use std::path::PathBuf;

use blindcore_bench::{Report, circuit, lookup, serve, sum};
use clap::Subcommand;

use crate::Outcome;
use crate::output::{self, Bar};

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Private lookup: scan, gathered queries, preprocessing and client, beside the machine's limit
    #[command(after_help = "\
Examples:
  blindcore bench lookup                         a table to read
  blindcore bench lookup --json > result.json    the same rows for programs
  blindcore bench lookup --disk /srv/databases   a database streamed from that disk too, beside fio if it is installed

Each row is measured n times, turn about with what it is compared to, and the medians are shown: `value`
of `of_value` is `ratio`. Needs memory for twice the database.")]
    Lookup(BenchLookup),
    /// Encrypted sums: modular arithmetic, encryption, decryption, dot products, beside their limit and their peers
    #[command(after_help = "\
Examples:
  blindcore bench sum                            a table to read
  blindcore bench sum --peers target/peers       beside GMP and python-paillier, which `make peers` builds
  blindcore bench sum --json > result.json       the same rows for programs

Each row is measured n times and the medians are shown. The limit of multiplications is the rate at which this core
multiplies digits when it does nothing else; of everything else it is the multiplications that it takes.")]
    Sum(BenchSum),
    /// A lookup server under attack: how long honest clients wait beside their share, and how much memory it takes
    Serve(BenchServe),
    /// Measure garbled circuits, one core a party: garbling, evaluation, transfers, whole sessions
    #[command(after_help = "\
Examples:
  blindcore bench circuit --json
  blindcore bench circuit --peers target/peers/circuit   beside emp-toolkit, which `make peers-emp` builds

Each row is measured n times and the medians are shown. The limit of garbling and evaluation is what AES alone does on
this core: eight blocks a gate that is garbled, four a gate that is evaluated.")]
    Circuit(BenchCircuit),
}

#[derive(clap::Args)]
pub(crate) struct BenchCircuit {
    /// Times that each figure is measured
    #[arg(long, value_name = "N", default_value_t = 7)]
    repeat: usize,
    /// Instruction set: cpu, cpu:portable, cpu:avx2 or cpu:avx512
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    device: String,
    /// Folder of programs that measure peers and print rows of the same ids
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Only the streamed computation, in this process: what the bench starts to measure memory
    #[arg(long, hide = true)]
    stream_alone: bool,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct BenchSum {
    /// Times that each figure is measured
    #[arg(long, value_name = "N", default_value_t = 7)]
    repeat: usize,
    /// Instruction set: cpu, cpu:portable, cpu:avx2 or cpu:avx512
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    device: String,
    /// Folder of programs that measure peers and print rows of the same ids
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct BenchLookup {
    /// Size of the scanned database in GiB, 1/64 to 64
    #[arg(long, value_name = "N", default_value_t = 4.0)]
    gib: f64,
    /// Times that each figure is measured
    #[arg(long, value_name = "N", default_value_t = 9)]
    repeat: usize,
    /// Measure only scan, hint, client, ring, nohint, table, disk, or a scheme with registered keys by its name, such as onionpir2
    #[arg(long, value_name = "PART")]
    only: Option<lookup::Part>,
    /// Stream a database of that size from a file in this folder, too; the file is gone when the command is
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Instruction set: cpu, cpu:portable, cpu:avx2, cpu:avx512 or cpu:amx
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    device: String,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore bench serve                                 a table to read
  blindcore bench serve --mib 4096 --clients 20 --hostile 2   how soon a large table is there
  blindcore bench serve --json > result.json            the same rows for programs
  blindcore bench serve --soak 10 --clients 100         ten minutes under attack: does memory stay flat?

An honest client's share is the median time of a pass times the passes that answer one query of every client. Clients
and server are on this machine and share its cores.")]
pub(crate) struct BenchServe {
    /// Clients at a time, 20 to 5000
    #[arg(long, value_name = "N", default_value_t = 500)]
    clients: usize,
    /// How many of them are hostile
    #[arg(long, value_name = "N", default_value_t = 50)]
    hostile: usize,
    /// Size of the table in MiB, 1 to 16384
    #[arg(long, value_name = "N", default_value_t = 256)]
    mib: usize,
    /// Seconds of each measurement
    #[arg(long, value_name = "N", default_value_t = 20)]
    seconds: u64,
    /// Times that each figure is measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: usize,
    /// Instead of that: minutes under attack, with the server's memory every second
    #[arg(long, value_name = "MINUTES")]
    soak: Option<u64>,
    /// Print the rows as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: Bench) -> anyhow::Result<Outcome> {
    let mut bar = Bar::new();
    let program = std::env::current_exe()?;
    let (report, as_json) = match command {
        Bench::Lookup(BenchLookup { gib, repeat, only, disk, device, json }) => {
            (lookup::run(&lookup::Options { gib, repeat, only, disk, device }, &mut bar)?, json)
        }
        Bench::Sum(BenchSum { repeat, device, peers, json }) => {
            (sum::run(&sum::Options { repeat, device, peers }, &mut bar)?, json)
        }
        Bench::Serve(BenchServe { clients, hostile, mib, seconds, repeat, soak, json }) => {
            let options = serve::Options { clients, hostile, mib, seconds, repeat, soak, program };
            (serve::run(&options, &mut bar)?, json)
        }
        Bench::Circuit(BenchCircuit { stream_alone: true, device, .. }) => {
            output::json(&circuit::stream_alone(&device)?)?;
            return Ok(Outcome::Done);
        }
        Bench::Circuit(BenchCircuit { repeat, device, json, peers, .. }) => {
            (circuit::run(&circuit::Options { repeat, device, program, peers }, &mut bar)?, json)
        }
    };
    drop(bar);
    print(&report, as_json)
}

fn print(report: &Report, as_json: bool) -> anyhow::Result<Outcome> {
    report.notes.iter().for_each(|note| output::note(note));
    if as_json {
        output::json(&report.json())?;
    } else {
        output::print(&report.text())?;
    }
    Ok(Outcome::Done)
}
