//! `blindcore doctor`: what this machine can do, what would be used, and why.

use blindcore_accel::Listed;
use blindcore_bench::machine;
use serde_json::json;

use crate::args::Doctor;
use crate::config::{self, Config};
use crate::{Outcome, device, get, output, serve};

pub(crate) fn run(config: Result<Config, config::SettingsError>, args: &Doctor) -> anyhow::Result<Outcome> {
    let mut faults = Vec::new();
    let config = config.unwrap_or_else(|e| {
        faults.push(output::Fault::of(&e.into()).to_string());
        Config::default()
    });
    // What `serve` and lookups would refuse, by what they check themselves.
    let checks = [("serve", serve::check(&config)), ("get", get::check(&config))];
    let said = |e: &anyhow::Error| output::Fault::of(e).to_string();
    faults.extend(
        checks.into_iter().filter_map(|(what, done)| Some(format!("{what}: {}", said(&done.err()?)))),
    );
    let outcome = if faults.is_empty() { Outcome::Done } else { Outcome::Faulty };
    let file = config.file.as_ref().map(|file| file.display().to_string());
    let chosen = device::open(&args.device, &config)?;
    let chosen = chosen.description();
    let devices = device::registry().list();
    let huge_pages = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .ok()
        .and_then(|s| Some(s.split_once('[')?.1.split_once(']')?.0.to_owned()));
    let memory = machine::memory_bytes();
    if args.json {
        output::json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "processor": chosen.hardware,
            "cores": std::thread::available_parallelism().map_or(1, usize::from),
            "memory_bytes": memory,
            "huge_pages": huge_pages,
            "devices": devices.iter().map(|Listed { name, available }| json!({
                "name": name, "available": available.is_ok(), "missing": available.as_ref().err(),
            })).collect::<Vec<_>>(),
            "settings": {"file": file, "faults": faults},
            "chosen": {"name": chosen.name, "threads": chosen.threads, "why": chosen.why},
        }))?;
        return Ok(outcome);
    }
    let mut text = format!("blindcore {}\n{}\n", env!("CARGO_PKG_VERSION"), chosen.hardware);
    if let Some(memory) = memory {
        text += &format!("{} of memory", output::bytes(memory));
    }
    text += &match huge_pages.as_deref() {
        Some("never") => {
            "; huge pages are off, which costs a scan up to a third: set transparent_hugepage to madvise\n"
                .to_owned()
        }
        Some(mode) => format!("; huge pages: {mode}\n"),
        None => "; huge pages: unknown on this system\n".to_owned(),
    };
    text += "\ndevices\n";
    for Listed { name, available } in devices {
        text += &match available {
            Ok(()) => format!("  {name:26} yes\n"),
            Err(missing) => format!("  {name:26} no: {missing}\n"),
        };
    }
    text += &format!("\nwould use {} with {} threads: {}\n", chosen.name, chosen.threads, chosen.why);
    let file = config.in_words().unwrap_or("no file, or none that can be read".to_owned());
    text += &format!("settings: {file}\n");
    text.extend(faults.iter().map(|fault| format!("  wrong: {fault}\n")));
    output::print(&text)?;
    Ok(outcome)
}
