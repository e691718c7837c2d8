//! Files that NumPy and pyarrow made (testdata/numbers/make.py) are read as what was put into them.

use blindcore_numbers::{Error, Format, Source, Values, encode, read};
use ndarray::{ArrayD, IxDyn};

fn golden(name: &str) -> Source {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/numbers/");
    Source::parse(&format!("{folder}{name}")).unwrap()
}

fn ints(shape: &[usize], values: impl IntoIterator<Item = i64>) -> Values {
    ArrayD::from_shape_vec(IxDyn(shape), values.into_iter().collect()).unwrap().into()
}

fn floats(shape: &[usize], values: impl IntoIterator<Item = f64>) -> Values {
    ArrayD::from_shape_vec(IxDyn(shape), values.into_iter().collect()).unwrap().into()
}

#[test]
fn every_type_and_byte_order_of_npy_is_read_to_its_limits() {
    for (name, least, most) in [
        ("i1_byte", i8::MIN.into(), i8::MAX.into()),
        ("i2_little", i16::MIN.into(), i16::MAX.into()),
        ("i2_big", i16::MIN.into(), i16::MAX.into()),
        ("i4_little", i32::MIN.into(), i32::MAX.into()),
        ("i4_big", i32::MIN.into(), i32::MAX.into()),
        ("i8_little", i64::MIN, i64::MAX),
        ("i8_big", i64::MIN, i64::MAX),
        ("u1_byte", 0, u8::MAX.into()),
        ("u2_little", 0, u16::MAX.into()),
        ("u2_big", 0, u16::MAX.into()),
        ("u4_little", 0, u32::MAX.into()),
        ("u4_big", 0, u32::MAX.into()),
    ] {
        let values = read(&golden(&format!("{name}.npy"))).unwrap();
        assert_eq!(values, ints(&[2, 3], [least, 0, 1, 7, 100, most]), "{name}");
    }
    for name in ["u8_little", "u8_big"] {
        assert_eq!(read(&golden(&format!("{name}.npy"))).unwrap(), ints(&[3], [0, 1, i64::MAX]), "{name}");
    }
    for (name, most) in [
        ("f4_little", f64::from(f32::MAX)),
        ("f4_big", f64::from(f32::MAX)),
        ("f8_little", f64::MAX),
        ("f8_big", f64::MAX),
    ] {
        let values = read(&golden(&format!("{name}.npy"))).unwrap();
        assert_eq!(values, floats(&[2, 3], [-most, 0.0, 1.0, 7.0, 100.0, most]), "{name}");
    }
}

#[test]
fn every_shape_order_and_version_of_npy_is_read() {
    for (name, shape) in [
        ("fortran", &[2, 3, 4][..]),
        ("axes_8", &[1, 2, 1, 3, 1, 2, 2, 1]),
        ("version_2", &[24]),
        ("version_3", &[24]),
    ] {
        let values = read(&golden(&format!("{name}.npy"))).unwrap();
        assert_eq!(values, ints(shape, 0..24), "{name}");
        assert!(values.as_int().unwrap().is_standard_layout());
    }
    assert_eq!(read(&golden("axes_0.npy")).unwrap(), ints(&[], [-7]));
    assert_eq!(read(&golden("empty.npy")).unwrap(), floats(&[0, 3], []));
}

#[test]
fn what_is_written_as_npy_is_what_numpy_writes() {
    for name in ["i8_little", "f8_little", "empty", "axes_0"] {
        let Ok(expected) =
            std::fs::read(format!("{}/../../testdata/numbers/{name}.npy", env!("CARGO_MANIFEST_DIR")))
        else {
            panic!("{name}")
        };
        let mut written = Vec::new();
        encode(Format::Npy, &read(&golden(&format!("{name}.npy"))).unwrap(), None, &mut written).unwrap();
        assert_eq!(written, expected, "{name}");
    }
}

#[test]
fn every_type_encoding_and_compression_of_parquet_is_read() {
    for file in
        ["none", "snappy", "lz4", "zstd", "page_2", "version_1", "plain", "delta", "split", "required"]
    {
        let mut columns = 0;
        for (column, least, most) in [
            ("int8", i8::MIN.into(), i8::MAX.into()),
            ("int16", i16::MIN.into(), i16::MAX.into()),
            ("int32", i32::MIN.into(), i32::MAX.into()),
            ("int64", i64::MIN, i64::MAX),
            ("uint8", 0, u8::MAX.into()),
            ("uint16", 0, u16::MAX.into()),
            ("uint32", 0, u32::MAX.into()),
        ] {
            match read(&golden(&format!("kinds_{file}.parquet?column={column}"))) {
                Err(Error::NoColumn { .. }) => continue,
                values => {
                    let expected = ints(&[6], [least, 0, 1, 7, 100, most]);
                    assert_eq!(values.unwrap(), expected, "{file} {column}");
                }
            }
            columns += 1;
        }
        match read(&golden(&format!("kinds_{file}.parquet?column=uint64"))) {
            Err(Error::NoColumn { .. }) => {}
            values => {
                assert_eq!(values.unwrap(), ints(&[6], [0, 1, 2, 3, 4, i64::MAX]), "{file}");
                columns += 1;
            }
        }
        for (column, most) in [("float", f64::from(f32::MAX)), ("double", f64::MAX)] {
            match read(&golden(&format!("kinds_{file}.parquet?column={column}"))) {
                Err(Error::NoColumn { .. }) => continue,
                values => {
                    let expected = floats(&[6], [-most, 0.0, 1.0, 7.0, 100.0, most]);
                    assert_eq!(values.unwrap(), expected, "{file} {column}");
                }
            }
            columns += 1;
        }
        let expected = match file {
            "version_1" => 9,
            "delta" => 3,
            "split" => 4,
            _ => 10,
        };
        assert_eq!(columns, expected, "{file}");
    }
}

#[test]
fn columns_of_parquet_over_groups_and_pages_stand_in_the_order_asked_for() {
    let all = read(&golden("groups.parquet")).unwrap();
    assert_eq!(all, floats(&[1000, 2], (0..1000).flat_map(|i| [f64::from(i), f64::from(i * i)])));
    let swapped = read(&golden("groups.parquet?column=square,n")).unwrap();
    assert_eq!(swapped, floats(&[1000, 2], (0..1000).flat_map(|i| [f64::from(i * i), f64::from(i)])));
    assert_eq!(read(&golden("groups.parquet?column=n")).unwrap(), ints(&[1000], 0..1000));
    assert_eq!(read(&golden("no_rows.parquet?column=n")).unwrap(), ints(&[0], []));
    assert_eq!(read(&golden("no_rows.parquet")).unwrap(), floats(&[0, 2], []));
    let ints_only = read(&golden("kinds_snappy.parquet?column=int8,int16")).unwrap();
    assert_eq!(ints_only, ints(&[6, 2], [-128, -32768, 0, 0, 1, 1, 7, 7, 100, 100, 127, 32767]));
}

#[test]
fn csv_and_tsv_are_read_with_names_and_without() {
    let all = [1.0, 1.5, 3.0, 2.0, -0.25, 4.0, -3.0, 1e-9, 5.0];
    assert_eq!(read(&golden("named.csv")).unwrap(), floats(&[3, 3], all));
    assert_eq!(read(&golden("named.csv?column=name")).unwrap(), ints(&[3], [1, 2, -3]));
    let wide = golden("named.csv").with_columns(vec!["width, m".into(), "name".into()]);
    assert_eq!(read(&wide).unwrap(), ints(&[3, 2], [3, 1, 4, 2, 5, -3]));
    assert_eq!(read(&golden("plain.csv")).unwrap(), ints(&[2, 3], [1, 2, 3, -4, 5, i64::MAX]));
    assert_eq!(read(&golden("tabs.tsv?column=b")).unwrap(), ints(&[2], [2, 4]));
}

#[test]
fn what_is_no_number_is_refused_by_name() {
    let none = "only numbers are read: a pickle may run code";
    let convert = "convert it with astype(\"int64\") or astype(\"float64\") and save it again";
    for (name, message) in [
        ("u8_over.npy", "element [1, 1] of FILE: 9223372036854775808 is over the limit of 2^63 - 1; keep"),
        ("objects.npy", &format!("FILE: its elements, \"|O\", are Python objects; {none}")),
        ("complex.npy", "FILE: its elements, \"<c16\", are complex numbers; save real and imaginary"),
        ("strings.npy", &format!("FILE: its elements, \"<U3\", are strings; {convert}")),
        ("bytes.npy", "FILE: its elements, \"|S3\", are strings; convert"),
        ("booleans.npy", "FILE: its elements, \"|b1\", are booleans; convert"),
        ("times.npy", "FILE: its elements, \"<M8[D]\", are dates or times; convert"),
        ("halves.npy", "FILE: its elements, \"<f2\", are floats of neither 4 nor 8 B; convert"),
        ("structures.npy", "FILE: its elements are structures, not numbers; save each field on its own"),
        (
            "axes_9.npy",
            "FILE: it has more than the limit of 8 axes (reshape it to fewer); save the array again",
        ),
        ("not_finite.npy", "element [1, 0] of FILE: inf is not finite; keep finite numbers only"),
        ("not_finite_fortran.npy", "element [1, 0] of FILE: NaN is not finite; keep finite"),
        ("refused.parquet", "FILE: column \"text\" holds strings, not numbers; choose other columns"),
        ("refused.parquet?column=null", "row 2, column \"null\" of FILE: it is null; fill nulls"),
        ("refused.parquet?column=over", "row 3, column \"over\" of FILE: 9223372036854775808 is over the"),
        ("refused.parquet?column=n,nan", "row 3, column \"nan\" of FILE: NaN is not finite; keep"),
        ("refused.parquet?column=half,large", "row 1, column \"large\" of FILE: 9007199254740993 stands"),
        ("refused.parquet?column=flag", "FILE: column \"flag\" holds booleans, not numbers; choose"),
        ("refused.parquet?column=day", "FILE: column \"day\" holds dates or times, not numbers; choose"),
        ("refused.parquet?column=time", "FILE: column \"time\" holds dates or times, not numbers; choose"),
        ("refused.parquet?column=decimal", "FILE: column \"decimal\" holds decimals, not numbers; choose"),
        ("refused.parquet?column=small", "FILE: column \"small\" holds floats of 2 B, not numbers; choose"),
        ("refused.parquet?column=list", "FILE: column \"list\" is nested; choose columns of single numbers"),
        ("refused.parquet?column=nested", "FILE: column \"nested\" is nested; choose columns of single"),
        ("refused.parquet?column=a", "FILE has no column \"a\"; its columns are \"n\", \"null\", \"over\","),
        ("refused.parquet?column=n,n", "FILE: column \"n\" is asked for twice; name every column once"),
        ("plain.csv?column=a", "FILE: its first line holds numbers, so its columns have no names; ask"),
        (
            "named.csv?column=a",
            "FILE has no column \"a\"; its columns are \"name\", \"height\", \"width, m\"",
        ),
        ("axes_0.npy?column=a", "FILE: NPY files have no columns to ask for by name; ask for the whole"),
    ] {
        let source = golden(name);
        let error = read(&source).unwrap_err().to_string().replace(&source.to_string(), "FILE");
        assert!(error.starts_with(message), "{name}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn gzip_is_read() {
    assert_eq!(read(&golden("gzip.parquet?column=n")).unwrap().len(), 10);
}

#[test]
fn no_more_is_read_than_the_limit() {
    for name in ["groups.parquet", "fortran.npy", "named.csv"] {
        let source = golden(name);
        let len = read(&source).unwrap().len();
        assert_eq!(read(&source.clone().with_limit(len)).unwrap().len(), len);
        let error = read(&source.clone().with_limit(len - 1)).unwrap_err().to_string();
        let message = format!("{source} holds more than the limit of {} values; read fewer columns", len - 1);
        assert!(error.starts_with(&message), "{error}");
    }
}

#[test]
fn a_source_is_a_file_by_its_ending_and_columns_by_name() {
    for (text, message) in [
        ("", "\"\" names no file of numbers: it has no ending to tell its format by; name a FILE.csv"),
        ("a.npz", "\"a.npz\" names no file of numbers: an .npz archive holds several arrays; name"),
        ("a.txt", "\"a.txt\" names no file of numbers: files that end in .txt are not supported; name"),
        ("a.csv?column=", "\"a.csv?column=\" names no file of numbers: a column has no name; write"),
        ("a.csv?column=b,", "\"a.csv?column=b,\" names no file of numbers: a column has no name; write"),
    ] {
        let error = Source::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert_eq!(Source::parse("-").unwrap().to_string(), "standard input");
    assert_eq!(Source::parse("dir/A.CSV?column=a,b").unwrap().to_string(), "dir/A.CSV");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.npy");
    let error = read(&Source::file(&path).unwrap()).unwrap_err().to_string();
    assert!(error.contains("none.npy can't be read: ") && error.ends_with("; check the path"), "{error}");
    std::fs::create_dir(&path).unwrap();
    let error = read(&Source::file(&path).unwrap()).unwrap_err().to_string();
    assert!(error.ends_with("; name a file, not a folder"), "{error}");
}
