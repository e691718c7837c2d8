//! A client's registered keys: which are used for a request, when others are made, and what a cache keeps of them.
//!
//! ```text
//!   Lookup::step ── Keys(need) ──▶ driver: locks the entry, reads it
//!                                    │ KeyEntry::read ──▶ Option<ClientKeys>
//!                                    ▼
//!                    KeyNeed::grant ──▶ Grant: keys, writes what changed, perhaps a request that registers them
//!                                    │ the request is sent, ClientKeys::registered once it was answered
//!                                    ▼
//!                    Lookup::take_keys(keys) ──▶ Lookup::step ── Send(request) ...
//! ```
//!
//! An entry is named after table, server and the parameters of its keys. It holds a secret: a driver keeps it where its user
//! alone can read it, and wipes it when other keys take its place.
//!
//! | bytes | what                                                                |
//! |-------|---------------------------------------------------------------------|
//! | 8     | `BLNDKEYS`                                                          |
//! | 4     | version, 1                                                          |
//! | 4     | bytes of this header, 160                                           |
//! | 32    | digest of the parameters                                            |
//! | 32    | digest of the public keys                                           |
//! | 8     | when they were made, in seconds since 1970                          |
//! | 8     | bytes of the secret                                                 |
//! | 8     | bytes of the public keys                                            |
//! | 32    | digest of all before, and of the secret                             |
//! | 8     | queries that were made under them                                   |
//! | 8     | 1 once the server has them                                          |
//! | 8     | zeros                                                               |
//!
//! The secret follows, and then the public keys.

use std::time::Duration;

use blindcore_lookup::{KeySet, Params, SecretKeys};
use blindcore_wire::{PartKind, check_table_name, proto};
use bytes::Bytes;
use zeroize::Zeroizing;

use crate::Error;
use crate::cache::{before, is_hex};

/// Bytes before the secret in a cached entry.
pub const KEY_HEADER_BYTES: usize = 160;

const MAGIC: &[u8; 8] = b"BLNDKEYS";
const VERSION: u32 = 1;
/// What the digest in a header covers of it.
const COVERED: usize = 104;

/// When a client makes other keys: whatever came of its lookups, so that it tells nothing.
///
/// Each lookup that visibly fails may show a bit of the secret that all of them share; so few have to share one that nobody
/// learns enough of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// After so many queries. A lookup takes one or a few.
    pub queries: u64,
    /// After this time.
    pub age: Duration,
}

impl Default for Rotation {
    /// After 4,096 queries, or a week.
    fn default() -> Self {
        Self { queries: 4096, age: Duration::from_secs(7 * 24 * 3600) }
    }
}

/// A client's keys, and how far they are used. A secret.
#[derive(Clone)]
pub struct ClientKeys {
    params: [u8; 32],
    digest: [u8; 32],
    made: u64,
    used: u64,
    registered: bool,
    opened: SecretKeys,
    secret: Zeroizing<Vec<u8>>,
}

impl ClientKeys {
    /// What a server finds them by: BLAKE3 of the public keys.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Queries that were made under them, those that they were granted for included.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether the server answered that it has them.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.registered
    }

    /// The server answered that it has them.
    pub fn registered(&mut self) {
        self.registered = true;
    }

    /// Whether they are of these parameters.
    pub(crate) fn serves(&self, params: &[u8; 32]) -> bool {
        self.params == *params
    }

    pub(crate) fn opened(&self) -> &SecretKeys {
        &self.opened
    }
}

/// Keys that a request needs.
#[derive(Clone, Debug)]
pub struct KeyNeed {
    table: String,
    kind: PartKind,
    params: Params,
    digest: [u8; 32],
    queries: u64,
    unknown: Option<[u8; 32]>,
}

/// What is under which keys now.
pub struct Grant {
    /// The keys, the queries that they were granted for counted: what a cache keeps from now on.
    pub keys: ClientKeys,
    /// The public keys, where these were made just now: an entry of the cache is written, and what it held is wiped.
    pub made: Option<Bytes>,
    /// Whether the server has to be asked to keep them, by [`KeyNeed::request`], before anything is asked under them.
    pub register: bool,
}

impl KeyNeed {
    pub(crate) fn new(
        table: &str,
        kind: PartKind,
        params: Params,
        digest: [u8; 32],
        queries: usize,
        unknown: Option<[u8; 32]>,
    ) -> Self {
        Self { table: table.to_owned(), kind, params, digest, queries: queries as u64, unknown }
    }

    /// The part that is asked under them.
    #[must_use]
    pub fn kind(&self) -> PartKind {
        self.kind
    }

    /// What stands for their parameters: keys of the same serve all parts that need such.
    #[must_use]
    pub fn params_digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Queries of the request.
    #[must_use]
    pub fn queries(&self) -> u64 {
        self.queries
    }

    /// Where a cache keeps them, if they are registered with this server: an address such as `host:port`.
    #[must_use]
    pub fn cached(&self, server: &str) -> KeyEntry {
        KeyEntry::new(server, &self.table, self.params, self.digest)
    }

    /// Which keys the request is under: those that `kept` has, or others where there are none, or where these are due to be
    /// replaced. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn grant(&self, kept: Option<ClientKeys>, rotation: &Rotation, now: u64) -> Result<Grant, Error> {
        let stays = |keys: &ClientKeys| {
            let age = now.saturating_sub(keys.made);
            let used = keys.used.saturating_add(self.queries);
            // Those that were never used are for any number of queries: one request may have more than the rotation allows.
            keys.params == self.digest
                && age < rotation.age.as_secs().max(1)
                && (keys.used == 0 || used <= rotation.queries)
        };
        if let Some(mut keys) = kept.filter(stays) {
            keys.used += self.queries;
            keys.registered &= self.unknown != Some(keys.digest);
            return Ok(Grant { register: !keys.registered, keys, made: None });
        }
        let KeySet { secret, public } = self.params.make_keys()?;
        let keys = ClientKeys {
            params: self.digest,
            digest: *blake3::hash(&public).as_bytes(),
            made: now,
            used: self.queries,
            registered: false,
            opened: self.params.open_secret(&secret)?,
            secret,
        };
        Ok(Grant { keys, made: Some(public.into()), register: true })
    }

    /// The message that registers public keys.
    #[must_use]
    pub fn request(&self, public: Bytes) -> proto::RegisterKeysRequest {
        proto::RegisterKeysRequest {
            table: self.table.clone(),
            part: self.kind.to_proto().into(),
            keys_params: Bytes::copy_from_slice(&self.digest),
            keys: public,
        }
    }

    /// The same, encoded: the body of `POST /v1/keys`.
    #[must_use]
    pub fn encode(&self, public: Bytes) -> Vec<u8> {
        prost::Message::encode_to_vec(&self.request(public))
    }
}

/// The place of one table's keys in a cache.
#[derive(Clone, Debug)]
pub struct KeyEntry {
    name: String,
    params: Params,
    digest: [u8; 32],
}

impl KeyEntry {
    fn new(server: &str, table: &str, params: Params, digest: [u8; 32]) -> Self {
        let server: String = blake3::hash(server.as_bytes()).to_hex()[..8].to_owned();
        let of: String = digest[..8].iter().map(|b| format!("{b:02x}")).collect();
        // A long name is cut; the hash tells tables apart all the same. Names are ASCII.
        let hash = blake3::hash(table.as_bytes()).to_hex();
        let table = &table[..table.len().min(100)];
        Self { name: format!("{table}-{}-{server}-{of}", &hash[..8]), params, digest }
    }

    /// Its name, without an ending: letters, digits, `_`, `.` and `-`, fit for a file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether an entry may have this name, without an ending. Nobody else's file has one by chance: 32 digits of hashes.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let server = before(name, |params| is_hex(params, 16));
        let hash = server.and_then(|rest| before(rest, |server| is_hex(server, 8)));
        let table = hash.and_then(|rest| before(rest, |hash| is_hex(hash, 8)));
        table.is_some_and(|table| check_table_name(table).is_ok())
    }

    /// Bytes of a header and a secret: what [`KeyEntry::read`] takes.
    #[must_use]
    pub fn start_bytes(&self) -> usize {
        KEY_HEADER_BYTES + self.params.secret_bytes()
    }

    /// Bytes of a whole entry.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.start_bytes() + self.params.registered_bytes()
    }

    /// The keys of an entry of `bytes` bytes that starts so. Where `known` are the same keys, their secret is not read again.
    ///
    /// # Errors
    /// What is wrong with it, for a log; others are to be made in its place.
    pub fn read(&self, bytes: u64, start: &[u8], known: Option<&ClientKeys>) -> Result<ClientKeys, String> {
        if bytes != self.bytes() as u64 || start.len() != self.start_bytes() {
            return Err(format!("it has {bytes} B where keys of this table make {}", self.bytes()));
        }
        let (header, secret) = start.split_at(KEY_HEADER_BYTES);
        let array = |at: usize| <[u8; 32]>::try_from(&header[at..at + 32]).expect("it lies within");
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("it lies within"));
        let fixed = self.header(&array(48), number(80), 0, false, secret);
        if fixed[..16] != header[..16] {
            return Err("its header is another file's".into());
        }
        if array(16) != self.digest {
            return Err("its keys are of other parameters".into());
        }
        if fixed[..136] != header[..136] || number(144) > 1 {
            return Err("its bytes are not what its digest says".into());
        }
        let opened = match known.filter(|known| known.digest == array(48) && known.params == self.digest) {
            Some(known) => known.opened.clone(),
            None => self.params.open_secret(secret).map_err(|error| error.to_string())?,
        };
        Ok(ClientKeys {
            params: self.digest,
            digest: array(48),
            made: number(80),
            used: number(136),
            registered: number(144) == 1,
            opened,
            secret: Zeroizing::new(secret.to_vec()),
        })
    }

    /// Header and secret of an entry; the public keys follow.
    #[must_use]
    pub fn start(&self, keys: &ClientKeys) -> Zeroizing<Vec<u8>> {
        let header = self.header(&keys.digest, keys.made, keys.used, keys.registered, &keys.secret);
        let mut start = Zeroizing::new(Vec::with_capacity(self.start_bytes()));
        start.extend_from_slice(&header);
        start.extend_from_slice(&keys.secret);
        start
    }

    /// Says whether these are the public keys of an entry, before they are registered again.
    #[must_use]
    pub fn is_public(&self, keys: &ClientKeys, public: &[u8]) -> bool {
        *blake3::hash(public).as_bytes() == keys.digest
    }

    fn header(
        &self,
        digest: &[u8; 32],
        made: u64,
        used: u64,
        registered: bool,
        secret: &[u8],
    ) -> [u8; KEY_HEADER_BYTES] {
        let mut header = [0; KEY_HEADER_BYTES];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &(KEY_HEADER_BYTES as u32).to_le_bytes());
        put(16, &self.digest);
        put(48, digest);
        put(80, &made.to_le_bytes());
        put(88, &(self.params.secret_bytes() as u64).to_le_bytes());
        put(96, &(self.params.registered_bytes() as u64).to_le_bytes());
        put(136, &used.to_le_bytes());
        put(144, &u64::from(registered).to_le_bytes());
        let mut hasher = blake3::Hasher::new_derive_key("blindcore client keys v1");
        hasher.update(&header[..COVERED]).update(secret);
        header[COVERED..COVERED + 32].copy_from_slice(hasher.finalize().as_bytes());
        header
    }
}
