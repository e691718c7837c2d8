//! Thrift's compact protocol, as far as Parquet's metadata need it. Source: Apache Thrift, `thrift-compact-protocol.md`.

/// What is left of a structure in Thrift's compact protocol.
pub(crate) struct Thrift<'a>(pub(crate) &'a [u8]);

impl Thrift<'_> {
    pub(crate) const I32: u8 = 5;
    pub(crate) const I8: u8 = 3;
    pub(crate) const I64: u8 = 6;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const STRUCT: u8 = 12;
    /// Structures of one list: row groups, columns of one, parts of a schema.
    pub(crate) const STRUCTS: u64 = 1 << 16;

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return (shift < 63 || byte < 2).then_some(value);
            }
        }
        None
    }

    pub(crate) fn integer(&mut self) -> Option<i64> {
        let zigzag = self.varint()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// The next field's number and type; `Some(None)` at the end of the structure.
    pub(crate) fn field(&mut self, last: &mut i64) -> Option<Option<(i64, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *last = match byte >> 4 {
            0 => self.integer()?,
            delta => *last + i64::from(delta),
        };
        i16::try_from(*last).ok()?;
        Some(Some((*last, byte & 15)))
    }

    /// The length of a list and the type of its elements.
    pub(crate) fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let length = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
        let kind = byte & 15;
        (kind != Self::STRUCT || length <= Self::STRUCTS).then_some((length, kind))
    }

    pub(crate) fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 | 2 => {} // a boolean field is its type
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => self.0 = self.0.get(8..)?,
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.0 = self.0.get(length..)?;
            }
            Self::LIST | 10 => {
                let (length, kind) = self.list()?;
                for _ in 0..length {
                    self.element(kind, depth)?;
                }
            }
            11 => {
                let length = self.varint()?;
                let kinds = if length == 0 { 0 } else { self.byte()? };
                for _ in 0..length {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 15, depth)?;
                }
            }
            Self::STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Within lists and maps a boolean takes a byte, so that every element takes one at least.
    pub(crate) fn element(&mut self, kind: u8, depth: u32) -> Option<()> {
        if matches!(kind, 1 | 2) { self.byte().map(drop) } else { self.skip(kind, depth) }
    }
}
