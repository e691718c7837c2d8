//! What a peer can send in a session: a recorded session of an honest one, cut and overwritten, or any bytes. The other
//! side ends, with an error or with outputs, and never panics.
#![no_main]
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, OnceLock};

use blindcore_accel::Device;
use blindcore_accel_cpu::Cpu;
use blindcore_circuit::circuit::Circuit;
use blindcore_circuit::problems;
use blindcore_circuit::session::{Check, Inputs, Learns, Setup, evaluate, garble};
use libfuzzer_sys::fuzz_target;

/// Reads from the peer's bytes; what is written goes nowhere.
struct Peer<'a>(&'a [u8]);

impl Read for Peer<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Peer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps what it reads.
struct Recorder<'a>(UnixStream, &'a Mutex<Vec<u8>>);

impl Read for Recorder<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(bytes)?;
        self.1.lock().unwrap().extend_from_slice(&bytes[..count]);
        Ok(count)
    }
}

impl Write for Recorder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct Recorded {
    device: Device,
    circuit: Circuit,
    /// What the garbler and the evaluator received, without and with the check of transfers.
    heard: [[Vec<u8>; 2]; 2],
}

fn inputs(place: usize) -> Inputs {
    Inputs::new().with(place, vec![true; 6])
}

fn recorded() -> &'static Recorded {
    static ONCE: OnceLock<Recorded> = OnceLock::new();
    ONCE.get_or_init(|| {
        let device = Cpu::with_threads("cpu", 1).unwrap();
        let circuit = Circuit::new(&problems::make("adder6").unwrap());
        let heard = [Check::None, Check::Malicious].map(|check| {
            let (left, right) = UnixStream::pair().unwrap();
            let kept = [Mutex::new(Vec::new()), Mutex::new(Vec::new())];
            let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check };
            std::thread::scope(|scope| {
                scope.spawn(|| garble(&mut Recorder(left, &kept[0]), setup, &inputs(0), &mut ()).unwrap());
                evaluate(&mut Recorder(right, &kept[1]), setup, &inputs(1), &mut ()).unwrap();
            });
            kept.map(|bytes| bytes.into_inner().unwrap())
        });
        Recorded { device, circuit, heard }
    })
}

fuzz_target!(|data: &[u8]| {
    let [mode, cut_0, cut_1, at_0, at_1, rest @ ..] = data else { return };
    let Recorded { device, circuit, heard } = recorded();
    let garbles = mode & 1 == 0;
    let check = if mode & 2 == 0 { Check::None } else { Check::Malicious };
    let honest = &heard[usize::from(mode >> 1 & 1)][usize::from(mode & 1)];
    let bytes = if mode & 4 == 0 {
        let cut = usize::from(u16::from_le_bytes([*cut_0, *cut_1]));
        let mut bytes = honest[..honest.len().saturating_sub(cut)].to_vec();
        let at = usize::from(u16::from_le_bytes([*at_0, *at_1]));
        for (byte, other) in bytes.iter_mut().skip(at).zip(rest) {
            *byte ^= other;
        }
        bytes
    } else {
        rest.to_vec()
    };
    let setup = Setup { circuit, device, learns: Learns::Both, check };
    let mut peer = Peer(&bytes);
    let _ = match garbles {
        true => garble(&mut peer, setup, &inputs(0), &mut ()),
        false => evaluate(&mut peer, setup, &inputs(1), &mut ()),
    };
});
