//! A method that is not there: rustc reports it where it stands.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
fn misspelt_method(values: Global<f32>) {
    let met: Barrier = shared();
    met.arive();
    values.set(0, 1.0);
}

fn main() {}
