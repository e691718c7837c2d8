//! One point of a sweep, computed.

use blindcore_model::chip::{Found, Tensor, random, search};

use crate::sweep::{Mapper, Point, Sweep};
use crate::table::Kind;

/// The columns of a sweep's results. Joules are of the parts that a table has; where it lacks some, the column's name says of which
/// they are.
#[must_use]
pub fn columns(sweep: &Sweep) -> Vec<(String, Kind)> {
    let mut columns: Vec<(String, Kind)> =
        vec![("point".into(), Kind::Whole), ("problem".into(), Kind::Text), ("gib".into(), Kind::Float)];
    columns.extend(sweep.axes.iter().map(|axis| (axis.name.clone(), Kind::Whole)));
    for (name, kind) in
        [("cycles", Kind::Whole), ("seconds", Kind::Float), ("holds", Kind::Text), ("lanes", Kind::Whole)]
    {
        columns.push((name.into(), kind));
    }
    for tables in &sweep.tables {
        let machine = &sweep.machine;
        let levels = machine.levels.iter().map(|l| (l.name.as_str(), l.part.as_str()));
        let parts: Vec<_> = levels.chain([("lanes", machine.lanes.part.as_str())]).collect();
        let has: Vec<_> =
            parts.iter().filter(|(_, part)| tables.parts.iter().any(|p| p.name == *part)).collect();
        let of = if has.len() == parts.len() {
            String::new()
        } else {
            format!("_of_{}", has.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("_"))
        };
        columns.push((format!("joules_{}{of}", tables.name), Kind::Float));
        columns.push((format!("mm2_{}{of}", tables.name), Kind::Float));
    }
    columns.extend(
        [("tried", Kind::Whole), ("mapping", Kind::Text), ("misfit", Kind::Text)].map(|(n, k)| (n.into(), k)),
    );
    columns
}

/// What came of a point: a cell a column.
pub type Outcome = Vec<String>;

/// Looks for a point's best mapping.
pub(crate) fn compute(sweep: &Sweep, number: usize, point: &Point) -> Outcome {
    let case = &sweep.cases[point.case];
    let found = sweep.machine_of(point).and_then(|machine| {
        let found = match &sweep.mapper {
            Mapper::Exhaustive(space) => search(&case.problem, &machine, &sweep.tables, space),
            Mapper::Random(tries) => random(&case.problem, &machine, &sweep.tables, tries),
        };
        found.map(|found| (machine, found))
    });
    let mut cells =
        vec![number.to_string(), case.name.clone(), case.gib.map_or(String::new(), |gib| gib.to_string())];
    cells.extend(point.values.iter().map(u64::to_string));
    let width = columns(sweep).len();
    match found {
        Err(misfit) => {
            cells.resize(width - 1, String::new());
            cells.push(misfit.to_string());
        }
        Ok((machine, Found { mapping, cost, tried })) => {
            cells.extend([
                cost.cycles.to_string(),
                cost.seconds.to_string(),
                cost.holds().to_owned(),
                cost.lanes.to_string(),
            ]);
            cells.extend(cost.prices.iter().flat_map(|p| [p.joules().to_string(), p.mm2().to_string()]));
            cells.extend([tried.to_string(), mapping.text(&machine), String::new()]);
        }
    }
    cells
}

/// Bytes of a case's database: the larger of A and B.
pub(crate) fn database_bytes(sweep: &Sweep, case: usize) -> f64 {
    let problem = &sweep.cases[case].problem;
    let bytes = |t: Tensor| problem.words(t) as f64 * problem.bits[t as usize] as f64 / 8.0;
    bytes(Tensor::A).max(bytes(Tensor::B))
}
