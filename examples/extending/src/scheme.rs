//! The scheme.

use std::sync::Arc;

use blindcore::accel::contract::Shape;
use blindcore::accel::{Cost, Device, Layout, Modulus, Placed, SharedBytes, Word, Words};
use blindcore::lookup::schemes::schemes::{
    self, About, ClientWork, Keeps, Operand, Origin, Run, Scheme, SchemeRef, Security,
};
use blindcore::lookup::schemes::{
    Client, Decoded, Error, Geometry, MAX_GATHER, Params, Preprocessing, Progress, RegisteredKeys,
    SchemeClient, SchemeServer, Selection,
};
use zeroize::Zeroizing;

/// Trivial private information retrieval: a query says nothing, and the answer is the table.
///
/// ```text
///   server: D, one column of a slot's bytes a record ──▶ D * 1, by contracts of unit vectors ──▶ all of D
///   client: picks the columns in secret, adds them up modulo 256
/// ```
pub struct Download;

impl Download {
    /// Has this process know the scheme.
    ///
    /// # Errors
    /// Another scheme has its name or its number.
    pub fn register() -> Result<SchemeRef, Error> {
        schemes::register(&Download)
    }
}

const ABOUT: About = About {
    name: "download",
    title: "the whole table",
    suits: "for a few rows",
    wire_id: 1000,
    security: Some(Security {
        bits: 1024.0,
        quantum_bits: None,
        estimator: "none: a query holds no information",
    }),
    constants: &[],
};

impl Scheme for Download {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn failure_log2(&self, _: &Geometry) -> f64 {
        f64::INFINITY
    }

    fn keeps(&self, _: &Geometry) -> Keeps {
        Keeps::Nothing
    }

    /// One byte, because a message without a query is refused.
    fn query_bytes(&self, _: &Geometry) -> usize {
        1
    }

    fn answer_bytes(&self, geometry: &Geometry) -> usize {
        geometry.rows() * geometry.columns
    }

    fn operands(&self, geometry: &Geometry) -> Vec<Operand> {
        let bytes = Shape::new(Word::U8, vec![Modulus::Pow2_32]);
        let shape = Shape { m: MAX_GATHER, n: geometry.rows(), j: geometry.columns, ..bytes };
        vec![Operand { name: "records", layout: Layout::for_shape(&shape), shape, origin: Origin::Slots }]
    }

    fn preprocessing(&self, _: &Geometry) -> Vec<Run> {
        Vec::new()
    }

    fn answering(&self, geometry: &Geometry, _: usize) -> Vec<Run> {
        vec![Run { operand: 0, queries: MAX_GATHER, passes: geometry.columns.div_ceil(MAX_GATHER) as u64 }]
    }

    fn client_work(&self, geometry: &Geometry) -> ClientWork {
        ClientWork { masked: 0, products: 0, decoded: self.answer_bytes(geometry) }
    }

    fn groups(&self, _: u64, _: usize) -> u64 {
        1
    }

    fn preprocess(
        &self,
        _: &Params,
        _: &Device,
        _: &dyn Placed,
        _: &mut Preprocessing<'_>,
        _: &mut dyn Progress,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn server(
        &self,
        params: &Params,
        _: &Device,
        mut operands: Vec<Arc<dyn Placed>>,
    ) -> Result<Box<dyn SchemeServer>, Error> {
        Ok(Box::new(Everything { columns: params.geometry.columns, records: operands.remove(0) }))
    }

    fn client(&self, params: &Params, _: SharedBytes) -> Result<Client, Error> {
        Ok(Client::of(*params, Picks(params.geometry)))
    }
}

/// The server's half.
struct Everything {
    columns: usize,
    records: Arc<dyn Placed>,
}

impl SchemeServer for Everything {
    fn answer(&self, queries: &[&[u8]], _: &[&RegisteredKeys]) -> Result<(Vec<Vec<u8>>, Cost), Error> {
        let (mut table, mut cost) = (Vec::new(), Cost::default());
        for first in (0..self.columns).step_by(MAX_GATHER) {
            let columns = MAX_GATHER.min(self.columns - first);
            let mut units = vec![0u32; columns * self.columns];
            for i in 0..columns {
                units[i * self.columns + first + i] = 1;
            }
            let (answer, this) = self.records.run(&Words::U32(units))?;
            cost += &this;
            table.extend(answer.into_u32()?.into_iter().map(|word| word as u8));
        }
        Ok((vec![table; queries.len()], cost))
    }
}

/// The client's half.
struct Picks(Geometry);

impl SchemeClient for Picks {
    type Keys = ();
    type Prepared = ();
    type Pending = Selection;

    fn prepare(&self, (): &()) -> Result<(), Error> {
        Ok(())
    }

    fn query(&self, (): (), selection: &Selection) -> (Vec<u8>, Selection) {
        (vec![0], selection.clone())
    }

    /// Reads every byte of the answer, whatever was picked.
    fn decode(&self, selection: Selection, answer: &[u8]) -> Decoded {
        let Geometry { record_bytes, groups, .. } = self.0;
        let mut slot = Zeroizing::new(vec![0u8; record_bytes]);
        for (column, rows) in answer.chunks_exact(record_bytes * groups).enumerate() {
            let times = selection.columns().iter().fold(0u8, |n, c| n.wrapping_add(same(*c, column as u32)));
            for (group, bytes) in rows.chunks_exact(record_bytes).enumerate() {
                let times = times.wrapping_mul(same(selection.group(), group as u32));
                for (sum, byte) in slot.iter_mut().zip(bytes) {
                    *sum = sum.wrapping_add(byte.wrapping_mul(times));
                }
            }
        }
        Decoded { slot, damaged: false }
    }
}

/// 1 where two secrets are the same, else 0, without a branch.
fn same(a: u32, b: u32) -> u8 {
    let differ = std::hint::black_box(a ^ b);
    (1 ^ ((differ | differ.wrapping_neg()) >> 31)) as u8
}
