//! Weighing on a card: the task compiler's programs, and what joins the digits of long weights.

use super::compiler::isa::{Operation, address};
use super::compiler::{Assignment, Dataflow, GlobalBuffers, Machine, Programs, Stream, Task};
use blindcore_accel::bigmod::{Method, MultiExp, Residues};
use blindcore_accel::{Cost, Error};

use super::batch::{Batch, Places, Words};
use super::bigmod::{PhepuBigmod, square};
use super::context::DIGIT_BITS;
use super::report::NO_INVERSE;

/// Bits of the digits that long weights are cut into. Digits have their weight's sign, so that only what a negative weight
/// weighs needs an inverse.
const DIGIT: u32 = 7;

/// The digits of one output's weights, those above `shift` bits.
struct Row {
    output: usize,
    shift: u32,
    weights: Vec<i64>,
}

/// The rows of all outputs that are not all zero, of each output the lowest digits first.
fn rows(multi_exp: &MultiExp) -> Vec<Row> {
    let mut rows = Vec::new();
    for (output, weights) in multi_exp.weights.chunks(multi_exp.terms).enumerate() {
        let mut add = |shift, weights: Vec<i64>| {
            if weights.iter().any(|w| *w != 0) {
                rows.push(Row { output, shift, weights });
            }
        };
        if weights.iter().all(|w| i8::try_from(*w).is_ok()) {
            add(0, weights.to_vec());
            continue;
        }
        for shift in (0..i64::BITS).step_by(DIGIT as usize) {
            let digit = |w: &i64| w.signum() * (w.unsigned_abs() >> shift & ((1 << DIGIT) - 1)) as i64;
            add(shift, weights.iter().map(digit).collect());
        }
    }
    rows
}

/// The fewest bits of those that elements read which hold all weights.
fn width(rows: &[Row]) -> u32 {
    let fits = |bits: &u32| {
        let limit = 1 << (bits - 1);
        rows.iter().flat_map(|row| &row.weights).all(|w| (-limit..limit).contains(w))
    };
    [2, 4, 8].into_iter().find(fits).expect("rows have digits of 8 bits")
}

impl PhepuBigmod {
    /// [`MultiExp`], checked: each row of digits is an output channel of a matrix product, for which the task compiler writes the
    /// programs; then rows of the same output are joined.
    pub(super) fn multi_exp_all(
        &self,
        x: &Residues,
        multi_exp: &MultiExp,
    ) -> Result<(Residues, Cost), Error> {
        let mut spent = Cost::default();
        let (positions, outputs, rows) = (multi_exp.positions(), multi_exp.outputs(), rows(multi_exp));
        let one = self.context.one();
        let mut made = self.context.none();
        if positions > 0 && !rows.is_empty() {
            let buckets = match multi_exp.method {
                Method::Buckets => self.digit_rows(x, multi_exp, &rows, Dataflow::Buckets, &mut spent),
                _ => Err(Error::NotInvertible { position: 0, count: x.len() }),
            };
            made = match buckets {
                // Buckets may ask for inverses that the weights don't.
                Err(Error::NotInvertible { .. }) => {
                    self.digit_rows(x, multi_exp, &rows, Dataflow::BitSerial, &mut spent)?
                }
                made => made?,
            };
        }
        // Which rows are an output's.
        let mut of = vec![Vec::new(); outputs];
        for (number, row) in rows.iter().enumerate() {
            of[row.output].push(number);
        }
        let is_whole = |of: &[usize]| matches!(of, [row] if rows[*row].shift == 0);
        let joined: Vec<&[usize]> =
            of.iter().map(Vec::as_slice).filter(|of| !of.is_empty() && !is_whole(of)).collect();
        let at = |position: usize, row: usize| position * rows.len() + row;
        let join = self.join(&made, &rows, positions, &joined)?;
        spent += &join.1;
        // What was made, what was joined, and one.
        let (first, last) = (made.len(), made.len() + join.0.len());
        made.append(&join.0)?;
        made.append(&one)?;
        let mut next = first..last;
        let out = (0..positions).flat_map(|position| of.iter().map(move |of| (position, of))).map(
            |(position, of)| match of.as_slice() {
                [] => last,
                [row] if rows[*row].shift == 0 => at(position, *row),
                _ => next.next().expect("as many as were joined"),
            },
        );
        let out = made.select(out);
        Ok((out, spent))
    }

    /// Every position by every row, in that order.
    fn digit_rows(
        &self,
        x: &Residues,
        multi_exp: &MultiExp,
        rows: &[Row],
        dataflow: Dataflow,
        spent: &mut Cost,
    ) -> Result<Residues, Error> {
        // The residues that are there, and one for the terms that are not.
        let mut used: Vec<u32> =
            multi_exp.indices.iter().copied().filter(|i| *i != MultiExp::ABSENT).collect();
        used.sort_unstable();
        used.dedup();
        let mut residues = x.select(used.iter().map(|i| *i as usize));
        residues.append(&self.context.one())?;
        if dataflow == Dataflow::Buckets {
            let (inverses, cost) = self.invert_all(&residues)?;
            *spent += &cost;
            let count = residues.len();
            residues.append(&inverses)?;
            residues = residues.select((0..count).flat_map(|i| [i, count + i]));
        }
        let source = |index: &u32| used.binary_search(index).unwrap_or(used.len()) as u32;
        let sources: Vec<u32> = multi_exp.indices.iter().map(source).collect();
        let stream = self
            .lower(multi_exp, rows, &sources, dataflow)
            .map_err(|e| Error::MultiExp { why: format!("it can't be compiled for a chip: {e}") })?;
        let run = self.card.run(&stream, &self.context, &residues)?;
        if run.failures().iter().any(|failure| failure.code == NO_INVERSE) {
            return Err(self.without_inverse(x, multi_exp)?);
        }
        let run = run.whole()?;
        *spent += &Cost { multiplications: run.multiplications(), ..run.cost() };
        Ok(run.outputs)
    }

    fn lower(
        &self,
        multi_exp: &MultiExp,
        rows: &[Row],
        sources: &[u32],
        dataflow: Dataflow,
    ) -> Result<Stream, super::compiler::Error> {
        let task = Task::matrix(multi_exp.positions(), multi_exp.terms, rows.len(), width(rows))?;
        let machine = Machine::phepu(self.card.build().chips, DIGIT_BITS * self.digits())?;
        let programs = Programs::compile(Assignment::search(task, machine)?)?;
        let weights: Vec<i64> =
            (0..multi_exp.terms).flat_map(|term| rows.iter().map(move |row| row.weights[term])).collect();
        let build = self.card.build();
        let global =
            GlobalBuffers { input_words: build.input_words as u32, weight_words: build.weight_words as u32 };
        Stream::lower_into(global, &programs, &weights, Some(sources), dataflow)
    }

    /// Which residue made an element fail: the first without an inverse that a negative weight weighs.
    fn without_inverse(&self, x: &Residues, multi_exp: &MultiExp) -> Result<Error, Error> {
        let mut negative = vec![false; multi_exp.terms];
        for weights in multi_exp.weights.chunks(multi_exp.terms) {
            negative.iter_mut().zip(weights).for_each(|(negative, weight)| *negative |= *weight < 0);
        }
        let mut asked: Vec<u32> = multi_exp
            .indices
            .chunks(multi_exp.terms)
            .flat_map(|indices| {
                indices.iter().zip(&negative).filter(|(_, negative)| **negative).map(|(i, _)| *i)
            })
            .filter(|i| *i != MultiExp::ABSENT)
            .collect();
        asked.sort_unstable();
        asked.dedup();
        match self.invert_all(&x.select(asked.iter().map(|i| *i as usize))) {
            Err(Error::NotInvertible { position, .. }) => {
                Ok(Error::NotInvertible { position: asked[position] as usize, count: x.len() })
            }
            Err(other) => Err(other),
            Ok(_) => Err(Error::Hardware {
                device: self.card.name().into(),
                code: NO_INVERSE.into(),
                what: "it found no inverse of a product of numbers that all have one",
                remedy: "report this as a defect of blindcore",
            }),
        }
    }

    /// For each position and each of some outputs: the product of its rows, each to the power of two that it counts.
    fn join(
        &self,
        made: &Residues,
        rows: &[Row],
        positions: usize,
        outputs: &[&[usize]],
    ) -> Result<(Residues, Cost), Error> {
        let of = |position: usize| move |row: &usize| (position * rows.len() + row) as u32;
        let steps = |item: usize, at: &Places| {
            let shifts: Vec<u32> = outputs[item % outputs.len()].iter().map(|row| rows[*row].shift).collect();
            horner(at, &shifts)
        };
        let items =
            (0..positions).flat_map(|p| outputs.iter().map(move |rows| rows.iter().map(of(p)).collect()));
        let batch = Batch {
            digits: self.digits(),
            items: items.collect(),
            shared: None,
            words: Words::None,
            steps: &steps,
        };
        let Some(run) = self.run(&batch, made)? else { return Ok((self.context.none(), Cost::default())) };
        let run = run.whole()?;
        let cost = Cost { multiplications: run.multiplications(), ..run.cost() };
        Ok((run.outputs, cost))
    }
}

/// Inputs, each to the power 2^shift, ascending, multiplied: from the highest on, by squarings in between.
fn horner(at: &Places, shifts: &[u32]) -> Vec<Operation> {
    let (sum, mut steps, mut x) = (address::TERM, Vec::new(), at.input + shifts.len() as u8 - 1);
    for (i, pair) in shifts.windows(2).enumerate().rev() {
        let to = if i == 0 && shifts[0] == 0 { at.output } else { sum };
        steps.extend(square(sum, x, pair[1] - pair[0]));
        steps.push(Operation::Multiply { to, x: sum, y: at.input + i as u8 });
        x = sum;
    }
    if shifts[0] > 0 {
        steps.extend(square(at.output, x, shifts[0]));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phepu::compiler::{IntegersModulo, Pace};

    #[test]
    fn rows_add_up_to_the_weights() {
        let weights = vec![0, 1, -1, 127, -128, 128, -129, 5000, -5000, 1 << 40, -(1 << 40), (1 << 40) - 1];
        for terms in [1, 2, 3, 4, 12] {
            let multi_exp = MultiExp::matrix(terms, weights.clone());
            let mut sums = vec![0; weights.len()];
            let rows = rows(&multi_exp);
            for row in &rows {
                for (term, weight) in row.weights.iter().enumerate() {
                    assert!(i8::try_from(*weight).is_ok());
                    let of = weights[row.output * terms + term];
                    assert!(weight * of >= 0, "a digit of {of} has another sign: {weight}");
                    sums[row.output * terms + term] += weight << row.shift;
                }
            }
            assert_eq!(sums, weights);
        }
        let width = |weights: &[i64]| width(&rows(&MultiExp::matrix(1, weights.to_vec())));
        for (weights, want) in
            [(&[1, -2][..], 2), (&[2], 4), (&[-8, 7], 4), (&[8], 8), (&[-9], 8), (&[1 << 40], 8), (&[128], 2)]
        {
            assert_eq!(width(weights), want, "{weights:?}");
        }
    }

    #[test]
    fn rows_are_joined_from_the_highest_on() {
        let group = IntegersModulo(1_000_003);
        for shifts in [&[7][..], &[0, 7], &[14, 35], &[0, 7, 14, 21, 28, 35]] {
            let steps = |_, at: &Places| horner(at, shifts);
            let inputs: Vec<u32> = (0..shifts.len() as u32).collect();
            let batch = Batch {
                digits: 16,
                items: vec![inputs; 20],
                shared: None,
                words: Words::None,
                steps: &steps,
            };
            let build = crate::phepu::Build {
                chips: 1,
                elements: 16,
                input_words: 1 << 11,
                weight_words: 1 << 11,
                output_words: 512,
                instruction_words: 512,
            };
            let residues: Vec<u64> = (1..=shifts.len() as u64).collect();
            let run = batch.stream(&build).execute(&residues, &group, Pace::Lazy).unwrap();
            let want = residues.iter().zip(shifts).map(|(x, shift)| x << shift).sum::<u64>() % 1_000_003;
            assert!(
                run.outputs.len() == 20 && run.outputs.into_values().all(|out| out == Some(want)),
                "{shifts:?}"
            );
        }
    }
}
