//! The compiler of PH-EPU: a convolution or a matrix product becomes tiles, tiles become programs, and programs
//! what the host sends the chips.
//!
//! ```text
//!   Task ──▶ Assignment::search ──▶ tiles ──▶ one multi-exponentiation each, on the threads of a CPU
//!   shape     chips, then              └────▶ Programs::compile ──▶ check ──▶ interpret, which counts
//!             Para_H x Para_W x Para_C          loads, partial sums, stores
//!                                               └──▶ Stream::lower ──▶ execute, or a card
//!                                                     packets of words (isa), data and addresses
//! ```
//!
//! Source: the PH-EPU paper, Fig. 15.4.2 (the machine), 15.4.4 (bit-serial partial sums), 15.4.5 (assignment).
//! Nothing here knows ciphertexts, nor needs a simulator: [`interpret`] runs programs and [`Stream::execute`] streams over
//! any commutative [`Group`]. Residues modulo n^2 are one, on any device ([`residues`]); the integers modulo a prime,
//! under addition, another.
//!
//! ```
//! use blindcore_accel_rtl::phepu::compiler::{Assignment, Convolution, Machine, Programs, Task, interpret, IntegersModulo};
//!
//! // Two 3 x 3 filters over a 5 x 4 image of one channel, 8-bit weights, on one chip at 4096 bits.
//! let shape = Convolution::new([1, 5, 4], [2, 3, 3]).padded(1, 1);
//! let task = Task::convolution(shape, 8)?;
//! let assignment = Assignment::search(task, Machine::phepu(1, 4096)?)?;
//! let programs = Programs::compile(assignment)?;
//! programs.check()?;
//! let weights: Vec<i64> = (-9..9).collect();
//! let image: Vec<u64> = (0..20).collect();
//! let run = interpret(&programs, &weights, &image, &IntegersModulo(65_537))?;
//! assert_eq!(run.outputs.len(), 2 * 5 * 4);
//! // Of the first filter, the four taps that fall on the corner's pixels 0, 1, 4 and 5.
//! assert_eq!(run.outputs[0], 65_537 - (5 * 0 + 4 * 1 + 2 * 4 + 1 * 5));
//!
//! // The same as the chip's instructions, a person's reading of them, and what comes of it.
//! use blindcore_accel_rtl::phepu::compiler::{Dataflow, Pace, Stream};
//! let stream = Stream::lower(&programs, &weights, None, Dataflow::BitSerial)?;
//! assert!(stream.to_string().contains("weights of 8 bits"));
//! let again = stream.execute(&image, &IntegersModulo(65_537), Pace::Eager)?;
//! assert!(again.outputs.into_values().eq(run.outputs.into_iter().map(Some)));
//! # Ok::<(), blindcore_accel_rtl::phepu::compiler::Error>(())
//! ```

pub mod isa;
pub mod residues;

mod check;
mod chip;
mod element;
mod error;
mod group;
mod instruction;
mod interpret;
mod limits;
mod lower;
mod machine;
mod partition;
mod plan;
mod program;
mod shape;
mod stream;
mod writer;

pub use chip::{ElementRun, Execution, Pace};
pub use element::{Fault, Work};
pub use error::Error;
pub use group::{Group, IntegersModulo};
pub use instruction::{Instruction, InstructionCounts};
pub use interpret::{ChipRun, Counts, Run, interpret};
pub use limits::MAX_ADDRESSED;
pub use machine::{
    Buffers, CHIP_ELEMENTS, CLOCK_HZ, GlobalBuffers, MAX_CHIPS, MAX_ELEMENTS, Machine, Schedule,
};
pub use partition::{Assignment, Chip, Estimate, Partition, Tile};
pub use plan::Dataflow;
pub use program::{Program, Programs, Summary};
pub use shape::{Convolution, Task};
pub use stream::{Body, PACKET_INSTRUCTIONS, Packet, QUEUED_INSTRUCTIONS, Stream, StreamSummary, WordCounts};
