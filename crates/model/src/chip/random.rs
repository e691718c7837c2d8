//! The thesis's search: mappings at random, until so many valid ones in a row were no better (section 5.2.2).

use super::machine::Machine;
use super::nest::{Mapping, Misfit, Nest, can, cost};
use super::problem::{Dim, Problem};
use super::search::Found;
use super::tables::Tables;
use super::tiles::divisors;

/// Valid mappings in a row that are no better, after which the thesis stops.
pub const THESIS_FAILURES: u64 = 500;

/// How long a search at random goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    /// Where it begins: the same seed finds the same mapping.
    pub seed: u64,
    /// Valid mappings in a row that are no better, after which it ends.
    pub failures: u64,
    /// Mappings that it draws at most, valid or not.
    pub most: u64,
}

impl Default for Tries {
    fn default() -> Self {
        Self { seed: 1, failures: THESIS_FAILURES, most: 20_000_000 }
    }
}

/// Mappings drawn at random over all eight dimensions, the best by clocks, then joules by the first of the tables. [`Found::tried`]
/// counts the valid ones.
///
/// # Errors
/// None that was drawn fits, or the machine does not do this.
pub fn random(
    problem: &Problem,
    machine: &Machine,
    tables: &[Tables],
    tries: &Tries,
) -> Result<Found, Misfit> {
    let machine = &*machine.doing(problem);
    can(problem, machine)?;
    let mut draw = Draw(tries.seed);
    let primes: Vec<(Dim, u64)> = Dim::ALL
        .iter()
        .flat_map(|d| primes(problem.bound(*d)).into_iter().map(|prime| (*d, prime)))
        .collect();
    let (mut best, mut valid, mut in_a_row): (Option<Found>, u64, u64) = (None, 0, 0);
    for _ in 0..tries.most {
        if in_a_row == tries.failures {
            break;
        }
        let mapping = draw.mapping(machine, &primes);
        let Ok(cost) = cost(problem, machine, &mapping, &tables[..tables.len().min(1)]) else { continue };
        valid += 1;
        in_a_row += 1;
        let rank = |f: &super::Cost| (f.cycles, f.prices.first().map_or(0.0, super::Price::joules));
        if best.as_ref().is_none_or(|b| rank(&cost) < rank(&b.cost)) {
            best = Some(Found { mapping, cost, tried: 0 });
            in_a_row = 0;
        }
    }
    let best =
        best.ok_or_else(|| Misfit(format!("none of {} mappings drawn fits {}", tries.most, machine.name)))?;
    let cost = cost(problem, machine, &best.mapping, tables)?;
    Ok(Found { cost, tried: valid, ..best })
}

/// SplitMix64 (Steele, Lea and Flood 2014): small, and the same everywhere.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Some prime factors of bounds spread over each level's memories or lanes, as many as there is room for; every other to the loops
    /// of some level; every level's loops in some order.
    fn mapping(&mut self, machine: &Machine, primes: &[(Dim, u64)]) -> Mapping {
        let mut levels = vec![Nest::new(&[], &[]); machine.levels.len()];
        let mut primes = primes.to_vec();
        self.shuffle(&mut primes);
        let add = |loops: &mut Vec<(Dim, u64)>, (dim, prime): (Dim, u64)| match loops
            .iter_mut()
            .find(|(d, _)| *d == dim)
        {
            Some((_, factor)) => *factor *= prime,
            None => loops.push((dim, prime)),
        };
        for (at, nest) in levels.iter_mut().enumerate() {
            let mut room = machine.fan_out(at);
            while let Some(last) = primes.iter().rposition(|(_, prime)| *prime <= room) {
                let prime = primes.remove(last);
                room /= prime.1;
                add(&mut nest.spatial, prime);
            }
        }
        for prime in primes {
            let at = self.below(levels.len());
            add(&mut levels[at].temporal, prime);
        }
        for nest in &mut levels {
            self.shuffle(&mut nest.temporal);
        }
        Mapping { levels }
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
    }
}

/// The prime factors of a number, each as often as it divides it.
fn primes(mut n: u64) -> Vec<u64> {
    let mut all = Vec::new();
    while n > 1 {
        let least = divisors(n).get(1).copied().unwrap_or(n);
        all.push(least);
        n /= least;
    }
    all
}
