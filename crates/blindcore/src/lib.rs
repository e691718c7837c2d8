//! Compute on data that the machine doing the work must not see.
//!
//! ```text
//!   lookup    fetch a record          the server never learns which        ┐
//!   circuit   compute with somebody   neither sees the other's input       ├──▶ operations ──▶ Device: CPU, chips
//!   sum       add and weigh numbers   whoever computes sees none of them   ┘
//! ```
//!
//! Everything computes on a [`Device`], which [`device`] opens by name and the caller passes on. Five jobs:
//!
//! **Build a table, open its folder and get a key.** ([`lookup::Folder`]; `examples/get_from_folder.rs`)
//!
//! ```
//! # #[cfg(feature = "server")] fn job() -> Result<(), Box<dyn std::error::Error>> {
//! use blindcore::lookup;
//!
//! # let dir = tempfile::tempdir()?;
//! # let (csv, folder) = (dir.path().join("drugs.csv"), dir.path().join("drugs.db"));
//! std::fs::write(&csv, "name,class\naspirin,NSAID\nwarfarin,anticoagulant\n")?;
//! let device = blindcore::device("auto")?;
//! lookup::build(&csv, "name", &folder, &device)?;
//! let drugs = lookup::Folder::open(&folder, &device)?;
//! let record = drugs.get("warfarin")?.expect("it is in the table");
//! assert_eq!(record.get("class"), Some(&lookup::Value::Text("anticoagulant".into())));
//! # Ok(()) }
//! # #[cfg(feature = "server")] job().unwrap();
//! ```
//!
//! **Serve a folder**: `drugs.db` is the table `drugs`. Opening reads all of it, so an asynchronous program opens a host
//! before it starts, or on a thread of its own. New epochs are taken up by themselves, certificates and tokens on
//! [`Reloader::reload`](lookup::Reloader::reload). (`examples/serve_folder.rs`)
//!
//! ```no_run
//! # #[cfg(feature = "server")] async fn job() -> Result<(), Box<dyn std::error::Error>> {
//! use blindcore::lookup::Host;
//!
//! let device = blindcore::device("auto")?;
//! let host = Host::builder().table_dir("drugs.db").device(device).listen("127.0.0.1:0".parse()?).open()?;
//! let server = host.bind().await?;
//! println!("listening on {}", server.address()); // the port that was free, for port 0
//! server.run(async { /* until a signal */ }).await;
//! # Ok(()) }
//! ```
//!
//! **Look a key up over the network**, here blocking; [`lookup::Client`] is the same for asynchronous programs, where the
//! blocking one refuses to work. What a client fetches once an epoch is kept in `~/.cache/blindcore`, unless
//! [`Options::cache`](lookup::Options) says otherwise. (`examples/look_up.rs` has both.)
//!
//! ```no_run
//! # #[cfg(feature = "client")] fn job() -> Result<(), Box<dyn std::error::Error>> {
//! use blindcore::lookup::blocking::Client;
//!
//! let table = Client::connect("http://127.0.0.1:7700")?.table("drugs")?;
//! match table.get("aspirin")?.found {
//!     Some(record) => println!("{:?}", record.values),
//!     None => println!("not there"),
//! }
//! # Ok(()) }
//! ```
//!
//! **Add and weigh encrypted numbers.** (`examples/encrypted_sum.rs`)
//!
//! ```
//! use blindcore::sum::{Ciphertexts, Decryptor, Encoding, Evaluator, KeySize, Mode, Plaintexts, SecretKey, Weights};
//!
//! let device = blindcore::device("auto")?;
//! let secret = SecretKey::generate(KeySize::test_only(512)?, Mode::ShortExponent)?; // in use: KeySize::new(3072)?
//! // Who has the numbers encrypts them with the public key, each of at most 8 bits.
//! let evaluator = Evaluator::new(secret.public(), &device)?;
//! let numbers = Plaintexts::integers(secret.public(), &[3, -4, 5], Encoding::integers(8)?)?;
//! let encrypted = Ciphertexts::encrypt(evaluator.encryptor(), &numbers)?;
//! // Who computes sees neither the numbers nor the results.
//! let doubled = evaluator.add(&encrypted, &encrypted)?;
//! let score = evaluator.rerandomise(&evaluator.dot(&encrypted, &Weights::integers(&[10i64, 20, 30][..]))?)?;
//! // Who has the secret key reads the results.
//! let decryptor = Decryptor::new(&secret, &device)?;
//! let read = |c: &Ciphertexts| Plaintexts::decrypt(&decryptor, &c.numbers(evaluator.encryptor())?, c.form())?.to_i64();
//! assert_eq!((read(&doubled)?, read(&score)?), (vec![6, -8, 10], vec![100]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Compute a circuit with somebody.** (`examples/two_parties.rs`)
//!
//! ```
//! use blindcore::circuit::{Check, Circuit, Inputs, Learns, Setup, problems, session, to_bits};
//!
//! let (device, circuit) = (blindcore::device("auto")?, Circuit::new(&problems::make("millionaires32")?));
//! let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check: Check::None };
//! let (mut one, mut other) = std::os::unix::net::UnixStream::pair()?; // between machines: circuit::transport
//! let outputs = std::thread::scope(|scope| {
//!     let inputs = [(0, 5_000_000), (1, 7_500_000)].map(|(party, n)| Inputs::new().with(party, to_bits(n, 32)));
//!     let [ours, theirs] = inputs;
//!     let garbler = scope.spawn(move || session::garble(&mut one, setup, &ours, &mut ()));
//!     let outputs = session::evaluate(&mut other, setup, &theirs, &mut ())?;
//!     garbler.join().expect("no panic").map(|_| outputs)
//! })?;
//! let outputs = outputs.outputs.expect("both learn them");
//! assert_eq!(outputs[0], [false]); // the first has not more than the second
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Pages of items show examples of the crate that they come from: `blindcore_server::Host` is [`lookup::Host`] here.
//!
//! | feature | adds |
//! |---|---|
//! | `client` (default) | `lookup::Client` and `lookup::blocking` |
//! | `server` (default) | `lookup::build`, `lookup::Folder`, `lookup::Host`, `store` |
//! | `mysql`, `postgres`, `sqlite`, `parquet` | sources that databases are built from |
//! | `rtl` | simulated chips as devices |
//! | `bench` | `model`, the planner, and `bench`, what `blindcore bench` measures |
//! | `tls` | the module `tls`: certificates and keys from files |

#[cfg(feature = "server")]
mod folder;

pub use blindcore_accel::{Device, Operation, Registry};
#[cfg(feature = "bench")]
pub use blindcore_bench as bench;
#[cfg(feature = "bench")]
pub use blindcore_model as model;
#[cfg(feature = "server")]
pub use blindcore_store as store;
#[cfg(feature = "tls")]
pub use blindcore_tls as tls;

use blindcore_accel::OpenOptions;

/// Opens a device by name, with all of the process's cores: `auto`, `cpu`, `cpu:portable`, `cpu:avx2`, ...; only `auto`
/// chooses.
///
/// ```
/// let device = blindcore::device("cpu:portable")?;
/// assert_eq!(device.name(), "cpu:portable");
/// let error = blindcore::device("cpu:portabel").err().expect("a slip");
/// assert!(error.to_string().contains("did you mean cpu:portable?"));
/// # Ok::<(), blindcore::accel::Error>(())
/// ```
///
/// # Errors
/// No device has this name, this machine lacks what it needs, or the feature that adds it is not compiled in.
pub fn device(name: &str) -> Result<Device, blindcore_accel::Error> {
    devices().open(name, &OpenOptions::default())
}

/// The devices of this build, by name. A device of your own is added with [`Registry::with`].
#[must_use]
pub fn devices() -> Registry {
    let registry = Registry::new().with(blindcore_accel_cpu::Cpu);
    #[cfg(feature = "rtl")]
    let registry = registry.with(blindcore_accel_rtl::Chips);
    #[cfg(not(feature = "rtl"))]
    let registry = registry.without("rtl", "rtl");
    registry
}

/// Operations and devices: what a device or a scheme of one's own is made of.
pub mod accel {
    pub use blindcore_accel::*;
    pub use blindcore_math::Modulus;
}

/// Private lookup: fetch a record from a server that never learns which.
pub mod lookup {
    #[cfg(feature = "server")]
    pub use crate::folder::{Folder, FolderError, build};
    #[cfg(feature = "client")]
    pub use blindcore_client::{
        CacheDir, Client, Error, Lookup, Options, Progress, TableClient, TableDescription, TableSummary,
        Timings, Token, Traffic, Trust, blocking,
    };
    /// The schemes: parameters, the client's half and the server's half, without I/O.
    pub use blindcore_lookup as schemes;
    #[cfg(feature = "server")]
    pub use blindcore_protocol::Record;
    #[cfg(feature = "server")]
    pub use blindcore_server::{
        BoundHost, Config, Host, HostBuilder, HostError, MemoryLimit, Reloader, Stats, Tokens, TokensError,
    };
    #[cfg(feature = "server")]
    pub use blindcore_store::SourceSpec;
    #[cfg(feature = "server")]
    pub use blindcore_wire::Value;
}

/// Garbled circuits: two parties compute a function of both their inputs and show neither.
pub mod circuit {
    pub use blindcore_circuit::circuit::Circuit;
    pub use blindcore_circuit::gadgets::{to_bits, to_number};
    pub use blindcore_circuit::session::{Check, Inputs, Learns, Setup};
    pub use blindcore_circuit::*;
}

/// Paillier: add and weigh encrypted numbers.
pub mod sum {
    pub use blindcore_sum::ciphertexts::Ciphertexts;
    pub use blindcore_sum::encoding::{Encoding, Plaintexts};
    pub use blindcore_sum::evaluate::{Evaluator, Weights};
    pub use blindcore_sum::keys::{KeySize, Mode, PublicKey, SecretKey};
    pub use blindcore_sum::scheme::Decryptor;
    pub use blindcore_sum::*;
}
