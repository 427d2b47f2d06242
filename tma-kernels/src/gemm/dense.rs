//! The main GEMM kernel, which `docs/gemm-kernel.md` and `docs/gemm-tiles.md` explain.

use tma_runtime::tma_module;

/// C = A · B, in batches, by tensor cores.
///
/// A is M × K or, if `MN_A`, K × M; B is N × K or, if `MN_B`, K × N; C is M × N. A cluster of
/// `CLUSTER_M` × `CLUSTER_N` blocks computes as many adjacent tiles of C, of `BM` × `BN` elements
/// each. Blocks side by side share their loads of A, and stacked blocks those of B. In each block
/// one warp loads, and `WARPGROUPS` warpgroups compute 64 rows each.
#[tma_module]
pub mod kernels {
    use tma_runtime::prelude::*;

    use crate::gemm::device::consumer::{multiply_steps, release_steps};
    use crate::gemm::device::epilogue::store_rows;
    use crate::gemm::device::producer::{Operand, Steps, load_steps};
    use crate::gemm::device::schedule::{
        NOBODY, TileCoords, WorkUnit, ring_stages, tile_coords, tile_order, work_unit,
    };

    /// The parts (GPCs) of a GPU with 132 multiprocessors.
    const GPCS: u32 = 8;
    /// How often clusters of two blocks go to all of them in turn, before the smallest is full.
    const ROUNDS: u32 = 4;
    /// The number of clusters that start before that, on multiprocessors of their own.
    const APART: u32 = GPCS - ROUNDS;

    /// Returns this cluster's first work unit. In bands of eight rows the clusters of a part of the
    /// chip (a GPC) then have the same rows of A, whose loads are merged on their way from the L2
    /// cache (docs/gemm-kernel.md, "Start order on the chip").
    ///
    /// Measured on H100 and H200: the first four clusters are apart, and count as part of the
    /// smallest GPC. The next go to all eight in turn until the smallest is full, then to the other
    /// seven. On other devices the same units are computed in another order.
    #[tma_device]
    fn first_unit<const CLUSTER_N: u32>(band: u32) -> u32 {
        let cluster = cluster_idx().x;
        if band != 8 || grid_dim().x / CLUSTER_N < 64 || cluster >= 64 {
            cluster
        } else if cluster < APART {
            (ROUNDS + cluster) * 8
        } else if cluster < APART + GPCS * ROUNDS {
            cluster - APART
        } else {
            let late = cluster - APART - GPCS * ROUNDS;
            (ROUNDS + late / 7) * 8 + late % 7 + 1
        }
    }

    /// Computes C = A · B, of `m` × `n` elements that sum `k` products each.
    ///
    /// A cluster computes the work unit `first_unit`, then every `clusters`-th one after it, up to
    /// `units`. The first `whole` units are one tile each. After these, each tile is two units, one
    /// for each warpgroup (docs/gemm-tiles.md, "Halving the last wave"). Tiles are numbered in
    /// bands of `band` rows. Each cluster begins `k_shift` steps along K after the one before it,
    /// and wraps around (docs/gemm-tiles.md, "Few rows").
    #[tma_kernel(threads = 128 * (1 + WARPGROUPS), cluster = [CLUSTER_N, CLUSTER_M], unchecked, instances(
        // A row of a tile has 128 bytes, the span of the swizzle.
        let BK = 128 / size_of::<AB>() as u32,
        let EPILOGUE_COLUMNS = 128 / size_of::<C>() as u32,
        let BM = 64 * WARPGROUPS,
        let ROWS_A = if MN_A { BK } else { BM },
        let COLUMNS_A = if MN_A { BM } else { BK },
        let ROWS_B = if MN_B { BK } else { BN },
        let COLUMNS_B = if MN_B { BN } else { BK },
        let SLICE_A = ROWS_A / CLUSTER_N,
        let SLICE_B = ROWS_B / CLUSTER_M,
        // Two buffers in turn, if a tile fills both equally often: each tile begins with the first.
        let IN_FLIGHT = if BN % 128 == 0 { 1 } else { 0 },
        let BUFFERS = WARPGROUPS * (IN_FLIGHT + 1),
        let STAGES = ring_stages(BM, BN, BUFFERS);

        // The layouts of row-major A and B: `t` is an A of K × M, or a B of N × K.
        (AB, SUM, C) in [bf16 = (bf16, f32, bf16), f16 = (f16, f32, f16), bf16_f32 = (bf16, f32, f32), f16_f32 = (f16, f32, f32)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256)],
        (MN_A, MN_B) in [nt = (false, false), nn = (false, true)];

        (AB, SUM, C) in [bf16 = (bf16, f32, bf16), f16 = (f16, f32, f16)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256)],
        (MN_A, MN_B) in [tt = (true, false), tn = (true, true)];

        (AB, SUM, C) in [bf16 = (bf16, f32, bf16), f16 = (f16, f32, f16)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [
            t128x192_cluster2x1 = (2, 1, 2, 192),
            t128x128_cluster2x1 = (2, 1, 2, 128),
            t128x64_cluster1x2 = (1, 2, 2, 64),
            t64x128_cluster1x4 = (1, 4, 1, 128),
            t64x128_cluster2x1 = (2, 1, 1, 128),
            t64x128 = (1, 1, 1, 128),
            t64x64 = (1, 1, 1, 64),
        ],
        (MN_A, MN_B) in [nt = (false, false), nn = (false, true)];

        (AB, SUM, C) in [f16_half = (f16, f16, f16)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256), t128x128_cluster2x1 = (2, 1, 2, 128), t64x64 = (1, 1, 1, 64)],
        (MN_A, MN_B) in [nt = (false, false), nn = (false, true)];

        (AB, SUM, C) in [e4m3 = (e4m3, f32, bf16), e5m2 = (e5m2, f32, bf16), e4m3_f32 = (e4m3, f32, f32), e5m2_f32 = (e5m2, f32, f32), i8 = (i8, i32, i32)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256), t128x128_cluster2x1 = (2, 1, 2, 128), t128x64_cluster1x2 = (1, 2, 2, 64), t64x64 = (1, 1, 1, 64)],
        (MN_A, MN_B) in [nt = (false, false)];

        (AB, SUM, C) in [e4m3 = (e4m3, f32, bf16), e5m2 = (e5m2, f32, bf16)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t64x128_cluster1x4 = (1, 4, 1, 128), t64x128_cluster2x1 = (2, 1, 1, 128)],
        (MN_A, MN_B) in [nt = (false, false)];

        (AB, SUM, C) in [tf32 = (tf32, f32, f32)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256)],
        (MN_A, MN_B) in [nt = (false, false)];
    ))]
    pub fn plain<
        AB: Multiply<AB, SUM>,
        SUM: StoreAs<C>,
        C: TileElement,
        const BK: u32,
        const EPILOGUE_COLUMNS: u32,
        const CLUSTER_M: u32,
        const CLUSTER_N: u32,
        const WARPGROUPS: u32,
        const BM: u32,
        const BN: u32,
        const MN_A: bool,
        const MN_B: bool,
        const ROWS_A: u32,
        const COLUMNS_A: u32,
        const SLICE_A: u32,
        const ROWS_B: u32,
        const COLUMNS_B: u32,
        const SLICE_B: u32,
        const IN_FLIGHT: u32,
        const BUFFERS: u32,
        const STAGES: u32,
    >(
        a: TensorMap<Operand<AB, SLICE_A, COLUMNS_A>>,
        b: TensorMap<Operand<AB, SLICE_B, COLUMNS_B>>,
        c: TensorMap<Tile<C, Shape3<1, 64, EPILOGUE_COLUMNS>, Swizzle128>>,
        m: u32,
        n: u32,
        k: u32,
        k_shift: u32,
        band: u32,
        units: u32,
        whole: u32,
    ) where
        Transposed<Tile<AB, Shape2<64, BK>, Swizzle128>, MN_A>: Left<64, BK, Element = AB>,
        Transposed<Operand<AB, ROWS_B, COLUMNS_B>, MN_B>: Right<BN, BK, Element = AB>,
    {
        let ring: Pipeline<(Operand<AB, ROWS_A, COLUMNS_A>, Operand<AB, ROWS_B, COLUMNS_B>), STAGES> =
            shared();
        let buffers: Stages<Tile<C, Shape3<1, 64, EPILOGUE_COLUMNS>, Swizzle128>, BUFFERS> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(CLUSTER_N * CLUSTER_M * WARPGROUPS * 4); // one arrival per multiplying warp of all blocks
            fence_barrier_init();
        }
        sync_cluster();
        grid_dependency_wait();
        grid_dependency_launch(); // the next kernel may begin to prepare

        let order = tile_order::<CLUSTER_M, CLUSTER_N, BM, BN>(m, n, band);
        let steps = k.div_ceil(BK);
        let clusters = (grid_dim().x / CLUSTER_N) as usize; // in one row, CLUSTER_M blocks high
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>(); // 40 + 2 · 232 are 3 · 168, with which three warpgroups start
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for unit in (first_unit::<CLUSTER_N>(band)..units).step_by(clusters) {
                    let tile = work_unit(unit, whole).tile; // half a unit loads the whole tile, too
                    let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, tile);
                    let steps = Steps { first: 0, count: steps, start: cluster_idx().x * k_shift };
                    load_steps::<_, BK, MN_A, MN_B, _, _, _, _, _, _, _>(&mut producer, a, b, at, steps);
                }
                producer.drain(); // until then, the other blocks arrive at this block's barriers
            }
        } else {
            setmaxnreg_inc::<232>();
            let warpgroup = warpgroup_idx() - 1;
            let mut consumer = ring.consumer();
            for unit in (first_unit::<CLUSTER_N>(band)..units).step_by(clusters) {
                let WorkUnit { tile, idle } = work_unit(unit, whole);
                if warpgroup == idle {
                    release_steps(&mut consumer, steps);
                    continue;
                }
                let mut sum = Accumulator::<SUM, 64, BN>::zero();
                // The last generic: slots are released in all blocks of the cluster.
                multiply_steps::<_, _, _, BK, MN_A, MN_B, _, _, _, _, _, true>(
                    &mut sum,
                    &mut consumer,
                    warpgroup,
                    steps,
                    idle == NOBODY, // the finish is staggered if both multiply
                );

                let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, tile);
                let at = TileCoords { row: at.row + warpgroup * 64, ..at };
                store_rows::<SUM, C, Swizzle128, BN, EPILOGUE_COLUMNS, BUFFERS, IN_FLIGHT>(
                    &sum, c, buffers, warpgroup, at,
                );
            }
            bulk_wait_group_read::<0>(); // returns at once in threads that stored nothing
        }
    }
}
