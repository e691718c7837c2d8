//! The body of a scoring request: a public key and rows encrypted under it.
//!
//! ```text
//!   u32, little-endian: bytes of the key │ the key │ a file of ciphertexts, to the end
//! ```

/// Scores of a row, at most: what a server may make a client hold and decrypt.
pub const MAX_OUTPUTS: usize = 4096;
/// The most bytes of a public key.
pub const MAX_KEY_BYTES: usize = 1 << 14;

/// A body from the bytes of a key, at most [`MAX_KEY_BYTES`], and of a file of ciphertexts.
#[must_use]
pub fn encode(key: &[u8], ciphertexts: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + key.len() + ciphertexts.len());
    out.extend((key.len() as u32).to_le_bytes());
    out.extend(key);
    out.extend(ciphertexts);
    out
}

/// The key and the ciphertexts of a body.
///
/// # Errors
/// Says in words what is wrong: the body is cut short, or its key is too long.
pub fn decode(body: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let Some((length, rest)) = body.split_first_chunk::<4>() else {
        return Err("the body is too short for a key's length".into());
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_KEY_BYTES || length > rest.len() {
        return Err(format!("a key of {length} bytes is too long, or the body is cut short"));
    }
    Ok(rest.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_back_and_nonsense_is_refused() {
        let body = encode(b"key", b"rows");
        assert_eq!(decode(&body), Ok((&b"key"[..], &b"rows"[..])));
        assert_eq!(decode(&encode(b"", b"")), Ok((&b""[..], &b""[..])));
        assert!(decode(&body[..6]).unwrap_err().contains("cut short"));
        assert!(decode(&body[..3]).unwrap_err().contains("too short"));
        assert!(decode(&encode(&[0; MAX_KEY_BYTES + 1], b"")).unwrap_err().contains("too long"));
    }
}
