//! The suite of the transform operation.

use blindcore_math::Prime;
use blindcore_math::ntt;

use super::Random;
use crate::transform::{Direction, Ring, Transform, TransformCapabilities, reference};
use crate::{Device, Error};

/// Sizes of primes at the edges of what kernels treat alike, in bits: the least, those of 32-bit lanes, where reductions
/// between layers begin, where 52-bit products end, the largest.
const BITS: [u32; 10] = [20, 30, 31, 32, 46, 47, 48, 50, 51, 61];

/// Runs both transforms over every degree and size of primes that the device says it takes, and compares each word with
/// the definition; every other ring must be refused. Returns how many words were compared.
///
/// # Panics
/// Names the ring and the first word that differs, or what the device says of itself that is not so.
pub fn transform(device: &Device) -> usize {
    let slot = device.slots().transform.as_deref().expect("a transform slot");
    let (name, capabilities) = (device.name(), slot.capabilities());
    let mut random = Random(0x0dd5);
    let mut words = 0;
    let degrees = (0..).map(|i| ntt::MIN_DEGREE << i).take_while(|&degree| degree <= ntt::MAX_DEGREE);
    for degree in degrees {
        for bits in BITS {
            // There is no prime of 20 bits for the largest degrees.
            let Ok(ring) = Ring::of_bits(degree, &[bits]) else { continue };
            words += one(device, &capabilities, &ring, &mut random);
        }
    }
    for bits in [vec![50, 50], vec![31, 46, 61], vec![30; 5]] {
        let ring = Ring::of_bits(1024, &bits).expect("dense enough");
        words += one(device, &capabilities, &ring, &mut random);
    }
    assert!(words > 0, "{name} takes no ring of this suite");
    refusals(device, &capabilities);
    words
}

/// One ring, if the device takes it: how many words were compared.
fn one(device: &Device, capabilities: &TransformCapabilities, ring: &Ring, random: &mut Random) -> usize {
    let name = device.name();
    let slot = device.slots().transform.as_deref().expect("a transform slot");
    let said = slot.check(ring);
    if let Err(e) = capabilities.check(ring) {
        assert!(said.is_err(), "{name} says it takes {ring}, which its capabilities rule out: {e}");
    }
    let transform = match slot.prepare(ring) {
        Err(e) => {
            assert!(said.is_err(), "{name} says it takes {ring}, and refuses it: {e}");
            return 0;
        }
        Ok(transform) => transform,
    };
    assert!(said.is_ok(), "{name} takes {ring}, and says that it does not: {said:?}");
    assert_eq!(transform.ring(), ring, "{name}");
    let mut words = 0;
    for polynomials in [1, 3] {
        for fill in 0..3 {
            let input: Vec<u64> = (0..polynomials)
                .flat_map(|_| &ring.primes)
                .flat_map(|prime| vec![prime.value(); ring.degree])
                .map(|q| match fill {
                    0 => q - 1,
                    1 => random.next() % q,
                    _ => [0, 1, q - 1, q / 2][random.below(4)],
                })
                .collect();
            for direction in [Direction::Forward, Direction::Inverse] {
                let mut want = input.clone();
                reference::run(ring, direction, &mut want).expect("residues");
                let got = run(&*transform, direction, input.clone());
                if let Some(at) = (0..want.len()).find(|&at| got[at] != want[at]) {
                    panic!("{name}, {direction:?}, {ring}: word {at} is {} and not {}", got[at], want[at]);
                }
                words += want.len();
            }
        }
    }
    assert!(run(&*transform, Direction::Forward, Vec::new()).is_empty());
    if ring.degree <= 1024 {
        laws(name, &*transform, random);
    }
    refuses_words(name, &*transform);
    words
}

fn run(transform: &dyn Transform, direction: Direction, mut words: Vec<u64>) -> Vec<u64> {
    transform.run(direction, &mut words).unwrap_or_else(|e| panic!("{}: {e}", transform.ring()));
    words
}

/// What a ring's transforms must obey, whatever the definition: sums go to sums, products to products.
fn laws(name: &str, transform: &dyn Transform, random: &mut Random) {
    let ring = transform.ring();
    let primes = || ring.primes.iter().flat_map(|&prime| std::iter::repeat_n(prime, ring.degree));
    let mut draw = || primes().map(|prime| random.next() % prime.value()).collect::<Vec<u64>>();
    let (a, b) = (draw(), draw());
    let each = |a: &[u64], b: &[u64], f: &dyn Fn(Prime, u64, u64) -> u64| -> Vec<u64> {
        a.iter().zip(b).zip(primes()).map(|((&a, &b), prime)| f(prime, a, b)).collect()
    };
    let add = |prime: Prime, a: u64, b: u64| prime.reduce(u128::from(a) + u128::from(b));
    let mul = |prime: Prime, a: u64, b: u64| prime.reduce(u128::from(a) * u128::from(b));
    let forward = |words: &[u64]| run(transform, Direction::Forward, words.to_vec());
    let (at, bt) = (forward(&a), forward(&b));
    assert!(forward(&each(&a, &b, &add)) == each(&at, &bt, &add), "{name}, {ring}: not linear");
    let product = run(transform, Direction::Inverse, each(&at, &bt, &mul));
    let want: Vec<u64> = (a.chunks(ring.degree).zip(b.chunks(ring.degree)))
        .zip(&ring.primes)
        .flat_map(|((a, b), &prime)| reference::negacyclic(prime, a, b))
        .collect();
    assert!(product == want, "{name}, {ring}: a product is not the negacyclic convolution");
}

fn refuses_words(name: &str, transform: &dyn Transform) {
    let ring = transform.ring();
    for direction in [Direction::Forward, Direction::Inverse] {
        let mut short = vec![0; ring.words() - 1];
        assert!(matches!(transform.run(direction, &mut short), Err(Error::Length { .. })), "{name}: length");
        for at in [0, ring.degree - 1, ring.words() - 1] {
            let mut words = vec![1; ring.words()];
            words[at] = ring.primes[at / ring.degree].value();
            let before = words.clone();
            let refused = transform.run(direction, &mut words);
            assert!(
                matches!(refused, Err(Error::NotReduced { position, .. }) if position == at),
                "{name}: {refused:?}"
            );
            assert!(words == before, "{name}: changed what it refused");
        }
    }
}

fn refusals(device: &Device, capabilities: &TransformCapabilities) {
    let (name, slot) = (device.name(), device.slots().transform.as_deref().expect("a transform slot"));
    let ring = Ring::of_bits(1024, &[30]).expect("there is");
    for ring in [
        Ring { degree: 1000, ..ring.clone() },
        Ring { degree: 2 * ntt::MAX_DEGREE, ..ring.clone() },
        Ring { primes: Vec::new(), ..ring.clone() },
        Ring { primes: vec![ring.primes[0]; 2], ..ring.clone() },
        Ring { primes: vec![Prime::new(65_521).expect("prime")], ..ring },
    ] {
        assert!(capabilities.check(&ring).is_err() && slot.check(&ring).is_err(), "{name} takes {ring}");
        assert!(slot.prepare(&ring).is_err(), "{name} prepares {ring}");
    }
}
