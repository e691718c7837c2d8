//! Two parties and a circuit.
//!
//! ```text
//!   garbler                                                    evaluator
//!   hello: digest, scheme, who supplies what, who learns ◀────▶ the same; both compare
//!   offset, labels                 ◀── oblivious transfer ──▶  labels of its own inputs
//!   labels of its inputs           ──────────────────────────▶
//!   tables, piece by piece         ──────────────────────────▶  evaluates while the next ones are made
//!   decoding of output labels      ──────────────────────────▶  checks and learns them    (unless only the garbler does)
//!   checks and learns the outputs  ◀──────────────────────────  labels of the outputs     (else an end)
//!   an end                         ──────────────────────────▶
//! ```
//!
//! Of two parties over a line that can break, one always sends the last message and can't know whether it arrived. Here that
//! is the garbler, which by then knows that the evaluator has its outputs. Until the garbler sends the decoding, nobody
//! can have learned anything, and an error says so; from there on it says who may have. A side that holds verified
//! outputs returns them, with [`Outcome::doubt`] where it does not know about the other.
//!
//! The hello has had the same length in each version, so that peers of two versions tell each other which they are. Version 2
//! has decoding rows in place of colours, and an end from the garbler.
//!
//! Both follow the protocol and are curious: that is what is protected against. Beyond it, a garbler notices outputs
//! that were made up, and [`Check::Malicious`] keeps an evaluator from learning the offset in the transfers. A garbler
//! that garbles another circuit is not noticed; authenticated garbling (ARCHITECTURE.md) would be.
//!
//! A session has its own offset, permutation key and gate numbers from 0; nothing of it is used twice.

mod decoding;
mod greeting;
mod hello;
mod message;
pub mod owners;
mod two_party;

use std::collections::BTreeMap;
use std::io;

use blindcore_accel::Device;
/// Told after each piece how many AND gates are done, and of how many.
pub use blindcore_units::Progress;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

pub use crate::ot::extension::Check;
pub use greeting::{Arrivals, Greeting, Peer};
pub use hello::{Garbling, Learns, Role, check_size};
pub use two_party::{evaluate, evaluate_for, garble, garble_by, garble_for};

use crate::circuit::Circuit;
use crate::ot;

/// What a party brings to a session besides its inputs; both must say the same of all but the device.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The circuit.
    pub circuit: &'a Circuit,
    /// Where labels are garbled or evaluated.
    pub device: &'a Device,
    /// Which party learns the outputs.
    pub learns: Learns,
    /// Whether the evaluator's choices are checked in the oblivious transfers.
    pub check: Check,
}

/// The inputs that a party supplies: bits by the input's place, least significant first. Wiped when dropped.
#[derive(Clone, Default)]
pub struct Inputs(BTreeMap<usize, Vec<bool>>);

impl Inputs {
    /// No inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds input number `input`; a second value replaces the first.
    #[must_use]
    pub fn with(mut self, input: usize, bits: Vec<bool>) -> Self {
        if let Some(mut old) = self.0.insert(input, bits) {
            old.zeroize();
        }
        self
    }

    /// Whether a value for this input is here.
    #[must_use]
    pub fn has(&self, input: usize) -> bool {
        self.0.contains_key(&input)
    }

    /// All bits with their slots in the circuit's programs, input by input.
    fn bits(&self, circuit: &Circuit) -> Result<Zeroizing<Vec<(u32, bool)>>, SessionError> {
        let count = self.0.values().map(Vec::len).sum();
        let mut all = Zeroizing::new(Vec::with_capacity(count));
        for (input, bits) in &self.0 {
            let Some(port) = circuit.inputs().get(*input) else {
                return Err(SessionError::NoSuchInput { input: *input, inputs: circuit.inputs().len() });
            };
            if bits.len() != port.width {
                return Err(SessionError::InputWidth {
                    name: port.name.clone(),
                    got: bits.len(),
                    want: port.width,
                });
            }
            port.check(bits)?;
            all.extend(circuit.input_slots(*input).zip(bits.iter().copied()));
        }
        Ok(all)
    }
}

impl Zeroize for Inputs {
    fn zeroize(&mut self) {
        self.0.values_mut().for_each(Zeroize::zeroize);
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for Inputs {}

/// What came of a session.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The outputs' bits, least significant first; `None` for who does not learn them.
    pub outputs: Option<Vec<Vec<bool>>>,
    /// AND gates.
    pub ands: u64,
    /// XOR gates.
    pub xors: u64,
    /// Bytes of tables.
    pub table_bytes: u64,
    /// From the beginning to the first piece of tables, sent or received.
    pub first_table: std::time::Duration,
    /// From the beginning to the end.
    pub time: std::time::Duration,
    /// What is not known of the peer, in a sentence, where the connection broke after everything was done here.
    pub doubt: Option<String>,
}

/// Why a session ended without a result. No message says anything of an input.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Somebody that is needed did not come.
    #[error("{cause}{missing}")]
    Waiting {
        /// Why nobody is waited for any more.
        cause: String,
        /// Who is missing, after a semicolon; empty in a session of two.
        missing: String,
    },
    /// The peer closed the connection.
    #[error("the peer closed the connection {during}; nothing was learned, run both sides again")]
    Gone {
        /// What was waited for.
        during: &'static str,
    },
    /// The connection broke where others may already have learned something.
    #[error("{cause}; {who}, and this side did not: ask before you run again")]
    Unsure {
        /// What happened.
        cause: String,
        /// What others may have learned.
        who: &'static str,
    },
    /// The peer was silent for too long.
    #[error(
        "the peer was silent for longer than {limit} {during}; nothing was learned; is it running, and is {limit} long enough?"
    )]
    Silent {
        /// Which limit held: what it is named after.
        limit: &'static str,
        /// What was waited for.
        during: &'static str,
    },
    /// An owner did not give what was due from it.
    #[error(
        "{who} {what} while its inputs were due; nothing was learned; it may not have reached the evaluator: see what both say, \
         check that owner's --evaluator, and run all sides again"
    )]
    Owner {
        /// Which owner.
        who: String,
        /// What it did.
        what: &'static str,
    },
    /// The connection failed.
    #[error("the connection failed {during}: {source}")]
    Io {
        /// What was waited for.
        during: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The peer sent another message, or one of another length.
    #[error("the peer sent {got} where {want} was due; it runs another version or is not blindcore")]
    Protocol {
        /// What came.
        got: String,
        /// What should have.
        want: String,
    },
    /// The peer speaks TLS, and this side does not.
    #[error(
        "the peer speaks TLS and this side does not; both sides give --cert, --key and --trust, or neither does"
    )]
    SpeaksTls,
    /// Both sides have to say the same.
    #[error("the peer has {what} {theirs}, this side {ours}; {remedy}")]
    Differs {
        /// What.
        what: &'static str,
        /// The peer's.
        theirs: String,
        /// This side's.
        ours: String,
        /// What to do.
        remedy: &'static str,
    },
    /// An input that nobody or everybody supplies.
    #[error(
        "input {input} ({name:?}) is supplied by {by}; each must be given by exactly one party, with --input"
    )]
    Supply {
        /// Which input.
        input: usize,
        /// Its name.
        name: String,
        /// Which party supplies it.
        by: &'static str,
    },
    /// There is no such input.
    #[error("there is no input {input}; the circuit has {inputs}, counted from 0")]
    NoSuchInput {
        /// What was asked for.
        input: usize,
        /// How many there are.
        inputs: usize,
    },
    /// More inputs than a session takes.
    #[error(
        "a session takes at most {limit} inputs, and this circuit has {got}; join inputs into wider ones"
    )]
    Inputs {
        /// How many there are.
        got: usize,
        /// The limit.
        limit: usize,
    },
    /// More bits than a session carries.
    #[error(
        "the circuit has {got} bits of {what} and a session carries at most {limit}; cut it into several"
    )]
    Bits {
        /// Inputs or outputs.
        what: &'static str,
        /// Their bits.
        got: usize,
        /// The limit.
        limit: usize,
    },
    /// A value of another width.
    #[error("input {name:?} has {want} bits, and {got} were given")]
    InputWidth {
        /// Which input.
        name: String,
        /// Its bits here.
        got: usize,
        /// Its bits in the circuit.
        want: usize,
    },
    /// A value for which the circuit is not right.
    #[error(transparent)]
    NotAscending(#[from] crate::circuit::NotAscending),
    /// The evaluator returned what is not a label of an output.
    #[error(
        "the label that came back for output bit {bit} is neither of its two: it was changed on the way, or the peer is faulty or \
         cheats; with --cert, --key and --trust nobody on the way can change anything"
    )]
    Label {
        /// Which bit of all outputs.
        bit: usize,
    },
    /// The decoding of an output does not fit its label.
    #[error(
        "output bit {bit} can't be decoded: what the peer sent was changed on the way, or the peer is faulty or cheats; \
         nothing was learned, and with --cert, --key and --trust nobody on the way can change anything"
    )]
    Row {
        /// Which bit of all outputs.
        bit: usize,
    },
    /// Oblivious transfer failed.
    #[error(transparent)]
    Transfer(ot::OtError),
    /// What came in oblivious transfer is what no honest peer sends.
    #[error(
        "{0}; run both sides again, and with --cert, --key and --trust nobody on the way can change anything"
    )]
    Altered(ot::OtError),
    /// The device refused.
    #[error(transparent)]
    Device(#[from] blindcore_accel::Error),
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness: {0}")]
    Randomness(getrandom::Error),
}

impl From<ot::OtError> for SessionError {
    fn from(error: ot::OtError) -> Self {
        match error {
            ot::OtError::Io(source) => SessionError::io("during oblivious transfer", source),
            ot::OtError::Randomness(source) => SessionError::Randomness(source),
            altered @ (ot::OtError::Point { .. } | ot::OtError::Check { .. }) => {
                SessionError::Altered(altered)
            }
            other => SessionError::Transfer(other),
        }
    }
}

impl SessionError {
    /// What happened, without what it means.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Gone { during } => format!("the peer closed the connection {during}"),
            Self::Silent { limit, during } => format!("the peer was silent for longer than {limit} {during}"),
            other => other.to_string(),
        }
    }

    /// The same to an owner, which waits for all others, and so longer.
    fn for_owner(self) -> Self {
        match self {
            Self::Silent { during, .. } => {
                Self::Silent { limit: "the larger of --timeout and --wait", during }
            }
            other => other,
        }
    }

    /// The same of an owner, to a garbler.
    fn of_owner(self, who: String) -> Self {
        match self {
            Self::Gone { .. } => Self::Owner { who, what: "closed the connection" },
            Self::Silent { .. } => Self::Owner { who, what: "was silent for longer than --timeout" },
            other => other,
        }
    }

    /// The same where others may have learned something.
    fn unsure(self, who: &'static str) -> Self {
        Self::Unsure { cause: self.cause(), who }
    }

    fn io(during: &'static str, source: io::Error) -> Self {
        use io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock,
        };
        match source.kind() {
            UnexpectedEof | BrokenPipe | ConnectionReset | ConnectionAborted => SessionError::Gone { during },
            WouldBlock | TimedOut => SessionError::Silent { limit: "--timeout", during },
            _ => SessionError::Io { during, source },
        }
    }
}
