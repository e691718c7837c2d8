//! Two parties over real sockets.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use blindcore_accel_cpu::Cpu;
use blindcore_circuit::builder::Builder;
use blindcore_circuit::circuit::Circuit;
use blindcore_circuit::netlist::{Netlist, Wire};
use blindcore_circuit::session::{self, Check, Greeting, Inputs, Learns, Outcome, Peer, SessionError, Setup};

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

    // The same in two forms, or another: each side says what both have.
    let other = Circuit::new(&blindcore_circuit::problems::make("mult8").unwrap());
    let (left, right) = UnixStream::pair().unwrap();
    let errors = std::thread::scope(|scope| {
        let garbled = scope.spawn(|| one_side(&circuit, &party(all()), left, true).unwrap_err());
        let evaluated = one_side(&other, &party(Inputs::new()), right, false).unwrap_err();
        [garbled.join().unwrap(), evaluated]
    });
    for error in errors {
        let said = error.to_string();
        assert!(
            said.contains("outputs 1, of 16 bits; 120 ANDs") && said.contains("inputs 3, of 24 bits"),
            "{said}"
        );
    }

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
    let silent = alone(&[], false);
    assert!(matches!(silent, SessionError::Silent { .. }));
    assert!(silent.to_string().contains("nothing was learned"), "{silent}");
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
        let want = if garbles { "waits for the evaluator" } else { "waits for the garbler" };
        assert!(error.to_string().contains("the role owner"), "{error}");
        assert!(error.to_string().contains(want), "{error}");
    }
}

/// Those who come, one after the other; who does not fit is turned away.
fn arrivals(come: Vec<UnixStream>) -> impl session::Arrivals<UnixStream> {
    move |greeting: &Greeting<'_>, take: &mut dyn FnMut(UnixStream, Peer) -> ControlFlow<()>| {
        for mut channel in come {
            channel.set_read_timeout(Some(Duration::from_secs(20)))?;
            if let Ok(peer) = greeting.welcome(&mut channel)
                && take(channel, peer).is_break()
            {
                return Ok(());
            }
        }
        Err("nobody else comes".into())
    }
}

/// A garbler to which this side goes, and then those who come.
fn after(mut garbler: UnixStream, come: Vec<UnixStream>) -> impl session::Arrivals<UnixStream> {
    move |greeting: &Greeting<'_>, take: &mut dyn FnMut(UnixStream, Peer) -> ControlFlow<()>| {
        let peer = greeting.meet(&mut garbler)?;
        assert!(take(garbler, peer).is_continue());
        arrivals(come)(greeting, take)
    }
}

/// An owner of an input that has another, one of none, one with another circuit, a second evaluator, a stranger: each is
/// turned away, the session goes on, and who is missing is named.
#[test]
fn a_wrong_owner_ends_nothing() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let other = Circuit::new(&blindcore_circuit::problems::make("mult8").unwrap());
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check: Check::None };
    let own = |inputs: &[usize]| inputs.iter().fold(Inputs::new(), |all, i| all.with(*i, bits(5, 8)));
    std::thread::scope(|scope| {
        let mut come = Vec::new();
        let mut comes = |circuit: &'static str, of: Inputs| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            come.push(ours);
            (circuit, of, theirs)
        };
        let those = [
            comes("right", own(&[0])),
            comes("right", own(&[0, 1])),
            comes("right", own(&[])),
            comes("other", own(&[1])),
        ];
        let (ours, mut stranger) = UnixStream::pair().unwrap();
        come.push(ours);
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let (circuit, other) = (&circuit, &other);
        let owners = those.map(|(which, of, mut channel)| {
            scope.spawn(move || {
                let circuit = if which == "right" { circuit } else { other };
                let (mut nobody, _) = UnixStream::pair().unwrap();
                let ended = session::owners::supply(&mut channel, &mut nobody, circuit, Learns::Both, &of);
                ended.unwrap_err().to_string()
            })
        });
        let ended = session::owners::garble(arrivals(come), setup, &mut ()).unwrap_err().to_string();
        assert_eq!(
            ended,
            "nobody else comes; missing: the evaluator and owners of inputs 1 (\"b\"), 2 (\"x\")"
        );
        // Nothing is said to who speaks something else.
        assert!(matches!(stranger.read(&mut [0; 1]), Ok(0) | Err(_)));
        let [first, twice, nothing, another] = owners.map(|owner| owner.join().unwrap());
        assert!(!first.contains("supplied"), "its place was its own: {first}");
        assert!(twice.contains("input 0 (\"a\") is supplied by another owner"), "{twice}");
        assert!(nothing.contains("closed the connection"), "{nothing}");
        assert!(another.contains("the circuit"), "{another}");
    });
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
        let come = vec![gp, to_evaluator, go];
        let garbler = scope.spawn(move || session::owners::garble(arrivals(come), setup, &mut ()));
        let evaluator =
            scope.spawn(move || session::owners::evaluate(after(from_garbler, vec![ep, eo]), setup, &mut ()));
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

/// An owner that is silent or gone where its choices are due, as one is that went to somebody else than the evaluator: the garbler says
/// which, and where to look.
#[test]
fn an_owner_that_gives_nothing_is_named() {
    let circuit = &Circuit::new(&sample());
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let setup = Setup { circuit, device: &device, learns: Learns::Both, check: Check::None };
    let pair = || UnixStream::pair().unwrap();
    for (silent, what) in [(true, "was silent for longer than --timeout"), (false, "closed the connection")] {
        let ((ours, evaluator), (to_owner, mut owner)) = (pair(), pair());
        let (mut elsewhere, other) = pair();
        let said = std::thread::scope(|scope| {
            scope.spawn(move || {
                assert!(session::owners::evaluate(after(evaluator, Vec::new()), setup, &mut ()).is_err());
            });
            scope.spawn(move || {
                let all = (0..3).fold(Inputs::new(), |inputs, i| inputs.with(i, bits(1, 8)));
                let ended = session::owners::supply(&mut owner, &mut elsewhere, circuit, Learns::Both, &all);
                assert!(ended.is_err());
            });
            let mut other = Some(other);
            let come = |greeting: &Greeting<'_>,
                        take: &mut dyn FnMut(UnixStream, Peer) -> ControlFlow<()>| {
                for mut channel in [ours, to_owner] {
                    let peer = greeting.welcome(&mut channel)?;
                    if silent {
                        channel.set_read_timeout(Some(Duration::from_millis(200)))?;
                    } else if peer.role() == session::Role::Owner {
                        // Where it went ends, and so does the owner.
                        other.take();
                    }
                    let _ = take(channel, peer);
                }
                Ok(())
            };
            session::owners::garble(come, setup, &mut ()).unwrap_err().to_string()
        });
        let want = format!(
            "the owner of inputs 0 (\"a\"), 1 (\"b\"), 2 (\"x\") {what} while its inputs were due; nothing was learned; \
             it may not have reached the evaluator"
        );
        assert!(said.starts_with(&want) && said.contains("check that owner's --evaluator"), "{said}");
    }
}

/// A connection whose end is silence.
struct Silent(UnixStream);

impl Read for Silent {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(bytes) {
            Ok(0) | Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
            read => read,
        }
    }
}

impl Write for Silent {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// What an owner waits for the others is the larger of two limits, so it names both: where they should come, and at the end.
#[test]
fn an_owner_names_the_limit_that_held() {
    let circuit = &Circuit::new(&sample());
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let setup = Setup { circuit, device: &device, learns: Learns::Both, check: Check::None };
    let pair = || UnixStream::pair().unwrap();
    let ((to_evaluator, mut to_garbler), (og, go), (oe, mut eo)) = (pair(), pair(), pair());
    let said = std::thread::scope(|scope| {
        scope.spawn(move || {
            let come = arrivals(vec![to_evaluator, go]);
            assert!(session::owners::garble(come, setup, &mut ()).is_err());
        });
        // It ends where the garbler sends to it; the owner's connection stays.
        let evaluator = scope.spawn(move || {
            let ends = |greeting: &Greeting<'_>, _: &mut dyn FnMut(UnixStream, Peer) -> ControlFlow<()>| {
                greeting.meet(&mut to_garbler)?;
                greeting.welcome(&mut eo)?;
                drop(to_garbler);
                Err("the evaluator ends".into())
            };
            assert!(session::owners::evaluate(ends, setup, &mut ()).is_err());
            eo
        });
        let all = (0..3).fold(Inputs::new(), |inputs, i| inputs.with(i, bits(1, 8)));
        let ended = session::owners::supply(&mut Silent(og), &mut Silent(oe), circuit, Learns::Both, &all);
        drop(evaluator.join().unwrap());
        ended.unwrap_err().to_string()
    });
    let limit = "the peer was silent for longer than the larger of --timeout and --wait";
    assert!(said.starts_with(&format!("{limit} at the end; the inputs were given")), "{said}");
    let (none, also) = pair();
    none.shutdown(std::net::Shutdown::Read).unwrap();
    let one = Inputs::new().with(0, bits(1, 8));
    let ended = session::owners::supply(&mut Silent(none), &mut Silent(also), circuit, Learns::Both, &one);
    let said = ended.unwrap_err().to_string();
    assert!(
        said.starts_with(&format!("{limit} during the hello; nothing was learned; is it running")),
        "{said}"
    );
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

/// What passes of what one side writes: a prefix, or all with some bytes turned round.
#[derive(Clone)]
enum Line {
    Cut(usize),
    Turned(Vec<usize>),
}

struct Breaking {
    stream: UnixStream,
    line: Line,
    written: usize,
}

impl Read for Breaking {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.stream.read(bytes)
    }
}

impl Write for Breaking {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut passed = bytes.to_vec();
        match &self.line {
            Line::Cut(most) => {
                passed.truncate(most.saturating_sub(self.written));
                self.stream.write_all(&passed)?;
                if passed.len() < bytes.len() {
                    // The writer's system takes the rest all the same, as TCP does: nobody gets it.
                    let _ = self.stream.shutdown(std::net::Shutdown::Both);
                }
            }
            Line::Turned(places) => {
                for place in places {
                    if let Some(byte) = place.checked_sub(self.written).and_then(|at| passed.get_mut(at)) {
                        *byte ^= 1;
                    }
                }
                self.stream.write_all(&passed)?;
            }
        }
        self.written += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

type Ended = (Result<Outcome, SessionError>, usize);

/// A session over lines that break: garbler's and evaluator's outcomes, and how many bytes each wrote.
fn over(circuit: &Circuit, learns: Learns, lines: [Line; 2]) -> [Ended; 2] {
    let (left, right) = UnixStream::pair().unwrap();
    for end in [&left, &right] {
        end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    // The garbler has all inputs: without transfers a session is short.
    let all = (0..3).fold(Inputs::new(), |inputs, i| inputs.with(i, bits(77, 8)));
    let parties = [all, Inputs::new()].map(|inputs| Party { learns, ..party(inputs) });
    let [garbled_by, evaluated_by] = lines;
    let side = |party: &Party, stream: UnixStream, line: Line, garbles: bool| {
        let mut channel = Breaking { stream, line, written: 0 };
        (one_side(circuit, party, &mut channel, garbles), channel.written)
    };
    std::thread::scope(|scope| {
        let garbled = scope.spawn(|| side(&parties[0], left, garbled_by, true));
        let evaluated = side(&parties[1], right, evaluated_by, false);
        [garbled.join().unwrap(), evaluated]
    })
}

/// The connection breaks after each byte of the last messages, of either side. No side denies what the other claims.
#[test]
fn no_side_is_wrong_about_the_other_when_the_last_messages_are_lost() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let want = netlist.evaluate(&[bits(77, 8), bits(77, 8), bits(77, 8)]).unwrap();
    let whole = || Line::Cut(usize::MAX);
    let last = 16 * circuit.output_slots().len() + 2 * 5;
    for learns in [Learns::Both, Learns::Garbler, Learns::Evaluator] {
        let written = over(&circuit, learns, [whole(), whole()]).map(|(outcome, written)| {
            let outcome = outcome.unwrap();
            assert_eq!(outcome.doubt, None);
            written
        });
        let (mut doubts, mut unsure, mut nothing) = (0, 0, 0);
        for (breaks, total) in written.into_iter().enumerate() {
            // Each byte of the last two messages, and some before.
            for kept in (total.saturating_sub(last + 40)..total).rev() {
                let mut lines = [whole(), whole()];
                lines[breaks] = Line::Cut(kept);
                let ended = over(&circuit, learns, lines).map(|(outcome, _)| outcome);
                let has = ended.each_ref().map(|e| e.as_ref().is_ok_and(|o| o.outputs.is_some()));
                for (side, outcome) in ended.iter().enumerate() {
                    let peer = &ended[1 - side];
                    match outcome {
                        Ok(outcome) => {
                            if let Some(outputs) = &outcome.outputs {
                                assert_eq!(outputs, &want);
                            }
                            // Who says nothing of a doubt knows that the peer has what it should have.
                            let peer_learns = if side == 0 {
                                learns != Learns::Garbler
                            } else {
                                learns != Learns::Evaluator
                            };
                            assert!(
                                outcome.doubt.is_some() || !peer_learns || has[1 - side],
                                "{kept}: {peer:?}"
                            );
                            doubts += usize::from(outcome.doubt.is_some());
                        }
                        Err(error) => {
                            let said = error.to_string();
                            assert!(
                                !said.contains("nothing was learned") || !has[1 - side],
                                "{kept}: {said}"
                            );
                            // A success that doesn't know of this is the garbler's alone, which was told all.
                            if let Ok(peer) = peer {
                                assert!(said.contains("may have learned"), "{kept}: {said}");
                                assert!(peer.doubt.is_some() || side == 1, "{kept}: {said}");
                            }
                            unsure += usize::from(matches!(error, SessionError::Unsure { .. }));
                            nothing += usize::from(said.contains("nothing was learned"));
                        }
                    }
                }
            }
        }
        let all_seen = nothing > 0 && unsure > 0 && (doubts > 0 || learns == Learns::Garbler);
        assert!(all_seen, "{learns:?}: {doubts} doubts, {unsure} unsure, {nothing} of nothing learned");
    }
}

/// Labels that were changed on their way back: the garbler says that the evaluator has the outputs, where it has.
#[test]
fn output_labels_that_are_changed_on_the_way_are_noticed() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let want = netlist.evaluate(&[bits(77, 8), bits(77, 8), bits(77, 8)]).unwrap();
    for learns in [Learns::Both, Learns::Garbler] {
        let [_, (_, total)] = over(&circuit, learns, [Line::Turned(vec![]), Line::Turned(vec![])]);
        let outputs = circuit.output_slots().len();
        let labels = total - 16 * outputs;
        for output in 0..outputs {
            let turned = Line::Turned(vec![labels + 16 * output + output % 16]);
            let [garbled, evaluated] = over(&circuit, learns, [Line::Turned(vec![]), turned]);
            let error = garbled.0.unwrap_err();
            let said = error.to_string();
            assert!(
                said.contains(&format!("output bit {output} is neither")) && said.contains("--trust"),
                "{said}"
            );
            let knows = learns == Learns::Both;
            assert_eq!(matches!(error, SessionError::Unsure { .. }), knows, "{said}");
            assert_eq!(said.contains("the evaluator may have learned the outputs"), knows, "{said}");
            if knows {
                let outcome = evaluated.0.unwrap();
                assert_eq!((outcome.outputs, outcome.doubt.is_some()), (Some(want.clone()), true));
            }
        }
    }
}

/// Colours that were turned round gave the evaluator other outputs than the garbler; now it notices, without TLS.
#[test]
fn decodings_that_are_changed_on_the_way_are_noticed() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let want = netlist.evaluate(&[bits(77, 8), bits(77, 8), bits(77, 8)]).unwrap();
    for learns in [Learns::Both, Learns::Evaluator] {
        let [(_, total), _] = over(&circuit, learns, [Line::Turned(vec![]), Line::Turned(vec![])]);
        let outputs = circuit.output_slots().len();
        let rows = total - 5 - 16 * outputs;
        let mut noticed = 0;
        for output in 0..outputs {
            // One row is the evaluator's, the other nobody opens.
            let [one, other, both] = [vec![0], vec![8], vec![0, 8]].map(|of| {
                let places = of.into_iter().map(|byte| rows + 16 * output + byte).collect();
                let [garbled, evaluated] =
                    over(&circuit, learns, [Line::Turned(places), Line::Turned(vec![])]);
                match evaluated.0 {
                    Ok(outcome) => {
                        assert_eq!(outcome.outputs.unwrap(), want);
                        garbled.0.unwrap();
                        true
                    }
                    Err(error) => {
                        assert!(matches!(error, SessionError::Row { bit } if bit == output), "{error}");
                        assert!(matches!(garbled.0, Err(SessionError::Unsure { .. })));
                        false
                    }
                }
            });
            assert!(!both, "{output}");
            noticed += usize::from(!one) + usize::from(!other);
        }
        // About half of them are the evaluator's; a session draws which.
        assert!((1..2 * outputs).contains(&noticed), "{noticed} of {outputs}");
    }
}

/// The hello of version 1 and the present one are as long, so each side reads the other's version.
#[test]
fn another_version_is_refused_by_its_number() {
    let netlist = sample();
    let circuit = Circuit::new(&netlist);
    let all = (0..3).fold(Inputs::new(), |inputs, i| inputs.with(i, bits(1, 8)));
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut old = [&[1, 198, 0, 0, 0][..], b"blindcore garble", &[1, 0]].concat();
    old.resize(5 + 198, 0);
    theirs.write_all(&old).unwrap();
    let error = one_side(&circuit, &party(all), ours, true).unwrap_err().to_string();
    assert!(error.contains("protocol version 1, this side 2"), "{error}");
    let mut hello = [0; 5 + 198];
    theirs.read_exact(&mut hello).unwrap();
    assert_eq!(hello[..5], [1, 198, 0, 0, 0]);
    assert_eq!(hello[5 + 16..5 + 18], [2, 0]);
    assert_eq!(theirs.read_to_end(&mut Vec::new()).unwrap(), 0);
}

#[test]
fn what_a_circuit_declares_is_checked_in_a_session_too() {
    let circuit = Circuit::new(&blindcore_circuit::problems::make("intersection4x8").unwrap());
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let unsorted = Inputs::new().with(0, bits(0x0402_0301, 32));
    let error = one_side(&circuit, &party(unsorted), ours, true).unwrap_err();
    assert!(matches!(error, SessionError::NotAscending(_)), "{error}");
}
