//! The kernel that quantises rows, and its functions for kernels that quantise their results.

use tma_runtime::tma_module;

/// Rows of `e4m3` with scales.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::vectors::of_rows::{Part, load, part, row_max, shifted, store};

    /// The greatest number of `e4m3`.
    const GREATEST: f32 = 448.0;

    /// The least scale, 2^-126, whose reciprocal is finite.
    const LEAST: f32 = 1.1754944e-38;

    /// Columns that share a scale.
    const BLOCK: u32 = 128;

    /// Returns the scale of elements whose greatest absolute value this is.
    #[tma_device]
    pub fn scale_of(greatest: f32) -> f32 {
        max(greatest / GREATEST, LEAST)
    }

    /// Returns the greatest absolute value of a vector. NaNs do not count.
    #[tma_device]
    pub fn greatest_of<const V: usize>(x: [f32; V]) -> f32 {
        let mut greatest = 0.0f32;
        for i in unroll(0..V) {
            greatest = max(greatest, abs(x[i]));
        }
        greatest
    }

    /// Returns the greatest absolute value of the vectors of a thread.
    #[tma_device]
    pub fn greatest_of_all<const K: usize, const V: usize>(x: [[f32; V]; K]) -> f32 {
        let mut greatest = 0.0f32;
        for k in unroll(0..K) {
            greatest = max(greatest, greatest_of(x[k]));
        }
        greatest
    }

    /// The scales of a tensor, and the distances between them.
    #[derive(Clone, Copy)]
    pub struct Scales {
        /// The scales.
        pub all: Global<f32>,
        /// The distance between rows.
        pub row: u64,
        /// The distance between blocks of columns.
        pub block: u64,
    }

    /// Stores the scale of a block of columns.
    #[tma_device]
    pub fn store_scale(scales: Scales, row: u32, block: u32, scale: f32) {
        scales.all.set(row as u64 * scales.row + block as u64 * scales.block, scale);
    }

    /// Stores the vectors of a thread with the scale of the row.
    #[tma_device]
    pub fn store_scaled<const K: usize, const V: usize, const W: usize>(
        to: Global<e4m3>,
        start: u64,
        part: Part,
        columns: u32,
        x: [[f32; V]; K],
        scale: f32,
    ) {
        let inverse = recip(scale);
        let mut y = x;
        for k in unroll(0..K) {
            for i in unroll(0..V) {
                y[k][i] = x[k][i] * inverse;
            }
        }
        store::<e4m3, K, V, W>(to, start, part, columns, y);
    }

    /// Stores the vectors of a thread with a scale for each block of 128 columns, and stores the
    /// scales. The vectors of a block are those of adjacent lanes or, if they are single elements,
    /// those of a warp, which has the whole row.
    #[tma_device]
    pub fn store_blocks<const K: usize, const V: usize, const W: usize>(
        to: Global<e4m3>,
        start: u64,
        scales: Scales,
        part: Part,
        columns: u32,
        x: [[f32; V]; K],
    ) {
        let mut y = x;
        if V == 1 {
            // The K elements of each of 32 lanes.
            let scale = scale_of(warp_reduce_max(greatest_of_all(x)));
            let inverse = recip(scale);
            for k in unroll(0..K) {
                y[k][0] = x[k][0] * inverse;
            }
            if part.exists && part.column < columns && part.column % BLOCK == 0 {
                store_scale(scales, part.row, part.column / BLOCK, scale);
            }
        } else {
            let lanes = BLOCK / V as u32;
            for k in unroll(0..K) {
                let mut greatest = greatest_of(x[k]);
                for step in unroll(0..5u32) {
                    let mask = 1u32 << step;
                    if mask < lanes {
                        greatest = max(greatest, shuffle_xor(greatest, mask));
                    }
                }
                let scale = scale_of(greatest);
                let inverse = recip(scale);
                for i in unroll(0..V) {
                    y[k][i] = x[k][i] * inverse;
                }
                let column = part.column + k as u32 * part.step;
                if part.exists && column < columns && column % BLOCK == 0 {
                    store_scale(scales, part.row, column / BLOCK, scale);
                }
            }
        }
        store::<e4m3, K, V, W>(to, start, part, columns, y);
    }

    /// Quantises rows. `width` threads have a row. With `in_blocks`, each 128 columns have a scale,
    /// and a row's parts are those of blocks along y.
    #[tma_kernel(threads = THREADS, min_blocks = 512 / THREADS, unchecked, instances(
        T in [bf16, f16, f32],
        (THREADS, K, WIDE) in [short = (256, 2, 1), long = (512, 4, 1), odd = (256, 4, 0)],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
        let WARPS = THREADS / 32,
    ))]
    pub fn quantise<
        T,
        const THREADS: u32,
        const K: usize,
        const WIDE: usize,
        const V: usize,
        const W: usize,
        const WARPS: u32,
    >(
        x: Global<T>,
        out: Global<e4m3>,
        scales: Global<f32>,
        rows: u32,
        columns: u32,
        width: u32,
        in_blocks: bool,
        x_row: u64,
        out_row: u64,
        scales_row: u64,
        scales_block: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let shared_max: SharedArray<f32, WARPS> = shared();
        let first = part(THREADS, width, V as u32, rows);
        let span = K as u32 * first.step;
        let from = first.row as u64 * x_row;
        let to = first.row as u64 * out_row;
        let scales = Scales { all: scales, row: scales_row, block: scales_block };
        if in_blocks {
            let mine = shifted(first, block_idx().y * span);
            let of_part = load::<T, K, V, W>(x, from, mine, columns);
            store_blocks::<K, V, W>(out, to, scales, mine, columns, of_part);
        } else {
            let mut of_part = load::<T, K, V, W>(x, from, first, columns);
            let mut greatest = greatest_of_all(of_part);
            let mut start = span;
            while start < columns {
                of_part = load::<T, K, V, W>(x, from, shifted(first, start), columns);
                greatest = max(greatest, greatest_of_all(of_part));
                start += span;
            }
            let scale = scale_of(row_max(greatest, width, shared_max));
            if first.exists && first.column == 0 {
                store_scale(scales, first.row, 0, scale);
            }
            // The last part is still in registers.
            while start > 0 {
                start -= span;
                let mine = shifted(first, start);
                store_scaled::<K, V, W>(out, to, mine, columns, of_part, scale);
                if start > 0 {
                    of_part = load::<T, K, V, W>(x, from, shifted(first, start - span), columns);
                }
            }
        }
    }
}
