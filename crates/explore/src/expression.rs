//! Constraints: comparisons and arithmetic over the names of axes.
//!
//! ```
//! use blindcore_explore::expression::Expression;
//!
//! let few = Expression::parse("srams <= register_files && srams * sram_bytes < 2 * 1024").unwrap();
//! let value = |name: &str| Some(match name { "srams" => 2.0, "register_files" => 4.0, _ => 512.0 });
//! assert!(few.holds(&value).unwrap());
//! assert_eq!(few.names(), ["srams", "register_files", "sram_bytes"]);
//! assert!(Expression::parse("srams <=").unwrap_err().contains("a number or a name is missing at the end"));
//! ```

/// An expression that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    /// In the order in which a stack computes it.
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Number(f64),
    Name(String),
    Not,
    Negate,
    Two(Two),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Two {
    Or,
    And,
    Equal,
    Unequal,
    LessEqual,
    GreaterEqual,
    Less,
    Greater,
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
}

/// Operators, longer ones before those that begin them, with how tightly they bind.
const OPERATORS: [(&str, Two, u8); 13] = [
    ("||", Two::Or, 1),
    ("&&", Two::And, 2),
    ("==", Two::Equal, 3),
    ("!=", Two::Unequal, 3),
    ("<=", Two::LessEqual, 3),
    (">=", Two::GreaterEqual, 3),
    ("<", Two::Less, 3),
    (">", Two::Greater, 3),
    ("+", Two::Plus, 4),
    ("-", Two::Minus, 4),
    ("*", Two::Times, 5),
    ("/", Two::Over, 5),
    ("%", Two::Modulo, 5),
];
/// No expression nests deeper, nor is longer.
const MOST_DEEP: usize = 64;
const MOST_BYTES: usize = 4096;

impl Expression {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("it has {} bytes, over {MOST_BYTES}; cut it in several", text.len()));
        }
        let mut reader = Reader { rest: text, steps: Vec::new(), deep: 0 };
        reader.binary(1)?;
        reader.blanks();
        if !reader.rest.is_empty() {
            let text = reader.rest;
            return Err(format!("{text:?} is not understood; operators are || && == != <= >= < > + - * / %"));
        }
        Ok(Self { text: text.to_owned(), steps: reader.steps })
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names that it uses, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for step in &self.steps {
            if let Step::Name(name) = step
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        }
        names
    }

    /// Whether it holds, which is whether it is not 0.
    ///
    /// # Errors
    /// A name has no value.
    pub fn holds(&self, value: &dyn Fn(&str) -> Option<f64>) -> Result<bool, String> {
        let mut stack: Vec<f64> = Vec::new();
        for step in &self.steps {
            let mut pop = || stack.pop().unwrap_or(0.0);
            let result = match step {
                Step::Number(x) => *x,
                Step::Name(name) => value(name).ok_or_else(|| format!("{name} is not an axis"))?,
                Step::Not => f64::from(pop() == 0.0),
                Step::Negate => -pop(),
                Step::Two(two) => {
                    let (b, a) = (pop(), pop());
                    match two {
                        Two::Or => f64::from(a != 0.0 || b != 0.0),
                        Two::And => f64::from(a != 0.0 && b != 0.0),
                        Two::Equal => f64::from(a == b),
                        Two::Unequal => f64::from(a != b),
                        Two::LessEqual => f64::from(a <= b),
                        Two::GreaterEqual => f64::from(a >= b),
                        Two::Less => f64::from(a < b),
                        Two::Greater => f64::from(a > b),
                        Two::Plus => a + b,
                        Two::Minus => a - b,
                        Two::Times => a * b,
                        Two::Over => a / b,
                        Two::Modulo => a % b,
                    }
                }
            };
            stack.push(result);
        }
        Ok(stack.pop().is_some_and(|x| x != 0.0))
    }
}

struct Reader<'a> {
    rest: &'a str,
    steps: Vec<Step>,
    deep: usize,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, word: &str) -> bool {
        self.blanks();
        let after = self.rest.strip_prefix(word);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// Operators that bind as tightly as `tight` or tighter.
    fn binary(&mut self, tight: u8) -> Result<(), String> {
        self.one()?;
        'more: loop {
            self.blanks();
            for (word, two, binds) in OPERATORS {
                if self.rest.starts_with(word) {
                    if binds < tight {
                        return Ok(());
                    }
                    self.rest = &self.rest[word.len()..];
                    self.binary(binds + 1)?;
                    self.steps.push(Step::Two(two));
                    continue 'more;
                }
            }
            return Ok(());
        }
    }

    /// A number, a name, or something in parentheses.
    fn one(&mut self) -> Result<(), String> {
        self.deep += 1;
        if self.deep > MOST_DEEP {
            return Err(format!("it nests deeper than {MOST_DEEP}; cut it in several"));
        }
        if self.takes("(") {
            self.binary(1)?;
            if !self.takes(")") {
                return Err("a ) is missing".into());
            }
        } else if self.takes("!") {
            self.one()?;
            self.steps.push(Step::Not);
        } else if self.takes("-") {
            self.one()?;
            self.steps.push(Step::Negate);
        } else {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let end = self.rest.find(|c| !word(c)).unwrap_or(self.rest.len());
            let (word, rest) = self.rest.split_at(end);
            let here = || match self.rest {
                "" => "at the end".into(),
                text => format!("before {text:?}"),
            };
            self.steps.push(match word.chars().next() {
                None => return Err(format!("a number or a name is missing {}", here())),
                Some(c) if c.is_ascii_digit() || c == '.' => {
                    let number = word.parse().map_err(|_| format!("{word:?} is not a number"))?;
                    Step::Number(number)
                }
                Some(_) => Step::Name(word.to_owned()),
            });
            self.rest = rest;
        }
        self.deep -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_bind_as_usual() {
        let value = |name: &str| (name == "x").then_some(7.0);
        let holds = |text: &str| Expression::parse(text).unwrap().holds(&value).unwrap();
        for yes in [
            "1 + 2 * 3 == x",
            "(1 + 2) * 3 == x + 2",
            "!(x < 7) && x >= 7",
            "x % 2 == 1",
            "-x < 0 || 0",
            "10 - 2 - 1 == x",
            "x / 2 / 7 == .5",
            "x != 8",
            "1e3 > x",
        ] {
            assert!(holds(yes), "{yes}");
        }
        assert!(!holds("x > 7") && !holds("0"));
        assert_eq!(Expression::parse("y > 1").unwrap().holds(&value).unwrap_err(), "y is not an axis");
        for bad in ["", "x +", "(x", "x 3", "3x == x", "x = 7", ")", "x && && x", &"(".repeat(99)] {
            assert!(Expression::parse(bad).is_err(), "{bad}");
        }
    }
}
