//! The files of certificates and tokens: read at the start, and again on request.

use std::path::PathBuf;
use std::sync::Arc;

use blindcore_files::secret;
use blindcore_files::small::read_text;

use crate::{HostError, Tokens};

/// The most bytes in a file of tokens.
const MAX_TOKENS_BYTES: u64 = 4 << 20;

/// Certificates with their key, and tokens.
#[derive(Clone, Default)]
pub(super) struct AccessFiles {
    /// The chain and the private key.
    pub(super) tls: Option<(PathBuf, PathBuf)>,
    pub(super) tokens: Option<PathBuf>,
}

impl AccessFiles {
    pub(super) fn read_tls(&self) -> Result<Option<Arc<rustls::ServerConfig>>, HostError> {
        let load = |(chain, key): &(PathBuf, PathBuf)| {
            secret::exposed("private key", key).iter().for_each(|warning| tracing::warn!("{warning}"));
            blindcore_tls::server(chain, key)
        };
        Ok(self.tls.as_ref().map(load).transpose()?)
    }

    pub(super) fn read_tokens(&self) -> Result<Option<Arc<Tokens>>, HostError> {
        let Some(path) = &self.tokens else { return Ok(None) };
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
