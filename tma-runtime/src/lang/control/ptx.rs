//! `ptx!`: instructions that the language does not have.

use crate::lang::{Barrier, Global, Scalar, Shape, SharedArray, Swizzle, Tile, TileElement};
use crate::lang::{bf16, device_only, f16, sealed::Sealed, tf32};

/// A scalar that [`ptx!`](crate::ptx!) keeps in a register.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand of `ptx!`",
    label = "not a scalar of 16, 32 or 64 bits or a `bool`",
    note = "convert 8 bits, as in `x as u32`, and pass each element of an array on its own"
)]
pub trait PtxScalar: Sealed + Copy {}

macro_rules! mark {
    ($($scalar:ty),* $(,)?) => { $(impl PtxScalar for $scalar {})* };
}

mark!(bool, u16, i16, u32, i32, u64, i64, usize, f16, bf16, f32, f64, tf32);

/// An object in memory, whose address [`ptx!`](crate::ptx!) takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not in memory",
    label = "not a `Global`, tile, barrier or `SharedArray`"
)]
pub trait PtxMemory: Copy {}

impl<T: Scalar> PtxMemory for Global<T> {}
impl<T: TileElement, S: Shape, W: Swizzle> PtxMemory for Tile<T, S, W> {}
impl<T: Scalar, const N: u32> PtxMemory for SharedArray<T, N> {}
impl PtxMemory for Barrier {}

/// A value that [`ptx!`](crate::ptx!) reads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand of `ptx!`",
    label = "not a scalar of 16, 32 or 64 bits, a `bool`, or an object in memory",
    note = "convert 8 bits, as in `x as u32`, and pass each element of an array on its own"
)]
pub trait PtxInput: Copy {}

impl<T: PtxScalar> PtxInput for T {}
impl<T: Scalar> PtxInput for Global<T> {}
impl<T: TileElement, S: Shape, W: Swizzle> PtxInput for Tile<T, S, W> {}
impl<T: Scalar, const N: u32> PtxInput for SharedArray<T, N> {}
impl PtxInput for Barrier {}

/// Instructions of your own, where the language has none, in the manner of
/// [`asm!`](core::arch::asm).
///
/// The template is one string literal, or one for each line. `{name}` is an operand, and `{{` a
/// brace of PTX. An operand is `in x`, `out x` or `inout x` for a variable, or `name = in value`.
/// Scalars of 16 to 64 bits are in registers of that size, a `bool` is a predicate, a
/// [`Global`](crate::lang::Global) is its address in global memory, and a shared object its 32-bit
/// address in shared memory.
///
/// `reads(x, ..)` and `writes(x, ..)` name the memory that the instructions access. `volatile`
/// stands for any other effect or input, such as a barrier, a clock or a lane index. Without any of
/// them, the outputs are a pure function of the inputs, and the instructions may be merged, moved
/// and removed.
///
/// # Safety
///
/// The instructions must have no effects other than the declared ones, and stay within the memory
/// that they name. Nothing checks them.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(out: Global<u32>, a: u32, b: u32) {
/// let mut picked = 0u32;
/// unsafe { ptx!("prmt.b32 {picked}, {a}, {b}, {order};", out picked, in a, in b, order = in 0x5410u32) };
/// out.set(0, picked);
/// # }
/// ```
#[macro_export]
macro_rules! ptx {
    (@ $(,)?) => {};
    (@ $line:literal $(, $($rest:tt)*)?) => { $crate::ptx!(@ $($($rest)*)?) };
    (@ in $value:ident $(, $($rest:tt)*)?) => { $crate::ptx!(@ value = in $value, $($($rest)*)?) };
    (@ out $place:ident $(, $($rest:tt)*)?) => { $crate::ptx!(@ place = out $place, $($($rest)*)?) };
    (@ inout $place:ident $(, $($rest:tt)*)?) => { $crate::ptx!(@ place = inout $place, $($($rest)*)?) };
    (@ $name:ident = in $value:expr $(, $($rest:tt)*)?) => {
        $crate::lang::device_ptx_input($value);
        $crate::ptx!(@ $($($rest)*)?)
    };
    (@ $name:ident = out $place:expr $(, $($rest:tt)*)?) => {
        $crate::lang::device_ptx_output(&mut $place);
        $crate::ptx!(@ $($($rest)*)?)
    };
    (@ $name:ident = inout $place:expr $(, $($rest:tt)*)?) => {
        $crate::lang::device_ptx_output(&mut $place);
        $crate::ptx!(@ $($($rest)*)?)
    };
    (@ reads($($object:expr),* $(,)?) $(, $($rest:tt)*)?) => {
        $($crate::lang::device_ptx_memory($object);)*
        $crate::ptx!(@ $($($rest)*)?)
    };
    (@ writes($($object:expr),* $(,)?) $(, $($rest:tt)*)?) => {
        $($crate::lang::device_ptx_memory($object);)*
        $crate::ptx!(@ $($($rest)*)?)
    };
    (@ volatile $(, $($rest:tt)*)?) => { $crate::ptx!(@ $($($rest)*)?) };
    ($template:literal $($rest:tt)*) => {{
        $crate::lang::device_ptx();
        $crate::ptx!(@ $template $($rest)*);
    }};
}

/// The expansion of [`ptx!`](crate::ptx!): what makes it `unsafe`.
///
/// # Safety
///
/// That of [`ptx!`](crate::ptx!).
#[doc(hidden)]
pub unsafe fn device_ptx() {
    device_only()
}

/// An operand that [`ptx!`](crate::ptx!) reads.
#[doc(hidden)]
pub fn device_ptx_input<T: PtxInput>(value: T) {
    device_only()
}

/// An operand that [`ptx!`](crate::ptx!) writes.
#[doc(hidden)]
pub fn device_ptx_output<T: PtxScalar>(place: &mut T) {
    device_only()
}

/// An object that [`ptx!`](crate::ptx!) accesses.
#[doc(hidden)]
pub fn device_ptx_memory<T: PtxMemory>(object: T) {
    device_only()
}
