//! Cosines and sines of rotary embeddings.

use std::f64::consts::TAU;
use std::ops::Range;

/// How a model stretches the angles of a rotary embedding, to reach beyond the positions that it was
/// trained with.
///
/// The formulae are those of `modeling_rope_utils.py` in Hugging Face's transformers, whose
/// configurations call them `default`, `linear`, `llama3` and `yarn`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RotaryScaling {
    /// The frequency of pair `i` of `rotated / 2` is `base^(-2 · i / rotated)`.
    #[default]
    None,
    /// All frequencies are divided by a factor.
    Linear {
        /// The factor.
        factor: f64,
    },
    /// Frequencies of long waves are divided by a factor, those of short waves stay, and those
    /// between them are interpolated, as in Llama 3.1.
    Llama3 {
        /// The factor.
        factor: f64,
        /// Waves longer than `original_positions` over this are long.
        low_frequency_factor: f64,
        /// Waves shorter than `original_positions` over this are short.
        high_frequency_factor: f64,
        /// The number of positions that the model was trained with first.
        original_positions: f64,
    },
    /// YaRN: pairs that make few rotations within the original positions are divided by a factor,
    /// those that make many stay, and those between them are interpolated. Source: Peng et al.,
    /// "YaRN: Efficient Context Window Extension of Large Language Models", 2023.
    Yarn {
        /// The factor.
        factor: f64,
        /// The number of positions that the model was trained with first.
        original_positions: f64,
        /// The rotations of a pair that stays: 32 in most models.
        beta_fast: f64,
        /// The rotations of a pair that is divided: 1 in most models.
        beta_slow: f64,
        /// The factor of cosines and sines. `None` stands for `0.1 · ln(factor) + 1`, or 1 if
        /// `factor` is at most 1.
        attention_factor: Option<f64>,
    },
}

impl RotaryScaling {
    /// Returns the frequencies of pairs, in radians per position, and the factor of cosines and
    /// sines.
    fn frequencies(self, rotated: usize, base: f64) -> (Vec<f64>, f64) {
        let pairs = rotated / 2;
        let plain = (0..pairs).map(|pair| base.powf(-2.0 * pair as f64 / rotated as f64));
        match self {
            Self::None => (plain.collect(), 1.0),
            Self::Linear { factor } => (plain.map(|frequency| frequency / factor).collect(), 1.0),
            Self::Llama3 { factor, low_frequency_factor, high_frequency_factor, original_positions } => {
                let scaled = |frequency: f64| {
                    let rotations = original_positions * frequency / TAU;
                    let kept =
                        (rotations - low_frequency_factor) / (high_frequency_factor - low_frequency_factor);
                    match rotations {
                        _ if rotations < low_frequency_factor => frequency / factor,
                        _ if rotations > high_frequency_factor => frequency,
                        _ => (1.0 - kept) * frequency / factor + kept * frequency,
                    }
                };
                (plain.map(scaled).collect(), 1.0)
            }
            Self::Yarn { factor, original_positions, beta_fast, beta_slow, attention_factor } => {
                // The pair that makes so many rotations within the original positions.
                let pair_of = |rotations: f64| {
                    rotated as f64 * (original_positions / (rotations * TAU)).ln() / (2.0 * base.ln())
                };
                let first = pair_of(beta_fast).floor().max(0.0);
                let mut last = pair_of(beta_slow).ceil().min(rotated as f64 - 1.0);
                if first == last {
                    last += 0.001;
                }
                let scaled = |(pair, frequency): (usize, f64)| {
                    let divided = ((pair as f64 - first) / (last - first)).clamp(0.0, 1.0);
                    frequency / factor * divided + frequency * (1.0 - divided)
                };
                let usual = if factor > 1.0 { 0.1 * factor.ln() + 1.0 } else { 1.0 };
                (plain.enumerate().map(scaled).collect(), attention_factor.unwrap_or(usual))
            }
        }
    }
}

/// Returns the cosines and the sines of these positions, each as positions × `rotated / 2`, for
/// [`rotary`](super::rotary()) and [`Rotary`](crate::cached::Rotary).
///
/// `base` is the model's `rope_theta`. Angles are computed in `f64` and results rounded once, so
/// that those of large positions are exact as well.
///
/// ```
/// use tma_kernels::model::{RotaryScaling, rotary_tables};
///
/// let (cos, sin) = rotary_tables(0..32, 128, 10_000.0, RotaryScaling::None);
/// assert_eq!((cos.len(), cos[0], sin[0]), (32 * 64, 1.0, 0.0));
/// assert_eq!(cos[64], 1f32.cos()); // position 1 turns the first pair by one radian
/// ```
#[must_use]
pub fn rotary_tables(
    positions: Range<u32>,
    rotated: usize,
    base: f64,
    scaling: RotaryScaling,
) -> (Vec<f32>, Vec<f32>) {
    let (frequencies, factor) = scaling.frequencies(rotated, base);
    let angles = positions.flat_map(|position| {
        frequencies.iter().map(move |frequency| (f64::from(position) * frequency).sin_cos())
    });
    angles.map(|(sin, cos)| ((cos * factor) as f32, (sin * factor) as f32)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() <= 1e-6 * wanted.abs(), "{found}, not {wanted}");
    }

    #[test]
    fn frequencies_without_scaling_and_with_a_factor() {
        let (plain, factor) = RotaryScaling::None.frequencies(8, 10_000.0);
        plain.iter().zip([1.0, 0.1, 0.01, 0.001]).for_each(|(found, wanted)| near(*found, wanted));
        assert_eq!(factor, 1.0);
        let (divided, _) = RotaryScaling::Linear { factor: 4.0 }.frequencies(8, 10_000.0);
        divided.iter().zip(plain).for_each(|(found, plain)| near(*found, plain / 4.0));
    }

    /// The frequencies of Llama 3.1: short waves stay, long ones are divided by 8, and those in
    /// between follow the line between both.
    #[test]
    fn long_waves_of_llama() {
        let scaling = RotaryScaling::Llama3 {
            factor: 8.0,
            low_frequency_factor: 1.0,
            high_frequency_factor: 4.0,
            original_positions: 8192.0,
        };
        let (plain, _) = RotaryScaling::None.frequencies(128, 500_000.0);
        let (scaled, factor) = scaling.frequencies(128, 500_000.0);
        assert_eq!(factor, 1.0);
        let ratios: Vec<f64> = scaled.iter().zip(&plain).map(|(scaled, plain)| scaled / plain).collect();
        // Waves of 2048 positions begin at pair 28.2, those of 8192 at pair 35.
        ratios[..29].iter().for_each(|ratio| near(*ratio, 1.0));
        ratios[35..].iter().for_each(|ratio| near(*ratio, 0.125));
        assert!(ratios[28..36].is_sorted_by(|a, b| a >= b), "{ratios:?}");
        let rotations = 8192.0 * plain[32] / TAU;
        near(ratios[32], 0.125 + 0.875 * (rotations - 1.0) / 3.0);
    }

    #[test]
    fn yarn_interpolates_between_rotations() {
        let yarn = |attention_factor| RotaryScaling::Yarn {
            factor: 4.0,
            original_positions: 32_768.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention_factor,
        };
        let (plain, _) = RotaryScaling::None.frequencies(128, 1_000_000.0);
        let (scaled, factor) = yarn(None).frequencies(128, 1_000_000.0);
        near(factor, 0.1 * 4f64.ln() + 1.0);
        near(yarn(Some(1.5)).frequencies(128, 1_000_000.0).1, 1.5);
        // 32 rotations are made by pair 23.6, and 1 by pair 39.7.
        let ratios: Vec<f64> = scaled.iter().zip(&plain).map(|(scaled, plain)| scaled / plain).collect();
        ratios[..24].iter().for_each(|ratio| near(*ratio, 1.0));
        ratios[40..].iter().for_each(|ratio| near(*ratio, 0.25));
        near(ratios[32], 1.0 - 0.75 * 9.0 / 17.0);
    }

    #[test]
    fn tables_hold_all_positions_times_the_factor() {
        let yarn = RotaryScaling::Yarn {
            factor: 1.0,
            original_positions: 64.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention_factor: Some(2.0),
        };
        let (cos, sin) = rotary_tables(5..7, 4, 100.0, yarn);
        let wanted = [5.0, 0.5, 6.0, 0.6].map(|angle: f64| (2.0 * angle.cos(), 2.0 * angle.sin()));
        for ((cos, sin), wanted) in cos.iter().zip(&sin).zip(wanted) {
            near(f64::from(*cos), wanted.0);
            near(f64::from(*sin), wanted.1);
        }
    }
}
