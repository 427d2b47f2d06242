//! Attention in plain Rust, with the tolerated error of a result.

mod elements;

pub(crate) use self::elements::*;

/// The elements of a query, and of the keys and values that it sees.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) q: &'a [f64],
    pub(crate) k: &'a [f64],
    pub(crate) v: &'a [f64],
    /// Numbers that are added to the scores of keys after scale and cap. If it is empty, there are none.
    pub(crate) additions: &'a [f64],
}

/// The softmax of scores.
#[derive(Clone, Copy)]
pub(crate) struct Softmax {
    /// The factor of scores.
    pub(crate) scale: f64,
    /// The limit of scores: a score `x` becomes `cap * tanh(x / cap)`.
    pub(crate) cap: Option<f64>,
    /// A score without a value.
    pub(crate) sink: Option<f64>,
}

impl Softmax {
    /// Returns the softmax of scores that are multiplied by `scale`.
    pub(crate) fn scaled(scale: f64) -> Self {
        Self { scale, cap: None, sink: None }
    }

    /// Returns the tolerated error of a score: `tanh.approx` has one of 2^-11, relative.
    fn tolerance(self) -> f64 {
        self.cap.unwrap_or(0.0) * 2f64.powi(-10)
    }
}

impl Row<'_> {
    /// Checks the result and the logarithm of the sum of exponentials.
    #[track_caller]
    pub(crate) fn check<T: Element>(self, found: &[T], lse: f32, softmax: Softmax) {
        let wanted = self.check_values(found, softmax);
        let error = (f64::from(lse) - wanted).abs();
        // `lg2.approx` has an error of up to 2^-22, absolute or relative; those of a sum and of
        // `ex2.approx` are as small.
        let bound = (wanted.abs() + 1.0) * 2f64.powi(-16) + softmax.tolerance();
        let is_right = wanted == f64::from(lse) || wanted.is_finite() && error <= bound;
        assert!(is_right, "a logarithm of {lse}, not {wanted}");
    }

    /// Checks the result. Returns the logarithm of the sum of exponentials.
    ///
    /// Weights are rounded to `T` before the second matmul, and so is the result. Each of these
    /// rounds by half a unit in the last place, relative to at most the greatest value. Other
    /// errors are smaller: `ex2.approx` has an error of up to 2^-22, and scores and sums, which are
    /// below 2^6, of some 2^-20 of their own size.
    #[track_caller]
    pub(crate) fn check_values<T: Element>(self, found: &[T], softmax: Softmax) -> f64 {
        let depth = self.q.len();
        let dot = |key: &[f64]| self.q.iter().zip(key).map(|(a, b)| a * b).sum::<f64>() * softmax.scale;
        let capped = |score: f64| softmax.cap.map_or(score, |cap| cap * (score / cap).tanh());
        let mut scores: Vec<f64> = self.k.chunks(depth).map(|key| capped(dot(key))).collect();
        for (score, addition) in scores.iter_mut().zip(self.additions) {
            *score += addition;
        }
        let sink = softmax.sink.filter(|_| !scores.is_empty()).unwrap_or(f64::NEG_INFINITY);
        let top = scores.iter().copied().fold(sink, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
        let total = if scores.is_empty() { 0.0 } else { weights.iter().sum::<f64>() + (sink - top).exp() };
        let greatest = self.v.iter().map(|v| v.abs()).fold(0.0, f64::max);
        let relative = 2.0 * T::ROUNDING + 2f64.powi(-13) + 2.0 * softmax.tolerance();
        let bound = greatest * (relative + scores.len() as f64 * T::LEAST);
        let columns = found.len(); // fewer than those of keys, if values are narrower
        for (column, found) in found.iter().enumerate() {
            let values = self.v.iter().skip(column).step_by(columns);
            let sum: f64 = values.zip(&weights).map(|(value, weight)| value * weight).sum();
            let wanted = if scores.is_empty() { 0.0 } else { sum / total };
            let error = (found.value() - wanted).abs();
            assert!(
                error <= bound,
                "column {column} is {found:?}, not {wanted}: wrong by {error:.1e} of {bound:.1e}"
            );
        }
        if scores.is_empty() { softmax.sink.unwrap_or(f64::NEG_INFINITY) } else { top + total.ln() }
    }
}
