//! The device: one slot, contract, computed by the definition. `docs/how-to/making-a-device.md` goes through it.

use std::sync::Arc;
use std::time::Instant;

use blindcore::accel::contract::{self, ContractCapabilities, ContractSlot, Shape};
use blindcore::accel::{
    Contract, Cost, Database, Description, Device, DeviceKind, Error, Layout, Listed, OpenOptions, Placed,
    Slots, Words,
};

/// A kind of devices with one of them: `definition`.
pub struct Definition;

impl DeviceKind for Definition {
    fn prefix(&self) -> &'static str {
        "definition"
    }

    fn names(&self) -> Vec<String> {
        vec!["definition".into()]
    }

    fn list(&self) -> Vec<Listed> {
        vec![Listed { name: "definition".into(), available: Ok(()) }]
    }

    fn open(&self, name: &str, _: &OpenOptions) -> Result<Device, Error> {
        let description = Description {
            name: name.into(),
            hardware: "one thread".into(),
            threads: 1,
            why: "asked for by name".into(),
        };
        Ok(Device::new(description, Slots { contract: Some(Arc::new(Slot)), ..Slots::default() }))
    }
}

/// Its one slot. It takes any shape, in the layout that other devices take, so that their databases open here.
struct Slot;

impl ContractSlot for Slot {
    fn capabilities(&self) -> ContractCapabilities {
        ContractCapabilities {
            layouts: vec![Layout::Tiles16x64, Layout::Rows, Layout::Lanes8x4],
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
        Ok(Arc::new(Prepared(shape.clone())))
    }
}

struct Prepared(Shape);

impl Contract for Prepared {
    fn layout(&self) -> Layout {
        Layout::for_shape(&self.0)
    }

    fn gathered(&self) -> usize {
        1
    }

    fn place(&self, database: Database<'_>) -> Result<Arc<dyn Placed>, Error> {
        let shape = self.0.clone();
        let words = match database {
            Database::Canonical(words) => words.clone(),
            Database::Packed(pieces) => {
                let bytes: Vec<u8> = pieces.iter().flat_map(|piece| (**piece).as_ref()).copied().collect();
                unpack(&shape, self.layout(), &bytes)?
            }
        };
        shape.check_database(&words)?;
        Ok(Arc::new(InPlace { shape, words }))
    }
}

/// Words in canonical order.
fn unpack(shape: &Shape, layout: Layout, bytes: &[u8]) -> Result<Words, Error> {
    let want = layout.stripe_bytes(shape) * layout.stripes(shape);
    if bytes.len() != want {
        let (what, want) = ("packed database", want.to_string());
        return Err(Error::Length { what, got: bytes.len(), want, unit: "bytes" });
    }
    let mut canonical = vec![0; shape.database_len()];
    let width = shape.database.bytes();
    for row in 0..shape.rows() {
        for column in 0..shape.depth() {
            let (n, q, j, k) = (row / shape.q, row % shape.q, column / shape.k, column % shape.k);
            for (c, d) in (0..shape.c()).flat_map(|c| (0..shape.d).map(move |d| (c, d))) {
                let at = layout.word_position(shape, row, c, column, d);
                let mut wide = [0; 8];
                wide[..width].copy_from_slice(&bytes[at..at + width]);
                canonical[shape.database_index([j, n, k, q, c, d])] = u64::from_le_bytes(wide);
            }
        }
    }
    Ok(Words::from_fn(shape.database, canonical.len(), |i| canonical[i]))
}

struct InPlace {
    shape: Shape,
    words: Words,
}

impl Placed for InPlace {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn stripes(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        take(&Layout::for_shape(&self.shape).pack(&self.shape, &self.words))
    }

    fn run(&self, query: &Words) -> Result<(Words, Cost), Error> {
        let start = Instant::now();
        let answer = contract::reference(&self.shape, query, &self.words)?;
        let database_bytes = (self.words.len() * self.shape.database.bytes()) as u64;
        Ok((
            answer,
            Cost { seconds: start.elapsed().as_secs_f64(), database_bytes, threads: 1, ..Cost::default() },
        ))
    }
}
