//! What each chip and element computes: output channels over chips, then a searched partition of a chip's share over its elements.

use std::ops::Range;

use serde::Serialize;

use super::error::Error;
use super::machine::Machine;
use super::plan::Plan;
use super::shape::Task;

/// Para_H, Para_W and Para_C: into how many parts rows, columns and channels of a chip's outputs are cut.
///
/// Ciphertexts are larger than weights by orders, so chips share output channels and are sent the same ciphertexts
/// (the paper's text on Fig. 15.4.5); what chips are left when there are fewer channels share rows, then columns.
/// Within a chip every Para_H x Para_W x Para_C of at most N elements is costed, in cycles, by the busier of
///
/// - the element of the largest tile: its outputs times the cycles of one, half of the weights' bits set;
/// - the bus: ciphertexts in and out and weights. Elements that share positions are sent ciphertexts together, those
///   that share channels weights.
///
/// The least wins; among equals the one that moves the fewest ciphertexts, then the one of the fewest elements. The
/// paper says that it searches, not by what: this cost is derived from its figures, which [`Machine`] lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Partition {
    /// Para_H.
    pub rows: usize,
    /// Para_W.
    pub columns: usize,
    /// Para_C.
    pub channels: usize,
}

impl Partition {
    /// Elements that work.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.rows * self.columns * self.channels
    }
}

/// What a partition is expected to cost. Saturates at 2^64 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The larger of the two below: cycles of the chip; on a CPU, multiplications of the busiest thread.
    pub cycles: u64,
    /// Cycles of the element with the largest tile.
    pub busiest: u64,
    /// Cycles of the bus: 0 on a CPU.
    pub bus: u64,
    /// Ciphertexts read: over the bus, once for all elements that take them together; on a CPU, by every thread.
    /// Those that padding spares are counted too.
    pub ciphertexts: u64,
    /// Outputs of an average element of the machine over those of the busiest: 1 when none ever waits.
    pub balance: f64,
}

/// A chip's share of the outputs, and how its elements share that.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chip {
    /// Rows of the grid of positions.
    pub rows: Range<usize>,
    /// Columns of the grid of positions.
    pub columns: Range<usize>,
    /// Output channels.
    pub channels: Range<usize>,
    /// How it is cut.
    pub partition: Partition,
    /// What that is expected to cost.
    pub estimate: Estimate,
}

/// An element's outputs: all channels of all its positions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Tile {
    /// The chip.
    pub chip: usize,
    /// The element, by rows, then columns, then channels of the partition.
    pub element: usize,
    /// Rows of the grid of positions.
    pub rows: Range<usize>,
    /// Columns of the grid of positions.
    pub columns: Range<usize>,
    /// Output channels.
    pub channels: Range<usize>,
}

impl Tile {
    /// P: how many positions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// Whether there is none; no tile of an [`Assignment`] is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0 || self.channels.is_empty()
    }

    /// Its positions as rows and columns of the grid, row by row.
    pub fn positions(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.rows.clone().flat_map(|row| self.columns.clone().map(move |column| (row, column)))
    }

    /// P x K: the inputs of each position, term by term; none where there is padding.
    #[must_use]
    pub fn indices(&self, task: &Task) -> Vec<Option<u32>> {
        let terms = task.terms();
        self.positions().flat_map(|at| (0..terms).map(move |term| task.input_at(at, term))).collect()
    }

    /// M x K: the weights of each of its channels, term by term, of all those of the task.
    ///
    /// # Errors
    /// As [`Task::check_weights`].
    pub fn weights(&self, task: &Task, weights: &[i64]) -> Result<Vec<i64>, Error> {
        task.check_weights(weights)?;
        let terms = task.terms();
        let of = |channel| (0..terms).map(move |term| weights[task.weight_at(channel, term)]);
        Ok(self.channels.clone().flat_map(of).collect())
    }

    /// P x M: where its outputs go, ordered by position, then by channel, as a multi-exponentiation of [`Tile::indices`] by
    /// [`Tile::weights`] gives them.
    #[must_use]
    pub fn outputs(&self, task: &Task) -> Vec<usize> {
        let channels = &self.channels;
        self.positions().flat_map(|at| channels.clone().map(move |m| task.output_at(at, m))).collect()
    }
}

/// A task laid out over a machine; made by [`Assignment::search`] alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assignment {
    task: Task,
    machine: Machine,
    chips: Vec<Chip>,
}

impl Assignment {
    /// Shares a task out; see [`Partition`] for what is weighed.
    ///
    /// # Errors
    /// The machine is of chips and weights have other than 2, 4 or 8 bits.
    pub fn search(task: Task, machine: Machine) -> Result<Self, Error> {
        if machine.buffers().is_some() && ![2, 4, 8].contains(&task.weight_bits()) {
            return Err(Error::Choice {
                what: "the width of a weight in bits",
                got: task.weight_bits().into(),
                of: "2, 4 and 8",
                remedy: "use another width",
            });
        }
        let (rows, columns) = task.grid();
        let by_channels = machine.chip_count().min(task.channels());
        let by_rows = (machine.chip_count() / by_channels).min(rows);
        let by_columns = (machine.chip_count() / by_channels / by_rows).min(columns);
        let mut chips: Vec<Chip> = Vec::new();
        for m in 0..by_channels {
            for y in 0..by_rows {
                for x in 0..by_columns {
                    let rows = part(&(0..rows), by_rows, y);
                    let columns = part(&(0..columns), by_columns, x);
                    let channels = part(&(0..task.channels()), by_channels, m);
                    let sizes = [rows.len(), columns.len(), channels.len()];
                    let same = |c: &&Chip| [c.rows.len(), c.columns.len(), c.channels.len()] == sizes;
                    let (partition, estimate) = match chips.iter().find(same) {
                        Some(chip) => (chip.partition, chip.estimate),
                        None => best(&task, &machine, sizes),
                    };
                    chips.push(Chip { rows, columns, channels, partition, estimate });
                }
            }
        }
        Ok(Self { task, machine, chips })
    }

    /// What is computed.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// What on.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The chips that work.
    #[must_use]
    pub fn chips(&self) -> &[Chip] {
        &self.chips
    }

    /// Cycles of the slowest chip, expected; see [`Estimate::cycles`].
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.chips.iter().map(|chip| chip.estimate.cycles).max().unwrap_or(0)
    }

    /// Every element's tile, chip by chip. Together they hold every output once.
    #[must_use]
    pub fn tiles(&self) -> Vec<Tile> {
        let mut tiles = Vec::new();
        for (chip, share) in self.chips.iter().enumerate() {
            let Partition { rows, columns, channels } = share.partition;
            for y in 0..rows {
                for x in 0..columns {
                    for m in 0..channels {
                        tiles.push(Tile {
                            chip,
                            element: (y * columns + x) * channels + m,
                            rows: part(&share.rows, rows, y),
                            columns: part(&share.columns, columns, x),
                            channels: part(&share.channels, channels, m),
                        });
                    }
                }
            }
        }
        tiles
    }
}

/// The `index`th of `parts` parts of a range, none empty where there are no more than the range is long.
fn part(range: &Range<usize>, parts: usize, index: usize) -> Range<usize> {
    let at = |i: usize| range.start + (range.len() as u128 * i as u128 / parts as u128) as usize;
    at(index)..at(index + 1)
}

/// The cheapest partition of a chip's share of `rows` x `columns` x `channels`.
fn best(task: &Task, machine: &Machine, sizes: [usize; 3]) -> (Partition, Estimate) {
    let [height, width, depth] = sizes;
    let all = machine.elements();
    let mut best: Option<(Partition, Estimate)> = None;
    for rows in 1..=all.min(height) {
        for columns in 1..=(all / rows).min(width) {
            for channels in 1..=(all / rows / columns).min(depth) {
                let partition = Partition { rows, columns, channels };
                let estimate = estimate(task, machine, sizes, partition);
                let rank =
                    |(p, e): &(Partition, Estimate)| (e.cycles, e.ciphertexts, p.elements(), p.columns);
                if best.as_ref().is_none_or(|best| rank(&(partition, estimate)) < rank(best)) {
                    best = Some((partition, estimate));
                }
            }
        }
    }
    best.expect("a share of at least one output has at least one partition")
}

fn estimate(
    task: &Task,
    machine: &Machine,
    [height, width, depth]: [usize; 3],
    partition: Partition,
) -> Estimate {
    let (rows, columns) = (height.div_ceil(partition.rows), width.div_ceil(partition.columns));
    let channels = depth.div_ceil(partition.channels);
    let largest = (rows * columns) as u64 * channels as u64;
    let positions = height as u64 * width as u64;
    let busiest = largest.saturating_mul(machine.output_cycles(task.terms(), task.weight_bits()));
    let (ciphertexts, bus) = match machine.buffers() {
        None => (positions.saturating_mul(task.terms() as u64).saturating_mul(partition.channels as u64), 0),
        Some(buffers) => {
            let plan = Plan::new(task, buffers, channels);
            let inputs = positions.saturating_mul(plan.inputs_of_position(task.terms(), channels));
            let outputs = positions.saturating_mul(depth as u64);
            let passes = if plan.streams_weights() { (rows * columns) as u64 } else { 1 };
            let weights = (depth as u64)
                .saturating_mul(plan.weight_cycles(task.terms(), task.weight_bits()))
                .saturating_mul(passes);
            let ciphertexts = inputs.saturating_add(outputs).saturating_mul(buffers.ciphertext_cycles());
            (inputs, ciphertexts.saturating_add(weights))
        }
    };
    let balance = positions as f64 * depth as f64 / (largest as f64 * machine.elements() as f64);
    Estimate { cycles: busiest.max(bus), busiest, bus, ciphertexts, balance }
}
