//! Integers: every operator of every type.
//!
//! Arithmetic wraps, shifts take the amount modulo the width, and a division by 0 gives the dividend and no remainder,
//! where Rust would panic.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::{Sample, sample_pairs, samples};

/// A case that runs a kernel of this file.
macro_rules! case {
    ($name:literal, $kernel:ident) => {
        Case {
            name: $name,
            run: |device, options| {
                check(device, options, |on, grid, a, b, amounts, out, order| {
                    $kernel::launch(on, grid, a, b, amounts, out, order)
                })
            },
        }
    };
}

/// What is checked here.
pub const CASES: &[Case] = &[
    case!("integers::i8", integers_i8),
    case!("integers::u8", integers_u8),
    case!("integers::i16", integers_i16),
    case!("integers::u16", integers_u16),
    case!("integers::i32", integers_i32),
    case!("integers::u32", integers_u32),
    case!("integers::i64", integers_i64),
    case!("integers::u64", integers_u64),
    case!("integers::usize", integers_usize),
];

/// Launches a kernel of this file on inputs, results and the bits of six comparisons.
type Launch<T> = fn(
    &Device,
    Grid,
    &DeviceTensor<T, 1>,
    &DeviceTensor<T, 1>,
    &DeviceTensor<u32, 1>,
    &mut DeviceTensor<T, 1>,
    &mut DeviceTensor<u8, 1>,
) -> Result<(), Error>;

/// Runs a kernel on edge values and random ones, and compares with [`Integer::results`].
fn check<T: Integer>(device: &Device, options: &Options, launch: Launch<T>) -> anyhow::Result<()> {
    let n = options.elements(1 << 14);
    let (a, b) = sample_pairs::<T>(1, n);
    let amounts = samples::<u32>(2, n);
    let wanted: Vec<T> = (0..n).flat_map(|i| T::results(a[i], b[i], amounts[i])).collect();
    let wanted_order: Vec<u8> = (0..n).map(|i| order(&a[i], &b[i])).collect();

    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    let mut order = device.filled_bytes([n], 0xab)?;
    let (a, b) = (device.tensor(&a, [n])?, device.tensor(&b, [n])?);
    launch(device, blocks(n), &a, &b, &device.tensor(&amounts, [n])?, &mut out, &mut order)?;
    same("results", &out.to_vec()?, &wanted)?;
    same("comparisons", &order.to_vec()?, &wanted_order)
}

/// The comparisons `== != < <= > >=` as bits, the first lowest.
pub(super) fn order<T: PartialOrd>(x: &T, y: &T) -> u8 {
    let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
    compared.into_iter().enumerate().map(|(k, held)| u8::from(held) << k).sum()
}

/// Integers in plain Rust.
trait Integer: Sample + PartialOrd {
    /// What the kernel of this type computes, in its order.
    fn results(x: Self, y: Self, amount: u32) -> Vec<Self>;
}

macro_rules! integer {
    ($($ty:ty: |$x:ident| $further:expr;)+) => { $(
        impl Integer for $ty {
            fn results(x: Self, y: Self, amount: u32) -> Vec<Self> {
                let mut results = vec![
                    x & y,
                    x | y,
                    x ^ y,
                    !x,
                    x.wrapping_shl(amount),
                    x.wrapping_shr(amount),
                    x.wrapping_add(y),
                    x.wrapping_sub(y),
                    x.wrapping_mul(y),
                    if y == 0 { x } else { x.wrapping_div(y) },
                    if y == 0 { 0 } else { x.wrapping_rem(y) },
                    x.min(y),
                    x.max(y),
                ];
                let $x = x;
                let further: &[$ty] = &$further;
                results.extend(further);
                results
            }
        }
    )+ };
}

integer! {
    i8: |x| [x.wrapping_neg(), x.wrapping_abs()];
    u8: |_x| [];
    i16: |x| [x.wrapping_neg(), x.wrapping_abs()];
    u16: |_x| [];
    i32: |x| [x.wrapping_neg(), x.wrapping_abs()];
    u32: |_x| [];
    i64: |x| [x.wrapping_neg(), x.wrapping_abs()];
    u64: |_x| [];
    usize: |_x| [];
}

/// Every operator of `i8`.
#[tma_kernel(threads = 128)]
pub fn integers_i8(a: Global<i8>, b: Global<i8>, amounts: Global<u32>, out: Global<i8>, order: Global<u8>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let s = amounts.get(i);
        let bits = [x & y, x | y, x ^ y, !x, x << s, x >> s];
        let numbers = [x + y, x - y, x * y, x / y, x % y, min(x, y), x.max(y), -x, abs(x)];
        for k in unroll(0..6usize) {
            out.set(i * 15 + k as u64, bits[k]);
        }
        for k in unroll(0..9usize) {
            out.set(i * 15 + 6 + k as u64, numbers[k]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}

/// Every operator of `u8`.
#[tma_kernel(threads = 128)]
pub fn integers_u8(a: Global<u8>, b: Global<u8>, amounts: Global<u32>, out: Global<u8>, order: Global<u8>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let s = amounts.get(i);
        let bits = [x & y, x | y, x ^ y, !x, x << s, x >> s];
        let numbers = [x + y, x - y, x * y, x / y, x % y, min(x, y), x.max(y)];
        for k in unroll(0..6usize) {
            out.set(i * 13 + k as u64, bits[k]);
        }
        for k in unroll(0..7usize) {
            out.set(i * 13 + 6 + k as u64, numbers[k]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}

/// Every operator of `i16`.
#[tma_kernel(threads = 128)]
pub fn integers_i16(
    a: Global<i16>,
    b: Global<i16>,
    amounts: Global<u32>,
    out: Global<i16>,
    order: Global<u8>,
) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let s = amounts.get(i);
        let bits = [x & y, x | y, x ^ y, !x, x << s, x >> s];
        let numbers = [x + y, x - y, x * y, x / y, x % y, min(x, y), x.max(y), -x, abs(x)];
        for k in unroll(0..6usize) {
            out.set(i * 15 + k as u64, bits[k]);
        }
        for k in unroll(0..9usize) {
            out.set(i * 15 + 6 + k as u64, numbers[k]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}

/// Every operator of `u16`.
#[tma_kernel(threads = 128)]
pub fn integers_u16(
    a: Global<u16>,
    b: Global<u16>,
    amounts: Global<u32>,
    out: Global<u16>,
    order: Global<u8>,
) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let s = amounts.get(i);
        let bits = [x & y, x | y, x ^ y, !x, x << s, x >> s];
        let numbers = [x + y, x - y, x * y, x / y, x % y, min(x, y), x.max(y)];
        for k in unroll(0..6usize) {
            out.set(i * 13 + k as u64, bits[k]);
        }
        for k in unroll(0..7usize) {
            out.set(i * 13 + 6 + k as u64, numbers[k]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}

/// Every operator of `i32`.
#[tma_kernel(threads = 128)]
pub fn integers_i32(
    a: Global<i32>,
    b: Global<i32>,
    amounts: Global<u32>,
    out: Global<i32>,
    order: Global<u8>,
) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let s = amounts.get(i);
        let bits = [x & y, x | y, x ^ y, !x, x << s, x >> s];
        let numbers = [x + y, x - y, x * y, x / y, x % y, min(x, y), x.max(y), -x, abs(x)];
        for k in unroll(0..6usize) {
            out.set(i * 15 + k as u64, bits[k]);
        }
        for k in unroll(0..9usize) {
            out.set(i * 15 + 6 + k as u64, numbers[k]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}

/// Every operator of `u32`.
#[tma_kernel(threads = 128)]
pub fn integers_u32(
    a: Global<u32>,
    b: Global<u32>,
    amounts: Global<u32>,
    out: Global<u32>,
    order: Global<u8>,
) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let s = amounts.get(i);
        let bits = [x & y, x | y, x ^ y, !x, x << s, x >> s];
        let numbers = [x + y, x - y, x * y, x / y, x % y, min(x, y), x.max(y)];
        for k in unroll(0..6usize) {
            out.set(i * 13 + k as u64, bits[k]);
        }
        for k in unroll(0..7usize) {
            out.set(i * 13 + 6 + k as u64, numbers[k]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}

/// Every operator of `i64`.
#[tma_kernel(threads = 128)]
pub fn integers_i64(
    a: Global<i64>,
    b: Global<i64>,
    amounts: Global<u32>,
    out: Global<i64>,
    order: Global<u8>,
) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let s = amounts.get(i);
        let bits = [x & y, x | y, x ^ y, !x, x << s, x >> s];
        let numbers = [x + y, x - y, x * y, x / y, x % y, min(x, y), x.max(y), -x, abs(x)];
        for k in unroll(0..6usize) {
            out.set(i * 15 + k as u64, bits[k]);
        }
        for k in unroll(0..9usize) {
            out.set(i * 15 + 6 + k as u64, numbers[k]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}

/// Every operator of `u64`.
#[tma_kernel(threads = 128)]
pub fn integers_u64(
    a: Global<u64>,
    b: Global<u64>,
    amounts: Global<u32>,
    out: Global<u64>,
    order: Global<u8>,
) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let s = amounts.get(i);
        let bits = [x & y, x | y, x ^ y, !x, x << s, x >> s];
        let numbers = [x + y, x - y, x * y, x / y, x % y, min(x, y), x.max(y)];
        for k in unroll(0..6usize) {
            out.set(i * 13 + k as u64, bits[k]);
        }
        for k in unroll(0..7usize) {
            out.set(i * 13 + 6 + k as u64, numbers[k]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}

/// Every operator of `usize`.
#[tma_kernel(threads = 128)]
pub fn integers_usize(
    a: Global<usize>,
    b: Global<usize>,
    amounts: Global<u32>,
    out: Global<usize>,
    order: Global<u8>,
) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        let y = b.get(i);
        let s = amounts.get(i);
        let bits = [x & y, x | y, x ^ y, !x, x << s, x >> s];
        let numbers = [x + y, x - y, x * y, x / y, x % y, min(x, y), x.max(y)];
        for k in unroll(0..6usize) {
            out.set(i * 13 + k as u64, bits[k]);
        }
        for k in unroll(0..7usize) {
            out.set(i * 13 + 6 + k as u64, numbers[k]);
        }
        let mut held = 0;
        let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
        for k in unroll(0..6usize) {
            held |= (compared[k] as u8) << k;
        }
        order.set(i, held);
    }
}
