//! The thesis's figures, drawn again.

use blindcore_explore::plot::{Axis, Plot, Series};
use blindcore_explore::{Results, Sweep};

use super::{AREA, CYCLES, JOULES, Sweeps, column};

/// A scheme at a size.
pub(super) struct View {
    pub(super) scheme: String,
    pub(super) gib: f64,
    /// GiB of the database a second.
    pub(super) speed: f64,
    /// Joules a GiB.
    pub(super) energy: f64,
    /// Watts.
    pub(super) power: f64,
}

/// Every scheme at every size, by a column of joules.
pub(super) fn curves(sweep: &Sweep, results: &Results, joules: &str) -> Vec<View> {
    let (seconds, joules) = (column(results, "seconds"), column(results, joules));
    let view = |(at, case): (usize, &blindcore_explore::sweep::Case)| View {
        scheme: case.name.clone(),
        gib: case.gib.unwrap_or(0.0),
        speed: case.gib.unwrap_or(0.0) / seconds[at],
        energy: joules[at] / case.gib.unwrap_or(f64::NAN),
        power: joules[at] / seconds[at],
    };
    sweep.cases.iter().enumerate().map(view).collect()
}

fn axis(label: &str) -> Axis {
    Axis { label: label.into(), ..Axis::default() }
}

fn zero(label: &str) -> Axis {
    Axis { zero: true, ..axis(label) }
}

fn size() -> Axis {
    Axis { log: true, ..axis("database (GiB)") }
}

fn plot(number: &str, title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Plot {
    Plot { name: format!("figure-{number}"), title: format!("Figure {number}: {title}"), x, y, series }
}

fn named(name: &str, points: Vec<(f64, f64)>, line: bool) -> Series {
    Series { name: name.into(), points, line }
}

/// All figures; the one of the CPU only where it was measured, in bytes a second.
pub(super) fn all(sweeps: &Sweeps, cpu: Option<f64>) -> Vec<Plot> {
    let mut all = machines(&sweeps.initial.1, &sweeps.refined.1);
    let views = curves(&sweeps.sizes.0, &sweeps.sizes.1, JOULES);
    let of = |scheme: &str, get: &dyn Fn(&View) -> f64| -> Vec<(f64, f64)> {
        views.iter().filter(|v| v.scheme == scheme).map(|v| (v.gib, get(v))).collect()
    };
    let onion = |get: &dyn Fn(&View) -> f64| vec![named("", of("OnionPIR", get), true)];
    let speed = "GiB/s";
    all.push(plot("6-7", "OnionPIR, speed by size", size(), zero(speed), onion(&|v| v.speed)));
    if let Some(bytes) = cpu {
        let here = bytes / f64::from(1 << 30);
        let series = vec![
            named("accelerator", of("OnionPIR", &|v| v.speed), true),
            named("this CPU, basic operation, measured at 0.5 GiB", of("OnionPIR", &|_| here), true),
            named("published CPU, 64 GB in 29 min", vec![(64.0, 64.0 / 1740.0)], false),
        ];
        all.push(plot(
            "6-8",
            "OnionPIR, accelerator and CPU",
            size(),
            Axis { log: true, ..axis(speed) },
            series,
        ));
    }
    let (energy, power) = ("J/GiB (calibrated)", "W (calibrated)");
    all.push(plot("6-9", "OnionPIR, energy by size", size(), zero(energy), onion(&|v| v.energy)));
    all.push(plot("6-10", "OnionPIR, power by size", size(), zero(power), onion(&|v| v.power)));
    let schemes = |get: &dyn Fn(&View) -> f64| {
        ["OnionPIR", "SEALPIR", "SimplePIR", "FastPIR"].map(|s| named(s, of(s, get), true)).to_vec()
    };
    all.push(plot("6-11", "schemes, speed by size", size(), zero(speed), schemes(&|v| v.speed)));
    all.push(plot("6-12", "schemes, energy by size", size(), zero(energy), schemes(&|v| v.energy)));
    all.push(plot("6-13", "schemes, power by size", size(), zero(power), schemes(&|v| v.power)));
    all
}

/// Figures 6-1 to 6-5.
fn machines(initial: &Results, refined: &Results) -> Vec<Plot> {
    let by_number = |of: &Results, keep: &dyn Fn(usize) -> bool| -> Vec<(f64, f64)> {
        let cycles = column(of, "cycles");
        (0..cycles.len()).filter(|at| keep(*at)).map(|at| (at as f64, cycles[at])).collect()
    };
    let lanes = column(initial, "register_files");
    let (cycles, registers, bytes) =
        (column(refined, "cycles"), column(refined, "registers"), column(refined, "sram_bytes"));
    let (joules, areas) = (column(refined, JOULES), column(refined, AREA));
    let area_energy = |keep: &dyn Fn(usize) -> bool| -> Vec<(f64, f64)> {
        (0..cycles.len()).filter(|at| keep(*at)).map(|at| (areas[at], joules[at])).collect()
    };
    let (slow, fast) = (|at: usize| cycles[at] > CYCLES, |at: usize| cycles[at] <= CYCLES);
    let area = || Axis { log: true, ..axis("area (mm², calibrated)") };
    let energy = || axis("energy (J, calibrated)");
    let depth = |kib: f64| -> Vec<(f64, f64)> {
        // Behind 256 registers energy rises steeply, and the dip would not be seen.
        let of = |at: &usize| fast(*at) && registers[*at] <= 256.0 && bytes[*at] == kib * 1024.0;
        (0..cycles.len()).filter(of).map(|at| (registers[at], joules[at])).collect()
    };
    vec![
        plot(
            "6-1",
            "initial sweep, cycles",
            axis("machine"),
            axis("cycles"),
            vec![
                named("two compute units or more", by_number(initial, &|at| lanes[at] > 1.0), false),
                named("one", by_number(initial, &|at| lanes[at] == 1.0), false),
            ],
        ),
        plot(
            "6-2",
            "refined sweep, cycles",
            axis("machine"),
            axis("cycles"),
            vec![
                named("8 registers or more", by_number(refined, &fast), false),
                named("4 registers", by_number(refined, &slow), false),
            ],
        ),
        plot(
            "6-3",
            "refined sweep, area and energy",
            area(),
            energy(),
            vec![
                named("8 registers or more", area_energy(&fast), false),
                named("4 registers", area_energy(&slow), false),
            ],
        ),
        plot(
            "6-4",
            "refined sweep without the slow ones",
            area(),
            energy(),
            vec![named("", area_energy(&fast), false)],
        ),
        plot(
            "6-5",
            "energy by registers",
            Axis { log: true, ..axis("registers") },
            energy(),
            [2.0, 4.0, 8.0].map(|kib| named(&format!("{kib} KiB of SRAM"), depth(kib), true)).to_vec(),
        ),
    ]
}
