//! The kernel of the gradients of RMSNorm and LayerNorm of many rows, which pass through shared
//! memory.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Gradients of normalised rows in batches.
#[tma_module]
pub mod batches {
    use tma_runtime::prelude::*;

    use crate::model::norm::staged::batches::copy_terms;
    use crate::model::stages::of_stages::{
        Batches, height_of, load_batch, place, rounded, store_batch, unpacked,
    };
    use crate::model::sums::groups::{add_groups, leave};
    use crate::model::vectors::of_rows::{Part, Strides, Sums, row_sums};

    /// The tensors of a batch, which have one barrier.
    #[derive(Clone, Copy)]
    pub struct Sources {
        /// The rows.
        pub x: Strides,
        /// The gradients of the results.
        pub dy: Strides,
        /// The gradients of the rows.
        pub dx: Strides,
    }

    /// Starts the loads of a batch into adjacent buffers: each of the loaders calls it, and loads its
    /// tensor.
    #[tma_device]
    pub fn load_all<T: TileElement, const LEN: u32, const BUFFERS: u32>(
        x: Global<T>,
        dy: Global<T>,
        dx: Global<T>,
        sources: Sources,
        batches: Batches,
        batch: u32,
        buffers: Stages<SharedArray<T, LEN>, BUFFERS>,
        first: u32,
        full: Barrier,
    ) {
        let of_tensor = height_of(batches, batch) * batches.columns * size_of::<T>() as u32;
        full.arrive_expect_tx(of_tensor);
        if warp_idx() == 1 {
            load_batch(x, sources.x, batches, batch, buffers[first], full);
        } else if warp_idx() == 2 {
            load_batch(dy, sources.dy, batches, batch, buffers[first + 1], full);
        } else {
            load_batch(dx, sources.dx, batches, batch, buffers[first + 2], full);
        }
    }

    /// Returns a vector of gradients times the factors of their columns.
    #[tma_device]
    pub fn weighted<const FORM: u32, const V: usize, const WORDS: u32>(
        dy: [f32; V],
        factors: SharedArray<u32, WORDS>,
        column: u32,
        one_plus_weight: bool,
    ) -> [f32; V] {
        let mut h = unpacked::<FORM, V>(factors.get_vec::<4>(column / V as u32 * 4));
        if one_plus_weight {
            for i in unroll(0..V) {
                h[i] += 1.0;
            }
        }
        for i in unroll(0..V) {
            h[i] *= dy[i];
        }
        h
    }

    /// Returns a vector of a row and, weighted, that of the gradient.
    #[tma_device]
    pub fn pair_at<const FORM: u32, const V: usize, const WORDS: u32>(
        x: SharedArray<u32, WORDS>,
        dy: SharedArray<u32, WORDS>,
        at: u32,
        factors: SharedArray<u32, WORDS>,
        column: u32,
        has_weight: bool,
        one_plus_weight: bool,
    ) -> [[f32; V]; 2] {
        let mut h = unpacked::<FORM, V>(dy.get_vec::<4>(at));
        if has_weight {
            h = weighted::<FORM, V, WORDS>(h, factors, column, one_plus_weight);
        }
        [unpacked::<FORM, V>(x.get_vec::<4>(at)), h]
    }

    /// Computes gradients as [`differentiate`](super::super::gradient::rows::differentiate) does.
    /// `width` threads have a row of each batch, of which each has `K` vectors. Each batch has a
    /// buffer for each tensor, and its gradient replaces the rows. Threads with four vectors have no
    /// registers for them beside the sums of columns, and read them again in each pass. They have no
    /// sums of biases either.
    #[tma_kernel(threads = THREADS, min_blocks = 512 / THREADS, unchecked, instances(
        (T, FORM) in [bf16 = (bf16, 1), f16 = (f16, 0), f32 = (f32, 0)],
        (THREADS, K, BIAS) in [short = (256, 2, 1), medium = (512, 2, 1), long = (512, 4, 0)],
        let BUFFERS = if K < 4 { 9 } else { 6 },
        let V = 16 / size_of::<T>(),
        let LEN = THREADS * (K * V) as u32,
        let WORDS = THREADS * (K * 4) as u32,
        let SUMS = THREADS / 8, // two slots of two sums for each warp
    ))]
    pub fn differentiate_staged<
        T,
        const FORM: u32,
        const THREADS: u32,
        const K: usize,
        const BIAS: u32,
        const BUFFERS: u32,
        const V: usize,
        const LEN: u32,
        const WORDS: u32,
        const SUMS: u32,
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
        height: u32,
        run: u32,
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
        let buffers: Stages<SharedArray<T, LEN>, BUFFERS> = shared();
        let words: Stages<SharedArray<u32, WORDS>, BUFFERS> = reuse(buffers);
        let of_groups: SharedArray<f32, LEN> = reuse(buffers);
        let factors: SharedArray<T, LEN> = shared();
        let factor_words: SharedArray<u32, WORDS> = reuse(factors);
        let full: Stages<Barrier, BUFFERS> = shared();
        let of_warps: SharedArray<f32, SUMS> = shared();
        let leader = thread_idx().x == 0;
        let batches = Batches { rows, inner, columns, height, run };
        let count = rows.div_ceil(height);
        let sources = Sources {
            x: Strides { outer: x_outer, inner: x_inner },
            dy: Strides { outer: dy_outer, inner: dy_inner },
            dx: Strides { outer: dx_outer, inner: dx_inner },
        };
        let in_each = if adds { 3 } else { 2 };
        let slots = BUFFERS / in_each;
        // Each tensor of a batch is loaded by a warp of its own, and results are stored by the first
        // one: in a single thread, these instructions would take as long as the others have for a row.
        let is_loader = lane_idx() == 0 && warp_idx() >= 1 && warp_idx() <= in_each;
        if leader {
            for i in 0..BUFFERS {
                full[i].init(in_each);
            }
            fence_barrier_init();
        }
        sync_threads();
        grid_dependency_launch();
        grid_dependency_wait();

        let mut ahead = block_idx().x;
        for i in 0..slots - 1 {
            if is_loader && ahead < count {
                load_all(x, dy, dx, sources, batches, ahead, buffers, i * in_each, full[i]);
            }
            ahead += grid_dim().x;
        }
        if let Some(weight) = weight {
            copy_terms::<T, V, LEN>(weight, factors, columns, THREADS);
            sync_threads();
        }

        let share = recip(cast::<f32>(columns));
        let mine = place(width, V as u32, columns);
        let mut of_weight = [[0.0f32; V]; K];
        let mut of_bias = [[0.0f32; V]; K];
        let mut side = 0;
        let mut slot = 0;
        let mut parity = 0;
        let mut batch = block_idx().x;
        while batch < count {
            let of_x = slot * in_each;
            let of_dy = of_x + 1;
            full[slot].wait(parity);
            let end = if mine.row < height_of(batches, batch) { columns } else { 0 };
            let has_weight = weight.is_some();
            let mut of_row = [[0.0f32; V]; K];
            let mut h = [[0.0f32; V]; K];
            if K < 4 {
                for k in unroll(0..K as u32) {
                    let column = mine.column + k * mine.step;
                    if column < end {
                        let at = (mine.vector + k * width) * 4;
                        [of_row[k as usize], h[k as usize]] = pair_at::<FORM, V, WORDS>(
                            words[of_x],
                            words[of_dy],
                            at,
                            factor_words,
                            column,
                            has_weight,
                            one_plus_weight,
                        );
                    }
                }
            }
            let mut mean = Sums { first: 0.0, second: 0.0 };
            if centred {
                let mut totals = Sums { first: 0.0, second: 0.0 };
                if K < 4 {
                    for k in unroll(0..K) {
                        for i in unroll(0..V) {
                            totals.first += of_row[k][i];
                            totals.second += h[k][i];
                        }
                    }
                } else {
                    for k in 0..4u32 {
                        let column = mine.column + k * mine.step;
                        if column < end {
                            let at = (mine.vector + k * width) * 4;
                            let [vector, of_vector] = pair_at::<FORM, V, WORDS>(
                                words[of_x],
                                words[of_dy],
                                at,
                                factor_words,
                                column,
                                has_weight,
                                one_plus_weight,
                            );
                            for i in unroll(0..V) {
                                totals.first += vector[i];
                                totals.second += of_vector[i];
                            }
                        }
                    }
                }
                totals = row_sums(totals, width, side, of_warps);
                side ^= 1;
                mean = Sums { first: totals.first * share, second: totals.second * share };
            }
            // Elements beyond the row have a distance from the mean as well.
            let mut both = Sums { first: 0.0, second: 0.0 };
            if K < 4 {
                for k in unroll(0..K as u32) {
                    if mine.column + k * mine.step < end {
                        for i in unroll(0..V) {
                            of_row[k as usize][i] -= mean.first;
                            let distance = of_row[k as usize][i];
                            both.first = fma(distance, distance, both.first);
                            both.second = fma(h[k as usize][i], distance, both.second);
                        }
                    }
                }
            } else {
                for k in 0..4u32 {
                    let column = mine.column + k * mine.step;
                    if column < end {
                        let at = (mine.vector + k * width) * 4;
                        let [vector, of_vector] = pair_at::<FORM, V, WORDS>(
                            words[of_x],
                            words[of_dy],
                            at,
                            factor_words,
                            column,
                            has_weight,
                            one_plus_weight,
                        );
                        for i in unroll(0..V) {
                            let distance = vector[i] - mean.first;
                            both.first = fma(distance, distance, both.first);
                            both.second = fma(of_vector[i], distance, both.second);
                        }
                    }
                }
            }
            both = row_sums(both, width, side, of_warps);
            side ^= 1;
            let factor = rsqrt(fma(both.first, share, epsilon));
            let pull = -(both.second * share * factor * factor);
            let shift = -(mean.second * factor);
            for k in unroll(0..K as u32) {
                let column = mine.column + k * mine.step;
                if column < end {
                    let at = (mine.vector + k * width) * 4;
                    let gradient = unpacked::<FORM, V>(words[of_dy].get_vec::<4>(at));
                    let mut vector = of_row[k as usize];
                    let mut y = h[k as usize];
                    if K == 4 {
                        vector = unpacked::<FORM, V>(words[of_x].get_vec::<4>(at));
                        for i in unroll(0..V) {
                            vector[i] -= mean.first;
                        }
                        y = gradient;
                        if weight.is_some() {
                            y = weighted::<FORM, V, WORDS>(gradient, factor_words, column, one_plus_weight);
                        }
                    }
                    for i in unroll(0..V) {
                        let normal = vector[i] * factor;
                        of_weight[k as usize][i] = fma(gradient[i], normal, of_weight[k as usize][i]);
                        y[i] = fma(y[i], factor, fma(normal, pull, shift));
                    }
                    if BIAS == 1 && has_bias {
                        for i in unroll(0..V) {
                            of_bias[k as usize][i] += gradient[i];
                        }
                    }
                    if adds {
                        let old = unpacked::<FORM, V>(words[of_x + 2].get_vec::<4>(at));
                        for i in unroll(0..V) {
                            y[i] += old[i];
                        }
                    }
                    buffers[of_x].set_vec((mine.vector + k * width) * V as u32, rounded::<T, V>(y));
                }
            }
            fence_proxy_async();
            if leader {
                // The stores of the previous batch, whose buffers are next, have read them.
                bulk_wait_group_read::<0>();
            }
            sync_threads();
            if leader {
                store_batch(dx, sources.dx, batches, batch, buffers[of_x]);
                bulk_commit_group();
            }
            if is_loader && ahead < count {
                let next = if slot == 0 { slots - 1 } else { slot - 1 };
                load_all(x, dy, dx, sources, batches, ahead, buffers, next * in_each, full[next]);
            }
            ahead += grid_dim().x;
            batch += grid_dim().x;
            slot += 1;
            if slot == slots {
                slot = 0;
                parity ^= 1;
            }
        }
        if leader {
            bulk_wait_group_read::<0>();
        }
        sync_threads(); // sums of columns take the place of buffers

        if let Some(sums) = sums {
            let span = K as u32 * mine.step;
            let all = Part { row: 0, exists: true, column: mine.column, step: mine.step };
            let start = block_idx().x as u64 * columns as u64;
            if BIAS == 1 && has_bias {
                let start = start + grid_dim().x as u64 * columns as u64;
                leave(of_groups, mine.row * span, all, of_bias, true);
                add_groups(of_groups, span, height, columns, sums, start, THREADS);
            }
            leave(of_groups, mine.row * span, all, of_weight, true);
            add_groups(of_groups, span, height, columns, sums, start, THREADS);
        }
    }
}
