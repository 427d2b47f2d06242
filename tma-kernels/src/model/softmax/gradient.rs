//! The kernel of the gradient of softmax.

use tma_runtime::tma_module;

/// Gradients of softmax of rows.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::vectors::of_rows::{
        Strides, load, part, row_index, row_start, row_sum, shifted, store,
    };

    /// log2(e).
    const LOG2_E: f32 = 12_102_203.0 / 8_388_608.0;

    /// Computes scale · y · (dy - Σ y · dy) of rows, or, of the logarithm of softmax,
    /// scale · (dy - e^y · Σ dy). `width` threads have a row, of which each has `K` vectors of a
    /// part. Rows longer than a part are loaded twice.
    #[tma_kernel(threads = THREADS, min_blocks = 768 / THREADS, unchecked, instances(
        T in [bf16, f16, f32],
        (THREADS, K, WIDE) in [short = (256, 2, 1), long = (512, 4, 1), odd = (256, 4, 0)],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
        let WARPS = THREADS / 32,
    ))]
    pub fn softmax_slopes<
        T,
        const THREADS: u32,
        const K: usize,
        const WIDE: usize,
        const V: usize,
        const W: usize,
        const WARPS: u32,
    >(
        y: Global<T>,
        dy: Global<T>,
        dx: Global<T>,
        rows: u32,
        inner: u32,
        columns: u32,
        width: u32,
        is_log: bool,
        scale: f32,
        y_outer: u64,
        y_inner: u64,
        dy_outer: u64,
        dy_inner: u64,
        dx_outer: u64,
        dx_inner: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let sums: SharedArray<f32, WARPS> = shared();
        let first = part(THREADS, width, V as u32, rows);
        let span = K as u32 * first.step;
        let row = row_index(first.row, inner);
        let of_y = row_start(Strides { outer: y_outer, inner: y_inner }, row);
        let of_dy = row_start(Strides { outer: dy_outer, inner: dy_inner }, row);
        let to = row_start(Strides { outer: dx_outer, inner: dx_inner }, row);

        let mut result = [[0.0f32; V]; K];
        let mut gradient = [[0.0f32; V]; K];
        let mut sum = 0.0f32;
        let mut start = 0;
        while start < columns {
            let mine = shifted(first, start);
            result = load::<T, K, V, W>(y, of_y, mine, columns);
            gradient = load::<T, K, V, W>(dy, of_dy, mine, columns);
            // Elements beyond the row are 0.
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    if is_log {
                        sum += gradient[k][i];
                    } else {
                        sum = fma(result[k][i], gradient[k][i], sum);
                    }
                }
            }
            start += span;
        }
        let total = row_sum(sum, width, sums);

        // The last part is still in registers.
        while start > 0 {
            start -= span;
            let mine = shifted(first, start);
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    if is_log {
                        let power = exp2_ftz(result[k][i] * LOG2_E);
                        result[k][i] = scale * (gradient[k][i] - power * total);
                    } else {
                        result[k][i] = scale * (result[k][i] * (gradient[k][i] - total));
                    }
                }
            }
            store::<T, K, V, W>(dx, to, mine, columns, result);
            if start > 0 {
                let next = shifted(first, start - span);
                result = load::<T, K, V, W>(y, of_y, next, columns);
                gradient = load::<T, K, V, W>(dy, of_dy, next, columns);
            }
        }
    }
}
