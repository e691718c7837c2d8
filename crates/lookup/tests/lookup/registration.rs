//! Registered keys: made by a client, read by a server, and what is refused of them.

use std::sync::Arc;

use blindcore_accel::SharedBytes;
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::schemes::Keeps;
use blindcore_lookup::{
    Client, Decoded, Error, Geometry, InsecurePlain, Params, RegisteredKeys, SchemeClient, SecretKeys,
    Selection, Server, pack_group, schemes,
};

const GEOMETRY: Geometry = Geometry { record_bytes: 8, groups: 2, columns: 3 };

fn params() -> Params {
    Params::new(InsecurePlain::registered_for_tests().scheme(), GEOMETRY).unwrap()
}

fn server(params: Params) -> Server {
    let mut database = params.database_buffer();
    for group in 0..2u8 {
        let slots: Vec<u8> = (0..3u8).flat_map(|column| [10 * group + column; 8]).collect();
        pack_group(&params, group.into(), &slots, &mut database);
    }
    let records: Vec<SharedBytes> = vec![Arc::new(database)];
    Server::new(params, &Cpu::with_threads("cpu", 1).unwrap(), vec![records]).unwrap()
}

fn keys(params: &Params) -> (SecretKeys, RegisteredKeys) {
    let made = params.make_keys().unwrap();
    (params.open_secret(&made.secret).unwrap(), params.open_registered(&made.public).unwrap())
}

#[test]
fn queries_of_several_clients_share_a_pass_each_under_its_own_keys() {
    let params = params();
    let (server, client) = (server(params), Client::new(params, Arc::new([])).unwrap());
    let all: Vec<_> = (0..5).map(|_| keys(&params)).collect();
    // More than once under the same, too.
    let asked: Vec<(u64, &(SecretKeys, RegisteredKeys))> =
        (0..30).map(|i| (i % 6, &all[(i % 5) as usize])).collect();
    let made = asked.iter().map(|(slot, (secret, _))| {
        let selection = Selection::index(&GEOMETRY, *slot).unwrap();
        client.query(client.prepare_under(secret).unwrap(), &selection).unwrap()
    });
    let (queries, pending): (Vec<_>, Vec<_>) = made.unzip();
    let borrowed: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
    let registered: Vec<&RegisteredKeys> = asked.iter().map(|(_, (_, registered))| registered).collect();
    let (answers, _) = server.answer_under(&borrowed, &registered).unwrap();
    for (((slot, _), pending), answer) in asked.iter().zip(pending).zip(&answers) {
        let got = client.decode(pending, answer).unwrap();
        assert_eq!((got.slot.as_slice(), got.damaged), (&[(10 * (slot / 3) + slot % 3) as u8; 8][..], false));
    }
    // Under another client's keys a query comes to something else.
    let selection = Selection::index(&GEOMETRY, 4).unwrap();
    let (query, pending) = client.query(client.prepare_under(&all[0].0).unwrap(), &selection).unwrap();
    let (answers, _) = server.answer_under(&[&query], &[&all[1].1]).unwrap();
    assert_ne!(client.decode(pending, &answers[0]).unwrap().slot.as_slice(), [11; 8]);
}

#[test]
fn a_secret_opens_again_and_its_keys_are_the_same() {
    let params = params();
    let made = params.make_keys().unwrap();
    let client = Client::new(params, Arc::new([])).unwrap();
    let selection = Selection::index(&GEOMETRY, 1).unwrap();
    let query = || {
        let secret = params.open_secret(&made.secret).unwrap();
        client.query(client.prepare_under(&secret).unwrap(), &selection).unwrap().0
    };
    assert_eq!(query(), query(), "the plain scheme draws nothing else");
    assert_ne!(made.public, params.make_keys().unwrap().public);
    assert_eq!(made.secret.len(), params.secret_bytes());
    assert_eq!(params.keeps(), Keeps::RegisteredKeys { bytes: made.public.len() as u64, hint: 0 });
}

#[test]
fn keys_serve_all_geometries_of_their_shape_and_no_other_scheme() {
    let params = params();
    let other = Params::new(params.scheme, Geometry { columns: 40, ..GEOMETRY }).unwrap();
    assert_eq!(params.keys_digest(), other.keys_digest());
    let (secret, _) = keys(&other);
    let client = Client::new(params, Arc::new([])).unwrap();
    assert!(client.prepare_under(&secret).is_ok());
    assert!(matches!(client.prepare(), Err(Error::OtherKeys { .. })), "keys are missing");

    let plain = Params::new(InsecurePlain::for_tests().scheme(), GEOMETRY).unwrap();
    assert_eq!((plain.keys_digest(), plain.registered_bytes(), plain.secret_bytes()), (None, 0, 0));
    assert!(matches!(plain.make_keys(), Err(Error::NoRegisteredKeys { scheme: "plain" })));
    let plain = Client::new(plain, Arc::new([])).unwrap();
    assert!(matches!(plain.prepare_under(&secret), Err(Error::NoRegisteredKeys { .. })));
    for scheme in schemes::offered() {
        let params = Params::new(scheme, GEOMETRY).unwrap();
        assert_eq!(params.registers_keys(), params.keys_digest().is_some(), "{scheme}");
    }
}

#[test]
fn keys_that_are_none_are_refused() {
    let params = params();
    let made = params.make_keys().unwrap();
    for bad in [&made.public[1..], &[][..], &[&made.public[..], &[0]].concat()] {
        assert!(matches!(params.open_registered(bad), Err(Error::Length { .. })));
    }
    for bad in [&made.secret[1..], &[][..]] {
        assert!(matches!(params.open_secret(bad), Err(Error::Length { .. })));
    }
    for at in [0, 31, 32, 63] {
        let mut flipped = made.public.clone();
        flipped[at] ^= 1;
        assert!(matches!(params.open_registered(&flipped), Err(Error::KeyBytes { .. })));
    }
    let server = server(params);
    let (query, (_, registered)) = (vec![0; params.query_bytes()], keys(&params));
    for keys in [&[][..], &[&registered, &registered]] {
        assert!(matches!(server.answer_under(&[&query], keys), Err(Error::OtherKeys { .. })));
    }
    // What no params opened is of none.
    let foreign = RegisteredKeys::new(());
    assert!(matches!(server.answer_under(&[&query], &[&foreign]), Err(Error::OtherKeys { .. })));
}

/// A client that takes every answer for noise.
struct Noisy(usize);

impl SchemeClient for Noisy {
    type Keys = ();
    type Prepared = ();
    type Pending = ();

    fn prepare(&self, (): &()) -> Result<(), Error> {
        Ok(())
    }

    fn query(&self, (): (), _: &Selection) -> (Vec<u8>, ()) {
        (vec![0; self.0], ())
    }

    fn decode(&self, (): (), answer: &[u8]) -> Decoded {
        Decoded { slot: answer.to_vec().into(), damaged: true }
    }
}

/// What would be a bit of a secret that stays is said by no scheme with registered keys, whatever its client says.
#[test]
fn noise_is_not_said_under_registered_keys() {
    for (scheme, said) in [(InsecurePlain::for_tests(), true), (InsecurePlain::registered_for_tests(), false)]
    {
        let params = Params::new(scheme.scheme(), GEOMETRY).unwrap();
        let client = Client::of(params, Noisy(params.query_bytes()));
        let selection = Selection::index(&GEOMETRY, 0).unwrap();
        let (_, pending) = client.query(client.prepare().unwrap(), &selection).unwrap();
        assert_eq!(client.decode(pending, &[0; 8]).unwrap().damaged, said);
    }
}
