//! A device of one's own, on public API alone: one slot, contract, computed by the definition. It runs the suite that
//! every device must pass. `docs/how-to/making-a-device.md` explains it step by step.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use blindcore_accel::contract::{self, ContractCapabilities, ContractSlot, Shape};
use blindcore_accel::{
    Contract, Cost, Database, Description, Device, DeviceKind, Error, Layout, Listed, OpenOptions, Placed,
    Registry, Slots, Words, conformance,
};

/// The slot.
struct Toy;

impl ContractSlot for Toy {
    fn capabilities(&self) -> ContractCapabilities {
        ContractCapabilities {
            layouts: vec![Layout::Rows],
            moduli: None,
            channels: 4,
            row_depth: 1 << 20,
            words: None,
            streams: false,
            simulated: false,
        }
    }

    fn prepare(&self, shape: &Shape) -> Result<Arc<dyn Contract>, Error> {
        self.check(shape)?;
        Ok(Arc::new(ToyContract(shape.clone())))
    }
}

/// A shape that waits for its database.
struct ToyContract(Shape);

impl Contract for ToyContract {
    fn layout(&self) -> Layout {
        Layout::Rows
    }

    fn gathered(&self) -> usize {
        1
    }

    fn place(&self, database: Database<'_>) -> Result<Arc<dyn Placed>, Error> {
        let shape = self.0.clone();
        let words = match database {
            Database::Canonical(words) => words.clone(),
            Database::Packed(pieces) => {
                let stripe = Layout::Rows.stripe_bytes(&shape);
                let mut bytes = Vec::new();
                for piece in &pieces {
                    let piece = (**piece).as_ref();
                    if piece.len() % stripe != 0 {
                        let (what, want) =
                            ("a piece of the packed database", format!("a multiple of {stripe}"));
                        return Err(Error::Length { what, got: piece.len(), want, unit: "bytes" });
                    }
                    bytes.extend_from_slice(piece);
                }
                unpack(&shape, &bytes)?
            }
        };
        shape.check_database(&words)?;
        Ok(Arc::new(ToyPlaced { shape, words }))
    }
}

/// Words in canonical order from rows, `[n, q][c][j, k][d]`.
fn unpack(shape: &Shape, bytes: &[u8]) -> Result<Words, Error> {
    let width = shape.database.bytes();
    if bytes.len() != shape.database_len() * width {
        let (what, want) = ("packed database", (shape.database_len() * width).to_string());
        return Err(Error::Length { what, got: bytes.len(), want, unit: "bytes" });
    }
    let mut canonical = vec![0; shape.database_len()];
    for (at, word) in bytes.chunks_exact(width).enumerate() {
        let (at, d) = (at / shape.d, at % shape.d);
        let (at, jk) = (at / shape.depth(), at % shape.depth());
        let (nq, c) = (at / shape.c(), at % shape.c());
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(word);
        let index = shape.database_index([jk / shape.k, nq / shape.q, jk % shape.k, nq % shape.q, c, d]);
        canonical[index] = u64::from_le_bytes(wide);
    }
    Ok(Words::from_fn(shape.database, canonical.len(), |i| canonical[i]))
}

/// A database in place.
struct ToyPlaced {
    shape: Shape,
    words: Words,
}

impl Placed for ToyPlaced {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn run(&self, query: &Words) -> Result<(Words, Cost), Error> {
        let start = Instant::now();
        let answer = contract::reference(&self.shape, query, &self.words)?;
        let database_bytes = (self.words.len() * self.shape.database.bytes()) as u64;
        Ok((answer, Cost { time: start.elapsed(), database_bytes, threads: 1, ..Cost::default() }))
    }
}

/// The kind, for a registry.
struct ToyKind;

impl DeviceKind for ToyKind {
    fn prefix(&self) -> &'static str {
        "toy"
    }

    fn names(&self) -> Vec<String> {
        vec!["toy".into()]
    }

    fn list(&self) -> Vec<Listed> {
        vec![Listed { name: "toy".into(), available: Ok(()) }]
    }

    fn open(&self, name: &str, _: &OpenOptions) -> Result<Device, Error> {
        let description = Description {
            name: name.into(),
            hardware: "none of its own".into(),
            threads: 1,
            why: "asked for by name".into(),
        };
        Ok(Device::new(description, Slots { contract: Some(Arc::new(Toy)), ..Slots::default() }))
    }
}

fn main() -> Result<(), Error> {
    let registry = Registry::new().with(ToyKind);
    let device = registry.open("toy", &OpenOptions::default())?;
    let databases = conformance::contract(&device);
    println!("{}: {databases} databases placed, every answer that of the definition", device.name());
    Ok(())
}

#[test]
fn the_toy_conforms() {
    main().expect("it opens");
}
