//! What `blindcore sum serve` keeps of requests that never came whole.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::common::Serving;
use crate::epochs::soon;

/// Memory of a server, in MiB: `VmRSS`, what is resident, or `VmHWM`, the most that was.
fn memory(server: &Serving, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// All that may be under way at once, of several lengths, several times: what a heap keeps of it would be some 160 MiB.
#[test]
fn the_memory_of_bodies_goes_back_to_the_system() {
    const BODIES: usize = 14;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("line.csv"), "1\n2\n3\n").unwrap();
    std::fs::write(
        dir.path().join("blindcore.toml"),
        "[limits]\nrequest_memory_mib = 64\nmemory_mib_per_client = 64\n",
    )
    .unwrap();
    let serve =
        ["sum", "serve", "--listen", "127.0.0.1:0", "--model", "line=line.csv", "--request-mib", "16"];
    let server = Serving::start_as(dir.path(), &serve);
    let before = memory(&server, "VmRSS");
    for wave in 0..3 {
        let mut bodies: Vec<(TcpStream, usize)> = (0..BODIES)
            .map(|i| {
                let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
                stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
                let length = (4 << 20) + wave % 2 * i * 50_000;
                let head = format!(
                    "POST /v1/models/line/score HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).unwrap();
                (stream, length - 1)
            })
            .collect();
        // Side by side, so that none is whole before the others; one that was refused is done.
        while bodies.iter().any(|(_, left)| *left > 0) {
            for (stream, left) in &mut bodies {
                let piece = [0; 1 << 16];
                let piece = &piece[..piece.len().min(*left)];
                *left = if stream.write_all(piece).is_ok() { *left - piece.len() } else { 0 };
            }
        }
        soon(|| memory(&server, "VmHWM") > before + 32);
        drop(bodies);
        soon(|| memory(&server, "VmRSS") < before + 24);
    }
}
