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
//!   concatenations, repetitions and constants, with the widths of IEEE 1364-2005, section 5.4; `x` is 0, for a circuit
//!   that doesn't care;
//! - cells of `write_verilog -noexpr`: `$_AND_` and its kin up to `$_MUX16_` and `$_OAI4_`.
//!
//! `|`, NAND, NOR, ANDNOT, ORNOT and a multiplexer take one AND, XNOR and NOT none, AOI3 and OAI3 two, AOI4 and OAI4
//! three. Arithmetic, comparisons, flip-flops, `always`, `inout` and further modules are refused by name, as are a
//! cycle, a bit with two drivers and a bit that is read without one. Inputs and outputs come in the ports' order.
//!
//! ```
//! use blindcore_circuit::formats::verilog;
//!
//! let text = b"module m(a, y); input [1:0] a; output y; assign y = a[1] ? ~a[0] : a[0]; endmodule";
//! let netlist = verilog::read("m.v", text)?;
//! assert_eq!(netlist.evaluate(&[vec![true, false]])?, [[true]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::FormatError;
use crate::builder::Builder;
use crate::netlist::{Netlist, Wire};
use std::collections::HashMap;

/// Bytes in a file, at most.
pub const MAX_BYTES: u64 = 256 << 20;
/// Bytes in an identifier, at most.
pub const MAX_IDENTIFIER: usize = 1 << 16;
/// Bits in a vector, at most.
pub const MAX_WIDTH: u32 = 1 << 20;
/// Bits of wires, operands and results that a file of any size may have; further ones take 1/64 byte of it.
const FREE_BITS: usize = 1 << 24;

const TECHMAP: &str =
    "run yosys's `synth -flatten; abc -g AND,XOR` before write_verilog, which leaves no such thing";
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// An identifier, without its escape.
    Name(&'a [u8]),
    /// A word of the language.
    Word(&'a str),
    /// A plain decimal number.
    Decimal(u32),
    /// A constant with a base: its width where it has one, the base, its digits.
    Based(Option<u32>, u8, &'a [u8]),
    /// Punctuation or an operator.
    Sign(&'static str),
    End,
}

/// Words that are no identifiers here; all but the first are refused by name where a statement starts.
const WORDS: [&str; 32] = [
    "module",
    "endmodule",
    "input",
    "output",
    "wire",
    "reg",
    "logic",
    "signed",
    "assign",
    "inout",
    "always",
    "always_comb",
    "always_ff",
    "always_latch",
    "initial",
    "function",
    "task",
    "generate",
    "genvar",
    "parameter",
    "localparam",
    "defparam",
    "specify",
    "tri",
    "supply0",
    "supply1",
    "wand",
    "wor",
    "integer",
    "primitive",
    "for",
    "if",
];

/// Longer ones first.
const SIGNS: [&str; 45] = [
    "<<<", ">>>", "===", "!==", "~&", "~|", "~^", "^~", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "**",
    "+:", "-:", "(", ")", "[", "]", "{", "}", ";", ",", ":", "?", ".", "=", "#", "@", "~", "&", "|", "^",
    "!", "+", "-", "*", "/", "%", "<", ">",
];

#[derive(Clone, Copy)]
struct Lexer<'a> {
    name: &'a str,
    text: &'a [u8],
    at: usize,
    line: u32,
}

fn is_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

/// Text in an error: cut, and printable.
fn shown(text: &[u8]) -> String {
    let cut = &text[..text.len().min(60)];
    format!("{:?}{}", String::from_utf8_lossy(cut), if cut.len() < text.len() { "..." } else { "" })
}

impl<'a> Lexer<'a> {
    fn error_at<T>(&self, line: u32, reason: impl Into<String>, remedy: &'static str) -> Result<T> {
        let (file, reason, line) = (self.name.to_owned(), reason.into(), u64::from(line));
        Err(FormatError::Content { file, line, reason, remedy })
    }

    fn error<T>(&self, reason: impl Into<String>, remedy: &'static str) -> Result<T> {
        self.error_at(self.line, reason, remedy)
    }

    /// Goes to where `end` ends, counting lines.
    fn skip_past(&mut self, end: &[u8], what: &str) -> Result<()> {
        let line = self.line;
        while self.at < self.text.len() {
            if self.text[self.at..].starts_with(end) {
                self.at += end.len();
                self.line += u32::from(end == b"\n");
                return Ok(());
            }
            self.line += u32::from(self.text[self.at] == b'\n');
            self.at += 1;
        }
        if end == b"\n" {
            return Ok(());
        }
        self.error_at(line, format!("{what} that never ends"), SYNTAX)
    }

    /// White space, comments, attributes and compiler directives.
    fn skip(&mut self) -> Result<()> {
        loop {
            match self.text[self.at..] {
                [b'\n', ..] => {
                    self.line += 1;
                    self.at += 1;
                }
                [c, ..] if c.is_ascii_whitespace() => self.at += 1,
                [b'/', b'/', ..] => self.skip_past(b"\n", "a comment")?,
                [b'/', b'*', ..] => {
                    self.at += 2;
                    self.skip_past(b"*/", "a comment")?;
                }
                [b'(', b'*', ..] => self.attribute()?,
                [b'`', ..] => {
                    let known: [&[u8]; 3] = [b"`timescale", b"`default_nettype", b"`resetall"];
                    if !known.iter().any(|k| self.text[self.at..].starts_with(k)) {
                        let end = self.text[self.at..].iter().position(u8::is_ascii_whitespace);
                        let end = end.map_or(self.text.len(), |e| self.at + e);
                        let reason = format!("compiler directive {}", shown(&self.text[self.at..end]));
                        return self.error(reason, "let yosys's read_verilog expand it");
                    }
                    self.skip_past(b"\n", "a directive")?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn attribute(&mut self) -> Result<()> {
        let line = self.line;
        self.at += 2;
        let mut quoted = false;
        while let Some(&c) = self.text.get(self.at) {
            match c {
                b'\n' => self.line += 1,
                b'"' => quoted = !quoted,
                b'\\' if quoted => {
                    self.at += 1;
                    self.line += u32::from(self.text.get(self.at) == Some(&b'\n'));
                }
                b'*' if !quoted && self.text.get(self.at + 1) == Some(&b')') => {
                    self.at += 2;
                    return Ok(());
                }
                _ => {}
            }
            self.at += 1;
        }
        // An escape at the very end steps one byte over it.
        self.at = self.text.len();
        self.error_at(line, "an attribute that never ends", SYNTAX)
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a [u8] {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|c| keep(*c)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn next(&mut self) -> Result<Token<'a>> {
        self.skip()?;
        let Some(&c) = self.text.get(self.at) else { return Ok(Token::End) };
        match c {
            b'\\' => {
                self.at += 1;
                let name = self.take_while(|c| !c.is_ascii_whitespace());
                self.name(name)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => {
                let name = self.take_while(is_name);
                match WORDS.iter().find(|w| w.as_bytes() == name) {
                    Some(word) => Ok(Token::Word(word)),
                    None => self.name(name),
                }
            }
            b'0'..=b'9' | b'\'' => self.number(),
            _ => {
                let rest = &self.text[self.at..];
                let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(s.as_bytes())) else {
                    return self.error(format!("{} is not Verilog", shown(&rest[..1])), SYNTAX);
                };
                self.at += sign.len();
                Ok(Token::Sign(sign))
            }
        }
    }

    fn name(&self, name: &'a [u8]) -> Result<Token<'a>> {
        if name.is_empty() || name.len() > MAX_IDENTIFIER {
            let reason = format!("an identifier of {} B; they have 1 to {MAX_IDENTIFIER}", name.len());
            return self.error(reason, "let yosys's `rename -enumerate` shorten it");
        }
        Ok(Token::Name(name))
    }

    fn number(&mut self) -> Result<Token<'a>> {
        let size = self.take_while(|c| c.is_ascii_digit() || c == b'_');
        let mut value = 0u64;
        for digit in size.iter().filter(|c| **c != b'_') {
            value = (value * 10 + u64::from(digit - b'0')).min(1 << 32);
        }
        let decimal = u32::try_from(value);
        // A space may stand before the base.
        let mut ahead = *self;
        ahead.take_while(|c| matches!(c, b' ' | b'\t'));
        if ahead.text.get(ahead.at) != Some(&b'\'') {
            return match decimal {
                Ok(decimal) => Ok(Token::Decimal(decimal)),
                Err(_) => self
                    .error(format!("number {} is over 32 bits", shown(size)), "give it a width and a base"),
            };
        }
        self.at = ahead.at + 1;
        if matches!(self.text.get(self.at), Some(b's' | b'S')) {
            let reason = "a signed constant";
            return self.error(reason, TECHMAP);
        }
        let base = self.text.get(self.at).map(u8::to_ascii_lowercase);
        let Some(base @ (b'b' | b'o' | b'd' | b'h')) = base else {
            return self.error("a constant of no known base", "known are 'b, 'o, 'd and 'h");
        };
        self.at += 1;
        self.take_while(|c| matches!(c, b' ' | b'\t'));
        let digits = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'?'));
        let size = if size.is_empty() { None } else { Some(decimal.unwrap_or(u32::MAX)) };
        if digits.is_empty() || size.is_some_and(|s| s == 0 || s > MAX_WIDTH) {
            let width = size.map_or_else(|| "no stated".to_owned(), |s| s.to_string());
            let reason = format!("a constant of {width} width with {} digits", digits.len());
            return self.error(reason, "it has 1 to 1048576 bits, and digits");
        }
        Ok(Token::Based(size, base, digits))
    }
}

/// A bit, by its place among [`Parser::nodes`].
type NodeId = u32;
const ZERO: NodeId = 0;

/// What a bit is: constants, inputs, wires and operations, in any order.
#[derive(Clone, Copy)]
enum Node {
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Not,
    And,
    Or,
    Xor,
    Xnor,
    Mux,
    /// Of all bits of a vector to one.
    ReduceAnd,
    ReduceOr,
    ReduceXor,
    ReduceNand,
    ReduceNor,
    ReduceXnor,
    /// `&&` and `||`, of vectors that are not 0.
    BothSet,
    EitherSet,
}

/// Part of an expression; operands stand before what they are part of.
struct Term {
    what: What,
    /// Its own width, and the one that its context asks for.
    width: u32,
    context: u32,
    /// Whether any part of it that isn't cut or joined is a signed wire.
    signed: bool,
    /// Where its bits lie once they are there.
    bits: usize,
}

enum What {
    /// Its bits lie where [`Term::bits`] says, from the start.
    Leaf,
    Apply(Operator, [u32; 3]),
    /// Places `start..end` of [`Expression::parts`], the most significant first, all of it so many times.
    Join(usize, usize, u32),
}

/// What the parser of expressions waits to complete.
enum Open {
    Parenthesis,
    /// Joins the operands from this one on.
    Brace(usize),
    Repeat(u32),
    Apply(Operator, u8),
    Question,
    Colon,
}

/// The expression at hand; kept for its memory.
#[derive(Default)]
struct Expression {
    terms: Vec<Term>,
    bits: Vec<NodeId>,
    parts: Vec<u32>,
    operands: Vec<u32>,
    open: Vec<Open>,
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
        let budget = FREE_BITS.saturating_add(lexer.text.len().saturating_mul(64)).min(1 << 27);
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
                "more bits of wires, operands and results than a file of this size may have (2^24 and 64 a byte, 2^27 at most)",
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
                self.error("a second module", "let yosys make one of them: `synth -flatten -top NAME`")
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
            return self.error("an index or bound that is no plain number", TECHMAP);
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
        self.spend(width)?;
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
            _ => "what is assigned to is no wire".to_owned(),
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

    /// The bits of the expression that follows, least significant first, extended to `width` where it has fewer.
    fn expression(&mut self, width: u32) -> Result<Vec<NodeId>> {
        let mut e = std::mem::take(&mut self.expression);
        let bits = self.parse(&mut e).and_then(|()| self.evaluate(&mut e, width));
        e.terms.clear();
        e.bits.clear();
        e.parts.clear();
        e.operands.clear();
        e.open.clear();
        self.expression = e;
        bits
    }

    /// Terms in an order in which operands come first, by precedence (IEEE 1364-2005, table 5-4) and without recursion:
    /// what is open is on a list.
    fn parse(&mut self, e: &mut Expression) -> Result<()> {
        loop {
            // An operand, or what may stand before one.
            match self.token {
                Token::Sign("(") => {
                    self.advance()?;
                    e.open.push(Open::Parenthesis);
                    continue;
                }
                Token::Sign("{") => {
                    self.advance()?;
                    e.open.push(Open::Brace(e.operands.len()));
                    let mut ahead = self.lexer;
                    if let (Token::Decimal(times), Token::Sign("{")) = (self.token, ahead.next()?) {
                        e.open.pop();
                        e.open.push(Open::Repeat(times));
                        self.advance()?;
                        self.advance()?;
                        e.open.push(Open::Brace(e.operands.len()));
                    }
                    continue;
                }
                Token::Sign(sign) => {
                    let operator = match sign {
                        "~" => Operator::Not,
                        "!" | "~|" => Operator::ReduceNor,
                        "&" => Operator::ReduceAnd,
                        "|" => Operator::ReduceOr,
                        "^" => Operator::ReduceXor,
                        "~&" => Operator::ReduceNand,
                        "~^" | "^~" => Operator::ReduceXnor,
                        "+" | "-" => return self.error(format!("arithmetic, by {sign:?}"), TECHMAP),
                        _ => return self.unexpected("an operand"),
                    };
                    self.advance()?;
                    e.open.push(Open::Apply(operator, 8));
                    continue;
                }
                Token::Name(_) | Token::Decimal(_) | Token::Based(..) => self.leaf(e)?,
                _ => return self.unexpected("an operand"),
            }
            // Whatever follows an operand.
            loop {
                let Token::Sign(sign) = self.token else {
                    return self.unexpected("an operator or the end of an expression");
                };
                let binary = match sign {
                    "&" => Some((Operator::And, 7)),
                    "^" => Some((Operator::Xor, 6)),
                    "~^" | "^~" => Some((Operator::Xnor, 6)),
                    "|" => Some((Operator::Or, 5)),
                    "&&" => Some((Operator::BothSet, 4)),
                    "||" => Some((Operator::EitherSet, 3)),
                    _ => None,
                };
                if let Some((operator, precedence)) = binary {
                    self.reduce(e, precedence)?;
                    e.open.push(Open::Apply(operator, precedence));
                    self.advance()?;
                    break;
                }
                match sign {
                    "?" => {
                        self.reduce(e, 2)?;
                        e.open.push(Open::Question);
                        self.advance()?;
                        break;
                    }
                    ":" => {
                        self.reduce(e, 1)?;
                        let Some(Open::Question) = e.open.pop() else { return self.unexpected("no colon") };
                        e.open.push(Open::Colon);
                        self.advance()?;
                        break;
                    }
                    ")" => {
                        self.reduce(e, 1)?;
                        match e.open.last() {
                            None => return Ok(()),
                            Some(Open::Parenthesis) => e.open.pop(),
                            Some(_) => return self.unexpected("the end of what is open"),
                        };
                        self.advance()?;
                    }
                    "," => {
                        self.reduce(e, 1)?;
                        match e.open.last() {
                            None => return Ok(()),
                            Some(Open::Brace(_)) => {}
                            Some(_) => return self.unexpected("the end of what is open"),
                        }
                        self.advance()?;
                        break;
                    }
                    "}" => {
                        self.reduce(e, 1)?;
                        let Some(Open::Brace(first)) = e.open.pop() else {
                            return self.unexpected("the end of what is open");
                        };
                        self.advance()?;
                        let mut times = 1;
                        if let Some(&Open::Repeat(n)) = e.open.last() {
                            e.open.pop();
                            self.expect("}")?;
                            times = n;
                        }
                        self.join(e, first, times)?;
                    }
                    ";" | "=" => {
                        self.reduce(e, 1)?;
                        return if e.open.is_empty() {
                            Ok(())
                        } else {
                            self.unexpected("the end of what is open")
                        };
                    }
                    _ => return self.error(format!("operator {sign:?}"), TECHMAP),
                }
            }
        }
    }

    /// Completes what binds at least as strongly.
    fn reduce(&mut self, e: &mut Expression, precedence: u8) -> Result<()> {
        loop {
            let operator = match e.open.last() {
                Some(Open::Apply(operator, binds)) if *binds >= precedence => *operator,
                Some(Open::Colon) if precedence <= 1 => Operator::Mux,
                _ => return Ok(()),
            };
            e.open.pop();
            let count = match operator {
                Operator::Mux => 3,
                Operator::And | Operator::Or | Operator::Xor | Operator::Xnor => 2,
                Operator::BothSet | Operator::EitherSet => 2,
                _ => 1,
            };
            let Some(from) = e.operands.len().checked_sub(count) else {
                return self.unexpected("an operand");
            };
            let mut of = [0; 3];
            of[..count].copy_from_slice(&e.operands[from..]);
            e.operands.truncate(from);
            let term = |i: usize| &e.terms[of[i] as usize];
            let (width, signed) = match operator {
                Operator::Not => (term(0).width, term(0).signed),
                Operator::And | Operator::Or | Operator::Xor | Operator::Xnor => {
                    (term(0).width.max(term(1).width), term(0).signed | term(1).signed)
                }
                Operator::Mux => (term(1).width.max(term(2).width), term(1).signed | term(2).signed),
                _ => (1, false),
            };
            self.term(e, What::Apply(operator, of), width, signed, 0)?;
        }
    }

    fn term(&mut self, e: &mut Expression, what: What, width: u32, signed: bool, bits: usize) -> Result<()> {
        self.spend(1 + width as usize)?;
        e.operands.push(e.terms.len() as u32);
        e.terms.push(Term { what, width, context: 0, signed, bits });
        Ok(())
    }

    fn join(&mut self, e: &mut Expression, first: usize, times: u32) -> Result<()> {
        let start = e.parts.len();
        let mut width = 0u64;
        for part in e.operands.drain(first..) {
            width += u64::from(e.terms[part as usize].width);
            e.parts.push(part);
        }
        let width = width * u64::from(times);
        if width == 0 || width > u64::from(MAX_WIDTH) {
            let reason = format!("a concatenation of {width} bits; they have 1 to {MAX_WIDTH}");
            return self.error(reason, "cut it into several");
        }
        self.term(e, What::Join(start, e.parts.len(), times), width as u32, false, 0)
    }

    fn leaf(&mut self, e: &mut Expression) -> Result<()> {
        let at = e.bits.len();
        match self.token {
            Token::Name(name) => {
                let Some(&signal) = self.names.get(name) else {
                    return self
                        .error(format!("{} is not declared", shown(name)), "declare it before it is used");
                };
                self.advance()?;
                let (mut left, mut right) = (0, 0);
                let selects = self.accept("[")?;
                if selects {
                    left = self.integer()?;
                    right = if self.accept(":")? { self.integer()? } else { left };
                    self.expect("]")?;
                }
                let signal = &self.signals[signal as usize];
                if !selects {
                    e.bits.extend(signal.first..signal.first + signal.width());
                } else {
                    let (Some(most), Some(least)) = (signal.bit(left), signal.bit(right)) else {
                        let reason = format!(
                            "{} has bits {} to {}, and {left} to {right} are selected",
                            shown(name),
                            signal.left,
                            signal.right
                        );
                        return self.error(reason, "select within its range");
                    };
                    if most < least {
                        let reason = format!("{} is selected from {left} to {right}", shown(name));
                        return self.error(reason, "select in the direction in which it is declared");
                    }
                    e.bits.extend(least..=most);
                }
                let signed = signal.signed && !selects;
                self.term(e, What::Leaf, (e.bits.len() - at) as u32, signed, at)
            }
            Token::Decimal(value) => {
                self.advance()?;
                e.bits.extend((0..32).map(|i| value >> i & 1));
                self.term(e, What::Leaf, 32, false, at)
            }
            Token::Based(size, base, digits) => {
                let width = size.unwrap_or(32) as usize;
                self.spend(width)?;
                let mut bits = self.constant(base, digits, width)?;
                bits.resize(width, ZERO);
                self.advance()?;
                e.bits.extend(bits);
                self.term(e, What::Leaf, width as u32, false, at)
            }
            _ => self.unexpected("an operand"),
        }
    }

    /// The constant's lowest bits, `width` of them at most.
    fn constant(&self, base: u8, digits: &[u8], width: usize) -> Result<Vec<NodeId>> {
        let bad = |c: u8| {
            let reason = format!("{} in a constant of base '{}", shown(&[c]), char::from(base));
            self.error(reason, "write digits of that base; high impedance has no meaning in a circuit")
        };
        if base == b'd' {
            let mut value = 0u128;
            for &c in digits.iter().filter(|c| **c != b'_') {
                let Some(digit) = char::from(c).to_digit(10) else { return bad(c) };
                value = match value.checked_mul(10).and_then(|v| v.checked_add(u128::from(digit))) {
                    Some(value) => value,
                    None => return self.error("a decimal constant of over 128 bits", "write it in base 'h"),
                };
            }
            return Ok((0..width.min(128)).map(|i| (value >> i & 1) as u32).collect());
        }
        let each = match base {
            b'b' => 1,
            b'o' => 3,
            _ => 4,
        };
        let mut bits = Vec::with_capacity(width.min(each * digits.len()));
        for &c in digits.iter().rev().filter(|c| **c != b'_') {
            let digit = match c {
                b'x' | b'X' => 0,
                _ => match char::from(c).to_digit(1 << each) {
                    Some(digit) => digit,
                    None => return bad(c),
                },
            };
            bits.extend((0..each).map(|i| digit >> i & 1).take(width - bits.len()));
        }
        Ok(bits)
    }

    /// Turns terms to nodes: widths go down from the whole, bits come up from the leaves.
    fn evaluate(&mut self, e: &mut Expression, width: u32) -> Result<Vec<NodeId>> {
        let Some(root) = e.terms.last_mut() else { return self.unexpected("an expression") };
        root.context = root.width.max(width);
        for i in (0..e.terms.len()).rev() {
            let context = e.terms[i].context;
            if e.terms[i].signed && context > e.terms[i].width {
                let reason = format!("a signed wire of {} bits is extended to {context}", e.terms[i].width);
                return self.error(reason, TECHMAP);
            }
            match e.terms[i].what {
                What::Leaf => {}
                What::Join(start, end, _) => {
                    for &part in &e.parts[start..end] {
                        let part = &mut e.terms[part as usize];
                        part.context = part.width;
                    }
                }
                What::Apply(operator, of) => {
                    let own = |t: &Term| t.width;
                    let [a, b, c] = of.map(|i| i as usize);
                    match operator {
                        Operator::Not => e.terms[a].context = context,
                        Operator::And | Operator::Or | Operator::Xor | Operator::Xnor => {
                            e.terms[a].context = context;
                            e.terms[b].context = context;
                        }
                        Operator::Mux => {
                            e.terms[a].context = own(&e.terms[a]);
                            e.terms[b].context = context;
                            e.terms[c].context = context;
                        }
                        Operator::BothSet | Operator::EitherSet => {
                            e.terms[a].context = own(&e.terms[a]);
                            e.terms[b].context = own(&e.terms[b]);
                        }
                        _ => e.terms[a].context = own(&e.terms[a]),
                    }
                }
            }
        }
        for i in 0..e.terms.len() {
            let term = &e.terms[i];
            let (start, width, context) = (term.bits, term.width as usize, term.context as usize);
            self.spend(1 + 3 * context.max(width))?;
            let to = e.bits.len();
            match term.what {
                What::Leaf if context == width => continue,
                What::Leaf => e.bits.extend_from_within(start..start + width),
                What::Join(first, last, times) => {
                    for &part in e.parts[first..last].iter().rev() {
                        let part = &e.terms[part as usize];
                        e.bits.extend_from_within(part.bits..part.bits + part.width as usize);
                    }
                    let once = e.bits.len() - to;
                    for _ in 1..times {
                        e.bits.extend_from_within(to..to + once);
                    }
                }
                What::Apply(operator, of) => {
                    let at = of.map(|i| e.terms[i as usize].bits);
                    let widths = of.map(|i| e.terms[i as usize].width as usize);
                    self.apply(operator, &mut e.bits, at, widths, context)?;
                }
            }
            e.bits.resize(to + context, ZERO);
            e.terms[i].bits = to;
        }
        let root = &e.terms[e.terms.len() - 1];
        Ok(e.bits[root.bits..root.bits + root.context as usize].to_vec())
    }

    /// Appends an operation's bits: operands lie `at` these places, and those that stand alone have these widths.
    fn apply(
        &mut self,
        operator: Operator,
        bits: &mut Vec<NodeId>,
        at: [usize; 3],
        widths: [usize; 3],
        context: usize,
    ) -> Result<()> {
        let any = |parser: &mut Self, bits: &[NodeId], which: usize| {
            parser.fold(&bits[at[which]..at[which] + widths[which]], Node::Or)
        };
        let reduced = |parser: &mut Self, bits: &[NodeId], with: fn(NodeId, NodeId) -> Node| {
            parser.fold(&bits[at[0]..at[0] + widths[0]], with)
        };
        match operator {
            Operator::Not => {
                for i in 0..context {
                    bits.push(self.node(Node::Not(bits[at[0] + i])));
                }
            }
            Operator::And | Operator::Or | Operator::Xor | Operator::Xnor => {
                for i in 0..context {
                    let (a, b) = (bits[at[0] + i], bits[at[1] + i]);
                    let mut node = self.node(match operator {
                        Operator::And => Node::And(a, b),
                        Operator::Or => Node::Or(a, b),
                        _ => Node::Xor(a, b),
                    });
                    if operator == Operator::Xnor {
                        node = self.node(Node::Not(node));
                    }
                    bits.push(node);
                }
            }
            Operator::Mux => {
                let condition = any(self, bits, 0)?;
                for i in 0..context {
                    bits.push(self.node(Node::Mux(condition, bits[at[1] + i], bits[at[2] + i])));
                }
            }
            Operator::BothSet | Operator::EitherSet => {
                let (a, b) = (any(self, bits, 0)?, any(self, bits, 1)?);
                let both = operator == Operator::BothSet;
                bits.push(self.node(if both { Node::And(a, b) } else { Node::Or(a, b) }));
            }
            Operator::ReduceAnd | Operator::ReduceNand => bits.push(reduced(self, bits, Node::And)?),
            Operator::ReduceOr | Operator::ReduceNor => bits.push(reduced(self, bits, Node::Or)?),
            Operator::ReduceXor | Operator::ReduceXnor => bits.push(reduced(self, bits, Node::Xor)?),
        }
        if matches!(operator, Operator::ReduceNand | Operator::ReduceNor | Operator::ReduceXnor)
            && let Some(last) = bits.last_mut()
        {
            *last = self.node(Node::Not(*last));
        }
        Ok(())
    }

    /// One bit of many.
    fn fold(&mut self, bits: &[NodeId], with: fn(NodeId, NodeId) -> Node) -> Result<NodeId> {
        self.spend(bits.len())?;
        let Some((&first, rest)) = bits.split_first() else { return self.unexpected("an operand") };
        Ok(rest.iter().fold(first, |all, &bit| self.node(with(all, bit))))
    }

    /// The netlist: every bit after what it reads, found depth first without recursion.
    fn build(&mut self) -> Result<Netlist> {
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
        for s in self.signals.iter().filter(|s| s.direction != Direction::Input) {
            for node in s.first..s.first + s.width() {
                // A bit that nothing drives is an error where it is read.
                if s.direction == Direction::Output
                    || !matches!(self.nodes[node as usize], Node::Net { driver: None, .. })
                {
                    self.visit(node, &mut wires, &mut builder)?;
                }
            }
        }
        for port in outputs.into_iter().map(|i| &self.signals[i]) {
            let bits = &wires[port.first as usize..][..port.width() as usize];
            builder.output(String::from_utf8_lossy(port.name), bits);
        }
        builder.finish().or_else(|e| self.error(e.to_string(), "convert it to Bristol Fashion and stream it"))
    }

    fn visit(&self, root: NodeId, wires: &mut [Wire], builder: &mut Builder) -> Result<()> {
        let mut stack = vec![root];
        while let Some(&id) = stack.last() {
            let at = id as usize;
            let node = self.nodes[at];
            if wires[at] == UNSEEN {
                wires[at] = OPEN;
                if let Node::Net { driver: None, .. } = node {
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
                // Both have been dealt with.
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

/// Nodes that are not built yet, and those that wait for what they read.
const UNSEEN: Wire = Wire(u32::MAX);
const OPEN: Wire = Wire(u32::MAX - 1);
