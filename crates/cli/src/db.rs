//! `blindcore db`: make, show and check databases.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use blindcore_accel::Operation;
use blindcore_files::{Access, Existing, new_file};
use blindcore_lookup::{Params, SchemeChoice, schemes};
use blindcore_store::{
    BuildOptions, ExternalSort, Manifest, ProofChoice, SigningKey, SourceSpec, StageTimes, StoreError,
    Stored, UpdateOptions, Updated, build as build_database, update as update_database,
};
use blindcore_units::Progress;
use serde_json::json;

use crate::config::Config;
use crate::output::{self, Bar};
use crate::{Outcome, args, device, token};

pub(crate) fn build(config: &Config, args: args::Build) -> anyhow::Result<Outcome> {
    let scheme = match args.scheme.as_str() {
        _ if args.quantum128 => {
            SchemeChoice::quantum().context("no scheme with 128 quantum bits is offered")?
        }
        "auto" => SchemeChoice::Auto,
        "known" => SchemeChoice::known(),
        name => {
            let unknown = || {
                let names = schemes::offered_names();
                anyhow::anyhow!("--scheme {name:?} is not offered; use auto, known, or one of {names}")
            };
            let offered = schemes::offered().into_iter().find(|scheme| scheme.name() == name);
            SchemeChoice::Only(offered.ok_or_else(unknown)?)
        }
    };
    let source = SourceSpec::parse_argument(&args.source)?;
    let device = device::open_for(&args.device, config, &[Operation::Contract])?;
    let options = BuildOptions {
        key: args.key.or_else(|| source.default_key().map(str::to_owned)),
        source,
        values: args.value,
        name: args.name,
        out: args.out,
        scheme,
        proofs: match (args.proofs, args.no_proofs) {
            (true, _) => ProofChoice::With,
            (_, true) => ProofChoice::Without,
            _ => ProofChoice::Auto,
        },
        sign: args.sign.as_deref().map(signing_key).transpose()?,
        change_signer: args.change_signer,
        batch: args.batch,
        directory: !args.no_directory,
        force: args.force,
        memory: ExternalSort::DEFAULT_MEMORY,
    };
    let out = options.out.clone();
    let interrupted = on_interrupt(move || blindcore_store::abandon(&out))?;
    let started = Instant::now();
    let mut bar = Bar::new().until(&interrupted);
    let mut stages = StageTimes::new(&mut bar);
    build_database(&options, &device, &mut stages)?;
    let [read, layout, hint] = stages.end();
    drop(bar);
    let stored = Stored::open(&options.out)?;
    let seconds = started.elapsed().as_secs_f64();
    output::done(format!("{} is made, and can be served", options.out.display()));
    if args.json {
        let mut value = stored.describe()?;
        value["stages"] = json!({"read": read, "layout": layout, "hint": hint});
        value["out"] = json!(options.out.display().to_string());
        value["device"] = json!(device.name());
        value["seconds"] = json!(seconds);
        output::json(&value)?;
    } else {
        note_large_hint(stored.manifest());
        stored.manifest().notes().iter().for_each(|note| output::note(note));
        output::print(&format!(
            "{}made {} in {seconds:.1} s on {} (read {read:.1} s, laid out {layout:.1} s, hint {hint:.1} s); serve it \
             with: blindcore serve {}\n",
            stored.summary()?,
            options.out.display(),
            device.name(),
            options.out.display()
        ))?;
    }
    Ok(Outcome::Done)
}

/// How long an interrupted build may take to notice.
const PATIENCE: Duration = Duration::from_secs(3);

fn leave(abandon: &dyn Fn()) -> ! {
    abandon();
    output::warn("blindcore: interrupted; nothing was kept");
    std::process::exit(2);
}

/// Says where a hint's size comes from when it is out of proportion.
fn note_large_hint(manifest: &Manifest) {
    let part = &manifest.records;
    let database: u64 = part.shards.iter().map(|s| s.bytes).sum();
    if part.hint.bytes > (64 << 20).max(4 * database) {
        output::note(&format!(
            "note: clients fetch a hint of {} for a database of {}: it grows with the length of a slot, {} B here, and not \
             with the {} rows; shorter records make it smaller, also cut into more rows",
            output::bytes(part.hint.bytes),
            output::bytes(database),
            part.geometry.record_bytes,
            manifest.rows
        ));
    }
}

/// A flag that Ctrl-C and SIGTERM raise. Work that does not see it soon, for it waits for a row that doesn't come,
/// is ended here, what it made removed by `abandon`; so is work that is told twice.
fn on_interrupt(abandon: impl Fn() + Send + Sync + 'static) -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let (raised, abandon) = (flag.clone(), Arc::new(abandon));
    let work = std::thread::current();
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            leave(&*abandon);
        }
        output::note("stopping");
        work.unpark();
        let abandon = abandon.clone();
        std::thread::spawn(move || {
            std::thread::park_timeout(PATIENCE);
            leave(&*abandon);
        });
    })?;
    Ok(flag)
}

pub(crate) fn update(config: &Config, args: args::Update) -> anyhow::Result<Outcome> {
    let changes = SourceSpec::parse_argument(&args.from)?;
    let device = device::open_for(&args.device, config, &[Operation::Contract])?;
    let options = UpdateOptions {
        dir: args.dir,
        changes,
        follow: args.follow,
        overlap: args.overlap.unwrap_or_default(),
        partial: args.partial,
        whole: args.whole,
        ignore: args.ignore.unwrap_or_default(),
        sign: args.sign.as_deref().map(signing_key).transpose()?,
        change_signer: args.change_signer,
        memory: ExternalSort::DEFAULT_MEMORY,
    };
    let again = options.follow.is_some() && !args.once;
    // What an update leaves lies within the database, where the next one removes it.
    let interrupted = on_interrupt(|| {})?;
    let (mut failed, mut read, mut said) = (false, false, Vec::new());
    loop {
        let started = Instant::now();
        let updated = update_database(&options, &device, &mut Bar::new().until(&interrupted));
        match updated {
            Ok(updated) => {
                // What stays so is said once.
                for note in updated.notes.iter().filter(|note| !said.contains(*note)) {
                    output::note(&format!("note: {note}"));
                }
                said.clone_from(&updated.notes);
                (failed, read) = (false, true);
                if updated.published || !again {
                    output::done(format!("epoch {} is published", updated.manifest.epoch));
                    say_update(&options, &updated, started, args.json, again)?;
                }
            }
            Err(_) if again && interrupted.load(Ordering::Relaxed) => return Ok(Outcome::Done),
            // A source that was there and is away for a while does not end the following of it. It is said
            // once.
            Err(error @ StoreError::Source(_)) if again && read => {
                if !std::mem::replace(&mut failed, true) {
                    output::warn(&format!("blindcore: {error}; asking again every {} s", args.every));
                }
            }
            Err(error) => return Err(error.into()),
        }
        if !again {
            return Ok(Outcome::Done);
        }
        let next = Instant::now() + Duration::from_secs(args.every);
        while Instant::now() < next {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(Outcome::Done);
            }
            std::thread::park_timeout(next - Instant::now());
        }
    }
}

fn say_update(
    options: &UpdateOptions,
    updated: &Updated,
    started: Instant,
    as_json: bool,
    line: bool,
) -> anyhow::Result<()> {
    let seconds = started.elapsed().as_secs_f64();
    let Updated { manifest, published, added, changed, removed, unchanged, changes, .. } = updated;
    if as_json {
        let mut value = updated.to_json();
        value["seconds"] = json!(seconds);
        return if line { output::print(&format!("{value}\n")) } else { output::json(&value) };
    }
    let counts = format!("{added} added, {changed} changed, {removed} removed, {unchanged} as they were");
    let (name, epoch) = (&manifest.name, manifest.epoch);
    if !published {
        return output::print(&format!("table {name} stays at epoch {epoch}: {counts}\n"));
    }
    output::print(&format!("table {name}, epoch {epoch}: {counts} ({seconds:.1} s)\n"))?;
    if let Some(m) = &manifest.changes {
        let (base, now) = (manifest.records.params()?, m.records.params()?);
        let bytes = |p: Params| (p.query_bytes() + p.answer_bytes()) as f64;
        let more = 100.0 * bytes(now) / bytes(base);
        if more > 25.0 {
            output::note(&format!(
                "note: rows that differ from the base: {changes}; a lookup moves {more:.0} % more bytes for them; build \
                 {} again when that is too much",
                options.dir.display()
            ));
        }
    }
    Ok(())
}

pub(crate) fn inspect(args: &args::Inspect) -> anyhow::Result<Outcome> {
    let stored = Stored::open(&args.dir)?;
    if args.json {
        output::json(&stored.describe()?)?;
    } else {
        output::print(&stored.summary()?)?;
    }
    Ok(Outcome::Done)
}

pub(crate) fn verify(args: &args::Inspect) -> anyhow::Result<Outcome> {
    let stored = Stored::open(&args.dir)?;
    let started = Instant::now();
    let mut bar = Bar::new();
    let mut total = 0;
    stored.verify(&mut |stage: &str, done, all: Option<u64>, unit| {
        total = all.unwrap_or_default();
        bar.at(stage, done, all, unit);
    })?;
    drop(bar);
    let seconds = started.elapsed().as_secs_f64();
    let by = stored.manifest().signed.as_ref().map(|signed| &signed.key);
    if args.json {
        let name = &stored.manifest().name;
        let said = json!({"ok": true, "name": name, "bytes": total, "seconds": seconds, "signed_by": by});
        output::json(&said)?;
    } else {
        let by = by.map(|by| format!(", and it is signed by {by}")).unwrap_or_default();
        let (dir, total) = (args.dir.display(), output::bytes(total));
        output::print(&format!("{dir} is whole: {total} fit their checksums{by} ({seconds:.1} s)\n"))?;
    }
    Ok(Outcome::Done)
}

/// `blindcore db key`.
pub(crate) fn key(args: &args::Key) -> anyhow::Result<Outcome> {
    let made = !args.file.exists();
    if made {
        let pem = SigningKey::generate_pem().map_err(anyhow::Error::msg)?;
        new_file::write(&args.file, Access::Owner, Existing::Keep, pem.as_bytes())?;
        output::made(&args.file);
    }
    let public = output::hex(&signing_key(&args.file)?.public());
    let document = || json!({"file": args.file.display().to_string(), "made": made, "public_key": public});
    output::result(args.json, document, || format!("{public}\n"))?;
    Ok(Outcome::Done)
}

/// `blindcore db sign`.
pub(crate) fn sign(args: &args::Sign) -> anyhow::Result<Outcome> {
    let signed = blindcore_store::sign(&args.dir, &signing_key(&args.key)?, args.change_signer)?;
    output::done(format!("table {}, epoch {}, is signed", signed.name, signed.epoch));
    if args.json {
        output::json(&Stored::open(&args.dir)?.describe()?)?;
    } else {
        let by = signed.signed.map(|signed| signed.key).unwrap_or_default();
        output::print(&format!("table {}, epoch {}, is signed by {by}\n", signed.name, signed.epoch))?;
    }
    Ok(Outcome::Done)
}

fn signing_key(path: &Path) -> anyhow::Result<SigningKey> {
    const MAKE: &str = "make one with `blindcore db key`";
    let der = blindcore_tls::private_key(path).map_err(|why| anyhow::anyhow!("{why}; {MAKE}"))?;
    token::warn_exposed("signing key", path);
    let key = SigningKey::from_pkcs8(der.secret_der());
    key.map_err(|why| anyhow::anyhow!("{}: {why}; {MAKE}", path.display()))
}
