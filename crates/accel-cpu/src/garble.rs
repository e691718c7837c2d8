//! The garble operation on the CPU: the definition, or half gates and three halves by AES-NI or VAES.

use std::time::Instant;

use blindcore_accel::garble::reference::{self, Side};
use blindcore_accel::garble::{
    Evaluate, Garble, GarblingScheme, Labels, Offset, Program, check, three_halves,
};
use blindcore_accel::{Cost, Error};
use zeroize::Zeroizing;

use crate::arch::vector::garble::{Gates, Job, Kernel, Tables, run, sharers};
use crate::{Engine, Features};

/// The fastest kernel.
pub(crate) fn kernel(features: &Features) -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    return features.vaes.map(Kernel::Vaes).or(features.aes.map(Kernel::Aes));
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = features;
        None
    }
}

pub(crate) struct CpuGarble {
    cpu: Engine,
    scheme: GarblingScheme,
    /// The definition's, where there is none.
    kernel: Option<Kernel>,
}

impl CpuGarble {
    pub(crate) fn new(cpu: &Engine, scheme: &GarblingScheme) -> Self {
        let kernel = match scheme {
            GarblingScheme::InsecureSifo => None,
            GarblingScheme::HalfGates { .. } | GarblingScheme::ThreeHalves { .. } => kernel(&cpu.features),
        };
        Self { cpu: cpu.clone(), scheme: *scheme, kernel }
    }

    fn run(
        &self,
        program: &Program,
        first_gate: u64,
        labels: &mut Labels,
        tables: Tables<'_>,
    ) -> Result<Cost, Error> {
        let length = match &tables {
            Tables::Garble(_, rows) => rows.len(),
            Tables::Evaluate(rows) => rows.len(),
        };
        check(&self.scheme, program, first_gate, labels, length)?;
        let start = Instant::now();
        let mut threads = 1;
        match (self.kernel, &self.scheme) {
            (Some(kernel), GarblingScheme::HalfGates { key } | GarblingScheme::ThreeHalves { key }) => {
                threads = sharers(kernel, program, labels, self.cpu.pool.current_num_threads());
                let dice = match (&self.scheme, &tables) {
                    (GarblingScheme::ThreeHalves { .. }, Tables::Garble(offset, _)) => {
                        let gates = program.ands() * labels.instances();
                        three_halves::dice(key, offset.label(), first_gate, gates)
                    }
                    _ => Vec::new(),
                };
                let dice = Zeroizing::new(dice);
                let gates = match &self.scheme {
                    GarblingScheme::ThreeHalves { .. } => Gates::ThreeHalves { dice: &dice },
                    _ => Gates::HalfGates,
                };
                let job = Job { program, key, first_gate, gates };
                // One thread is this one: short programs would wait longer for another than they take.
                if threads == 1 {
                    run(kernel, job, labels, tables, 1);
                } else {
                    self.cpu.pool.install(|| run(kernel, job, labels, tables, threads));
                }
            }
            _ => {
                let side = match tables {
                    Tables::Garble(offset, rows) => Side::Garble(offset, rows),
                    Tables::Evaluate(rows) => Side::Evaluate(rows),
                };
                reference::run(&self.scheme, program, first_gate, labels, side);
            }
        }
        let instances = labels.instances() as u64;
        let ands = program.ands() as u64;
        let xors = program.steps().len() as u64 - ands;
        let (and_gates, xor_gates) = (ands * instances, xors * instances);
        Ok(Cost { seconds: start.elapsed().as_secs_f64(), and_gates, xor_gates, threads, ..Cost::default() })
    }
}

impl Garble for CpuGarble {
    fn scheme(&self) -> &GarblingScheme {
        &self.scheme
    }

    fn garble(
        &self,
        program: &Program,
        offset: &Offset,
        first_gate: u64,
        labels: &mut Labels,
        tables: &mut [u8],
    ) -> Result<Cost, Error> {
        self.run(program, first_gate, labels, Tables::Garble(offset, tables))
    }
}

impl Evaluate for CpuGarble {
    fn scheme(&self) -> &GarblingScheme {
        &self.scheme
    }

    fn evaluate(
        &self,
        program: &Program,
        first_gate: u64,
        labels: &mut Labels,
        tables: &[u8],
    ) -> Result<Cost, Error> {
        self.run(program, first_gate, labels, Tables::Evaluate(tables))
    }
}
