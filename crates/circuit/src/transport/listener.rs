//! Peers that come. Each is looked at on a thread of its own, so that a stranger keeps nobody waiting.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufWriter};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConnection, StreamOwned};

use super::{
    BUFFER, Connection, Security, Socket, Timeouts, TransportError, check_plain, is_silence, part, resolve,
    shake_hands,
};
use crate::session::{Arrivals, Greeting, Peer};

/// Connections that are looked at at a time. Where there would be more, the address that has most of them gives up the
/// one that came first.
const AT_A_TIME: usize = 64;
/// Those that are turned away and said one by one; of more, every one whose number is a power of two is.
const SAID: u64 = 16;
/// How often is looked for the next.
const TICK: Duration = Duration::from_millis(10);

/// A socket that waits for peers.
pub struct Listener {
    socket: TcpListener,
    security: Security,
    timeouts: Timeouts,
}

/// Somebody who was turned away; of many not every one is said.
#[derive(Debug)]
pub struct TurnedAway {
    /// Where it came from.
    pub address: SocketAddr,
    /// Why it was turned away.
    pub why: String,
    /// How many were until now.
    pub count: u64,
}

impl fmt::Display for TurnedAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, why, count } = self;
        write!(f, "a connection from {address} was turned away: {why}")?;
        if *count > SAID { write!(f, " ({count} until now)") } else { Ok(()) }
    }
}

/// Listens at an address.
///
/// # Errors
/// It can't be bound, or plain text would leave the machine.
pub fn listen(address: &str, security: &Security, timeouts: Timeouts) -> Result<Listener, TransportError> {
    let refuse =
        |source| TransportError::Address { what: "can't listen at", address: address.into(), source };
    let all = resolve(address).map_err(refuse)?;
    check_plain(&all, security)?;
    let socket = TcpListener::bind(&all[..]).map_err(refuse)?;
    Ok(Listener { socket, security: security.clone(), timeouts })
}

/// A connection that is looked at.
struct Candidate {
    number: u64,
    address: IpAddr,
    /// To end it from here.
    stream: TcpStream,
}

impl Listener {
    /// Where it listens: the port that was given out where 0 was asked for.
    ///
    /// # Errors
    /// The system doesn't say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The first peer that ends its handshake, whatever others do meanwhile. Those who fail it are turned away.
    ///
    /// # Errors
    /// Nobody came in time.
    pub fn accept(&self, turned_away: impl FnMut(&TurnedAway)) -> Result<Connection, TransportError> {
        let mut first = None;
        self.meet(
            |_| Ok(()),
            turned_away,
            |connection, ()| {
                first = Some(connection);
                ControlFlow::Break(())
            },
        )?;
        Ok(first.expect("it ends with the first"))
    }

    /// Greets those who come, all at a time, and hands over those whom `greet` lets in until `take` has enough of them. The
    /// others are turned away: who is silent, who speaks something else, whom `greet` refuses with a reason.
    ///
    /// # Errors
    /// Nobody came in time, from the beginning or from the last who was let in.
    pub fn meet<T: Send>(
        &self,
        greet: impl Fn(&mut Connection) -> Result<T, String> + Sync,
        turned_away: impl FnMut(&TurnedAway),
        take: impl FnMut(Connection, T) -> ControlFlow<()>,
    ) -> Result<(), TransportError> {
        self.meet_while(greet, turned_away, take, || ())
    }

    /// As [`Listener::meet`]; `look_after` is called again and again meanwhile.
    fn meet_while<T: Send>(
        &self,
        greet: impl Fn(&mut Connection) -> Result<T, String> + Sync,
        mut turned_away: impl FnMut(&TurnedAway),
        mut take: impl FnMut(Connection, T) -> ControlFlow<()>,
        mut look_after: impl FnMut(),
    ) -> Result<(), TransportError> {
        let at = || self.address().map_or_else(|_| "?".into(), |a| a.to_string());
        let refuse = |source| TransportError::Address { what: "can't accept at", address: at(), source };
        self.socket.set_nonblocking(true).map_err(refuse)?;
        let mut deadline = Instant::now() + self.timeouts.wait;
        let (mut candidates, mut number) = (Vec::<Candidate>::new(), 0);
        let (mut count, mut last) = (0, String::new());
        let mut looked = Instant::now();
        let (sender, met) = mpsc::channel();
        let greet = &greet;
        thread::scope(|scope| {
            let ended = loop {
                if looked.elapsed() >= TICK {
                    look_after();
                    looked = Instant::now();
                }
                // Also where strangers come without end.
                if Instant::now() >= deadline {
                    let turned_away = match count {
                        0 => String::new(),
                        n => format!("; {n} who came were turned away, the last because {last}"),
                    };
                    let (seconds, address) = (self.timeouts.wait.as_secs(), at());
                    break Err(TransportError::Nobody { turned_away, seconds, address });
                }
                let came = match self.socket.accept() {
                    Ok((stream, address)) => {
                        make_room(&mut candidates);
                        number += 1;
                        let (sender, this) = (sender.clone(), number);
                        if let (Ok(kept), Ok(left)) = (stream.try_clone(), stream.try_clone()) {
                            candidates.push(Candidate { number, address: address.ip(), stream: kept });
                            scope.spawn(move || {
                                let ended = self.look_at(stream, greet);
                                let refused = ended.is_err();
                                let _ = sender.send((this, address, Some(ended)));
                                if refused {
                                    part(&left);
                                    let _ = sender.send((this, address, None));
                                }
                            });
                        }
                        true
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => false,
                    // A peer that was gone before it was accepted.
                    Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => false,
                    Err(e) => break Err(refuse(e)),
                };
                let wait = if came { Duration::ZERO } else { TICK };
                let Ok((this, address, ended)) = met.recv_timeout(wait) else { continue };
                // Who is turned away stays one of them until it has gone.
                if !matches!(ended, Some(Err(_))) {
                    candidates.retain(|candidate| candidate.number != this);
                }
                match ended {
                    None => {}
                    Some(Ok((connection, greeted))) => {
                        deadline = Instant::now() + self.timeouts.wait;
                        look_after();
                        if take(connection, greeted).is_break() {
                            break Ok(());
                        }
                    }
                    Some(Err(why)) => {
                        count += 1;
                        last.clone_from(&why);
                        if count <= SAID || count.is_power_of_two() {
                            turned_away(&TurnedAway { address, why, count });
                        }
                    }
                }
            };
            // Their threads end with them.
            candidates.iter().for_each(end);
            ended
        })
    }

    /// One connection, from its first byte until it is let in.
    fn look_at<T>(
        &self,
        stream: TcpStream,
        greet: &impl Fn(&mut Connection) -> Result<T, String>,
    ) -> Result<(Connection, T), String> {
        let opened = || {
            stream.set_nonblocking(false)?;
            let mut socket = Socket::new(stream, self.timeouts)?;
            // However it trickles, it is looked at no longer than this.
            socket.begin_handshake(self.timeouts.handshake);
            let Security::Tls { tls, .. } = &self.security else {
                return Ok(Connection::Plain(BufWriter::with_capacity(BUFFER, socket)));
            };
            let connection = ServerConnection::new(tls.server.clone()).map_err(io::Error::other)?;
            let mut tls = StreamOwned::new(connection, socket.reading_ahead());
            shake_hands(&mut tls.conn, &mut tls.sock)?;
            Ok(Connection::Server(Box::new(BufWriter::with_capacity(BUFFER, tls))))
        };
        let mut connection = opened().map_err(|e: io::Error| TransportError::handshake(&e).to_string())?;
        let greeted = greet(&mut connection)?;
        let ended = connection.socket().end_handshake();
        ended.map_err(|e| if is_silence(&e) { "it was silent".to_owned() } else { e.to_string() })?;
        Ok((connection, greeted))
    }
}

/// Room for one more among those that are looked at.
fn make_room(candidates: &mut Vec<Candidate>) {
    if candidates.len() < AT_A_TIME {
        return;
    }
    let of = |address: IpAddr| candidates.iter().filter(|c| c.address == address).count();
    // The first of several that are equal.
    let most = (0..candidates.len()).rev().max_by_key(|at| of(candidates[*at].address));
    if let Some(at) = most {
        end(&candidates.remove(at));
    }
}

/// Whether the other side has closed a connection over which nothing is said. Nobody else reads it meanwhile.
fn is_gone(stream: &TcpStream) -> bool {
    let looked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    let back = stream.set_nonblocking(false);
    let open = |kind| matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
    back.is_err() || looked.map_or_else(|e| !open(e.kind()), |bytes| bytes == 0)
}

fn end(candidate: &Candidate) {
    let _ = candidate.stream.shutdown(Shutdown::Both);
}

/// Where the peers of a session come from: to this side, or this side to the one.
pub enum Door {
    /// They come.
    Listener(Listener),
    /// It is there.
    Connection(Box<Connection>),
}

impl Door {
    /// Where it listens, if it does.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Door::Listener(listener) => listener.address().ok(),
            Door::Connection(_) => None,
        }
    }

    /// Arrivals for a session. `say` is told who came and who was turned away, a sentence each.
    pub fn arrivals<'a>(self, say: &'a mut dyn FnMut(&str)) -> impl Arrivals<Connection> + use<'a> {
        move |greeting: &Greeting<'_>, take: &mut dyn FnMut(Connection, Peer) -> ControlFlow<()>| {
            let listener = match self {
                Door::Listener(listener) => listener,
                Door::Connection(mut connection) => {
                    let peer = greeting.meet(&mut *connection)?;
                    let _ = take(*connection, peer);
                    return Ok(());
                }
            };
            let say = RefCell::new(say);
            // Those who were let in, and wait for others. Nobody has anything to say by then.
            let waiting = RefCell::new(Vec::<(u64, TcpStream)>::new());
            let look_after = || {
                waiting.borrow_mut().retain(|(number, stream)| {
                    let gone = is_gone(stream);
                    if gone && let Some(said) = greeting.leave(*number) {
                        (*say.borrow_mut())(&said);
                    }
                    !gone
                });
            };
            let greet = |connection: &mut Connection| greeting.welcome(connection).map_err(|e| e.cause());
            let turned_away = |who: &TurnedAway| (*say.borrow_mut())(&who.to_string());
            let let_in = |mut connection: Connection, peer: Peer| {
                if !peer.said().is_empty() {
                    (*say.borrow_mut())(peer.said());
                }
                if let Ok(stream) = connection.socket().stream.try_clone() {
                    waiting.borrow_mut().push((peer.number(), stream));
                }
                take(connection, peer)
            };
            Ok(listener.meet_while(greet, turned_away, let_in, look_after)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_gives_way() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        let from = |number: u64, last: u8| Candidate {
            number,
            address: IpAddr::from([192, 0, 2, last]),
            stream: stream.try_clone().unwrap(),
        };
        let mut candidates = vec![from(0, 1)];
        make_room(&mut candidates);
        assert_eq!(candidates.len(), 1);
        candidates.extend((1..AT_A_TIME as u64).map(|n| from(n, 2)));
        make_room(&mut candidates);
        let left: Vec<u64> = candidates.iter().map(|c| c.number).collect();
        assert_eq!((left.len(), left[0], left[1]), (AT_A_TIME - 1, 0, 2), "the first of those that are many");
    }
}
