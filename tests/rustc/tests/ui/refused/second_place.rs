//! A place that explains an error stands in its text, as a line: stable macros show one place.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
fn load(
    src: TensorMap<Tile<f32, Shape2<8, 8>>>,
) {
    let tile: Tile<f32, Shape2<8, 16>> = shared();
    let full: Barrier = shared();
    src.load(tile, [0, 0], full);
}

fn main() {}
