//! Files that are written and read once, in order: past the page cache where their file system does that, by threads that
//! write and read while others compute.
//!
//! What goes through the page cache takes memory from a server on the same machine, and a page that the system
//! must find first may cost more than the disk does, as on a virtual machine that gives back what it doesn't use.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use memmap2::MmapMut;

/// What goes past the page cache must start at, end at and lie at: the largest of all disks' blocks.
pub(crate) const BLOCK: usize = 4096;
/// Bytes that are written at a time.
const WRITE_BYTES: usize = 2 << 20;
/// Bytes of a file that is read once that are given back to the disk at a time.
const GIVE_BACK: u64 = 16 << 20;

/// A new file. Only whole buffers go past the page cache, so that a small file costs nothing more.
#[derive(Debug)]
pub(crate) struct Writer {
    /// At the start of a page.
    buffer: MmapMut,
    used: usize,
    to: To,
}

/// Where buffers go.
#[derive(Debug)]
enum To {
    /// A file that has none yet.
    Here(File),
    /// A thread that writes one while the next is filled. It ends with an error, or once no more come.
    Behind { full: Sender<MmapMut>, empty: Receiver<MmapMut>, thread: JoinHandle<io::Result<File>> },
    /// One that couldn't be written before.
    Lost,
}

impl Writer {
    /// Writes from the start of an empty file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(Self { buffer: MmapMut::map_anon(WRITE_BYTES)?, used: 0, to: To::Here(file) })
    }

    /// Writes what is left, and gives the file back, its next byte its end.
    pub(crate) fn into_file(mut self) -> io::Result<File> {
        let mut file = match std::mem::replace(&mut self.to, To::Lost) {
            To::Here(file) => file,
            To::Behind { full, thread, .. } => {
                drop(full);
                joined(thread)?
            }
            To::Lost => return Err(lost()),
        };
        file.write_all(&self.buffer[..self.used])?;
        Ok(file)
    }

    /// Has the buffer written, and goes on with another one.
    fn turn(&mut self) -> io::Result<()> {
        self.to = match std::mem::replace(&mut self.to, To::Lost) {
            To::Here(file) => {
                let (full, buffers) = channel();
                let (back, empty) = channel();
                let _ = back.send(MmapMut::map_anon(WRITE_BYTES)?);
                let write = move || write_buffers(file, &buffers, &back);
                let thread = Builder::new().name("writer".into()).spawn(write)?;
                To::Behind { full, empty, thread }
            }
            to => to,
        };
        let To::Behind { full, empty, .. } = &self.to else { return Err(lost()) };
        if let Ok(next) = empty.recv() {
            // Where the thread is gone meanwhile the next turn, or the end, says why.
            let _ = full.send(std::mem::replace(&mut self.buffer, next));
            self.used = 0;
            return Ok(());
        }
        match std::mem::replace(&mut self.to, To::Lost) {
            To::Behind { thread, .. } => Err(joined(thread).err().unwrap_or_else(lost)),
            _ => Err(lost()),
        }
    }
}

fn lost() -> io::Error {
    io::Error::other("what came before couldn't be written or read")
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Writes whole buffers as they come, past the page cache where that works, and gives them back.
fn write_buffers(mut file: File, buffers: &Receiver<MmapMut>, back: &Sender<MmapMut>) -> io::Result<File> {
    let mut direct = set_direct(&file, true).is_ok();
    for buffer in buffers {
        let mut left = &buffer[..];
        while !left.is_empty() {
            match file.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                // What is left must start at a block again.
                Ok(n) if direct && n % BLOCK != 0 => {
                    direct = false;
                    set_direct(&file, false)?;
                    left = &left[n..];
                }
                Ok(n) => left = &left[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if direct && e.kind() == io::ErrorKind::InvalidInput => {
                    direct = false;
                    set_direct(&file, false)?;
                }
                Err(e) => return Err(e),
            }
        }
        let _ = back.send(buffer);
    }
    let _ = set_direct(&file, false);
    Ok(file)
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(WRITE_BYTES - self.used);
        self.buffer[self.used..self.used + len].copy_from_slice(&bytes[..len]);
        self.used += len;
        if self.used == WRITE_BYTES {
            self.turn()?;
        }
        Ok(len)
    }

    /// Does nothing: a buffer that isn't full is written by [`Writer::into_file`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A thread that reads parts of files while those before them are used.
#[derive(Debug)]
pub(crate) struct Ahead(Sender<Part>);

/// The next bytes of a file, or where they are to go.
#[derive(Debug)]
struct Part {
    file: File,
    direct: bool,
    /// At the start of a page.
    buffer: MmapMut,
    /// What of it was read: nothing at the end of the file.
    read: io::Result<usize>,
    back: Sender<Part>,
    /// Where the last part that was read begins and where it ends. What lies before it was taken.
    last: [u64; 2],
    /// Up to where the disk has the file's space back, where the file system does that.
    given_back: Option<u64>,
}

impl Ahead {
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, parts) = channel::<Part>();
        let run = move || {
            for mut part in parts {
                part.fill();
                let back = part.back.clone();
                let _ = back.send(part);
            }
        };
        Builder::new().name("reader".into()).spawn(run)?;
        Ok(Self(sender))
    }
}

impl Part {
    fn fill(&mut self) {
        if let Some(given) = self.given_back
            && self.last[0] - given >= GIVE_BACK
        {
            self.given_back = give_back(&self.file, given..self.last[0]).ok().map(|()| self.last[0]);
        }
        self.read = loop {
            match self.file.read(&mut self.buffer) {
                Err(e) if self.direct && e.kind() == io::ErrorKind::InvalidInput => {
                    // Its end, or a file system that only says so now.
                    self.direct = false;
                    if let Err(e) = set_direct(&self.file, false) {
                        break Err(e);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let end = self.last[1];
        self.last = [end, end + *self.read.as_ref().unwrap_or(&0) as u64];
    }
}

/// A file from its start to its end, read this once: where it may be written to, the disk has the space of what was taken
/// back, so that it and what is made of it need not lie there side by side.
#[derive(Debug)]
pub(crate) struct Reader {
    /// At the start of a page.
    buffer: MmapMut,
    /// What of it was read, and what of that was taken.
    len: usize,
    taken: usize,
    ahead: Sender<Part>,
    next: Receiver<Part>,
    /// The part behind the last one. Its file stays open: it may have no name any more.
    end: Option<Part>,
}

impl Reader {
    /// Reads this many bytes at a time, except for the rest of a block, and as many ahead.
    pub(crate) fn new(mut file: File, bytes: usize, ahead: &Ahead) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let buffer = || MmapMut::map_anon(bytes.next_multiple_of(BLOCK));
        let direct = set_direct(&file, true).is_ok();
        let (back, next) = channel();
        let part =
            Part { file, direct, buffer: buffer()?, read: Ok(0), back, last: [0; 2], given_back: Some(0) };
        ahead.0.send(part).map_err(|_| lost())?;
        Ok(Self { buffer: buffer()?, len: 0, taken: 0, ahead: ahead.0.clone(), next, end: None })
    }

    /// What was read and not taken.
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer[self.taken..self.len]
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let some = self.fill_buf()?;
        let len = some.len().min(out.len());
        out[..len].copy_from_slice(&some[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.len && self.end.is_none() {
            let mut part = self.next.recv().map_err(|_| lost())?;
            (self.taken, self.len) = (0, std::mem::replace(&mut part.read, Ok(0))?);
            std::mem::swap(&mut self.buffer, &mut part.buffer);
            if self.len == 0 {
                self.end = Some(part);
            } else {
                self.ahead.send(part).map_err(|_| lost())?;
            }
        }
        Ok(&self.buffer[self.taken..self.len])
    }

    fn consume(&mut self, len: usize) {
        self.taken += len;
    }
}

/// Fills memory with what follows in a file, and hands over each part once it is there. It goes past the page cache
/// where the file stands, and the memory starts, at a block.
pub(crate) fn fill(file: &mut File, into: &mut [u8], each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    // Large for the disk, and still in the cache when it is handed over.
    const STEP: usize = 1 << 20;
    let mut direct = set_direct(file, true).is_ok();
    for part in into.chunks_mut(STEP) {
        let mut done = 0;
        while done < part.len() {
            if direct && (done % BLOCK != 0 || part.len() % BLOCK != 0) {
                direct = false;
                set_direct(file, false)?;
            }
            match file.read(&mut part[done..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if direct && e.kind() == io::ErrorKind::InvalidInput => {
                    direct = false;
                    set_direct(file, false)?;
                }
                Err(e) => return Err(e),
            }
        }
        each(part);
    }
    Ok(())
}

/// Reads from a place in a file, whatever its next byte is.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, target: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, target, offset)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, target: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, target, offset)
}

/// Lets reads and writes of this file go past the page cache, or no longer.
///
/// # Errors
/// Its file system, or this system, does not do that.
#[cfg(target_os = "linux")]
pub(crate) fn set_direct(file: &File, direct: bool) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: an open descriptor and no memory.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    let flags = if direct { flags | libc::O_DIRECT } else { flags & !libc::O_DIRECT };
    // SAFETY: as above.
    let code = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn set_direct(_: &File, direct: bool) -> io::Result<()> {
    if direct { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
}

/// Makes a hole of a part of a file, which keeps its length.
///
/// # Errors
/// Its file system, or this system, does not do that; or the file may not be written to.
#[cfg(target_os = "linux")]
fn give_back(file: &File, part: Range<u64>) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(file, hole, part.start, part.end - part.start)?)
}

#[cfg(not(target_os = "linux"))]
fn give_back(_: &File, _: Range<u64>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_pieces_is_read_in_pieces() {
        let noise: Vec<u8> = (0..5 * WRITE_BYTES / 2 + 77).map(|i| (i * i / 251) as u8).collect();
        let ahead = Ahead::start().unwrap();
        // A folder in memory may refuse to go past the cache.
        let in_memory = tempfile::tempdir_in("/dev/shm").ok();
        for folder in [Some(tempfile::tempdir().unwrap()), in_memory].into_iter().flatten() {
            for (len, piece, buffer) in [
                (0, 1, 1),
                (1, 1, BLOCK),
                (WRITE_BYTES, 1000, BLOCK),
                (noise.len(), 7777, 3 * BLOCK),
                (noise.len(), noise.len(), 1 << 20),
            ] {
                let path = folder.path().join("file");
                let mut writer = Writer::new(File::create(&path).unwrap()).unwrap();
                noise[..len].chunks(piece).for_each(|bytes| writer.write_all(bytes).unwrap());
                let mut file = writer.into_file().unwrap();
                assert_eq!(file.stream_position().unwrap(), len as u64);
                assert!(std::fs::read(&path).unwrap() == noise[..len], "{len} by {piece}");
                let mut reader = Reader::new(File::open(&path).unwrap(), buffer, &ahead).unwrap();
                let mut back = Vec::new();
                while !reader.fill_buf().unwrap().is_empty() {
                    let mut some = vec![0; piece.min(len - back.len())];
                    reader.read_exact(&mut some).unwrap();
                    back.extend(some);
                }
                assert!(back == noise[..len], "{len} by {piece}, {buffer} at a time");
                assert!(reader.buffer().is_empty());
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_disk_has_back_what_was_taken() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let size = 3 * GIVE_BACK;
        let noise: Vec<u8> = (0..size).map(|i| (i * i / 251) as u8).collect();
        std::fs::write(&path, &noise).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        if give_back(&file, 0..1).is_err() {
            return; // not on this file system
        }
        let mut reader = Reader::new(file, 1 << 20, &Ahead::start().unwrap()).unwrap();
        let mut back = vec![0; noise.len()];
        reader.read_exact(&mut back).unwrap();
        assert!(back[1..] == noise[1..] && reader.fill_buf().unwrap().is_empty());
        let there = std::fs::metadata(&path).unwrap();
        // Blocks of 512 bytes: of the last sixteen megabytes and what was being read.
        assert!(there.len() == size && there.blocks() * 512 < 2 * GIVE_BACK, "{} blocks", there.blocks());
    }

    #[test]
    fn memory_is_filled_from_where_a_file_stands() {
        let dir = tempfile::tempdir().unwrap();
        let noise: Vec<u8> = (0..(3usize << 20) + 4097).map(|i| (i * i / 251) as u8).collect();
        let path = dir.path().join("file");
        std::fs::write(&path, &noise).unwrap();
        for start in [0, 1, BLOCK] {
            for offset in [0, 1] {
                let mut file = File::open(&path).unwrap();
                file.seek(SeekFrom::Start(start as u64)).unwrap();
                let mut memory = MmapMut::map_anon(noise.len()).unwrap();
                let into = &mut memory[offset..offset + noise.len() - BLOCK - 1];
                let mut seen = Vec::new();
                fill(&mut file, into, &mut |part| seen.extend_from_slice(part)).unwrap();
                assert!(*into == noise[start..start + into.len()] && *into == seen, "{start}, {offset}");
                let more = &mut memory[..2 * BLOCK];
                assert_eq!(
                    fill(&mut file, more, &mut |_| ()).unwrap_err().kind(),
                    io::ErrorKind::UnexpectedEof
                );
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_said_at_once_or_at_the_end() {
        for len in [100, WRITE_BYTES + 1, 4 * WRITE_BYTES] {
            let mut writer = Writer::new(File::options().write(true).open("/dev/full").unwrap()).unwrap();
            let error =
                writer.write_all(&vec![1; len]).and_then(|()| writer.into_file().map(drop)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }
}
