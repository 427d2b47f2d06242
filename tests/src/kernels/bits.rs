//! The bit methods of every integer type.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::{hash, samples};

/// The cases of this module.
pub const CASES: &[Case] =
    &[Case { name: "bits::narrow", run: narrow }, Case { name: "bits::wide", run: wide }];

/// The number of results per input and type.
const RESULTS: usize = 10;

/// The results of `x` as each type, in the order of the kernels.
macro_rules! results {
    ($x:expr, $n:expr; $($ty:ty)+) => {
        [$({
            let (x, n) = ($x as $ty, $n);
            [
                u64::from(x.count_ones()),
                u64::from(x.count_zeros()),
                u64::from(x.leading_zeros()),
                u64::from(x.leading_ones()),
                u64::from(x.trailing_zeros()),
                u64::from(x.trailing_ones()),
                x.reverse_bits() as u64,
                x.swap_bytes() as u64,
                x.rotate_left(n) as u64,
                x.rotate_right(n) as u64,
            ]
        }),+].concat()
    };
}

/// Every method of the integers of less than 32 bits.
#[tma_kernel(threads = 128)]
pub fn bits_narrow(words: Global<u64>, by: Global<u32>, out: Global<u64>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let n = by.get(i);
    let word = words.get(i);
    let first = i * 40;
    let x = word as i8;
    let of_i8 = [
        x.count_ones() as u64,
        x.count_zeros() as u64,
        x.leading_zeros() as u64,
        x.leading_ones() as u64,
        x.trailing_zeros() as u64,
        x.trailing_ones() as u64,
        x.reverse_bits() as u64,
        x.swap_bytes() as u64,
        x.rotate_left(n) as u64,
        x.rotate_right(n) as u64,
    ];
    let x = word as u8;
    let of_u8 = [
        x.count_ones() as u64,
        x.count_zeros() as u64,
        x.leading_zeros() as u64,
        x.leading_ones() as u64,
        x.trailing_zeros() as u64,
        x.trailing_ones() as u64,
        x.reverse_bits() as u64,
        x.swap_bytes() as u64,
        x.rotate_left(n) as u64,
        x.rotate_right(n) as u64,
    ];
    let x = word as i16;
    let of_i16 = [
        x.count_ones() as u64,
        x.count_zeros() as u64,
        x.leading_zeros() as u64,
        x.leading_ones() as u64,
        x.trailing_zeros() as u64,
        x.trailing_ones() as u64,
        x.reverse_bits() as u64,
        x.swap_bytes() as u64,
        x.rotate_left(n) as u64,
        x.rotate_right(n) as u64,
    ];
    let x = word as u16;
    let of_u16 = [
        x.count_ones() as u64,
        x.count_zeros() as u64,
        x.leading_zeros() as u64,
        x.leading_ones() as u64,
        x.trailing_zeros() as u64,
        x.trailing_ones() as u64,
        x.reverse_bits() as u64,
        x.swap_bytes() as u64,
        x.rotate_left(n) as u64,
        x.rotate_right(n) as u64,
    ];
    for k in unroll(0..10u32) {
        out.set(first + k, of_i8[k as usize]);
        out.set(first + 10 + k, of_u8[k as usize]);
        out.set(first + 20 + k, of_i16[k as usize]);
        out.set(first + 30 + k, of_u16[k as usize]);
    }
}

/// Every method of the integers of 32 bits and more.
#[tma_kernel(threads = 128)]
pub fn bits_wide(words: Global<u64>, by: Global<u32>, out: Global<u64>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let n = by.get(i);
    let word = words.get(i);
    let first = i * 50;
    let x = word as i32;
    let of_i32 = [
        x.count_ones() as u64,
        x.count_zeros() as u64,
        x.leading_zeros() as u64,
        x.leading_ones() as u64,
        x.trailing_zeros() as u64,
        x.trailing_ones() as u64,
        x.reverse_bits() as u64,
        x.swap_bytes() as u64,
        x.rotate_left(n) as u64,
        x.rotate_right(n) as u64,
    ];
    let x = word as u32;
    let of_u32 = [
        x.count_ones() as u64,
        x.count_zeros() as u64,
        x.leading_zeros() as u64,
        x.leading_ones() as u64,
        x.trailing_zeros() as u64,
        x.trailing_ones() as u64,
        x.reverse_bits() as u64,
        x.swap_bytes() as u64,
        x.rotate_left(n) as u64,
        x.rotate_right(n) as u64,
    ];
    let x = word as i64;
    let of_i64 = [
        x.count_ones() as u64,
        x.count_zeros() as u64,
        x.leading_zeros() as u64,
        x.leading_ones() as u64,
        x.trailing_zeros() as u64,
        x.trailing_ones() as u64,
        x.reverse_bits() as u64,
        x.swap_bytes() as u64,
        x.rotate_left(n) as u64,
        x.rotate_right(n) as u64,
    ];
    let x = word as u64;
    let of_u64 = [
        x.count_ones() as u64,
        x.count_zeros() as u64,
        x.leading_zeros() as u64,
        x.leading_ones() as u64,
        x.trailing_zeros() as u64,
        x.trailing_ones() as u64,
        x.reverse_bits() as u64,
        x.swap_bytes() as u64,
        x.rotate_left(n) as u64,
        x.rotate_right(n) as u64,
    ];
    let x = word as usize;
    let of_usize = [
        x.count_ones() as u64,
        x.count_zeros() as u64,
        x.leading_zeros() as u64,
        x.leading_ones() as u64,
        x.trailing_zeros() as u64,
        x.trailing_ones() as u64,
        x.reverse_bits() as u64,
        x.swap_bytes() as u64,
        x.rotate_left(n) as u64,
        x.rotate_right(n) as u64,
    ];
    for k in unroll(0..10u32) {
        out.set(first + k, of_i32[k as usize]);
        out.set(first + 10 + k, of_u32[k as usize]);
        out.set(first + 20 + k, of_i64[k as usize]);
        out.set(first + 30 + k, of_u64[k as usize]);
        out.set(first + 40 + k, of_usize[k as usize]);
    }
}

/// Words of which every part is an edge case in some, and amounts below, at and above every width.
fn inputs(n: usize) -> (Vec<u64>, Vec<u32>) {
    let edges = samples::<u8>(41, 13).into_iter().map(|byte| u64::from_ne_bytes([byte; 8]));
    let halves = samples::<u16>(42, 13).into_iter().map(|half| u64::from(half) << 16 | u64::from(half));
    let words = samples::<u64>(43, n);
    let words: Vec<_> = edges.chain(halves).chain(words).take(n).collect();
    let by = (0..n as u64).map(|i| if i % 4 == 0 { hash(44, i) as u32 } else { hash(44, i) as u32 % 70 });
    (words, by.collect())
}

fn narrow(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let (words, by) = inputs(n);
    let wanted: Vec<u64> = (0..n).flat_map(|i| results!(words[i], by[i]; i8 u8 i16 u16)).collect();
    let mut out = device.filled_bytes([4 * RESULTS * n], 0xab)?;
    let (words, by) = (device.tensor(&words, [n])?, device.tensor(&by, [n])?);
    bits_narrow::launch(device, blocks(n), &words, &by, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

fn wide(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let (words, by) = inputs(n);
    let wanted: Vec<u64> = (0..n).flat_map(|i| results!(words[i], by[i]; i32 u32 i64 u64 usize)).collect();
    let mut out = device.filled_bytes([5 * RESULTS * n], 0xab)?;
    let (words, by) = (device.tensor(&words, [n])?, device.tensor(&by, [n])?);
    bits_wide::launch(device, blocks(n), &words, &by, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}
