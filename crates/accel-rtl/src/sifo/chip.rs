//! A simulated chip on its board, and what both overlays ask of it.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use blindcore_accel::cost::{Cost, Traffic};
use blindcore_accel::garble::Program;
use blindcore_accel::{Description, Error};

use super::clocks::Clocks;
use super::library::{Board, Build, Ended};

/// A device: its name, its library's file, what it is, and its bits of a label and lanes.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    pub(super) what: &'static str,
    pub(super) label: usize,
    pub(super) lanes: usize,
}

pub(super) struct Chip {
    pub(super) name: &'static str,
    pub(super) build: Build,
    what: &'static str,
    path: PathBuf,
    board: Mutex<Board>,
}

impl Chip {
    /// Powers the one that is called so.
    pub(super) fn open(entries: &[Entry], name: &str) -> Result<Self, Error> {
        let Some(entry) = entries.iter().find(|entry| entry.name == name) else {
            return Err(crate::library::unknown(name, entries.iter().map(|entry| entry.name)));
        };
        let path = crate::find(name, entry.file)?;
        let board = Board::open(name, &path, entry.label, entry.lanes)?;
        let build = board.build();
        Ok(Self { name: entry.name, build, what: entry.what, path, board: Mutex::new(board) })
    }

    pub(super) fn describe(&self) -> Description {
        Description {
            name: self.name.into(),
            hardware: format!("{}, simulated from {}", self.what, self.path.display()),
            threads: 1,
            why: "asked for by name".into(),
        }
    }

    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(|poisoned| {
            let mut board = poisoned.into_inner();
            board.renew(); // a thread that panicked may have left it busy
            board
        })
    }

    /// The clocks of a run that came to its end with this many bytes of tables; else another board, and why.
    pub(super) fn ended(
        &self,
        board: &mut Board,
        ended: &Ended,
        tables: Option<usize>,
    ) -> Result<Clocks, Error> {
        let what = match ended.error {
            0 if tables.is_none_or(|bytes| ended.table_bytes == bytes as u64) => {
                let [cycles, gates, ddr_accesses, waits_ddr, waits_cell, waits_host, items, _] =
                    ended.counters;
                return Ok(Clocks { cycles, gates, ddr_accesses, waits_ddr, waits_cell, waits_host, items });
            }
            0 => "its tables are not as many as its ANDs",
            1 => "a command came out of place",
            2 => "an address is past its memory's end",
            3 => "it stood still",
            _ => "it never came to an end",
        };
        board.renew();
        let (device, code) = (self.name.into(), ended.error.into());
        Err(Error::Hardware { device, code, what, remedy: "report this as a defect of blindcore" })
    }
}

/// Clocks a second of both overlays: the paper's (Songhori 2016 has 200 MHz).
const CLOCK_HZ: f64 = 2e8;

/// What a program cost that ran in this many instances, with this many bytes a label and of tables.
pub(super) fn cost(
    program: &Program,
    instances: usize,
    clocks: Clocks,
    label_bytes: u64,
    table_bytes: usize,
) -> Cost {
    let ands = program.ands();
    let bounds = [("lanes", clocks.gates), ("DDR", clocks.waits_ddr), ("cells", clocks.waits_cell)];
    Cost {
        and_gates: (ands * instances) as u64,
        xor_gates: ((program.steps().len() - ands) * instances) as u64,
        points: (ands * instances) as u128,
        threads: 1,
        traffic: vec![
            Traffic::new("link", 0, 8 * table_bytes as u128),
            Traffic::new("DDR", u128::from(8 * label_bytes * clocks.ddr_accesses), 0),
        ],
        ..Cost::clocked(clocks.cycles, CLOCK_HZ, bounds.map(|(what, clocks)| (what.into(), clocks)))
    }
}
