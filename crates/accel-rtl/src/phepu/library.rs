//! A simulated card as a library: the C interface of `hw/rtl/sim/phepu.cpp`.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::path::Path;

use blindcore_accel::Error;
use libloading::Library;

use crate::library::{Handle, Opened};

/// The interface that this was compiled for.
const VERSION: u32 = 1;

type Parameters = unsafe extern "C" fn(*mut c_void, *mut u32);
type Reset = unsafe extern "C" fn(*mut c_void, *const u32);
type Run = unsafe extern "C" fn(
    *mut c_void,
    *const u32,
    *const u32,
    u64,
    *mut u32,
    u64,
    *mut u64,
    u64,
    *mut u64,
) -> u32;

/// 32-bit words of a word of the bus.
pub(super) const WORD: usize = 8;

/// What a build of a card has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Chips.
    pub chips: usize,
    /// Processing elements of a chip.
    pub elements: usize,
    /// Words of 256 bits in a chip's global buffer of inputs.
    pub input_words: usize,
    /// Words in its global buffer of weights.
    pub weight_words: usize,
    /// Words of results that wait for the link.
    pub output_words: usize,
    /// Words of instructions, four each, that wait for the controller.
    pub instruction_words: usize,
}

/// A word that came out, and from which chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Out {
    pub(super) chip: u32,
    pub(super) word: [u32; WORD],
}

/// How a run ended.
pub(super) struct Ended {
    /// 0: every chip that was sent anything has reported; 1: clocks over; 2: more came out than fits.
    pub(super) code: u32,
    /// Words that came out.
    pub(super) count: u64,
    /// Clocks; those in which PCIe and the DDR memory moved something; words into all chips, words out of them.
    pub(super) counters: [u64; 8],
}

/// A card, powered.
pub(super) struct Board {
    handle: Handle,
    reset: Reset,
    run: Run,
    build: Build,
    // Last, so that the code stays until the handle is gone.
    _library: Library,
}

// SAFETY: a board owns its Verilator context; `&mut self` on everything keeps it to one thread at a time, and nothing that
// Verilator keeps for a thread (which context prints and asserts) is used: the library is built without assertions.
unsafe impl Send for Board {}

impl Board {
    /// Loads `path` and powers a card, which must have this many chips.
    pub(super) fn open(name: &str, path: &Path, chips: usize) -> Result<Self, Error> {
        let opened = Opened::new(name, path, b"phepu_version", VERSION)?;
        // SAFETY: the symbols have the types of `hw/rtl/sim/phepu.cpp`, which its version vouches for, and the library is
        // kept as long as the board.
        unsafe {
            let parameters: Parameters = opened.get(b"phepu_parameters")?;
            let reset: Reset = opened.get(b"phepu_reset")?;
            let run: Run = opened.get(b"phepu_run")?;
            let handle = opened.make(b"phepu_new", b"phepu_free", "card")?;
            let mut p = [0u32; 8];
            parameters(handle.pointer(), p.as_mut_ptr());
            let [there, elements, input_words, weight_words, output_words, instruction_words, ..] =
                p.map(|p| p as usize);
            let build =
                Build { chips: there, elements, input_words, weight_words, output_words, instruction_words };
            // An instruction names its elements by a mask and words of the global buffers by 16 bits, and a round of a batch is
            // at most 1,808 words.
            let fits = [input_words, weight_words].iter().all(|words| (1 << 11..=1 << 16).contains(words))
                && (1..=16).contains(&elements);
            if there != chips || !fits {
                return Err(opened.refuse("is another card than its name says"));
            }
            Ok(Self { handle, reset, run, build, _library: opened.keep() })
        }
    }

    pub(super) fn build(&self) -> Build {
        self.build
    }

    /// Another card, which knows nothing of what the one before was asked.
    pub(super) fn renew(&mut self) {
        self.handle.renew();
    }

    /// From reset: sends each word to the chips of its mask, and clocks until all of them have reported, or `most` clocks
    /// are over. Settings are the bits a clock of PCIe, DDR memory and links, 0 for any, and the watchdog's clocks.
    pub(super) fn run(
        &mut self,
        settings: [u32; 4],
        masks: &[u32],
        words: &[[u32; WORD]],
        out: &mut [Out],
        most: u64,
    ) -> Ended {
        assert_eq!(masks.len(), words.len(), "a mask for each word");
        let (mut count, mut counters) = (0, [0; 8]);
        // SAFETY: masks and words are live and as many as is said; the other side writes at most as many results as fit `out`,
        // whose layout is that of nine 32-bit words; settings and counters have the lengths that it reads and writes.
        let code = unsafe {
            (self.reset)(self.handle.pointer(), settings.as_ptr());
            (self.run)(
                self.handle.pointer(),
                masks.as_ptr(),
                words.as_ptr().cast(),
                words.len() as u64,
                out.as_mut_ptr().cast(),
                out.len() as u64,
                &raw mut count,
                most,
                counters.as_mut_ptr(),
            )
        };
        Ended { code, count, counters }
    }
}
