//! Programs: what a device garbles, checked once so that kernels need not.

/// A gate: `slots[out] = slots[a] op slots[b]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Step {
    /// Where the result goes.
    pub out: u32,
    /// The first operand.
    pub a: u32,
    /// The second operand.
    pub b: u32,
}

/// XORs in order, then ANDs of which none needs another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// How many XORs; each may need those before it.
    pub xors: u32,
    /// How many ANDs; none reads or writes what another writes.
    pub ands: u32,
}

/// Layers that need nothing of the other parts, so that parts can run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its first layer.
    pub layer: usize,
    /// Its number of layers.
    pub layers: usize,
    /// Its first step.
    pub step: usize,
    /// ANDs before it.
    pub and: usize,
    /// Its ANDs.
    pub ands: usize,
}

/// A layered program over slots.
///
/// What holds of each, because [`ProgramBuilder`] checked it: every slot is below [`Program::slots`]; within a layer no
/// AND reads or writes what another AND of the layer writes; no part reads or writes what another part writes. Kernels that
/// go by addresses, on several threads, rely on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    slots: usize,
    steps: Vec<Step>,
    layers: Vec<Layer>,
    parts: Vec<Part>,
    ands: usize,
}

/// Why a program is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// A slot past the end.
    #[error("a step uses slot {slot} of {slots}")]
    Slot {
        /// The slot.
        slot: u32,
        /// How many there are.
        slots: usize,
    },
    /// Two ANDs of a layer that are not independent.
    #[error("two ANDs of one layer meet in slot {slot}, which one of them writes")]
    Layer {
        /// The slot.
        slot: u32,
    },
    /// More steps than are counted.
    #[error("a program has at most {most} steps; cut it into several")]
    Steps {
        /// The limit.
        most: usize,
    },
    /// Two parts that are not independent.
    #[error("two parts meet in slot {slot}, which one of them writes")]
    Parts {
        /// The slot.
        slot: u32,
    },
}

impl Program {
    /// How many slots it needs.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Its AND gates.
    #[must_use]
    pub fn ands(&self) -> usize {
        self.ands
    }

    /// Its steps, layer by layer: XORs, then ANDs.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// All layers.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The parts, in order; together they are all layers.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The layers of a part with their XORs and ANDs, and the number of ANDs before each within the program.
    pub fn layers_of(&self, part: Part) -> impl Iterator<Item = (&[Step], &[Step], usize)> {
        let (mut step, mut and) = (part.step, part.and);
        self.layers[part.layer..part.layer + part.layers].iter().map(move |layer| {
            let (xors, ands) = (layer.xors as usize, layer.ands as usize);
            let here = (&self.steps[step..step + xors], &self.steps[step + xors..step + xors + ands], and);
            step += xors + ands;
            and += ands;
            here
        })
    }
}

impl Program {
    /// The program in pieces of at most `ands` ANDs, to be run one after the other: what is garbled while what was
    /// garbled before travels. A layer of more is cut, for its ANDs need nothing of each other.
    ///
    /// # Panics
    /// `ands` is 0.
    #[must_use]
    pub fn pieces(&self, ands: usize) -> Vec<Program> {
        assert!(ands > 0, "a piece has an AND at least");
        if self.ands <= ands {
            return vec![self.clone()];
        }
        let empty = || Program {
            slots: self.slots,
            steps: Vec::new(),
            layers: Vec::new(),
            parts: Vec::new(),
            ands: 0,
        };
        let mut pieces = Vec::new();
        let mut piece = empty();
        for part in &self.parts {
            let mut begin = Part {
                layer: piece.layers.len(),
                step: piece.steps.len(),
                and: piece.ands,
                layers: 0,
                ands: 0,
            };
            let end_part = |piece: &mut Program, begin: Part| {
                let (layers, ands) = (piece.layers.len() - begin.layer, piece.ands - begin.and);
                if layers > 0 {
                    piece.parts.push(Part { layers, ands, ..begin });
                }
            };
            for (mut xors, mut left, _) in self.layers_of(*part) {
                loop {
                    let here = left.len().min(ands - piece.ands);
                    piece.steps.extend_from_slice(xors);
                    piece.steps.extend_from_slice(&left[..here]);
                    piece.layers.push(Layer { xors: xors.len() as u32, ands: here as u32 });
                    piece.ands += here;
                    (xors, left) = (&[], &left[here..]);
                    if left.is_empty() {
                        break;
                    }
                    end_part(&mut piece, begin);
                    pieces.push(std::mem::replace(&mut piece, empty()));
                    begin = Part { layer: 0, layers: 0, step: 0, and: 0, ands: 0 };
                }
            }
            end_part(&mut piece, begin);
        }
        if !piece.steps.is_empty() {
            pieces.push(piece);
        }
        pieces
    }
}

/// Makes a [`Program`], or one after the other, step by step, and checks them as they grow.
///
/// ```
/// use blindcore_accel::garble::ProgramBuilder;
///
/// let mut program = ProgramBuilder::new(4);
/// program.xor(2, 0, 1)?;
/// program.and(3, 2, 0)?;
/// assert_eq!(program.finish().ands(), 1);
/// # Ok::<(), blindcore_accel::garble::ProgramError>(())
/// ```
pub struct ProgramBuilder {
    program: Program,
    /// What was done to each slot: a byte each, so that those of many slots stay in a core's cache.
    marks: Vec<u8>,
    /// Steps whose part is marked: those of all parts before the present one, once it has a step.
    marked: usize,
    layer: Layer,
    part_layer: usize,
    part_step: usize,
    part_and: usize,
}

/// An AND of the present layer wrote the slot;
const LAYER_WROTE: u8 = 1;
/// one of them read it;
const LAYER_READ: u8 = 2;
/// a part of the program before the present one wrote it;
const PART_WROTE: u8 = 4;
/// one of those read it.
const PART_READ: u8 = 8;

/// Steps of a program: so few that no count of a layer wraps.
const MOST_STEPS: usize = u32::MAX as usize - 2;

impl ProgramBuilder {
    /// An empty program over this many slots.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let program = Program { slots, steps: Vec::new(), layers: Vec::new(), parts: Vec::new(), ands: 0 };
        let (part_layer, part_step, part_and) = (0, 0, 0);
        let (marks, layer) = (vec![0; slots], Layer::default());
        Self { program, marks, marked: 0, layer, part_layer, part_step, part_and }
    }

    /// Makes the slots this many, if they are fewer.
    pub fn grow(&mut self, slots: usize) {
        if slots > self.program.slots {
            self.program.slots = slots;
            self.marks.resize(slots, 0);
        }
    }

    /// AND gates so far.
    #[must_use]
    pub fn ands(&self) -> usize {
        self.program.ands
    }

    /// An XOR; after an AND it begins a new layer.
    ///
    /// # Errors
    /// No such slot, or one that another part writes; or there are 2^32 - 3 steps.
    #[inline]
    pub fn xor(&mut self, out: u32, a: u32, b: u32) -> Result<(), ProgramError> {
        if self.layer.ands > 0 {
            self.end_layer();
        }
        self.step(Step { out, a, b }, 0, 0)?;
        self.layer.xors += 1;
        Ok(())
    }

    /// An AND of the current layer.
    ///
    /// # Errors
    /// No such slot, or one that another AND of the layer or another part writes; or there are 2^32 - 3 steps.
    #[inline]
    pub fn and(&mut self, out: u32, a: u32, b: u32) -> Result<(), ProgramError> {
        // The AND itself may write what it reads; nobody else of its layer may.
        self.step(Step { out, a, b }, LAYER_WROTE, LAYER_WROTE | LAYER_READ)?;
        for slot in [a, b] {
            self.marks[slot as usize] |= LAYER_READ;
        }
        self.marks[out as usize] |= LAYER_WROTE;
        self.layer.ands += 1;
        self.program.ands += 1;
        Ok(())
    }

    /// These XORs and then these ANDs of one layer: the same as [`xor`](Self::xor) and [`and`](Self::and) of each, in less time.
    ///
    /// # Errors
    /// As there; those before the one that is refused are in the program.
    pub fn extend(&mut self, xors: &[Step], ands: &[Step]) -> Result<(), ProgramError> {
        if self.program.steps.len() + xors.len() + ands.len() > MOST_STEPS {
            return self.one_by_one(xors, ands);
        }
        if self.marked < self.part_step {
            self.mark_parts();
        }
        if self.layer.ands > 0 && !xors.is_empty() {
            self.end_layer();
        }
        let marks = &mut self.marks[..];
        // All marks of a slot that there is not.
        let of = |marks: &[u8], slot: u32| marks.get(slot as usize).copied().unwrap_or(u8::MAX);
        let mut met = 0;
        for step in xors {
            met |= (of(marks, step.a) | of(marks, step.b)) & PART_WROTE;
            met |= of(marks, step.out) & (PART_WROTE | PART_READ);
        }
        if met != 0 {
            return self.one_by_one(xors, ands);
        }
        for step in ands {
            met |= (of(marks, step.a) | of(marks, step.b)) & (PART_WROTE | LAYER_WROTE);
            met |= of(marks, step.out);
            for (slot, mark) in [(step.a, LAYER_READ), (step.b, LAYER_READ), (step.out, LAYER_WROTE)] {
                if let Some(marks) = marks.get_mut(slot as usize) {
                    *marks |= mark;
                }
            }
        }
        if met != 0 {
            return self.one_by_one(xors, ands);
        }
        self.program.steps.extend_from_slice(xors);
        self.program.steps.extend_from_slice(ands);
        self.layer.xors += xors.len() as u32;
        self.layer.ands += ands.len() as u32;
        self.program.ands += ands.len();
        Ok(())
    }

    /// The same, to say which is refused.
    #[cold]
    fn one_by_one(&mut self, xors: &[Step], ands: &[Step]) -> Result<(), ProgramError> {
        // Marks of these ANDs may be there already; those of the layer's before them stay.
        for slot in ands.iter().flat_map(|step| [step.out, step.a, step.b]) {
            if let Some(marks) = self.marks.get_mut(slot as usize) {
                *marks &= !(LAYER_WROTE | LAYER_READ);
            }
        }
        let before = self.program.steps.len() - self.layer.ands as usize;
        for step in &self.program.steps[before..] {
            self.marks[step.a as usize] |= LAYER_READ;
            self.marks[step.b as usize] |= LAYER_READ;
            self.marks[step.out as usize] |= LAYER_WROTE;
        }
        xors.iter().try_for_each(|step| self.xor(step.out, step.a, step.b))?;
        ands.iter().try_for_each(|step| self.and(step.out, step.a, step.b))
    }

    /// Ends the current layer, so that the next AND may read what its ANDs wrote.
    pub fn end_layer(&mut self) {
        if self.layer != Layer::default() {
            let ands = self.program.steps.len() - self.layer.ands as usize;
            for step in &self.program.steps[ands..] {
                for slot in [step.out, step.a, step.b] {
                    self.marks[slot as usize] &= !(LAYER_WROTE | LAYER_READ);
                }
            }
            self.program.layers.push(self.layer);
            self.layer = Layer::default();
        }
    }

    /// Ends the current part: what follows reads and writes nothing that it wrote.
    pub fn end_part(&mut self) {
        self.end_layer();
        let layers = self.program.layers.len() - self.part_layer;
        if layers > 0 {
            let (layer, step, and) = (self.part_layer, self.part_step, self.part_and);
            let ands = self.program.ands - and;
            self.program.parts.push(Part { layer, layers, step, and, ands });
        }
        self.part_layer = self.program.layers.len();
        self.part_step = self.program.steps.len();
        self.part_and = self.program.ands;
    }

    /// The program.
    #[must_use]
    pub fn finish(mut self) -> Program {
        self.take()
    }

    /// The program, and an empty one over the same slots begins, which is run after it and may read what it wrote.
    pub fn take(&mut self) -> Program {
        self.end_part();
        let slots = self.program.slots;
        // The next is likely to be as long.
        let (steps, layers) = (self.program.steps.len(), self.program.layers.len());
        let (steps, layers) = (Vec::with_capacity(steps), Vec::with_capacity(layers));
        let empty = Program { slots, steps, layers, parts: Vec::new(), ands: 0 };
        let mut program = std::mem::replace(&mut self.program, empty);
        // Programs may be kept, and room to grow would be as much again.
        program.steps.shrink_to_fit();
        program.layers.shrink_to_fit();
        program.parts.shrink_to_fit();
        for step in &program.steps[..self.marked] {
            for slot in [step.out, step.a, step.b] {
                self.marks[slot as usize] = 0;
            }
        }
        (self.marked, self.part_layer, self.part_step, self.part_and) = (0, 0, 0, 0);
        program
    }

    /// A step that touches nothing that other parts write or, where marks of its operands or of what it writes are refused,
    /// other ANDs of its layer.
    #[inline]
    fn step(&mut self, step: Step, read: u8, written: u8) -> Result<(), ProgramError> {
        if self.program.steps.len() >= MOST_STEPS {
            return Err(ProgramError::Steps { most: MOST_STEPS });
        }
        if self.marked < self.part_step {
            self.mark_parts();
        }
        let marks = [step.a, step.b, step.out].map(|slot| self.marks.get(slot as usize).copied());
        let [Some(a), Some(b), Some(out)] = marks else { return Err(self.no_slot(step)) };
        if (a | b) & (PART_WROTE | read) != 0 || out & (PART_WROTE | PART_READ | written) != 0 {
            return Err(refused(step, [a, b, out]));
        }
        self.program.steps.push(step);
        Ok(())
    }

    /// Marks what the parts before the present one read and wrote.
    #[cold]
    fn mark_parts(&mut self) {
        for step in &self.program.steps[self.marked..self.part_step] {
            for slot in [step.a, step.b] {
                self.marks[slot as usize] |= PART_READ;
            }
            self.marks[step.out as usize] |= PART_WROTE;
        }
        self.marked = self.part_step;
    }

    #[cold]
    fn no_slot(&self, step: Step) -> ProgramError {
        let slots = self.program.slots;
        let past = [step.out, step.a, step.b].into_iter().find(|slot| *slot as usize >= slots);
        ProgramError::Slot { slot: past.unwrap_or(step.out), slots }
    }
}

/// Why a step is refused whose operands and result have these marks.
#[cold]
fn refused(step: Step, [a, b, out]: [u8; 3]) -> ProgramError {
    let operands = [(step.a, a), (step.b, b)];
    let of_parts = operands.into_iter().find(|(_, marks)| marks & PART_WROTE != 0);
    if let Some((slot, _)) = of_parts.or((out & (PART_WROTE | PART_READ) != 0).then_some((step.out, out))) {
        return ProgramError::Parts { slot };
    }
    let of_layer = operands.into_iter().find(|(_, marks)| marks & LAYER_WROTE != 0);
    ProgramError::Layer { slot: of_layer.map_or(step.out, |(slot, _)| slot) }
}

#[cfg(test)]
mod tests {
    use super::{ProgramBuilder, ProgramError, Step};

    #[test]
    fn ands_of_a_layer_meet_nowhere() {
        let layer = |slot| Err(ProgramError::Layer { slot });
        // Reads what another writes; writes what another writes, or reads.
        for (second, slot) in [((4, 3, 1), 3), ((4, 1, 3), 3), ((3, 1, 1), 3), ((0, 1, 1), 0), ((2, 1, 1), 2)]
        {
            let mut program = ProgramBuilder::new(5);
            program.and(3, 0, 2).unwrap();
            assert_eq!(program.and(second.0, second.1, second.2), layer(slot));
            // The next layer may.
            program.end_layer();
            assert_eq!(program.and(second.0, second.1, second.2), Ok(()));
        }
        let mut program = ProgramBuilder::new(5);
        assert_eq!(
            [program.and(0, 0, 1), program.and(2, 1, 1), program.and(4, 0, 1)],
            [Ok(()), Ok(()), layer(0)]
        );
        // An XOR comes after them.
        assert_eq!([program.xor(4, 0, 2), program.and(0, 4, 0)], [Ok(()); 2]);
        assert_eq!(program.finish().layers().len(), 2);
    }

    #[test]
    fn steps_together_are_taken_and_refused_as_one_by_one() {
        let mut seed = 1u32;
        let mut random = |n: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % n
        };
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let (mut together, mut singly) = (ProgramBuilder::new(64), ProgramBuilder::new(64));
            for _ in 0..random(6) {
                let mut steps = || -> Vec<Step> {
                    let count = random(4);
                    // Few slots meet often, 64 is past the end.
                    let slots = if random(2) == 0 { 65 } else { 64 };
                    (0..count)
                        .map(|_| Step { out: random(slots), a: random(slots), b: random(slots) })
                        .collect()
                };
                let (xors, ands) = (steps(), steps());
                let one_by_one = xors
                    .iter()
                    .try_for_each(|step| singly.xor(step.out, step.a, step.b))
                    .and_then(|()| ands.iter().try_for_each(|step| singly.and(step.out, step.a, step.b)));
                assert_eq!(together.extend(&xors, &ands), one_by_one);
                *(if one_by_one.is_ok() { &mut taken } else { &mut refused }) += 1;
                match random(3) {
                    0 => [&mut together, &mut singly].map(ProgramBuilder::end_layer),
                    1 => [&mut together, &mut singly].map(ProgramBuilder::end_part),
                    _ => [(); 2],
                };
            }
            assert_eq!(together.take(), singly.take());
            assert_eq!(together.marks, singly.marks);
        }
        assert!(taken > 10_000 && refused > 10_000, "{taken} {refused}");
    }

    #[test]
    fn parts_meet_nowhere_and_programs_everywhere() {
        let parts = |slot| Err(ProgramError::Parts { slot });
        for and in [false, true] {
            let mut program = ProgramBuilder::new(8);
            let step = |program: &mut ProgramBuilder, (out, a, b)| {
                if and { program.and(out, a, b) } else { program.xor(out, a, b) }
            };
            step(&mut program, (4, 0, 1)).unwrap();
            program.end_part();
            // Both may read what none writes.
            step(&mut program, (5, 0, 1)).unwrap();
            program.end_part();
            for (refused, slot) in [
                ((6, 4, 0), 4),
                ((6, 0, 5), 5),
                ((4, 2, 2), 4),
                ((0, 2, 2), 0),
                ((5, 0, 1), 5),
                ((1, 1, 2), 1),
            ] {
                assert_eq!(step(&mut program, refused), parts(slot));
            }
            step(&mut program, (6, 2, 0)).unwrap();
            let first = program.take();
            assert_eq!((first.parts().len(), first.steps().len()), (3, 3));
            // The next program is run after it.
            step(&mut program, (0, 4, 6)).unwrap();
            assert_eq!(step(&mut program, (8, 0, 0)), Err(ProgramError::Slot { slot: 8, slots: 8 }));
            assert_eq!(program.finish().parts().len(), 1);
        }
    }
}
