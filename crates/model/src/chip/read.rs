//! Machines and tables from text.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::machine::{Lanes, Level, Machine, Moduli, Pipeline, Ports, Rate};
use super::problem::Operation;

/// What is wrong with a file, in a line: the file, the key, the value, the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

impl std::error::Error for Wrong {}

/// A refusal of the TOML reader's in one line, with the line's number.
#[must_use]
pub fn one_line(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
    let said = error.message().trim().replace(['\n', '\r'], " ");
    let said = said.replace("unknown field", "unknown key").replace("missing field", "missing key");
    format!("line {line}: {said}; docs/how-to/explore.md has the keys")
}

/// Reads TOML into a form.
pub(super) fn from_toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Wrong> {
    toml::from_str(text).map_err(|e| Wrong { file: file.into(), why: one_line(text, &e) })
}

/// A number, or text that says one.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Said {
    Whole(u64),
    Text(String),
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(n) => write!(f, "{n}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Said {
    /// A fraction: `2`, `"67/100"`.
    fn rate(&self) -> Option<Rate> {
        match self {
            Self::Whole(n) => Some(Rate::whole(*n)),
            Self::Text(text) => {
                let (num, den) = text.split_once('/').unwrap_or((text, "1"));
                Some(Rate { num: num.trim().parse().ok()?, den: den.trim().parse().ok().filter(|d| *d > 0)? })
            }
        }
    }

    /// Bytes; `Some(None)` for what is unlimited.
    fn bytes(&self) -> Option<Option<u64>> {
        match self {
            Self::Whole(n) => Some(Some(*n)),
            Self::Text(text) if text == "unlimited" => Some(None),
            Self::Text(text) => blindcore_units::size(text).map(Some),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineFile {
    name: String,
    about: String,
    clock: f64,
    #[serde(default = "word")]
    word: u64,
    #[serde(rename = "level")]
    levels: Vec<LevelFile>,
    lanes: LanesFile,
    /// Other kinds of lanes.
    #[serde(default)]
    beside: Vec<LanesFile>,
    #[serde(default)]
    moduli: ModuliFile,
    pipeline: Option<PipelineFile>,
}

fn word() -> u64 {
    64
}

fn one() -> u64 {
    1
}

fn lanes() -> String {
    "lanes".into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelFile {
    name: String,
    size: Said,
    #[serde(default = "one")]
    count: u64,
    /// Bits of a port.
    width: Option<u64>,
    /// Words a clock of a port, for what is no whole width.
    rate: Option<Said>,
    read_ports: Option<u64>,
    write_ports: Option<u64>,
    shared_ports: Option<u64>,
    #[serde(default = "one")]
    buffers: u64,
    #[serde(default)]
    part: String,
    #[serde(default)]
    off_chip: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LanesFile {
    #[serde(default = "lanes")]
    name: String,
    word: Option<u64>,
    count: u64,
    contract: Option<Said>,
    transform: Option<Said>,
    bigmod: Option<Said>,
    garble: Option<Said>,
    #[serde(default)]
    latched: bool,
    #[serde(default)]
    fill: u64,
    #[serde(default)]
    part: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ModuliFile {
    held: Option<u64>,
    change: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PipelineFile {
    latency: u64,
    reads: u64,
    tiles: u64,
    waiting: u64,
    leaving: u64,
}

/// Reads a machine and checks it; `file` names it in what is refused.
///
/// ```
/// use blindcore_model::chip::machine_from_toml;
///
/// let text = "name = 'one lane'\nabout = 'an example'\nclock = 1e9\n\
///             [[level]]\nname = 'memory'\nsize = 'unlimited'\nwidth = 64\n[lanes]\ncount = 1\ncontract = 1\n";
/// assert_eq!(machine_from_toml("m.toml", text).unwrap().levels[0].port.num, 64);
/// let wrong = machine_from_toml("m.toml", &text.replace("width = 64", "width = 100")).unwrap_err();
/// assert_eq!(
///     wrong.to_string(),
///     "m.toml: level memory: width is 100 bits, and a word has 64; say a multiple of it, or rate in words a clock"
/// );
/// ```
///
/// # Errors
/// The text is no machine: the file, the key or line, the value, the remedy.
pub fn machine_from_toml(file: &str, text: &str) -> Result<Machine, Wrong> {
    let wrong = |why: String| Wrong { file: file.into(), why };
    let read: MachineFile = from_toml(file, text)?;
    let levels = read.levels.iter().map(|level| level_of(level, read.word)).collect::<Result<Vec<_>, _>>();
    let lanes_of = |lanes| lanes_of(lanes, read.word);
    let beside = read.beside.into_iter().map(lanes_of).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    let machine =
        Machine {
            name: read.name,
            about: read.about,
            clock: read.clock,
            word: read.word,
            levels: levels.map_err(wrong)?,
            lanes: lanes_of(read.lanes).map_err(wrong)?,
            beside,
            moduli: Moduli { held: read.moduli.held, change: read.moduli.change },
            pipeline: read.pipeline.map(|PipelineFile { latency, reads, tiles, waiting, leaving }| {
                Pipeline { latency, reads, tiles, waiting, leaving }
            }),
        };
    machine.check().map_err(wrong)?;
    Ok(machine)
}

fn lanes_of(lanes: LanesFile, word: u64) -> Result<Lanes, String> {
    let LanesFile { name, count, latched, fill, part, .. } = lanes;
    let said = [lanes.contract, lanes.transform, lanes.bigmod, lanes.garble];
    let mut rates = [None; 4];
    for (at, said) in said.iter().enumerate() {
        if let Some(said) = said {
            let key = Operation::ALL[at].name();
            let why =
                || format!("{name}: {key} is {said}; say what a lane does a clock, such as 1 or \"1/6\"");
            rates[at] = Some(said.rate().ok_or_else(why)?);
        }
    }
    Ok(Lanes { name, word: lanes.word.unwrap_or(word), count, rates, latched, fill, part })
}

fn level_of(level: &LevelFile, word: u64) -> Result<Level, String> {
    let name = &level.name;
    let bytes = level.size.bytes().ok_or_else(|| {
        format!("level {name}: size is {}; say bytes, such as \"4 KiB\", or \"unlimited\"", level.size)
    })?;
    let port = match (level.width, &level.rate) {
        (Some(width), None) if word > 0 && width.is_multiple_of(word) => Rate::whole(width),
        (Some(width), None) => {
            let remedy = "say a multiple of it, or rate in words a clock";
            return Err(format!("level {name}: width is {width} bits, and a word has {word}; {remedy}"));
        }
        (None, Some(said)) => {
            let rate = said.rate().filter(|r| r.num <= 1 << 32);
            let rate = rate.ok_or_else(|| {
                format!("level {name}: rate is {said}; say words a clock, such as 2 or \"67/100\"")
            })?;
            reduced(rate.num * word, rate.den)
        }
        (None, None) => {
            return Err(format!("level {name}: neither width nor rate is given; say one of them"));
        }
        (Some(_), Some(_)) => {
            return Err(format!("level {name}: width and rate are both given; say one of them"));
        }
    };
    let ports = match (level.shared_ports, level.read_ports, level.write_ports) {
        (Some(shared), None, None) => Ports::Shared(shared),
        (None, read, write) => Ports::Separate { read: read.unwrap_or(1), write: write.unwrap_or(1) },
        _ => {
            return Err(format!("level {name}: shared_ports beside read_ports or write_ports; say one kind"));
        }
    };
    Ok(Level {
        name: name.clone(),
        bytes,
        count: level.count,
        port,
        ports,
        buffers: level.buffers,
        part: level.part.clone(),
        off_chip: level.off_chip,
    })
}

fn reduced(num: u64, den: u64) -> Rate {
    let by = gcd(num, den).max(1);
    Rate { num: num / by, den: den / by }
}

/// The greatest common divisor.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::*;

    const GOOD: &str = "name = 'x'\nabout = 'y'\nclock = 1e9\n\
        [[level]]\nname = 'SSD'\nsize = 'unlimited'\nrate = '67/100'\n\
        [[level]]\nname = 'SRAM'\nsize = '4 KiB'\nwidth = 256\ncount = 2\nshared_ports = 1\n\
        [lanes]\ncount = 4\ncontract = 1\ngarble = '1/6'\n";

    #[test]
    fn a_pipeline_is_four_levels_with_room_for_one_of_each() {
        let good = include_str!("../../machines/onionchopper.toml");
        for (from, to, part) in [
            ("reads = 64", "reads = 0", "pipeline: reads is 0; say 1 to 2^20"),
            ("reads = 64", "reads = 64\nread = 1", "unknown key `read`"),
            ("latency = 30", "", "missing key `latency`"),
        ] {
            let error = machine_from_toml("bad.toml", &good.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with("bad.toml: ") && error.contains(part), "{error}, not {part}");
        }
        let two = format!("{GOOD}[pipeline]\nlatency = 1\nreads = 1\ntiles = 1\nwaiting = 1\nleaving = 1\n");
        let error = machine_from_toml("bad.toml", &two).unwrap_err().to_string();
        assert!(error.contains("pipeline: the machine has 2 levels; a pipeline has four"), "{error}");
    }

    #[test]
    fn lanes_of_several_kinds_do_what_they_take() {
        let text = format!("{GOOD}[[beside]]\nname = 'narrow'\nword = 32\ncount = 16\ncontract = 2\n");
        let machine = machine_from_toml("good.toml", &text).unwrap();
        let by = |bits: u64, operation| {
            let problem = Problem { operation, bits: [bits; 3], ..Problem::contract([1; 8]) };
            machine.doing(&problem).lanes.name.clone()
        };
        let does = [
            (32, Operation::Contract),
            (8, Operation::Contract),
            (33, Operation::Contract),
            (8, Operation::Garble),
        ];
        assert_eq!(does.map(|(bits, operation)| by(bits, operation)), ["narrow", "narrow", "lanes", "lanes"]);
    }

    #[test]
    fn a_wrong_file_is_one_line_with_file_key_value_and_remedy() {
        let good = machine_from_toml("good.toml", GOOD).unwrap();
        assert_eq!(
            (good.fan_out(0), good.fan_out(1), good.levels[0].port),
            (2, 2, Rate { num: 1072, den: 25 })
        );
        for (from, to, parts) in [
            ("clock = 1e9", "clock = 1e9\nclok = 2", "line 4: unknown key `clok`"),
            ("'4 KiB'", "0", "level SRAM: size is 0; say bytes"),
            ("'4 KiB'", "'4 KB!'", "level SRAM: size is \"4 KB!\"; say bytes"),
            ("width = 256", "width = 100", "level SRAM: width is 100 bits, and a word has 64"),
            ("width = 256", "width = 0", "level SRAM: rate is 0; say words a clock above 0"),
            ("count = 2", "count = 0", "level SRAM: count is 0; say a multiple of the 1 of SSD"),
            ("count = 4", "count = 3", "lanes: count is 3; say a multiple of the 2 of SRAM"),
            ("'67/100'", "'67/0'", "level SSD: rate is \"67/0\"; say words a clock"),
            ("rate = '67/100'", "", "level SSD: neither width nor rate"),
            ("shared_ports = 1", "shared_ports = 1\nread_ports = 1", "level SRAM: shared_ports beside"),
            ("shared_ports = 1", "read_ports = 0", "level SRAM: ports is 0; say 1 to 1024"),
            ("contract = 1", "contract = 0", "lanes: a rate is 0; say what a lane does"),
            ("contract = 1\ngarble = '1/6'", "", "lanes: no operation has a rate"),
            ("garble = '1/6'", "garble = 'x'", "lanes: garble is \"x\"; say what"),
            ("garble = '1/6'", "[[beside]]\ncount = 4\ncontract = 1", "beside: \"lanes\" is there twice"),
            (
                "garble = '1/6'",
                "[[beside]]\nname = 'n'\ncount = 3\ncontract = 1",
                "n: count is 3; say a multiple",
            ),
            ("garble = '1/6'", "[[beside]]\nname = 'n'\ncount = 4", "n: no operation has a rate"),
            (
                "garble = '1/6'",
                "[[beside]]\nname = 'n'\ncount = 4\nword = 0\ngarble = 1",
                "n: word is 0; say 1 to 4096",
            ),
            ("clock = 1e9", "clock = 0", "clock is 0; say clocks a second"),
            ("name = 'x'", "", "missing key `name`"),
            ("shared_ports = 1", "buffers = 3", "level SRAM: buffers is 3; say 1, or 2"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from}");
            let error = machine_from_toml("bad.toml", &text).unwrap_err().to_string();
            assert!(error.starts_with("bad.toml: ") && error.contains(parts), "{error}, not {parts}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
