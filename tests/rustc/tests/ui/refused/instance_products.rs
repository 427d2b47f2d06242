//! Lists of instances that do not fit their kernel, each reported where it stands.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32, instances(T in [f16, bf16], COLUMNS in [32, 64]))]
pub fn unknown_generic<T: TileElement, const COLS: u32>(src: TensorMap<Tile<T, Shape2<8, COLS>>>) {
    src.prefetch_descriptor();
}

#[tma_kernel(threads = 32, instances(T in [f16, bf16], COLS in [32, 64, 0x40, { 2 * 48 }]))]
pub fn names_of_values<T: TileElement, const COLS: u32>(src: TensorMap<Tile<T, Shape2<8, COLS>>>) {
    src.prefetch_descriptor();
}

#[tma_kernel(threads = 32, instances((T, COLS) in [(f16, 64), small = (f16, 4), bf16]))]
pub fn values_together<T: TileElement, const COLS: u32>(src: TensorMap<Tile<T, Shape2<8, COLS>>>) {
    src.prefetch_descriptor();
}

#[tma_kernel(threads = 32, instances(T in [f16, f32], COLS in [32, 6]))]
pub fn some_instances<T: TileElement, const COLS: u32>(src: TensorMap<Tile<T, Shape2<8, COLS>>>) {
    src.prefetch_descriptor();
}

fn main() {}
