//! A simulated board as a library: the C interface of `hw/rtl/sim/board.cpp`.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::path::Path;

use blindcore_accel::Error;
use libloading::Library;

use super::descriptor::DRAM_BEATS;
use crate::library::{Handle, Opened};

/// The interface that this was compiled for.
const VERSION: u32 = 1;

type Parameters = unsafe extern "C" fn(*mut c_void, *mut u32);
type Write = unsafe extern "C" fn(*mut c_void, u32, u64);
type Read = unsafe extern "C" fn(*mut c_void, u32) -> u64;
type Poke = unsafe extern "C" fn(*mut c_void, u32, u64, u64);
type Run = unsafe extern "C" fn(
    *mut c_void,
    u32,
    u32,
    *const u64,
    u64,
    *mut u64,
    *mut u64,
    u64,
    *mut u64,
    u32,
    u64,
) -> u64;

/// What a build of the chip has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Compute units, each with its register file and SRAM.
    pub lanes: usize,
    /// Bits of a word: 64, or 32 for arithmetic modulo 2^32 alone.
    pub word: usize,
    /// Full adders in a row between two registers; 0 is the thesis's six stages.
    pub bits: usize,
    /// Clocks through the compute unit.
    pub latency: usize,
    /// Rows of 256 bits in an SRAM.
    pub sram_rows: usize,
    /// Rows of 256 bits in a register file.
    pub rf_rows: usize,
    /// Beats of 128 bits in each half of the DRAM.
    pub half_beats: usize,
    /// Beats of the DRAM for sums that go on.
    pub c_beats: usize,
}

impl Build {
    /// Bytes of the DRAM: both halves, and what is for sums.
    #[must_use]
    pub fn dram_bytes(&self) -> usize {
        16 * (2 * self.half_beats + self.c_beats)
    }
}

/// A chip on its board, powered.
pub(crate) struct Board {
    handle: Handle,
    write: Write,
    read: Read,
    poke: Poke,
    run: Run,
    build: Build,
    // Last, so that the code stays until the handle is gone.
    _library: Library,
}

// SAFETY: a board owns its Verilator context; `&mut self` on everything keeps it to one thread at a time, and nothing that
// Verilator keeps for a thread (which context prints and asserts) is used: the library is built without assertions.
unsafe impl Send for Board {}

/// The stream at a bandwidth, and where it stands.
pub(crate) struct Stream<'a> {
    /// 64-bit words.
    pub(crate) words: &'a [u64],
    /// This many words in this many clocks.
    pub(crate) rate: (u16, u16),
}

impl Board {
    /// Loads `path` and powers a board, which must have these lanes, word and full adders in a row.
    pub(crate) fn open(name: &str, path: &Path, promised: [usize; 3]) -> Result<Self, Error> {
        let opened = Opened::new(name, path, b"board_version", VERSION)?;
        // SAFETY: the symbols have the types of `hw/rtl/sim/board.cpp`, which its version vouches for, and the library is kept
        // as long as the board.
        unsafe {
            let parameters: Parameters = opened.get(b"board_parameters")?;
            let write: Write = opened.get(b"board_write")?;
            let read: Read = opened.get(b"board_read")?;
            let poke: Poke = opened.get(b"board_poke")?;
            let run: Run = opened.get(b"board_run")?;
            let handle = opened.make(b"board_new", b"board_free", "board")?;
            let mut p = [0u32; 8];
            parameters(handle.pointer(), p.as_mut_ptr());
            let [lanes, word, bits, latency, sram_rows, rf_rows, half_beats, c_beats] = p.map(|p| p as usize);
            let build = Build { lanes, word, bits, latency, sram_rows, rf_rows, half_beats, c_beats };
            let sizes = [latency, sram_rows, rf_rows, half_beats, c_beats];
            if [lanes, word, bits] != promised || sizes.iter().any(|s| !(1..=DRAM_BEATS).contains(s)) {
                return Err(opened.refuse("is another chip than its name says"));
            }
            if build.dram_bytes() > 16 * DRAM_BEATS {
                return Err(opened.refuse("has a DRAM over the 4 GiB that an address of its chip names"));
            }
            Ok(Self { handle, write, read, poke, run, build, _library: opened.keep() })
        }
    }

    pub(crate) fn build(&self) -> Build {
        self.build
    }

    /// Another board, which knows nothing of what the one before was asked.
    pub(crate) fn renew(&mut self) {
        self.handle.renew();
    }

    /// Writes a host register.
    pub(crate) fn write(&mut self, address: u16, data: u64) {
        // SAFETY: the handle is live; any address and data are allowed.
        unsafe { (self.write)(self.handle.pointer(), address.into(), data) }
    }

    /// Reads a host register.
    pub(crate) fn read(&mut self, address: u16) -> u64 {
        // SAFETY: as for `write`.
        unsafe { (self.read)(self.handle.pointer(), address.into()) }
    }

    /// Puts a beat into the DRAM without a clock of the chip's time.
    pub(crate) fn poke(&mut self, beat: usize, low: u64, high: u64) {
        // SAFETY: the model takes the address modulo its size.
        unsafe { (self.poke)(self.handle.pointer(), beat as u32, low, high) }
    }

    /// Clocks until the chip is idle, or `most` clocks are over; `None` then. What comes out goes to `out`, as far as
    /// it reaches; how many words did is returned.
    pub(crate) fn run(&mut self, stream: &Stream<'_>, out: &mut [u64], most: u64) -> Option<usize> {
        let (mut at, mut written) = (0u64, 0u64);
        // SAFETY: both slices are live with the lengths that are passed, and the other side keeps within them.
        let ran = unsafe {
            (self.run)(
                self.handle.pointer(),
                stream.rate.0.into(),
                stream.rate.1.into(),
                stream.words.as_ptr(),
                stream.words.len() as u64,
                &raw mut at,
                out.as_mut_ptr(),
                out.len() as u64,
                &raw mut written,
                0,
                most,
            )
        };
        (ran < most).then_some(written as usize)
    }
}
