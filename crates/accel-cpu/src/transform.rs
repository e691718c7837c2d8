//! The transform operation on the CPU: a task for each polynomial and prime.

use std::sync::Arc;
use std::time::Instant;

use blindcore_accel::transform::{Direction, Ring, Transform, TransformCapabilities, TransformSlot};
use blindcore_accel::{Cost, Error};
use blindcore_math::ntt::{MAX_DEGREE, MIN_DEGREE, Ntt};
use rayon::prelude::*;

use crate::Engine;

impl TransformSlot for Engine {
    fn capabilities(&self) -> TransformCapabilities {
        TransformCapabilities {
            least_degree: MIN_DEGREE,
            most_degree: MAX_DEGREE,
            prime_bits: 62,
            primes: usize::MAX,
            simulated: false,
        }
    }

    fn prepare(&self, ring: &Ring) -> Result<Arc<dyn Transform>, Error> {
        TransformSlot::check(self, ring)?;
        let ntt = |&prime| Ntt::with(prime, ring.degree, self.features.ifma);
        let ntts = ring.primes.iter().map(ntt).collect::<Result<_, _>>();
        let ntts = ntts.map_err(|e| Error::Ring { why: e.to_string() })?;
        Ok(Arc::new(CpuTransform { cpu: self.clone(), ring: ring.clone(), ntts }))
    }
}

struct CpuTransform {
    cpu: Engine,
    ring: Ring,
    /// For each prime.
    ntts: Vec<Ntt>,
}

impl Transform for CpuTransform {
    fn ring(&self) -> &Ring {
        &self.ring
    }

    fn run(&self, direction: Direction, words: &mut [u64]) -> Result<Cost, Error> {
        let start = Instant::now();
        self.ring.check_words(words)?;
        let degree = self.ring.degree;
        let transform = |(i, words): (usize, &mut [u64])| {
            let ntt = &self.ntts[i % self.ntts.len()];
            match direction {
                Direction::Forward => ntt.forward(words),
                Direction::Inverse => ntt.inverse(words),
            }
        };
        let threads = self.cpu.pool.current_num_threads();
        if threads == 1 || words.len() == degree {
            words.chunks_exact_mut(degree).enumerate().for_each(transform);
        } else {
            self.cpu.pool.install(|| words.par_chunks_exact_mut(degree).enumerate().for_each(transform));
        }
        let butterflies = words.len() as u64 / 2 * u64::from(degree.ilog2());
        Ok(Cost { seconds: start.elapsed().as_secs_f64(), butterflies, threads, ..Cost::default() })
    }
}
