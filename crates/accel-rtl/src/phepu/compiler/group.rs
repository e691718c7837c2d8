//! What programs compute in: a commutative group.

/// A commutative group, written as multiplication.
pub trait Group {
    /// Its elements.
    type Element: Clone;
    /// What changes nothing.
    fn one(&self) -> Self::Element;
    /// x times y.
    fn multiply(&self, x: &Self::Element, y: &Self::Element) -> Self::Element;
    /// x times x.
    fn square(&self, x: &Self::Element) -> Self::Element;
    /// What makes one of x; none if x is not a unit.
    fn invert(&self, x: &Self::Element) -> Option<Self::Element>;
}

/// The integers modulo a number, 1 to 2^63, under addition, each below it: what Paillier's plaintexts are to its ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegersModulo(pub u64);

impl Group for IntegersModulo {
    type Element = u64;

    fn one(&self) -> u64 {
        0
    }

    fn multiply(&self, x: &u64, y: &u64) -> u64 {
        (x + y) % self.0
    }

    fn square(&self, x: &u64) -> u64 {
        2 * x % self.0
    }

    fn invert(&self, x: &u64) -> Option<u64> {
        Some((self.0 - x % self.0) % self.0)
    }
}
