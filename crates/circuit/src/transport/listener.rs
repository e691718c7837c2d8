//! Peers that come. Each is looked at on a thread of its own, so that a stranger keeps nobody waiting.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufWriter};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConnection, StreamOwned};

use super::standing::{Candidate, Standing, give_way, make_room};
use super::waking::is_gone;
use super::{
    BUFFER, Call, Connection, Security, Socket, Timeouts, TransportError, check_plain, is_silence, part,
    resolve, shake_hands,
};
use crate::session::{Arrivals, Greeting, Peer};

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

/// Whether a connection was not accepted because there is nothing left to accept it with, which passes.
fn is_exhausted(e: &io::Error) -> bool {
    let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    e.raw_os_error().is_some_and(|code| exhausted.contains(&code))
}

impl Listener {
    /// The same, for a peer whose certificate has this name; all others are turned away.
    ///
    /// # Errors
    /// The name can't be one of a certificate.
    pub fn only(self, peer_name: &str) -> Result<Self, TransportError> {
        let name = super::server_name(peer_name)?;
        let security = match self.security {
            Security::Tls { tls, peer_name } => Security::Tls { tls: tls.only(name)?, peer_name },
            plain => plain,
        };
        Ok(Self { security, ..self })
    }

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
        self.meet_while(|connection, _| greet(connection), turned_away, take, || Ok(()))
    }

    /// As [`Listener::meet`]; `greet` notes as soon as it knows that somebody is a peer, who stays from then on, and `look_after` is
    /// called again and again meanwhile, and ends the wait by an error.
    fn meet_while<T: Send>(
        &self,
        greet: impl Fn(&mut Connection, &Standing) -> Result<T, String> + Sync,
        mut turned_away: impl FnMut(&TurnedAway),
        mut take: impl FnMut(Connection, T) -> ControlFlow<()>,
        mut look_after: impl FnMut() -> Result<(), TransportError>,
    ) -> Result<(), TransportError> {
        let at = || self.address().map_or_else(|_| "?".into(), |a| a.to_string());
        let refuse = |source| TransportError::Address { what: "can't accept at", address: at(), source };
        self.socket.set_nonblocking(true).map_err(refuse)?;
        let mut deadline = Instant::now() + self.timeouts.wait;
        let (mut candidates, mut number) = (Vec::<Candidate>::new(), 0);
        let (mut count, mut last) = (0, String::new());
        let (mut looked, mut idle) = (Instant::now(), false);
        let (sender, met) = mpsc::channel();
        let greet = &greet;
        thread::scope(|scope| {
            let ended = 'meeting: loop {
                if looked.elapsed() >= TICK {
                    if let Err(error) = look_after() {
                        break Err(error);
                    }
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
                // All that is known by now, before another comes for whom somebody may have to give way.
                let mut event = if idle { met.recv_timeout(TICK).ok() } else { met.try_recv().ok() };
                while let Some((this, address, ended)) = event {
                    // Who is turned away stays one of them until it has gone.
                    if !matches!(ended, Some(Err(_))) {
                        candidates.retain(|candidate| candidate.number != this);
                    }
                    match ended {
                        None => {}
                        Some(Ok((connection, greeted))) => {
                            deadline = Instant::now() + self.timeouts.wait;
                            if let Err(error) = look_after() {
                                break 'meeting Err(error);
                            }
                            if take(connection, greeted).is_break() {
                                break 'meeting Ok(());
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
                    event = met.try_recv().ok();
                }
                let accepted = self.socket.accept().map(|(stream, address)| {
                    make_room(&mut candidates);
                    (stream, address)
                });
                let came = accepted.and_then(|(stream, address)| {
                    let kept = Arc::new(stream.try_clone()?);
                    let standing = Arc::<Standing>::default();
                    number += 1;
                    let candidate = Candidate {
                        number,
                        address: address.ip(),
                        standing: standing.clone(),
                        stream: kept.clone(),
                    };
                    let (sender, this) = (sender.clone(), number);
                    let started = thread::Builder::new().spawn_scoped(scope, move || {
                        let ended = self.look_at(stream, &standing, greet);
                        let stays = ended.is_ok();
                        let _ = sender.send((this, address, Some(ended)));
                        if !stays {
                            if standing.is_turned_away() {
                                part(&kept);
                            }
                            drop(kept);
                            let _ = sender.send((this, address, None));
                        }
                    });
                    // It says EAGAIN, which accepting has where nobody is waiting.
                    started.map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
                    candidates.push(candidate);
                    Ok(())
                });
                idle = came.is_err();
                match came {
                    Ok(()) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    // A peer that was gone before it was accepted.
                    Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(e) if is_exhausted(&e) => {
                        give_way(&mut candidates);
                    }
                    Err(e) => break Err(refuse(e)),
                }
            };
            // Their threads end with them.
            candidates.iter().for_each(Candidate::end);
            ended
        })
    }

    /// One connection, from its first byte until it is let in.
    fn look_at<T>(
        &self,
        stream: TcpStream,
        standing: &Arc<Standing>,
        greet: &impl Fn(&mut Connection, &Standing) -> Result<T, String>,
    ) -> Result<(Connection, T), String> {
        let gave_way = || "others came, and until then it had not said what a peer says".to_owned();
        let opened = || {
            stream.set_nonblocking(false)?;
            let mut socket = Socket::new(stream, self.timeouts)?;
            socket.standing = Some(standing.clone());
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
        let greeted = || {
            let mut connection =
                opened().map_err(|e: io::Error| TransportError::handshake(&e).to_string())?;
            let greeted = greet(&mut connection, standing)?;
            let ended = connection.socket().end_handshake();
            ended.map_err(|e| if is_silence(&e) { "it was silent".to_owned() } else { e.to_string() })?;
            Ok((connection, greeted))
        };
        let greeted: Result<_, String> = greeted();
        match greeted {
            Ok(_) if !standing.stays() => Err(gave_way()),
            Err(_) if standing.has_ended() => Err(gave_way()),
            greeted => greeted,
        }
    }
}

/// Where the peers of a session come from: to this side, or this side goes to one of them, or, where owners come too, both.
pub struct Door {
    listener: Option<Listener>,
    call: Option<Box<Call>>,
}

impl Door {
    /// A door at which peers are waited for, one to which this side goes, or both.
    pub(super) fn new(listener: Option<Listener>, call: Option<Call>) -> Self {
        Self { listener, call: call.map(Box::new) }
    }

    /// Where it listens, if it does.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().and_then(|listener| listener.address().ok())
    }

    /// Arrivals for a session: first the one to whom this side goes, then those who come. `say` is told who came and who was turned
    /// away, a sentence each.
    pub fn arrivals<'a>(self, say: &'a mut dyn FnMut(&str)) -> impl Arrivals<Connection> + use<'a> {
        move |greeting: &Greeting<'_>, take: &mut dyn FnMut(Connection, Peer) -> ControlFlow<()>| {
            // The one that was called: only by another call does it come again, so the wait ends when it is gone.
            let mut called = None;
            if let Some(call) = self.call {
                let (mut connection, peer) = call.meet(greeting)?;
                called = Some((peer.role(), connection.socket().stream.try_clone()?));
                if take(connection, peer).is_break() {
                    return Ok(());
                }
            }
            let Some(listener) = self.listener else { return Ok(()) };
            let say = RefCell::new(say);
            // Those who were let in, and wait for others. What one has said by then is read when all are there.
            let waiting = RefCell::new(Vec::<(u64, TcpStream)>::new());
            let look_after = || {
                if let Some((role, stream)) = &called
                    && is_gone(stream)
                {
                    return Err(TransportError::Gone { who: role.to_string() });
                }
                let mut ended = Ok(());
                waiting.borrow_mut().retain(|(number, stream)| {
                    let gone = is_gone(stream);
                    if gone && let Some(role) = greeting.holds_owners(*number) {
                        ended = Err(TransportError::Gone { who: role.to_string() });
                    } else if gone && let Some(said) = greeting.leave(*number) {
                        (*say.borrow_mut())(&said);
                    }
                    !gone
                });
                ended
            };
            let greet = |connection: &mut Connection, standing: &Standing| {
                greeting.welcome_if(connection, || standing.stays()).map_err(|e| e.cause())
            };
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
    use std::io::{Read, Write};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::{Condvar, Mutex};

    use super::super::standing::AT_A_TIME;
    use super::*;

    /// One whose greeting has been heard and not answered yet, while far more come than have room, all from its own address.
    #[test]
    fn a_peer_stays_whoever_comes_after_it() {
        /// How many are pushed out.
        const PUSHED: u64 = 2 * AT_A_TIME as u64;
        /// How many wait to be accepted, beside as many as were pushed out without a word, for only each doubling is said. A socket
        /// queues 128: further ones would connect after minutes, or, once nobody accepts any more, never.
        const WAITING: u64 = 32;
        let minute = Duration::from_secs(60);
        let timeouts = Timeouts { wait: minute, handshake: minute, peer: minute };
        let listener = listen("127.0.0.1:0", &Security::Loopback, timeouts).unwrap();
        let address = listener.address().unwrap();
        let (crowd, greeted, over) =
            ((Mutex::new(false), Condvar::new()), AtomicBool::new(false), AtomicBool::new(false));
        let pushed = AtomicU64::new(0);
        thread::scope(|scope| {
            let strangers = scope.spawn(|| {
                let mut bob = TcpStream::connect(address).unwrap();
                bob.write_all(b"bob").unwrap();
                let mut strangers = Vec::new();
                // Until the crowd has pushed out as many as there are places.
                while !over.load(Ordering::Acquire) {
                    let gone = (2 * pushed.load(Ordering::Acquire)).min(PUSHED);
                    let most = AT_A_TIME as u64 + WAITING + gone;
                    if greeted.load(Ordering::Acquire) && (strangers.len() as u64) < most {
                        strangers.push(TcpStream::connect(address).unwrap());
                    } else {
                        thread::yield_now();
                    }
                }
                let mut answer = [0];
                bob.read_exact(&mut answer).map(|()| answer)
            });
            let greet = |connection: &mut Connection, standing: &Standing| {
                let mut said = [0; 3];
                connection.read_exact(&mut said).map_err(|e| e.to_string())?;
                assert!(standing.stays());
                greeted.store(true, Ordering::Release);
                let waits = |come: &mut bool| !*come;
                drop(crowd.1.wait_while(crowd.0.lock().unwrap(), waits).unwrap());
                Ok(())
            };
            let turned_away = |who: &TurnedAway| {
                assert!(who.why.starts_with("others came"), "{who}");
                pushed.store(who.count, Ordering::Release);
                if who.count == PUSHED {
                    *crowd.0.lock().unwrap() = true;
                    crowd.1.notify_all();
                }
            };
            let mut came = None;
            let take = |connection, ()| {
                came = Some(connection);
                ControlFlow::Break(())
            };
            listener.meet_while(greet, turned_away, take, || Ok(())).unwrap();
            let mut connection = came.unwrap();
            connection.write_all(b"!").and_then(|()| connection.flush()).unwrap();
            over.store(true, Ordering::Release);
            assert_eq!(&strangers.join().unwrap().unwrap(), b"!");
        });
    }

    #[test]
    fn what_is_used_up_comes_back() {
        for code in [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM] {
            assert!(is_exhausted(&io::Error::from_raw_os_error(code)));
        }
        assert!(!is_exhausted(&io::Error::from_raw_os_error(libc::EBADF)));
    }
}
