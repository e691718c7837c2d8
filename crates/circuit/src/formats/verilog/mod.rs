//! Structural Verilog, as yosys writes it: one module of assignments or of gates.
//!
//! Make one from any combinational Verilog by
//!
//! ```text
//! yosys -p "read_verilog FILE; synth -flatten -top NAME; abc -g AND,XOR; opt_clean; write_verilog OUT"
//! ```
//!
//! and it has as few ANDs as `abc` finds. What is read:
//!
//! - declarations of `input`, `output`, `wire` (`reg`, `logic`) with ranges in either direction;
//! - `assign`, in any order, of `~ & | ^ ~^ ! && || ?:` and reductions on vectors of any width, selects by constants,
//!   concatenations, repetitions, `$signed` and constants, with the widths and signs of IEEE 1364-2005, sections 5.4 and 5.5;
//!   `x` and `z` are 0, for a circuit that doesn't care;
//! - cells of `write_verilog -noexpr`: `$_AND_` and its kin up to `$_MUX16_` and `$_OAI4_`.
//!
//! `|`, NAND, NOR, ANDNOT, ORNOT and a multiplexer take one AND, XNOR and NOT none, AOI3 and OAI3 two, AOI4 and OAI4
//! three. Arithmetic, comparisons, flip-flops, `always`, `inout`, further modules and instances of them are refused by name, as
//! are a cycle, a bit with two drivers and an output that depends on a bit without one. Inputs and outputs come in the ports'
//! order.
//!
//! ```
//! use blindcore_circuit::formats::verilog;
//!
//! let text = b"module m(a, y); input [1:0] a; output y; assign y = a[1] ? ~a[0] : a[0]; endmodule";
//! let netlist = verilog::read("m.v", text)?;
//! assert_eq!(netlist.evaluate(&[vec![true, false]])?, [[true]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod expression;
mod lexer;
mod nodes;

use std::collections::HashMap;

use super::FormatError;
use crate::netlist::Netlist;
use crate::ports::MAX_PORTS;
use expression::Expression;
use lexer::{Lexer, Token, shown};
use nodes::{Node, NodeId, ZERO};

/// Bytes in a file, at most.
pub(crate) const MAX_BYTES: u64 = 256 << 20;
/// Bytes in an identifier, at most.
pub(crate) const MAX_IDENTIFIER: usize = 1 << 16;
/// Bits in a vector, at most.
pub(crate) const MAX_WIDTH: u32 = 1 << 20;
/// Bits of wires, operands and results that a file of any size may have, those that it may have besides for each of its bytes, and the most of
/// any file. By them memory is in proportion to the file: some 60 MB, and 200 bytes for each of its own.
const FREE_BITS: usize = 1 << 23;
const BITS_A_BYTE: usize = 32;
const MOST_BITS: usize = 1 << 27;
/// What a bit of a wire counts for: an operand is forgotten after its statement, a wire is kept to the end.
const WIRE: usize = 4;

const TECHMAP: &str =
    "run yosys's `synth -flatten; abc -g AND,XOR` before write_verilog, which leaves no such thing";
const HIERARCHY: &str = "let yosys flatten it: yosys -p \"read_verilog FILE; synth -flatten -top NAME; abc -g AND,XOR; \
                         opt_clean; write_verilog OUT\"";
const COMBINATIONAL: &str =
    "combinational circuits only: unroll its cycles, and let yosys's `proc; synth -flatten` remove it";
const SYNTAX: &str = "write it with yosys's write_verilog, and fetch it again if it was cut";

type Result<T> = std::result::Result<T, FormatError>;

pub(super) fn too_large(name: &str, bytes: u64) -> FormatError {
    FormatError::Content {
        file: name.to_owned(),
        line: 1,
        reason: format!("{bytes} B of Verilog are over the limit of {MAX_BYTES} B"),
        remedy: "convert it to Bristol Fashion, which is read in a stream",
    }
}

/// Reads a module; `name` is for errors.
///
/// # Errors
/// It is too large, or no such Verilog: which line, why, and what to do.
pub fn read(name: &str, text: &[u8]) -> Result<Netlist> {
    read_at(name, 1, text)
}

pub(super) fn read_at(name: &str, first_line: u64, text: &[u8]) -> Result<Netlist> {
    if text.len() as u64 > MAX_BYTES {
        return Err(too_large(name, text.len() as u64));
    }
    let line = u32::try_from(first_line).unwrap_or(u32::MAX);
    let mut parser = Parser::new(Lexer { name, text, at: 0, line })?;
    parser.module()?;
    parser.build()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Input,
    Output,
    Inside,
}

/// A declared name: bits `first..first + width` from the least significant.
struct Signal<'a> {
    name: &'a [u8],
    direction: Direction,
    left: i64,
    right: i64,
    signed: bool,
    /// Whether it stands in the list of ports.
    port: bool,
    first: NodeId,
    line: u32,
}

impl Signal<'_> {
    fn width(&self) -> u32 {
        (self.left.abs_diff(self.right) + 1) as u32
    }

    /// The node of the bit of this index.
    fn bit(&self, index: i64) -> Option<NodeId> {
        let offset = if self.left >= self.right { index - self.right } else { self.right - index };
        (0..i64::from(self.width())).contains(&offset).then(|| self.first + offset as u32)
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// The line of the token, and the line of the one before it.
    line: u32,
    nodes: Vec<Node>,
    signals: Vec<Signal<'a>>,
    names: HashMap<&'a [u8], u32>,
    ports: Vec<(&'a [u8], u32)>,
    expression: Expression,
    /// Bits that may still be made.
    budget: usize,
}

impl<'a> Parser<'a> {
    fn new(lexer: Lexer<'a>) -> Result<Self> {
        let budget = FREE_BITS.saturating_add(lexer.text.len().saturating_mul(BITS_A_BYTE)).min(MOST_BITS);
        let nodes = vec![Node::Constant(false), Node::Constant(true)];
        let mut parser = Self {
            lexer,
            token: Token::End,
            line: lexer.line,
            nodes,
            signals: Vec::new(),
            names: HashMap::new(),
            ports: Vec::new(),
            expression: Expression::default(),
            budget,
        };
        parser.advance()?;
        Ok(parser)
    }

    fn error<T>(&self, reason: impl Into<String>, remedy: &'static str) -> Result<T> {
        self.lexer.error_at(self.line, reason, remedy)
    }

    fn advance(&mut self) -> Result<Token<'a>> {
        let before = self.token;
        self.token = self.lexer.next()?;
        self.line = self.lexer.line;
        Ok(before)
    }

    fn accept(&mut self, sign: &str) -> Result<bool> {
        let found = matches!(self.token, Token::Sign(s) if s == sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.accept(sign)? { Ok(()) } else { self.unexpected(&format!("{sign:?}")) }
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        let got = match self.token {
            Token::Name(name) => format!("name {}", shown(name)),
            Token::Word(word) => format!("{word:?}"),
            Token::Decimal(_) | Token::Based(..) => "a number".to_owned(),
            Token::Sign(sign) => format!("{sign:?}"),
            Token::End => "the end of the file".to_owned(),
        };
        self.error(format!("{got}, where {wanted} is expected"), SYNTAX)
    }

    fn identifier(&mut self) -> Result<&'a [u8]> {
        let Token::Name(name) = self.token else { return self.unexpected("a name") };
        self.advance()?;
        Ok(name)
    }

    /// Takes `bits` of what the file may make.
    fn spend(&mut self, bits: usize) -> Result<()> {
        match self.budget.checked_sub(bits) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => self.error(
                "more bits of wires (each counts as 4), operands and results than a file of this size may have (2^23 and 32 a byte, 2^27 at most)",
                "let yosys's `synth -flatten; abc -g AND,XOR` simplify it, or convert it to Bristol Fashion",
            ),
        }
    }

    fn module(&mut self) -> Result<()> {
        if self.token != Token::Word("module") {
            return self.unexpected("\"module\"");
        }
        self.advance()?;
        self.identifier()?;
        if matches!(self.token, Token::Sign("#")) {
            return self.error("parameters", TECHMAP);
        }
        if self.accept("(")? && !self.accept(")")? {
            // A direction holds until the next.
            let mut declared = None;
            loop {
                if let Some(direction) = self.direction()? {
                    declared = Some((direction, self.range()?));
                }
                let (line, name) = (self.line, self.identifier()?);
                self.ports.push((name, line));
                if self.ports.len() > MAX_PORTS {
                    return self.error(
                        format!("more ports than the limit of {MAX_PORTS}"),
                        "join them into vectors",
                    );
                }
                if let Some((direction, range)) = declared {
                    self.declare(name, line, direction, range)?;
                }
                if !self.accept(",")? {
                    break;
                }
            }
            self.expect(")")?;
        }
        self.expect(";")?;
        while self.item()? {}
        match self.token {
            Token::End => Ok(()),
            Token::Word("module") => {
                let line = self.line;
                self.advance()?;
                let name = self.identifier()?;
                self.lexer.error_at(line, format!("a second module, {}", shown(name)), HIERARCHY)
            }
            _ => self.unexpected("the end of the file"),
        }
    }

    /// `input`, `output` or `wire`, with what may follow it.
    fn direction(&mut self) -> Result<Option<Direction>> {
        let direction = match self.token {
            Token::Word("input") => Direction::Input,
            Token::Word("output") => Direction::Output,
            Token::Word("wire" | "reg" | "logic") => Direction::Inside,
            Token::Word("inout") => return self.error("an inout port", COMBINATIONAL),
            _ => return Ok(None),
        };
        self.advance()?;
        if direction != Direction::Inside && matches!(self.token, Token::Word("wire" | "reg" | "logic")) {
            self.advance()?;
        }
        Ok(Some(direction))
    }

    /// `signed` and a range, where they are there.
    fn range(&mut self) -> Result<(bool, Option<(i64, i64)>)> {
        let signed = self.token == Token::Word("signed");
        if signed {
            self.advance()?;
        }
        if !self.accept("[")? {
            return Ok((signed, None));
        }
        let left = self.integer()?;
        self.expect(":")?;
        let right = self.integer()?;
        self.expect("]")?;
        if left.abs_diff(right) >= u64::from(MAX_WIDTH) {
            let reason =
                format!("a vector of {} bits, over the limit of {MAX_WIDTH}", left.abs_diff(right) + 1);
            return self.error(reason, "cut it into several");
        }
        Ok((signed, Some((left, right))))
    }

    fn integer(&mut self) -> Result<i64> {
        let negative = self.accept("-")?;
        let Token::Decimal(value) = self.token else {
            return self.error("an index or bound that is not a plain number", TECHMAP);
        };
        self.advance()?;
        Ok(if negative { -i64::from(value) } else { i64::from(value) })
    }

    fn declare(
        &mut self,
        name: &'a [u8],
        line: u32,
        direction: Direction,
        (signed, range): (bool, Option<(i64, i64)>),
    ) -> Result<()> {
        let (left, right) = range.unwrap_or((0, 0));
        if let Some(&known) = self.names.get(name) {
            // `output y; wire y;` declares it once.
            let known = &mut self.signals[known as usize];
            let clash = known.direction != Direction::Inside && direction != Direction::Inside;
            if clash || (known.left, known.right) != (left, right) {
                let reason = format!("{} is declared already, in line {}", shown(name), known.line);
                return self.error(reason, "declare it once, or with the same range");
            }
            known.signed |= signed;
            if direction == Direction::Inside {
                return Ok(());
            }
            known.direction = direction;
            let (first, width) = (known.first as usize, known.width() as usize);
            for node in &mut self.nodes[first..first + width] {
                if direction == Direction::Input {
                    let Node::Net { driver: None, .. } = node else {
                        return self
                            .error(format!("input {} has a driver", shown(name)), "remove one of them");
                    };
                    *node = Node::Input;
                }
            }
            return Ok(());
        }
        let first = self.nodes.len() as u32;
        let signal = Signal { name, direction, left, right, signed, port: false, first, line };
        let width = signal.width() as usize;
        self.spend(WIRE * width)?;
        let net = Node::Net { driver: None, line };
        self.nodes
            .resize(first as usize + width, if direction == Direction::Input { Node::Input } else { net });
        self.names.insert(name, self.signals.len() as u32);
        self.signals.push(signal);
        Ok(())
    }

    /// One statement; none at `endmodule`.
    fn item(&mut self) -> Result<bool> {
        if let Some(direction) = self.direction()? {
            let range = self.range()?;
            loop {
                let (line, name) = (self.line, self.identifier()?);
                if matches!(self.token, Token::Sign("[")) {
                    return self.error(format!("{} is an array", shown(name)), TECHMAP);
                }
                self.declare(name, line, direction, range)?;
                if self.accept("=")? {
                    let signal = &self.signals[self.names[name] as usize];
                    let target = (signal.first..signal.first + signal.width()).collect();
                    self.assign(target)?;
                }
                if !self.accept(",")? {
                    break;
                }
            }
            self.expect(";")?;
            return Ok(true);
        }
        match self.token {
            Token::Word("endmodule") => {
                self.advance()?;
                return Ok(false);
            }
            Token::Word("assign") => {
                self.advance()?;
                loop {
                    let target = self.expression(0)?;
                    self.expect("=")?;
                    self.assign(target)?;
                    if !self.accept(",")? {
                        break;
                    }
                }
                self.expect(";")?;
            }
            Token::Sign(";") => {
                self.advance()?;
            }
            Token::Word(word @ ("always" | "always_ff" | "always_latch" | "initial")) => {
                return self.error(format!("{word:?}"), COMBINATIONAL);
            }
            Token::Word(word) => return self.error(format!("{word:?}"), TECHMAP),
            Token::Name(cell) => self.cell(cell)?,
            _ => return self.unexpected("a declaration, an assignment or a cell"),
        }
        Ok(true)
    }

    /// Drives bits by the expression that follows.
    fn assign(&mut self, target: Vec<NodeId>) -> Result<()> {
        let line = self.line;
        let mut value = self.expression(target.len() as u32)?;
        value.truncate(target.len());
        for (net, driver) in target.into_iter().zip(value) {
            self.drive(net, driver, line)?;
        }
        Ok(())
    }

    fn drive(&mut self, net: NodeId, by: NodeId, at: u32) -> Result<()> {
        let reason = match self.nodes[net as usize] {
            Node::Net { driver: None, .. } => {
                self.nodes[net as usize] = Node::Net { driver: Some(by), line: at };
                return Ok(());
            }
            Node::Net { line, .. } => {
                format!("{} has two drivers, the first in line {line}", self.called(net))
            }
            Node::Input => format!("{} is an input, and driven", self.called(net)),
            _ => "what is assigned to is not a wire".to_owned(),
        };
        self.lexer.error_at(at, reason, "leave one driver for each bit of a wire")
    }

    /// The name and index of a bit.
    fn called(&self, node: NodeId) -> String {
        let after = self.signals.partition_point(|s| s.first <= node);
        let Some(signal) = after.checked_sub(1).map(|i| &self.signals[i]) else {
            return "a constant".to_owned();
        };
        let offset = i64::from(node - signal.first);
        let index = if signal.left >= signal.right { signal.right + offset } else { signal.right - offset };
        let select = if signal.width() > 1 { format!(", bit {index},") } else { String::new() };
        format!("{}{select}", shown(signal.name))
    }

    fn node(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    fn cell(&mut self, cell: &'a [u8]) -> Result<()> {
        let line = self.line;
        let gate = cell.strip_prefix(b"$_").and_then(|c| c.strip_suffix(b"_")).unwrap_or_default();
        let data = match gate {
            b"BUF" | b"NOT" => 1,
            b"AND" | b"NAND" | b"OR" | b"NOR" | b"XOR" | b"XNOR" | b"ANDNOT" | b"ORNOT" | b"MUX"
            | b"NMUX" => 2,
            b"AOI3" | b"OAI3" => 3,
            b"AOI4" | b"OAI4" | b"MUX4" => 4,
            b"MUX8" => 8,
            b"MUX16" => 16,
            _ => {
                let reason = format!("cell {}", shown(cell));
                let stateful = [&b"FF"[..], b"ff", b"LATCH", b"latch", b"SR_"];
                let holds = |part: &[u8]| cell.windows(part.len()).any(|w| w == part);
                if cell.starts_with(b"$") && stateful.into_iter().any(holds) {
                    return self.error(reason, COMBINATIONAL);
                }
                if !cell.starts_with(b"$") {
                    let reason = format!("an instance of {}, which is not a cell of yosys's", shown(cell));
                    return self.error(reason, HIERARCHY);
                }
                return self.error(reason, TECHMAP);
            }
        };
        let selects = match gate {
            b"MUX" | b"NMUX" => 1,
            b"MUX4" => 2,
            b"MUX8" => 3,
            b"MUX16" => 4,
            _ => 0,
        };
        self.advance()?;
        if matches!(self.token, Token::Name(_)) {
            self.advance()?;
        }
        self.expect("(")?;
        // Data A to P, selects S to V, and Y.
        let mut pins = [None; 21];
        loop {
            self.expect(".")?;
            let pin = self.identifier()?;
            let place = match pin {
                [letter @ b'A'..=b'P'] => usize::from(letter - b'A'),
                [letter @ b'S'..=b'V'] => 16 + usize::from(letter - b'S'),
                b"Y" => 20,
                _ => usize::MAX,
            };
            let known = place == 20 || place < data || (16..16 + selects).contains(&place);
            if !known || pins[place].is_some() {
                let reason =
                    format!("pin {} of cell {}, unknown or connected twice", shown(pin), shown(cell));
                return self.error(reason, SYNTAX);
            }
            self.expect("(")?;
            let bits = self.expression(0)?;
            let [bit] = bits[..] else {
                return self.error(format!("{} bits at pin {}", bits.len(), shown(pin)), TECHMAP);
            };
            pins[place] = Some(bit);
            self.expect(")")?;
            if !self.accept(",")? {
                break;
            }
        }
        self.expect(")")?;
        self.expect(";")?;
        let wanted = (0..data).chain(16..16 + selects).chain([20]);
        for place in wanted {
            if pins[place].is_none() {
                let reason = format!("cell {} with a pin that isn't connected", shown(cell));
                return self.lexer.error_at(line, reason, SYNTAX);
            }
        }
        self.spend(40)?;
        let pin = |i: usize| pins[i].unwrap_or(ZERO);
        let (a, b, c, d) = (pin(0), pin(1), pin(2), pin(3));
        let (plain, inverted) = match gate {
            b"BUF" => (a, false),
            b"NOT" => (a, true),
            b"AND" => (self.node(Node::And(a, b)), false),
            b"NAND" => (self.node(Node::And(a, b)), true),
            b"OR" => (self.node(Node::Or(a, b)), false),
            b"NOR" => (self.node(Node::Or(a, b)), true),
            b"XOR" => (self.node(Node::Xor(a, b)), false),
            b"XNOR" => (self.node(Node::Xor(a, b)), true),
            b"ANDNOT" | b"ORNOT" => {
                let b = self.node(Node::Not(b));
                let and = gate == b"ANDNOT";
                (self.node(if and { Node::And(a, b) } else { Node::Or(a, b) }), false)
            }
            b"AOI3" | b"AOI4" => {
                let ab = self.node(Node::And(a, b));
                let cd = if data == 4 { self.node(Node::And(c, d)) } else { c };
                (self.node(Node::Or(ab, cd)), true)
            }
            b"OAI3" | b"OAI4" => {
                let ab = self.node(Node::Or(a, b));
                let cd = if data == 4 { self.node(Node::Or(c, d)) } else { c };
                (self.node(Node::And(ab, cd)), true)
            }
            _ => {
                // A multiplexer: the first select tells apart neighbours.
                let mut values: Vec<NodeId> = (0..data).map(pin).collect();
                for select in 16..16 + selects {
                    let s = pin(select);
                    values = values.chunks_exact(2).map(|v| self.node(Node::Mux(s, v[1], v[0]))).collect();
                }
                (values[0], gate == b"NMUX")
            }
        };
        let value = if inverted { self.node(Node::Not(plain)) } else { plain };
        self.drive(pin(20), value, line)
    }
}
