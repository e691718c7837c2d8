//! What a person writes for a source.
#![no_main]
use blindcore_store::SourceSpec;
use blindcore_wire::check_table_name;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(spec) = SourceSpec::parse(text) else { return };
    // A server's password is not shown, so what is shown may be understood as something else, but only once.
    let shown = spec.to_string();
    assert_eq!(SourceSpec::parse(&shown).unwrap().to_string(), shown);
    if let Some(name) = spec.default_table_name().filter(|n| n.len() <= 255) {
        check_table_name(&name).unwrap();
    }
});
