//! Every gadget against native integers, the ciphers against FIPS vectors, and how many ANDs each makes.

use blindcore_circuit::builder::{Bit, Builder};
use blindcore_circuit::gadgets::{PageRank, network, to_bits, to_number};
use blindcore_circuit::netlist::Netlist;
use blindcore_testing::Random;

/// Of this many bits; some are edge values.
fn number(random: &mut Random, width: usize) -> u128 {
    let all = low(u128::MAX, width);
    let wide = u128::from(random.next()) << 64 | u128::from(random.next());
    match random.next() % 16 {
        0 => 0,
        1 => all,
        2 => 1,
        3 => 1 << (width - 1),
        4 => all >> 1,
        // Of any length.
        5..=9 => (wide & all) >> (random.next() as usize % width),
        _ => wide & all,
    }
}

type Words = Vec<Vec<Bit>>;
type Build<'b> = &'b dyn Fn(&mut Builder, &[Bit], &[Bit]) -> Words;

fn circuit(widths: &[usize], build: impl FnOnce(&mut Builder, &[Vec<Bit>]) -> Words) -> Netlist {
    let mut c = Builder::new();
    let inputs: Words = widths.iter().enumerate().map(|(i, w)| c.input(format!("in{i}"), *w)).collect();
    let outputs = build(&mut c, &inputs);
    outputs.iter().enumerate().for_each(|(i, o)| c.output(format!("out{i}"), o));
    c.finish().unwrap()
}

fn evaluate(netlist: &Netlist, values: &[u128]) -> Vec<u128> {
    let inputs: Vec<Vec<bool>> =
        values.iter().zip(netlist.inputs()).map(|(v, p)| to_bits(*v, p.wires.len())).collect();
    netlist.evaluate(&inputs).unwrap().iter().map(|bits| to_number(bits)).collect()
}

/// `a` and `b` of n bits: all pairs up to 5 bits, else random and edge values.
fn check_pairs(
    name: &str,
    widths: &[usize],
    build: impl Fn(&mut Builder, &[Bit], &[Bit]) -> Words,
    want: impl Fn(u128, u128, usize) -> Vec<u128>,
) {
    for &n in widths {
        let netlist = circuit(&[n, n], |c, w| build(c, &w[0], &w[1]));
        let mut random = Random(n as u64);
        let pairs: Vec<(u128, u128)> = if n <= 5 {
            (0..1 << n).flat_map(|a| (0..1 << n).map(move |b| (a, b))).collect()
        } else {
            (0..300).map(|_| (number(&mut random, n), number(&mut random, n))).collect()
        };
        for (a, b) in pairs {
            assert_eq!(evaluate(&netlist, &[a, b]), want(a, b, n), "{name} of {a} and {b}, {n} bits");
        }
    }
}

const WIDTHS: &[usize] = &[1, 2, 3, 4, 5, 8, 13, 16, 31, 32, 64];

fn low(value: u128, n: usize) -> u128 {
    if n >= 128 { value } else { value & ((1 << n) - 1) }
}

fn signed(value: u128, n: usize) -> i128 {
    (value << (128 - n)) as i128 >> (128 - n)
}

#[test]
fn sums_and_differences() {
    check_pairs("add", WIDTHS, |c, a, b| vec![c.add(a, b)], |a, b, n| vec![low(a + b, n)]);
    check_pairs("add_wide", WIDTHS, |c, a, b| vec![c.add_wide(a, b)], |a, b, _| vec![a + b]);
    check_pairs(
        "add_with_carry",
        WIDTHS,
        |c, a, b| {
            let (sum, carry) = c.add_with_carry(a, b, Bit::ONE);
            vec![sum, vec![carry]]
        },
        |a, b, n| vec![low(a + b + 1, n), (a + b + 1) >> n],
    );
    check_pairs(
        "subtract",
        WIDTHS,
        |c, a, b| {
            let (difference, borrow) = c.subtract_with_borrow(a, b);
            vec![c.subtract(a, b), difference, vec![borrow], c.absolute_difference(a, b)]
        },
        |a, b, n| {
            let difference = low(a.wrapping_sub(b), n);
            vec![difference, difference, u128::from(a < b), a.abs_diff(b)]
        },
    );
    check_pairs(
        "of one",
        WIDTHS,
        |c, a, b| vec![c.increment(a), c.negate(a), c.negate_if(b[0], a), c.absolute(a)],
        |a, b, n| {
            let minus = a.wrapping_neg();
            let either = if b & 1 == 1 { minus } else { a };
            vec![low(a + 1, n), low(minus, n), low(either, n), signed(a, n).unsigned_abs()]
        },
    );
    check_pairs(
        "sum",
        WIDTHS,
        |c, a, b| {
            let words = [a.to_vec(), b.to_vec(), a.to_vec(), vec![Bit::ONE; 3], b[..1].to_vec()];
            vec![c.sum(&words, a.len() + 3)]
        },
        |a, b, n| vec![low(2 * a + b + 7 + (b & 1), n + 3)],
    );
}

#[test]
fn products() {
    let wide: &[usize] = &[1, 2, 3, 4, 5, 8, 13, 16, 17, 18, 19, 20, 25, 32, 33, 37, 40, 51, 63, 64];
    check_pairs("multiply", wide, |c, a, b| vec![c.multiply(a, b)], |a, b, _| vec![a * b]);
    check_pairs("multiply_low", wide, |c, a, b| vec![c.multiply_low(a, b)], |a, b, n| vec![low(a * b, n)]);
    check_pairs("square", wide, |c, a, _| vec![c.square(a)], |a, _, _| vec![a * a]);
    check_pairs(
        "multiply_signed",
        WIDTHS,
        |c, a, b| vec![c.multiply_signed(a, b)],
        |a, b, n| vec![low((signed(a, n) * signed(b, n)) as u128, 2 * n)],
    );
    let mut random = Random(3);
    for (n, m) in [(1, 7), (9, 4), (20, 60), (64, 20), (64, 45), (70, 31), (23, 22), (100, 28)] {
        let netlist = circuit(&[n, m], |c, w| vec![c.multiply(&w[0], &w[1])]);
        for _ in 0..100 {
            let (a, b) = (number(&mut random, n), number(&mut random, m));
            assert_eq!(evaluate(&netlist, &[a, b]), [a * b], "{a} times {b}");
        }
    }
    for factor in [0, 1, 2, 3, 7, 10, 100, 255, 641, 55_706, u128::from(u64::MAX), u128::MAX, 1 << 127] {
        let netlist = circuit(&[16], |c, w| vec![c.multiply_constant(&w[0], factor, 40)]);
        for a in [0u128, 1, 2, 0x8000, 0xffff, 12_345] {
            assert_eq!(evaluate(&netlist, &[a]), [low(factor.wrapping_mul(a), 40)], "{a} times {factor}");
        }
    }
}

#[test]
fn quotients() {
    check_pairs(
        "divide",
        WIDTHS,
        |c, a, b| {
            let (quotient, remainder) = c.divide(a, b);
            vec![quotient, remainder]
        },
        |a, b, n| vec![a.checked_div(b).unwrap_or(low(u128::MAX, n)), a.checked_rem(b).unwrap_or(a)],
    );
    check_pairs(
        "divide_signed",
        WIDTHS,
        |c, a, b| {
            let (quotient, remainder) = c.divide_signed(a, b);
            vec![quotient, remainder]
        },
        |a, b, n| {
            let (x, y) = (signed(a, n), signed(b, n));
            if y == 0 {
                vec![low(u128::MAX, n), a]
            } else {
                vec![low((x / y) as u128, n), low((x % y) as u128, n)]
            }
        },
    );
    let mut random = Random(4);
    for (n, m) in [(1, 3), (3, 1), (5, 2), (2, 5), (8, 3), (20, 7), (7, 20), (64, 17), (96, 64)] {
        let netlist = circuit(&[n, m], |c, w| {
            let (quotient, remainder) = c.divide(&w[0], &w[1]);
            vec![quotient, remainder]
        });
        for _ in 0..200 {
            let (a, b) = (number(&mut random, n), number(&mut random, m));
            let want = [a.checked_div(b).unwrap_or(low(u128::MAX, n)), a.checked_rem(b).unwrap_or(low(a, m))];
            assert_eq!(evaluate(&netlist, &[a, b]), want, "{a} by {b}, {n} and {m} bits");
        }
    }
}

#[test]
fn fixed_point() {
    for (n, fraction) in [(4, 2), (5, 0), (16, 8), (32, 16), (40, 39)] {
        let netlist = circuit(&[n, n], |c, w| {
            vec![c.fixed_multiply(&w[0], &w[1], fraction), c.fixed_divide(&w[0], &w[1], fraction)]
        });
        let mut random = Random(n as u64);
        for _ in 0..600 {
            let (a, b) = (number(&mut random, n), number(&mut random, n));
            let (x, y) = (signed(a, n), signed(b, n));
            let half = if fraction > 0 { 1 << (fraction - 1) } else { 0 };
            let product = (x * y + half) >> fraction;
            let quotient = match y {
                0 if x < 0 => 1,
                0 => -1,
                _ => (x << fraction) / y,
            };
            let want = [low(product as u128, n), low(quotient as u128, n)];
            assert_eq!(
                evaluate(&netlist, &[a, b]),
                want,
                "{x} and {y}, {n} bits, {fraction} after the point"
            );
        }
    }
}

#[test]
fn comparisons_and_selection() {
    check_pairs(
        "comparisons",
        WIDTHS,
        |c, a, b| {
            let bits = [
                c.less(a, b),
                c.less_or_equal(a, b),
                c.less_signed(a, b),
                c.less_or_equal_signed(a, b),
                c.equal(a, b),
                c.parity(a),
                c.all(a),
                c.any(a),
            ];
            vec![bits.to_vec()]
        },
        |a, b, n| {
            let (x, y) = (signed(a, n), signed(b, n));
            let all = a == low(u128::MAX, n);
            let bits = [a < b, a <= b, x < y, x <= y, a == b, a.count_ones() % 2 == 1, all, a != 0];
            vec![to_number(&bits)]
        },
    );
    check_pairs(
        "selection",
        WIDTHS,
        |c, a, b| {
            let (lesser, greater) = c.compare_exchange(a, b);
            vec![
                c.min(a, b),
                c.max(a, b),
                c.min_signed(a, b),
                c.max_signed(a, b),
                lesser,
                greater,
                c.mux_word(a[0], a, b),
                c.and_word(a, b),
                c.or_word(a, b),
            ]
        },
        |a, b, n| {
            let (x, y) = (signed(a, n), signed(b, n));
            let (least, greatest) = (low(x.min(y) as u128, n), low(x.max(y) as u128, n));
            let chosen = if a & 1 == 1 { a } else { b };
            vec![a.min(b), a.max(b), least, greatest, a.min(b), a.max(b), chosen, a & b, a | b]
        },
    );
}

#[test]
fn index_and_one_hot() {
    let mut random = Random(5);
    for (len, bits) in [(1, 1), (2, 1), (3, 2), (5, 3), (6, 4), (8, 3), (13, 5)] {
        let values: Vec<u128> = (0..len).map(|_| number(&mut random, 9)).collect();
        let mut widths = vec![9; len];
        widths.push(bits);
        let netlist = circuit(&widths, |c, w| {
            let one_hot = c.one_hot(&w[len]);
            vec![c.index(&w[..len], &w[len]), one_hot]
        });
        for i in 0..1usize << bits {
            let mut inputs = values.clone();
            inputs.push(i as u128);
            let want = values.get(i).copied().unwrap_or(0);
            assert_eq!(evaluate(&netlist, &inputs), [want, 1 << i], "place {i} of {len}");
        }
    }
}

#[test]
fn shifts_and_rotations() {
    let mut random = Random(6);
    for (n, by_bits) in [(1, 1), (2, 3), (5, 3), (8, 3), (8, 5), (13, 4), (32, 6), (64, 6)] {
        let netlist = circuit(&[n, by_bits], |c, w| {
            let sign = w[0][n - 1];
            vec![
                c.shift_left_by(&w[0], &w[1]),
                c.shift_right_by(&w[0], &w[1], Bit::ZERO),
                c.shift_right_by(&w[0], &w[1], sign),
                c.rotate_left_by(&w[0], &w[1]),
            ]
        });
        for by in 0..1u32 << by_bits {
            let a = number(&mut random, n);
            let turn = by as usize % n;
            let want = [
                low(a << by, n),
                a >> by,
                low((signed(a, n) >> by) as u128, n),
                low(a << turn | a >> (n - turn), n),
            ];
            assert_eq!(evaluate(&netlist, &[a, by.into()]), want, "{a} of {n} bits by {by}");
        }
    }
}

#[test]
fn counts() {
    check_pairs(
        "counts",
        WIDTHS,
        |c, a, b| vec![c.popcount(a), c.hamming_distance(a, b), c.leading_zeros(a), c.trailing_zeros(a)],
        |a, b, n| {
            vec![
                a.count_ones().into(),
                (a ^ b).count_ones().into(),
                u128::from(a.leading_zeros()) + n as u128 - 128,
                u128::from(a.trailing_zeros()).min(n as u128),
            ]
        },
    );
}

/// A network that sorts all zeros and ones sorts everything (Knuth, volume 3, theorem Z of section 5.3.4).
#[test]
fn sorting_networks() {
    let known = [0, 0, 1, 3, 5, 9, 12, 16, 19, 25, 29, 35, 39, 46, 51, 56, 60];
    for n in 0..=18usize {
        let pairs = network(n);
        if let Some(size) = known.get(n) {
            assert_eq!(pairs.len(), *size, "compare-exchanges of {n}");
        }
        for start in 0..1u32 << n {
            let mut bits = start;
            for &(i, j) in &pairs {
                // The lesser goes to place i.
                let swap = bits >> i & !bits >> j & 1;
                bits ^= swap << i | swap << j;
            }
            let ones = start.count_ones() as usize;
            assert_eq!(bits, ((1 << ones) - 1) << (n - ones), "{n} values: {start:b}");
        }
    }
}

#[test]
fn sorted_words() {
    let mut random = Random(7);
    for n in [1, 2, 7, 10, 16, 33] {
        let netlist = circuit(&vec![6; n], |c, w| c.sort(w));
        let by_low = circuit(&vec![6; n], |c, w| c.sort_by(w, 0..3));
        for _ in 0..20 {
            let values: Vec<u128> = (0..n).map(|_| number(&mut random, 6)).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            assert_eq!(evaluate(&netlist, &values), sorted);
            let mut got = evaluate(&by_low, &values);
            assert!(got.is_sorted_by_key(|v| v & 7));
            got.sort_unstable();
            assert_eq!(got, sorted, "the same values");
        }
    }
}

#[test]
fn intersections() {
    let mut random = Random(8);
    for (n, m) in [(1, 1), (4, 4), (3, 8), (8, 8), (16, 5)] {
        let netlist = circuit(&vec![7; n + m], |c, w| vec![c.intersection_size(&w[..n], &w[n..])]);
        for _ in 0..40 {
            let mut list = |len: usize| {
                let mut values = std::collections::BTreeSet::new();
                while values.len() < len {
                    values.insert(u128::from(random.next() % 24));
                }
                values
            };
            let (a, b) = (list(n), list(m));
            let inputs: Vec<u128> = a.iter().chain(&b).copied().collect();
            assert_eq!(evaluate(&netlist, &inputs), [a.intersection(&b).count() as u128], "{a:?} and {b:?}");
        }
    }
}

#[test]
fn matrices() {
    let mut random = Random(9);
    // Where fewer products win and where they don't, of odd and even k.
    for (n, k, m, w, width) in [
        (2, 3, 4, 4, 8),
        (2, 4, 3, 8, 8),
        (5, 5, 5, 8, 16),
        (6, 6, 6, 8, 16),
        (6, 7, 6, 8, 16),
        (4, 4, 4, 16, 40),
        (1, 1, 1, 3, 2),
    ] {
        let netlist = circuit(&vec![w; n * k + k * m], |c, words| {
            let (a, b) = words.split_at(n * k);
            c.multiply_matrices(a, b, k, width)
        });
        for _ in 0..10 {
            let values: Vec<u128> = (0..n * k + k * m).map(|_| number(&mut random, w)).collect();
            let (a, b) = values.split_at(n * k);
            let product: Vec<u128> = (0..n * m)
                .map(|e| low((0..k).map(|t| a[e / m * k + t] * b[t * m + e % m]).sum(), width))
                .collect();
            assert_eq!(evaluate(&netlist, &values), product, "{n} x {k} by {k} x {m} of {w} bits");
        }
    }
}

fn hex(text: &str) -> Vec<bool> {
    text.chars().rev().flat_map(|digit| to_bits(digit.to_digit(16).unwrap().into(), 4)).collect()
}

/// The S-box of every byte against its definition (FIPS 197, section 5.1.1): the inverse, by Fermat, and an affine map.
#[test]
fn aes_sbox() {
    let multiply = |mut a: u32, b: u32| {
        let mut product = 0;
        for bit in 0..8 {
            product ^= if b >> bit & 1 == 1 { a } else { 0 };
            a = a << 1 ^ if a & 0x80 == 0 { 0 } else { 0x11b };
        }
        product
    };
    let netlist = circuit(&[8], |c, w| vec![c.aes_sbox(&std::array::from_fn(|i| w[0][i])).to_vec()]);
    assert_eq!(netlist.ands(), 32);
    for byte in 0..256u32 {
        let inverse = (0..254).fold(1, |power, _| multiply(power, byte)) as u8;
        let affine = (1..5).fold(inverse, |sum, by| sum ^ inverse.rotate_left(by)) ^ 0x63;
        assert_eq!(evaluate(&netlist, &[byte.into()]), [u128::from(affine)], "{byte:02x}");
    }
}

#[test]
fn aes_vectors() {
    let netlist = circuit(&[128, 128], |c, w| vec![c.aes128(&w[0], &w[1])]);
    assert_eq!(netlist.ands(), 6400);
    // FIPS 197, appendices B and C.1, and SP 800-38A, F.1.1.
    for (key, block, want) in [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "3243f6a8885a308d313198a2e0370734",
            "3925841d02dc09fbdc118597196a0b32",
        ),
        (
            "000102030405060708090a0b0c0d0e0f",
            "00112233445566778899aabbccddeeff",
            "69c4e0d86a7b0430d8cdb78070b4c55a",
        ),
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "6bc1bee22e409f96e93d7e117393172a",
            "3ad77bb40d7a3660a89ecaf32466ef97",
        ),
    ] {
        assert_eq!(netlist.evaluate(&[hex(key), hex(block)]).unwrap(), [hex(want)]);
    }
}

#[test]
fn sha256_vectors() {
    // FIPS 180-4's examples: 24 bits, 448 bits (two blocks), and the empty message.
    let long = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    for (message, want) in [
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (long, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ] {
        let netlist = circuit(&[8 * message.len()], |c, w| vec![c.sha256(&w[0])]);
        let text: String = message.bytes().map(|b| format!("{b:02x}")).collect();
        assert_eq!(netlist.evaluate(&[hex(&text)]).unwrap(), [hex(want)], "{message:?}");
    }
    let compression = circuit(&[256, 512], |c, w| vec![c.sha256_compress(&w[0], &w[1])]);
    assert_eq!(compression.ands(), 22_271);
}

#[test]
fn pagerank_as_its_reference() {
    let mut random = Random(10);
    for (nodes, edges, fraction) in [(2, 2, 16), (3, 6, 8), (4, 12, 16), (5, 7, 32), (9, 10, 20)] {
        let of = PageRank { nodes, iterations: 6, fraction };
        let netlist = circuit(&vec![of.node_bits(); 2 * edges], |c, w| {
            let edges: Vec<_> = w.chunks(2).map(|e| (e[0].clone(), e[1].clone())).collect();
            c.pagerank(&of, &edges)
        });
        for round in 0..12 {
            // Numbers of no node too, loops, repeats; in the first round no edge counts.
            let mut node = || if round == 0 { 0 } else { (random.next() % (1 << of.node_bits())) as usize };
            let list: Vec<(usize, usize)> = (0..edges).map(|_| (node(), node())).collect();
            let inputs: Vec<u128> = list.iter().flat_map(|(s, t)| [*s as u128, *t as u128]).collect();
            let want: Vec<u128> = of.reference(&list).into_iter().map(u128::from).collect();
            assert_eq!(evaluate(&netlist, &inputs), want, "{nodes} nodes, {list:?}");
            let lost = (1u128 << fraction) - want.iter().sum::<u128>();
            assert!(lost < (1 << fraction) / 8, "ranks add up to 1 but for rounding: {want:?}");
        }
    }
}

/// AND gates as documented, and never more than the schoolbook's.
#[test]
fn and_gates() {
    let ands = |n: usize, build: Build| circuit(&[n, n], |c, w| build(c, &w[0], &w[1])).ands();
    for n in 2..=64usize {
        assert_eq!(ands(n, &|c, a, b| vec![c.add(a, b)]), n - 1);
        assert_eq!(ands(n, &|c, a, b| vec![c.add_wide(a, b)]), n);
        assert_eq!(ands(n, &|c, a, b| vec![c.subtract(a, b)]), n - 1);
        assert_eq!(ands(n, &|c, a, _| vec![c.increment(a)]), n - 2);
        assert_eq!(ands(n, &|c, a, _| vec![c.negate(a)]), n - 2);
        assert_eq!(ands(n, &|c, a, b| vec![vec![c.less(a, b)]]), n);
        assert_eq!(ands(n, &|c, a, b| vec![vec![c.equal(a, b)]]), n - 1);
        assert_eq!(ands(n, &|c, a, _| vec![c.leading_zeros(a)]), n - 1);
        assert_eq!(ands(n, &|c, a, _| vec![c.popcount(a)]), n - n.count_ones() as usize);
        let exchange = ands(n, &|c, a, b| {
            let (lesser, greater) = c.compare_exchange(a, b);
            vec![lesser, greater]
        });
        assert_eq!(exchange, 2 * n);
        let divide = ands(n, &|c, a, b| {
            let (quotient, remainder) = c.divide(a, b);
            vec![quotient, remainder]
        });
        assert!(divide <= n * n / 2 + 5 * n, "divide {n}: {divide}");
        assert!(n != 64 || divide == 2332, "divide 64: {divide}");
        let multiply = ands(n, &|c, a, b| vec![c.multiply(a, b)]);
        assert!(multiply <= 2 * n * n - n, "multiply {n}: {multiply}");
        let low = ands(n, &|c, a, b| vec![c.multiply_low(a, b)]);
        assert!(low <= n * n, "multiply_low {n}: {low}");
        let square = ands(n, &|c, a, _| vec![c.square(a)]);
        assert!(square <= n * n, "square {n}: {square}");
    }
    let multiply = |n| ands(n, &|c, a, b| vec![c.multiply(a, b)]);
    assert_eq!([8, 16, 32, 64].map(multiply), [120, 467, 1622, 5273]);
    assert_eq!(ands(32, &|c, a, b| vec![c.fixed_multiply(a, b, 16)]), 1759);
}
