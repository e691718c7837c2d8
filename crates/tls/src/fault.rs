//! Why a handshake failed, in a person's words.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError};

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
    /// The peer shows no certificate, and must.
    Missing,
    /// The peer does not take this side's certificate.
    Refused,
    /// The peer expects a certificate of another name.
    RefusedName,
    /// The peer asks for a certificate, and this side shows none.
    Asked,
    /// Both speak TLS, and no version or cipher that both know.
    Incompatible,
    /// Something else, which no honest peer does.
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
            E::AlertReceived(alert) => match alert {
                AlertDescription::CertificateRequired => Self::Asked,
                AlertDescription::ProtocolVersion
                | AlertDescription::HandshakeFailure
                | AlertDescription::InsufficientSecurity => Self::Incompatible,
                AlertDescription::BadCertificate => Self::RefusedName,
                AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::AccessDenied
                | AlertDescription::DecryptError
                | AlertDescription::UnknownCA => Self::Refused,
                other => {
                    Self::Other(format!("the peer ends the connection with TLS's alert {}", u8::from(*other)))
                }
            },
            // The library's words for what no certificate and no option explains.
            other => Self::Other(other.to_string()),
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
            CertificateError::Other(_) => {
                Self::Other("its certificate is not one that can be checked".to_owned())
            }
            other => Self::Other(other.to_string()),
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
                match &has[..] {
                    [] => f.write_str("its certificate has no name")?,
                    has => write!(f, "its certificate is for {}", has.join(", "))?,
                }
                return wanted.iter().try_for_each(|name| write!(f, ", and not for {name}"));
            }
            Self::Expired => "its certificate has expired",
            Self::NotYet => "its certificate is not valid yet",
            Self::Missing => "it shows no certificate",
            Self::Refused => "it does not trust the certificate of this side",
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
            (E::AlertReceived(AlertDescription::InternalError), "alert 80"),
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
}
