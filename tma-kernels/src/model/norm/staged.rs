//! RMSNorm and LayerNorm of many rows, which pass through shared memory.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Normalised rows in batches.
#[tma_module]
pub mod batches {
    use tma_runtime::prelude::*;

    use crate::model::quantize::kernel::rows::{
        Scales, greatest_of_all, scale_of, store_blocks, store_scale, store_scaled,
    };
    use crate::model::stages::of_stages::{
        BUFFERS, Batches, height_of, load_batch, place, rounded, store_batch, unpacked, words_at,
    };
    use crate::model::vectors::of_rows::{Part, Strides, row_max, row_sum};

    /// Copies terms of columns to shared memory.
    #[tma_device]
    pub fn copy_terms<T: TileElement, const V: usize, const LEN: u32>(
        from: Global<T>,
        to: SharedArray<T, LEN>,
        columns: u32,
        threads: u32,
    ) {
        let mut column = thread_idx().x * V as u32;
        while column < columns {
            to.set_vec(column, from.get_vec::<V>(column));
            column += threads * V as u32;
        }
    }

    /// Copies factors of columns to shared memory, as `f32`. A vector of eight has two halves, which
    /// are `half` elements apart, so that the banks of neighbouring threads do not conflict.
    #[tma_device]
    pub fn copy_factors<T: TileElement + Number, const V: usize, const LEN: u32>(
        from: Global<T>,
        to: SharedArray<f32, LEN>,
        columns: u32,
        half: u32,
        threads: u32,
        one_plus: bool,
    ) {
        let mut column = thread_idx().x * V as u32;
        while column < columns {
            let vector = from.get_vec::<V>(column);
            for part in unroll(0..V / 4) {
                let mut factors = [0.0f32; 4];
                for i in unroll(0..4usize) {
                    let factor = cast::<f32>(vector[4 * part + i]);
                    factors[i] = if one_plus { factor + 1.0 } else { factor };
                }
                to.set_vec(part as u32 * half + column / V as u32 * 4, factors);
            }
            column += threads * V as u32;
        }
    }

    /// Normalises rows as [`normalise`](super::super::kernel::rows::normalise) does. `width` threads
    /// have a row of each batch. With a residual, each batch has two buffers.
    #[tma_kernel(threads = THREADS, min_blocks = 512 / THREADS, unchecked, instances(
        (T, FORM) in [bf16 = (bf16, 1), f16 = (f16, 0), f32 = (f32, 0)],
        THREADS in [short = 256, long = 512],
        let V = 16 / size_of::<T>(),
        let LEN = THREADS * 4 * V as u32,
        let WORDS = THREADS * 16,
        let WARPS = THREADS / 32,
    ))]
    pub fn normalise_staged<
        T,
        const FORM: u32,
        const THREADS: u32,
        const V: usize,
        const LEN: u32,
        const WORDS: u32,
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
        height: u32,
        run: u32,
        centred: bool,
        in_blocks: bool,
        one_plus_weight: bool,
        epsilon: f32,
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
        let buffers: Stages<SharedArray<T, LEN>, BUFFERS> = shared();
        let words: Stages<SharedArray<u32, WORDS>, BUFFERS> = reuse(buffers);
        let factors: SharedArray<f32, LEN> = shared();
        let biases: SharedArray<T, LEN> = shared();
        let bias_words: SharedArray<u32, WORDS> = reuse(biases);
        let full: Stages<Barrier, BUFFERS> = shared();
        let sums: SharedArray<f32, WARPS> = shared();
        let leader = thread_idx().x == 0;
        let loader = thread_idx().x == 32; // another warp, so that both work at a time
        let batches = Batches { rows, inner, columns, height, run };
        let count = rows.div_ceil(height);
        let from = Strides { outer: x_outer, inner: x_inner };
        let to = Strides { outer: out_outer, inner: out_inner };
        let of_residual = Strides { outer: residual_outer, inner: residual_inner };
        let in_each = if residual.is_some() { 2 } else { 1 };
        let slots = BUFFERS / in_each;
        let row_bytes = columns * size_of::<T>() as u32 * in_each;
        if leader {
            for i in 0..BUFFERS {
                full[i].init(1);
            }
            fence_barrier_init();
        }
        sync_threads();
        grid_dependency_launch();
        grid_dependency_wait();

        let mut ahead = block_idx().x;
        for i in 0..slots - 1 {
            if ahead < count {
                if loader {
                    full[i].arrive_expect_tx(height_of(batches, ahead) * row_bytes);
                    load_batch(x, from, batches, ahead, buffers[i * in_each], full[i]);
                    if let Some(residual) = residual {
                        load_batch(residual, of_residual, batches, ahead, buffers[i * in_each + 1], full[i]);
                    }
                }
            }
            ahead += grid_dim().x;
        }
        if let Some(weight) = weight {
            copy_factors::<T, V, LEN>(weight, factors, columns, WORDS, THREADS, one_plus_weight);
        }
        if let Some(bias) = bias {
            copy_terms::<T, V, LEN>(bias, biases, columns, THREADS);
        }
        sync_threads();

        let share = recip(cast::<f32>(columns));
        let mine = place(width, V as u32, columns);
        let mut slot = 0;
        let mut parity = 0;
        let mut batch = block_idx().x;
        while batch < count {
            let buffer = slot * in_each;
            full[slot].wait(parity);
            let exists = mine.row < height_of(batches, batch);
            let end = if exists { columns } else { 0 };
            let mut of_row = [[0.0f32; V]; 4];
            if mine.column < end {
                for k in unroll(0..4u32) {
                    let exists = mine.column + k * mine.step < end;
                    let found = words_at(words[buffer], mine.vector + k * width, mine.vector, exists);
                    of_row[k as usize] = unpacked::<FORM, V>(found);
                }
                if residual.is_some() {
                    for k in unroll(0..4u32) {
                        let exists = mine.column + k * mine.step < end;
                        let found = words_at(words[buffer + 1], mine.vector + k * width, mine.vector, exists);
                        let other = unpacked::<FORM, V>(found);
                        for i in unroll(0..V) {
                            of_row[k as usize][i] += other[i];
                        }
                    }
                    for k in unroll(0..4u32) {
                        let sum = rounded::<T, V>(of_row[k as usize]);
                        if mine.column + k * mine.step < end {
                            buffers[buffer + 1].set_vec((mine.vector + k * width) * V as u32, sum);
                        }
                        for i in unroll(0..V) {
                            of_row[k as usize][i] = cast::<f32>(sum[i]);
                        }
                    }
                }
            }
            if centred {
                let mut parts = [0.0f32; 4];
                for k in unroll(0..4usize) {
                    for i in unroll(0..V) {
                        parts[k] += of_row[k][i];
                    }
                }
                let sum = row_sum((parts[0] + parts[1]) + (parts[2] + parts[3]), width, sums);
                let mean = sum / cast::<f32>(columns);
                for k in unroll(0..4usize) {
                    for i in unroll(0..V) {
                        of_row[k][i] -= mean;
                    }
                }
            }
            let mut parts = [0.0f32; 4];
            for k in unroll(0..4u32) {
                // Elements beyond the row have a distance from the mean as well.
                if mine.column + k * mine.step < end {
                    for i in unroll(0..V) {
                        let distance = of_row[k as usize][i];
                        parts[k as usize] = fma(distance, distance, parts[k as usize]);
                    }
                }
            }
            let squares = row_sum((parts[0] + parts[1]) + (parts[2] + parts[3]), width, sums);
            let factor = rsqrt(fma(squares, share, epsilon));
            for k in unroll(0..4usize) {
                for i in unroll(0..V) {
                    of_row[k][i] *= factor;
                }
            }
            // The terms of columns beyond the row are not used, but loaded without a condition.
            if weight.is_some() {
                for k in unroll(0..4u32) {
                    let column = mine.column + k * mine.step;
                    let vector = if column < end { column / V as u32 } else { 0 };
                    for part in unroll(0..V / 4) {
                        let of_columns = factors.get_vec::<4>(part as u32 * WORDS + vector * 4);
                        for i in unroll(0..4usize) {
                            of_row[k as usize][4 * part + i] *= of_columns[i];
                        }
                    }
                }
            }
            if bias.is_some() {
                for k in unroll(0..4u32) {
                    let column = mine.column + k * mine.step;
                    let found = words_at(bias_words, column / V as u32, 0, column < end);
                    let of_columns = unpacked::<FORM, V>(found);
                    for i in unroll(0..V) {
                        of_row[k as usize][i] += of_columns[i];
                    }
                }
            }
            for k in unroll(0..4u32) {
                if mine.column + k * mine.step < end {
                    let vector = mine.vector + k * width;
                    buffers[buffer].set_vec(vector * V as u32, rounded::<T, V>(of_row[k as usize]));
                    if quantised.is_some() {
                        // Vectors are rounded faster than elements.
                        of_row[k as usize] = unpacked::<FORM, V>(words[buffer].get_vec::<4>(vector * 4));
                    }
                }
            }
            // Before the stores of quantised rows, for which it would wait.
            fence_proxy_async();
            if let Some(quantised) = quantised {
                if let Some(scales) = scales {
                    let scales = Scales { all: scales, row: scales_row, block: scales_block };
                    let row = batch * height + mine.row;
                    let part = Part { row, exists, column: mine.column, step: mine.step };
                    let start = row as u64 * out_inner;
                    if in_blocks {
                        store_blocks::<4, V, V>(quantised, start, scales, part, columns, of_row);
                    } else {
                        let scale = scale_of(row_max(greatest_of_all(of_row), width, sums));
                        if exists && mine.column == 0 {
                            store_scale(scales, row, 0, scale);
                        }
                        store_scaled::<4, V, V>(quantised, start, part, columns, of_row, scale);
                    }
                }
            }
            if leader {
                // The stores of the previous batch, whose buffers are next, have read them.
                bulk_wait_group_read::<0>();
            }
            sync_threads();
            if leader {
                if let Some(out) = out {
                    store_batch(out, to, batches, batch, buffers[buffer]);
                }
                if let Some(residual) = residual {
                    store_batch(residual, of_residual, batches, batch, buffers[buffer + 1]);
                }
                bulk_commit_group();
            }
            if loader && ahead < count {
                let next = if slot == 0 { slots - 1 } else { slot - 1 };
                full[next].arrive_expect_tx(height_of(batches, ahead) * row_bytes);
                load_batch(x, from, batches, ahead, buffers[next * in_each], full[next]);
                if let Some(residual) = residual {
                    let to = buffers[next * in_each + 1];
                    load_batch(residual, of_residual, batches, ahead, to, full[next]);
                }
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
    }
}
