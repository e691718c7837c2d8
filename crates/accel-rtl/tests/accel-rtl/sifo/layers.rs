//! Layers, batches, statistics and memory policies: against the paper's figures on FlexSC's own multiplier, and on
//! random netlists.

use blindcore_accel_rtl::sifo::layers::{Cells, Layers, reads};
use blindcore_accel_rtl::sifo::memory::{
    Address, Assignment, AssignmentError, BLOCK_RAM, Operands, PAPER_ADDRESSES, Policy, Traffic,
};
use blindcore_accel_rtl::sifo::survey::Survey;
use blindcore_circuit::builder::Builder;
use blindcore_circuit::netlist::{Gate, Kind, Netlist, Port, Wire};
use blindcore_circuit::problems::{PROBLEMS, make, published};

/// Tables 1, 3 and 4: four rows, every column. This is what says that the columns mean here what they mean there.
#[test]
fn flexscs_multiplier_has_the_papers_figures() {
    // Bits, layers, ANDs, XORs, gates, reprogrammings; wires, A, B, C, D; percents A, B and C.
    let rows = [
        (8, 57, 120, 352, 472, 12, 495, 296, 247, 49, 64, [59.80, 83.4, 49.9]),
        (16, 121, 496, 1472, 1968, 50, 2015, 1232, 1007, 225, 256, [61.14, 81.7, 50.0]),
        (32, 249, 2016, 6016, 8032, 202, 8127, 5024, 4063, 961, 1024, [61.82, 80.9, 50.0]),
        (64, 505, 8128, 24320, 32448, 813, 32639, 20288, 16319, 3969, 4096, [62.16, 80.4, 50.0]),
    ];
    for (n, layers, ands, xors, gates, reprogrammings, wires, a, b, c, d, percents) in rows {
        let name = format!("mult{n}");
        let netlist = published::netlist(published::ROWS.iter().find(|row| row.name == name).unwrap());
        // It multiplies.
        let bits = |x: u64| (0..n).map(|i| x >> i & 1 == 1).collect::<Vec<bool>>();
        let (x, y) = (0xd6e8_feb8_6659_fd93 >> (64 - n), 0xa076_1d64_78bd_642f >> (64 - n));
        let product = netlist.evaluate(&[bits(x), bits(y)]).unwrap();
        let number = product[0].iter().rev().fold(0u128, |x, b| x << 1 | u128::from(*b));
        assert_eq!(number, u128::from(x) * u128::from(y));

        let of = Layers::new(&netlist.wiring());
        let survey = Survey::new(&netlist.wiring(), Cells::TEN_ANDS, BLOCK_RAM, &mut ());
        let got = &survey.statistics;
        assert_eq!((got.layers, got.input_wires, got.output_wires), (layers, 2 * n as usize, 2 * n as usize));
        assert_eq!((got.ands, got.xors, got.gates()), (ands, xors, gates));
        // The paper has 201 at 32 bits, where 2,016 / 10 is over 201.
        assert_eq!(got.reprogrammings(10), reprogrammings);
        // The paper gives each addition a wire for its constant 0.
        assert_eq!(got.wires() + n as usize - 1, wires, "{n}");
        assert_eq!(
            (got.one_to_one, got.adjacent, got.not_adjacent(), got.most_one_to_one),
            (a, b, c, d),
            "{n}"
        );
        let [of_all, of_one_to_one, next_of_all] = percents;
        let paper = [of_all, of_one_to_one, next_of_all];
        let constants = (got.wires() + n as usize - 1) as f64 / got.wires() as f64;
        for ((ours, paper), by) in got.percents().into_iter().zip(paper).zip([constants, 1.0, constants]) {
            assert!((ours / by - paper).abs() <= 0.051, "{n}: {ours} for {paper}");
        }
        // A product, the lowest carry of each of the n - 1 additions, and the others of the last one.
        assert_eq!(got.and_depth, 1 + (n as usize - 1) + (n as usize - 1));
        assert_eq!(got.most_ands, (n * n) as usize);
        let one_at_a_time: usize = (0..of.len()).map(|l| of.ands(l).div_ceil(10)).sum();
        assert_eq!(survey.rounds(10), one_at_a_time);
        assert!(one_at_a_time > reprogrammings);
    }
}

/// The same sequence in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Gates of any kind on any wires, mostly near ones, with gates that nobody reads, operands twice, and outputs that are
/// constants, inputs, or read by gates.
fn random_netlist(random: &mut Random, gates: usize) -> Netlist {
    let inputs = 1 + random.below(20);
    let first = 2 + inputs;
    let near = 1 + random.below(200);
    let list: Vec<Gate> = (0..gates)
        .map(|i| {
            let mut wire = || {
                let known = first + i;
                let back = if random.below(8) == 0 { known } else { near.min(known) };
                Wire((known - 1 - random.below(back)) as u32)
            };
            let (a, b) = (wire(), wire());
            Gate::new(if random.below(3) == 0 { Kind::And } else { Kind::Xor }, a, b)
        })
        .collect();
    let wires = (0..1 + random.below(30)).map(|_| Wire(random.below(first + gates) as u32)).collect();
    Netlist::new([("x".into(), inputs)], list, vec![Port { name: "y".into(), wires }]).unwrap()
}

#[test]
fn layers_and_batches_hold_every_gate_once_and_in_order() {
    let mut random = Random(1);
    for size in [0, 1, 2, 10, 100, 1000, 20_000] {
        let netlist = random_netlist(&mut random, size);
        let layers = Layers::new(&netlist.wiring());
        let first = netlist.first_gate_wire().index();
        // Each gate is in the layer after the latest that it reads: neither earlier nor later.
        for (gate, layer) in netlist.gates().iter().zip(layers.of()) {
            let after = gate.reads().map(|w| w.index().checked_sub(first).map_or(0, |g| layers.of()[g] + 1));
            assert_eq!(*layer, after[0].max(after[1]));
        }
        assert_eq!(layers.is_empty(), size == 0);
        assert_eq!((0..layers.len()).map(|l| layers.ands(l)).sum::<usize>(), netlist.ands());
        let few = Cells::new(1 + random.below(4), Some(1 + random.below(6))).unwrap();
        for cells in [few, Cells::TEN_ANDS, Cells::new(usize::MAX, None).unwrap()] {
            let mut written: Vec<bool> = vec![true; first];
            written.resize(netlist.wires(), false);
            let mut batches = vec![0; layers.len()];
            for batch in layers.batches(cells) {
                batches[batch.layer] += 1;
                assert!(batch.ands.len() <= cells.ands() && batch.gates().count() > 0);
                assert!(cells.xors().is_none_or(|most| batch.xors.len() <= most));
                let gate = |g: u32| netlist.gates()[g as usize];
                assert!(batch.ands.iter().all(|g| gate(*g).kind() == Kind::And));
                assert!(batch.xors.iter().all(|g| gate(*g).kind() == Kind::Xor));
                for g in batch.gates() {
                    assert_eq!(layers.of()[g as usize] as usize, batch.layer);
                    assert!(written[gate(g).a().index()] && written[gate(g).b().index()]);
                }
                for g in batch.gates() {
                    assert!(!std::mem::replace(&mut written[first + g as usize], true));
                }
            }
            assert!(written.iter().all(|w| *w));
            for (layer, batches) in batches.into_iter().enumerate() {
                let xors = cells.xors().map_or(1, |most| layers.xors(layer).div_ceil(most));
                assert_eq!(batches, layers.ands(layer).div_ceil(cells.ands()).max(xors));
                assert_eq!(layers.gates(layer).len(), layers.xors(layer) + layers.ands(layer));
            }
        }
    }
    assert!(Cells::new(0, None).unwrap_err().to_string().contains("AND"));
    assert!(Cells::new(1, Some(0)).unwrap_err().to_string().contains("XOR"));
}

fn traffic(
    netlist: &Netlist,
    layers: &Layers,
    cells: Cells,
    policy: Policy,
    capacity: usize,
) -> (Assignment, Traffic) {
    let assignment = Assignment::new(&netlist.wiring(), layers, cells, policy, capacity);
    let traffic =
        assignment.check(&netlist.wiring(), layers).unwrap_or_else(|e| panic!("{policy:?}, {capacity}: {e}"));
    (assignment, traffic)
}

#[test]
fn every_policy_keeps_every_label_and_lifetimes_takes_the_fewest_accesses() {
    let mut random = Random(2);
    let mut gains = 0;
    for round in 0..60 {
        let netlist = random_netlist(&mut random, [0, 1, 7, 60, 400, 3000][round % 6]);
        let layers = Layers::new(&netlist.wiring());
        let cells =
            [Cells::TEN_ANDS, Cells::new(1, Some(1)).unwrap(), Cells::new(3, Some(5)).unwrap()][round % 3];
        for capacity in [0, 1, 2, 3, 10, 50, 300, BLOCK_RAM] {
            let [direct, frequent, lifetimes] = Policy::ALL.map(|policy| {
                let (assignment, t) = traffic(&netlist, &layers, cells, policy, capacity);
                assert_eq!(t.block_ram_writes + t.ddr_writes, netlist.gates().len());
                assert_eq!(t.block_ram_reads + t.ddr_reads, 2 * netlist.gates().len());
                assert!(t.block_ram <= capacity && t.ddr <= netlist.wires());
                // The flag is the address's last bit.
                assert!(assignment.gates.iter().all(|g| g.out.is_block_ram() == (g.out.0 & 1 == 1)));
                t
            });
            // Counted without places, all wires that compete at once or a few at a time, it is the same.
            for lives in [1 << 20, 1 + random.below(40).max(netlist.gates().len() / 20)] {
                let mut told = |_: &str, done: u64, total: Option<u64>, _| assert!(done < total.unwrap());
                let survey = Survey::within(&netlist.wiring(), cells, capacity, lives, &mut told);
                assert_eq!(survey.traffic.map(|(_, traffic)| traffic), [direct, frequent, lifetimes]);
                assert_eq!(survey.traffic.map(|(policy, _)| policy), Policy::ALL);
                assert_eq!(survey.batches, layers.batches(cells).count());
            }
            assert!(lifetimes.ddr_accesses() <= direct.ddr_accesses().min(frequent.ddr_accesses()));
            gains +=
                usize::from(lifetimes.ddr_accesses() < direct.ddr_accesses().min(frequent.ddr_accesses()));
            assert!(lifetimes.ddr <= frequent.ddr.max(direct.ddr));
            if capacity == 0 {
                assert_eq!(lifetimes.ddr_accesses(), 3 * netlist.gates().len());
            }
        }
    }
    assert!(gains > 100, "{gains}");
}

/// Against layers, and every gate's own.
#[test]
fn figures_counted_while_gates_go_by_are_those_of_all_gates() {
    let mut random = Random(4);
    for size in [0, 1, 2, 10, 100, 1000, 9000, 20_000] {
        let netlist = random_netlist(&mut random, size);
        let (layers, first) = (Layers::new(&netlist.wiring()), netlist.first_gate_wire().index());
        let (reads, of) = (reads(&netlist.wiring()), layers.of());
        let gate_of = |wire: Wire| wire.index().checked_sub(first);
        let mut depths: Vec<usize> = Vec::new();
        let (mut adjacent, mut ones) = (0, vec![0; layers.len()]);
        for (i, gate) in netlist.gates().iter().enumerate() {
            let before = gate.reads().map(|wire| gate_of(wire).map_or(0, |gate| depths[gate]));
            depths.push(before[0].max(before[1]) + usize::from(gate.kind() == Kind::And));
            let read = gate.reads().into_iter().filter_map(gate_of);
            adjacent += read.filter(|read| reads[*read] == 1 && of[*read] + 1 == of[i]).count();
            ones[of[i] as usize] += usize::from(reads[i] == 1);
        }
        let ands: Vec<usize> = (0..layers.len()).map(|layer| layers.ands(layer)).collect();
        let survey = Survey::new(&netlist.wiring(), Cells::TEN_ANDS, BLOCK_RAM, &mut ());
        let got = &survey.statistics;
        assert_eq!(survey.ands_by_layer().collect::<Vec<_>>(), ands);
        assert_eq!((got.layers, got.gates(), got.ands), (layers.len(), size, netlist.ands()));
        assert_eq!((got.input_wires, got.output_wires), (netlist.input_bits(), netlist.output_bits()));
        assert_eq!(got.and_depth, depths.into_iter().max().unwrap_or(0));
        assert_eq!(got.most_ands, ands.into_iter().max().unwrap_or(0));
        assert_eq!((got.one_to_one, got.adjacent), (ones.iter().sum(), adjacent));
        assert_eq!(got.most_one_to_one, ones.into_iter().max().unwrap_or(0));
    }
}

/// A chain of sums: what dies early gives its place to what comes late.
#[test]
fn places_are_used_again() {
    let mut c = Builder::new();
    let (mut a, b) = (c.input("a", 32), c.input("b", 32));
    for _ in 0..200 {
        let mut carry = Wire::ZERO;
        for (a, b) in a.iter_mut().zip(&b) {
            let (x, y) = (c.xor(*a, carry), c.xor(*b, carry));
            let both = c.and(x, y);
            (*a, carry) = (c.xor(x, *b), c.xor(carry, both));
        }
    }
    c.output("sum", &a);
    let netlist = c.finish().unwrap();
    let layers = Layers::new(&netlist.wiring());
    let of = |policy, capacity| traffic(&netlist, &layers, Cells::TEN_ANDS, policy, capacity).1;
    let (frequent, lifetimes) = (of(Policy::MostFrequentlyUsed, 2000), of(Policy::Lifetimes, 2000));
    assert_eq!(frequent.block_ram, 2000);
    assert!(lifetimes.block_ram < 1000, "{lifetimes:?}");
    // Everything but inputs and outputs fits: only they are in DDR, whose words don't grow with the gates.
    assert_eq!(lifetimes.ddr_writes, 32);
    assert!(lifetimes.ddr < 200 && frequent.ddr > netlist.wires() / 2, "{lifetimes:?}");
    assert!(frequent.ddr_accesses() > 3 * lifetimes.ddr_accesses());
    // Without block RAM places in DDR are used again too.
    assert!(of(Policy::Lifetimes, 0).ddr < 1000);
    assert_eq!(BLOCK_RAM, 65_536);
    assert!(netlist.wires() < PAPER_ADDRESSES);
}

#[test]
fn wrong_assignments_are_refused() {
    let mut random = Random(3);
    let (mut refused, mut harmless) = (0, 0);
    for round in 0..200 {
        let netlist = random_netlist(&mut random, 300);
        let layers = Layers::new(&netlist.wiring());
        let cells = Cells::new(4, Some(4)).unwrap();
        let policy = Policy::ALL[round % 3];
        let (assignment, was) = traffic(&netlist, &layers, cells, policy, 40);
        let mut wrong = assignment.clone();
        let gate = random.below(wrong.gates.len());
        let other = assignment.gates[random.below(wrong.gates.len())];
        let Operands { a, b, out } = &mut wrong.gates[gate];
        match random.below(3) {
            0 => *a = other.out,
            1 => *b = Address(b.0 ^ 1 << random.below(8)),
            _ => *out = other.out,
        }
        if wrong == assignment {
            continue;
        }
        match wrong.check(&netlist.wiring(), &layers) {
            Err(_) => refused += 1,
            // A gate may as well write where nothing lives: then its readers would have to look there, unless there
            // are none.
            Ok(_) => {
                let wire = Wire(netlist.first_gate_wire().0 + gate as u32);
                let read = netlist.gates().iter().any(|g| g.reads().contains(&wire));
                assert!(!read && wrong.gates[gate].out != assignment.gates[gate].out, "{round}");
                harmless += 1;
            }
        }
        assert_eq!(assignment.check(&netlist.wiring(), &layers), Ok(was));
    }
    assert!(refused > 100 && harmless < 60, "{refused} {harmless}");

    // Each reason.
    let gate = |a, b| Gate::new(Kind::And, Wire(a), Wire(b));
    // w4 and w5 from the inputs w2 and w3, w6 from both.
    let netlist = Netlist::new(
        [("x".into(), 2)],
        vec![gate(2, 3), gate(3, 2), gate(4, 5)],
        vec![Port { name: "y".into(), wires: vec![Wire(6)] }],
    )
    .unwrap();
    let layers = Layers::new(&netlist.wiring());
    let cells = Cells::TEN_ANDS;
    let right = Assignment::new(&netlist.wiring(), &layers, cells, Policy::Lifetimes, 8);
    let said = |change: &dyn Fn(&mut Assignment)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        wrong.check(&netlist.wiring(), &layers).unwrap_err()
    };
    let e = said(&|a| a.gates.truncate(2));
    assert_eq!(e, AssignmentError::Count { what: "gates", got: 2, want: 3 });
    let e = said(&|a| a.outputs.clear());
    assert_eq!(e, AssignmentError::Count { what: "output bits", got: 0, want: 1 });
    let e = said(&|a| a.gates[0].out = Address::block_ram(8));
    assert_eq!(e, AssignmentError::Capacity { address: Address::block_ram(8), capacity: 8 });
    let e = said(&|a| a.gates[0].out = Address::ddr(u32::MAX >> 1));
    assert!(matches!(e, AssignmentError::Capacity { capacity: 7, .. }), "{e}");
    let e = said(&|a| a.gates[1].out = a.gates[0].out);
    assert!(matches!(e, AssignmentError::Race { batch: 0, gate: 1, .. }), "{e}");
    // An input is overwritten while the other gate of the batch may still read it.
    let e = said(&|a| a.gates[0].out = Address::ddr(2));
    assert!(matches!(e, AssignmentError::Race { batch: 0, gate: 0, .. }), "{e}");
    let e = said(&|a| a.gates[2].b = a.gates[2].a);
    assert!(matches!(e, AssignmentError::Lost { wire: Wire(5), found: Some(Wire(4)), .. }), "{e}");
    assert!(e.to_string().contains("gate 2 reads w5 at block RAM"), "{e}");
    let e = said(&|a| a.outputs[0] = Address::ddr(0));
    assert_eq!(e.to_string(), "output bit 0 reads w6 at DDR 0, which holds Some(w0)");
}

/// Every policy on the paper's own problems, as this builder makes them.
#[test]
fn the_papers_problems_keep_every_label() {
    let mut seen = 0;
    for problem in PROBLEMS.iter().filter(|p| p.published.is_some_and(|p| p.gates < 100_000)) {
        let netlist = make(problem.name).unwrap();
        let layers = Layers::new(&netlist.wiring());
        let fifteen = Cells::new(15, Some(15)).unwrap();
        for (cells, capacity) in [(Cells::TEN_ANDS, BLOCK_RAM), (fifteen, 1000), (fifteen, 100)] {
            let [direct, frequent, lifetimes] =
                Policy::ALL.map(|p| traffic(&netlist, &layers, cells, p, capacity).1.ddr_accesses());
            assert!(lifetimes <= direct.min(frequent), "{}", problem.name);
        }
        seen += 1;
    }
    assert_eq!(seen, 12);
}
