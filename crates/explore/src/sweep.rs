//! A sweep: a machine, what of it varies, which problems, and which points are left out.

use std::path::Path;

use blindcore_model::chip::{
    Lookup, Machine, Misfit, Ports, Problem, Rate, Space, Splits, Tables, Tries, Wrong, machine,
    machine_from_toml, machines, one_line,
};
use serde::Deserialize;

use crate::expression::Expression;
use crate::prices::{Prices, SHIPPED};

/// The sweeps that come with the engine: the thesis's (Shay 2023, sections 5.2.1, 6.1, 6.2, 6.5 and 6.6), and one beyond it.
pub const PRESETS: [(&str, &str); 4] = [
    ("thesis-initial", include_str!("../presets/thesis-initial.toml")),
    ("thesis-refined", include_str!("../presets/thesis-refined.toml")),
    ("thesis-sizes", include_str!("../presets/thesis-sizes.toml")),
    ("beyond", include_str!("../presets/beyond.toml")),
];
/// The most points of a grid, those that constraints leave out among them.
pub const MAX_POINTS: u64 = 1_000_000;
/// No file of a sweep, a machine or a table is longer.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
/// The most values of an axis.
const MAX_VALUES: usize = 100_000;

/// How mappings are looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mapper {
    /// All that can be best.
    Exhaustive(Space),
    /// As the thesis did.
    Random(Tries),
}

/// Something of the machine that varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name, for constraints and results.
    pub name: String,
    /// What it sets: `SRAM.size`, `lanes.count`.
    pub set: Vec<String>,
    /// What a value is multiplied by where it is set.
    pub scale: u64,
    /// Its values; none in a list of points.
    pub values: Vec<u64>,
}

/// What is computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// An operation.
    Operation(Problem),
    /// Lookups from their queries to their answers.
    Lookup(Lookup),
}

/// A problem of a size.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// GiB of the database, where that is how it was given.
    pub gib: Option<f64>,
    /// What is computed.
    pub work: Work,
    /// The machine that axes change, where it is not the sweep's.
    pub machine: Option<Machine>,
}

/// A sweep that was read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// The machine that axes change.
    pub machine: Machine,
    /// Tables of energy and area; the first ranks.
    pub tables: Vec<Tables>,
    /// How mappings are looked for.
    pub mapper: Mapper,
    /// What varies.
    pub axes: Vec<Axis>,
    /// What parts cost, where the best machines are asked for.
    pub prices: Option<Prices>,
    /// Machines that the best ones are laid beside.
    pub beside: Vec<Machine>,
    /// A machine that does the transforms of lookups where the chip does not.
    pub host: Option<Machine>,
    /// Problems.
    pub cases: Vec<Case>,
    /// Values of the axes, point by point, where there is a list instead of a grid.
    pub list: Option<Vec<Vec<u64>>>,
    /// What every point has to fulfil.
    pub constraints: Vec<Expression>,
}

/// One point: a problem, and a value of each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Which of [`Sweep::cases`].
    pub case: usize,
    /// A value an axis.
    pub values: Vec<u64>,
}

/// Gives the name to show and the text of a file that a sweep names; or why it can't.
pub(crate) type Other<'a> = dyn FnMut(&str) -> anyhow::Result<(String, String)> + 'a;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepFile {
    name: String,
    about: String,
    machine: String,
    tables: Option<Vec<String>>,
    prices: Option<String>,
    #[serde(default)]
    beside: Vec<String>,
    host: Option<String>,
    #[serde(default)]
    mapper: MapperFile,
    #[serde(default)]
    constraints: Vec<String>,
    #[serde(rename = "problem")]
    problems: Vec<ProblemFile>,
    #[serde(rename = "axis", default)]
    axes: Vec<AxisFile>,
    #[serde(rename = "point")]
    points: Option<Vec<toml::Table>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MapperFile {
    search: String,
    splits: String,
    bypass: bool,
    seed: u64,
    failures: u64,
}

impl Default for MapperFile {
    fn default() -> Self {
        let Tries { seed, failures, .. } = Tries::default();
        Self { search: "exhaustive".into(), splits: "one".into(), bypass: false, seed, failures }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProblemFile {
    name: String,
    scheme: Option<String>,
    gib: Option<Vec<f64>>,
    rows: Option<u64>,
    contract: Option<[u64; 8]>,
    bits: Option<[u64; 3]>,
    lookup: Option<String>,
    record: Option<Said>,
    queries: Option<u64>,
    machine: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Whole(u64),
    Text(String),
}

impl Said {
    fn number(&self) -> Option<u64> {
        match self {
            Self::Whole(n) => Some(*n),
            Self::Text(text) => blindcore_units::size(text),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AxisFile {
    name: String,
    set: Vec<String>,
    #[serde(default = "one")]
    scale: u64,
    from: Option<Said>,
    to: Option<Said>,
    times: Option<u64>,
    step: Option<Said>,
    values: Option<Vec<Said>>,
}

fn one() -> u64 {
    1
}

impl Sweep {
    /// A sweep that comes with the engine; none: there is no such.
    ///
    /// # Panics
    /// Never: a test reads every one.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let (name, text) = PRESETS.iter().find(|(n, _)| *n == name)?;
        Some(Self::from_toml(Path::new(name), text).expect("presets are read by a test"))
    }

    /// Reads a sweep's text. Machines and tables that it names are those that come with the engine, or files beside `path`.
    ///
    /// # Errors
    /// It is not a sweep: one line with file, key, value and remedy.
    pub fn from_toml(path: &Path, text: &str) -> Result<Self, Wrong> {
        Self::parse(&path.display().to_string(), text, &mut |name| beside(path, name))
    }

    /// Reads a sweep's text; `other` gives the name and the text of a file that it names.
    pub(crate) fn parse(file: &str, text: &str, other: &mut Other<'_>) -> Result<Self, Wrong> {
        let wrong = |why: String| Wrong { file: file.to_owned(), why };
        let read: SweepFile = toml::from_str(text).map_err(|e| wrong(one_line(text, &e)))?;
        let mut beside = |name: &str| {
            other(name).map_err(|e| {
                let known = machines().collect::<Vec<_>>().join(", ");
                wrong(format!(
                    "{name:?} is not a file and comes with no engine ({e}); name a file, or one of {known}"
                ))
            })
        };
        let mut named = |name: &str| match machine(name) {
            Some(machine) => Ok(machine),
            None => beside(name).and_then(|(file, text)| machine_from_toml(&file, &text)),
        };
        let machine = named(&read.machine)?;
        let others = read.beside.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
        let host = read.host.as_deref().map(&mut named).transpose()?;
        let of = read.problems.iter().map(|p| p.machine.as_deref().map(&mut named).transpose());
        let machines_of = of.collect::<Result<Vec<_>, _>>()?;
        let prices = read.prices.as_deref().map(|name| match SHIPPED.iter().find(|(n, _)| *n == name) {
            Some((name, text)) => Prices::from_toml(name, text),
            None => beside(name).and_then(|(file, text)| Prices::from_toml(&file, &text)),
        });
        let prices = prices.transpose()?;
        let tables = match &read.tables {
            None => Tables::shipped_all(),
            Some(names) => {
                let mut one = |name: &String| match Tables::shipped(name) {
                    Some(tables) => Ok(tables),
                    None => beside(name).and_then(|(file, text)| Tables::from_toml(&file, &text)),
                };
                names.iter().map(&mut one).collect::<Result<Vec<_>, _>>()?
            }
        };
        let axes = read.axes.iter().map(axis).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let list = read.points.as_ref().map(|points| list_of(points, &axes)).transpose().map_err(wrong)?;
        if list.is_none()
            && let Some(axis) = axes.iter().find(|axis| axis.values.is_empty())
        {
            return Err(wrong(format!(
                "axis {}: it has no values; give values, or from, to and times",
                axis.name
            )));
        }
        let of = read.problems.iter().zip(machines_of).map(|(file, machine)| cases(file, machine));
        let cases = of.collect::<Result<Vec<_>, _>>().map_err(wrong)?.concat();
        if cases.is_empty() {
            return Err(wrong("there is no [[problem]]; name a scheme and its gib, or a contract".into()));
        }
        let constraint = |text: &String| {
            let read = Expression::parse(text);
            let read = read.map_err(|e| wrong(format!("constraint {text:?}: {e}")))?;
            let known = |name: &&str| *name == "gib" || axes.iter().any(|axis| axis.name == **name);
            match read.names().into_iter().find(|name| !known(name)) {
                None => Ok(read),
                Some(name) => {
                    let names: Vec<_> = axes.iter().map(|a| a.name.as_str()).chain(["gib"]).collect();
                    Err(wrong(format!(
                        "constraint {text:?}: {name} is not an axis; axes are {}",
                        names.join(", ")
                    )))
                }
            }
        };
        let constraints = read.constraints.iter().map(constraint).collect::<Result<Vec<_>, _>>()?;
        let mapper = mapper(&read.mapper).map_err(wrong)?;
        let sweep = Self {
            name: read.name,
            about: read.about,
            machine,
            tables,
            mapper,
            axes,
            prices,
            beside: others,
            host,
            cases,
            list,
            constraints,
        };
        // What can't be set at all is said before anything is computed: of a key each machine has the level, or another one.
        for axis in &sweep.axes {
            let value =
                axis.values.first().copied().or_else(|| Some(sweep.list.as_ref()?.first()?[0])).unwrap_or(1);
            for key in &axis.set {
                let mut errors = Vec::new();
                for machine in sweep.machines() {
                    errors.extend(set(&mut machine.clone(), key, value.saturating_mul(axis.scale)).err());
                }
                if errors.len() == sweep.machines().count() {
                    return Err(wrong(format!("axis {}: {}", axis.name, errors.swap_remove(0))));
                }
            }
        }
        for machine in sweep.machines().chain(&sweep.beside).filter(|_| sweep.prices.is_some()) {
            let priced = sweep.prices.as_ref().map(|prices| prices.dollars(machine)).transpose();
            priced.map_err(|why| wrong(format!("machine {}: {why}", machine.name)))?;
        }
        let points = sweep.grid();
        if points > MAX_POINTS {
            return Err(wrong(format!("it has {points} points, over {MAX_POINTS}; give axes fewer values")));
        }
        if sweep.points().map_err(|e| wrong(e.to_string()))?.is_empty() {
            let why = format!(
                "its constraints leave none of its {points} points; loosen one, or give axes other values"
            );
            return Err(wrong(why));
        }
        Ok(sweep)
    }

    /// The machines that axes change.
    fn machines(&self) -> impl Iterator<Item = &Machine> {
        std::iter::once(&self.machine).chain(self.cases.iter().filter_map(|case| case.machine.as_ref()))
    }

    /// Points of the grid or the list, those that constraints leave out among them.
    fn grid(&self) -> u64 {
        let machines = match &self.list {
            Some(list) => list.len() as u64,
            None => self.axes.iter().fold(1u64, |all, axis| all.saturating_mul(axis.values.len() as u64)),
        };
        machines.saturating_mul(self.cases.len() as u64)
    }

    /// The points that fulfil the constraints: problem by problem, the last axis fastest.
    ///
    /// # Errors
    /// A constraint can't be computed.
    pub fn points(&self) -> Result<Vec<Point>, Misfit> {
        let machines = self.grid() / self.cases.len().max(1) as u64;
        let mut points = Vec::new();
        for case in 0..self.cases.len() {
            for at in 0..machines {
                let values = match &self.list {
                    Some(list) => list[at as usize].clone(),
                    None => {
                        let mut rest = at as usize;
                        let one = |axis: &Axis| {
                            let value = axis.values[rest % axis.values.len()];
                            rest /= axis.values.len();
                            value
                        };
                        let mut values: Vec<u64> = self.axes.iter().rev().map(one).collect();
                        values.reverse();
                        values
                    }
                };
                let value = |name: &str| match self.axes.iter().position(|axis| axis.name == name) {
                    Some(axis) => Some(values[axis] as f64),
                    None => self.cases[case].gib,
                };
                let mut holds = true;
                for constraint in &self.constraints {
                    holds &= constraint.holds(&value).map_err(Misfit)?;
                }
                if holds {
                    points.push(Point { case, values });
                }
            }
        }
        Ok(points)
    }

    /// A digest of all that results depend on, so that nobody mixes those of two sweeps.
    #[must_use]
    pub fn digest(&self) -> String {
        blake3::hash(format!("{:?}", self).as_bytes()).to_hex().to_string()
    }

    /// The machine of a point.
    ///
    /// # Errors
    /// There is no such machine: which key, what is wrong.
    pub fn machine_of(&self, point: &Point) -> Result<Machine, Misfit> {
        let mut machine = self.cases[point.case].machine.as_ref().unwrap_or(&self.machine).clone();
        for (axis, value) in self.axes.iter().zip(&point.values) {
            for key in &axis.set {
                // Levels that only other machines have are theirs.
                let level = |machine: &Machine| {
                    let of = key.split('.').next();
                    machine.levels.iter().any(|l| Some(l.name.as_str()) == of)
                };
                if level(&machine) || !self.machines().any(level) {
                    set(&mut machine, key, value.saturating_mul(axis.scale)).map_err(Misfit)?;
                }
            }
        }
        machine.check().map_err(Misfit)?;
        Ok(machine)
    }
}

/// Sets something of a machine: `LEVEL.size`, `lanes.count`, `narrow.count * 8`.
fn set(machine: &mut Machine, key: &str, value: u64) -> Result<(), String> {
    let names: Vec<_> = machine.levels.iter().map(|l| l.name.clone()).collect();
    let lanes: Vec<_> = machine.all_lanes().map(|l| l.name.clone()).collect();
    let no = || {
        let keys = "size, count, width, buffers, devices";
        format!(
            "{key} can't be set; say {keys} of {}, or count or fill of {}, such as SRAM.size, and * 8 behind it for eight times the value",
            names.join(", "),
            lanes.join(", ")
        )
    };
    let (name, times) = key.split_once('*').unwrap_or((key, "1"));
    let value = value.saturating_mul(times.trim().parse().map_err(|_| no())?);
    let (of, what) = name.trim().split_once('.').ok_or_else(no)?;
    if let Some(at) = lanes.iter().position(|lanes| lanes == of) {
        let lanes = if at == 0 { &mut machine.lanes } else { &mut machine.beside[at - 1] };
        match what {
            "count" => lanes.count = value,
            "fill" => lanes.fill = value,
            _ => return Err(no()),
        }
        return Ok(());
    }
    let level = machine.levels.iter_mut().find(|level| level.name == of).ok_or_else(no)?;
    match what {
        "size" => level.bytes = Some(value),
        "count" => level.count = value,
        "width" => level.port = Rate::whole(value),
        "buffers" => level.buffers = value,
        // As many times what is there, each with a port of its own.
        "devices" => {
            level.bytes = level.bytes.map(|bytes| bytes.saturating_mul(value));
            level.ports = match level.ports {
                Ports::Shared(ports) => Ports::Shared(ports.saturating_mul(value)),
                Ports::Separate { read, write } => {
                    Ports::Separate { read: read.saturating_mul(value), write: write.saturating_mul(value) }
                }
            };
        }
        _ => return Err(no()),
    }
    Ok(())
}

fn axis(file: &AxisFile) -> Result<Axis, String> {
    let name = &file.name;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(word) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!(
            "axis {name:?}: its name is not letters, digits and _; constraints could not say it"
        ));
    }
    let number = |said: &Said, key: &str| {
        said.number().ok_or_else(|| {
            format!("axis {name}: {key} is not a whole number; say one, or a size such as \"4 KiB\"")
        })
    };
    let values = match (&file.values, &file.from, &file.to) {
        (None, None, None) => Vec::new(),
        (Some(values), None, None) => {
            values.iter().map(|said| number(said, "a value")).collect::<Result<Vec<_>, _>>()?
        }
        (None, Some(from), Some(to)) => {
            let (from, to) = (number(from, "from")?, number(to, "to")?);
            let step = file.step.as_ref().map(|said| number(said, "step")).transpose()?;
            let next = |value: u64| match (file.times, step) {
                (Some(times), None) if times > 1 && value > 0 => Ok(value.saturating_mul(times)),
                (None, Some(step)) if step > 0 => Ok(value.saturating_add(step)),
                _ => Err(format!("axis {name}: from {from} to {to} needs times above 1, or step above 0")),
            };
            let mut values = Vec::new();
            let mut value = from;
            while value <= to && values.len() <= MAX_VALUES {
                values.push(value);
                value = next(value)?;
            }
            values
        }
        _ => return Err(format!("axis {name}: give values, or from and to; not both, not half")),
    };
    if values.len() > MAX_VALUES {
        return Err(format!("axis {name}: it has over {MAX_VALUES} values; give fewer"));
    }
    Ok(Axis { name: name.clone(), set: file.set.clone(), scale: file.scale, values })
}

fn list_of(points: &[toml::Table], axes: &[Axis]) -> Result<Vec<Vec<u64>>, String> {
    let one = |(number, point): (usize, &toml::Table)| {
        if let Some(key) = point.keys().find(|key| axes.iter().all(|axis| axis.name != **key)) {
            return Err(format!("point {}: {key} is not an axis; list it as one", number + 1));
        }
        let value = |axis: &Axis| {
            let said = point.get(&axis.name);
            let number_of = match said {
                Some(toml::Value::Integer(n)) => u64::try_from(*n).ok(),
                Some(toml::Value::String(text)) => blindcore_units::size(text),
                _ => None,
            };
            number_of.ok_or_else(|| {
                format!(
                    "point {}: {} is not a whole number or a size; every point says every axis",
                    number + 1,
                    axis.name
                )
            })
        };
        axes.iter().map(value).collect()
    };
    points.iter().enumerate().map(one).collect()
}

fn cases(file: &ProblemFile, machine: Option<Machine>) -> Result<Vec<Case>, String> {
    let name = &file.name;
    if let Some(bounds) = file.contract {
        if file.scheme.is_some() || file.gib.is_some() || file.rows.is_some() {
            return Err(format!("problem {name}: a contract beside scheme, gib or rows; say one of them"));
        }
        let problem = Problem { bits: file.bits.unwrap_or([64; 3]), ..Problem::contract(bounds) };
        let bits = problem.bits.iter().find(|b| !(1..=1 << 16).contains(*b));
        if let Some(bits) = bits {
            return Err(format!(
                "problem {name}: bits has {bits}; say 1 to 65536 bits of a word of A, B and C"
            ));
        }
        return Ok(vec![Case { name: name.clone(), gib: None, work: Work::Operation(problem), machine }]);
    }
    let said = file.scheme.as_deref().unwrap_or_default();
    let sizes = file.gib.clone().unwrap_or_default();
    if let Some(gib) = sizes.iter().find(|g| !(g.is_finite() && (1.0 / 1024.0..=65_536.0).contains(*g))) {
        return Err(format!("problem {name}: gib has {gib}; say sizes from 0.001 to 65536"));
    }
    if sizes.is_empty() {
        return Err(format!("problem {name}: it has no gib; say sizes of the database, such as [64]"));
    }
    if let Some(scheme) = &file.lookup {
        if file.scheme.is_some() || file.rows.is_some() {
            return Err(format!("problem {name}: a lookup beside scheme or rows; say one of them"));
        }
        let record = file.record.as_ref().map_or(Some(256), Said::number);
        let record = record.filter(|bytes| (1..=1 << 20).contains(bytes)).ok_or_else(|| {
            format!("problem {name}: record is out of range; say 1 B to 1 MiB, such as \"256 B\"")
        })?;
        let queries = file.queries.unwrap_or(1);
        let case = |gib: &f64| {
            let records = ((gib * f64::from(1 << 30)) as u64 / record).max(1);
            let lookup = Lookup::named(scheme, records, record as usize, queries);
            let lookup = lookup.map_err(|why| format!("problem {name}: {why}"))?;
            let work = Work::Lookup(lookup);
            Ok(Case { name: name.clone(), gib: Some(*gib), work, machine: machine.clone() })
        };
        return sizes.iter().map(case).collect();
    }
    let rows = file.rows.unwrap_or(1024);
    if rows == 0 || rows > 1 << 30 {
        return Err(format!("problem {name}: rows is {rows}; say 1 to 2^30 plaintexts a column"));
    }
    let one = |gib: f64| match said {
        "onionpir" => Some(Problem::onionpir(gib)),
        "sealpir" => Some(Problem::sealpir(gib)),
        "simplepir" => Some(Problem::simplepir(gib)),
        "fastpir" => Some(Problem::fastpir(gib, rows)),
        _ => None,
    };
    let case = |gib: &f64| {
        let problem = one(*gib).ok_or_else(|| {
            format!("problem {name}: scheme is {said:?}; say onionpir, sealpir, simplepir or fastpir, or give a contract")
        })?;
        let work = Work::Operation(problem);
        Ok(Case { name: name.clone(), gib: Some(*gib), work, machine: machine.clone() })
    };
    sizes.iter().map(case).collect()
}

fn mapper(file: &MapperFile) -> Result<Mapper, String> {
    let splits = match file.splits.as_str() {
        "one" => Splits::One,
        "many" => Splits::Many,
        other => return Err(format!("mapper: splits is {other:?}; say \"one\" or \"many\"")),
    };
    match file.search.as_str() {
        "exhaustive" => Ok(Mapper::Exhaustive(Space { splits, bypass: file.bypass, ..Space::default() })),
        "random" => {
            Ok(Mapper::Random(Tries { seed: file.seed, failures: file.failures.max(1), ..Tries::default() }))
        }
        other => Err(format!("mapper: search is {other:?}; say \"exhaustive\" or \"random\"")),
    }
}

/// The name and the text of a file beside a sweep's.
pub(crate) fn beside(sweep: &Path, name: &str) -> anyhow::Result<(String, String)> {
    let place = sweep.parent().unwrap_or(Path::new("")).join(name);
    let text = blindcore_files::small::read_text(&place, MAX_BYTES)?;
    Ok((place.display().to_string(), text.as_str().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_that_come_with_the_engine_have_their_points() {
        let points = PRESETS.map(|(name, _)| Sweep::preset(name).unwrap().points().unwrap().len());
        assert_eq!(points, [4896, 176, 32, 5120]);
        assert!(Sweep::preset("none").is_none());
    }

    const GOOD: &str = "name = 'x'\nabout = 'y'\nmachine = 'thesis'\nconstraints = ['srams <= 2']\n\
        [[problem]]\nname = 'OnionPIR'\nscheme = 'onionpir'\ngib = [1]\n\
        [[axis]]\nname = 'srams'\nset = ['SRAM.count']\nvalues = [1, 2, 4]\n";

    #[test]
    fn a_wrong_sweep_is_one_line_with_file_key_value_and_remedy() {
        let read = |text: &str| Sweep::from_toml(Path::new("s.toml"), text);
        assert_eq!(read(GOOD).unwrap().points().unwrap().len(), 2);
        for (from, to, parts) in [
            ("machine = 'thesis'", "machine = 'none'", "\"none\" is not a file"),
            ("machine = 'thesis'", "machne = 'thesis'", "line 3: unknown key `machne`"),
            ("srams <= 2", "srams < 1", "its constraints leave none of its 3 points"),
            (
                "srams <= 2",
                "lanes <= 2",
                "constraint \"lanes <= 2\": lanes is not an axis; axes are srams, gib",
            ),
            ("srams <= 2", "srams <=", "constraint \"srams <=\": a number or a name is missing at the end"),
            ("'SRAM.count'", "'SRAM.colour'", "axis srams: SRAM.colour can't be set"),
            ("'SRAM.count'", "'L9.count'", "axis srams: L9.count can't be set; say size, count"),
            ("values = [1, 2, 4]", "", "axis srams: it has no values"),
            ("values = [1, 2, 4]", "from = 1\nto = 4", "axis srams: from 1 to 4 needs times above 1"),
            (
                "values = [1, 2, 4]",
                "from = 1\nto = 99999999\nstep = 1",
                "axis srams: it has over 100000 values",
            ),
            ("values = [1, 2, 4]", "values = ['x']", "axis srams: a value is not a whole number"),
            ("name = 'srams'", "name = 'a b'", "axis \"a b\": its name"),
            ("'onionpir'", "'mulpir'", "problem OnionPIR: scheme is \"mulpir\"; say onionpir"),
            ("gib = [1]", "gib = []", "problem OnionPIR: it has no gib"),
            ("gib = [1]", "gib = [-1.0]", "problem OnionPIR: gib has -1"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from}");
            let error = read(&text).unwrap_err().to_string();
            assert!(error.starts_with("s.toml: ") && error.contains(parts), "{error}, not {parts}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn a_list_says_every_axis_of_every_point() {
        let list = GOOD.replace("values = [1, 2, 4]\n", "[[point]]\nsrams = 2\n[[point]]\nsrams = 4\n");
        let read = |text: &str| Sweep::from_toml(Path::new("s.toml"), text);
        assert_eq!(read(&list).unwrap().points().unwrap(), [Point { case: 0, values: vec![2] }]);
        let error = read(&list.replace("srams = 4", "lanes = 4")).unwrap_err().to_string();
        assert!(error.contains("point 2: lanes is not an axis"), "{error}");
    }
}
