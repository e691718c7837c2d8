//! Rates of oblivious transfer, each side by itself on one core: `cargo run --release --example ot_rates`.

use std::{
    error::Error,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    thread,
    time::Instant,
};

use blindcore_circuit::ot::{
    base,
    extension::{Check, Parameters, Receiver, Sender},
};

/// What one side wrote, for the other to read after it.
#[derive(Default)]
struct Memory {
    bytes: Vec<u8>,
    at: usize,
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Memory {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = (&self.bytes[self.at..]).read(out)?;
        self.at += read;
        Ok(read)
    }
}

const TRANSFERS: usize = 1 << 20;
const ROUNDS: usize = 9;

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let (mut left, mut right) = UnixStream::pair()?;
        let start = Instant::now();
        let sender = thread::spawn(move || base::send(&mut left, &[1; 32], 128).map(|_| ()));
        base::receive(&mut right, &[1; 32], &[1.into(); 128])?;
        sender.join().expect("the sender ends")?;
        times.push(start.elapsed().as_secs_f64());
    }
    writeln!(io::stdout(), "128 base transfers, two threads: {:.2} ms", 1e3 * median(times))?;

    let choices: Vec<bool> = (0..TRANSFERS).map(|i| i.wrapping_mul(0x9e37_79b9) >> 13 & 1 == 1).collect();
    let mut labels = vec![0; TRANSFERS];
    let mut pairs = vec![[0; 2]; TRANSFERS];
    for check in [Check::None, Check::Malicious] {
        for depth in 1..=4 {
            let parameters = Parameters { depth, check };
            let (mut left, mut right) = UnixStream::pair()?;
            let sender = thread::spawn(move || Sender::setup(&mut left, 12345, parameters));
            let mut receiver = Receiver::setup(&mut right, parameters)?;
            let mut sender = sender.join().expect("the sender ends")?;
            let mut times: [Vec<f64>; 4] = Default::default();
            let mut bytes = 0;
            for _ in 0..ROUNDS {
                let mut memory = Memory::default();
                memory.bytes.reserve(TRANSFERS * 20);
                let start = Instant::now();
                receiver.extend(&mut memory, &choices, &mut labels)?;
                times[0].push(start.elapsed().as_secs_f64());
                bytes = memory.bytes.len();
                let start = Instant::now();
                sender.extend(&mut memory, &mut labels)?;
                times[1].push(start.elapsed().as_secs_f64());

                let mut memory = Memory::default();
                memory.bytes.reserve(TRANSFERS * 20);
                let start = Instant::now();
                receiver.random(&mut memory, &choices, &mut labels)?;
                times[2].push(start.elapsed().as_secs_f64());
                let start = Instant::now();
                sender.random(&mut memory, &mut pairs)?;
                times[3].push(start.elapsed().as_secs_f64());
            }
            let rate = times.map(|times| TRANSFERS as f64 / median(times) / 1e6);
            writeln!(
                io::stdout(),
                "depth {depth}, {check:?}: M/s of receiver and sender, correlated {:.1} {:.1}, random {:.1} {:.1}; {:.2} B each",
                rate[0],
                rate[1],
                rate[2],
                rate[3],
                bytes as f64 / TRANSFERS as f64,
            )?;
        }
    }
    Ok(())
}
