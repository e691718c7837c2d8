//! Queries of different clients, answered in one pass over the database.
//!
//! ```text
//!   request A: a0 a1 a2 ─┐                     one query of each request in turn, up to `gather`
//!   request B: b0        ├─▶ waiting ──worker──▶  pass 1: a0 b0 c0 a1      B and C are answered
//!   request C: c0        ┘   (bounded)            pass 2: a2 ...           A is answered
//! ```
//!
//! One thread a part: a pass uses the whole device, so a second one would only slow both. A request whose
//! client went away is dropped before it is computed.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use blindcore_wire::Reason;
use bytes::Bytes;
use tokio::sync::oneshot;

use crate::budget::Held;
use crate::refusal::Refusal;
use crate::stats::{PartCounters, add};

/// The answers to a request.
pub(crate) struct Reply {
    /// One after another, in the order of the queries.
    pub(crate) answers: Vec<u8>,
    /// Time of the passes that it took part in.
    pub(crate) pass_micros: u64,
    /// Passes that it took part in.
    pub(crate) passes: u32,
    /// The most queries that one of them gathered.
    pub(crate) gathered: usize,
}

struct Job {
    queries: VecDeque<Bytes>,
    /// The memory that the request takes is taken as long as its queries are here, whoever went away.
    _held: Option<Arc<Held>>,
    reply: oneshot::Sender<Result<Reply, Refusal>>,
    so_far: Reply,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Queries in `jobs`.
    waiting: usize,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    capacity: usize,
    counters: Arc<PartCounters>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic between two queue operations leaves the queue whole.
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What computes a pass: [`blindcore_lookup::Server::answer`], or a test's stand-in.
pub(crate) type Answer = Box<dyn Fn(&[&[u8]]) -> Result<Vec<Vec<u8>>, String> + Send>;

/// The queue and the worker of one part.
pub(crate) struct Gatherer {
    shared: Arc<Shared>,
}

impl Gatherer {
    pub(crate) fn start(
        answer: Answer,
        gather: usize,
        capacity: usize,
        counters: Arc<PartCounters>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new(), capacity, counters });
        let worker = shared.clone();
        std::thread::Builder::new()
            .name("blindcore-pass".into())
            .spawn(move || while pass(&worker, &answer, gather) {})?;
        Ok(Self { shared })
    }

    /// Lets queries in, or refuses them all.
    pub(crate) fn ask(
        &self,
        queries: impl ExactSizeIterator<Item = Bytes>,
        held: Option<Arc<Held>>,
    ) -> Result<oneshot::Receiver<Result<Reply, Refusal>>, Refusal> {
        let (reply, receiver) = oneshot::channel();
        let (count, limit) = (queries.len(), self.shared.capacity);
        let mut queue = self.shared.lock();
        let waiting = queue.waiting;
        if waiting + count > limit {
            return Err(Refusal::new(
                Reason::Busy,
                format!(
                    "{waiting} queries wait for this table and {count} more would pass the limit of {limit}; \
                     ask again later, or fewer at a time"
                ),
            ));
        }
        queue.waiting += count;
        let so_far = Reply { answers: Vec::new(), pass_micros: 0, passes: 0, gathered: 0 };
        queue.jobs.push_back(Job { queries: queries.collect(), _held: held, reply, so_far });
        drop(queue);
        self.shared.wake.notify_one();
        Ok(receiver)
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_one();
    }
}

/// One pass: takes a query of each waiting request in turn, computes, and answers those that are complete.
/// False once the gatherer is gone and nothing waits.
fn pass(shared: &Shared, answer: &Answer, gather: usize) -> bool {
    let counters = &shared.counters;
    let mut queries = Vec::with_capacity(gather);
    // Requests in this pass, each with the places of its queries in it. Those that wait for another pass go
    // back to the end of the queue, behind requests that came meanwhile.
    let mut jobs: Vec<(Job, Vec<usize>)> = Vec::new();
    {
        let mut queue = shared.lock();
        while queue.jobs.is_empty() {
            if queue.closed {
                return false;
            }
            queue = shared.wake.wait(queue).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        while jobs.len() < gather {
            let Some(job) = queue.jobs.pop_front() else { break };
            if job.reply.is_closed() {
                queue.waiting -= job.queries.len();
                add(&counters.abandoned, job.queries.len() as u64);
                continue;
            }
            jobs.push((job, Vec::new()));
        }
        let mut took = true;
        while took && queries.len() < gather {
            took = false;
            for (job, places) in &mut jobs {
                if queries.len() < gather
                    && let Some(query) = job.queries.pop_front()
                {
                    places.push(queries.len());
                    queries.push(query);
                    took = true;
                }
            }
        }
        queue.waiting -= queries.len();
    }
    if queries.is_empty() {
        return true;
    }
    let started = Instant::now();
    let views: Vec<&[u8]> = queries.iter().map(|q| &**q).collect();
    let answers = std::panic::catch_unwind(AssertUnwindSafe(|| answer(&views)))
        .unwrap_or_else(|_| Err("the device panicked".into()));
    let micros = started.elapsed().as_micros() as u64;
    add(&counters.passes, 1);
    add(&counters.queries, queries.len() as u64);
    add(&counters.pass_micros, micros);
    counters.most_gathered.fetch_max(queries.len() as u64, Ordering::Relaxed);
    let answers = match answers {
        Ok(answers) if answers.len() == queries.len() => answers,
        Ok(_) | Err(_) => {
            let why = answers.err().unwrap_or_else(|| "the device gave too few answers".into());
            tracing::error!(why, "a pass failed");
            let refusal = Refusal::new(
                Reason::Internal,
                "the server failed to compute this answer; its log says why; don't send these queries again",
            );
            // Their places are free before they hear of it.
            shared.lock().waiting -= jobs.iter().map(|(job, _)| job.queries.len()).sum::<usize>();
            for (job, _) in jobs {
                let _ = job.reply.send(Err(refusal.clone()));
            }
            return true;
        }
    };
    let mut waiting = Vec::new();
    for (mut job, places) in jobs {
        let so_far = &mut job.so_far;
        if !places.is_empty() {
            so_far.passes += 1;
            so_far.pass_micros += micros;
            so_far.gathered = so_far.gathered.max(queries.len());
        }
        for place in places {
            so_far.answers.extend_from_slice(&answers[place]);
        }
        if job.queries.is_empty() {
            // Nobody waits for it any more: then it was computed in vain.
            let _ = job.reply.send(Ok(job.so_far));
        } else {
            waiting.push(job);
        }
    }
    shared.lock().jobs.extend(waiting);
    true
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A worker whose passes wait until the test lets them go, and then tell what they hold.
    struct Rig {
        gatherer: Gatherer,
        go: mpsc::Sender<()>,
        seen: mpsc::Receiver<Vec<u8>>,
        counters: Arc<PartCounters>,
    }

    type Answered = oneshot::Receiver<Result<Reply, Refusal>>;

    impl Rig {
        fn new(gather: usize, capacity: usize) -> Self {
            let (go, wait) = mpsc::channel();
            let (tell, seen) = mpsc::channel();
            let answer = move |queries: &[&[u8]]| {
                tell.send(queries.iter().map(|q| q[0]).collect()).unwrap();
                let _ = wait.recv();
                if queries.iter().any(|q| q[0] == b'!') {
                    return Err("broken".into());
                }
                assert!(queries.iter().all(|q| q[0] != b'?'), "on purpose");
                Ok(queries.iter().map(|q| vec![q[0].to_ascii_uppercase()]).collect())
            };
            let counters = Arc::new(PartCounters::default());
            let gatherer = Gatherer::start(Box::new(answer), gather, capacity, counters.clone()).unwrap();
            Self { gatherer, go, seen, counters }
        }

        fn ask(&self, queries: &'static str) -> Result<Answered, Refusal> {
            self.gatherer
                .ask((0..queries.len()).map(|i| Bytes::from_static(&queries.as_bytes()[i..=i])), None)
        }

        /// Lets the pass go that holds these.
        fn pass(&self, holds: &str) {
            assert_eq!(String::from_utf8(self.seen.recv().unwrap()).unwrap(), holds);
            self.go.send(()).unwrap();
        }
    }

    fn text(answered: Answered) -> String {
        String::from_utf8(answered.blocking_recv().unwrap().unwrap().answers).unwrap()
    }

    #[test]
    fn a_long_request_starves_nobody() {
        let rig = Rig::new(4, 100);
        let first = rig.ask("x").unwrap();
        assert_eq!(rig.seen.recv().unwrap(), b"x");
        let long = rig.ask("abcdefghij").unwrap();
        let short = rig.ask("1").unwrap();
        let other = rig.ask("23").unwrap();
        rig.go.send(()).unwrap();
        rig.pass("a12b");
        rig.pass("c3de");
        assert_eq!((text(first), text(short), text(other)), ("X".into(), "1".into(), "23".into()));
        let late = rig.ask("z").unwrap();
        // What comes while a pass runs is in the next or the one after, whichever was taken already.
        let passes: Vec<String> = (0..2)
            .map(|_| {
                let holds = String::from_utf8(rig.seen.recv().unwrap()).unwrap();
                rig.go.send(()).unwrap();
                holds
            })
            .collect();
        assert!(passes.concat().contains('z'), "{passes:?}");
        assert_eq!(text(late), "Z");
        assert_eq!(text(long), "ABCDEFGHIJ");
        assert_eq!(rig.counters.most_gathered.load(Ordering::Relaxed), 4);
        assert_eq!(rig.counters.queries.load(Ordering::Relaxed), 15);
    }

    #[test]
    fn more_requests_than_a_pass_takes_come_in_turn() {
        let rig = Rig::new(2, 100);
        let _first = rig.ask("x").unwrap();
        assert_eq!(rig.seen.recv().unwrap(), b"x");
        let all: Vec<_> = ["aA", "bB", "cC", "d"].map(|q| rig.ask(q).unwrap()).into();
        rig.go.send(()).unwrap();
        for holds in ["ab", "cd", "AB", "C"] {
            rig.pass(holds);
        }
        assert_eq!(all.into_iter().map(text).collect::<Vec<_>>(), ["AA", "BB", "CC", "D"]);
    }

    #[test]
    fn a_full_queue_refuses_and_recovers() {
        let rig = Rig::new(2, 5);
        let first = rig.ask("x").unwrap();
        assert_eq!(rig.seen.recv().unwrap(), b"x");
        let second = rig.ask("abcd").unwrap();
        let refused = rig.ask("ef").err().unwrap();
        assert_eq!(refused.reason, Reason::Busy);
        let message = refused.status().message().to_owned();
        assert!(message.contains("4 queries wait") && message.contains("limit of 5"), "{message}");
        let third = rig.ask("e").unwrap();
        rig.go.send(()).unwrap();
        for holds in ["ae", "bc", "d"] {
            rig.pass(holds);
        }
        assert_eq!((text(first), text(second), text(third)), ("X".into(), "ABCD".into(), "E".into()));
        let fourth = rig.ask("12345").unwrap();
        for holds in ["12", "34", "5"] {
            rig.pass(holds);
        }
        assert_eq!(text(fourth), "12345");
    }

    #[test]
    fn who_went_away_costs_no_pass() {
        let rig = Rig::new(4, 8);
        let first = rig.ask("x").unwrap();
        assert_eq!(rig.seen.recv().unwrap(), b"x");
        drop(rig.ask("abcdef").unwrap());
        let last = rig.ask("g").unwrap();
        rig.go.send(()).unwrap();
        rig.pass("g");
        assert_eq!((text(first), text(last)), ("X".into(), "G".into()));
        assert_eq!(rig.counters.abandoned.load(Ordering::Relaxed), 6);
        // Their places are free again.
        let all = rig.ask("12345678").unwrap();
        rig.pass("1234");
        rig.pass("5678");
        assert_eq!(text(all), "12345678");
    }

    #[test]
    fn a_pass_that_fails_fails_its_own_requests_alone() {
        let rig = Rig::new(2, 8);
        for bad in ["!abc", "?abc"] {
            let asked = rig.ask(bad).unwrap();
            rig.seen.recv().unwrap();
            rig.go.send(()).unwrap();
            assert_eq!(asked.blocking_recv().unwrap().err().unwrap().reason, Reason::Internal);
            let good = rig.ask("12345678").unwrap();
            for holds in ["12", "34", "56", "78"] {
                rig.pass(holds);
            }
            assert_eq!(text(good), "12345678");
        }
    }
}
