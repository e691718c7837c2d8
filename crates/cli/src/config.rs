//! `blindcore.toml`: defaults below flags and environment.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

/// The settings file. Unknown keys are refused, so that a misspelt one is not silently ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// As `--device`.
    pub(crate) device: Option<String>,
    /// As `--threads`.
    pub(crate) threads: Option<usize>,
    /// As `--server`.
    pub(crate) server: Option<String>,
    /// As `--ca`.
    pub(crate) ca: Option<PathBuf>,
    /// As `--token-file`.
    pub(crate) token_file: Option<PathBuf>,
    /// As `--trust`.
    pub(crate) trust: Option<String>,
    /// As `--pin`.
    pub(crate) pin: Option<String>,
    /// As `--plain-text`.
    pub(crate) plain_text: bool,
    /// As `--log-json`.
    pub(crate) log_json: bool,
    /// As `--timeout`.
    pub(crate) timeout: Option<u64>,
    /// As `--cache`.
    pub(crate) cache: Option<PathBuf>,
    /// As `--listen`.
    pub(crate) listen: Option<String>,
    /// As `--tls-cert`.
    pub(crate) tls_cert: Option<PathBuf>,
    /// As `--tls-key`.
    pub(crate) tls_key: Option<PathBuf>,
    /// As `--tokens`.
    pub(crate) tokens: Option<PathBuf>,
    /// As `--memory`.
    pub(crate) memory: Option<String>,
    /// As `--metrics`.
    pub(crate) metrics: Option<String>,
    /// What clients of `serve` may take.
    pub(crate) limits: Limits,
    /// As `--gather`.
    pub(crate) gather: Option<usize>,
    /// The file, if there is one.
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
    /// Whether the person named it. One that merely lies in the folder may be anybody's.
    #[serde(skip)]
    pub(crate) named: bool,
}

/// What clients may take of a server; what is left out is as by default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Connections at a time.
    pub(crate) connections: Option<usize>,
    /// Connections from one address.
    pub(crate) connections_per_client: Option<usize>,
    /// Requests at a time on one connection.
    pub(crate) streams_per_connection: Option<u32>,
    /// Queries that wait for one part of a table.
    pub(crate) waiting_queries: Option<usize>,
    /// Queries of one client that wait.
    pub(crate) waiting_per_client: Option<usize>,
    /// Queries in a request.
    pub(crate) queries_per_request: Option<usize>,
    /// Queries of one client in a minute.
    pub(crate) queries_per_minute: Option<u64>,
    /// Mebibytes of hints for one client in a minute.
    pub(crate) hint_mib_per_minute: Option<u64>,
    /// Mebibytes of a request.
    pub(crate) request_mib: Option<usize>,
    /// Mebibytes of all requests and answers.
    pub(crate) request_memory_mib: Option<usize>,
    /// Mebibytes of one client's requests and answers.
    pub(crate) memory_mib_per_client: Option<usize>,
    /// Seconds for a handshake, and for the head of a request.
    pub(crate) header_seconds: Option<u64>,
    /// Seconds for a request.
    pub(crate) request_seconds: Option<u64>,
    /// Seconds that a connection may stand still.
    pub(crate) idle_seconds: Option<u64>,
    /// Seconds that `/readyz` says no before connections are refused.
    pub(crate) drain_seconds: Option<u64>,
    /// Seconds for requests to finish at the end.
    pub(crate) grace_seconds: Option<u64>,
}

/// Read where no file is named.
const DEFAULT: &str = "blindcore.toml";
/// No settings file is longer.
const MAX_BYTES: u64 = 1 << 20;

impl Config {
    /// Reads the named file, or the default one if it is there.
    pub(crate) fn load(named: Option<&Path>) -> anyhow::Result<Self> {
        let path = named.unwrap_or(Path::new(DEFAULT));
        let len = match std::fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
                return Ok(Self::default());
            }
            Err(e) => anyhow::bail!("settings file {} can't be read: {e}; check --config", path.display()),
            Ok(m) if !m.is_file() => {
                anyhow::bail!("settings file {} is not an ordinary file; check --config", path.display())
            }
            Ok(m) => m.len(),
        };
        anyhow::ensure!(
            len <= MAX_BYTES,
            "settings file {} has {len} bytes, over the limit of {MAX_BYTES}",
            path.display()
        );
        let text = blindcore_files::small::read_text(path, MAX_BYTES)
            .with_context(|| format!("settings file {} can't be read", path.display()))?;
        let read = toml::from_str(&text).map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            anyhow::anyhow!("settings file {}, line {line}: {}", path.display(), in_words(e.message()))
        })?;
        Ok(Self { file: Some(path.canonicalize()?), named: named.is_some(), ..read })
    }

    /// The file, if nobody named it.
    pub(crate) fn found(&self) -> Option<&Path> {
        self.file.as_deref().filter(|_| !self.named)
    }
}

/// A refusal of the reader's, whose expectations are named as types are.
fn in_words(message: &str) -> String {
    let words = [
        ("expected usize", "expected a whole number from 0 on"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected struct Limits", "expected the section [limits]"),
        ("expected path string", "expected text in quotes"),
        ("expected a string", "expected text in quotes"),
        ("expected a boolean", "expected true or false"),
        ("unknown field", "unknown setting"),
        ("duplicate key", "given twice:"),
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
        std::fs::write(&path, "gather = 4\nthreads = 2").unwrap();
        let config = Config::load(Some(&path)).unwrap();
        assert_eq!((config.gather, config.threads), (Some(4), Some(2)));
        assert!(config.named && config.found().is_none() && config.file.is_some());
        for text in [
            "threads = -1",
            "timeout = \"x\"",
            "limits = 3",
            "ca = 7",
            "plain_text = 1",
            "[limits]\nstreams_per_connection = 1e3",
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Config::load(Some(&path)).unwrap_err().to_string();
            let types = ["usize", "u64", "u32", "struct", "path string"];
            assert!(error.contains("expected") && !types.iter().any(|t| error.contains(t)), "{error}");
        }
        assert!(Config::load(Some(&dir.path().join("none"))).is_err());
    }
}
