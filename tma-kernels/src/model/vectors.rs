//! Functions of the kernels over rows: which vectors a thread has, and sums over the threads of a
//! row. A vector has `V` elements: 16 bytes, or 1 element if rows are not aligned. `W` is `V`, or 2
//! if `V` is 1, since the language has no vectors of 1 element.

use tma_runtime::tma_module;

/// Rows in vectors.
#[tma_module]
pub mod of_rows {
    use tma_runtime::prelude::*;

    /// The distances between rows, in elements. A row's number is divided by the extent of the
    /// inner dimension.
    #[derive(Clone, Copy)]
    pub struct Strides {
        /// The distance between indices of the outer dimension.
        pub outer: u64,
        /// The distance between indices of the inner dimension.
        pub inner: u64,
    }

    /// Returns the index of a row's first element.
    #[tma_device]
    pub fn row_start(strides: Strides, row: u32, inner: u32) -> u64 {
        (row / inner) as u64 * strides.outer + (row % inner) as u64 * strides.inner
    }

    /// The part of a row that a thread has.
    #[derive(Clone, Copy)]
    pub struct Part {
        /// The row.
        pub row: u32,
        /// Whether there is such a row.
        pub exists: bool,
        /// The first column of the thread's first vector.
        pub column: u32,
        /// The distance between the thread's vectors, in columns.
        pub step: u32,
    }

    /// Returns the part of this thread. A row has `width` adjacent threads, a power of two, and
    /// each block as many rows as its `threads` have room for.
    #[tma_device]
    pub fn part(threads: u32, width: u32, vector: u32, rows: u32) -> Part {
        let row = block_idx().x * (threads / width) + thread_idx().x / width;
        Part { row, exists: row < rows, column: thread_idx().x % width * vector, step: width * vector }
    }

    /// Returns the part that follows this one by so many columns.
    #[tma_device]
    pub fn shifted(part: Part, columns: u32) -> Part {
        Part { column: part.column + columns, ..part }
    }

    /// Loads the thread's vectors of a row, as `f32`: elements of 16 bits would take as many
    /// registers, and their conversions as many again. Elements beyond the row are 0.
    #[tma_device]
    pub fn load<T: TileElement + Number, const K: usize, const V: usize, const W: usize>(
        from: Global<T>,
        start: u64,
        part: Part,
        columns: u32,
    ) -> [[f32; V]; K] {
        let mut x = [[0.0f32; V]; K];
        if part.exists {
            // All loads are issued before the first instruction that needs one of them: vectors
            // beyond the row repeat its last one, and are cleared afterwards.
            let mut vectors = [[cast::<T>(0.0f32); W]; K];
            for k in unroll(0..K) {
                let column = min(part.column + k as u32 * part.step, columns - V as u32);
                if V == 1 {
                    vectors[k][0] = from.get(start + column as u64);
                } else {
                    vectors[k] = from.get_vec::<W>(start + column as u64);
                }
            }
            for k in unroll(0..K) {
                let is_beyond = part.column + k as u32 * part.step >= columns;
                for i in unroll(0..V) {
                    x[k][i] = if is_beyond { 0.0 } else { cast::<f32>(vectors[k][i]) };
                }
            }
        }
        x
    }

    /// Stores the thread's vectors of a row, rounded to `T`.
    #[tma_device]
    pub fn store<T: TileElement + Number, const K: usize, const V: usize, const W: usize>(
        to: Global<T>,
        start: u64,
        part: Part,
        columns: u32,
        x: [[f32; V]; K],
    ) {
        if part.exists {
            for k in unroll(0..K) {
                let column = part.column + k as u32 * part.step;
                if column < columns {
                    if V == 1 {
                        to.set(start + column as u64, cast::<T>(x[k][0]));
                    } else {
                        let mut vector = [cast::<T>(0.0f32); W];
                        for i in unroll(0..V) {
                            vector[i] = cast::<T>(x[k][i]);
                        }
                        to.set_vec(start + column as u64, vector);
                    }
                }
            }
        }
    }

    /// Returns the sum over the `width` threads of a row. All threads of the block call it. `sums`
    /// has an element for each warp.
    #[tma_device]
    pub fn row_sum<const WARPS: u32>(x: f32, width: u32, sums: SharedArray<f32, WARPS>) -> f32 {
        let mut all = x;
        for step in unroll(0..5u32) {
            let mask = 16u32 >> step;
            let other = shuffle_xor(all, mask);
            all += if mask < width { other } else { 0.0 };
        }
        if width > 32 {
            sync_threads(); // no thread reads the sums of an earlier call any more
            if lane_idx() == 0 {
                sums.set(warp_idx(), all);
            }
            sync_threads();
            let warps = width / 32;
            let mut of_lane = 0.0;
            if lane_idx() < warps {
                of_lane = sums.get(warp_idx() / warps * warps + lane_idx());
            }
            all = warp_reduce_add(of_lane);
        }
        all
    }

    /// Returns the greatest number of the `width` threads of a row, like [`row_sum`]. NaNs do not
    /// count.
    #[tma_device]
    pub fn row_max<const WARPS: u32>(x: f32, width: u32, sums: SharedArray<f32, WARPS>) -> f32 {
        let mut all = x;
        for step in unroll(0..5u32) {
            let mask = 16u32 >> step;
            let other = shuffle_xor(all, mask);
            all = if mask < width { max(all, other) } else { all };
        }
        if width > 32 {
            sync_threads();
            if lane_idx() == 0 {
                sums.set(warp_idx(), all);
            }
            sync_threads();
            let warps = width / 32;
            let mut of_lane = f32::NEG_INFINITY;
            if lane_idx() < warps {
                of_lane = sums.get(warp_idx() / warps * warps + lane_idx());
            }
            all = warp_reduce_max(of_lane);
        }
        all
    }
}
