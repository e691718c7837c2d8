//! Machines and tables that come with the engine.

use super::machine::Machine;
use super::read::machine_from_toml;
use super::tables::Tables;

macro_rules! files {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../", $folder, "/", $name, ".toml")))),+]
    };
}

const MACHINES: &[(&str, &str)] = files!("machines":
    "thesis", "thesis-sweep", "onionchopper", "gathered", "lwe", "deep", "sifo", "sifo-half-gates", "phepu", "next-ssd", "next-gddr", "next-hbm", "xeon", "h100", "h200"
);
const TABLES: &[(&str, &str)] =
    files!("tables": "calibrated", "sky130", "sg13g2", "osu018", "nangate45", "ecp5", "published");

/// The clock that this project's synthesis of something reached, and in what.
#[derive(Clone, Debug, PartialEq)]
pub struct Reached {
    /// Clocks a second, before layout or, on an FPGA, behind place and route.
    pub clock: f64,
    /// The table that has it: a library or an FPGA.
    pub table: String,
    /// Where the result is kept.
    pub source: String,
}

/// The fastest clock of a part among the tables that come with the engine; none: it was not synthesised.
#[must_use]
pub fn reached(part: &str) -> Option<Reached> {
    let of = |tables: Tables| {
        let clock = tables.clock(part)?;
        let source = tables.parts.iter().find(|p| p.name == part)?.source.clone();
        Some(Reached { clock, table: tables.name, source })
    };
    all().filter_map(of).max_by(|a, b| a.clock.total_cmp(&b.clock))
}

/// Every table that comes with the engine.
pub(super) fn all() -> impl Iterator<Item = Tables> {
    TABLES.iter().filter_map(|(name, _)| Tables::shipped(name))
}

/// Names of the machines that come with the engine.
pub fn machines() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// A machine that comes with the engine; none: it has no such.
///
/// # Panics
/// Never: a test reads every one.
#[must_use]
pub fn machine(name: &str) -> Option<Machine> {
    let (name, text) = MACHINES.iter().find(|(n, _)| *n == name)?;
    Some(machine_from_toml(name, text).expect("machines that come with the engine are read by a test"))
}

impl Tables {
    /// A table that comes with the engine; none: it has no such.
    ///
    /// # Panics
    /// Never: a test reads every one.
    #[must_use]
    pub fn shipped(name: &str) -> Option<Self> {
        let (name, text) = TABLES.iter().find(|(n, _)| *n == name)?;
        Some(Self::from_toml(name, text).expect("tables that come with the engine are read by a test"))
    }

    /// All tables that come with the engine and price something: calibrated, synthesised, published ones.
    #[must_use]
    pub fn shipped_all() -> Vec<Self> {
        all().filter(Self::prices).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_file_is_read_and_bears_its_name() {
        for name in machines() {
            assert_eq!(machine(name).unwrap().name, name);
        }
        for (name, _) in TABLES {
            assert_eq!(Tables::shipped(name).unwrap().name, *name);
        }
        assert!(machine("none").is_none() && Tables::shipped("none").is_none());
    }

    #[test]
    fn chips_have_the_clock_that_synthesis_reached() {
        let clock = |part| reached(part).map(|r| ((r.clock / 1e5).round() / 10.0, r.table));
        assert_eq!(clock("onionchopper"), Some((535.6, "nangate45".into())));
        assert_eq!(clock("sifo"), Some((77.3, "ecp5".into())));
        assert_eq!(clock("phepu"), Some((144.1, "osu018".into())));
        assert_eq!(clock("mac64").map(|c| c.1), Some("nangate45".into()), "the fastest");
        assert_eq!(clock("ssd"), None);
    }
}
