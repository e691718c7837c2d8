//! What an overlay garbles: that programs over places are the netlists, and that full adders and subcircuits are found.

use std::collections::HashMap;

use blindcore_accel::garble::reference::{Side, run};
use blindcore_accel::garble::{GarblingScheme, Label, Labels, Offset, Program, ProgramBuilder};
use blindcore_accel_rtl::sifo::circuits::{FullAdder, components, full_adders, program, side_by_side};
use blindcore_accel_rtl::sifo::layers::{Cells, Layers};
use blindcore_accel_rtl::sifo::memory::{Address, Assignment, AssignmentError, Policy};
use blindcore_circuit::builder::Builder;
use blindcore_circuit::folded;
use blindcore_circuit::netlist::{Gate, Kind, Netlist, Port, Wire};
use blindcore_circuit::problems::make;
use blindcore_circuit::problems::published::{ROWS, netlist};

/// The same sequence in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn label(&mut self) -> Label {
        (0..8).fold(0, |label, _| label << 16 | self.below(1 << 16) as Label)
    }

    fn bits(&mut self, count: usize) -> Vec<bool> {
        (0..count).map(|_| self.below(2) == 1).collect()
    }
}

/// Gates of any kind on any wires, mostly near ones; full adders among them, some of them with a gate that reads what
/// only they should read, or with another operand somewhere.
fn random_netlist(random: &mut Random, gates: usize) -> Netlist {
    let inputs = 1 + random.below(20);
    let first = 2 + inputs;
    let near = 1 + random.below(200);
    let mut list: Vec<Gate> = Vec::new();
    // Wires within adders, which others seldom read.
    let mut inner = vec![false; first];
    while list.len() < gates {
        let known = first + list.len();
        inner.resize(known, false);
        let mut wire = || {
            let back = if random.below(8) == 0 { known } else { near.min(known) };
            let mut wires = (0..5).map(|_| known - 1 - random.below(back));
            let wire = wires.find(|w| !inner[*w]).unwrap_or(known - 1);
            Wire(wire as u32)
        };
        let (a, b, c) = (wire(), wire(), wire());
        let next = |i: usize| Wire((known + i) as u32);
        let xor = |a, b| Gate::new(Kind::Xor, a, b);
        let turned =
            |gate: Gate, turn: bool| if turn { Gate::new(gate.kind(), gate.b(), gate.a()) } else { gate };
        match random.below(6) {
            0 => {
                let (x, y) = (next(0), next(1));
                let sum = if random.below(2) == 0 { xor(a, y) } else { xor(x, b) };
                let both = Gate::new(Kind::And, x, y);
                let mut adder = [xor(a, c), xor(b, c), sum, both, xor(c, next(3))];
                adder.iter_mut().for_each(|gate| *gate = turned(*gate, random.below(2) == 0));
                if random.below(4) == 0 {
                    let gate = &mut adder[random.below(5)];
                    match random.below(3) {
                        0 => *gate = Gate::new(gate.kind(), c, gate.b()),
                        1 => *gate = Gate::new(Kind::And, gate.a(), gate.b()),
                        _ => *gate = Gate::new(gate.kind(), gate.a(), a),
                    }
                }
                inner.extend([true, true, false, true, false]);
                list.extend(adder);
            }
            kind => list.push(Gate::new(if kind < 3 { Kind::And } else { Kind::Xor }, a, b)),
        }
    }
    let wires = (0..1 + random.below(30)).map(|_| Wire(random.below(first + list.len()) as u32)).collect();
    Netlist::new([("x".into(), inputs)], list, vec![Port { name: "y".into(), wires }]).unwrap()
}

/// What a garbling is made of: the offset, and a label of 0 for each constant and input bit.
struct Secrets {
    offset: Offset,
    zeros: Vec<Label>,
}

impl Secrets {
    fn new(random: &mut Random, scheme: &GarblingScheme, wires: usize) -> Self {
        let mask = if scheme.label_bits() == 128 { Label::MAX } else { (1 << scheme.label_bits()) - 1 };
        let offset = Offset::new(random.label() & mask);
        Self { offset, zeros: (0..wires).map(|_| random.label() & mask).collect() }
    }

    /// Tables, and labels of 0 at the end.
    fn garble(&self, scheme: &GarblingScheme, program: &Program, inputs: &[u32]) -> (Vec<u8>, Labels) {
        let mut labels = Labels::new(program.slots(), 1);
        self.zeros.iter().zip(inputs).for_each(|(label, slot)| labels.set(*slot, 0, *label));
        let mut tables = vec![0; program.ands() * scheme.table_bytes()];
        run(scheme, program, 0, &mut labels, Side::Garble(&self.offset, &mut tables));
        (tables, labels)
    }

    fn evaluate(
        &self,
        scheme: &GarblingScheme,
        program: &Program,
        inputs: &[u32],
        bits: &[bool],
        tables: &[u8],
    ) -> Labels {
        let mut labels = Labels::new(program.slots(), 1);
        let values = [false, true].iter().chain(bits);
        for ((zero, slot), value) in self.zeros.iter().zip(inputs).zip(values) {
            labels.set(*slot, 0, zero ^ if *value { self.offset.label() } else { 0 });
        }
        run(scheme, program, 0, &mut labels, Side::Evaluate(tables));
        labels
    }
}

#[test]
fn programs_over_places_garble_the_netlist() {
    let mut random = Random(1);
    let schemes = [GarblingScheme::InsecureSifo, GarblingScheme::HalfGates { key: [7; 16] }];
    for round in 0..40 {
        let netlist = random_netlist(&mut random, [0, 1, 20, 150, 900][round % 5]);
        let layers = Layers::new(&netlist.wiring());
        let cells = [Cells::TEN_ANDS, Cells::new(1, Some(1)).unwrap(), Cells::new(15, Some(15)).unwrap()];
        let cells = cells[round % 3];
        let scheme = &schemes[round % 2];
        let first = netlist.first_gate_wire().0;
        let secrets = Secrets::new(&mut random, scheme, first as usize);
        let mut tables: Option<Vec<u8>> = None;
        for (policy, capacity) in Policy::ALL.into_iter().flat_map(|p| [0, 7, 1000].map(|c| (p, c))) {
            let assignment = Assignment::new(&netlist.wiring(), &layers, cells, policy, capacity);
            let placed = program(&netlist.wiring(), &layers, &assignment).unwrap();
            // A layer a batch, in the order of the batches.
            let batches: Vec<_> = layers.batches(cells).collect();
            let sizes = batches.iter().map(|b| (b.xors.len() as u32, b.ands.len() as u32));
            assert!(placed.program.layers().iter().map(|l| (l.xors, l.ands)).eq(sizes));
            assert!(placed.gates.iter().copied().eq(batches.iter().flat_map(|b| b.gates())));
            assert!(placed.ands.iter().eq(batches.iter().flat_map(|b| b.ands)));
            for (step, gate) in placed.program.steps().iter().zip(&placed.gates) {
                let slot = |at: Address| at.place() + if at.is_block_ram() { 0 } else { capacity };
                let at = assignment.gates[*gate as usize];
                assert_eq!([step.out, step.a, step.b].map(|s| s as usize), [at.out, at.a, at.b].map(slot));
            }

            let (made, zeros) = secrets.garble(scheme, &placed.program, &placed.inputs);
            for _ in 0..3 {
                let bits = random.bits(netlist.input_bits());
                let ends = secrets.evaluate(scheme, &placed.program, &placed.inputs, &bits, &made);
                let outputs = placed.outputs.iter().map(|slot| {
                    let differ = ends.get(*slot, 0) ^ zeros.get(*slot, 0);
                    assert!(differ == 0 || differ == secrets.offset.label());
                    differ != 0
                });
                assert_eq!(outputs.collect::<Vec<_>>(), netlist.evaluate(&[bits]).unwrap()[0]);
            }
            // Where wires lie makes no difference to the tables.
            assert_eq!(*tables.get_or_insert_with(|| made.clone()), made, "{policy:?} {capacity}");
        }
        // Nor does it make any to give each wire a slot of its own: table i is that of gate `ands[i]`.
        let assignment = Assignment::new(&netlist.wiring(), &layers, cells, Policy::Lifetimes, 50);
        let placed = program(&netlist.wiring(), &layers, &assignment).unwrap();
        let mut plain = ProgramBuilder::new(netlist.wires());
        for g in &placed.gates {
            let gate = netlist.gates()[*g as usize];
            let done = match gate.kind() {
                Kind::Xor => plain.xor(first + g, gate.a().0, gate.b().0),
                Kind::And => plain.and(first + g, gate.a().0, gate.b().0),
            };
            done.unwrap();
            plain.end_layer();
        }
        let wires: Vec<u32> = (0..first).collect();
        let (made, zeros) = secrets.garble(scheme, &plain.finish(), &wires);
        assert_eq!(Some(made), tables);
        let (_, over_places) = secrets.garble(scheme, &placed.program, &placed.inputs);
        for (wire, slot) in netlist.outputs()[0].wires.iter().zip(&placed.outputs) {
            assert_eq!(zeros.get(wire.0, 0), over_places.get(*slot, 0));
        }
    }
}

#[test]
fn a_wrong_assignment_makes_no_program() {
    let netlist = make("mult8").unwrap();
    let layers = Layers::new(&netlist.wiring());
    let mut assignment =
        Assignment::new(&netlist.wiring(), &layers, Cells::TEN_ANDS, Policy::DirectlyUsed, 100);
    assignment.gates[200].out = Address::block_ram(100);
    let refused = program(&netlist.wiring(), &layers, &assignment).unwrap_err();
    assert!(matches!(refused, AssignmentError::Capacity { capacity: 100, .. }), "{refused}");
    let other = make("mult16").unwrap();
    let of_other = program(&other.wiring(), &Layers::new(&other.wiring()), &assignment).unwrap_err();
    assert!(matches!(of_other, AssignmentError::Count { what: "gates", .. }), "{of_other}");
}

/// What a full adder is, by looking at all readers of everything.
fn is_full_adder(netlist: &Netlist, adder: &FullAdder) -> bool {
    let first = netlist.first_gate_wire().0;
    let wire = |gate: u32| Wire(first + gate);
    let readers = |gate: u32| -> Vec<u32> {
        let reads = netlist.gates().iter().enumerate().filter(|(_, g)| g.reads().contains(&wire(gate)));
        let outputs = netlist.outputs().iter().flat_map(|p| &p.wires).filter(|w| **w == wire(gate));
        reads.map(|(i, _)| i as u32).chain(outputs.map(|_| u32::MAX)).collect()
    };
    let computes = |gate: u32, kind, a: Wire, b: Wire| {
        let gate = netlist.gates()[gate as usize];
        gate.kind() == kind && [(a, b), (b, a)].contains(&(gate.a(), gate.b()))
    };
    let FullAdder { a, b, c, differences: [x, y], and, sum, carry } = *adder;
    let by_y = computes(sum, Kind::Xor, a, wire(y)) && readers(x) == [and];
    let by_x = computes(sum, Kind::Xor, wire(x), b) && readers(y) == [and];
    let mut rest = if by_y { readers(y) } else { readers(x) };
    rest.retain(|reader| ![sum, and].contains(reader));
    computes(x, Kind::Xor, a, c)
        && computes(y, Kind::Xor, b, c)
        && (by_y || by_x)
        && rest.is_empty()
        && netlist.gates()[and as usize] == Gate::new(Kind::And, wire(x), wire(y))
        && readers(and) == [carry]
        && computes(carry, Kind::Xor, c, wire(and))
}

/// Every choice of gates that could be an adder, gone through.
fn adders_by_search(netlist: &Netlist) -> usize {
    let first = netlist.first_gate_wire().0;
    let gates = netlist.gates();
    let by_operand = |wire: Wire| (0..gates.len()).filter(move |g| gates[*g].reads().contains(&wire));
    let mut found = 0;
    for (and, gate) in gates.iter().enumerate().filter(|(_, g)| g.kind() == Kind::And) {
        let [Some(x), Some(y)] = gate.reads().map(|w| w.0.checked_sub(first)) else { continue };
        let operands = |g: u32| gates[g as usize].reads();
        let carries = by_operand(Wire(first + and as u32));
        let sums = by_operand(gate.a()).chain(by_operand(gate.b()));
        let choices = carries.flat_map(|carry| sums.clone().map(move |sum| (carry as u32, sum as u32)));
        let any = choices.into_iter().any(|(carry, sum)| {
            [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().any(|(i, j)| {
                let ([a, c], [b, other]) =
                    ([operands(x)[i], operands(x)[1 - i]], [operands(y)[j], operands(y)[1 - j]]);
                let adder = FullAdder { a, b, c, differences: [x, y], and: and as u32, sum, carry };
                c == other && is_full_adder(netlist, &adder)
            })
        });
        found += usize::from(any);
    }
    found
}

/// Evaluates with every full adder done at once, where the earlier one of its sum and its AND is.
fn evaluate_with_adders(netlist: &Netlist, adders: &[FullAdder], bits: &[bool]) -> Vec<bool> {
    let first = netlist.first_gate_wire().index();
    let mut values: Vec<Option<bool>> = [false, true].iter().chain(bits).map(|b| Some(*b)).collect();
    values.resize(netlist.wires(), None);
    let at: HashMap<u32, &FullAdder> = adders.iter().map(|adder| (adder.sum.min(adder.and), adder)).collect();
    let inside: Vec<u32> = adders.iter().flat_map(FullAdder::gates).collect();
    for (i, gate) in netlist.gates().iter().enumerate() {
        let value = |wire: Wire| values[wire.index()].expect("written before it is read");
        if let Some(adder) = at.get(&(i as u32)) {
            let [a, b, c] = [adder.a, adder.b, adder.c].map(value);
            values[first + adder.sum as usize] = Some(a ^ b ^ c);
            values[first + adder.carry as usize] = Some(a & b | b & c | c & a);
        } else if !inside.contains(&(i as u32)) {
            let (a, b) = (value(gate.a()), value(gate.b()));
            values[first + i] = Some(if gate.kind() == Kind::And { a & b } else { a ^ b });
        }
    }
    netlist.outputs().iter().flat_map(|p| &p.wires).map(|w| values[w.index()].unwrap()).collect()
}

#[test]
fn full_adders_are_found_and_nothing_else() {
    let mut random = Random(2);
    let mut all = 0;
    for round in 0..60 {
        let netlist = random_netlist(&mut random, [0, 5, 40, 300][round % 4]);
        let adders = full_adders(&netlist.wiring());
        assert!(adders.iter().all(|adder| is_full_adder(&netlist, adder)));
        let mut gates: Vec<u32> = adders.iter().flat_map(FullAdder::gates).collect();
        gates.sort_unstable();
        gates.dedup();
        assert_eq!(gates.len(), 5 * adders.len());
        assert_eq!(adders.len(), adders_by_search(&netlist));
        for _ in 0..10 {
            let bits = random.bits(netlist.input_bits());
            let want = netlist.evaluate(std::slice::from_ref(&bits)).unwrap();
            assert_eq!(evaluate_with_adders(&netlist, &adders, &bits), want[0]);
        }
        all += adders.len();
    }
    assert!(all > 100, "{all}");

    // FlexSC's: of the tail of 238 products and 215 additions, and two of the addition that begins before it.
    let published = [
        ("adder6", 6),
        ("sort10x4", 106 * 4),
        ("hamming10", 20),
        ("hamming50", 100),
        ("mult8", 7 * 8),
        ("mult64", 63 * 64),
        ("matmul5x5x4", 125 * 12 + 100 * 4),
        ("matmul10x10x4", 238 * 12 + 215 * 4 + 2),
        ("matmul20x20x4", 8000 * 12 + 7600 * 4),
    ];
    for (name, adders) in published {
        let netlist = netlist(ROWS.iter().find(|row| row.name == name).unwrap());
        assert_eq!(full_adders(&netlist.wiring()).len(), adders, "{name}");
    }
    // The carry of one is an operand of the other's AND: no gate is in both.
    let gate = |kind, a, b| Gate::new(kind, Wire(a), Wire(b));
    let (xor, and) = (|a, b| gate(Kind::Xor, a, b), |a, b| gate(Kind::And, a, b));
    let [a, b, c, d] = [2, 3, 4, 5];
    let list = [
        [xor(a, c), xor(b, c), xor(a, 7), and(6, 7), xor(c, 9)],
        [xor(d, c), xor(10, d), and(10, 11), xor(c, 13), xor(12, 14)],
    ];
    let outputs = vec![Port { name: "y".into(), wires: [8, 12, 14, 15].map(Wire).to_vec() }];
    let netlist = Netlist::new([("x".into(), 4)], list.concat(), outputs).unwrap();
    let adders = full_adders(&netlist.wiring());
    assert_eq!((adders.len(), adders_by_search(&netlist)), (1, 2));
    for n in 0..16 {
        let bits: Vec<bool> = (0..4).map(|i| n >> i & 1 == 1).collect();
        let want = netlist.evaluate(std::slice::from_ref(&bits)).unwrap();
        assert_eq!(evaluate_with_adders(&netlist, &adders, &bits), want[0]);
    }
    // Ours: the lowest bit has no carry in, and the highest none out, or only what is made of both.
    let mut c = Builder::new();
    let (a, b) = (c.input("a", 16), c.input("b", 16));
    let sum = c.add_wide(&a, &b);
    c.output("sum", &sum);
    assert_eq!(full_adders(&c.finish().unwrap().wiring()).len(), 15);
    let of_ours = |name: &str| full_adders(&make(name).unwrap().wiring()).len();
    assert_eq!([of_ours("add64"), of_ours("mult8")], [62, 48]);
}

#[test]
fn subcircuits_of_one_shape_are_found() {
    for (name, members, gates) in
        [("matmul5x5x4", 25, 620), ("matmul10x10x8", 100, 5_080), ("matmul20x20x4", 400, 2_540)]
    {
        let alike = components(&netlist(ROWS.iter().find(|row| row.name == name).unwrap()).wiring());
        assert_eq!(alike.len(), 1, "{name}");
        assert_eq!(alike[0].members.len(), members, "{name}");
        assert!(alike[0].members.iter().all(|member| member.gates.len() == gates), "{name}");
    }
    // Copies of random netlists on inputs that they share, a gate of each in turn.
    let mut random = Random(3);
    let mut several = 0;
    for _ in 0..30 {
        let parts: Vec<Netlist> = (0..5)
            .map(|_| {
                let size = 1 + random.below(60);
                random_netlist(&mut random, size)
            })
            .collect();
        let copies: Vec<&Netlist> = (0..12).map(|_| &parts[random.below(5)]).collect();
        let inputs = 30;
        let moved: Vec<Vec<Wire>> = copies
            .iter()
            .map(|_| {
                (0..inputs).map(|i| Wire((2 + (i * 7 + random.below(inputs)) % inputs) as u32)).collect()
            })
            .collect();
        let mut list = Vec::new();
        let mut wires: Vec<Vec<Wire>> = vec![Vec::new(); copies.len()];
        for i in 0..copies.iter().map(|c| c.gates().len()).max().unwrap() {
            for (copy, netlist) in copies.iter().enumerate() {
                let Some(gate) = netlist.gates().get(i) else { continue };
                let first = netlist.first_gate_wire().index();
                let at = |w: Wire| match w.index() {
                    0 | 1 => w,
                    input if input < first => moved[copy][input - 2],
                    gate => wires[copy][gate - first],
                };
                let gate = Gate::new(gate.kind(), at(gate.a()), at(gate.b()));
                wires[copy].push(Wire((2 + inputs + list.len()) as u32));
                list.push(gate);
            }
        }
        let outputs =
            vec![Port { name: "y".into(), wires: wires.iter().map(|w| *w.last().unwrap()).collect() }];
        let netlist = Netlist::new([("x".into(), inputs)], list, outputs).unwrap();
        let alike = components(&netlist.wiring());
        check_components(&netlist, &alike.iter().map(|a| a.members.as_slice()).collect::<Vec<_>>());
        several += alike.iter().filter(|a| a.members.len() > 1 && a.members[0].gates.len() > 5).count();
    }
    assert!(several > 30, "{several}");
    assert_eq!(components(&Netlist::default().wiring()), []);
}

/// Every gate is in one subcircuit, no wire connects two, members do the same, and groups differ.
fn check_components(netlist: &Netlist, groups: &[&[blindcore_accel_rtl::sifo::circuits::Component]]) {
    let first = netlist.first_gate_wire();
    let mut part_of = HashMap::new();
    let members = groups.iter().copied().flatten();
    for (part, member) in members.clone().enumerate() {
        assert!(member.gates.is_sorted());
        member.gates.iter().for_each(|g| assert_eq!(part_of.insert(*g, part), None));
        // It is connected: from its first gate all are reached.
        let mut reached = vec![member.gates[0]];
        for _ in 0..member.gates.len() {
            for gate in &member.gates {
                let wires = |g: u32| {
                    let gate = netlist.gates()[g as usize];
                    [Wire(first.0 + g), gate.a(), gate.b()]
                        .into_iter()
                        .filter(|w| *w >= first)
                        .collect::<Vec<_>>()
                };
                let near = |g: u32| {
                    let reads = |one: u32, other: u32| wires(one)[1..].contains(&Wire(first.0 + other));
                    reads(g, *gate) || reads(*gate, g)
                };
                if !reached.contains(gate) && reached.iter().any(|g| near(*g)) {
                    reached.push(*gate);
                }
            }
        }
        assert_eq!(reached.len(), member.gates.len());
    }
    assert_eq!(part_of.len(), netlist.gates().len());
    // A gate's operands as places within its subcircuit.
    let form = |member: &blindcore_accel_rtl::sifo::circuits::Component| -> Vec<(Kind, [String; 2])> {
        let operand = |wire: Wire| match (wire.is_constant(), wire.0.checked_sub(first.0)) {
            (true, _) => format!("{wire:?}"),
            (_, Some(gate)) => format!("gate {}", member.gates.iter().position(|g| *g == gate).unwrap()),
            _ => format!("input {}", member.inputs.iter().position(|w| *w == wire).unwrap()),
        };
        let gates = member.gates.iter().map(|g| netlist.gates()[*g as usize]);
        gates.map(|gate| (gate.kind(), gate.reads().map(operand))).collect()
    };
    let forms: Vec<_> = groups.iter().map(|group| form(&group[0])).collect();
    for (group, shape) in groups.iter().zip(&forms) {
        assert!(group.iter().all(|member| form(member) == *shape));
        assert_eq!(forms.iter().filter(|other| *other == shape).count(), 1);
    }
    assert!(members.map(|member| member.gates.len()).sum::<usize>() == netlist.gates().len());
}

/// Values of all slots after a program in the clear.
fn in_the_clear(program: &Program, mut slots: Vec<bool>) -> Vec<bool> {
    for (xors, ands, _) in program.parts().iter().flat_map(|part| program.layers_of(*part)) {
        for s in xors {
            slots[s.out as usize] = slots[s.a as usize] ^ slots[s.b as usize];
        }
        for s in ands {
            slots[s.out as usize] = slots[s.a as usize] & slots[s.b as usize];
        }
    }
    slots
}

/// Lanes with copies compute every output that a gate makes, once.
#[test]
fn side_by_side_lanes_compute_all_outputs() {
    let mut random = Random(11);
    let mut netlists: Vec<Netlist> = (0..60).map(|i| random_netlist(&mut random, 1 + 7 * i)).collect();
    netlists.extend(["matmul5x5x4", "hamming30"].map(|name| make(name).unwrap()));
    let row = |name: &str| ROWS.iter().find(|row| row.name == name).unwrap();
    netlists.extend(["matmul5x5x4", "mult8"].map(|name| netlist(row(name))));
    let mut full_lanes = 0;
    for circuit in &netlists {
        let inputs: Vec<Vec<bool>> =
            circuit.inputs().iter().map(|p| p.wires.iter().map(|_| random.below(2) == 1).collect()).collect();
        let want: Vec<bool> = circuit.evaluate(&inputs).unwrap().concat();
        let mut values = vec![false, true];
        values.extend(inputs.concat());
        let mut made: HashMap<Wire, bool> = HashMap::new();
        for (lanes, most) in [(1, 1), (4, 2), (3, usize::MAX)] {
            made.clear();
            for share in side_by_side(&circuit.wiring(), lanes, most) {
                assert!(share.copies <= most && share.inputs.len() == lanes);
                full_lanes += usize::from(share.copies > 1);
                for lane in 0..lanes {
                    let mut slots = vec![false; share.program.slots()];
                    slots[1] = true;
                    for (i, wire) in share.inputs[lane].iter().enumerate() {
                        slots[2 + i] = values[wire.index()];
                    }
                    let slots = in_the_clear(&share.program, slots);
                    for (slot, wires) in &share.outputs {
                        if let Some(wire) = wires[lane] {
                            assert_eq!(made.insert(wire, slots[*slot as usize]), None, "{wire:?} twice");
                        }
                    }
                }
            }
            let outputs = circuit.outputs().iter().flat_map(|port| &port.wires);
            for (wire, want) in outputs.zip(&want) {
                let got = values.get(wire.index()).copied().or_else(|| made.get(wire).copied());
                assert_eq!(got, Some(*want), "{wire:?}");
            }
        }
    }
    assert!(full_lanes > 5, "{full_lanes}");
}

#[test]
fn folded_netlists_compute_the_same_in_no_more_gates() {
    let mut random = Random(12);
    let mut netlists: Vec<Netlist> = (0..60).map(|i| random_netlist(&mut random, 1 + 7 * i)).collect();
    netlists.push(netlist(ROWS.iter().find(|row| row.name == "mult16").unwrap()));
    for circuit in &netlists {
        let small = folded(circuit).unwrap();
        assert!(small.gates().len() <= circuit.gates().len() && small.ands() <= circuit.ands());
        for _ in 0..5 {
            let inputs: Vec<Vec<bool>> = circuit
                .inputs()
                .iter()
                .map(|p| p.wires.iter().map(|_| random.below(2) == 1).collect())
                .collect();
            assert_eq!(small.evaluate(&inputs).unwrap(), circuit.evaluate(&inputs).unwrap());
        }
    }
    // Two XORs of each bit of a product with 0 go, and so does what begins additions.
    let (small, circuit) = (folded(&netlists[60]).unwrap(), &netlists[60]);
    assert!(2 * small.gates().len() < 2 * circuit.gates().len() - 16 * 16 * 2, "{}", small.gates().len());
}
