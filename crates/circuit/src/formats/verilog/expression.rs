//! Expressions: parsed by precedence without recursion, sized as IEEE 1364-2005, section 5.4, says, and turned into nodes.

use super::lexer::{Token, shown};
use super::nodes::{Node, NodeId, ZERO};
use super::{MAX_WIDTH, Parser, Result, TECHMAP};

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
    /// Whether it is signed, which it is if all is that makes its width; and whether its context is too, so that its
    /// operands are extended by their highest bits.
    signed: bool,
    extends: bool,
    /// Where its bits lie once they are there.
    bits: usize,
}

enum What {
    /// Its bits lie where [`Term::bits`] says, from the start.
    Leaf,
    Apply(Operator, [u32; 3]),
    /// Places `start..end` of [`Expression::parts`], the most significant first, all of it this many times.
    Join(usize, usize, u32),
}

/// What the parser of expressions waits to complete.
enum Open {
    Parenthesis,
    /// `$signed(` or `$unsigned(`.
    Cast(bool),
    /// Joins the operands from this one on.
    Brace(usize),
    Repeat(u32),
    Apply(Operator, u8),
    Question,
    Colon,
}

/// The expression at hand; kept for its memory.
#[derive(Default)]
pub(super) struct Expression {
    terms: Vec<Term>,
    bits: Vec<NodeId>,
    parts: Vec<u32>,
    operands: Vec<u32>,
    open: Vec<Open>,
}

impl<'a> Parser<'a> {
    /// The bits of the expression that follows, least significant first, extended to `width` where it has fewer.
    pub(super) fn expression(&mut self, width: u32) -> Result<Vec<NodeId>> {
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
                Token::Name(cast @ (b"$signed" | b"$unsigned")) => {
                    self.advance()?;
                    self.expect("(")?;
                    e.open.push(Open::Cast(cast == b"$signed"));
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
                            Some(Open::Parenthesis) => {
                                e.open.pop();
                            }
                            Some(&Open::Cast(signed)) => {
                                e.open.pop();
                                // Its operand stands alone, as a part of a concatenation does.
                                self.join(e, e.operands.len().saturating_sub(1), 1)?;
                                if let Some(term) = e.terms.last_mut() {
                                    term.signed = signed;
                                }
                            }
                            Some(_) => return self.unexpected("the end of what is open"),
                        }
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
                    (term(0).width.max(term(1).width), term(0).signed & term(1).signed)
                }
                Operator::Mux => (term(1).width.max(term(2).width), term(1).signed & term(2).signed),
                _ => (1, false),
            };
            self.term(e, What::Apply(operator, of), width, signed, 0)?;
        }
    }

    fn term(&mut self, e: &mut Expression, what: What, width: u32, signed: bool, bits: usize) -> Result<()> {
        self.spend(1 + width as usize)?;
        e.operands.push(e.terms.len() as u32);
        e.terms.push(Term { what, width, context: 0, signed, extends: false, bits });
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
                self.term(e, What::Leaf, 32, true, at)
            }
            Token::Based(size, signed, base, digits) => {
                let width = size.unwrap_or(32) as usize;
                self.spend(width.max(digits.len()))?;
                // Without a width: tools differ in what they keep beyond 32 bits, so such constants are refused.
                let most = if size.is_none() { 4 * digits.len() } else { width };
                let mut bits = self.constant(base, digits, most)?;
                if bits.get(width..).is_some_and(|higher| higher.iter().any(|bit| *bit != ZERO)) {
                    return self.error("a constant without a width is over 32 bits", "give it a width");
                }
                bits.resize(width, ZERO);
                self.advance()?;
                e.bits.extend(bits);
                self.term(e, What::Leaf, width as u32, signed, at)
            }
            _ => self.unexpected("an operand"),
        }
    }

    /// The constant's lowest bits, `width` of them at most.
    pub(super) fn constant(&self, base: u8, digits: &[u8], width: usize) -> Result<Vec<NodeId>> {
        let bad = |c: u8| {
            let reason = format!("{} in a constant of base '{}", shown(&[c]), char::from(base));
            self.error(reason, "write digits of that base, x or z")
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
                b'x' | b'X' | b'z' | b'Z' | b'?' => 0,
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
    pub(super) fn evaluate(&mut self, e: &mut Expression, width: u32) -> Result<Vec<NodeId>> {
        let Some(root) = e.terms.last_mut() else { return self.unexpected("an expression") };
        (root.context, root.extends) = (root.width.max(width), root.signed);
        for i in (0..e.terms.len()).rev() {
            let (context, extends) = (e.terms[i].context, e.terms[i].extends);
            // Operands are as wide and as signed as the whole, or stand alone.
            let whole = |term: &mut Term| (term.context, term.extends) = (context, extends);
            let alone = |term: &mut Term| (term.context, term.extends) = (term.width, term.signed);
            match e.terms[i].what {
                What::Leaf => {}
                What::Join(start, end, _) => {
                    for &part in &e.parts[start..end] {
                        alone(&mut e.terms[part as usize]);
                    }
                }
                What::Apply(operator, of) => {
                    let [a, b, c] = of.map(|i| i as usize);
                    match operator {
                        Operator::Not => whole(&mut e.terms[a]),
                        Operator::And | Operator::Or | Operator::Xor | Operator::Xnor => {
                            whole(&mut e.terms[a]);
                            whole(&mut e.terms[b]);
                        }
                        Operator::Mux => {
                            alone(&mut e.terms[a]);
                            whole(&mut e.terms[b]);
                            whole(&mut e.terms[c]);
                        }
                        Operator::BothSet | Operator::EitherSet => {
                            alone(&mut e.terms[a]);
                            alone(&mut e.terms[b]);
                        }
                        _ => alone(&mut e.terms[a]),
                    }
                }
            }
        }
        for i in 0..e.terms.len() {
            let term = &e.terms[i];
            let (start, width, context) = (term.bits, term.width as usize, term.context as usize);
            let extends = term.extends;
            // Its bits are there already.
            if context == width && matches!(term.what, What::Leaf) {
                continue;
            }
            self.spend(1 + 3 * context.max(width))?;
            let to = e.bits.len();
            match term.what {
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
            let fill = e.bits.last().copied().filter(|_| extends && e.bits.len() > to).unwrap_or(ZERO);
            e.bits.resize(to + context, fill);
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
}
