//! Serves a folder until Ctrl-C, and reads certificates and tokens again on SIGHUP: `serve_folder DIR [ADDRESS]`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use blindcore::lookup::Host;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: serve_folder DIR [ADDRESS]")?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7700".into()).parse()?;

    let device = blindcore::device("auto")?;
    let server = Host::builder().table_dir(folder).device(device).listen(address).open()?.bind().await?;
    println!("http://{}", server.address());
    let reloader = server.reloader();
    let mut hangups = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            let reloader = reloader.clone();
            let read = tokio::task::spawn_blocking(move || reloader.reload()).await;
            if let Ok(Err(error)) = read {
                eprintln!("{error}");
            }
        }
    });
    server
        .run(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await;
    Ok(())
}
