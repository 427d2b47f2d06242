//! The kernel that multiplies a row of `bf16` by many of `e4m3`.

use tma_runtime::tma_module;

/// C = A · Bᵀ, where A is a row of `bf16`, and B, of `e4m3`, has a scale for each 128 × 128
/// elements. As in [`streamed`](super::kernel::streamed), a block computes units of 16 rows of B
/// and all of K.
///
/// Elements of B become `f16`, of which the GPU converts two by one instruction, where `bf16` takes
/// four. A becomes `f16` as well: each panel is multiplied by a power of two with which its
/// greatest element is below 2^15, so that elements down to 2^-29 of that one keep all bits. A
/// stays in shared memory, in the order of columns in which `WarpLeft::widen` loads B.
#[tma_module]
pub mod converted {
    use tma_runtime::prelude::*;

    use crate::gemm::device::producer::nth_step;
    use crate::gemm::few_rows::kernel::streamed::{
        BN, MULTIPLIERS, PADDING, PANEL, PANELS, WARPS, steps_of, total,
    };

    /// Columns of K of a panel of B: a row of 128 bytes, which share a scale.
    pub const WIDE_PANEL: u32 = 128;

    /// The greatest K: A has 32 KB.
    pub const MOST_COLUMNS: u32 = 16384;

    /// Panels of B, as many as warps that multiply.
    pub type WidePanels = Tile<e4m3, Shape3<PANELS, BN, WIDE_PANEL>, Swizzle128>;

    /// A, with 64 columns of K in a row.
    pub type Row = Tile<f16, Shape2<{ MOST_COLUMNS / PANEL }, PANEL>, Swizzle128>;

    /// Stages of 16 KB. With them a block has more than half of a multiprocessor's shared memory,
    /// as in the other kernel.
    const STAGES: u32 = 6;

    /// Elements of the sums of a unit.
    const SUMS: u32 = PANELS * (BN + PADDING);

    /// Rows of A's tile that a step of all panels multiplies.
    const ROWS: u32 = PANELS * WIDE_PANEL / PANEL;

    /// Elements of A that a thread loads at a time.
    const VECTOR: u32 = 8;

    /// Elements of A that all warps load at a time.
    const SPAN: u32 = 32 * WARPS * VECTOR;

    /// Vectors of A that a thread loads at most.
    const VECTORS: usize = (MOST_COLUMNS / SPAN) as usize;

    /// The most panels of A: steps of a unit are at most as many as a warp has lanes, which hold
    /// their scales.
    const MOST_PANELS: u32 = MOST_COLUMNS / WIDE_PANEL;

    /// Writes A to its tile, with zeros from column `k` up to `end`. Each panel is multiplied by
    /// the power of two with which its greatest element is in [2^14, 2^15), unless that is below
    /// 2^-112 or infinite, and `inverses` receives the inverse. Of each 16 columns, pairs 0 to 7
    /// are in the order 0, 2, 4, 6, 1, 3, 5, 7. All warps that multiply call it.
    #[tma_device]
    fn convert(a: Global<bf16>, k: u32, tile: Row, end: u32, inverses: SharedArray<f32, MOST_PANELS>) {
        let mut loaded = [[cast::<bf16>(0.0f32); 8]; VECTORS];
        for i in unroll(0..VECTORS) {
            let at = thread_idx().x * VECTOR + i as u32 * SPAN;
            if at < k {
                loaded[i] = a.get_vec::<8>(at); // all of a thread's loads are in flight at once
            }
        }
        for i in unroll(0..VECTORS) {
            let at = thread_idx().x * VECTOR + i as u32 * SPAN;
            if i as u32 * SPAN < end {
                let mut greatest = 0.0f32;
                for j in unroll(0..8usize) {
                    greatest = max(greatest, abs(loaded[i][j].to_f32()));
                }
                // 16 lanes have a panel.
                for bit in unroll(0..4u32) {
                    greatest = max(greatest, shuffle_xor(greatest, 1 << bit));
                }
                let exponent = clamp(greatest.to_bits() >> 23, 15, 254);
                let power = f32::from_bits((268 - exponent) << 23);
                let column = at % PANEL / 16 * 16 + at % 16 / 2;
                if at < end {
                    for pair in unroll(0..4usize) {
                        let first = cast::<f16>(loaded[i][2 * pair].to_f32() * power);
                        let second = cast::<f16>(loaded[i][2 * pair + 1].to_f32() * power);
                        let place = pair as u32 / 2 * 2 + pair as u32 % 2 * 8;
                        tile.set_vec::<2>([at / PANEL, column + place], [first, second]);
                    }
                    if at % WIDE_PANEL == 0 {
                        inverses.set(at / WIDE_PANEL, f32::from_bits((exponent - 14) << 23));
                    }
                }
            }
        }
        named_barrier_sync(MULTIPLIERS, 32 * WARPS);
    }

    /// Returns the scale of the warp's panel in the lane's step of a unit, or 1 where there is
    /// none. Lanes have the scales of different steps, which are loaded at once.
    #[tma_device]
    fn lane_scale(scales: Option<Global<f32>>, unit: u32, units: u32, panels: u32, k_shift: u32) -> f32 {
        let count = panels.div_ceil(PANELS);
        let mut scale = 1.0f32;
        if let Some(scales) = scales {
            let panel = nth_step(steps_of(unit, count, k_shift), lane_idx()) * PANELS + warp_idx();
            if unit < units && lane_idx() < count && panel < panels {
                scale = scales.get(unit * BN / WIDE_PANEL * panels + panel);
            }
        }
        scale
    }

    /// Computes `n` elements of C, in units of `BN` rows of B, whose K is whole panels. Without
    /// scales, all of them are 1.
    ///
    /// A block reads B and scales before the previous kernel has ended if `is_constant`.
    #[tma_kernel(threads = 32 * (WARPS + 1), unchecked, instances(C in [bf16, f32];))]
    pub fn multiply<C>(
        a: Global<bf16>,
        b: TensorMap<WidePanels>,
        c: Global<C>,
        scales: Option<Global<f32>>,
        n: u32,
        k: u32,
        k_shift: u32,
        is_constant: bool,
    ) where
        C: TileElement + Number,
    {
        let ring: Pipeline<(WidePanels,), STAGES> = shared();
        let row: Row = shared();
        let sums: Stages<SharedArray<f32, SUMS>, 2> = shared();
        let inverses: SharedArray<f32, MOST_PANELS> = shared();
        if thread_idx().x == 0 {
            b.prefetch_descriptor();
            ring.init(WARPS); // one arrival per multiplying warp
            fence_barrier_init();
        }
        sync_threads();

        let units = n.div_ceil(BN);
        let panels = k / WIDE_PANEL;
        let count = panels.div_ceil(PANELS); // past the end of K are zeros
        let blocks = grid_dim().x as usize;
        if warp_idx() == WARPS {
            if elect_one() {
                if !is_constant {
                    grid_dependency_wait();
                }
                let mut producer = ring.producer();
                for unit in (block_idx().x..units).step_by(blocks) {
                    let steps = steps_of(unit, count, k_shift);
                    for i in 0..count {
                        let slot = producer.acquire();
                        b.load(slot.0, [nth_step(steps, i) * PANELS, unit * BN, 0], slot.barrier());
                    }
                }
            }
        } else {
            if !is_constant {
                grid_dependency_wait();
            }
            let mut next_scale = lane_scale(scales, block_idx().x, units, panels, k_shift);
            grid_dependency_wait();
            grid_dependency_launch(); // the next kernel may begin to prepare
            convert(a, k, row, count * PANELS * WIDE_PANEL, inverses);

            let mut consumer = ring.consumer();
            let panel = warp_idx();
            // A warp multiplies each half of its panel by 8 rows of A's tile. Only the results of
            // the half's own row count, which are in adjacent columns.
            let (first, column) = (2 * panel / 8 * 8, 2 * panel % 8);
            let mut buffer = 0u32;
            for unit in (block_idx().x..units).step_by(blocks) {
                let steps = steps_of(unit, count, k_shift);
                let lane_scales = next_scale;
                next_scale = lane_scale(scales, unit + grid_dim().x, units, panels, k_shift);
                let mut even = WarpAccumulator::<f32, BN, 8>::zero();
                let mut odd = WarpAccumulator::<f32, BN, 8>::zero();
                for i in 0..count {
                    let step = nth_step(steps, i);
                    let scale = shuffle_idx(lane_scales, i);
                    let inverse = inverses.get(step * PANELS + panel);
                    let right = WarpRight::<f16, 8, PANEL>::load(row, [step * ROWS + first, 0]);
                    let slot = consumer.wait();
                    let left = WarpLeft::<f16, BN, PANEL>::widen(slot.0.batch(panel), [0, 0]);
                    let mut part = WarpAccumulator::<f32, BN, 8>::zero();
                    part.mma_sync(left, right);
                    for i in unroll(0..part.len()) {
                        even[i] = fma(part[i] * scale, inverse, even[i]);
                    }
                    let left = WarpLeft::<f16, BN, PANEL>::widen(slot.0.batch(panel), [0, PANEL]);
                    let mut part = WarpAccumulator::<f32, BN, 8>::zero();
                    part.mma_sync(left, right);
                    for i in unroll(0..part.len()) {
                        odd[i] = fma(part[i] * scale, inverse, odd[i]);
                    }
                    sync_warp();
                    if elect_one() {
                        slot.release();
                    }
                }

                // Two buffers: threads may still read the sums of the unit before.
                let parts = sums[buffer];
                buffer ^= 1;
                for i in unroll((0..even.len()).step_by(2)) {
                    let at = even.at(i);
                    if at[1] == column {
                        parts.set(panel * (BN + PADDING) + at[0], even[i] + odd[i + 1]);
                    }
                }
                named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                let to = unit * BN + thread_idx().x;
                if thread_idx().x < BN && to < n {
                    c.set(to, cast::<C>(total::<1, SUMS>(parts, thread_idx().x)));
                }
            }
        }
    }
}
