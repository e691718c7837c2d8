//! The first message of each side, and what must agree.

use std::io::{Read, Write};

use blindcore_accel::garble::GarblingScheme;
use blindcore_files::header::{Field, HeaderError, Layout};

use super::message::{Message, flush, receive, send};
use super::{Check, Inputs, SessionError};
use crate::circuit::{Circuit, hexadecimal, short_digest};
use crate::ports::MAX_INPUTS;

/// Which part a party plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Makes the tables.
    Garbler,
    /// Evaluates them.
    Evaluator,
    /// Has an input and neither garbles nor evaluates.
    Owner,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Garbler => "garbler",
            Role::Evaluator => "evaluator",
            Role::Owner => "owner",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Which party learns the outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Learns {
    /// Both parties.
    #[default]
    Both,
    /// The garbler alone.
    Garbler,
    /// The evaluator alone.
    Evaluator,
}

impl Learns {
    pub(super) fn evaluator(self) -> bool {
        self != Learns::Garbler
    }

    pub(super) fn garbler(self) -> bool {
        self != Learns::Evaluator
    }

    fn name(self) -> &'static str {
        match self {
            Learns::Both => "both parties",
            Learns::Garbler => "the garbler",
            Learns::Evaluator => "the evaluator",
        }
    }
}

/// Which way the garbler garbles; it says so in its hello, and the evaluator follows: both protect alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Garbling {
    /// 32 bytes an AND gate, and the least AES.
    #[default]
    HalfGates,
    /// 25 bytes an AND gate and half as much AES again: for narrow links.
    ThreeHalves,
}

/// The permutation's public key, and the way of garbling that it is for.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) garbling: Garbling,
    bytes: [u8; 16],
}

impl Key {
    /// What the garble operation calls it.
    pub(super) fn scheme(self) -> GarblingScheme {
        let key = self.bytes;
        match self.garbling {
            Garbling::HalfGates => GarblingScheme::HalfGates { key },
            Garbling::ThreeHalves => GarblingScheme::ThreeHalves { key },
        }
    }
}

const LAYOUT: Layout = Layout {
    what: "a hello of blindcore",
    magic: b"blindcore garble",
    version_at: 16,
    version_bytes: 2,
    version: 2,
    bytes: LENGTH,
};
const ROLE: Field<u8> = Field::at(18);
const LEARNS: Field<u8> = Field::at(19);
const CHECK: Field<u8> = Field::at(20);
const GARBLING: Field<u8> = Field::at(21);
const DIGEST: Field<[u8; 32]> = Field::at(22);
const KEY: Field<[u8; 16]> = Field::at(54);
const SUPPLIED: Field<[u8; MAX_INPUTS / 8]> = Field::at(70);
/// Bits of all inputs, and of all outputs: their labels are one message each, of 2 GiB at most.
const MAX_BITS: usize = 1 << 27;
/// Magic, version, role, learns, check, garbling, digest, key, supplied inputs.
const LENGTH: usize = 16 + 2 + 4 + 32 + 16 + MAX_INPUTS / 8;

/// What a side says of itself.
pub(super) struct Hello {
    pub(super) role: Role,
    pub(super) learns: Learns,
    pub(super) check: Check,
    pub(super) digest: [u8; 32],
    /// What this side's circuit has; nothing of the peer's.
    about: [u64; COUNTS],
    /// The garbler's counts.
    pub(super) key: Key,
    supplied: [u8; MAX_INPUTS / 8],
}

impl Hello {
    pub(super) fn new(
        role: Role,
        learns: Learns,
        check: Check,
        circuit: &Circuit,
        inputs: &Inputs,
    ) -> Result<Self, SessionError> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(SessionError::Randomness)?;
        check_size(circuit)?;
        let mut supplied = [0; MAX_INPUTS / 8];
        for input in 0..circuit.inputs().len() {
            supplied[input / 8] |= u8::from(inputs.has(input)) << (input % 8);
        }
        let key = Key { garbling: Garbling::default(), bytes: key };
        Ok(Self { role, learns, check, digest: *circuit.digest(), about: counts(circuit), key, supplied })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = LAYOUT.start();
        ROLE.put(&mut bytes, self.role as u8);
        LEARNS.put(&mut bytes, self.learns as u8);
        CHECK.put(&mut bytes, u8::from(self.check == Check::Malicious));
        GARBLING.put(&mut bytes, self.key.garbling as u8);
        DIGEST.put(&mut bytes, self.digest);
        KEY.put(&mut bytes, self.key.bytes);
        SUPPLIED.put(&mut bytes, self.supplied);
        bytes
    }

    fn from_bytes(bytes: &[u8; LENGTH]) -> Result<Self, SessionError> {
        let unknown = |what: &str, got: u8| SessionError::Protocol {
            got: format!("a hello with {what} {got}"),
            want: "one that version 2 knows".into(),
        };
        let hello = LAYOUT.check(bytes).map_err(|error| match error {
            HeaderError::Version { got, want } => SessionError::Differs {
                what: "protocol version",
                theirs: got.to_string(),
                ours: want.to_string(),
                remedy: "use the same blindcore on both sides",
            },
            _ => {
                SessionError::Protocol { got: "bytes that begin otherwise".into(), want: LAYOUT.what.into() }
            }
        })?;
        let (role, learns, garbling) = (ROLE.get(hello), LEARNS.get(hello), GARBLING.get(hello));
        let roles = [Role::Garbler, Role::Evaluator, Role::Owner];
        let all_learn = [Learns::Both, Learns::Garbler, Learns::Evaluator];
        let garblings = [Garbling::HalfGates, Garbling::ThreeHalves];
        let check = match CHECK.get(hello) {
            0 => Check::None,
            1 => Check::Malicious,
            other => return Err(unknown("check", other)),
        };
        let role = roles.into_iter().find(|r| *r as u8 == role).ok_or_else(|| unknown("role", role))?;
        let learns = all_learn
            .into_iter()
            .find(|l| *l as u8 == learns)
            .ok_or_else(|| unknown("outputs for", learns))?;
        let garbling = garblings
            .into_iter()
            .find(|g| *g as u8 == garbling)
            .ok_or_else(|| unknown("garbling", garbling))?;
        Ok(Self {
            role,
            learns,
            check,
            digest: DIGEST.get(hello),
            about: [0; COUNTS],
            key: Key { garbling, bytes: KEY.get(hello) },
            supplied: SUPPLIED.get(hello),
        })
    }

    /// Sends this hello. `taken` are inputs that are not asked for any more, as those that this side supplies.
    pub(super) fn send<C: Write>(&self, channel: &mut C, taken: &[bool]) -> Result<(), SessionError> {
        let mut bytes = self.to_bytes();
        let mut supplied = self.supplied;
        for (input, taken) in taken.iter().enumerate() {
            supplied[input / 8] |= u8::from(*taken) << (input % 8);
        }
        SUPPLIED.put(&mut bytes, supplied);
        send(channel, Message::Hello, &bytes)?;
        flush(channel, Message::Hello)
    }

    /// Receives a peer's.
    pub(super) fn receive<C: Read>(channel: &mut C) -> Result<Self, SessionError> {
        let mut bytes = [0; LENGTH];
        receive(channel, Message::Hello, &mut bytes)?;
        Self::from_bytes(&bytes)
    }

    /// Sends this hello and receives the peer's, for the side that connected.
    pub(super) fn exchange<C: Read + Write>(&self, channel: &mut C) -> Result<Hello, SessionError> {
        self.send(channel, &[])?;
        let peer = Self::receive(channel)?;
        self.check(&peer).map_err(|error| self.explained(channel, &peer, error))?;
        Ok(peer)
    }

    /// Fails unless a peer says the same of what must be the same.
    pub(super) fn check(&self, peer: &Hello) -> Result<(), SessionError> {
        let differs = |what, theirs: &str, ours: &str, remedy| {
            let (theirs, ours) = (theirs.to_string(), ours.to_string());
            Err(SessionError::Differs { what, theirs, ours, remedy })
        };
        if peer.role == self.role && self.role != Role::Owner {
            return differs(
                "the role",
                peer.role.name(),
                self.role.name(),
                "one garbles, the other evaluates",
            );
        }
        if peer.digest != self.digest {
            return Err(self.other_circuit(peer, ""));
        }
        if peer.learns != self.learns {
            let remedy = "give both sides the same --reveal";
            return differs("outputs for", peer.learns.name(), self.learns.name(), remedy);
        }
        if peer.check != self.check {
            let name = |c| if c == Check::Malicious { "on" } else { "off" };
            let remedy = "give --check-transfers to both sides or to neither";
            return differs("the check of transfers", name(peer.check), name(self.check), remedy);
        }
        Ok(())
    }

    /// The error of [`check`](Self::check), to which both add what their circuits have where it is these that differ.
    pub(super) fn explained<C: Read + Write>(
        &self,
        channel: &mut C,
        peer: &Hello,
        error: SessionError,
    ) -> SessionError {
        if peer.role == self.role && self.role != Role::Owner || peer.digest == self.digest {
            return error;
        }
        // What each has is of use and no more: a peer that is gone by now leaves the digests.
        let theirs = about(channel, &self.about).unwrap_or_default();
        self.other_circuit(peer, &theirs)
    }

    fn other_circuit(&self, peer: &Hello, theirs: &str) -> SessionError {
        // All of both where the first bytes, which are shown elsewhere, agree.
        let alike = short_digest(&peer.digest) == short_digest(&self.digest);
        let [theirs, ours] =
            [(&peer.digest, theirs), (&self.digest, &shown(&self.about))].map(|(digest, about)| {
                let digest = if alike { hexadecimal(digest) } else { short_digest(digest) };
                format!("{digest}{about}")
            });
        let remedy = "give both sides the same file, the same --rounds, and --stream or not";
        SessionError::Differs { what: "the circuit", theirs, ours, remedy }
    }

    /// Whether this side supplies an input.
    pub(super) fn supplies(&self, input: usize) -> bool {
        self.supplied[input / 8] >> (input % 8) & 1 == 1
    }
}

/// A peer that plays another role than is waited for.
pub(super) fn unexpected(got: Role, want: Role) -> SessionError {
    SessionError::Differs {
        what: "the role",
        theirs: got.to_string(),
        ours: format!("waits for the {want}"),
        remedy: "give each side its --role, and --owners to all or none",
    }
}

/// Inputs and their bits, outputs and theirs, AND gates: what tells two circuits apart at a glance.
const COUNTS: usize = 5;

fn counts(circuit: &Circuit) -> [u64; COUNTS] {
    let [(inputs, input_bits), (outputs, output_bits)] = [circuit.inputs(), circuit.outputs()]
        .map(|ports| (ports.len() as u64, ports.iter().map(|port| port.width as u64).sum()));
    [inputs, input_bits, outputs, output_bits, circuit.ands()]
}

fn shown([inputs, input_bits, outputs, output_bits, ands]: &[u64; COUNTS]) -> String {
    format!(" (inputs {inputs}, of {input_bits} bits; outputs {outputs}, of {output_bits} bits; {ands} ANDs)")
}

/// Where circuits differ each side says what its own has: the peer's, for people.
fn about<C: Read + Write>(channel: &mut C, own: &[u64; COUNTS]) -> Result<String, SessionError> {
    send(channel, Message::About, &own.map(u64::to_le_bytes).concat())?;
    flush(channel, Message::About)?;
    let mut bytes = [0; 8 * COUNTS];
    receive(channel, Message::About, &mut bytes)?;
    let counts: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|count| u64::from_le_bytes(*count)).collect();
    Ok(shown(&counts.try_into().expect("as many")))
}

/// Fails unless a session can have this circuit: a party may ask before it binds anything or waits for anybody.
///
/// # Errors
/// It has more inputs, or more bits of inputs or outputs, than a session takes.
pub fn check_size(circuit: &Circuit) -> Result<(), SessionError> {
    let (got, limit) = (circuit.inputs().len(), MAX_INPUTS);
    if got > limit {
        return Err(SessionError::Inputs { got, limit });
    }
    for (what, ports) in [("inputs", circuit.inputs()), ("outputs", circuit.outputs())] {
        check_bits(what, ports.iter().map(|port| port.width).sum())?;
    }
    Ok(())
}

fn check_bits(what: &'static str, got: usize) -> Result<(), SessionError> {
    if got > MAX_BITS { Err(SessionError::Bits { what, got, limit: MAX_BITS }) } else { Ok(()) }
}

/// Fails unless each input is supplied by exactly one of both.
pub(super) fn check_supply(circuit: &Circuit, ours: &Hello, peer: &Hello) -> Result<(), SessionError> {
    for (input, port) in circuit.inputs().iter().enumerate() {
        let by = match (ours.supplies(input), peer.supplies(input)) {
            (false, false) => "nobody",
            (true, true) => "both parties",
            _ => continue,
        };
        return Err(SessionError::Supply { input, name: port.name.clone(), by });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_that_begin_alike_are_shown_whole() {
        let circuit = Circuit::new(&crate::problems::make("add8").unwrap());
        let hello =
            || Hello::new(Role::Garbler, Learns::Both, Check::None, &circuit, &Inputs::new()).unwrap();
        let (ours, mut peer) = (hello(), hello());
        let said = |peer: &Hello| ours.other_circuit(peer, "").to_string();
        peer.digest[31] ^= 1;
        let whole = [&peer, &ours].map(|side| hexadecimal(&side.digest));
        assert!(whole.iter().all(|digest| said(&peer).contains(digest)), "{}", said(&peer));
        peer.digest[0] ^= 1;
        assert!(
            said(&peer)
                .starts_with(&format!("the peer has the circuit {}, this side", short_digest(&peer.digest)))
        );
    }

    #[test]
    fn bits_beyond_a_message_are_refused_before_it_is_made() {
        assert!(check_bits("inputs", MAX_BITS).is_ok());
        assert!(u32::try_from(16 * MAX_BITS).is_ok());
        let error = check_bits("outputs", MAX_BITS + 1).unwrap_err().to_string();
        assert!(error.contains("134217729 bits of outputs"), "{error}");
    }
}
