//! A connection's socket: how long it waits, what it reads ahead, when it is woken.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ConnectionCommon;

use super::standing::Standing;
use super::{Timeouts, waking};

/// What TLS reads ahead: several records.
const AHEAD: usize = 1 << 17;
/// Bytes for which a reader is woken, where more than one: at least, and at most.
const LATE: usize = 1 << 15;
const LATEST: usize = 1 << 18;
/// How long a reader stays awake for a peer on this machine.
const AWAKE: Duration = Duration::from_micros(50);

/// A TCP connection that waits no longer than it should, also for a peer that sends or takes byte by byte.
pub struct Socket {
    pub(super) stream: TcpStream,
    /// The longest silence.
    silence: Duration,
    /// When the handshake has to be over.
    handshake: Option<Instant>,
    /// Whether the peer was silent for too long: it is waited for no more, also not to be sent the rest.
    given_up: bool,
    /// Whether the other side cut it off, which is not how a peer that has something against this side ends it.
    pub(super) reset: bool,
    /// Where it is noted that the other side has said something, until it has.
    pub(super) standing: Option<Arc<Standing>>,
    read: Patience,
    written: Patience,
    /// What was read ahead, and which part of it nobody has taken yet: TLS asks for a quarter of a record at a time. Empty
    /// without TLS, whose readers have room for whole messages.
    ahead: Vec<u8>,
    unread: Range<usize>,
    /// Bytes that are still to come of what is being read, and how many of them wake a waiting reader.
    pub(super) due: usize,
    wakes: usize,
    /// Whether the peer is on this machine.
    near: bool,
}

/// What was waited for a peer in one direction, and what came of it.
#[derive(Default)]
struct Patience {
    waited: Duration,
    bytes: u64,
}

impl Patience {
    /// A few silences are pardoned, and one more for each KiB that moved; what is slower trickles.
    fn over(&self, silence: Duration) -> bool {
        let pardoned = u32::try_from(4 + (self.bytes >> 10)).unwrap_or(u32::MAX);
        self.waited >= silence.saturating_mul(pardoned)
    }

    fn add(&mut self, start: Instant, bytes: &io::Result<usize>) {
        self.waited += start.elapsed();
        self.bytes += *bytes.as_ref().unwrap_or(&0) as u64;
    }
}

/// Whether it is what a timeout comes to.
pub(super) fn is_silence(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Whether it is what a connection that was cut off comes to.
pub(super) fn is_reset(e: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(e.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}

impl Socket {
    pub(super) fn new(stream: TcpStream, timeouts: Timeouts) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let near = stream.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback());
        let (read, written) = (Patience::default(), Patience::default());
        let silence = timeouts.peer;
        let (ahead, unread) = (Vec::new(), 0..0);
        let (handshake, given_up, reset, standing, due, wakes) = (None, false, false, None, 0, 1);
        let socket = Self {
            stream,
            silence,
            handshake,
            given_up,
            reset,
            standing,
            read,
            written,
            ahead,
            unread,
            due,
            wakes,
            near,
        };
        socket.set_timeouts(timeouts.peer)?;
        Ok(socket)
    }

    fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(timeout))?;
        self.stream.set_write_timeout(Some(timeout))
    }

    /// The handshake has this time as a whole; afterwards each message has its own.
    pub(super) fn begin_handshake(&mut self, time: Duration) {
        self.handshake = Some(Instant::now() + time);
    }

    /// The same, reading ahead from now on.
    pub(super) fn reading_ahead(mut self) -> Self {
        self.ahead.resize(AHEAD, 0);
        self
    }

    /// Reads from the peer.
    fn receive(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.check(&self.read)?;
        self.wake_late(bytes.len())?;
        let start = Instant::now();
        self.stay_awake(start);
        let read = self.stream.read(bytes);
        self.read.add(start, &read);
        self.given_up |= read.as_ref().is_err_and(is_silence);
        self.reset |= read.as_ref().is_err_and(is_reset);
        if read.as_ref().is_ok_and(|bytes| *bytes > 0)
            && let Some(standing) = self.standing.take()
        {
            standing.speaks();
        }
        read
    }

    /// Lets the system wake this reader a few times for a message and not for each segment of it, which costs a peer on this machine
    /// as much as this side. A reader that waits has taken less than it is woken for, and what it is woken for is half of
    /// what is due at most: so that much is still to come.
    fn wake_late(&mut self, room: usize) -> io::Result<()> {
        let wakes = match self.due.min(room) / 2 {
            half if half < LATE => 1,
            half => half.min(LATEST),
        };
        if wakes != self.wakes {
            waking::wake_at(&self.stream, wakes)?;
            self.wakes = wakes;
        }
        Ok(())
    }

    /// Waits for a peer on this machine without sleeping, for a moment, and leaves the core to any other thread meanwhile: who sends to a
    /// reader that sleeps has to wake its core, which takes longer than to copy what it sends.
    fn stay_awake(&self, start: Instant) {
        while self.near && !waking::is_readable(&self.stream) && start.elapsed() < AWAKE {
            std::thread::yield_now();
        }
    }

    pub(super) fn end_handshake(&mut self) -> io::Result<()> {
        self.handshake = None;
        self.set_timeouts(self.silence)
    }

    fn send(&mut self, write: impl FnOnce(&mut TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        self.check(&self.written)?;
        let start = Instant::now();
        let written = write(&mut self.stream);
        self.written.add(start, &written);
        self.given_up |= written.as_ref().is_err_and(is_silence);
        self.reset |= written.as_ref().is_err_and(is_reset);
        written
    }

    fn check(&self, patience: &Patience) -> io::Result<()> {
        if self.given_up || patience.over(self.silence) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if let Some(end) = self.handshake {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.set_timeouts(left)?;
        }
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.unread.is_empty() {
            if bytes.len() >= self.ahead.len() {
                return self.receive(bytes);
            }
            let mut ahead = std::mem::take(&mut self.ahead);
            let read = self.receive(&mut ahead);
            self.ahead = ahead;
            self.unread = 0..read?;
        }
        let taken = bytes.len().min(self.unread.len());
        bytes[..taken].copy_from_slice(&self.ahead[self.unread.start..][..taken]);
        self.unread.start += taken;
        Ok(taken)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(|stream| stream.write(bytes))
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(|stream| stream.write_vectored(parts))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Ends a handshake, or says why it fails.
pub(super) fn shake_hands<D>(tls: &mut ConnectionCommon<D>, socket: &mut Socket) -> io::Result<()> {
    while tls.is_handshaking() {
        if let Err(e) = tls.complete_io(socket) {
            // Of several records that are due, the alert is the last.
            while tls.wants_write() && tls.write_tls(socket).is_ok_and(|sent| sent > 0) {}
            return Err(e);
        }
    }
    Ok(())
}

/// What a peer is let say after the last word, in time and bytes.
const PARTING: (Duration, usize) = (Duration::from_secs(1), 1 << 20);

/// Leaves a peer so that the last that it was sent, such as an alert, reaches it: a connection that is closed over bytes that
/// nobody has read is reset, and what was on its way is lost.
pub(super) fn part(mut stream: &TcpStream) {
    let (time, most) = PARTING;
    let end = Instant::now() + time;
    let (mut bytes, mut all) = ([0; 4096], 0);
    let mut gone = stream.shutdown(Shutdown::Write).is_err();
    while !gone && all < most {
        let left = end.saturating_duration_since(Instant::now());
        gone = left.is_zero() || stream.set_read_timeout(Some(left)).is_err();
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => gone = true,
            Ok(read) => all += read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_slow_does_not_trickle() {
        let silence = Duration::from_secs(60);
        let over = |minutes, bytes| Patience { waited: silence * minutes, bytes }.over(silence);
        // A kilobyte a minute is slow, a byte a minute no connection.
        assert!(!over(1000, 1000 << 10) && !over(3, 0));
        assert!(over(1000, 1000) && over(4, 200));
        assert!(!Patience { waited: Duration::MAX / 2, bytes: u64::MAX }.over(Duration::MAX));
    }
}
