//! Typed circuits against Rust's own operators.

use blindcore_circuit::gadgets::{to_bits, to_number};
use blindcore_circuit::netlist::Netlist;
use blindcore_circuit::typed::{Bool, Fixed, Int, TypedError, Uint, circuit, sort};

fn evaluate(netlist: &Netlist, values: &[u128]) -> Vec<u128> {
    let inputs: Vec<Vec<bool>> =
        values.iter().zip(netlist.inputs()).map(|(v, p)| to_bits(*v, p.wires.len())).collect();
    netlist.evaluate(&inputs).unwrap().iter().map(|bits| to_number(bits)).collect()
}

#[test]
fn unsigned_as_in_rust() {
    let netlist = circuit(|c| {
        let (a, b): (Uint<8>, Uint<8>) = (c.input("a"), c.input("b"));
        for (i, value) in [
            a + b,
            a - b,
            a * b,
            a / b,
            a % b,
            a & b,
            a | b,
            a ^ b,
            !a,
            a << 3,
            a >> 3,
            a << b,
            a >> b,
            a + 7,
            a * 10,
            a / 10,
            a.min(b),
            a.max(b),
            a.abs_diff(b),
            a.count_ones(),
            a.leading_zeros(),
        ]
        .into_iter()
        .enumerate()
        {
            c.output(&format!("out{i}"), value);
        }
        c.output("wide", a.multiply_wide::<16>(b));
        c.output("tests", [a.eq(b), a.ne(b), a.lt(b), a.le(b), a.gt(b), a.ge(b), a.bit(0)]);
        c.output("resized", a.resize::<12>().resize::<4>());
    })
    .unwrap();
    for (a, b) in [(200u8, 100u8), (3, 200), (0, 1), (255, 255), (128, 2), (77, 9), (5, 7)] {
        let bytes = [
            a.wrapping_add(b),
            a.wrapping_sub(b),
            a.wrapping_mul(b),
            a / b,
            a % b,
            a & b,
            a | b,
            a ^ b,
            !a,
            a << 3,
            a >> 3,
            a.checked_shl(b.into()).unwrap_or(0),
            a.checked_shr(b.into()).unwrap_or(0),
            a.wrapping_add(7),
            a.wrapping_mul(10),
            a / 10,
            a.min(b),
            a.max(b),
            a.abs_diff(b),
            a.count_ones() as u8,
            a.leading_zeros() as u8,
        ];
        let tests = to_number(&[a == b, a != b, a < b, a <= b, a > b, a >= b, a & 1 == 1]);
        let rest = [u128::from(a) * u128::from(b), tests, u128::from(a & 15)];
        let want: Vec<u128> = bytes.into_iter().map(u128::from).chain(rest).collect();
        assert_eq!(evaluate(&netlist, &[a.into(), b.into()]), want, "{a} and {b}");
    }
}

#[test]
fn signed_as_in_rust() {
    let netlist = circuit(|c| {
        let (a, b): (Int<8>, Int<8>) = (c.input("a"), c.input("b"));
        let values =
            [a + b, a - b, a * b, a / b, a % b, -a, !a, a >> 2, a << 2, a + -3, a / -3, a.min(b), a.max(b)];
        c.output("values", values);
        c.output("abs", a.abs());
        c.output("wide", a.multiply_wide::<20>(b));
        c.output("tests", [a.lt(b), a.ge(b)]);
        c.output("resized", a.resize::<16>());
    })
    .unwrap();
    for (a, b) in [(-128i8, -1i8), (-128, 127), (100, 100), (-7, 2), (7, -2), (0, 5), (-1, -1), (90, -77)] {
        let values = [
            a.wrapping_add(b),
            a.wrapping_sub(b),
            a.wrapping_mul(b),
            a.wrapping_div(b),
            a.wrapping_rem(b),
            a.wrapping_neg(),
            !a,
            a >> 2,
            a << 2,
            a.wrapping_sub(3),
            a / -3,
            a.min(b),
            a.max(b),
        ];
        let packed = values.iter().rev().fold(0u128, |n, v| n << 8 | u128::from(*v as u8));
        let product = (i32::from(a) * i32::from(b)) as u128 & 0xf_ffff;
        let resized = u128::from(i16::from(a) as u16);
        let want = [packed, a.unsigned_abs().into(), product, to_number(&[a < b, a >= b]), resized];
        assert_eq!(evaluate(&netlist, &[a as u8 as u128, b as u8 as u128]), want, "{a} and {b}");
    }
}

#[test]
fn fixed_point() {
    type Price<'c> = Fixed<'c, 32, 16>;
    let netlist = circuit(|c| {
        let (a, b): (Price, Price) = (c.input("a"), c.input("b"));
        let tax = c.fixed::<32, 16>(0.25);
        c.output("values", [a + b, a - b, a * b, a / b, -a, a * tax, a.abs(), a.max(b)]);
        c.output("floor", a.floor::<16>());
        c.output("back", a.floor::<16>().to_fixed::<32, 16>());
    })
    .unwrap();
    let raw = |x: f64| (x * 65536.0) as i32;
    for (a, b) in [(2.5, -1.25), (-3.75, 0.5), (100.0, 3.0), (-0.5, -0.25)] {
        let out = netlist.evaluate(&[to_bits(raw(a) as u32 as u128, 32), to_bits(raw(b) as u32 as u128, 32)]);
        let out = out.unwrap();
        let got: Vec<i32> = out[0].chunks(32).map(|bits| to_number(bits) as u32 as i32).collect();
        let want = [a + b, a - b, a * b, a / b, -a, a * 0.25, a.abs(), a.max(b)].map(raw);
        assert_eq!(got, want, "{a} and {b}");
        assert_eq!(to_number(&out[1]) as u16 as i16, a.floor() as i16);
        assert_eq!(to_number(&out[2]) as u32 as i32, raw(a.floor()));
    }
}

#[test]
fn choices_arrays_and_places() {
    let netlist = circuit(|c| {
        let values: [Uint<5>; 6] = c.input("values");
        let place: Uint<3> = c.input("place");
        let flags: [Bool; 2] = c.input("flags");
        c.output("at", c.index(&values, place));
        c.output("sorted", sort(values));
        c.output("chosen", flags[0].select(values, sort(values)));
        c.output("flags", [flags[0] & flags[1], flags[0] | flags[1], flags[0] ^ flags[1], !flags[0]]);
        c.output("count", flags[0].to_uint::<2>() + flags[1].to_uint());
        c.output("constants", (c.uint::<5>(9), c.bool(true)).0);
        c.output("equal", flags[0].eq(flags[1]));
    })
    .unwrap();
    let values = [7u128, 31, 0, 12, 12, 3];
    let pack = |list: &[u128]| list.iter().rev().fold(0u128, |n, v| n << 5 | v);
    let mut sorted = values;
    sorted.sort_unstable();
    for place in 0..8 {
        for flags in 0..4u128 {
            let (x, y) = (flags & 1, flags >> 1);
            let want = [
                values.get(place).copied().unwrap_or(0),
                pack(&sorted),
                pack(if x == 1 { &values } else { &sorted }),
                (x & y) | (x | y) << 1 | (x ^ y) << 2 | (1 - x) << 3,
                x + y,
                9,
                u128::from(x == y),
            ];
            assert_eq!(evaluate(&netlist, &[pack(&values), place as u128, flags]), want);
        }
    }
}

#[test]
fn what_is_refused() {
    let late = circuit(|c| {
        let a: Uint<8> = c.input("a");
        let sum = a + a;
        let b: Uint<8> = c.input("b");
        c.output("out", sum + b);
    });
    assert_eq!(late.unwrap_err(), TypedError::LateInput("b".into()));
    let wide = |result: Result<Netlist, TypedError>| matches!(result, Err(TypedError::Constant { .. }));
    assert!(wide(circuit(|c| c.output("out", c.uint::<8>(256)))));
    assert!(!wide(circuit(|c| c.output("out", c.uint::<8>(255)))));
    assert!(wide(circuit(|c| c.output("out", c.int::<8>(128)))));
    assert!(!wide(circuit(|c| c.output("out", c.int::<8>(-128)))));
    assert!(wide(circuit(|c| c.output("out", c.fixed::<8, 4>(8.0)))));
    assert!(wide(circuit(|c| c.output("out", c.fixed::<8, 4>(f64::NAN)))));
    assert!(!wide(circuit(|c| c.output("out", c.fixed::<8, 4>(-8.0)))));
    let minus = circuit(|c| c.output("out", c.int::<200>(-1))).unwrap();
    assert_eq!(minus.evaluate(&[]).unwrap(), [vec![true; 200]]);
}
