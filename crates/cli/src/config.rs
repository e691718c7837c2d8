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
    /// As `--gather`.
    pub(crate) gather: Option<usize>,
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
                anyhow::bail!("settings file {} is no ordinary file; check --config", path.display())
            }
            Ok(m) => m.len(),
        };
        anyhow::ensure!(
            len <= MAX_BYTES,
            "settings file {} has {len} bytes, over the limit of {MAX_BYTES}",
            path.display()
        );
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("settings file {} can't be read", path.display()))?;
        toml::from_str(&text).map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            anyhow::anyhow!("settings file {}, line {line}: {}", path.display(), e.message())
        })
    }
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
        assert!(Config::load(Some(&dir.path().join("none"))).is_err());
    }
}
