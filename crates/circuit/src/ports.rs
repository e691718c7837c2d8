//! What an input or output is called, how wide it is and what its bits stand for; and how programs are cut.

/// Inputs that a circuit of a session can have, one bit each in a hello.
pub(crate) const MAX_INPUTS: usize = 1024;

/// Inputs that a file can declare, and outputs; of Verilog, ports. Each takes more memory than its bytes in the file.
pub(crate) const MAX_PORTS: usize = 1 << 16;

/// Inputs that are named where a message is about many.
pub(crate) const NAMED: usize = 8;

/// ANDs of a piece: what is garbled and evaluated while the piece before travels.
pub(crate) const PIECE: usize = 1 << 13;

/// What the bits of an input or output stand for. Circuits by name declare it; a file has no place for it, and its ports
/// are numbers, of which two's complement may be meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Bits of an element, where the port is a list; the first element lies in the lowest bits.
    pub element: Option<usize>,
    /// Whether the circuit takes its numbers as unsigned: a negative one would be a large one in silence.
    pub unsigned: bool,
    /// Whether the circuit is right only for elements that ascend strictly: the port is a set.
    pub ascending: bool,
}

impl Form {
    /// An unsigned number.
    pub const UNSIGNED: Self = Self { element: None, unsigned: true, ascending: false };

    /// A list of unsigned numbers of this many bits.
    #[must_use]
    pub const fn list(element: usize) -> Self {
        Self { element: Some(element), ..Self::UNSIGNED }
    }

    /// A list of numbers of this many bits modulo a power of two: with or without sign.
    #[must_use]
    pub const fn modular_list(element: usize) -> Self {
        Self { unsigned: false, ..Self::list(element) }
    }

    /// A strictly ascending list of unsigned numbers of this many bits.
    #[must_use]
    pub const fn set(element: usize) -> Self {
        Self { ascending: true, ..Self::list(element) }
    }
}

/// Name, width and form of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortShape {
    /// Its name.
    pub name: String,
    /// Its bits.
    pub width: usize,
    /// What they stand for.
    pub form: Form,
}

/// An input for which the circuit is not right, by what it declares. Shows nothing of the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "input {name} has to be a strictly ascending list, and its value {place} of {count} is not above the one before; \
     give the values as a list, such as 5,7,9, which is sorted for you"
)]
pub struct NotAscending {
    /// The input.
    pub name: String,
    /// Which element, counted from 1.
    pub place: usize,
    /// How many elements there are.
    pub count: usize,
}

impl PortShape {
    /// Whether the circuit is right for these bits, as far as it declares what it takes.
    ///
    /// # Errors
    /// It takes a strictly ascending list, and this is none.
    pub fn check(&self, bits: &[bool]) -> Result<(), NotAscending> {
        let Some(element) = self.form.element.filter(|_| self.form.ascending) else { return Ok(()) };
        let values: Vec<&[bool]> = bits.chunks(element).collect();
        match values.windows(2).position(|pair| !below(pair[0], pair[1])) {
            Some(at) => Err(NotAscending { name: self.name.clone(), place: at + 2, count: values.len() }),
            None => Ok(()),
        }
    }
}

/// Whether `a` is the lesser of two equally wide unsigned numbers, least significant bits first.
pub(crate) fn below(a: &[bool], b: &[bool]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}
