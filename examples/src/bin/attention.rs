//! Attention, forward: softmax(Q · Kᵀ · scale) · V, without ever writing the scores to memory.
//!
//! A block has 64 queries and goes over all keys and values, 128 at a time. One warpgroup loads,
//! the other multiplies: while the tensor cores compute the weighted sum of one block of values,
//! the threads compute the softmax of the next block's scores, and correct what was summed before
//! whenever a row has a new maximum ("online softmax": Milakov and Gimelshein, arXiv 1805.02867;
//! the schedule is that of FlashAttention-3, arXiv 2407.08608). The weights go to the second
//! multiplication from the registers in which the first one left the scores.

use tma_runtime::prelude::*;

/// The kernel, and the tiles that it moves.
#[tma_module]
pub mod forward {
    use tma_runtime::prelude::*;

    type Queries = Tile<bf16, Shape2<64, 128>, Swizzle128>;
    type Block = Tile<bf16, Shape2<128, 128>, Swizzle128>;

    /// `o = softmax(q · kᵀ · scale / log2(e)) · v` over `blocks` blocks of 128 keys, of which all
    /// have to be whole.
    #[tma_kernel(threads = 256)]
    pub fn attention(
        q: TensorMap<Queries>,
        k: TensorMap<Block>,
        v: TensorMap<Block>,
        o: TensorMap<Queries>,
        blocks: u32,
        scale: f32,
    ) {
        let queries: Queries = shared();
        let loaded: Barrier = shared();
        let keys: Pipeline<(Block,), 2> = shared();
        let values: Pipeline<(Block,), 2> = shared();
        if thread_idx().x == 0 {
            loaded.init(1);
            keys.init(4); // each warp that multiplies
            values.init(4);
            fence_barrier_init();
        }
        sync_threads();

        let row = block_idx().x * 64;
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<24>();
            if warp_idx() == 0 && elect_one() {
                loaded.arrive_expect_tx(queries.bytes());
                q.load(queries, [row, 0], loaded);
                let mut next_keys = keys.producer();
                let mut next_values = values.producer();
                for block in 0..blocks {
                    let slot = next_keys.acquire();
                    k.load(slot.0, [block * 128, 0], slot.barrier());
                    let slot = next_values.acquire();
                    v.load(slot.0, [block * 128, 0], slot.barrier());
                }
            }
        } else {
            setmaxnreg_inc::<240>();
            loaded.wait(0);
            let mut keys = keys.consumer();
            let mut values = values.consumer();
            let mut out = Accumulator::<f32, 64, 128>::zero();
            let mut top = Rows::<f32, 64>::filled(f32::NEG_INFINITY);
            let mut total = Rows::<f32, 64>::filled(0.0);
            let mut shrink = Rows::<f32, 64>::filled(1.0);

            let mut scores = Accumulator::<f32, 64, 128>::zero();
            let key = keys.wait();
            let done = scores.mma(queries, key.0, key).wait();
            if elect_one() {
                done.release();
            }
            softmax(&mut scores, &mut top, &mut total, &mut shrink, scale);
            let mut weights = scores.pack::<bf16>();
            for _ in 1..blocks {
                scores = Accumulator::zero();
                let key = keys.wait();
                let product = scores.mma(queries, key.0, key); // Q · Kᵀ of this block ..
                let value = values.wait();
                let sum = out.mma(weights, value.0.t(), value); // .. and P · V of the one before
                let done = product.wait();
                if elect_one() {
                    done.release();
                }
                softmax(&mut scores, &mut top, &mut total, &mut shrink, scale);
                let done = sum.wait();
                if elect_one() {
                    done.release();
                }
                for i in unroll(0..out.len()) {
                    out[i] *= shrink[out.row(i)];
                }
                weights = scores.pack::<bf16>();
            }
            let value = values.wait();
            let _last = out.mma(weights, value.0.t(), value).wait();

            for i in unroll(0..out.len()) {
                out[i] /= total[out.row(i)];
            }
            out.store(queries); // nobody reads the queries any more
            fence_proxy_async();
            sync_warpgroup();
            if thread_idx().x == 128 {
                o.store([row, 0], queries);
                bulk_commit_group();
                bulk_wait_group_read::<0>();
            }
        }
    }

    /// Scores to weights, in place: `exp2((score - top) * scale)`, with each row's maximum and sum
    /// brought up to date. `shrink` is what sums of before are to be multiplied by.
    #[tma_device]
    fn softmax(
        scores: &mut Accumulator<f32, 64, 128>,
        top: &mut Rows<f32, 64>,
        total: &mut Rows<f32, 64>,
        shrink: &mut Rows<f32, 64>,
        scale: f32,
    ) {
        let greatest = scores.row_max();
        for r in unroll(0..top.len()) {
            let before = top[r];
            top[r] = max(before, greatest[r]);
            shrink[r] = exp2((before - top[r]) * scale);
        }
        for i in unroll(0..scores.len()) {
            scores[i] = exp2((scores[i] - top[scores.row(i)]) * scale);
        }
        let sum = scores.row_sum();
        for r in unroll(0..total.len()) {
            total[r] = total[r] * shrink[r] + sum[r];
        }
    }
}

/// Launches attention of all of `q` over all of `k` and `v`, with scores divided by √128.
pub fn launch(
    device: &Device,
    [q, k, v]: [&DeviceTensor<bf16, 2>; 3],
    o: &mut DeviceTensor<bf16, 2>,
) -> Result<(), Error> {
    let ([queries, _], [keys, _]) = (q.shape(), k.shape());
    let blocks = u32::try_from(keys / 128).unwrap_or(u32::MAX);
    let scale = std::f32::consts::LOG2_E / 128.0_f32.sqrt();
    forward::attention::launch(device, Grid::tiles([queries], [64]), q, k, v, o, blocks, scale)
}

/// Numbers between -1 and 1 that look random, and are the same each time.
fn numbers(len: usize, seed: u32) -> Vec<bf16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bf16::from_f32((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
    };
    (0..len).map(|_| next()).collect()
}

/// One row of the result, in f64.
fn reference(query: &[bf16], keys: &[bf16], values: &[bf16]) -> Vec<f64> {
    let dot = |key: &[bf16]| query.iter().zip(key).map(|(a, b)| a.to_f64() * b.to_f64()).sum::<f64>();
    let scores: Vec<f64> = keys.chunks(128).map(|key| dot(key) / 128.0_f64.sqrt()).collect();
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    let column = |c: usize| {
        let rows = values.chunks(128).zip(&weights);
        rows.map(|(value, weight)| weight * value[c].to_f64()).sum::<f64>() / total
    };
    (0..128).map(column).collect()
}

/// Attends with so many queries and keys, and gives the greatest error of an element.
pub fn error_of(device: &Device, [queries, keys]: [usize; 2]) -> anyhow::Result<f64> {
    let four = bf16::from_f32(4.0);
    let host_q: Vec<bf16> = numbers(queries * 128, 1).into_iter().map(|x| x * four).collect();
    let (host_k, host_v) = (numbers(keys * 128, 2), numbers(keys * 128, 3));
    let q = device.tensor(&host_q, [queries, 128])?;
    let k = device.tensor(&host_k, [keys, 128])?;
    let v = device.tensor(&host_v, [keys, 128])?;
    let mut o = device.zeros([queries, 128])?;
    launch(device, [&q, &k, &v], &mut o)?;

    let mut worst = 0.0_f64;
    for (row, query) in o.to_vec()?.chunks(128).zip(host_q.chunks(128)) {
        let wanted = reference(query, &host_k, &host_v);
        worst = row.iter().zip(wanted).map(|(a, b)| (a.to_f64() - b).abs()).fold(worst, f64::max);
    }
    Ok(worst)
}

/// Attends with several numbers of queries and keys, and checks each element.
pub fn run(device: &Device) -> anyhow::Result<()> {
    for [queries, keys] in [[64, 128], [100, 256], [192, 640]] {
        let worst = error_of(device, [queries, keys])?;
        anyhow::ensure!(
            worst < 1e-2,
            "{queries} queries over {keys} keys: an element is wrong by {worst:.2e}"
        );
        println!(
            "{}: {queries} queries over {keys} keys, none wrong by more than {worst:.1e}",
            device.name()
        );
    }
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
