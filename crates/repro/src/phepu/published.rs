//! The paper's design by the model of an element, and the energies: what needs no simulation.

use std::path::Path;

use anyhow::Context as _;
use blindcore_accel_rtl::phepu::compiler::{
    Assignment, CHIP_ELEMENTS, CLOCK_HZ, IntegersModulo, Machine, Programs, Schedule, interpret,
};
use serde_json::Value;

use super::{CHIPS, ELEMENTS, Figure, Layer, Line, SPARSITY, TERMS, Weights, dense_rate};

/// Clocks of a layer on chips of the paper's schedule. The bus is in them, links between chips are not.
fn clocks(layer: Layer, zeros: u32, chips: usize, elements: usize) -> anyhow::Result<u64> {
    let task = layer.task()?;
    let buffers = *Machine::phepu(1, 4096)?.buffers().context("PH-EPU has buffers")?;
    let machine = Machine::chips(chips, elements, buffers)?.with_schedule(Schedule::Published);
    let programs = Programs::compile(Assignment::search(task, machine)?)?;
    let weights = Weights::Zeros(zeros).make(task.weights());
    // Any inputs: it is the clocks that are wanted.
    Ok(interpret(&programs, &weights, &vec![0; task.inputs()], &IntegersModulo(3))?.cycles)
}

/// Clocks of what `software` times: the outputs of a chip and those of the card.
pub(super) fn of_software() -> anyhow::Result<[u64; 2]> {
    let of = |outputs, chips| clocks(Layer::Row(TERMS, outputs), SPARSITY[3], chips, CHIP_ELEMENTS);
    Ok([of(CHIP_ELEMENTS, 1)?, of(8 * CHIP_ELEMENTS, 8)?])
}

/// The figures of the paper's design: what its rates of the two primitives make of the other figures.
pub(super) fn lines(wanted: impl Fn(Figure) -> bool) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut line = |figure, id: String, what: String, value: f64, unit, paper| {
        let (id, what) = (format!("phepu.published.{id}"), format!("{what}, the paper's schedule"));
        lines.push(Line { figure, id, what, value, unit, paper, measured: false });
    };
    let machine = Machine::phepu(1, 4096)?.with_schedule(Schedule::Published);
    let (multiply, row) = (machine.multiply_cycles(), Layer::Row(TERMS, CHIP_ELEMENTS));
    if wanted(Figure::Scaling) {
        let all = ELEMENTS.map(|elements| clocks(Layer::Image, SPARSITY[3], 1, elements));
        let all = all.into_iter().collect::<anyhow::Result<Vec<u64>>>()?;
        for (count, clocks) in ELEMENTS.into_iter().zip(&all) {
            let what = format!("convolution, 75 % of bits zero, elements: {count}; speed-up over one");
            let gain = all[0] as f64 / *clocks as f64;
            line(Figure::Scaling, format!("elements.{count}"), what, gain, "", None);
        }
        let card = Layer::Row(TERMS, 8 * CHIP_ELEMENTS);
        let all = CHIPS.map(|chips| clocks(card, SPARSITY[3], chips, CHIP_ELEMENTS));
        let all = all.into_iter().collect::<anyhow::Result<Vec<u64>>>()?;
        for (count, clocks) in CHIPS.into_iter().zip(&all) {
            let what = format!(
                "multi-exponentiation, 75 % of bits zero, chips: {count}, without links; speed-up over one"
            );
            let paper = (count == 8).then_some(355.0 / 68.0);
            let gain = all[0] as f64 / *clocks as f64;
            line(Figure::Scaling, format!("chips.mac.{count}"), what, gain, "", paper);
        }
    }
    if wanted(Figure::Rates) {
        let what = "multiplication of 4096 bits, an element".to_owned();
        line(Figure::Rates, "multiply.clocks".into(), what, multiply as f64, "clocks", Some(348.0));
        let what = "inversion of 4096 bits, a Stein unit".to_owned();
        let stein = machine.invert_cycles() - 2 * multiply;
        line(Figure::Rates, "invert.clocks".into(), what, stein as f64, "clocks", Some(CLOCK_HZ / 38e3));
        let all = SPARSITY.map(|zeros| clocks(row, zeros, 1, CHIP_ELEMENTS));
        let all = all.into_iter().collect::<anyhow::Result<Vec<u64>>>()?;
        for (zeros, clocks) in SPARSITY.into_iter().zip(&all) {
            let percent = 100 * zeros / 8;
            let what = format!("{TERMS} terms, {percent} % of bits zero: speed-up over none");
            let (gain, paper) = (all[0] as f64 / *clocks as f64, (percent == 75).then_some(3.3));
            line(Figure::Rates, format!("sparsity.{percent}"), what, gain, "", paper);
        }
    }
    if wanted(Figure::Specification) {
        let basic = CHIP_ELEMENTS as f64 * CLOCK_HZ / multiply as f64 / 1e6;
        let mac = dense_rate(CHIP_ELEMENTS, clocks(row, SPARSITY[3], 1, CHIP_ELEMENTS)?);
        let what = |what: &str| format!("{what}, 4096 bits");
        let figure = Figure::Specification;
        line(figure, "chip.basic".into(), what("basic operations, a chip"), basic, "M/s", Some(23.0));
        let mode = "MAC mode at 75 % zero bits, counted with them, a chip";
        line(figure, "chip.mac".into(), what(mode), mac, "M/s", Some(68.0));
    }
    Ok(lines)
}

/// Watts of the paper's chip while it multiplies and while it inverts: the ends of its range (Fig. 15.4.7).
const WATTS: [f64; 2] = [12.0, 4.0];
/// The paper's rates in M/s of a chip: basic multiplications, those of MAC mode, inversions (Fig. 15.4.6).
const RATES: [f64; 3] = [23.0, 68.0, 0.038];
/// What a picojoule of osu018 (180 nm, 1.8 V) is in 28 nm at 0.9 V, in round numbers: capacitance by length, energy by the square of
/// the voltage.
const SCALED: f64 = 28.0 / 180.0 * 0.25;

/// Joules of a multiplication and of an inversion of 4096 bits: the paper's, from its power and its rates; ours, from what synthesis
/// gave for the blocks and the clocks that were simulated; what is not there is left out.
pub(super) fn energies(multiply: Option<f64>, invert: Option<f64>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = |id: &str, what: String, value: f64, paper| {
        let (figure, id) = (Figure::Rates, format!("phepu.energy.{id}"));
        lines.push(Line { figure, id, what, value, unit: "uJ", paper, measured: false });
    };
    let [basic, mac, inversions] = RATES;
    let [working, idle] = WATTS;
    let of = |watts: f64, rate: f64| format!("{watts} W over {rate} M/s");
    line(
        "published.basic",
        format!("multiplication, basic: the paper's {}", of(working, basic)),
        working / basic,
        Some(0.52),
    );
    line(
        "published.mac",
        format!("multiplication, MAC mode: the paper's {}", of(working, mac)),
        working / mac,
        Some(0.18),
    );
    let what = format!("inversion: the paper's {}", of(idle, inversions));
    line("published.invert", what, idle / inversions, Some(105.3));
    let folder = Path::new("hw/syn/results");
    let picojoules = |name: &str| -> Option<f64> {
        let text = std::fs::read_to_string(folder.join(format!("{name}.osu018_stdcells.json"))).ok()?;
        serde_json::from_str::<Value>(&text).ok()?["power"]["picojoules_a_clock"].as_f64()
    };
    // A multiplier of 256 bits as sixteen of 64, a Stein unit as four of 1024 bits, as for the areas.
    let around = picojoules("ph_element");
    let montgomery = picojoules("ph_multiplier.WIDTH64").zip(picojoules("ph_montgomery"));
    let montgomery = montgomery.zip(around).map(|((of_64, rest), around)| 48.0 * of_64 + rest + around);
    let stein = picojoules("ph_stein.WIDTH1024.DIGIT64").map(|of_1024| 4.0 * of_1024);
    let units = [
        ("multiply", "multiplication", montgomery.zip(multiply), 0.52),
        ("invert", "inversion, its Stein unit alone", stein.zip(invert), 105.3),
    ];
    for (id, what, found, paper) in units {
        let Some((picojoules, clocks)) = found else { continue };
        let joules = picojoules * clocks / 1e6;
        line(
            &format!("{id}.osu018"),
            format!("{what}, ours synthesised in osu018 (180 nm), every net at half a toggle a clock"),
            joules,
            None,
        );
        line(
            &format!("{id}.28nm"),
            format!("the same in 28 nm at 0.9 V, reckoned: times {SCALED:.3}"),
            joules * SCALED,
            Some(paper),
        );
    }
    lines
}
