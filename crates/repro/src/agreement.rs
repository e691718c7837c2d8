//! The model's clocks beside those of simulated chips, shape by shape.

use blindcore_accel::Word;
use blindcore_accel::contract::Shape;
use blindcore_accel_rtl::onionchopper::mapping::{Cut, Index, Mapping, Order};
use blindcore_accel_rtl::onionchopper::{OnionChopper, Options, measure};
use blindcore_model::chip::{self, Dim, Machine, Nest, Problem};

/// A shape on a chip: what the chip counted, and what the model says.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The machine's name.
    pub machine: &'static str,
    /// The shape, and how it is run.
    pub shape: String,
    /// Clocks of the simulated chip.
    pub counted: u64,
    /// Clocks of the model.
    pub modelled: u64,
    /// The model's clocks without what units wait for.
    pub bound: u64,
    /// What moved at each level.
    pub moved: Vec<Moved>,
}

/// Bits that moved at a level, by the chip's counters and by the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The level.
    pub level: String,
    /// Read, counted and modelled.
    pub read: [u128; 2],
    /// Written, counted and modelled.
    pub written: [u128; 2],
}

impl Agreement {
    /// The model's clocks over the chip's, less 1.
    #[must_use]
    pub fn off(&self) -> f64 {
        self.modelled as f64 / self.counted as f64 - 1.0
    }
}

/// The machines that are simulated, and the devices that simulate them.
pub const MACHINES: [(&str, &str); 4] = [
    ("onionchopper", "rtl:onionchopper"),
    ("gathered", "rtl:onionchopper-gathered"),
    ("lwe", "rtl:onionchopper-lwe"),
    ("deep", "rtl:onionchopper-deep"),
];

/// A cut as the model's problem and mapping. Padding is counted, as the chip computes it.
#[must_use]
pub fn mapped(cut: &Cut) -> (Problem, chip::Mapping) {
    let dim = |index: Index| match index {
        Index::Modulus => Dim::C,
        Index::Coefficient => Dim::D,
        Index::Depth => Dim::J,
        Index::Columns => Dim::N,
        Index::Rows => Dim::P,
    };
    let loops = |of: &[(Index, usize)]| -> Vec<(Dim, u64)> {
        of.iter().filter(|(_, n)| *n > 1).map(|(index, n)| (dim(*index), *n as u64)).collect()
    };
    let (ssd, dram, lanes) = (loops(&cut.ssd), loops(&cut.dram), loops(&cut.lanes));
    let (sram, registers) = (loops(&cut.sram), loops(&cut.registers));
    let mut bounds = [1; 8];
    for (dim, n) in [&ssd, &dram, &lanes, &sram, &registers].into_iter().flatten() {
        bounds[*dim as usize] *= n;
    }
    let problem = Problem { bits: [cut.word as u64; 3], ..Problem::contract(bounds) };
    let levels = vec![
        Nest::new(&ssd, &[]),
        Nest::new(&dram, &lanes),
        Nest::new(&sram, &[]),
        Nest::new(&registers, &[]),
    ];
    (problem, chip::Mapping { levels })
}

/// Runs a shape on a chip and in the model.
///
/// # Errors
/// The chip refuses the shape or answers wrong; the model does not take how it is cut.
pub fn compare(
    machine: &'static str,
    model: &Machine,
    device: &OnionChopper,
    options: &Options,
    shape: &Shape,
) -> anyhow::Result<Agreement> {
    let run = measure::run(device, shape)?;
    let (problem, mapping) = mapped(&device.cut(shape)?);
    let modelled = chip::pipelined(&problem, model, &mapping, options.resident)?;
    let cost = chip::cost(&problem, model, &mapping, &[])?;
    let pairs = run.traffic.iter().filter_map(|counted| Some((counted, cost.level(&counted.level)?)));
    let moved = pairs.map(|(counted, modelled)| Moved {
        level: counted.level.to_string(),
        read: [counted.read, modelled.read],
        written: [counted.written, modelled.written],
    });
    let moved = moved.collect();
    let place = if options.resident { ", in the DRAM" } else { "" };
    let shape = format!("{shape}{place}");
    Ok(Agreement { machine, shape, counted: run.cycles, modelled, bound: cost.cycles, moved })
}

/// Shapes and ways to run them that show what a chip waits for: its stream, its lanes, its sums, its drain; small ones and narrow,
/// deep and wide ones; moduli and coefficients that take turns; gathered queries; both orders of the DRAM's loops.
#[must_use]
pub fn cases(machine: &str) -> Vec<(Shape, Options)> {
    let streamed = Options::default();
    let resident = Options { resident: true, ..streamed };
    let cut = |mapping| Options { mapping: Some(mapping), ..streamed };
    let thesis = Mapping::thesis();
    let one = || measure::moduli()[..1].to_vec();
    let sized = |[n, j, p, d]: [usize; 4]| Shape { n, j, p, d, ..Shape::new(Word::U64, one()) };
    if machine == "lwe" {
        let of = |[n, j, m]: [usize; 3]| {
            let modulus = measure::pow2_32();
            Shape { n, j, m, ..Shape::new(Word::U8, vec![modulus]) }
        };
        return [[64, 300, 2], [300, 70, 1], [256, 1024, 1], [17, 65, 3], [1, 4000, 1]]
            .map(|size| (of(size), streamed))
            .to_vec();
    }
    if machine == "deep" {
        return vec![
            (Shape { k: 2, ..sized([9, 40, 2, 2]) }, streamed),
            (sized([64, 128, 2, 4]), streamed),
            (sized([64, 128, 2, 2]), resident),
            (Shape { m: 3, ..sized([5, 70, 1, 1]) }, streamed),
        ];
    }
    if machine == "gathered" {
        return vec![
            (Shape { m: 8, ..sized([64, 64, 2, 2]) }, streamed),
            (Shape { m: 8, ..sized([256, 64, 2, 1]) }, streamed),
            (Shape { m: 8, ..sized([64, 128, 2, 1]) }, resident),
            (Shape { m: 3, ..sized([40, 96, 2, 2]) }, streamed),
            (Shape { m: 20, ..sized([64, 64, 2, 1]) }, streamed),
            // The DRAM's port limits, and the last tile's sums want it while the next tile is read.
            (Shape { m: 12, k: 2, moduli: measure::moduli(), ..sized([19, 133, 1, 2]) }, resident),
            (Shape { m: 16, ..sized([22, 165, 2, 2]) }, resident),
            (Shape { m: 4, k: 2, ..sized([95, 57, 1, 2]) }, resident),
            (Shape { m: 4, k: 2, moduli: measure::moduli(), ..sized([132, 59, 2, 1]) }, resident),
        ];
    }
    let two = |shape: Shape| Shape { moduli: measure::moduli(), ..shape };
    vec![
        (sized([1, 1, 1, 1]), streamed),
        (sized([16, 16, 1, 1]), streamed),
        (sized([64, 64, 1, 1]), streamed),
        (sized([64, 64, 2, 2]), streamed),
        (sized([64, 64, 2, 2]), resident),
        (two(sized([64, 64, 2, 4])), streamed),
        (two(sized([64, 64, 2, 4])), resident),
        (two(sized([33, 70, 2, 3])), streamed),
        (sized([256, 128, 2, 1]), streamed),
        (sized([512, 32, 2, 1]), streamed),
        (sized([512, 32, 2, 1]), resident),
        (sized([4, 2048, 1, 1]), streamed),
        (sized([4, 2048, 2, 1]), resident),
        (sized([2, 512, 8, 2]), streamed),
        (sized([128, 64, 8, 1]), streamed),
        (sized([128, 64, 8, 1]), resident),
        (Shape { m: 5, ..sized([100, 50, 1, 2]) }, streamed),
        (Shape { m: 5, ..sized([100, 50, 1, 2]) }, resident),
        (Shape { q: 3, k: 2, ..sized([40, 40, 2, 2]) }, streamed),
        (sized([64, 64, 2, 1]), Options { ssd_rate: (1, 4), ..streamed }),
        (sized([64, 64, 2, 1]), Options { ssd_rate: (1, 1), ..streamed }),
        (sized([64, 128, 2, 1]), cut(Mapping { order: Order::OutputStationary, ..thesis })),
        (
            sized([64, 128, 2, 1]),
            Options { resident: true, ..cut(Mapping { order: Order::OutputStationary, ..thesis }) },
        ),
        (sized([64, 64, 2, 1]), cut(Mapping { literal: true, ..thesis })),
        (sized([64, 64, 2, 1]), Options { resident: true, ..cut(Mapping { literal: true, ..thesis }) }),
        (sized([64, 64, 2, 1]), cut(Mapping { js: 1, ns: 1, ps: 1, ..thesis })),
        (sized([64, 64, 2, 1]), Options { resident: true, ..cut(Mapping { js: 1, ns: 1, ps: 1, ..thesis }) }),
        (
            sized([64, 64, 3, 1]),
            Options { resident: true, ..cut(Mapping { jr: 4, js: 4, ns: 3, ps: 2, ..thesis }) },
        ),
        (
            sized([64, 64, 2, 1]),
            cut(Mapping { jr: 4, js: 1, ns: 1, ps: 2, order: Order::OutputStationary, ..thesis }),
        ),
        (sized([64, 64, 8, 1]), Options { resident: true, ..cut(Mapping { ns: 1, ps: 4, ..thesis }) }),
    ]
}

/// Every case of every machine.
///
/// # Errors
/// A chip is not built, or as [`compare`].
pub fn all() -> anyhow::Result<Vec<Agreement>> {
    let mut out = Vec::new();
    for (machine, device) in MACHINES {
        let model = chip::machine(machine).expect("it comes with the engine");
        for (shape, options) in cases(machine) {
            let device = crate::chip(OnionChopper::with_options(device, options))?;
            let mut model = model.clone();
            let (num, den) = options.ssd_rate;
            model.levels[0].port.num = u64::from(num) * 64;
            model.levels[0].port.den = den.into();
            out.push(compare(machine, &model, &device, &options, &shape)?);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr, reason = "a test that is skipped says why, and this one prints figures")]

    use super::*;

    #[test]
    fn the_models_clocks_are_the_chips_within_a_hundredth() {
        if let Err(e) = OnionChopper::open("rtl:onionchopper") {
            assert!(std::env::var_os("BLINDCORE_RTL").is_none(), "{e}");
            eprintln!("skipped: {e}");
            return;
        }
        let rows = all().unwrap();
        for row in &rows {
            eprintln!(
                "{:<13}{:<60}{:>9}{:>9} {:+.4} (bound {})",
                row.machine,
                row.shape,
                row.counted,
                row.modelled,
                row.off(),
                row.bound
            );
            for Moved { level, read, written } in &row.moved {
                eprintln!("    {level:<6} read {read:?} written {written:?}");
            }
        }
        assert!(rows.len() >= 30);
        let wrong: Vec<_> = rows.iter().filter(|row| row.off().abs() > 0.01).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
