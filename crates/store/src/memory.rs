//! How much memory there is to be had.

use std::path::Path;

/// Bytes of memory that this process can have, and what bounds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// What this machine could give without swapping.
    Free(u64),
    /// What a control group that this process is in may have.
    Group(u64),
}

impl Limit {
    /// The bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Limit::Free(bytes) | Limit::Group(bytes) => bytes,
        }
    }
}

/// The least of what is free and of the limits of this process's control groups; `None` where the system doesn't tell.
#[must_use]
pub fn limit() -> Option<Limit> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let free = available(&read("/proc/meminfo")).map(Limit::Free);
    let group = group_limit(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup")).map(Limit::Group);
    free.into_iter().chain(group).min_by_key(|limit| limit.bytes())
}

/// Bytes of memory that this process has for itself, not counting what is kept of files; 0 where the system doesn't tell.
#[must_use]
pub fn held() -> u64 {
    resident(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Memory of a process for itself, from the text of its `/proc/PID/status`.
fn resident(status: &str) -> u64 {
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}

/// Memory that could be taken without swapping, from the text of `/proc/meminfo`.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|l| l.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// The least limit on memory of the control groups that a process is in, by the text of its `/proc/PID/cgroup`, of
/// either version. What is above a container can't be seen from in it: its own group is then the root.
fn group_limit(mount: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next().unwrap_or(""), fields.next().unwrap_or("/"));
        let (root, file) = match controllers {
            "" => (mount.to_owned(), "memory.max"),
            v1 if v1.split(',').any(|c| c == "memory") => (mount.join("memory"), "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        let group = Path::new(group.trim_start_matches('/'));
        let read = |at: &Path| std::fs::read_to_string(root.join(at).join(file)).ok();
        // Without a limit, version 2 says "max", which is not a number.
        group.ancestors().filter_map(read).filter_map(|text| text.trim().parse().ok()).collect::<Vec<u64>>()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let dir = tempfile::tempdir().unwrap();
        let write = |at: &str, text: &str| {
            let path = dir.path().join(at);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let limit = |groups: &str| group_limit(dir.path(), groups);
        assert_eq!(limit("0::/a/b\n"), None);
        assert_eq!(limit(""), None);
        // Version 2: a group's own limit, and those of the groups that it is in.
        write("a/b/memory.max", "max\n");
        write("a/memory.max", "2000\n");
        assert_eq!(limit("0::/a/b\n"), Some(2000));
        write("a/b/memory.max", "1000\n");
        assert_eq!(limit("0::/a/b\n"), Some(1000));
        // In a container the path is the host's, and only the root is there.
        write("memory.max", "3000\n");
        assert_eq!(limit("0::/docker/c0ffee\n"), Some(3000));
        // Version 1, and both at once.
        write("memory/c/memory.limit_in_bytes", "500\n");
        assert_eq!(limit("5:cpu,memory:/c\n1:name=systemd:/c\n0::/c\n"), Some(500));
        assert_eq!(limit("4:cpuacct:/c\n"), None);
    }

    #[test]
    fn free_memory_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   12 kB\n"), Some(12 << 10));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
        assert_eq!(resident("VmRSS: 9 kB\nRssAnon:\t 7 kB\n"), 7 << 10);
        assert_eq!(resident(""), 0);
    }
}
