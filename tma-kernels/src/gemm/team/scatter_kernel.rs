//! The kernel that multiplies, and sums the results of all ranks of a team for the rank that keeps
//! them.

use tma_runtime::tma_module;

/// C = sum over all ranks of A · B, of which each rank keeps a part of the rows.
///
/// A rank computes the parts of its peers first, and its own last. What it computes for a peer it
/// stores to an inbox there. For its own part it waits for those of its peers, and adds them.
///
/// No rank waits for ever. A rank waits only in its own part, of which every cluster takes tiles
/// after those of peers: it has set the flags of these before. Peers do the same without having
/// waited, as long as all of their blocks run.
#[tma_module]
pub mod scattered {
    use tma_runtime::prelude::*;

    use crate::gemm::device::consumer::multiply_steps;
    use crate::gemm::device::epilogue::store_rows;
    use crate::gemm::device::producer::Operand;
    use crate::gemm::device::schedule::{TileCoords, ring_stages, tile_coords, tile_order};
    use crate::gemm::team::device::flags::wait_for_peer;
    use crate::gemm::team::device::producer::load_tiles;

    /// Sums that a warpgroup stores at a time, of 64 × 64 elements in any order: a warpgroup of
    /// another rank reads them as it has stored them.
    pub type Sums<AB> = Tile<AB, Shape3<1, 64, 64>, Swizzle128>;

    /// The elements of [`Sums`].
    const SUMS: u32 = 64 * 64;
    /// Those of a thread.
    const SUMS_OF_THREAD: usize = 32;
    /// Those of a thread that are next to each other in memory: 16 bytes.
    const VEC: usize = 8;

    /// Stores the sums of a warpgroup to the inbox of a peer, from its [`Sums`] number `first` on.
    #[tma_device]
    fn send_sums<AB: TileElement + Number, const BN: u32, const BUFFERS: u32>(
        sum: &Accumulator<f32, 64, BN>,
        inbox: TensorMap<Sums<AB>>,
        buffers: Stages<Sums<AB>, BUFFERS>,
        warpgroup: u32,
        first: u32,
    ) {
        for j in unroll(0..BN / 64) {
            let buffer = buffers[warpgroup * 2 + j % 2];
            bulk_wait_group_read::<1>(); // the last store from this buffer has read it
            sync_warpgroup();
            for i in unroll((0..SUMS_OF_THREAD).step_by(VEC)) {
                let mut part = [cast::<AB>(0.0f32); VEC];
                for e in unroll(0..VEC) {
                    part[e] = cast::<AB>(sum[j as usize * SUMS_OF_THREAD + i + e]);
                }
                let place = (i / VEC) as u32 * 128 + thread_idx().x % 128;
                buffer.set_vec([0, place / 8, place % 8 * VEC as u32], part);
            }
            fence_proxy_async();
            sync_warpgroup();
            if thread_idx().x % 128 == 0 {
                inbox.store([first + j, 0, 0], buffer);
                bulk_commit_group();
            }
        }
    }

    /// Adds the sums that a peer has stored to this rank's inbox, from its [`Sums`] number `first` on.
    #[tma_device]
    fn add_sums<AB: TileElement + Number, const BN: u32>(
        sum: &mut Accumulator<f32, 64, BN>,
        sums: Global<AB>,
        first: u32,
    ) {
        for j in unroll(0..BN / 64) {
            let start = (first + j) as u64 * SUMS as u64 + (thread_idx().x % 128 * VEC as u32) as u64;
            // All loads are issued before the first one is waited for.
            let mut of_peer = [0.0f32; SUMS_OF_THREAD];
            for i in unroll((0..SUMS_OF_THREAD).step_by(VEC)) {
                let part = sums.get_vec::<VEC>(start + i as u64 * 128);
                for e in unroll(0..VEC) {
                    of_peer[i + e] = cast::<f32>(part[e]);
                }
            }
            for i in unroll(0..SUMS_OF_THREAD) {
                sum[j as usize * SUMS_OF_THREAD + i] += of_peer[i];
            }
        }
    }

    /// A warpgroup's part of a tile that it has stored to a peer's inbox.
    #[derive(Clone, Copy)]
    struct Sent {
        /// The peer, or this rank if there is none.
        to: u32,
        /// The part's flag there.
        flag: u32,
    }

    /// Sets the flag of the part that this thread has stored last, if there is one, when the store
    /// has ended.
    #[tma_device]
    fn set_flag(sent: Sent, flags: Peers<Global<u32>>, launch: u32) {
        if sent.to != rank() {
            bulk_wait_group::<0>();
            flags.of(sent.to).store(sent.flag, launch, Order::Release, Scope::System);
        }
    }

    /// Computes the sum over all ranks of A · B, with `n` columns and `k` products of each rank, for
    /// an A with a part of `m` rows for each rank. A is a batch with a matrix for each part. C is the
    /// part that this rank keeps.
    ///
    /// Clusters take every tile as in [`dense`](crate::gemm::dense::kernels). The first matrix of the
    /// batch is that of the next rank, and this rank's is the last.
    ///
    /// `launch` is the number of this launch. From `first_flag` on, `flags` has one for each
    /// warpgroup's part of a tile from each peer: the number of the launch that set it last. From
    /// [`Sums`] number `first_sums` on, the inboxes have the sums of as many parts. `inboxes` stores
    /// them, and `sums` is the same memory, to be read.
    #[tma_kernel(threads = 128 * (1 + WARPGROUPS), cluster = [CLUSTER_N, CLUSTER_M], unchecked, instances(
        let BK = 128 / size_of::<AB>() as u32, // a row of 128 bytes
        let BM = 64 * WARPGROUPS,
        let ROWS_B = if MN_B { BK } else { BN },
        let COLUMNS_B = if MN_B { BN } else { BK },
        let SLICE_A = BM / CLUSTER_N,
        let SLICE_B = ROWS_B / CLUSTER_M,
        let BUFFERS = 2 * WARPGROUPS,
        let STAGES = ring_stages(BM, BN, BUFFERS);

        AB in [bf16, f16],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [
            t128x256_cluster2x1 = (2, 1, 2, 256),
            t128x128_cluster2x1 = (2, 1, 2, 128),
            t64x128 = (1, 1, 1, 128),
        ],
        MN_B in [nt = false, nn = true];
    ))]
    pub fn multiply_scatter<
        AB: Multiply<AB, f32> + Number,
        const BK: u32,
        const CLUSTER_M: u32,
        const CLUSTER_N: u32,
        const WARPGROUPS: u32,
        const BM: u32,
        const BN: u32,
        const MN_B: bool,
        const SLICE_A: u32,
        const ROWS_B: u32,
        const COLUMNS_B: u32,
        const SLICE_B: u32,
        const BUFFERS: u32,
        const STAGES: u32,
    >(
        a: TensorMap<Operand<AB, SLICE_A, BK>>,
        b: TensorMap<Operand<AB, SLICE_B, COLUMNS_B>>,
        c: TensorMap<Sums<AB>>,
        inboxes: Peers<TensorMap<Sums<AB>>>,
        sums: Peers<Global<AB>>,
        flags: Peers<Global<u32>>,
        m: u32,
        n: u32,
        k: u32,
        band: u32,
        tiles: u32,
        first_flag: u32,
        first_sums: u32,
        launch: u32,
    ) where
        f32: StoreAs<AB>,
        Transposed<Tile<AB, Shape2<64, BK>, Swizzle128>, false>: Left<64, BK, Element = AB>,
        Transposed<Operand<AB, ROWS_B, COLUMNS_B>, MN_B>: Right<BN, BK, Element = AB>,
    {
        let ring: Pipeline<(Operand<AB, BM, BK>, Operand<AB, ROWS_B, COLUMNS_B>), STAGES> = shared();
        let buffers: Stages<Sums<AB>, BUFFERS> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(CLUSTER_N * CLUSTER_M * WARPGROUPS * 4); // one arrival per multiplying warp of all blocks
            fence_barrier_init();
        }
        sync_cluster();

        let order = tile_order::<CLUSTER_M, CLUSTER_N, BM, BN>(m, n, band);
        let steps = k.div_ceil(BK);
        let clusters = (grid_dim().x / CLUSTER_N) as usize; // in one row, CLUSTER_M blocks high
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for tile in (cluster_idx().x..tiles).step_by(clusters) {
                    let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, tile);
                    let at = TileCoords { batch: (rank() + 1 + at.batch) % ranks(), ..at };
                    load_tiles::<_, BK, MN_B, _, _, _, _, _, _>(&mut producer, a, b, at, steps);
                }
                producer.drain(); // until then, the other blocks arrive at this block's barriers
            }
        } else {
            setmaxnreg_inc::<232>();
            let warpgroup = warpgroup_idx() - 1;
            let leader = thread_idx().x % 128 == 0;
            let tiles_of_part = order.tiles_down * order.tiles_across;
            let warpgroups = CLUSTER_M * CLUSTER_N * WARPGROUPS;
            let mut consumer = ring.consumer();
            let mut sent = Sent { to: rank(), flag: 0 };
            for tile in (cluster_idx().x..tiles).step_by(clusters) {
                let mut sum = Accumulator::<f32, 64, BN>::zero();
                // The last generic: slots are released in all blocks of the cluster.
                multiply_steps::<_, _, _, BK, false, MN_B, _, _, _, _, _, true>(
                    &mut sum,
                    &mut consumer,
                    warpgroup,
                    steps,
                    true,
                );
                if leader {
                    set_flag(sent, flags, launch); // while this tile was multiplied, the store ended
                }
                let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, tile);
                let to = (rank() + 1 + at.batch) % ranks();
                let part = tile % tiles_of_part * warpgroups + cluster_rank() * WARPGROUPS + warpgroup;
                let parts = tiles_of_part * warpgroups;
                if to != rank() {
                    // The place of this rank among the peers of that one.
                    let place = if rank() < to { rank() } else { rank() - 1 };
                    let i = place * parts + part;
                    let first = first_sums + i * (BN / 64);
                    send_sums::<AB, BN, BUFFERS>(&sum, inboxes.of(to), buffers, warpgroup, first);
                    sent = Sent { to, flag: first_flag + i };
                } else {
                    sent = Sent { to, flag: 0 };
                    for place in 0..ranks() - 1 {
                        let i = place * parts + part;
                        if leader {
                            wait_for_peer(flags, first_flag + i, launch);
                        }
                        sync_warpgroup(); // all threads see what the leader has waited for
                        add_sums::<AB, BN>(&mut sum, sums.own(), first_sums + i * (BN / 64));
                    }
                    let at = TileCoords { batch: 0, row: at.row + warpgroup * 64, column: at.column };
                    store_rows::<f32, AB, Swizzle128, BN, 64, BUFFERS, 1>(&sum, c, buffers, warpgroup, at);
                }
            }
            if leader {
                set_flag(sent, flags, launch);
            }
            bulk_wait_group_read::<0>(); // returns at once in threads that stored nothing
        }
    }
}
