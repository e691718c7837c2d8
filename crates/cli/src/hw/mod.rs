//! `blindcore hw`: the papers' hardware, simulated, doing real work, and what was measured beside what was published.

mod boards;
pub(crate) mod circuit;
pub(crate) mod lanes;
pub(crate) mod lookup;
pub(crate) mod report;
pub(crate) mod sum;
pub(crate) mod today;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::output::Bar;

/// Where clocks went, drawn: each part with its share of all of them.
fn bars(all: u64, parts: &[(&str, u64)]) -> String {
    let mut text = String::new();
    for (what, clocks) in parts {
        let share = *clocks as f64 / all.max(1) as f64;
        let bar = "#".repeat((share * 40.0).round() as usize);
        let line = format!("  {what:22} {clocks:>12}  {:5.1} %  {bar}", 100.0 * share);
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Does something long, with a sign of life.
pub(crate) fn watched<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let (ends, ended) = mpsc::channel::<()>();
        let worker = scope.spawn(|| {
            let _ends = ends; // gone when the work is done, or has panicked
            work()
        });
        let mut bar = Bar::new();
        while ended.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
            bar.set("simulating", 0, None, false);
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
