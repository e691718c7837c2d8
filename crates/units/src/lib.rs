//! Sizes, durations, progress, others' text and variables of the environment, as people write and read them. The one place
//! for each.
//!
//! ```
//! use blindcore_units::{bytes, duration, size};
//!
//! assert_eq!(size("1.5kB"), Some(1500));
//! assert_eq!(duration("12h"), Some(43_200.0));
//! assert_eq!(bytes(3 << 30), "3.00 GiB");
//! ```

pub mod option;
mod parse;
mod progress;
mod show;
mod text;
mod variable;

pub use parse::{duration, size, whole};
pub use progress::{Progress, SharedProgress, Unit};
pub use show::{bytes, count, counted, figure, seconds};
pub use text::{harmless, one_line, quoted, shown};
pub use variable::{is_empty_variable, text_variable, variable};
