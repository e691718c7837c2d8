//! Keys that a person keeps in a text, one a line, and how far their lookups are.

use std::borrow::Cow;
use std::error::Error;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use blindcore_files::{Access, Existing, NewFile, new_file, text};
use blindcore_wire::KeyForm;
use blindcore_wire::codec::MAX_KEY_BYTES;
use serde_json::json;

/// The longest file that says how far lookups are, in bytes.
const MAX_STATE_BYTES: u64 = 4 << 10;

/// Why keys can't be read, or lookups can't go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The system refuses.
    #[error(
        "keys can't be read from {}: {source}; {}",
        called(name),
        blindcore_files::refusal::remedy(source)
    )]
    Read {
        /// The file.
        name: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// There are none.
    #[error("{} has no keys; give one a line", called(name))]
    None {
        /// The file.
        name: PathBuf,
    },
    /// A line is not a key.
    #[error("line {line} is not a key: {why}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// Why not.
        why: String,
    },
    /// What a file says of how far lookups are is of something else.
    #[error("{} says how far other lookups are: {why}; name another file to start from the first key", name.display())]
    Other {
        /// The file.
        name: PathBuf,
        /// What differs.
        why: String,
    },
    /// The file that says how far lookups are can't be read or written.
    #[error("{} can't hold how far the lookups are", name.display())]
    State {
        /// The file.
        name: PathBuf,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// What messages call it.
fn called(name: &Path) -> Cow<'_, str> {
    if name == Path::new("-") { "standard input".into() } else { name.to_string_lossy() }
}

/// A line of a text of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLine {
    /// Its number, from 1.
    pub line: u64,
    /// The key, or why it is none.
    pub key: Result<Vec<u8>, String>,
    /// Stands for all lines up to this one.
    pub(crate) chain: [u8; 32],
}

/// The keys of a text. Empty lines are skipped.
pub struct Keys {
    name: PathBuf,
    lines: text::Lines<Box<dyn BufRead + Send>>,
    line: u64,
    chain: [u8; 32],
    form: KeyForm,
}

impl Keys {
    /// The lines of `input`, which messages call `name`.
    pub fn new(name: &Path, input: Box<dyn BufRead + Send>) -> Self {
        Self {
            name: name.to_owned(),
            lines: text::Lines::new(input),
            line: 0,
            chain: [0; 32],
            form: KeyForm::Text,
        }
    }

    /// The same, with keys in this form.
    #[must_use]
    pub fn written_in(self, form: KeyForm) -> Self {
        // The same lines in another form are other keys.
        let chain = match form {
            KeyForm::Text => [0; 32],
            KeyForm::Hex => [1; 32],
            KeyForm::Base64 => [2; 32],
        };
        Self { form, chain, ..self }
    }

    /// The lines of a file, or of the standard input, which is called `-`.
    ///
    /// # Errors
    /// It can't be opened.
    pub fn open(name: &Path) -> Result<Self, KeysError> {
        if name == Path::new("-") {
            return Ok(Self::new(name, Box::new(std::io::BufReader::new(std::io::stdin()))));
        }
        let file = std::fs::File::open(name);
        let file = file.map_err(|source| KeysError::Read { name: name.to_owned(), source })?;
        Ok(Self::new(name, Box::new(std::io::BufReader::new(file))))
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    fn next_line(&mut self) -> std::io::Result<Option<KeyLine>> {
        let mut bytes = Vec::new();
        let longest = self.form.characters(MAX_KEY_BYTES);
        loop {
            bytes.clear();
            if self.lines.append(&mut bytes, longest + 2)? == 0 {
                return Ok(None);
            }
            self.line += 1;
            let whole = bytes.ends_with(b"\n") || bytes.len() < longest + 2;
            bytes.truncate(text::without_end(&bytes).len());
            let long = !whole || bytes.len() > longest;
            while !bytes.is_empty() && !whole {
                // The rest of a line that is too long for a key.
                let mut rest = Vec::new();
                if self.lines.append(&mut rest, 1 << 16)? == 0 || rest.ends_with(b"\n") {
                    break;
                }
            }
            self.chain = *blake3::hash(&[&self.chain, &bytes[..]].concat()).as_bytes();
            if bytes.is_empty() {
                continue;
            }
            let key = if long {
                Err(format!("it is longer than the {MAX_KEY_BYTES} B of a key; give one key a line"))
            } else {
                let text = String::from_utf8(bytes)
                    .map_err(|_| "it is not UTF-8; give one key a line, in UTF-8".to_owned());
                text.and_then(|text| self.form.key(&text))
            };
            return Ok(Some(KeyLine { line: self.line, key, chain: self.chain }));
        }
    }
}

impl Iterator for Keys {
    type Item = Result<KeyLine, KeysError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line().map_err(|source| KeysError::Read { name: self.name.clone(), source }).transpose()
    }
}

/// How many keys came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys whose record was found.
    pub found: u64,
    /// Keys that are not there.
    pub absent: u64,
    /// Lines that are no keys, and keys whose answer is damaged or wrong.
    pub failed: u64,
}

impl Counts {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.found + self.absent + self.failed
    }
}

/// A file that says how far the lookups of a text's keys are, so that a run that ended goes on behind the last answer that
/// was printed. It holds a number of lines, what stands for them, and counts; no key and no answer.
#[derive(Clone)]
pub struct Resume {
    path: PathBuf,
    table: String,
    line: u64,
    chain: [u8; 32],
    pub(crate) counts: Counts,
}

impl Resume {
    /// What the file says, or a start where there is none.
    ///
    /// # Errors
    /// It can't be read or written, or is of another table.
    pub fn open(path: &Path, table: &str) -> Result<Self, KeysError> {
        let start = Self {
            path: path.to_owned(),
            table: table.to_owned(),
            line: 0,
            chain: [0; 32],
            counts: Counts::default(),
        };
        // What can't be written is said before anything is asked.
        let writable = || NewFile::create(path, Access::Owner).map(drop).map_err(|e| state_error(path, e));
        if std::fs::symlink_metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
            return writable().map(|()| start);
        }
        let other = |why: &str| KeysError::Other { name: path.to_owned(), why: why.to_owned() };
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(other("it is not an ordinary file"));
        }
        let text = blindcore_files::small::read_text(path, MAX_STATE_BYTES).map_err(|error| {
            let why = error.source().map_or(String::new(), |why| format!(": {why}"));
            state_error(path, format!("{error}{why}; remove it, or name another file"))
        })?;
        let state: serde_json::Value =
            serde_json::from_str(&text).map_err(|_| other("it is not what this command writes"))?;
        if state["table"] != table {
            return Err(other("they are of another table"));
        }
        let number = |name: &str| state[name].as_u64();
        let read = || {
            let chain = blake3::Hash::from_hex(state["digest"].as_str()?).ok()?;
            let (found, absent, failed) = (number("found")?, number("not_there")?, number("failed")?);
            // A line is a key or is passed over.
            let lines = number("lines")?;
            let keys = found.checked_add(absent)?.checked_add(failed)?;
            (keys <= lines).then_some((lines, *chain.as_bytes(), Counts { found, absent, failed }))
        };
        let (line, chain, counts) = read().ok_or_else(|| other("it is not what this command writes"))?;
        writable()?;
        Ok(Self { line, chain, counts, ..start })
    }

    /// How many lines are done.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.line
    }

    /// Reads the lines that are done.
    ///
    /// # Errors
    /// They can't be read, or are others.
    pub(crate) fn skip(&self, keys: &mut Keys) -> Result<(), KeysError> {
        if self.line == 0 {
            return Ok(());
        }
        let mut chain = [0; 32];
        while keys.line < self.line {
            let Some(next) = keys.next() else { break };
            chain = next?.chain;
        }
        if (keys.line, chain) == (self.line, self.chain) {
            return Ok(());
        }
        let (name, why) = (
            self.path.clone(),
            format!("the first {} lines of the keys are others, or in another form", self.line),
        );
        Err(KeysError::Other { name, why })
    }

    /// Says that all lines up to this one are done.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn done(&mut self, last: &KeyLine, counts: Counts) -> Result<(), KeysError> {
        (self.line, self.chain, self.counts) = (last.line, last.chain, counts);
        let digest = blake3::Hash::from_bytes(self.chain).to_hex();
        let state = json!({
            "table": self.table, "lines": self.line, "digest": digest.as_str(),
            "found": counts.found, "not_there": counts.absent, "failed": counts.failed,
        });
        new_file::write(&self.path, Access::Owner, Existing::Replace, format!("{state}\n").as_bytes())
            .map_err(|error| state_error(&self.path, error))
    }
}

fn state_error(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> KeysError {
    KeysError::State { name: path.to_owned(), source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &'static [u8]) -> Keys {
        Keys::new(Path::new("keys"), Box::new(text))
    }

    #[test]
    fn lines_are_keys_or_say_why_not() {
        let long = [b"a\r\n\n".to_vec(), vec![b'x'; 100_000], b"\n\xff\nb".to_vec()].concat();
        let all: Vec<KeyLine> = keys(long.leak()).map(Result::unwrap).collect();
        let shown: Vec<_> = all.iter().map(|k| (k.line, k.key.as_deref().ok())).collect();
        assert_eq!(shown, [(1, Some(&b"a"[..])), (3, None), (4, None), (5, Some(b"b"))]);
        assert!(all[1].key.as_ref().unwrap_err().contains("4096"));
        let longest = vec![b'x'; MAX_KEY_BYTES];
        for end in [&b"\n"[..], b"\r\n", b""] {
            let text = [&longest[..], end].concat();
            let all: Vec<KeyLine> = keys(text.leak()).map(Result::unwrap).collect();
            assert!(all.len() == 1 && all[0].key.is_ok(), "{end:?}");
        }
    }

    #[test]
    fn a_run_goes_on_behind_its_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut resume = Resume::open(&path, "t").unwrap();
        let mut some = keys(b"a\n\nb\nc\nd\n");
        resume.skip(&mut some).unwrap();
        let b = some.nth(1).unwrap().unwrap();
        let counts = Counts { found: 1, absent: 1, failed: 0 };
        resume.done(&b, counts).unwrap();
        let resume = Resume::open(&path, "t").unwrap();
        assert_eq!((resume.lines(), resume.counts), (3, counts));
        let mut again = keys(b"a\n\nb\nc\nd\n");
        resume.skip(&mut again).unwrap();
        let rest: Vec<_> = again.map(|k| k.unwrap().key.unwrap()).collect();
        assert_eq!(rest, [b"c", b"d"]);
        for other in [&b"a\n\nB\nc\n"[..], b"a\n", b""] {
            let refused = resume.skip(&mut keys(other)).unwrap_err().to_string();
            assert!(refused.contains("the first 3 lines of the keys are others"), "{refused}");
        }
        let hex = || keys(b"0a\n0b\n").written_in(KeyForm::Hex);
        let mut in_hex = Resume::open(&folder.path().join("hex"), "t").unwrap();
        in_hex.done(&hex().nth(1).unwrap().unwrap(), counts).unwrap();
        in_hex.skip(&mut hex()).unwrap();
        let refused = in_hex.skip(&mut keys(b"0a\n0b\n")).unwrap_err().to_string();
        assert!(refused.contains("or in another form"), "{refused}");
        assert!(matches!(Resume::open(&path, "u"), Err(KeysError::Other { .. })));
        let written = std::fs::read_to_string(&path).unwrap();
        let more = |found: u64| written.replace("\"found\":1", &format!("\"found\":{found}"));
        let states = ["{}".to_owned(), more(3), more(u64::MAX)];
        for state in states {
            std::fs::write(&path, &state).unwrap();
            assert!(matches!(Resume::open(&path, "t"), Err(KeysError::Other { .. })), "{state}");
        }
        let refused = Resume::open(folder.path(), "t").err().unwrap().to_string();
        assert!(refused.contains("it is not an ordinary file"), "{refused}");
    }

    #[test]
    fn a_state_that_could_not_be_kept_is_refused_before_anything_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| {
            let error = Resume::open(path, "t").err().expect("it can't be written");
            format!("{error}: {}", error.source().unwrap())
        };
        let said = refused(&folder.path().join("none/state"));
        assert!(said.ends_with("none is missing; make it, or name another"), "{said}");
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(folder.path().join("nothing"), &link).unwrap();
            let said = refused(&link);
            assert!(said.ends_with("(os error 2); remove it, or name another file"), "{said}");
        }
        // Where it could be, nothing is left of the trial.
        let path = folder.path().join("state");
        assert_eq!(Resume::open(&path, "t").unwrap().lines(), 0);
        assert!(!path.exists());
    }
}
