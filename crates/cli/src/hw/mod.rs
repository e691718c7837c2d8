//! `blindcore hw`: the papers' hardware, simulated, doing real work, and what was measured beside what was published.

mod boards;
pub(crate) mod circuit;
pub(crate) mod lanes;
pub(crate) mod lookup;
pub(crate) mod report;
pub(crate) mod today;

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
