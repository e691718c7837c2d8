//! Both sides in one process: a circuit garbled, evaluated on random inputs and compared with the clear, to see what it
//! costs on a device.

use std::time::{Duration, Instant};

use blindcore_accel::Device;
use blindcore_accel::garble::{GarblingScheme, Label, Labels, Offset, room};
use getrandom::fill;

use crate::compile::Compiled;
use crate::netlist::{Netlist, NetlistError};

/// Memory that a trial takes for tables, labels and inputs, at most: 8 GiB.
pub const MAX_BYTES: usize = 8 << 30;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// More memory than a trial takes.
    #[error(
        "{tables} B of tables and {labels} B of labels are over the {MAX_BYTES} B that this keeps; take fewer --instances"
    )]
    Memory {
        /// Bytes of tables.
        tables: usize,
        /// Bytes of labels.
        labels: usize,
    },
    /// The device refuses.
    #[error(transparent)]
    Device(#[from] blindcore_accel::Error),
    /// The circuit can't be evaluated in the clear.
    #[error(transparent)]
    Netlist(#[from] NetlistError),
    /// What the device computed is wrong.
    #[error("the device {0} evaluated wrongly")]
    Wrong(String),
    /// The operating system gave no randomness.
    #[error("the system gave no randomness: {0}")]
    Randomness(getrandom::Error),
}

/// What a trial took.
#[derive(Clone, Debug)]
pub struct Trial {
    /// AND gates of all copies.
    pub ands: u64,
    /// XOR gates of all copies.
    pub xors: u64,
    /// Layers of ANDs.
    pub layers: usize,
    /// Parts that the circuit was compiled to.
    pub parts: usize,
    /// Labels that are kept at once, for each copy.
    pub slots: usize,
    /// Bytes of tables.
    pub table_bytes: usize,
    /// Time to garble.
    pub garble: Duration,
    /// Time to evaluate.
    pub evaluate: Duration,
}

/// Random 16 bytes to key a scheme with.
///
/// # Errors
/// The operating system gives no randomness.
pub fn random_key() -> Result<[u8; 16], TrialError> {
    let mut key = [0; 16];
    fill(&mut key).map_err(TrialError::Randomness)?;
    Ok(key)
}

/// Garbles and evaluates `instances` copies of a circuit, each with random inputs of its own, and compares.
///
/// # Errors
/// They take too much memory, the device refuses or computes wrongly.
pub fn run(
    netlist: &Netlist,
    device: &Device,
    scheme: &GarblingScheme,
    instances: usize,
) -> Result<Trial, TrialError> {
    let compiled = Compiled::new(netlist);
    let program = &compiled.program;
    let bytes = program.ands().saturating_mul(instances).saturating_mul(scheme.table_bytes());
    // Two labels a slot, its own and the one that is active.
    let label_bytes = program.slots().saturating_mul(instances).saturating_mul(2 * size_of::<Label>());
    let all = bytes.saturating_add(label_bytes).saturating_add(compiled.input_bits.saturating_mul(instances));
    if all > MAX_BYTES {
        return Err(TrialError::Memory { tables: bytes, labels: label_bytes });
    }
    let (garbler, evaluator) = (device.garble(scheme)?, device.evaluate(scheme)?);
    let mask = Label::MAX >> (128 - scheme.label_bits());
    let offset = Offset::new(Label::from_le_bytes(random_key()?) & mask);
    let mut labels = Labels::new(program.slots(), instances);
    let mut active = Labels::new(program.slots(), instances);
    let mut inputs = vec![vec![false; compiled.input_bits]; instances];
    let mut drawn = vec![0u8; compiled.input_bits * 17];
    labels.set_all(1, offset.label());
    for (instance, bits) in inputs.iter_mut().enumerate() {
        fill(&mut drawn).map_err(TrialError::Randomness)?;
        for (bit, drawn) in drawn.as_chunks::<17>().0.iter().enumerate() {
            let zero = Label::from_le_bytes(drawn[..16].try_into().expect("sixteen")) & mask;
            bits[bit] = drawn[16] & 1 == 1;
            labels.set(2 + bit as u32, instance, zero);
            let one = Label::from(bits[bit]).wrapping_neg() & offset.label();
            active.set(2 + bit as u32, instance, zero ^ one);
        }
    }
    let mut tables = Vec::new();
    let tables = room(&mut tables, bytes);
    let start = Instant::now();
    garbler.garble(program, &offset, 0, &mut labels, tables)?;
    let garble = start.elapsed();
    let start = Instant::now();
    evaluator.evaluate(program, 0, &mut active, tables)?;
    let evaluate = start.elapsed();
    for (instance, bits) in inputs.iter().enumerate() {
        let mut rest = &bits[..];
        let ports = netlist.inputs().iter();
        let values: Vec<Vec<bool>> =
            ports.map(|port| rest.split_off(..port.wires.len()).expect("as many bits").to_vec()).collect();
        let clear = netlist.evaluate(&values)?.concat();
        for (slot, want) in compiled.outputs.iter().zip(clear) {
            let got = active.get(*slot, instance) ^ labels.get(*slot, instance);
            if got != Label::from(want).wrapping_neg() & offset.label() {
                return Err(TrialError::Wrong(device.name().into()));
            }
        }
    }
    Ok(Trial {
        ands: program.ands() as u64 * instances as u64,
        xors: (program.steps().len() - program.ands()) as u64 * instances as u64,
        layers: program.layers().len(),
        parts: program.parts().len(),
        slots: program.slots(),
        table_bytes: bytes,
        garble,
        evaluate,
    })
}
