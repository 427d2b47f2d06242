//! Functions of the kernels that stream rows through shared memory. A block stays for many batches
//! of rows. While it works on one, the copy engine loads the next ones, so that the memory never
//! waits for the arithmetic, and threads need no address or bounds check for each vector.

use tma_runtime::tma_module;

/// Batches of rows in shared memory.
#[tma_module]
pub mod of_stages {
    use tma_runtime::prelude::*;

    use crate::model::vectors::of_rows::{Strides, row_index, row_start};

    /// The buffers of a block.
    pub const BUFFERS: u32 = 4;

    /// How rows are divided into batches.
    #[derive(Clone, Copy)]
    pub struct Batches {
        /// The number of rows.
        pub rows: u32,
        /// The extent of the inner dimension of rows.
        pub inner: u32,
        /// The columns of a row.
        pub columns: u32,
        /// The rows of a batch.
        pub height: u32,
        /// The rows that follow each other in memory, and are one copy.
        pub run: u32,
    }

    /// Returns the number of rows of a batch; the last one may have fewer than the others.
    #[tma_device]
    pub fn height_of(batches: Batches, batch: u32) -> u32 {
        min(batches.height, batches.rows - batch * batches.height)
    }

    /// Starts the loads of a batch. One thread calls it.
    #[tma_device]
    pub fn load_batch<T: TileElement, const N: u32>(
        from: Global<T>,
        strides: Strides,
        batches: Batches,
        batch: u32,
        to: SharedArray<T, N>,
        full: Barrier,
    ) {
        load_part(from, strides, 0, batches, batch, to, full);
    }

    /// Starts the loads of a batch whose rows begin at this element of longer ones.
    #[tma_device]
    pub fn load_part<T: TileElement, const N: u32>(
        from: Global<T>,
        strides: Strides,
        first: u64,
        batches: Batches,
        batch: u32,
        to: SharedArray<T, N>,
        full: Barrier,
    ) {
        let height = height_of(batches, batch);
        let mut row = 0;
        while row < height {
            let count = min(batches.run, height - row) * batches.columns;
            let start = row_start(strides, row_index(batch * batches.height + row, batches.inner));
            from.bulk_load(to, row * batches.columns, count, start + first, full);
            row += batches.run;
        }
    }

    /// Starts the stores of a batch. One thread calls it, and commits them.
    #[tma_device]
    pub fn store_batch<T: TileElement, const N: u32>(
        to: Global<T>,
        strides: Strides,
        batches: Batches,
        batch: u32,
        from: SharedArray<T, N>,
    ) {
        store_part(to, strides, 0, batches, batch, from);
    }

    /// Starts the stores of a batch whose rows begin at this element of longer ones.
    #[tma_device]
    pub fn store_part<T: TileElement, const N: u32>(
        to: Global<T>,
        strides: Strides,
        first: u64,
        batches: Batches,
        batch: u32,
        from: SharedArray<T, N>,
    ) {
        let height = height_of(batches, batch);
        let mut row = 0;
        while row < height {
            let count = min(batches.run, height - row) * batches.columns;
            let start = row_start(strides, row_index(batch * batches.height + row, batches.inner));
            to.bulk_store(start + first, from, row * batches.columns, count);
            row += batches.run;
        }
    }

    /// The vectors that a thread has of each batch, counted from the beginning of the buffer.
    #[derive(Clone, Copy)]
    pub struct Place {
        /// The thread's row in the batch.
        pub row: u32,
        /// The first column of the thread's first vector.
        pub column: u32,
        /// The distance between the thread's vectors, in columns.
        pub step: u32,
        /// The thread's first vector in a buffer.
        pub vector: u32,
    }

    /// Returns the vectors of this thread. A row has `width` adjacent threads, a power of two.
    #[tma_device]
    pub fn place(width: u32, elements: u32, columns: u32) -> Place {
        let row = thread_idx().x >> width.trailing_zeros();
        let lane = thread_idx().x & (width - 1);
        let vector = row * (columns / elements) + lane;
        Place { row, column: lane * elements, step: width * elements, vector }
    }

    /// Returns the words of a vector of a buffer if the thread has it, or else zeros. The load has
    /// no condition, so that those of several vectors do not wait for each other: a thread without
    /// the vector loads vector `own` instead.
    #[tma_device]
    pub fn words_at<const WORDS: u32>(
        from: SharedArray<u32, WORDS>,
        vector: u32,
        own: u32,
        exists: bool,
    ) -> [u32; 4] {
        let words = from.get_vec::<4>(if exists { vector * 4 } else { own * 4 });
        let mut found = [0u32; 4];
        for i in unroll(0..4usize) {
            found[i] = if exists { words[i] } else { 0 };
        }
        found
    }

    /// Returns the elements of a vector. Those of 16 bits are `bf16` if `FORM` is 1, and otherwise
    /// `f16`.
    #[tma_device]
    pub fn unpacked<const FORM: u32, const V: usize>(words: [u32; 4]) -> [f32; V] {
        let mut x = [0.0f32; V];
        for word in unroll(0..4usize) {
            if V == 4 {
                x[word] = f32::from_bits(words[word]);
            } else if FORM == 1 {
                x[2 * word] = f32::from_bits(words[word] << 16);
                x[2 * word + 1] = f32::from_bits(words[word] & 0xffff_0000);
            } else {
                x[2 * word] = f16::from_bits(words[word] as u16).to_f32();
                x[2 * word + 1] = f16::from_bits((words[word] >> 16) as u16).to_f32();
            }
        }
        x
    }

    /// Rounds the elements of a vector.
    #[tma_device]
    pub fn rounded<T: TileElement + Number, const V: usize>(x: [f32; V]) -> [T; V] {
        let mut y = [cast::<T>(0.0f32); V];
        for i in unroll(0..V) {
            y[i] = cast::<T>(x[i]);
        }
        y
    }
}
