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
    /// What was done to each slot last.
    stamps: Vec<Stamps>,
    /// Numbers of layers and parts go on from program to program, so that no stamp has to be cleared. Those up to these are of
    /// earlier programs; the one of parts stands for several parts of the present one.
    layers_before: u32,
    parts_before: u32,
    layer: Layer,
    part_layer: usize,
    part_step: usize,
    part_and: usize,
}

/// The ANDs of which layer wrote and read a slot last, which part wrote it, and the one part that read it, or the number that
/// stands for several.
#[derive(Clone, Copy, Default)]
struct Stamps {
    and_wrote: u32,
    and_read: u32,
    part_wrote: u32,
    part_read: u32,
}

/// Steps of a program, together with the numbers of layers and parts before it: so few that none of those, and no count of a
/// layer, wraps.
const MOST_STEPS: usize = u32::MAX as usize - 2;
/// Numbers of layers and parts from which on stamps are cleared.
const MOST_BEFORE: usize = 1 << 30;

impl ProgramBuilder {
    /// An empty program over this many slots.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let program = Program { slots, steps: Vec::new(), layers: Vec::new(), parts: Vec::new(), ands: 0 };
        let (part_layer, part_step, part_and) = (0, 0, 0);
        Self {
            program,
            stamps: vec![Stamps::default(); slots],
            layers_before: 0,
            parts_before: 1,
            layer: Layer::default(),
            part_layer,
            part_step,
            part_and,
        }
    }

    /// Makes the slots this many, if they are fewer.
    pub fn grow(&mut self, slots: usize) {
        if slots > self.program.slots {
            self.program.slots = slots;
            self.stamps.resize(slots, Stamps::default());
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
        let now = self.layers_before + self.program.layers.len() as u32 + 1;
        let step = Step { out, a, b };
        self.step(step)?;
        for slot in [a, b] {
            if self.stamps[slot as usize].and_wrote == now {
                return Err(ProgramError::Layer { slot });
            }
        }
        let written = &mut self.stamps[out as usize];
        // The AND itself may write what it reads; nobody else of its layer may.
        if written.and_wrote == now || written.and_read == now {
            return Err(ProgramError::Layer { slot: out });
        }
        written.and_wrote = now;
        for slot in [a, b] {
            self.stamps[slot as usize].and_read = now;
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
        self.take()
    }

    /// The program, and an empty one over the same slots begins, which is run after it and may read what it wrote.
    pub fn take(&mut self) -> Program {
        self.end_part();
        let slots = self.program.slots;
        let empty = Program { slots, steps: Vec::new(), layers: Vec::new(), parts: Vec::new(), ands: 0 };
        let program = std::mem::replace(&mut self.program, empty);
        (self.part_layer, self.part_step, self.part_and) = (0, 0, 0);
        let layers = self.layers_before as usize + program.layers.len();
        // One more for the number that stands for several.
        let parts = self.parts_before as usize + program.parts.len() + 2;
        if layers.max(parts) < MOST_BEFORE {
            (self.layers_before, self.parts_before) = (layers as u32, parts as u32);
        } else {
            self.stamps.fill(Stamps::default());
            (self.layers_before, self.parts_before) = (0, 1);
        }
        program
    }

    fn step(&mut self, step: Step) -> Result<(), ProgramError> {
        if self.program.steps.len() + self.layers_before.max(self.parts_before) as usize >= MOST_STEPS {
            return Err(ProgramError::Steps { most: MOST_STEPS });
        }
        let slots = self.program.slots;
        for slot in [step.out, step.a, step.b] {
            if slot as usize >= slots {
                return Err(ProgramError::Slot { slot, slots });
            }
        }
        let many = self.parts_before;
        let part = many + self.program.parts.len() as u32 + 1;
        for slot in [step.a, step.b] {
            let stamps = &mut self.stamps[slot as usize];
            if stamps.part_wrote > many && stamps.part_wrote != part {
                return Err(ProgramError::Parts { slot });
            }
            let read = &mut stamps.part_read;
            *read = if *read < many || *read == part { part } else { many };
        }
        let stamps = &mut self.stamps[step.out as usize];
        let others = stamps.part_wrote > many && stamps.part_wrote != part;
        if others || (stamps.part_read >= many && stamps.part_read != part) {
            return Err(ProgramError::Parts { slot: step.out });
        }
        stamps.part_wrote = part;
        self.program.steps.push(step);
        Ok(())
    }
}
