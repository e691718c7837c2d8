//! Runs programs, over any group, and counts what they cost on PH-EPU.

use std::collections::BTreeMap;

use serde::Serialize;

use super::error::Error;
use super::group::Group;
use super::instruction::Instruction;
use super::machine::Machine;
use super::plan::weight_cycles;
use super::program::{Program, Programs};
use super::shape::Task;

/// What an element, or many, did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Multiplications of inputs into terms.
    pub multiplications: u64,
    /// Squarings that align terms.
    pub squarings: u64,
    /// Inversions of negative terms.
    pub inversions: u64,
    /// Multiplications that bring an inverse back to Montgomery's form: two an inversion.
    pub conversions: u64,
    /// Multiplications that reduce terms to an output.
    pub reductions: u64,
    /// First inputs of terms, which take no multiplication.
    pub moves: u64,
    /// Bits of weights that were zero, and so skipped.
    pub skipped: u64,
    /// Bytes loaded into weight buffers.
    pub weight_bytes: u64,
    /// Bytes loaded into input buffers.
    pub input_bytes: u64,
    /// Bytes stored from output buffers.
    pub output_bytes: u64,
    /// Cycles until the element is done, had it the bus for itself; of several, the slowest's.
    pub cycles: u64,
}

impl Counts {
    /// Uses of the Montgomery unit.
    #[must_use]
    pub fn montgomery(&self) -> u64 {
        self.multiplications + self.squarings + self.conversions + self.reductions
    }

    fn add(&mut self, other: &Self) {
        self.multiplications += other.multiplications;
        self.squarings += other.squarings;
        self.inversions += other.inversions;
        self.conversions += other.conversions;
        self.reductions += other.reductions;
        self.moves += other.moves;
        self.skipped += other.skipped;
        self.weight_bytes += other.weight_bytes;
        self.input_bytes += other.input_bytes;
        self.output_bytes += other.output_bytes;
        self.cycles = self.cycles.max(other.cycles);
    }
}

/// What a chip's elements shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChipRun {
    /// Ciphertexts read over the bus, each once for all the elements that take it together.
    pub ciphertexts: u64,
    /// Cycles in which the bus carries something.
    pub bus: u64,
    /// Cycles of the slowest element.
    pub busiest: u64,
    /// Cycles until the chip is done: the larger of the two.
    pub cycles: u64,
}

/// Outputs, and what they took.
#[derive(Clone, Debug)]
pub struct Run<E> {
    /// In the task's order.
    pub outputs: Vec<E>,
    /// Element by element, in the order of [`Programs::tiles`].
    pub elements: Vec<Counts>,
    /// Chip by chip.
    pub chips: Vec<ChipRun>,
    /// All elements together.
    pub total: Counts,
    /// Cycles until the slowest chip is done.
    pub cycles: u64,
}

/// Runs every program, each checked before it is.
///
/// Within an element loads, arithmetic and stores each go in the program's order and wait for one another only where
/// one needs what another leaves: a load waits until its slot was read for the last time, arithmetic until its
/// operands are loaded. All elements of a chip share the bus, so a chip takes as long as the slowest element, or as
/// the bus, whichever is more: a lower bound, for how elements queue for the bus is not modelled. What a step costs,
/// [`Machine`] says.
///
/// # Errors
/// Weights or inputs are not the task's, a program is too long or does what it may not, or a negative term has no
/// inverse.
pub fn interpret<G: Group>(
    programs: &Programs,
    weights: &[i64],
    inputs: &[G::Element],
    group: &G,
) -> Result<Run<G::Element>, Error> {
    let task = programs.assignment().task();
    task.check_weights(weights)?;
    if inputs.len() != task.inputs() {
        return Err(Error::Length { what: "inputs", got: inputs.len(), want: task.inputs() });
    }
    let mut outputs: Vec<Option<G::Element>> = vec![None; task.outputs()];
    let (mut elements, mut total) = (Vec::new(), Counts::default());
    let mut traffic = vec![Traffic::default(); programs.assignment().chips().len()];
    for (tile, program) in programs.iter().enumerate() {
        let program = program?;
        program.check(task, programs.assignment().machine())?;
        let mut element = Element::new(programs, weights, inputs, group);
        for at in 0..program.instructions.len() {
            element.step(&program.instructions[at..], &mut outputs)?;
        }
        let counts = element.counts();
        total.add(&counts);
        let tile = &programs.tiles()[tile];
        traffic[tile.chip].add(
            (tile.rows.start, tile.columns.start),
            tile.channels.start,
            &element,
            &program,
        );
        elements.push(counts);
    }
    let mut done = Vec::with_capacity(outputs.len());
    for (output, value) in outputs.into_iter().enumerate() {
        done.push(value.ok_or(Error::Coverage { output, times: 0 })?);
    }
    let words = programs.buffers().ciphertext_cycles();
    let chips: Vec<ChipRun> = traffic.iter().map(|traffic| traffic.sum(words)).collect();
    let cycles = chips.iter().map(|chip| chip.cycles).max().unwrap_or(0);
    Ok(Run { outputs: done, elements, chips, total, cycles })
}

/// What goes over one chip's bus. Elements of the same positions read the same ciphertexts in the same order, and
/// those of fewer channels leave some out; so do weights for elements of the same channels. The one that reads most sets the
/// count.
#[derive(Clone, Default)]
struct Traffic {
    inputs: BTreeMap<(usize, usize), u64>,
    weights: BTreeMap<usize, u64>,
    outputs: u64,
    busiest: u64,
}

impl Traffic {
    fn add<G: Group>(
        &mut self,
        positions: (usize, usize),
        channels: usize,
        element: &Element<'_, G>,
        program: &Program,
    ) {
        let (mut inputs, mut weights) = (0, 0);
        for instruction in &program.instructions {
            match instruction {
                Instruction::LoadInput { count, .. } => inputs += u64::from(*count),
                Instruction::LoadWeights { count, .. } => {
                    weights += weight_cycles(*count as usize, element.task.weight_bits());
                }
                Instruction::Store { .. } => self.outputs += 1,
                _ => {}
            }
        }
        let most = self.inputs.entry(positions).or_default();
        *most = inputs.max(*most);
        let most = self.weights.entry(channels).or_default();
        *most = weights.max(*most);
        self.busiest = self.busiest.max(element.counts().cycles);
    }

    fn sum(&self, words: u64) -> ChipRun {
        let ciphertexts = self.inputs.values().sum();
        let bus = (ciphertexts + self.outputs) * words + self.weights.values().sum::<u64>();
        ChipRun { ciphertexts, bus, busiest: self.busiest, cycles: bus.max(self.busiest) }
    }
}

/// Something in a buffer: when it is there, and when it was last read.
#[derive(Clone)]
struct Held<T> {
    value: Option<T>,
    ready: u64,
    read: u64,
}

/// A processing element. Programs that it runs have been checked: every slot it reads has been filled.
struct Element<'a, G: Group> {
    group: &'a G,
    task: &'a Task,
    machine: &'a Machine,
    given_weights: &'a [i64],
    given_inputs: &'a [G::Element],
    ciphertext_bytes: u64,
    ciphertext_cycles: u64,
    bits: u32,
    weights: Vec<Held<i64>>,
    inputs: Vec<Held<G::Element>>,
    /// Terms of all sums, a sum after the other.
    terms: Vec<Option<G::Element>>,
    outputs: Vec<Held<G::Element>>,
    counts: Counts,
    loads: u64,
    arithmetic: u64,
    stores: u64,
}

impl<'a, G: Group> Element<'a, G> {
    fn new(
        programs: &'a Programs,
        given_weights: &'a [i64],
        given_inputs: &'a [G::Element],
        group: &'a G,
    ) -> Self {
        let (task, machine) = (programs.assignment().task(), programs.assignment().machine());
        let (buffers, bits) = (programs.buffers(), task.weight_bits());
        Self {
            group,
            task,
            machine,
            given_weights,
            given_inputs,
            ciphertext_bytes: buffers.ciphertext_bytes() as u64,
            ciphertext_cycles: buffers.ciphertext_cycles(),
            bits,
            weights: vec![Held { value: None, ready: 0, read: 0 }; buffers.weight_slots(bits)],
            inputs: vec![Held { value: None, ready: 0, read: 0 }; buffers.input_slots()],
            terms: vec![None; buffers.sums(bits) * bits as usize],
            outputs: vec![Held { value: None, ready: 0, read: 0 }; buffers.output_slots()],
            counts: Counts::default(),
            loads: 0,
            arithmetic: 0,
            stores: 0,
        }
    }

    fn counts(&self) -> Counts {
        Counts { cycles: self.loads.max(self.arithmetic).max(self.stores), ..self.counts }
    }

    /// Takes the first of `instructions`.
    fn step(
        &mut self,
        instructions: &[Instruction],
        outputs: &mut [Option<G::Element>],
    ) -> Result<(), Error> {
        let multiply = self.machine.multiply_cycles();
        match instructions[0] {
            Instruction::LoadWeights { address, channel, term, count } => {
                let to = &mut self.weights[address as usize..][..count as usize];
                let free = to.iter().map(|held| held.read).max().unwrap_or(0);
                self.loads = self.loads.max(free) + weight_cycles(count as usize, self.bits);
                for (i, held) in to.iter_mut().enumerate() {
                    let weight = self.given_weights[self.task.weight_at(channel as usize, term as usize + i)];
                    *held = Held { value: Some(weight), ready: self.loads, read: 0 };
                }
                self.counts.weight_bytes += (u64::from(count) * u64::from(self.bits)).div_ceil(8);
            }
            Instruction::LoadInput { slot, input, count } => {
                for i in 0..count as usize {
                    let held = &mut self.inputs[slot as usize + i];
                    self.loads = self.loads.max(held.read) + self.ciphertext_cycles;
                    let value = Some(self.given_inputs[input as usize + i].clone());
                    *held = Held { value, ready: self.loads, read: 0 };
                }
                self.counts.input_bytes += u64::from(count) * self.ciphertext_bytes;
            }
            Instruction::Clear { sum } => self.terms(sum).fill(None),
            Instruction::Accumulate { sum, slot, address, count } => {
                for i in 0..count as usize {
                    self.accumulate(sum as usize, slot as usize + i, address as usize + i);
                }
            }
            Instruction::Align { sum } => {
                let group = self.group;
                let mut squarings = 0;
                for (bit, term) in self.terms(sum).iter_mut().enumerate() {
                    if let Some(term) = term {
                        for _ in 0..bit {
                            *term = group.square(term);
                        }
                        squarings += bit as u64;
                    }
                }
                self.counts.squarings += squarings;
                self.arithmetic += squarings * multiply;
            }
            Instruction::Invert { sum } => {
                let group = self.group;
                let Some(Some(term)) = self.terms(sum).last_mut() else { return Ok(()) };
                *term =
                    group.invert(term).ok_or_else(|| Error::NoInverse { output: stored(instructions) })?;
                self.counts.inversions += 1;
                self.counts.conversions += 2;
                self.arithmetic += self.machine.invert_cycles();
            }
            Instruction::Reduce { sum, slot } => {
                let group = self.group;
                let mut reductions = 0;
                let mut product: Option<G::Element> = None;
                for term in self.terms(sum).iter_mut().filter_map(Option::take) {
                    product = Some(match product {
                        None => term,
                        Some(product) => {
                            reductions += 1;
                            group.multiply(&product, &term)
                        }
                    });
                }
                self.counts.reductions += reductions;
                let held = &mut self.outputs[slot as usize];
                self.arithmetic = self.arithmetic.max(held.read) + reductions * multiply;
                let value = Some(product.unwrap_or_else(|| group.one()));
                *held = Held { value, ready: self.arithmetic, read: 0 };
            }
            Instruction::Store { slot, output } => {
                let held = &mut self.outputs[slot as usize];
                self.stores = self.stores.max(held.ready) + self.ciphertext_cycles;
                held.read = self.stores;
                self.counts.output_bytes += self.ciphertext_bytes;
                if outputs[output as usize].replace(filled(held.value.take())).is_some() {
                    return Err(Error::Coverage { output: output as usize, times: 2 });
                }
            }
        }
        Ok(())
    }

    fn accumulate(&mut self, sum: usize, slot: usize, address: usize) {
        let (input, held) = (&mut self.inputs[slot], &mut self.weights[address]);
        let weight = filled(held.value);
        let value = filled(input.value.as_ref());
        // The selector reads the weight, then the input as often as the weight has bits.
        self.arithmetic = self.arithmetic.max(held.ready);
        let (mut multiplications, mut moves) = (0, 0);
        for bit in 0..self.bits {
            if weight >> bit & 1 == 0 {
                self.counts.skipped += 1;
                continue;
            }
            let term = &mut self.terms[sum * self.bits as usize + bit as usize];
            *term = Some(match term {
                None => {
                    moves += 1;
                    value.clone()
                }
                Some(term) => {
                    multiplications += 1;
                    self.group.multiply(term, value)
                }
            });
        }
        if weight != 0 {
            let cycles =
                multiplications * self.machine.multiply_cycles() + moves * self.machine.copy_cycles();
            self.arithmetic = self.arithmetic.max(input.ready) + cycles;
        }
        self.counts.multiplications += multiplications;
        self.counts.moves += moves;
        held.read = self.arithmetic;
        input.read = self.arithmetic;
    }

    fn terms(&mut self, sum: u32) -> &mut [Option<G::Element>] {
        &mut self.terms[sum as usize * self.bits as usize..][..self.bits as usize]
    }
}

/// The output that is stored next.
fn stored(instructions: &[Instruction]) -> u32 {
    let output = instructions.iter().find_map(|instruction| match instruction {
        Instruction::Store { output, .. } => Some(*output),
        _ => None,
    });
    output.expect("a checked program stores what it has reduced")
}

/// What a checked program has put there.
fn filled<T>(value: Option<T>) -> T {
    value.expect("a checked program reads what it has filled")
}
