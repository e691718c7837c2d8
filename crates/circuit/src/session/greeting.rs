//! Who may come to a session, and what is said to whoever does, before anything runs.
//!
//! Whoever comes speaks first, so that a stranger learns nothing; a peer with which something differs is answered, so that
//! both can say what. Nobody who is turned away takes a place, and a peer that leaves before all have come gives its place back.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::hello::{Hello, Key, check_supply, unexpected};
use super::{Check, Inputs, Learns, Role, SessionError, Setup};
use crate::circuit::{Circuit, PortShape};
use crate::ports::NAMED;

/// Has [`Greeting::welcome`] greet each connection that comes, and hands over those that it takes, until it is told to stop:
/// [`Door::arrivals`](crate::transport::Door::arrivals). It says by [`Greeting::leave`] whose connection has closed meanwhile. Its
/// error is why nobody comes any more.
pub trait Arrivals<C>:
    FnOnce(&Greeting<'_>, &mut dyn FnMut(C, Peer) -> ControlFlow<()>) -> Result<(), Box<dyn Error + Send + Sync>>
{
}

impl<C, F> Arrivals<C> for F where
    F: FnOnce(
        &Greeting<'_>,
        &mut dyn FnMut(C, Peer) -> ControlFlow<()>,
    ) -> Result<(), Box<dyn Error + Send + Sync>>
{
}

/// What a side says of itself, and whom it waits for. Threads share it.
pub struct Greeting<'a> {
    pub(super) hello: Hello,
    circuit: &'a Circuit,
    /// Whether owners have the inputs, and not the two parties.
    owners: bool,
    places: Mutex<Places>,
}

/// Who may still come.
struct Places {
    /// The other party, until it is there.
    party: Option<Role>,
    /// Inputs that have an owner.
    taken: Vec<bool>,
    /// Those who are there, by their numbers: which part each plays, and its inputs.
    here: BTreeMap<u64, (Role, Vec<usize>)>,
    /// How many have come.
    count: u64,
}

/// A peer that was greeted and has its place.
pub struct Peer {
    pub(super) hello: Hello,
    number: u64,
    said: String,
}

impl Peer {
    /// Its number among those of a session.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Which part it plays.
    #[must_use]
    pub fn role(&self) -> Role {
        self.hello.role
    }

    /// A sentence on who it is and whom else is waited for; empty in a session of two.
    #[must_use]
    pub fn said(&self) -> &str {
        &self.said
    }

    pub(super) fn key(&self) -> Key {
        self.hello.key
    }
}

impl<'a> Greeting<'a> {
    /// For one of two parties.
    pub(super) fn of_two(role: Role, setup: Setup<'a>, inputs: &Inputs) -> Result<Self, SessionError> {
        let hello = Hello::new(role, setup.learns, setup.check, setup.circuit, inputs)?;
        let other = if role == Role::Garbler { Role::Evaluator } else { Role::Garbler };
        Ok(Self::new(hello, setup.circuit, Some(other), false))
    }

    /// For a party to which owners come, and the other party if it comes by the same door.
    pub(super) fn of_owners(role: Role, setup: Setup<'a>, party: Option<Role>) -> Result<Self, SessionError> {
        let hello = Hello::new(role, setup.learns, setup.check, setup.circuit, &Inputs::new())?;
        Ok(Self::new(hello, setup.circuit, party, true))
    }

    /// For an owner of these inputs, which goes to one of both parties.
    pub(super) fn of_owner(
        circuit: &'a Circuit,
        learns: Learns,
        inputs: &Inputs,
        party: Role,
    ) -> Result<Self, SessionError> {
        let hello = Hello::new(Role::Owner, learns, Check::None, circuit, inputs)?;
        Ok(Self::new(hello, circuit, Some(party), false))
    }

    fn new(hello: Hello, circuit: &'a Circuit, party: Option<Role>, owners: bool) -> Self {
        let taken = vec![!owners; circuit.inputs().len()];
        Self {
            hello,
            circuit,
            owners,
            places: Mutex::new(Places { party, taken, here: BTreeMap::new(), count: 0 }),
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Greets the peer at the other end of a connection that this side made.
    ///
    /// # Errors
    /// The peer is gone, silent, speaks something else, or differs in what must be the same.
    pub fn meet<C: Read + Write>(&self, channel: &mut C) -> Result<Peer, SessionError> {
        let peer = self.hello.exchange(channel)?;
        let (number, said) = self.take_place(&mut self.places(), &peer)?;
        Ok(Peer { hello: peer, number, said })
    }

    /// Greets whoever came: it speaks first.
    ///
    /// # Errors
    /// As [`Greeting::meet`], or its place is taken. It gets no place then.
    pub fn welcome<C: Read + Write>(&self, channel: &mut C) -> Result<Peer, SessionError> {
        self.welcome_if(channel, || true)
    }

    /// As [`Greeting::welcome`]; `stays` is asked about who is known to be a peer, before it gets its place and is answered, and says
    /// whether it is there still.
    pub(crate) fn welcome_if<C: Read + Write>(
        &self,
        channel: &mut C,
        stays: impl FnOnce() -> bool,
    ) -> Result<Peer, SessionError> {
        let peer = match Hello::receive(channel) {
            Ok(peer) => peer,
            Err(error) => {
                // One of another version reads which this is; whoever speaks something else gets no answer.
                if let SessionError::Differs { .. } = error {
                    let _ = self.hello.send(channel, &[]);
                }
                return Err(error);
            }
        };
        // Its place comes first, so that an owner reads which inputs have others before it goes on to the other party.
        let mut gone = false;
        let (taken, placed) = {
            let mut places = self.places();
            let taken = if self.owners { places.taken.clone() } else { Vec::new() };
            let place = |()| {
                gone = !stays();
                if gone {
                    return Err(SessionError::Gone { during: "during the hello" });
                }
                self.take_place(&mut places, &peer)
            };
            (taken, self.hello.check(&peer).and_then(place))
        };
        if gone {
            // An answer would tell it that it has its place, and it would not try again.
            return placed.map(|(number, said)| Peer { hello: peer, number, said });
        }
        let answered = self.hello.send(channel, &taken);
        match (placed, answered) {
            (Ok((number, said)), Ok(())) => Ok(Peer { hello: peer, number, said }),
            (Ok((number, _)), Err(error)) => {
                self.leave(number);
                Err(error)
            }
            (Err(error), Ok(())) => Err(self.hello.explained(channel, &peer, error)),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// Gives a peer its place and a number. Says who it is, and who is still missing.
    fn take_place(&self, places: &mut Places, peer: &Hello) -> Result<(u64, String), SessionError> {
        let all = if places.party == Some(peer.role) {
            if self.hello.role == Role::Owner {
                // A party says which inputs have other owners by now.
                let taken = |input: &usize| self.hello.supplies(*input) && peer.supplies(*input);
                if let Some(input) = (0..self.circuit.inputs().len()).find(taken) {
                    let name = self.circuit.inputs()[input].name.clone();
                    return Err(SessionError::Supply { input, name, by: "another owner" });
                }
            } else if !self.owners {
                check_supply(self.circuit, &self.hello, peer)?;
            }
            places.party = None;
            Vec::new()
        } else if self.owners && peer.role == Role::Owner {
            let all: Vec<usize> = (0..places.taken.len()).filter(|i| peer.supplies(*i)).collect();
            if all.is_empty() {
                let (got, want) = ("an owner of no input".into(), "one that has some".into());
                return Err(SessionError::Protocol { got, want });
            }
            if let Some(input) = all.iter().copied().find(|i| places.taken[*i]) {
                let name = self.circuit.inputs()[input].name.clone();
                return Err(SessionError::Supply { input, name, by: "two owners" });
            }
            all.iter().for_each(|input| places.taken[*input] = true);
            all
        } else {
            let wanted = places.party.or(self.owners.then_some(Role::Owner));
            return Err(match wanted {
                Some(wanted) => unexpected(peer.role, wanted),
                None => SessionError::Protocol {
                    got: format!("the hello of another {}", peer.role),
                    want: "nobody's".into(),
                },
            });
        };
        let who = self.name(peer.role, &all);
        places.count += 1;
        let number = places.count;
        places.here.insert(number, (peer.role, all));
        if !self.owners {
            return Ok((number, String::new()));
        }
        let missing = self.missing_of(places);
        Ok((
            number,
            if missing.is_empty() {
                format!("{who} is here, and so is everybody")
            } else {
                format!("{who} is here; missing: {missing}")
            },
        ))
    }

    /// Frees the place of a peer that is gone. Says who it was, and who is missing now; nothing if it had none any more.
    pub fn leave(&self, number: u64) -> Option<String> {
        let mut places = self.places();
        let (role, inputs) = places.here.remove(&number)?;
        if role == Role::Owner {
            inputs.iter().for_each(|input| places.taken[*input] = false);
        } else {
            places.party = Some(role);
        }
        let (who, missing) = (self.name(role, &inputs), self.missing_of(&places));
        Some(format!("{who} is gone, and another may take its place; missing: {missing}"))
    }

    /// The part of a peer that can't be replaced any more: the other party, once owners are here. They go on to that very one, and would
    /// not come to another.
    pub(crate) fn holds_owners(&self, number: u64) -> Option<Role> {
        let places = self.places();
        let (role, _) = places.here.get(&number)?;
        let owners = places.here.values().any(|(other, _)| *other == Role::Owner);
        (owners && *role != Role::Owner).then_some(*role)
    }

    /// Whether a peer has its place still.
    pub(super) fn is_here(&self, number: u64) -> bool {
        self.places().here.contains_key(&number)
    }

    /// Who it is, by its part and its inputs.
    pub(super) fn name(&self, role: Role, all: &[usize]) -> String {
        match role {
            Role::Owner => format!("the owner of {}", inputs(self.circuit.inputs(), all)),
            other => format!("the {other}"),
        }
    }

    /// Who has not come yet, for people; empty if all are there.
    pub(super) fn missing(&self) -> String {
        self.missing_of(&self.places())
    }

    fn missing_of(&self, places: &Places) -> String {
        let party = places.party.map(|role| format!("the {role}"));
        let free: Vec<usize> = (0..places.taken.len()).filter(|i| !places.taken[*i]).collect();
        let owners =
            (!free.is_empty()).then(|| format!("owners of {}", inputs(self.circuit.inputs(), &free)));
        party.into_iter().chain(owners).collect::<Vec<_>>().join(" and ")
    }
}

/// Inputs by place and name, as many as fit a line.
fn inputs(ports: &[PortShape], all: &[usize]) -> String {
    let named = all.iter().take(NAMED).map(|i| format!("{i} ({:?})", ports[*i].name));
    let more = all.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    let what = if all.len() == 1 { "input" } else { "inputs" };
    format!("{what} {}", named.chain(more).collect::<Vec<_>>().join(", "))
}

/// The one peer of a session of two.
pub(super) fn first<C>(
    greeting: &Greeting<'_>,
    arrivals: impl Arrivals<C>,
) -> Result<(C, Peer), SessionError> {
    let mut came = None;
    let ended = arrivals(greeting, &mut |channel, peer| {
        came = Some((channel, peer));
        ControlFlow::Break(())
    });
    ended.map_err(|error| waiting(error, String::new()))?;
    came.ok_or_else(|| waiting("nobody came".into(), String::new()))
}

/// Why nobody comes any more, and who is missing.
pub(super) fn waiting(error: Box<dyn Error + Send + Sync>, missing: String) -> SessionError {
    match error.downcast::<SessionError>() {
        Ok(error) => *error,
        Err(source) => {
            let missing = if missing.is_empty() { missing } else { format!("; missing: {missing}") };
            SessionError::Waiting { cause: source.to_string(), missing }
        }
    }
}
