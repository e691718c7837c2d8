//! Why the compiler refuses something.

use super::limits::{MAX_ADDRESSED, MAX_INSTRUCTIONS, MAX_STREAM};

/// Why a task can't be compiled or run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number is out of range.
    #[error("{what} is {got}, where {min} to {max} are carried; {remedy}")]
    Range {
        /// What.
        what: &'static str,
        /// Its value.
        got: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// A number is none of those that the hardware knows.
    #[error("{what} is {got}, where {of} are carried; {remedy}")]
    Choice {
        /// What.
        what: &'static str,
        /// Its value.
        got: u64,
        /// Those that are.
        of: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// The kernel does not fit.
    #[error(
        "a kernel of {kernel} {side} is over the {padded} of the padded input; pad more, or use a smaller one"
    )]
    Kernel {
        /// Rows or columns.
        side: &'static str,
        /// Of the kernel.
        kernel: usize,
        /// Of the input with its padding.
        padded: usize,
    },
    /// More numbers than are addressed.
    #[error("the task has more than the {MAX_ADDRESSED} {what} that are addressed; cut it into smaller ones")]
    Addressed {
        /// What is too many.
        what: &'static str,
    },
    /// A slice has another length than the task's.
    #[error("{got} {what} were given where the task has {want}; give them all, in the task's order")]
    Length {
        /// What.
        what: &'static str,
        /// How many came.
        got: usize,
        /// How many should.
        want: usize,
    },
    /// A weight does not fit its bits.
    #[error("weight {position} is {got}, where {bits} bits carry {min} to {max}; use wider weights")]
    Weight {
        /// Which, counted from 0.
        position: usize,
        /// Its value.
        got: i64,
        /// Bits of the task's weights.
        bits: u32,
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// The machine has no program.
    #[error("a machine without buffers, such as a CPU, runs tiles and has no programs; compile for a chip")]
    NoBuffers,
    /// A buffer is too small for what must lie in it at once.
    #[error("the {buffer} buffer has {got} B, where these sizes ask for {least} B; give it more")]
    Buffer {
        /// Which.
        buffer: &'static str,
        /// Its bytes.
        got: usize,
        /// The bytes that it needs.
        least: usize,
    },
    /// A program is too long to hold.
    #[error(
        "the program of element {element} on chip {chip} is over {MAX_INSTRUCTIONS} instructions; use more chips \
         or cut the task"
    )]
    Instructions {
        /// The chip.
        chip: usize,
        /// The element.
        element: usize,
    },
    /// A stream is too long to hold.
    #[error("the stream of chip {chip} is over {MAX_STREAM} instructions; use more chips or cut the task")]
    LongStream {
        /// The chip.
        chip: usize,
    },
    /// A program does what it may not.
    #[error("instruction {at} of element {element} on chip {chip} {why}; compile the program again")]
    Program {
        /// The chip.
        chip: usize,
        /// The element.
        element: usize,
        /// Which instruction, counted from 0.
        at: usize,
        /// What is wrong.
        why: String,
    },
    /// Programs together don't write every output once.
    #[error("output {output} is written {times} times by all elements together, not once; compile again")]
    Coverage {
        /// The output.
        output: usize,
        /// How often.
        times: usize,
    },
    /// A word is not an instruction.
    #[error("instruction {word:#018x} {why}; give what Word::encode makes")]
    Word {
        /// The word.
        word: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// What elements read over a run does not fit a chip's buffer.
    #[error(
        "the weights of chip {chip} need {got} words of its weight buffer, which has {most}; use more chips, narrower \
         weights, or cut the output channels"
    )]
    Memory {
        /// The chip.
        chip: usize,
        /// Words that there would have to be.
        got: usize,
        /// Words that there are.
        most: usize,
    },
    /// A stream does what it may not, or never ends.
    #[error("{at} of chip {chip} {why}; lower the programs again")]
    Stream {
        /// The chip.
        chip: usize,
        /// The instruction or the packet.
        at: String,
        /// What is wrong.
        why: String,
    },
    /// A negative weight's term has no inverse.
    #[error(
        "the negative term on its way to output {output} has no inverse: an input is not a unit of the group; check \
         the inputs"
    )]
    NoInverse {
        /// The output.
        output: u32,
    },
}

/// That `got` lies in `min..=max`.
pub(super) fn within(
    what: &'static str,
    got: usize,
    min: u64,
    max: u64,
    remedy: &'static str,
) -> Result<(), Error> {
    let got = got as u64;
    if (min..=max).contains(&got) { Ok(()) } else { Err(Error::Range { what, got, min, max, remedy }) }
}
