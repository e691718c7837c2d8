//! Any short program on ciphertexts gives what it gives on plaintexts, with noise below its bound at each step.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::testing::{self, Bench};
use crate::{Factor, Gadget, GaloisKey, Plaintext, Rgsw};

/// A step of a program.
#[derive(Clone, Debug)]
enum Step {
    Add(u64),
    Subtract(u64),
    AddPlain(u64),
    Negate,
    Turn(usize),
    Scalar(u64),
    Automorphism,
    Choose(bool, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        any::<u64>().prop_map(Step::Add),
        any::<u64>().prop_map(Step::Subtract),
        any::<u64>().prop_map(Step::AddPlain),
        Just(Step::Negate),
        (0..256usize).prop_map(Step::Turn),
        (0..7681u64).prop_map(Step::Scalar),
        Just(Step::Automorphism),
        (any::<bool>(), any::<u64>()).prop_map(|(bit, seed)| Step::Choose(bit, seed)),
    ];
    prop::collection::vec(step, 1..8)
}

#[test]
fn programs_on_ciphertexts_are_programs_on_plaintexts() {
    let parameters = testing::toy();
    let (ring, p) = (parameters.ring().clone(), parameters.plaintext());
    let bench = Bench::new(&parameters, 101);
    let gadget = Gadget::new(&ring, 4, 22, 8).unwrap();
    let bench = std::cell::RefCell::new(bench);
    let key = {
        let Bench { secret, rng, .. } = &mut *bench.borrow_mut();
        GaloisKey::new(secret, &ring, 5, gadget, rng).unwrap()
    };
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    let rng = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let program = |(seed, steps): (u64, Vec<Step>)| {
        let bench = &mut *bench.borrow_mut();
        let mut plain = testing::message(&parameters, seed);
        let mut x = bench.encrypt(&plain);
        for step in steps {
            let other = |seed| testing::message(&parameters, seed);
            plain = match &step {
                Step::Add(seed) => {
                    x.add(&bench.encrypt(&other(*seed)));
                    testing::each(&plain, &other(*seed), |a, b| (a + b) % p)
                }
                Step::Subtract(seed) => {
                    x.subtract(&bench.encrypt(&other(*seed)));
                    testing::each(&plain, &other(*seed), |a, b| (a + p - b) % p)
                }
                Step::AddPlain(seed) => {
                    x.add_plain(&other(*seed));
                    testing::each(&plain, &other(*seed), |a, b| (a + b) % p)
                }
                Step::Negate => {
                    x.negate();
                    testing::each(&plain, &plain, |a, _| (p - a) % p)
                }
                Step::Turn(power) => {
                    x.turn(*power as isize);
                    testing::turned(&plain, *power)
                }
                Step::Scalar(factor) => {
                    let factor = Plaintext::scalar(&parameters, *factor).unwrap();
                    x.multiply_plain(&Factor::new(&ring, &factor));
                    testing::product(&plain, &factor)
                }
                Step::Automorphism => {
                    x = key.apply(&x);
                    testing::automorphism(&plain, 5)
                }
                Step::Choose(bit, seed) => {
                    let chooser = Rgsw::bit(&bench.secret, &ring, *bit, gadget, &mut bench.rng);
                    x = chooser.choose(x, bench.encrypt(&other(*seed)));
                    if *bit { other(*seed) } else { plain }
                }
            };
            if x.budget() > 0.0 {
                bench.check("a program's step", &x, &plain, 40.0);
            }
        }
        Ok(())
    };
    runner.run(&(any::<u64>(), steps()), program).unwrap();
}
