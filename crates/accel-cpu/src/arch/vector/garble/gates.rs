//! A part or a layer of a program, for any width of vector: where its gates' blocks come from and go to.

use blindcore_accel::garble::{Label, Part, Step};

use super::blocks::{Blocks, Places};
use super::job::{Gates, Job, RawTables, Stream};
use super::three_halves::Halves;
use super::{half_gates, three_halves};

/// What to run.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    Part(Part),
    Layer { xors: &'a [Step], ands: &'a [Step], before: usize },
}

/// Runs `work` on the streams. `keys` are the round keys of the permutation.
///
/// # Safety
/// The instruction set of `B` is there; slots and rows are in bounds; nobody else touches what is written.
#[inline(always)]
pub(crate) unsafe fn run<B: Halves>(
    job: Job<'_>,
    keys: &[B; 11],
    streams: &[Stream],
    tables: RawTables,
    work: Work<'_>,
) {
    // Loops and no closures: a closure would be compiled without the caller's instruction set.
    // SAFETY: as this function's.
    unsafe {
        match work {
            Work::Part(part) => {
                let mut step = part.step;
                let mut before = part.and;
                for l in &job.program.layers()[part.layer..part.layer + part.layers] {
                    let (xors, ands) = (l.xors as usize, l.ands as usize);
                    let steps = &job.program.steps()[step..step + xors + ands];
                    layer(job, keys, streams, tables, &steps[..xors], &steps[xors..], before);
                    step += xors + ands;
                    before += ands;
                }
            }
            Work::Layer { xors, ands, before } => layer(job, keys, streams, tables, xors, ands, before),
        }
    }
}

#[inline(always)]
unsafe fn layer<B: Halves>(
    job: Job<'_>,
    keys: &[B; 11],
    streams: &[Stream],
    tables: RawTables,
    xors: &[Step],
    ands: &[Step],
    before: usize,
) {
    // SAFETY: as of `run`.
    unsafe {
        for stream in streams {
            xors_of::<B>(*stream, xors);
        }
        let rows = match tables {
            RawTables::Garble(_, rows) => rows.cast(),
            RawTables::Evaluate(rows) => rows.cast_mut().cast(),
        };
        match job.gates {
            Gates::HalfGates if streams[0].stride == 1 => {
                let places = Neighbours::<B, 1>::new(job, streams[0], ands, rows, before);
                half_gates::all(keys, tables, places, ands.len().div_ceil(B::N));
            }
            Gates::HalfGates => {
                let places = Lanes::<B, 1>::new(job, streams, ands, rows, before);
                half_gates::all(keys, tables, places, ands.len() * streams.len());
            }
            Gates::ThreeHalves { dice } if streams[0].stride == 1 => {
                let places = Neighbours::<B, 0>::new(job, streams[0], ands, rows, before);
                three_halves::all(keys, tables, dice, job.first_gate, places, ands.len().div_ceil(B::N));
            }
            Gates::ThreeHalves { dice } => {
                let places = Lanes::<B, 0>::new(job, streams, ands, rows, before);
                three_halves::all(keys, tables, dice, job.first_gate, places, ands.len() * streams.len());
            }
        }
    }
}

/// One instance: a vector holds neighbouring gates, the last perhaps fewer than it could. Gates have `1 << SHIFT` tweaks
/// that follow each other.
#[derive(Clone, Copy)]
struct Neighbours<'a, B, const SHIFT: u32> {
    labels: *mut Label,
    ands: &'a [Step],
    rows: *mut Label,
    /// The first AND's place in the tables.
    number: usize,
    first_gate: u64,
    steps: B,
}

impl<'a, B: Blocks, const SHIFT: u32> Neighbours<'a, B, SHIFT> {
    #[inline(always)]
    unsafe fn new(job: Job<'_>, stream: Stream, ands: &'a [Step], rows: *mut Label, before: usize) -> Self {
        let number = stream.first * job.program.ands() + before;
        // SAFETY: the caller has the instruction set.
        let steps = unsafe { B::steps(1 << SHIFT) };
        Self { labels: stream.labels, ands, rows, number, first_gate: job.first_gate, steps }
    }

    /// The gates of vector `at`, the last again where there are no more; and how many there are.
    #[inline(always)]
    unsafe fn gates(&self, at: usize) -> ([&'a Step; 4], usize) {
        let first = at * B::N;
        let count = B::N.min(self.ands.len() - first);
        let gate = |l: usize| first + l.min(count - 1);
        let at = if count == B::N && B::N == 4 {
            [first, first + 1, first + 2, first + 3]
        } else {
            [first, gate(1), gate(2), gate(3)]
        };
        // SAFETY: the vector has a gate at least, and none is past the last.
        (at.map(|gate| unsafe { self.ands.get_unchecked(gate) }), count)
    }
}

impl<B: Blocks, const SHIFT: u32> Places<B> for Neighbours<'_, B, SHIFT> {
    #[inline(always)]
    unsafe fn operands(&self, at: usize) -> (B, B) {
        // SAFETY: slots are in bounds.
        unsafe {
            let ([g, h, i, j], _) = self.gates(at);
            let a = B::gather(self.labels, [g.a as usize, h.a as usize, i.a as usize, j.a as usize]);
            let b = B::gather(self.labels, [g.b as usize, h.b as usize, i.b as usize, j.b as usize]);
            (a, b)
        }
    }

    #[inline(always)]
    unsafe fn tweaks(&self, at: usize) -> B {
        // SAFETY: the caller's.
        unsafe { self.steps.add_low((self.first_gate + (self.number + at * B::N) as u64) << SHIFT) }
    }

    #[inline(always)]
    unsafe fn put_label(&self, at: usize, out: B) {
        // SAFETY: slots are in bounds and this thread's.
        unsafe {
            let ([g, h, i, j], count) = self.gates(at);
            let to = [g.out as usize, h.out as usize, i.out as usize, j.out as usize];
            out.scatter(self.labels, to, count);
        }
    }

    #[inline(always)]
    unsafe fn put_rows<const Q: usize>(&self, at: usize, garblers: &[B; Q], evaluators: &[B; Q]) {
        for q in 0..Q {
            let first = (at + q) * B::N;
            let count = self.ands.len() - first;
            // SAFETY: the rows of the gates that there are.
            unsafe {
                let rows = self.rows.add(2 * (self.number + first));
                if count >= B::N {
                    garblers[q].store_pairs(evaluators[q], rows);
                } else {
                    garblers[q].scatter(rows, [0, 2, 4, 6], count);
                    evaluators[q].scatter(rows, [1, 3, 5, 7], count);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn rows<const Q: usize>(&self, at: usize) -> ([B; Q], [B; Q]) {
        // SAFETY: the rows of the gates that there are, the last one again where there are no more.
        unsafe {
            let mut out = ([B::zero(); Q], [B::zero(); Q]);
            for q in 0..Q {
                let first = (at + q) * B::N;
                let count = self.ands.len() - first;
                let rows = self.rows.add(2 * (self.number + first));
                (out.0[q], out.1[q]) = if count >= B::N {
                    B::load_pairs(rows)
                } else {
                    let [w, x, y, z] = [0, 1, 2, 3].map(|l: usize| 2 * l.min(count - 1));
                    (B::gather(rows, [w, x, y, z]), B::gather(rows, [w + 1, x + 1, y + 1, z + 1]))
                };
            }
            out
        }
    }

    #[inline(always)]
    fn places(&self, at: usize) -> ([usize; 4], usize) {
        let first = at * B::N;
        let count = B::N.min(self.ands.len() - first);
        (std::array::from_fn(|l| self.number + first + l.min(count - 1)), count)
    }
}

/// How far ahead an evaluator asks for rows of several instances, in blocks: eight lines. So many streams are more than what
/// the processor foresees by itself.
const AHEAD: usize = 32;

/// Several instances: a vector holds `N` lanes of one gate in one stream; gates follow each other, then streams. `SHIFT` as above.
#[derive(Clone, Copy)]
struct Lanes<'a, B, const SHIFT: u32> {
    job: Job<'a>,
    streams: &'a [Stream],
    ands: &'a [Step],
    rows: *mut Label,
    /// ANDs of the program before the layer.
    before: usize,
    steps: B,
}

impl<'a, B: Blocks, const SHIFT: u32> Lanes<'a, B, SHIFT> {
    #[inline(always)]
    unsafe fn new(
        job: Job<'a>,
        streams: &'a [Stream],
        ands: &'a [Step],
        rows: *mut Label,
        before: usize,
    ) -> Self {
        // SAFETY: the caller has the instruction set.
        let steps = unsafe { B::steps((job.program.ands() as u64) << SHIFT) };
        Self { job, streams, ands, rows, before, steps }
    }

    #[inline(always)]
    fn of(&self, at: usize) -> (Step, usize, Stream) {
        let (stream, gate) = match self.streams.len() {
            1 => (0, at),
            _ => (at as u32 / self.ands.len() as u32, (at as u32 % self.ands.len() as u32) as usize),
        };
        (self.ands[gate], self.before + gate, self.streams[stream as usize])
    }

    /// Whether the next vector is of the next gate, and both of as many instances as a vector has blocks: in every instance
    /// the rows of both then follow each other, as much as a line of the cache.
    #[inline(always)]
    fn paired(&self, number: usize, stream: Stream) -> bool {
        stream.lanes == B::N && number + 1 < self.before + self.ands.len()
    }

    /// Blocks from the beginning of the tables for each lane that is an instance, the last again for the others.
    #[inline(always)]
    fn row_of(&self, number: usize, stream: Stream) -> [usize; 4] {
        let ands = self.job.program.ands();
        let mut rows = [2 * (stream.first * ands + number); 4];
        for l in 1..B::N {
            rows[l] = rows[l - 1] + if l < stream.lanes { 2 * ands } else { 0 };
        }
        rows
    }
}

impl<B: Blocks, const SHIFT: u32> Places<B> for Lanes<'_, B, SHIFT> {
    #[inline(always)]
    unsafe fn operands(&self, at: usize) -> (B, B) {
        let (step, _, stream) = self.of(at);
        // SAFETY: slots are in bounds.
        unsafe {
            let a = B::load(stream.labels.add(step.a as usize * stream.stride));
            let b = B::load(stream.labels.add(step.b as usize * stream.stride));
            (a, b)
        }
    }

    #[inline(always)]
    unsafe fn tweaks(&self, at: usize) -> B {
        let (_, number, stream) = self.of(at);
        let gate = stream.first * self.job.program.ands() + number;
        // SAFETY: the caller's.
        unsafe { self.steps.add_low((self.job.first_gate + gate as u64) << SHIFT) }
    }

    #[inline(always)]
    unsafe fn put_label(&self, at: usize, out: B) {
        let (step, _, stream) = self.of(at);
        // SAFETY: slots are in bounds and this thread's.
        unsafe { out.store(stream.labels.add(step.out as usize * stream.stride)) }
    }

    #[inline(always)]
    unsafe fn put_rows<const Q: usize>(&self, at: usize, garblers: &[B; Q], evaluators: &[B; Q]) {
        let mut q = 0;
        while q < Q {
            let (_, number, stream) = self.of(at + q);
            let rows = self.row_of(number, stream);
            // SAFETY: the rows of the lanes that are instances.
            unsafe {
                if q + 1 < Q && self.paired(number, stream) {
                    let quads = [garblers[q], evaluators[q], garblers[q + 1], evaluators[q + 1]];
                    B::store_quads(quads, self.rows, rows);
                    q += 2;
                } else {
                    garblers[q].scatter(self.rows, rows, stream.lanes);
                    evaluators[q].scatter(self.rows.add(1), rows, stream.lanes);
                    q += 1;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn rows<const Q: usize>(&self, at: usize) -> ([B; Q], [B; Q]) {
        // SAFETY: the rows of the lanes that are instances.
        unsafe {
            let mut out = ([B::zero(); Q], [B::zero(); Q]);
            let mut q = 0;
            while q < Q {
                let (_, number, stream) = self.of(at + q);
                let rows = self.row_of(number, stream);
                if q + 1 < Q && self.paired(number, stream) {
                    for lane in rows {
                        B::prefetch(self.rows.wrapping_add(lane + AHEAD));
                    }
                    [out.0[q], out.1[q], out.0[q + 1], out.1[q + 1]] = B::load_quads(self.rows, rows);
                    q += 2;
                } else {
                    (out.0[q], out.1[q]) = (B::gather(self.rows, rows), B::gather(self.rows.add(1), rows));
                    q += 1;
                }
            }
            out
        }
    }

    #[inline(always)]
    fn places(&self, at: usize) -> ([usize; 4], usize) {
        let (_, number, stream) = self.of(at);
        let ands = self.job.program.ands();
        let first = stream.first * ands + number;
        (std::array::from_fn(|l| first + l.min(stream.lanes - 1) * ands), stream.lanes)
    }
}

/// The XORs of a layer, in order.
#[inline(always)]
unsafe fn xors_of<B: Blocks>(stream: Stream, xors: &[Step]) {
    let Stream { labels, stride, .. } = stream;
    // SAFETY: slots are in bounds and this thread's.
    unsafe {
        for step in xors {
            let a = labels.add(step.a as usize * stride);
            let b = labels.add(step.b as usize * stride);
            let out = labels.add(step.out as usize * stride);
            if stride == B::N {
                B::load(a).xor(B::load(b)).store(out);
            } else {
                // One lane of a group, or the one instance.
                B::xor_one(out, a, b);
            }
        }
    }
}
