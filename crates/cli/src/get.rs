//! `blindcore get` and `blindcore tables`: what a client asks.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_client::{
    CacheDir, Client, Error, Lookup, LookupError, Options, TableClient, Timings, Token, Traffic, Trust,
};
use blindcore_files::{Access, NewFile, text};
use blindcore_units::{Progress, Unit};
use clap::Parser;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::output::{self, Bar};
use crate::{Outcome, args, token};

/// Keys of a file that are looked up at a time, so that progress shows and memory stays bounded.
const BATCH: usize = 256;
/// The longest line of a file of keys, its end not counted.
const MAX_LINE: usize = blindcore_wire::codec::MAX_KEY_BYTES;

pub(crate) fn get(config: &Config, args: args::Get) -> anyhow::Result<Outcome> {
    let url = server(config, &args.server)?;
    blindcore_wire::check_table_name(&args.table)
        .map_err(|e| anyhow::anyhow!("--table: {e}; `blindcore tables` lists what a server has"))?;
    if args.key.as_deref().is_some_and(|k| !(1..=MAX_LINE).contains(&k.len())) {
        anyhow::bail!(
            "--key has {} B, outside the 1 to {MAX_LINE} of a key",
            args.key.map_or(0, |k| k.len())
        );
    }
    let cache = if args.no_cache { CacheDir::None } else { cache_dir(config, args.cache) };
    let trust = trust(config, args.pin, args.trust)?;
    let options = Options { trust, allow_rollback: args.allow_rollback, ..options(config, &args.server)? };
    let keys = args.keys_from.as_deref().map(read_keys).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::connect_with(&url, Options { cache, ..options }).await?;
        let bar = Arc::new(Mutex::new(Bar::new()));
        let table = client.table_with(&args.table, Some(bar.clone())).await?;
        let started = Instant::now();
        let lookups: Vec<(Value, Lookup)> = match (&args.key, args.index, &keys) {
            (Some(key), _, _) => vec![(json!({"key": key}), table.get(key).await?)],
            (_, Some(index), _) => {
                let lookup = match table.get_index(index).await {
                    Err(e @ Error::Lookup(LookupError::NoSuchRow { .. })) => {
                        output::note(&e.to_string());
                        let proved = table.description().has_proofs();
                        Lookup { found: None, proved, bytes: Traffic::default(), ms: Timings::default() }
                    }
                    lookup => lookup?,
                };
                vec![(json!({"index": index}), lookup)]
            }
            (_, _, Some(keys)) => {
                let mut all = Vec::with_capacity(keys.len());
                let mut garbage = None;
                for batch in keys.chunks(BATCH) {
                    let found = match table.get_many(batch).await {
                        Ok(found) => found,
                        // What an answer decodes to must not show in what is sent next: all keys are asked.
                        Err(
                            e @ Error::Lookup(LookupError::Garbage { .. } | LookupError::WrongAnswer { .. }),
                        ) => {
                            garbage.get_or_insert(e);
                            continue;
                        }
                        Err(e) => return Err(e.into()),
                    };
                    all.extend(batch.iter().map(|k| json!({"key": k})).zip(found));
                    let total = Some(keys.len() as u64);
                    let mut bar = bar.lock().expect("a bar does not panic");
                    bar.at("looking up", all.len() as u64, total, Unit::Items);
                }
                if let Some(garbage) = garbage {
                    return Err(garbage.into());
                }
                all
            }
            _ => unreachable!("clap asks for one of them"),
        };
        drop(bar);
        let elapsed = started.elapsed().as_secs_f64() * 1e3;
        let all_found = lookups.iter().all(|(_, l)| l.found.is_some());
        if args.server.json {
            let mut results: Vec<Value> =
                lookups.iter().map(|(asked, l)| describe(asked, l, &table)).collect();
            let whole = match (&keys, results.pop()) {
                (None, Some(single)) => single,
                (_, last) => {
                    results.extend(last);
                    let found = lookups.iter().filter(|(_, l)| l.found.is_some()).count();
                    json!({"found": found, "of": results.len(), "ms": elapsed.round(), "results": results})
                }
            };
            output::json(&whole)?;
        } else {
            if let Some(out) = &args.out
                && let Some(record) = &lookups[0].1.found
            {
                write_value(out, &record.values)?;
            }
            for (asked, lookup) in &lookups {
                if args.out.is_some() && lookup.found.is_some() {
                    continue;
                }
                output::print(&for_people(asked, lookup, keys.is_some()))?;
            }
            let sum = |f: fn(&Lookup) -> u64| lookups.iter().map(|(_, l)| f(l)).sum::<u64>();
            output::note(&format!(
                "{} up, {} down, {} of hints; {elapsed:.0} ms",
                output::bytes(sum(|l| l.bytes.up)),
                output::bytes(sum(|l| l.bytes.down)),
                output::bytes(table.hint_bytes_fetched()),
            ));
        }
        Ok(if all_found { Outcome::Done } else { Outcome::NotThere })
    })
}

pub(crate) fn tables(config: &Config, args: args::Tables) -> anyhow::Result<Outcome> {
    let url = server(config, &args.server)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let options = options(config, &args.server)?;
    let tables = runtime.block_on(async { Client::connect_with(&url, options).await?.tables().await })?;
    if args.server.json {
        let list: Vec<Value> =
            tables.iter().map(|t| json!({"name": t.name, "epoch": t.epoch, "rows": t.rows})).collect();
        output::json(&json!({"tables": list}))?;
    } else {
        for t in &tables {
            output::print(&format!("{}  {} rows, epoch {}\n", t.name, t.rows, t.epoch))?;
        }
    }
    Ok(Outcome::Done)
}

fn cache_dir(config: &Config, named: Option<PathBuf>) -> CacheDir {
    named.or_else(|| config.cache.clone()).map_or(CacheDir::User, CacheDir::At)
}

/// `blindcore cache`.
pub(crate) fn cache(config: &Config, command: args::Cache) -> anyhow::Result<Outcome> {
    let (args, clear) = match command {
        args::Cache::List(args) => (args, None),
        args::Cache::Clear { epochs, args } => (args, Some(epochs)),
    };
    let cache = cache_dir(config, args.cache);
    let files = clear.map_or_else(|| cache.list(), |epochs| cache.clear(epochs))?;
    if args.json {
        let list: Vec<Value> = files.iter().map(|f| json!({"name": f.name, "bytes": f.bytes})).collect();
        output::json(&json!({"folder": cache.path()?, "removed": clear.is_some(), "files": list}))?;
    } else {
        for file in &files {
            let removed = if clear.is_some() { "removed " } else { "" };
            output::print(&format!("{removed}{}  {}\n", file.name, output::bytes(file.bytes)))?;
        }
    }
    Ok(Outcome::Done)
}

/// Whether lookups would take the settings and the environment.
pub(crate) fn check(config: &Config) -> anyhow::Result<()> {
    match args::Args::try_parse_from(["blindcore", "tables"]).map(|args| args.command) {
        Ok(args::Command::Tables(args)) => {
            options(config, &args.server)?;
            trust(config, None, None)?;
            let url = args.server.server.filter(|s| !s.is_empty()).or_else(|| config.server.clone());
            url.map_or(Ok(()), |url| Ok(Client::check_url(&url)?))
        }
        Ok(_) => unreachable!("it is tables that was parsed"),
        Err(error) => Err(error.into()),
    }
}

/// Which tables are taken: as flags say or, where they don't, as settings do.
fn trust(config: &Config, pin: Option<[u8; 32]>, trust: Option<[u8; 32]>) -> anyhow::Result<Trust> {
    let parse = |name: &str, said: &Option<String>| {
        let parsed = said.as_deref().map(args::parse_32).transpose();
        parsed.map_err(|why| anyhow::anyhow!("{name} of the settings file: {why}"))
    };
    let (said_pin, said_trust) = (parse("pin", &config.pin)?, parse("trust", &config.trust)?);
    anyhow::ensure!(
        said_pin.is_none() || said_trust.is_none(),
        "the settings file has both pin and trust; leave one out"
    );
    let said = pin.map(Trust::Digest).or(trust.map(Trust::Key));
    Ok(said.or(said_pin.map(Trust::Digest)).or(said_trust.map(Trust::Key)).unwrap_or_default())
}

fn server(config: &Config, args: &args::ServerArgs) -> anyhow::Result<String> {
    // An empty variable is an unset one.
    let named = args.server.clone().filter(|s| !s.is_empty());
    named
        .or_else(|| config.server.clone())
        .context("no server is named; say --server http://127.0.0.1:7700 or set BLINDCORE_SERVER")
}

fn options(config: &Config, args: &args::ServerArgs) -> anyhow::Result<Options> {
    let ca = args.ca.clone().or_else(|| config.ca.clone());
    let variable = std::env::var_os("BLINDCORE_TOKEN").filter(|t| !t.is_empty());
    let variable = variable.map(|t| t.into_string().map(Zeroizing::new)).transpose();
    let variable = variable
        .map_err(|_| anyhow::anyhow!("BLINDCORE_TOKEN is not UTF-8; `blindcore token` makes tokens"))?;
    let own = args.token_file.is_some() || variable.is_some();
    let token = match (&args.token_file, variable, &config.token_file) {
        (Some(path), ..) | (None, None, Some(path)) => Some(token::read(path)?),
        (None, Some(token), _) => Some(Token::new(&token).context("BLINDCORE_TOKEN")?),
        (None, None, None) => None,
    };
    // A file that merely lies in the folder, which may be anybody's, doesn't decide who gets a person's token.
    if let (Some(file), true, None, Some(_)) =
        (config.found(), own, args.server.as_ref().filter(|s| !s.is_empty()), &config.server)
    {
        let file = file.display();
        anyhow::bail!(
            "the server is named by {file} alone, which lies in this folder, and a token goes to a server that you name: \
             say --server, or --config {file} if that is yours"
        );
    }
    let mut options =
        Options { ca, token, plain_text: args.plain_text || config.plain_text, ..Options::default() };
    if let Some(seconds) = args.timeout.or(config.timeout) {
        anyhow::ensure!(
            args::TIMEOUTS.contains(&seconds),
            "timeout of the settings file is {seconds} s, outside 1 to 86400"
        );
        options.request_timeout = Duration::from_secs(seconds);
    }
    Ok(options)
}

/// Writes a record's only value, as it is where that is text or bytes.
fn write_value(out: &Path, values: &[(Arc<str>, blindcore_wire::Value)]) -> anyhow::Result<()> {
    use blindcore_wire::Value::{Blob, Text};
    let [(_, value)] = values else {
        let columns: Vec<&str> = values.iter().map(|(name, _)| &**name).collect();
        anyhow::bail!(
            "--out takes a record of one column, and this one has {}: {}; leave it out, or say --json",
            columns.len(),
            columns.join(", ")
        );
    };
    let bytes = match value {
        Text(text) => text.as_bytes().to_vec(),
        Blob(bytes) => bytes.clone(),
        other => other.to_json().to_string().into_bytes(),
    };
    if out == Path::new("-") {
        std::io::stdout().lock().write_all(&bytes)?;
        return Ok(std::io::stdout().flush()?);
    }
    let mut file = NewFile::create(out, Access::Everyone)?;
    file.write_all(&bytes).with_context(|| format!("{} can't be written", out.display()))?;
    file.replace()?;
    Ok(())
}

/// Every line of a file; empty lines are skipped.
fn read_keys(path: &Path) -> anyhow::Result<Vec<String>> {
    let named = path.display();
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("keys can't be read from {named}"))?;
        Box::new(std::io::BufReader::new(file))
    };
    let mut lines = text::Lines::new(input);
    let mut keys = Vec::new();
    for line in 1u64.. {
        let mut bytes = Vec::new();
        let read = lines.append(&mut bytes, MAX_LINE + 2);
        if read.with_context(|| format!("keys can't be read from {named}"))? == 0 {
            break;
        }
        bytes.truncate(text::without_end(&bytes).len());
        anyhow::ensure!(
            bytes.len() <= MAX_LINE,
            "line {line} of {named} is longer than the {MAX_LINE} B of a key; give one key a line"
        );
        let key = String::from_utf8(bytes).map_err(|_| {
            anyhow::anyhow!("line {line} of {named} is not UTF-8; give one key a line in UTF-8")
        })?;
        if !key.is_empty() {
            keys.push(key);
        }
    }
    anyhow::ensure!(!keys.is_empty(), "{named} has no keys; give one a line");
    Ok(keys)
}

fn key_json(key: &[u8]) -> Value {
    match std::str::from_utf8(key) {
        Ok(text) => json!(text),
        Err(_) => blindcore_wire::Value::Blob(key.to_vec()).to_json(),
    }
}

fn describe(asked: &Value, lookup: &Lookup, table: &TableClient) -> Value {
    let mut out = Map::new();
    out.insert("found".into(), json!(lookup.found.is_some()));
    out.insert("proved".into(), json!(lookup.proved));
    let key = lookup.found.as_ref().and_then(|r| r.key.as_deref()).map(key_json);
    out.insert("key".into(), key.or_else(|| asked.get("key").cloned()).unwrap_or(Value::Null));
    if let Some(index) = asked.get("index") {
        out.insert("index".into(), index.clone());
    }
    let value = lookup.found.as_ref().map(|record| {
        record.values.iter().map(|(c, v)| (c.to_string(), v.to_json())).collect::<Map<String, Value>>()
    });
    out.insert("value".into(), json!(value));
    let round = |x: f64| (x * 1000.0).round() / 1000.0;
    let (bytes, ms) = (lookup.bytes, lookup.ms);
    out.insert("bytes".into(), json!({"up": bytes.up, "down": bytes.down, "hint": bytes.hint}));
    out.insert(
        "ms".into(),
        json!({
            "prepare": round(ms.prepare), "query": round(ms.query), "server": round(ms.server),
            "decode": round(ms.decode),
        }),
    );
    out.insert("epoch".into(), json!(table.description().epoch()));
    out.insert("digest".into(), json!(output::hex(table.description().digest())));
    Value::Object(out)
}

fn for_people(asked: &Value, lookup: &Lookup, many: bool) -> String {
    let title = match (asked.get("key"), asked.get("index")) {
        (Some(Value::String(key)), _) => key.clone(),
        (_, Some(index)) => format!("row {index}"),
        _ => String::new(),
    };
    let title = output::printable(&Value::String(title));
    let said = if lookup.proved { "" } else { " (absence is not proved)" };
    let Some(record) = &lookup.found else { return format!("{title}: not there{said}\n") };
    let mut text = if many { format!("{title}\n") } else { String::new() };
    if let (Some(key), Some(_)) = (&record.key, asked.get("index")) {
        text += &format!("{title} is {}\n", output::printable(&key_json(key)));
    }
    let width = record.values.iter().map(|(c, _)| c.chars().count()).max().unwrap_or(0);
    for (column, value) in &record.values {
        text += &format!("  {column:width$}  {}\n", output::printable(&value.to_json()));
    }
    if record.values.is_empty() {
        text += "  there\n";
    }
    text
}
