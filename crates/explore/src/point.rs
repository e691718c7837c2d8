//! One point of a sweep, computed.

use blindcore_model::chip::{Answered, Cost, Lookup, Machine, Misfit, Ring, Tensor, random, search};

use crate::sweep::{Mapper, Point, Sweep, Work};
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
    if lookups(sweep) {
        columns
            .extend([("lookups_s", Kind::Float), ("joules_lookup", Kind::Float)].map(|(n, k)| (n.into(), k)));
    }
    if sweep.prices.is_some() {
        columns.push(("dollars".into(), Kind::Float));
    }
    columns.extend(
        [("tried", Kind::Whole), ("mapping", Kind::Text), ("misfit", Kind::Text)].map(|(n, k)| (n.into(), k)),
    );
    columns
}

/// What came of a point: a cell a column.
pub type Outcome = Vec<String>;

/// Whether lookups are among the problems.
fn lookups(sweep: &Sweep) -> bool {
    sweep.cases.iter().any(|case| matches!(case.work, Work::Lookup(_)))
}

/// What a point's work costs, mapped best.
struct Mapped {
    cost: Cost,
    tried: String,
    mapping: String,
    /// Lookups per second, and how many were answered.
    lookups: Option<[f64; 2]>,
}

/// What lookups cost on a machine where everything that can stays on it.
pub(crate) fn answer(sweep: &Sweep, lookup: &Lookup, machine: &Machine) -> Result<Answered, Misfit> {
    lookup.answer(machine, &sweep.tables, Ring::Fused)
}

fn map(sweep: &Sweep, work: &Work, machine: &Machine) -> Result<Mapped, Misfit> {
    match work {
        Work::Operation(problem) => {
            let found = match &sweep.mapper {
                Mapper::Exhaustive(space) => search(problem, machine, &sweep.tables, space),
                Mapper::Random(tries) => random(problem, machine, &sweep.tables, tries),
            }?;
            let mapping = found.mapping.text(machine);
            Ok(Mapped { cost: found.cost, tried: found.tried.to_string(), mapping, lookups: None })
        }
        Work::Lookup(lookup) => {
            let answered = answer(sweep, lookup, machine)?;
            let lookups = Some([answered.per_second(), answered.queries as f64]);
            let mapping = answered.mapping.text(machine);
            Ok(Mapped { cost: answered.cost, tried: String::new(), mapping, lookups })
        }
    }
}

/// Looks for a point's best mapping.
pub(crate) fn compute(sweep: &Sweep, number: usize, point: &Point) -> Outcome {
    let case = &sweep.cases[point.case];
    let found = sweep.machine_of(point).and_then(|machine| {
        let dollars = sweep.prices.as_ref().map(|prices| prices.dollars(&machine)).transpose();
        let dollars = dollars.map_err(Misfit)?;
        Ok((map(sweep, &case.work, &machine)?, dollars))
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
        Ok((Mapped { cost, tried, mapping, lookups: answered }, dollars)) => {
            cells.extend([
                cost.cycles.to_string(),
                cost.seconds.to_string(),
                cost.holds().to_owned(),
                cost.lanes.to_string(),
            ]);
            cells.extend(cost.prices.iter().flat_map(|p| [p.joules().to_string(), p.mm2().to_string()]));
            if lookups(sweep) {
                let joules = cost.prices.first().map(|p| p.joules());
                let [per_second, each] = answered.map_or([None, None], |[a, b]| [Some(a), Some(b)]);
                let each = joules.zip(each).map(|(joules, lookups)| joules / lookups);
                cells.extend([per_second, each].map(|x| x.map_or(String::new(), |x| x.to_string())));
            }
            cells.extend(dollars.map(|dollars| dollars.to_string()));
            cells.extend([tried, mapping, String::new()]);
        }
    }
    cells
}

/// Bytes of a case's database: the larger of A and B.
pub(crate) fn database_bytes(sweep: &Sweep, case: usize) -> f64 {
    let problem = match &sweep.cases[case].work {
        Work::Operation(problem) => problem,
        Work::Lookup(lookup) => return lookup.database_bytes() as f64,
    };
    let bytes = |t: Tensor| problem.words(t) as f64 * problem.bits[t as usize] as f64 / 8.0;
    bytes(Tensor::A).max(bytes(Tensor::B))
}
