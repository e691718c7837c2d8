//! What chips report at the end of a run.

use blindcore_accel::Error;
use blindcore_accel::bigmod::Residues;
use blindcore_accel::cost::{Cost, Traffic};

use super::compiler::CLOCK_HZ;

/// Results and reports of a run.
pub struct Run {
    pub(super) device: &'static str,
    /// By tag. One that its element failed to make is zero, and named in `errors`.
    pub outputs: Residues,
    /// By tag: the error of the element that sent it, 0 for none; see [`Failure::what`].
    pub errors: Vec<u8>,
    /// Of each chip that was sent anything.
    pub chips: Vec<ChipReport>,
    /// Of the card.
    pub card: CardReport,
}

impl Run {
    /// What failed: chips first, then elements, in order.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        let whole = self.chips.iter().map(|c| (c.chip, None, c.error, 0));
        let parts = self
            .chips
            .iter()
            .flat_map(|c| c.elements.iter().enumerate().map(|(i, e)| (c.chip, Some(i), e.error, e.error_at)));
        let failed = whole.chain(parts).filter(|(_, _, code, _)| *code != 0);
        failed.map(|(chip, element, code, at)| Failure { chip, element, code, at }).collect()
    }

    /// This run, if nothing failed.
    ///
    /// # Errors
    /// The first of [`Run::failures`].
    pub fn whole(self) -> Result<Self, Error> {
        match self.failures().first() {
            Some(failure) => Err(failure.error(self.device)),
            None => Ok(self),
        }
    }

    /// Montgomery multiplications, squarings among them, of all elements.
    #[must_use]
    pub fn multiplications(&self) -> u64 {
        self.elements().map(|e| u64::from(e.multiplications)).sum()
    }

    /// Every element's report.
    pub fn elements(&self) -> impl Iterator<Item = &ElementReport> {
        self.chips.iter().flat_map(|chip| &chip.elements)
    }

    /// The same in the terms of all operations: clocks of the card, those in which the busiest element's Montgomery unit worked,
    /// multiplications as points, what moved over the bus; seconds at the paper's clock.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let busy = self.elements().map(|e| e.montgomery.into()).max().unwrap_or(0);
        let bits = |words: u64| u128::from(8 * 32 * words);
        Cost {
            points: self.multiplications().into(),
            threads: 1,
            traffic: vec![Traffic::new("bus", bits(self.card.words_in), bits(self.card.words_out))],
            ..Cost::clocked(self.card.clocks, CLOCK_HZ, [("lanes".into(), busy)])
        }
    }
}

/// A chip's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChipReport {
    /// Which.
    pub chip: usize,
    /// Its error; see [`Failure::what`].
    pub error: u8,
    /// Clocks from reset to the report.
    pub clocks: u64,
    /// Instructions that its controller executed.
    pub instructions: u32,
    /// Clocks in which the bus carried a word.
    pub bus: u32,
    /// Clocks in which the controller waited for slots, regions or queues of elements.
    pub waits_busy: u32,
    /// Clocks in which it waited for outputs.
    pub waits_output: u32,
    /// Clocks in which it waited for instructions.
    pub waits_instructions: u32,
    /// Of each element.
    pub elements: Vec<ElementReport>,
}

/// An element's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElementReport {
    /// Its first error; see [`Failure::what`].
    pub error: u8,
    /// Instructions that it had taken before, modulo 2^24.
    pub error_at: u32,
    /// Clocks in which the Montgomery unit worked.
    pub montgomery: u32,
    /// Clocks in which the Stein unit worked.
    pub stein: u32,
    /// Clocks of mode 1's four steps: accumulating, aligning, inverting, reducing.
    pub steps: [u32; 4],
    /// Clocks of basic operations.
    pub basic: u32,
    /// Instructions taken.
    pub instructions: u32,
    /// Montgomery multiplications, squarings among them.
    pub multiplications: u32,
    /// Inversions.
    pub inversions: u32,
    /// Clocks without an instruction.
    pub idle: u32,
    /// Clocks in which it waited for an output slot.
    pub waits_output: u32,
    /// Clocks in which it copied.
    pub copies: u32,
    /// Zero bits that it skipped.
    pub skipped: u32,
}

impl ElementReport {
    /// From the fields of a report.
    pub(super) fn new(fields: [u32; 16]) -> Self {
        let [
            failed,
            montgomery,
            stein,
            accumulate,
            align,
            invert,
            reduce,
            basic,
            instructions,
            multiplications,
            inversions,
            idle,
            waits_output,
            copies,
            skipped,
            _,
        ] = fields;
        Self {
            error: failed as u8,
            error_at: failed >> 8,
            montgomery,
            stein,
            steps: [accumulate, align, invert, reduce],
            basic,
            instructions,
            multiplications,
            inversions,
            idle,
            waits_output,
            copies,
            skipped,
        }
    }
}

/// What moved on the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardReport {
    /// Clocks from reset until the last result was at the host.
    pub clocks: u64,
    /// Clocks in which PCIe moved something.
    pub pcie: u64,
    /// Clocks in which the DDR memory did.
    pub ddr: u64,
    /// Words of 256 bits that came to chips, of all chips.
    pub words_in: u64,
    /// Words that left chips.
    pub words_out: u64,
}

/// An element's or a chip's first error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which chip.
    pub chip: usize,
    /// Which element; none where it was the chip's.
    pub element: Option<usize>,
    /// What: `ERROR_*` of `ph_pkg.sv`.
    pub code: u8,
    /// Instructions that the element had taken before, modulo 2^24.
    pub at: u32,
}

/// A number has no inverse.
pub(super) const NO_INVERSE: u8 = 3;

impl Failure {
    /// What its code means.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.meaning().0
    }

    fn meaning(&self) -> (&'static str, &'static str) {
        let report = "report this as a defect of blindcore";
        match self.code {
            1 => ("the modulus is even", "use an odd one"),
            2 => ("an input is not below the modulus", "reduce it first"),
            NO_INVERSE => (
                "a number shares a factor with the modulus and has no inverse",
                "leave it out, or use the right modulus",
            ),
            4 => ("an instruction reaches out of a buffer", "compile the program again"),
            5 => ("an instruction is none that it knows", "compile the program again"),
            6 => (
                "nothing moved for as long as the watchdog waits",
                "give it more clocks, or compile the program again",
            ),
            7 => ("an instruction came before the modulus", "compile the program again"),
            8 => ("a packet reaches out of its buffer", "compile the program again"),
            _ => ("its error is none that it has", report),
        }
    }

    /// As a device's error.
    #[must_use]
    pub fn error(&self, device: &str) -> Error {
        let (what, remedy) = self.meaning();
        let device = match self.element {
            Some(element) => {
                format!(
                    "element {element} of chip {} of {device}, at its instruction {},",
                    self.chip, self.at
                )
            }
            None => format!("chip {} of {device}", self.chip),
        };
        Error::Hardware { device, code: self.code.into(), what, remedy }
    }
}
