//! The netlists behind SIFO's tables: what FlexSC made in 2017, gate by gate.
//!
//! [`make`](super::make) builds the same problems in fewer gates and more layers, which is what a garbler wants; times
//! of hardware that the paper publishes are to be compared on its own netlists. Nobody published those. These are
//! *recovered*: FlexSC's ways of building were tried until one of them had every figure of Tables 1, 3 and 4, but for
//! those that contradict each other. That is all the evidence there is, and it is strong where ten figures of a row are
//! met by one structure.
//!
//! How FlexSC builds, all of it without folding constants:
//!
//! - A full adder has four XORs and an AND; an addition of n bits has n of them, a constant 0 as first carry, and its
//!   last carry even where nobody reads it.
//! - A product of n x n bits is schoolbook: a row is a choice between zero and the multiplicand (XOR, AND, XOR a bit),
//!   rows are added one after the other, n bits each.
//! - An element of a product of matrices is a chain: the lower halves of the products added up from the first to the
//!   last, modulo 2^n; the upper halves are made and never read.
//! - A distance is n XORs and the number of ones in them: of the largest power of two of bits as a tree, of the rest
//!   the same way, even where the rest is nothing, and both added in as many bits as count them all and one more.
//! - Sorting is bitonic. A comparison is the top bit of a difference, so numbers are to differ by less than half their
//!   range; an exchange has one AND a bit.
//!
//! What doesn't fit, and what this says of it:
//!
//! - *adder6* has 18 layers and not 17: the last carry, which is the 24th XOR, comes after the sum.
//! - *Input wires* and *output wires* of matrices are in each other's place (the wires of Table 3 count both operands and
//!   elements of n bits), and outputs of distances are said to be n: zeros fill them up here.
//! - *hamming30* has A = 174 and B = 163. The table has 163 and 147, and C = 11, which is 174 - 163.
//! - *matmul10x10x4* is the last 30,015 of 126,000 gates: the others, up to the middle of an addition within the 77th of
//!   100 elements, are missing. That tail has each of the row's figures of gates and wires. What the missing gates would
//!   have written and the others read, 8 bits, is an input `before`.
//! - *sort10x4* sorts ten numbers of each party, twenty in all (its *input wires* and *output wires* are of one party),
//!   in 4,664 XORs. The table has 26 less; everything else of the row is met, A, B, C, D and layers among it.
//! - *Wires* of Table 3 are input bits that are read, gates, and one constant for each addition (the adder's is missing,
//!   as is its 18th layer: 42 is what 41 and a constant make); in sorting, one for each direction that is turned as well,
//!   and the 26 XORs are counted.
//! - *D* is the most one-to-one wires of a layer that the next one reads.
//!
//! Sources: Fang, Ioannidis and Leeser 2019, Tables 1 and 3 to 11; the algorithms are those of FlexSC's integer library
//! (Wang and Nayak 2014).
//!
//! ```
//! use blindcore_circuit::problems::published::{ROWS, netlist};
//!
//! let row = ROWS.iter().find(|row| row.name == "mult8").unwrap();
//! let netlist = netlist(row);
//! assert_eq!(netlist.ands() as u64, row.figures.ands);
//! assert_eq!(netlist.gates().len() as u64, row.figures.gates);
//! assert_eq!(row.figures.fpga_us, 293);
//! ```

use super::{PROBLEMS, Published};
use crate::netlist::{Gate, Kind, Netlist, NetlistError, Port, Wire};

/// A row of the paper's tables, and how its netlist is made.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The problem's name, as [`make`](super::make) takes it.
    pub name: &'static str,
    /// Tables 1, 3, 4 and 11.
    pub figures: Published,
    /// Tables 5 to 9.
    pub times: Times,
    shape: Shape,
}

/// Microseconds on the FPGA while the paper improves it, where it gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Five AND cells and an XOR cell, every XOR waited for (Table 5).
    pub five_ands: Option<u64>,
    /// Ten AND cells and an XOR cell, every XOR waited for (Table 5).
    pub ten_ands: Option<u64>,
    /// Ten AND cells, XORs not waited for (Table 6).
    pub no_xor_check: Option<u64>,
    /// The same with block RAM, directly-used (Table 7, whose speed-up for the adder, 57.2, is not of its 54 us).
    pub directly_used: Option<u64>,
    /// The same with block RAM, most-frequently-used (Table 8).
    pub most_frequently_used: Option<u64>,
    /// Five, ten and fifteen cells of each kind, the link's clock at 300 MHz (Table 9).
    pub cells: Option<[u64; 3]>,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Of numbers of this many bits.
    Sum(usize),
    Distance(usize),
    Product(usize),
    /// Of this many rows, with elements of this many bits.
    Matrices(usize, usize),
    /// This many of its last gates.
    Tail(usize, usize, usize),
    /// Of this many numbers of this many bits.
    Sorted(usize, usize),
}

const fn row(place: usize, shape: Shape, times: Times) -> Row {
    match PROBLEMS[place].published {
        Some(figures) => Row { name: PROBLEMS[place].name, figures, times, shape },
        None => panic!("every row is published"),
    }
}

const NO_TIMES: Times = times([0; 4]);

/// Tables 5 to 7; 0 where there is none.
const fn times(us: [u64; 4]) -> Times {
    const fn some(us: u64) -> Option<u64> {
        if us == 0 { None } else { Some(us) }
    }
    Times {
        five_ands: some(us[0]),
        ten_ands: some(us[1]),
        no_xor_check: some(us[2]),
        directly_used: some(us[3]),
        most_frequently_used: None,
        cells: None,
    }
}

/// The rows of the paper's tables, in their order.
pub const ROWS: [Row; 14] = [
    row(0, Shape::Sum(6), times([78, 76, 60, 54])),
    row(1, Shape::Distance(10), times([260, 257, 99, 88])),
    row(2, Shape::Distance(30), times([765, 741, 216, 193])),
    row(3, Shape::Distance(50), times([1_282, 1_210, 365, 302])),
    row(4, Shape::Product(8), times([1_098, 1_058, 428, 380])),
    row(5, Shape::Product(16), times([4_280, 4_218, 1_420, 1_284])),
    row(
        6,
        Shape::Product(32),
        Times { most_frequently_used: Some(4_384), ..times([17_406, 17_056, 4_924, 4_208]) },
    ),
    row(
        7,
        Shape::Product(64),
        Times {
            most_frequently_used: Some(15_648),
            cells: Some([18_677, 14_888, 12_252]),
            ..times([71_068, 69_858, 18_673, 15_945])
        },
    ),
    row(
        8,
        Shape::Sorted(20, 4),
        Times { most_frequently_used: Some(2_425), ..times([12_605, 12_375, 2_770, 2_292]) },
    ),
    row(9, Shape::Matrices(5, 4), NO_TIMES),
    row(10, Shape::Tail(10, 4, 30_015), NO_TIMES),
    row(11, Shape::Matrices(5, 8), NO_TIMES),
    row(12, Shape::Matrices(10, 8), NO_TIMES),
    row(13, Shape::Matrices(20, 4), NO_TIMES),
];

/// PageRank (Table 10), ten cells of each kind, the link's clock at 300 MHz. The paper says nothing of its gates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageRankRow {
    /// Nodes.
    pub nodes: usize,
    /// Microseconds with a register for each address.
    pub three_registers_us: u64,
    /// Microseconds with two registers for three addresses; the last row has its speed-up, 7.83, in this place.
    pub two_registers_us: Option<u64>,
    /// What two registers gain.
    pub improvement: f64,
    /// Over FlexSC.
    pub speedup: f64,
}

/// The rows of Table 10.
pub const PAGERANK: [PageRankRow; 3] = [
    PageRankRow {
        nodes: 2,
        three_registers_us: 41_044,
        two_registers_us: Some(37_358),
        improvement: 1.1,
        speedup: 12.47,
    },
    PageRankRow {
        nodes: 3,
        three_registers_us: 66_409,
        two_registers_us: Some(58_587),
        improvement: 1.13,
        speedup: 10.27,
    },
    PageRankRow {
        nodes: 4,
        three_registers_us: 90_087,
        two_registers_us: None,
        improvement: 1.06,
        speedup: 7.83,
    },
];

/// The netlist of a row; the same one each time.
///
/// Numbers are as everywhere here: inputs `a` and `b`, least significant bit first, matrices row by row; elements of a
/// product of matrices have as many bits as those of its operands.
#[must_use]
pub fn netlist(row: &Row) -> Netlist {
    let made = match row.shape {
        Shape::Sum(bits) => sum(bits),
        Shape::Distance(bits) => distance(bits),
        Shape::Product(bits) => product(bits),
        Shape::Matrices(n, bits) => matrices(n, bits),
        Shape::Tail(n, bits, gates) => matrices(n, bits).and_then(|all| tail(&all, gates)),
        Shape::Sorted(count, bits) => sorted(count, bits),
    };
    made.expect("a row's gates are in order and fit memory")
}

/// Gates exactly as they are asked for: nothing is folded.
struct Plain {
    width: usize,
    gates: Vec<Gate>,
}

impl Plain {
    /// Of two inputs of this many bits.
    fn new(width: usize) -> Self {
        Self { width, gates: Vec::new() }
    }

    /// This many bits of an input, from this one on.
    fn bits(&self, input: usize, begin: usize, count: usize) -> Vec<Wire> {
        (2 + input * self.width + begin..).take(count).map(|w| Wire(w as u32)).collect()
    }

    fn gate(&mut self, kind: Kind, a: Wire, b: Wire) -> Wire {
        self.gates.push(Gate::new(kind, a, b));
        Wire((2 + 2 * self.width + self.gates.len() - 1) as u32)
    }

    fn xor(&mut self, a: Wire, b: Wire) -> Wire {
        self.gate(Kind::Xor, a, b)
    }

    /// Sum and carry: three layers after the carry, two after an operand.
    fn full_adder(&mut self, a: Wire, b: Wire, carry: Wire) -> (Wire, Wire) {
        let (x, y) = (self.xor(a, carry), self.xor(b, carry));
        let sum = self.xor(a, y);
        let both = self.gate(Kind::And, x, y);
        (sum, self.xor(carry, both))
    }

    /// The sum of two numbers of as many bits, and the carry.
    fn add(&mut self, a: &[Wire], b: &[Wire]) -> (Vec<Wire>, Wire) {
        self.add_with_carry(a, b, Wire::ZERO)
    }

    fn add_with_carry(&mut self, a: &[Wire], b: &[Wire], mut carry: Wire) -> (Vec<Wire>, Wire) {
        let bits = a.iter().zip(b).map(|(a, b)| {
            let (sum, next) = self.full_adder(*a, *b, carry);
            carry = next;
            sum
        });
        (bits.collect(), carry)
    }

    /// A row of a product: the multiplicand where `bit` is 1, else 0.
    fn row(&mut self, multiplicand: &[Wire], bit: Wire) -> Vec<Wire> {
        let choose = |&a| {
            let differ = self.xor(a, Wire::ZERO);
            let chosen = self.gate(Kind::And, differ, bit);
            self.xor(chosen, Wire::ZERO)
        };
        multiplicand.iter().map(choose).collect()
    }

    /// The product of two numbers of n bits, 2 n bits.
    fn multiply(&mut self, a: &[Wire], b: &[Wire]) -> Vec<Wire> {
        let mut sum = self.row(a, b[0]);
        let mut low = Vec::new();
        for bit in &b[1..] {
            let next = self.row(a, *bit);
            low.push(sum.remove(0));
            // In the first addition there is no bit yet at the top; its carry is the next one's.
            sum.resize(a.len(), Wire::ZERO);
            let (mut bits, carry) = self.add(&sum, &next);
            bits.push(carry);
            sum = bits;
        }
        low.extend(sum);
        low
    }

    /// How many of these bits are 1.
    fn ones(&mut self, bits: &[Wire]) -> Vec<Wire> {
        match bits.len() {
            0 => vec![Wire::ZERO],
            1 => bits.to_vec(),
            count => {
                let (most, width) = (1 << count.ilog2(), count.ilog2() as usize + 2);
                let mut numbers = [self.ones_of_power(&bits[..most]), self.ones(&bits[most..])];
                numbers.iter_mut().for_each(|number| number.resize(width, Wire::ZERO));
                self.add(&numbers[0], &numbers[1]).0
            }
        }
    }

    /// The same of as many bits as a power of two.
    fn ones_of_power(&mut self, bits: &[Wire]) -> Vec<Wire> {
        if bits.len() == 1 {
            return bits.to_vec();
        }
        let (low, high) = bits.split_at(bits.len() / 2);
        let (low, high) = (self.ones_of_power(low), self.ones_of_power(high));
        let (mut sum, carry) = self.add(&low, &high);
        sum.push(carry);
        sum
    }

    fn not(&mut self, a: Wire) -> Wire {
        self.xor(a, Wire::ONE)
    }

    /// Halves in opposite order, then merged.
    fn sort(&mut self, numbers: &mut [Vec<Wire>], ascending: bool) {
        if numbers.len() > 1 {
            let (low, high) = numbers.split_at_mut(numbers.len() / 2);
            self.sort(low, !ascending);
            self.sort(high, ascending);
            self.merge(numbers, ascending);
        }
    }

    fn merge(&mut self, numbers: &mut [Vec<Wire>], ascending: bool) {
        if numbers.len() > 1 {
            // The largest power of two below the length.
            let half = numbers.len().next_power_of_two() / 2;
            let (low, high) = numbers.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(&mut *high) {
                self.exchange(a, b, ascending);
            }
            self.merge(low, ascending);
            self.merge(high, ascending);
        }
    }

    /// Puts two numbers into order.
    fn exchange(&mut self, a: &mut Vec<Wire>, b: &mut Vec<Wire>, ascending: bool) {
        let not_a: Vec<Wire> = a.iter().map(|a| self.not(*a)).collect();
        let (difference, _) = self.add_with_carry(b, &not_a, Wire::ONE);
        let at_most = difference.last().map(|sign| self.not(*sign)).unwrap_or(Wire::ONE);
        let greater = self.not(at_most);
        let direction = if ascending { Wire::ONE } else { Wire::ZERO };
        let differ = self.xor(greater, direction);
        let swap = self.not(differ);
        let differ: Vec<Wire> = a.iter().zip(&*b).map(|(a, b)| self.xor(*a, *b)).collect();
        let change: Vec<Wire> = differ.iter().map(|d| self.gate(Kind::And, *d, swap)).collect();
        let mut each = |left: &[Wire], right: &[Wire]| -> Vec<Wire> {
            left.iter().zip(right).map(|(l, r)| self.xor(*l, *r)).collect()
        };
        // The lower of both by a choice, then what it differs in from `a`, then both numbers.
        let chosen = each(&change, a);
        let change = each(&chosen, a);
        (*a, *b) = (each(a, &change), each(b, &change));
    }

    fn finish(self, name: &str, output: Vec<Wire>) -> Result<Netlist, NetlistError> {
        let inputs = ["a", "b"].map(|name| (name.to_owned(), self.width));
        Netlist::new(inputs, self.gates, vec![Port { name: name.into(), wires: output }])
    }
}

fn sum(bits: usize) -> Result<Netlist, NetlistError> {
    let mut c = Plain::new(bits);
    let [a, b] = [0, 1].map(|i| c.bits(i, 0, bits));
    let sum = c.add(&a, &b).0;
    c.finish("sum", sum)
}

fn distance(bits: usize) -> Result<Netlist, NetlistError> {
    let mut c = Plain::new(bits);
    let [a, b] = [0, 1].map(|i| c.bits(i, 0, bits));
    let differ: Vec<Wire> = a.iter().zip(&b).map(|(a, b)| c.xor(*a, *b)).collect();
    let mut distance = c.ones(&differ);
    distance.resize(bits, Wire::ZERO);
    c.finish("distance", distance)
}

fn product(bits: usize) -> Result<Netlist, NetlistError> {
    let mut c = Plain::new(bits);
    let [a, b] = [0, 1].map(|i| c.bits(i, 0, bits));
    let product = c.multiply(&a, &b);
    c.finish("product", product)
}

/// The product of two n x n matrices, elements modulo 2^bits.
fn matrices(n: usize, bits: usize) -> Result<Netlist, NetlistError> {
    let mut c = Plain::new(n * n * bits);
    let mut output = Vec::new();
    for (row, column) in (0..n * n).map(|element| (element / n, element % n)) {
        let mut sum: Option<Vec<Wire>> = None;
        for i in 0..n {
            let a = c.bits(0, (row * n + i) * bits, bits);
            let b = c.bits(1, (i * n + column) * bits, bits);
            let mut product = c.multiply(&a, &b);
            product.truncate(bits);
            sum = Some(match sum {
                Some(sum) => c.add(&sum, &product).0,
                None => product,
            });
        }
        output.extend(sum.unwrap_or_default());
    }
    c.finish("product", output)
}

/// Numbers in ascending order, by a bitonic sorter; the first half are one party's.
///
/// Numbers are compared as signed ones, and wrongly where their difference needs another bit.
fn sorted(count: usize, bits: usize) -> Result<Netlist, NetlistError> {
    let mut c = Plain::new(count / 2 * bits);
    let all = [0, 1].map(|i| c.bits(i, 0, c.width)).concat();
    let mut numbers: Vec<Vec<Wire>> = all.chunks(bits).map(<[Wire]>::to_vec).collect();
    c.sort(&mut numbers, true);
    c.finish("sorted", numbers.concat())
}

/// The last gates of a netlist, which read what the others would have written as one more input; of the outputs the bits
/// that they write.
fn tail(all: &Netlist, gates: usize) -> Result<Netlist, NetlistError> {
    let first = all.first_gate_wire().0;
    let begin = first + (all.gates().len() - gates) as u32;
    let kept = &all.gates()[all.gates().len() - gates..];
    let missing = |w: &Wire| (first..begin).contains(&w.0);
    let mut before: Vec<Wire> = kept.iter().flat_map(|g| g.reads()).filter(missing).collect();
    before.sort_unstable();
    before.dedup();
    let moved = |w: Wire| match before.binary_search(&w) {
        Ok(place) => Wire(first + place as u32),
        Err(_) if w.0 < begin => w,
        Err(_) => Wire(w.0 - begin + first + before.len() as u32),
    };
    let kept = kept.iter().map(|g| Gate::new(g.kind(), moved(g.a()), moved(g.b()))).collect();
    let outputs = all.outputs().iter().map(|port| {
        let wires = port.wires.iter().filter(|w| w.0 >= begin).map(|w| moved(*w)).collect();
        Port { name: port.name.clone(), wires }
    });
    let inputs = all.inputs().iter().map(|port| (port.name.clone(), port.wires.len()));
    let inputs = inputs.chain([("before".to_owned(), before.len())]);
    Netlist::new(inputs, kept, outputs.collect())
}
