//! Methods of integers and floats, compared with the same text in plain Rust.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::{hash, samples};

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "numbers::methods::signed", run: signed },
    Case { name: "numbers::methods::unsigned", run: unsigned },
    Case { name: "numbers::methods::upper_halves", run: upper_halves },
    Case { name: "numbers::methods::powers", run: powers },
];

/// The results of `x` as each signed type, in the order of the kernel.
macro_rules! of_signed {
    ($x:expr, $y:expr, $n:expr; $($ty:ty)+) => {
        [$({
            let (x, y, n) = ($x as $ty, $y as $ty, $n);
            [
                x.wrapping_add(y) as u64,
                x.wrapping_sub(y) as u64,
                x.wrapping_mul(y) as u64,
                x.wrapping_neg() as u64,
                x.wrapping_shl(n) as u64,
                x.wrapping_shr(n) as u64,
                x.saturating_add(y) as u64,
                x.saturating_sub(y) as u64,
                x.saturating_mul(y) as u64,
                x.abs_diff(y) as u64,
                (x % 4).pow(n % 3) as u64,
                (x % 4).pow(3) as u64,
                ((x & <$ty>::MAX) | 1).ilog2() as u64,
            ]
        }),+].concat()
    };
}

/// The results of `x` as each unsigned type, in the order of the kernel.
macro_rules! of_unsigned {
    ($x:expr, $y:expr, $n:expr; $($ty:ty)+) => {
        [$({
            let (x, y, n) = ($x as $ty, $y as $ty, $n);
            [
                x.wrapping_add(y) as u64,
                x.wrapping_sub(y) as u64,
                x.wrapping_mul(y) as u64,
                x.wrapping_neg() as u64,
                x.wrapping_shl(n) as u64,
                x.wrapping_shr(n) as u64,
                x.saturating_add(y) as u64,
                x.saturating_sub(y) as u64,
                x.saturating_mul(y) as u64,
                x.abs_diff(y) as u64,
                (x % 4).pow(n % 3) as u64,
                (x % 4).pow(3) as u64,
                ((x & <$ty>::MAX) | 1).ilog2() as u64,
                x.is_power_of_two() as u64,
                (x / 4).next_multiple_of(y % 9 + 1) as u64,
            ]
        }),+].concat()
    };
}

/// Every method of signed integers.
#[tma_kernel(threads = 128)]
pub fn numbers_signed(words: Global<u64>, others: Global<u64>, by: Global<u32>, out: Global<u64>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let n = by.get(i);
    let word = words.get(i);
    let other = others.get(i);
    let first = i * 52;
    let x = word as i8;
    let y = other as i8;
    let of_i8 = [
        x.wrapping_add(y) as u64,
        x.wrapping_sub(y) as u64,
        x.wrapping_mul(y) as u64,
        x.wrapping_neg() as u64,
        x.wrapping_shl(n) as u64,
        x.wrapping_shr(n) as u64,
        x.saturating_add(y) as u64,
        x.saturating_sub(y) as u64,
        x.saturating_mul(y) as u64,
        x.abs_diff(y) as u64,
        (x % 4).pow(n % 3) as u64,
        (x % 4).pow(3) as u64,
        ((x & i8::MAX) | 1).ilog2() as u64,
    ];
    let x = word as i16;
    let y = other as i16;
    let of_i16 = [
        x.wrapping_add(y) as u64,
        x.wrapping_sub(y) as u64,
        x.wrapping_mul(y) as u64,
        x.wrapping_neg() as u64,
        x.wrapping_shl(n) as u64,
        x.wrapping_shr(n) as u64,
        x.saturating_add(y) as u64,
        x.saturating_sub(y) as u64,
        x.saturating_mul(y) as u64,
        x.abs_diff(y) as u64,
        (x % 4).pow(n % 3) as u64,
        (x % 4).pow(3) as u64,
        ((x & i16::MAX) | 1).ilog2() as u64,
    ];
    let x = word as i32;
    let y = other as i32;
    let of_i32 = [
        x.wrapping_add(y) as u64,
        x.wrapping_sub(y) as u64,
        x.wrapping_mul(y) as u64,
        x.wrapping_neg() as u64,
        x.wrapping_shl(n) as u64,
        x.wrapping_shr(n) as u64,
        x.saturating_add(y) as u64,
        x.saturating_sub(y) as u64,
        x.saturating_mul(y) as u64,
        x.abs_diff(y) as u64,
        (x % 4).pow(n % 3) as u64,
        (x % 4).pow(3) as u64,
        ((x & i32::MAX) | 1).ilog2() as u64,
    ];
    let x = word as i64;
    let y = other as i64;
    let of_i64 = [
        x.wrapping_add(y) as u64,
        x.wrapping_sub(y) as u64,
        x.wrapping_mul(y) as u64,
        x.wrapping_neg() as u64,
        x.wrapping_shl(n) as u64,
        x.wrapping_shr(n) as u64,
        x.saturating_add(y) as u64,
        x.saturating_sub(y) as u64,
        x.saturating_mul(y) as u64,
        x.abs_diff(y) as u64,
        (x % 4).pow(n % 3) as u64,
        (x % 4).pow(3) as u64,
        ((x & i64::MAX) | 1).ilog2() as u64,
    ];
    for k in unroll(0..13u32) {
        out.set(first + k, of_i8[k as usize]);
        out.set(first + 13 + k, of_i16[k as usize]);
        out.set(first + 26 + k, of_i32[k as usize]);
        out.set(first + 39 + k, of_i64[k as usize]);
    }
}

/// Every method of unsigned integers.
#[tma_kernel(threads = 128)]
pub fn numbers_unsigned(words: Global<u64>, others: Global<u64>, by: Global<u32>, out: Global<u64>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let n = by.get(i);
    let word = words.get(i);
    let other = others.get(i);
    let first = i * 60;
    let x = word as u8;
    let y = other as u8;
    let of_u8 = [
        x.wrapping_add(y) as u64,
        x.wrapping_sub(y) as u64,
        x.wrapping_mul(y) as u64,
        x.wrapping_neg() as u64,
        x.wrapping_shl(n) as u64,
        x.wrapping_shr(n) as u64,
        x.saturating_add(y) as u64,
        x.saturating_sub(y) as u64,
        x.saturating_mul(y) as u64,
        x.abs_diff(y) as u64,
        (x % 4).pow(n % 3) as u64,
        (x % 4).pow(3) as u64,
        (x | 1).ilog2() as u64,
        x.is_power_of_two() as u64,
        (x / 4).next_multiple_of(y % 9 + 1) as u64,
    ];
    let x = word as u16;
    let y = other as u16;
    let of_u16 = [
        x.wrapping_add(y) as u64,
        x.wrapping_sub(y) as u64,
        x.wrapping_mul(y) as u64,
        x.wrapping_neg() as u64,
        x.wrapping_shl(n) as u64,
        x.wrapping_shr(n) as u64,
        x.saturating_add(y) as u64,
        x.saturating_sub(y) as u64,
        x.saturating_mul(y) as u64,
        x.abs_diff(y) as u64,
        (x % 4).pow(n % 3) as u64,
        (x % 4).pow(3) as u64,
        (x | 1).ilog2() as u64,
        x.is_power_of_two() as u64,
        (x / 4).next_multiple_of(y % 9 + 1) as u64,
    ];
    let x = word as u32;
    let y = other as u32;
    let of_u32 = [
        x.wrapping_add(y) as u64,
        x.wrapping_sub(y) as u64,
        x.wrapping_mul(y) as u64,
        x.wrapping_neg() as u64,
        x.wrapping_shl(n) as u64,
        x.wrapping_shr(n) as u64,
        x.saturating_add(y) as u64,
        x.saturating_sub(y) as u64,
        x.saturating_mul(y) as u64,
        x.abs_diff(y) as u64,
        (x % 4).pow(n % 3) as u64,
        (x % 4).pow(3) as u64,
        (x | 1).ilog2() as u64,
        x.is_power_of_two() as u64,
        (x / 4).next_multiple_of(y % 9 + 1) as u64,
    ];
    let x = word as u64;
    let y = other as u64;
    let of_u64 = [
        x.wrapping_add(y) as u64,
        x.wrapping_sub(y) as u64,
        x.wrapping_mul(y) as u64,
        x.wrapping_neg() as u64,
        x.wrapping_shl(n) as u64,
        x.wrapping_shr(n) as u64,
        x.saturating_add(y) as u64,
        x.saturating_sub(y) as u64,
        x.saturating_mul(y) as u64,
        x.abs_diff(y) as u64,
        (x % 4).pow(n % 3) as u64,
        (x % 4).pow(3) as u64,
        (x | 1).ilog2() as u64,
        x.is_power_of_two() as u64,
        (x / 4).next_multiple_of(y % 9 + 1) as u64,
    ];
    for k in unroll(0..15u32) {
        out.set(first + k, of_u8[k as usize]);
        out.set(first + 15 + k, of_u16[k as usize]);
        out.set(first + 30 + k, of_u32[k as usize]);
        out.set(first + 45 + k, of_u64[k as usize]);
    }
}

/// `mul_hi` of each of its types.
#[tma_kernel(threads = 128)]
pub fn numbers_upper_halves(words: Global<u64>, others: Global<u64>, out: Global<u64>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = words.get(i);
    let y = others.get(i);
    out.set(i * 4, mul_hi(x as u32, y as u32) as u64);
    out.set(i * 4 + 1, mul_hi(x as i32, y as i32) as u64);
    out.set(i * 4 + 2, mul_hi(x, y));
    out.set(i * 4 + 3, mul_hi(x as i64, y as i64) as u64);
}

/// `powi` with exponents that are constants, and one that is not.
#[tma_kernel(threads = 128)]
pub fn numbers_powers(numbers: Global<f64>, by: Global<i32>, singles: Global<f32>, doubles: Global<f64>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let n = by.get(i);
    let x = numbers.get(i);
    let of_f64 = [x.powi(n), x.powi(0), x.powi(1), x.powi(2), x.powi(3), x.powi(-1), x.powi(-6), x.powi(13)];
    let x = x as f32;
    let of_f32 = [x.powi(n), x.powi(0), x.powi(1), x.powi(2), x.powi(3), x.powi(-1), x.powi(-6), x.powi(13)];
    for k in unroll(0..8u32) {
        doubles.set(i * 8 + k, of_f64[k as usize]);
        singles.set(i * 8 + k, of_f32[k as usize]);
    }
}

/// Edge cases, small numbers and others, and amounts below, at and above every width.
fn inputs(n: usize) -> (Vec<u64>, Vec<u64>, Vec<u32>) {
    let word = |seed, i| {
        let random = hash(seed, i);
        match random % 3 {
            0 => random >> 3 & 15,
            1 => (random as i64 >> (random >> 8 & 63)) as u64,
            _ => samples::<u8>(seed, 13)[random as usize / 3 % 13] as i8 as u64,
        }
    };
    let words = (0..n as u64).map(|i| word(51, i));
    let others = (0..n as u64).map(|i| word(52, i));
    (words.collect(), others.collect(), (0..n as u64).map(|i| hash(53, i) as u32 % 70).collect())
}

fn signed(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let (words, others, by) = inputs(n);
    let wanted: Vec<u64> =
        (0..n).flat_map(|i| of_signed!(words[i], others[i], by[i]; i8 i16 i32 i64)).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    let (words, others) = (device.tensor(&words, [n])?, device.tensor(&others, [n])?);
    numbers_signed::launch(device, blocks(n), &words, &others, &device.tensor(&by, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

fn unsigned(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let (words, others, by) = inputs(n);
    let wanted: Vec<u64> =
        (0..n).flat_map(|i| of_unsigned!(words[i], others[i], by[i]; u8 u16 u32 u64)).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    let (words, others) = (device.tensor(&words, [n])?, device.tensor(&others, [n])?);
    numbers_unsigned::launch(device, blocks(n), &words, &others, &device.tensor(&by, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

fn upper_halves(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let (words, others, _) = inputs(n);
    let of_pair = |i: usize| {
        let (x, y) = (words[i], others[i]);
        let narrow = (u64::from(x as u32) * u64::from(y as u32)) >> 32;
        let signed = ((i64::from(x as i32) * i64::from(y as i32)) >> 32) as i32;
        let wide = (u128::from(x) * u128::from(y)) >> 64;
        let wide_signed = (i128::from(x as i64) * i128::from(y as i64)) >> 64;
        [narrow, signed as u64, wide as u64, wide_signed as u64]
    };
    let wanted: Vec<u64> = (0..n).flat_map(of_pair).collect();
    let mut out = device.filled_bytes([wanted.len()], 0xab)?;
    let (words, others) = (device.tensor(&words, [n])?, device.tensor(&others, [n])?);
    numbers_upper_halves::launch(device, blocks(n), &words, &others, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

fn powers(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let mut numbers = samples::<f64>(54, n);
    for (i, number) in numbers.iter_mut().enumerate().skip(64).step_by(2) {
        *number = (hash(55, i as u64) % 4000) as f64 / 1000.0 - 2.0;
    }
    let exponent = |i: usize| match i % 8 {
        0 => samples::<i32>(56, 13)[i / 8 % 13],
        _ => (hash(56, i as u64) % 41) as i32 - 20,
    };
    let by: Vec<i32> = (0..n).map(exponent).collect();
    let exponents = |i: usize| [by[i], 0, 1, 2, 3, -1, -6, 13];
    let doubles: Vec<f64> = (0..n).flat_map(|i| exponents(i).map(|n| numbers[i].powi(n))).collect();
    let singles: Vec<f32> = (0..n).flat_map(|i| exponents(i).map(|n| (numbers[i] as f32).powi(n))).collect();
    let mut single_out = device.filled_bytes([8 * n], 0xab)?;
    let mut double_out = device.filled_bytes([8 * n], 0xab)?;
    let (numbers, by) = (device.tensor(&numbers, [n])?, device.tensor(&by, [n])?);
    numbers_powers::launch(device, blocks(n), &numbers, &by, &mut single_out, &mut double_out)?;
    same("single precision", &single_out.to_vec()?, &singles)?;
    same("double precision", &double_out.to_vec()?, &doubles)
}
