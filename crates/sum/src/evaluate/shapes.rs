//! Shapes of what is weighed, and what is counted of it.

use blindcore_files::OutOfRange;

use crate::ciphertexts::Ciphertexts;
use crate::encoding::EncodingError;

/// The shape of `[..., K]` weighed with M x K.
pub(super) fn weighed_shape(
    x: &Ciphertexts,
    values: &[i64],
    weights: &[usize],
) -> Result<Vec<usize>, EncodingError> {
    let terms = weights.last().copied().unwrap_or(0);
    let outputs = values.len().checked_div(terms).unwrap_or(0);
    let groups = usize::from(x.form.packed.is_some());
    if terms == 0 || outputs == 0 || x.form.shape.len() <= groups || x.form.shape.last() != Some(&terms) {
        let groups = if groups == 1 { "groups, " } else { "" };
        let want = format!("[{groups}..., {terms}] for weights {weights:?}");
        return Err(EncodingError::Terms { got: x.form.shape.clone(), want });
    }
    let mut shape = x.form.shape.clone();
    shape.pop();
    shape.push(outputs);
    Ok(shape)
}

/// The largest sum of magnitudes of an output's weights.
pub(super) fn largest_sum(weights: &[i64], terms: usize) -> u128 {
    let magnitude = |row: &[i64]| row.iter().map(|w| u128::from(w.unsigned_abs())).sum::<u128>();
    weights.chunks(terms).map(magnitude).max().unwrap_or(0)
}

pub(super) fn index_count(count: usize) -> Result<u32, EncodingError> {
    let (what, remedy) = ("the number of ciphertexts weighed at once", "weigh them in parts");
    let (got, max) = (count as u64, u64::from(u32::MAX) - 1);
    if got > max { Err(OutOfRange { what, got, min: 0, max, remedy }.into()) } else { Ok(count as u32) }
}

/// How many places a kernel takes along one side.
pub(super) fn steps(
    side: &'static str,
    size: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
) -> Result<usize, EncodingError> {
    // With more padding than that, whole places would be of nothing.
    let padding_limit = kernel.saturating_sub(1).min(1 << 20);
    for (what, got, min, max) in
        [("the stride", stride, 1, 1 << 20), ("the padding", padding, 0, padding_limit)]
    {
        if !(min..=max).contains(&got) {
            let (got, min, max) = (got as u64, min as u64, max as u64);
            let remedy = "choose one within; padding stays below the kernel's size";
            return Err(OutOfRange { what, got, min, max, remedy }.into());
        }
    }
    let room = size.checked_add(2 * padding).and_then(|padded| padded.checked_sub(kernel));
    room.map(|room| room / stride + 1).ok_or(EncodingError::Kernel { side, size, padding, kernel })
}
