//! The kernels, written once for any width of vector.

use blindcore_accel::garble::{Label, Part, Step};

use super::{Job, RawTables, Stream};

/// A vector of `N` blocks of 128 bits.
///
/// All functions need the instruction set that their vector stands for: that is what is unsafe about them, besides
/// the pointers.
pub(super) trait Blocks: Copy {
    const N: usize;
    unsafe fn zero() -> Self;
    unsafe fn splat(label: Label) -> Self;
    /// `low[l]` in the lower half of block `l`, from an array of at least `N`.
    unsafe fn low(low: &[u64; 4]) -> Self;
    /// `x` added to the lower half of every block.
    unsafe fn add_low(self, x: u64) -> Self;
    /// `N` blocks from one address, which need not be aligned to more than a block.
    unsafe fn load(from: *const Label) -> Self;
    unsafe fn store(self, to: *mut Label);
    /// Block `l` from `from[l]`, unaligned.
    unsafe fn gather(from: &[*const Label; 4]) -> Self;
    /// Block `l` to `to[l]` for `l < count`, unaligned.
    unsafe fn scatter(self, to: &[*mut Label; 4], count: usize);
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// All ones in every block whose lowest bit is 1.
    unsafe fn colors(self) -> Self;
    unsafe fn aes(self, key: Self) -> Self;
    unsafe fn aes_last(self, key: Self) -> Self;
}

/// What to run.
#[derive(Clone, Copy)]
pub(super) enum Work<'a> {
    Part(Part),
    Layer { xors: &'a [Step], ands: &'a [Step], before: usize },
}

/// Runs `work` on the streams. `keys` are the round keys of the permutation.
///
/// # Safety
/// The instruction set of `B` is there; slots and rows are in bounds; nobody else touches what is written.
#[inline(always)]
pub(super) unsafe fn run<B: Blocks>(
    job: Job<'_>,
    keys: &[B; 11],
    streams: &[Stream],
    tables: RawTables,
    work: Work<'_>,
) {
    let layer = |xors: &[Step], ands: &[Step], before: usize| {
        // SAFETY: as this function's.
        unsafe {
            for stream in streams {
                xors_of::<B>(*stream, xors);
            }
            let blocks = (ands.len() * streams.len() * streams[0].stride).div_ceil(B::N);
            let rows = match tables {
                RawTables::Garble(_, rows) => rows,
                RawTables::Evaluate(rows) => rows.cast_mut(),
            };
            let place = |at: usize| Places::new::<B>(job, streams, rows.cast(), ands, before, at);
            let mut done = 0;
            match tables {
                RawTables::Garble(offset, _) => {
                    let offset = B::splat(offset);
                    while done + 1 < blocks {
                        garble_places(keys, offset, &[place(done), place(done + 1)]);
                        done += 2;
                    }
                    if done < blocks {
                        garble_places(keys, offset, &[place(done)]);
                    }
                }
                RawTables::Evaluate(_) => {
                    while done + 3 < blocks {
                        evaluate_places(
                            keys,
                            &[place(done), place(done + 1), place(done + 2), place(done + 3)],
                        );
                        done += 4;
                    }
                    while done < blocks {
                        evaluate_places(keys, &[place(done)]);
                        done += 1;
                    }
                }
            }
        }
    };
    match work {
        Work::Part(part) => {
            job.program.layers_of(part).for_each(|(xors, ands, before)| layer(xors, ands, before));
        }
        Work::Layer { xors, ands, before } => layer(xors, ands, before),
    }
}

/// The XORs of a layer, in order.
#[inline(always)]
unsafe fn xors_of<B: Blocks>(stream: Stream, xors: &[Step]) {
    let Stream { labels, stride, .. } = stream;
    for step in xors {
        let [out, a, b] = [step.out, step.a, step.b].map(|slot| labels.wrapping_add(slot as usize * stride));
        // SAFETY: slots are in bounds and this thread's.
        unsafe {
            if stride == 1 {
                *out = *a ^ *b;
                continue;
            }
            for lane in (0..stride).step_by(B::N) {
                B::load(a.add(lane)).xor(B::load(b.add(lane))).store(out.add(lane));
            }
        }
    }
}

/// TMMO of `K * Q` vectors at once, each with its tweak: `pi(pi(x) ^ t) ^ pi(x)`.
#[inline(always)]
unsafe fn hash<B: Blocks, const K: usize, const Q: usize>(
    keys: &[B; 11],
    x: &[[B; Q]; K],
    tweaks: &[[B; Q]; K],
) -> [[B; Q]; K] {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let mut inner = *x;
        permute(keys, &mut inner);
        let mut outer = inner;
        for (o, t) in outer.as_flattened_mut().iter_mut().zip(tweaks.as_flattened()) {
            *o = o.xor(*t);
        }
        permute(keys, &mut outer);
        for (o, i) in outer.as_flattened_mut().iter_mut().zip(inner.as_flattened()) {
            *o = o.xor(*i);
        }
        outer
    }
}

/// AES-128, round by round over all vectors, so that as many are in flight.
#[inline(always)]
unsafe fn permute<B: Blocks, const K: usize, const Q: usize>(keys: &[B; 11], x: &mut [[B; Q]; K]) {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let x = x.as_flattened_mut();
        for v in &mut *x {
            *v = v.xor(keys[0]);
        }
        for key in &keys[1..10] {
            for v in &mut *x {
                *v = v.aes(*key);
            }
        }
        for v in x {
            *v = v.aes_last(keys[10]);
        }
    }
}

/// `Q` vectors of gates, garbled.
struct Garbled<B, const Q: usize> {
    /// Labels of 0.
    out: [B; Q],
    garblers: [B; Q],
    evaluators: [B; Q],
}

/// Half gates' garbling. `tweaks` are those of the gates' first hashes.
#[inline(always)]
unsafe fn garble<B: Blocks, const Q: usize>(
    keys: &[B; 11],
    offset: B,
    a: &[B; Q],
    b: &[B; Q],
    tweaks: &[B; Q],
) -> Garbled<B, Q> {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let mut x = [*a, *a, *b, *b];
        let mut t = [*tweaks; 4];
        for q in 0..Q {
            x[1][q] = a[q].xor(offset);
            x[3][q] = b[q].xor(offset);
            t[2][q] = tweaks[q].add_low(1);
            t[3][q] = t[2][q];
        }
        let h = hash(keys, &x, &t);
        let mut garbled = Garbled { out: *a, garblers: *a, evaluators: *a };
        for q in 0..Q {
            let (color_a, color_b) = (a[q].colors(), b[q].colors());
            let garblers = h[0][q].xor(h[1][q]).xor(color_b.and(offset));
            // The evaluator's half, before the label of a comes in.
            let plain = h[2][q].xor(h[3][q]);
            garbled.garblers[q] = garblers;
            garbled.evaluators[q] = plain.xor(a[q]);
            garbled.out[q] = h[0][q].xor(color_a.and(garblers)).xor(h[2][q]).xor(color_b.and(plain));
        }
        garbled
    }
}

/// Half gates' evaluation.
#[inline(always)]
unsafe fn evaluate<B: Blocks, const Q: usize>(
    keys: &[B; 11],
    [a, b, garblers, evaluators]: &[[B; Q]; 4],
    tweaks: &[B; Q],
) -> [B; Q] {
    // SAFETY: the caller has the instruction set.
    unsafe {
        let mut t = [*tweaks; 2];
        for q in 0..Q {
            t[1][q] = tweaks[q].add_low(1);
        }
        let h = hash(keys, &[*a, *b], &t);
        let mut out = *a;
        for q in 0..Q {
            let of_a = a[q].colors().and(garblers[q]);
            let of_b = b[q].colors().and(evaluators[q].xor(a[q]));
            out[q] = h[0][q].xor(of_a).xor(h[1][q]).xor(of_b);
        }
        out
    }
}

/// Where the blocks of a vector come from and go to.
///
/// Blocks are counted through gates, then streams, then lanes: with one instance a vector holds neighbouring gates,
/// with more it holds a gate's lanes.
#[derive(Clone, Copy)]
struct Places {
    a: [*const Label; 4],
    b: [*const Label; 4],
    out: [*mut Label; 4],
    row: [*mut Label; 4],
    tweak: [u64; 4],
    /// Blocks that are instances' gates; the others are computed and thrown away.
    count: usize,
}

impl Places {
    /// The places of vector `at` of a layer's ANDs. All pointers lie in labels and tables, used or not.
    #[inline(always)]
    fn new<B: Blocks>(
        job: Job<'_>,
        streams: &[Stream],
        rows: *mut Label,
        ands: &[Step],
        before: usize,
        at: usize,
    ) -> Self {
        let stride = streams[0].stride;
        let (lane_bits, stream_bits) = (stride.trailing_zeros(), streams.len().trailing_zeros());
        let nowhere = std::ptr::null_mut();
        let mut places = Self {
            a: [nowhere; 4],
            b: [nowhere; 4],
            out: [nowhere; 4],
            row: [nowhere; 4],
            tweak: [0; 4],
            count: 0,
        };
        for l in 0..B::N {
            let block = at * B::N + l;
            let and = block >> (lane_bits + stream_bits);
            let gate = and.min(ands.len() - 1);
            let stream = streams[block >> lane_bits & (streams.len() - 1)];
            let lane = block & (stride - 1);
            let used = and < ands.len() && lane < stream.lanes;
            let instance = stream.first + lane.min(stream.lanes - 1);
            let number = instance * job.program.ands() + before + gate;
            let at = |slot: u32| stream.labels.wrapping_add(slot as usize * stride + lane);
            let step = ands[gate];
            (places.a[l], places.b[l], places.out[l]) = (at(step.a), at(step.b), at(step.out));
            places.row[l] = rows.wrapping_add(2 * number);
            places.tweak[l] = (job.first_gate + number as u64) << 1;
            places.count += usize::from(used);
        }
        places
    }
}

#[inline(always)]
unsafe fn garble_places<B: Blocks, const Q: usize>(keys: &[B; 11], offset: B, places: &[Places; Q]) {
    // SAFETY: the caller has the instruction set and says that places are its own.
    unsafe {
        let (mut a, mut b, mut t) = ([B::zero(); Q], [B::zero(); Q], [B::zero(); Q]);
        for q in 0..Q {
            (a[q], b[q], t[q]) = (B::gather(&places[q].a), B::gather(&places[q].b), B::low(&places[q].tweak));
        }
        let garbled = garble(keys, offset, &a, &b, &t);
        for q in 0..Q {
            let p = &places[q];
            garbled.out[q].scatter(&p.out, p.count);
            garbled.garblers[q].scatter(&p.row, p.count);
            garbled.evaluators[q].scatter(&p.row.map(|row| row.wrapping_add(1)), p.count);
        }
    }
}

#[inline(always)]
unsafe fn evaluate_places<B: Blocks, const Q: usize>(keys: &[B; 11], places: &[Places; Q]) {
    // SAFETY: as of `garble_places`.
    unsafe {
        let mut x = [[B::zero(); Q]; 4];
        let mut t = [B::zero(); Q];
        for q in 0..Q {
            let p = &places[q];
            x[0][q] = B::gather(&p.a);
            x[1][q] = B::gather(&p.b);
            x[2][q] = B::gather(&p.row.map(<*mut Label>::cast_const));
            x[3][q] = B::gather(&p.row.map(|row| row.wrapping_add(1).cast_const()));
            t[q] = B::low(&p.tweak);
        }
        let out = evaluate(keys, &x, &t);
        for q in 0..Q {
            out[q].scatter(&places[q].out, places[q].count);
        }
    }
}
