//! The CPU device: a portable reference that is written to be read, and AVX2, AVX-512 and AMX kernels chosen
//! at run time.
//!
//! ```
//! use blindcore_accel::Device;
//! use blindcore_accel_cpu::Cpu;
//!
//! let device = Cpu::open("cpu")?; // the best this machine has; "cpu:portable", "cpu:avx2", ... for one of them
//! println!("{} because {}", device.name(), device.describe().why);
//! # Ok::<(), blindcore_accel::Error>(())
//! ```
//!
//! The contract operation has two families of kernels, one a layout: `tiles` for bytes modulo 2^32, `rows` for
//! everything else. Each has its driver and its portable kernel in one file here and its fast kernels in
//! `arch/<isa>`. The bigmod operation is in `bigmod`, its vector engine in `arch/bigmod`; the
//! garble operation is in `garble`, its kernels in `arch/garble`.

mod arch;
mod bigmod;
mod garble;
mod isa;
mod memory;
mod rows;
mod tiles;

use std::sync::Arc;
use std::time::Instant;

use blindcore_accel::bigmod::{Bigmod, Modulus};
use blindcore_accel::contract::Shape;
use blindcore_accel::garble::{Garble, Scheme};
use blindcore_accel::{
    Contract, Cost, Database, Description, Device, Error, Layout, Placed, SharedBytes, Words,
};

pub use arch::measure;
pub use bigmod::{KernelRates, kernel_rates};
pub use isa::Isa;
pub use memory::HugeBytes;

/// The CPU as a device.
#[derive(Clone)]
pub struct Cpu {
    name: &'static str,
    isa: Isa,
    pool: Arc<rayon::ThreadPool>,
    why: String,
}

impl Cpu {
    /// Opens `cpu` (the best instruction set that this machine has) or one of `cpu:portable`, `cpu:avx2`,
    /// `cpu:avx512`, `cpu:amx`, on all of the process's cores.
    ///
    /// # Errors
    /// The name is unknown, or this machine lacks the instruction set.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::with_threads(name, std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Opens a CPU device that uses `threads` threads.
    ///
    /// # Errors
    /// As [`Cpu::open`]; or the threads can't be started.
    pub fn with_threads(name: &str, threads: usize) -> Result<Self, Error> {
        let refuse =
            |why: String, remedy: &str| Error::Device { name: name.into(), why, remedy: remedy.into() };
        let (isa, why) = match name {
            "cpu" => Isa::best(),
            _ => {
                let isa = Isa::ALL.into_iter().find(|isa| isa.device_name() == name).ok_or_else(|| {
                    refuse(
                        "no CPU device has this name".into(),
                        "use cpu, cpu:portable, cpu:avx2, cpu:avx512 or cpu:amx",
                    )
                })?;
                isa.check().map_err(|missing| {
                    refuse(
                        format!("this machine has no {missing}"),
                        "use \"cpu\", which takes the best that it has",
                    )
                })?;
                (isa, "asked for by name".into())
            }
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|i| format!("blindcore-cpu-{i}"))
            .build()
            .map_err(|e| refuse(e.to_string(), "allow this process more threads"))?;
        Ok(Self { name: isa.device_name(), isa, pool: Arc::new(pool), why })
    }

    /// The instruction set in use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }
}

impl Device for Cpu {
    fn bigmod(&self, modulus: &Modulus) -> Result<Box<dyn Bigmod>, Error> {
        Ok(Box::new(bigmod::CpuBigmod::new(self.isa, modulus, &self.pool)))
    }

    fn garble(&self, scheme: &Scheme) -> Result<Box<dyn Garble>, Error> {
        Ok(Box::new(garble::CpuGarble::new(self, scheme)))
    }

    fn name(&self) -> &str {
        self.name
    }

    fn describe(&self) -> Description {
        Description {
            name: self.name.into(),
            hardware: isa::processor(),
            threads: self.pool.current_num_threads(),
            why: self.why.clone(),
        }
    }

    fn contract(&self, shape: &Shape) -> Result<Box<dyn Contract>, Error> {
        shape.check()?;
        let layout = Layout::for_shape(shape);
        if layout == Layout::Rows && shape.depth() > rows::MAX_DEPTH {
            let why = format!("j * k is over the {} that sums are kept exact for", rows::MAX_DEPTH);
            return Err(Error::Shape { shape: shape.to_string(), why });
        }
        Ok(Box::new(CpuContract { cpu: self.clone(), shape: shape.clone(), layout }))
    }
}

struct CpuContract {
    cpu: Cpu,
    shape: Shape,
    layout: Layout,
}

impl Contract for CpuContract {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn place(&self, database: Database<'_>) -> Result<Box<dyn Placed>, Error> {
        let pieces = match database {
            Database::Canonical(words) => {
                self.shape.check_database(words)?;
                let bytes = self.layout.pack(&self.shape, words);
                let mut huge = HugeBytes::zeroed(bytes.len())?;
                huge.as_mut().copy_from_slice(&bytes);
                vec![Arc::new(huge) as SharedBytes]
            }
            Database::Packed(pieces) => {
                self.check_pieces(&pieces)?;
                pieces
            }
        };
        Ok(Box::new(CpuPlaced {
            cpu: self.cpu.clone(),
            shape: self.shape.clone(),
            layout: self.layout,
            pieces,
        }))
    }
}

impl CpuContract {
    fn check_pieces(&self, pieces: &[SharedBytes]) -> Result<(), Error> {
        let stripe = self.layout.stripe_bytes(&self.shape);
        let total = stripe * self.layout.stripes(&self.shape);
        let lengths = pieces.iter().map(|p| (**p).as_ref().len());
        if let Some(got) = lengths.clone().find(|len| *len % stripe != 0) {
            let want = format!("a multiple of its stripe, {stripe}");
            return Err(Error::Length { what: "a piece of the packed database", got, want, unit: "bytes" });
        }
        let got = lengths.sum();
        if got != total {
            let want = total.to_string();
            return Err(Error::Length { what: "packed database", got, want, unit: "bytes" });
        }
        if self.layout == Layout::Rows {
            rows::check_packed(&self.shape, pieces)?;
        }
        Ok(())
    }
}

struct CpuPlaced {
    cpu: Cpu,
    shape: Shape,
    layout: Layout,
    pieces: Vec<SharedBytes>,
}

impl Placed for CpuPlaced {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn run(&self, query: &Words) -> Result<(Words, Cost), Error> {
        let queries = self.shape.check_query(query)?;
        let start = Instant::now();
        let pieces: Vec<&[u8]> = self.pieces.iter().map(|p| (**p).as_ref()).collect();
        let Cpu { isa, pool, .. } = &self.cpu;
        let (answer, passes) = match self.layout {
            Layout::Tiles16x64 => pool.install(|| tiles::run(*isa, &self.shape, &pieces, query, queries)),
            Layout::Rows => (pool.install(|| rows::run(*isa, &self.shape, &pieces, query, queries)), 1),
        };
        let bytes: usize = pieces.iter().map(|p| p.len()).sum();
        let cost = Cost {
            time: start.elapsed(),
            database_bytes: (bytes * passes) as u64,
            threads: pool.current_num_threads(),
            hardware: None,
            ..Cost::default()
        };
        Ok((answer, cost))
    }
}
