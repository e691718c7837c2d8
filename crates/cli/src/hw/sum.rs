//! `blindcore hw run sum`: a convolution of encrypted numbers, on simulated PH-EPU chips.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use blindcore_accel_rtl::phepu::compiler::Dataflow;
use blindcore_files::{Access, NewFile};
use blindcore_repro::sum::{self, SumJob};
use blindcore_sum::keys::KeySize;
use clap::ValueEnum;

use super::{simulated, watched};
use crate::Outcome;
use crate::output;
use crate::sum::files::TestKeys;

/// Three sizes.
#[derive(Clone, Copy)]
struct Sizes([usize; 3]);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sizes: Option<Vec<usize>> = text.split('x').map(|size| size.parse().ok()).collect();
        let sizes = sizes.and_then(|sizes| <[usize; 3]>::try_from(sizes).ok());
        sizes.map(Self).ok_or_else(|| format!("{text:?} is not three sizes; say them as 2x6x6"))
    }
}

/// How a chip weighs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// The paper's: a partial sum for each bit of the weights, zero bits skipped
    BitSerial,
    /// A bucket for each magnitude of four bits, inputs inverted beforehand
    Buckets,
}

impl Way {
    fn dataflow(self) -> Dataflow {
        match self {
            Self::BitSerial => Dataflow::BitSerial,
            Self::Buckets => Dataflow::Buckets,
        }
    }
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  blindcore hw run sum                                             a small layer under a key of 2048 bits
  blindcore hw run sum --image 16x3x3 --kernels 16x3x3 --zeros 75  one position of 144 terms, sparse weights
  blindcore hw run sum --dataflow buckets --json                   inputs inverted first, half of the multiplications
  blindcore hw run sum --chips 8 --kernels 128x3x3                 the paper's card: a minute
  blindcore hw run sum --listing                                   with the chips' instructions

Pixels and weights are random. The client's code encrypts the image, the chips convolve it, the CPU does the same, every
ciphertext is compared, and the decrypted result with the convolution in the clear. The chips come from
`make -C hw libraries`, which also installs what it needs.")]
pub(crate) struct HwSum {
    /// The image: channels x rows x columns
    #[arg(long, value_name = "CxHxW", default_value = "2x6x6")]
    image: Sizes,
    /// The kernels: outputs x rows x columns
    #[arg(long, value_name = "OxHxW", default_value = "4x3x3")]
    kernels: Sizes,
    /// Steps from one place to the next, in rows and columns
    #[arg(long, value_name = "N", default_value_t = 1)]
    stride: usize,
    /// Zeros around the image
    #[arg(long, value_name = "N", default_value_t = 0)]
    padding: usize,
    /// Bits of a weight: 2, 4 or 8
    #[arg(long, value_name = "BITS", default_value_t = 8)]
    weight_bits: u32,
    /// Percent of the weights' bits that are zero, each by chance
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(..=100))]
    zeros: u8,
    /// How the chips weigh
    #[arg(long, value_enum, default_value = "bit-serial")]
    dataflow: Way,
    /// Chips: 1, or up to 8 on the paper's card, which share output channels, then rows and columns
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    chips: u8,
    /// Bits of the key's n: 2048; 512 and 1024 need --insecure-test-key
    #[arg(long, value_name = "BITS", default_value_t = 2048)]
    bits: u32,
    /// Let PCIe, memory and links take no time
    #[arg(long)]
    unbound: bool,
    /// Print the chips' instructions before the result, or write them to a new file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    listing: Option<Option<PathBuf>>,
    #[command(flatten)]
    test_keys: TestKeys,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &HwSum) -> anyhow::Result<Outcome> {
    let to_screen = args.listing == Some(None);
    anyhow::ensure!(
        !(to_screen && args.json),
        "--listing and --json would both print to standard output; give --listing=FILE"
    );
    if let Some(Some(file)) = &args.listing {
        anyhow::ensure!(
            file.symlink_metadata().is_err(),
            "--listing={} is there already; name a new file",
            file.display()
        );
    }
    let key = match args.bits {
        512 | 1024 => {
            anyhow::ensure!(
                args.test_keys.insecure_test_key,
                "--bits {} makes a key that protects nothing; use 2048, or say --insecure-test-key",
                args.bits
            );
            KeySize::test_only(args.bits)?
        }
        2048 => KeySize::new(2048)?,
        bits => {
            anyhow::bail!(
                "--bits {bits} is not a key that the chip carries; use 2048, or 512 or 1024 for tests"
            )
        }
    };
    let job = SumJob {
        image: args.image.0,
        kernels: args.kernels.0,
        stride: args.stride,
        padding: args.padding,
        weight_bits: args.weight_bits,
        zeros: args.zeros,
        dataflow: args.dataflow.dataflow(),
        chips: args.chips,
        bits: args.bits,
        key,
        unbound: args.unbound,
    };
    let mut listing = match &args.listing {
        Some(Some(path)) => Some((NewFile::create(path, Access::Everyone)?, path)),
        _ => None,
    };
    let run = watched(|| sum::run(&job))?;
    if let Some((mut file, path)) = listing.take() {
        write!(file, "{}", run.stream()).with_context(|| format!("{} can't be written", path.display()))?;
        file.keep()?;
        output::made(path);
    }
    if args.json {
        output::json(&run.document())?;
    } else {
        let text = run.text();
        output::print(&if to_screen { format!("{}\n{text}", run.stream()) } else { text })?;
        simulated(run.simulated());
    }
    Ok(Outcome::Done)
}
