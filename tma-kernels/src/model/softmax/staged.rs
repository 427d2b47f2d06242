//! The softmax of many rows, which pass through shared memory.

use tma_runtime::tma_module;

/// Softmax of rows in batches.
#[tma_module]
pub mod batches {
    use tma_runtime::prelude::*;

    use crate::model::softmax::kernel::rows::power;
    use crate::model::stages::of_stages::{
        BUFFERS, Batches, height_of, load_batch, place, rounded, store_batch, unpacked,
    };
    use crate::model::vectors::of_rows::{Strides, row_max, row_sum};

    /// ln(2).
    const LN_2: f32 = 11_629_080.0 / 16_777_216.0;

    /// Computes exp(scale · x) / Σ exp(scale · x) of rows, or its logarithm. `factor` is scale ·
    /// log2(e). `width` threads have a row of each batch.
    #[tma_kernel(threads = THREADS, min_blocks = 512 / THREADS, unchecked, instances(
        (T, FORM) in [bf16 = (bf16, 1), f16 = (f16, 0), f32 = (f32, 0)],
        THREADS in [short = 256, long = 512],
        let V = 16 / size_of::<T>(),
        let LEN = THREADS * 4 * V as u32,
        let WORDS = THREADS * 16,
        let WARPS = THREADS / 32,
    ))]
    pub fn softmax_staged<
        T,
        const FORM: u32,
        const THREADS: u32,
        const V: usize,
        const LEN: u32,
        const WORDS: u32,
        const WARPS: u32,
    >(
        x: Global<T>,
        out: Global<T>,
        rows: u32,
        inner: u32,
        columns: u32,
        width: u32,
        height: u32,
        run: u32,
        is_log: bool,
        factor: f32,
        x_outer: u64,
        x_inner: u64,
        out_outer: u64,
        out_inner: u64,
    ) where
        T: TileElement + Number,
    {
        let buffers: Stages<SharedArray<T, LEN>, BUFFERS> = shared();
        let words: Stages<SharedArray<u32, WORDS>, BUFFERS> = reuse(buffers);
        let full: Stages<Barrier, BUFFERS> = shared();
        let sums: SharedArray<f32, WARPS> = shared();
        let leader = thread_idx().x == 0;
        let batches = Batches { rows, inner, columns, height, run };
        let count = rows.div_ceil(height);
        let from = Strides { outer: x_outer, inner: x_inner };
        let to = Strides { outer: out_outer, inner: out_inner };
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
        for i in 0..BUFFERS - 1 {
            if leader && ahead < count {
                full[i].arrive_expect_tx(height_of(batches, ahead) * columns * size_of::<T>() as u32);
                load_batch(x, from, batches, ahead, buffers[i], full[i]);
            }
            ahead += grid_dim().x;
        }

        let mine = place(width, V as u32, columns);
        let mut slot = 0;
        let mut parity = 0;
        let mut batch = block_idx().x;
        while batch < count {
            full[slot].wait(parity);
            let end = if mine.row < height_of(batches, batch) { columns } else { 0 };
            let mut of_row = [[f32::NEG_INFINITY; V]; 4];
            let mut greatest = f32::NEG_INFINITY;
            for k in unroll(0..4u32) {
                if mine.column + k * mine.step < end {
                    let vector = unpacked::<FORM, V>(words[slot].get_vec::<4>((mine.vector + k * width) * 4));
                    for i in unroll(0..V) {
                        greatest = max(greatest, vector[i]);
                    }
                    of_row[k as usize] = vector;
                }
            }
            let most = row_max(greatest, width, sums);
            let base = if most == f32::NEG_INFINITY { 0.0 } else { most };
            let mut sum = 0.0f32;
            for k in unroll(0..4usize) {
                for i in unroll(0..V) {
                    if is_log {
                        of_row[k][i] = (of_row[k][i] - base) * factor;
                        sum += exp2_ftz(of_row[k][i]);
                    } else {
                        of_row[k][i] = power(of_row[k][i], base, factor);
                        sum += of_row[k][i];
                    }
                }
            }
            let total = row_sum(sum, width, sums);
            let inverse = recip(total);
            let log_sum = log2(total);
            for k in unroll(0..4u32) {
                if mine.column + k * mine.step < end {
                    let mut y = of_row[k as usize];
                    for i in unroll(0..V) {
                        y[i] = if is_log { (y[i] - log_sum) * LN_2 } else { y[i] * inverse };
                    }
                    buffers[slot].set_vec((mine.vector + k * width) * V as u32, rounded::<T, V>(y));
                }
            }
            fence_proxy_async();
            sync_threads();
            let previous = if slot == 0 { BUFFERS - 1 } else { slot - 1 };
            if leader {
                store_batch(out, to, batches, batch, buffers[slot]);
                bulk_commit_group();
                if ahead < count {
                    // The stores of the previous batch, whose buffer is next, have read it.
                    bulk_wait_group_read::<1>();
                    full[previous]
                        .arrive_expect_tx(height_of(batches, ahead) * columns * size_of::<T>() as u32);
                    load_batch(x, from, batches, ahead, buffers[previous], full[previous]);
                }
            }
            ahead += grid_dim().x;
            batch += grid_dim().x;
            slot += 1;
            if slot == BUFFERS {
                slot = 0;
                parity ^= 1;
            }
        }
        if leader {
            bulk_wait_group_read::<0>();
        }
    }
}
