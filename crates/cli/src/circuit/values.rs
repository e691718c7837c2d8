//! A circuit's values as people write them: decimal or 0x-hexadecimal, the least significant bit on the first wire.
//!
//! What is wrong with a value is said without showing it: it may be a secret.

use blindcore_circuit::netlist::Netlist;

/// The bits of every input, in order.
pub(crate) fn inputs(netlist: &Netlist, values: &[String]) -> anyhow::Result<Vec<Vec<bool>>> {
    let ports = netlist.inputs();
    let wanted = || {
        let ports = ports.iter().map(|p| format!("{} ({} bits)", p.name, p.wires.len()));
        ports.collect::<Vec<_>>().join(", ")
    };
    anyhow::ensure!(
        values.len() == ports.len(),
        "{} of {} values; the circuit takes, in this order, a --input for each of {}",
        values.len(),
        ports.len(),
        if ports.is_empty() { "none".into() } else { wanted() }
    );
    values.iter().zip(ports).map(|(value, port)| bits(value, &port.name, port.wires.len())).collect()
}

/// The bits of a value for this input.
pub(crate) fn bits(value: &str, name: &str, width: usize) -> anyhow::Result<Vec<bool>> {
    let (digits, radix) = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (value, 10),
    };
    anyhow::ensure!(
        !value.starts_with('-'),
        "input {name} is negative; say its two's complement in {width} bits, 0x-hexadecimal"
    );
    let wrong = digits.chars().position(|c| !c.is_digit(radix));
    if let Some(place) = wrong.or(digits.is_empty().then_some(0)) {
        let place = value.len() - digits.len() + place + 1;
        anyhow::bail!("input {name} is no number at its character {place}; say decimal or 0x-hexadecimal");
    }
    let digits = digits.trim_start_matches('0');
    // A digit more than fits is refused before it is converted: a bit takes 0.302 decimal digits.
    let most = if radix == 16 { width.div_ceil(4) } else { width / 3 + 1 };
    let mut bits = if digits.len() > most {
        Err(format!("some {} bits", (digits.len() as f64 * f64::from(radix).log2()) as usize))
    } else {
        let bits = if radix == 16 { hexadecimal(digits) } else { decimal(digits) };
        if bits.len() > width { Err(format!("{} bits", bits.len())) } else { Ok(bits) }
    }
    .map_err(|got| {
        anyhow::anyhow!("input {name} has {got}, over its {width}; give a value below 2^{width}")
    })?;
    bits.resize(width, false);
    Ok(bits)
}

/// Bits in 0x-hexadecimal, with as many digits as they need whatever their value.
pub(crate) fn hex(bits: &[bool]) -> String {
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

    fn bits(value: &str, width: u32) -> anyhow::Result<Vec<bool>> {
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
