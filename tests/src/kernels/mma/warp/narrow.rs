//! Operands of `f16` that are widened from tiles of `e4m3`, by warps and by a warpgroup.

use tma_runtime::prelude::*;

use super::super::{inputs, product, scalars, transposed};
use crate::case::{Case, Options};
use crate::compare::same;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "mma::warp_widened", run: check_widened },
    Case { name: "mma::widened", run: check_fragments },
];

/// Kernels, and the order of what they widen.
#[tma_module]
pub(super) mod kernels {
    use tma_runtime::prelude::*;

    /// Returns which column of a widened operand has a tile's column.
    #[tma_device]
    fn widened_column(c: u32) -> u32 {
        c / 16 * 16 + c / 2 % 2 * 8 + c % 16 / 4 * 2 + c % 2
    }

    /// Returns which column of the tile a row of an operand has, which is widened from the
    /// transposed tile.
    #[tma_device]
    fn column_of_row(row: u32) -> u32 {
        row / 16 * 16 + row % 8 * 2 + row / 8 % 2
    }

    /// `c`, `d` and `e` are `a · bᵀ`, of 16 × 128 and 32 × 128: of two widened operands, of a right one
    /// that is transposed, and of a left one that is.
    #[tma_kernel(threads = 32)]
    pub fn mma_widen(
        a: TensorMap<Tile<e4m3, Shape2<16, 128>, Swizzle128>>,
        b: TensorMap<Tile<e4m3, Shape2<32, 128>, Swizzle128>>,
        at: TensorMap<Tile<e4m3, Shape2<128, 16>>>,
        bt: TensorMap<Tile<e4m3, Shape2<128, 32>, Swizzle32>>,
        c: Global<f32>,
        d: Global<f32>,
        e: Global<f32>,
    ) {
        let left: Tile<e4m3, Shape2<16, 128>, Swizzle128> = shared();
        let right: Tile<e4m3, Shape2<32, 128>, Swizzle128> = shared();
        let turned_left: Tile<e4m3, Shape2<128, 16>> = shared();
        let turned_right: Tile<e4m3, Shape2<128, 32>, Swizzle32> = shared();
        let wide: Tile<f16, Shape2<32, 128>, Swizzle128> = shared();
        let full: Barrier = shared();
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(2 * (left.bytes() + right.bytes()));
            a.load(left, [0, 0], full);
            b.load(right, [0, 0], full);
            at.load(turned_left, [0, 0], full);
            bt.load(turned_right, [0, 0], full);
        }
        sync_warp();
        full.wait(0);

        let mut sum = WarpAccumulator::<f32, 16, 32>::zero();
        let x = WarpLeft::<f16, 16, 128>::widen(left, [0, 0]);
        sum.mma_sync(x, WarpRight::<f16, 32, 128>::widen(right, [0, 0]));
        sum.store_to(c.matrix(0, [16, 32], 32), [0, 0]);

        for row in 0..16u32 {
            for column in (lane_idx()..128).step_by(32) {
                wide.set([row, column], cast::<f16>(left.get([row, column])));
            }
        }
        sync_warp();
        // In parts, from any multiple of 16 on.
        sum = WarpAccumulator::zero();
        for k in (0..128).step_by(64) {
            let x = WarpLeft::<f16, 16, 64>::load(wide, [0, k]);
            sum.mma_sync(x, WarpRight::<f16, 32, 64>::widen(turned_right.t_if::<true>(), [0, k]));
        }
        for i in unroll(0..sum.len()) {
            let at = sum.at(i);
            d.set(at[0] * 32 + column_of_row(at[1]), sum[i]);
        }

        sync_warp();
        for row in 0..32u32 {
            for column in (lane_idx()..128).step_by(32) {
                wide.set([row, column], cast::<f16>(right.get([row, column])));
            }
        }
        sync_warp();
        sum = WarpAccumulator::zero();
        let x = WarpLeft::<f16, 16, 128>::widen(turned_left.t_if::<true>(), [0, 0]);
        sum.mma_sync(x, WarpRight::<f16, 32, 128>::widen(wide, [0, 0])); // as it is
        for i in unroll(0..sum.len()) {
            let at = sum.at(i);
            e.set(column_of_row(at[0]) * 32 + at[1], sum[i]);
        }
    }

    /// `c` and `d` are `a · bᵀ`, of 64 × 128 and 32 × 128, where a warpgroup widens `a` and its
    /// transpose.
    #[tma_kernel(threads = 128)]
    pub fn mma_widen_fragments(
        a: TensorMap<Tile<e4m3, Shape2<64, 128>, Swizzle128>>,
        at: TensorMap<Tile<e4m3, Shape2<128, 64>, Swizzle64>>,
        b: Global<f16>,
        c: Global<f32>,
        d: Global<f32>,
    ) {
        let left: Tile<e4m3, Shape2<64, 128>, Swizzle128> = shared();
        let turned: Tile<e4m3, Shape2<128, 64>, Swizzle64> = shared();
        let right: Stages<Tile<f16, Shape2<32, 128>, Swizzle128>, 2> = shared();
        let full: Barrier = shared();
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(left.bytes() + turned.bytes());
            a.load(left, [0, 0], full);
            at.load(turned, [0, 0], full);
        }
        for i in (thread_idx().x..32 * 128).step_by(128) {
            right[0].set([i / 128, widened_column(i % 128)], b.get(i));
            right[1].set([i / 128, i % 128], b.get(i));
        }
        fence_proxy_async();
        sync_threads();
        full.wait(0);

        let mut sum = Accumulator::<f32, 64, 32>::zero();
        sum.mma(Fragment::<f16, 64, 128>::widen(left, [0, 0]), right[0], ()).wait();
        sum.store_to(c.matrix(0, [64, 32], 32), [0, 0]);
        sum = Accumulator::zero();
        sum.mma(Fragment::<f16, 64, 128>::widen(turned.t_if::<true>(), [0, 0]), right[1], ()).wait();
        for i in unroll(0..sum.len()) {
            let at = sum.at(i);
            d.set(column_of_row(at[0]) * 32 + at[1], sum[i]);
        }
    }
}

fn check_widened(device: &Device, _: &Options) -> anyhow::Result<()> {
    let (a, b) = (inputs::<e4m3>(81, 16 * 128), inputs::<e4m3>(82, 32 * 128));
    let matrix = |values: &[i32], shape| device.tensor(&scalars::<e4m3>(values), shape);
    let nothing = || device.filled_bytes([16 * 32], 0xab);
    let (mut c, mut d, mut e) = (nothing()?, nothing()?, nothing()?);
    kernels::mma_widen::launch(
        device,
        1,
        &matrix(&a, [16, 128])?,
        &matrix(&b, [32, 128])?,
        &matrix(&transposed(&a, 128), [128, 16])?,
        &matrix(&transposed(&b, 128), [128, 32])?,
        &mut c,
        &mut d,
        &mut e,
    )?;
    let wanted = scalars::<f32>(&product(&a, &b, 128));
    for (name, result) in [("two widened", &c), ("a transposed right", &d), ("a transposed left", &e)] {
        same(name, &result.to_vec()?, &wanted)?;
    }
    Ok(())
}

fn check_fragments(device: &Device, _: &Options) -> anyhow::Result<()> {
    let (a, b) = (inputs::<e4m3>(83, 64 * 128), inputs::<e4m3>(84, 32 * 128));
    let left = device.tensor(&scalars::<e4m3>(&a), [64, 128])?;
    let turned = device.tensor(&scalars::<e4m3>(&transposed(&a, 128)), [128, 64])?;
    let right = device.tensor(&scalars::<f16>(&b), [b.len()])?;
    let mut c = device.filled_bytes([64 * 32], 0xab)?;
    let mut d = device.filled_bytes([64 * 32], 0xab)?;
    kernels::mma_widen_fragments::launch(device, 1, &left, &turned, &right, &mut c, &mut d)?;
    let wanted = scalars::<f32>(&product(&a, &b, 128));
    same("as it is", &c.to_vec()?, &wanted)?;
    same("transposed", &d.to_vec()?, &wanted)
}
