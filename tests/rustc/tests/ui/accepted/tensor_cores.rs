//! Whole kernels with tensor cores, of which rustc has to infer what they leave out.
#![allow(dead_code)]

/// A warpgroup loads, two multiply, and clusters of two blocks share what they load of B.
#[tma_runtime::tma_module]
mod persistent {
    use tma_runtime::prelude::*;

    const BM: u32 = 128;
    const BN: u32 = 256;
    const BK: u32 = 64;
    type A = Tile<bf16, Shape2<BM, BK>, Swizzle128>;
    type B = Tile<bf16, Shape2<BN, BK>, Swizzle128>;
    type HalfOfB = Tile<bf16, Shape2<{ BN / 2 }, BK>, Swizzle128>;
    type C = Tile<bf16, Shape2<64, 64>, Swizzle128>;

    /// Tiles in columns of `group`, so that concurrent blocks read the same parts of A and B.
    #[tma_device]
    fn place(tile: u32, tiles: [u32; 2], group: u32) -> [u32; 2] {
        let first = tile / (group * tiles[1]) * group;
        let height = min(tiles[0] - first, group);
        let rest = tile % (group * tiles[1]);
        [first + rest % height, rest / height]
    }

    #[tma_kernel(threads = 384, cluster = 2)]
    pub fn persistent_gemm(
        a: TensorMap<A>,
        b: TensorMap<HalfOfB>,
        c: TensorMap<C>,
        rows: u32,
        columns: u32,
        steps: u32,
    ) {
        let ring: Pipeline<(A, B), 4> = shared();
        let outs: Stages<C, 4> = shared();
        if thread_idx().x == 0 {
            ring.init(2 * 2 * 4); // each warp that multiplies, in both blocks
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
        sync_cluster(); // nobody ends while another block still releases a stage here
    }
}

/// The type of an accumulator is what it is multiplied into, stored to, or passed as.
#[tma_runtime::tma_module]
mod inferred {
    use tma_runtime::prelude::*;

    type A = Tile<f16, Shape2<128, 64>, Swizzle128>;
    type C = Tile<f16, Shape2<128, 64>, Swizzle128>;

    #[tma_device]
    fn multiply(sum: &mut Accumulator<f32, 128, 128>, a: A, b: A) {
        sum.mma(a, b, ()).wait();
    }

    #[tma_device]
    fn finish(flight: Flight<'_, f32, 128, 128, u32>, out: Global<u32>) {
        out.set(0, flight.wait());
    }

    #[tma_kernel(threads = 128)]
    pub fn inferred_gemm(out: Global<u32>) {
        let a: A = shared();
        let b: A = shared();
        let c: Stages<C, 2> = shared();
        let mut sum: Accumulator<f32, 128, 128> = Accumulator::zero();
        multiply(&mut sum, a, b);
        sum = Accumulator::zero();
        finish(sum.mma(a, b, 7u32), out);
        for j in unroll(0..2u32) {
            sum.columns::<64>(j).store(c[j]);
        }
    }
}

/// Attention: the weights are a left operand in registers, and two products are under way at the
/// same time.
#[tma_runtime::tma_module]
mod attention {
    use tma_runtime::prelude::*;

    type Queries = Tile<bf16, Shape2<64, 128>, Swizzle128>;
    type Half = Tile<bf16, Shape2<128, 128>, Swizzle128>;

    #[tma_device]
    fn attend(
        query: Queries,
        keys: &mut Consumer<(Half,), 2>,
        values: &mut Consumer<(Half,), 2>,
        blocks: u32,
        scale: f32,
    ) {
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
            let sum = out.mma(weights, value.0.t(), value); // .. and P · V of the one before
            product.wait().release();
            softmax(&mut scores, &mut top, &mut total, &mut shrink, scale); // P · V is under way
            sum.wait().release();
            for i in unroll(0..out.len()) {
                out[i] *= shrink[out.row(i)];
            }
            weights = scores.pack::<bf16>();
        }
        let value = values.wait();
        out.mma(weights, value.0.t(), value).wait().release();
        out.store(query);
    }

    /// Scores to weights, in place, with the rows' maxima and sums brought up to date.
    #[tma_device]
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

    #[tma_kernel(protocol = trusted("a sketch"), threads = 128)]
    pub fn one_warpgroup(blocks: u32, scale: f32) {
        let query: Queries = shared();
        let keys: Pipeline<(Half,), 2> = shared();
        let values: Pipeline<(Half,), 2> = shared();
        if thread_idx().x == 0 {
            keys.init(128);
            values.init(128);
            fence_barrier_init();
        }
        sync_threads();
        let mut keys = keys.consumer();
        let mut values = values.consumer();
        attend(query, &mut keys, &mut values, blocks, scale);
    }
}

fn main() {}
