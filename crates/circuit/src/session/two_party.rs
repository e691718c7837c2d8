//! The garbler and the evaluator.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::time::Instant;

use blindcore_accel::garble::{GarblingScheme, Label, Labels, Offset, room};
use blindcore_units::Unit;
use zeroize::Zeroizing;

use super::decoding;
use super::greeting::{Arrivals, Greeting, Peer, first};
use super::hello::{Garbling, Key};
use super::message::{Message, flush, receive, send};
use super::{Inputs, Outcome, Progress, Role, SessionError, Setup};
use crate::circuit::Circuit;
use crate::ot::extension::{Parameters, Receiver, Sender};

/// Garbles for the peer at the other end of `channel`, which evaluates; half gates.
///
/// # Errors
/// The peer is gone, silent, or disagrees; inputs don't fit.
pub fn garble<C: Read + Write>(
    channel: &mut C,
    setup: Setup<'_>,
    inputs: &Inputs,
    progress: &mut dyn Progress,
) -> Result<Outcome, SessionError> {
    garble_by(Garbling::HalfGates, channel, setup, inputs, progress)
}

/// As [`garble`], in the way that is given; [`evaluate`] follows whichever it is.
///
/// # Errors
/// As [`garble`].
pub fn garble_by<C: Read + Write>(
    garbling: Garbling,
    channel: &mut C,
    setup: Setup<'_>,
    inputs: &Inputs,
    progress: &mut dyn Progress,
) -> Result<Outcome, SessionError> {
    garble_for(garbling, over(channel), setup, inputs, progress)
}

/// As [`garble_by`], for the first evaluator that comes and fits; who does not is turned away, and ends nothing.
///
/// # Errors
/// As [`garble`], or nobody came.
pub fn garble_for<C: Read + Write>(
    garbling: Garbling,
    arrivals: impl Arrivals<C>,
    setup: Setup<'_>,
    inputs: &Inputs,
    progress: &mut dyn Progress,
) -> Result<Outcome, SessionError> {
    let start = Instant::now();
    let circuit = setup.circuit;
    let own = inputs.bits(circuit)?;
    let mut greeting = Greeting::of_two(Role::Garbler, setup, inputs)?;
    greeting.hello.key.garbling = garbling;
    let (mut channel, peer) = first(&greeting, arrivals)?;
    let (channel, peer, hello) = (&mut channel, &peer.hello, &greeting.hello);

    let mut garbler = Garbler::new(setup, hello.key)?;
    // The evaluator's labels come out of the transfers, under the same offset.
    let theirs: Vec<u32> = (0..circuit.inputs().len())
        .filter(|i| peer.supplies(*i))
        .flat_map(|i| circuit.input_slots(i))
        .collect();
    if !theirs.is_empty() {
        let parameters = Parameters { check: setup.check, ..Parameters::default() };
        let mut transfers = Sender::setup(channel, garbler.offset.label(), parameters)?;
        let mut zeros = Zeroizing::new(vec![0; theirs.len()]);
        transfers.extend(channel, &mut zeros)?;
        for (slot, zero) in theirs.iter().zip(&*zeros) {
            garbler.labels.set(*slot, 0, *zero);
        }
    }
    let mut active = Zeroizing::new(Vec::with_capacity(own.len() * 16));
    let zeros = garbler.fresh_labels(own.iter().map(|(slot, _)| *slot))?;
    for (zero, (_, bit)) in zeros.iter().zip(own.iter()) {
        active.extend_from_slice(&(zero ^ garbler.when(*bit)).to_le_bytes());
    }
    send(channel, Message::InputLabels, &active)?;
    let outcome = garbler.tables(channel, progress, start)?;
    garbler.outputs(channel, outcome, start)
}

/// The one peer that is there already.
pub(super) fn over<'a, C: Read + Write>(channel: &'a mut C) -> impl Arrivals<&'a mut C> {
    |greeting: &Greeting<'_>, take: &mut dyn FnMut(&'a mut C, Peer) -> ControlFlow<()>| {
        let peer = greeting.meet(channel)?;
        let _ = take(channel, peer);
        Ok(())
    }
}

/// What a garbler holds.
pub(super) struct Garbler<'a> {
    setup: Setup<'a>,
    scheme: GarblingScheme,
    pub(super) offset: Offset,
    pub(super) labels: Labels,
}

impl<'a> Garbler<'a> {
    pub(super) fn new(setup: Setup<'a>, key: Key) -> Result<Self, SessionError> {
        let mut random = Zeroizing::new([0; 16]);
        getrandom::fill(&mut *random).map_err(SessionError::Randomness)?;
        let offset = Offset::new(Label::from_le_bytes(*random));
        let mut labels = Labels::new(setup.circuit.slots(), 1);
        // The constants: the label of what is true is 0 on the other side, and so is that of what is false.
        labels.set(1, 0, offset.label());
        Ok(Self { setup, scheme: key.scheme(), offset, labels })
    }

    /// The offset if `bit` is set, without a branch.
    pub(super) fn when(&self, bit: bool) -> Label {
        Label::from(bit).wrapping_neg() & self.offset.label()
    }

    /// Labels of 0 at random, put into these slots.
    pub(super) fn fresh_labels(
        &mut self,
        slots: impl ExactSizeIterator<Item = u32>,
    ) -> Result<Zeroizing<Vec<Label>>, SessionError> {
        let mut random = Zeroizing::new(vec![0u8; slots.len() * 16]);
        getrandom::fill(&mut random).map_err(SessionError::Randomness)?;
        let (blocks, _) = random.as_chunks::<16>();
        let labels: Vec<Label> = blocks.iter().map(|b| Label::from_le_bytes(*b)).collect();
        for (slot, label) in slots.zip(&labels) {
            self.labels.set(slot, 0, *label);
        }
        Ok(Zeroizing::new(labels))
    }

    /// Garbles and sends, piece by piece.
    pub(super) fn tables<C: Write>(
        &mut self,
        channel: &mut C,
        progress: &mut dyn Progress,
        start: Instant,
    ) -> Result<Outcome, SessionError> {
        let circuit = self.setup.circuit;
        let operation = self.setup.device.garble(&self.scheme)?;
        let total = circuit.ands();
        let mut outcome = Outcome::default();
        let mut tables = Vec::new();
        for program in circuit.programs() {
            let program = &*program.map_err(|e| SessionError::io("while the circuit was read", e))?;
            let tables = room(&mut tables, program.ands() * self.scheme.table_bytes());
            let cost = operation.garble(program, &self.offset, outcome.ands, &mut self.labels, tables)?;
            if !tables.is_empty() {
                send(channel, Message::Tables, tables)?;
                if outcome.table_bytes == 0 {
                    flush(channel, Message::Tables)?;
                    outcome.first_table = start.elapsed();
                }
            }
            outcome.ands += cost.and_gates;
            outcome.xors += cost.xor_gates;
            outcome.table_bytes += tables.len() as u64;
            progress.at("garbling", outcome.ands, Some(total), Unit::Items);
        }
        flush(channel, Message::Tables)?;
        Ok(outcome)
    }

    /// Sends what decodes the outputs, receives labels, and learns what the circuit says, as was agreed.
    pub(super) fn outputs<C: Read + Write>(
        &self,
        channel: &mut C,
        mut outcome: Outcome,
        start: Instant,
    ) -> Result<Outcome, SessionError> {
        let Setup { circuit, learns, .. } = self.setup;
        let slots = circuit.output_slots();
        // From here on the evaluator may know its outputs, whatever becomes of the connection.
        let unsure = |error: SessionError| match learns.evaluator() {
            true => error.unsure("the evaluator may have learned the outputs"),
            false => error,
        };
        if learns.evaluator() {
            let zeros = Zeroizing::new(slots.iter().map(|s| self.labels.get(*s, 0)).collect::<Vec<_>>());
            send(channel, Message::Decoding, &decoding::rows(&zeros, self.offset.label())).map_err(unsure)?;
            flush(channel, Message::Decoding).map_err(unsure)?;
        }
        if learns.garbler() {
            let mut bytes = Zeroizing::new(vec![0; slots.len() * 16]);
            receive(channel, Message::OutputLabels, &mut bytes).map_err(unsure)?;
            let mut bits = Vec::with_capacity(slots.len());
            for (bit, (slot, label)) in slots.iter().zip(bytes.as_chunks::<16>().0).enumerate() {
                let difference = Label::from_le_bytes(*label) ^ self.labels.get(*slot, 0);
                if difference != 0 && difference != self.offset.label() {
                    return Err(unsure(SessionError::Label { bit }));
                }
                bits.push(difference != 0);
            }
            outcome.outputs = Some(circuit.cut_outputs(&bits));
        } else {
            receive(channel, Message::Done, &mut []).map_err(unsure)?;
        }
        // The evaluator has everything: what is left is to tell it so.
        let told = send(channel, Message::Done, &[]).and_then(|()| flush(channel, Message::Done));
        if let Err(error) = told {
            let cause = error.cause();
            outcome.doubt =
                Some(format!("{cause}; all went well here, and the evaluator could not be told so"));
        }
        outcome.time = start.elapsed();
        Ok(outcome)
    }
}

/// Evaluates what the peer at the other end of `channel` garbles.
///
/// # Errors
/// The peer is gone, silent, or disagrees; inputs don't fit.
pub fn evaluate<C: Read + Write>(
    channel: &mut C,
    setup: Setup<'_>,
    inputs: &Inputs,
    progress: &mut dyn Progress,
) -> Result<Outcome, SessionError> {
    evaluate_for(over(channel), setup, inputs, progress)
}

/// As [`evaluate`], for the first garbler that comes and fits; who does not is turned away, and ends nothing.
///
/// # Errors
/// As [`evaluate`], or nobody came.
pub fn evaluate_for<C: Read + Write>(
    arrivals: impl Arrivals<C>,
    setup: Setup<'_>,
    inputs: &Inputs,
    progress: &mut dyn Progress,
) -> Result<Outcome, SessionError> {
    let start = Instant::now();
    let circuit = setup.circuit;
    let own = inputs.bits(circuit)?;
    let greeting = Greeting::of_two(Role::Evaluator, setup, inputs)?;
    let (mut channel, peer) = first(&greeting, arrivals)?;
    let (channel, peer) = (&mut channel, &peer.hello);

    let mut labels = Labels::new(circuit.slots(), 1);
    if !own.is_empty() {
        let parameters = Parameters { check: setup.check, ..Parameters::default() };
        let mut transfers = Receiver::setup(channel, parameters)?;
        let choices = Zeroizing::new(own.iter().map(|(_, bit)| *bit).collect::<Vec<_>>());
        let mut active = Zeroizing::new(vec![0; own.len()]);
        transfers.extend(channel, &choices, &mut active)?;
        channel.flush().map_err(|e| SessionError::io("during oblivious transfer", e))?;
        for ((slot, _), label) in own.iter().zip(&*active) {
            labels.set(*slot, 0, *label);
        }
    }
    let theirs: Vec<u32> = (0..circuit.inputs().len())
        .filter(|i| peer.supplies(*i))
        .flat_map(|i| circuit.input_slots(i))
        .collect();
    let mut bytes = Zeroizing::new(vec![0; theirs.len() * 16]);
    receive(channel, Message::InputLabels, &mut bytes)?;
    for (slot, label) in theirs.iter().zip(bytes.as_chunks::<16>().0) {
        labels.set(*slot, 0, Label::from_le_bytes(*label));
    }
    let outcome = tables(channel, setup, peer.key, &mut labels, progress, start)?;
    outputs(channel, setup, &labels, outcome, start)
}

/// Receives and evaluates, piece by piece.
pub(super) fn tables<C: Read>(
    channel: &mut C,
    setup: Setup<'_>,
    key: Key,
    labels: &mut Labels,
    progress: &mut dyn Progress,
    start: Instant,
) -> Result<Outcome, SessionError> {
    let circuit: &Circuit = setup.circuit;
    let scheme = key.scheme();
    let operation = setup.device.evaluate(&scheme)?;
    let total = circuit.ands();
    let mut outcome = Outcome::default();
    let mut tables = Vec::new();
    for program in circuit.programs() {
        let program = &*program.map_err(|e| SessionError::io("while the circuit was read", e))?;
        let tables = room(&mut tables, program.ands() * scheme.table_bytes());
        if !tables.is_empty() {
            receive(channel, Message::Tables, tables)?;
            if outcome.table_bytes == 0 {
                outcome.first_table = start.elapsed();
            }
        }
        let cost = operation.evaluate(program, outcome.ands, labels, tables)?;
        outcome.ands += cost.and_gates;
        outcome.xors += cost.xor_gates;
        outcome.table_bytes += tables.len() as u64;
        progress.at("evaluating", outcome.ands, Some(total), Unit::Items);
    }
    Ok(outcome)
}

/// Receives what decodes the outputs, sends labels, and learns what the circuit says, as was agreed.
pub(super) fn outputs<C: Read + Write>(
    channel: &mut C,
    setup: Setup<'_>,
    labels: &Labels,
    mut outcome: Outcome,
    start: Instant,
) -> Result<Outcome, SessionError> {
    let Setup { circuit, learns, .. } = setup;
    let slots = circuit.output_slots();
    let active = Zeroizing::new(slots.iter().map(|slot| labels.get(*slot, 0)).collect::<Vec<_>>());
    if learns.evaluator() {
        let mut rows = vec![0; slots.len() * decoding::ROWS];
        receive(channel, Message::Decoding, &mut rows)?;
        outcome.outputs = Some(circuit.cut_outputs(&decoding::open(&active, &rows)?));
    }
    let last = match learns.garbler() {
        true => {
            let bytes =
                Zeroizing::new(active.iter().flat_map(|label| label.to_le_bytes()).collect::<Vec<_>>());
            send(channel, Message::OutputLabels, &bytes)
        }
        false => send(channel, Message::Done, &[]),
    };
    // The garbler says when it has everything; without that word nobody here knows what it has.
    let told = last
        .and_then(|()| flush(channel, Message::Done))
        .and_then(|()| receive(channel, Message::Done, &mut []));
    match told {
        Ok(()) => {}
        Err(error) if outcome.outputs.is_none() => {
            return Err(error.unsure("the garbler may have learned the outputs"));
        }
        Err(error) => {
            let what = match learns.garbler() {
                true => "has them too",
                false => "knows that the session ended",
            };
            let cause = error.cause();
            outcome.doubt = Some(format!(
                "{cause}; the outputs here are verified, and whether the garbler {what} is not known: ask it before \
                 you run again"
            ));
        }
    }
    outcome.time = start.elapsed();
    Ok(outcome)
}
