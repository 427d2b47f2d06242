//! The kernel of GEMMs with options: `plain` with more operations between the sums and C.

use tma_runtime::tma_module;

/// `C = finish(activation(alpha · A · B + beta · C + residual + bias))`, with sums that may be
/// split among clusters. Tiles, clusters and layouts are those of
/// [`dense`](super::dense::kernels).
///
/// Other packages derive modules from this one, with other functions between the sums and
/// C.
#[tma_module]
pub mod with_options {
    use tma_runtime::prelude::*;

    use crate::gemm::device::consumer::multiply_steps;
    use crate::gemm::device::producer::{Operand, Origins, Steps, load_steps, origins};
    use crate::gemm::device::schedule::{ring_stages, tile_coords, tile_order};

    /// Returns the first step of a work unit, and the one after its last. Each of the first `whole`
    /// units is a tile. The others share the steps of all other tiles, `in_all` in sequence:
    /// `share` for each unit, where a tile takes `length`.
    #[tma_device]
    fn steps_of(unit: u32, whole: u32, share: u32, in_all: u32, length: u32) -> [u32; 2] {
        if unit < whole {
            [0, length]
        } else {
            let first = (unit - whole) * share;
            [first, min(first + share, in_all)]
        }
    }

    /// Returns the slot of the partial sums that the `n`-th sharing unit stores for the tile that
    /// begins at step `before`. A unit stores at most two: for the tile in which it begins, and for
    /// a tile in which it ends.
    #[tma_device]
    fn left_at(n: u32, before: u32, share: u32, sharing: u32) -> u32 {
        if n * share < before { sharing + n } else { n }
    }

    /// Stores a thread's sums in `partials`, four at a time.
    #[tma_device]
    fn leave<const BN: u32>(sum: &Accumulator<f32, 64, BN>, partials: Global<f32>, slot: u32) {
        let first = slot as u64 * (64 * BN) as u64 + (thread_idx().x % 128 * 4) as u64;
        for i in unroll((0..sum.len()).step_by(4)) {
            partials.set_vec(first + i as u64 * 128, [sum[i], sum[i + 1], sum[i + 2], sum[i + 3]]);
        }
    }

    /// Adds the sums that were stored in `slot`.
    #[tma_device]
    fn add<const BN: u32>(sum: &mut Accumulator<f32, 64, BN>, partials: Global<f32>, slot: u32) {
        let first = slot as u64 * (64 * BN) as u64 + (thread_idx().x % 128 * 4) as u64;
        for j in unroll((0..sum.len()).step_by(32)) {
            // All loads are issued before the first one is waited for.
            let mut part = [0.0; 32];
            for i in unroll((0..32usize).step_by(4)) {
                let four = partials.get_vec::<4>(first + (j + i) as u64 * 128);
                for e in unroll(0..4usize) {
                    part[i + e] = four[e];
                }
            }
            for i in unroll(0..32usize) {
                sum[j + i] += part[i];
            }
        }
    }

    /// Applies the activation to `EPILOGUE_COLUMNS` columns, a thread's elements from `first` on. x ·
    /// sigmoid(y) with y = x is SiLU; with y = 2u it is x / 2 · (1 + tanh(u)), which is GELU if u
    /// is √(2/π) · (x + 0.044715 · x³).
    ///
    /// A NaN stays a NaN. The square is bounded, since for SiLU it is multiplied by 0.
    #[tma_device]
    fn activate<const BN: u32, const EPILOGUE_COLUMNS: u32>(
        sum: &mut Accumulator<f32, 64, BN>,
        first: usize,
        activation: u32,
    ) {
        if activation == 1 {
            for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                sum[first + e] = if sum[first + e] < 0.0 { 0.0 } else { sum[first + e] };
            }
        } else if activation > 1 {
            let gate = if activation == 2 { [1.595_769, 0.071_354_82] } else { [1.0f32, 0.0] };
            for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                let x = sum[first + e];
                // 1 / z is 2 to the power of -log2(z), which avoids the branches of a division.
                let square = min(x * x, f32::MAX);
                sum[first + e] = x * exp2(-log2(1.0 + exp(-x * fma(gate[1], square, gate[0]))));
            }
        }
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

    /// Combines an element x of alpha · A · B + beta · C with that of the residual. This and the
    /// two functions that follow are those that derived modules replace: `docs/gemm.md`, "Epilogues
    /// of your own".
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

    /// `plain` with sums that may be split among clusters (`steps_of`), and that are stored to C as
    /// `activation(alpha · sum + beta · C + residual + bias)`.
    ///
    /// The copy engine loads and stores C up to column `edge`. Beyond it threads do so, in `rows`:
    /// C with rows of `row_stride` and matrices of `matrix_stride` elements.
    #[tma_kernel(threads = 128 * (1 + WARPGROUPS), cluster = [CLUSTER_N, CLUSTER_M], unchecked, instances(
        let BM = 64 * WARPGROUPS,
        let ROWS_A = if MN_A { BK } else { BM },
        let COLUMNS_A = if MN_A { BM } else { BK },
        let ROWS_B = if MN_B { BK } else { BN },
        let COLUMNS_B = if MN_B { BN } else { BK },
        let SLICE_A = ROWS_A / CLUSTER_N,
        let SLICE_B = ROWS_B / CLUSTER_M,
        let STORES_IN_FLIGHT = if BN % 128 == 0 { 1 } else { 0 },
        let EPILOGUE_STAGES = WARPGROUPS * (STORES_IN_FLIGHT + 1),
        let STAGES = ring_stages(BM, BN, EPILOGUE_STAGES);

        (AB, C, BK, EPILOGUE_COLUMNS, VEC) in [bf16 = (bf16, bf16, 64, 64, 8), f16 = (f16, f16, 64, 64, 8), bf16_f32 = (bf16, f32, 64, 32, 4), f16_f32 = (f16, f32, 64, 32, 4)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256), t128x128_cluster2x1 = (2, 1, 2, 128), t64x64 = (1, 1, 1, 64)],
        (MN_A, MN_B) in [nt = (false, false), nn = (false, true)];

        (AB, C, BK, EPILOGUE_COLUMNS, VEC) in [bf16 = (bf16, bf16, 64, 64, 8), f16 = (f16, f16, 64, 64, 8)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x256_cluster2x1 = (2, 1, 2, 256)],
        (MN_A, MN_B) in [tt = (true, false), tn = (true, true)];

        (AB, C, BK, EPILOGUE_COLUMNS, VEC) in [bf16 = (bf16, bf16, 64, 64, 8), f16 = (f16, f16, 64, 64, 8)],
        (CLUSTER_M, CLUSTER_N, WARPGROUPS, BN) in [t128x128_cluster1x2 = (1, 2, 2, 128), t128x64_cluster1x2 = (1, 2, 2, 64), t64x128 = (1, 1, 1, 128)],
        (MN_A, MN_B) in [nt = (false, false), nn = (false, true)];

        (AB, C, BK, EPILOGUE_COLUMNS, VEC) in [
            e4m3 = (e4m3, bf16, 128, 64, 8), e5m2 = (e5m2, bf16, 128, 64, 8), e4m3_f32 = (e4m3, f32, 128, 32, 4), e5m2_f32 = (e5m2, f32, 128, 32, 4),
            tf32 = (tf32, f32, 32, 32, 4),
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
        const EPILOGUE_STAGES: u32,
        const STORES_IN_FLIGHT: u32,
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
        stagger: u32,
        band: u32,
        whole: u32,
        sharing: u32,
        share: u32,
        in_all: u32,
        length: u32,
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
        let buffers: Stages<Tile<C, Shape3<1, 64, EPILOGUE_COLUMNS>, Swizzle128>, EPILOGUE_STAGES> = shared();
        let loaded: Stages<Barrier, WARPGROUPS> = shared();
        let ticket: SharedArray<u32, WARPGROUPS> = shared();
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
        grid_dependency_launch(); // the next kernel may begin to prepare
        grid_dependency_wait();

        let order = tile_order::<CLUSTER_M, CLUSTER_N, BM, BN>(m, n, band);
        let clusters = (grid_dim().x / CLUSTER_N) as usize;
        let steps = k.div_ceil(BK);
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for unit in (cluster_idx().x..whole + sharing).step_by(clusters) {
                    let range = steps_of(unit, whole, share, in_all, length);
                    let mut next = range[0];
                    while next < range[1] {
                        let before = next / length * length;
                        let first = next - before;
                        let steps_here = min(range[1] - before, steps) - first;
                        let tile = if unit < whole { unit } else { whole + next / length };
                        next = before + length;
                        let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, tile);
                        let from =
                            Origins { batch_a: place_a(at.batch), batch_b: place_b(at.batch), ..origins(at) };
                        let steps = Steps { first, count: steps_here, start: cluster_idx().x * stagger };
                        load_steps::<_, BK, MN_A, MN_B, _, _, _, _, _, _, _>(
                            &mut producer,
                            a,
                            b,
                            from,
                            steps,
                        );
                    }
                }
                producer.drain();
            }
        } else {
            setmaxnreg_inc::<232>();
            let warpgroup = warpgroup_idx() - 1;
            let leader = thread_idx().x % 128 == 0;
            let mut consumer = ring.consumer();
            let mut phase = Phase::new();
            for unit in (cluster_idx().x..whole + sharing).step_by(clusters) {
                let range = steps_of(unit, whole, share, in_all, length);
                let mut next = range[0];
                while next < range[1] {
                    let before = next / length * length;
                    let steps_here = min(range[1] - before, steps) - (next - before);
                    let tile = if unit < whole { unit } else { whole + next / length };
                    next = before + length;

                    let mut sum = Accumulator::<f32, 64, BN>::zero();
                    multiply_steps::<_, _, _, BK, MN_A, MN_B, _, _, _, _, _, true>(
                        &mut sum,
                        &mut consumer,
                        warpgroup,
                        steps_here,
                        false,
                    );

                    if steps_here < steps {
                        // The last warpgroup to finish its part of a tile sums all parts.
                        let first = before / share;
                        let parts = (before + steps - 1) / share + 1 - first;
                        let every = CLUSTER_N * CLUSTER_M * WARPGROUPS;
                        let own = cluster_rank() * WARPGROUPS + warpgroup;
                        let counter = (tile - whole) * every + own;
                        let mut came = 0;
                        if parts == 2 {
                            // The last of two need not store its own part: they may be added in
                            // either order.
                            sync_warpgroup(); // all threads have read the previous ticket
                            if leader {
                                ticket.set(
                                    warpgroup,
                                    tickets.fetch_add(counter, 0, Order::Acquire, Scope::Device),
                                );
                            }
                            sync_warpgroup();
                            came = ticket.get(warpgroup);
                        }
                        if came == 0 {
                            let to = left_at(unit - whole, before, share, sharing);
                            leave::<BN>(&sum, partials, to * every + own);
                            sync_warpgroup(); // the leader releases the stores of all threads
                            if leader {
                                ticket.set(
                                    warpgroup,
                                    tickets.fetch_add(counter, 1, Order::AcqRel, Scope::Device),
                                );
                            }
                            sync_warpgroup();
                            came = ticket.get(warpgroup);
                        }
                        if came + 1 < parts {
                            continue;
                        }
                        if leader {
                            tickets.store(counter, 0, Order::Relaxed, Scope::Device); // for the next launch
                        }
                        if parts == 2 {
                            let other = 2 * first + 1 - (unit - whole);
                            add::<BN>(
                                &mut sum,
                                partials,
                                left_at(other, before, share, sharing) * every + own,
                            );
                        } else {
                            // In the order of the steps, so that the sums are reproducible.
                            for i in unroll(0..sum.len()) {
                                sum[i] = 0.0;
                            }
                            for n in first..first + parts {
                                add::<BN>(
                                    &mut sum,
                                    partials,
                                    left_at(n, before, share, sharing) * every + own,
                                );
                            }
                        }
                    }

                    let at = tile_coords::<CLUSTER_M, CLUSTER_N, BM, BN>(order, tile);
                    let row = at.row + warpgroup * 64;
                    let column = at.column;
                    if bias.len() > 0 {
                        for j in (thread_idx().x % 128..BN).step_by(128) {
                            biases[warpgroup]
                                .set(j, if column + j < n { cast(bias.get(column + j)) } else { 0.0 });
                        }
                        sync_warpgroup();
                    }
                    let to_c = place_c(at.batch);
                    let to_rows = to_c as u64 * matrix_stride + row as u64 * row_stride;
                    let warp = thread_idx().x % 128 / 32;
                    for j in unroll(0..BN / EPILOGUE_COLUMNS) {
                        let buffer = buffers[warpgroup * (STORES_IN_FLIGHT + 1) + j % (STORES_IN_FLIGHT + 1)];
                        let first = (j * EPILOGUE_COLUMNS / 2) as usize;
                        // ptxas spills sums of 256 columns for it, and for `&&` in place of `if`.
                        let is_edge =
                            if BN < 256 { column + (j + 1) * EPILOGUE_COLUMNS > edge } else { false };
                        if leader {
                            bulk_wait_group_read::<STORES_IN_FLIGHT>(); // the last store from this buffer has read it
                            if beta != 0.0 && !is_edge {
                                loaded[warpgroup].arrive_expect_tx(buffer.bytes());
                                c.load(buffer, [to_c, row, column + j * EPILOGUE_COLUMNS], loaded[warpgroup]);
                            }
                        }
                        for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                            sum[first + e] *= alpha;
                        }
                        if beta != 0.0 {
                            if is_edge {
                                sync_warpgroup();
                                for i in (warp..64).step_by(4) {
                                    for x in (lane_idx()..EPILOGUE_COLUMNS).step_by(32) {
                                        let mut of_c = cast::<C>(0.0f32);
                                        if row + i < m && column + j * EPILOGUE_COLUMNS + x < n {
                                            let place = (column + j * EPILOGUE_COLUMNS + x) as u64;
                                            of_c = rows.get(to_rows + i as u64 * row_stride + place);
                                        }
                                        buffer.set([0, i, x], of_c);
                                    }
                                }
                                sync_warpgroup();
                            } else {
                                loaded[warpgroup].wait_next(&mut phase);
                            }
                            for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                                let place = sum.at(first + e);
                                sum[first + e] += beta
                                    * cast::<f32>(buffer.get([0, place[0], place[1] - j * EPILOGUE_COLUMNS]));
                            }
                        }
                        sync_warpgroup();
                        if residual.len() > 0 {
                            // 16 bytes per thread, eight threads per row; zeros past an edge.
                            for e in unroll(0..4u32) {
                                let place = e * 128 + thread_idx().x % 128;
                                let to = [0, place / 8, place % 8 * VEC as u32];
                                let mut part = [cast::<C>(0.0f32); VEC];
                                let left = column + j * EPILOGUE_COLUMNS + to[2];
                                if row + to[1] < m && left < n {
                                    let line = at.batch as u64 * m as u64 + (row + to[1]) as u64;
                                    let from = line * n as u64 + left as u64;
                                    if BN == 256 || n % VEC as u32 == 0 {
                                        part = residual.get_vec::<VEC>(from);
                                    } else {
                                        for x in unroll(0..VEC) {
                                            if left + (x as u32) < n {
                                                part[x] = residual.get(from + x as u64);
                                            }
                                        }
                                    }
                                }
                                buffer.set_vec(to, part);
                            }
                            sync_warpgroup();
                            for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                                let place = sum.at(first + e);
                                let residual =
                                    cast::<f32>(buffer.get([0, place[0], place[1] - j * EPILOGUE_COLUMNS]));
                                sum[first + e] = with_residual(sum[first + e], residual);
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
                                c.store([to_c, row, column + j * EPILOGUE_COLUMNS], buffer);
                            }
                            bulk_commit_group(); // also without a store: buffers are tracked by groups
                        }
                        if is_edge {
                            for i in (warp..64).step_by(4) {
                                for x in (lane_idx()..EPILOGUE_COLUMNS).step_by(32) {
                                    if row + i < m && column + j * EPILOGUE_COLUMNS + x < n {
                                        let place = (column + j * EPILOGUE_COLUMNS + x) as u64;
                                        rows.set(
                                            to_rows + i as u64 * row_stride + place,
                                            buffer.get([0, i, x]),
                                        );
                                    }
                                }
                            }
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
