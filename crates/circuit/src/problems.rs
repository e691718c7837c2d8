//! Circuits by name: every problem that SIFO garbles, and some more.
//!
//! [`PROBLEMS`] lists names that mean something by themselves, the paper's with its figures; [`FAMILIES`] says
//! which numbers a name can carry.
//!
//! Inputs and outputs are numbers. A list or a matrix (row by row) is one number too: its first element in the lowest
//! bits. Every problem has one input for each party, `a` and `b`, unless it says otherwise.
//!
//! ```
//! use blindcore_circuit::{gadgets::{to_bits, to_number}, problems};
//!
//! let netlist = problems::make("mult8")?;
//! assert_eq!(netlist.ands(), 120);
//! let product = netlist.evaluate(&[to_bits(200, 8), to_bits(123, 8)])?;
//! assert_eq!(to_number(&product[0]), 24_600);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod published;

use crate::builder::{Bit, Builder};
use crate::gadgets::PageRank;
use crate::netlist::{Form, Netlist, NetlistError};
use crate::ports::MAX_INPUTS;

/// What SIFO publishes about a problem as FlexSC generates it: tables 1, 3, 4 and 11.
///
/// Some figures contradict others: [`published`] has the netlists behind them and says which. Matrix rows have input and
/// output wires in each other's place; the row of 10 x 10 matrices of 4 bits is the tail of a netlist of 31,600 ANDs; in
/// the row of 30-bit distances A is B, and B is neither; sorting is of ten numbers of each party.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Layers of gates (table 1).
    pub layers: u64,
    /// Bits that go in.
    pub input_wires: u64,
    /// Bits that come out.
    pub output_wires: u64,
    /// AND gates.
    pub ands: u64,
    /// XOR gates.
    pub xors: u64,
    /// Gates of both kinds.
    pub gates: u64,
    /// How often an FPGA that holds ten ANDs is reprogrammed.
    pub reprogrammings: u64,
    /// Wires (table 3).
    pub wires: u64,
    /// Wires that one gate reads: A.
    pub a: u64,
    /// Gates with such a wire from the layer before: B.
    pub b: u64,
    /// Gates with such a wire from another layer: C.
    pub c: u64,
    /// The most such wires in a layer: D.
    pub max_wires: u64,
    /// Wires a layer.
    pub wires_per_layer: f64,
    /// Wires that one gate reads, in percent of all (table 4).
    pub percent_a: f64,
    /// Those that the next layer reads, in percent of them.
    pub percent_b: f64,
    /// The same in percent of all wires.
    pub percent_c: f64,
    /// Time on the FPGA in microseconds (table 11).
    pub fpga_us: u64,
    /// Time of FlexSC in milliseconds.
    pub flexsc_ms: f64,
}

/// A circuit with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// What [`make`] takes.
    pub name: &'static str,
    /// What it computes, in a line.
    pub about: &'static str,
    /// AND gates as today's FlexSC generates it.
    pub flexsc_ands: Option<u64>,
    /// The paper's figures.
    pub published: Option<Published>,
}

/// Names that carry numbers.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// A name with letters for its numbers.
    pub form: &'static str,
    /// What it computes, in a line.
    pub about: &'static str,
    /// Letters and the least and greatest numbers that stand for them.
    pub limits: &'static [(&'static str, usize, usize)],
    build: fn(&mut Builder, &[usize]),
    /// About how many ANDs that makes.
    ands: fn(&[usize]) -> u128,
}

/// The most ANDs that a problem made by name may need.
pub const MAX_ANDS: u128 = 1 << 24;

/// Why there is no circuit of a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// A name of no problem and no family.
    #[error("there is no problem {0:?}; try {forms}", forms = FAMILIES.map(|f| f.form).join(", "))]
    Unknown(String),
    /// A number out of its range.
    #[error("{name}: {letter} = {got} is out of range; {form} takes {letter} from {least} to {most}")]
    Limit {
        /// The name.
        name: String,
        /// Its family's form.
        form: &'static str,
        /// Which number.
        letter: &'static str,
        /// What it is.
        got: String,
        /// The least that it may be.
        least: usize,
        /// The most.
        most: usize,
    },
    /// Numbers that are too large together.
    #[error("{name} needs some {ands} AND gates, over the {MAX_ANDS} of a problem made by name; take less")]
    TooLarge {
        /// The name.
        name: String,
        /// About how many ANDs it would have.
        ands: u128,
    },
    /// A netlist that is too large.
    #[error(transparent)]
    Netlist(#[from] NetlistError),
}

/// Every problem of the paper, then ours.
#[rustfmt::skip]
pub const PROBLEMS: [Problem; 26] = [
    Problem {
        name: "adder6",
        about: "the sum of two 6-bit numbers modulo 2^6",
        flexsc_ands: Some(6),
        published: Some(Published {
            layers: 17, input_wires: 12, output_wires: 6, ands: 6, xors: 24, gates: 30, reprogrammings: 1,
            wires: 42, a: 12, b: 12, c: 0, max_wires: 1, wires_per_layer: 2.5,
            percent_a: 28.57, percent_b: 100.0, percent_c: 28.6, fpga_us: 45, flexsc_ms: 2.06,
        }),
    },
    Problem {
        name: "hamming10",
        about: "in how many of 10 bits two values differ",
        flexsc_ands: Some(17),
        published: Some(Published {
            layers: 22, input_wires: 20, output_wires: 10, ands: 20, xors: 90, gates: 110, reprogrammings: 1,
            wires: 140, a: 55, b: 50, c: 5, max_wires: 7, wires_per_layer: 6.4,
            percent_a: 39.29, percent_b: 90.9, percent_c: 35.7, fpga_us: 80, flexsc_ms: 2.53,
        }),
    },
    Problem {
        name: "hamming30",
        about: "in how many of 30 bits two values differ",
        flexsc_ands: Some(57),
        published: Some(Published {
            layers: 27, input_wires: 60, output_wires: 30, ands: 60, xors: 270, gates: 330, reprogrammings: 6,
            wires: 420, a: 163, b: 147, c: 11, max_wires: 22, wires_per_layer: 15.6,
            percent_a: 35.00, percent_b: 90.2, percent_c: 38.8, fpga_us: 171, flexsc_ms: 4.08,
        }),
    },
    Problem {
        name: "hamming50",
        about: "in how many of 50 bits two values differ",
        flexsc_ands: Some(97),
        published: Some(Published {
            layers: 32, input_wires: 100, output_wires: 50, ands: 100, xors: 450, gates: 550, reprogrammings: 10,
            wires: 700, a: 293, b: 269, c: 24, max_wires: 37, wires_per_layer: 21.9,
            percent_a: 41.86, percent_b: 91.8, percent_c: 38.4, fpga_us: 259, flexsc_ms: 6.46,
        }),
    },
    Problem {
        name: "mult8",
        about: "the product of two 8-bit numbers, 16 bits",
        flexsc_ands: Some(120),
        published: Some(Published {
            layers: 57, input_wires: 16, output_wires: 16, ands: 120, xors: 352, gates: 472, reprogrammings: 12,
            wires: 495, a: 296, b: 247, c: 49, max_wires: 64, wires_per_layer: 8.7,
            percent_a: 59.80, percent_b: 83.4, percent_c: 49.9, fpga_us: 293, flexsc_ms: 9.22,
        }),
    },
    Problem {
        name: "mult16",
        about: "the product of two 16-bit numbers, 32 bits",
        flexsc_ands: Some(496),
        published: Some(Published {
            layers: 121, input_wires: 32, output_wires: 32, ands: 496, xors: 1_472, gates: 1_968, reprogrammings: 50,
            wires: 2_015, a: 1_232, b: 1_007, c: 225, max_wires: 256, wires_per_layer: 16.7,
            percent_a: 61.14, percent_b: 81.7, percent_c: 50.0, fpga_us: 949, flexsc_ms: 14.54,
        }),
    },
    Problem {
        name: "mult32",
        about: "the product of two 32-bit numbers, 64 bits",
        flexsc_ands: Some(2_016),
        published: Some(Published {
            layers: 249, input_wires: 64, output_wires: 64, ands: 2_016, xors: 6_016, gates: 8_032, reprogrammings: 201,
            wires: 8_127, a: 5_024, b: 4_063, c: 961, max_wires: 1_024, wires_per_layer: 32.6,
            percent_a: 61.82, percent_b: 80.9, percent_c: 50.0, fpga_us: 3_308, flexsc_ms: 33.76,
        }),
    },
    Problem {
        name: "mult64",
        about: "the product of two 64-bit numbers, 128 bits",
        flexsc_ands: Some(8_128),
        published: Some(Published {
            layers: 505, input_wires: 128, output_wires: 128, ands: 8_128, xors: 24_320, gates: 32_448, reprogrammings: 813,
            wires: 32_639, a: 20_288, b: 16_319, c: 3_969, max_wires: 4_096, wires_per_layer: 64.6,
            percent_a: 62.16, percent_b: 80.4, percent_c: 50.0, fpga_us: 12_252, flexsc_ms: 153.13,
        }),
    },
    Problem {
        name: "sort10x4",
        about: "ten 4-bit numbers, five of each party, in ascending order",
        flexsc_ands: Some(264),
        published: Some(Published {
            layers: 278, input_wires: 40, output_wires: 40, ands: 848, xors: 4_638, gates: 5_486, reprogrammings: 85,
            wires: 5_717, a: 2_968, b: 2_136, c: 832, max_wires: 40, wires_per_layer: 20.6,
            percent_a: 51.92, percent_b: 72.0, percent_c: 37.4, fpga_us: 2_339, flexsc_ms: 21.12,
        }),
    },
    Problem {
        name: "matmul5x5x4",
        about: "the product of two 5 x 5 matrices of 4-bit numbers, 8 bits an element",
        flexsc_ands: Some(3_900),
        published: Some(Published {
            layers: 25, input_wires: 100, output_wires: 200, ands: 3_900, xors: 11_600, gates: 15_500, reprogrammings: 390,
            wires: 16_175, a: 9_700, b: 8_350, c: 1_350, max_wires: 2_000, wires_per_layer: 647.0,
            percent_a: 59.97, percent_b: 86.1, percent_c: 51.6, fpga_us: 5_830, flexsc_ms: 60.66,
        }),
    },
    Problem {
        name: "matmul10x10x4",
        about: "the product of two 10 x 10 matrices of 4-bit numbers, 8 bits an element",
        flexsc_ands: Some(31_600),
        published: Some(Published {
            layers: 27, input_wires: 400, output_wires: 800, ands: 7_526, xors: 22_489, gates: 30_015, reprogrammings: 753,
            wires: 31_472, a: 18_768, b: 16_051, c: 2_717, max_wires: 3_809, wires_per_layer: 1_165.6,
            percent_a: 59.63, percent_b: 85.5, percent_c: 51.0, fpga_us: 11_286, flexsc_ms: 220.81,
        }),
    },
    Problem {
        name: "matmul5x5x8",
        about: "the product of two 5 x 5 matrices of 8-bit numbers, 16 bits an element",
        flexsc_ands: Some(15_800),
        published: Some(Published {
            layers: 57, input_wires: 200, output_wires: 400, ands: 15_800, xors: 47_200, gates: 63_000, reprogrammings: 1_580,
            wires: 64_375, a: 39_400, b: 32_850, c: 6_550, max_wires: 8_000, wires_per_layer: 1_129.4,
            percent_a: 61.20, percent_b: 83.4, percent_c: 51.0, fpga_us: 24_128, flexsc_ms: 203.86,
        }),
    },
    Problem {
        name: "matmul10x10x8",
        about: "the product of two 10 x 10 matrices of 8-bit numbers, 16 bits an element",
        flexsc_ands: Some(127_200),
        published: Some(Published {
            layers: 57, input_wires: 800, output_wires: 1_600, ands: 127_200, xors: 380_800, gates: 508_000, reprogrammings: 12_720,
            wires: 517_500, a: 317_600, b: 263_400, c: 54_200, max_wires: 64_000, wires_per_layer: 9_078.9,
            percent_a: 61.37, percent_b: 82.9, percent_c: 50.9, fpga_us: 170_895, flexsc_ms: 1_060.63,
        }),
    },
    Problem {
        name: "matmul20x20x4",
        about: "the product of two 20 x 20 matrices of 4-bit numbers, 8 bits an element",
        flexsc_ands: Some(254_400),
        published: Some(Published {
            layers: 37, input_wires: 1_600, output_wires: 3_200, ands: 254_400, xors: 761_600, gates: 1_016_000, reprogrammings: 25_440,
            wires: 1_050_800, a: 635_200, b: 541_600, c: 93_600, max_wires: 128_000, wires_per_layer: 28_400.0,
            percent_a: 60.45, percent_b: 85.3, percent_c: 51.5, fpga_us: 340_698, flexsc_ms: 2_170.88,
        }),
    },
    more("pagerank2", "ranks of a graph of 2 nodes, 2 private edges of each party, 10 iterations, 16 bits"),
    more("pagerank3", "ranks of a graph of 3 nodes, 6 private edges of each party, 10 iterations, 16 bits"),
    more("pagerank4", "ranks of a graph of 4 nodes, 12 private edges of each party, 10 iterations, 16 bits"),
    more("add64", "the sum of two 64-bit numbers modulo 2^64"),
    more("sub64", "the difference of two 64-bit numbers modulo 2^64"),
    more("divide64", "quotient and remainder of two 64-bit numbers"),
    more("matmul10x10x32", "the product of two 10 x 10 matrices of 32-bit numbers modulo 2^32"),
    more("aes128", "AES-128 of one party's block under the other's key"),
    more("sha256", "SHA-256's compression: the state after a block"),
    more("millionaires32", "whether a's 32-bit number is the greater"),
    more("auction4x32", "a second-price auction: the highest of four 32-bit bids, and the price"),
    more("intersection64x32", "how many of 64 32-bit values two parties have in common"),
];

const fn more(name: &'static str, about: &'static str) -> Problem {
    Problem { name, about, flexsc_ands: None, published: None }
}

const BITS: (&str, usize, usize) = ("N", 1, 4096);

/// What names with numbers mean.
pub const FAMILIES: [Family; 14] = [
    Family {
        form: "adder<N>",
        about: "the same as add<N>",
        limits: &[BITS],
        build: |c, n| of_two(c, Form::default(), n[0], |c, a, b| vec![("sum", c.add(a, b))]),
        ands: |n| n[0] as u128,
    },
    Family {
        form: "add<N>",
        about: "the sum of two N-bit numbers modulo 2^N",
        limits: &[BITS],
        build: |c, n| of_two(c, Form::default(), n[0], |c, a, b| vec![("sum", c.add(a, b))]),
        ands: |n| n[0] as u128,
    },
    Family {
        form: "sub<N>",
        about: "a - b modulo 2^N",
        limits: &[BITS],
        build: |c, n| of_two(c, Form::default(), n[0], |c, a, b| vec![("difference", c.subtract(a, b))]),
        ands: |n| n[0] as u128,
    },
    Family {
        form: "hamming<N>",
        about: "in how many of N bits two values differ, in as few bits as hold N (FlexSC puts out N)",
        limits: &[("N", 1, 1 << 20)],
        build: |c, n| {
            of_two(c, Form::default(), n[0], |c, a, b| vec![("distance", c.hamming_distance(a, b))])
        },
        ands: |n| n[0] as u128,
    },
    Family {
        form: "mult<N>",
        about: "the product of two N-bit numbers, 2 N bits",
        limits: &[("N", 1, 2048)],
        build: |c, n| of_two(c, Form::UNSIGNED, n[0], |c, a, b| vec![("product", c.multiply(a, b))]),
        ands: |n| 2 * square(n[0]),
    },
    Family {
        form: "divide<N>",
        about: "quotient and remainder of two N-bit numbers; by zero, ones and the dividend",
        limits: &[("N", 1, 2048)],
        build: |c, n| {
            of_two(c, Form::UNSIGNED, n[0], |c, a, b| {
                let (quotient, remainder) = c.divide(a, b);
                vec![("quotient", quotient), ("remainder", remainder)]
            });
        },
        ands: |n| square(n[0]),
    },
    Family {
        form: "millionaires<N>",
        about: "whether a's N-bit number is the greater",
        limits: &[BITS],
        build: |c, n| of_two(c, Form::UNSIGNED, n[0], |c, a, b| vec![("a_is_greater", vec![c.less(b, a)])]),
        ands: |n| n[0] as u128,
    },
    Family {
        form: "sort<N>x<W>",
        about: "N numbers of W bits, the first half (rounded up) a's, in ascending order",
        limits: &[("N", 2, 4096), ("W", 1, 256)],
        build: |c, n| {
            let [count, width] = [n[0], n[1]];
            let form = Form::list(width);
            let a = c.input_of(form, "a", count.div_ceil(2) * width);
            let b = c.input_of(form, "b", count / 2 * width);
            let sorted = c.sort(&words(&[a, b].concat(), width));
            c.output_of(form, "sorted", &sorted.concat());
        },
        ands: |n| sorting(n[0]) * 2 * n[1] as u128,
    },
    Family {
        form: "matmul<N>x<K>x<W>",
        about: "the product of an N x K and a K x N matrix of W-bit numbers: of 2 W bits an element where those are 32 or \
                fewer, as in the paper's column of output wires, else modulo 2^W",
        limits: &[("N", 1, 256), ("K", 1, 256), ("W", 1, 64)],
        build: |c, n| matrices(c, n[0], n[1], n[2], if n[2] <= 16 { 2 * n[2] } else { n[2] }),
        ands: |n| square(n[0]) * n[1] as u128 * 2 * square(n[2]),
    },
    Family {
        form: "matmul<N>x<K>x<W>to<V>",
        about: "the product of an N x K and a K x N matrix of W-bit numbers modulo 2^V (FlexSC's has V = W)",
        limits: &[("N", 1, 256), ("K", 1, 256), ("W", 1, 64), ("V", 1, 160)],
        build: |c, n| matrices(c, n[0], n[1], n[2], n[3]),
        ands: |n| square(n[0]) * n[1] as u128 * 2 * square(n[2]),
    },
    Family {
        form: "pagerank<N>",
        about: "ranks of N nodes after 10 iterations, 16 bits after the point: see gadgets::PageRank; each party has \
                N (N - 1) edges, each source and target, those that it doesn't need from a node to itself",
        limits: &[("N", 2, 32)],
        build: |c, n| {
            let of = PageRank { nodes: n[0], iterations: 10, fraction: 16 };
            let bits = of.node_bits();
            let inputs =
                ["a", "b"].map(|name| c.input_of(Form::list(bits), name, n[0] * (n[0] - 1) * 2 * bits));
            let edges: Vec<_> =
                inputs.concat().chunks(2 * bits).map(|e| (e[..bits].to_vec(), e[bits..].to_vec())).collect();
            let ranks = c.pagerank(&of, &edges);
            c.output_of(Form::list(of.rank_bits()), "ranks", &ranks.concat());
        },
        ands: |n| 4 * square(n[0]) * square(n[0]) + 10 * square(n[0]) * 40 + n[0] as u128 * 3000,
    },
    Family {
        form: "auction<N>x<W>",
        about: "a second-price auction of N bids of W bits, an input each (bid0 and so on): the highest bid's number, the \
                first of equal ones, and the second highest bid",
        limits: &[("N", 2, MAX_INPUTS), ("W", 1, 256)],
        build: |c, n| auction(c, n[0], n[1]),
        ands: |n| 4 * (n[0] * (n[1] + 12)) as u128,
    },
    Family {
        form: "intersection<N>x<W>",
        about: "how many values two lists of N values of W bits, both strictly ascending (sorted for you where they are \
                given as lists), have in common",
        limits: &[("N", 1, 16_384), ("W", 1, 256)],
        build: |c, n| {
            let [count, width] = [n[0], n[1]];
            let lists = ["a", "b"].map(|name| c.input_of(Form::set(width), name, count * width));
            let [a, b] = lists.map(|list| words(&list, width));
            let size = c.intersection_size(&a, &b);
            c.output("size", &size);
        },
        ands: |n| (n[0] * (usize::BITS - n[0].leading_zeros() + 2) as usize * (2 * n[1] + 1)) as u128,
    },
    Family {
        form: "sha256of<N>",
        about: "the SHA-256 digest of a message of N bytes, the XOR of what a and b have of it",
        limits: &[("N", 1, 16_384)],
        build: |c, n| {
            of_two(c, Form::default(), 8 * n[0], |c, a, b| {
                let message = c.xor_word(a, b);
                vec![("digest", c.sha256(&message))]
            });
        },
        ands: |n| (n[0] as u128 / 64 + 2) * 22_271,
    },
];

/// The circuit of this name.
///
/// # Errors
/// A name that is in neither list, a number out of its range, or more ANDs than anybody means.
pub fn make(name: &str) -> Result<Netlist, ProblemError> {
    let mut c = Builder::new();
    match name {
        "aes128" => {
            let (key, block) = (c.input("key", 128), c.input("block", 128));
            let encrypted = c.aes128(&key, &block);
            c.output("encrypted", &encrypted);
        }
        "sha256" => {
            let (state, block) = (c.input("state", 256), c.input("block", 512));
            let next = c.sha256_compress(&state, &block);
            c.output("state", &next);
        }
        _ => {
            let (family, numbers) = FAMILIES
                .iter()
                .find_map(|family| Some((family, numbers(family.form, name)?)))
                .ok_or_else(|| ProblemError::Unknown(name.chars().take(64).collect()))?;
            let mut parameters = Vec::new();
            for (digits, &(letter, least, most)) in numbers.into_iter().zip(family.limits) {
                let number = digits.parse().ok().filter(|n| (least..=most).contains(n));
                parameters.push(number.ok_or_else(|| ProblemError::Limit {
                    name: name.chars().take(64).collect(),
                    form: family.form,
                    letter,
                    got: digits.chars().take(32).collect(),
                    least,
                    most,
                })?);
            }
            let ands = (family.ands)(&parameters);
            if ands > MAX_ANDS {
                return Err(ProblemError::TooLarge { name: name.to_owned(), ands });
            }
            (family.build)(&mut c, &parameters);
        }
    }
    Ok(c.finish()?)
}

/// Whether a circuit may have this name; its numbers may still be out of their range.
#[must_use]
pub fn is_name(name: &str) -> bool {
    ["aes128", "sha256"].contains(&name) || FAMILIES.iter().any(|family| numbers(family.form, name).is_some())
}

/// The numbers of a name of this form, if it is.
fn numbers<'n>(form: &str, name: &'n str) -> Option<Vec<&'n str>> {
    // "sort<N>x<W>" is "sort", digits, "x", digits.
    let mut rest = name;
    let mut found = Vec::new();
    for (i, part) in form.split(['<', '>']).enumerate() {
        if i % 2 == 0 {
            rest = rest.strip_prefix(part)?;
        } else {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
                return None;
            }
            found.push(digits);
            rest = after;
        }
    }
    rest.is_empty().then_some(found)
}

fn square(n: usize) -> u128 {
    n as u128 * n as u128
}

/// About how many compare-exchanges sort `n` values.
fn sorting(n: usize) -> u128 {
    let log = u128::from(usize::BITS - n.leading_zeros());
    n as u128 * log * log / 4 + 1
}

fn of_two(
    c: &mut Builder,
    form: Form,
    width: usize,
    build: impl FnOnce(&mut Builder, &[Bit], &[Bit]) -> Vec<(&'static str, Vec<Bit>)>,
) {
    let (a, b) = (c.input_of(form, "a", width), c.input_of(form, "b", width));
    for (name, bits) in build(c, &a, &b) {
        c.output(name, &bits);
    }
}

fn words(bits: &[Bit], width: usize) -> Vec<Vec<Bit>> {
    bits.chunks(width).map(<[Bit]>::to_vec).collect()
}

fn matrices(c: &mut Builder, n: usize, k: usize, width: usize, element: usize) {
    // Numbers with sign are right modulo what the elements of both sides have, and not beyond.
    let form = if element > width { Form::list } else { Form::modular_list };
    let operands = ["a", "b"].map(|name| c.input_of(form(width), name, n * k * width));
    let [a, b] = operands.map(|matrix| words(&matrix, width));
    let product = c.multiply_matrices(&a, &b, k, element);
    c.output_of(form(element), "product", &product.concat());
}

fn auction(c: &mut Builder, bidders: usize, width: usize) {
    let bids: Vec<Vec<Bit>> =
        (0..bidders).map(|i| c.input_of(Form::UNSIGNED, format!("bid{i}"), width)).collect();
    let number_bits = crate::gadgets::bits_for(bidders - 1);
    // The highest bid so far, its number, and the second highest.
    let mut best = bids[0].clone();
    let mut winner = vec![Bit::ZERO; number_bits];
    let mut price = vec![Bit::ZERO; width];
    for (i, bid) in bids.iter().enumerate().skip(1) {
        let higher = c.less(&best, bid);
        let number = c.constant_word(i as u128, number_bits);
        winner = c.mux_word(higher, &number, &winner);
        let (next_best, loser) = c.swap(higher, &best, bid);
        price = if i == 1 { loser } else { c.max(&price, &loser) };
        best = next_best;
    }
    c.output("winner", &winner);
    c.output("price", &price);
}
