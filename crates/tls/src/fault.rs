//! Why a handshake failed, in a person's words.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError, ExtendedKeyPurpose};

/// Why there is no TLS with a peer. What to do, only the caller can say: it knows its options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The peer speaks something else.
    NotTls,
    /// Nobody who is trusted signed the peer's certificate.
    Unknown,
    /// The peer's certificate signs itself and says that it is an authority's: it can be nobody's own.
    Authority,
    /// The peer's certificate has other names than the one that was wanted.
    Name {
        /// The name that was wanted, where it is known.
        wanted: Option<String>,
        /// Those that the certificate has.
        has: Vec<String>,
    },
    /// The peer's certificate is too old.
    Expired,
    /// The peer's certificate is too young.
    NotYet,
    /// The peer's certificate can't be used, whoever signed it: what is said of it after "its certificate".
    Certificate(&'static str),
    /// The peer shows no certificate, and must.
    Missing,
    /// The peer does not take this side's certificate.
    Refused,
    /// The peer can't use this side's certificate, whoever signed it: what is said of it after a comma.
    RefusedFor(&'static str),
    /// The peer expects a certificate of another name.
    RefusedName,
    /// The peer asks for a certificate, and this side shows none.
    Asked,
    /// Both speak TLS, and no version or cipher that both know.
    Incompatible,
    /// Bytes arrived otherwise than they were sent.
    Damaged,
    /// The peer breaks TLS's rules.
    Misbehaves,
    /// Something else, in words.
    Other(String),
}

impl Fault {
    /// What an error of TLS means.
    #[must_use]
    pub fn of(error: &rustls::Error) -> Self {
        use rustls::Error as E;
        match error {
            E::InvalidMessage(_) => Self::NotTls,
            E::InvalidCertificate(error) => Self::of_certificate(error),
            E::NoCertificatesPresented => Self::Missing,
            E::PeerIncompatible(_) => Self::Incompatible,
            E::DecryptError => Self::Damaged,
            E::AlertReceived(alert) => Self::of_alert(*alert),
            E::InappropriateMessage { .. }
            | E::InappropriateHandshakeMessage { .. }
            | E::PeerMisbehaved(_)
            | E::PeerSentOversizedRecord
            | E::InvalidEncryptedClientHello(_) => Self::Misbehaves,
            E::InvalidCertRevocationList(_) => Self::Certificate(REVOCATION),
            E::NoApplicationProtocol => Self::Other("it speaks no protocol that this side speaks".to_owned()),
            E::FailedToGetCurrentTime => Self::Other("this machine's clock can't be read".to_owned()),
            E::FailedToGetRandomBytes => Self::Other("the operating system gave no randomness".to_owned()),
            // The library's own words are for those who write programs.
            _ => Self::Other("TLS ended for a reason that this side has no words for".to_owned()),
        }
    }

    fn of_alert(alert: AlertDescription) -> Self {
        use AlertDescription as A;
        match alert {
            A::CertificateRequired => Self::Asked,
            A::ProtocolVersion | A::HandshakeFailure | A::InsufficientSecurity => Self::Incompatible,
            A::BadCertificate => Self::RefusedName,
            A::UnsupportedCertificate => Self::RefusedFor("which is not for this use"),
            A::CertificateExpired => Self::RefusedFor("which has expired or is not valid yet"),
            A::CertificateRevoked => Self::RefusedFor("which was revoked"),
            A::DecryptError => Self::RefusedFor("whose signature it can't check"),
            A::CertificateUnknown => Self::RefusedFor("which is not one that it can check"),
            A::AccessDenied | A::UnknownCA => Self::Refused,
            A::BadRecordMac | A::DecryptionFailed => Self::Damaged,
            other => {
                let (number, name) = (u8::from(other), name_of(other));
                Self::Other(format!("the peer ends the connection with TLS's alert {number}, {name}"))
            }
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer => Self::Unknown,
            CertificateError::NotValidForNameContext { expected, presented } => {
                let has = presented.iter().map(|name| plain_name(name)).collect();
                Self::Name { wanted: Some(expected.to_str().into_owned()), has }
            }
            CertificateError::NotValidForName => Self::Name { wanted: None, has: Vec::new() },
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYet,
            // The library has no word of its own for it.
            CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                Self::Authority
            }
            other => Self::Certificate(unusable(other)),
        }
    }

    /// The fault that an I/O error of a connection carries, if it is one of TLS.
    #[must_use]
    pub fn find(error: &io::Error) -> Option<Self> {
        let mut cause: Option<&(dyn StdError + 'static)> = error.get_ref().map(|e| e as _);
        while let Some(this) = cause {
            if let Some(error) = this.downcast_ref() {
                return Some(Self::of(error));
            }
            cause = this.source();
        }
        None
    }
}

const REVOCATION: &str = "can't be checked for being revoked";

/// What is wrong with a certificate itself, said after "it" or "its certificate".
pub(crate) fn unusable(error: &CertificateError) -> &'static str {
    use CertificateError as C;
    match error {
        C::BadEncoding => "is cut short or damaged",
        C::Revoked => "was revoked",
        C::UnhandledCriticalExtension => CRITICAL,
        C::UnknownRevocationStatus
        | C::ExpiredRevocationList
        | C::ExpiredRevocationListContext { .. }
        | C::InvalidOcspResponse => REVOCATION,
        C::BadSignature => {
            "has a signature that does not fit the key of who signed it, or that key is too short"
        }
        C::UnsupportedSignatureAlgorithmContext { .. } => {
            "is signed in a way that is not accepted, as SHA-1 is, or has a key of such a kind"
        }
        C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "is signed in a way that does not fit the key of who signed it"
        }
        C::InvalidPurposeContext { required: ExtendedKeyPurpose::ServerAuth, .. } => {
            "is not for the side that listens: its extended key usage lacks serverAuth"
        }
        C::InvalidPurposeContext { required: ExtendedKeyPurpose::ClientAuth, .. } => {
            "is not for the side that connects: its extended key usage lacks clientAuth"
        }
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => "is for another use",
        C::ApplicationVerificationFailure => "is not taken here",
        // Names of the library beneath, which has no type of its own here.
        C::Other(other) => match other.to_string() {
            name if name.contains("UnsupportedCriticalExtension") => CRITICAL,
            name if name.contains("UnsupportedCertVersion") => "has another version than 3",
            name if name.contains("EndEntityUsedAsCa") => "is signed by one that is not an authority's",
            name if name.contains("Constraint") => "is beyond what its authority may sign",
            _ => "is not one that can be checked",
        },
        _ => "is not one that can be checked",
    }
}

const CRITICAL: &str = "has a critical extension that is not known here";

/// What an alert is called.
fn name_of(alert: AlertDescription) -> &'static str {
    use AlertDescription as A;
    match alert {
        A::CloseNotify => "an end",
        A::UnexpectedMessage => "unexpected message",
        A::RecordOverflow => "record overflow",
        A::DecompressionFailure => "decompression failure",
        A::NoCertificate => "no certificate",
        A::IllegalParameter => "illegal parameter",
        A::DecodeError => "decode error",
        A::ExportRestriction => "export restriction",
        A::InternalError => "internal error",
        A::InappropriateFallback => "inappropriate fallback",
        A::UserCanceled => "canceled by its user",
        A::NoRenegotiation => "no renegotiation",
        A::MissingExtension => "missing extension",
        A::UnsupportedExtension => "unsupported extension",
        A::UnrecognisedName => "unrecognised name",
        A::NoApplicationProtocol => "no application protocol",
        _ => "which has no name here",
    }
}

/// `alice` of `DnsName("alice")`, and `127.0.0.1` of `IpAddress(127.0.0.1)`.
fn plain_name(name: &str) -> String {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inner.trim_matches('"').to_owned()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTls => "what answers there does not speak TLS",
            Self::Unknown => "nobody who is trusted here signed its certificate",
            Self::Authority => {
                "its certificate signs itself and says that it is an authority's: such a one can't be shown"
            }
            Self::Name { wanted, has } => {
                if has.is_empty() {
                    return f.write_str("its certificate has no name, which stands in a subjectAltName");
                }
                write!(f, "its certificate is for {}", has.join(", "))?;
                return wanted.iter().try_for_each(|name| write!(f, ", and not for {name}"));
            }
            Self::Certificate(what) => return write!(f, "its certificate {what}"),
            Self::Expired => "its certificate has expired",
            Self::NotYet => "its certificate is not valid yet",
            Self::Missing => "it shows no certificate",
            Self::Refused => "it does not trust the certificate of this side",
            Self::RefusedFor(why) => {
                return write!(f, "it does not take the certificate of this side, {why}");
            }
            Self::Damaged => "bytes were changed on the way",
            Self::Misbehaves => "it does not keep to the rules of TLS",
            Self::RefusedName => "it wants another name than the certificate of this side has",
            Self::Asked => "it asks for a certificate, and this side shows none",
            Self::Incompatible => "it speaks no version of TLS, or no cipher, that this side speaks too",
            Self::Other(why) => why,
        })
    }
}

/// The command that makes a certificate which signs itself and can be shown; `name` is whose it is.
#[must_use]
pub fn recipe(name: &str) -> String {
    format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -keyout {name}.key -out {name}.crt \
         -subj /CN={name} -addext subjectAltName=DNS:{name} -addext basicConstraints=critical,CA:FALSE"
    )
}

/// Whether bytes are the beginning of a record of TLS: a handshake or an alert.
#[must_use]
pub fn is_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 0x03, ..])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::{UnixTime, alg_id};

    use super::*;

    #[test]
    fn faults_are_a_persons_words() {
        use rustls::Error as E;
        let name = |names: &[&str]| {
            let presented = names.iter().map(|name| (*name).to_owned()).collect();
            let expected = rustls::pki_types::ServerName::try_from("bob").unwrap();
            E::InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented })
        };
        let cases = [
            (E::InvalidMessage(rustls::InvalidMessage::InvalidContentType), "does not speak TLS"),
            (E::InvalidCertificate(CertificateError::UnknownIssuer), "nobody who is trusted"),
            (
                name(&["DnsName(\"alice\")", "IpAddress(127.0.0.1)"]),
                "is for alice, 127.0.0.1, and not for bob",
            ),
            (name(&[]), "no name"),
            (E::AlertReceived(AlertDescription::UnknownCA), "does not trust the certificate of this side"),
            (
                E::AlertReceived(AlertDescription::BadCertificate),
                "another name than the certificate of this side",
            ),
            (E::AlertReceived(AlertDescription::CertificateRequired), "asks for a certificate"),
            (E::AlertReceived(AlertDescription::InternalError), "alert 80, internal error"),
            (E::NoCertificatesPresented, "shows no certificate"),
        ];
        for (error, words) in cases {
            let wrapped = io::Error::new(io::ErrorKind::InvalidData, error.clone());
            assert_eq!(Fault::find(&wrapped), Some(Fault::of(&error)));
            let said = Fault::of(&error).to_string();
            assert!(said.contains(words) && !said.contains(['(', '{', '"']), "{said}");
        }
        assert_eq!(Fault::find(&io::ErrorKind::TimedOut.into()), None);
        assert!(is_record(&[0x16, 3, 1, 2]) && !is_record(b"HTTP/1.1") && !is_record(&[]));
    }

    /// Of each kind of error, and of kinds that no peer here brings about; none shows a name of the library's, nor its lists.
    #[test]
    fn no_error_is_said_in_the_librarys_words() {
        use rustls::{CertRevocationListError, ContentType, Error as E, InconsistentKeys, OtherError};
        use rustls::{PeerIncompatible, PeerMisbehaved};
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Below(&'static str);
        let other = |name| CertificateError::Other(OtherError(Arc::new(Below(name))));
        let (time, ids) = (UnixTime::since_unix_epoch(Duration::ZERO), vec![6, 9, 42]);
        let purpose = |required| CertificateError::InvalidPurposeContext {
            required,
            presented: vec![ExtendedKeyPurpose::Other(vec![1, 2, 3])],
        };
        let certificates = [
            (CertificateError::BadEncoding, "cut short or damaged"),
            (CertificateError::Revoked, "was revoked"),
            (CertificateError::UnhandledCriticalExtension, "critical extension"),
            (CertificateError::UnknownRevocationStatus, "revoked"),
            (CertificateError::ExpiredRevocationListContext { time, next_update: time }, "revoked"),
            (CertificateError::ExpiredContext { time, not_after: time }, "has expired"),
            (CertificateError::NotValidYetContext { time, not_before: time }, "not valid yet"),
            (CertificateError::BadSignature, "signature"),
            (
                CertificateError::UnsupportedSignatureAlgorithmContext {
                    signature_algorithm_id: ids.clone(),
                    supported_algorithms: vec![alg_id::ECDSA_SHA256],
                },
                "SHA-1",
            ),
            (
                CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                    signature_algorithm_id: ids.clone(),
                    public_key_algorithm_id: ids,
                },
                "does not fit the key",
            ),
            (purpose(ExtendedKeyPurpose::ServerAuth), "side that listens"),
            (purpose(ExtendedKeyPurpose::ClientAuth), "side that connects"),
            (CertificateError::InvalidPurpose, "another use"),
            (CertificateError::ApplicationVerificationFailure, "not taken"),
            (other("UnsupportedCriticalExtension"), "critical extension"),
            (other("UnsupportedCertVersion"), "version"),
            (other("EndEntityUsedAsCa"), "not an authority's"),
            (other("PathLenConstraintViolated"), "may sign"),
            (other("MalformedExtensions { at: Some(1) }"), "checked"),
        ];
        let alerts = (0..=255).map(|number| E::AlertReceived(AlertDescription::from(number)));
        let others = [
            E::InappropriateMessage {
                expect_types: vec![ContentType::Alert],
                got_type: ContentType::Unknown(9),
            },
            E::PeerMisbehaved(PeerMisbehaved::MessageInterleavedWithHandshakeMessage),
            E::PeerMisbehaved(PeerMisbehaved::TooManyWarningAlertsReceived),
            E::PeerMisbehaved(PeerMisbehaved::IllegalHelloRetryRequestWithOfferedGroup),
            E::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
            E::InvalidCertRevocationList(CertRevocationListError::BadSignature),
            E::InconsistentKeys(InconsistentKeys::Unknown),
            E::General("failed to parse { KeyRejected(\"InvalidEncoding\") }".into()),
            E::Other(OtherError(Arc::new(Below("Unspecified::Here")))),
            E::UnsupportedNameType,
            E::DecryptError,
            E::EncryptError,
            E::FailedToGetCurrentTime,
            E::FailedToGetRandomBytes,
            E::HandshakeNotComplete,
            E::PeerSentOversizedRecord,
            E::NoApplicationProtocol,
            E::BadMaxFragmentSize,
        ];
        let plain = |said: &str| {
            let joined = |pair: [char; 2]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
            // The names that certificates are made with.
            let said = said.replace("serverAuth", "").replace("clientAuth", "");
            let letters: Vec<char> = said.chars().collect();
            !said.contains(['{', '[', '(', '"'])
                && !said.contains("::")
                && !letters.array_windows().any(|pair| joined(*pair))
        };
        for (error, words) in certificates {
            let said = Fault::of(&E::InvalidCertificate(error)).to_string();
            assert!(said.contains(words) && said.contains("certificate") && plain(&said), "{words}: {said}");
        }
        for error in alerts.chain(others) {
            let said = Fault::of(&error).to_string();
            assert!(plain(&said) && said.len() < 120, "{said}");
        }
        assert!(!plain("UnknownIssuer"));
        let mac = E::AlertReceived(AlertDescription::BadRecordMac);
        assert_eq!(Fault::of(&mac), Fault::Damaged);
    }
}
