//! The operation that schemes share (Table 3.2): its dimensions, as real queries pass them to `contract`.
//!
//! Nothing is typed in: a small table is built under each scheme that is offered, and a query answered and decoded, on a device that
//! notes each pass. C and D are printed as passes have them: values of a polynomial are independent of each other, so that some
//! schemes have them lie as runs of a few values, each run a channel of its own; C times D is what compares.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_accel::contract::{Contract, ContractCapabilities, ContractSlot, Placed, Shape, Streaming};
use blindcore_accel::{Cost, Database, Device, Error, Layout, SharedBytes, Slots, Words};
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::schemes::offered;
use blindcore_lookup::{
    Client, Geometry, InsecureOnionPir2021, Params, Pending, RegisteredKeys, SchemeChoice, SchemeRef,
    Selection, Server, pack_group, plan, preprocess,
};
use blindcore_units::{Progress, Unit};
use serde_json::{Value, json};

use crate::table::Table;

/// Records of the tables, and bytes of each.
const RECORDS: u64 = 20_000;
const RECORD_BYTES: usize = 64;

/// Table 3.2's rows, by our schemes' names: M, N, P, Q, J, K, C, D.
const THESIS: [(&str, &str, [&str; 8]); 4] = [
    ("onionpir", "OnionPIR", ["1", "32 a GB", "2", "1", "256", "2", "2", "4096"]),
    ("sealpir", "SEALPIR", ["1", "sqrt(records)", "2", "1", "sqrt(records)", "1", "2", "4096"]),
    ("simple", "SimplePIR", ["sqrt(records)", "1", "1", "1", "sqrt(records)", "1", "1", "1"]),
    ("fastpir", "FastPIR", ["1", "columns", "2", "1", "plaintexts / column", "1", "2", "4096"]),
];

/// A pass, as the device was asked for it.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) shape: Shape,
    pub(super) queries: usize,
    pub(super) begun: Instant,
    pub(super) took: Duration,
}

impl Seen {
    /// M, N, P, Q, J, K, C and D.
    pub(super) fn dimensions(&self) -> [usize; 8] {
        let shape = &self.shape;
        [self.queries, shape.n, shape.p, shape.q, shape.j, shape.k, shape.c(), shape.d]
    }
}

/// What a device was asked for.
#[derive(Clone, Default)]
pub(super) struct Notes(Arc<Mutex<Vec<Seen>>>);

impl Notes {
    /// What was noted, of which nothing is left.
    pub(super) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A slot that notes each pass of another.
struct Noted {
    slot: Arc<dyn ContractSlot>,
    notes: Notes,
}

/// The CPU, and what it is asked for.
fn noted() -> anyhow::Result<(Device, Notes)> {
    let cpu = Cpu::open("cpu")?;
    let slot = cpu.slots().contract.clone().context("the CPU has no contract; report this")?;
    let notes = Notes::default();
    let contract: Arc<dyn ContractSlot> = Arc::new(Noted { slot, notes: notes.clone() });
    let slots = Slots { contract: Some(contract), ..cpu.slots().clone() };
    Ok((Device::new(cpu.description().clone(), slots), notes))
}

impl ContractSlot for Noted {
    fn capabilities(&self) -> ContractCapabilities {
        self.slot.capabilities()
    }

    fn prepare(&self, shape: &Shape) -> Result<Arc<dyn Contract>, Error> {
        Ok(Arc::new(NotedContract { contract: self.slot.prepare(shape)?, notes: self.notes.clone() }))
    }
}

struct NotedContract {
    contract: Arc<dyn Contract>,
    notes: Notes,
}

impl Contract for NotedContract {
    fn layout(&self) -> Layout {
        self.contract.layout()
    }

    fn gathered(&self) -> usize {
        self.contract.gathered()
    }

    fn place(&self, database: Database<'_>) -> Result<Arc<dyn Placed>, Error> {
        Ok(Arc::new(NotedPlaced { placed: self.contract.place(database)?, notes: self.notes.clone() }))
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        self.contract.streaming()
    }
}

/// A database in place, whose passes are noted.
pub(super) struct NotedPlaced {
    pub(super) placed: Arc<dyn Placed>,
    pub(super) notes: Notes,
}

impl Placed for NotedPlaced {
    fn shape(&self) -> &Shape {
        self.placed.shape()
    }

    fn run(&self, query: &Words) -> Result<(Words, Cost), Error> {
        let shape = self.shape().clone();
        let queries = query.len() / shape.query_len(1);
        let begun = Instant::now();
        let done = self.placed.run(query);
        let seen = Seen { shape, queries, begun, took: begun.elapsed() };
        self.notes.0.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        done
    }

    fn stripes(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.placed.stripes(take)
    }
}

/// A small table under a scheme: what is stored of it, and its hint.
pub(super) struct Small {
    params: Params,
    pub(super) stored: Vec<SharedBytes>,
    pub(super) hint: Arc<Vec<u8>>,
}

impl Small {
    pub(super) fn new(params: Params, device: &Device, progress: &mut dyn Progress) -> anyhow::Result<Self> {
        let geometry = params.geometry;
        let mut database = params.database_buffer();
        let mut slots = vec![0; geometry.columns * geometry.record_bytes];
        for group in 0..geometry.groups {
            for (column, slot) in slots.chunks_exact_mut(geometry.record_bytes).enumerate() {
                slot.copy_from_slice(&record(&params, (group * geometry.columns + column) as u64));
            }
            pack_group(&params, group, &slots, &mut database);
        }
        let first: SharedBytes = Arc::new(database);
        let mut hint = vec![0; params.hint_bytes() as usize];
        let derived = preprocess(&params, device, vec![first.clone()], &mut hint, progress)?;
        let derived = derived.into_iter().map(|operand| Arc::new(operand) as SharedBytes);
        let stored = [first].into_iter().chain(derived).collect();
        Ok(Self { params, stored, hint: Arc::new(hint) })
    }

    /// A server whose operands lie where `device` says for each.
    fn server<'a>(&self, device: &Device, on: impl Fn(usize) -> &'a Device) -> anyhow::Result<Server> {
        let place = |(at, (operand, bytes)): (usize, (_, &SharedBytes))| {
            let operand: blindcore_lookup::schemes::Operand = operand;
            on(at).contract(&operand.shape)?.place(Database::Packed(vec![bytes.clone()]))
        };
        let operands = self.params.stored_operands().zip(&self.stored).enumerate();
        Ok(Server::placed(self.params, device, operands.map(place).collect::<Result<_, _>>()?)?)
    }

    /// One lookup, by a real query that all of the servers answer: they have to answer it alike, with the record that was asked for.
    fn look_up(&self, servers: &[&Server]) -> anyhow::Result<()> {
        let question = Question::new(&self.params, &self.hint, self.params.geometry.slots() / 3)?;
        let answers = servers.iter().map(|server| question.answer(server)).collect::<Result<Vec<_>, _>>()?;
        anyhow::ensure!(answers.iter().all(|answer| *answer == answers[0]), "devices answer differently");
        question.check(&answers[0])
    }
}

/// Any records do, as long as no two are alike.
fn record(params: &Params, slot: u64) -> Vec<u8> {
    let number = slot.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..params.geometry.record_bytes as u64).map(|i| (number >> (i % 57)) as u8).collect()
}

/// A real query for a slot, and what its answer is read by.
pub(super) struct Question {
    params: Params,
    slot: u64,
    client: Client,
    keys: Option<RegisteredKeys>,
    query: Vec<u8>,
    pending: Pending,
}

impl Question {
    /// A client makes keys, if the scheme has them, and asks.
    pub(super) fn new(params: &Params, hint: &Arc<Vec<u8>>, slot: u64) -> anyhow::Result<Self> {
        let client = Client::new(*params, hint.clone())?;
        let selection = Selection::index(&params.geometry, slot)?;
        let made = params.registers_keys().then(|| params.make_keys()).transpose()?;
        let (prepared, keys) = match &made {
            Some(made) => {
                let secret = params.open_secret(&made.secret)?;
                (client.prepare_under(&secret)?, Some(params.open_registered(&made.public)?))
            }
            None => (client.prepare()?, None),
        };
        let (query, pending) = client.query(prepared, &selection)?;
        Ok(Self { params: *params, slot, client, keys, query, pending })
    }

    pub(super) fn answer(&self, server: &Server) -> anyhow::Result<Vec<u8>> {
        let keys: Vec<&RegisteredKeys> = self.keys.iter().collect();
        Ok(server.answer_under(&[&self.query], &keys)?.0.remove(0))
    }

    /// Refuses what is not the record.
    pub(super) fn check(self, answer: &[u8]) -> anyhow::Result<()> {
        let found = self.client.decode(self.pending, answer)?;
        let want = record(&self.params, self.slot);
        anyhow::ensure!(*found.slot == want, "an answer decoded to another record; report this");
        Ok(())
    }
}

/// The passes of a lookup under a scheme, which has to find the record that was asked for.
fn passes(scheme: SchemeRef) -> anyhow::Result<(Params, Vec<Seen>)> {
    let (device, notes) = noted()?;
    let params = plan(RECORDS, RECORD_BYTES, false, SchemeChoice::Only(scheme))?;
    let table = Small::new(params, &device, &mut ())?;
    let server = table.server(&device, |_| &device)?;
    // What preparing passed is not of the query.
    notes.take();
    table.look_up(&[&server])?;
    Ok((params, notes.take()))
}

/// A query of OnionPIR as it was published, whose first dimension a chip works out, and the CPU too: both answers have to be the same,
/// and decode to the record.
///
/// # Errors
/// The chip refuses the operation, or answers otherwise.
pub fn query_on(chip: &Device) -> anyhow::Result<()> {
    let cpu = Cpu::open("cpu")?;
    let scheme = InsecureOnionPir2021::for_measurements().scheme();
    let params = Params::new(scheme, Geometry { record_bytes: 64, groups: 2, columns: 4 })?;
    let table = Small::new(params, &cpu, &mut ())?;
    // Records are there to be read again, and no query goes over them.
    let on_chip = table.server(&cpu, |operand| if operand == 0 { &cpu } else { chip })?;
    let on_cpu = table.server(&cpu, |_| &cpu)?;
    table.look_up(&[&on_chip, &on_cpu])
}

/// Which of the table's operands a pass went over.
fn operand(params: &Params, seen: &Seen) -> &'static str {
    params.operands().iter().find(|operand| operand.shape == seen.shape).map_or("", |operand| operand.name)
}

/// Table 3.2, counted.
///
/// # Errors
/// A scheme can't hold the table, or a lookup finds another record: both are faults of this program.
pub fn table(progress: &mut dyn Progress) -> anyhow::Result<Table> {
    let schemes = offered();
    let names = ["M", "N", "P", "Q", "J", "K", "C", "D"];
    let mut text = format!(
        "# Table 3.2 of OnionChopper (Shay 2023): the operation that schemes share\n\n{RECORDS} records of {RECORD_BYTES} bytes; one real query of \
         each scheme, as it was passed to `contract`.\n\n| scheme | over | {} | C x D | products |\n|---|---|{}---|---|\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    let mut rows = Vec::new();
    for (at, scheme) in schemes.iter().enumerate() {
        progress.at("looking up", at as u64, Some(schemes.len() as u64), Unit::Items);
        let (params, seen) = passes(*scheme).with_context(|| format!("{scheme}"))?;
        for seen in &seen {
            let (shape, over) = (&seen.shape, operand(&params, seen));
            let dimensions = seen.dimensions();
            let products: u128 = dimensions.iter().map(|bound| *bound as u128).product();
            let shown = dimensions.map(|bound| bound.to_string()).join(" | ");
            text += &format!("| {scheme} | {over} | {shown} | {} | {products} |\n", shape.c() * shape.d);
            let named: serde_json::Map<String, Value> = names
                .iter()
                .zip(dimensions)
                .map(|(name, bound)| ((*name).to_owned(), bound.into()))
                .collect();
            rows.push(json!({
                "scheme": scheme, "over": over, "dimensions": named, "products": products as f64,
                "thesis": THESIS.iter().find(|row| row.0 == scheme.name()).map(|row| row.2),
            }));
        }
    }
    text += &format!("\n| thesis | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for (_, title, formulas) in THESIS {
        text += &format!("| {title} | {} |\n", formulas.join(" | "));
    }
    text += "| MulPIR | not this operation: relinearisation |||||||\n\n";
    let notes = [
        "M counts gathered queries, of which there is one; the thesis has SimplePIR's database as A, so its M is our N.",
        "Words that lie as runs are channels of a few values each: C x D is the polynomial's values for all its primes.",
        "What follows a first dimension (folding, the second dimension, rotations, products of ciphertexts) is no contract here.",
    ];
    notes.iter().for_each(|note| text += &format!("- {note}\n"));
    Ok(Table { document: json!({"rows": rows, "notes": notes}), text, notes: Vec::new() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

    use blindcore_accel_rtl::onionchopper::OnionChopper;

    use super::*;

    #[test]
    fn a_query_of_onionpir_is_answered_by_the_chip() {
        match OnionChopper::open("rtl:onionchopper") {
            Ok(chip) => query_on(&chip.device()).unwrap(),
            Err(e) => {
                assert!(std::env::var_os("BLINDCORE_RTL").is_none(), "{e}");
                eprintln!("skipped: {e}");
            }
        }
    }

    /// What the model takes for transforms of a lookup is what a scheme declares. Here they are counted in a real answer.
    #[test]
    fn declared_transforms_are_those_of_a_real_answer() {
        let one = Cpu::with_threads("cpu", 1).unwrap();
        let scheme = "onionpir2".parse().unwrap();
        for (records, bytes) in [(RECORDS, RECORD_BYTES), (2_000, 256)] {
            let params = plan(records, bytes, false, SchemeChoice::Only(scheme)).unwrap();
            let table = Small::new(params, &one, &mut ()).unwrap();
            let server = table.server(&one, |_| &one).unwrap();
            let question = Question::new(&params, &table.hint, records / 3).unwrap();
            let (answer, profile) = blindcore_rlwe::profile(|| question.answer(&server));
            question.check(&answer.unwrap()).unwrap();
            let counts = |of: blindcore_rlwe::Operations| (of.transforms.count, of.products.count);
            let (within, elsewhere) = (counts(profile.within), counts(profile.elsewhere));
            // A product with its sum counts as a third of a transform.
            let counted = (within.0 + elsewhere.0) as f64 + (within.1 + elsewhere.1) as f64 / 3.0;
            let declared = params.ring_work().answering;
            assert!((0.7..1.4).contains(&(declared / counted)), "{declared} declared, {counted} counted");
        }
    }

    #[test]
    fn every_scheme_passes_an_operation_over_what_it_keeps() {
        let table = table(&mut ()).unwrap();
        for scheme in offered() {
            let rows = table.document["rows"].as_array().unwrap();
            let of: Vec<_> = rows.iter().filter(|row| row["scheme"] == scheme.name()).collect();
            assert!(!of.is_empty(), "{scheme}");
            for row in of {
                // It is an operation over an operand that the scheme names, and no smaller than the records.
                assert!(row["over"] != "" && row["products"].as_f64().unwrap() >= 1000.0, "{row}");
            }
        }
    }
}
