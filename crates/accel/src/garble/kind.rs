//! Garbling schemes without their keys.

/// A scheme without its key: what a device is asked whether it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GarblingKind {
    /// [`super::GarblingScheme::HalfGates`].
    HalfGates,
    /// [`super::GarblingScheme::ThreeHalves`].
    ThreeHalves,
    /// [`super::GarblingScheme::InsecureSifo`].
    InsecureSifo,
}

impl GarblingKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::HalfGates, Self::ThreeHalves, Self::InsecureSifo];
}

impl std::fmt::Display for GarblingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::HalfGates => "half gates",
            Self::ThreeHalves => "three halves",
            Self::InsecureSifo => "SIFO's garbling",
        })
    }
}
