//! What one client may take of a server, so that there is something left for the others.
//!
//! A client is a token or, where none is asked for, an address; of IPv6 the network of
//! 64 bits, for its owner has all addresses in it.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blindcore_wire::Reason;
use tokio::sync::Notify;

use crate::Config;
use crate::activity::Activity;
use crate::refusal::Refusal;
use crate::sizes::{HINT_BUFFERS, REQUEST_SLACK};

/// Where a request comes from.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Clients that are remembered though nothing of theirs is under way.
const MAX_AT_REST: usize = 1 << 16;

/// What identifies a client.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum ClientId {
    Token(Arc<str>),
    V4(Ipv4Addr),
    V6([u8; 8]),
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => f.write_str(name),
            Self::V4(address) => address.fmt(f),
            Self::V6([a, b, c, d, e, f_, g, h]) => {
                let [one, two, three, four] =
                    [[*a, *b], [*c, *d], [*e, *f_], [*g, *h]].map(u16::from_be_bytes);
                write!(f, "{one:x}:{two:x}:{three:x}:{four:x}::/64")
            }
        }
    }
}

impl From<IpAddr> for ClientId {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::V4(v4),
            IpAddr::V6(v6) => {
                let [a, b, c, d, e, f, g, h, ..] = v6.octets();
                Self::V6([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// So much a minute: what was not taken is kept for at most a minute, and what was taken too much is waited for.
struct Bucket {
    per_second: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    fn new(per_minute: u64, now: Instant) -> Self {
        Self { per_second: per_minute as f64 / 60.0, level: per_minute as f64, at: now }
    }

    fn fill(&mut self, now: Instant) {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.per_second;
        self.level = (self.level + gained).min(60.0 * self.per_second);
        self.at = now;
    }

    /// How long until there is one in it.
    fn wait(&mut self, now: Instant) -> Option<Duration> {
        self.fill(now);
        (self.level < 1.0)
            .then(|| Duration::from_secs_f64(((1.0 - self.level) / self.per_second).min(3600.0)))
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.level >= 60.0 * self.per_second
    }
}

/// A client, as long as something of it is under way, and until it has back all that it may take.
pub(crate) struct Client {
    /// Another for each.
    pub(crate) number: u64,
    /// Its token's name, or its address, for a log.
    pub(crate) name: String,
    waiting: AtomicUsize,
    waiting_limit: usize,
    memory: AtomicUsize,
    memory_limit: Arc<AtomicUsize>,
    buckets: Mutex<[Option<Bucket>; 3]>,
}

/// What there is a bucket of.
const QUERIES: usize = 0;
const HINT_BYTES: usize = 1;
const REGISTRATIONS: usize = 2;

/// Queries that a client has waiting, until they are answered or gone.
pub(crate) struct Waiting(Arc<Client>, usize);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Client {
    fn buckets(&self) -> MutexGuard<'_, [Option<Bucket>; 3]> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets queries in: no more at once, and no more a minute, than this client may have.
    pub(crate) fn ask(self: &Arc<Self>, queries: usize) -> Result<Waiting, Refusal> {
        self.check(QUERIES, "queries")?;
        let limit = self.waiting_limit;
        let more = |waiting: usize| waiting.checked_add(queries).filter(|all| *all <= limit);
        if let Err(waiting) = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            let message = format!(
                "{waiting} queries of yours wait and {queries} more would pass the limit of {limit} a client; wait for \
                 answers first"
            );
            return Err(Refusal::new(Reason::TooMany, message).retry_after(Duration::from_secs(1)));
        }
        let waiting = Waiting(self.clone(), queries);
        self.charge(QUERIES, queries);
        Ok(waiting)
    }

    /// Takes memory for a request, within a part of what this client may have.
    pub(crate) fn take_memory(&self, bytes: usize, part: usize) -> Result<(), Refusal> {
        // A hint and the request for it have a place in the smallest.
        let limit = (self.memory_limit.load(Ordering::Relaxed) / part).max(HINT_BUFFERS + REQUEST_SLACK);
        let more = |used: usize| used.checked_add(bytes).filter(|all| *all <= limit);
        match self.memory.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(used) => {
                let message = format!(
                    "requests of yours take {used} B and {bytes} B more would pass the limit of {limit} B a client; wait for \
                     answers, and read them"
                );
                Err(Refusal::new(Reason::TooMany, message).retry_after(Duration::from_secs(1)))
            }
        }
    }

    pub(crate) fn give_memory_back(&self, bytes: usize) {
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether a hint may be sent now; its bytes are charged as they leave.
    pub(crate) fn may_fetch(&self) -> Result<(), Refusal> {
        self.check(HINT_BYTES, "bytes of hints")
    }

    /// Bytes of a hint that leave for this client.
    pub(crate) fn fetched(&self, bytes: usize) {
        self.charge(HINT_BYTES, bytes);
    }

    /// Lets a registration of keys in.
    pub(crate) fn may_register(&self) -> Result<(), Refusal> {
        self.check(REGISTRATIONS, "registrations of keys")?;
        self.charge(REGISTRATIONS, 1);
        Ok(())
    }

    fn check(&self, which: usize, what: &str) -> Result<(), Refusal> {
        let wait =
            self.buckets()[which].as_mut().and_then(|b| b.wait(Instant::now()).map(|w| (w, b.per_second)));
        let Some((wait, per_second)) = wait else { return Ok(()) };
        let message = format!(
            "this client has had its {:.0} {what} a minute; ask again in {} s",
            per_second * 60.0,
            wait.as_secs() + 1
        );
        Err(Refusal::new(Reason::TooMany, message).retry_after(wait))
    }

    fn charge(&self, which: usize, n: usize) {
        if let Some(bucket) = &mut self.buckets()[which] {
            bucket.level -= n as f64;
        }
    }

    fn is_at_rest(&self, now: Instant) -> bool {
        self.buckets().iter_mut().flatten().all(|b| b.is_full(now))
    }
}

/// Clients with requests now or lately.
pub(crate) struct Clients {
    waiting_limit: usize,
    memory_limit: Arc<AtomicUsize>,
    per_minute: [Option<u64>; 3],
    next: AtomicU64,
    all: Mutex<HashMap<ClientId, Arc<Client>>>,
}

impl Clients {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            waiting_limit: config.waiting_per_client,
            // Where one client may have all of it, only the total limits it.
            memory_limit: Arc::new(AtomicUsize::new(match config.memory_of_client() {
                all if all >= config.memory_bytes => usize::MAX,
                some => some,
            })),
            per_minute: [config.queries_per_minute, config.hint_bytes_per_minute, config.keys.per_minute],
            next: AtomicU64::new(0),
            all: Mutex::default(),
        }
    }

    /// This client, as long as it is needed.
    pub(crate) fn get(&self, id: ClientId) -> Arc<Client> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = all.get(&id) {
            return client.clone();
        }
        let now = Instant::now();
        // Swept whenever it has doubled, so that a newcomer costs little on average.
        if all.len() >= 1024 && all.len().is_power_of_two() {
            let used = |c: &Arc<Client>| Arc::strong_count(c) > 1;
            all.retain(|_, c| used(c) || !c.is_at_rest(now));
            if all.len() >= MAX_AT_REST {
                // More addresses than can be told apart: they start again at zero, which the limits of the server bound.
                all.retain(|_, c| used(c));
            }
        }
        let client = Arc::new(Client {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            name: id.to_string(),
            waiting: AtomicUsize::new(0),
            waiting_limit: self.waiting_limit,
            memory: AtomicUsize::new(0),
            memory_limit: self.memory_limit.clone(),
            buckets: Mutex::new(self.per_minute.map(|n| n.map(|n| Bucket::new(n, now)))),
        });
        all.insert(id, client.clone());
        client
    }

    /// Gives each at least so much memory: what one request of a table needs.
    pub(crate) fn allow_memory(&self, bytes: usize) {
        self.memory_limit.fetch_max(bytes, Ordering::Relaxed);
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// An open connection, as seen when one has to be chosen and cut.
struct Open {
    number: u64,
    activity: Arc<Activity>,
    cut: Arc<Notify>,
}

#[derive(Default)]
struct OpenTable {
    by_client: HashMap<ClientId, Vec<Open>>,
    count: usize,
    next: u64,
}

/// Connections that are open, by the addresses that they come from.
pub(crate) struct Connections {
    limit: usize,
    per_client: usize,
    open: Mutex<OpenTable>,
}

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// Its address has as many as it may have, and all of them wait for answers.
    Client,
    /// There are as many as there may be, no address has more of them than this one, and its own wait for answers.
    Server,
}

impl Connections {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let (limit, per_client) = (config.connections, config.connections_per_client);
        Arc::new(Self { limit, per_client, open: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, OpenTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sockets that may be open at a time: where nobody may have all of them there is one more, for a newcomer to be
    /// looked at; where one may, newcomers wait unseen.
    pub(crate) fn sockets(&self) -> usize {
        self.limit + usize::from(self.per_client < self.limit)
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.lock().count
    }

    /// A place for a connection. Where its address has as many as it may have, the one of them that was quiet longest gives
    /// way, if any waits for nothing from us. Where none is free at all, the address that has most gives up such a one,
    /// unless that would leave it with fewer than the newcomer's has; then the newcomer's own gives way as before.
    pub(crate) fn admit(
        self: &Arc<Self>,
        address: IpAddr,
        activity: Arc<Activity>,
    ) -> Result<(Place, bool), NoPlace> {
        let id = ClientId::from(address);
        let mut table = self.lock();
        let mine = table.by_client.get(&id).map_or(0, Vec::len);
        let from = if mine >= self.per_client {
            Some(id.clone())
        } else if table.count >= self.limit {
            let most = table.by_client.iter().max_by_key(|(_, open)| open.len());
            let most = most.filter(|(_, open)| open.len() > mine + 1).map(|(id, _)| id.clone());
            let own = (mine > 0).then(|| id.clone());
            Some(most.or(own).ok_or(NoPlace::Server)?)
        } else {
            None
        };
        if let Some(from) = &from {
            let open = table.by_client.get_mut(from).expect("it was just there");
            let idle = |i: &usize| (!open[*i].activity.owes(), open[*i].activity.quiet());
            let quietest = (0..open.len()).max_by_key(idle).expect("it has some");
            if *from == id && open[quietest].activity.owes() {
                return Err(if mine >= self.per_client { NoPlace::Client } else { NoPlace::Server });
            }
            open.swap_remove(quietest).cut.notify_one();
            table.count -= 1;
        }
        let cut = from.is_some();
        table.count += 1;
        table.next += 1;
        let (number, told) = (table.next, Arc::new(Notify::new()));
        table.by_client.entry(id.clone()).or_default().push(Open { number, activity, cut: told.clone() });
        drop(table);
        Ok((Place { all: self.clone(), id, number, cut: told }, cut))
    }
}

/// A connection's place, free again on drop.
pub(crate) struct Place {
    all: Arc<Connections>,
    id: ClientId,
    number: u64,
    /// Told when another needs it.
    pub(crate) cut: Arc<Notify>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.all.lock();
        let Some(open) = table.by_client.get_mut(&self.id) else { return };
        let Some(at) = open.iter().position(|o| o.number == self.number) else { return };
        open.swap_remove(at);
        if open.is_empty() {
            table.by_client.remove(&self.id);
        }
        table.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_owner_of_many_addresses_is_one_client() {
        let same = |a: &str, b: &str| ClientId::from(address(a)) == ClientId::from(address(b));
        assert!(same("2001:db8:1:2:3::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1"));
        assert_eq!(ClientId::from(address("2001:db8:1:2::1")).to_string(), "2001:db8:1:2::/64");
        assert!(same("::ffff:192.0.2.1", "192.0.2.1") && !same("192.0.2.1", "192.0.2.2"));
    }

    #[test]
    fn a_bucket_fills_and_remembers_what_was_too_much() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut bucket = Bucket::new(60, start);
        assert!(bucket.is_full(start) && bucket.wait(start).is_none());
        bucket.level -= 59.0;
        assert!(bucket.wait(start).is_none(), "one is left");
        bucket.level -= 31.0;
        assert_eq!(bucket.wait(start), Some(Duration::from_secs(31)));
        assert_eq!(bucket.wait(after(10)), Some(Duration::from_secs(21)));
        assert_eq!((bucket.wait(after(31)), bucket.level), (None, 1.0));
        assert!(bucket.is_full(after(1000)) && bucket.level == 60.0, "and holds a minute's at most");
    }

    #[test]
    fn a_client_has_its_share_and_gets_it_back() {
        let config = Config {
            waiting_per_client: 10,
            queries_per_minute: Some(20),
            hint_bytes_per_minute: Some(1000),
            ..Config::default()
        };
        let clients = Clients::new(&config);
        let id = |n| ClientId::Token(format!("client {n}").into());
        let one = clients.get(id(1));
        let first = one.ask(8).unwrap();
        let refused = one.ask(3).err().unwrap();
        assert_eq!((refused.reason, one.number), (Reason::TooMany, clients.get(id(1)).number));
        let second = one.ask(2).unwrap();
        drop(first);
        let _third = one.ask(8).unwrap();
        drop(second);
        let refused = one.ask(2).map(|_| ());
        assert!(refused.is_ok(), "18 of 20 are taken, and a client with some left gets all that it asks for");
        let refused = one.ask(1).err().unwrap().status().message().to_owned();
        assert!(refused.contains("its 20 queries a minute"), "{refused}");
        assert!(clients.get(id(2)).ask(10).is_ok(), "others have their own");

        assert!(one.may_fetch().is_ok());
        one.fetched(5000);
        let refused = one.may_fetch().err().unwrap().status().message().to_owned();
        assert!(refused.contains("1000 bytes of hints a minute"), "{refused}");
    }

    #[test]
    fn who_comes_once_is_forgotten() {
        let clients = Clients::new(&Config::default());
        let kept = clients.get(ClientId::V4(Ipv4Addr::from(1)));
        for n in 0..5000 {
            clients.get(ClientId::V4(Ipv4Addr::from(n)));
            assert!(clients.len() <= 1024);
        }
        assert_eq!(clients.get(ClientId::V4(Ipv4Addr::from(1))).number, kept.number);
    }

    #[test]
    fn who_has_most_connections_gives_way() {
        let config = Config { connections: 6, connections_per_client: 5, ..Config::default() };
        let all = Connections::new(&config);
        assert_eq!(all.sockets(), 7);
        let come = |who: &str| all.admit(address(who), Activity::new());
        let mut greedy: Vec<Place> = (0..5).map(|_| come("192.0.2.1").ok().unwrap().0).collect();
        // It may have no more than that: its next takes the place of its own first.
        let (next, cut) = come("192.0.2.1").ok().unwrap();
        assert!(cut && all.len() == 5);
        drop(greedy.remove(0));
        greedy.push(next);
        assert_eq!(all.len(), 5);
        let other = come("192.0.2.2").ok().unwrap();
        assert!(!other.1 && all.len() == 6);
        // All are taken: newcomers get places of the greedy one, until it has no more than they.
        let mut newcomers = Vec::new();
        for n in 3..=6 {
            let (place, cut) = come(&format!("192.0.2.{n}")).ok().unwrap();
            assert!(cut && all.len() == 6);
            newcomers.push(place);
        }
        assert_eq!(come("192.0.2.7").err(), Some(NoPlace::Server));
        // Who has an idle one of its own is not kept out by it.
        let own = come("192.0.2.1").ok().unwrap();
        assert!(own.1 && all.len() == 6);
        greedy.push(own.0);
        // Those who were cut go, which frees nothing a second time.
        greedy.clear();
        assert_eq!(all.len(), 5);
        drop((other, newcomers));
        assert_eq!(all.len(), 0);

        // Whoever waits for an answer keeps its place.
        let few = Connections::new(&Config { connections: 6, connections_per_client: 2, ..config.clone() });
        let (working, idle) = (Activity::new(), Activity::new());
        let owed = crate::activity::Owed::new(working.clone());
        owed.due();
        let mine = address("192.0.2.1");
        let one = few.admit(mine, working.clone()).ok().unwrap().0;
        let two = few.admit(mine, idle).ok().unwrap().0;
        let three = few.admit(mine, working).ok().unwrap();
        assert!(three.1, "the idle one gave way");
        drop(two);
        assert_eq!((few.len(), few.admit(mine, Activity::new()).err()), (2, Some(NoPlace::Client)));
        drop(owed);
        assert!(few.admit(mine, Activity::new()).is_ok());
        drop((one, three));
        let full = Connections::new(&Config { connections: 2, connections_per_client: 2, ..config.clone() });
        let (working, other) = (Activity::new(), address("192.0.2.2"));
        let owed = crate::activity::Owed::new(working.clone());
        owed.due();
        let held =
            (full.admit(mine, working).ok().unwrap(), full.admit(other, Activity::new()).ok().unwrap());
        assert_eq!(full.admit(mine, Activity::new()).err(), Some(NoPlace::Server));
        drop((owed, held));

        let alone = Config { connections: 6, connections_per_client: 6, ..config };
        assert_eq!(Connections::new(&alone).sockets(), 6);
    }
}
