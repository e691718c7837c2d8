//! Whom a side trusts: authorities, which vouch for others, and peers, each for itself alone.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, OtherError, RootCertStore,
    SignatureScheme,
};

use crate::{Error, Fault, certificates, provider, trusted};

/// Certificates that are trusted. One that says that it is an authority's (`CA:TRUE`) vouches for all that it signed, by
/// whatever name. Any other is its holder's own: it is taken where it is shown itself, and what its holder signs is not.
#[derive(Debug)]
pub struct Trust {
    authorities: RootCertStore,
    peers: Vec<CertificateDer<'static>>,
}

impl Trust {
    /// Mozilla's list of authorities.
    #[must_use]
    pub fn public() -> Self {
        Self::authorities(webpki_roots::TLS_SERVER_ROOTS.iter().cloned())
    }

    /// Nobody but these authorities.
    fn authorities(anchors: impl IntoIterator<Item = TrustAnchor<'static>>) -> Self {
        Self { authorities: RootCertStore::from_iter(anchors), peers: Vec::new() }
    }

    /// The certificates in a PEM file, at least one.
    ///
    /// # Errors
    /// The file can't be read, or holds what can't be trusted.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::authorities([]).with(path)
    }

    /// The same, and those in a PEM file, at least one.
    pub(crate) fn with(mut self, path: &Path) -> Result<Self, Error> {
        for certificate in certificates(path)? {
            let refused = |error: TlsError| trusted(path, &error);
            if is_authority(&certificate).map_err(refused)? {
                self.authorities.add(certificate).map_err(refused)?;
            } else {
                self.peers.push(certificate);
            }
        }
        Ok(self)
    }

    /// Checks the certificates of those that are connected to.
    #[must_use]
    pub fn of_servers(&self, provider: &Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
        Arc::new(self.by(|roots| -> Arc<dyn ServerCertVerifier> {
            let built = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
            built.expect("there are roots, and no lists of what is revoked")
        }))
    }

    /// Checks the certificates of those that connect, which have this name where one is wanted.
    #[must_use]
    pub fn of_clients(
        &self,
        provider: &Arc<CryptoProvider>,
        name: Option<ServerName<'static>>,
    ) -> Arc<dyn ClientCertVerifier> {
        let trusting = self.by(|roots| {
            let built = WebPkiClientVerifier::builder_with_provider(roots, provider.clone()).build();
            built.expect("there are roots, and no lists of what is revoked")
        });
        Arc::new(Trusting { name, ..trusting })
    }

    fn by<V: ?Sized>(&self, built: impl Fn(Arc<RootCertStore>) -> Arc<V>) -> Trusting<V> {
        let mut everybody = self.authorities.clone();
        let peers = self.peers.iter().map(|certificate| {
            let own = only(certificate).expect("it was looked at when it was read");
            everybody.roots.extend(own.roots.iter().cloned());
            (certificate.clone(), built(Arc::new(own)))
        });
        let peers = peers.collect();
        let authorities = !self.authorities.is_empty();
        Trusting {
            peers,
            authorities: authorities.then(|| built(Arc::new(self.authorities.clone()))),
            everybody: built(Arc::new(everybody)),
            name: None,
        }
    }
}

/// A store of one certificate.
fn only(certificate: &CertificateDer<'static>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    Ok(roots)
}

/// Judges a certificate as that of a peer whom nobody but itself vouches for: first its time, then whether it is an authority's.
fn alone(certificate: &CertificateDer<'static>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(only(certificate)?), provider()).build();
    Ok(verifier.expect("there is a root, and no lists of what is revoked"))
}

/// Why a certificate is refused now by whoever is shown it and whomever they trust: for its time, or as an authority's.
pub(crate) fn refused_by_all(certificate: &CertificateDer<'static>) -> Option<Fault> {
    let verified =
        alone(certificate).and_then(|own| own.verify_client_cert(certificate, &[], UnixTime::now()));
    let fault = Fault::of(&verified.err()?);
    matches!(fault, Fault::Expired | Fault::NotYet | Fault::Authority).then_some(fault)
}

/// Whether a certificate vouches for others, whatever its time. Of version 1 no peer has any, and nothing says whose they are.
fn is_authority(certificate: &CertificateDer<'static>) -> Result<bool, TlsError> {
    let verifier = alone(certificate)?;
    let mut now = UnixTime::now();
    // It is too young or too old once at most.
    for _ in 0..2 {
        match verifier.verify_client_cert(certificate, &[], now) {
            Err(TlsError::InvalidCertificate(CertificateError::ExpiredContext {
                not_after: time, ..
            }))
            | Err(TlsError::InvalidCertificate(CertificateError::NotValidYetContext {
                not_before: time,
                ..
            })) => {
                now = time;
            }
            Err(TlsError::InvalidCertificate(CertificateError::Other(other))) => {
                let name = other.to_string();
                return Ok(name.contains("CaUsedAsEndEntity") || name.contains("UnsupportedCertVersion"));
            }
            _ => break,
        }
    }
    Ok(false)
}

/// How those who are trusted are checked.
#[derive(Debug)]
struct Trusting<V: ?Sized> {
    peers: Vec<(CertificateDer<'static>, Arc<V>)>,
    authorities: Option<Arc<V>>,
    /// For what is the same whoever it is, and for what is wrong with a stranger's.
    everybody: Arc<V>,
    /// Whom one that connects must be.
    name: Option<ServerName<'static>>,
}

/// What the library calls a certificate that signed another and is not an authority's.
#[derive(Debug)]
struct EndEntityUsedAsCa;

impl fmt::Display for EndEntityUsedAsCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndEntityUsedAsCa")
    }
}

impl std::error::Error for EndEntityUsedAsCa {}

impl<V: ?Sized> Trusting<V> {
    /// A peer's certificate as such, and any other as one that an authority signed.
    fn verify<T>(
        &self,
        shown: &CertificateDer<'_>,
        itself: impl Fn(&V) -> Result<T, TlsError>,
        signed: impl Fn(&V) -> Result<T, TlsError>,
    ) -> Result<T, TlsError> {
        if let Some((_, own)) = self.peers.iter().find(|(certificate, _)| certificate == shown) {
            return itself(own);
        }
        let by_somebody = signed(&self.everybody)?;
        match &self.authorities {
            _ if self.peers.is_empty() => Ok(by_somebody),
            Some(authorities) => signed(authorities),
            None => Err(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)),
        }
        .map_err(|error| match error {
            TlsError::InvalidCertificate(CertificateError::UnknownIssuer) => {
                TlsError::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(EndEntityUsedAsCa))))
            }
            other => other,
        })
    }
}

/// Whether a certificate is as it should be, but for its signer: it is trusted itself. The library looks for that one last.
fn but_for_its_signer<T>(verified: Result<T, TlsError>) -> Result<Option<T>, TlsError> {
    match verified {
        Err(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)) => Ok(None),
        other => other.map(Some),
    }
}

/// What is the same whoever shows a certificate, on either side: the library has a trait for each.
macro_rules! signatures_of_everybody {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, TlsError> {
            self.everybody.verify_tls12_signature(message, certificate, signed)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, TlsError> {
            self.everybody.verify_tls13_signature(message, certificate, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.everybody.supported_verify_schemes()
        }
    };
}

impl ServerCertVerifier for Trusting<dyn ServerCertVerifier> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let itself = |own: &(dyn ServerCertVerifier + 'static)| {
            let verified = but_for_its_signer(own.verify_server_cert(end_entity, &[], name, ocsp, now))?;
            let named = || verify_server_name(&ParsedCertificate::try_from(end_entity)?, name);
            verified.map_or_else(|| named().map(|()| ServerCertVerified::assertion()), Ok)
        };
        let signed = |by: &(dyn ServerCertVerifier + 'static)| {
            by.verify_server_cert(end_entity, intermediates, name, ocsp, now)
        };
        self.verify(end_entity, itself, signed)
    }

    signatures_of_everybody!();
}

impl ClientCertVerifier for Trusting<dyn ClientCertVerifier> {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.everybody.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        let itself = |own: &(dyn ClientCertVerifier + 'static)| {
            let verified = but_for_its_signer(own.verify_client_cert(end_entity, &[], now))?;
            Ok(verified.unwrap_or_else(ClientCertVerified::assertion))
        };
        let signed =
            |by: &(dyn ClientCertVerifier + 'static)| by.verify_client_cert(end_entity, intermediates, now);
        let verified = self.verify(end_entity, itself, signed)?;
        if let Some(name) = &self.name {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
        }
        Ok(verified)
    }

    signatures_of_everybody!();
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

    use super::*;

    type Signer = CertifiedIssuer<'static, KeyPair>;

    fn params(name: &str, authority: bool) -> CertificateParams {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        if authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params
    }

    fn by_itself(params: CertificateParams) -> Signer {
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    fn signed(params: &CertificateParams, by: &Signer) -> rcgen::Certificate {
        params.signed_by(&KeyPair::generate().unwrap(), by).unwrap()
    }

    /// What each side makes of a certificate that is shown for `bob`: its fault, which is the same on both but for the name.
    fn shown(trusted: &[&rcgen::Certificate], leaf: &rcgen::Certificate) -> [Option<Fault>; 2] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, trusted.iter().map(|c| c.pem()).collect::<String>()).unwrap();
        let (trust, provider, now) = (Trust::read(file.path()).unwrap(), provider(), UnixTime::now());
        let (leaf, name) = (leaf.der(), ServerName::try_from("bob").unwrap());
        let server = trust.of_servers(&provider).verify_server_cert(leaf, &[], &name, &[], now);
        let client = trust.of_clients(&provider, None).verify_client_cert(leaf, &[], now);
        [server.err(), client.err()].map(|error| error.map(|error| Fault::of(&error)))
    }

    fn says(found: &[Option<Fault>; 2], words: &str) {
        for fault in found {
            let said = fault.as_ref().expect("it is refused").to_string();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn who_is_trusted_vouches_for_nobody_else() {
        let [bob, dave] = ["bob", "dave"].map(|name| by_itself(params(name, false)));
        let (ca, bobs) = (by_itself(params("ca", true)), params("bob", false));
        assert_eq!(shown(&[bob.as_ref(), dave.as_ref()], bob.as_ref()), [None, None]);
        let minted = signed(&bobs, &dave);
        // Beside an authority, too, and as a certificate of an authority that a peer signed.
        says(&shown(&[bob.as_ref(), dave.as_ref()], &minted), "signed by one that is not an authority's");
        says(
            &shown(&[bob.as_ref(), dave.as_ref(), ca.as_ref()], &minted),
            "signed by one that is not an authority's",
        );
        says(&shown(&[ca.as_ref()], &minted), "nobody who is trusted");
        assert_eq!(shown(&[ca.as_ref()], &signed(&bobs, &ca)), [None, None]);
        assert_eq!(shown(&[ca.as_ref(), dave.as_ref()], &signed(&bobs, &ca)), [None, None]);
        assert!(matches!(
            &shown(&[bob.as_ref(), dave.as_ref()], dave.as_ref()),
            [Some(Fault::Name { .. }), None]
        ));
        assert_eq!(
            shown(&[ca.as_ref(), bob.as_ref()], ca.as_ref()),
            [Some(Fault::Authority), Some(Fault::Authority)]
        );
    }

    /// A certificate that an authority signed is trusted itself, for as long as it lasts, and not what signed it.
    #[test]
    fn a_certificate_is_trusted_without_its_signer() {
        let ca = by_itself(params("ca", true));
        let (bobs, others) = (signed(&params("bob", false), &ca), signed(&params("carol", false), &ca));
        assert_eq!(shown(&[&bobs], &bobs), [None, None]);
        says(&shown(&[&bobs], &signed(&params("bob", false), &ca)), "nobody who is trusted");
        assert!(matches!(&shown(&[&others], &others), [Some(Fault::Name { .. }), None]));
        let mut old = params("bob", false);
        (old.not_before, old.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        let old = signed(&old, &ca);
        assert_eq!(shown(&[&old], &old), [Some(Fault::Expired), Some(Fault::Expired)]);
    }

    /// What a certificate says of itself counts whatever its time.
    #[test]
    fn authorities_are_told_from_others_at_any_time() {
        for (from, to) in [(2020, 2021), (2020, 4000), (3000, 4000)] {
            for authority in [false, true] {
                let mut params = params("bob", authority);
                (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
                let made = by_itself(params);
                assert_eq!(is_authority(made.der()).unwrap(), authority, "{from} to {to}");
                let refused = match (from, to) {
                    (_, 2021) => Some(Fault::Expired),
                    (3000, _) => Some(Fault::NotYet),
                    _ => authority.then_some(Fault::Authority),
                };
                assert_eq!(refused_by_all(made.der()), refused, "{from} to {to}");
            }
        }
        let ca = by_itself(params("ca", true));
        assert!(is_authority(signed(&params("between", true), &ca).der()).unwrap());
        assert_eq!(
            refused_by_all(signed(&params("bob", false), &ca).der()),
            None,
            "its signer may be trusted"
        );
    }
}
