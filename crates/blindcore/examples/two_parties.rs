//! Two parties compare numbers: each learns whether the first has more, and nothing else.
//!
//! Both are here, joined by a pair of sockets; between machines each side opens its end with `circuit::transport`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::os::unix::net::UnixStream;

use blindcore::circuit::{Check, Circuit, Inputs, Learns, Setup, problems, session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = blindcore::device("auto")?;
    let circuit = Circuit::new(&problems::make("millionaires32")?);
    let setup = Setup { circuit: &circuit, device: &device, learns: Learns::Both, check: Check::None };
    // The least significant bit is on the first wire.
    let bits = |n: u32| (0..32).map(|i| n >> i & 1 == 1).collect::<Vec<_>>();

    let (mut garbler, mut evaluator) = UnixStream::pair()?;
    let outputs = std::thread::scope(|scope| {
        let inputs = Inputs::new().with(0, bits(5_000_000));
        scope.spawn(move || session::garble(&mut garbler, setup, &inputs, &mut ()));
        session::evaluate(&mut evaluator, setup, &Inputs::new().with(1, bits(7_500_000)), &mut ())
    })?;
    let more = outputs.outputs.expect("both learn the result")[0][0];
    println!("the first has {}", if more { "more" } else { "no more" });
    Ok(())
}
