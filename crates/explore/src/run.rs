//! A whole sweep on all cores.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::Context;
use blindcore_units::Progress;

use crate::best::{Best, best};
use crate::counted::Counted;
use crate::front::front;
use crate::journal::Journal;
use crate::point::{Outcome, columns, compute};
use crate::ray::{OnRay, Ray};
use crate::sweep::{Point, Sweep};
use crate::table::{Kind, Table};

/// How a sweep is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads; all cores, if it is not said.
    pub threads: Option<usize>,
    /// The folder in which finished points are kept; none: they are not.
    pub folder: Option<PathBuf>,
    /// Where points are computed by tasks of Ray; none: on threads of this process.
    pub ray: Option<Ray>,
}

/// What came of a sweep.
#[derive(Clone, Debug)]
pub struct Results {
    /// A row a point, in the sweep's order, whatever order they were computed in. The last column is whether it is on the front of its
    /// problem: cycles, joules and mm2 by the first of the tables.
    pub table: Table,
    /// Points that were there already.
    pub resumed: usize,
    /// What Ray did, where it computed.
    pub ray: Option<OnRay>,
    /// Each problem's best machine, where the sweep has prices.
    pub best: Vec<Best>,
}

/// Computes all points of a sweep that are not finished yet, and writes results and plots where there is a folder.
///
/// # Errors
/// The journal can't be opened or takes no more, or the progress stops it: what is finished is kept.
///
/// # Panics
/// Never: a thread that panics is passed on.
pub fn run(sweep: &Sweep, options: &Options, progress: &mut dyn Progress) -> anyhow::Result<Results> {
    let points = sweep.points()?;
    let columns = columns(sweep);
    let mut outcomes: Vec<Option<Outcome>> = vec![None; points.len()];
    let mut journal = None;
    if let Some(folder) = &options.folder {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("--out {}: the folder can't be made; name another", folder.display()))?;
        let digest = sweep.digest();
        let (opened, finished) = Journal::open(&folder.join("points.part"), &digest, columns.len())?;
        for outcome in finished {
            let number = outcome[0].parse::<usize>().ok().filter(|number| *number < points.len());
            let number = number.context("points.part has a point that the sweep has not; delete the file")?;
            outcomes[number] = Some(outcome);
        }
        journal = Some(opened);
    }
    let left: Vec<usize> = (0..points.len()).filter(|at| outcomes[*at].is_none()).collect();
    let resumed = points.len() - left.len();
    if resumed > 0 {
        progress.note(&format!("{resumed} of its points were finished before"));
    }
    let mut take = |batch: Vec<Outcome>, done: usize| {
        if let Some(journal) = &mut journal {
            journal.append(&batch, resumed + done)?;
        }
        for outcome in batch {
            let number: usize = outcome[0].parse().context("a point without a number; report this")?;
            outcomes[number] = Some(outcome);
        }
        Ok(())
    };
    let mut counted = Counted { take: &mut take, all: points.len(), resumed, done: 0, progress };
    let ray = match &options.ray {
        Some(_) if left.is_empty() => None,
        Some(ray) => Some(ray.compute(sweep, &left, options.threads, &mut counted)?),
        None => {
            let cores = || std::thread::available_parallelism().map_or(1, usize::from);
            compute_all(sweep, &points, &left, options.threads.unwrap_or_else(cores), &mut counted)?;
            None
        }
    };
    let rows =
        outcomes.into_iter().collect::<Option<Vec<_>>>().context("a thread ended early; report this")?;
    let mut table = Table { columns, rows };
    mark(&mut table, &points, sweep);
    let best = best(sweep, &table)?;
    let results = Results { table, resumed, ray, best };
    if let Some(folder) = &options.folder {
        crate::keep(sweep, &results, folder)?;
    }
    Ok(results)
}

/// Computes points on threads, and hands them over in batches of what is finished.
fn compute_all(
    sweep: &Sweep,
    points: &[Point],
    left: &[usize],
    threads: usize,
    counted: &mut Counted<'_>,
) -> anyhow::Result<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for _ in 0..threads.clamp(1, left.len().max(1)) {
            let (tell, next, stop) = (tell.clone(), &next, &stop);
            scope.spawn(move || {
                while let Some(at) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop.load(Ordering::Relaxed) || tell.send(compute(sweep, *at, &points[*at])).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        let mut taken = counted.take(Vec::new());
        while taken.is_ok()
            && let Ok(first) = told.recv()
        {
            taken = counted.take(std::iter::once(first).chain(told.try_iter()).collect());
        }
        stop.store(taken.is_err(), Ordering::Relaxed);
        taken
    })
}

/// Adds the column of the fronts.
fn mark(table: &mut Table, points: &[Point], sweep: &Sweep) {
    let figures: Vec<Vec<Option<f64>>> = {
        let cost =
            table.columns.iter().filter(|(name, _)| name.starts_with("joules_") || name.starts_with("mm2_"));
        let names: Vec<String> = cost.take(2).map(|(name, _)| name.clone()).collect();
        ["cycles".to_owned()].iter().chain(&names).map(|name| table.numbers(name)).collect()
    };
    let mut on = vec![false; points.len()];
    for case in 0..sweep.cases.len() {
        let full = |at: &usize| points[*at].case == case && figures.iter().all(|f| f[*at].is_some());
        let of: Vec<usize> = (0..points.len()).filter(full).collect();
        let values: Vec<Vec<f64>> =
            of.iter().map(|at| figures.iter().filter_map(|f| f[*at]).collect()).collect();
        for (at, is) in of.iter().zip(front(&values)) {
            on[*at] = is;
        }
    }
    table.columns.push(("front".into(), Kind::Whole));
    for (row, on) in table.rows.iter_mut().zip(on) {
        row.push(u8::from(on).to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn small() -> Sweep {
        let text = "name = 'small'\nabout = 'a few'\nmachine = 'thesis'\n[[problem]]\nname = 'x'\n\
            contract = [1, 16, 2, 1, 8, 1, 1, 4]\n[[axis]]\nname = 'registers'\nset = ['RF.size']\nscale = 8\n\
            from = 2\nto = 64\ntimes = 2\n[[axis]]\nname = 'sram_bytes'\nset = ['SRAM.size']\nvalues = [256, 1024, 4096]\n";
        Sweep::from_toml(Path::new("small.toml"), text).unwrap()
    }

    /// Stops after so many points.
    struct After(u64);

    impl Progress for After {
        fn at(&mut self, _: &str, done: u64, _: Option<u64>, _: blindcore_units::Unit) {
            if done >= 5 {
                self.0 = 0;
            }
        }

        fn stopped(&self) -> bool {
            self.0 == 0
        }
    }

    #[test]
    fn a_sweep_that_was_stopped_goes_on_and_gives_the_same_bytes() {
        let sweep = small();
        let whole = run(&sweep, &Options { threads: Some(1), ..Options::default() }, &mut ()).unwrap();
        assert_eq!((whole.table.rows.len(), whole.resumed), (18, 0));
        let misfit = whole.table.texts("misfit");
        assert!(misfit[0].contains("no mapping fits"), "two registers hold no A, B and C: {}", misfit[0]);
        assert!(whole.table.numbers("front").contains(&Some(1.0)));
        let folder = tempfile::tempdir().unwrap();
        let options = Options { threads: Some(2), folder: Some(folder.path().join("out")), ray: None };
        let stopped = run(&sweep, &options, &mut After(1)).unwrap_err().to_string();
        assert!(stopped.contains("run it again"), "{stopped}");
        let again = run(&sweep, &options, &mut ()).unwrap();
        assert!((5..=18).contains(&again.resumed));
        assert_eq!(again.table.parquet().unwrap(), whole.table.parquet().unwrap());
        assert_eq!(again.table.csv().unwrap(), whole.table.csv().unwrap());
        assert_eq!(run(&sweep, &options, &mut ()).unwrap().resumed, 18, "nothing is computed twice");
        let mut other = sweep;
        other.name = "other".into();
        assert!(run(&other, &options, &mut ()).unwrap_err().to_string().contains("not of this sweep"));
    }
}
