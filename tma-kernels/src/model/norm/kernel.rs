//! The kernel of RMSNorm and LayerNorm.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Normalised rows.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::quantize::kernel::rows::{Scales, scale_of, store_blocks, store_scale, store_scaled};
    use crate::model::vectors::of_rows::{
        Part, Strides, load, part, row_max, row_start, row_sum, shifted, store,
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
            let mut sum = 0.0f32;
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    sum += x[k][i];
                }
            }
            mean = row_sum(sum, width, sums) / count;
        }
        let mut squares = 0.0f32;
        for k in unroll(0..K) {
            let column = part.column + k as u32 * part.step;
            for i in unroll(0..V) {
                let distance = x[k][i] - mean;
                let counted = if column < columns { distance } else { 0.0 };
                squares = fma(counted, counted, squares);
            }
        }
        squares = row_sum(squares, width, sums);
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
    /// The result is written to `out`, or with scales to `quantised`. Then a row has one part.
    #[tma_kernel(threads = THREADS, min_blocks = 512 / THREADS, unchecked, instances(
        T in [bf16, f16, f32],
        (THREADS, K, WIDE) in [short = (256, 2, 1), long = (512, 4, 1), odd = (256, 4, 0)],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
        let WARPS = THREADS / 32,
    ))]
    pub fn normalise<
        T,
        const THREADS: u32,
        const K: usize,
        const WIDE: usize,
        const V: usize,
        const W: usize,
        const WARPS: u32,
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
        weight_offset: f32,
        x_outer: u64,
        x_inner: u64,
        out_outer: u64,
        out_inner: u64,
        residual_outer: u64,
        residual_inner: u64,
        scales_row: u64,
        scales_block: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let sums: SharedArray<f32, WARPS> = shared();
        let first = part(THREADS, width, V as u32, rows);
        let span = K as u32 * first.step;
        let from = row_start(Strides { outer: x_outer, inner: x_inner }, first.row, inner);
        let to = row_start(Strides { outer: out_outer, inner: out_inner }, first.row, inner);
        let of_sum = row_start(Strides { outer: residual_outer, inner: residual_inner }, first.row, inner);

        let mut of_part = [[0.0f32; V]; K];
        let mut moments = Moments { count: 0.0, mean: 0.0, squares: 0.0 };
        let mut start = 0;
        while start < columns {
            let mine = shifted(first, start);
            of_part = load::<T, K, V, W>(x, from, mine, columns);
            if let Some(residual) = residual {
                let other = load::<T, K, V, W>(residual, of_sum, mine, columns);
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        of_part[k][i] = cast::<f32>(cast::<T>(of_part[k][i] + other[k][i]));
                    }
                }
                store::<T, K, V, W>(residual, of_sum, mine, columns, of_part);
            }
            let count = cast::<f32>(min(span, columns - start));
            moments = add(moments, of_part, mine, columns, count, width, centred, sums);
            start += span;
            if K == 2 {
                break; // a row has one part
            }
        }
        let factor = recip(sqrt(moments.squares / cast::<f32>(columns) + epsilon));

        // The last part is still in registers.
        while start > 0 {
            start -= span;
            let mine = shifted(first, start);
            for k in unroll(0..K) {
                // One vector at a time: weights of all would take as many registers as the row.
                let column = Part { exists: true, column: mine.column + k as u32 * mine.step, ..mine };
                for i in unroll(0..V) {
                    of_part[k][i] = (of_part[k][i] - moments.mean) * factor;
                }
                if let Some(weight) = weight {
                    let of_weight = load::<T, 1, V, W>(weight, 0, column, columns);
                    for i in unroll(0..V) {
                        of_part[k][i] *= of_weight[0][i] + weight_offset;
                    }
                }
                if let Some(bias) = bias {
                    let of_bias = load::<T, 1, V, W>(bias, 0, column, columns);
                    for i in unroll(0..V) {
                        of_part[k][i] += of_bias[0][i];
                    }
                }
            }
            if let Some(out) = out {
                store::<T, K, V, W>(out, to, mine, columns, of_part);
            }
            if K == 2 {
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
