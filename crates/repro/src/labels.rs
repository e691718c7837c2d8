//! Labels to begin garbling with, and what labels say in the end.

use blindcore_accel::garble::{GarblingScheme, Label, Labels, Offset};
use blindcore_accel_rtl::sifo::circuits::Placed;
use blindcore_circuit::netlist::Netlist;
use zeroize::Zeroizing;

pub(crate) fn fill(bytes: &mut [u8]) -> anyhow::Result<()> {
    getrandom::fill(bytes).map_err(|e| anyhow::anyhow!("the system gave no randomness: {e}"))
}

/// A random value for each input of a circuit.
///
/// # Errors
/// The system gives no randomness.
pub fn random_inputs(netlist: &Netlist) -> anyhow::Result<Vec<Vec<bool>>> {
    let ports = netlist.inputs().iter().map(|port| {
        let mut drawn = vec![0u8; port.wires.len()];
        fill(&mut drawn)?;
        Ok(drawn.iter().map(|byte| byte & 1 == 1).collect())
    });
    ports.collect()
}

/// What garbling begins with.
pub(crate) struct Fresh {
    pub(crate) offset: Offset,
    /// Labels of 0, of constants and inputs.
    pub(crate) labels: Labels,
    /// Labels of their values.
    pub(crate) active: Labels,
}

impl Fresh {
    pub(crate) fn new(placed: &Placed, inputs: &[Vec<bool>]) -> anyhow::Result<Self> {
        let label_bytes = GarblingScheme::InsecureSifo.label_bits() as usize / 8;
        let mut drawn = Zeroizing::new(vec![0u8; label_bytes * (placed.inputs.len() + 1)]);
        fill(&mut drawn)?;
        let mut random = drawn.chunks_exact(label_bytes).map(|bytes| {
            let mut label = Zeroizing::new([0; 16]);
            label[..label_bytes].copy_from_slice(bytes);
            Label::from_le_bytes(*label)
        });
        let offset = Offset::new(random.next().expect("drawn"));
        let [mut labels, mut active] = [(); 2].map(|()| Labels::new(placed.program.slots(), 1));
        // Constants have active labels of zero; the 1's is its label of 0 and the offset.
        labels.set(placed.inputs[1], 0, offset.label());
        for ((slot, bit), zero) in placed.inputs[2..].iter().zip(inputs.iter().flatten()).zip(random) {
            labels.set(*slot, 0, zero);
            active.set(*slot, 0, zero ^ Label::from(*bit).wrapping_neg() & offset.label());
        }
        Ok(Self { offset, labels, active })
    }
}

/// The outputs, of labels of 0 and active labels.
pub(crate) fn decode(
    netlist: &Netlist,
    placed: &Placed,
    labels: &Labels,
    active: &Labels,
    offset: &Offset,
) -> anyhow::Result<Vec<Vec<bool>>> {
    let mut bits = placed.outputs.iter().map(|slot| match active.get(*slot, 0) ^ labels.get(*slot, 0) {
        0 => Ok(false),
        label if label == offset.label() => Ok(true),
        _ => anyhow::bail!("an output's label is neither of its two; report this"),
    });
    netlist.outputs().iter().map(|port| bits.by_ref().take(port.wires.len()).collect()).collect()
}
