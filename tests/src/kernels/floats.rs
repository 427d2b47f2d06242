//! Floats: every operator of every type with arithmetic, and the hardware's fast functions.

use std::ops::{Add, Div, Mul, Neg, Sub};

use tma_runtime::lang::{Precise, Real};
use tma_runtime::prelude::*;

use super::integers::order;
use crate::case::{Case, Options, blocks};
use crate::compare::{judged, same};
use crate::random::{Sample, hash, sample_pairs, samples};
use crate::rounding::{Format, sum_to_odd};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "floats::f16", run: check::<f16> },
    Case { name: "floats::bf16", run: check::<bf16> },
    Case { name: "floats::f32", run: check::<f32> },
    Case { name: "floats::f64", run: check::<f64> },
    Case { name: "floats::roots_f32", run: check_roots::<f32> },
    Case { name: "floats::roots_f64", run: check_roots::<f64> },
    Case { name: "floats::methods", run: methods },
    Case { name: "floats::fast_functions", run: fast_functions },
];

/// Runs an instance of `floats` on edge values and random ones, and compares with
/// [`Float::results`].
fn check<T: Float>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    floats::Instance<T>: floats::Compiled,
{
    let n = options.elements(1 << 14);
    let (a, b) = sample_pairs::<T>(4, n);
    let c: Vec<T> = (0..n as u64).map(|i| T::random(hash(5, i))).collect();
    let wanted: Vec<T> = (0..n).flat_map(|i| T::results(a[i], b[i], c[i])).collect();
    let wanted_order: Vec<u8> = (0..n).map(|i| order(&a[i], &b[i])).collect();

    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    let mut order = device.filled_bytes([n], 0xab)?;
    let (a, b, c) = (device.tensor(&a, [n])?, device.tensor(&b, [n])?, device.tensor(&c, [n])?);
    floats::launch::<T>(device, blocks(n), &a, &b, &c, &mut out, &mut order)?;
    same("results", &out.to_vec()?, &wanted)?;
    same("comparisons", &order.to_vec()?, &wanted_order)
}

/// Runs an instance of `roots`, and compares with [`Wide::root_results`].
fn check_roots<T: Wide>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    roots::Instance<T>: roots::Compiled,
{
    let n = options.elements(1 << 14);
    let a = samples::<T>(4, n);
    let wanted: Vec<T> = a.iter().flat_map(|&x| T::root_results(x)).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    roots::launch::<T>(device, blocks(n), &device.tensor(&a, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

/// The operators of floats, and the same in plain Rust.
pub trait Float:
    Sample
    + PartialOrd
    + Real
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Returns the results of `floats`, in its order.
    fn results(x: Self, y: Self, z: Self) -> [Self; 9];
}

/// A float with roots and reciprocals in its own precision.
pub trait Wide: Float + Precise {
    /// Returns the results of `roots`, in its order.
    fn root_results(x: Self) -> [Self; 2];
}

/// Returns the smaller number in the order -0 < +0, or the number if the other is a NaN (IEEE
/// 754-2019, "minimumNumber").
fn lesser(x: f64, y: f64) -> f64 {
    if x.is_nan() || (!y.is_nan() && y.total_cmp(&x).is_lt()) { y } else { x }
}

/// Implements the narrow floats, which compute in `f64` and round once.
macro_rules! narrow {
    ($($ty:ty: $format:expr;)+) => { $(
        impl Float for $ty {
            fn results(x: Self, y: Self, z: Self) -> [Self; 9] {
                let (x, y, z) = (x.to_f64(), y.to_f64(), z.to_f64());
                let exact = [
                    sum_to_odd(x, y),
                    sum_to_odd(x, -y),
                    x * y,
                    x / y,
                    -x,
                    sum_to_odd(x * y, z),
                    lesser(x, y),
                    -lesser(-x, -y),
                    x.abs(),
                ];
                exact.map(|x| <$ty>::from_bits($format.round(x) as u16))
            }
        }
    )+ };
}

narrow! {
    f16: Format::F16;
    bf16: Format::BF16;
}

macro_rules! wide {
    ($($ty:ty)+) => { $(
        impl Float for $ty {
            fn results(x: Self, y: Self, z: Self) -> [Self; 9] {
                let (wide_x, wide_y) = (f64::from(x), f64::from(y));
                [
                    x + y,
                    x - y,
                    x * y,
                    x / y,
                    -x,
                    x.mul_add(y, z),
                    lesser(wide_x, wide_y) as $ty,
                    -lesser(-wide_x, -wide_y) as $ty,
                    x.abs(),
                ]
            }
        }

        impl Wide for $ty {
            fn root_results(x: Self) -> [Self; 2] {
                [x.sqrt(), 1.0 / x]
            }
        }
    )+ };
}

wide!(f32 f64);

/// Every operator that all floats have.
#[tma_kernel(threads = 128, instances(T in [f16, bf16, f32, f64]))]
pub fn floats<T: Float>(a: Global<T>, b: Global<T>, c: Global<T>, out: Global<T>, order: Global<u8>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let z = c.get(i);
        let results = [x + y, x - y, x * y, x / y, -x, fma(x, y, z), min(x, y), max(x, y), abs(x)];
        for k in unroll(0..9) {
            out.set(i * 9 + k, results[k as usize]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}

/// The operations that only the wide floats have.
#[tma_kernel(threads = 128, instances(T in [f32, f64]))]
pub fn roots<T: Wide>(a: Global<T>, out: Global<T>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        out.set(i * 2, sqrt(x));
        out.set(i * 2 + 1, recip(x));
    }
}

/// The functions of floats as methods.
#[tma_kernel(threads = 128)]
pub fn float_methods(a: Global<f32>, b: Global<f32>, out: Global<f32>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let half = f16::from_f32(x);
        let results = [
            x.mul_add(y, x),
            x.abs().sqrt(),
            y.recip(),
            x.min(y).max(-1.0),
            half.to_f32(),
            f16::from_bits(half.to_bits() ^ 0x8000).to_f32(),
            bf16::from_f64(y as f64).to_f64() as f32,
            f32::from_bits(x.to_bits() & 0x7fff_ffff),
        ];
        for k in unroll(0..8) {
            out.set(i * 8 + k, results[k as usize]);
        }
    }
}

fn methods(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 14);
    let (a, b) = sample_pairs::<f32>(6, n);
    let results = |x: f32, y: f32| {
        let half = f16::from_bits(Format::F16.round(f64::from(x)) as u16).to_f32();
        let lesser = lesser(f64::from(x), f64::from(y));
        [
            x.mul_add(y, x),
            x.abs().sqrt(),
            1.0 / y,
            if lesser.is_nan() { -1.0 } else { lesser.max(-1.0) as f32 },
            half,
            -half,
            bf16::from_bits(Format::BF16.round(f64::from(y)) as u16).to_f32(),
            x.abs(),
        ]
    };
    let wanted: Vec<f32> = (0..n).flat_map(|i| results(a[i], b[i])).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    float_methods::launch(device, blocks(n), &device.tensor(&a, [n])?, &device.tensor(&b, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

/// The functions that the hardware approximates.
#[tma_kernel(threads = 128)]
pub fn fast_float_functions(a: Global<f32>, out: Global<f32>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        out.set(i * 4, exp2(x));
        out.set(i * 4 + 1, log2(x));
        out.set(i * 4 + 2, rsqrt(x));
        out.set(i * 4 + 3, exp2_ftz(x));
    }
}

fn fast_functions(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 16);
    let inputs = samples::<f32>(7, n);
    let mut out = device.filled_bytes([4 * n], 0xab)?;
    fast_float_functions::launch(device, blocks(n), &device.tensor(&inputs, [n])?, &mut out)?;

    let normal = |y: f64| if y < f64::from(f32::MIN_POSITIVE) { 0.0 } else { y };
    let exact = |x: f64| [x.exp2(), x.log2(), 1.0 / x.sqrt(), normal(x.exp2())];
    let wanted: Vec<f32> = inputs.iter().flat_map(|&x| exact(f64::from(x)).map(|y| y as f32)).collect();
    judged("results", &out.to_vec()?, &wanted, |i, found, wanted| {
        let x = f64::from(inputs[i / 4]);
        let error = (f64::from(found) - exact(x)[i % 4]).abs();
        found.is_same(wanted) || (wanted.is_finite() && error <= tolerance(i % 4, x, f64::from(wanted)))
    })
}

/// Returns the largest error of `exp2`, `log2`, `rsqrt` and `exp2_ftz` of `x`: PTX ISA 9.4,
/// "Floating-Point Instructions", ex2, lg2 and rsqrt.
fn tolerance(function: usize, x: f64, exact: f64) -> f64 {
    let relative = |bits: f64| exact.abs() * (-bits).exp2();
    match function {
        // Two units in the last place from the correctly rounded result, itself off by half a unit.
        0 | 3 => 2.5 * (exact.abs().log2().floor().max(-126.0) - 23.0).exp2(),
        1 if x > 0.5 && x < 2.0 => (-22f64).exp2(),
        1 => relative(22.0),
        _ => relative(22.9),
    }
}
