//! Learning rates of steps: a linear warm-up, and then a decay.

use serde::{Deserialize, Serialize};

/// The change of the learning rate after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// Half a cosine, down to a tenth.
    Cosine,
    /// A line, down to a tenth.
    Linear,
    /// No change.
    Constant,
}

/// The share of the learning rate that the last step has.
const LAST_SHARE: f64 = 0.1;

/// The learning rates of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// The greatest learning rate.
    pub peak: f64,
    /// Warm-up steps.
    pub warmup: u32,
    /// Steps of the run.
    pub steps: u32,
    /// The change after the warm-up.
    pub decay: Decay,
}

/// Returns the learning rate of a step, of which the first one is 0. The last step of a run has
/// exactly a tenth of the greatest rate, unless the rate is constant or that step is the only one
/// after the warm-up.
pub fn learning_rate(schedule: &Schedule, step: u32) -> f32 {
    let Schedule { peak, warmup, steps, decay } = *schedule;
    if step < warmup {
        return (peak * f64::from(step + 1) / f64::from(warmup)) as f32;
    }
    let decaying = steps.saturating_sub(warmup + 1).max(1);
    let progress = (f64::from(step - warmup) / f64::from(decaying)).min(1.0);
    let remaining = match decay {
        Decay::Cosine => (1.0 + (std::f64::consts::PI * progress).cos()) / 2.0,
        Decay::Linear => 1.0 - progress,
        Decay::Constant => 1.0,
    };
    (peak * (LAST_SHARE + (1.0 - LAST_SHARE) * remaining)) as f32
}
