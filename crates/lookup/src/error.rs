//! What a lookup refuses.

/// Why a lookup, or its preparation, was refused. No variant depends on what an answer decodes to: a client
/// that showed a server which answers fail would hand it the secret bit by bit (selective failure).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A size outside its range.
    #[error("{what} is {got}, outside {min} to {max}; {remedy}")]
    Range {
        /// Which size.
        what: &'static str,
        /// Its value.
        got: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// A scheme that this build has not.
    #[error("scheme `{name}` is not known to this build ({build}), which knows {known}; update it")]
    UnknownScheme {
        /// Its name, as far as it can be shown.
        name: String,
        /// This build.
        build: &'static str,
        /// The schemes that it offers.
        known: String,
    },
    /// Two schemes are called alike.
    #[error(
        "scheme {name:?} with number {wire_id} can't be added: scheme {other:?} has its name or number; choose others"
    )]
    SchemeTaken {
        /// The new one's name.
        name: &'static str,
        /// Its number.
        wire_id: u32,
        /// The one that was there before.
        other: &'static str,
    },
    /// A prepared or pending query of a client of another scheme.
    #[error("a query was prepared by another client; use it with the client that made it")]
    Foreign,
    /// Registered keys of a scheme that has none.
    #[error("scheme {scheme} has no registered keys; ask its queries without them")]
    NoRegisteredKeys {
        /// The scheme.
        scheme: &'static str,
    },
    /// Registered keys of other parameters, or none where there have to be some.
    #[error(
        "queries of scheme {scheme} are under a client's registered keys, and these are {got}; make keys with this table's parameters"
    )]
    OtherKeys {
        /// The scheme.
        scheme: &'static str,
        /// What there is.
        got: &'static str,
    },
    /// Bytes that are no keys.
    #[error("{what} can't be used: {why}; make keys with this table's parameters")]
    KeyBytes {
        /// Which bytes.
        what: &'static str,
        /// What is wrong with them.
        why: String,
    },
    /// Progress was told to stop.
    #[error("stopped")]
    Stopped,
    /// A hint that no client would fetch.
    #[error(
        "scheme {scheme} has a hint of {} for slots of {slot} B, over the limit of {} for a table of this size; choose another \
         scheme, such as --scheme auto, or make records shorter",
        blindcore_units::bytes(*bytes),
        blindcore_units::bytes(*limit)
    )]
    Hint {
        /// The scheme.
        scheme: &'static str,
        /// Bytes of the hint.
        bytes: u64,
        /// Bytes of a slot.
        slot: u64,
        /// The most that is allowed.
        limit: u64,
    },
    /// Decoding would fail too often.
    #[error(
        "a lookup of this geometry would fail {}, more often than the limit of once in \
         2^{limit}; use fewer rows or shorter records",
        often(*failure)
    )]
    Failure {
        /// Bits of the failure bound.
        failure: f64,
        /// Bits of the limit.
        limit: f64,
    },
    /// Bytes of the wrong length.
    #[error("{what} has {got} bytes where these parameters make {want}; {remedy}")]
    Length {
        /// Which bytes.
        what: &'static str,
        /// How many there are.
        got: usize,
        /// How many there should be.
        want: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// The device refused.
    #[error(transparent)]
    Device(#[from] blindcore_accel::Error),
    /// No randomness.
    #[error(transparent)]
    Randomness(#[from] blindcore_math::RandomnessError),
    /// Two rows have one key.
    #[error("the key of record {first} is also the key of record {second}; keys must differ")]
    DuplicateKey {
        /// Position in the bucket of one.
        first: usize,
        /// Position in the bucket of the other.
        second: usize,
    },
    /// A keyword bucket can't be solved.
    #[error(
        "{keys} keys don't fit a bucket of {columns} columns after {tries} seeds, which is bad luck; try again, \
         because keys are hashed with another salt each time"
    )]
    Bucket {
        /// Keys in the bucket.
        keys: usize,
        /// Its columns.
        columns: usize,
        /// Seeds that were tried.
        tries: usize,
    },
}

/// A bound on failures in words, from its -log2. A bound over 1 says nothing but this.
fn often(failure: f64) -> String {
    if failure >= 0.1 { format!("once in 2^{failure:.1}") } else { "nearly always".into() }
}
