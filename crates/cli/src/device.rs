//! Which device: the one place that knows every kind there is.

use blindcore_accel::Device;
use blindcore_accel_cpu::Cpu;

use crate::args::DeviceArgs;
use crate::config::Config;

/// Opens the device that flags, environment or settings name. Only `auto` chooses.
pub(crate) fn open(args: &DeviceArgs, config: &Config) -> anyhow::Result<Box<dyn Device>> {
    let name = args.device.as_deref().or(config.device.as_deref()).unwrap_or("auto");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.or(config.threads).unwrap_or(cores);
    anyhow::ensure!(
        (1..=1024).contains(&threads),
        "--threads is {threads}, outside 1 to 1024; say how many cores to use"
    );
    match name {
        "auto" => Ok(Box::new(Cpu::with_threads("cpu", threads)?)),
        name if name == "cpu" || name.starts_with("cpu:") => Ok(Box::new(Cpu::with_threads(name, threads)?)),
        name if name.starts_with("rtl:") => Ok(blindcore_accel_rtl::open(name)?),
        other => anyhow::bail!(
            "device {other:?} can't be opened: this build has no such device; use auto, cpu, cpu:portable, \
             cpu:avx2, cpu:avx512, cpu:amx, rtl:onionchopper, rtl:sifo-half-gates or rtl:phepu"
        ),
    }
}
