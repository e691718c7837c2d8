//! The `blindcore` command: one binary for tables, servers, lookups and measurements.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done or found, 1 not there, 2 error, 3 errors for some of many.

mod args;
mod bench;
mod circuit;
mod connecting;
mod db;
mod device;
mod doctor;
mod get;
mod hw;
mod outputs;
mod plan;
mod repro;
mod serve;
mod serving;
mod sum;
mod token;

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use blindcore_circuit::session::SessionError;
use blindcore_circuit::transport::TransportError;
use blindcore_client::{Error as ClientError, LookupError};
pub(crate) use blindcore_settings as config;
use blindcore_store::StoreError;
pub(crate) use blindcore_terminal as output;

use anyhow::Context as _;
use args::{Args, Command, Db, Hw, HwRun};

/// How a command ended, when it did not fail.
pub(crate) enum Outcome {
    /// Done, or found.
    Done,
    /// What was looked for is not there.
    NotThere,
    /// Something is wrong, and was said.
    Faulty,
    /// Some of it was answered, and for some there are errors, which were said.
    Partly,
}

fn main() -> ExitCode {
    output::outlive_file_limit();
    let (as_json, args) = args::parse_from(std::env::args_os().collect::<Vec<_>>());
    let done = match args {
        // Help and version are not errors.
        Err(said) if !said.use_stderr() => {
            let printed = || said.print().context("standard output can't be written");
            output::write(b"").and_then(|()| printed()).map(|()| Outcome::Done)
        }
        Err(wrong) => Err(args::refused(&wrong).into()),
        Ok(args) => run(args),
    };
    match done {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::NotThere) => ExitCode::from(1),
        Ok(Outcome::Faulty) => ExitCode::from(2),
        Ok(Outcome::Partly) => ExitCode::from(3),
        Err(e) => {
            if serving::LOGS_JSON.load(Ordering::Relaxed) {
                tracing::error!("{}", output::Fault::of(&e));
            } else {
                output::error(&e, code(&e), as_json);
            }
            ExitCode::from(2)
        }
    }
}

/// A word for programs that says what kind of error it is: a server's reason, or where the fault lies.
fn code(error: &anyhow::Error) -> &'static str {
    let word = |e: &(dyn std::error::Error + 'static)| {
        Some(match e.downcast_ref() {
            Some(ClientError::Lookup(LookupError::Refused { reason: Some(reason), .. })) => reason.as_str(),
            Some(ClientError::Lookup(_)) => "answer",
            Some(ClientError::Tls { .. } | ClientError::SpeaksTls { .. } | ClientError::Certificates(_)) => {
                "tls"
            }
            Some(ClientError::Connect { .. }) => "unreachable",
            Some(ClientError::Network { .. }) => "network",
            _ if matches!(e.downcast_ref(), Some(StoreError::Source(_))) => "source",
            _ if e.is::<StoreError>() => "database",
            _ if e.is::<output::Fault>() => "usage",
            _ if e.is::<SessionError>() => "peer",
            _ if e.downcast_ref().is_some_and(TransportError::is_of_peers) => "peer",
            _ if e.is::<std::io::Error>() => "io",
            _ => return None,
        })
    };
    error.chain().find_map(word).unwrap_or("refused")
}

fn run(args: Args) -> anyhow::Result<Outcome> {
    output::set_quiet(args.quiet);
    let config = config::Config::load(args.config.as_deref());
    // It works with settings that nothing else takes, and says what is wrong with them.
    if let Command::Doctor(args) = &args.command {
        return doctor::run(config, args);
    }
    let serves = match &args.command {
        Command::Serve(args) => Some(args.front.log_json),
        Command::Sum(sum::Sum::Serve(args)) => Some(args.front.log_json),
        _ => None,
    };
    if let Some(json) = serves {
        // First, so that whatever keeps a server from starting is a line of its log.
        serving::log_to_stderr(json || config.as_ref().is_ok_and(|config| config.log_json))?;
    }
    let config = config?;
    if let (Some(_), false, Some(file)) =
        (config.found(), matches!(args.command, Command::Serve(_)), config.in_words())
    {
        output::note(&format!("settings: {file}"));
    }
    match args.command {
        Command::Db(Db::Build(args)) => db::build(&config, args),
        Command::Db(Db::Update(args)) => db::update(&config, args),
        Command::Db(Db::Inspect(args)) => db::inspect(&args),
        Command::Db(Db::Verify(args)) => db::verify(&args),
        Command::Db(Db::Key(args)) => db::key(&args),
        Command::Db(Db::Sign(args)) => db::sign(&args),
        Command::Serve(args) => serve::run(&config, args),
        Command::Get(args) => get::get(&config, args),
        Command::Cache(command) => get::cache(&config, command),
        Command::Token(args) => token::make(&args),
        Command::Tables(args) => get::tables(&config, args),
        Command::Plan(args) => plan::run(&config, &args),
        Command::Doctor(_) => unreachable!("it was run above"),
        Command::Circuit(command) => circuit::run(&config, command),
        Command::Sum(command) => sum::run(&config, command),
        Command::Bench(command) => bench::run(command),
        Command::Hw(Hw::Run(HwRun::Lookup(args))) => hw::lookup(&args),
        Command::Hw(Hw::Run(HwRun::Circuit(args))) => hw::circuit::run(&args),
        Command::Hw(Hw::Run(HwRun::Sum(args))) => hw::sum::run(&args),
        Command::Repro(command) => repro::run(&command),
        Command::Hw(Hw::Report(args)) => hw::report(&args),
        Command::Hw(Hw::Explore(args)) => hw::explore(&args),
    }
}
