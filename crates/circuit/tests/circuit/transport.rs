//! Peers that hold the other side up: byte by byte, in the handshake, or by coming without end.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blindcore_accel_cpu::Cpu;
use blindcore_circuit::circuit::Circuit;
use blindcore_circuit::problems;
use blindcore_circuit::session::{self, Check, Greeting, Inputs, Learns, Peer, Setup};
use blindcore_circuit::transport::{self, Connection, Peers, Security, Timeouts, Tls, TransportError};

/// Waits, for a peer that is slow on purpose.
fn pause(milliseconds: u64) {
    std::thread::park_timeout(Duration::from_millis(milliseconds));
}

fn timeouts(peer: u64) -> Timeouts {
    let peer = Duration::from_millis(peer);
    Timeouts { wait: Duration::from_secs(30), handshake: peer, peer }
}

#[test]
fn who_trickles_is_taken_for_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut peer, _) = listener.accept().unwrap();
            // Never silent for long; a minute in all.
            for _ in 0..3000 {
                if peer.write_all(&[7]).is_err() {
                    return;
                }
                pause(20);
            }
        });
        let mut channel = transport::connect(&address, &Security::Loopback, timeouts(100)).unwrap();
        let trickled = channel.read_exact(&mut [0; 3000]).unwrap_err().kind();
        assert!(matches!(trickled, ErrorKind::TimedOut | ErrorKind::WouldBlock), "{trickled}");
    });
}

/// A reader that is woken late must not wait for more than comes: a message arrives whole wherever its sender pauses, also the last.
#[test]
fn a_message_arrives_however_it_is_cut() {
    const LENGTH: usize = 200_000;
    for (ours, theirs) in ways() {
        let listener = transport::listen("127.0.0.1:0", &ours, timeouts(60_000)).unwrap();
        let address = listener.address().unwrap().to_string();
        let message: Vec<u8> = (0..LENGTH).map(|i| (i ^ i >> 8) as u8).collect();
        std::thread::scope(|scope| {
            let message = &message;
            scope.spawn(move || {
                // It gives up before the other side does, which would then find everything there.
                let mut peer = transport::connect(&address, &theirs, timeouts(20_000)).unwrap();
                for cut in (1..20).map(|i| i * LENGTH / 20) {
                    for part in [&message[..cut], &message[cut..]] {
                        peer.write_all(part).and_then(|()| peer.flush()).unwrap();
                        pause(1);
                    }
                    // Nothing more comes before the reader has it all.
                    peer.read_exact(&mut [0]).unwrap();
                }
            });
            let mut channel = listener.accept(|_| {}).unwrap();
            for _ in 1..20 {
                let mut received = vec![0; LENGTH];
                channel.read_exact(&mut received).unwrap();
                assert!(received == *message);
                channel.write_all(&[1]).and_then(|()| channel.flush()).unwrap();
            }
        });
    }
}

/// Peers copy what a record holds, which takes some of them several times as long where it is much.
#[test]
fn records_of_tls_hold_less_than_4_kib() {
    let [(ours, theirs), _] = ways();
    let listener = transport::listen("127.0.0.1:0", &ours, timeouts(60_000)).unwrap();
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = door.local_addr().unwrap().to_string();
    let sent = std::thread::scope(|scope| {
        let between = scope.spawn(|| {
            let (client, _) = door.accept().unwrap();
            let server = TcpStream::connect(listener.address().unwrap()).unwrap();
            let (mut back, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            scope.spawn(move || std::io::copy(&mut back, &mut to));
            let (mut all, mut bytes) = (Vec::new(), [0; 1 << 16]);
            while let Ok(read @ 1..) = (&client).read(&mut bytes) {
                all.extend_from_slice(&bytes[..read]);
                if (&server).write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
            all
        });
        scope.spawn(|| {
            let mut peer = transport::connect(&address, &theirs, timeouts(60_000)).unwrap();
            // Once past the buffer and once through it.
            for length in [200_000, 40_000] {
                peer.write_all(&vec![7; length]).and_then(|()| peer.flush()).unwrap();
            }
            peer.read_exact(&mut [0]).unwrap();
        });
        let mut channel = listener.accept(|_| {}).unwrap();
        channel.read_exact(&mut vec![0; 240_000]).unwrap();
        channel.write_all(&[1]).and_then(|()| channel.flush()).unwrap();
        drop(channel);
        between.join().unwrap()
    });
    let (mut rest, mut records) = (&sent[..], 0);
    while let [kind, _, _, high, low, after @ ..] = rest {
        let length = usize::from(*high) << 8 | usize::from(*low);
        if *kind == 23 {
            // With the kind and the tag.
            assert!(length < (4 << 10) + 17, "{length}");
            records += 1;
        }
        rest = &after[length.min(after.len())..];
    }
    assert!(records >= 60, "{records}");
}

fn identity(dir: &Path, name: &str) {
    let (certificate, key) = transport::new_identity(name).unwrap();
    std::fs::write(dir.join(format!("{name}.crt")), certificate).unwrap();
    std::fs::write(dir.join(format!("{name}.key")), key.as_bytes()).unwrap();
}

/// What both sides of a connection are given: with TLS, and without.
fn ways() -> [(Security, Security); 2] {
    let dir = tempfile::tempdir().unwrap();
    ["alice", "bob"].iter().for_each(|name| identity(dir.path(), name));
    [
        (tls(dir.path(), "alice", "bob", ""), tls(dir.path(), "bob", "alice", "alice")),
        (Security::Loopback, Security::Loopback),
    ]
}

fn tls(dir: &Path, name: &str, trust: &str, peer_name: &str) -> Security {
    let file = |name: &str, ending: &str| dir.join(format!("{name}.{ending}"));
    let tls = Tls::load(&file(name, "crt"), &file(name, "key"), &file(trust, "crt")).unwrap();
    Security::Tls { tls, peer_name: peer_name.into() }
}

/// More than are looked at at a time: silent ones, one that trickles, one that speaks HTTP. None keeps a peer waiting, with or
/// without TLS: all of them would be there for a minute each.
#[test]
fn strangers_do_not_hold_the_door() {
    for (ours, theirs) in ways() {
        let listener = transport::listen("127.0.0.1:0", &ours, timeouts(60_000)).unwrap();
        let address = listener.address().unwrap().to_string();
        let strange = || TcpStream::connect(&address).unwrap();
        let silent: Vec<TcpStream> = (0..100).map(|_| strange()).collect();
        let (mut trickles, mut speaks) = (strange(), strange());
        // The beginning of a record, or of a message, which never comes whole.
        trickles.write_all(&[22, 3, 1, 0x3e, 0x80]).unwrap();
        speaks.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut channel = transport::connect(&address, &theirs, timeouts(20_000)).unwrap();
                channel.write_all(b"bob").and_then(|()| channel.flush()).unwrap();
                channel.read_exact(&mut [0]).unwrap();
            });
            let mut turned = Vec::new();
            let greet = |channel: &mut Connection| {
                let mut said = [0; 3];
                channel.read_exact(&mut said).map_err(|e| e.to_string())?;
                if &said == b"bob" { Ok(said) } else { Err(format!("it says {said:?}")) }
            };
            let mut came = None;
            let met = listener.meet(
                greet,
                |who| turned.push(who.to_string()),
                |channel, said| {
                    came = Some((channel, said));
                    ControlFlow::Break(())
                },
            );
            met.unwrap();
            let (mut channel, said) = came.unwrap();
            assert_eq!(&said, b"bob");
            channel.write_all(b"!").and_then(|()| channel.flush()).unwrap();
            assert!(turned.iter().all(|why| why.contains("from 127.0.0.1:")), "{turned:?}");
            assert!(!turned.is_empty() && turned.len() < 30, "{turned:?}");
        });
        drop(silent);
    }
}

/// However it trickles, it is turned away when its time is over, and the reason is said at the end too.
#[test]
fn who_trickles_in_the_handshake_is_turned_away_in_time() {
    let dir = tempfile::tempdir().unwrap();
    ["alice", "bob"].iter().for_each(|name| identity(dir.path(), name));
    let short =
        Timeouts { wait: Duration::from_secs(4), handshake: Duration::from_millis(300), ..timeouts(60_000) };
    let listener = transport::listen("127.0.0.1:0", &tls(dir.path(), "alice", "bob", ""), short).unwrap();
    let mut stranger = TcpStream::connect(listener.address().unwrap()).unwrap();
    stranger.write_all(&[22, 3, 1, 0x3e, 0x80]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while stranger.write_all(&[1]).is_ok() {
                pause(20);
            }
        });
        let mut turned = Vec::new();
        let error = listener.accept(|who| turned.push(who.why.clone())).err().unwrap().to_string();
        assert!(turned.len() == 1 && turned[0].contains("did not end in time"), "{turned:?}");
        assert!(error.contains("1 who came were turned away, the last because no TLS"), "{error}");
    });
}

#[test]
fn strangers_without_end_do_not_outlast_the_wait() {
    let dir = tempfile::tempdir().unwrap();
    ["alice", "bob"].iter().for_each(|name| identity(dir.path(), name));
    let short = Timeouts { wait: Duration::from_millis(300), ..timeouts(5000) };
    let listener = transport::listen("127.0.0.1:0", &tls(dir.path(), "alice", "bob", ""), short).unwrap();
    let address = listener.address().unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let _ = TcpStream::connect(address).and_then(|mut s| s.write_all(b"hello?"));
                }
            });
        }
        let accepted = listener.accept(|_| {});
        ended.store(true, Ordering::Relaxed);
        assert!(matches!(accepted, Err(TransportError::Nobody { .. })));
    });
}

#[test]
fn who_takes_nothing_is_given_up_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut channel = transport::connect(&address, &Security::Loopback, timeouts(200)).unwrap();
    let (_kept, _) = listener.accept().unwrap();
    let silent = |e: std::io::Error| matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock);
    assert!(silent(channel.write_all(&vec![7; 64 << 20]).unwrap_err()));
    // Nothing more is waited for, neither to be sent nor to come.
    assert!(silent(channel.write_all(&vec![7; 64 << 20]).unwrap_err()));
    assert_eq!(channel.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn certificates_that_expired_are_turned_away() {
    let dir = tempfile::tempdir().unwrap();
    ["alice", "bob"].iter().for_each(|name| identity(dir.path(), name));
    let mut parameters = rcgen::CertificateParams::new(["old".to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    std::fs::write(dir.path().join("old.crt"), certificate.pem()).unwrap();
    std::fs::write(dir.path().join("old.key"), key.serialize_pem()).unwrap();
    // The connecting side sees the listener's, and the other way round.
    for (listens, connects) in [("old", "bob"), ("alice", "old")] {
        let security = tls(dir.path(), listens, connects, "");
        let short = Timeouts { wait: Duration::from_secs(5), ..timeouts(5000) };
        let listener = transport::listen("127.0.0.1:0", &security, short).unwrap();
        let address = listener.address().unwrap().to_string();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let security = tls(dir.path(), connects, listens, listens);
                let mut channel =
                    transport::connect(&address, &security, short).map_err(|e| e.to_string())?;
                channel.read(&mut [0]).map_err(|e| e.to_string())
            });
            let mut turned = String::new();
            assert!(matches!(
                listener.accept(|who| turned = who.to_string()),
                Err(TransportError::Nobody { .. })
            ));
            let error = other.join().unwrap().unwrap_err();
            let said = format!("{turned} {error}").to_lowercase();
            assert!(said.contains("expired"), "{said}");
        });
    }
}

#[test]
fn files_of_certificates_have_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    identity(dir, "alice");
    let (certificate, key) = (dir.join("alice.crt"), dir.join("alice.key"));
    let endless = Path::new("/dev/zero");
    for [c, k, t] in
        [[endless, &key, &certificate], [&certificate, endless, &certificate], [&certificate, &key, endless]]
    {
        let error = Tls::load(c, k, t).err().unwrap().to_string();
        assert!(error.contains("/dev/zero: it is over the limit of 1048576 B"), "{error}");
    }
    // What is in a damaged key is not said.
    let text = std::fs::read_to_string(&key).unwrap();
    std::fs::write(&key, &text[..100]).unwrap();
    let error = Tls::load(&certificate, &key, &certificate).err().unwrap().to_string();
    assert!(error.contains("alice.key: it is cut short or damaged"), "{error}");
}

/// Cuts a connection off once something has come over it: what is closed over bytes that nobody has read is reset.
fn cut_off(listener: &TcpListener) {
    let (stream, _) = listener.accept().unwrap();
    assert_eq!(stream.peek(&mut [0]).unwrap(), 1);
}

/// A side that has too many to look at cuts off one of which it knows nothing. That one comes again, and is heard in the end.
#[test]
fn who_was_cut_off_before_a_hello_comes_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let circuit = Circuit::new(&problems::make("mult8").unwrap());
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check: Check::None };
    let value = |bits: u64| (0..8).map(|i| bits >> i & 1 == 1).collect();
    std::thread::scope(|scope| {
        let evaluator = scope.spawn(|| {
            let peers = Peers { tls: None, plain_text: false, timeouts: timeouts(20_000) };
            let door = peers.door(None, Some(&address), None, false).unwrap();
            let own = Inputs::new().with(1, value(9));
            session::evaluate_for(door.arrivals(&mut |_| {}), setup, &own, &mut ())
        });
        (0..2).for_each(|_| cut_off(&listener));
        let (mut channel, _) = listener.accept().unwrap();
        let own = Inputs::new().with(0, value(7));
        let garbled = session::garble(&mut channel, setup, &own, &mut ()).unwrap();
        assert_eq!(evaluator.join().unwrap().unwrap().outputs, garbled.outputs);
    });
    let [(_, theirs), _] = ways();
    let refused = std::thread::scope(|scope| {
        let connects = scope.spawn(|| transport::connect(&address, &theirs, timeouts(20_000)));
        (0..2).for_each(|_| cut_off(&listener));
        // An end is not a cut: it has a reason, and is not tried again.
        let (mut stream, _) = listener.accept().unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
        connects.join().unwrap().err().unwrap().to_string()
    });
    assert!(refused.contains("both sides give --cert, --key and --trust"), "{refused}");
}

#[test]
fn who_comes_has_the_name_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ["alice", "bob", "eve"].iter().for_each(|name| identity(dir, name));
    let both = ["bob", "eve"].map(|name| std::fs::read_to_string(dir.join(format!("{name}.crt"))).unwrap());
    std::fs::write(dir.join("both.crt"), both.concat()).unwrap();
    let security = tls(dir, "alice", "both", "");
    let listener =
        transport::listen("127.0.0.1:0", &security, timeouts(20_000)).unwrap().only("bob").unwrap();
    let address = listener.address().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for name in ["eve", "bob"] {
                let theirs = tls(dir, name, "alice", "alice");
                let mut channel = transport::connect(&address, &theirs, timeouts(20_000)).unwrap();
                assert_eq!(channel.read(&mut [0]).unwrap_or(0), usize::from(name == "bob"), "{name}");
            }
        });
        let mut turned = Vec::new();
        let mut channel = listener.accept(|who| turned.push(who.why.clone())).unwrap();
        channel.write_all(&[1]).and_then(|()| channel.flush()).unwrap();
        assert!(turned.len() == 1 && turned[0].contains("for eve, and not for bob"), "{turned:?}");
    });
    let listener = transport::listen("127.0.0.1:0", &security, timeouts(20_000)).unwrap();
    assert!(matches!(listener.only("no name"), Err(TransportError::Name { .. })));
}

/// A name that no certificate can have is refused before anybody is reached, who would hear something else, and before anything is bound.
#[test]
fn names_are_looked_at_before_anybody_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    ["alice", "bob"].iter().for_each(|name| identity(dir.path(), name));
    let there = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = there.local_addr().unwrap().to_string();
    for name in ["", "*"] {
        let security = tls(dir.path(), "alice", "bob", name);
        let connected = transport::connect(&address, &security, timeouts(20_000));
        assert!(matches!(connected, Err(TransportError::Name { .. })), "{name:?}");
        let Security::Tls { tls, .. } = security else { unreachable!() };
        let peers = Peers { tls: Some(tls), plain_text: false, timeouts: timeouts(20_000) };
        for (listen, connect) in [(Some(&*address), None), (None, Some(&*address))] {
            let door = peers.door(listen, connect, Some(name), false).map(drop);
            assert!(matches!(door, Err(TransportError::Name { .. })), "{name:?}: {door:?}");
        }
        let refused = transport::peer_name(name).unwrap_err().to_string();
        assert!(refused.contains("take one such as alice"), "{refused}");
    }
    assert_eq!(transport::peer_name("alice").unwrap(), "alice");
    there.set_nonblocking(true).unwrap();
    assert_eq!(there.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// An evaluator that waits for owners, and whose garbler ends meanwhile, before it has begun or after: it ends too, and not when the
/// owners' time is over.
#[test]
fn an_evaluator_does_not_wait_for_owners_without_its_garbler() {
    let circuit = Circuit::new(&problems::make("mult8").unwrap());
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check: Check::None };
    for sent in [&b""[..], b"what nobody reads"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                let ends =
                    |greeting: &Greeting<'_>, _: &mut dyn FnMut(TcpStream, Peer) -> ControlFlow<()>| {
                        let (mut evaluator, _) = listener.accept()?;
                        greeting.welcome(&mut evaluator)?;
                        evaluator.write_all(sent)?;
                        Err("the garbler ends".into())
                    };
                assert!(session::owners::garble(ends, setup, &mut ()).is_err());
            });
            let minutes = Timeouts { wait: Duration::from_secs(600), ..timeouts(20_000) };
            let peers = Peers { tls: None, plain_text: false, timeouts: minutes };
            let door = peers.door(Some("127.0.0.1:0"), Some(&address), None, true).unwrap();
            session::owners::evaluate(door.arrivals(&mut |_| {}), setup, &mut ()).unwrap_err().to_string()
        });
        let (start, missing) = ("the garbler is gone, see what it says; ", "missing: owners of");
        assert!(error.starts_with(start) && error.contains(missing), "{error}");
    }
}

/// Without owners an evaluator can be replaced. One that ends after an owner has come to it ends the garbler at once, and so the owner:
/// another would wait for that owner for ever.
#[test]
fn an_evaluator_that_owners_have_gone_to_is_not_replaced() {
    let circuit = &Circuit::new(&problems::make("mult8").unwrap());
    let device = Cpu::with_threads("cpu", 1).unwrap();
    let setup = Setup { circuit, device: &device, learns: Learns::Both, check: Check::None };
    let minutes = Timeouts { wait: Duration::from_secs(600), ..timeouts(600_000) };
    let peers = Peers { tls: None, plain_text: false, timeouts: minutes };
    let door = peers.door(Some("127.0.0.1:0"), None, None, true).unwrap();
    let to_garbler = door.address().unwrap();
    let at_evaluator = TcpListener::bind("127.0.0.1:0").unwrap();
    let to_evaluator = at_evaluator.local_addr().unwrap();
    std::thread::scope(|scope| {
        let (says, said) = std::sync::mpsc::channel();
        let garbler = scope.spawn(move || {
            let mut say = |what: &str| says.send(what.to_owned()).unwrap();
            session::owners::garble(door.arrivals(&mut say), setup, &mut ()).unwrap_err().to_string()
        });
        // It comes to the garbler, welcomes as many owners, and ends.
        let evaluator = |owners: usize| {
            let ends = |greeting: &Greeting<'_>, _: &mut dyn FnMut(TcpStream, Peer) -> ControlFlow<()>| {
                let mut garbler = TcpStream::connect(to_garbler)?;
                greeting.meet(&mut garbler)?;
                for _ in 0..owners {
                    greeting.welcome(&mut at_evaluator.accept()?.0)?;
                }
                Err("the evaluator ends".into())
            };
            assert!(session::owners::evaluate(ends, setup, &mut ()).is_err());
        };
        evaluator(0);
        let lines: Vec<String> = said.iter().take(2).collect();
        assert!(lines[1].starts_with("the evaluator is gone, and another may take its place"), "{lines:?}");
        let owner = scope.spawn(move || {
            let goes = |address| {
                move |greeting: &Greeting<'_>, take: &mut dyn FnMut(TcpStream, Peer) -> ControlFlow<()>| {
                    let mut channel = TcpStream::connect(address)?;
                    let peer = greeting.meet(&mut channel)?;
                    assert!(take(channel, peer).is_break());
                    Ok(())
                }
            };
            let own = Inputs::new().with(0, vec![true; 8]);
            let ended = session::owners::supply_for(
                goes(to_garbler),
                goes(to_evaluator),
                circuit,
                Learns::Both,
                &own,
            );
            ended.unwrap_err().to_string()
        });
        evaluator(1);
        let (garbler, owner) = (garbler.join().unwrap(), owner.join().unwrap());
        assert!(
            garbler.starts_with(
                "the evaluator is gone, see what it says; nothing was learned, run it, this side and the"
            ),
            "{garbler}"
        );
        assert!(owner.starts_with("the garbler is gone") && owner.contains("run all sides again"), "{owner}");
    });
}

/// When a byte of a record is changed on the way, its reader reports that, and the sender learns it from TLS's alert.
#[test]
fn what_changes_under_tls_is_said_on_both_sides() {
    let [(ours, theirs), _] = ways();
    let listener = transport::listen("127.0.0.1:0", &ours, timeouts(20_000)).unwrap();
    let to = listener.address().unwrap();
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = between.local_addr().unwrap().to_string();
    let turns = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (client, server) = (between.accept().unwrap().0, TcpStream::connect(to).unwrap());
            let copy = |mut from: &TcpStream, mut to: &TcpStream, turns: Option<&AtomicBool>| {
                let mut bytes = [0; 1 << 14];
                while let Ok(read @ 1..) = from.read(&mut bytes) {
                    if turns.is_some_and(|turns| turns.load(Ordering::Acquire)) {
                        bytes[read - 1] ^= 1;
                    }
                    if to.write_all(&bytes[..read]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(std::net::Shutdown::Write);
            };
            std::thread::scope(|both| {
                both.spawn(|| copy(&server, &client, None));
                copy(&client, &server, Some(&turns));
            });
        });
        let connects = scope.spawn(|| {
            let mut channel = transport::connect(&address, &theirs, timeouts(20_000)).unwrap();
            // What both sides say first has come through.
            channel.read_exact(&mut [0]).unwrap();
            turns.store(true, Ordering::Release);
            channel.write_all(b"x").and_then(|()| channel.flush()).unwrap();
            channel.read(&mut [0]).unwrap_err().to_string()
        });
        let mut channel = listener.accept(|who| panic!("{who}")).unwrap();
        channel.write_all(&[1]).and_then(|()| channel.flush()).unwrap();
        let read = channel.read(&mut [0]).unwrap_err().to_string();
        drop(channel);
        for said in [read, connects.join().unwrap()] {
            assert!(said.starts_with("TLS with the peer broke: bytes were changed on the way; "), "{said}");
        }
    });
}
