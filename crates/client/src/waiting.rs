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
/// The longest wait that a server's word is taken for.
const MOST: u64 = 86_400;

/// How long a server says that asking again makes no sense, by its header `retry-after`: a day at most.
pub(crate) fn told(seconds: &str) -> Option<Duration> {
    let digits = !seconds.is_empty() && seconds.bytes().all(|b| b.is_ascii_digit());
    // More digits than a number has are a long time, too.
    digits.then(|| Duration::from_secs(seconds.parse().unwrap_or(MOST).min(MOST)))
}

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
    since: Instant,
    patience: Duration,
    next: Duration,
    progress: Option<&'a SharedProgress>,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(options: &Options, progress: Option<&'a SharedProgress>) -> Self {
        Self { since: Instant::now(), patience: options.patience, next: FIRST, progress }
    }

    /// Waits before the next try, as long as the server said if it did, but never less than without its word: a server
    /// that says "at once" is not asked thousands of times.
    ///
    /// # Errors
    /// The error itself: it does not pass, or not before patience ends.
    pub(crate) async fn after(&mut self, error: Error) -> Result<(), Error> {
        let Some(wait) = self.wait(&error, self.since.elapsed()) else { return Err(error) };
        if let Some(progress) = self.progress {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.note(&format!("{error}; trying again in {:.1} s", wait.as_secs_f64()));
        }
        sleep(wait).await;
        Ok(())
    }

    /// How long to wait for what comes after an error, this long after the first try; nothing where that doesn't pass, or not
    /// before patience ends.
    fn wait(&mut self, error: &Error, elapsed: Duration) -> Option<Duration> {
        let told = match error {
            Error::Lookup(LookupError::Refused { retry_after, .. }) => *retry_after,
            _ => None,
        };
        let wait = told.unwrap_or_default().max(self.next);
        let pass = error.passes() && elapsed.saturating_add(wait) < self.patience;
        self.next = (2 * self.next).min(LONGEST);
        pass.then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: &str) -> Error {
        let (reason, wait) = (Some(Reason::Busy), told(retry_after));
        LookupError::refused("a query", reason, wait, "busy", "t", 1).into()
    }

    #[test]
    fn a_server_s_word_is_a_time_that_can_be_waited() {
        for (word, seconds) in [("0", 0), ("7", 7), ("86401", MOST), ("9999999999999", MOST)] {
            assert_eq!(told(word), Some(Duration::from_secs(seconds)), "{word}");
        }
        for most in ["9223372036854775807", "18446744073709551615", "18446744073709551616", &"9".repeat(400)]
        {
            assert_eq!(told(most), Some(Duration::from_secs(MOST)), "{most}");
        }
        for none in ["", "-1", "+1", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT"] {
            assert_eq!(told(none), None, "{none}");
        }
    }

    #[test]
    fn no_word_of_a_server_ends_or_fills_the_wait() {
        let waiting = |patience| Waiting::new(&Options { patience, ..Options::default() }, None);
        // Longer than patience, and than any clock.
        let longest = busy("18446744073709551615");
        for patience in [Duration::ZERO, Duration::from_secs(600)] {
            assert_eq!(waiting(patience).wait(&longest, Duration::ZERO), None);
        }
        assert_eq!(waiting(Duration::MAX).wait(&longest, Duration::MAX), None);
        let day = Duration::from_secs(MOST);
        assert_eq!(waiting(Duration::MAX).wait(&longest, Duration::ZERO), Some(day));
        // At once: as rarely as a server is asked that says nothing.
        let (mut waiting, at_once) = (waiting(Duration::from_secs(600)), busy("0"));
        let (mut elapsed, mut tries) = (Duration::ZERO, 0);
        while let Some(wait) = waiting.wait(&at_once, elapsed) {
            (elapsed, tries) = (elapsed + wait, tries + 1);
        }
        assert!(elapsed > Duration::from_secs(590) && tries < 150, "{tries} tries in {elapsed:?}");
        assert_eq!(waiting.wait(&busy("60"), Duration::ZERO), Some(Duration::from_secs(60)));
    }
}
