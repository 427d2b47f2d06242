//! A mismatched type is reported once, although rustc checks the body too. The kernel has its launcher.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
fn wrong_type(values: Global<u32>) {
    values.set(0, 1.5);
}

fn launch(device: &Device, values: &mut DeviceTensor<u32, 1>) -> Result<(), Error> {
    wrong_type::launch(device, 1, values)
}

fn main() {}
