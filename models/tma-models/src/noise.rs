//! Weights that only look like those of a model, for measurements.

use tma_runtime::prelude::bf16;

use crate::random::mixed;

/// The numbers that matrices repeat; no multiple of a row.
const NUMBERS: usize = 1_000_003;

/// Appends a tensor of noise: near 1 if it is a row, or small enough that hidden states stay
/// finite.
pub(crate) fn append(name: &str, shape: &[usize], to: &mut Vec<bf16>) {
    let count = shape.iter().product();
    if let [_] = shape {
        to.extend((0..count).map(|_| bf16::ONE));
        return;
    }
    let columns = shape.last().copied().unwrap_or(1).max(1);
    let size = (3.0 / columns as f32).sqrt();
    let seed = name.bytes().fold(0_u64, |seed, byte| mixed(seed ^ u64::from(byte)));
    let number = |i: u64| (mixed(seed.wrapping_add(i)) >> 40) as f32 / (1 << 23) as f32 - 1.0;
    let numbers: Vec<bf16> = (0..NUMBERS as u64).map(|i| bf16::from_f32(size * number(i))).collect();
    let end = to.len() + count;
    while to.len() < end {
        to.extend_from_slice(&numbers[..NUMBERS.min(end - to.len())]);
    }
}
