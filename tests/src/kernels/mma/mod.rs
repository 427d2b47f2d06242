//! Tensor cores: every operand type, every type that sums are stored as, and every kind of operand.
//!
//! Inputs are small integers, so that each sum is exact whatever the order.

mod epilogues;
mod fragments;
mod integers;
mod layouts;
mod operands;
pub mod prints;
mod producers;
mod sparse;
pub mod stops;
mod types;
mod warp;

use crate::case::Case;
use crate::random::{Sample, hash};
use tma_runtime::prelude::*;

/// The cases of this module.
pub const CASES: [&[Case]; 14] = [
    types::CASES,
    operands::CASES,
    producers::CASES,
    layouts::CASES,
    integers::CASES,
    epilogues::CASES,
    fragments::CASES,
    sparse::CASES,
    stops::CASES,
    warp::CASES[0],
    warp::CASES[1],
    warp::CASES[2],
    warp::CASES[3],
    warp::CASES[4],
];

/// A scalar that represents small integers.
trait Integral: Sample {
    /// The smallest of the inputs.
    const LEAST: i32 = -1;

    /// Returns the scalar that is `number`, or next to it.
    fn of(number: i32) -> Self;
}

macro_rules! floats {
    ($($ty:ty)+) => { $(
        impl Integral for $ty {
            fn of(number: i32) -> Self {
                <$ty>::from_f32(number as f32)
            }
        }
    )+ };
}

floats!(f16 bf16 tf32 e4m3 e5m2);

macro_rules! numbers {
    ($($ty:ty: $least:literal,)+) => { $(
        impl Integral for $ty {
            const LEAST: i32 = $least;

            fn of(number: i32) -> Self {
                number as $ty
            }
        }
    )+ };
}

numbers! { f32: -1, f64: -1, i32: -1, i8: -1, u8: 0, }

/// Returns `len` numbers from [`Integral::LEAST`] to 1.
fn inputs<T: Integral>(seed: u64, len: usize) -> Vec<i32> {
    let number = |i| i32::try_from(hash(seed, i) % 3).unwrap_or_default() - 1;
    (0..len as u64).map(|i| number(i).max(T::LEAST)).collect()
}

/// Converts the numbers to scalars.
fn scalars<T: Integral>(numbers: &[i32]) -> Vec<T> {
    numbers.iter().map(|&number| T::of(number)).collect()
}

/// Computes `a · bᵀ`, of rows of `k` elements each.
fn product(a: &[i32], b: &[i32], k: usize) -> Vec<i32> {
    let dot = |x: &[i32], y: &[i32]| x.iter().zip(y).map(|(x, y)| x * y).sum();
    a.chunks(k).flat_map(|x| b.chunks(k).map(move |y| dot(x, y))).collect()
}

/// Transposes a matrix of `columns` columns.
fn transposed(matrix: &[i32], columns: usize) -> Vec<i32> {
    (0..columns).flat_map(|column| matrix.iter().copied().skip(column).step_by(columns)).collect()
}
