//! 16-bit floats in arrays: one instruction computes two neighbours, without changing any result.

use tma_runtime::lang::{Half, Real};
use tma_runtime::prelude::*;

use super::floats::Float;
use crate::case::{Case, Options, blocks};
use crate::compare::{judged, same};
use crate::random::{Sample, hash, sample_pairs, samples};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "packed::f16", run: check::<f16> },
    Case { name: "packed::bf16", run: check::<bf16> },
    Case { name: "packed::exp2_f16", run: check_exp2::<f16> },
    Case { name: "packed::exp2_bf16", run: check_exp2::<bf16> },
    Case { name: "packed::polynomial", run: check_polynomial },
];

/// Sums, differences, products, `fma`, extremes, negations and magnitudes, of 8 numbers per thread.
#[tma_kernel(threads = 128, instances(f16 = <f16>, bf16 = <bf16>))]
pub fn packed<T: Float + Real>(a: Global<T>, b: Global<T>, c: Global<T>, out: Global<T>) {
    let i = (block_idx().x * 128 + thread_idx().x) * 8;
    let x = a.get_vec::<8>(i);
    let y = b.get_vec::<8>(i);
    let z = c.get_vec::<8>(i);
    let mut results = [x; 8];
    for k in unroll(0..8usize) {
        results[0][k] = x[k] + y[k];
        results[1][k] = x[k] - y[k];
        results[2][k] = x[k] * y[k];
        results[3][k] = -x[k];
        results[4][k] = fma(x[k], y[k], z[k]);
        results[5][k] = min(x[k], y[k]);
        results[6][k] = max(x[k], y[k]);
        results[7][k] = abs(x[k]);
    }
    for r in unroll(0..8u32) {
        out.set_vec(i * 8 + r * 8, results[r as usize]);
    }
}

/// The indices of the results of `packed` in [`Float::results`]; it does not divide.
const COMPUTED: [usize; 8] = [0, 1, 2, 4, 5, 6, 7, 8];

fn check<T: Float + Real + Half>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    packed::Instance<T>: packed::Compiled,
{
    let n = options.elements(1 << 14).next_multiple_of(1024);
    let (a, b) = sample_pairs::<T>(81, n);
    let c: Vec<T> = (0..n as u64).map(|i| T::random(hash(82, i))).collect();
    let results: Vec<[T; 9]> = (0..n).map(|i| T::results(a[i], b[i], c[i])).collect();
    let of_thread = |eight: &[[T; 9]]| -> Vec<T> {
        COMPUTED.into_iter().flat_map(|r| eight.iter().map(move |results| results[r])).collect()
    };
    let wanted: Vec<T> = results.chunks(8).flat_map(of_thread).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    let (a, b, c) = (device.tensor(&a, [n])?, device.tensor(&b, [n])?, device.tensor(&c, [n])?);
    packed::launch::<T>(device, blocks(n / 8), &a, &b, &c, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

/// 2 to the power of each number, 4 per thread.
#[tma_kernel(threads = 128, instances(f16 = <f16>, bf16 = <bf16>))]
pub fn packed_exp2<T: Half + Scalar>(a: Global<T>, out: Global<T>) {
    let i = (block_idx().x * 128 + thread_idx().x) * 4;
    let mut x = a.get_vec::<4>(i);
    for k in unroll(0..4usize) {
        x[k] = exp2_half(x[k]);
    }
    out.set_vec(i, x);
}

/// A float of 16 bits with an exponential function.
trait Exponential: Half + Sample {
    /// The largest relative error. Source: PTX ISA, "Half Precision Floating Point Instructions:
    /// ex2".
    const ERROR: f64;
    /// The smallest normal number.
    const LEAST: f64;
    /// The unit in the last place of subnormal numbers.
    const STEP: f64;
    /// Whether subnormal numbers become zeros.
    const FLUSHES: bool;

    fn wide(self) -> f64;
    fn of(x: f64) -> Self;
}

impl Exponential for f16 {
    const ERROR: f64 = 1.046_6e-3;
    const LEAST: f64 = 6.103_515_625e-5;
    const STEP: f64 = 5.960_464_477_539_063e-8;
    const FLUSHES: bool = false;

    fn wide(self) -> f64 {
        self.to_f64()
    }

    fn of(x: f64) -> Self {
        Self::from_f64(x)
    }
}

impl Exponential for bf16 {
    const ERROR: f64 = 7.812_5e-3;
    const LEAST: f64 = 1.175_494_350_822_287_5e-38;
    const STEP: f64 = 9.183_549_615_799_121e-41;
    const FLUSHES: bool = true;

    fn wide(self) -> f64 {
        self.to_f64()
    }

    fn of(x: f64) -> Self {
        Self::from_f64(x)
    }
}

fn check_exp2<T: Exponential>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    packed_exp2::Instance<T>: packed_exp2::Compiled,
{
    let n = options.elements(1 << 14).next_multiple_of(512);
    let inputs = samples::<T>(83, n);
    let wanted: Vec<T> = inputs.iter().map(|x| T::of(x.wide().exp2())).collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    packed_exp2::launch::<T>(device, blocks(n / 4), &device.tensor(&inputs, [n])?, &mut out)?;
    judged("powers of two", &out.to_vec()?, &wanted, |i, found: T, wanted: T| {
        let (found, exact) = (found.wide(), inputs[i].wide().exp2());
        let is_flushed = T::FLUSHES && exact < T::LEAST && found == 0.0;
        exact.is_nan() && found.is_nan()
            || found == wanted.wide()
            || is_flushed
            || (found - exact).abs() <= exact * T::ERROR + T::STEP
    })
}

/// Horner's rule on an accumulator of a warp, whose elements are pairs.
#[tma_kernel(threads = 32)]
pub fn packed_polynomial(a: Global<f16>, out: Global<f16>) {
    let tile: Tile<f16, Shape2<16, 16>, Swizzle32> = shared();
    for i in (thread_idx().x..256).step_by(32) {
        tile.set([i / 16, i % 16], a.get(i));
    }
    sync_warp();
    let mut sum = WarpAccumulator::<f16, 16, 16>::zero();
    sum.mma_sync(WarpLeft::<f16, 16, 16>::load(tile, [0, 0]), WarpRight::<f16, 16, 16>::load(tile, [0, 0]));
    let two = f16::from_f32(2.0);
    let three = f16::from_f32(3.0);
    for i in unroll(0..sum.len()) {
        sum[i] = max(fma(fma(sum[i], two, three), sum[i], two), f16::ZERO);
    }
    sum.store_to(out.matrix(0, [16, 16], 16), [0, 0]);
}

fn check_polynomial(device: &Device, _: &Options) -> anyhow::Result<()> {
    let a: Vec<f32> = (0..256).map(|i| (hash(84, i) % 3) as f32 - 1.0).collect();
    let halves: Vec<f16> = a.iter().map(|&x| f16::from_f32(x)).collect();
    let mut out = device.filled_bytes([256], 0xab)?;
    packed_polynomial::launch(device, 1, &device.tensor(&halves, [256])?, &mut out)?;
    let dot = |x: &[f32], y: &[f32]| -> f32 { x.iter().zip(y).map(|(x, y)| x * y).sum() };
    let sums = a.chunks(16).flat_map(|x| a.chunks(16).map(move |y| dot(x, y)));
    let wanted: Vec<f16> = sums.map(|sum| f16::from_f32(((sum * 2.0 + 3.0) * sum + 2.0).max(0.0))).collect();
    same("polynomials", &out.to_vec()?, &wanted)
}
