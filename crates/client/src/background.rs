//! Work beside the connections.

use crate::Error;
use crate::error::chain;

/// Runs work that computes or waits for a disk where it holds nobody up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(Error::Network { what: "a lookup", why: chain(&error) }),
    }
}
