//! Energy and area of parts, from named tables.

use blindcore_accel::cost::{Cost, Kind, Price, Priced};
use serde::Deserialize;

use super::machine::Machine;
use super::read::{Wrong, from_toml};

/// A part at one size.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Bytes of the memory; 0 for what has no size.
    #[serde(default)]
    pub bytes: u64,
    /// Picojoules to read `bits`, or for a unit of work of a lane.
    #[serde(default)]
    pub read_pj: Option<f64>,
    /// Picojoules to write them; as to read, if it is not said.
    #[serde(default)]
    pub write_pj: Option<f64>,
    /// Square millimetres.
    #[serde(default)]
    pub mm2: Option<f64>,
}

/// A part: a memory of several sizes, or a lane.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its name, as a machine's `part` says it.
    pub name: String,
    /// Bits that a read or a write moves; 0 for a lane.
    #[serde(default)]
    pub bits: u64,
    /// Where its figures are from; of a synthesis the file that keeps it, then whatever else there is to say.
    pub source: String,
    /// Picoseconds of its shortest clock, where it was synthesised.
    #[serde(default)]
    pub clock_ps: Option<f64>,
    /// Sizes, the smallest first; none where only the clock is known.
    #[serde(default, rename = "point")]
    pub points: Vec<Point>,
}

/// Parts with their energy and area.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// Its name.
    pub name: String,
    /// What kind of figures these are.
    pub kind: Kind,
    /// Where they are from, and which version.
    pub source: String,
    /// A table that comes with the engine and has the parts that this one lacks.
    #[serde(default)]
    pub beside: Option<String>,
    /// The parts.
    #[serde(rename = "part")]
    pub parts: Vec<Part>,
}

impl Tables {
    /// Reads a table; `file` names it in what is refused.
    ///
    /// # Errors
    /// The text is no table: the file, the key or line, what is wrong with it.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, Wrong> {
        let mut tables: Self = from_toml(file, text)?;
        if let Some(name) = &tables.beside {
            let Some(other) = Self::shipped(name).filter(|other| other.beside.is_none()) else {
                let why = format!(
                    "beside is {name:?}; name a table that comes with the engine, such as \"published\""
                );
                return Err(Wrong { file: file.into(), why });
            };
            let lacks = |part: &Part| tables.parts.iter().all(|p| p.name != part.name);
            let more: Vec<_> = other.parts.into_iter().filter(lacks).collect();
            tables.parts.extend(more);
        }
        for part in &tables.parts {
            let rising = part.points.windows(2).all(|w| w[0].bytes < w[1].bytes);
            if part.points.is_empty() && part.clock_ps.is_none() || !rising {
                let why = format!(
                    "part {}: its points are none or not in order; list them by rising bytes",
                    part.name
                );
                return Err(Wrong { file: file.into(), why });
            }
            let of = |p: &Point| [p.read_pj, p.write_pj, p.mm2];
            let fault = part.points.iter().flat_map(of).flatten().find(|x| !(x.is_finite() && *x >= 0.0));
            if let Some(x) = fault {
                let why = format!("part {}: a figure is {x}; say picojoules or mm2, 0 or more", part.name);
                return Err(Wrong { file: file.into(), why });
            }
            if let Some(ps) = part.clock_ps.filter(|ps| !(ps.is_finite() && *ps > 0.0)) {
                let why = format!("part {}: clock_ps is {ps}; say picoseconds above 0", part.name);
                return Err(Wrong { file: file.into(), why });
            }
        }
        Ok(tables)
    }

    /// Picojoules that a bit takes to be read and to be written in a memory of `bytes`.
    #[must_use]
    pub fn picojoules(&self, part: &str, bytes: Option<u64>) -> Option<[f64; 2]> {
        let part = self.parts.iter().find(|p| p.name == part)?;
        let read = part.at(bytes, |p| p.read_pj)?;
        let write = part.at(bytes, |p| p.write_pj).unwrap_or(read);
        let bits = part.bits.max(1) as f64;
        Some([read / bits, write / bits])
    }

    /// Square millimetres of one.
    #[must_use]
    pub fn mm2(&self, part: &str, bytes: Option<u64>) -> Option<f64> {
        self.parts.iter().find(|p| p.name == part)?.at(bytes, |p| p.mm2)
    }

    /// Clocks a second at which a part was synthesised.
    #[must_use]
    pub fn clock(&self, part: &str) -> Option<f64> {
        Some(1e12 / self.parts.iter().find(|p| p.name == part)?.clock_ps?)
    }

    /// Whether it has energy or area of anything.
    #[must_use]
    pub fn prices(&self) -> bool {
        self.parts.iter().any(|part| !part.points.is_empty())
    }

    /// Square millimetres of all parts of a machine that the table has.
    #[must_use]
    pub fn area(&self, machine: &Machine) -> f64 {
        let levels = machine.levels.iter();
        let of = levels.map(|l| self.mm2(&l.part, l.bytes).map(|mm2| mm2 * l.count as f64));
        let lanes = machine.all_lanes().map(|l| self.mm2(&l.part, None).map(|mm2| mm2 * l.count as f64));
        of.chain(lanes).flatten().sum()
    }

    /// What a run costs on a machine by this table: of each level the bits that moved there, by its name, and of the lanes `work` units
    /// of their own. It does not matter whether a model or a chip counted them; a level that the run does not name was not used.
    #[must_use]
    pub fn price(&self, machine: &Machine, cost: &Cost, work: f64) -> Price {
        let levels = machine.levels.iter().map(|level| Priced {
            part: level.name.clone(),
            joules: self.picojoules(&level.part, level.bytes).map(|[read, write]| {
                let moved = cost.level(&level.name);
                moved.map_or(0.0, |t| (t.read as f64 * read + t.written as f64 * write) * 1e-12)
            }),
            mm2: self.mm2(&level.part, level.bytes).map(|mm2| mm2 * level.count as f64),
        });
        let lanes = machine.all_lanes().enumerate().map(|(at, lanes)| Priced {
            part: lanes.name.clone(),
            // The main ones work.
            joules: self.picojoules(&lanes.part, None).map(|[unit, _]| match at {
                0 => work * unit * 1e-12,
                _ => 0.0,
            }),
            mm2: self.mm2(&lanes.part, None).map(|mm2| mm2 * lanes.count as f64),
        });
        Price { table: self.name.clone(), kind: self.kind, parts: levels.chain(lanes).collect() }
    }
}

impl Part {
    /// A figure at a size: between two points as a power of the size; outside them that of the nearest.
    fn at(&self, bytes: Option<u64>, of: impl Fn(&Point) -> Option<f64>) -> Option<f64> {
        let bytes = bytes.unwrap_or(0);
        let points = self.points.iter().filter_map(|p| Some((p.bytes, of(p)?)));
        let points: Vec<_> = points.collect();
        let after = points.iter().position(|(b, _)| *b >= bytes);
        Some(match after {
            None => points.last()?.1,
            Some(0) => points.first()?.1,
            Some(i) => {
                let ((b0, y0), (b1, y1)) = (points[i - 1], points[i]);
                if b1 == bytes || b0 == 0 || y0 <= 0.0 || y1 <= 0.0 {
                    return Some(y1);
                }
                let share = (bytes as f64 / b0 as f64).ln() / (b1 as f64 / b0 as f64).ln();
                y0 * (y1 / y0).powf(share)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::*;

    #[test]
    fn sizes_between_points_follow_a_power() {
        let text = "name = 'x'\nkind = 'tables'\nsource = 's'\n[[part]]\nname = 'm'\nbits = 4\nsource = 's'\n\
                    [[part.point]]\nbytes = 64\nread_pj = 4\nmm2 = 1\n[[part.point]]\nbytes = 256\nread_pj = 16\nmm2 = 1\n";
        let tables = Tables::from_toml("x", text).unwrap();
        let at = |bytes| tables.picojoules("m", Some(bytes)).unwrap()[1];
        assert!((at(128) - 2.0).abs() < 1e-12 && at(1) == 1.0 && at(1 << 20) == 4.0);
        assert_eq!((tables.mm2("m", Some(100)), tables.mm2("no", None)), (Some(1.0), None));
        let wrong = text.replace("bytes = 256", "bytes = 6");
        assert!(Tables::from_toml("x.toml", &wrong).unwrap_err().to_string().starts_with("x.toml: part m"));
    }

    /// Synthesised figures are those of the results that the repository keeps.
    #[test]
    fn synthesised_tables_are_what_synthesis_kept() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut compared = 0;
        for tables in super::super::shipped::all() {
            for part in tables.parts.iter().filter(|_| tables.kind == Kind::Synthesised) {
                let file = part.source.split([',', ';']).next().unwrap();
                let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
                let kept: serde_json::Value = serde_json::from_str(&text).unwrap();
                let same = |what: &str, ours: Option<f64>, theirs: &serde_json::Value| {
                    if let Some(ours) = ours {
                        let theirs = theirs.as_f64().unwrap();
                        assert!((ours / theirs - 1.0).abs() < 1e-5, "{file}: {what} {ours}, not {theirs}");
                    }
                };
                same("clock_ps", part.clock_ps, &kept["clock_ps"]);
                let point = part.points.first();
                let picojoules = point.and_then(|p| p.read_pj);
                same("picojoules", picojoules, &kept["power"]["picojoules_a_clock"]);
                same("um2", point.and_then(|p| p.mm2).map(|mm2| mm2 * 1e6), &kept["area_um2"]);
                compared += 1;
            }
        }
        assert!(compared >= 9, "{compared}");
    }

    #[test]
    fn every_lane_of_a_chip_that_contracts_is_priced() {
        for name in ["thesis", "onionchopper", "gathered", "lwe", "deep"] {
            let part = super::super::machine(name).unwrap().lanes.part;
            for tables in Tables::shipped_all() {
                let priced = tables.picojoules(&part, None).zip(tables.mm2(&part, None));
                assert!(priced.is_some(), "{part} of {name} in {}", tables.name);
            }
        }
    }

    #[test]
    fn the_calibrated_table_gives_the_published_shares() {
        let (chip, problem) = (super::super::machine("thesis").unwrap(), Problem::onionpir(64.0));
        let tables = Tables::shipped_all();
        let cost = super::super::cost(&problem, &chip, &super::super::thesis_mapping(), &tables).unwrap();
        let calibrated = cost.prices.iter().find(|p| p.kind == Kind::Calibrated).unwrap();
        let share = |part: &str| calibrated.parts.iter().find(|p| p.part == part).unwrap().joules.unwrap();
        assert!((calibrated.joules() - 169.09).abs() < 0.01, "{}", calibrated.joules());
        assert!(
            (share("lanes") / 169.09 - 0.3343).abs() < 1e-4 && (share("SSD") / 169.09 - 0.6499).abs() < 1e-4
        );
        assert!((calibrated.mm2() - 6.87).abs() < 0.005, "{}", calibrated.mm2());
        let synthesised = cost.prices.iter().find(|p| p.kind == Kind::Synthesised).unwrap();
        assert_eq!(synthesised.missing(), ["SSD", "DRAM", "SRAM", "RF"]);
    }
}
