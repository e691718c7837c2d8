//! Builds a table from a CSV file and gets a key from its folder: `get_from_folder FILE.csv KEY_COLUMN KEY`.
//!
//! Without arguments it uses a table of three rows.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use blindcore::lookup::{Folder, build};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scratch = tempfile::tempdir()?;
    let mut arguments = std::env::args().skip(1);
    let (csv, column, key) = match (arguments.next(), arguments.next(), arguments.next()) {
        (Some(csv), Some(column), Some(key)) => (csv.into(), column, key),
        _ => {
            let csv = scratch.path().join("drugs.csv");
            std::fs::write(&csv, "name,class\naspirin,NSAID\nibuprofen,NSAID\nwarfarin,anticoagulant\n")?;
            (csv, "name".to_owned(), "warfarin".to_owned())
        }
    };
    let folder = scratch.path().join("table.db");
    let device = blindcore::device("auto")?;
    build(&csv, &column, &folder, &device)?;
    match Folder::open(&folder, &device)?.get(&key)? {
        Some(record) => {
            for (column, value) in &record.values {
                println!("{column}: {}", value.to_json());
            }
        }
        None => println!("{key}: not there"),
    }
    Ok(())
}
