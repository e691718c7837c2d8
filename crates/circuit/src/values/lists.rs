//! Lists and sets of values.
//!
//! A separator of thousands makes two values of one. So where a file has several lines, each has one value of a set, and as many of a
//! list or matrix as the others; blanks other than those of ASCII separate nothing; commas and blanks separate nothing together; and what
//! may be one number is refused, unless it is in brackets.

use zeroize::Zeroizing;

use super::{Given, ValueError, counted, number};
use crate::circuit::PortShape;
use crate::ports::below;

/// The bits of a list's values, one after the other.
pub(super) fn list(text: &str, port: &PortShape, element: usize) -> Result<Given, ValueError> {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    if inner.is_some_and(|inner| inner.contains(['[', ']'])) {
        return Err(ValueError::Nested { name: port.name.clone() });
    }
    let want = port.width / element;
    let mut values: Vec<Zeroizing<Vec<bool>>> = Vec::new();
    // How many the first line has that has some.
    let mut first = None;
    // In brackets the ends of lines are blanks.
    let lines: Vec<&str> = inner.map_or_else(|| text.split('\n').collect(), |inner| vec![inner]);
    let several = lines.iter().filter(|line| !line.trim_ascii().is_empty()).count() > 1;
    for (line, text) in (1..).zip(lines).map(|(line, text)| (line, text.trim_ascii())) {
        if text.is_empty() {
            continue;
        }
        let name = || port.name.clone();
        let all = cut(text, values.len(), name, line)?;
        if inner.is_none() {
            if let Some(place) = separated(&all, port.form.ascending) {
                return Err(ValueError::Separated { name: name(), line, place });
            }
            let want = if port.form.ascending {
                Some((line, 1))
            } else {
                *first.get_or_insert(Some((line, all.len())))
            };
            let want = want.filter(|(_, want)| several && *want != all.len());
            if let Some(want) = want {
                let want = (!port.form.ascending).then_some(want);
                return Err(ValueError::Line { name: name(), line, got: all.len(), want });
            }
        }
        for value in all {
            let name = format!("{}, value {},", port.name, values.len() + 1);
            values.push(Zeroizing::new(number(value.trim_ascii(), &name, element, port.form.unsigned)?));
        }
    }
    let note = if port.form.ascending { as_set(&mut values, port, element, want)? } else { None };
    if values.len() != want {
        let (name, got) = (port.name.clone(), values.len());
        return Err(ValueError::Elements { name, got, want, width: element });
    }
    let mut bits = Zeroizing::new(Vec::with_capacity(port.width));
    values.iter().for_each(|value| bits.extend_from_slice(value));
    Ok(Given { bits, note })
}

/// The values of a line, between commas with the blanks around them, else between blanks. `before` are in the lines above.
fn cut(text: &str, before: usize, name: impl Fn() -> String, line: usize) -> Result<Vec<&str>, ValueError> {
    if !text.contains(',') {
        return Ok(text.split_ascii_whitespace().collect());
    }
    // A comma after the last value is none too many.
    let values: Vec<&str> = text.strip_suffix(',').unwrap_or(text).split(',').collect();
    for (place, value) in values.iter().enumerate() {
        match value.split_ascii_whitespace().count() {
            0 => return Err(ValueError::Missing { name: name(), place: before + place + 1 }),
            1 => {}
            _ => return Err(ValueError::Mixed { name: name(), line }),
        }
    }
    Ok(values)
}

/// Which value of a line, counted from 1, may go on with the number that the one before begins: three digits after one to three,
/// that begin with a zero; of a `set`, which may be of any length, also all that follow the first.
fn separated(values: &[&str], set: bool) -> Option<usize> {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let group = |text: &str| text.len() == 3 && digits(text);
    let begins = |text: &str| {
        let text = text.strip_prefix('-').unwrap_or(text);
        (1..=3).contains(&text.len()) && digits(text)
    };
    let zero =
        values.windows(2).position(|pair| begins(pair[0]) && group(pair[1]) && pair[1].starts_with('0'));
    let whole = || {
        let (first, rest) = values.split_first()?;
        (set && begins(first) && !first.starts_with('0') && !rest.is_empty() && rest.iter().all(|v| group(v)))
            .then_some(0)
    };
    zero.or_else(whole).map(|at| at + 2)
}

/// Chance, in bits, that a value that was added to a set is one of the other side's.
const SURELY: usize = 40;

/// Sorts values, drops those that are there twice, and adds random ones until there are `want`.
fn as_set(
    values: &mut Vec<Zeroizing<Vec<bool>>>,
    port: &PortShape,
    width: usize,
    want: usize,
) -> Result<Option<String>, ValueError> {
    let order = |a: &Zeroizing<Vec<bool>>, b: &Zeroizing<Vec<bool>>| a.iter().rev().cmp(b.iter().rev());
    let given = values.len();
    let sorted = values.windows(2).all(|pair| !below(&pair[1], &pair[0]));
    values.sort_unstable_by(order);
    values.dedup();
    let got = values.len();
    let name = || port.name.clone();
    if got > want {
        return Err(ValueError::Elements { name: name(), got, want, width });
    }
    if got < want {
        // Each that is added meets each of the other side's with a chance of 2^-width.
        let enough = SURELY + 2 * want.next_power_of_two().ilog2() as usize;
        if width < enough {
            return Err(ValueError::Narrow { name: name(), got, want, width, enough });
        }
        while values.len() < want {
            let mut bytes = Zeroizing::new(vec![0; width.div_ceil(8)]);
            for _ in values.len()..want {
                getrandom::fill(&mut bytes).map_err(ValueError::Randomness)?;
                let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1 == 1;
                values.push(Zeroizing::new((0..width).map(bit).collect()));
            }
            values.sort_unstable_by(order);
            values.dedup();
        }
    }
    let mut said = Vec::new();
    if !sorted {
        said.push("sorted".to_owned());
    }
    if got < given {
        said.push(format!("{} that were there before left out", given - got));
    }
    if got < want {
        said.push(format!("{} random ones added, which the other side lacks", want - got));
    }
    let note = format!("input {}: {}, {}", port.name, counted(given, "value"), said.join(", "));
    Ok((!said.is_empty()).then_some(note))
}

#[cfg(test)]
mod tests {
    use crate::ports::{Form, PortShape};
    use crate::values::{hex, parse, shown};

    fn port(form: Form, width: usize) -> PortShape {
        PortShape { name: "a".into(), width, form }
    }

    #[test]
    fn lists_are_written_in_every_usual_way() {
        let ports = [port(Form::modular_list(8), 32)];
        for text in
            ["0xfd030201", "1,2,3,-3", "[1, 2, 3, -3]", "\u{feff}1\r\n0x2\r\n3\r\n-3", "1,2,\n3,-3,\n"]
        {
            let given = parse(text, &ports[0]).unwrap();
            assert!(given.note.is_none(), "{text}");
            assert_eq!(shown(&ports, &[given.bits.to_vec()]), "a 0xfd030201 [1, 2, 3, 253]\n", "{text}");
        }
        for (text, words) in [
            ("1,2,3", "3 values, and the circuit takes 4 of 8 bits"),
            ("1,2,3,4,5", "5 values"),
            ("1,,3,4", "its value 2"),
            ("[]", "0 values"),
            ("1,2,3,256", "value 4, has 9 bits, over its 8"),
            ("1,2,x,4", "value 3, is not a number at its character 1"),
            (
                "5",
                "1 value, and the circuit takes 4 of 8 bits; give as many, or all in one hexadecimal number 0x",
            ),
            ("-5\n", "1 value,"),
            ("0", "1 value,"),
            ("16909060", "1 value,"),
            ("", "input a is empty"),
            ("-", "not a number at its character 2"),
            ("[[1, 2], [3, 4]]", "row by row"),
        ] {
            let said = parse(text, &ports[0]).map(|_| ()).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        assert!(parse("1,2", &port(Form::default(), 8)).is_err());
    }

    #[test]
    fn sets_are_sorted_cleared_of_doubles_and_filled_up() {
        let of = |text: &str, width: usize| parse(text, &port(Form::set(width), 4 * width));
        let given = of("9, 7, 5, 1", 8).unwrap();
        assert_eq!(hex(&given.bits), "0x09070501");
        assert_eq!(given.note.unwrap(), "input a: 4 values, sorted");
        assert!(of("1 5 7 9", 8).unwrap().note.is_none());
        assert!(of("0x09070501", 8).unwrap().note.is_none());
        // A number is what it says: nothing of it is sorted or left out.
        for number in ["0x0", "0X5", "0x01050709", "0x09070505"] {
            let said = of(number, 8).map(|_| ()).unwrap_err().to_string();
            assert!(said.contains("strictly ascending") && said.contains("5,7,9"), "{said}");
        }
        // One in decimal may be what is left of them; in brackets it is the only one.
        let said = of("5", 44).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("1 value,") && said.contains("takes 4"), "{said}");
        let note = of("[5]", 44).unwrap().note.unwrap();
        assert_eq!(note, "input a: 1 value, 3 random ones added, which the other side lacks");
        assert!(parse("5", &port(Form::set(8), 8)).is_ok());
        let given = of("9,9,5,5,7,1", 8).unwrap();
        assert_eq!(hex(&given.bits), "0x09070501");
        assert_eq!(given.note.unwrap(), "input a: 6 values, sorted, 2 that were there before left out");
        assert!(of("1,2,3,4,5", 8).map(|_| ()).unwrap_err().to_string().contains("5 values"));
        // Too narrow to be filled up: 2^-43 is less than what is sure.
        let said = of("1,2,2,3", 43).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("3 different values") && said.contains("4 values of 44 bits"), "{said}");
        let ports = [port(Form::set(44), 4 * 44)];
        let filled = || {
            let given = of("30,10", 44).unwrap();
            assert!(
                given
                    .note
                    .unwrap()
                    .ends_with("2 values, sorted, 2 random ones added, which the other side lacks")
            );
            assert!(ports[0].check(&given.bits).is_ok());
            crate::values::elements(&ports[0], &given.bits).unwrap()
        };
        let (one, other) = (filled(), filled());
        for all in [&one, &other] {
            assert!(["10", "30"].iter().all(|value| all.iter().any(|v| v == value)), "{all:?}");
        }
        assert_eq!(one.iter().filter(|value| other.contains(value)).count(), 2);
        assert_eq!(of("[]", 44).unwrap().bits.len(), 4 * 44);
    }
    #[test]
    fn separators_of_thousands_make_no_values() {
        let said = |form: Form, text: &str| {
            let (element, width) = (form.element.unwrap(), 4 * form.element.unwrap());
            assert_eq!(element, 64);
            parse(text, &port(form, width)).map(|_| ()).unwrap_err().to_string()
        };
        for (text, words) in [
            ("1,234\n5,678\n", "line 1, may be a number with separators"),
            ("7\n1,234\n", "line 2, may be"),
            ("7\n\n1234,5\n", "2 values in line 3, and in several lines a set has one in each"),
            ("1 234\n5 678\n", "line 1, may be"),
            ("1\u{202f}234\n5\u{202f}678\n", "value 1, is not a number at its character 2"),
            ("1\u{a0}234,5", "value 1, is not a number at its character 2"),
            ("1\u{2009}234", "not a number at its character 2"),
            ("1,234 5,678", "blanks in a value between commas, in line 1"),
            ("1,234", "line 1, may be a number with separators of thousands at its value 2"),
            ("100 200 300", "at its value 2; write 1000 for 1,000, and in brackets"),
            ("5,17,002", "at its value 3"),
        ] {
            let said = said(Form::set(64), text);
            assert!(said.contains(words), "{text:?}: {said}");
        }
        for (text, words) in [
            ("1,234\n5\n6\n", "1 value in line 2, and 2 in line 1"),
            ("1,2\n3 4,5\n", "blanks in a value between commas, in line 2"),
            ("1,002,3,4", "at its value 2"),
        ] {
            let said = said(Form::modular_list(64), text);
            assert!(said.contains(words), "{text:?}: {said}");
        }
        let taken = |form: Form, text: &str| {
            let port = port(form, 4 * 64);
            let bits = parse(text, &port).unwrap().bits.to_vec();
            crate::values::elements(&port, &bits).unwrap().join(" ")
        };
        for (form, text, want) in [
            (Form::set(64), "1234\r\n5678\n\n9000,\n1", "1 1234 5678 9000"),
            (Form::set(64), "[1,200,300,400]", "1 200 300 400"),
            (Form::set(64), "[1,\n 200,\n 300, 400]", "1 200 300 400"),
            (Form::set(64), "1, 200, 300, 400", "1 200 300 400"),
            (Form::set(64), "7,1000,200,300", "7 200 300 1000"),
            (Form::modular_list(64), "1,200\n300,400\n", "1 200 300 400"),
            (Form::modular_list(64), "100 200 300 400", "100 200 300 400"),
        ] {
            assert_eq!(taken(form, text), want, "{text:?}");
        }
    }
}
