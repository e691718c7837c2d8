//! Points computed by tasks of Ray.
//!
//! ```text
//!   this process ──job──▶ ray.py (python3) ──tasks──▶ nodes: blindcore hw explore --worker, some points each
//!        ▲  journal, progress, results                          │
//!        └──────────────── finished points, a line a task ──────┘
//! ```
//!
//! A task gets the sweep's texts and the numbers of its points, so a node needs this same program in the same place and nothing else. What
//! is finished goes through the journal, as what threads compute does: results are the same to the byte. A task whose worker or node
//! dies begins again.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use blindcore_units::{one_line, quoted};
use serde::{Deserialize, Serialize};

use crate::counted::Counted;
use crate::point::{Outcome, columns, compute};
use crate::sources::Sources;
use crate::sweep::Sweep;

const DRIVER: &str = include_str!("ray.py");
/// How long a cluster may take to take a connection, to begin, and to say nothing.
const CONNECT: Duration = Duration::from_secs(5);
const BEGIN: Duration = Duration::from_secs(180);
const SILENCE: Duration = Duration::from_secs(120);
/// How often somebody who waits is asked whether they still do.
const ASK: Duration = Duration::from_millis(200);
/// How long Ray may take to end.
const END: Duration = Duration::from_secs(30);
/// No line of a job, a task or the driver is longer.
const MAX_LINE: u64 = 1 << 28;

/// A cluster that computes a sweep's points.
#[derive(Clone, Debug)]
pub struct Ray {
    /// `HOST:PORT` of a cluster that is there; none: one of this machine's cores is started and ended.
    address: Option<String>,
    sources: Sources,
}

/// What Ray did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnRay {
    /// Nodes that finished tasks.
    pub nodes: usize,
    /// Tasks that were begun again, since their worker or node died.
    pub again: usize,
}

/// What the driver is told.
#[derive(Serialize)]
struct Job<'a> {
    address: Option<&'a str>,
    cpus: usize,
    folder: &'a std::path::Path,
    program: &'a std::path::Path,
    work: &'a str,
    points: &'a [usize],
}

/// What a task is told, before the line of its points.
#[derive(Serialize, Deserialize)]
struct Work {
    digest: String,
    sources: Sources,
}

/// What the driver says.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Said {
    /// Ray is ready: the number of CPUs in the cluster.
    ready: Option<usize>,
    /// It waits.
    #[serde(rename = "alive")]
    _alive: bool,
    /// The node that finished a task.
    node: String,
    /// Its outcomes.
    outcomes: Vec<Outcome>,
    /// Why a task begins again.
    again: Option<String>,
    /// Why it gives up.
    failed: Option<String>,
    /// All is done.
    ended: bool,
}

impl Ray {
    /// A cluster by its address, `HOST:PORT`, or `local`.
    ///
    /// # Errors
    /// The address is not one, or nobody answers there.
    pub fn new(address: &str, sources: Sources) -> anyhow::Result<Self> {
        if address == "local" {
            return Ok(Self { address: None, sources });
        }
        let remedy = "say HOST:PORT of a cluster (ray start --head prints it), or local for one of this machine's cores";
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        ensure!(port.is_some_and(|port| port > 0), "--ray {} is not an address; {remedy}", quoted(address));
        let nobody =
            |why: &dyn std::fmt::Display| anyhow!("--ray {address}: nobody answers ({why}); {remedy}");
        let mut places = address.to_socket_addrs().map_err(|e| nobody(&e))?;
        let place = places.next().ok_or_else(|| nobody(&"the name has no address"))?;
        TcpStream::connect_timeout(&place, CONNECT).map_err(|e| nobody(&e))?;
        Ok(Self { address: Some(address.to_owned()), sources })
    }

    /// Computes points of the sweep, and hands them over as tasks finish.
    pub(crate) fn compute(
        &self,
        sweep: &Sweep,
        left: &[usize],
        threads: Option<usize>,
        counted: &mut Counted<'_>,
    ) -> anyhow::Result<OnRay> {
        counted.take(Vec::new())?;
        let shown = self.address.as_deref().unwrap_or("local");
        let folder =
            tempfile::Builder::new().prefix("ray").tempdir().context("a folder for Ray can't be made")?;
        let work = Work { digest: sweep.digest(), sources: self.sources.clone() };
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let job = Job {
            address: self.address.as_deref(),
            cpus: threads.unwrap_or_else(cores),
            folder: folder.path(),
            program: &std::env::current_exe().context("this program does not know its file")?,
            work: &serde_json::to_string(&work)?,
            points: left,
        };
        let mut driver = Driver::start(&job).with_context(|| format!("--ray {shown}"))?;
        let done = driver.listen(left, columns(sweep).len(), counted);
        done.map_err(|e| if e.is::<Ended>() { anyhow!("--ray {shown}: {e}") } else { e })
    }
}

/// What Ray or its driver did that is not the sweep's fault.
#[derive(Debug)]
struct Ended(String);

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Ended {}

/// The process of `ray.py`, and what it says. It ends with this value.
struct Driver {
    child: Child,
    lines: mpsc::Receiver<String>,
    /// The last line of its errors, and what ends when there are no more.
    last: Arc<Mutex<String>>,
    no_more: mpsc::Receiver<()>,
}

impl Driver {
    fn start(job: &Job<'_>) -> anyhow::Result<Self> {
        let mut child = Command::new("python3")
            .args(["-c", DRIVER])
            .env("RAY_USAGE_STATS_ENABLED", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| {
                anyhow!("python3 can't be run ({e}); install Python 3.9 or later, then: python3 -m pip install ray")
            })?;
        let missing = "a pipe is missing; report this";
        let (output, errors) = (child.stdout.take().context(missing)?, child.stderr.take().context(missing)?);
        let (tell, lines) = mpsc::channel();
        let last = Arc::new(Mutex::new(String::new()));
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|l| tell.send(l))
        });
        let (keep, (more, no_more)) = (last.clone(), mpsc::channel());
        std::thread::spawn(move || {
            let _more: mpsc::Sender<()> = more;
            for line in BufReader::new(errors).lines().map_while(Result::ok).filter(|l| !l.trim().is_empty())
            {
                line.trim().clone_into(&mut keep.lock().unwrap_or_else(PoisonError::into_inner));
            }
        });
        let mut line = serde_json::to_vec(job)?;
        line.push(b'\n');
        if let Some(input) = &mut child.stdin {
            // One that ended at once says why itself.
            let _ = input.write_all(&line).and_then(|()| input.flush());
        }
        Ok(Self { child, lines, last, no_more })
    }

    /// Waits until it says nothing more, which is its end.
    fn wait(&self) {
        let since = Instant::now();
        while self.lines.recv_timeout(END.saturating_sub(since.elapsed())).is_ok() {}
    }

    /// Why it ended that did not say so.
    fn ended(&self) -> Ended {
        // Its last words may still be on their way; what it started may hold the pipe open.
        let _ = self.no_more.recv_timeout(CONNECT);
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let why = if last.is_empty() { "without a word".into() } else { one_line(&last) };
        Ended(format!("Ray's driver ended ({why}); what is finished is kept, so run it again"))
    }

    fn listen(&mut self, left: &[usize], width: usize, counted: &mut Counted<'_>) -> anyhow::Result<OnRay> {
        let mut asked: BTreeSet<usize> = left.iter().copied().collect();
        let (mut nodes, mut again, mut begun, mut heard) = (BTreeSet::new(), 0, false, Instant::now());
        loop {
            let line = match self.lines.recv_timeout(ASK) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    counted.take(Vec::new())?;
                    let limit = if begun { SILENCE } else { BEGIN };
                    if heard.elapsed() > limit {
                        let seconds = limit.as_secs();
                        let what = if begun { "answered nothing" } else { "did not begin" };
                        bail!(Ended(format!(
                            "Ray {what} for {seconds} s; see whether its nodes are there (ray status)"
                        )));
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => bail!(self.ended()),
            };
            heard = Instant::now();
            let said: Said = serde_json::from_str(&line)
                .map_err(|e| Ended(format!("its driver said what is not understood ({e}); report this")))?;
            if let Some(why) = said.failed {
                bail!(Ended(one_line(&why)));
            }
            begun |= said.ready.is_some();
            again += usize::from(said.again.is_some());
            if !said.outcomes.is_empty() {
                for outcome in &said.outcomes {
                    let number = outcome.first().and_then(|cell| cell.parse().ok());
                    let wanted = number.is_some_and(|number: usize| asked.remove(&number));
                    if !wanted || outcome.len() != width {
                        bail!(Ended(format!("node {} answered with a point that was not asked", said.node)));
                    }
                }
                nodes.insert(said.node);
                counted.take(said.outcomes)?;
            }
            if said.ended {
                if !asked.is_empty() {
                    bail!(Ended(format!("it left out {} points; report this", asked.len())));
                }
                self.wait();
                return Ok(OnRay { nodes: nodes.len(), again });
            }
        }
    }
}

impl Drop for Driver {
    /// Without its input it ends by itself, and takes a cluster that it started with it.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Computes the points that a task was given: the work and their numbers, a line each. An outcome a line comes out.
///
/// # Errors
/// The input is not a task of the same program, or the output takes no more.
pub fn work(input: impl Read, output: &mut dyn Write) -> anyhow::Result<()> {
    let mut lines = BufReader::new(input.take(MAX_LINE)).lines();
    let mut next = || {
        lines
            .next()
            .transpose()?
            .context("standard input is not a task of Ray; say --ray instead of --worker")
    };
    let work: Work = serde_json::from_str(&next()?)
        .context("standard input is not a task of Ray; say --ray instead of --worker")?;
    let numbers: Vec<usize> = serde_json::from_str(&next()?)?;
    let sweep = work.sources.sweep()?;
    ensure!(
        sweep.digest() == work.digest,
        "this node's blindcore {} reads the sweep otherwise than the one that asks; put the same blindcore on every node",
        env!("CARGO_PKG_VERSION")
    );
    let points = sweep.points()?;
    for number in numbers {
        let point = points.get(number).with_context(|| format!("the sweep has no point {number}"))?;
        serde_json::to_writer(&mut *output, &compute(&sweep, number, point))?;
        output.write_all(b"\n")?;
    }
    Ok(output.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_gives_what_threads_give_and_refuses_another_sweep() {
        let (sources, sweep) = Sources::open(None, Some("thesis-sizes")).unwrap();
        let task = |digest: String, points: &str| {
            let work = Work { digest, sources: sources.clone() };
            let mut out = Vec::new();
            let input = format!("{}\n{points}\n", serde_json::to_string(&work).unwrap());
            super::work(input.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        let points = sweep.points().unwrap();
        let lines = task(sweep.digest(), "[3, 0]").unwrap();
        let outcomes: Vec<Outcome> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(outcomes, [3, 0].map(|at| compute(&sweep, at, &points[at])));
        let refused = |digest, points| task(digest, points).unwrap_err().to_string();
        assert!(refused("other".into(), "[0]").contains("put the same blindcore on every node"));
        assert!(refused(sweep.digest(), "[1000]").contains("the sweep has no point 1000"));
        let other = super::work("no task".as_bytes(), &mut Vec::new()).unwrap_err().to_string();
        assert!(other.contains("not a task of Ray"), "{other}");
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let (sources, _) = Sources::open(None, Some("thesis-sizes")).unwrap();
        for address in ["", "here", "host:", "host:x", "host:0", "host:70000"] {
            let refused = Ray::new(address, sources.clone()).unwrap_err().to_string();
            assert!(refused.contains("is not an address; say HOST:PORT"), "{refused}");
        }
        assert!(Ray::new("local", sources).is_ok());
    }
}
