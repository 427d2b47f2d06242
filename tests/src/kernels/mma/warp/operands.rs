//! Operands of every layout, as they are and transposed, and parts of tiles that are selected at
//! run time.

use tma_runtime::prelude::*;

use super::super::{inputs, product, scalars, transposed};
use crate::case::Case;
use crate::compare::same;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "mma::warp_no_swizzle", run: |device, _| check::<NoSwizzle>(device) },
    Case { name: "mma::warp_panels16", run: |device, _| check::<Panels16>(device) },
    Case { name: "mma::warp_swizzle32", run: |device, _| check::<Swizzle32>(device) },
    Case { name: "mma::warp_swizzle64", run: |device, _| check::<Swizzle64>(device) },
    Case { name: "mma::warp_swizzle128", run: |device, _| check::<Swizzle128>(device) },
    Case { name: "mma::warp_parts", run: |device, _| check_parts(device) },
    Case { name: "mma::warp_doubles", run: |device, _| check_doubles(device) },
    Case { name: "mma::warp_handed_over", run: |device, _| check_handed_over(device) },
    Case { name: "mma::warp_few_rows", run: |device, _| check_few_rows(device) },
];

/// `c = a · bᵀ` and `d = atᵀ · bt`, of 64 × 64 and 32 × 64: each of four warps multiplies 16 rows,
/// one step of K after the other. `at` and `bt` are the transposes of `a` and `bᵀ`.
#[tma_kernel(threads = 128, instances(
    none = <NoSwizzle>, panels = <Panels16>, b32 = <Swizzle32>, b64 = <Swizzle64>, b128 = <Swizzle128>,
))]
pub fn mma_sync_layouts<W: MatrixSwizzle>(
    a: TensorMap<Tile<f16, Shape2<64, 64>, W>>,
    b: TensorMap<Tile<f16, Shape2<32, 64>, W>>,
    at: TensorMap<Tile<f16, Shape2<64, 64>, W>>,
    bt: TensorMap<Tile<f16, Shape2<64, 32>, W>>,
    c: Global<f32>,
    d: TensorMap<Tile<f16, Shape2<64, 32>, W>>,
) {
    let left: Stages<Tile<f16, Shape2<64, 64>, W>, 2> = shared();
    let right: Tile<f16, Shape2<32, 64>, W> = shared();
    let turned: Tile<f16, Shape2<64, 32>, W> = shared();
    let result: Tile<f16, Shape2<64, 32>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(2 * left[0].bytes() + right.bytes() + turned.bytes());
        a.load(left[0], [0, 0], full);
        at.load(left[1], [0, 0], full);
        b.load(right, [0, 0], full);
        bt.load(turned, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    let row = warp_idx() * 16;
    let mut sum = WarpAccumulator::<f32, 16, 32>::zero();
    let mut other = WarpAccumulator::<f32, 16, 32>::zero();
    for step in 0..4 {
        let k = step * 16;
        sum.mma_sync(
            WarpLeft::<f16, 16, 16>::load(left[0], [row, k]),
            WarpRight::<f16, 32, 16>::load(right, [0, k]),
        );
        other.mma_sync(
            WarpLeft::<f16, 16, 16>::load(left[1].t(), [row, k]),
            WarpRight::<f16, 32, 16>::load(turned.t(), [0, k]),
        );
    }
    sum.store_to(c.matrix(0, [64, 32], 32), [row, 0]);
    other.store(result, [row, 0]);
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        d.store([0, 0], result);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn check<W: MatrixSwizzle>(device: &Device) -> anyhow::Result<()>
where
    mma_sync_layouts::Instance<W>: mma_sync_layouts::Compiled,
{
    let (a, b) = (inputs::<f16>(55, 64 * 64), inputs::<f16>(56, 32 * 64));
    let left = device.tensor(&scalars::<f16>(&a), [64, 64])?;
    let right = device.tensor(&scalars::<f16>(&b), [32, 64])?;
    let left_turned = device.tensor(&scalars::<f16>(&transposed(&a, 64)), [64, 64])?;
    let right_turned = device.tensor(&scalars::<f16>(&transposed(&b, 64)), [64, 32])?;
    let mut c: DeviceTensor<f32, 1> = device.filled_bytes([64 * 32], 0xab)?;
    let mut d: DeviceTensor<f16, 2> = device.filled_bytes([64, 32], 0xab)?;
    mma_sync_layouts::launch::<W>(device, 1, &left, &right, &left_turned, &right_turned, &mut c, &mut d)?;
    let wanted = product(&a, &b, 64);
    same("the product", &c.to_vec()?, &scalars::<f32>(&wanted))?;
    same("that of transposed operands", &d.to_vec()?, &scalars::<f16>(&wanted))
}

/// `c = a · bᵀ`, of 64 × 128 in two panels and 40 × 128: each of two warps multiplies its band of
/// 32 rows with 8 rows of `b`, from `column` on.
#[tma_kernel(threads = 64, checked)]
pub fn mma_sync_parts(a: Global<bf16>, b: Global<bf16>, c: Global<f32>, column: u32) {
    let left: Tile<bf16, Shape2<64, 128>, Swizzle128> = shared();
    let right: Tile<bf16, Shape3<1, 40, 128>, Swizzle64> = shared();
    for i in (thread_idx().x..64 * 128).step_by(64) {
        left.set([i / 128, i % 128], a.get(i));
    }
    for i in (thread_idx().x..40 * 128).step_by(64) {
        right.set([0, i / 128, i % 128], b.get(i));
    }
    sync_threads();
    let out = c.matrix(0, [64, 40], 40);
    let band = left.band::<32>(warp_idx());
    let mut sum = WarpAccumulator::<f32, 32, 8>::zero();
    for k in unroll(0..4u32) {
        let x = WarpLeft::<bf16, 32, 32>::load(band, [0, k * 32]);
        let y = WarpRight::<bf16, 8, 32>::load(right, [column, k * 32]);
        sum.mma_sync(x, y);
    }
    sum.store_to(out, [warp_idx() * 32, column]);
}

fn check_parts(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<bf16>(57, 64 * 128), inputs::<bf16>(58, 40 * 128));
    let left = device.tensor(&scalars::<bf16>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<bf16>(&b), [b.len()])?;
    let mut c = device.tensor(&vec![0.0_f32; 64 * 40], [64 * 40])?;
    // The first row need not be a multiple of 8.
    for column in [0, 5, 13, 21, 29, 32] {
        mma_sync_parts::launch(device, 1, &left, &right, &mut c, column)?;
    }
    same("the product", &c.to_vec()?, &scalars::<f32>(&product(&a, &b, 128)))
}

/// `c[i] = (a · aᵀ)[i] + i`, of 16 × 16: elements of f64 are loaded and stored one by one.
#[tma_kernel(threads = 32)]
pub fn mma_sync_doubles(a: TensorMap<Tile<f64, Shape2<16, 16>, Swizzle128>>, c: Global<f64>) {
    let tile: Tile<f64, Shape2<16, 16>, Swizzle128> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        a.load(tile, [0, 0], full);
    }
    sync_warp();
    full.wait(0);
    let mut sum = WarpAccumulator::<f64, 16, 16>::zero();
    sum.mma_sync(WarpLeft::<f64, 16, 16>::load(tile, [0, 0]), WarpRight::<f64, 16, 16>::load(tile, [0, 0]));
    for i in unroll(0..sum.len()) {
        let at = sum.at(i);
        sum[i] += (at[0] * 16 + at[1]) as f64;
    }
    // After all lanes have read their operands.
    sync_warp();
    sum.store(tile, [0, 0]);
    sync_warp();
    for i in (thread_idx().x..256).step_by(32) {
        c.set(i, tile.get([i / 16, i % 16]));
    }
}

fn check_doubles(device: &Device) -> anyhow::Result<()> {
    let a = inputs::<f64>(59, 16 * 16);
    let matrix = device.tensor(&scalars::<f64>(&a), [16, 16])?;
    let mut c = device.filled_bytes([16 * 16], 0xab)?;
    mma_sync_doubles::launch(device, 1, &matrix, &mut c)?;
    let wanted: Vec<i32> = product(&a, &a, 16).iter().zip(0..).map(|(sum, place)| sum + place).collect();
    same("the product", &c.to_vec()?, &scalars::<f64>(&wanted))
}

/// `c` is the sum of `a · aᵀ` over `steps` matrices of 16 × 16: a warp fills its tile, multiplies
/// it, and fills it again.
#[tma_kernel(threads = 64)]
pub fn mma_sync_handed_over(a: Global<f16>, c: Global<f32>, steps: u32) {
    let tiles: Stages<Tile<f16, Shape2<16, 16>, Swizzle32>, 2> = shared();
    let tile = tiles[warp_idx()];
    let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
    for step in 0..steps {
        let first = (warp_idx() * steps + step) * 256 + lane_idx() * 8;
        tile.set_vec([lane_idx() / 2, lane_idx() % 2 * 8], a.get_vec::<8>(first));
        sync_warp();
        let x = WarpLeft::<f16, 16, 16>::load(tile, [0, 0]);
        let y = WarpRight::<f16, 16, 16>::load(tile, [0, 0]);
        sync_warp();
        sum.mma_sync(x, y);
    }
    sum.store_to(c.matrix(warp_idx() * 256, [16, 16], 16), [0, 0]);
}

fn check_handed_over(device: &Device) -> anyhow::Result<()> {
    let steps = 3;
    let a = inputs::<f16>(60, 2 * steps * 256);
    let matrices = device.tensor(&scalars::<f16>(&a), [a.len()])?;
    let mut c = device.filled_bytes([2 * 256], 0xab)?;
    mma_sync_handed_over::launch(device, 1, &matrices, &mut c, steps as u32)?;
    let products: Vec<_> = a.chunks(256).map(|matrix| product(matrix, matrix, 16)).collect();
    let of_warp = |products: &[Vec<i32>]| -> Vec<i32> {
        (0..256).map(|i| products.iter().filter_map(|product| product.get(i)).sum()).collect()
    };
    let wanted: Vec<i32> = products.chunks(steps).flat_map(of_warp).collect();
    same("the sums", &c.to_vec()?, &scalars::<f32>(&wanted))
}

/// `y = x · weightsᵀ`, of 16 × 64 · `steps` and 64 rows per block: each of four warps computes 16
/// columns, and a fifth one loads.
#[tma_kernel(threads = 160)]
pub fn mma_sync_few_rows(
    x: TensorMap<Tile<bf16, Shape2<16, 64>, Swizzle128>>,
    weights: TensorMap<Tile<bf16, Shape2<64, 64>, Swizzle128>>,
    y: Global<bf16>,
    steps: u32,
) {
    let ring: Pipeline<(Tile<bf16, Shape2<16, 64>, Swizzle128>, Tile<bf16, Shape2<64, 64>, Swizzle128>), 4> =
        shared();
    if thread_idx().x == 0 {
        ring.init(4); // one arrival per multiplying warp
        fence_barrier_init();
    }
    sync_threads();
    let n = block_idx().x * 64;
    if warp_idx() == 4 {
        if elect_one() {
            let mut producer = ring.producer();
            for step in 0..steps {
                let slot = producer.acquire();
                x.load(slot.0, [0, step * 64], slot.barrier());
                weights.load(slot.1, [n, step * 64], slot.barrier());
            }
        }
    } else {
        let out = y.matrix(0, [16, grid_dim().x * 64], grid_dim().x * 64);
        let first = warp_idx() * 16;
        let mut consumer = ring.consumer();
        let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
        for _ in 0..steps {
            let slot = consumer.wait();
            let a = WarpLeft::<bf16, 16, 64>::load(slot.0, [0, 0]);
            let b = WarpRight::<bf16, 16, 64>::load(slot.1, [first, 0]);
            sum.mma_sync(a, b);
            sync_warp();
            if elect_one() {
                slot.release();
            }
        }
        sum.store_to(out, [0, n + first]);
    }
}

fn check_few_rows(device: &Device) -> anyhow::Result<()> {
    // Each stage is filled twice, and one three times.
    let (steps, blocks) = (9, 2);
    let depth = steps * 64;
    let (x, weights) = (inputs::<bf16>(69, 16 * depth), inputs::<bf16>(70, 64 * blocks * depth));
    let left = device.tensor(&scalars::<bf16>(&x), [16, depth])?;
    let right = device.tensor(&scalars::<bf16>(&weights), [64 * blocks, depth])?;
    let mut y = device.filled_bytes([16 * 64 * blocks], 0xab)?;
    mma_sync_few_rows::launch(device, Grid::x(blocks as u32), &left, &right, &mut y, steps as u32)?;
    same("the product", &y.to_vec()?, &scalars::<bf16>(&product(&x, &weights, depth)))
}
