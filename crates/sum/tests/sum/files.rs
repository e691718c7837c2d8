//! The file of ciphertexts: round trips, a golden file, and every way of damaging one.

use std::path::PathBuf;
use std::sync::LazyLock;

use blindcore_accel::Device;
use blindcore_accel::bigmod::Numbers;
use blindcore_accel_cpu::Cpu;
use blindcore_files::header::Seal;
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::{Bound, Encoding, Form, Plaintexts};
use blindcore_sum::evaluate::Evaluator;
use blindcore_sum::file::{self, BLOCK, FileError, Header, Reader, Writer};
use blindcore_sum::keys::{KeySize, Mode, SecretKey};
use blindcore_sum::packing::{Packed, Packing};
use blindcore_sum::scheme::Decryptor;
use proptest::prelude::*;

static DEVICE: LazyLock<Device> = LazyLock::new(|| Cpu::with_threads("cpu", 1).unwrap());
static SECRET: LazyLock<SecretKey> =
    LazyLock::new(|| SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::Textbook).unwrap());
static EVALUATOR: LazyLock<Evaluator> = LazyLock::new(|| Evaluator::new(SECRET.public(), &DEVICE).unwrap());

fn packed_batch() -> Ciphertexts {
    let packing = Packing::new(512, 20, 4).unwrap();
    let values = ndarray::Array2::from_shape_fn((6, 3), |(i, j)| 10 * i as i64 - 7 * j as i64);
    let encoding = Encoding::new(-2, Bound::new(1 << 15)).unwrap();
    let plaintexts = Plaintexts::pack_integers(SECRET.public(), &values, encoding, packing).unwrap();
    Ciphertexts::encrypt(EVALUATOR.encryptor(), &plaintexts).unwrap()
}

fn bytes(batch: &Ciphertexts) -> Vec<u8> {
    file::write(Vec::new(), batch, EVALUATOR.encryptor()).unwrap()
}

fn read(bytes: &[u8]) -> Result<Ciphertexts, FileError> {
    Reader::new(bytes, Some(bytes.len() as u64))?.read_all(EVALUATOR.encryptor())
}

fn refusal(bytes: &[u8]) -> String {
    match read(bytes) {
        Ok(_) => panic!("it was not refused"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn a_batch_comes_back() {
    let batch = packed_batch();
    let written = bytes(&batch);
    assert_eq!(written.len(), 88 + 2 * 8 + 32 + 6 * 128 + 32, "as the table in the documentation says");
    let back = read(&written).unwrap();
    assert_eq!(back.form(), batch.form());
    let numbers = back.numbers(EVALUATOR.encryptor()).unwrap();
    assert!(numbers == batch.numbers(EVALUATOR.encryptor()).unwrap());
    let decryptor = Decryptor::new(&SECRET, &DEVICE).unwrap();
    let plaintexts = Plaintexts::decrypt(&decryptor, &numbers, back.form()).unwrap();
    let want: Vec<i64> = (0..6).flat_map(|i| (0..3).map(move |j| 10 * i - 7 * j)).collect();
    assert_eq!(plaintexts.to_i64().unwrap(), want);
    let empty = batch.slice(1, 0..0).unwrap();
    assert_eq!(read(&bytes(&empty)).unwrap().form(), empty.form());
}

/// Numbers that any file may hold, for a header of this many.
fn numbers(header: &Header, first: usize, count: usize) -> Numbers {
    let mut out = Numbers::zeroed(count, header.words());
    for i in 0..count {
        let number = out.get_mut(i);
        number[0] = (first + i) as u64;
        *number.last_mut().unwrap() = 0x0123_4567_89ab_cdef ^ (first + i) as u64;
    }
    out
}

fn golden_header() -> Header {
    let packed = Some(Packed { packing: Packing::new(100, 9, 5).unwrap(), samples: 8 });
    let form = Form { exponent: -3, scale: 0, bound: Bound::new(200), packed, shape: vec![2, 3] };
    let id = std::array::from_fn(|i| 7 * i as u8);
    Header { key: blindcore_sum::keys::KeyId::from_bytes(id), key_bits: 100, form }
}

#[test]
fn the_golden_file_of_version_1_is_read_and_written() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/golden/sum-ciphertexts/all-fields-1.ct");
    let header = golden_header();
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    writer.write(&numbers(&header, 0, 6)).unwrap();
    let written = writer.finish().unwrap();
    if std::env::var_os("BLINDCORE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let golden = std::fs::read(&path).unwrap();
    assert_eq!(written, golden, "what is written has changed: a new version needs a golden file of its own");
    let mut reader = Reader::new(&golden[..], None).unwrap();
    assert_eq!(*reader.header(), header);
    assert!(reader.next_block().unwrap().unwrap() == numbers(&header, 0, 6));
    assert!(reader.next_block().unwrap().is_none());
}

#[test]
fn long_files_go_through_block_by_block() {
    let header = Header {
        form: Form { packed: None, shape: vec![2 * BLOCK + 5], ..golden_header().form },
        ..golden_header()
    };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut written = 0;
    for part in [1, BLOCK - 2, 0, BLOCK + 5, 1] {
        writer.write(&numbers(&header, written, part)).unwrap();
        written += part;
    }
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes.len() as u64, header.file_bytes().unwrap());
    let mut reader = Reader::new(&bytes[..], Some(bytes.len() as u64)).unwrap();
    let mut at = 0;
    while let Some(block) = reader.next_block().unwrap() {
        assert!(block == numbers(&header, at, block.len()));
        at += block.len();
    }
    assert_eq!(at, written);

    // Blocks that change places are noticed, as is one of another file.
    let block = BLOCK * 8 * header.words() + 32;
    let start = bytes.len() - 2 * block - (5 * 8 * header.words() + 32);
    let mut swapped = bytes.clone();
    let (first, second) = swapped[start..].split_at_mut(block);
    first.swap_with_slice(&mut second[..block]);
    let mut reader = Reader::new(&swapped[..], None).unwrap();
    let text = reader.next_block().err().unwrap().to_string();
    assert_eq!(
        text,
        format!("the block of ciphertexts 0 to {} does not match its checksum; copy it again", BLOCK - 1)
    );

    let mut short = Writer::new(Vec::new(), &header).unwrap();
    short.write(&numbers(&header, 0, 3)).unwrap();
    let text = short.finish().err().unwrap().to_string();
    assert_eq!(text, "3 ciphertexts were written where the header says 2053");
    let mut long = Writer::new(Vec::new(), &golden_header()).unwrap();
    let text = long.write(&numbers(&header, 0, 7)).err().unwrap().to_string();
    assert_eq!(text, "7 ciphertexts were written where the header says 6");
}

#[test]
fn a_header_that_claims_too_much_takes_no_memory() {
    let shapes = [vec![usize::MAX], vec![1 << 40, 1 << 40], vec![1 << 60], vec![1; 9], vec![]];
    for shape in shapes {
        let header = Header { form: Form { packed: None, shape, ..golden_header().form }, ..golden_header() };
        let text = Writer::new(Vec::new(), &header).err().unwrap().to_string();
        assert!(text.contains("its header says a number of"), "{text}");
    }
    // A trillion are a file like any other, until its length is looked at or its first block is read.
    let form = Form { packed: None, shape: vec![1 << 40], ..golden_header().form };
    let header = Header { form, ..golden_header() };
    let mut start = Vec::new();
    Writer::new(&mut start, &header).unwrap();
    let text = Reader::new(&start[..], Some(start.len() as u64)).err().unwrap().to_string();
    assert!(text.contains(&format!("it has {} bytes where its header says", start.len())), "{text}");
    let text = Reader::new(&start[..], None).unwrap().next_block().err().unwrap().to_string();
    assert_eq!(text, "it ends within a block; copy it again");
}

#[test]
fn forged_headers_are_refused_and_never_a_panic() {
    let key = SECRET.public();
    let decryptor = Decryptor::new(&SECRET, &DEVICE).unwrap();
    let plain = Form { exponent: 0, scale: 0, bound: Bound::new(7), packed: None, shape: vec![0] };
    let packed = Some(Packed { packing: Packing::new(512, 20, 4).unwrap(), samples: 0 });
    let huge = Some(Packed { packing: Packing::new(512, 20, 4).unwrap(), samples: usize::MAX });
    let far = Bound::scaled(1 << 63, u32::MAX);
    for (form, word) in [
        (Form { exponent: i32::MIN, ..plain.clone() }, "exponent of -2147483648"),
        (Form { bound: far, ..plain.clone() }, "what was declared could reach"),
        (
            Form { shape: vec![0, 1 << 63, 1 << 63], ..plain.clone() },
            "to over the limit of 1152921504606846975; make one of shorter axes",
        ),
        (
            Form { shape: vec![0, 1, 1 << 40, 1 << 40], ..plain.clone() },
            "to over the limit of 1152921504606846975; make one of shorter axes",
        ),
        (
            Form { packed, shape: vec![0, 1 << 63, 1 << 63], ..plain.clone() },
            "to over the limit of 1152921504606846975; make one of shorter axes",
        ),
        (Form { packed: huge, shape: vec![1 << 62, 0, 8], ..plain.clone() }, ""),
        (Form { shape: vec![usize::MAX, 0], ..plain.clone() }, "[18446744073709551615, 0] has axes"),
        (Form { shape: vec![1 << 62, 0, 3], ..plain.clone() }, "shorter axes"),
        (Form { shape: vec![0, 1 << 32, 1 << 32, 3], ..plain.clone() }, "shorter axes"),
    ] {
        let header = Header { key: key.id(), key_bits: key.bits(), form: form.clone() };
        let bytes = Writer::new(Vec::new(), &header).unwrap().finish().unwrap();
        let text = refusal(&bytes);
        assert!(text.contains(word), "{text}");
        // Who reads headers alone, as decryption does of an empty file, is told too.
        if word.contains("axes") {
            let text = Reader::new(&bytes[..], None).err().unwrap().to_string();
            assert!(text.contains(word), "{text}");
        }
        assert!(form.bound.bits() >= 3);
        let numbers = Numbers::zeroed(0, key.ciphertext_words());
        assert!(Plaintexts::decrypt(&decryptor, &numbers, &form).is_err());
    }
}

/// What a person may have named in its place is said by its kind: its bytes may be numbers in the clear.
#[test]
fn numbers_in_the_clear_are_not_shown() {
    for (bytes, kind) in [
        (&b"3\n-4\n5\n"[..], "text"),
        (b"{\"v\": \"123\", \"e\": 0}", "names that end in .jsonl"),
        (b"bcsumsec 71", "a key"),
        (b"\x93NUMPY\x01\0 71", "an NPY file"),
        (b"PAR1\0\0 71", "a Parquet file"),
        (b"\xff\xfe71\0\0\0\0\0", "something else"),
        (b"", "empty"),
    ] {
        let text = refusal(bytes);
        assert!(
            text.starts_with(&format!("it is not a file of ciphertexts but {kind}")) || text.contains(kind),
            "{text}"
        );
        assert!(!["-4", "123", "71"].iter().any(|shown| text.contains(shown)), "{text}");
    }
}

#[test]
fn a_forged_bound_is_refused_in_words() {
    let mut forged = bytes(&packed_batch());
    let axes = u32::from_le_bytes(*forged[12..].first_chunk().unwrap()) as usize;
    forged.truncate(88 + 8 * axes);
    forged[56..64].copy_from_slice(&5u64.to_le_bytes());
    forged[64..68].copy_from_slice(&7u32.to_le_bytes());
    Seal::In("blindcore sum ciphertexts v1").close(&mut forged);
    let text = refusal(&forged);
    assert!(
        text.starts_with("its header says that numbers are up to 5 x 2^7,") && text.contains("2^63 or more"),
        "{text}"
    );
    assert!(text.contains("encrypted or computed again"), "{text}");
}

#[test]
fn what_is_no_such_file_is_refused_in_words() {
    let good = bytes(&packed_batch());
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        refusal(&bytes)
    };
    assert!(refusal(b"").contains("it is not a file of ciphertexts"));
    assert!(refusal(b"{\"v\": \"123\", \"e\": 0}").contains("it is not a file of ciphertexts"));
    assert!(refusal(&good[..50]).contains("it ends within its header"));
    assert!(with(8, 2).contains("it has version 2 where 1 is known"));
    assert!(with(12, 9).contains("a number of axes of 9, outside 1 to 8"));
    assert!(with(20, !good[20]).contains("its header does not match its checksum"));
    assert!(with(good.len() - 1, !good[good.len() - 1]).contains("the block of ciphertexts 0 to 5"));
    assert!(refusal(&good[..good.len() - 1]).contains("bytes where its header says"));
    assert!(refusal(&[&good[..], &[0]].concat()).contains("bytes where its header says"));
    // Of a stream no more is known than that something follows.
    let longer = [&good[..], b"abcdef\n"].concat();
    let text =
        Reader::new(&longer[..], None).unwrap().read_all(EVALUATOR.encryptor()).err().unwrap().to_string();
    let want = format!("it has more than {0} bytes where its header says {0}; copy it again", good.len());
    assert_eq!(text, want);
    // A header of the key's name and of another length.
    let form = Form { packed: None, shape: vec![0], ..golden_header().form };
    let header = Header { key: SECRET.public().id(), key_bits: 1024, form };
    let forged = Writer::new(Vec::new(), &header).unwrap().finish().unwrap();
    let text = refusal(&forged);
    assert!(
        text.starts_with("its header says that the key has 1024 bits, and it has 512; it was not"),
        "{text}"
    );
    let other = SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::Textbook).unwrap();
    let other = Evaluator::new(other.public(), &DEVICE).unwrap();
    let text = Reader::new(&good[..], None).unwrap().read_all(other.encryptor()).err().unwrap().to_string();
    assert!(text.contains("the file is under key") && text.contains("encrypt under that key"), "{text}");
}

#[test]
fn numbers_that_are_no_ciphertexts_are_refused_by_position() {
    let key = SECRET.public();
    let form = Form { exponent: 0, scale: 0, bound: Bound::new(1), packed: None, shape: vec![BLOCK + 3] };
    let header = Header { key: key.id(), key_bits: key.bits(), form };
    let mut good = Numbers::zeroed(BLOCK + 3, key.ciphertext_words());
    (0..good.len()).for_each(|i| good.get_mut(i)[0] = 1);
    for bad in [vec![0], key.n().to_vec(), key.modulus().value().to_vec()] {
        let mut numbers = good.clone();
        let at = numbers.get_mut(BLOCK + 1);
        at.fill(0);
        at[..bad.len()].copy_from_slice(&bad);
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        writer.write(&numbers).unwrap();
        let text = refusal(&writer.finish().unwrap());
        assert!(
            text.contains(&format!("in the block from ciphertext {BLOCK} on")) && text.contains('1'),
            "{text}"
        );
    }
}

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| bytes(&packed_batch()));

proptest! {
    #[test]
    fn a_damaged_file_is_never_loaded(at: prop::sample::Index, bit in 0u8..8, cut: prop::sample::Index, tail in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut flipped = GOOD.clone();
        flipped[at.index(GOOD.len())] ^= 1 << bit;
        prop_assert!(read(&flipped).is_err());
        let cut = &GOOD[..cut.index(GOOD.len())];
        prop_assert!(read(cut).is_err());
        let joined = [cut, &tail[..]].concat();
        if joined != *GOOD {
            prop_assert!(read(&joined).is_err());
        }
    }
}
