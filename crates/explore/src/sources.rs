//! A sweep as it is written.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::sweep::{MAX_BYTES, PRESETS, Sweep, beside};

/// The text of a sweep and those of the files that it names, from which the same sweep can be read on another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sources {
    /// The file, as people are told of it.
    file: String,
    /// Its text.
    text: String,
    /// By the name that the sweep says: what people are told, and the text.
    others: BTreeMap<String, (String, String)>,
}

impl Sources {
    /// Reads a file, or where there is none the sweep that comes with the engine under this name.
    ///
    /// # Errors
    /// The file can't be read or is not a sweep (one line with file, key, value and remedy), or no sweep has that name.
    pub fn open(file: Option<&Path>, preset: Option<&str>) -> anyhow::Result<(Self, Sweep)> {
        let Some(file) = file else {
            let preset = PRESETS.iter().find(|(name, _)| Some(*name) == preset);
            let (name, text) = preset.context("there is no such preset")?;
            let sources = Self { file: (*name).into(), text: (*text).into(), ..Self::default() };
            let sweep = sources.sweep()?;
            return Ok((sources, sweep));
        };
        let text = blindcore_files::small::read_text(file, MAX_BYTES)?.as_str().to_owned();
        let mut sources = Self { file: file.display().to_string(), text, ..Self::default() };
        let others = &mut sources.others;
        let sweep = Sweep::parse(&sources.file, &sources.text, &mut |name| {
            let other = beside(file, name)?;
            others.insert(name.to_owned(), other.clone());
            Ok(other)
        })?;
        Ok((sources, sweep))
    }

    /// Reads the sweep from these texts alone.
    ///
    /// # Errors
    /// It is not a sweep: one line with file, key, value and remedy.
    pub fn sweep(&self) -> anyhow::Result<Sweep> {
        let other = |name: &str| self.others.get(name).cloned().context("its text is missing");
        Ok(Sweep::parse(&self.file, &self.text, &mut |name| other(name))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_the_same_from_its_texts_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.toml");
        let machine = "name = 'mine'\nabout = 'a machine'\nclock = 1e9\n[[level]]\nname = 'SRAM'\nsize = 'unlimited'\n\
            rate = 1\npart = 'sram'\n[lanes]\ncount = 1\ncontract = 1\npart = 'mac64'\n";
        let text = "name = 's'\nabout = 'x'\nmachine = 'mine.toml'\n[[problem]]\nname = 'x'\ncontract = [1, 4, 1, 1, 4, 1, 1, 1]\n";
        std::fs::write(folder.path().join("mine.toml"), machine).unwrap();
        std::fs::write(&path, text).unwrap();
        let (sources, sweep) = Sources::open(Some(&path), None).unwrap();
        assert_eq!(sweep.machine.name, "mine");
        std::fs::remove_dir_all(folder).unwrap();
        let sent = serde_json::to_string(&sources).unwrap();
        let read: Sources = serde_json::from_str(&sent).unwrap();
        assert_eq!(read.sweep().unwrap(), sweep);
        assert_eq!(read.sweep().unwrap().digest(), sweep.digest());
        let without = Sources { others: BTreeMap::new(), ..sources };
        assert!(without.sweep().unwrap_err().to_string().contains("its text is missing"));
        assert!(Sources::open(None, Some("none")).is_err());
    }
}
