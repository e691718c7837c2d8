//! Files of ciphertexts, with checksums that match whatever they hold.
#![no_main]
use blindcore_fuzz::byte;
use blindcore_sum::file::{BLOCK, Reader, Writer};
use libfuzzer_sys::fuzz_target;

const DIGEST: usize = 32;

/// Puts right checksums where a reader will look for them.
fn mend(bytes: &mut [u8]) {
    let u32_at =
        |bytes: &[u8], at: usize| bytes.get(at..at + 4).map(|b| u32::from_le_bytes(b.try_into().unwrap()));
    let (Some(axes), Some(bits)) = (u32_at(bytes, 12), u32_at(bytes, 48)) else { return };
    let head = 88 + 8 * axes.min(8) as usize;
    if bytes.len() < head + DIGEST {
        return;
    }
    let digest = *blake3::Hasher::new_derive_key("blindcore sum ciphertexts v1")
        .update(&bytes[..head])
        .finalize()
        .as_bytes();
    bytes[head..head + DIGEST].copy_from_slice(&digest);
    let block = BLOCK * 8 * bits.div_ceil(32).min(128) as usize + DIGEST;
    for (i, chunk) in bytes[head + DIGEST..].chunks_mut(block.max(DIGEST + 1)).enumerate() {
        if chunk.len() > DIGEST {
            let (body, end) = chunk.split_at_mut(chunk.len() - DIGEST);
            let mut hasher = blake3::Hasher::new();
            hasher.update(&digest).update(&(i as u64).to_le_bytes()).update(body);
            end.copy_from_slice(hasher.finalize().as_bytes());
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let (how, data) = byte(data);
    let mut bytes = data.to_vec();
    if how & 1 == 0 {
        mend(&mut bytes);
    }
    let length = (how & 2 == 0).then_some(bytes.len() as u64);
    let Ok(mut reader) = Reader::new(&bytes[..], length) else { return };
    let header = reader.header().clone();
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    while let Ok(block) = reader.next_block() {
        match block {
            Some(numbers) => writer.write(&numbers).unwrap(),
            // What is read to its end has one form alone.
            None => return assert!(writer.finish().unwrap() == bytes),
        }
    }
});
