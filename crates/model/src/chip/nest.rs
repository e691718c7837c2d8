//! A mapping, and what it costs.

use std::borrow::Cow;

use blindcore_accel::cost::{Cost, Tensors, Traffic};

use super::machine::{Level, Machine, Ports, Rate};
use super::problem::{Dim, Operation, Problem, Tensor};
use super::tables::Tables;

/// What a level does with its tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nest {
    /// Loops in time, the outermost first.
    pub temporal: Vec<(Dim, u64)>,
    /// Loops in space, over the memories or lanes below.
    pub spatial: Vec<(Dim, u64)>,
    /// Whether A, B and C are kept here; what is not passes from the level above to the level below. A tensor that no level above keeps
    /// either begins and ends here, whole: it comes from what ran before on the same machine, or goes to what runs next ([`Mapping::home`]).
    pub kept: [bool; 3],
}

impl Nest {
    /// Loops in time and in space, all tensors kept.
    #[must_use]
    pub fn new(temporal: &[(Dim, u64)], spatial: &[(Dim, u64)]) -> Self {
        Self { temporal: temporal.to_vec(), spatial: spatial.to_vec(), kept: [true; 3] }
    }

    fn loops(&self) -> impl DoubleEndedIterator<Item = (Dim, u64)> + '_ {
        self.temporal.iter().chain(&self.spatial).copied()
    }
}

/// A loop nest over all levels, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// A nest a level.
    pub levels: Vec<Nest>,
}

impl Mapping {
    /// The level that holds a whole tensor: the outermost that keeps it.
    #[must_use]
    pub fn home(&self, tensor: Tensor) -> Option<usize> {
        self.levels.iter().position(|nest| nest.kept[tensor as usize])
    }

    /// The mapping in a line: `SSD D32 | DRAM C2 K2 D128 J8 N512, J2 in space | ...`.
    #[must_use]
    pub fn text(&self, machine: &Machine) -> String {
        let loops = |of: &[(Dim, u64)]| of.iter().map(|(d, n)| format!(" {d}{n}")).collect::<String>();
        let levels = self.levels.iter().zip(&machine.levels).map(|(nest, level)| {
            let mut text = level.name.clone() + &loops(&nest.temporal);
            if !nest.spatial.is_empty() {
                text += &format!(",{} in space", loops(&nest.spatial));
            }
            let passed: Vec<_> = Tensor::ALL
                .iter()
                .zip(nest.kept)
                .filter(|(_, kept)| !kept)
                .map(|(tensor, _)| tensor.name())
                .collect();
            if !passed.is_empty() {
                text += &format!(", without {}", passed.join(" and "));
            }
            text
        });
        levels.collect::<Vec<_>>().join(" | ")
    }
}

/// Section 6.3's mapping of 64 GB of OnionPIR onto the thesis's optimum.
#[must_use]
pub fn thesis_mapping() -> Mapping {
    use Dim::{C, D, J, K, N, P};
    let levels = vec![
        Nest::new(&[(D, 32)], &[]),
        Nest::new(&[(C, 2), (K, 2), (D, 128), (J, 8), (N, 512)], &[(J, 2)]),
        Nest::new(&[(J, 2), (N, 2), (P, 2)], &[]),
        Nest::new(&[(J, 8), (N, 2)], &[]),
    ];
    Mapping { levels }
}

/// Why a mapping does not fit, or no mapping does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit(pub String);

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

/// What words take of ports: the bits of them all, over what the ports of all memories move.
fn clocks(bits: u128, port: Rate, ports: u64, memories: u64) -> u64 {
    let each = u128::from(port.num) * u128::from(ports) * u128::from(memories);
    u64::try_from((bits * u128::from(port.den)).div_ceil(each)).unwrap_or(u64::MAX)
}

/// What a problem costs on a machine when it is mapped so.
///
/// # Errors
/// The mapping is not one of this problem on this machine: which level, what, the value, the limit.
pub fn cost(
    problem: &Problem,
    machine: &Machine,
    mapping: &Mapping,
    tables: &[Tables],
) -> Result<Cost, Misfit> {
    let machine = &*machine.doing(problem);
    let levels = &mapping.levels;
    let n = machine.levels.len();
    check(problem, machine, mapping)?;
    // Memories in use, and lanes.
    let mut used = vec![1u64];
    for nest in levels {
        used.push(used[used.len() - 1] * nest.spatial.iter().map(|(_, f)| f).product::<u64>());
    }
    let tile = |level: usize, tensor: Tensor| -> u128 {
        let inner = levels[level..].iter().flat_map(Nest::loops);
        inner.filter(|(d, _)| tensor.has(*d)).map(|(_, f)| u128::from(f)).product()
    };
    let mut traffic: Vec<Tensors> = (0..n)
        .map(|at| {
            let held = |t: Tensor| if mapping.home(t) == Some(at) { problem.words(t) } else { tile(at, t) };
            let tile = Tensor::ALL.map(|t| if levels[at].kept[t as usize] { held(t) } else { 0 });
            Tensors { tile, ..Tensors::default() }
        })
        .collect();
    for (at, level) in machine.levels.iter().enumerate() {
        let words = traffic[at].tile;
        let bits: u128 =
            Tensor::ALL.iter().map(|t| words[*t as usize] * u128::from(problem.bits[*t as usize])).sum();
        let bytes = bits.div_ceil(8) * u128::from(if at == 0 { 1 } else { level.buffers });
        if let Some(room) = level.bytes
            && bytes > u128::from(room)
        {
            let why = format!(
                "level {}: a tile takes {bytes} bytes, over its {room}; cut tiles smaller",
                level.name
            );
            return Err(Misfit(why));
        }
    }
    for tensor in Tensor::ALL {
        let t = tensor as usize;
        let kept: Vec<usize> = (0..n).filter(|l| levels[*l].kept[t]).chain([n]).collect();
        for pair in kept.windows(2) {
            let (parent, child) = (pair[0], pair[1]);
            let to_lanes = child == n;
            let halves = u128::from(problem.halves_passed(room(problem, machine, child))[t]);
            let mut loops: Vec<(Dim, u64)> = levels[..child]
                .iter()
                .flat_map(|nest| nest.temporal.iter().copied())
                .filter(|l| l.1 > 1)
                .collect();
            // The tile stays where it is while loops turn that do not index it.
            if !to_lanes || machine.lanes.latched {
                let kept = loops.iter().rposition(|(d, _)| tensor.has(*d)).map_or(0, |last| last + 1);
                loops.truncate(kept);
            }
            let visits: u128 = loops.iter().map(|(_, f)| u128::from(*f)).product();
            let first: u128 =
                loops.iter().filter(|(d, _)| tensor.has(*d)).map(|(_, f)| u128::from(*f)).product();
            let spread: u128 = levels[parent..child]
                .iter()
                .flat_map(|nest| &nest.spatial)
                .filter(|(d, _)| tensor.has(*d))
                .map(|(_, f)| u128::from(*f))
                .product();
            let words = if to_lanes { 1 } else { tile(child, tensor) };
            let at_parent = halves * words * visits * u128::from(used[parent]) * spread / 2;
            let at_child = halves * words * visits * u128::from(used[child]) / 2;
            if tensor == Tensor::C {
                // Sums come up; all but the first of each are fetched down before, by one of those that share it.
                let back = halves * words * (visits - first) * u128::from(used[parent]) * spread / 2;
                traffic[parent].written[t] += at_parent;
                traffic[parent].read[t] += back;
                if !to_lanes {
                    traffic[child].written[t] += back;
                    traffic[child].read[t] += at_child;
                }
            } else {
                traffic[parent].read[t] += at_parent;
                if !to_lanes {
                    traffic[child].written[t] += at_child;
                }
            }
        }
    }
    let bits = |words: &[u128; 3]| (0..3).map(|t| words[t] * u128::from(problem.bits[t])).sum::<u128>();
    let mut bounds = Vec::with_capacity(2 * n + 1);
    for (at, (level, moved)) in machine.levels.iter().zip(&traffic).enumerate() {
        bounds.extend(port_bounds(level, bits(&moved.read), bits(&moved.written), used[at]));
    }
    let rate = machine.lanes.rate(problem.operation).unwrap_or(Rate::whole(1));
    let work = Rate { num: rate.num * problem.work.1, den: rate.den * problem.work.0 };
    let points = problem.points();
    bounds.push((machine.lanes.name.clone().into(), clocks(points, work, 1, used[n])));
    let most = bounds.iter().map(|(_, cycles)| *cycles).max().unwrap_or(0);
    let cycles = most + machine.lanes.fill + machine.moduli.change * changes(mapping);
    let database = traffic[0].read[Tensor::B as usize] * u128::from(problem.bits[Tensor::B as usize]) / 8;
    let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
    let units = whole(points.saturating_mul(problem.work.0.into()) / u128::from(problem.work.1));
    let of = |operation, count| if problem.operation == operation { count } else { 0 };
    let named = machine.levels.iter().zip(&traffic).map(|(level, moved)| Traffic {
        words: Some(*moved),
        ..Traffic::new(level.name.clone(), bits(&moved.read), bits(&moved.written))
    });
    let mut cost = Cost {
        database_bytes: of(Operation::Contract, whole(database)),
        multiplications: of(Operation::Bigmod, whole(points)),
        butterflies: of(Operation::Transform, units),
        and_gates: of(Operation::Garble, whole(points)),
        points,
        lanes: used[n],
        traffic: named.collect(),
        ..Cost::clocked(cycles, machine.clock, bounds)
    };
    let work = points as f64 * problem.work.0 as f64 / problem.work.1 as f64;
    cost.prices = tables.iter().map(|table| table.price(machine, &cost, work)).collect();
    Ok(cost)
}

/// Words of A that a memory of level `at` holds, or a lane, two.
pub(super) fn room(problem: &Problem, machine: &Machine, at: usize) -> Option<u64> {
    let Some(level) = machine.levels.get(at) else { return Some(2) };
    level.bytes.map(|bytes| bytes.saturating_mul(8) / level.buffers / problem.bits[0].max(1))
}

/// That a level can hold a whole tensor: it is one memory.
pub(super) fn home(machine: &Machine, at: usize) -> Result<(), Misfit> {
    let level = &machine.levels[at];
    if at > 0 && level.count > 1 {
        let why = format!(
            "level {} is {} memories, and a tensor that begins there needs one",
            level.name, level.count
        );
        return Err(Misfit(why));
    }
    Ok(())
}

/// What it costs that bits leave the outermost level and others come, beside everything else.
pub(super) fn moved(machine: &Machine, read: u128, written: u128, tables: &[Tables]) -> Cost {
    let level = &machine.levels[0];
    let bounds = port_bounds(level, read, written, 1);
    let cycles = bounds.iter().map(|(_, cycles)| *cycles).max().unwrap_or(0);
    let mut cost = Cost {
        traffic: vec![Traffic::new(level.name.clone(), read, written)],
        ..Cost::clocked(cycles, machine.clock, bounds)
    };
    cost.prices = tables.iter().map(|table| table.price(machine, &cost, 0.0)).collect();
    cost
}

/// Clocks that these bits take of a level's ports, of `memories` memories.
fn port_bounds(level: &Level, read: u128, written: u128, memories: u64) -> Vec<(Cow<'static, str>, u64)> {
    let bound = |what: &str, bits, ports| {
        (format!("{} {what}", level.name).into(), clocks(bits, level.port, ports, memories))
    };
    match level.ports {
        Ports::Separate { read: r, write: w } => vec![bound("read", read, r), bound("write", written, w)],
        Ports::Shared(ports) => vec![bound("ports", read + written, ports)],
    }
}

/// How often the modulus changes: loops from the outermost to the innermost over moduli.
fn changes(mapping: &Mapping) -> u64 {
    let loops: Vec<_> = mapping.levels.iter().flat_map(|nest| &nest.temporal).collect();
    let last = loops.iter().rposition(|(d, f)| *d == Dim::C && *f > 1);
    last.map_or(1, |last| loops[..=last].iter().map(|(_, f)| f).product())
}

/// That the nest is this problem's and spreads over no more than there is.
pub(super) fn check(problem: &Problem, machine: &Machine, mapping: &Mapping) -> Result<(), Misfit> {
    let no = |why: String| Err(Misfit(why));
    can(problem, machine)?;
    if mapping.levels.len() != machine.levels.len() {
        return no(format!(
            "a mapping of {} levels, on a machine of {}",
            mapping.levels.len(),
            machine.levels.len()
        ));
    }
    for dim in Dim::ALL {
        let all = mapping.levels.iter().flat_map(Nest::loops).filter(|(d, _)| *d == dim);
        let product: u128 = all.map(|(_, f)| u128::from(f)).product();
        if product != u128::from(problem.bound(dim)) {
            return no(format!("loops over {dim} make {product}, and its bound is {}", problem.bound(dim)));
        }
    }
    for (at, nest) in mapping.levels.iter().enumerate() {
        let (name, fan) = (&machine.levels[at].name, machine.fan_out(at));
        let spread: u128 = nest.spatial.iter().map(|(_, f)| u128::from(*f)).product();
        if spread > u128::from(fan) {
            return no(format!("level {name} spreads over {spread}, and serves {fan}"));
        }
    }
    for tensor in Tensor::ALL {
        match mapping.home(tensor) {
            None => return no(format!("no level keeps {}; one has to", tensor.name())),
            Some(at) => home(machine, at)?,
        }
    }
    Ok(())
}

/// That a machine does this operation and holds its moduli.
pub(super) fn can(problem: &Problem, machine: &Machine) -> Result<(), Misfit> {
    if problem.bounds.contains(&0) {
        return Err(Misfit("a bound is 0; every one is at least 1".into()));
    }
    if machine.lanes.rate(problem.operation).is_none() {
        let why = format!(
            "lanes of {} have no rate of {}; give [lanes] one",
            machine.name,
            problem.operation.name()
        );
        return Err(Misfit(why));
    }
    let widest = problem.widest();
    if problem.operation == Operation::Contract && widest > machine.lanes.word {
        let why =
            format!("words have {widest} bits, and lanes of {} take {}", machine.name, machine.lanes.word);
        return Err(Misfit(why));
    }
    if let Some(held) = machine.moduli.held
        && problem.bound(Dim::C) > held
    {
        let why = format!("C is {}, and {} holds {held} moduli", problem.bound(Dim::C), machine.name);
        return Err(Misfit(why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Problem, machine};
    use super::*;

    /// What AccelForge 1.0.467 counts for section 6.3's mapping, 24 numbers: reads and writes of A, B and C at each level. All but one
    /// are ours; see [`the_counts_of_the_thesis_mapping_are_accelforges`].
    const ACCELFORGE: [[[u128; 3]; 2]; 4] = [
        [[8_388_608, 8_589_934_592, 0], [0, 0, 33_554_432]],
        [[8_388_608, 8_589_934_592, 536_870_912], [8_388_608, 8_589_934_592, 536_870_912]],
        // It writes a returned sum into both SRAMs that share it, and so 503,316,480 words more than are needed.
        [[8_589_934_592, 8_589_934_592, 3_154_116_608], [8_388_608, 8_589_934_592, 3_154_116_608]],
        [[17_179_869_184, 17_179_869_184, 19_260_243_968], [8_589_934_592, 8_589_934_592, 19_260_243_968]],
    ];

    #[test]
    fn the_counts_of_the_thesis_mapping_are_accelforges() {
        let chip = machine("thesis").unwrap();
        let cost = cost(&Problem::onionpir(64.0), &chip, &thesis_mapping(), &[]).unwrap();
        let mut other = Vec::new();
        for (level, theirs) in cost.traffic.iter().zip(ACCELFORGE) {
            let words = level.words.unwrap();
            for (what, ours, theirs) in
                [("read", words.read, theirs[0]), ("written", words.written, theirs[1])]
            {
                for t in Tensor::ALL {
                    if ours[t as usize] != theirs[t as usize] {
                        other.push((format!("{} {what} {t:?}", level.level), ours[t as usize]));
                    }
                }
            }
        }
        assert_eq!(other, [("SRAM written C".to_owned(), 2_650_800_128)]);
        // The one: sums that come back once a pair of SRAMs, not to each.
        let back = cost.traffic[1].words.unwrap().read[2];
        assert_eq!(2_650_800_128 + (back - 33_554_432), 3_154_116_608);
        // Tiles as section 6.3 prints them.
        let tiles: Vec<_> = cost.traffic.iter().map(|t| t.words.unwrap().tile).collect();
        let mib = 1 << 20;
        assert_eq!(tiles[0], [8 * mib, 8192 * mib, 32 * mib]);
        assert_eq!(tiles[1..], [[262_144, 268_435_456, 1_048_576], [32, 64, 8], [8, 16, 2]]);
        assert_eq!((cost.cycles, cost.holds(), cost.lanes), (12_833_318_209, "SSD read", 2));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let (chip, problem) = (machine("thesis").unwrap(), Problem::onionpir(64.0));
        let refused = |mapping: &Mapping| cost(&problem, &chip, mapping, &[]).unwrap_err().to_string();
        let mut mapping = thesis_mapping();
        mapping.levels[3].temporal[0].1 = 16;
        assert!(refused(&mapping).contains("loops over J make 512"), "{}", refused(&mapping));
        mapping.levels[2].temporal[0].1 = 1;
        assert!(
            refused(&mapping).contains("RF: a tile takes 400 bytes, over its 256"),
            "{}",
            refused(&mapping)
        );
        let mut wide = thesis_mapping();
        wide.levels[1].spatial[0].1 = 4;
        wide.levels[1].temporal[3].1 = 4;
        assert!(refused(&wide).contains("spreads over 4, and serves 2"));
        let garble = Problem::garble(10, 128, 2);
        assert!(
            cost(&garble, &chip, &thesis_mapping(), &[])
                .unwrap_err()
                .to_string()
                .contains("no rate of garble")
        );
    }

    #[test]
    fn a_tensor_may_pass_a_level_and_the_pipeline_fills() {
        let mut chip = machine("thesis").unwrap();
        let problem = Problem::onionpir(64.0);
        let mut mapping = thesis_mapping();
        mapping.levels[2].kept[0] = false; // A goes from the DRAM to the registers
        let cost = |chip: &Machine| super::cost(&problem, chip, &mapping, &[]).unwrap();
        let passed = cost(&chip);
        assert_eq!(passed.traffic[2].words.unwrap().read[0], 0);
        assert_eq!(passed.traffic[1].words.unwrap().read[0], 8_589_934_592, "each SRAM's tiles, one by one");
        chip.lanes.fill = 40;
        chip.moduli.change = 3;
        let filled = cost(&chip);
        assert_eq!(filled.cycles, passed.cycles + 40 + 3 * 64);
        assert_eq!(filled.bounds, passed.bounds, "beside them");
    }
}
