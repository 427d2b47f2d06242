//! The kernel that looks rows up.

use tma_runtime::tma_module;

/// Rows of a table.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::vectors::of_rows::{load, part, shifted, store};

    /// Copies the row of each token, times `scale`. Tokens beyond the `vocabulary` have rows of
    /// zeros.
    #[tma_kernel(threads = 256, unchecked, instances(
        T in [bf16, f16, f32],
        WIDE in [wide = 1, odd = 0],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
    ))]
    pub fn look_up<T, const WIDE: usize, const V: usize, const W: usize>(
        table: Global<T>,
        tokens: Global<u32>,
        out: Global<T>,
        rows: u32,
        columns: u32,
        vocabulary: u32,
        width: u32,
        scale: f32,
        table_row: u64,
        token_step: u64,
        out_row: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let first = part(256, width, V as u32, rows);
        let mine = shifted(first, block_idx().y * (2 * first.step));
        let mut token = vocabulary;
        if mine.exists {
            token = tokens.get(mine.row as u64 * token_step);
        }
        let mut x = [[0.0f32; V]; 2];
        if token < vocabulary {
            x = load::<T, 2, V, W>(table, token as u64 * table_row, mine, columns);
        }
        for k in unroll(0..2usize) {
            for i in unroll(0..V) {
                x[k][i] *= scale;
            }
        }
        store::<T, 2, V, W>(out, mine.row as u64 * out_row, mine, columns, x);
    }
}
