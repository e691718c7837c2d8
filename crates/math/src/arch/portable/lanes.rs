//! Words of few bits or bytes.

/// The word of `width` bits that begins at a bit.
fn word(bytes: &[u8], width: u32, bit: usize) -> u64 {
    debug_assert!(width <= u64::BITS - 7, "eight bytes have room, wherever in one it begins");
    let from = bytes.get(bit / 8..).unwrap_or_default();
    let eight = match from.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => {
            let mut eight = [0; 8];
            eight[..from.len()].copy_from_slice(from);
            u64::from_le_bytes(eight)
        }
    };
    eight >> (bit % 8) & (u64::MAX >> (64 - width))
}

pub(crate) fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) {
    out.iter_mut().enumerate().for_each(|(i, out)| *out = word(bytes, width, i * width as usize));
}

pub(crate) fn unpack_short(bytes: &[u8], width: u32, out: &mut [u16]) {
    out.iter_mut().enumerate().for_each(|(i, out)| *out = word(bytes, width, i * width as usize) as u16);
}

pub(crate) fn largest(bytes: &[u8], width: u32) -> u64 {
    let whole = 8 * bytes.len() / width as usize;
    (0..whole).map(|i| word(bytes, width, i * width as usize)).max().unwrap_or(0)
}

/// Written so that the compiler vectorises it for whichever instruction set it is inlined into.
#[inline(always)]
pub(crate) fn centre(q: u64, bits: u32, lanes: &[u16], out: &mut [u64]) {
    let (mask, negative) = ((1 << bits) - 1, q - (1 << bits));
    for (out, lane) in out.iter_mut().zip(lanes) {
        let number = u64::from(*lane) & mask;
        *out = number.wrapping_add((number >> (bits - 1)).wrapping_neg() & negative);
    }
}

pub(crate) fn store(values: &[u64], bytes: usize, run: usize, out: &mut [u8], step: usize) {
    for (out, values) in out.chunks_mut(step).zip(values.chunks(run)) {
        for (out, value) in out.chunks_exact_mut(bytes).zip(values) {
            out.copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
    }
}
