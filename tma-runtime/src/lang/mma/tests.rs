//! Whole kernels with tensor cores, as rustc sees them. The test is that they compile; none is ever
//! run. The documentation of the items tests what rustc rejects.

use crate::lang::*;

/// A persistent GEMM: one warpgroup loads, two multiply, and clusters of two blocks share their
/// loads of B.
mod persistent {
    use super::*;

    const BM: u32 = 128;
    const BN: u32 = 256;
    const BK: u32 = 64;
    type A = Tile<bf16, Shape2<BM, BK>, Swizzle128>;
    type B = Tile<bf16, Shape2<BN, BK>, Swizzle128>;
    type HalfOfB = Tile<bf16, Shape2<{ BN / 2 }, BK>, Swizzle128>;
    type C = Tile<bf16, Shape2<64, 64>, Swizzle128>;

    /// Orders tiles in columns of `group`, so that concurrent blocks read the same parts of A and
    /// B.
    fn place(tile: u32, tiles: [u32; 2], group: u32) -> [u32; 2] {
        let first = tile / (group * tiles[1]) * group;
        let height = min(tiles[0] - first, group);
        let rest = tile % (group * tiles[1]);
        [first + rest % height, rest / height]
    }

    #[expect(dead_code, clippy::manual_is_multiple_of, reason = "type-checked only, as a kernel is written")]
    fn gemm(a: TensorMap<A>, b: TensorMap<HalfOfB>, c: TensorMap<C>, rows: u32, columns: u32, steps: u32) {
        let ring: Pipeline<(A, B), 4> = shared();
        let outs: Stages<C, 4> = shared();
        if thread_idx().x == 0 {
            ring.init(2 * 2 * 4); // one arrival per multiplying warp, in both blocks
            fence_barrier_init();
        }
        sync_cluster();

        let tiles = [rows.div_ceil(2 * BM), columns.div_ceil(BN)];
        let clusters = grid_dim().x / 2;
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for tile in (cluster_idx().x..tiles[0] * tiles[1]).step_by(clusters as usize) {
                    let at = place(tile, tiles, 8);
                    for k in 0..steps {
                        let slot = producer.acquire();
                        a.load(slot.0, [(2 * at[0] + cluster_rank()) * BM, k * BK], slot.barrier());
                        b.load_sliced(slot.1, [at[1] * BN, k * BK], slot.barrier(), ClusterAxis::X);
                    }
                }
                producer.drain();
            }
        } else {
            setmaxnreg_inc::<232>();
            let me = warpgroup_idx() - 1;
            let leader = thread_idx().x % 128 == 0;
            let mut consumer = ring.consumer();
            for tile in (cluster_idx().x..tiles[0] * tiles[1]).step_by(clusters as usize) {
                let at = place(tile, tiles, 8);

                let mut sum = Accumulator::<f32, 64, BN>::zero();
                let slot = consumer.wait();
                let mut flight = sum.mma(slot.0.band::<64>(me), slot.1, slot);
                for _ in 1..steps {
                    let slot = consumer.wait();
                    let done = flight.mma(slot.0.band::<64>(me), slot.1, slot);
                    if elect_one() {
                        done.release_cluster();
                    }
                }
                let last = flight.wait();
                if elect_one() {
                    last.release_cluster();
                }

                let row = (2 * at[0] + cluster_rank()) * BM + me * 64;
                for j in unroll(0..BN / 64) {
                    let out = outs[me * 2 + j % 2];
                    if leader {
                        bulk_wait_group_read::<1>(); // the store before the last has read this buffer
                    }
                    sync_warpgroup();
                    sum.columns::<64>(j).store(out);
                    fence_proxy_async();
                    sync_warpgroup();
                    if leader {
                        c.store([row, at[1] * BN + j * 64], out);
                        bulk_commit_group();
                    }
                }
            }
            if leader {
                bulk_wait_group::<0>();
            }
        }
    }
}

/// A GEMM with one tile per block: all four warps multiply, and one of their threads loads ahead.
mod dense {
    use super::*;

    type A = Tile<f16, Shape2<128, 64>, Swizzle128>;
    type B = Tile<f16, Shape2<128, 64>, Swizzle128>;
    type C = Tile<f16, Shape2<128, 64>, Swizzle128>;

    #[expect(dead_code, reason = "type-checked only")]
    fn dense_gemm(a: TensorMap<A>, b: TensorMap<B>, c: TensorMap<C>, steps: u32) {
        let ring: Pipeline<(A, B), 5> = shared();
        let out: Stages<C, 2> = shared();
        let leader = thread_idx().x == 0;
        if leader {
            ring.init(4); // one arrival per warp
            fence_barrier_init();
        }
        sync_threads();

        let m = block_idx().y * 128;
        let n = block_idx().x * 128;
        let mut producer = ring.producer();
        if leader {
            for k in 0..min(steps, 4) {
                let slot = producer.acquire();
                a.load(slot.0, [m, k * 64], slot.barrier());
                b.load(slot.1, [n, k * 64], slot.barrier());
            }
        }

        let mut consumer = ring.consumer();
        let mut sum = Accumulator::<f32, 128, 128>::zero();
        let slot = consumer.wait();
        let mut flight = sum.mma(slot.0, slot.1, slot);
        for k in 1..steps {
            let slot = consumer.wait();
            let done = flight.mma(slot.0, slot.1, slot);
            if elect_one() {
                done.release();
            }
            if leader && k + 3 < steps {
                let slot = producer.acquire();
                a.load(slot.0, [m, (k + 3) * 64], slot.barrier());
                b.load(slot.1, [n, (k + 3) * 64], slot.barrier());
            }
        }
        let _last = flight.wait();

        for j in unroll(0..2u32) {
            sum.columns::<64>(j).store(out[j]);
        }
        fence_proxy_async();
        sync_threads();
        if leader {
            c.store([m, n], out[0]);
            c.store([m, n + 64], out[1]);
            bulk_commit_group();
            bulk_wait_group::<0>();
        }
    }

    type InBatch<E, W, const ROWS: u32, const COLUMNS: u32> = Tile<E, Shape3<1, ROWS, COLUMNS>, W>;

    /// Generic types, extents and layouts; operands and result in a batch; B with K rows.
    #[expect(dead_code, reason = "type-checked only")]
    fn generic<E, F, W, const BM: u32, const BN: u32, const BK: u32>(
        a: InBatch<E, W, BM, BK>,
        b: InBatch<F, Swizzle128, BK, BN>,
        out: InBatch<F, W, BM, BN>,
    ) where
        E: MatrixElement,
        F: TransposedElement + Multiply<E, f32>,
        f32: StoreAs<F>,
        W: MatrixSwizzle,
    {
        let mut sum = Accumulator::<f32, BM, BN>::zero();
        sum.mma(a, b.t(), ()).wait();
        sum.store(out);
    }
}

/// Forward attention in one warpgroup: the weights are a left operand in registers, and two matmuls
/// are in flight at the same time.
mod attention {
    use super::*;

    type Half = Tile<bf16, Shape2<128, 128>, Swizzle128>;

    #[expect(dead_code, reason = "type-checked only")]
    fn attend(
        query: Tile<bf16, Shape2<64, 128>, Swizzle128>,
        keys: Pipeline<(Half,), 2>,
        values: Pipeline<(Half,), 2>,
        blocks: u32,
        scale: f32,
    ) {
        let mut keys = keys.consumer();
        let mut values = values.consumer();
        let mut out = Accumulator::<f32, 64, 128>::zero();
        let mut total = Rows::<f32, 64>::filled(0.0);
        let mut top = Rows::<f32, 64>::filled(f32::NEG_INFINITY);
        let mut shrink = Rows::<f32, 64>::filled(1.0);

        let mut scores = Accumulator::<f32, 64, 128>::zero();
        let key = keys.wait();
        scores.mma(query, key.0, key).wait().release();
        softmax(&mut scores, &mut top, &mut total, &mut shrink, scale);
        let mut weights = scores.pack::<bf16>();
        for _ in 1..blocks {
            scores = Accumulator::zero();
            let key = keys.wait();
            let product = scores.mma(query, key.0, key); // Q · Kᵀ of this block ..
            let value = values.wait();
            let sum = out.mma(weights, value.0.t(), value); // .. and P · V of the previous one
            product.wait().release();
            softmax(&mut scores, &mut top, &mut total, &mut shrink, scale); // P · V is in flight
            sum.wait().release();
            for i in unroll(0..out.len()) {
                out[i] *= shrink[out.row(i)];
            }
            weights = scores.pack::<bf16>();
        }
        let value = values.wait();
        out.mma(weights, value.0.t(), value).wait().release();
    }

    /// Converts scores to weights in place, exp2((s - top) * scale), and updates the rows' maxima
    /// and sums.
    fn softmax(
        scores: &mut Accumulator<f32, 64, 128>,
        top: &mut Rows<f32, 64>,
        total: &mut Rows<f32, 64>,
        shrink: &mut Rows<f32, 64>,
        scale: f32,
    ) {
        let block = scores.row_max();
        for r in unroll(0..top.len()) {
            let before = top[r];
            top[r] = max(before, block[r]);
            shrink[r] = exp2((before - top[r]) * scale);
        }
        for i in unroll(0..scores.len()) {
            scores[i] = exp2((scores[i] - top[scores.row(i)]) * scale);
        }
        let block = scores.row_sum();
        for r in unroll(0..total.len()) {
            total[r] = total[r] * shrink[r] + block[r];
        }
    }
}

/// Two warpgroups process tiles in alternation: each skips the stages of the other's tile, and one
/// stores while the other multiplies.
#[expect(dead_code, reason = "type-checked only")]
fn pingpong(ring: Pipeline<(Tile<e4m3, Shape2<64, 128>, Swizzle128>,), 4>, steps: u32, tiles: u32) {
    let me = warpgroup_idx();
    let mut consumer = ring.consumer();
    consumer.skip(me * steps);
    for tile in (me..tiles).step_by(2) {
        named_barrier_sync(1 + me, 256); // this warpgroup's turn to multiply
        let mut sum = Accumulator::<f16, 64, 64>::zero();
        for _ in 0..steps {
            let slot = consumer.wait();
            sum.mma(slot.0, slot.0, slot).wait().release();
        }
        named_barrier_arrive(2 - me, 256); // the other warpgroup's turn
        consumer.skip(steps);
        let out: Tile<f16, Shape2<64, 64>, NoSwizzle> = shared();
        sum.store(out);
    }
}

/// Every kind of operand, matmul and conversion.
#[expect(dead_code, reason = "type-checked only")]
fn remaining_words(
    wide: Tile<f16, Shape2<64, 64>, Swizzle128>,
    real: Tile<tf32, Shape2<64, 32>, Swizzle128>,
    signed: Tile<i8, Shape2<64, 32>, Swizzle32>,
    unsigned: Tile<u8, Shape2<64, 32>, Swizzle32>,
    out: Global<f32>,
) {
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    sum.mma(real, -real, ()).wait();
    sum.mma(-wide.t(), wide.t(), ()).wait();
    let columns = sum.columns::<8>(7);
    for i in unroll(0..columns.len()) {
        out.set(columns.at(i)[0] * 8 + columns.at(i)[1], 0.0);
    }
    let narrow: Tile<e5m2, Shape2<64, 64>, Swizzle64> = shared();
    sum.store(narrow);
    let column: Tile<f32, Shape2<64, 8>, Swizzle32> = shared();
    columns.store(column);

    let mut half = Accumulator::<f16, 64, 64>::zero();
    half.mma(sum.pack::<f16>(), wide, 1u32).wait();
    half[0] = half.row_max()[half.row(0)];
    half.mma(narrow, narrow, [true]).wait();

    let mut count = Accumulator::<i32, 64, 64>::zero();
    let mut flight = count.mma(signed, unsigned, ());
    flight.mma(unsigned, signed, ());
    flight.wait();
    let counts: Tile<i32, Shape2<64, 64>> = shared();
    count.store(counts);
}

/// Handles have no size. Types that represent registers are not `Copy`; doctests check that.
#[test]
fn handles_of_operands_have_no_size() {
    fn size_of_copy<X: Copy>() -> usize {
        size_of::<X>()
    }
    type Operand = Tile<f16, Shape2<64, 64>, Swizzle128>;
    assert_eq!(size_of_copy::<Transposed<Operand>>(), 0);
    assert_eq!(size_of_copy::<Negated<Transposed<Operand>>>(), 0);
}
