//! The kernel that multiplies few rows by many, at the speed of memory.

use tma_runtime::tma_module;

/// `C = activation(alpha · A · Bᵀ + beta · C + residual + bias)` for few rows of A, computed as
/// B · Aᵀ: 16 rows of B are those of a warp's instructions, and 8 rows of A their columns.
///
/// With a gate, B is two matrices, and `C = activation(A · B₀ᵀ) ∘ (A · B₁ᵀ)`. The 16 rows are then 8
/// of each.
///
/// A single row of A is loaded as rows of 64 columns, one for each panel: filling 7 rows with zeros
/// takes longer than loading them. Each warp multiplies its panel of B by all 8 rows, and only the
/// column of its own panel counts.
///
/// Memory limits such a GEMM: it reads B once. A block takes one work unit after the other: some
/// rows of B, and all of K. One warp loads B, another one A, and eight multiply. B is loaded
/// without a pause, also while sums are stored.
#[tma_module]
pub mod streamed {
    use tma_runtime::prelude::*;

    use crate::gemm::device::activation::activated;
    use crate::gemm::device::producer::{Steps, nth_step};
    use crate::model::gated::kernel::rows::activated_gate;

    /// Rows of B of a work unit: those of a warp's instructions. So few divide evenly among 132
    /// multiprocessors.
    pub const BN: u32 = 16;

    /// Columns of K of a panel: a row of 128 bytes.
    pub const PANEL: u32 = 64;

    /// Warps that multiply. Two more load.
    pub const WARPS: u32 = 8;

    /// The named barrier of the warps that multiply.
    pub const MULTIPLIERS: u32 = 1;

    /// Elements after each row of sums: the threads of a warp that store columns of several rows
    /// access different banks.
    pub const PADDING: u32 = 4;

    /// Panels of a stage, one for each warp that multiplies.
    pub const PANELS: u32 = WARPS;

    /// Shared memory that a block has at least, in bytes: more than half of a multiprocessor's 228
    /// KB. Otherwise blocks that start before the previous kernel has ended pile up, two on each of
    /// the multiprocessors that are free first and none on others. Smaller kernels fit beside a
    /// block.
    ///
    /// It is also about what memory needs: 64 to 112 KB of B in flight. With 192 KB it is slower
    /// (`docs/cached-attention.md`, "The kernels").
    const SHARED_BYTES: u32 = 117 * 1024;

    /// Some rows of as many panels of A.
    pub type Panels<AB, const PANELS: u32, const ROWS: u32> =
        Tile<AB, Shape3<PANELS, ROWS, PANEL>, Swizzle128>;

    /// `BN` rows of the panels of B: some of each of its matrices.
    pub type PanelsOfB<AB, const MATRICES: u32, const ROWS: u32> =
        Tile<AB, Shape4<PANELS, MATRICES, ROWS, PANEL>, Swizzle128>;

    /// Returns the columns of the instructions: the rows of a panel of A.
    pub const fn columns(bm: u32) -> u32 {
        if bm < 8 { 8 } else { bm }
    }

    /// Returns the panels of A in a stage. A single row is one panel, with a row for each of its
    /// own.
    pub const fn panels_a(bm: u32) -> u32 {
        if bm == 1 { 1 } else { PANELS }
    }

    /// Returns the number of elements of the sums of a unit, one for each panel of a stage.
    pub const fn sums(bm: u32) -> u32 {
        PANELS * bm * (BN + PADDING)
    }

    /// Returns the number of stages with which a block has `SHARED_BYTES`, beside two buffers of
    /// sums.
    pub const fn stages(bm: u32) -> u32 {
        (SHARED_BYTES - 2 * 4 * sums(bm)).div_ceil(PANELS * (BN + bm) * PANEL * 2)
    }

    /// Returns the steps of a unit along K. Each unit begins `k_shift` steps after the one before
    /// it, and wraps around (docs/gemm-tiles.md, "Few rows").
    #[tma_device]
    pub fn steps_of(unit: u32, count: u32, k_shift: u32) -> Steps {
        Steps { first: 0, count, start: unit * k_shift }
    }

    /// Returns the sum of all panels at this place of the first one.
    #[tma_device]
    pub fn total<const BM: u32, const SUMS: u32>(sums: SharedArray<f32, SUMS>, place: u32) -> f32 {
        let mut total = sums.get(place);
        for panel in unroll(1..PANELS) {
            total += sums.get(panel * BM * (BN + PADDING) + place);
        }
        total
    }

    /// Computes `m` × `n` elements of C, in units of `ROWS` columns, as many rows of each matrix of B.
    /// K has so many `panels`. `c_row` are the elements from one row of C to the next.
    ///
    /// With two matrices, `activation` is the number of a [`Gate`](crate::model::Gate), and there are
    /// no other options.
    ///
    /// A block reads B before the previous kernel has ended if `is_constant`. Otherwise it only
    /// fetches the first `fetched` steps into the L2 cache. That is no access: what the previous
    /// kernel still writes to B is in the cache, too, when this one loads it.
    #[tma_kernel(threads = 32 * (WARPS + 2), unchecked, instances(
        let COLUMNS = columns(BM),
        let PANELS_A = panels_a(BM),
        let STAGES = stages(BM),
        let SUMS = sums(BM),
        let ROWS = BN / MATRICES;

        (AB, C) in [bf16 = (bf16, bf16), f16 = (f16, f16), bf16_f32 = (bf16, f32), f16_f32 = (f16, f32)],
        BM in [m1 = 1, m8 = 8, m16 = 16],
        MATRICES in [plain = 1, gated = 2];
    ))]
    pub fn multiply<
        AB,
        C,
        const BM: u32,
        const COLUMNS: u32,
        const PANELS_A: u32,
        const STAGES: u32,
        const SUMS: u32,
        const MATRICES: u32,
        const ROWS: u32,
    >(
        a: TensorMap<Panels<AB, PANELS_A, COLUMNS>>,
        b: TensorMap<PanelsOfB<AB, MATRICES, ROWS>>,
        c: Global<C>,
        m: u32,
        n: u32,
        panels: u32,
        k_shift: u32,
        is_constant: bool,
        fetched: u32,
        c_row: u64,
        alpha: f32,
        beta: f32,
        residual: Option<Global<C>>,
        bias: Option<Global<C>>,
        activation: u32,
    ) where
        AB: WarpMultiply<AB, f32>,
        C: TileElement + Number,
    {
        let ring_b: Pipeline<(PanelsOfB<AB, MATRICES, ROWS>,), STAGES> = shared();
        let ring_a: Pipeline<(Panels<AB, PANELS_A, COLUMNS>,), STAGES> = shared();
        let sums: Stages<SharedArray<f32, SUMS>, 2> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring_b.init(WARPS); // one arrival per multiplying warp
            ring_a.init(WARPS);
            fence_barrier_init();
        }
        sync_threads();

        let units = n.div_ceil(ROWS);
        let count = panels.div_ceil(PANELS); // past the end of K are zeros
        let blocks = grid_dim().x as usize;
        if warp_idx() == WARPS {
            if elect_one() {
                if !is_constant {
                    let steps = steps_of(block_idx().x, count, k_shift);
                    for i in 0..min(count, fetched) {
                        b.prefetch([nth_step(steps, i) * PANELS, 0, block_idx().x * ROWS, 0]);
                    }
                    grid_dependency_wait();
                }
                let mut producer = ring_b.producer();
                for unit in (block_idx().x..units).step_by(blocks) {
                    let steps = steps_of(unit, count, k_shift);
                    for i in 0..count {
                        let slot = producer.acquire();
                        b.load(slot.0, [nth_step(steps, i) * PANELS, 0, unit * ROWS, 0], slot.barrier());
                    }
                }
            }
        } else if warp_idx() > WARPS {
            if elect_one() {
                // The next kernel may begin to prepare. It relies on this order if it reads what it
                // is promised to be constant: by now, all kernels before the previous one have
                // ended.
                grid_dependency_wait();
                grid_dependency_launch();
                let mut producer = ring_a.producer();
                for unit in (block_idx().x..units).step_by(blocks) {
                    let steps = steps_of(unit, count, k_shift);
                    for i in 0..count {
                        let slot = producer.acquire();
                        let panel = nth_step(steps, i) * PANELS;
                        if BM == 1 {
                            a.load(slot.0, [0, panel, 0], slot.barrier());
                        } else {
                            a.load(slot.0, [panel, 0, 0], slot.barrier());
                        }
                    }
                }
            }
        } else {
            grid_dependency_wait(); // of the previous kernel, results are read, and C is
            let (mut of_b, mut of_a) = (ring_b.consumer(), ring_a.consumer());
            let panel = warp_idx();
            let mut buffer = 0u32;
            for unit in (block_idx().x..units).step_by(blocks) {
                let mut sum = WarpAccumulator::<f32, BN, COLUMNS>::zero();
                for _ in 0..count {
                    let (b, a) = (of_b.wait(), of_a.wait());
                    let left = WarpLeft::<AB, BN, PANEL>::load(b.0.band::<BN>(panel), [0, 0]);
                    let of_panel = a.0.batch(min(panel, PANELS_A - 1));
                    let right = WarpRight::<AB, COLUMNS, PANEL>::load(of_panel, [0, 0]);
                    sum.mma_sync(left, right);
                    sync_warp();
                    if elect_one() {
                        b.release();
                        a.release();
                    }
                }

                // Two buffers: threads may still read the sums of the unit before.
                let parts = sums[buffer];
                buffer ^= 1;
                for i in unroll(0..sum.len()) {
                    let at = sum.at(i);
                    let row = at[1].wrapping_sub(if BM == 1 { panel } else { 0 });
                    if row < min(m, BM) {
                        parts.set((panel * BM + row) * (BN + PADDING) + at[0], sum[i]);
                    }
                }
                named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                for item in (thread_idx().x..m * ROWS).step_by(32 * WARPS as usize) {
                    let (row, column) = (item / ROWS, unit * ROWS + item % ROWS);
                    if column < n {
                        let place = row * (BN + PADDING) + item % ROWS;
                        let to = row as u64 * c_row + column as u64;
                        let mut x = total::<BM, SUMS>(parts, place);
                        if MATRICES == 2 {
                            let gate = activated_gate(x, activation);
                            x = gate * total::<BM, SUMS>(parts, place + BN / 2);
                        } else {
                            x *= alpha;
                            if beta != 0.0 {
                                x += beta * cast::<f32>(c.get(to));
                            }
                            if let Some(residual) = residual {
                                x += cast::<f32>(residual.get(row as u64 * n as u64 + column as u64));
                            }
                            if let Some(bias) = bias {
                                x += cast::<f32>(bias.get(column));
                            }
                            x = activated(x, activation);
                        }
                        c.set(to, cast::<C>(x));
                    }
                }
            }
        }
    }
}
