//! A simulated overlay as a library: the C interface of `hw/rtl/sim/overlay.cpp`.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::path::Path;

use blindcore_accel::Error;
use blindcore_accel::garble::Label;
use libloading::Library;

use crate::library::{Handle, Opened};

/// The interface that this was compiled for.
const VERSION: u32 = 1;

type Parameters = unsafe extern "C" fn(*mut c_void, *mut u32);
type Poke = unsafe extern "C" fn(*mut c_void, u32, *const u32);
type Peek = unsafe extern "C" fn(*mut c_void, u32, *mut u8);
type Run = unsafe extern "C" fn(
    *mut c_void,
    *const u32,
    *const u32,
    u64,
    *mut u8,
    u64,
    *mut u64,
    *const u8,
    u64,
    *mut u64,
) -> u32;

/// What a build of an overlay has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// AND cells.
    pub ands: usize,
    /// XOR cells.
    pub xors: usize,
    /// Bits of a label.
    pub label: usize,
    /// Places in the block RAM.
    pub places: usize,
    /// Labels that the model of the DDR memory holds, of each lane.
    pub ddr: usize,
    /// 32-bit words of what the host sends at once.
    pub item_words: usize,
    /// Bytes of an AND's table, of all lanes.
    pub table_bytes: usize,
    /// Lanes that do the same gates on labels of their own.
    pub lanes: usize,
}

/// What the link and the memories take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// Clocks / 64 from one item of the host's to the next.
    pub(super) period: u32,
    /// Clocks from the end of a batch until the host knows.
    pub(super) sync: u32,
    /// Clocks of a DDR access.
    pub(super) latency: u32,
    /// Bytes / 64 of tables a clock; 0: any.
    pub(super) tables: u32,
}

/// Tables that go in or come out.
pub(super) enum Tables<'a> {
    Out(&'a mut [u8]),
    In(&'a [u8]),
}

/// How a run ended.
pub(super) struct Ended {
    /// The chip's error register; 255 if the clocks were over.
    pub(super) error: u32,
    /// Bytes of tables that came out.
    pub(super) table_bytes: u64,
    /// Clocks, gates, DDR accesses; clocks of waiting for DDR, a cell, the host; items; clocks of waiting for the tables' way.
    pub(super) counters: [u64; 8],
}

/// A chip on its board, powered.
pub(super) struct Board {
    handle: Handle,
    poke: Poke,
    peek: Peek,
    run: Run,
    build: Build,
    // Last, so that the code stays until the handle is gone.
    _library: Library,
}

// SAFETY: a board owns its Verilator context; `&mut self` on everything keeps it to one thread at a time, and nothing that
// Verilator keeps for a thread (which context prints and asserts) is used: the library is built without assertions.
unsafe impl Send for Board {}

impl Board {
    /// Loads `path` and powers a board, which must have labels of this many bits and this many lanes.
    pub(super) fn open(name: &str, path: &Path, label: usize, lanes: usize) -> Result<Self, Error> {
        let opened = Opened::new(name, path, b"overlay_version", VERSION)?;
        // SAFETY: the symbols have the types of `hw/rtl/sim/overlay.cpp`, which its version vouches for, and the library is
        // kept as long as the board.
        unsafe {
            let parameters: Parameters = opened.get(b"overlay_parameters")?;
            let poke: Poke = opened.get(b"overlay_poke")?;
            let peek: Peek = opened.get(b"overlay_peek")?;
            let run: Run = opened.get(b"overlay_run")?;
            let handle = opened.make(b"overlay_new", b"overlay_free", "board")?;
            let mut p = [0u32; 8];
            parameters(handle.pointer(), p.as_mut_ptr());
            let [ands, xors, bits, places, ddr, item_bytes, table_bytes, of_lanes] = p.map(|p| p as usize);
            let item_words = item_bytes / 4;
            let build =
                Build { ands, xors, label: bits, places, ddr, item_words, table_bytes, lanes: of_lanes };
            let sizes = [ands, xors, places, ddr, item_words, table_bytes];
            if [bits, of_lanes] != [label, lanes] || sizes.iter().any(|s| !(1..=1 << 24).contains(s)) {
                return Err(opened.refuse("is another chip than its name says"));
            }
            Ok(Self { handle, poke, peek, run, build, _library: opened.keep() })
        }
    }

    pub(super) fn build(&self) -> Build {
        self.build
    }

    /// Another board, which knows nothing of what the one before was asked.
    pub(super) fn renew(&mut self) {
        self.handle.renew();
    }

    /// Puts a label of each lane at an address, whose last bit says which memory.
    pub(super) fn poke(&mut self, address: u32, labels: &[Label]) {
        assert_eq!(labels.len(), self.build.lanes, "a label a lane");
        let words: Vec<u32> =
            labels.iter().flat_map(|l| [0, 32, 64, 96].map(|shift| (l >> shift) as u32)).collect();
        // SAFETY: four words a lane, as many as the other side reads; the board takes an address modulo its sizes.
        unsafe { (self.poke)(self.handle.pointer(), address, words.as_ptr()) }
    }

    /// The label of each lane at an address.
    pub(super) fn peek(&mut self, address: u32) -> Vec<Label> {
        let mut bytes = vec![0u8; 16 * self.build.lanes];
        // SAFETY: sixteen bytes a lane, as many as the other side writes.
        unsafe { (self.peek)(self.handle.pointer(), address, bytes.as_mut_ptr()) };
        bytes.as_chunks::<16>().0.iter().map(|label| Label::from_le_bytes(*label)).collect()
    }

    /// Sends items and clocks to the end, or until `most` clocks are over.
    pub(super) fn run(&mut self, timing: Timing, items: &[u32], tables: Tables<'_>, most: u64) -> Ended {
        assert_eq!(items.len() % self.build.item_words, 0, "whole items");
        let settings = [timing.period, timing.sync, timing.latency, timing.tables];
        let (mut table_bytes, mut counters) = (0, [0; 8]);
        let count = (items.len() / self.build.item_words) as u64;
        let (out, length, feed) = match tables {
            Tables::Out(out) => (out.as_mut_ptr(), out.len() as u64, std::ptr::null()),
            Tables::In(tables) => {
                assert_eq!(tables.len() % self.build.table_bytes, 0, "whole tables");
                (std::ptr::null_mut(), tables.len() as u64, tables.as_ptr())
            }
        };
        // SAFETY: items and tables are live with the lengths that are passed, and the other side keeps within them: where
        // tables go in, the chip gives none out; settings and counters have the lengths that it reads and writes.
        let error = unsafe {
            (self.run)(
                self.handle.pointer(),
                settings.as_ptr(),
                items.as_ptr(),
                count,
                out,
                length,
                &raw mut table_bytes,
                feed,
                most,
                counters.as_mut_ptr(),
            )
        };
        Ended { error, table_bytes, counters }
    }
}
