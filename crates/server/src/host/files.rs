//! The files of certificates and tokens: read at the start, and again on request.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blindcore_files::secret;
use blindcore_files::small::read_text;

use crate::{Config, Error, HostError, Tokens};

/// That a file can be read whenever it is asked for: a pipe has nothing more to say, or is waited for.
fn check_ordinary(path: &Path) -> Result<(), HostError> {
    match std::fs::metadata(path) {
        Ok(there) if !there.is_file() => Err(HostError::NotOrdinary { path: path.to_owned() }),
        // What can't be read says so when it is.
        _ => Ok(()),
    }
}

/// The most bytes in a file of tokens.
const MAX_TOKENS_BYTES: u64 = 4 << 20;

/// Certificates with their key, and tokens.
#[derive(Clone, Debug, Default)]
pub struct AccessFiles {
    /// The chain and the private key, in PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Lines of tokens, as [`Tokens::parse`] reads them.
    pub tokens: Option<PathBuf>,
}

impl AccessFiles {
    /// A certificate chain with its key or neither, and tokens or none.
    ///
    /// # Errors
    /// One of a certificate and its key is given without the other.
    pub fn new(chain: Option<PathBuf>, key: Option<PathBuf>, tokens: Option<PathBuf>) -> Result<Self, Error> {
        let alone =
            |one: &str, other: &str| Err(Error::Setting(format!("--tls-{one} is of no use without {other}")));
        let tls = match (chain, key) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            (Some(_), None) => return alone("cert", "its key; add --tls-key FILE"),
            (None, Some(_)) => return alone("key", "its certificate; add --tls-cert FILE"),
        };
        Ok(Self { tls, tokens })
    }

    /// Reads those that there are into the settings of a server that starts.
    ///
    /// # Errors
    /// A file can't be read or used, or there are no tokens in theirs.
    pub fn load(&self, config: &mut Config) -> Result<(), HostError> {
        if let Some(tls) = self.read_tls()? {
            config.tls = Some(tls);
        }
        if let Some(tokens) = self.read_tokens()? {
            // While it runs an empty file revokes all; at the start it's a mistake.
            if let (true, Some(path)) = (tokens.is_empty(), &self.tokens) {
                return Err(HostError::NoTokens { path: path.clone() });
            }
            config.tokens = Some(tokens);
        }
        Ok(())
    }

    pub(super) fn read_tls(&self) -> Result<Option<Arc<rustls::ServerConfig>>, HostError> {
        let load = |(chain, key): &(PathBuf, PathBuf)| {
            [chain, key].into_iter().try_for_each(|path| check_ordinary(path))?;
            secret::exposed("private key", key).iter().for_each(|warning| tracing::warn!("{warning}"));
            let config = blindcore_tls::server(chain, key)?;
            blindcore_tls::refused_by_all(chain)?.iter().for_each(|warning| tracing::warn!("{warning}"));
            Ok(config)
        };
        self.tls.as_ref().map(load).transpose()
    }

    pub(super) fn read_tokens(&self) -> Result<Option<Arc<Tokens>>, HostError> {
        let Some(path) = &self.tokens else { return Ok(None) };
        check_ordinary(path)?;
        let text = read_text(path, MAX_TOKENS_BYTES)?;
        let tokens =
            Tokens::parse(&text).map_err(|source| HostError::Tokens { path: path.clone(), source })?;
        #[cfg(unix)]
        if std::fs::metadata(path).is_ok_and(|m| std::os::unix::fs::MetadataExt::mode(&m) & 0o022 != 0) {
            tracing::warn!("others may write {}, and so let themselves in: chmod 600 it", path.display());
        }
        Ok(Some(Arc::new(tokens)))
    }
}
