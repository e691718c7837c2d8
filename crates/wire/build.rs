//! Turns the protocol into Rust: no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let protocol = protox::compile(["blindcore/lookup/v1/lookup.proto"], ["proto"])?;
    let service = std::env::var_os("CARGO_FEATURE_GRPC").is_some();
    tonic_prost_build::configure()
        .bytes(".")
        .build_client(service)
        .build_server(service)
        .compile_fds(protocol)?;
    Ok(())
}
