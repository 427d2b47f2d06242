//! Matrix products with one warp that copies, beside warpgroups that multiply.

use tma_runtime::prelude::*;

use super::{inputs, product, scalars};
use crate::case::{Case, Options};
use crate::compare::same;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "mma::producer_warp", run: check_one },
    Case { name: "mma::producer_warp_beside_two", run: check_two },
];

/// `c = a · bᵀ`, a tile of 64 × 64 per block. A warp fills a ring of stages, and a warpgroup
/// multiplies.
#[tma_kernel(threads = 128 + 32, instances(two = <2>, three = <3>))]
pub fn mma_producer_warp<const STAGES: u32>(
    a: TensorMap<Tile<f16, Shape2<64, 64>, Swizzle128>>,
    b: TensorMap<Tile<f16, Shape2<64, 64>, Swizzle128>>,
    c: Global<f32>,
    steps: u32,
) {
    let left: Stages<Tile<f16, Shape2<64, 64>, Swizzle128>, STAGES> = shared();
    let right: Stages<Tile<f16, Shape2<64, 64>, Swizzle128>, STAGES> = shared();
    let full: Stages<Barrier, STAGES> = shared();
    let empty: Stages<Barrier, STAGES> = shared();
    if thread_idx().x == 0 {
        for stage in 0..STAGES {
            full[stage].init(1);
            empty[stage].init(1);
        }
        fence_barrier_init();
    }
    sync_threads();

    let row = block_idx().y * 64;
    let column = block_idx().x * 64;
    if warp_idx() == 4 {
        if elect_one() {
            for k in 0..steps {
                let stage = k % STAGES;
                let round = k / STAGES;
                if round > 0 {
                    empty[stage].wait((round - 1) % 2);
                }
                full[stage].arrive_expect_tx(left[stage].bytes() + right[stage].bytes());
                a.load(left[stage], [row, k * 64], full[stage]);
                b.load(right[stage], [column, k * 64], full[stage]);
            }
        }
    } else {
        let mut sum = Accumulator::<f32, 64, 64>::zero();
        for k in 0..steps {
            let stage = k % STAGES;
            let round = k / STAGES;
            full[stage].wait(round % 2);
            sum.mma(left[stage], right[stage], ()).wait();
            sync_warpgroup();
            if thread_idx().x == 0 {
                empty[stage].arrive();
            }
        }
        let columns = grid_dim().x * 64;
        for i in unroll(0..sum.len()) {
            c.set((row + sum.at(i)[0]) * columns + column + sum.at(i)[1], sum[i]);
        }
    }
}

fn check_one(device: &Device, _: &Options) -> anyhow::Result<()> {
    for steps in [1_usize, 2, 3, 4, 7] {
        let depth = steps * 64;
        let (a, b) = (inputs::<f16>(21, 64 * depth), inputs::<f16>(22, 128 * depth));
        let left = device.tensor(&scalars::<f16>(&a), [64, depth])?;
        let right = device.tensor(&scalars::<f16>(&b), [128, depth])?;
        let mut c = device.filled_bytes([64 * 128], 0xab)?;
        let (wanted, steps) = (scalars::<f32>(&product(&a, &b, depth)), u32::try_from(steps)?);
        mma_producer_warp::two::launch(device, 2, &left, &right, &mut c, steps)?;
        same("two stages", &c.to_vec()?, &wanted)?;
        mma_producer_warp::three::launch(device, 2, &left, &right, &mut c, steps)?;
        same("three stages", &c.to_vec()?, &wanted)?;
    }
    Ok(())
}

/// `c = a · bᵀ`, a tile of 128 × 64 per block. Two warpgroups multiply 64 rows each, one of them
/// with registers that the other returns, and a warp copies.
#[tma_kernel(threads = 256 + 32, instances(three = <3>))]
pub fn mma_producer_warp_beside_two<const STAGES: u32>(
    a: TensorMap<Tile<f16, Shape2<128, 64>, Swizzle128>>,
    b: TensorMap<Tile<f16, Shape2<64, 64>, Swizzle128>>,
    c: Global<f32>,
    steps: u32,
) {
    let ring: Pipeline<
        (Tile<f16, Shape2<128, 64>, Swizzle128>, Tile<f16, Shape2<64, 64>, Swizzle128>),
        STAGES,
    > = shared();
    if thread_idx().x == 0 {
        ring.init(2);
        fence_barrier_init();
    }
    sync_threads();

    let row = block_idx().y * 128;
    let column = block_idx().x * 64;
    let me = warpgroup_idx();
    if me < 2 {
        if me == 0 {
            setmaxnreg_dec::<96>();
        } else {
            setmaxnreg_inc::<240>();
        }
        let mut consumer = ring.consumer();
        let mut sum = Accumulator::<f32, 64, 64>::zero();
        for _ in 0..steps {
            let slot = consumer.wait();
            let slot = sum.mma(slot.0.band::<64>(me), slot.1, slot).wait();
            sync_warpgroup();
            if thread_idx().x % 128 == 0 {
                slot.release();
            }
        }
        let columns = grid_dim().x * 64;
        for i in unroll(0..sum.len()) {
            c.set((row + me * 64 + sum.at(i)[0]) * columns + column + sum.at(i)[1], sum[i]);
        }
    } else if elect_one() {
        let mut producer = ring.producer();
        for k in 0..steps {
            let slot = producer.acquire();
            a.load(slot.0, [row, k * 64], slot.barrier());
            b.load(slot.1, [column, k * 64], slot.barrier());
        }
    }
}

fn check_two(device: &Device, _: &Options) -> anyhow::Result<()> {
    for steps in [1_usize, 2, 3, 4, 7] {
        let depth = steps * 64;
        let (a, b) = (inputs::<f16>(23, 256 * depth), inputs::<f16>(24, 64 * depth));
        let left = device.tensor(&scalars::<f16>(&a), [256, depth])?;
        let right = device.tensor(&scalars::<f16>(&b), [64, depth])?;
        let mut c = device.filled_bytes([256 * 64], 0xab)?;
        let steps = u32::try_from(steps)?;
        mma_producer_warp_beside_two::three::launch(
            device,
            Grid::new(1, 2, 1),
            &left,
            &right,
            &mut c,
            steps,
        )?;
        same("the product", &c.to_vec()?, &scalars::<f32>(&product(&a, &b, depth)))?;
    }
    Ok(())
}
