//! Netlists in files: every gate and cell means what it should, what is written reads back, and whatever is wrong is
//! refused with its line.

use blindcore_circuit::circuit::digest;
use blindcore_circuit::formats::{self, FormatError, bristol, verilog};
use blindcore_circuit::netlist::{Gate, Kind, Netlist, Port, Wire};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn bits(value: u64, width: usize) -> Vec<bool> {
    (0..width).map(|i| value >> i & 1 == 1).collect()
}

fn number(bits: &[bool]) -> u64 {
    bits.iter().rev().fold(0, |n, b| n << 1 | u64::from(*b))
}

/// Evaluates on numbers.
fn evaluate(netlist: &Netlist, inputs: &[u64]) -> Vec<u64> {
    let inputs: Vec<_> =
        inputs.iter().zip(netlist.inputs()).map(|(v, port)| bits(*v, port.wires.len())).collect();
    netlist.evaluate(&inputs).unwrap().iter().map(|b| number(b)).collect()
}

fn circuits() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/circuits")
}

/// Line and whole message of a refusal.
fn refusal(text: &[u8]) -> (u64, String) {
    match formats::parse("file", text) {
        Err(e @ FormatError::Content { line, .. }) => (line, e.to_string()),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("accepted: {}", String::from_utf8_lossy(&text[..text.len().min(200)])),
    }
}

fn assert_refused(cases: &[(&str, u64, &str)]) {
    for (text, line, words) in cases {
        let (got, message) = refusal(text.as_bytes());
        assert!(
            got == *line && message.contains(words),
            "{text}\ngave: {message}\nnot: line {line}, {words}"
        );
        assert!(message.starts_with(&format!("file, line {line}: ")) && !message.contains('\n'), "{message}");
    }
}

const EVERY_KIND: &str = "\
9 14
2 3 1
2 2 3

2 1 0 1 4 AND
2 1 4 2 5 XOR
1 1 5 6 INV
1 1 1 7 EQ
1 1 0 8 EQ
4 2 0 3 1 7 9 10 MAND
1 1 6 11 EQW
2 1 9 10 12 XOR
1 1 8 13 NOT
";

#[test]
fn every_gate_of_bristol_fashion() {
    let every = bristol::read("every", EVERY_KIND.as_bytes(), EVERY_KIND.len() as u64).unwrap();
    assert_eq!(every.inputs().iter().map(|p| p.wires.len()).collect::<Vec<_>>(), [3, 1]);
    // One of the three ANDs is with 1, and one of the inverters is of 0.
    assert_eq!((every.ands(), every.gates().len()), (2, 5));
    for value in 0..16u64 {
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| value >> i & 1);
        let (nine, ten) = (a & b, d);
        let eleven = 1 ^ (a & b) ^ c;
        let expected = [nine | ten << 1, eleven | (nine ^ ten) << 1 | 1 << 2];
        // The outputs are the last five wires, 9 to 13.
        assert_eq!(evaluate(&every, &[value & 7, d]), expected, "inputs {value:04b}");
    }
}

/// A constant goes through a chain of gates in one reading, and what is left is what a file of it has.
#[test]
fn gates_that_a_constant_decides_are_none() {
    let text = b"5 7\n2 1 1\n1 1\n\n1 1 1 2 EQ\n2 1 0 2 3 AND\n2 1 2 2 4 XOR\n2 1 3 4 5 XOR\n2 1 5 1 6 AND\n";
    let netlist = formats::parse("k.txt", text).unwrap();
    assert_eq!((netlist.gates().len(), netlist.ands()), (1, 1));
    let mut written = Vec::new();
    bristol::write(&netlist, &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), "1 3\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n");
}

#[test]
fn lines_end_and_are_spaced_in_any_way() {
    let plain = formats::parse("plain", EVERY_KIND.as_bytes()).unwrap();
    let windows = EVERY_KIND.replace('\n', " \t\r\n\r\n");
    assert_eq!(formats::parse("windows", windows.as_bytes()).unwrap(), plain);
    for text in [EVERY_KIND, &windows] {
        assert_eq!(formats::parse("marked", format!("\u{feff}{text}").as_bytes()).unwrap(), plain);
    }
    let spaced = format!("\n \n{}", EVERY_KIND.trim_end().replace(' ', "   "));
    assert_eq!(formats::parse("spaced", spaced.as_bytes()).unwrap(), plain);
    // Lines are counted with those before the content.
    assert_eq!(refusal(b"\n\n1 3\n2 1 1\n1 1\n2 1 0 1 2 NIMP\n").0, 6);
}

#[test]
fn the_older_format() {
    // A full adder of one bit each; the second text has one party.
    let two = "5 7\n1 1  2\n\n2 1 0 1 5 XOR\n2 1 0 1 2 AND\n1 1 2 3 INV\n1 1 3 4 INV\n1 1 3 6 INV";
    let netlist = formats::parse("two", two.as_bytes()).unwrap();
    assert_eq!(netlist.gates().len(), 5);
    for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        assert_eq!(evaluate(&netlist, &[a, b]), [a + b]);
    }
    let one = formats::parse("one", b"1 3\n2 0 1\n2 1 0 1 2 AND\n").unwrap();
    assert_eq!(one.inputs().len(), 1);
    assert_eq!(evaluate(&one, &[3]), [1]);
    assert_eq!(evaluate(&one, &[2]), [0]);
}

#[test]
fn bad_bristol_is_refused_by_line() {
    let fashion = |gates: &str| format!("1 3\n2 1 1\n1 1\n\n{gates}\n");
    for (gates, words) in [
        ("2 1 0 1 2 NIMP", "\"NIMP\" is an unknown gate"),
        ("2 1 0 1 2", "without a kind"),
        ("AND", "without its numbers"),
        ("2 1 0 1 AND", "2 inputs, 1 outputs and 2 wires"),
        ("2 1 0 1 2 2 AND", "and 4 wires"),
        ("1 1 0 2 AND", "AND with 1 inputs"),
        ("3 1 0 1 1 2 MAND", "MAND with 3 inputs"),
        ("0 0 MAND", "MAND with 0 inputs"),
        ("4294967295 4294967295 0 MAND", "4294967295 inputs"),
        ("2 1 0 -1 2 AND", "\"-1 2 AND\" is neither"),
        ("2 1 0 99999999999999999999999999 2 AND", "is neither a wire nor a kind"),
        ("2 1 0 3 2 AND", "wire 3, and there are 3"),
        ("2 1 0 2 2 AND", "wire 2 is read before it is written"),
        ("2 1 0 1 1 AND", "wire 1 is written, and is an input"),
        ("1 1 2 2 EQ", "EQ sets a wire to 2"),
        ("2 1 0 1 2 AND 7", "is neither a wire nor a kind"),
    ] {
        assert_refused(&[(&fashion(gates), 5, words)]);
    }
    assert_refused(&[
        ("2 4\n2 1 1\n1 1\n2 1 0 1 2 AND\n2 1 0 1 2 AND\n", 5, "wire 2 is written, and has a writer already"),
        ("2 4\n2 1 1\n1 1\n2 1 0 3 2 AND\n2 1 0 2 3 AND\n", 4, "wire 3 is read before it is written"),
        ("2 4\n2 1 1\n1 1\n2 1 0 1 2 AND\n", 4, "ends after 1 of 2 gates"),
        ("1 3\n2 1 1\n1 1\n2 1 0 1 2 AND\n2 1 0 1 2 AND\n", 5, "a line after the 1 gates"),
        ("1 5\n2 1 1\n1 1\n2 1 0 1 4 AND\n", 4, "wire 2 of 5 is never written, nor is 1 other;"),
        ("1 4\n2 1 1\n1 1\n2 1 0 1 3 AND\n", 4, "wire 2 of 4 is never written;"),
        ("1 6\n2 1 1\n1 1\n2 1 0 1 5 AND\n", 4, "wire 2 of 6 is never written, nor are 2 others;"),
        ("1 3\n2 1 1\n1 9\n2 1 0 1 2 AND\n", 3, "outputs of 9 bits, and 3 wires"),
        ("1 3\n2 4294967295 4294967295\n1 1\n2 1 0 1 2 AND\n", 2, "inputs of 8589934590 bits"),
        ("1 3\n3 1 1\n1 1\n2 1 0 1 2 AND\n", 2, "isn't that of the widths of inputs"),
        ("1 3\n2 1 1\n2 1\n2 1 0 1 2 AND\n", 3, "isn't that of the widths of outputs"),
        ("1 3\n1 1\n2 1 0 1 2 AND\n", 2, "2 widths, where the older format has three"),
        ("1\n", 1, "isn't the number of gates"),
        ("1 x\n", 1, "the header has"),
        ("0 3\n", 1, "ends before the inputs' widths"),
        ("", 1, "there is nothing in it"),
        ("%PDF", 1, "doesn't start with '%'"),
    ]);
}

#[test]
fn declared_counts_take_no_memory_that_the_file_does_not_fill() {
    assert_refused(&[
        ("4000000000 4000000000\n1 1\n1 1\n", 1, "4000000000 gates are declared, and 30 B hold 2 at most"),
        ("1 4000000000\n1 4000000000\n1 1\n", 1, "4000000000 wires are declared"),
    ]);
    // Expressions over wide vectors, many times over.
    let wide =
        format!("module m(input [1048575:0] a, output y); assign y = {}a; endmodule", "a|(".repeat(20_000));
    assert!(refusal(wide.as_bytes()).1.contains("more bits"));
    let twice = "{1024{".repeat(3) + "a" + &"}}".repeat(3);
    let text = format!("module m(input a, output y); assign y = {twice}; endmodule");
    assert!(refusal(text.as_bytes()).1.contains("a concatenation of 1073741824 bits"));
    let many: String = (0..1000).map(|i| format!("wire [1048575:0] w{i};\n")).collect();
    assert!(refusal(format!("module m(); {many} endmodule").as_bytes()).1.contains("more bits"));
    // Few, that nothing reads: by themselves, and beside a comment that only makes the file longer.
    let wires = |count| {
        let names: Vec<String> = (0..count).map(|i| format!("w{i}")).collect();
        format!(
            "module m(input a, output y); wire [1048575:0] {}; assign y = a; endmodule\n",
            names.join(",")
        )
    };
    let longer = format!("{}//{}", wires(20), "x".repeat(1_800_000));
    for text in [wires(3), longer] {
        assert!(refusal(text.as_bytes()).1.contains("more bits of wires"));
    }
    // The widest, with an operation on all of it.
    let one = "module m(input [1048575:0] a, output y); assign y = ^a; endmodule";
    assert_eq!(formats::parse("one", one.as_bytes()).unwrap().gates().len(), (1 << 20) - 1);
}

/// Ports without bits take two bytes of a file, and much more memory.
#[test]
fn ports_of_a_file_have_a_limit() {
    let zeros = |inputs: usize| format!("0 0\n{inputs} {}\n0\n", "0 ".repeat(inputs));
    let most = formats::parse("most", zeros(65_536).as_bytes()).unwrap();
    // What lists them names a few.
    let said = blindcore_circuit::values::all(&most, &[], &mut Vec::new()).unwrap_err().to_string();
    assert!(said.ends_with("for each of in0 (0 bits), in1 (0 bits), in2 (0 bits), in3 (0 bits), in4 (0 bits), in5 (0 bits), in6 (0 bits), in7 (0 bits), 65528 more"), "{said}");
    let outputs = format!("0 0\n0\n65537 {}\n", "0 ".repeat(65_537));
    let ports: Vec<String> = (0..65_536).map(|i| format!("p{i}")).collect();
    let verilog = format!("module m(input {}, output y); assign y = p0; endmodule", ports.join(","));
    for (text, line, words) in [
        (zeros(65_537), 2, "65537 inputs, over the limit of 65536; join them into wider ones"),
        (outputs, 3, "65537 outputs, over the limit of 65536; join them into wider ones"),
        (verilog, 1, "more ports than the limit of 65536; join them into vectors"),
    ] {
        assert_refused(&[(&text, line, words)]);
    }
}

#[test]
fn gates_come_one_at_a_time() {
    let mut reader = bristol::Reader::new("every", EVERY_KIND.as_bytes(), EVERY_KIND.len() as u64).unwrap();
    assert_eq!((reader.header().gates, reader.header().wires), (9, 14));
    let mut written: Vec<u32> = (0..reader.header().input_bits()).collect();
    while let Some(gate) = reader.next_gate().unwrap() {
        use bristol::FileGate::{And, Constant, Copy, Not, Xor};
        let (And { out, .. } | Xor { out, .. } | Not { out, .. } | Copy { out, .. } | Constant { out, .. }) =
            gate;
        written.push(out);
    }
    assert_eq!(written, (0..14).collect::<Vec<_>>());
    assert_eq!(reader.line(), 13);
}

/// Any netlist: constants and inputs among gates' operands and outputs, outputs repeated, ports without bits.
fn any_netlist() -> impl Strategy<Value = Netlist> {
    let gates = prop::collection::vec((any::<bool>(), any::<u32>(), any::<u32>()), 0..60);
    let outputs = prop::collection::vec(prop::collection::vec(any::<u32>(), 0..6), 0..4);
    (prop::collection::vec(0usize..5, 0..4), gates, outputs).prop_map(|(widths, gates, outputs)| {
        let mut wires = 2 + widths.iter().sum::<usize>() as u32;
        let gates = gates.into_iter().map(|(and, a, b)| {
            let kind = if and { Kind::And } else { Kind::Xor };
            let gate = Gate::new(kind, Wire(a % wires), Wire(b % wires));
            wires += 1;
            gate
        });
        let gates: Vec<Gate> = gates.collect();
        let port = |(i, bits): (usize, Vec<u32>)| Port {
            name: format!("out{i}"),
            wires: bits.into_iter().map(|b| Wire(b % wires)).collect(),
        };
        let outputs = outputs.into_iter().enumerate().map(port).collect();
        let inputs = widths.into_iter().enumerate().map(|(i, width)| (format!("in{i}"), width));
        Netlist::new(inputs, gates, outputs).unwrap()
    })
}

fn as_verilog(netlist: &Netlist) -> String {
    let name = |w: Wire| match w {
        Wire::ZERO => "1'b0".to_owned(),
        Wire::ONE => "1'h1".to_owned(),
        w if w < netlist.first_gate_wire() => {
            let port = netlist.inputs().iter().find(|p| p.wires.contains(&w)).unwrap();
            let bit = port.wires.iter().position(|x| *x == w).unwrap();
            // Declared in the other direction, so the highest index is the least significant.
            format!("{}[{}]", port.name, port.wires.len() - 1 - bit)
        }
        w => format!("\\g[{}] ", w.0),
    };
    let with_bits =
        |ports: &[Port]| ports.iter().filter(|p| !p.wires.is_empty()).cloned().collect::<Vec<_>>();
    let (inputs, outputs) = (with_bits(netlist.inputs()), with_bits(netlist.outputs()));
    let names: Vec<&str> = inputs.iter().chain(&outputs).map(|p| p.name.as_str()).collect();
    let mut text = format!("/* made\nhere */ module m({});\n", names.join(", "));
    for port in &inputs {
        text += &format!("  input [0:{}] {};\n", port.wires.len() - 1, port.name);
    }
    for port in &outputs {
        text += &format!("  output [{}:0] {};\n", port.wires.len() - 1, port.name);
    }
    for (wire, _) in netlist.gates_with_wires() {
        text += &format!("  (* keep = \"*)\" *) wire {};\n", name(wire));
    }
    // The last gate first.
    for port in &outputs {
        let bits: Vec<String> = port.wires.iter().rev().map(|w| name(*w)).collect();
        text += &format!("  assign {} = {{ {} }};\n", port.name, bits.join(", "));
    }
    for (wire, gate) in netlist.gates_with_wires().collect::<Vec<_>>().into_iter().rev() {
        let (a, b, y) = (name(gate.a()), name(gate.b()), name(wire));
        let sign = if gate.kind() == Kind::And { "&" } else { "^" };
        text += &match wire.0 % 3 {
            0 => format!("  assign {y} = {a} {sign} {b};\n"),
            1 => format!(
                "  \\$_{}_ _{}_ (.Y({y}), .A({a}),\n .B({b}));\n",
                if sign == "&" { "AND" } else { "XOR" },
                wire.0
            ),
            _ => format!("  assign {y} = ~~({a}{sign}({b})); // twice\n"),
        };
    }
    text + "endmodule\n"
}

proptest! {
    #[test]
    fn what_is_written_computes_the_same(netlist in any_netlist(), values in any::<[u64; 4]>()) {
        let mut file = Vec::new();
        bristol::write(&netlist, &mut file).unwrap();
        let read = formats::parse("written", &file).unwrap();
        prop_assert_eq!(read.inputs(), netlist.inputs());
        prop_assert!(read.gates().len() <= netlist.gates().len());
        prop_assert_eq!(evaluate(&read, &values), evaluate(&netlist, &values));
        // What is read is folded, so it is written as it is, and stays the same.
        let mut again = Vec::new();
        bristol::write(&read, &mut again).unwrap();
        let again = formats::parse("again", &again).unwrap();
        prop_assert_eq!((again.ands(), digest(&again)), (read.ands(), digest(&read)));

        let read = formats::parse("written.v", as_verilog(&netlist).as_bytes()).unwrap();
        prop_assert!(read.ands() <= netlist.ands());
        let with_bits = |ports: &[Port]| -> Vec<usize> {
            (0..ports.len()).filter(|i| !ports[*i].wires.is_empty()).collect()
        };
        let inputs: Vec<u64> = with_bits(netlist.inputs()).into_iter().map(|i| values[i]).collect();
        let all = evaluate(&netlist, &values);
        let outputs: Vec<u64> = with_bits(netlist.outputs()).into_iter().map(|i| all[i]).collect();
        prop_assert_eq!(evaluate(&read, &inputs), outputs);
    }

    #[test]
    fn changed_files_are_read_or_refused(
        netlist in any_netlist(),
        which in 0..3usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4u8, any::<u8>()), 1..6),
    ) {
        let mut file = Vec::new();
        match which {
            0 => bristol::write(&netlist, &mut file).unwrap(),
            1 => file = as_verilog(&netlist).into_bytes(),
            _ => file = std::fs::read(circuits().join("mixed.words.v")).unwrap(),
        }
        const LIKELY: &[u8] = b"0123456789 \n:;,.()[]{}?~&|^='\\\"*/!-abxhm_$`";
        for (at, how, byte) in changes {
            let byte = if byte < 200 { LIKELY[usize::from(byte) % LIKELY.len()] } else { byte };
            match how {
                0 => file.insert(at.index(file.len() + 1), byte),
                1 => { file.remove(at.index(file.len())); }
                2 => { let at = at.index(file.len()); file[at] = byte }
                3 if byte & 1 == 0 => file.truncate(at.index(file.len())),
                _ => file.extend_from_within(at.index(file.len())..),
            }
            if file.is_empty() { break }
        }
        if let Ok(read) = formats::parse("changed", &file) {
            let zeros: Vec<_> = read.inputs().iter().map(|p| vec![false; p.wires.len()]).collect();
            read.evaluate(&zeros).unwrap();
        }
    }
}

#[test]
fn yosys_netlists_compute_what_their_source_says() {
    for name in
        ["and-xor", "and-xor.cells", "cmos4", "cmos4.cells", "gates", "gates.cells", "mux.cells", "words"]
    {
        let netlist = formats::read(circuits().join(format!("mixed.{name}.v"))).unwrap();
        let names = |ports: &[Port]| ports.iter().map(|p| p.name.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!(names(netlist.inputs()), "unused a b s");
        assert_eq!(names(netlist.outputs()), "sum sel odd[name] eq k");
        for i in 0..512u64 {
            let (a, s) = ((i * 37) & 255, i & 1);
            // Equal, all ones, and anything.
            let b = [a, 255, (i * 91) & 255, i >> 1][i as usize / 2 % 4];
            let odd = u64::from(a.count_ones() % 2 == 1 || b != 255);
            let sel = if s == 1 { a >> 4 } else { b >> 2 & 15 };
            let k = s << 3 | 1 << 1 | (a & !b & 1);
            let expected = [a + b, sel, odd, u64::from(a == b), k];
            assert_eq!(evaluate(&netlist, &[0, a, b, s]), expected, "{name}: a {a} b {b} s {s}");
        }
    }
    let auction = formats::read(circuits().join("auction.net.v")).unwrap();
    for bids in [[1, 2, 3, 4], [9, 9, 9, 9], [7, 65535, 65535, 0], [500, 20, 499, 500], [0, 0, 0, 0]] {
        let price = *bids.iter().max().unwrap();
        let winner = bids.iter().position(|b| *b == price).unwrap() as u64;
        assert_eq!(evaluate(&auction, &bids), [price, winner]);
    }
}

#[test]
fn verilog_expressions_have_the_widths_of_the_standard() {
    for (expression, value) in [
        // a = 0b1010, b = 0b0110 of four bits, c = 1 of one, y of eight.
        ("~a", 0b1111_0101),
        ("{~a}", 0b0101),
        ("~c | a", 0b1111_1110),
        ("a & b | c", 0b0011),
        ("a | b & {4{c}} ^ 4'h1", 0b1111),
        ("a ^ b ~^ 8'hff", 0b0000_1100),
        ("c ? a : b", 0b1010),
        ("!c ? a : c ? b : 8'd255", 0b0110),
        ("c ? c ? 3 : 2 : 1", 3),
        ("(a & 4'b0101) ? b : 8'o17", 0o17),
        ("{a[3], b[2:1], 2'b0x, {2{a[1:0]}}}", 0b1_1100_1010 & 255),
        ("{{3{c}}, a}", 0b111_1010),
        ("&a", 0),
        ("|a", 1),
        ("^{a, c}", 1),
        ("~&a", 1),
        ("~|a", 0),
        ("~^a", 1),
        ("!a", 0),
        ("a && !b || c", 1),
        ("r[0:1]", 0b10),
        ("r[3]", 0),
        ("r", 0b1010),
        ("n[-1]", 1),
        ("16'hab_cd", 0xcd),
        ("12", 12),
        ("'h1_f", 0x1f),
        ("'h0_0000_0000_001f", 0x1f),
        ("'d4294967295", 0xff),
        ("2147483647", 0xff),
        ("4'd 9", 9),
        ("(((a)))", 10),
        // s = a, signed: extended by its highest bit where all operands are signed.
        ("s", 0b1111_1010),
        ("~s", 0b0000_0101),
        ("s & 8'sh7f", 0b0111_1010),
        ("s & 8'h7f", 0b0000_1010),
        ("s ^ b", 0b0000_1100),
        ("c ? s : 4'sb0001", 0b1111_1010),
        ("c ? s : 4'b0001", 0b0000_1010),
        ("{s}", 0b0000_1010),
        ("s[3:0]", 0b0000_1010),
        ("$signed(a)", 0b1111_1010),
        ("$unsigned(s)", 0b0000_1010),
        ("$signed(a & 4'b0111)", 0b0000_0010),
        ("|s & 8'hff", 1),
        ("4'sb1000", 0b1111_1000),
        // What is not driven is 0, as what is unknown.
        ("{4'bz, a[3:2], 2'bx?}", 0b0000_1000),
    ] {
        let text = format!(
            "`timescale 1ns / 1ps
            module m (input [3:0] a, b, input c, output [7:0] y); // ports
            wire signed [3:0] s = a; wire dead, unread = dead;
            wire [0:3] r; wire [1:-2] n, q = b; assign r = a, n = q; assign y = {expression}; endmodule"
        );
        let netlist = verilog::read("m.v", text.as_bytes()).unwrap_or_else(|e| panic!("{expression}: {e}"));
        assert_eq!(evaluate(&netlist, &[0b1010, 0b0110, 1]), [value], "{expression}");
    }
}

#[test]
fn cells_take_the_fewest_ands() {
    type Function = fn(&[bool], &[bool]) -> bool;
    let cells: [(&str, usize, usize, usize, Function); 18] = [
        ("BUF", 1, 0, 0, |d, _| d[0]),
        ("NOT", 1, 0, 0, |d, _| !d[0]),
        ("AND", 2, 0, 1, |d, _| d[0] & d[1]),
        ("NAND", 2, 0, 1, |d, _| !(d[0] & d[1])),
        ("OR", 2, 0, 1, |d, _| d[0] | d[1]),
        ("NOR", 2, 0, 1, |d, _| !(d[0] | d[1])),
        ("XOR", 2, 0, 0, |d, _| d[0] ^ d[1]),
        ("XNOR", 2, 0, 0, |d, _| d[0] == d[1]),
        ("ANDNOT", 2, 0, 1, |d, _| d[0] & !d[1]),
        ("ORNOT", 2, 0, 1, |d, _| d[0] | !d[1]),
        ("MUX", 2, 1, 1, |d, s| d[number(s) as usize]),
        ("NMUX", 2, 1, 1, |d, s| !d[number(s) as usize]),
        ("AOI3", 3, 0, 2, |d, _| !(d[0] & d[1] | d[2])),
        ("OAI3", 3, 0, 2, |d, _| !((d[0] | d[1]) & d[2])),
        ("AOI4", 4, 0, 3, |d, _| !(d[0] & d[1] | d[2] & d[3])),
        ("OAI4", 4, 0, 3, |d, _| !((d[0] | d[1]) & (d[2] | d[3]))),
        ("MUX4", 4, 2, 3, |d, s| d[number(s) as usize]),
        ("MUX16", 16, 4, 15, |d, s| d[number(s) as usize]),
    ];
    for (cell, data, selects, ands, function) in cells {
        let pin = |i: usize| char::from(if i < data { b'A' + i as u8 } else { b'S' + (i - data) as u8 });
        let width = data + selects;
        let pins: String = (0..width).map(|i| format!(".{}(a[{i}]), ", pin(i))).collect();
        let text = format!(
            "module m(a, y);input [{}:0]a;output y;\\$_{cell}_ _0_({pins}.Y(y));endmodule",
            width - 1
        );
        let netlist = verilog::read("m.v", text.as_bytes()).unwrap();
        assert_eq!(netlist.ands(), ands, "{cell}");
        let step = if width > 16 { 257 } else { 1 };
        for value in (0..1u64 << width).step_by(step) {
            let a = bits(value, width);
            let expected = u64::from(function(&a[..data], &a[data..]));
            assert_eq!(evaluate(&netlist, &[value]), [expected], "{cell} of {value:b}");
        }
    }
}

#[test]
fn bad_verilog_is_refused_by_line() {
    let module = |body: &str| {
        format!("module m(a, b, y);\ninput [1:0] a, b;\noutput y;\nwire w, v;\n{body}\nendmodule\n")
    };
    for (body, words) in [
        ("assign y = a + b;", "operator \"+\""),
        ("assign y = -a;", "arithmetic"),
        ("assign y = a == b;", "operator \"==\""),
        ("assign y = a[b];", "not a plain number"),
        ("assign y = a[2];", "has bits 1 to 0, and 2 to 2 are selected"),
        ("assign y = a[0:1];", "select in the direction"),
        ("assign y = z;", "\"z\" is not declared"),
        ("assign y = 1'bq;", "\"q\" in a constant"),
        ("assign y = w; assign v = a;", "\"w\" is read and has no driver"),
        ("adder _1_ (.x(a), .y(y));", "an instance of \"adder\""),
        ("adder _1_ (a, b, y);", "synth -flatten -top NAME"),
        ("assign y = 4'b2;", "in a constant of base 'b"),
        ("assign y = 0'b1;", "a constant of 0 width"),
        ("assign y = 9999999999;", "over 32 bits"),
        (
            "assign y = 2147483648;",
            "\"2147483648\" is over 32 bits with its sign; give it a width and a base",
        ),
        ("assign y = 'h100000000;", "a constant without a width is over 32 bits; give it a width"),
        ("assign y = 'd4294967296;", "without a width is over 32 bits"),
        ("assign y = 'o40000000000;", "without a width is over 32 bits"),
        ("assign y = 'b1_00000000_00000000_00000000_00000000;", "without a width is over 32 bits"),
        ("assign y = (a;", "\";\", where the end of what is open"),
        ("assign y = a);", "\")\", where"),
        ("assign y = a ? b;", "where the end of what is open"),
        ("assign y = {a, };", "where an operand"),
        ("assign y = {};", "where an operand"),
        ("assign y = ;", "where an operand"),
        ("assign y = {0{a}};", "a concatenation of 0 bits"),
        ("assign a = b;", "\"a\", bit 0, is an input, and driven"),
        ("assign ~y = b[0];", "not a wire"),
        ("assign 1'b0 = b[0];", "not a wire"),
        ("assign y = w; assign y = v;", "\"y\" has two drivers, the first in line 5"),
        ("assign y = w;", "\"w\" is read and has no driver (declared in line 4)"),
        ("assign y = w & a; assign w = v ^ y; assign v = 0;", "in a cycle"),
        ("assign y = 0; assign w = ~w;", "\"w\" depends on itself"),
        ("always @(posedge a) y <= b;", "\"always\"; combinational circuits only"),
        ("initial y = 0;", "combinational circuits only"),
        ("inout q;", "an inout port"),
        ("\\$_DFF_P_ _1_ (.C(a), .D(b), .Q(y));", "cell \"$_DFF_P_\"; combinational circuits only"),
        ("\\$dlatch _1_ (.EN(w), .D(v), .Q(y));", "combinational circuits only"),
        (
            "buffer _1_ (.A(w), .Y(y));",
            "an instance of \"buffer\", which is not a cell of yosys's; let yosys flatten it",
        ),
        ("\\$add #(.A_WIDTH(2)) _1_ (.A(a));", "cell \"$add\"; run yosys's"),
        ("\\$_AND_ _1_ (.A(w), .Y(y));", "isn't connected"),
        ("\\$_AND_ _1_ (.A(w), .A(w), .B(v), .Y(y));", "pin \"A\""),
        ("\\$_AND_ _1_ (.A(w), .B(a), .Y(y));", "2 bits at pin \"B\""),
        ("\\$_NOT_ _1_ (.A(w), .B(v), .Y(y));", "pin \"B\""),
        ("wire [1:0] w;", "\"w\" is declared already, in line 4"),
        ("wire [99999999:0] x;", "a vector of 100000000 bits"),
        ("wire x [3:0];", "\"x\" is an array"),
        ("input q;", "no port of the module"),
        ("parameter P = 1;", "\"parameter\""),
        ("`define X", "compiler directive \"`define\""),
        ("assign y = \u{e9};", "is not Verilog"),
        ("(* never", "an attribute that never ends"),
        ("/* never", "a comment that never ends"),
        ("assign y = \\ ;", "an identifier of 0 B"),
    ] {
        assert_refused(&[(&module(body), 5, words)]);
    }
    assert_refused(&[
        (&module(""), 3, "output \"y\" has no driver"),
        ("module m(a);\nendmodule", 1, "port \"a\" is neither an input nor an output"),
        ("module m();\nendmodule\nmodule n(); endmodule", 3, "a second module, \"n\""),
        ("module m #(parameter N = 1) ();\nendmodule", 1, "parameters"),
        ("module m(a, a);\ninput a;\nendmodule", 1, "port \"a\" twice"),
        ("module m(a);\ninput a;\n", 3, "the end of the file"),
        ("entity", 1, "where \"module\" is expected"),
    ]);
}

#[test]
fn nothing_is_too_deep() {
    let n = 300_000;
    let chain: String = (1..n).rev().map(|i| format!("assign w{i} = w{} ^ a;\n", i - 1)).collect();
    let wires: String = (0..n).map(|i| format!("wire w{i};\n")).collect();
    let y = n - 1;
    for (body, expected) in [
        (format!("assign y = {}a{};", "(".repeat(n), ")".repeat(n)), 1),
        (format!("assign y = {}a{};", "{".repeat(n), "}".repeat(n)), 1),
        (format!("assign y = {}a;", "~".repeat(n + 1)), 0),
        (format!("assign y = {}a;", "a ? 1'b0 : ".repeat(n)), 0),
        (format!("assign y = {}a{};", "a ? ".repeat(n), ": 1'b0".repeat(n)), 1),
        (format!("assign y = {}a{};", "a & (".repeat(n), ")".repeat(n)), 1),
        (format!("{wires}assign y = w{y}; {chain} assign w0 = 0;"), y as u64 & 1),
    ] {
        let text = format!("module m(input a, output y); {body} endmodule");
        assert_eq!(evaluate(&formats::parse("deep", text.as_bytes()).unwrap(), &[1]), [expected]);
        let cut = &text.as_bytes()[..text.len() / 2];
        assert!(formats::parse("cut", cut).is_err());
    }
}

/// The published circuits, which are not ours to ship: from `BLINDCORE_BRISTOL`, or where the repository's data lies.
fn published(name: &str) -> Option<Netlist> {
    let folder = std::env::var_os("BLINDCORE_BRISTOL").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/bristol");
    let path = folder.unwrap_or(beside).join(name);
    if !path.exists() {
        let why = format!("{} is not there: set BLINDCORE_BRISTOL to a folder with it\n", path.display());
        std::io::Write::write_all(&mut std::io::stderr(), why.as_bytes()).unwrap();
        return None;
    }
    Some(formats::read(path).unwrap())
}

#[test]
fn the_published_circuits_add_and_encrypt() {
    if let Some(adder) = published("adder64.txt") {
        assert_eq!((adder.gates().len(), adder.ands()), (376, 63));
        for (a, b) in [(1, 2), (u64::MAX, 1), (0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210)] {
            assert_eq!(evaluate(&adder, &[a, b]), [a.wrapping_add(b)]);
        }
    }
    if let Some(aes) = published("aes_128.txt") {
        assert_eq!((aes.gates().len(), aes.ands()), (36_663, 6_400));
        // FIPS 197, appendix C.1; the first bit of a block is the last wire of it.
        let wires = |block: u128| (0..128).map(|i| block >> i & 1 == 1).collect::<Vec<_>>();
        let key = wires(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
        let text = wires(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        let cipher = wires(0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a);
        assert_eq!(aes.evaluate(&[key, text]).unwrap(), [cipher]);
    }
}

#[test]
fn unreadable_files_are_named() {
    let missing = formats::read(circuits().join("missing.txt")).unwrap_err().to_string();
    assert!(missing.contains("missing.txt can't be read"), "{missing}");
    let folder = formats::read(circuits()).unwrap_err().to_string();
    assert!(folder.contains("can't be read"), "{folder}");
    // A pipe that nobody writes to is refused, not waited for.
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let refused = formats::read(&pipe).unwrap_err().to_string();
    assert!(refused.contains("not a regular file"), "{refused}");
    let streamed = blindcore_circuit::circuit::Circuit::stream(&pipe, dir.path()).unwrap_err().to_string();
    assert_eq!(refused, streamed);
}

/// One Bristol file with everything that other tools write: a mark, comments, lower case, gates of other kinds.
#[test]
fn bristol_of_other_tools_is_read() {
    let text = "\u{feff}# from a tool
// of another make
6 8 // gates, wires
2 1 1
1 6

2 1 0 1 2 or   # one AND
2 1 0 1 3 NAND
2 1 0 1 4 nor
2 1 0 1 5 XNOR
2 1 0 1 6 xor
1 1 0 7 inv // last
";
    let netlist = formats::parse("other.txt", text.as_bytes()).unwrap();
    assert_eq!(netlist.ands(), 3);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.txt");
    std::fs::write(&path, text).unwrap();
    let streamed = blindcore_circuit::circuit::Circuit::stream(&path, dir.path()).unwrap();
    assert_eq!(streamed.ands(), 3);
    for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let bits = [a | b, 1 - (a & b), 1 - (a | b), 1 - (a ^ b), a ^ b, 1 - a];
        let want = bits.iter().rev().fold(0, |n, bit| n << 1 | bit);
        assert_eq!(evaluate(&netlist, &[a, b]), [want], "{a} {b}");
        let inputs = [vec![a == 1], vec![b == 1]];
        assert_eq!(crate::stream::run(&streamed, &inputs), netlist.evaluate(&inputs).unwrap());
    }
    let error = formats::parse("x.txt", b"1 3\n1 2\n1 1\n\n2 1 0 1 2 NXOR // no\n").unwrap_err().to_string();
    assert!(error.contains("line 5") && error.contains("NXOR") && error.contains("NOR and XNOR"), "{error}");
}
