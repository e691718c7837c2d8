//! What machines cost to buy, from a file that people edit: each figure with its source, or with "assumed".

use blindcore_model::chip::{Machine, Ports, Tables, Wrong, one_line};
use blindcore_units::quoted;
use serde::{Deserialize, Serialize};

/// Prices that come with the engine.
pub const SHIPPED: [(&str, &str); 1] = [("2026", include_str!("../prices/2026.toml"))];

/// A price of something, in dollars, and where it is from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The part that it is, as machines name it.
    pub part: String,
    /// Dollars of what is behind one port.
    pub dollars: f64,
    /// Where that is from.
    pub source: String,
}

/// What a whole machine costs and draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    /// The machine.
    pub name: String,
    /// Dollars.
    pub dollars: f64,
    /// Watts while it works.
    pub watts: f64,
    /// Where these are from.
    pub source: String,
}

/// What silicon costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silicon {
    /// Dollars of a square millimetre.
    pub dollars_mm2: f64,
    /// The table of areas whose square millimetres these are.
    pub table: String,
    /// Square millimetres of the largest die.
    pub die_mm2: f64,
    /// Where that is from.
    pub source: String,
}

/// What there is once for each chip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Dollars.
    pub dollars: f64,
    /// Where that is from.
    pub source: String,
}

/// A file of prices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Its name.
    pub name: String,
    /// What it is, and what it leaves out.
    pub about: String,
    /// Silicon.
    pub silicon: Silicon,
    /// What there is once.
    pub board: Board,
    /// Memories beside a chip: a level has as many as it has ports.
    #[serde(default, rename = "device")]
    pub devices: Vec<Device>,
    /// Whole machines.
    #[serde(default, rename = "machine")]
    pub machines: Vec<Whole>,
}

impl Prices {
    /// Reads prices; `file` names them in what is refused.
    ///
    /// # Errors
    /// They are none: one line with the file, the key or line, the value, the remedy.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, Wrong> {
        let wrong = |why: String| Wrong { file: file.into(), why };
        let prices: Self = toml::from_str(text).map_err(|e| wrong(one_line(text, &e)))?;
        let devices = prices.devices.iter().map(|d| (d.part.as_str(), "dollars", d.dollars, &d.source));
        let machines = prices.machines.iter().flat_map(|m| {
            [
                (m.name.as_str(), "dollars", m.dollars, &m.source),
                (m.name.as_str(), "watts", m.watts, &m.source),
            ]
        });
        let all = devices.chain(machines).chain([
            ("silicon", "dollars_mm2", prices.silicon.dollars_mm2, &prices.silicon.source),
            ("silicon", "die_mm2", prices.silicon.die_mm2, &prices.silicon.source),
            ("board", "dollars", prices.board.dollars, &prices.board.source),
        ]);
        for (of, key, value, source) in all {
            if !(value.is_finite() && (0.0..=1e9).contains(&value)) {
                return Err(wrong(format!("{of}: {key} is {value}; say 0 to 1e9")));
            }
            if source.trim().is_empty() {
                return Err(wrong(format!("{of}: source is empty; say where {key} is from, or \"assumed\"")));
            }
        }
        if Tables::shipped(&prices.silicon.table).is_none() {
            let why = format!(
                "silicon: table is {}; name one that comes with the engine, such as \"published\"",
                quoted(&prices.silicon.table)
            );
            return Err(wrong(why));
        }
        Ok(prices)
    }

    /// Dollars of a machine: as a whole, where it is listed, or its memories, its silicon and its board.
    ///
    /// # Errors
    /// Neither it nor its outermost level is listed, or its silicon is larger than a die.
    pub fn dollars(&self, machine: &Machine) -> Result<f64, String> {
        if let Some(whole) = self.whole(&machine.name) {
            return Ok(whole.dollars);
        }
        let device = |part: &str| self.devices.iter().find(|device| device.part == part);
        let outermost = &machine.levels[0].part;
        if device(outermost).is_none() {
            let part = quoted(outermost);
            return Err(format!("prices {} have no [[device]] {part}; add it", self.name));
        }
        let levels = machine.levels.iter().filter_map(|level| {
            let ports = match level.ports {
                Ports::Separate { read, .. } => read,
                Ports::Shared(ports) => ports,
            };
            Some(device(&level.part)?.dollars * ports as f64 * level.count as f64)
        });
        let area = Tables::shipped(&self.silicon.table).map_or(0.0, |tables| tables.area(machine));
        if area > self.silicon.die_mm2 {
            return Err(format!("its {area:.0} mm2 are over the {} of a die", self.silicon.die_mm2));
        }
        Ok(levels.sum::<f64>() + area * self.silicon.dollars_mm2 + self.board.dollars)
    }

    /// A machine that is listed as a whole.
    #[must_use]
    pub fn whole(&self, name: &str) -> Option<&Whole> {
        self.machines.iter().find(|whole| whole.name == name)
    }
}

#[cfg(test)]
mod tests {
    use blindcore_model::chip::machine;

    use super::*;

    #[test]
    fn a_machine_costs_its_memories_its_silicon_and_its_board() {
        let (name, text) = SHIPPED[0];
        let prices = Prices::from_toml(name, text).unwrap();
        let mut chip = machine("next-ssd").unwrap();
        let one = prices.dollars(&chip).unwrap();
        chip.levels[0].ports = Ports::Separate { read: 4, write: 4 };
        assert!((prices.dollars(&chip).unwrap() - one - 3.0 * 700.0).abs() < 1e-6);
        assert_eq!(prices.dollars(&machine("h200").unwrap()), Ok(prices.whole("h200").unwrap().dollars));
        chip.lanes.count = 1 << 14;
        let error = prices.dollars(&chip).unwrap_err();
        assert!(error.contains("are over the 858 of a die"), "{error}");
        let error = prices.dollars(&machine("h100").unwrap()).unwrap_err();
        assert!(error.contains("no [[device]]"), "{error}");
    }

    #[test]
    fn wrong_prices_are_one_line_with_file_key_value_and_remedy() {
        let (_, text) = SHIPPED[0];
        for (from, to, part) in [
            ("dollars = 700.0", "dollars = -1.0", "ssd5: dollars is -1; say 0 to 1e9"),
            ("watts = 700.0", "watts = nan", "h200: watts is NaN; say 0 to 1e9"),
            ("watts = 700.0", "wats = 700.0", "unknown key `wats`"),
            ("watts = 700.0", "", "missing key `watts`"),
            (
                "source = \"assumed: package, board, power, a link to a host\"",
                "source = ' '",
                "board: source is empty",
            ),
            ("table = \"published\"", "table = \"none\"", "silicon: table is \"none\"; name one"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let error = Prices::from_toml("mine.toml", &changed).unwrap_err().to_string();
            assert!(error.starts_with("mine.toml: ") && error.contains(part), "{error}, not {part}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
