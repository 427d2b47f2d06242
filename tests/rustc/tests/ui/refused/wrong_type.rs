//! A mistake of types: the compiler of kernels and rustc both say where it is, and the launcher is there all the same.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
fn wrong_type(values: Global<u32>) {
    values.set(0, 1.5);
}

fn launch(device: &Device, values: &mut DeviceTensor<u32, 1>) -> Result<(), Error> {
    wrong_type::launch(device, 1, values)
}

fn main() {}
