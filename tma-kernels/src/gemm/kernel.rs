//! The main GEMM kernel, which the chapter on GEMM explains.

use tma_runtime::tma_module;

/// C = A · B, in batches, by tensor cores.
///
/// A is M × K or, if `MN_A`, K × M; B is N × K or, if `MN_B`, K × N; C is M × N. A cluster of
/// `WIDE` × `TALL` blocks computes as many adjacent tiles of C. Blocks side by side share their
/// loads of A, and stacked blocks those of B. In each block one warp loads, and `WARPGROUPS`
/// warpgroups compute 64 × `N` elements each. They store through `OUTS` buffers: when a store
/// starts, `LEFT` others may be in flight.
#[tma_module]
pub mod product {
    use tma_runtime::prelude::*;

    /// A value that stands for no warpgroup.
    const NOBODY: u32 = 2;

    /// The hardware barrier at which one warpgroup waits for the other to be ahead.
    const AHEAD: u32 = 1;

    /// The number of rounds in which a GPU with 132 multiprocessors starts a cluster of two blocks
    /// on each of its eight GPCs.
    const ROUNDS: u32 = 4;

    /// Returns this cluster's first unit. In bands of eight rows the clusters of a part of the chip
    /// (a GPC) then have the same rows of A, whose loads are merged on their way from the L2 cache
    /// (docs/gemm-kernel.md, "Start order on the chip").
    ///
    /// Measured on H100 and H200: the first four clusters are apart, and count as part of the
    /// smallest GPC. The next go to all eight in turn until that is full, then to the other seven.
    #[tma_device]
    fn seat<const WIDE: u32>(group: u32) -> u32 {
        let cluster = cluster_idx().x;
        if group != 8 || grid_dim().x / WIDE < 64 || cluster >= 64 {
            cluster
        } else if cluster < 8 - ROUNDS {
            (ROUNDS + cluster) * 8
        } else if cluster < 8 + 7 * ROUNDS {
            cluster - (8 - ROUNDS)
        } else {
            let late = cluster - (8 + 7 * ROUNDS);
            (ROUNDS + late / 7) * 8 + late % 7 + 1
        }
    }

    /// Returns `step`, reduced by `steps` if it is not below.
    #[tma_device]
    fn wrapped(step: u32, steps: u32) -> u32 {
        if step < steps { step } else { step - steps }
    }

    /// Returns the tile of a work unit, and its idle warpgroup, or `NOBODY`. From `whole` on each
    /// tile is two units, each of which is the rows of one warpgroup.
    #[tma_device]
    fn share_of(unit: u32, whole: u32) -> [u32; 2] {
        if unit < whole { [unit, NOBODY] } else { [whole + (unit - whole) / 2, (unit - whole) % 2] }
    }

    /// Returns a unit of this block: its batch, first row and first column, and the idle warpgroup.
    /// Clusters take tiles in bands of `group` rows, so that blocks that run at the same time read
    /// the same parts of A and B, which the L2 cache then holds.
    #[tma_device]
    fn place<const WIDE: u32, const TALL: u32, const WARPGROUPS: u32, const N: u32>(
        unit: u32,
        whole: u32,
        m: u32,
        n: u32,
        group: u32,
    ) -> [u32; 4] {
        let down = m.div_ceil(TALL * WARPGROUPS * 64);
        let across = n.div_ceil(WIDE * N);
        let share = share_of(unit, whole);
        let tile = share[0] % (down * across);
        let first = tile / (group * across) * group;
        let height = min(down - first, group);
        let inside = tile % (group * across);
        let row = (TALL * (first + inside % height) + block_in_cluster().y) * WARPGROUPS * 64;
        let column = (WIDE * (inside / height) + block_in_cluster().x) * N;
        [share[0] / (down * across), row, column, share[1]]
    }

    /// Lets the first of two warpgroups finish a tile before the second: it stores while the second
    /// multiplies, and begins the next tile while that stores (docs/gemm-kernel.md, "Staggered
    /// finish"). Both call it after each step but the first. Tiles of up to 128 columns take steps
    /// too fast for memory to feed one warpgroup alone; wider tiles all have two.
    ///
    /// Before its last `STAGES - 1` steps the second waits until the first has begun its last one.
    /// It has released the slots of all steps before; the first needs the latest of them for that.
    #[tma_device]
    fn go_ahead<const N: u32, const STAGES: u32>(me: u32, idle: u32, step: u32, steps: u32) {
        if N > 128 && idle == NOBODY && steps > STAGES {
            if me == 0 && step + 1 == steps {
                named_barrier_arrive(AHEAD, 256);
            } else if me == 1 && step + STAGES == steps {
                named_barrier_sync(AHEAD, 256);
            }
        }
    }

    /// Computes the plain GEMM.
    #[tma_kernel(threads = 128 * (1 + WARPGROUPS), cluster = [WIDE, TALL], unchecked, instances(
        (AB, SUM, C, K, COLS) in [bf16 = (bf16, f32, bf16, 64, 64), f16 = (f16, f32, f16, 64, 64), bf16_f32 = (bf16, f32, f32, 64, 32), f16_f32 = (f16, f32, f32, 64, 32)],
        (WIDE, TALL, WARPGROUPS, OUTS, LEFT, N, STAGES, MN_A, ROWS_A, COLS_A, SLICE_A, MN_B, ROWS_B, COLS_B, SLICE_B) in [
            pair_nt = (1, 2, 2, 4, 1, 256, 4, false, 128, 64, 128, false, 256, 64, 128),
            pair_nn = (1, 2, 2, 4, 1, 256, 4, false, 128, 64, 128, true, 64, 256, 32),
        ];

        (AB, SUM, C, K, COLS) in [bf16 = (bf16, f32, bf16, 64, 64), f16 = (f16, f32, f16, 64, 64)],
        (WIDE, TALL, WARPGROUPS, OUTS, LEFT, N, STAGES, MN_A, ROWS_A, COLS_A, SLICE_A, MN_B, ROWS_B, COLS_B, SLICE_B) in [
            pair_tt = (1, 2, 2, 4, 1, 256, 4, true, 64, 128, 64, false, 256, 64, 128),
            pair_tn = (1, 2, 2, 4, 1, 256, 4, true, 64, 128, 64, true, 64, 256, 32),
            middle_nt = (1, 2, 2, 2, 0, 192, 5, false, 128, 64, 128, false, 192, 64, 96),
            square_nt = (1, 2, 2, 4, 1, 128, 6, false, 128, 64, 128, false, 128, 64, 64),
            narrow_nt = (2, 1, 2, 2, 0, 64, 8, false, 128, 64, 64, false, 64, 64, 64),
            quad_nt = (4, 1, 1, 2, 1, 128, 8, false, 64, 64, 16, false, 128, 64, 128),
            stacked_nt = (1, 2, 1, 2, 1, 128, 8, false, 64, 64, 64, false, 128, 64, 64),
            low128_nt = (1, 1, 1, 2, 1, 128, 8, false, 64, 64, 64, false, 128, 64, 128),
            low64_nt = (1, 1, 1, 1, 0, 64, 12, false, 64, 64, 64, false, 64, 64, 64),
            middle_nn = (1, 2, 2, 2, 0, 192, 5, false, 128, 64, 128, true, 64, 192, 32),
            square_nn = (1, 2, 2, 4, 1, 128, 6, false, 128, 64, 128, true, 64, 128, 32),
            narrow_nn = (2, 1, 2, 2, 0, 64, 8, false, 128, 64, 64, true, 64, 64, 64),
            quad_nn = (4, 1, 1, 2, 1, 128, 8, false, 64, 64, 16, true, 64, 128, 64),
            stacked_nn = (1, 2, 1, 2, 1, 128, 8, false, 64, 64, 64, true, 64, 128, 32),
            low128_nn = (1, 1, 1, 2, 1, 128, 8, false, 64, 64, 64, true, 64, 128, 64),
            low64_nn = (1, 1, 1, 1, 0, 64, 12, false, 64, 64, 64, true, 64, 64, 64),
        ];

        (AB, SUM, C, K, COLS) in [f16_half = (f16, f16, f16, 64, 64)],
        (WIDE, TALL, WARPGROUPS, OUTS, LEFT, N, STAGES, MN_A, ROWS_A, COLS_A, SLICE_A, MN_B, ROWS_B, COLS_B, SLICE_B) in [
            pair_nt = (1, 2, 2, 4, 1, 256, 4, false, 128, 64, 128, false, 256, 64, 128),
            pair_nn = (1, 2, 2, 4, 1, 256, 4, false, 128, 64, 128, true, 64, 256, 32),
            square_nt = (1, 2, 2, 4, 1, 128, 6, false, 128, 64, 128, false, 128, 64, 64),
            square_nn = (1, 2, 2, 4, 1, 128, 6, false, 128, 64, 128, true, 64, 128, 32),
            low64_nt = (1, 1, 1, 1, 0, 64, 12, false, 64, 64, 64, false, 64, 64, 64),
            low64_nn = (1, 1, 1, 1, 0, 64, 12, false, 64, 64, 64, true, 64, 64, 64),
        ];

        (AB, SUM, C, K, COLS) in [e4m3 = (e4m3, f32, bf16, 128, 64), e5m2 = (e5m2, f32, bf16, 128, 64), e4m3_f32 = (e4m3, f32, f32, 128, 32), e5m2_f32 = (e5m2, f32, f32, 128, 32), i8 = (i8, i32, i32, 128, 32)],
        (WIDE, TALL, WARPGROUPS, OUTS, LEFT, N, STAGES, MN_A, ROWS_A, COLS_A, SLICE_A, MN_B, ROWS_B, COLS_B, SLICE_B) in [
            pair_nt = (1, 2, 2, 4, 1, 256, 4, false, 128, 128, 128, false, 256, 128, 128),
            square_nt = (1, 2, 2, 4, 1, 128, 6, false, 128, 128, 128, false, 128, 128, 64),
            narrow_nt = (2, 1, 2, 2, 0, 64, 8, false, 128, 128, 64, false, 64, 128, 64),
            low64_nt = (1, 1, 1, 1, 0, 64, 12, false, 64, 128, 64, false, 64, 128, 64),
        ];

        (AB, SUM, C, K, COLS) in [e4m3 = (e4m3, f32, bf16, 128, 64), e5m2 = (e5m2, f32, bf16, 128, 64)],
        (WIDE, TALL, WARPGROUPS, OUTS, LEFT, N, STAGES, MN_A, ROWS_A, COLS_A, SLICE_A, MN_B, ROWS_B, COLS_B, SLICE_B) in [
            quad_nt = (4, 1, 1, 2, 1, 128, 8, false, 64, 128, 16, false, 128, 128, 128),
            stacked_nt = (1, 2, 1, 2, 1, 128, 8, false, 64, 128, 64, false, 128, 128, 64),
        ];

        (AB, SUM, C, K, COLS) in [tf32 = (tf32, f32, f32, 32, 32)],
        (WIDE, TALL, WARPGROUPS, OUTS, LEFT, N, STAGES, MN_A, ROWS_A, COLS_A, SLICE_A, MN_B, ROWS_B, COLS_B, SLICE_B) in [
            pair_nt = (1, 2, 2, 4, 1, 256, 4, false, 128, 32, 128, false, 256, 32, 128),
        ];
    ))]
    pub fn plain<
        AB: Multiply<AB, SUM>,
        SUM: StoreAs<C>,
        C: TileElement,
        const K: u32,
        const COLS: u32,
        const WIDE: u32,
        const TALL: u32,
        const WARPGROUPS: u32,
        const OUTS: u32,
        const LEFT: u32,
        const N: u32,
        const STAGES: u32,
        const MN_A: bool,
        const ROWS_A: u32,
        const COLS_A: u32,
        const SLICE_A: u32,
        const MN_B: bool,
        const ROWS_B: u32,
        const COLS_B: u32,
        const SLICE_B: u32,
    >(
        a: TensorMap<Tile<AB, Shape3<1, SLICE_A, COLS_A>, Swizzle128>>,
        b: TensorMap<Tile<AB, Shape3<1, SLICE_B, COLS_B>, Swizzle128>>,
        c: TensorMap<Tile<C, Shape3<1, 64, COLS>, Swizzle128>>,
        m: u32,
        n: u32,
        k: u32,
        stagger: u32,
        group: u32,
        units: u32,
        whole: u32,
    ) where
        Transposed<Tile<AB, Shape2<64, K>, Swizzle128>, MN_A>: Left<64, K, Element = AB>,
        Transposed<Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>, MN_B>: Right<N, K, Element = AB>,
    {
        let ring: Pipeline<
            (
                Tile<AB, Shape3<1, ROWS_A, COLS_A>, Swizzle128>,
                Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>,
            ),
            STAGES,
        > = shared();
        let outs: Stages<Tile<C, Shape3<1, 64, COLS>, Swizzle128>, OUTS> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(WIDE * TALL * WARPGROUPS * 4); // one arrival per multiplying warp of all blocks
            fence_barrier_init();
        }
        sync_cluster();
        grid_dependency_launch(); // the next kernel may begin to prepare
        grid_dependency_wait();
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for unit in (seat::<WIDE>(group)..units).step_by((grid_dim().x / WIDE) as usize) {
                    let at = place::<WIDE, TALL, WARPGROUPS, N>(unit, whole, m, n, group);
                    for i in 0..k.div_ceil(K) {
                        let step = wrapped(cluster_idx().x * stagger % k.div_ceil(K) + i, k.div_ceil(K));
                        let slot = producer.acquire();
                        let of_a = if MN_A { [at[0], step * K, at[1]] } else { [at[0], at[1], step * K] };
                        let of_b = if MN_B { [at[0], step * K, at[2]] } else { [at[0], at[2], step * K] };
                        a.load_sliced(slot.0, of_a, slot.barrier(), ClusterAxis::X);
                        b.load_sliced(slot.1, of_b, slot.barrier(), ClusterAxis::Y);
                    }
                }
                producer.drain();
            }
        } else {
            setmaxnreg_inc::<232>();
            let me = warpgroup_idx() - 1;
            let part = if MN_A { [me, 0] } else { [0, me] }; // its rows of A; a panel if by columns
            let mut consumer = ring.consumer();
            for unit in (seat::<WIDE>(group)..units).step_by((grid_dim().x / WIDE) as usize) {
                let at = place::<WIDE, TALL, WARPGROUPS, N>(unit, whole, m, n, group);
                if me == at[3] {
                    for _ in 0..k.div_ceil(K) {
                        let slot = consumer.wait();
                        sync_warp(); // all lanes have waited, as a matmul would ensure
                        if elect_one() {
                            slot.release_cluster();
                        }
                    }
                    continue;
                }
                let mut sum = Accumulator::<SUM, 64, N>::zero();
                let slot = consumer.wait();
                let mine = slot.0.batch(0).columns::<K>(part[0]).band::<64>(part[1]);
                let mut flight = sum.mma(mine.t_if::<MN_A>(), slot.1.t_if::<MN_B>(), slot);
                for i in 1..k.div_ceil(K) {
                    let slot = consumer.wait();
                    let mine = slot.0.batch(0).columns::<K>(part[0]).band::<64>(part[1]);
                    let done = flight.mma(mine.t_if::<MN_A>(), slot.1.t_if::<MN_B>(), slot);
                    if elect_one() {
                        done.release_cluster();
                    }
                    go_ahead::<N, STAGES>(me, at[3], i, k.div_ceil(K));
                }
                let last = flight.wait();
                if elect_one() {
                    last.release_cluster();
                }

                for j in unroll(0..N / COLS) {
                    let out = outs[me * (LEFT + 1) + j % (LEFT + 1)];
                    bulk_wait_group_read::<LEFT>(); // the last store from this buffer has read it
                    sync_warpgroup();
                    sum.columns::<COLS>(j).store(out);
                    fence_proxy_async();
                    sync_warpgroup();
                    if thread_idx().x % 128 == 0 {
                        c.store([at[0], at[1] + me * 64, at[2] + j * COLS], out);
                        bulk_commit_group();
                    }
                }
            }
            bulk_wait_group_read::<0>();
        }
    }
}
