//! Work that is shared out to threads.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does something for each, on up to so many threads, each of which takes the next when it is ready. Results are in order.
pub(crate) fn each<T: Sync, U: Send>(threads: usize, of: &[T], work: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let threads = threads.min(of.len());
    if threads <= 1 {
        return of.iter().map(work).collect();
    }
    let next = Mutex::new(of.iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(of.len()));
    let take = || loop {
        let next = next.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some((i, one)) = next else { return };
        let made = work(one);
        done.lock().unwrap_or_else(PoisonError::into_inner).push((i, made));
    };
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(take)));
        take();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, made)| made).collect()
}
