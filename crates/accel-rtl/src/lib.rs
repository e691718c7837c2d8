//! The rtl devices: the SystemVerilog of `hw/`, simulated clock by clock and opened by name like any other device.
//!
//! | module | chip | operation |
//! |---|---|---|
//! | [`onionchopper`] | OnionChopper, of a thesis of 2023 | contract |
//! | [`sifo`] | SIFO's garbling overlay of 2019, and one for half gates | garble, evaluate |
//! | [`phepu`] | PH-EPU, the Paillier processor of 2023, and its compiler | bigmod |
//!
//! ```no_run
//! let device = blindcore_accel_rtl::open("rtl:onionchopper")?; // made by `make -C hw libraries`
//! println!("{}", device.description().hardware);
//! # Ok::<(), blindcore_accel::Error>(())
//! ```
//!
//! Building this crate needs no simulator: a chip is a library that is loaded when its device is opened. Each module is
//! the host's part of one chip, and does not know the others.

mod library;
pub mod onionchopper;
pub mod phepu;
pub mod sifo;

use std::path::PathBuf;

use blindcore_accel::{Device, DeviceKind, Error, Listed, OpenOptions};

pub use library::find;
use onionchopper::OnionChopper;
use phepu::Phepu;
use sifo::{Overlay, half_gates::HalfGates};

/// What makes the libraries.
const MAKE: &str = "make -C hw libraries";

/// The names of all devices here.
pub fn names() -> impl Iterator<Item = &'static str> {
    OnionChopper::names().chain(Overlay::names()).chain(HalfGates::names()).chain(Phepu::names())
}

/// Where the library of one of them lies; it is looked for and not loaded.
///
/// # Errors
/// It is not where it is looked for.
pub fn built(name: &str) -> Result<PathBuf, Error> {
    find(name, name.trim_start_matches("rtl:"))
}

/// Opens any of them as it is by default.
///
/// # Errors
/// There is no such device, or its library has not been built.
pub fn open(name: &str) -> Result<Device, Error> {
    if Overlay::names().any(|n| n == name) {
        return Ok(Overlay::open(name)?.device());
    }
    if HalfGates::names().any(|n| n == name) {
        return Ok(HalfGates::open(name)?.device());
    }
    if Phepu::names().any(|n| n == name) {
        return Ok(Phepu::open(name)?.device());
    }
    if OnionChopper::names().any(|n| n == name) {
        return Ok(OnionChopper::open(name)?.device());
    }
    Err(library::unknown(name, names()))
}

/// The simulated chips as a kind of devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chips;

impl DeviceKind for Chips {
    fn prefix(&self) -> &'static str {
        "rtl"
    }

    fn names(&self) -> Vec<String> {
        names().map(str::to_owned).collect()
    }

    fn list(&self) -> Vec<Listed> {
        let available = |name| {
            open(name).map(drop).map_err(|e| match built(name) {
                Ok(_) => e.to_string(), // it is there, and no chip that serves
                Err(_) => match library::folder() {
                    Some(folder) => {
                        format!(
                            "not in {}; run `{MAKE}`, or set BLINDCORE_RTL to its folder",
                            folder.display()
                        )
                    }
                    None => format!(
                        "this program is in no build folder; set BLINDCORE_RTL to the one that `{MAKE}` fills"
                    ),
                },
            })
        };
        names().map(|name| Listed { name: name.into(), available: available(name) }).collect()
    }

    fn open(&self, name: &str, _: &OpenOptions) -> Result<Device, Error> {
        open(name)
    }

    fn remedy(&self, name: &str) -> Option<String> {
        Some(match built(name) {
            Ok(_) => format!("build it again with `{MAKE}`"),
            Err(_) => format!(
                "run `{MAKE}`, which installs Verilator beside the build and makes it, and set BLINDCORE_RTL to the folder \
                 that holds it if that is another"
            ),
        })
    }
}
