//! The files of certificates and tokens: read at the start, and again on request.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        let load = |(chain, key): &(PathBuf, PathBuf)| blindcore_tls::server(chain, key);
        Ok(self.tls.as_ref().map(load).transpose()?)
    }

    pub(super) fn read_tokens(&self) -> Result<Option<Arc<Tokens>>, HostError> {
        let Some(path) = &self.tokens else { return Ok(None) };
        let text = read_small(path, MAX_TOKENS_BYTES)?;
        let tokens =
            Tokens::parse(&text).map_err(|source| HostError::Tokens { path: path.clone(), source })?;
        #[cfg(unix)]
        if std::fs::metadata(path).is_ok_and(|m| std::os::unix::fs::MetadataExt::mode(&m) & 0o022 != 0) {
            tracing::warn!("others may write {}, and so let themselves in: chmod 600 it", path.display());
        }
        Ok(Some(Arc::new(tokens)))
    }
}

/// A text file of at most `limit` bytes.
fn read_small(path: &Path, limit: u64) -> Result<String, HostError> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(limit + 1).read_to_string(&mut text))
        .map_err(|source| HostError::Read { path: path.to_owned(), source })?;
    if text.len() as u64 > limit {
        return Err(HostError::TooLong { path: path.to_owned(), limit });
    }
    Ok(text)
}
