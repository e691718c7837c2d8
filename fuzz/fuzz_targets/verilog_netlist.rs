//! Netlists in Verilog, and what starts like one: read, written in Bristol Fashion and read again.
#![no_main]
use blindcore_circuit::formats::{bristol, verilog};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(netlist) = verilog::read("fuzz", data) else { return };
    let mut written = Vec::new();
    bristol::write(&netlist, &mut written).unwrap();
    // Inputs that no gate reads may be more than a file of this size is believed to have.
    let Ok(again) = bristol::read("written", &written[..], written.len() as u64) else {
        assert!(netlist.input_bits() > 1 << 20);
        return;
    };
    for value in [false, true] {
        let inputs: Vec<_> = netlist.inputs().iter().map(|p| vec![value; p.wires.len()]).collect();
        assert_eq!(again.evaluate(&inputs).unwrap(), netlist.evaluate(&inputs).unwrap());
    }
});
