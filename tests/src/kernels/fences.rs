//! Fences of global memory: between blocks, and between threads and the copy engine.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "fences::last_block", run: last_block },
    Case { name: "fences::written_then_loaded", run: written_then_loaded },
    Case { name: "fences::written_then_reduced", run: written_then_reduced },
];

/// Each block sums its 256 values, and the block that finishes last adds up the sums of all
/// blocks.
#[tma_kernel(threads = 128)]
pub fn fence_last_block(values: Global<u32>, parts: Global<u32>, finished: Global<u32>, total: Global<u32>) {
    let sums: SharedArray<u32, 128> = shared();
    let is_last: SharedArray<bool, 1> = shared();
    let t = thread_idx().x;
    let first = block_idx().x * 256 + t;
    sums.set(t, values.get(first) + values.get(first + 128));
    sync_threads();
    if t == 0 {
        let mut part = 0;
        for i in 0..128 {
            part += sums.get(i);
        }
        parts.set(block_idx().x, part);
        fence();
        let before = finished.atomic_add(0, 1);
        fence();
        is_last.set(0, before == grid_dim().x - 1);
    }
    sync_threads();
    if is_last.get(0) {
        let mut sum = 0;
        for block in (t..grid_dim().x).step_by(128) {
            sum += parts.get(block);
        }
        total.atomic_add(0, sum);
    }
}

fn last_block(device: &Device, options: &Options) -> anyhow::Result<()> {
    let blocks = options.elements(4096).min(4096) as u32;
    let values = noise::<u32>(811, blocks as usize * 256);
    let src = device.tensor(&values, [values.len()])?;
    let (mut finished, mut total) = (device.zeros([1])?, device.zeros([1])?);
    let wanted = values.iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
    for round in 1..=4 {
        let mut parts = device.filled_bytes([blocks as usize], 0xab)?;
        finished.copy_from(&[0])?;
        fence_last_block::launch(device, blocks, &src, &mut parts, &mut finished, &mut total)?;
        same("the total", &total.to_vec()?, &[wanted.wrapping_mul(round)])?;
    }
    Ok(())
}

/// Changes 256 values in place, and copies the new values in reverse order.
#[tma_kernel(threads = 128)]
pub fn fence_then_load(values: Global<u32>, out: Global<u32>) {
    let part: SharedArray<u32, 256> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let first = block_idx().x * 256;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
    }
    for i in (t..256).step_by(128) {
        values.set(first + i, values.get(first + i) * 3 + i);
    }
    fence_proxy_async_global();
    sync_threads();
    if t == 0 {
        full.arrive_expect_tx(256 * 4);
        values.bulk_load(part, 0, 256, first, full);
    }
    full.wait(0);
    for i in (t..256).step_by(128) {
        out.set(first + i, part.get(255 - i));
    }
}

fn written_then_loaded(device: &Device, options: &Options) -> anyhow::Result<()> {
    let blocks = options.elements(1024).min(1024);
    let source = noise::<u32>(821, blocks * 256);
    let mut values = device.tensor(&source, [source.len()])?;
    let mut out = device.filled_bytes([source.len()], 0xab)?;
    fence_then_load::launch(device, blocks as u32, &mut values, &mut out)?;
    let changed = |i: usize| source[i].wrapping_mul(3).wrapping_add(i as u32 % 256);
    let wanted: Vec<u32> = (0..source.len()).map(|i| changed(i / 256 * 256 + 255 - i % 256)).collect();
    same("what was loaded", &out.to_vec()?, &wanted)
}

/// Writes 64 sums, to which the copy engine then adds a row.
#[tma_kernel(threads = 64)]
pub fn fence_then_reduce(start: u32, sums: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    let t = thread_idx().x;
    let first = block_idx().x * 64;
    sums.set(first + t, start + t);
    row.set(t, t * t);
    fence_proxy_async_global();
    fence_proxy_async();
    sync_threads();
    if t == 0 {
        sums.bulk_reduce_add(first, row, 0, 64);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn written_then_reduced(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut sums = device.filled_bytes([8 * 64], 0xab)?;
    fence_then_reduce::launch(device, 8, 1000, &mut sums)?;
    let wanted: Vec<u32> = (0..8 * 64).map(|i| 1000 + i % 64 + (i % 64) * (i % 64)).collect();
    same("the sums", &sums.to_vec()?, &wanted)
}
