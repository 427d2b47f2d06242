//! Learning rates.

use tma_train::schedule::{Decay, Schedule, learning_rate};

fn rates(decay: Decay) -> Vec<f32> {
    let schedule = Schedule { peak: 1.0, warmup: 4, steps: 9, decay };
    (0..9).map(|step| learning_rate(&schedule, step)).collect()
}

#[test]
fn rates_grow_and_then_decay() {
    let half = |cosine: f64| (0.1 + 0.9 * (1.0 + cosine) / 2.0) as f32;
    let root = std::f64::consts::FRAC_1_SQRT_2;
    assert_eq!(rates(Decay::Linear), [0.25, 0.5, 0.75, 1.0, 1.0, 0.775, 0.55, 0.325, 0.1]);
    assert_eq!(rates(Decay::Constant), [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let wanted = [0.25, 0.5, 0.75, 1.0, 1.0, half(root), half(0.0), half(-root), 0.1];
    for (found, wanted) in rates(Decay::Cosine).into_iter().zip(wanted) {
        assert!((found - wanted).abs() < 1e-7, "{found}, wanted {wanted}");
    }
}

#[test]
fn short_runs_have_rates_too() {
    for (warmup, steps) in [(0, 1), (0, 2), (1, 2)] {
        for decay in [Decay::Cosine, Decay::Linear, Decay::Constant] {
            let schedule = Schedule { peak: 2.0, warmup, steps, decay };
            let all: Vec<_> = (0..steps).map(|step| learning_rate(&schedule, step)).collect();
            assert!(all.iter().all(|rate| (0.2..=2.0).contains(rate)), "{all:?}");
            assert_eq!(all[0], 2.0);
        }
    }
}
