//! Integers: every operator of every type.
//!
//! Arithmetic wraps, shifts take the amount modulo the width, and a division by 0 returns the
//! dividend and no remainder, where Rust would panic.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use tma_runtime::lang::{Ordered, Signed};
use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::{Sample, sample_pairs, samples};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "integers::i8", run: check::<i8> },
    Case { name: "integers::u8", run: check::<u8> },
    Case { name: "integers::i16", run: check::<i16> },
    Case { name: "integers::u16", run: check::<u16> },
    Case { name: "integers::i32", run: check::<i32> },
    Case { name: "integers::u32", run: check::<u32> },
    Case { name: "integers::i64", run: check::<i64> },
    Case { name: "integers::u64", run: check::<u64> },
    Case { name: "integers::usize", run: check::<usize> },
    Case { name: "signed_integers::i8", run: check_sign::<i8> },
    Case { name: "signed_integers::i16", run: check_sign::<i16> },
    Case { name: "signed_integers::i32", run: check_sign::<i32> },
    Case { name: "signed_integers::i64", run: check_sign::<i64> },
];

/// Runs an instance of `integers` on edge values and random ones, and compares with
/// [`Integer::results`].
fn check<T: Integer>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    integers::Instance<T>: integers::Compiled,
{
    let n = options.elements(1 << 14);
    let (a, b) = sample_pairs::<T>(1, n);
    let amounts = samples::<u32>(2, n);
    let wanted: Vec<T> = (0..n).flat_map(|i| T::results(a[i], b[i], amounts[i])).collect();
    let wanted_order: Vec<u8> = (0..n).map(|i| order(&a[i], &b[i])).collect();

    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    let mut order = device.filled_bytes([n], 0xab)?;
    let (a, b) = (device.tensor(&a, [n])?, device.tensor(&b, [n])?);
    let amounts = device.tensor(&amounts, [n])?;
    integers::launch::<T>(device, blocks(n), &a, &b, &amounts, &mut out, &mut order)?;
    same("results", &out.to_vec()?, &wanted)?;
    same("comparisons", &order.to_vec()?, &wanted_order)
}

/// Runs an instance of `signed_integers`, and compares with [`SignedInteger::sign_results`].
fn check_sign<T: SignedInteger>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    signed_integers::Instance<T>: signed_integers::Compiled,
{
    let n = options.elements(1 << 14);
    let a = samples::<T>(1, n);
    let wanted: Vec<T> = a.iter().flat_map(|&x| T::sign_results(x)).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    signed_integers::launch::<T>(device, blocks(n), &device.tensor(&a, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

/// Returns the comparisons `== != < <= > >=` as bits, the first lowest.
pub(super) fn order<T: PartialOrd>(x: &T, y: &T) -> u8 {
    let compared = [x == y, x != y, x < y, x <= y, x > y, x >= y];
    compared.into_iter().enumerate().map(|(k, held)| u8::from(held) << k).sum()
}

/// The operators of integers, and the same in plain Rust.
pub trait Integer:
    Sample
    + Ord
    + Ordered
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// Returns the results of `integers`, in its order.
    fn results(x: Self, y: Self, amount: u32) -> [Self; 13];
}

/// The operators that only signed integers have.
pub trait SignedInteger: Integer + Signed + Neg<Output = Self> {
    /// Returns the results of `signed_integers`, in its order.
    fn sign_results(x: Self) -> [Self; 2];
}

macro_rules! integers {
    ($($ty:ty)+) => { $(
        impl Integer for $ty {
            fn results(x: Self, y: Self, amount: u32) -> [Self; 13] {
                [
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
                ]
            }
        }
    )+ };
}

macro_rules! signed_integers {
    ($($ty:ty)+) => { $(
        impl SignedInteger for $ty {
            fn sign_results(x: Self) -> [Self; 2] {
                [x.wrapping_neg(), x.wrapping_abs()]
            }
        }
    )+ };
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64 usize);
signed_integers!(i8 i16 i32 i64);

/// Every operator that all integers have.
#[tma_kernel(threads = 128, instances(T in [i8, u8, i16, u16, i32, u32, i64, u64, usize]))]
pub fn integers<T: Integer>(
    a: Global<T>,
    b: Global<T>,
    amounts: Global<u32>,
    out: Global<T>,
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

/// The operators that only signed integers have.
#[tma_kernel(threads = 128, instances(T in [i8, i16, i32, i64]))]
pub fn signed_integers<T: SignedInteger>(a: Global<T>, out: Global<T>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < a.len() {
        let x = a.get(i);
        out.set(i * 2, -x);
        out.set(i * 2 + 1, abs(x));
    }
}
