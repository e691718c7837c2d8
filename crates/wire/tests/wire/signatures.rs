//! Signatures and keys that ring made, which signed tables before, and keys under which one signature fits many tables.

use blindcore_wire::signature::{SigningKey, verify};
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

fn signed(digest: &[u8; 32]) -> Vec<u8> {
    [b"blindcore table digest v1\0", &digest[..]].concat()
}

#[test]
fn keys_and_signatures_are_those_of_ring() {
    let file = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let theirs = Ed25519KeyPair::from_pkcs8(file.as_ref()).unwrap();
    let ours = SigningKey::from_pkcs8(file.as_ref()).unwrap();
    assert_eq!(ours.public(), theirs.public_key().as_ref());
    assert_eq!(ours.sign(&[7; 32]), theirs.sign(&signed(&[7; 32])).as_ref());
    assert!(verify(&ours.public(), &[7; 32], &ours.sign(&[7; 32])));

    let file = SigningKey::generate_pkcs8().unwrap();
    let (theirs, ours) = (Ed25519KeyPair::from_pkcs8(&file).unwrap(), SigningKey::from_pkcs8(&file).unwrap());
    assert_eq!(ours.public(), theirs.public_key().as_ref());
    let mut other = file.to_vec();
    *other.last_mut().unwrap() ^= 1;
    assert!(SigningKey::from_pkcs8(&other).is_err(), "the public key is another's");
}

#[test]
fn keys_of_small_order_are_refused() {
    // The neutral element: with R the same and S = 0 the equation holds for every message.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let mut signature = [0; 64];
    signature[0] = 1;
    for digest in [[1; 32], [2; 32]] {
        assert!(!verify(&neutral, &digest, &signature));
        let lax = UnparsedPublicKey::new(&ED25519, neutral).verify(&signed(&digest), &signature);
        assert!(lax.is_ok(), "what strict verification is for");
    }
}
