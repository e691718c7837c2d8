//! The operations, by name.

use std::fmt;

/// The operations that a device may have a slot for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// [`crate::contract`]: a database times a query.
    Contract,
    /// [`crate::transform`]: number-theoretic transforms.
    Transform,
    /// [`crate::bigmod`]: arithmetic modulo a big number.
    Bigmod,
    /// [`crate::garble`]: garbling.
    Garble,
    /// [`crate::garble`]: evaluating what was garbled.
    Evaluate,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 5] = [Self::Contract, Self::Transform, Self::Bigmod, Self::Garble, Self::Evaluate];

    /// Its name, as it stands in a composed device's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Transform => "transform",
            Self::Bigmod => "bigmod",
            Self::Garble => "garble",
            Self::Evaluate => "evaluate",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
