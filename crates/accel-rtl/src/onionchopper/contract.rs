//! The contract operation on a chip: which shapes it takes, the database laid out once, a pass for each gathered batch.

use std::sync::Arc;

use blindcore_accel::contract::Shape;
use blindcore_accel::{Contract, Cost, Database, Error, Layout, Placed, Words};

use super::chip::Chip;
use super::mapping::{Mapping, Plan};
use super::options::Options;

/// The most 64-bit words that a simulated SSD holds. The host keeps them twice, and a chip takes minutes for them.
pub(crate) const MAX_WORDS: usize = 1 << 26;

pub(super) struct ChipContract {
    chip: Arc<Chip>,
    options: Options,
    shape: Shape,
    mapping: Mapping,
    gathered: usize,
}

impl ChipContract {
    /// The contract operation of a shape that the chip's capabilities allow, if it fits the SSD.
    pub(super) fn new(chip: &Arc<Chip>, options: Options, shape: &Shape) -> Result<Self, Error> {
        let mapping = options.mapping.unwrap_or_else(|| Mapping::for_shape(shape, &chip.build));
        // As many queries in a pass as fit; fewer of them fit too.
        let plan = |m: usize| Plan::new(&Shape { m, ..shape.clone() }, &chip.build, mapping);
        let words = plan(1)?.words();
        if words > MAX_WORDS {
            let why = format!(
                "{words} words of 64 bits are over the {MAX_WORDS} of a simulated SSD; take a smaller table"
            );
            return Err(Error::Shape { shape: shape.to_string(), why });
        }
        let fits = |m: usize| plan(m).is_ok_and(|plan| plan.words() <= MAX_WORDS);
        let (mut gathered, mut over) = (1, shape.m + 1);
        while over - gathered > 1 {
            let middle = gathered.midpoint(over);
            if fits(middle) { gathered = middle } else { over = middle }
        }
        Ok(Self { chip: chip.clone(), options, shape: shape.clone(), mapping, gathered })
    }
}

impl Contract for ChipContract {
    fn layout(&self) -> Layout {
        Layout::for_shape(&self.shape)
    }

    fn place(&self, database: Database<'_>) -> Result<Arc<dyn Placed>, Error> {
        let shape = &self.shape;
        let layout = self.layout();
        let packed = match database {
            Database::Canonical(words) => {
                shape.check_database(words)?;
                layout.pack(shape, words)
            }
            Database::Packed(pieces) => {
                let mut packed = Vec::new();
                let stripe = layout.stripe_bytes(shape);
                for piece in &pieces {
                    let piece = (**piece).as_ref();
                    if piece.len() % stripe != 0 {
                        let want = format!("a multiple of its stripe, {stripe}");
                        let what = "a piece of the packed database";
                        return Err(Error::Length { what, got: piece.len(), want, unit: "bytes" });
                    }
                    packed.extend_from_slice(piece);
                }
                let want = stripe * layout.stripes(shape);
                if packed.len() != want {
                    let (got, want) = (packed.len(), want.to_string());
                    return Err(Error::Length { what: "packed database", got, want, unit: "bytes" });
                }
                packed
            }
        };
        // The word of a channel (c * d + coefficient), a column (n, q) and a depth (j, k).
        let width = shape.database.bytes();
        let word = |channel: usize, column: usize, deep: usize| {
            let at = layout.word_position(shape, column, channel / shape.d, deep, channel % shape.d);
            let mut word = [0u8; 8];
            word[..width].copy_from_slice(&packed[at..at + width]);
            u64::from_le_bytes(word)
        };
        // The chip flags what is not a residue; it is refused here, where it has a place to name.
        for channel in 0..shape.c() * shape.d {
            let modulus = shape.moduli[channel / shape.d];
            if modulus.max_residue() >= shape.database.max() {
                continue;
            }
            for column in 0..shape.rows() {
                for deep in 0..shape.depth() {
                    let value = word(channel, column, deep);
                    if value > modulus.max_residue() {
                        let (j, k, n, q) =
                            (deep / shape.k, deep % shape.k, column / shape.q, column % shape.q);
                        let (c, d) = (channel / shape.d, channel % shape.d);
                        let position = shape.database_index([j, n, k, q, c, d]);
                        let modulus = modulus.to_string();
                        return Err(Error::Residue { what: "database", value, position, modulus });
                    }
                }
            }
        }
        let shape = Shape { m: self.gathered, ..shape.clone() };
        let plan = Plan::new(&shape, &self.chip.build, self.mapping)?;
        Ok(Arc::new(ChipPlaced {
            database: plan.lay_database(word),
            bytes: packed.len(),
            chip: self.chip.clone(),
            options: self.options,
            shape: self.shape.clone(),
            plan,
        }))
    }

    fn gathered(&self) -> usize {
        self.gathered
    }
}

struct ChipPlaced {
    chip: Arc<Chip>,
    options: Options,
    shape: Shape,
    /// For as many queries as one pass gathers.
    plan: Plan,
    /// B as it lies in each of the SSD's tiles.
    database: Vec<Vec<u64>>,
    bytes: usize,
}

impl Placed for ChipPlaced {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The chip's order of use is not a layout.
    fn stripes(&self, _: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let why =
            "the chip keeps its database in its own order; read it from a device of the processor".into();
        Err(Error::Shape { shape: self.shape.to_string(), why })
    }

    fn run(&self, query: &Words) -> Result<(Words, Cost), Error> {
        let queries = self.shape.check_query(query)?;
        let mut answer = Words::zeros(self.shape.query_word(), self.shape.answer_len(queries));
        let mut cost = Cost::default();
        let gathered = self.plan.queries();
        for first in (0..queries).step_by(gathered) {
            let plan = self.plan.for_queries(gathered.min(queries - first), &self.chip.build)?;
            let pass = self.pass(&plan, query, first, &mut answer)?;
            cost += &Cost { database_bytes: self.bytes as u64, ..pass };
        }
        Ok((answer, cost))
    }
}

impl ChipPlaced {
    /// The queries from `first` on, as many as the plan gathers.
    fn pass(&self, plan: &Plan, query: &Words, first: usize, answer: &mut Words) -> Result<Cost, Error> {
        let shape = &self.shape;
        let stream = plan.stream(&self.database, |channel, row, deep| {
            let (m, p) = (first + row / shape.p, row % shape.p);
            let (c, d) = (channel / shape.d, channel % shape.d);
            query.get(shape.query_index([m, deep / shape.k, p, deep % shape.k, c, d]))
        });
        let mut out = vec![0; plan.out_words()];
        let mut descriptor = plan.descriptor.clone();
        descriptor.resident = self.options.resident;
        let cost = self.chip.run(&descriptor, self.options.ssd_rate, &stream, &mut out)?;
        let words = out.iter().flat_map(|word| plan.split(*word));
        for (word, at) in words.zip(plan.results()) {
            let Some((channel, column, row)) = at else { continue };
            let (m, p) = (first + row / shape.p, row % shape.p);
            let (c, d) = (channel / shape.d, channel % shape.d);
            let at = shape.answer_index([m, column / shape.q, p, column % shape.q, c, d]);
            match answer {
                Words::U32(answer) => answer[at] = word as u32,
                Words::U64(answer) => answer[at] = word,
                _ => unreachable!("answers have 32- or 64-bit words"),
            }
        }
        Ok(cost)
    }
}
