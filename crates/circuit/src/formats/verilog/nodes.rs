//! What bits are made of, and the netlist that comes of it: gates in order, cycles and undriven bits found.

use super::lexer::shown;
use super::{Direction, Parser, Result};
use crate::builder::Builder;
use crate::netlist::{Netlist, Wire};

/// A bit, by its place among [`Parser::nodes`].
pub(super) type NodeId = u32;
pub(super) const ZERO: NodeId = 0;

/// What a bit is: constants, inputs, wires and operations, in any order.
#[derive(Clone, Copy)]
pub(super) enum Node {
    Constant(bool),
    Input,
    /// A declared bit, and by which node it is driven in which line.
    Net {
        driver: Option<NodeId>,
        line: u32,
    },
    Not(NodeId),
    And(NodeId, NodeId),
    Or(NodeId, NodeId),
    Xor(NodeId, NodeId),
    /// The condition, what it is where that is 1, and where it is 0.
    Mux(NodeId, NodeId, NodeId),
}

impl Node {
    fn reads(self) -> [Option<NodeId>; 3] {
        match self {
            Node::Constant(_) | Node::Input => [None; 3],
            Node::Net { driver, .. } => [driver, None, None],
            Node::Not(a) => [Some(a), None, None],
            Node::And(a, b) | Node::Or(a, b) | Node::Xor(a, b) => [Some(a), Some(b), None],
            Node::Mux(c, t, e) => [Some(c), Some(t), Some(e)],
        }
    }
}

/// Nodes that are not built yet, and those that wait for what they read.
const UNSEEN: Wire = Wire(u32::MAX);
const OPEN: Wire = Wire(u32::MAX - 1);

impl Parser<'_> {
    /// The netlist: every bit after what it reads, found depth first without recursion.
    pub(super) fn build(&mut self) -> Result<Netlist> {
        let mut builder = Builder::new();
        let mut outputs = Vec::new();
        let mut wires = vec![UNSEEN; self.nodes.len()];
        for (name, line) in std::mem::take(&mut self.ports) {
            let known = self.names.get(name).map(|&i| i as usize);
            let Some(i) = known.filter(|&i| self.signals[i].direction != Direction::Inside) else {
                let reason = format!("port {} is neither an input nor an output", shown(name));
                return self.lexer.error_at(line, reason, "declare its direction");
            };
            if std::mem::replace(&mut self.signals[i].port, true) {
                return self.lexer.error_at(line, format!("port {} twice", shown(name)), "list it once");
            }
            let port = &self.signals[i];
            if port.direction == Direction::Input {
                let bits = builder.input(String::from_utf8_lossy(name), port.width() as usize);
                wires[port.first as usize..][..bits.len()].copy_from_slice(&bits);
            } else {
                outputs.push(i);
            }
        }
        if let Some(s) = self.signals.iter().find(|s| s.direction != Direction::Inside && !s.port) {
            let reason = format!("{} is an input or output, and no port of the module", shown(s.name));
            return self.lexer.error_at(s.line, reason, "add it to the module's ports");
        }
        // A bit that nothing drives is an error where an output depends on it; elsewhere it is left over of what was optimised
        // away. A cycle is an error anywhere.
        for (which, needed) in [(Direction::Output, true), (Direction::Inside, false)] {
            for s in self.signals.iter().filter(|s| s.direction == which) {
                for node in s.first..s.first + s.width() {
                    self.visit(node, needed, &mut wires, &mut builder)?;
                }
            }
        }
        for port in outputs.into_iter().map(|i| &self.signals[i]) {
            let bits = &wires[port.first as usize..][..port.width() as usize];
            builder.output(String::from_utf8_lossy(port.name), bits);
        }
        builder.finish().or_else(|e| self.error(e.to_string(), "convert it to Bristol Fashion and stream it"))
    }

    fn visit(&self, root: NodeId, needed: bool, wires: &mut [Wire], builder: &mut Builder) -> Result<()> {
        let mut stack = vec![root];
        while let Some(&id) = stack.last() {
            let at = id as usize;
            let node = self.nodes[at];
            if wires[at] == UNSEEN {
                wires[at] = OPEN;
                if needed && matches!(node, Node::Net { driver: None, .. }) {
                    return self.undriven(&stack, wires);
                }
                for read in node.reads().into_iter().flatten() {
                    match wires[read as usize] {
                        UNSEEN => stack.push(read),
                        OPEN => return self.cycle(&stack, wires, read),
                        _ => {}
                    }
                }
                continue;
            }
            stack.pop();
            if wires[at] != OPEN {
                continue;
            }
            let wire = |id: NodeId| wires[id as usize];
            wires[at] = match node {
                Node::Constant(value) => builder.constant(value),
                Node::Net { driver: Some(driver), .. } => wire(driver),
                // Both have been dealt with, or nothing needs them.
                Node::Input | Node::Net { driver: None, .. } => Wire::ZERO,
                Node::Not(a) => builder.not(wire(a)),
                Node::And(a, b) => builder.and(wire(a), wire(b)),
                Node::Or(a, b) => builder.or(wire(a), wire(b)),
                Node::Xor(a, b) => builder.xor(wire(a), wire(b)),
                Node::Mux(c, t, e) => builder.mux(wire(c), wire(t), wire(e)),
            };
        }
        Ok(())
    }

    /// Declared bits that are open, the innermost first, with the line that drives them.
    fn open_nets<'b>(
        &'b self,
        stack: &'b [NodeId],
        wires: &'b [Wire],
    ) -> impl Iterator<Item = (NodeId, u32)> + 'b {
        stack.iter().rev().filter(|id| wires[**id as usize] == OPEN).filter_map(|&id| {
            match self.nodes[id as usize] {
                Node::Net { line, .. } => Some((id, line)),
                _ => None,
            }
        })
    }

    fn undriven<T>(&self, stack: &[NodeId], wires: &[Wire]) -> Result<T> {
        let mut nets = self.open_nets(stack, wires);
        let (net, declared) = nets.next().unwrap_or_default();
        let called = self.called(net);
        let remedy = "assign to it, or remove what reads it";
        match nets.next() {
            Some((_, line)) => {
                let reason = format!("{called} is read and has no driver (declared in line {declared})");
                self.lexer.error_at(line, reason, remedy)
            }
            None => self.lexer.error_at(declared, format!("output {called} has no driver"), remedy),
        }
    }

    fn cycle<T>(&self, stack: &[NodeId], wires: &[Wire], back_to: NodeId) -> Result<T> {
        let (net, line) = self.open_nets(stack, wires).next().unwrap_or((back_to, self.line));
        let reason = format!("{} depends on itself, in a cycle", self.called(net));
        self.lexer.error_at(line, reason, "cut the cycle: a circuit has no state")
    }
}
