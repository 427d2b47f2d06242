use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn shifts(out: Global<i32>) {
    let mut x = out.get(0);
    x <<= 33;
    out.set(0, x << 33);
}

#[tma_kernel(threads = 32, instances(within = <31>, beyond = <32>))]
pub fn shift_of_an_instance<const BITS: u32>(out: Global<u32>) {
    out.set(0, out.get(1) >> BITS);
}

fn main() {}
