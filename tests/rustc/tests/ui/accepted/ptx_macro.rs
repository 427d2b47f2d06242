//! Instructions of the kernel's own, whose variables rustc takes for read and assigned.
#![deny(unused, unsafe_op_in_unsafe_fn)]

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
fn joined(src: Global<u32>, dst: Global<u32>, order: u32) {
    let i = thread_idx().x;
    let x = src.get(i);
    let mut y = 0;
    let mut both = [0u32; 2];
    // SAFETY: the instructions only compute their outputs.
    unsafe {
        ptx!("prmt.b32 {y}, {x}, {x}, {order};", out y, in x, in order);
        ptx!(
            "{{ .reg .b64 wide;",
            "mul.wide.u32 wide, {a}, {b};",
            "mov.b64 {{{low}, {high}}}, wide; }}",
            low = out both[0], high = out both[1], a = in y + 1, b = in x,
        );
        ptx!("add.u32 {y}, {y}, {low};", inout y, low = in both[0] + both[1]);
    }
    dst.set(i, y);
}

fn main() {
    let device = Device::simulator();
    let values: Vec<u32> = (0..32u32).map(|i| i.wrapping_mul(0x1234_5677)).collect();
    let src = device.tensor(&values, [32]).unwrap();
    let mut dst = device.zeros::<u32, 1>([32]).unwrap();
    joined::launch(&device, 1, &src, &mut dst, 0x1032).unwrap();
    let wanted = values.iter().map(|x| {
        let y = x.rotate_left(16);
        let product = u64::from(y.wrapping_add(1)) * u64::from(*x);
        y.wrapping_add((product as u32).wrapping_add((product >> 32) as u32))
    });
    assert_eq!(dst.to_vec().unwrap(), wanted.collect::<Vec<_>>());
}
