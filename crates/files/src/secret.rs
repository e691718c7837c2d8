//! Whether a file holds a secret key or a token: nothing else is written over it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use zeroize::Zeroizing;

use crate::text::BYTE_ORDER_MARK;

/// What a file of a secret key of Paillier starts with.
pub const SUM_SECRET_KEY: &[u8; 8] = b"bcsumsec";

/// What tokens begin with, so that one that strayed into a repository or a log is known for what it is.
pub const TOKEN_PREFIX: &str = "blindcore_";

/// Bytes of a key file, at most.
pub const MAX_KEY_BYTES: u64 = 1 << 16;

/// The first 64 KiB and a byte of a file, wiped when dropped: all of a key, and of another file enough to tell.
///
/// # Errors
/// The system refuses.
pub fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    // Room for all of it at once: nothing is left behind by growing.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_KEY_BYTES as usize + 1));
    File::open(path)?.take(MAX_KEY_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A document of JSON without a byte order mark before it: what the reader of python-paillier's keys and the guard of keys take
/// alike, so that no form of a key is one for the reader alone.
#[must_use]
pub fn json_document(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// Whether bytes are those of a secret key: of Paillier, of python-paillier's JSON, or in PEM.
#[must_use]
pub fn is_secret_key(bytes: &[u8]) -> bool {
    let has = |word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
    // In PEM the first line says so whatever its kind, and a certificate may come before it.
    if has(b"PRIVATE KEY-----") {
        return true;
    }
    // A key that python-paillier wrote is one wherever its object begins.
    let is_object = || json_document(bytes).trim_ascii_start().starts_with(b"{");
    let is_phe = || is_object() && has(b"\"DAJ\"") && has(b"\"decrypt\"");
    bytes.len() as u64 <= MAX_KEY_BYTES && (bytes.starts_with(SUM_SECRET_KEY) || is_phe())
}

/// Whether bytes are those of a token's file: its prefix and 64 hexadecimal digits, alone.
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii();
    let digits = text.strip_prefix(TOKEN_PREFIX.as_bytes());
    digits.is_some_and(|digits| digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// The one warning of a file that holds a secret, such as `secret key`, and that others than its owner may read or write,
/// where the system tells.
#[must_use]
pub fn exposed(what: &str, path: &Path) -> Option<String> {
    #[cfg(unix)]
    let open = {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o077 != 0)
    };
    #[cfg(not(unix))]
    let open = false;
    let path = path.display();
    open.then(|| format!("{what} {path} is open to others on this machine; close it: chmod 600 {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_read_is_exposed_and_a_device_is_not() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "x").unwrap();
        for (mode, open) in [(0o600, false), (0o644, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(exposed("token", &path).is_some(), open, "{mode:o}");
        }
        assert_eq!(exposed("token", Path::new("/dev/null")), None);
    }
}
