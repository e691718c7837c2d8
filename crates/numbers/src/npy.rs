//! NumPy's NPY, formats 1.0, 2.0 and 3.0.
//!
//! | bytes   | what                                                               |
//! |---------|--------------------------------------------------------------------|
//! | 6       | `\x93NUMPY`                                                        |
//! | 2       | the version                                                        |
//! | 2 or 4  | the length of the header, little-endian; 4 bytes from 2.0 on       |
//! | header  | a Python dictionary of `descr`, `fortran_order` and `shape`        |
//! | the end | the elements, without gaps                                         |
//!
//! Source: NumPy Enhancement Proposal 1 and the documentation of `numpy.lib.format`. The header is parsed as the
//! three entries it may have and nothing else of Python; objects, which are pickles, are refused.

use std::io::{self, Read, Write};

use crate::Values;
use crate::error::{Error, Reading, shown};
use crate::values::Run;
use crate::writing::Writing;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bytes of a header, at most; NumPy writes about 100 and reads 10,000.
const MAX_HEADER_BYTES: usize = 10_000;
/// Axes, at most.
pub(crate) const MAX_AXES: usize = 8;
const SAVE_AGAIN: &str = "save the array again with numpy.save";
const ONE_BY_ONE: &str = "save each field on its own";
const CONVERT: &str = "convert it with astype(\"int64\") or astype(\"float64\") and save it again";

/// Reads an array from a file of `len` bytes.
pub(crate) fn read(mut reader: impl Read, len: u64, reading: &Reading) -> Result<Values, Error> {
    let damaged = |why: &str| reading.unfit(why, SAVE_AGAIN);
    let mut take = |bytes: &mut [u8]| match reader.read_exact(bytes) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(damaged("it ends within its header")),
        done => done.map_err(|e| reading.io(e)),
    };
    let mut start = [0; 8];
    take(&mut start)?;
    if &start[..6] != MAGIC {
        return Err(reading.unfit("it is not an NPY file: it doesn't start with \\x93NUMPY", SAVE_AGAIN));
    }
    let (header_len, length_bytes) = match (start[6], start[7]) {
        (1, 0) => {
            let mut length = [0; 2];
            take(&mut length)?;
            (usize::from(u16::from_le_bytes(length)), 2)
        }
        (2 | 3, 0) => {
            let mut length = [0; 4];
            take(&mut length)?;
            (u32::from_le_bytes(length) as usize, 4)
        }
        (major, minor) => {
            let why = format!("its format is {major}.{minor}; 1.0, 2.0 and 3.0 are known");
            return Err(reading.unfit(why, SAVE_AGAIN));
        }
    };
    if header_len > MAX_HEADER_BYTES {
        let why = format!("its header of {header_len} B is over the limit of {MAX_HEADER_BYTES} B");
        return Err(reading.unfit(why, SAVE_AGAIN));
    }
    let mut header = vec![0; header_len];
    take(&mut header)?;
    let Header { descr, fortran, shape } =
        Header::parse(&header).map_err(|(why, remedy)| reading.unfit(why, remedy))?;
    let (element, big) = Element::named(&descr).map_err(|(why, remedy)| reading.unfit(why, remedy))?;

    let count = if shape.contains(&0) {
        0
    } else {
        let count = shape.iter().try_fold(1usize, |n, axis| n.checked_mul(*axis));
        count.filter(|n| *n <= reading.limit).ok_or_else(|| reading.too_many())?
    };
    let want = count as u64 * element.bytes() as u64;
    let got = len.saturating_sub((8 + length_bytes + header_len) as u64);
    if got != want {
        let why = format!("its shape {shape:?} of {descr} takes {want} B, and {got} B follow its header");
        return Err(reading.unfit(why, "it was cut or appended to; copy or save it again"));
    }
    let elements = Elements { reader, big, count, shape: &shape, fortran, reading };
    let run = match element {
        Element::I8 => Run::Int(elements.read(|[b]: [u8; 1]| Ok(i64::from(b as i8)))?),
        Element::I16 => Run::Int(elements.read(|b| Ok(i64::from(i16::from_le_bytes(b))))?),
        Element::I32 => Run::Int(elements.read(|b| Ok(i64::from(i32::from_le_bytes(b))))?),
        Element::I64 => Run::Int(elements.read(|b| Ok(i64::from_le_bytes(b)))?),
        Element::U8 => Run::Int(elements.read(|[b]: [u8; 1]| Ok(i64::from(b)))?),
        Element::U16 => Run::Int(elements.read(|b| Ok(i64::from(u16::from_le_bytes(b))))?),
        Element::U32 => Run::Int(elements.read(|b| Ok(i64::from(u32::from_le_bytes(b))))?),
        Element::U64 => Run::Int(elements.read(|b| unsigned(u64::from_le_bytes(b)))?),
        Element::F32 => Run::Float(elements.read(|b| finite(f64::from(f32::from_le_bytes(b))))?),
        Element::F64 => Run::Float(elements.read(|b| finite(f64::from_le_bytes(b)))?),
    };
    run.shaped(reading, &shape, fortran)
}

/// What is wrong with a value, and what to do.
pub(crate) type Flaw = (String, &'static str);

pub(crate) fn unsigned(value: u64) -> Result<i64, Flaw> {
    i64::try_from(value).map_err(|_| {
        (format!("{value} is over the limit of 2^63 - 1"), "keep integers from -2^63 to 2^63 - 1")
    })
}

pub(crate) fn finite(value: f64) -> Result<f64, Flaw> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err((format!("{value} is not finite"), "keep finite numbers only"))
    }
}

/// Elements about to be read.
struct Elements<'a, R> {
    reader: R,
    big: bool,
    count: usize,
    shape: &'a [usize],
    fortran: bool,
    reading: &'a Reading<'a>,
}

impl<R: Read> Elements<'_, R> {
    /// Reads elements of `N` bytes; `number` is given each in little-endian order.
    fn read<const N: usize, T>(
        mut self,
        number: impl Fn([u8; N]) -> Result<T, Flaw>,
    ) -> Result<Vec<T>, Error> {
        let mut values = Vec::with_capacity(self.count); // the file was found to hold this many
        let mut buffer = vec![[0; N]; self.count.min(8192)];
        while values.len() < self.count {
            let part = (self.count - values.len()).min(buffer.len());
            let bytes = buffer[..part].as_flattened_mut();
            self.reader.read_exact(bytes).map_err(|e| self.reading.io(e))?;
            for element in &mut buffer[..part] {
                if self.big {
                    element.reverse();
                }
                let value = number(*element)
                    .map_err(|(why, remedy)| self.reading.value(self.place(values.len()), why, remedy))?;
                values.push(value);
            }
        }
        Ok(values)
    }

    /// The index of the `n`-th element of the file.
    fn place(&self, mut n: usize) -> String {
        let mut index = vec![0; self.shape.len()];
        let mut step = |i: usize| {
            index[i] = n % self.shape[i];
            n /= self.shape[i];
        };
        if self.fortran {
            (0..self.shape.len()).for_each(&mut step);
        } else {
            (0..self.shape.len()).rev().for_each(&mut step);
        }
        format!("element {index:?}")
    }
}

/// What elements are.
#[derive(Clone, Copy)]
enum Element {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Element {
    /// Understands NumPy's name of a type; true where its bytes come highest first.
    fn named(descr: &str) -> Result<(Self, bool), Flaw> {
        let mut chars = descr.chars();
        let (order, kind, size) = (chars.next(), chars.next(), chars.as_str());
        let element = match (kind, size) {
            (Some('i'), "1") => Element::I8,
            (Some('i'), "2") => Element::I16,
            (Some('i'), "4") => Element::I32,
            (Some('i'), "8") => Element::I64,
            (Some('u'), "1") => Element::U8,
            (Some('u'), "2") => Element::U16,
            (Some('u'), "4") => Element::U32,
            (Some('u'), "8") => Element::U64,
            (Some('f'), "4") => Element::F32,
            (Some('f'), "8") => Element::F64,
            _ => {
                let (what, remedy) = match kind {
                    Some('O') => ("Python objects", "only numbers are read: a pickle may run code"),
                    Some('c') => ("complex numbers", "save real and imaginary parts on their own"),
                    Some('U' | 'S' | 'a') => ("strings", CONVERT),
                    Some('b') => ("booleans", CONVERT),
                    Some('M' | 'm') => ("dates or times", CONVERT),
                    Some('V') => ("structures", ONE_BY_ONE),
                    _ => ("a kind that isn't known", CONVERT),
                };
                let why = format!("its elements, {}, are {what}", shown(descr));
                let why = if kind == Some('f') {
                    format!("its elements, {}, are floats of neither 4 nor 8 B", shown(descr))
                } else {
                    why
                };
                return Err((why, remedy));
            }
        };
        let big = match order {
            Some('<') => false,
            Some('>') => true,
            Some('|') if element.bytes() == 1 => false,
            _ => {
                let why = format!("its elements, {}, don't say the order of their bytes", shown(descr));
                return Err((why, SAVE_AGAIN));
            }
        };
        Ok((element, big))
    }

    fn bytes(self) -> usize {
        match self {
            Element::I8 | Element::U8 => 1,
            Element::I16 | Element::U16 => 2,
            Element::I32 | Element::U32 | Element::F32 => 4,
            Element::I64 | Element::U64 | Element::F64 => 8,
        }
    }
}

struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, Flaw> {
        let structures = |text: &Literal| text.0.trim_ascii_start().starts_with(['[', '(']);
        let damaged = |why: String| (why, SAVE_AGAIN);
        let text = str::from_utf8(bytes).map_err(|_| damaged("its header is not UTF-8".into()))?;
        let mut rest = Literal(text.trim_ascii());
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        rest.expect('{').map_err(damaged)?;
        while !rest.accept('}') {
            let key = rest.string().map_err(damaged)?;
            rest.expect(':').map_err(damaged)?;
            let again = match key {
                "descr" if structures(&rest) => {
                    return Err(("its elements are structures, not numbers".into(), ONE_BY_ONE));
                }
                "descr" => descr.replace(rest.string().map_err(damaged)?.to_owned()).is_some(),
                "fortran_order" => fortran.replace(rest.boolean().map_err(damaged)?).is_some(),
                "shape" => shape.replace(rest.tuple().map_err(damaged)?).is_some(),
                _ => return Err(damaged(format!("its header has an entry {}", shown(key)))),
            };
            if again {
                return Err(damaged(format!("its header has two entries {key:?}")));
            }
            if !rest.accept(',') {
                rest.expect('}').map_err(damaged)?;
                break;
            }
        }
        if !rest.0.is_empty() {
            return Err(damaged(format!("its header goes on after its end, with {}", shown(rest.0))));
        }
        let missing = |key| damaged(format!("its header has no entry {key:?}"));
        Ok(Self {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }
}

/// What is left of a Python literal.
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn accept(&mut self, wanted: char) -> bool {
        match self.0.trim_ascii_start().strip_prefix(wanted) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.accept(wanted) { Ok(()) } else { Err(self.flaw(&format!("{wanted:?}"))) }
    }

    fn flaw(&self, wanted: &str) -> String {
        format!("its header has {} where {wanted} belongs", shown(self.0.trim_ascii_start()))
    }

    /// A string in quotes of either kind, without escapes.
    fn string(&mut self) -> Result<&'a str, String> {
        let text = self.0.trim_ascii_start();
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let (string, rest) =
            quote.and_then(|q| text[1..].split_once(q)).ok_or_else(|| self.flaw("a string"))?;
        self.0 = rest;
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        let text = self.0.trim_ascii_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = text.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(self.flaw("True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let mut numbers = Vec::new();
        self.expect('(')?;
        while !self.accept(')') {
            let text = self.0.trim_ascii_start();
            let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
            let number = text[..end].parse().map_err(|_| self.flaw("the length of an axis"))?;
            if numbers.len() == MAX_AXES {
                return Err(format!("it has more than the limit of {MAX_AXES} axes (reshape it to fewer)"));
            }
            numbers.push(number);
            // Python 2 wrote its long integers with an L.
            self.0 = text[end..].strip_prefix('L').unwrap_or(&text[end..]);
            if !self.accept(',') {
                self.expect(')')?;
                if numbers.len() == 1 {
                    return Err("its shape is a number, not a tuple".into());
                }
                break;
            }
        }
        Ok(numbers)
    }
}

pub(crate) fn write(out: &mut impl Write, writing: &Writing) -> Result<(), Error> {
    let (values, shape) = (writing.values, writing.values.shape());
    if shape.len() > MAX_AXES {
        let why = format!("{} axes are over the limit of {MAX_AXES}", shape.len());
        return Err(writing.misfit(why, "join some"));
    }
    let axes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if axes.len() == 1 { "," } else { "" };
    let descr = if values.as_int().is_some() { "<i8" } else { "<f8" };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", axes.join(", "));
    // What comes before the elements is a multiple of 64 bytes and ends a line.
    let pad = (64 - (10 + header.len() + 1) % 64) % 64;
    header.extend(std::iter::repeat_n(' ', pad));
    header.push('\n');
    let length = u16::try_from(header.len()).expect("eight axes take less than 300 B");
    let mut whole = || -> io::Result<()> {
        out.write_all(MAGIC)?;
        out.write_all(&[1, 0])?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(header.as_bytes())?;
        match values {
            Values::Int(array) => array.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
            Values::Float(array) => array.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        }
    };
    whole().map_err(|e| writing.io(e))
}
