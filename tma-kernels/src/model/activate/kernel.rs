//! The kernel of activations in place.

use tma_runtime::tma_module;

/// Rows of which each element is replaced by a function of it.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::gated::kernel::rows::{VECTORS, finite, gelu_erf, gelu_tanh, silu};
    use crate::model::vectors::of_rows::{
        Strides, converted, fetch, part, row_index, row_start, shifted, store,
    };

    /// 2 · log2(e).
    const TWO_LOG2_E: f32 = 12_102_203.0 / 4_194_304.0;

    /// cap · tanh(x / cap), as cap · (1 - 2 / (1 + e^(2x / cap))).
    #[tma_device]
    pub fn soft_capped(x: f32, cap: f32) -> f32 {
        cap * (1.0 - 2.0 * recip(1.0 + exp2(TWO_LOG2_E * (x / cap))))
    }

    /// Replaces each element. `form` is 0 for the swish, 1 for the Gaussian error function, 2 for its
    /// approximation and 3 for the limit `cap`.
    #[tma_kernel(threads = 256, min_blocks = 3, unchecked, instances(
        T in [bf16, f16, f32],
        WIDE in [wide = 1, odd = 0],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
    ))]
    pub fn replace<T, const WIDE: usize, const V: usize, const W: usize>(
        all: Global<T>,
        rows: u32,
        inner: u32,
        columns: u32,
        width: u32,
        form: u32,
        cap: f32,
        outer_stride: u64,
        inner_stride: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let first = part(256, width, V as u32, rows);
        let mine = shifted(first, block_idx().y * (VECTORS as u32 * first.step));
        if !mine.exists || mine.column >= columns {
            return;
        }
        let strides = Strides { outer: outer_stride, inner: inner_stride };
        let start = row_start(strides, row_index(mine.row, inner));
        let mut x = converted::<T, VECTORS, V, W>(fetch::<T, VECTORS, V, W>(all, start, mine, columns));
        for k in unroll(0..VECTORS) {
            for i in unroll(0..V) {
                if form == 0 {
                    x[k][i] = silu(finite(x[k][i]));
                } else if form == 1 {
                    x[k][i] = gelu_erf(finite(x[k][i]));
                } else if form == 2 {
                    x[k][i] = gelu_tanh(finite(x[k][i]));
                } else {
                    x[k][i] = soft_capped(x[k][i], cap);
                }
            }
        }
        store::<T, VECTORS, V, W>(all, start, mine, columns, x);
    }
}
