//! Unrolled loops, traps, assumptions and printing.

mod ptx;

use std::fmt::Arguments;
use std::iter::{Rev, StepBy};
use std::ops::{Range, RangeInclusive};

use super::{Number, Shape, Swizzle, Tile, TileElement, device_only, sealed::Sealed};

pub use ptx::{
    PtxInput, PtxMemory, PtxScalar, device_ptx, device_ptx_input, device_ptx_memory, device_ptx_output,
};

/// Ranges that a `for` in a kernel may iterate over: `a..b`, `a..=b`, and either with
/// `.step_by(n)`, `.rev()` or both.
#[diagnostic::on_unimplemented(
    message = "kernels cannot loop over `{Self}`",
    label = "not a range of integers",
    note = "use `a..b` or `a..=b`, optionally with `.step_by(n)` and `.rev()`"
)]
pub trait CountedRange: Iterator {}

impl<T: Number> CountedRange for Range<T> where Self: Iterator {}
impl<T: Number> CountedRange for RangeInclusive<T> where Self: Iterator {}
impl<R: CountedRange> CountedRange for StepBy<R> {}
impl<R: CountedRange + DoubleEndedIterator> CountedRange for Rev<R> {}

/// Unrolls a loop: the body of `for i in unroll(0..4)` is repeated four times, with a constant `i`
/// in each copy.
///
/// The bounds and step must be constants: literals, `const` items, const generics, extents of
/// tiles. A register array indexed by an unrolled variable stays in registers.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(x: Global<f32>, out: Global<f32>) {
/// let mut values = [0.0; 4];
/// for i in unroll(0..4usize) {
///     values[i] = x.get(i);
/// }
/// for i in unroll((0..4usize).step_by(2)) {
///     out.set(i, values[i] + values[i + 1]);
/// }
/// # }
/// ```
#[must_use]
pub fn unroll<R: CountedRange>(range: R) -> R {
    device_only()
}

/// Stops the whole grid with an error: the host sees a launch failure, and its CUDA context is
/// lost.
///
/// `assert!(condition, "message")` prints the message and traps unless the condition holds. The
/// message takes no arguments.
///
/// PTX: `trap`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(n: u32) {
/// match n {
///     1 | 2 | 4 => {}
///     _ => trap(),
/// }
/// # }
/// ```
pub fn trap() -> ! {
    device_only()
}

/// States a condition that holds in every launch, such as `steps > 0`.
///
/// The barrier protocol is checked for such launches only. All kernels are checked in builds with
/// debug assertions: a checked kernel stops the grid if the condition does not hold, like
/// `assert!`. In other builds the statement costs nothing and tests nothing. LLVM does not see the
/// condition either, so a wrong assumption generates the same code as a correct one.
///
/// PTX: none, or that of `assert!` in a checked kernel.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(steps: u32) {
/// assume(steps > 0 && steps % 2 == 0);
/// # }
/// ```
pub fn assume(condition: bool) {
    device_only()
}

/// Prints a tile: a line with its name, its extents, elements and swizzle, then a line per row,
/// with the columns aligned. If the tile has more than two dimensions, the coordinates of each
/// slice of the last two precede that slice. As with [`printf!`](crate::printf!), every thread that
/// executes it prints, so call it in one thread, after the wait or barrier that makes the tile
/// readable.
///
/// Tiles of up to 65536 elements are printed. To print an accumulator, store it to a tile first.
///
/// PTX: a loop over rows with calls to `vprintf`, each with up to 32 values.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(full: Barrier, tile: Tile<f16, Shape2<8, 16>, Swizzle32>) {
/// full.wait(0);
/// if thread_idx().x == 0 {
///     print_tile(tile);
/// }
/// # }
/// ```
pub fn print_tile<X: Printed>(tile: X) {
    device_only()
}

/// The argument of [`print_tile`]: a [`Tile`] of the block's own shared memory.
#[diagnostic::on_unimplemented(
    message = "`print_tile` takes a tile, not `{Self}`",
    label = "not a tile of the block's own shared memory",
    note = "to print an accumulator, store it to a tile, and print that"
)]
pub trait Printed: Sealed {}

impl<T: TileElement, S: Shape, W: Swizzle> Printed for Tile<T, S, W> {}

/// Prints from the GPU, once per thread that executes it. The text appears on the host's standard
/// output when the device is synchronised. The output of different threads is in no particular
/// order.
///
/// The first argument is a string literal like that of `print!`: a line ends only at `\n`.
/// Arguments are scalars. `{}`, `{0}`, `{name}`, hexadecimal (`{:x}`), a width (`{:8}`) and a
/// precision (`{:.3}`) are supported.
///
/// PTX: a call to `vprintf` (CUDA C++ Programming Guide, "Formatted Output").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(x: Global<f32>) {
/// if thread_idx().x == 0 {
///     printf!("block {} starts with {:.3}\n", block_idx().x, x.get(0));
/// }
/// # }
/// ```
#[macro_export]
macro_rules! printf {
    ($format:literal $(, $argument:expr)* $(,)?) => {
        $crate::lang::device_printf(::std::format_args!($format $(, $argument)*))
    };
}

/// Names what the kernel does from here to the end of the block. Traces of a GPU and the
/// simulator's timeline show the span, for each warp.
///
/// The name is a literal of up to 64 ASCII characters. Spans may be nested, and `break`,
/// `continue` and `return` end those that they leave. Both ends keep their order relative to
/// copies, waits and other accesses; arithmetic may be moved across them.
///
/// PTX: none, but a comment at each end.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(full: Barrier, tile: Tile<f32, Shape2<8, 32>>, out: Global<f32>, steps: u32) {
/// for step in 0..steps {
///     full.wait(step % 2);
///     trace_span!("scale");
///     out.set(thread_idx().x, 2.0 * tile.get([step % 8, thread_idx().x]));
/// }
/// # }
/// ```
#[macro_export]
macro_rules! trace_span {
    ($name:literal $(,)?) => {
        $crate::lang::device_trace_span($name)
    };
}

/// The expansion of [`trace_span!`](crate::trace_span!).
#[doc(hidden)]
pub fn device_trace_span(name: &'static str) {
    device_only()
}

/// The expansion of [`printf!`](crate::printf!), with which rustc checks the format string and the
/// arguments.
#[doc(hidden)]
pub fn device_printf(text: Arguments<'_>) {
    device_only()
}
