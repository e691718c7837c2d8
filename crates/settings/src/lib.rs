//! `blindcore.toml`: defaults below flags and environment.

mod found;

use std::io;
use std::path::{Path, PathBuf};

use blindcore_files::small::{self, SmallFileError};
use serde::Deserialize;

pub use found::Asked;

/// The settings file. Unknown keys are refused, so that a misspelt one is not silently ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// As `--device`.
    pub device: Option<String>,
    /// As `--threads`.
    pub threads: Option<usize>,
    /// As `--server`.
    pub server: Option<String>,
    /// As `--ca`: see [`Config::asked`].
    #[serde(deserialize_with = "filled")]
    ca: Option<PathBuf>,
    /// As `--token-file`: see [`Config::asked`].
    #[serde(deserialize_with = "filled")]
    token_file: Option<PathBuf>,
    /// As `--trust`.
    pub trust: Option<String>,
    /// As `--pin`.
    pub pin: Option<String>,
    /// As `--plain-text`, where something serves; see [`Config::asked`] for where something is asked.
    pub plain_text: bool,
    /// As `--log-json`.
    pub log_json: bool,
    /// As `--timeout`.
    pub timeout: Option<u64>,
    /// As `--cache`.
    #[serde(deserialize_with = "filled")]
    pub cache: Option<PathBuf>,
    /// As `--listen`: see [`Config::listen`].
    listen: Option<String>,
    /// As `--tls-cert`.
    #[serde(deserialize_with = "filled")]
    pub tls_cert: Option<PathBuf>,
    /// As `--tls-key`.
    #[serde(deserialize_with = "filled")]
    pub tls_key: Option<PathBuf>,
    /// As `--tokens`.
    #[serde(deserialize_with = "filled")]
    pub tokens: Option<PathBuf>,
    /// As `--memory`.
    pub memory: Option<String>,
    /// As `--metrics`: see [`Config::metrics`].
    metrics: Option<String>,
    /// What clients of `serve` may take.
    pub limits: Limits,
    /// As `--gather`.
    pub gather: Option<usize>,
    /// As `--keys-dir`: see [`Config::keys_dir`].
    #[serde(deserialize_with = "filled")]
    keys_dir: Option<PathBuf>,
    /// As `--keys-expire`.
    pub keys_expire: Option<String>,
    /// As `--rotate-after`.
    pub rotate_after: Option<String>,
    /// The file, if there is one.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// Whether the person named it. One that merely lies in the folder may be anybody's.
    #[serde(skip)]
    pub named: bool,
    /// What of such a file is not its to say.
    #[serde(skip)]
    aside: found::Aside,
}

/// What clients may take of a server; what is left out is as by default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at a time.
    pub connections: Option<usize>,
    /// Connections from one address.
    pub connections_per_client: Option<usize>,
    /// Requests at a time on one connection.
    pub streams_per_connection: Option<u32>,
    /// Queries that wait for one part of a table.
    pub waiting_queries: Option<usize>,
    /// Queries of one client that wait.
    pub waiting_per_client: Option<usize>,
    /// Queries in a request.
    pub queries_per_request: Option<usize>,
    /// Queries of one client in a minute.
    pub queries_per_minute: Option<u64>,
    /// Mebibytes of hints for one client in a minute.
    pub hint_mib_per_minute: Option<usize>,
    /// Mebibytes of a request.
    pub request_mib: Option<usize>,
    /// Mebibytes of all requests and answers.
    pub request_memory_mib: Option<usize>,
    /// Mebibytes of one client's requests and answers.
    pub memory_mib_per_client: Option<usize>,
    /// Seconds for a handshake, and for the head of a request.
    pub header_seconds: Option<u64>,
    /// Seconds for a request.
    pub request_seconds: Option<u64>,
    /// Seconds that a connection may stand still.
    pub idle_seconds: Option<u64>,
    /// Seconds that `/readyz` says no before connections are refused.
    pub drain_seconds: Option<u64>,
    /// Seconds for requests to finish at the end.
    pub grace_seconds: Option<u64>,
    /// Mebibytes of registered keys.
    pub keys_mib: Option<u64>,
    /// Sets of registered keys.
    pub keys_count: Option<usize>,
    /// Mebibytes of one client's registered keys.
    pub keys_mib_per_client: Option<u64>,
    /// Sets of one client's registered keys.
    pub keys_count_per_client: Option<usize>,
    /// Mebibytes of memory for registered keys that are ready for use.
    pub keys_memory_mib: Option<usize>,
    /// Registrations of keys of one client in a minute.
    pub registrations_per_minute: Option<u64>,
}

/// Read where no file is named.
const DEFAULT: &str = "blindcore.toml";
/// No settings file is longer.
const MAX_BYTES: u64 = 1 << 20;

/// Why settings are not taken. Each is one line that names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The system refuses.
    #[error("settings file {} can't be read: {error}; check --config", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// It is a folder, a pipe or a device.
    #[error("settings file {} is not an ordinary file; check --config", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// It is too long, or not UTF-8.
    #[error("settings file")]
    Text(#[from] SmallFileError),
    /// A line says what no setting is.
    #[error("settings file {}, line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// It merely lies in the folder, and the person's token would go to its server.
    #[error(
        "the server is named by {file} alone, which lies in this folder, and a token goes to a server that you name: say --server, \
         or --config {file} if that is yours", file = path.display()
    )]
    TokenAway {
        /// The file.
        path: PathBuf,
    },
    /// It merely lies in the folder, and would send what lies elsewhere.
    #[error(
        "token_file of {file} is {}, outside this folder, and a file that lies in it sends nothing else: say --token-file and \
         --server, or --config {file} if that is yours", token.display(), file = path.display()
    )]
    TokenOutside {
        /// The file.
        path: PathBuf,
        /// The token's.
        token: PathBuf,
    },
    /// It merely lies in the folder, and would write elsewhere.
    #[error(
        "keys_dir of {file} is {}, outside this folder, and a file that lies in it keeps keys nowhere else: say --keys-dir, or \
         --config {file} if that is yours", keys.display(), file = path.display()
    )]
    KeysOutside {
        /// The file.
        path: PathBuf,
        /// The folder of keys.
        keys: PathBuf,
    },
    /// It merely lies in the folder, and a server that is open to others would have its certificate.
    #[error(
        "tls_cert of {file} is not shown beyond this machine, because that file merely lies in this folder, and whoever left it has \
         the key: say --tls-cert and --tls-key, or --config {file} if it is yours", file = path.display()
    )]
    Certificate {
        /// The file.
        path: PathBuf,
    },
    /// It merely lies in the folder, and would open a port to others.
    #[error(
        "{what} of {file} is {address:?}, and a file that lies in this folder opens ports to this machine alone, such as \
         127.0.0.1:7700: say --{what}, or --config {file} if that is yours", file = path.display()
    )]
    Open {
        /// The setting.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What it says.
        address: String,
    },
}

impl Config {
    /// Reads the named file, or `blindcore.toml` of this folder if it is there.
    ///
    /// # Errors
    /// The named file is not there, or what is there can't be read or says what no setting is.
    pub fn load(named: Option<&Path>) -> Result<Self, SettingsError> {
        let path = named.unwrap_or(Path::new(DEFAULT));
        let io = |error| SettingsError::Io { path: path.into(), error };
        match std::fs::metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && named.is_none() => return Ok(Self::default()),
            Err(e) => return Err(io(e)),
            Ok(m) if !m.is_file() => return Err(SettingsError::NoFile { path: path.into() }),
            Ok(_) => {}
        }
        let text = small::read_text(path, MAX_BYTES)?;
        let read = toml::from_str(&text).map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            let place = e.span().and_then(|span| text.get(span)).map(str::trim);
            let why = match (e.message(), place) {
                ("duplicate key", Some(name)) => format!("{name} is given twice; leave one of the lines out"),
                (message, _) => in_words(message),
            };
            SettingsError::Line { path: path.into(), line, why }
        })?;
        let mut config =
            Self { file: Some(path.canonicalize().map_err(io)?), named: named.is_some(), ..read };
        if !config.named {
            config.set_aside();
        }
        Ok(config)
    }

    /// The file, if nobody named it.
    #[must_use]
    pub fn found(&self) -> Option<&Path> {
        self.file.as_deref().filter(|_| !self.named)
    }
}

/// A path, which names something.
fn filled<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(reader)?;
    let named = !path.as_os_str().is_empty();
    named
        .then_some(Some(path))
        .ok_or_else(|| serde::de::Error::custom("it is empty; name a path, or leave the setting out"))
}

/// A refusal of the reader's, whose expectations are named as types are.
fn in_words(message: &str) -> String {
    let words = [
        (" as i128", ""),
        (" as u128", ""),
        ("expected usize", "expected a whole number from 0 to 18446744073709551615"),
        ("expected u64", "expected a whole number from 0 to 18446744073709551615"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected struct Limits", "expected the section [limits]"),
        ("expected path string", "expected text in quotes"),
        ("expected a string", "expected text in quotes"),
        ("expected a boolean", "expected true or false"),
        ("unknown field", "unknown setting"),
    ];
    let text = words.iter().fold(message.to_owned(), |text, (type_, word)| text.replace(type_, word));
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_by_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.toml");
        std::fs::write(&path, "device = \"cpu\"\n\nlisen = \"x\"\n").unwrap();
        let error = Config::load(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("lisen"), "{error}");
        for text in ["threads = 1\nthreads = 2\n", "[limits]\nthreads = 1\n \"threads\" = 2\n"] {
            std::fs::write(&path, text).unwrap();
            let error = Config::load(Some(&path)).unwrap_err().to_string();
            assert!(error.contains("threads") && error.contains("is given twice; leave"), "{error}");
        }
        std::fs::write(&path, "gather = 4\nthreads = 2").unwrap();
        let config = Config::load(Some(&path)).unwrap();
        assert_eq!((config.gather, config.threads), (Some(4), Some(2)));
        assert!(config.named && config.found().is_none() && config.file.is_some());
        for text in [
            "threads = -1",
            "timeout = 99999999999999999999",
            "timeout = \"x\"",
            "limits = 3",
            "ca = 7",
            "plain_text = 1",
            "[limits]\nstreams_per_connection = 1e3",
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Config::load(Some(&path)).unwrap_err().to_string();
            // A folder's random name may hold any of these.
            let error = error.replace(&path.display().to_string(), "FILE");
            let types = ["usize", "u64", "u32", "i128", "struct", "path string"];
            assert!(error.contains("expected") && !types.iter().any(|t| error.contains(t)), "{error}");
        }
        let file = path.clone();
        for path in ["ca", "token_file", "cache", "tls_cert", "tls_key", "tokens", "keys_dir"] {
            std::fs::write(&file, format!("threads = 1\n{path} = \"\"\n")).unwrap();
            let error = Config::load(Some(&file)).unwrap_err().to_string();
            assert!(error.contains("line 2: it is empty; name a path"), "{path}: {error}");
        }
        assert!(Config::load(Some(&dir.path().join("none"))).is_err());
    }
}
