//! Connections of two parties: TCP with TLS on which both show a certificate, or without on the machine's own loopback.
//!
//! ```no_run
//! use std::time::Duration;
//! use blindcore_circuit::transport::{Security, Timeouts, Tls, connect};
//!
//! let tls = Tls::load("alice.crt".as_ref(), "alice.key".as_ref(), "bob.crt".as_ref())?;
//! let timeouts = Timeouts { peer: Duration::from_secs(60), ..Timeouts::default() };
//! let channel = connect("bob.example:7000", &Security::Tls { tls, peer_name: "bob".into() }, timeouts)?;
//! # Ok::<(), blindcore_circuit::transport::TransportError>(())
//! ```

mod call;
mod listener;
mod socket;
mod standing;
mod waking;

use std::io::{self, BufWriter, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use blindcore_files::new_file::NewFileError;
use blindcore_files::{Access, NewFile};
use blindcore_tls::{Fault, Trust, recipe};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned,
    SupportedProtocolVersion,
};
use zeroize::Zeroizing;

pub use call::peer_name;
use call::{Call, server_name};
pub use listener::{Door, Listener, TurnedAway, listen};
pub use socket::Socket;
use socket::{is_reset, is_silence, part, shake_hands};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The address is none, or nothing could be bound or reached.
    #[error(
        "{what} {address}: {source}; addresses are HOST:PORT, with a port that is free here or open there"
    )]
    Address {
        /// What was tried.
        what: &'static str,
        /// With which address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Not one way to the peer.
    #[error("one of two parties says --listen ADDR, the other --connect ADDR")]
    Way,
    /// Nobody came, or nobody was there.
    #[error("no peer within {seconds} s at {address}{turned_away}; start the other side, or raise --wait")]
    Nobody {
        /// How many were turned away and why the last was, after a semicolon; empty if nobody was.
        turned_away: String,
        /// How long was waited.
        seconds: u64,
        /// Where.
        address: String,
    },
    /// The other party of a session with owners is gone, and without it they are not waited for.
    #[error(
        "the {who} is gone, see what it says; nothing was learned, run it, this side and the owners again"
    )]
    Gone {
        /// Which part it played.
        who: String,
    },
    /// Plain text would leave the machine.
    #[error(
        "{address} is not on this machine, and without TLS everybody between would read along; \
             give --cert, --key and --trust, or --plain-text"
    )]
    PlainText {
        /// The address.
        address: String,
    },
    /// A certificate or key that can't be read.
    #[error("{what} {path}: {why}; `blindcore circuit identity NAME` makes both files of a party")]
    File {
        /// What it should be.
        what: &'static str,
        /// Its path.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// The handshake failed.
    #[error("no TLS with the peer: {why}")]
    Handshake {
        /// Why.
        why: String,
    },
    /// TLS broke after the handshake.
    #[error("TLS with the peer broke: {why}")]
    Broken {
        /// Why.
        why: String,
    },
    /// The name can't be one of a certificate.
    #[error(
        "{name:?} is not a name or address that a certificate could have; take one such as alice or alice.example.org"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A file of an identity is there.
    #[error("{path} is there already, and nothing was written; give another NAME, or another folder (--out)")]
    Exists {
        /// The file.
        path: String,
    },
    /// A file of an identity can't be written.
    #[error(transparent)]
    New(#[from] NewFileError),
}

impl From<blindcore_tls::Error> for TransportError {
    fn from(blindcore_tls::Error { what, path, why }: blindcore_tls::Error) -> Self {
        Self::File { what, path, why }
    }
}

impl TransportError {
    /// Whether it is of a peer or of the way to one, and not of a name or of files that this side makes.
    #[must_use]
    pub fn is_of_peers(&self) -> bool {
        !matches!(self, Self::Name { .. } | Self::Exists { .. } | Self::New(_))
    }

    fn handshake(source: &io::Error) -> Self {
        let why = match fault(source) {
            Some(fault) => explain(&fault),
            None if is_silence(source) => "it did not end in time".to_owned(),
            None if source.kind() == io::ErrorKind::UnexpectedEof => {
                "it closed the connection; see what the other side says: it may not trust this certificate, or go without TLS"
                    .to_owned()
            }
            None => source.to_string(),
        };
        Self::Handshake { why }
    }
}

/// What a handshake's error means. Who speaks something else may end the connection before its words arrive; who speaks TLS
/// says by an alert why it ends one.
fn fault(error: &io::Error) -> Option<Fault> {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let ended = matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof);
    Fault::find(error).or(ended.then_some(Fault::NotTls))
}

/// What went wrong between two parties, and what to do.
fn explain(fault: &Fault) -> String {
    let remedy = match fault {
        Fault::NotTls => "both sides give --cert, --key and --trust, or neither does".to_owned(),
        Fault::Unknown => "give the peer's certificate, or that of who signed it, as --trust".to_owned(),
        Fault::Authority | Fault::Certificate(_) => {
            format!("the peer makes another: blindcore circuit identity NAME, or {}", recipe("NAME"))
        }
        Fault::RefusedFor(_) => {
            "make another: blindcore circuit identity NAME; the other side says what it has against this one".to_owned()
        }
        Fault::Damaged => "something between both sides changes them: connect without it, and run both again".to_owned(),
        Fault::Name { has, .. } => match has.first() {
            Some(name) => {
                format!("say --peer-name {name} if that is whom you mean, --evaluator-name for an evaluator")
            }
            None => "the peer makes one with a name: blindcore circuit identity NAME".to_owned(),
        },
        Fault::Expired | Fault::NotYet => {
            "the peer makes a new one: blindcore circuit identity NAME; check both clocks, too".to_owned()
        }
        Fault::Refused => "the other side gives this side's certificate as its --trust".to_owned(),
        Fault::RefusedName => {
            "the other side says its name as --peer-name, or --evaluator-name for an evaluator; without one it wants the host that it \
             connects to"
                .to_owned()
        }
        Fault::Missing | Fault::Asked => "both sides give --cert, --key and --trust".to_owned(),
        _ => "both sides should run the same blindcore; what is between them may change bytes".to_owned(),
    };
    format!("{fault}; {remedy}")
}

/// An I/O error in the words of [`explain`], where it is one of TLS: a peer may refuse a certificate after its own handshake. What is no
/// TLS by then was.
fn explained(error: io::Error) -> io::Error {
    match Fault::find(&error) {
        None => error,
        Some(
            Fault::Refused | Fault::RefusedFor(_) | Fault::RefusedName | Fault::Asked | Fault::Incompatible,
        ) => io::Error::other(TransportError::handshake(&error)),
        Some(fault) => {
            let changed = matches!(fault, Fault::NotTls | Fault::Misbehaves);
            let why = explain(if changed { &Fault::Damaged } else { &fault });
            io::Error::other(TransportError::Broken { why })
        }
    }
}

/// How long is waited.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a peer to be there.
    pub wait: Duration,
    /// For its TLS handshake and, where it came, for its first message too, as a whole.
    pub handshake: Duration,
    /// For it to say something, or to take what is sent.
    pub peer: Duration,
}

impl Default for Timeouts {
    /// Five minutes until it is there, one for it to speak.
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { wait: 5 * minute, handshake: minute, peer: minute }
    }
}

/// Both sides are of one program.
const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// This side's certificate and whom it trusts.
#[derive(Clone)]
pub struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    trust: Arc<Trust>,
}

impl Tls {
    /// From PEM files: this side's certificate chain, its key, and the certificates that the peer's must be or, if they are
    /// authorities', be signed by ([`Trust`]). TLS 1.3 only; both sides show a certificate.
    ///
    /// # Errors
    /// A file can't be read, or doesn't hold what it should.
    pub fn load(certificate: &Path, key: &Path, trust: &Path) -> Result<Self, TransportError> {
        let chain = blindcore_tls::certificates(certificate)?;
        let private = blindcore_tls::private_key(key)?;
        let trust = Trust::read(trust)?;
        let mut provider = CryptoProvider::clone(&blindcore_tls::provider());
        // Labels have 128 bits, so more in the cipher protects nothing, and AES-256 takes fourteen rounds to its ten.
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        let provider = Arc::new(provider);
        let own = |e: rustls::Error| TransportError::from(blindcore_tls::own(certificate, key, &e));
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(VERSIONS)
            .map_err(own)?
            .dangerous()
            .with_custom_certificate_verifier(trust.of_servers(&provider))
            .with_client_auth_cert(chain.clone(), private.clone_key())
            .map_err(own)?;
        let clients = trust.of_clients(&provider, None);
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(VERSIONS)
            .map_err(own)?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, private)
            .map_err(own)?;
        (client.max_fragment_size, server.max_fragment_size) = (Some(FRAGMENT), Some(FRAGMENT));
        Ok(Self { client: Arc::new(client), server: Arc::new(server), trust: Arc::new(trust) })
    }

    /// The same, for peers who come with a certificate of this name. TLS itself refuses the others, so that they hear why.
    fn only(self, name: ServerName<'static>) -> Result<Self, TransportError> {
        let provider = self.server.crypto_provider();
        let clients = self.trust.of_clients(provider, Some(name));
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(VERSIONS)
            .map_err(|e| TransportError::handshake(&io::Error::other(e)))?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(self.server.cert_resolver.clone());
        server.max_fragment_size = self.server.max_fragment_size;
        Ok(Self { server: Arc::new(server), ..self })
    }
}

/// A new self-signed certificate and its key, both PEM: what two parties exchange who share no authority.
///
/// # Errors
/// The name can't be one of a certificate.
pub fn new_identity(name: &str) -> Result<(String, Zeroizing<String>), TransportError> {
    let refuse = || TransportError::Name { name: name.into() };
    // A dot at its end is of a question for a name: a certificate has none.
    ServerName::try_from(name).ok().filter(|_| !name.ends_with('.')).ok_or_else(refuse)?;
    let mut parameters = rcgen::CertificateParams::new([name.to_string()]).map_err(|_| refuse())?;
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    let key = rcgen::KeyPair::generate().map_err(|_| refuse())?;
    let certificate = parameters.self_signed(&key).map_err(|_| refuse())?;
    Ok((certificate.pem(), Zeroizing::new(key.serialize_pem())))
}

/// Makes a certificate and key ([`new_identity`]) as `FOLDER/NAME.crt`, which others get, and `FOLDER/NAME.key`, for its
/// owner alone. Returns both paths. Both are written before either takes its place, so that there is no half of an
/// identity.
///
/// # Errors
/// A file is there already, the name can't be one of a certificate, or the system refuses.
pub fn write_identity(folder: &Path, name: &str) -> Result<(PathBuf, PathBuf), TransportError> {
    let (certificate, key) = new_identity(name)?;
    let file = |ending: &str| folder.join(format!("{name}.{ending}"));
    let (crt, secret) = (file("crt"), file("key"));
    for path in [&crt, &secret] {
        if path.exists() {
            return Err(TransportError::Exists { path: path.display().to_string() });
        }
    }
    let written = |path: &Path, text: &str, access| {
        let mut file = NewFile::create(path, access)?;
        let io = |error| NewFileError::Io { path: path.to_owned(), error };
        file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(io)?;
        Ok::<_, NewFileError>(file)
    };
    let key = written(&secret, &key, Access::Owner)?;
    written(&crt, &certificate, Access::Everyone)?.keep()?;
    if let Err(error) = key.keep() {
        // The certificate is of no use without it.
        let _ = std::fs::remove_file(&crt);
        return Err(error.into());
    }
    Ok((crt, secret))
}

/// How a party reaches the others: with TLS where it has a certificate, else on this machine alone unless `plain_text`.
#[derive(Clone)]
pub struct Peers {
    /// This side's certificate and whom it trusts.
    pub tls: Option<Tls>,
    /// Whether to go without TLS to other machines.
    pub plain_text: bool,
    /// How long is waited.
    pub timeouts: Timeouts,
}

impl Peers {
    fn security(&self, address: &str, peer_name: Option<&str>) -> Security {
        match &self.tls {
            Some(tls) => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']');
                Security::Tls { tls: tls.clone(), peer_name: peer_name.unwrap_or(host).to_owned() }
            }
            None if self.plain_text => Security::PlainText,
            None => Security::Loopback,
        }
    }

    /// Where peers come from: exactly one of an address to wait at and one to connect to, and where owners come too, both. The
    /// certificate of the peer there has the name `peer_name`; without one, that of a peer that this side connects to has the host of the
    /// address, and one that comes any that is trusted.
    ///
    /// # Errors
    /// As [`listen`] and [`connect`]; or both addresses or none are given.
    pub fn door(
        &self,
        listen: Option<&str>,
        connect: Option<&str>,
        peer_name: Option<&str>,
        owners: bool,
    ) -> Result<Door, TransportError> {
        if listen.is_some() == connect.is_some() && !(owners && listen.is_some()) {
            return Err(TransportError::Way);
        }
        // Before anybody is reached, or comes, and hears something else.
        peer_name.map(server_name).transpose()?;
        let mut listener = listen.map(|address| self.listen(address)).transpose()?;
        if let (None, Some(name)) = (connect, peer_name) {
            listener = listener.map(|listener| listener.only(name)).transpose()?;
        }
        let call = |address| Call::new(address, &self.security(address, peer_name), self.timeouts);
        Ok(Door::new(listener, connect.map(call).transpose()?))
    }

    /// Waits for peers at an address: see [`listen`].
    ///
    /// # Errors
    /// As [`listen`].
    pub fn listen(&self, address: &str) -> Result<Listener, TransportError> {
        listen(address, &self.security(address, None), self.timeouts)
    }

    /// Connects to a peer, whose certificate has the name `peer_name` or else the host of the address: see [`connect`].
    ///
    /// # Errors
    /// As [`connect`].
    pub fn connect(&self, address: &str, peer_name: Option<&str>) -> Result<Connection, TransportError> {
        connect(address, &self.security(address, peer_name), self.timeouts)
    }
}

/// How a connection is protected.
#[derive(Clone)]
pub enum Security {
    /// TLS; the listener's certificate must have `peer_name`.
    Tls {
        /// Certificates.
        tls: Tls,
        /// The name that the listener's certificate must have; of no use to a listener.
        peer_name: String,
    },
    /// Nothing, and only to addresses of this machine.
    Loopback,
    /// Nothing, wherever it goes.
    PlainText,
}

/// A connection to a peer.
pub enum Connection {
    /// Without TLS.
    Plain(BufWriter<Socket>),
    /// With TLS, by the side that connected.
    Client(Box<BufWriter<StreamOwned<ClientConnection, Socket>>>),
    /// With TLS, by the side that listened.
    Server(Box<BufWriter<StreamOwned<ServerConnection, Socket>>>),
}

/// What is gathered before it is sent on.
const BUFFER: usize = 1 << 16;
/// Plain text of a record of TLS, as much as may have come already of what is due.
const RECORD: usize = 1 << 14;
/// Bytes of a record that this side sends, with its header. A peer copies what it has decrypted, which took two fifths of its time with
/// records of 16 KiB: the C library copies long pieces by an instruction that is slow where they lie badly to each other.
const FRAGMENT: usize = 1 << 12;

impl Connection {
    fn socket(&mut self) -> &mut Socket {
        match self {
            Connection::Plain(c) => c.get_mut(),
            Connection::Client(c) => c.get_mut().get_mut(),
            Connection::Server(c) => c.get_mut().get_mut(),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Plain(c) => c.get_mut().read(bytes),
            Connection::Client(c) => c.get_mut().read(bytes).map_err(explained),
            Connection::Server(c) => c.get_mut().read(bytes).map_err(explained),
        }
    }

    /// All of these bytes are to come, so they are waited for together.
    fn read_exact(&mut self, mut bytes: &mut [u8]) -> io::Result<()> {
        let decrypted = if matches!(self, Connection::Plain(_)) { 0 } else { RECORD };
        let mut outcome = Ok(());
        while !bytes.is_empty() && outcome.is_ok() {
            self.socket().due = bytes.len().saturating_sub(decrypted);
            outcome = match self.read(bytes) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    Ok(())
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
                Err(e) => Err(e),
            };
        }
        self.socket().due = 0;
        outcome
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Connection::Plain(c) => c.write(bytes),
            Connection::Client(c) => c.write(bytes),
            Connection::Server(c) => c.write(bytes),
        }
    }

    /// A large message goes out whole, past the buffer.
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if parts.iter().map(|part| part.len()).sum::<usize>() < BUFFER {
            return parts.iter().find(|part| !part.is_empty()).map_or(Ok(0), |part| self.write(part));
        }
        self.flush()?;
        match self {
            Connection::Plain(c) => c.get_mut().write_vectored(parts),
            Connection::Client(c) => c.get_mut().write_vectored(parts),
            Connection::Server(c) => c.get_mut().write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Connection::Plain(c) => c.flush(),
            Connection::Client(c) => c.flush(),
            Connection::Server(c) => c.flush(),
        }
    }
}

/// Connects to an address, again and again until it is listened at, and as long as the handshake is cut off.
///
/// # Errors
/// Nobody did in time; the handshake failed; plain text would leave the machine.
pub fn connect(address: &str, security: &Security, timeouts: Timeouts) -> Result<Connection, TransportError> {
    connect_until(Instant::now() + timeouts.wait, address, security, timeouts)
}

/// How long is waited before the next try.
const PAUSE: Duration = Duration::from_millis(50);

fn connect_until(
    deadline: Instant,
    address: &str,
    security: &Security,
    timeouts: Timeouts,
) -> Result<Connection, TransportError> {
    if let Security::Tls { peer_name, .. } = security {
        server_name(peer_name)?;
    }
    loop {
        let stream = reach(deadline, address, security, timeouts)?;
        match protect(stream, address, security, timeouts) {
            // The other side had too many to look at, and did not get to who this is.
            Err(Unprotected::Reset(_)) if Instant::now() < deadline => std::thread::park_timeout(PAUSE),
            Err(Unprotected::Reset(error) | Unprotected::Failed(error)) => return Err(error),
            Ok(connection) => return Ok(connection),
        }
    }
}

/// Why a connection could not be protected: it was cut off, or failed otherwise.
enum Unprotected {
    Reset(TransportError),
    Failed(TransportError),
}

/// A connection to where somebody listens, by the deadline.
fn reach(
    deadline: Instant,
    address: &str,
    security: &Security,
    timeouts: Timeouts,
) -> Result<TcpStream, TransportError> {
    let refuse =
        |source| TransportError::Address { what: "can't connect to", address: address.into(), source };
    let all = resolve(address).map_err(refuse)?;
    check_plain(&all, security)?;
    loop {
        let mut last = None;
        for one in &all {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(one, left.min(Duration::from_secs(10))) {
                // A port that nobody listens at, of those that are given out to whoever connects, may be given to this very
                // connection, which then leads to itself.
                Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => {}
                Ok(stream) => return Ok(stream),
                Err(e) => last = Some(e),
            }
        }
        match last {
            Some(e) if !may_pass(&e) => return Err(refuse(e)),
            _ if Instant::now() >= deadline => {
                let (seconds, address) = (timeouts.wait.as_secs(), address.to_string());
                return Err(TransportError::Nobody { seconds, address, turned_away: String::new() });
            }
            _ => std::thread::park_timeout(PAUSE),
        }
    }
}

/// Whether an address that was not reached may be in a while: nobody listens there yet, or who does has too many to look at and cut this
/// side off, which may show before the connection is there as well as after.
fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, TimedOut};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | TimedOut)
}

/// TLS over it, where that is asked for.
fn protect(
    stream: TcpStream,
    address: &str,
    security: &Security,
    timeouts: Timeouts,
) -> Result<Connection, Unprotected> {
    let failed = |source| {
        let what = "can't connect to";
        Unprotected::Failed(TransportError::Address { what, address: address.into(), source })
    };
    let mut socket = Socket::new(stream, timeouts).map_err(failed)?;
    let Security::Tls { tls, peer_name } = security else {
        return Ok(Connection::Plain(BufWriter::with_capacity(BUFFER, socket)));
    };
    let name = server_name(peer_name).map_err(Unprotected::Failed)?;
    let left = socket.stream.try_clone().map_err(failed)?;
    let shake = || {
        socket.begin_handshake(timeouts.handshake);
        let connection = ClientConnection::new(tls.client.clone(), name).map_err(io::Error::other)?;
        let mut tls = StreamOwned::new(connection, socket.reading_ahead());
        shake_hands(&mut tls.conn, &mut tls.sock)?;
        tls.sock.end_handshake()?;
        Ok::<_, io::Error>(tls)
    };
    match shake() {
        Ok(tls) => Ok(Connection::Client(Box::new(BufWriter::with_capacity(BUFFER, tls)))),
        Err(e) if is_reset(&e) => Err(Unprotected::Reset(TransportError::handshake(&e))),
        Err(e) => {
            part(&left);
            Err(Unprotected::Failed(TransportError::handshake(&e)))
        }
    }
}

fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    let all: Vec<_> = address.to_socket_addrs()?.collect();
    if all.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(all)
}

fn check_plain(all: &[SocketAddr], security: &Security) -> Result<(), TransportError> {
    match (security, all.iter().find(|a| !a.ip().is_loopback())) {
        (Security::Loopback, Some(address)) => {
            Err(TransportError::PlainText { address: address.to_string() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_fits_its_fault() {
        let cases = [
            (
                Fault::Certificate("is cut short or damaged"),
                "damaged; the peer makes another: blindcore circuit",
            ),
            (Fault::RefusedFor("which was revoked"), "revoked; make another: blindcore circuit identity"),
            (Fault::Damaged, "changes them"),
            (Fault::Misbehaves, "both sides should run the same blindcore"),
        ];
        for (fault, words) in cases {
            assert!(explain(&fault).contains(words), "{}", explain(&fault));
        }
        let ended = |error| explained(io::Error::other(error)).to_string();
        let changed = ended(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType));
        assert!(changed.starts_with("TLS with the peer broke: bytes were changed on the way; "), "{changed}");
        let refused = ended(rustls::Error::AlertReceived(rustls::AlertDescription::UnknownCA));
        assert!(refused.starts_with("no TLS with the peer: it does not trust"), "{refused}");
    }

    #[test]
    fn who_is_cut_off_while_it_connects_comes_again() {
        for code in [libc::ECONNRESET, libc::ECONNABORTED, libc::ECONNREFUSED, libc::ETIMEDOUT] {
            assert!(may_pass(&io::Error::from_raw_os_error(code)), "{code}");
        }
        for code in [libc::EACCES, libc::ENETUNREACH, libc::EADDRNOTAVAIL] {
            assert!(!may_pass(&io::Error::from_raw_os_error(code)), "{code}");
        }
    }
}
