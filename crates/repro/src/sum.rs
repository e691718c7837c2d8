//! A convolution of encrypted numbers on PH-EPU, beside the same on the CPU and in the clear.

use std::time::{Duration, Instant};

use blindcore_accel::bigmod::Residues;
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::phepu::compiler::{
    Assignment, CLOCK_HZ, Convolution, Dataflow, IntegersModulo, Machine, Programs, Stream, Task, interpret,
};
use blindcore_accel_rtl::phepu::{CardSettings, ChipReport, Context, Phepu, Run};
use blindcore_sum::ciphertexts::Ciphertexts;
use blindcore_sum::encoding::{Encoding, Plaintexts};
use blindcore_sum::evaluate::{self, Evaluator, Weights};
use blindcore_sum::keys::{KeySize, Mode, SecretKey};
use blindcore_sum::scheme::{Decryptor, Encryptor};
use ndarray::ArrayView4;
use serde_json::{Value, json};

use crate::labels::fill;
use crate::text::bars;

/// A layer, and how it is to be computed.
#[derive(Clone, Copy, Debug)]
pub struct SumJob {
    /// The image: channels, rows, columns.
    pub image: [usize; 3],
    /// The kernels: outputs, rows, columns.
    pub kernels: [usize; 3],
    /// Steps from one place to the next, in rows and columns.
    pub stride: usize,
    /// Zeros around the image.
    pub padding: usize,
    /// Bits of a weight: 2, 4 or 8.
    pub weight_bits: u32,
    /// Percent of the weights' bits that are zero, at most 100.
    pub zeros: u8,
    /// How the chips weigh.
    pub dataflow: Dataflow,
    /// Chips, 1 to 8.
    pub chips: u8,
    /// Bits of the key's n.
    pub bits: u32,
    /// The same as a size that keys may have.
    pub key: KeySize,
    /// PCIe, memory and links take no time.
    pub unbound: bool,
}

/// The name of a dataflow, as people write it.
fn dataflow_name(dataflow: Dataflow) -> &'static str {
    match dataflow {
        Dataflow::BitSerial => "bit-serial",
        Dataflow::Buckets => "buckets",
    }
}

/// What is simulated at most: pixels and outputs each, weights, and clocks by the compiler's estimate, which take some
/// twenty minutes of one chip.
const MOST_NUMBERS: usize = 1 << 14;
const MOST_WEIGHTS: usize = 1 << 20;
const MOST_CLOCKS: u64 = 100_000_000;

/// That a layer is one that a simulation finishes.
fn check_size(task: &Task) -> anyhow::Result<()> {
    for (what, got, most) in [
        ("pixels", task.inputs(), MOST_NUMBERS),
        ("outputs", task.outputs(), MOST_NUMBERS),
        ("weights", task.weights(), MOST_WEIGHTS),
    ] {
        anyhow::ensure!(
            got <= most,
            "the layer has {got} {what}, over the {most} that are simulated; use a smaller one"
        );
    }
    Ok(())
}

/// Weights of `bits` bits of which each is zero in this many of a hundred cases.
fn random_weights(count: usize, bits: u32, zeros: u8) -> anyhow::Result<Vec<i64>> {
    let mut drawn = vec![0u8; 4 * count * bits as usize];
    fill(&mut drawn)?;
    let threshold = u64::from(100 - zeros) * (1 << 32) / 100;
    let set = |bytes: &[u8]| {
        i64::from(u64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes"))) < threshold)
    };
    let weight = |bytes: &[u8]| {
        let word = bytes.chunks_exact(4).rev().fold(0, |word, bytes| word << 1 | set(bytes));
        word << (64 - bits) >> (64 - bits)
    };
    Ok(drawn.chunks_exact(4 * bits as usize).map(weight).collect())
}

/// A layer as the chips do it.
pub(crate) struct Done {
    pub(crate) run: Run,
    pub(crate) stream: Stream,
    /// Clocks by the compiler's own reckoning, links left out; none for buckets.
    pub(crate) reckoned: Option<u64>,
    /// Clocks of inverting the inputs first.
    pub(crate) inverting: u64,
    pub(crate) simulated: Duration,
}

/// A layer as the chips are sent it.
pub(crate) struct Compiled {
    stream: Stream,
    dataflow: Dataflow,
    reckoned: Option<u64>,
}

/// Compiles a layer.
pub(crate) fn compile(
    assignment: Assignment,
    weights: &[i64],
    dataflow: Dataflow,
) -> anyhow::Result<Compiled> {
    let programs = Programs::compile(assignment)?;
    programs.check()?;
    let stream = Stream::lower(&programs, weights, None, dataflow)?;
    let reckoned = match dataflow {
        Dataflow::BitSerial => {
            // Any inputs: it is the clocks that are wanted.
            let inputs = vec![0; programs.assignment().task().inputs()];
            Some(interpret(&programs, weights, &inputs, &IntegersModulo(3))?.cycles)
        }
        Dataflow::Buckets => None,
    };
    Ok(Compiled { stream, dataflow, reckoned })
}

/// Runs a layer on inputs in the chips' form.
pub(crate) fn run_layer(
    device: &Phepu,
    context: &Context,
    compiled: Compiled,
    inputs: &Residues,
) -> anyhow::Result<Done> {
    let Compiled { stream, dataflow, reckoned } = compiled;
    let (mut inverting, mut both) = (0, None);
    match dataflow {
        Dataflow::BitSerial => {}
        Dataflow::Buckets => {
            // Each input, then its inverse.
            let (inverses, cost) = device.device().bigmod(context.modulus())?.invert(inputs)?;
            inverting = cost.cycles;
            let mut pairs = inputs.clone();
            pairs.append(&inverses)?;
            let order = (0..inputs.len()).flat_map(|i| [i, inputs.len() + i]);
            both = Some(pairs.select(order));
        }
    }
    let start = Instant::now();
    let run = device.card().run(&stream, context, both.as_ref().unwrap_or(inputs))?.whole()?;
    Ok(Done { run, stream, reckoned, inverting, simulated: start.elapsed() })
}

/// The convolution in the clear.
fn in_the_clear(task: &Task, weights: &[i64], image: &[i64]) -> Vec<i64> {
    let output = |output| {
        let (at, channel) = task.place_of(output);
        let there = (0..task.terms()).filter_map(|term| Some((term, task.input_at(at, term)?)));
        there.map(|(term, input)| weights[task.weight_at(channel, term)] * image[input as usize]).sum()
    };
    (0..task.outputs()).map(output).collect()
}

/// Encrypts a random image under a fresh key, convolves it on the chips and on the CPU, compares every ciphertext, decrypts.
///
/// # Errors
/// The layer is none that the chips carry or too large to simulate, the chip is not built or stopped, or the results differ.
pub fn run(job: &SumJob) -> anyhow::Result<SumRun> {
    let ciphertext_bits = 2 * job.bits as usize;
    let shape = Convolution::new(job.image, job.kernels)
        .strided(job.stride, job.stride)
        .padded(job.padding, job.padding);
    anyhow::ensure!(
        [2, 4, 8].contains(&job.weight_bits),
        "--weight-bits is {}, where the chip carries 2, 4 and 8; use one of these",
        job.weight_bits
    );
    let task = Task::convolution(shape, job.weight_bits)?;
    check_size(&task)?;
    let chips = usize::from(job.chips);
    let assignment = Assignment::search(task, Machine::phepu(chips, ciphertext_bits)?)?;
    anyhow::ensure!(
        assignment.cycles() <= MOST_CLOCKS,
        "the layer takes some {} clocks, over the {MOST_CLOCKS} that are simulated; use a smaller one",
        assignment.cycles()
    );
    let settings = if job.unbound { CardSettings::UNBOUND } else { CardSettings::PAPER };
    let name = if chips == 1 { "rtl:phepu" } else { "rtl:phepu-card" };
    let device = crate::chip(Phepu::with_settings(name, settings))?;
    let weights = random_weights(task.weights(), job.weight_bits, job.zeros)?;
    let compiled = compile(assignment.clone(), &weights, job.dataflow)?;

    // The client encrypts.
    let key = SecretKey::generate(job.key, Mode::ShortExponent)?;
    let cpu = Cpu::open("cpu")?;
    let (encryptor, decryptor) = (Encryptor::new(key.public(), &cpu)?, Decryptor::new(&key, &cpu)?);
    let mut pixels = vec![0; task.inputs()];
    fill(&mut pixels)?;
    let pixels: Vec<i64> = pixels.into_iter().map(i64::from).collect();
    let plaintexts = Plaintexts::integers(key.public(), pixels.as_slice(), Encoding::integers(9)?)?;
    let image = Ciphertexts::encrypt(&encryptor, &plaintexts)?;
    let numbers = image.numbers(&encryptor)?;

    // The server convolves: on its CPU, and on the chips.
    let evaluator = Evaluator::new(key.public(), &cpu)?;
    let image = image.reshape(&job.image)?;
    let [outputs, rows, columns] = job.kernels;
    let kernels = ArrayView4::from_shape((outputs, job.image[0], rows, columns), &weights)?;
    let kernels = Weights::integers(kernels);
    let how = evaluate::Convolution { stride: (job.stride, job.stride), padding: (job.padding, job.padding) };
    let start = Instant::now();
    let on_cpu = evaluator.conv2d(&image, &kernels, how)?;
    let cpu_time = start.elapsed();
    let modulus = std::sync::Arc::new(key.public().modulus());
    let context = Context::new(&modulus)?;
    let bigmod = device.device().bigmod(&modulus)?;
    let inputs = bigmod.place(&numbers)?;
    let done = run_layer(&device, &context, compiled, &inputs)?;
    let results = bigmod.read(&done.run.outputs)?;
    let same = on_cpu.numbers(&encryptor)?;
    if let Some(output) = (0..task.outputs()).find(|i| results.get(*i) != same.get(*i)) {
        anyhow::bail!("output {output} of {name} and {} differ; report this", cpu.name());
    }

    // The client decrypts.
    let decrypted = Plaintexts::decrypt(&decryptor, &results, on_cpu.form())?.to_i64()?;
    let clear = in_the_clear(&task, &weights, &pixels);
    if let Some(output) = (0..task.outputs()).find(|i| decrypted[*i] != clear[*i]) {
        let (got, want) = (decrypted[output], clear[output]);
        anyhow::bail!("output {output} decrypts to {got}, where the convolution has {want}; report this");
    }

    Ok(SumRun { job: *job, name, task, assignment, done, cpu: cpu.name().to_owned(), cpu_time, decrypted })
}

/// A convolution that chips and CPU computed alike.
pub struct SumRun {
    job: SumJob,
    name: &'static str,
    task: Task,
    assignment: Assignment,
    done: Done,
    cpu: String,
    cpu_time: Duration,
    decrypted: Vec<i64>,
}

/// Names of mode 1's steps (Fig. 15.4.4).
const STEPS: [&str; 4] = ["1 accumulate", "2 align", "3 invert", "4 reduce"];

fn us(clocks: u64) -> f64 {
    clocks as f64 / (CLOCK_HZ / 1e6)
}

/// A chip's counters, and its elements'.
fn per_chip(chip: &ChipReport) -> Value {
    let elements = chip.elements.iter().map(|e| {
        json!({
            "montgomery_cycles": e.montgomery, "stein_cycles": e.stein, "steps": e.steps,
            "multiplications": e.multiplications, "inversions": e.inversions, "idle_cycles": e.idle,
            "copy_cycles": e.copies, "zero_bits_skipped": e.skipped,
        })
    });
    json!({
        "chip": chip.chip, "cycles": chip.clocks, "instructions": chip.instructions, "bus_cycles": chip.bus,
        "waits": {"busy": chip.waits_busy, "outputs": chip.waits_output, "instructions": chip.waits_instructions},
        "elements": elements.collect::<Vec<_>>(),
    })
}

impl SumRun {
    /// What the chips were sent.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.done.stream
    }

    /// How long the simulation took here.
    #[must_use]
    pub fn simulated(&self) -> Duration {
        self.done.simulated
    }

    /// Clocks of each step and of nothing, of all elements that work.
    fn stages(&self) -> ([u64; 4], u64) {
        let mut steps = [0; 4];
        let mut all = 0;
        for chip in &self.done.run.chips {
            for element in chip.elements.iter().filter(|e| e.instructions > 0) {
                for (sum, clocks) in steps.iter_mut().zip(element.steps) {
                    *sum += u64::from(clocks);
                }
                all += chip.clocks;
            }
        }
        (steps, all.saturating_sub(steps.iter().sum()))
    }

    /// All of it for programs.
    #[must_use]
    pub fn document(&self) -> Value {
        let run = &self.done.run;
        let (steps, idle) = self.stages();
        let partition = self.assignment.chips()[0].partition;
        let settings = if self.job.unbound { CardSettings::UNBOUND } else { CardSettings::PAPER };
        let inversions: u64 = run.elements().map(|e| u64::from(e.inversions)).sum();
        let skipped: u64 = run.elements().map(|e| u64::from(e.skipped)).sum();
        let stages = STEPS.iter().zip(steps).map(
            |(name, cycles)| json!({"step": name, "cycles_of_all_elements": cycles, "time_us": us(cycles)}),
        );
        let mut document = json!({
            "device": self.name,
            "key_bits": self.job.bits,
            "ciphertext_bits": 2 * self.job.bits,
            "chips": self.job.chips,
            "chips_used": run.chips.len(),
            "image": self.job.image,
            "kernels": self.job.kernels,
            "stride": self.job.stride,
            "padding": self.job.padding,
            "weight_bits": self.job.weight_bits,
            "zero_bits_percent": self.job.zeros,
            "dataflow": dataflow_name(self.job.dataflow),
            "outputs": self.task.outputs(),
            "terms": self.task.terms(),
            "partition": partition,
            "links_bits_a_clock": {"pcie": settings.pcie, "ddr": settings.ddr, "chip": settings.link},
        });
        let measured = json!({
            "cycles": run.card.clocks,
            "time_us": us(run.card.clocks),
            "clock_hz": CLOCK_HZ,
            "cycles_reckoned": self.done.reckoned,
            "cycles_of_inverting_inputs": self.done.inverting,
            "cycles_in_all": run.card.clocks + self.done.inverting,
            "multiplications": run.multiplications(),
            "inversions": inversions,
            "zero_bits_skipped": skipped,
            "stages": stages.collect::<Vec<_>>(),
            "cycles_of_waiting": idle,
            "per_chip": run.chips.iter().map(per_chip).collect::<Vec<_>>(),
            "words_in": run.card.words_in,
            "words_out": run.card.words_out,
            "same_bits_as": self.cpu,
            "cpu_ms": self.cpu_time.as_secs_f64() * 1e3,
            "decrypted": self.decrypted,
            "as_in_the_clear": true,
            "simulated_s": self.done.simulated.as_secs_f64(),
        });
        if let (Value::Object(document), Value::Object(measured)) = (&mut document, measured) {
            document.extend(measured);
        }
        document
    }

    /// All of it for people.
    #[must_use]
    pub fn text(&self) -> String {
        let run = &self.done.run;
        let [c, h, w] = self.job.image;
        let [o, kh, kw] = self.job.kernels;
        let partition = self.assignment.chips()[0].partition;
        let clocks = run.card.clocks;
        let busy = run.elements().filter(|e| e.instructions > 0).count();
        let mut text = format!(
            "An image of {c} x {h} x {w} under {o} kernels of {kh} x {kw}, weights of {} bits, {} % of them zero, ciphertexts \
             of {} bits\n\n\
             {:>12} clocks on {}: {:.1} us at {:.0} MHz\n\
             {:>12} outputs of {} terms: {:.0} clocks each on one of {busy} elements\n\
             {:>12} multiplications, {} inversions, {} zero bits skipped\n",
            self.job.weight_bits,
            self.job.zeros,
            2 * self.job.bits,
            clocks,
            self.name,
            us(clocks),
            CLOCK_HZ / 1e6,
            self.task.outputs(),
            self.task.terms(),
            clocks as f64 * busy as f64 / self.task.outputs() as f64,
            run.multiplications(),
            run.elements().map(|e| u64::from(e.inversions)).sum::<u64>(),
            run.elements().map(|e| u64::from(e.skipped)).sum::<u64>(),
        );
        if let Some(reckoned) = self.done.reckoned {
            text += &format!("{reckoned:>12} clocks reckoned by the compiler, without links\n");
        }
        if self.done.inverting > 0 {
            let (clocks, us) = (self.done.inverting, us(self.done.inverting));
            text += &format!("{clocks:>12} clocks before that for the inverses of all inputs: {us:.1} us\n");
        }
        text += &format!(
            "{:>12} x {} x {} rows, columns and channels of outputs at a time on {}\n\n",
            partition.rows,
            partition.columns,
            partition.channels,
            blindcore_units::counted(self.assignment.chips().len(), "chip"),
        );
        let (steps, idle) = self.stages();
        let all = steps.iter().sum::<u64>() + idle;
        let mut parts: Vec<(&str, u64)> = STEPS.into_iter().zip(steps).collect();
        parts.push(("waiting, loads, stores", idle));
        text += "Clocks of all elements that work:\n";
        text += &bars(all, &parts);
        text += &format!(
            "\nEvery ciphertext is {}'s, which took {:.1} ms; decrypted, they are the convolution.\n",
            self.cpu,
            self.cpu_time.as_secs_f64() * 1e3,
        );
        text
    }
}
