//! Work that a driver may spread over its threads. This crate starts none.

use std::sync::{Mutex, PoisonError};

/// Whatever runs the jobs of one step: making queries, or decoding answers. They don't depend on each other.
///
/// Job `i` belongs to query `i` of the request that the step makes or answers, so that a driver can measure each.
pub trait Workers {
    /// Calls `job` once with each number below `count`, in any order and on any thread, and returns when all have
    /// returned.
    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync));
}

/// The caller's thread, one job after another.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneThread;

impl Workers for OneThread {
    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(job);
    }
}

/// What the jobs came to, in their order.
///
/// # Panics
/// The workers left a job out.
pub(crate) fn spread<T: Send>(
    workers: &dyn Workers,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let done: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    workers.run(count, &|i| {
        let result = work(i);
        *done[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    let take = |slot: Mutex<Option<T>>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter().map(|slot| take(slot).expect("workers run every job")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_order() {
        struct Backwards;
        impl Workers for Backwards {
            fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
                (0..count).rev().for_each(job);
            }
        }
        for workers in [&OneThread as &dyn Workers, &Backwards] {
            assert_eq!(spread(workers, 4, |i| i * i), [0, 1, 4, 9]);
        }
    }
}
