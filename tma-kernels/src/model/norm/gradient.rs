//! The kernels of the gradients of RMSNorm and LayerNorm.
//!
//! With the normalised numbers n = (x - mean) · factor and h = dy · weight, the gradient of `x` is
//! factor · (h - mean(h) - n · mean(h · n)), without mean(h) if rows are not centred. That of a
//! weight is the sum of dy · n over all rows. Each block adds up its rows, in registers or in its
//! own part of a workspace, and [`add_up`](crate::model::sums::blocks::add_up) adds up the blocks.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Gradients of normalised rows.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::sums::groups::{add_groups, leave};
    use crate::model::vectors::of_rows::{
        Part, Strides, Sums, converted, fetch, is_within, row_index, row_start, row_sums, store,
    };

    /// Multiplies gradients by the factors of their columns, which are in shared memory.
    #[tma_device]
    pub fn weighted<
        T: TileElement + Number,
        const K: usize,
        const V: usize,
        const W: usize,
        const LEN: u32,
    >(
        dy: [[f32; V]; K],
        factors: SharedArray<T, LEN>,
        part: Part,
        offset: f32,
    ) -> [[f32; V]; K] {
        let mut h = dy;
        for k in unroll(0..K) {
            let column = part.column + k as u32 * part.step;
            if V == 1 {
                h[k][0] *= cast::<f32>(factors.get(column)) + offset;
            } else {
                let vector = factors.get_vec::<W>(column);
                for i in unroll(0..V) {
                    h[k][i] *= cast::<f32>(vector[i]) + offset;
                }
            }
        }
        h
    }

    /// Returns the sums of a thread's elements of two rows.
    #[tma_device]
    pub fn totals<const K: usize, const V: usize>(
        x: [[f32; V]; K],
        h: [[f32; V]; K],
        part: Part,
        columns: u32,
    ) -> Sums {
        let mut sums = Sums { first: 0.0, second: 0.0 };
        for k in unroll(0..K) {
            if is_within(part, k as u32, columns) {
                for i in unroll(0..V) {
                    sums.first += x[k][i];
                    sums.second += h[k][i];
                }
            }
        }
        sums
    }

    /// Returns the first column of a thread's vector, or that of the last vector of the row if the
    /// thread's is beyond it.
    #[tma_device]
    pub fn shared_column<const V: usize>(part: Part, k: u32, columns: u32) -> u64 {
        min(part.column + k * part.step, columns - V as u32) as u64
    }

    /// Returns the sums of squared distances from the mean, and of their products with `h`, of a
    /// thread's elements.
    #[tma_device]
    pub fn squares<const K: usize, const V: usize>(
        x: [[f32; V]; K],
        h: [[f32; V]; K],
        mean: f32,
        part: Part,
        columns: u32,
    ) -> Sums {
        let mut sums = Sums { first: 0.0, second: 0.0 };
        for k in unroll(0..K) {
            // Elements beyond the row have a distance from the mean as well.
            if is_within(part, k as u32, columns) {
                for i in unroll(0..V) {
                    let distance = x[k][i] - mean;
                    sums.first = fma(distance, distance, sums.first);
                    sums.second = fma(h[k][i], distance, sums.second);
                }
            }
        }
        sums
    }

    /// Rows that a block has at a time.
    #[derive(Clone, Copy)]
    pub struct Batch {
        /// The first row.
        pub first: u32,
        /// The number of rows, of which the last ones may not exist.
        pub height: u32,
        /// The number of rows of all blocks.
        pub rows: u32,
        /// The extent of the inner dimension of rows.
        pub inner: u32,
        /// The columns of a row.
        pub columns: u32,
        /// The row of this thread in the batch.
        pub group: u32,
        /// The first column of this thread.
        pub column: u32,
    }

    /// Fetches rows into the L2 cache: by one instruction if they follow each other in memory, or
    /// else by one for each row.
    #[tma_device]
    pub fn prefetch<T: TileElement>(from: Global<T>, strides: Strides, batch: Batch) {
        if batch.inner >= batch.rows && strides.inner == batch.columns as u64 {
            if thread_idx().x == 0 && batch.first < batch.rows {
                let height = min(batch.height, batch.rows - batch.first);
                from.bulk_prefetch(batch.first as u64 * strides.inner, height * batch.columns);
            }
        } else if batch.column == 0 && batch.first + batch.group < batch.rows {
            let row = row_index(batch.first + batch.group, batch.inner);
            from.bulk_prefetch(row_start(strides, row), batch.columns);
        }
    }

    /// Computes the gradients of rows, and adds up those of weights and biases. `width` threads
    /// have a row, of which each has `K` vectors. While a block works on rows, the next ones come
    /// to the L2 cache: registers have no room for them.
    ///
    /// `sums` has, for each block, a sum for each column, and then the same of biases.
    #[tma_kernel(threads = THREADS, min_blocks = 512 / THREADS, unchecked, instances(
        T in [bf16, f16, f32],
        (THREADS, K, WIDE) in [short = (256, 2, 1), medium = (512, 2, 1), odd = (256, 4, 0)],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
        let SUMS = THREADS / 8, // two slots of two sums for each warp
        let LEN = THREADS * (K * V) as u32,
    ))]
    pub fn differentiate<
        T,
        const THREADS: u32,
        const K: usize,
        const WIDE: usize,
        const V: usize,
        const W: usize,
        const SUMS: u32,
        const LEN: u32,
    >(
        x: Global<T>,
        dy: Global<T>,
        weight: Option<Global<T>>,
        dx: Global<T>,
        sums: Option<Global<f32>>,
        rows: u32,
        inner: u32,
        columns: u32,
        width: u32,
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
        let of_warps: SharedArray<f32, SUMS> = shared();
        let factors: SharedArray<T, LEN> = shared();
        let of_groups: SharedArray<f32, LEN> = shared();
        let shift = width.trailing_zeros();
        let height = THREADS >> shift;
        let group = thread_idx().x >> shift;
        let column = (thread_idx().x & (width - 1)) * V as u32;
        let step = width * V as u32;
        let of_x = Strides { outer: x_outer, inner: x_inner };
        let of_dy = Strides { outer: dy_outer, inner: dy_inner };
        let of_dx = Strides { outer: dx_outer, inner: dx_inner };
        let offset = if one_plus_weight { 1.0 } else { 0.0 };
        let share = recip(cast::<f32>(columns));
        grid_dependency_launch();
        grid_dependency_wait();

        if let Some(weight) = weight {
            if group == 0 {
                let all = Part { row: 0, exists: true, column, step };
                let vectors = fetch::<T, K, V, W>(weight, 0, all, columns);
                for k in unroll(0..K) {
                    let at = column + k as u32 * step;
                    if V == 1 {
                        factors.set(at, vectors[k][0]);
                    } else {
                        factors.set_vec(at, vectors[k]);
                    }
                }
            }
            sync_threads();
        }

        // Sums of weights are in registers. There is no room for those of biases as well.
        let mut of_weight = [[0.0f32; V]; K];
        let span = K as u32 * step;
        let all = Part { row: 0, exists: true, column, step };
        if has_bias {
            leave(of_groups, group * span, all, of_weight, true);
        }
        let mut slot = 0;
        let mut first = block_idx().x * height;
        while first < rows {
            let mine = Part { row: first + group, exists: first + group < rows, column, step };
            let row = row_index(min(mine.row, rows - 1), inner);
            let from_x = row_start(of_x, row);
            let from_dy = row_start(of_dy, row);
            let to = row_start(of_dx, row);
            // Threads without columns load those of others. All indices are compared before the
            // first load: with conditions of their own, loads would wait for each other.
            for k in unroll(0..K) {
                let column = shared_column::<V>(mine, k as u32, columns);
                if from_x + column >= x.len().saturating_sub(V as u64 - 1) {
                    return;
                }
                if from_dy + column >= dy.len().saturating_sub(V as u64 - 1) {
                    return;
                }
            }
            let mut raw_x = [[cast::<T>(0.0f32); W]; K];
            let mut raw_dy = [[cast::<T>(0.0f32); W]; K];
            for k in unroll(0..K) {
                let column = shared_column::<V>(mine, k as u32, columns);
                if V == 1 {
                    raw_x[k][0] = x.get(from_x + column);
                    raw_dy[k][0] = dy.get(from_dy + column);
                } else {
                    raw_x[k] = x.get_vec::<W>(from_x + column);
                    raw_dy[k] = dy.get_vec::<W>(from_dy + column);
                }
            }
            first += grid_dim().x * height;
            if WIDE == 1 {
                let batch = Batch { first, height, rows, inner, columns, group, column };
                prefetch(x, of_x, batch);
                prefetch(dy, of_dy, batch);
                if adds {
                    prefetch(dx, of_dx, batch);
                }
            }
            let mut of_row = converted::<T, K, V, W>(raw_x);
            let gradient = converted::<T, K, V, W>(raw_dy);
            if has_bias && mine.exists {
                leave(of_groups, group * span, all, gradient, false);
            }

            let mut h = gradient;
            if weight.is_some() {
                h = weighted::<T, K, V, W, LEN>(gradient, factors, mine, offset);
            }
            let mut mean = Sums { first: 0.0, second: 0.0 };
            if centred {
                mean = row_sums(totals(of_row, h, mine, columns), width, slot, of_warps);
                mean = Sums { first: mean.first / cast::<f32>(columns), second: mean.second * share };
                slot ^= 1;
            }
            let both = row_sums(squares(of_row, h, mean.first, mine, columns), width, slot, of_warps);
            slot ^= 1;
            let mut old = [[cast::<T>(0.0f32); W]; K];
            if adds {
                old = fetch::<T, K, V, W>(dx, to, mine, if mine.exists { columns } else { 0 });
            }
            let factor = recip(sqrt(both.first * share + epsilon));
            let slope = both.second * share * factor;
            // The products are computed again, which takes less registers than to keep them.
            if weight.is_some() {
                h = weighted::<T, K, V, W, LEN>(gradient, factors, mine, offset);
            }
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    of_row[k][i] = (of_row[k][i] - mean.first) * factor;
                    if mine.exists {
                        of_weight[k][i] = fma(gradient[k][i], of_row[k][i], of_weight[k][i]);
                    }
                    let pulled = fma(of_row[k][i], -(slope * factor), -(mean.second * factor));
                    of_row[k][i] = fma(h[k][i], factor, pulled);
                    if adds {
                        of_row[k][i] += cast::<f32>(old[k][i]);
                    }
                }
            }
            store::<T, K, V, W>(dx, to, mine, columns, of_row);
        }

        if let Some(sums) = sums {
            let start = block_idx().x as u64 * columns as u64;
            if has_bias {
                let start = start + grid_dim().x as u64 * columns as u64;
                add_groups(of_groups, span, height, columns, sums, start, THREADS);
            }
            leave(of_groups, group * span, all, of_weight, true);
            add_groups(of_groups, span, height, columns, sums, start, THREADS);
        }
    }
}
