//! `blindcore hw`: the papers' hardware, simulated, doing real work, and what was measured beside what was published.

pub(crate) mod circuit;
pub(crate) mod sum;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use blindcore_explore::{Options, Ray, Sources, document, text};
use blindcore_repro::lookup::{self, LookupJob};
use blindcore_repro::report;
use blindcore_units::{Progress, Unit};
use serde_json::json;

use crate::output::{self, Bar};
use crate::{Outcome, args};

/// `blindcore hw run lookup`.
pub(crate) fn lookup(args: &args::HwLookup) -> anyhow::Result<Outcome> {
    let job = LookupJob {
        dir: args.dir.as_deref(),
        key: args.key.as_deref(),
        index: args.index,
        device: &args.device,
        ssd_rate: args.ssd_rate()?,
    };
    let run = watched(|| lookup::run(&job))?;
    if args.json {
        output::json(&run.document())?;
    } else {
        let text = match run.value() {
            None => format!("{}: not there\n", output::printable(&json!(run.key().unwrap_or_default()))),
            Some(value) => {
                let width = value.keys().map(|c| c.chars().count()).max().unwrap_or(0);
                value.iter().map(|(c, v)| format!("  {c:width$}  {}\n", output::printable(v))).collect()
            }
        };
        output::print(&format!("{text}\n{}", run.text()))?;
        simulated(run.simulated());
    }
    Ok(if run.value().is_some() { Outcome::Done } else { Outcome::NotThere })
}

/// `blindcore hw report`.
pub(crate) fn report(args: &args::HwReport) -> anyhow::Result<Outcome> {
    let report = report::make(args.results.as_deref(), &mut Bar::new())?;
    if let Some(note) = report.note() {
        output::note(note);
    }
    output::result(args.json, || report.document(), || report.text())?;
    Ok(Outcome::Done)
}

/// `blindcore hw explore`.
pub(crate) fn explore(args: &args::HwExplore) -> anyhow::Result<Outcome> {
    if args.worker {
        blindcore_explore::work(std::io::stdin(), &mut std::io::stdout())?;
        return Ok(Outcome::Done);
    }
    let (sources, sweep) = Sources::open(args.sweep.as_deref(), args.preset.as_deref())?;
    let ray = args.ray.as_deref().map(|address| Ray::new(address, sources)).transpose()?;
    let options = Options { threads: args.threads.map(usize::from), folder: args.out.clone(), ray };
    let results = blindcore_explore::run(&sweep, &options, &mut Bar::new())?;
    output::result(args.json, || document(&sweep, &results), || text(&sweep, &results))?;
    Ok(Outcome::Done)
}

/// How long a simulation took here.
fn simulated(time: Duration) {
    output::note(&format!("simulated in {:.1} s", time.as_secs_f64()));
}

/// Does something long, with a sign of life.
fn watched<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let (ends, ended) = mpsc::channel::<()>();
        let worker = scope.spawn(|| {
            let _ends = ends; // gone when the work is done, or has panicked
            work()
        });
        let mut bar = Bar::new();
        while ended.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
            bar.at("simulating", 0, None, Unit::Items);
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
