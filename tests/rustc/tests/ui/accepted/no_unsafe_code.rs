//! A crate without `unsafe` code may have kernels: what the macro promises of them is its own code's.
#![forbid(unsafe_code)]

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
fn shift(src: Global<u32>, dst: Global<u32>, options: u32) {
    let i = thread_idx().x;
    dst.set(i, src.get(i) + options);
}

fn main() {
    let device = Device::simulator();
    let src = device.tensor(&[1u32; 32], [32]).unwrap();
    let mut dst = device.zeros::<u32, 1>([32]).unwrap();
    shift::launch(&device, 1, &src, &mut dst, 2).unwrap();
    assert_eq!(dst.to_vec().unwrap(), [3; 32]);
}
