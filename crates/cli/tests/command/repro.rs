//! `blindcore repro`: papers' figures, ours beside them.

use std::path::Path;

use serde_json::Value;

use crate::common::{blindcore, code, json, long, refused, run, stderr, stdout};
use crate::hw_circuit;

fn row<'a>(rows: &'a [Value], id: &str) -> &'a Value {
    rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("no {field} in {row}"))
}

/// The figures that repro/sifo keeps are today's, and what they have to be.
#[test]
fn sifos_times_stand_beside_the_papers() {
    // The cells' resources are read from the repository.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let today = json(&run(&root, &["repro", "sifo", "--no-cpu", "--json"]));
    let rows = today["rows"].as_array().unwrap();
    let kept = std::fs::read(root.join("repro/sifo/hardware.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    let kept_rows = kept["rows"].as_array().unwrap();
    let anew = "make both of repro/sifo's files of hardware again, as its README.md says";
    assert_eq!((rows.len(), &today["table11"]), (kept_rows.len(), &kept["table11"]), "{anew}");
    let counts = ["compared", "within_15_percent"].map(|name| (&today[name], &kept[name]));
    assert!(
        counts.iter().all(|(today, kept)| today == kept && today.as_u64() > Some(50)),
        "{anew}: {counts:?}"
    );
    for (today, kept) in rows.iter().zip(kept_rows) {
        for field in
            ["id", "value", "unit", "paper", "published", "ratio", "source", "label", "beside", "clocks"]
        {
            assert_eq!(today[field], kept[field], "{anew}: {}", today["id"]);
        }
        // Where the chip was simulated it took the same clocks.
        assert!(today["rtl_clocks"].is_null(), "{today}");
        assert!(kept["rtl_clocks"].is_null() || kept["rtl_clocks"] == kept["clocks"], "{kept}");
    }
    assert!(kept["rtl"]["runs"].as_u64() > Some(50) && kept["rtl"]["runs"] == kept["rtl"]["same_clocks"]);

    // Every time but Table 8's, within 15 %; its speed-ups are the paper's times of FlexSC over ours.
    let of = |table: &str| -> Vec<&Value> {
        let is = |row: &&Value| row["id"].as_str().unwrap().starts_with(table) && row["unit"] == "us";
        rows.iter().filter(is).collect()
    };
    let best = of("sifo.table11.");
    assert_eq!(best.len(), 14);
    let errors = best.iter().map(|row| number(row, "ratio") - 1.0);
    let largest = errors.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap();
    assert!(number(&today["table11"], "largest_error") == largest, "{largest}");
    let fits = ["5", "6", "7", "9", "11"].map(|table| of(&format!("sifo.table{table}."))).concat();
    assert!(fits.iter().all(|row| (number(row, "ratio") - 1.0).abs() < 0.15), "{fits:?}");
    assert_eq!(fits.len(), 18 + 9 + 9 + 3 + 14);
    // The wait is the whole number of register accesses that fits Table 11 best: another changes its mean by a hundredth.
    assert!((number(&today["table11"], "mean_ratio") - 1.0).abs() < 0.005, "{}", today["table11"]);
    let mult64 = row(rows, "sifo.table11.mult64");
    assert_eq!((number(mult64, "paper"), mult64["problem"].as_str()), (12_252.0, Some("mult64")));
    assert_eq!(number(mult64, "value"), number(mult64, "clocks") / 200.0);
    let speedup = row(rows, "sifo.table11.mult64.speedup");
    assert!((number(speedup, "value") - 153_130.0 / number(mult64, "value")).abs() < 1e-9, "{speedup}");
    // What must not be read alone says so: an overlay at another clock is slower, and not by all of the clocks' ratio.
    assert_eq!(
        (&mult64["label"], &mult64["source"]),
        (&"at the paper's clock, 200 MHz".into(), &"Fang, Ioannidis and Leeser 2019, Table 11".into(),)
    );
    let slower = number(&mult64["beside"], "value") / number(mult64, "value");
    assert!(slower > 1.0 && slower < 200.0 / 77.3, "{slower}");
    assert_eq!(speedup["label"], "published, other machine");
    assert!(speedup["beside"]["value"].is_null(), "the CPU was left out: {speedup}");
    let rate = row(rows, "sifo.section4_3.matmul20x20x4.bandwidth");
    let time = number(row(rows, "sifo.table11.matmul20x20x4"), "value");
    assert!((number(rate, "value") - 254_400.0 * 240.0 / time).abs() < 1e-6, "{rate}");
    // What the paper improves gets better here too.
    for problem in ["adder6", "mult64", "sort10x4"] {
        let us = |id: &str| number(row(rows, &id.replace('*', problem)), "value");
        let times = ["sifo.table5.*.10", "sifo.table6.*", "sifo.table7.*"].map(us);
        assert!(times.is_sorted_by(|slow, fast| slow > fast), "{times:?}");
        let others =
            [us("sifo.table11.*"), us("sifo.beside.*.lifetimes"), us("sifo.beside.*.ours.lifetimes")];
        assert!(others.is_sorted_by(|slow, fast| slow > fast), "{others:?}");
    }
    let ninth: Vec<f64> = of("sifo.table9.").iter().map(|row| number(row, "value")).collect();
    assert!(ninth.len() == 3 && ninth.is_sorted_by(|slow, fast| slow > fast), "{ninth:?}");
    assert!(number(row(rows, "sifo.table10.pagerank3.gain"), "value") > 1.05);
    assert!(number(row(rows, "sifo.tried.ANDs_side_by_side.table6"), "value") < 0.8);
    assert!((number(row(rows, "sifo.section3_1_1.sf_gand.alms"), "paper") - 3070.0).abs() < 1e-9);
    assert_eq!((of("sifo.table5.").len(), of("sifo.table8.").len()), (18, 3));
}

#[test]
fn the_chip_takes_the_models_clocks() {
    if !hw_circuit::built() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let simulated =
        json(&run(dir.path(), &["repro", "sifo", "--table", "11", "--simulate", "--no-cpu", "--json"]));
    let rows = simulated["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 28); // times and speed-ups
    for row in rows {
        let large =
            ["matmul5x5x8", "matmul10x10x8", "matmul20x20x4"].contains(&row["problem"].as_str().unwrap());
        let clocks = if large { &Value::Null } else { &row["clocks"] };
        assert_eq!(&row["rtl_clocks"], clocks, "{row}");
    }
    assert_eq!((&simulated["rtl"]["runs"], &simulated["rtl"]["same_clocks"]), (&11.into(), &11.into()));
}

#[test]
fn tables_are_printed_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["repro", "sifo", "--table", "9", "--table", "8"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("Made by `blindcore repro sifo --table 9 --table 8`"), "{text}");
    let titles: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
    assert!(text.contains(" published figures are within 15 %"), "{text}");
    assert_eq!(titles, ["## Table 8: block RAM, most-frequently-used", "## Table 9: cells of both kinds"]);
    assert_eq!(text.matches("\nFurthest from the paper: ").count(), 2, "{text}");
    // Every row of a table in Markdown has as many cells as its head.
    let cells = |line: &str| line.matches('|').count();
    for table in text.split("\n## ").skip(1) {
        let lines: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).collect();
        assert!(lines.len() > 2 && lines.iter().all(|line| cells(line) == cells(lines[0])), "{table}");
    }
    refused(&run(dir.path(), &["repro", "sifo", "--table", "12"]), &["12", "--table"]);
    // Without a chip nothing is simulated, which is said before anything is counted.
    let mut without = blindcore(dir.path());
    without.args(["repro", "sifo", "--simulate"]).env("BLINDCORE_RTL", dir.path());
    refused(&without.output().unwrap(), &["libsifo.so", "make -C hw libraries"]);
}

/// Tables 1, 3 and 4: the netlists have the paper's figures, but for what its own contradict.
#[test]
fn sifos_circuits_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let tables = ["--table", "1", "--table", "3", "--table", "4"];
    let counted = json(&run(dir.path(), &[&["repro", "sifo", "--no-cpu", "--json"], &tables[..]].concat()));
    let rows = counted["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 14 * (7 + 6 + 3));
    for row in rows.iter().filter(|row| row["problem"] == "mult8" || row["problem"] == "mult64") {
        assert!((number(row, "ratio") - 1.0).abs() < 0.02, "{row}");
    }
    assert_eq!(number(row(rows, "sifo.table1.adder6.layers"), "value"), 18.0); // 17 in the paper
    assert_eq!(counted["compared"], 0, "what was recovered from the figures is not counted");
}

/// What needs no chip is printed where there is none, and what is missing is said.
#[test]
fn phepus_areas_need_no_chip() {
    let empty = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = |figure: &str| {
        let mut command = blindcore(&root);
        command.args(["repro", "phepu", "--no-cpu", "--figure", figure, "--json"]);
        command.env("BLINDCORE_RTL", empty.path()).output().unwrap()
    };
    let areas = made("15.4.7");
    assert!(stderr(&areas).contains("without simulation: "), "{}", stderr(&areas));
    let areas = json(&areas);
    let chip = row(areas["rows"].as_array().unwrap(), "phepu.area.chip_28nm");
    assert_eq!(
        (number(chip, "paper"), chip["source"].as_str()),
        (42.96, Some("PH-EPU (ISSCC 2023), Figure 15.4.7"))
    );
    assert_eq!((&areas["compared"], &chip["within_15_percent"]), (&3.into(), &true.into()));
    refused(&made("15.4.6"), &["libphepu.so", "make -C hw libraries"]);
}

/// PH-EPU's figures are those that repro/phepu keeps, and what they have to be. Clocks are exact.
#[test]
fn phepus_figures_stand_beside_the_papers() {
    if !hw_circuit::chip_is_built("rtl:phepu") {
        return;
    }
    // Areas are read from the repository.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The card and its eight chips take three quarters of the time.
    let figures: &[&str] = if long() { &[] } else { &["--figure", "15.4.6"] };
    let today = json(&run(&root, &[&["repro", "phepu", "--no-cpu", "--json"], figures].concat()));
    let today = today["rows"].as_array().unwrap();
    let kept = std::fs::read(root.join("repro/phepu/hardware.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    let kept = kept["rows"].as_array().unwrap();
    let made = kept.iter().filter(|row| figures.is_empty() || row["figure"] == figures[1]);
    let remedy = "make both of repro/phepu's files of hardware again, as its README.md says";
    assert_eq!(today.iter().collect::<Vec<_>>(), made.collect::<Vec<_>>(), "{remedy}");

    let value = |id: &str| number(row(kept, id), "value");
    assert!(value("phepu.multiply.4096.clocks") <= 348.0);
    assert!(value("phepu.multiply.4096.chip") >= 23.0 && value("phepu.chip.basic") >= 23.0);
    assert!(value("phepu.chip.mac") >= 68.0);
    assert!(value("phepu.invert.clocks") <= 13_200.0);
    let saved = number(row(kept, "phepu.sparsity.75"), "ratio");
    assert!((saved - 1.0).abs() <= 0.1, "{saved}");
    assert!(value("phepu.elements.16") >= 15.0);
    for id in ["phepu.chips.mac.8", "phepu.chips.basic.8"] {
        assert!((5.2..=8.0).contains(&value(id)), "{id} {}", value(id));
    }
    assert!(value("phepu.output.gain") > 1.5);
}
