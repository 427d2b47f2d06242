//! The kernel of the gradients of biases.

use tma_runtime::tma_module;

/// Sums of the columns of rows.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::sums::groups::{add_groups, leave};
    use crate::model::vectors::of_rows::Part;

    /// Threads of a block.
    pub const THREADS: u32 = 256;

    /// Rows of which a thread loads a vector before it adds the first one.
    pub const ROWS: u32 = 8;

    /// Adds up the columns of a slice of rows. A block has the adjacent columns of `width` vectors,
    /// and its groups of `width` threads take the rows of the slice in turn. `sums` has a row for
    /// each slice, of `columns` sums.
    #[tma_kernel(threads = THREADS, min_blocks = 4, unchecked, instances(
        T in [bf16, f16, f32],
        WIDE in [wide = 1, odd = 0],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
        let LEN = THREADS * V as u32,
    ))]
    pub fn add_columns<T, const WIDE: usize, const V: usize, const W: usize, const LEN: u32>(
        dy: Global<T>,
        sums: Global<f32>,
        rows: u32,
        columns: u32,
        width: u32,
        dy_row: u64,
    ) where
        T: TileElement + Number,
    {
        let of_groups: SharedArray<f32, LEN> = shared();
        let shift = width.trailing_zeros();
        let height = THREADS >> shift;
        let group = thread_idx().x >> shift;
        let of_lane = (thread_idx().x & (width - 1)) * V as u32;
        let span = width * V as u32;
        let first = block_idx().x * span;
        let column = first + of_lane;
        let of_slice = rows.div_ceil(grid_dim().y);
        let begin = min(block_idx().y * of_slice, rows);
        let end = if column < columns { min(begin + of_slice, rows) } else { 0 };
        grid_dependency_launch();
        grid_dependency_wait();
        let mut sum = [[0.0f32; V]; 1];
        let mut row = begin + group;
        while row < end {
            let mut vectors = [[cast::<T>(0.0f32); W]; ROWS as usize];
            for i in unroll(0..ROWS) {
                let at = row + i * height;
                let start = at as u64 * dy_row + column as u64;
                if at < end && start < dy.len().saturating_sub(V as u64 - 1) {
                    if V == 1 {
                        vectors[i as usize][0] = dy.get(start);
                    } else {
                        vectors[i as usize] = dy.get_vec::<W>(start);
                    }
                }
            }
            for i in unroll(0..ROWS as usize) {
                for k in unroll(0..V) {
                    sum[0][k] += cast::<f32>(vectors[i][k]);
                }
            }
            row += ROWS * height;
        }
        let mine = Part { row: 0, exists: true, column: of_lane, step: span };
        leave(of_groups, group * span, mine, sum, true);
        let to = block_idx().y as u64 * columns as u64 + first as u64;
        add_groups(of_groups, span, height, min(span, columns - first), sums, to, THREADS);
    }
}
