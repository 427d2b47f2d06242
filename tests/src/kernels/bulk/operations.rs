//! Bulk reductions by every operation, into global memory and into another block. They are compared
//! with the same plain Rust as those of the conformance table.

use tma_model::ReduceOp;
use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::conformance::Reduce;

pub(super) const CASES: &[Case] = &[Case { name: "bulk::every_operation", run: every_operation }];

/// Each block reduces its part of `src` into its part of `sums`, and into the other block's array,
/// which is written to `out`. `op` is the number of the operation.
#[tma_kernel(threads = 32, cluster = 2)]
pub fn bulk_operations(src: Global<u32>, sums: Global<u32>, out: Global<u32>, op: u32) {
    let mine: SharedArray<u32, 32> = shared();
    let reduced: SharedArray<u32, 32> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let first = block_idx().x * 32;
    mine.set(t, src.get(first + t));
    reduced.set(t, sums.get(first + t));
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(32 * 4);
    }
    fence_proxy_async();
    sync_cluster();
    if t == 0 {
        match op {
            // for op in ReduceOp: {i or _} => sums.bulk_reduce_{op}(first, mine, 0, 32),
            0 => sums.bulk_reduce_add(first, mine, 0, 32),
            1 => sums.bulk_reduce_min(first, mine, 0, 32),
            2 => sums.bulk_reduce_max(first, mine, 0, 32),
            3 => sums.bulk_reduce_inc(first, mine, 0, 32),
            4 => sums.bulk_reduce_dec(first, mine, 0, 32),
            5 => sums.bulk_reduce_and(first, mine, 0, 32),
            6 => sums.bulk_reduce_or(first, mine, 0, 32),
            _ => sums.bulk_reduce_xor(first, mine, 0, 32),
            // end for
        }
        bulk_commit_group();
        let other = 1 - cluster_rank();
        let done = remote(full, other);
        match op {
            // for op in ReduceOp: {i or _} => mine.bulk_reduce_{op}_to(remote(reduced, other), 0, 32, done),
            0 => mine.bulk_reduce_add_to(remote(reduced, other), 0, 32, done),
            1 => mine.bulk_reduce_min_to(remote(reduced, other), 0, 32, done),
            2 => mine.bulk_reduce_max_to(remote(reduced, other), 0, 32, done),
            3 => mine.bulk_reduce_inc_to(remote(reduced, other), 0, 32, done),
            4 => mine.bulk_reduce_dec_to(remote(reduced, other), 0, 32, done),
            5 => mine.bulk_reduce_and_to(remote(reduced, other), 0, 32, done),
            6 => mine.bulk_reduce_or_to(remote(reduced, other), 0, 32, done),
            _ => mine.bulk_reduce_xor_to(remote(reduced, other), 0, 32, done),
            // end for
        }
        bulk_wait_group_read::<0>();
    }
    full.wait(0);
    out.set(first + t, reduced.get(t));
    sync_cluster();
}

fn every_operation(device: &Device, _: &Options) -> anyhow::Result<()> {
    for (number, op) in ReduceOp::ALL.into_iter().enumerate() {
        let operands = |seed| (0..64).map(move |i| u32::operand(op, seed, i));
        let (source, before): (Vec<_>, Vec<_>) = (operands(571).collect(), operands(572).collect());
        let wanted = |with: &dyn Fn(usize) -> u32| -> Vec<u32> {
            before.iter().enumerate().filter_map(|(i, old)| old.reduced(op, with(i))).collect()
        };
        let mut sums = device.tensor(&before, [64])?;
        let mut out = device.filled_bytes([64], 0xab)?;
        bulk_operations::launch(
            device,
            2,
            &device.tensor(&source, [64])?,
            &mut sums,
            &mut out,
            number as u32,
        )?;
        same(&format!("{}: global memory", op.name()), &sums.to_vec()?, &wanted(&|i| source[i]))?;
        same(
            &format!("{}: the other block", op.name()),
            &out.to_vec()?,
            &wanted(&|i| source[(i + 32) % 64]),
        )?;
    }
    Ok(())
}
