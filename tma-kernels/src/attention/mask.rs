//! The keys that a query sees, and the factors of its scores.

use std::f32::consts::LOG2_E;

use super::AttentionError;

/// The keys that the queries of a sequence see. The last query is at the position of the last key:
/// with `queries` queries and `keys` keys, query `i` is at position `i + keys - queries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mask {
    /// All keys.
    Full,
    /// The keys up to the query's position.
    Causal,
    /// A window around the query's position.
    Window {
        /// The number of keys before the position, below 2^31.
        left: u32,
        /// The number of keys after it, below 2^31.
        right: u32,
    },
}

/// The bound of a window that hides no key.
const UNBOUNDED: u32 = i32::MAX as u32;

impl Mask {
    /// Returns the mask of options: `window` keys before a query's position and `window_after`
    /// keys after it, each of which may be absent, and none after it if `causal`. Bounds beyond
    /// the ends of all sequences, which have at most `most` queries and keys, hide nothing.
    pub(super) fn of(
        causal: bool,
        window: Option<usize>,
        window_after: Option<usize>,
        most: [usize; 2],
    ) -> Self {
        let [queries, keys] = most;
        // The last query is at position `keys - 1`, the first one at `keys - queries`.
        let left = window.filter(|&left| left.saturating_add(1) < keys);
        let right = if causal { Some(0) } else { window_after };
        let right = right.filter(|&right| causal || right.saturating_add(1) < queries);
        let bound = |keys: usize| u32::try_from(keys).unwrap_or(UNBOUNDED).min(UNBOUNDED);
        match (left, right) {
            (None, None) => Self::Full,
            (None, Some(0)) => Self::Causal,
            (left, right) => {
                Self::Window { left: left.map_or(UNBOUNDED, bound), right: right.map_or(UNBOUNDED, bound) }
            }
        }
    }

    /// Returns whether late queries see more keys than early ones. A work unit is then two tiles, one
    /// from each end of a sequence, which see together as many keys as those of any other unit.
    pub(super) fn has_pairs(self) -> bool {
        match self {
            Self::Full => false,
            Self::Causal => true,
            Self::Window { left, .. } => left == UNBOUNDED,
        }
    }

    /// Returns the numbers of keys before and after a query's position that it sees, below 2^31.
    pub(super) fn bounds(self) -> [u32; 2] {
        match self {
            Self::Full => [UNBOUNDED; 2],
            Self::Causal => [UNBOUNDED, 0],
            Self::Window { left, right } => [left, right],
        }
    }
}

/// The factors of scores, the products of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scores {
    /// The factor before the cap.
    pub(super) scale: f32,
    /// The limit of scores: a score `x` becomes `cap * tanh(x * scale / cap)`.
    pub(super) soft_cap: Option<f32>,
}

impl Scores {
    /// Returns the scale, by default 1 / √depth, and the cap.
    ///
    /// # Errors
    ///
    /// [`AttentionError::Factor`] if one of them, or their quotient, is not above 0 or too large
    /// for exponents of 2.
    pub(super) fn of(
        scale: Option<f32>,
        soft_cap: Option<f32>,
        depth: usize,
    ) -> Result<Self, AttentionError> {
        let scale = positive("scale", scale.unwrap_or(1.0 / (depth as f32).sqrt()))?;
        if let Some(cap) = soft_cap {
            positive("scale / soft_cap", scale / positive("soft_cap", cap)?)?;
        }
        Ok(Self { scale, soft_cap })
    }

    /// Returns the factor of a score, or of its hyperbolic tangent if there is a cap, in exponents
    /// of 2.
    pub(super) fn exponent_scale(self) -> f32 {
        self.soft_cap.unwrap_or(self.scale) * LOG2_E
    }

    /// Returns the factor of a score in the hyperbolic tangent, or 0 without a cap.
    pub(super) fn cap_scale(self) -> f32 {
        self.soft_cap.map_or(0.0, |cap| self.scale / cap)
    }
}

/// Returns the number if it is above zero, and small enough for exponents of 2.
fn positive(option: &'static str, number: f32) -> Result<f32, AttentionError> {
    match number > 0.0 && (number * LOG2_E).is_finite() {
        true => Ok(number),
        false => Err(AttentionError::Factor { option, number }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a query sees a key, from the definitions of the options.
    fn sees(causal: bool, window: [Option<usize>; 2], position: i64, key: i64) -> bool {
        let [left, right] = window.map(|keys| keys.map(|keys| keys.min(1 << 40) as i64));
        left.is_none_or(|left| key >= position - left)
            && right.is_none_or(|right| key <= position + right)
            && (!causal || key <= position)
    }

    #[test]
    fn masks_show_the_keys_of_the_options() {
        let bounds = [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(usize::MAX)];
        for (queries, keys) in [(1, 1), (1, 4), (4, 1), (3, 4), (4, 4), (5, 3)] {
            for (left, right) in bounds.iter().flat_map(|&left| bounds.map(|right| (left, right))) {
                for causal in [false, true] {
                    let mask = Mask::of(causal, left, right, [queries, keys]);
                    let [before, after] = mask.bounds().map(i64::from);
                    for (query, key) in (0..queries).flat_map(|query| (0..keys).map(move |key| (query, key)))
                    {
                        let (position, key) = ((query + keys) as i64 - queries as i64, key as i64);
                        let is_visible = key >= position - before && key <= position + after;
                        let wanted = sees(causal, [left, right], position, key);
                        assert_eq!(
                            is_visible, wanted,
                            "{mask:?}: query {query} of {queries}, key {key} of {keys}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_that_hide_nothing_are_omitted() {
        let mask = |causal, left, right| Mask::of(causal, left, right, [4, 6]);
        assert_eq!(mask(false, Some(5), Some(3)), Mask::Full);
        assert_eq!(mask(true, Some(5), Some(7)), Mask::Causal);
        assert_eq!(mask(false, None, Some(0)), Mask::Causal);
        assert_eq!(mask(true, Some(4), None), Mask::Window { left: 4, right: 0 });
        assert_eq!(mask(false, Some(5), Some(2)), Mask::Window { left: UNBOUNDED, right: 2 });
        assert!(mask(false, None, Some(2)).has_pairs() && !mask(true, Some(4), None).has_pairs());
    }

    #[test]
    fn factors_that_are_not_positive_are_rejected() {
        for (scale, cap, option) in [
            (Some(0.0), None, "scale"),
            (Some(f32::NAN), Some(1.0), "scale"),
            (None, Some(0.0), "soft_cap"),
            (None, Some(2.4e38), "soft_cap"),
            (None, Some(f32::NAN), "soft_cap"),
            (Some(1e-20), Some(1e30), "scale / soft_cap"),
            (Some(1e20), Some(1e-30), "scale / soft_cap"),
        ] {
            match Scores::of(scale, cap, 64) {
                Err(AttentionError::Factor { option: found, .. }) => assert_eq!(found, option),
                other => panic!("{scale:?}, {cap:?}: {other:?}"),
            }
        }
    }
}
