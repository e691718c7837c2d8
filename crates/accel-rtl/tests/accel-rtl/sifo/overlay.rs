//! SIFO's overlay beside the definition and beside the model of its clocks.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use blindcore_accel::garble::reference::{self, Side};
use blindcore_accel::garble::{GarblingScheme, Label, Labels, Offset, Program, ProgramBuilder};
use blindcore_accel_rtl::sifo::boards::Cut;
use blindcore_accel_rtl::sifo::circuits::{self, Share};
use blindcore_accel_rtl::sifo::half_gates::{self, HalfGates};
use blindcore_accel_rtl::sifo::layers::{self, Layers};
use blindcore_accel_rtl::sifo::memory::{Assignment, Policy};
use blindcore_accel_rtl::sifo::{CellCounts, Clocks, Order, Overlay, OverlaySettings, Registers};
use blindcore_circuit::problems::{
    self,
    published::{self, ROWS},
};

/// The chip; none where it has not been built, unless BLINDCORE_RTL says that it has.
fn open(settings: OverlaySettings) -> Option<Overlay> {
    match (Overlay::with_settings("rtl:sifo", settings), std::env::var_os("BLINDCORE_RTL")) {
        (Ok(chip), _) => Some(chip),
        (Err(e), Some(_)) => panic!("{e}"),
        (Err(e), None) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

/// The same sequence in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    fn label(&mut self) -> Label {
        ((Label::from(self.next()) << 40) ^ Label::from(self.next())) & ((1 << 80) - 1)
    }
}

/// Layers of gates that read anything written before them; every gate writes a slot of its own.
fn random_program(random: &mut Random, gates: usize) -> Program {
    let inputs = 1 + random.below(30);
    let mut program = ProgramBuilder::new(inputs + gates);
    let mut known = inputs;
    let mut slot = inputs as u32;
    while (slot as usize) < inputs + gates {
        let ands = 1 + random.below(40);
        for _ in 0..ands.min(inputs + gates - slot as usize) {
            let (a, b) = (random.below(known) as u32, random.below(known) as u32);
            if random.below(4) == 0 {
                program.and(slot, a, b).unwrap();
            } else {
                program.xor(slot, a, b).unwrap();
            }
            slot += 1;
        }
        program.end_layer();
        known = slot as usize;
    }
    program.finish()
}

/// Garbles on the chip, compares every table and label with the definition, and gives the chip's clocks.
fn compare(chip: &Overlay, program: &Program, random: &mut Random) -> Clocks {
    let scheme = GarblingScheme::InsecureSifo;
    let (mut want, mut got) = (Labels::new(program.slots(), 1), Labels::new(program.slots(), 1));
    for slot in 0..program.slots() as u32 {
        let label = random.label();
        want.set(slot, 0, label);
        got.set(slot, 0, label);
    }
    let (offset, first) = (Offset::new(random.label()), random.next());
    let mut want_tables = vec![0; program.ands() * scheme.table_bytes()];
    let mut tables = vec![0; want_tables.len()];
    reference::run(&scheme, program, first, &mut want, Side::Garble(&offset, &mut want_tables));
    let clocks = chip.run(program, &offset, first, 0, &mut got, &mut tables).unwrap();
    assert!(tables == want_tables, "tables");
    for slot in 0..program.slots() as u32 {
        assert_eq!(got.get(slot, 0), want.get(slot, 0), "slot {slot}");
    }
    clocks
}

/// A thousand random netlists: tables and labels to the bit. Every tenth also takes the clocks that the model says.
#[test]
fn random_netlists_are_garbled_to_the_bit_and_in_the_clocks_of_the_model() {
    let base = OverlaySettings { ddr_ns: 40.0, sync_ns: 50.0, register_ns: 10.0, ..OverlaySettings::PAPER };
    let Some(chip) = open(base) else { return };
    let mut random = Random(1);
    for number in 0..1000 {
        let gates = 1 + random.below(if number % 10 == 0 { 600 } else { 80 });
        let program = random_program(&mut random, gates);
        if number % 10 > 0 {
            compare(&chip, &program, &mut random);
            continue;
        }
        let settings = OverlaySettings {
            cells: CellCounts {
                ands: 1 + random.below(15),
                xors: Some(1 + random.below(15)).filter(|xors| *xors > 2),
            },
            block_ram: [0, 50, 1 << 16][random.below(3)],
            order: Order {
                whole_batches: random.below(2) == 0,
                ands_in_turn: random.below(2) == 0,
                waits_for_xors: random.below(2) == 0,
                and_accesses: [0, 0, 8][random.below(3)],
            },
            registers: [Registers::Two, Registers::Three][random.below(2)],
            register_ns: [5.0, 33.3, 50.0][random.below(3)],
            sync_ns: [0.0, 1500.0][random.below(2)],
            ddr_ns: [5.0, 180.0, 333.0][random.below(3)],
            ..OverlaySettings::PAPER
        };
        let fresh = open(settings).expect("it was there before");
        let clocks = compare(&fresh, &program, &mut random);
        assert_eq!(clocks, Overlay::estimate(&settings, &program), "{settings:?}");
    }
}

#[test]
fn what_the_chip_has_not_is_refused() {
    let refused = |settings: OverlaySettings, words: &[&str]| {
        let error = Overlay::with_settings("rtl:sifo", settings).err().expect("refused").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let Some(chip) = open(OverlaySettings::PAPER) else { return };
    let cells = CellCounts { ands: 16, xors: Some(15) };
    refused(OverlaySettings { cells, ..OverlaySettings::PAPER }, &["15 AND cells", "16"]);
    let cells = CellCounts { ands: 15, xors: Some(0) };
    refused(OverlaySettings { cells, ..OverlaySettings::PAPER }, &["15 XOR cells"]);
    refused(
        OverlaySettings { block_ram: (1 << 16) + 1, ..OverlaySettings::PAPER },
        &["65536 places", "65537"],
    );
    // More wires than two registers address.
    let mut wide = ProgramBuilder::new((1 << 20) + (1 << 16) + 1);
    wide.xor(0, 1, 2).unwrap();
    let error = chip.commands(&wide.finish()).unwrap_err().to_string();
    assert!(error.contains("1114113") && error.contains("1114112"), "{error}");
    assert!(Overlay::open("rtl:other").err().unwrap().to_string().contains("rtl:sifo"));
}

/// Bits of all slots in the end.
fn in_the_clear(program: &Program, mut bits: Vec<bool>) -> Vec<bool> {
    for (xors, ands, _) in program.parts().iter().flat_map(|part| program.layers_of(*part)) {
        for step in xors {
            bits[step.out as usize] = bits[step.a as usize] ^ bits[step.b as usize];
        }
        for step in ands {
            bits[step.out as usize] = bits[step.a as usize] & bits[step.b as usize];
        }
    }
    bits
}

/// One program on one, two and three boards: the tables of one device, whatever travels.
#[test]
fn several_boards_garble_what_one_does() {
    let settings = OverlaySettings { block_ram: 64, ..OverlaySettings::INSTANT };
    let boards: Vec<Overlay> = (0..3).map_while(|_| open(settings)).collect();
    if boards.is_empty() {
        return;
    }
    let mut random = Random(5);
    let mut moved = [0; 3];
    for number in 0..40 {
        let gates = 1 + random.below(300);
        let program = random_program(&mut random, gates);
        let count = 1 + number % 3;
        let cut = Cut::new(&program, count);
        let scheme = GarblingScheme::InsecureSifo;
        let mut labels = Labels::new(program.slots(), 1);
        let mut whole = Labels::new(cut.whole().slots(), 1);
        for slot in 0..program.slots() as u32 {
            labels.set(slot, 0, random.label());
        }
        for (value, slot) in (0..).zip(cut.inputs()) {
            whole.set(value, 0, labels.get(*slot, 0));
        }
        let (offset, first) = (Offset::new(random.label()), random.next());
        let mut want = vec![0; program.ands() * scheme.table_bytes()];
        let mut tables = vec![0; want.len()];
        reference::run(&scheme, cut.whole(), first, &mut whole, Side::Garble(&offset, &mut want));
        let taken = cut.run(&boards[..count], &offset, first, &mut labels, &mut tables).unwrap();
        assert!(tables == want, "tables on {count} boards");
        // What is cut computes what it was cut from, and every label is where it is said to be.
        let bits: Vec<bool> = (0..program.slots()).map(|_| random.below(2) == 1).collect();
        let mut of_whole = vec![false; cut.whole().slots()];
        for (value, slot) in of_whole.iter_mut().zip(cut.inputs()) {
            *value = bits[*slot as usize];
        }
        let (clear, of_whole) = (in_the_clear(&program, bits), in_the_clear(cut.whole(), of_whole));
        for (slot, value) in cut.outputs() {
            assert_eq!(clear[*slot as usize], of_whole[*value as usize], "slot {slot}");
            assert_eq!(labels.get(*slot, 0), whole.get(*value, 0), "slot {slot} on {count} boards");
        }
        assert!(!cut.outputs().is_empty());
        let gates: u64 = taken.boards.iter().map(|clocks| clocks.gates).sum();
        assert_eq!(gates, program.steps().len() as u64);
        assert!(taken.cycles <= taken.boards.iter().map(|clocks| clocks.cycles).sum());
        assert_eq!(taken.bytes_moved, 10 * cut.labels_moved());
        moved[count - 1] += cut.labels_moved();
    }
    assert!(moved[0] == 0 && moved[1] > 0 && moved[2] > moved[1], "{moved:?}");
}

/// Every row of the paper's tables up to the 64-bit multiplier, with the paper's settings: tables and labels to the bit, in
/// the clocks of the model. (Table 11 itself is `blindcore repro sifo`.)
#[test]
fn the_papers_problems_are_garbled_to_the_bit() {
    if open(OverlaySettings::PAPER).is_none() {
        return;
    }
    let cells = layers::Cells::new(15, Some(15)).unwrap();
    let mut random = Random(9);
    for row in &ROWS[..9] {
        let netlist = published::netlist(row);
        let layers = Layers::new(&netlist.wiring());
        let capacity = OverlaySettings::PAPER.block_ram;
        let assignment = Assignment::new(&netlist.wiring(), &layers, cells, Policy::DirectlyUsed, capacity);
        let program = circuits::program(&netlist.wiring(), &layers, &assignment).unwrap().program;
        let chip = open(OverlaySettings::PAPER).expect("it was there before");
        let clocks = compare(&chip, &program, &mut random);
        assert_eq!(clocks, Overlay::estimate(&OverlaySettings::PAPER, &program), "{}", row.name);
    }
}

/// The same problems on today's chip, in lanes: tables and wanted labels to the bit.
#[test]
fn the_papers_problems_on_todays_chip() {
    let chip = match HalfGates::with_settings("rtl:sifo-half-gates", half_gates::HalfGatesSettings::BOARD) {
        Ok(chip) => chip,
        Err(e) => {
            assert!(std::env::var_os("BLINDCORE_RTL").is_none(), "{e}");
            eprintln!("skipped: {e}");
            return;
        }
    };
    let lanes = chip.build().lanes;
    let mut random = Random(10);
    let row = |name: &str| published::netlist(ROWS.iter().find(|row| row.name == name).expect("a row"));
    let mut netlists: Vec<_> =
        ["adder6", "hamming30", "mult8", "mult64", "sort10x4", "matmul5x5x4"].map(|n| (n, row(n))).into();
    // Ours have their adders' operands in other orders; so have those of which gates were folded away.
    netlists.extend(["mult8", "hamming50", "sort10x4", "mult32"].map(|n| (n, problems::make(n).unwrap())));
    netlists.push(("mult16, folded", blindcore_circuit::folded(&row("mult16")).unwrap()));
    for (name, netlist) in netlists {
        for Share { program, outputs, .. } in circuits::side_by_side(&netlist.wiring(), lanes, 3) {
            let scheme = GarblingScheme::HalfGates { key: [random.next() as u8; 16] };
            let GarblingScheme::HalfGates { key } = &scheme else { unreachable!() };
            let (mut want, mut got) =
                (Labels::new(program.slots(), lanes), Labels::new(program.slots(), lanes));
            for slot in 0..program.slots() as u32 {
                for lane in 0..lanes {
                    let label = random.label() << 48 ^ random.label();
                    want.set(slot, lane, label);
                    got.set(slot, lane, label);
                }
            }
            let (offset, first) = (Offset::new(random.label()), random.next());
            let mut want_tables = vec![0; program.ands() * lanes * scheme.table_bytes()];
            let mut tables = vec![0; want_tables.len()];
            reference::run(&scheme, &program, first, &mut want, Side::Garble(&offset, &mut want_tables));
            let wanted: Vec<u32> = outputs.iter().map(|(slot, _)| *slot).collect();
            let report =
                chip.garble_wanted(key, &program, &wanted, &offset, first, &mut got, &mut tables).unwrap();
            assert!(tables == want_tables, "{name}: tables");
            for slot in wanted {
                for lane in 0..lanes {
                    assert_eq!(got.get(slot, lane), want.get(slot, lane), "{name}: slot {slot}");
                }
            }
            let garbled = program.ands() as u64 - report.full_adders;
            assert!(report.clocks.gates >= garbled && report.clocks.gates >= report.commands, "{report:?}");
        }
    }
}
