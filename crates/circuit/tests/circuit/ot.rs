//! Oblivious transfer over streams: both sides, and peers that don't keep to it.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    thread,
};

use blindcore_circuit::ot::{
    OtError, base,
    extension::{CHUNK, Check, Parameters, Receiver, Sender},
};

/// Runs both sides, each in its thread over its end of a stream.
fn both<A: Send + 'static, B>(
    left: impl FnOnce(&mut UnixStream) -> A + Send + 'static,
    right: impl FnOnce(&mut UnixStream) -> B,
) -> (A, B) {
    let (mut a, mut b) = UnixStream::pair().unwrap();
    let thread = thread::spawn(move || left(&mut a));
    let result = right(&mut b);
    drop(b);
    (thread.join().unwrap(), result)
}

fn random_word() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    u128::from_le_bytes(bytes)
}

fn random_bits(count: usize) -> Vec<bool> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).unwrap();
    bytes.iter().map(|byte| byte & 1 == 1).collect()
}

fn every_parameter() -> impl Iterator<Item = Parameters> {
    let checks = [Check::None, Check::Malicious];
    checks.into_iter().flat_map(|check| (1..=4).map(move |depth| Parameters { depth, check }))
}

#[test]
fn base_transfers_give_the_chosen_keys_and_no_other() {
    let session = [3; 32];
    let choices = random_bits(128);
    let (pairs, keys) = both(
        move |channel| base::send(channel, &session, 128).unwrap(),
        |channel| {
            let choices: Vec<_> = choices.iter().map(|&bit| u8::from(bit).into()).collect();
            base::receive(channel, &session, &choices).unwrap()
        },
    );
    for ((pair, key), choice) in pairs.iter().zip(&*keys).zip(choices) {
        assert_eq!(*key, pair[usize::from(choice)]);
        assert_ne!(*key, pair[usize::from(!choice)]);
    }
    let mut all = pairs.as_flattened().to_vec();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 256, "every key is another");
}

#[test]
fn keys_differ_between_sessions() {
    let (pairs, keys) = both(
        |channel| base::send(channel, &[1; 32], 4).unwrap(),
        |channel| base::receive(channel, &[2; 32], &[0.into(); 4]).unwrap(),
    );
    assert!(keys.iter().zip(&**pairs).all(|(key, pair)| !pair.contains(key)));
}

#[test]
fn the_correlation_holds_in_every_mode_and_size() {
    for parameters in every_parameter() {
        let sizes = [1, 127, 0, 129, 128, CHUNK - 1, CHUNK + 1, 100_000];
        let delta = random_word() | 1;
        let (sent, received) = both(
            move |channel| {
                let mut sender = Sender::setup(channel, delta, parameters).unwrap();
                sizes.map(|size| {
                    let mut labels = vec![0; size];
                    sender.extend(channel, &mut labels).unwrap();
                    labels
                })
            },
            |channel| {
                let mut receiver = Receiver::setup(channel, parameters).unwrap();
                sizes.map(|size| {
                    let (choices, mut labels) = (random_bits(size), vec![0; size]);
                    receiver.extend(channel, &choices, &mut labels).unwrap();
                    (choices, labels)
                })
            },
        );
        for (zeros, (choices, labels)) in sent.iter().zip(&received) {
            for ((zero, choice), label) in zeros.iter().zip(choices).zip(labels) {
                assert_eq!(*label, if *choice { zero ^ delta } else { *zero }, "{parameters:?}");
                assert_eq!((label ^ zero) & 1 == 1, *choice);
            }
        }
        let mut all = sent.concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "no label comes twice");
        // Every lane is set in about half of the labels.
        for lane in 0..128 {
            let set = all.iter().filter(|label| *label >> lane & 1 == 1).count();
            assert!(set.abs_diff(count / 2) < 5 * (count as f64).sqrt() as usize, "{lane}: {set} of {count}");
        }
    }
}

#[test]
fn random_and_chosen_transfers_give_one_of_each_pair() {
    for parameters in every_parameter() {
        for size in [1, 130, CHUNK + 77] {
            let offered: Vec<_> = (0..size).map(|_| [random_word(), random_word()]).collect();
            let (choices, to_send) = (random_bits(size), offered.clone());
            let (pairs, (words, chosen)) = both(
                move |channel| {
                    let mut sender = Sender::setup(channel, random_word(), parameters).unwrap();
                    let mut pairs = vec![[0; 2]; size];
                    sender.random(channel, &mut pairs).unwrap();
                    sender.send(channel, &to_send).unwrap();
                    pairs
                },
                |channel| {
                    let mut receiver = Receiver::setup(channel, parameters).unwrap();
                    let (mut words, mut chosen) = (vec![0; size], vec![0; size]);
                    receiver.random(channel, &choices, &mut words).unwrap();
                    receiver.receive(channel, &choices, &mut chosen).unwrap();
                    (words, chosen)
                },
            );
            let difference = pairs[0][0] ^ pairs[0][1];
            for i in 0..size {
                assert_eq!(words[i], pairs[i][usize::from(choices[i])]);
                assert_eq!(chosen[i], offered[i][usize::from(choices[i])]);
                assert!(i == 0 || pairs[i][0] ^ pairs[i][1] != difference, "the correlation is broken");
            }
        }
    }
}

/// A stream that flips bits of what goes through it, the `n`-th byte by `mask`.
struct Tamper<'a> {
    inner: &'a mut UnixStream,
    written: usize,
    flips: Vec<(usize, u8)>,
}

impl<'a> Tamper<'a> {
    fn new(inner: &'a mut UnixStream, flips: Vec<(usize, u8)>) -> Self {
        Self { inner, written: 0, flips }
    }
}

impl Read for Tamper<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.inner.read(out)
    }
}

impl Write for Tamper<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut bytes = bytes.to_vec();
        for &(at, mask) in &self.flips {
            if let Some(byte) = at.checked_sub(self.written).and_then(|i| bytes.get_mut(i)) {
                *byte ^= mask;
            }
        }
        self.inner.write_all(&bytes)?;
        self.written += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// What a sender says whose receiver's extension is tampered with.
fn tampered(parameters: Parameters, delta: u128, flips: Vec<(usize, u8)>) -> [Result<(), OtError>; 2] {
    const SIZE: usize = 300;
    let (results, ()) = both(
        move |channel| {
            let mut sender = Sender::setup(channel, delta, parameters).unwrap();
            let mut labels = [0; SIZE];
            [sender.extend(channel, &mut labels), sender.extend(channel, &mut labels)]
        },
        |channel| {
            let mut receiver = Receiver::setup(channel, parameters).unwrap();
            let mut channel = Tamper::new(channel, flips);
            let mut labels = [0; SIZE];
            receiver.extend(&mut channel, &random_bits(SIZE), &mut labels).unwrap();
            // The second chunk may find the sender gone.
            let _ = receiver.extend(&mut channel, &random_bits(SIZE), &mut labels);
        },
    );
    results
}

#[test]
fn a_receiver_that_lies_about_its_choices_is_caught_and_the_sender_spent() {
    for depth in 1..=4 {
        let parameters = Parameters { depth, check: Check::Malicious };
        let len = parameters.message_len(300);
        // In the first tree's correction, the last tree's, its masking block, the shown choices, the last shown column.
        for at in [0, 5, 63, len - 129 * 16 - 64, len - 129 * 16 - 1, len - 129 * 16, len - 1] {
            // All bits of delta set, so that no lane is blind to a flip.
            let [first, second] = tampered(parameters, u128::MAX, vec![(at, 4)]);
            assert!(matches!(first, Err(OtError::Check { .. })), "depth {depth}, byte {at}: {first:?}");
            assert!(matches!(second, Err(OtError::Spent)), "{second:?}");
        }
        let [first, second] = tampered(parameters, u128::MAX, vec![]);
        assert!(first.is_ok() && second.is_ok());
    }
}

#[test]
fn even_a_flip_that_delta_hides_changes_the_hash_key() {
    let parameters = Parameters { depth: 1, check: Check::Malicious };
    // Trees of one level are lanes: their corrections lie one after the other.
    let correction = (parameters.message_len(300) - 129 * 16) / 128;
    let [first, _] = tampered(parameters, !(1 << 9), vec![(9 * correction, 1)]);
    assert!(matches!(first, Err(OtError::Check { .. })));
}

#[test]
fn a_receiver_that_lies_about_its_trees_is_caught() {
    for depth in 2..=4 {
        let parameters = Parameters { depth, check: Check::Malicious };
        // After the greeting and nothing else of the receiver's: its points, then its trees.
        let trees = 24 + 128 * 32;
        let mut caught = 0;
        let digest = {
            let full = 128 / usize::from(depth);
            let rest = 128 % usize::from(depth);
            let corrections = full * 32 * usize::from(depth - 1) + if rest > 0 { 32 * (rest - 1) } else { 0 };
            corrections + 32 * (full + usize::from(rest > 0))
        };
        for at in [0, 16, digest - 32, digest] {
            for _ in 0..3 {
                let (result, _) = both(
                    move |channel| Sender::setup(channel, random_word() | 1, parameters).map(|_| ()),
                    |channel| {
                        Receiver::setup(&mut Tamper::new(channel, vec![(trees + at, 1)]), parameters)
                            .map(|_| ())
                    },
                );
                match result {
                    Err(OtError::Check { .. }) => caught += 1,
                    // A flipped correction that alpha doesn't use changes nothing.
                    Ok(()) => assert!(at < 32, "byte {at}"),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        assert!(caught >= 6, "{caught}");
    }
}

#[test]
fn without_a_check_a_flip_goes_through() {
    // So that the tests above are known to test the check.
    let [first, second] = tampered(Parameters::default(), u128::MAX, vec![(0, 1)]);
    assert!(first.is_ok() && second.is_ok());
}

#[test]
fn damaged_points_are_refused() {
    for at in [0, 32 * 7 + 31] {
        // The top bit of an encoding is zero; a lower one is refused where no point has that encoding.
        let (_, result) = both(
            move |channel| {
                base::send(&mut Tamper::new(channel, vec![(at / 32 * 32 + 31, 0x80)]), &[1; 32], 8).is_ok()
            },
            |channel| base::receive(channel, &[1; 32], &[0.into(); 8]).map(|_| ()),
        );
        assert!(matches!(result, Err(OtError::Point { index, .. }) if index == at / 32), "{result:?}");
        let (result, _) = both(
            move |channel| base::send(channel, &[1; 32], 8).map(|_| ()),
            |channel| {
                let mut channel = Tamper::new(channel, vec![(at / 32 * 32 + 31, 0x80)]);
                base::receive(&mut channel, &[1; 32], &[1.into(); 8]).is_ok()
            },
        );
        assert!(matches!(result, Err(OtError::Point { index, .. }) if index == at / 32), "{result:?}");
    }
    // The neutral element, all zeros, would make every key known.
    let (_, result) = both(
        |channel| channel.write_all(&[0; 64]),
        |channel| base::receive(channel, &[1; 32], &[0.into(); 2]).map(|_| ()),
    );
    assert!(matches!(result, Err(OtError::Point { index: 0, .. })));
}

#[test]
fn peers_that_differ_are_told_apart() {
    let setup = |left: Parameters, right: Parameters| {
        both(
            move |channel| Sender::setup(channel, 1, left).map(|_| ()),
            |channel| Receiver::setup(channel, right).map(|_| ()),
        )
    };
    let plain = Parameters::default();
    for (other, what) in [
        (Parameters { depth: 3, ..plain }, "depth 3 where this side has 2"),
        (Parameters { check: Check::Malicious, ..plain }, "check 1 where this side has 0"),
    ] {
        let (left, _) = setup(plain, other);
        let message = left.unwrap_err().to_string();
        assert!(message.contains(what), "{message}");
    }
    let (left, right) = both(
        move |channel| Sender::setup(channel, 1, plain).map(|_| ()),
        |channel| Sender::setup(channel, 1, plain).map(|_| ()),
    );
    assert!([left, right].iter().all(|r| r.as_ref().unwrap_err().to_string().contains("the role 0")));
    let (_, right) = both(
        |channel| {
            channel.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")?;
            // It stays until it is greeted: writing to a closed end is another error.
            channel.read_exact(&mut [0])
        },
        |channel| Receiver::setup(channel, plain).map(|_| ()),
    );
    assert!(right.unwrap_err().to_string().contains("the magic number"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (mut channel, _peer) = UnixStream::pair().unwrap();
    assert!(matches!(Sender::setup(&mut channel, 0, Parameters::default()), Err(OtError::Delta)));
    for depth in [0, 5, 255] {
        let parameters = Parameters { depth, check: Check::None };
        assert!(
            matches!(Receiver::setup(&mut channel, parameters), Err(OtError::Depth { got }) if got == depth)
        );
    }
    let (_, result) = both(
        |channel| Sender::setup(channel, 1, Parameters::default()).map(|_| ()),
        |channel| {
            let mut receiver = Receiver::setup(channel, Parameters::default()).unwrap();
            receiver.extend(channel, &[true; 3], &mut [0; 2])
        },
    );
    assert!(matches!(result, Err(OtError::Length { got: 2, expected: 3, .. })));
}

#[test]
fn a_peer_that_goes_away_is_an_error() {
    let (result, ()) = both(
        |channel| {
            let mut sender = Sender::setup(channel, 1, Parameters::default()).unwrap();
            [sender.extend(channel, &mut [0; 9]), sender.extend(channel, &mut [0; 9])]
        },
        |channel| drop(Receiver::setup(channel, Parameters::default()).unwrap()),
    );
    assert!(matches!(result, [Err(OtError::Io(_)), Err(OtError::Spent)]));
}

mod three_roles {
    use super::*;
    use blindcore_circuit::ot::proxy::{self, MAX_BATCH, Sender};
    use proptest::prelude::*;

    fn offered(count: usize) -> Vec<[u128; 2]> {
        (0..count).map(|_| [random_word(), random_word()]).collect()
    }

    #[test]
    fn the_proxy_opens_what_the_chooser_chose() {
        for count in [0, 1, 100] {
            let (pairs, bits) = (offered(count), random_bits(count));
            let sender = Sender::new().unwrap();
            let chosen = proxy::choose(&sender.publish(), &bits).unwrap();
            let sealed = sender.encrypt(&chosen.for_sender, &pairs).unwrap();
            let opened = proxy::open(&chosen.for_proxy, &sealed).unwrap();
            let expected: Vec<_> = pairs.iter().zip(bits).map(|(pair, bit)| pair[usize::from(bit)]).collect();
            assert_eq!(opened, expected);
        }
    }

    #[test]
    fn the_place_of_what_opens_says_nothing_of_the_bit() {
        // Each pair's second ciphertext is spoilt: what opens still was first, whatever the bit is.
        const COUNT: usize = 100;
        for bit in [false, true] {
            let sender = Sender::new().unwrap();
            let chosen = proxy::choose(&sender.publish(), &[bit; COUNT]).unwrap();
            let sealed = sender.encrypt(&chosen.for_sender, &offered(COUNT)).unwrap();
            let mut opened_first = 0;
            for i in 0..COUNT {
                let mut spoilt = sealed.clone();
                spoilt[26 + 32 + 64 * i + 63] ^= 1;
                opened_first += usize::from(proxy::open(&chosen.for_proxy, &spoilt).is_ok());
            }
            // Half of them, within seven standard deviations.
            assert!(opened_first.abs_diff(COUNT / 2) < 35, "{bit}: {opened_first} of {COUNT}");
        }
    }

    #[test]
    fn the_other_word_opens_under_no_key_that_the_proxy_has() {
        let (pairs, sender) = (offered(2), Sender::new().unwrap());
        let publication = sender.publish();
        let chosen = proxy::choose(&publication, &[false, true]).unwrap();
        let other = proxy::choose(&publication, &[true, false]).unwrap();
        let sealed = sender.encrypt(&chosen.for_sender, &pairs).unwrap();
        // Another's keys open nothing, and neither do the right keys in the other's place.
        assert!(matches!(proxy::open(&other.for_proxy, &sealed), Err(OtError::Check { .. })));
        let mut swapped = chosen.for_proxy.to_vec();
        swapped[26..].rotate_left(32);
        assert!(matches!(proxy::open(&swapped, &sealed), Err(OtError::Check { .. })));
        // Both places of a pair spoilt in turn: exactly one of them opens.
        let opens = |place: usize| {
            let mut spoilt = sealed.clone();
            spoilt[26 + 32 + 32 * place] ^= 1;
            proxy::open(&chosen.for_proxy, &spoilt).is_ok()
        };
        assert!(opens(0) != opens(1) && opens(2) != opens(3));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let sender = Sender::new().unwrap();
        let publication = sender.publish();
        let chosen = proxy::choose(&publication, &[true; 3]).unwrap();
        let stranger = Sender::new().unwrap();
        assert!(matches!(stranger.encrypt(&chosen.for_sender, &offered(3)), Err(OtError::Peer { .. })));
        for (edit, says) in [
            (&(|m: &mut Vec<u8>| m.truncate(25)) as &dyn Fn(&mut Vec<u8>), "has 25 B"),
            (&|m| m.push(0), "and should have 58"),
            (&|m| m[0] ^= 1, "the magic number"),
            (&|m| m[4] = 9, "the version 9"),
            (&|m| m[5] = 1, "kind 1 where this side has 0"),
            (&|m| m[22..26].fill(255), "over the 1048576"),
            (&|m| m[57] |= 0x80, "point 0"),
            (&|m| m[26..].fill(0), "point 0"),
        ] {
            let mut message = publication.clone();
            edit(&mut message);
            let error = proxy::choose(&message, &[true]).err().unwrap().to_string();
            assert!(error.contains(says), "{error}");
        }
        let mut damaged = chosen.for_sender.clone();
        damaged[26 + 32 + 31] |= 0x80;
        assert!(matches!(sender.encrypt(&damaged, &offered(3)), Err(OtError::Point { index: 1, .. })));

        let sender = Sender::new().unwrap();
        let chosen = proxy::choose(&sender.publish(), &[true; 3]).unwrap();
        assert!(matches!(
            sender.encrypt(&chosen.for_sender, &offered(2)),
            Err(OtError::Length { got: 3, expected: 2, .. })
        ));
        assert!(matches!(
            proxy::choose(&publication, &vec![true; MAX_BATCH + 1]),
            Err(OtError::Batch { got, .. }) if got == MAX_BATCH + 1
        ));

        let sender = Sender::new().unwrap();
        let chosen = proxy::choose(&sender.publish(), &[true; 3]).unwrap();
        let sealed = sender.encrypt(&chosen.for_sender, &offered(3)).unwrap();
        let mut no_scalar = chosen.for_proxy.to_vec();
        no_scalar[26..58].fill(0xff);
        assert!(matches!(proxy::open(&no_scalar, &sealed), Err(OtError::Point { index: 0, .. })));
        let mut no_point = sealed.clone();
        no_point[26 + 31] |= 0x80;
        assert!(matches!(proxy::open(&chosen.for_proxy, &no_point), Err(OtError::Point { .. })));
        for len in 0..sealed.len() {
            assert!(proxy::open(&chosen.for_proxy, &sealed[..len]).is_err());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn no_bytes_make_anyone_panic(at in 0usize..400, with: [u8; 4], cut in 0usize..400, tail: [u8; 8]) {
            let sender = Sender::new().unwrap();
            let publication = sender.publish();
            let chosen = proxy::choose(&publication, &[true, false]).unwrap();
            let damage = |message: &[u8]| {
                let mut message = message.to_vec();
                message.truncate(cut);
                if cut % 2 == 1 {
                    message.extend(tail);
                }
                let end = message.len().min(at + 4);
                let start = at.min(end);
                message[start..end].copy_from_slice(&with[..end - start]);
                message
            };
            let _ = proxy::choose(&damage(&publication), &[true]);
            let sealed = Sender::encrypt(sender, &chosen.for_sender, &offered(2)).unwrap();
            let _ = proxy::open(&damage(&chosen.for_proxy), &sealed);
            let _ = proxy::open(&chosen.for_proxy, &damage(&sealed));
            let _ = Sender::new().unwrap().encrypt(&damage(&chosen.for_sender), &offered(2));
        }
    }
}
