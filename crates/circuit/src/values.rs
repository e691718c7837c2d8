//! A circuit's values as people write them: decimal or 0x-hexadecimal, the least significant bit on the first wire.
//!
//! What is wrong with a value is said without showing it: it may be a secret.

use crate::circuit::PortShape;
use crate::netlist::Netlist;

/// Why a text is not a value of an input. Shows nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// A minus.
    #[error("input {name} is negative; say its two's complement in {width} bits, 0x-hexadecimal")]
    Negative {
        /// The input.
        name: String,
        /// Its bits.
        width: usize,
    },
    /// A character that is not a digit, or no digit at all.
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
    /// More values than inputs.
    #[error("{got} values for a circuit of {inputs} inputs")]
    TooMany {
        /// How many values.
        got: usize,
        /// How many inputs.
        inputs: usize,
    },
}

/// The bits of every input, in order.
///
/// # Errors
/// There are more or fewer values than inputs, or one is not a value of its input.
pub fn inputs(netlist: &Netlist, values: &[String]) -> Result<Vec<Vec<bool>>, ValueError> {
    let ports = netlist.inputs();
    if values.len() != ports.len() {
        let all = ports.iter().map(|p| format!("{} ({} bits)", p.name, p.wires.len()));
        let inputs = if ports.is_empty() { "none".into() } else { all.collect::<Vec<_>>().join(", ") };
        return Err(ValueError::Count { got: values.len(), want: ports.len(), inputs });
    }
    values.iter().zip(ports).map(|(value, port)| bits(value, &port.name, port.wires.len())).collect()
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
/// There is no such place, one is given twice, or there are more values than inputs.
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
        let (place, value) = place_of(given).unwrap_or_else(|| {
            next += 1;
            (next - 1, given)
        });
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
    Some((place.parse().ok()?, value))
}

/// The bits of a value for the input `name` of `width` bits, least significant first.
///
/// # Errors
/// It is not a number, or has more bits.
pub fn bits(value: &str, name: &str, width: usize) -> Result<Vec<bool>, ValueError> {
    let name = || name.to_owned();
    let (digits, radix) = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (value, 10),
    };
    if value.starts_with('-') {
        return Err(ValueError::Negative { name: name(), width });
    }
    let wrong = digits.chars().position(|c| !c.is_digit(radix));
    if let Some(place) = wrong.or(digits.is_empty().then_some(0)) {
        let place = value.len() - digits.len() + place + 1;
        return Err(ValueError::Digit { name: name(), place });
    }
    let digits = digits.trim_start_matches('0');
    let wide = |got| Err(ValueError::Wide { name: name(), got, width });
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
    use super::hex;

    fn bits(value: &str, width: u32) -> Result<Vec<bool>, super::ValueError> {
        super::bits(value, "x", width as usize)
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
            ("", "character 1"),
            ("0x", "character 3"),
            ("-5", "two's complement"),
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
}
