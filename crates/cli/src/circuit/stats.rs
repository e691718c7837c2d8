//! `blindcore circuit stats`.

use blindcore_accel_rtl::sifo::layers::Cells;
use blindcore_accel_rtl::sifo::memory::BLOCK_RAM;
use blindcore_accel_rtl::sifo::survey::Survey;
use blindcore_circuit::circuit::{digest, short_digest};
use blindcore_circuit::named;
use blindcore_circuit::netlist::MAX_WIRES;
use blindcore_circuit::problems::{PROBLEMS, Problem};
use blindcore_repro::figures::{Figure, figures};
use serde_json::{Value, json};

use super::load;
use crate::Outcome;
use crate::output::{self, Bar};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore circuit stats mult32                    beside the paper's figures and FlexSC's
  blindcore circuit stats design.v --plot           how many ANDs its layers have
  blindcore circuit stats sort10x4 --ands 15 --xors 15 --memory 1000 --json

The columns are those of Tables 1, 3 and 4 of SIFO (Fang, Ioannidis and Leeser 2019). A wire is an
input's bit or a gate's output, and one-to-one if it is a gate's and one gate reads it. Constants
and inputs lie in DDR memory, and outputs come to lie there, for the host reaches nothing else; a
policy says which wires block RAM holds.")]
pub(crate) struct Stats {
    /// A circuit file, or a name of `blindcore circuit list`
    #[arg(value_name = "FILE|NAME")]
    circuit: String,
    /// AND cells of the overlay: how many ANDs it garbles at once
    #[arg(long, value_name = "K", default_value_t = 10)]
    ands: usize,
    /// XOR cells [default: as many as a layer has]
    #[arg(long, value_name = "L")]
    xors: Option<usize>,
    /// Words of block RAM, a label each; the default is the paper's 6.75 Mbit of 108 bits
    #[arg(long, value_name = "WORDS", default_value_t = BLOCK_RAM)]
    memory: usize,
    /// Draw how many ANDs the layers have
    #[arg(long)]
    plot: bool,
    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Stats) -> anyhow::Result<Outcome> {
    let cells = Cells::new(args.ands, args.xors)?;
    anyhow::ensure!(
        args.memory <= MAX_WIRES,
        "--memory {} is over the {MAX_WIRES} words that addresses reach; say less",
        args.memory
    );
    let netlist = load(&args.circuit)?;
    let survey = Survey::new(&netlist.wiring(), cells, args.memory, &mut Bar::new());
    let problem = PROBLEMS.iter().find(|p| p.name == args.circuit && !named::is_file(&args.circuit));
    let digest = short_digest(&digest(&netlist));
    let rows = figures(&survey, args.ands, problem.and_then(|p| p.published.as_ref()));
    if args.json {
        output::json(&document(args, problem, &digest, &rows, &survey))?;
    } else {
        output::print(&text(args, problem, &digest, &rows, &survey))?;
    }
    Ok(Outcome::Done)
}

fn document(
    args: &Stats,
    problem: Option<&Problem>,
    digest: &str,
    rows: &[Figure],
    survey: &Survey,
) -> Value {
    let number = |row: &Figure, x: f64| if row.decimals == 0 { json!(x as u64) } else { json!(x) };
    let mut document: serde_json::Map<String, Value> =
        rows.iter().map(|r| (r.id.to_owned(), number(r, r.here))).collect();
    let paper: serde_json::Map<String, Value> =
        rows.iter().filter_map(|r| Some((r.id.to_owned(), number(r, r.paper?)))).collect();
    let policies: Vec<Value> = survey
        .traffic
        .iter()
        .map(|(policy, t)| {
            json!({
                "policy": policy.name(), "block_ram_words": t.block_ram, "ddr_words": t.ddr,
                "block_ram_reads": t.block_ram_reads, "block_ram_writes": t.block_ram_writes,
                "ddr_reads": t.ddr_reads, "ddr_writes": t.ddr_writes,
            })
        })
        .collect();
    document.extend([("circuit".into(), json!(args.circuit)), ("digest".into(), json!(digest))]);
    document.insert("cells".into(), json!({"ands": args.ands, "xors": args.xors}));
    document.insert("batches".into(), json!(survey.batches));
    document.insert("memory".into(), json!({"block_ram": args.memory, "policies": policies}));
    if let Some(problem) = problem {
        document.insert("about".into(), json!(problem.about));
        document.insert("flexsc_ands".into(), json!(problem.flexsc_ands));
        document.insert("paper".into(), if paper.is_empty() { Value::Null } else { Value::Object(paper) });
    }
    if args.plot {
        let ands: Vec<usize> = survey.ands_by_layer().collect();
        document.insert("ands_by_layer".into(), json!(ands));
    }
    Value::Object(document)
}

fn text(args: &Stats, problem: Option<&Problem>, digest: &str, rows: &[Figure], survey: &Survey) -> String {
    let mut text = output::printable(&json!(args.circuit));
    if let Some(problem) = problem {
        text += &format!(": {}", problem.about);
    }
    text += &format!("\ndigest {digest}");
    let paper = rows.iter().any(|r| r.paper.is_some());
    text += &format!("\n\n{:8} {:36} {:>12}", "", "", "here");
    text += if paper { "        paper\n" } else { "\n" };
    for row in rows {
        let number = |x: f64| format!("{x:.0$}", row.decimals);
        let paper = row.paper.map_or(String::new(), |p| format!(" {:>12}", number(p)));
        text += &format!("{:8} {:36} {:>12}{paper}\n", row.table, row.what, number(row.here));
    }
    if let (Some(problem), Some(ands)) = (problem, rows.iter().find(|r| r.id == "ands")) {
        let against = [("the paper", ands.paper), ("today's FlexSC", problem.flexsc_ands.map(|f| f as f64))];
        for (whose, theirs) in against.into_iter().filter_map(|(whose, ands)| Some((whose, ands?))) {
            let difference = match theirs - ands.here {
                0.0 => "as many as here".to_owned(),
                more if more > 0.0 => format!("{more} more than here"),
                less => format!("{} fewer than here", -less),
            };
            text += &format!("{:8} {:36} {theirs:>12} ({difference})\n", "", format!("ANDs of {whose}"));
        }
    }
    let xors = args.xors.map_or("any number of".to_owned(), |n| n.to_string());
    text += &format!("\n{} AND and {xors} XOR cells take {} batches.\n", args.ands, survey.batches);
    text += &format!("\nWith {} words of block RAM:\n", args.memory);
    text += &format!(
        "{:22} {:>12} {:>12} {:>12} {:>12}\n",
        "policy", "words of it", "DDR words", "DDR reads", "DDR writes"
    );
    for (policy, t) in &survey.traffic {
        text += &format!(
            "{:22} {:>12} {:>12} {:>12} {:>12}\n",
            policy.name(),
            t.block_ram,
            t.ddr,
            t.ddr_reads,
            t.ddr_writes
        );
    }
    if args.plot {
        text += "\n";
        text += &plot(survey);
    }
    text
}

/// Bars of the ANDs that layers have, neighbours together where there are more than fit a screen.
fn plot(survey: &Survey) -> String {
    const LINES: usize = 32;
    const WIDE: usize = 60;
    let ands: Vec<usize> = survey.ands_by_layer().collect();
    let together = ands.len().div_ceil(LINES).max(1);
    let means: Vec<f64> =
        ands.chunks(together).map(|c| c.iter().sum::<usize>() as f64 / c.len() as f64).collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let mut text = match together {
        1 => "ANDs by layer\n".to_owned(),
        _ => format!("ANDs a layer, means of {together} layers\n"),
    };
    for (i, mean) in means.iter().enumerate() {
        // Whatever is not nothing is seen.
        let length = if most == 0.0 { 0 } else { (mean / most * WIDE as f64).ceil() as usize };
        let number = format!("{mean:.0$}", usize::from(together > 1));
        let line = format!("{:>8} {number:>10} {}", i * together + 1, "#".repeat(length));
        text += line.trim_end();
        text.push('\n');
    }
    text
}
