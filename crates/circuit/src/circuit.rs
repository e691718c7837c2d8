//! A circuit, ready for two parties: what they agree on, and the programs that they run one after the other.

use std::io;
use std::path::Path;
use std::sync::Arc;

use blindcore_accel::garble::{Program, ProgramBuilder};

use crate::formats::FormatError;
use crate::netlist::{Kind, Netlist, Wire};
pub use crate::ports::{Form, NotAscending, PortShape};
use crate::stream::Streamed;
use crate::windows::Windows;

/// A circuit as both parties run it.
///
/// Slot 0 of its programs holds the constant 0, slot 1 the constant 1, then come the bits of all inputs.
#[derive(Clone, Debug)]
pub struct Circuit {
    inputs: Vec<PortShape>,
    outputs: Vec<PortShape>,
    output_slots: Vec<u32>,
    slots: usize,
    source: Source,
    /// Moves results to inputs between two rounds.
    feedback: Option<Arc<Program>>,
    ands: u64,
    rounds: u64,
    digest: [u8; 32],
}

/// Gates of a circuit whose programs are kept; those of a larger one take more memory than its gates, and more than it takes
/// time to compile them while they are run.
const KEPT: usize = 1 << 20;

/// Where programs come from.
#[derive(Clone, Debug)]
enum Source {
    /// Compiled.
    Memory(Vec<Arc<Program>>),
    /// Compiled while they are run.
    Windows(Arc<Windows>),
}

/// Why a circuit can't be run in rounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoundsError {
    /// No round.
    #[error("a circuit runs one round at least, not 0")]
    None,
    /// There is no input for an output to go to.
    #[error(
        "{outputs} outputs have only {inputs} inputs to go back to; a round's results are the next one's first inputs"
    )]
    Outputs {
        /// Outputs.
        outputs: usize,
        /// Inputs.
        inputs: usize,
    },
    /// Output and input differ in width.
    #[error("output {output:?} has {got} bits and goes back to input {input:?} of {want}; make them as wide")]
    Width {
        /// The output.
        output: String,
        /// Its bits.
        got: usize,
        /// The input.
        input: String,
        /// Its bits.
        want: usize,
    },
}

impl Circuit {
    /// A netlist, compiled.
    #[must_use]
    pub fn new(netlist: &Netlist) -> Self {
        Self::of(netlist.clone())
    }

    /// The same of a netlist that is not needed any more; a large one is compiled while it is run, window after window.
    #[must_use]
    pub fn of(netlist: Netlist) -> Self {
        let (inputs, outputs, gates) =
            (netlist.input_shapes(), netlist.output_shapes(), netlist.gates().len());
        let digest = digest(&netlist);
        let mut circuit = Self::of_windows(Arc::new(Windows::of_netlist(netlist)), inputs, outputs, digest);
        if gates <= KEPT
            && let Source::Windows(windows) = &circuit.source
            && let Ok(programs) = windows.all_programs()
        {
            // They use slots again, so they need fewer than programs that run once.
            circuit.slots = programs.iter().map(|program| program.slots()).max().unwrap_or(circuit.slots);
            circuit.source = Source::Memory(programs);
        }
        circuit
    }

    fn of_windows(
        windows: Arc<Windows>,
        inputs: Vec<PortShape>,
        outputs: Vec<PortShape>,
        digest: [u8; 32],
    ) -> Self {
        Self {
            inputs,
            outputs,
            output_slots: windows.output_slots.clone(),
            slots: windows.slots,
            ands: windows.ands,
            source: Source::Windows(windows),
            feedback: None,
            rounds: 1,
            digest,
        }
    }

    /// A file in a Bristol format that is larger than memory: what is kept of it lies in `folder` and goes with the
    /// circuit, thirteen bytes a gate; memory is two bits a wire and what is alive. Both parties have to stream, for its
    /// digest is of the file as it is read.
    ///
    /// # Errors
    /// The file can't be read or is no such netlist; there is no room in the folder.
    pub fn stream(path: &Path, folder: &Path) -> Result<Self, FormatError> {
        let Streamed { windows, inputs, outputs, digest } = Streamed::new(path, folder)?;
        Ok(Self::of_windows(Arc::new(windows), inputs, outputs, digest))
    }

    /// The circuit run `rounds` times: the outputs of a round are the first inputs of the next, the other inputs stay.
    /// Memory is that of one round, so this is how computations of any length are streamed.
    ///
    /// # Errors
    /// No round; or outputs are more than inputs or of other widths.
    pub fn in_rounds(mut self, rounds: u64) -> Result<Self, RoundsError> {
        if rounds == 0 {
            return Err(RoundsError::None);
        }
        if self.outputs.len() > self.inputs.len() {
            let (outputs, inputs) = (self.outputs.len(), self.inputs.len());
            return Err(RoundsError::Outputs { outputs, inputs });
        }
        for (output, input) in self.outputs.iter().zip(&self.inputs) {
            if output.width != input.width {
                let (output, got) = (output.name.clone(), output.width);
                let (input, want) = (input.name.clone(), input.width);
                return Err(RoundsError::Width { output, got, input, want });
            }
        }
        // An output may be an input's own wire, so all are read before any is written.
        let first = self.slots as u32;
        let mut moves = ProgramBuilder::new(self.slots + self.output_slots.len());
        let mut all = || {
            for (i, slot) in self.output_slots.iter().enumerate() {
                moves.xor(first + i as u32, *slot, 0)?;
            }
            for i in 0..self.output_slots.len() as u32 {
                moves.xor(2 + i, first + i, 0)?;
            }
            Ok::<(), blindcore_accel::garble::ProgramError>(())
        };
        all().expect("these slots are there");
        let moves = moves.finish();
        self.slots = self.slots.max(moves.slots());
        self.feedback = (rounds > 1).then(|| Arc::new(moves));
        self.rounds = rounds;
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"blindcore circuit in rounds").update(&self.digest).update(&rounds.to_le_bytes());
        self.digest = *hasher.finalize().as_bytes();
        Ok(self)
    }

    /// The inputs.
    #[must_use]
    pub fn inputs(&self) -> &[PortShape] {
        &self.inputs
    }

    /// The outputs.
    #[must_use]
    pub fn outputs(&self) -> &[PortShape] {
        &self.outputs
    }

    /// What both parties compare before they begin: a hash of ports, gates and rounds.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// AND gates of all rounds.
    #[must_use]
    pub fn ands(&self) -> u64 {
        // More than can ever run; who garbles them is refused.
        self.ands.saturating_mul(self.rounds)
    }

    /// Slots that labels need.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The slots of an input's bits.
    #[must_use]
    pub fn input_slots(&self, input: usize) -> std::ops::Range<u32> {
        let first = 2 + self.inputs[..input].iter().map(|p| p.width).sum::<usize>() as u32;
        first..first + self.inputs[input].width as u32
    }

    /// The slots of all outputs' bits, in order.
    #[must_use]
    pub fn output_slots(&self) -> &[u32] {
        &self.output_slots
    }

    /// The programs in the order in which they are run.
    ///
    /// # Errors
    /// What a streamed circuit keeps on disk can't be read.
    pub fn programs(&self) -> impl Iterator<Item = io::Result<Arc<Program>>> {
        (0..self.rounds).flat_map(move |round| {
            let between = self.feedback.iter().filter(move |_| round > 0).map(|p| Ok(p.clone()));
            let (kept, windows) = match &self.source {
                Source::Memory(kept) => (&kept[..], None),
                Source::Windows(windows) => (&[][..], Some(windows)),
            };
            let compiled = windows.into_iter().flat_map(Windows::programs);
            between.chain(kept.iter().map(|p| Ok(p.clone()))).chain(compiled)
        })
    }

    /// Bits of all outputs, cut into outputs.
    #[must_use]
    pub fn cut_outputs(&self, bits: &[bool]) -> Vec<Vec<bool>> {
        let mut rest = bits;
        let cut = |port: &PortShape| {
            let (these, others) = rest.split_at(port.width);
            rest = others;
            these.to_vec()
        };
        self.outputs.iter().map(cut).collect()
    }
}

/// The first eight bytes of a digest, as messages and the command show them.
#[must_use]
pub fn short_digest(digest: &[u8; 32]) -> String {
    hexadecimal(&digest[..8])
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A hash of everything that a netlist computes, as [`Circuit::digest`] has it; names have no part in it, nor has the order of a
/// gate's operands: a circuit by name and the file that is made of it are the same.
#[must_use]
pub fn digest(netlist: &Netlist) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"blindcore netlist 2");
    for (ports, kind) in [(netlist.inputs(), b"i"), (netlist.outputs(), b"o")] {
        hasher.update(kind).update(&(ports.len() as u64).to_le_bytes());
        for port in ports {
            hasher.update(&(port.wires.len() as u64).to_le_bytes());
        }
    }
    let wire = |w: &Wire| w.0.to_le_bytes();
    netlist.outputs().iter().flat_map(|p| &p.wires).for_each(|w| {
        hasher.update(&wire(w));
    });
    // Large pieces, of which the hasher takes many chunks at once.
    let mut block = vec![0; 9 << 14];
    for gates in netlist.gates().chunks(1 << 14) {
        let (bytes, _) = block[..9 * gates.len()].as_chunks_mut::<9>();
        for (bytes, gate) in bytes.iter_mut().zip(gates) {
            let [a, b] = gate.reads();
            bytes[0] = u8::from(gate.kind() == Kind::And);
            bytes[1..5].copy_from_slice(&wire(&a.min(b)));
            bytes[5..].copy_from_slice(&wire(&a.max(b)));
        }
        hasher.update(&block[..9 * gates.len()]);
    }
    *hasher.finalize().as_bytes()
}
