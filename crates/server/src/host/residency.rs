//! Residency: whether a matrix is copied to memory or streamed from its disk.

use std::num::NonZeroUsize;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use blindcore_accel::contract::Shape;
use blindcore_accel::{Allocator, Contract, Cost, Database, Device, Placed, SharedBytes, Words};
use blindcore_lookup::Server;
use blindcore_lookup::batch::BatchServer;
use blindcore_lookup::schemes::{Operand, Origin};
use blindcore_store::memory::{self, Limit};
use blindcore_store::{Payload, StoredPart, StreamOptions};
use blindcore_units::{Progress, Unit};

use super::error::{HostError, with_causes};

/// Where a matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Residency {
    /// In memory of its own, in huge pages, which a scan reads fastest.
    Copied,
    /// On its disk, from which every pass reads it.
    Streamed,
}

impl Residency {
    fn name(self) -> &'static str {
        match self {
            Residency::Copied => "copied",
            Residency::Streamed => "streamed",
        }
    }
}

/// Bytes of a matrix that is copied before anybody is answered; a larger one is streamed until its copy is there.
const AT_ONCE: u64 = 256 << 20;
/// Bytes of a matrix for each byte of the checksums of its tiles.
const BYTES_PER_SUM: u64 = 1024 / 4;
/// How long the copy of a larger one waits for a first query, so that its pass has the disk for itself.
const HEAD_START: Duration = Duration::from_secs(1);

/// How long after a copy failed it is tried again.
const COPY_AGAIN: Duration = Duration::from_secs(60);

/// How much memory a host may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// What this machine has free, or the least of the limits of this process's control groups. No limit where the
    /// system tells neither.
    Auto,
    /// At most this.
    Set {
        /// Bytes.
        bytes: u64,
        /// What set it, for the log: such as `--memory`.
        by: &'static str,
    },
}

impl MemoryLimit {
    /// What an option says: `auto`, as nothing does, or a size.
    ///
    /// # Errors
    /// One line on what is wrong with it, which names the option.
    pub fn parse(option: &'static str, said: Option<&str>) -> Result<Self, String> {
        let Some(said) = said.filter(|said| *said != "auto") else { return Ok(Self::Auto) };
        let bytes = blindcore_units::size(said).filter(|bytes| *bytes > 0);
        let units = "B, KiB, MiB, GiB or TiB such as 8GiB";
        let bytes = bytes
            .ok_or_else(|| format!("{option} {said:?} is not a size; say auto, or a number with {units}"))?;
        Ok(Self::Set { bytes, by: option })
    }
}

/// Memory that a host may have at a moment, and what limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    bytes: u64,
    limited_by: LimitedBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitedBy {
    /// Memory that no process has.
    Free,
    /// The limit of a control group.
    Group,
    /// Whoever started the host.
    Setting(&'static str),
}

impl MemoryLimit {
    /// What the whole process may have. `None` where the system doesn't tell.
    pub(super) fn now(self) -> Option<Memory> {
        let memory = |bytes, limited_by| Some(Memory { bytes, limited_by });
        match self {
            Self::Set { bytes, by } => memory(bytes, LimitedBy::Setting(by)),
            Self::Auto => match memory::limit()? {
                Limit::Free(bytes) => memory(bytes, LimitedBy::Free),
                Limit::Group(bytes) => memory(bytes, LimitedBy::Group),
            },
        }
    }

    /// What is left of it for a host that runs.
    pub(super) fn left(self) -> Option<Memory> {
        // What is free is less already by what this process has.
        let left = |m: Memory| match m.limited_by {
            LimitedBy::Free => m,
            _ => Memory { bytes: m.bytes.saturating_sub(memory::held()), ..m },
        };
        self.now().map(left)
    }
}

impl Memory {
    /// What of it databases may take; the rest is for requests and everything else.
    fn for_databases(self) -> u64 {
        self.bytes / 4 * 3
    }

    /// What of it requests may take.
    pub(super) fn for_requests(self) -> usize {
        usize::try_from(self.bytes / 4).unwrap_or(usize::MAX)
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = blindcore_units::bytes(self.bytes);
        match self.limited_by {
            LimitedBy::Free => write!(f, "{bytes} that are free"),
            LimitedBy::Group => write!(f, "{bytes} that this control group may have"),
            LimitedBy::Setting(by) => write!(f, "{bytes} that {by} allows"),
        }
    }
}

/// What is chosen for some matrices.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    /// For each.
    matrices: Vec<Residency>,
    /// For the operands that a server keeps beside the records, which every pass reads too.
    states: Residency,
}

/// Chooses for matrices of these sizes in bytes. `states` is what servers keep beside them, `hints` what is served from
/// files and better stays in the system's memory. `streamed` says that all matrices are to be.
///
/// The smallest matrices are copied, as many as there is memory for. Whatever has no place is streamed.
fn choose(matrices: &[u64], states: u64, hints: u64, budget: Option<u64>, streamed: bool) -> Choice {
    let states_fit = budget.is_none_or(|b| states <= b);
    let how_states = if states_fit { Residency::Copied } else { Residency::Streamed };
    let mut chosen = vec![if streamed { Residency::Streamed } else { Residency::Copied }; matrices.len()];
    if let (false, Some(budget)) = (streamed, budget) {
        let mut left = budget.checked_sub(states + hints);
        let mut smallest_first: Vec<usize> = (0..matrices.len()).collect();
        smallest_first.sort_by_key(|i| matrices[*i]);
        for i in smallest_first {
            left = left.and_then(|left| left.checked_sub(matrices[i]));
            if left.is_none() {
                chosen[i] = Residency::Streamed;
            }
        }
    }
    Choice { matrices: chosen, states: how_states }
}

/// Places matrices, one after the other, as was chosen for all of them together.
pub(super) struct Placer<'a> {
    how: std::vec::IntoIter<Residency>,
    states: Residency,
    why: String,
    /// Bytes of the largest part that is streamed, be it for a while.
    streamed: u64,
    /// Whether what is streamed is read once before anybody is answered.
    careful: bool,
    at_once: u64,
    progress: &'a mut dyn Progress,
    done: u64,
    total: u64,
}

impl<'a> Placer<'a> {
    /// Chooses for matrices that will be placed in this order.
    pub(super) fn new<'p>(
        parts: impl Iterator<Item = &'p StoredPart>,
        memory: Option<Memory>,
        asked: bool,
        progress: &'a mut dyn Progress,
    ) -> Self {
        let parts: Vec<&StoredPart> = parts.collect();
        let matrices: Vec<u64> = parts.iter().map(|p| matrix_bytes(p)).collect();
        let states: u64 = parts.iter().map(|p| derived_bytes(p)).sum();
        let made: u64 = parts.iter().map(|p| made_bytes(p)).sum();
        // Checksums of what is streamed, be it for a while, are in memory.
        let sums = matrices.iter().sum::<u64>() / BYTES_PER_SUM;
        let hints = parts.iter().map(|p| p.hint_bytes()).sum::<u64>() + sums;
        let budget = memory.map(Memory::for_databases);
        let choice = choose(&matrices, states + made, hints, budget, asked);
        let all = matrices.iter().sum::<u64>() + states + made + hints;
        let need = blindcore_units::bytes(all);
        let why = match (asked, memory) {
            (true, _) => "it was asked for".into(),
            (false, None) => format!("{need} are needed, and this system doesn't say what is free"),
            (false, Some(memory)) => {
                let most = blindcore_units::bytes(memory.for_databases());
                format!("databases need {need} and may take {most}, three quarters of {memory}")
            }
        };
        let at_once = AT_ONCE;
        let waited_for = |(bytes, how): &(&u64, &Residency)| **how == Residency::Copied && **bytes <= at_once;
        let waited_for = matrices.iter().zip(&choice.matrices).filter(waited_for);
        let states = if choice.states == Residency::Copied { states } else { 0 };
        let total = waited_for.map(|(bytes, _)| bytes).sum::<u64>() + states;
        let (how, states) = (choice.matrices.into_iter(), choice.states);
        Self { how, states, why, streamed: 0, careful: false, at_once, progress, done: 0, total }
    }

    /// The same, of what failed before: all of it is compared with its checksums before anybody is answered.
    pub(super) fn careful(self) -> Self {
        Self { careful: true, ..self }
    }

    /// Whether it is so.
    pub(super) fn is_careful(&self) -> bool {
        self.careful
    }

    /// Places the next matrix and what belongs to it, and says so in the log.
    pub(super) fn place(
        &mut self,
        table: &str,
        kind: blindcore_wire::PartKind,
        part: &StoredPart,
        device: &Device,
    ) -> Result<BatchServer, HostError> {
        let how = self.how.next().expect("one for each part");
        if part.buckets > 1 {
            if how == Residency::Streamed || self.states == Residency::Streamed {
                let why = self.why.clone();
                return Err(HostError::BatchesStreamed { table: table.to_owned(), why });
            }
            tracing::info!(table, part = %kind, bytes = matrix_bytes(part), "{}: {}", how.name(), self.why);
            let mut operands = vec![self.load(part.shard_payloads(), device.allocator())?];
            for payload in part.derived_payloads() {
                operands.push(self.load(vec![payload], device.allocator())?);
            }
            return Ok(BatchServer::new(part.params, part.buckets, device, &operands)?);
        }
        let derived = self.place_derived(part, device)?;
        let derived_streamed = if self.states == Residency::Streamed { derived_bytes(part) } else { 0 };
        let server = |records| {
            let operands = std::iter::once(records).chain(derived).collect();
            Ok(Server::placed(part.params, device, operands)?.into())
        };
        let bytes = matrix_bytes(part);
        let (how_named, why) = (how.name(), &self.why);
        let wait = how == Residency::Copied && bytes <= self.at_once;
        // Some devices want their databases placed.
        let streams = device.slots().contract.as_ref().is_some_and(|slot| slot.capabilities().streams);
        if wait || (how == Residency::Copied && !streams) {
            tracing::info!(table, part = %kind, bytes, "{how_named}: {why}");
            let shards = Database::Packed(self.load(part.shard_payloads(), device.allocator())?);
            return server(device.contract(&part.params.records().shape)?.place(shards)?);
        }
        let streamed = part.stream(device, StreamOptions::default())?;
        self.streamed = self.streamed.max(bytes + derived_streamed);
        if self.careful {
            streamed.scan(&mut |_| Ok(()))?;
        }
        let reader = streamed.reader();
        if how == Residency::Streamed {
            tracing::info!(table, part = %kind, bytes, reader, "{how_named}: {why}");
            return server(Arc::new(streamed));
        }
        tracing::info!(table, part = %kind, bytes, reader, "{how_named}: {why}; streamed until the copy is there");
        let contract = device.contract(&part.params.records().shape)?;
        let matrix =
            Loading::start(format!("{table}, {kind}"), part.clone(), streamed, contract, device.clone())?;
        server(matrix)
    }

    /// The operands that a server keeps beside the records.
    fn place_derived(
        &mut self,
        part: &StoredPart,
        device: &Device,
    ) -> Result<Vec<Arc<dyn Placed>>, HostError> {
        if self.states == Residency::Streamed {
            let streamed = part.stream_derived(device, StreamOptions::default())?;
            if self.careful {
                streamed.iter().try_for_each(|operand| operand.scan(&mut |_| Ok(())))?;
            }
            return Ok(streamed.into_iter().map(|s| Arc::new(s) as _).collect());
        }
        let operands = part.params.stored_operands().skip(1).zip(part.derived_payloads());
        let place = |(operand, payload): (Operand, Payload<'_>)| {
            let bytes = Database::Packed(self.load(vec![payload], device.allocator())?);
            Ok(device.contract(&operand.shape)?.place(bytes)?)
        };
        operands.map(place).collect()
    }

    /// How long a request may take, at least: the pass that it comes in, those that it waits for, from a slow disk.
    pub(super) fn request_time(&self) -> Duration {
        const PASSES: u64 = 3;
        const BYTES_PER_SECOND: u64 = 500_000_000;
        Duration::from_secs(PASSES * self.streamed / BYTES_PER_SECOND)
    }

    /// Files copied to memory, and compared with their checksums meanwhile.
    fn load(
        &mut self,
        files: Vec<Payload<'_>>,
        allocator: &dyn Allocator,
    ) -> Result<Vec<SharedBytes>, HostError> {
        let (progress, done, total) = (&mut *self.progress, &mut self.done, self.total);
        load(files, allocator, &mut |bytes| {
            *done += bytes as u64;
            progress.at("loading", *done, Some(total), Unit::Bytes);
        })
    }
}

/// Files copied to the memory that their device likes: for the CPU huge pages, which a scan reads faster than a file's
/// small pages. What they hold is compared
/// with their checksums meanwhile, by as many threads as there are cores and files.
fn load(
    mut files: Vec<Payload<'_>>,
    allocator: &dyn Allocator,
    loaded_bytes: &mut dyn FnMut(usize),
) -> Result<Vec<SharedBytes>, HostError> {
    let mut loaded = Vec::with_capacity(files.len());
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    while !files.is_empty() {
        let some = files.drain(..threads.min(files.len()));
        let (send, done) = mpsc::channel();
        loaded.extend(std::thread::scope(|scope| {
            let loading: Vec<_> = some
                .map(|payload| {
                    let send = send.clone();
                    scope.spawn(move || -> Result<SharedBytes, HostError> {
                        let mut memory = allocator.zeroed(payload.bytes())?;
                        // Whoever draws the bar waits for all.
                        payload.read(memory.as_mut(), &mut |bytes| {
                            let _ = send.send(bytes);
                        })?;
                        Ok(memory.share())
                    })
                })
                .collect();
            drop(send);
            done.into_iter().for_each(&mut *loaded_bytes);
            loading.into_iter().map(|l| l.join().expect("it loads")).collect::<Result<Vec<_>, HostError>>()
        })?);
    }
    Ok(loaded)
}

/// A matrix that is streamed from its disk until a copy of it is in memory.
///
/// ```text
///   start ──▶ queries: the disk ─────────────▶ the copy, from the first query after it is there
///         └─▶ a thread: waits for the first pass, or a second at most ─▶ copies, and compares ─┘
/// ```
///
/// A copy takes as long as the system needs to find memory for it, which on a virtual machine that gives back what it doesn't
/// use is longer than its disk reads. A copy that can't be had or is damaged never takes the disk's place.
struct Loading {
    shape: Shape,
    now: RwLock<Arc<dyn Placed>>,
    /// Told when a pass begins and when it ends, while there is a listener.
    passes: Sender<()>,
}

impl Loading {
    /// Starts to copy; `name` is for the log.
    fn start(
        name: String,
        part: StoredPart,
        streamed: impl Placed + 'static,
        contract: Arc<dyn Contract>,
        device: Device,
    ) -> Result<Arc<Self>, HostError> {
        let (passes, listen) = mpsc::channel();
        let (shape, now) = (part.params.records().shape, RwLock::new(Arc::new(streamed) as Arc<dyn Placed>));
        let loading = Arc::new(Self { shape, now, passes });
        let place = Arc::downgrade(&loading);
        std::thread::Builder::new()
            .name("blindcore-load".into())
            .spawn(move || Self::copy(&name, &part, &*contract, device.allocator(), &listen, &place))
            .map_err(HostError::Thread)?;
        Ok(loading)
    }

    fn copy(
        name: &str,
        part: &StoredPart,
        contract: &dyn Contract,
        allocator: &dyn Allocator,
        passes: &Receiver<()>,
        place: &Weak<Self>,
    ) {
        if passes.recv_timeout(HEAD_START).is_ok() {
            let _ = passes.recv();
        }
        let mut tries = 0;
        loop {
            let started = Instant::now();
            let copied = load(part.shard_payloads(), allocator, &mut |_| ())
                .and_then(|copies| Ok(contract.place(Database::Packed(copies))?));
            // None for an epoch that nobody asks for any more.
            let Some(place) = place.upgrade() else { return };
            match copied {
                Ok(copy) => {
                    *place.now.write().unwrap_or_else(PoisonError::into_inner) = copy;
                    let seconds = started.elapsed().as_secs_f64();
                    return tracing::info!(matrix = name, seconds, "the copy is there");
                }
                Err(error) if tries == 0 => {
                    tracing::error!(
                        matrix = name,
                        "it can't be copied, and goes on to be streamed: {}",
                        with_causes(&error)
                    );
                }
                Err(_) => {}
            }
            drop(place);
            tries += 1;
            // Its files may be restored. Passes end a wait no sooner, but the part's end does.
            let again = Instant::now() + COPY_AGAIN;
            while let Some(left) = again.checked_duration_since(Instant::now()) {
                if passes.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
            }
        }
    }
}

impl Loading {
    /// A pass over the matrix as it lies now; the copying waits for it.
    fn pass<T>(&self, run: impl FnOnce(&dyn Placed) -> T) -> T {
        let matrix = self.now.read().unwrap_or_else(PoisonError::into_inner).clone();
        let _ = self.passes.send(());
        let answer = run(&*matrix);
        let _ = self.passes.send(());
        answer
    }
}

impl Placed for Loading {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn run(&self, query: &Words) -> Result<(Words, Cost), blindcore_accel::Error> {
        self.pass(|matrix| matrix.run(query))
    }

    fn run_in_pieces(
        &self,
        query: &Words,
        outputs: usize,
        give: &mut dyn FnMut(&mut Words),
    ) -> Result<Cost, blindcore_accel::Error> {
        self.pass(|matrix| matrix.run_in_pieces(query, outputs, give))
    }

    fn stripes(
        &self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), blindcore_accel::Error>,
    ) -> Result<(), blindcore_accel::Error> {
        let matrix = self.now.read().unwrap_or_else(PoisonError::into_inner).clone();
        matrix.stripes(take)
    }
}

fn matrix_bytes(part: &StoredPart) -> u64 {
    part.shard_payloads().iter().map(|shard| shard.bytes() as u64).sum()
}

/// Bytes of the operands that a server keeps beside the records.
fn derived_bytes(part: &StoredPart) -> u64 {
    part.derived_payloads().iter().map(|operand| operand.bytes() as u64).sum()
}

/// Bytes of the operands that a server makes from the parameters.
fn made_bytes(part: &StoredPart) -> u64 {
    let operands = part.params.operands();
    let made = operands.iter().filter(|o| o.origin == Origin::Parameters).map(|o| o.bytes() as u64);
    made.sum::<u64>() * part.buckets as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPIED: Residency = Residency::Copied;
    const STREAMED: Residency = Residency::Streamed;

    #[test]
    fn a_limit_is_a_size_or_auto() {
        let limit = |text| MemoryLimit::parse("--memory", text);
        for (text, bytes) in [
            ("1", 1),
            ("17B", 17),
            ("3KiB", 3 << 10),
            ("512MiB", 512 << 20),
            ("8 GiB", 8 << 30),
            ("2TiB", 2 << 40),
        ] {
            assert_eq!(limit(Some(text)), Ok(MemoryLimit::Set { bytes, by: "--memory" }), "{text}");
        }
        assert_eq!((limit(None), limit(Some("auto"))), (Ok(MemoryLimit::Auto), Ok(MemoryLimit::Auto)));
        for text in ["", "0", "8G", "GiB", "-1", "1.3B", "99999999999999999999", "18446744073709551615KiB"] {
            let error = limit(Some(text)).unwrap_err();
            assert!(error.contains("--memory") && error.contains("8GiB"), "{error}");
        }
    }

    #[test]
    fn matrices_are_copied_while_there_is_memory() {
        let cases: [(&[u64], _, _, _, _, &[Residency], Residency); 11] = [
            // Matrices, states, hints, memory for them, whether streaming was asked for; then what is chosen.
            (&[100], 0, 10, Some(110), false, &[COPIED], COPIED),
            (&[100], 0, 10, Some(109), false, &[STREAMED], COPIED),
            (&[100], 0, 10, None, false, &[COPIED], COPIED),
            // The smaller ones first, whatever their order; what comes after one without a place has none either.
            (&[100, 20, 30], 0, 0, Some(60), false, &[STREAMED, COPIED, COPIED], COPIED),
            (&[100, 20, 30], 0, 0, Some(49), false, &[STREAMED, COPIED, STREAMED], COPIED),
            (&[30, 20, 30], 0, 0, Some(50), false, &[COPIED, COPIED, STREAMED], COPIED),
            // What is kept beside them comes before any matrix, and is streamed where it doesn't fit.
            (&[10], 50, 0, Some(60), false, &[COPIED], COPIED),
            (&[10], 50, 0, Some(59), false, &[STREAMED], COPIED),
            (&[10], 50, 10, Some(49), false, &[STREAMED], STREAMED),
            // Streaming is asked for.
            (&[100], 0, 0, Some(1000), true, &[STREAMED], COPIED),
            (&[], 0, 0, Some(0), false, &[], COPIED),
        ];
        for (matrices, states, hints, budget, asked, want, want_states) in cases {
            let got = choose(matrices, states, hints, budget, asked);
            let want = Choice { matrices: want.to_vec(), states: want_states };
            assert_eq!(got, want, "{matrices:?}, {states}, {hints}, {budget:?}, {asked:?}");
        }
    }

    /// Waits for what a thread does in its own time, which may be long where other tests run.
    fn until(what: &str, holds: impl Fn() -> bool) {
        let (_open, closed) = mpsc::channel::<()>();
        for _ in 0..600 {
            if holds() {
                return;
            }
            let _ = closed.recv_timeout(Duration::from_millis(100));
        }
        panic!("{what}");
    }

    #[test]
    fn a_large_matrix_is_streamed_until_its_copy_is_there() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("t.csv"), "v\n1\n2\n3\n".repeat(500)).unwrap();
        let source = blindcore_store::SourceSpec::parse(dir.path().join("t.csv").to_str().unwrap()).unwrap();
        let device = blindcore_accel_cpu::Cpu::with_threads("cpu", 1).unwrap();
        let options = blindcore_store::BuildOptions::new(source, dir.path().join("db"));
        blindcore_store::build(&options, &device, &mut ()).unwrap();
        let part = blindcore_store::Stored::open(&options.out).unwrap().records;
        let shape = part.params.records().shape;
        let query = Words::zeros(shape.query_word(), shape.query_len(2));
        let place = || {
            let stream = part.stream(&device, StreamOptions::default()).unwrap();
            let contract = device.contract(&shape).unwrap();
            Loading::start("t".into(), part.clone(), stream, contract, device.clone()).unwrap()
        };
        let disk = |loading: &Loading| Arc::as_ptr(&*loading.now.read().unwrap()).cast::<()>();

        let loaded = place();
        let before = disk(&loaded);
        let want = loaded.run(&query).unwrap().0;
        until("the copy doesn't come", || disk(&loaded) != before);
        assert!(loaded.run(&query).unwrap().0 == want);
        // Nobody needs to ask for it.
        let loaded = place();
        let before = disk(&loaded);
        until("the copy waits for a query", || disk(&loaded) != before);

        let path = options.out.join("records-0000.shard");
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let loaded = place();
        let before = disk(&loaded);
        for _ in 0..2 {
            let error = loaded.run(&query).map(drop).unwrap_err().to_string();
            assert!(error.contains("records-0000.shard is damaged"), "{error}");
        }
        let thread = Arc::downgrade(&loaded);
        assert!(disk(&loaded) == before, "a damaged copy takes no place");
        drop(loaded);
        until("the thread keeps what nobody asks for", || thread.strong_count() == 0);
    }
}
