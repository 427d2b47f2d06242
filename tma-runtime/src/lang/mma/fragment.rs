//! Left operands in registers.

use std::marker::PhantomData;

use super::MatrixElement;
use crate::lang::sealed::Sealed;

/// A left operand of M × K elements in the registers of a warpgroup, made by
/// [`Accumulator::pack`](super::Accumulator::pack).
///
/// Each thread holds M / 64 · K / 4 registers of two 16-bit elements, the elements that it held in
/// the accumulator: nothing is exchanged between threads. Source: PTX ISA, "Register Fragments for
/// wgmma.mma_async.m64nNk16".
///
/// The tensor cores read the registers while the product is in flight, so
/// [`mma`](super::Accumulator::mma) takes the fragment for good; it is not `Copy`. For the next
/// product, pack again.
///
/// ```compile_fail,E0382
/// # use tma_runtime::prelude::*;
/// # type Value = Tile<bf16, Shape2<128, 64>, Swizzle128>;
/// # fn kernel(scores: Accumulator<f32, 64, 128>, left: Value, right: Value) {
/// let weights = scores.pack::<bf16>();
/// let mut out = Accumulator::<f32, 64, 64>::zero();
/// let mut flight = out.mma(weights, left.t(), ());
/// flight.mma(weights, right.t(), ()); // error: use of moved value
/// flight.wait();
/// # }
/// ```
#[must_use = "a fragment exists to be multiplied: `acc.mma(fragment, ..)`"]
pub struct Fragment<E: MatrixElement, const M: u32, const K: u32>(PhantomData<E>);

impl<E: MatrixElement, const M: u32, const K: u32> Sealed for Fragment<E, M, K> {}
