//! Vectors: several elements of global memory, shared arrays and tiles at once, and arithmetic on
//! them.

use tma_runtime::lang::Real;
use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::{Sample, hash, samples};
use crate::rounding::{Format, sum_to_odd};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "vectors::bool_2", run: turned::<bool, 2> },
    Case { name: "vectors::bool_16", run: turned::<bool, 16> },
    Case { name: "vectors::i8_8", run: turned::<i8, 8> },
    Case { name: "vectors::u8_4", run: turned::<u8, 4> },
    Case { name: "vectors::u16_2", run: turned::<u16, 2> },
    Case { name: "vectors::i16_8", run: turned::<i16, 8> },
    Case { name: "vectors::i32_2", run: turned::<i32, 2> },
    Case { name: "vectors::u32_4", run: turned::<u32, 4> },
    Case { name: "vectors::i64_2", run: turned::<i64, 2> },
    Case { name: "vectors::u64_2", run: turned::<u64, 2> },
    Case { name: "vectors::usize_2", run: turned::<usize, 2> },
    Case { name: "vectors::f16_8", run: turned::<f16, 8> },
    Case { name: "vectors::bf16_4", run: turned::<bf16, 4> },
    Case { name: "vectors::f32_4", run: turned::<f32, 4> },
    Case { name: "vectors::f64_2", run: turned::<f64, 2> },
    Case { name: "vectors::tf32_4", run: turned::<tf32, 4> },
    Case { name: "vectors::e4m3_16", run: turned::<e4m3, 16> },
    Case { name: "vectors::e5m2_4", run: turned::<e5m2, 4> },
    Case { name: "vectors::tile_u8_16", run: tiles::<u8, Swizzle32, 16, 32> },
    Case { name: "vectors::tile_f16_8", run: tiles::<f16, Swizzle128, 8, 64> },
    Case { name: "vectors::tile_f16_2", run: tiles::<f16, Swizzle64, 2, 24> },
    Case { name: "vectors::tile_f32_4", run: tiles::<f32, Swizzle128, 4, 32> },
    Case { name: "vectors::tile_f32_2", run: tiles::<f32, NoSwizzle, 2, 6> },
    Case { name: "vectors::tile_u64_2", run: tiles::<u64, Swizzle64, 2, 8> },
    Case { name: "vectors::cached_bool_16", run: cached::<bool, 16> },
    Case { name: "vectors::cached_u8_2", run: cached::<u8, 2> },
    Case { name: "vectors::cached_i8_4", run: cached::<i8, 4> },
    Case { name: "vectors::cached_u16_2", run: cached::<u16, 2> },
    Case { name: "vectors::cached_f16_8", run: cached::<f16, 8> },
    Case { name: "vectors::cached_bf16_4", run: cached::<bf16, 4> },
    Case { name: "vectors::cached_i32_2", run: cached::<i32, 2> },
    Case { name: "vectors::cached_f32_4", run: cached::<f32, 4> },
    Case { name: "vectors::cached_u64_2", run: cached::<u64, 2> },
    Case { name: "vectors::cached_f64_2", run: cached::<f64, 2> },
    Case { name: "vectors::cached_tf32_4", run: cached::<tf32, 4> },
    Case { name: "vectors::cached_e4m3_8", run: cached::<e4m3, 8> },
    Case { name: "vectors::packed_f16", run: packed::<f16> },
    Case { name: "vectors::packed_bf16", run: packed::<bf16> },
];

/// Writes by vectors and reads by elements, in the opposite order, and the other way round. Each
/// thread writes its own part of the array, and reads its neighbour's.
#[tma_kernel(threads = 128, instances(
    bool_2 = <bool, 2>, bool_16 = <bool, 16>, i8_8 = <i8, 8>, u8_4 = <u8, 4>, u16_2 = <u16, 2>, i16_8 = <i16, 8>,
    i32_2 = <i32, 2>, u32_4 = <u32, 4>, i64_2 = <i64, 2>, u64_2 = <u64, 2>, usize_2 = <usize, 2>, f16_8 = <f16, 8>,
    bf16_4 = <bf16, 4>, f32_4 = <f32, 4>, f64_2 = <f64, 2>, tf32_4 = <tf32, 4>, e4m3_16 = <e4m3, 16>, e5m2_4 = <e5m2, 4>,
))]
pub fn vector_turned<T: Scalar, const V: usize>(src: Global<T>, turned: Global<T>, copied: Global<T>) {
    let array: SharedArray<T, 2048> = shared();
    let first = thread_idx().x * V as u32;
    let other = (thread_idx().x ^ 1) * V as u32;
    let i = block_idx().x as u64 * 128 * V as u64;
    let read = src.get_vec::<V>(i + first as u64);
    let mut reversed = read;
    for k in unroll(0..V) {
        reversed[k] = read[V - 1 - k];
    }
    array.set_vec(first, reversed);
    sync_threads();
    for k in unroll(0..V) {
        turned.set(i + other as u64 + k as u64, array.get(other + k as u32));
    }
    sync_threads();
    for k in unroll(0..V) {
        array.set(first + k as u32, read[k]);
    }
    sync_threads();
    copied.set_vec(i + other as u64, array.get_vec::<V>(other));
}

fn turned<T: Sample, const V: usize>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    vector_turned::Instance<T, V>: vector_turned::Compiled,
{
    let n = options.elements(1 << 12);
    let values = samples::<T>(61, n * V);
    let wanted: Vec<T> = values.chunks(V).flat_map(|vector| vector.iter().rev().copied()).collect();
    let (mut turned, mut copied) = (device.filled_bytes([n * V], 0)?, device.filled_bytes([n * V], 0)?);
    let src = device.tensor(&values, [n * V])?;
    vector_turned::launch::<T, V>(device, blocks(n), &src, &mut turned, &mut copied)?;
    same("in the opposite order", &turned.to_vec()?, &wanted)?;
    same("copied", &copied.to_vec()?, &values)
}

/// Copies an array six times: elements and vectors, each with a cache policy, through the
/// non-coherent path, and both. Each thread copies one vector.
#[tma_kernel(threads = 128, instances(
    bool_16 = <bool, 16>, u8_2 = <u8, 2>, i8_4 = <i8, 4>, u16_2 = <u16, 2>, f16_8 = <f16, 8>, bf16_4 = <bf16, 4>, i32_2 = <i32, 2>, f32_4 = <f32, 4>, u64_2 = <u64, 2>, f64_2 = <f64, 2>, tf32_4 = <tf32, 4>, e4m3_8 = <e4m3, 8>,
))]
pub fn vector_cached<T: Scalar, const V: usize>(src: Global<T>, out: Global<T>) {
    let first = l2_evict_first(1.0);
    let last = l2_evict_last(0.5);
    let n = src.len();
    let i = (block_idx().x as u64 * 128 + thread_idx().x as u64) * V as u64;
    for k in unroll(0..V) {
        let at = i + k as u64;
        out.hint(last).set(at, src.hint(first).get(at));
        out.hint(first).set(at + n, src.get_nc(at));
        out.set(at + 2 * n, src.hint(last).get_nc(at));
    }
    out.hint(last).set_vec(i + 3 * n, src.hint(first).get_vec::<V>(i));
    out.hint(first).set_vec(i + 4 * n, src.get_vec_nc::<V>(i));
    out.set_vec(i + 5 * n, src.hint(last).get_vec_nc::<V>(i));
}

fn cached<T: Sample, const V: usize>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    vector_cached::Instance<T, V>: vector_cached::Compiled,
{
    let n = options.elements(1 << 12);
    let values = samples::<T>(67, n * V);
    let mut out = device.filled_bytes([6 * n * V], 0)?;
    vector_cached::launch::<T, V>(device, blocks(n), &device.tensor(&values, [n * V])?, &mut out)?;
    same("six copies", &out.to_vec()?, &values.repeat(6))
}

/// A tile that is written by vectors and read by elements and by vectors, and the other way round.
/// One thread writes each vector, and another one reads it.
#[tma_kernel(threads = 128, instances(
    u8_16 = <u8, Swizzle32, 16, 32>, f16_8 = <f16, Swizzle128, 8, 64>, f16_2 = <f16, Swizzle64, 2, 24>,
    f32_4 = <f32, Swizzle128, 4, 32>, f32_2 = <f32, NoSwizzle, 2, 6>, u64_2 = <u64, Swizzle64, 2, 8>,
))]
pub fn vector_tiles<T: TileElement, W: Swizzle, const V: usize, const C: u32>(
    src: Global<T>,
    read: Global<T>,
    copied: Global<T>,
    gathered: Global<T>,
) {
    let by_vectors: Tile<T, Shape2<32, C>, W> = shared();
    let by_elements: Tile<T, Shape3<4, 8, C>, W> = shared();
    let len = V as u32;
    for at in (thread_idx().x..32 * C / len).step_by(128) {
        let row = at / (C / len);
        let column = at % (C / len) * len;
        let vector = src.get_vec::<V>(at * len);
        by_vectors.set_vec([row, column], vector);
        for k in unroll(0..V) {
            by_elements.set([row / 8, row % 8, column + k as u32], vector[k]);
        }
    }
    sync_threads();
    for behind in (thread_idx().x..32 * C / len).step_by(128) {
        let at = 32 * C / len - 1 - behind;
        let row = at / (C / len);
        let column = at % (C / len) * len;
        for k in unroll(0..V) {
            read.set(at * len + k as u32, by_vectors.get([row, column + k as u32]));
        }
        copied.set_vec(at * len, by_vectors.get_vec::<V>([row, column]));
        gathered.set_vec(at * len, by_elements.get_vec::<V>([row / 8, row % 8, column]));
    }
}

fn tiles<T: Sample + TileElement, W: Swizzle, const V: usize, const C: u32>(
    device: &Device,
    _: &Options,
) -> anyhow::Result<()>
where
    vector_tiles::Instance<T, W, V, C>: vector_tiles::Compiled,
{
    let n = 32 * C as usize;
    let values = samples::<T>(62, n);
    let [mut read, mut copied, mut gathered] =
        [device.filled_bytes([n], 0)?, device.filled_bytes([n], 0)?, device.filled_bytes([n], 0)?];
    let src = device.tensor(&values, [n])?;
    vector_tiles::launch::<T, W, V, C>(device, 1, &src, &mut read, &mut copied, &mut gathered)?;
    same("written by vectors, read by elements", &read.to_vec()?, &values)?;
    same("written and read by vectors", &copied.to_vec()?, &values)?;
    same("written by elements, read by vectors", &gathered.to_vec()?, &values)
}

/// 16-bit floats, two of which the hardware computes at once.
pub trait Packed: Sample + Real {
    /// Returns the result of `vector_packed` for three numbers.
    fn computed(x: Self, y: Self, sum: Self) -> Self;
}

macro_rules! packed {
    ($($ty:ty: $format:expr;)+) => { $(
        impl Packed for $ty {
            fn computed(x: Self, y: Self, sum: Self) -> Self {
                let round = |exact: f64| <$ty>::from_bits($format.round(exact) as u16).to_f64();
                let (x, y) = (x.to_f64(), y.to_f64());
                let fused = round(sum_to_odd(x * y, sum.to_f64()));
                // The number if the other is a NaN, and -0 is below +0: IEEE 754-2019,
                // "maximumNumber".
                let greater = match (fused.is_nan(), y.is_nan()) {
                    (true, _) => y,
                    (_, true) => fused,
                    _ if fused.total_cmp(&y).is_lt() => y,
                    _ => fused,
                };
                <$ty>::from_bits($format.round(sum_to_odd(greater, -x)) as u16)
            }
        }
    )+ };
}

packed! {
    f16: Format::F16;
    bf16: Format::BF16;
}

/// Arithmetic on vectors, with sums that are kept over a loop.
#[tma_kernel(threads = 128, instances(f16 = <f16>, bf16 = <bf16>))]
pub fn vector_packed<T: TileElement + Real + std::ops::Sub<Output = T>>(
    xs: Global<T>,
    ys: Global<T>,
    out: Global<T>,
    turns: u32,
) {
    let i = (block_idx().x * 128 + thread_idx().x) * 8;
    let mut sums = xs.get_vec::<8>(i);
    for _ in 0..turns {
        let x = xs.get_vec::<8>(i);
        let y = ys.get_vec::<8>(i);
        for k in unroll(0..8usize) {
            sums[k] = max(fma(x[k], y[k], sums[k]), y[k]) - x[k];
        }
    }
    out.set_vec(i, sums);
}

fn packed<T: Packed + TileElement + std::ops::Sub<Output = T>>(
    device: &Device,
    options: &Options,
) -> anyhow::Result<()>
where
    vector_packed::Instance<T>: vector_packed::Compiled,
{
    let n = options.elements(1 << 12);
    let xs = samples::<T>(63, 8 * n);
    let ys: Vec<T> = (0..8 * n as u64).map(|i| T::random(hash(64, i) & !(i & 1))).collect();
    let computed = |i: usize| (0..3).fold(xs[i], |sum, _| T::computed(xs[i], ys[i], sum));
    let wanted: Vec<T> = (0..8 * n).map(computed).collect();
    let mut out = device.filled_bytes([8 * n], 0)?;
    let (xs, ys) = (device.tensor(&xs, [8 * n])?, device.tensor(&ys, [8 * n])?);
    vector_packed::launch::<T>(device, blocks(n), &xs, &ys, &mut out, 3u32)?;
    same("computed", &out.to_vec()?, &wanted)
}

/// Reads a vector from any `i` on.
#[tma_kernel(threads = 1, unchecked)]
pub fn vector_from(src: Global<f32>, i: u32, dst: Global<f32>) {
    dst.set_vec(0, src.get_vec::<4>(i));
}

/// The same with checks, which report the line.
#[tma_kernel(threads = 1, checked)]
pub fn vector_from_checked(src: Global<f32>, i: u32, dst: Global<f32>) {
    let tile: Tile<f32, Shape2<1, 8>> = shared();
    tile.set_vec([0, 0], src.get_vec::<4>(0));
    tile.set_vec([0, 4], src.get_vec::<4>(i));
    dst.set_vec(0, tile.get_vec::<2>([0, i]));
}
