//! The kernel of GEMMs with options: `plain` with more operations between the sums and C.

use tma_runtime::tma_module;

/// `C = finish(activation(alpha · A · B + beta · C + residual + bias))`, with sums that may be
/// split among clusters. Tiles are as in [`dense`](super::dense::kernels), but not all of them, and
/// one more.
///
/// Other packages derive modules from this one, with other functions between the sums and C.
#[tma_module]
pub mod with_options {
    use tma_runtime::prelude::*;

    use crate::gemm::device::activation::{gate, gated, relu};
    use crate::gemm::device::consumer::multiply_steps;
    use crate::gemm::device::producer::Operand;
    use crate::gemm::device::schedule::{operand_coords, ring_stages, tile_coords, tile_order};
    use crate::gemm::shared_sums::split::{Part, Split, TileSteps, steps_of, sum_parts, take_tile};

    /// Applies the activation to `EPILOGUE_COLUMNS` columns, a thread's elements from `first` on.
    #[tma_device]
    fn activate<const BN: u32, const EPILOGUE_COLUMNS: u32>(
        sum: &mut Accumulator<f32, 64, BN>,
        first: usize,
        activation: u32,
    ) {
        if activation == 1 {
            for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                sum[first + e] = relu(sum[first + e]);
            }
        } else if activation > 1 {
            let gate = gate(activation);
            for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                sum[first + e] = gated(sum[first + e], gate);
            }
        }
    }

    /// Reads the biases of a warpgroup's columns, with zeros past the last one.
    #[tma_device]
    fn read_biases<C: TileElement + Number, const BN: u32>(
        bias: Global<C>,
        biases: SharedArray<f32, BN>,
        column: u32,
        n: u32,
    ) {
        for j in (thread_idx().x % 128..BN).step_by(128) {
            biases.set(j, if column + j < n { cast(bias.get(column + j)) } else { 0.0 });
        }
        sync_warpgroup();
    }

    /// The 64 rows of C that a warpgroup stores from one buffer.
    #[derive(Clone, Copy)]
    struct Piece {
        /// The number of the GEMM in the batch.
        batch: u32,
        /// The first row.
        row: u32,
        /// The first column.
        column: u32,
        /// The rows of C.
        m: u32,
        /// The columns of C.
        n: u32,
        /// The index of the first row in the memory that threads access.
        start: u64,
        /// Elements from one row to the next in that memory.
        stride: u64,
    }

    /// Loads a piece of C into `buffer`, by threads. Elements beyond the edges of C are zero.
    #[tma_device]
    fn load_by_threads<C: TileElement + Number, const COLUMNS: u32>(
        rows: Global<C>,
        piece: Piece,
        buffer: Tile<C, Shape3<1, 64, COLUMNS>, Swizzle128>,
    ) {
        sync_warpgroup();
        for i in (thread_idx().x % 128 / 32..64).step_by(4) {
            for x in (lane_idx()..COLUMNS).step_by(32) {
                let mut of_c = cast::<C>(0.0f32);
                if piece.row + i < piece.m && piece.column + x < piece.n {
                    of_c = rows.get(piece.start + i as u64 * piece.stride + (piece.column + x) as u64);
                }
                buffer.set([0, i, x], of_c);
            }
        }
        sync_warpgroup();
    }

    /// Stores a piece of C from `buffer`, by threads.
    #[tma_device]
    fn store_by_threads<C: TileElement, const COLUMNS: u32>(
        rows: Global<C>,
        piece: Piece,
        buffer: Tile<C, Shape3<1, 64, COLUMNS>, Swizzle128>,
    ) {
        for i in (thread_idx().x % 128 / 32..64).step_by(4) {
            for x in (lane_idx()..COLUMNS).step_by(32) {
                if piece.row + i < piece.m && piece.column + x < piece.n {
                    let at = piece.start + i as u64 * piece.stride + (piece.column + x) as u64;
                    rows.set(at, buffer.get([0, i, x]));
                }
            }
        }
    }

    /// Loads a piece of the residual into `buffer`: 16 bytes per thread, eight threads per row,
    /// with zeros past an edge. Rows may begin anywhere, unless `BN` is 256.
    #[tma_device]
    fn load_residual<C: TileElement + Number, const BN: u32, const COLUMNS: u32, const VEC: usize>(
        residual: Global<C>,
        piece: Piece,
        buffer: Tile<C, Shape3<1, 64, COLUMNS>, Swizzle128>,
    ) {
        for e in unroll(0..4u32) {
            let place = e * 128 + thread_idx().x % 128;
            let to = [0, place / 8, place % 8 * VEC as u32];
            let mut part = [cast::<C>(0.0f32); VEC];
            let left = piece.column + to[2];
            if piece.row + to[1] < piece.m && left < piece.n {
                let line = piece.batch as u64 * piece.m as u64 + (piece.row + to[1]) as u64;
                let from = line * piece.n as u64 + left as u64;
                if BN == 256 || piece.n % VEC as u32 == 0 {
                    part = residual.get_vec::<VEC>(from);
                } else {
                    for x in unroll(0..VEC) {
                        if left + (x as u32) < piece.n {
                            part[x] = residual.get(from + x as u64);
                        }
                    }
                }
            }
            buffer.set_vec(to, part);
        }
        sync_warpgroup();
    }

    /// Returns the matrix of A for GEMM number `batch`.
    #[tma_device(open)]
    fn place_a(batch: u32) -> u32 {
        batch
    }

    /// Returns the matrix of B for GEMM number `batch`.
    #[tma_device(open)]
    fn place_b(batch: u32) -> u32 {
        batch
    }

    /// Returns the matrix of C for GEMM number `batch`.
    #[tma_device(open)]
    fn place_c(batch: u32) -> u32 {
        batch
    }

    /// Combines an element x of alpha · A · B + beta · C with that of the residual. Derived modules
    /// may replace this, the two functions that follow, and the three before: `docs/gemm.md`,
    /// "Epilogues of your own".
    #[tma_device(open)]
    fn with_residual(x: f32, residual: f32) -> f32 {
        x + residual
    }

    /// Adds the bias of the column to an element, which may already include the residual.
    #[tma_device(open)]
    fn with_bias(x: f32, bias: f32) -> f32 {
        x + bias
    }

    /// Computes an element of C at `_at`: batch, row and column, which are never out of bounds.
    #[tma_device(open)]
    fn finish(x: f32, _at: [u32; 3]) -> f32 {
        x
    }

    /// `plain` with sums that may be split among clusters (`Split`), and that are stored to C as
    /// `activation(alpha · sum + beta · C + residual + bias)`.
    ///
    /// The copy engine loads and stores C up to column `edge`. Beyond it threads do so, in `rows`:
    /// C with rows of `row_stride` and matrices of `matrix_stride` elements.
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
        let IN_FLIGHT = if BN % 128 == 0 { 1 } else { 0 },
        let BUFFERS = WARPGROUPS * (IN_FLIGHT + 1),
        let STAGES = ring_stages(BM, BN, BUFFERS),
        let VEC = 16 / size_of::<C>();

        (AB, C) in [bf16 = (bf16, bf16), f16 = (f16, f16), bf16_f32 = (bf16, f32), f16_f32 = (f16, f32)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256), t128x128_cluster2x1 = (2, 1, 2, 128), t64x64 = (1, 1, 1, 64)],
        (MN_A, MN_B) in [nt = (false, false), nn = (false, true)];

        (AB, C) in [bf16 = (bf16, bf16), f16 = (f16, f16)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256)],
        (MN_A, MN_B) in [tt = (true, false), tn = (true, true)];

        // ptxas spills sums of the other layout.
        (AB, C) in [bf16_f32 = (bf16, f32), f16_f32 = (f16, f32)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256)],
        (MN_A, MN_B) in [tn = (true, true)];

        (AB, C) in [bf16 = (bf16, bf16), f16 = (f16, f16)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x128_cluster1x2 = (1, 2, 2, 128), t128x64_cluster1x2 = (1, 2, 2, 64), t64x128 = (1, 1, 1, 128)],
        (MN_A, MN_B) in [nt = (false, false), nn = (false, true)];

        (AB, C) in [
            e4m3 = (e4m3, bf16), e5m2 = (e5m2, bf16), e4m3_f32 = (e4m3, f32), e5m2_f32 = (e5m2, f32),
            tf32 = (tf32, f32),
        ],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256), t128x128_cluster2x1 = (2, 1, 2, 128), t64x64 = (1, 1, 1, 64)],
        (MN_A, MN_B) in [nt = (false, false)];
    ))]
    pub fn full<
        AB,
        C,
        const BK: u32,
        const EPILOGUE_COLUMNS: u32,
        const VEC: usize,
        const CLUSTER_N: u32,
        const CLUSTER_M: u32,
        const WARPGROUPS: u32,
        const BM: u32,
        const BUFFERS: u32,
        const IN_FLIGHT: u32,
        const BN: u32,
        const STAGES: u32,
        const MN_A: bool,
        const ROWS_A: u32,
        const COLUMNS_A: u32,
        const SLICE_A: u32,
        const MN_B: bool,
        const ROWS_B: u32,
        const COLUMNS_B: u32,
        const SLICE_B: u32,
    >(
        a: TensorMap<Operand<AB, SLICE_A, COLUMNS_A>>,
        b: TensorMap<Operand<AB, SLICE_B, COLUMNS_B>>,
        c: TensorMap<Tile<C, Shape3<1, 64, EPILOGUE_COLUMNS>, Swizzle128>>,
        m: u32,
        n: u32,
        k: u32,
        k_shift: u32,
        band: u32,
        whole: u32,
        sharing_units: u32,
        unit_steps: u32,
        shared_steps: u32,
        tile_stride: u32,
        alpha: f32,
        beta: f32,
        residual: Global<C>,
        bias: Global<C>,
        activation: u32,
        partials: Global<f32>,
        tickets: Global<u32>,
        rows: Global<C>,
        row_stride: u64,
        matrix_stride: u64,
        edge: u32,
    ) where
        AB: Multiply<AB, f32>,
        C: TileElement + Number,
        f32: StoreAs<C>,
        Transposed<Tile<AB, Shape2<64, BK>, Swizzle128>, MN_A>: Left<64, BK, Element = AB>,
        Transposed<Operand<AB, ROWS_B, COLUMNS_B>, MN_B>: Right<BN, BK, Element = AB>,
    {
        let ring: Pipeline<(Operand<AB, ROWS_A, COLUMNS_A>, Operand<AB, ROWS_B, COLUMNS_B>), STAGES> =
            shared();
        let buffers: Stages<Tile<C, Shape3<1, 64, EPILOGUE_COLUMNS>, Swizzle128>, BUFFERS> = shared();
        let loaded: Stages<Barrier, WARPGROUPS> = shared();
        let ticket: Stages<SharedArray<u32, 1>, WARPGROUPS> = shared();
        let biases: Stages<SharedArray<f32, BN>, WARPGROUPS> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            c.prefetch_descriptor();
            ring.init(CLUSTER_N * CLUSTER_M * WARPGROUPS * 4); // one arrival per multiplying warp of all blocks
            for i in 0..WARPGROUPS {
                loaded[i].init(1);
            }
            fence_barrier_init();
        }
        sync_cluster();
        grid_dependency_wait();
        grid_dependency_launch(); // the next kernel may begin to prepare

        let order = tile_order::<CLUSTER_M, CLUSTER_N, BM, BN>(m, n, band);
        let clusters = (grid_dim().x / CLUSTER_N) as usize;
        let tile_steps = k.div_ceil(BK);
        let split = Split { whole, sharing_units, unit_steps, shared_steps, tile_stride, tile_steps };
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for unit in (cluster_idx().x..whole + sharing_units).step_by(clusters) {
                    let mut left = steps_of(split, unit);
                    while left.next < left.end {
                        let part = take_tile(split, unit, &mut left);
                        let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, part.tile);
                        let (batch_a, batch_b) = (place_a(at.batch), place_b(at.batch));
                        // With the order of `load_steps`, ptxas spills sums of 128 × 256.
                        for i in 0..part.count {
                            let step = part.first + (cluster_idx().x * k_shift + i) % part.count;
                            let slot = producer.acquire();
                            let of_a = operand_coords::<MN_A>(batch_a, at.row, step * BK);
                            let of_b = operand_coords::<MN_B>(batch_b, at.column, step * BK);
                            a.load_sliced(slot.0, of_a, slot.barrier(), ClusterAxis::X);
                            b.load_sliced(slot.1, of_b, slot.barrier(), ClusterAxis::Y);
                        }
                    }
                }
                producer.drain(); // until then, the other blocks arrive at this block's barriers
            }
        } else {
            setmaxnreg_inc::<232>();
            let warpgroup = warpgroup_idx() - 1;
            let leader = thread_idx().x % 128 == 0;
            let mut consumer = ring.consumer();
            let mut phase = Phase::new();
            for unit in (cluster_idx().x..whole + sharing_units).step_by(clusters) {
                let mut left = steps_of(split, unit);
                while left.next < left.end {
                    let TileSteps { tile, tile_start, first: _, count } = take_tile(split, unit, &mut left);
                    let mut sum = Accumulator::<f32, 64, BN>::zero();
                    // The last generic: slots are released in all blocks of the cluster.
                    multiply_steps::<_, _, _, BK, MN_A, MN_B, _, _, _, _, _, true>(
                        &mut sum,
                        &mut consumer,
                        warpgroup,
                        count,
                        false,
                    );

                    if count < tile_steps {
                        let all = CLUSTER_N * CLUSTER_M * WARPGROUPS;
                        let own = cluster_rank() * WARPGROUPS + warpgroup;
                        let counter = (tile - whole) * all + own;
                        let part = Part { unit: unit - whole, tile_start, warpgroups: all, own, counter };
                        if !sum_parts::<BN>(&mut sum, partials, tickets, ticket[warpgroup], split, part) {
                            continue;
                        }
                    }

                    let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, tile);
                    let row = at.row + warpgroup * 64;
                    let column = at.column;
                    if bias.len() > 0 {
                        read_biases::<C, BN>(bias, biases[warpgroup], column, n);
                    }
                    let to_c = place_c(at.batch);
                    let start = to_c as u64 * matrix_stride + row as u64 * row_stride;
                    for j in unroll(0..BN / EPILOGUE_COLUMNS) {
                        let buffer = buffers[warpgroup * (IN_FLIGHT + 1) + j % (IN_FLIGHT + 1)];
                        let first = (j * EPILOGUE_COLUMNS / 2) as usize;
                        let to = column + j * EPILOGUE_COLUMNS;
                        let piece =
                            Piece { batch: at.batch, row, column: to, m, n, start, stride: row_stride };
                        // ptxas spills sums of 256 columns for it, and for `&&` in place of `if`.
                        let is_edge = if BN < 256 { piece.column + EPILOGUE_COLUMNS > edge } else { false };
                        if leader {
                            bulk_wait_group_read::<IN_FLIGHT>(); // the last store from this buffer has read it
                            if beta != 0.0 && !is_edge {
                                loaded[warpgroup].arrive_expect_tx(buffer.bytes());
                                c.load(buffer, [to_c, row, piece.column], loaded[warpgroup]);
                            }
                        }
                        for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                            sum[first + e] *= alpha;
                        }
                        if beta != 0.0 {
                            if is_edge {
                                load_by_threads::<C, EPILOGUE_COLUMNS>(rows, piece, buffer);
                            } else {
                                loaded[warpgroup].wait_next(&mut phase);
                            }
                            for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                                let place = sum.at(first + e);
                                let of_c = buffer.get([0, place[0], place[1] - j * EPILOGUE_COLUMNS]);
                                sum[first + e] += beta * cast::<f32>(of_c);
                            }
                        }
                        sync_warpgroup();
                        if residual.len() > 0 {
                            load_residual::<C, BN, EPILOGUE_COLUMNS, VEC>(residual, piece, buffer);
                            for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                                let place = sum.at(first + e);
                                let residual = buffer.get([0, place[0], place[1] - j * EPILOGUE_COLUMNS]);
                                sum[first + e] = with_residual(sum[first + e], cast::<f32>(residual));
                            }
                            sync_warpgroup();
                        }
                        if bias.len() > 0 {
                            for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                                let bias = biases[warpgroup].get(sum.at(first + e)[1]);
                                sum[first + e] = with_bias(sum[first + e], bias);
                            }
                        }
                        activate::<BN, EPILOGUE_COLUMNS>(&mut sum, first, activation);
                        for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                            sum[first + e] = finish(
                                sum[first + e],
                                [
                                    at.batch,
                                    min(row + sum.at(first + e)[0], m - 1),
                                    min(column + sum.at(first + e)[1], n - 1),
                                ],
                            );
                        }
                        sum.columns::<EPILOGUE_COLUMNS>(j).store(buffer);
                        fence_proxy_async();
                        sync_warpgroup();
                        if leader {
                            if !is_edge {
                                c.store([to_c, row, piece.column], buffer);
                            }
                            bulk_commit_group(); // also without a store: buffers are tracked by groups
                        }
                        if is_edge {
                            store_by_threads::<C, EPILOGUE_COLUMNS>(rows, piece, buffer);
                            // The copy engine may load C into this buffer next.
                            fence_proxy_async();
                            sync_warpgroup();
                        }
                    }
                }
            }
            if leader {
                bulk_wait_group_read::<0>();
            }
        }
    }
}
