//! What a person writes for a source.
#![no_main]
use blindcore_store::SourceSpec;
use blindcore_wire::check_table_name;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(spec) = SourceSpec::parse(text) else { return };
    assert_eq!(SourceSpec::parse(&spec.to_string()).unwrap(), spec);
    if let Some(name) = spec.default_table_name().filter(|n| n.len() <= 255) {
        check_table_name(&name).unwrap();
    }
});
