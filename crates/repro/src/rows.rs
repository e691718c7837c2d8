//! Figures of ours beside published ones, in one form for every paper.
//!
//! A row is a figure: what was published, ours, their ratio, where the published one stands, and how ours came about. What must not
//! be read alone has a [`Label`], with the figure that stands beside it; joules and square millimetres have a column for each table.

use blindcore_model::chip::{Kind, Price, Reached};
use serde_json::{Map, Value, json};

/// How far a figure of ours may be from the published one to count as near it.
pub const NEAR: f64 = 0.15;

/// How a figure of ours came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By a model that is exact: clocks, words, points.
    Counted,
    /// By simulated hardware.
    Simulated,
    /// From simulated blocks or round numbers, as the row says.
    Reckoned,
    /// From a table that is fitted to the published totals.
    Calibrated,
    /// By this project's synthesis.
    Synthesised,
    /// From tables of others.
    Tables,
    /// On this machine.
    Measured,
    /// On this machine too, but as shares of a time, which compare.
    Profiled,
    /// Of something else than what was published, such as another netlist, or of what was recovered from the published figure itself.
    Other,
}

impl By {
    /// As JSON and tables have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Simulated => "simulated",
            Self::Reckoned => "reckoned",
            Self::Calibrated => "calibrated",
            Self::Synthesised => "synthesised",
            Self::Tables => "tables",
            Self::Measured | Self::Profiled => "measured",
            Self::Other => "other",
        }
    }

    /// Whether it is an attempt at the published figure: other tables, this machine and other netlists are not.
    fn compares(self) -> bool {
        matches!(self, Self::Counted | Self::Simulated | Self::Reckoned | Self::Calibrated | Self::Profiled)
    }
}

impl From<Kind> for By {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Calibrated => Self::Calibrated,
            Kind::Synthesised => Self::Synthesised,
            Kind::Tables => Self::Tables,
        }
    }
}

/// What must not be read alone, and what stands beside it.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// A time, or a rate, at the paper's clock; beside it the same at the clock that our synthesis reached.
    PaperClock {
        /// Clocks a second in the paper.
        hz: f64,
        /// The same at our clock, and the clock; none: nothing of it was synthesised.
        ours: Option<(f64, Reached)>,
    },
    /// A speed-up over software, published and on another machine; beside it one over software measured here.
    OtherMachine {
        /// Over software that was measured here; none: it was not.
        here: Option<f64>,
    },
}

impl Label {
    /// What a time or a rate is at the paper's clock, and at ours, which `part` reached; `at` gives it for a clock in hertz.
    #[must_use]
    pub fn clock(hz: f64, part: &str, at: impl Fn(f64) -> f64) -> Self {
        Self::PaperClock { hz, ours: blindcore_model::chip::reached(part).map(|r| (at(r.clock), r)) }
    }

    /// The label itself.
    #[must_use]
    pub fn says(&self) -> String {
        match self {
            Self::PaperClock { hz, .. } => format!("at the paper's clock, {}", frequency(*hz)),
            Self::OtherMachine { .. } => "published, other machine".into(),
        }
    }

    /// What stands beside the figure, and its value.
    #[must_use]
    pub fn beside(&self) -> (String, Option<f64>) {
        match self {
            Self::PaperClock { ours: Some((value, reached)), .. } => {
                let clock = frequency(reached.clock);
                (format!("at {clock}, which our synthesis reached in {}", reached.table), Some(*value))
            }
            Self::PaperClock { ours: None, .. } => ("not synthesised".into(), None),
            Self::OtherMachine { here } => ("over software measured here".into(), *here),
        }
    }
}

/// A clock for people.
#[must_use]
pub fn frequency(hz: f64) -> String {
    let (x, unit) = if hz >= 1e9 { (hz / 1e9, "GHz") } else { (hz / 1e6, "MHz") };
    let text = format!("{x:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// A figure by one of the tables of energy and area.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The table.
    pub table: String,
    /// Its kind.
    pub kind: Kind,
    /// The figure, in the row's unit.
    pub value: f64,
}

/// A figure by every table that has it.
pub fn columns(prices: &[Price], get: impl Fn(&Price) -> Option<f64>) -> Vec<Column> {
    let of = |p: &Price| Some(Column { table: p.table.clone(), kind: p.kind, value: get(p)? });
    prices.iter().filter_map(of).collect()
}

/// A figure of ours, and the published one where there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The table, figure or section of the paper.
    pub of: String,
    /// Its name for programs.
    pub id: String,
    /// What it is.
    pub what: String,
    /// Ours.
    pub value: Option<f64>,
    /// Its unit, empty for what has none.
    pub unit: &'static str,
    /// What was published.
    pub published: Option<f64>,
    /// The paper that published it.
    pub paper: &'static str,
    /// How ours came about.
    pub by: By,
    /// What must not be read alone.
    pub label: Option<Label>,
    /// Joules and square millimetres by each table.
    pub columns: Vec<Column>,
}

impl Row {
    /// Where the published figure stands.
    #[must_use]
    pub fn source(&self) -> Option<String> {
        self.published.map(|_| format!("{}, {}", self.paper, self.of))
    }

    /// Ours over the published one, where that is not 0.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.value.zip(self.published).filter(|(_, p)| *p != 0.0).map(|(v, p)| v / p)
    }

    /// Whether ours is within [`NEAR`] of the published one; none where the two are not to be compared.
    #[must_use]
    pub fn near(&self) -> Option<bool> {
        let (value, published) = self.value.zip(self.published).filter(|_| self.by.compares())?;
        // None where there should be none.
        Some(if published == 0.0 { value == 0.0 } else { (value / published - 1.0).abs() <= NEAR })
    }

    /// The row for programs; `more` are fields of this paper alone.
    #[must_use]
    pub fn json(&self, more: Value) -> Value {
        let mut row = Map::new();
        let mut put = |name: &str, value: Value| row.insert(name.into(), value);
        put("id", json!(self.id));
        put("of", json!(self.of));
        put("what", json!(self.what));
        put("value", json!(self.value));
        put("unit", json!(self.unit));
        put("published", json!(self.published));
        put("ratio", json!(self.ratio()));
        put("source", json!(self.source()));
        put("kind", json!(self.by.name()));
        put("within_15_percent", json!(self.near()));
        put("label", json!(self.label.as_ref().map(Label::says)));
        let beside = self.label.as_ref().map(Label::beside);
        put("beside", json!(beside.map(|(what, value)| json!({"what": what, "value": value}))));
        if !self.columns.is_empty() {
            let mut by: Map<String, Value> =
                KINDS.map(|k| (By::from(k).name().into(), Value::Object(Map::new()))).into_iter().collect();
            for column in &self.columns {
                by[By::from(column.kind).name()][&column.table] = json!(column.value);
            }
            put("columns", Value::Object(by));
        }
        if let Value::Object(more) = more {
            row.extend(more);
        }
        Value::Object(row)
    }
}

/// The columns of joules and square millimetres, in their order.
pub const KINDS: [Kind; 3] = [Kind::Calibrated, Kind::Synthesised, Kind::Tables];

/// How many rows are compared with a published figure, and how many of these are near it.
#[must_use]
pub fn count<'a>(rows: impl IntoIterator<Item = &'a Row>) -> (usize, usize) {
    let near = rows.into_iter().filter_map(Row::near);
    near.fold((0, 0), |(all, near), this| (all + 1, near + usize::from(this)))
}

/// The count in a sentence.
#[must_use]
pub fn counted<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let (all, near) = count(rows);
    format!("{near} of {all} published figures are within {:.0} %", 100.0 * NEAR)
}

/// A document: its rows, each with fields of its paper alone, and how many are near the published figures.
#[must_use]
pub fn document(rows: &[Row], more: impl Fn(usize) -> Value) -> Map<String, Value> {
    let (all, near) = count(rows);
    let rows: Vec<Value> = rows.iter().enumerate().map(|(at, row)| row.json(more(at))).collect();
    [("rows", json!(rows)), ("compared", json!(all)), ("within_15_percent", json!(near))]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}

/// A figure for people.
#[must_use]
pub fn shown(x: f64) -> String {
    match x.abs() {
        a if a >= 1.0 && x.fract() == 0.0 => blindcore_units::count(x as u64),
        1e3.. => blindcore_units::count(x.round() as u64),
        100.0.. => format!("{x:.2}"),
        0.0 => "0".into(),
        a if a < 1e-3 => format!("{x:.3e}"),
        _ => format!("{x:.4}"),
    }
}

/// A figure of each table of a kind: its value alone where the kind has one table.
fn cell(columns: &[Column], kind: Kind) -> String {
    let of: Vec<&Column> = columns.iter().filter(|c| c.kind == kind).collect();
    match of[..] {
        [] => "-".into(),
        [one] if kind != Kind::Synthesised => shown(one.value),
        _ => of.iter().map(|c| format!("{} {}", c.table, shown(c.value))).collect::<Vec<_>>().join(", "),
    }
}

/// A table in Markdown. Rows with a label say so and have what stands beside them in a column of its own; joules and square
/// millimetres have three columns.
#[must_use]
pub fn markdown(rows: &[&Row]) -> String {
    let labels = rows.iter().any(|row| row.label.is_some());
    let priced = rows.iter().any(|row| !row.columns.is_empty());
    let (mut head, mut rule) =
        ("| | here | published | ratio | by |".to_owned(), "|---|--:|--:|--:|---|".to_owned());
    if labels {
        head += " beside |";
        rule += "---|";
    }
    if priced {
        head += " calibrated | synthesised | tables |";
        rule += "--:|--:|--:|";
    }
    let mut text = format!("{head}\n{rule}\n");
    for row in rows {
        let of = |x: Option<f64>| {
            x.map_or("-".into(), |x| format!("{} {}", shown(x), row.unit).trim_end().to_owned())
        };
        let label = row.label.as_ref().map_or(String::new(), |label| format!(" ({})", label.says()));
        let ratio = row.ratio().map_or(String::new(), |r| format!("{r:.4}"));
        text += &format!(
            "| {}{label} | {} | {} | {ratio} | {} |",
            row.what,
            of(row.value),
            of(row.published),
            row.by.name()
        );
        if labels {
            text += &match row.label.as_ref().map(Label::beside) {
                None => " |".to_owned(),
                Some((what, value)) => format!(" {}: {what} |", of(value)),
            };
        }
        if priced {
            let columns = &row.columns;
            let cells = KINDS.map(|k| if columns.is_empty() { String::new() } else { cell(columns, k) });
            cells.iter().for_each(|cell| text += &format!(" {cell} |"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64, published: f64, by: By) -> Row {
        Row {
            of: "Table 1".into(),
            id: "x".into(),
            what: "a time".into(),
            value: Some(value),
            unit: "s",
            published: Some(published),
            paper: "Somebody 2020",
            by,
            label: None,
            columns: Vec::new(),
        }
    }

    #[test]
    fn what_is_no_attempt_is_not_counted() {
        let rows = [
            row(1.15, 1.0, By::Counted),
            row(0.84, 1.0, By::Simulated),
            row(0.0, 0.0, By::Counted),
            row(1.0, 0.0, By::Counted),
            row(1.0, 1.0, By::Measured),
            Row { published: None, ..row(1.0, 1.0, By::Counted) },
        ];
        assert_eq!(count(&rows), (4, 2));
        assert_eq!(counted(&rows), "2 of 4 published figures are within 15 %");
        let document = document(&rows, |at| json!({ "at": at }));
        assert_eq!((&document["compared"], &document["rows"][1]["at"]), (&json!(4), &json!(1)));
        assert_eq!(document["rows"][4]["within_15_percent"], Value::Null);
        assert_eq!(document["rows"][0]["source"], "Somebody 2020, Table 1");
        assert_eq!(
            (&document["rows"][5]["source"], &document["rows"][5]["ratio"]),
            (&Value::Null, &Value::Null)
        );
    }

    #[test]
    fn a_labelled_figure_has_another_beside_it() {
        let clock = Label::clock(2e9, "onionchopper", |hz| 1e9 / hz);
        let labelled = Row { label: Some(clock), ..row(0.5, 0.5, By::Counted) };
        let text = markdown(&[&labelled, &row(1.0, 1.0, By::Counted)]);
        assert!(
            text.contains(
                "| a time (at the paper's clock, 2 GHz) | 0.5000 s | 0.5000 s | 1.0000 | counted |"
            )
        );
        assert!(
            text.contains(" 1.8669 s: at 535.6 MHz, which our synthesis reached in nangate45 |"),
            "{text}"
        );
        let cells: Vec<usize> = text.lines().map(|line| line.matches('|').count()).collect();
        assert_eq!(cells, [7; 4], "{text}");
        let none = Label::OtherMachine { here: None };
        let json = Row { label: Some(none), ..row(1.0, 1.0, By::Counted) }.json(Value::Null);
        assert_eq!(json["label"], "published, other machine");
        assert_eq!(json["beside"], json!({"what": "over software measured here", "value": null}));
    }

    #[test]
    fn joules_have_three_columns() {
        let of = |table: &str, kind, value| Column { table: table.into(), kind, value };
        let columns = vec![
            of("calibrated", Kind::Calibrated, 3290.3),
            of("sky130", Kind::Synthesised, 2.0),
            of("sg13g2", Kind::Synthesised, 1.0),
        ];
        let row = Row { columns, ..row(1.0, 1.0, By::Calibrated) };
        assert!(markdown(&[&row]).ends_with("| 3,290 | sky130 2, sg13g2 1 | - |\n"), "{}", markdown(&[&row]));
        let json = row.json(Value::Null);
        assert_eq!(json["columns"]["synthesised"], json!({"sky130": 2.0, "sg13g2": 1.0}));
        assert_eq!(json["columns"]["tables"], json!({}));
    }
}
