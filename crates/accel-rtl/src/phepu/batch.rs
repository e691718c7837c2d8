//! The same operation on many residues, spread over all elements of all chips.

use super::compiler::isa::{INPUT_SLOTS, Operation, WEIGHT_WORDS, Word, address};
use super::compiler::{Body, Packet, Stream};

use super::card::Build;

/// The slot of what all items share.
pub(super) const SHARED: u8 = INPUT_SLOTS as u8 - 1;
/// Inputs of an item at most: half of the slots, one of them shared.
pub(super) const MAX_INPUTS: usize = INPUT_SLOTS / 2 - 1;
/// Words of an item at most.
const MAX_WORDS: usize = WEIGHT_WORDS / 2;

/// Words that come to the elements' weight buffers.
pub(super) enum Words<'a> {
    None,
    /// The same for all.
    Shared(&'a [[u64; 4]]),
    /// This many for each item, which the function writes.
    Each(usize, &'a dyn Fn(usize, &mut [[u64; 4]])),
}

/// Where an item's operands lie in its element.
pub(super) struct Places {
    /// The first of its inputs.
    pub(super) input: u8,
    /// Where its result goes.
    pub(super) output: u8,
    /// The first of its words in the weight buffer.
    pub(super) word: u16,
}

/// Items, each of some inputs and steps, that make one output each: its tag is the item's number.
///
/// Items go round the chips and their elements. An element takes two at a time: while it works on one, the next is loaded,
/// and the one before is stored; so the controller waits for none that is not the last of all.
pub(super) struct Batch<'a> {
    /// 4, 8 or 16.
    pub(super) digits: usize,
    /// The residues of each, at most [`MAX_INPUTS`].
    pub(super) items: Vec<Vec<u32>>,
    /// A residue that all read in [`SHARED`].
    pub(super) shared: Option<u32>,
    pub(super) words: Words<'a>,
    /// What is done to an item; the last step writes its output.
    pub(super) steps: &'a dyn Fn(usize, &Places) -> Vec<Operation>,
}

impl Batch<'_> {
    /// The item that an element works on as its `turn`th, counted from 0.
    pub(super) fn item(build: &Build, chip: usize, element: usize, turn: usize) -> usize {
        (turn * build.elements + element) * build.chips + chip
    }

    /// What the card is sent. There is at least one item.
    pub(super) fn stream(&self, build: &Build) -> Stream {
        let d = self.digits;
        let (count, round) = (self.items.len(), build.chips * build.elements);
        let used = build.chips.min(count);
        let chips = (1u32 << used) - 1;
        let all = u16::MAX >> (u16::BITS as usize - build.elements);
        let mut packets = Vec::new();
        let mut send = |chips: u32, after: u32, body: Body| packets.push(Packet { chips, after, body });

        // What all items share; in the buffer of weights the modulus's words come first.
        let mut begin = Queue::default();
        begin.push(all, Operation::Context { digits: d as u8, width: 8, global: 0 });
        send(chips, 0, Body::Context { address: 0 });
        if let Some(shared) = self.shared {
            begin.push(all, Operation::LoadInput { slot: SHARED, count: 1, global: 0 });
            send(chips, 0, Body::Inputs { address: 0, inputs: vec![shared] });
        }
        let (mut weights, mut each) = (3 * d + 1, 0);
        match self.words {
            Words::None => {}
            Words::Shared(words) => {
                let (count, global) = (words.len() as u16, weights as u16);
                begin.push(all, Operation::LoadWeights { word: 0, count, global, regions: 0 });
                send(chips, 0, Body::Weights { address: global.into(), words: words.to_vec() });
                weights += words.len();
            }
            Words::Each(words, _) => each = words,
        }

        // Behind that both buffers hold rounds, as many as fit, one after the other.
        let most = self.items.iter().map(Vec::len).max().unwrap_or(0);
        let inputs_a_round = build.elements * d * most;
        let weights_a_round = build.elements * each;
        let fit = |words: usize, a_round: usize| words.checked_div(a_round).unwrap_or(usize::MAX);
        let ahead = fit(build.input_words - d, inputs_a_round);
        let ahead = ahead.min(fit(build.weight_words - weights, weights_a_round)).min(count);
        assert!(ahead > 0 && most <= MAX_INPUTS && each <= MAX_WORDS, "a round fits the buffers");

        let mut queues = vec![begin; used];
        for turn in 0..count.div_ceil(round) {
            let (half, place) = (turn % 2, turn % ahead);
            let at = Places {
                input: (half * INPUT_SLOTS / 2) as u8,
                output: address::OUTPUT + half as u8,
                word: (half * MAX_WORDS) as u16,
            };
            for (chip, queue) in queues.iter_mut().enumerate() {
                let (mut inputs, mut words, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
                let (first_input, first_word) =
                    (d + place * inputs_a_round, weights + place * weights_a_round);
                for element in 0..build.elements {
                    let item = Self::item(build, chip, element, turn);
                    let Some(residues) = self.items.get(item) else { break };
                    let mask = 1 << element;
                    let (mut slots, mut regions) = (0, 0);
                    if !residues.is_empty() {
                        let (count, global) = (residues.len() as u8, (first_input + inputs.len() * d) as u16);
                        queue.push(mask, Operation::LoadInput { slot: at.input, count, global });
                        inputs.extend_from_slice(residues);
                        slots = ((1 << count) - 1) << at.input;
                    }
                    if let Words::Each(each, write) = self.words {
                        let written = words.len();
                        // Secrets may come: they are written where they stay.
                        words.reserve_exact(weights_a_round - written);
                        words.resize(written + each, [0; 4]);
                        write(item, &mut words[written..]);
                        regions = 1 << half;
                        let (count, global) = (each as u16, (first_word + written) as u16);
                        queue.push(mask, Operation::LoadWeights { word: at.word, count, global, regions });
                    }
                    for step in (self.steps)(item, &at) {
                        queue.push(mask, step);
                    }
                    if (slots, regions) != (0, 0) {
                        queue.push(mask, Operation::Free { slots, regions });
                    }
                    outputs.push((mask, Operation::Store { slot: half as u8, tag: item as u32 }));
                }
                // What lay there must have been loaded.
                let after = turn.checked_sub(ahead).map_or(0, |before| queue.executed[before]);
                let mut send = |after, body| send(1 << chip, after, body);
                if !inputs.is_empty() {
                    send(after, Body::Inputs { address: first_input as u32, inputs });
                }
                if !words.is_empty() {
                    send(after, Body::Weights { address: first_word as u32, words });
                }
                queue.store(outputs);
                send(0, queue.round());
            }
        }
        for (chip, mut queue) in queues.into_iter().enumerate() {
            queue.store(Vec::new());
            queue.push(0, Operation::End);
            send(1 << chip, 0, queue.round());
        }
        Stream { digits: d, width: 8, chips: build.chips, packets }
    }
}

/// A chip's instructions.
#[derive(Clone, Default)]
struct Queue {
    /// Those of the round that is being written.
    instructions: Vec<u64>,
    /// Stores of the round before.
    stores: Vec<(u16, Operation)>,
    /// How many have been executed when each round has been issued.
    executed: Vec<u32>,
}

impl Queue {
    /// For the elements of a mask.
    fn push(&mut self, mask: u16, operation: Operation) {
        let word = Word::new(mask, operation).encode();
        self.instructions.push(word.expect("operands are in range: rounds fit the buffers"));
    }

    /// Stores the round before, now that this one is issued; `stores` are this one's.
    fn store(&mut self, stores: Vec<(u16, Operation)>) {
        for (mask, store) in std::mem::replace(&mut self.stores, stores) {
            self.push(mask, store);
        }
    }

    /// The round's packet. Those that fill its last word up are executed too.
    fn round(&mut self) -> Body {
        let instructions = std::mem::take(&mut self.instructions);
        let before = self.executed.last().copied().unwrap_or(0);
        self.executed.push(before + instructions.len().next_multiple_of(4) as u32);
        Body::Instructions(instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phepu::bigmod::power;
    use crate::phepu::compiler::{Execution, Group, IntegersModulo, Pace};

    /// The least buffers that a card may have, so that rounds take one another's places.
    fn build(chips: usize) -> Build {
        Build {
            chips,
            elements: 16,
            input_words: 1 << 11,
            weight_words: 1 << 11,
            output_words: 512,
            instruction_words: 512,
        }
    }

    const GROUP: IntegersModulo = IntegersModulo(1_000_003);

    /// What comes of a batch, whether controllers are fast or slow.
    fn outputs(batch: &Batch<'_>, chips: usize, residues: &[u64]) -> Vec<u64> {
        let stream = batch.stream(&build(chips));
        let run = |pace| -> Execution<u64> { stream.execute(residues, &GROUP, pace).unwrap() };
        let (lazy, eager) = (run(Pace::Lazy), run(Pace::Eager));
        assert_eq!(lazy.outputs, eager.outputs);
        assert!(lazy.elements.iter().all(|element| element.fault.is_none()));
        let tags: Vec<u32> = lazy.outputs.keys().copied().collect();
        assert!(tags.into_iter().eq(0..batch.items.len() as u32));
        lazy.outputs.into_values().map(|output| output.expect("no element gave up")).collect()
    }

    #[test]
    fn products_of_many_rounds() {
        for (chips, count) in [(1, 1), (1, 15), (1, 16), (1, 17), (1, 300), (3, 2), (3, 49), (3, 500)] {
            let residues: Vec<u64> = (0..=2 * count).map(|i| i * i % GROUP.0).collect();
            for shared in [None, Some(2 * count as u32)] {
                let steps = |_, at: &Places| {
                    let y = if shared.is_some() { SHARED } else { at.input + 1 };
                    vec![Operation::Multiply { to: at.output, x: at.input, y }]
                };
                let item = |i: u64| {
                    [vec![i as u32], vec![(count + i) as u32; usize::from(shared.is_none())]].concat()
                };
                let items: Vec<_> = (0..count).map(item).collect();
                let batch = Batch { digits: 16, items, shared, words: Words::None, steps: &steps };
                let y = |i: u64| residues[shared.map_or((count + i) as usize, |shared| shared as usize)];
                let want: Vec<u64> =
                    (0..count).map(|i| GROUP.multiply(&residues[i as usize], &y(i))).collect();
                assert_eq!(outputs(&batch, chips, &residues), want, "{count} on {chips} chips");
            }
        }
    }

    #[test]
    fn powers_to_the_longest_exponents() {
        let word = |item: usize, i: usize| (item as u64 + 3).wrapping_pow(97 + i as u32);
        for (bits, count) in [(1u32, 3), (256, 40), (4096, 40), (4097, 40), (9000, 40), (16384, 40)] {
            let length = bits.div_ceil(256) as usize;
            let at = |item: usize, i: usize| {
                let left = bits.saturating_sub(64 * i as u32).min(64);
                if left == 0 { 0 } else { word(item, i) & u64::MAX >> (64 - left) }
            };
            let exponent = |item: usize| {
                let words = (0..4 * length).rev();
                words.fold(0, |sum, i| ((u128::from(sum) << 64 | u128::from(at(item, i))) % 1_000_003) as u64)
            };
            let write = |item: usize, words: &mut [[u64; 4]]| {
                words.as_flattened_mut().iter_mut().enumerate().for_each(|(i, word)| *word = at(item, i));
            };
            let steps = |_, at: &Places| power(at.output, at.input, at.word, bits);
            let residues: Vec<u64> = (0..count as u64).map(|i| 7 * i + 1).collect();
            let items = (0..count as u32).map(|i| vec![i]).collect();
            let batch =
                Batch { digits: 4, items, shared: None, words: Words::Each(length, &write), steps: &steps };
            let want: Vec<u64> =
                residues.iter().enumerate().map(|(i, x)| x * exponent(i) % GROUP.0).collect();
            assert_eq!(outputs(&batch, 1, &residues), want, "{bits} bits");
        }
    }
}
