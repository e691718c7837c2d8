//! Turns `proto/blindcore/lookup/v1/lookup.proto` into `src/proto.rs`: no `protoc` is needed.

use std::error::Error;
use std::fs;
use std::path::Path;

const PROTOCOL: &str = "blindcore/lookup/v1/lookup.proto";
const SERVICE_ALONE: &str = "#[cfg(feature = \"grpc\")]";

fn main() -> Result<(), Box<dyn Error>> {
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no crate around this one")?;
    let folder = wire.join("proto");
    let descriptors = protox::compile([PROTOCOL], [&folder])?;
    let made = wire.join("generate/target");
    fs::create_dir_all(&made)?;
    tonic_prost_build::configure()
        .bytes(".")
        .client_mod_attribute(".", SERVICE_ALONE)
        .server_mod_attribute(".", SERVICE_ALONE)
        .out_dir(&made)
        .compile_fds(descriptors)?;
    let digest = blake3::hash(&fs::read(folder.join(PROTOCOL))?);
    let code = fs::read_to_string(made.join("blindcore.lookup.v1.rs"))?;
    let head = format!(
        "// Made by `make proto` from proto/{PROTOCOL},\n// whose BLAKE3 digest is {digest}. Change that file, not this one.\n"
    );
    fs::write(wire.join("src/proto.rs"), head + &code)?;
    Ok(())
}
