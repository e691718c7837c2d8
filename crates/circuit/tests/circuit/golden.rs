//! Circuits that an earlier build wrote (`blindcore circuit make`, commit c8b64fe): they are read, compute what they did,
//! and are written as they were.

use std::path::Path;

use blindcore_circuit::formats::{self, bristol};
use blindcore_circuit::problems;

#[test]
fn circuits_of_an_earlier_build_are_read_and_written_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/circuits");
    for (name, width, expected) in
        [("adder6", 6, (|a, b| (a + b) % 64) as fn(u128, u128) -> u128), ("mult8", 8, |a, b| a * b)]
    {
        let path = folder.join(format!("{name}.txt"));
        let netlist = formats::read(&path).unwrap();
        for (a, b) in [(0, 0), (1, 63), (63, 63), (41, 27)] {
            let inputs = [a, b].map(|n| blindcore_circuit::gadgets::to_bits(n, width));
            let outputs = netlist.evaluate(&inputs).unwrap();
            assert_eq!(
                blindcore_circuit::gadgets::to_number(&outputs[0]),
                expected(a, b),
                "{name}: {a}, {b}"
            );
        }
        let mut written = Vec::new();
        bristol::write(&problems::make(name).unwrap(), &mut written).unwrap();
        assert!(written == std::fs::read(&path).unwrap(), "{name} is made otherwise");
    }
}
