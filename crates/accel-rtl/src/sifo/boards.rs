//! A program over several boards: who garbles which gate, and which labels travel.
//!
//! ```text
//!   step 1                 step 2
//!   board 0  ▓▓▓▓▓▓ ──┐    board 0  ▓▓▓▓▓▓▓▓      boards garble side by side; between steps,
//!   board 1  ▓▓▓▓▓  ──┴──▶ board 1  ▓▓▓▓▓▓▓       labels that another board needs travel
//! ```
//!
//! Source: what SIFO (Fang, Ioannidis and Leeser 2019) proposes in section 5: a large problem over several nodes, each with
//! a board. A gate goes where its operands are, as long as that board has no more than its share of the gates that could be
//! done at once; subcircuits that share nothing but inputs end up on boards of their own, and nothing travels.

use std::collections::HashMap;

use blindcore_accel::Error;
use blindcore_accel::garble::{GarblingScheme, Labels, Offset, Program, ProgramBuilder};

use super::clocks::Clocks;
use super::schedule::{Value, Values};
use super::{Overlay, OverlaySettings};

/// What a board garbles in a step.
#[derive(Clone, Debug)]
struct Piece {
    board: usize,
    program: Program,
    /// ANDs of the pieces before.
    first_and: usize,
    /// Labels that come from elsewhere before it begins: the value and its slot here.
    arrive: Vec<(Value, u32)>,
    /// Labels that others need, or that are asked for: the value and its slot here.
    leave: Vec<(Value, u32)>,
}

/// A program cut into pieces for several boards.
#[derive(Clone, Debug)]
pub struct Cut {
    boards: usize,
    /// The pieces of each step; within a step no piece needs another.
    steps: Vec<Vec<Piece>>,
    slots: Vec<usize>,
    inputs: Vec<u32>,
    outputs: Vec<(u32, Value)>,
    moved: usize,
    /// The same gates in the order in which they are numbered.
    whole: Program,
}

/// What the boards took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardClocks {
    /// Clocks of each board.
    pub boards: Vec<Clocks>,
    /// Clocks until the last board is done, step by step: the slowest of each, without what travels.
    pub cycles: u64,
    /// Steps.
    pub steps: usize,
    /// Labels that went from a board to another.
    pub labels_moved: usize,
    /// The bytes of those.
    pub bytes_moved: usize,
}

impl Cut {
    /// Cuts a program.
    ///
    /// # Panics
    /// No board.
    #[must_use]
    pub fn new(program: &Program, boards: usize) -> Self {
        assert!(boards > 0, "a board at least");
        let values = Values::new(program);
        let first = values.inputs.len();
        // Depth of each gate, and who could be done at once.
        let mut depth = vec![0u32; values.count()];
        let mut layers: Vec<Vec<u32>> = Vec::new();
        for (i, (_, a, b)) in values.gates.iter().enumerate() {
            let deep = depth[*a as usize].max(depth[*b as usize]) + 1;
            depth[first + i] = deep;
            if layers.len() < deep as usize {
                layers.push(Vec::new());
            }
            layers[deep as usize - 1].push(i as u32);
        }
        let mut owner = vec![usize::MAX; values.count()];
        for layer in &layers {
            let share = layer.len().div_ceil(boards);
            let mut load = vec![0usize; boards];
            for (nth, gate) in layer.iter().enumerate() {
                let (_, a, b) = values.gates[*gate as usize];
                // What came last is nearest; a gate with inputs alone goes with its neighbours.
                let near = if depth[a as usize] >= depth[b as usize] { a } else { b };
                let board = match owner[near as usize] {
                    usize::MAX => (nth / share).min(boards - 1),
                    board if load[board] < share + share / 4 => board,
                    _ => (0..boards).min_by_key(|b| load[*b]).expect("a board at least"),
                };
                load[board] += 1;
                owner[first + *gate as usize] = board;
            }
        }
        // A gate comes a step after what it gets from another board, and no earlier than any of its operands.
        let mut step = vec![0u32; values.count()];
        for (i, (_, a, b)) in values.gates.iter().enumerate() {
            let here = owner[first + i];
            let after = |v: Value| {
                let from = owner[v as usize];
                step[v as usize] + u32::from(from != usize::MAX && from != here)
            };
            step[first + i] = after(*a).max(after(*b));
        }
        let steps = step.iter().max().map_or(0, |s| *s as usize + 1);
        let mut order: Vec<u32> = (0..values.gates.len() as u32).collect();
        let key = |i: u32| (step[first + i as usize], owner[first + i as usize], depth[first + i as usize]);
        // ANDs behind the XORs of their depth, so that a layer has them all.
        order.sort_by_key(|i| (key(*i), values.gates[*i as usize].0, *i));

        let mut slot_of: Vec<HashMap<Value, u32>> = vec![HashMap::new(); boards];
        let mut has: Vec<HashMap<Value, ()>> = vec![HashMap::new(); boards];
        let mut needed = vec![Vec::new(); values.count()]; // by other boards
        for (i, (_, a, b)) in values.gates.iter().enumerate() {
            let here = owner[first + i];
            for value in [*a, *b] {
                let from = owner[value as usize];
                if from != usize::MAX && from != here && !needed[value as usize].contains(&here) {
                    needed[value as usize].push(here);
                }
            }
        }
        let moved = needed.iter().map(Vec::len).sum();
        let asked: HashMap<Value, ()> = values.outputs.iter().map(|(_, value)| (*value, ())).collect();
        let mut cut = Self {
            boards,
            steps: vec![Vec::new(); steps],
            slots: Vec::new(),
            inputs: values.inputs.clone(),
            outputs: values.outputs.clone(),
            moved,
            whole: ProgramBuilder::new(0).finish(),
        };
        let mut whole = ProgramBuilder::new(values.count());
        let mut ands = 0;
        // Slots are known before programs are built, which want their number.
        for i in &order {
            let (_, a, b) = values.gates[*i as usize];
            let out = first as Value + i;
            let slots = &mut slot_of[owner[out as usize]];
            for value in [a, b, out] {
                let next = slots.len() as u32;
                slots.entry(value).or_insert(next);
            }
        }
        cut.slots = slot_of.iter().map(HashMap::len).collect();
        for piece in order.chunk_by(|a, b| (key(*a).0, key(*a).1) == (key(*b).0, key(*b).1)) {
            let (at, board, _) = key(piece[0]);
            let slots = &slot_of[board];
            let mut program = ProgramBuilder::new(slots.len());
            let (mut arrive, mut leave) = (Vec::new(), Vec::new());
            let first_and = ands;
            for layer in piece.chunk_by(|a, b| key(*a).2 == key(*b).2) {
                for i in layer {
                    let (and, a, b) = values.gates[*i as usize];
                    let out = first as Value + i;
                    for value in [a, b] {
                        if has[board].insert(value, ()).is_none() && owner[value as usize] != board {
                            arrive.push((value, slots[&value]));
                        }
                    }
                    has[board].insert(out, ());
                    if !needed[out as usize].is_empty() || asked.contains_key(&out) {
                        leave.push((out, slots[&out]));
                    }
                    let (s_out, s_a, s_b) = (slots[&out], slots[&a], slots[&b]);
                    let added = if and {
                        ands += 1;
                        whole.and(out, a, b).and(program.and(s_out, s_a, s_b))
                    } else {
                        whole.xor(out, a, b).and(program.xor(s_out, s_a, s_b))
                    };
                    added.expect("gates of one depth need nothing of each other");
                }
                program.end_layer();
                whole.end_layer();
            }
            let program = program.finish();
            cut.steps[at as usize].push(Piece { board, program, first_and, arrive, leave });
        }
        cut.whole = whole.finish();
        cut
    }

    /// Labels that travel.
    #[must_use]
    pub fn labels_moved(&self) -> usize {
        self.moved
    }

    /// The same gates in the order in which the boards number them, over a slot for each wire: what one device garbles to
    /// the same tables. Inputs are its first slots, in the order of [`Cut::inputs`].
    #[must_use]
    pub fn whole(&self) -> &Program {
        &self.whole
    }

    /// Slots of the program that was cut that are read before they are written.
    #[must_use]
    pub fn inputs(&self) -> &[u32] {
        &self.inputs
    }

    /// Slots of the program that was cut that are written, and the slots of [`Cut::whole`] that hold the same in the end.
    #[must_use]
    pub fn outputs(&self) -> &[(u32, u32)] {
        &self.outputs
    }

    /// Garbles on boards that are simulated one after the other. Tables come in the order of [`Cut::whole`].
    ///
    /// # Errors
    /// Not as many boards as it was cut for, operands that don't fit, or a board stopped.
    pub fn run(
        &self,
        boards: &[Overlay],
        offset: &Offset,
        first_gate: u64,
        labels: &mut Labels,
        tables: &mut [u8],
    ) -> Result<BoardClocks, Error> {
        if boards.len() != self.boards {
            let want = self.boards.to_string();
            return Err(Error::Length { what: "boards", got: boards.len(), want, unit: "boards" });
        }
        let row = GarblingScheme::InsecureSifo.table_bytes();
        let want = self.whole.ands() * row;
        if tables.len() != want {
            let (got, want) = (tables.len(), want.to_string());
            return Err(Error::Length { what: "tables", got, want, unit: "bytes" });
        }
        let mut known: HashMap<Value, _> =
            (0..).zip(&self.inputs).map(|(value, slot)| (value, labels.get(*slot, 0))).collect();
        let mut here: Vec<Labels> = self.slots.iter().map(|slots| Labels::new(*slots, 1)).collect();
        let taken = self.each(|piece| {
            let labels = &mut here[piece.board];
            for (value, slot) in &piece.arrive {
                labels.set(*slot, 0, known[value]);
            }
            let tables = &mut tables[piece.first_and * row..][..piece.program.ands() * row];
            let first = first_gate + piece.first_and as u64;
            let clocks = boards[piece.board].run(&piece.program, offset, first, 0, labels, tables)?;
            known.extend(piece.leave.iter().map(|(value, slot)| (*value, labels.get(*slot, 0))));
            Ok(clocks)
        })?;
        for (slot, value) in &self.outputs {
            labels.set(*slot, 0, known[value]);
        }
        Ok(taken)
    }

    /// What boards with these settings take, by the model of the chip.
    #[must_use]
    pub fn estimate(&self, settings: &OverlaySettings) -> BoardClocks {
        self.each(|piece| Ok(Overlay::estimate(settings, &piece.program))).expect("the model never fails")
    }

    fn each(&self, mut take: impl FnMut(&Piece) -> Result<Clocks, Error>) -> Result<BoardClocks, Error> {
        let label = GarblingScheme::InsecureSifo.label_bits() as usize / 8;
        let mut taken = BoardClocks {
            boards: vec![Clocks::default(); self.boards],
            steps: self.steps.len(),
            labels_moved: self.moved,
            bytes_moved: self.moved * label,
            ..BoardClocks::default()
        };
        for step in &self.steps {
            let mut slowest = 0;
            for piece in step {
                let clocks = take(piece)?;
                slowest = slowest.max(clocks.cycles);
                taken.boards[piece.board] += clocks;
            }
            taken.cycles += slowest;
        }
        Ok(taken)
    }
}
