//! Multi-exponentiations: products of powers to small signed weights.

use crate::Error;

/// The largest weight of a [`MultiExp`], as a magnitude.
pub const MAX_WEIGHT: i64 = 1 << 40;

/// A multi-exponentiation: `out[p, m] = product over k of x[index[p, k]] ^ weight[m, k]`, Paillier's dot product.
///
/// `positions` P by `terms` K indices into the residues, [`MultiExp::ABSENT`] for a term that is not there (the padding
/// of a convolution); `outputs` M by K signed weights. Results are ordered by position, then by output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiExp {
    /// K, at least 1.
    pub terms: usize,
    /// P x K indices.
    pub indices: Vec<u32>,
    /// M x K weights, each at most [`MAX_WEIGHT`] in magnitude.
    pub weights: Vec<i64>,
    /// How; devices that know one way only may ignore it, for the results are the same.
    pub method: Method,
}

impl MultiExp {
    /// The index of a term that is not there.
    pub const ABSENT: u32 = u32::MAX;

    /// Every output from all of `terms` residues: a matrix of weights times a vector.
    #[must_use]
    pub fn matrix(terms: usize, weights: Vec<i64>) -> Self {
        Self { terms, indices: (0..terms as u32).collect(), weights, method: Method::Auto }
    }

    /// P.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.indices.len() / self.terms.max(1)
    }

    /// M.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.weights.len() / self.terms.max(1)
    }

    /// That shapes, indices and weights are in range for `count` residues.
    ///
    /// # Errors
    /// They are not; the first that is out of range is named.
    pub fn check(&self, count: usize) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::MultiExp { why });
        if self.terms == 0 {
            return refuse("it has no terms".into());
        }
        if !self.indices.len().is_multiple_of(self.terms) || !self.weights.len().is_multiple_of(self.terms) {
            return refuse(format!(
                "{} indices and {} weights are not whole rows of {} terms",
                self.indices.len(),
                self.weights.len(),
                self.terms
            ));
        }
        if self.positions().checked_mul(self.outputs()).is_none_or(|n| n > u32::MAX as usize) {
            return refuse(format!(
                "{} positions by {} outputs are over the {} results that are addressed",
                self.positions(),
                self.outputs(),
                u32::MAX
            ));
        }
        if let Some(i) = self.indices.iter().position(|i| *i != Self::ABSENT && *i as usize >= count) {
            return refuse(format!(
                "index {} of position {} is not below the {count} residues",
                self.indices[i],
                i / self.terms
            ));
        }
        if let Some(i) = self.weights.iter().position(|w| w.unsigned_abs() > MAX_WEIGHT as u64) {
            return refuse(format!(
                "weight {} of output {} is over {MAX_WEIGHT} in magnitude",
                self.weights[i],
                i / self.terms
            ));
        }
        Ok(())
    }
}

/// How a [`MultiExp`] is worked out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The cheapest of the others by the device's cost model.
    #[default]
    Auto,
    /// PH-EPU's dataflow (Fig. 15.4.4): a partial product for each bit of the weights, zero bits skipped; each
    /// aligned by squarings, the sign bit's inverted once.
    BitSerial,
    /// Pippenger: a bucket for each magnitude, inputs inverted beforehand for negative weights.
    Buckets,
    /// Straus: the products of every subset of a few inputs, looked up bit by bit of the weights and shared by all
    /// outputs of a position.
    Tables,
}
