//! Accesses with an order and a scope: their results, and the accesses that they order.

use tma_runtime::prelude::*;

use super::atomics::Integer;
use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::{Sample, noise, samples};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "orders::i32", run: integers::<i32> },
    Case { name: "orders::u32", run: integers::<u32> },
    Case { name: "orders::i64", run: integers::<i64> },
    Case { name: "orders::u64", run: integers::<u64> },
    Case { name: "orders::floats", run: floats },
    Case { name: "orders::vectors", run: vectors },
    Case { name: "orders::compare_exchange", run: products },
    Case { name: "orders::moved_bool", run: moved::<bool> },
    Case { name: "orders::moved_i8", run: moved::<i8> },
    Case { name: "orders::moved_u16", run: moved::<u16> },
    Case { name: "orders::moved_i32", run: moved::<i32> },
    Case { name: "orders::moved_usize", run: moved::<usize> },
    Case { name: "orders::moved_f16", run: moved::<f16> },
    Case { name: "orders::moved_bf16", run: moved::<bf16> },
    Case { name: "orders::moved_f32", run: moved::<f32> },
    Case { name: "orders::moved_f64", run: moved::<f64> },
    Case { name: "orders::moved_tf32", run: moved::<tf32> },
    Case { name: "orders::moved_e4m3", run: moved::<e4m3> },
    Case { name: "orders::last_block", run: last_block },
    Case { name: "orders::messages", run: messages },
    Case { name: "orders::other_blocks", run: other_blocks },
];

/// Every operation on integers: each block combines its values in shared memory, and the results in
/// global memory.
#[tma_kernel(threads = 128, instances(T in [i32, u32, i64, u64]))]
pub fn order_integers<T: AtomicInteger>(values: Global<T>, all: Global<T>, taken: Global<T>) {
    let of_block: SharedArray<T, 8> = shared();
    let t = thread_idx().x;
    let i = block_idx().x * 128 + t;
    let x = values.get(i);
    if t < 6 {
        of_block.store(t, values.get(block_idx().x * 128), Order::Relaxed, Scope::Block);
    }
    sync_threads();
    if t > 0 {
        of_block.fetch_add(0, x, Order::Relaxed, Scope::Block);
        of_block.fetch_min(1, x, Order::Acquire, Scope::Block);
        of_block.fetch_max(2, x, Order::Release, Scope::Cluster);
        of_block.fetch_and(3, x, Order::AcqRel, Scope::Block);
        of_block.fetch_or(4, x, Order::Relaxed, Scope::Cluster);
        of_block.fetch_xor(5, x, Order::Relaxed, Scope::Block);
    }
    sync_threads();
    if t == 0 {
        all.fetch_add(0, of_block.get(0), Order::Relaxed, Scope::Device);
        all.fetch_min(1, of_block.get(1), Order::Acquire, Scope::Device);
        all.fetch_max(2, of_block.get(2), Order::Release, Scope::System);
        all.fetch_and(3, of_block.get(3), Order::AcqRel, Scope::Device);
        all.fetch_or(4, of_block.get(4), Order::Relaxed, Scope::System);
        all.fetch_xor(5, of_block.get(5), Order::Relaxed, Scope::Device);
    }
    taken.set(i, all.swap(6, x, Order::AcqRel, Scope::Device));
}

fn integers<T: Integer>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    order_integers::Instance<T>: order_integers::Compiled,
{
    let n = options.elements(1 << 13).next_multiple_of(128);
    let values = samples::<T>(931, n);
    let first = noise::<T>(932, 7);
    let start = [first[0], first[1], first[2], first[3], first[4], first[5]];
    let wanted = values.iter().fold(start, |all, &x| T::fold(all, x));

    let mut all = device.tensor(&first, [7])?;
    let mut taken = device.filled_bytes([n], 0xab)?;
    let device_values = device.tensor(&values, [n])?;
    order_integers::launch::<T>(device, Grid::tiles([n], [128]), &device_values, &mut all, &mut taken)?;
    let all = all.to_vec()?;
    same("add, min, max, and, or, xor", &all[..6], &wanted)?;

    // Each value that was swapped in was returned to one thread, except for the last.
    let mut put = [values, vec![first[6]]].concat();
    let mut gone = [taken.to_vec()?, vec![all[6]]].concat();
    put.sort_unstable();
    gone.sort_unstable();
    same("swapped values, sorted", &gone, &put)
}

/// Sums that need no rounding, in global and in shared memory.
#[tma_kernel(threads = 64)]
pub fn order_floats(half: Global<f16>, brain: Global<bf16>, single: Global<f32>, double: Global<f64>) {
    let halves: SharedArray<f16, 2> = shared();
    let brains: SharedArray<bf16, 2> = shared();
    let singles: SharedArray<f32, 1> = shared();
    let doubles: SharedArray<f64, 1> = shared();
    let t = thread_idx().x;
    if t < 2 {
        halves.set(t, f16::ZERO);
        brains.set(t, bf16::ZERO);
        singles.store(0, 0.5, Order::Relaxed, Scope::Block);
        doubles.store(0, 0.25, Order::Relaxed, Scope::Block);
    }
    sync_threads();
    halves.fetch_add(t % 2, f16::ONE, Order::Relaxed, Scope::Block);
    brains.fetch_add(t % 2, bf16::ONE, Order::AcqRel, Scope::Block);
    singles.fetch_add(0, t as f32, Order::Relaxed, Scope::Block);
    doubles.fetch_add(0, t as f64, Order::Relaxed, Scope::Block);
    half.fetch_add(1, f16::ONE, Order::Relaxed, Scope::Device);
    brain.fetch_add(1, bf16::ONE, Order::Release, Scope::Device);
    single.fetch_add(1, t as f32, Order::Acquire, Scope::System);
    double.fetch_add(1, t as f64, Order::AcqRel, Scope::Device);
    sync_threads();
    if t == 0 {
        half.set(0, halves.get(0) + halves.get(1));
        brain.set(0, brains.get(0) + brains.get(1));
        single.set(0, singles.swap(0, 7.0, Order::Relaxed, Scope::Block));
        // The bits of 0.0 and of -0.0 differ.
        double.set(2, double.compare_exchange(3, 0.0, 5.0, Order::Relaxed, Scope::Device));
        double.set(0, doubles.get(0) + double.compare_exchange(3, -0.0, 5.0, Order::Relaxed, Scope::Device));
    }
}

fn floats(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut half = device.tensor(&[f16::ZERO, f16::from_f32(0.5)], [2])?;
    let mut brain = device.tensor(&[bf16::ZERO, bf16::from_f32(0.5)], [2])?;
    let mut single = device.tensor(&[0.0f32, 0.25], [2])?;
    let mut double = device.tensor(&[0.0f64, 0.125, 1.0, -0.0], [4])?;
    order_floats::launch(device, 1, &mut half, &mut brain, &mut single, &mut double)?;
    let sum = 64.0 * 63.0 / 2.0;
    same("f16", &half.to_vec()?, &[f16::from_f32(64.0), f16::from_f32(64.5)])?;
    same("bf16", &brain.to_vec()?, &[bf16::from_f32(64.0), bf16::from_f32(64.5)])?;
    same("f32", &single.to_vec()?, &[sum as f32 + 0.5, sum as f32 + 0.25])?;
    same("f64", &double.to_vec()?, &[sum + 0.25, sum + 0.125, -0.0, 5.0])
}

/// Each block adds the same vectors, relaxed and with release.
#[tma_kernel(threads = 32)]
pub fn order_vectors(single: Global<f32>, half: Global<f16>, brain: Global<bf16>) {
    let t = thread_idx().x;
    let x = t as f32;
    single.add_vec(t * 4, [x, x + 1.0, x + 2.0, x + 3.0], Order::Relaxed, Scope::Device);
    single.add_vec(t * 2u32, [1.0, -1.0], Order::Release, Scope::System);
    let a = f16::from_f32(x);
    let b = f16::from_f32(0.5);
    half.add_vec(t * 8, [a, b, a, b, a, b, b, a], Order::Relaxed, Scope::Device);
    half.add_vec(t * 4, [b, a, a, b], Order::Release, Scope::Device);
    let c = bf16::from_f32(x);
    brain.add_vec(t * 2, [c, bf16::ONE], Order::Relaxed, Scope::Device);
    brain.add_vec(0, [bf16::ZERO; 8], Order::Relaxed, Scope::Device);
}

fn vectors(device: &Device, _: &Options) -> anyhow::Result<()> {
    const BLOCKS: u32 = 4;
    let mut single = device.zeros([128])?;
    let mut half = device.zeros([256])?;
    let mut brain = device.zeros([64])?;
    order_vectors::launch(device, BLOCKS, &mut single, &mut half, &mut brain)?;
    let (mut singles, mut halves, mut brains) = ([0f32; 128], [0f32; 256], [0f32; 64]);
    for t in 0..32 {
        let (x, times) = (t as f32, BLOCKS as f32);
        for k in 0..4 {
            singles[t * 4 + k] += times * (x + k as f32);
        }
        singles[t * 2] += times;
        singles[t * 2 + 1] -= times;
        for (k, value) in [x, 0.5, x, 0.5, x, 0.5, 0.5, x].into_iter().enumerate() {
            halves[t * 8 + k] += times * value;
        }
        for (k, value) in [0.5, x, x, 0.5].into_iter().enumerate() {
            halves[t * 4 + k] += times * value;
        }
        brains[t * 2] += times * x;
        brains[t * 2 + 1] += times;
    }
    same("f32", &single.to_vec()?, &singles)?;
    same("f16", &half.to_vec()?, &halves.map(f16::from_f32))?;
    same("bf16", &brain.to_vec()?, &brains.map(bf16::from_f32))
}

/// An operation that the hardware does not have: each thread multiplies.
#[tma_kernel(threads = 64)]
pub fn order_products(values: Global<u64>, product: Global<u64>) {
    let x = values.get(block_idx().x * 64 + thread_idx().x);
    let mut seen = product.load(0, Order::Relaxed, Scope::Device);
    loop {
        let found = product.compare_exchange(0, seen, seen * x, Order::Relaxed, Scope::Device);
        if found == seen {
            break;
        }
        seen = found;
    }
}

fn products(device: &Device, _: &Options) -> anyhow::Result<()> {
    let values: Vec<u64> = noise::<u64>(941, 256).into_iter().map(|x| x | 1).collect();
    let mut product = device.tensor(&[3u64], [1])?;
    order_products::launch(device, 4, &device.tensor(&values, [256])?, &mut product)?;
    let wanted = values.iter().fold(3u64, |product, &x| product.wrapping_mul(x));
    same("product", &product.to_vec()?, &[wanted])
}

/// A load and a store of every size, through shared memory.
#[tma_kernel(threads = 64, instances(T in [
    bool, i8, u16, i32, usize, f16, bf16, f32, f64, tf32, e4m3,
]))]
pub fn order_moved<T: Scalar>(src: Global<T>, dst: Global<T>) {
    let row: SharedArray<T, 64> = shared();
    let t = thread_idx().x;
    let first = block_idx().x * 64;
    row.store(t, src.load(first + t, Order::Acquire, Scope::Device), Order::Release, Scope::Block);
    sync_threads();
    dst.store(first + t, row.load(63 - t, Order::Acquire, Scope::Block), Order::Release, Scope::System);
}

fn moved<T: Sample>(device: &Device, _: &Options) -> anyhow::Result<()>
where
    order_moved::Instance<T>: order_moved::Compiled,
{
    let values = samples::<T>(951, 256);
    let mut dst = device.filled_bytes([256], 0)?;
    order_moved::launch::<T>(device, 4, &device.tensor(&values, [256])?, &mut dst)?;
    let wanted: Vec<T> = values.chunks(64).flat_map(|row| row.iter().rev().copied()).collect();
    same("moved", &dst.to_vec()?, &wanted)
}

/// The block that finishes last adds up the sums of all blocks: the count both releases a block's
/// sum and acquires those of the others.
#[tma_kernel(threads = 64)]
pub fn order_last_block(values: Global<u32>, parts: Global<u32>, finished: Global<u32>, total: Global<u32>) {
    let part: SharedArray<u32, 1> = shared();
    let is_last: SharedArray<bool, 1> = shared();
    let t = thread_idx().x;
    if t == 0 {
        part.set(0, 0);
    }
    sync_threads();
    part.fetch_add(0, values.get(block_idx().x * 64 + t), Order::Relaxed, Scope::Block);
    sync_threads();
    if t == 0 {
        parts.set(block_idx().x, part.get(0));
        let before = finished.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        is_last.set(0, before == grid_dim().x - 1);
    }
    sync_threads();
    if is_last.get(0) {
        for block in (t..grid_dim().x).step_by(64) {
            total.fetch_add(0, parts.get(block), Order::Relaxed, Scope::Device);
        }
    }
}

fn last_block(device: &Device, options: &Options) -> anyhow::Result<()> {
    let blocks = options.elements(2048).min(2048) as u32;
    let values = noise::<u32>(961, blocks as usize * 64);
    let mut parts = device.filled_bytes([blocks as usize], 0xab)?;
    let (mut finished, mut total) = (device.zeros([1])?, device.zeros([1])?);
    let src = device.tensor(&values, [values.len()])?;
    order_last_block::launch(device, blocks, &src, &mut parts, &mut finished, &mut total)?;
    let wanted = values.iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
    same("the total", &total.to_vec()?, &[wanted])
}

/// The first block of each cluster writes a message, and the second copies it.
#[tma_kernel(threads = 64, cluster = 2)]
pub fn order_messages(words: Global<u32>, message: Global<u32>, flags: Global<u32>, received: Global<u32>) {
    let i = cluster_idx().x * 64 + thread_idx().x;
    if cluster_rank() == 0 {
        message.set(i, words.get(i));
        sync_threads();
        if thread_idx().x == 0 {
            flags.store(cluster_idx().x, 1, Order::Release, Scope::Cluster);
        }
    } else {
        while flags.load(cluster_idx().x, Order::Acquire, Scope::Cluster) == 0 {}
        received.set(i, message.get(i));
    }
}

fn messages(device: &Device, _: &Options) -> anyhow::Result<()> {
    const CLUSTERS: usize = 16;
    let words = noise::<u32>(971, CLUSTERS * 64);
    let mut message = device.filled_bytes([CLUSTERS * 64], 0xab)?;
    let mut received = device.filled_bytes([CLUSTERS * 64], 0xcd)?;
    let mut flags = device.zeros([CLUSTERS])?;
    let src = device.tensor(&words, [words.len()])?;
    order_messages::launch(device, 2 * CLUSTERS as u32, &src, &mut message, &mut flags, &mut received)?;
    same("messages", &received.to_vec()?, &words)
}

/// Each block counts in the memory of the next one of its cluster, and writes out its own
/// counts.
#[tma_kernel(threads = 64, cluster = 4)]
pub fn order_other_blocks(values: Global<u32>, out: Global<u32>) {
    let found: SharedArray<u32, 5> = shared();
    let t = thread_idx().x;
    if t < 5 {
        found.store(t, 0, Order::Relaxed, Scope::Cluster);
    }
    sync_cluster();
    let x = values.get(block_idx().x * 64 + t);
    let next = remote(found, (cluster_rank() + 1) % 4);
    next.fetch_add(0, x, Order::Relaxed, Scope::Cluster);
    next.fetch_max(1, x, Order::AcqRel, Scope::Cluster);
    next.fetch_xor(2, x, Order::Release, Scope::Cluster);
    if t == 0 {
        next.store(3, x, Order::Release, Scope::Cluster);
        if next.compare_exchange(4, 0, x + 1, Order::AcqRel, Scope::Cluster) != 0 {
            trap();
        }
    }
    sync_cluster();
    if t < 5 {
        out.set(block_idx().x * 5 + t, found.load(t, Order::Acquire, Scope::Block));
    }
}

fn other_blocks(device: &Device, _: &Options) -> anyhow::Result<()> {
    const BLOCKS: usize = 8;
    let values = noise::<u32>(981, BLOCKS * 64);
    let mut out = device.filled_bytes([BLOCKS * 5], 0xab)?;
    order_other_blocks::launch(device, BLOCKS as u32, &device.tensor(&values, [values.len()])?, &mut out)?;
    let mut wanted = vec![];
    for block in 0..BLOCKS {
        let before = block / 4 * 4 + (block + 3) % 4;
        let of = &values[before * 64..][..64];
        wanted.push(of.iter().fold(0u32, |sum, &x| sum.wrapping_add(x)));
        wanted.push(of.iter().copied().max().unwrap_or_default());
        wanted.push(of.iter().fold(0, |bits, &x| bits ^ x));
        wanted.extend([of[0], of[0].wrapping_add(1)]);
    }
    same("what other blocks counted", &out.to_vec()?, &wanted)
}
