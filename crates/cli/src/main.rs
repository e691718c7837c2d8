//! The `blindcore` command: one binary for tables, servers, lookups and measurements.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done or found, 1 not there, 2 error, 3 errors for some of many.

mod args;
mod bench;
mod circuit;
mod db;
mod device;
mod doctor;
mod get;
mod hw;
mod output;
mod plan;
mod repro;
mod serve;
mod serving;
mod sum;
mod token;

use std::process::ExitCode;

pub(crate) use blindcore_settings as config;
use clap::Parser;

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
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(e) => {
            let _ = e.print();
            // Help and version are not errors.
            return if e.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    match run(args) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::NotThere) => ExitCode::from(1),
        Ok(Outcome::Faulty) => ExitCode::from(2),
        Ok(Outcome::Partly) => ExitCode::from(3),
        Err(e) => {
            output::error(&e);
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> anyhow::Result<Outcome> {
    let config = config::Config::load(args.config.as_deref());
    // It works with settings that nothing else takes, and says what is wrong with them.
    if let Command::Doctor(args) = &args.command {
        return doctor::run(config, args);
    }
    let config = config?;
    if let (Some(file), false) = (config.found(), matches!(args.command, Command::Serve(_))) {
        output::note(&format!("settings: {}", file.display()));
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
    }
}
