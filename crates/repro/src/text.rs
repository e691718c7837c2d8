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

/// How many figures are named that are furthest from a paper's.
const NAMED: usize = 3;

/// The figures of a table that are furthest from the paper's, the worst first, in a sentence; of what each is and its ratio to the
/// paper's. Nothing where the paper has none.
pub(crate) fn furthest(figures: impl Iterator<Item = (String, f64)>) -> String {
    let mut all: Vec<(String, f64)> = figures.collect();
    // Half and twice are as far.
    all.sort_by(|(_, a), (_, b)| b.ln().abs().total_cmp(&a.ln().abs()));
    let named =
        all.iter().take(NAMED).map(|(what, ratio)| format!("{:+.1} % ({what})", 100.0 * (ratio - 1.0)));
    match named.collect::<Vec<_>>() {
        named if named.is_empty() => String::new(),
        named => format!("\nFurthest from the paper: {}.\n", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::furthest;

    #[test]
    fn the_worst_figures_come_first() {
        let figures =
            [("a", 1.1), ("b", 0.5), ("c", 1.0), ("d", 1.9)].map(|(what, ratio)| (what.to_owned(), ratio));
        assert_eq!(
            furthest(figures.into_iter()),
            "\nFurthest from the paper: -50.0 % (b), +90.0 % (d), +10.0 % (a).\n"
        );
        assert_eq!(furthest(std::iter::empty()), "");
    }
}
