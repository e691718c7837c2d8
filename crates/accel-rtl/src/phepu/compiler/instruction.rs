//! What a processing element is told to do.

use serde::Serialize;

/// A step of a processing element.
///
/// A partial sum has a term for each bit of a weight. A term is empty, the group's one, until the first input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Instruction {
    /// Weights of one channel, `count` terms from `term` on, go to `address` of the weight buffer and after.
    LoadWeights {
        /// Where in the weight buffer, in weights.
        address: u32,
        /// Of which output channel.
        channel: u32,
        /// The first term.
        term: u32,
        /// How many.
        count: u32,
    },
    /// `count` ciphertexts from `input` on go to `slot` of the input buffer and after.
    LoadInput {
        /// Where in the input buffer, in ciphertexts.
        slot: u32,
        /// The first ciphertext.
        input: u32,
        /// How many.
        count: u32,
    },
    /// Empties the terms of a partial sum.
    Clear {
        /// Which.
        sum: u32,
    },
    /// For each of `count` inputs and weights, and each set bit b of the weight in two's complement: multiplies term
    /// b of the partial sum by the input. Zero bits and zero weights take no time.
    Accumulate {
        /// The partial sum.
        sum: u32,
        /// The first input's slot.
        slot: u32,
        /// The first weight's address.
        address: u32,
        /// How many.
        count: u32,
    },
    /// Squares term b of a partial sum b times.
    Align {
        /// Which.
        sum: u32,
    },
    /// Inverts the term of the sign bit.
    Invert {
        /// The partial sum.
        sum: u32,
    },
    /// Multiplies the terms of a partial sum into a slot of the output buffer.
    Reduce {
        /// The partial sum.
        sum: u32,
        /// Where in the output buffer, in ciphertexts.
        slot: u32,
    },
    /// Sends an output off.
    Store {
        /// The slot of the output buffer.
        slot: u32,
        /// Which output.
        output: u32,
    },
}

/// How many instructions of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "named as the instructions are")]
pub struct InstructionCounts {
    pub load_weights: u64,
    pub load_input: u64,
    pub clear: u64,
    pub accumulate: u64,
    pub align: u64,
    pub invert: u64,
    pub reduce: u64,
    pub store: u64,
}

impl InstructionCounts {
    pub(super) fn add(&mut self, instruction: &Instruction) {
        *match instruction {
            Instruction::LoadWeights { .. } => &mut self.load_weights,
            Instruction::LoadInput { .. } => &mut self.load_input,
            Instruction::Clear { .. } => &mut self.clear,
            Instruction::Accumulate { .. } => &mut self.accumulate,
            Instruction::Align { .. } => &mut self.align,
            Instruction::Invert { .. } => &mut self.invert,
            Instruction::Reduce { .. } => &mut self.reduce,
            Instruction::Store { .. } => &mut self.store,
        } += 1;
    }
}
