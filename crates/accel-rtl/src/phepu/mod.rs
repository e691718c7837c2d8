//! PH-EPU, the Paillier processor of 2023, simulated: a device for bigmod, and a card that runs the compiler's streams.
//!
//! ```no_run
//! use blindcore_accel::bigmod::{BigModulus, Numbers};
//! use blindcore_accel_rtl::phepu::Phepu;
//!
//! let device = Phepu::open("rtl:phepu")?; // made by `make -C hw libraries`
//! let bigmod = device.device().bigmod(&BigModulus::odd(&[1_000_003])?)?;
//! let x = bigmod.place(&Numbers::from_words(1, [&[2][..], &[3]]))?;
//! let (squares, cost) = bigmod.square(&x, 1)?;
//! assert_eq!(bigmod.read(&squares)?.as_words(), [4, 9]);
//! println!("{} clocks", cost.cycles);
//! # Ok::<(), blindcore_accel::Error>(())
//! ```
//!
//! ```text
//!   Bigmod ──batch, or compiler───────▶ Stream ──▶ Card::run ──words, masks of chips──▶ library
//!   Residues: x R mod m                  Context: m, R^2, R, n' ┘ └──◀── outputs by tag, reports ──┘
//! ```
//!
//! Residues stay in Montgomery's form, which the chips themselves take numbers into and out of. Multi-exponentiations ([`MultiExp`]) go
//! through the [`compiler`]; products, powers and inverses are batches over all elements. [`Run`] has what each chip and
//! each element counted, and which failed: one that fails does not hold up the others.
//!
//! [`MultiExp`]: blindcore_accel::bigmod::MultiExp

mod batch;
mod bigmod;
mod card;
pub mod compiler;
mod context;
mod library;
mod multi_exp;
mod report;

pub use bigmod::Phepu;
pub use card::{Build, Card, CardSettings};
pub use context::{Context, DIGIT_BITS, MAX_BITS};
pub use report::{CardReport, ChipReport, ElementReport, Failure, Run};
