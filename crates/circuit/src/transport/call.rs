//! A peer that this side connects to, its name and its hello.

use std::time::Instant;

use rustls::pki_types::ServerName;

use super::{Connection, PAUSE, Security, Timeouts, TransportError, connect_until};
use crate::session::{Greeting, Peer, SessionError};

/// A connection that this side made, and how to make it again: where others crowd the listening side, it may cut off a peer before it
/// has heard which it is.
pub(super) struct Call {
    connection: Connection,
    address: String,
    security: Security,
    timeouts: Timeouts,
    deadline: Instant,
}

impl Call {
    pub(super) fn new(
        address: &str,
        security: &Security,
        timeouts: Timeouts,
    ) -> Result<Self, TransportError> {
        let deadline = Instant::now() + timeouts.wait;
        let connection = connect_until(deadline, address, security, timeouts)?;
        let (address, security) = (address.to_owned(), security.clone());
        Ok(Self { connection, address, security, timeouts, deadline })
    }

    /// The peer that is greeted; as long as it cuts the connection off before its own hello, by another.
    pub(super) fn meet(
        self: Box<Self>,
        greeting: &Greeting<'_>,
    ) -> Result<(Connection, Peer), Box<dyn std::error::Error + Send + Sync>> {
        let Self { mut connection, address, security, timeouts, deadline } = *self;
        loop {
            match greeting.meet(&mut connection) {
                Ok(peer) => return Ok((connection, peer)),
                Err(SessionError::Gone { .. }) if connection.socket().reset && Instant::now() < deadline => {
                    std::thread::park_timeout(PAUSE);
                    connection = connect_until(deadline, &address, &security, timeouts)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A name that a certificate can have, as an option names it.
///
/// # Errors
/// None can have it.
pub fn peer_name(name: &str) -> Result<String, TransportError> {
    server_name(name).map(|_| name.to_owned())
}

pub(super) fn server_name(name: &str) -> Result<ServerName<'static>, TransportError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TransportError::Name { name: name.to_owned() })
}
