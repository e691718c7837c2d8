//! Netlists in either Bristol format, read, written and read again; gate by gate it says the same.
#![no_main]
use blindcore_circuit::formats::bristol::{Reader, read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let whole = read("fuzz", data, data.len() as u64);
    let streamed = Reader::new("fuzz", data, data.len() as u64).and_then(|mut reader| {
        while reader.next_gate()?.is_some() {}
        Ok(())
    });
    let Ok(netlist) = whole else {
        assert!(streamed.is_err());
        return;
    };
    streamed.unwrap();
    let mut written = Vec::new();
    write(&netlist, &mut written).unwrap();
    let again = read("written", &written[..], written.len() as u64).unwrap();
    assert!(again.gates().len() <= netlist.gates().len());
    for value in [false, true] {
        let inputs: Vec<_> = netlist.inputs().iter().map(|p| vec![value; p.wires.len()]).collect();
        assert_eq!(again.evaluate(&inputs).unwrap(), netlist.evaluate(&inputs).unwrap());
    }
});
