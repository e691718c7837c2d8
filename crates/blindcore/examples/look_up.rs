//! Looks a key up over the network, blocking and then asynchronously: `look_up URL TABLE KEY`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use blindcore::lookup::{Client, Lookup, blocking};

fn show(lookup: &Lookup) {
    match &lookup.found {
        Some(record) => {
            for (column, value) in &record.values {
                println!("{column}: {}", value.to_json());
            }
        }
        None => println!("not there"),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, table, key] = &arguments[..] else { return Err("usage: look_up URL TABLE KEY".into()) };

    show(&blocking::Client::connect(url)?.table(table)?.get(key)?);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::connect(url).await?;
        show(&client.table(table).await?.get(key).await?);
        Ok(())
    })
}
