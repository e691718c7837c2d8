//! Which device: the one place that knows every kind there is, and that says what else to take.

use blindcore_accel::{Device, OpenOptions, Operation, Registry};
use blindcore_accel_cpu::Cpu;
use blindcore_accel_rtl::Chips;

use crate::config::Config;

/// The flags that say which.
#[derive(clap::Args)]
pub(crate) struct DeviceArgs {
    /// What computes: auto, or a device that `blindcore doctor` lists, such as cpu, cpu:avx2 or rtl:onionchopper
    /// [default: auto]
    #[arg(long, env = "BLINDCORE_DEVICE", value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// Threads that compute [default: one for each core]
    #[arg(long, env = "BLINDCORE_THREADS", value_name = "N")]
    pub(crate) threads: Option<usize>,
}

/// The kinds of devices of this build; `auto` takes the first kind's.
pub(crate) fn registry() -> Registry {
    Registry::new().with(Cpu).with(Chips)
}

/// Opens the device that flags, environment or settings name. Only `auto` chooses.
pub(crate) fn open(args: &DeviceArgs, config: &Config) -> anyhow::Result<Device> {
    let name = args.device.as_deref().or(config.device.as_deref()).unwrap_or("auto");
    let threads = args.threads.or(config.threads).unwrap_or_else(|| OpenOptions::default().threads);
    anyhow::ensure!(
        (1..=1024).contains(&threads),
        "threads (--threads) is {threads}, outside 1 to 1024; say how many cores to use"
    );
    let device = registry().open(name, &OpenOptions { threads })?;
    // What computes beside the device, samplers for example, keeps to what its name allows.
    blindcore_accel_cpu::limit_process(name);
    Ok(device)
}

/// The same, for a command that needs these operations: a device without one of them is refused at once.
pub(crate) fn open_for(
    args: &DeviceArgs,
    config: &Config,
    operations: &[Operation],
) -> anyhow::Result<Device> {
    let device = open(args, config)?;
    for operation in operations {
        let other = registry().automatic().unwrap_or_default();
        anyhow::ensure!(
            device.has(*operation),
            "device {:?} does not do {operation}; use --device {other}",
            device.name()
        );
    }
    Ok(device)
}
