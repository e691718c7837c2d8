//! A circuit's figures beside those that SIFO (Fang, Ioannidis and Leeser 2019) published in its Tables 1, 3 and 4.

use blindcore_accel_rtl::sifo::survey::Survey;
use blindcore_circuit::problems::Published;

/// A figure here and in the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The table that it begins, empty where it is not the first of one.
    pub table: &'static str,
    /// Its name in JSON.
    pub id: &'static str,
    /// What is counted, for people.
    pub what: String,
    /// Its value here.
    pub here: f64,
    /// Its value in the paper, where that has the circuit.
    pub paper: Option<f64>,
    /// Decimals that it is shown with; a count has none.
    pub decimals: usize,
}

/// All figures of a circuit, for an overlay of `ands` AND cells.
#[must_use]
pub fn figures(survey: &Survey, ands: usize, paper: Option<&Published>) -> Vec<Figure> {
    let of = &survey.statistics;
    let count = |table, id, what: &str, here: usize, paper: Option<u64>| Figure {
        table,
        id,
        what: what.to_owned(),
        here: here as f64,
        paper: paper.map(|p| p as f64),
        decimals: 0,
    };
    let share = |table, id, what: &str, here, paper, decimals| Figure {
        table,
        id,
        what: what.to_owned(),
        here,
        paper,
        decimals,
    };
    let p = |get: fn(&Published) -> u64| paper.map(get);
    let at_ten = if ands == 10 { paper.map(|p| p.reprogrammings) } else { None };
    let reprogrammings = format!("reprogrammings at {ands} ANDs");
    let [percent_a, percent_b, percent_c] = of.percents();
    vec![
        count("Table 1", "layers", "layers", of.layers, p(|p| p.layers)),
        count("", "input_wires", "input wires", of.input_wires, p(|p| p.input_wires)),
        count("", "output_wires", "output wires", of.output_wires, p(|p| p.output_wires)),
        count("", "ands", "ANDs", of.ands, p(|p| p.ands)),
        count("", "xors", "XORs", of.xors, p(|p| p.xors)),
        count("", "gates", "gates", of.gates(), p(|p| p.gates)),
        count("", "reprogrammings", &reprogrammings, of.reprogrammings(ands), at_ten),
        count("Table 3", "wires", "wires", of.wires(), p(|p| p.wires)),
        count("", "one_to_one", "A: one-to-one wires", of.one_to_one, p(|p| p.a)),
        count("", "adjacent", "B: read in the next layer", of.adjacent, p(|p| p.b)),
        count("", "not_adjacent", "C: read later", of.not_adjacent(), p(|p| p.c)),
        count("", "most_one_to_one", "D: most in a layer", of.most_one_to_one, p(|p| p.max_wires)),
        share("", "wires_a_layer", "wires a layer", of.wires_a_layer(), paper.map(|p| p.wires_per_layer), 1),
        share("Table 4", "percent_a", "A of all wires, %", percent_a, paper.map(|p| p.percent_a), 2),
        share("", "percent_b", "B of A, %", percent_b, paper.map(|p| p.percent_b), 1),
        share("", "percent_c", "B of all wires, %", percent_c, paper.map(|p| p.percent_c), 1),
        count("Beyond", "and_depth", "ANDs on the longest way", of.and_depth, None),
        count("", "most_ands", "most ANDs in a layer", of.most_ands, None),
        count("", "rounds", &format!("rounds of {ands} ANDs, layer by layer"), survey.rounds(ands), None),
    ]
}
