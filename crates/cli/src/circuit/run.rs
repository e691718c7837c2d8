//! `blindcore circuit run`: a party of a session, and `blindcore circuit identity`: what it shows the others.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use blindcore_accel::Operation;
use blindcore_circuit::circuit::{Circuit, PortShape};
use blindcore_circuit::named;
use blindcore_circuit::session::{self, Check, Garbling, Inputs, Learns, Setup, owners};
use blindcore_circuit::transport::{self, Door, Peers, Timeouts, Tls};
use blindcore_circuit::values::{self, Unplaced};
use clap::ValueEnum;
use serde_json::json;

use super::load;
use crate::config::Config;
use crate::device::DeviceArgs;
use crate::output::Bar;
use crate::{Outcome, device, output};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Garbler,
    Evaluator,
    Owner,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reveal {
    Both,
    Garbler,
    Evaluator,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scheme {
    /// 32 bytes a gate
    HalfGates,
    /// 25 bytes a gate, for more work: where the network is what is slow
    ThreeHalves,
}

#[derive(clap::Args)]
#[command(after_help = "\
Two parties, each in its own shell, each with one input of the product:
  blindcore circuit run --role garbler   --circuit mult32 --input 1234567 --listen 127.0.0.1:7800
  blindcore circuit run --role evaluator --circuit mult32 --input 7654321 --connect 127.0.0.1:7800

How many values two lists have in common, each a file of one value a line, in any order:
  blindcore circuit run --role garbler   --circuit intersection256x64 --input @ours.txt   --listen 127.0.0.1:7800
  blindcore circuit run --role evaluator --circuit intersection256x64 --input @theirs.txt --connect 127.0.0.1:7800

Between machines both show a certificate; each makes one and sends the other its .crt:
  blindcore circuit identity alice
  blindcore circuit run --role garbler --circuit mult32 --input @salary.txt --listen 0.0.0.0:7800 \\
      --cert alice.crt --key alice.key --trust bob.crt

Three roles, where owners have the inputs and the others have none (inputs are named by their place, from 0):
  blindcore circuit run --role garbler   --owners --circuit auction4x16 --listen 127.0.0.1:7800
  blindcore circuit run --role evaluator --owners --circuit auction4x16 --connect 127.0.0.1:7800 --listen 127.0.0.1:7801
  blindcore circuit run --role owner --circuit auction4x16 --input 2=950 --connect 127.0.0.1:7800 --evaluator 127.0.0.1:7801
The end of the garbler, or of the evaluator once an owner is there, ends the run on all sides; other places can be taken again.

Both sides have to name the same circuit, --reveal, --check-transfers and --rounds; what differs is said. Nobody learns
another's inputs as long as both follow the protocol.")]
pub(crate) struct Run {
    /// The part that this side plays
    #[arg(long)]
    role: Role,
    /// A circuit file, or a name of `blindcore circuit list`
    #[arg(long, value_name = "FILE|NAME")]
    circuit: String,
    /// A value of this side: decimal or 0x-hexadecimal, a list such as 5,7,9, @FILE, or - for standard input; or PLACE=VALUE.
    /// Without places the garbler's are the circuit's first inputs and the evaluator's its last
    #[arg(long = "input", value_name = "VALUE", allow_hyphen_values = true)]
    inputs: Vec<String>,
    /// Wait for the peer at this address
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Connect to the peer at this address
    #[arg(long, value_name = "ADDR")]
    connect: Option<String>,
    /// The evaluator's address, of an owner
    #[arg(long, value_name = "ADDR")]
    evaluator: Option<String>,
    /// Three roles: all inputs come from owners
    #[arg(long)]
    owners: bool,
    /// Which party learns the outputs
    #[arg(long, default_value = "both")]
    reveal: Reveal,
    /// How the garbler garbles; the evaluator follows
    #[arg(long, default_value = "half-gates")]
    scheme: Scheme,
    /// Check that the evaluator keeps to the protocol in oblivious transfers
    #[arg(long)]
    check_transfers: bool,
    /// Run the circuit this many times, its outputs becoming its first inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u64,
    /// Stream a file in a Bristol format that is larger than memory: both sides have to. Takes 13 bytes of disk a gate, in
    /// the folder for temporary files (TMPDIR)
    #[arg(long)]
    stream: bool,
    /// This side's certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["key", "trust"])]
    cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Certificates that peers' must be or, of authorities (CA:TRUE), be signed by (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    trust: Option<PathBuf>,
    /// The name that the peer's certificate must have [default: the host of --connect; whoever comes to --listen, any that is trusted]
    #[arg(long, value_name = "NAME", requires = "cert", value_parser = transport::peer_name)]
    peer_name: Option<String>,
    /// The name in the evaluator's certificate, of an owner [default: the host of --evaluator]
    #[arg(long, value_name = "NAME", requires_all = ["cert", "evaluator"], value_parser = transport::peer_name)]
    evaluator_name: Option<String>,
    /// No TLS, although the peer is on another machine: everybody between reads along
    #[arg(long, conflicts_with = "cert")]
    plain_text: bool,
    /// Seconds until a silent peer ends the session, and for a peer's handshake as a whole: a stranger who says nothing, or
    /// something else, is turned away by then and ends nothing
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Seconds to wait for a peer to be there, with owners for the next. For each step of the others, who wait for all owners
    /// and then compute, an owner waits the larger of this and --timeout
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: u64,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print {"outputs": ["0x...", ...], ...}; null where this side does not learn them
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  blindcore circuit identity alice      makes alice.crt, which others get, and alice.key, which nobody gets

The others give --trust alice.crt, and --peer-name alice where they connect.")]
pub(crate) struct Identity {
    /// The name in the certificate, such as alice or alice.example.org
    name: String,
    /// Folder to write to
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Print the files' names as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(config: &Config, args: &Run) -> anyhow::Result<Outcome> {
    check_options(args)?;
    let circuit = if args.stream {
        named::stream(&args.circuit, &std::env::temp_dir())?
    } else {
        Circuit::of(load(&args.circuit)?)
    };
    let circuit = if args.rounds == 1 { circuit } else { circuit.in_rounds(args.rounds)? };
    session::check_size(&circuit)?;
    let inputs = own_inputs(args, circuit.inputs())?;
    let peers = peers(args)?;
    let learns = match args.reveal {
        Reveal::Both => Learns::Both,
        Reveal::Garbler => Learns::Garbler,
        Reveal::Evaluator => Learns::Evaluator,
    };
    if args.role == Role::Owner {
        let garbler = args.connect.as_deref().context("an owner needs --connect, the garbler's address")?;
        let evaluator =
            args.evaluator.as_deref().context("an owner needs --evaluator, the evaluator's address")?;
        anyhow::ensure!(args.listen.is_none(), "an owner does not --listen; it connects to both others");
        let garbler = peers.door(None, Some(garbler), args.peer_name.as_deref(), false)?;
        let evaluator = peers.door(None, Some(evaluator), args.evaluator_name.as_deref(), false)?;
        let (mut still, mut quiet) = (|_: &str| {}, |_: &str| {});
        let (garbler, evaluator) = (garbler.arrivals(&mut still), evaluator.arrivals(&mut quiet));
        owners::supply_for(garbler, evaluator, &circuit, learns, &inputs)?;
        let text = "the inputs were taken, and the session ended well\n";
        let done = || output::json(&json!({"outputs": null, "role": "owner"}));
        return (if args.json { done() } else { output::print(text) }).map(|()| Outcome::Done);
    }
    let operation = if args.role == Role::Garbler { Operation::Garble } else { Operation::Evaluate };
    let device = device::open_for(&args.device, config, &[operation])?;
    let check = if args.check_transfers { Check::Malicious } else { Check::None };
    let setup = Setup { circuit: &circuit, device: &device, learns, check };
    let (mut bar, mut say) = (Bar::new(), |said: &str| output::note(said));
    let outcome = if args.owners {
        anyhow::ensure!(args.listen.is_some(), "a party with --owners needs --listen, for them");
        anyhow::ensure!(
            args.role == Role::Garbler || args.connect.is_some(),
            "an evaluator for owners needs --connect, to the garbler"
        );
        let arrivals = door(&peers, args)?.arrivals(&mut say);
        if args.role == Role::Garbler {
            owners::garble(arrivals, setup, &mut bar)?
        } else {
            owners::evaluate(arrivals, setup, &mut bar)?
        }
    } else {
        let arrivals = door(&peers, args)?.arrivals(&mut say);
        match (args.role, args.scheme) {
            (Role::Evaluator, _) => session::evaluate_for(arrivals, setup, &inputs, &mut bar)?,
            (_, scheme) => {
                let way = match scheme {
                    Scheme::HalfGates => Garbling::HalfGates,
                    Scheme::ThreeHalves => Garbling::ThreeHalves,
                };
                session::garble_for(way, arrivals, setup, &inputs, &mut bar)?
            }
        }
    };
    drop(bar);
    report(args, &circuit, &outcome)?;
    Ok(Outcome::Done)
}

impl Run {
    fn role(&self) -> &'static str {
        match self.role {
            Role::Garbler => "garbler",
            Role::Evaluator => "evaluator",
            Role::Owner => "owner",
        }
    }
}

/// That no option is given which this role, or this way to run, would not heed.
fn check_options(args: &Run) -> anyhow::Result<()> {
    let owner = args.role == Role::Owner;
    anyhow::ensure!(
        owner || args.evaluator.is_none(),
        "--evaluator is an owner's option; the {} has none",
        args.role()
    );
    anyhow::ensure!(
        !owner || !args.inputs.is_empty(),
        "an owner without an input; give --input PLACE=VALUE for each that is its own"
    );
    if !owner && !args.owners {
        return Ok(());
    }
    anyhow::ensure!(
        !args.check_transfers,
        "--check-transfers is for two parties: with owners there are no such transfers; leave it away"
    );
    anyhow::ensure!(
        args.scheme == Scheme::HalfGates,
        "--scheme three-halves is for two parties: with owners half-gates are all there is; leave it away"
    );
    anyhow::ensure!(
        args.role != Role::Garbler || args.connect.is_none(),
        "a garbler for owners does not --connect; it waits for all others at --listen"
    );
    anyhow::ensure!(
        args.role != Role::Garbler || args.peer_name.is_none(),
        "--peer-name is for one peer, and several come to a garbler for owners; leave it away: --trust says who may"
    );
    Ok(())
}

/// This side's values, each at its place.
fn own_inputs(args: &Run, ports: &[PortShape]) -> anyhow::Result<Inputs> {
    anyhow::ensure!(
        !args.owners || args.role == Role::Owner || args.inputs.is_empty(),
        "with --owners all inputs come from owners; leave --input away"
    );
    anyhow::ensure!(
        args.role != Role::Owner || args.inputs.iter().all(|i| values::place_of(i).is_some()),
        "an owner says which input is its own: --input PLACE=VALUE, with places from 0 to {}",
        ports.len().saturating_sub(1)
    );
    let unplaced = if args.role == Role::Evaluator { Unplaced::Last } else { Unplaced::First };
    let mut notes = Vec::new();
    let all = values::own(&args.inputs, ports, unplaced, &mut notes)?;
    notes.iter().for_each(|said| output::note(said));
    Ok(all)
}

/// Where peers come from, which is said where they come to this side.
fn door(peers: &Peers, args: &Run) -> anyhow::Result<Door> {
    let [listen, connect, name] = [&args.listen, &args.connect, &args.peer_name].map(Option::as_deref);
    let door = peers.door(listen, connect, name, args.owners)?;
    door.address().inspect(|address| output::note(&format!("listening on {address}")));
    Ok(door)
}

/// How this side reaches its peers.
fn peers(args: &Run) -> anyhow::Result<Peers> {
    let tls = match (&args.cert, &args.key, &args.trust) {
        (Some(cert), Some(key), Some(trust)) => {
            crate::token::warn_exposed("private key", key);
            Some(Tls::load(cert, key, trust)?)
        }
        _ => None,
    };
    // A party waits this long for an owner, and the owner for it.
    let silence = if args.role == Role::Owner { args.timeout.max(args.wait) } else { args.timeout };
    let [wait, handshake, peer] = [args.wait, args.timeout, silence].map(Duration::from_secs);
    let timeouts = Timeouts { wait, handshake, peer };
    Ok(Peers { tls, plain_text: args.plain_text, timeouts })
}

fn report(args: &Run, circuit: &Circuit, outcome: &session::Outcome) -> anyhow::Result<()> {
    let ports = circuit.outputs();
    let values: Option<Vec<String>> =
        outcome.outputs.as_ref().map(|all| all.iter().map(|bits| values::hex(bits)).collect());
    let seconds = outcome.time.as_secs_f64();
    if let Some(doubt) = &outcome.doubt {
        output::warn(&format!("warning: {doubt}"));
    }
    if args.json {
        return output::json(&json!({
            "outputs": values,
            "values": outcome.outputs.as_ref().map(|all| super::numbers(ports, all)),
            "names": ports.iter().map(|p| &p.name).collect::<Vec<_>>(),
            "bits": ports.iter().map(|p| p.width).collect::<Vec<_>>(),
            "doubt": outcome.doubt,
            "role": args.role(),
            "ands": outcome.ands,
            "xors": outcome.xors,
            "table_bytes": outcome.table_bytes,
            "seconds": seconds,
            "first_table_seconds": outcome.first_table.as_secs_f64(),
        }));
    }
    let rate = outcome.ands as f64 / seconds / 1e6;
    let summary = format!(
        "{} ANDs, {} of tables, {seconds:.3} s, {rate:.1} M ANDs/s",
        outcome.ands,
        output::bytes(outcome.table_bytes)
    );
    output::note(&summary);
    match &outcome.outputs {
        Some(all) => output::print(&values::shown(ports, all)),
        None => {
            output::note("the session ended well; the other side learned the outputs, as both said");
            Ok(())
        }
    }
}

pub(crate) fn identity(args: &Identity) -> anyhow::Result<Outcome> {
    let (crt, secret) = transport::write_identity(&args.out, &args.name)?;
    let (crt, secret) = (crt.display().to_string(), secret.display().to_string());
    output::done(format!("{crt} and {secret} are made"));
    let text = || format!("{crt}   give it to the others\n{secret}   keep it\n");
    output::result(args.json, || json!({"certificate": crt, "key": secret}), text)?;
    Ok(Outcome::Done)
}
