//! Machines, tables of energy and constraints that are anybody's text; what is taken can be computed with.
#![no_main]
use blindcore_explore::expression::Expression;
use blindcore_model::chip::{Problem, Space, Tables, machine_from_toml, search};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let problem = Problem::contract([2, 3, 1, 1, 4, 1, 2, 2]);
    let tables: Vec<Tables> = Tables::from_toml("fuzz", text).into_iter().collect();
    if let Ok(machine) = machine_from_toml("fuzz", text) {
        assert!(machine.check().is_ok());
        // Few lanes and levels, or it is the search that is slow.
        if machine.lanes.count <= 64 && machine.levels.len() <= 4
            && let Ok(found) = search(&problem, &machine, &tables, &Space::default())
        {
            assert!(found.cost.cycles > 0 && found.cost.lanes <= machine.lanes.count);
        }
    }
    if let Ok(expression) = Expression::parse(text) {
        assert!(expression.holds(&|_| Some(2.0)).is_ok());
    }
});
