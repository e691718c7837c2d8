//! How an element's buffers are shared out over the stages of a tile.

use serde::Serialize;

use super::machine::{BUS_BITS, Buffers};
use super::shape::Task;

/// How an element weighs its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dataflow {
    /// PH-EPU's: a partial-sum term for each bit of a weight, zero bits skipped (Fig. 15.4.4, mode 1).
    BitSerial,
    /// Ours, Pippenger's buckets on the same units: a term for each absolute value of a digit of up to four bits, and
    /// inputs that come with their inverses, so that a digit is one multiplication and nothing is inverted at the end.
    Buckets,
}

/// How buffers are used for tiles of up to a number of rows: channels, each once for every digit of its weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) dataflow: Dataflow,
    /// Digits of a weight: rows of a channel, the highest digit's first.
    pub(super) digits: usize,
    /// Rows weighed at once.
    pub(super) sums: usize,
    /// Terms of a stage.
    pub(super) piece: usize,
    /// Rows whose weights are held at once; none if weights come piece by piece.
    pub(super) block: Option<usize>,
    /// Where the second half of the weight buffer starts; 0 where all weights fit at once.
    pub(super) weight_half: usize,
    /// Where the second half of the input buffer starts.
    pub(super) input_half: usize,
}

impl Plan {
    /// Bit-serial, for tiles of at most `channels` channels, of which all that share positions must be given the same.
    pub(super) fn new(task: &Task, buffers: &Buffers, channels: usize) -> Self {
        let capacity = buffers.weight_slots(task.weight_bits());
        let sums = buffers.sums(task.weight_bits()).min(channels).clamp(1, capacity / 2);
        let input_half = buffers.input_slots() / 2;
        let (dataflow, digits) = (Dataflow::BitSerial, 1);
        Self { dataflow, digits, sums, piece: input_half, block: None, weight_half: capacity / 2, input_half }
            .blocks(task.terms(), channels, capacity)
    }

    /// Buckets, of weights of `digits` digits in fields of `bits` bits; the same.
    pub(super) fn buckets(task: &Task, buffers: &Buffers, channels: usize, digits: usize, bits: u32) -> Self {
        let capacity = buffers.weight_slots(bits);
        let input_half = buffers.input_slots() / 2;
        let (dataflow, piece) = (Dataflow::Buckets, input_half / 2); // each input beside its inverse
        Self { dataflow, digits, sums: 1, piece, block: None, weight_half: capacity / 2, input_half }.blocks(
            task.terms(),
            channels * digits,
            capacity,
        )
    }

    fn blocks(self, terms: usize, rows: usize, capacity: usize) -> Self {
        let together = self.sums.max(self.digits);
        if rows.saturating_mul(terms) <= capacity {
            Self { block: Some(rows), weight_half: 0, ..self }
        } else if together.saturating_mul(terms) <= self.weight_half {
            Self { block: Some(self.weight_half / terms / together * together), ..self }
        } else {
            Self { piece: self.piece.min(self.weight_half / self.sums), ..self }
        }
    }

    /// Where the second half of the weight buffer starts, in weights.
    pub(super) fn weight_half(&self) -> usize {
        self.weight_half
    }

    /// Whether weights are loaded again for each position.
    pub(super) fn streams_weights(&self) -> bool {
        self.block.is_none()
    }

    /// Cycles of a channel's weights on the bus, in one pass.
    pub(super) fn weight_cycles(&self, terms: usize, bits: u32) -> u64 {
        let cycles = |count: usize| weight_cycles(count, bits);
        if self.streams_weights() {
            (terms / self.piece) as u64 * cycles(self.piece) + cycles(terms % self.piece)
        } else {
            cycles(terms)
        }
    }

    /// Ciphertexts loaded for a position of `terms` terms that are all there, for `channels` channels.
    pub(super) fn inputs_of_position(&self, terms: usize, channels: usize) -> u64 {
        let block = self.block.unwrap_or(channels).min(channels);
        let rest = channels % block;
        let whole = self.inputs_of_block(terms, block).saturating_mul((channels / block) as u64);
        whole.saturating_add(if rest == 0 { 0 } else { self.inputs_of_block(terms, rest) })
    }

    fn inputs_of_block(&self, terms: usize, channels: usize) -> u64 {
        let pieces = terms.div_ceil(self.piece);
        let turns = (channels.div_ceil(self.sums) - 1) as u64;
        let (far, near) = if pieces <= 2 {
            (terms, terms)
        } else {
            (self.piece + terms - (pieces - 1) * self.piece, 2 * self.piece)
        };
        let again = |kept: usize, turns: u64| ((terms - kept) as u64).saturating_mul(turns);
        (terms as u64).saturating_add(again(far, turns.div_ceil(2))).saturating_add(again(near, turns / 2))
    }
}

/// Cycles of `count` weights on the bus.
pub(super) fn weight_cycles(count: usize, bits: u32) -> u64 {
    (count as u64 * u64::from(bits)).div_ceil(BUS_BITS as u64)
}
