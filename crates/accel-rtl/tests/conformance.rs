//! Every simulated chip runs the shared suite, where its library has been built.

#![allow(clippy::print_stderr, reason = "a test that is skipped says why")]

use blindcore_accel::Device;
use blindcore_accel_rtl::Rtl;

fn conforms(name: &str) {
    match Rtl::open(name) {
        Ok(device) => {
            assert_eq!(device.name(), name);
            blindcore_accel::conformance::contract(&device);
        }
        Err(e) => eprintln!("skipped: {e}"),
    }
}

#[test]
fn onionchopper() {
    conforms("rtl:onionchopper");
}
