//! Who is looked at at a time, and who gives way where there would be more.
//!
//! Whoever fills the places has all of them without end, from wherever it likes, and without a word. So the places are
//! no queue: the first gives way. Those who have said something and those who have not give way to their own
//! kind, so that silence, which costs nothing, pushes out nobody who speaks; and a peer, which is known by its hello, to nobody.

use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use super::waking::{has_unread, reset_at_close};

/// Connections that are looked at at a time. Where there would be more, of those who have said nothing, or of the
/// others if these are more, the network that has most of them gives up the one that came first.
pub(super) const AT_A_TIME: usize = 64;

/// How far one who came has got. Its own thread notes it, and who makes room.
#[derive(Default)]
pub(super) struct Standing(Mutex<Step>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Step {
    /// It has said nothing.
    #[default]
    Silent,
    /// It has said something.
    Speaks,
    /// It is a peer.
    Peer,
    /// It was told why it is none, and has not gone yet.
    TurnedAway,
    /// It has given way.
    Ended,
}

impl Standing {
    /// Goes on to `next` from one of these steps. Returns where it stood.
    fn go(&self, from: &[Step], next: Step) -> Step {
        let mut step = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *step;
        if from.contains(&before) {
            *step = next;
        }
        before
    }

    fn step(&self) -> Step {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has said something.
    pub(super) fn speaks(&self) {
        self.go(&[Step::Silent], Step::Speaks);
    }

    /// It is a peer, and gives way to nobody from now on; `false` if it already has.
    pub(super) fn stays(&self) -> bool {
        self.go(&[Step::Silent, Step::Speaks], Step::Peer) != Step::Ended
    }

    /// Whether it has given way.
    pub(super) fn has_ended(&self) -> bool {
        self.step() == Step::Ended
    }

    /// It is let go, with a last word; `false` if it has given way already.
    pub(super) fn is_turned_away(&self) -> bool {
        self.go(&[Step::Silent, Step::Speaks, Step::Peer], Step::TurnedAway) != Step::Ended
    }
}

/// A connection that is looked at.
pub(super) struct Candidate {
    pub(super) number: u64,
    pub(super) address: IpAddr,
    pub(super) standing: Arc<Standing>,
    /// To end it from here.
    pub(super) stream: Arc<TcpStream>,
}

impl Candidate {
    /// Ends it unless it is a peer. Where nothing was known of it, it is reset: by that a peer knows that it may come again.
    /// Returns whether it has ended.
    fn gives_way(&self) -> bool {
        match self.standing.go(&[Step::Silent, Step::Speaks, Step::TurnedAway], Step::Ended) {
            Step::Peer => return false,
            Step::TurnedAway => self.end(),
            Step::Silent | Step::Speaks | Step::Ended => {
                let _ = reset_at_close(&self.stream);
                // Its thread wakes, and closes it.
                let _ = self.stream.shutdown(Shutdown::Read);
            }
        }
        true
    }

    /// Ends it, whatever it is.
    pub(super) fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Room for one more.
pub(super) fn make_room(candidates: &mut Vec<Candidate>) {
    while candidates.len() >= AT_A_TIME && give_way(candidates) {}
}

/// Ends one. Returns whether there was one that is not a peer.
pub(super) fn give_way(candidates: &mut Vec<Candidate>) -> bool {
    loop {
        let all = |steps: &[Step]| -> Vec<usize> {
            (0..candidates.len()).filter(|at| steps.contains(&candidates[*at].standing.step())).collect()
        };
        let (silent, speaking) = (all(&[Step::Silent]), all(&[Step::Speaks, Step::TurnedAway]));
        let those = if silent.len() >= speaking.len() { silent } else { speaking };
        let of =
            |network| those.iter().filter(|at| self::network(candidates[**at].address) == network).count();
        // The first of several that are equal.
        let most = those.iter().rev().max_by_key(|at| of(network(candidates[**at].address)));
        let Some(at) = most.copied() else { return false };
        let candidate = &candidates[at];
        if candidate.standing.step() == Step::Silent && has_unread(&candidate.stream) {
            // What it has said was not read yet.
            candidate.standing.speaks();
        } else if candidate.gives_way() {
            candidates.remove(at);
            return true;
        }
    }
}

/// What one party has of addresses: of IPv6 a network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    /// Candidates from addresses, all over one connection, and its other end.
    fn connection() -> (Arc<TcpStream>, TcpStream) {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        (Arc::new(socket.accept().unwrap().0), other)
    }

    fn from(number: u64, address: impl Into<IpAddr>, stream: &Arc<TcpStream>) -> Candidate {
        let (address, standing, stream) = (address.into(), Arc::default(), stream.clone());
        Candidate { number, address, standing, stream }
    }

    fn numbers(candidates: &[Candidate]) -> Vec<u64> {
        candidates.iter().map(|c| c.number).collect()
    }

    #[test]
    fn who_has_most_gives_way() {
        let (stream, _other) = connection();
        let of = |number, last| from(number, [192, 0, 2, last], &stream);
        let mut candidates = vec![of(0, 1)];
        make_room(&mut candidates);
        assert_eq!(candidates.len(), 1);
        candidates.extend((1..AT_A_TIME as u64).map(|n| of(n, 2)));
        make_room(&mut candidates);
        let left = numbers(&candidates);
        assert_eq!((left.len(), left[0], left[1]), (AT_A_TIME - 1, 0, 2), "the first of those that are many");
    }

    #[test]
    fn of_ipv6_a_network_has_most_whatever_its_addresses_are() {
        let (stream, _other) = connection();
        let of = |number: u64, network: u16| {
            from(number, [0x2001, 0xdb8, 0, network, 0, 0, number as u16, 1], &stream)
        };
        let mut candidates = vec![of(0, 1)];
        candidates.extend((1..AT_A_TIME as u64).map(|n| of(n, 2)));
        make_room(&mut candidates);
        assert_eq!(numbers(&candidates)[..2], [0, 2]);
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), network("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn silence_pushes_out_nobody_who_speaks_and_nobody_a_peer() {
        let (stream, _other) = connection();
        let (spoken, mut speaks) = connection();
        speaks.write_all(&[7]).unwrap();
        // What it sent is there before anything is asked.
        spoken.peek(&mut [0]).unwrap();
        let of = |number| from(number, [192, 0, 2, 1], &stream);
        let mut candidates = vec![of(0), from(1, [192, 0, 2, 1], &spoken), of(2)];
        assert!(candidates[0].standing.stays());
        candidates[2].standing.speaks();
        for number in 3..200 {
            make_room(&mut candidates);
            candidates.push(of(number));
        }
        let left = numbers(&candidates);
        assert_eq!((left.len(), &left[..4]), (AT_A_TIME, &[0, 1, 2, 139][..]));
        // And the other way round: those who speak have half of the places before they take one of the silent.
        candidates.iter().for_each(|candidate| candidate.standing.speaks());
        for number in 200..400 {
            make_room(&mut candidates);
            candidates.push(of(number));
            if number >= 300 {
                candidates.last().unwrap().standing.speaks();
            }
        }
        let silent = candidates.iter().filter(|c| c.standing.step() == Step::Silent).count();
        assert!(candidates.len() == AT_A_TIME && candidates[0].number == 0 && silent >= 31, "{silent}");
        // One that has ended does not become a peer.
        let ended = of(0);
        assert!(ended.gives_way() && !ended.standing.stays() && !candidates[0].gives_way());
    }
}
