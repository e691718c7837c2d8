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

/// What a look at a connection shows, which takes nothing from it and waits for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// Nothing has come that was not read.
    Nothing,
    /// Bytes have come.
    Bytes,
    /// The other side has closed it, and everything was read.
    Gone,
}

/// Looks at a connection; another thread may read it meanwhile.
pub(super) fn look(stream: &TcpStream) -> Looked {
    let mut byte = 0u8;
    // SAFETY: the descriptor is open while the stream is borrowed, and there is room for the one byte.
    let read = unsafe {
        libc::recv(stream.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT)
    };
    match read {
        0 => Looked::Gone,
        1.. => Looked::Bytes,
        _ => match io::Error::last_os_error().kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Looked::Nothing,
            _ => Looked::Gone,
        },
    }
}
