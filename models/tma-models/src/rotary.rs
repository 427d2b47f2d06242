//! The angles of rotary embeddings, as Hugging Face's `modeling_rope_utils.py` computes them.

use std::f64::consts::PI;

/// The frequencies of a rotary embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct RotarySettings {
    /// The base of the frequencies: pair `i` of `n` turns by `base^(-i / n)` a position.
    pub base: f64,
    /// The change of frequencies for longer contexts.
    pub scaling: RotaryScaling,
}

/// A change of frequencies for contexts that are longer than those of training.
#[derive(Clone, Debug, PartialEq)]
pub enum RotaryScaling {
    /// None.
    None,
    /// All frequencies are divided by `factor` (Chen et al., "Extending Context Window of Large
    /// Language Models via Positional Interpolation", 2023).
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Low frequencies are divided by `factor`, and those between are blended, as in Llama 3.1.
    Llama3 {
        /// The divisor.
        factor: f64,
        /// Frequencies that turn less often than this within `context` are divided.
        low: f64,
        /// Frequencies that turn more often than this are not.
        high: f64,
        /// The positions of training.
        context: f64,
    },
    /// YaRN (Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models",
    /// 2023).
    Yarn {
        /// The divisor of low frequencies.
        factor: f64,
        /// Frequencies that turn more often than this within `context` are not divided.
        fast: f64,
        /// Frequencies that turn less often than this are divided.
        slow: f64,
        /// The positions of training.
        context: f64,
        /// The factor of cosines and sines; by default 0.1 · ln(factor) + 1.
        attention: Option<f64>,
    },
}

/// Cosines and sines: positions × pairs of columns.
#[derive(Clone, Debug, PartialEq)]
pub struct RotaryTables {
    /// Cosines.
    pub cos: Vec<f32>,
    /// Sines.
    pub sin: Vec<f32>,
}

impl RotarySettings {
    /// Returns the angles by which pairs turn from one position to the next.
    pub fn frequencies(&self, pairs: usize) -> Vec<f64> {
        let plain: Vec<f64> = (0..pairs).map(|pair| self.base.powf(-(pair as f64) / pairs as f64)).collect();
        // Blends a frequency with its quotient: 1 keeps it.
        let blended = |frequency: f64, factor: f64, kept: f64| frequency * (kept + (1.0 - kept) / factor);
        match &self.scaling {
            RotaryScaling::None => plain,
            RotaryScaling::Linear { factor } => {
                plain.into_iter().map(|frequency| frequency / factor).collect()
            }
            RotaryScaling::Llama3 { factor, low, high, context } => plain
                .into_iter()
                .map(|frequency| {
                    let turns = context * frequency / (2.0 * PI);
                    blended(frequency, *factor, ((turns - low) / (high - low)).clamp(0.0, 1.0))
                })
                .collect(),
            RotaryScaling::Yarn { factor, fast, slow, context, .. } => {
                // The pair that turns so often within the context.
                let pair_of =
                    |turns: f64| pairs as f64 * (context / (turns * 2.0 * PI)).ln() / self.base.ln();
                let first = pair_of(*fast).floor().max(0.0);
                let last = pair_of(*slow).ceil().min(2.0 * pairs as f64 - 1.0);
                let span = if last > first { last - first } else { 0.001 };
                let kept = |pair: usize| 1.0 - ((pair as f64 - first) / span).clamp(0.0, 1.0);
                plain.into_iter().enumerate().map(|(pair, x)| blended(x, *factor, kept(pair))).collect()
            }
        }
    }

    /// Returns the tables of so many positions and pairs.
    pub fn tables(&self, positions: usize, pairs: usize) -> RotaryTables {
        let factor = match self.scaling {
            RotaryScaling::None | RotaryScaling::Linear { .. } | RotaryScaling::Llama3 { .. } => 1.0,
            RotaryScaling::Yarn { attention: Some(attention), .. } => attention,
            RotaryScaling::Yarn { factor, attention: None, .. } if factor > 1.0 => 0.1 * factor.ln() + 1.0,
            RotaryScaling::Yarn { .. } => 1.0,
        };
        let frequencies = self.frequencies(pairs);
        let angles =
            || (0..positions).flat_map(|position| frequencies.iter().map(move |x| position as f64 * x));
        RotaryTables {
            cos: angles().map(|angle| (factor * angle.cos()) as f32).collect(),
            sin: angles().map(|angle| (factor * angle.sin()) as f32).collect(),
        }
    }
}
