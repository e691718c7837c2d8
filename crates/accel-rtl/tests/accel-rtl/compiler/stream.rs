//! Streams on the chips' model against plain convolutions and matrix products, against programs, and broken ones.
#![expect(clippy::print_stdout, reason = "a test that counts prints its figures under --nocapture")]

use blindcore_accel_rtl::phepu::compiler::isa::{Operation, Word};
use blindcore_accel_rtl::phepu::compiler::{
    Assignment, Body, Buffers, Convolution, Dataflow, Error, Execution, Fault, GlobalBuffers, Group,
    IntegersModulo, Machine, PACKET_INSTRUCTIONS, Pace, Packet, Programs, QUEUED_INSTRUCTIONS, Stream, Task,
    Work, interpret,
};
use proptest::prelude::*;

use super::common::{Modulo15, PRIME, Random, bits_and_weights, convolution, matrix, shape, weights};

const BOTH: [Dataflow; 2] = [Dataflow::BitSerial, Dataflow::Buckets];
const GROUP: IntegersModulo = IntegersModulo(PRIME);

fn compile(task: Task, machine: Machine) -> Programs {
    Programs::compile(Assignment::search(task, machine).unwrap()).unwrap()
}

fn phepu(chips: usize) -> Machine {
    Machine::phepu(chips, 4096).unwrap()
}

/// Residues as a dataflow wants them.
fn residues(inputs: &[u64], dataflow: Dataflow) -> Vec<u64> {
    match dataflow {
        Dataflow::BitSerial => inputs.to_vec(),
        Dataflow::Buckets => inputs.iter().flat_map(|x| [*x, GROUP.invert(x).unwrap()]).collect(),
    }
}

/// Outputs in the task's order, the same at both paces, and what was done.
fn execute(stream: &Stream, inputs: &[u64], dataflow: Dataflow) -> (Vec<u64>, Execution<u64>) {
    let residues = residues(inputs, dataflow);
    let eager = stream.execute(&residues, &GROUP, Pace::Eager).unwrap();
    assert_eq!(eager, stream.execute(&residues, &GROUP, Pace::Lazy).unwrap());
    assert!(eager.elements.iter().all(|element| element.fault.is_none()));
    assert!(eager.outputs.keys().copied().eq(0..eager.outputs.len() as u32));
    (eager.outputs.values().map(|output| output.unwrap()).collect(), eager)
}

/// Instructions of a chip, in order, without those that fill packets up.
fn instructions(stream: &Stream, chip: usize) -> Vec<Word> {
    let mut words = Vec::new();
    for packet in stream.packets.iter().filter(|packet| packet.chips >> chip & 1 == 1) {
        if let Body::Instructions(instructions) = &packet.body {
            words.extend(instructions.iter().map(|word| Word::decode(*word).unwrap()));
        }
    }
    words.retain(|word| word.operation != Operation::Nop);
    words
}

/// What holds for every stream that is lowered.
fn check_form(stream: &Stream, global: GlobalBuffers) {
    for packet in &stream.packets {
        assert!(packet.chips != 0 && u64::from(packet.chips) >> stream.chips == 0);
        let words = packet.words(stream.digits) as u32;
        match &packet.body {
            Body::Instructions(instructions) => {
                assert!(packet.after == 0 && instructions.len() % 4 == 0);
                assert!((1..=PACKET_INSTRUCTIONS).contains(&instructions.len()));
            }
            Body::Inputs { address, .. } => assert!(words > 0 && address + words <= global.input_words),
            Body::Weights { address, .. } => assert!(words > 0 && address + words <= global.weight_words),
            Body::Context { address } => assert_eq!(*address, 0),
        }
    }
    for chip in 0..stream.chips {
        let words = instructions(stream, chip);
        assert!(matches!(words[0].operation, Operation::Context { .. }));
        assert_eq!(words.last().unwrap().operation, Operation::End);
        // All that was claimed has been freed, so another stream may follow.
        let (mut slots, mut regions) = ([0u16; 16], [0u8; 16]);
        for Word { mask, operation } in words {
            for element in (0..16).filter(|element| mask >> element & 1 == 1) {
                match operation {
                    Operation::LoadInput { slot, count, .. } => {
                        slots[element] |= (((1u32 << count) - 1) << slot) as u16;
                    }
                    Operation::LoadWeights { regions: claimed, .. } => regions[element] |= claimed,
                    Operation::Free { slots: s, regions: r } => {
                        assert_eq!(
                            (slots[element] & s, regions[element] & r),
                            (s, r),
                            "frees what is claimed"
                        );
                        (slots[element], regions[element]) = (slots[element] & !s, regions[element] & !r);
                    }
                    _ => {}
                }
            }
        }
        assert_eq!((slots, regions), ([0; 16], [0; 16]));
    }
}

/// PH-EPU or a smaller one.
fn machine() -> impl Strategy<Value = Machine> {
    let bits = prop::sample::select(vec![1024usize, 2048, 4096]);
    (1..9usize, 1..17usize, bits, 0..3u8, 4..17usize).prop_map(|(chips, elements, bits, size, slots)| {
        let ciphertext = bits / 8;
        let buffers = Buffers {
            ciphertext_bits: bits,
            weight_bytes: [9 << 10, 64, 192][size as usize],
            input_bytes: if size == 0 { 16 } else { slots } * ciphertext,
            output_bytes: if size == 1 { 1 } else { 2 } * ciphertext,
            terms: 8,
        };
        Machine::chips(chips, elements, buffers).unwrap()
    })
}

/// The chip's buffers, or an input buffer of few ciphertexts.
fn global() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![Just(None), (1..40u32).prop_map(Some)]
}

fn sized(frames: Option<u32>, machine: &Machine) -> GlobalBuffers {
    let words = machine.buffers().unwrap().ciphertext_cycles() as u32;
    match frames {
        None => GlobalBuffers::PHEPU,
        Some(frames) => GlobalBuffers { input_words: frames * words, ..GlobalBuffers::PHEPU },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn convolutions_are_right(
        shape in shape(), machine in machine(), frames in global(), (bits, kind, seed) in bits_and_weights(),
    ) {
        let mut random = Random(seed);
        let task = Task::convolution(shape, bits).unwrap();
        let (weights, image) = (weights(&task, kind, &mut random), random.residues(task.inputs()));
        let (programs, global) = (compile(task, machine), sized(frames, &machine));
        let expected = convolution(&shape, &weights, &image);
        for dataflow in BOTH {
            let stream = Stream::lower_into(global, &programs, &weights, None, dataflow).unwrap();
            check_form(&stream, global);
            let (outputs, execution) = execute(&stream, &image, dataflow);
            prop_assert_eq!(&outputs, &expected);
            prop_assert_eq!(stream.work().unwrap(), execution.work);
            if dataflow == Dataflow::BitSerial {
                let run = interpret(&programs, &weights, &image, &GROUP).unwrap();
                prop_assert_eq!(&outputs, &run.outputs);
                check_work(&execution.work, &run.total, task.outputs());
            } else {
                prop_assert_eq!(execution.work.inversions, 0);
            }
        }
    }

    #[test]
    fn matrix_products_are_right(
        (rows, terms, columns) in (1..9usize, 1..90usize, 1..9usize), machine in machine(), frames in global(),
        (bits, kind, seed) in bits_and_weights(), shared in 1..100usize,
    ) {
        let mut random = Random(seed);
        let task = Task::matrix(rows, terms, columns, bits).unwrap();
        let weights = weights(&task, kind, &mut random);
        // Inputs of the task that are one residue.
        let all = random.residues(shared);
        let sources: Vec<u32> = (0..task.inputs()).map(|_| (random.next() % shared as u64) as u32).collect();
        let inputs: Vec<u64> = sources.iter().map(|source| all[*source as usize]).collect();
        let (programs, global) = (compile(task, machine), sized(frames, &machine));
        for dataflow in BOTH {
            let stream = Stream::lower_into(global, &programs, &weights, Some(&sources), dataflow).unwrap();
            check_form(&stream, global);
            let (outputs, _) = execute(&stream, &all, dataflow);
            prop_assert_eq!(&outputs, &matrix([rows, terms, columns], &weights, &inputs));
        }
    }

    /// Whatever is changed in a stream is found out, or changes what comes of it, or nothing at all; nothing panics.
    #[test]
    fn changed_streams_never_panic(
        shape in shape(), machine in machine(), (bits, kind, seed) in bits_and_weights(),
        at in any::<prop::sample::Index>(), word in any::<prop::sample::Index>(), bit in 0..64u32, number in any::<u32>(),
        what in 0..5u8,
    ) {
        let mut random = Random(seed);
        let task = Task::convolution(shape, bits).unwrap();
        let (weights, image) = (weights(&task, kind, &mut random), random.residues(task.inputs()));
        let dataflow = BOTH[seed as usize % 2];
        let mut stream = Stream::lower(&compile(task, machine), &weights, None, dataflow).unwrap();
        let at = at.index(stream.packets.len());
        match what {
            0 => drop(stream.packets.remove(at)),
            1 => stream.packets[at].chips ^= 1 << (number % 32),
            2 => stream.packets[at].after = number >> (number % 32),
            _ => match &mut stream.packets[at].body {
                Body::Instructions(words) => { let at = word.index(words.len()); words[at] ^= 1 << bit; }
                Body::Inputs { address, inputs } => if what == 3 { *address = number } else { inputs[0] = number },
                Body::Weights { address, .. } | Body::Context { address } => *address = number >> (number % 32),
            }
        }
        let residues = residues(&image, dataflow);
        let _ = stream.to_string();
        for pace in [Pace::Eager, Pace::Lazy] {
            let _ = stream.execute(&residues, &GROUP, pace);
        }
    }
}

/// What a stream's elements did is what those of the programs did.
fn check_work(work: &Work, total: &blindcore_accel_rtl::phepu::compiler::Counts, outputs: usize) {
    assert_eq!(
        (
            work.multiplications,
            work.squarings,
            work.inversions,
            work.conversions,
            work.reductions,
            work.zero_bits
        ),
        (
            total.multiplications,
            total.squarings,
            total.inversions,
            total.conversions,
            total.reductions,
            total.skipped
        )
    );
    // Each output takes its first factor over.
    assert_eq!(work.copies, total.moves + outputs as u64);
}

/// One output of three terms, instruction by instruction.
#[test]
fn a_small_stream_is_as_told() {
    let task = Task::matrix(1, 3, 1, 4).unwrap();
    let stream = Stream::lower(&compile(task, phepu(1)), &[3, -2, 0], None, Dataflow::BitSerial).unwrap();
    let expected = "\
; 16 digits, weights of 4 bits, 1 chip
chip 0: context to words 0..48
chip 0: weights to words 49..49
chip 0: inputs 0..2 to words 0..47
chip 0: 12 instructions
       0  context  pe 0  16 digits  weights of 4 bits  from word 0
       1  load weights  pe 0  words 0  from word 49  region 0
       2  load input  pe 0  input 0..2  from word 0
       3  clear  pe 0  sum 0
       4  accumulate  pe 0  sum 0  input 0..2  weights 0..2
       5  free  pe 0  input 0-2  region 0
       6  align  pe 0  sum 0
       7  invert  pe 0  sum 0
       8  reduce  pe 0  sum 0  output 0
       9  store  pe 0  output 0  as 0
      10  end
      11  nop
";
    assert_eq!(stream.to_string(), expected);
    let Body::Weights { words, .. } = &stream.packets[1].body else { panic!("weights come second") };
    assert_eq!(words, &[[0x0e3, 0, 0, 0]]);
    assert_eq!(execute(&stream, &[1000, 10, 7], Dataflow::BitSerial).0, [2980]);

    // Buckets: 3 of 4 bits is one digit; -2 takes the inverse.
    let stream = Stream::lower(&compile(task, phepu(1)), &[3, -2, 0], None, Dataflow::Buckets).unwrap();
    let listing = stream.to_string();
    for line in [
        "inputs 0 2 4 to words 0..47",
        "inputs 1 3 5 to words 48..95",
        "load input  pe 0  input 0..2  from word 0",
        "load input  pe 0  input 4..6  from word 48",
        "clear  pe 0  all terms",
        "accumulate  pe 0  sum 0  input 0..2  weights 0..2  buckets, inverses 4 on",
        "free  pe 0  input 0-2,4-6  region 0",
        "reduce  pe 0  sum 0  output 0  buckets",
    ] {
        assert!(listing.contains(line), "{line} is not in\n{listing}");
    }
    assert_eq!(execute(&stream, &[1000, 10, 7], Dataflow::Buckets).0, [2980]);
}

/// Every weight of 2, 4 and 8 bits.
#[test]
fn digits_are_exact() {
    for bits in [2, 4, 8] {
        let weights: Vec<i64> = (-(1 << (bits - 1))..1 << (bits - 1)).collect();
        let task = Task::matrix(1, 1, weights.len(), bits).unwrap();
        let stream = Stream::lower(&compile(task, phepu(1)), &weights, None, Dataflow::Buckets).unwrap();
        assert_eq!(stream.width, if bits == 8 { 8 } else { bits });
        let (outputs, _) = execute(&stream, &[1_000_003], Dataflow::Buckets);
        let expected: Vec<u64> =
            weights.iter().map(|w| (w * 1_000_003).rem_euclid(PRIME as i64) as u64).collect();
        assert_eq!(outputs, expected);
    }
}

/// Elements of the same positions share loads; so do chips.
#[test]
fn what_is_shared_is_sent_once() {
    // 32 channels on eight chips: four channels a chip, an element each, and four parts of the image.
    let shape = Convolution::new([3, 8, 8], [32, 3, 3]).padded(1, 1);
    let task = Task::convolution(shape, 8).unwrap();
    let mut random = Random(3);
    let (weights, image) = (random.weights(task.weights(), 8, 2), random.residues(task.inputs()));
    for dataflow in BOTH {
        let stream = Stream::lower(&compile(task, phepu(8)), &weights, None, dataflow).unwrap();
        assert_eq!(execute(&stream, &image, dataflow).0, convolution(&shape, &weights, &image));
        let (summary, each) = (stream.summary(), if dataflow == Dataflow::Buckets { 2 } else { 1 });
        assert_eq!(summary.host_ciphertexts, each * 192, "each once");
        assert_eq!(summary.chip_ciphertexts, 8 * each * 192, "to every chip");
        assert_eq!(summary.instructions.unknown, 0);
        assert_eq!(summary.instructions.store, task.outputs() as u64);
        assert!(summary.chip_words > 7 * each * 192 * 17 && summary.chip_words > summary.host_words);
        let words = instructions(&stream, 0);
        let mut masks: Vec<u16> = words
            .iter()
            .filter(|word| matches!(word.operation, Operation::LoadInput { .. }))
            .map(|word| word.mask)
            .collect();
        masks.sort_unstable();
        masks.dedup();
        // Four elements of the same part each load together.
        assert!(masks.iter().all(|mask| mask.count_ones().is_multiple_of(4)), "{masks:x?}");
    }
    // Channels that chips can't share evenly: inputs still go to all at once.
    let shape = Convolution::new([3, 5, 5], [5, 3, 3]);
    let task = Task::convolution(shape, 8).unwrap();
    let (weights, image) = (random.weights(task.weights(), 8, 2), random.residues(task.inputs()));
    let stream = Stream::lower(&compile(task, phepu(3)), &weights, None, Dataflow::BitSerial).unwrap();
    assert_eq!(execute(&stream, &image, Dataflow::BitSerial).0, convolution(&shape, &weights, &image));
    let summary = stream.summary();
    assert_eq!((summary.host_ciphertexts, summary.chip_ciphertexts), (75, 3 * 75));
    // Chips that share rows: only what both sides of a cut need goes to both.
    let shape = Convolution::new([1, 8, 4], [1, 3, 3]);
    let task = Task::convolution(shape, 8).unwrap();
    let (weights, image) = (random.weights(task.weights(), 8, 2), random.residues(task.inputs()));
    let stream = Stream::lower(&compile(task, phepu(2)), &weights, None, Dataflow::BitSerial).unwrap();
    assert_eq!(execute(&stream, &image, Dataflow::BitSerial).0, convolution(&shape, &weights, &image));
    let summary = stream.summary();
    assert_eq!((summary.host_ciphertexts, summary.chip_ciphertexts), (32, 32 + 8));
}

/// With an input buffer that holds what two positions need, ciphertexts give way and come again.
#[test]
fn inputs_give_way_to_one_another() {
    let shape = Convolution::new([2, 12, 12], [4, 3, 3]).padded(1, 1);
    let task = Task::convolution(shape, 8).unwrap();
    let mut random = Random(5);
    let (weights, image) = (random.weights(task.weights(), 8, 2), random.residues(task.inputs()));
    let programs = compile(task, Machine::chips(1, 4, *phepu(1).buffers().unwrap()).unwrap());
    for dataflow in BOTH {
        let each = if dataflow == Dataflow::Buckets { 2 } else { 1 };
        let mut sent = Vec::new();
        for frames in [1, 7, 40, 288 * each as u32] {
            let global = GlobalBuffers { input_words: 16 * frames, ..GlobalBuffers::PHEPU };
            let stream = Stream::lower_into(global, &programs, &weights, None, dataflow).unwrap();
            check_form(&stream, global);
            assert_eq!(execute(&stream, &image, dataflow).0, convolution(&shape, &weights, &image));
            sent.push(stream.summary().host_ciphertexts);
            let waits = stream.packets.iter().any(|packet| packet.after > 0);
            assert_eq!(waits, frames < 288 * each as u32);
        }
        println!("{dataflow:?}: {sent:?} ciphertexts");
        assert!(sent.windows(2).all(|pair| pair[0] > pair[1]), "{sent:?}");
        assert_eq!(sent[3], 288 * each);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |result: Result<Stream, Error>| match result {
        Ok(_) => panic!("it was lowered"),
        Err(error) => error.to_string(),
    };
    let task = Task::matrix(1, 600, 1000, 8).unwrap();
    let programs = compile(task, phepu(1));
    let weights = Random(1).weights(task.weights(), 8, 2);
    let lower = |dataflow| Stream::lower(&programs, &weights, None, dataflow);
    let message = refused(lower(Dataflow::BitSerial));
    assert!(message.starts_with("the weights of chip 0 need 16"), "{message}");
    assert!(message.contains("words of its weight buffer, which has 16384; use more chips"), "{message}");
    // Equal weights lie there once, and are no matter.
    assert!(Stream::lower(&programs, &vec![-3; task.weights()], None, Dataflow::BitSerial).is_ok());

    let task = Task::matrix(1, 3, 2, 8).unwrap();
    let programs = compile(task, phepu(1));
    let lower = |weights: &[i64], sources| Stream::lower(&programs, weights, sources, Dataflow::Buckets);
    assert!(refused(lower(&[0; 5], None)).starts_with("5 weights were given where the task has 6"));
    assert!(refused(lower(&[128; 6], None)).starts_with("weight 0 is 128"));
    assert!(refused(lower(&[0; 6], Some(&[1, 2]))).starts_with("2 sources were given where the task has 3"));
    assert!(refused(lower(&[0; 6], Some(&[1, 2, u32::MAX]))).contains("where 0 to 2147483647"));
    let small = GlobalBuffers { input_words: 15, ..GlobalBuffers::PHEPU };
    let lower = |global| Stream::lower_into(global, &programs, &[0; 6], None, Dataflow::BitSerial);
    assert!(refused(lower(small)).contains("the input buffer in words is 15, where 16 to 65536"));
    let small = GlobalBuffers { weight_words: 48, ..GlobalBuffers::PHEPU };
    assert!(refused(lower(small)).contains("the weight buffer in words is 48, where 49 to 65536"));

    let buffers = *phepu(1).buffers().unwrap();
    let on = |machine: Result<Machine, Error>| {
        refused(Stream::lower(&compile(task, machine.unwrap()), &[0; 6], None, Dataflow::Buckets))
    };
    assert!(on(Machine::phepu(33, 4096)).contains("chips is 33, where 1 to 32"));
    assert!(on(Machine::chips(1, 17, buffers)).contains("elements is 17, where 1 to 16"));
    let other = |buffers| on(Machine::chips(1, 1, buffers));
    assert!(
        other(Buffers { input_bytes: 17 * 512, ..buffers }).contains("an element holds is 17, where 4 to 16")
    );
    assert!(other(Buffers { output_bytes: 3 * 512, ..buffers }).contains("is 3, where 1 to 2"));
    assert!(other(Buffers { terms: 16, ..buffers }).contains("terms is 16, where 8 to 8"));
    assert!(other(Buffers { weight_bytes: 100, ..buffers }).contains("is 100, where multiples of 64"));
}

/// A stream with one packet changed.
fn changed(stream: &Stream, change: impl Fn(&mut Vec<Packet>)) -> Stream {
    let mut changed = stream.clone();
    change(&mut changed.packets);
    changed
}

#[test]
fn streams_that_may_not_are_refused() {
    let task = Task::matrix(2, 40, 2, 8).unwrap();
    let weights = Random(1).weights(task.weights(), 8, 2);
    let machine = Machine::chips(1, 1, *phepu(1).buffers().unwrap()).unwrap();
    let stream = Stream::lower(&compile(task, machine), &weights, None, Dataflow::BitSerial).unwrap();
    let inputs = Random(2).residues(80);
    execute(&stream, &inputs, Dataflow::BitSerial);
    let why = |stream: &Stream| match stream.execute(&inputs, &GROUP, Pace::Eager) {
        Err(Error::Stream { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    for digits in [0, 1, 5, usize::MAX] {
        let stream = Stream { digits, ..stream.clone() };
        assert_eq!(why(&stream), format!("has numbers of {digits} digits, where 4, 8 and 16 are carried"));
        assert!(stream.work().is_err());
    }
    // All instructions in one packet, to take some out of.
    let words = instructions(&stream, 0);
    let mut packets = stream.packets.clone();
    packets.retain(|packet| !matches!(packet.body, Body::Instructions(_)));
    let with = |edit: &dyn Fn(&mut Vec<Word>)| {
        let mut words = words.clone();
        edit(&mut words);
        let body = Body::Instructions(words.iter().map(|word| word.encode().unwrap()).collect());
        let mut packets = packets.clone();
        packets.push(Packet { chips: 1, after: 0, body });
        Stream { packets, ..stream.clone() }
    };
    let find =
        |wanted: fn(&Operation) -> bool| words.iter().position(|word| wanted(&word.operation)).unwrap();
    let (free, load) =
        (find(|o| matches!(o, Operation::Free { .. })), find(|o| matches!(o, Operation::LoadInput { .. })));
    let (store, reduce) =
        (find(|o| matches!(o, Operation::Store { .. })), find(|o| matches!(o, Operation::Reduce { .. })));
    let weights = find(|o| matches!(o, Operation::LoadWeights { .. }));
    let accumulate = find(|o| matches!(o, Operation::Accumulate { .. }));
    let without = |at: usize| why(&with(&|words| _ = words.remove(at)));
    execute(&with(&|_| {}), &inputs, Dataflow::BitSerial);
    assert_eq!(without(free), "waits for input slot 0, which nothing frees, in element 0");
    assert_eq!(without(load), "reads input slot 0, never loaded, in element 0");
    assert_eq!(without(weights), "reads word 0 of the weights, never loaded, in element 0");
    assert!(without(reduce).starts_with("stores output 0, which is never full"));
    assert_eq!(without(words.len() - 1), "is the last, and no END");
    assert_eq!(
        why(&with(&|words| words.swap(free, accumulate))),
        "reads input slot 0 after its free in element 0"
    );
    assert!(
        why(&with(&|words| words.insert(store, words[store]))).starts_with("stores output 0, which is never")
    );
    let one_tag = |words: &mut Vec<Word>| {
        for word in words {
            if let Operation::Store { tag, .. } = &mut word.operation {
                *tag = 7;
            }
        }
    };
    assert_eq!(why(&with(&one_tag)), "sends a second output 7");
    assert_eq!(why(&with(&|words| words.push(words[store]))), "comes after the END");
    let at =
        |packets: &[Packet], wanted: fn(&Body) -> bool| packets.iter().position(|p| wanted(&p.body)).unwrap();
    let input = at(&stream.packets, |body| matches!(body, Body::Inputs { .. }));
    assert!(why(&changed(&stream, |packets| drop(packets.remove(input)))).contains("where there are none"));
    assert!(
        why(&changed(&stream, |packets| packets[input].after = 1)).contains("where only 0 come before it")
    );
    assert!(
        why(&changed(&stream, |packets| packets[input].chips = 2)).contains("not among the 1 of the stream")
    );
    assert!(
        why(&changed(&stream, |packets| drop(packets.remove(0)))).contains("takes a context from word 0")
    );
    let far = |packets: &mut Vec<Packet>| {
        if let Body::Inputs { address, .. } = &mut packets[input].body {
            *address = 65_530;
        }
    };
    assert!(why(&changed(&stream, far)).contains("of a buffer of 65536; its words would be dropped"));
    assert_eq!(
        stream.execute(&inputs[..4], &GROUP, Pace::Eager).unwrap_err().to_string(),
        "packet 2 of chip 0 is to bring residue 4, where there are 4; lower the programs again"
    );
}

#[test]
fn an_overwriting_that_does_not_wait_is_found_out() {
    let task = Task::matrix(8, 64, 1, 8).unwrap();
    let weights = Random(1).weights(task.weights(), 8, 2);
    let global = GlobalBuffers { input_words: 16 * 16, ..GlobalBuffers::PHEPU };
    let machine = Machine::chips(1, 1, *phepu(1).buffers().unwrap()).unwrap();
    let stream =
        Stream::lower_into(global, &compile(task, machine), &weights, None, Dataflow::BitSerial).unwrap();
    let inputs = Random(2).residues(512);
    let (good, _) = execute(&stream, &inputs, Dataflow::BitSerial);
    let hasty = changed(&stream, |packets| packets.iter_mut().for_each(|packet| packet.after = 0));
    let lazy = hasty.execute(&inputs, &GROUP, Pace::Lazy);
    assert!(!lazy.is_ok_and(|lazy| lazy.outputs.values().map(|x| x.unwrap()).eq(good)));
}

/// Elements that fail leave the others alone.
#[test]
fn elements_fail_alone() {
    let task = Task::matrix(1, 2, 3, 8).unwrap();
    let programs = compile(task, phepu(1));
    let lower = |weights: &[i64]| Stream::lower(&programs, weights, None, Dataflow::BitSerial).unwrap();
    // 2^3 * 7^-2 = 2 modulo 15; 1; 2^-1 = 8.
    let run = lower(&[3, 0, -1, -2, 0, 0]).execute(&[2, 7], &Modulo15, Pace::Eager).unwrap();
    assert_eq!(run.outputs.into_iter().collect::<Vec<_>>(), [(0, Some(2)), (1, Some(1)), (2, Some(8))]);
    // 5 has no inverse: the second channel's element says so.
    let run = lower(&[1, -1, 1, 1, 0, 1]).execute(&[5, 7], &Modulo15, Pace::Lazy).unwrap();
    assert_eq!(run.outputs.into_iter().collect::<Vec<_>>(), [(0, Some(5)), (1, None), (2, Some(5))]);
    let faults: Vec<_> = run.elements.iter().filter_map(|e| Some((e.element, e.fault?))).collect();
    let [(1, (Fault::NoInverse, at))] = faults[..] else { panic!("{faults:?}") };
    assert_eq!((at, Fault::NoInverse.code()), (4, 3)); // clear, accumulate, free, align

    // What reaches out of a buffer, and what is not an instruction.
    let stream = lower(&[1, 2, 3, 4, 5, 6]);
    let spoil = |from: fn(&Operation) -> bool, word: fn(Word) -> u64| {
        let stream = changed(&stream, |packets| {
            for packet in packets {
                let Body::Instructions(words) = &mut packet.body else { continue };
                for raw in words {
                    let decoded = Word::decode(*raw).unwrap();
                    if from(&decoded.operation) {
                        *raw = word(decoded);
                    }
                }
            }
        });
        let run = stream.execute(&[2, 7], &Modulo15, Pace::Eager).unwrap();
        assert!(run.outputs.values().all(Option::is_none));
        run.elements[0].fault.unwrap().0
    };
    let range = |operation| Word::new(7, operation).encode().unwrap();
    assert_eq!(
        Fault::Range,
        spoil(
            |o| matches!(o, Operation::LoadInput { .. }),
            |_| { Word::new(7, Operation::LoadInput { slot: 9, count: 8, global: 0 }).encode().unwrap() }
        )
    );
    assert_eq!(
        Fault::Range,
        spoil(
            |o| matches!(o, Operation::Align { .. }),
            |_| { Word::new(7, Operation::Align { sum: 1 }).encode().unwrap() }
        )
    );
    assert_eq!(Fault::Unknown, spoil(|o| matches!(o, Operation::Align { .. }), |_| 5 << 60 | 7 << 44));
    assert_eq!(Fault::NoContext, spoil(|o| matches!(o, Operation::Context { .. }), |_| 15 << 60));
    assert!(range(Operation::Align { sum: 1 }) > 0);
}

/// Mode 2: powers and inverses of one number.
#[test]
fn basic_operations_are_those_of_the_group() {
    let push = |operation| Word::new(1, operation).encode().unwrap();
    let power = |steady| {
        let to = if steady { 24 } else { 16 };
        push(Operation::Power { to, x: 0, word: 0, bits: 300, steady })
    };
    let words = vec![
        push(Operation::Context { digits: 4, width: 8, global: 0 }),
        push(Operation::LoadInput { slot: 0, count: 2, global: 0 }),
        push(Operation::LoadWeights { word: 0, count: 2, global: 13, regions: 1 }),
        power(true),
        power(false),
        push(Operation::Multiply { to: 17, x: 16, y: 1 }),
        push(Operation::Inverse { to: 18, x: 17 }),
        push(Operation::Square { to: 25, x: 18, times: 3 }),
        push(Operation::Store { slot: 0, tag: 0 }),
        push(Operation::Store { slot: 1, tag: 1 }),
        Word::new(0, Operation::End).encode().unwrap(),
    ];
    let packet = |body| Packet { chips: 1, after: 0, body };
    let packets = vec![
        packet(Body::Context { address: 0 }),
        packet(Body::Weights { address: 13, words: vec![[5, 0, 0, 0], [1 << 40, 0, 0, 0]] }),
        packet(Body::Inputs { address: 0, inputs: vec![0, 1] }),
        packet(Body::Instructions(words)),
    ];
    let stream = Stream { digits: 4, width: 8, chips: 1, packets };
    let (x, y) = (123_456_789u128, 987u128);
    let (run, prime) =
        (stream.execute(&[x as u64, y as u64], &GROUP, Pace::Lazy).unwrap(), u128::from(PRIME));
    // Under addition x to 2^296 + 5 is x times that; 2^61 is 1, so 2^296 is 2^52.
    let powered = (x * ((1 << 52) + 5)) % prime;
    let last = (prime - (powered + y) % prime) * 8 % prime;
    let outputs: Vec<u128> = run.outputs.values().map(|x| x.unwrap().into()).collect();
    assert_eq!(outputs, [powered, last]);
    let work = Work {
        multiplications: 300 + 2 + 1,
        squarings: 300 + 296 + 3,
        inversions: 1,
        conversions: 2,
        copies: 2,
        zero_bits: 297,
        reductions: 0,
    };
    assert_eq!(run.work, work);
}

/// Tens of thousands of instructions go through a queue of 2048, while inputs give way to one another.
#[test]
fn long_streams_flow() {
    let task = Task::matrix(3000, 20, 2, 2).unwrap();
    let mut random = Random(9);
    let (weights, inputs) = (random.weights(task.weights(), 2, 2), random.residues(task.inputs()));
    let machine = Machine::chips(2, 3, *phepu(1).buffers().unwrap()).unwrap();
    let stream = Stream::lower(&compile(task, machine), &weights, None, Dataflow::BitSerial).unwrap();
    let summary = stream.summary();
    println!("{} packets, {:?}", summary.packets, summary.instructions);
    // Neighbours stay neighbours where others make room for them: eight, eight and four inputs of a position.
    assert!((18_000..18_030).contains(&summary.instructions.load_input));
    let all = stream
        .packets
        .iter()
        .map(|packet| packet.finishes() * packet.chips.count_ones() as usize)
        .sum::<usize>();
    assert!(all > 16 * QUEUED_INSTRUCTIONS);
    assert_eq!(execute(&stream, &inputs, Dataflow::BitSerial).0, matrix([3000, 20, 2], &weights, &inputs));
}

/// One output of 3 x 3 x 64 and one of 3 x 3 x 16 terms with random int8 weights: what both dataflows do.
#[test]
fn buckets_take_half_of_the_multiplications() {
    let machine = phepu(1);
    for channels in [64, 16] {
        let task = Task::convolution(Convolution::new([channels, 3, 3], [16, 3, 3]), 8).unwrap();
        let mut random = Random(7);
        let (weights, image) = (random.weights(task.weights(), 8, 2), random.residues(task.inputs()));
        let [serial, buckets] = BOTH.map(|dataflow| {
            let stream = Stream::lower(&compile(task, machine), &weights, None, dataflow).unwrap();
            let (outputs, run) = execute(&stream, &image, dataflow);
            assert_eq!(
                outputs,
                interpret(&compile(task, machine), &weights, &image, &GROUP).unwrap().outputs
            );
            let (work, cycles) = (run.work, run.work.cycles(&machine) as f64 / 16.0);
            println!("3x3x{channels} {dataflow:?}: 16 outputs: {work:?}, {cycles:.0} cycles an output");
            println!("    {:?}", stream.summary());
            (work.montgomery(), cycles)
        });
        assert!(serial.0 as f64 > 1.9 * buckets.0 as f64, "{serial:?} {buckets:?}");
        assert!(serial.1 > 1.9 * buckets.1, "{serial:?} {buckets:?}");
    }
}

/// Of one residue and one weight all packets of instructions are alike, and each of them counts.
#[test]
fn equal_packets_one_after_the_other_all_count() {
    let buffers =
        Buffers { ciphertext_bits: 1024, weight_bytes: 64, input_bytes: 512, output_bytes: 128, terms: 8 };
    for (chips, terms) in [(1, 49), (1, 90), (2, 90), (3, 200)] {
        let task = Task::matrix(chips, terms, 1, 8).unwrap();
        let weights = vec![-128; task.weights()];
        let sources = vec![0; task.inputs()];
        let programs = compile(task, Machine::chips(chips, 1, buffers).unwrap());
        let expected = matrix([chips, terms, 1], &weights, &vec![5; task.inputs()]);
        for dataflow in BOTH {
            let stream =
                Stream::lower_into(GlobalBuffers::PHEPU, &programs, &weights, Some(&sources), dataflow)
                    .unwrap();
            check_form(&stream, GlobalBuffers::PHEPU);
            assert_eq!(execute(&stream, &[5], dataflow).0, expected, "{chips} chips, {terms} terms");
        }
    }
}
