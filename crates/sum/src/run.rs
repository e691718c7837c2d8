//! Compiled tasks on encrypted inputs: tiles on the threads of a CPU, or PH-EPU's programs instruction by instruction.

use blindcore_accel::bigmod::{Bigmod, Mac, Method, Numbers, Residues};

use crate::ciphertexts::Ciphertexts;
use crate::encoding::Error as SumError;
use crate::evaluate::Evaluator;
use crate::task::{self, Assignment, Group, Programs, Run, Task, interpret};

/// Why a task can't be run on ciphertexts.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The task, its weights or its programs.
    #[error(transparent)]
    Task(#[from] task::Error),
    /// The ciphertexts.
    #[error(transparent)]
    Sum(#[from] SumError),
}

/// Ciphertexts under one key on one device, as the group that programs compute in.
pub struct CiphertextGroup<'a>(pub &'a dyn Bigmod);

impl Group for CiphertextGroup<'_> {
    /// One residue.
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

impl Evaluator {
    /// Runs a task tile by tile, each on a thread of its own: the schedule of [`task::Machine::cpu`]. Outputs in the
    /// task's order.
    ///
    /// [`Evaluator::conv2d`] and [`Evaluator::matrix_matrix`] give the whole to the device, which cuts it over its own
    /// threads and shares tables between them; this is for machines that are to work by a stated schedule.
    ///
    /// # Errors
    /// Weights or inputs are not the task's; or a sum could wrap.
    pub fn run_tiles(
        &self,
        assignment: &Assignment,
        weights: &[i64],
        x: &Ciphertexts,
    ) -> Result<Ciphertexts, Error> {
        let task = assignment.task();
        let form = self.task_form(task, weights, x)?;
        let bigmod = self.encryptor().bigmod();
        let tiles = assignment.tiles();
        let run = |tile: &task::Tile| -> Result<Residues, Error> {
            let indices = tile.indices(task).into_iter().map(|i| i.unwrap_or(Mac::ABSENT)).collect();
            let weights = tile.weights(task, weights)?;
            let mac = Mac { terms: task.terms(), indices, weights, method: Method::Auto };
            Ok(bigmod.mac(&x.residues, &mac).map_err(SumError::from)?.0)
        };
        let results: Vec<Result<Residues, Error>> = std::thread::scope(|scope| {
            let threads: Vec<_> = tiles.iter().map(|tile| scope.spawn(move || run(tile))).collect();
            threads.into_iter().map(|t| t.join().expect("a tile does not panic")).collect()
        });
        // Tile by tile into the task's order.
        let mut all = x.residues.select([]);
        let mut place = vec![usize::MAX; task.outputs()];
        for (tile, result) in tiles.iter().zip(results) {
            for (i, output) in tile.outputs(task).into_iter().enumerate() {
                place[output] = all.len() + i;
            }
            all.append(&result?).map_err(SumError::from)?;
        }
        Ok(self.made(all.select(place), form)?)
    }

    /// Runs a chip's programs instruction by instruction, and counts what they took. The same outputs as
    /// [`Evaluator::run_tiles`] and [`Evaluator::conv2d`], to the bit; slow, for one residue is worked on at a time.
    ///
    /// # Errors
    /// As [`Evaluator::run_tiles`]; or a program does what it may not.
    pub fn run_programs(
        &self,
        programs: &Programs,
        weights: &[i64],
        x: &Ciphertexts,
    ) -> Result<(Ciphertexts, Run<()>), Error> {
        let task = programs.assignment().task();
        let form = self.task_form(task, weights, x)?;
        let inputs: Vec<Residues> = (0..x.residues.len()).map(|i| x.residues.select([i])).collect();
        let group = CiphertextGroup(self.encryptor().bigmod());
        let Run { outputs, elements, chips, total, cycles } = interpret(programs, weights, &inputs, &group)?;
        let mut all = x.residues.select([]);
        for output in &outputs {
            all.append(output).map_err(SumError::from)?;
        }
        Ok((self.made(all, form)?, Run { outputs: vec![(); outputs.len()], elements, chips, total, cycles }))
    }

    /// What is known of a task's outputs, as a list.
    fn task_form(
        &self,
        task: &Task,
        weights: &[i64],
        x: &Ciphertexts,
    ) -> Result<crate::encoding::Form, Error> {
        self.check(x)?;
        task.check_weights(weights)?;
        if x.residues.len() != task.inputs() {
            let (got, want) = (x.residues.len(), task.inputs());
            return Err(task::Error::Length { what: "inputs", got, want }.into());
        }
        let channels = 0..task.channels();
        let magnitude = |channel| {
            (0..task.terms())
                .map(|t| u128::from(weights[task.weight_at(channel, t)].unsigned_abs()))
                .sum::<u128>()
        };
        let most = channels.map(magnitude).max().unwrap_or(0);
        Ok(self.weighed_form(x, most, 0, "the task's largest sum", vec![task.outputs()])?)
    }
}
