//! The quantisation of many rows, which pass through shared memory.

use tma_runtime::tma_module;

/// Rows of `e4m3` with a scale each, in batches.
#[tma_module]
pub mod batches {
    use tma_runtime::prelude::*;

    use crate::model::quantize::kernel::rows::{
        Scales, greatest_of_all, scale_of, store_scale, store_scaled,
    };
    use crate::model::stages::of_stages::{BUFFERS, Batches, height_of, load_batch, place, unpacked};
    use crate::model::vectors::of_rows::{Part, Strides, row_max};

    /// Quantises rows. `width` threads have a row of each batch.
    #[tma_kernel(threads = THREADS, min_blocks = 512 / THREADS, unchecked, instances(
        (T, FORM) in [bf16 = (bf16, 1), f16 = (f16, 0), f32 = (f32, 0)],
        THREADS in [short = 256, long = 512],
        let V = 16 / size_of::<T>(),
        let LEN = THREADS * 4 * V as u32,
        let WORDS = THREADS * 16,
        let WARPS = THREADS / 32,
    ))]
    pub fn quantise_staged<
        T,
        const FORM: u32,
        const THREADS: u32,
        const V: usize,
        const LEN: u32,
        const WORDS: u32,
        const WARPS: u32,
    >(
        x: Global<T>,
        out: Global<e4m3>,
        scales: Global<f32>,
        rows: u32,
        columns: u32,
        width: u32,
        height: u32,
        run: u32,
        x_row: u64,
        out_row: u64,
        scales_row: u64,
    ) where
        T: TileElement + Number,
    {
        let buffers: Stages<SharedArray<T, LEN>, BUFFERS> = shared();
        let words: Stages<SharedArray<u32, WORDS>, BUFFERS> = reuse(buffers);
        let full: Stages<Barrier, BUFFERS> = shared();
        let sums: SharedArray<f32, WARPS> = shared();
        let leader = thread_idx().x == 0;
        let batches = Batches { rows, inner: rows, columns, height, run };
        let count = rows.div_ceil(height);
        let row_bytes = columns * size_of::<T>() as u32;
        let from = Strides { outer: 0, inner: x_row };
        let scales = Scales { all: scales, row: scales_row, block: 0 };
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
        for i in 0..BUFFERS {
            if leader && ahead < count {
                full[i].arrive_expect_tx(height_of(batches, ahead) * row_bytes);
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
            let exists = mine.row < height_of(batches, batch);
            let end = if exists { columns } else { 0 };
            let mut of_row = [[0.0f32; V]; 4];
            for k in unroll(0..4u32) {
                if mine.column + k * mine.step < end {
                    let vector = mine.vector + k * width;
                    of_row[k as usize] = unpacked::<FORM, V>(words[slot].get_vec::<4>(vector * 4));
                }
            }
            // All threads have read the batch: its buffer is loaded again. They have not written to
            // it, so that there is no proxy fence, which would wait for the stores of the last batch.
            sync_threads();
            if leader && ahead < count {
                full[slot].arrive_expect_tx(height_of(batches, ahead) * row_bytes);
                load_batch(x, from, batches, ahead, buffers[slot], full[slot]);
            }
            let row = batch * height + mine.row;
            let part = Part { row, exists, column: mine.column, step: mine.step };
            let start = row as u64 * out_row;
            let scale = scale_of(row_max(greatest_of_all(of_row), width, sums));
            if exists && mine.column == 0 {
                store_scale(scales, row, 0, scale);
            }
            store_scaled::<4, V, V>(out, start, part, columns, of_row, scale);
            ahead += grid_dim().x;
            batch += grid_dim().x;
            slot += 1;
            if slot == BUFFERS {
                slot = 0;
                parity ^= 1;
            }
        }
    }
}
