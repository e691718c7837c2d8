//! A chip on its board: opened, run by a descriptor, its counters and its errors read.

use std::path::PathBuf;
use std::sync::Mutex;

use blindcore_accel::Error;
use blindcore_accel::cost::{Cost, Traffic};

use super::board::{Board, Build, Stream};
use super::descriptor::Descriptor;

/// The thesis's clock, in hertz.
pub const THESIS_CLOCK: f64 = 2e9;
/// Clocks on which a sum in flight was needed.
pub const HAZARD: &str = "hazard";
/// Clocks on which the last sums were leaving.
pub const TAIL: &str = "tail";

pub(super) struct Chip {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) path: PathBuf,
    pub(super) build: Build,
    pub(super) board: Mutex<Board>,
}

impl Chip {
    /// Writes the descriptor, runs to the end and reads the counters, each clock of which has one cause: that lanes multiplied, a level
    /// whose words they waited for, or one of [`HAZARD`] and [`TAIL`].
    pub(super) fn run(
        &self,
        descriptor: &Descriptor,
        rate: (u16, u16),
        stream: &[u64],
        out: &mut [u64],
    ) -> Result<Cost, Error> {
        const CONTROL: u16 = 0;
        const COUNTERS: u16 = 0x80;
        let mut board = self.board.lock().unwrap_or_else(|poisoned| {
            let mut board = poisoned.into_inner();
            board.renew(); // a thread that panicked may have left it busy
            board
        });
        for (register, value) in descriptor.registers() {
            board.write(register, value);
        }
        let mut words = stream;
        if descriptor.resident {
            for (tile, words) in stream.chunks(2 * descriptor.tile_beats).take(2).enumerate() {
                for (beat, pair) in words.as_chunks::<2>().0.iter().enumerate() {
                    board.poke(tile * self.build.half_beats + beat, pair[0], pair[1]);
                }
            }
            words = &[];
        }
        board.write(CONTROL, 1);
        // The chip's watchdog ends a run that stands still; this one ends a run that never does.
        let (rate_words, rate_clocks) = (u64::from(rate.0), u64::from(rate.1));
        let macs = descriptor.mac_period.saturating_mul((descriptor.tiles * descriptor.moduli.len()) as u64);
        let most = (4 * stream.len() as u64 * (rate_clocks / rate_words + 1))
            .saturating_add(macs.saturating_mul(64))
            .saturating_add(1_000_000);
        let written = board.run(&Stream { words, rate }, out, most);
        let state = board.read(CONTROL);
        let code = state >> 4 & 15;
        if code != 0 || written != Some(out.len()) {
            board.renew();
            let (what, remedy) = meaning(code);
            return Err(Error::Hardware { device: self.name.into(), code, what, remedy });
        }
        let [
            cycles,
            issued,
            hazard,
            tail,
            registers,
            ssd,
            sram,
            dram,
            ssd_words,
            reads,
            writes,
            rows,
            stores,
            begun,
            outs,
        ] = std::array::from_fn(|i| board.read(COUNTERS + i as u16));
        let lanes = self.build.lanes as u64;
        let bounds = [
            ("lanes", issued),
            ("SSD", ssd),
            ("DRAM", dram),
            ("SRAM", sram),
            ("RF", registers),
            (HAZARD, hazard),
            (TAIL, tail),
        ];
        let word = self.build.word as u64;
        let moved = |level, read: u64, written: u64| Traffic::new(level, read.into(), written.into());
        Ok(Cost {
            points: (issued * lanes).into(),
            lanes,
            threads: 1,
            traffic: vec![
                moved("SSD", 64 * ssd_words, 128 * outs),
                moved("DRAM", 128 * reads, 128 * writes),
                moved("SRAM", 256 * lanes * rows, 256 * lanes * stores),
                moved("RF", word * lanes * (2 * issued + begun), 0),
            ],
            ..Cost::clocked(cycles, THESIS_CLOCK, bounds.map(|(what, clocks)| (what.into(), clocks)))
        })
    }
}

/// What the chip's error register says, and what to do. `error_e` in `oc_pkg.sv`.
fn meaning(code: u64) -> (&'static str, &'static str) {
    let report = "report this as a defect of blindcore";
    match code {
        1 => ("the descriptor asks for what this build does not have", report),
        2 => ("a modulus is none, or below 2", "use 2^32, 2^64 or a prime below 2^62"),
        3 => ("an address lies behind its region of the DRAM", report),
        4 => ("an address lies behind its tile in an SRAM", report),
        5 => ("an address lies behind its tile in a register file", report),
        6 => ("an operand was not below its modulus", "reduce it first"),
        7 => ("nothing moved for as long as the watchdog waits", report),
        _ => ("it came to no end, or to another number of results", report),
    }
}
