//! Signatures of tables: Ed25519 (RFC 8032) over a table's digest.

use std::fmt;

use ed25519_dalek::pkcs8::DecodePrivateKey;
use ed25519_dalek::{Signature, Signer, VerifyingKey};
use zeroize::Zeroizing;

/// Bytes of a public key.
pub const PUBLIC_KEY_BYTES: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

/// What is signed starts with it, so that a signature of something else is none of a table.
const CONTEXT: &[u8] = b"blindcore table digest v1\0";

fn message(digest: &[u8; 32]) -> Vec<u8> {
    [CONTEXT, digest].concat()
}

/// The start of a private key in PKCS #8, version 2 (RFC 5958): the 32 bytes of the secret follow.
const PKCS8_SECRET: [u8; 16] = [0x30, 0x51, 2, 1, 1, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// What stands between the secret and the public key, with which the file ends.
const PKCS8_PUBLIC: [u8; 3] = [0x81, 0x21, 0];

/// Whether the holder of the secret of `key` signed a table's digest.
///
/// Strict: RFC 8032 without the cofactor, with S below the group's order, and with neither key nor R of small order.
#[must_use]
pub fn verify(key: &[u8; PUBLIC_KEY_BYTES], digest: &[u8; 32], signature: &[u8; SIGNATURE_BYTES]) -> bool {
    let signature = Signature::from_bytes(signature);
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(&message(digest), &signature).is_ok())
}

/// A secret key that signs tables. Wiped on drop.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// A key from its PKCS #8 form, with the public key in it or without.
    ///
    /// # Errors
    /// It is not an Ed25519 key.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, String> {
        let key = ed25519_dalek::SigningKey::from_pkcs8_der(der);
        key.map(Self).map_err(|e| format!("it is not an Ed25519 key ({e})"))
    }

    /// A new key as a file: its PKCS #8 form in the textual encoding of RFC 7468, section 10.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn generate_pem() -> Result<Zeroizing<String>, String> {
        let text = Zeroizing::new(crate::base64(&Self::generate_pkcs8()?));
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n");
        // As long as it can be, so that no copy of the secret stays behind.
        let mut pem = Zeroizing::new(String::with_capacity(begin.len() + 2 * text.len() + end.len()));
        pem.push_str(begin);
        let mut rest = &text[..];
        while !rest.is_empty() {
            let (line, more) = rest.split_at(rest.len().min(64));
            pem.push_str(line);
            pem.push('\n');
            rest = more;
        }
        pem.push_str(end);
        Ok(pem)
    }

    /// A new key in PKCS #8 form.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn generate_pkcs8() -> Result<Zeroizing<Vec<u8>>, String> {
        let mut secret = Zeroizing::new([0u8; 32]);
        getrandom::fill(&mut *secret)
            .map_err(|e| format!("the operating system gives no randomness ({e})"))?;
        let public = ed25519_dalek::SigningKey::from_bytes(&secret).verifying_key();
        // As long as it will be, so that no copy of the secret stays behind.
        let mut der = Zeroizing::new(Vec::with_capacity(83));
        for part in [&PKCS8_SECRET[..], &secret[..], &PKCS8_PUBLIC[..], &public.as_bytes()[..]] {
            der.extend_from_slice(part);
        }
        Ok(der)
    }

    /// Whose key it is.
    #[must_use]
    pub fn public(&self) -> [u8; PUBLIC_KEY_BYTES] {
        self.0.verifying_key().to_bytes()
    }

    /// Signs a table's digest.
    #[must_use]
    pub fn sign(&self, digest: &[u8; 32]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(&message(digest)).to_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_digest_by_one_key() {
        let make = || SigningKey::from_pkcs8(&SigningKey::generate_pkcs8().unwrap()).unwrap();
        let (key, other) = (make(), make());
        let signature = key.sign(&[7; 32]);
        assert!(verify(&key.public(), &[7; 32], &signature));
        assert!(!verify(&key.public(), &[8; 32], &signature));
        assert!(!verify(&other.public(), &[7; 32], &signature));
        for bit in 0..8 * SIGNATURE_BYTES {
            let mut flipped = signature;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify(&key.public(), &[7; 32], &flipped), "{bit}");
        }
        assert!(!verify(&[0; 32], &[7; 32], &[0; 64]));
        assert!(SigningKey::from_pkcs8(b"no key").is_err());
        assert_eq!(format!("{key:?}"), "SigningKey(..)");
    }

    /// RFC 8032's first key, in OpenSSL's form, signs as it always did.
    #[test]
    fn golden_signature() {
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let hex = format!("302e020100300506032b657004220420{seed}");
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
        };
        let key = SigningKey::from_pkcs8(&bytes(&hex)).unwrap();
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(key.public()[..], bytes(public));
        assert_eq!(
            blake3::hash(&key.sign(&[1; 32])).to_hex().as_str(),
            "9026f011efdf3e665a26f79710616c39429239345ed684fc65b260a379b1156a"
        );
    }
}
