//! Matmuls in flight.

use std::marker::PhantomData;

use super::{Accumulator, AccumulatorElement, Left, Multiply, Right};
use crate::lang::device_only;

/// A matmul that the tensor cores are computing, started by [`Accumulator::mma`].
///
/// Until [`wait`](Flight::wait), the accumulator's registers and the operands belong to the tensor
/// cores. The flight therefore borrows the accumulator, and owns the value that was passed as
/// `keep`: usually the pipeline's slot with the tiles, or `()` if nothing needs to be kept. It
/// compiles to nothing.
///
/// A flight must be waited for. Dropping it without a wait is an error of the kernel check.
///
/// The accumulator cannot be read in flight:
///
/// ```compile_fail,E0502
/// # use tma_runtime::prelude::*;
/// # type Operand = Tile<f16, Shape2<64, 64>, Swizzle128>;
/// # fn kernel(a: Operand, b: Operand, out: Global<f32>) {
/// let mut sum = Accumulator::<f32, 64, 64>::zero();
/// let flight = sum.mma(a, b, ());
/// out.set(thread_idx().x, sum[0]); // error: cannot borrow `sum` as immutable
/// flight.wait();
/// # }
/// ```
///
/// A slot cannot be released while it is being read:
///
/// ```compile_fail,E0382
/// # use tma_runtime::prelude::*;
/// # type Operand = Tile<f16, Shape2<64, 64>, Swizzle128>;
/// # fn kernel(ring: Pipeline<(Operand, Operand), 4>) {
/// let mut consumer = ring.consumer();
/// let mut sum = Accumulator::<f32, 64, 64>::zero();
/// let slot = consumer.wait();
/// let flight = sum.mma(slot.0, slot.1, slot);
/// slot.release(); // error: use of moved value; `flight.wait()` returns it
/// flight.wait();
/// # }
/// ```
///
/// An accumulator has one flight, which [`Flight::mma`] continues:
///
/// ```compile_fail,E0499
/// # use tma_runtime::prelude::*;
/// # type Operand = Tile<f16, Shape2<64, 64>, Swizzle128>;
/// # fn kernel(a: Operand, b: Operand) {
/// let mut sum = Accumulator::<f32, 64, 64>::zero();
/// let first = sum.mma(a, b, ());
/// let second = sum.mma(b, a, ()); // error: cannot borrow `sum` as mutable more than once
/// first.wait();
/// second.wait();
/// # }
/// ```
#[must_use = "the multiplication is complete, and its accumulator readable, only after `flight.wait()`"]
pub struct Flight<'a, T: AccumulatorElement, const M: u32, const N: u32, Keep>(
    PhantomData<(&'a mut Accumulator<T, M, N>, Keep)>,
);

impl<T: AccumulatorElement, const M: u32, const N: u32, Keep> Flight<'_, T, M, N, Keep> {
    /// Starts adding the next matmul, waits until the previous one is complete, and returns the
    /// value that the previous one kept. The tensor cores always have work, so main loops should
    /// use this method.
    ///
    /// PTX: the same as [`Accumulator::mma`], then `wgmma.wait_group.sync.aligned` for the previous
    /// matmul (PTX ISA, "wgmma.wait_group").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # type Operand = Tile<f16, Shape2<128, 64>, Swizzle128>;
    /// # fn kernel(ring: Pipeline<(Operand, Operand), 4>, steps: u32) {
    /// let mut consumer = ring.consumer();
    /// let mut sum = Accumulator::<f32, 128, 128>::zero();
    /// let slot = consumer.wait();
    /// let mut flight = sum.mma(slot.0, slot.1, slot);
    /// for _ in 1..steps {
    ///     let slot = consumer.wait();
    ///     let done = flight.mma(slot.0, slot.1, slot);
    ///     if elect_one() {
    ///         done.release(); // `ring.init` counts warps
    ///     }
    /// }
    /// let last = flight.wait();
    /// if elect_one() {
    ///     last.release();
    /// }
    /// # }
    /// ```
    #[doc(alias = "wgmma.mma_async")]
    pub fn mma<A, B, EA, EB, const K: u32>(&mut self, a: A, b: B, keep: Keep) -> Keep
    where
        A: Left<M, K, Element = EA>,
        B: Right<N, K, Element = EB>,
        EB: Multiply<EA, T>,
    {
        device_only()
    }

    /// Waits until the matmul is complete, and returns the value that it kept. The accumulator is
    /// readable again. Matmuls of other accumulators that were started later stay in flight.
    ///
    /// PTX: `wgmma.wait_group.sync.aligned n`, where the compiler counts the `n` groups that were
    /// committed since (PTX ISA, "wgmma.wait_group").
    #[doc(alias = "wgmma.wait_group")]
    pub fn wait(self) -> Keep {
        device_only()
    }
}

/// Extends the borrow of the accumulator: a value with a destructor is in use until the end of its
/// scope. A flight that is never waited for therefore does not make the accumulator readable.
///
/// ```compile_fail,E0502
/// # use tma_runtime::prelude::*;
/// # type Operand = Tile<f16, Shape2<64, 64>, Swizzle128>;
/// # fn kernel(a: Operand, b: Operand, out: Global<f32>) {
/// let mut sum = Accumulator::<f32, 64, 64>::zero();
/// let flight = sum.mma(a, b, ());
/// out.set(thread_idx().x, sum[0]); // error: cannot borrow `sum` as immutable
/// # }
/// ```
impl<T: AccumulatorElement, const M: u32, const N: u32, Keep> Drop for Flight<'_, T, M, N, Keep> {
    fn drop(&mut self) {
        device_only()
    }
}
