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
    "thesis", "thesis-sweep", "onionchopper", "gathered", "lwe", "deep", "sifo", "sifo-half-gates", "phepu", "xeon", "h100", "h200"
);
const TABLES: &[(&str, &str)] = files!("tables": "calibrated", "sky130", "sg13g2", "osu018", "published");

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

    /// All tables that come with the engine: calibrated, synthesised, published ones.
    #[must_use]
    pub fn shipped_all() -> Vec<Self> {
        TABLES.iter().filter_map(|(name, _)| Self::shipped(name)).collect()
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
}
