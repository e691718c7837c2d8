//! Turns the protocol into Rust: no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let protocol = protox::compile(["blindcore/lookup/v1/lookup.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(protocol)?;
    Ok(())
}
