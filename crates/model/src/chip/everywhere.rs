//! One operation on every machine that comes with the engine.

use blindcore_accel::Cost;

use super::machine::{Machine, Rate};
use super::nest::Misfit;
use super::problem::Problem;
use super::search::{Space, search};
use super::shipped::{machine, machines};
use super::tables::Tables;

/// What an operation costs on a machine, by its best mapping; or why the machine does not do it.
#[derive(Clone, Debug)]
pub struct OnMachine {
    /// The machine.
    pub machine: Machine,
    /// What it costs there.
    pub cost: Result<Cost, Misfit>,
}

/// What an operation costs on every machine that comes with the engine, in their order.
///
/// ```
/// use blindcore_model::chip::{Problem, everywhere};
///
/// let all = everywhere(&Problem::garble(1 << 20, 80, 3), &[]);
/// let on = |name: &str| all.iter().find(|on| on.machine.name == name).unwrap();
/// assert!(on("sifo-half-gates").cost.as_ref().unwrap().seconds < on("sifo").cost.as_ref().unwrap().seconds);
/// assert!(on("h100").cost.as_ref().unwrap_err().to_string().contains("no rate of garble"));
/// ```
#[must_use]
pub fn everywhere(problem: &Problem, tables: &[Tables]) -> Vec<OnMachine> {
    let of = |machine: Machine| {
        let cost = search(problem, &machine, tables, &Space::default()).map(|found| found.cost);
        OnMachine { machine, cost }
    };
    machines().filter_map(machine).map(of).collect()
}

impl Machine {
    /// The same machine at another clock: levels that are not on the chip, the outermost and those that say so, move as many words per second.
    #[must_use]
    pub fn at_clock(&self, hz: f64) -> Self {
        /// Parts of a port's rate.
        const FINE: u64 = 1000;
        let mut slower = self.clone();
        for (at, level) in slower.levels.iter_mut().enumerate() {
            if at == 0 || level.off_chip {
                let Rate { num, den } = level.port;
                let num = (num as f64 * FINE as f64 * self.clock / hz).round().max(1.0) as u64;
                level.port = Rate { num, den: den * FINE };
            }
        }
        slower.clock = hz;
        slower
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_priced_where_it_is_done() {
        let tables = Tables::shipped_all();
        let done = |problem: &Problem| -> Vec<String> {
            let all = everywhere(problem, &tables);
            all.into_iter().filter(|on| on.cost.is_ok()).map(|on| on.machine.name).collect()
        };
        let chips = ["thesis", "thesis-sweep", "onionchopper", "gathered", "deep"];
        let others = ["next-ssd", "next-gddr", "next-hbm", "xeon", "h100", "h200"];
        let chips = [chips.as_slice(), &others].concat();
        assert_eq!(done(&Problem::onionpir(0.5)), chips, "words of 64 bits are not for lanes of 32");
        assert_eq!(done(&Problem::bigmod(1000, 4096)), ["phepu", "xeon", "h100", "h200"]);
        assert_eq!(done(&Problem::garble(1000, 128, 2)), ["sifo", "sifo-half-gates", "xeon"]);
    }

    #[test]
    fn at_another_clock_the_outermost_level_moves_as_much() {
        let chip = machine("thesis").unwrap();
        let seconds = |chip: &Machine| {
            search(&Problem::onionpir(0.5), chip, &[], &Space::default()).unwrap().cost.seconds
        };
        let (slow, slower) = (seconds(&chip.at_clock(1.5e9)), seconds(&chip.at_clock(2e8)));
        // The SSD limits at 1.5 GHz as at 2, lanes at 0.2.
        assert!((slow / seconds(&chip) - 1.0).abs() < 1e-3, "{slow}");
        assert!(slower > 3.0 * slow && slower < 10.0 * slow, "{slower}");
    }
}
