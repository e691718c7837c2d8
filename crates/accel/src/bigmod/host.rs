//! Residues in the host's memory.

use std::any::Any;
use std::sync::Arc;

use zeroize::Zeroize;

use super::modulus::BigModulus;
use super::residues::{ResidueRows, Residues};
use crate::{Error, Line};

/// What a device keeps in [`HostRows`]: two forms are equal if rows of one can be read as rows of the other.
///
/// A form is the key to its rows. Give it private fields, so that no other crate can make one.
pub trait Form: Any + Clone + PartialEq + Send + Sync {
    /// What the rows hold, for messages, such as `cpu:avx512`.
    fn name(&self) -> &str;

    /// Lines of a row.
    fn row_lines(&self) -> usize;
}

/// Rows of whole lines in the host's memory, in one form: [`ResidueRows`] for devices that compute there.
///
/// They are wiped when they go.
#[derive(Clone)]
pub struct HostRows<F: Form> {
    form: F,
    lines: Vec<Line>,
}

impl<F: Form> Drop for HostRows<F> {
    fn drop(&mut self) {
        self.lines.zeroize();
    }
}

impl<F: Form> HostRows<F> {
    /// `count` rows of zeros.
    ///
    /// # Panics
    /// They are more lines than can be addressed.
    #[must_use]
    pub fn zeroed(form: F, count: usize) -> Self {
        let lines = form.row_lines().checked_mul(count).expect("rows that can be addressed");
        Self { form, lines: vec![Line([0; 8]); lines] }
    }

    /// The rows of `residues`, if they are residues of `modulus` in this form. Anybody may pass residues to a device:
    /// one that reads them by address relies on this.
    ///
    /// # Errors
    /// [`Error::Residues`]: they are residues of another modulus, device or form. [`Error::Length`]: their rows have
    /// another length.
    pub fn of<'a>(residues: &'a Residues, modulus: &Arc<BigModulus>, form: &F) -> Result<&'a Self, Error> {
        let rows: &Self = residues.rows(modulus, form.name())?;
        rows.check(form)?;
        Ok(rows)
    }

    fn check(&self, form: &F) -> Result<(), Error> {
        let (got, want) = (self.form.row_lines(), form.row_lines());
        if self.form.name() == form.name() && got != want {
            let (what, want) = ("a row of residues", want.to_string());
            return Err(Error::Length { what, got, want, unit: "lines" });
        }
        if self.form != *form {
            let (got, want) = (self.form.name().into(), form.name().into());
            return Err(Error::Residues { got, want, same_modulus: true });
        }
        Ok(())
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len().checked_div(self.form.row_lines()).unwrap_or(0)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lines of a row.
    #[must_use]
    pub fn row_lines(&self) -> usize {
        self.form.row_lines()
    }

    /// Every row.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Every row, to be written.
    #[must_use]
    pub fn lines_mut(&mut self) -> &mut [Line] {
        &mut self.lines
    }

    /// Those at `positions`, in that order.
    ///
    /// # Panics
    /// A position is out of range.
    #[must_use]
    pub fn select(&self, positions: impl IntoIterator<Item = usize>) -> Self {
        let (row, positions) = (self.row_lines(), positions.into_iter());
        let lines = Vec::with_capacity(positions.size_hint().0 * row);
        let mut out = Self { form: self.form.clone(), lines };
        for position in positions {
            out.extend(&self.lines[position * row..][..row]);
        }
        out
    }

    /// These rows and then `others`.
    ///
    /// # Errors
    /// [`Error::Residues`] or [`Error::Length`]: `others` have another form.
    pub fn append(&mut self, others: &Self) -> Result<(), Error> {
        others.check(&self.form)?;
        self.extend(&others.lines);
        Ok(())
    }

    /// Lines at the end; memory that becomes too small for them is wiped before it is given back.
    fn extend(&mut self, lines: &[Line]) {
        let want = self.lines.len() + lines.len();
        if want > self.lines.capacity() {
            let mut larger = Vec::with_capacity(want.max(2 * self.lines.capacity()));
            larger.extend_from_slice(&self.lines);
            std::mem::replace(&mut self.lines, larger).zeroize();
        }
        self.lines.extend_from_slice(lines);
    }
}

impl<F: Form> ResidueRows for HostRows<F> {
    fn form(&self) -> &str {
        self.form.name()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn select(&self, positions: &mut dyn Iterator<Item = usize>) -> Box<dyn ResidueRows> {
        Box::new(self.select(positions))
    }

    fn append(&mut self, others: &dyn ResidueRows) -> Result<(), Error> {
        let any: &dyn Any = others;
        match any.downcast_ref::<Self>() {
            Some(others) => self.append(others),
            None => {
                let (got, want) = (others.form().into(), self.form.name().into());
                Err(Error::Residues { got, want, same_modulus: true })
            }
        }
    }

    fn duplicate(&self) -> Box<dyn ResidueRows> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forms of one device, told apart by name and length.
    #[derive(Clone, PartialEq)]
    struct Mine(&'static str, usize);

    /// Those of a device that names its forms alike.
    #[derive(Clone, PartialEq)]
    struct Theirs(Mine);

    impl Form for Mine {
        fn name(&self) -> &str {
            self.0
        }

        fn row_lines(&self) -> usize {
            self.1
        }
    }

    impl Form for Theirs {
        fn name(&self) -> &str {
            self.0.name()
        }

        fn row_lines(&self) -> usize {
            self.0.row_lines()
        }
    }

    fn modulus(n: u64) -> Arc<BigModulus> {
        Arc::new(BigModulus::odd(&[n]).unwrap())
    }

    fn numbered(form: Mine, count: u64) -> HostRows<Mine> {
        let mut rows = HostRows::zeroed(form, count as usize);
        rows.lines_mut().iter_mut().enumerate().for_each(|(i, line)| line.0[0] = i as u64);
        rows
    }

    #[test]
    fn rows_are_chosen_and_joined_in_order() {
        let (form, seven) = (Mine("mine", 2), modulus(7));
        let mut residues = Residues::new(&seven, numbered(form.clone(), 4)).select([3, 1]);
        residues.append(&Residues::new(&modulus(7), numbered(form.clone(), 1))).unwrap();
        let rows = HostRows::of(&residues.clone(), &seven, &form).unwrap().clone();
        assert_eq!((residues.len(), rows.row_lines()), (3, 2));
        assert!(rows.lines().iter().map(|line| line.0[0]).eq([6, 7, 2, 3, 0, 1]));
        assert!(residues.select([]).is_empty());
    }

    #[test]
    fn rows_of_another_modulus_device_form_or_length_are_refused() {
        let (form, seven) = (Mine("mine", 2), modulus(7));
        let mut mine = Residues::new(&seven, numbered(form.clone(), 1));
        let length = |got| Error::Length { what: "a row of residues", got, want: "2".into(), unit: "lines" };
        let other =
            |got: &str, same_modulus| Error::Residues { got: got.into(), want: "mine".into(), same_modulus };
        for (others, error) in [
            (Residues::new(&modulus(9), numbered(form.clone(), 1)), other("mine", false)),
            (Residues::new(&seven, numbered(Mine("yours", 2), 1)), other("yours", true)),
            (Residues::new(&seven, numbered(Mine("mine", 3), 1)), length(3)),
            (Residues::new(&seven, numbered(Mine("mine", 0), 1)), length(0)),
            (Residues::new(&seven, HostRows::zeroed(Theirs(form.clone()), 1)), other("mine", true)),
        ] {
            assert_eq!(HostRows::of(&others, &seven, &form).err(), Some(error.clone()));
            assert_eq!(mine.append(&others), Err(error));
        }
        assert_eq!(mine.len(), 1);
    }
}
