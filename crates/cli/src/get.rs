//! `blindcore get` and `blindcore tables`: what a client asks.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_client::{
    Answer, CacheDir, Client, Counts, Error, Keys, Lookup, LookupError, Options, Reason, Resume, Rotation,
    TableClient, Timings, Traffic, Trust,
};
use blindcore_files::{Access, Existing, new_file};
use blindcore_units::{Progress, Unit, counted};
use blindcore_wire::{self as wire, KeyForm};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::output::{self, Bar};
use crate::outputs::check_output;
use crate::{Outcome, args};

/// How long a server that is busy or gone is waited for under --keys-from, each time.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn get(config: &Config, args: args::Get) -> anyhow::Result<Outcome> {
    let url = args.server.url(config, 7700)?;
    wire::check_table_name(&args.table)
        .map_err(|e| anyhow::anyhow!("--table: {e}; `blindcore tables` lists what a server has"))?;
    let forms = [
        (KeyForm::Text, "--key", args.key),
        (KeyForm::Hex, "--key-hex", args.key_hex),
        (KeyForm::Base64, "--key-base64", args.key_base64),
    ];
    let single = forms.into_iter().find_map(|(form, option, text)| Some((option, form.key(&text?))));
    let single = match single {
        Some((option, key)) => Some(key.map_err(|why| anyhow::anyhow!("{option}: {why}"))?),
        None => None,
    };
    let cache = if args.no_cache { CacheDir::None } else { cache_dir(config, args.cache) };
    let trust = trust(config, args.pin, args.trust)?;
    let rotate_after = args.rotate_after.or_else(|| config.rotate_after.clone());
    let rotate_after = rotate_after.as_deref().map(rotation).transpose()?.unwrap_or_default();
    let options =
        Options { trust, allow_rollback: args.allow_rollback, rotate_after, ..args.server.options(config)? };
    if let Some(out) = args.out.as_deref().filter(|out| *out != Path::new("-")) {
        check_output(out, &args.replace, &[])?;
    }
    let keys = args.keys_from.as_deref().map(Keys::open).transpose()?;
    let keys = keys.map(|keys| keys.written_in(args.keys_form.unwrap_or_default()));
    let resume = args.resume.as_deref().map(|path| Resume::open(path, &args.table)).transpose()?;
    let patience = if keys.is_some() { PATIENCE } else { Duration::ZERO };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let all = runtime.block_on(async {
        let client = Client::connect_with(&url, Options { cache, patience, ..options }).await?;
        let bar = Arc::new(Mutex::new(Bar::new()));
        let table = client.table_with(&args.table, Some(bar.clone())).await.map_err(|e| match e {
            Error::Lookup(LookupError::Refused { reason: Some(Reason::UnknownTable), .. }) => {
                anyhow::anyhow!(
                    "{url} has no table {}; `blindcore tables --server {url}` lists what it has",
                    args.table
                )
            }
            e => e.into(),
        })?;
        if let Some(keys) = keys {
            return many(table, keys, resume, args.server.json, &bar).await;
        }
        let started = Instant::now();
        let (asked, lookup) = match (&single, args.index) {
            (Some(key), _) => (json!({"key": key_json(key)}), table.get(key).await?),
            (_, index) => {
                let index = index.context("--key, --index or --keys-from says what is looked up")?;
                let lookup = match table.get_index(index).await {
                    Err(e @ Error::Lookup(LookupError::NoSuchRow { .. })) => {
                        output::note(&e.to_string());
                        let proved = table.description().has_proofs();
                        Lookup { found: None, proved, bytes: Traffic::default(), ms: Timings::default() }
                    }
                    lookup => lookup?,
                };
                (json!({"index": index}), lookup)
            }
        };
        drop(bar);
        match (&args.out, &lookup.found) {
            _ if args.server.json => output::json(&describe(&asked, &lookup, &table))?,
            (Some(out), Some(record)) => write_value(out, args.replace.existing(), &record.values)?,
            (Some(_), None) => output::note(for_people(&asked, &lookup, false).trim_end()),
            (None, _) => output::print(&for_people(&asked, &lookup, false))?,
        }
        if !args.server.json {
            traffic(lookup.bytes, started);
        }
        Ok(if lookup.found.is_some() { Outcome::Done } else { Outcome::NotThere })
    });
    // Whoever types keys may not have ended them.
    runtime.shutdown_background();
    all
}

/// Looks all keys up and prints each answer as it comes.
async fn many(
    table: TableClient,
    keys: Keys,
    resume: Option<Resume>,
    as_json: bool,
    bar: &Mutex<Bar>,
) -> anyhow::Result<Outcome> {
    let (started, mut sum, mut told, mut found) = (Instant::now(), Traffic::default(), 0u64, 0u64);
    let ended = table.get_all(keys, resume, |Answer { line, lookup, table }| {
        let asked = json!({"key": line.key.as_deref().ok().map(key_json)});
        if let Ok(lookup) = &lookup {
            sum.up += lookup.bytes.up;
            sum.down += lookup.bytes.down;
            sum.hint = sum.hint.max(lookup.bytes.hint);
            found += u64::from(lookup.found.is_some());
        }
        let result = match (as_json, &lookup) {
            (true, Ok(lookup)) => describe(&asked, lookup, table),
            (true, Err(e)) => {
                json!({"found": null, "key": asked["key"], "line": line.line, "error": e.to_string()})
            }
            (false, Ok(lookup)) => return output::print(&for_people(&asked, lookup, true)),
            (false, Err(e)) => {
                let place =
                    if let Error::Keys(_) = e { String::new() } else { format!("line {}: ", line.line) };
                output::warn(&format!("{place}{e}"));
                return Ok(());
            }
        };
        let before = if told == 0 { "{\"results\": [\n" } else { ",\n" };
        told += 1;
        if !std::io::stdout().is_terminal() {
            bar.lock().expect("a bar does not panic").at("looking up", told, None, Unit::Items);
        }
        output::print(&format!("{before}{result}"))
    });
    let ended = ended.await;
    if !as_json {
        traffic(sum, started);
    } else if told > 0 || ended.is_ok() {
        let begin = if told == 0 { "{\"results\": [" } else { "" };
        let mut end = json!({"found": found, "of": told, "ms": started.elapsed().as_millis() as u64});
        if let Err(error) = &ended {
            end["error"] = json!(format!("{error:#}"));
        }
        output::print(&format!("{begin}\n], {}\n", &end.to_string()[1..]))?;
        if let Err(error) = &ended {
            output::error(error, "", false);
            return Ok(Outcome::Faulty);
        }
    }
    Ok(match ended? {
        Counts { absent: 0, failed: 0, .. } => Outcome::Done,
        Counts { failed: 0, .. } => Outcome::NotThere,
        Counts { found: 0, absent: 0, .. } => Outcome::Faulty,
        _ => Outcome::Partly,
    })
}

/// What `--rotate-after` says.
fn rotation(said: &str) -> anyhow::Result<Rotation> {
    blindcore_client::rotation("--rotate-after", said).map_err(anyhow::Error::msg)
}

fn traffic(bytes: Traffic, started: Instant) {
    let [up, down, hint, keys] = [bytes.up, bytes.down, bytes.hint, bytes.keys].map(output::bytes);
    let keys = if bytes.keys > 0 { format!(", {keys} of registered keys") } else { String::new() };
    output::note(&format!(
        "{up} up, {down} down, {hint} of hints{keys}; {} ms",
        started.elapsed().as_millis()
    ));
}

pub(crate) fn tables(config: &Config, args: args::Tables) -> anyhow::Result<Outcome> {
    let url = args.server.url(config, 7700)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let options = args.server.options(config)?;
    let tables = runtime.block_on(async { Client::connect_with(&url, options).await?.tables().await })?;
    if args.server.json {
        let list: Vec<Value> =
            tables.iter().map(|t| json!({"name": t.name, "epoch": t.epoch, "rows": t.rows})).collect();
        output::json(&json!({"tables": list}))?;
    } else {
        for t in &tables {
            let rows = counted(t.rows, "row");
            output::print(&format!("{}  {rows}, epoch {}\n", t.name, t.epoch))?;
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
    match args::parse_from(["blindcore", "get", "--table", "t", "--index", "0"]).1.map(|args| args.command) {
        Ok(args::Command::Get(args)) => {
            let options = Options { cache: cache_dir(config, args.cache), ..args.server.options(config)? };
            trust(config, args.pin, args.trust)?;
            config.rotate_after.as_deref().map(rotation).transpose()?;
            let url = args.server.server.or_else(|| config.server.clone());
            Ok(Client::check(url.as_deref(), &options)?)
        }
        Ok(_) => unreachable!("it is get that was parsed"),
        Err(wrong) => Err(args::refused(&wrong).into()),
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

/// Writes a record's only value, as it is where that is text or bytes.
fn write_value(out: &Path, over: Existing, values: &[(Arc<str>, wire::Value)]) -> anyhow::Result<()> {
    use wire::Value::{Blob, Text};
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
        return output::write(&bytes);
    }
    Ok(new_file::write(out, Access::Everyone, over, &bytes)?)
}

fn key_json(key: &[u8]) -> Value {
    match std::str::from_utf8(key) {
        Ok(text) => json!(text),
        Err(_) => wire::Value::Blob(key.to_vec()).to_json(),
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
    out.insert(
        "bytes".into(),
        json!({"up": bytes.up, "down": bytes.down, "hint": bytes.hint, "keys": bytes.keys}),
    );
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
        (Some(key), _) => output::printable(key),
        (_, Some(index)) => format!("row {index}"),
        _ => String::new(),
    };
    let said = if lookup.proved { "" } else { " (absence is not proved)" };
    let Some(record) = &lookup.found else { return format!("{title}: not there{said}\n") };
    let mut text = if many { format!("{title}\n") } else { String::new() };
    if let (Some(key), Some(_)) = (&record.key, asked.get("index")) {
        text += &format!("{title} is {}\n", output::printable(&key_json(key)));
    }
    text += &output::fields(record.values.iter().map(|(column, value)| (&**column, value.to_json())));
    if record.values.is_empty() {
        text += "  there\n";
    }
    text
}
