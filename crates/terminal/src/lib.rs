//! What people and programs see of the command: results on standard output; progress, notes and errors on standard error,
//! and errors on standard output too for programs that asked for JSON.

mod bar;
mod fault;

use anyhow::Context as _;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

pub use bar::Bar;
pub use fault::{Fault, help_of, usage};

/// Whether progress and notes are left out.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves progress and notes out from here on, or not. Warnings and errors are always said.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a JSON document.
///
/// # Errors
/// Standard output takes no more.
pub fn json(value: &serde_json::Value) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// Prints text as it is, with no bar beside it.
///
/// # Errors
/// Standard output takes no more.
pub fn print(text: &str) -> anyhow::Result<()> {
    write(text.as_bytes())
}

/// What the command has done for good.
static DONE: Mutex<Option<String>> = Mutex::new(None);

/// Keeps what the command has done for good, whatever becomes of what it prints: if standard output takes no more, that is
/// said with it.
pub fn done(what: String) {
    *DONE.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

/// [`done`]: a file is made.
pub fn made(path: &Path) {
    done(format!("{} is made", path.display()));
}

/// Writes data to standard output as it is, with no bar beside it.
///
/// # Errors
/// Standard output takes no more, or was closed when the program started. The error says what is [`done`].
pub fn write(data: &[u8]) -> anyhow::Result<()> {
    let written = bar::suspended(|| {
        if CLOSED.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("it is closed"));
        }
        let mut out = std::io::stdout().lock();
        out.write_all(data).and_then(|()| out.flush())
    })
    .context("standard output can't be written");
    match &*DONE.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(what) => written.with_context(|| what.clone()),
        None => written,
    }
}

/// Whether there was no standard output when the program started.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Rust's start opens `/dev/null` in place of a closed standard output, where results would be lost without a word.
/// So this looks before.
#[cfg(unix)]
#[ctor::ctor(unsafe)]
fn look_for_standard_output() {
    let missing = std::fs::symlink_metadata("/dev/fd/1").is_err() && std::path::Path::new("/dev/fd").is_dir();
    CLOSED.store(missing, Ordering::Relaxed);
}

/// Has a write past the system's limit of a file's size fail, as one to a full disk does, where a signal would end the process
/// without a word and with half of what it made left behind.
#[cfg(unix)]
pub fn outlive_file_limit() {
    // Nobody asks whether it came: the write says so.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// No such signal here.
#[cfg(not(unix))]
pub fn outlive_file_limit() {}

/// Prints a result for programs or for people.
///
/// # Errors
/// As for [`print()`].
pub fn result(
    as_json: bool,
    document: impl FnOnce() -> serde_json::Value,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    if as_json { json(&document()) } else { print(&text()) }
}

/// Says something that is good to know, unless it is to be quiet.
pub fn note(text: &str) {
    if !is_quiet() {
        warn(text);
    }
}

/// Says something that must be known.
pub fn warn(text: &str) {
    bar::suspended(|| {
        let _ = writeln!(std::io::stderr().lock(), "{}", blindcore_units::one_line(text));
    });
}

/// Says why a command failed, in one line; for a program that asked for JSON also as `{"error", "remedy", "code"}` on
/// standard output. `code` is a word that stays the same where messages change.
pub fn error(error: &anyhow::Error, code: &str, as_json: bool) {
    let fault = Fault::of(error);
    warn(&format!("blindcore: {fault}"));
    if as_json {
        let Fault { error, remedy } = fault;
        // Nobody is left to tell of a closed output.
        let _ = json(&serde_json::json!({"error": error, "remedy": remedy, "code": code}));
    }
}

/// Bytes for people.
#[must_use]
pub fn bytes(n: u64) -> String {
    blindcore_units::bytes(n)
}

/// A value for a person: text as it is, or quoted where it could be taken for something else or would not be seen as it is;
/// everything else as JSON has it. So `null` is nothing and `"null"` a text.
#[must_use]
pub fn printable(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) if text == "null" || text.starts_with(['{', '[']) => {
            blindcore_units::quoted(text)
        }
        serde_json::Value::String(text) => blindcore_units::shown(text),
        other => blindcore_units::harmless(&other.to_string()),
    }
}

/// Named values for a person, a line each: names aligned, and quoted where they would not be seen as they are.
#[must_use]
pub fn fields<'a>(values: impl Iterator<Item = (&'a str, serde_json::Value)>) -> String {
    let values: Vec<(String, String)> =
        values.map(|(name, value)| (blindcore_units::shown(name), printable(&value))).collect();
    let width = values.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    values.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

/// Bytes in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{fields, printable};

    #[test]
    fn names_are_shown_as_values_are() {
        let text = fields([("a\u{202e}b\u{2028}", json!(1)), ("c", json!("d"))].into_iter());
        assert_eq!(text, "  \"a\\u{202e}b\\u{2028}\"  1\n  c                     d\n");
    }

    #[test]
    fn no_two_values_look_alike() {
        let values = [
            (json!(null), "null"),
            (json!("null"), "\"null\""),
            (json!({"base64": "AAE="}), "{\"base64\":\"AAE=\"}"),
            (json!("{\"base64\":\"AAE=\"}"), "\"{\\\"base64\\\":\\\"AAE=\\\"}\""),
            (json!([1, "a\u{202e}"]), "[1,\"a\\u{202e}\"]"),
            (json!("a\u{202e}b\u{2028}"), "\"a\\u{202e}b\\u{2028}\""),
            (json!("\"a\""), "\"\\\"a\\\"\""),
            (json!("Ada, 1"), "Ada, 1"),
        ];
        for (value, want) in values {
            assert_eq!(printable(&value), want);
        }
    }
}
