//! What a sweep's results look like: plots of any sweep, and a few lines of text.

use std::path::Path;

use anyhow::Context;
use blindcore_files::{Access, Existing, new_file};
use serde_json::{Value, json};

use crate::best;
use crate::plot::{Axis, Plot, Series};
use crate::point::database_bytes;
use crate::ray::OnRay;
use crate::run::Results;
use crate::sweep::Sweep;

/// GiB that are one.
const GIB: f64 = (1u64 << 30) as f64;

/// Names of the first table's columns of joules and mm2.
fn priced(results: &Results) -> Option<(String, String)> {
    let of = |start: &str| {
        results.table.columns.iter().map(|c| &c.0).find(|name| name.starts_with(start)).cloned()
    };
    Some((of("joules_")?, of("mm2_")?))
}

/// Rows of each problem, by name.
fn by_problem(sweep: &Sweep, results: &Results) -> Vec<(String, Vec<usize>)> {
    let names = results.table.texts("problem");
    let mut all: Vec<(String, Vec<usize>)> = Vec::new();
    for case in &sweep.cases {
        if all.iter().all(|(name, _)| *name != case.name) {
            let rows = (0..names.len()).filter(|at| names[*at] == case.name).collect();
            all.push((case.name.clone(), rows));
        }
    }
    all
}

/// Writes a sweep's results into a folder: `results.csv`, `results.parquet`, and each of its plots as SVG and PNG.
///
/// # Errors
/// A file can't be written.
pub fn keep(sweep: &Sweep, results: &Results, folder: &Path) -> anyhow::Result<()> {
    let write = |name: &str, bytes: &[u8]| {
        new_file::write(&folder.join(name), Access::Everyone, Existing::Replace, bytes).with_context(|| {
            format!("{}: its points are kept, so make room and run it again", folder.display())
        })
    };
    write("results.csv", &results.table.csv()?)?;
    write("results.parquet", &results.table.parquet()?)?;
    let mut all = plots(sweep, results);
    if !results.best.is_empty() {
        write("best.json", format!("{:#}\n", best::document(sweep, &results.best)).as_bytes())?;
        write("best.txt", best::text(sweep, &results.best).as_bytes())?;
        all.extend(best::plot(sweep, &results.best));
    }
    for plot in all {
        write(&format!("{}.svg", plot.name), plot.svg()?.as_bytes())?;
        write(&format!("{}.png", plot.name), &plot.png()?)?;
    }
    Ok(())
}

/// Plots of a sweep: cycles by point and area against energy where machines vary; speed, energy and power by size where sizes do.
#[must_use]
pub fn plots(sweep: &Sweep, results: &Results) -> Vec<Plot> {
    let table = &results.table;
    let (cycles, seconds, gib) = (table.numbers("cycles"), table.numbers("seconds"), table.numbers("gib"));
    let groups = by_problem(sweep, results);
    let several = groups.len() > 1;
    let series = |line: bool, of: &dyn Fn(usize) -> Option<(f64, f64)>| -> Vec<Series> {
        let one = |(name, rows): &(String, Vec<usize>)| Series {
            name: if several { name.clone() } else { String::new() },
            points: rows.iter().filter_map(|at| of(*at)).collect(),
            line,
        };
        groups.iter().map(one).collect()
    };
    let axis = |label: &str| Axis { label: label.into(), ..Axis::default() };
    let plot = |name: &str, title: String, x: Axis, y: Axis, series: Vec<Series>| Plot {
        name: format!("{}-{name}", sweep.name),
        title,
        x,
        y,
        series,
    };
    let mut all = Vec::new();
    if !sweep.axes.is_empty() {
        let points = series(false, &|at| Some((at as f64, cycles[at]?)));
        all.push(plot("cycles", format!("{}: cycles", sweep.name), axis("machine"), axis("cycles"), points));
        if let Some((joules, mm2)) = priced(results) {
            let (joules, areas, on) = (table.numbers(&joules), table.numbers(&mm2), table.numbers("front"));
            let mut points = series(false, &|at| Some((areas[at]?, joules[at]?)));
            points.iter_mut().filter(|s| s.name.is_empty()).for_each(|s| s.name = "machines".into());
            points.push(Series {
                name: "front".into(),
                points: (0..on.len())
                    .filter(|at| on[*at] == Some(1.0))
                    .filter_map(|at| Some((areas[at]?, joules[at]?)))
                    .collect(),
                line: false,
            });
            let title = format!("{}: area and energy", sweep.name);
            let positive = areas.iter().flatten().all(|mm2| *mm2 > 0.0);
            let area = Axis { log: positive, ..axis("area (mm²)") };
            all.push(plot("area-energy", title, area, axis("energy (J)"), points));
        }
    }
    let sizes: std::collections::BTreeSet<u64> = gib.iter().flatten().map(|g| g.to_bits()).collect();
    if sweep.axes.is_empty() && sizes.len() > 1 {
        let size = || Axis { label: "database (GiB)".into(), log: true, zero: false };
        let zero = |label: &str| Axis { zero: true, ..axis(label) };
        let bytes = |at: usize| sweep.cases.get(at).map(|_| database_bytes(sweep, at) / GIB);
        let speed = series(true, &|at| Some((gib[at]?, bytes(at)? / seconds[at]?)));
        all.push(plot(
            "speed",
            format!("{}: speed", sweep.name),
            size(),
            zero("GiB of database per second"),
            speed,
        ));
        if let Some((joules, _)) = priced(results) {
            let joules = table.numbers(&joules);
            let energy = series(true, &|at| Some((gib[at]?, joules[at]? / bytes(at)?)));
            let power = series(true, &|at| Some((gib[at]?, joules[at]? / seconds[at]?)));
            all.push(plot(
                "energy",
                format!("{}: energy", sweep.name),
                size(),
                zero("J/GiB of database"),
                energy,
            ));
            all.push(plot("power", format!("{}: power", sweep.name), size(), zero("W"), power));
        }
    }
    all.retain(|plot| plot.series.iter().any(|s| !s.points.is_empty()));
    all
}

/// A sweep's results for programs, the best machines among them where there are prices.
#[must_use]
pub fn document(sweep: &Sweep, results: &Results) -> Value {
    let tables = sweep.tables.iter().map(|t| json!({"name": t.name, "kind": t.kind, "source": t.source}));
    json!({
        "sweep": sweep.name, "about": sweep.about, "machine": sweep.machine.name,
        "tables": tables.collect::<Vec<_>>(), "points": results.table.json(),
        "best": best::document(sweep, &results.best),
    })
}

/// The best points of each problem: by cycles, then by area x energy, as the thesis ranks machines; with prices by lookups a
/// second for each dollar, with what limits each machine and what others do.
#[must_use]
pub fn text(sweep: &Sweep, results: &Results) -> String {
    if !results.best.is_empty() {
        return best::text(sweep, &results.best);
    }
    let table = &results.table;
    let cycles = table.numbers("cycles");
    let holds = table.texts("holds");
    let priced = priced(results).map(|(joules, mm2)| (table.numbers(&joules), table.numbers(&mm2)));
    let figures = |at: usize| priced.as_ref().and_then(|(joules, mm2)| Some((joules[at]?, mm2[at]?)));
    let product =
        |at: usize| figures(at).map_or(0.0, |(joules, mm2)| if mm2 > 0.0 { joules * mm2 } else { joules });
    let fit = cycles.iter().flatten().count();
    let front = table.numbers("front").iter().filter(|on| **on == Some(1.0)).count();
    let mut text =
        format!("{}: {} points, {fit} with a mapping, {front} on a front\n", sweep.name, cycles.len());
    for (name, mut rows) in by_problem(sweep, results) {
        rows.retain(|at| cycles[*at].is_some());
        rows.sort_by(|a, b| {
            let (x, y) = (cycles[*a].unwrap_or(0.0), cycles[*b].unwrap_or(0.0));
            x.total_cmp(&y).then(product(*a).total_cmp(&product(*b)))
        });
        let gib = table.numbers("gib");
        let sizes = sweep.axes.is_empty();
        if sizes {
            rows.sort_by(|a, b| gib[*a].unwrap_or(0.0).total_cmp(&gib[*b].unwrap_or(0.0)));
        }
        text += &format!(
            "\n{name}, {}:\n",
            if sizes { "by size" } else { "the best by cycles, then area x energy" }
        );
        for at in rows.into_iter().take(if sizes { usize::MAX } else { 5 }) {
            let values = sweep.axes.iter().map(|axis| {
                let value = table.numbers(&axis.name)[at].unwrap_or(0.0);
                format!("{} {value}", axis.name)
            });
            let size = gib[at].map(|gib| format!("{gib} GiB"));
            let what = size.into_iter().chain(values).collect::<Vec<_>>().join(", ");
            let cost =
                figures(at).map_or(String::new(), |(joules, mm2)| format!(", {joules:.3} J, {mm2:.4} mm2"));
            let clocks = blindcore_units::count(cycles[at].unwrap_or(0.0) as u64);
            text += &format!("  {what}: {clocks} cycles, held by {}{cost}\n", holds[at]);
        }
    }
    if let Some(OnRay { nodes, again }) = results.ray {
        text += &format!("\nComputed on Ray; nodes: {nodes}, tasks begun again: {again}.\n");
    }
    let first = sweep.tables.first();
    if let Some(tables) = first {
        text += &format!("\nJoules and mm2 are by the table {:?}: {}\n", tables.name, tables.source);
    }
    text
}
