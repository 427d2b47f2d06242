//! Bulk reductions of every operation and element type. Block `b` reduces elements `128 b..` of
//! `src` into those of `dst`.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::{Sample, hash};

pub(super) const CASES: &[Case] = &[
    Case { name: "bulk::add", run: add },
    Case { name: "bulk::min_and_max", run: min_and_max },
    Case { name: "bulk::inc_and_dec", run: inc_and_dec },
    Case { name: "bulk::and_or_and_xor", run: and_or_and_xor },
];

/// Adds.
#[tma_kernel(threads = 32, instances(u32s = <u32, 4>, i32s = <i32, 4>, u64s = <u64, 8>, f16s = <f16, 2>, bf16s = <bf16, 2>, f32s = <f32, 4>, f64s = <f64, 8>))]
pub fn bulk_add<T: BulkAdd, const BYTES: u32>(src: Global<T>, dst: Global<T>) {
    let part: SharedArray<T, 128> = shared();
    let full: Barrier = shared();
    let i = block_idx().x * 128;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(128 * BYTES);
        src.bulk_load(part, 0, 128, i, full);
        full.wait(0);
        dst.hint(l2_evict_last(1.0)).bulk_reduce_add(i, part, 0, 128);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Takes the minimum, or the maximum.
#[tma_kernel(threads = 32, instances(
    GREATER in [min = false, max = true],
    (T, BYTES) in [u32 = (u32, 4), i32 = (i32, 4), u64 = (u64, 8), i64 = (i64, 8), f16 = (f16, 2), bf16 = (bf16, 2)],
))]
pub fn bulk_order<T: BulkOrder, const BYTES: u32, const GREATER: bool>(src: Global<T>, dst: Global<T>) {
    let part: SharedArray<T, 128> = shared();
    let full: Barrier = shared();
    let i = block_idx().x * 128;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(128 * BYTES);
        src.bulk_load(part, 0, 128, i, full);
        full.wait(0);
        if GREATER {
            dst.bulk_reduce_max(i, part, 0, 128);
        } else {
            dst.bulk_reduce_min(i, part, 0, 128);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Counts up, or down.
#[tma_kernel(threads = 32, instances(inc = <u32, 4, true>, dec = <u32, 4, false>))]
pub fn bulk_count<T: BulkCount, const BYTES: u32, const UP: bool>(src: Global<T>, dst: Global<T>) {
    let part: SharedArray<T, 128> = shared();
    let full: Barrier = shared();
    let i = block_idx().x * 128;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(128 * BYTES);
        src.bulk_load(part, 0, 128, i, full);
        full.wait(0);
        if UP {
            dst.bulk_reduce_inc(i, part, 0, 128);
        } else {
            dst.bulk_reduce_dec(i, part, 0, 128);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Combines bits: `and` (0), `or` (1), `xor` (2).
#[tma_kernel(threads = 32, instances(
    OP in [and = 0, or = 1, xor = 2],
    (T, BYTES) in [u32 = (u32, 4), i32 = (i32, 4), u64 = (u64, 8), i64 = (i64, 8)],
))]
pub fn bulk_bits<T: BulkBits, const BYTES: u32, const OP: u32>(src: Global<T>, dst: Global<T>) {
    let part: SharedArray<T, 128> = shared();
    let full: Barrier = shared();
    let i = block_idx().x * 128;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(128 * BYTES);
        src.bulk_load(part, 0, 128, i, full);
        full.wait(0);
        match OP {
            0 => dst.bulk_reduce_and(i, part, 0, 128),
            1 => dst.bulk_reduce_or(i, part, 0, 128),
            _ => dst.bulk_reduce_xor(i, part, 0, 128),
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// The number of elements: three blocks.
const N: usize = 3 * 128;

/// Reduces `operands` into `before`, and compares with plain Rust.
fn check<T: Sample>(
    what: &str,
    device: &Device,
    before: impl Fn(u64) -> T,
    operand: impl Fn(u64) -> T,
    combine: impl Fn(T, T) -> T,
    launch: impl Fn(&DeviceTensor<T, 1>, &mut DeviceTensor<T, 1>) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let before: Vec<T> = (0..N as u64).map(before).collect();
    let operands: Vec<T> = (0..N as u64).map(operand).collect();
    let mut dst = device.tensor(&before, [N])?;
    launch(&device.tensor(&operands, [N])?, &mut dst)?;
    let wanted: Vec<T> = before.iter().zip(&operands).map(|(&old, &operand)| combine(old, operand)).collect();
    same(what, &dst.to_vec()?, &wanted)
}

/// Returns random bits, or for floats, numbers of many digits and similar magnitude.
fn number<T: Sample>(seed: u64) -> impl Fn(u64) -> T {
    move |i| T::random(hash(seed, i) & !1)
}

fn add(device: &Device, _: &Options) -> anyhow::Result<()> {
    macro_rules! sums {
        ($($ty:ty, $instance:ident, $seed:literal, $sum:expr;)+) => { $(
            check::<$ty>(stringify!($ty), device, number($seed), number($seed + 1), $sum, |src, dst| {
                bulk_add::$instance::launch(device, 3, src, dst)
            })?;
        )+ };
    }
    sums! {
        u32, u32s, 531, u32::wrapping_add;
        i32, i32s, 533, i32::wrapping_add;
        u64, u64s, 535, u64::wrapping_add;
        // Rounding to f32 first is harmless for 16 bits: f32 has over twice their digits, plus two.
        f16, f16s, 537, |a, b| f16::from_f32(a.to_f32() + b.to_f32());
        bf16, bf16s, 539, |a, b| bf16::from_f32(a.to_f32() + b.to_f32());
        f32, f32s, 541, |a, b| a + b;
        f64, f64s, 543, |a, b| a + b;
    }
    Ok(())
}

fn min_and_max(device: &Device, _: &Options) -> anyhow::Result<()> {
    /// An integer plus a half, never 0: no document says which of two zeros is the smaller.
    fn small(i: u64) -> f32 {
        (hash(551, i) % 16) as f32 - 8.5
    }
    macro_rules! both {
        ($($ty:ty, $min:ident, $max:ident, $before:expr, $operand:expr;)+) => { $(
            check::<$ty>(stringify!($min), device, $before, $operand, <$ty>::min, |src, dst| {
                bulk_order::$min::launch(device, 3, src, dst)
            })?;
            check::<$ty>(stringify!($max), device, $before, $operand, <$ty>::max, |src, dst| {
                bulk_order::$max::launch(device, 3, src, dst)
            })?;
        )+ };
    }
    both! {
        u32, min_u32, max_u32, number(552), number(553);
        i32, min_i32, max_i32, number(554), number(555);
        u64, min_u64, max_u64, number(556), number(557);
        i64, min_i64, max_i64, number(558), number(559);
        f16, min_f16, max_f16, |i| f16::from_f32(small(i)), |i| f16::from_f32(small(i + 1000));
        bf16, min_bf16, max_bf16, |i| bf16::from_f32(small(i)), |i| bf16::from_f32(small(i + 1000));
    }
    Ok(())
}

fn inc_and_dec(device: &Device, _: &Options) -> anyhow::Result<()> {
    let before = |i| [0, 1, 2, 3, 6, u32::MAX - 1, u32::MAX][hash(561, i) as usize % 7];
    let bound = |i| [0, 1, 2, 5, u32::MAX][hash(562, i) as usize % 5];
    let inc = |old: u32, bound: u32| if old >= bound { 0 } else { old + 1 };
    check("inc", device, before, bound, inc, |src, dst| bulk_count::inc::launch(device, 3, src, dst))?;
    let dec = |old: u32, bound: u32| if old == 0 || old > bound { bound } else { old - 1 };
    check("dec", device, before, bound, dec, |src, dst| bulk_count::dec::launch(device, 3, src, dst))
}

fn and_or_and_xor(device: &Device, _: &Options) -> anyhow::Result<()> {
    macro_rules! all {
        ($($ty:ty, $and:ident, $or:ident, $xor:ident;)+) => { $(
            check::<$ty>(stringify!($and), device, number(571), number(572), |a, b| a & b, |src, dst| {
                bulk_bits::$and::launch(device, 3, src, dst)
            })?;
            check::<$ty>(stringify!($or), device, number(573), number(574), |a, b| a | b, |src, dst| {
                bulk_bits::$or::launch(device, 3, src, dst)
            })?;
            check::<$ty>(stringify!($xor), device, number(575), number(576), |a, b| a ^ b, |src, dst| {
                bulk_bits::$xor::launch(device, 3, src, dst)
            })?;
        )+ };
    }
    all! {
        u32, and_u32, or_u32, xor_u32;
        i32, and_i32, or_i32, xor_i32;
        u64, and_u64, or_u64, xor_u64;
        i64, and_i64, or_i64, xor_i64;
    }
    Ok(())
}
