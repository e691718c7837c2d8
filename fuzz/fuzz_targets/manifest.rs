//! A manifest: as it comes, and with a checksum that fits, so that what lies behind it is reached.
#![no_main]
use blindcore_store::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = Manifest::parse(data);
    let Ok(manifest) = serde_json::from_slice::<Manifest>(data) else { return };
    let mut json = serde_json::to_value(&manifest).unwrap();
    json["checksum"] = "".into();
    let checksum = blake3::hash(&serde_json::to_vec(&json).unwrap());
    json["checksum"] = checksum.to_hex().as_str().into();
    let sealed = serde_json::to_vec(&json).unwrap();
    match Manifest::parse(&sealed) {
        Ok(read) => {
            assert!(read.records.params().is_ok());
            assert_eq!(serde_json::to_value(&read).unwrap(), json);
        }
        Err(why) => assert!(!why.to_string().contains("checksum does not fit"), "{why}"),
    }
});
