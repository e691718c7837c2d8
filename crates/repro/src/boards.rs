//! A circuit on several of SIFO's boards.

use blindcore_accel::garble::{GarblingScheme, Labels};
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::sifo::boards::{BoardClocks, Cut};
use blindcore_accel_rtl::sifo::circuits::Placed;
use blindcore_accel_rtl::sifo::{CLOCK, Overlay, OverlaySettings};
use blindcore_circuit::netlist::Netlist;
use serde_json::{Value, json};

use crate::labels::{Fresh, decode};
use blindcore_units::bytes;

/// Bytes per second between boards: a network of 10 Gbit/s.
const NETWORK: f64 = 1.25e9;

/// What several boards took, and one.
#[derive(Clone, Debug)]
pub struct Several {
    taken: BoardClocks,
    one: u64,
    ands: usize,
    outputs: Vec<Vec<bool>>,
}

/// Garbles on as many simulated boards, one after the other, makes sure that the tables are those of the CPU, and evaluates
/// them there. Their number is 1 to 16.
///
/// # Errors
/// The chip is not built, can't hold the circuit or stopped; or its tables are not the CPU's, or not the circuit's.
pub fn run(
    device: &str,
    settings: &OverlaySettings,
    netlist: &Netlist,
    placed: &Placed,
    inputs: &[Vec<bool>],
    boards: usize,
) -> anyhow::Result<Several> {
    let cut = Cut::new(&placed.program, boards);
    let mut chips = Vec::new();
    for _ in 0..boards {
        chips.push(crate::chip(Overlay::with_settings(device, *settings))?);
    }
    let scheme = GarblingScheme::InsecureSifo;
    let Fresh { offset, mut labels, mut active } = Fresh::new(placed, inputs)?;
    let [mut whole, mut whole_active] = [(); 2].map(|()| Labels::new(cut.whole().slots(), 1));
    for (value, slot) in (0..).zip(cut.inputs()) {
        whole.set(value, 0, labels.get(*slot, 0));
        whole_active.set(value, 0, active.get(*slot, 0));
    }
    let ands = placed.program.ands();
    let mut tables = vec![0; ands * scheme.table_bytes()];
    let mut cpu_tables = tables.clone();
    let taken = cut.run(&chips, &offset, 0, &mut labels, &mut tables)?;
    let cpu = Cpu::open("cpu")?;
    let garbler = cpu.garble(&scheme)?;
    garbler.garble(cut.whole(), &offset, 0, &mut whole, &mut cpu_tables)?;
    anyhow::ensure!(
        tables == cpu_tables,
        "the tables of {boards} boards and of {} differ; report this",
        cpu.name()
    );
    cpu.evaluate(&scheme)?.evaluate(cut.whole(), 0, &mut whole_active, &tables)?;
    for (slot, value) in cut.outputs() {
        active.set(*slot, 0, whole_active.get(*value, 0));
    }
    let outputs = decode(netlist, placed, &labels, &active, &offset)?;
    anyhow::ensure!(
        outputs == netlist.evaluate(inputs)?,
        "{device}'s tables don't evaluate to what the circuit computes; report this"
    );
    let one = Cut::new(&placed.program, 1).estimate(settings).cycles;
    Ok(Several { taken, one, ands, outputs })
}

impl Several {
    /// Microseconds of the boards' clocks, of what travels, and of one board alone.
    fn microseconds(&self) -> [f64; 3] {
        let us = |clocks: u64| clocks as f64 / CLOCK * 1e6;
        [us(self.taken.cycles), self.taken.bytes_moved as f64 / NETWORK * 1e6, us(self.one)]
    }

    fn speedup(&self) -> f64 {
        let [garbling, moving, one] = self.microseconds();
        if garbling + moving > 0.0 { one / (garbling + moving) } else { 1.0 }
    }

    /// The bits of each output.
    #[must_use]
    pub fn outputs(&self) -> &[Vec<bool>] {
        &self.outputs
    }

    /// All of it for programs.
    #[must_use]
    pub fn document(&self, circuit: &str) -> Value {
        let [garbling, moving, one] = self.microseconds();
        json!({
            "circuit": circuit,
            "boards": self.taken.boards.len(),
            "same_bits_as": "cpu",
            "ands": self.ands,
            "steps": self.taken.steps,
            "clocks": self.taken.cycles,
            "clocks_of_boards": self.taken.boards.iter().map(|clocks| clocks.cycles).collect::<Vec<_>>(),
            "gates_of_boards": self.taken.boards.iter().map(|clocks| clocks.gates).collect::<Vec<_>>(),
            "labels_moved": self.taken.labels_moved,
            "bytes_moved": self.taken.bytes_moved,
            "microseconds_garbling": garbling,
            "microseconds_moving_at_10_gbit": moving,
            "microseconds_of_one_board": one,
            "speedup": self.speedup(),
        })
    }

    /// All of it for people, under the circuit's name.
    #[must_use]
    pub fn text(&self, device: &str, circuit: &str) -> String {
        let [garbling, moving, one] = self.microseconds();
        let mut text = format!(
            "{} boards of {device} garbled {} ANDs of {} in {} steps, every table as cpu has it, which \
             evaluated them to the outputs in the clear\n",
            self.taken.boards.len(),
            self.ands,
            circuit,
            self.taken.steps,
        );
        for (board, clocks) in self.taken.boards.iter().enumerate() {
            text += &format!("  board {board:<2} {:>9} gates {:>12} clocks\n", clocks.gates, clocks.cycles);
        }
        text += &format!(
            "{garbling:.1} us at 200 MHz, step by step with the slowest, and {moving:.1} us for {} labels ({}) at 10 Gbit/s; \
             one board {one:.1} us: {:.2}x\n",
            self.taken.labels_moved,
            bytes(self.taken.bytes_moved as u64),
            self.speedup(),
        );
        text
    }
}
