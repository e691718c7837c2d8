//! Netlists on the overlay, each made and run once.

use std::sync::OnceLock;

use blindcore_accel_rtl::sifo::layers::Layers;
use blindcore_accel_rtl::sifo::memory::Policy;
use blindcore_accel_rtl::sifo::{CLOCK, Overlay, OverlaySettings};
use blindcore_circuit::netlist::Netlist;
use blindcore_circuit::problems;
use blindcore_circuit::problems::published::{self, ROWS, Row};
use blindcore_model::chip::reached;
use blindcore_units::Progress;

use super::PART;
use crate::jobs::run_all;
use crate::labels::random_inputs;
use crate::overlay;

/// A netlist that is made once.
pub(super) struct Source {
    pub(super) name: &'static str,
    /// The paper's, if it isn't ours.
    pub(super) paper: Option<&'static Row>,
    pub(super) made: OnceLock<(Netlist, Layers)>,
}

impl Source {
    pub(super) fn netlist(&self) -> anyhow::Result<&(Netlist, Layers)> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let netlist = match self.paper {
            Some(row) => published::netlist(row),
            None => problems::make(self.name)?,
        };
        let layers = Layers::new(&netlist.wiring());
        Ok(self.made.get_or_init(|| (netlist, layers)))
    }
}

/// A netlist on the overlay, run one way.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Job {
    pub(super) source: usize,
    pub(super) settings: OverlaySettings,
    pub(super) policy: Policy,
    pub(super) simulated: bool,
}

/// The same overlay at another clock: host, memory and link take as many nanoseconds.
pub(super) fn at_clock(settings: &OverlaySettings, hz: f64) -> OverlaySettings {
    let slower = hz / CLOCK;
    let OverlaySettings { register_ns, sync_ns, ddr_ns, dma, .. } = *settings;
    OverlaySettings {
        register_ns: register_ns * slower,
        sync_ns: sync_ns * slower,
        ddr_ns: ddr_ns * slower,
        dma: dma / slower,
        ..*settings
    }
}

/// A job's clocks, by the model and, if it is simulated, by the chip.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    pub(super) clocks: u64,
    /// Microseconds at the clock that our synthesis reached.
    pub(super) ours_us: f64,
    pub(super) on_chip: Option<u64>,
    pub(super) ands: usize,
}

impl Taken {
    pub(super) fn us(&self) -> f64 {
        self.clocks as f64 / CLOCK * 1e6
    }
}

/// What is to be run, everything once.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) sources: Vec<Source>,
    pub(super) jobs: Vec<Job>,
    pub(super) simulate: bool,
    /// The most gates that are simulated.
    pub(super) most_simulated: u64,
}

impl Plan {
    /// The number of a job.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        ours: bool,
        settings: OverlaySettings,
        policy: Policy,
    ) -> usize {
        let paper = ROWS.iter().find(|row| row.name == name).filter(|_| !ours);
        let same = |source: &Source| source.name == name && source.paper.is_some() == paper.is_some();
        let source = self.sources.iter().position(same).unwrap_or_else(|| {
            self.sources.push(Source { name, paper, made: OnceLock::new() });
            self.sources.len() - 1
        });
        let small = paper.is_some_and(|row| row.figures.gates <= self.most_simulated);
        self.job(Job { source, settings, policy, simulated: self.simulate && small })
    }

    /// The number of a job of the paper's netlist that is not simulated.
    pub(super) fn model(&mut self, name: &'static str, settings: OverlaySettings, policy: Policy) -> usize {
        let simulate = std::mem::take(&mut self.simulate);
        let job = self.add(name, false, settings, policy);
        self.simulate = simulate;
        job
    }

    fn job(&mut self, job: Job) -> usize {
        self.jobs.iter().position(|j| *j == job).unwrap_or_else(|| {
            self.jobs.push(job);
            self.jobs.len() - 1
        })
    }

    /// Runs all jobs, on all cores.
    pub(super) fn run(&self, progress: &mut dyn Progress) -> anyhow::Result<Vec<Taken>> {
        if self.simulate {
            drop(crate::chip(Overlay::open("rtl:sifo"))?); // said at once, and not after seconds of counting
        }
        let weight = |job: &Job| -> anyhow::Result<u64> {
            let (netlist, _) = self.sources[job.source].netlist()?;
            let share =
                4 + if job.settings.block_ram == 0 { 2 } else { 0 } + if job.simulated { 60 } else { 0 };
            Ok(netlist.gates().len() as u64 * share)
        };
        let weights = self.jobs.iter().map(weight).collect::<anyhow::Result<Vec<u64>>>()?;
        run_all("counting", &weights, |job| self.run_one(&self.jobs[job]), progress)
    }

    fn run_one(&self, job: &Job) -> anyhow::Result<Taken> {
        let (netlist, layers) = self.sources[job.source].netlist()?;
        let placed = overlay::place(netlist, layers, &job.settings, job.policy)?;
        let clocks = Overlay::estimate(&job.settings, &placed.program).cycles;
        let ours_us = reached(PART).map_or(f64::NAN, |ours| {
            let clocks = Overlay::estimate(&at_clock(&job.settings, ours.clock), &placed.program).cycles;
            clocks as f64 / ours.clock * 1e6
        });
        let on_chip = if job.simulated {
            // The chip that is built has half of the block RAM, which holds all that a problem so small has for it.
            let block_ram = job.settings.block_ram.min(OverlaySettings::PAPER.block_ram);
            let settings = OverlaySettings { block_ram, ..job.settings };
            let placed = overlay::place(netlist, layers, &settings, job.policy)?;
            let chip = crate::chip(Overlay::with_settings("rtl:sifo", settings))?;
            Some(overlay::garble(&chip, &placed, &random_inputs(netlist)?)?.clocks.cycles)
        } else {
            None
        };
        Ok(Taken { clocks, ours_us, on_chip, ands: netlist.ands() })
    }
}
