//! Parquet where it is not compiled in: it is refused, and the feature named.

use std::io::Write;

use crate::Content;
use crate::error::{Error, Reading};
use crate::writing::Writing;

const WHY: &str = "this build knows no Parquet";
const REMEDY: &str = "build it with the feature `parquet`, or use CSV or NPY";

pub(crate) fn read<R>(_: R, reading: &Reading) -> Result<Content, Error> {
    Err(reading.unfit(WHY, REMEDY))
}

pub(crate) fn write(_: &mut impl Write, writing: &Writing) -> Result<(), Error> {
    Err(writing.misfit(WHY, REMEDY))
}
