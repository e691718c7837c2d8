//! What one matrix takes: memory, disk, and the seconds of its build.

use blindcore_lookup::Params;
use blindcore_lookup::schemes::{Operand, Run, yardstick};
use serde::Serialize;

use crate::rates::Rates;

/// Bytes of the pages that databases are copied to.
const PAGE_BYTES: u64 = 2 << 20;

/// A build by stage, in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Build {
    /// Reading a CSV file and sorting it.
    pub read: f64,
    /// Laying matrices out.
    pub fill: f64,
    /// Computing hints.
    pub hint: f64,
}

impl Build {
    /// The whole build.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.read + self.fill + self.hint
    }
}

/// Bytes of memory for `matrices` matrices whose operands lie one after another.
pub(crate) fn memory_of(params: &Params, matrices: u64) -> u64 {
    let bytes = |operand: &Operand| {
        let bytes = matrices * operand.bytes() as u64;
        if operand.is_stored() { bytes.next_multiple_of(PAGE_BYTES) } else { bytes }
    };
    params.operands().iter().map(bytes).sum()
}

/// Bytes of a matrix on disk, and of its hint.
pub(crate) fn stored_of(params: &Params) -> u64 {
    params.stored_operands().map(|o| o.bytes() as u64).sum::<u64>() + params.hint_bytes()
}

/// Seconds of what preprocesses a table, from those that the scheme takes that rates are measured with.
pub(crate) fn preprocessing(rates: &Rates, params: &Params) -> f64 {
    let queries = |runs: &[Run]| runs.iter().map(|run| run.queries as u64 * run.passes).sum::<u64>() as f64;
    let Ok(measured) = yardstick().representative(1 << 20) else { return 0.0 };
    let (operands, each) = (params.operands(), queries(&measured.preprocessing()));
    let seconds = |run: &Run| rates.hint.at(operands[run.operand].bytes() as f64) * queries(&[*run]) / each;
    let passes: f64 = params.preprocessing().iter().map(seconds).sum();
    passes + params.ring_work().preparing * rates.ring.transform / rates.threads as f64
}
