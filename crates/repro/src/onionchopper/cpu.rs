//! The basic operation on this machine's processor.

use std::time::Instant;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Database, Word, Words};
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::onionchopper::measure::moduli;

/// Runs of which the median counts.
const RUNS: usize = 5;

/// Bytes of a database of 512 MiB, laid out as OnionPIR's (section 6.1 with 16 columns), that the processor takes a second.
pub(super) fn speed() -> anyhow::Result<f64> {
    let shape = Shape { p: 2, n: 16, j: 256, k: 2, d: 4096, ..Shape::new(Word::U64, moduli()) };
    let cpu = Cpu::open("cpu")?;
    let word = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 15; // below both moduli
    let placed = {
        let database = Words::from_fn(shape.database, shape.database_len(), word);
        cpu.contract(&shape)?.place(Database::Canonical(&database))?
    };
    let query = Words::from_fn(shape.query_word(), shape.query_len(1), word);
    let mut seconds = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let begun = Instant::now();
        placed.run(&query)?;
        seconds.push(begun.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(shape.database_len() as f64 * 8.0 / seconds[RUNS / 2])
}
