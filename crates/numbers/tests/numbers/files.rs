//! What is written is read back; what is damaged is refused and never makes anything panic.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use blindcore_numbers::{Access, Error, Existing, Format, Source, Values, encode, read, read_content, write};
use ndarray::{ArrayD, IxDyn};
use proptest::prelude::*;

fn written(format: Format, values: &Values, names: Option<&[String]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(format, values, names, &mut bytes).unwrap();
    bytes
}

fn refusal(format: Format, bytes: impl Into<Vec<u8>>) -> String {
    read(&Source::bytes(format, bytes.into())).unwrap_err().to_string()
}

fn read_with_names(source: &Source) -> Result<(Values, Option<Vec<String>>), Error> {
    read_content(source).map(|content| (content.values, content.names))
}

fn ints(shape: &[usize], values: Vec<i64>) -> Values {
    ArrayD::from_shape_vec(IxDyn(shape), values).unwrap().into()
}

/// Arrays of integers, or of finite floats, over their whole range.
fn arrays(shapes: impl Strategy<Value = Vec<usize>>) -> impl Strategy<Value = Values> {
    let finite = any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |v| v.is_finite());
    let float = prop_oneof![4 => finite, 1 => Just(-0.0), 1 => (-9i32..9).prop_map(f64::from)];
    shapes.prop_flat_map(move |shape| {
        let len = shape.iter().product::<usize>();
        let axes = shape.clone();
        prop_oneof![
            prop::collection::vec(any::<i64>(), len).prop_map(move |v| ints(&shape, v)),
            prop::collection::vec(float.clone(), len)
                .prop_map(move |v| Values::Float(ArrayD::from_shape_vec(IxDyn(&axes), v).unwrap())),
        ]
    })
}

/// Equal to the bit, so that zero isn't minus zero.
fn same(a: &Values, b: &Values) -> bool {
    match (a, b) {
        (Values::Int(a), Values::Int(b)) => a == b,
        (Values::Float(a), Values::Float(b)) => a.mapv(f64::to_bits) == b.mapv(f64::to_bits),
        _ => false,
    }
}

proptest! {
    #[test]
    fn any_array_is_read_back_from_npy(values in arrays(prop::collection::vec(0usize..4, 0..=8))) {
        let read = read(&Source::bytes(Format::Npy, written(Format::Npy, &values, None))).unwrap();
        prop_assert!(same(&read, &values), "{read:?}");
    }

    #[test]
    fn lists_and_matrices_are_read_back_from_every_format(
        values in arrays(prop_oneof![
            (1usize..20).prop_map(|n| vec![n]),
            (1usize..20, 2usize..5).prop_map(|(n, m)| vec![n, m]),
        ]),
        named: bool,
    ) {
        let width = values.shape().get(1).copied().unwrap_or(1);
        let names: Vec<String> = (0..width).map(|i| ["a", "b\"", "c,d\te", "7"][i].to_owned()).collect();
        for format in [Format::Csv, Format::Tsv, Format::Npy, Format::Parquet] {
            // A tab in a name is more than CSV carries.
            let tabs = matches!(format, Format::Csv | Format::Tsv);
            let names: Vec<String> = names.iter().map(|n| n.replace(if tabs { "\t" } else { "" }, "")).collect();
            let names = (named && format != Format::Npy).then_some(&names[..]);
            let bytes = written(format, &values, names);
            // One of the names has a digit.
            let source = Source::bytes(format, bytes);
            let source = if names.is_some() { source.with_header() } else { source };
            let all = read(&source).unwrap();
            prop_assert!(same(&all, &values), "{format:?}: {all:?}");
            if let Some(names) = names {
                let last = read(&source.with_columns(vec![names[width - 1].clone()])).unwrap();
                prop_assert_eq!(last.len(), values.len() / width);
            }
        }
    }

    #[test]
    fn csv_is_what_the_csv_crate_reads(
        table in (1usize..4).prop_flat_map(|width| {
            prop::collection::vec(prop::collection::vec("-?(0|[1-9][0-9]{0,17})", width), 1..8)
        }),
        quoted: bool,
        crlf: bool,
    ) {
        let quotes = if quoted { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary };
        let end = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer = csv::WriterBuilder::new().quote_style(quotes).terminator(end).from_writer(Vec::new());
        for row in &table {
            writer.write_record(row).unwrap();
        }
        let read = read(&Source::bytes(Format::Csv, writer.into_inner().unwrap())).unwrap();
        let expected: Vec<i64> = table.iter().flatten().map(|cell| cell.parse().unwrap()).collect();
        prop_assert_eq!(read.as_int().unwrap().iter().copied().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn any_text_is_read_or_refused_on_one_line(text in "[-+0-9.eainf,\"\t\r\n \u{feff}é]{0,40}") {
        for format in [Format::Csv, Format::Tsv] {
            match read(&Source::bytes(format, text.clone())) {
                Ok(values) => prop_assert!(!values.is_empty()),
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }
    }
}

#[test]
fn a_float_is_never_written_as_an_integer_and_an_array_in_fortran_order_as_itself() {
    let float = Values::Float(ArrayD::from_shape_vec(IxDyn(&[3]), vec![1.0, 1e16, -0.0]).unwrap());
    assert_eq!(written(Format::Csv, &float, None), b"1.0\n1e16\n-0.0\n");
    let array = ndarray::arr2(&[[1i64, 2, 3], [4, 5, 6]]).reversed_axes().into_dyn();
    assert!(!array.is_standard_layout());
    for format in [Format::Csv, Format::Npy, Format::Parquet] {
        let values = Values::Int(array.clone());
        let back = read(&Source::bytes(format, written(format, &values, None))).unwrap();
        assert_eq!(back, ints(&[3, 2], vec![1, 4, 2, 5, 3, 6]), "{format:?}");
    }
}

#[test]
fn a_flaw_in_csv_is_named_by_line_and_column() {
    for (file, message) in [
        ("", "the input: it is empty; put a number on every line"),
        ("\n\r\n", "the input: it is empty"),
        ("a,b\n", "the input: it holds no numbers; put a number on every line after the names"),
        ("1,\n", "line 1, column 2 of the input: it is empty; give every cell a number"),
        (",a\n1,x\n", "line 2, column 2 (\"a\") of the input: \"x\" is not a number; write numbers as"),
        ("a\n1\n\n2\n", "line 3 of the input: it is empty; remove it, or put its numbers there"),
        ("a,b\n1,2\n3\n", "line 3 of the input: it has 1 cells where the first line has 2; give"),
        ("a\n1\nnan\n", "line 3, column 1 (\"a\") of the input: \"nan\" is not finite; keep finite"),
        ("1\n-inf\n", "line 2, column 1 of the input: \"-inf\" is not finite; keep finite"),
        ("1\n1e999\n", "line 2, column 1 of the input: \"1e999\" is beyond the range of a float; keep"),
        ("1\n9223372036854775808\n", "line 2, column 1 of the input: \"9223372036854775808\" is beyond"),
        ("0.5\n9007199254740993\n", "line 2, column 1 of the input: 9007199254740993 stands among floats"),
        ("a,b\n1,2\n3,9007199254740993\n5,.5\n", "line 3, column 2 (\"b\") of the input: 9007199254740993"),
        ("\"1\"2\n", "line 1 of the input: text follows the closing quote of cell 1; close every quote"),
        ("1,\"2\n3\",4\n", "line 1 of the input: the quote of cell 2 is not closed; close every quote"),
    ] {
        let error = refusal(Format::Csv, file.as_bytes().to_vec());
        assert!(error.starts_with(message), "{error}");
    }
    let error = refusal(Format::Csv, b"a\n1\n\xff\n".to_vec());
    assert!(
        error.starts_with("line 3, column 1 (\"a\") of the input: \"\u{fffd}\" is not a number"),
        "{error}"
    );
    let wide: Vec<u8> = "\u{feff}1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = refusal(Format::Csv, wide);
    assert!(error.starts_with("line 1, column 1 of ") && error.contains("save the file as UTF-8"), "{error}");
    let error = refusal(Format::Csv, b"\xff\n1\n".to_vec());
    assert!(error.starts_with("line 1 of the input: the name of column 1 is not UTF-8; save"), "{error}");
    let error = refusal(Format::Csv, vec![b'1'; (16 << 20) + 1]);
    assert!(
        error.starts_with("line 1 of the input: it is over the limit of 16777216 B for a line"),
        "{error}"
    );
    let twice = Source::bytes(Format::Csv, "a,a\n1,2\n").with_columns(vec!["a".into()]);
    let error = read(&twice).unwrap_err().to_string();
    assert!(
        error.starts_with("the input: two columns are called \"a\"; give every column a name"),
        "{error}"
    );
    let none = Source::bytes(Format::Csv, "a,a\n1,2\n").with_columns(vec![]);
    assert!(read(&none).unwrap_err().to_string().starts_with("the input: no column is asked for; name one"));
}

#[test]
fn a_first_line_is_names_where_it_says_so_and_otherwise_data_whose_flaws_are_said() {
    let csv = |text: &str| Source::bytes(Format::Csv, text.to_owned());
    for flawed in [
        "7,n/a,3",
        "\"1,000\",2,3",
        "0x10,1,2",
        "-,1,2",
        "NA,1,2",
        "1,2,null",
        "\u{2212}5,1,2",
        "1;2,3,4",
        "$5,1,2",
        "12kg,1,2",
        "name,12kg,3",
        "1.2.3,a,b",
        "1e,2,3",
        "total,3,x",
        "x1,x2,x3",
        "name,2020,2021",
        "q\u{0663},a,b",
    ] {
        let error = read(&csv(&format!("{flawed}\n4,5,6\n"))).unwrap_err().to_string();
        assert!(
            error.starts_with("line 1, column ") && error.contains(": FILE?column=NAME, or --header"),
            "{flawed}: {error}"
        );
        let told = csv(&format!("{flawed}\n4,5,6\n")).with_header();
        assert_eq!(read(&told).unwrap(), ints(&[1, 3], vec![4, 5, 6]), "{flawed}");
    }
    for names in ["a,b,c", "name,,id", "_,\u{e9}t\u{e9},z", "\"a,b\",c,", "\u{feff}a,b,c"] {
        let (values, said) = read_with_names(&csv(&format!("{names}\n4,5,6\n"))).unwrap();
        assert_eq!(values, ints(&[1, 3], vec![4, 5, 6]), "{names}");
        assert_eq!(said.unwrap().len(), 3, "{names}");
    }
    for text in ["1,2\n3,4\n", "\u{feff}1,2\n3,4", "1,2\r\n3,4\r\n"] {
        let (values, said) = read_with_names(&csv(text)).unwrap();
        assert_eq!((values, said), (ints(&[2, 2], vec![1, 2, 3, 4]), None));
    }
    // Whoever asks for names is not told of them.
    assert_eq!(
        read_with_names(&csv("2020,2021\n1,2\n").with_header()).unwrap(),
        (ints(&[1, 2], vec![1, 2]), None)
    );
    assert_eq!(read(&csv("x1,x2\n1,2\n").with_columns(vec!["x2".into()])).unwrap(), ints(&[1], vec![2]));
    let by_name = csv("a,b\n1,2\n").with_columns(vec!["b".into()]);
    assert_eq!(read_with_names(&by_name).unwrap(), (ints(&[1], vec![2]), None));
}

/// The standard library misreads exponents of 655,360 and more.
#[test]
fn a_number_is_read_right_or_refused_as_too_long() {
    let (one, other) =
        (format!("0.{}1e655360", "0".repeat(655_359)), format!("1{}e-1000000", "0".repeat(1_000_000)));
    for (number, length) in [(one, 655_369), (other, 1_000_010), ("1".repeat(32_769), 32_769)] {
        for (text, place) in [
            (format!("{number}\n"), "line 1, column 1 of the input: "),
            (format!("2.5,1.5\n3,{number}\n"), "line 2, column 2 of the input: "),
        ] {
            let error = refusal(Format::Csv, text);
            let why = format!(
                "{place}it has {length} characters, over the limit of 32768 for a number; write it with fewer"
            );
            assert!(error.starts_with(&why), "{error}");
        }
    }
    // Those of the limit are read, also where the exponent is one that isn't counted to its end.
    let noughts = "0".repeat(32_755);
    for (text, want) in [
        (format!("0.{noughts}1e32756\n"), 1.0),
        (format!("1{noughts}e-32755\n"), 1.0),
        (format!("1{noughts}e-99999999\n"), 0.0),
    ] {
        let values = blindcore_numbers::read(&Source::bytes(Format::Csv, text)).unwrap();
        assert_eq!(values, Values::Float(ndarray::arr1(&[want]).into_dyn()));
    }
    let error = refusal(Format::Csv, format!("0.{noughts}1e999999\n"));
    assert!(error.contains("is beyond the range of a float"), "{error}");
    // Names stand for columns, and are not read as numbers.
    let text = format!("n{}\n1\n", "a".repeat(40_000));
    assert!(blindcore_numbers::read(&Source::bytes(Format::Csv, text)).is_ok());
}

/// `1,000` is one number to who wrote it, and two cells.
#[test]
fn a_separator_of_thousands_is_refused() {
    for (text, place) in [
        ("1,000\n2,000\n", "line 1, column 2 of"),
        ("a,b\n1,234\n-12, 045\n", "line 3, column 2 (\"b\") of"),
        ("5,+123,000.5,7\n", "line 1, column 3 of"),
    ] {
        let error = refusal(Format::Csv, text);
        assert!(error.starts_with(place), "{error}");
        assert!(error.contains("a thousands separator; write 1000 for 1,000,"), "{error}");
    }
    // Two numbers they are where they are in quotes, between tabs, of other lengths, or after a decimal.
    for text in
        ["1,\"000\"\n", "\"1\",000\n", "1,00\n", "1,0000\n", "1000,000\n", "1.5,000\n", "1,0\n", ",000\n1,1"]
    {
        let read = read(&Source::bytes(Format::Csv, text));
        assert!(read.is_ok() || read.unwrap_err().to_string().contains("is empty"), "{text}");
    }
    assert!(read(&Source::bytes(Format::Tsv, "1\t000\n")).is_ok());
}

#[test]
fn a_flaw_in_npy_is_named() {
    let file = |header: &str| {
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes
    };
    let over = format!("{{'descr': '<i8'{}", " ".repeat(10_000));
    for (header, message) in [
        ("", "its header has \"\" where '{' belongs"),
        ("{'descr': '<i8', 'shape': (), }", "its header has no entry \"fortran_order\""),
        ("{'descr': '<i8', 'descr': '<i8'}", "its header has two entries \"descr\""),
        ("{'evil': 1}", "its header has an entry \"evil\""),
        ("{'shape': (1, x)}", "its header has \"x)}\" where the length of an axis belongs"),
        ("{'shape': (-1,)}", "its header has \"-1,)}\" where the length of an axis belongs"),
        ("{'shape': (3)}", "its shape is a number, not a tuple"),
        ("{'fortran_order': 1}", "its header has \"1}\" where True or False belongs"),
        ("{'descr': 8}", "its header has \"8}\" where a string belongs"),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': ()} x", "its header goes on after its end"),
        ("{'descr': 'i8', 'fortran_order': False, 'shape': ()}", "its elements, \"i8\", are a kind that"),
        ("{'descr': '=i8', 'fortran_order': False, 'shape': ()}", "its elements, \"=i8\", don't say the"),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (2L, 3L)}", "its shape [2, 3] of <i8 takes 48 B"),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}", "its shape [0, "),
        (
            "{'descr': '<i8', 'fortran_order': False, 'shape': (18446744073709551615, 0)}",
            "its shape [18446744073709551615, 0] has axes that multiply, those of 0 left out, to over the limit of \
             1152921504606846975; save an array of shorter axes",
        ),
        (&over, "its header of 10015 B is over the limit of 10000 B"),
    ] {
        let error = refusal(Format::Npy, file(header));
        assert!(error.starts_with(&format!("the input: {message}")), "{error}");
    }
    let huge = "{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296, 2)}";
    assert!(refusal(Format::Npy, file(huge)).starts_with("the input holds more than the limit of 100000000"));
    let claim = "{'descr': '<i8', 'fortran_order': False, 'shape': (100000000,)}";
    let error = refusal(Format::Npy, file(claim));
    assert!(error.contains("takes 800000000 B, and 0 B follow its header; it was cut"), "{error}");
    assert!(
        refusal(Format::Npy, "PK\x03\x04 an archive")
            .contains("it is not an NPY file: it doesn't start with")
    );
    assert!(refusal(Format::Npy, "\u{93}").contains("it ends within its header"));
    assert!(
        refusal(Format::Npy, b"\x93NUMPY\x04\0\0\0".to_vec()).contains("its format is 4.0; 1.0, 2.0 and")
    );
}

#[test]
fn a_foreign_file_is_no_parquet() {
    assert!(refusal(Format::Parquet, "").contains("it is not a Parquet file: it doesn't end in PAR1; check"));
    assert!(refusal(Format::Parquet, "a,b,c\n1,2,3\n4,5,6\n").contains("it is not a Parquet file"));
    assert!(refusal(Format::Parquet, "PAR1\0\0\0\0PARE").contains("it is encrypted; write it without"));
    let error = refusal(Format::Parquet, b"PAR1\xff\xff\xff\x7fPAR1".to_vec());
    assert!(error.contains("its metadata of 2147483647 B is over the limit of 67108864 B"), "{error}");
}

/// Every file cut short is refused, and every file with a bit flipped is read or refused.
#[test]
fn damage_is_refused_or_read_but_never_a_panic() {
    // A panic in a decoder is caught, so that nobody meets it; here it counts.
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(info);
    }));
    let float = Values::Float(ArrayD::from_shape_fn(IxDyn(&[40, 2]), |i| i[0] as f64 / (i[1] + 3) as f64));
    let int = Values::Int(ArrayD::from_shape_fn(IxDyn(&[300]), |i| (i[0] % 7) as i64));
    for values in [&float, &int] {
        for format in [Format::Npy, Format::Parquet] {
            let bytes = written(format, values, None);
            for cut in 0..bytes.len() {
                refusal(format, bytes[..cut].to_vec());
            }
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                if let Err(error) = read(&Source::bytes(format, bytes)) {
                    assert!(!error.to_string().contains('\n'), "{error}");
                }
            }
        }
        let bytes = written(Format::Csv, values, None);
        for at in 0..bytes.len() {
            let _ = read(&Source::bytes(Format::Csv, bytes[..at].to_vec()));
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x80;
            refusal(Format::Csv, bytes);
        }
    }
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/numbers")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(format) = Format::of(&path) else { continue };
        let bytes = fs::read(&path).unwrap();
        for cut in 0..bytes.len() {
            let _ = read(&Source::bytes(format, bytes[..cut].to_vec()));
        }
        for at in 0..bytes.len() {
            for bits in [1, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= bits;
                let _ = read(&Source::bytes(format, bytes));
            }
        }
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}

#[test]
fn what_a_format_cannot_hold_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let cube = ints(&[1, 1, 1], vec![1]);
    let nan = Values::Float(ArrayD::from_shape_vec(IxDyn(&[1, 2]), vec![1.0, f64::NAN]).unwrap());
    let two = ints(&[1, 2], vec![1, 2]);
    let none = ints(&[0], vec![]);
    let axes = ints(&[1; 9], vec![1]);
    let names = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
    for (file, values, names, message) in [
        (
            "x.csv",
            &cube,
            None,
            "can't hold these numbers: their shape [1, 1, 1] has 3 axes, not one or two; ",
        ),
        ("x.parquet", &cube, None, "can't hold these numbers: their shape [1, 1, 1] has 3 axes"),
        ("x.npy", &axes, None, "can't hold these numbers: 9 axes are over the limit of 8; join some"),
        ("x.csv", &nan, None, "can't hold these numbers: element [0, 1] is NaN; keep finite numbers only"),
        ("x.npy", &nan, None, "can't hold these numbers: element [0, 1] is NaN"),
        ("x.parquet", &nan, None, "can't hold these numbers: element [0, 1] is NaN"),
        ("x.csv", &none, None, "can't hold these numbers: there are none; save an empty array as NPY"),
        ("x.csv", &two, names(&["a"]), "can't hold these numbers: 1 names are given for 2 columns; give"),
        ("x.csv", &two, names(&["a", "a"]), "can't hold these numbers: two columns are called \"a\"; give"),
        ("x.csv", &two, names(&["1", "2"]), "can't hold these numbers: these names would be read as numbers"),
        ("x.tsv", &two, names(&["a", "b\tc"]), "can't hold these numbers: the column name \"b\\tc\" has a"),
        ("x.parquet", &two, names(&["a", ""]), "can't hold these numbers: a column's name is empty; give"),
        ("none/x.npy", &two, None, "can't be written: "),
    ] {
        let error =
            write(&folder.path().join(file), Access::Everyone, Existing::Keep, values, names.as_deref())
                .unwrap_err()
                .to_string();
        assert!(error.contains(&format!("{file} {message}")), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let error = write(&folder.path().join("x.txt"), Access::Everyone, Existing::Keep, &two, None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("names no file of numbers: files that end in .txt are not supported"), "{error}");
    fs::create_dir(folder.path().join("x.npy")).unwrap();
    let error = write(&folder.path().join("x.npy"), Access::Everyone, Existing::Replace, &two, None)
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("x.npy: it is there already and is not a regular file; name a file"), "{error}");
}

#[test]
fn a_file_is_replaced_whole_or_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let two = ints(&[1, 2], vec![1, 2]);
    for ending in ["csv", "tsv", "npy", "parquet"] {
        let path = folder.path().join(format!("x.{ending}"));
        fs::write(&path, "old").unwrap();
        let nan = Values::Float(ArrayD::from_elem(IxDyn(&[1]), f64::NAN));
        write(&path, Access::Everyone, Existing::Replace, &nan, None).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let error = write(&path, Access::Everyone, Existing::Keep, &two, None).unwrap_err().to_string();
        assert!(error.contains(&format!("x.{ending} is there already")), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write(&path, Access::Everyone, Existing::Replace, &two, None).unwrap();
        assert_eq!(read(&Source::file(&path).unwrap()).unwrap(), two);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4); // and nothing beside them
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_and_a_file_is_for_whom_new_files_are() {
    use std::os::unix::fs::{MetadataExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file.npy"), folder.path().join("link.npy"));
    let reference = folder.path().join("reference");
    fs::write(&file, "old").unwrap();
    fs::write(&reference, "").unwrap();
    symlink(&file, &link).unwrap();
    let one = ints(&[1], vec![1]);
    write(&link, Access::Everyone, Existing::Replace, &one, None).unwrap();
    assert!(link.is_symlink());
    assert_eq!(read(&Source::file(&file).unwrap()).unwrap(), one);
    assert_eq!(fs::metadata(&file).unwrap().mode(), fs::metadata(&reference).unwrap().mode());
}

/// What a float doesn't hold of a decimal is kept beside it, and every number has its place.
#[test]
fn decimals_beyond_floats_are_kept_and_places_known() {
    let csv = |text: &str| Source::bytes(Format::Csv, text.to_owned());
    let text = "a,b\n1.5,70368744177664.07\n2,9007199254740992\n-70368744177664.07,70368744177664.0625\n";
    let content = read_content(&csv(text).with_decimals(Some(2))).unwrap();
    assert_eq!(*content.exact(2), [(1, 7036874417766407), (4, -7036874417766407)]);
    assert_eq!(*content.exact(3), [], "of other decimals nothing is known");
    assert_eq!(content.values, read(&csv(text)).unwrap());
    assert_eq!(content.place(4), "line 4, column 1 (\"a\")");
    assert_eq!(*read_content(&csv(text)).unwrap().exact(2), []);
    let column = read_content(&csv("x,y\n1,2\n3,4\n").with_columns(vec!["y".into()])).unwrap();
    assert_eq!(column.place(1), "line 3, column 2 (\"y\")");
    assert!(csv("1").with_header().check().is_ok());
    assert_eq!(read_content(&csv("1,2\n3,4\n")).unwrap().place(2), "line 2, column 1");
    let matrix = ints(&[2, 3], (0..6).collect());
    for (format, place) in [(Format::Npy, "element [1, 2]"), (Format::Parquet, "row 2, column \"value_2\"")] {
        let source = Source::bytes(format, written(format, &matrix, None));
        assert_eq!(read_content(&source).unwrap().place(5), place);
        // Neither has a line of names.
        assert!(source.check().is_ok());
        let error = source.with_header().check().unwrap_err().to_string();
        assert!(error.contains("leave out --header"), "{error}");
    }
}

/// What was written with more digits than a float holds is counted, and known where it may be the first over a limit.
#[test]
fn what_floats_do_not_hold_is_known() {
    let content = |text: &str| read_content(&Source::bytes(Format::Csv, text.to_owned())).unwrap();
    for (text, rounded) in [
        ("1.4999999999999999999", true),
        ("1.00000000000000001", true),
        ("9007199254740993.0", true),
        ("-9007199254740993e0", true),
        ("1.000000000000000056e-01", true),
        ("3e-324", true),
        ("0.1", false),
        ("0.30000000000000004", false),
        ("1.500000000000000000000000e+00", false),
        ("00000000000000000000.25", false),
        ("12300000000000000000.0", false),
        ("5e-324", false),
        ("-0.0", false),
        ("1e-400", false), // which has vanished
        ("0e9", false),
        ("1.7976931348623157e308", false),
    ] {
        let content = content(&format!("{text}\n"));
        assert_eq!(content.rounded(), usize::from(rounded), "{text}");
        assert_eq!(content.written(0), rounded.then_some(text));
    }
    let text = "0.5\n9007199254740993.0\n1.00000000000000001\n9007199254740993.25\n -9007199254740995.0\n";
    let content = content(text);
    assert_eq!(content.rounded(), 4);
    let written: Vec<_> = (0..5).map(|position| content.written(position)).collect();
    let [first, third] = ["9007199254740993.0", "9007199254740993.25"];
    assert_eq!(written, [None, Some(first), None, Some(third), Some("-9007199254740995.0")]);
}

/// A float near a tie, or far from its decimal in small units, may be rounded to another side than what was written.
#[test]
fn decimals_near_a_tie_are_rounded_as_they_were_written() {
    for (text, decimals, want) in [
        ("0.295", 2, Some(30)),
        ("0.285", 2, None),
        ("-0.295", 2, Some(-30)),
        ("0.015000000000000000000000001", 2, Some(2)),
        ("0.125", 2, None),
        ("2200000.0000000006", 9, Some(2200000000000001)),
        ("22000000000000.0137", 2, Some(2200000000000001)),
        ("0.5000000000000000000000001", 0, Some(1)),
        ("9223372036854775809.0", 0, Some((1 << 63) + 1)),
        ("1e-400", 9, None),
    ] {
        let content =
            read_content(&Source::bytes(Format::Csv, format!("1.5\n{text}\n")).with_decimals(Some(decimals)))
                .unwrap();
        let exact = content.exact(decimals);
        let exact = exact.iter().find(|(position, _)| *position == 1);
        assert_eq!(exact.map(|(_, units)| *units), want, "{text}");
        assert_eq!(content.vanished(), usize::from(text == "1e-400"), "{text}");
    }
}

/// Where no decimals were asked for, what lies in the middle of two units is known for the decimals of these.
#[test]
fn decimals_in_the_middle_of_any_two_units_are_rounded_half_to_even() {
    let texts = [
        "0.0025",
        "-0.0005",
        "0.0045",
        "25e-4",
        "1.5",
        "2.50",
        "0.00250000000000000001",
        "1e-22",
        "75",
        "0.295",
    ];
    let content = read_content(&Source::bytes(Format::Csv, format!("{}\n", texts.join("\n")))).unwrap();
    assert_eq!(*content.exact(3), [(0, 2), (1, 0), (3, 2)]);
    assert_eq!(*content.exact(2), [(9, 30)]);
    for decimals in [0, 1, 4, 18, 19] {
        assert_eq!(*content.exact(decimals), [], "{decimals}");
    }
}

/// Found by fuzzing: a schema that says it has two billion children, and one that seems to where a field's type is not looked
/// at: the library would take 16 GB for them.
#[test]
fn a_schema_of_too_many_children_is_refused_before_memory_is_taken() {
    for file in [
        &include_bytes!("../../../../testdata/numbers/many_children.parquet")[..],
        include_bytes!("../../../../testdata/numbers/mistyped_schema.parquet"),
    ] {
        let error = read(&Source::bytes(Format::Parquet, file)).unwrap_err().to_string();
        assert!(error.contains("metadata is damaged"), "{error}");
    }
}
