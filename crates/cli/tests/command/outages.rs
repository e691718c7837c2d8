//! What a database survives, continued: a full disk, and sources that go away.

use std::path::Path;
use std::process::Command;

use crate::common::{Serving, code, refused, run, run_with_input, stderr};
use crate::survives::{BUILD, UPDATE, names, no_litter, ok, stands, table, write_changes, write_csv};

/// A file system in memory of a size that can grow, if this process may mount one.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    fn mount(at: &'a Path, kib: u64) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"])
            .arg(at)
            .output();
        match mount {
            Ok(o) if o.status.success() => Some(Self(at)),
            Ok(o) => {
                eprintln!("skipped: no file system could be mounted: {}", stderr(&o).trim());
                None
            }
            Err(e) => {
                eprintln!("skipped: no file system could be mounted: {e}");
                None
            }
        }
    }

    fn resize(&self, kib: u64) {
        let size = format!("remount,size={kib}k");
        assert!(Command::new("mount").args(["-o", &size]).arg(self.0).status().unwrap().success());
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

fn used_kib(dir: &Path) -> u64 {
    names(dir).iter().map(|n| std::fs::metadata(dir.join(n)).unwrap().len().div_ceil(4096) * 4).sum()
}

#[test]
fn a_full_disk_costs_nothing_but_the_new_epoch() {
    const ROWS: usize = 4000;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let small = dir.join("small");
    let Some(disk) = Small::mount(&small, 64) else { return };
    let rows = table(ROWS, 0);
    write_csv(dir, &rows);
    let build = ["db", "build", "../t.csv", "--key", "k", "--out", "t.db"];
    let mut kib = 64;
    let refusals = loop {
        disk.resize(kib);
        let built = run(&small, &build);
        if code(&built) == 0 {
            break (kib as f64 / 64.0).log(1.25).round();
        }
        refused(&built, &["space"]);
        assert_eq!(names(&small), [""; 0]);
        kib = kib * 5 / 4;
        assert!(kib < 1 << 20, "it never fits");
    };
    assert!(refusals > 5.0, "{refusals}");
    stands(&small, 1, &rows, &rows);

    let after = write_changes(dir, &rows, ROWS, 1);
    let used = used_kib(&small.join("t.db"));
    let update = ["db", "update", "t.db", "--from", "../changes.csv"];
    let mut more = 16;
    let refusals = loop {
        disk.resize(used + more);
        let updated = run(&small, &update);
        if code(&updated) == 0 {
            break (more as f64 / 16.0).log(1.25).round();
        }
        refused(&updated, &["space"]);
        assert_eq!(stands(&small, 1, &rows, &after), 1);
        no_litter(&small);
        more = more * 5 / 4 + 4;
        assert!(more < 1 << 20, "it never fits");
    };
    assert!(refusals > 5.0, "{refusals}");
    assert_eq!(stands(&small, 1, &rows, &after), 2);
}

#[test]
fn sources_that_go_away_cost_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = table(500, 0);
    write_csv(dir, &rows);
    ok(&run(dir, &BUILD));
    // A pipe whose writer goes in the middle of a row, as standard input; by name there is none.
    let half = "{\"k\":\"key 1\",\"v\":\"x\"}\n{\"k\":\"key 2\",\"v\":\"y";
    for command in
        [&["db", "build", "--key", "k", "--name", "t", "--out", "t.db", "--force"][..], &UPDATE[..3]]
    {
        let through = |source: &'static str| match command[1] {
            "build" => [&command[..2], &[source], &command[2..]].concat(),
            _ => [command, &["--from", source]].concat(),
        };
        refused(&run_with_input(dir, &through("-"), half.as_bytes()), &["line 2 of standard input"]);
        assert_eq!(stands(dir, 1, &rows, &rows), 1);
        no_litter(dir);
        #[cfg(unix)]
        {
            let pipe = dir.join("pipe.jsonl");
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            // Nobody writes to it: a command that opened it would wait.
            refused(&run(dir, &through("pipe.jsonl")), &["pipe.jsonl can't be read: it is a pipe"]);
            std::fs::remove_file(&pipe).unwrap();
            assert_eq!(stands(dir, 1, &rows, &rows), 1);
            no_litter(dir);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_body_that_never_ends_is_cut_when_the_server_is_told_to_stop() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("w.csv"), "1,2\n").unwrap();
    std::fs::write(dir.join("l.toml"), "[limits]\ndrain_seconds = 1\n").unwrap();
    let serve = ["sum", "serve", "--config", "l.toml", "--listen", "127.0.0.1:0", "--model", "m=w.csv"];
    let server = Serving::start_as(dir, &serve);
    let mut client = std::net::TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    let head = "POST /v1/models/m/score HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    // It asks for the body: so it is in the middle of the request.
    let mut word = [0; 12];
    std::io::Read::read_exact(&mut client, &mut word).unwrap();
    assert_eq!(&word, b"HTTP/1.1 100");
    client.write_all(b"BC").unwrap();
    let (code, log) = server.terminate();
    assert_eq!(code, 0, "{log}");
}
