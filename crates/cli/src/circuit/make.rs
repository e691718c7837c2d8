//! `blindcore circuit list` and `make`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use blindcore_circuit::circuit::{digest, short_digest};
use blindcore_circuit::formats;
use blindcore_circuit::netlist::Netlist;
use blindcore_circuit::problems::{self, FAMILIES, MAX_ANDS, PROBLEMS, Problem};
use blindcore_files::Existing;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::outputs::{Force, check_output};
use crate::{Outcome, output};

#[derive(clap::Args)]
pub(crate) struct List {
    /// Print the list as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Format {
    /// Bristol Fashion
    Bristol,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore circuit make aes128 --out aes128.txt
  blindcore circuit make mult24 > mult24.txt       a name of `blindcore circuit list` with a number of your own")]
pub(crate) struct Make {
    /// The circuit's name
    name: String,
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// How it is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "bristol")]
    format: Format,
    /// Print what was made as one JSON document
    #[arg(long, requires = "out")]
    json: bool,
}

pub(crate) fn list(args: &List) -> anyhow::Result<Outcome> {
    if args.json {
        let problems: Vec<Value> = PROBLEMS
            .iter()
            .map(|p| {
                let paper = p.published.map(|p| p.ands);
                json!({"name": p.name, "about": p.about, "paper_ands": paper, "flexsc_ands": p.flexsc_ands})
            })
            .collect();
        let limits = |limits: &[(&str, usize, usize)]| {
            let limits = limits
                .iter()
                .map(|(n, least, most)| ((*n).to_owned(), json!({"least": least, "most": most})));
            Value::Object(limits.collect())
        };
        let families: Vec<Value> = FAMILIES
            .iter()
            .map(|f| json!({"form": f.form, "about": f.about, "limits": limits(f.limits)}))
            .collect();
        output::json(&json!({"problems": problems, "families": families, "max_ands": MAX_ANDS as u64}))?;
        return Ok(Outcome::Done);
    }
    let mut text = String::from("The problems of SIFO (2019):\n");
    let (papers, ours): (Vec<&Problem>, Vec<&Problem>) = PROBLEMS.iter().partition(|p| p.published.is_some());
    for problem in papers {
        text += &format!("  {:18} {}\n", problem.name, problem.about);
    }
    text += "\nMore:\n";
    for problem in ours {
        text += &format!("  {:18} {}\n", problem.name, problem.about);
    }
    text += &format!("\nWith numbers of your own, up to {MAX_ANDS} ANDs together:\n");
    for family in FAMILIES {
        let limits: Vec<String> =
            family.limits.iter().map(|(name, least, most)| format!("{name} {least} to {most}")).collect();
        text += &format!("  {:22} {} ({})\n", family.form, family.about, limits.join(", "));
    }
    output::print(&text)?;
    Ok(Outcome::Done)
}

pub(crate) fn make(args: &Make) -> anyhow::Result<Outcome> {
    if let Some(out) = &args.out {
        check_output(out, &args.force, &[])?;
    }
    let (netlist, Format::Bristol) = (problems::make(&args.name)?, args.format);
    write(&netlist, args.out.as_deref(), args.force.existing(), args.json)?;
    Ok(Outcome::Done)
}

/// Writes a circuit to a file, and says what it is; or to standard output.
pub(super) fn write(netlist: &Netlist, out: Option<&Path>, over: Existing, json: bool) -> anyhow::Result<()> {
    formats::left_out(netlist).iter().for_each(|said| output::note(said));
    let Some(path) = out else {
        let mut text = Vec::new();
        formats::bristol::write(netlist, &mut text)?;
        return output::print(std::str::from_utf8(&text).context("a circuit file is text")?);
    };
    let bytes = formats::bristol::write_file(netlist, path, over)?;
    output::made(path);
    let (ands, gates, digest) = (netlist.ands(), netlist.gates().len(), short_digest(&digest(netlist)));
    if json {
        let ports = |ports: &[blindcore_circuit::netlist::Port]| -> Vec<Value> {
            ports.iter().map(|p| json!({"name": p.name, "bits": p.wires.len()})).collect()
        };
        output::json(&json!({
            "out": path.display().to_string(), "bytes": bytes, "ands": ands, "xors": gates - ands,
            "digest": digest, "inputs": ports(netlist.inputs()), "outputs": ports(netlist.outputs()),
        }))
    } else {
        output::note(&format!("{}: {ands} ANDs and {} XORs, digest {digest}", path.display(), gates - ands));
        Ok(())
    }
}
