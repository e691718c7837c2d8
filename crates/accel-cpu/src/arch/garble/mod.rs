//! Half gates and three halves by AES-NI and VAES: a vector holds a label of one gate or of four.
//!
//! A kernel runs a part of a program on one or several *streams*, arrays of labels that go through the same steps.
//! AES wants eight independent blocks or vectors in flight, whatever they belong to: gates of a layer, lanes of four
//! instances, streams of several.

mod kernel;
mod three_halves;
#[cfg(target_arch = "x86_64")]
mod x86;

use blindcore_accel::garble::{Label, Labels, Offset, Part, Program};
use rayon::prelude::*;

/// Which kernel garbles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// One block at a time through AES-NI.
    #[cfg(target_arch = "x86_64")]
    AesNi,
    /// Four blocks at a time through AVX-512 and VAES.
    #[cfg(target_arch = "x86_64")]
    Vaes,
}

impl Kernel {
    /// AES-NI, if this machine has it.
    pub(crate) fn aes_ni() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("aes") && is_x86_feature_detected!("sse4.1") {
            return Some(Kernel::AesNi);
        }
        None
    }

    /// VAES with AVX-512, if this machine has it.
    pub(crate) fn vaes() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if super::check_avx512().is_ok()
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("aes")
        {
            return Some(Kernel::Vaes);
        }
        None
    }
}

/// AES-128 of at least `blocks` blocks under one key, in registers: how many were done, and their XOR.
pub(crate) fn encipher(kernel: Kernel, key: &[u8; 16], blocks: usize) -> (usize, Label) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::AesNi => {
            let rounds = blocks.div_ceil(8);
            // SAFETY: the kernel was made by its constructor, which found its features.
            (rounds * 8, unsafe { x86::aes_ni_blocks(key, rounds) })
        }
        #[cfg(target_arch = "x86_64")]
        Kernel::Vaes => {
            let rounds = blocks.div_ceil(32);
            // SAFETY: as above.
            (rounds * 32, unsafe { x86::vaes_blocks(key, rounds) })
        }
    }
}

impl Kernel {
    /// Blocks of a vector.
    fn width(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::AesNi => 1,
            #[cfg(target_arch = "x86_64")]
            Kernel::Vaes => 4,
        }
    }
}

/// What a run works on, besides labels and tables.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) program: &'a Program,
    pub(crate) key: &'a [u8; 16],
    /// The number of the first AND gate.
    pub(crate) first_gate: u64,
    pub(crate) gates: Gates<'a>,
}

/// How ANDs are garbled.
#[derive(Clone, Copy)]
pub(crate) enum Gates<'a> {
    HalfGates,
    /// With the random bits of all gates, if this is the garbler.
    ThreeHalves {
        dice: &'a [Label],
    },
}

/// The tables: written by a garbler, read by an evaluator.
pub(crate) enum Tables<'a> {
    Garble(&'a Offset, &'a mut [u8]),
    Evaluate(&'a [u8]),
}

/// Label groups that run through a program together, so that narrow layers fill the pipeline of AES.
const STREAMS: usize = 4;
/// ANDs of a layer from which on they are shared by threads.
const WIDE: usize = 4096;

/// Runs a program on the `threads` of the current pool. `blindcore_accel::garble::check` has passed.
pub(crate) fn run(kernel: Kernel, job: Job<'_>, labels: &mut Labels, tables: Tables<'_>, threads: usize) {
    let (instances, stride) = (labels.instances(), labels.stride());
    let tables = match tables {
        Tables::Garble(offset, rows) => RawTables::Garble(offset.label(), rows.as_mut_ptr()),
        Tables::Evaluate(rows) => RawTables::Evaluate(rows.as_ptr()),
    };
    // Lanes that fill a vector together are one stream; else each is one of its own.
    let width = if stride == kernel.width() { stride } else { 1 };
    let mut streams = Vec::with_capacity(instances.div_ceil(width));
    for (g, group) in labels.groups_mut().enumerate() {
        let base = group.as_mut_ptr();
        for lane in (0..stride.min(instances - g * stride)).step_by(width) {
            let first = g * stride + lane;
            // SAFETY: the lane lies within the group, which holds a stride at least.
            let labels = unsafe { base.add(lane) };
            streams.push(Stream { labels, first, lanes: width.min(instances - first), stride });
        }
    }
    if let [stream] = streams[..] {
        let parts = job.program.parts();
        if threads == 1 || parts.len() < 2 * threads {
            for part in parts {
                part_on(kernel, job, *part, &[stream], tables, threads > 1);
            }
        } else {
            // Neighbouring parts share inputs: each thread takes a run of them at a time.
            parts.par_chunks(parts.len().div_ceil(8 * threads)).for_each(|parts| {
                for part in parts {
                    part_on(kernel, job, *part, &[stream], tables, false);
                }
            });
        }
    } else {
        // The same steps for several groups: more of them where layers are narrow.
        let layers = job.program.layers().len().max(1);
        let together = if job.program.ands() / layers >= 8 { 1 } else { STREAMS };
        let some = |streams: &[Stream]| {
            // The kernel wants a power of two of them.
            for streams in streams.chunks(if streams.len() == STREAMS { STREAMS } else { 1 }) {
                for part in job.program.parts() {
                    part_on(kernel, job, *part, streams, tables, false);
                }
            }
        };
        if threads == 1 {
            streams.chunks(together).for_each(some);
        } else {
            streams.par_chunks(together).for_each(some);
        }
    }
}

/// One part on some streams; with `share`, wide layers are cut between the pool's threads.
fn part_on(kernel: Kernel, job: Job<'_>, part: Part, streams: &[Stream], tables: RawTables, share: bool) {
    let run = |layers: kernel::Work<'_>| match kernel {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the kernel was made by its constructor, which found its features; slots are below the streams'
        // (`check`), rows within the tables, and nobody else uses what this part writes (`Program`).
        Kernel::AesNi => unsafe { x86::aes_ni(job, streams, tables, layers) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Vaes => unsafe { x86::vaes(job, streams, tables, layers) },
    };
    if !share || job.program.layers_of(part).all(|(_, ands, _)| ands.len() < WIDE) {
        return run(kernel::Work::Part(part));
    }
    for (xors, ands, before) in job.program.layers_of(part) {
        run(kernel::Work::Layer { xors, ands: &[], before });
        let threads = rayon::current_num_threads();
        let piece = ands.len().div_ceil(threads).next_multiple_of(8).max(WIDE / 2);
        ands.par_chunks(piece).enumerate().for_each(|(i, ands)| {
            let work = kernel::Work::Layer { xors: &[], ands, before: before + i * piece };
            match kernel {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above; ANDs of a layer are independent of each other (`Program`).
                Kernel::AesNi => unsafe { x86::aes_ni(job, streams, tables, work) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Kernel::Vaes => unsafe { x86::vaes(job, streams, tables, work) },
            }
        });
    }
}

/// Instances whose labels fill a vector: where they lie, and which they are.
#[derive(Clone, Copy)]
struct Stream {
    labels: *mut Label,
    /// The instance of the first lane.
    first: usize,
    /// How many instances; what is beside them is padding.
    lanes: usize,
    /// Labels from one slot to the next.
    stride: usize,
}

// SAFETY: a stream is a mutable borrow of a group of labels for the length of `run`; threads that share one work on
// slots that the others leave alone (parts and layers of a checked `Program`).
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

/// The tables' beginning, to be indexed by instance and gate; the garbler's with its offset.
#[derive(Clone, Copy)]
enum RawTables {
    Garble(Label, *mut u8),
    Evaluate(*const u8),
}

// SAFETY: every gate of every instance has rows of its own, written by the thread that runs that gate; see `Stream`.
unsafe impl Send for RawTables {}
// SAFETY: as above.
unsafe impl Sync for RawTables {}
