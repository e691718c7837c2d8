//! Certificates, keys and TLS settings: what every connection of blindcore that is encrypted starts from.
//!
//! Files are PEM, read up to a limit; keys are wiped once they are read. The cryptography is `ring`'s, passed as a value,
//! so that nothing depends on a default of the process.
//!
//! ```no_run
//! let server = blindcore_tls::server("chain.pem".as_ref(), "key.pem".as_ref())?; // TLS 1.2 and 1.3, for HTTP
//! let client = blindcore_tls::client(Some("our-ca.pem".as_ref()))?; // trusts it beside Mozilla's list
//! # Ok::<(), blindcore_tls::Error>(())
//! ```

mod fault;
mod trust;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ServerConfig};
use zeroize::Zeroizing;

pub use fault::{Fault, is_record, recipe};
pub use trust::Trust;

/// No file of certificates or of a key is longer.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// What HTTP is called where the handshake chooses it: HTTP/2, which gRPC needs, or HTTP/1.1.
const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A certificate or key that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{what} {path}: {why}")]
pub struct Error {
    /// What it should be.
    pub what: &'static str,
    /// Its file.
    pub path: String,
    /// What is wrong.
    pub why: String,
}

impl Error {
    fn new(what: &'static str, path: &Path, why: impl ToString) -> Self {
        Self { what, path: path.display().to_string(), why: why.to_string() }
    }
}

/// The cryptography of every connection.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificates in a PEM file, in its order, at least one.
///
/// # Errors
/// The file can't be read, is over 1 MiB, holds no certificate or one that is cut short.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    const WHAT: &str = "certificate";
    let text = read(path).map_err(|e| Error::new(WHAT, path, e))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|_| Error::new(WHAT, path, "it is cut short or damaged"))?;
    if all.is_empty() {
        return Err(Error::new(WHAT, path, "there is none in it"));
    }
    Ok(all)
}

/// The private key in a PEM file: PKCS #8, PKCS #1 or SEC 1.
///
/// # Errors
/// The file can't be read, is over 1 MiB, or holds no key that is whole.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    const WHAT: &str = "private key";
    let text = read(path).map_err(|e| Error::new(WHAT, path, e))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|e| {
        let none = matches!(e, pem::Error::NoItemsFound);
        Error::new(WHAT, path, if none { "there is none in it" } else { "it is cut short or damaged" })
    })
}

/// A PEM file, whole; wiped when dropped, because it may be a key.
fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    // Room for all of it at once: nothing is left behind by growing.
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_PEM_BYTES as usize + 1));
    File::open(path)?.take(MAX_PEM_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_PEM_BYTES {
        return Err(io::Error::other(format!("it is over the limit of {MAX_PEM_BYTES} B")));
    }
    // A byte order mark is not of the first line.
    if text.starts_with(b"\xef\xbb\xbf") {
        text.copy_within(3.., 0);
        let length = text.len() - 3;
        text.truncate(length);
    }
    Ok(text)
}

/// What a side's own certificate and key are refused for, in words.
#[must_use]
pub fn own(chain: &Path, key: &Path, error: &rustls::Error) -> Error {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            let why = format!(
                "it is not the key of the certificate {}; name the two that were made together",
                chain.display()
            );
            Error::new("private key", key, why)
        }
        // The key is what this library has but a sentence for.
        rustls::Error::General(_) => Error::new("private key", key, KEYS),
        other => certificate_error("certificate", chain, other),
    }
}

const KEYS: &str = "it is damaged, or of a kind that can't be used; take one of P-256, P-384, Ed25519, or RSA of 2048 to 4096 bits";

/// What a certificate is refused for that is to be trusted, in words.
#[must_use]
pub(crate) fn trusted(path: &Path, error: &rustls::Error) -> Error {
    certificate_error("trusted certificate", path, error)
}

/// What is wrong with a certificate of a file, which is no peer's.
fn certificate_error(what: &'static str, path: &Path, error: &rustls::Error) -> Error {
    match error {
        rustls::Error::InvalidCertificate(error) => {
            Error::new(what, path, format!("it {}", fault::unusable(error)))
        }
        other => Error::new(what, path, Fault::of(other)),
    }
}

/// A server's side of TLS 1.2 and 1.3 for HTTP: its chain, the leaf first, and its key. Clients show no certificate.
///
/// # Errors
/// A file can't be read or doesn't hold what it should, or the key is not the leaf's.
pub fn server(chain: &Path, key: &Path) -> Result<Arc<ServerConfig>, Error> {
    let own = |e: rustls::Error| own(chain, key, &e);
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(own)?
        .with_no_client_auth()
        .with_single_cert(certificates(chain)?, private_key(key)?)
        .map_err(own)?;
    config.alpn_protocols = HTTP.map(Vec::from).into();
    Ok(Arc::new(config))
}

/// What is wrong with the certificate that a server shows, the first of its chain, if our clients refuse it whomever they trust: it
/// has expired, is not valid yet, or is an authority's. It can be served all the same, and time may mend it.
///
/// # Errors
/// As [`certificates`].
pub fn refused_by_all(chain: &Path) -> Result<Option<Error>, Error> {
    let why = match trust::refused_by_all(&certificates(chain)?[0]) {
        Some(Fault::Expired) => {
            "it has expired, and clients refuse it; put a new one there and send SIGHUP".into()
        }
        Some(Fault::NotYet) => {
            "it is not valid yet, and clients refuse it until then; check this machine's clock".into()
        }
        Some(Fault::Authority) => format!(
            "it says that it is an authority's, and clients refuse such a one as a server's; make another: {}",
            recipe("NAME")
        ),
        _ => return Ok(None),
    };
    Ok(Some(Error { what: "certificate", path: chain.display().to_string(), why }))
}

/// A client's side of TLS 1.2 and 1.3 for HTTP/2: trusts Mozilla's list of authorities, and whom the certificates in `ca` are
/// of beside it ([`Trust`]). The server's name is checked against its certificate.
///
/// # Errors
/// The file can't be read, or holds no certificate that can be trusted.
pub fn client(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let mut trust = Trust::public();
    if let Some(path) = ca {
        trust = trust.with(path)?;
    }
    let mut config = client_of(&trust);
    config.alpn_protocols = vec![HTTP[0].to_vec()];
    Ok(Arc::new(config))
}

/// A client's side of TLS 1.2 and 1.3, whatever it speaks then, to servers that are trusted.
#[must_use]
pub fn client_of(trust: &Trust) -> ClientConfig {
    let provider = provider();
    let verifier = trust.of_servers(&provider);
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has both versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_or_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let made = rcgen::generate_simple_self_signed(["db.example".to_owned()]).unwrap();
        let (text, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let (chain, secret) = (write("a.crt", &text), write("a.key", &key));
        assert_eq!(server(&chain, &secret).unwrap().alpn_protocols.len(), 2);
        assert!(client(Some(&chain)).is_ok() && client(None).is_ok());
        let marked = |name: &str, text: &str| write(name, &format!("\u{feff}{}", text.replace('\n', "\r\n")));
        server(&marked("m.crt", &text), &marked("m.key", &key)).unwrap();

        let other = rcgen::generate_simple_self_signed(["db.example".to_owned()]).unwrap();
        // What is whole as PEM, and nothing in it.
        let empty = |what: &str| format!("-----BEGIN {what}-----\nMAA=\n-----END {what}-----\n");
        let no_certificate = write("no.crt", &empty("CERTIFICATE"));
        let no_key = write("no.key", &empty("PRIVATE KEY"));
        let mut parameters = rcgen::CertificateParams::new(["db.example".to_owned()]).unwrap();
        let mut extension = rcgen::CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
        extension.set_criticality(true);
        parameters.custom_extensions.push(extension);
        let critical = write("critical.crt", &parameters.self_signed(&made.signing_key).unwrap().pem());
        let cases = [
            (certificates(&dir.path().join("none")).err(), "none"),
            (certificates(&secret).err(), "there is none in it"),
            (certificates(&write("cut", &text[..text.len() - 40])).err(), "cut short"),
            (certificates(&write("long", &"x".repeat(1 << 21))).err(), "over the limit of 1048576 B"),
            (private_key(&chain).err(), "private key"),
            (private_key(&write("half", &key[..key.len() - 40])).err(), "cut short"),
            (
                server(&chain, &write("b.key", &other.signing_key.serialize_pem())).err(),
                "b.key: it is not the key of the certificate",
            ),
            (client(Some(&secret)).err(), "there is none in it"),
            (server(&no_certificate, &secret).err(), "certificate DIR/no.crt: it is cut short or damaged"),
            (
                client(Some(&no_certificate)).err(),
                "trusted certificate DIR/no.crt: it is cut short or damaged",
            ),
            (server(&critical, &secret).err(), "certificate DIR/critical.crt: it has a critical extension"),
            (server(&chain, &no_key).err(), "private key DIR/no.key: it is damaged, or of a kind"),
        ];
        for (error, words) in cases {
            let error = error.unwrap().to_string().replace(&dir.path().display().to_string(), "DIR");
            assert!(error.contains(words) && !error.contains("PRIVATE"), "{words}: {error}");
        }
    }
}
