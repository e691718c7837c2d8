//! Instructions as words and as lines; the words are those of `hw/dv/benches/phepu.py`.

use blindcore_accel_rtl::phepu::compiler::Error;
use blindcore_accel_rtl::phepu::compiler::isa::{Method, Operation, Word};
use proptest::prelude::*;

/// Each instruction, its word and its line.
fn examples() -> Vec<(u16, Operation, u64, &'static str)> {
    let (serial, buckets) = (Method::BitSerial, Method::Buckets);
    vec![
        (0, Operation::End, 0, "end"),
        (
            0x00ff,
            Operation::LoadInput { slot: 3, count: 5, global: 0x1234 },
            0x100f_f000_0024_6853,
            "load input  pe 0-7  input 3..7  from word 4660",
        ),
        (
            0x8001,
            Operation::LoadWeights { word: 144, count: 72, global: 16000, regions: 2 },
            0x2800_1008_fa00_9090,
            "load weights  pe 0,15  words 144..215  from word 16000  region 1",
        ),
        (
            1 << 9,
            Operation::Store { slot: 1, tag: 0xdead_beef },
            0x3020_0001_bd5b_7ddf,
            "store  pe 9  output 1  as 3735928559",
        ),
        (
            0xffff,
            Operation::Context { digits: 16, width: 8, global: 49 },
            0x4fff_f000_0000_031a,
            "context  pe 0-15  16 digits  weights of 8 bits  from word 49",
        ),
        (
            0x00ff,
            Operation::Free { slots: 0xf0, regions: 1 },
            0x800f_f000_0001_00f0,
            "free  pe 0-7  input 4-7  region 0",
        ),
        (1, Operation::Clear { sum: 2, all: false }, 0x9000_1000_0000_0002, "clear  pe 0  sum 2"),
        (1, Operation::Clear { sum: 0, all: true }, 0x9000_1000_0000_0004, "clear  pe 0  all terms"),
        (
            0x00ff,
            Operation::Accumulate { sum: 0, slot: 3, count: 5, weight: 40, method: serial, delta: 0 },
            0xa00f_f000_0001_414c,
            "accumulate  pe 0-7  sum 0  input 3..7  weights 40..44",
        ),
        (
            0xffff,
            Operation::Accumulate { sum: 0, slot: 8, count: 4, weight: 9212, method: buckets, delta: 4 },
            0xafff_f000_491f_e120,
            "accumulate  pe 0-15  sum 0  input 8..11  weights 9212..9215  buckets, inverses 4 on",
        ),
        (0xf00f, Operation::Align { sum: 3 }, 0xbf00_f000_0000_0003, "align  pe 0-3,12-15  sum 3"),
        (2, Operation::Invert { sum: 1 }, 0xc000_2000_0000_0001, "invert  pe 1  sum 1"),
        (
            0x10,
            Operation::Reduce { sum: 1, slot: 1, method: serial, chain: false, shift: 0, last: true },
            0xd001_0000_0000_0205,
            "reduce  pe 4  sum 1  output 1",
        ),
        (
            0xffff,
            Operation::Reduce { sum: 0, slot: 1, method: buckets, chain: true, shift: 4, last: false },
            0xdfff_f000_0000_009c,
            "reduce  pe 0-15  sum 0  output 1  buckets  onto its 2^4th power  more follows",
        ),
        (
            0xffff,
            Operation::Multiply { to: 16, x: 0, y: 32 },
            0xefff_f000_0002_0010,
            "multiply  pe 0-15  term 0 = input 0 by R^2",
        ),
        (
            1,
            Operation::Square { to: 24, x: 25, times: 2048 },
            0xe000_1200_2000_0658,
            "square  pe 0  output 0 = output 1  2048 times",
        ),
        (
            3,
            Operation::Power { to: 24, x: 1, word: 17, bits: 4096, steady: true },
            0xe000_3580_0044_0058,
            "power  pe 0-1  output 0 = input 1  to 4096 bits at word 17  steady",
        ),
        (
            0x8000,
            Operation::Inverse { to: 23, x: 16 },
            0xe800_0600_0000_0417,
            "inverse  pe 15  term 7 = term 0",
        ),
        (0, Operation::Nop, 15 << 60, "nop"),
    ]
}

#[test]
fn every_instruction_is_the_word_that_the_hardware_benches_make() {
    for (mask, operation, word, line) in examples() {
        let instruction = Word { mask, operation };
        assert_eq!(instruction.encode(), Ok(word), "{line}: {:#x}", instruction.encode().unwrap());
        assert_eq!(Word::decode(word), Ok(instruction));
        assert_eq!(instruction.to_string(), line);
    }
}

#[test]
fn what_no_field_carries_is_refused() {
    let refused = |operation| Word::new(1, operation).encode().unwrap_err().to_string();
    assert_eq!(
        refused(Operation::LoadInput { slot: 16, count: 1, global: 0 }),
        "the slot is 16, where 0 to 15 are carried; give what the instruction's field carries"
    );
    assert!(refused(Operation::LoadInput { slot: 0, count: 0, global: 0 }).contains("ciphertexts is 0"));
    let load = |word, count, regions| Operation::LoadWeights { word, count, global: 0, regions };
    assert!(refused(load(512, 1, 0)).contains("the word is 512"));
    assert!(refused(load(0, 289, 0)).contains("289, where 1 to 288"));
    assert!(refused(load(0, 1, 4)).contains("the regions is 4"));
    assert!(refused(Operation::Store { slot: 2, tag: 0 }).contains("the slot is 2"));
    let context = |digits, width| Operation::Context { digits, width, global: 0 };
    assert!(refused(context(12, 8)).contains("digits is 12, where 4, 8 and 16"));
    assert!(refused(context(4, 1)).contains("a weight is 1, where 2, 4 and 8"));
    assert!(refused(Operation::Align { sum: 4 }).contains("the partial sum is 4"));
    assert!(refused(Operation::Multiply { to: 15, x: 0, y: 0 }).contains("a result is 15, where 16 to 25"));
    assert!(refused(Operation::Multiply { to: 26, x: 0, y: 0 }).contains("a result is 26"));
    assert!(refused(Operation::Square { to: 16, x: 0, times: 0 }).contains("squarings is 0"));
    let power = |bits| Operation::Power { to: 16, x: 0, word: 0, bits, steady: false };
    assert!(refused(power(4097)).contains("exponent is 4097, where 1 to 4096"));
}

#[test]
fn what_is_no_instruction_is_refused() {
    let why = |word| match Word::decode(word).unwrap_err() {
        Error::Word { why, .. } => why.to_string(),
        other => other.to_string(),
    };
    for opcode in 5..8 {
        assert_eq!(why(opcode << 60), "has an opcode that is none");
    }
    assert_eq!(why(14 << 60 | 4 << 41), "is not a basic operation");
    assert_eq!(why(4 << 60 | 3), "has no such number of digits");
    assert_eq!(why(4 << 60 | 3 << 2), "has no such width of weights");
    assert_eq!(why(1), "sets a bit that means nothing"); // END
    assert_eq!(why(11 << 60 | 4), "sets a bit that means nothing");
    assert!(why(1 << 60).contains("ciphertexts is 0, where 1 to 16"));
    assert_eq!(
        Word::decode(5 << 60).unwrap_err().to_string(),
        "instruction 0x5000000000000000 has an opcode that is none; give what Word::encode makes"
    );
}

fn operations() -> impl Strategy<Value = Operation> {
    let method = || any::<bool>().prop_map(|b| if b { Method::Buckets } else { Method::BitSerial });
    let (to, place) = (|| 16..26u8, || 0..64u8);
    prop_oneof![
        Just(Operation::End),
        (0..16u8, 1..17u8, any::<u16>()).prop_map(|(slot, count, global)| Operation::LoadInput {
            slot,
            count,
            global
        }),
        (0..512u16, 1..289u16, any::<u16>(), 0..4u8).prop_map(|(word, count, global, regions)| {
            Operation::LoadWeights { word, count, global, regions }
        }),
        (0..2u8, any::<u32>()).prop_map(|(slot, tag)| Operation::Store { slot, tag }),
        (0..3u32, 1..4u32, any::<u16>()).prop_map(|(d, w, global)| Operation::Context {
            digits: 4 << d,
            width: 1 << w,
            global
        }),
        (any::<u16>(), 0..4u8).prop_map(|(slots, regions)| Operation::Free { slots, regions }),
        (0..4u8, any::<bool>()).prop_map(|(sum, all)| Operation::Clear { sum, all }),
        (0..4u8, 0..16u8, 1..17u8, any::<u16>(), method(), 0..16u8).prop_map(
            |(sum, slot, count, weight, method, delta)| Operation::Accumulate {
                sum,
                slot,
                count,
                weight,
                method,
                delta
            }
        ),
        (0..4u8).prop_map(|sum| Operation::Align { sum }),
        (0..4u8).prop_map(|sum| Operation::Invert { sum }),
        (0..4u8, 0..2u8, method(), any::<bool>(), 0..16u8, any::<bool>()).prop_map(
            |(sum, slot, method, chain, shift, last)| Operation::Reduce {
                sum,
                slot,
                method,
                chain,
                shift,
                last
            }
        ),
        (to(), place(), place()).prop_map(|(to, x, y)| Operation::Multiply { to, x, y }),
        (to(), place(), 1..8192u16).prop_map(|(to, x, times)| Operation::Square { to, x, times }),
        (to(), place(), 0..512u16, 1..4097u16, any::<bool>())
            .prop_map(|(to, x, word, bits, steady)| Operation::Power { to, x, word, bits, steady }),
        (to(), place()).prop_map(|(to, x)| Operation::Inverse { to, x }),
        Just(Operation::Nop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn words_come_back(mask in any::<u16>(), operation in operations()) {
        let word = Word { mask, operation };
        prop_assert_eq!(Word::decode(word.encode().unwrap()), Ok(word));
        prop_assert!(!word.to_string().is_empty());
    }

    #[test]
    fn any_bits_are_an_instruction_that_encodes_to_them_or_none(opcode in 0..16u64, bits in any::<u64>(), few in 0..64u32) {
        // Few operand bits set, so that some are instructions.
        let word = opcode << 60 | (bits & (u64::MAX >> 4)) & (u64::MAX >> few);
        if let Ok(decoded) = Word::decode(word) {
            prop_assert_eq!(decoded.encode(), Ok(word));
        }
    }
}
