//! Compiled tasks on real ciphertexts: a CPU's tiles, PH-EPU's programs and the evaluator's own convolution give the same
//! residues, to the bit, and what plaintexts give.

use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::phepu::compiler::residues::{run_programs, run_tiles};
use blindcore_accel_rtl::phepu::compiler::{Assignment, Convolution, Machine, Programs, Task};
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::{Encoding, Plaintexts};
use blindcore_sum::evaluate::{self, Evaluator, Weights};
use blindcore_sum::keys::{KeySize, Mode, SecretKey};
use blindcore_sum::scheme::Decryptor;
use ndarray::{Array3, Array4};

#[test]
fn one_convolution_three_ways() {
    let device = Cpu::open("cpu").unwrap();
    let secret = SecretKey::generate(KeySize::test_only(512).unwrap(), Mode::ShortExponent).unwrap();
    let public = secret.public();
    let evaluator = Evaluator::new(public, &device).unwrap();
    let image = Array3::from_shape_fn((2, 6, 5), |(c, y, x)| (c * 70 + y * 31 + x * 17) as i64 % 256 - 128);
    let kernels = Array4::from_shape_fn((3, 2, 3, 3), |(o, c, y, x)| {
        (o * 97 + c * 53 + y * 29 + x * 11) as i64 % 256 - 128
    });
    let plaintexts = Plaintexts::integers(public, &image, Encoding::integers(8).unwrap()).unwrap();
    let x = Ciphertexts::encrypt(evaluator.encryptor(), &plaintexts).unwrap();
    let weights: Vec<i64> = kernels.iter().copied().collect();

    let how = evaluate::Convolution { stride: (1, 1), padding: (1, 1) };
    let whole = evaluator.conv2d(&x, &Weights::integers(&kernels), how).unwrap();
    let want = whole.numbers(evaluator.encryptor()).unwrap();

    let bigmod = device.bigmod(&std::sync::Arc::new(public.modulus())).unwrap();
    let residues = bigmod.place(&x.numbers(evaluator.encryptor()).unwrap()).unwrap();
    let shape = Convolution::new([2, 6, 5], [3, 3, 3]).padded(1, 1);
    let task = Task::convolution(shape, 8).unwrap();
    for threads in [1, 3, 7] {
        let assignment = Assignment::search(task, Machine::cpu(threads).unwrap()).unwrap();
        let tiles = run_tiles(&*bigmod, &assignment, &weights, &residues).unwrap();
        assert!(bigmod.read(&tiles).unwrap() == want, "{threads} threads");
    }
    for chips in [1, 2] {
        let assignment = Assignment::search(task, Machine::phepu(chips, 1024).unwrap()).unwrap();
        let programs = Programs::compile(assignment).unwrap();
        programs.check().unwrap();
        let (outputs, run) = run_programs(&*bigmod, &programs, &weights, &residues).unwrap();
        assert!(bigmod.read(&outputs).unwrap() == want, "{chips} chips");
        assert!(run.total.montgomery() > 0 && run.cycles > 0);
    }

    let decrypted =
        Plaintexts::decrypt(&Decryptor::new(&secret, &device).unwrap(), &want, whole.form()).unwrap();
    let plain = |o: usize, y: usize, x: usize| -> i64 {
        let mut sum = 0;
        for ((c, i, j), w) in kernels.index_axis(ndarray::Axis(0), o).indexed_iter() {
            let at = (y + i).checked_sub(1).zip((x + j).checked_sub(1)).filter(|(y, x)| *y < 6 && *x < 5);
            sum += at.map_or(0, |(y, x)| w * image[[c, y, x]]);
        }
        sum
    };
    let want: Vec<i64> = (0..3)
        .flat_map(|o| (0..6).flat_map(move |y| (0..5).map(move |x| (o, y, x))))
        .map(|(o, y, x)| plain(o, y, x))
        .collect();
    assert_eq!(decrypted.to_i64().unwrap(), want);

    // Inputs or weights of another task are refused.
    let assignment = Assignment::search(task, Machine::cpu(2).unwrap()).unwrap();
    assert!(run_tiles(&*bigmod, &assignment, &weights[1..], &residues).is_err());
    assert!(run_tiles(&*bigmod, &assignment, &weights, &residues.select([0])).is_err());
}
