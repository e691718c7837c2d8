//! What people and programs see: JSON and text on stdout, progress and errors on stderr.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_units::{Progress, Unit};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Prints a JSON document.
pub(crate) fn json(value: &serde_json::Value) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// Prints text as it is.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output can't be written")
}

/// Says something to people.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints an error in one line.
pub(crate) fn error(error: &anyhow::Error) {
    // Transparent wrappers repeat their source: say each thing once.
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    note(&format!("blindcore: {shown}"));
}

/// Bytes for people.
pub(crate) fn bytes(n: u64) -> String {
    blindcore_units::bytes(n)
}

/// A progress bar with rate and time left, shown once something takes longer than a moment.
pub(crate) struct Bar {
    bar: ProgressBar,
    label: String,
    sized: bool,
    started: Instant,
    stop: Option<Arc<AtomicBool>>,
}

impl Bar {
    /// A bar that shows itself when it must; on no terminal it prints nothing.
    pub(crate) fn new() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self {
            bar: ProgressBar::with_draw_target(None, target),
            label: String::new(),
            sized: false,
            started: Instant::now(),
            stop: None,
        }
    }

    /// The same, for work that stops when this is raised.
    pub(crate) fn until(mut self, stop: &Arc<AtomicBool>) -> Self {
        self.stop = Some(stop.clone());
        self
    }
}

impl Progress for Bar {
    fn at(&mut self, label: &str, done: u64, total: Option<u64>, unit: Unit) {
        let in_bytes = unit == Unit::Bytes;
        if self.label != label || self.sized != total.is_some() {
            (self.label, self.sized) = (label.into(), total.is_some());
            self.started = Instant::now();
            self.bar.reset();
            let (done, rate) = if in_bytes {
                ("{bytes}/{total_bytes}", "{bytes_per_sec}")
            } else {
                ("{human_pos}/{human_len}", "{per_sec}")
            };
            let template = match total {
                Some(_) => format!("{{msg:12}} [{{wide_bar}}] {done}  {rate}  {{eta}} left"),
                None if in_bytes => "{msg:12} {spinner} {bytes}  {bytes_per_sec}  {elapsed}".into(),
                None => "{msg:12} {spinner} {human_pos}  {per_sec}  {elapsed}".into(),
            };
            let style = ProgressStyle::with_template(&template).expect("a template written here");
            self.bar.set_style(style.progress_chars("=> "));
            self.bar.set_message(self.label.clone());
        }
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        if self.started.elapsed() > Duration::from_millis(300) {
            self.bar.set_position(done);
        }
    }

    fn note(&mut self, line: &str) {
        self.bar.suspend(|| note(line));
    }

    fn stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A value for a terminal: text as it is but for control characters, which could redraw the screen and are
/// escaped. `--json` is exact.
pub(crate) fn printable(value: &serde_json::Value) -> String {
    let text = match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.chars()
        .flat_map(|c| {
            let escaped: Box<dyn Iterator<Item = char>> =
                if c.is_control() { Box::new(c.escape_default()) } else { Box::new(std::iter::once(c)) };
            escaped
        })
        .collect()
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
