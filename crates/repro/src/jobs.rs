//! Many runs on all cores, the longest first.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::Context;
use blindcore_units::{Progress, Unit};

/// Runs job after job on every core and gives the results in order. `weights` is what each job is likely to take.
///
/// # Errors
/// The first job that fails.
pub(crate) fn run_all<T: Send>(
    stage: &str,
    weights: &[u64],
    run: impl Fn(usize) -> anyhow::Result<T> + Sync,
    progress: &mut dyn Progress,
) -> anyhow::Result<Vec<T>> {
    // The last to end should be short.
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|job| (Reverse(weights[*job]), *job));
    let all: u64 = weights.iter().sum();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(order.len());
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for _ in 0..threads {
            let (tell, next, order, run) = (tell.clone(), &next, &order, &run);
            scope.spawn(move || {
                while let Some(job) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // After an error, results are not received any more.
                    if tell.send((*job, run(*job))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        let mut results: Vec<Option<T>> = weights.iter().map(|_| None).collect();
        let mut done = 0;
        progress.at(stage, 0, Some(all), Unit::Items);
        for (job, result) in told {
            results[job] = Some(result?);
            done += weights[job];
            progress.at(stage, done, Some(all), Unit::Items);
        }
        results.into_iter().collect::<Option<Vec<_>>>().context("a thread ended early; report this")
    })
}
