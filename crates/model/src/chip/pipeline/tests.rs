use super::super::{machine, thesis_mapping};
use super::*;

#[test]
fn a_nest_that_is_walked_says_what_moves_and_what_is_new() {
    let mut walk = Walk::new(&[(Dim::J, 2), (Dim::N, 2), (Dim::P, 1)]);
    // A has J, B has both, C has N.
    let mut seen = Vec::new();
    loop {
        seen.push((walk.ends(), walk.visit(Tensor::C), walk.at(Tensor::B)));
        if !walk.step() {
            break;
        }
    }
    assert_eq!(
        seen,
        [
            ([false, true, true], (true, false), 0),
            ([true, true, true], (true, false), 1),
            ([false, true, true], (false, true), 2),
            ([true, true, true], (false, true), 3),
        ]
    );
}

#[test]
fn turns_are_counted_on_where_there_are_too_many() {
    let chip = machine("onionchopper").unwrap();
    let mut mapping = thesis_mapping();
    mapping.levels[0].temporal.clear();
    let at = |mapping: &Mapping, d: u64| {
        let mut mapping = mapping.clone();
        mapping.levels[1].temporal[2].1 = d;
        let bounds = [1, 2048, 2, 1, 256, 2, 2, d];
        pipelined(&Problem::contract(bounds), &chip, &mapping, false)
    };
    // Whole: 16 coefficients of two moduli; counted on: 128.
    let (few, more, many) = (at(&mapping, 8).unwrap(), at(&mapping, 16).unwrap(), at(&mapping, 128).unwrap());
    let on = few as f64 + (more - few) as f64 * 15.0;
    assert!((many as f64 / on - 1.0).abs() < 1e-3, "{few} {more} {many}");
}

#[test]
fn what_no_pipeline_runs_is_refused() {
    let (problem, mapping) = (Problem::onionpir(64.0), thesis_mapping());
    let error = pipelined(&problem, &machine("thesis").unwrap(), &mapping, false).unwrap_err();
    assert!(error.to_string().contains("thesis: it has no [pipeline]"), "{error}");
    let mut spread = mapping;
    spread.levels[2].temporal.remove(0);
    spread.levels[2].spatial.push((Dim::J, 2));
    let mut chip = machine("onionchopper").unwrap();
    (chip.levels[3].count, chip.lanes.count) = (4, 4);
    let error = pipelined(&problem, &chip, &spread, false).unwrap_err();
    assert!(error.to_string().contains("spreads at the DRAM alone"), "{error}");
}
