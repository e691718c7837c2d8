//! Why a request was refused, in a word that programs compare.

use std::fmt;

/// The gRPC trailer, and the HTTP header, that holds a [`Reason`].
pub const REASON_HEADER: &str = "blindcore-reason";

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// Why a request was refused. None depends on what a query asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[$doc])* $variant,)*
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &[Reason] = &[$(Reason::$variant),*];

            /// The word that travels.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Reason::$variant => $word,)*
                }
            }
        }
    };
}

reasons! {
    /// The server answers to those who have a token, and this request shows none that it knows.
    Unauthorized = "unauthorized",
    /// No table has this name.
    UnknownTable = "unknown-table",
    /// The table has no such part.
    UnknownPart = "unknown-part",
    /// The table is at another epoch: open it again.
    StaleEpoch = "stale-epoch",
    /// The query was made with other parameters.
    WrongParameters = "wrong-parameters",
    /// The server has no registered keys of this digest: register them, and ask in a query of its own.
    UnknownKeys = "unknown-keys",
    /// What was to be registered is no keys that the part takes.
    WrongKeys = "wrong-keys",
    /// Something has the wrong length, or an offset lies outside.
    WrongSize = "wrong-size",
    /// More queries in a request than the server takes, or a body over its limit.
    TooLarge = "too-large",
    /// Bytes that are not a message.
    Malformed = "malformed",
    /// The server has as much to do as it accepts.
    Busy = "busy",
    /// This client has as much under way, or had as much, as the server allows each.
    TooMany = "too-many",
    /// The server took too long, or the client did.
    TimedOut = "timed-out",
    /// The server is shutting down.
    Draining = "draining",
    /// The server failed.
    Internal = "internal",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Reason {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|r| r.as_str() == s);
        found.copied().ok_or_else(|| format!("reason {s:?} is not one that this version knows"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_reads_back() {
        for reason in Reason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
        assert!("".parse::<Reason>().is_err());
    }
}
