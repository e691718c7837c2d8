//! When the system wakes a thread that waits for bytes of a connection.
#![allow(unsafe_code)]

use std::io;
use std::net::TcpStream;

/// Lets a blocking read sleep until `bytes` bytes have come, or fewer if its buffer is smaller. It still ends early when the peer closes
/// the connection and when its timeout is over. On systems without this option, reads stay as they are.
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
