//! A circuit's figures take little memory beside its gates. The only test of its process, whose peak it measures.
#![cfg(target_os = "linux")]

use blindcore_accel_rtl::sifo::layers::Cells;
use blindcore_accel_rtl::sifo::memory::BLOCK_RAM;
use blindcore_accel_rtl::sifo::survey::Survey;
use blindcore_circuit::builder::Builder;

/// The process's largest resident size so far, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn figures_take_bits_of_each_gate_and_what_is_alive() {
    let mut c = Builder::new();
    let (a, b) = (c.input("a", 32), c.input("b", 32));
    for i in 0..64 {
        let mut sum = c.rotate_left(&a, i % 32);
        for j in 0..400 {
            let other = c.rotate_left(&b, (i + j) % 32);
            sum = c.add(&sum, &other);
        }
        c.output(format!("sum{i}"), &sum);
    }
    let netlist = c.finish().unwrap();
    let gates = netlist.gates().len();
    assert!(gates > 3_000_000, "{gates}");
    let wiring = netlist.wiring();
    let mut stages: Vec<(String, u64)> = Vec::new();
    let mut told = |stage: &str, done: u64, total: Option<u64>, _| match stages.last_mut() {
        Some((last, before)) if last == stage => {
            assert!(*before < done && done < total.unwrap());
            *before = done;
        }
        _ => stages.push((stage.to_owned(), done)),
    };
    let before = peak();
    let survey = Survey::new(&wiring, Cells::TEN_ANDS, BLOCK_RAM, &mut told);
    let taken = peak() - before;
    let names: Vec<&str> = stages.iter().map(|(stage, _)| &**stage).collect();
    assert_eq!(names, ["counting layers", "counting batches"], "no batch holds more wires than block RAM");
    assert_eq!(survey.statistics.gates(), gates);
    assert!(taken < 4 * gates, "{taken} B for {gates} gates");
}
