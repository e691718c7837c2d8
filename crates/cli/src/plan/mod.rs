//! `blindcore plan`: what a table would cost to serve and to look up, before it is built.

mod cost;
mod rates;

use std::path::PathBuf;

use blindcore_lookup::{ESTIMATOR, MAX_GATHER, QUERIES_PER_HINT, SECURITY_BITS, Scheme, SchemeChoice};
use serde_json::{Value, json};

use crate::args::DeviceArgs;
use crate::config::Config;
use crate::{Outcome, device, doctor, output};
use cost::{Costs, Prices, Question, Table};
use rates::Rates;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore plan --rows 10000000 --record-bytes 256
  blindcore plan --rows 1000 --record-bytes 3MB --queries 5 --down 500
  blindcore plan --rows 10000000 --record-bytes 1KiB --clients 50000 --epoch 6h --changed 0.5 --json
  blindcore plan --rows 1e9 --record-bytes 32 --rates server.json     with rates that --save-rates kept elsewhere

The scheme and the sizes are those that `db build` takes for such a table; the other scheme stands beside them. Times
are from rates of this machine, measured in less than a minute: server and client are taken to be machines like it. Clients
are taken to look up evenly over an epoch; each fetches the hint once in it. Numbers are decimal or 0x-hexadecimal, sizes in
bytes or with kB, KiB, MB, MiB, GB or GiB, durations with s, m, h or d.")]
pub(crate) struct Plan {
    /// Rows of the table
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    rows: String,
    /// Bytes of the longest record: its values, and 1 to 4 bytes more for each
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    record_bytes: String,
    /// Rows are found by their number and not by a key
    #[arg(long, conflicts_with_all = ["key_bytes", "no_directory"])]
    by_index: bool,
    /// Bytes of the longest key
    #[arg(long, value_name = "BYTES", default_value = "16", allow_hyphen_values = true)]
    key_bytes: String,
    /// The table with keys is not to be read by number too
    #[arg(long)]
    no_directory: bool,
    /// Mbit/s from a client
    #[arg(long, value_name = "MBIT/S", default_value = "20", allow_hyphen_values = true)]
    up: String,
    /// Mbit/s to a client
    #[arg(long, value_name = "MBIT/S", default_value = "100", allow_hyphen_values = true)]
    down: String,
    /// Lookups of a client in an epoch
    #[arg(long, value_name = "N", default_value = "100", allow_hyphen_values = true)]
    queries: String,
    /// How long an epoch is: the time between two changes of the table
    #[arg(long, value_name = "DURATION", default_value = "1d", allow_hyphen_values = true)]
    epoch: String,
    /// Percent of the rows that change in an epoch
    #[arg(long, value_name = "PERCENT", default_value = "1", allow_hyphen_values = true)]
    changed: String,
    /// Clients
    #[arg(long, value_name = "N", default_value = "1000", allow_hyphen_values = true)]
    clients: String,
    /// Most queries that one pass over the database answers, 1 to 64
    #[arg(long, value_name = "N", default_value = "16", allow_hyphen_values = true)]
    gather: String,
    /// Price of a core for an hour
    #[arg(long, value_name = "PRICE", default_value = "0.05", allow_hyphen_values = true)]
    price_core_hour: String,
    /// Price of a GB of memory for a month
    #[arg(long, value_name = "PRICE", default_value = "3", allow_hyphen_values = true)]
    price_memory: String,
    /// Price of a GB of traffic, either way
    #[arg(long, value_name = "PRICE", default_value = "0.05", allow_hyphen_values = true)]
    price_traffic: String,
    /// Take rates from this file instead of measuring
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// Keep the rates that were measured in this file
    #[arg(long, value_name = "FILE", conflicts_with = "rates")]
    save_rates: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(config: &Config, args: &Plan) -> anyhow::Result<Outcome> {
    let question = args.question()?;
    // What no matrix holds is refused before anything is measured.
    blindcore_lookup::plan(
        question.rows,
        question.record_bytes.min(blindcore_lookup::MAX_RECORD_BYTES as u64) as usize,
        question.key_bytes.is_some(),
        SchemeChoice::Auto,
    )?;
    let rates = match &args.rates {
        Some(path) => {
            anyhow::ensure!(
                args.device.device.is_none() && args.device.threads.is_none(),
                "--rates says which device was measured, so --device and --threads have no say; leave one out"
            );
            Rates::read(path)?
        }
        None => {
            let device = device::open(&args.device, config)?;
            anyhow::ensure!(
                device.name().starts_with("cpu"),
                "{} is simulated, so its speed on this machine says nothing; plan with a cpu device",
                device.name()
            );
            Rates::measure(&*device)?
        }
    };
    if let Some(path) = &args.save_rates {
        rates.save(path)?;
    }
    let plan = Planned::new(question, rates)?;
    if args.json {
        output::json(&plan.json())?;
    } else {
        output::print(&plan.text())?;
    }
    Ok(Outcome::Done)
}

impl Plan {
    fn question(&self) -> anyhow::Result<Question> {
        let key_bytes = if self.by_index {
            None
        } else {
            let most = blindcore_wire::codec::MAX_KEY_BYTES as u64;
            Some(size("--key-bytes", &self.key_bytes, most)? as usize)
        };
        let mbit = |flag, text: &str| {
            Ok::<f64, anyhow::Error>(
                1e6 * real(flag, text, 0.001, 1e6, "Mbit/s", "say what a client's link carries")?,
            )
        };
        let price = |flag, text: &str| real(flag, text, 0.0, 1e6, "", "say a price, or 0 to leave it out");
        Ok(Question {
            rows: whole("--rows", &self.rows, 1 << 40, "say how many rows the table has")?,
            record_bytes: size("--record-bytes", &self.record_bytes, 1 << 30)?,
            key_bytes,
            directory: key_bytes.is_some() && !self.no_directory,
            proofs: blindcore_wire::ProofChoice::Auto,
            up: mbit("--up", &self.up)?,
            down: mbit("--down", &self.down)?,
            queries: whole(
                "--queries",
                &self.queries,
                1 << 40,
                "say how often a client looks up in an epoch",
            )?,
            epoch: duration("--epoch", &self.epoch)?,
            changed: real(
                "--changed",
                &self.changed,
                0.0,
                100.0,
                " %",
                "say which part of the rows changes",
            )? / 100.0,
            clients: whole("--clients", &self.clients, 1 << 40, "say how many clients there are")?,
            gather: whole("--gather", &self.gather, MAX_GATHER as u64, "say what `serve --gather` gets")?
                as usize,
            prices: Prices {
                core_hour: price("--price-core-hour", &self.price_core_hour)?,
                gb_month: price("--price-memory", &self.price_memory)?,
                gb: price("--price-traffic", &self.price_traffic)?,
            },
        })
    }
}

/// A whole number from 1 on: decimal, 0x-hexadecimal, or as 1e9.
fn whole(flag: &str, text: &str, max: u64, remedy: &str) -> anyhow::Result<u64> {
    let number: Option<u128> = match text.strip_prefix("0x") {
        Some(hex) => u128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok().or_else(|| {
            let (digits, zeros) = text.split_once('e')?;
            digits.parse::<u128>().ok()?.checked_mul(10u128.checked_pow(zeros.parse().ok()?)?)
        }),
    };
    let Some(number) = number else {
        anyhow::bail!("{flag} is {text:?}, no whole number from 1 to {max}; {remedy}");
    };
    match u64::try_from(number) {
        Ok(n) if (1..=max).contains(&n) => Ok(n),
        _ => anyhow::bail!("{flag} is {text}, outside 1 to {max}; {remedy}"),
    }
}

/// A number in a range.
fn real(flag: &str, text: &str, min: f64, max: f64, unit: &str, remedy: &str) -> anyhow::Result<f64> {
    match text.parse::<f64>() {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        Ok(n) => anyhow::bail!("{flag} is {n}{unit}, outside {min} to {max}; {remedy}"),
        Err(_) => anyhow::bail!("{flag} is {text:?}, no number from {min} to {max}; {remedy}"),
    }
}

/// Splits a number from its unit.
fn unit_of(text: &str) -> (&str, &str) {
    let at = text.rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |i| i + 1);
    (&text[..at], &text[at..])
}

/// Bytes, with a unit or without.
fn size(flag: &str, text: &str, max: u64) -> anyhow::Result<u64> {
    let remedy = "say bytes, or a number with kB, KiB, MB, MiB, GB or GiB";
    let units: [(&str, u64); 8] = [
        ("B", 1),
        ("kB", 1000),
        ("KB", 1000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
    ];
    let (digits, unit) = unit_of(text);
    let scale =
        units.iter().find(|(name, _)| *name == unit && !text.starts_with("0x")).map(|(_, scale)| *scale);
    let Some(scale) = scale else { return whole(flag, text, max, remedy) };
    let number = digits.parse::<f64>().unwrap_or(f64::NAN) * scale as f64;
    anyhow::ensure!(
        number.fract() == 0.0 && (1.0..=max as f64).contains(&number),
        "{flag} is {text}, not 1 to {max} whole bytes; {remedy}"
    );
    Ok(number as u64)
}

/// Seconds, from 1 to ten years.
fn duration(flag: &str, text: &str) -> anyhow::Result<f64> {
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let (digits, unit) = unit_of(text);
    let seconds = units
        .iter()
        .find(|(name, _)| *name == unit)
        .and_then(|(_, scale)| Some(digits.parse::<f64>().ok()? * scale))
        .filter(|seconds| (1.0..=3650.0 * 86_400.0).contains(seconds));
    let remedy = "say a number with s, m, h or d, such as 12h";
    seconds.ok_or_else(|| anyhow::anyhow!("{flag} is {text:?}, no duration from 1s to 3650d; {remedy}"))
}

/// A scheme for the table, with what it takes, or why it can't be.
struct Candidate {
    scheme: Scheme,
    of: Result<(Table, Costs), String>,
}

struct Planned {
    question: Question,
    rates: Rates,
    candidates: [Candidate; 2],
    /// Which of them `db build` takes.
    chosen: usize,
}

fn title(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Simple => "SimplePIR",
        Scheme::Double => "DoublePIR",
    }
}

impl Planned {
    fn new(question: Question, rates: Rates) -> anyhow::Result<Self> {
        let candidates = [Scheme::Simple, Scheme::Double].map(|scheme| Candidate {
            scheme,
            of: Table::new(&question, SchemeChoice::Only(scheme))
                .map(|table| (table, table.costs(&question, &rates)))
                .map_err(|e| e.to_string()),
        });
        let built = Table::new(&question, SchemeChoice::Auto)?;
        let chosen = usize::from(built.records.scheme == Scheme::Double);
        Ok(Self { question, rates, candidates, chosen })
    }

    /// The chosen candidate, which there is, and the other.
    fn both(&self) -> (&Table, &Costs, &Candidate) {
        let (table, costs) = self.candidates[self.chosen].of.as_ref().expect("what is built can be");
        (table, costs, &self.candidates[1 - self.chosen])
    }

    /// Why `db build` takes this scheme.
    fn reason(&self) -> String {
        let (table, _, other) = self.both();
        let name = title(table.records.scheme);
        match &other.of {
            Err(why) => format!("{name}, because {} can't be: {why}", title(other.scheme)),
            Ok((that, _)) => format!(
                "{name}, because a lookup moves {} with 1/{QUERIES_PER_HINT} of the hint, and {} would move {}",
                output::bytes(table.bytes_to_choose_by()),
                title(other.scheme),
                output::bytes(that.bytes_to_choose_by())
            ),
        }
    }

    /// What suits these clients better, if anything does.
    fn advice(&self) -> Option<String> {
        let (_, costs, other) = self.both();
        let (_, that) = other.of.as_ref().ok()?;
        (that.wait_seconds < 0.9 * costs.wait_seconds).then(|| {
            format!(
                "for these clients {} is better: {} a lookup with its share of the hint, and not {}; build with `db \
                 build --scheme {}`",
                title(other.scheme),
                seconds(that.wait_seconds),
                seconds(costs.wait_seconds),
                other.scheme
            )
        })
    }

    /// What is out of the ordinary.
    fn notes(&self) -> Vec<String> {
        let (table, costs, _) = self.both();
        let q = &self.question;
        let mut notes = Vec::new();
        if table.blocks > 1 {
            notes.push(format!(
                "records over {} don't fit a slot: `db build` cuts them into {} blocks of {} B, and a lookup asks {} queries",
                output::bytes(blindcore_lookup::MAX_RECORD_BYTES as u64),
                table.blocks,
                table.block_bytes,
                table.blocks
            ));
        }
        let load = &costs.load;
        notes.push(format!(
            "{} lookups a second: {} in a pass, {:.1} % of the time of {} like this one",
            figure(load.lookups),
            if load.gathered == 1 { "one query".into() } else { format!("{} queries", load.gathered) },
            100.0 * load.busy,
            if load.servers == 1.0 { "one machine".into() } else { format!("{} machines", load.servers) }
        ));
        if self.rates.processor == doctor::processor()
            && doctor::memory_bytes().is_some_and(|memory| costs.memory_bytes > memory / 10 * 9)
        {
            notes.push("this machine has not that much memory".into());
        }
        notes.push(match table.changes(q) {
            Some(c) => format!(
                "with changed rows looked up beside it, a database is best built every {} epochs (up to {} rows beside \
                 it): a client moves {} an epoch, and {} where it is built in each",
                c.epochs,
                count(c.rows),
                output::bytes(c.bytes),
                output::bytes(c.bytes_anew)
            ),
            None if q.changed == 0.0 => "no row changes, so the hint of one epoch serves the next".into(),
            None => "so much changes that the database is best built anew each epoch".into(),
        });
        notes
    }

    fn json(&self) -> Value {
        let candidate = |i: usize| match &self.candidates[i].of {
            Err(why) => json!({"scheme": self.candidates[i].scheme, "chosen": false, "impossible": why}),
            Ok((table, costs)) => {
                let g = &table.records.geometry;
                let mut value = json!({
                    "scheme": self.candidates[i].scheme, "chosen": i == self.chosen,
                    "blocks": table.blocks, "block_bytes": table.block_bytes,
                    "slot_bytes": g.record_bytes, "groups": g.groups, "rows": g.rows(), "columns": g.columns,
                    "security_bits": SECURITY_BITS, "proofs": table.roots.is_some(),
                });
                let costs = serde_json::to_value(costs).expect("numbers are JSON");
                let fields = value.as_object_mut().expect("made as one");
                fields.extend(costs.as_object().expect("a struct").clone());
                value
            }
        };
        let (table, _, _) = self.both();
        json!({
            "question": self.question,
            "estimator": ESTIMATOR,
            "rates": self.rates,
            "candidates": [candidate(0), candidate(1)],
            "chosen": self.candidates[self.chosen].scheme,
            "reason": self.reason(),
            "advice": self.advice(),
            "changes": table.changes(&self.question),
            "notes": self.notes(),
        })
    }

    fn text(&self) -> String {
        let q = &self.question;
        let found = match q.key_bytes {
            Some(bytes) => {
                format!("found by a key of up to {bytes} B{}", if q.directory { " or by number" } else { "" })
            }
            None => "found by number".into(),
        };
        let mut text = format!(
            "{} rows of up to {}, {found}\n{} clients with {} lookups each in an epoch of {}; {} Mbit/s up, {} down\n\
             rates of {} on {}, {} threads\n\n",
            count(q.rows),
            output::bytes(q.record_bytes),
            count(q.clients),
            count(q.queries),
            seconds(q.epoch),
            q.up / 1e6,
            q.down / 1e6,
            self.rates.processor,
            self.rates.device,
            self.rates.threads
        );
        let mut row = |name: &str, of: &dyn Fn(&Table, &Costs) -> String| {
            text += &format!("{name:30}");
            for candidate in &self.candidates {
                let cell = candidate.of.as_ref().map_or("-".into(), |(table, costs)| of(table, costs));
                text += &format!("  {cell:<34}");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        };
        row("", &|t, _| {
            let mark = if t.records.scheme == self.candidates[self.chosen].scheme {
                " (db build takes it)"
            } else {
                ""
            };
            format!("{}{mark}", title(t.records.scheme))
        });
        if self.candidates.iter().any(|c| c.of.as_ref().is_ok_and(|(t, _)| t.blocks > 1)) {
            row("a record", &|t, _| format!("{} blocks of {} B", t.blocks, t.block_bytes));
        }
        row("matrix, rows x columns", &|t, _| {
            format!(
                "{} x {}",
                count(t.records.geometry.rows() as u64),
                count(t.records.geometry.columns as u64)
            )
        });
        row("security", &|_, _| format!("{SECURITY_BITS} bits"));
        row("a lookup fails", &|_, c| format!("less than once in 2^{}", c.failure_log2.min(128.0).floor()));
        row("hint, once an epoch", &|_, c| {
            format!("{}, {}", output::bytes(c.hint_bytes), seconds(c.hint_seconds))
        });
        row("query", &|_, c| format!("{}, {}", output::bytes(c.query_bytes), seconds(c.query_seconds)));
        row("answer", &|_, c| format!("{}, {}", output::bytes(c.answer_bytes), seconds(c.answer_seconds)));
        row("client before, after", &|_, c| {
            format!("{}, {}", seconds(c.prepare_seconds), seconds(c.decode_seconds))
        });
        row("server, a lookup alone", &|_, c| seconds(c.server_seconds));
        row(&format!("server, one of {} in a pass", q.gather), &|_, c| seconds(c.server_seconds_gathered));
        row("a lookup with its hint's share", &|_, c| seconds(c.wait_seconds));
        row("server's memory", &|_, c| output::bytes(c.memory_bytes));
        row("server's disk", &|_, c| output::bytes(c.disk_bytes));
        row("build", &|_, c| seconds(c.build_seconds.total()));
        row("  read, lay out, hint", &|_, c| {
            let b = &c.build_seconds;
            format!("{}, {}, {}", seconds(b.read), seconds(b.fill), seconds(b.hint))
        });
        row("a million lookups cost", &|_, c| figure(c.million.total));
        row("  cores, memory", &|_, c| format!("{}, {}", figure(c.million.passes), figure(c.million.memory)));
        row("  traffic, builds", &|_, c| {
            format!("{}, {}", figure(c.million.traffic), figure(c.million.builds))
        });
        text += &format!("\n{}\n", self.reason());
        for note in self.advice().into_iter().chain(self.notes()) {
            text += &format!("{note}\n");
        }
        let p = &q.prices;
        text += &format!(
            "prices: {} a core-hour, {} a GB of memory for a month, {} a GB of traffic (--price-core-hour and so on)\n",
            p.core_hour, p.gb_month, p.gb
        );
        text
    }
}

/// A number with separators.
fn count(n: u64) -> String {
    indicatif::HumanCount(n).to_string()
}

/// Three digits that count.
fn figure(x: f64) -> String {
    if x == 0.0 || x >= 100.0 {
        return format!("{x:.0}");
    }
    let places = (2.0 - x.log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{x:.places$}")
}

/// Seconds for people.
fn seconds(s: f64) -> String {
    match s {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 0.01 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_their_limits() {
        let n = |text| whole("--rows", text, 1 << 40, "say it").map_err(|e| e.to_string());
        assert_eq!((n("7"), n("0x10"), n("1e9")), (Ok(7), Ok(16), Ok(1_000_000_000)));
        for bad in ["0", "-1", "", "1.5", "1e40", "0x", "ten", "99999999999999999999999999999999999999999999"]
        {
            let why = n(bad).unwrap_err();
            assert!(
                why.contains("--rows") && why.contains("1099511627776") && why.contains("say it"),
                "{why}"
            );
        }
        let b = |text| size("--record-bytes", text, 1 << 30).map_err(|e| e.to_string());
        assert_eq!((b("256"), b("0x100"), b("1KiB"), b("3MB")), (Ok(256), Ok(256), Ok(1024), Ok(3_000_000)));
        assert_eq!((b("1.5kB"), b("64B"), b("1GiB")), (Ok(1500), Ok(64), Ok(1 << 30)));
        for bad in ["0", "0B", "-3MB", "2GiB", "1.0001kB", "3XB", "MB", "1e99", "nanMB", "infMB"] {
            let why = b(bad).unwrap_err();
            assert!(why.contains("--record-bytes") && why.contains("1073741824"), "{why}");
        }
        let d = |text| duration("--epoch", text).map_err(|e| e.to_string());
        assert_eq!((d("90s"), d("1.5h"), d("7d"), d("2m")), (Ok(90.0), Ok(5400.0), Ok(604_800.0), Ok(120.0)));
        for bad in ["0d", "-1d", "5", "d", "5w", "4000d", "nans", ""] {
            assert!(d(bad).unwrap_err().contains("--epoch"), "{bad}");
        }
        let r = |text| real("--up", text, 0.001, 1e6, " Mbit/s", "say it").map_err(|e| e.to_string());
        assert_eq!(r("2.5"), Ok(2.5));
        for bad in ["0", "-1", "NaN", "inf", "1e7", "fast", ""] {
            assert!(r(bad).unwrap_err().contains("--up is"), "{bad}");
        }
    }

    #[test]
    fn figures_for_people() {
        let shown = [0.0, 0.001234, 1.234, 12.34, 123.4, 12_340.0].map(figure);
        assert_eq!(shown, ["0", "0.00123", "1.23", "12.3", "123", "12340"]);
        let shown = [0.00012, 0.0023, 0.05, 2.0, 100.0, 600.0, 7200.0, 864_000.0].map(seconds);
        assert_eq!(shown, ["120 us", "2.3 ms", "50 ms", "2.0 s", "100 s", "10 min", "2 h", "10 days"]);
    }
}
