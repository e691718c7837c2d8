//! When the system wakes who waits for bytes of a connection.
#![allow(unsafe_code)]

use std::io;
use std::net::TcpStream;

/// A blocking read returns, and its thread is woken, when so many bytes are there, or as many as it has room for; or else when the
/// peer is gone or its time is over, as before. Where the system can't, every read is as before.
#[cfg(target_os = "linux")]
pub(super) fn wake_at(stream: &TcpStream, bytes: usize) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open while the stream is borrowed, and the option's value is an integer that outlives the call.
    let code = unsafe {
        let value = (&raw const bytes).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, value, length)
    };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn wake_at(_: &TcpStream, _: usize) -> io::Result<()> {
    Ok(())
}
