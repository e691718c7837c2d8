//! From a netlist to the program that a device garbles: independent parts, layers of independent ANDs, and slots that
//! are used again when what they held is not needed any more.
//!
//! Depth is counted in ANDs: a layer's XORs need only ANDs of earlier layers, and so do its ANDs. Circuits that fall
//! apart into components that share inputs alone become parts, which cores garble side by side. A component larger
//! than a window (2^16 gates) is cut into windows in the netlist's order, so that what is live at once stays about what it was
//! there, where a layer over everything would keep all of it alive.

use blindcore_accel::garble::Program;

use crate::levels::{DIES, Emitter, LIVES, Local, Runs, SLOT, WINDOW, parts};
use crate::netlist::{Kind, Netlist, Wire};

/// A netlist as a program, with the slots of its inputs and outputs.
///
/// Slot 0 holds the constant 0 and slot 1 the constant 1; then come the inputs' bits in order.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What a device runs.
    pub program: Program,
    /// Slots of all outputs' bits, in order.
    pub outputs: Vec<u32>,
    /// Bits of all inputs; bit `i` is in slot `2 + i`.
    pub input_bits: usize,
}

impl Compiled {
    /// Compiles a netlist; the same netlist always gives the same program.
    #[must_use]
    pub fn new(netlist: &Netlist) -> Self {
        let first = netlist.first_gate_wire().index();
        let gate_of = |wire: Wire| wire.index().checked_sub(first);
        let all: Vec<Local> = netlist
            .gates()
            .iter()
            .map(|gate| {
                let [a, b] = gate.reads().map(|w| gate_of(w).map_or(SLOT | w.0, |gate| gate as u32));
                Local { and: gate.kind() == Kind::And, a, b }
            })
            .collect();
        let parts = parts(&all);
        let windows = || parts.iter().flat_map(|part| part.chunks(WINDOW));

        // The window of each gate, and the last one that reads its wire; outputs are read at the end.
        let (mut window_of, mut last_read) = (vec![0u32; all.len()], vec![0u32; all.len()]);
        for (i, window) in windows().enumerate() {
            for &gate in window {
                window_of[gate as usize] = i as u32;
                for operand in [all[gate as usize].a, all[gate as usize].b] {
                    if operand & SLOT == 0 {
                        last_read[operand as usize] = i as u32;
                    }
                }
            }
        }
        for gate in netlist.outputs().iter().flat_map(|p| &p.wires).filter_map(|w| gate_of(*w)) {
            last_read[gate] = u32::MAX;
        }

        let mut emitter = Emitter::new(first as u32, first, usize::MAX, Runs::Often);
        // Of each gate its place in its window, and then its slot.
        let mut at = vec![0u32; all.len()];
        let (mut gates, mut keep, mut slots, mut dying) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut now = 0;
        for part in &parts {
            for window in part.chunks(WINDOW) {
                gates.clear();
                for (place, &gate) in window.iter().enumerate() {
                    let mut local = all[gate as usize];
                    for operand in [&mut local.a, &mut local.b] {
                        if *operand & SLOT != 0 {
                            continue;
                        }
                        let read = *operand as usize;
                        *operand = at[read];
                        if window_of[read] != now {
                            *operand |= SLOT;
                            if last_read[read] == now {
                                // Once, whoever else of the window reads it.
                                last_read[read] = 0;
                                dying.push(at[read]);
                            }
                        }
                    }
                    at[gate as usize] = place as u32;
                    gates.push(local);
                }
                keep.clear();
                keep.extend(window.iter().map(|g| if last_read[*g as usize] > now { LIVES } else { DIES }));
                slots.resize(window.len(), 0);
                emitter.part(&gates, &keep, &mut slots);
                window.iter().zip(&slots).for_each(|(gate, slot)| at[*gate as usize] = *slot);
                emitter.free_slots(dying.drain(..));
                now += 1;
            }
            emitter.end_part();
        }
        let slot = |wire: &Wire| gate_of(*wire).map_or(wire.0, |gate| at[gate]);
        let outputs = netlist.outputs().iter().flat_map(|p| &p.wires).map(slot).collect();
        Self { program: emitter.finish(), outputs, input_bits: netlist.input_bits() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Builder;

    /// Runs a program in the clear.
    fn run(compiled: &Compiled, inputs: &[bool]) -> Vec<bool> {
        let mut slots = vec![false; compiled.program.slots()];
        slots[1] = true;
        slots[2..2 + inputs.len()].copy_from_slice(inputs);
        for part in compiled.program.parts() {
            for (xors, ands, _) in compiled.program.layers_of(*part) {
                for s in xors {
                    slots[s.out as usize] = slots[s.a as usize] ^ slots[s.b as usize];
                }
                for s in ands {
                    slots[s.out as usize] = slots[s.a as usize] & slots[s.b as usize];
                }
            }
        }
        compiled.outputs.iter().map(|s| slots[*s as usize]).collect()
    }

    #[test]
    fn random_netlists_compute_the_same_in_fewer_slots() {
        let mut seed = 1u64;
        let mut random = move |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        for size in [0, 1, 5, 100, 3000, 150_000] {
            let mut c = Builder::new();
            let inputs = c.input("x", 9);
            let mut bits = inputs.clone();
            bits.extend([Wire::ZERO, Wire::ONE]);
            for _ in 0..size {
                // Mostly near wires, so that most die early; now and then an old one.
                let near = bits.len().min(60);
                let pick =
                    |r: usize, far: usize| if far == 0 { r % bits.len() } else { bits.len() - 1 - r % near };
                let (a, b) =
                    (bits[pick(random(1 << 30), random(20))], bits[pick(random(1 << 30), random(20))]);
                let new = if random(3) == 0 { c.and(a, b) } else { c.xor(a, b) };
                bits.push(new);
            }
            let outs: Vec<_> = (0..20)
                .map(|i| bits[(i * 7919) % bits.len()])
                .chain(bits.iter().rev().take(5).copied())
                .collect();
            c.output("y", &outs);
            let netlist = c.finish().unwrap();
            let compiled = Compiled::new(&netlist);
            assert_eq!(compiled.program.steps().len(), netlist.gates().len());
            assert_eq!(compiled.program.ands(), netlist.ands());
            for value in 0..512u32 {
                if size > 10_000 && value % 100 != 0 {
                    continue;
                }
                let bits: Vec<bool> = (0..9).map(|i| value >> i & 1 == 1).collect();
                assert_eq!(run(&compiled, &bits), netlist.evaluate(std::slice::from_ref(&bits)).unwrap()[0]);
            }
            if netlist.gates().len() > 10_000 {
                assert!(compiled.program.slots() < netlist.wires() / 4, "{}", compiled.program.slots());
            }
        }
    }

    #[test]
    fn components_become_parts() {
        let mut c = Builder::new();
        let x = c.input("x", 64);
        for i in 0..8 {
            let mut sums = x.clone();
            for j in 0..40 {
                let last = sums.clone();
                for k in 0..64 {
                    let and = c.and(last[k], last[(k + i + j) % 64]);
                    sums[k] = c.xor(and, x[(k + i * 5 + 1) % 64]);
                }
            }
            c.output(format!("y{i}"), &sums);
        }
        let netlist = c.finish().unwrap();
        let compiled = Compiled::new(&netlist);
        assert_eq!(compiled.program.parts().len(), 8);
        let bits: Vec<bool> = (0..64).map(|i| i % 3 == 0).collect();
        let want: Vec<bool> = netlist.evaluate(std::slice::from_ref(&bits)).unwrap().concat();
        assert_eq!(run(&compiled, &bits), want);
    }
}
