//! Schedules on the residues of any device: tiles on threads, or PH-EPU's programs instruction by instruction.
//!
//! Both give what one multi-exponentiation of the whole task gives, to the bit. They are for whoever wants to see a schedule work:
//! a device that is given the whole task cuts it over its own threads and shares tables between them.

use blindcore_accel::bigmod::{Bigmod, Method, MultiExp, Numbers, Residues};

use super::error::Error;
use super::group::Group;
use super::interpret::{Run, interpret};
use super::partition::{Assignment, Tile};
use super::program::Programs;
use super::shape::Task;

/// Why a task can't be run on residues.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ResiduesError {
    /// The task, its weights or its programs.
    #[error(transparent)]
    Task(#[from] Error),
    /// The device.
    #[error(transparent)]
    Device(#[from] blindcore_accel::Error),
}

/// A device's residues under one modulus, as the group that programs compute in. Its elements are batches of one.
struct ResidueGroup<'a>(pub &'a dyn Bigmod);

impl Group for ResidueGroup<'_> {
    type Element = Residues;

    fn one(&self) -> Residues {
        let mut one = Numbers::zeroed(1, self.0.modulus().words());
        one.get_mut(0)[0] = 1;
        self.0.place(&one).expect("one is below every modulus")
    }

    fn multiply(&self, x: &Residues, y: &Residues) -> Residues {
        self.0.multiply(x, y).expect("both are residues of this modulus").0
    }

    fn square(&self, x: &Residues) -> Residues {
        self.0.square(x, 1).expect("a residue of this modulus").0
    }

    fn invert(&self, x: &Residues) -> Option<Residues> {
        self.0.invert(x).ok().map(|(inverse, _)| inverse)
    }
}

/// Runs a task tile by tile, each on a thread of its own: the schedule of [`Machine::cpu`](super::Machine::cpu).
/// Outputs come in the task's order.
///
/// # Errors
/// Weights or inputs are not the task's, or the device refuses a tile.
pub fn run_tiles(
    bigmod: &dyn Bigmod,
    assignment: &Assignment,
    weights: &[i64],
    inputs: &Residues,
) -> Result<Residues, ResiduesError> {
    let task = assignment.task();
    check(task, weights, inputs)?;
    let tiles = assignment.tiles();
    let run = |tile: &Tile| -> Result<Residues, ResiduesError> {
        let indices = tile.indices(task).into_iter().map(|i| i.unwrap_or(MultiExp::ABSENT)).collect();
        let weights = tile.weights(task, weights)?;
        let multi_exp = MultiExp { terms: task.terms(), indices, weights, method: Method::Auto };
        Ok(bigmod.multi_exp(inputs, &multi_exp)?.0)
    };
    let results: Vec<Result<Residues, ResiduesError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = tiles.iter().map(|tile| scope.spawn(move || run(tile))).collect();
        threads.into_iter().map(|t| t.join().expect("a tile does not panic")).collect()
    });
    // Tile by tile into the task's order.
    let mut all = inputs.select([]);
    let mut place = vec![usize::MAX; task.outputs()];
    for (tile, result) in tiles.iter().zip(results) {
        for (i, output) in tile.outputs(task).into_iter().enumerate() {
            place[output] = all.len() + i;
        }
        all.append(&result?)?;
    }
    Ok(all.select(place))
}

/// Runs a chip's programs instruction by instruction, and counts what they took: the outputs in the task's order, and
/// the counts. Slow, for one residue is worked on at a time.
///
/// # Errors
/// As [`run_tiles`]; or a program does what it may not.
pub fn run_programs(
    bigmod: &dyn Bigmod,
    programs: &Programs,
    weights: &[i64],
    inputs: &Residues,
) -> Result<(Residues, Run<()>), ResiduesError> {
    check(programs.assignment().task(), weights, inputs)?;
    let ones: Vec<Residues> = (0..inputs.len()).map(|i| inputs.select([i])).collect();
    let run = interpret(programs, weights, &ones, &ResidueGroup(bigmod))?;
    let Run { outputs, elements, chips, total, cycles } = run;
    let mut all = inputs.select([]);
    for output in &outputs {
        all.append(output)?;
    }
    Ok((all, Run { outputs: vec![(); outputs.len()], elements, chips, total, cycles }))
}

/// That weights and inputs are the task's.
fn check(task: &Task, weights: &[i64], inputs: &Residues) -> Result<(), Error> {
    task.check_weights(weights)?;
    if inputs.len() != task.inputs() {
        return Err(Error::Length { what: "inputs", got: inputs.len(), want: task.inputs() });
    }
    Ok(())
}
