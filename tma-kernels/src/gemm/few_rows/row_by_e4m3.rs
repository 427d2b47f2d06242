//! The kernel that multiplies a row of `bf16` by many of `e4m3`.

use tma_runtime::tma_module;

/// C = A · Bᵀ, where A is a row of `bf16`, and B, of `e4m3`, has a scale for each 128 × 128
/// elements. As in [`streamed`](super::kernel::streamed), a block computes units of 16 rows of B
/// and all of K.
///
/// The tensor cores multiply B as it is, since A becomes `e4m3`, too: an element of `bf16` has
/// twice the bits of one of `e4m3`, and is the sum of two, a high and a low part. Small elements are
/// multiplied by a greater power of two first, which keeps their bits; their two parts are separate
/// columns.
///
/// An instruction has 64 rows of B: 16 of each of four panels of K. Its 16 columns are the four
/// parts of A in each of these panels. Each warp of the warpgroup has the rows of one panel, of
/// which only the sums with the same panel of A count.
#[tma_module]
pub mod split {
    use tma_runtime::prelude::*;

    use crate::gemm::device::producer::nth_step;
    use crate::gemm::few_rows::kernel::streamed::{BN, MULTIPLIERS, PADDING, PANELS, WARPS, steps_of, total};

    /// Columns of K of a panel: a row of 128 bytes, which share a scale.
    pub const WIDE_PANEL: u32 = 128;

    /// Panels of B, as many as warps that multiply.
    pub type WidePanels = Tile<e4m3, Shape3<PANELS, BN, WIDE_PANEL>, Swizzle128>;

    /// A: the right operands of each four panels. The rows are the high and the low part of each
    /// panel, and then those of small elements.
    pub type Parts<const QUADS: u32> = Tile<e4m3, Shape3<QUADS, 16, WIDE_PANEL>, Swizzle128>;

    /// Elements of the sums of a unit.
    const SUMS: u32 = PANELS * (BN + PADDING);

    /// Elements of a panel of A that a lane converts.
    const VECTOR: u32 = WIDE_PANEL / 32;

    /// The factor of low parts. A high part has four bits, so that what remains of an element is at
    /// most 1/16 of it, and has four more.
    const LOW: f32 = 16.0;

    /// The factor of elements below [`LEAST`].
    const SMALL: f32 = 16384.0;

    /// 2^-6: the least number of `e4m3` with all bits. The low part of a lesser element loses some.
    const LEAST: f32 = 1.0 / 64.0;

    /// The inverse of a panel with elements that `e4m3` cannot represent: it has no infinity.
    const SPECIAL: f32 = 0.0;

    /// Writes the high and the low parts of `x` to two rows of a tile, from `at` on.
    #[tma_device]
    fn write_parts<const QUADS: u32>(x: [f32; 4], tile: Parts<QUADS>, at: [u32; 3]) {
        let mut high = [cast::<e4m3>(0.0f32); 4];
        let mut low = [cast::<e4m3>(0.0f32); 4];
        for i in unroll(0..4usize) {
            high[i] = cast::<e4m3>(x[i]);
            low[i] = cast::<e4m3>((x[i] - high[i].to_f32()) * LOW);
        }
        tile.set_vec::<4>(at, high);
        tile.set_vec::<4>([at[0], at[1] + 1, at[2]], low);
    }

    /// Multiplies a panel of A by a power of two, and writes it to its tile. The greatest element
    /// becomes 2^7 to 2^8, below the 448 that `e4m3` reaches, or less if it is below 2^-119.
    /// `inverses` receives the inverse of the power, or [`SPECIAL`]. Past column `k` of A are zeros. A
    /// warp calls it.
    #[tma_device]
    fn convert<const QUADS: u32, const PANELS_A: u32, const COLUMNS_A: u32>(
        row: SharedArray<bf16, COLUMNS_A>,
        k: u32,
        panel: u32,
        tile: Parts<QUADS>,
        inverses: SharedArray<f32, PANELS_A>,
    ) {
        let column = panel * WIDE_PANEL + lane_idx() * VECTOR;
        let mut x = [cast::<bf16>(0.0f32); 4];
        if column < k {
            x = row.get_vec::<4>(column);
        }
        // The bits of a greater magnitude are greater, and those of NaN the greatest.
        let mut greatest = 0u32;
        for i in unroll(0..4usize) {
            greatest = max(greatest, abs(x[i].to_f32()).to_bits());
        }
        greatest = warp_reduce_max(greatest);
        let exponent = clamp(greatest >> 23, 8, 254);
        let power = f32::from_bits((261 - exponent) << 23);
        let mut great = [0.0f32; 4];
        let mut small = [0.0f32; 4];
        for i in unroll(0..4usize) {
            let scaled = x[i].to_f32() * power;
            let is_small = abs(scaled) < LEAST;
            great[i] = if is_small { 0.0 } else { scaled };
            small[i] = if is_small { scaled * SMALL } else { 0.0 };
        }
        let at = [panel / 4, panel % 4 * 2, lane_idx() * VECTOR];
        write_parts::<QUADS>(great, tile, at);
        write_parts::<QUADS>(small, tile, [at[0], at[1] + 8, at[2]]);
        let inverse = f32::from_bits((exponent - 7) << 23);
        inverses.set(panel, if greatest >> 23 == 255 { SPECIAL } else { inverse });
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

    /// Returns the lane's share of the sum of a special panel's products, which begin at these
    /// elements of A and B.
    #[tma_device]
    fn special_sum(a: Global<bf16>, b: Global<e4m3>, of_a: u32, of_b: u64) -> f32 {
        let mut sum = 0.0f32;
        for column in (lane_idx() % 4..WIDE_PANEL).step_by(4) {
            sum = fma(a.get(of_a + column).to_f32(), b.get(of_b + column as u64).to_f32(), sum);
        }
        sum
    }

    /// Computes `n` elements of C, in units of `BN` rows of B, whose K is whole panels. Without
    /// scales, all of them are 1. Warps convert A while they compute a block's first unit.
    ///
    /// `elements_of_b` is the memory of `b`, and `row_of_b` the stride of its rows: only the products
    /// of special panels are computed from it.
    ///
    /// A block reads B and scales before the previous kernel has ended if `is_constant`.
    #[tma_kernel(threads = 32 * (WARPS + 2), unchecked, instances(
        let QUADS = PANELS_A / 4,
        let COLUMNS_A = PANELS_A * WIDE_PANEL;

        C in [bf16, f32],
        // More than half of a multiprocessor's shared memory, as in the other kernel, so that one
        // block fits. A unit has at most as many steps as a warp has lanes, which hold their scales.
        (PANELS_A, STAGES) in [k4096 = (32, 7), k16384 = (128, 5)];
    ))]
    pub fn multiply<C, const PANELS_A: u32, const STAGES: u32, const QUADS: u32, const COLUMNS_A: u32>(
        a: Global<bf16>,
        b: TensorMap<WidePanels>,
        elements_of_b: Global<e4m3>,
        row_of_b: u64,
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
        let row: SharedArray<bf16, COLUMNS_A> = shared();
        let has_row: Barrier = shared();
        let parts: Parts<QUADS> = shared();
        let sums: Stages<SharedArray<f32, SUMS>, 2> = shared();
        let inverses: SharedArray<f32, PANELS_A> = shared();
        if thread_idx().x == 0 {
            b.prefetch_descriptor();
            ring.init(WARPS); // one arrival per multiplying warp
            has_row.init(1);
            fence_barrier_init();
        }
        sync_threads();

        let units = n.div_ceil(BN);
        let panels = k / WIDE_PANEL;
        let count = panels.div_ceil(PANELS); // past the end of K are zeros
        let blocks = grid_dim().x as usize;
        if warpgroup_idx() == WARPS / 4 {
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
            } else if elect_one() {
                grid_dependency_wait();
                grid_dependency_launch(); // the next kernel may begin to prepare
                has_row.arrive_expect_tx(k * 2);
                a.bulk_load(row, 0, k, 0, has_row);
            }
        } else {
            if !is_constant {
                grid_dependency_wait();
            }
            let mut next_scale = lane_scale(scales, block_idx().x, units, panels, k_shift);
            grid_dependency_wait(); // C may be in use until then
            has_row.wait(0);

            let mut consumer = ring.consumer();
            let panel = warp_idx();
            let first_row = lane_idx() / 4;
            let is_of_panel = lane_idx() % 4 == panel % 4;
            let mut buffer = 0u32;
            for unit in (block_idx().x..units).step_by(blocks) {
                let steps = steps_of(unit, count, k_shift);
                let lane_scales = next_scale;
                let mut of_rows = [0.0f32; 2]; // the lane's first row, and the eighth after it
                for i in 0..count {
                    let step = nth_step(steps, i);
                    if unit == block_idx().x {
                        convert::<QUADS, PANELS_A, COLUMNS_A>(row, k, step * PANELS + panel, parts, inverses);
                        fence_proxy_async(); // the tensor cores read A
                        sync_warpgroup();
                    }
                    let of_a = parts.batch(step * (PANELS / 4) + warpgroup_idx());
                    let slot = consumer.wait();
                    let mut sum = Accumulator::<f32, 64, 16>::zero();
                    let flight = sum.mma(slot.0.band::<64>(warpgroup_idx()), of_a, slot);
                    let scale = shuffle_idx(lane_scales, i);
                    let inverse = inverses.get(step * PANELS + panel);
                    let slot = flight.wait();
                    if elect_one() {
                        slot.release();
                    }
                    for half in unroll(0..2usize) {
                        if inverse == SPECIAL {
                            let first = (step * PANELS + panel) * WIDE_PANEL;
                            let row_of_unit = min(unit * BN + first_row + 8 * half as u32, n - 1);
                            let of_b = row_of_unit as u64 * row_of_b + first as u64;
                            let special = special_sum(a, elements_of_b, first, of_b);
                            of_rows[half] = fma(special, scale, of_rows[half]);
                        } else if is_of_panel {
                            let great = fma(sum[2 * half + 1], 1.0 / LOW, sum[2 * half]);
                            let small = fma(sum[2 * half + 5], 1.0 / LOW, sum[2 * half + 4]);
                            let of_panel = fma(small, 1.0 / SMALL, great);
                            of_rows[half] = fma(of_panel * scale, inverse, of_rows[half]);
                        }
                    }
                }
                next_scale = lane_scale(scales, unit + grid_dim().x, units, panels, k_shift);

                // Two buffers: threads may still read the sums of the unit before.
                let sums = sums[buffer];
                buffer ^= 1;
                for half in unroll(0..2usize) {
                    let of_pairs = of_rows[half] + shuffle_xor(of_rows[half], 1);
                    let of_row = of_pairs + shuffle_xor(of_pairs, 2);
                    if lane_idx() % 4 == 0 {
                        sums.set(panel * (BN + PADDING) + first_row + 8 * half as u32, of_row);
                    }
                }
                named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                let to = unit * BN + thread_idx().x;
                if thread_idx().x < BN && to < n {
                    c.set(to, cast::<C>(total::<1, SUMS>(sums, thread_idx().x)));
                }
            }
        }
    }
}
