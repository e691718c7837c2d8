//! Memory that requests may take, and bodies that count what passes through them.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use axum::BoxError;
use blindcore_wire::Reason;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::activity::Owed;
use crate::clients::Client;
use crate::refusal::Refusal;

/// Bytes of requests and answers that may be in memory at a time.
pub(crate) struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    /// Bytes that are in use, and how many may be.
    pub(crate) fn used(&self) -> (usize, usize) {
        (self.used.load(Ordering::Relaxed), self.limit)
    }
}

/// What one request holds of a [`MemoryBudget`], given back on drop: once its answer has left.
pub(crate) struct MemoryPermit {
    budget: Arc<MemoryBudget>,
    bytes: AtomicUsize,
    /// Whose it is, once that is known.
    client: OnceLock<Arc<Client>>,
}

impl MemoryPermit {
    pub(crate) fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self { budget, bytes: AtomicUsize::new(0), client: OnceLock::new() })
    }

    /// Counts what is taken from now on against this client's share, too.
    pub(crate) fn belongs_to(&self, client: &Arc<Client>) {
        debug_assert_eq!(
            self.bytes.load(Ordering::Relaxed),
            0,
            "nothing is taken before it is known for whom"
        );
        let _ = self.client.set(client.clone());
    }

    /// Takes more, at once or not at all.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Refusal> {
        self.take_within(bytes, 1, 1)
    }

    /// Takes more for a hint: of the budget, half is never given to hints, which clients may leave unread, and of a
    /// client's share three quarters.
    pub(crate) fn take_for_hint(&self, bytes: usize) -> Result<(), Refusal> {
        self.take_within(bytes, 2, 4)
    }

    /// Takes more within a part of the budget, and of the client's share.
    fn take_within(&self, bytes: usize, part: usize, of_client: usize) -> Result<(), Refusal> {
        if let Some(client) = self.client.get() {
            client.take_memory(bytes, of_client)?;
        }
        self.try_take_within(bytes, self.budget.limit / part).map_err(|why| {
            if let Some(client) = self.client.get() {
                client.give_memory_back(bytes);
            }
            Refusal::new(Reason::Busy, why)
        })
    }

    /// Gives back all but this much: what is left of a request is its answer.
    pub(crate) fn keep(&self, bytes: usize) {
        let held = self.bytes.fetch_min(bytes, Ordering::Relaxed);
        self.give_back(held.saturating_sub(bytes));
    }

    fn give_back(&self, bytes: usize) {
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(client) = self.client.get() {
            client.give_memory_back(bytes);
        }
    }

    fn try_take_within(&self, bytes: usize, limit: usize) -> Result<(), String> {
        let taken = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= limit)
        });
        match taken {
            Ok(_) => {
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(used) => Err(format!(
                "this request needs {bytes} B more; of the {limit} B that this server spends on requests, {used} B are in \
                 use; ask again later"
            )),
        }
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.give_back(self.bytes.load(Ordering::Relaxed));
    }
}

/// A body that holds its request's memory, and notes when a piece passes. A piece of a request is paid for
/// before anybody keeps it.
pub(crate) struct Metered<B> {
    inner: B,
    held: Arc<MemoryPermit>,
    owed: Arc<Owed>,
    pays: bool,
}

impl<B> Metered<B> {
    /// A request's body.
    pub(crate) fn request(inner: B, held: Arc<MemoryPermit>, owed: Arc<Owed>) -> Self
    where
        B: Body,
    {
        if inner.is_end_stream() {
            owed.due();
        }
        Self { inner, held, owed, pays: true }
    }

    /// An answer's body, whose memory was taken when the request was let in.
    pub(crate) fn answer(inner: B, held: Arc<MemoryPermit>, owed: Arc<Owed>) -> Self {
        Self { inner, held, owed, pays: false }
    }
}

impl<B> Body for Metered<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        self.owed.activity.touch();
        // Who knows how long a body is does not ask for more.
        if frame.is_none() || self.inner.is_end_stream() {
            self.owed.due();
        }
        Poll::Ready(match frame {
            None => None,
            Some(Err(error)) => Some(Err(error.into())),
            Some(Ok(frame)) => match frame.data_ref().filter(|_| self.pays) {
                Some(data) => Some(self.held.take(data.len()).map(|()| frame).map_err(|r| r.status().into())),
                None => Some(Ok(frame)),
            },
        })
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
