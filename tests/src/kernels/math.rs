//! Functions of numbers: the hardware's approximations within their bounds, and `clamp` and
//! `copysign` to the bit.

use std::f64::consts::PI;

use tma_runtime::lang::{Ordered, Real};
use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::{judged, same};
use crate::random::{Sample, sample_pairs, samples};

/// What is checked here.
pub const CASES: &[Case] = &[
    Case { name: "math::exponentials", run: exponentials },
    Case { name: "math::powers", run: powers },
    Case { name: "math::powers_of_edges", run: powers_of_edges },
    Case { name: "math::angles", run: angles },
    Case { name: "math::clamped_i8", run: clamped::<i8> },
    Case { name: "math::clamped_u32", run: clamped::<u32> },
    Case { name: "math::clamped_i64", run: clamped::<i64> },
    Case { name: "math::clamped_f16", run: clamped::<f16> },
    Case { name: "math::clamped_bf16", run: clamped::<bf16> },
    Case { name: "math::clamped_f32", run: clamped::<f32> },
    Case { name: "math::clamped_f64", run: clamped::<f64> },
    Case { name: "math::signs_f16", run: signs::<f16> },
    Case { name: "math::signs_bf16", run: signs::<bf16> },
    Case { name: "math::signs_f32", run: signs::<f32> },
    Case { name: "math::signs_f64", run: signs::<f64> },
    Case { name: "math::methods", run: methods },
];

/// A unit in the last place of an `f32` near `x`.
fn ulp(x: f64) -> f64 {
    (x.abs().log2().floor().clamp(-126.0, 127.0) - 23.0).exp2()
}

/// Whether `found` is within `error` of `exact`, or the infinity that is beyond the greatest
/// number.
fn is_near(found: f32, exact: f64, error: f64) -> bool {
    if exact.is_nan() {
        return found.is_nan();
    }
    let beyond = exact.abs() + error >= f64::from(f32::MAX);
    let found = f64::from(found);
    (beyond && found.is_infinite() && found.signum() == exact.signum())
        || found == exact
        || (found - exact).abs() <= error
}

/// `exp` and `log`.
#[tma_kernel(threads = 128)]
pub fn math_exponentials(a: Global<f32>, out: Global<f32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = a.get(i);
    out.set(i * 2, exp(x));
    out.set(i * 2 + 1, log(x));
}

fn exponentials(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 14);
    let inputs = samples::<f32>(51, n);
    let exact = |x: f64| [x.exp(), x.ln()];
    let wanted: Vec<f32> = inputs.iter().flat_map(|&x| exact(f64::from(x)).map(|y| y as f32)).collect();
    let mut out = device.filled_bytes([2 * n], 0xab)?;
    math_exponentials::launch(device, blocks(n), &device.tensor(&inputs, [n])?, &mut out)?;
    judged("exp and log", &out.to_vec()?, &wanted, |i, found, _| {
        let x = f64::from(inputs[i / 2]);
        let exact = exact(x)[i % 2];
        // docs/language, "Math".
        let error = match i % 2 {
            0 => 2.5 * ulp(exact) + exact * x.abs() * (-23_f64).exp2(),
            _ if x > 0.5 && x < 2.0 => (-22_f64).exp2(),
            _ => exact.abs() * (-21.5_f64).exp2(),
        };
        is_near(found, exact, error)
    })
}

/// `pow`.
#[tma_kernel(threads = 128)]
pub fn math_powers(a: Global<f32>, b: Global<f32>, out: Global<f32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    out.set(i, pow(a.get(i), b.get(i)));
}

fn powers(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 14);
    let (a, b) = sample_pairs::<f32>(52, n);
    // What the approximations are not for is elsewhere.
    let a: Vec<f32> = a.iter().map(|x| if x.abs() > 0.0 && x.is_finite() { x.abs() } else { 1.5 }).collect();
    let b: Vec<f32> = b.iter().map(|y| if y.is_finite() { *y } else { 0.5 }).collect();
    let exact = |i: usize| f64::from(a[i]).powf(f64::from(b[i]));
    let wanted: Vec<f32> = (0..n).map(|i| exact(i) as f32).collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    math_powers::launch(device, blocks(n), &device.tensor(&a, [n])?, &device.tensor(&b, [n])?, &mut out)?;
    judged("powers", &out.to_vec()?, &wanted, |i, found, _| {
        let (exact, y) = (exact(i), f64::from(b[i]));
        let logarithm = y * f64::from(a[i]).log2();
        // The logarithm may be off by so much: what it is a power of is then less, or more.
        let off = y.abs().max(logarithm.abs()) * (-22_f64).exp2();
        let [least, greatest] = [(logarithm - off).exp2(), (logarithm + off).exp2()];
        let error = (exact - least).max(greatest - exact).max(exact * off) + 2.5 * ulp(greatest);
        is_near(found, exact, if error.is_nan() { f64::INFINITY } else { error })
    })
}

/// The powers that the documentation tells of.
fn powers_of_edges(device: &Device, _: &Options) -> anyhow::Result<()> {
    let inf = f32::INFINITY;
    let cases: [[f32; 3]; 12] = [
        [0.0, 2.0, 0.0],
        [0.0, -2.0, inf],
        [1.0, 1e30, 1.0],
        [4.0, 0.0, 1.0],
        [2.0, 10.0, 1024.0],
        [inf, 2.0, inf],
        [inf, -1.0, 0.0],
        [2.0, inf, inf],
        [0.0, 0.0, f32::NAN],
        [inf, 0.0, f32::NAN],
        [-2.0, 2.0, f32::NAN],
        [f32::NAN, 0.5, f32::NAN],
    ];
    let n = 128;
    let of = |part: usize| (0..n).map(|i| cases[i % cases.len()][part]).collect::<Vec<_>>();
    let mut out = device.filled_bytes([n], 0xab)?;
    let (a, b) = (device.tensor(&of(0), [n])?, device.tensor(&of(1), [n])?);
    math_powers::launch(device, blocks(n), &a, &b, &mut out)?;
    same("powers", &out.to_vec()?, &of(2))
}

/// `sin`, `cos` and `tanh`.
#[tma_kernel(threads = 128)]
pub fn math_angles(a: Global<f32>, out: Global<f32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = a.get(i);
    out.set(i * 3, sin(x));
    out.set(i * 3 + 1, cos(x));
    out.set(i * 3 + 2, tanh(x));
}

fn angles(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 14);
    let inputs = samples::<f32>(53, n);
    let exact = |x: f64| [x.sin(), x.cos(), x.tanh()];
    let wanted: Vec<f32> = inputs.iter().flat_map(|&x| exact(f64::from(x)).map(|y| y as f32)).collect();
    let mut out = device.filled_bytes([3 * n], 0xab)?;
    math_angles::launch(device, blocks(n), &device.tensor(&inputs, [n])?, &mut out)?;
    judged("sin, cos and tanh", &out.to_vec()?, &wanted, |i, found, _| {
        let x = f64::from(inputs[i / 3]);
        let exact = exact(x)[i % 3];
        let error = match i % 3 {
            2 => exact.abs() * (-11_f64).exp2(),
            // The PTX ISA says 2^-20.5; an H200 went beyond it in one of the cases.
            _ if x.abs() <= 2.0 * PI => (-20.0_f64).exp2(),
            _ if x.abs() <= 100.0 * PI => (-14.7_f64).exp2(),
            // Nothing is known of the others but what they are of.
            _ => f64::INFINITY,
        };
        is_near(found, exact, error)
    })
}

/// `clamp`.
#[tma_kernel(threads = 128, instances(
    i8 = <i8>, u32 = <u32>, i64 = <i64>, f16 = <f16>, bf16 = <bf16>, f32 = <f32>, f64 = <f64>,
))]
pub fn math_clamped<T: Scalar + Ordered>(a: Global<T>, low: Global<T>, high: Global<T>, out: Global<T>) {
    let i = block_idx().x * 128 + thread_idx().x;
    out.set(i, clamp(a.get(i), low.get(i), high.get(i)));
}

/// Numbers between every two edges in their order. What is compared is Rust's `clamp`.
fn clamped<T: Sample + Ordered + PartialOrd>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    math_clamped::Instance<T>: math_clamped::Compiled,
{
    let n = options.elements(1 << 14);
    let (low, high) = sample_pairs::<T>(54, n);
    let bounds = low.into_iter().zip(high).map(|(low, high)| match low.partial_cmp(&high) {
        Some(order) if order.is_le() => (low, high),
        Some(_) => (high, low),
        None => (T::edges()[0], T::edges()[0]),
    });
    let (low, high): (Vec<T>, Vec<T>) = bounds.unzip();
    let edges = T::edges();
    let random = samples::<T>(55, n);
    let a: Vec<T> = (0..n).map(|i| if i % 3 == 0 { random[i] } else { edges[i / 3 % edges.len()] }).collect();
    let wanted: Vec<T> = (0..n)
        .map(|i| {
            if a[i] < low[i] {
                low[i]
            } else if a[i] > high[i] {
                high[i]
            } else {
                a[i]
            }
        })
        .collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    let (a, low, high) = (device.tensor(&a, [n])?, device.tensor(&low, [n])?, device.tensor(&high, [n])?);
    math_clamped::launch::<T>(device, blocks(n), &a, &low, &high, &mut out)?;
    same("clamped", &out.to_vec()?, &wanted)
}

/// `copysign`.
#[tma_kernel(threads = 128, instances(f16 = <f16>, bf16 = <bf16>, f32 = <f32>, f64 = <f64>))]
pub fn math_signs<T: Scalar + Real>(a: Global<T>, b: Global<T>, out: Global<T>) {
    let i = block_idx().x * 128 + thread_idx().x;
    out.set(i, copysign(a.get(i), b.get(i)));
}

/// A float whose sign is told by its bits.
trait Signed: Sample + Real + std::ops::Neg<Output = Self> {
    /// Whether the sign's bit is set.
    fn is_negative(self) -> bool;
}

macro_rules! signed {
    ($($ty:ty)+) => { $(
        impl Signed for $ty {
            fn is_negative(self) -> bool {
                self.is_sign_negative()
            }
        }
    )+ };
}

signed!(f16 bf16 f32 f64);

fn signs<T: Signed>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    math_signs::Instance<T>: math_signs::Compiled,
{
    let n = options.elements(1 << 12);
    let (a, b) = sample_pairs::<T>(56, n);
    let wanted: Vec<T> =
        (0..n).map(|i| if a[i].is_negative() == b[i].is_negative() { a[i] } else { -a[i] }).collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    math_signs::launch::<T>(device, blocks(n), &device.tensor(&a, [n])?, &device.tensor(&b, [n])?, &mut out)?;
    same("with the sign of the other", &out.to_vec()?, &wanted)
}

/// `clamp` and `copysign` as methods, with constants.
#[tma_kernel(threads = 128)]
pub fn math_methods(a: Global<f32>, b: Global<i32>, out: Global<f32>, whole: Global<i32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = a.get(i);
    out.set(i * 2, x.clamp(-0.0, 1.0));
    out.set(i * 2 + 1, 2.5f32.copysign(x));
    whole.set(i, b.get(i).clamp(-7, 7));
}

fn methods(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let (a, b) = (samples::<f32>(57, n), samples::<i32>(58, n));
    let wanted: Vec<f32> = a.iter().flat_map(|x| [x.clamp(-0.0, 1.0), 2.5f32.copysign(*x)]).collect();
    let wanted_whole: Vec<i32> = b.iter().map(|x| *x.clamp(&-7, &7)).collect();
    let (mut out, mut whole) = (device.filled_bytes([2 * n], 0xab)?, device.filled_bytes([n], 0xab)?);
    let (a, b) = (device.tensor(&a, [n])?, device.tensor(&b, [n])?);
    math_methods::launch(device, blocks(n), &a, &b, &mut out, &mut whole)?;
    same("of floats", &out.to_vec()?, &wanted)?;
    same("of integers", &whole.to_vec()?, &wanted_whole)
}
