//! Drawings in text.

/// Where clocks went, drawn: each part with its share of all of them.
pub(crate) fn bars(all: u64, parts: &[(&str, u64)]) -> String {
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

/// A figure of a table, with as many decimals as it needs.
pub(crate) fn number(x: f64) -> String {
    match x {
        1000.0.. => format!("{x:.0}"),
        100.0.. => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}
