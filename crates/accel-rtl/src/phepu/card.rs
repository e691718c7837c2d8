//! A card of simulated chips, and the words between it and the host.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use super::compiler::{Body, Packet, Stream};
use blindcore_accel::bigmod::Residues;
use blindcore_accel::{Description, Error};
use zeroize::{Zeroize, Zeroizing};

use super::context::{Context, DIGIT, Rows, get, put};
pub use super::library::Build;
use super::library::{Board, Out, WORD};
use super::report::{CardReport, ChipReport, ElementReport, Run};

/// A device: its name, its library's file, what it is, and its chips.
type Entry = (&'static str, &'static str, &'static str, usize);

const DEVICES: [Entry; 2] = [
    ("rtl:phepu", "phepu", "one PH-EPU: 16 processing elements for numbers of up to 4096 bits", 1),
    ("rtl:phepu-card", "phepu-card", "the paper's card: 8 PH-EPU behind PCIe and DDR3 memory", 8),
];

/// How a card is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardSettings {
    /// Bits that PCIe carries a clock, in and out together; 0: any.
    pub pcie: u32,
    /// Bits that the card's DDR memory carries a clock, in and out together; 0: any.
    pub ddr: u32,
    /// Bits that each chip's link carries a clock, each way; 0: any.
    pub link: u32,
    /// Clocks without progress after which the elements that are waited for fail; at least 1.
    pub watchdog: u32,
}

impl CardSettings {
    /// Links that cost no time: what chips alone take.
    pub const UNBOUND: CardSettings = CardSettings { pcie: 0, ddr: 0, link: 0, watchdog: 1 << 16 };

    /// The paper's card (Fig. 15.4.7) at 500 MHz: PCIe of 32 Gb/s, DDR3 of 100 Gb/s, 12.5 Gb/s off the chip.
    pub const PAPER: CardSettings = CardSettings { pcie: 64, ddr: 200, link: 25, watchdog: 1 << 16 };
}

/// Bits a clock that a link is told at most.
const MAX_RATE: u32 = 65_535;

/// A simulated card.
pub struct Card {
    name: &'static str,
    what: &'static str,
    path: PathBuf,
    build: Build,
    settings: CardSettings,
    board: Mutex<Board>,
}

impl Card {
    /// The names of the cards that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DEVICES.iter().map(|(name, ..)| *name)
    }

    /// Opens a card with links that cost no time.
    ///
    /// # Errors
    /// There is no such device, or its library has not been built.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::with_settings(name, CardSettings::UNBOUND)
    }

    /// Opens a card that is run another way.
    ///
    /// # Errors
    /// As [`Card::open`]; or a rate is over 65,535 bits a clock, or the watchdog has no clocks.
    pub fn with_settings(name: &str, settings: CardSettings) -> Result<Self, Error> {
        let Some((name, file, what, chips)) = DEVICES.into_iter().find(|(n, ..)| *n == name) else {
            return Err(crate::library::unknown(name, Self::names()));
        };
        if settings.watchdog == 0 {
            return Err(Error::setting(name, "a watchdog of 0 clocks ends every run; use 65536"));
        }
        for (what, rate) in
            [("PCIe", settings.pcie), ("the DDR memory", settings.ddr), ("a link", settings.link)]
        {
            if rate > MAX_RATE {
                let why = format!(
                    "{what} of {rate} bits a clock is out of range; use 1 to {MAX_RATE}, or 0 for any"
                );
                return Err(Error::setting(name, why));
            }
        }
        let path = crate::find(name, file)?;
        let board = Board::open(name, &path, chips)?;
        let build = board.build();
        Ok(Self { name, what, path, build, settings, board: Mutex::new(board) })
    }

    /// The name that opens it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, in words.
    #[must_use]
    pub fn describe(&self) -> Description {
        Description {
            name: self.name.into(),
            hardware: format!("{}, simulated from {}", self.what, self.path.display()),
            threads: 1,
            why: "asked for by name".into(),
        }
    }

    /// What it has.
    #[must_use]
    pub fn build(&self) -> Build {
        self.build
    }

    /// How it is run.
    #[must_use]
    pub fn settings(&self) -> CardSettings {
        self.settings
    }

    /// Runs a stream on numbers modulo `context`'s, from a reset to every chip's report: its inputs are positions in
    /// `residues`, and its tags have to be 0 to n - 1, each once, for n outputs.
    ///
    /// An element that fails says so in its report and does not hold up the others: see [`Run::whole`].
    ///
    /// # Errors
    /// Residues are not `context`'s, or the stream is not: it has other digits, or more chips than there are, or names
    /// residues or tags that are out of range; or the card came to no end, or to what no card answers.
    pub fn run(&self, stream: &Stream, context: &Context, residues: &Residues) -> Result<Run, Error> {
        let rows = context.rows(residues)?;
        let plan = Plan::new(&self.build, &self.settings, stream, context, rows)?;
        let mut out = vec![Out::default(); plan.out_words(&self.build)];
        let settings = &self.settings;
        let settings = [settings.pcie, settings.ddr, settings.link, settings.watchdog];
        let mut board = self.board();
        let ended = board.run(settings, &plan.masks, &plan.words, &mut out, plan.most);
        let run = match ended.code {
            0 => usize::try_from(ended.count)
                .ok()
                .and_then(|count| out.get(..count))
                .map_or(Err("it says that more came out than fits"), |out| {
                    plan.results(self.name, &self.build, context, out, ended.counters)
                }),
            1 => Err("it never came to an end"),
            2 => Err("more came out than it was told to send"),
            _ => Err("it ended as no card does"),
        };
        out.iter_mut().for_each(|out| out.word.zeroize());
        run.map_err(|what| {
            board.renew();
            let (device, code) = (self.name.into(), ended.code.into());
            Error::Hardware { device, code, what, remedy: "report this as a defect of blindcore" }
        })
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(|poisoned| {
            let mut board = poisoned.into_inner();
            board.renew(); // a thread that panicked may have left it busy
            board
        })
    }
}

/// An output that a chip is told to send.
struct Store {
    element: u32,
    tag: u32,
}

/// A stream as the card is sent it.
struct Plan {
    masks: Vec<u32>,
    words: Zeroizing<Vec<[u32; WORD]>>,
    /// Chip by chip, the outputs in the order in which they leave it.
    stores: Vec<Vec<Store>>,
    /// Whether each chip is sent anything.
    used: Vec<bool>,
    /// How often each is told to end.
    ends: Vec<usize>,
    outputs: usize,
    digits: usize,
    /// Clocks by which it is done, had nothing ever overlapped.
    most: u64,
}

impl Plan {
    fn new(
        build: &Build,
        settings: &CardSettings,
        stream: &Stream,
        context: &Context,
        rows: &Rows,
    ) -> Result<Self, Error> {
        let length = |what, got: usize, want: String, unit| Err(Error::Length { what, got, want, unit });
        if stream.digits != context.digits() {
            let want = context.digits().to_string();
            return length("the stream's modulus", stream.digits, want, "digits");
        }
        if stream.chips > build.chips {
            return length("the stream", stream.chips, format!("at most {}", build.chips), "chips");
        }
        let mut plan = Self {
            masks: Vec::new(),
            words: Zeroizing::new(Vec::with_capacity(
                stream.packets.iter().map(|p| 1 + p.words(stream.digits)).sum(),
            )),
            stores: (0..build.chips).map(|_| Vec::new()).collect(),
            used: vec![false; build.chips],
            ends: vec![0; build.chips],
            outputs: 0,
            digits: stream.digits,
            most: 0,
        };
        for packet in &stream.packets {
            if packet.chips == 0 || packet.chips >> stream.chips != 0 {
                let want = format!("some of its {} chips", stream.chips);
                return length("the stream", packet.chips as usize, want, "as a packet's mask");
            }
            plan.packet(packet, context, rows)?;
        }
        for (ends, used) in plan.ends.iter().zip(&plan.used) {
            if *ends != usize::from(*used) {
                return length("the stream", *ends, "one for each of its chips".into(), "ends");
            }
        }
        plan.outputs = plan.stores.iter().map(Vec::len).sum();
        let mut seen = vec![false; plan.outputs];
        for store in plan.stores.iter().flatten() {
            match seen.get_mut(store.tag as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    let want = format!("each number below {} once", plan.outputs);
                    return length("the stream", store.tag as usize, want, "as an output's tag");
                }
            }
        }
        let rate = |bits: u32| if bits == 0 { 1 } else { u64::from(256u32.div_ceil(bits)) };
        let [pcie, ddr, link] = [settings.pcie, settings.ddr, settings.link].map(rate);
        let words = (plan.words.len() + plan.out_words(build)) as u64;
        // Every chip that is sent a word reads it from memory.
        let moved = words.saturating_mul(pcie + link + ddr * (1 + build.chips as u64));
        let idle = u64::from(settings.watchdog).saturating_mul(1 + (build.chips * build.elements) as u64);
        plan.most =
            plan.most.saturating_add(moved).saturating_add(idle).saturating_mul(2).saturating_add(1 << 20);
        Ok(plan)
    }

    fn packet(&mut self, packet: &Packet, context: &Context, rows: &Rows) -> Result<(), Error> {
        let d = self.digits;
        let (kind, address): (u64, u32) = match &packet.body {
            Body::Instructions(_) => (1, 0),
            Body::Inputs { address, .. } => (2, *address),
            Body::Weights { address, .. } | Body::Context { address } => (3, *address),
        };
        let count = packet.words(d);
        let over =
            |what, got: usize, unit| Err(Error::Length { what, got, want: "less than 2^24".into(), unit });
        if address >= 1 << 24 {
            return over("the stream", address as usize, "as a packet's address");
        }
        if count >= 1 << 24 {
            return over("a packet", count, "words");
        }
        let header = kind | u64::from(address) << 8 | (count as u64) << 32 | u64::from(packet.after) << 56;
        self.word([header, u64::from(packet.after) >> 8, 0, 0], packet.chips);
        match &packet.body {
            Body::Instructions(instructions) => {
                for four in instructions.chunks(4) {
                    self.word(std::array::from_fn(|i| four.get(i).copied().unwrap_or(NOP)), packet.chips);
                }
                for instruction in instructions {
                    self.instruction(*instruction, packet.chips);
                }
            }
            Body::Inputs { inputs, .. } => {
                for input in inputs {
                    let row = *input as usize;
                    if row >= rows.len() {
                        let want = format!("less than the {} residues", rows.len());
                        let (what, unit) = ("the stream", "as an input's position");
                        return Err(Error::Length { what, got: row, want, unit });
                    }
                    let mut words = Zeroizing::new([0; 64]);
                    words.iter_mut().zip(get(rows, row)).for_each(|(to, word)| *to = word);
                    self.digits(&words[..DIGIT * d], packet.chips);
                }
            }
            Body::Weights { words, .. } => words.iter().for_each(|word| self.word(*word, packet.chips)),
            Body::Context { .. } => self.digits(context.words(), packet.chips),
        }
        Ok(())
    }

    fn digits(&mut self, words: &[u64], chips: u32) {
        words.as_chunks::<DIGIT>().0.iter().for_each(|word| self.word(*word, chips));
    }

    /// A word for the chips of a mask.
    fn word(&mut self, word: [u64; DIGIT], chips: u32) {
        self.words.push(std::array::from_fn(|i| (word[i / 2] >> (32 * (i % 2))) as u32));
        self.masks.push(chips);
        for (chip, used) in self.used.iter_mut().enumerate() {
            *used |= chips >> chip & 1 == 1;
        }
    }

    /// Notes what it will send, and adds what it takes at most.
    fn instruction(&mut self, instruction: u64, chips: u32) {
        let field = |low: u32, bits: u32| instruction >> low & ((1 << bits) - 1);
        let d = self.digits as u64;
        let product = d * d + 64;
        let each = |note: &mut dyn FnMut(usize)| {
            (0..u32::BITS as usize).filter(|chip| chips >> chip & 1 == 1).for_each(note);
        };
        let clocks = match instruction >> 60 {
            0 => {
                each(&mut |chip| self.ends[chip] += 1);
                0
            }
            1 => d * field(4, 5),
            2 => field(9, 9),
            3 => {
                let (elements, tag) = (field(44, 16) as u32, field(1, 32) as u32);
                // For another number of elements it fails, and nothing comes.
                if elements.is_power_of_two() {
                    let element = elements.trailing_zeros();
                    each(&mut |chip| self.stores[chip].push(Store { element, tag }));
                }
                d
            }
            4 => 3 * d,
            10 => 8 * product * field(6, 5),
            11 => 28 * product,
            12 => 4 * 256 * d + 2 * product,
            13 => (32 + field(5, 4)) * product,
            14 => product * (2 + field(18, 13)).max(2 * field(27, 13)) + 4 * 256 * d,
            _ => 0,
        };
        self.most = self.most.saturating_add(clocks + 64);
    }

    /// Words that come out: the outputs, and the reports.
    fn out_words(&self, build: &Build) -> usize {
        let chips = self.used.iter().filter(|used| **used).count();
        self.stores.iter().map(Vec::len).sum::<usize>() * (1 + self.digits) + chips * (1 + 2 * build.elements)
    }

    /// What came out, if it is what was asked for.
    fn results(
        &self,
        device: &'static str,
        build: &Build,
        context: &Context,
        out: &[Out],
        counters: [u64; 8],
    ) -> Result<Run, &'static str> {
        let mut outputs = context.zeroed(self.outputs);
        let mut errors = vec![0; self.outputs];
        let mut chips = Vec::new();
        if out.iter().any(|out| !self.used.get(out.chip as usize).is_some_and(|used| *used)) {
            return Err("a chip sent something that was sent nothing");
        }
        for (chip, stores) in self.stores.iter().enumerate().filter(|(chip, _)| self.used[*chip]) {
            let mut words = out.iter().filter(|out| out.chip as usize == chip).map(|out| &out.word);
            let mut next = || words.next().ok_or("a chip's results are not all there");
            for store in stores {
                let header = next()?;
                let tag = header[0] >> 24 | header[1] << 8;
                let element = header[0] >> 8 & 0xff;
                if header[0] & 0xff != OUTPUT || tag != store.tag || element != store.element {
                    return Err("a result came that was not the next");
                }
                // An element that fails before it knows the modulus may send another number of zeros.
                let digits = (header[1] >> 24) as usize;
                let error = (header[0] >> 16) as u8;
                if digits != self.digits && error == 0 {
                    return Err("a result came with another length than its modulus");
                }
                let mut row = Zeroizing::new(Vec::with_capacity(DIGIT * digits));
                for _ in 0..digits {
                    row.extend(
                        next()?
                            .as_chunks::<2>()
                            .0
                            .iter()
                            .map(|[low, high]| u64::from(*low) | u64::from(*high) << 32),
                    );
                }
                if error == 0 {
                    put(&mut outputs, tag as usize, &row);
                }
                errors[tag as usize] = error;
            }
            let [head, clocks, clocks_high, instructions, bus, waits_busy, waits_output, waits_instructions] =
                *next()?;
            if head & 0xff != REPORT || (head >> 16 & 0xff) as usize != build.elements {
                return Err("what came last is not a report of this many elements");
            }
            let mut elements = Vec::with_capacity(build.elements);
            for _ in 0..build.elements {
                let mut fields = [0; 16];
                fields[..8].copy_from_slice(next()?);
                fields[8..].copy_from_slice(next()?);
                elements.push(ElementReport::new(fields));
            }
            if words.next().is_some() {
                return Err("a chip sent something behind its report");
            }
            chips.push(ChipReport {
                chip,
                error: (head >> 8) as u8,
                clocks: u64::from(clocks) | u64::from(clocks_high) << 32,
                instructions,
                bus,
                waits_busy,
                waits_output,
                waits_instructions,
                elements,
            });
        }
        let [clocks, pcie, ddr, words_in, words_out, ..] = counters;
        let card = CardReport { clocks, pcie, ddr, words_in, words_out };
        Ok(Run { device, outputs: context.residues(outputs), errors, chips, card })
    }
}

/// An instruction that does nothing: the four of a word are not always there.
const NOP: u64 = 15 << 60;

/// What comes out.
const OUTPUT: u32 = 1;
const REPORT: u32 = 2;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::phepu::compiler::isa::{Operation, Word};
    use blindcore_accel::bigmod::BigModulus;

    const BUILD: Build = Build {
        chips: 2,
        elements: 3,
        input_words: 1 << 11,
        weight_words: 1 << 11,
        output_words: 512,
        instruction_words: 512,
    };

    fn context() -> Context {
        Context::new(&Arc::new(BigModulus::odd(&[105]).unwrap())).unwrap()
    }

    /// Two chips, which send outputs 0 and 2, and 1.
    fn plan(context: &Context) -> Plan {
        let word = |mask, operation| Word::new(mask, operation).encode().unwrap();
        let store = |element, tag| word(1u16 << element, Operation::Store { slot: 0, tag });
        let packet = |chips, body| Packet { chips, after: 0, body };
        let end = word(0, Operation::End);
        let packets = vec![
            packet(3, Body::Context { address: 0 }),
            packet(1, Body::Inputs { address: 16, inputs: vec![0] }),
            packet(1, Body::Instructions(vec![store(2, 0), store(0, 2), end])),
            packet(2, Body::Instructions(vec![store(1, 1), end])),
        ];
        let stream = Stream { digits: 4, width: 8, chips: 2, packets };
        Plan::new(&BUILD, &CardSettings::UNBOUND, &stream, context, context.rows(&context.one()).unwrap())
            .unwrap()
    }

    /// What the two chips send, one after the other; output t is the number t.
    fn answer() -> Vec<Out> {
        let output = |element: u32, tag: u32| {
            let header = [1 | element << 8 | tag << 24, 4 << 24, 0, 0, 0, 0, 0, 0];
            [header, [tag, 0, 0, 0, 0, 0, 0, 0], [0; 8], [0; 8], [0; 8]].to_vec()
        };
        let report = || [vec![[2 | 3 << 16, 77, 0, 9, 0, 0, 0, 0]], vec![[0; 8]; 6]].concat();
        let first = [output(2, 0), output(0, 2), report()].concat();
        let second = [output(1, 1), report()].concat();
        let out = |chip| move |word| Out { chip, word };
        first.into_iter().map(out(0)).chain(second.into_iter().map(out(1))).collect()
    }

    #[test]
    fn words_go_out_as_the_interface_says() {
        let plan = plan(&context());
        assert_eq!(plan.words.len(), 1 + 13 + 1 + 4 + 1 + 1 + 1 + 1);
        assert_eq!(plan.masks, [vec![3; 14], vec![1; 7], vec![2; 2]].concat());
        assert_eq!(plan.words[0], [3, 13, 0, 0, 0, 0, 0, 0]);
        assert_eq!(plan.words[1], [105, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(plan.words[14], [2 | 16 << 8, 4, 0, 0, 0, 0, 0, 0]);
        assert_eq!(plan.words[19], [1, 1, 0, 0, 0, 0, 0, 0]);
        // The last of four instructions is there to fill up.
        assert_eq!(plan.words[20][6..], [0, 15 << 28]);
        assert_eq!(plan.out_words(&BUILD), answer().len());
    }

    #[test]
    fn answers_are_taken_as_they_are_and_no_others() {
        let context = context();
        let plan = plan(&context);
        let results = |out: &[Out]| plan.results("rtl:phepu", &BUILD, &context, out, [0; 8]);
        let good = answer();
        let run = results(&good).unwrap();
        for tag in 0..3 {
            assert!(
                get(context.rows(&run.outputs).unwrap(), tag).eq([tag as u64].into_iter().chain([0; 15]))
            );
        }
        assert_eq!((run.chips[1].chip, run.chips[1].clocks, run.chips[1].instructions), (1, 77, 9));

        // Chips may talk at once.
        let mut mixed = good.clone();
        mixed.sort_by_key(|out| out.chip == 0);
        assert!(results(&mixed).is_ok());

        type Change = fn(&mut Vec<Out>);
        let changes: [(&str, Change); 12] = [
            ("nothing", |out| out.clear()),
            ("the last word is missing", |out| out.truncate(out.len() - 1)),
            ("a word is missing", |out| out.splice(3..4, []).for_each(|_| {})),
            ("a word too many", |out| out.push(out[0])),
            ("a chip that is none", |out| out[3].chip = 2),
            ("another chip's", |out| out[3].chip = 1),
            ("another element", |out| out[0].word[0] ^= 0x100),
            ("another tag", |out| out[0].word[1] ^= 1),
            ("another kind", |out| out[0].word[0] ^= 3),
            ("another length", |out| out[0].word[1] ^= 12 << 24),
            ("a report of fewer elements", |out| out[10].word[0] ^= 1 << 16),
            ("outputs in another order", |out| out[..10].rotate_left(5)),
        ];
        for (what, change) in changes {
            let mut bad = good.clone();
            change(&mut bad);
            assert!(results(&bad).is_err(), "{what} was taken");
        }
        // Whatever single bit of a header is wrong, nothing breaks.
        for at in 0..good.len() {
            for bit in 0..256 {
                let mut bad = good.clone();
                bad[at].word[bit / 32] ^= 1 << (bit % 32);
                let _ = results(&bad);
            }
        }
    }

    #[test]
    fn an_element_that_fails_sends_zeros_of_any_length() {
        let context = context();
        let plan = plan(&context);
        let mut out = answer();
        out[0].word[0] |= 7 << 16;
        out[0].word[1] = 8 << 24;
        out.splice(1..1, vec![Out { chip: 0, word: [0; 8] }; 4]);
        out[15].word[0] = 7 | 5 << 8; // the report's first element
        let run = plan.results("rtl:phepu", &BUILD, &context, &out, [0; 8]).unwrap();
        assert_eq!(run.errors, [7, 0, 0]);
        assert!(get(context.rows(&run.outputs).unwrap(), 0).all(|word| word == 0));
        let [failure] = run.failures()[..] else { panic!("{:?}", run.failures()) };
        assert_eq!((failure.chip, failure.element, failure.code, failure.at), (0, Some(0), 7, 5));
    }
}
