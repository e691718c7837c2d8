//! Lookups of as many keys as come, each answered as soon as it can be.

use crate::keys::{Counts, KeyLine, Keys, KeysError, Resume};
use crate::waiting::Waiting;
use crate::{Error, Lookup, LookupError, TableClient};
use tokio::sync::mpsc;

/// Lines that are read ahead.
const AHEAD: usize = 1024;

/// What came of a line.
pub struct Answer<'a> {
    /// The line.
    pub line: &'a KeyLine,
    /// What was found, or why it isn't known.
    pub lookup: Result<Lookup, Error>,
    /// The table that was asked: another one once its epoch changed.
    pub table: &'a TableClient,
}

impl TableClient {
    /// Looks up every key that comes, in as few requests as the keys that are there allow, and hands each answer on, in their
    /// order. A line that is no key, or an answer that is damaged or wrong, is an answer too, and the rest is asked all the
    /// same. Where the server is busy or gone this waits as long as [`crate::Options::patience`]; where the table has another
    /// epoch it is opened again. `resume` skips what is done and is written behind each request, when its answers were handed
    /// on.
    ///
    /// # Errors
    /// The keys can't be read, `resume` is of other keys, the server can't be asked any more, or `answer` refuses.
    pub async fn get_all<E: From<Error>>(
        self,
        keys: Keys,
        mut resume: Option<Resume>,
        mut answer: impl FnMut(Answer<'_>) -> Result<(), E>,
    ) -> Result<Counts, E> {
        let mut counts = resume.as_ref().map_or_else(Counts::default, |resume| resume.counts);
        let name = keys.name().to_owned();
        let mut lines = read(keys, resume.clone());
        let mut table = self;
        let mut read = Vec::new();
        loop {
            // What is there, but no more than a request takes: a key that is typed is answered at once.
            let most = table.keys_per_request();
            if lines.recv_many(&mut read, most).await == 0 {
                break;
            }
            let mut failed = None;
            let batch: Vec<KeyLine> =
                read.drain(..).filter_map(|line| line.map_err(|e| failed = Some(e)).ok()).collect();
            let asked: Vec<&Vec<u8>> = batch.iter().filter_map(|line| line.key.as_ref().ok()).collect();
            let found;
            (table, found) = table.outlasting(&asked).await?;
            let mut found = found.into_iter();
            for line in &batch {
                let lookup = match &line.key {
                    Ok(_) => found.next().unwrap_or(Err(LookupError::Over.into())),
                    Err(why) => Err(KeysError::Line { line: line.line, why: why.clone() }.into()),
                };
                match &lookup {
                    Ok(lookup) if lookup.found.is_some() => counts.found += 1,
                    Ok(_) => counts.absent += 1,
                    Err(_) => counts.failed += 1,
                }
                answer(Answer { line, lookup, table: &table })?;
            }
            if let (Some(resume), Some(last)) = (&mut resume, batch.last()) {
                resume.done(last, counts).map_err(Error::from)?;
            }
            if let Some(failed) = failed {
                return Err(Error::from(failed).into());
            }
        }
        if counts.all() == 0 {
            return Err(Error::from(KeysError::None { name }).into());
        }
        Ok(counts)
    }

    /// Looks keys up at the table's newest epoch, if this one is gone.
    async fn outlasting(mut self, keys: &[&Vec<u8>]) -> Result<(Self, Vec<Result<Lookup, Error>>), Error> {
        if keys.is_empty() {
            return Ok((self, Vec::new()));
        }
        let progress = self.progress().cloned();
        let mut waiting = Waiting::new(self.options(), progress.as_ref());
        loop {
            match self.get_each(keys).await {
                Ok(found) => return Ok((self, found)),
                Err(error @ Error::Lookup(LookupError::StaleEpoch { .. })) => {
                    waiting.after(error).await?;
                    self = self.refresh().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads lines on a thread of their own, which a person may type them into. It ends when nobody wants them any more, and a
/// program doesn't wait for it.
fn read(mut keys: Keys, resume: Option<Resume>) -> mpsc::Receiver<Result<KeyLine, KeysError>> {
    let (send, lines) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let skipped = resume.map_or(Ok(()), |resume| resume.skip(&mut keys)).err().map(Err);
        let rest = if skipped.is_none() { Some(keys) } else { None };
        for line in skipped.into_iter().chain(rest.into_iter().flatten()) {
            let failed = line.is_err();
            if send.blocking_send(line).is_err() || failed {
                break;
            }
        }
    });
    lines
}
