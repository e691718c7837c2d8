//! A matrix on its way to the disk: groups become stripes, stripes become shards.

use blindcore_lookup::Params;
use blindcore_lookup::schemes::Operand;

use crate::job::{Build, entry};
use crate::manifest::FileEntry;
use crate::mapped::Scratch;
use crate::section::{Kind, Writer};
use crate::{StoreError, tile_sums};

/// Bytes of a shard, at most, but for a stripe that is larger.
const SHARD_BYTES: usize = 1 << 30;

/// Writes a matrix group by group into shards of whole stripes.
pub(crate) struct Shards<'a> {
    build: &'a Build<'a>,
    prefix: &'a str,
    params: &'a Params,
    records: Operand,
    /// Some stripes, because a column's bytes lie together: the more rows at a time, the fewer of its cache lines
    /// are read twice.
    stripes: Scratch,
    stripe_bytes: usize,
    /// Rows in them.
    rows: usize,
    writer: Option<Writer>,
    done: Vec<FileEntry>,
    /// The checksums of their tiles.
    sums: Writer,
}

/// Stripes that are filled together.
const STRIPES: usize = 8;

impl<'a> Shards<'a> {
    pub(crate) fn new(build: &'a Build<'a>, prefix: &'a str, params: &'a Params) -> Result<Self, StoreError> {
        let records = params.records();
        let stripe_bytes = records.stripe_bytes();
        let stripes = build.scratch(STRIPES * stripe_bytes)?;
        let path = build.dir.join(format!("{prefix}.sums"));
        let sums = Writer::create(path, Kind::Sums, params.digest(), build.epoch)?;
        Ok(Self {
            build,
            prefix,
            params,
            records,
            stripes,
            stripe_bytes,
            rows: 0,
            writer: None,
            done: Vec::new(),
            sums,
        })
    }

    /// Adds a group: `columns` cells, one after the other, which the scheme lays out as rows.
    pub(crate) fn group(&mut self, cells: &[u8]) -> Result<(), StoreError> {
        let (rows, room) = (self.params.group_rows(), STRIPES * self.records.layout.stripe_rows());
        let mut first = 0;
        while first < rows {
            let end = rows.min(first + room - self.rows);
            self.params.pack(cells, first..end, self.stripes.bytes(), self.rows);
            self.rows += end - first;
            first = end;
            if self.rows == room {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Ends a matrix behind which another one comes, which starts with a stripe of its own.
    pub(crate) fn next(&mut self) -> Result<(), StoreError> {
        self.clear_rest();
        self.rows = self.rows.next_multiple_of(self.records.layout.stripe_rows());
        if self.rows == STRIPES * self.records.layout.stripe_rows() {
            self.flush()?;
        }
        Ok(())
    }

    /// The last stripe's rows that nobody wrote are still those of a stripe before.
    fn clear_rest(&mut self) {
        let layout = self.records.layout;
        let (stripe, used) = (self.rows / layout.stripe_rows(), self.rows % layout.stripe_rows());
        if used > 0 {
            let last = &mut self.stripes.bytes()[stripe * self.stripe_bytes..][..self.stripe_bytes];
            layout.clear_rows(last, used);
        }
    }

    /// Writes the stripes that hold rows.
    fn flush(&mut self) -> Result<(), StoreError> {
        let mut sums = Vec::new();
        let used = self.rows.div_ceil(self.records.layout.stripe_rows());
        for stripe in self.stripes.bytes().chunks_exact(self.stripe_bytes).take(used) {
            let writer = match &mut self.writer {
                Some(writer) => writer,
                None => {
                    let (dir, digest) = (self.build.dir, self.params.digest());
                    let path = dir.join(format!("{}-{:04}.shard", self.prefix, self.done.len()));
                    self.writer.insert(Writer::create(path, Kind::Shard, digest, self.build.epoch)?)
                }
            };
            writer.write(stripe)?;
            sums.extend(tile_sums(stripe));
            if writer.payload_bytes() as usize + self.stripe_bytes > SHARD_BYTES {
                close(&mut self.writer, &mut self.done)?;
            }
        }
        self.rows = 0;
        self.sums.write(&sums)
    }

    pub(crate) fn finish(mut self) -> Result<(Vec<FileEntry>, FileEntry), StoreError> {
        self.clear_rest();
        self.flush()?;
        close(&mut self.writer, &mut self.done)?;
        let (path, header) = self.sums.finish()?;
        Ok((self.done, entry(&path, &header)))
    }
}

/// Makes the shard that is being written last, if there is one.
fn close(writer: &mut Option<Writer>, done: &mut Vec<FileEntry>) -> Result<(), StoreError> {
    if let Some(writer) = writer.take() {
        let (path, header) = writer.finish()?;
        done.push(entry(&path, &header));
    }
    Ok(())
}
