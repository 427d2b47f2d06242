//! The kernel of gated activations.

use tma_runtime::tma_module;

/// Products of activated gates and other columns.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::vectors::of_rows::{
        Strides, converted, fetch, part, row_index, row_start, shifted, store,
    };

    /// Vectors that a thread has of each tensor.
    pub const VECTORS: usize = 4;

    /// log2(e), by which `exp2` computes exponentials.
    pub const LOG2_E: f32 = 12_102_203.0 / 8_388_608.0;

    /// -2 · log2(e) · √(2/π).
    pub const TANH_SLOPE: f32 = -2.3022082;

    /// x / (1 + 2^y), by two approximations with errors of 2^-22.9 each. A quotient of two numbers
    /// that is correctly rounded takes more time than the memory does.
    #[tma_device]
    pub fn divided(x: f32, y: f32) -> f32 {
        let root = rsqrt(1.0 + exp2_ftz(y));
        x * root * root
    }

    /// The swish x / (1 + e^-x).
    #[tma_device]
    pub fn silu(x: f32) -> f32 {
        divided(x, x * -LOG2_E)
    }

    /// x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) / 2, as x / (1 + e^-2y).
    #[tma_device]
    pub fn gelu_tanh(x: f32) -> f32 {
        divided(x, TANH_SLOPE * fma(0.044715 * x * x, x, x))
    }

    /// erfc(|x| / √2) / 2, by an approximation with a relative error of 1.2e-7: Press et al.,
    /// "Numerical Recipes", 2nd edition, 6.2.
    #[tma_device]
    pub fn half_erfc(x: f32) -> f32 {
        let z = abs(x) * (11_863_283.0 / 16_777_216.0);
        let root = rsqrt(1.0 + 0.5 * z);
        let t = root * root;
        let mut sum = 0.17087277f32;
        sum = fma(sum, t, -0.82215223);
        sum = fma(sum, t, 1.4885159);
        sum = fma(sum, t, -1.135204);
        sum = fma(sum, t, 0.27886807);
        sum = fma(sum, t, -0.18628806);
        sum = fma(sum, t, 0.09678418);
        sum = fma(sum, t, 0.37409196);
        sum = fma(sum, t, 1.0000237);
        sum = fma(sum, t, -1.2655122);
        0.5 * t * exp2_ftz(LOG2_E * fma(-z, z, sum))
    }

    /// x · (1 + erf(x / √2)) / 2.
    #[tma_device]
    pub fn gelu_erf(x: f32) -> f32 {
        let tail = half_erfc(x);
        x * if x < 0.0 { tail } else { 1.0 - tail }
    }

    /// Returns the gate, or 0 for -∞: the activation of both is 0, and the product of -∞ and 0 would
    /// be NaN.
    #[tma_device]
    pub fn finite(x: f32) -> f32 {
        if x == f32::NEG_INFINITY { 0.0 } else { x }
    }

    /// Returns an activated gate. `form` is 0 for the swish, 1 for the Gaussian error function and 2
    /// for its approximation.
    #[tma_device]
    pub fn activated_gate(x: f32, form: u32) -> f32 {
        let x = finite(x);
        if form == 0 {
            silu(x)
        } else if form == 1 {
            gelu_erf(x)
        } else {
            gelu_tanh(x)
        }
    }

    /// Multiplies activated gates by other columns. Rows of `up` begin at its element `up_start`.
    /// `form` is 0 for the swish, 1 for the Gaussian error function and 2 for its approximation.
    #[tma_kernel(threads = 256, min_blocks = 3, unchecked, instances(
        T in [bf16, f16, f32],
        (K, WIDE) in [wide = (VECTORS, 1), few = (1, 1), odd = (VECTORS, 0)],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
    ))]
    pub fn multiply<T, const K: usize, const WIDE: usize, const V: usize, const W: usize>(
        gate: Global<T>,
        up: Global<T>,
        out: Global<T>,
        rows: u32,
        inner: u32,
        columns: u32,
        width: u32,
        form: u32,
        up_start: u64,
        gate_outer: u64,
        gate_inner: u64,
        up_outer: u64,
        up_inner: u64,
        out_outer: u64,
        out_inner: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let first = part(256, width, V as u32, rows);
        let mine = shifted(first, block_idx().y * (K as u32 * first.step));
        if !mine.exists || mine.column >= columns {
            return;
        }
        let row = row_index(mine.row, inner);
        let of_gate = row_start(Strides { outer: gate_outer, inner: gate_inner }, row);
        let of_up = row_start(Strides { outer: up_outer, inner: up_inner }, row);
        let to = row_start(Strides { outer: out_outer, inner: out_inner }, row);
        let raw = fetch::<T, K, V, W>(gate, of_gate, mine, columns);
        let other = fetch::<T, K, V, W>(up, of_up + up_start, mine, columns);
        let mut x = converted::<T, K, V, W>(raw);
        let y = converted::<T, K, V, W>(other);
        if form == 0 {
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    x[k][i] = silu(finite(x[k][i])) * y[k][i];
                }
            }
        } else if form == 1 {
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    x[k][i] = gelu_erf(finite(x[k][i])) * y[k][i];
                }
            }
        } else {
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    x[k][i] = gelu_tanh(finite(x[k][i])) * y[k][i];
                }
            }
        }
        store::<T, K, V, W>(out, to, mine, columns, x);
    }
}
