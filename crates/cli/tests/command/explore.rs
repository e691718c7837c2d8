//! `blindcore hw explore`: sweeps, resumed, refused.

use std::path::Path;
use std::process::Stdio;

use crate::common::{blindcore, code, json, long, refused, run, stderr, stdout};

const SWEEP: &str = "name = 'few'\nabout = 'a few machines'\nmachine = 'thesis'\nconstraints = ['registers * 8 <= sram_bytes']\n\
    [[problem]]\nname = 'OnionPIR'\nscheme = 'onionpir'\ngib = [1]\n\
    [[axis]]\nname = 'registers'\nset = ['RF.size']\nscale = 8\nfrom = 4\nto = 4096\ntimes = 2\n\
    [[axis]]\nname = 'sram_bytes'\nset = ['SRAM.size']\nvalues = ['2 KiB', '4 KiB', '8 KiB']\n";

fn kept() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../repro/onionchopper")
}

#[test]
fn a_sweep_that_was_killed_goes_on_and_gives_the_same_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("few.toml"), SWEEP).unwrap();
    let whole = run(dir.path(), &["hw", "explore", "few.toml", "--out", "whole"]);
    assert_eq!(code(&whole), 0, "{}", stderr(&whole));
    assert!(stdout(&whole).contains("212,845,278 cycles, held by SSD read"), "{}", stdout(&whole));
    let mut child = blindcore(dir.path())
        .args(["hw", "explore", "few.toml", "--out", "killed", "--threads", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Wherever the kill comes, also behind the end, the files are the same.
    let lines =
        || std::fs::read_to_string(dir.path().join("killed/points.part")).map_or(0, |t| t.lines().count());
    while lines() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let again = run(dir.path(), &["hw", "explore", "few.toml", "--out", "killed"]);
    assert!(stderr(&again).contains("were finished before"), "{}", stderr(&again));
    for file in ["results.parquet", "results.csv", "few-cycles.svg", "few-area-energy.png"] {
        let read = |folder: &str| std::fs::read(dir.path().join(folder).join(file)).unwrap();
        assert_eq!(read("whole"), read("killed"), "{file}");
    }
    let points = json(&run(dir.path(), &["hw", "explore", "few.toml", "--json"]));
    let points = points["points"].as_array().unwrap();
    assert_eq!(points.len(), 7 + 8 + 9);
    assert!(
        points.iter().all(|p| p["cycles"].as_u64() >= Some(212_845_278) && p["misfit"].is_null()),
        "{points:?}"
    );
    assert!(points.iter().any(|p| p["front"] == 1));
}

/// What repro/onionchopper keeps is what the command gives; of the two largest sweeps where tests may take minutes.
#[test]
fn the_kept_sweeps_are_todays() {
    let dir = tempfile::tempdir().unwrap();
    let larger = ["thesis-initial", "beyond"].into_iter().filter(|_| long());
    for preset in ["thesis-refined", "thesis-sizes"].into_iter().chain(larger) {
        let output = run(dir.path(), &["hw", "explore", "--preset", preset, "--out", preset]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let today = std::fs::read(dir.path().join(preset).join("results.parquet")).unwrap();
        let kept = match preset {
            "beyond" => kept().join("beyond/results.parquet"),
            _ => kept().join(format!("{preset}.parquet")),
        };
        let kept = std::fs::read(kept).unwrap();
        assert!(today == kept, "{preset}: make the files of repro/onionchopper again, as its README.md says");
    }
}

#[test]
fn what_is_no_sweep_is_refused_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    let explore = |text: &str| {
        std::fs::write(&file, text).unwrap();
        run(dir.path(), &["hw", "explore", "bad.toml", "--out", "out"])
    };
    let changed = |from: &str, to: &str| {
        assert!(SWEEP.contains(from));
        explore(&SWEEP.replace(from, to))
    };
    refused(&changed("machine = ", "machne = "), &["bad.toml", "line 3", "unknown key", "machne"]);
    refused(
        &changed("registers * 8 <= sram_bytes", "registers < 1"),
        &["bad.toml", "none of its 33 points", "loosen"],
    );
    refused(&changed("'RF.size'", "'RF.sise'"), &["bad.toml", "axis registers", "RF.sise can't be set"]);
    refused(&changed("'thesis'", "'mine.toml'"), &["bad.toml", "mine.toml", "not a file"]);
    let mine = "name = 'mine'\nabout = 'x'\nclock = 1e9\n[[level]]\nname = 'memory'\nsize = 0\nwidth = 64\n[lanes]\ncount = 1\ncontract = 1\n";
    std::fs::write(dir.path().join("mine.toml"), mine).unwrap();
    refused(&changed("'thesis'", "'mine.toml'"), &["mine.toml", "level memory: size is 0; say bytes"]);
    refused(&run(dir.path(), &["hw", "explore", "none.toml"]), &["none.toml"]);
    refused(
        &run(dir.path(), &["hw", "explore", "--preset", "thesis-none"]),
        &["thesis-none", "thesis-initial"],
    );
    refused(&run(dir.path(), &["hw", "explore"]), &["SWEEP"]);
    assert!(!dir.path().join("out").exists(), "nothing is made");
    // Another sweep's folder is left alone.
    std::fs::create_dir(dir.path().join("out")).unwrap();
    std::fs::write(dir.path().join("out/points.part"), "mine\n").unwrap();
    refused(&explore(SWEEP), &["points.part", "not of this sweep", "--out"]);
}

/// The thesis's figures that repro/onionchopper keeps are today's, and nearly all are near the published ones.
#[test]
fn the_thesis_figures_stand_beside_ours() {
    let dir = tempfile::tempdir().unwrap();
    let today =
        json(&run(dir.path(), &["repro", "onionchopper", "--no-cpu", "--pictures", "figures", "--json"]));
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(self::kept().join("figures.json")).unwrap()).unwrap();
    let rows = |of: &serde_json::Value| of["rows"].as_array().unwrap().clone();
    assert_eq!(rows(&today).len(), rows(&kept).len());
    for (today, kept) in rows(&today).iter().zip(&rows(&kept)) {
        assert_eq!(today, kept, "make the files of repro/onionchopper again, as its README.md says");
    }
    let row = |id: &str| rows(&today).into_iter().find(|row| row["id"] == id).unwrap();
    assert_eq!(row("onionchopper.6.4.cycles")["value"], 12_833_318_209.0);
    assert_eq!(row("onionchopper.6-1.points")["value"], 4896.0);
    let (all, near) = (today["compared"].as_u64().unwrap(), today["within_15_percent"].as_u64().unwrap());
    assert!(near >= 63 && near + 4 >= all, "{near} of {all}");
    let far: Vec<_> = rows(&today)
        .iter()
        .filter(|row| row["within_15_percent"] == false)
        .map(|row| row["id"].clone())
        .collect();
    let known = ["2.1.product", "2.1.external", "6-6.sram", "6-6.registers"];
    assert_eq!(far, known.map(|id| serde_json::Value::from(format!("onionchopper.{id}"))));
    // What must not be read alone says so, and joules have a column of each kind.
    let seconds = row("onionchopper.6.4.seconds");
    assert_eq!(
        (&seconds["label"], &seconds["source"]),
        (&"at the paper's clock, 2 GHz".into(), &"Shay 2023, Section 6.4".into(),)
    );
    assert!(seconds["beside"]["value"].as_f64() > Some(15.0), "{seconds}");
    assert_eq!(row("onionchopper.6.4.speedup")["label"], "published, other machine");
    let mac = row("onionchopper.6.4.calibrated.mac.picojoules");
    assert!((mac["columns"]["calibrated"]["calibrated"].as_f64().unwrap() - 3290.3).abs() < 0.05, "{mac}");
    let synthesised = |library: &str| mac["columns"]["synthesised"][library].as_f64().unwrap();
    assert!(synthesised("sg13g2") > 1228.0 && (610.0..611.0).contains(&synthesised("nangate45")), "{mac}");
    assert!((mac["columns"]["tables"]["published"].as_f64().unwrap() - 355.0).abs() < 1e-6, "{mac}");
    for figure in ["6-1", "6-5", "6-13"] {
        let png = std::fs::read(dir.path().join(format!("figures/figure-{figure}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"));
    }
    assert!(!dir.path().join("figures/figure-6-8.png").exists(), "without the CPU there is no such figure");
}

/// What goes wrong with Ray, with a python3 that does as much of it as a test needs; `make test-ray` runs the real one.
#[cfg(unix)]
#[test]
fn a_ray_that_is_not_there_or_ends_is_said_in_a_line() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("few.toml"), SWEEP).unwrap();
    let bin = dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let explore = |address: &str, python: Option<&str>| {
        let file = bin.join("python3");
        if let Some(script) = python {
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = blindcore(dir.path());
        command.args(["hw", "explore", "few.toml", "--out", "out", "--ray", address]);
        command.env("PATH", &bin).stdin(Stdio::null()).output().unwrap()
    };
    refused(&explore("here", None), &["--ray \"here\" is not an address", "say HOST:PORT"]);
    // Nobody is at the first of all ports.
    refused(&explore("127.0.0.1:1", None), &["--ray 127.0.0.1:1: nobody answers", "ray start --head"]);
    refused(&explore("local", None), &["--ray local", "python3 can't be run", "pip install ray"]);
    let says = |line: &str| explore("local", Some(&format!("read -r job; echo '{line}'")));
    refused(
        &says("{\"failed\": \"python3 has no package ray\"}"),
        &["--ray local: python3 has no package ray"],
    );
    refused(&says("hello"), &["said what is not understood"]);
    refused(
        &says("{\"node\": \"n\", \"outcomes\": [[\"99\"]]}"),
        &["node n answered with a point that was not asked"],
    );
    refused(&says("{\"ended\": true}"), &["it left out 24 points"]);
    refused(
        &explore("local", Some("echo one >&2; echo two >&2")),
        &["Ray's driver ended (two)", "run it again"],
    );
    // What was refused is not in the way of a run on threads.
    let whole = run(dir.path(), &["hw", "explore", "few.toml", "--out", "out"]);
    assert!(!stderr(&whole).contains("were finished before"), "{}", stderr(&whole));
    assert_eq!(code(&whole), 0);
}
