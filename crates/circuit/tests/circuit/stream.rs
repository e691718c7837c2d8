//! Netlist files that are streamed compute what they compute in memory, with labels of live wires alone.

use std::os::unix::net::UnixStream;
use std::path::Path;

use blindcore_accel_cpu::Cpu;
use blindcore_circuit::builder::Builder;
use blindcore_circuit::circuit::Circuit;
use blindcore_circuit::formats::bristol;
use blindcore_circuit::netlist::{Netlist, Wire};
use blindcore_circuit::problems;
use blindcore_circuit::session::{self, Check, Inputs, Learns, Setup};

fn streamed(dir: &Path, netlist: &Netlist) -> Circuit {
    let path = dir.join("netlist.txt");
    bristol::write(netlist, std::io::BufWriter::new(std::fs::File::create(&path).unwrap())).unwrap();
    Circuit::stream(&path, dir).unwrap()
}

#[test]
fn a_byte_order_mark_is_not_content() {
    let dir = tempfile::tempdir().unwrap();
    let netlist = problems::make("adder6").unwrap();
    let plain = streamed(dir.path(), &netlist);
    let path = dir.path().join("netlist.txt");
    let marked = [&b"\xef\xbb\xbf"[..], &std::fs::read(&path).unwrap()].concat();
    std::fs::write(&path, marked).unwrap();
    assert_eq!(Circuit::stream(&path, dir.path()).unwrap().digest(), plain.digest());
}

/// Runs a circuit's programs in the clear.
pub(crate) fn run(circuit: &Circuit, inputs: &[Vec<bool>]) -> Vec<Vec<bool>> {
    let mut slots = vec![false; circuit.slots()];
    slots[1] = true;
    for (i, bits) in inputs.iter().enumerate() {
        circuit.input_slots(i).zip(bits).for_each(|(slot, bit)| slots[slot as usize] = *bit);
    }
    let mut ands = 0;
    for program in circuit.programs() {
        let program = program.unwrap();
        ands += program.ands() as u64;
        for part in program.parts() {
            for (xors, steps, _) in program.layers_of(*part) {
                for s in xors {
                    slots[s.out as usize] = slots[s.a as usize] ^ slots[s.b as usize];
                }
                for s in steps {
                    slots[s.out as usize] = slots[s.a as usize] & slots[s.b as usize];
                }
            }
        }
    }
    assert_eq!(ands, circuit.ands());
    let bits: Vec<bool> = circuit.output_slots().iter().map(|s| slots[*s as usize]).collect();
    circuit.cut_outputs(&bits)
}

fn random() -> impl FnMut(usize) -> usize {
    let mut seed = 7u64;
    move |n| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    }
}

#[test]
fn many_windows_and_wires_that_live_long() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = random();
    let mut c = Builder::new();
    let inputs = c.input("x", 70);
    let mut bits = inputs.clone();
    // 300,000 gates: mostly of near wires, some of very old ones, some of inputs and constants.
    while bits.len() < 300_000 {
        let mut pick = || match random(40) {
            0 => bits[random(bits.len())],
            1 => inputs[random(inputs.len())],
            2 => [Wire::ZERO, Wire::ONE][random(2)],
            _ => bits[bits.len() - 1 - random(bits.len().min(300))],
        };
        let (a, b) = (pick(), pick());
        let new = if random(3) == 0 { c.and(a, b) } else { c.xor(a, b) };
        bits.push(new);
    }
    c.output("late", &bits[bits.len() - 40..]);
    c.output("mixed", &[bits[100], inputs[3], Wire::ONE, Wire::ZERO, bits[150_000], bits[150_000]]);
    let netlist = c.finish().unwrap();
    assert!(netlist.gates().len() > 150_000);
    let circuit = streamed(dir.path(), &netlist);
    assert_eq!(circuit.ands(), netlist.ands() as u64);
    for _ in 0..3 {
        let value: Vec<bool> = (0..70).map(|_| random(2) == 1).collect();
        let values = std::slice::from_ref(&value);
        assert_eq!(run(&circuit, values), netlist.evaluate(values).unwrap());
    }
    // Nothing of the records is left where they lay, once the circuit is gone.
    drop(circuit);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn problems_streamed_and_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = random();
    for name in ["adder6", "mult64", "sort10x4", "aes128", "matmul10x10x4"] {
        let netlist = problems::make(name).unwrap();
        let (circuit, memory) = (streamed(dir.path(), &netlist), Circuit::new(&netlist));
        assert_ne!(circuit.digest(), memory.digest(), "a file is hashed as it is read");
        // By name and by file, in memory, they are one circuit.
        let mut file = Vec::new();
        bristol::write(&netlist, &mut file).unwrap();
        let read = Circuit::of(blindcore_circuit::formats::parse("read.txt", &file).unwrap());
        assert_eq!(read.digest(), memory.digest(), "{name}");
        assert!(read.programs().map(Result::unwrap).eq(memory.programs().map(Result::unwrap)), "{name}");
        let values: Vec<Vec<bool>> =
            netlist.inputs().iter().map(|p| (0..p.wires.len()).map(|_| random(2) == 1).collect()).collect();
        let want = netlist.evaluate(&values).unwrap();
        assert_eq!(run(&circuit, &values), want, "{name}");
        assert_eq!(run(&memory, &values), want, "{name}");
        // What is read twice is read the same.
        assert_eq!(run(&circuit, &values), want, "{name}");
    }
}

/// A circuit of millions of gates takes eight bytes for each, and labels of what is alive: no program is kept.
#[test]
fn large_circuits_are_compiled_while_they_run() {
    assert_eq!(size_of::<blindcore_circuit::netlist::Gate>(), 8);
    let netlist = problems::make("intersection512x48").unwrap();
    assert!(netlist.gates().len() > 1 << 20, "{}", netlist.gates().len());
    let list = |step: u64| -> Vec<bool> {
        (0..512u64).flat_map(|i| (0..48).map(move |bit| (i * step) >> bit & 1 == 1)).collect()
    };
    let values = [list(2), list(3)];
    let want = netlist.evaluate(&values).unwrap();
    let (gates, bits) = (netlist.gates().len(), netlist.input_bits());
    let circuit = Circuit::of(netlist);
    assert!(circuit.slots() < 4 * bits + (1 << 16) && circuit.slots() < gates / 4, "{}", circuit.slots());
    assert_eq!(run(&circuit, &values), want);
    assert_eq!(want[0].iter().rev().fold(0, |n, bit| n << 1 | u32::from(*bit)), 171);
    // Who stops in the middle leaves nothing behind that waits.
    assert!(circuit.programs().nth(3).is_some());
    assert!(circuit.programs().count() > circuit.ands() as usize >> 13);
}

#[test]
fn two_parties_stream_in_rounds() {
    let dir = tempfile::tempdir().unwrap();
    // (a, b) becomes (b, a + b + x), where x stays.
    let mut c = Builder::new();
    let (a, b, x) = (c.input("a", 24), c.input("b", 24), c.input("x", 24));
    let sum = c.add(&a, &b);
    let sum = c.add(&sum, &x);
    c.output("a", &b);
    c.output("b", &sum);
    let circuit = streamed(dir.path(), &c.finish().unwrap()).in_rounds(30).unwrap();
    let device = Cpu::with_threads("cpu", 2).unwrap();
    let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check: Check::None };
    let bits = |n: u32| (0..24).map(|i| n >> i & 1 == 1).collect::<Vec<_>>();
    let (mut left, mut right) = UnixStream::pair().unwrap();
    let outcome = std::thread::scope(|scope| {
        let inputs = Inputs::new().with(0, bits(0));
        let garbler = scope.spawn(move || session::garble(&mut left, setup, &inputs, &mut ()).unwrap());
        let inputs = Inputs::new().with(1, bits(1)).with(2, bits(3));
        let evaluated = session::evaluate(&mut right, setup, &inputs, &mut ()).unwrap();
        assert_eq!(garbler.join().unwrap().outputs, evaluated.outputs);
        evaluated
    });
    let (mut a, mut b) = (0u32, 1u32);
    for _ in 0..30 {
        (a, b) = (b, (a + b + 3) & 0xff_ffff);
    }
    assert_eq!(outcome.outputs.unwrap(), [bits(a), bits(b)]);
}

#[test]
fn what_is_no_netlist_is_refused_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.txt");
    std::fs::write(&path, "2 4\n1 2\n1 1\n\n2 1 0 1 2 AND\n2 1 2 9 3 XOR\n").unwrap();
    let error = Circuit::stream(&path, dir.path()).unwrap_err().to_string();
    assert!(error.contains("bad.txt") && error.contains('6'), "{error}");
    assert!(Circuit::stream(&dir.path().join("none.txt"), dir.path()).is_err());
    std::fs::write(&path, "1 3\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n").unwrap();
    let nowhere = Circuit::stream(&path, &dir.path().join("none")).unwrap_err().to_string();
    assert!(nowhere.contains("none can't keep") && nowhere.contains("TMPDIR"), "{nowhere}");
}

#[test]
fn what_is_not_streamed_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other");
    for (text, want) in [
        (
            "// from yosys\nmodule m(a, y);\n",
            ", line 2: it is in Verilog, and --stream takes Bristol formats alone; write one of it with `blindcore circuit convert`",
        ),
        ("", ", line 1: there is nothing in it; give a file in Bristol Fashion"),
        ("\n\n?", ", line 3: a netlist doesn't start with '?'; give a file"),
        ("0 1\n", ", line 1: the file ends before the inputs' widths"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Circuit::stream(&path, dir.path()).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let nothing = bristol::Reader::new("nothing", &b""[..], 0).map(drop).unwrap_err().to_string();
    assert!(nothing.starts_with("nothing, line 1: the file ends before"), "{nothing}");
    let name = blindcore_circuit::named::stream("mult8", dir.path()).unwrap_err().to_string();
    assert_eq!(
        name,
        "mult8 is a circuit's name, and --stream takes a file; `blindcore circuit make mult8 --out FILE` writes one"
    );
    assert!(
        blindcore_circuit::named::stream("none.txt", dir.path())
            .unwrap_err()
            .to_string()
            .contains("can't be read")
    );
}

/// Inputs have slots beside those of live wires: more of them than a session takes are refused before any is numbered.
#[test]
fn more_inputs_than_a_session_takes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.txt");
    let bits = (1u32 << 27) + 1;
    std::fs::write(&path, format!("1 {}\n1 {bits}\n1 1\n\n2 1 0 1 {bits} XOR\n", bits + 1)).unwrap();
    // As long as such a file may be, of holes.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 28).unwrap();
    let error = Circuit::stream(&path, dir.path()).map(drop).unwrap_err().to_string();
    assert!(error.contains("134217729") && error.contains("134217728"), "{error}");
}
