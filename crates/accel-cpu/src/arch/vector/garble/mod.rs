//! Half gates and three halves by AES-NI and VAES: a vector holds a label of one gate or of four.
//!
//! A kernel runs a part of a program on one or several *streams*, arrays of labels that go through the same steps.
//! AES wants eight independent blocks or vectors in flight, whatever they belong to: gates of a layer, lanes of four
//! instances, streams of several.

pub(crate) mod blocks;
pub(crate) mod gates;
mod half_gates;
pub(crate) mod job;
pub(crate) mod three_halves;

use blindcore_accel::garble::three_halves::{ROW, first_of_dice};
use blindcore_accel::garble::{Label, Labels, Part, Program};
#[cfg(target_arch = "x86_64")]
use blindcore_math::features::{Aes, Vaes};
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use crate::arch::{aes, avx512};
pub(crate) use job::{Gates, Job, Tables};
use job::{RawTables, Stream};

/// Which kernel garbles; each holds the token of its instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// One block at a time through AES-NI.
    #[cfg(target_arch = "x86_64")]
    Aes(Aes),
    /// Four blocks at a time through AVX-512 and VAES.
    #[cfg(target_arch = "x86_64")]
    Vaes(Vaes),
}

impl Kernel {
    /// AES-128 of at least `blocks` blocks under one key, in registers: how many were done, and their XOR.
    pub(crate) fn encipher(self, key: &[u8; 16], blocks: usize) -> (usize, Label) {
        let _ = (key, blocks);
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Aes(token) => {
                let rounds = blocks.div_ceil(8);
                (rounds * 8, aes::garble::encipher(token, key, rounds))
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Vaes(token) => {
                let rounds = blocks.div_ceil(64);
                (rounds * 64, avx512::garble::encipher(token, key, rounds))
            }
        }
    }

    /// Blocks of a vector.
    fn width(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Aes(_) => 1,
            #[cfg(target_arch = "x86_64")]
            Kernel::Vaes(_) => 4,
        }
    }

    /// # Safety
    /// See [`gates::run`].
    unsafe fn run(self, job: Job<'_>, streams: &[Stream], tables: RawTables, work: gates::Work<'_>) {
        let _ = (job, streams, tables, work);
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller's.
            Kernel::Aes(token) => unsafe { aes::garble::run(token, job, streams, tables, work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller's.
            Kernel::Vaes(token) => unsafe { avx512::garble::run(token, job, streams, tables, work) },
        }
    }
}

/// Label groups that run through a program together, so that narrow layers fill the pipeline of AES.
const STREAMS: usize = 4;
/// ANDs of a layer from which on they are shared by threads.
const WIDE: usize = 4096;

/// How many of `threads` threads a program keeps busy: all of them, or one where no part, layer or stream can be shared. Most pieces of
/// a session need one: waking a second thread would take as long as garbling them.
pub(crate) fn sharers(kernel: Kernel, program: &Program, labels: &Labels, threads: usize) -> usize {
    let (instances, stride) = (labels.instances(), labels.stride());
    let width = if stride == kernel.width() { stride } else { 1 };
    let shared = match instances.div_ceil(width) {
        1 => program.parts().len() >= 2 * threads || program.layers().iter().any(|l| l.ands as usize >= WIDE),
        streams => streams > together(program),
    };
    if shared { threads } else { 1 }
}

/// How many streams go through the same steps together: more where layers are narrow.
fn together(program: &Program) -> usize {
    if program.ands() / program.layers().len().max(1) >= 8 { 1 } else { STREAMS }
}

/// Runs a program on the `threads` of the current pool.
///
/// # Panics
/// The labels have too few slots, the tables or the dice are too short.
pub(crate) fn run(kernel: Kernel, job: Job<'_>, labels: &mut Labels, tables: Tables<'_>, threads: usize) {
    let (instances, stride) = (labels.instances(), labels.stride());
    // What the pointers below rely on, with what holds of every `Program`.
    let gates = job.program.ands() * instances;
    let rows = match &tables {
        Tables::Garble(_, rows) => rows.len(),
        Tables::Evaluate(rows) => rows.len(),
    };
    assert!(labels.slots() >= job.program.slots());
    match job.gates {
        Gates::HalfGates => assert!(rows >= gates * 2 * size_of::<Label>()),
        Gates::ThreeHalves { dice } => {
            const GATES_OF_DICE: usize = 64;
            let rolled = (job.first_gate - first_of_dice(job.first_gate)) as usize + gates;
            let garbles = matches!(tables, Tables::Garble(..));
            assert!(rows >= gates * ROW && (!garbles || GATES_OF_DICE * dice.len() >= rolled));
        }
    }
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
        let together = together(job.program);
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
    let run = |work: gates::Work<'_>| {
        // SAFETY: slots are below the streams', rows within the tables (`run`), and nobody else uses what this part, or
        // these ANDs of a layer, write (`Program`).
        unsafe { kernel.run(job, streams, tables, work) }
    };
    if !share || job.program.layers_of(part).all(|(_, ands, _)| ands.len() < WIDE) {
        return run(gates::Work::Part(part));
    }
    for (xors, ands, before) in job.program.layers_of(part) {
        run(gates::Work::Layer { xors, ands: &[], before });
        let threads = rayon::current_num_threads();
        let piece = ands.len().div_ceil(threads).next_multiple_of(8).max(WIDE / 2);
        ands.par_chunks(piece)
            .enumerate()
            .for_each(|(i, ands)| run(gates::Work::Layer { xors: &[], ands, before: before + i * piece }));
    }
}
