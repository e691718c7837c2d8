//! What machine this is.

use serde_json::{Value, json};

/// Bytes of this machine's memory, where the system says.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|l| l.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// The processor's name, or its architecture where the system does not say.
#[must_use]
pub fn processor() -> String {
    blindcore_accel_cpu::processor()
}

/// The machine that a report was made on: `{processor, cores, memory_bytes, os, version}`.
#[must_use]
pub fn describe() -> Value {
    json!({
        "processor": processor(),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "memory_bytes": memory_bytes(),
        "os": std::env::consts::OS,
        "version": env!("CARGO_PKG_VERSION"),
    })
}
