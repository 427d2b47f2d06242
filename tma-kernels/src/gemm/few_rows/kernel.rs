//! The kernel that multiplies few rows by many, at the speed of memory.

use tma_runtime::tma_module;

/// `C = activation(alpha · A · Bᵀ + beta · C + residual + bias)` for few rows of A, computed as
/// B · Aᵀ: the rows of B fill those of the tensor cores' instructions, and the rows of A are their
/// columns, of which there may be as few as 8.
///
/// Memory limits such a GEMM: it reads B once. The blocks of a cluster divide the sums of a tile
/// along K, so that all multiprocessors read B, however few tiles it has.
#[tma_module]
pub mod exchanged {
    use tma_runtime::prelude::*;

    use crate::gemm::device::activation::activated;
    use crate::gemm::device::producer::{Operand, Steps, nth_step};
    use crate::gemm::few_rows::exchange::shares::{received, send_sums, total};

    /// Rows of B of a tile, which two warpgroups multiply.
    pub const BN: u32 = 128;

    /// Columns of K of a step: a row of 128 bytes.
    pub const BK: u32 = 64;

    /// Warps that multiply.
    const WARPS: u32 = 8;

    /// Threads of a block. One more warp loads B, and another one A.
    const THREADS: u32 = 32 * (WARPS + 2);

    /// Shared memory of a block, in bytes. Two blocks fit on a multiprocessor, beside those of smaller
    /// kernels: the next GEMM begins to read while this one ends.
    const SHARED_BYTES: u32 = 104 * 1024;

    /// The stages with which a multiprocessor has enough bytes in flight: some 30 KB
    /// (`docs/cached-attention.md`, "The kernels").
    const LEAST_STAGES: u32 = 3;

    /// Returns how many stages fit beside the sums that a block receives.
    pub const fn stages(bm: u32) -> u32 {
        let fit = (SHARED_BYTES - 4 * received(bm, BN)) / ((BN + bm) * BK * 2);
        if fit > LEAST_STAGES { fit } else { LEAST_STAGES }
    }

    /// Adds the products of as many `steps` to the sums of a warpgroup, as `multiply_steps` does, but
    /// with a ring for each operand.
    #[tma_device]
    fn multiply_rings<AB: Multiply<AB, f32>, const BM: u32, const STAGES: u32>(
        sum: &mut Accumulator<f32, 64, BM>,
        of_b: &mut Consumer<(Operand<AB, BN, BK>,), STAGES>,
        of_a: &mut Consumer<(Operand<AB, BM, BK>,), STAGES>,
        steps: u32,
    ) where
        Tile<AB, Shape2<64, BK>, Swizzle128>: Left<64, BK, Element = AB>,
        Operand<AB, BM, BK>: Right<BM, BK, Element = AB>,
    {
        let warpgroup = warpgroup_idx();
        let b = of_b.wait();
        let mut reading = of_a.wait(); // until `flight` returns the slot of B
        let mut flight = sum.mma(b.0.batch(0).band::<64>(warpgroup), reading.0, b);
        for _ in 1..steps {
            let (b, a) = (of_b.wait(), of_a.wait());
            let done = flight.mma(b.0.batch(0).band::<64>(warpgroup), a.0, b);
            if elect_one() {
                done.release();
                reading.release();
            }
            reading = a;
        }
        let last = flight.wait();
        if elect_one() {
            last.release();
            reading.release();
        }
    }

    /// Computes a tile of `m` × `BN` elements of C per cluster, whose blocks divide `k`. `c_row` are
    /// the elements from one row of C to the next. Each cluster begins `k_shift` steps along K after
    /// the one before it, and wraps around (docs/gemm-tiles.md, "Few rows").
    ///
    /// A block reads B before the previous kernel has ended if `is_constant`. Otherwise it only
    /// fetches the first `fetched` steps into the L2 cache. That is no access: what the previous
    /// kernel still writes to B is in the cache, too, when this one loads it.
    #[tma_kernel(threads = THREADS, cluster = launch, min_blocks = 2, unchecked, instances(
        let STAGES = stages(BM),
        let RECEIVED = received(BM, BN);

        (AB, C) in [bf16 = (bf16, bf16), f16 = (f16, f16), bf16_f32 = (bf16, f32), f16_f32 = (f16, f32)],
        BM in [t8x128 = 8, t16x128 = 16, t32x128 = 32, t64x128 = 64];
    ))]
    pub fn multiply<AB, C, const BM: u32, const STAGES: u32, const RECEIVED: u32>(
        a: TensorMap<Operand<AB, BM, BK>>,
        b: TensorMap<Operand<AB, BN, BK>>,
        c: Global<C>,
        m: u32,
        n: u32,
        k: u32,
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
        AB: Multiply<AB, f32>,
        C: TileElement + Number,
        Tile<AB, Shape2<64, BK>, Swizzle128>: Left<64, BK, Element = AB>,
        Operand<AB, BM, BK>: Right<BM, BK, Element = AB>,
    {
        assume(k > 0);
        let ring_b: Pipeline<(Operand<AB, BN, BK>,), STAGES> = shared();
        let ring_a: Pipeline<(Operand<AB, BM, BK>,), STAGES> = shared();
        let sums: SharedArray<f32, RECEIVED> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring_b.init(WARPS); // one arrival per multiplying warp
            ring_a.init(WARPS);
            fence_barrier_init();
        }
        sync_cluster(); // also because blocks send each other sums
        grid_dependency_launch(); // the next kernel may begin to prepare

        let parts = cluster_dim().x;
        let column = cluster_idx().x * BN;
        let each = k.div_ceil(BK).div_ceil(parts); // past the end of K are zeros
        let steps = Steps { first: cluster_rank() * each, count: each, start: cluster_idx().x * k_shift };
        if warpgroup_idx() == WARPS / 4 {
            if warp_idx() == WARPS && elect_one() {
                if !is_constant {
                    for i in 0..min(each, fetched) {
                        b.prefetch([0, column, nth_step(steps, i) * BK]);
                    }
                    grid_dependency_wait();
                }
                let mut producer = ring_b.producer();
                for i in 0..each {
                    let slot = producer.acquire();
                    b.load(slot.0, [0, column, nth_step(steps, i) * BK], slot.barrier());
                }
            }
            if warp_idx() > WARPS && elect_one() {
                grid_dependency_wait();
                let mut producer = ring_a.producer();
                for i in 0..each {
                    let slot = producer.acquire();
                    a.load(slot.0, [0, 0, nth_step(steps, i) * BK], slot.barrier());
                }
            }
        } else {
            let (mut of_b, mut of_a) = (ring_b.consumer(), ring_a.consumer());
            let mut sum = Accumulator::<f32, 64, BM>::zero();
            multiply_rings::<AB, BM, STAGES>(&mut sum, &mut of_b, &mut of_a, each);
            send_sums::<BM, BN, RECEIVED>(&sum, sums, warpgroup_idx(), m);
        }
        sync_cluster(); // the sums of all blocks have arrived
        grid_dependency_wait(); // returns at once, since A has been read

        let share = BN / parts;
        let first = column + cluster_rank() * share;
        for item in (thread_idx().x..m * share).step_by(THREADS as usize) {
            let at = [item / share, item % share];
            let to = first + at[1];
            if to < n {
                let place = at[0] as u64 * c_row + to as u64;
                let mut x = alpha * total::<BM, BN, RECEIVED>(sums, at);
                if beta != 0.0 {
                    x += beta * cast::<f32>(c.get(place));
                }
                if let Some(residual) = residual {
                    x += cast::<f32>(residual.get(at[0] as u64 * n as u64 + to as u64));
                }
                if let Some(bias) = bias {
                    x += cast::<f32>(bias.get(to));
                }
                c.set(place, cast::<C>(activated(x, activation)));
            }
        }
    }
}
