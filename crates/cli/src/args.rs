//! What can be said on the command line, with its help.

use std::ffi::OsString;
use std::path::PathBuf;

use blindcore_store::Overlap;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::bench::Bench;
use crate::circuit::Circuit;
use crate::connecting::ServerArgs;
use crate::device::DeviceArgs;
use crate::hw::circuit::HwCircuit;
use crate::hw::sum::HwSum;
use crate::output;
use crate::outputs::Force;
use crate::plan::Plan;
use crate::repro::Repro;
use crate::serving::FrontArgs;
use crate::sum::Sum;
use crate::token::Token;

/// Compute on data that the machine doing the work must not see.
#[derive(Parser)]
#[command(name = "blindcore", version, propagate_version = true, subcommand_required = true)]
#[command(after_help = "\
Examples:
  blindcore db build people.csv --key email --out people.db     make a table that can be looked up privately
  blindcore serve people.db                                     serve it on 127.0.0.1:7700
  blindcore get --server http://127.0.0.1:7700 --table people --key ada@example.org

Exit codes: 0 done or found, 1 not there, 2 error. Data goes to stdout, everything else to stderr.
--device, --threads, --server, --ca, --timeout, --cache, --listen, --tls-cert, --tls-key, --tokens, --metrics, --memory, --gather
and --keys-dir, where the command's help names the variable, can also be set by BLINDCORE_DEVICE and so on, or in
blindcore.toml; the flag wins, then the variable.
BLINDCORE_LOG sets what servers log: error, warn, info (the default), debug or trace, or a level for each part, such as
BLINDCORE_LOG=warn,blindcore_server::host=info.")]
pub(crate) struct Args {
    /// Settings file [default: blindcore.toml in this folder, if it exists]
    #[arg(long, global = true, env = "BLINDCORE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// No progress and no notes: results, warnings and errors alone
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Whether a program asked for JSON, and what was said; an environment variable that is empty is unset.
pub(crate) fn parse_from<T: Into<OsString> + Clone>(
    args: impl IntoIterator<Item = T> + Clone,
) -> (bool, Result<Args, clap::Error>) {
    fn heed(command: clap::Command) -> clap::Command {
        command.mut_subcommands(heed).mut_args(|arg| match arg.get_env() {
            Some(name) if blindcore_units::is_empty_variable(name) => {
                arg.env(clap::builder::Resettable::Reset)
            }
            // Whoever gives -1 hears the range, not of an unknown option.
            _ if arg.get_action().takes_values() => arg.allow_negative_numbers(true),
            _ => arg,
        })
    }
    let matches = match heed(Args::command()).try_get_matches_from(args.clone()) {
        Ok(matches) => matches,
        // What is wrong may be before it or behind it.
        Err(wrong) => return (args.into_iter().any(|arg| arg.into() == "--json"), Err(wrong)),
    };
    let mut last = &matches;
    while let Some((_, next)) = last.subcommand() {
        last = next;
    }
    let as_json = last.try_get_one("json").ok().flatten().is_some_and(|json: &bool| *json);
    (as_json, Args::from_arg_matches(&matches))
}

/// Why a command line makes no sense.
pub(crate) fn refused(wrong: &clap::Error) -> output::Fault {
    output::usage(wrong, &Args::command(), &Vec::from_iter(std::env::args_os().skip(1)))
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make, show and check databases
    #[command(subcommand)]
    Db(Db),
    /// Serve databases; clients look up rows without showing which
    Serve(Serve),
    /// Look a row up without showing the server which
    Get(Get),
    /// List the tables that a server has
    Tables(Tables),
    /// Show or clear what lookups keep on this machine
    #[command(subcommand)]
    Cache(Cache),
    /// Say what a table would cost to serve and to look up, before it is built
    Plan(Plan),
    /// Make a token, which identifies a client to a server
    Token(Token),
    /// Say what this machine can do, what blindcore would use, and why
    Doctor(Doctor),
    /// Make, show and evaluate circuits for two parties (garbled circuits)
    #[command(subcommand)]
    Circuit(Circuit),
    /// Add and weigh encrypted numbers (Paillier)
    #[command(subcommand)]
    Sum(Sum),
    /// Measure this machine
    #[command(subcommand)]
    Bench(Bench),
    /// Run the papers' hardware, simulated clock by clock
    #[command(subcommand)]
    Hw(Hw),
    /// Compute a paper's figures again, beside the published ones
    #[command(subcommand)]
    Repro(Repro),
}

#[derive(Subcommand)]
pub(crate) enum Db {
    /// Make a database from a table
    #[command(after_help = "\
SOURCE is one of
  data.csv  data.tsv              comma- or tab-separated values with a header row
  data.jsonl  data.ndjson         a JSON object a line
  -                               JSON lines on standard input
  data.parquet                    Apache Parquet: columns of single values
  dir:FOLDER                      the name and the content of every file in it
  sqlite:PATH?table=NAME          a table or view of a SQLite database
  sqlite:PATH?query=SELECT ...    the rows of one SELECT
  postgres://USER@HOST/DATABASE?table=NAME    or ?query=SELECT ...
  mysql://USER@HOST/DATABASE?table=NAME       or ?query=SELECT ..., MariaDB too

A database server's password comes from the URL or, better, from PGPASSWORD or MYSQL_PWD; it is never written to a file.
A server on another machine must show a certificate for its name: ?ca=FILE&table=NAME gives the authority that signed
it, ?tls=off&table=NAME connects without TLS.

Examples:
  blindcore db build drugs.csv --key name --value class,risk --out drugs.db
  blindcore db build 'sqlite:app.sqlite?table=users' --key id --out users.db
  blindcore db build 'postgres://reader@db.example/app?table=users' --key id --out users.db
  blindcore db build dir:articles --out articles.db
  zcat log.jsonl.gz | blindcore db build - --name log --key hash --out log.db

The folder appears once it is complete; an interrupted build leaves nothing.")]
    Build(Build),
    /// Change rows of a database: a new epoch, which running servers take up
    #[command(after_help = "\
CHANGES is any SOURCE of `blindcore db build` with the table's columns. It may have these too, unless the table itself does:
  _change    set, also where it is empty, or remove; a row that is removed needs no values
  _row       in a table without keys, the number of the row, counted from 0; empty for one that is added

A row that is set gives every column, null where nothing is meant, or keeps the others with --partial. Other columns are
refused unless --ignore names them; a database's are passed over, and said. CSV's texts become what the table holds,
or are refused. Existing keys are replaced, new keys are inserted; the last duplicate wins. The cost of an update depends on the rows that differ from the base, not on the
size of the table; clients fetch the difference. Once many rows differ, build the database again.

Examples:
  blindcore db update people.db --from changes.csv
  echo '{\"id\": 7, \"_change\": \"remove\"}' | blindcore db update people.db --from -
  echo '{\"id\": 7, \"city\": \"Ghent\"}' | blindcore db update people.db --from - --partial
  blindcore db update articles.db --from dir:articles --whole
  blindcore db update people.db --from 'postgres://reader@db.example/app?table=people' --follow updated_at

An update that fails or is interrupted leaves the previous epoch.")]
    Update(Update),
    /// Show a database's table, parameters, security and sizes
    #[command(after_help = "\
Examples:
  blindcore db inspect people.db
  blindcore db inspect people.db --json

`digest` is what clients give to `blindcore get --pin`.")]
    Inspect(Inspect),
    /// Make a key that signs tables, or show one
    Key(Key),
    /// Sign a database as it stands
    Sign(Sign),
    /// Read every byte of a database and compare it with its checksums
    #[command(after_help = "\
Examples:
  blindcore db verify people.db
  blindcore db verify people.db --json

The exit code is 2 if a file is damaged or missing; the message names it.")]
    Verify(Inspect),
}

/// The schemes that a table can be built with.
fn scheme_help() -> String {
    let schemes = blindcore_lookup::schemes::offered().into_iter().map(|scheme| {
        let suits = scheme.about().suits;
        format!("{scheme} ({}{}{suits})", scheme.title(), if suits.is_empty() { "" } else { ", " })
    });
    let known = "known (as auto, and clients may register keys: for a service that knows them)";
    format!("auto, {known}, or one of {}", schemes.collect::<Vec<_>>().join(", "))
}

#[derive(clap::Args)]
pub(crate) struct Build {
    /// Where the rows come from (see below)
    pub(crate) source: OsString,
    /// Column that rows are looked up by [default: none, so rows are looked up by row number; files by their name]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) key: Option<String>,
    /// Columns of a record, separated by commas [default: all but the key]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) value: Option<Vec<String>>,
    /// The table's name [default: the source's table, folder or file name]
    #[arg(long, value_name = "TABLE")]
    pub(crate) name: Option<String>,
    /// Folder to make
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[arg(long, value_name = "SCHEME", default_value = "auto", help = scheme_help())]
    pub(crate) scheme: String,
    /// Take a scheme with 128 bits against quantum computers too: its queries are half as long again, and it answers more slowly
    #[arg(long, conflicts_with = "scheme")]
    pub(crate) quantum128: bool,
    /// Let clients detect wrong answers, however much longer slots become [default: where slots become at most twice as
    /// long, and the scheme's answers don't grow as they do]
    #[arg(long)]
    pub(crate) proofs: bool,
    /// Leave proofs out
    #[arg(long, conflicts_with = "proofs")]
    pub(crate) no_proofs: bool,
    /// Sign the table with this Ed25519 key (PKCS #8 in PEM); clients that trust the key accept no other table. A signed
    /// table has proofs
    #[arg(long, value_name = "FILE", conflicts_with = "no_proofs")]
    pub(crate) sign: Option<PathBuf>,
    /// Let another key than before sign the table, or none; clients that trust the key before refuse it then
    #[arg(long)]
    pub(crate) change_signer: bool,
    /// Let clients ask for up to N keys in one request, 8 to 1024; the records are kept three times more for it, those of a small table many times more
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<usize>,
    /// Leave out the directory, through which a table with keys can also be read by row number
    #[arg(long)]
    pub(crate) no_directory: bool,
    /// Replace an existing database
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Update {
    /// The database's folder
    pub(crate) dir: PathBuf,
    /// Where the changed rows come from (see below)
    #[arg(long, value_name = "CHANGES")]
    pub(crate) from: OsString,
    /// Poll the source, a database server or SQLite, for rows whose COLUMN has grown: a number or a time that grows with every
    /// change, or xmin of a PostgreSQL table, which misses no late commit. Removed rows are not noticed
    #[arg(long, value_name = "COLUMN")]
    pub(crate) follow: Option<String>,
    /// Read again what lies this far below the last value, for rows that are committed late [default: 10m, or 1000 of numbers]
    #[arg(long, value_name = "SPAN", requires = "follow", allow_hyphen_values = true, value_parser = Overlap::parse)]
    pub(crate) overlap: Option<Overlap>,
    /// Seconds between polls
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "follow", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) every: u64,
    /// Keep the columns of a row that CHANGES do not give
    #[arg(long)]
    pub(crate) partial: bool,
    /// Take CHANGES for the whole table: rows that they lack are removed, such as deleted files
    #[arg(long, conflicts_with = "follow")]
    pub(crate) whole: bool,
    /// Columns of CHANGES to pass over as if they were not there, separated by commas; any but the key
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) ignore: Option<Vec<String>>,
    /// Sign the new epoch with this Ed25519 key (PKCS #8 in PEM), as a signed table asks for
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
    /// Let another key than before sign the table, or none; clients that trust the key before refuse it then
    #[arg(long)]
    pub(crate) change_signer: bool,
    /// Poll once, from where the last poll ended
    #[arg(long, requires = "follow")]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print the result as one JSON document; with --follow, one line for each epoch
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  blindcore db key publisher.pem
  blindcore db build people.csv --key email --out people.db --sign publisher.pem
  blindcore get --server http://127.0.0.1:7700 --table people --key ada@example.org --trust KEY

KEY is what the first command prints. Only its owner can read the file.")]
pub(crate) struct Key {
    /// The file to make; an existing file is kept, and its public key is printed
    pub(crate) file: PathBuf,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Sign {
    /// The database's folder
    pub(crate) dir: PathBuf,
    /// The Ed25519 key, as `db key` makes it
    pub(crate) key: PathBuf,
    /// Let another key than before sign the table, or none; clients that trust the key before refuse it then
    #[arg(long)]
    pub(crate) change_signer: bool,
    /// Print the database as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Inspect {
    /// The database's folder
    pub(crate) dir: PathBuf,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore doctor                     devices of this machine, and the one that `auto` takes
  blindcore doctor --device cpu:avx2   whether this device can be used
  blindcore doctor --json")]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore serve people.db
  blindcore serve people.db drugs.db --listen 127.0.0.1:8080
  blindcore serve people.db --memory 8GiB
  blindcore serve people.db --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem --tokens tokens.txt

gRPC and plain HTTP share the port. GET /livez and /readyz report health, GET /v1/tables lists tables. SIGTERM and Ctrl-C
let lookups finish, then stop the server. Beyond this machine, connections are encrypted by TLS 1.2 or 1.3. With
--tokens, only requests with a token are answered (`blindcore token` makes tokens).

New epochs of a database are served as soon as `blindcore db update` has written them. On SIGHUP the server reads
certificates and tokens again and retries failed tables; what can't be read stays as it was.

Damaged files never produce an answer. Sizes and headers are checked at the start; contents are checked when they are
copied to memory or, where they are streamed, in every pass. Hints are checked at the start or, if they are large, soon
after it, and again as each piece is sent. If a check fails, the log names the file and /readyz answers 503: restore the
file and send SIGHUP.

No client can take the whole server: clients take turns, query by query. Under load, the client with the most connections
or queued queries is dropped first. A client is a token or, without tokens, an address. The section [limits] of
blindcore.toml sets these, shown with their defaults; leave out the two per-minute limits to allow any number:

  [limits]
  connections = 1024
  connections_per_client = 64
  streams_per_connection = 64
  waiting_queries = 1024
  waiting_per_client = 256
  queries_per_request = 64
  queries_per_minute = 6000
  hint_mib_per_minute = 1000
  request_mib = 64
  request_memory_mib = 1024
  memory_mib_per_client = 256
  header_seconds = 10
  request_seconds = 60
  idle_seconds = 120
  drain_seconds = 0
  grace_seconds = 30
  keys_mib = 4096                keys that clients register: on the disk, and how many sets
  keys_count = 65536
  keys_mib_per_client = 1024
  keys_count_per_client = 16384
  keys_memory_mib = 512
  registrations_per_minute = 60

Some schemes have clients register keys once, which their queries are then under. They are kept in --keys-dir and outlive a
restart. Where its place is full, keys go first that nothing was asked under, then those that were used least lately; their
clients register them again by themselves.")]
pub(crate) struct Serve {
    /// The databases' folders
    #[arg(required = true, value_name = "DIR")]
    pub(crate) dirs: Vec<PathBuf>,
    /// Address and port [default: 127.0.0.1:7700]
    #[arg(long, env = "BLINDCORE_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) front: FrontArgs,
    /// Answer GET /metrics for Prometheus here, in plain text: a port of this machine, or an address and a port
    #[arg(long, env = "BLINDCORE_METRICS", value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    /// Most queries per minute of one client: a token or, without tokens, an address [default: any number]
    #[arg(long, value_name = "N")]
    pub(crate) queries_per_minute: Option<u64>,
    /// Most queries that one pass over a database answers, 1 to 64 [default: 16]
    #[arg(long, env = "BLINDCORE_GATHER", value_name = "N")]
    pub(crate) gather: Option<usize>,
    /// Memory that the server may use: auto (what is free, or the limit of this control group) or a size such as 8GiB.
    /// Three quarters are for databases: those that fit are copied to memory, others are streamed from disk in every
    /// pass. A database over 256 MiB is streamed until its copy is complete
    #[arg(long, env = "BLINDCORE_MEMORY", value_name = "BYTES")]
    pub(crate) memory: Option<String>,
    /// Stream every database from disk, even if it fits in memory
    #[arg(long)]
    pub(crate) streamed: bool,
    /// Folder for keys that clients register [default: the first such database's, with .keys at its end]
    #[arg(long, env = "BLINDCORE_KEYS_DIR", value_name = "DIR")]
    pub(crate) keys_dir: Option<PathBuf>,
    /// Forget keys that nothing is asked under for this long, such as 12h or 90d [default: 30d]
    #[arg(long, value_name = "TIME")]
    pub(crate) keys_expire: Option<String>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

#[derive(Subcommand)]
pub(crate) enum Cache {
    /// List hints, registered keys (`keys/`), and the epochs of trusted tables that were seen (`epochs/`)
    List(CacheArgs),
    /// Remove hints and registered keys that no lookup is fetching or using; the next lookups make others
    Clear {
        /// Forget seen epochs too: an older table that was signed is accepted then
        #[arg(long)]
        epochs: bool,
        #[command(flatten)]
        args: CacheArgs,
    },
}

#[derive(clap::Args)]
pub(crate) struct CacheArgs {
    /// The folder [default: $XDG_CACHE_HOME/blindcore or ~/.cache/blindcore]
    #[arg(long, env = "BLINDCORE_CACHE", value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Print the files as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore tables --server http://127.0.0.1:7700
  blindcore tables --server https://lookup.example.org --token-file my.token --json")]
pub(crate) struct Tables {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
#[command(after_help = "\
Examples:
  blindcore get --server http://127.0.0.1:7700 --table people --key ada@example.org
  blindcore get --server http://127.0.0.1:7700 --table people --index 0 --json
  blindcore get --server http://127.0.0.1:7700 --table people --keys-from keys.txt --json
  blindcore get --server http://127.0.0.1:7700 --table people --key ada@example.org --pin 8a1f...
  blindcore get --server http://127.0.0.1:7700 --table reports --key 2026/may.pdf --out may.pdf

The server learns the table, whether a lookup is by key or by row number, and the number of lookups. It does not learn the
row, or whether the row exists. --keys-from prints each answer as it comes, waits up to ten minutes where the server is
busy or goes away, and exits with 0 if every key was found, 1 if some do not exist, 3 if some have an error, 2 if all have or it
ended early; --json prints {\"results\": [...]}, a line for each key. The first lookup in a table fetches its hint, which is cached for later lookups.")]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// The table
    #[arg(long, value_name = "NAME")]
    pub(crate) table: String,
    /// Look up this key
    #[arg(long, group = "what", allow_hyphen_values = true)]
    pub(crate) key: Option<String>,
    /// Look up this key of bytes, in hexadecimal digits
    #[arg(long, group = "what", value_name = "HEX")]
    pub(crate) key_hex: Option<String>,
    /// Look up this key of bytes, in base64
    #[arg(long, group = "what", value_name = "BASE64", allow_hyphen_values = true)]
    pub(crate) key_base64: Option<String>,
    /// Look up this row, counted from 0; decimal or 0x-hexadecimal
    #[arg(long, group = "what", value_name = "I", value_parser = parse_index)]
    pub(crate) index: Option<u64>,
    /// Look up every line of this file as a key; - is standard input. All are answered from the epoch that the run began with
    /// for as long as the server keeps it; --json has each answer's epoch
    #[arg(long, group = "what", value_name = "FILE")]
    pub(crate) keys_from: Option<PathBuf>,
    /// How that file writes keys: text, hex or base64 [default: text]
    #[arg(long, value_name = "FORM", requires = "keys_from", conflicts_with_all = ["key", "key_hex", "key_base64", "index"])]
    pub(crate) keys_form: Option<blindcore_wire::KeyForm>,
    /// With --keys-from: keep in this file how far it is, and go on from there if it exists
    #[arg(long, value_name = "FILE", requires = "keys_from", conflicts_with_all = ["key", "key_hex", "key_base64", "index"])]
    pub(crate) resume: Option<PathBuf>,
    /// Accept only the table with this digest, as `db inspect` prints it; answers are checked against it
    #[arg(long, value_name = "DIGEST", value_parser = parse_32)]
    pub(crate) pin: Option<[u8; 32]>,
    /// Accept only a table that this key signed, as `db key` prints it; answers are checked against it
    #[arg(long, value_name = "KEY", value_parser = parse_32, conflicts_with = "pin")]
    pub(crate) trust: Option<[u8; 32]>,
    /// Accept an older epoch of a trusted table than was seen, once its publisher went back
    #[arg(long)]
    pub(crate) allow_rollback: bool,
    /// Write the record's only value to this file unchanged, - for standard output: for files of a folder, and tables
    /// with one column
    #[arg(long, value_name = "FILE", conflicts_with_all = ["keys_from", "json"])]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) replace: Force,
    /// Where hints and registered keys are cached [default: $XDG_CACHE_HOME/blindcore or ~/.cache/blindcore]
    #[arg(long, env = "BLINDCORE_CACHE", value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Do not cache hints and registered keys, whatever --cache and its variable say
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Replace registered keys after this number of queries, such as 4096, or this time, such as 7d, or both, separated by a comma; for
    /// tables whose queries are under registered keys [default: 4096,7d]
    #[arg(long, value_name = "WHEN")]
    pub(crate) rotate_after: Option<String>,
}

/// 32 bytes in hexadecimal.
pub(crate) fn parse_32(text: &str) -> Result<[u8; 32], String> {
    let bytes = blindcore_wire::KeyForm::Hex.bytes(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| format!("{text:?} is not a digest or key; give 64 hexadecimal digits"))
}

fn parse_index(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("{text:?} is not a row number; say one from 0 on, decimal or 0x-hexadecimal"))
}

#[derive(Subcommand)]
pub(crate) enum Hw {
    /// Do a job of one of the engine's families on simulated hardware
    #[command(subcommand)]
    Run(HwRun),
    /// Everything that was measured of the hardware, beside the papers' figures
    #[command(after_help = "\
Examples:
  blindcore hw report                  a table to read
  blindcore hw report --json           the same rows for programs

Cycles are measured when it is asked, in simulation, and are exact. Clocks and areas are those that
`make -C hw syn` left in --results: before layout, in the libraries that they name.")]
    Report(HwReport),
    /// Machines compared: the best mapping of every point of a sweep, by a model of memories and lanes
    #[command(after_help = "\
Examples:
  blindcore hw explore --preset thesis-initial --out DIR    4,896 machines: CSV, Parquet and plots in DIR
  blindcore hw explore --preset beyond                      our own best chips, beside an H200 and a CPU
  blindcore hw explore my-sweep.toml --out DIR              a sweep of one's own; it goes on where it was stopped
  blindcore hw explore my-sweep.toml --json                 nothing kept; every point as JSON
  blindcore hw explore my-sweep.toml --out DIR --ray local  the same by tasks of Ray, also on several machines

The best mapping is exact: all that can be best is tried. docs/how-to/explore.md has the keys of sweeps and machines.")]
    Explore(HwExplore),
}

#[derive(Subcommand)]
pub(crate) enum HwRun {
    /// A real lookup on OnionChopper: its cycles, its record, the same bits as the CPU's
    #[command(after_help = "\
Examples:
  blindcore hw run lookup                              gold, in a table of the elements
  blindcore hw run lookup --key Fe --json
  blindcore hw run lookup people.db --key ada@example.org --device rtl:onionchopper-lwe

DIR is a database that `blindcore db build` made; small ones are best, for some 500,000 clocks are simulated
per second. The chips come from `make -C hw libraries`, which also installs what it needs.")]
    Lookup(HwLookup),
    /// A real circuit on SIFO's overlay: its clocks, its tables, the same bits as the CPU's
    Circuit(HwCircuit),
    /// A convolution of encrypted numbers on PH-EPU: its clocks, the same ciphertexts as the CPU's
    Sum(HwSum),
}

#[derive(clap::Args)]
pub(crate) struct HwLookup {
    /// The database's folder [default: a table of the chemical elements, by symbol]
    pub(crate) dir: Option<PathBuf>,
    /// Look up this key
    #[arg(long, allow_hyphen_values = true, conflicts_with = "index")]
    pub(crate) key: Option<String>,
    /// Look up this row of a table without keys, counted from 0
    #[arg(long, value_name = "I", value_parser = parse_index)]
    pub(crate) index: Option<u64>,
    /// The chip: rtl:onionchopper, rtl:onionchopper-gathered, rtl:onionchopper-lwe or rtl:onionchopper-deep
    #[arg(long, value_name = "NAME", default_value = "rtl:onionchopper")]
    pub(crate) device: String,
    /// The SSD's speed in 64-bit words a clock: 67/100 is the thesis's 10 GB/s at 2 GHz
    #[arg(long, value_name = "WORDS/CLOCKS", default_value = "67/100", allow_hyphen_values = true)]
    pub(crate) ssd: String,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl HwLookup {
    /// The SSD's speed as a fraction.
    pub(crate) fn ssd_rate(&self) -> anyhow::Result<(u16, u16)> {
        let parts = self.ssd.split_once('/').and_then(|(w, c)| Some((w.parse().ok()?, c.parse().ok()?)));
        parts.ok_or_else(|| {
            anyhow::anyhow!("--ssd {:?} is not WORDS/CLOCKS; say 67/100, or 1/16384 to 1/1", self.ssd)
        })
    }
}

#[derive(clap::Args)]
pub(crate) struct HwReport {
    /// Folder of the synthesis results [default: hw/syn/results]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Print the rows as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct HwExplore {
    /// A file with machine, axes, problems and constraints
    #[arg(required_unless_present_any = ["preset", "worker"], conflicts_with = "preset")]
    pub(crate) sweep: Option<PathBuf>,
    /// A sweep that comes with the command: the thesis's, or one beyond it
    #[arg(long, value_parser = blindcore_explore::sweep::PRESETS.map(|(name, _)| name))]
    pub(crate) preset: Option<String>,
    /// Folder for finished points, results and plots; without it nothing is kept
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Threads, or CPUs of --ray local [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Compute on Ray: HOST:PORT of a cluster, or local for one that is started on this machine
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) ray: Option<String>,
    /// A task of Ray: points from standard input, outcomes to standard output
    #[arg(long, hide = true, conflicts_with_all = ["preset", "out", "threads", "ray", "json"])]
    pub(crate) worker: bool,
    /// Print every point as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
