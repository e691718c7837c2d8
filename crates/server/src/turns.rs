//! Turns at the processor: work is cut into pieces, and before each its request waits for a turn. Clients take turns with each
//! other, and the requests of one client among themselves, so that a small request waits for pieces of large ones and
//! never for a whole one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Turns of which so many are under way at a time.
pub(crate) struct Turns(Mutex<Queue>);

struct Queue {
    free: usize,
    /// Who comes next is first. None has an empty queue.
    clients: VecDeque<(u64, VecDeque<oneshot::Sender<Turn>>)>,
}

/// A turn, until it is dropped.
pub(crate) struct Turn(Option<Arc<Turns>>);

impl Turns {
    pub(crate) fn new(at_a_time: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue { free: at_a_time, clients: VecDeque::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn for a client's request, behind others of that client, when the client's comes.
    pub(crate) async fn wait(self: &Arc<Self>, client: u64) -> Turn {
        let (sender, turn) = oneshot::channel();
        {
            let mut queue = self.lock();
            match queue.clients.iter_mut().find(|(number, _)| *number == client) {
                Some((_, waiting)) => waiting.push_back(sender),
                None => queue.clients.push_back((client, VecDeque::from([sender]))),
            }
        }
        self.hand_out();
        turn.await.expect("a turn is sent to whoever waits")
    }

    /// Gives free turns to those who are next. One that has gone meanwhile is passed over.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let sender = {
                let mut queue = self.lock();
                if queue.free == 0 {
                    return;
                }
                let Some((client, mut waiting)) = queue.clients.pop_front() else { return };
                let sender = waiting.pop_front();
                if !waiting.is_empty() {
                    queue.clients.push_back((client, waiting));
                }
                queue.free -= 1;
                sender
            };
            let turn = Turn(Some(self.clone()));
            if let Some(Err(mut turn)) = sender.map(|sender| sender.send(turn)) {
                // Without this loop's help: it goes on itself.
                turn.0 = None;
                self.lock().free += 1;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.lock().free += 1;
            turns.hand_out();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of work, in the order in which they have their turns.
    #[tokio::test]
    async fn a_small_request_passes_between_the_pieces_of_large_ones() {
        let turns = Turns::new(1);
        let done = Arc::new(Mutex::new(Vec::new()));
        let first = turns.wait(0).await;
        let mut jobs = Vec::new();
        // Two large ones of one client came first, then a small one of the same, then one of another client.
        for (name, client, pieces) in [("a", 1, 4), ("b", 1, 4), ("small", 1, 1), ("other", 2, 2)] {
            let (turns, done) = (turns.clone(), done.clone());
            jobs.push(tokio::spawn(async move {
                for _ in 0..pieces {
                    let _turn = turns.wait(client).await;
                    done.lock().unwrap().push(name);
                }
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for job in jobs {
            job.await.unwrap();
        }
        let done = done.lock().unwrap();
        assert_eq!(done.len(), 11);
        let end = |name: &str| done.iter().rposition(|n| *n == name).unwrap();
        assert!(end("small") <= 5 && end("other") <= 5, "{done:?}");
        assert!(end("a") > 5 && end("b") > 5, "{done:?}");
    }

    #[tokio::test]
    async fn who_has_gone_is_passed_over() {
        let turns = Turns::new(1);
        let first = turns.wait(0).await;
        let waits = {
            let turns = turns.clone();
            tokio::spawn(async move { turns.wait(1).await })
        };
        tokio::task::yield_now().await;
        waits.abort();
        assert!(waits.await.is_err());
        let last = {
            let turns = turns.clone();
            tokio::spawn(async move { drop(turns.wait(2).await) })
        };
        tokio::task::yield_now().await;
        drop(first);
        last.await.unwrap();
        assert_eq!(turns.lock().free, 1);
    }
}
