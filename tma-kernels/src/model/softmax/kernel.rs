//! The kernel of softmax.

use tma_runtime::tma_module;

/// Softmax of rows.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::vectors::of_rows::{
        Strides, is_within, load, part, row_index, row_max, row_start, row_sum, shifted, store,
    };

    /// ln(2).
    const LN_2: f32 = 11_629_080.0 / 16_777_216.0;

    /// The greatest element of several, and the sum of the powers 2^(x · factor), relative to it.
    #[derive(Clone, Copy)]
    pub struct Total {
        /// The greatest element. NaNs do not count.
        pub greatest: f32,
        /// The sum.
        pub sum: f32,
    }

    /// Returns the power of an element relative to the greatest one.
    #[tma_device]
    pub fn power(x: f32, greatest: f32, factor: f32) -> f32 {
        exp2_ftz((x - greatest) * factor)
    }

    /// Returns the total of two sets of elements.
    #[tma_device]
    pub fn merged(a: Total, b: Total, factor: f32) -> Total {
        let greatest = max(a.greatest, b.greatest);
        // A set of -inf alone has no sum.
        let of_a = if a.greatest == greatest { a.sum } else { a.sum * power(a.greatest, greatest, factor) };
        let of_b = if b.greatest == greatest { b.sum } else { b.sum * power(b.greatest, greatest, factor) };
        Total { greatest, sum: of_a + of_b }
    }

    /// Computes exp(scale · x) / Σ exp(scale · x) of rows, or its logarithm. `factor` is scale ·
    /// log2(e). `width` threads have a row, of which each has `K` vectors of a part. Rows longer
    /// than a part are loaded twice.
    #[tma_kernel(threads = THREADS, min_blocks = 512 / THREADS, unchecked, instances(
        T in [bf16, f16, f32],
        (THREADS, K, WIDE) in [short = (256, 2, 1), long = (512, 4, 1), odd = (256, 4, 0)],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
        let WARPS = THREADS / 32,
    ))]
    pub fn softmax<
        T,
        const THREADS: u32,
        const K: usize,
        const WIDE: usize,
        const V: usize,
        const W: usize,
        const WARPS: u32,
    >(
        x: Global<T>,
        out: Global<T>,
        rows: u32,
        inner: u32,
        columns: u32,
        width: u32,
        is_log: bool,
        factor: f32,
        x_outer: u64,
        x_inner: u64,
        out_outer: u64,
        out_inner: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let sums: SharedArray<f32, WARPS> = shared();
        let first = part(THREADS, width, V as u32, rows);
        let span = K as u32 * first.step;
        let row = row_index(first.row, inner);
        let from = row_start(Strides { outer: x_outer, inner: x_inner }, row);
        let to = row_start(Strides { outer: out_outer, inner: out_inner }, row);

        let mut of_part = [[0.0f32; V]; K];
        let mut total = Total { greatest: f32::NEG_INFINITY, sum: 0.0 };
        let mut start = 0;
        while start < columns {
            let mine = shifted(first, start);
            of_part = load::<T, K, V, W>(x, from, mine, columns);
            let mut greatest = f32::NEG_INFINITY;
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    greatest = max(greatest, of_part[k][i]);
                }
            }
            let base = if greatest == f32::NEG_INFINITY { 0.0 } else { greatest };
            let mut sum = 0.0f32;
            for k in unroll(0..K) {
                if is_within(mine, k as u32, columns) {
                    for i in unroll(0..V) {
                        sum += power(of_part[k][i], base, factor);
                    }
                }
            }
            total = merged(total, Total { greatest, sum }, factor);
            start += span;
        }
        let greatest = row_max(total.greatest, width, sums);
        let base = if greatest == f32::NEG_INFINITY { 0.0 } else { greatest };
        let of_thread = if total.greatest == f32::NEG_INFINITY {
            total.sum
        } else {
            total.sum * power(total.greatest, base, factor)
        };
        let sum = row_sum(of_thread, width, sums);
        let inverse = recip(sum);
        let log_sum = log2(sum);

        // The last part is still in registers.
        while start > 0 {
            start -= span;
            let mine = shifted(first, start);
            if is_log {
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        of_part[k][i] = ((of_part[k][i] - base) * factor - log_sum) * LN_2;
                    }
                }
            } else {
                for k in unroll(0..K) {
                    for i in unroll(0..V) {
                        of_part[k][i] = power(of_part[k][i], base, factor) * inverse;
                    }
                }
            }
            store::<T, K, V, W>(out, to, mine, columns, of_part);
            if start > 0 {
                of_part = load::<T, K, V, W>(x, from, shifted(first, start - span), columns);
            }
        }
    }
}
