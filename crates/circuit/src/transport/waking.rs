//! What the standard library does not ask of a socket: when a thread that waits for bytes is woken, whether some have come, how it ends.
#![allow(unsafe_code)]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Sets an option of a socket.
fn set<T>(stream: &TcpStream, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open while the stream is borrowed, and the value outlives the call, which reads `length` bytes of it.
    let code = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(value).cast(),
            length,
        )
    };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets a blocking read sleep until `bytes` bytes have come, or fewer if its buffer is smaller. It still ends early when the peer closes
/// the connection and when its timeout is over. On systems without this option, reads stay as they are.
#[cfg(target_os = "linux")]
pub(super) fn wake_at(stream: &TcpStream, bytes: usize) -> io::Result<()> {
    set(stream, libc::SO_RCVLOWAT, &libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn wake_at(_: &TcpStream, _: usize) -> io::Result<()> {
    Ok(())
}

/// Lets a connection be reset when it is closed, whatever has come over it: the other side can tell that from an end.
pub(super) fn reset_at_close(stream: &TcpStream) -> io::Result<()> {
    set(stream, libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: 0 })
}

/// Whether bytes have come that were not read; another thread may read them meanwhile.
pub(super) fn has_unread(stream: &TcpStream) -> bool {
    let mut byte = 0u8;
    // SAFETY: the descriptor is open while the stream is borrowed, and there is room for the one byte.
    let read = unsafe {
        libc::recv(stream.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT)
    };
    read > 0
}

/// What says that the other side sends nothing more, beside what every system says unasked.
#[cfg(target_os = "linux")]
const ENDED: libc::c_short = libc::POLLRDHUP;
#[cfg(not(target_os = "linux"))]
const ENDED: libc::c_short = 0;

/// Which of these events are true of a connection, and which of those that every system says unasked. Waits for nothing.
fn events(stream: &TcpStream, events: libc::c_short) -> libc::c_short {
    let mut asked = libc::pollfd { fd: stream.as_raw_fd(), events, revents: 0 };
    // SAFETY: the descriptor is open while the stream is borrowed, and `asked` is the one that is spoken of.
    unsafe { libc::poll(&raw mut asked, 1, 0) };
    // A call that fails leaves them at nothing.
    asked.revents
}

/// Whether the other side has closed a connection, also where bytes that it sent before were not read yet. Waits for nothing.
pub(super) fn is_gone(stream: &TcpStream) -> bool {
    events(stream, ENDED) & (ENDED | libc::POLLHUP | libc::POLLERR) != 0
}

/// Whether a read would not sleep: as many bytes have come as it is woken for, or the connection ended. Waits for nothing.
pub(super) fn is_readable(stream: &TcpStream) -> bool {
    events(stream, libc::POLLIN) != 0
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_reader_does_not_sleep_when_enough_has_come_or_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        assert!(!is_readable(&reader));
        wake_at(&reader, 3).unwrap();
        let mut bytes = [0; 3];
        for count in 1..=3 {
            sender.write_all(&[7]).unwrap();
            // A look at the one byte that there is at least does not sleep for more.
            let come = || reader.peek(&mut [0]).unwrap() == 1 && has_unread(&reader);
            assert!(come());
            if cfg!(target_os = "linux") && count < 3 {
                assert!(!is_readable(&reader), "{count} of 3");
            }
        }
        reader.read_exact(&mut bytes).unwrap();
        assert!(bytes == [7; 3] && !is_readable(&reader) && !is_gone(&reader));
        drop(sender);
        assert_eq!(reader.read(&mut bytes).unwrap(), 0);
        assert!(is_readable(&reader) && is_gone(&reader));
    }
}
