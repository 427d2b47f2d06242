//! The kernel of the gradients of activations of many rows, which pass through shared memory.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Gradients of activated rows in batches.
#[tma_module]
pub mod batches {
    use tma_runtime::prelude::*;

    use crate::model::gated::gradient::rows::slopes_of;
    use crate::model::stages::of_stages::{
        Batches, height_of, load_batch, place, rounded, store_batch, unpacked,
    };
    use crate::model::vectors::of_rows::Strides;

    /// The buffers of a block: three batches of two tensors.
    const BUFFERS: u32 = 6;

    /// The rows that a batch is loaded from.
    #[derive(Clone, Copy)]
    pub struct Sources {
        /// The elements that were activated.
        pub x: Strides,
        /// The gradients of the results.
        pub dy: Strides,
    }

    /// Starts the loads of a batch into adjacent buffers: each of the loaders calls it, and loads its
    /// tensor.
    #[tma_device]
    pub fn load_all<T: TileElement, const LEN: u32>(
        x: Global<T>,
        dy: Global<T>,
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
        } else {
            load_batch(dy, sources.dy, batches, batch, buffers[first + 1], full);
        }
    }

    /// Multiplies gradients by slopes as [`slopes`](super::super::gradient::rows::slopes) does,
    /// without other columns. `width` threads have a row of each batch, with two vectors each:
    /// functions take so many instructions that all warps of a multiprocessor are needed. Results
    /// replace elements in their buffers.
    #[tma_kernel(threads = THREADS, min_blocks = 1024 / THREADS, unchecked, instances(
        (T, FORM) in [bf16 = (bf16, 1), f16 = (f16, 0), f32 = (f32, 0)],
        THREADS in [short = 512, long = 1024],
        let V = 16 / size_of::<T>(),
        let LEN = THREADS * 2 * V as u32,
        let WORDS = THREADS * 8,
    ))]
    pub fn slopes_staged<
        T,
        const FORM: u32,
        const THREADS: u32,
        const V: usize,
        const LEN: u32,
        const WORDS: u32,
    >(
        x: Global<T>,
        dy: Global<T>,
        dx: Global<T>,
        rows: u32,
        inner: u32,
        columns: u32,
        width: u32,
        height: u32,
        run: u32,
        function: u32,
        cap: f32,
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
        let full: Stages<Barrier, BUFFERS> = shared();
        let leader = thread_idx().x == 0;
        let batches = Batches { rows, inner, columns, height, run };
        let count = rows.div_ceil(height);
        let sources = Sources {
            x: Strides { outer: x_outer, inner: x_inner },
            dy: Strides { outer: dy_outer, inner: dy_inner },
        };
        let of_dx = Strides { outer: dx_outer, inner: dx_inner };
        let slots = BUFFERS / 2;
        // Each tensor of a batch is loaded by a warp of its own, and results are stored by the first
        // one, so that no thread keeps the others waiting for long.
        let is_loader = lane_idx() == 0 && warp_idx() >= 1 && warp_idx() <= 2;
        if leader {
            for i in 0..BUFFERS {
                full[i].init(2);
            }
            fence_barrier_init();
        }
        sync_threads();
        grid_dependency_launch();
        grid_dependency_wait();

        let mut ahead = block_idx().x;
        for i in 0..slots - 1 {
            if is_loader && ahead < count {
                load_all(x, dy, sources, batches, ahead, buffers, i * 2, full[i]);
            }
            ahead += grid_dim().x;
        }

        let mine = place(width, V as u32, columns);
        let mut slot = 0;
        let mut parity = 0;
        let mut batch = block_idx().x;
        while batch < count {
            let of_x = slot * 2;
            full[slot].wait(parity);
            let end = if mine.row < height_of(batches, batch) { columns } else { 0 };
            for k in unroll(0..2u32) {
                if mine.column + k * mine.step < end {
                    let vector = mine.vector + k * width;
                    let elements = unpacked::<FORM, V>(words[of_x].get_vec::<4>(vector * 4));
                    let factors = unpacked::<FORM, V>(words[of_x + 1].get_vec::<4>(vector * 4));
                    let mut slope = slopes_of::<V>(elements, function, cap)[1];
                    for i in unroll(0..V) {
                        slope[i] *= factors[i];
                    }
                    buffers[of_x].set_vec(vector * V as u32, rounded::<T, V>(slope));
                }
            }
            fence_proxy_async();
            if leader {
                // The stores of the previous batch, whose buffers are next, have read them.
                bulk_wait_group_read::<0>();
            }
            sync_threads();
            if leader {
                store_batch(dx, of_dx, batches, batch, buffers[of_x]);
                bulk_commit_group();
            }
            if is_loader && ahead < count {
                let next = if slot == 0 { slots - 1 } else { slot - 1 };
                load_all(x, dy, sources, batches, ahead, buffers, next * 2, full[next]);
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
