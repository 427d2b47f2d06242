// The kernel's own instructions include one that the simulator does not have. Another is never
// executed.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let x = thread_idx().x;
    let mut y = x;
    if out.len() == 0 {
        unsafe { ptx!("unreached.sync.b32 {y}, {x};", inout y, in x) };
    }
    unsafe { ptx!("add.u32 {y}, {y}, {x};", "frobnicate.sync.b32 {y}, {y};", inout y, in x) };
    out.set(x, y);
}
