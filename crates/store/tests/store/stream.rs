//! Matrices streamed from files: the bits that they give in memory, and errors with a name.

use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use blindcore_accel::contract::{ContractCapabilities, ContractSlot, Shape};
use blindcore_accel::{
    Contract, Database, Description, Device, Error, Layout, Operation, Placed, SharedBytes, Slots, Word,
    Words,
};
use blindcore_accel_cpu::Cpu;
use blindcore_lookup::{Client, SchemeChoice, Selection, Server, preprocess_placed, schemes};
use blindcore_math::Modulus;
use blindcore_store::{
    BuildOptions, Checksum, Shard, SourceSpec, StoreError, Stored, StreamOptions, Streamed, Value, build,
    codec, tile_sums,
};
use proptest::prelude::*;

fn device() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(|| Cpu::with_threads("cpu", 2).unwrap())
}

/// Fewer pieces lie in memory where stripes are longer than one, but two always.
#[test]
fn longer_stripes_take_no_more_memory() {
    let options = StreamOptions::default();
    let room = options.memory_bytes(1 << 20);
    for stripe in [5 << 20, 9 << 20, 13 << 20] {
        assert!(options.memory_bytes(stripe) <= room, "{stripe}");
    }
    assert!((200 << 20..201 << 20).contains(&options.memory_bytes(100 << 20)));
}

/// Every way of reading that a machine may have or lack. Small pieces, so that small files have many.
fn ways() -> impl Iterator<Item = StreamOptions> {
    [(true, true), (true, false), (false, true), (false, false)]
        .into_iter()
        .map(|(uring, direct)| StreamOptions { piece_bytes: 5000, pieces: 3, uring, direct })
}

fn shape(rows: usize, columns: usize) -> Shape {
    Shape { n: rows, j: columns, m: 16, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) }
}

/// Words that have nothing to do with each other.
fn noise(word: Word, len: usize, seed: u64) -> Words {
    Words::from_fn(word, len, |i| {
        let mut h = (i as u64 ^ seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h ^ (h >> 27)
    })
}

/// A matrix in files of this many stripes each, and in memory.
struct Made {
    shape: Shape,
    paths: Vec<PathBuf>,
    packed: Vec<u8>,
    stripes: Vec<usize>,
}

/// Bytes before the stripes of the files that these tests make; those of a database have 4096.
const START: u64 = 4096;

impl Made {
    fn new(dir: &Path, shape: Shape, stripes: &[usize]) -> Self {
        let database = noise(Word::U8, shape.database_len(), 1);
        let packed = Layout::for_shape(&shape).pack(&shape, &database);
        let paths = (0..stripes.len()).map(|i| dir.join(format!("{i}.shard"))).collect();
        let made = Self { shape, paths, packed, stripes: stripes.to_vec() };
        made.write();
        made
    }

    fn write(&self) {
        let stripe = Layout::for_shape(&self.shape).stripe_bytes(&self.shape);
        let mut rest = &self.packed[..];
        for (path, stripes) in self.paths.iter().zip(&self.stripes) {
            let (bytes, after) = rest.split_at(stripes * stripe);
            // Into the same file: a reader that has it open sees it.
            let mut file = File::options().create(true).write(true).truncate(true).open(path).unwrap();
            file.write_all(&vec![9; START as usize]).unwrap();
            file.write_all(bytes).unwrap();
            rest = after;
        }
        assert!(rest.is_empty(), "the shards make the matrix");
    }

    fn stream(&self, options: StreamOptions) -> Result<Streamed, StoreError> {
        self.stream_compared(options, |bytes| Checksum::Tiles(tile_sums(bytes).collect()))
    }

    fn stream_compared(
        &self,
        options: StreamOptions,
        checksum: fn(&[u8]) -> Checksum,
    ) -> Result<Streamed, StoreError> {
        let shards = self.paths.iter().map(|path| {
            let bytes = std::fs::read(path).unwrap();
            let (file, checksum) = (File::open(path).unwrap(), checksum(&bytes[START as usize..]));
            Shard { path: path.clone(), file, bytes: START..bytes.len() as u64, checksum }
        });
        Streamed::open(device(), &self.shape, shards.collect(), options)
    }

    fn in_memory(&self) -> Arc<dyn Placed> {
        let bytes: SharedBytes = Arc::new(self.packed.clone());
        device().contract(&self.shape).unwrap().place(Database::Packed(vec![bytes])).unwrap()
    }

    fn query(&self, gathered: usize) -> Words {
        noise(Word::U32, self.shape.query_len(gathered), gathered as u64)
    }

    fn check(&self, streamed: &Streamed) {
        for gathered in [1, 3, 16] {
            let query = self.query(gathered);
            let (want, _) = self.in_memory().run(&query).unwrap();
            let (got, cost) = streamed.run(&query).unwrap();
            assert!(got == want, "{}, {gathered} gathered, {}", streamed.reader(), self.shape);
            assert!(cost.database_bytes >= self.packed.len() as u64);
        }
    }
}

#[test]
fn every_way_of_reading_gives_the_bits_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    // Stripes of 3 KiB: pieces of one, whose ends are not ends of blocks.
    let made = Made::new(dir.path(), shape(16 * 23 - 5, 130), &[7, 1, 15]);
    for options in ways() {
        let streamed = made.stream(options).unwrap();
        let kind = if options.uring { "io_uring" } else { "read" };
        assert!(streamed.reader().starts_with(kind) || streamed.reader().contains("no io_uring"));
        assert!(options.direct || streamed.reader().ends_with("cached"), "{}", streamed.reader());
        assert_eq!(streamed.bytes(), made.packed.len() as u64);
        made.check(&streamed);
        let mut seen = Vec::new();
        let each = &mut |bytes: &[u8]| {
            seen.extend_from_slice(bytes);
            Ok(())
        };
        streamed.scan(each).unwrap();
        assert!(seen == made.packed, "{}", streamed.reader());
    }
}

#[test]
fn a_stripe_may_be_larger_than_a_piece_and_a_matrix_smaller() {
    let dir = tempfile::tempdir().unwrap();
    for (rows, columns, stripes) in [(40, 5000, &[1, 2][..]), (1, 1, &[1])] {
        let made = Made::new(dir.path(), shape(rows, columns), stripes);
        for options in ways() {
            made.check(&made.stream(options).unwrap());
            made.check(&made.stream(StreamOptions { piece_bytes: 1, pieces: 0, ..options }).unwrap());
            made.check(&made.stream(StreamOptions { piece_bytes: 1 << 30, ..options }).unwrap());
        }
        made.check(&made.stream(StreamOptions::default()).unwrap());
    }
}

#[test]
fn a_damaged_file_is_named_by_every_pass() {
    let dir = tempfile::tempdir().unwrap();
    let made = Made::new(dir.path(), shape(16 * 9, 130), &[4, 2, 3]);
    let query = made.query(2);
    let compared: [fn(&[u8]) -> Checksum; 2] = [
        |bytes| Checksum::Whole(*blake3::hash(bytes).as_bytes()),
        |bytes| Checksum::Tiles(tile_sums(bytes).collect()),
    ];
    for (damaged, path) in made.paths.iter().enumerate() {
        for (options, checksum) in ways().flat_map(|options| compared.map(|checksum| (options, checksum))) {
            let streamed = made.stream_compared(options, checksum).unwrap();
            let good = std::fs::read(path).unwrap();
            let overwrite =
                |bytes: &[u8]| File::options().write(true).open(path).unwrap().write_all(bytes).unwrap();
            // Before anybody asked, and between two who do.
            for at in [good.len() - 1, START as usize, (good.len() + START as usize) / 2] {
                let mut bad = good.clone();
                bad[at] ^= 0x80;
                overwrite(&bad);
                for _ in 0..2 {
                    let error = streamed.run(&query).unwrap_err().to_string();
                    let name = format!("{damaged}.shard is damaged");
                    assert!(error.contains(&name), "{error}");
                }
                overwrite(&good);
                made.check(&streamed);
            }
        }
    }
}

#[test]
fn threads_share_a_streamed_matrix() {
    let dir = tempfile::tempdir().unwrap();
    let made = Made::new(dir.path(), shape(300, 200), &[10, 9]);
    for options in ways() {
        let streamed = made.stream(options).unwrap();
        std::thread::scope(|s| (0..3).for_each(|_| drop(s.spawn(|| made.check(&streamed)))));
    }
}

#[test]
fn a_file_that_is_cut_fails_the_pass_by_name_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let made = Made::new(dir.path(), shape(16 * 40, 130), &[20, 20]);
    let stripe = Layout::for_shape(&made.shape).stripe_bytes(&made.shape) as u64;
    for options in ways() {
        let streamed = made.stream(options).unwrap();
        let query = made.query(2);
        // Within a stripe, between two, between two blocks, to nothing.
        for len in [START + 7 * stripe + 100, START + 8 * stripe, START + 4096, 0] {
            let cut = File::options().write(true).open(&made.paths[1]).unwrap();
            cut.set_len(len).unwrap();
            let error = streamed.run(&query).unwrap_err();
            let Error::Read { path, offset, why } = &error else { panic!("{error}") };
            assert_eq!(*path, made.paths[1]);
            assert!(*offset <= START + 9 * stripe && why.contains("ends there"), "{error}");
            made.write();
            made.check(&streamed);
        }
        // The computation fails, or panics: what was read ahead is given up, and the next pass is whole.
        let mut pieces = 0;
        let stop = |_: &[u8]| {
            pieces += 1;
            if pieces == 2 {
                Err(Error::Unsupported { name: "a".into(), operation: Operation::Contract })
            } else {
                Ok(())
            }
        };
        assert!(streamed.scan(&mut { stop }).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| streamed.scan(&mut |_| panic!("on purpose")))).is_err());
        made.check(&streamed);
    }
}

#[test]
fn what_can_not_be_streamed_is_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let made = Made::new(dir.path(), shape(100, 100), &[3, 4]);
    let refused = |words: &str| {
        let error = made.stream(StreamOptions::default()).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    };
    let file = File::options().write(true).open(&made.paths[0]).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len - 1).unwrap();
    refused("not stripes of 2048 bytes");
    file.set_len(len - 2048).unwrap();
    refused("bytes where the matrix has");
    file.set_len(START).unwrap();
    refused("not stripes");
}

/// A device that takes no stripes, as simulated hardware does not.
struct Placing(Device);

struct PlacingContract(Arc<dyn Contract>);

impl ContractSlot for Placing {
    fn capabilities(&self) -> ContractCapabilities {
        let cpu = self.0.slots().contract.as_ref().unwrap();
        ContractCapabilities { streams: false, ..cpu.capabilities() }
    }

    fn prepare(&self, shape: &Shape) -> Result<Arc<dyn Contract>, Error> {
        Ok(Arc::new(PlacingContract(self.0.contract(shape)?)))
    }
}

impl Contract for PlacingContract {
    fn layout(&self) -> Layout {
        self.0.layout()
    }

    fn gathered(&self) -> usize {
        self.0.gathered()
    }

    fn place(&self, database: Database<'_>) -> Result<Arc<dyn Placed>, Error> {
        self.0.place(database)
    }
}

#[test]
fn a_device_that_takes_no_stripes_says_so_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let made = Made::new(dir.path(), shape(10, 10), &[1]);
    let file = File::open(&made.paths[0]).unwrap();
    let shard = Shard {
        path: made.paths[0].clone(),
        bytes: START..file.metadata().unwrap().len(),
        file,
        checksum: Checksum::Nothing,
    };
    let contract = Some(Arc::new(Placing(device().clone())) as _);
    let description = Description { name: "placing".into(), ..device().description().clone() };
    let device = Device::new(description, Slots { contract, ..Slots::default() });
    let error = Streamed::open(&device, &made.shape, vec![shard], StreamOptions::default()).err().unwrap();
    assert!(error.to_string().contains("\"placing\" takes no database from a disk"), "{error}");
}

/// A table through both schemes: the matrix on its disk and in memory give the same answers, which hold its rows.
#[test]
fn lookups_in_a_streamed_database() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..4000).map(|i| format!("{i},{}\n", i % 97)).collect();
    std::fs::write(dir.path().join("t.csv"), "id,n\n".to_owned() + &rows).unwrap();
    for scheme in schemes::offered().into_iter().map(SchemeChoice::Only) {
        let options = BuildOptions {
            values: Some(vec!["n".into()]),
            scheme,
            proofs: blindcore_store::ProofChoice::Without,
            directory: false,
            force: true,
            memory: 1 << 20,
            ..BuildOptions::new(
                SourceSpec::parse(dir.path().join("t.csv").to_str().unwrap()).unwrap(),
                dir.path().join("db"),
            )
        };
        build(&options, device(), &mut ()).unwrap();
        let part = Stored::open(&options.out).unwrap().records;
        let memory = Server::new(part.params, device(), part.operands()).unwrap();
        let client = Client::new(part.params, part.hint.clone()).unwrap();
        let keys = part.params.registers_keys().then(|| {
            let made = part.params.make_keys().unwrap();
            let secret = part.params.open_secret(&made.secret).unwrap();
            (secret, part.params.open_registered(&made.public).unwrap())
        });
        let under =
            |queries: usize| keys.iter().map(|(_, keys)| keys).cycle().take(queries).collect::<Vec<_>>();
        let asked: Vec<_> = [0u64, 1234, 3999]
            .map(|i| {
                let selection = Selection::index(&part.params.geometry, i).unwrap();
                let prepared = match &keys {
                    Some((secret, _)) => client.prepare_under(secret),
                    None => client.prepare(),
                };
                client.query(prepared.unwrap(), &selection).unwrap()
            })
            .into();
        let queries: Vec<&[u8]> = asked.iter().map(|(query, _)| &query[..]).collect();
        let want = memory.answer_under(&queries, &under(3)).unwrap().0;
        for options in ways() {
            let mut operands = vec![part.stream(device(), options).unwrap()];
            operands.extend(part.stream_derived(device(), options).unwrap());
            let operands = operands.into_iter().map(|operand| Arc::new(operand) as _).collect();
            let server = Server::placed(part.params, device(), operands).unwrap();
            assert!(server.answer_under(&queries, &under(3)).unwrap().0 == want);
            assert!(server.answer_under(&queries[1..2], &under(1)).unwrap().0 == want[1..2]);
        }
        // The hint that was made is that of passes of 64 columns over the disk, and of 192 over memory.
        let streamed = part.stream(device(), StreamOptions::default()).unwrap();
        let mut hint = vec![0; part.params.hint_bytes() as usize];
        let made = preprocess_placed(&part.params, device(), &streamed, &mut hint, &mut ()).unwrap();
        // A scheme that draws its seed once the records are fixed makes other operands each time.
        let mut twice = vec![0; hint.len()];
        preprocess_placed(&part.params, device(), &streamed, &mut twice, &mut ()).unwrap();
        if hint == twice {
            assert!(hint == (*part.hint).as_ref());
            let kept: Vec<&[u8]> = part.derived.iter().map(|operand| (**operand).as_ref()).collect();
            assert!(made.iter().map(|d| &**d).eq(kept.iter().copied()));
            let wide = Shape { m: 192, ..part.params.records().shape };
            let placed =
                device().contract(&wide).unwrap().place(Database::Packed(part.shards.clone())).unwrap();
            let mut again = vec![0; hint.len()];
            let made = preprocess_placed(&part.params, device(), &*placed, &mut again, &mut ()).unwrap();
            assert!(again == hint && made.iter().map(|d| &**d).eq(kept.iter().copied()));
        }
        for ((_, pending), (answer, i)) in asked.into_iter().zip(want.iter().zip([0, 1234, 3999])) {
            let record = client.decode(pending, answer).unwrap().slot;
            assert_eq!(codec::decode_record(&record, 1).unwrap(), [Value::Text((i % 97).to_string())]);
        }
        let small = shape(10, 10);
        let other = || Made::new(dir.path(), small.clone(), &[1]).in_memory();
        let right = || -> Vec<Arc<dyn Placed>> {
            let mut operands = vec![part.stream(device(), StreamOptions::default()).unwrap()];
            operands.extend(part.stream_derived(device(), StreamOptions::default()).unwrap());
            operands.into_iter().map(|operand| Arc::new(operand) as _).collect()
        };
        for place in 0..right().len() {
            let mut operands = right();
            operands[place] = other();
            assert!(Server::placed(part.params, device(), operands).is_err(), "an operand of another shape");
            let mut operands = right();
            operands.remove(place);
            assert!(Server::placed(part.params, device(), operands).is_err(), "an operand is missing");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_size_in_any_pieces(
        columns in 1usize..700,
        stripes in prop::collection::vec(1usize..9, 1..5),
        missing in 0usize..16,
        piece_bytes in 1usize..40_000,
        pieces in 0usize..6,
        uring: bool,
        direct: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let rows = 16 * stripes.iter().sum::<usize>() - missing;
        let made = Made::new(dir.path(), shape(rows, columns), &stripes);
        made.check(&made.stream(StreamOptions { piece_bytes, pieces, uring, direct }).unwrap());
    }
}
