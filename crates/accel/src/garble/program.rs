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

/// Makes a [`Program`], step by step, and checks it as it grows.
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
    /// The ANDs of which layer wrote and read a slot last, and which part did: numbers from 1.
    and_wrote: Vec<u32>,
    and_read: Vec<u32>,
    part_wrote: Vec<u32>,
    /// The one part that read it, or `MANY`.
    part_read: Vec<u32>,
    layer: Layer,
    part_layer: usize,
    part_step: usize,
    part_and: usize,
}

const MANY: u32 = u32::MAX;
/// Steps of a program: so few that no number of a layer or a part, and no count of a layer, is `MANY` or wraps.
const MOST_STEPS: usize = MANY as usize - 2;

impl ProgramBuilder {
    /// An empty program over this many slots.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let program = Program { slots, steps: Vec::new(), layers: Vec::new(), parts: Vec::new(), ands: 0 };
        let (and_wrote, and_read) = (vec![0; slots], vec![0; slots]);
        let (part_wrote, part_read) = (vec![0; slots], vec![0; slots]);
        let layer = Layer::default();
        let (part_layer, part_step, part_and) = (0, 0, 0);
        Self { program, and_wrote, and_read, part_wrote, part_read, layer, part_layer, part_step, part_and }
    }

    /// An XOR; after an AND it begins a new layer.
    ///
    /// # Errors
    /// No such slot, or one that another part writes; or there are 2^32 - 3 steps.
    pub fn xor(&mut self, out: u32, a: u32, b: u32) -> Result<(), ProgramError> {
        if self.layer.ands > 0 {
            self.end_layer();
        }
        self.step(Step { out, a, b })?;
        self.layer.xors += 1;
        Ok(())
    }

    /// An AND of the current layer.
    ///
    /// # Errors
    /// No such slot, or one that another AND of the layer or another part writes; or there are 2^32 - 3 steps.
    pub fn and(&mut self, out: u32, a: u32, b: u32) -> Result<(), ProgramError> {
        let now = self.program.layers.len() as u32 + 1;
        let step = Step { out, a, b };
        self.step(step)?;
        for slot in [a, b] {
            if self.and_wrote[slot as usize] == now {
                return Err(ProgramError::Layer { slot });
            }
        }
        let written = &mut self.and_wrote[out as usize];
        // The AND itself may write what it reads; nobody else of its layer may.
        if *written == now || self.and_read[out as usize] == now {
            return Err(ProgramError::Layer { slot: out });
        }
        *written = now;
        for slot in [a, b] {
            self.and_read[slot as usize] = now;
        }
        self.layer.ands += 1;
        self.program.ands += 1;
        Ok(())
    }

    /// Ends the current layer, so that the next AND may read what its ANDs wrote.
    pub fn end_layer(&mut self) {
        if self.layer != Layer::default() {
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
        self.end_part();
        self.program
    }

    fn step(&mut self, step: Step) -> Result<(), ProgramError> {
        if self.program.steps.len() >= MOST_STEPS {
            return Err(ProgramError::Steps { most: MOST_STEPS });
        }
        let slots = self.program.slots;
        for slot in [step.out, step.a, step.b] {
            if slot as usize >= slots {
                return Err(ProgramError::Slot { slot, slots });
            }
        }
        let part = self.program.parts.len() as u32 + 1;
        for slot in [step.a, step.b] {
            let wrote = self.part_wrote[slot as usize];
            if wrote != 0 && wrote != part {
                return Err(ProgramError::Parts { slot });
            }
            let read = &mut self.part_read[slot as usize];
            *read = if *read == 0 || *read == part { part } else { MANY };
        }
        let (wrote, read) = (self.part_wrote[step.out as usize], self.part_read[step.out as usize]);
        if (wrote != 0 && wrote != part) || (read != 0 && read != part) {
            return Err(ProgramError::Parts { slot: step.out });
        }
        self.part_wrote[step.out as usize] = part;
        self.program.steps.push(step);
        Ok(())
    }
}
