//! The kernel of the gradients of RMSNorm and LayerNorm of rows that registers have no room for.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Gradients of long rows.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::norm::gradient::rows::{squares, totals};
    use crate::model::vectors::of_rows::{
        Part, Strides, Sums, is_within, load, row_index, row_start, row_sums, shifted, store,
    };

    /// Adds a thread's elements to sums of columns in memory, or replaces them.
    #[tma_device]
    pub fn add_to_sums<const K: usize, const V: usize>(
        sums: Global<f32>,
        start: u64,
        part: Part,
        columns: u32,
        x: [[f32; V]; K],
        replaces: bool,
    ) {
        for k in unroll(0..K) {
            if is_within(part, k as u32, columns) {
                let i = start + (part.column + k as u32 * part.step) as u64;
                if V == 1 {
                    let mut old = 0.0f32;
                    if !replaces {
                        old = sums.get(i);
                    }
                    sums.set(i, old + x[k][0]);
                } else {
                    for quarter in unroll(0..V / 4) {
                        let at = i + 4 * quarter as u64;
                        let mut vector = [0.0f32; 4];
                        if !replaces {
                            vector = sums.get_vec::<4>(at);
                        }
                        for j in unroll(0..4usize) {
                            vector[j] += x[k][4 * quarter + j];
                        }
                        sums.set_vec(at, vector);
                    }
                }
            }
        }
    }

    /// Loads a part of a gradient, times the factors of its columns.
    #[tma_device]
    pub fn load_weighted<T: TileElement + Number, const K: usize, const V: usize, const W: usize>(
        gradient: [[f32; V]; K],
        weight: Option<Global<T>>,
        part: Part,
        columns: u32,
        offset: f32,
    ) -> [[f32; V]; K] {
        let mut h = gradient;
        if let Some(weight) = weight {
            let factors = load::<T, K, V, W>(weight, 0, part, columns);
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    h[k][i] *= factors[k][i] + offset;
                }
            }
        }
        h
    }

    /// Computes the same of rows that registers have no room for. A block has a row, which it loads
    /// twice, or three times if rows are centred, and adds to sums of columns in memory.
    #[tma_kernel(threads = 512, unchecked, instances(
        T in [bf16, f16, f32],
        (K, WIDE) in [wide = (2, 1), odd = (4, 0)],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
    ))]
    pub fn differentiate_long<T, const K: usize, const WIDE: usize, const V: usize, const W: usize>(
        x: Global<T>,
        dy: Global<T>,
        weight: Option<Global<T>>,
        dx: Global<T>,
        sums: Option<Global<f32>>,
        rows: u32,
        inner: u32,
        columns: u32,
        centred: bool,
        one_plus_weight: bool,
        has_bias: bool,
        adds: bool,
        epsilon: f32,
        x_outer: u64,
        x_inner: u64,
        dy_outer: u64,
        dy_inner: u64,
        dx_outer: u64,
        dx_inner: u64,
    ) where
        T: TileElement + Number,
    {
        let of_warps: SharedArray<f32, 64> = shared();
        let offset = if one_plus_weight { 1.0 } else { 0.0 };
        let share = recip(cast::<f32>(columns));
        let step = 512 * V as u32;
        let span = K as u32 * step;
        let first = Part { row: 0, exists: true, column: thread_idx().x * V as u32, step };
        grid_dependency_launch();
        grid_dependency_wait();
        let mut slot = 0;
        let mut row = block_idx().x;
        while row < rows {
            let index = row_index(row, inner);
            let of_x = row_start(Strides { outer: x_outer, inner: x_inner }, index);
            let of_dy = row_start(Strides { outer: dy_outer, inner: dy_inner }, index);
            let to = row_start(Strides { outer: dx_outer, inner: dx_inner }, index);
            let mut mean = Sums { first: 0.0, second: 0.0 };
            let mut start = 0;
            if centred {
                while start < columns {
                    let mine = shifted(first, start);
                    let of_part = load::<T, K, V, W>(x, of_x, mine, columns);
                    let gradient = load::<T, K, V, W>(dy, of_dy, mine, columns);
                    let h = load_weighted::<T, K, V, W>(gradient, weight, mine, columns, offset);
                    let some = totals(of_part, h, mine, columns);
                    mean = Sums { first: mean.first + some.first, second: mean.second + some.second };
                    start += span;
                }
                mean = row_sums(mean, 512, slot, of_warps);
                mean = Sums { first: mean.first / cast::<f32>(columns), second: mean.second * share };
                slot ^= 1;
            }
            let mut both = Sums { first: 0.0, second: 0.0 };
            start = 0;
            while start < columns {
                let mine = shifted(first, start);
                let of_part = load::<T, K, V, W>(x, of_x, mine, columns);
                let gradient = load::<T, K, V, W>(dy, of_dy, mine, columns);
                let h = load_weighted::<T, K, V, W>(gradient, weight, mine, columns, offset);
                let some = squares(of_part, h, mean.first, mine, columns);
                both = Sums { first: both.first + some.first, second: both.second + some.second };
                start += span;
            }
            both = row_sums(both, 512, slot, of_warps);
            slot ^= 1;
            let factor = recip(sqrt(both.first * share + epsilon));
            let slope = both.second * share * factor;
            while start > 0 {
                start -= span;
                let mine = shifted(first, start);
                let mut of_part = load::<T, K, V, W>(x, of_x, mine, columns);
                let mut gradient = load::<T, K, V, W>(dy, of_dy, mine, columns);
                let h = load_weighted::<T, K, V, W>(gradient, weight, mine, columns, offset);
                let mut old = [[0.0f32; V]; K];
                if adds {
                    old = load::<T, K, V, W>(dx, to, mine, columns);
                }
                if let Some(sums) = sums {
                    if has_bias {
                        let at = (grid_dim().x + block_idx().x) as u64 * columns as u64;
                        add_to_sums(sums, at, mine, columns, gradient, row == block_idx().x);
                    }
                }
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        of_part[k][i] = (of_part[k][i] - mean.first) * factor;
                        gradient[k][i] *= of_part[k][i];
                        of_part[k][i] = old[k][i] + factor * (h[k][i] - mean.second - of_part[k][i] * slope);
                    }
                }
                if let Some(sums) = sums {
                    let at = block_idx().x as u64 * columns as u64;
                    add_to_sums(sums, at, mine, columns, gradient, row == block_idx().x);
                }
                store::<T, K, V, W>(dx, to, mine, columns, of_part);
            }
            row += grid_dim().x;
        }
    }
}
