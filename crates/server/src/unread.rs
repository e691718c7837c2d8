//! Bodies that nobody wants. A connection that is closed while its client still sends is reset, and what was answered is lost on
//! the way: so the rest of a request that was refused is read for a moment, and thrown away.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long the next piece of such a body is waited for.
const PIECE: Duration = Duration::from_secs(2);
/// How long all of it is.
const WHOLE: Duration = Duration::from_secs(10);

/// A request's body whose rest is read when it is dropped.
pub(crate) struct ReadToItsEnd(Body);

impl ReadToItsEnd {
    pub(crate) fn new(body: Body) -> Self {
        Self(body)
    }
}

impl Drop for ReadToItsEnd {
    fn drop(&mut self) {
        if self.0.is_end_stream() {
            return;
        }
        let mut rest = std::mem::take(&mut self.0);
        // Without a runtime the connection is gone as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(timeout(WHOLE, async move {
                while let Ok(Some(Ok(_))) = timeout(PIECE, rest.frame()).await {}
            }));
        }
    }
}

impl http_body::Body for ReadToItsEnd {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
