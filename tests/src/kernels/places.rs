//! Thread and block indices, barriers, and global memory.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::{noise, samples};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "places::three_dimensions", run: three_dimensions },
    Case { name: "places::warps", run: warps },
    Case { name: "places::named_barriers", run: named_barriers },
    Case { name: "places::shared_arrays", run: shared_arrays },
    Case { name: "places::global_memory", run: global_memory },
];

/// Each thread of each block writes its indices.
#[tma_kernel(threads = [4, 3, 2])]
pub fn place_three_dimensions(out: Global<u32>) {
    let t = thread_idx();
    let b = block_idx();
    let d = block_dim();
    let g = grid_dim();
    let thread = (t.z * d.y + t.y) * d.x + t.x;
    let block = (b.z * g.y + b.y) * g.x + b.x;
    let who =
        t.x | t.y << 4 | t.z << 8 | b.x << 12 | b.y << 16 | b.z << 20 | warp_idx() << 24 | lane_idx() << 26;
    out.set(block * (d.x * d.y * d.z) + thread, who);
}

fn three_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut wanted = vec![];
    for block in 0..5 * 7 * 2u32 {
        let (bx, by, bz) = (block % 5, block / 5 % 7, block / 35);
        for thread in 0..24 {
            let (x, y, z) = (thread % 4, thread / 4 % 3, thread / 12);
            wanted.push(x | y << 4 | z << 8 | bx << 12 | by << 16 | bz << 20 | thread << 26);
        }
    }
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    place_three_dimensions::launch(device, (5, 7, 2), &mut out)?;
    same("places", &out.to_vec()?, &wanted)
}

/// Warps, lanes and warpgroups of a block of several dimensions, and one elected thread per warp.
/// The block has three dimensions.
#[tma_kernel(threads = [16, 8, 2])]
pub fn place_warps(out: Global<u32>, elections: Global<u32>) {
    let linear = (thread_idx().z * 8 + thread_idx().y) * 16 + thread_idx().x;
    let elected: SharedArray<u32, 256> = shared();
    out.set(linear, warpgroup_idx() * 10_000 + warp_idx() * 100 + lane_idx());
    elected.set(linear, elect_one() as u32);
    sync_warp();
    if lane_idx() == 0 {
        let mut count = 0;
        for lane in 0..32 {
            count += elected.get(warp_idx() * 32 + lane);
        }
        elections.set(warp_idx(), count);
    }
}

fn warps(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut out = device.filled_bytes([256], 0xab)?;
    let mut elections = device.filled_bytes([8], 0xab)?;
    place_warps::launch(device, 1, &mut out, &mut elections)?;
    let wanted: Vec<u32> = (0..256).map(|t| t / 128 * 10_000 + t / 32 * 100 + t % 32).collect();
    same("warps", &out.to_vec()?, &wanted)?;
    same("elected threads of each warp", &elections.to_vec()?, &[1; 8])
}

/// Each pair of warps has its own barrier, and synchronises at its own pace.
#[tma_kernel(threads = 128)]
pub fn place_named_barriers(out: Global<u32>) {
    let values: SharedArray<u32, 128> = shared();
    let t = thread_idx().x;
    let pair = t / 64;
    let mut mine = t;
    for _ in 0..(pair + 1) * 50 {
        values.set(t, mine);
        named_barrier_sync(pair + 1, 64);
        mine += 3 * values.get(pair * 64 + (t + 33) % 64);
        named_barrier_sync(pair + 1, 64);
    }
    if pair == 0 {
        named_barrier_sync(15, 64);
    }
    out.set(t, mine);
}

fn named_barriers(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut wanted: Vec<u32> = (0..128).collect();
    for (pair, values) in wanted.chunks_mut(64).enumerate() {
        for _ in 0..(pair + 1) * 50 {
            let old = values.to_vec();
            for (t, value) in values.iter_mut().enumerate() {
                *value = value.wrapping_add(old[(t + 33) % 64].wrapping_mul(3));
            }
        }
    }
    let mut out = device.filled_bytes([128], 0xab)?;
    place_named_barriers::launch(device, 1, &mut out)?;
    same("values", &out.to_vec()?, &wanted)
}

/// Shared arrays of every element size, single and in stages, next to each other.
#[tma_kernel(threads = 64)]
pub fn place_shared_arrays(input: Global<u64>, out: Global<u64>) {
    let flags: SharedArray<bool, 64> = shared();
    let bytes: Stages<SharedArray<i8, 33>, 2> = shared();
    let words: SharedArray<u16, 64> = shared();
    let halves: SharedArray<f16, 64> = shared();
    let floats: Stages<SharedArray<f32, 64>, 3> = shared();
    let wide: SharedArray<u64, 64> = shared();
    let t = thread_idx().x;
    let x = input.get(t);
    flags.set(t, x % 3 == 0);
    bytes[t / 32].set(t % 32, x as i8);
    words.set(t, (x >> 8) as u16);
    halves.set(t, f16::from_bits((x >> 16) as u16 & 0x3fff));
    floats[t % 3].set(t, (x >> 40) as f32);
    wide.set(t, x);
    sync_threads();
    let u = 63 - t;
    let mut sum = wide.get(u) + flags.len() as u64 + floats.len() as u64;
    if flags.get(u) {
        sum += 1;
    }
    sum = sum * 7 + bytes[u / 32].get(u % 32) as u64;
    sum = sum * 7 + words.get(u) as u64;
    sum = sum * 7 + halves.get(u).to_bits() as u64;
    sum = sum * 7 + floats[u % 3].get(u) as u64;
    out.set(t, sum);
}

fn shared_arrays(device: &Device, _: &Options) -> anyhow::Result<()> {
    let inputs = noise::<u64>(51, 64);
    let result = |x: u64| {
        let parts = [x as i8 as u64, x >> 8 & 0xffff, x >> 16 & 0x3fff, x >> 40];
        let first = x.wrapping_add(64 + 3 + u64::from(x.is_multiple_of(3)));
        parts.into_iter().fold(first, |sum, part| sum.wrapping_mul(7).wrapping_add(part))
    };
    let wanted: Vec<u64> = inputs.iter().rev().map(|&x| result(x)).collect();
    let mut out = device.filled_bytes([64], 0xab)?;
    place_shared_arrays::launch(device, 1, &device.tensor(&inputs, [64])?, &mut out)?;
    same("sums", &out.to_vec()?, &wanted)
}

/// Global memory by indices of each type, to the last element; more threads than elements.
#[tma_kernel(threads = 128)]
pub fn place_global_memory(a: Global<u8>, b: Global<bool>, out: Global<u8>, flipped: Global<bool>) {
    let i = block_idx().x * 128 + thread_idx().x;
    if (i as u64) < a.len() {
        let last = a.len() - 1;
        let value = match i % 5 {
            0 => a.get(i),
            1 => a.get(i as i32),
            2 => a.get(i as u64),
            3 => a.get(i as i64),
            _ => a.get(i as usize),
        };
        out.set(last - i as u64, value);
        flipped.set(i, !b.get(last as usize - i as usize));
    }
}

fn global_memory(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(10_000) - 1;
    let (bytes, flags) = (samples::<u8>(52, n), noise::<bool>(53, n));
    let mut out = device.filled_bytes([n], 0xab)?;
    let mut flipped = device.filled_bytes([n], 0xab)?;
    let (a, b) = (device.tensor(&bytes, [n])?, device.tensor(&flags, [n])?);
    place_global_memory::launch(device, Grid::tiles([n], [128]), &a, &b, &mut out, &mut flipped)?;
    same("bytes", &out.to_vec()?, &bytes.into_iter().rev().collect::<Vec<_>>())?;
    same("flags", &flipped.to_vec()?, &flags.into_iter().rev().map(|flag| !flag).collect::<Vec<_>>())
}
