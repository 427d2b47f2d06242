//! A kernel that prints while it multiplies. On a GPU it does so without a call.

use tma_runtime::prelude::*;

use crate::kernels::faults::Fault;

/// The faults of this module.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "mma::prints",
        run: |device| {
            run(device)?;
            device.synchronize()
        },
        code: None,
        printed: PRINTED,
    },
    // The output appears although the program does not wait for the kernel.
    Fault { name: "mma::prints_at_exit", run, code: None, printed: PRINTED },
];

/// Parts of the output whose order is fixed.
const PRINTED: &[&str] = &[
    "w2 lane 3 in flight: beef -7 false\n",
    "w2 lane 19 in flight: beef -7 true\n",
    "w0 step 0 lane 0: 1261.00|       0\n",
    "w0 step 2 lane 1: 1263.00|       2\n",
    "100% done\nresult[0]: 8 x 8 of f32, NoSwizzle\n",
    "\n         1261         1261",
];

/// Prints in flight, by some lanes, in a loop, without values, and a tile.
#[tma_kernel(threads = 128)]
pub fn mma_prints(bits: u32, wide: i64) {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let result: Tile<f32, Shape2<64, 8>> = shared();
    for i in (thread_idx().x..64 * 64).step_by(128) {
        a.set([i / 64, i % 64], cast::<f16>(i % 64 % 7 + 1));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<f32, 64, 8>::zero();
    let flight = sum.mma(a, a.band::<8>(0), ());
    if lane_idx() % 16 == 3 {
        printf!("w{} lane {} in flight: {bits:x} {wide} {}\n", warp_idx(), lane_idx(), lane_idx() > 16);
    }
    flight.wait();
    for step in 0..3u32 {
        if lane_idx() < 2 {
            let value = sum[0] + cast::<f32>(step);
            printf!("w{} step {step} lane {}: {value:.2}|{step:8}\n", warp_idx(), lane_idx());
        }
    }
    sum.store(result);
    sync_threads();
    if thread_idx().x == 0 {
        printf!("100% done\n");
        print_tile(result.band::<8>(0));
    }
}

fn run(device: &Device) -> Result<(), Error> {
    mma_prints::launch(device, 1, 0xbeef, -7)
}
