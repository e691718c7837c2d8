//! The CPU device: a portable reference that is written to be read, and AVX2, AVX-512 and AMX kernels chosen
//! at run time.
//!
//! ```
//! use blindcore_accel_cpu::Cpu;
//!
//! let device = Cpu::open("cpu")?; // the best this machine has; "cpu:portable", "cpu:avx2", ... for one of them
//! println!("{} because {}", device.name(), device.description().why);
//! # Ok::<(), blindcore_accel::Error>(())
//! ```
//!
//! The contract operation has three families of kernels: `tiles` for bytes modulo 2^32, `windows` for queries that are a window,
//! `rows` for everything else, also under `fours`, where outputs share lines. Each has its driver and its portable kernel in one file here and its fast kernels in
//! `arch/<isa>`, made from the token of the instruction set. The transform operation shares out the kernels of
//! [`blindcore_math::ntt`]. The bigmod operation is in `bigmod`, the garble operation in `garble`; what of their kernels is the same for any width of vector is in `arch/vector`.

mod arch;
mod bigmod;
mod fours;
mod garble;
mod isa;
pub mod measure;
mod memory;
mod rows;
mod tiles;
mod transform;
mod windows;

use std::sync::Arc;
use std::time::{Duration, Instant};

use blindcore_accel::bigmod::{BigModulus, Bigmod, BigmodCapabilities, BigmodSlot, MAX_BITS, Method};
use blindcore_accel::contract::{self, ContractCapabilities, ContractSlot, Shape};
use blindcore_accel::garble::{
    Evaluate, EvaluateSlot, Garble, GarbleCapabilities, GarbleSlot, GarblingKind, GarblingScheme,
};
use blindcore_accel::{
    Contract, Cost, Database, Description, Device, DeviceKind, Error, Layout, Listed, OpenOptions, Pass,
    Placed, SharedBytes, Slots, Streaming, Words,
};

pub use bigmod::{KernelRates, kernel_rates};
use isa::Features;
pub use isa::{Isa, limit_process};
use memory::HugeBytes;
pub use memory::HugePages;

/// The CPU as a kind of devices: `cpu`, the best instruction set that this machine has, and one device for each
/// instruction set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Cpu {
    /// Opens `cpu` (the best instruction set that this machine has) or one of `cpu:portable`, `cpu:avx2`,
    /// `cpu:avx512`, `cpu:amx`, on all of the process's cores.
    ///
    /// # Errors
    /// The name is unknown, or this machine lacks the instruction set.
    pub fn open(name: &str) -> Result<Device, Error> {
        Self::with_threads(name, OpenOptions::default().threads)
    }

    /// Opens a CPU device that uses `threads` threads.
    ///
    /// # Errors
    /// As [`Cpu::open`]; or the threads can't be started.
    pub fn with_threads(name: &str, threads: usize) -> Result<Device, Error> {
        let (isa, mut why) = match name {
            "cpu" => Isa::best(),
            _ => {
                let isa = Isa::named(name)?;
                (isa, "asked for by name".into())
            }
        };
        let absent = |missing| Error::device(name, format!("this machine has no {missing}"));
        let features = Features::of(isa).map_err(absent)?;
        if let Some(lacks) = isa.lacks() {
            why = format!("{why}; {lacks}");
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|i| format!("blindcore-cpu-{i}"))
            .build()
            .map_err(|e| Error::setting(name, format!("{threads} threads can't be started: {e}")))?;
        let description = Description {
            name: isa.device_name().into(),
            hardware: isa::processor(),
            threads: pool.current_num_threads(),
            why,
        };
        let engine = Arc::new(Engine { features, pool: Arc::new(pool) });
        let slots = Slots {
            contract: Some(Arc::clone(&engine) as _),
            transform: Some(Arc::clone(&engine) as _),
            bigmod: Some(Arc::clone(&engine) as _),
            garble: Some(Arc::clone(&engine) as _),
            evaluate: Some(engine),
        };
        Ok(Device::new(description, slots).with_allocator(HugePages))
    }
}

impl DeviceKind for Cpu {
    fn prefix(&self) -> &'static str {
        "cpu"
    }

    fn names(&self) -> Vec<String> {
        let each = Isa::ALL.into_iter().map(Isa::device_name);
        std::iter::once("cpu").chain(each).map(str::to_owned).collect()
    }

    fn list(&self) -> Vec<Listed> {
        let listed = |isa: Isa| Listed {
            name: isa.device_name().into(),
            available: isa.check().map_err(|missing| format!("this machine has no {missing}")),
        };
        Isa::ALL.into_iter().map(listed).collect()
    }

    fn open(&self, name: &str, options: &OpenOptions) -> Result<Device, Error> {
        Self::with_threads(name, options.threads)
    }

    fn automatic(&self) -> Option<String> {
        Some("cpu".into())
    }
}

/// The processor's name, as the system gives it.
#[must_use]
pub fn processor() -> String {
    isa::processor()
}

/// What all slots of a CPU device share.
#[derive(Clone)]
pub(crate) struct Engine {
    features: Features,
    pool: Arc<rayon::ThreadPool>,
}

impl ContractSlot for Engine {
    fn capabilities(&self) -> ContractCapabilities {
        ContractCapabilities {
            layouts: vec![Layout::Tiles16x64, Layout::Rows, Layout::Lanes32, Layout::Lanes8x4],
            moduli: None,
            channels: usize::MAX,
            row_depth: rows::MAX_DEPTH,
            words: None,
            streams: true,
            simulated: false,
        }
    }

    fn prepare(&self, shape: &Shape) -> Result<Arc<dyn Contract>, Error> {
        ContractSlot::check(self, shape)?;
        let layout = Layout::for_shape(shape);
        Ok(Arc::new(CpuContract { cpu: self.clone(), shape: shape.clone(), layout }))
    }
}

impl BigmodSlot for Engine {
    fn capabilities(&self) -> BigmodCapabilities {
        let methods = vec![Method::BitSerial, Method::Buckets, Method::Tables];
        BigmodCapabilities { bits: MAX_BITS, methods, simulated: false }
    }

    fn prepare(&self, modulus: &BigModulus) -> Result<Arc<dyn Bigmod>, Error> {
        BigmodSlot::check(self, modulus)?;
        Ok(Arc::new(bigmod::CpuBigmod::new(&self.features, modulus, &self.pool)))
    }
}

impl Engine {
    fn garbling(&self) -> GarbleCapabilities {
        GarbleCapabilities { schemes: GarblingKind::ALL.to_vec(), lanes: 1, simulated: false }
    }
}

impl GarbleSlot for Engine {
    fn capabilities(&self) -> GarbleCapabilities {
        self.garbling()
    }

    fn prepare(&self, scheme: &GarblingScheme) -> Result<Arc<dyn Garble>, Error> {
        Ok(Arc::new(garble::CpuGarble::new(self, scheme)))
    }
}

impl EvaluateSlot for Engine {
    fn capabilities(&self) -> GarbleCapabilities {
        self.garbling()
    }

    fn prepare(&self, scheme: &GarblingScheme) -> Result<Arc<dyn Evaluate>, Error> {
        Ok(Arc::new(garble::CpuGarble::new(self, scheme)))
    }
}

struct CpuContract {
    cpu: Engine,
    shape: Shape,
    layout: Layout,
}

impl Contract for CpuContract {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn place(&self, database: Database<'_>) -> Result<Arc<dyn Placed>, Error> {
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
        Ok(Arc::new(CpuPlaced {
            cpu: self.cpu.clone(),
            shape: self.shape.clone(),
            layout: self.layout,
            pieces,
        }))
    }

    fn gathered(&self) -> usize {
        match self.layout {
            Layout::Tiles16x64 => tiles::gathered(&self.cpu.features, self.shape.m, self.shape.p),
            Layout::Rows | Layout::Lanes32 | Layout::Lanes8x4 => self.shape.m,
        }
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }
}

impl Streaming for CpuContract {
    fn begin<'a>(&'a self, query: &'a Words, outputs: usize) -> Result<Box<dyn Pass + 'a>, Error> {
        Ok(Box::new(CpuPass::begin(&self.cpu, &self.shape, self.layout, query, outputs)?))
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
        if self.layout != Layout::Tiles16x64 {
            let mut position = 0;
            for piece in pieces {
                let piece = (**piece).as_ref();
                rows::check_packed(&self.shape, self.layout, piece, position)?;
                position += piece.len() / self.shape.database.bytes();
            }
        }
        Ok(())
    }
}

struct CpuPlaced {
    cpu: Engine,
    shape: Shape,
    layout: Layout,
    pieces: Vec<SharedBytes>,
}

impl Placed for CpuPlaced {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn stripes(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.pieces.iter().try_for_each(|piece| take((**piece).as_ref()))
    }

    fn run(&self, query: &Words) -> Result<(Words, Cost), Error> {
        contract::whole(self, query)
    }

    fn run_in_pieces(
        &self,
        query: &Words,
        outputs: usize,
        give: &mut dyn FnMut(&mut Words),
    ) -> Result<Cost, Error> {
        let mut pass = CpuPass::begin(&self.cpu, &self.shape, self.layout, query, outputs)?;
        for piece in &self.pieces {
            pass.compute((**piece).as_ref(), give);
        }
        pass.end()
    }
}

struct CpuPass<'a> {
    cpu: &'a Engine,
    shape: &'a Shape,
    layout: Layout,
    query: &'a Words,
    queries: usize,
    /// Outputs of a piece of the answer, and the shape of the piece that is computed.
    outputs: usize,
    piece: Shape,
    /// Of that piece, until it is whole; and the memory of the one before it.
    work: Option<Work>,
    spare: Words,
    /// Bytes that were taken, those that make the piece whole, and all of them.
    taken: usize,
    room: usize,
    total: usize,
    /// How often the database is read.
    readings: usize,
    /// In the kernels, and in what precedes them.
    time: Duration,
}

enum Work {
    Tiles(tiles::Pass),
    Rows(rows::Pass),
    Windows(windows::Pass),
    Fours(fours::Pass),
}

impl Work {
    fn take(&mut self, stripes: &[u8]) {
        match self {
            Work::Tiles(pass) => pass.take(stripes),
            Work::Rows(pass) => pass.take(stripes),
            Work::Windows(pass) => pass.take(stripes),
            Work::Fours(pass) => pass.take(stripes),
        }
    }
}

impl<'a> CpuPass<'a> {
    fn begin(
        cpu: &'a Engine,
        shape: &'a Shape,
        layout: Layout,
        query: &'a Words,
        outputs: usize,
    ) -> Result<Self, Error> {
        let queries = shape.check_query(query)?;
        // Pieces are of whole stripes.
        let together = (1..).find(|n| (n * shape.q).is_multiple_of(layout.stripe_rows())).unwrap_or(1);
        let mut pass = Self {
            cpu,
            shape,
            layout,
            query,
            queries,
            outputs: outputs.clamp(1, shape.n).next_multiple_of(together),
            piece: shape.clone(),
            work: None,
            spare: Words::U8(Vec::new()),
            taken: 0,
            room: 0,
            total: layout.stripe_bytes(shape) * layout.stripes(shape),
            readings: 1,
            time: Duration::ZERO,
        };
        pass.next_piece();
        Ok(pass)
    }

    /// Begins the next piece.
    fn next_piece(&mut self) {
        let start = Instant::now();
        let stripe = self.layout.stripe_bytes(self.shape);
        let done = self.taken / stripe * self.layout.stripe_rows() / self.shape.q;
        self.piece.n = self.outputs.min(self.shape.n - done);
        self.room = self.layout.stripes(&self.piece) * stripe;
        let (cpu, shape, query, queries) = (self.cpu, &self.piece, self.query, self.queries);
        let (work, spare) = (self.work.take(), self.spare.take());
        let work = cpu.pool.install(|| match (work, self.layout) {
            (Some(Work::Fours(mut pass)), _) => {
                pass.next(shape.n, spare);
                Work::Fours(pass)
            }
            (_, Layout::Tiles16x64) => Work::Tiles(tiles::Pass::new(&cpu.features, shape, query, queries)),
            (_, Layout::Rows) => Work::Rows(rows::Pass::new(&cpu.features, shape, query, queries)),
            (_, Layout::Lanes32) => Work::Windows(windows::Pass::new(&cpu.features, shape, query, queries)),
            (_, Layout::Lanes8x4) => Work::Fours(fours::Pass::new(&cpu.features, shape, query, queries)),
        });
        if let Work::Tiles(pass) = &work {
            self.readings = pass.groups();
        }
        self.work = Some(work);
        self.time += start.elapsed();
    }

    /// Computes the outputs of the next stripes, which have been checked.
    fn compute(&mut self, mut stripes: &[u8], give: &mut dyn FnMut(&mut Words)) {
        while !stripes.is_empty() {
            if self.room == 0 {
                self.next_piece();
            }
            let start = Instant::now();
            let now = stripes.split_off(..self.room.min(stripes.len())).expect("no more than there are");
            let work = self.work.as_mut().expect("a piece was begun");
            self.cpu.pool.install(|| work.take(now));
            self.taken += now.len();
            self.room -= now.len();
            let whole = if self.room == 0 { Some(self.finish_piece()) } else { None };
            self.time += start.elapsed();
            if let Some(mut whole) = whole {
                give(&mut whole);
                self.spare = whole;
            }
        }
    }

    fn finish_piece(&mut self) -> Words {
        match self.work.take().expect("a piece was begun") {
            Work::Tiles(pass) => pass.finish(),
            Work::Rows(pass) => pass.finish(),
            Work::Windows(pass) => pass.finish(),
            Work::Fours(mut pass) => {
                // What it arranged serves the next piece.
                let whole = pass.finish();
                self.work = Some(Work::Fours(pass));
                whole
            }
        }
    }

    /// Ends the pass.
    fn end(self) -> Result<Cost, Error> {
        if self.taken != self.total {
            let (got, want) = (self.taken, self.total.to_string());
            return Err(Error::Length { what: "packed database", got, want, unit: "bytes" });
        }
        if let Some(Work::Fours(pass)) = self.work {
            pass.end(self.spare);
        }
        Ok(Cost {
            seconds: self.time.as_secs_f64(),
            database_bytes: (self.total * self.readings) as u64,
            threads: self.cpu.pool.current_num_threads(),
            ..Cost::default()
        })
    }
}

impl Pass for CpuPass<'_> {
    fn take(&mut self, stripes: &[u8], give: &mut dyn FnMut(&mut Words)) -> Result<(), Error> {
        let stripe = self.layout.stripe_bytes(self.shape);
        let (got, left) = (stripes.len(), self.total - self.taken);
        if got == 0 || got % stripe != 0 || got > left {
            let want = format!("a multiple of its stripe, {stripe}, and at most the {left} that are left");
            return Err(Error::Length { what: "a piece of the packed database", got, want, unit: "bytes" });
        }
        if self.layout != Layout::Tiles16x64 {
            rows::check_packed(self.shape, self.layout, stripes, self.taken / self.shape.database.bytes())?;
        }
        self.compute(stripes, give);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Cost, Error> {
        self.end()
    }
}
