//! Three roles, as SIFO's section 2.1 has them: owners with inputs, a garbler and an evaluator that have none.
//!
//! ```text
//!   owner ──── its choices, blinded ────▶ garbler ──── both labels, sealed ────▶ evaluator
//!     └───────────────── keys that open one label of each pair ────────────────────▲
//! ```
//!
//! The garbler and the evaluator wait until owners have come for every input, each with the inputs that nobody else has. An owner
//! that leaves before that can be replaced, and so can an evaluator before the first owner has come; a garbler or evaluator that leaves later
//! ends the session on all sides, for owners have gone to that very one.
//! Labels go by proxy oblivious transfer ([`proxy`]), so the garbler never learns a bit, and the
//! evaluator sees labels. If those two put together what they know, they know the inputs: owners choose two who don't.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::time::Instant;

use blindcore_accel::garble::Labels;
use zeroize::Zeroizing;

use super::greeting::{Arrivals, Greeting, Peer, first, waiting};
use super::message::{Message, flush, receive, receive_at_most, send};
use super::two_party::{Garbler, outputs, over, tables};
use super::{Inputs, Learns, Outcome, Progress, Role, SessionError, Setup};
use crate::circuit::Circuit;
use crate::ot::proxy;

/// Supplies this owner's inputs to both.
///
/// # Errors
/// A peer is gone, silent or disagrees; inputs don't fit.
pub fn supply<C: Read + Write>(
    garbler: &mut C,
    evaluator: &mut C,
    circuit: &Circuit,
    learns: Learns,
    inputs: &Inputs,
) -> Result<(), SessionError> {
    supply_for(over(garbler), over(evaluator), circuit, learns, inputs)
}

/// As [`supply`], to the garbler and the evaluator to whom these arrivals lead.
///
/// # Errors
/// As [`supply`], or one of them is not there.
pub fn supply_for<C: Read + Write>(
    garbler: impl Arrivals<C>,
    evaluator: impl Arrivals<C>,
    circuit: &Circuit,
    learns: Learns,
    inputs: &Inputs,
) -> Result<(), SessionError> {
    give(garbler, evaluator, circuit, learns, inputs).map_err(SessionError::for_owner)
}

fn give<C: Read + Write>(
    garbler: impl Arrivals<C>,
    evaluator: impl Arrivals<C>,
    circuit: &Circuit,
    learns: Learns,
    inputs: &Inputs,
) -> Result<(), SessionError> {
    let own = inputs.bits(circuit)?;
    let greeting = |role| Greeting::of_owner(circuit, learns, inputs, role);
    let (garbler, _) = &mut first(&greeting(Role::Garbler)?, garbler)?;
    let (evaluator, _) = &mut first(&greeting(Role::Evaluator)?, evaluator)?;
    // It comes when all are there, and so does the end of one without which there is nothing to wait for.
    let publication =
        receive_at_most(garbler, Message::Transfer, limit(0)).map_err(|error| match error {
            SessionError::Gone { .. } => SessionError::Waiting {
                cause: "the garbler is gone, as it is where the evaluator went; nothing was learned, run all sides again".into(),
                missing: String::new(),
            },
            other => other,
        })?;
    let bits = Zeroizing::new(own.iter().map(|(_, bit)| *bit).collect::<Vec<_>>());
    let chosen = proxy::choose(&publication, &bits)?;
    send(garbler, Message::Transfer, &chosen.for_sender)?;
    flush(garbler, Message::Transfer)?;
    send(evaluator, Message::Transfer, &chosen.for_proxy)?;
    flush(evaluator, Message::Transfer)?;
    // Both say when everything went well.
    let ended =
        receive(garbler, Message::Done, &mut []).and_then(|()| receive(evaluator, Message::Done, &mut []));
    ended.map_err(|e| {
        e.for_owner()
            .unsure("the inputs were given, the garbler and the evaluator may have learned the outputs")
    })
}

/// Garbles for an evaluator and for the owners of all inputs, who all come through `arrivals`. One that does not fit is turned
/// away there, and ends nothing.
///
/// # Errors
/// Somebody did not come, is gone or is silent.
pub fn garble<C: Read + Write>(
    arrivals: impl Arrivals<C>,
    setup: Setup<'_>,
    progress: &mut dyn Progress,
) -> Result<Outcome, SessionError> {
    let start = Instant::now();
    let (greeting, (mut evaluator, _), mut owners) = gather(arrivals, setup, Role::Garbler, Role::Evaluator)?;
    let mut garbler = Garbler::new(setup, greeting.hello.key)?;
    let mut senders = Vec::new();
    for owner in &mut owners.all {
        let sender = proxy::Sender::new()?;
        let sent = send(&mut owner.channel, Message::Transfer, &sender.publish());
        let sent = sent.and_then(|()| flush(&mut owner.channel, Message::Transfer));
        sent.map_err(|error| error.of_owner(greeting.name(Role::Owner, &owner.inputs)))?;
        senders.push(sender);
    }
    for (owner, sender) in owners.all.iter_mut().zip(senders) {
        let zeros = garbler.fresh_labels(owner.slots.iter().copied())?;
        let one = garbler.when(true);
        let pairs = Zeroizing::new(zeros.iter().map(|zero| [*zero, zero ^ one]).collect::<Vec<_>>());
        let request = receive_at_most(&mut owner.channel, Message::Transfer, limit(pairs.len()))
            .map_err(|error| error.of_owner(greeting.name(Role::Owner, &owner.inputs)))?;
        let sealed = sender.encrypt(&request, &pairs)?;
        send(&mut evaluator, Message::Transfer, &sealed)?;
    }
    let outcome = garbler.tables(&mut evaluator, progress, start)?;
    let outcome = garbler.outputs(&mut evaluator, outcome, start)?;
    Ok(owners.done(outcome))
}

/// Evaluates for the owners of all inputs what the garbler garbles, who all come through `arrivals`. One that does not fit is
/// turned away there, and ends nothing.
///
/// # Errors
/// The garbler disagrees; somebody did not come, is gone or is silent.
pub fn evaluate<C: Read + Write>(
    arrivals: impl Arrivals<C>,
    setup: Setup<'_>,
    progress: &mut dyn Progress,
) -> Result<Outcome, SessionError> {
    let start = Instant::now();
    let circuit = setup.circuit;
    let (_, (mut garbler, peer), mut owners) = gather(arrivals, setup, Role::Evaluator, Role::Garbler)?;
    let garbler = &mut garbler;
    let mut labels = Labels::new(circuit.slots(), 1);
    for owner in &mut owners.all {
        let bound = limit(owner.slots.len());
        let keys = Zeroizing::new(receive_at_most(&mut owner.channel, Message::Transfer, bound)?);
        let sealed = receive_at_most(garbler, Message::Transfer, bound)?;
        let active = Zeroizing::new(proxy::open(&keys, &sealed)?);
        if active.len() != owner.slots.len() {
            let (got, want) = (format!("{} labels", active.len()), format!("{}", owner.slots.len()));
            return Err(SessionError::Protocol { got, want });
        }
        for (slot, label) in owner.slots.iter().zip(&*active) {
            labels.set(*slot, 0, *label);
        }
    }
    let outcome = tables(garbler, setup, peer.key(), &mut labels, progress, start)?;
    let outcome = outputs(garbler, setup, &labels, outcome, start)?;
    Ok(owners.done(outcome))
}

/// Who is needed besides this side, a party and the owners of all inputs, these in the order of their inputs, which is the same on
/// both sides; and how they were greeted.
type Gathered<'a, C> = (Greeting<'a>, (C, Peer), Owners<'a, C>);

fn gather<'a, C: Read + Write>(
    arrivals: impl Arrivals<C>,
    setup: Setup<'a>,
    role: Role,
    other: Role,
) -> Result<Gathered<'a, C>, SessionError> {
    let greeting = Greeting::of_owners(role, setup, Some(other))?;
    let (mut party, mut owners) = (None::<(C, Peer)>, Owners::new(setup.circuit));
    let ended = arrivals(&greeting, &mut |channel, peer| {
        owners.keep(&greeting);
        party = party.take().filter(|(_, peer)| greeting.is_here(peer.number()));
        if peer.role() == other {
            party = Some((channel, peer));
        } else {
            owners.add(channel, &peer);
        }
        if party.is_some() && owners.complete() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if let Err(error) = ended {
        return Err(waiting(error, greeting.missing()));
    }
    let (Some(party), true) = (party, owners.complete()) else {
        return Err(waiting("nobody comes any more".into(), greeting.missing()));
    };
    owners.sort();
    Ok((greeting, party, owners))
}

/// A message of this many proxy transfers is no longer.
fn limit(bits: usize) -> usize {
    128 * (bits + 1)
}

struct Owner<C> {
    channel: C,
    number: u64,
    inputs: Vec<usize>,
    slots: Vec<u32>,
}

/// The owners that came.
struct Owners<'a, C> {
    circuit: &'a Circuit,
    all: Vec<Owner<C>>,
}

impl<'a, C: Read + Write> Owners<'a, C> {
    fn new(circuit: &'a Circuit) -> Self {
        Self { circuit, all: Vec::new() }
    }

    /// Whether every input has one.
    fn complete(&self) -> bool {
        self.all.iter().map(|owner| owner.inputs.len()).sum::<usize>() == self.circuit.inputs().len()
    }

    /// Those who have their places still.
    fn keep(&mut self, greeting: &Greeting<'_>) {
        self.all.retain(|owner| greeting.is_here(owner.number));
    }

    /// One whose inputs nobody else has.
    fn add(&mut self, channel: C, peer: &Peer) {
        let inputs: Vec<usize> =
            (0..self.circuit.inputs().len()).filter(|i| peer.hello.supplies(*i)).collect();
        let slots = inputs.iter().flat_map(|i| self.circuit.input_slots(*i)).collect();
        self.all.push(Owner { channel, number: peer.number(), inputs, slots });
    }

    fn sort(&mut self) {
        self.all.sort_by_key(|owner| owner.inputs[0]);
    }

    /// Tells every owner that it ended well. One that is gone takes nothing from the outcome, nor from the others.
    fn done(&mut self, mut outcome: Outcome) -> Outcome {
        for owner in &mut self.all {
            let channel = &mut owner.channel;
            let told = send(channel, Message::Done, &[]).and_then(|()| flush(channel, Message::Done));
            if let Err(error) = told {
                let (cause, name) = (error.cause(), &self.circuit.inputs()[owner.inputs[0]].name);
                let said =
                    format!("{cause}; all went well, and the owner of input {name} could not be told so");
                outcome.doubt.get_or_insert(said);
            }
        }
        outcome
    }
}
