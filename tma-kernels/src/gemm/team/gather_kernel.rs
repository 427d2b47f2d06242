//! The kernel that multiplies rows of A while it gathers them from the ranks of a team.

use tma_runtime::tma_module;

/// C = A · B on each rank, with all rows of A and the rank's own B. Each rank has a part of the rows.
///
/// The blocks are those of [`dense`](crate::gemm::dense::kernels), with one more warp at work: a
/// thread of it copies pieces of the peers' rows to the gathered A of this rank. The blocks take the
/// pieces in turn, in the order in which their tiles of C need them: first those of the next rank.
/// Tiles of C begin with this rank's rows, which are there from the start.
#[tma_module]
pub mod gathered {
    use tma_runtime::prelude::*;

    use crate::gemm::device::consumer::multiply_steps;
    use crate::gemm::device::epilogue::store_rows;
    use crate::gemm::device::producer::Operand;
    use crate::gemm::device::schedule::{TileCoords, ring_stages, tile_coords, tile_order};
    use crate::gemm::team::device::flags::{is_before, wait_for_peer};
    use crate::gemm::team::device::producer::load_tiles;

    /// Rows of a piece, which is copied as a whole.
    const PIECE_ROWS: u32 = 8;
    /// Columns of a piece: 512 bytes of a row, which is the widest box of elements of 16 bits (CUDA
    /// driver API, `cuTensorMapEncodeTiled`: `boxDim` is at most 256).
    const PIECE_COLUMNS: u32 = 256;
    /// Pieces of a block that are copied at the same time. Less one that is being stored, those of
    /// 132 multiprocessors are 1.6 MB: what a link of 450 GB/s moves in 3.6 microseconds.
    const PIECES: u32 = 4;
    /// Rows of a chunk, whose pieces are counted together: those of a tile of C at most.
    const CHUNK_ROWS: u32 = 128;
    /// The first flag that a peer sets when it has read this rank's part. The flags before it say
    /// that a peer's part may be read. There is one of each kind for each rank.
    const READ_FLAGS: u32 = 8;
    /// The first flag of a chunk.
    const CHUNK_FLAGS: u32 = 2 * READ_FLAGS;

    /// A piece of A.
    pub type Piece<AB> = Tile<AB, Shape3<1, PIECE_ROWS, PIECE_COLUMNS>>;

    /// The extents of a part, and the launch.
    #[derive(Clone, Copy)]
    struct PartExtents {
        /// The rows.
        m: u32,
        /// The columns.
        k: u32,
        /// The number of this launch.
        launch: u32,
    }

    /// The position of a piece.
    #[derive(Clone, Copy)]
    struct PieceCoords {
        /// The rank that has the rows.
        owner: u32,
        /// The first row in the part of that rank.
        row: u32,
        /// The first column.
        column: u32,
    }

    /// Returns the position of the piece number `piece`. Parts come in the order of ranks after this
    /// one, which is the last.
    #[tma_device]
    fn piece_coords(piece: u32, extents: PartExtents) -> PieceCoords {
        let across = extents.k.div_ceil(PIECE_COLUMNS);
        let of_part = extents.m.div_ceil(PIECE_ROWS) * across;
        let in_part = piece % of_part;
        PieceCoords {
            owner: (rank() + 1 + piece / of_part) % ranks(),
            row: in_part / across * PIECE_ROWS,
            column: in_part % across * PIECE_COLUMNS,
        }
    }

    /// Adds 1 to a counter. Returns whether it was the last of `all`, after which the counter is 0
    /// again. The last one sees what the others did before.
    #[tma_device]
    fn is_last(counters: Global<u32>, i: u32, all: u32) -> bool {
        let last = counters.fetch_add(i, 1, Order::AcqRel, Scope::Device) + 1 == all;
        if last {
            counters.store(i, 0, Order::Relaxed, Scope::Device);
        }
        last
    }

    /// Counts a piece that has been copied. The last one of a chunk sets the chunk's flag, and the
    /// last chunk of a peer tells it that its part has been read. The counters are the second half
    /// of the flags: one for each chunk, and one for the chunks of each rank.
    #[tma_device]
    fn count_piece(at: PieceCoords, flags: Peers<Global<u32>>, extents: PartExtents) {
        let PartExtents { m, k, launch } = extents;
        let own = flags.own();
        let counters = (own.len() / 2) as u32;
        let chunks = m.div_ceil(CHUNK_ROWS);
        let chunk = at.owner * chunks + at.row / CHUNK_ROWS;
        let rows = min(m - at.row / CHUNK_ROWS * CHUNK_ROWS, CHUNK_ROWS);
        if is_last(own, counters + chunk, rows.div_ceil(PIECE_ROWS) * k.div_ceil(PIECE_COLUMNS)) {
            own.store(CHUNK_FLAGS + chunk, launch, Order::Release, Scope::Device);
            if at.owner != rank() && is_last(own, counters + ranks() * chunks + at.owner, chunks) {
                flags.of(at.owner).store(READ_FLAGS + rank(), launch, Order::Release, Scope::System);
            }
        }
    }

    /// Starts loading a piece.
    #[tma_device]
    fn load_piece<AB: TileElement>(
        parts: Peers<TensorMap<Piece<AB>>>,
        at: PieceCoords,
        piece: Piece<AB>,
        filled: Barrier,
    ) {
        filled.arrive_expect_tx(piece.bytes());
        parts.of(at.owner).load(piece, [0, at.row, at.column], filled);
    }

    /// Copies this block's pieces of all parts to the gathered A.
    ///
    /// Peers wait for the flag that this rank's part may be read, which is so when this kernel runs:
    /// launches before it have ended. At the end this rank waits until they have read it, so that
    /// launches after it may overwrite it.
    #[tma_device]
    fn copy_pieces<AB: TileElement>(
        parts: Peers<TensorMap<Piece<AB>>>,
        gathered: TensorMap<Piece<AB>>,
        pieces: Stages<Piece<AB>, PIECES>,
        filled: Stages<Barrier, PIECES>,
        flags: Peers<Global<u32>>,
        extents: PartExtents,
    ) {
        let PartExtents { m, k, launch } = extents;
        let block = block_idx().y * grid_dim().x + block_idx().x;
        let blocks = grid_dim().x * grid_dim().y;
        let all = m.div_ceil(PIECE_ROWS) * k.div_ceil(PIECE_COLUMNS) * ranks();
        let own = if block < all { (all - block).div_ceil(blocks) } else { 0 };
        if block == 0 {
            for i in 1..ranks() {
                flags.of((rank() + i) % ranks()).store(rank(), launch, Order::Release, Scope::System);
            }
        }
        for i in 1..ranks() {
            wait_for_peer(flags, (rank() + i) % ranks(), launch);
        }
        fence_proxy_async_global(); // copies read what threads of peers may have written
        for i in 0..min(own, PIECES) {
            load_piece(parts, piece_coords(block + i * blocks, extents), pieces[i], filled[i]);
        }
        for i in 0..own + 1 {
            if i < own {
                let at = piece_coords(block + i * blocks, extents);
                filled[i % PIECES].wait(i / PIECES % 2);
                gathered.store([at.owner, at.row, at.column], pieces[i % PIECES]);
            }
            bulk_commit_group();
            if i > 0 {
                bulk_wait_group::<1>(); // the store of the piece before has ended
                count_piece(piece_coords(block + (i - 1) * blocks, extents), flags, extents);
                let next = i - 1 + PIECES;
                if next < own {
                    let at = piece_coords(block + next * blocks, extents);
                    load_piece(parts, at, pieces[next % PIECES], filled[next % PIECES]);
                }
            }
        }
        if block == 0 {
            for i in 1..ranks() {
                wait_for_peer(flags, READ_FLAGS + (rank() + i) % ranks(), launch);
            }
        }
    }

    /// Waits until the rows of a tile are in the gathered A.
    #[tma_device]
    fn wait_for_rows(flags: Peers<Global<u32>>, at: TileCoords, extents: PartExtents) {
        if at.row < extents.m {
            let chunk = at.batch * extents.m.div_ceil(CHUNK_ROWS) + at.row / CHUNK_ROWS;
            let flag = CHUNK_FLAGS + chunk;
            while is_before(flags.own().load(flag, Order::Acquire, Scope::Device), extents.launch) {}
            fence_proxy_async_global(); // copies load what copies of other threads have stored
        }
    }

    /// Computes C = A · B of `n` columns, which sum `k` products each, for an A with a part of `m`
    /// rows on each rank. A and C are batches with a matrix for each part. `own` and `parts` are this
    /// rank's part and that of each rank. `a` and `copies` are the gathered A, to load and to store.
    ///
    /// Clusters take every tile of C as in [`dense`](crate::gemm::dense::kernels). The first matrix
    /// of the batch is that of this rank, and the others follow in the order of ranks.
    ///
    /// `launch` is the number of this launch. The first half of `flags` has two flags for each of 8
    /// ranks and one for each chunk of rows: the number of the launch that set it last. The second
    /// half is zero.
    #[tma_kernel(threads = 128 * (1 + WARPGROUPS), cluster = [CLUSTER_N, CLUSTER_M], unchecked, instances(
        let BK = 128 / size_of::<AB>() as u32, // a row of 128 bytes
        let EPILOGUE_COLUMNS = 128 / size_of::<AB>() as u32,
        let BM = 64 * WARPGROUPS,
        let ROWS_B = if MN_B { BK } else { BN },
        let COLUMNS_B = if MN_B { BN } else { BK },
        let SLICE_A = BM / CLUSTER_N,
        let SLICE_B = ROWS_B / CLUSTER_M,
        // With 256 columns, the pieces take the memory of the second buffer of each warpgroup.
        let IN_FLIGHT = if BN < 256 { 1 } else { 0 },
        let BUFFERS = WARPGROUPS * (IN_FLIGHT + 1),
        let STAGES = ring_stages(BM, BN, BUFFERS + 2); // the pieces are as large as two buffers

        AB in [bf16, f16],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [
            t128x256_cluster2x1 = (2, 1, 2, 256),
            t128x128_cluster2x1 = (2, 1, 2, 128),
            t64x128 = (1, 1, 1, 128),
        ],
        MN_B in [nt = false, nn = true];
    ))]
    pub fn gather_multiply<
        AB: Multiply<AB, f32>,
        const BK: u32,
        const EPILOGUE_COLUMNS: u32,
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
        const IN_FLIGHT: u32,
        const BUFFERS: u32,
        const STAGES: u32,
    >(
        own: TensorMap<Operand<AB, SLICE_A, BK>>,
        a: TensorMap<Operand<AB, SLICE_A, BK>>,
        b: TensorMap<Operand<AB, SLICE_B, COLUMNS_B>>,
        c: TensorMap<Tile<AB, Shape3<1, 64, EPILOGUE_COLUMNS>, Swizzle128>>,
        parts: Peers<TensorMap<Piece<AB>>>,
        copies: TensorMap<Piece<AB>>,
        flags: Peers<Global<u32>>,
        m: u32,
        n: u32,
        k: u32,
        band: u32,
        tiles: u32,
        launch: u32,
    ) where
        f32: StoreAs<AB>,
        Transposed<Tile<AB, Shape2<64, BK>, Swizzle128>, false>: Left<64, BK, Element = AB>,
        Transposed<Operand<AB, ROWS_B, COLUMNS_B>, MN_B>: Right<BN, BK, Element = AB>,
    {
        let ring: Pipeline<(Operand<AB, BM, BK>, Operand<AB, ROWS_B, COLUMNS_B>), STAGES> = shared();
        let buffers: Stages<Tile<AB, Shape3<1, 64, EPILOGUE_COLUMNS>, Swizzle128>, BUFFERS> = shared();
        let pieces: Stages<Piece<AB>, PIECES> = shared();
        let filled: Stages<Barrier, PIECES> = shared();
        if thread_idx().x == 0 {
            own.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(CLUSTER_N * CLUSTER_M * WARPGROUPS * 4); // one arrival per multiplying warp of all blocks
            for i in 0..PIECES {
                filled[i].init(1);
            }
            fence_barrier_init();
        }
        sync_cluster();

        let order = tile_order::<CLUSTER_M, CLUSTER_N, BM, BN>(m, n, band);
        let steps = k.div_ceil(BK);
        let extents = PartExtents { m, k, launch };
        let clusters = (grid_dim().x / CLUSTER_N) as usize; // in one row, CLUSTER_M blocks high
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for tile in (cluster_idx().x..tiles).step_by(clusters) {
                    let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, tile);
                    if at.batch == 0 {
                        load_tiles::<_, BK, MN_B, _, _, _, _, _, _>(&mut producer, own, b, at, steps);
                    } else {
                        let at = TileCoords { batch: (rank() + at.batch) % ranks(), ..at };
                        wait_for_rows(flags, at, extents);
                        load_tiles::<_, BK, MN_B, _, _, _, _, _, _>(&mut producer, a, b, at, steps);
                    }
                }
                producer.drain(); // until then, the other blocks arrive at this block's barriers
            } else if warp_idx() == 1 && elect_one() {
                copy_pieces(parts, copies, pieces, filled, flags, extents);
            }
        } else {
            setmaxnreg_inc::<232>();
            let warpgroup = warpgroup_idx() - 1;
            let mut consumer = ring.consumer();
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
                let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, tile);
                let owner = (rank() + at.batch) % ranks();
                let at = TileCoords { batch: owner, row: at.row + warpgroup * 64, column: at.column };
                store_rows::<f32, AB, Swizzle128, BN, EPILOGUE_COLUMNS, BUFFERS, IN_FLIGHT>(
                    &sum, c, buffers, warpgroup, at,
                );
            }
            bulk_wait_group_read::<0>(); // returns at once in threads that stored nothing
        }
    }
}
