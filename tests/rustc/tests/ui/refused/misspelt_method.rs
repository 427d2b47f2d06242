//! An unknown method is reported once, although rustc checks the body too.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
fn misspelt_method(values: Global<f32>) {
    let met: Barrier = shared();
    met.arive();
    values.set(0, 1.0);
}

fn main() {}
