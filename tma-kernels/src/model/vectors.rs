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

    /// The indices of a row in the two dimensions of rows.
    #[derive(Clone, Copy)]
    pub struct RowIndex {
        /// The index in the outer dimension.
        pub outer: u32,
        /// The index in the inner dimension.
        pub inner: u32,
    }

    /// Returns the indices of a row. Most tensors have one dimension of rows, which takes no
    /// division.
    #[tma_device]
    pub fn row_index(row: u32, inner: u32) -> RowIndex {
        let mut outer = 0u32;
        if row >= inner {
            outer = row / inner;
        }
        RowIndex { outer, inner: row - outer * inner }
    }

    /// Returns the index of a row's first element.
    #[tma_device]
    pub fn row_start(strides: Strides, row: RowIndex) -> u64 {
        row.outer as u64 * strides.outer + row.inner as u64 * strides.inner
    }

    /// The part of a row that a thread has.
    #[derive(Clone, Copy)]
    pub struct Part {
        /// The row, or the last one if a thread has none: it then loads what others load, and
        /// stores nothing.
        pub row: u32,
        /// Whether the thread has a row.
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
        let shift = width.trailing_zeros();
        let row = block_idx().x * (threads >> shift) + (thread_idx().x >> shift);
        let column = (thread_idx().x & (width - 1)) * vector;
        Part { row: min(row, rows - 1), exists: row < rows, column, step: width * vector }
    }

    /// Returns the part that follows this one by so many columns.
    #[tma_device]
    pub fn shifted(part: Part, columns: u32) -> Part {
        Part { column: part.column + columns, ..part }
    }

    /// Loads the thread's vectors of a row. Elements beyond the row are 0.
    ///
    /// Indices are compared with the slice's length, which is never less than the kernel needs, by
    /// a condition of the load instead of a check that stops the grid: with branches in between,
    /// the loads of several vectors would wait for each other.
    #[tma_device]
    pub fn fetch<T: TileElement + Number, const K: usize, const V: usize, const W: usize>(
        from: Global<T>,
        start: u64,
        part: Part,
        columns: u32,
    ) -> [[T; W]; K] {
        let mut vectors = [[cast::<T>(0.0f32); W]; K];
        for k in unroll(0..K) {
            let column = part.column + k as u32 * part.step;
            let i = start + column as u64;
            if column < columns && i < from.len().saturating_sub(V as u64 - 1) {
                if V == 1 {
                    vectors[k][0] = from.get(i);
                } else {
                    vectors[k] = from.get_vec::<W>(i);
                }
            }
        }
        vectors
    }

    /// Converts vectors to `f32`.
    #[tma_device]
    pub fn converted<T: TileElement + Number, const K: usize, const V: usize, const W: usize>(
        vectors: [[T; W]; K],
    ) -> [[f32; V]; K] {
        let mut x = [[0.0f32; V]; K];
        for k in unroll(0..K) {
            for i in unroll(0..V) {
                x[k][i] = cast::<f32>(vectors[k][i]);
            }
        }
        x
    }

    /// Loads the thread's vectors of a row, as `f32`. Elements beyond the row are 0.
    #[tma_device]
    pub fn load<T: TileElement + Number, const K: usize, const V: usize, const W: usize>(
        from: Global<T>,
        start: u64,
        part: Part,
        columns: u32,
    ) -> [[f32; V]; K] {
        converted::<T, K, V, W>(fetch::<T, K, V, W>(from, start, part, columns))
    }

    /// Returns whether a vector of the thread lies in the row.
    #[tma_device]
    pub fn is_within(part: Part, k: u32, columns: u32) -> bool {
        part.column + k * part.step < columns
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
        let end = if part.exists { columns } else { 0 };
        for k in unroll(0..K) {
            let column = part.column + k as u32 * part.step;
            let i = start + column as u64;
            if column < end && i < to.len().saturating_sub(V as u64 - 1) {
                if V == 1 {
                    to.set(i, cast::<T>(x[k][0]));
                } else {
                    let mut vector = [cast::<T>(0.0f32); W];
                    for i in unroll(0..V) {
                        vector[i] = cast::<T>(x[k][i]);
                    }
                    to.set_vec(i, vector);
                }
            }
        }
    }

    /// Returns the sum over the `width` threads of a row. All threads of the block call it. `sums`
    /// has an element for each warp.
    #[tma_device]
    pub fn row_sum<const WARPS: u32>(x: f32, width: u32, sums: SharedArray<f32, WARPS>) -> f32 {
        let mut all = x;
        if width >= 32 {
            all = warp_reduce_add(all);
        } else {
            for step in unroll(0..4u32) {
                let mask = 8u32 >> step;
                if mask < width {
                    all += shuffle_xor(all, mask);
                }
            }
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
                of_lane = sums.get((warp_idx() & !(warps - 1)) + lane_idx());
            }
            all = warp_reduce_add(of_lane);
        }
        all
    }

    /// Two sums over the threads of a row.
    #[derive(Clone, Copy)]
    pub struct Sums {
        /// The first one.
        pub first: f32,
        /// The second one.
        pub second: f32,
    }

    /// Returns two sums over the `width` threads of a row. All threads of the block call it, with
    /// the slots 0 and 1 in turn. `sums` has two slots, each with two elements for each warp.
    ///
    /// A call has one barrier: a thread that writes a slot has passed the barrier of the call
    /// before, which the others reach after they have read the slot. The halves of a warp add up one
    /// of the sums each, which takes half of the shuffles.
    #[tma_device]
    pub fn row_sums<const LEN: u32>(x: Sums, width: u32, slot: u32, sums: SharedArray<f32, LEN>) -> Sums {
        let mut all = x;
        if width >= 32 {
            let is_first = lane_idx() < 16;
            let mut mine = if is_first { x.first } else { x.second };
            mine += shuffle_xor(if is_first { x.second } else { x.first }, 16);
            mine = half_sum(mine);
            if width > 32 {
                // A row has at most 16 warps: those of each sum are one half's.
                let start = slot * (LEN / 2);
                let lane = lane_idx() & 15;
                if lane == 0 {
                    sums.set(start + 2 * warp_idx() + lane_idx() / 16, mine);
                }
                sync_threads();
                let warps = width / 32;
                mine = 0.0;
                if lane < warps {
                    mine = sums.get(start + 2 * ((warp_idx() & !(warps - 1)) + lane) + lane_idx() / 16);
                }
                mine = half_sum(mine);
            }
            all = Sums { first: shuffle_idx(mine, 0), second: shuffle_idx(mine, 16) };
        } else {
            for step in unroll(0..4u32) {
                let mask = 8u32 >> step;
                if mask < width {
                    all.first += shuffle_xor(all.first, mask);
                    all.second += shuffle_xor(all.second, mask);
                }
            }
        }
        all
    }

    /// Returns the sum over the 16 lanes of half a warp.
    #[tma_device]
    pub fn half_sum(x: f32) -> f32 {
        let mut sum = x;
        for step in unroll(0..4u32) {
            sum += shuffle_xor(sum, 8 >> step);
        }
        sum
    }

    /// Returns the greatest number of the `width` threads of a row, like [`row_sum`]. NaNs do not
    /// count.
    #[tma_device]
    pub fn row_max<const WARPS: u32>(x: f32, width: u32, sums: SharedArray<f32, WARPS>) -> f32 {
        let mut all = x;
        if width >= 32 {
            all = warp_reduce_max(all);
        } else {
            for step in unroll(0..4u32) {
                let mask = 8u32 >> step;
                if mask < width {
                    all = max(all, shuffle_xor(all, mask));
                }
            }
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
                of_lane = sums.get((warp_idx() & !(warps - 1)) + lane_idx());
            }
            all = warp_reduce_max(of_lane);
        }
        all
    }
}
