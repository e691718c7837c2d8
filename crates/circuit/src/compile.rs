//! From a netlist to the program that a device garbles: independent parts, layers of independent ANDs, and slots that
//! are used again when what they held is not needed any more.
//!
//! Depth is counted in ANDs: a layer's XORs need only ANDs of earlier layers, and so do its ANDs. Circuits that fall
//! apart into components that share inputs alone become parts, which cores garble side by side. A component larger
//! than `WINDOW` gates is cut into windows in the netlist's order, so that what is live at once stays about what it was
//! there, where a layer over everything would keep all of it alive.

use blindcore_accel::garble::{Program, ProgramBuilder};

use crate::netlist::{Gate, Kind, Netlist, Wire};

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

/// Gates of a window.
pub(crate) const WINDOW: usize = 1 << 16;
/// ANDs that a part has at least.
const PART_ANDS: usize = 1024;
/// ANDs that a part's layers have at least on average, so that a layer fills the pipeline of AES many times.
const PART_WIDTH: usize = 32;

impl Compiled {
    /// Compiles a netlist; the same netlist always gives the same program.
    #[must_use]
    pub fn new(netlist: &Netlist) -> Self {
        let first = netlist.first_gate_wire().index();
        let gates = netlist.gates();
        let windows = order(netlist);

        // The last gate, in the new order, that reads each gate's wire; outputs are read at the end.
        let mut last_read = vec![0u32; gates.len()];
        let mut position = 0u32;
        for gate in windows.iter().flat_map(|w| &w.layers).flat_map(|l| l.xors.iter().chain(&l.ands)) {
            position += 1;
            for wire in [gates[*gate as usize].a, gates[*gate as usize].b] {
                if wire.index() >= first {
                    last_read[wire.index() - first] = position;
                }
            }
        }
        for wire in netlist.outputs().iter().flat_map(|p| &p.wires) {
            if wire.index() >= first {
                last_read[wire.index() - first] = u32::MAX;
            }
        }

        let mut slots =
            Slots { of: vec![u32::MAX; gates.len()], free: Vec::new(), next: first as u32, first };
        let mut steps: Vec<Op> = Vec::with_capacity(gates.len() + gates.len() / 8);
        let mut position = 0u32;
        let mut dying = Vec::new();
        for window in &windows {
            if window.new_part {
                steps.push(Op::EndPart);
                // Parts run at once, so they share no slots.
                slots.free.clear();
            }
            for layer in &window.layers {
                for gate in &layer.xors {
                    position += 1;
                    let Gate { a, b, .. } = gates[*gate as usize];
                    let (a_slot, b_slot) = (slots.get(a), slots.get(b));
                    slots.release(a, position, &last_read);
                    if b != a {
                        slots.release(b, position, &last_read);
                    }
                    let out = slots.take(*gate);
                    steps.push(Op::Xor(out, a_slot, b_slot));
                    slots.release_unread(*gate, &last_read);
                }
                for gate in &layer.ands {
                    position += 1;
                    let Gate { a, b, .. } = gates[*gate as usize];
                    let (a_slot, b_slot) = (slots.get(a), slots.get(b));
                    dying.push((a, position));
                    if b != a {
                        dying.push((b, position));
                    }
                    let out = slots.take(*gate);
                    steps.push(Op::And(out, a_slot, b_slot));
                }
                for (wire, position) in dying.drain(..) {
                    slots.release(wire, position, &last_read);
                }
                for gate in &layer.ands {
                    slots.release_unread(*gate, &last_read);
                }
                steps.push(Op::EndLayer);
            }
        }

        let mut program = ProgramBuilder::new(slots.next as usize);
        for step in steps {
            let done = match step {
                Op::Xor(out, a, b) => program.xor(out, a, b),
                Op::And(out, a, b) => program.and(out, a, b),
                Op::EndLayer => {
                    program.end_layer();
                    Ok(())
                }
                Op::EndPart => {
                    program.end_part();
                    Ok(())
                }
            };
            done.expect("slots are handed out to one wire at a time");
        }
        let outputs = netlist.outputs().iter().flat_map(|p| &p.wires).map(|w| slots.get(*w)).collect();
        Self { program: program.finish(), outputs, input_bits: netlist.input_bits() }
    }
}

enum Op {
    Xor(u32, u32, u32),
    And(u32, u32, u32),
    EndLayer,
    EndPart,
}

/// Which slot each gate's wire is in.
struct Slots {
    of: Vec<u32>,
    /// Slots that hold nothing, the one that was freed last on top: it is the warmest.
    free: Vec<u32>,
    next: u32,
    first: usize,
}

impl Slots {
    fn get(&self, wire: Wire) -> u32 {
        wire.index().checked_sub(self.first).map_or(wire.0, |gate| self.of[gate])
    }

    fn take(&mut self, gate: u32) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.of[gate as usize] = slot;
        slot
    }

    /// Frees the slot of a wire whose last reader stands at this position; inputs keep theirs.
    fn release(&mut self, wire: Wire, position: u32, last_read: &[u32]) {
        if let Some(gate) = wire.index().checked_sub(self.first)
            && last_read[gate] == position
        {
            self.free.push(self.of[gate]);
        }
    }

    /// Frees the slot of a gate that nobody reads.
    fn release_unread(&mut self, gate: u32, last_read: &[u32]) {
        if last_read[gate as usize] == 0 {
            self.free.push(self.of[gate as usize]);
        }
    }
}

/// Gates by layer.
#[derive(Default)]
struct LayerGates {
    xors: Vec<u32>,
    ands: Vec<u32>,
}

struct Window {
    /// It begins a part: it shares inputs alone with what comes before.
    new_part: bool,
    layers: Vec<LayerGates>,
}

/// Gates in the order of the program.
fn order(netlist: &Netlist) -> Vec<Window> {
    let first = netlist.first_gate_wire().index();
    let gates = netlist.gates();
    let mut level = vec![0u32; gates.len()];
    let mut windows = Vec::new();
    for part in parts(netlist) {
        for (i, window) in part.chunks(WINDOW).enumerate() {
            let begin = window[0] as usize;
            let mut layers: Vec<LayerGates> = Vec::new();
            for &gate in window {
                let Gate { kind, a, b } = gates[gate as usize];
                // Wires from before the window are there already.
                let of = |wire: Wire| match wire.index().checked_sub(first) {
                    Some(g) if g >= begin => level[g],
                    _ => 0,
                };
                let layer = of(a).max(of(b));
                if layers.len() <= layer as usize {
                    layers.resize_with(layer as usize + 1, LayerGates::default);
                }
                let here = &mut layers[layer as usize];
                match kind {
                    Kind::Xor => here.xors.push(gate),
                    Kind::And => here.ands.push(gate),
                }
                level[gate as usize] = layer + u32::from(kind == Kind::And);
            }
            windows.push(Window { new_part: i == 0 && !windows.is_empty(), layers });
        }
    }
    windows
}

/// Gates of independent components, small ones together, each list in the netlist's order.
fn parts(netlist: &Netlist) -> Vec<Vec<u32>> {
    let first = netlist.first_gate_wire().index();
    let gates = netlist.gates();
    // Union-find with path halving; a root is the least gate of its component.
    let mut parent: Vec<u32> = (0..gates.len() as u32).collect();
    fn root(parent: &mut [u32], mut x: u32) -> u32 {
        while parent[x as usize] != x {
            parent[x as usize] = parent[parent[x as usize] as usize];
            x = parent[x as usize];
        }
        x
    }
    for (i, gate) in gates.iter().enumerate() {
        for wire in [gate.a, gate.b] {
            if let Some(other) = wire.index().checked_sub(first) {
                let (x, y) = (root(&mut parent, i as u32), root(&mut parent, other as u32));
                let (low, high) = (x.min(y), x.max(y));
                parent[high as usize] = low;
            }
        }
    }
    // ANDs of each component, and its depth in ANDs, both at its root.
    let (mut ands, mut depth) = (vec![0u32; gates.len()], vec![0u32; gates.len()]);
    let mut level = vec![0u32; gates.len()];
    for (i, gate) in gates.iter().enumerate() {
        let of = |wire: Wire| wire.index().checked_sub(first).map_or(0, |g| level[g]);
        let is_and = u32::from(gate.kind == Kind::And);
        level[i] = of(gate.a).max(of(gate.b)) + is_and;
        let root = root(&mut parent, i as u32) as usize;
        ands[root] += is_and;
        depth[root] = depth[root].max(level[i]);
    }
    // Components in order of their first gate, gathered until a part is large and wide enough.
    let mut part_of = vec![u32::MAX; gates.len()];
    let mut parts: Vec<Vec<u32>> = Vec::new();
    let (mut size, mut deepest) = (0, 0);
    for i in 0..gates.len() {
        let root = root(&mut parent, i as u32) as usize;
        if part_of[root] == u32::MAX {
            if parts.is_empty() || size >= PART_ANDS.max(PART_WIDTH * deepest) {
                parts.push(Vec::new());
                (size, deepest) = (0, 0);
            }
            part_of[root] = parts.len() as u32 - 1;
            size += ands[root] as usize;
            deepest = deepest.max(depth[root] as usize);
        }
        parts[part_of[root] as usize].push(i as u32);
    }
    parts
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
