//! Warp-wide operations: shuffles of every scalar, votes, matches, and reductions.

use tma_runtime::lang::{Bitwise, Ordered};
use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::{Sample, hash, samples};
use crate::rounding::{Format, sum_to_odd};

/// The number of lanes of a warp.
const LANES: usize = 32;

/// A case that runs the instance for each type.
macro_rules! cases {
    ($($name:literal: $check:ident::<$ty:ty>),+ $(,)?) => {
        &[
            $(Case { name: $name, run: $check::<$ty> },)+
            Case { name: "warps::votes", run: votes },
            Case { name: "warps::partial", run: partial },
        ]
    };
}

/// The cases of this module.
pub const CASES: &[Case] = cases! {
    "warps::shuffles_bool": shuffles::<bool>,
    "warps::shuffles_i8": shuffles::<i8>,
    "warps::shuffles_u8": shuffles::<u8>,
    "warps::shuffles_i16": shuffles::<i16>,
    "warps::shuffles_u16": shuffles::<u16>,
    "warps::shuffles_i32": shuffles::<i32>,
    "warps::shuffles_u32": shuffles::<u32>,
    "warps::shuffles_i64": shuffles::<i64>,
    "warps::shuffles_u64": shuffles::<u64>,
    "warps::shuffles_usize": shuffles::<usize>,
    "warps::shuffles_f16": shuffles::<f16>,
    "warps::shuffles_bf16": shuffles::<bf16>,
    "warps::shuffles_f32": shuffles::<f32>,
    "warps::shuffles_f64": shuffles::<f64>,
    "warps::shuffles_tf32": shuffles::<tf32>,
    "warps::shuffles_e4m3": shuffles::<e4m3>,
    "warps::shuffles_e5m2": shuffles::<e5m2>,
    "warps::matches_u8": matches::<u8>,
    "warps::matches_f16": matches::<f16>,
    "warps::matches_f32": matches::<f32>,
    "warps::matches_i64": matches::<i64>,
    "warps::matches_f64": matches::<f64>,
    "warps::reduced_i8": reduced::<i8>,
    "warps::reduced_u8": reduced::<u8>,
    "warps::reduced_i16": reduced::<i16>,
    "warps::reduced_u16": reduced::<u16>,
    "warps::reduced_i32": reduced::<i32>,
    "warps::reduced_u32": reduced::<u32>,
    "warps::reduced_i64": reduced::<i64>,
    "warps::reduced_u64": reduced::<u64>,
    "warps::reduced_usize": reduced::<usize>,
    "warps::reduced_f16": reduced::<f16>,
    "warps::reduced_bf16": reduced::<bf16>,
    "warps::reduced_f32": reduced::<f32>,
    "warps::reduced_f64": reduced::<f64>,
    "warps::bits_i8": bits_reduced::<i8>,
    "warps::bits_u8": bits_reduced::<u8>,
    "warps::bits_i16": bits_reduced::<i16>,
    "warps::bits_u16": bits_reduced::<u16>,
    "warps::bits_i32": bits_reduced::<i32>,
    "warps::bits_u32": bits_reduced::<u32>,
    "warps::bits_i64": bits_reduced::<i64>,
    "warps::bits_u64": bits_reduced::<u64>,
    "warps::bits_usize": bits_reduced::<usize>,
};

/// Every shuffle, by a constant and by a value that differs among lanes.
#[tma_kernel(threads = 128, instances(
    bool = <bool>, i8 = <i8>, u8 = <u8>, i16 = <i16>, u16 = <u16>, i32 = <i32>, u32 = <u32>, i64 = <i64>, u64 = <u64>,
    usize = <usize>, f16 = <f16>, bf16 = <bf16>, f32 = <f32>, f64 = <f64>, tf32 = <tf32>, e4m3 = <e4m3>, e5m2 = <e5m2>,
))]
pub fn warp_shuffles<T: Scalar>(values: Global<T>, lanes: Global<u32>, out: Global<T>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = values.get(i);
    let by = lanes.get(i);
    out.set(i * 7, shuffle_xor(x, 5));
    out.set(i * 7 + 1, shuffle_xor(x, by));
    out.set(i * 7 + 2, shuffle_up(x, 3));
    out.set(i * 7 + 3, shuffle_up(x, by));
    out.set(i * 7 + 4, shuffle_down(x, 7));
    out.set(i * 7 + 5, shuffle_down(x, by));
    out.set(i * 7 + 6, shuffle_idx(x, by));
}

fn shuffles<T: Sample>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    warp_shuffles::Instance<T>: warp_shuffles::Compiled,
{
    let n = options.elements(1 << 12);
    let values = samples::<T>(31, n);
    let lanes: Vec<u32> = (0..n as u64).map(|i| hash(32, i) as u32 % 32).collect();
    let of = |i: usize, lane: usize| values[i / LANES * LANES + lane];
    let wanted = |i: usize| {
        let (lane, by) = (i % LANES, lanes[i] as usize);
        let up = |by: usize| of(i, lane.checked_sub(by).unwrap_or(lane));
        let down = |by: usize| of(i, if lane + by < LANES { lane + by } else { lane });
        [of(i, lane ^ 5), of(i, lane ^ by), up(3), up(by), down(7), down(by), of(i, by)]
    };
    let wanted: Vec<T> = (0..n).flat_map(wanted).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    let (values, lanes) = (device.tensor(&values, [n])?, device.tensor(&lanes, [n])?);
    warp_shuffles::launch::<T>(device, blocks(n), &values, &lanes, &mut out)?;
    same("shuffled", &out.to_vec()?, &wanted)
}

/// Every vote, by warps in which a condition holds in no lane, in all, and in some.
#[tma_kernel(threads = 128)]
pub fn warp_votes(conditions: Global<bool>, votes: Global<bool>, lanes: Global<u32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let holds = conditions.get(i);
    votes.set(i * 2, vote_all(holds));
    votes.set(i * 2 + 1, vote_any(holds));
    lanes.set(i, ballot(holds));
}

fn votes(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let holds = |i: usize| match i / LANES % 4 {
        0 => false,
        1 => true,
        2 => i % LANES != 9,
        _ => hash(33, i as u64) & 1 == 1,
    };
    let conditions: Vec<bool> = (0..n).map(holds).collect();
    let ballots = conditions
        .chunks(LANES)
        .flat_map(|warp| [warp.iter().rev().fold(0, |all, &holds| all << 1 | u32::from(holds)); LANES]);
    let ballots: Vec<u32> = ballots.collect();
    let wanted: Vec<bool> = ballots.iter().flat_map(|&ballot| [ballot == u32::MAX, ballot != 0]).collect();
    let (mut votes, mut lanes) = (device.filled_bytes([2 * n], 0)?, device.filled_bytes([n], 0xab)?);
    warp_votes::launch(device, blocks(n), &device.tensor(&conditions, [n])?, &mut votes, &mut lanes)?;
    same("all and any", &votes.to_vec()?, &wanted)?;
    same("ballots", &lanes.to_vec()?, &ballots)
}

/// Both matches.
#[tma_kernel(threads = 128, instances(u8 = <u8>, f16 = <f16>, f32 = <f32>, i64 = <i64>, f64 = <f64>))]
pub fn warp_matches<T: Scalar>(values: Global<T>, lanes: Global<u32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = values.get(i);
    lanes.set(i * 2, match_any(x));
    lanes.set(i * 2 + 1, match_all(x));
}

/// Values of which each warp has a few different ones, and every fourth warp only one.
fn matches<T: Sample>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    warp_matches::Instance<T>: warp_matches::Compiled,
{
    let n = options.elements(1 << 12);
    let (few, numbers) = (samples::<T>(34, 37), (0..n).map(|i| hash(35, i as u64) as usize));
    let values: Vec<T> = numbers
        .enumerate()
        .map(|(i, drawn)| {
            few[if (i / LANES).is_multiple_of(4) { i / LANES % 37 } else { drawn % 5 * (i / LANES % 8) }]
        })
        .collect();
    let wanted = |i: usize| {
        let warp = &values[i / LANES * LANES..][..LANES];
        let equal = warp.iter().map(|&other| bits(other) == bits(values[i]));
        let any = equal.rev().fold(0, |all, equal| all << 1 | u32::from(equal));
        [any, if any == u32::MAX { any } else { 0 }]
    };
    let wanted: Vec<u32> = (0..n).flat_map(wanted).collect();
    let mut lanes = device.filled_bytes([2 * n], 0xab)?;
    warp_matches::launch::<T>(device, blocks(n), &device.tensor(&values, [n])?, &mut lanes)?;
    same("lanes", &lanes.to_vec()?, &wanted)
}

/// Returns the bytes of a scalar.
fn bits<T: Scalar>(value: T) -> Vec<u8> {
    // SAFETY: scalars have no padding, as `Scalar` promises, and bytes have no alignment.
    unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) }.to_vec()
}

/// Numbers that a warp reduces, and the same in plain Rust.
pub trait Reduced: Sample + Ordered {
    /// Returns `self + other`, rounded once, or wrapped.
    fn plus(self, other: Self) -> Self;
    /// Returns the minimum.
    fn lesser(self, other: Self) -> Self;
    /// Returns the maximum.
    fn greater(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($ty:ty)+) => { $(
        impl Reduced for $ty {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn lesser(self, other: Self) -> Self {
                Ord::min(self, other)
            }
            fn greater(self, other: Self) -> Self {
                Ord::max(self, other)
            }
        }
    )+ };
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64 usize);

macro_rules! floats {
    ($($ty:ty: |$a:ident, $b:ident| $sum:expr;)+) => { $(
        impl Reduced for $ty {
            fn plus(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $sum
            }
            // The number if the other is a NaN, and -0 is below +0: IEEE 754-2019, "minimumNumber".
            fn lesser(self, other: Self) -> Self {
                let other_is_less = other.total_cmp(&self).is_lt();
                if self.is_nan() || (!other.is_nan() && other_is_less) { other } else { self }
            }
            fn greater(self, other: Self) -> Self {
                -(-self).lesser(-other)
            }
        }
    )+ };
}

floats! {
    f16: |a, b| f16::from_bits(Format::F16.round(sum_to_odd(a.to_f64(), b.to_f64())) as u16);
    bf16: |a, b| bf16::from_bits(Format::BF16.round(sum_to_odd(a.to_f64(), b.to_f64())) as u16);
    f32: |a, b| a + b;
    f64: |a, b| a + b;
}

/// Sum, minimum and maximum of each warp, in each lane.
#[tma_kernel(threads = 128, instances(
    i8 = <i8>, u8 = <u8>, i16 = <i16>, u16 = <u16>, i32 = <i32>, u32 = <u32>, i64 = <i64>, u64 = <u64>, usize = <usize>,
    f16 = <f16>, bf16 = <bf16>, f32 = <f32>, f64 = <f64>,
))]
pub fn warp_reduced<T: Scalar + Ordered>(values: Global<T>, out: Global<T>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = values.get(i);
    out.set(i * 3, warp_reduce_add(x));
    out.set(i * 3 + 1, warp_reduce_min(x));
    out.set(i * 3 + 2, warp_reduce_max(x));
}

/// Reduces in the order that the documentation of `warp_reduce_add` specifies: first the lanes half
/// a warp apart.
fn tree<T: Copy>(warp: &[T], op: fn(T, T) -> T) -> T {
    let mut level = warp.to_vec();
    while level.len() > 1 {
        let (low, high) = level.split_at(level.len() / 2);
        level = low.iter().zip(high).map(|(&a, &b)| op(a, b)).collect();
    }
    level[0]
}

fn reduced<T: Reduced>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    warp_reduced::Instance<T>: warp_reduced::Compiled,
{
    let n = options.elements(1 << 12);
    // In the second half, floats of similar magnitude, for which the order of additions shows.
    let near = (n as u64 / 2..n as u64).map(|i| T::random(hash(36, i) & !1));
    let values: Vec<T> = samples::<T>(37, n / 2).into_iter().chain(near).collect();
    let of_warp =
        |warp: &[T]| [[tree(warp, T::plus), tree(warp, T::lesser), tree(warp, T::greater)]; LANES].concat();
    let wanted: Vec<T> = values.chunks(LANES).flat_map(of_warp).collect();
    let mut out = device.filled_bytes([3 * n], 0xab)?;
    warp_reduced::launch::<T>(device, blocks(n), &device.tensor(&values, [n])?, &mut out)?;
    same("sum, least, greatest", &out.to_vec()?, &wanted)
}

/// The bitwise reductions of each warp, in each lane.
#[tma_kernel(threads = 128, instances(
    i8 = <i8>, u8 = <u8>, i16 = <i16>, u16 = <u16>, i32 = <i32>, u32 = <u32>, i64 = <i64>, u64 = <u64>, usize = <usize>,
))]
pub fn warp_bits<T: Bitwise>(values: Global<T>, out: Global<T>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = values.get(i);
    out.set(i * 3, warp_reduce_and(x));
    out.set(i * 3 + 1, warp_reduce_or(x));
    out.set(i * 3 + 2, warp_reduce_xor(x));
}

/// Integers with bitwise operators.
trait Bits:
    Sample + std::ops::BitAnd<Output = Self> + std::ops::BitOr<Output = Self> + std::ops::BitXor<Output = Self>
{
}

impl<T> Bits for T where
    T: Sample + std::ops::BitAnd<Output = T> + std::ops::BitOr<Output = T> + std::ops::BitXor<Output = T>
{
}

/// Values that, in two of every three warps, have some bits in common.
fn bits_reduced<T: Bits>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    warp_bits::Instance<T>: warp_bits::Compiled,
{
    let n = options.elements(1 << 12);
    let values: Vec<T> = samples::<T>(38, n)
        .into_iter()
        .enumerate()
        .map(|(i, x)| match i / LANES % 3 {
            0 => x,
            1 => x | T::random(hash(39, (i / LANES) as u64)),
            _ => x & T::random(hash(39, (i / LANES) as u64)),
        })
        .collect();
    let of_warp = |warp: &[T]| {
        [[tree(warp, |a, b| a & b), tree(warp, |a, b| a | b), tree(warp, |a, b| a ^ b)]; LANES].concat()
    };
    let wanted: Vec<T> = values.chunks(LANES).flat_map(of_warp).collect();
    let mut out = device.filled_bytes([3 * n], 0xab)?;
    warp_bits::launch::<T>(device, blocks(n), &device.tensor(&values, [n])?, &mut out)?;
    same("and, or, xor", &out.to_vec()?, &wanted)
}

/// Functions that do not need whole warps: the last warp of this block has 8 lanes.
#[tma_kernel(threads = 40)]
pub fn warp_partial(out: Global<u32>) {
    let thread = thread_idx().x;
    out.set(thread, warp_reduce_add(thread));
    out.set(40 + thread, ballot(thread % 3 == 0));
    out.set(80 + thread, shuffle_xor(thread, 4));
    out.set(120 + thread, match_any(thread % 4));
    out.set(160 + thread, vote_all(thread < 1000) as u32);
}

fn partial(device: &Device, _: &Options) -> anyhow::Result<()> {
    let lanes = |thread: u32| thread / 32 * 32..(thread / 32 * 32 + 32).min(40);
    let mask = |thread, holds: &dyn Fn(u32) -> bool| {
        lanes(thread).rev().fold(0, |all, other| all << 1 | u32::from(holds(other)))
    };
    let wanted: [&dyn Fn(u32) -> u32; 5] = [
        &|thread| lanes(thread).sum(),
        &|thread| mask(thread, &|other| other % 3 == 0),
        &|thread| thread ^ 4,
        &|thread| mask(thread, &|other| other % 4 == thread % 4),
        &|_| 1,
    ];
    let wanted: Vec<u32> = wanted.iter().flat_map(|of| (0..40).map(of)).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    warp_partial::launch(device, 1, &mut out)?;
    same("of 40 threads", &out.to_vec()?, &wanted)
}
