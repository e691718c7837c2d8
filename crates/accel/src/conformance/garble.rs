//! The suite of the garble operation.

use super::Random;
use crate::garble::reference::{self, Side};
use crate::garble::{GarblingScheme, Label, Labels, Offset, Program, ProgramBuilder};
use crate::{Device, Error, Operation};

/// Random programs of every shape, on one instance and on many, under every scheme that the device has: tables and
/// labels as in the definition, bit for bit, and evaluation opens what plain evaluation computes. Where a device has one
/// of the two slots only, or has a scheme in one of them only, the other side is the definition's. Schemes that its
/// capabilities don't name must be refused. Returns how many gates were compared under each scheme, in the order half gates, three halves, SIFO's.
///
/// # Panics
/// The device differs, or takes what it must refuse.
pub fn garble(device: &Device) -> [usize; 3] {
    let mut random = Random(0x61_7262_6c65);
    let key = std::array::from_fn(|i| (random.next() >> (i % 8)) as u8);
    let schemes = [
        GarblingScheme::HalfGates { key },
        GarblingScheme::ThreeHalves { key },
        GarblingScheme::InsecureSifo,
    ];
    let gates = schemes.map(|scheme| {
        let mut gates = 0;
        if !slots_tell_the_truth(device, &scheme) {
            return gates;
        }
        refusals(device, &scheme, &mut random);
        // Narrow, wide and empty layers; one part and many; more ANDs than a thread's share.
        let shapes =
            [(1, 1, 1, 0), (1, 30, 1, 1), (1, 8, 40, 20), (7, 5, 9, 30), (40, 3, 13, 5), (1, 1, 9000, 500)];
        for (parts, layers, most_ands, most_xors) in shapes {
            for instances in [1, 2, 3, 4, 5, 16, 33] {
                if instances > 1 && most_ands > 1000 && instances != 5 {
                    continue;
                }
                let program = random_program(&mut random, parts, layers, most_ands, most_xors);
                gates += compare(device, &scheme, &program, instances, &mut random);
            }
        }
        gates
    });
    assert_ne!(gates, [0; 3], "{} has no scheme", device.name());
    gates
}

/// Whether a device garbles or evaluates under a scheme, by what its slots say; it is asked, and must do so.
fn slots_tell_the_truth(device: &Device, scheme: &GarblingScheme) -> bool {
    let slots = device.slots();
    let garble = slots.garble.as_ref().map(|slot| slot.capabilities());
    let evaluate = slots.evaluate.as_ref().map(|slot| slot.capabilities());
    let (garbled, evaluated) = (device.garble(scheme).err(), device.evaluate(scheme).err());
    for (operation, said, refused) in
        [(Operation::Garble, garble, garbled), (Operation::Evaluate, evaluate, evaluated)]
    {
        let as_said = match (&said, &refused) {
            (None, Some(Error::Unsupported { .. })) => true,
            (Some(said), None) => said.schemes.contains(&scheme.kind()) && said.lanes > 0,
            (Some(said), Some(Error::GarblingScheme { .. })) => !said.schemes.contains(&scheme.kind()),
            _ => false,
        };
        assert!(as_said, "{} {operation} {scheme:?}: said {said:?}, did {refused:?}", device.name());
    }
    device.garble(scheme).is_ok() || device.evaluate(scheme).is_ok()
}

/// Slots that every part reads and none writes.
const SHARED: usize = 24;
/// Slots of a part's own.
const OWN: usize = 64;

fn random_program(
    random: &mut Random,
    parts: usize,
    layers: usize,
    most_ands: usize,
    most_xors: usize,
) -> Program {
    let own = OWN.max(2 * most_ands);
    let mut program = ProgramBuilder::new(SHARED + parts * own);
    for part in 0..parts {
        let first = SHARED + part * own;
        // Written so far, in this part.
        let mut written: Vec<u32> = Vec::new();
        for _ in 0..layers {
            let pick = |random: &mut Random, written: &[u32]| {
                let i = random.below(SHARED + written.len());
                if i < SHARED { i as u32 } else { written[i - SHARED] }
            };
            for _ in 0..random.below(most_xors + 1) {
                let (a, b) = (pick(random, &written), pick(random, &written));
                let out = (first + random.below(own)) as u32;
                program.xor(out, a, b).expect("slots are its own");
                if !written.contains(&out) {
                    written.push(out);
                }
            }
            // ANDs read what was written before and write elsewhere, or over their own operand.
            let mut free: Vec<u32> =
                (first as u32..(first + own) as u32).filter(|slot| !written.contains(slot)).collect();
            let mut new = Vec::new();
            for _ in 0..1 + random.below(most_ands) {
                let (a, b) = (pick(random, &written), pick(random, &written));
                let Some(out) = free.pop() else { break };
                program.and(out, a, b).expect("slots are its own");
                new.push(out);
            }
            program.end_layer();
            if most_ands == 1 && !written.is_empty() && random.below(2) == 0 {
                let over = written[random.below(written.len())];
                program.and(over, over, pick(random, &written)).expect("an AND may write its operand");
                program.end_layer();
            }
            written.extend(new);
            if written.len() > own / 2 {
                written.truncate(own / 4);
            }
        }
        program.end_part();
    }
    program.finish()
}

fn compare(
    device: &Device,
    scheme: &GarblingScheme,
    program: &Program,
    instances: usize,
    random: &mut Random,
) -> usize {
    let mask = Label::MAX >> (128 - scheme.label_bits());
    let mut label = || (Label::from(random.next()) << 64 | Label::from(random.next())) & mask;
    let offset = Offset::new(label());
    let first_gate = [0, 1, (1 << 40) - 3][label() as usize % 3];
    let rows = program.ands() * instances * scheme.table_bytes();
    let what = format!("{} {scheme:?} {instances} instances, {} ANDs", device.name(), program.ands());

    let fresh = || Labels::new(program.slots() + 3, instances);
    let (mut wanted, mut got, mut active) = (fresh(), fresh(), fresh());
    let mut zeros = Vec::new();
    let mut values = vec![vec![false; instances]; wanted.slots()];
    for slot in 0..wanted.slots() {
        for instance in 0..instances {
            let zero = label();
            if instance == 0 {
                zeros.push(zero);
            }
            values[slot][instance] = label() & 1 == 1;
            wanted.set(slot as u32, instance, zero);
            got.set(slot as u32, instance, zero);
            let value = Label::from(values[slot][instance]).wrapping_neg() & offset.label();
            active.set(slot as u32, instance, zero ^ value);
        }
    }
    let (mut want_tables, mut tables) = (vec![0u8; rows], vec![0xa5u8; rows]);
    reference::run(scheme, program, first_gate, &mut wanted, Side::Garble(&offset, &mut want_tables));
    let garble = device.garble(scheme).ok();
    match &garble {
        Some(garble) => {
            let cost = garble.garble(program, &offset, first_gate, &mut got, &mut tables).expect(&what);
            assert_eq!(cost.and_gates, (program.ands() * instances) as u64, "{what}");
        }
        None => reference::run(scheme, program, first_gate, &mut got, Side::Garble(&offset, &mut tables)),
    }
    assert!(tables == want_tables, "tables: {what}");
    match device.evaluate(scheme) {
        Ok(evaluate) => {
            evaluate.evaluate(program, first_gate, &mut active, &tables).expect(&what);
        }
        Err(_) => reference::run(scheme, program, first_gate, &mut active, Side::Evaluate(&tables)),
    }

    if let (1, Some(garble)) = (instances, &garble) {
        // Piece by piece it is the same.
        let mut labels = fresh();
        for slot in 0..labels.slots() as u32 {
            labels.set(slot, 0, zeros[slot as usize]);
        }
        let most = 1 + program.ands() / 3;
        let mut done = 0;
        for piece in program.pieces(most) {
            assert!(piece.ands() <= most, "{what}");
            let rows = &mut tables[done * scheme.table_bytes()..][..piece.ands() * scheme.table_bytes()];
            rows.fill(0);
            garble.garble(&piece, &offset, first_gate + done as u64, &mut labels, rows).expect(&what);
            done += piece.ands();
        }
        assert!(tables == want_tables, "tables in pieces: {what}");
    }
    for instance in 0..instances {
        for part in program.parts() {
            for (xors, ands, _) in program.layers_of(*part) {
                for s in xors {
                    values[s.out as usize][instance] =
                        values[s.a as usize][instance] ^ values[s.b as usize][instance];
                }
                for s in ands {
                    values[s.out as usize][instance] =
                        values[s.a as usize][instance] & values[s.b as usize][instance];
                }
            }
        }
        for slot in 0..wanted.slots() as u32 {
            let zero = wanted.get(slot, instance);
            assert!(got.get(slot, instance) == zero, "label of slot {slot}: {what}");
            let value = Label::from(values[slot as usize][instance]).wrapping_neg() & offset.label();
            assert!(active.get(slot, instance) == zero ^ value, "active label of slot {slot}: {what}");
        }
    }
    program.ands() * instances
}

fn refusals(device: &Device, scheme: &GarblingScheme, random: &mut Random) {
    let program = random_program(random, 1, 4, 9, 9);
    let offset = Offset::new(1);
    let mut tables = vec![0u8; program.ands() * scheme.table_bytes()];
    let mut few = Labels::new(program.slots() - 1, 1);
    let mut labels = Labels::new(program.slots(), 1);
    let mut two = Labels::new(program.slots(), 2);
    let last = (1 << 63) - program.ands() as u64;
    if let Ok(operation) = device.garble(scheme) {
        let garble = |first, labels: &mut Labels, tables: &mut [u8]| {
            operation.garble(&program, &offset, first, labels, tables)
        };
        assert!(garble(0, &mut few, &mut tables).is_err(), "too few slots");
        assert!(garble(0, &mut labels, &mut tables[1..]).is_err(), "too short tables");
        assert!(garble(0, &mut two, &mut tables).is_err(), "tables of one instance for two");
        garble(last, &mut labels, &mut tables).expect("the last gate numbers");
        assert!(garble(last + 1, &mut labels, &mut tables).is_err(), "2^63 gates");
    }
    if let Ok(operation) = device.evaluate(scheme) {
        let evaluate =
            |first, labels: &mut Labels, tables: &[u8]| operation.evaluate(&program, first, labels, tables);
        assert!(evaluate(0, &mut few, &tables).is_err(), "too few slots");
        assert!(evaluate(0, &mut labels, &tables[1..]).is_err(), "too short tables");
        assert!(evaluate(0, &mut two, &tables).is_err(), "tables of one instance for two");
        assert!(evaluate(last + 1, &mut labels, &tables).is_err(), "2^63 gates");
    }
}
