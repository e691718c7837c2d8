//! Streams: what the host sends to the chips of a card for a whole run.

use std::fmt;

use serde::Serialize;

use super::isa::{Operation, Places, WORD_BITS, Word};

/// Instructions of a packet, at most, when [`Stream::lower`] makes it.
pub const PACKET_INSTRUCTIONS: usize = 64;

/// Instructions that a chip takes before its controller works them off, at most.
pub const QUEUED_INSTRUCTIONS: usize = 2048;

/// A run of the chips: packets in the order in which the host sends them.
///
/// A chip works off its packets strictly in order; its controller works off instructions in order, behind a queue of
/// [`QUEUED_INSTRUCTIONS`]. Each chip begins with a context and ends with an [`Operation::End`].
///
/// `after` counts the instructions that the controller has finished since the reset. Words carry four instructions
/// each, and those that fill the last word of a packet up ([`Operation::Nop`]) count as well.
#[derive(Clone, PartialEq, Eq)]
pub struct Stream {
    /// Digits of 256 bits of a ciphertext: 4, 8 or 16.
    pub digits: usize,
    /// Bits of a weight as elements read it: 2, 4 or 8.
    pub width: u32,
    /// Chips of the card that it is for; some may be sent nothing.
    pub chips: usize,
    /// What is sent.
    pub packets: Vec<Packet>,
}

/// What goes to one chip, or to several at once.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Which chips, a bit each.
    pub chips: u32,
    /// Instructions that each must have finished before it takes this.
    pub after: u32,
    /// What.
    pub body: Body,
}

/// What a packet holds.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Body {
    /// Instructions, as [`Word::encode`] makes them.
    Instructions(Vec<u64>),
    /// Ciphertexts for the chip's input buffer, one after the other.
    Inputs {
        /// Where the first goes, in words.
        address: u32,
        /// Which residues, of d words each.
        inputs: Vec<u32>,
    },
    /// Words for the chip's weight buffer.
    Weights {
        /// Where the first goes, in words.
        address: u32,
        /// The words, lowest bits first.
        words: Vec<[u64; 4]>,
    },
    /// What depends on the modulus m alone, for the chip's weight buffer: m, R^2 modulo m and R modulo m, of d words
    /// each, and n'.
    Context {
        /// Where it goes, in words.
        address: u32,
    },
}

impl Packet {
    /// Words of 256 bits after the header, when a ciphertext has `digits` of them.
    #[must_use]
    pub fn words(&self, digits: usize) -> usize {
        match &self.body {
            Body::Instructions(instructions) => instructions.len().div_ceil(WORD_BITS / 64),
            Body::Inputs { inputs, .. } => inputs.len() * digits,
            Body::Weights { words, .. } => words.len(),
            Body::Context { .. } => 3 * digits + 1,
        }
    }

    /// Instructions that a chip finishes because of it, those that fill its last word up among them.
    #[must_use]
    pub fn finishes(&self) -> usize {
        match &self.body {
            Body::Instructions(instructions) => instructions.len().next_multiple_of(WORD_BITS / 64),
            _ => 0,
        }
    }
}

/// How many instructions of each kind, all chips together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "named as the instructions are")]
pub struct WordCounts {
    pub end: u64,
    pub load_input: u64,
    pub load_weights: u64,
    pub store: u64,
    pub context: u64,
    pub free: u64,
    pub clear: u64,
    pub accumulate: u64,
    pub align: u64,
    pub invert: u64,
    pub reduce: u64,
    /// Multiplications, squarings, powers and inverses of mode 2.
    pub basic: u64,
    pub nop: u64,
    /// Words that are not an instruction.
    pub unknown: u64,
}

impl WordCounts {
    fn of(&mut self, word: u64) -> &mut u64 {
        let Ok(word) = Word::decode(word) else { return &mut self.unknown };
        match word.operation {
            Operation::End => &mut self.end,
            Operation::LoadInput { .. } => &mut self.load_input,
            Operation::LoadWeights { .. } => &mut self.load_weights,
            Operation::Store { .. } => &mut self.store,
            Operation::Context { .. } => &mut self.context,
            Operation::Free { .. } => &mut self.free,
            Operation::Clear { .. } => &mut self.clear,
            Operation::Accumulate { .. } => &mut self.accumulate,
            Operation::Align { .. } => &mut self.align,
            Operation::Invert { .. } => &mut self.invert,
            Operation::Reduce { .. } => &mut self.reduce,
            Operation::Multiply { .. }
            | Operation::Square { .. }
            | Operation::Power { .. }
            | Operation::Inverse { .. } => &mut self.basic,
            Operation::Nop => &mut self.nop,
        }
    }
}

/// What [`Stream::summary`] says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamSummary {
    /// Packets.
    pub packets: usize,
    /// Instructions that chips work off, each chip's own.
    pub instructions: WordCounts,
    /// Words of 256 bits from the host, headers too.
    pub host_words: u64,
    /// Words that chips take, each chip's own: those of a packet for several chips count for each.
    pub chip_words: u64,
    /// Ciphertexts from the host.
    pub host_ciphertexts: u64,
    /// Ciphertexts that chips take, each chip's own.
    pub chip_ciphertexts: u64,
    /// Words of weights from the host.
    pub host_weight_words: u64,
}

impl Stream {
    /// How many instructions and words there are.
    #[must_use]
    pub fn summary(&self) -> StreamSummary {
        let mut summary = StreamSummary {
            packets: self.packets.len(),
            instructions: WordCounts::default(),
            host_words: 0,
            chip_words: 0,
            host_ciphertexts: 0,
            chip_ciphertexts: 0,
            host_weight_words: 0,
        };
        for packet in &self.packets {
            let chips = u64::from(packet.chips.count_ones());
            let words = 1 + packet.words(self.digits) as u64;
            summary.host_words += words;
            summary.chip_words += words * chips;
            match &packet.body {
                Body::Instructions(instructions) => {
                    instructions.iter().for_each(|word| *summary.instructions.of(*word) += chips);
                }
                Body::Inputs { inputs, .. } => {
                    summary.host_ciphertexts += inputs.len() as u64;
                    summary.chip_ciphertexts += inputs.len() as u64 * chips;
                }
                Body::Weights { words, .. } => summary.host_weight_words += words.len() as u64,
                Body::Context { .. } => {}
            }
        }
        summary
    }
}

/// A listing: packets, and the instructions in them. Of weights it says where they go, not what they are.
impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chips = blindcore_units::counted(self.chips, "chip");
        writeln!(f, "; {} digits, weights of {} bits, {chips}", self.digits, self.width)?;
        let mut finished = vec![0; u32::BITS as usize];
        for packet in &self.packets {
            let end =
                |address: u32| (u64::from(address) + packet.words(self.digits) as u64).saturating_sub(1);
            let chips = Places(packet.chips);
            write!(f, "chip {chips}: ")?;
            match &packet.body {
                Body::Instructions(instructions) => {
                    let first = finished.iter().enumerate().find(|(chip, _)| packet.chips >> chip & 1 == 1);
                    let first = first.map_or(0, |(_, finished)| *finished);
                    write!(f, "{} instructions", instructions.len())?;
                    for (i, word) in instructions.iter().enumerate() {
                        match Word::decode(*word) {
                            Ok(word) => write!(f, "\n  {:6}  {word}", first + i)?,
                            Err(_) => write!(f, "\n  {:6}  {word:#018x}, no instruction", first + i)?,
                        }
                    }
                    for (chip, finished) in finished.iter_mut().enumerate() {
                        *finished += if packet.chips >> chip & 1 == 1 { packet.finishes() } else { 0 };
                    }
                }
                Body::Inputs { address, inputs } if !inputs.is_empty() => {
                    write!(f, "inputs {} to words {address}..{}", Runs(inputs), end(*address))?;
                }
                Body::Weights { address, words } if !words.is_empty() => {
                    write!(f, "weights to words {address}..{}", end(*address))?;
                }
                Body::Context { address } => write!(f, "context to words {address}..{}", end(*address))?,
                Body::Inputs { .. } | Body::Weights { .. } => f.write_str("nothing")?,
            }
            match packet.after {
                0 => writeln!(f)?,
                after => writeln!(f, "; after {after} instructions")?,
            }
        }
        Ok(())
    }
}

/// Numbers, those that follow one another together: `3..7 9`.
struct Runs<'a>(&'a [u32]);

impl fmt::Display for Runs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, run) in self.0.chunk_by(|x, y| x.checked_add(1) == Some(*y)).enumerate() {
            f.write_str(if i == 0 { "" } else { " " })?;
            match run {
                [one] => write!(f, "{one}")?,
                _ => write!(f, "{}..{}", run[0], run[run.len() - 1])?,
            }
        }
        Ok(())
    }
}
