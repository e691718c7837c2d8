//! Two parties over real sockets.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use blindcore_accel_cpu::Cpu;
use blindcore_circuit::builder::Builder;
use blindcore_circuit::circuit::Circuit;
use blindcore_circuit::netlist::{Netlist, Wire};
use blindcore_circuit::session::{self, Check, Inputs, Learns, Outcome, SessionError, Setup};

fn bits(value: u64, width: usize) -> Vec<bool> {
    (0..width).map(|i| i < 64 && value >> i & 1 == 1).collect()
}

/// `a * b + c`, with some outputs that are constants and inputs themselves.
fn sample() -> Netlist {
    let mut c = Builder::new();
    let (a, b, x) = (c.input("a", 8), c.input("b", 8), c.input("x", 8));
    let mut sum = x.clone();
    for (i, bit) in b.iter().enumerate() {
        let mut carry = Wire::ZERO;
        for j in i..8 {
            let product = c.and(*bit, a[j - i]);
            let (half, both) = (c.xor(sum[j], product), c.and(sum[j], product));
            let over = c.and(half, carry);
            sum[j] = c.xor(half, carry);
            carry = c.or(both, over);
        }
    }
    c.output("sum", &sum);
    c.output("same", &[a[0], b[3], Wire::ONE, Wire::ZERO, x[7]]);
    c.finish().unwrap()
}

struct Party {
    learns: Learns,
    check: Check,
    inputs: Inputs,
    threads: usize,
}

fn party(inputs: Inputs) -> Party {
    Party { learns: Learns::Both, check: Check::None, inputs, threads: 1 }
}

fn one_side(
    circuit: &Circuit,
    party: &Party,
    mut channel: impl Read + Write,
    garbles: bool,
) -> Result<Outcome, SessionError> {
    let device = Cpu::with_threads("cpu", party.threads).unwrap();
    let setup = Setup { circuit, device: &device, learns: party.learns, check: party.check };
    match garbles {
        true => session::garble(&mut channel, setup, &party.inputs, &mut ()),
        false => session::evaluate(&mut channel, setup, &party.inputs, &mut ()),
    }
}

fn run(
    circuit: &Circuit,
    garbler: &Party,
    evaluator: &Party,
) -> (Result<Outcome, SessionError>, Result<Outcome, SessionError>) {
    let (left, right) = UnixStream::pair().unwrap();
    for end in [&left, &right] {
        end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    std::thread::scope(|scope| {
        let garbled = scope.spawn(|| one_side(circuit, garbler, left, true));
        let evaluated = one_side(circuit, evaluator, right, false);
        (garbled.join().unwrap(), evaluated)
    })
}

#[test]
fn every_split_of_inputs_and_every_choice_of_who_learns() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let values = [bits(201, 8), bits(119, 8), bits(64, 8)];
    let want = netlist.evaluate(&values).unwrap();
    for split in 0..8 {
        for learns in [Learns::Both, Learns::Garbler, Learns::Evaluator] {
            for check in [Check::None, Check::Malicious] {
                let own = |side| {
                    (0..3)
                        .filter(|i| split >> i & 1 == side)
                        .fold(Inputs::new(), |inputs, i| inputs.with(i, values[i].clone()))
                };
                let of = |side| Party { learns, check, inputs: own(side), threads: 2 };
                let (garbled, evaluated) = run(&circuit, &of(0), &of(1));
                let (garbled, evaluated) = (garbled.unwrap(), evaluated.unwrap());
                assert_eq!(garbled.outputs, (learns != Learns::Evaluator).then(|| want.clone()));
                assert_eq!(evaluated.outputs, (learns != Learns::Garbler).then(|| want.clone()));
                assert_eq!(garbled.ands, circuit.ands());
                assert_eq!(evaluated.table_bytes, 32 * circuit.ands());
            }
        }
    }
}

#[test]
fn rounds_feed_results_back() {
    // (a, b) -> (b, a + b) over 16 bits: Fibonacci.
    let mut c = Builder::new();
    let (a, b) = (c.input("a", 16), c.input("b", 16));
    let (mut carry, mut sum) = (Wire::ZERO, Vec::new());
    for i in 0..16 {
        let half = c.xor(a[i], b[i]);
        sum.push(c.xor(half, carry));
        let differ = c.xor(a[i], carry);
        let change = c.and(half, differ);
        carry = c.xor(a[i], change);
    }
    c.output("a", &b);
    c.output("b", &sum);
    let circuit = Circuit::new(&c.finish().unwrap()).in_rounds(20).unwrap();
    let (garbled, _) =
        run(&circuit, &party(Inputs::new().with(0, bits(0, 16))), &party(Inputs::new().with(1, bits(1, 16))));
    assert_eq!(garbled.unwrap().outputs.unwrap(), [bits(6765, 16), bits(10946, 16)]);
}

#[test]
fn what_differs_is_said_on_both_sides() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let all = || (0..3).fold(Inputs::new(), |inputs, i| inputs.with(i, bits(1, 8)));
    let (garbled, evaluated) = run(&circuit, &party(all()), &party(Inputs::new().with(1, bits(0, 8))));
    for error in [garbled.unwrap_err(), evaluated.unwrap_err()] {
        assert!(error.to_string().contains("input 1 (\"b\") is supplied by both parties"), "{error}");
    }
    let (garbled, _) = run(&circuit, &party(Inputs::new().with(0, bits(0, 8))), &party(Inputs::new()));
    assert!(garbled.unwrap_err().to_string().contains("supplied by nobody"));

    let other = Party { learns: Learns::Garbler, ..party(Inputs::new()) };
    let (garbled, evaluated) = run(&circuit, &party(all()), &other);
    for error in [garbled.unwrap_err(), evaluated.unwrap_err()] {
        assert!(error.to_string().contains("--reveal"), "{error}");
    }
    let other = Party { check: Check::Malicious, ..party(Inputs::new()) };
    let (garbled, _) = run(&circuit, &party(all()), &other);
    assert!(garbled.unwrap_err().to_string().contains("--check-transfers"));

    let wide = Party { inputs: Inputs::new().with(0, bits(0, 9)), ..party(Inputs::new()) };
    let (garbled, _) = run(&circuit, &wide, &party(Inputs::new()));
    assert!(matches!(garbled, Err(SessionError::InputWidth { got: 9, want: 8, .. })));
    let beyond = Party { inputs: Inputs::new().with(3, bits(0, 8)), ..party(Inputs::new()) };
    let (garbled, _) = run(&circuit, &beyond, &party(Inputs::new()));
    assert!(matches!(garbled, Err(SessionError::NoSuchInput { input: 3, inputs: 3 })));

    let longer = circuit.clone().in_rounds(1).unwrap_err();
    assert!(longer.to_string().contains("\"same\" has 5 bits"), "{longer}");
}

#[test]
fn a_silent_or_strange_peer_ends_the_session() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let all = (0..3).fold(Inputs::new(), |inputs, i| inputs.with(i, bits(1, 8)));
    let alone = |speak: &[u8], close: bool| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        theirs.write_all(speak).unwrap();
        let kept = (!close).then_some(theirs);
        let error = one_side(&circuit, &party(all.clone()), ours, true).unwrap_err();
        drop(kept);
        error
    };
    assert!(matches!(alone(&[], false), SessionError::Silent { .. }));
    assert!(matches!(alone(&[], true), SessionError::Gone { .. }));
    assert!(matches!(alone(b"GET / HTTP/1.1\r\n\r\n", false), SessionError::Protocol { .. }));
    assert!(matches!(alone(&[1, 0xff, 0xff, 0xff, 0xff, 0], false), SessionError::Protocol { .. }));
}

#[test]
fn an_owner_is_no_evaluator() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let all = (0..2).fold(Inputs::new(), |inputs, i| inputs.with(i, bits(1, 8)));
    for garbles in [true, false] {
        let (left, mut right) = UnixStream::pair().unwrap();
        let (_, mut nobody) = UnixStream::pair().unwrap();
        left.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let error = std::thread::scope(|scope| {
            let circuit = &circuit;
            scope.spawn(move || {
                let own = Inputs::new().with(2, bits(0, 8));
                let ended = session::owners::supply(&mut right, &mut nobody, circuit, Learns::Both, &own);
                assert!(ended.is_err());
            });
            one_side(circuit, &party(all.clone()), left, garbles).unwrap_err()
        });
        let want = if garbles { "that of evaluator" } else { "that of garbler" };
        assert!(error.to_string().contains("the hello of owner"), "{error}");
        assert!(error.to_string().contains(want), "{error}");
    }
}

#[test]
fn owners_garbler_and_evaluator() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let values = [bits(77, 8), bits(250, 8), bits(3, 8)];
    let want = netlist.evaluate(&values).unwrap();
    let pair = || UnixStream::pair().unwrap();
    let ((to_evaluator, from_garbler), (og, go), (oe, eo), (pg, gp), (pe, ep)) =
        (pair(), pair(), pair(), pair(), pair());
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check: Check::None };
    std::thread::scope(|scope| {
        // The second owner comes before the evaluator, and to the evaluator before the first.
        let mut peers = vec![go, to_evaluator, gp];
        let garbler =
            scope.spawn(move || session::owners::garble(|| Ok(peers.pop().unwrap()), setup, &mut ()));
        let mut owners = vec![eo, ep];
        let evaluator = scope.spawn(move || {
            let mut garbler = from_garbler;
            session::owners::evaluate(&mut garbler, || Ok(owners.pop().unwrap()), setup, &mut ())
        });
        let one = Inputs::new().with(0, values[0].clone()).with(2, values[2].clone());
        let two = Inputs::new().with(1, values[1].clone());
        let circuit = &circuit;
        let first = scope.spawn(move || {
            let (mut og, mut oe) = (og, oe);
            session::owners::supply(&mut og, &mut oe, circuit, Learns::Both, &one)
        });
        let second = scope.spawn(move || {
            let (mut pg, mut pe) = (pg, pe);
            session::owners::supply(&mut pg, &mut pe, circuit, Learns::Both, &two)
        });
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
        assert_eq!(garbler.join().unwrap().unwrap().outputs.unwrap(), want);
        assert_eq!(evaluator.join().unwrap().unwrap().outputs.unwrap(), want);
    });
}

#[test]
fn three_halves_send_25_bytes_a_gate_and_the_evaluator_follows() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let values = [bits(201, 8), bits(119, 8), bits(64, 8)];
    let want = netlist.evaluate(&values).unwrap();
    let own = |all: &[usize]| all.iter().fold(Inputs::new(), |inputs, i| inputs.with(*i, values[*i].clone()));
    for learns in [Learns::Both, Learns::Garbler, Learns::Evaluator] {
        let (mut left, right) = UnixStream::pair().unwrap();
        for end in [&left, &right] {
            end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        }
        let of = |inputs| Party { learns, ..party(inputs) };
        let (garbler, evaluator) = (of(own(&[0, 2])), of(own(&[1])));
        let (garbled, evaluated) = std::thread::scope(|scope| {
            let evaluated = scope.spawn(|| one_side(&circuit, &evaluator, right, false));
            let device = Cpu::with_threads("cpu", 1).unwrap();
            let setup = Setup { circuit: &circuit, device: &device, learns, check: Check::None };
            let garbling = session::Garbling::ThreeHalves;
            let garbled = session::garble_by(garbling, &mut left, setup, &garbler.inputs, &mut ()).unwrap();
            (garbled, evaluated.join().unwrap().unwrap())
        });
        assert_eq!(garbled.outputs, (learns != Learns::Evaluator).then(|| want.clone()));
        assert_eq!(evaluated.outputs, (learns != Learns::Garbler).then(|| want.clone()));
        assert_eq!(garbled.table_bytes, 25 * circuit.ands());
        assert_eq!(evaluated.table_bytes, 25 * circuit.ands());
    }
}
