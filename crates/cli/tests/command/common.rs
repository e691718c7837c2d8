//! Processes of the real binary.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The binary, with nothing of the machine's settings but where simulated chips lie.
pub(crate) fn blindcore(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blindcore"));
    command.current_dir(dir).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BLINDCORE_") && name != "BLINDCORE_RTL" {
            command.env_remove(name);
        }
    }
    command.env("BLINDCORE_CACHE", dir.join("cache"));
    command
}

/// An address of one test's own, where the machine has more than one for itself: ports that it frees are nobody else's.
pub(crate) fn own_host(test: u8) -> String {
    if cfg!(target_os = "linux") { format!("127.77.1.{test}") } else { "127.0.0.1".into() }
}

/// Whether tests may take minutes: `make test-long` sets `BLINDCORE_LONG`, for all figures and as many lookups as count.
pub(crate) fn long() -> bool {
    std::env::var_os("BLINDCORE_LONG").is_some()
}

/// Runs it to its end.
pub(crate) fn run(dir: &Path, args: &[&str]) -> Output {
    blindcore(dir).args(args).output().expect("the binary starts")
}

/// Runs it with something on its standard input.
pub(crate) fn run_with_input(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = blindcore(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    // It may refuse before it has read all.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("ended by itself")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

pub(crate) fn json(output: &Output) -> serde_json::Value {
    assert!(matches!(code(output), 0 | 1), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("one JSON document on stdout")
}

/// What every refusal must be: exit code 2, one line on stderr, beside notes, with these words, and nothing on stdout, or the same as JSON for
/// a program that asked for it.
pub(crate) fn refused(output: &Output, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(code(output), 2, "{text}");
    let said = stdout(output);
    if !said.is_empty() {
        let said: serde_json::Value = serde_json::from_str(&said).expect("one JSON document on stdout");
        let [error, remedy] = ["error", "remedy"].map(|key| said[key].as_str());
        let remedy = remedy.map_or(String::new(), |remedy| format!("; {remedy}"));
        let last = text.lines().last().unwrap_or_default();
        assert_eq!(last, format!("blindcore: {}{remedy}", error.expect("there is one")));
        assert!(said["code"].is_string(), "{said}");
    }
    // Before it there may be what is good to know: which settings are used, which secrets are open to others.
    let mut lines: Vec<&str> = text.lines().collect();
    assert!(lines.pop().is_some_and(|line| line.starts_with("blindcore: ")), "{text}");
    let notice = |line: &&str| {
        ["note: ", "settings: "].iter().any(|s| line.starts_with(s)) || line.contains(" is open to others ")
    };
    assert!(lines.iter().all(notice), "{text}");
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}

/// Sends a process a signal, by its option of `kill`.
#[cfg(unix)]
pub(crate) fn signal(process: &Child, name: &str) {
    let pid = process.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().expect("kill runs").success());
}

/// A server process, ended with its value.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) url: String,
    /// Its log until it listened.
    pub(crate) started: Vec<String>,
    log: mpsc::Receiver<String>,
}

impl Serving {
    pub(crate) fn start(dir: &Path, databases: &[&str]) -> Self {
        Self::start_at(dir, databases, "127.0.0.1:0")
    }

    pub(crate) fn start_at(dir: &Path, databases: &[&str], listen: &str) -> Self {
        Self::start_as(dir, &[&["serve", "--listen", listen], databases].concat())
    }

    /// Any command that serves and says where.
    pub(crate) fn start_as(dir: &Path, args: &[&str]) -> Self {
        Self::started(blindcore(dir).args(args))
    }

    /// By a command that ends as the server does.
    pub(crate) fn started(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let (send, log) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let mut serving = Self { child, url: String::new(), started: Vec::new(), log };
        while serving.url.is_empty() {
            let line = serving
                .log
                .recv_timeout(Duration::from_secs(60))
                .unwrap_or_else(|_| panic!("{:?}", serving.started));
            if let Some((_, url)) = line.split_once("listening on ") {
                serving.url = url.trim().to_owned();
            }
            serving.started.push(line);
        }
        serving
    }

    pub(crate) fn get(&self, dir: &Path, args: &[&str]) -> Output {
        run(dir, &[&["get", "--server", &self.url], args].concat())
    }

    /// The next line of its log with these words.
    pub(crate) fn line(&self, words: &str) -> String {
        loop {
            let line = self.log.recv_timeout(Duration::from_secs(60)).expect("it says so");
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Asks it to reload its files.
    #[cfg(unix)]
    pub(crate) fn hang_up(&self) {
        signal(&self.child, "-HUP");
    }

    /// Asks it to stop and returns its exit code and the rest of its log.
    #[cfg(unix)]
    pub(crate) fn terminate(mut self) -> (i32, String) {
        signal(&self.child, "-TERM");
        let status = self.child.wait().expect("it ends");
        let log: Vec<String> = self.log.iter().collect();
        (status.code().expect("ended by itself"), log.join("\n"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
