//! How a client behaves.

use std::path::PathBuf;
use std::time::Duration;

use blindcore_protocol::{Rotation, Trust};

use crate::cache::CacheDir;
use crate::token::Token;

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where hints and registered keys are kept: by default in the user's cache, `~/.cache/blindcore`, a file for each content of a table's part.
    pub cache: CacheDir,
    /// A PEM file of authorities that may sign the server's certificate, beside Mozilla's list.
    pub ca: Option<PathBuf>,
    /// What identifies this client, if the server answers only to known ones. Never sent over plain text beyond this machine.
    pub token: Option<Token>,
    /// Asks servers beyond this machine over `http://` too, which everybody between can read and change.
    pub plain_text: bool,
    /// Which tables are taken from the server.
    pub trust: Trust,
    /// Takes an older epoch of a table that a trusted key signed than this client has seen, once its publisher went back.
    pub allow_rollback: bool,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a whole request may take, a hint's apart.
    pub request_timeout: Duration,
    /// How long the download of a hint may take, with its breaks. What has come by then is kept in a cache, and the next
    /// download goes on from there.
    pub hint_timeout: Duration,
    /// How long a download may bring less than 64 KiB before it counts as broken.
    pub idle_timeout: Duration,
    /// How long a server is waited for that is busy or gone, each time: what it refused is asked again in queries of their own.
    /// By default not at all. What an answer decodes to never has anything asked again.
    pub patience: Duration,
    /// When other keys are registered, where a table's queries are under such: whatever came of its lookups.
    pub rotate_after: Rotation,
    /// The largest hint that is fetched, in bytes. It is held in memory.
    pub hint_bytes: u64,
    /// The most queries in a request, whatever the server allows: they and their answers are held in memory.
    pub queries_per_request: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache: CacheDir::User,
            ca: None,
            token: None,
            plain_text: false,
            trust: Trust::Server,
            allow_rollback: false,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(120),
            hint_timeout: Duration::from_secs(3600),
            idle_timeout: Duration::from_secs(30),
            patience: Duration::ZERO,
            rotate_after: Rotation::default(),
            hint_bytes: 4 << 30,
            queries_per_request: 64,
        }
    }
}

/// When keys are replaced, as an option says it: queries, a time, or both, separated by a comma.
///
/// ```
/// let rotation = blindcore_client::rotation("--rotate-after", "4096,7d")?;
/// assert_eq!((rotation.queries, rotation.age.as_secs()), (4096, 7 * 86_400));
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// One line on what is wrong with it, which names the option.
pub fn rotation(option: &str, said: &str) -> Result<Rotation, String> {
    const MOST: u64 = 1 << 40;
    let never = Rotation { queries: MOST, age: Duration::from_secs(u64::MAX) };
    said.split(',').map(str::trim).try_fold(never, |rotation, when| {
        if when.ends_with(|c: char| "smhd".contains(c)) {
            let seconds = blindcore_units::option::seconds(option, when)?;
            Ok(Rotation { age: Duration::from_secs_f64(seconds), ..rotation })
        } else {
            let remedy = "say queries such as 4096, a time such as 7d, or both: 4096,7d";
            Ok(Rotation { queries: blindcore_units::option::whole(option, when, MOST, remedy)?, ..rotation })
        }
    })
}

/// Seconds that a request may take: 1 to 86400, a day.
pub const TIMEOUTS: std::ops::RangeInclusive<u64> = 1..=86_400;

/// Seconds of a timeout as a person gives them, within [`TIMEOUTS`].
///
/// # Errors
/// They are not a whole number in that range.
pub fn timeout_seconds(text: &str) -> Result<u64, String> {
    let seconds = text.parse().ok().filter(|seconds| TIMEOUTS.contains(seconds));
    seconds.ok_or_else(|| format!("{text:?} is not a whole number of seconds from 1 to 86400"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_is_queries_or_a_time_or_both() {
        let rotation = |said| rotation("--rotate-after", said);
        let week = Duration::from_secs(7 * 86_400);
        assert_eq!(rotation("4096,7d").unwrap(), Rotation { queries: 4096, age: week });
        assert_eq!(rotation("7d, 100").unwrap(), Rotation { queries: 100, age: week });
        assert_eq!(rotation("1e3").unwrap().queries, 1000);
        assert!(rotation("1e3").unwrap().age > 1000 * week);
        assert!(rotation("12h").unwrap().queries > 1 << 32);
        for bad in ["", "0", "-1", "x", "7w", "0s", "5,", "1.5"] {
            let error = rotation(bad).unwrap_err();
            assert!(error.contains("--rotate-after"), "{bad}: {error}");
        }
    }
}
