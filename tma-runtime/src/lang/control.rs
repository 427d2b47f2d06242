//! Unrolled loops, traps, and printing.

use std::fmt::Arguments;
use std::iter::StepBy;
use std::ops::{Range, RangeInclusive};

use super::{Number, Shape, Swizzle, Tile, TileElement, device_only, sealed::Sealed};

/// What a `for` in a kernel may run over: `a..b`, `a..=b`, and either with `.step_by(n)`.
#[diagnostic::on_unimplemented(
    message = "kernels do not loop over `{Self}`",
    label = "not a range of integers",
    note = "a loop runs over `a..b` or `a..=b`, also with `.step_by(n)`"
)]
pub trait CountedRange: Iterator {}

impl<T: Number> CountedRange for Range<T> where Self: Iterator {}
impl<T: Number> CountedRange for RangeInclusive<T> where Self: Iterator {}
impl<R: CountedRange> CountedRange for StepBy<R> {}

/// Unrolls a loop: the body of `for i in unroll(0..4)` is repeated four times, with `i` a constant
/// in each.
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

/// Tells the compiler what holds in every launch, such as `steps > 0`.
///
/// The protocol of barriers is judged for such launches alone. A kernel that is checked, as all are
/// in builds with debug assertions, stops the grid where the condition does not hold, as `assert!`
/// does. In other builds it costs nothing, and nothing tests it: LLVM is not told either, so that a
/// wrong assumption makes no other code than a right one.
///
/// PTX: none, or as for `assert!` in a checked kernel.
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
/// with the columns aligned. Of more than two dimensions each slice of the last two is headed by
/// its coordinates. As with [`printf!`](crate::printf!), each thread that executes it prints, so
/// let one do it, after the wait or barrier that lets it read the tile.
///
/// Tiles of up to 65536 elements are printed. It is not for kernels with tensor cores (`TMA0255`):
/// there, store the tile to a tensor, and print it in another kernel. An accumulator is stored to a
/// tile first.
///
/// PTX: a loop over rows with calls to `vprintf`, of up to 32 values each.
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

/// What [`print_tile`] prints: a [`Tile`] of the block's own shared memory.
#[diagnostic::on_unimplemented(
    message = "`print_tile` prints a tile, not `{Self}`",
    label = "not a tile of the block's own shared memory",
    note = "an accumulator is stored to a tile, and that to a tensor, for another kernel to load and print"
)]
pub trait Printed: Sealed {}

impl<T: TileElement, S: Shape, W: Swizzle> Printed for Tile<T, S, W> {}

/// Prints from the GPU, once per thread that executes it. The text appears on the host's standard
/// output when the device is synchronised; the output of different threads comes in any order.
///
/// The first argument is a string literal as for `print!`: a line ends only at `\n`. Arguments are
/// scalars; `{}`, `{0}`, `{name}`, hexadecimal (`{:x}`), a width (`{:8}`) and a precision (`{:.3}`)
/// are supported.
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

/// The expansion of [`printf!`](crate::printf!), which lets rustc check format string and
/// arguments.
#[doc(hidden)]
pub fn device_printf(text: Arguments<'_>) {
    device_only()
}
