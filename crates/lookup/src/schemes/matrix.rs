//! Operands that are matrices of bytes, multiplied modulo 2^32: placing them and running queries on them.

use std::sync::Arc;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Cost, Database, Device, Layout, Placed, SharedBytes, Word, Words};
use blindcore_math::Modulus;

use super::scheme::{Operand, Origin};
use crate::{Error, MAX_GATHER};

/// A matrix of bytes, of this many rows and columns, in the layout that devices want for its shape.
pub(crate) fn operand(name: &'static str, rows: usize, columns: usize, origin: Origin) -> Operand {
    let bytes = Shape::new(Word::U8, vec![Modulus::Pow2_32]);
    let shape = Shape { m: MAX_GATHER, n: rows, j: columns, ..bytes };
    Operand { name, layout: Layout::for_shape(&shape), shape, origin }
}

/// Places an operand that lies in these pieces.
pub(crate) fn place(
    device: &Device,
    operand: &Operand,
    pieces: Vec<SharedBytes>,
) -> Result<Arc<dyn Placed>, Error> {
    let contract = device.contract(&operand.shape)?;
    if contract.layout() != operand.layout {
        let (shape, wants) = (operand.shape.to_string(), contract.layout().name());
        let why =
            format!("device {} wants it as {wants}, and it lies as {}", device.name(), operand.layout.name());
        return Err(blindcore_accel::Error::Shape { shape, why }.into());
    }
    Ok(contract.place(Database::Packed(pieces))?)
}

/// Runs a contract on gathered queries of equal length, adding its cost. Gives the answer to each.
pub(crate) fn run_gathered(
    matrix: &dyn Placed,
    queries: &[&[u32]],
    cost: &mut Cost,
) -> Result<Vec<Vec<u32>>, Error> {
    let (answer, this) = matrix.run(&Words::U32(queries.concat()))?;
    *cost += &this;
    split(answer, queries.len())
}

/// The answers of a run, one for each query.
pub(crate) fn split(answer: Words, queries: usize) -> Result<Vec<Vec<u32>>, Error> {
    let words = answer.into_u32()?;
    Ok(words.chunks_exact(words.len() / queries).map(<[u32]>::to_vec).collect())
}

/// The words of a query.
pub(crate) fn words(query: &[u8]) -> Vec<u32> {
    query.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect()
}
