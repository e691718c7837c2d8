//! Measures this machine: each figure beside its limit, a peer or a baseline measured in the same run.
//!
//! Every module is a benchmark: a `run` that takes options and a [`Progress`](blindcore_units::Progress) and returns a
//! [`Report`]. `blindcore bench` prints it; ids of rows stay what they are once published.
//!
//! ```no_run
//! use blindcore_bench::sum;
//!
//! let options = sum::Options { repeat: 7, device: "cpu".into(), peers: None };
//! let report = sum::run(&options, &mut ())?;
//! println!("{}", report.json());
//! # Ok::<(), anyhow::Error>(())
//! ```

mod batch;
#[cfg(unix)]
pub mod circuit;
pub mod lookup;
pub mod machine;
mod nohint;
mod options;
mod peers;
pub mod rates;
mod registered;
mod report;
mod samples;
pub mod schemes;
#[cfg(unix)]
pub mod serve;
pub mod sum;
mod table;

pub use report::{Report, Row};
pub use samples::Samples;

use blindcore_accel::{Allocator, Buffer};
use blindcore_accel_cpu::HugePages;
use blindcore_math::SecretRng;

/// Random bytes in huge pages.
pub(crate) fn noise(len: usize) -> anyhow::Result<Buffer> {
    let mut bytes = HugePages.zeroed(len)?;
    let mut rng = SecretRng::from_os()?;
    for chunk in bytes.as_mut().chunks_mut(1 << 20) {
        rng.fill(chunk);
    }
    Ok(bytes)
}
