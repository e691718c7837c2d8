//! A circuit's values as people write them.
//!
//! A number is decimal, with a minus where the circuit takes numbers with sign, or 0x-hexadecimal; its least significant bit
//! is on the first wire. A list is its values between commas, spaces or lines, in brackets or not; or one number in
//! hexadecimal, whose lowest bits are the first value. A decimal number alone is refused where there are more. `@FILE` and `-` read a value from a file or standard input, and `PLACE=` before it
//! says which input it is.
//!
//! A set, which the circuit takes as a strictly ascending list, may be given in any order, with values that are there
//! twice, and with fewer than the circuit takes: it is sorted, cleared of doubles and filled up with random values, and
//! [`Given::note`] says so. All of that is done before a session begins, so nothing of it shows to the peer.
//!
//! What is wrong with a value is said without showing it: it may be a secret.

mod lists;

use std::io::Read;

use blindcore_units::{counted, harmless};
use zeroize::Zeroizing;

use crate::circuit::PortShape;
use crate::netlist::Netlist;
use crate::ports::{NAMED, NotAscending};
use crate::session::Inputs;

/// Why a text is not a value of an input. Shows nothing of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Fewer or more values than the circuit has inputs.
    #[error("{got} of {want} values; the circuit takes, in this order, a --input for each of {inputs}")]
    Count {
        /// How many were given.
        got: usize,
        /// How many inputs there are.
        want: usize,
        /// Their names and widths.
        inputs: String,
    },
    /// A minus before a number that the circuit takes as unsigned.
    #[error(
        "input {name} is negative, and the circuit takes it as unsigned; if its two's complement in {width} bits is \
         meant, say that in 0x-hexadecimal"
    )]
    Negative {
        /// The input.
        name: String,
        /// Its bits.
        width: usize,
    },
    /// A number below the least of its bits.
    #[error("input {name} is below -2^{}, the least number of {width} bits; give a greater one", width - 1)]
    Low {
        /// The input.
        name: String,
        /// Its bits.
        width: usize,
    },
    /// No value.
    #[error("input {name} is empty; give it a number, decimal or 0x-hexadecimal")]
    Empty {
        /// The input.
        name: String,
    },
    /// Brackets within brackets.
    #[error(
        "input {name} has brackets within its brackets; write all its values in one pair, a matrix's row by row"
    )]
    Nested {
        /// The input.
        name: String,
    },
    /// A character that is not a digit.
    #[error("input {name} is not a number at its character {place}; say decimal or 0x-hexadecimal")]
    Digit {
        /// The input.
        name: String,
        /// Where, counted from 1.
        place: usize,
    },
    /// A number of too many bits.
    #[error("input {name} has {got} bits, over its {width}; give a value below 2^{width}")]
    Wide {
        /// The input.
        name: String,
        /// How many bits, or `some` and about how many.
        got: String,
        /// Its bits.
        width: usize,
    },
    /// A place that no input has.
    #[error("there is no input {place}; the circuit has {inputs}, counted from 0")]
    Place {
        /// The place.
        place: usize,
        /// How many inputs there are.
        inputs: usize,
    },
    /// A place that was given before.
    #[error("input {place} ({name}) was given twice")]
    Twice {
        /// The place.
        place: usize,
        /// The input's name.
        name: String,
    },
    /// What stands for a place is not a number.
    #[error(
        "what stands before the \"=\" of a value is not a place; write PLACE=VALUE, with the place counted from 0"
    )]
    NoPlace,
    /// More values than inputs.
    #[error("{} for a circuit of {}; leave out what is more", counted(*got, "value"), counted(*inputs, "input"))]
    TooMany {
        /// How many values.
        got: usize,
        /// How many inputs.
        inputs: usize,
    },
    /// Two commas with nothing between them.
    #[error("input {name} has nothing where its value {place} should be; write one value between two commas")]
    Missing {
        /// The input.
        name: String,
        /// Which value, counted from 1.
        place: usize,
    },
    /// A line that has not as many values as it should.
    #[error(
        "input {name} has {} in line {line}, and {}; write numbers without separators of thousands, and {}",
        counted(*got, "value"),
        match want { Some((other, want)) => format!("{want} in line {other}"), None => "in several lines a set has one in each".into() },
        match want { Some(_) => "as many in every line, or all of them in one", None => "one in every line, or all of them in one" }
    )]
    Line {
        /// The input.
        name: String,
        /// Which line, counted from 1.
        line: usize,
        /// How many are there.
        got: usize,
        /// Which line has how many others; of a set, none.
        want: Option<(usize, usize)>,
    },
    /// Blanks and commas between values of a line.
    #[error(
        "input {name} has blanks in a value between commas, in line {line}; write numbers without separators of thousands, and \
         either commas between them or blanks"
    )]
    Mixed {
        /// The input.
        name: String,
        /// Which line, counted from 1.
        line: usize,
    },
    /// What may be one number with a separator of thousands.
    #[error(
        "input {name}, line {line}, may be a number with separators of thousands at its value {place}; write 1000 for 1,000, \
         and in brackets, [1,200], what are several numbers"
    )]
    Separated {
        /// The input.
        name: String,
        /// Which line, counted from 1.
        line: usize,
        /// Which value of the line, counted from 1.
        place: usize,
    },
    /// A list of another length.
    #[error(
        "input {name} has {}, and the circuit takes {want} of {width} bits; give as many, or all in one hexadecimal \
         number 0x...",
        counted(*got, "value")
    )]
    Elements {
        /// The input.
        name: String,
        /// How many were given; of a set, different ones.
        got: usize,
        /// How many the circuit takes.
        want: usize,
        /// The bits of each.
        width: usize,
    },
    /// A set of fewer values, which are too narrow to be filled up.
    #[error(
        "input {name} has {}, and the circuit takes {want}; among numbers of {width} bits there are \
         none to fill it up with that the other side surely lacks; give both sides a circuit of {got} values, or one of \
         {want} values of {enough} bits, where random ones are added for you",
        counted(*got, "different value")
    )]
    Narrow {
        /// The input.
        name: String,
        /// How many different values were given.
        got: usize,
        /// How many the circuit takes.
        want: usize,
        /// The bits of each.
        width: usize,
        /// From how many bits on random values are added.
        enough: usize,
    },
    /// A list in one number that does not ascend.
    #[error(transparent)]
    NotAscending(#[from] NotAscending),
    /// Standard input was named twice.
    #[error(
        "standard input is read for one value, and --input - was given {0} times; put the others into files"
    )]
    Stdin(usize),
    /// A file or standard input that can't be read.
    #[error(
        "the value of input {name} can't be read from {from}: {source}; give a file of text that holds the value, or the value itself"
    )]
    Read {
        /// The input.
        name: String,
        /// The file.
        from: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file that is longer than any value of the input.
    #[error(
        "the value of input {name} is longer than the {most} characters that are read for its {width} bits; give {what}"
    )]
    Long {
        /// The input.
        name: String,
        /// How many are read.
        most: usize,
        /// The input's bits.
        width: usize,
        /// What it should be.
        what: &'static str,
    },
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness: {0}")]
    Randomness(getrandom::Error),
}

/// A value of an input.
pub struct Given {
    /// Its bits, least significant first.
    pub bits: Zeroizing<Vec<bool>>,
    /// What was done to it that its owner should know. Shows no value.
    pub note: Option<String>,
}

/// The values of all inputs, in order; notes are added to `notes`.
///
/// # Errors
/// There are more or fewer values than inputs, or one is not a value of its input.
pub fn all(
    netlist: &Netlist,
    given: &[String],
    notes: &mut Vec<String>,
) -> Result<Vec<Vec<bool>>, ValueError> {
    let ports = netlist.input_shapes();
    if given.len() != ports.len() {
        let named = ports.iter().take(NAMED).map(|p| format!("{} ({} bits)", p.name, p.width));
        let more = ports.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("{more} more"));
        let inputs = match ports.is_empty() {
            true => "none".into(),
            false => named.chain(more).collect::<Vec<_>>().join(", "),
        };
        return Err(ValueError::Count { got: given.len(), want: ports.len(), inputs });
    }
    let mut all = vec![Vec::new(); ports.len()];
    for (place, value) in read_all(given, &ports, Unplaced::First, notes)? {
        all[place] = value;
    }
    Ok(all)
}

/// The values that a party gives, for a session; notes are added to `notes`.
///
/// # Errors
/// As [`placed`]; or one can't be read or is not a value of its input.
pub fn own(
    given: &[String],
    ports: &[PortShape],
    unplaced: Unplaced,
    notes: &mut Vec<String>,
) -> Result<Inputs, ValueError> {
    let all = read_all(given, ports, unplaced, notes)?;
    Ok(all.into_iter().fold(Inputs::new(), |all, (place, bits)| all.with(place, bits)))
}

fn read_all(
    given: &[String],
    ports: &[PortShape],
    unplaced: Unplaced,
    notes: &mut Vec<String>,
) -> Result<Vec<(usize, Vec<bool>)>, ValueError> {
    let placed = placed(given, ports, unplaced)?;
    match placed.iter().filter(|(_, value)| *value == "-").count() {
        0 | 1 => {}
        times => return Err(ValueError::Stdin(times)),
    }
    let mut all = Vec::with_capacity(placed.len());
    for (place, value) in placed {
        let port = &ports[place];
        let mut given = parse(&read(value, port)?, port)?;
        notes.extend(given.note);
        all.push((place, std::mem::take(&mut *given.bits)));
    }
    Ok(all)
}

/// What a value in a file may have beside a character a bit, which is more than its digits take.
const SPARE: usize = 1 << 12;

/// The text of a value: itself, or what `@FILE` or `-` has.
fn read(value: &str, port: &PortShape) -> Result<Zeroizing<String>, ValueError> {
    // A list has its digits, a prefix, a comma and a line's end for each value; a set may have values twice.
    let (most, what) = match port.form.element {
        Some(element) => (2 * (port.width + 8 * (port.width / element)) + SPARE, "one list of its values"),
        None => (port.width + SPARE, "one number"),
    };
    let name = || port.name.clone();
    let (from, open): (_, std::io::Result<Box<dyn Read>>) = match value.strip_prefix('@') {
        Some(path) => (path, std::fs::File::open(path).map(|file| Box::new(file) as _)),
        None if value == "-" => ("standard input", Ok(Box::new(std::io::stdin()))),
        None => return Ok(Zeroizing::new(value.to_owned())),
    };
    // Room for all of it at once: nothing is left behind by growing.
    let mut text = Zeroizing::new(String::with_capacity(most + 1));
    let read = open.and_then(|reader| reader.take(most as u64 + 1).read_to_string(&mut text));
    let in_words = blindcore_files::text::in_words;
    read.map_err(|error| ValueError::Read { name: name(), from: from.into(), source: in_words(error) })?;
    if text.len() > most {
        return Err(ValueError::Long { name: name(), most, width: port.width, what });
    }
    Ok(text)
}

/// The value of an input, of its text.
///
/// # Errors
/// The input takes no such number or list of numbers.
pub fn parse(text: &str, port: &PortShape) -> Result<Given, ValueError> {
    let text = blindcore_files::text::without_mark(text).trim_ascii();
    let several = |c: char| c == ',' || c == '[' || c.is_ascii_whitespace();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
    match port.form.element {
        Some(element) if text.contains(several) => lists::list(text, port, element),
        element => {
            let bits = number(text, &port.name, port.width, port.form.unsigned)?;
            // All in one number are hexadecimal: a decimal one may be what is left of a list.
            if let Some(width) = element.filter(|element| *element != port.width && !hexadecimal) {
                let (name, want) = (port.name.clone(), port.width / width);
                return Err(ValueError::Elements { name, got: 1, want, width });
            }
            port.check(&bits)?;
            Ok(Given { bits: Zeroizing::new(bits), note: None })
        }
    }
}

/// Which values a party gives without saying their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplaced {
    /// The circuit's first inputs: the garbler's.
    First,
    /// Its last: the evaluator's.
    Last,
}

/// The place of each value that a party gives: `PLACE=VALUE` says it, the others are the circuit's first or last
/// inputs in order. With the value itself, which may name a file.
///
/// # Errors
/// A place is not a number or no input has it, one is given twice, or there are more values than inputs.
pub fn placed<'a>(
    given: &'a [String],
    ports: &[PortShape],
    unplaced: Unplaced,
) -> Result<Vec<(usize, &'a str)>, ValueError> {
    if given.len() > ports.len() {
        return Err(ValueError::TooMany { got: given.len(), inputs: ports.len() });
    }
    let without = given.iter().filter(|g| place_of(g).is_none()).count();
    let mut next = if unplaced == Unplaced::Last { ports.len() - without } else { 0 };
    let mut placed: Vec<(usize, &str)> = Vec::with_capacity(given.len());
    for given in given {
        let (place, value) = match place_of(given) {
            Some(placed) => placed,
            // In a file's name it stands for itself.
            None if given.contains('=') && !given.starts_with('@') => return Err(ValueError::NoPlace),
            None => {
                next += 1;
                (next - 1, given.as_str())
            }
        };
        let port = ports.get(place).ok_or(ValueError::Place { place, inputs: ports.len() })?;
        if placed.iter().any(|(p, _)| *p == place) {
            return Err(ValueError::Twice { place, name: port.name.clone() });
        }
        placed.push((place, value));
    }
    Ok(placed)
}

/// `PLACE=VALUE`, taken apart.
#[must_use]
pub fn place_of(given: &str) -> Option<(usize, &str)> {
    let (place, value) = given.split_once('=')?;
    // Digits alone: a number's own parser takes a sign.
    let digits = place.bytes().all(|c| c.is_ascii_digit());
    Some((place.parse().ok().filter(|_| digits)?, value))
}

/// The bits of a number for the input `name` of `width` bits, least significant first; of a negative one, its two's
/// complement.
///
/// # Errors
/// It is not a number, has more bits, or is negative where numbers are `unsigned`.
pub fn number(value: &str, name: &str, width: usize, unsigned: bool) -> Result<Vec<bool>, ValueError> {
    let name = || name.to_owned();
    let (negative, magnitude) = match value.strip_prefix('-') {
        Some(magnitude) => (true, magnitude),
        None => (false, value),
    };
    let (digits, radix) = match magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (magnitude, 10),
    };
    if value.is_empty() {
        return Err(ValueError::Empty { name: name() });
    }
    let wrong = digits.chars().position(|c| !c.is_digit(radix));
    if let Some(place) = wrong.or(digits.is_empty().then_some(0)) {
        let place = value.len() - digits.len() + place + 1;
        return Err(ValueError::Digit { name: name(), place });
    }
    if negative && (unsigned || width == 0) {
        return Err(ValueError::Negative { name: name(), width });
    }
    let digits = digits.trim_start_matches('0');
    let wide = |got| {
        let name = name();
        Err(if negative { ValueError::Low { name, width } } else { ValueError::Wide { name, got, width } })
    };
    // A digit more than fits is refused before it is converted: a bit takes 0.302 decimal digits.
    let most = if radix == 16 { width.div_ceil(4) } else { width / 3 + 1 };
    if digits.len() > most {
        return wide(format!("some {}", (digits.len() as f64 * f64::from(radix).log2()) as usize));
    }
    let mut bits = if radix == 16 { hexadecimal(digits) } else { decimal(digits) };
    if bits.len() > width {
        return wide(bits.len().to_string());
    }
    bits.resize(width, false);
    if negative {
        // !(n - 1): up to the lowest bit that is set all stays, above it all turns.
        let lowest = bits.iter().position(|bit| *bit).unwrap_or(width);
        if bits[width - 1] && lowest < width - 1 {
            return wide(String::new());
        }
        bits.iter_mut().skip(lowest + 1).for_each(|bit| *bit = !*bit);
    }
    Ok(bits)
}

/// Bits in 0x-hexadecimal, with as many digits as they need whatever their value.
#[must_use]
pub fn hex(bits: &[bool]) -> String {
    let digits = bits.chunks(4).rev().map(|four| {
        let value = four.iter().rev().fold(0, |value, bit| value << 1 | u32::from(*bit));
        char::from_digit(value, 16).expect("four bits")
    });
    "0x".chars().chain(digits).collect()
}

/// A number for people: decimal up to 128 bits, beyond them as [`hex`].
#[must_use]
pub fn text(bits: &[bool]) -> String {
    if bits.len() > 128 {
        return hex(bits);
    }
    bits.iter().rev().fold(0u128, |n, bit| n << 1 | u128::from(*bit)).to_string()
}

/// The elements of a list, or `None` where the port is a number: each by [`text`].
#[must_use]
pub fn elements(port: &PortShape, bits: &[bool]) -> Option<Vec<String>> {
    Some(bits.chunks(port.form.element?).map(text).collect())
}

/// Outputs for people, a line each: name, bits in hexadecimal, and the number or the list's numbers in decimal.
#[must_use]
pub fn shown(ports: &[PortShape], outputs: &[Vec<bool>]) -> String {
    // A name of a file could redraw the screen.
    let name = |port: &PortShape| harmless(&port.name);
    let wide = ports.iter().map(|p| name(p).chars().count()).max().unwrap_or(0);
    let line = |(port, bits): (&PortShape, &Vec<bool>)| {
        let value = match elements(port, bits) {
            Some(all) => format!(" [{}]", all.join(", ")),
            None if bits.len() <= 128 => format!(" ({})", text(bits)),
            None => String::new(),
        };
        format!("{:wide$} {}{value}\n", name(port), hex(bits))
    };
    ports.iter().zip(outputs).map(line).collect()
}

/// Up to the highest bit that is set.
fn hexadecimal(digits: &str) -> Vec<bool> {
    let digits = digits.chars().rev().map(|c| c.to_digit(16).expect("checked"));
    trimmed(digits.flat_map(|d| (0..4).map(move |i| d >> i & 1 == 1)).collect())
}

fn decimal(digits: &str) -> Vec<bool> {
    let mut words: Vec<u32> = Vec::new();
    for nine in digits.as_bytes().chunks(9) {
        let mut carry = nine.iter().fold(0, |n, c| 10 * n + u64::from(c - b'0'));
        let factor = 10u64.pow(nine.len() as u32);
        for word in &mut words {
            let product = u64::from(*word) * factor + carry;
            (*word, carry) = (product as u32, product >> 32);
        }
        if carry > 0 {
            words.push(carry as u32);
        }
    }
    trimmed(words.into_iter().flat_map(|w| (0..32).map(move |i| w >> i & 1 == 1)).collect())
}

fn trimmed(mut bits: Vec<bool>) -> Vec<bool> {
    bits.truncate(bits.iter().rposition(|b| *b).map_or(0, |top| top + 1));
    bits
}

#[cfg(test)]
mod tests {
    use super::{hex, shown};
    use crate::ports::{Form, PortShape};

    fn bits(value: &str, width: u32) -> Result<Vec<bool>, super::ValueError> {
        super::number(value, "x", width as usize, false)
    }

    #[test]
    fn numbers_there_and_back() {
        for width in [1, 3, 4, 5, 31, 32, 33, 64, 100, 127, 128] {
            let all = u128::MAX >> (128 - width);
            for value in [0, 1, 5, 9, 10, 99_999_999, 1_000_000_000, 1 << 32, all / 3, all - 1, all] {
                let decimal = bits(&value.to_string(), width);
                assert_eq!(decimal.is_ok(), value <= all, "{value} {width}");
                if let Ok(decimal) = decimal {
                    assert_eq!(decimal, bits(&format!("0x{value:X}"), width).unwrap());
                    assert_eq!(super::text(&decimal), value.to_string());
                    let digits = width.div_ceil(4) as usize;
                    assert_eq!(hex(&decimal), format!("0x{value:0>digits$x}"));
                }
            }
        }
        // 2^200 and 2^200 - 1.
        let power = "1606938044258990275541962092341162602522202993782792835301376";
        assert_eq!(bits(power, 201).unwrap().iter().rposition(|b| *b), Some(200));
        assert!(bits(power, 200).unwrap_err().to_string().contains("201 bits, over its 200"));
        assert!(bits(&power.replace("376", "375"), 200).unwrap().iter().all(|b| *b));
        assert_eq!(bits("0x", 0).unwrap_err().to_string(), bits("0x", 9).unwrap_err().to_string());
        assert_eq!((bits("000", 0).unwrap(), hex(&[])), (vec![], "0x".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_value() {
        for (value, words) in [
            ("12g4", "character 3"),
            ("0x12G", "character 5"),
            ("", "input x is empty"),
            ("0x", "character 3"),
            ("-129", "below -2^7"),
            ("-0x81", "below -2^7"),
            ("-99999999", "below -2^7"),
            ("--5", "character 2"),
            ("99999999999999999999999999999", "some 96 bits, over its 8"),
            ("256", "9 bits, over its 8"),
            ("0x100", "over its 8"),
            ("1é", "character 2"),
        ] {
            let said = bits(value, 8).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
            assert!(value.len() < 3 || !said.contains(value), "{said}");
        }
    }
    #[test]
    fn places_are_numbers() {
        let port = |name: &str| PortShape { name: name.into(), width: 8, form: Form::default() };
        let ports = [port("x"), port("y")];
        let placed = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|g| (*g).into()).collect();
            super::placed(&given, &ports, super::Unplaced::First)
                .map(|all| all.len())
                .map_err(|e| e.to_string())
        };
        assert_eq!(placed(&["1=3", "@a=b.txt"]), Ok(2));
        for given in ["x=3", "+1=3", "=3", "-1=3"] {
            let said = placed(&[given]).unwrap_err();
            assert!(said.contains("PLACE=VALUE") && !said.contains(given), "{said}");
        }
        assert_eq!(
            placed(&["1", "2", "3"]).unwrap_err(),
            "3 values for a circuit of 2 inputs; leave out what is more"
        );
    }
    #[test]
    fn places_have_no_sign() {
        assert_eq!(super::place_of("01=3"), Some((1, "3")));
        for given in ["+1=3", "-1=3", "=3", " 1=3", "1", "99999999999999999999=3"] {
            assert_eq!(super::place_of(given), None, "{given}");
        }
    }
    #[test]
    fn negative_numbers_are_their_twos_complement() {
        for (value, want) in
            [("-1", "0xff"), ("-128", "0x80"), ("-0x7f", "0x81"), ("-0", "0x00"), ("-6", "0xfa")]
        {
            assert_eq!(hex(&bits(value, 8).unwrap()), want, "{value}");
        }
        let error = super::number("-1", "x", 8, true).unwrap_err().to_string();
        assert!(error.contains("unsigned") && error.contains("two's complement in 8 bits"), "{error}");
    }
    #[test]
    fn names_of_outputs_turn_no_line_round() {
        let ports =
            [PortShape { name: "a\u{202e}b\u{2028}c\u{1b}[2J".into(), width: 1, form: Form::default() }];
        assert_eq!(shown(&ports, &[vec![true]]), "a\\u{202e}b\\u{2028}c\\u{1b}[2J 0x1 (1)\n");
    }
}
