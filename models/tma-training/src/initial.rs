//! Initial values of parameters.

use std::f64::consts::TAU;

use rayon::prelude::*;
use tma_kernels::optimizer::ParameterLayout;
use tma_models::random::mixed;

use crate::model::{Init, Tensor};

/// The numbers that a thread computes at a time; an even number.
const CHUNK: usize = 1 << 14;

/// Returns the initial values of all tensors, in the order of memory.
pub(crate) fn values(tensors: &[Tensor], layout: &ParameterLayout, seed: u64) -> Vec<f32> {
    let mut all = vec![0.0; layout.len()];
    for (tensor, range) in tensors.iter().zip(layout.ranges()) {
        let values = &mut all[range.clone()];
        match tensor.init {
            Init::Zeros => {}
            Init::Ones => values.fill(1.0),
            Init::Normal { deviation } => fill_normal(values, key_of(&tensor.name, seed), deviation),
        }
    }
    all
}

/// Returns the key of a tensor's numbers.
fn key_of(name: &str, seed: u64) -> u64 {
    name.bytes().fold(mixed(seed), |key, byte| mixed(key ^ u64::from(byte)))
}

/// Writes numbers with a normal distribution and a mean of 0.
fn fill_normal(values: &mut [f32], key: u64, deviation: f32) {
    values.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, values)| {
        for (pair, values) in values.chunks_mut(2).enumerate() {
            let numbers = normal_pair(key.wrapping_add((chunk * CHUNK / 2 + pair) as u64));
            for (value, number) in values.iter_mut().zip(numbers) {
                *value = (f64::from(deviation) * number) as f32;
            }
        }
    });
}

/// Returns two independent numbers with a normal distribution, from a counter (Box and Muller, "A
/// Note on the Generation of Random Normal Deviates", 1958). The functions of `libm` have the same
/// bits on each machine, which those of the system need not have.
fn normal_pair(counter: u64) -> [f64; 2] {
    let unit = 1.0 / (1_u64 << 32) as f64;
    let word = mixed(counter);
    let radius = (-2.0 * libm::log(((word >> 32) + 1) as f64 * unit)).sqrt();
    let angle = TAU * (word & u64::from(u32::MAX)) as f64 * unit;
    [radius * libm::cos(angle), radius * libm::sin(angle)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_normal_distribution() {
        let mut values = vec![0.0; 100_001];
        fill_normal(&mut values, key_of("weight", 7), 0.02);
        let count = values.len() as f64;
        let mean = values.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
        let square = values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / count;
        let beyond_two = values.iter().filter(|x| x.abs() > 0.04).count() as f64 / count;
        // Four deviations of each: 0.02 / √n, √2 · 0.02² / √n and √(p · (1 - p) / n).
        assert!(mean.abs() < 2.6e-4, "{mean}");
        assert!((square - 4e-4).abs() < 7.2e-6, "{square}");
        assert!((beyond_two - 0.0455).abs() < 0.0027, "{beyond_two}");
    }

    #[test]
    fn numbers_depend_on_seed_and_name_alone() {
        let fill = |name, seed, count| {
            let mut values = vec![0.0; count];
            fill_normal(&mut values, key_of(name, seed), 1.0);
            values
        };
        let values = fill("a", 1, CHUNK + 5);
        assert_eq!(values[..CHUNK + 3], fill("a", 1, CHUNK + 3)[..]);
        assert_ne!(values, fill("a", 2, CHUNK + 5));
        assert_ne!(values, fill("b", 1, CHUNK + 5));
        // Computed by another program: the same on each machine.
        assert_eq!(values[..2], [0.154_019_5, -0.697_692_1]);
    }
}
