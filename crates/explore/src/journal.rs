//! What is finished of a sweep, on the disk: a line a point, behind a line that says of which sweep.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use blindcore_files::Lock;

use crate::point::Outcome;

const MAGIC: &str = "# blindcore explore 1 ";
/// No journal is longer.
const MAX_BYTES: u64 = 1 << 32;

/// A journal that this run has for itself.
pub(crate) struct Journal {
    path: PathBuf,
    lock: Lock,
}

impl Journal {
    /// Opens or begins the journal of a sweep with this digest, and reads what is finished: the first cell is a point's number. A line
    /// that a kill or a full disk cut short is taken away.
    pub(crate) fn open(path: &Path, digest: &str, width: usize) -> anyhow::Result<(Self, Vec<Outcome>)> {
        let shown = path.display();
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let opened = opened.with_context(|| format!("{shown} can't be opened; name another --out"))?;
        let locked = Lock::try_on(opened);
        let Some(lock) = locked.with_context(|| format!("{shown} can't be locked; name another --out"))?
        else {
            bail!("{shown} is in use by another run; wait for it, or name another --out");
        };
        let mut file = lock.file();
        if file.metadata()?.len() > MAX_BYTES {
            bail!("{shown} has over {MAX_BYTES} bytes and is not a journal of a sweep; name another --out");
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("{shown} can't be read"))?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(whole);
        let head = format!("{MAGIC}{digest}\n");
        let mut outcomes = Vec::new();
        if bytes.is_empty() {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(head.as_bytes()).and_then(|()| file.sync_all()).with_context(|| full(path, 0))?;
        } else {
            let Some(rest) = bytes.strip_prefix(head.as_bytes()) else {
                bail!(
                    "{shown} is not of this sweep, which was changed or is another; name another --out, or delete it"
                );
            };
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(rest);
            for (line, record) in reader.records().enumerate() {
                let record = record.ok().filter(|r| r.len() == width);
                let Some(record) = record else {
                    bail!("{shown}, line {}: it is damaged; delete the file to begin again", line + 2);
                };
                outcomes.push(record.iter().map(str::to_owned).collect());
            }
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
        }
        Ok((Self { path: path.to_owned(), lock }, outcomes))
    }

    /// Adds finished points, for good.
    pub(crate) fn append(&mut self, outcomes: &[Outcome], before: usize) -> anyhow::Result<()> {
        let lines = lines(outcomes)?;
        let mut file = self.lock.file();
        file.write_all(&lines).and_then(|()| file.sync_data()).with_context(|| full(&self.path, before))
    }
}

fn full(path: &Path, kept: usize) -> String {
    format!(
        "{} can't be written; its {kept} finished points are kept, so make room and run it again",
        path.display()
    )
}

fn lines(outcomes: &[Outcome]) -> anyhow::Result<Vec<u8>> {
    let mut out = csv::Writer::from_writer(Vec::new());
    outcomes.iter().try_for_each(|outcome| out.write_record(outcome))?;
    out.into_inner().context("lines can't be written into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(number: usize) -> Outcome {
        vec![number.to_string(), "a \"b\", c".into(), String::new()]
    }

    #[test]
    fn what_is_finished_is_read_again_and_a_line_cut_short_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points.part");
        let open = |digest: &str| Journal::open(&path, digest, 3);
        let (mut journal, none) = open("d").unwrap();
        assert!(none.is_empty());
        assert!(open("d").err().unwrap().to_string().contains("in use"), "one run at a time");
        journal.append(&[outcome(0), outcome(1)], 0).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        // A kill or a full disk leaves any beginning of what was written.
        let mut all = whole.clone();
        all.extend(lines(&[outcome(2)]).unwrap());
        for cut in whole.len()..all.len() {
            std::fs::write(&path, &all[..cut]).unwrap();
            let (mut journal, read) = open("d").unwrap();
            assert_eq!(read, [outcome(0), outcome(1)]);
            journal.append(&[outcome(2)], 2).unwrap();
            drop(journal);
            assert_eq!(std::fs::read(&path).unwrap(), all);
        }
        assert!(open("other").err().unwrap().to_string().contains("not of this sweep"));
        std::fs::write(&path, [b"# blindcore explore 1 d\n".as_slice(), b"0,1\n"].concat()).unwrap();
        assert!(open("d").err().unwrap().to_string().contains("line 2: it is damaged"));
        for cut in 0..MAGIC.len() {
            std::fs::write(&path, &MAGIC.as_bytes()[..cut]).unwrap();
            assert!(open("d").unwrap().1.is_empty(), "a first line cut short begins again");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_said_with_what_is_kept() {
        let file = || OpenOptions::new().write(true).open("/dev/full").unwrap();
        // It is every process's.
        let lock = std::iter::repeat_with(|| Lock::try_on(file()).unwrap()).find_map(|lock| lock).unwrap();
        let mut journal = Journal { path: "points.part".into(), lock };
        let error = journal.append(&[outcome(5)], 5).unwrap_err().to_string();
        assert!(error.contains("5 finished points are kept, so make room"), "{error}");
    }
}
