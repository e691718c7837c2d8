//! The suite of the contract operation.

use std::sync::Arc;

use blindcore_math::Modulus;

use super::Random;
use crate::contract::{self, ContractSlot, Placed, Shape, Window};
use crate::{Database, Device, Error, Layout, SharedBytes, Word, Words};

/// Primes at the edges of what kernels treat alike: 17 bits, just below 2^30, 2^31, 2^32, 2^47, 2^48, 2^50, 2^60,
/// 2^62.
const PRIMES: [u64; 9] = [
    65537,
    1_073_643_521,
    2_147_483_647,
    4_294_967_291,
    140_737_488_355_213,
    281_474_976_710_597,
    1_125_899_906_826_241,
    1_152_921_504_606_830_593,
    (1 << 62) - 57,
];

/// Runs the contract operation on every kind of shape that the device says it takes and compares each answer with the
/// definition; every other kind must be refused. Returns how many databases were placed.
///
/// # Panics
/// Names the shape and the first word that differs, or what the device says of itself that is not so.
pub fn contract(device: &Device) -> usize {
    let slot = device.slots().contract.as_deref().expect("a contract slot");
    let mut random = Random(0x5eed);
    let mut cases = 0;
    for shape in edge_shapes() {
        for fill in [Fill::Ones, Fill::Random, Fill::Zeros] {
            cases += usize::from(takes(device, slot, &shape) && check(device, &shape, fill, &mut random));
        }
    }
    for _ in 0..150 {
        let shape = random_shape(&mut random);
        let fill = if random.below(4) == 0 { Fill::Ones } else { Fill::Random };
        cases += usize::from(takes(device, slot, &shape) && check(device, &shape, fill, &mut random));
    }
    assert!(cases > 0, "{} takes no shape of this suite", device.name());
    refusals(device, slot);
    cases
}

/// Whether the slot says that it takes a shape; that it prepares it then, and else refuses it.
fn takes(device: &Device, slot: &dyn ContractSlot, shape: &Shape) -> bool {
    let (name, capabilities) = (device.name(), slot.capabilities());
    let said = slot.check(shape);
    if let Err(e) = capabilities.check(shape) {
        assert!(said.is_err(), "{name} says it takes {shape}, which its capabilities rule out: {e}");
    }
    match slot.prepare(shape) {
        Err(e) => assert!(said.is_err(), "{name} says it takes {shape}, and refuses it: {e}"),
        Ok(contract) => {
            assert!(said.is_ok(), "{name} takes {shape}, and says that it does not: {said:?}");
            assert!(capabilities.layouts.contains(&contract.layout()), "{name}, {shape}: an unnamed layout");
            assert!(
                (1..=shape.m).contains(&contract.gathered()),
                "{name}, {shape}: gathers none or too many"
            );
            assert_eq!(
                contract.streaming().is_some(),
                capabilities.streams,
                "{name}, {shape}: streams or not"
            );
        }
    }
    said.is_ok()
}

/// What an operand is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Zeros,
    /// Every word the largest that its modulus and width allow.
    Ones,
    Random,
}

fn edge_shapes() -> Vec<Shape> {
    let pow32 = vec![Modulus::Pow2_32];
    let bytes = |n, j, m| Shape { n, j, m, ..Shape::new(Word::U8, pow32.clone()) };
    let mut shapes = vec![
        bytes(1, 1, 1),
        bytes(15, 63, 2),
        bytes(16, 64, 1),
        bytes(17, 65, 3),
        bytes(33, 130, 5),
        bytes(100, 1000, 17),
        bytes(64, 4100, 16),
        bytes(37, 1025, 67),
        bytes(300, 2, 4),
        bytes(2, 3000, 1),
        Shape { p: 3, q: 5, k: 7, ..bytes(4, 9, 6) },
        Shape { d: 5, ..bytes(6, 7, 2) },
    ];
    let moduli = PRIMES.map(|p| Modulus::prime(p).expect("prime"));
    for modulus in moduli.into_iter().chain([Modulus::Pow2_32, Modulus::Pow2_64]) {
        for word in [Word::U8, Word::U16, Word::U32, Word::U40, Word::U48, Word::U64] {
            for (j, d) in [(1, 1), (67, 1), (3, 8), (5, 37), (70, 16)] {
                shapes.push(Shape { n: 3, m: 2, j, d, ..Shape::new(word, vec![modulus]) });
            }
        }
    }
    // SealPIR, FastPIR and OnionPIR in small (Table 3.2), and every kind of modulus at once.
    let two = vec![moduli[1], moduli[6]];
    shapes.push(Shape { n: 3, p: 2, j: 5, d: 64, ..Shape::new(Word::U64, two.clone()) });
    shapes.push(Shape { n: 3, p: 2, j: 4, k: 6, d: 40, ..Shape::new(Word::U64, two) });
    // A scan of a lookup with registered keys in small: of few outputs, and of as many as share lines.
    let short = Modulus::prime((1 << 40) - 87).expect("prime");
    for (n, j) in [(5, 21), (8, 5)] {
        shapes.push(Shape { m: 2, n, p: 2, j, d: 2048, ..Shape::new(Word::U40, vec![short]) });
    }
    for (word, modulus) in [
        (Word::U8, Modulus::Pow2_32),
        (Word::U16, moduli[0]),
        (Word::U32, moduli[3]),
        (Word::U40, moduli[6]),
        (Word::U48, moduli[8]),
        (Word::U64, moduli[7]),
        (Word::U64, Modulus::Pow2_64),
    ] {
        for (m, n, p, q, j, k, d) in
            [(1, 4, 1, 1, 3, 1, 32), (3, 11, 1, 2, 5, 2, 32), (1, 4, 1, 1, 130, 2, 32)]
        {
            let shape = Shape::new(word, vec![modulus, moduli[5]]);
            shapes.push(Shape { m, n, p, q, j, k, d, ..shape });
        }
    }
    // Runs of many stripes, and an odd number of queries.
    shapes.push(Shape { m: 5, n: 290, j: 2, d: 32, ..Shape::new(Word::U40, vec![short]) });
    // A packing pass in small.
    let below = Modulus::prime((1 << 48) - 59).expect("prime");
    shapes.push(Shape { m: 3, n: 2, j: 31, d: 2048, ..Shape::new(Word::U48, vec![below]) });
    for (word, modulus) in [
        (Word::U48, below),
        (Word::U48, moduli[1]),
        (Word::U40, moduli[1]),
        (Word::U64, moduli[8]),
        (Word::U32, Modulus::Pow2_32),
    ] {
        for (j, d, window) in [
            (1, 32, Window { period: 32, step: 0 }),
            (7, 64, Window { period: 64, step: 9 }),
            (63, 128, Window { period: 64, step: 1 }),
            (255, 512, Window { period: 256, step: 1 }),
            (130, 96, Window { period: 96, step: 95 }),
        ] {
            for m in [1, 2, 3, 7] {
                let shape = Shape { n: 2, m, j, d, window: Some(window), ..Shape::new(word, vec![modulus]) };
                shapes.push(shape);
            }
        }
    }
    // Many queries, which kernels take in groups and see parts of a row in turn; tiles that no group fits.
    for (word, modulus, m) in
        [(Word::U48, moduli[4], 17), (Word::U32, moduli[2], 5), (Word::U8, Modulus::Pow2_64, 4)]
    {
        let window = Some(Window { period: 160, step: 3 });
        shapes.push(Shape { n: 2, m, j: 150, d: 320, window, ..Shape::new(word, vec![modulus]) });
    }
    let window = Some(Window { period: 64, step: 4 });
    shapes.push(Shape {
        n: 2,
        p: 2,
        q: 3,
        m: 2,
        j: 15,
        d: 128,
        window,
        ..Shape::new(Word::U48, vec![below, moduli[1]])
    });
    shapes.push(Shape {
        n: 1,
        j: 9000,
        d: 32,
        window: Some(Window { period: 32, step: 5 }),
        ..Shape::new(Word::U48, vec![below])
    });
    let all = moduli.into_iter().chain([Modulus::Pow2_32, Modulus::Pow2_64]).collect();
    shapes.push(Shape { m: 2, n: 3, p: 2, q: 3, j: 3, k: 2, d: 9, ..Shape::new(Word::U64, all) });
    shapes
}

fn random_shape(random: &mut Random) -> Shape {
    let mut dimension = |max| 1 + random.below(max);
    let (m, n, p, q, j, k) =
        (dimension(5), dimension(20), dimension(3), dimension(3), dimension(40), dimension(3));
    let d = match dimension(12) {
        1..=6 => 1,
        7..=11 => dimension(33),
        _ => 32,
    };
    let kinds = dimension(3);
    let word = [Word::U8, Word::U8, Word::U16, Word::U32, Word::U40, Word::U48, Word::U64][dimension(7) - 1];
    let moduli = (0..kinds)
        .map(|_| match random.below(PRIMES.len() + 4) {
            0 | 1 => Modulus::Pow2_32,
            2 | 3 => Modulus::Pow2_64,
            i => Modulus::prime(PRIMES[i - 4]).expect("prime"),
        })
        .collect();
    Shape { m, n, p, q, j, k, d, ..Shape::new(word, moduli) }
}

fn operand(shape: &Shape, word: Word, len: usize, fill: Fill, random: &mut Random) -> Words {
    Words::from_fn(word, len, |i| {
        let max = shape.moduli[i / shape.d % shape.c()].max_residue().min(word.max());
        match fill {
            Fill::Zeros => 0,
            Fill::Ones => max,
            // One word in eight is the largest.
            Fill::Random if random.below(8) == 0 => max,
            Fill::Random if max == u64::MAX => random.next(),
            Fill::Random => random.next() % (max + 1),
        }
    })
}

fn check(device: &Device, shape: &Shape, fill: Fill, random: &mut Random) -> bool {
    let name = device.name();
    let fail = |e: Error| -> ! { panic!("{name}, {shape}, {fill:?}: {e}") };
    let database = operand(shape, shape.database, shape.database_len(), fill, random);
    let contract = device.contract(shape).unwrap_or_else(|e| fail(e));
    let canonical = contract.place(Database::Canonical(&database)).unwrap_or_else(|e| fail(e));

    // The same database in the device's own layout, in pieces that start anywhere a mapped shard may: at
    // 64-byte lines.
    let layout = contract.layout();
    let packed = layout.pack(shape, &database);
    let cut = layout.stripe_bytes(shape) * random.below(layout.stripes(shape) + 1);
    let pieces = [&packed[..cut], &packed[cut..]];
    let pieces = pieces.iter().filter(|p| !p.is_empty()).map(|p| aligned(p)).collect();
    let packed = contract.place(Database::Packed(pieces)).unwrap_or_else(|e| fail(e));

    for placed in [&canonical, &packed] {
        gives_back(&**placed, &layout.pack(shape, &database), layout.stripe_bytes(shape))
            .unwrap_or_else(|why| panic!("{name}, {shape}, {fill:?}: {why}"));
    }

    for m in [1, shape.m] {
        let query = operand(shape, shape.query_word(), shape.query_len(m), fill, random);
        let want = contract::reference(shape, &query, &database).unwrap_or_else(|e| fail(e));
        // Whole, and in pieces where several are gathered.
        let outputs = if m == 1 { shape.n } else { 1 + random.below(shape.n) };
        for (how, placed) in [("canonical", &canonical), ("packed", &packed)] {
            let (got, cost) = if how == "canonical" && m > 1 {
                let mut pieces = Pieces::new(shape, m);
                let cost = placed.run_in_pieces(&query, outputs, &mut |piece| pieces.add(piece));
                (pieces.whole(), cost.unwrap_or_else(|e| fail(e)))
            } else {
                placed.run(&query).unwrap_or_else(|e| fail(e))
            };
            if got != want {
                let at = (0..want.len()).find(|i| got.len() <= *i || got.get(*i) != want.get(*i));
                let word = at.map(|i| (i, got.get(i), want.get(i)));
                panic!(
                    "{name}, {shape}, {fill:?}, {how}, {m} gathered, by {outputs}: at, got, wanted: {word:?}"
                );
            }
            assert!(cost.database_bytes > 0, "{name} reports no bytes read");
        }
        // Handed over a few stripes at a time, none of it kept.
        let bytes = layout.pack(shape, &database);
        let Some(streaming) = contract.streaming() else { continue };
        let mut pieces = Pieces::new(shape, m);
        let mut pass = streaming.begin(&query, outputs).unwrap_or_else(|e| fail(e));
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let stripes = 1 + random.below(rest.len() / layout.stripe_bytes(shape));
            let (head, tail) = rest.split_at(stripes * layout.stripe_bytes(shape));
            let took = pass.take((*aligned(head)).as_ref(), &mut |piece| pieces.add(piece));
            took.unwrap_or_else(|e| fail(e));
            rest = tail;
        }
        let cost = pass.finish().unwrap_or_else(|e| fail(e));
        assert!(pieces.whole() == want, "{name}, {shape}, {fill:?}, streamed by {outputs}, {m} gathered");
        assert!(cost.database_bytes > 0, "{name} reports no bytes read");
    }
    true
}

/// An answer that comes in pieces.
struct Pieces<'a> {
    shape: &'a Shape,
    /// Of each query that is gathered, the outputs so far.
    parts: Vec<Vec<u64>>,
    keep: bool,
}

impl<'a> Pieces<'a> {
    fn new(shape: &'a Shape, gathered: usize) -> Self {
        Self { shape, parts: vec![Vec::new(); gathered], keep: false }
    }

    /// Keeps every other one, so that a device that goes on with its memory may not rely on it.
    fn add(&mut self, piece: &mut Words) {
        let kept = self.keep.then(|| piece.take());
        self.keep = !self.keep;
        let words = kept.as_ref().unwrap_or(piece);
        assert_eq!(words.word(), self.shape.query_word(), "{}", self.shape);
        let length = words.len() / self.parts.len();
        for (at, part) in self.parts.iter_mut().enumerate() {
            part.extend((at * length..(at + 1) * length).map(|i| words.get(i)));
        }
    }

    fn whole(self) -> Words {
        let words = self.parts.concat();
        Words::from_fn(self.shape.query_word(), words.len(), |i| words[i])
    }
}

/// That a database in place gives its stripes back as they lie, or none of them and an error; and stops when it is told to.
fn gives_back(placed: &dyn Placed, want: &[u8], stripe_bytes: usize) -> Result<(), &'static str> {
    let mut rest = want;
    let given = placed.stripes(&mut |piece| {
        assert!(!piece.is_empty() && piece.len().is_multiple_of(stripe_bytes), "stripes of another size");
        let (head, tail) = rest.split_at_checked(piece.len()).expect("more than was placed");
        assert!(head == piece, "stripes that are not those that were placed");
        rest = tail;
        Ok(())
    });
    if given.is_err() && rest.len() == want.len() {
        return Ok(());
    }
    if given.is_err() || !rest.is_empty() {
        return Err("it kept stripes back");
    }
    let mut pieces = 0;
    let stopped = placed.stripes(&mut |_| {
        pieces += 1;
        Err(Error::Stopped)
    });
    if stopped != Err(Error::Stopped) || pieces != 1 { Err("it went on after an error") } else { Ok(()) }
}

/// What no device may take: it must refuse, and not panic.
fn refusals(device: &Device, slot: &dyn ContractSlot) {
    let name = device.name();
    let shape = Shape { n: 20, j: 70, m: 2, ..Shape::new(Word::U8, vec![Modulus::Pow2_32]) };
    assert!(device.contract(&Shape { j: 0, ..shape.clone() }).is_err(), "{name} took an empty shape");
    if takes(device, slot, &shape) {
        refusals_of_bytes(device, &shape);
    }
    let prime = Shape { j: 3, ..Shape::new(Word::U64, vec![Modulus::prime(65537).expect("prime")]) };
    if takes(device, slot, &prime) {
        refusals_of_residues(device, &prime);
    }
    let narrow = Shape { j: 2, ..Shape::new(Word::U48, vec![Modulus::Pow2_64]) };
    if takes(device, slot, &narrow) {
        let contract = device.contract(&narrow).expect("an ordinary shape");
        let wide = Words::U64(vec![7, 1 << 48]);
        assert!(contract.place(Database::Canonical(&wide)).is_err(), "{name} took 49 bits for 48");
    }
}

fn refusals_of_bytes(device: &Device, shape: &Shape) {
    let name = device.name();
    let contract = device.contract(shape).expect("an ordinary shape");
    let short = Words::U8(vec![0; 20 * 70 - 1]);
    assert!(contract.place(Database::Canonical(&short)).is_err(), "{name} took a short database");
    let wide = Words::U16(vec![0; 20 * 70]);
    assert!(contract.place(Database::Canonical(&wide)).is_err(), "{name} took words too wide");
    let stripe = contract.layout().stripe_bytes(shape);
    let half = aligned(&vec![0u8; stripe + 64]);
    assert!(contract.place(Database::Packed(vec![half])).is_err(), "{name} took half a stripe");
    let placed = contract.place(Database::Canonical(&Words::U8(vec![0; 20 * 70]))).expect("fits");
    for len in [0, 69, 71, 3 * 70] {
        assert!(placed.run(&Words::U32(vec![0; len])).is_err(), "{name} took a query of {len} words");
    }
    assert!(placed.run(&Words::U64(vec![0; 70])).is_err(), "{name} took words too wide");
    let query = Words::U32(vec![1; 70]);
    if let Some(streaming) = contract.streaming() {
        let mut pass = streaming.begin(&query, shape.n).expect("it fits");
        let whole = aligned(&vec![0u8; 3 * stripe]);
        let whole = (*whole).as_ref();
        for bytes in [&whole[..0], &whole[..stripe - 64], whole] {
            assert!(
                pass.take(bytes, &mut |_| ()).is_err(),
                "{name} took {} B of stripes of {stripe} B",
                bytes.len()
            );
        }
        pass.take(&whole[..stripe], &mut |_| ()).expect("a stripe");
        assert!(
            pass.take(&whole[..2 * stripe], &mut |_| ()).is_err(),
            "{name} took more stripes than there are"
        );
        assert!(pass.finish().is_err(), "{name} answered before the last stripe");
        assert!(streaming.begin(&Words::U32(vec![0; 69]), 1).is_err(), "{name} took a query of 69 words");
    }
}

fn refusals_of_residues(device: &Device, prime: &Shape) {
    let name = device.name();
    let contract = device.contract(prime).expect("an ordinary shape");
    let bad = Words::U64(vec![1, 65537, 1]);
    assert!(contract.place(Database::Canonical(&bad)).is_err(), "{name} took a word that is not a residue");
    // The last word of each channel, so that it is known whose modulus is whose.
    let two = vec![Modulus::prime(12289).expect("prime"), prime.moduli[0]];
    let lanes = Shape { n: 8, d: 32, moduli: two, ..prime.clone() };
    for (shape, layout) in [(prime, Layout::Rows), (&lanes, Layout::Lanes8x4)] {
        let Ok(contract) = device.contract(shape) else { continue };
        assert_eq!(contract.layout(), layout, "{name}, {shape}");
        for c in 0..shape.c() {
            let mut packed = vec![0; layout.stripes(shape) * layout.stripe_bytes(shape)];
            let end = layout.stripe_bytes(shape) / shape.c() * (c + 1);
            packed[end - 8..end].copy_from_slice(&(shape.moduli[c].max_residue() + 1).to_le_bytes());
            let packed = aligned(&packed);
            if let Some(streaming) = contract.streaming() {
                let query = Words::U32(vec![0; shape.query_len(1)]);
                let mut pass = streaming.begin(&query, shape.n).expect("it fits");
                assert!(
                    pass.take((*packed).as_ref(), &mut |_| ()).is_err(),
                    "{name} took a streamed non-residue"
                );
            }
            let placed = contract.place(Database::Packed(vec![packed]));
            assert!(placed.is_err(), "{name} took a packed non-residue");
        }
    }
}

/// A copy that starts at a 64-byte line.
fn aligned(bytes: &[u8]) -> SharedBytes {
    const LINE: usize = 64;
    struct Lines(Vec<u8>, usize, usize);
    impl AsRef<[u8]> for Lines {
        fn as_ref(&self) -> &[u8] {
            &self.0[self.1..self.1 + self.2]
        }
    }
    let mut copy = vec![0u8; bytes.len() + LINE];
    let start = copy.as_ptr().align_offset(LINE);
    copy[start..start + bytes.len()].copy_from_slice(bytes);
    Arc::new(Lines(copy, start, bytes.len()))
}
