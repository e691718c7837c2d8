//! How many files a process may have open: a connection that comes where none is left is accepted by nobody, so that no rule of
//! shares can be heeded.

use crate::Config;

/// Files that are left for what isn't a connection, beside twice as many as are open at the start.
const SPARE: usize = 64;

/// The same settings, with no more connections than the system lets this process have, once it lets it have as many as it may.
pub(crate) fn fitted(config: &Config) -> Config {
    let Some(limit) = raised() else { return config.clone() };
    let open = std::fs::read_dir("/dev/fd").map_or(SPARE, Iterator::count);
    let most = limit.saturating_sub(SPARE + 2 * open).max(1);
    if most >= config.connections {
        return config.clone();
    }
    tracing::warn!(
        "{} connections at a time do not fit the {limit} files that this process may have open: it takes {most}; allow it more \
         files (ulimit -n), or fewer connections",
        config.connections
    );
    let share = config.connections_per_client.min((most / 2).max(1));
    Config { connections: most, connections_per_client: share, ..config.clone() }
}

/// The most files that may be open, where there is a limit; it is raised as far as anybody may raise it.
#[cfg(unix)]
fn raised() -> Option<usize> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let higher = Rlimit { current: maximum, maximum };
    let limit = if setrlimit(Resource::Nofile, higher).is_ok() { maximum } else { current };
    limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
fn raised() -> Option<usize> {
    None
}
