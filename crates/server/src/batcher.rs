//! Queries of different clients, answered in one pass over the database.
//!
//! ```text
//!   client A: a0 a1 a2 ─┐                     one query of each client in turn, and of its requests in turn,
//!             A0        │                     up to `gather`
//!   client B: b0        ├─▶ waiting ──worker──▶  pass 1: a0 b0 c0 A0      B and C are answered, and A's second
//!   client C: c0        ┘   (bounded)            pass 2: a1 a2 ...        A's first is answered
//! ```
//!
//! One thread for each part: a pass uses the whole device, so a second one would only slow both. A request whose
//! client went away is dropped before it is computed. Where too many wait, the client that has most of them gives
//! way to those that have fewer, so that nobody can fill the queue for everybody.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use blindcore_lookup::RegisteredKeys;
use blindcore_wire::Reason;
use bytes::Bytes;
use tokio::sync::oneshot;

use crate::clients::Waiting;
use crate::permit::MemoryPermit;
use crate::refusal::Refusal;
use crate::registered::ReadyKeys;
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
    client: u64,
    queries: VecDeque<Bytes>,
    /// What all of them are under, where the scheme has registered keys.
    keys: Option<ReadyKeys>,
    /// The request's memory is held as long as its queries are here, even if the client went away.
    _guard: Option<Guard>,
    reply: oneshot::Sender<Result<Reply, Refusal>>,
    asked: Instant,
    started: bool,
    answers: Vec<Vec<u8>>,
    so_far: Reply,
}

/// A client's place among the queries that it may have waiting, and the memory of a request.
pub(crate) type Guard = (Waiting, Arc<MemoryPermit>);

/// What one client has in the queue.
#[derive(Default)]
struct Turn {
    /// Requests with queries that wait, the next one first.
    jobs: VecDeque<u64>,
    /// Queries in them.
    waiting: usize,
}

#[derive(Default)]
struct Queue {
    /// Requests that are not answered, by a number that is theirs alone.
    jobs: HashMap<u64, Job>,
    /// Clients with queries that wait.
    clients: HashMap<u64, Turn>,
    /// The same, the next one first.
    turns: VecDeque<u64>,
    /// Queries that wait.
    waiting: usize,
    next: u64,
    closed: bool,
}

impl Queue {
    fn push(&mut self, job: Job) {
        self.next += 1;
        let turn = self.clients.entry(job.client).or_insert_with(|| {
            self.turns.push_back(job.client);
            Turn::default()
        });
        turn.jobs.push_back(self.next);
        turn.waiting += job.queries.len();
        self.waiting += job.queries.len();
        self.jobs.insert(self.next, job);
    }

    /// The next query, its request and the keys that it is under, if any waits.
    fn pick(&mut self, counters: &PartCounters) -> Option<(u64, Bytes, Option<ReadyKeys>)> {
        while let Some(client) = self.turns.pop_front() {
            let turn = self.clients.get_mut(&client).expect("it has its turn");
            let Some(id) = turn.jobs.pop_front() else {
                self.clients.remove(&client);
                continue;
            };
            let Some(job) = self.jobs.get_mut(&id) else {
                // Refused when a pass failed.
                self.turns.push_front(client);
                continue;
            };
            if job.reply.is_closed() {
                turn.waiting -= job.queries.len();
                self.waiting -= job.queries.len();
                add(&counters.abandoned, job.queries.len() as u64);
                self.jobs.remove(&id);
                self.turns.push_front(client);
                continue;
            }
            let query = job.queries.pop_front().expect("only requests with queries wait");
            let keys = job.keys.clone();
            if !std::mem::replace(&mut job.started, true) {
                counters.wait_time.observe(job.asked.elapsed().as_micros() as u64);
            }
            turn.waiting -= 1;
            self.waiting -= 1;
            if !job.queries.is_empty() {
                turn.jobs.push_back(id);
            }
            if turn.jobs.is_empty() {
                self.clients.remove(&client);
            } else {
                self.turns.push_back(client);
            }
            return Some((id, query, keys));
        }
        None
    }

    /// Takes requests of those who have most in the queue out of it, the newest first, until `count` queries of
    /// `client` fit, or nobody has more than it would have.
    fn make_room(&mut self, client: u64, count: usize, capacity: usize) -> Vec<Job> {
        let mine = self.clients.get(&client).map_or(0, |t| t.waiting) + count;
        let mut displaced = Vec::new();
        while self.waiting + count > capacity {
            let most = self.clients.iter().max_by_key(|(_, turn)| turn.waiting);
            let most = most.filter(|(_, turn)| turn.waiting > mine).map(|(client, _)| *client);
            let Some(most) = most else { break };
            let turn = self.clients.get_mut(&most).expect("it has most");
            let id = turn.jobs.pop_back().expect("it has queries");
            if turn.jobs.is_empty() {
                self.turns.retain(|c| *c != most);
            }
            if let Some(job) = self.jobs.remove(&id) {
                turn.waiting -= job.queries.len();
                self.waiting -= job.queries.len();
                displaced.push(job);
            }
            if turn.jobs.is_empty() {
                self.clients.remove(&most);
            }
        }
        displaced
    }
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    capacity: usize,
    counters: Arc<PartCounters>,
    /// Whether the last pass failed.
    failed: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic between two queue operations leaves the queue whole.
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Lets the counters know how many wait.
    fn tell(&self, queue: &Queue) {
        self.counters.waiting.store(queue.waiting as u64, Ordering::Relaxed);
    }
}

/// What computes a pass: [`blindcore_lookup::Server::answer_under`], or a test's stand-in. Keys are one a query, or none at all.
pub(crate) type Answer = Box<dyn Fn(&[&[u8]], &[&RegisteredKeys]) -> Result<Vec<Vec<u8>>, String> + Send>;

/// The queue and the worker of one part.
pub(crate) struct Batcher {
    shared: Arc<Shared>,
}

impl Batcher {
    pub(crate) fn start(
        answer: Answer,
        gather: usize,
        capacity: usize,
        counters: Arc<PartCounters>,
    ) -> std::io::Result<Self> {
        let (queue, wake, failed) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        let shared = Arc::new(Shared { queue, wake, capacity, counters, failed });
        let worker = shared.clone();
        std::thread::Builder::new()
            .name("blindcore-pass".into())
            .spawn(move || while pass(&worker, &answer, gather) {})?;
        Ok(Self { shared })
    }

    /// Whether the last pass failed.
    pub(crate) fn failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Lets queries of a client in, or refuses them all.
    pub(crate) fn ask(
        &self,
        client: u64,
        queries: impl ExactSizeIterator<Item = Bytes>,
        keys: Option<ReadyKeys>,
        guard: Option<Guard>,
    ) -> Result<oneshot::Receiver<Result<Reply, Refusal>>, Refusal> {
        let (reply, receiver) = oneshot::channel();
        let (count, limit) = (queries.len(), self.shared.capacity);
        let job = Job {
            client,
            queries: queries.collect(),
            keys,
            _guard: guard,
            reply,
            asked: Instant::now(),
            started: false,
            answers: Vec::with_capacity(count),
            so_far: Reply { answers: Vec::new(), pass_micros: 0, passes: 0, gathered: 0 },
        };
        let busy = |waiting| {
            format!(
                "{waiting} queries wait for this table and {count} more would pass the limit of {limit}; \
                 ask again later, or fewer at a time"
            )
        };
        let mut queue = self.shared.lock();
        let displaced = queue.make_room(client, count, limit);
        let waiting = queue.waiting;
        let fits = waiting + count <= limit;
        if fits {
            queue.push(job);
        }
        self.shared.tell(&queue);
        drop(queue);
        for job in displaced {
            add(&self.shared.counters.displaced, job.queries.len() as u64);
            let why = "others who have fewer queries waiting came, and the queue is full; ask again later, or fewer at a time";
            let _ = job.reply.send(Err(Refusal::new(Reason::Busy, why)));
        }
        if !fits {
            return Err(Refusal::new(Reason::Busy, busy(waiting)));
        }
        self.shared.wake.notify_one();
        Ok(receiver)
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_one();
    }
}

/// One pass: takes queries in turn, computes, and answers the requests that are complete. False once the batcher is
/// gone and nothing waits.
fn pass(shared: &Shared, answer: &Answer, gather: usize) -> bool {
    let counters = &shared.counters;
    // The requests of this pass, in the order of its queries.
    let (mut ids, mut queries) = (Vec::with_capacity(gather), Vec::with_capacity(gather));
    let mut keys: Vec<ReadyKeys> = Vec::new();
    {
        let mut queue = shared.lock();
        while queue.turns.is_empty() {
            if queue.closed {
                return false;
            }
            queue = shared.wake.wait(queue).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        while queries.len() < gather {
            let Some((id, query, under)) = queue.pick(counters) else { break };
            ids.push(id);
            queries.push(query);
            keys.extend(under);
        }
        shared.tell(&queue);
    }
    if queries.is_empty() {
        return true;
    }
    let started = Instant::now();
    let views: Vec<&[u8]> = queries.iter().map(|q| &**q).collect();
    let under: Vec<&RegisteredKeys> = keys.iter().map(|keys| &**keys).collect();
    let answers = std::panic::catch_unwind(AssertUnwindSafe(|| answer(&views, &under)))
        .unwrap_or_else(|_| Err("the device panicked".into()));
    let micros = started.elapsed().as_micros() as u64;
    add(&counters.passes, 1);
    add(&counters.queries, queries.len() as u64);
    add(&counters.pass_micros, micros);
    counters.pass_time.observe(micros);
    counters.gathered.observe(queries.len() as u64);
    counters.most_gathered.fetch_max(queries.len() as u64, Ordering::Relaxed);
    let whole = answers.as_ref().is_ok_and(|answers| answers.len() == queries.len());
    shared.failed.store(!whole, Ordering::Relaxed);
    let answers = match answers {
        Ok(answers) if whole => answers,
        Ok(_) | Err(_) => {
            let why = answers.err().unwrap_or_else(|| "the device gave too few answers".into());
            tracing::error!(why, "a pass failed");
            let refusal = Refusal::new(
                Reason::Internal,
                "the server failed to compute this answer; its log says why; don't send these queries again",
            );
            // Their places are free before they hear of it.
            let mut queue = shared.lock();
            let failed: Vec<Job> = ids.iter().filter_map(|id| queue.jobs.remove(id)).collect();
            for job in &failed {
                queue.waiting -= job.queries.len();
                if let Some(turn) = queue.clients.get_mut(&job.client) {
                    turn.waiting -= job.queries.len();
                }
            }
            shared.tell(&queue);
            drop(queue);
            for job in failed {
                let _ = job.reply.send(Err(refusal.clone()));
            }
            return true;
        }
    };
    let mut complete = Vec::new();
    let mut queue = shared.lock();
    for (at, (id, answer)) in ids.iter().zip(answers).enumerate() {
        // Requests that gave way meanwhile are gone.
        let Some(job) = queue.jobs.get_mut(id) else { continue };
        job.answers.push(answer);
        if !ids[..at].contains(id) {
            job.so_far.passes += 1;
            job.so_far.pass_micros += micros;
            job.so_far.gathered = job.so_far.gathered.max(queries.len());
        }
        if job.queries.is_empty() && !ids[at + 1..].contains(id) {
            complete.extend(queue.jobs.remove(id));
        }
    }
    drop(queue);
    for Job { reply, mut so_far, answers, .. } in complete {
        so_far.answers = answers.concat();
        // Nobody waits for it any more: then it was computed in vain.
        let _ = reply.send(Ok(so_far));
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A worker whose passes wait until the test lets them go, and then tell what they hold.
    struct Rig {
        batcher: Batcher,
        go: mpsc::Sender<()>,
        seen: mpsc::Receiver<Vec<u8>>,
        counters: Arc<PartCounters>,
    }

    type Answered = oneshot::Receiver<Result<Reply, Refusal>>;

    impl Rig {
        fn new(gather: usize, capacity: usize) -> Self {
            let (go, wait) = mpsc::channel();
            let (tell, seen) = mpsc::channel();
            let answer = move |queries: &[&[u8]], _: &[&RegisteredKeys]| {
                tell.send(queries.iter().map(|q| q[0]).collect()).unwrap();
                let _ = wait.recv();
                if queries.iter().any(|q| q[0] == b'!') {
                    return Err("broken".into());
                }
                assert!(queries.iter().all(|q| q[0] != b'?'), "on purpose");
                Ok(queries.iter().map(|q| vec![q[0].to_ascii_uppercase()]).collect())
            };
            let counters = Arc::new(PartCounters::default());
            let batcher = Batcher::start(Box::new(answer), gather, capacity, counters.clone()).unwrap();
            Self { batcher, go, seen, counters }
        }

        fn ask(&self, queries: &'static str) -> Result<Answered, Refusal> {
            self.ask_as(0, queries)
        }

        fn ask_as(&self, client: u64, queries: &'static str) -> Result<Answered, Refusal> {
            self.batcher.ask(
                client,
                (0..queries.len()).map(|i| Bytes::from_static(&queries.as_bytes()[i..=i])),
                None,
                None,
            )
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
    fn each_query_comes_with_the_keys_that_it_is_under() {
        let (go, wait) = mpsc::channel::<()>();
        let (tell, seen) = mpsc::channel();
        let answer = move |queries: &[&[u8]], keys: &[&RegisteredKeys]| {
            let under = keys.iter().map(|keys| *keys.get::<u8>().unwrap());
            tell.send(queries.iter().map(|q| q[0]).zip(under).collect::<Vec<_>>()).unwrap();
            let _ = wait.recv();
            Ok(queries.iter().map(|q| q.to_vec()).collect())
        };
        let batcher = Batcher::start(Box::new(answer), 8, 100, Arc::default()).unwrap();
        let ask = |client: u8, queries: &'static [u8]| {
            let each = (0..queries.len()).map(|i| Bytes::from_static(&queries[i..=i]));
            let keys = Some(Arc::new(RegisteredKeys::new(client)));
            batcher.ask(client.into(), each, keys, None).unwrap()
        };
        let first = ask(9, b"x");
        assert_eq!(seen.recv().unwrap(), [(b'x', 9)]);
        let (one, two) = (ask(1, b"abc"), ask(2, b"AB"));
        go.send(()).unwrap();
        assert_eq!(seen.recv().unwrap(), [(b'a', 1), (b'A', 2), (b'b', 1), (b'B', 2), (b'c', 1)]);
        drop(go);
        assert_eq!((text(first), text(one), text(two)), ("x".into(), "abc".into(), "AB".into()));
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
        rig.pass("3cde");
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

    #[test]
    fn a_client_with_many_requests_has_one_share() {
        let rig = Rig::new(4, 100);
        let first = rig.ask("x").unwrap();
        assert_eq!(rig.seen.recv().unwrap(), b"x");
        let many: Vec<_> = ["a", "b", "c", "d", "ef", "g"].map(|q| rig.ask_as(1, q).unwrap()).into();
        let (two, three) = (rig.ask_as(2, "123").unwrap(), rig.ask_as(3, "!").unwrap());
        drop(three);
        let three = rig.ask_as(3, "67").unwrap();
        rig.go.send(()).unwrap();
        for holds in ["a16b", "27c3", "degf"] {
            rig.pass(holds);
        }
        assert_eq!(many.into_iter().map(text).collect::<Vec<_>>(), ["A", "B", "C", "D", "EF", "G"]);
        assert_eq!((text(first), text(two), text(three)), ("X".into(), "123".into(), "67".into()));
        assert_eq!(rig.counters.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_fills_the_queue_gives_way() {
        let rig = Rig::new(2, 10);
        let first = rig.ask("x").unwrap();
        assert_eq!(rig.seen.recv().unwrap(), b"x");
        // One client has all places, and the pass to come too.
        let greedy: Vec<_> = ["ab", "cd", "ef", "gh", "ij"].map(|q| rig.ask_as(1, q).unwrap()).into();
        assert_eq!(rig.ask_as(1, "k").err().unwrap().reason, Reason::Busy);
        let two = rig.ask_as(2, "123").unwrap();
        let three = rig.ask_as(3, "456").unwrap();
        // The greedy one has four left, and nobody with three or four more may have its last.
        assert_eq!(rig.ask_as(4, "7890").err().unwrap().reason, Reason::Busy);
        rig.go.send(()).unwrap();
        for holds in ["a1", "4c", "25", "b3", "6d"] {
            rig.pass(holds);
        }
        let mut greedy = greedy.into_iter();
        assert_eq!((text(greedy.next().unwrap()), text(greedy.next().unwrap())), ("AB".into(), "CD".into()));
        for gone in greedy {
            let refused = gone.blocking_recv().unwrap().err().unwrap();
            assert_eq!(refused.reason, Reason::Busy);
        }
        assert_eq!((text(first), text(two), text(three)), ("X".into(), "123".into(), "456".into()));
        assert_eq!(rig.counters.displaced.load(Ordering::Relaxed), 6);
        let after = rig.ask("0123456789").unwrap();
        for holds in ["01", "23", "45", "67", "89"] {
            rig.pass(holds);
        }
        assert_eq!(text(after), "0123456789");
    }
}
