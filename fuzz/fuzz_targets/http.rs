//! Whatever a stranger sends to the server's port: HTTP/1, HTTP/2, gRPC, or none of them. It still answers
//! others after.
#![no_main]
use std::sync::LazyLock;
use std::time::Duration;

use blindcore_fuzz::RUNNING;
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn send(data: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(RUNNING.1).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.write_all(data).await;
    let _ = stream.shutdown().await;
    let _ = timeout(Duration::from_millis(100), stream.read_to_end(&mut answer)).await;
    answer
}

// What every input needs is made before the first is timed.
fuzz_target!(init: LazyLock::force(&RUNNING), |data: &[u8]| {
    // Made here and not within itself.
    let (runtime, _) = &*RUNNING;
    runtime.block_on(async {
        send(data).await;
        let alive = timeout(Duration::from_secs(10), async {
            let mut stream = TcpStream::connect(RUNNING.1).await.unwrap();
            stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        });
        assert!(alive.await.expect("the server is stuck").starts_with("HTTP/1.1 200"));
    });
});
