//! The kernels that move rows of tokens to their experts and back.

use tma_runtime::tma_module;

/// Rows of tokens, each of which has several rows in the order of experts.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::vectors::of_rows::{load, part, shifted, store};

    /// Vectors of a row that a thread copies.
    pub const COPIED: usize = 2;

    /// Choices of a token whose rows are on their way at a time.
    const AHEAD: usize = 4;

    /// Copies the row of each token to the rows of its choices. A row that `out` does not have is
    /// left out.
    #[tma_kernel(threads = 256, unchecked, instances(
        T in [bf16, f16, f32],
        WIDE in [wide = 1, odd = 0],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
    ))]
    pub fn distribute<T, const WIDE: usize, const V: usize, const W: usize>(
        x: Global<T>,
        rows: Global<u32>,
        out: Global<T>,
        tokens: u32,
        columns: u32,
        choices: u32,
        width: u32,
        x_row: u64,
        rows_row: u64,
        out_row: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let first = part(256, width, V as u32, tokens);
        let mine = shifted(first, block_idx().y * (COPIED as u32 * first.step));
        let x = load::<T, COPIED, V, W>(x, mine.row as u64 * x_row, mine, columns);
        for start in (0..choices).step_by(AHEAD) {
            let mut to = [0u64; AHEAD];
            for i in unroll(0..AHEAD) {
                let choice = start + i as u32;
                to[i] = out.len();
                if choice < choices {
                    to[i] = rows.get(mine.row as u64 * rows_row + choice as u64) as u64 * out_row;
                }
            }
            for i in unroll(0..AHEAD) {
                store::<T, COPIED, V, W>(out, to[i], mine, columns, x);
            }
        }
    }

    /// Adds up the rows of each token's choices, times their weights, in the order of choices. A
    /// row that `y` does not have counts as zeros.
    #[tma_kernel(threads = 256, unchecked, instances(
        T in [bf16, f16, f32],
        WIDE in [wide = 1, odd = 0],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
    ))]
    pub fn collect<T, const WIDE: usize, const V: usize, const W: usize>(
        y: Global<T>,
        rows: Global<u32>,
        weights: Global<f32>,
        out: Global<T>,
        tokens: u32,
        columns: u32,
        choices: u32,
        width: u32,
        y_row: u64,
        rows_row: u64,
        weights_row: u64,
        out_row: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let first = part(256, width, V as u32, tokens);
        let mine = shifted(first, block_idx().y * first.step);
        let token = mine.row as u64;
        let mut sum = [[0.0f32; V]; 1];
        for start in (0..choices).step_by(AHEAD) {
            let mut from = [0u64; AHEAD];
            let mut weight = [0.0f32; AHEAD];
            for i in unroll(0..AHEAD) {
                let choice = (start + i as u32) as u64;
                from[i] = y.len();
                if choice < choices as u64 {
                    from[i] = rows.get(token * rows_row + choice) as u64 * y_row;
                    weight[i] = weights.get(token * weights_row + choice);
                }
            }
            let mut terms = [[0.0f32; V]; AHEAD];
            for i in unroll(0..AHEAD) {
                let of_choice = load::<T, 1, V, W>(y, from[i], mine, columns);
                for k in unroll(0..V) {
                    terms[i][k] = of_choice[0][k];
                }
            }
            for i in unroll(0..AHEAD) {
                for k in unroll(0..V) {
                    sum[0][k] = fma(weight[i], terms[i][k], sum[0][k]);
                }
            }
        }
        store::<T, 1, V, W>(out, token * out_row, mine, columns, sum);
    }
}
