//! The kernel of RMSNorm and LayerNorm.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Normalised rows.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::quantize::kernel::rows::{Scales, scale_of, store_blocks, store_scale, store_scaled};
    use crate::model::vectors::of_rows::{
        Part, Strides, is_within, load, part, row_index, row_max, row_start, row_sum, shifted, store,
    };

    /// A count of elements, their mean, and the sum of squared distances from it. If rows are not
    /// centred, the mean is 0.
    #[derive(Clone, Copy)]
    pub struct Moments {
        /// The number of elements.
        pub count: f32,
        /// Their mean.
        pub mean: f32,
        /// The sum of squares.
        pub squares: f32,
    }

    /// Returns the sum of the elements of a thread, or of their squared distances from `mean`.
    #[tma_device]
    pub fn sum_of<const K: usize, const V: usize>(
        x: [[f32; V]; K],
        part: Part,
        columns: u32,
        squared: bool,
        mean: f32,
    ) -> f32 {
        // Two sums, so that an addition need not wait for the one before it.
        let mut sums = [0.0f32; 2];
        for k in unroll(0..K) {
            if is_within(part, k as u32, columns) {
                for i in unroll(0..V) {
                    if squared {
                        let distance = x[k][i] - mean;
                        sums[i % 2] = fma(distance, distance, sums[i % 2]);
                    } else {
                        sums[i % 2] += x[k][i];
                    }
                }
            }
        }
        sums[0] + sums[1]
    }

    /// Adds the moments of a part of the row. All threads of the block call it.
    #[tma_device]
    pub fn add<const K: usize, const V: usize, const WARPS: u32>(
        before: Moments,
        x: [[f32; V]; K],
        part: Part,
        columns: u32,
        count: f32,
        width: u32,
        centred: bool,
        sums: SharedArray<f32, WARPS>,
    ) -> Moments {
        let mut mean = 0.0f32;
        if centred {
            mean = row_sum(sum_of(x, part, columns, false, 0.0), width, sums) / count;
        }
        let squares = row_sum(sum_of(x, part, columns, true, mean), width, sums);
        if !centred || before.count == 0.0 {
            return Moments { count: before.count + count, mean, squares: before.squares + squares };
        }
        // Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
        // Variances", 1979.
        let both = before.count + count;
        let distance = mean - before.mean;
        Moments {
            count: both,
            mean: before.mean + distance * (count / both),
            squares: before.squares + squares + distance * distance * (before.count * (count / both)),
        }
    }

    /// Normalises rows, whose elements are those of `x`, or their sums with those of `residual`,
    /// which are written back. `width` threads have a row, of which each has `K` vectors of a part.
    /// Rows longer than a part are loaded twice.
    ///
    /// The result is written to `out`, or with scales to `quantised`. Then a row has one part. If
    /// `is_constant`, weights are read before the previous kernel has ended.
    #[tma_kernel(threads = THREADS, min_blocks = 512 / THREADS, unchecked, instances(
        T in [bf16, f16, f32],
        (THREADS, K, WIDE) in [single = (512, 1, 1), short = (256, 2, 1), long = (512, 4, 1), odd = (256, 4, 0)],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
        let WARPS = THREADS / 32,
        let EARLY = if K <= 2 { K } else { 0 }, // vectors of weights that may be loaded early
        let LEN = if K <= 2 { K * V } else { 1 },
    ))]
    pub fn normalise<
        T,
        const THREADS: u32,
        const K: usize,
        const WIDE: usize,
        const V: usize,
        const W: usize,
        const WARPS: u32,
        const EARLY: usize,
        const LEN: usize,
    >(
        x: Global<T>,
        out: Option<Global<T>>,
        residual: Option<Global<T>>,
        weight: Option<Global<T>>,
        bias: Option<Global<T>>,
        quantised: Option<Global<e4m3>>,
        scales: Option<Global<f32>>,
        rows: u32,
        inner: u32,
        columns: u32,
        width: u32,
        centred: bool,
        in_blocks: bool,
        epsilon: f32,
        one_plus_weight: bool,
        x_outer: u64,
        x_inner: u64,
        out_outer: u64,
        out_inner: u64,
        residual_outer: u64,
        residual_inner: u64,
        scales_row: u64,
        scales_block: u64,
        is_constant: bool,
    ) where
        T: TileElement + Number,
    {
        let sums: SharedArray<f32, WARPS> = shared();
        let first = part(THREADS, width, V as u32, rows);
        grid_dependency_launch();
        let mut early = [0.0f32; LEN];
        if let Some(weight) = weight {
            for k in unroll(0..EARLY) {
                let column = first.column + k as u32 * first.step;
                if is_constant && column < columns {
                    let vector = weight.get_vec::<W>(column);
                    for i in unroll(0..V) {
                        early[k * V + i] = cast::<f32>(vector[i]);
                    }
                }
            }
        }
        grid_dependency_wait();
        let span = K as u32 * first.step;
        let row = row_index(first.row, inner);
        let from = row_start(Strides { outer: x_outer, inner: x_inner }, row);
        let to = row_start(Strides { outer: out_outer, inner: out_inner }, row);
        let of_sum = row_start(Strides { outer: residual_outer, inner: residual_inner }, row);

        let mut of_part = [[0.0f32; V]; K];
        let mut moments = Moments { count: 0.0, mean: 0.0, squares: 0.0 };
        let mut start = 0;
        while start < columns {
            let mine = shifted(first, start);
            if let Some(residual) = residual {
                of_part = load::<T, K, V, W>(x, from, mine, columns);
                let other = load::<T, K, V, W>(residual, of_sum, mine, columns);
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        of_part[k][i] = cast::<f32>(cast::<T>(of_part[k][i] + other[k][i]));
                    }
                }
                store::<T, K, V, W>(residual, of_sum, mine, columns, of_part);
            } else {
                of_part = load::<T, K, V, W>(x, from, mine, columns);
            }
            let count = cast::<f32>(min(span, columns - start));
            moments = add(moments, of_part, mine, columns, count, width, centred, sums);
            start += span;
            if K <= 2 {
                break; // a row has one part
            }
        }
        let factor = recip(sqrt(moments.squares / cast::<f32>(columns) + epsilon));

        // The last part is still in registers.
        while start > 0 {
            start -= span;
            let mine = shifted(first, start);
            if centred {
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        of_part[k][i] -= moments.mean;
                    }
                }
            }
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    of_part[k][i] *= factor;
                }
            }
            if let Some(weight) = weight {
                let mut of_weight = [[0.0f32; V]; K];
                if EARLY > 0 && is_constant {
                    for k in unroll(0..EARLY) {
                        for i in unroll(0..V) {
                            of_weight[k][i] = early[k * V + i];
                        }
                    }
                } else {
                    of_weight = load::<T, K, V, W>(weight, 0, mine, columns);
                }
                let offset = if one_plus_weight { 1.0 } else { 0.0 };
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        of_part[k][i] *= of_weight[k][i] + offset;
                    }
                }
            }
            if let Some(bias) = bias {
                let of_bias = load::<T, K, V, W>(bias, 0, mine, columns);
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        of_part[k][i] += of_bias[k][i];
                    }
                }
            }
            if let Some(out) = out {
                store::<T, K, V, W>(out, to, mine, columns, of_part);
            }
            if K <= 2 {
                break;
            }
            if start > 0 {
                let next = shifted(first, start - span);
                if let Some(residual) = residual {
                    of_part = load::<T, K, V, W>(residual, of_sum, next, columns);
                } else {
                    of_part = load::<T, K, V, W>(x, from, next, columns);
                }
            }
        }
        if let Some(quantised) = quantised {
            if let Some(scales) = scales {
                let scales = Scales { all: scales, row: scales_row, block: scales_block };
                // Elements beyond the row are 0, or NaN, neither of which counts.
                let mut greatest = 0.0f32;
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        of_part[k][i] = cast::<f32>(cast::<T>(of_part[k][i]));
                        greatest = max(greatest, abs(of_part[k][i]));
                    }
                }
                if in_blocks {
                    store_blocks::<K, V, W>(quantised, to, scales, first, columns, of_part);
                } else {
                    let scale = scale_of(row_max(greatest, width, sums));
                    if first.exists && first.column == 0 {
                        store_scale(scales, first.row, 0, scale);
                    }
                    store_scaled::<K, V, W>(quantised, to, first, columns, of_part, scale);
                }
            }
        }
    }
}
