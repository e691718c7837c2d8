//! From programs to streams: the compiler's last step.
//!
//! ```text
//!   programs ──▶ stages of each element ──▶ a chip's instructions ──▶ packets of a chip ──▶ a stream
//!    tiles        loads, arithmetic, frees    equal ones get one mask   addresses, `after`    equal ones get one mask
//! ```
//!
//! **Nothing waits for what comes later.** A chip's controller works off instructions in order, and whatever one of
//! them waits for was put in motion by one before it: a load for slots that an earlier free gives back, a store for an
//! earlier reduction, a reduction for the store of what lay in its slot before, a place in an element's queue for
//! what is ahead in that queue. So, by induction over the order, each instruction ends once it has come. And packets,
//! which a chip takes in order: instructions wait only for instructions before them to leave the queue; ciphertexts
//! that overwrite others wait for `after` instructions, all of which are in packets sent before (the packet that holds
//! the last of them is closed first) and read what was sent before them. So each packet ends too. Chips never wait for
//! one another, and a packet for several is held up only by what each of them has already been sent.

mod chips;
mod emit;
mod merge;
mod numbers;
mod stages;

use super::error::{Error, within};
use super::isa::{self, Operation, Word};
use super::machine::GlobalBuffers;
use super::plan::{Dataflow, Plan};
use super::program::Programs;
use super::stream::Stream;
use super::writer::Writer;
use chips::merge_chips;
use emit::Emitter;
use merge::merge_elements;
use numbers::Numbers;
use stages::{ElementContext, digits};

/// Chips that a packet names.
const CHIPS: u64 = 32;
impl Stream {
    /// Puts the programs of all elements together into what the host sends the chips. Tags of outputs are their
    /// positions in the task. Residues are numbered as inputs are, or by `sources`, a residue for each input of the
    /// task; with [`Dataflow::Buckets`] number 2 i is what would be number i, and number 2 i + 1 its inverse.
    ///
    /// Programs are merged stage by stage: what several elements load or do becomes one instruction with a mask.
    /// Weights lie in the chip's buffer for the whole run, equal ones once, behind the 3 d + 1 words of the context at
    /// address 0. If all inputs fit the input buffer together, each keeps one address on all chips; else one that a
    /// load needs takes the place of the one whose next use is farthest (Belady), after the last load that read it.
    /// Data that several chips need is sent to all of them at once.
    ///
    /// # Errors
    /// The machine is not PH-EPU's or smaller; weights or sources are not the task's; weights don't fit the weight
    /// buffer; a program or the stream is too long.
    pub fn lower(
        programs: &Programs,
        weights: &[i64],
        sources: Option<&[u32]>,
        dataflow: Dataflow,
    ) -> Result<Self, Error> {
        Self::lower_into(GlobalBuffers::PHEPU, programs, weights, sources, dataflow)
    }

    /// [`Stream::lower`] for chips with other buffers.
    ///
    /// # Errors
    /// The same; or not even one ciphertext, or the context, fits its buffer.
    pub fn lower_into(
        global: GlobalBuffers,
        programs: &Programs,
        weights: &[i64],
        sources: Option<&[u32]>,
        dataflow: Dataflow,
    ) -> Result<Self, Error> {
        let (task, buffers) = (programs.assignment().task(), programs.buffers());
        let chips = programs.assignment().chips().len();
        task.check_weights(weights)?;
        check_machine(programs, dataflow)?;
        let count = |sources: &[u32]| (sources.len() == task.inputs()).then_some(());
        if let Some(sources) = sources {
            let length = Error::Length { what: "sources", got: sources.len(), want: task.inputs() };
            count(sources).ok_or(length)?;
        }
        let buckets = dataflow == Dataflow::Buckets;
        let (digits, width) = if buckets { digits(task.weight_bits()) } else { (1, task.weight_bits()) };
        let words = buffers.ciphertext_cycles() as usize;
        let context = 3 * words as u64 + 1;
        let remedy = "use larger buffers";
        let (most_inputs, most_weights) = (1 << 16, 1 << 16); // what instructions address
        within("the input buffer in words", global.input_words as usize, words as u64, most_inputs, remedy)?;
        within("the weight buffer in words", global.weight_words as usize, context, most_weights, remedy)?;
        let numbers = Numbers::new(task, sources, buckets)?;
        let frames = global.input_words as usize / words;
        let element = ElementContext { task, buffers, weights, numbers: &numbers, dataflow, digits, width };
        let mut lists = Vec::with_capacity(chips);
        for (chip, share) in programs.assignment().chips().iter().enumerate() {
            let channels = share.channels.len().div_ceil(share.partition.channels);
            let plan = match dataflow {
                Dataflow::BitSerial => Plan::new(task, buffers, channels),
                Dataflow::Buckets => Plan::buckets(task, buffers, channels, digits, width),
            };
            let mut elements = Vec::new();
            for tile in programs.tiles().iter().filter(|tile| tile.chip == chip) {
                let program = Writer::new(task, buffers, plan).write(tile);
                let program = program.ok_or(Error::Instructions { chip, element: tile.element })?;
                elements.push((1u16 << tile.element, element.stages(plan, &program)));
            }
            let items = merge_elements(chip, &elements)?;
            let operation = Operation::Context { digits: words as u8, width: width as u8, global: 0 };
            let all = elements.iter().fold(0, |mask, (element, _)| mask | element);
            drop(elements);
            let mut emitter = Emitter::new(chip, words, frames, &global, numbers.fixed(frames));
            emitter.begin(Word::new(all, operation))?;
            lists.push(emitter.emit(&items)?);
        }
        let packets = merge_chips(words, lists);
        Ok(Self { digits: words, width, chips, packets })
    }
}

/// That the instructions reach all that programs use.
fn check_machine(programs: &Programs, dataflow: Dataflow) -> Result<(), Error> {
    let (machine, buffers) = (programs.assignment().machine(), programs.buffers());
    let least_inputs = if dataflow == Dataflow::Buckets { 4 } else { 2 };
    for (what, got, min, max) in [
        ("the number of chips", machine.chip_count(), 1, CHIPS),
        ("the number of elements", machine.elements(), 1, isa::ELEMENTS as u64),
        ("the number of inputs that an element holds", buffers.input_slots(), least_inputs, 16),
        ("the number of outputs that an element holds", buffers.output_slots(), 1, 2),
        ("the number of partial-sum terms", buffers.terms, 8, isa::TERMS as u64),
        ("the size of an element's weight buffer in bytes", buffers.weight_bytes, 64, 9 << 10),
    ] {
        within(what, got, min, max, "compile for Machine::phepu")?;
    }
    if buffers.weight_bytes % 64 != 0 {
        return Err(Error::Choice {
            what: "the size of an element's weight buffer in bytes",
            got: buffers.weight_bytes as u64,
            of: "multiples of 64",
            remedy: "compile for Machine::phepu",
        });
    }
    Ok(())
}
