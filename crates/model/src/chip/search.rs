//! The best mapping, by trying all that can be best.
//!
//! M and P index the same tensors, and so do N and Q, J and K, C and D. So a contraction is a batch of matrix products: x (M, P) by y
//! (N, Q), summed over z (J, K). A loop over the batch indexes everything and can stand outermost, where it costs nothing. Each tensor
//! lacks one of x, y and z, and is fetched again when a loop over that one turns, unless all loops further in are over it too or not
//! there. So of an order of loops in a level only the innermost matters.
//!
//! What is left out can't be better:
//!
//! - A level that has loops keeps the largest tiles that fit: a factor moved into it from the level above never adds a fetch.
//! - But for a level whose loops are all over one dimension that is innermost in the level above as well: they are worth as much there,
//!   so a level without loops is tried too.
//! - A spread whose lanes or first fetches alone take more clocks than the best so far.
//!
//! A test compares with every order of every divisor's tiling.

use blindcore_accel::Cost;

use super::machine::{MAX_LEVELS, Machine, Ports};
use super::nest::{Mapping, Misfit, Nest, can, cost, home, room};
use super::problem::{Dim, Problem};
use super::read::gcd;
use super::tables::Tables;
use super::tiles::{divisors, largest};

/// How a level may be spread over those below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Splits {
    /// Over one of x, y, z and the batch, by its largest divisor that the level below has room for.
    #[default]
    One,
    /// Over several, by any divisors.
    Many,
}

/// What is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// How levels are spread.
    pub splits: Splits,
    /// Whether tensors may pass levels; else each keeps all.
    pub bypass: bool,
    /// The levels in which A, B and C begin and end, whole: 0, the outermost, or one further in that is a single memory.
    pub home: [usize; 3],
}

/// A mapping, what it costs, and how many were compared.
#[derive(Clone, Debug)]
pub struct Found {
    /// The mapping.
    pub mapping: Mapping,
    /// Its cost.
    pub cost: Cost,
    /// Mappings that were costed.
    pub tried: u64,
}

/// x, y, z: the dimensions of each, the outer first. The batch is C and D.
const OF: [[Dim; 2]; 4] = [[Dim::M, Dim::P], [Dim::N, Dim::Q], [Dim::J, Dim::K], [Dim::C, Dim::D]];
/// Which of x, y, z A, B and C do not have.
const LACKS: [usize; 3] = [1, 0, 2];
const BATCH: usize = 3;

/// The best mapping of a problem: the fewest clocks, then the fewest joules by the first of the tables.
///
/// # Errors
/// No mapping fits, or the machine does not do this.
pub fn search(
    problem: &Problem,
    machine: &Machine,
    tables: &[Tables],
    space: &Space,
) -> Result<Found, Misfit> {
    let machine = &*machine.doing(problem);
    can(problem, machine)?;
    for at in space.home {
        if at >= machine.levels.len() {
            return Err(Misfit(format!("{} has no level {at} for a tensor to begin in", machine.name)));
        }
        home(machine, at)?;
    }
    let mut search = Search::new(problem, machine, tables.first(), *space)?;
    let outermost = space.home.map(|at| at == 0);
    if let Some(room) = machine.levels[0].bytes
        && !search.fits(0, search.shape, search.batch, &[outermost])
    {
        let bits: u64 = (0..3).filter(|t| outermost[*t]).map(|t| search.words[t] * search.bits[t]).sum();
        let (name, bytes) = (&machine.levels[0].name, bits.div_ceil(8));
        return Err(Misfit(format!(
            "the problem takes {bytes} bytes, over the {room} of {name}; make it larger"
        )));
    }
    for kept in search.keeping() {
        for spread in search.spreads() {
            search.under(&spread, &kept);
        }
    }
    let tried = search.tried;
    let best = search.best.ok_or_else(|| {
        let smallest = machine.levels.iter().filter(|l| l.bytes.is_some()).min_by_key(|l| l.bytes);
        let (name, bytes) = smallest.map_or(("?", 0), |l| (l.name.as_str(), l.bytes.unwrap_or(0)));
        Misfit(format!(
            "no mapping fits {}: {name} has {bytes} bytes; make the smallest levels larger",
            machine.name
        ))
    })?;
    let mapping = best.mapping(problem);
    let cost = cost(problem, machine, &mapping, tables)?;
    Ok(Found { mapping, cost, tried })
}

/// A choice for every level.
#[derive(Clone)]
struct Choice {
    /// Loops in time over x, y, z.
    loops: Vec<[u64; 3]>,
    /// Which of them is innermost; 3 where there are none.
    innermost: Vec<usize>,
    /// Spread over x, y, z, batch.
    spread: Vec<[u64; 4]>,
    kept: Vec<[bool; 3]>,
    cycles: u64,
    energy: f64,
}

/// A level's figures as the search needs them.
struct Figures {
    bits: Option<u64>,
    buffers: u64,
    port: [u64; 2],
    ports: [u64; 2],
    shared: bool,
    /// Picojoules a bit.
    energy: [f64; 2],
}

struct Search {
    shape: [u64; 3],
    batch: u64,
    bits: [u64; 3],
    /// Words of A, B and C.
    words: [u64; 3],
    levels: Vec<Figures>,
    /// How often words of each tensor go to the memories of a level, in halves; the last are the lanes.
    passes: Vec<[u64; 3]>,
    fans: Vec<u64>,
    latched: bool,
    divisors: [Vec<u64>; 3],
    /// Clocks of one lane: numerator, denominator.
    lane: [u64; 2],
    space: Space,
    best: Option<Choice>,
    tried: u64,
}

impl Search {
    fn new(
        problem: &Problem,
        machine: &Machine,
        table: Option<&Tables>,
        space: Space,
    ) -> Result<Self, Misfit> {
        let bound = |of: [Dim; 2]| problem.bound(of[0]).checked_mul(problem.bound(of[1]));
        let too_large =
            || Misfit("the problem is too large: over 2^62 bits and ports' clocks; cut it".into());
        let [x, y, z, batch] = OF.map(bound);
        let (Some(x), Some(y), Some(z), Some(batch)) = (x, y, z, batch) else { return Err(too_large()) };
        let levels: Vec<Figures> = machine
            .levels
            .iter()
            .map(|level| Figures {
                bits: level.bytes.map(|b| b.saturating_mul(8)),
                buffers: level.buffers,
                port: [level.port.num, level.port.den],
                ports: match level.ports {
                    Ports::Separate { read, write } => [read, write],
                    Ports::Shared(ports) => [ports; 2],
                },
                shared: matches!(level.ports, Ports::Shared(_)),
                energy: table.and_then(|t| t.picojoules(&level.part, level.bytes)).unwrap_or_default(),
            })
            .collect();
        let rate = machine.lanes.rate(problem.operation).ok_or_else(too_large)?;
        let passes: Vec<_> =
            (0..=levels.len()).map(|at| problem.halves_passed(room(problem, machine, at))).collect();
        let lane = [rate.den.checked_mul(problem.work.0), rate.num.checked_mul(problem.work.1)];
        let [Some(lane_num), Some(lane_den)] = lane else { return Err(too_large()) };
        // The most that is ever multiplied: every point's bits, three times each way and as often as they pass, by a rate's denominator. A
        // tensor's fetches and copies are factors of the dimension that it lacks.
        let often = passes.iter().flatten().max().copied().unwrap_or(2);
        let slowest = levels.iter().map(|l| l.port[1]).max().unwrap_or(1);
        let bits = [problem.widest(), 6, often, slowest].map(u128::from).iter().product::<u128>();
        let most = problem.points().checked_mul(bits.max(lane_num.into()));
        if most.is_none_or(|m| m >= 1 << 62) {
            return Err(too_large());
        }
        let words = [x * z * batch, y * z * batch, x * y * batch];
        Ok(Self {
            shape: [x, y, z],
            batch,
            bits: problem.bits,
            words,
            fans: (0..levels.len()).map(|at| machine.fan_out(at)).collect(),
            levels,
            passes,
            latched: machine.lanes.latched,
            divisors: [x, y, z].map(divisors),
            lane: [lane_num, lane_den],
            space,
            best: None,
            tried: 0,
        })
    }

    /// Which tensors each level keeps: all, or every choice below the outermost.
    fn keeping(&self) -> Vec<Vec<[bool; 3]>> {
        let inner = self.levels.len() - 1;
        let choices = if self.space.bypass { 0..1u64 << (3 * inner) } else { 0..1 };
        let kept = |choice: u64, at: usize, t: usize| {
            let home = self.space.home[t];
            at == home || at > home && choice >> (3 * (at - 1) + t) & 1 == 0
        };
        choices.map(|c| (0..=inner).map(|at| [0, 1, 2].map(|t| kept(c, at, t))).collect()).collect()
    }

    /// Every spread over all levels.
    fn spreads(&self) -> Vec<Vec<[u64; 4]>> {
        let mut all: Vec<Vec<[u64; 4]>> = vec![Vec::new()];
        for fan in &self.fans {
            let mut next = Vec::new();
            for before in &all {
                let mut left = [self.shape[0], self.shape[1], self.shape[2], self.batch];
                for s in before {
                    (0..4).for_each(|i| left[i] /= s[i]);
                }
                let mut of: Vec<[u64; 4]> = Vec::new();
                match self.space.splits {
                    Splits::One => {
                        for i in 0..4 {
                            let mut s = [1; 4];
                            s[i] = largest_within(left[i], *fan);
                            if !of.contains(&s) {
                                of.push(s);
                            }
                        }
                    }
                    Splits::Many => {
                        let small = |n: u64| divisors(n).into_iter().filter(|d| d <= fan).collect::<Vec<_>>();
                        let [xs, ys, zs, bs] = left.map(small);
                        for x in &xs {
                            for y in ys.iter().filter(|y| x * *y <= *fan) {
                                for z in zs.iter().filter(|z| x * y * *z <= *fan) {
                                    of.extend(
                                        bs.iter()
                                            .filter(|b| x * y * z * *b <= *fan)
                                            .map(|b| [*x, *y, *z, *b]),
                                    );
                                }
                            }
                        }
                    }
                }
                next.extend(of.into_iter().map(|s| [before.as_slice(), &[s]].concat()));
            }
            all = next;
        }
        // The widest first: the best so far soon rules out the rest.
        all.sort_by_key(|s| std::cmp::Reverse(s.iter().flatten().product::<u64>()));
        all
    }

    fn under(&mut self, spread: &[[u64; 4]], kept: &[[bool; 3]]) {
        let lanes: u64 = spread.iter().flatten().product();
        let points = self.words[0] * self.shape[1];
        let clocks = (points * self.lane[0]).div_ceil(self.lane[1] * lanes);
        if self.best.as_ref().is_some_and(|best| clocks > best.cycles) {
            return;
        }
        let n = self.levels.len();
        let mut choice = Choice {
            loops: vec![[1; 3]; n],
            innermost: vec![3; n],
            spread: spread.to_vec(),
            kept: kept.to_vec(),
            cycles: clocks,
            energy: 0.0,
        };
        // What all lanes and memories are spread over below each level.
        let mut below = vec![[1u64; 4]; n + 1];
        for at in (0..n).rev() {
            below[at] = [0, 1, 2, 3].map(|i| below[at + 1][i] * spread[at][i]);
        }
        // The outermost holds everything.
        if !self.fits(0, self.shape, self.batch, kept) {
            return;
        }
        self.level(1, 0, self.shape, &below, &mut choice);
    }

    /// Whether a tile fits a level, with so many of the batch.
    fn fits(&self, at: usize, tile: [u64; 3], batch: u64, kept: &[[bool; 3]]) -> bool {
        let Some(room) = self.levels[at].bits else { return true };
        let [x, y, z] = tile;
        let words = [x * z, y * z, x * y];
        let bits = |t: usize| match self.space.home[t] == at {
            true => self.words[t] * self.bits[t],
            false => words[t] * self.bits[t] * batch,
        };
        let bits: u64 = (0..3).filter(|t| kept[at][*t]).map(bits).sum();
        let buffers = if at == 0 { 1 } else { self.levels[at].buffers };
        bits.div_ceil(8) * buffers <= room / 8
    }

    /// Chooses the tile of level `at`, in `outer`, which is level `above`'s: between them no level has loops.
    fn level(&mut self, at: usize, above: usize, outer: [u64; 3], below: &[[u64; 4]], choice: &mut Choice) {
        let n = self.levels.len();
        // Loops of `above`, when the tile of `at` is `tile`.
        let between = |i: usize| below[above][i] / below[at][i];
        if at == n {
            // The lanes' tile is one point, and levels without loops hold as many as they are spread over.
            let fit = |l: usize| self.fits(l, [0, 1, 2].map(|i| below[l][i]), below[l][BATCH], &choice.kept);
            if !(above + 1..n).all(fit) {
                return;
            }
            choice.loops[above] = [0, 1, 2].map(|i| outer[i] / between(i));
            self.orders(0, choice);
            choice.loops[above] = [1; 3];
            return;
        }
        // Levels from above + 1 to here that have no loops hold this tile, spread.
        let kept = choice.kept.clone();
        let fits_all = |this: &Self, tile: [u64; 3]| {
            (above + 1..=at).all(|l| {
                let spread = |i: usize| tile[i] * (below[l][i] / below[at][i]);
                this.fits(l, [spread(0), spread(1), spread(2)], below[l][BATCH], &kept)
            })
        };
        // No loops here.
        self.level(at + 1, above, outer, below, choice);
        // Or the largest tiles, in units of what is spread below.
        let unit = [0, 1, 2].map(|i| below[at][i]);
        let room = [0, 1, 2].map(|i| outer[i] / (between(i) * unit[i]));
        let this = &*self;
        let tiles = largest(room, &this.divisors, |t| fits_all(this, [0, 1, 2].map(|i| t[i] * unit[i])));
        for tile in tiles {
            if tile == [1; 3] {
                // Without loops here: that was tried.
                continue;
            }
            let tile = [0, 1, 2].map(|i| tile[i] * unit[i]);
            choice.loops[above] = [0, 1, 2].map(|i| outer[i] / (between(i) * tile[i]));
            self.level(at + 1, at, tile, below, choice);
            choice.loops[above] = [1; 3];
        }
    }

    /// Every innermost loop of every level, then the cost.
    fn orders(&mut self, at: usize, choice: &mut Choice) {
        if at == self.levels.len() {
            return self.cost(choice);
        }
        let loops = choice.loops[at];
        if loops == [1; 3] {
            choice.innermost[at] = 3;
            return self.orders(at + 1, choice);
        }
        for i in 0..3 {
            if loops[i] > 1 {
                choice.innermost[at] = i;
                self.orders(at + 1, choice);
            }
        }
    }

    /// How often a tensor is fetched that lacks dimension `lacks`, into the level `into`.
    fn fetches(&self, lacks: usize, into: usize, choice: &Choice) -> u64 {
        let n = self.levels.len();
        let mut all = 1;
        let mut turning = into < n || self.latched;
        for at in (0..into).rev() {
            let loops = choice.loops[at];
            let has = choice.innermost[at];
            if turning && (has == lacks || has == 3) {
                // Only where nothing but this turns here does what turns above it come next; the batch is outermost.
                turning = (0..3).all(|i| i == lacks || loops[i] == 1);
            } else {
                turning = false;
                all *= loops[lacks];
            }
        }
        all
    }

    fn cost(&mut self, choice: &mut Choice) {
        self.tried += 1;
        let n = self.levels.len();
        let mut moved = [[0u64; 2]; MAX_LEVELS];
        for t in 0..3 {
            let lacks = LACKS[t];
            // Above its home there is one memory a level, and nothing of it.
            let mut parent = self.space.home[t];
            // Copies of it, in lanes and memories that share it.
            let mut at_parent = 1;
            let mut copies = 1;
            for child in parent + 1..=n {
                copies *= choice.spread[child - 1][lacks];
                if child < n && !choice.kept[child][t] {
                    continue;
                }
                let bits = self.words[t] * self.bits[t] * self.passes[child][t] / 2;
                let fetches = self.fetches(lacks, child, choice);
                let (up, down) = (bits * fetches * at_parent, bits * fetches * copies);
                if t == 2 {
                    let back = bits * (fetches - 1) * at_parent;
                    moved[parent][1] += up;
                    moved[parent][0] += back;
                    if child < n {
                        moved[child][1] += back;
                        moved[child][0] += down;
                    }
                } else {
                    moved[parent][0] += up;
                    if child < n {
                        moved[child][1] += down;
                    }
                }
                (parent, at_parent) = (child, copies);
            }
        }
        let lanes: u64 = choice.spread.iter().flatten().product();
        let mut cycles = (self.words[0] * self.shape[1] * self.lane[0]).div_ceil(self.lane[1] * lanes);
        let mut energy = 0.0;
        let mut memories = 1;
        for (at, level) in self.levels.iter().enumerate() {
            let [read, written] = moved[at];
            let clocks =
                |bits: u64, ports: u64| (bits * level.port[1]).div_ceil(level.port[0] * ports * memories);
            let most = if level.shared {
                clocks(read + written, level.ports[0])
            } else {
                clocks(read, level.ports[0]).max(clocks(written, level.ports[1]))
            };
            cycles = cycles.max(most);
            if self.best.as_ref().is_some_and(|best| cycles > best.cycles) {
                return;
            }
            energy += read as f64 * level.energy[0] + written as f64 * level.energy[1];
            memories *= choice.spread[at].iter().product::<u64>();
        }
        if self.best.as_ref().is_none_or(|best| (cycles, energy) < (best.cycles, best.energy)) {
            self.best = Some(Choice { cycles, energy, ..choice.clone() });
        }
    }
}

/// The largest divisor of `n` that is at most `room`.
fn largest_within(n: u64, room: u64) -> u64 {
    let common = gcd(n, room);
    if common == room { room } else { divisors(n).into_iter().rfind(|d| *d <= room).unwrap_or(1) }
}

impl Choice {
    /// As a loop nest over the eight dimensions.
    fn mapping(&self, problem: &Problem) -> Mapping {
        let mut left = problem.bounds;
        // From the inside out: as much of the inner dimension as there is.
        let mut take = |i: usize, factor: u64| {
            let [outer, inner] = OF[i];
            let by = gcd(factor, left[inner as usize]);
            left[inner as usize] /= by;
            left[outer as usize] /= factor / by;
            [(outer, factor / by), (inner, by)].into_iter().filter(|(_, f)| *f > 1)
        };
        let mut levels = Vec::new();
        for at in (0..self.loops.len()).rev() {
            let spatial: Vec<_> = (0..4).flat_map(|i| take(i, self.spread[at][i])).collect();
            let last = self.innermost[at];
            let order = (0..3).filter(|i| *i != last).chain([last].into_iter().filter(|i| *i < 3));
            let temporal: Vec<_> = order.flat_map(|i| take(i, self.loops[at][i])).collect();
            levels.push(Nest { temporal, spatial, kept: self.kept[at] });
        }
        levels.reverse();
        // The batch outermost, with the moduli outside the coefficients.
        let batch = [Dim::C, Dim::D].into_iter().map(|d| (d, left[d as usize])).filter(|(_, f)| *f > 1);
        levels[0].temporal.splice(0..0, batch);
        Mapping { levels }
    }
}

#[cfg(test)]
mod tests;
