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
    use crate::gemm::device::consumer::multiply_steps;
    use crate::gemm::device::producer::{Operand, Steps, nth_step};
    use crate::gemm::few_rows::exchange::shares::{received, send_sums, total};

    /// Rows of B of a tile, which two warpgroups multiply.
    pub const BN: u32 = 128;

    /// Columns of K of a step: a row of 128 bytes.
    const BK: u32 = 64;

    /// Warps that multiply. One more loads.
    const WARPS: u32 = 8;

    /// Threads of a block.
    const THREADS: u32 = 32 * (WARPS + 1);

    /// Shared memory of a block, in bytes, with which two fit on a multiprocessor, of this kernel or
    /// of this one and the next: that begins to read B while this one ends. Barriers and the
    /// alignment of tiles take up to a kilobyte more, as in `schedule::ring_stages`.
    const SHARED_BYTES: u32 = 112 * 1024;

    /// Returns how many stages fit beside the sums that a block receives.
    pub const fn stages(bm: u32) -> u32 {
        (SHARED_BYTES - 4 * received(bm, BN)) / ((BN + bm) * BK * 2)
    }

    /// Computes a tile of `m` × `BN` elements of C per cluster, whose blocks divide `k`. `c_row` are
    /// the elements from one row of C to the next. Each cluster begins `k_shift` steps along K after
    /// the one before it, and wraps around (docs/gemm-tiles.md, "Few rows").
    ///
    /// B is fetched into the L2 cache before the previous kernel has ended. That is no access: what
    /// that kernel still writes to B is in the cache, too, when this one loads it.
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
        c_row: u64,
        alpha: f32,
        beta: f32,
        residual: Option<Global<C>>,
        bias: Option<Global<C>>,
        activation: u32,
    ) where
        AB: Multiply<AB, f32>,
        C: TileElement + Number,
        Transposed<Tile<AB, Shape2<64, BK>, Swizzle128>, false>: Left<64, BK, Element = AB>,
        Transposed<Operand<AB, BM, BK>, false>: Right<BM, BK, Element = AB>,
    {
        assume(k > 0);
        let ring: Pipeline<(Operand<AB, BN, BK>, Operand<AB, BM, BK>), STAGES> = shared();
        let sums: SharedArray<f32, RECEIVED> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(WARPS); // one arrival per multiplying warp
            fence_barrier_init();
        }
        let parts = cluster_dim().x;
        let column = cluster_idx().x * BN;
        let each = k.div_ceil(BK).div_ceil(parts); // past the end of K are zeros
        let steps = Steps { first: cluster_rank() * each, count: each, start: cluster_idx().x * k_shift };
        let is_producer = warp_idx() == WARPS;
        if is_producer && elect_one() {
            for i in 0..min(each, STAGES) {
                b.prefetch([0, column, nth_step(steps, i) * BK]);
            }
        }
        sync_cluster(); // also because blocks send each other sums
        grid_dependency_launch(); // the next kernel may begin to prepare
        grid_dependency_wait();

        if is_producer {
            if elect_one() {
                let mut producer = ring.producer();
                for i in 0..each {
                    let k = nth_step(steps, i) * BK;
                    let slot = producer.acquire();
                    b.load(slot.0, [0, column, k], slot.barrier());
                    a.load(slot.1, [0, 0, k], slot.barrier());
                }
            }
        } else {
            let mut consumer = ring.consumer();
            let mut sum = Accumulator::<f32, 64, BM>::zero();
            // The operands are exchanged, both with K along their rows. The last generic: slots are
            // released in this block only.
            multiply_steps::<_, _, _, BK, false, false, _, _, _, _, _, false>(
                &mut sum,
                &mut consumer,
                warpgroup_idx(),
                each,
                false,
            );
            send_sums::<BM, BN, RECEIVED>(&sum, sums, warpgroup_idx(), m);
        }
        sync_cluster(); // the sums of all blocks have arrived

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
