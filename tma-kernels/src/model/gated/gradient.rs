//! The kernel of the gradients of activations, with and without a gate.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Gradients of activated rows.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::gated::kernel::rows::{LOG2_E, TANH_SLOPE};
    use crate::model::vectors::of_rows::{
        Strides, converted, fetch, part, row_index, row_start, shifted, store,
    };

    /// 1 / √(2π).
    const DENSITY: f32 = 0.398_942_3;

    /// The value and the slope of a function.
    #[derive(Clone, Copy)]
    pub struct Slope {
        /// The value.
        pub value: f32,
        /// The derivative.
        pub slope: f32,
    }

    /// 1 / (1 + 2^y).
    #[tma_device]
    pub fn sigmoid(y: f32) -> f32 {
        let root = rsqrt(1.0 + exp2_ftz(y));
        root * root
    }

    /// The swish x · s with s = 1 / (1 + e^-x): its derivative is s · (1 + x · (1 - s)). Beyond 126,
    /// s is 0 or 1 in `f32`.
    #[tma_device]
    pub fn silu_slope(x: f32) -> Slope {
        let near = clamp(x, -126.0, 126.0);
        let s = sigmoid(near * -LOG2_E);
        Slope { value: times(x, s), slope: s * fma(near, 1.0 - s, 1.0) }
    }

    /// x · s with s = 1 / (1 + e^-2y): the derivative is s + x · s · (1 - s) · 2y'. Beyond 12, s is 0
    /// or 1 in `f32`.
    #[tma_device]
    pub fn gelu_tanh_slope(x: f32) -> Slope {
        let near = clamp(x, -12.0, 12.0);
        let square = near * near;
        let s = sigmoid(TANH_SLOPE * fma(0.044715 * square, near, near));
        // 2 · √(2/π), and three times 0.044715
        let inner = 1.595_769 * fma(0.134145, square, 1.0);
        Slope { value: times(x, s), slope: s * fma(near * inner, 1.0 - s, 1.0) }
    }

    /// e^(z²) · erfc(z) / 2 for z = |x| / √2, as t times a polynomial of t = 1 / (1 + 0.38 · z) whose
    /// relative error is below 1.1e-6 for z up to 12: a minimax approximation by Remez' algorithm.
    #[tma_device]
    pub fn scaled_tail(x: f32) -> f32 {
        let root = rsqrt(fma(abs(x), 0.268_700_58, 1.0));
        let t = root * root;
        let mut sum = -0.062_708_45f32;
        sum = fma(sum, t, 0.168_016_78);
        sum = fma(sum, t, -0.034_954_37);
        sum = fma(sum, t, 0.123_915_33);
        sum = fma(sum, t, 0.090_298);
        sum = fma(sum, t, 0.108_288_45);
        sum = fma(sum, t, 0.107_143_67);
        sum * t
    }

    /// x · p with p = (1 + erf(x / √2)) / 2: the derivative is p + x · e^(-x² / 2) / √(2π). Beyond
    /// 16, p is 0 or 1 in `f32`. The exponential is a factor of p as well.
    #[tma_device]
    pub fn gelu_erf_slope(x: f32) -> Slope {
        let near = clamp(x, -16.0, 16.0);
        let power = exp2_ftz(-0.5 * LOG2_E * near * near);
        let tail = scaled_tail(near) * power;
        let p = if near < 0.0 { tail } else { 1.0 - tail };
        Slope { value: times(x, p), slope: fma(near * DENSITY, power, p) }
    }

    /// The derivative 1 - tanh²(x / cap) of cap · tanh(x / cap), as 4 · e / (1 + e)² with
    /// e = e^(-2 · |x / cap|). The value is not computed.
    #[tma_device]
    pub fn soft_capped_slope(x: f32, cap: f32) -> Slope {
        let e = exp2_ftz(-2.0 * LOG2_E * abs(x / cap));
        let share = recip(1.0 + e);
        Slope { value: 0.0, slope: 4.0 * e * share * share }
    }

    /// Returns the product of a number and its factor, which is 0 for -∞.
    #[tma_device]
    pub fn times(x: f32, factor: f32) -> f32 {
        if x == f32::NEG_INFINITY { 0.0 } else { x * factor }
    }

    /// Returns the values and the slopes of a vector. `form` is 0 for the swish, 1 for the Gaussian
    /// error function, 2 for its approximation and 3 for the limit `cap`.
    #[tma_device]
    pub fn slopes_of<const V: usize>(x: [f32; V], form: u32, cap: f32) -> [[f32; V]; 2] {
        let mut all = [[0.0f32; V]; 2];
        if form == 0 {
            for i in unroll(0..V) {
                let of_element = silu_slope(x[i]);
                all[0][i] = of_element.value;
                all[1][i] = of_element.slope;
            }
        } else if form == 1 {
            for i in unroll(0..V) {
                let of_element = gelu_erf_slope(x[i]);
                all[0][i] = of_element.value;
                all[1][i] = of_element.slope;
            }
        } else if form == 2 {
            for i in unroll(0..V) {
                let of_element = gelu_tanh_slope(x[i]);
                all[0][i] = of_element.value;
                all[1][i] = of_element.slope;
            }
        } else {
            for i in unroll(0..V) {
                let of_element = soft_capped_slope(x[i], cap);
                all[0][i] = of_element.value;
                all[1][i] = of_element.slope;
            }
        }
        all
    }

    /// Multiplies gradients by slopes. `form` is 0 for the swish, 1 for the Gaussian error function,
    /// 2 for its approximation and 3 for the limit `cap`. With other columns, `up` and `dup`, the
    /// gradient of the gate is multiplied by `up`, and that of `up` is the gradient times the
    /// activated gate.
    ///
    /// Rows of `up` begin at its element `up_start`. If rows are packed, `dgate` has both gradients,
    /// and that of `up` begins at `up_start` as well.
    #[tma_kernel(threads = 256, min_blocks = 3, unchecked, instances(
        T in [bf16, f16, f32],
        (K, WIDE, GATED) in [alone = (2, 1, 0), gated = (1, 1, 1), odd = (4, 0, 1)],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
    ))]
    pub fn slopes<T, const K: usize, const WIDE: usize, const GATED: usize, const V: usize, const W: usize>(
        gate: Global<T>,
        up: Option<Global<T>>,
        dy: Global<T>,
        dgate: Global<T>,
        dup: Option<Global<T>>,
        rows: u32,
        inner: u32,
        columns: u32,
        width: u32,
        form: u32,
        cap: f32,
        is_packed: bool,
        up_start: u64,
        gate_outer: u64,
        gate_inner: u64,
        up_outer: u64,
        up_inner: u64,
        dy_outer: u64,
        dy_inner: u64,
        dgate_outer: u64,
        dgate_inner: u64,
        dup_outer: u64,
        dup_inner: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let first = part(256, width, V as u32, rows);
        let span = K as u32 * first.step;
        let mut mine = shifted(first, block_idx().y * span);
        if !mine.exists || mine.column >= columns {
            return;
        }
        let row = row_index(mine.row, inner);
        let of_gate = row_start(Strides { outer: gate_outer, inner: gate_inner }, row);
        let of_dy = row_start(Strides { outer: dy_outer, inner: dy_inner }, row);
        let of_up = row_start(Strides { outer: up_outer, inner: up_inner }, row) + up_start;
        let to = row_start(Strides { outer: dgate_outer, inner: dgate_inner }, row);
        let to_up = row_start(Strides { outer: dup_outer, inner: dup_inner }, row);
        let mut raw = fetch::<T, K, V, W>(gate, of_gate, mine, columns);
        let mut gradient = fetch::<T, K, V, W>(dy, of_dy, mine, columns);
        let mut other = [[cast::<T>(0.0f32); W]; K];
        if GATED == 1 {
            if let Some(up) = up {
                other = fetch::<T, K, V, W>(up, of_up, mine, columns);
            }
        }
        while mine.column < columns {
            // The next vectors arrive while these are computed.
            let next = shifted(mine, grid_dim().y * span);
            let next_raw = fetch::<T, K, V, W>(gate, of_gate, next, columns);
            let next_gradient = fetch::<T, K, V, W>(dy, of_dy, next, columns);
            let mut next_other = [[cast::<T>(0.0f32); W]; K];
            if GATED == 1 {
                if let Some(up) = up {
                    next_other = fetch::<T, K, V, W>(up, of_up, next, columns);
                }
            }
            let factors = converted::<T, K, V, W>(gradient);
            let mut value = [[0.0f32; V]; K];
            let mut slope = [[0.0f32; V]; K];
            let x = converted::<T, K, V, W>(raw);
            for k in unroll(0..K) {
                let slopes = slopes_of::<V>(x[k], form, cap);
                for i in unroll(0..V) {
                    value[k][i] = slopes[0][i] * factors[k][i];
                    slope[k][i] = slopes[1][i] * factors[k][i];
                }
            }
            if GATED == 1 && up.is_some() {
                let factors = converted::<T, K, V, W>(other);
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        slope[k][i] *= factors[k][i];
                    }
                }
                if is_packed {
                    store::<T, K, V, W>(dgate, to + up_start, mine, columns, value);
                }
                if let Some(dup) = dup {
                    store::<T, K, V, W>(dup, to_up, mine, columns, value);
                }
            }
            store::<T, K, V, W>(dgate, to, mine, columns, slope);
            mine = next;
            raw = next_raw;
            gradient = next_gradient;
            other = next_other;
        }
    }
}
