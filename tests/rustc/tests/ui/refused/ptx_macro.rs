//! Instructions of the kernel's own: without `unsafe`, and with operands that they cannot have.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn safe(out: Global<u32>) {
    let mut y = 0u32;
    ptx!("mov.u32 {y}, 1;", out y);
    out.set(0, y);
}

#[tma_kernel(threads = 32)]
pub fn of_bytes(out: Global<u8>) {
    let mut y = 0u8;
    unsafe { ptx!("mov.b8 {y}, 1;", out y) };
    out.set(0, y);
}

#[tma_kernel(threads = 32)]
pub fn of_arrays(out: Global<u32>) {
    let pair = [1u32, 2];
    let mut y = 0u32;
    unsafe { ptx!("mov.b32 {y}, {pair};", out y, in pair) };
    out.set(0, y);
}

#[tma_kernel(threads = 32)]
pub fn unchanged(out: Global<u32>) {
    let y = 0u32;
    unsafe { ptx!("mov.u32 {y}, 1;", out y) };
    out.set(0, y);
}

#[tma_kernel(threads = 32)]
pub fn undeclared(out: Global<u32>, x: u32) {
    unsafe { ptx!("st.global.b32 [{out}], {x};", in out, in x) };
}

fn main() {}
