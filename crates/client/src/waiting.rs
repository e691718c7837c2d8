//! What passes: a server that is busy, drains or is gone for a while.

use std::sync::PoisonError;
use std::time::Duration;

use blindcore_protocol::Error as LookupError;
use blindcore_units::SharedProgress;
use blindcore_wire::Reason;
use tokio::time::{Instant, sleep};

use crate::{Error, Options};

/// The first wait for a server that doesn't say how long; each one after it is twice as long, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

impl Error {
    /// Whether the same may succeed later, as the server knows. Nothing that an answer decoded to is of this kind.
    #[must_use]
    pub fn passes(&self) -> bool {
        match self {
            Error::Network { .. } => true,
            Error::Lookup(LookupError::Refused { reason: Some(reason), .. }) => {
                matches!(reason, Reason::Busy | Reason::TooMany | Reason::TimedOut | Reason::Draining)
            }
            Error::Lookup(LookupError::StaleEpoch { .. }) => true,
            _ => false,
        }
    }
}

/// One thing that is tried until it succeeds or [`Options::patience`] ends.
pub(crate) struct Waiting<'a> {
    until: Instant,
    next: Duration,
    progress: Option<&'a SharedProgress>,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(options: &Options, progress: Option<&'a SharedProgress>) -> Self {
        Self { until: Instant::now() + options.patience, next: FIRST, progress }
    }

    /// Waits before the next try, as long as the server said if it did.
    ///
    /// # Errors
    /// The error itself: it does not pass, or not before patience ends.
    pub(crate) async fn after(&mut self, error: Error) -> Result<(), Error> {
        let told = match &error {
            Error::Lookup(LookupError::Refused { retry_after, .. }) => *retry_after,
            _ => None,
        };
        let wait = told.unwrap_or(self.next);
        if !error.passes() || Instant::now() + wait >= self.until {
            return Err(error);
        }
        if let Some(progress) = self.progress {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.note(&format!("{error}; trying again in {:.1} s", wait.as_secs_f64()));
        }
        self.next = (2 * self.next).min(LONGEST);
        sleep(wait).await;
        Ok(())
    }
}
